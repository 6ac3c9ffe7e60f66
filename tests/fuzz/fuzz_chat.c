/* SPDX-License-Identifier: MIT */
/*
 * fuzz_chat.c - a hostile conversation. The first byte chooses a chat template and what is learned, and the rest is the
 * JSON of the messages, up to its first invalid byte of UTF-8. If it has a zero, what follows is what the record has
 * beside the messages, if that is an object. For any text, a conversation is refused with a reason, or written as valid
 * UTF-8 whose marks and targets are in order, and encoded to ids of the vocabulary. What a chat_text had before does
 * not matter: it is used again and again.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chat/chat.h"
#include "chat/chat_templates.h"
#include "fuzz_case.h"
#include "text/json_scan.h"
#include "text/utf8.h"
#include "vocabulary/vocabulary.h"

#define TEMPLATES_MOST 64

static struct tokenizer *tokenizer;
static struct tokenizer_state *encoder;
static struct tokenizer_info info;
static struct chat_template *templates[TEMPLATES_MOST];
static size_t template_count;

/* Writes a rank file with a token for each byte. */
static void ranks_write(const char *path)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    FILE *file = fopen(path, "wb");
    REQUIRE(file);
    for (unsigned i = 0; i < 256; i++)
        (void)fprintf(file, "%c%c== %u\n", digits[i >> 2], digits[(i & 3) << 4], i);
    REQUIRE(!fclose(file));
}

/* Writes the special tokens that the templates need: those of all of them, each once. */
static void specials_write(const char *path)
{
    const char *written[TEMPLATES_MOST * CHAT_TOKENS_MOST];
    size_t count = 0;
    FILE *file = fopen(path, "wb");
    REQUIRE(file);
    for (const char *const *name = chat_known_names(); *name; name++)
        for (const struct chat_token *token = chat_known_by_name(*name)->tokens; token->text; token++) {
            size_t before = 0;
            while (before < count && strcmp(written[before], token->text) != 0)
                before++;
            if (before < count)
                continue;
            (void)fprintf(file, "%s\"%s\": %zu", count ? ", " : "{", token->text, 256 + count);
            written[count++] = token->text;
        }
    (void)fputs("}", file);
    REQUIRE(!fclose(file));
}

static void prepare(void)
{
    struct tokmap_error error;
    char ranks[4200], specials[4200];
    (void)snprintf(ranks, sizeof ranks, "%s.tiktoken", fuzz_file("chat"));
    (void)snprintf(specials, sizeof specials, "%s.json", fuzz_path);
    ranks_write(ranks);
    specials_write(specials);
    const struct tokmap_tokenizer_options options = {.pattern = "gpt2", .special_tokens = specials};
    REQUIRE(vocabulary_open(&tokenizer, ranks, &options, &error) == TOKMAP_OK);
    (void)unlink(ranks);
    (void)unlink(specials);
    info = info_of_tokenizer(tokenizer);
    REQUIRE(info.width == 2 && tokenizer_state_new(&encoder, tokenizer, &error) == TOKMAP_OK);
    for (const char *const *name = chat_known_names(); *name; name++) {
        REQUIRE(template_count < TEMPLATES_MOST);
        REQUIRE(chat_template_open(&templates[template_count++], *name, NULL, tokenizer, &error) == TOKMAP_OK);
    }
}

static void rendered_check(const struct chat_text *text)
{
    REQUIRE(utf8_valid_prefix(text->text.bytes, text->text.count) == text->text.count);
    uint64_t at = 0;
    for (uint64_t i = 0; i < text->mark_count; i++) {
        const struct tokenizer_mark *mark = &text->marks[i];
        REQUIRE(mark->begin >= at && mark->end > mark->begin && mark->end <= text->text.count);
        REQUIRE(mark->id >= 256 && mark->id < info.vocabulary);
        at = mark->end;
    }
    at = 0;
    for (uint64_t i = 0; i < text->counted_count; i++) {
        REQUIRE(text->counted[i].begin >= at && text->counted[i].end >= text->counted[i].begin);
        REQUIRE(text->counted[i].end <= text->text.count);
        at = text->counted[i].end;
    }
}

static void encode(struct chat_text *text)
{
    struct tokmap_error error;
    uint64_t end;
    const uint64_t most = chat_ids_most(tokenizer, text);
    REQUIRE(most < (uint64_t)1 << 32);
    uint16_t *ids = malloc((size_t)(most + 1) * sizeof *ids);
    uint8_t *counted = malloc((size_t)most + 1);
    struct tokenizer_out out = {.tokens = ids, .capacity = most, .ends = &end};
    REQUIRE(ids && counted);
    REQUIRE(chat_encode(encoder, text, &out, counted, &error) == TOKMAP_OK);
    REQUIRE(out.count == end && out.count <= most);
    for (uint64_t i = 0; i < out.count; i++)
        REQUIRE(ids[i] < info.vocabulary &&
                (!counted[i] || (counted[i] & 1 && CHAT_COUNTED_ROLE(counted[i]) < CHAT_ROLES)));
    free(ids);
    free(counted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct chat_text text;
    struct tokmap_error error;
    if (!tokenizer)
        prepare();
    if (!size)
        return 0;
    const size_t valid = utf8_valid_prefix((const char *)data + 1, size - 1);
    char *json = malloc(valid + 1); /* of exactly these bytes, so that a read after them is seen */
    REQUIRE(json);
    memcpy(json, data + 1, valid);
    const char *zero = memchr(json, '\0', valid);
    const size_t count = zero ? (size_t)(zero - json) : valid, more = zero ? valid - count - 1 : 0;
    const bool has_beside = more && zero[1] == '{' && json_is_valid(zero + 1, more, JSON_DEPTH);
    struct chat_template *template = templates[data[0] % template_count];
    const unsigned ways = data[0] / (unsigned)template_count;
    const struct chat_learn learn = {
        .given = ways > 0, .roles = ways * 7 % 16, .no_thinking = ways & 1, .no_calls = ways & 2, .last = ways & 4};
    chat_template_learn(template, &learn);
    REQUIRE(chat_render_record(template, json, count, has_beside ? zero + 1 : NULL, has_beside ? more : 0, &text,
                               &error) == TOKMAP_OK);
    free(json);
    if (text.reason) {
        REQUIRE(*text.reason && memchr(text.detail, '\0', sizeof text.detail));
        REQUIRE(text.message == UINT64_MAX || text.message <= text.messages);
        return 0;
    }
    rendered_check(&text);
    encode(&text);
    return 0;
}
