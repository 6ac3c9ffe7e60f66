/* chat_writer.c - see chat_writer.h. */
#include "chat_writer.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "text/code_point.h"

/* ---- text ---- */

struct chat_string chat_literal(const char *text)
{
    return (struct chat_string){text, strlen(text)};
}

/* Whether Python's str.strip() removes the character. */
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

bool chat_equals(struct chat_string text, const char *other)
{
    const size_t count = strlen(other);
    return text.count == count && !memcmp(text.bytes, other, count);
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
    if (writer->no_memory || !text.count)
        return;
    if (into->capacity - into->count < text.count) {
        const uint64_t wanted = (into->count + text.count) * 2 + 1024;
        char *grown = wanted < SIZE_MAX / 2 ? realloc(into->bytes, (size_t)wanted) : NULL;
        if (!grown) {
            writer->no_memory = true;
            return;
        }
        into->bytes = grown;
        into->capacity = wanted;
    }
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
    if (out->mark_count == out->mark_capacity) {
        const uint64_t wanted = out->mark_capacity ? 2 * out->mark_capacity : 64;
        struct tokenizer_mark *grown = realloc(out->marks, (size_t)wanted * sizeof *grown);
        if (!grown) {
            writer->no_memory = true;
            return;
        }
        out->marks = grown;
        out->mark_capacity = wanted;
    }
    out->marks[out->mark_count++] = (struct tokenizer_mark){begin, out->text.count, (uint32_t)id};
}

void chat_put_token(struct chat_writer *writer, unsigned token)
{
    const struct chat_token_found *found = &writer->tokens[token];
    chat_put_id(writer, (struct chat_string){found->text, found->bytes}, found->id);
}

/* The longest token of the table that the text begins with, or UINT_MAX. */
static unsigned token_begins(const struct chat_writer *writer, const char *text)
{
    unsigned best = UINT_MAX;
    for (unsigned i = 0; i < writer->token_count; i++)
        if (!strncmp(text, writer->tokens[i].text, writer->tokens[i].bytes) &&
            (best == UINT_MAX || writer->tokens[i].bytes > writer->tokens[best].bytes))
            best = i;
    return best;
}

void chat_puts(struct chat_writer *writer, const char *text)
{
    const char *from = text;
    for (const char *at = text; *at;) {
        const unsigned token = *at == '<' || *at == '[' ? token_begins(writer, at) : UINT_MAX;
        if (token == UINT_MAX) {
            at++;
            continue;
        }
        chat_put(writer, (struct chat_string){from, (size_t)(at - from)});
        chat_put_token(writer, token);
        from = at += writer->tokens[token].bytes;
    }
    chat_put(writer, chat_literal(from));
}

void chat_put_json(struct chat_writer *writer, struct chat_string value, bool indent)
{
    struct chat_json *json = &writer->messages->json;
    json->out.count = 0;
    json->indent = indent;
    chat_json_value(json, value.bytes, value.count);
    chat_put(writer, (struct chat_string){(const char *)json->out.bytes, json->out.count});
}

void chat_put_json_string(struct chat_writer *writer, struct chat_string text)
{
    struct chat_json *json = &writer->messages->json;
    json->out.count = 0;
    chat_json_string(json, text.bytes, text.count);
    chat_put(writer, (struct chat_string){(const char *)json->out.bytes, json->out.count});
}

void chat_begin(struct chat_writer *writer, bool counts)
{
    writer->open = counts ? writer->out->text.count : UINT64_MAX;
}

void chat_end(struct chat_writer *writer)
{
    struct chat_text *out = writer->out;
    const uint64_t from = writer->open;
    writer->open = UINT64_MAX;
    if (writer->no_memory || from == UINT64_MAX || from == out->text.count)
        return;
    if (out->counted_count == out->counted_capacity) {
        const uint64_t wanted = out->counted_capacity ? 2 * out->counted_capacity : 32;
        struct chat_span *grown = realloc(out->counted, (size_t)wanted * sizeof *grown);
        if (!grown) {
            writer->no_memory = true;
            return;
        }
        out->counted = grown;
        out->counted_capacity = wanted;
    }
    out->counted[out->counted_count++] = (struct chat_span){from, out->text.count};
}

/* ---- roles and contents ---- */

bool chat_is_role(const struct chat_message *message, const char *role)
{
    return chat_equals(message->role, role);
}

bool chat_is_assistant(const struct chat_message *message)
{
    return chat_is_role(message, "assistant");
}

void chat_begin_turn(struct chat_writer *writer, const struct chat_message *message)
{
    chat_begin(writer, chat_is_assistant(message) && !message->masked);
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
            message->text = chat_literal("");
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
