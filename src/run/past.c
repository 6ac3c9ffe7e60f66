/*
 * past.c - the fingerprint of a run's past, and the comparison of two pasts. FROZEN: a change to the bytes that are
 * hashed makes every saved cursor useless. tests/unit/run/test_cursor.c holds golden values, and RUN.md explains the
 * cursor to users.
 *
 * H(..) is XXH3-128 with seed 0, stored as 16 bytes in XXH128's canonical form (high half first, big-endian). All
 * integers are 64-bit little-endian. Tags are padded with zero bytes to 8 bytes.
 *
 *     geometry = H("geometry", seq_len, lookahead)
 *     order    = H("order", 0 for shuffle or 1 for sequential, seed; for sequential, which does not use the seed, 0)
 *     batch    = H("batch", rows of a global batch)
 *     skips    = the chain after the last range. The chain starts as H("skips") and becomes H(chain, first, end)
 *                with each range. The ranges are the skipped steps before `step`, merged and in increasing order,
 *                the last one cut off at `step`
 *     data     = H("data", number of sources (1), and for each source: length of its name, its name,
 *                1 (a full identity), the 16 bytes of its dataset's content id)
 *     past     = H("past", step, geometry, order, batch, skips, data)
 *
 * of[] holds the first four bytes of each kind, read as a big-endian number. At step 0 there is no past: all members
 * are zero, and any run may start there. The end of the run and later skips are not hashed, because the future may
 * change.
 */
#include "past.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"

/* ---- fingerprint ---- */

struct message {
    uint8_t bytes[256];
    size_t count;
};
_Static_assert(8 + 8 + 8 + RUN_NAME_MOST + 8 + 16 <= 256 && 8 + 8 + 16 * PAST_KINDS <= 256, "the longest messages fit");

/* Each put appends to the message; put_tag() begins it. */
static void put_tag(struct message *message, const char *tag)
{
    memset(message->bytes, 0, 8);
    memcpy(message->bytes, tag, strlen(tag));
    message->count = 8;
}

static void put_number(struct message *message, uint64_t number)
{
    store64(message->bytes + message->count, number);
    message->count += 8;
}

static void put_bytes(struct message *message, const void *bytes, size_t count)
{
    memcpy(message->bytes + message->count, bytes, count);
    message->count += count;
}

static void put_hash(struct message *message, struct hash128 hash)
{
    hash128_store(hash, message->bytes + message->count);
    message->count += 16;
}

static struct hash128 message_hash(const struct message *message)
{
    return hash128(message->bytes, message->count);
}

/* The chain of skips after one more range. */
static struct hash128 chain_range(struct hash128 chain, uint64_t first, uint64_t end)
{
    struct message message = {.count = 0};
    put_hash(&message, chain);
    put_number(&message, first);
    put_number(&message, end);
    return message_hash(&message);
}

void past_init(struct past *past, const struct run_spec *spec, struct skips *skips, const uint8_t content[16])
{
    assert(spec->sources[0].name && strlen(spec->sources[0].name) <= RUN_NAME_MOST);
    bool sequential = spec->ordering == TOKMAP_SEQUENTIAL;
    struct message message;
    past->spec = spec;
    past->skips = skips;
    memcpy(past->content, content, sizeof past->content);

    put_tag(&message, "geometry");
    put_number(&message, spec->seq_len);
    put_number(&message, spec->lookahead);
    past->kind[PAST_GEOMETRY] = message_hash(&message);

    put_tag(&message, "order");
    put_number(&message, sequential);
    put_number(&message, sequential ? 0 : spec->seed);
    past->kind[PAST_ORDER] = message_hash(&message);

    put_tag(&message, "batch");
    put_number(&message, spec->batch);
    past->kind[PAST_BATCH] = message_hash(&message);

    put_tag(&message, "skips");
    struct hash128 chain = past->kind[PAST_SKIPS] = message_hash(&message);
    for (size_t i = 0; i < skips->count; i++) {
        skips->ranges[i].chain = chain;
        chain = chain_range(chain, skips->ranges[i].first, skips->ranges[i].end);
    }
    past->skips_chain = chain;

    put_tag(&message, "data");
    put_number(&message, 1);
    put_number(&message, strlen(spec->sources[0].name));
    put_bytes(&message, spec->sources[0].name, strlen(spec->sources[0].name));
    put_number(&message, 1);
    put_bytes(&message, past->content, sizeof past->content);
    past->kind[PAST_DATA] = message_hash(&message);
}

static struct hash128 skips_hash_before(const struct past *past, uint64_t step)
{
    const struct skips *skips = past->skips;
    size_t index = skips_index(skips, step); /* every range before it ends at or before `step` */
    if (index == skips->count)
        return past->skips_chain;
    const struct skip_range *range = &skips->ranges[index];
    return step > range->first ? chain_range(range->chain, range->first, step) : range->chain;
}

void past_cursor(const struct past *past, uint64_t step, uint64_t tokens, struct tokmap_cursor *cursor)
{
    memset(cursor, 0, sizeof *cursor);
    cursor->step = step;
    if (step == 0)
        return;
    cursor->tokens = tokens;
    struct message message;
    put_tag(&message, "past");
    put_number(&message, step);
    for (int kind = 0; kind < PAST_KINDS; kind++) {
        struct hash128 hash = kind == PAST_SKIPS ? skips_hash_before(past, step) : past->kind[kind];
        cursor->of[kind] = (uint32_t)(hash.high >> 32);
        put_hash(&message, hash);
    }
    struct hash128 fingerprint = message_hash(&message);
    cursor->past[0] = fingerprint.high;
    cursor->past[1] = fingerprint.low;
}

/* ---- comparison ---- */

static const char *const kind_names[PAST_KINDS] = {"geometry", "order", "batch", "skips", "data"};

/* The part of the error message that names the kinds that differ. Text beyond its end is dropped. */
struct sentence {
    const struct past *past;
    bool named_lines;
    char text[640];
    size_t used;
};

static void add(struct sentence *sentence, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct sentence *sentence, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int count = vsnprintf(sentence->text + sentence->used, sizeof sentence->text - sentence->used, format, arguments);
    va_end(arguments);
    if (count > 0)
        sentence->used = min64(sentence->used + (size_t)count, sizeof sentence->text - 1);
}

/* Adds "line 3: batch 1024" if the run file states the number, "batch 1024 by default" if it does not, and "batch 1024"
 * if the run was made from arguments. */
static void add_number(struct sentence *sentence, enum run_directive which, const char *name, uint64_t number)
{
    uint64_t line = sentence->past->spec->lines[which];
    if (line)
        add(sentence, "line %" PRIu64 ": ", line);
    add(sentence, "%s %" PRIu64 "%s", name, number, sentence->named_lines && !line ? " by default" : "");
}

static void add_order(struct sentence *sentence)
{
    const struct run_spec *spec = sentence->past->spec;
    bool sequential = spec->ordering == TOKMAP_SEQUENTIAL;
    uint64_t line = spec->lines[RUN_ORDER];
    if (line)
        add(sentence, "line %" PRIu64 ": ", line);
    add(sentence, "order %s%s", sequential ? "sequential" : "shuffle",
        sentence->named_lines && !line ? " by default" : "");
    if (!sequential) {
        add(sentence, ", ");
        add_number(sentence, RUN_SEED, "seed", spec->seed);
    }
}

static void add_skips(struct sentence *sentence, uint64_t step)
{
    enum { SHOWN = 4 };
    const struct run_spec *spec = sentence->past->spec;
    size_t before = 0;
    for (size_t i = 0; i < spec->skip_count; i++) {
        const struct skip_line *skip = &spec->skips[i];
        if (skip->first < step && before++ < SHOWN)
            add(sentence, "%sline %" PRIu64 ": skip %" PRIu64 "..%" PRIu64, before > 1 ? ", " : "", skip->line,
                skip->first, skip->end);
    }
    if (before > SHOWN)
        add(sentence, " and %zu more", before - SHOWN);
    if (before == 0)
        add(sentence, "nothing skipped before step %" PRIu64, step);
}

static void add_data(struct sentence *sentence)
{
    const struct run_spec *spec = sentence->past->spec;
    char content[33];
    hash128_hex(sentence->past->content, content);
    if (sentence->named_lines)
        add(sentence, "line %" PRIu64 ": source %s %.120s", spec->lines[RUN_SOURCE], spec->sources[0].name,
            spec->sources[0].data);
    else
        add(sentence, "data %.120s", spec->sources[0].data);
    add(sentence, ", content id %s", content);
}

static void add_kind(struct sentence *sentence, enum past_kind kind, uint64_t step)
{
    const struct run_spec *spec = sentence->past->spec;
    add(sentence, "%sits %s (", sentence->used ? ", " : "", kind_names[kind]);
    switch (kind) {
    case PAST_GEOMETRY:
        add_number(sentence, RUN_SEQ_LEN, "seq_len", spec->seq_len);
        add(sentence, ", ");
        add_number(sentence, RUN_LOOKAHEAD, "lookahead", spec->lookahead);
        break;
    case PAST_ORDER:
        add_order(sentence);
        break;
    case PAST_BATCH:
        add_number(sentence, RUN_BATCH, "batch", spec->batch);
        break;
    case PAST_SKIPS:
        add_skips(sentence, step);
        break;
    case PAST_DATA:
        add_data(sentence);
        break;
    case PAST_KINDS:
        break;
    }
    add(sentence, ")");
}

/* The line of the run file that states a kind; 0 if none does. */
static uint64_t kind_line(const struct past *past, enum past_kind kind)
{
    const uint64_t *lines = past->spec->lines;
    switch (kind) {
    case PAST_GEOMETRY:
        return lines[RUN_SEQ_LEN];
    case PAST_ORDER:
        return lines[RUN_SEED] ? lines[RUN_SEED] : lines[RUN_ORDER];
    case PAST_BATCH:
        return lines[RUN_BATCH];
    case PAST_SKIPS:
        return lines[RUN_SKIP];
    case PAST_DATA:
        return lines[RUN_SOURCE];
    case PAST_KINDS:
        break;
    }
    return 0;
}

enum tokmap_status past_compare(const struct past *past, const struct tokmap_cursor *own,
                                const struct tokmap_cursor *saved, const char *path, bool named_lines,
                                struct tokmap_error *error)
{
    assert(own->step == saved->step);
    struct sentence sentence = {.past = past, .named_lines = named_lines};
    uint64_t line = 0;
    for (int kind = 0; kind < PAST_KINDS; kind++)
        if (own->of[kind] != saved->of[kind]) {
            add_kind(&sentence, (enum past_kind)kind, saved->step);
            line = line ? line : kind_line(past, (enum past_kind)kind);
        }
    if (sentence.used)
        return error_set_line(error, TOKMAP_ERROR_PAST, path, line,
                              "before step %" PRIu64
                              ", this run differs from the run that saved the cursor: in %s; change "
                              "that back to what it was then, or start from step 0 without a cursor",
                              saved->step, sentence.text);
    if (memcmp(own->past, saved->past, sizeof own->past) != 0 || own->tokens != saved->tokens)
        return error_set(error, TOKMAP_ERROR_PAST, path, TOKMAP_NO_OFFSET,
                         "the cursor contradicts itself: before step %" PRIu64 " this run delivers %" PRIu64 " tokens, "
                         "but the cursor states %" PRIu64 " tokens or has a different fingerprint; use the cursor "
                         "exactly as it was saved",
                         saved->step, own->tokens, saved->tokens);
    return TOKMAP_OK;
}
