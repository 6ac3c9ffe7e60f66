/*
 * cursor.c - the exact resume state, its text, and the fingerprint of the past. FROZEN: a change here makes every saved
 * cursor useless. tests/unit/run/test_cursor.c holds golden values; RUN.md says the same to users.
 *
 * Text: one line, single spaces, numbers decimal, hexadecimal in lower case:
 *
 *     tokmap1 step=179200 tokens=1748060078080 past=<32 hex> of=<8 hex>,<8 hex>,<8 hex>,<8 hex>,<8 hex>
 *
 * past is past[0] then past[1], 16 digits each; of is geometry, order, batch, skips, data. Spaces or tabs around and
 * between the five words may be more when it is read; anything else may not differ.
 *
 * Fingerprint. H(..) is XXH3-128 with seed 0, stored as 16 bytes, high half first, big-endian (XXH128's canonical
 * form); all integers are 64-bit little-endian; tags are filled up with zero bytes to 8.
 *
 *     geometry = H("geometry", seq_len, lookahead)
 *     order    = H("order", 0 shuffle | 1 sequential, seed; 0 if sequential, which does not use it)
 *     batch    = H("batch", rows of a global batch)
 *     skips    = chain after the last range, where chain = H("skips") before the first range, and
 *                H(chain, first, end) after each: the skipped steps before `step`, as ranges that rise and do
 *                not touch, the last one cut at `step`
 *     data     = H("data", number of sources (1), and for each: length of its name, its name, 1 (a full
 *                identity), the 16 bytes of its dataset's content id)
 *     past     = H("past", step, geometry, order, batch, skips, data)
 *
 * of[] holds the first four bytes of each kind, read as a big-endian number. At step 0 nothing is past: all are zero,
 * and any run may start there. Neither the end of the run nor what is skipped later is in it: the future may change.
 */
#include "run.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "text/decimal.h"
#include "run_state.h"

static const char *const kind_names[PAST_KINDS] = {"geometry", "order", "batch", "skips", "data"};

/* ---- fingerprint ---- */

struct message {
    uint8_t bytes[256];
    size_t count;
};
_Static_assert(8 + 8 + 8 + RUN_NAME_MOST + 8 + 16 <= 256 && 8 + 8 + 16 * PAST_KINDS <= 256, "messages fit");

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

static struct hash128 chain_range(struct hash128 chain, uint64_t first, uint64_t end)
{
    struct message message = {.count = 0};
    put_hash(&message, chain);
    put_number(&message, first);
    put_number(&message, end);
    return message_hash(&message);
}

void run_past_init(struct tokmap_run *run)
{
    const struct run_spec *spec = &run->spec;
    bool sequential = spec->ordering == TOKMAP_SEQUENTIAL;
    struct message message;
    put_tag(&message, "geometry");
    put_number(&message, spec->seq_len);
    put_number(&message, spec->lookahead);
    run->past[PAST_GEOMETRY] = message_hash(&message);

    put_tag(&message, "order");
    put_number(&message, sequential);
    put_number(&message, sequential ? 0 : spec->seed);
    run->past[PAST_ORDER] = message_hash(&message);

    put_tag(&message, "batch");
    put_number(&message, spec->batch);
    run->past[PAST_BATCH] = message_hash(&message);

    put_tag(&message, "skips");
    struct hash128 chain = run->past[PAST_SKIPS] = message_hash(&message);
    for (size_t i = 0; i < run->skip_count; i++) {
        run->skips[i].chain = chain;
        chain = chain_range(chain, run->skips[i].first, run->skips[i].end);
    }
    run->skips_chain = chain;

    put_tag(&message, "data");
    put_number(&message, 1);
    put_number(&message, strlen(spec->source));
    put_bytes(&message, spec->source, strlen(spec->source));
    put_number(&message, 1);
    put_bytes(&message, run->content, sizeof run->content);
    run->past[PAST_DATA] = message_hash(&message);
}

static struct hash128 skips_before(const struct tokmap_run *run, uint64_t step)
{
    size_t at = run_skip_at(run, step); /* the ranges before `at` end at or before `step` */
    if (at == run->skip_count)
        return run->skips_chain;
    const struct skip_range *range = &run->skips[at];
    return step > range->first ? chain_range(range->chain, range->first, step) : range->chain;
}

/* The cursor of exactly this step, skipped or not. */
static void cursor_at(const struct tokmap_run *run, uint64_t step, struct tokmap_cursor *cursor)
{
    memset(cursor, 0, sizeof *cursor);
    cursor->step = step;
    if (step == 0)
        return;
    /* Rows are below 2^63; tokens can be more than 64 bits hold, and then stay at the largest number. */
    if (mul_overflows(run_delivered_before(run, step) * run->spec.batch, run->spec.seq_len, &cursor->tokens))
        cursor->tokens = UINT64_MAX;
    struct message message;
    put_tag(&message, "past");
    put_number(&message, step);
    for (int kind = 0; kind < PAST_KINDS; kind++) {
        struct hash128 hash = kind == PAST_SKIPS ? skips_before(run, step) : run->past[kind];
        cursor->of[kind] = (uint32_t)(hash.high >> 32);
        put_hash(&message, hash);
    }
    struct hash128 past = message_hash(&message);
    cursor->past[0] = past.high;
    cursor->past[1] = past.low;
}

static enum tokmap_status past_the_end(const struct tokmap_run *run, uint64_t step, struct tokmap_error *error)
{
    return error_set_line(error, TOKMAP_ERROR_RANGE, run->path,
                          run->from_text ? run->spec.lines[run->spec.passes == TOKMAP_FOREVER ? RUN_STEPS : RUN_PASSES]
                                         : 0,
                          "step %" PRIu64 " lies past the end of the run, which is step %" PRIu64
                          "; raise '%s', or use the cursor with its own run",
                          step, run->steps_most, run->spec.passes == TOKMAP_FOREVER ? "steps" : "passes");
}

enum tokmap_status tokmap_run_cursor(const struct tokmap_run *run, uint64_t step, struct tokmap_cursor *cursor,
                                     struct tokmap_error *error)
{
    if (!run || !cursor)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "run or cursor is NULL; give both");
    if (step > run->steps_most)
        return past_the_end(run, step, error);
    uint64_t next = run_next_step(run, step);
    cursor_at(run, next == TOKMAP_FOREVER ? run->steps_most : next, cursor);
    return TOKMAP_OK;
}

/* ---- comparing ---- */

struct sentence {
    char text[640];
    size_t used;
};

static void say(struct sentence *sentence, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct sentence *sentence, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int count = vsnprintf(sentence->text + sentence->used, sizeof sentence->text - sentence->used, format, arguments);
    va_end(arguments);
    if (count > 0)
        sentence->used = min64(sentence->used + (size_t)count, sizeof sentence->text - 1);
}

/* "line 3: batch 1024", or "batch 1024" where there are no lines or it stands there by default. */
static void say_number(struct sentence *sentence, const struct tokmap_run *run, enum run_directive which,
                       const char *name, uint64_t number)
{
    if (run->spec.lines[which])
        say(sentence, "line %" PRIu64 ": ", run->spec.lines[which]);
    say(sentence, "%s %" PRIu64 "%s", name, number, run->from_text && !run->spec.lines[which] ? " by default" : "");
}

static void say_order(struct sentence *sentence, const struct tokmap_run *run)
{
    const struct run_spec *spec = &run->spec;
    if (spec->lines[RUN_ORDER])
        say(sentence, "line %" PRIu64 ": ", spec->lines[RUN_ORDER]);
    say(sentence, "%s %s%s", run->from_text ? "order" : "ordering",
        spec->ordering == TOKMAP_SEQUENTIAL ? "sequential" : "shuffle",
        run->from_text && !spec->lines[RUN_ORDER] ? " by default" : "");
    if (spec->ordering != TOKMAP_SEQUENTIAL) {
        say(sentence, ", ");
        say_number(sentence, run, RUN_SEED, "seed", spec->seed);
    }
}

static void say_skips(struct sentence *sentence, const struct tokmap_run *run, uint64_t step)
{
    enum { SHOWN = 4 };
    size_t before = 0;
    for (size_t i = 0; i < run->spec.skip_count; i++) {
        const struct skip_line *skip = &run->spec.skips[i];
        if (skip->first < step && before++ < SHOWN)
            say(sentence, "%sline %" PRIu64 ": skip %" PRIu64 "..%" PRIu64, before > 1 ? ", " : "", skip->line,
                skip->first, skip->end);
    }
    if (before > SHOWN)
        say(sentence, " and %zu more", before - SHOWN);
    if (before == 0)
        say(sentence, "nothing skipped before step %" PRIu64, step);
}

static void say_data(struct sentence *sentence, const struct tokmap_run *run)
{
    char content[33];
    hash128_hex(run->content, content);
    if (run->from_text)
        say(sentence, "line %" PRIu64 ": source %s %.120s", run->spec.lines[RUN_SOURCE], run->spec.source,
            run->spec.data);
    else
        say(sentence, "data %.120s", run->spec.data);
    say(sentence, ", content id %s", content);
}

static uint64_t kind_line(const struct tokmap_run *run, int kind)
{
    const uint64_t *lines = run->spec.lines;
    switch ((enum past_kind)kind) {
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

static void say_kind(struct sentence *sentence, const struct tokmap_run *run, int kind, uint64_t step)
{
    say(sentence, "%s (", kind_names[kind]);
    switch ((enum past_kind)kind) {
    case PAST_GEOMETRY:
        say_number(sentence, run, RUN_SEQ_LEN, "seq_len", run->spec.seq_len);
        say(sentence, ", ");
        say_number(sentence, run, RUN_LOOKAHEAD, "lookahead", run->spec.lookahead);
        break;
    case PAST_ORDER:
        say_order(sentence, run);
        break;
    case PAST_BATCH:
        say_number(sentence, run, RUN_BATCH, "batch", run->spec.batch);
        break;
    case PAST_SKIPS:
        say_skips(sentence, run, step);
        break;
    case PAST_DATA:
        say_data(sentence, run);
        break;
    case PAST_KINDS:
        break;
    }
    say(sentence, ")");
}

enum tokmap_status tokmap_run_check(const struct tokmap_run *run, const struct tokmap_cursor *cursor,
                                    struct tokmap_error *error)
{
    if (!run || !cursor)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "run or cursor is NULL; give both");
    if (cursor->step > run->steps_most)
        return past_the_end(run, cursor->step, error);
    struct tokmap_cursor own;
    cursor_at(run, cursor->step, &own);
    struct sentence sentence = {.used = 0};
    uint64_t line = 0;
    for (int kind = 0; kind < PAST_KINDS; kind++)
        if (own.of[kind] != cursor->of[kind]) {
            say(&sentence, sentence.used ? "; " : "");
            say_kind(&sentence, run, kind, cursor->step);
            line = line ? line : kind_line(run, kind);
        }
    if (sentence.used)
        return error_set_line(error, TOKMAP_ERROR_PAST, run->path, line,
                              "what was delivered before step %" PRIu64
                              " was delivered with another %s; put it back as it "
                              "was when the cursor was saved, or start anew without a cursor",
                              cursor->step, sentence.text);
    if (memcmp(own.past, cursor->past, sizeof own.past) != 0 || own.tokens != cursor->tokens)
        return error_set(error, TOKMAP_ERROR_PAST, run->path, TOKMAP_NO_OFFSET,
                         "the cursor contradicts itself: at step %" PRIu64 " this run has delivered %" PRIu64
                         " tokens, the cursor says %" PRIu64 " or has another fingerprint; take it as it was saved",
                         cursor->step, own.tokens, cursor->tokens);
    return TOKMAP_OK;
}

/* ---- text ---- */

void tokmap_cursor_print(const struct tokmap_cursor *cursor, char text[TOKMAP_CURSOR_TEXT])
{
    if (!text)
        return;
    text[0] = '\0';
    if (!cursor)
        return;
    (void)snprintf(text, TOKMAP_CURSOR_TEXT,
                   "tokmap1 step=%" PRIu64 " tokens=%" PRIu64 " past=%016" PRIx64 "%016" PRIx64 " of=%08" PRIx32
                   ",%08" PRIx32 ",%08" PRIx32 ",%08" PRIx32 ",%08" PRIx32,
                   cursor->step, cursor->tokens, cursor->past[0], cursor->past[1], cursor->of[0], cursor->of[1],
                   cursor->of[2], cursor->of[3], cursor->of[4]);
}

/* These leave *at where the text is not as it must be. */
static bool read_literal(const char **at, const char *literal)
{
    for (; *literal; literal++, ++*at)
        if (**at != *literal)
            return false;
    return true;
}

static bool read_hex(const char **at, int digits, uint64_t *number)
{
    uint64_t value = 0;
    for (int i = 0; i < digits; i++, ++*at) {
        char c = **at;
        if (c >= '0' && c <= '9')
            value = value << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            value = value << 4 | (uint64_t)(c - 'a' + 10);
        else
            return false;
    }
    *number = value;
    return true;
}

static bool is_white(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* At least one space or tab. */
static bool read_gap(const char **at)
{
    const char *from = *at;
    while (**at == ' ' || **at == '\t')
        ++*at;
    return *at > from;
}

static bool read_of(const char **at, uint32_t of[5])
{
    for (int i = 0; i < 5; i++) {
        uint64_t value;
        if ((i > 0 && !read_literal(at, ",")) || !read_hex(at, 8, &value))
            return false;
        of[i] = (uint32_t)value;
    }
    return true;
}

static enum tokmap_status not_a_cursor(const char *text, const char *at, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_CURSOR, NULL, (uint64_t)(at - text),
                     "the text is not a cursor: it must be the whole line that was saved, 'tokmap1 step=.. tokens=.. "
                     "past=.. of=..'");
}

enum tokmap_status tokmap_cursor_parse(struct tokmap_cursor *cursor, const char *text, struct tokmap_error *error)
{
    if (!cursor || !text)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "cursor or text is NULL; give both");
    struct tokmap_cursor read;
    memset(&read, 0, sizeof read);
    const char *at = text;
    uint64_t version;
    while (is_white(*at))
        at++;
    if (!read_literal(&at, "tokmap") || !decimal_read(&at, NULL, &version) || !read_gap(&at))
        return not_a_cursor(text, at, error);
    if (version != 1)
        return error_set(error, TOKMAP_ERROR_VERSION, NULL, TOKMAP_NO_OFFSET,
                         "the cursor is of version %" PRIu64 ", this tokmap reads version 1; use a newer tokmap",
                         version);
    if (!read_literal(&at, "step=") || !decimal_read(&at, NULL, &read.step) || !read_gap(&at) ||
        !read_literal(&at, "tokens=") || !decimal_read(&at, NULL, &read.tokens) || !read_gap(&at) ||
        !read_literal(&at, "past=") || !read_hex(&at, 16, &read.past[0]) || !read_hex(&at, 16, &read.past[1]) ||
        !read_gap(&at) || !read_literal(&at, "of=") || !read_of(&at, read.of))
        return not_a_cursor(text, at, error);
    while (is_white(*at))
        at++;
    if (*at != '\0')
        return not_a_cursor(text, at, error);
    *cursor = read;
    return TOKMAP_OK;
}
