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

Q := $(if $(V),,@)
# $(call say,WORD) begins a command with a line that has the word and the target.
say = $(if $(loud),printf '  %-4s %s\n' '$(1)' '$(or $(2),$@)' && )
comma := ,

VERSION := $(shell sed -n 's/^.define TOKMAP_VERSION_STRING "\(.*\)"/\1/p' include/tokmap/tokmap.h)
SONAME := libtokmap.so.$(firstword $(subst ., ,$(VERSION)))
TOKENIZE_SONAME := $(subst libtokmap,libtokmap_tokenize,$(SONAME))

include src/make/found.mk
include src/make/flags.mk

# ---- files ----

# Signals and child processes (process*.c) are for commands only, and old_glibc*.c for the Python package. src/text and
# src/remote are linked from an archive, so the shared library contains only the files of them that it uses (only the
# tools read JSON and URLs).
library_rooms := common platform format cache dataset order run batch staging cuda loader python
library_sources := $(filter-out src/platform/process% src/platform/old_glibc%,$(sort \
  $(foreach room,$(library_rooms),$(wildcard src/$(room)/*.c src/$(room)/*/*.c))))
library_objects := $(call objects,$(library_sources))
archived_objects := $(call objects,$(sort $(wildcard src/text/*.c src/remote/*.c)))
cli_objects := $(call objects,$(sort $(wildcard src/cli/*.c src/platform/process*.c)))
tool_sources := $(sort $(filter-out tokenize_tools/tokmap.c,$(wildcard tokenize_tools/*.c tokenize_tools/*/*.c \
  tokenize_tools/*/*/*.c tokenize_tools/*/*/*/*.c)))
tool_objects := $(call objects,$(tool_sources))
tokenizer_objects := $(filter $(OBJ)/tokenize_tools/tokenizers/% $(OBJ)/tokenize_tools/inputs/codec/%,$(tool_objects))
bench_objects := $(call objects,$(sort $(wildcard bench/*.c bench/*/*.c)))
commands := $(if $(wildcard tokenize_tools/tokmap.c),$(BUILD)/bin/tokmap) \
  $(if $(bench_objects),$(BUILD)/bin/tokmap-bench)

.PHONY: all lib tools bench loads clean help force

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
archives := $(addprefix $(BUILD)/lib/,libtokmap.a libtokmap_tokenize.a libtools.a)
installed_archives := $(addprefix $(BUILD)/lib/$(if $(linked),,linked/),libtokmap.a libtokmap_tokenize.a)
lib: $(libraries) $(installed_archives) ## build the libraries, static and shared
tools: $(filter %/tokmap,$(commands)) ## build the command tokmap
bench: $(filter %/tokmap-bench,$(commands)) ## build the command tokmap-bench

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

$(OBJ)/%.c.o: %.c
	$(Q)$(call say,CC,$<)mkdir -p $(@D) && $(CC) $(c_flags) $(room_flags) $(private_flags) -c $< -o $@

# The assembler embeds the text of the scripts for shells. Link-time optimization would lose it.
completion_scripts := $(sort $(wildcard tokenize_tools/commands/completion/tokmap.*))
$(OBJ)/tokenize_tools/commands/command_completion.c.o: $(completion_scripts)
$(OBJ)/tokenize_tools/commands/command_completion.c.o: private_flags := -fno-lto

$(BUILD)/lib/libtokmap.a: $(library_objects) $(archived_objects)
$(BUILD)/lib/libtokmap_tokenize.a: $(tokenizer_objects)
# What the commands and the tests share. It is not installed.
$(BUILD)/lib/libtools.a: $(tool_objects) $(cli_objects)
$(archives): $(linked_from)
	$(Q)$(call say,AR)mkdir -p $(@D) && rm -f $@ && $(AR) rcs $@ $(filter %.o,$^)

$(BUILD)/lib/$(SONAME): $(library_objects) $(BUILD)/lib/libtokmap.a src/libtokmap.map $(linked_from)
	$(Q)$(call say,LINK)mkdir -p $(@D) && \
	  $(link) $(so_flags) $(filter %.o,$^) $(filter %.a,$^) -pthread $(lib_libs) $(LIBS) && \
	  $(split_debug)ln -sf $(SONAME) $(@D)/libtokmap.so
# The tokenizers. The shared library has its own copy of the functions of src/ that it uses, and exports none of them.
$(BUILD)/lib/$(TOKENIZE_SONAME): $(tokenizer_objects) $(BUILD)/lib/libtokmap.a tokenize_tools/libtokmap_tokenize.map \
  $(linked_from)
	$(Q)$(call say,LINK)mkdir -p $(@D) && \
	  $(link) $(tokenizer_so_flags) $(filter %.o,$^) $(filter %.a,$^) -pthread \
	  -Wl,--as-needed $(tokenizer_libs) $(LIBS) && $(split_debug)ln -sf $(TOKENIZE_SONAME) $(@D)/libtokmap_tokenize.so
$(BUILD)/bin/tokmap: $(OBJ)/tokenize_tools/tokmap.c.o
$(BUILD)/bin/tokmap-bench: $(bench_objects)
$(commands): $(BUILD)/lib/libtools.a $(BUILD)/lib/libtokmap.a $(linked_from)
	$(Q)$(call say,LINK)mkdir -p $(@D) && \
	  $(link_program) $(filter %.o,$^) $(filter %.a,$^) -pthread $(tool_libs) $(LIBS) -lm && $(split_debug):

include src/make/opened.mk
include src/make/kernels.mk
include src/make/wheel.mk
include src/make/install.mk
include src/make/site.mk
include src/make/cmake.mk
include src/make/release.mk
# A source distribution of the Python package has no tests.
include $(wildcard tests/tests.mk)

clean: ## remove everything built
	$(Q)rm -rf $(BUILD)

help: ## list the targets
	@cat $(filter Makefile %.mk,$(MAKEFILE_LIST)) | sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/\1|\2/p' | \
	  awk -F'|' '{ printf "  %-10s %s\n", $$1, $$2 }'

-include $(if $(machine),$(shell find $(OBJ) -name '*.d' 2>/dev/null))
