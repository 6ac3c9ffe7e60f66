# SPDX-License-Identifier: MIT
# tokmap. `make help` lists the targets.
#
#   V=1            prints the commands
#   -s             prints nothing but problems
#   W=1            turns warnings into errors
#   BUILD=folder   builds in this folder instead of build/
#   HARDEN=no      leaves out the protections below "hardening"
#   DLOPEN=no      links the libraries of codecs and PCRE2, which otherwise are loaded when they are first used
#   SANITIZE=list  builds with -fsanitize=list (the targets asan, ubsan, tsan, and fuzz use folders of their own)
#
# CC CXX AR CPPFLAGS CFLAGS LDFLAGS LIBS belong to the user: their values are appended after the flags of this file.
# Objects are stored in a folder named after the compiler and the flags, so different builds never mix.

# Without -s and V=1, the make that the user started names the files that it compiles. Those that it starts are silent.
loud := $(if $(V)$(findstring s,$(firstword -$(MAKEFLAGS))),,$(filter 0,$(MAKELEVEL)))

SHELL := /bin/sh
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

BUILD ?= build
CC ?= cc
ifeq ($(origin CXX),default)
CXX := $(if $(findstring clang,$(CC)),$(subst clang,clang++,$(CC)),g++)
endif
AR ?= ar
INSTALL ?= install
PYTHON ?= python3
CFLAGS ?= -O2 -g

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

Q := $(if $(V),,@)
# $(call say,WORD) begins a command with a line that has the word and the target.
say = $(if $(loud),printf '  %-4s %s\n' '$(1)' '$(or $(2),$@)' && )
comma := ,

VERSION := $(shell sed -n 's/^.define TOKMAP_VERSION_STRING "\(.*\)"/\1/p' include/tokmap/tokmap.h)
SONAME := libtokmap.so.$(firstword $(subst ., ,$(VERSION)))
TOKENIZE_SONAME := $(subst libtokmap,libtokmap_tokenize,$(SONAME))

# ---- what is installed on this machine; looked up once, and only for goals that compile ----

quiet_goals := help deps test test-gpu demo clean uninstall asan ubsan tsan fuzz torture ptx
ifneq ($(filter-out $(quiet_goals),$(or $(MAKECMDGOALS),all)),)
has = \n\#if __has_include(<$(1)>)\n$(2)\n\#endif
found := $(shell printf '$(call has,stdio.h,libc)$(call has,xxhash.h,xxhash)$(call has,zstd.h,zstd)$(call \
  has,isa-l/igzip_lib.h,isal)$(call has,cmocka.h,cmocka)$(call \
  has,pcre2.h,pcre2)$(call has,snappy-c.h,snappy)$(call has,lz4frame.h,lz4)$(call \
  has,brotli/decode.h,brotli)$(call has,bzlib.h,bzip2)$(call has,lzma.h,xz)$(call \
  has,curl/curl.h,libcurl)\n' | \
  $(CC) $(CPPFLAGS) -E -P -x c - 2>/dev/null)
needed := $(if $(filter libc,$(found)),$(if $(filter xxhash,$(found)),,xxhash.h) $(if $(filter zstd,$(found)),,zstd.h))
ifeq ($(filter libc,$(found)),)
$(error no working C compiler ('$(CC)'): run 'make deps', or \
  apt-get install gcc libc6-dev libxxhash-dev libzstd-dev libisal-dev)
else ifneq ($(strip $(needed)),)
$(error required headers are missing ($(strip $(needed))): run 'make deps', or apt-get install$(if \
  $(filter xxhash.h,$(needed)), libxxhash-dev)$(if $(filter zstd.h,$(needed)), libzstd-dev) \
  (without root: see .github/INSTALL.md))
endif
HAVE_ISAL := $(filter isal,$(found))
HAVE_CMOCKA := $(filter cmocka,$(found))
HAVE_PCRE2 := $(filter pcre2,$(found))
HAVE_SNAPPY := $(filter snappy,$(found))
HAVE_LZ4 := $(filter lz4,$(found))
HAVE_BROTLI := $(filter brotli,$(found))
HAVE_BZIP2 := $(filter bzip2,$(found))
HAVE_XZ := $(filter xz,$(found))
HAVE_LIBCURL := $(filter libcurl,$(found))
# $(call lacks,FOUND,PART,HEADER,PACKAGE) says which part of tokmap is left out if the header was not found.
lacks = $(if $(1),,$(info tokmap: built without $(2), because $(3) is missing (apt-get install $(4))))
ifeq ($(MAKELEVEL)$(MAKE_RESTARTS),0)
$(call lacks,$(HAVE_ISAL),reading .gz and gzip in Parquet files,isa-l/igzip_lib.h,libisal-dev)
$(call lacks,$(HAVE_SNAPPY),reading Snappy in Parquet files,snappy-c.h,libsnappy-dev)
$(call lacks,$(HAVE_LZ4),reading .lz4 and LZ4 in Parquet files,lz4frame.h,liblz4-dev)
$(call lacks,$(HAVE_BROTLI),reading Brotli in Parquet files,brotli/decode.h,libbrotli-dev)
$(call lacks,$(HAVE_BZIP2),reading .bz2,bzlib.h,libbz2-dev)
$(call lacks,$(HAVE_XZ),reading .xz,lzma.h,liblzma-dev)
$(call lacks,$(HAVE_LIBCURL),reading https://$(comma) s3://$(comma) and gs:// inputs,curl/curl.h,libcurl4-openssl-dev)
$(call lacks,$(HAVE_PCRE2),tokenizers whose split pattern has no scanner of its own,pcre2.h,libpcre2-dev)
endif
ifneq ($(filter units test-run,$(MAKECMDGOALS)),)
$(call lacks,$(HAVE_CMOCKA),the unit tests,cmocka.h,libcmocka-dev)
endif
machine := $(shell $(CC) -dumpmachine 2>/dev/null)
endif

# ---- flags ----

warnings := -Wall -Wextra -Wshadow -Wpointer-arith -Wcast-qual -Wwrite-strings -Wstrict-prototypes \
  -Wmissing-prototypes -Wold-style-definition -Wundef -Wvla -Wformat=2 -Wno-unused-parameter \
  -Wdouble-promotion -Wswitch-enum $(if $(W),-Werror)
base_flags := -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -Iinclude -Isrc -fvisibility=hidden -fPIC -pthread \
  -fno-strict-aliasing -MMD -MP
# A file is included as "room/file.h". The library cannot include the rooms of the tools, and neither can include those
# of bench and tests.
room_flags = $(if $(filter src/%,$<),,-Itokenize_tools) $(if $(filter bench/% tests/%,$<),-Ibench) \
  $(if $(filter tests/%,$<),-Itests)

# hardening: what limits the damage of an error in our code.
#
# Checks of the stack and of the C library's calls when compiling; addresses that change, relocations that are
# read-only, and a stack without code when linking. The user's flags come later, so theirs win: -fno-stack-protector,
# -Wl,-z,lazy, -D_FORTIFY_SOURCE=3, -no-pie. _FORTIFY_SOURCE needs optimization, and would hide errors from sanitizers.
# -fcf-protection is left to the user: it protects nothing as long as one of the linked libraries is built without it.
user_flags = $(CPPFLAGS) $(CFLAGS)
optimized = $(filter-out -O0,$(lastword $(filter -O%,$(CFLAGS))))
fortify = $(if $(or $(SANITIZE),$(findstring _FORTIFY_SOURCE,$(user_flags))),,$(if \
  $(optimized),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))
ifneq ($(HARDEN),no)
hard_c_flags = -fstack-protector-strong $(fortify)
hard_link_flags = -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack
# For programs; a shared library gets its own flag. All objects are -fPIC.
hard_program_flags = $(if $(filter -static -static-pie -no-pie -nopie,$(CFLAGS) $(LDFLAGS)),,-pie)
endif

# Libraries of codecs and PCRE2 are loaded when they are first used (src/platform/library.h), so that programs which do
# not use them start sooner. A static program cannot do that, and the Python package contains the libraries.
linked := $(filter no,$(DLOPEN))$(filter -static -static-pie,$(CFLAGS) $(LDFLAGS))
features := $(if $(linked),-DLIBRARIES_LINKED) $(foreach \
  name,ISAL PCRE2 SNAPPY LZ4 BROTLI BZIP2 XZ LIBCURL,$(if $(HAVE_$(name)),-DHAVE_$(name)))
sanitize := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer)
c_flags = -std=gnu11 $(base_flags) $(warnings) $(features) $(hard_c_flags) $(CPPFLAGS) $(CFLAGS) $(sanitize)
opened := zstd $(if $(HAVE_ISAL),isal) $(if $(HAVE_PCRE2),pcre2-8) $(if $(HAVE_SNAPPY),snappy) $(if $(HAVE_LZ4),lz4) \
  $(if $(HAVE_BROTLI),brotlidec) $(if $(HAVE_BZIP2),bz2) $(if $(HAVE_XZ),lzma)
opened_libs := $(opened:%=-l%)
lib_libs := $(if $(linked),-lzstd) -ldl
tool_libs := $(if $(linked),$(opened_libs)) -ldl
# Tests also call functions that are not in the tables, such as compressors.
test_libs := $(opened_libs) -ldl
archive = $(if $(findstring /,$(shell $(CC) -print-file-name=lib$(1).a)),-l:lib$(1).a,-l$(1))
link = $(CC) $(hard_link_flags) $(CFLAGS) $(sanitize) $(LDFLAGS) -o $@
# Debugging information is two thirds of a program, and the kernel may read all of a program that starts from storage.
# It is moved to .debug/NAME.debug in the folder of the file, where debuggers find it.
OBJCOPY ?= $(shell $(CC) -print-prog-name=objcopy 2>/dev/null)
debug_file = $(@D)/.debug/$(@F).debug
split_debug = $(if $(SANITIZE),,rm -f $(debug_file) && if command -v '$(OBJCOPY)' >/dev/null 2>&1; then \
    mkdir -p $(@D)/.debug && '$(OBJCOPY)' --only-keep-debug $@ $(debug_file) && chmod 644 $(debug_file) && \
    '$(OBJCOPY)' --strip-debug --add-gnu-debuglink=$(debug_file) $@; \
  fi && )
link_program = $(link) $(hard_program_flags)
# A sanitizer's runtime is linked only into programs, so a sanitized shared library may have undefined symbols.
so_flags = -shared -Wl,-soname,$(SONAME) -Wl,--version-script=src/libtokmap.map $(if $(SANITIZE),,-Wl,-z,defs)

# ---- files ----

flag_set := $(shell printf '%s' '$(CC) $(c_flags)' | cksum | cut -d' ' -f1)
OBJ := $(BUILD)/obj/$(flag_set)
objects = $(patsubst %,$(OBJ)/%.o,$(1))

# Signals and child processes (process*.c) are for commands only, and old_glibc*.c for the Python package. src/text and
# src/remote are linked from an archive, so the shared library contains only the files of them that it uses (only the
# tools read JSON and URLs).
library_rooms := common platform format dataset order run batch staging cuda loader python
library_sources := $(filter-out src/platform/process% src/platform/old_glibc%,$(sort \
  $(foreach room,$(library_rooms),$(wildcard src/$(room)/*.c src/$(room)/*/*.c))))
library_objects := $(call objects,$(library_sources))
archived_objects := $(call objects,$(sort $(wildcard src/text/*.c src/remote/*.c)))
cli_objects := $(call objects,$(sort $(wildcard src/cli/*.c src/platform/process*.c)))
tool_sources := $(sort $(filter-out tokenize_tools/tokmap.c,$(wildcard tokenize_tools/*.c tokenize_tools/*/*.c \
  tokenize_tools/*/*/*.c)))
tool_objects := $(call objects,$(tool_sources))
bench_objects := $(call objects,$(sort $(wildcard bench/*.c bench/*/*.c)))
support_objects := $(call objects,$(sort $(wildcard tests/support/*.c)))
cuda_software_objects := $(call objects,$(sort $(wildcard tests/support/cuda_software/*.c)) \
  tests/support/expand_cu_host.c tests/support/gpu_kernels_host.c src/cuda/expand_ptx.c bench/harness/gpu_kernels_ptx.c)
cuda_software := $(BUILD)/tests/cuda_software/libcuda.so.1
unit_sources := $(if $(HAVE_CMOCKA),$(sort $(wildcard tests/unit/*/test_*.c)))
# With UNITS, a list of patterns such as test_ring*, only these unit tests are built. Of what is left out, as of the
# programs for torture, fuzzing, and comparisons, the compiler checks the sources only. With TESTS (run_tests.sh), what
# its patterns do not name is not built.
tested_units = $(wildcard tests/unit/$(1).c tests/unit/*/$(1).c)
chosen_units := $(filter $(if $(UNITS),$(wildcard $(UNITS:%=tests/unit/*/%.c)),$(if $(TESTS),$(foreach \
  test,$(TESTS),$(call tested_units,$(test))),%)),$(unit_sources))
scripts_tested := $(if $(TESTS),$(foreach test,$(TESTS),$(if $(call tested_units,$(test:*%=)),,$(filter-out \
  cli/%,$(test)))),all)
unit_programs := $(patsubst %.c,$(BUILD)/tests/%,$(notdir $(chosen_units)))
fuzz_sources := $(sort $(wildcard tests/fuzz/fuzz_*.c))
fuzz_programs := $(patsubst tests/fuzz/%.c,$(BUILD)/tests/%,$(fuzz_sources))
user_programs := $(if $(wildcard src/loader/*.c),$(BUILD)/tests/consumer $(BUILD)/tests/fault_reader \
  $(BUILD)/tests/fault_writer)
preloaded := $(BUILD)/tests/inject.so $(BUILD)/tests/record_calls.so
reference_programs := $(patsubst tests/reference/%.c,$(BUILD)/tests/%,$(wildcard tests/reference/*.c))
torture_programs := $(patsubst tests/torture/%.c,$(BUILD)/tests/%,$(wildcard tests/torture/*.c))
commands := $(if $(wildcard tokenize_tools/tokmap.c),$(BUILD)/bin/tokmap) \
  $(if $(bench_objects),$(BUILD)/bin/tokmap-bench)
man1_pages := $(sort $(wildcard tokenize_tools/man/*.1 bench/man/*.1))
man5_pages := $(sort $(wildcard tokenize_tools/man/*.5))
man7_pages := $(sort $(wildcard tokenize_tools/man/*.7 bench/man/*.7))
public_headers := $(sort $(wildcard include/tokmap/*.h))

.PHONY: all lib wheel wheel-files tools bench measure units fuzzers harness loads deps test test-run test-gpu demo \
  demo-run lint asan ubsan tsan fuzz fuzz-run torture ptx install uninstall clean help force

all: lib tools bench ## build everything that needs no GPU (the default)
	$(if $(loud),$(if $(filter all,$(or $(MAKECMDGOALS),all)),@printf '%s\n' 'tokmap is built: $(built); $(summary)'))
empty :=
space := $(empty) $(empty)
built = $(subst $(space),$(comma) ,$(strip $(commands)))$(comma) and the libraries in $(BUILD)/lib
# $(call reads,FOUND,NAME,PACKAGE) names something that this build reads, or the package that it lacks.
reads = $(if $(1),$(comma) $(2), (not $(2): no $(3)))
summary = reads text and records, plain, .zst$(call reads,$(HAVE_ISAL),.gz,libisal-dev)$(call \
  reads,$(HAVE_BZIP2),.bz2,libbz2-dev)$(call reads,$(HAVE_XZ),.xz,liblzma-dev)$(call \
  reads,$(HAVE_LZ4),.lz4,liblz4-dev)$(call reads,$(HAVE_LIBCURL),URLs,libcurl4-openssl-dev); \
  Parquet with zstd$(call reads,$(HAVE_SNAPPY),Snappy,libsnappy-dev)$(call \
  reads,$(HAVE_ISAL),gzip,libisal-dev)$(call reads,$(HAVE_LZ4),LZ4,liblz4-dev)$(call \
  reads,$(HAVE_BROTLI),Brotli,libbrotli-dev); \
  tokenizers with $(if $(HAVE_PCRE2),any split pattern (PCRE2),known split patterns only (no libpcre2-dev)); \
  next: make demo

libraries := $(foreach name,libtokmap.a $(SONAME) libtokmap_tokenize.a $(TOKENIZE_SONAME),$(BUILD)/lib/$(name))
installed_archives := $(addprefix $(BUILD)/lib/$(if $(linked),,linked/),libtokmap.a libtokmap_tokenize.a)
lib: $(libraries) $(installed_archives) ## build the libraries, static and shared
tools: $(filter %/tokmap,$(commands)) ## build the command tokmap
bench: $(filter %/tokmap-bench,$(commands)) ## build the command tokmap-bench
wheel: ## build the Python package, with the libraries and commands inside, as a wheel in build/wheel
	@BUILD='$(BUILD)' CC='$(CC)' CFLAGS='$(CFLAGS)' CPPFLAGS='$(CPPFLAGS)' LDFLAGS='$(LDFLAGS)' LIBS='$(LIBS)' \
	  MAKE='$(MAKE)' $(PYTHON) src/python/build_backend.py '$(abspath $(BUILD))/wheel'
units: $(unit_programs)
fuzzers: $(fuzz_programs)
other_sources := $(wildcard tests/fuzz/*.c tests/reference/*.c tests/torture/*.c)
harness: all units $(user_programs) $(preloaded) $(cuda_software) $(if $(UNITS), \
  $(patsubst %,$(OBJ)/%.checked,$(filter-out $(chosen_units),$(unit_sources)) $(other_sources)), \
  $(if $(scripts_tested),fuzzers $(reference_programs) $(torture_programs)))

# ---- rules ----

# Everything that is linked or archived depends on this file, which changes when the flags or the list of files change.
# Several makes can run in this folder at once (tests do that), so each writes a temporary file and renames it.
linked_from := $(BUILD)/linked_from
$(linked_from): force
	@mkdir -p $(@D)
	@new=$@.$$$$; \
	  printf '%s\n' '$(OBJ) $(link_program) $(AR) $(so_flags) $(ENGINE) $(LIBS) $(tool_libs) $(test_libs) \
  $(old_program_flags) $(wheel_tool_libs)' \
	  '$(library_objects) $(archived_objects)' \
	  '$(cli_objects)' '$(tool_objects)' '$(bench_objects)' '$(support_objects)' '$(cuda_software_objects)' >$$new; \
	  if cmp -s $$new $@; then rm -f $$new; else mv -f $$new $@; fi
force:

# With -funsigned-char, gcc 12 compiles _mm256_blendv_epi8() as if no byte had its highest bit, and tokmap would write
# wrong ids. So the files with vector instructions have a char with a sign whatever CFLAGS say.
vector_flags = $(if $(filter x86_64%,$(machine)),$1 -fsigned-char)
avx512 := -mavx512f -mavx512bw -mavx512vl -mavx512dq
$(OBJ)/%_avx2.c.o: private_flags := $(call vector_flags,-mavx2 -maes -mbmi -mbmi2 -mpopcnt)
$(OBJ)/%_avx512.c.o: private_flags := $(call vector_flags,$(avx512))
$(OBJ)/%_vbmi.c.o: private_flags := $(call vector_flags,$(avx512) -mavx512vbmi -mavx512vbmi2 -mgfni -maes -mvaes -mbmi \
  -mbmi2 -mlzcnt -mpopcnt)
$(OBJ)/%.c.o: %.c
	$(Q)$(call say,CC,$<)mkdir -p $(@D) && $(CC) $(c_flags) $(room_flags) $(private_flags) -c $< -o $@

$(OBJ)/%.c.checked: %.c
	$(Q)mkdir -p $(@D) && $(CC) $(c_flags) $(room_flags) -fsyntax-only -MF $@.d -MT $@ $< && touch $@

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
naming_objects := $(call objects,src/platform/zstd_library.c tokenize_tools/codec/codec_libraries.c \
  tokenize_tools/pretokenize/pcre2_library.c)
loads: $(if $(linked),,$(library_names)) ## list the files of the libraries that programs load at their first use
	@$(if $(linked),,sed -n 's/.*"\(.*\)".*/\1/p' $(library_names))
	@$(if $(HAVE_LIBCURL),echo libcurl.so.4)
ifeq ($(linked),)
$(naming_objects): $(library_names)
$(naming_objects): private_flags := -include $(library_names)
endif

# The archives that are installed are for programs of any kind, also static ones, which cannot load libraries. Their
# tables have addresses that the linker fills in, from the libraries that pkg-config --static names.
$(OBJ)/linked/%.c.o: %.c
	$(Q)$(call say,CC,$<)mkdir -p $(@D) && $(CC) $(c_flags) -DLIBRARIES_LINKED $(room_flags) -c $< -o $@
ifeq ($(linked),)
$(BUILD)/lib/linked/libtokmap.a: $(OBJ)/linked/src/platform/zstd_library.c.o
$(BUILD)/lib/linked/libtokmap_tokenize.a: $(OBJ)/linked/tokenize_tools/pretokenize/pcre2_library.c.o
$(installed_archives): $(BUILD)/lib/linked/%: $(BUILD)/lib/%
	$(Q)mkdir -p $(@D) && cp $< $@ && $(AR) rs $@ $(filter %.o,$^)
endif

# The assembler embeds the kernels and the text of the scripts for shells. Link-time optimization would lose it.
$(OBJ)/src/cuda/expand_ptx.c.o: src/cuda/expand.ptx src/cuda/expand.fatbin
$(OBJ)/bench/harness/gpu_kernels_ptx.c.o: bench/harness/gpu_kernels.ptx bench/harness/gpu_kernels.fatbin
completion_scripts := $(sort $(wildcard tokenize_tools/completion/tokmap.*))
$(OBJ)/tokenize_tools/commands/command_completion.c.o: $(completion_scripts)
$(OBJ)/src/cuda/expand_ptx.c.o $(OBJ)/bench/harness/gpu_kernels_ptx.c.o \
$(OBJ)/tokenize_tools/commands/command_completion.c.o: private_flags := -fno-lto

$(BUILD)/lib/libtokmap.a: $(library_objects) $(archived_objects) $(linked_from)
	$(Q)$(call say,AR)mkdir -p $(@D) && rm -f $@ && $(AR) rcs $@ $(library_objects) $(archived_objects)
library_archive := $(BUILD)/obj/library.a
$(library_archive): $(archived_objects) $(linked_from)
	$(Q)mkdir -p $(@D) && rm -f $@ && $(AR) rcs $@ $(archived_objects)
$(BUILD)/lib/$(SONAME): $(library_objects) $(library_archive) src/libtokmap.map $(linked_from)
	$(Q)$(call say,LINK)mkdir -p $(@D) && \
	  $(link) $(so_flags) $(library_objects) $(library_archive) -pthread $(lib_libs) $(LIBS) && \
	  $(split_debug)ln -sf $(SONAME) $(@D)/libtokmap.so
# The tokenizers. The shared library has its own copy of the functions of src/ that it uses, and exports none of them.
tokenizer_rooms := unicode pretokenize tokenizer bpe sentencepiece vocabulary
tokenizer_objects := $(filter $(tokenizer_rooms:%=$(OBJ)/tokenize_tools/%/%),$(tool_objects))
tokenizer_libs := $(if $(linked),$(if $(HAVE_PCRE2),-lpcre2-8)) $(lib_libs)
tokenizer_so_flags := $(subst $(SONAME),$(TOKENIZE_SONAME),$(subst \
  src/libtokmap.map,tokenize_tools/libtokmap_tokenize.map,$(so_flags)))
$(BUILD)/lib/libtokmap_tokenize.a: $(tokenizer_objects) $(linked_from)
	$(Q)$(call say,AR)mkdir -p $(@D) && rm -f $@ && $(AR) rcs $@ $(tokenizer_objects)
$(BUILD)/lib/$(TOKENIZE_SONAME): $(tokenizer_objects) $(BUILD)/lib/libtokmap.a tokenize_tools/libtokmap_tokenize.map \
  $(linked_from)
	$(Q)$(call say,LINK)mkdir -p $(@D) && \
	  $(link) $(tokenizer_so_flags) $(tokenizer_objects) $(BUILD)/lib/libtokmap.a -pthread \
	  -Wl,--as-needed $(tokenizer_libs) $(LIBS) && $(split_debug)ln -sf $(TOKENIZE_SONAME) $(@D)/libtokmap_tokenize.so
$(BUILD)/bin/tokmap: $(OBJ)/tokenize_tools/tokmap.c.o $(tool_objects) $(cli_objects) $(BUILD)/lib/libtokmap.a \
  $(linked_from)
	$(Q)$(call say,LINK)mkdir -p $(@D) && \
	  $(link_program) $(filter %.o,$^) $(filter %.a,$^) -pthread $(tool_libs) $(LIBS) -lm && $(split_debug):
# The cases `tokenize`, `parquet`, and `hostile` call tokenizers, the reader of Parquet, and the trainer's table of
# words directly, because measuring the command would include reading and printing.
bench_tool_objects := $(tokenizer_objects) $(filter $(OBJ)/tokenize_tools/parquet/%,$(tool_objects)) \
  $(call objects,$(addprefix tokenize_tools/,codec/codec_libraries.c codec/file_type.c train/train_pieces.c))
$(BUILD)/bin/tokmap-bench: $(bench_objects) $(bench_tool_objects) \
  $(cli_objects) $(BUILD)/lib/libtokmap.a $(linked_from)
	$(Q)$(call say,LINK)mkdir -p $(@D) && \
	  $(link_program) $(filter %.o,$^) $(filter %.a,$^) -pthread $(tool_libs) $(LIBS) -lm && $(split_debug):

# For the Python package, which may be installed on other machines: the files are without debugging information, contain
# zstd, ISA-L, and PCRE2 where those are installed as archives, and call the oldest versions of glibc's functions
# (old_glibc.c explains how). Shared libraries that are left are searched for beside libtokmap, in the package.
wheel_files := $(addprefix $(BUILD)/wheel/,$(SONAME) $(TOKENIZE_SONAME) $(commands:$(BUILD)/%=%))
wheel_shared := $(if $(findstring /,$(shell $(CC) -print-file-name=libpthread.so.0 2>/dev/null)),$(if \
  $(filter x86_64% aarch64%,$(machine)),-Wl$(comma)--no-as-needed -l:libpthread.so.0 -l:libdl.so.2))
old_names := dlopen dlsym dlclose dlerror dlinfo pthread_create pthread_attr_setaffinity_np pthread_join \
  pthread_detach pthread_kill pthread_setname_np pthread_condattr_setclock pthread_sigmask pthread_once \
  pthread_key_create pthread_getspecific pthread_setspecific stat64 lstat64 fstat64 fstatat64 __isoc23_strtol \
  __isoc23_strtoll __isoc23_strtoul __isoc23_strtoull
old_objects := $(if $(wheel_shared),$(call objects,src/platform/old_glibc.c))
old_flags := $(if $(wheel_shared),$(addprefix -Wl$(comma)--wrap=,$(old_names)))
old_program_objects := $(if $(wheel_shared),$(old_objects) $(call objects,src/platform/old_glibc_program.c))
# libgcc_s.so.1 needs a newer glibc. The unwinder of libstdc++, which Snappy needs, is therefore linked from an archive.
old_program_flags := $(old_flags) $(if $(wheel_shared),-static-libgcc $(addprefix \
  -Wl$(comma)--wrap=,__libc_start_main __pthread_key_create pow exp log))
# Link-time optimization would lose the versions, which the assembler sets.
$(old_program_objects): private_flags := -fno-lto
# Debian 13's archive of LZ4 calls xxHash. An older one does not, and then nothing of xxHash is linked.
lz4_libs = -Wl,--push-state,--as-needed $(call archive,xxhash) -Wl,--pop-state
wheel_libs = -pthread $(call archive,zstd) $(1) $(wheel_shared) -ldl $(LIBS) -Wl,--as-needed -lm
wheel_tool_libs = $(call wheel_libs,$(if $(HAVE_ISAL),$(call archive,isal)) \
  $(if $(HAVE_PCRE2),$(call archive,pcre2-8)) \
  $(if $(HAVE_SNAPPY),$(call archive,snappy) $(call archive,stdc++)) $(if $(HAVE_LZ4),$(call archive,lz4) $(lz4_libs)) \
  $(if $(HAVE_BROTLI),$(call archive,brotlidec) $(call archive,brotlicommon)) \
  $(if $(HAVE_BZIP2),$(call archive,bz2)) $(if $(HAVE_XZ),$(call archive,lzma)))
beside = -Wl,-S,-rpath,'$$ORIGIN$(1)'
# Its tables of libraries have addresses, as those of the installed archives. Everything else is compiled once for both.
in_wheel = $(foreach object,$(1),$(if \
  $(filter $(naming_objects),$(object)),$(object:$(OBJ)/%=$(linked_objects)/%),$(object)))
linked_objects := $(OBJ)$(if $(linked),,/linked)
wheel_zstd := $(linked_objects)/src/platform/zstd_library.c.o
$(BUILD)/wheel/$(SONAME): $(call in_wheel,$(library_objects)) $(old_objects) $(library_archive) \
  src/libtokmap.map $(linked_from)
	$(Q)mkdir -p $(@D) && $(link) $(so_flags) $(old_flags) $(call beside,) $(filter %.o,$^) $(library_archive) \
	  $(call wheel_libs,)
$(BUILD)/wheel/$(TOKENIZE_SONAME): $(call in_wheel,$(tokenizer_objects)) $(old_objects) \
  $(BUILD)/lib/libtokmap.a \
  tokenize_tools/libtokmap_tokenize.map $(linked_from)
	$(Q)mkdir -p $(@D) && $(link) $(tokenizer_so_flags) $(old_flags) $(call beside,) $(filter %.o %.a,$^) \
	  $(call wheel_libs,$(if $(HAVE_PCRE2),$(call archive,pcre2-8)))
wheel-files: $(wheel_files)
$(BUILD)/wheel/bin/tokmap: $(OBJ)/tokenize_tools/tokmap.c.o $(call in_wheel,$(tool_objects))
$(BUILD)/wheel/bin/tokmap-bench: $(call in_wheel,$(bench_objects) $(bench_tool_objects))
$(filter $(BUILD)/wheel/bin/%,$(wheel_files)): $(wheel_zstd) $(old_program_objects) $(cli_objects) \
  $(BUILD)/lib/libtokmap.a \
  $(linked_from)
	$(Q)mkdir -p $(@D) && $(link_program) $(old_program_flags) $(call beside,/..) $(filter %.o,$^) $(filter %.a,$^) \
	  $(wheel_tool_libs)

# Hundreds of programs for tests are linked from these archives, because the linker then copies only what each one uses.
# gold, where there is one, links them in half the time.
quick_linker := $(if $(findstring -fuse-ld,$(CFLAGS) $(LDFLAGS)),,$(if $(findstring \
  /,$(shell command -v $$($(CC) -print-prog-name=ld.gold 2>/dev/null))),-fuse-ld=gold))
tool_archive := $(BUILD)/obj/tools.a
support_archive := $(BUILD)/obj/support.a
$(tool_archive): $(tool_objects) $(cli_objects) $(linked_from)
$(support_archive): $(support_objects) $(linked_from)
$(tool_archive) $(support_archive):
	$(Q)mkdir -p $(@D) && rm -f $@ && $(AR) rcs $@ $(filter %.o,$^)
program_parts := $(tool_archive) $(BUILD)/lib/libtokmap.a $(linked_from)
define unit_program
$(BUILD)/tests/$(basename $(notdir $(1))): $(OBJ)/$(1).o
endef
$(foreach source,$(chosen_units),$(eval $(call unit_program,$(source))))
$(unit_programs): $(support_archive) $(program_parts)
	$(Q)mkdir -p $(@D) && $(link) $(quick_linker) $(filter %.o,$^) $(filter %.a,$^) -pthread $(test_libs) \
	  $(if $(HAVE_BROTLI),-lbrotlienc) -lcmocka $(LIBS) -lm
# Without ENGINE (libFuzzer), a harness is linked with a driver that replays files and mutates them from a seed.
$(fuzz_programs): $(BUILD)/tests/%: $(OBJ)/tests/fuzz/%.c.o $(if $(ENGINE),,$(OBJ)/tests/fuzz/driver.c.o) \
  $(program_parts)
	$(Q)mkdir -p $(@D) && $(link) $(ENGINE) $(filter %.o,$^) $(filter %.a,$^) -pthread $(test_libs) $(LIBS) -lm
$(reference_programs): $(BUILD)/tests/%: $(OBJ)/tests/reference/%.c.o $(program_parts)
	$(Q)mkdir -p $(@D) && $(link) $(filter %.o,$^) $(filter %.a,$^) -pthread $(test_libs) $(LIBS) -lm
$(torture_programs): $(BUILD)/tests/%: $(OBJ)/tests/torture/%.c.o $(BUILD)/lib/libtokmap.a $(linked_from)
	$(Q)mkdir -p $(@D) && $(link) $(filter %.o,$^) $(filter %.a,$^) -pthread $(lib_libs) $(LIBS)
# These libraries are preloaded into programs of any kind, so they are never built with a sanitizer.
$(preloaded): $(BUILD)/tests/%.so: tests/fault/%.c $(linked_from)
	$(Q)mkdir -p $(@D) && $(CC) -std=gnu11 -D_GNU_SOURCE $(warnings) $(CPPFLAGS) $(CFLAGS) -fPIC -shared \
	  -o $@ $< -ldl -pthread
# The emulated CUDA driver. Threads of its streams may still run at the end of a program, so it is never unloaded. It
# finds its own functions without their names, because a test removes names from a copy.
$(cuda_software): $(cuda_software_objects) $(linked_from)
	$(Q)mkdir -p $(@D) && $(link) -shared -Wl,-soname,libcuda.so.1 -Wl,-z,nodelete -Wl,-Bsymbolic \
	  $(if $(SANITIZE),,-Wl,-z,defs) $(filter %.o,$^) -pthread -lzstd
# The kernel as C notices accesses on which a GPU would fault (see the source).
$(OBJ)/tests/support/expand_cu_host.c.o: private_flags := $(if $(SANITIZE),-DEXPAND_SANITIZED,-fsanitize=alignment \
  -fsanitize-recover=alignment)
# Programs as users write them: they use only the public headers and the library.
$(BUILD)/tests/consumer: $(OBJ)/tests/support/demo/demo_consumer.c.o
$(BUILD)/tests/fault_reader: $(OBJ)/tests/fault/fault_reader.c.o
$(BUILD)/tests/fault_writer: $(OBJ)/tests/fault/fault_writer.c.o
$(user_programs): $(BUILD)/lib/libtokmap.a $(linked_from)
	$(Q)mkdir -p $(@D) && $(link) $(filter %.o,$^) $(filter %.a,$^) -pthread $(lib_libs) $(LIBS)

# ---- checks ----

# A sub-make uses every processor unless -j is given.
jobs = $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc 2>/dev/null || echo 2))
sub_make = $(MAKE) --no-print-directory $(jobs)
test_environment = BUILD='$(BUILD)' CC='$(CC)' CXX='$(CXX)' PYTHON='$(PYTHON)' MAKE='$(MAKE)' SANITIZE='$(SANITIZE)' \
  CPPFLAGS='$(CPPFLAGS)' CFLAGS='$(CFLAGS)' LDFLAGS='$(LDFLAGS)' LIBS='$(LIBS)'

deps: ## install with apt what building and testing need (without questions; does nothing if all of it is installed)
	@CC='$(CC)' CXX='$(CXX)' CPPFLAGS='$(CPPFLAGS)' BUILD='$(BUILD)' sh tests/support/deps.sh

test: ## run every test that needs no GPU (installs what is missing first)
	@CC='$(CC)' CXX='$(CXX)' CPPFLAGS='$(CPPFLAGS)' BUILD='$(BUILD)' sh tests/support/deps.sh
	+@$(sub_make) test-run
test-gpu: ## run the tests of the device path on a real GPU (in a built tree also: sh tests/gpu/test_gpu.sh)
	@CC='$(CC)' CXX='$(CXX)' CPPFLAGS='$(CPPFLAGS)' BUILD='$(BUILD)' sh tests/support/deps.sh gpu
	+@TOKMAP_TEST_GPU=1 $(sub_make) TESTS='gpu/*' test-run
test-run: harness
	@$(test_environment) TESTS='$(TESTS)' sh tests/support/run_tests.sh

measure: all ## measure every figure of bench/RESULTS.md and README.md and write them (about an hour on a quiet machine)
	@BUILD='$(BUILD)' PYTHON='$(PYTHON)' CC='$(CC)' bash bench/measure/measure.sh

demo: ## go from text found on this machine to batches and check every step (needs no root if it can be built)
	@CC='$(CC)' CXX='$(CXX)' CPPFLAGS='$(CPPFLAGS)' BUILD='$(BUILD)' sh tests/support/deps.sh build
	+@$(sub_make) demo-run
demo-run: all $(BUILD)/tests/consumer
	@$(test_environment) sh tests/support/demo.sh

lint: all ## check includes, circles, calls, symbols, names, and language
	@$(test_environment) OBJ='$(OBJ)' $(PYTHON) tests/lint/lint.py

asan: ## run the tests with the address and undefined behavior sanitizers
	+@$(sub_make) BUILD=$(BUILD)/asan SANITIZE=address,undefined test-run
ubsan: ## run the tests with the undefined behavior sanitizer alone
	+@$(sub_make) BUILD=$(BUILD)/ubsan SANITIZE=undefined test-run
tsan_tests := test_os test_sealed test_signals test_sp_threads test_two_threads test_synthetic test_corpus test_train \
  test_load_threads test_processors test_bpe_splits test_residency test_gather* test_device* test_*ring* \
  test_*loader* test_*verify* test_*pack* test_*dataset* test_shard_writer test_shuffle
TSAN_COMMANDS := cli/audit-* cli/bench-check cli/encode-flow cli/export-* cli/index-* cli/merge-* cli/pack-* \
  cli/plan-* cli/replay-* cli/run-* cli/train-* cli/verify-*
tsan: ## run the tests that use threads with the thread sanitizer
	+@$(sub_make) BUILD=$(BUILD)/tsan SANITIZE=thread \
	  TESTS='$(or $(TESTS),$(tsan_tests) $(TSAN_COMMANDS))' UNITS='$(if $(TESTS),,$(tsan_tests))' test-run

FUZZ_SECONDS ?= 60
fuzz: ## fuzz each reader for FUZZ_SECONDS (60; 0: only build) with libFuzzer, or with seeded mutation without clang
	+@CC='$(CC)' BUILD='$(BUILD)' FUZZ_SECONDS='$(FUZZ_SECONDS)' MAKE='$(MAKE) --no-print-directory' sh tests/fuzz/fuzz.sh

# SECONDS and SEED may also come from the environment, as TORTURE_SECONDS and TORTURE_SEED: a shell sets SECONDS itself.
torture: ## attack tokmap for SECONDS (3600) from SEED: hostile files, faults, kills, references (ONLY=name,...)
	+@$(sub_make) harness
	@$(test_environment) SECONDS_GIVEN='$(or $(TORTURE_SECONDS),$(if $(filter command%,$(origin SECONDS)),$(SECONDS)))' \
	  SEED='$(or $(TORTURE_SEED),$(SEED))' ONLY='$(ONLY)' sh tests/torture/run_torture.sh

# The code that CUDA 13 generates for its oldest target uses nothing newer than 64-bit addresses (PTX 2.3) and bit
# counts (sm_20). The heads of the files say so, and therefore every driver accepts them. A driver has to compile PTX
# for its GPU, which takes a while, so the kernels are also in fat binaries, compiled for the GPUs of data centers. Code
# for capability 8.0 runs on 8.x, code for 9.0 on 9.x, and code for 10.0 on 10.x. Where a CUDA toolkit is installed,
# tests/lint generates the files again and assembles them for every target of ptxas.
NVCC ?= nvcc
PTX_ROOT ?= .
kernels := src/cuda/expand bench/harness/gpu_kernels
fat_targets := 80 90 100
ptx: ## generate the PTX and the machine code of the GPU kernels again (needs nvcc of CUDA 13)
	$(Q)for kernel in $(kernels); do \
	  mkdir -p $(BUILD) '$(PTX_ROOT)'/$${kernel%/*} && \
	  $(NVCC) -ptx -arch=compute_75 -Isrc -o $(BUILD)/kernel.ptx $$kernel.cu && \
	  sed -e "1i // Made by \`make ptx\` from $$kernel.cu: do not edit." -e 's/^\.version .*/.version 2.3/' \
	    -e 's/^\.target .*/.target sm_20/' $(BUILD)/kernel.ptx >$(BUILD)/kernel.new && \
	  mv $(BUILD)/kernel.new '$(PTX_ROOT)'/$$kernel.ptx && \
	  $(NVCC) -fatbin -compress-mode=size -Xptxas -warn-spills -Isrc -o '$(PTX_ROOT)'/$$kernel.fatbin \
	    $(foreach target,$(fat_targets),-gencode=arch=compute_$(target)$(comma)code=sm_$(target)) $$kernel.cu || exit 1; \
	done

# ---- installation ----

# Manual pages and README name the documents where they are installed.
doc_pages := README.md LICENSE src/format/FORMAT.md src/run/RUN.md src/order/ORDER.md
examples := $(sort $(wildcard tests/examples/*.c tests/examples/*.py))
peer_scripts := $(sort $(wildcard bench/peers/*.py $(foreach folder,compare compare/*,bench/peers/$(folder)/*.py \
  bench/peers/$(folder)/*.c)))
# $(call install_debug,FOLDER,NAMES,INTO) installs the debugging information of files, unless it is in the files.
install_debug = for name in $(2); do from=$(BUILD)/$(1)/.debug/$$name.debug; \
    [ ! -f $$from ] || $(INSTALL) -D -m 644 $$from '$(DESTDIR)$(3)'/.debug/$$name.debug || exit 1; \
  done
install_man = for page in $(1); do \
    into='$(DESTDIR)$(2)'/"$${page\#\#*/}"; \
    sed 's|/usr/local/share/doc/tokmap|$(docdir)|g' "$$page" >"$$into" && chmod 644 "$$into" || exit 1; \
  done
installed_links := s/\](src\/[a-z]*\/\(FORMAT\|RUN\|ORDER\)\.md)/](\1.md)/g; s/\](tests\/examples/](examples/g

# The dynamic linker finds a library by a table that ldconfig makes of some folders. If the library is installed in one
# of these folders of this machine, the table is made again; otherwise a line says what is left to the user.
refresh_linker = if [ -n '$(DESTDIR)' ]; then \
    echo 'tokmap: when these files are in $(libdir), run as root: ldconfig'; \
  elif $(LDCONFIG) -vNX 2>/dev/null | sed -n 's|^\(/[^:]*\):.*|\1|p' | \
    while read -r folder; do if [ "$$folder" -ef '$(libdir)' ]; then echo; fi; done | grep -q '^'; then \
    $(LDCONFIG) 2>/dev/null || echo 'tokmap: so that programs find the library, run as root: ldconfig'; \
  else \
    echo 'tokmap: so that programs find the library: export LD_LIBRARY_PATH=$(libdir)'; \
  fi

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
	  $(if $(HAVE_PCRE2),'Libs.private: -lpcre2-8') >'$(DESTDIR)$(pkgconfigdir)/tokmap-tokenize.pc'
	$(Q)chmod 644 '$(DESTDIR)$(pkgconfigdir)/tokmap.pc' '$(DESTDIR)$(pkgconfigdir)/tokmap-tokenize.pc'
	$(if $(man1_pages),$(Q)$(call install_man,$(man1_pages),$(man1dir)))
	$(if $(man5_pages),$(Q)$(call install_man,$(man5_pages),$(man5dir)))
	$(if $(man7_pages),$(Q)$(call install_man,$(man7_pages),$(man7dir)))
	$(Q)$(INSTALL) -d '$(DESTDIR)$(docdir)/examples'
	$(Q)$(INSTALL) -m 644 $(doc_pages) '$(DESTDIR)$(docdir)'
	$(Q)sed '$(installed_links)' README.md >'$(DESTDIR)$(docdir)/README.md'
	$(Q)$(INSTALL) -m 644 $(examples) '$(DESTDIR)$(docdir)/examples'
	$(Q)for file in $(peer_scripts); do \
	  $(INSTALL) -D -m 644 "$$file" '$(DESTDIR)$(peersdir)'/"$${file#bench/peers/}" || exit 1; done
	$(Q)$(INSTALL) -d '$(DESTDIR)$(bashcompletiondir)' '$(DESTDIR)$(zshcompletiondir)' '$(DESTDIR)$(fishcompletiondir)'
	$(Q)$(INSTALL) -m 644 tokenize_tools/completion/tokmap.bash '$(DESTDIR)$(bashcompletiondir)/tokmap'
	$(Q)ln -sf tokmap '$(DESTDIR)$(bashcompletiondir)/tokmap-bench'
	$(Q)$(INSTALL) -m 644 tokenize_tools/completion/tokmap.zsh '$(DESTDIR)$(zshcompletiondir)/_tokmap'
	$(Q)$(INSTALL) -m 644 tokenize_tools/completion/tokmap.fish '$(DESTDIR)$(fishcompletiondir)/tokmap.fish'
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
	  $(foreach name,$(notdir $(doc_pages)),'$(DESTDIR)$(docdir)/$(name)') \
	  $(foreach name,$(notdir $(examples)),'$(DESTDIR)$(docdir)/examples/$(name)')
	$(Q)rm -f $(foreach name,tokmap tokmap-bench,'$(DESTDIR)$(bindir)/.debug/$(name).debug') \
	  $(foreach name,$(SONAME) $(TOKENIZE_SONAME),'$(DESTDIR)$(libdir)/.debug/$(name).debug')
	$(Q)rmdir '$(DESTDIR)$(bindir)/.debug' '$(DESTDIR)$(libdir)/.debug' 2>/dev/null || true
	$(Q)rm -f $(foreach file,$(peer_scripts),'$(DESTDIR)$(peersdir)/$(file:bench/peers/%=%)')
	$(Q)rmdir $(foreach folder,$(sort $(dir $(peer_scripts:bench/peers/%=%))),'$(DESTDIR)$(peersdir)/$(folder)') \
	  '$(DESTDIR)$(peersdir)/compare' '$(DESTDIR)$(peersdir)' '$(DESTDIR)$(datarootdir)/tokmap' 2>/dev/null || true
	$(Q)rmdir '$(DESTDIR)$(includedir)/tokmap' '$(DESTDIR)$(docdir)/examples' '$(DESTDIR)$(docdir)' 2>/dev/null || true
	@$(if $(DESTDIR),,$(LDCONFIG) 2>/dev/null || true)

clean: ## remove everything built
	$(Q)rm -rf $(BUILD)

include src/make/site.mk

help: ## list the targets
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile src/make/*.mk | \
	  awk -F'|' '{ printf "  %-10s %s\n", $$1, $$2 }'

-include $(if $(machine),$(shell find $(OBJ) -name '*.d' 2>/dev/null))
