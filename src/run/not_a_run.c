/* not_a_run.c - see not_a_run.h. */
#include "not_a_run.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "format/shard_file.h"
#include "platform/os.h"
#include "text/path.h"

static const char manifest[] = "tokmap-shards ";

/* Returns whether PATH.tmx exists. */
static bool is_prefix(const char *path)
{
    struct os_stat found;
    char *index = shard_file_path(path, SHARD_INDEX, SHARD_FINAL);
    const bool exists = index && !os_stat(index, &found);
    free(index);
    return exists;
}

/* Returns whether a line begins with one of the directives that every run file has. */
static bool has_directive(const char *text, size_t bytes)
{
    static const char *const needed[] = {"seq_len", "batch", "source"};
    for (const char *line = text, *const end = text + bytes; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        while (line < end && (*line == ' ' || *line == '\t'))
            line++;
        for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
            if ((size_t)(end - line) > strlen(needed[i]) && !memcmp(line, needed[i], strlen(needed[i])))
                return true;
        line = stop ? stop + 1 : end;
    }
    return false;
}

enum tokmap_status not_a_run(const char *path, const char *text, size_t bytes, enum tokmap_status failed,
                             struct tokmap_error *error)
{
    struct os_stat found;
    const bool exists = os_stat(path, &found) == 0;
    const bool folder = exists && found.kind == OS_KIND_FOLDER;
    const bool is_manifest = text && bytes >= sizeof manifest - 1 && !memcmp(text, manifest, sizeof manifest - 1);
    const bool is_shard = exists && shard_file_is_main(path);
    const char *dataset = is_prefix(path) ? "a dataset (the prefix of a shard)"
                          : is_shard      ? "a dataset (a shard)"
                          : is_manifest   ? "a dataset (a manifest of shards)"
                          : folder        ? "a folder"
                                          : NULL;
    if (dataset)
        return error_set(error, TOKMAP_ERROR_FORMAT, path, TOKMAP_NO_OFFSET,
                         "this is %s, not a run file; to open a run of a dataset set options.data, or write a run file "
                         "with the line 'source NAME PATH'",
                         dataset);
    size_t at = 0;
    while (text && at < bytes && strchr(" \t\r\n", text[at]))
        at++;
    if (text && at < bytes && (text[at] == '{' || text[at] == '['))
        return error_set(
            error, TOKMAP_ERROR_FORMAT, path, TOKMAP_NO_OFFSET,
            "this is JSON, not a run file and not a dataset; `tokmap tokenizer` describes a tokenizer.json, "
            "and `tokmap pack` makes a dataset of JSONL");
    if (failed == TOKMAP_ERROR_RUN && error && text && !has_directive(text, bytes)) {
        char message[sizeof error->message];
        memcpy(message, error->message, sizeof message);
        return error_set_line(error, failed, path, error->line,
                              "%.500s. No line of this file begins with a directive, so it is probably not a run file; "
                              "`tokmap pack` makes a dataset of text",
                              message);
    }
    return failed;
}
