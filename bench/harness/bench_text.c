/* SPDX-License-Identifier: MIT */
/* bench_text.c - see bench_text.h. */
#include "bench_text.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "harness.h"
#include "platform/os.h"
#include "text/utf8.h"
#include "vocabulary/vocabulary.h"

static void text_read(struct bench *bench, struct bench_text *text)
{
    const char *path = bench->options.dataset;
    struct os_stat stat;
    size_t got = 0;
    int fd;
    bench_check_system(bench, os_open(path, OS_READ, &fd), path, "The text cannot be opened.");
    int system = os_fstat(fd, &stat);
    if (!system && (stat.kind != OS_KIND_FILE || !stat.bytes || stat.bytes > SIZE_MAX / 8)) {
        cli_say(bench->program, "%s: give a regular file that contains text", path);
        bench_end(bench, CLI_FAILED);
    }
    bench_check_system(bench, system, path, "The text cannot be read.");
    *text = (struct bench_text){.path = path, .text = bench_new(bench, stat.bytes, 1), .bytes = stat.bytes};
    system = os_pread(fd, text->text, (size_t)stat.bytes, 0, &got);
    os_close(fd);
    bench_check_system(bench, system || got == stat.bytes ? system : EIO, path, "The text cannot be read.");
    const size_t valid = utf8_valid_prefix(text->text, (size_t)text->bytes);
    if (valid != text->bytes) {
        cli_say(bench->program, "%s: the text is not valid UTF-8 at byte %zu; other tokenizers would refuse it", path,
                valid);
        bench_end(bench, CLI_FAILED);
    }
}

static void text_cut(struct bench *bench, struct bench_text *text)
{
    const uint64_t most = text->bytes / (BENCH_DOCUMENT - 3) + 1; /* a cut moves back by up to 3 bytes */
    text->documents = bench_new(bench, most, sizeof *text->documents);
    for (uint64_t at = 0; at < text->bytes;) {
        const uint64_t left = text->bytes - at;
        const size_t bytes = left > BENCH_DOCUMENT ? utf8_cut(text->text + at, BENCH_DOCUMENT) : (size_t)left;
        assert(bytes && text->document_count < most);
        text->documents[text->document_count++] = (struct tokmap_text){text->text + at, bytes};
        at += bytes;
    }
}

void bench_text_open(struct bench *bench, struct bench_text *text)
{
    text_read(bench, text);
    text_cut(bench, text);
}

void bench_text_take(struct bench *bench, struct bench_text *text, char *content, uint64_t bytes)
{
    assert(bytes);
    *text = (struct bench_text){.path = bench->options.dataset, .text = content, .bytes = bytes};
    text_cut(bench, text);
}

void bench_text_close(struct bench_text *text)
{
    free(text->documents);
    free(text->text);
    *text = (struct bench_text){.bytes = 0};
}

/* Writes a JSON string's content; returns its number of bytes. */
static size_t escape(char *into, const char *text, uint64_t count)
{
    static const char digits[] = "0123456789abcdef";
    size_t at = 0;
    for (uint64_t i = 0; i < count; i++) {
        const unsigned char byte = (unsigned char)text[i];
        if (byte >= 0x20 && byte != '"' && byte != '\\') {
            into[at++] = text[i];
            continue;
        }
        into[at++] = '\\';
        if (byte == '"' || byte == '\\' || byte == '\n') {
            into[at++] = byte == '\n' ? 'n' : text[i];
            continue;
        }
        memcpy(into + at, "u00", 3);
        into[at + 3] = digits[byte >> 4];
        into[at + 4] = digits[byte & 15];
        at += 5;
    }
    return at;
}

size_t text_json_line(char *line, const char *text, uint64_t count)
{
    static const char begin[] = "{\"text\": \"", end[] = "\"}\n";
    memcpy(line, begin, sizeof begin - 1);
    const size_t at = sizeof begin - 1 + escape(line + sizeof begin - 1, text, count);
    memcpy(line + at, end, sizeof end - 1);
    return at + sizeof end - 1;
}

struct tokenizer *bench_tokenizer_open(struct bench *bench)
{
    struct tokenizer *tokenizer = NULL;
    const struct bench_options *options = &bench->options;
    const struct tokmap_tokenizer_options asked = {.pattern = options->pattern,
                                                   .special_tokens = options->special_tokens};
    bench_check(bench, vocabulary_open(&tokenizer, options->tokenizer, &asked, &bench->error));
    return tokenizer;
}

/* ==== text of made-up words ==== */

#define WORDS ((uint32_t)1 << 16) /* size of the vocabulary */

struct made_text {
    uint64_t state; /* of the random numbers */
    char words[WORDS][16];
    uint8_t lengths[WORDS];
};

/* Makes words of syllables, so that the letters are about as unequally frequent as in a natural language. */
static void words_make(struct made_text *text)
{
    static const char consonants[] = "ttttnnnnsssshhhrrrrddllccmmffwyggpbbvk", vowels[] = "eeeeeeaaaaooooiiiiuu";
    uint64_t *state = &text->state;
    for (uint32_t i = 0; i < WORDS; i++) {
        uint32_t syllables = 1 + (uint32_t)(i > 40) + (uint32_t)(i > 2000) + (uint32_t)random_below(state, 2);
        uint8_t length = 0;
        for (uint32_t j = 0; j < syllables; j++) {
            text->words[i][length++] = consonants[random_below(state, sizeof consonants - 1)];
            text->words[i][length++] = vowels[random_below(state, sizeof vowels - 1)];
            if (random_below(state, 3) == 0)
                text->words[i][length++] = consonants[random_below(state, sizeof consonants - 1)];
        }
        text->lengths[i] = length;
    }
}

struct made_text *made_text_new(struct bench *bench, uint64_t seed)
{
    struct made_text *text = bench_new(bench, 1, sizeof *text);
    text->state = seed;
    words_make(text);
    return text;
}

void made_text_free(struct made_text *text)
{
    free(text);
}

/* Words follow Zipf's law: the logarithm of a word's rank is uniform. */
void made_text_fill(struct made_text *text, uint8_t *block, size_t bytes)
{
    size_t at = 0, line = 0;
    while (at < bytes) {
        uint32_t power = (uint32_t)1 << random_below(&text->state, 16);
        uint32_t rank = power + (uint32_t)random_below(&text->state, power) - 1;
        size_t length = (size_t)min64(text->lengths[rank], bytes - at);
        memcpy(block + at, text->words[rank], length);
        at += length;
        line += length + 1;
        uint64_t dice = random_below(&text->state, 16);
        if (at < bytes && dice == 0)
            block[at++] = '.';
        if (at < bytes)
            block[at++] = line > 72 ? '\n' : ' ';
        line = line > 72 ? 0 : line;
    }
}
