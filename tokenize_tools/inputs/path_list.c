/* path_list.c - see path_list.h. */
#include "path_list.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "remote/remote_url.h"

#define LIST_BYTES ((size_t)128 << 10)
#define PATH_MOST ((size_t)64 << 10)

struct path_list {
    struct stream *stream;
    const char *name;
    char separator;
    bool end;          /* the stream has been read to its end */
    bool goes_on;      /* the last call failed because of one path */
    bool passing;      /* the rest of a path that is too long is being passed over */
    size_t at, filled; /* bytes [at, filled) have not been returned */
    uint64_t line;
    char bytes[LIST_BYTES + 1];
};

enum tokmap_status path_list_open(struct path_list **list, const char *name, bool null, bool (*stop)(void *user),
                                  void *user, struct tokmap_error *error)
{
    struct path_list *made = calloc(1, sizeof *made);
    *list = NULL;
    if (!made)
        return error_set_memory(error, "a list of paths", sizeof *made);
    if (remote_kind(name)) {
        free(made);
        return error_set(
            error, TOKMAP_ERROR_UNSUPPORTED, NULL, TOKMAP_NO_OFFSET,
            "a list of files is read from a file or a pipe, and not from a URL; download it, and name that");
    }
    made->name = name;
    made->separator = null ? '\0' : '\n';
    enum tokmap_status status = stream_new(&made->stream, stop, user, error);
    if (!status)
        status = stream_open(made->stream, name, error);
    if (status)
        path_list_close(made);
    else
        *list = made;
    return status;
}

void path_list_close(struct path_list *list)
{
    if (!list)
        return;
    stream_free(list->stream);
    free(list);
}

bool path_list_goes_on(const struct path_list *list)
{
    return list->goes_on;
}

uint64_t path_list_line(const struct path_list *list)
{
    return list->line;
}

/* Reads more bytes after those that have not been returned. */
static enum tokmap_status list_fill(struct path_list *list, struct tokmap_error *error)
{
    struct tokmap_error unused;
    size_t got;
    memmove(list->bytes, list->bytes + list->at, list->filled - list->at);
    list->filled -= list->at;
    list->at = 0;
    const enum tokmap_status status = stream_read(list->stream, list->bytes + list->filled, LIST_BYTES - list->filled,
                                                  &got, &list->end, error ? error : &unused);
    list->filled += got;
    return status;
}

enum tokmap_status path_list_next(struct path_list *list, const char **path, struct tokmap_error *error)
{
    list->goes_on = false;
    for (;;) {
        char *begin = list->bytes + list->at;
        const size_t left = list->filled - list->at;
        char *separator = left ? memchr(begin, list->separator, left) : NULL;
        if (!separator && !list->end && left < PATH_MOST) {
            const enum tokmap_status status = list_fill(list, error);
            if (status)
                return status;
            continue;
        }
        if (!separator && !left)
            return TOKMAP_END;
        const size_t bytes = separator ? (size_t)(separator - begin) : left;
        if (list->passing) {
            list->passing = !separator;
            list->at += bytes + (separator != NULL);
            continue;
        }
        list->line++;
        if (bytes >= PATH_MOST) {
            list->passing = list->goes_on = true;
            return error_set_line(error, TOKMAP_ERROR_LIMIT, stream_name(list->name), list->line,
                                  "the path is longer than %zu bytes; is this a list of paths?", PATH_MOST);
        }
        list->at += bytes + (separator != NULL);
        begin[bytes] = '\0';
        char *end = begin + bytes;
        if (list->separator == '\n' && end > begin && end[-1] == '\r') /* as Windows writes lists */
            *--end = '\0';
        if (list->separator == '\n' && list->line == 1 && !strncmp(begin, "\xef\xbb\xbf", 3))
            begin += 3;
        if (begin == end)
            continue;
        *path = begin;
        if (strlen(begin) == (size_t)(end - begin))
            return TOKMAP_OK;
        list->goes_on = true;
        return error_set_line(error, TOKMAP_ERROR_INPUT, stream_name(list->name), list->line,
                              "the path contains a zero byte; if the paths end with zero bytes, say so with "
                              "options.null");
    }
}
