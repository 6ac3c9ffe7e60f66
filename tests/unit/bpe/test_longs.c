/* SPDX-License-Identifier: MIT */
/*
 * test_longs.c - the second cache: pieces stay when it grows, each with its own ids, and the store for those that do
 * not fit a line can be emptied.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "bpe/bpe_build.h"
#include "bpe/bpe_encode.h"
#include "bpe/bpe_entries.h"
#include "common/bytes.h"
#include "pretokenize/pretokenizer.h"

enum { LONGEST = 60, MOST_IDS = 12, GIANT = 2000 };

/* A piece that its number alone determines. */
struct made {
    uint8_t bytes[LONGEST];
    size_t count;
    uint32_t ids[MOST_IDS];
    size_t id_count;
};

static struct made piece_of(uint32_t number, bool wide)
{
    struct made piece = {.count = 4 + number * UINT32_C(2654435761) % (LONGEST - 3)};
    for (size_t i = 4; i < piece.count; i++)
        piece.bytes[i] = (uint8_t)(number * i);
    store32(piece.bytes, number);
    piece.id_count = 1 + number % MOST_IDS;
    for (uint32_t i = 0; i < piece.id_count; i++)
        piece.ids[i] = (number + i) & (wide ? 0x0FFFFFFF : 0xFFFF);
    return piece;
}

static uint64_t hash_of(const struct bpe_state *state, const struct made *piece)
{
    return piece->count > 15 ? bpe_long_hash(state->seed, piece->bytes, piece->count)
                             : bpe_short_hash(state->seed, bpe_key_of(piece->bytes, (uint32_t)piece->count));
}

static struct bpe_state *make_state(bool wide)
{
    static uint8_t bytes[256];
    static uint32_t offsets[257];
    const struct bpe_source source = {.path = "made",
                                      .vocabulary = 256,
                                      .bytes = bytes,
                                      .offsets = offsets,
                                      .whole = true,
                                      .rules = *split_rules_named("gpt2")};
    struct bpe_model *model;
    struct bpe_state *state;
    struct tokmap_error error;
    for (uint32_t i = 0; i <= 256; i++) {
        bytes[i % 256] = (uint8_t)i;
        offsets[i] = i;
    }
    assert_int_equal(bpe_model_build(&model, &source, &error), TOKMAP_OK);
    model->wide = wide;
    assert_int_equal(bpe_state_new(&state, model, CPU_SCALAR, &error), TOKMAP_OK);
    return state;
}

static void free_state(struct bpe_state *state)
{
    struct bpe_model *model = (struct bpe_model *)(uintptr_t)state->model;
    bpe_state_free(state);
    bpe_model_free(model);
}

static void add(struct bpe_state *state, uint32_t number)
{
    const struct made piece = piece_of(number, state->model->wide);
    bpe_long_add(state, hash_of(state, &piece), piece.bytes, piece.count, piece.ids, piece.id_count);
}

/* Returns whether the cache holds a piece, whose ids must be its own then. */
static bool holds(struct bpe_state *state, uint32_t number)
{
    const struct made piece = piece_of(number, state->model->wide);
    const void *ids;
    uint32_t largest = 0;
    const struct bpe_long *line = bpe_long_find(state, hash_of(state, &piece), piece.bytes, piece.count, &ids);
    if (!line)
        return false;
    assert_int_equal(line->ids, piece.id_count);
    for (size_t i = 0; i < piece.id_count; i++) {
        const uint8_t *at = ids;
        assert_int_equal(state->model->wide ? load32(at + 4 * i) : load16(at + 2 * i), piece.ids[i]);
        largest = piece.ids[i] > largest ? piece.ids[i] : largest;
    }
    assert_int_equal(line->largest, largest);
    return true;
}

static uint32_t lines_used(const struct bpe_state *state)
{
    uint32_t used = 0;
    for (size_t i = 0; i < BPE_LONGS; i++)
        used += state->longs[i].tag != 0;
    return used;
}

/* Most pieces have at most 52 bytes with their ids, so the store is not full in the end. */
static void pieces_stay_when_the_cache_grows(void **unused)
{
    static const uint32_t fours[] = {8192, 16384, 49152};
    enum { PIECES = 24000 };
    for (int wide = 0; wide < 2; wide++) {
        struct bpe_state *state = make_state(wide);
        uint32_t grown = 0;
        assert_int_equal(state->long_fours, fours[0]);
        for (uint32_t number = 0; number < PIECES; number++) {
            const uint32_t before = state->long_fours;
            uint32_t held = 0;
            add(state, number);
            if (!state->counts.stores_emptied)
                assert_true(holds(state, number));
            if (state->long_fours == before)
                continue;
            assert_int_equal(state->long_fours, fours[++grown]);
            for (uint32_t old = 0; old <= number; old++)
                held += holds(state, old);
            print_message("%u of %u pieces after the cache has grown\n", held, number + 1);
            assert_true(held >= (number + 1) / 100 * 99);
            assert_int_equal(held, lines_used(state));
            assert_int_equal(held, state->longs_used);
        }
        assert_int_equal(grown, 2);
        assert_int_equal(state->counts.stores_emptied, 0);
        free_state(state);
    }
}

/* A full store empties the cache, which is used again from its beginning, and keeps its size. */
static void a_full_store_empties_the_cache(void **unused)
{
    static uint8_t bytes[GIANT];
    struct bpe_state *state = make_state(false);
    const uint32_t id = 7;
    const void *ids;
    for (uint32_t number = 0; number < 10000; number++)
        add(state, number);
    for (uint32_t number = 0; !state->counts.stores_emptied; number++) {
        assert_true(number < 2 * 1048576 / GIANT);
        store32(bytes, number);
        const uint64_t hash = bpe_long_hash(state->seed, bytes, GIANT);
        bpe_long_add(state, hash, bytes, GIANT, &id, 1);
        assert_non_null(bpe_long_find(state, hash, bytes, GIANT, &ids));
    }
    assert_int_equal(state->longs_used, 1);
    assert_int_equal(lines_used(state), 1);
    assert_int_equal(state->long_fours, 16384);
    add(state, 1);
    assert_true(holds(state, 1) && !holds(state, 2));
    free_state(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pieces_stay_when_the_cache_grows),
                                       cmocka_unit_test(a_full_store_empties_the_cache)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
