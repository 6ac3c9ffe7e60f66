/* SPDX-License-Identifier: MIT */
/*
 * fuzz_vocabulary.c - opens arbitrary bytes as a vocabulary file: a rank file, a tokenizer.json, a tekken.json, a
 * SentencePiece model, a vocab.txt, or a trie; or as a folder, if they begin with a line "==> NAME <==", as tail and
 * head write several files. A vocabulary that opens must encode and decode any text within its limits, find the
 * offsets of its ids, encode and decode the same in parts, and a second state must give the same ids. The texts are one
 * that has some of everything, and one of the end of the input, which has words of the vocabulary.
 */
#include <ctype.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz_case.h"
#include "support/decode_once.h"
#include "text/utf8.h"
#include "vocabulary/vocabulary.h"

#define TEXT_MOST 1024 /* bytes of a text */

static const char some_of_all[] =
    "Hello  world, it's 12345\r\n\t\xc3\xa9t\xc3\xa9 \xe2\x96\x81\xe4\xb8\xad\xe6\x96\x87 \xf0\x9f\x98\x80"
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa<s><|end|>"
    " ababababab    \n\n  the theme e\xcc\x81\xea\xb0\x80\xe1\x84\x80\xe1\x85\xa1.";

static uint64_t encode(const struct tokenizer *tokenizer, const struct tokenizer_info *info,
                       const struct tokmap_text *text, void *tokens, uint64_t room, bool *encoded)
{
    struct tokenizer_state *state;
    struct tokmap_error error;
    const struct tokmap_text documents[] = {*text, {text->bytes, 0}, {some_of_all + 6, 10}};
    const struct tokenizer_batch batch = {.documents = documents, .count = 3};
    uint64_t ends[3];
    struct tokenizer_out out = {.tokens = tokens, .capacity = room, .ends = ends};
    REQUIRE(tokenizer_state_new(&state, tokenizer, &error) == TOKMAP_OK);
    const enum tokmap_status status = tokenizer_encode(state, &batch, &out, &error);
    tokenizer_state_free(state);
    /* Statuses other than OK: matching the pattern may exceed its limit, and bytes may have no token. */
    REQUIRE(status == TOKMAP_OK || status == TOKMAP_ERROR_LIMIT || status == TOKMAP_ERROR_INPUT ||
            status == TOKMAP_ERROR_TOKEN || status == TOKMAP_ERROR_UNSUPPORTED);
    *encoded = !status;
    if (status)
        return 0;
    REQUIRE(out.count <= room && out.ends[2] == out.count && out.ends[0] <= out.ends[1] && out.ends[1] <= out.ends[2]);
    for (uint64_t i = 0; i < out.count; i++) {
        const uint64_t id = info->width == 2 ? ((const uint16_t *)tokens)[i] : ((const uint32_t *)tokens)[i];
        REQUIRE(id < info->vocabulary && id <= out.largest);
    }
    return out.count;
}

/* The ids of a text in two parts are those of the whole. */
static void encode_in_parts(const struct tokenizer *tokenizer, const struct tokenizer_info *info,
                            const struct tokmap_text *text, const char *whole)
{
    struct tokenizer_state *state;
    struct tokmap_error error;
    const uint64_t room = (info->ids_per_byte_most + 1) * text->count + 64;
    char *ids = malloc(room * info->width);
    REQUIRE(ids && tokenizer_state_new(&state, tokenizer, &error) == TOKMAP_OK);
    for (uint64_t known = 1; info->cuts && known < text->count; known += 1 + known / 4) {
        while (known < text->count && ((unsigned char)text->bytes[known] & 0xC0) == 0x80)
            known++;
        const uint64_t cut = tokenizer_cut(tokenizer, text->bytes, known);
        REQUIRE(cut <= known);
        if (!cut || cut == text->count)
            continue;
        const struct tokmap_text parts[2] = {{text->bytes, cut}, {text->bytes + cut, text->count - cut}};
        uint64_t count = 0, end;
        for (int i = 0; i < 2; i++) {
            const struct tokenizer_batch batch = {&parts[i], 1, i == 1, i == 0};
            struct tokenizer_out out = {.tokens = ids + count * info->width, .capacity = room - count, .ends = &end};
            REQUIRE(tokenizer_encode(state, &batch, &out, &error) == TOKMAP_OK);
            count += out.count;
        }
        REQUIRE(!memcmp(ids, whole, count * info->width));
    }
    tokenizer_state_free(state);
    free(ids);
}

/* The offsets of the ids of a text ascend within it. */
static void find_offsets(const struct tokenizer *tokenizer, const struct tokmap_text *text)
{
    struct tokenizer_state *state;
    struct tokmap_error error;
    const struct tokenizer_batch batch = {.documents = text, .count = 1};
    uint64_t end;
    const struct tokenizer_info info = info_of_tokenizer(tokenizer);
    struct tokenizer_out out = {.capacity = info.ids_per_byte_most * text->count + 1, .ends = &end};
    out.tokens = malloc(out.capacity * info.width);
    REQUIRE(out.tokens && tokenizer_state_new(&state, tokenizer, &error) == TOKMAP_OK);
    if (!tokenizer_encode(state, &batch, &out, &error)) {
        uint64_t *places = malloc((2 * out.count + 1) * sizeof *places), *begins = places, *ends = places + out.count;
        REQUIRE(places);
        const enum tokmap_status status =
            tokenizer_offsets(state, text, TOKENIZER_STARTS, out.tokens, out.count, begins, ends, &error);
        REQUIRE(status == TOKMAP_OK || status == TOKMAP_ERROR_LIMIT);
        for (uint64_t i = 0; !status && i < out.count; i++)
            REQUIRE(begins[i] <= ends[i] && ends[i] <= text->count &&
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
    struct tokenizer_decoder *decoder;
    struct tokmap_error error;
    struct text_buffer parts = {NULL, 0, 0};
    const struct tokenizer_info info = info_of_tokenizer(tokenizer);
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

static void use(const struct tokenizer *tokenizer, const struct tokmap_text *text)
{
    struct tokenizer_info info = info_of_tokenizer(tokenizer);
    const uint64_t room = (info.ids_per_byte_most + 1) * (text->count + 64);
    char *tokens = malloc(room * 4), *again = malloc(room * 4);
    bool encoded, twice;
    REQUIRE(tokens && again);
    const uint64_t count = encode(tokenizer, &info, text, tokens, room, &encoded);
    REQUIRE(encode(tokenizer, &info, text, again, room, &twice) == count && encoded == twice &&
            !memcmp(tokens, again, count * info.width));
    struct text_buffer back = {NULL, 0, 0};
    struct tokmap_error error;
    const enum tokmap_status status = tokenizer_decode(tokenizer, tokens, count, true, false, &back, &error);
    /* The file may have a decoder that cannot be reproduced, or a pattern that exceeds its limit. */
    REQUIRE(status == TOKMAP_OK || status == TOKMAP_ERROR_UNSUPPORTED || status == TOKMAP_ERROR_LIMIT);
    REQUIRE(back.count <= back.capacity);
    if (status == TOKMAP_OK)
        decode_in_parts(tokenizer, tokens, count, &back);
    if (encoded)
        encode_in_parts(tokenizer, &info, text, tokens);
    find_offsets(tokenizer, text);
    free(back.bytes);
    free(tokens);
    free(again);
}

static void use_all(const struct tokenizer *tokenizer, const uint8_t *data, size_t size)
{
    struct tokmap_added_token added;
    const struct tokenizer_info info = info_of_tokenizer(tokenizer);
    REQUIRE((info.width == 2 || info.width == 4) && info.name && info.form);
    for (uint64_t i = 0; i < info.added && i < 100; i++) {
        tokenizer_added_at(tokenizer, i, &added);
        REQUIRE(added.id < info.vocabulary);
    }
    const struct tokmap_text text = {some_of_all, sizeof some_of_all - 1};
    use(tokenizer, &text);
    char *end = malloc(TEXT_MOST);
    REQUIRE(end);
    const size_t from = size < TEXT_MOST ? 0 : size - TEXT_MOST;
    size_t count = 0;
    for (size_t at = from; at < size; at++) { /* without the bytes that are not UTF-8 */
        const size_t valid = utf8_valid_prefix((const char *)data + at, size - at);
        if (valid)
            memcpy(end + count, data + at, valid);
        count += valid;
        at += valid;
    }
    const struct tokmap_text own = {end, count};
    use(tokenizer, &own);
    free(end);
}

/* ---- a folder ---- */

#define MEMBERS_MOST 8
static char folder_path[512], member_paths[MEMBERS_MOST][600];

static void folder_remove(void)
{
    (void)rmdir(folder_path);
}

static size_t name_end(const uint8_t *data, size_t size)
{
    size_t at = 0;
    while (at < size && at < 60 && (isalnum(data[at]) || (data[at] && strchr("._-", data[at]))))
        at++;
    return at;
}

/* Writes the members of a folder. Returns how many there are; 0: the input is not one. */
static int folder_write(const uint8_t *data, size_t size)
{
    static const char before[] = "==> ", after[] = " <==\n";
    int count = 0;
    while (count < MEMBERS_MOST && size > 4 && !memcmp(data, before, 4)) {
        const size_t name = name_end(data + 4, size - 4);
        if (!name || data[4] == '.' || size - 4 - name < 5 || memcmp(data + 4 + name, after, 5))
            break;
        if (!folder_path[0]) {
            const char *folder = getenv("TMPDIR");
            REQUIRE(snprintf(folder_path, sizeof folder_path, "%s/fuzz-XXXXXX", folder ? folder : "/tmp") < 512);
            REQUIRE(mkdtemp(folder_path) && !atexit(folder_remove));
        }
        (void)snprintf(member_paths[count], sizeof member_paths[0], "%s/%.*s", folder_path, (int)name,
                       (const char *)data + 4);
        data += 9 + name;
        size -= 9 + name;
        const uint8_t *end = memmem(data, size, "\n==> ", 5);
        const size_t bytes = end ? (size_t)(end - data) + 1 : size;
        const int fd = open(member_paths[count], O_CREAT | O_TRUNC | O_WRONLY, 0600);
        REQUIRE(fd >= 0 && write(fd, data, bytes) == (ssize_t)bytes && !close(fd));
        data += bytes;
        size -= bytes;
        count++;
    }
    return count;
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
    const int members = folder_write(data, size);
    static const struct tokmap_tokenizer_options options[] = {
        {.special = TOKMAP_SPECIAL_RECOGNIZE},
        {.special = TOKMAP_SPECIAL_RECOGNIZE, .pattern = "o200k_base"},
        {.special = TOKMAP_SPECIAL_RECOGNIZE, .lower_case = "yes"}};
    for (int i = 0; i < 3; i++) {
        struct tokenizer *tokenizer;
        struct tokmap_error error;
        memset(&error, 0, sizeof error);
        const enum tokmap_status status =
            vocabulary_open(&tokenizer, members ? folder_path : path, &options[i], &error);
        if (status == TOKMAP_OK) {
            use_all(tokenizer, data, size);
            tokenizer_close(tokenizer);
            break;
        }
        REQUIRE(!tokenizer && error.status == status && error.message[0]);
        REQUIRE(status == TOKMAP_ERROR_FORMAT || status == TOKMAP_ERROR_UNSUPPORTED ||
                status == TOKMAP_ERROR_ARGUMENT || status == TOKMAP_ERROR_LIMIT || status == TOKMAP_ERROR_NOT_FOUND ||
                status == TOKMAP_ERROR_TRUNCATED || status == TOKMAP_ERROR_MEMORY);
        if (status != TOKMAP_ERROR_ARGUMENT)
            break; /* only a rank file needs a pattern */
    }
    for (int i = 0; i < members; i++)
        (void)unlink(member_paths[i]);
    return 0;
}
