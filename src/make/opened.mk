# SPDX-License-Identifier: MIT
# Two ways to use zstd, PCRE2, and the codecs. The commands and the shared libraries load them at their first use, from
# the files that library_names.h lists. With DLOPEN=no, and in the archives in lib/linked, their functions are in tables
# with addresses that the linker fills in: these archives are installed, and the Python package is linked from them.

# The names of the libraries that are loaded at their first use: those that the linker stores in a program which needs
# them. Without readelf they are the names that these libraries have had in Debian and Ubuntu for many years.
library_names := $(OBJ)/library_names.h
known_names := libzstd.so.1 libisal.so.2 libpcre2-8.so.0 libsnappy.so.1 liblz4.so.1 libbrotlidec.so.1 libbz2.so.1.0 \
  liblzma.so.5
$(library_names): $(OBJ)/library_names ;
$(OBJ)/library_names: $(linked_from)
	$(Q)mkdir -p $(@D) && echo 'int main(void) { return 0; }' >$(@D)/needs.c && \
	  $(CC) $(CFLAGS) $(LDFLAGS) $(@D)/needs.c -o $(@D)/needs -Wl,--no-as-needed $(opened_libs) $(LIBS) && \
	  names=$$(readelf -d $(@D)/needs 2>/dev/null | sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p') && \
	  for name in $(opened); do \
	    for file in $${names:-$(known_names)} none; do case $$file in "lib$$name.so"*) break ;; esac; done && \
	    if [ $$file = none ]; then \
	      echo "tokmap: lib$$name is installed as an archive only; build with: make DLOPEN=no" >&2; exit 1; \
	    fi; \
	    echo "#define LIBRARY_FILE_$$(echo $$name | tr - _) \"$$file\""; \
	  done >$@ && { cmp -s $@ $@.h || cp $@ $@.h; }
naming_objects := $(call objects,src/platform/zstd_library.c tokenize_tools/inputs/codec/codec_libraries.c \
  tokenize_tools/tokenizers/pretokenize/pcre2_library.c)
loads: $(if $(linked),,$(library_names)) ## list the files of the libraries that programs load at their first use
	@$(if $(linked),,sed -n 's/.*"\(.*\)".*/\1/p' $(library_names))
	@$(if $(HAVE_LIBCURL),echo libcurl.so.4)
ifeq ($(linked),)
$(naming_objects): $(library_names)
$(naming_objects): private_flags := -include $(library_names)
endif

# For programs of any kind, also static ones, which cannot load libraries: archives with other tables.
linked_lib := $(BUILD)/lib$(if $(linked),,/linked)
$(OBJ)/linked/%.c.o: %.c
	$(Q)$(call say,CC,$<)mkdir -p $(@D) && $(CC) $(c_flags) -DLIBRARIES_LINKED $(room_flags) -c $< -o $@
ifeq ($(linked),)
$(linked_lib)/libtokmap.a: $(OBJ)/linked/src/platform/zstd_library.c.o
$(linked_lib)/libtokmap_tokenize.a: $(OBJ)/linked/tokenize_tools/tokenizers/pretokenize/pcre2_library.c.o
$(linked_lib)/libtools.a: $(OBJ)/linked/tokenize_tools/tokenizers/pretokenize/pcre2_library.c.o \
  $(OBJ)/linked/tokenize_tools/inputs/codec/codec_libraries.c.o
$(archives:$(BUILD)/lib/%=$(linked_lib)/%): $(linked_lib)/%: $(BUILD)/lib/%
	$(Q)mkdir -p $(@D) && cp $< $@ && $(AR) rs $@ $(filter %.o,$^)
endif
