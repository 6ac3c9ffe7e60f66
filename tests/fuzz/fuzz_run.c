/* SPDX-License-Identifier: MIT */
/*
 * fuzz_run.c - parsing hostile texts of runs and cursors. An accepted text must be within the limits, and must have the
 * same meaning after it is printed and parsed again.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_case.h"
#include "run/run_text.h"
#include "tokmap/tokmap.h"

static void check_phases(const struct run_spec *spec)
{
    for (size_t i = 0; i < spec->phase_count; i++) {
        const struct phase_line *phase = &spec->phases[i];
        REQUIRE(phase->step < RUN_DRAWS_MOST && (i == 0 || phase[-1].step < phase->step));
        REQUIRE(phase->kind != WEIGHTS_NONE || (phase->weight_count == 0 && (phase->batch || phase->seq_len)));
        REQUIRE(phase->batch <= RUN_BATCH_MOST && phase->seq_len <= RUN_SEQ_LEN_MOST && phase->decimals <= 9);
        REQUIRE(!phase->seq_len || spec->stride <= phase->seq_len);
        uint64_t sum = 0;
        for (size_t k = 0; k < phase->weight_count; k++) {
            REQUIRE(phase->weights[k].source < spec->source_count);
            REQUIRE(!__builtin_add_overflow(sum, phase->weights[k].amount, &sum) && sum <= RUN_WEIGHTS_MOST);
        }
        REQUIRE(sum > 0 || phase->kind == WEIGHTS_NATURAL || phase->kind == WEIGHTS_NONE);
    }
    REQUIRE(spec->source_count == 1 || (spec->phases[0].step == 0 && spec->phases[0].kind != WEIGHTS_NONE));
    REQUIRE(spec->stride <= spec->seq_len);
    REQUIRE(spec->passes_of == SIZE_MAX || spec->passes_of < spec->source_count);
}

static void require_same(const struct run_spec *a, const struct run_spec *b)
{
    REQUIRE(a->seq_len == b->seq_len && a->lookahead == b->lookahead && a->batch == b->batch && a->seed == b->seed);
    REQUIRE(a->steps == b->steps && a->passes == b->passes && a->passes_of == b->passes_of);
    REQUIRE(a->order == b->order && a->blocks == b->blocks && a->span == b->span && a->stride == b->stride);
    REQUIRE(a->tail_pad == b->tail_pad && a->pad_id == b->pad_id && a->source_count == b->source_count);
    for (size_t i = 0; i < a->source_count; i++) {
        const struct source_line *x = &a->sources[i], *y = &b->sources[i];
        REQUIRE(strcmp(x->name, y->name) == 0 && strcmp(x->data, y->data) == 0 && x->epochs_most == y->epochs_most);
        REQUIRE(!x->plan == !y->plan && (!x->plan || strcmp(x->plan, y->plan) == 0));
    }
    REQUIRE(a->phase_count == b->phase_count && a->skip_count == b->skip_count);
    for (size_t i = 0; i < a->phase_count; i++) {
        const struct phase_line *x = &a->phases[i], *y = &b->phases[i];
        REQUIRE(x->step == y->step && x->batch == y->batch && x->seq_len == y->seq_len && x->kind == y->kind &&
                x->decimals == y->decimals && x->weight_count == y->weight_count);
        for (size_t k = 0; k < x->weight_count; k++)
            REQUIRE(x->weights[k].source == y->weights[k].source && x->weights[k].amount == y->weights[k].amount);
    }
    for (size_t i = 0; i < a->skip_count; i++)
        REQUIRE(a->skips[i].first == b->skips[i].first && a->skips[i].end == b->skips[i].end);
}

static void check_run(const struct run_spec *spec)
{
    REQUIRE(spec->seq_len >= 1 && spec->seq_len <= RUN_SEQ_LEN_MOST && spec->lookahead <= RUN_SEQ_LEN_MOST);
    REQUIRE(spec->batch >= 1 && spec->batch <= RUN_BATCH_MOST && spec->source_count >= 1);
    REQUIRE(spec->steps == TOKMAP_FOREVER || spec->passes == TOKMAP_FOREVER);
    for (size_t i = 0; i < spec->source_count; i++) {
        const struct source_line *source = &spec->sources[i];
        REQUIRE(source->name[0] && strlen(source->name) <= RUN_NAME_MOST && source->data[0] && source->line);
        REQUIRE(!source->plan || source->plan[0]);
    }
    for (size_t i = 0; i < spec->skip_count; i++)
        REQUIRE(spec->skips[i].first < spec->skips[i].end && spec->skips[i].end <= RUN_DRAWS_MOST);
    check_phases(spec);

    char *text = run_spec_print(spec);
    REQUIRE(text);
    struct run_spec again;
    REQUIRE(run_text_read(&again, text, strlen(text), NULL, NULL) == TOKMAP_OK);
    require_same(spec, &again);
    char *twice = run_spec_print(&again);
    REQUIRE(twice && strcmp(text, twice) == 0);
    run_spec_free(&again);
    free(twice);
    free(text);
}

static void check_error(enum tokmap_status status, const struct tokmap_error *error)
{
    REQUIRE(status == TOKMAP_ERROR_RUN);
    REQUIRE(error->status == status && error->message[0] && strcmp(error->path, "x.run") == 0);
    REQUIRE(error->line > 0 || strstr(error->message, "the run has no '"));
}

static void try_cursor(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    REQUIRE(text);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    struct tokmap_cursor cursor, again;
    if (tokmap_cursor_parse(&cursor, text, NULL) == TOKMAP_OK) {
        char printed[TOKMAP_CURSOR_TEXT];
        tokmap_cursor_print(&cursor, printed);
        REQUIRE(tokmap_cursor_parse(&again, printed, NULL) == TOKMAP_OK);
        REQUIRE(memcmp(&cursor.past, &again.past, sizeof cursor.past) == 0 && cursor.step == again.step &&
                cursor.tokens == again.tokens && memcmp(&cursor.of, &again.of, sizeof cursor.of) == 0);
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct run_spec spec;
    struct tokmap_error error;
    memset(&error, 0, sizeof error);
    enum tokmap_status status = run_text_read(&spec, (const char *)data, size, "x.run", &error);
    if (status == TOKMAP_OK) {
        check_run(&spec);
        run_spec_free(&spec);
    } else {
        check_error(status, &error);
    }
    try_cursor(data, size);
    return 0;
}
