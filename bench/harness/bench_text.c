/* SPDX-License-Identifier: MIT */
/* bench_text.c - see bench_text.h. */
#include "bench_text.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "harness.h"
#include "platform/os.h"
#include "text/utf8.h"
#include "vocabulary/vocabulary.h"

/* Reads the `bytes` bytes of an open file into new memory. Returns 0 or an errno. */
static int content_read(int fd, uint64_t bytes, char **content)
{
    size_t got = 0;
    *content = malloc((size_t)bytes);
    if (!*content)
        return ENOMEM;
    const int system = os_pread(fd, *content, (size_t)bytes, 0, &got);
    return system || got == bytes ? system : EIO;
}

static int text_read(struct bench *bench, struct bench_text *text)
{
    const char *path = bench->options.dataset;
    struct os_stat stat;
    int fd;
    int system = os_open(path, OS_READ, &fd);
    if (system)
        return bench_failed_system(bench, system, path, "The text cannot be opened.");
    system = os_fstat(fd, &stat);
    if (!system && (stat.kind != OS_KIND_FILE || !stat.bytes || stat.bytes > SIZE_MAX / 8)) {
        os_close(fd);
        cli_say(bench->program, "%s: give a regular file that contains text", path);
        return CLI_FAILED;
    }
    text->path = path;
    text->bytes = system ? 0 : stat.bytes;
    if (!system)
        system = content_read(fd, text->bytes, &text->text);
    os_close(fd);
    if (system == ENOMEM)
        return bench_no_memory(bench);
    if (system)
        return bench_failed_system(bench, system, path, "The text cannot be read.");
    const size_t valid = utf8_valid_prefix(text->text, (size_t)text->bytes);
    if (valid != text->bytes) {
        cli_say(bench->program, "%s: the text is not valid UTF-8 at byte %zu; other tokenizers would refuse it", path,
                valid);
        return CLI_FAILED;
    }
    return CLI_DONE;
}

static int text_cut(struct bench *bench, struct bench_text *text)
{
    const uint64_t most = text->bytes / (BENCH_DOCUMENT - 3) + 1; /* a cut moves back by up to 3 bytes */
    text->documents = malloc((size_t)most * sizeof *text->documents);
    if (!text->documents)
        return bench_no_memory(bench);
    for (uint64_t at = 0; at < text->bytes;) {
        const uint64_t left = text->bytes - at;
        const size_t bytes = left > BENCH_DOCUMENT ? utf8_cut(text->text + at, BENCH_DOCUMENT) : (size_t)left;
        assert(bytes && text->document_count < most);
        text->documents[text->document_count++] = (struct tokmap_text){text->text + at, bytes};
        at += bytes;
    }
    return CLI_DONE;
}

int bench_text_open(struct bench *bench, struct bench_text *text)
{
    assert(!text->text && !text->documents);
    const int result = text_read(bench, text);
    return result ? result : text_cut(bench, text);
}

int bench_text_take(struct bench *bench, struct bench_text *text, char *content, uint64_t bytes)
{
    assert(!text->text && !text->documents && bytes);
    *text = (struct bench_text){.path = bench->options.dataset, .text = content, .bytes = bytes};
    return text_cut(bench, text);
}

void bench_text_close(struct bench_text *text)
{
    free(text->documents);
    free(text->text);
    *text = (struct bench_text){.bytes = 0};
}

int bench_tokenizer_open(struct bench *bench, struct tokenizer **tokenizer)
{
    const struct bench_options *options = &bench->options;
    const struct tokmap_tokenizer_options asked = {.pattern = options->pattern,
                                                   .special_tokens = options->special_tokens};
    struct tokmap_error error = {0};
    return vocabulary_open(tokenizer, options->tokenizer, &asked, &error) ? bench_failed(bench, &error) : CLI_DONE;
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

struct made_text *made_text_new(uint64_t seed)
{
    struct made_text *text = calloc(1, sizeof *text);
    if (!text)
        return NULL;
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
