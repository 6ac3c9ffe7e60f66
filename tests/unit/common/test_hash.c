/* SPDX-License-Identifier: MIT */
/* hash.h: every variant that the processor has returns the values of the scalar XXH3, in one call and in parts. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/cpu.h"
#include "common/hash_variants.h"
#include "support/shard_help.h"

#define XXH_INLINE_ALL
#define XXH_VECTOR XXH_SCALAR
#include <xxhash.h>

static const char *const names[] = {"scalar", "sse2", "avx2", "avx512", "neon"};
enum { NAMES = sizeof names / sizeof names[0], BYTES = 1 << 21 };

static uint8_t *random_bytes(void)
{
    uint8_t *bytes = malloc(BYTES);
    assert_non_null(bytes);
    uint64_t state = 1;
    for (size_t i = 0; i < BYTES; i += 8) {
        uint64_t next = random_next(&state);
        memcpy(bytes + i, &next, 8);
    }
    return bytes;
}

static void variants_agree_with_the_scalar_hash(void **unused)
{
    (void)unused;
    uint8_t *bytes = random_bytes();
    uint64_t state = 2;
    int tested = 0;
    for (int v = 0; v < NAMES; v++) {
        const struct hash_functions *functions = hash_functions_named(names[v]);
        if (!functions)
            continue;
        tested++;
        for (size_t count = 0; count < 3000; count++) {
            size_t at = count % 65;
            XXH128_hash_t expected = XXH3_128bits(bytes + at, count);
            struct hash128 found = functions->hash128(bytes + at, count);
            assert_true(functions->hash64(bytes + at, count) == XXH3_64bits(bytes + at, count));
            assert_true(functions->hash64_seeded(bytes + at, count, count * 77) ==
                        XXH3_64bits_withSeed(bytes + at, count, count * 77));
            assert_true(found.low == expected.low64 && found.high == expected.high64);
        }
        for (int i = 0; i < 40; i++) {
            size_t at = random_below(&state, 64), count = random_below(&state, BYTES - at);
            assert_true(functions->hash64(bytes + at, count) == XXH3_64bits(bytes + at, count));
        }
    }
    assert_true(tested >= 1);
    free(bytes);
}

static void streams_agree_with_one_call(void **unused)
{
    (void)unused;
    uint8_t *bytes = random_bytes();
    uint64_t state = 3;
    struct hash_state *stream = hash_state_new();
    assert_non_null(stream);
    for (int v = 0; v < NAMES; v++) {
        const struct hash_functions *functions = hash_functions_named(names[v]);
        for (int i = 0; functions && i < 300; i++) {
            size_t count = random_below(&state, i % 3 ? 5000 : BYTES),
                   step = 1 + random_below(&state, i % 2 ? 300 : 100000);
            hash_state_reset(stream);
            for (size_t at = 0; at < count; at += step)
                functions->add(stream, bytes + at, at + step < count ? step : count - at);
            struct hash128 found = functions->digest128(stream), expected = hash128(bytes, count);
            assert_true(functions->digest64(stream) == hash64(bytes, count));
            assert_true(found.low == expected.low && found.high == expected.high);
        }
    }
    hash_state_reset(stream);
    hash_state_add(stream, bytes, 100000);
    hash_state_add(stream, bytes + 100000, 77);
    assert_true(hash_state_64(stream) == hash64(bytes, 100077));
    const struct hash_part parts[] = {{bytes, 100000}, {NULL, 0}, {bytes + 100000, 77}};
    struct hash128 found = hash128_parts(parts, 3), expected = hash128(bytes, 100077);
    assert_true(found.low == expected.low && found.high == expected.high);
    hash_state_free(stream);
    free(bytes);
}

/* Published values of XXH3 with seed 0, so that any implementation can check our files. */
static void values_are_those_of_xxh3(void **unused)
{
    (void)unused;
    uint8_t stored[16];
    char hex[33];
    assert_true(hash64("", 0) == 0x2d06800538d394c2u);
    hash128_store(hash128("", 0), stored);
    hash128_hex(stored, hex);
    assert_string_equal(hex, "99aa06d3014798d86001c324468d497f");
}

static void the_variant_in_use_has_its_name(void **unused)
{
    (void)unused;
    const struct hash_functions *functions = hash_functions_named(hash_variant());
    assert_non_null(functions);
    assert_string_equal(functions->name, hash_variant());
    assert_null(hash_functions_named("mmx"));
#if defined(__x86_64__)
    if (cpu_has(CPU_AVX2))
        assert_string_not_equal(hash_variant(), "sse2");
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variants_agree_with_the_scalar_hash),
        cmocka_unit_test(streams_agree_with_one_call),
        cmocka_unit_test(values_are_those_of_xxh3),
        cmocka_unit_test(the_variant_in_use_has_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
