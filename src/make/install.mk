# SPDX-License-Identifier: MIT
# Where files are installed, and the targets install and uninstall.

.PHONY: install uninstall

prefix ?= /usr/local
exec_prefix ?= $(prefix)
bindir ?= $(exec_prefix)/bin
libdir ?= $(exec_prefix)/lib
includedir ?= $(prefix)/include
datarootdir ?= $(prefix)/share
docdir ?= $(datarootdir)/doc/tokmap
mandir ?= $(datarootdir)/man
man1dir ?= $(mandir)/man1
man5dir ?= $(mandir)/man5
man7dir ?= $(mandir)/man7
pkgconfigdir ?= $(libdir)/pkgconfig
# tokmap-bench looks for its scripts in ../share/tokmap/peers, seen from its own folder.
peersdir ?= $(datarootdir)/tokmap/peers
bashcompletiondir ?= $(datarootdir)/bash-completion/completions
zshcompletiondir ?= $(datarootdir)/zsh/site-functions
fishcompletiondir ?= $(datarootdir)/fish/vendor_completions.d

LDCONFIG ?= $(firstword $(wildcard /sbin/ldconfig /usr/sbin/ldconfig) ldconfig)

man1_pages := $(sort $(wildcard tokenize_tools/man/*.1 bench/man/*.1))
man5_pages := $(sort $(wildcard tokenize_tools/man/*.5))
man7_pages := $(sort $(wildcard tokenize_tools/man/*.7 bench/man/*.7))
public_headers := $(sort $(wildcard include/tokmap/*.h))
# Manual pages and README name the documents where they are installed.
doc_pages := README.md LICENSE $(addprefix .github/,INSTALL.md COMPATIBILITY.md SECURITY.md tokmap.svg) \
  $(BUILD)/CHANGELOG.md \
  $(sort $(wildcard src/*/*.md tokenize_tools/packer/pack/*.md tokenize_tools/inputs/corpus/*.md))
# The documents are installed side by side, so that of the Python package has another name.
doc_name = $(notdir $(patsubst %/python/README.md,%/PYTHON.md,$(1)))
examples := $(sort $(wildcard tests/examples/*.c tests/examples/*.py))
peer_scripts := $(sort $(wildcard $(addprefix bench/peers/,*.py compare/*.py compare/*/*.py)))
# $(call install_debug,FOLDER,NAMES,INTO) installs the debugging information of files, unless it is in the files.
install_debug = for name in $(2); do from=$(BUILD)/$(1)/.debug/$$name.debug; \
    [ ! -f $$from ] || $(INSTALL) -D -m 644 $$from '$(DESTDIR)$(3)'/.debug/$$name.debug || exit 1; \
  done
install_man = for page in $(1); do \
    into='$(DESTDIR)$(2)'/"$${page\#\#*/}"; \
    sed 's|/usr/local/share/doc/tokmap|$(docdir)|g' "$$page" >"$$into" && chmod 644 "$$into" || exit 1; \
  done
# Their links: to each other, to headers, to examples; what is not installed is named without a link.
installed_links = s!\[\([^]]*\)\]([^)]*\(CONTRIBUTING\|RESULTS\|ROOMS\|WORK\)\.md[^)]*)!\1!g; \
  s!\](\(\.\./\)*include/tokmap!]($(includedir)/tokmap!g; s!\](\(\.\./\)*tests/examples!](examples!g; \
  s!\]([^):]*python/README\.md!](PYTHON.md!g; \
  s!\](\.github/changelog)!](CHANGELOG.md)!g; s!\]([^):]*/\([A-Za-z_]*\.\(md\|svg\)\)!](\1!g

# The dynamic linker finds a library by a table that ldconfig makes of some folders. If the library is installed in one
# of these folders of this machine, the table is made again; otherwise a line says what is left to the user.
refresh_linker = if [ -n '$(DESTDIR)' ]; then \
    echo 'tokmap: when these files are in $(libdir), run as root: ldconfig'; \
  elif $(LDCONFIG) -vNX 2>/dev/null | sed -n 's|^\(/[^:]*\):.*|\1|p' | \
    while read -r folder; do if [ "$$folder" -ef '$(libdir)' ]; then echo; fi; done | grep -q '^'; then \
    $(LDCONFIG) 2>/dev/null || echo 'tokmap: so that programs find the library, run as root: ldconfig'; \
  else \
    echo 'tokmap: so that programs find it: export LD_LIBRARY_PATH=$(libdir) PKG_CONFIG_PATH=$(pkgconfigdir)'; \
  fi

changelog_entries := $(wildcard .github/changelog .github/changelog/*.md)
$(BUILD)/CHANGELOG.md: src/make/changelog.sh $(changelog_entries)
	$(Q)mkdir -p $(@D) && sh $< .github/changelog >$@

install: $(BUILD)/CHANGELOG.md
install: all ## install under prefix (/usr/local); DESTDIR and the GNU directory variables are honored
	$(Q)$(INSTALL) -d '$(DESTDIR)$(bindir)' '$(DESTDIR)$(libdir)' \
	  '$(DESTDIR)$(includedir)/tokmap' '$(DESTDIR)$(pkgconfigdir)' '$(DESTDIR)$(man1dir)' '$(DESTDIR)$(man5dir)' \
	  '$(DESTDIR)$(man7dir)'
	$(Q)$(if $(commands),$(INSTALL) -m 755 $(commands) '$(DESTDIR)$(bindir)')
	$(Q)$(INSTALL) -m 644 $(installed_archives) '$(DESTDIR)$(libdir)'
	$(Q)$(INSTALL) -m 755 $(BUILD)/lib/$(SONAME) '$(DESTDIR)$(libdir)/libtokmap.so.$(VERSION)'
	$(Q)ln -sf libtokmap.so.$(VERSION) '$(DESTDIR)$(libdir)/$(SONAME)'
	$(Q)ln -sf $(SONAME) '$(DESTDIR)$(libdir)/libtokmap.so'
	$(Q)$(INSTALL) -m 755 $(BUILD)/lib/$(TOKENIZE_SONAME) '$(DESTDIR)$(libdir)/libtokmap_tokenize.so.$(VERSION)'
	$(Q)ln -sf libtokmap_tokenize.so.$(VERSION) '$(DESTDIR)$(libdir)/$(TOKENIZE_SONAME)'
	$(Q)ln -sf $(TOKENIZE_SONAME) '$(DESTDIR)$(libdir)/libtokmap_tokenize.so'
	$(Q)$(call install_debug,bin,$(notdir $(commands)),$(bindir))
	$(Q)$(call install_debug,lib,$(SONAME) $(TOKENIZE_SONAME),$(libdir))
	$(Q)$(INSTALL) -m 644 $(public_headers) '$(DESTDIR)$(includedir)/tokmap'
	$(Q)printf '%s\n' 'prefix=$(prefix)' 'libdir=$(patsubst $(prefix)/%,$${prefix}/%,$(libdir))' \
	  'includedir=$(patsubst $(prefix)/%,$${prefix}/%,$(includedir))' '' \
	  'Name: tokmap' 'Description: flat token files, delivered in an order that can be computed and resumed' \
	  'Version: $(VERSION)' \
	  'Cflags: -I$${includedir}' 'Libs: -L$${libdir} -ltokmap' \
	  'Libs.private: -lzstd -pthread -ldl' >'$(DESTDIR)$(pkgconfigdir)/tokmap.pc'
	$(Q)printf '%s\n' 'prefix=$(prefix)' 'libdir=$(patsubst $(prefix)/%,$${prefix}/%,$(libdir))' '' \
	  'Name: tokmap-tokenize' 'Description: text to token ids and back, exactly as the reference tokenizers do it' \
	  'Version: $(VERSION)' 'Requires: tokmap' 'Libs: -L$${libdir} -ltokmap_tokenize' \
	  'Libs.private: $(opened_libs)' >'$(DESTDIR)$(pkgconfigdir)/tokmap-tokenize.pc'
	$(Q)chmod 644 '$(DESTDIR)$(pkgconfigdir)/tokmap.pc' '$(DESTDIR)$(pkgconfigdir)/tokmap-tokenize.pc'
	$(if $(man1_pages),$(Q)$(call install_man,$(man1_pages),$(man1dir)))
	$(if $(man5_pages),$(Q)$(call install_man,$(man5_pages),$(man5dir)))
	$(if $(man7_pages),$(Q)$(call install_man,$(man7_pages),$(man7dir)))
	$(Q)$(INSTALL) -d '$(DESTDIR)$(docdir)/examples'
	$(Q)$(foreach page,$(doc_pages),sed '$(if $(filter %.md,$(page)),$(installed_links))' $(page) \
	  >'$(DESTDIR)$(docdir)/$(call doc_name,$(page))' && chmod 644 '$(DESTDIR)$(docdir)/$(call doc_name,$(page))' &&) true
	$(Q)$(INSTALL) -m 644 $(examples) '$(DESTDIR)$(docdir)/examples'
	$(Q)for file in $(peer_scripts); do \
	  $(INSTALL) -D -m 644 "$$file" '$(DESTDIR)$(peersdir)'/"$${file#bench/peers/}" || exit 1; done
	$(Q)$(INSTALL) -d '$(DESTDIR)$(bashcompletiondir)' '$(DESTDIR)$(zshcompletiondir)' '$(DESTDIR)$(fishcompletiondir)'
	$(Q)$(INSTALL) -m 644 tokenize_tools/commands/completion/tokmap.bash '$(DESTDIR)$(bashcompletiondir)/tokmap'
	$(Q)ln -sf tokmap '$(DESTDIR)$(bashcompletiondir)/tokmap-bench'
	$(Q)$(INSTALL) -m 644 tokenize_tools/commands/completion/tokmap.zsh '$(DESTDIR)$(zshcompletiondir)/_tokmap'
	$(Q)$(INSTALL) -m 644 tokenize_tools/commands/completion/tokmap.fish '$(DESTDIR)$(fishcompletiondir)/tokmap.fish'
	$(Q)ln -sf tokmap.fish '$(DESTDIR)$(fishcompletiondir)/tokmap-bench.fish'
	@$(refresh_linker)

uninstall: ## remove what install installed
	$(Q)rm -f $(foreach name,tokmap tokmap-bench,'$(DESTDIR)$(bindir)/$(name)') \
	  $(foreach name,libtokmap.a libtokmap.so.$(VERSION) $(SONAME) libtokmap.so libtokmap_tokenize.a \
	    libtokmap_tokenize.so.$(VERSION) $(TOKENIZE_SONAME) libtokmap_tokenize.so,'$(DESTDIR)$(libdir)/$(name)') \
	  $(foreach page,$(notdir $(man1_pages)),'$(DESTDIR)$(man1dir)/$(page)') \
	  $(foreach page,$(notdir $(man5_pages)),'$(DESTDIR)$(man5dir)/$(page)') \
	  $(foreach page,$(notdir $(man7_pages)),'$(DESTDIR)$(man7dir)/$(page)') \
	  $(foreach name,$(notdir $(public_headers)),'$(DESTDIR)$(includedir)/tokmap/$(name)') \
	  '$(DESTDIR)$(pkgconfigdir)/tokmap.pc' '$(DESTDIR)$(pkgconfigdir)/tokmap-tokenize.pc' \
	  $(foreach name,tokmap tokmap-bench,'$(DESTDIR)$(bashcompletiondir)/$(name)' \
	    '$(DESTDIR)$(fishcompletiondir)/$(name).fish') '$(DESTDIR)$(zshcompletiondir)/_tokmap' \
	  $(foreach name,$(call doc_name,$(doc_pages)),'$(DESTDIR)$(docdir)/$(name)') \
	  $(foreach name,$(notdir $(examples)),'$(DESTDIR)$(docdir)/examples/$(name)')
	$(Q)rm -f $(foreach name,tokmap tokmap-bench,'$(DESTDIR)$(bindir)/.debug/$(name).debug') \
	  $(foreach name,$(SONAME) $(TOKENIZE_SONAME),'$(DESTDIR)$(libdir)/.debug/$(name).debug')
	$(Q)rmdir '$(DESTDIR)$(bindir)/.debug' '$(DESTDIR)$(libdir)/.debug' 2>/dev/null || true
	$(Q)rm -f $(foreach file,$(peer_scripts),'$(DESTDIR)$(peersdir)/$(file:bench/peers/%=%)')
	$(Q)rmdir $(foreach folder,$(sort $(dir $(peer_scripts:bench/peers/%=%))),'$(DESTDIR)$(peersdir)/$(folder)') \
	  '$(DESTDIR)$(peersdir)/compare' '$(DESTDIR)$(peersdir)' '$(DESTDIR)$(datarootdir)/tokmap' 2>/dev/null || true
	$(Q)rmdir '$(DESTDIR)$(includedir)/tokmap' '$(DESTDIR)$(docdir)/examples' '$(DESTDIR)$(docdir)' 2>/dev/null || true
	@$(if $(DESTDIR),,$(LDCONFIG) 2>/dev/null || true)
