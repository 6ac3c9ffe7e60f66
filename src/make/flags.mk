# SPDX-License-Identifier: MIT
# The flags of the compiler and the linker, and the folder of the objects, which is named after them.

warnings := -Wall -Wextra -Wshadow -Wpointer-arith -Wcast-qual -Wwrite-strings -Wstrict-prototypes \
  -Wmissing-prototypes -Wold-style-definition -Wundef -Wvla -Wformat=2 -Wno-unused-parameter \
  -Wdouble-promotion -Wswitch-enum $(if $(W),-Werror)
base_flags := -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -Iinclude -Isrc -fvisibility=hidden -fPIC -pthread \
  -fno-strict-aliasing -MMD -MP
# SOURCE_DATE_EPOCH asks for a build that can be reproduced in another folder: debugging information says "." instead of
# this one. Without it, the bytes differ by the name of the folder alone.
here_flag := $(if $(SOURCE_DATE_EPOCH),'-fdebug-prefix-map=$(CURDIR)=.')
# A file is included as "room/file.h", whatever wing the room is in. The library cannot include the rooms of the tools,
# and neither can include those of bench and tests.
wings := -Itokenize_tools $(patsubst %,-Itokenize_tools/%,tokenizers inputs packer)
room_flags = $(here_flag) $(if $(filter src/%,$<),,$(wings)) $(if $(filter bench/% tests/%,$<),-Ibench) \
  $(if $(filter tests/%,$<),-Itests)

# hardening: what limits the damage of an error in our code.
#
# Checks of the stack and of the C library's calls when compiling; addresses that change, relocations that are
# read-only, and a stack without code when linking. The user's flags come later, so theirs win: -fno-stack-protector,
# -Wl,-z,lazy, -D_FORTIFY_SOURCE=3, -no-pie. _FORTIFY_SOURCE needs optimization, and would hide errors from sanitizers.
# -fcf-protection is left to the user: it protects nothing as long as one of the linked libraries is built without it.
# All of it costs 0 to 3% of the instructions of next(), `tokmap encode`, and `tokmap pack` (callgrind, AVX2 variants).
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
# With -Og, gcc does not inline some functions that xxHash declares always_inline, and fails.
xxhash_flags = $(if $(filter -Og,$(optimized)),-DXXH_NO_INLINE_HINTS=1)
c_flags = -std=gnu11 $(base_flags) $(warnings) $(features) $(hard_c_flags) $(xxhash_flags) $(sanitize) $(CPPFLAGS) \
  $(CFLAGS)
opened := zstd $(if $(HAVE_ISAL),isal) $(if $(HAVE_PCRE2),pcre2-8) $(if $(HAVE_SNAPPY),snappy) $(if $(HAVE_LZ4),lz4) \
  $(if $(HAVE_BROTLI),brotlidec) $(if $(HAVE_BZIP2),bz2) $(if $(HAVE_XZ),lzma)
opened_libs := $(opened:%=-l%)
lib_libs := $(if $(linked),-lzstd) -ldl
tokenizer_libs := $(if $(linked),$(opened_libs)) -ldl
tool_libs := $(if $(linked),$(opened_libs)) -ldl
# Tests also call functions that are not in the tables, such as compressors.
test_libs := $(opened_libs) -ldl
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
tokenizer_so_flags = $(subst $(SONAME),$(TOKENIZE_SONAME),$(subst \
  src/libtokmap.map,tokenize_tools/libtokmap_tokenize.map,$(so_flags)))

flag_set := $(shell printf '%s' '$(CC) $(c_flags)' | cksum | cut -d' ' -f1)
OBJ := $(BUILD)/obj/$(flag_set)
objects = $(patsubst %,$(OBJ)/%.o,$(1))

# With -funsigned-char, gcc 12 compiles _mm256_blendv_epi8() as if no byte had its highest bit, and tokmap would write
# wrong ids. So the files with vector instructions have a char with a sign whatever CFLAGS say. With -Og, it stores 2
# bytes of a mask of AVX-512 and loads 4, so that a loop over its bits reads outside of arrays: -O1 replaces it.
vector_flags = $(if $(filter x86_64%,$(machine)),$1 -fsigned-char $(if $(filter -Og,$(CFLAGS)),-O1))
avx512 := -mavx512f -mavx512bw -mavx512vl -mavx512dq
$(OBJ)/%_avx2.c.o: private_flags := $(call vector_flags,-mavx2 -maes -mbmi -mbmi2 -mpopcnt)
$(OBJ)/%_avx512.c.o: private_flags := $(call vector_flags,$(avx512))
$(OBJ)/%_vbmi.c.o: private_flags := $(call vector_flags,$(avx512) -mavx512vbmi -mavx512vbmi2 -mgfni -maes -mvaes -mbmi \
  -mbmi2 -mlzcnt -mpopcnt)
