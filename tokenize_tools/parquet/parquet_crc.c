/* parquet_crc.c - see parquet_crc.h. ISA-L has a fast function. Without it, 4 bits are processed at a time. */
#include "parquet_crc.h"

#include "codec/codec_libraries.h"

uint32_t parquet_crc(const void *bytes, uint64_t count)
{
#ifdef HAVE_ISAL
    /* Looking for a file that does not exist, for each page and in all threads, would cost more than the library saves.
     */
    static bool missing;
    char reason[LIBRARY_REASON];
    if (!__atomic_load_n(&missing, __ATOMIC_RELAXED)) {
        if (library_load(&libisal_library, reason, sizeof reason))
            return libisal.crc32_gzip_refl(0, bytes, count);
        __atomic_store_n(&missing, true, __ATOMIC_RELAXED);
    }
#endif
    /* The remainder of each number of 4 bits. */
    static const uint32_t table[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
                                       0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                       0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
    const uint8_t *at = bytes;
    uint32_t crc = UINT32_MAX;
    for (uint64_t i = 0; i < count; i++) {
        crc ^= at[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}
