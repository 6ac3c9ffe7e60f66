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
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "platform/os.h"
#include "remote/remote_url.h"
#include "shard_combine.h"
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

/* ---- files that are read in a wrong way ---- */

/*
 * A wrong width gives tokens, too: the ids 5, 70, 261 in 4 bytes each, read as 2, are 5, 0, 70, 0, 261, 0. What is
 * looked for is what no text has. High bytes of ids are concentrated on few values, because frequent tokens are and the
 * vocabulary ends. So two tokens have more often the same high byte than the same low one: in 3,843 parts of 256 and
 * 4,096 tokens of true files at least 1.26 times as often, and with swapped bytes less than 1 / 1.26 times.
 */

enum { PLACES = 8, PLACE_TOKENS = 512, SAMPLE = PLACES * PLACE_TOKENS, SHARDS = 4 };
enum { FEW = 64, FEW_KINDS = 16 };           /* tokens, and different ones: fewer say nothing */
enum { ENOUGH = 256, BUCKETS = 1024 };       /* tokens, of which shares say something, and a table of them */
enum { HALF_MOST = 15, ID_MOST = 0xffffff }; /* no vocabulary has larger ids, or larger high halves of 4 bytes */

/* Reads all tokens of a shard, or some from places all over it, which begin at multiples of 8 tokens and do not
 * overlap. Returns how many. */
static uint32_t sample_read(const struct shard *shard, uint32_t *ids)
{
    const uint64_t tokens = shard->store.tokens, part = tokens <= SAMPLE ? tokens : PLACE_TOKENS;
    uint32_t count = 0;
    for (uint64_t i = 0; i < PLACES && count < tokens; i++, count += (uint32_t)part)
        if (store_read(&shard->store, ((tokens - part) / (PLACES - 1) * i) & ~(uint64_t)7, part, 4, ids + count, NULL))
            return 0;
    return count;
}

static bool is_letter(uint32_t code)
{
    return (code >= ' ' && code < 127) || code == '\n';
}

/* Returns a token, or, if it can be a high half whose bytes are swapped, that half. */
static uint32_t half_of(uint32_t id, bool two)
{
    return two && !(id & 255) ? id >> 8 : id;
}

/* Returns whether tokens depend on the small ones beside them as the halves of ids do: almost all of those are 0, or
 * tokens beside the same one are equal more often than others. A flag for each token, say, is not such a half. */
static bool are_halves(const uint32_t *ids, uint32_t count, const bool small[4], bool two)
{
    uint16_t of[HALF_MOST + 1][BUCKETS] = {{0}}, in[HALF_MOST + 1] = {0}, any[BUCKETS] = {0};
    uint64_t same = 0, same_of = 0, all = 0, tokens = 0; /* pairs that are equal, of how many; of any tokens */
    for (uint32_t i = 0; i < (count & ~1u); i++) {
        const uint32_t beside = half_of(ids[i ^ 1], two), bucket = ids[i] * 2654435761u / (UINT32_MAX / BUCKETS + 1);
        if (small[i % 4])
            continue;
        same += of[beside][bucket]++;
        same_of += in[beside]++;
        all += any[bucket]++;
        tokens++;
    }
    const uint64_t others_of = tokens * (tokens - 1) / 2 - same_of;
    return 8 * in[0] >= 7 * tokens || (tokens >= ENOUGH && same * others_of > 2 * (all - same) * same_of);
}

/* Returns what these tokens have that no text has, or NULL. */
static const char *doubt(const struct shard *shard, const uint32_t *ids, uint32_t count)
{
    const bool two = element_shift(shard->store.element) == 1;
    uint32_t low[256] = {0}, high[256] = {0}, kinds[256] = {0}, most[4] = {0};
    uint32_t different = 0, above = 0, large = 0, glued = 0, text = 0, wide = 0;
    uint64_t lows = 0, highs = 0; /* pairs of tokens with the same byte */
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t half = half_of(ids[i], two);
        different += !kinds[ids[i] * 2654435761u >> 24]++;
        lows += low[ids[i] & 255]++;
        highs += high[ids[i] >> 8 & 255]++;
        most[i % 4] = half > most[i % 4] ? half : most[i % 4];
        above += half > 255;
        large += ids[i] > ID_MOST;
        glued += ids[i] >> 16 && !(ids[i] >> 8 & 255) && i && ids[i] != ids[i - 1];
        text += is_letter(ids[i] & 255) && is_letter(ids[i] >> 8);
    }
    const bool small[4] = {most[0] <= HALF_MOST, most[1] <= HALF_MOST, most[2] <= HALF_MOST, most[3] <= HALF_MOST};
    for (uint32_t i = 0; i < 4; i++)
        wide += !small[i];
    if (different < FEW_KINDS)
        return NULL;
    if ((wide == 1 || (wide == 2 && small[0] == small[2])) && 16 * above > wide * count &&
        are_halves(ids, count, small, two))
        return wide == 2 ? "every second token is below 16, as if the ids had twice as many bytes"
                         : "three of every four tokens are below 16, as if the ids had four times as many bytes";
    if (4 * large > count)
        return "many ids are above 16,777,215, which no vocabulary has";
    if (4 * glued > count)
        return "many ids are two numbers below 256 with a byte of 0 between them, as if the ids had half as many bytes";
    if (two && 10 * text > 9 * count)
        return "nine of ten tokens are two letters of a text, as if it had not been tokenized, or the ids had one byte";
    if (low[0] == count || (two && count >= ENOUGH && 2 * lows > 3 * highs))
        return "the low bytes of ids differ less than the high ones, as if their order were another, or the file's "
               "tokens began elsewhere";
    return NULL;
}

bool token_doubts_add(struct tokmap_dataset *dataset)
{
    uint32_t ids[SAMPLE];
    const uint64_t shards = dataset->shard_count, looked_at = min64(shards, SHARDS);
    const char *path = NULL;
    for (uint64_t i = 0; i < shards && !path; i++) {
        const struct shard *shard = dataset->slots[i].open;
        if (shard && !shard->store.tokens && path_ends_in(shard->store.path, strlen(shard->store.path), ".ds"))
            path = shard->store.path;
    }
    if (path && !dataset_warning_add(dataset,
                                     "%.300s has no tokens: with shuffle_chunk_size, datatrove leaves out what follows "
                                     "the last whole chunk of each task, also if that is all of it; compare the "
                                     "numbers of tokens with those of the texts",
                                     path))
        return false;
    for (uint64_t i = 0; i < looked_at; i++) {
        const struct shard *shard = dataset->slots[i * shards / looked_at].open;
        if (!shard || (!shard->foreign.close && !shard->index.store.offset))
            continue;
        const uint32_t count = sample_read(shard, ids);
        const char *what = count < FEW ? NULL : doubt(shard, ids, count);
        if (what)
            return dataset_warning_add(dataset,
                                       "%.300s: %s; its tokens are read with %u bytes from byte %" PRIu64
                                       " on: check the words width and offset, and how the file was written",
                                       shard->store.path, what, 1u << element_shift(shard->store.element),
                                       shard->store.offset);
    }
    return true;
}
