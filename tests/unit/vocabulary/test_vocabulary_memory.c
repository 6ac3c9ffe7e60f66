/* SPDX-License-Identifier: MIT */
/*
 * test_vocabulary_memory.c - opening a vocabulary takes at most VOCABULARY_MEMORY times the size of its file, plus
 * VOCABULARY_MEMORY_FREE, whatever the file says.
 *
 * The test counts bytes, so it is the same on every machine: its own malloc() and mmap() keep the sum of all
 * allocations that are alive, and the highest sum. A constant of many megabytes would hide what a small file does
 * wrong, so files of the largest tables are opened, and of others two sizes are compared: the larger one may take four
 * times the additional bytes. (Tables double as they grow, so sizes are compared between which none does.)
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform/os.h"
#include "support/reference_data.h"
#include "support/sanitized.h"
#include "vocabulary/vocabulary.h"
#include "vocabulary/vocabulary_file.h"

#ifdef SANITIZED
int main(void)
{
    puts("skipped: a sanitizer has its own malloc()");
    return 77;
}
#else
#include "support/scratch_folder.h"

/* ---- counting ---- */

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *memory);

static size_t alive, highest; /* several threads load one vocabulary */

static void count(size_t more)
{
    const size_t now = __atomic_add_fetch(&alive, more, __ATOMIC_RELAXED);
    size_t was = __atomic_load_n(&highest, __ATOMIC_RELAXED);
    while (now > was && !__atomic_compare_exchange_n(&highest, &was, now, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
}

static void uncount(size_t less)
{
    __atomic_sub_fetch(&alive, less, __ATOMIC_RELAXED);
}

void *malloc(size_t bytes)
{
    void *made = __libc_malloc(bytes);
    count(malloc_usable_size(made));
    return made;
}

void *calloc(size_t items, size_t bytes)
{
    void *made = __libc_calloc(items, bytes);
    count(malloc_usable_size(made));
    return made;
}

/* Up to 2 MiB before and after memory that begins at a huge page are addresses, not memory, and how many depends on
 * chance. So the memory begins at a cache line. */
void *aligned_alloc(size_t alignment, size_t bytes)
{
    void *made = __libc_memalign(alignment < 64 ? alignment : 64, bytes);
    count(malloc_usable_size(made));
    return made;
}

int posix_memalign(void **made, size_t alignment, size_t bytes)
{
    *made = aligned_alloc(alignment, bytes);
    return *made ? 0 : ENOMEM;
}

void *realloc(void *memory, size_t bytes)
{
    const size_t before = malloc_usable_size(memory);
    void *made = __libc_realloc(memory, bytes);
    if (made) {
        uncount(before);
        count(malloc_usable_size(made));
    }
    return made;
}

void free(void *memory)
{
    uncount(malloc_usable_size(memory));
    __libc_free(memory);
}

/* The kernel maps and unmaps whole pages, whatever the length. */
static size_t in_pages(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    void *made = (void *)syscall(SYS_mmap, address, bytes, protection, flags, fd, offset);
    if (made != MAP_FAILED)
        count(in_pages(bytes));
    return made;
}

int munmap(void *address, size_t bytes)
{
    uncount(in_pages(bytes));
    return (int)syscall(SYS_munmap, address, bytes);
}

/* ---- files ---- */

struct text {
    char *bytes;
    size_t count, room;
};

static void put(struct text *text, const void *bytes, size_t count_more)
{
    if (text->room - text->count < count_more) {
        text->room = 2 * (text->room + count_more);
        text->bytes = realloc(text->bytes, text->room);
        assert_non_null(text->bytes);
    }
    memcpy(text->bytes + text->count, bytes, count_more);
    text->count += count_more;
}

__attribute__((format(printf, 2, 3))) static void say(struct text *text, const char *format, ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    const int bytes = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    assert_in_range(bytes, 0, sizeof line - 1);
    put(text, line, (size_t)bytes);
}

/* Opens a vocabulary and returns how many bytes were alive at most. expected: of the open. */
static size_t peak_of(const char *path, const char *pattern, enum tokmap_status expected)
{
    const bool lower = pattern && !strcmp(pattern, "lower case"); /* of a vocab.txt */
    const struct tokmap_tokenizer_options options = {.pattern = lower ? NULL : pattern,
                                                     .lower_case = lower ? "yes" : NULL};
    struct tokenizer *tokenizer;
    struct tokmap_error error = {0};
    const size_t before = alive;
    highest = alive;
    const enum tokmap_status status = vocabulary_open(&tokenizer, path, &options, &error);
    if (status != expected)
        fail_msg("%s: expected status %d, got %d: %s", path, (int)expected, (int)status, error.message);
    tokenizer_close(tokenizer);
    assert_int_equal(alive, before);
    return highest - before;
}

/* Writes a text to a file, frees it, and opens it as a vocabulary. */
static size_t peak_of_text(struct text *text, const char *pattern, enum tokmap_status expected, size_t *bytes)
{
    const char *path = in_folder(folder, "vocabulary");
    file_write(path, text->bytes, text->count);
    *bytes = text->count;
    free(text->bytes);
    *text = (struct text){.bytes = NULL};
    return peak_of(path, pattern, expected);
}

static void expect_within(const char *what, size_t peak, size_t bytes)
{
    const uint64_t most = VOCABULARY_MEMORY * (uint64_t)bytes + VOCABULARY_MEMORY_FREE;
    if (getenv("TEST_SHOW"))
        printf("%-32s %6.1f MB file %6.1f MB memory\n", what, (double)bytes * 1e-6, (double)peak * 1e-6);
    if (peak > most)
        fail_msg("%s: a file of %zu bytes took %zu, more than %llu", what, bytes, peak, (unsigned long long)most);
}

static void expect_text_within(const char *what, struct text *text, const char *pattern)
{
    size_t bytes;
    const size_t peak = peak_of_text(text, pattern, TOKMAP_OK, &bytes);
    expect_within(what, peak, bytes);
}

/* ---- tokenizer.json ---- */

/* Begins a byte-level model: the tokens of the 256 bytes. normalizer: JSON. */
static void json_begins(struct text *text, const char *normalizer)
{
    unsigned other = 256;
    say(text,
        "{\"normalizer\":%s,\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
        "\"use_regex\":true},\"model\":{\"type\":\"BPE\",\"vocab\":{",
        normalizer);
    for (unsigned byte = 0; byte < 256; byte++) {
        const bool itself = (byte > 32 && byte < 127) || (byte > 160 && byte != 173); /* stands for itself */
        const unsigned code = itself ? byte : other++;
        say(text, "%s\"\\u%04x\":%u", byte ? "," : "", code, byte);
    }
}

static const char letters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!$%&()*+,-./:;<=>?@[]^_`{|}~";
#define LETTERS (sizeof letters - 1)

/* Token number i of those that have `length` letters. */
static void letters_of(uint64_t i, int length, char token[8])
{
    for (int at = length - 1; at >= 0; at--, i /= LETTERS)
        token[at] = letters[i % LETTERS];
    token[length] = '\0';
}

/* As many words as nodes of their trie are allowed, as short as files can write them. */
static void words(void **state)
{
    enum { TOKENS = 2000000 };
    static const uint64_t pairs = LETTERS * LETTERS, triples = LETTERS * LETTERS * LETTERS;
    struct text text = {NULL, 0, 0};
    char token[8];
    say(&text, "{\"normalizer\":null,\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"AA\","
               "\"continuing_subword_prefix\":\"\",\"max_input_chars_per_word\":100,\"vocab\":{");
    for (uint64_t i = 0; i < TOKENS; i++) {
        const int length = i < pairs ? 2 : i < pairs + triples ? 3 : 4;
        letters_of(length == 2 ? i : length == 3 ? i - pairs : i - pairs - triples, length, token);
        say(&text, "%s\"%s\":%u", i ? "," : "", token, (unsigned)i);
    }
    say(&text, "}}}");
    expect_text_within("words", &text, NULL);
    say(&text, "[UNK]\n");
    for (uint64_t i = 0; i < (1u << 20) - 1; i++) {
        letters_of(i, 4, token);
        say(&text, "%s\n", token);
    }
    expect_text_within("words, one a line", &text, "lower case");
}

/* Many short tokens, and for each up to three merges, as short as files can write them. */
static void tables(void **state)
{
    enum { TOKENS = 2000000, MERGES = 4190000 };
    static const uint64_t pairs = LETTERS * LETTERS, triples = LETTERS * LETTERS * LETTERS;
    struct text text = {NULL, 0, 0};
    char token[8];
    json_begins(&text, "null");
    for (uint64_t i = 0; i < TOKENS; i++) {
        letters_of(i < pairs             ? i
                   : i < pairs + triples ? i - pairs
                                         : i - pairs - triples,
                   i < pairs             ? 2
                   : i < pairs + triples ? 3
                                         : 4,
                   token);
        say(&text, ",\"%s\":%u", token, (unsigned)(256 + i));
    }
    say(&text, "},\"merges\":[\"");
    for (uint64_t cut = 1, made = 0; cut < 4; cut++) /* a later cut's merges make ids that earlier ones made */
        for (uint64_t i = 0; i < TOKENS && made < MERGES; i++) {
            const int length = i < pairs ? 2 : i < pairs + triples ? 3 : 4;
            letters_of(length == 2 ? i : length == 3 ? i - pairs : i - pairs - triples, length, token);
            if ((int)cut < length) {
                put(&text, ",\"", made++ ? 2 : 0); /* the first quote is there */
                put(&text, token, (size_t)cut);
                put(&text, " ", 1);
                put(&text, token + cut, (size_t)length - cut);
                put(&text, "\"", 1);
            }
        }
    say(&text, "]}}");
    expect_text_within("tokens and merges", &text, NULL);
}

/* A text of `length` letters that no other number has. */
static void put_unlike(struct text *text, uint64_t number, size_t length)
{
    uint64_t x = number * 0x9E3779B97F4A7C15u + 1;
    for (size_t i = 0; i < length; i++, x = x * 6364136223846793005u + 1442695040888963407u)
        put(text, &letters[(x >> 33) % 52], 1);
}

/* Vocabularies whose texts have an escape, so that they are decoded first. */
static size_t escaped_peak(size_t tokens, size_t length, size_t *bytes)
{
    struct text text = {NULL, 0, 0};
    json_begins(&text, "null");
    for (size_t i = 0; i < tokens; i++) {
        say(&text, ",\"\\u0041");
        put_unlike(&text, i, length);
        say(&text, "\":%zu", 256 + i);
    }
    say(&text, "},\"merges\":[]}}");
    return peak_of_text(&text, NULL, TOKMAP_OK, bytes);
}

/* More texts may take four times the additional bytes of the file, but not more. */
static void expect_slope(const char *what, size_t peak, size_t bytes, size_t peak_larger, size_t bytes_larger)
{
    const double slope = (double)(peak_larger - peak) / (double)(bytes_larger - bytes);
    if (getenv("TEST_SHOW"))
        printf("%-32s %6.1f MB file %6.1f MB memory: %.2f bytes for each more\n", what, (double)bytes_larger * 1e-6,
               (double)peak_larger * 1e-6, slope);
    if (slope > VOCABULARY_MEMORY)
        fail_msg("%s: %.2f bytes for each byte of the file", what, slope);
}

static void escaped(void **state)
{
    static const size_t lengths[] = {60, 3000, 33000};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const size_t tokens = ((size_t)17 << 18) / lengths[i];
        size_t bytes, larger;
        const size_t peak = escaped_peak(tokens, lengths[i], &bytes);
        const size_t peak_larger = escaped_peak(tokens + tokens / 4, lengths[i], &larger);
        expect_slope("escaped texts", peak, bytes, peak_larger, larger);
    }
}

static size_t added_peak(size_t tokens, size_t length, const char *normalizer, enum tokmap_status expected,
                         size_t *bytes)
{
    struct text text = {NULL, 0, 0};
    json_begins(&text, normalizer);
    say(&text, "},\"merges\":[]},\"added_tokens\":[");
    for (size_t i = 0; i < tokens; i++) {
        say(&text, "%s{\"id\":0,\"content\":\"\\u0041", i ? "," : "");
        put_unlike(&text, i, length);
        say(&text, "\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":true,\"special\":false}");
    }
    say(&text, "]}");
    return peak_of_text(&text, NULL, expected, bytes);
}

static void added(void **state)
{
    static const char change[] = "{\"type\":\"Prepend\",\"prepend\":\"x\"}";
    static const char grow[] = "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"[a-z]\"},\"content\":\"%s\"}";
    char content[128], normalizer[256];
    size_t bytes, larger;
    size_t peak = added_peak(40000, 50, change, TOKMAP_OK, &bytes);
    expect_within("added tokens", peak, bytes);
    peak = added_peak(100, 60000, change, TOKMAP_ERROR_LIMIT, &bytes);
    const size_t peak_larger = added_peak(150, 60000, change, TOKMAP_ERROR_LIMIT, &larger);
    expect_slope("long added tokens", peak, bytes, peak_larger, larger);
    memset(content, 'b', sizeof content);
    content[sizeof content - 1] = '\0';
    snprintf(normalizer, sizeof normalizer, grow, content);
    peak = added_peak(60000, 60, normalizer, TOKMAP_ERROR_LIMIT, &bytes);
    expect_within("added tokens that grow", peak, bytes);
}

/* ---- other formats ---- */

static void ranks(void **state)
{
    static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    struct text text = {NULL, 0, 0};
    for (unsigned i = 0; i < 256; i++)
        say(&text, "%c%c== %u\n", base64[i >> 2], base64[(i & 3) << 4], i);
    for (unsigned i = 0; i < 2000000; i++) /* in descending order, so that they are sorted */
        say(&text, "%c%c%c%c %u\n", base64[i >> 18 & 63], base64[i >> 12 & 63], base64[i >> 6 & 63], base64[i & 63],
            2000255 - i);
    expect_text_within("rank file", &text, "gpt2");
}

static void varint(struct text *text, uint64_t number)
{
    for (; number > 127; number >>= 7)
        put(text, &(uint8_t){(uint8_t)(number | 128)}, 1);
    put(text, &(uint8_t){(uint8_t)number}, 1);
}

static void piece(struct text *text, const char *bytes, size_t count_bytes, float score, uint8_t kind)
{
    put(text, "\n", 1);
    varint(text, 1 + (count_bytes > 127 ? 2 : 1) + count_bytes + 5 + 2);
    put(text, "\n", 1);
    varint(text, count_bytes);
    put(text, bytes, count_bytes);
    put(text, "\x15", 1);
    put(text, &score, sizeof score);
    put(text, (uint8_t[]){0x18, kind}, 2);
}

/* The pieces a, aa, aaa .. and b, bb, bbb ..: each of L letters is a pair in L - 1 ways. */
static void chains(void **state)
{
    struct text text = {NULL, 0, 0};
    char run[2001];
    piece(&text, "<unk>", 5, 0, 2);
    piece(&text, "\xE2\x96\x81", 3, -1, 1);
    for (char letter = 'a'; letter <= 'b'; letter++) {
        memset(run, letter, sizeof run);
        for (size_t length = 1; length < sizeof run; length++)
            piece(&text, run, length, -2 - (float)length, 1);
    }
    put(&text, "\x12\x02\x18\x02", 4);                 /* trainer_spec.model_type BPE */
    put(&text, "\x1A\x06\x18\x01\x20\x00\x28\x01", 8); /* normalizer_spec: dummy prefix, spaces kept, escaped */
    expect_text_within("chained pieces", &text, NULL);
}

static void real(void **state)
{
    static const char *const names[] = {"gpt2/tokenizer.json",        "llama3/tokenizer.json", "qwen2.5/tokenizer.json",
                                        "deepseek_v3/tokenizer.json", "llama2/tokenizer.json", "llama2/tokenizer.model",
                                        "openai/o200k_base.tiktoken", "gemma/tokenizer.json"};
    const char *data = reference_data();
    for (size_t i = 0; data && i < sizeof names / sizeof *names; i++) {
        char path[1024];
        struct os_stat about;
        snprintf(path, sizeof path, "%s/vocab/%s", data, names[i]);
        assert_int_equal(os_stat(path, &about), 0);
        expect_within(names[i], peak_of(path, NULL, TOKMAP_OK), (size_t)about.bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables), cmocka_unit_test(escaped), cmocka_unit_test(added), cmocka_unit_test(ranks),
        cmocka_unit_test(chains), cmocka_unit_test(real),    cmocka_unit_test(words),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
#endif
