/* parquet_crc.h - the checksum of the pages of Parquet files. */
#ifndef TOKMAP_PARQUET_PARQUET_CRC_H
#define TOKMAP_PARQUET_PARQUET_CRC_H

#include <stdint.h>

/* Returns the CRC-32 of the bytes, which is also that of gzip: polynomial 04c11db7, reflected. Any thread. */
uint32_t parquet_crc(const void *bytes, uint64_t count);

#endif
