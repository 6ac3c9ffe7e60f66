/* SPDX-License-Identifier: MIT */
/*
 * case_tokenize_worst.c - `tokmap-bench tokenize --worst`: how much slower than prose the slowest texts are.
 *
 * A tokenizer is fast because the pieces of natural text repeat. The texts here do not: each is made so that its pieces
 * are in no cache and take many merges, or are too long to be kept. They are made from the tokens of the vocabulary and
 * from pseudo-random numbers with a fixed start, so a vocabulary always gets the same texts. Each has as many bytes as
 * the prose that it is compared with, and all are encoded as documents of 4 KB.
 *
 * A result is computed from processor time, because the ratio of two texts is what counts, and other programs on the
 * machine must not change it. Each repeat measures all texts, one after the other, with a new state and again with the
 * same state.
 */
#include "cases.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "harness/bench_text.h"
#include "platform/os.h"
#include "text/utf8.h"

#define TOGETHER 64                     /* documents in one call, as in a batch of the packer */
#define MOST_BYTES ((uint64_t)16 << 20) /* of a text */
#define MARGIN 256                      /* bytes that one call of a writer may add */

/* A text that is being made. */
struct maker {
    char *bytes;
    uint64_t count;
    uint64_t random;
    const struct tokenizer *tokenizer;
    uint64_t *words; /* ids of tokens that end in several letters */
    uint64_t word_count;
    uint64_t one_in; /* a space follows each so many suffixes on average; 0: none does */
};

/* Adds the next part of the text, at most MARGIN bytes. */
typedef void add_function(struct maker *maker);

static void put(struct maker *maker, const void *bytes, size_t count)
{
    memcpy(maker->bytes + maker->count, bytes, count);
    maker->count += count;
}

static void put_one(struct maker *maker, char byte)
{
    maker->bytes[maker->count++] = byte;
}

static bool is_letter(uint8_t byte)
{
    return (byte | 32) >= 'a' && (byte | 32) <= 'z';
}

/* Returns how many letters a token ends in, at most 32. */
static uint32_t letters_at_end(const uint8_t *bytes, uint32_t count)
{
    uint32_t letters = 0;
    while (letters < count && letters < 32 && is_letter(bytes[count - 1 - letters]))
        letters++;
    return letters;
}

/* Adds the end of a token, of two letters or more. Such ends look like words to the merges, but are seldom those of a
 * word together, so that many pairs have to be tried. */
static void add_suffix(struct maker *maker)
{
    const uint8_t *bytes;
    uint32_t count;
    const uint64_t id = maker->words[random_below(&maker->random, maker->word_count)];
    if (!tokenizer_token(maker->tokenizer, id, &bytes, &count))
        return;
    const uint32_t letters = letters_at_end(bytes, count);
    const uint32_t taken = letters > 2 ? 2 + (uint32_t)random_below(&maker->random, letters - 2) : letters;
    put(maker, bytes + count - taken, taken);
    if (maker->one_in && !random_below(&maker->random, maker->one_in))
        put_one(maker, ' ');
}

/* White space alone is one piece, as long as the document. */
static void add_line(struct maker *maker)
{
    static const char *const ends[] = {"\n", "\r\n"};
    for (uint64_t spaces = random_below(&maker->random, 7); spaces--;)
        put_one(maker, random_below(&maker->random, 8) ? ' ' : '\t');
    const char *end = ends[random_below(&maker->random, 2)];
    put(maker, end, strlen(end));
}

/* Adds one of the 512 characters from U+1F400 on, nearly all of which are emoji. */
static void add_emoji(struct maker *maker)
{
    const unsigned code = 0x1F400 + (unsigned)random_below(&maker->random, 512);
    maker->count += utf8_put(maker->bytes + maker->count, code);
}

/* Adds a word of 4 to 15 random letters, which no cache has seen and will never see again. */
static void add_word(struct maker *maker)
{
    for (uint64_t letters = 4 + random_below(&maker->random, 12); letters--;)
        put_one(maker, (char)('a' + random_below(&maker->random, 26)));
    put_one(maker, ' ');
}

/* Punctuation alone is one piece, too. */
static void add_mark(struct maker *maker)
{
    static const char marks[] = "!\"#$%&()*+,-./:;<=>?@[]^_`{|}~";
    put_one(maker, marks[random_below(&maker->random, sizeof marks - 1)]);
}

/* Adds a character of three bytes, U+4E00 to U+9FFF. Most pairs of them do not occur in text. */
static void add_han(struct maker *maker)
{
    const unsigned code = 0x4E00 + (unsigned)random_below(&maker->random, 0x5200);
    maker->count += utf8_put(maker->bytes + maker->count, code);
}

/* The texts. The first is prose, which is read. */
static const struct {
    const char *name;
    add_function *add; /* NULL: it is read */
    uint64_t one_in;   /* of suffixes */
} kinds[] = {
    {"prose", NULL, 0},
    {"suffixes", add_suffix, 0},
    {"suffixes_long", add_suffix, 16},
    {"suffixes_words", add_suffix, 6},
    {"lines", add_line, 0},
    {"emoji", add_emoji, 0},
    {"words", add_word, 0},
    {"marks", add_mark, 0},
    {"han", add_han, 0},
};

#define KINDS (sizeof kinds / sizeof kinds[0])

struct worst {
    struct tokenizer *tokenizer;
    struct tokenizer_info info;
    struct bench_text texts[KINDS]; /* without bytes: it cannot be made from this vocabulary */
    void *tokens;
    uint64_t capacity;                                       /* in tokens */
    struct series rates[KINDS][2], times[KINDS][2], most[2]; /* cold and warm. rates: MB/s; times: of the prose */
};

static const char *const passes[2] = {"cold", "warm"};

/* ---- the texts ---- */

/* Finds the tokens that end in two letters or more. */
static void words_find(struct bench *bench, struct maker *maker, uint64_t vocabulary)
{
    const uint8_t *bytes;
    uint32_t count;
    maker->words = bench_new(bench, vocabulary, sizeof *maker->words);
    for (uint64_t id = 0; id < vocabulary; id++)
        if (tokenizer_token(maker->tokenizer, id, &bytes, &count) && letters_at_end(bytes, count) > 1)
            maker->words[maker->word_count++] = id;
}

/* Makes a text of `bytes` bytes. */
static void text_make(struct bench *bench, struct maker *maker, add_function *add, uint64_t bytes,
                      struct bench_text *text)
{
    maker->random = 1;
    maker->count = 0;
    maker->bytes = bench_new(bench, bytes + MARGIN, 1);
    while (maker->count < bytes)
        add(maker);
    maker->bytes[maker->count] = 0;
    maker->count = bytes;
    while (bytes > 1 && ((uint8_t)maker->bytes[bytes] & 0xC0) == 0x80) /* a character does not end here */
        maker->bytes[bytes--] = ' ';
    maker->bytes[bytes] = ' ';
    bench_text_take(bench, text, maker->bytes, maker->count);
}

/* Cuts the prose down to the size of the texts. */
static void prose_cut(const struct bench *bench, struct bench_text *prose)
{
    const uint64_t most = min64(MOST_BYTES, bench->options.text_bytes);
    uint64_t bytes = 0, documents = 0;
    if (prose->bytes <= most)
        return;
    while (documents < prose->document_count && bytes + prose->documents[documents].count <= most)
        bytes += prose->documents[documents++].count;
    prose->document_count = documents ? documents : 1;
    prose->bytes = documents ? bytes : prose->documents[0].count;
}

static void texts_make(struct bench *bench, struct worst *worst)
{
    struct maker maker = {.tokenizer = worst->tokenizer};
    bench_text_open(bench, &worst->texts[0]);
    prose_cut(bench, &worst->texts[0]);
    words_find(bench, &maker, worst->info.vocabulary);
    if (!maker.word_count)
        bench_say(bench, "texts of suffixes are skipped, because no token of this vocabulary ends in several letters");
    for (size_t i = 1; i < KINDS; i++) {
        maker.one_in = kinds[i].one_in;
        if (kinds[i].add != add_suffix || maker.word_count)
            text_make(bench, &maker, kinds[i].add, worst->texts[0].bytes, &worst->texts[i]);
    }
    free(maker.words);
}

/* ---- the passes ---- */

/* Encodes all documents of a text. Returns MB of text per second of processor time. */
static double pass(struct bench *bench, const struct worst *worst, struct tokenizer_state *state,
                   const struct bench_text *text)
{
    uint64_t ends[TOGETHER], made = 0;
    const uint64_t started = os_thread_cpu_ns();
    for (uint64_t first = 0; first < text->document_count; first += TOGETHER) {
        const struct tokenizer_batch batch = {text->documents + first, min64(TOGETHER, text->document_count - first),
                                              false, false};
        struct tokenizer_out out = {.tokens = (uint8_t *)worst->tokens + made * worst->info.width,
                                    .capacity = worst->capacity - made,
                                    .ends = ends};
        bench_check(bench, tokenizer_encode(state, &batch, &out, &bench->error));
        made += out.count;
    }
    return (double)text->bytes / 1e6 / ((double)max64(1, os_thread_cpu_ns() - started) / 1e9);
}

/* Encodes a text with a new state, and again. */
static void text_repeat(struct bench *bench, const struct worst *worst, const struct bench_text *text, double rates[2])
{
    struct tokenizer_state *state;
    bench_check(bench, tokenizer_state_new(&state, worst->tokenizer, &bench->error));
    rates[0] = pass(bench, worst, state, text);
    rates[1] = pass(bench, worst, state, text);
    tokenizer_state_free(state);
}

static void all_repeat(struct bench *bench, struct worst *worst, bool counts)
{
    double rates[KINDS][2], most[2] = {0, 0};
    for (size_t i = 0; i < KINDS; i++) {
        if (!worst->texts[i].bytes)
            continue;
        text_repeat(bench, worst, &worst->texts[i], rates[i]);
        for (int warm = 0; warm < 2 && counts; warm++) {
            const double times = rates[0][warm] / rates[i][warm];
            series_add(&worst->rates[i][warm], rates[i][warm]);
            series_add(&worst->times[i][warm], times);
            most[warm] = i && times > most[warm] ? times : most[warm];
        }
    }
    for (int warm = 0; warm < 2 && counts; warm++)
        series_add(&worst->most[warm], most[warm]);
}

/* ---- results ---- */

static void text_results(struct bench *bench, const struct worst *worst, size_t i)
{
    char metric[64];
    for (int warm = 0; warm < 2; warm++) {
        (void)snprintf(metric, sizeof metric, "%s_%s_mb_s", kinds[i].name, passes[warm]);
        bench_result(bench, metric, "MB/s", &worst->rates[i][warm], i ? &worst->rates[0][warm] : NULL);
    }
    for (int warm = 0; warm < 2 && i; warm++) {
        (void)snprintf(metric, sizeof metric, "%s_%s_slower", kinds[i].name, passes[warm]);
        bench_result(bench, metric, "x", &worst->times[i][warm], NULL);
    }
}

static void results(struct bench *bench, const struct worst *worst)
{
    size_t slowest[2] = {1, 1};
    for (size_t i = 0; i < KINDS; i++) {
        text_results(bench, worst, i);
        for (int warm = 0; warm < 2 && i; warm++)
            if (!worst->times[slowest[warm]][warm].count ||
                series_median(&worst->times[i][warm]) > series_median(&worst->times[slowest[warm]][warm]))
                slowest[warm] = i;
    }
    bench_result(bench, "worst_cold_slower", "x", &worst->most[0], NULL);
    bench_result(bench, "worst_warm_slower", "x", &worst->most[1], NULL);
    bench_answer(bench, "The slowest texts are encoded %.1f times (cold: %s) and %.1f times (warm: %s) slower than %s.",
                 series_median(&worst->most[0]), kinds[slowest[0]].name, series_median(&worst->most[1]),
                 kinds[slowest[1]].name, bench->options.dataset);
}

/* ---- the case ---- */

static void worst_open(struct bench *bench, struct worst *worst)
{
    worst->tokenizer = bench_tokenizer_open(bench);
    worst->info = info_of_tokenizer(worst->tokenizer);
    texts_make(bench, worst);
    if (mul_overflows(worst->texts[0].bytes, worst->info.ids_per_byte_most, &worst->capacity))
        bench_no_memory(bench);
    worst->tokens = bench_new(bench, worst->capacity, worst->info.width);
}

static int run(struct bench *bench)
{
    static struct worst worst;
    if (bench->options.against && *bench->options.against)
        return bench_misused(bench,
                             "--against compares with other tokenizers, and --worst does not; give one of the two");
    worst_open(bench, &worst);
    struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 5), REPEATS_WARM_FIRST);
    while (repeats_next(&repeats))
        all_repeat(bench, &worst, repeats.counts);
    results(bench, &worst);
    free(worst.tokens);
    for (size_t i = 0; i < KINDS; i++)
        bench_text_close(&worst.texts[i]);
    tokenizer_close(worst.tokenizer);
    return CLI_DONE;
}

const struct bench_case case_tokenize_worst = {"tokenize", NULL, .run = run};
