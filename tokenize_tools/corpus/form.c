#include "form.h"

#include <stdint.h>
#include <string.h>

#define UNPACK "decompress it to a pipe: 'tokmap pack -o PREFIX -' reads standard input"
#define EXTRACT "extract its files and name their folder"
#define CONVERT "convert it to text or JSONL first"

/* Forms that are certainly not meant as text. Signatures that text may well begin with are left to the rule for invalid
 * UTF-8. */
static const struct {
    const char *magic;
    uint8_t bytes;
    enum form form;
    const char *name, *advice;
} forms[] = {
    {"\x1f\x8b\x08", 3, FORM_GZIP, "a gzip file", ""},
    {"\x28\xb5\x2f\xfd", 4, FORM_ZSTD, "a zstd file", ""},
    {"BZh", 3, FORM_REFUSED, "a bzip2 file", UNPACK}, /* and more, below */
    {"\xfd"
     "7zXZ\0",
     6, FORM_REFUSED, "an xz file", UNPACK},
    {"\x04\x22\x4d\x18", 4, FORM_REFUSED, "an LZ4 file", UNPACK},
    {"\x1f\x9d", 2, FORM_REFUSED, "a compress (.Z) file", UNPACK},
    {"\xff\x06\x00\x00sNaPpY", 10, FORM_REFUSED, "a Snappy file", UNPACK},
    {"PK\x03\x04", 4, FORM_REFUSED, "a zip archive", EXTRACT},
    {"7z\xbc\xaf\x27\x1c", 6, FORM_REFUSED, "a 7z archive", EXTRACT},
    {"Rar!\x1a\x07", 6, FORM_REFUSED, "a RAR archive", EXTRACT},
    {"PAR1\x15", 5, FORM_REFUSED, "a Parquet file", CONVERT},
    {"ARROW1\0\0", 8, FORM_REFUSED, "an Arrow file", CONVERT},
    {"Obj\x01", 4, FORM_REFUSED, "an Avro file", CONVERT},
    {"\x93NUMPY", 6, FORM_REFUSED, "a NumPy file", "only text is packed"},
    {"\x89HDF\r\n\x1a\n", 8, FORM_REFUSED, "an HDF5 file", CONVERT},
    {"\x89TMX\r\n\x1a\n", 8, FORM_REFUSED, "the index of a tokmap shard", "name the texts it was made from"},
    {"MMIDIDX\0\0", 9, FORM_REFUSED, "a Megatron index", "name the texts it was made from"},
    {"SQLite format 3\0", 16, FORM_REFUSED, "an SQLite database", CONVERT},
    {"\x7f"
     "ELF",
     4, FORM_REFUSED, "an ELF binary", "only text is packed"},
    {"%PDF-", 5, FORM_REFUSED, "a PDF document", CONVERT},
    {"\x89PNG\r\n\x1a\n", 8, FORM_REFUSED, "a PNG image", "only text is packed"},
    {"\xff\xfe", 2, FORM_REFUSED, "UTF-16 or UTF-32 text", "convert it with 'iconv -t UTF-8'"},
    {"\xfe\xff", 2, FORM_REFUSED, "UTF-16 text", "convert it with 'iconv -t UTF-8'"},
};
#define FORMS (sizeof forms / sizeof forms[0])

static bool is_zstd_skippable(const char *head, size_t count)
{
    return count >= 4 && ((uint8_t)head[0] & 0xf0) == 0x50 && !memcmp(head + 1, "\x2a\x4d\x18", 3);
}

/* A tar header has its magic at 257, which text would need a NUL before to imitate. */
static bool is_tar(const char *head, size_t count)
{
    return count >= 263 && !memcmp(head + 257, "ustar", 5) && memchr(head, '\0', 100);
}

enum form form_of(const char *head, size_t count, const char **name, const char **advice)
{
    *name = *advice = "";
    if (is_zstd_skippable(head, count))
        return FORM_ZSTD;
    for (size_t i = 0; i < FORMS; i++) {
        if (count < forms[i].bytes || memcmp(head, forms[i].magic, forms[i].bytes))
            continue;
        if (!strcmp(forms[i].magic, "BZh") && (count < 10 || memcmp(head + 4, "1AY&SY", 6)))
            continue;
        *name = forms[i].name;
        *advice = forms[i].advice;
        return forms[i].form;
    }
    if (is_tar(head, count)) {
        *name = "a tar archive";
        *advice = EXTRACT;
        return FORM_REFUSED;
    }
    return FORM_PLAIN;
}

bool form_undecided(const char *head, size_t count)
{
    if (count < 4 && count && ((uint8_t)head[0] & 0xf0) == 0x50 && !memcmp(head + 1, "\x2a\x4d\x18", count - 1))
        return count > 1; /* a lone 'P' to '_' is taken for text: a terminal would wait for ever */
    for (size_t i = 0; i < FORMS; i++)
        if (count < forms[i].bytes && !memcmp(head, forms[i].magic, count))
            return true;
    return false;
}
