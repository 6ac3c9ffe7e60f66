/* SPDX-License-Identifier: MIT */
#include "pcre2_library.h"

#ifdef HAVE_PCRE2
LIBRARY_DEFINE(libpcre2, LIBPCRE2_FUNCTIONS, LIBRARY_FILE_pcre2_8, "libpcre2-8-0")
#endif
