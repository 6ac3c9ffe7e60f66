/* SPDX-License-Identifier: MIT */
/*
 * Random runs with several sources, phases, and all orders, compared with a model that takes the rules of RUN.md one
 * draw after another: it counts, where the library computes. Every row of every step, the end of the run, the counts
 * of each source, and the step in which a source runs out must be the model's; every epoch must show every window at
 * most once; and tokmap_run_find() must report exactly the rows that hold a token.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "order/blocks.h"
#include "order/permutation.h"
#include "run/locate.h"
#include "run/run.h"
#include "tokmap/tokmap.h"

enum { SOURCES = 7, PHASES = 5, STEPS = 48, ROWS = 9, RUNS = 1500 };

static uint64_t random_state = 20240607;

static uint64_t below(uint64_t limit)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state >> 33) % limit;
}

/* ---- a random run ---- */

enum ends { BY_STEPS, BY_PASSES, BY_PASSES_OF };

struct made_phase {
    uint64_t step, batch, seq_len; /* 0: not in the line */
    bool has_weights, natural;
    uint64_t weights[SOURCES]; /* 0: not in the mixture */
};

struct made_run {
    uint64_t seq_len, lookahead, batch, seed, stride, blocks, span;
    enum tokmap_order_kind order;
    bool tail_pad;
    uint64_t sources, tokens[SOURCES], epochs_most[SOURCES];
    char names[SOURCES][8];
    struct made_phase phases[PHASES];
    uint64_t phase_count;
    enum ends ends;
    uint64_t end, passes_of;
    uint64_t skip_first, skip_end;
    char text[4096];
};

static uint64_t windows(const struct made_run *run, uint64_t source, uint64_t seq_len)
{
    /* By counting: windows that fit, or that begin before a token which no window before holds as a target. */
    const uint64_t stride = run->stride ? run->stride : seq_len, tokens = run->tokens[source];
    const uint64_t ahead = run->tail_pad && run->lookahead > 1 ? 1 : run->lookahead;
    uint64_t n = 0;
    while (n * stride + seq_len + ahead <= tokens)
        n++;
    if (run->tail_pad && (n == 0 || (n - 1) * stride + seq_len + ahead < tokens))
        n++;
    return n;
}

static void add(struct made_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct made_run *run, const char *format, ...)
{
    const size_t used = strlen(run->text);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(run->text + used, sizeof run->text - used, format, arguments);
    va_end(arguments);
    assert_true(strlen(run->text) + 1 < sizeof run->text);
}

static void make_weights(struct made_run *run, struct made_phase *phase)
{
    phase->has_weights = true;
    phase->natural = below(4) == 0;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < run->sources; i++)
        sum += phase->weights[i] = below(4) == 0 ? 0 : 1 + below(below(3) ? 5 : 90);
    if (sum == 0)
        phase->weights[below(run->sources)] = 1;
}

static void make_phases(struct made_run *run)
{
    run->phase_count = run->sources > 1 ? 1 + below(PHASES) : below(3);
    uint64_t step = run->sources > 1 || below(2) ? 0 : 1 + below(10);
    for (uint64_t i = 0; i < run->phase_count; i++) {
        struct made_phase *phase = &run->phases[i];
        phase->step = step;
        if (step == 0 || below(2))
            make_weights(run, phase);
        if (step && (below(2) || !phase->has_weights))
            phase->batch = 1 + below(ROWS);
        if (step && below(2))
            phase->seq_len = 3 + below(8);
        step += 1 + below(12);
    }
    for (uint64_t s = 0; s < run->sources; s++) { /* a run has no source that it never names */
        bool named = run->phase_count == 0;
        for (uint64_t i = 0; i < run->phase_count; i++)
            named = named || run->phases[i].weights[s];
        if (!named && run->phases[0].has_weights)
            run->phases[0].weights[s] = 1 + below(5);
    }
}

static void print_run(struct made_run *run)
{
    static const char *const orders[] = {"shuffle", "sequential"};
    add(run, "seq_len %u\nlookahead %u\nbatch %u\nseed %u\n", (unsigned)run->seq_len, (unsigned)run->lookahead,
        (unsigned)run->batch, (unsigned)run->seed);
    if (run->order >= TOKMAP_BLOCKS)
        add(run, "order %s %u %u\n", run->order == TOKMAP_EVEN ? "even" : "blocks", (unsigned)run->blocks,
            (unsigned)run->span);
    else
        add(run, "order %s\n", orders[run->order]);
    if (run->stride)
        add(run, "stride %u\n", (unsigned)run->stride);
    if (run->tail_pad)
        add(run, "tail pad\npad 5\n");
    for (uint64_t i = 0; i < run->sources; i++) {
        add(run, "source %s synthetic:vocab=7,tokens=%u", run->names[i], (unsigned)run->tokens[i]);
        if (run->epochs_most[i])
            add(run, " epochs<=%u", (unsigned)run->epochs_most[i]);
        add(run, "\n");
    }
    for (uint64_t i = 0; i < run->phase_count; i++) {
        const struct made_phase *phase = &run->phases[i];
        const bool decimals = below(2);
        add(run, "phase %u", (unsigned)phase->step);
        for (uint64_t s = 0; phase->has_weights && s < run->sources; s++)
            if (phase->natural && phase->weights[s])
                add(run, " %s natural", run->names[s]);
            else if (!phase->natural && (phase->weights[s] || below(2)))
                add(run, decimals ? " %s 0.%02u" : " %s %u", run->names[s], (unsigned)phase->weights[s]);
        if (phase->batch)
            add(run, " batch %u", (unsigned)phase->batch);
        if (phase->seq_len)
            add(run, " seq_len %u", (unsigned)phase->seq_len);
        add(run, "\n");
    }
    if (run->ends == BY_STEPS)
        add(run, "steps %u\n", (unsigned)run->end);
    else if (run->ends == BY_PASSES)
        add(run, "passes %u\n", (unsigned)run->end);
    else
        add(run, "passes %u of %s\n", (unsigned)run->end, run->names[run->passes_of]);
    if (run->skip_end)
        add(run, "skip %u..%u\n", (unsigned)run->skip_first, (unsigned)run->skip_end);
}

static void make_run(struct made_run *run)
{
    memset(run, 0, sizeof *run);
    run->seq_len = 3 + below(8);
    run->lookahead = below(3);
    run->batch = 1 + below(ROWS);
    run->seed = below(1000);
    run->order = (enum tokmap_order_kind)below(4);
    run->blocks = 1 + below(6);
    run->span = 1 + below(4);
    run->tail_pad = below(3) == 0;
    run->stride = below(3) == 0 ? 1 + below(3) : 0;
    run->sources = below(4) == 0 ? 1 : 2 + below(SOURCES - 1);
    for (uint64_t i = 0; i < run->sources; i++) {
        run->tokens[i] = (run->tail_pad ? 1 : 13) + below(below(3) ? 60 : 500);
        (void)snprintf(run->names[i], sizeof run->names[i], "%c%u", "zaMB_qx"[i], (unsigned)below(10));
        run->epochs_most[i] = below(8) == 0 ? 1 + below(8) : 0;
    }
    make_phases(run);
    run->ends = below(3) ? BY_STEPS : run->sources == 1 ? BY_PASSES : BY_PASSES_OF;
    run->end = run->ends == BY_STEPS ? 1 + below(STEPS) : 1 + below(3);
    run->passes_of = below(run->sources);
    if (below(2)) {
        run->skip_first = below(20);
        run->skip_end = run->skip_first + 1 + below(10);
    }
    print_run(run);
}

/* ---- the model ---- */

/* A node of the tree of a mixture, which deals its draws out one by one. */
struct node {
    uint64_t left_weight, weight, draws, to_left;
    int left, right; /* nodes; or in a leaf -1 and the source */
};

struct model_source {
    uint64_t n, epoch, drawn_in_epoch, drawn;
    unsigned shown[520]; /* in the epoch */
};

struct model {
    const struct made_run *run;
    struct node nodes[2 * SOURCES];
    int node_count, root;
    struct model_source sources[SOURCES];
    uint64_t batch, seq_len;
    uint64_t steps;
    uint64_t ran_out; /* the step in which a source did, or UINT64_MAX */
    uint64_t drawn_before[STEPS + 1][SOURCES];
    uint64_t rows[STEPS], valid[STEPS], seq_lens[STEPS];
    struct tokmap_place places[STEPS][ROWS];
};

static int build(struct model *model, const int *sources, const uint64_t *weights, int count)
{
    const int number = model->node_count++;
    struct node *node = &model->nodes[number];
    memset(node, 0, sizeof *node);
    if (count == 1) {
        node->left = -1;
        node->right = sources[0];
        node->weight = weights[0];
        return number;
    }
    const int on_left = (count + 1) / 2;
    node->left = build(model, sources, weights, on_left);
    node->right = build(model, sources + on_left, weights + on_left, count - on_left);
    node->left_weight = model->nodes[node->left].weight;
    node->weight = node->left_weight + model->nodes[node->right].weight;
    return number;
}

static int next_source(struct model *model)
{
    int at = model->root;
    while (model->nodes[at].left >= 0) {
        struct node *node = &model->nodes[at];
        node->draws++;
        const bool left = node->draws * node->left_weight / node->weight > node->to_left;
        node->to_left += left;
        at = left ? node->left : node->right;
    }
    return model->nodes[at].right;
}

static bool is_drawn(const struct model *model, uint64_t source)
{
    for (int i = 0; i < model->node_count; i++)
        if (model->nodes[i].left < 0 && model->nodes[i].right == (int)source)
            return true;
    return false;
}

static void begin_mixture(struct model *model, const struct made_phase *phase)
{
    const struct made_run *run = model->run;
    int order[SOURCES], count = 0;
    uint64_t weights[SOURCES];
    for (uint64_t i = 0; i < run->sources; i++)
        if (!phase || phase->weights[i])
            order[count++] = (int)i;
    for (int i = 0; i < count; i++)
        for (int j = i + 1; j < count; j++)
            if (strcmp(run->names[order[j]], run->names[order[i]]) < 0) {
                const int swap = order[i];
                order[i] = order[j];
                order[j] = swap;
            }
    for (int i = 0; i < count; i++)
        weights[i] = !phase           ? 1
                     : phase->natural ? windows(run, (uint64_t)order[i], model->seq_len)
                                      : phase->weights[order[i]];
    model->node_count = 0;
    model->root = build(model, order, weights, count);
}

static void begin_length(struct model *model, uint64_t seq_len)
{
    for (uint64_t i = 0; i < model->run->sources; i++) {
        struct model_source *source = &model->sources[i];
        if (source->drawn_in_epoch)
            source->epoch++;
        source->drawn_in_epoch = 0;
        memset(source->shown, 0, sizeof source->shown);
        source->n = windows(model->run, i, seq_len);
    }
    model->seq_len = seq_len;
}

/* The place of draw `draw` of the run, which is the next one of its source. */
static void draw_place(struct model *model, uint64_t step, uint64_t draw, struct tokmap_place *place)
{
    const struct made_run *run = model->run;
    const int number = next_source(model);
    struct model_source *source = &model->sources[number];
    const char *name = run->names[number];
    const uint64_t stride = run->stride ? run->stride : model->seq_len;
    if (source->drawn_in_epoch == source->n) {
        source->epoch++;
        source->drawn_in_epoch = 0;
        memset(source->shown, 0, sizeof source->shown);
    }
    if (run->epochs_most[number] && source->epoch >= run->epochs_most[number] && model->ran_out == UINT64_MAX)
        model->ran_out = step;
    uint64_t window = source->drawn_in_epoch++, shift = 0;
    source->drawn++;
    if (run->order == TOKMAP_SHUFFLE) {
        struct tokmap_order order;
        assert_int_equal(tokmap_order_init(&order, source->n, run->seed, name, source->epoch), TOKMAP_OK);
        window = tokmap_order_window(&order, window);
    } else if (run->order >= TOKMAP_BLOCKS) {
        struct blocks_order order;
        blocks_init(&order, source->n, run->blocks, run->span, run->order == TOKMAP_EVEN, run->seed, name, strlen(name),
                    source->epoch);
        window = blocks_forward(&order, window);
    }
    assert_int_equal(source->shown[window]++, 0);
    if (run->order != TOKMAP_SEQUENTIAL && source->epoch && stride == model->seq_len && !run->tail_pad)
        shift = order_key_below(order_key("shift", run->seed, name, strlen(name), source->epoch), model->seq_len);
    *place = (struct tokmap_place){
        .step = step,
        .draw = draw,
        .source = (uint64_t)number,
        .epoch = source->epoch,
        .window = window,
        .first_token = (shift + window * stride) % run->tokens[number],
        .tokens = model->seq_len + run->lookahead,
    };
    if (run->tail_pad && place->first_token + place->tokens > run->tokens[number])
        place->tokens = run->tokens[number] - place->first_token;
}

/* Plays the run. Returns false if it is longer than the model's memory, or ends before its first step. */
static bool play(struct model *model, const struct made_run *run)
{
    memset(model, 0, sizeof *model);
    model->run = run;
    model->ran_out = UINT64_MAX;
    model->batch = run->batch;
    const bool counts = run->ends != BY_STEPS;
    uint64_t draw = 0, next = 0, left = 0, unit = 0;
    begin_length(model, run->seq_len);
    begin_mixture(model, NULL);
    for (uint64_t step = 0; step < STEPS; step++) {
        for (; next < run->phase_count && run->phases[next].step == step; next++) {
            const struct made_phase *phase = &run->phases[next];
            model->batch = phase->batch ? phase->batch : model->batch;
            if (phase->seq_len && phase->seq_len != model->seq_len)
                begin_length(model, phase->seq_len);
            if (phase->has_weights)
                begin_mixture(model, phase);
        }
        /* The windows that remain of the passes. A change of the length converts them, if the source is drawn. */
        const uint64_t n = model->sources[run->passes_of].n;
        if (counts && is_drawn(model, run->passes_of)) {
            left = unit == 0 ? run->end * n : left * n / unit;
            unit = n;
        }
        if (!counts && step == run->end)
            return model->steps = step, true;
        for (uint64_t i = 0; i < run->sources; i++)
            model->drawn_before[step][i] = model->sources[i].drawn;
        struct tokmap_place drawn[ROWS];
        uint64_t rows = 0;
        model->seq_lens[step] = model->seq_len;
        for (; rows < model->batch; rows++) {
            if (counts && unit && left == 0)
                break;
            draw_place(model, step, draw + rows, &drawn[rows]);
            if (counts && drawn[rows].source == run->passes_of)
                left--;
        }
        if (counts && rows < model->batch && (!run->tail_pad || rows == 0))
            return model->steps = step, step > 0;
        model->rows[step] = model->batch;
        model->valid[step] = rows;
        struct tokmap_order order;
        permutation_init(&order, order_key("rows", run->seed, "", 0, step), rows);
        for (uint64_t row = 0; row < model->batch; row++) {
            struct tokmap_place *place = &model->places[step][row];
            if (row < rows)
                *place = drawn[run->order == TOKMAP_SEQUENTIAL ? row : permutation_forward(&order, row)];
            else
                *place = (struct tokmap_place){.step = step, .draw = draw + row, .source = TOKMAP_NO_SOURCE};
            place->row = row;
        }
        draw += rows;
        for (uint64_t i = 0; i < run->sources; i++)
            model->drawn_before[step + 1][i] = model->sources[i].drawn;
        if (rows < model->batch)
            return model->steps = step + 1, true;
    }
    return model->steps = STEPS, run->ends == BY_STEPS && run->end == STEPS;
}

/* ---- comparison ---- */

struct collected {
    unsigned count;
    uint64_t last_epoch, last_window;
    unsigned char found[STEPS][ROWS];
    const struct model *model;
};

static int collect(void *user, const struct tokmap_place *place)
{
    struct collected *collected = user;
    assert_true(place->step < collected->model->steps);
    assert_memory_equal(place, &collected->model->places[place->step][place->row], sizeof *place);
    if (collected->count)
        assert_true(place->epoch > collected->last_epoch ||
                    (place->epoch == collected->last_epoch && place->window > collected->last_window));
    collected->last_epoch = place->epoch;
    collected->last_window = place->window;
    collected->found[place->step][place->row]++;
    collected->count++;
    return 0;
}

/* tokmap_run_find() reports each row once that holds a token of a range, and no other. */
static void check_find(const struct tokmap_run *run, const struct model *model)
{
    static struct collected collected;
    const uint64_t source = below(model->run->sources), tokens = model->run->tokens[source];
    const uint64_t first = below(tokens), count = 1 + below(tokens - first < 9 ? tokens - first : 9);
    const uint64_t from = below(model->steps), to = from + below(model->steps - from + 1);
    memset(&collected, 0, sizeof collected);
    collected.model = model;
    assert_int_equal(tokmap_run_find(run, source, first, count, from, to, collect, &collected, NULL), TOKMAP_OK);
    for (uint64_t step = 0; step < model->steps; step++)
        for (uint64_t row = 0; row < model->rows[step]; row++) {
            const struct tokmap_place *place = &model->places[step][row];
            bool holds = false;
            for (uint64_t i = 0; place->source == source && i < place->tokens; i++) {
                const uint64_t token = (place->first_token + i) % tokens;
                holds = holds || (token >= first && token < first + count);
            }
            holds = holds && step >= from && step < to && tokmap_run_delivers(run, step);
            assert_int_equal(collected.found[step][row], holds);
        }
}

/* Many rows at once, in a random order and with repetitions. */
static void check_rows_at_once(struct run_walk *walk, const struct model *model, uint64_t step)
{
    enum { MOST = 1100 };
    static uint64_t rows[MOST];
    static struct tokmap_place places[MOST];
    const uint64_t count = below(below(8) ? 40 : MOST), limit = below(4) ? model->valid[step] : model->rows[step];
    for (uint64_t i = 0; i < count; i++)
        rows[i] = below(limit ? limit : 1);
    run_walk_rows(walk, step, rows, count, places);
    for (uint64_t i = 0; i < count; i++)
        assert_memory_equal(&places[i], &model->places[step][rows[i]], sizeof places[i]);
}

static void check_rows(const struct tokmap_run *run, const struct model *model)
{
    struct run_walk walk, kept;
    run_walk_init(&walk, run);
    run_walk_init(&kept, run);
    assert_int_equal(run_walk_keep(&kept, NULL), TOKMAP_OK);
    for (uint64_t step = 0; step < model->steps; step++) {
        struct run_step of;
        run_phase_of(run, step, &of);
        assert_int_equal(of.batch, model->rows[step]);
        assert_int_equal(of.seq_len, model->seq_lens[step]);
        assert_int_equal(of.valid, model->valid[step]);
        assert_int_equal(of.phase, tokmap_run_phase_at(run, step));
        assert_int_equal(tokmap_run_rows(run, step), model->rows[step]);
        assert_int_equal(tokmap_run_real_rows(run, step), model->valid[step]);
        for (uint64_t row = 0; row < model->rows[step]; row++) {
            const struct tokmap_place *expected = &model->places[step][row];
            struct tokmap_place place;
            assert_int_equal(tokmap_run_locate(run, step, row, &place, NULL), TOKMAP_OK);
            assert_memory_equal(&place, expected, sizeof place);
            run_walk_place(&walk, step, row, &place);
            assert_memory_equal(&place, expected, sizeof place);
            run_walk_place(&kept, step, row, &place);
            assert_memory_equal(&place, expected, sizeof place);
            struct tokmap_extent extent;
            uint64_t extents = 7;
            assert_int_equal(run_row_extents(run, &place, &extent, 1, &extents, NULL), TOKMAP_OK);
            assert_int_equal(extents, row < model->valid[step]);
            if (extents)
                assert_true(extent.first_token == place.first_token && extent.tokens == place.tokens);
        }
        check_rows_at_once(&walk, model, step);
        check_rows_at_once(&kept, model, step);
        struct tokmap_place place;
        assert_int_equal(tokmap_run_locate(run, step, model->rows[step], &place, NULL), TOKMAP_ERROR_RANGE);
    }
    for (int i = 0; i < 60; i++) { /* in any order */
        const uint64_t step = below(model->steps), row = below(model->rows[step]);
        struct tokmap_place place;
        run_walk_place(i % 2 ? &walk : &kept, step, row, &place);
        assert_memory_equal(&place, &model->places[step][row], sizeof place);
    }
    run_walk_free(&kept);
}

static void check_counts(const struct tokmap_run *run, const struct model *model)
{
    struct tokmap_run_info info = TOKMAP_RUN_INFO_INIT;
    assert_int_equal(tokmap_run_info(run, &info), TOKMAP_OK);
    assert_int_equal(info.steps, model->steps);
    assert_int_equal(info.real_rows_last, model->valid[model->steps - 1]);
    uint64_t total[SOURCES] = {0}, draws;
    for (uint64_t step = 0; step <= model->steps; step++)
        for (uint64_t i = 0; i < model->run->sources; i++) {
            assert_int_equal(tokmap_run_drawn(run, i, step, &draws), TOKMAP_OK);
            assert_int_equal(draws, model->drawn_before[step][i]);
        }
    assert_int_equal(tokmap_run_drawn(run, 0, model->steps + 1, &draws), TOKMAP_ERROR_RANGE);
    for (uint64_t phase = 0; phase < info.phases; phase++) {
        struct tokmap_phase_info of = TOKMAP_PHASE_INFO_INIT;
        assert_int_equal(tokmap_run_phase(run, phase, &of), TOKMAP_OK);
        assert_true(of.first_step < of.end_step && of.end_step <= model->steps);
        for (uint64_t i = 0; i < of.shares; i++) {
            struct tokmap_share_info share = TOKMAP_SHARE_INFO_INIT;
            assert_int_equal(tokmap_run_share(run, phase, i, &share), TOKMAP_OK);
            assert_int_equal(share.draws, model->drawn_before[of.end_step][share.source] -
                                              model->drawn_before[of.first_step][share.source]);
            assert_int_equal(share.windows, windows(model->run, share.source, of.seq_len));
            total[share.source] += share.draws;
        }
    }
    for (uint64_t i = 0; i < model->run->sources; i++)
        assert_int_equal(total[i], model->drawn_before[model->steps][i]);
}

/* The run's own text is the same run. */
static void check_text(const struct tokmap_run *run, const struct model *model)
{
    struct tokmap_run *again;
    struct tokmap_cursor cursor, other;
    assert_non_null(tokmap_run_text(run));
    assert_int_equal(tokmap_run_parse(&again, tokmap_run_text(run), NULL, NULL), TOKMAP_OK);
    assert_string_equal(tokmap_run_text(again), tokmap_run_text(run));
    assert_int_equal(tokmap_run_cursor(run, model->steps, &cursor, NULL), TOKMAP_OK);
    assert_int_equal(tokmap_run_cursor(again, model->steps, &other, NULL), TOKMAP_OK);
    assert_memory_equal(&cursor, &other, sizeof cursor);
    uint64_t tokens = 0;
    for (uint64_t step = 0; step < model->steps; step++)
        tokens += tokmap_run_delivers(run, step) ? model->rows[step] * model->seq_lens[step] : 0;
    assert_int_equal(cursor.tokens, tokens);
    tokmap_run_close(again);
}

/* Whether each phase that the run reaches has windows of every source that it names, and a stride that fits. */
static bool is_possible(const struct made_run *run)
{
    uint64_t seq_len = run->seq_len;
    bool weights[SOURCES];
    memset(weights, 1, sizeof weights);
    for (uint64_t i = 0; i <= run->phase_count; i++) {
        const struct made_phase *phase = i ? &run->phases[i - 1] : NULL;
        if (phase && phase->seq_len)
            seq_len = phase->seq_len;
        for (uint64_t s = 0; s < run->sources; s++)
            if (phase && phase->has_weights)
                weights[s] = phase->weights[s] > 0;
        if (!phase && run->phase_count && run->phases[0].step == 0)
            continue;
        for (uint64_t s = 0; s < run->sources; s++)
            if (weights[s] && windows(run, s, seq_len) == 0)
                return false;
    }
    return true;
}

static void as_the_model_says(void **state)
{
    (void)state;
    static struct made_run made;
    static struct model model;
    unsigned played = 0, out = 0, padded = 0;
    for (int i = 0; i < RUNS; i++) {
        make_run(&made);
        if (!is_possible(&made) || !play(&model, &made))
            continue;
        struct tokmap_run *run = NULL;
        struct tokmap_error error = {0};
        const enum tokmap_status status = tokmap_run_parse(&run, made.text, NULL, &error);
        if (model.ran_out < model.steps) {
            char step[64];
            (void)snprintf(step, sizeof step, "runs out in step %u:", (unsigned)model.ran_out);
            if (status != TOKMAP_ERROR_RANGE || !strstr(error.message, step) || error.line == 0)
                fail_msg("run %d: %s\nexpected: %s\n%s", i, made.text, step, error.message);
            out++;
            continue;
        }
        if (status)
            fail_msg("run %d: %s\n%u: %s", i, made.text, error.line, error.message);
        check_counts(run, &model);
        check_rows(run, &model);
        check_text(run, &model);
        for (int j = 0; j < 10; j++)
            check_find(run, &model);
        padded += model.valid[model.steps - 1] < model.rows[model.steps - 1];
        played++;
        tokmap_run_close(run);
    }
    print_message("%u runs played, %u of them with padding rows; in %u a source ran out\n", played, padded, out);
    assert_true(played > RUNS / 3 && out > 20 && padded > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_the_model_says),
    };
    return cmocka_run_group_tests_name("run_phases", tests, NULL, NULL);
}
