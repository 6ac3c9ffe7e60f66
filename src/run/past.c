/* SPDX-License-Identifier: MIT */
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
 *                1 (a full identity) or 2 (a sampled one), the 16 bytes of the identity of its dataset, or of its plan;
 *                then, if it has a plan, the pad id)
 *     past     = H("past", step, geometry, order, batch, skips, data)
 *
 * These are of a run of one source without phases. In other runs, three of the kinds are chains: a chain has the value
 * above, and changes with each of these events before `step`, in this order; with t, the step of the event:
 *
 *     stride D, if the run states it      geometry = H("stride", geometry, D)               before all other events
 *     and it is not the first seq_len
 *     tail pad                            geometry = H("tail pad", geometry, pad id)        before all but the stride;
 *                                         if lookahead is above 1, H("tail pad", geometry, pad id, 1)
 *     a phase changes seq_len to S        geometry = H(geometry, t, S), or with a stride H(geometry, t, S, D)
 *     a phase changes batch to G          batch = H(batch, t, G)
 *     a new mixture begins                data = H("mixture", data, t, number of its sources), and then for each of
 *                                         them, in byte order of name, data = H("share", data, length of its name, its
 *                                         name, its weight in lowest terms)
 *     a source is drawn for the first     data = H("source", data, length of its name, its name, kind of its identity,
 *     time, skipped or not                identity, and the pad id if it has a plan), after a mixture of the same step,
 *                                         and in order of draw
 *
 *     more tokens are excluded from t on  data = H("exclude", data, t, pad id, XXH3-128 of the tokens), after all other
 *                                         events of the same step. The tokens are those that t excludes and no earlier
 *                                         step: for each source that has some, in byte order of name: length of its
 *                                         name, its name, number of ranges, and of each its first token and its end,
 *                                         the ranges sorted and as few as possible
 *
 * The data chain of a run that begins with one source begins as above, which stands for its first mixture and for the
 * source. So a run of one source keeps its cursors when it gets phases later. Otherwise the chain begins as H("data",
 * 0) and its first event is the first mixture. A source that is not drawn before `step` is in no fingerprint.
 *
 * With `order blocks`, order = H("order", 2, seed, W, SPAN), and with `order even`, H("order", 3, seed, W, SPAN).
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
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"

/* ---- fingerprint ---- */

struct message {
    uint8_t bytes[256];
    size_t count;
};
_Static_assert(8 + 8 + 8 + RUN_NAME_MOST + 8 + 16 <= 256 && 8 + 8 + 16 * PAST_KINDS <= 256, "the longest messages fit");

/* Begins a message, to which the other functions append. */
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

/* Returns the chain of skips after one more range. */
static struct hash128 chain_range(struct hash128 chain, uint64_t first, uint64_t end)
{
    struct message message = {.count = 0};
    put_hash(&message, chain);
    put_number(&message, first);
    put_number(&message, end);
    return message_hash(&message);
}

static void put_source(struct message *message, const struct past *past, uint64_t number)
{
    const struct run_source *source = &past->sources->of[number];
    put_number(message, source->name_bytes);
    put_bytes(message, source->name, source->name_bytes);
    put_number(message, source->identity_kind);
    put_bytes(message, source->identity, sizeof source->identity);
    if (source->plan_path)
        put_number(message, past->sources->pad_id);
}

static struct past_event *add_event(struct past *past, enum past_kind kind, uint64_t step, struct hash128 hash)
{
    struct past_event *event = &past->events[kind][past->event_counts[kind]++];
    *event = (struct past_event){.step = step, .hash = hash};
    return event;
}

static struct hash128 last_hash(const struct past *past, enum past_kind kind)
{
    return past->events[kind][past->event_counts[kind] - 1].hash;
}

/* ---- geometry, order, batch, skips ---- */

static void init_geometry(struct past *past)
{
    const struct run_spec *spec = past->spec;
    const struct phase *phases = past->phases->phases;
    struct message message;
    put_tag(&message, "geometry");
    put_number(&message, phases[0].seq_len);
    put_number(&message, spec->lookahead);
    struct hash128 hash = message_hash(&message);
    if (spec->stride && spec->stride != phases[0].seq_len) {
        put_tag(&message, "stride");
        put_hash(&message, hash);
        put_number(&message, spec->stride);
        hash = message_hash(&message);
    }
    if (spec->tail_pad) {
        put_tag(&message, "tail pad");
        put_hash(&message, hash);
        put_number(&message, past->sources->pad_id);
        if (spec->lookahead > 1)
            put_number(&message, 1);
        hash = message_hash(&message);
    }
    (void)add_event(past, PAST_GEOMETRY, 0, hash);
    for (uint64_t i = 1; i < past->phases->count_all; i++) {
        if (phases[i].seq_len == phases[i - 1].seq_len)
            continue;
        message.count = 0;
        put_hash(&message, hash);
        put_number(&message, phases[i].first_step);
        put_number(&message, phases[i].seq_len);
        if (spec->stride)
            put_number(&message, spec->stride);
        hash = message_hash(&message);
        (void)add_event(past, PAST_GEOMETRY, phases[i].first_step, hash);
    }
}

static void init_order(struct past *past)
{
    const struct run_spec *spec = past->spec;
    const bool sequential = spec->order == TOKMAP_SEQUENTIAL;
    struct message message;
    put_tag(&message, "order");
    put_number(&message, (uint64_t)spec->order);
    put_number(&message, sequential ? 0 : spec->seed);
    if (run_spec_has_blocks(spec)) {
        put_number(&message, spec->blocks);
        put_number(&message, spec->span);
    }
    past->order = message_hash(&message);
}
_Static_assert(TOKMAP_SHUFFLE == 0 && TOKMAP_SEQUENTIAL == 1 && TOKMAP_BLOCKS == 2 && TOKMAP_EVEN == 3,
               "as in the head of this file");

static void init_batch(struct past *past)
{
    const struct phase *phases = past->phases->phases;
    struct message message;
    put_tag(&message, "batch");
    put_number(&message, phases[0].batch);
    struct hash128 hash = message_hash(&message);
    (void)add_event(past, PAST_BATCH, 0, hash);
    for (uint64_t i = 1; i < past->phases->count_all; i++)
        if (phases[i].batch != phases[i - 1].batch) {
            hash = chain_range(hash, phases[i].first_step, phases[i].batch);
            (void)add_event(past, PAST_BATCH, phases[i].first_step, hash);
        }
}

static void init_skips(struct past *past)
{
    struct message message;
    put_tag(&message, "skips");
    struct hash128 chain = message_hash(&message);
    for (size_t i = 0; i < past->skips->count; i++) {
        past->skips->ranges[i].chain = chain;
        chain = chain_range(chain, past->skips->ranges[i].first, past->skips->ranges[i].end);
    }
    past->skips_end = chain;
}

/* ---- data ---- */

/* A source that is drawn for the first time, or a mixture that begins. */
struct arrival {
    uint64_t draw, step;
    uint64_t number; /* of the source, or of the mixture's first stretch */
    bool is_mixture;
};

static int compare_arrivals(const void *a, const void *b)
{
    const struct arrival *x = a, *y = b;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    if (x->is_mixture != y->is_mixture)
        return x->is_mixture ? -1 : 1;
    return x->draw < y->draw ? -1 : x->draw > y->draw;
}

/* Lists what happened to the data, in order, as if the run had no end: what is after a cursor's step does not matter.
 * *arrivals must be freed. */
static enum tokmap_status list_arrivals(const struct past *past, struct arrival **arrivals, uint64_t *count,
                                        struct tokmap_error *error)
{
    const struct phases *phases = past->phases;
    const uint64_t most = past->sources->count + phases->stretch_count_all;
    bool *seen = calloc(past->sources->count, sizeof *seen);
    *count = 0;
    *arrivals = calloc(most, sizeof **arrivals);
    if (!seen || !*arrivals) {
        free(seen);
        return error_set_memory(error, "the past of the run", most * sizeof **arrivals);
    }
    for (uint64_t i = 0; i < phases->stretch_count_all; i++) {
        const struct mixture_span *stretch = &phases->stretches[i];
        const uint64_t end = i + 1 < phases->stretch_count_all ? stretch[1].first_draw : RUN_DRAWS_MOST;
        if (i == 0 || stretch->mixture_step != stretch[-1].mixture_step)
            (*arrivals)[(*count)++] = (struct arrival){
                .draw = stretch->first_draw, .step = stretch->mixture_step, .number = i, .is_mixture = true};
        for (uint64_t j = 0; j < stretch->leaf_count; j++) {
            const struct leaf *leaf = &stretch->leaves[j];
            const uint64_t draw = seen[leaf->source] ? end : stretch_draw_of(stretch, j, leaf->k_first + leaf->offset);
            if (draw >= end)
                continue;
            seen[leaf->source] = true;
            (*arrivals)[(*count)++] =
                (struct arrival){.draw = draw, .step = phases_step_of_draw(phases, draw), .number = leaf->source};
        }
    }
    free(seen);
    qsort(*arrivals, *count, sizeof **arrivals, compare_arrivals);
    return TOKMAP_OK;
}

static struct hash128 chain_mixture(const struct past *past, struct hash128 chain, const struct mixture_span *stretch)
{
    struct message message;
    put_tag(&message, "mixture");
    put_hash(&message, chain);
    put_number(&message, stretch->mixture_step);
    put_number(&message, stretch->leaf_count);
    chain = message_hash(&message);
    for (uint64_t i = 0; i < stretch->leaf_count; i++) {
        const struct run_source *source = &past->sources->of[stretch->leaves[i].source];
        put_tag(&message, "share");
        put_hash(&message, chain);
        put_number(&message, source->name_bytes);
        put_bytes(&message, source->name, source->name_bytes);
        put_number(&message, stretch->leaves[i].weight);
        chain = message_hash(&message);
    }
    return chain;
}

static void add_exclusion(struct past *past, const struct exclusion_event *event)
{
    struct message message;
    put_tag(&message, "exclude");
    put_hash(&message, last_hash(past, PAST_DATA));
    put_number(&message, event->step);
    put_number(&message, past->sources->pad_id);
    put_hash(&message, event->hash);
    (void)add_event(past, PAST_DATA, event->step, message_hash(&message));
}

static enum tokmap_status init_data(struct past *past, struct tokmap_error *error)
{
    const struct mixture_span *first = past->phases->stretches;
    const bool begins_with_one = first->leaf_count == 1;
    struct arrival *arrivals;
    struct message message;
    uint64_t count;
    enum tokmap_status status = list_arrivals(past, &arrivals, &count, error);
    const uint64_t most = count + 1 + past->exclusions->event_count;
    if (!status && !(past->events[PAST_DATA] = calloc(most, sizeof *past->events[PAST_DATA])))
        status = error_set_memory(error, "the past of the run", most * sizeof *past->events[PAST_DATA]);
    if (status) {
        free(arrivals);
        return status;
    }
    const struct exclusions *exclusions = past->exclusions;
    uint64_t excluded = 0;
    put_tag(&message, "data");
    put_number(&message, begins_with_one);
    if (begins_with_one)
        put_source(&message, past, first->leaves[0].source);
    (void)add_event(past, PAST_DATA, 0, message_hash(&message));
    for (uint64_t i = begins_with_one ? 2 : 0; i <= count; i++) {
        while (excluded < exclusions->event_count &&
               (i == count || exclusions->events[excluded].step < arrivals[i].step))
            add_exclusion(past, &exclusions->events[excluded++]);
        if (i == count)
            break;
        struct hash128 chain = last_hash(past, PAST_DATA);
        if (arrivals[i].is_mixture) {
            chain = chain_mixture(past, chain, &past->phases->stretches[arrivals[i].number]);
        } else {
            put_tag(&message, "source");
            put_hash(&message, chain);
            put_source(&message, past, arrivals[i].number);
            chain = message_hash(&message);
        }
        (void)add_event(past, PAST_DATA, arrivals[i].step, chain);
    }
    free(arrivals);
    return TOKMAP_OK;
}

/* ---- all kinds ---- */

enum tokmap_status past_init(struct past *past, struct tokmap_error *error)
{
    static const enum past_kind of_phases[] = {PAST_GEOMETRY, PAST_BATCH};
    const uint64_t phases = past->phases->count_all;
    for (int i = 0; i < 2; i++) {
        past->events[of_phases[i]] = calloc(phases, sizeof *past->events[0]);
        if (!past->events[of_phases[i]])
            return error_set_memory(error, "the past of the run", phases * sizeof *past->events[0]);
    }
    init_geometry(past);
    init_order(past);
    init_batch(past);
    init_skips(past);
    return init_data(past, error);
}

void past_free(struct past *past)
{
    for (int kind = 0; kind < PAST_KINDS; kind++) {
        free(past->events[kind]);
        past->events[kind] = NULL;
        past->event_counts[kind] = 0;
    }
}

static struct hash128 skips_hash_before(const struct past *past, uint64_t step)
{
    const struct skips *skips = past->skips;
    size_t index = skips_index(skips, step); /* every range before it ends at or before `step` */
    if (index == skips->count)
        return past->skips_end;
    const struct skip_range *range = &skips->ranges[index];
    return step > range->first ? chain_range(range->chain, range->first, step) : range->chain;
}

/* Returns the fingerprint of a kind before a step > 0. */
static struct hash128 kind_hash_before(const struct past *past, enum past_kind kind, uint64_t step)
{
    if (kind == PAST_SKIPS)
        return skips_hash_before(past, step);
    if (kind == PAST_ORDER)
        return past->order;
    const struct past_event *events = past->events[kind];
    return events[last_at_most(&events->step, sizeof *events, past->event_counts[kind], step - 1)].hash;
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
        const struct hash128 hash = kind_hash_before(past, (enum past_kind)kind, step);
        cursor->of[kind] = (uint32_t)(hash.high >> 32);
        put_hash(&message, hash);
    }
    struct hash128 fingerprint = message_hash(&message);
    cursor->past[0] = fingerprint.high;
    cursor->past[1] = fingerprint.low;
}

/* ---- comparison ---- */

static const char *const kind_names[PAST_KINDS] = {"geometry", "order", "batch", "skips", "data"};

enum { SHOWN = 4 }; /* lines of each kind that a message names */

/* The part of the error message that names the kinds that differ. Text beyond its end is dropped. */
struct sentence {
    const struct past *past;
    uint64_t step;
    char text[640];
    size_t used;
};

__attribute__((format(printf, 2, 3))) static void add(struct sentence *sentence, const char *format, ...)
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
    add(sentence, "%s %" PRIu64 "%s", name, number, sentence->past->from_text && !line ? " by default" : "");
}

/* Adds the phase lines before the cursor's step that change the sequence length (or the batch). */
static void add_changes(struct sentence *sentence, bool seq_len)
{
    const struct phases *phases = sentence->past->phases;
    uint64_t changes = 0;
    for (uint64_t i = 1; i < phases->count_all && phases->phases[i].first_step < sentence->step; i++) {
        const struct phase *phase = &phases->phases[i];
        if (seq_len ? phase->seq_len == phase[-1].seq_len : phase->batch == phase[-1].batch)
            continue;
        if (changes++ < SHOWN)
            add(sentence, ", line %" PRIu64 ": phase %" PRIu64 " %s %" PRIu64, phase->line, phase->first_step,
                seq_len ? "seq_len" : "batch", seq_len ? phase->seq_len : phase->batch);
    }
    if (changes > SHOWN)
        add(sentence, " and %" PRIu64 " more", changes - SHOWN);
}

static void add_geometry(struct sentence *sentence)
{
    const struct run_spec *spec = sentence->past->spec;
    add_number(sentence, RUN_SEQ_LEN, "seq_len", spec->seq_len);
    add(sentence, ", ");
    add_number(sentence, RUN_LOOKAHEAD, "lookahead", spec->lookahead);
    if (spec->stride) {
        add(sentence, ", ");
        add_number(sentence, RUN_STRIDE, "stride", spec->stride);
    }
    if (spec->tail_pad) {
        if (spec->lines[RUN_TAIL])
            add(sentence, ", line %" PRIu64 ": tail pad, ", spec->lines[RUN_TAIL]);
        else
            add(sentence, ", tail pad, ");
        add_number(sentence, RUN_PAD, "pad", sentence->past->sources->pad_id);
    }
    add_changes(sentence, true);
}

static void add_order(struct sentence *sentence)
{
    const struct run_spec *spec = sentence->past->spec;
    bool sequential = spec->order == TOKMAP_SEQUENTIAL;
    uint64_t line = spec->lines[RUN_ORDER];
    if (line)
        add(sentence, "line %" PRIu64 ": ", line);
    if (run_spec_has_blocks(spec))
        add(sentence, "order %s %" PRIu64 " %" PRIu64, spec->order == TOKMAP_EVEN ? "even" : "blocks", spec->blocks,
            spec->span);
    else
        add(sentence, "order %s%s", sequential ? "sequential" : "shuffle",
            sentence->past->from_text && !line ? " by default" : "");
    if (!sequential) {
        add(sentence, ", ");
        add_number(sentence, RUN_SEED, "seed", spec->seed);
    }
}

static void add_skips(struct sentence *sentence)
{
    const struct run_spec *spec = sentence->past->spec;
    size_t before = 0;
    for (size_t i = 0; i < spec->skip_count; i++) {
        const struct skip_line *skip = &spec->skips[i];
        if (skip->first < sentence->step && before++ < SHOWN)
            add(sentence, "%sline %" PRIu64 ": skip %" PRIu64 "..%" PRIu64, before > 1 ? ", " : "", skip->line,
                skip->first, skip->end);
    }
    if (before > SHOWN)
        add(sentence, " and %zu more", before - SHOWN);
    if (before == 0)
        add(sentence, "nothing skipped before step %" PRIu64, sentence->step);
}

static void add_source(struct sentence *sentence, uint64_t number)
{
    const struct run_source *source = &sentence->past->sources->of[number];
    const struct source_line *line = &sentence->past->spec->sources[number];
    char content[33];
    hash128_hex(source->identity, content);
    if (sentence->past->from_text)
        add(sentence, "line %" PRIu64 ": source %s %.120s", line->line, line->name, line->data);
    else
        add(sentence, "data %.120s", line->data);
    add(sentence, ", content id %s%s", content,
        source->identity_kind == 2 ? " (sampled: 'tokmap index' gives the files a full one, which differs)" : "");
}

/* Adds the lists that exclude documents before the cursor's step. */
static void add_exclusions(struct sentence *sentence)
{
    const struct exclusions *exclusions = sentence->past->exclusions;
    uint64_t lists = 0;
    for (uint64_t i = 0; i < exclusions->list_count; i++) {
        const struct exclusion_list *list = &exclusions->lists[i];
        if (list->step < sentence->step && lists++ < SHOWN)
            add(sentence, "line %" PRIu64 ": exclude %.120s from %" PRIu64 ", ", list->line, list->path, list->step);
    }
    if (lists > SHOWN)
        add(sentence, "%" PRIu64 " more lists, ", lists - SHOWN);
}

/* Adds the mixtures that began before the cursor's step, and their sources. */
static void add_data(struct sentence *sentence)
{
    const struct phases *phases = sentence->past->phases;
    uint64_t mixtures = 0, sources = 0;
    if (phases->stretch_count_all == 1 && phases->stretches->leaf_count == 1) {
        add_source(sentence, phases->stretches->leaves[0].source);
        return;
    }
    for (uint64_t i = 0; i < phases->stretch_count_all; i++) {
        const struct mixture_span *stretch = &phases->stretches[i];
        if (stretch->mixture_step >= sentence->step || (i && stretch->mixture_step == stretch[-1].mixture_step))
            continue;
        if (mixtures++ < SHOWN)
            add(sentence, "%sline %" PRIu64 ": the weights from step %" PRIu64 " on", mixtures > 1 ? ", " : "",
                stretch->mixture_line, stretch->mixture_step);
    }
    if (mixtures > SHOWN)
        add(sentence, " and %" PRIu64 " more", mixtures - SHOWN);
    for (uint64_t i = 0; i < sentence->past->sources->count; i++) {
        uint64_t draws;
        const uint64_t until = min64(sentence->step, phases->steps_most);
        if ((draws = phases_drawn(phases, i, until)) == 0 || sources++ >= SHOWN)
            continue;
        add(sentence, ", ");
        add_source(sentence, i);
    }
    if (sources > SHOWN)
        add(sentence, " and %" PRIu64 " more sources", sources - SHOWN);
}

static void add_kind(struct sentence *sentence, enum past_kind kind)
{
    add(sentence, "%sits %s (", sentence->used ? ", " : "", kind_names[kind]);
    switch (kind) {
    case PAST_GEOMETRY:
        add_geometry(sentence);
        break;
    case PAST_ORDER:
        add_order(sentence);
        break;
    case PAST_BATCH:
        add_number(sentence, RUN_BATCH, "batch", sentence->past->spec->batch);
        add_changes(sentence, false);
        break;
    case PAST_SKIPS:
        add_skips(sentence);
        break;
    case PAST_DATA:
        add_exclusions(sentence);
        add_data(sentence);
        break;
    case PAST_KINDS:
        break;
    }
    add(sentence, ")");
}

/* Returns the line of the run file that states a kind before a step; 0 if none does. */
static uint64_t kind_line(const struct past *past, enum past_kind kind, uint64_t step)
{
    const struct exclusions *exclusions = past->exclusions;
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
        for (uint64_t i = 0; i < exclusions->list_count; i++)
            if (exclusions->lists[i].step < step)
                return exclusions->lists[i].line;
        return past->spec->source_count > 1 && lines[RUN_PHASE] ? lines[RUN_PHASE] : lines[RUN_SOURCE];
    case PAST_KINDS:
        break;
    }
    return 0;
}

enum tokmap_status past_compare(const struct past *past, const struct tokmap_cursor *own,
                                const struct tokmap_cursor *saved, struct tokmap_error *error)
{
    assert(own->step == saved->step);
    struct sentence sentence = {.past = past, .step = saved->step};
    uint64_t line = 0;
    for (int kind = 0; kind < PAST_KINDS; kind++)
        if (own->of[kind] != saved->of[kind]) {
            add_kind(&sentence, (enum past_kind)kind);
            line = line ? line : kind_line(past, (enum past_kind)kind, saved->step);
        }
    if (sentence.used)
        return error_set_line(error, TOKMAP_ERROR_PAST, past->path, line,
                              "before step %" PRIu64
                              ", this run differs from the run that saved the cursor: in %s; change "
                              "that back to what it was then, or start from step 0 without a cursor",
                              saved->step, sentence.text);
    if (memcmp(own->past, saved->past, sizeof own->past) != 0 || own->tokens != saved->tokens)
        return error_set(error, TOKMAP_ERROR_PAST, past->path, TOKMAP_NO_OFFSET,
                         "the cursor contradicts itself: before step %" PRIu64 " this run delivers %" PRIu64 " tokens, "
                         "but the cursor states %" PRIu64 " tokens or has a different fingerprint; use the cursor "
                         "exactly as it was saved",
                         saved->step, own->tokens, saved->tokens);
    return TOKMAP_OK;
}
