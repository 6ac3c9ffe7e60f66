/* name_kind.c - see name_kind.h. */
#include "name_kind.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "file_type.h"

static bool ends_with(const char *name, size_t length, const char *end)
{
    const size_t bytes = strlen(end);
    return length > bytes && !memcmp(name + length - bytes, end, bytes);
}

static bool ends_with_any(const char *name, size_t length, const char *const *ends, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (ends_with(name, length, ends[i]))
            return true;
    return false;
}

enum name_kind name_kind_of(const char *path)
{
    static const char *const lines[] = {".jsonl", ".ndjson", ".jsonlines", ".json-lines"};
    static const char *const tables[] = {".csv", ".tsv"};
    static const char *const crawls[] = {".warc", ".wet", ".wat"};
    size_t length = strlen(path);
    if (!strcmp(path, "-") || !strncmp(path, "/dev/", 5))
        return NAME_MIXED;
    if (ends_with(path, length, ".parquet"))
        return NAME_PARQUET;
    length -= file_type_packed_ending(path, length);
    if (ends_with_any(path, length, lines, sizeof lines / sizeof lines[0]))
        return NAME_JSONL;
    if (ends_with_any(path, length, tables, sizeof tables / sizeof tables[0]))
        return NAME_TABLE;
    if (ends_with_any(path, length, crawls, sizeof crawls / sizeof crawls[0]))
        return NAME_WARC;
    return ends_with(path, length, ".json") ? NAME_MIXED : NAME_TEXT;
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
