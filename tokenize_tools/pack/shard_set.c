/* shard_set.c - see shard_set.h. */
#include "shard_set.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "format/index_writer.h"
#include "text/path.h"

#define COPY_BYTES ((size_t)1 << 16) /* of the tokens that wait, in one piece */

struct shard_set {
    struct shard_set_options options;
    struct shard_writer *writer; /* NULL between two shards */
    struct shard_totals shard;   /* of the open shard: documents that have ended */
    struct shard_set_result result;
    struct hash_state *contents;
    uint8_t first_content[16];

    /* The document that has not ended. */
    bool open;
    bool placed; /* it is in the open shard; else its tokens wait */
    uint64_t open_tokens;
    uint64_t open_text; /* bytes of its text */
    uint64_t waiting_largest;
    struct spill waiting;
    char *folder; /* of the unnamed file */
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
                         "the documents need more than %d shards; choose larger ones with options.shard_tokens",
                         SET_SHARDS_MOST);
    char *prefix = set_work_unit(options->work, options->number, set->result.shards);
    if (!prefix)
        return error_set_memory(error, "the name of a shard", 0);
    const enum tokmap_status status = shard_writer_open(&set->writer, prefix, &options->shard, error);
    free(prefix);
    return status;
}

enum tokmap_status shard_set_open(struct shard_set **set, const struct shard_set_options *options,
                                  struct tokmap_error *error)
{
    *set = NULL;
    assert(options->shard_tokens && (options->work || options->shard_tokens == UINT64_MAX));
    struct shard_set *made = calloc(1, sizeof *made);
    if (!made)
        return error_set_memory(error, "a shard set", sizeof *made);
    made->options = *options;
    made->options.shard.unit = options->work != NULL;
    made->contents = hash_state_new();
    made->folder = options->work ? strdup(set_work_folder(options->work)) : path_folder(options->prefix);
    spill_init(&made->waiting, made->folder);
    enum tokmap_status status =
        made->contents && made->folder ? writer_open(made, error) : error_set_memory(error, "a shard set", 0);
    if (status) {
        shard_set_abandon(made);
        return status;
    }
    *set = made;
    return TOKMAP_OK;
}

/* Commits the open shard. */
static enum tokmap_status shard_finish(struct shard_set *set, struct tokmap_error *error)
{
    uint8_t content[16];
    uint64_t bytes = 0;
    char *about = set->options.about(set->options.user, &set->shard, &bytes);
    if (!about)
        return error_set_memory(error, "the about section", 0);
    struct shard_writer *writer = set->writer;
    set->writer = NULL;
    const enum tokmap_status status = shard_writer_commit(writer, about, bytes, content, error);
    free(about);
    if (status)
        return status;
    if (!set->result.shards)
        memcpy(set->first_content, content, sizeof content);
    hash_state_add(set->contents, content, sizeof content);
    set->result.shards++;
    memset(&set->shard, 0, sizeof set->shard);
    return TOKMAP_OK;
}

/* Begins the next shard. */
static enum tokmap_status shard_next(struct shard_set *set, struct tokmap_error *error)
{
    const enum tokmap_status status = shard_finish(set, error);
    return status ? status : writer_open(set, error);
}

/* ---- documents ---- */

/* Returns the largest id of tokens: each shard of a set has its own. */
static uint64_t largest_of(const struct shard_set *set, const char *tokens, uint64_t count)
{
    uint32_t largest = 0;
    if (set->options.shard.width == 2) {
        for (uint64_t i = 0; i < count; i++) {
            uint16_t id;
            memcpy(&id, tokens + 2 * i, sizeof id);
            largest = id > largest ? id : largest;
        }
        return largest;
    }
    for (uint64_t i = 0; i < count; i++) {
        uint32_t id;
        memcpy(&id, tokens + 4 * i, sizeof id);
        largest = id > largest ? id : largest;
    }
    return largest;
}

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

/* The values of the documents [from, to) of a run, which end in the open shard. */
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
    const uint64_t largest = set->options.work ? largest_of(set, tokens, count) : run->largest;
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

/* Whether a document of so many tokens belongs to the open shard. */
static bool fits(const struct shard_set *set, uint64_t tokens)
{
    return !set->shard.documents ||
           (set->shard.tokens <= set->options.shard_tokens && tokens <= set->options.shard_tokens - set->shard.tokens);
}

/* Writes the tokens that wait to the open shard. */
static enum tokmap_status waiting_write(struct shard_set *set, struct tokmap_error *error)
{
    const uint64_t bytes = spill_bytes(&set->waiting);
    char *piece = bytes ? malloc(COPY_BYTES) : NULL;
    enum tokmap_status status = bytes && !piece ? error_set_memory(error, "tokens that wait", COPY_BYTES) : TOKMAP_OK;
    for (uint64_t done = 0; done < bytes && !status;) {
        const size_t part = (size_t)min64(bytes - done, COPY_BYTES);
        const int system = spill_read(&set->waiting, done, piece, part);
        status = system ? error_set_system(error, system, set->folder, TOKMAP_NO_OFFSET,
                                           "the tokens of a long document, in an unnamed file, cannot be read")
                        : shard_writer_add(set->writer, piece, part / set->options.shard.width, NULL, 0,
                                           set->waiting_largest, error);
        done += part;
    }
    free(piece);
    spill_free(&set->waiting);
    spill_init(&set->waiting, set->folder);
    set->waiting_largest = 0;
    return status;
}

/* Decides, if that is possible, to which shard the open document belongs. */
static enum tokmap_status open_place(struct shard_set *set, const struct document_run *run, uint64_t document,
                                     bool ends, struct tokmap_error *error)
{
    const bool room = fits(set, set->open_tokens);
    enum tokmap_status status = TOKMAP_OK;
    if (room && !ends && set->shard.documents && set->options.shard_tokens != UINT64_MAX)
        return TOKMAP_OK;
    if (!room)
        status = shard_next(set, error);
    if (!status)
        status = origin_add(set, run, document, error);
    if (!status)
        status = waiting_write(set, error);
    set->placed = true;
    return status;
}

/* Adds a part of a document: tokens [at, end) of a run. ends: it is the last part. */
static enum tokmap_status part_add(struct shard_set *set, const struct document_run *run, uint64_t document,
                                   uint64_t at, uint64_t end, bool ends, struct tokmap_error *error)
{
    const uint32_t width = set->options.shard.width;
    const char *tokens = run->tokens + at * width;
    uint64_t count = end - at;
    const uint64_t largest = set->options.work ? largest_of(set, tokens, count) : run->largest;
    enum tokmap_status status = TOKMAP_OK;
    assert(!set->options.shard.mask);
    set->open = true;
    set->open_tokens += count;
    set->open_text += run->text_bytes[document];
    if (!set->placed)
        status = open_place(set, run, document, ends, error);
    if (status)
        return status;
    if (!set->placed) {
        const int system = spill_add(&set->waiting, tokens, (size_t)(count * width));
        set->waiting_largest = max64(set->waiting_largest, largest);
        return system ? error_set_system(error, system, set->folder, TOKMAP_NO_OFFSET,
                                         "the tokens of a long document cannot be written to an unnamed file")
                      : TOKMAP_OK;
    }
    status = shard_writer_add(set->writer, tokens, count, ends ? &count : NULL, ends, largest, error);
    if (!ends || status)
        return status;
    status = values_add(set, run, document, document + 1, error);
    set->shard.documents++;
    set->shard.tokens += set->open_tokens;
    set->shard.text_bytes += set->open_text;
    set->result.documents++;
    set->result.tokens += set->open_tokens;
    set->result.oversized += set->open_tokens > set->options.shard_tokens;
    set->open = set->placed = false;
    set->open_tokens = set->open_text = 0;
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
    if (set->open && run->documents) {
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

/* ---- the end ---- */

void shard_set_result(const struct shard_set *set, struct shard_set_result *result)
{
    *result = set->result;
}

enum tokmap_status shard_set_commit(struct shard_set *set, struct shard_set_result *result, struct tokmap_error *error)
{
    assert(!set->open);
    const enum tokmap_status status = shard_finish(set, error);
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

void shard_set_abandon(struct shard_set *set)
{
    if (!set)
        return;
    shard_writer_abort(set->writer);
    hash_state_free(set->contents);
    spill_free(&set->waiting);
    free(set->folder);
    free(set);
}
