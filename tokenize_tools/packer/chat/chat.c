/* SPDX-License-Identifier: MIT */
/* chat.c - see chat.h. Files are read by chat_config.c, messages by chat_messages.c; chat_templates.c writes. */
#include "chat.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "chat_config.h"
#include "chat_messages.h"
#include "chat_templates.h"
#include "common/bytes.h"
#include "common/error.h"
#include "platform/os.h"
#include "text/path.h"

struct chat_template {
    const struct chat_known *known;
    struct chat_token_found tokens[CHAT_TOKENS_MOST];
    size_t token_count;
    const struct tokenizer *tokenizer;
    uint32_t width; /* bytes of an id */
    const char *const *ignored;
    size_t ignored_count;
    struct chat_learn learn;
};

void chat_template_close(struct chat_template *template)
{
    if (!template)
        return;
    for (size_t i = 0; i < template->token_count; i++)
        free(template->tokens[i].text);
    free(template);
}

void chat_template_ignore(struct chat_template *template, const char *const *keys, size_t count)
{
    template->ignored = keys;
    template->ignored_count = count;
}

void chat_template_learn(struct chat_template *template, const struct chat_learn *learn)
{
    template->learn = *learn;
}

const struct chat_learn *chat_template_learned(const struct chat_template *template)
{
    return &template->learn;
}

bool chat_template_is_rendered(const struct chat_template *template)
{
    return template->known->abilities & CHAT_IS_RENDERED;
}

const char *chat_template_name(const struct chat_template *template)
{
    return template->known->name;
}

const char *chat_template_empty(const struct chat_template *template)
{
    return template->known->abilities & CHAT_MEETS_EMPTY ? "tools" : NULL;
}

/* ---- opening ---- */

/* Finds the tokens of the template in the vocabulary. */
static enum tokmap_status tokens_find(struct chat_template *template, const struct chat_config *config,
                                      const struct tokenizer *tokenizer, struct tokmap_error *error)
{
    for (const struct chat_token *token = template->known->tokens; token->text; token++) {
        const char *text = token->kind == CHAT_TOKEN_BOS && config->bos   ? config->bos
                           : token->kind == CHAT_TOKEN_EOS && config->eos ? config->eos
                                                                          : token->text;
        struct chat_token_found *found = &template->tokens[template->token_count];
        assert(template->token_count < CHAT_TOKENS_MOST);
        found->id = tokenizer_added_find(tokenizer, text, strlen(text));
        if (found->id == TOKMAP_NO_ID && token->kind != CHAT_TOKEN_OPTIONAL)
            return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                             "the chat template '%s' writes the special token '%s', which the vocabulary lacks; use a "
                             "tokenizer that has it, or another --chat-template",
                             template->known->name, text);
        found->text = strdup(text);
        if (!found->text)
            return error_set_memory(error, "a chat template", 0);
        found->bytes = strlen(text);
        found->kind = token->kind;
        template->token_count++;
    }
    return TOKMAP_OK;
}

/* Finds the built-in template that a file's template is. */
static enum tokmap_status known_find(const struct chat_config *config, const struct chat_known **known,
                                     struct tokmap_error *error)
{
    const char *why;
    *known = chat_known_by_text(config->jinja, config->jinja_bytes, &why);
    if (*known)
        return TOKMAP_OK;
    return error_set(error, TOKMAP_ERROR_UNSUPPORTED, config->jinja_path, TOKMAP_NO_OFFSET,
                     "%s; --chat-template takes a template that writes the same, and in Python tokmap.pack(..., "
                     "chat_template=tokenizer) runs any template",
                     why ? why : "its chat template is not one of those that are built in");
}

/* Reads the configuration of the tokenizer, from its folder. A tokenizer without one is not an error. */
static enum tokmap_status beside_read(struct chat_config *config, const char *tokenizer_path,
                                      struct tokmap_error *error)
{
    struct os_stat about;
    *config = (struct chat_config){0};
    if (!tokenizer_path || os_stat(tokenizer_path, &about))
        return TOKMAP_OK;
    if (about.kind == OS_KIND_FOLDER)
        return chat_config_read(config, tokenizer_path, error);
    char *folder = path_folder(tokenizer_path);
    if (!folder)
        return error_set_memory(error, "the path of a chat template", 0);
    const enum tokmap_status status = chat_config_read(config, folder, error);
    free(folder);
    return status;
}

/* Reports that a word is neither a template nor a file. */
static enum tokmap_status refuse_choice(const char *choice, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                     "'%s' is neither a file nor a chat template; --chat-template takes a file or one of %s", choice,
                     chat_known_list());
}

static enum tokmap_status choose(const char *choice, const char *tokenizer_path, struct chat_config *config,
                                 const struct chat_known **known, struct tokmap_error *error)
{
    struct os_stat about;
    *known = choice ? chat_known_by_name(choice) : NULL;
    if (choice && !*known) {
        if (!strchr(choice, '/') && os_stat(choice, &about))
            return refuse_choice(choice, error);
        const enum tokmap_status status = chat_config_read(config, choice, error);
        if (status)
            return status;
        if (!config->jinja)
            return error_set(error, TOKMAP_ERROR_ARGUMENT, choice, TOKMAP_NO_OFFSET, "this has no chat template");
        return known_find(config, known, error);
    }
    const enum tokmap_status status = beside_read(config, tokenizer_path, error);
    if (status || *known)
        return status;
    if (!config->jinja)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, tokenizer_path, TOKMAP_NO_OFFSET,
                         "there is no chat template beside the tokenizer (in tokenizer_config.json or "
                         "chat_template.jinja); choose one with --chat-template");
    return known_find(config, known, error);
}

enum tokmap_status chat_template_open(struct chat_template **template, const char *choice, const char *tokenizer_path,
                                      const struct tokenizer *tokenizer, struct tokmap_error *error)
{
    struct chat_config config = {0};
    const struct chat_known *known = NULL;
    struct chat_template *made = NULL;
    *template = NULL;
    enum tokmap_status status = choose(choice, tokenizer_path, &config, &known, error);
    if (!status && !(made = calloc(1, sizeof *made)))
        status = error_set_memory(error, "a chat template", sizeof *made);
    if (!status) {
        struct tokenizer_info info;
        tokenizer_info(tokenizer, &info);
        made->width = info.width;
        made->tokenizer = tokenizer;
        made->known = known;
        status = tokens_find(made, &config, tokenizer, error);
    }
    chat_config_free(&config);
    if (status) {
        chat_template_close(made);
        return status;
    }
    *template = made;
    return TOKMAP_OK;
}

/* ---- writing ---- */

void chat_text_free(struct chat_text *text)
{
    free(text->text.bytes);
    free(text->marks);
    free(text->counted);
    free(text->places);
    free(text->offsets);
    if (text->parsed) {
        chat_messages_free(text->parsed);
        free(text->parsed);
    }
    *text = (struct chat_text){0};
}

enum tokmap_status chat_render_record(const struct chat_template *template, const char *json, uint64_t bytes,
                                      const char *beside, uint64_t beside_bytes, struct chat_text *out,
                                      struct tokmap_error *error)
{
    const struct chat_source source = {.json = json,
                                       .bytes = (size_t)bytes,
                                       .beside = beside,
                                       .beside_bytes = (size_t)beside_bytes,
                                       .abilities = template->known->abilities,
                                       .ignored = template->ignored,
                                       .ignored_count = template->ignored_count,
                                       .any_role = template->learn.given};
    if (!out->parsed && !(out->parsed = calloc(1, sizeof *out->parsed)))
        return error_set_memory(error, "a conversation", sizeof *out->parsed);
    struct chat_messages *messages = out->parsed;
    out->text.count = out->mark_count = out->counted_count = 0;
    const enum tokmap_status status = chat_messages_read(messages, &source, error);
    if (status)
        return status;
    struct chat_writer writer = {.out = out,
                                 .tokens = template->tokens,
                                 .token_count = template->token_count,
                                 .tokenizer = template->tokenizer,
                                 .messages = messages,
                                 .learn = &template->learn,
                                 .open = UINT64_MAX};
    if (!messages->reason)
        chat_learn_apply(&template->learn, messages);
    if (!messages->reason)
        template->known->render(&writer, messages, template->known->how);
    if (messages->json.names_twice)
        chat_messages_refuse(messages, "an object of its tools or arguments has a key twice", UINT64_MAX, NULL);
    if (writer.no_memory || messages->json.no_memory)
        return error_set_memory(error, "the text of a conversation", out->text.count);
    out->width = template->width;
    out->messages = messages->count;
    memset(out->messages_of, 0, sizeof out->messages_of);
    for (size_t i = 0; i < messages->count && !messages->reason; i++)
        out->messages_of[messages->at[i].speaker]++;
    out->lone = messages->lone + messages->json.lone;
    out->reason = messages->reason;
    out->message = messages->message;
    memcpy(out->detail, messages->detail, sizeof out->detail);
    return TOKMAP_OK;
}

/* ---- encoding ---- */

uint64_t chat_ids_most(const struct tokenizer *tokenizer, const struct chat_text *text)
{
    struct tokenizer_info info;
    tokenizer_info(tokenizer, &info);
    return mul_capped(text->text.count, info.ids_per_byte_most);
}

/* Makes the memory for `count` elements of `size` bytes at least that large. Its content is not kept. */
static enum tokmap_status reserve(void **memory, uint64_t *capacity, uint64_t count, size_t size,
                                  struct tokmap_error *error)
{
    if (count <= *capacity)
        return TOKMAP_OK;
    const uint64_t wanted = count + count / 2;
    free(*memory);
    *capacity = 0;
    *memory = wanted < SIZE_MAX / 2 / size ? malloc((size_t)wanted * size) : NULL;
    if (!*memory)
        return error_set_memory(error, "the tokens of a conversation", wanted);
    *capacity = wanted;
    return TOKMAP_OK;
}

/* The ids of a conversation, and the text between two marks, which is searched for the tokens of offsets. */
struct search {
    struct tokenizer_state *state;
    struct chat_text *text;
    const struct tokenizer_out *out;
    uint64_t place; /* the place after the text between; mark_count: the text after the last mark */
    bool known;     /* text->offsets are those of the text between */
};

/* Finds the bytes [*begin, *end) and ids [*first, *last) of the text between. */
static void between(const struct search *search, uint64_t *begin, uint64_t *end, uint64_t *first, uint64_t *last)
{
    const struct chat_text *text = search->text;
    const struct tokenizer_place *before = search->place ? &text->places[search->place - 1] : NULL;
    const struct tokenizer_place *after = search->place < text->mark_count ? &text->places[search->place] : NULL;
    *begin = before ? before->end : 0;
    *end = after ? after->begin : text->text.count;
    *first = before ? before->index + 1 : search->out->has_prefix;
    *last = after ? after->index : search->out->count - search->out->has_suffix;
}

/* Finds the token that has a byte of the text: the first token that ends after it. With `before`, a space that the
 * tokenizer has put before the byte is included: the model says it, too. Offsets must ascend from call to call. */
static enum tokmap_status token_at(struct search *search, uint64_t byte, bool before, uint64_t *index,
                                   struct tokmap_error *error)
{
    struct chat_text *text = search->text;
    while (search->place < text->mark_count && text->places[search->place].end <= byte) {
        search->place++;
        search->known = false;
    }
    uint64_t begin, end, first, last;
    between(search, &begin, &end, &first, &last);
    *index = last;
    if (byte >= end || first == last)
        return TOKMAP_OK;
    if (!search->known) {
        const struct tokmap_text part = {text->text.bytes + begin, end - begin};
        const char *ids = (const char *)search->out->tokens + first * text->width;
        void *offsets = text->offsets;
        enum tokmap_status status =
            reserve(&offsets, &text->offset_capacity, 2 * (last - first), sizeof *text->offsets, error);
        text->offsets = offsets;
        if (!status)
            status = tokenizer_offsets(search->state, &part, search->place ? TOKENIZER_AFTER_ADDED : TOKENIZER_STARTS,
                                       ids, last - first, text->offsets + (last - first), text->offsets, error);
        if (status)
            return status;
        search->known = true;
    }
    const uint64_t *ends = text->offsets, *begins = ends + (last - first);
    uint64_t low = 0, high = last - first;
    while (low < high) {
        const uint64_t middle = (low + high) / 2;
        if (ends[middle] <= byte - begin)
            low = middle + 1;
        else
            high = middle;
    }
    while (before && low && begins[low - 1] == byte - begin)
        low--;
    *index = first + low;
    return TOKMAP_OK;
}

static enum tokmap_status tokens_count(struct search *search, uint8_t *counted, struct tokmap_error *error)
{
    const struct chat_text *text = search->text;
    memset(counted, 0, (size_t)search->out->count);
    for (uint64_t i = 0; i < text->counted_count; i++) {
        uint64_t first, last;
        enum tokmap_status status = token_at(search, text->counted[i].begin, true, &first, error);
        if (!status)
            status = token_at(search, text->counted[i].end - 1, false, &last, error);
        if (status)
            return status;
        const uint64_t end = search->out->count - search->out->has_suffix;
        for (uint64_t k = first; k <= last && k < end; k++)
            counted[k] = CHAT_COUNTED(text->counted[i].role);
    }
    return TOKMAP_OK;
}

enum tokmap_status chat_encode(struct tokenizer_state *state, struct chat_text *text, struct tokenizer_out *out,
                               uint8_t *counted, struct tokmap_error *error)
{
    const struct tokmap_text document = {text->text.bytes, text->text.count};
    void *places = text->places;
    assert(!text->reason);
    enum tokmap_status status = reserve(&places, &text->place_capacity, text->mark_count, sizeof *text->places, error);
    text->places = places;
    if (!status)
        status = tokenizer_encode_marked(state, &document, text->marks, text->mark_count, out, text->places, error);
    if (status || !counted)
        return status;
    struct search search = {.state = state, .text = text, .out = out};
    return tokens_count(&search, counted, error);
}
