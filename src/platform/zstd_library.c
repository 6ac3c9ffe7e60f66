/* SPDX-License-Identifier: MIT */
/* zstd_library.c - see zstd_library.h. */
#include "zstd_library.h"

LIBRARY_DEFINE(libzstd, LIBZSTD_FUNCTIONS, LIBRARY_FILE_zstd, "libzstd1")
