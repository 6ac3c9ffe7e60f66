/* SPDX-License-Identifier: MIT */
/* test_token_repeats.c - repeats of tokens: those of the example are found, and tokens of every kind and number come
 * back from what is found, directly and through zstd. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "format/sealed.h"
#include "format/token_repeats.h"

static struct token_repeats repeats;
static uint8_t tokens[FRAME_BYTES], again[FRAME_BYTES];

/* Fills `tokens` with numbers below `values`, of which runs are copies of earlier ones if `copies` is true. */
static void tokens_make(size_t count, uint32_t width, uint64_t values, bool copies, uint64_t state)
{
    for (size_t i = 0; i < count;) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const uint64_t random = state >> 33;
        if (copies && i > 8 && random % 4 == 0) {
            const size_t from = (size_t)(random / 4 % i);
            for (uint64_t left = random % 61; left && i < count; left--, i++)
                memmove(tokens + i * width, tokens + (from + 61 - left) % i * width, width);
            continue;
        }
        const uint32_t token = (uint32_t)(random % values);
        memcpy(tokens + i++ * width, &token, width);
    }
}

/* Returns the bytes that the repeats stand for, and checks that each begins and ends between tokens. */
static size_t replay(size_t count, uint32_t width)
{
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        const ZSTD_Sequence *one = &repeats.list[i];
        assert_true(one->litLength + one->matchLength <= FRAME_BYTES - at);
        memcpy(again + at, tokens + at, one->litLength);
        at += one->litLength;
        assert_int_equal(one->matchLength == 0, i + 1 == count);
        if (!one->matchLength)
            return at;
        assert_true(one->offset && one->offset <= at && one->matchLength >= TOKEN_REPEATS_SHORT);
        assert_int_equal((one->offset | one->matchLength | at) % width, 0);
        for (size_t k = 0; k < one->matchLength; k++, at++)
            again[at] = again[at - one->offset];
    }
    return at;
}

static void check(ZSTD_CCtx *zstd, size_t bytes, uint32_t width)
{
    static uint8_t stored[FRAME_STORED_MOST];
    const size_t count = token_repeats_find(&repeats, tokens, bytes, width);
    assert_int_equal(replay(count, width), bytes);
    assert_memory_equal(again, tokens, bytes);
    const size_t made = ZSTD_compressSequences(zstd, stored, sizeof stored, repeats.list, count, tokens, bytes);
    assert_false(ZSTD_isError(made));
    memset(again, 0xee, bytes);
    assert_int_equal(ZSTD_decompress(again, sizeof again, stored, made), bytes);
    assert_memory_equal(again, tokens, bytes);
}

static void tokens_of_every_kind_come_back(void **unused)
{
    (void)unused;
    static const uint64_t values[] = {1, 2, 50, 50257};
    ZSTD_CCtx *zstd = ZSTD_createCCtx();
    assert_non_null(zstd);
    assert_false(ZSTD_isError(ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, 1)));
    assert_false(ZSTD_isError(ZSTD_CCtx_setParameter(zstd, ZSTD_c_blockDelimiters, ZSTD_sf_explicitBlockDelimiters)));
    for (uint32_t width = 2; width <= 4; width += 2)
        for (size_t kind = 0; kind < 8; kind++) {
            const size_t most = (size_t)FRAME_BYTES / width;
            tokens_make(most, width, values[kind / 2], kind % 2, kind + width);
            for (size_t count = 1; count <= most; count += count < 100 ? 1 : 5000)
                check(zstd, count * width, width);
            check(zstd, FRAME_BYTES, width);
        }
    (void)ZSTD_freeCCtx(zstd);
}

static void the_example_is_found(void **unused)
{
    (void)unused;
    static const char letters[] = "zabcdxbcyabcdefghijkl";
    for (size_t i = 0; letters[i]; i++)
        store16(tokens + 2 * i, (uint8_t)letters[i]);
    assert_int_equal(token_repeats_find(&repeats, tokens, 2 * strlen(letters), 2), 3);
    const ZSTD_Sequence wanted[] = {{8, 12, 4, 0}, {16, 2, 8, 0}, {0, 16, 0, 0}};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(repeats.list[i].offset, wanted[i].offset);
        assert_int_equal(repeats.list[i].litLength, wanted[i].litLength);
        assert_int_equal(repeats.list[i].matchLength, wanted[i].matchLength);
    }
}

/* What was found before in the same memory has no effect. */
static void the_memory_does_not_matter(void **unused)
{
    (void)unused;
    static struct token_repeats first;
    tokens_make(FRAME_BYTES / 2, 2, 3000, true, 5);
    memset(&repeats, 0xff, sizeof repeats);
    const size_t count = token_repeats_find(&repeats, tokens, FRAME_BYTES, 2);
    assert_int_equal(token_repeats_find(&first, tokens, FRAME_BYTES, 2), count);
    assert_true(count > 1000);
    for (size_t i = 0; i < count; i++)
        assert_true(first.list[i].offset == repeats.list[i].offset &&
                    first.list[i].matchLength == repeats.list[i].matchLength);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_is_found),
        cmocka_unit_test(tokens_of_every_kind_come_back),
        cmocka_unit_test(the_memory_does_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
