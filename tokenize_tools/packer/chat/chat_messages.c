/* SPDX-License-Identifier: MIT */
/*
 * chat_messages.c - see chat_messages.h. Strings are copied without their quotes into one block of memory as long as
 * the JSON text, and decoded there, which never makes them longer.
 */
#include "chat_messages.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes_buffer.h"
#include "common/error.h"
#include "common/visible.h"
#include "text/json_scan.h"

/* Nesting in the values of keys that are ignored. */
#define DEPTH_MOST CHAT_JSON_DEPTH
#define UNWRITTEN "the template does not write the key (--ignore-fields leaves keys out)"
#define EMPTY                                                                                                          \
    "the template writes other text for empty \"tools\" or \"tool_calls\" than for null; write null in their place, "  \
    "or "                                                                                                              \
    "leave the key out (--ignore-fields does)"

/* Keys of messages that say more than the role and the content. They must not be dropped without a word where a
 * template does not write them. Other keys ("id", "timestamp") are what a template ignores. */
static const char *const meaningful[] = {
    "tool_calls", "tool_call_id", "tools",     "function_call", "functions", "reasoning_content",
    "reasoning",  "thinking",     "images",    "image",         "audio",     "audios",
    "videos",     "video",        "documents", "prefix",        "trainable", "masked",
    "loss",       "loss_mask",
};

/* Keys beside the messages of a record that formats of conversations use to say something to the model, or about what
 * it learns: those of OpenAI and TRL, of ShareGPT, Hermes, ToolACE, and glaive, and what templates call their
 * variables. man/tokmap-chat.7 lists them. Some template writes the first WRITTEN of them. */
#define WRITTEN 3
static const char *const beside_keys[] = {
    "tools",
    "chat_template_kwargs",
    "enable_thinking",
    "functions",
    "function_call",
    "tool_calls",
    "tool_choice",
    "parallel_tool_calls",
    "response_format",
    "available_tools",
    "custom_tools",
    "builtin_tools",
    "xml_tools",
    "python_tools",
    "tools_in_user_message",
    "tool_definitions",
    "tool_schemas",
    "function_description",
    "function_descriptions",
    "function_definitions",
    "system",
    "system_prompt",
    "system_message",
    "developer",
    "custom_instructions",
    "documents",
    "document",
    "date_string",
    "model_identity",
    "reasoning",
    "reasoning_content",
    "reasoning_effort",
    "thinking",
    "thinking_budget",
    "images",
    "image",
    "audio",
    "audios",
    "video",
    "videos",
    "weight",
    "train",
    "trainable",
    "masked",
    "loss",
    "loss_mask",
    NULL,
};

const char *const *chat_beside_keys(void)
{
    return beside_keys;
}

bool chat_beside_written(const char *key)
{
    for (size_t i = 0; i < WRITTEN; i++)
        if (!strcmp(key, beside_keys[i]))
            return true;
    return false;
}

struct reader {
    struct chat_messages *out;
    const struct chat_source *source;
    struct json_scan scan;
    size_t used;     /* bytes of out->texts */
    uint64_t number; /* of the message */
    bool no_memory;
};

void chat_messages_free(struct chat_messages *messages)
{
    free(messages->at);
    free(messages->parts);
    free(messages->calls);
    free(messages->tools);
    free(messages->texts);
    chat_json_free(&messages->json);
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

static bool without_memory(struct reader *reader)
{
    reader->no_memory = true;
    return false;
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

/* Takes a value, and returns whether it says nothing. */
static bool takes_nothing(struct reader *reader)
{
    const char *bytes;
    size_t count;
    return !json_value(&reader->scan, &bytes, &count) /* the fault is reported later */ ||
           json_says_nothing(bytes, count) || (count == 5 && *bytes == 'f');
}

/* Takes a string that has not been there before. The reasons are those to refuse it if it has been, and if the value is
 * something else. */
static bool text_read(struct reader *reader, struct chat_string *text, const char *twice, const char *other)
{
    struct json_string string;
    if (text->bytes)
        return refuse(reader, twice, NULL);
    if (json_kind(&reader->scan) != JSON_STRING)
        return refuse(reader, other, NULL);
    if (!json_text(&reader->scan, &string))
        return false;
    *text = decode(reader, &string);
    return true;
}

/* Takes one part of a list: {"type": "text", "text": ...}. */
static bool part_read(struct reader *reader)
{
    struct chat_messages *out = reader->out;
    struct json_scan *scan = &reader->scan;
    struct json_string name;
    struct chat_string type = {NULL, 0}, text = {NULL, 0};
    if (json_kind(scan) != JSON_OBJECT)
        return refuse(reader, "a part of its content is not a JSON object", NULL);
    if (!json_enter_object(scan))
        return false;
    while (json_member(scan, &name)) {
        const bool is_string = json_kind(scan) == JSON_STRING;
        if (is_string && json_name_is(&name, "type")
                ? !text_read(reader, &type, "a part of its content has two types", NULL)
            : is_string && json_name_is(&name, "text")
                ? !text_read(reader, &text, "a part of its content has two texts", NULL)
                : !json_skip(scan))
            return false;
        if (type.bytes && (type.count != 4 || memcmp(type.bytes, "text", 4) != 0))
            return refuse(reader, "a part of its content is not text; leave out or replace such parts first", &type);
    }
    if (scan->fault.reason)
        return false;
    if (!text.bytes || !type.bytes)
        return refuse(reader, "a part of its content lacks \"type\" or \"text\"", NULL);
    if (!list_room(&out->parts, out->part_count, &out->part_capacity, sizeof *out->parts))
        return without_memory(reader);
    out->parts[out->part_count++] = text;
    return true;
}

static bool content_read(struct reader *reader, struct chat_message *message)
{
    struct json_scan *scan = &reader->scan;
    const enum json_kind kind = json_kind(scan);
    if (kind == JSON_NULL)
        return json_null(scan);
    if (kind == JSON_STRING) {
        message->kind = CHAT_CONTENT_TEXT;
        return text_read(reader, &message->text, NULL, NULL);
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

/* ---- calls of tools ---- */

#define CALL_TWICE "a tool call has a key twice"

static bool arguments_read(struct reader *reader, struct chat_call *call)
{
    if (call->arguments.bytes)
        return refuse(reader, CALL_TWICE, NULL);
    if (json_kind(&reader->scan) == JSON_STRING) {
        const char *begin = reader->scan.at;
        if (!text_read(reader, &call->arguments_text, CALL_TWICE, NULL))
            return false;
        call->arguments = (struct chat_string){begin, (size_t)(reader->scan.at - begin)};
        return true;
    }
    return json_value(&reader->scan, &call->arguments.bytes, &call->arguments.count);
}

/* Takes the object of a call, or, with `inside`, the one in its key "function". */
static bool call_object_read(struct reader *reader, struct chat_call *call, bool inside)
{
    struct json_scan *scan = &reader->scan;
    struct json_string name;
    if (json_kind(scan) != JSON_OBJECT)
        return refuse(reader, "a tool call is not a JSON object", NULL);
    if (!json_enter_object(scan))
        return false;
    while (json_member(scan, &name)) {
        const bool is_null = json_kind(scan) == JSON_NULL; /* takes the spaces before the value */
        struct chat_string *text = json_name_is(&name, "name")   ? &call->name
                                   : inside || is_null           ? NULL
                                   : json_name_is(&name, "id")   ? &call->id
                                   : json_name_is(&name, "type") ? &call->type
                                                                 : NULL;
        const bool is_function = json_name_is(&name, "function") && !inside && !call->function.bytes;
        if (is_function)
            call->function.bytes = scan->at;
        if (text ? !text_read(reader, text, CALL_TWICE, "the name, the id, or the type of a tool call is not a string")
            : json_name_is(&name, "arguments") ? !arguments_read(reader, call)
            : is_function                      ? !call_object_read(reader, call, true)
                                               : !json_skip(scan))
            return false;
        if (is_function)
            call->function.count = (size_t)(scan->at - call->function.bytes);
    }
    return !scan->fault.reason;
}

/* Takes the calls of a message. */
static bool calls_read(struct reader *reader, struct chat_message *message)
{
    struct chat_messages *out = reader->out;
    if (json_kind(&reader->scan) != JSON_ARRAY)
        return refuse(reader, "its tool calls are not a list", NULL);
    if (message->call_count)
        return refuse(reader, "it has two lists of tool calls", NULL);
    if (!json_enter_array(&reader->scan))
        return false;
    while (json_element(&reader->scan)) {
        if (!list_room(&out->calls, out->call_count, &out->call_capacity, sizeof *out->calls))
            return without_memory(reader);
        struct chat_call *call = &out->calls[out->call_count++];
        *call = (struct chat_call){.type = {NULL, 0}};
        message->call_count++;
        if (!call_object_read(reader, call, false))
            return false;
        if (!call->name.bytes || !call->arguments.bytes)
            return refuse(reader, "a tool call has no \"name\" or no \"arguments\"", NULL);
    }
    return !reader->scan.fault.reason;
}

/* ---- messages ---- */

static bool is_among(const struct json_string *name, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (json_name_is(name, list[i]))
            return true;
    return false;
}

static bool is_ignored(const struct reader *reader, const struct json_string *name)
{
    return is_among(name, reader->source->ignored, reader->source->ignored_count);
}

bool chat_is_role(const struct chat_message *message, const char *role)
{
    return message->role.count == strlen(role) && !memcmp(message->role.bytes, role, message->role.count);
}

/* Takes "weight" or "train": 0 or false sets *says_no, 1 or true *says_yes, and null neither. */
static bool weight_read(struct reader *reader, bool *says_no, bool *says_yes)
{
    const char *bytes;
    size_t count;
    if (!json_value(&reader->scan, &bytes, &count))
        return false;
    const bool yes = (count == 1 && *bytes == '1') || (count == 4 && !memcmp(bytes, "true", 4)) ||
                     (count == 3 && !memcmp(bytes, "1.0", 3));
    const bool no = (count == 1 && *bytes == '0') || (count == 5 && !memcmp(bytes, "false", 5)) ||
                    (count == 3 && !memcmp(bytes, "0.0", 3));
    *says_yes |= yes;
    *says_no |= no;
    return yes || no || (count == 4 && !memcmp(bytes, "null", 4)) ||
           refuse(reader,
                  "its \"weight\" or \"train\" is neither 0 nor 1, neither true nor false; others are values, which "
                  "`tokmap index --values` puts beside what is packed",
                  NULL);
}

/* Refuses tools or calls that are empty but not null, if the template does not take them for none. */
static bool empty_check(struct reader *reader, const char *bytes, size_t count)
{
    return !(reader->source->abilities & CHAT_MEETS_EMPTY) || (count == 4 && *bytes == 'n') ||
           refuse(reader, EMPTY, NULL);
}

/* Takes the value of a key that says more than the role and the content. */
static bool meaningful_read(struct reader *reader, struct chat_message *message, const struct json_string *name)
{
    static const char *const thoughts[] = {"reasoning_content", "thinking", "reasoning"};
    const unsigned abilities = reader->source->abilities;
    if (is_among(name, thoughts, 3) && (abilities & CHAT_WRITES_THOUGHTS))
        return json_kind(&reader->scan) == JSON_NULL
                   ? json_null(&reader->scan)
                   : text_read(reader, &message->thoughts, "it has its reasoning twice",
                               "its reasoning is not a string");
    (void)json_kind(&reader->scan); /* takes the spaces before the value */
    const struct json_scan before = reader->scan;
    if (takes_nothing(reader))
        return !reader->scan.fault.reason && (!json_name_is(name, "tool_calls") ||
                                              empty_check(reader, before.at, (size_t)(reader->scan.at - before.at)));
    reader->scan = before;
    if (json_name_is(name, "tool_calls") && (abilities & CHAT_WRITES_CALLS))
        return calls_read(reader, message);
    if (json_name_is(name, "tool_call_id") && (abilities & CHAT_WRITES_CALLS))
        return text_read(reader, &message->call_id, "it has two of \"tool_call_id\"",
                         "its \"tool_call_id\" is not a string");
    const struct chat_string word = decode(reader, name);
    return refuse(reader, UNWRITTEN, &word);
}

/* Checks what the keys of a message say together. */
static bool message_check(struct reader *reader, const struct chat_message *message)
{
    const bool assistant = chat_is_role(message, "assistant");
    if (message->call_count && !assistant)
        return refuse(reader, "only an assistant calls tools, and its role is", &message->role);
    if (message->thoughts.count && !assistant)
        return refuse(reader, "only an assistant has reasoning, and its role is", &message->role);
    if (message->taught && !assistant && !reader->source->any_role)
        return refuse(reader, "only what an assistant says can count (--learn takes other roles), and its role is",
                      &message->role);
    if (message->kind == CHAT_CONTENT_NULL && !message->call_count)
        return refuse(reader, "it has no content", NULL);
    return true;
}

/* Takes one message. */
static bool message_read(struct reader *reader, struct chat_message *message)
{
    struct json_scan *scan = &reader->scan;
    struct json_string name;
    bool has_content = false, has_from = false;
    if (json_kind(scan) != JSON_OBJECT)
        return refuse(reader, "it is not a JSON object", NULL);
    if (!json_enter_object(scan))
        return false;
    while (json_member(scan, &name)) {
        bool good = true;
        if (json_name_is(&name, "role")) {
            good = text_read(reader, &message->role, "it has two roles", "its role is not a string");
        } else if (json_name_is(&name, "content")) {
            if (has_content)
                return refuse(reader, "it has two contents", NULL);
            has_content = true;
            good = content_read(reader, message);
        } else {
            message->extra = true;
            has_from |= json_name_is(&name, "from");
            good = is_ignored(reader, &name) ? json_skip(scan)
                   : json_name_is(&name, "weight") || json_name_is(&name, "train")
                       ? weight_read(reader, &message->masked, &message->taught)
                   : is_among(&name, meaningful, sizeof meaningful / sizeof *meaningful)
                       ? meaningful_read(reader, message, &name)
                       : json_skip(scan);
        }
        if (!good)
            return false;
    }
    if (scan->fault.reason)
        return false;
    if (!message->role.bytes)
        return refuse(reader,
                      has_from ? "it has no \"role\"; rename \"from\" and \"value\" to \"role\" and \"content\" first"
                               : "it has no \"role\"",
                      NULL);
    message->missing = !has_content;
    return message_check(reader, message);
}

/* ---- beside the messages ---- */

/* Takes the tools: a list of objects, or a string that contains one. */
static bool tools_read(struct reader *reader, const char *json, size_t bytes)
{
    struct chat_messages *out = reader->out;
    struct json_scan scan;
    struct json_string string;
    const char *tool;
    size_t count;
    json_begin(&scan, json, bytes);
    if (out->has_tools)
        return refuse(reader, "the record has its tools twice", NULL);
    if (json_kind(&scan) == JSON_STRING && json_text(&scan, &string)) {
        const struct chat_string text = decode(reader, &string);
        if (!text.count || json_says_nothing(text.bytes, text.count))
            return empty_check(reader, text.bytes, text.count);
        if (!json_is_valid(text.bytes, text.count, DEPTH_MOST))
            return refuse(reader, "the tools are a string that is not JSON", NULL);
        json_begin(&scan, text.bytes, text.count);
    }
    if (json_kind(&scan) != JSON_ARRAY)
        return refuse(reader, "the tools are not a list", NULL);
    (void)json_enter_array(&scan);
    while (json_element(&scan)) {
        if (!list_room(&out->tools, out->tool_count, &out->tool_capacity, sizeof *out->tools))
            return without_memory(reader);
        if (json_kind(&scan) != JSON_OBJECT)
            return refuse(reader, "a tool is not a JSON object", NULL);
        if (!json_value(&scan, &tool, &count))
            break;
        out->tools[out->tool_count++] = (struct chat_string){tool, count};
    }
    out->has_tools = out->tool_count > 0;
    return !scan.fault.reason || refuse(reader, scan.fault.reason, NULL);
}

/* Takes a variable of the template. */
static bool variable_read(struct reader *reader, const struct json_string *name, const struct chat_string *word,
                          const char *json, size_t bytes)
{
    const unsigned abilities = reader->source->abilities;
    const bool is_tools = json_name_is(name, "tools") && (abilities & CHAT_WRITES_TOOLS);
    if (json_says_nothing(json, bytes) || (abilities & CHAT_IS_RENDERED))
        return !is_tools || empty_check(reader, json, bytes);
    if (is_tools)
        return tools_read(reader, json, bytes);
    /* It changes only the prompt for an answer that is still to come. */
    if (json_name_is(name, "enable_thinking") && (abilities & CHAT_WRITES_THOUGHTS))
        return true;
    return refuse(reader, UNWRITTEN, word);
}

/* Takes the object chat_template_kwargs. */
static bool variables_read(struct reader *reader, const struct chat_string *word, const char *json, size_t bytes)
{
    struct json_scan scan;
    struct json_string name;
    const char *value;
    size_t count;
    json_begin(&scan, json, bytes);
    if (json_kind(&scan) != JSON_OBJECT)
        return json_says_nothing(json, bytes) || refuse(reader, UNWRITTEN, word);
    (void)json_enter_object(&scan);
    while (json_member(&scan, &name)) {
        if (!json_value(&scan, &value, &count))
            break;
        const struct chat_string key = decode(reader, &name);
        if (!is_ignored(reader, &name) && !variable_read(reader, &name, &key, value, count))
            return false;
    }
    return !scan.fault.reason || refuse(reader, scan.fault.reason, NULL);
}

/* Reads what the record has beside the messages. A name may have the path to it before it. */
static bool beside_read(struct reader *reader)
{
    struct json_scan scan;
    struct json_string path;
    const char *value;
    size_t count;
    reader->number = UINT64_MAX;
    json_begin(&scan, reader->source->beside, reader->source->beside_bytes);
    (void)json_enter_object(&scan);
    while (json_member(&scan, &path)) {
        const struct chat_string word = decode(reader, &path);
        struct json_string name = path;
        for (size_t i = 0; i < path.count; i++)
            if (path.bytes[i] == '.')
                name = (struct json_string){path.bytes + i + 1, path.count - i - 1, path.escaped};
        if (!json_value(&scan, &value, &count))
            break;
        if (json_name_is(&name, "chat_template_kwargs") ? !variables_read(reader, &word, value, count)
                                                        : !variable_read(reader, &name, &word, value, count))
            return false;
    }
    return !scan.fault.reason || refuse(reader, scan.fault.reason, NULL);
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
        if (!list_room(&out->at, out->count, &out->capacity, sizeof *out->at))
            return without_memory(reader);
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

enum tokmap_status chat_messages_read(struct chat_messages *messages, const struct chat_source *source,
                                      struct tokmap_error *error)
{
    const size_t bytes = source->bytes + source->beside_bytes;
    struct reader reader = {.out = messages, .source = source};
    messages->count = messages->part_count = messages->call_count = messages->tool_count = 0;
    messages->has_tools = false;
    messages->lone = messages->json.lone = 0;
    messages->json.names_twice = messages->json.no_memory = false;
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
    json_begin(&reader.scan, source->json, source->bytes);
    reader.scan.depth_most = DEPTH_MOST;
    if ((!all_read(&reader) || (source->beside && !beside_read(&reader))) && !messages->reason && !reader.no_memory) {
        reader.number = UINT64_MAX;
        (void)refuse(&reader, reader.scan.fault.reason ? reader.scan.fault.reason : "it is not valid JSON", NULL);
    }
    if (reader.no_memory)
        return error_set_memory(error, "the messages of a conversation", 0);
    size_t part = 0, call = 0;
    for (size_t i = 0; i < messages->count; i++) {
        struct chat_message *message = &messages->at[i];
        message->parts = messages->parts ? messages->parts + part : NULL; /* no message has parts: no array */
        part += message->part_count;
        message->calls = messages->calls ? messages->calls + call : NULL;
        call += message->call_count;
    }
    return TOKMAP_OK;
}
