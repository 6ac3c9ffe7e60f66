/* SPDX-License-Identifier: MIT */
#include "file_type.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "common/bytes.h"

#define UNPACK "decompress it into a pipe, and name the input -, which is standard input"
#define EXTRACT "extract its files, and name the folder that contains them"
#define CONVERT "convert it to text or JSONL first"
#define PYTHON "Python's tokmap.pack reads it, with pyarrow"

/* Signatures of files that are certainly not meant as text. A signature that a text could begin with is not listed:
 * such a file is read as text, and the rule for invalid UTF-8 applies to it. */
static const struct {
    const char *magic;
    uint8_t bytes;
    enum file_type type;
    const char *name, *advice;
} signatures[] = {
    {"\x1f\x8b\x08", 3, FILE_TYPE_GZIP, "a gzip file", ""},
    {"\x28\xb5\x2f\xfd", 4, FILE_TYPE_ZSTD, "a zstd file", ""},
    {"BZh", 3, FILE_TYPE_BZIP2, "a bzip2 file", ""}, /* and seven bytes more: see is_bzip2() */
    {"\xfd"
     "7zXZ\0",
     6, FILE_TYPE_XZ, "an xz file", ""},
    {"\x04\x22\x4d\x18", 4, FILE_TYPE_LZ4, "an LZ4 file", ""},
    {"\x02\x21\x4c\x18", 4, FILE_TYPE_REFUSED, "an LZ4 file in the format of 'lz4 -l'", UNPACK},
    {"\x1f\x9d", 2, FILE_TYPE_REFUSED, "a compress (.Z) file", UNPACK},
    {"]\0\0", 3, FILE_TYPE_REFUSED, "an LZMA file (.lzma)", "pipe the output of 'xz -dc' into tokmap"},
    {"LZIP\x01", 5, FILE_TYPE_REFUSED, "an lzip file", UNPACK},
    {"\xff\x06\x00\x00sNaPpY", 10, FILE_TYPE_REFUSED, "a Snappy file", UNPACK},
    {"PK\x03\x04", 4, FILE_TYPE_REFUSED, "a zip archive", EXTRACT},
    {"7z\xbc\xaf\x27\x1c", 6, FILE_TYPE_REFUSED, "a 7z archive", EXTRACT},
    {"Rar!\x1a\x07", 6, FILE_TYPE_REFUSED, "a RAR archive", EXTRACT},
    {"PAR1\x15", 5, FILE_TYPE_PARQUET, "a Parquet file",
     "a Parquet file is read from its end: use --input-format parquet or auto"},
    {"ARROW1\0\0", 8, FILE_TYPE_REFUSED, "an Arrow file", PYTHON},
    {"\xff\xff\xff\xff", 4, FILE_TYPE_REFUSED, "an Arrow stream", PYTHON}, /* and the bytes of its schema */
    {"Obj\x01", 4, FILE_TYPE_REFUSED, "an Avro file", CONVERT},
    {"\x93NUMPY", 6, FILE_TYPE_REFUSED, "a NumPy file", "name a text file instead"},
    {"\x89HDF\r\n\x1a\n", 8, FILE_TYPE_REFUSED, "an HDF5 file", CONVERT},
    {"\x89TMX\r\n\x1a\n", 8, FILE_TYPE_REFUSED, "the index of a tokmap shard", "name the texts that it was made from"},
    {"MMIDIDX\0\0", 9, FILE_TYPE_REFUSED, "a Megatron index", "name the texts that it was made from"},
    {"SQLite format 3\0", 16, FILE_TYPE_REFUSED, "an SQLite database", CONVERT},
    {"\x7f"
     "ELF",
     4, FILE_TYPE_REFUSED, "an ELF binary", "name a text file instead"},
    {"%PDF-", 5, FILE_TYPE_REFUSED, "a PDF document", CONVERT},
    {"\x89PNG\r\n\x1a\n", 8, FILE_TYPE_REFUSED, "a PNG image", "name a text file instead"},
    {"\xff\xfe", 2, FILE_TYPE_REFUSED, "UTF-16 or UTF-32 text", "convert it with 'iconv -t UTF-8'"},
    {"\xfe\xff", 2, FILE_TYPE_REFUSED, "UTF-16 text", "convert it with 'iconv -t UTF-8'"},
};
#define SIGNATURES (sizeof signatures / sizeof signatures[0])

static bool is_zstd_skippable(const char *head, size_t count)
{
    return count >= 4 && ((uint8_t)head[0] & 0xf0) == 0x50 && !memcmp(head + 1, "\x2a\x4d\x18", 3);
}

/* Skips the skippable frames at the beginning, which zstd and LZ4 share. They are LZ4's if an LZ4 frame follows. */
static bool is_lz4_after_skippable(const char *head, size_t count)
{
    size_t at = 0;
    while (is_zstd_skippable(head + at, count - at) && count - at >= 8) {
        const uint64_t size = 8 + (uint64_t)load32(head + at + 4);
        if (size > count - at)
            return false;
        at += (size_t)size;
    }
    return at && count - at >= 4 && !memcmp(head + at, "\x04\x22\x4d\x18", 4);
}

/* Looks beyond "BZh", with which a text may begin, too. In a bzip2 file a digit follows, and then the mark of a block
 * or of the end. Returns true as long as the bytes agree with that. */
static bool is_bzip2(const char *head, size_t count)
{
    const size_t more = count < 10 ? count : 10;
    return more < 4 || (head[3] >= '1' && head[3] <= '9' &&
                        (!memcmp(head + 4, "1AY&SY", more - 4) || !memcmp(head + 4, "\x17rE8P\x90", more - 4)));
}

/* Looks for the signature of a tar header, at byte 257, after a name that is padded with zero bytes. Text has no such
 * bytes. */
static bool is_tar(const char *head, size_t count)
{
    return count >= 263 && !memcmp(head + 257, "ustar", 5) && memchr(head, '\0', 100);
}

/* Tells an encrypted Parquet file from a text. It continues with the length of its first part, which has four bytes and
 * is below 64 KiB. If its first column is not encrypted, it continues with the header of a page, which begins with the
 * kind of the page. */
static bool is_encrypted_parquet(const char *head, size_t count)
{
    return count >= 8 && !memcmp(head, "PARE", 4) && (load16(head + 6) == 0 || head[4] == 0x15);
}

enum file_type file_type_of(const char *head, size_t count, const char **name, const char **advice)
{
    assert(name && advice);
    *name = *advice = "";
    if (is_zstd_skippable(head, count))
        return is_lz4_after_skippable(head, count) ? FILE_TYPE_LZ4 : FILE_TYPE_ZSTD;
    for (size_t i = 0; i < SIGNATURES; i++) {
        if (count < signatures[i].bytes || memcmp(head, signatures[i].magic, signatures[i].bytes))
            continue;
        if (signatures[i].type == FILE_TYPE_BZIP2 && (count < 10 || !is_bzip2(head, count)))
            continue;
        *name = signatures[i].name;
        *advice = signatures[i].advice;
        return signatures[i].type;
    }
    if (is_tar(head, count)) {
        *name = "a tar archive";
        *advice = EXTRACT;
        return FILE_TYPE_REFUSED;
    }
    if (is_encrypted_parquet(head, count)) {
        *name = "an encrypted Parquet file";
        *advice = "decrypt it with the program that has the keys";
        return FILE_TYPE_REFUSED;
    }
    return FILE_TYPE_PLAIN;
}

bool file_type_is_undecided(const char *head, size_t count)
{
    if (count < 4 && count && ((uint8_t)head[0] & 0xf0) == 0x50 && !memcmp(head + 1, "\x2a\x4d\x18", count - 1))
        return count > 1; /* one byte from 'P' to '_' counts as text: a terminal would wait forever for more */
    for (size_t i = 0; i < SIGNATURES; i++)
        if (count < signatures[i].bytes && !memcmp(head, signatures[i].magic, count))
            return true;
    if (count > 3 && count < 10 && !memcmp(head, "BZh", 3))
        return is_bzip2(head, count);
    return false;
}

size_t file_type_packed_ending(const char *path, uint64_t bytes)
{
    static const char *const endings[] = {".gz", ".zst", ".bz2", ".xz", ".lz4", ".gzip", ".bgz", ".zstd"};
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        const size_t length = strlen(endings[i]);
        if (bytes >= length && !strncasecmp(path + bytes - length, endings[i], length))
            return length;
    }
    return 0;
}
