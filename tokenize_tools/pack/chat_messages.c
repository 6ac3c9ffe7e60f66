/*
 * chat_messages.c - see chat_messages.h. Strings are copied without their quotes into one block of memory as long as
 * the JSON text, and decoded there, which never makes them longer.
 */
#include "chat_messages.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "common/visible.h"
#include "text/json_scan.h"

/* Nesting in the values of keys that are ignored. */
#define DEPTH_MOST 64

/* Keys that change what the writers of conversations mean. A template of tokmap does not write them, so they must not
 * be dropped without a word. Other keys ("id", "timestamp") are what a template ignores. */
static const char *const meaningful[] = {
    "tool_calls", "tool_call_id", "tools",     "function_call", "functions", "reasoning_content",
    "reasoning",  "thinking",     "images",    "image",         "audio",     "audios",
    "videos",     "video",        "documents", "prefix",        "weight",    "train",
    "trainable",  "masked",       "loss",      "loss_mask",
};

struct reader {
    struct chat_messages *out;
    struct json_scan scan;
    size_t used;     /* bytes of out->texts */
    uint64_t number; /* of the message */
    bool no_memory;
};

void chat_messages_free(struct chat_messages *messages)
{
    free(messages->at);
    free(messages->parts);
    free(messages->texts);
    *messages = (struct chat_messages){0};
}

void chat_messages_refuse(struct chat_messages *messages, const char *reason, uint64_t message,
                          const struct chat_string *detail)
{
    if (messages->reason)
        return;
    messages->reason = reason;
    messages->message = message;
    messages->detail[0] = 0;
    if (!detail)
        return;
    (void)visible_copy(messages->detail, sizeof messages->detail, detail->bytes, detail->count, "");
}

static bool refuse(struct reader *reader, const char *reason, const struct chat_string *detail)
{
    chat_messages_refuse(reader->out, reason, reader->number, detail);
    return false;
}

/* Makes room for one more element of `size` bytes. */
static bool grow(struct reader *reader, void **list, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return true;
    const size_t wanted = *capacity ? 2 * *capacity : 16;
    void *grown = wanted < SIZE_MAX / 2 / size ? realloc(*list, wanted * size) : NULL;
    if (!grown) {
        reader->no_memory = true;
        return false;
    }
    *list = grown;
    *capacity = wanted;
    return true;
}

/* Copies and decodes a string. */
static struct chat_string decode(struct reader *reader, const struct json_string *string)
{
    char *into = reader->out->texts + reader->used;
    size_t count = string->count, lone = 0, first;
    assert(count <= reader->out->texts_capacity - reader->used);
    if (count)
        memcpy(into, string->bytes, count);
    if (string->escaped)
        count = json_unescape(into, count, &lone, &first);
    reader->used += count;
    reader->out->lone += lone;
    return (struct chat_string){into, count};
}

/* Takes a value, and returns whether it says nothing: null, false, "", [], {}. */
static bool takes_nothing(struct reader *reader)
{
    const char *bytes;
    size_t count;
    if (!json_value(&reader->scan, &bytes, &count))
        return true; /* the fault is reported later */
    if (count && (bytes[0] == '[' || bytes[0] == '{')) {
        for (size_t i = 1; i + 1 < count; i++)
            if (!strchr(" \t\r\n", bytes[i]))
                return false;
        return true;
    }
    return (count == 4 && !memcmp(bytes, "null", 4)) || (count == 5 && !memcmp(bytes, "false", 5)) || count == 2;
}

/* Takes one part of a list: {"type": "text", "text": ...}. */
static bool part_read(struct reader *reader)
{
    struct chat_messages *out = reader->out;
    struct json_scan *scan = &reader->scan;
    struct json_string name, text = {0};
    bool has_text = false, has_type = false;
    if (json_kind(scan) != JSON_OBJECT)
        return refuse(reader, "a part of its content is not a JSON object", NULL);
    if (!json_enter_object(scan))
        return false;
    while (json_member(scan, &name)) {
        if (json_name_is(&name, "type") && json_kind(scan) == JSON_STRING) {
            struct json_string type;
            if (has_type)
                return refuse(reader, "a part of its content has two types", NULL);
            has_type = true;
            if (!json_text(scan, &type))
                return false;
            if (!json_equals(&type, "text", 4)) {
                const struct chat_string word = decode(reader, &type);
                return refuse(reader, "a part of its content is not text; leave out or replace such parts first",
                              &word);
            }
        } else if (json_name_is(&name, "text") && json_kind(scan) == JSON_STRING) {
            if (has_text)
                return refuse(reader, "a part of its content has two texts", NULL);
            has_text = true;
            if (!json_text(scan, &text))
                return false;
        } else if (!json_skip(scan)) {
            return false;
        }
    }
    if (scan->fault.reason)
        return false;
    if (!has_text || !has_type)
        return refuse(reader, "a part of its content lacks \"type\" or \"text\"", NULL);
    void *list = out->parts;
    if (!grow(reader, &list, out->part_count, &out->part_capacity, sizeof *out->parts))
        return false;
    out->parts = list;
    out->parts[out->part_count++] = decode(reader, &text);
    return true;
}

static bool content_read(struct reader *reader, struct chat_message *message)
{
    struct json_scan *scan = &reader->scan;
    struct json_string text;
    const enum json_kind kind = json_kind(scan);
    if (kind == JSON_NULL) {
        message->kind = CHAT_CONTENT_NULL;
        return json_null(scan);
    }
    if (kind == JSON_STRING) {
        message->kind = CHAT_CONTENT_TEXT;
        if (!json_text(scan, &text))
            return false;
        message->text = decode(reader, &text);
        return true;
    }
    if (kind != JSON_ARRAY)
        return refuse(reader, "its content is neither a string nor a list of parts", NULL);
    message->kind = CHAT_CONTENT_PARTS;
    if (!json_enter_array(scan))
        return false;
    while (json_element(scan)) {
        if (!part_read(reader))
            return false;
        message->part_count++;
    }
    return !scan->fault.reason;
}

static bool is_meaningful(const struct json_string *name)
{
    for (size_t i = 0; i < sizeof meaningful / sizeof *meaningful; i++)
        if (json_name_is(name, meaningful[i]))
            return true;
    return false;
}

/* Takes one message. */
static bool message_read(struct reader *reader, struct chat_message *message)
{
    struct json_scan *scan = &reader->scan;
    struct json_string name, role;
    bool has_role = false, has_content = false, has_from = false;
    if (json_kind(scan) != JSON_OBJECT)
        return refuse(reader, "it is not a JSON object", NULL);
    if (!json_enter_object(scan))
        return false;
    while (json_member(scan, &name)) {
        if (json_name_is(&name, "role")) {
            if (has_role)
                return refuse(reader, "it has two roles", NULL);
            if (json_kind(scan) != JSON_STRING)
                return refuse(reader, "its role is not a string", NULL);
            has_role = true;
            if (!json_text(scan, &role))
                return false;
            message->role = decode(reader, &role);
        } else if (json_name_is(&name, "content")) {
            if (has_content)
                return refuse(reader, "it has two contents", NULL);
            has_content = true;
            if (!content_read(reader, message))
                return false;
        } else if (is_meaningful(&name)) {
            if (!takes_nothing(reader)) {
                const struct chat_string word = decode(reader, &name);
                return refuse(reader, "only tokmap.pack(..., chat_template=tokenizer) of Python writes the key", &word);
            }
        } else {
            has_from |= json_name_is(&name, "from");
            if (!json_skip(scan))
                return false;
        }
    }
    if (scan->fault.reason)
        return false;
    if (!has_role)
        return refuse(reader,
                      has_from ? "it has no \"role\"; rename \"from\" and \"value\" to \"role\" and \"content\" first"
                               : "it has no \"role\"",
                      NULL);
    if (!has_content)
        message->kind = CHAT_CONTENT_NULL;
    return true;
}

static bool all_read(struct reader *reader)
{
    struct chat_messages *out = reader->out;
    struct json_scan *scan = &reader->scan;
    reader->number = UINT64_MAX;
    if (json_kind(scan) != JSON_ARRAY)
        return refuse(reader, "the messages are not a list", NULL);
    if (!json_enter_array(scan))
        return false;
    while (json_element(scan)) {
        void *list = out->at;
        if (!grow(reader, &list, out->count, &out->capacity, sizeof *out->at))
            return false;
        out->at = list;
        out->at[out->count] = (struct chat_message){.kind = CHAT_CONTENT_NULL};
        reader->number = out->count;
        if (!message_read(reader, &out->at[out->count]))
            return false;
        out->count++;
    }
    reader->number = UINT64_MAX;
    if (scan->fault.reason || !json_end(scan))
        return false;
    return out->count || refuse(reader, "the conversation has no messages", NULL);
}

enum tokmap_status chat_messages_read(struct chat_messages *messages, const char *json, size_t bytes,
                                      struct tokmap_error *error)
{
    struct reader reader = {.out = messages};
    messages->count = messages->part_count = 0;
    messages->lone = 0;
    messages->reason = NULL;
    messages->detail[0] = 0;
    if (bytes > messages->texts_capacity) {
        free(messages->texts);
        messages->texts_capacity = 0;
        messages->texts = malloc(bytes);
        if (!messages->texts)
            return error_set_memory(error, "a conversation", bytes);
        messages->texts_capacity = bytes;
    }
    json_begin(&reader.scan, json, bytes);
    reader.scan.depth_most = DEPTH_MOST;
    if (!all_read(&reader) && !messages->reason && !reader.no_memory) {
        reader.number = UINT64_MAX;
        (void)refuse(&reader, reader.scan.fault.reason ? reader.scan.fault.reason : "it is not valid JSON", NULL);
    }
    if (reader.no_memory)
        return error_set_memory(error, "the messages of a conversation", 0);
    size_t part = 0;
    for (size_t i = 0; i < messages->count; i++) {
        messages->at[i].parts = messages->parts ? messages->parts + part : NULL; /* no message has parts: no array */
        part += messages->at[i].part_count;
    }
    return TOKMAP_OK;
}
