/* SPDX-License-Identifier: MIT */
/* The benchmark's GPU kernels, compiled as C: matrix products, and checksums that depend on each word and its place but
 * not on the number of threads. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "support/gpu_kernels_host.h"

static uint64_t address_of(const void *memory)
{
    return (uint64_t)(uintptr_t)memory;
}

/* Small whole numbers, whose sums are exact floats in any order. */
static void fill(float *matrix, uint64_t count, uint32_t seed)
{
    for (uint64_t i = 0; i < count; i++)
        matrix[i] = (float)((seed = seed * 1664525 + 1013904223) >> 28) - 8;
}

static void check_gemm(uint64_t size, uint32_t threads)
{
    const uint64_t count = size * size;
    float *a = calloc(count, sizeof *a), *b = calloc(count, sizeof *b), *c = calloc(count, sizeof *c);
    float *wanted = calloc(count, sizeof *wanted);
    fill(a, count, 1);
    fill(b, count, 2);
    fill(c, count, 3);
    for (uint64_t i = 0; i < size; i++)
        for (uint64_t j = 0; j < size; j++) {
            wanted[i * size + j] = c[i * size + j];
            for (uint64_t k = 0; k < size; k++)
                wanted[i * size + j] += a[i * size + k] * b[k * size + j];
        }
    const struct gpu_gemm work = {address_of(a), address_of(b), address_of(c), size};
    gpu_gemm_host(&work, threads);
    assert_memory_equal(c, wanted, count * sizeof *c);
    free(a);
    free(b);
    free(c);
    free(wanted);
}

static void test_gemm(void **unused)
{
    (void)unused;
    check_gemm(8, 1);
    check_gemm(8, GPU_BLOCK); /* more threads than there are tiles */
    check_gemm(40, 25);
    check_gemm(64, GPU_BLOCK);
}

static uint64_t checksum(const void *words, uint64_t count, uint64_t word_bytes, uint32_t threads)
{
    uint64_t sum = 77; /* the kernel adds to this value */
    const struct gpu_checksum work = {address_of(words), count, word_bytes, address_of(&sum)};
    gpu_checksum_host(&work, threads);
    return sum - 77;
}

static void test_checksum(void **unused)
{
    (void)unused;
    uint32_t words[1000];
    for (uint32_t i = 0; i < 1000; i++)
        words[i] = i % 7 ? i * 2654435761u : 0;
    for (uint64_t bytes = 2; bytes <= 4; bytes += 2) {
        uint64_t wanted = 0;
        for (uint64_t i = 0; i < 1000; i++)
            wanted += gpu_word_sum(bytes == 4 ? words[i] : ((const uint16_t *)words)[i], i);
        assert_int_equal(checksum(words, 1000, bytes, 1), wanted);
        assert_int_equal(checksum(words, 1000, bytes, 3 * GPU_BLOCK), wanted);
        assert_int_equal(checksum(words, 0, bytes, GPU_BLOCK), 0);
        assert_int_not_equal(checksum(words, 999, bytes, 1), wanted);
    }
    const uint64_t before = checksum(words, 1000, 4, 1);
    for (uint32_t i = 0; i + 1 < 1000; i++) { /* flip one bit; exchange two neighbors */
        words[i] ^= 1u << i % 32;
        assert_int_not_equal(checksum(words, 1000, 4, 1), before);
        words[i] ^= 1u << i % 32;
        const uint32_t kept = words[i];
        words[i] = words[i + 1];
        words[i + 1] = kept;
        assert_int_not_equal(checksum(words, 1000, 4, 1), before);
        words[i + 1] = words[i];
        words[i] = kept;
    }
}

static void test_spin(void **unused)
{
    (void)unused;
    uint64_t out[2] = {0, 5};
    gpu_spin_host(&(struct gpu_spin){address_of(out), 0}, GPU_BLOCK);
    assert_int_equal(out[0], 0);
    gpu_spin_host(&(struct gpu_spin){address_of(out), 1000}, GPU_BLOCK);
    uint64_t x = 1000;
    for (int i = 0; i < 1000; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    assert_int_equal(out[0], x);
    assert_int_equal(out[1], 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemm),
        cmocka_unit_test(test_checksum),
        cmocka_unit_test(test_spin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
