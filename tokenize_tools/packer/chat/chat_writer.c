/* SPDX-License-Identifier: MIT */
#include "chat_writer.h"

#include <assert.h>
#include <string.h>

#include "common/bytes_buffer.h"
#include "engine/tokenizer_kind.h"
#include "text/code_point.h"

/* ---- text ---- */

/* Returns true if Python's str.strip() removes the character. */
static bool is_space(uint32_t code)
{
    return (code >= 9 && code <= 13) || (code >= 0x1C && code <= 0x20) || code == 0x85 || code == 0xA0 ||
           code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F ||
           code == 0x205F || code == 0x3000;
}

struct chat_string chat_strip_end(struct chat_string text)
{
    const uint8_t *bytes = (const uint8_t *)text.bytes;
    while (text.count) {
        size_t at = text.count, size;
        do
            at--;
        while (at && (bytes[at] & 0xC0) == 0x80);
        if (!is_space(code_point_get(bytes + at, &size)))
            break;
        text.count = at;
    }
    return text;
}

struct chat_string chat_strip(struct chat_string text)
{
    size_t size;
    text = chat_strip_end(text);
    while (text.count && is_space(code_point_get((const uint8_t *)text.bytes, &size))) {
        text.bytes += size;
        text.count -= size;
    }
    return text;
}

struct chat_string chat_strip_newlines_start(struct chat_string text)
{
    while (text.count && text.bytes[0] == '\n') {
        text.bytes++;
        text.count--;
    }
    return text;
}

struct chat_string chat_strip_newlines_end(struct chat_string text)
{
    while (text.count && text.bytes[text.count - 1] == '\n')
        text.count--;
    return text;
}

bool chat_starts_with(struct chat_string text, const char *start)
{
    const size_t count = strlen(start);
    return text.count >= count && !memcmp(text.bytes, start, count);
}

bool chat_ends_with(struct chat_string text, const char *end)
{
    const size_t count = strlen(end);
    return text.count >= count && !memcmp(text.bytes + text.count - count, end, count);
}

struct chat_string chat_after_last(struct chat_string text, const char *mark)
{
    const size_t count = strlen(mark);
    for (size_t at = text.count; at-- > 0;)
        if (text.count - at >= count && !memcmp(text.bytes + at, mark, count))
            return (struct chat_string){text.bytes + at + count, text.count - at - count};
    return text;
}

struct chat_string chat_before_first(struct chat_string text, const char *mark, bool *found)
{
    const char *at = text.count ? memmem(text.bytes, text.count, mark, strlen(mark)) : NULL;
    *found = at != NULL;
    return (struct chat_string){text.bytes, at ? (size_t)(at - text.bytes) : text.count};
}

size_t chat_code_points(struct chat_string text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.count; i++)
        count += ((uint8_t)text.bytes[i] & 0xC0) != 0x80;
    return count;
}

struct chat_string chat_member(struct chat_string object, const char *wanted)
{
    struct chat_string value, found = {"", 0};
    struct json_scan scan;
    struct json_string name;
    json_begin(&scan, object.bytes, object.count);
    (void)json_enter_object(&scan);
    while (json_member(&scan, &name) && json_value(&scan, &value.bytes, &value.count))
        if (json_name_is(&name, wanted))
            found = value;
    return found;
}

/* ---- writing ---- */

void chat_put(struct chat_writer *writer, struct chat_string text)
{
    struct text_buffer *into = &writer->out->text;
    writer->no_memory = writer->no_memory || text_buffer_reserve(into, text.count, NULL);
    if (writer->no_memory || !text.count)
        return;
    memcpy(into->bytes + into->count, text.bytes, text.count);
    into->count += text.count;
}

void chat_put_id(struct chat_writer *writer, struct chat_string text, uint64_t id)
{
    struct chat_text *out = writer->out;
    const uint64_t begin = out->text.count;
    chat_put(writer, text);
    if (writer->no_memory || id == TOKMAP_NO_ID)
        return;
    writer->no_memory = !list_room(&out->marks, out->mark_count, &out->mark_capacity, sizeof *out->marks);
    if (!writer->no_memory)
        out->marks[out->mark_count++] = (struct tokenizer_mark){begin, out->text.count, (uint32_t)id};
}

static void token_put(struct chat_writer *writer, const struct chat_token_found *token)
{
    chat_put_id(writer, (struct chat_string){token->text, token->bytes}, token->id);
}

/* Returns the longest token of the table that the text begins with, or NULL. */
static const struct chat_token_found *token_begins(const struct chat_writer *writer, const char *text)
{
    const struct chat_token_found *best = NULL;
    for (const struct chat_token_found *token = writer->tokens; token < writer->tokens + writer->token_count; token++)
        if (!strncmp(text, token->text, token->bytes) && (!best || token->bytes > best->bytes))
            best = token;
    return best;
}

static void token_put_kind(struct chat_writer *writer, enum chat_token_kind kind)
{
    for (size_t i = 0; i < writer->token_count; i++)
        if (writer->tokens[i].kind == kind)
            token_put(writer, &writer->tokens[i]);
}

static void json_put(struct chat_writer *writer)
{
    const struct bytes_buffer *out = &writer->messages->json.out;
    chat_put(writer, (struct chat_string){(const char *)out->bytes, out->count});
}

void chat_put_json(struct chat_writer *writer, struct chat_string value, bool indent)
{
    struct chat_json *json = &writer->messages->json;
    json->out.count = 0;
    json->indent = indent;
    chat_json_value(json, value.bytes, value.count);
    json_put(writer);
}

/* Adds a span that counts. */
static void span_add(struct chat_writer *writer, uint64_t from, uint64_t end)
{
    struct chat_text *out = writer->out;
    if (writer->no_memory || from == end)
        return;
    writer->no_memory = !list_room(&out->counted, out->counted_count, &out->counted_capacity, sizeof *out->counted);
    if (!writer->no_memory)
        out->counted[out->counted_count++] = (struct chat_span){from, end, writer->turn->speaker};
}

void chat_begin(struct chat_writer *writer, const struct chat_message *message)
{
    writer->turn = message->learned ? message : NULL;
    writer->turn_begin = writer->out->text.count;
    writer->turn_first = writer->out->counted_count;
    writer->left_out = false;
    chat_resume(writer);
}

void chat_resume(struct chat_writer *writer)
{
    if (writer->turn && writer->open == UINT64_MAX)
        writer->open = writer->out->text.count;
}

/* Ends a span that counts: adds what is written since its beginning, without the thoughts of an assistant. */
void chat_pause(struct chat_writer *writer)
{
    const uint64_t end = writer->out->text.count;
    uint64_t at = writer->open, first, after;
    writer->open = UINT64_MAX;
    if (at == UINT64_MAX || writer->no_memory)
        return;
    const char *text = writer->out->text.bytes;
    const bool thoughtless =
        writer->learn->no_thinking && !writer->turn->whole && writer->turn->speaker == CHAT_ROLE_ASSISTANT;
    uint64_t said = end;
    if (thoughtless && writer->out->mark_count) { /* thoughts that were cut do not include the token after them */
        const struct tokenizer_mark *mark = &writer->out->marks[writer->out->mark_count - 1];
        said = mark->end == end && mark->begin >= at ? mark->begin : end;
    }
    bool begins = at == writer->turn_begin; /* nothing but thoughts has been said */
    while (thoughtless && chat_thoughts_find(text, at, said, begins, &first, &after)) {
        span_add(writer, at, first);
        writer->left_out = true;
        begins = begins && first == at;
        at = after;
    }
    span_add(writer, at, end);
}

void chat_calls_begin(struct chat_writer *writer)
{
    if (!writer->turn || !writer->turn->call_count || !writer->learn->no_calls || writer->turn->whole)
        return;
    writer->left_out = true;
    chat_pause(writer);
}

void chat_end(struct chat_writer *writer)
{
    struct chat_text *out = writer->out;
    if (!writer->turn)
        return;
    chat_pause(writer);
    if (writer->left_out && out->counted_count == writer->turn_first + 1 && out->mark_count) {
        const struct chat_span *only = &out->counted[writer->turn_first];
        const struct tokenizer_mark *mark = &out->marks[out->mark_count - 1];
        out->counted_count -= only->begin == mark->begin && only->end == mark->end;
    }
    writer->turn = NULL;
}

/* Writes what a letter of a form stands for. */
static void letter_put(struct chat_writer *writer, const struct chat_message *message, char letter)
{
    switch (letter) {
    case 'b':
    case 'e':
        token_put_kind(writer, letter == 'b' ? CHAT_TOKEN_BOS : CHAT_TOKEN_EOS);
        return;
    case '(':
        chat_begin(writer, message);
        return;
    case ')':
        chat_end(writer);
        return;
    case 'r':
        chat_put(writer, message->role);
        return;
    case 't':
        chat_put(writer, message->text);
        return;
    case 's':
        chat_put(writer, chat_strip(message->text));
        for (size_t i = 0; i < message->part_count; i++)
            chat_put(writer, chat_strip(message->parts[i]));
        return;
    case 'q':
        writer->messages->json.out.count = 0;
        chat_json_string(&writer->messages->json, message->text.bytes, message->text.count);
        json_put(writer);
        return;
    case 'i':
        chat_put(writer, message->call_id);
        return;
    default:
        assert(letter == 'p');
        if (writer->prefix) {
            chat_begin(writer, &writer->messages->at[0]);
            chat_put(writer, *writer->prefix);
            chat_end(writer);
            chat_puts(writer, "\n\n");
        }
        writer->prefix = NULL;
    }
}

static void call_letter_put(struct chat_writer *writer, const struct chat_call *call, char letter)
{
    if (letter == 'a' || (letter == 'x' && !call->arguments_text.bytes))
        chat_put_json(writer, call->arguments, false);
    else
        chat_put(writer, letter == 'n'   ? call->name
                         : letter == 'i' ? call->id
                         : letter == 'y' ? call->type
                                         : call->arguments_text);
}

static void form_write(struct chat_writer *writer, const struct chat_message *message, const struct chat_call *call,
                       const char *form)
{
    const char *from = form;
    for (const char *at = form;;) {
        const struct chat_token_found *token = *at == '<' || *at == '[' ? token_begins(writer, at) : NULL;
        if (*at && *at != '%' && !token) {
            at++;
            continue;
        }
        chat_put(writer, (struct chat_string){from, (size_t)(at - from)});
        if (!*at || (!token && at[1] == '?' && !message->text.count))
            return;
        if (token)
            token_put(writer, token);
        else if (call)
            call_letter_put(writer, call, at[1]);
        else if (at[1] != '?')
            letter_put(writer, message, at[1]);
        from = at += token ? token->bytes : 2;
    }
}

void chat_write(struct chat_writer *writer, const struct chat_message *message, const char *form)
{
    form_write(writer, message, NULL, form);
}

void chat_write_call(struct chat_writer *writer, const struct chat_call *call, const char *form)
{
    form_write(writer, NULL, call, form);
}

void chat_puts(struct chat_writer *writer, const char *form)
{
    form_write(writer, NULL, NULL, form);
}

/* ---- roles and contents ---- */

bool chat_is_assistant(const struct chat_message *message)
{
    return chat_is_role(message, "assistant");
}

bool chat_refuse(struct chat_messages *messages, size_t index, const char *reason)
{
    chat_messages_refuse(messages, reason, index, NULL);
    return false;
}

bool chat_refuse_role(struct chat_messages *messages, size_t index, const char *reason)
{
    chat_messages_refuse(messages, reason, index, &messages->at[index].role);
    return false;
}

bool chat_contents_are_text(struct chat_messages *messages)
{
    for (size_t i = 0; i < messages->count; i++) {
        struct chat_message *message = &messages->at[i];
        if (message->kind == CHAT_CONTENT_PARTS)
            return chat_refuse(messages, i, "the template takes a content that is a string, not a list");
        if (message->kind == CHAT_CONTENT_NULL)
            message->text = (struct chat_string){"", 0};
    }
    return true;
}

bool chat_roles_from_are(struct chat_messages *messages, size_t first, const char *const *roles)
{
    for (size_t i = first; i < messages->count; i++) {
        const char *const *role = roles;
        while (*role && !chat_is_role(&messages->at[i], *role))
            role++;
        if (!*role)
            return chat_refuse_role(messages, i, CHAT_UNKNOWN_ROLE);
    }
    return true;
}

bool chat_roles_are(struct chat_messages *messages, const char *const *roles)
{
    return chat_roles_from_are(messages, 0, roles);
}

const char *const chat_usual_roles[] = {"system", "user", "assistant", NULL};
const char *const chat_tool_roles[] = {"system", "user", "assistant", "tool", NULL};

bool chat_roles_alternate(struct chat_messages *messages, size_t first, const char *reason)
{
    for (size_t i = first; i < messages->count; i++)
        if (chat_is_role(&messages->at[i], "user") != ((i - first) % 2 == 0))
            return chat_refuse_role(messages, i, reason);
    return true;
}

size_t chat_system_count(const struct chat_messages *messages)
{
    return chat_is_role(&messages->at[0], "system") ? 1 : 0;
}
