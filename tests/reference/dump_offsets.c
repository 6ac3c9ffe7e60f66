/* SPDX-License-Identifier: MIT */
/*
 * dump_offsets.c TOKENIZER text|recognize - prints where the tokens of texts are, for tests that compare this with what
 * another program finds.
 *
 * Standard input has texts, each after its number of bytes. Standard output has for each of them the status, the number
 * of its ids, the ids, where they begin, and where they end. All numbers are little-endian, of 64 bits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tokmap/tokenizer.h"

static void put(const uint64_t *numbers, uint64_t count)
{
    (void)fwrite(numbers, sizeof *numbers, (size_t)count, stdout);
}

/* The arrays have just the room that the ids need, so a sanitizer notices what is written behind them. */
static enum tokmap_status print_offsets(const struct tokmap_tokenizer *tokenizer, const char *text, uint64_t bytes)
{
    struct tokmap_error error = {0};
    struct tokmap_encoded encoded = TOKMAP_ENCODED_INIT;
    uint64_t status = (uint64_t)tokmap_tokenizer_encode(tokenizer, text, bytes, &encoded, &error);
    const uint64_t count = status ? 0 : encoded.count;
    encoded.type = TOKMAP_ID_U64;
    encoded.room = count;
    encoded.ids = malloc((size_t)count * 8);
    encoded.begins = malloc((size_t)count * 8);
    encoded.ends = malloc((size_t)count * 8);
    if (count && (!encoded.ids || !encoded.begins || !encoded.ends))
        return TOKMAP_ERROR_MEMORY;
    if (count)
        status = (uint64_t)tokmap_tokenizer_encode(tokenizer, text, bytes, &encoded, &error);
    if (status)
        (void)fprintf(stderr, "%s\n", error.message);
    put(&status, 1);
    put(&count, 1);
    put(encoded.ids, count);
    put(encoded.begins, count);
    put(encoded.ends, count);
    free(encoded.ids);
    free(encoded.begins);
    free(encoded.ends);
    return TOKMAP_OK;
}

int main(int argc, char **argv)
{
    struct tokmap_error error = {0};
    struct tokmap_tokenizer_options options = TOKMAP_TOKENIZER_OPTIONS_INIT;
    struct tokmap_tokenizer *tokenizer;
    uint64_t bytes;
    if (argc != 3)
        return 2;
    options.special = strcmp(argv[2], "text") ? TOKMAP_SPECIAL_RECOGNIZE : TOKMAP_SPECIAL_TEXT;
    if (tokmap_tokenizer_open(&tokenizer, argv[1], &options, &error)) {
        (void)fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    while (fread(&bytes, sizeof bytes, 1, stdin) == 1) {
        char *text = malloc((size_t)bytes);
        if ((bytes && !text) || fread(text, 1, (size_t)bytes, stdin) != bytes || print_offsets(tokenizer, text, bytes))
            return 2;
        free(text);
    }
    tokmap_tokenizer_close(tokenizer);
    return 0;
}
