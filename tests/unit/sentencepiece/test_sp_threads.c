/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/*
 * test_sp_threads.c - models of different vocabularies can be built at the same time.
 *
 * Sorting pieces by score once went through a variable that all builds shared. The first test makes the clash certain:
 * it replaces qsort and qsort_r, and builds a second vocabulary completely while the first one is being sorted. The
 * second test lets two threads build over and over; the thread sanitizer runs it too.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "platform/os.h"
#include "sentencepiece/sp_engine.h"
#include "sentencepiece/sp_merge.h"

/* ---- vocabularies ---- */

enum { LETTERS = 8, PIECES = 1 + LETTERS + LETTERS * LETTERS };

/* <unk>, eight letters, and all their pairs, whose scores depend on the number of the vocabulary. */
struct vocabulary {
    struct sp_source source;
    uint8_t bytes[4 * PIECES], kinds[PIECES];
    uint32_t offsets[PIECES + 1];
    float scores[PIECES];
};

static void add_piece(struct vocabulary *v, const char *text, enum sp_kind kind, float score)
{
    const uint32_t id = v->source.vocabulary++;
    memcpy(v->bytes + v->offsets[id], text, strlen(text));
    v->offsets[id + 1] = v->offsets[id] + (uint32_t)strlen(text);
    v->kinds[id] = (uint8_t)kind;
    v->scores[id] = score;
}

/* multiplier: odd, so that the scores of pairs are all different. */
static void make_vocabulary(struct vocabulary *v, uint32_t multiplier)
{
    char text[3] = "";
    memset(v, 0, sizeof *v);
    add_piece(v, "<u>", SP_UNKNOWN, 0);
    for (int i = 0; i < LETTERS; i++) {
        text[0] = (char)('a' + i);
        add_piece(v, text, SP_NORMAL, -1000);
    }
    for (uint32_t i = 0; i < LETTERS * LETTERS; i++) {
        text[0] = (char)('a' + i / LETTERS);
        text[1] = (char)('a' + i % LETTERS);
        add_piece(v, text, SP_NORMAL, -(float)(i * multiplier % (LETTERS * LETTERS)));
    }
    v->source.path = "made";
    v->source.bytes = v->bytes;
    v->source.offsets = v->offsets;
    v->source.kinds = v->kinds;
    v->source.scores = v->scores;
}

/* Builds a model and merges all texts of four letters. Returns a hash of their ids, or 0 if the build failed. Several
 * threads call it at once, so it asserts nothing. */
static uint64_t ids_hash(const struct vocabulary *v)
{
    struct sp_model *model;
    struct bpe_scratch scratch = {.memory = NULL};
    struct tokmap_error error;
    uint64_t hash = 0xCBF29CE484222325u;
    if (sp_model_build(&model, &v->source, &error))
        return 0;
    for (uint32_t number = 0; number < LETTERS * LETTERS * LETTERS * LETTERS; number++) {
        uint8_t text[4];
        uint32_t ids[4], rest = number;
        for (int i = 0; i < 4; i++, rest /= LETTERS)
            text[i] = (uint8_t)('a' + rest % LETTERS);
        const size_t count = model->head.merge(&model->head, &scratch, text, sizeof text, ids);
        for (size_t i = 0; i < count; i++)
            hash = (hash ^ ids[i]) * 0x100000001B3u;
        hash = (hash ^ 0xFF) * 0x100000001B3u;
    }
    free(scratch.memory);
    sp_model_free(model);
    return hash;
}

/* ---- a second build in the middle of a sort ---- */

static const struct vocabulary *interrupting;
static uint64_t interrupting_hash;
static int sorts;

static void build_interrupting(void *unused)
{
    (void)unused;
    const struct vocabulary *v = interrupting;
    interrupting = NULL;
    interrupting_hash = ids_hash(v);
}

static void sort_interrupted(char *items, size_t count, size_t size, int (*compare)(const void *, const void *),
                             int (*compare_r)(const void *, const void *, void *), void *context)
{
    char moving[64];
    __atomic_add_fetch(&sorts, 1, __ATOMIC_RELAXED);
    if (interrupting && count > 1) {
        struct os_thread *thread;
        if (!os_thread_start(&thread, "second", build_interrupting, NULL))
            os_thread_join(thread);
    }
    if (size > sizeof moving)
        abort();
    for (size_t i = 1; i < count; i++) {
        size_t at = i;
        memcpy(moving, items + i * size, size);
        for (; at; at--) {
            const char *before = items + (at - 1) * size;
            if ((compare ? compare(before, moving) : compare_r(before, moving, context)) <= 0)
                break;
            memcpy(items + at * size, before, size);
        }
        memcpy(items + at * size, moving, size);
    }
}

/* In place of the C library's: an insertion sort, and before it, once, the second build on another thread. */
void qsort(void *base, size_t count, size_t size, int (*compare)(const void *, const void *));
void qsort(void *base, size_t count, size_t size, int (*compare)(const void *, const void *))
{
    sort_interrupted(base, count, size, compare, NULL, NULL);
}

void qsort_r(void *base, size_t count, size_t size, int (*compare)(const void *, const void *, void *), void *context);
void qsort_r(void *base, size_t count, size_t size, int (*compare)(const void *, const void *, void *), void *context)
{
    sort_interrupted(base, count, size, NULL, compare, context);
}

static void a_build_inside_a_sort(void **unused)
{
    static struct vocabulary first, second;
    (void)unused;
    make_vocabulary(&first, 3);
    make_vocabulary(&second, 29);
    const uint64_t first_alone = ids_hash(&first), second_alone = ids_hash(&second);
    assert_true(first_alone && second_alone && first_alone != second_alone);
    interrupting = &second;
    sorts = 0;
    const uint64_t first_interrupted = ids_hash(&first);
    assert_true(sorts > 1);
    assert_null(interrupting);
    assert_true(interrupting_hash == second_alone);
    assert_true(first_interrupted == first_alone);
}

/* ---- two threads ---- */

enum { ROUNDS = 60 };

struct worker {
    struct vocabulary vocabulary;
    uint64_t alone;
    int wrong;
};

static void build_again(void *argument)
{
    struct worker *worker = argument;
    for (int round = 0; round < ROUNDS; round++)
        worker->wrong += ids_hash(&worker->vocabulary) != worker->alone;
}

static void two_threads_build(void **unused)
{
    static struct worker workers[2];
    struct os_thread *threads[2];
    (void)unused;
    for (uint32_t i = 0; i < 2; i++) {
        make_vocabulary(&workers[i].vocabulary, i ? 29 : 3);
        workers[i].alone = ids_hash(&workers[i].vocabulary);
        assert_true(workers[i].alone != 0);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(os_thread_start(&threads[i], "builder", build_again, &workers[i]), 0);
    for (int i = 0; i < 2; i++)
        os_thread_join(threads[i]);
    assert_int_equal(workers[0].wrong, 0);
    assert_int_equal(workers[1].wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_build_inside_a_sort), cmocka_unit_test(two_threads_build)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
