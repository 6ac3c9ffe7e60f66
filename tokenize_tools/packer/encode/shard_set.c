/* SPDX-License-Identifier: MIT */
#include "shard_set.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "format/index_reader.h"
#include "format/index_writer.h"
#include "format/shard_file.h"
#include "platform/os.h"
#include "text/path.h"

#define COPY_BYTES ((size_t)1 << 16) /* of the tokens that wait; moved at once */

struct shard_set {
    struct shard_set_options options;
    struct shard_writer *writer; /* NULL between two shards */
    struct shard_totals shard;   /* of the open shard: documents that have ended */
    struct shard_set_result result;
    struct hash_state *contents;
    uint8_t first_content[16], content[16]; /* of the first and of the last shard */
    struct shard_writer_seal seal;
    uint64_t sealed_bytes; /* of the shard that was sealed last */
    bool finished;         /* the open shard lacks only its names */
    uint64_t saved_shard;  /* the one that was open when the state was saved last */

    /* The document that has not ended. */
    struct {
        bool is;
        bool placed; /* it is in the open shard; else its tokens wait */
        uint64_t tokens;
        uint64_t text;    /* bytes of its text */
        uint64_t largest; /* of the tokens that wait */
        struct spill waiting;
        char *folder; /* of the unnamed file */
    } open;
};

/* ---- shards ---- */

static enum tokmap_status writer_open(struct shard_set *set, struct tokmap_error *error)
{
    const struct shard_set_options *options = &set->options;
    assert(!set->writer);
    if (!options->work)
        return shard_writer_open(&set->writer, options->prefix, &options->shard, error);
    if (set->result.shards == SET_SHARDS_MOST)
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "the documents need more than %d shards; choose larger ones with --shard-tokens",
                         SET_SHARDS_MOST);
    char *prefix = set_work_shard(options->work, options->number, set->result.shards);
    if (!prefix)
        return error_set_memory(error, "the name of a shard", 0);
    const enum tokmap_status status = shard_writer_open(&set->writer, prefix, &options->shard, error);
    free(prefix);
    return status;
}

/* Makes a set without a writer. */
static enum tokmap_status set_new(struct shard_set **set, const struct shard_set_options *options,
                                  struct tokmap_error *error)
{
    *set = NULL;
    assert(options->shard_tokens && (options->work || options->shard_tokens == UINT64_MAX));
    struct shard_set *made = calloc(1, sizeof *made);
    if (!made)
        return error_set_memory(error, "a shard set", sizeof *made);
    made->options = *options;
    made->options.shard.waits = options->work != NULL;
    if (options->shard.seal) {
        made->seal = *options->shard.seal;
        made->seal.sealed_bytes = &made->sealed_bytes;
        made->options.shard.seal = &made->seal;
    }
    made->contents = hash_state_new();
    made->open.folder = options->work ? strdup(set_work_folder(options->work)) : path_folder(options->prefix);
    spill_init(&made->open.waiting, made->open.folder);
    *set = made;
    if (made->contents && made->open.folder)
        return TOKMAP_OK;
    shard_set_abandon(made);
    *set = NULL;
    return error_set_memory(error, "a shard set", 0);
}

enum tokmap_status shard_set_open(struct shard_set **set, const struct shard_set_options *options,
                                  struct tokmap_error *error)
{
    enum tokmap_status status = set_new(set, options, error);
    if (!status)
        status = writer_open(*set, error);
    if (status) {
        shard_set_abandon(*set);
        *set = NULL;
    }
    return status;
}

enum tokmap_status shard_set_finish(struct shard_set *set, struct tokmap_error *error)
{
    uint64_t bytes = 0;
    assert(!set->open.is);
    char *about = set->options.about(set->options.user, &set->shard, &bytes);
    if (!about)
        return error_set_memory(error, "the about section", 0);
    const enum tokmap_status status = shard_writer_finish(set->writer, about, bytes, set->content, error);
    free(about);
    set->finished = !status;
    return status;
}

/* Commits the open shard. */
static enum tokmap_status shard_commit_open(struct shard_set *set, struct tokmap_error *error)
{
    uint64_t bytes = 0;
    char *about = set->finished ? NULL : set->options.about(set->options.user, &set->shard, &bytes);
    if (!about && !set->finished)
        return error_set_memory(error, "the about section", 0);
    struct shard_writer *writer = set->writer;
    set->writer = NULL;
    set->finished = false;
    const enum tokmap_status status = shard_writer_commit(writer, about, bytes, set->content, error);
    free(about);
    if (status)
        return status;
    if (!set->result.shards)
        memcpy(set->first_content, set->content, sizeof set->content);
    hash_state_add(set->contents, set->content, sizeof set->content);
    set->result.shards++;
    set->result.sealed_bytes += set->sealed_bytes;
    memset(&set->shard, 0, sizeof set->shard);
    return TOKMAP_OK;
}

/* Begins the next shard. */
static enum tokmap_status shard_next(struct shard_set *set, struct tokmap_error *error)
{
    const enum tokmap_status status = shard_commit_open(set, error);
    return status ? status : writer_open(set, error);
}

/* ---- documents ---- */

/* Counts the bits of a range. */
static uint64_t bits_count(const uint8_t *bits, uint64_t first, uint64_t count)
{
    uint64_t ones = 0;
    for (uint64_t i = first; i < first + count;) {
        if (i % 8 == 0 && first + count - i >= 8) {
            ones += (uint64_t)__builtin_popcount(bits[i / 8]);
            i += 8;
        } else {
            ones += bits[i / 8] >> i % 8 & 1U;
            i++;
        }
    }
    return ones;
}

/* Adds the values of the documents [from, to) of a run, which end in the open shard. */
static enum tokmap_status values_add(struct shard_set *set, const struct document_run *run, uint64_t from, uint64_t to,
                                     struct tokmap_error *error)
{
    const uint32_t columns = set->options.shard.column_count;
    struct shard_value values[COLUMNS_MAX];
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t i = from; columns && i < to && !status; i++) {
        for (uint32_t c = 0; c < columns; c++)
            values[c] = (struct shard_value){run->from[i].values[c].json, run->from[i].values[c].bytes};
        status = shard_writer_values(set->writer, values, 1, error);
    }
    return status;
}

static enum tokmap_status origin_add(struct shard_set *set, const struct document_run *run, uint64_t document,
                                     struct tokmap_error *error)
{
    return shard_writer_origin(set->writer, run->path, strlen(run->path), run->from[0].record + document, error);
}

/* Writes the whole documents [from, to) of a run, whose tokens begin at `at`, to the open shard. */
static enum tokmap_status documents_write(struct shard_set *set, const struct document_run *run, uint64_t from,
                                          uint64_t to, uint64_t at, struct tokmap_error *error)
{
    const uint64_t count = run->ends[to - 1] - at;
    const char *tokens = run->tokens + at * set->options.shard.width;
    const uint64_t largest = set->options.work ? largest_token(tokens, set->options.shard.width, count) : run->largest;
    enum tokmap_status status = origin_add(set, run, from, error);
    for (uint64_t i = from; i < to && at; i++)
        run->ends[i] -= at;
    if (!status)
        status = shard_writer_add(set->writer, tokens, count, run->ends + from, to - from, largest, error);
    for (uint64_t i = from; i < to && at; i++)
        run->ends[i] += at;
    if (!status && set->options.shard.mask) {
        status = shard_writer_mask(set->writer, run->mask, run->mask_first + at, count, error);
        set->shard.counted_tokens += bits_count(run->mask, run->mask_first + at, count);
    }
    if (!status)
        status = values_add(set, run, from, to, error);
    set->shard.documents += to - from;
    set->shard.tokens += count;
    for (uint64_t i = from; i < to; i++)
        set->shard.text_bytes += run->text_bytes[i];
    set->result.documents += to - from;
    set->result.tokens += count;
    return status;
}

/* Returns true if a document of so many tokens belongs to the open shard. */
static bool fits(const struct shard_set *set, uint64_t tokens)
{
    return !set->shard.documents ||
           (set->shard.tokens <= set->options.shard_tokens && tokens <= set->options.shard_tokens - set->shard.tokens);
}

/* Writes the tokens that wait to the open shard. */
static enum tokmap_status waiting_write(struct shard_set *set, struct tokmap_error *error)
{
    const uint64_t bytes = spill_bytes(&set->open.waiting);
    char *copy = bytes ? malloc(COPY_BYTES) : NULL;
    enum tokmap_status status = bytes && !copy ? error_set_memory(error, "tokens that wait", COPY_BYTES) : TOKMAP_OK;
    for (uint64_t done = 0; done < bytes && !status;) {
        const size_t part = (size_t)min64(bytes - done, COPY_BYTES);
        const int system = spill_read(&set->open.waiting, done, copy, part);
        status = system ? error_set_system(error, system, set->open.folder, TOKMAP_NO_OFFSET,
                                           "the tokens of a long document, in an unnamed file, cannot be read")
                        : shard_writer_add(set->writer, copy, part / set->options.shard.width, NULL, 0,
                                           set->open.largest, error);
        done += part;
    }
    free(copy);
    spill_free(&set->open.waiting);
    spill_init(&set->open.waiting, set->open.folder);
    set->open.largest = 0;
    return status;
}

/* Decides, if that is possible, to which shard the open document belongs. */
static enum tokmap_status open_place(struct shard_set *set, const struct document_run *run, uint64_t document,
                                     bool ends, struct tokmap_error *error)
{
    const bool room = fits(set, set->open.tokens);
    enum tokmap_status status = TOKMAP_OK;
    if (room && !ends && set->shard.documents && set->options.shard_tokens != UINT64_MAX)
        return TOKMAP_OK;
    if (!room)
        status = shard_next(set, error);
    if (!status)
        status = origin_add(set, run, document, error);
    if (!status)
        status = waiting_write(set, error);
    set->open.placed = true;
    return status;
}

/* Adds a part of a document: tokens [at, end) of a run. ends: it is the last part. */
static enum tokmap_status part_add(struct shard_set *set, const struct document_run *run, uint64_t document,
                                   uint64_t at, uint64_t end, bool ends, struct tokmap_error *error)
{
    const uint32_t width = set->options.shard.width;
    const char *tokens = run->tokens + at * width;
    uint64_t count = end - at;
    const uint64_t largest = set->options.work ? largest_token(tokens, set->options.shard.width, count) : run->largest;
    enum tokmap_status status = TOKMAP_OK;
    assert(!set->options.shard.mask);
    set->open.is = true;
    set->open.tokens += count;
    set->open.text += run->text_bytes[document];
    if (!set->open.placed)
        status = open_place(set, run, document, ends, error);
    if (status)
        return status;
    if (!set->open.placed) {
        const int system = spill_add(&set->open.waiting, tokens, (size_t)(count * width));
        set->open.largest = max64(set->open.largest, largest);
        return system ? error_set_system(error, system, set->open.folder, TOKMAP_NO_OFFSET,
                                         "the tokens of a long document cannot be written to an unnamed file")
                      : TOKMAP_OK;
    }
    status = shard_writer_add(set->writer, tokens, count, ends ? &count : NULL, ends, largest, error);
    if (!ends || status)
        return status;
    status = values_add(set, run, document, document + 1, error);
    set->shard.documents++;
    set->shard.tokens += set->open.tokens;
    set->shard.text_bytes += set->open.text;
    set->result.documents++;
    set->result.tokens += set->open.tokens;
    set->result.oversized += set->open.tokens > set->options.shard_tokens;
    set->open.is = set->open.placed = false;
    set->open.tokens = set->open.text = 0;
    return TOKMAP_OK;
}

/* Returns the end of the documents from `from` on that belong to the open shard. */
static uint64_t fitting(const struct shard_set *set, const struct document_run *run, uint64_t from, uint64_t at)
{
    uint64_t low = from, high = run->documents;
    if (fits(set, run->ends[high - 1] - at) && set->shard.documents)
        return high;
    const uint64_t room =
        set->shard.documents ? set->options.shard_tokens - set->shard.tokens : set->options.shard_tokens;
    if (set->shard.documents && !fits(set, 0))
        return from;
    while (low < high) { /* the first document that ends after the room */
        const uint64_t middle = low + (high - low) / 2;
        if (run->ends[middle] - at <= room)
            low = middle + 1;
        else
            high = middle;
    }
    return low == from && !set->shard.documents ? from + 1 : low;
}

enum tokmap_status shard_set_add(struct shard_set *set, const struct document_run *run, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    uint64_t at = 0, document = 0;
    assert(run->unfinished || (run->documents && run->ends[run->documents - 1] == run->count));
    if (set->open.is && run->documents) {
        status = part_add(set, run, 0, 0, run->ends[0], true, error);
        at = run->ends[0];
        document = 1;
    }
    while (document < run->documents && !status) {
        const uint64_t next = fitting(set, run, document, at);
        if (next == document) {
            status = shard_next(set, error);
            continue;
        }
        set->result.oversized += run->ends[document] - at > set->options.shard_tokens;
        status = documents_write(set, run, document, next, at, error);
        at = run->ends[next - 1];
        document = next;
    }
    if (!status && run->unfinished)
        status = part_add(set, run, document, at, run->count, false, error);
    return status;
}

/* ---- saving ---- */

bool shard_set_can_save(const struct shard_set *set)
{
    return set->writer && !spill_bytes(&set->open.waiting);
}

enum tokmap_status shard_set_save(struct shard_set *set, struct shard_set_state *state, struct state_sink *sink,
                                  struct tokmap_error *error)
{
    assert(shard_set_can_save(set));
    *state = (struct shard_set_state){.shard = set->shard,
                                      .shards = set->result.shards,
                                      .documents = set->result.documents,
                                      .tokens = set->result.tokens,
                                      .oversized = set->result.oversized,
                                      .open = set->open.is,
                                      .placed = set->open.placed,
                                      .open_tokens = set->open.tokens,
                                      .open_text = set->open.text};
    return shard_writer_save(set->writer, sink, error);
}

enum tokmap_status shard_set_sync(struct shard_set *set, struct tokmap_error *error)
{
    return shard_writer_sync(set->writer, error);
}

/* Removes the tokens of a shard that is sealed. */
static void plain_remove(const struct shard_set *set, uint64_t number)
{
    char *prefix = set_work_shard(set->options.work, set->options.number, number);
    char *path = prefix ? shard_file_path(prefix, SHARD_TOKENS, SHARD_READY_PARTIAL) : NULL;
    if (path)
        (void)os_unlink(path);
    free(path);
    free(prefix);
}

void shard_set_saved(struct shard_set *set)
{
    if (set->options.shard.seal && set->saved_shard < set->result.shards)
        plain_remove(set, set->saved_shard);
    set->saved_shard = set->result.shards;
}

/* Takes the content id of a finished shard from its index, and removes what a killed process had no time to. */
static enum tokmap_status content_read(struct shard_set *set, uint64_t number, struct tokmap_error *error)
{
    struct index index;
    char *prefix = set_work_shard(set->options.work, set->options.number, number);
    char *path = prefix ? shard_file_path(prefix, SHARD_INDEX, SHARD_READY) : NULL;
    enum tokmap_status status =
        path ? index_open(&index, path, error) : error_set_memory(error, "the name of a shard", 0);
    if (!status) {
        if (!number)
            memcpy(set->first_content, index.shard.content, sizeof set->first_content);
        hash_state_add(set->contents, index.shard.content, sizeof index.shard.content);
        set->result.sealed_bytes += index.sealed_bytes;
        index_close(&index);
        if (set->options.shard.seal)
            plain_remove(set, number);
    }
    free(path);
    free(prefix);
    return status;
}

/* Removes a file, or only looks for it. Returns whether it was there. */
static bool waiting_file(const char *prefix, enum shard_file file, enum shard_state state, bool remove)
{
    struct os_stat found;
    char *path = shard_file_path(prefix, file, state);
    const bool there = path && !(remove ? os_unlink(path) : os_lstat(path, &found));
    free(path);
    return there;
}

/* Removes the files of a shard, or only looks for them. Returns false if there were none. */
static bool waiting_files(const struct shard_set *set, uint64_t number, bool remove)
{
    char *prefix = set_work_shard(set->options.work, set->options.number, number);
    bool any = false;
    for (int file = SHARD_INDEX; prefix && file >= 0; file--) {
        any = waiting_file(prefix, (enum shard_file)file, SHARD_READY, remove) || any;
        any = waiting_file(prefix, (enum shard_file)file, SHARD_READY_PARTIAL, remove) || any;
    }
    free(prefix);
    return any;
}

/* Removes the shards from `first` on, which were begun or finished after the state was saved. The last one goes first:
 * a process that is killed here leaves no gap, at which the next one would stop. */
static void later_remove(const struct shard_set *set, uint64_t first)
{
    uint64_t end = first;
    while (waiting_files(set, end, false))
        end++;
    while (end > first)
        (void)waiting_files(set, --end, true);
}

enum tokmap_status shard_set_reopen(struct shard_set **set, const struct shard_set_options *options,
                                    const struct shard_set_state *state, struct tokmap_error *error)
{
    struct shard_set_options reopened = *options;
    reopened.shard.resume = true;
    enum tokmap_status status = set_new(set, &reopened, error);
    if (status)
        return status;
    struct shard_set *made = *set;
    if (state->shards > (options->work ? SET_SHARDS_MOST : 0) || state->open > 1 || state->placed > state->open)
        status = error_set(error, TOKMAP_ERROR_CORRUPT, options->prefix, TOKMAP_NO_OFFSET,
                           "the journal of the unfinished work is damaged; start over with --no-resume");
    for (uint64_t i = 0; i < state->shards && !status; i++)
        status = content_read(made, i, error);
    if (options->work && !status)
        later_remove(made, state->shards + 1);
    made->shard = state->shard;
    made->result = (struct shard_set_result){.shards = state->shards,
                                             .documents = state->documents,
                                             .tokens = state->tokens,
                                             .sealed_bytes = made->result.sealed_bytes,
                                             .oversized = state->oversized};
    made->saved_shard = state->shards;
    made->open.is = state->open;
    made->open.placed = state->placed;
    made->open.tokens = state->open_tokens;
    made->open.text = state->open_text;
    if (!status)
        status = writer_open(made, error);
    made->options.shard.resume = false; /* the shards that follow are new */
    if (status) {
        shard_set_leave(made);
        *set = NULL;
    }
    return status;
}

enum tokmap_status shard_set_load(struct shard_set *set, uint32_t kind, const uint8_t *bytes, size_t count,
                                  struct tokmap_error *error)
{
    return shard_writer_load(set->writer, kind, bytes, count, error);
}

enum tokmap_status shard_set_restored(struct shard_set *set, struct tokmap_error *error)
{
    return shard_writer_restored(set->writer, error);
}

void shard_set_leave(struct shard_set *set)
{
    if (!set)
        return;
    shard_writer_leave(set->writer);
    set->writer = NULL;
    shard_set_abandon(set);
}

/* ---- the end ---- */

void shard_set_result(const struct shard_set *set, struct shard_set_result *result)
{
    *result = set->result;
}

enum tokmap_status shard_set_commit(struct shard_set *set, struct shard_set_result *result, struct tokmap_error *error)
{
    assert(!set->open.is);
    const enum tokmap_status status = shard_commit_open(set, error);
    if (!status) {
        *result = set->result;
        if (result->shards == 1)
            memcpy(result->content, set->first_content, sizeof result->content);
        else
            hash128_store(hash_state_128(set->contents), result->content);
    }
    shard_set_abandon(set);
    return status;
}

bool shard_set_is_complete(const char *prefix, const char *ending, bool numbered, const struct shard_set_state *state,
                           struct shard_set_result *result)
{
    const uint64_t shards = state->shards + 1; /* the last one was open */
    struct hash_state *contents = hash_state_new();
    char *point = path_ended(prefix, numbered && *ending ? "." : "");
    char *set = point ? path_ended(point, numbered ? ending : "") : NULL;
    uint64_t tokens = 0, documents = 0;
    bool good = contents != NULL;
    for (uint64_t k = 0; k < shards && good; k++) {
        struct index index;
        char *path = NULL;
        if (set)
            path = numbered ? shard_file_numbered(set, k, SHARD_INDEX, SHARD_FINAL)
                            : shard_file_path(prefix, SHARD_INDEX, SHARD_FINAL);
        good = path && !index_open(&index, path, NULL);
        if (good) {
            tokens += index.shard.tokens;
            documents += index.shard.documents;
            result->sealed_bytes += index.sealed_bytes;
            hash_state_add(contents, index.shard.content, sizeof index.shard.content);
            memcpy(result->content, index.shard.content, sizeof result->content);
            index_close(&index);
        }
        free(path);
    }
    if (good && shards > 1)
        hash128_store(hash_state_128(contents), result->content);
    result->shards = shards;
    result->tokens = tokens;
    result->documents = documents;
    result->oversized = state->oversized;
    hash_state_free(contents);
    free(point);
    free(set);
    return good && tokens == state->tokens && documents == state->documents;
}

void shard_set_abandon(struct shard_set *set)
{
    if (!set)
        return;
    shard_writer_abort(set->writer);
    hash_state_free(set->contents);
    spill_free(&set->open.waiting);
    free(set->open.folder);
    free(set);
}
