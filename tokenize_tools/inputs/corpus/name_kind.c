/* SPDX-License-Identifier: MIT */
#include "name_kind.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "codec/file_type.h"

enum name_kind name_kind_of(const char *path)
{
    static const struct {
        const char *ending;
        enum name_kind kind;
    } kinds[] = {
        {".jsonl", NAME_JSONL}, {".ndjson", NAME_JSONL},    {".jsonlines", NAME_JSONL}, {".json-lines", NAME_JSONL},
        {".json", NAME_JSON},   {".jsonc", NAME_JSON},      {".json5", NAME_JSON},      {".csv", NAME_CSV},
        {".tsv", NAME_TSV},     {".parquet", NAME_PARQUET}, {".warc", NAME_WARC},       {".wet", NAME_WARC},
        {".wat", NAME_WARC},    {".arrow", NAME_BINARY},    {".feather", NAME_BINARY},  {".ipc", NAME_BINARY},
        {".orc", NAME_BINARY},  {".avro", NAME_BINARY},
    };
    const size_t length = strlen(path), plain = length - file_type_packed_ending(path, length);
    if (!strcmp(path, "-") || !strncmp(path, "/dev/", 5))
        return NAME_MIXED;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const size_t bytes = strlen(kinds[i].ending);
        if (plain > bytes && !strncasecmp(path + plain - bytes, kinds[i].ending, bytes))
            return kinds[i].kind == NAME_PARQUET && plain < length ? NAME_BINARY : kinds[i].kind;
    }
    return NAME_TEXT;
}

const char *name_ending(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const size_t length = strlen(name);
    size_t at = length - file_type_packed_ending(name, length);
    while (at && name[at - 1] != '.')
        at--;
    return at > 1 ? name + at - 1 : name + length - file_type_packed_ending(name, length);
}
