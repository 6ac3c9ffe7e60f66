/* SPDX-License-Identifier: MIT */
#include "zstd_library.h"

LIBRARY_DEFINE(libzstd, LIBZSTD_FUNCTIONS, LIBRARY_FILE_zstd, "libzstd1")
