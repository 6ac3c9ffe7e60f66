# SPDX-License-Identifier: MIT
# What is installed on this machine. It is looked up once, and only for goals that compile.

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
