/* SPDX-License-Identifier: MIT */
/* table_key.h, also where the kernel has no random numbers: this program's own getrandom() takes the place of libc's.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform/os.h"
#include "platform/table_key.h"

static int failure; /* 0: the kernel answers */
static unsigned asked;

ssize_t getrandom(void *into, size_t count, unsigned flags)
{
    asked++;
    if (!failure)
        return syscall(SYS_getrandom, into, count, flags);
    errno = failure;
    return -1;
}

static bool same(struct table_key a, struct table_key b)
{
    return a.low == b.low && a.high == b.high;
}

static void keys_are_random(void **unused)
{
    (void)unused;
    asked = 0;
    const struct table_key a = table_key_new(), b = table_key_new();
    assert_int_equal(asked, 2);
    assert_true(a.low != b.low && a.high != b.high);
}

static void a_kernel_without_random_numbers_gets_keys_nevertheless(void **unused)
{
    (void)unused;
    uint64_t number;
    failure = ENOSYS;
    assert_int_equal(os_random(&number, sizeof number), ENOSYS);
    const struct table_key a = table_key_new(), b = table_key_new();
    failure = EAGAIN;
    assert_int_equal(os_random(&number, sizeof number), EAGAIN);
    const struct table_key c = table_key_new();
    failure = 0;
    assert_false(same(a, b));
    assert_false(same(b, c));
    assert_true(a.low && a.high && a.low != a.high);
}

static void a_fixed_seed_repeats_its_keys(void **unused)
{
    (void)unused;
    table_key_fix(7);
    const struct table_key a = table_key_new(), b = table_key_new();
    table_key_fix(8);
    const struct table_key other = table_key_new();
    table_key_fix(7);
    assert_true(same(table_key_new(), a));
    assert_true(same(table_key_new(), b));
    assert_false(same(a, b));
    assert_false(same(a, other));
    table_key_fix(0);
    assert_false(same(table_key_new(), a));
}

/* Hashes that agree under one key do not agree under another. */
static void hashes_depend_on_the_key(void **unused)
{
    (void)unused;
    unsigned mixed = 0, hashed = 0;
    table_key_fix(3);
    const struct table_key one = table_key_new(), two = table_key_new();
    for (uint64_t i = 0; i < 1000; i++) {
        mixed += table_mix(one, i, i * i) >> 60 == table_mix(two, i, i * i) >> 60;
        hashed += table_hash(one, (const uint8_t *)&i, sizeof i) >> 60 ==
                  table_hash(two, (const uint8_t *)&i, sizeof i) >> 60;
    }
    assert_in_range(mixed, 20, 140); /* 1 of 16 by chance: 62 */
    assert_in_range(hashed, 20, 140);
    table_key_fix(0);
}

/* Texts that differ in one byte, or in length alone, have different hashes. */
static void every_byte_counts(void **unused)
{
    (void)unused;
    const struct table_key key = table_key_new();
    static uint64_t hashes[300 * 22];
    uint64_t made = 0;
    uint8_t text[299]; /* short ones and long ones */
    memset(text, 'a', sizeof text);
    for (uint64_t count = 0; count <= sizeof text; count++) {
        hashes[made++] = table_hash(key, text, count);
        for (uint64_t at = 0; at < count; at += 1 + count / 20) {
            text[at]++;
            hashes[made++] = table_hash(key, text, count);
            text[at]--;
        }
        assert_true(made <= sizeof hashes / sizeof *hashes);
    }
    for (uint64_t i = 0; i < made; i++)
        for (uint64_t k = 0; k < i; k++)
            assert_true(hashes[i] != hashes[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_random),
        cmocka_unit_test(a_kernel_without_random_numbers_gets_keys_nevertheless),
        cmocka_unit_test(a_fixed_seed_repeats_its_keys),
        cmocka_unit_test(hashes_depend_on_the_key),
        cmocka_unit_test(every_byte_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
