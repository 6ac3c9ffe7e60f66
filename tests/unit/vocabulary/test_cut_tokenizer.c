/* SPDX-License-Identifier: MIT */
/*
 * test_cut_tokenizer.c - long texts that are cut as the code of a model cuts them, compared with that code, written
 * again here: ids, ids of parts of documents, marks, offsets, and batches.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cut_tokenizer.h"
#include "support/awkward_text.h"
#include "support/scratch_folder.h"
#include "text/code_point.h"
#include "vocabulary/vocabulary.h"

#define BLOCK 400000u
#define RUN 25000u

static struct tokenizer *plain, *cutting;
static struct tokenizer_state *plain_state, *cutting_state;

/* A vocabulary of bytes and "ab" with a special token, so that a cut between a and b changes ids. */
static int begin(void **state)
{
    static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    struct tokmap_tokenizer_options options = TOKMAP_TOKENIZER_OPTIONS_INIT;
    struct tokmap_error error;
    char text[8192], path[600], specials[600];
    size_t used = 0;
    if (setup(state))
        return -1;
    for (unsigned byte = 0; byte < 256; byte++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%c%c== %u\n", base64[byte >> 2],
                                 base64[(byte & 3) << 4], byte);
    snprintf(text + used, sizeof text - used, "YWI= 256\n");
    snprintf(path, sizeof path, "%s/x.tiktoken", folder);
    snprintf(specials, sizeof specials, "%s/specials.json", folder);
    file_write_text(path, text);
    file_write_text(specials, "{\"<end>\": 257}");
    options.pattern = "gpt2";
    options.special_tokens = specials;
    assert_int_equal(vocabulary_open(&plain, path, &options, &error), TOKMAP_OK);
    options.cut_as = "llama3";
    assert_int_equal(vocabulary_open(&cutting, path, &options, &error), TOKMAP_OK);
    options.cut_as = "gpt";
    struct tokenizer *none;
    assert_int_equal(vocabulary_open(&none, path, &options, &error), TOKMAP_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "is 'gpt'"));
    assert_null(none);
    assert_int_equal(tokenizer_state_new(&plain_state, plain, &error), TOKMAP_OK);
    assert_int_equal(tokenizer_state_new(&cutting_state, cutting, &error), TOKMAP_OK);
    return 0;
}

static int finish(void **state)
{
    tokenizer_state_free(plain_state);
    tokenizer_state_free(cutting_state);
    tokenizer_close(plain);
    tokenizer_close(cutting);
    return teardown(state);
}

/* Python's str.isspace(). */
static bool isspace_of_python(uint32_t code)
{
    return (code >= 0x09 && code <= 0x0D) || (code >= 0x1C && code <= 0x20) || code == 0x85 || code == 0xA0 ||
           code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F ||
           code == 0x205F || code == 0x3000;
}

/* Appends the places of the cuts of one block to ends[]. */
static size_t block_cuts(const uint32_t *codes, size_t from, size_t to, size_t *ends)
{
    size_t count = 0, run = 0;
    bool in_space = from < to && isspace_of_python(codes[from]);
    for (size_t i = from; i < to; i++) {
        const bool space = isspace_of_python(codes[i]);
        if (space != in_space) {
            run = 1;
            in_space = space;
        } else if (++run > RUN) {
            ends[count++] = i;
            run = 1;
        }
    }
    ends[count++] = to;
    return count;
}

struct made {
    char *text;
    size_t bytes;
    size_t ends[256], parts; /* bytes */
};

/* Makes a text of `characters`, and cuts it by the code of the model. */
static void make(struct made *made, uint64_t *random, size_t characters)
{
    static const uint32_t some[] = {'a', 'b', 'a', 'b', 'c', 0xE9, 0x4E2D, 0x1F600, '.'};
    static const uint32_t spaces[] = {' ', '\n', '\t', 0x1C, 0x1F, 0x85, 0xA0, 0x2003, 0x3000, 0x2028};
    uint32_t *codes = malloc(characters * sizeof *codes);
    size_t *offsets = malloc((characters + 1) * sizeof *offsets), ends[256];
    made->text = malloc(characters * 4 + 1);
    assert_true(codes && offsets && made->text);
    for (size_t i = 0, run = 0, kind = 0; i < characters; i++) {
        if (!run--) {
            static const size_t lengths[] = {1, 3, 100, RUN - 1, RUN, RUN + 1, 2 * RUN + 1, 60000};
            run = lengths[random_below(random, 8)];
            kind = random_below(random, 3);
            if (run > i + 1 && random_below(random, 2))
                run = 7;
        }
        codes[i] = kind ? some[random_below(random, 9)] : spaces[random_below(random, 10)];
        if (kind == 2 && random_below(random, 50) == 0)
            codes[i] = ' ';
    }
    made->bytes = 0;
    for (size_t i = 0; i < characters; i++) {
        offsets[i] = made->bytes;
        made->bytes += code_point_put((uint8_t *)made->text + made->bytes, codes[i]);
    }
    offsets[characters] = made->bytes;
    made->parts = 0;
    for (size_t from = 0; from < characters; from += BLOCK) {
        const size_t count = block_cuts(codes, from, from + BLOCK < characters ? from + BLOCK : characters, ends);
        for (size_t i = 0; i < count; i++)
            made->ends[made->parts++] = offsets[ends[i]];
    }
    assert_true(made->parts < 200);
    free(codes);
    free(offsets);
}

/* Encodes with one of the tokenizers; the caller frees the ids. */
static uint16_t *encode(struct tokenizer_state *state, const struct tokmap_text *texts, uint64_t count, bool resumed,
                        bool unfinished, uint64_t *ends)
{
    uint64_t bytes = 0;
    struct tokmap_error error;
    for (uint64_t i = 0; i < count; i++)
        bytes += texts[i].count + 2;
    struct tokenizer_out out = {.tokens = malloc(bytes * 2),
                                .capacity = bytes,
                                .ends = ends,
                                .has_prefix = true,
                                .prefix = 257,
                                .has_suffix = true,
                                .suffix = 257};
    const struct tokenizer_batch batch = {texts, count, resumed, unfinished};
    assert_non_null(out.tokens);
    assert_int_equal(tokenizer_encode(state, &batch, &out, &error), TOKMAP_OK);
    assert_int_equal(out.count, ends[count - 1]);
    return out.tokens;
}

/* The ids that the code of the model gives, with a prefix and a suffix. */
static uint16_t *expected(const struct made *made, uint64_t *count)
{
    uint16_t *ids = malloc((made->bytes + 2) * 2);
    assert_non_null(ids);
    ids[0] = 257;
    *count = 1;
    for (size_t i = 0; i < made->parts; i++) {
        const size_t from = i ? made->ends[i - 1] : 0;
        const struct tokmap_text part = {made->text + from, made->ends[i] - from};
        uint64_t end;
        uint16_t *some = encode(plain_state, &part, 1, false, false, &end);
        memcpy(ids + *count, some + 1, (end - 2) * 2);
        *count += end - 2;
        free(some);
    }
    ids[(*count)++] = 257;
    return ids;
}

static void ids(void **state)
{
    static const size_t lengths[] = {2 * BLOCK + 12345, RUN + 1, 1, RUN, BLOCK - 1, BLOCK, BLOCK + 1, 1000003};
    uint64_t random = 7, changed = 0;
    for (int round = 0; round < awkward_rounds(24) || !changed; round++) {
        assert_true(round < 24);
        struct made made;
        uint64_t wanted, end;
        make(&made, &random, lengths[round % 8]);
        uint16_t *want = expected(&made, &wanted);
        const struct tokmap_text text = {made.text, made.bytes};
        uint16_t *got = encode(cutting_state, &text, 1, false, false, &end);
        assert_int_equal(end, wanted);
        assert_memory_equal(got, want, wanted * 2);
        free(got);
        got = encode(plain_state, &text, 1, false, false, &end);
        changed += end != wanted || memcmp(got, want, wanted * 2) != 0;
        free(got);
        /* In a batch between short texts; and in parts that end where tokenizer_cut says. */
        const struct tokmap_text batch[] = {{"ab", 2}, {"", 0}, text, {"b", 1}, {"ab", 2}};
        uint64_t ends[5];
        got = encode(cutting_state, batch, 5, false, false, ends);
        assert_int_equal(ends[2] - ends[1], wanted);
        assert_memory_equal(got + ends[1], want, wanted * 2);
        assert_int_equal(got[ends[1] - 1], 257);
        assert_int_equal(ends[4] - ends[2], 3 + 3);
        free(got);
        uint64_t done = 0;
        for (uint64_t at = 0, cut; at < made.bytes; at += cut) {
            const uint64_t known = made.bytes - at < 1300000 ? made.bytes - at : 1300000;
            cut = tokenizer_cut(cutting, made.text + at, known);
            cut = cut ? cut : made.bytes - at;
            const struct tokmap_text part = {made.text + at, cut};
            got = encode(cutting_state, &part, 1, at != 0, at + cut < made.bytes, &end);
            assert_memory_equal(got, want + done, end * 2);
            done += end;
            free(got);
        }
        assert_int_equal(done, wanted);
        free(want);
        free(made.text);
    }
}

static void offsets(void **state)
{
    uint64_t random = 11;
    struct made made;
    struct tokmap_error error;
    uint64_t end;
    make(&made, &random, BLOCK + 100);
    const struct tokmap_text text = {made.text, made.bytes};
    uint16_t *got = encode(cutting_state, &text, 1, false, false, &end);
    uint64_t *begins = malloc(end * 8), *ends = malloc(end * 8), at = 0;
    assert_true(begins && ends);
    assert_int_equal(tokenizer_offsets(cutting_state, &text, TOKENIZER_STARTS, got + 1, end - 2, begins, ends, &error),
                     TOKMAP_OK);
    for (uint64_t i = 0; i < end - 2; i++) { /* bytes and "ab" are the text, one after the other */
        assert_int_equal(begins[i], at);
        at += got[i + 1] == 256 ? 2 : 1;
        assert_int_equal(ends[i], at);
    }
    assert_int_equal(at, made.bytes);
    begins[end - 3] = ends[end - 3] = 77; /* behind the memory for so many ids */
    assert_int_equal(tokenizer_offsets(cutting_state, &text, TOKENIZER_STARTS, got + 1, end - 3, begins, ends, &error),
                     TOKMAP_ERROR_TOKEN);
    assert_true(begins[end - 3] == 77 && ends[end - 3] == 77);
    free(begins);
    free(ends);
    free(got);
    free(made.text);
}

static void marks(void **state)
{
    const size_t bytes = 2 * RUN + 10;
    char *text = malloc(bytes);
    uint16_t *tokens = malloc(bytes * 2);
    uint64_t end;
    struct tokmap_error error;
    assert_true(text && tokens);
    memset(text, 'a', bytes);
    memcpy(text + 10, "<end>", 5);
    memcpy(text + RUN + 10, "<end>", 5);
    const struct tokmap_text document = {text, bytes};
    struct tokenizer_mark marked[] = {{10, 15, 257}, {RUN + 10, RUN + 15, 257}};
    struct tokenizer_place places[2];
    struct tokenizer_out out = {.tokens = tokens, .capacity = bytes, .ends = &end};
    assert_int_equal(tokenizer_encode_marked(cutting_state, &document, marked, 2, &out, places, &error), TOKMAP_OK);
    assert_int_equal(out.count, bytes - 8);
    assert_int_equal(tokens[10], 257);
    assert_int_equal(places[0].index, 10);
    assert_int_equal(places[1].begin, RUN + 10);
    assert_int_equal(places[1].end, RUN + 15);
    assert_int_equal(tokens[places[1].index], 257);
    assert_int_equal(places[1].index, RUN + 6);
    /* The code of the model would cut this token. */
    for (uint64_t before = 1; before < 5; before++) {
        marked[1] = (struct tokenizer_mark){RUN - before, RUN - before + 5, 257};
        assert_int_equal(tokenizer_encode_marked(cutting_state, &document, marked, 2, &out, places, &error),
                         TOKMAP_ERROR_INPUT);
    }
    free(text);
    free(tokens);
}

/* The document that fails is named by its number, whether it is encoded with others or by itself. */
static void failures(void **state)
{
    struct tokenizer *refusing;
    struct tokenizer_state *own;
    struct tokmap_error error;
    const size_t bytes = RUN + 10;
    char *text = malloc(bytes);
    uint16_t *tokens = malloc(4 * bytes * 2);
    uint64_t ends[4];
    assert_true(text && tokens);
    memset(text, 'a', bytes);
    assert_int_equal(tokenizer_share(&refusing, cutting, TOKMAP_SPECIAL_ERROR, &error), TOKMAP_OK);
    assert_int_equal(tokenizer_state_new(&own, refusing, &error), TOKMAP_OK);
    const struct tokmap_text texts[] = {{text, bytes}, {"a", 1}, {"a<end>", 6}};
    const struct tokenizer_batch batch = {texts, 3, false, false};
    struct tokenizer_out out = {.tokens = tokens, .capacity = 4 * bytes, .ends = ends};
    assert_int_equal(tokenizer_encode(own, &batch, &out, &error), TOKMAP_ERROR_INPUT);
    assert_int_equal(out.failed, 2);
    memcpy(text + RUN + 3, "<end>", 5);
    const struct tokmap_text others[] = {{"a", 1}, {"b", 1}, {text, bytes}, {"a", 1}};
    const struct tokenizer_batch other = {others, 4, false, false};
    out.count = 0;
    assert_int_equal(tokenizer_encode(own, &other, &out, &error), TOKMAP_ERROR_INPUT);
    assert_int_equal(out.failed, 2);
    tokenizer_state_free(own);
    tokenizer_close(refusing);
    free(text);
    free(tokens);
}

static void fingerprints(void **state)
{
    struct tokenizer_info one, other;
    struct tokenizer *shared;
    struct tokmap_error error;
    one = info_of_tokenizer(plain);
    other = info_of_tokenizer(cutting);
    assert_memory_not_equal(one.fingerprint, other.fingerprint, 16);
    assert_string_equal(other.cut_as, "llama3");
    assert_null(one.cut_as);
    assert_int_equal(tokenizer_share(&shared, cutting, TOKMAP_SPECIAL_RECOGNIZE, &error), TOKMAP_OK);
    one = info_of_tokenizer(shared);
    assert_string_equal(one.cut_as, "llama3");
    assert_memory_not_equal(one.fingerprint, other.fingerprint, 16);
    tokenizer_close(shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ids), cmocka_unit_test(offsets), cmocka_unit_test(marks),
                                       cmocka_unit_test(failures), cmocka_unit_test(fingerprints)};
    return cmocka_run_group_tests(tests, begin, finish);
}
