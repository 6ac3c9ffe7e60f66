/*
 * test_first_state.c - the first state of a large model takes the memory that was made ready while the model was built,
 * and two threads fill its first cache. It has what the state of one thread has.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "bpe/bpe_build.h"
#include "bpe/bpe_encode.h"
#include "common/cpu.h"
#include "platform/os.h"
#include "platform/table_key.h"

#define THREES 45000u /* tokens of three bytes, beside all those of one and two */
#define VOCABULARY (256u + 65536u + THREES)

static struct bpe_model *model_new(void)
{
    static uint8_t bytes[256 + 2 * 65536 + 3 * THREES + 16];
    static uint32_t offsets[VOCABULARY + 1];
    uint32_t id = 0, used = 0;
    for (uint32_t first = 0; first < 256; first++, offsets[++id] = used)
        bytes[used++] = (uint8_t)first;
    for (uint32_t pair = 0; pair < 65536; pair++, offsets[++id] = used) {
        bytes[used++] = (uint8_t)(pair >> 8);
        bytes[used++] = (uint8_t)pair;
    }
    for (uint32_t three = 0; three < THREES; three++, offsets[++id] = used) {
        bytes[used++] = (uint8_t)(three >> 8);
        bytes[used++] = (uint8_t)three;
        bytes[used++] = 'x';
    }
    assert_int_equal(id, VOCABULARY);
    const struct bpe_source source = {
        .path = "test", .vocabulary = VOCABULARY, .bytes = bytes, .offsets = offsets, .whole = true};
    struct bpe_model *model = NULL;
    assert_int_equal(bpe_model_build(&model, &source, NULL), TOKMAP_OK);
    return model;
}

/* A state whose caches have the given key. */
static struct bpe_state *state_new(const struct bpe_model *model)
{
    struct bpe_state *state = NULL;
    table_key_fix(7);
    assert_int_equal(bpe_state_new(&state, model, cpu_variant_best(), NULL), TOKMAP_OK);
    table_key_fix(0);
    return state;
}

/* Entries of a bucket and the one beside it, in any order. */
static uint64_t entries_sum(const struct bpe_bucket *buckets, uint32_t *count)
{
    uint64_t sum = 0;
    *count = 0;
    for (uint32_t i = 0; i < 4; i++)
        if (buckets[i / 2].keys[i % 2].high) {
            sum += (buckets[i / 2].keys[i % 2].low ^ buckets[i / 2].values[i % 2][0]) * 0x9E3779B97F4A7C15u;
            ++*count;
        }
    return sum;
}

static void first_state_is_like_others(void **unused)
{
    (void)unused;
    struct bpe_model *model = model_new();
    if (os_processors() < 2) {
        assert_null(model->spare);
        bpe_state_prepare(model);
    }
    assert_true(model->seed_count > 100000);
    void *const ready = model->spare->memory;
    assert_non_null(ready);
    struct bpe_state *first = state_new(model), *second = state_new(model);
    assert_ptr_equal(first->buckets, ready);
    assert_ptr_not_equal(second->buckets, ready);
    assert_null(model->spare->memory);
    uint32_t all = 0, count, same;
    for (uint32_t i = 0; i <= first->bucket_mask; i += 2, all += count) {
        const uint64_t sum = entries_sum(first->buckets + i, &count), other = entries_sum(second->buckets + i, &same);
        assert_int_equal(count, same);
        assert_true(count == 4 || sum == other); /* a full one may have lost another entry */
    }
    assert_in_range(all, model->seed_count - model->seed_count / 20, model->seed_count);
    bpe_state_free(first);
    bpe_state_free(second);
    bpe_model_free(model);
}

/* A model that no state was made of frees the memory. Under a sanitizer, a leak fails the test. */
static void unused_memory_is_freed(void **unused)
{
    (void)unused;
    struct bpe_model *model = model_new();
    assert_int_equal(model->spare != NULL, os_processors() > 1);
    bpe_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(first_state_is_like_others),
                                       cmocka_unit_test(unused_memory_is_freed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
