/* SPDX-License-Identifier: MIT */
/*
 * fuzz_vocabulary.c - opens arbitrary bytes as a vocabulary file: a rank file, a tokenizer.json, a tekken.json, a
 * SentencePiece model, a vocab.txt, or a trie. A vocabulary that opens must encode and decode any text within its
 * limits, find the offsets of its ids, decode the same in parts, and a second state must give the same ids.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vocabulary/vocabulary.h"
#include "fuzz_case.h"

static const char text[] =
    "Hello  world, it's 12345\r\n\t\xc3\xa9t\xc3\xa9 \xe2\x96\x81\xe4\xb8\xad\xe6\x96\x87 \xf0\x9f\x98\x80"
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa<s><|end|>"
    " ababababab    \n\n  the theme e\xcc\x81\xea\xb0\x80\xe1\x84\x80\xe1\x85\xa1.";

static uint64_t encode(const struct tokenizer *tokenizer, const struct tokenizer_info *info, void *tokens,
                       uint64_t room)
{
    struct tokenizer_state *state;
    struct tokmap_error error;
    const struct tokmap_text documents[] = {{text, sizeof text - 1}, {text, 0}, {text + 6, 10}};
    const struct tokenizer_batch batch = {.documents = documents, .count = 3};
    uint64_t ends[3];
    struct tokenizer_out out = {.tokens = tokens, .capacity = room, .ends = ends};
    REQUIRE(tokenizer_state_new(&state, tokenizer, &error) == TOKMAP_OK);
    const enum tokmap_status status = tokenizer_encode(state, &batch, &out, &error);
    tokenizer_state_free(state);
    /* Statuses other than OK: matching the pattern may exceed its limit, and bytes may have no token. */
    REQUIRE(status == TOKMAP_OK || status == TOKMAP_ERROR_LIMIT || status == TOKMAP_ERROR_INPUT ||
            status == TOKMAP_ERROR_TOKEN || status == TOKMAP_ERROR_UNSUPPORTED);
    if (status)
        return 0;
    REQUIRE(out.count <= room && out.ends[2] == out.count && out.ends[0] <= out.ends[1] && out.ends[1] <= out.ends[2]);
    for (uint64_t i = 0; i < out.count; i++) {
        const uint64_t id = info->width == 2 ? ((const uint16_t *)tokens)[i] : ((const uint32_t *)tokens)[i];
        REQUIRE(id < info->vocabulary && id <= out.largest);
    }
    return out.count;
}

/* The offsets of the ids of a text ascend within it. */
static void find_offsets(const struct tokenizer *tokenizer)
{
    struct tokenizer_info info;
    struct tokenizer_state *state;
    struct tokmap_error error;
    const struct tokmap_text document = {text, sizeof text - 1};
    const struct tokenizer_batch batch = {.documents = &document, .count = 1};
    uint64_t end;
    tokenizer_info(tokenizer, &info);
    struct tokenizer_out out = {.capacity = info.ids_per_byte_most * sizeof text + 1, .ends = &end};
    out.tokens = malloc(out.capacity * info.width);
    REQUIRE(out.tokens && tokenizer_state_new(&state, tokenizer, &error) == TOKMAP_OK);
    if (!tokenizer_encode(state, &batch, &out, &error)) {
        uint64_t *places = malloc((2 * out.count + 1) * sizeof *places), *begins = places, *ends = places + out.count;
        REQUIRE(places);
        const enum tokmap_status status =
            tokenizer_offsets(state, &document, TOKENIZER_STARTS, out.tokens, out.count, begins, ends, &error);
        REQUIRE(status == TOKMAP_OK || status == TOKMAP_ERROR_LIMIT);
        for (uint64_t i = 0; !status && i < out.count; i++)
            REQUIRE(begins[i] <= ends[i] && ends[i] <= document.count &&
                    (!i || (begins[i - 1] <= begins[i] && ends[i - 1] <= ends[i])));
        free(places);
    }
    tokenizer_state_free(state);
    free(out.tokens);
}

/* Decodes ids one by one. The text is that of all at once. */
static void decode_in_parts(const struct tokenizer *tokenizer, const char *tokens, uint64_t count,
                            const struct text_buffer *once)
{
    struct tokenizer_info info;
    struct tokenizer_decoder *decoder;
    struct tokmap_error error;
    struct text_buffer parts = {NULL, 0, 0};
    tokenizer_info(tokenizer, &info);
    REQUIRE(tokenizer_decoder_new(&decoder, tokenizer, true, &error) == TOKMAP_OK);
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t i = 0; !status && i < count; i++)
        status = tokenizer_decoder_add(decoder, tokens + i * info.width, 1, &parts, &error);
    status = status ? status : tokenizer_decoder_end(decoder, &parts, &error);
    REQUIRE(status == TOKMAP_ERROR_LIMIT || (!status && parts.count == once->count &&
                                             (!parts.count || !memcmp(parts.bytes, once->bytes, parts.count))));
    tokenizer_decoder_free(decoder);
    free(parts.bytes);
}

static void use(const struct tokenizer *tokenizer)
{
    struct tokenizer_info info;
    struct tokmap_added_token added;
    tokenizer_info(tokenizer, &info);
    REQUIRE((info.width == 2 || info.width == 4) && info.name && info.form);
    for (uint64_t i = 0; i < info.added && i < 100; i++) {
        tokenizer_added_at(tokenizer, i, &added);
        REQUIRE(added.id < info.vocabulary);
    }
    const uint64_t room = (info.ids_per_byte_most + 1) * sizeof text * 2 + 1024;
    void *tokens = malloc(room * 4), *again = malloc(room * 4);
    REQUIRE(tokens && again);
    const uint64_t count = encode(tokenizer, &info, tokens, room);
    REQUIRE(encode(tokenizer, &info, again, room) == count && !memcmp(tokens, again, count * info.width));
    struct text_buffer back = {NULL, 0, 0};
    struct tokmap_error error;
    const enum tokmap_status status = tokenizer_decode(tokenizer, tokens, count, true, false, &back, &error);
    /* The file may have a decoder that cannot be reproduced, or a pattern that exceeds its limit. */
    REQUIRE(status == TOKMAP_OK || status == TOKMAP_ERROR_UNSUPPORTED || status == TOKMAP_ERROR_LIMIT);
    REQUIRE(back.count <= back.capacity);
    if (status == TOKMAP_OK)
        decode_in_parts(tokenizer, tokens, count, &back);
    find_offsets(tokenizer);
    free(back.bytes);
    free(tokens);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    static char path[64];
    if (fd < 0) {
        fd = memfd_create("vocabulary", 0);
        REQUIRE(fd >= 0);
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    REQUIRE(!ftruncate(fd, 0) && pwrite(fd, data, size, 0) == (ssize_t)size);
    static const struct tokmap_tokenizer_options options[] = {
        {.special = TOKMAP_SPECIAL_RECOGNIZE}, {.special = TOKMAP_SPECIAL_RECOGNIZE, .pattern = "o200k_base"}};
    for (int i = 0; i < 2; i++) {
        struct tokenizer *tokenizer;
        struct tokmap_error error;
        memset(&error, 0, sizeof error);
        const enum tokmap_status status = vocabulary_open(&tokenizer, path, &options[i], &error);
        if (status == TOKMAP_OK) {
            use(tokenizer);
            tokenizer_close(tokenizer);
            break;
        }
        REQUIRE(!tokenizer && error.status == status && error.message[0]);
        REQUIRE(status == TOKMAP_ERROR_FORMAT || status == TOKMAP_ERROR_UNSUPPORTED ||
                status == TOKMAP_ERROR_ARGUMENT || status == TOKMAP_ERROR_LIMIT || status == TOKMAP_ERROR_NOT_FOUND ||
                status == TOKMAP_ERROR_MEMORY);
        if (status != TOKMAP_ERROR_ARGUMENT)
            break; /* only a rank file needs a pattern */
    }
    return 0;
}
