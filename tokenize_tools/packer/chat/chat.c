/* SPDX-License-Identifier: MIT */
/* chat.c - see chat.h. Messages are read by chat_messages.c; chat_templates.c writes. */
#include "chat.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "chat_messages.h"
#include "chat_templates.h"
#include "common/bytes.h"
#include "common/error.h"
#include "platform/os.h"
#include "text/json_scan.h"
#include "text/path.h"
#include "text/utf8.h"

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

/* ---- what the files of a tokenizer say about its chat template ---- */

#define CHAT_CONFIG_MOST ((uint64_t)64 << 20) /* bytes of a file */

/* Each text is NULL if no file has it. They belong to the struct, and so do the paths. */
struct chat_config {
    char *jinja; /* the template */
    size_t jinja_bytes;
    char *jinja_path; /* the file that has it */
    char *bos, *eos;  /* the texts of the tokens that templates call bos_token and eos_token */
};

#define CONFIG_NAME "tokenizer_config.json"

static void chat_config_free(struct chat_config *config)
{
    free(config->jinja);
    free(config->jinja_path);
    free(config->bos);
    free(config->eos);
    *config = (struct chat_config){0};
}

/* Reads a whole file; the caller frees *text. */
static enum tokmap_status file_read(const char *path, char **text, size_t *bytes, struct tokmap_error *error)
{
    int fd, failed = os_open(path, OS_READ_NOW, &fd);
    struct os_stat about;
    enum tokmap_status status = TOKMAP_OK;
    *text = NULL;
    *bytes = 0;
    if (failed)
        return error_set_system(error, failed, path, TOKMAP_NO_OFFSET, "the file cannot be opened");
    failed = os_fstat(fd, &about);
    if (!failed && about.kind != OS_KIND_FILE)
        status = error_set(error, TOKMAP_ERROR_FORMAT, path, TOKMAP_NO_OFFSET,
                           "this is not a regular file, so it cannot be read as a chat template");
    else if (!failed && about.bytes > CHAT_CONFIG_MOST)
        status =
            error_set(error, TOKMAP_ERROR_LIMIT, path, TOKMAP_NO_OFFSET,
                      "the file has %" PRIu64 " bytes; files with chat templates have at most 64 MiB", about.bytes);
    else if (!failed && !(*text = malloc((size_t)about.bytes + 1)))
        status = error_set_memory(error, "a chat template", about.bytes);
    else if (!failed)
        failed = os_pread(fd, *text, (size_t)about.bytes, 0, bytes);
    os_close(fd);
    if (failed)
        status = error_set_system(error, failed, path, TOKMAP_NO_OFFSET, "the file cannot be read");
    if (!status && utf8_valid_prefix(*text, *bytes) != *bytes)
        status = error_set(error, TOKMAP_ERROR_FORMAT, path, utf8_valid_prefix(*text, *bytes),
                           "the file is not valid UTF-8");
    if (status) {
        free(*text);
        *text = NULL;
    }
    return status;
}

/* Contents of a JSON file. The strings point into its text. */
struct found {
    struct json_string jinja, bos, eos;
    bool has_jinja, has_bos, has_eos;
};

/* Takes one of several templates: {"name": ..., "template": ...}. */
static bool named_read(struct json_scan *scan, struct found *found)
{
    struct json_string name, key = {0}, text = {0};
    if (!json_enter_object(scan))
        return false;
    while (json_member(scan, &name))
        if (json_name_is(&name, "name")       ? !json_text(scan, &key)
            : json_name_is(&name, "template") ? !json_text(scan, &text)
                                              : !json_skip(scan))
            return false;
    if (json_equals(&key, "default", 7) && text.bytes) {
        found->jinja = text;
        found->has_jinja = true;
    }
    return !scan->fault.reason;
}

static bool jinja_read(struct json_scan *scan, struct found *found)
{
    const enum json_kind kind = json_kind(scan);
    if (kind == JSON_STRING) {
        found->has_jinja = true;
        return json_text(scan, &found->jinja);
    }
    if (kind != JSON_ARRAY)
        return json_skip(scan);
    if (!json_enter_array(scan))
        return false;
    while (json_element(scan))
        if (!named_read(scan, found))
            return false;
    return !scan->fault.reason;
}

/* Takes a token: a string, or an object with it in "content". */
static bool token_read(struct json_scan *scan, struct json_string *text, bool *has)
{
    struct json_string name;
    const enum json_kind kind = json_kind(scan);
    if (kind == JSON_STRING) {
        *has = true;
        return json_text(scan, text);
    }
    if (kind != JSON_OBJECT)
        return json_skip(scan);
    if (!json_enter_object(scan))
        return false;
    while (json_member(scan, &name)) {
        if (!json_name_is(&name, "content")) {
            if (!json_skip(scan))
                return false;
            continue;
        }
        if (!json_text(scan, text))
            return false;
        *has = true;
    }
    return !scan->fault.reason;
}

static bool found_read(struct json_scan *scan, struct found *found)
{
    struct json_string name;
    if (!json_enter_object(scan))
        return false;
    while (json_member(scan, &name))
        if (json_name_is(&name, "chat_template") ? !jinja_read(scan, found)
            : json_name_is(&name, "bos_token")   ? !token_read(scan, &found->bos, &found->has_bos)
            : json_name_is(&name, "eos_token")   ? !token_read(scan, &found->eos, &found->has_eos)
                                                 : !json_skip(scan))
            return false;
    return json_end(scan);
}

/* Returns a terminated copy of a string, decoded. */
static char *string_copy(const struct json_string *string, size_t *bytes)
{
    char *made = malloc(string->count + 1);
    size_t lone = 0, first;
    if (!made)
        return NULL;
    memcpy(made, string->bytes, string->count);
    *bytes = string->escaped ? json_unescape(made, string->count, &lone, &first) : string->count;
    made[*bytes] = 0;
    return made;
}

/* Adds what the JSON text of a file says to *config, except what that has already. */
static enum tokmap_status json_add(struct chat_config *config, const char *path, const char *text, size_t count,
                                   struct tokmap_error *error)
{
    struct found found = {0};
    struct json_scan scan;
    size_t bytes;
    json_begin(&scan, text, count);
    if (!found_read(&scan, &found))
        return error_set(error, TOKMAP_ERROR_FORMAT, path, scan.fault.offset, "%s", scan.fault.reason);
    bool good = true;
    if (found.has_jinja && !config->jinja) {
        config->jinja = string_copy(&found.jinja, &config->jinja_bytes);
        config->jinja_path = strdup(path);
        good = config->jinja && config->jinja_path;
    }
    if (found.has_bos && !config->bos)
        good &= (config->bos = string_copy(&found.bos, &bytes)) != NULL;
    if (found.has_eos && !config->eos)
        good &= (config->eos = string_copy(&found.eos, &bytes)) != NULL;
    return good ? TOKMAP_OK : error_set_memory(error, "a chat template", 0);
}

/* Adds a file, JSON or Jinja. */
static enum tokmap_status file_add(struct chat_config *config, const char *path, struct tokmap_error *error)
{
    char *text;
    size_t bytes;
    enum tokmap_status status = file_read(path, &text, &bytes, error);
    if (status)
        return status;
    size_t at = 0;
    while (at < bytes && strchr(" \t\r\n", text[at]))
        at++;
    const char *ending = strrchr(path_name(path), '.');
    const bool jinja = ending && (!strcmp(ending, ".jinja") || !strcmp(ending, ".jinja2"));
    /* A template begins with text or with {{, {%, {#, which no JSON object does. */
    if (jinja || at == bytes || text[at] != '{' || (at + 1 < bytes && strchr("{%#", text[at + 1]))) {
        if (config->jinja) {
            free(text);
            return TOKMAP_OK;
        }
        config->jinja = text;
        config->jinja_bytes = bytes;
        config->jinja_path = strdup(path);
        return config->jinja_path ? TOKMAP_OK : error_set_memory(error, "a chat template", 0);
    }
    status = json_add(config, path, text, bytes, error);
    free(text);
    return status;
}

/* Adds the file of this name in a folder, if it exists. */
static enum tokmap_status folder_add(struct chat_config *config, const char *folder, const char *name,
                                     struct tokmap_error *error)
{
    struct os_stat about;
    char *path = path_in(folder, name);
    if (!path)
        return error_set_memory(error, "the path of a chat template", 0);
    const enum tokmap_status status = os_stat(path, &about) ? TOKMAP_OK : file_add(config, path, error);
    free(path);
    return status;
}

/* Adds the tokens, but not the template, of the configuration beside a file. */
static enum tokmap_status tokens_add(struct chat_config *config, const char *path, struct tokmap_error *error)
{
    struct chat_config beside = {0};
    char *folder = path_folder(path);
    if (!folder)
        return error_set_memory(error, "the path of a chat template", 0);
    const enum tokmap_status status = folder_add(&beside, folder, CONFIG_NAME, error);
    free(folder);
    if (!config->bos) {
        config->bos = beside.bos;
        beside.bos = NULL;
    }
    if (!config->eos) {
        config->eos = beside.eos;
        beside.eos = NULL;
    }
    chat_config_free(&beside);
    return status;
}

/* Reads a file (tokenizer_config.json, chat_template.json, chat_template.jinja, or any file with the content of one of
 * them), or the files of these names in a folder, where a .jinja file counts before the others. For a file that is not
 * a tokenizer_config.json, the one beside it is read for the tokens. On failure *config is empty. */
static enum tokmap_status chat_config_read(struct chat_config *config, const char *path, struct tokmap_error *error)
{
    static const char *const names[] = {"chat_template.jinja", "chat_template.json", CONFIG_NAME};
    struct os_stat about;
    *config = (struct chat_config){0};
    const int failed = os_stat(path, &about);
    if (failed)
        return error_set_system(error, failed, path, TOKMAP_NO_OFFSET, "the chat template cannot be opened");
    enum tokmap_status status = TOKMAP_OK;
    if (about.kind == OS_KIND_FOLDER) {
        for (size_t i = 0; i < sizeof names / sizeof *names && !status; i++)
            status = folder_add(config, path, names[i], error);
    } else {
        status = file_add(config, path, error);
        if (!status && (!config->bos || !config->eos))
            status = tokens_add(config, path, error);
    }
    if (status)
        chat_config_free(config);
    return status;
}

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
        const struct tokenizer_info info = info_of_tokenizer(tokenizer);
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
    const struct tokenizer_info info = info_of_tokenizer(tokenizer);
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
