/* SPDX-License-Identifier: MIT */
/* test_minhash.c - the words of texts, the hashes of n-grams, and signatures: against values of datatrove and numpy,
 * and every kernel against plain arithmetic. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cpu.h"
#include "common/hash.h"
#include "dedup/minhash.h"
#include "dedup/shingles.h"
#include "support/sanitized.h"
#include "support/scratch.h"

/* ---- words and shingles ---- */

static struct shingle_table *table;

/* The shingles that were found. */
static struct found {
    uint64_t *list;
    size_t count, capacity;
} found;

static void found_add(void *user, const uint64_t *shingles, uint32_t count)
{
    struct found *into = user;
    assert_true(count && count <= GRAM_BLOCK);
    if (into->count + count > into->capacity) {
        into->capacity = 2 * into->capacity + GRAM_BLOCK;
        into->list = realloc(into->list, into->capacity * sizeof *into->list);
        assert_non_null(into->list);
    }
    memcpy(into->list + into->count, shingles, count * sizeof *shingles);
    into->count += count;
}

static struct shingle_scan scan_of(uint32_t words)
{
    found.count = 0;
    return (struct shingle_scan){.table = table, .words_each = words, .found = found_add, .user = &found};
}

static int hash_compare(const void *a, const void *b)
{
    const uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;
    return (one > other) - (one < other);
}

/* Returns true if these hashes were found, in any order. Sorts both. */
static bool found_are(uint64_t *wanted, size_t count)
{
    if (found.count != count || !count)
        return found.count == count;
    qsort(wanted, count, sizeof *wanted, hash_compare);
    qsort(found.list, count, sizeof *wanted, hash_compare);
    return !memcmp(wanted, found.list, count * sizeof *wanted);
}

/* Compares the words of a text with a list of words, separated by blanks. */
static void words_are(const char *text, const char *second, const char *words)
{
    struct shingle_scan scan = scan_of(1);
    uint64_t wanted[64];
    size_t count = 0;
    assert_true(shingles_find(&scan, text, strlen(text), second, second ? strlen(second) : 0));
    for (const char *at = words; *at; at += strcspn(at, " "), at += *at == ' ')
        wanted[count++] = xxh64(at, strcspn(at, " "));
    if (!found_are(wanted, count))
        fail_msg("'%s' has %zu words, which are not '%s'", text, found.count, words);
    shingle_scan_free(&scan);
}

static void test_words(void **unused)
{
    (void)unused;
    words_are("", NULL, "");
    words_are(" \t\r\n.!?\x01\x7f", NULL, "");
    words_are("It's 3.50 at the CAFE\u0301!", NULL, "it s 0 at the cafe");
    words_are("caf\u00e9 \u00c9TUDE na\u00efve \u212b\u212a", NULL, "cafe etude naive ak");
    /* Numbers: one point or comma, digits of all scripts, also mixed; what follows is a number of its own. */
    words_are("1 22 3.5 1,234,567 v2 2x 1..2 1.x \u0663\u066b\u0661 \u0967\u0968 7.\u0661", NULL,
              "0 0 0 0 0 v0 0x 0 0 0 x 0 0 0");
    words_are("\u00bd \u00b2 \u2167 \uff11\uff12 \U0001d7d8", NULL, "\u00bd \u00b2 \u2177 0 0");
    /* Lower case: the sigma at the end of a word, with what is passed over; letters that become two. */
    words_are("\u039f\u0394\u039f\u03a3 \u03a3\u0391 \u03a3 \u0391\u03a3' \u0391\u03a3'\u0391", NULL,
              "\u03bf\u03b4\u03bf\u03c2 \u03c3\u03b1 \u03c3 \u03b1\u03c2 \u03b1\u03c3 \u03b1");
    words_are("\u0130stanbul \u1e9e\u01c5 \u10a0 \U00010400", NULL, "istanbul \u00df\u01c6 \u2d00 \U00010428");
    /* Blanks of Unicode, and what is not one: a soft hyphen, and a zero-width space. */
    words_are("a\u00a0b\u3000c\u2028d\u1680e\xc2\x85"
              "f g\u200bh i\u00adj",
              NULL, "a b c d e f g\u200bh i\u00adj");
    /* Punctuation as datatrove lists it: a left quote and a bullet are not in its list. */
    words_are("\u201ca\u201d \u2018b\u2019 \u2022c \u300ad\u300b e\u2026f \u00abg\u00bb h\u00b4i", NULL,
              "a \u2018b \u2022c d e f g h i");
    /* Decomposed after punctuation is removed: U+037E becomes a semicolon, and U+1FEF a grave accent. */
    words_are("a\u037e\u1fef \u0344 \u0301b", NULL, "a;` b");
    words_are("\ud55c\uae00", NULL, "\u1112\u1161\u11ab\u1100\u1173\u11af");
    words_are("\U0001d15e \ufffd \U0001f600", NULL, "\U0001d157\U0001d165 \ufffd \U0001f600");
    words_are("one two", "THREE four", "one two three four");
    words_are("one", "", "one");
}

/* Shingles of many words, whose buffer is moved again and again, against those of a list of words. */
static void test_shingles(void **unused)
{
    (void)unused;
    enum { WORDS = 60000 };
    static const uint32_t sizes[] = {1, 2, 5, 99, SHINGLE_WORDS_MOST};
    char *text = malloc((size_t)WORDS * 12);
    uint32_t *begins = malloc((WORDS + 1) * sizeof *begins);
    uint64_t *wanted = malloc(WORDS * sizeof *wanted), state = 3;
    size_t bytes = 0;
    assert_true(text && begins && wanted);
    for (uint32_t i = 0; i < WORDS; i++) {
        begins[i] = (uint32_t)bytes;
        for (uint64_t left = 1 + random_below(&state, 10); left; left--)
            text[bytes++] = (char)('a' + random_below(&state, 26));
        text[bytes++] = ' ';
    }
    begins[WORDS] = (uint32_t)bytes;
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        const uint32_t each = sizes[k];
        struct shingle_scan scan = scan_of(each);
        assert_true(shingles_find(&scan, text, bytes, NULL, 0));
        for (uint32_t i = 0; i + each <= WORDS; i++)
            wanted[i] = xxh64(text + begins[i], begins[i + each] - 1 - begins[i]);
        if (!found_are(wanted, WORDS - each + 1))
            fail_msg("%u words: another shingle", (unsigned)each);
        /* One word less than a shingle needs; then the scan is used again. */
        found.count = 0;
        assert_true(shingles_find(&scan, text, begins[each - 1], NULL, 0));
        assert_int_equal(found.count, 0);
        assert_true(shingles_find(&scan, text, begins[each], NULL, 0));
        assert_int_equal(found.count, 1);
        assert_true(scan.grams.words.capacity < 200000);
        shingle_scan_free(&scan);
    }
    free(text);
    free(begins);
    free(wanted);
}

enum { TEXTS = 3000 };

/* Fills sums with what identifies the hashes of some texts of all lengths: of letters, blanks, digits, what is deleted,
 * the bytes that a map gives a meaning, and characters that are not ASCII. */
static void sums_make(uint64_t sums[TEXTS])
{
    static const char *const units[] = {"a",    "Q",      " ",      "  ",     "\n",       ".",  ", ", "7",
                                        "3.5",  "'",      "\x01",   "\x02",   "\x03",     "x",  "th", "word",
                                        "\x7f", "\u00e9", "\u0301", "\u4e2d", "\ud55c",   "_",  "-",  "\"",
                                        "\0z",  "\u03a3", "\u2019", "The",    "e\u0301f", "11", "#",  "longerword"};
    static char text[4096];
    uint64_t state = 11;
    table = shingle_table_new();
    assert_non_null(table);
    for (uint32_t i = 0; i < TEXTS; i++) {
        const uint64_t kinds = 1 + random_below(&state, sizeof units / sizeof units[0]);
        const size_t most = i % 7 ? random_below(&state, 300) : random_below(&state, 4000);
        struct shingle_scan scan = scan_of(1 + i % 6);
        size_t bytes = 0;
        while (bytes < most) {
            const char *unit = units[random_below(&state, kinds)];
            const size_t more = *unit ? strlen(unit) : 2;
            memcpy(text + bytes, unit, more);
            bytes += more;
        }
        assert_true(shingles_find(&scan, text, bytes, text, bytes / 2));
        sums[i] = found.count;
        for (size_t k = 0; k < found.count; k++)
            sums[i] += xxh64(&found.list[k], sizeof found.list[k]);
        shingle_scan_free(&scan);
    }
    shingle_table_free(table);
    table = NULL;
}

static void sums_with(const char *value, uint64_t sums[TEXTS])
{
    FILE *file = tmpfile();
    int status = 1;
    assert_non_null(file);
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        setenv("TOKMAP_CPU", value, 1);
        sums_make(sums);
        _exit(fwrite(sums, sizeof *sums, TEXTS, file) == TEXTS && !fflush(file) ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    rewind(file);
    assert_int_equal(fread(sums, sizeof *sums, TEXTS, file), TEXTS);
    fclose(file);
}

/* Runs before anything has asked which variant there is. */
static void test_variants(void **unused)
{
    (void)unused;
    static const char *const values[] = {"avx2", "avx512", "neon"};
    static uint64_t wanted[TEXTS], sums[TEXTS];
    sums_with("scalar", wanted);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        sums_with(values[i], sums);
        for (uint32_t k = 0; k < TEXTS; k++)
            if (sums[k] != wanted[k])
                fail_msg("%s: text %u has other shingles", values[i], (unsigned)k);
    }
}

/* Hostile texts: one huge word, only digits, only marks, a sigma before many characters that are passed over. */
static void test_hostile(void **unused)
{
    (void)unused;
#ifdef SANITIZED
    const size_t bytes = (size_t)4 << 20;
#else
    const size_t bytes = 100000000;
#endif
    static const struct {
        const char *unit;
        size_t shingles;
    } cases[] = {{"x", 1}, {"7", 1}, {"7,", 1}, {"\xcc\x81", 0}, {"\xed\x95\x9c", 1}, {"\xce\xa3'", 0}};
    char *text = malloc(bytes + 8);
    assert_non_null(text);
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        const size_t unit = strlen(cases[k].unit), all = (k ? bytes / 8 : bytes) / unit * unit;
        for (size_t i = 0; i < all; i += unit)
            memcpy(text + i, cases[k].unit, unit);
        struct shingle_scan scan = scan_of(1);
        assert_true(shingles_find(&scan, text, all, NULL, 0));
        if (cases[k].shingles == 1)
            assert_true(found.count >= 1);
        shingle_scan_free(&scan);
        scan = scan_of(5);
        assert_true(shingles_find(&scan, text, all, NULL, 0));
        if (!k)
            assert_int_equal(found.count, 0);
        shingle_scan_free(&scan);
    }
    free(text);
}

/* ---- signatures ---- */

static void test_xxh64(void **unused)
{
    (void)unused;
    assert_true(xxh64("", 0) == 0xef46db3751d8e999U);
    assert_true(xxh64("a", 1) == 0xd24ec4f1a98c6e5bU);
}

/* The ways that a kernel chooses have the least hash of each place. */
static void ways_hold(minhash_ways_kernel *kernel, const struct minhash_numbers *numbers, const uint64_t *shingles,
                      uint32_t count)
{
    uint64_t ways[5 * MINHASH_LANES];
    const uint32_t some = count < MINHASH_BLOCK ? count : MINHASH_BLOCK;
    if (!some)
        return;
    kernel(numbers, shingles, some, ways);
    for (uint32_t j = 0; j < numbers->places; j++) {
        uint64_t least = MINHASH_PRIME, chosen = MINHASH_PRIME;
        for (uint32_t i = 0; i < some; i++) {
            const uint64_t hash = (numbers->a[j] * shingles[i] + numbers->b[j]) % MINHASH_PRIME;
            least = hash < least ? hash : least;
            if (ways[j] >> i % MINHASH_WAYS & 1)
                chosen = hash < chosen ? hash : chosen;
        }
        assert_true(chosen == least);
    }
}

/* Kernels against the definition, with numbers at the borders of the remainder. */
static void test_kernels(void **unused)
{
    (void)unused;
    enum { PLACES = 5 * MINHASH_LANES, SHINGLES = 3 * GRAM_BLOCK };
    static uint64_t a[PLACES], b[PLACES], shingles[SHINGLES], wanted[PLACES], plain[PLACES];
    static const uint64_t edges[] = {0,
                                     1,
                                     6,
                                     7,
                                     8,
                                     MINHASH_PRIME - 1,
                                     MINHASH_PRIME,
                                     MINHASH_PRIME + 1,
                                     2 * MINHASH_PRIME - 1,
                                     2 * MINHASH_PRIME,
                                     7 * MINHASH_PRIME,
                                     7 * MINHASH_PRIME + 6,
                                     8 * MINHASH_PRIME,
                                     8 * MINHASH_PRIME + 1,
                                     UINT64_MAX,
                                     UINT64_MAX - 7,
                                     UINT64_MAX - 8,
                                     UINT32_MAX,
                                     (uint64_t)1 << 32,
                                     (uint64_t)1 << 63};
    enum { EDGES = sizeof edges / sizeof edges[0] };
    uint64_t state = 5;
    for (uint32_t round = 0; round < 40; round++) {
        const uint32_t count = round < 8 ? round : (uint32_t)random_below(&state, SHINGLES) + 1;
        for (uint32_t j = 0; j < PLACES; j++) {
            a[j] = round % 3 == 0 ? (round + j) % 2 : random_below(&state, UINT64_MAX);
            b[j] = round % 3 == 1 ? edges[j % EDGES] : random_below(&state, UINT64_MAX);
            wanted[j] = plain[j] = j % 5 ? MINHASH_PRIME : random_below(&state, MINHASH_PRIME);
        }
        for (uint32_t i = 0; i < count; i++)
            shingles[i] = random_below(&state, 4) ? random_below(&state, UINT64_MAX) : edges[i % EDGES];
        uint64_t vector[PLACES], wide[PLACES];
        memcpy(vector, plain, sizeof vector);
        memcpy(wide, plain, sizeof wide);
        for (uint32_t j = 0; j < PLACES; j++)
            for (uint32_t i = 0; i < count; i++) {
                const uint64_t hash = (a[j] * shingles[i] + b[j]) % MINHASH_PRIME;
                wanted[j] = hash < wanted[j] ? hash : wanted[j];
            }
        const struct minhash_numbers numbers = {.a = a, .b = b, .places = PLACES};
        minhash_plain(&numbers, shingles, count, plain);
        assert_memory_equal(plain, wanted, sizeof wanted);
#if defined(__x86_64__)
        if (cpu_has(CPU_AVX2)) {
            minhash_avx2(&numbers, shingles, count, vector);
            assert_memory_equal(vector, wanted, sizeof wanted);
            ways_hold(minhash_ways_avx2, &numbers, shingles, count);
        }
        if (cpu_has(CPU_AVX512)) {
            minhash_avx512(&numbers, shingles, count, wide);
            assert_memory_equal(wide, wanted, sizeof wanted);
            ways_hold(minhash_ways_avx512, &numbers, shingles, count);
        }
#endif
    }
}

/* Signatures of blocks, for which ways are chosen first, against those of single shingles. Shingles are made so that
 * in one place their hashes are nearly the same, at a border of the 16 bits that are compared, or so large that the
 * remainder is small. */
static void test_blocks(void **unused)
{
    (void)unused;
    enum { PLACES = 112, ROUNDS = 400 };
    struct minhash *minhash = minhash_new(14, 8);
    uint64_t b[PLACES], a[PLACES], block[PLACES], single[PLACES], shingles[MINHASH_BLOCK], state = 9;
    assert_non_null(minhash);
    minhash_begin(minhash, b);
    minhash_begin(minhash, a);
    minhash_add(minhash, b, (const uint64_t[]){0}, 1);
    minhash_add(minhash, a, (const uint64_t[]){1}, 1);
    for (uint32_t j = 0; j < PLACES; j++)
        a[j] = (a[j] + MINHASH_PRIME - b[j]) % MINHASH_PRIME;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        const uint32_t count = 96 + (uint32_t)random_below(&state, MINHASH_BLOCK - 96 + 1);
        for (uint32_t i = 0; i < count; i++) {
            const uint32_t j = (uint32_t)random_below(&state, PLACES);
            const uint64_t near = random_below(&state, 12), top = random_below(&state, 8) << 61;
            const uint64_t border = ((uint64_t)(round % 4) << 45) + 1000;
            const uint64_t low = (round % 3 == 0 ? border - 1000 * (round % 2) : MINHASH_PRIME - 8) + near - 4;
            uint64_t inverse = a[j];
            for (int k = 0; k < 5; k++)
                inverse *= 2 - a[j] * inverse;
            shingles[i] = random_below(&state, UINT64_MAX);
            if (a[j] % 2 && round % 3 != 2 && random_below(&state, 2))
                shingles[i] = (((low - b[j]) * inverse) & MINHASH_PRIME) | top;
        }
        minhash_begin(minhash, block);
        minhash_begin(minhash, single);
        minhash_add(minhash, block, shingles, count);
        for (uint32_t i = 0; i < count; i++)
            minhash_add(minhash, single, shingles + i, 1);
        assert_memory_equal(block, single, sizeof block);
    }
    minhash_free(minhash);
}

/* Of the shingles 1, 2^40, and 0xfedcba9876543210, as datatrove's MinhashDedupSignature.get_signature() returns them.
 */
static void test_golden(void **unused)
{
    (void)unused;
    static const uint64_t shingles[] = {1, (uint64_t)1 << 40, 0xfedcba9876543210U};
    static const struct {
        uint32_t place;
        uint64_t value;
    } wanted[] = {{0, 1558244153357905746U},
                  {1, 777394721572598462U},
                  {7, 60664219539437835U},
                  {8, 251802912959999818U},
                  {111, 672656623278987044U}};
    struct minhash *minhash = minhash_new(14, 8);
    uint64_t signature[112];
    assert_non_null(minhash);
    assert_int_equal(minhash_places(minhash), 112);
    minhash_begin(minhash, signature);
    minhash_add(minhash, signature, shingles, 1);
    minhash_add(minhash, signature, shingles + 1, 2);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        if (signature[wanted[i].place] != wanted[i].value)
            fail_msg("place %u is %llu", (unsigned)wanted[i].place, (unsigned long long)signature[wanted[i].place]);
    /* Equal bands of different numbers are different. */
    uint64_t equal[112] = {0};
    const struct hash128 first = minhash_band(minhash, equal, 0), last = minhash_band(minhash, equal, 13);
    assert_true(first.low != last.low && first.high != last.high);
    equal[8] = 1;
    const struct hash128 same = minhash_band(minhash, equal, 0), other = minhash_band(minhash, equal, 1);
    assert_true(same.low == first.low && other.low != first.low);
    minhash_free(minhash);
    /* Sizes that are not a multiple of the kernel's. */
    minhash = minhash_new(3, 1);
    assert_int_equal(minhash_places(minhash), 8);
    minhash_free(minhash);
    minhash = minhash_new(1, MINHASH_HASHES_MOST);
    assert_int_equal(minhash_places(minhash), MINHASH_HASHES_MOST);
    minhash_free(minhash);
}

static int table_make(void **unused)
{
    (void)unused;
    table = shingle_table_new();
    return table ? 0 : -1;
}

static int table_free(void **unused)
{
    (void)unused;
    shingle_table_free(table);
    free(found.list);
    return 0;
}

int main(void)
{
    const struct CMUnitTest first[] = {cmocka_unit_test(test_variants)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),  cmocka_unit_test(test_shingles), cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_xxh64),  cmocka_unit_test(test_kernels),  cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_golden),
    };
    return cmocka_run_group_tests(first, NULL, NULL) + cmocka_run_group_tests(tests, table_make, table_free);
}
