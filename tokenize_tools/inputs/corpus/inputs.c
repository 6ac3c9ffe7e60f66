/* SPDX-License-Identifier: MIT */
/* inputs.c - see inputs.h. Folders are walked with a stack of sorted lists, one per folder on the current path.
 * Patterns are expanded by pattern_expand.h. */
#include "inputs.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "known_paths.h"
#include "name_kind.h"
#include "pattern_expand.h"
#include "platform/os.h"
#include "remote/remote_hub.h"
#include "remote/remote_list.h"
#include "remote/remote_stream.h"
#include "remote/remote_url.h"
#include "stream.h"
#include "table_folders.h"
#include "text/path.h"
#include "text/path_glob.h"

#define REMOTE_ASKED_MOST 200 /* URLs whose servers are asked for the size; of more the total is unknown */
#define LIST_BYTES ((size_t)128 << 10)
#define PATH_MOST ((size_t)64 << 10)

/* ---- lists of paths ---- */

/* A list of paths is read from a file or standard input, one path at a time, so that a list of any length takes little
 * memory. The file may be compressed, like other inputs. */
struct path_list {
    struct stream *stream;
    const char *name;
    char separator;
    bool end;          /* the stream has been read to its end */
    bool goes_on;      /* the last call failed because of one path only: the next one returns the path after it */
    bool passing;      /* the rest of a path that is too long is being passed over */
    size_t at, filled; /* bytes [at, filled) have not been returned */
    uint64_t line;     /* number of the path that was returned last, from 1: its line, if paths end with newlines */
    char bytes[LIST_BYTES + 1];
};

static void path_list_close(struct path_list *list)
{
    if (!list)
        return;
    stream_free(list->stream);
    free(list);
}

/* Opens a list. name: a path, or "-" for standard input; it must stay valid until path_list_close(). null: the paths
 * end with a zero byte instead of a newline. stop and user as for stream_new(). Statuses: OK, those of stream_open(),
 * ERROR_UNSUPPORTED (a URL). */
static enum tokmap_status path_list_open(struct path_list **list, const char *name, bool null, bool (*stop)(void *user),
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

/* Sets *path to the next path, which is valid until the next call. Empty lines are passed over. In a list of lines, a
 * carriage return before the newline and a byte order mark at the beginning are not parts of a path. Statuses: OK, END,
 * ERROR_LIMIT (a path of 64 KiB or more), ERROR_INPUT (a zero byte in a list of lines), those of stream_read(). */
static enum tokmap_status path_list_next(struct path_list *list, const char **path, struct tokmap_error *error)
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
                              "--null");
    }
}

/* ---- operands ---- */

/* A folder on the current path. Names of its subfolders end with '/', so that sorting the names sorts the paths. */
struct level {
    struct names names;
    size_t next;
    size_t path_bytes; /* length of the folder's path in inputs->path, with the slash */
};

/* Place of the walk: in the operands, in a list, pattern, bucket, or folder of the current one. */
struct inputs {
    const char *const *operands;
    size_t operand_count, operand_next;
    const struct inputs_selection *selection;
    bool (*stop)(void *user);
    void *user;
    struct path_list *list; /* the open list of paths, or NULL */
    size_t list_next;
    bool list_any;                       /* the open list has named a file */
    struct inputs_counts counts, before; /* before: when the folder that an operand names was entered */
    bool chosen_any, ended;
    size_t base; /* bytes of the path that globs are not compared with: the folder that was named, with its slash */
    struct pattern_matches matches; /* of the current operand, if it is a pattern */
    size_t match_next, unreadable_next, pattern_fixed;
    struct table_search tables;
    bool walked;                 /* the real folder of an operand is no table; there are no links below it */
    struct remote_list *objects; /* the open list of objects, or NULL */
    char *pinned;                /* the last name of the Hub, with its commit */
    uint64_t bytes;              /* of the last path, or UINT64_MAX */
    uint64_t tag;                /* of the last path, or 0 */
    struct level *levels;
    uint64_t depth, level_capacity;
    char *kinds[2];           /* the first file with a name of a text, and of records, that the operand names */
    bool is_several, mixed;   /* the operand names several files; selection->mixed() was called for it */
    struct known_paths paths; /* of selection->repeated() */
    bool repeated;            /* it was called */
    bool found_any;           /* the folder that an operand names has at least one file */
    char *path;
    size_t path_bytes, path_capacity;
};

static int name_collect(void *user, const char *name)
{
    return names_add(user, NULL, 0, name);
}

enum tokmap_status inputs_new(struct inputs **inputs, const char *const *operands, size_t count,
                              const struct inputs_selection *selection, bool (*stop)(void *user), void *user,
                              struct tokmap_error *error)
{
    assert(selection);
    *inputs = calloc(1, sizeof **inputs);
    if (!*inputs)
        return error_set_memory(error, "the list of inputs", sizeof **inputs);
    (*inputs)->operands = operands;
    (*inputs)->operand_count = count;
    (*inputs)->selection = selection;
    (*inputs)->stop = stop;
    (*inputs)->user = user;
    (*inputs)->tables = (struct table_search){stop, user, &selection->watch, {0}, NULL, false};
    return TOKMAP_OK;
}

uint64_t inputs_bytes(const struct inputs *inputs)
{
    return inputs->bytes;
}

uint64_t inputs_tag(const struct inputs *inputs)
{
    return inputs->tag;
}

const struct inputs_counts *inputs_counts(const struct inputs *inputs)
{
    return &inputs->counts;
}

static void levels_clear(struct inputs *inputs)
{
    while (inputs->depth)
        names_clear(&inputs->levels[--inputs->depth].names);
}

/* Begins with another operand or list. */
static void kinds_clear(struct inputs *inputs)
{
    free(inputs->kinds[0]);
    free(inputs->kinds[1]);
    inputs->kinds[0] = inputs->kinds[1] = NULL;
    inputs->is_several = inputs->mixed = false;
}

/* Looks at the name of the file that inputs_next() returns. */
static enum tokmap_status kinds_look(struct inputs *inputs, struct tokmap_error *error)
{
    const struct inputs_selection *selection = inputs->selection;
    if (!selection->mixed || !inputs->is_several || inputs->mixed)
        return TOKMAP_OK;
    const enum name_kind name = name_kind_of(inputs->path);
    if (name == NAME_MIXED || name == NAME_JSON)
        return TOKMAP_OK;
    char **kind = &inputs->kinds[name != NAME_TEXT];
    if (!*kind && !(*kind = strdup(inputs->path)))
        return error_set_memory(error, "the list of inputs", 0);
    if (!inputs->kinds[0] || !inputs->kinds[1])
        return TOKMAP_OK;
    inputs->mixed = true;
    selection->mixed(selection->user, inputs->operands[inputs->operand_next - 1], inputs->kinds[0], inputs->kinds[1]);
    return TOKMAP_OK;
}

/* Notices a path that was there before. One operand alone names each file once. Without memory nothing is noticed: a
 * warning is not worth an error. */
static void repeated_look(struct inputs *inputs)
{
    const struct inputs_selection *selection = inputs->selection;
    if (!selection->repeated || inputs->repeated || (inputs->operand_count < 2 && !selection->list_count))
        return;
    inputs->repeated = known_paths_add(&inputs->paths, inputs->path, remote_kind(inputs->path) != 0) == PATH_KNOWN;
    char *shown = inputs->repeated ? remote_shown(inputs->path) : NULL; /* without secrets */
    if (shown)
        selection->repeated(selection->user, shown);
    free(shown);
}

void inputs_free(struct inputs *inputs)
{
    if (!inputs)
        return;
    levels_clear(inputs);
    pattern_matches_clear(&inputs->matches);
    path_list_close(inputs->list);
    remote_list_close(inputs->objects);
    free(inputs->pinned);
    kinds_clear(inputs);
    known_paths_free(&inputs->paths);
    known_paths_free(&inputs->tables.looked);
    free(inputs->tables.asked);
    free(inputs->levels);
    free(inputs->path);
    free(inputs);
}

/* Sets the path to its first `keep` bytes followed by the name. Returns false if there is not enough memory. */
static bool path_set(struct inputs *inputs, size_t keep, const char *name)
{
    const size_t bytes = strlen(name);
    assert(keep <= inputs->path_bytes);
    if (keep + bytes + 2 > inputs->path_capacity) {
        const size_t capacity = 2 * (keep + bytes) + 64;
        char *grown = realloc(inputs->path, capacity);
        if (!grown)
            return false;
        inputs->path = grown;
        inputs->path_capacity = capacity;
    }
    memcpy(inputs->path + keep, name, bytes + 1);
    inputs->path_bytes = keep + bytes;
    return true;
}

static const char lacking[] = "the list of inputs"; /* in messages about memory */

/* Returns true if the globs choose the file at `path`, which is compared from inputs->base on. */
static bool file_is_chosen(const struct inputs *inputs, const char *path)
{
    const struct inputs_selection *selection = inputs->selection;
    bool chosen = !selection->include_count;
    path += inputs->base;
    for (size_t i = 0; i < selection->include_count && !chosen; i++)
        chosen = path_glob_file(selection->include[i], path);
    for (size_t i = 0; i < selection->exclude_count && chosen; i++)
        chosen = !path_glob_tree(selection->exclude[i], path);
    return chosen;
}

static bool folder_is_excluded(const struct inputs *inputs, const char *path)
{
    const struct inputs_selection *selection = inputs->selection;
    for (size_t i = 0; i < selection->exclude_count; i++)
        if (path_glob_tree(selection->exclude[i], path + inputs->base))
            return true;
    return false;
}

/* Returns true if one of the names in the path, from byte `base` on, is hidden. dots: also by a dot. */
static bool is_hidden(struct inputs *inputs, const char *path, size_t base, bool dots)
{
    for (const char *name = path + base; !inputs->selection->hidden; name++) {
        if ((dots && *name == '.') || (*name == '_' && table_folder(&inputs->tables, path, (size_t)(name - path))))
            return true;
        name = strchr(name, '/');
        if (!name)
            break;
    }
    return false;
}

/* Leaves out a hidden match of a pattern, unless the pattern has the underscore. */
static bool match_is_left_out(struct inputs *inputs, const char *path)
{
    const char *pattern = inputs->operands[inputs->operand_next - 1] + inputs->pattern_fixed;
    struct os_stat found = {.kind = OS_KIND_FILE};
    if (*pattern == '_' || strstr(pattern, "/_") || !is_hidden(inputs, path, inputs->pattern_fixed, false))
        return false;
    (void)os_stat(path, &found);
    inputs->counts.files_hidden += found.kind != OS_KIND_FOLDER;
    inputs->counts.folders_hidden += found.kind == OS_KIND_FOLDER;
    return true;
}

/* Returns true if a name in a folder is left out, and counts it. inputs->path is its path; found: what it is. */
static bool name_is_left_out(struct inputs *inputs, const char *name, const struct os_stat *found)
{
    struct inputs_counts *counts = &inputs->counts;
    const bool folder = found->kind == OS_KIND_FOLDER;
    const bool file = found->kind == OS_KIND_FILE;
    const bool hidden = is_hidden(inputs, inputs->path, inputs->path_bytes - strlen(name), true);
    const bool excluded =
        !hidden && (folder ? folder_is_excluded(inputs, inputs->path) : !file_is_chosen(inputs, inputs->path));
    counts->folders_hidden += folder && hidden;
    counts->files_hidden += !folder && hidden;
    counts->folders_excluded += folder && excluded;
    counts->files_excluded += file && excluded;
    const bool other = !folder && !file && !hidden && !excluded;
    counts->links += other && found->kind == OS_KIND_LINK;
    counts->specials += other && found->kind != OS_KIND_LINK;
    return hidden || excluded || other;
}

/* Keeps the folders, to whose names it appends a slash, and the regular files; removes other names, and those that the
 * options leave out. inputs->path is the path of the folder that contains them, with a slash. Returns 0 or an errno
 * value. */
static int level_filter(struct inputs *inputs, struct names *names)
{
    const size_t base = inputs->path_bytes;
    size_t kept = 0;
    for (size_t i = 0; i < names->count; i++) {
        char *name = names->names[i];
        struct os_stat found = {.kind = OS_KIND_FILE};
        if (!path_set(inputs, base, name))
            return ENOMEM;
        /* A file that was removed after the folder was listed is ignored. A name that cannot be examined is kept, so
         * that the error appears when it is opened. */
        const int system = os_lstat(inputs->path, &found);
        if (system == ENOENT || name_is_left_out(inputs, name, &found)) {
            free(name);
            continue;
        }
        if (!system && found.kind == OS_KIND_FOLDER)
            memcpy(name + strlen(name), "/", 2);
        names->names[kept++] = name;
    }
    names->count = kept;
    inputs->path_bytes = base;
    inputs->path[base] = '\0';
    return 0;
}

/* Reads the folder at inputs->path and pushes it on the stack. */
static enum tokmap_status folder_enter(struct inputs *inputs, struct tokmap_error *error)
{
    assert(inputs->path_bytes);
    if (!list_room(&inputs->levels, inputs->depth, &inputs->level_capacity, sizeof *inputs->levels))
        return error_set_memory(error, lacking, 0);
    struct level *level = &inputs->levels[inputs->depth];
    memset(level, 0, sizeof *level);
    int system = os_folder_list(inputs->path, name_collect, &level->names);
    if (!system && inputs->path[inputs->path_bytes - 1] != '/' && !path_set(inputs, inputs->path_bytes, "/"))
        system = ENOMEM;
    if (!system)
        system = level_filter(inputs, &level->names);
    if (system) {
        names_clear(&level->names);
        return error_set_system(error, system, inputs->path, TOKMAP_NO_OFFSET, "the folder cannot be read");
    }
    names_sort(&level->names);
    level->path_bytes = inputs->path_bytes;
    inputs->depth++;
    return TOKMAP_OK;
}

/* Reports that the folder at inputs->path, which an operand names, has no file. That is an error, unless the globs are
 * the reason: then another operand may have files that they choose. */
static enum tokmap_status folder_is_empty(const struct inputs *inputs, struct tokmap_error *error)
{
    const struct inputs_counts *now = &inputs->counts, *before = &inputs->before;
    const uint64_t hidden = now->files_hidden - before->files_hidden + now->folders_hidden - before->folders_hidden;
    if (now->files_excluded != before->files_excluded || now->folders_excluded != before->folders_excluded)
        return TOKMAP_OK;
    if (hidden)
        return error_set(error, TOKMAP_ERROR_NOT_FOUND, inputs->path, TOKMAP_NO_OFFSET,
                         "the folder contains nothing but %" PRIu64
                         " hidden files and folders, whose names begin with a dot or, beside tables, with an "
                         "underscore; read them with --hidden",
                         hidden);
    return error_set(error, TOKMAP_ERROR_NOT_FOUND, inputs->path, TOKMAP_NO_OFFSET,
                     "the folder contains no regular files, and symbolic links are not followed; name a folder that "
                     "contains texts");
}

/* Sets the path to the next file of the folders on the stack. Returns END if the stack is empty. */
static enum tokmap_status folders_next(struct inputs *inputs, struct tokmap_error *error)
{
    while (inputs->depth) {
        struct level *level = &inputs->levels[inputs->depth - 1];
        if (level->next == level->names.count) {
            const size_t own = level->path_bytes;
            names_clear(&level->names);
            inputs->depth--;
            if (!inputs->depth && !inputs->found_any) {
                inputs->path[own > 1 ? own - 1 : own] = '\0';
                const enum tokmap_status status = folder_is_empty(inputs, error);
                if (status)
                    return status;
            }
            continue;
        }
        const char *name = level->names.names[level->next++];
        if (!path_set(inputs, level->path_bytes, name))
            return error_set_memory(error, lacking, 0);
        if (inputs->path[inputs->path_bytes - 1] != '/') {
            inputs->found_any = true;
            return TOKMAP_OK;
        }
        const enum tokmap_status status = folder_enter(inputs, error);
        if (status) {
            inputs->found_any = true; /* the folder that cannot be read may contain files */
            return status;
        }
    }
    return TOKMAP_END;
}

/* Returns how many bytes of a pattern are fixed folders: those before the component with the first wildcard. */
static size_t fixed_bytes(const char *pattern)
{
    size_t end = strcspn(pattern, "*?[");
    while (end && pattern[end - 1] != '/')
        end--;
    return end;
}

/* Begins with an operand that is not a pattern, or with a match of a pattern: sets the path to it, or to the first file
 * if it is a folder. Returns END if it has no file that is chosen. */
static enum tokmap_status path_begin(struct inputs *inputs, const char *path, size_t base, struct tokmap_error *error)
{
    struct os_stat stat;
    if (!path_set(inputs, 0, path))
        return error_set_memory(error, lacking, 0);
    inputs->found_any = false;
    inputs->before = inputs->counts;
    inputs->base = base;
    inputs->walked = false;
    if (!strcmp(path, "-"))
        return TOKMAP_OK;
    if (!remote_kind(path) && !os_stat(path, &stat) && stat.kind == OS_KIND_FOLDER) {
        const size_t bytes = strlen(path);
        inputs->is_several = true;
        inputs->base = bytes + (path[bytes - 1] != '/');
        const enum tokmap_status status = folder_enter(inputs, error);
        return status ? status : folders_next(inputs, error);
    }
    if (file_is_chosen(inputs, inputs->path))
        return TOKMAP_OK; /* if the file does not exist, opening it reports that */
    inputs->counts.files_excluded++;
    return TOKMAP_END;
}

static enum tokmap_status pattern_begin(struct inputs *inputs, const char *pattern, struct tokmap_error *error)
{
    struct pattern_matches *matches = &inputs->matches;
    enum tokmap_status status;
    const int system = pattern_expand(pattern, inputs->selection->hidden, inputs->stop, inputs->user, matches);
    inputs->match_next = inputs->unreadable_next = 0;
    if (!system && (matches->paths.count || matches->unreadable.count)) {
        inputs->pattern_fixed = fixed_bytes(pattern);
        inputs->is_several = true;
        return TOKMAP_END; /* inputs_next() takes the matches */
    }
    if (system == EINTR)
        status = error_set(error, TOKMAP_ERROR_INTERRUPTED, pattern, TOKMAP_NO_OFFSET, "interrupted by a signal");
    else if (system == ELOOP)
        status = error_set(
            error, TOKMAP_ERROR_LIMIT, pattern, TOKMAP_NO_OFFSET,
            "symbolic links lead from ** to one folder on more than %d paths, and its files would be read as often; "
            "name the folders instead, whose links are not followed. One of the paths is '%.300s'",
            PATTERN_LINKED_MOST, matches->paths.names[0]);
    else if (system)
        status = error_set_memory(error, lacking, 0);
    else
        status = error_set(error, TOKMAP_ERROR_NOT_FOUND, pattern, TOKMAP_NO_OFFSET, "%s",
                           matches->folders ? "a pattern with ** matches files, and this one matches only folders; "
                                              "append /** for the files in them"
                                            : "no file matches this pattern; check the path with 'ls'");
    pattern_matches_clear(matches);
    return status;
}

/* Sets the path to the next object of the open list that is chosen. Returns END if there is none. */
static enum tokmap_status objects_next(struct inputs *inputs, struct tokmap_error *error)
{
    struct inputs_counts *counts = &inputs->counts;
    for (;;) {
        const char *path;
        enum tokmap_status status = remote_list_next(inputs->objects, &path, &inputs->bytes, &inputs->tag, error);
        if (!status) {
            inputs->found_any = true;
            const bool hidden = is_hidden(inputs, path, inputs->base, true);
            const bool chosen = !hidden && file_is_chosen(inputs, path);
            counts->files_hidden += hidden;
            counts->files_excluded += !hidden && !chosen;
            if (!chosen)
                continue;
            return path_set(inputs, 0, path) ? TOKMAP_OK : error_set_memory(error, lacking, 0);
        }
        remote_list_close(inputs->objects);
        inputs->objects = NULL;
        inputs->bytes = UINT64_MAX;
        inputs->tag = 0;
        if (status == TOKMAP_END && !inputs->found_any)
            status = error_set(error, TOKMAP_ERROR_NOT_FOUND, inputs->operands[inputs->operand_next - 1],
                               TOKMAP_NO_OFFSET, "no object of the bucket or repository has such a name; correct it");
        return status;
    }
}

static enum tokmap_status objects_begin(struct inputs *inputs, const char *operand, struct tokmap_error *error)
{
    inputs->found_any = false;
    const enum tokmap_status status =
        remote_list_open(&inputs->objects, operand, true, inputs->stop, inputs->user, &inputs->selection->watch, error);
    if (status)
        return status;
    inputs->is_several = true;
    inputs->base = remote_list_base(inputs->objects);
    return objects_next(inputs, error);
}

static enum tokmap_status name_pin(struct inputs *inputs, const char **name, struct tokmap_error *error)
{
    return remote_hub_pin(name, true, &inputs->pinned, inputs->stop, inputs->user, &inputs->selection->watch, error);
}

static enum tokmap_status operand_begin(struct inputs *inputs, const char *operand, struct tokmap_error *error)
{
    struct os_stat stat;
    kinds_clear(inputs);
    if (!*operand)
        return error_set(error, TOKMAP_ERROR_NOT_FOUND, NULL, TOKMAP_NO_OFFSET,
                         "the name of an input is empty; name a file, a folder, or -");
    const enum tokmap_status status = name_pin(inputs, &operand, error);
    if (status)
        return status;
    if (remote_is_list(operand))
        return objects_begin(inputs, operand, error);
    if (remote_kind(operand) || !strcmp(operand, "-") || !strpbrk(operand, "*?[") || !os_lstat(operand, &stat))
        return path_begin(inputs, operand, 0, error);
    return pattern_begin(inputs, operand, error);
}

/* Opens the next list. */
static enum tokmap_status list_begin(struct inputs *inputs, struct tokmap_error *error)
{
    const struct inputs_selection *selection = inputs->selection;
    const char *name = selection->lists[inputs->list_next++];
    inputs->list_any = false;
    kinds_clear(inputs);
    const enum tokmap_status status =
        path_list_open(&inputs->list, name, selection->null, inputs->stop, inputs->user, error);
    return status ? status : TOKMAP_END;
}

/* Sets the path to the next one of the open list. Returns END if the list has ended, or the file is not chosen. */
static enum tokmap_status list_take(struct inputs *inputs, struct tokmap_error *error)
{
    const char *name = stream_name(inputs->selection->lists[inputs->list_next - 1]), *path = "";
    struct os_stat stat;
    enum tokmap_status status = path_list_next(inputs->list, &path, error);
    const uint64_t line = inputs->list->line;
    if (status && inputs->list->goes_on) {
        inputs->list_any = true;
        return status;
    }
    if (status) {
        path_list_close(inputs->list);
        inputs->list = NULL;
        if (status != TOKMAP_END || inputs->list_any)
            return status;
        return error_set(error, TOKMAP_ERROR_NOT_FOUND, name, TOKMAP_NO_OFFSET,
                         "the list names no file; check the command that writes it");
    }
    inputs->list_any = true;
    status = name_pin(inputs, &path, error);
    if (status)
        return status;
    inputs->base = 0;
    /* "-" in a list is a file of that name. */
    if (!path_set(inputs, 0, "./") || !path_set(inputs, strcmp(path, "-") ? 0 : 2, path))
        return error_set_memory(error, lacking, 0);
    if (!remote_kind(path) && !os_stat(inputs->path, &stat) && stat.kind == OS_KIND_FOLDER)
        return error_set_line(error, TOKMAP_ERROR_ARGUMENT, name, line,
                              "'%s' is a folder; a list names files, for example those of 'find FOLDER -type f'",
                              inputs->path);
    if (file_is_chosen(inputs, inputs->path))
        return TOKMAP_OK;
    inputs->counts.files_excluded++;
    return TOKMAP_END;
}

/* Ends the list, when all inputs have been taken. It is an error if the globs have chosen none of the files. */
static enum tokmap_status inputs_end(struct inputs *inputs, struct tokmap_error *error)
{
    const uint64_t files = inputs->counts.files_excluded, folders = inputs->counts.folders_excluded;
    const bool ended = inputs->ended;
    inputs->ended = true;
    if (ended || inputs->chosen_any || !(files || folders))
        return TOKMAP_END;
    return error_set(error, TOKMAP_ERROR_NOT_FOUND, NULL, TOKMAP_NO_OFFSET,
                     "no file is left: --include and --exclude leave out all of them (files: %" PRIu64
                     ", folders: %" PRIu64 ")",
                     files, folders);
}

/* Looks at the names around a file. Returns END if it is what is beside tables, however it was named. */
static enum tokmap_status table_look(struct inputs *inputs, struct tokmap_error *error)
{
    char *folder = NULL, *real = NULL;
    const char *path = inputs->path, *name = path_name(path), *table = NULL;
    const bool local = !remote_kind(path);
    if (!inputs->selection->hidden && table_mark(name, strlen(name))) {
        inputs->counts.files_hidden++;
        return TOKMAP_END;
    }
    if (inputs->selection->table_files || !strcmp(path, "-"))
        return TOKMAP_OK;
    if (local || name_kind_of(path) == NAME_PARQUET) /* what a bucket is asked for has a price */
        table = table_find(&inputs->tables, path, &folder);
    if (!table && local && !inputs->walked && !os_real_path(path, &real))
        table = table_find(&inputs->tables, real, &folder);
    inputs->walked = inputs->depth > 0;
    if (table)
        (void)error_set(error, TOKMAP_ERROR_FORMAT, folder, TOKMAP_NO_OFFSET,
                        "the folder is %s: its files also have rows that were deleted or replaced; give the rows to "
                        "tokmap.pack in Python (LAKES.md), or pack all files with --table-files",
                        table);
    free(folder);
    free(real);
    return table ? TOKMAP_ERROR_FORMAT : TOKMAP_OK;
}

enum tokmap_status inputs_next(struct inputs *inputs, const char **path, struct tokmap_error *error)
{
    inputs->bytes = UINT64_MAX;
    inputs->tag = 0;
    enum tokmap_status status = TOKMAP_END;
    while (status == TOKMAP_END) {
        const struct pattern_matches *matches = &inputs->matches;
        if (inputs->depth) {
            status = folders_next(inputs, error);
        } else if (inputs->objects) {
            status = objects_next(inputs, error);
        } else if (inputs->unreadable_next < matches->unreadable.count) {
            status = error_set_system(error, matches->system, matches->unreadable.names[inputs->unreadable_next++],
                                      TOKMAP_NO_OFFSET, "the folder cannot be read, and may contain matches");
        } else if (inputs->match_next < matches->paths.count) {
            const char *match = matches->paths.names[inputs->match_next++];
            if (!match_is_left_out(inputs, match))
                status = path_begin(inputs, match, inputs->pattern_fixed, error);
        } else if (inputs->operand_next < inputs->operand_count) {
            pattern_matches_clear(&inputs->matches);
            inputs->match_next = inputs->unreadable_next = 0;
            status = operand_begin(inputs, inputs->operands[inputs->operand_next++], error);
        } else if (inputs->list) {
            status = list_take(inputs, error);
        } else if (inputs->list_next < inputs->selection->list_count) {
            status = list_begin(inputs, error);
        } else {
            return inputs_end(inputs, error);
        }
        if (!status)
            status = table_look(inputs, error);
    }
    if (!status)
        status = kinds_look(inputs, error);
    if (!status)
        repeated_look(inputs);
    inputs->chosen_any |= !status;
    *path = inputs->path;
    return status;
}

/* ---- sizes ---- */

/* Sets *bytes to the size of a file or URL that is not in a list, or to 0 for one that has none here. Returns false if
 * it is unknown. */
static bool size_find(struct remote **remote, const char *name, bool (*stop)(void *user), void *user, uint64_t *bytes)
{
    struct os_stat stat;
    *bytes = 0;
    if (remote_kind(name)) {
        if (!*remote && remote_new(remote, stop, user, NULL, NULL))
            return false;
        *bytes = remote_size(*remote, name);
        return *bytes != UINT64_MAX;
    }
    if (!strcmp(name, "-") || os_stat(name, &stat))
        return true;
    *bytes = stat.bytes;
    return stat.kind == OS_KIND_FILE;
}

uint64_t corpus_size(const char *const *operands, size_t count, const struct inputs_selection *select,
                     bool (*stop)(void *user), void *user)
{
    struct inputs *inputs;
    struct os_stat stat;
    const char *path;
    struct remote *remote = NULL;
    uint64_t total = 0, asked = 0;
    for (size_t i = 0; i < select->list_count; i++)
        if (!strcmp(select->lists[i], "-") || os_stat(select->lists[i], &stat) || stat.kind != OS_KIND_FILE)
            return 0;
    if (inputs_new(&inputs, operands, count, select, stop, user, NULL))
        return 0;
    for (;;) {
        const enum tokmap_status status = inputs_next(inputs, &path, NULL);
        if (status == TOKMAP_END)
            break;
        uint64_t bytes = status ? 0 : inputs_bytes(inputs);
        const bool unknown = bytes == UINT64_MAX;
        asked += unknown && remote_kind(path);
        if (status == TOKMAP_ERROR_INTERRUPTED || (stop && stop(user)) || asked > REMOTE_ASKED_MOST ||
            (unknown && !size_find(&remote, path, stop, user, &bytes)) || add_overflows(total, bytes, &total)) {
            total = 0;
            break;
        }
    }
    inputs_free(inputs);
    remote_free(remote);
    return total;
}
