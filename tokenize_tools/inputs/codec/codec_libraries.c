/* SPDX-License-Identifier: MIT */
#include "codec_libraries.h"

#ifdef HAVE_ISAL
LIBRARY_DEFINE(libisal, LIBISAL_FUNCTIONS, LIBRARY_FILE_isal, "libisal2")
#endif
#ifdef HAVE_SNAPPY
LIBRARY_DEFINE(libsnappy, LIBSNAPPY_FUNCTIONS, LIBRARY_FILE_snappy, "libsnappy1v5")
#endif
#ifdef HAVE_LZ4
LIBRARY_DEFINE(liblz4, LIBLZ4_FUNCTIONS, LIBRARY_FILE_lz4, "liblz4-1")
#endif
#ifdef HAVE_BROTLI
LIBRARY_DEFINE(libbrotli, LIBBROTLI_FUNCTIONS, LIBRARY_FILE_brotlidec, "libbrotli1")
#endif
#ifdef HAVE_BZIP2
LIBRARY_DEFINE(libbz2, LIBBZ2_FUNCTIONS, LIBRARY_FILE_bz2, "libbz2-1.0")
#endif
#ifdef HAVE_XZ
LIBRARY_DEFINE(liblzma, LIBLZMA_FUNCTIONS, LIBRARY_FILE_lzma, "liblzma5")
#endif
