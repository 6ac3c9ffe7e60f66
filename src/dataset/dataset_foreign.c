/* SPDX-License-Identifier: MIT */
/*
 * dataset_foreign.c - see dataset_foreign.h.
 *
 * A path with * ? or [ is a pattern, unless a file has this very name. Its components are compared with the names in
 * the folders, one component after another, so "data/2024-*" + "/shard_*.bin" lists data, and then each folder in it
 * that matches.
 */
#include "dataset_foreign.h"

#include <assert.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "platform/os.h"
#include "remote/remote_url.h"
#include "text/path.h"
#include "token_find.h"

#define FILES_MAX ((uint64_t)1 << 20)
#define SCAN_TOKENS 8192 /* read at once to find the ends of documents; a row's tokens stay in the cache */

/* ---- lists of paths ---- */

struct path_list {
    char **paths;
    uint64_t count, capacity;
};

static void list_free(struct path_list *list)
{
    for (uint64_t i = 0; i < list->count; i++)
        free(list->paths[i]);
    free(list->paths);
    *list = (struct path_list){NULL, 0, 0};
}

/* Takes ownership of the path, also on failure. Returns false without memory. */
static bool list_add(struct path_list *list, char *path)
{
    if (!path || !list_room(&list->paths, list->count, &list->capacity, sizeof *list->paths)) {
        free(path);
        return false;
    }
    list->paths[list->count++] = path;
    return true;
}

/* ---- patterns ---- */

static bool is_pattern(const char *text, size_t bytes)
{
    return memchr(text, '*', bytes) || memchr(text, '?', bytes) || memchr(text, '[', bytes);
}

struct matching {
    const char *folder, *pattern;
    struct path_list *into;
    bool full, last;
    enum tokmap_status
        status; /* of a file that matches, but cannot be looked at; a dataset must not lack it silently */
    struct tokmap_error *error;
};

/* Finds the kind of what has this path. Nothing there, such as a link to nothing, is not a failure: *kind is UNKNOWN.
 */
static enum tokmap_status kind_find(const char *path, enum os_kind *kind, struct tokmap_error *error)
{
    struct os_stat found;
    const int system = os_stat(path, &found);
    *kind = system ? OS_KIND_UNKNOWN : found.kind;
    if (!system || system == ENOENT || system == ENOTDIR)
        return TOKMAP_OK;
    return error_set_system(error, system, path, TOKMAP_NO_OFFSET,
                            "the pattern matches this name, which cannot be looked at");
}

static int match_entry(void *user, const char *name)
{
    struct matching *matching = user;
    enum os_kind kind = OS_KIND_UNKNOWN;
    if (fnmatch(matching->pattern, name, FNM_PERIOD) != 0)
        return 0;
    char *path = path_in(matching->folder, name);
    if (path)
        matching->status = kind_find(path, &kind, matching->error);
    if (path && (matching->status || kind != (matching->last ? OS_KIND_FILE : OS_KIND_FOLDER))) {
        free(path);
        return matching->status ? -1 : 0;
    }
    matching->full = !list_add(matching->into, path) || matching->into->count > FILES_MAX;
    return matching->full ? -1 : 0;
}

/* Replaces each path of the list by those in it that match a component of the pattern. */
static enum tokmap_status match_component(struct path_list *list, const char *component, size_t bytes, bool last,
                                          struct tokmap_error *error)
{
    struct path_list next = {NULL, 0, 0};
    char *pattern = strndup(component, bytes);
    enum tokmap_status status = pattern ? TOKMAP_OK : error_set_memory(error, "a pattern", bytes);
    for (uint64_t i = 0; i < list->count && !status; i++) {
        struct matching matching = {list->paths[i], pattern, &next, false, last, TOKMAP_OK, error};
        if (!is_pattern(component, bytes)) {
            char *path = path_in(list->paths[i], pattern);
            enum os_kind kind = OS_KIND_UNKNOWN;
            if (path)
                matching.status = kind_find(path, &kind, error);
            if (path && (matching.status || kind == OS_KIND_UNKNOWN))
                free(path);
            else
                matching.full = !list_add(&next, path);
        } else {
            const int system = os_folder_list(*list->paths[i] ? list->paths[i] : ".", match_entry, &matching);
            if (system > 0 && system != ENOENT && system != ENOTDIR)
                status =
                    error_set_system(error, system, list->paths[i], TOKMAP_NO_OFFSET, "the folder cannot be listed");
        }
        if (matching.status)
            status = matching.status;
        else if (matching.full)
            status = next.count > FILES_MAX
                         ? error_set(error, TOKMAP_ERROR_LIMIT, list->paths[i], TOKMAP_NO_OFFSET,
                                     "the pattern matches more than %" PRIu64 " files; use a narrower one", FILES_MAX)
                         : error_set_memory(error, "the paths of files", 0);
    }
    free(pattern);
    list_free(list);
    *list = next;
    return status;
}

/* Finds the files that a pattern matches, in byte order. */
static enum tokmap_status match_all(struct path_list *list, const char *pattern, struct tokmap_error *error)
{
    if (!list_add(list, strdup(*pattern == '/' ? "/" : "")))
        return error_set_memory(error, "a pattern", strlen(pattern));
    const char *at = pattern + strspn(pattern, "/");
    enum tokmap_status status = TOKMAP_OK;
    while (*at && !status) {
        const size_t bytes = strcspn(at, "/");
        const char *next = at + bytes + strspn(at + bytes, "/");
        status = match_component(list, at, bytes, !*next, error);
        at = next;
    }
    if (!status && list->count)
        qsort(list->paths, list->count, sizeof *list->paths, path_compare);
    return status;
}

/* ---- the files of a name ---- */

/* Returns the ending of the files of a kind, for folders and patterns without it. */
static const char *ending_of(enum foreign_kind kind)
{
    switch (kind) {
    case FOREIGN_UNNAMED:
    case FOREIGN_MEGATRON:
        return ".idx";
    case FOREIGN_NPY:
    case FOREIGN_OLMO:
        return ".npy";
    case FOREIGN_DATATROVE:
        return ".ds";
    case FOREIGN_LLMC:
    case FOREIGN_RAW:
        break;
    }
    return ".bin";
}

void foreign_group_free(struct foreign_group *group)
{
    for (uint64_t i = 0; i < group->count; i++)
        free(group->paths[i]);
    free(group->paths);
    free(group->kinds);
    memset(group, 0, sizeof *group);
}

/* Lists what the path of a name refers to. */
static enum tokmap_status paths_find(struct path_list *list, enum foreign_kind kind, const char *path,
                                     struct tokmap_error *error)
{
    struct os_stat found;
    char *tokens = foreign_tokens_path(kind, path), *pattern = NULL;
    if (!tokens)
        return error_set_memory(error, "the path of a file", strlen(path));
    const bool folder = kind && !os_stat(path, &found) && found.kind == OS_KIND_FOLDER && os_stat(tokens, &found);
    const bool literal = !folder && (!is_pattern(path, strlen(path)) || !os_stat(tokens, &found));
    free(tokens);
    if (literal)
        return list_add(list, strdup(path)) ? TOKMAP_OK : error_set_memory(error, "the path of a file", strlen(path));
    enum tokmap_status status;
    if (folder) {
        pattern = path_join(path, strlen(path), "*", 1, ending_of(kind));
        status = pattern ? match_all(list, pattern, error) : error_set_memory(error, "a pattern", strlen(path));
    } else {
        status = match_all(list, path, error);
        if (!status && !list->count) {
            list_free(list);
            pattern = path_ended(path, ending_of(kind));
            status = pattern ? match_all(list, pattern, error) : error_set_memory(error, "a pattern", strlen(path));
        }
    }
    if (!status && !list->count)
        status = error_set(error, TOKMAP_ERROR_NOT_FOUND, path, TOKMAP_NO_OFFSET, "%s%s",
                           folder ? "no file in this folder has a name that ends in " : "no file matches this pattern",
                           folder ? ending_of(kind) : "");
    free(pattern);
    return status;
}

/* Adds a file. Of Megatron's two files, each of which a pattern may match, the second is left out. */
static enum tokmap_status file_add(struct foreign_group *group, enum foreign_kind kind, const char *path, bool many,
                                   struct tokmap_error *error)
{
    enum foreign_kind found = kind ? kind : foreign_kind_of(path);
    if (!found)
        found = foreign_note_read(path, &group->words);
    if (!found)
        return many ? error_set(error, TOKMAP_ERROR_FORMAT, path, TOKMAP_NO_OFFSET,
                                "this file matches the pattern, but does not begin like a token file of Megatron, "
                                "llm.c, or NumPy; if it has tokens without a header, name the files " FOREIGN_RAW_FORM)
                    : TOKMAP_ERROR_NOT_FOUND;
    char *tokens = foreign_tokens_path(found, path);
    char *index_path = tokens ? foreign_index_path(tokens) : NULL;
    uint64_t room = group->capacity;
    if (!index_path || !list_room(&group->paths, group->count, &room, sizeof *group->paths) ||
        !list_room(&group->kinds, group->count, &group->capacity, sizeof *group->kinds)) {
        free(tokens);
        free(index_path);
        return error_set_memory(error, "the paths of files", 0);
    }
    if (group->count && !strcmp(group->paths[group->count - 1], tokens)) {
        free(tokens);
    } else {
        /* An index that only could not be read now must not count as none: without it the dataset would be another. */
        struct index index;
        const enum tokmap_status status = index_open(&index, index_path, error);
        if (status == TOKMAP_ERROR_MEMORY || status == TOKMAP_ERROR_IO) {
            free(tokens);
            free(index_path);
            return status;
        }
        if (!status) {
            group->indexed += index.store.offset != 0;
            index_close(&index);
        }
        group->kinds[group->count] = found;
        group->paths[group->count++] = tokens;
    }
    free(index_path);
    return TOKMAP_OK;
}

enum tokmap_status foreign_group_find(struct foreign_group *group, const char *name, bool named,
                                      struct tokmap_error *error)
{
    struct foreign_name parsed;
    struct path_list list = {NULL, 0, 0};
    memset(group, 0, sizeof *group);
    enum tokmap_status status = foreign_name_parse(&parsed, name, error);
    if (status)
        return status;
    assert(named == (parsed.kind != FOREIGN_UNNAMED));
    char *path = strndup(parsed.path, parsed.path_bytes);
    if (!path)
        return error_set_memory(error, "the path of a file", parsed.path_bytes);
    group->words = parsed.words;
    if (remote_is(path))
        status = error_set(error, TOKMAP_ERROR_UNSUPPORTED, name, TOKMAP_NO_OFFSET,
                           "files of other projects are not read from object storage or web servers; copy them to a "
                           "disk of this machine");
    if (!status)
        status = paths_find(&list, parsed.kind, path, error);
    for (uint64_t i = 0; i < list.count && !status; i++)
        status = file_add(group, parsed.kind, list.paths[i], is_pattern(path, parsed.path_bytes), error);
    for (uint64_t i = 0; i < group->count && !status; i++)
        status = foreign_words_check(&group->words, group->kinds[i], name, error);
    list_free(&list);
    free(path);
    return status;
}

enum tokmap_status foreign_group_indexes(const struct foreign_group *group, struct shard_names *names,
                                         struct tokmap_error *error)
{
    names->index_paths = calloc(group->count, sizeof *names->index_paths);
    if (!names->index_paths)
        return error_set_memory(error, "the paths of indexes", group->count * sizeof *names->index_paths);
    for (; names->count < group->count; names->count++) {
        names->index_paths[names->count] = foreign_index_path(group->paths[names->count]);
        if (!names->index_paths[names->count])
            return error_set_memory(error, "the path of an index", 0);
    }
    return TOKMAP_OK;
}

enum tokmap_status foreign_check_words(const struct foreign_group *group, const struct shard *shard,
                                       struct tokmap_error *error)
{
    const struct foreign_words *words = &group->words;
    const struct section_shard *head = &shard->index.shard;
    const struct store *store = &shard->store;
    const char *word = NULL;
    uint64_t said = 0, found = 0;
    if (words->width && words->width != 1u << element_shift(store->element))
        word = "width", said = words->width, found = 1u << element_shift(store->element);
    else if (words->offset_given && words->offset != store->offset)
        word = "offset", said = words->offset, found = store->offset;
    else if (words->eod_id != TOKMAP_NO_ID && words->eod_id != head->eod_id)
        word = "eod", said = words->eod_id, found = head->eod_id;
    else if (words->bos_id != TOKMAP_NO_ID && words->bos_id != head->bos_id)
        word = "bos", said = words->bos_id, found = head->bos_id;
    else if (words->vocabulary && words->vocabulary != head->vocabulary)
        word = "vocab", said = words->vocabulary, found = head->vocabulary;
    if (!word)
        return TOKMAP_OK;
    if (found == TOKMAP_NO_ID)
        return error_set(error, TOKMAP_ERROR_MISMATCH, shard->index_path, TOKMAP_NO_OFFSET,
                         "the name says %s=%" PRIu64 ", but the file was indexed without %s; correct the name, or "
                         "remove the index and run `tokmap index` again",
                         word, said, word);
    return error_set(error, TOKMAP_ERROR_MISMATCH, shard->index_path, TOKMAP_NO_OFFSET,
                     "the name says %s=%" PRIu64 ", but the file was indexed with %s=%" PRIu64
                     "; correct the name, or remove the index and run `tokmap index` again",
                     word, said, word, found);
}

/* ---- shards ---- */

static enum tokmap_status end_by_index(const void *user, uint64_t document, uint64_t *end, struct tokmap_error *error)
{
    const struct foreign_file *file = user;
    return foreign_index_end(&file->documents, document, end, error);
}

static enum tokmap_status end_of_file(const void *user, uint64_t document, uint64_t *end, struct tokmap_error *error)
{
    const struct foreign_file *file = user;
    (void)document;
    (void)error;
    *end = file->layout.tokens;
    return TOKMAP_OK;
}

static void file_close(void *user)
{
    foreign_close(user);
    free(user);
}

enum tokmap_status foreign_shard_open(struct shard **made, const struct foreign_group *group, uint64_t number,
                                      struct tokmap_error *error)
{
    struct shard *shard = *made = calloc(1, sizeof *shard);
    struct foreign_file *file = shard ? malloc(sizeof *file) : NULL;
    if (shard)
        shard->store.fd = shard->mask.fd = -1;
    if (!file)
        return error_set_memory(error, "a file of tokens", sizeof *file);
    struct section_shard *head = &shard->index.shard;
    enum tokmap_status status = foreign_open(file, group->kinds[number], group->paths[number], &group->words, error);
    if (status) {
        free(file);
        return status;
    }
    shard->foreign.user = file;
    shard->foreign.close = file_close;
    const struct foreign_layout *layout = &file->layout;
    shard->index_path = strdup(file->documents_path ? file->documents_path : file->path);
    shard->store = (struct store){.path = strdup(file->path),
                                  .fd = file->fd,
                                  .element = layout->element,
                                  .offset = layout->offset,
                                  .tokens = layout->tokens,
                                  .bytes = layout->bytes};
    file->fd = -1; /* the store has it now */
    if (!shard->index_path || !shard->store.path)
        return error_set_memory(error, "the path of a file of tokens", 0);
    shard->index.path = shard->index_path;
    shard->index.device = file->device;
    shard->index.inode = file->inode;
    if (file->loss_path) {
        char *path = strdup(file->loss_path);
        status = path ? mask_file_open(&shard->mask, path, true, layout->tokens, error)
                      : error_set_memory(error, "the path of a mask", strlen(file->loss_path));
        if (status)
            return status;
    }
    head->tokens = layout->tokens;
    head->width = element_width(layout->element);
    head->block_bytes = (uint32_t)BLOCK_BYTES;
    head->vocabulary = file->vocabulary;
    head->largest_id = layout->tokens ? file->vocabulary - 1 : 0;
    head->eod_id = file->eod_id;
    head->bos_id = file->bos_id;
    shard->index.token_bytes = layout->tokens * head->width;
    if (file->documents_path) {
        shard->foreign.end = end_by_index;
        head->documents = file->documents.count;
    } else if (file->eod_id == TOKMAP_NO_ID && file->bos_id == TOKMAP_NO_ID && layout->tokens) {
        shard->foreign.end = end_of_file;
        head->documents = 1;
    }
    return TOKMAP_OK;
}

const struct foreign_file *foreign_of(const struct shard *shard)
{
    return shard->foreign.close == file_close ? shard->foreign.user : NULL;
}

enum tokmap_status foreign_shard_map(struct shard *shard, struct tokmap_error *error)
{
    struct foreign_file *file = shard->foreign.close == file_close ? shard->foreign.user : NULL;
    return file && file->documents_path ? foreign_bytes_map(&file->documents.bytes, error) : TOKMAP_OK;
}

enum tokmap_status foreign_identity(const struct tokmap_dataset *dataset, uint8_t content[16],
                                    struct tokmap_error *error)
{
    const uint64_t count = dataset->shard_count;
    struct foreign_part *parts = calloc(3 * count, sizeof *parts);
    uint64_t used = 0;
    if (!parts)
        return error_set_memory(error, "the identity of a dataset", 3 * count * sizeof *parts);
    for (uint64_t i = 0; i < count; i++) {
        const struct foreign_file *file = foreign_of(dataset->slots[i].open);
        assert(file);
        if (file->documents_path)
            parts[used++] =
                (struct foreign_part){file->documents_fd, file->documents_path, 0, file->documents.bytes.count};
    }
    for (uint64_t i = 0; i < count; i++) {
        const struct store *store = &dataset->slots[i].open->store;
        parts[used++] = (struct foreign_part){store->fd, store->path, 0, store->bytes};
    }
    for (uint64_t i = 0; i < count; i++) {
        const struct mask_file *mask = &dataset->slots[i].open->mask;
        if (mask->fd >= 0)
            parts[used++] = (struct foreign_part){mask->fd, mask->path, 0, mask->bytes};
    }
    enum tokmap_status status = foreign_sample(foreign_of(dataset->slots[0].open), parts, used, content, error);
    free(parts);
    return status;
}

/* ---- documents by scanning ---- */

struct scan {
    uint64_t shift, before; /* before: the last end, or the start of the range */
    uint64_t *ends, capacity, *used;
};

/* Adds an end, unless an EOD before this BOS has added it. */
static void scan_add(struct scan *scan, uint64_t end)
{
    if (end <= scan->before)
        return;
    if (*scan->used < scan->capacity)
        scan->ends[*scan->used] = end + scan->shift;
    ++*scan->used;
    scan->before = end;
}

enum tokmap_status foreign_scan_ends(const struct shard *shard, uint32_t width, uint64_t first, uint64_t last,
                                     uint64_t shift, uint64_t *ends, uint64_t capacity, uint64_t *used,
                                     struct tokmap_error *error)
{
    const uint64_t eod = shard->index.shard.eod_id, bos = shard->index.shard.bos_id;
    struct scan scan = {shift, first, ends, capacity, used};
    uint8_t tokens[4 * SCAN_TOKENS];
    last = min64(last, shard->place.tokens);
    /* A document ends before a BOS, so the token behind the range is read, too. Its EOD is outside. */
    const uint64_t stop = min64(last + (bos != TOKMAP_NO_ID), shard->place.tokens);
    for (uint64_t at = first, part; at < stop; at += part) {
        part = min64(stop - at, SCAN_TOKENS);
        enum tokmap_status status =
            store_read(&shard->store, shard->place.skipped_tokens + at, part, width, tokens, error);
        if (status)
            return status;
        const uint64_t with_eod = min64(part, last - at);
        uint64_t next_eod = eod == TOKMAP_NO_ID ? part : token_find(tokens, width, 0, with_eod, eod);
        uint64_t next_bos = bos == TOKMAP_NO_ID ? part : token_find(tokens, width, 0, part, bos);
        while (next_eod < with_eod || next_bos < part) {
            if (next_bos <= next_eod) {
                scan_add(&scan, at + next_bos);
                next_bos = token_find(tokens, width, next_bos + 1, part, bos);
            } else {
                scan_add(&scan, at + next_eod + 1);
                next_eod = token_find(tokens, width, next_eod + 1, with_eod, eod);
            }
        }
    }
    if (first < last && last == shard->place.tokens)
        scan_add(&scan, last);
    return TOKMAP_OK;
}
