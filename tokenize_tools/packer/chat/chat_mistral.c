/* SPDX-License-Identifier: MIT */
/* chat_mistral.c - see chat_mistral.h. */
#include "chat_mistral.h"

#include <stdint.h>
#include <string.h>

const struct chat_token chat_llama2_tokens[] = {{"<s>", CHAT_TOKEN_BOS},
                                                {"</s>", CHAT_TOKEN_EOS},
                                                {"[INST]", CHAT_TOKEN_OPTIONAL},
                                                {"[/INST]", CHAT_TOKEN_OPTIONAL},
                                                {NULL, CHAT_TOKEN_NEEDED}};
const struct chat_token chat_mistral_tokens[] = {{"<s>", CHAT_TOKEN_BOS},
                                                 {"</s>", CHAT_TOKEN_EOS},
                                                 {"[INST]", CHAT_TOKEN_NEEDED},
                                                 {"[/INST]", CHAT_TOKEN_NEEDED},
                                                 {"[AVAILABLE_TOOLS]", CHAT_TOKEN_OPTIONAL},
                                                 {"[/AVAILABLE_TOOLS]", CHAT_TOKEN_OPTIONAL},
                                                 {"[TOOL_CALLS]", CHAT_TOKEN_OPTIONAL},
                                                 {"[TOOL_RESULTS]", CHAT_TOKEN_OPTIONAL},
                                                 {"[/TOOL_RESULTS]", CHAT_TOKEN_OPTIONAL},
                                                 {NULL, CHAT_TOKEN_NEEDED}};

/* Renders Llama 2's template, in which the system message is a part of the first question, and the whole is
 * stripped. */
void chat_llama2_render(struct chat_writer *writer, struct chat_messages *messages, const void *how)
{
    const size_t first = chat_system_count(messages);
    if (!chat_roles_alternate(messages, first, CHAT_NOT_ALTERNATING) ||
        !chat_roles_from_are(messages, first, chat_usual_roles + 1) || !chat_contents_are_text(messages))
        return;
    if (first == messages->count) {
        (void)chat_refuse(messages, 0, CHAT_SYSTEM_ALONE);
        return;
    }
    for (size_t i = first; i < messages->count; i++) {
        const struct chat_string text = messages->at[i].text;
        if (chat_is_assistant(&messages->at[i])) {
            chat_write(writer, &messages->at[i], " %(%s %e%)");
        } else if (i == 1 && first) {
            chat_write(writer, &messages->at[0], "%b[INST] <<SYS>>\n%(%t%)\n<</SYS>>");
            chat_puts(writer, chat_strip(text).count ? "\n\n" : "");
            chat_begin(writer, &messages->at[i]);
            chat_put(writer, chat_strip_end(text));
            chat_puts(writer, " [/INST]");
            chat_end(writer);
        } else {
            chat_write(writer, &messages->at[i], "%b[INST] %(%s [/INST]%)");
        }
    }
}

struct chat_mistral {
    bool system; /* a system message is allowed */
    bool at_end; /* it is written in the last question, if that is the last message; else in the first one */
    bool tools;  /* the template has tools */
    const char *question, *answer, *space; /* forms, and what follows the tokens of tools */
};

const struct chat_mistral chat_mistral_v0 = {.question = "[INST] %(%t [/INST]%)", .answer = "%(%t%e%)"};
const struct chat_mistral chat_mistral_v1 = {
    .system = true, .question = " [INST] %p%(%t [/INST]%)", .answer = " %(%t%e%)"};
const struct chat_mistral chat_mistral_v3 = {.system = true,
                                             .at_end = true,
                                             .tools = true,
                                             .question = "[INST] %p%(%t[/INST]%)",
                                             .answer = " %(%s%e%)",
                                             .space = " "};
const struct chat_mistral chat_mistral_tekken = {.system = true,
                                                 .at_end = true,
                                                 .tools = true,
                                                 .question = "[INST]%p%(%t[/INST]%)",
                                                 .answer = "%(%t%e%)",
                                                 .space = ""};

static bool is_tool_result(const struct chat_message *message)
{
    return chat_is_role(message, "tool") || chat_is_role(message, "tool_results");
}

/* Checks the messages of a template with tools, whose calls and results do not alternate with anything. */
static bool mistral_tools_check(struct chat_messages *messages, size_t first)
{
    static const char *const roles[] = {"user", "assistant", "tool", "tool_results", NULL};
    size_t turn = 0;
    bool asked = false;
    for (size_t i = first; i < messages->count; i++) {
        const struct chat_message *message = &messages->at[i];
        asked |= chat_is_role(message, "user");
        if (!is_tool_result(message) && !message->call_count && chat_is_role(message, "user") != (turn++ % 2 == 0))
            return chat_refuse_role(messages, i, CHAT_NOT_ALTERNATING_SYSTEM);
        if (is_tool_result(message) && chat_code_points(message->call_id) != 9)
            return chat_refuse(messages, i, "the template takes a tool_call_id of 9 characters");
        if (message->call_count && message->text.count)
            return chat_refuse(messages, i, CHAT_LEAVES_OUT_TEXT);
        for (size_t k = 0; k < message->call_count; k++)
            if (!message->calls[k].function.bytes || chat_code_points(message->calls[k].id) != 9)
                return chat_refuse(messages, i,
                                   "the template takes tool calls with a \"function\" and an id of 9 characters");
    }
    if (messages->has_tools && !asked)
        return chat_refuse(messages, messages->count - 1, "the template writes tools only before a question");
    return chat_roles_from_are(messages, first, roles);
}

static bool mistral_check(const struct chat_mistral *how, struct chat_messages *messages, size_t first)
{
    if (!chat_contents_are_text(messages))
        return false;
    if (how->tools ? !mistral_tools_check(messages, first)
                   : !chat_roles_alternate(messages, first,
                                           how->system ? CHAT_NOT_ALTERNATING_SYSTEM : CHAT_NOT_ALTERNATING) ||
                         !chat_roles_from_are(messages, first, chat_usual_roles + 1))
        return false;
    if (first && first == messages->count)
        return chat_refuse(messages, 0, CHAT_SYSTEM_ALONE);
    if (first && how->at_end && !chat_is_role(&messages->at[messages->count - 1], "user"))
        return chat_refuse(
            messages, 0,
            "the template writes a system message only in a question that is the last message, and leaves it "
            "out of this conversation; put its text into the first question, or use another template");
    return true;
}

/* Writes the members of a tool's function, whose strings get no escapes. */
static bool mistral_function(struct chat_writer *writer, struct chat_string function)
{
    struct chat_json *json = &writer->messages->json;
    struct json_scan scan;
    struct json_string name, text;
    bool any = false;
    json_begin(&scan, function.bytes, function.count);
    if (json_kind(&scan) != JSON_OBJECT)
        return false;
    (void)json_enter_object(&scan);
    json->out.count = 0;
    json->indent = false;
    chat_json_value(json, function.bytes, function.count); /* looks for names that are there twice */
    json->out.count = 0;
    while (json_member(&scan, &name)) {
        struct chat_string value;
        const bool left_out = json_name_is(&name, "return"), is_text = json_kind(&scan) == JSON_STRING;
        if (is_text ? !json_text(&scan, &text) : !json_value(&scan, &value.bytes, &value.count))
            break;
        if (left_out)
            continue;
        (void)bytes_append(&json->out, any ? ", \"" : "\"", any ? 3 : 1);
        chat_json_text(json, &name);
        (void)bytes_append(&json->out, is_text ? "\": \"" : "\": ", is_text ? 4 : 3);
        if (is_text) {
            chat_json_text(json, &text);
            (void)bytes_append(&json->out, "\"", 1);
        } else {
            chat_json_value(json, value.bytes, value.count);
        }
        any = true;
    }
    chat_put(writer, (struct chat_string){(const char *)json->out.bytes, json->out.count});
    return true;
}

static void mistral_tools(struct chat_writer *writer, struct chat_messages *messages, const struct chat_mistral *how)
{
    chat_puts(writer, "[AVAILABLE_TOOLS]");
    chat_puts(writer, how->space);
    for (size_t i = 0; i < messages->tool_count; i++) {
        chat_puts(writer, i ? ", " : "[");
        chat_puts(writer, "{\"type\": \"function\", \"function\": {");
        if (!mistral_function(writer, chat_member(messages->tools[i], "function")))
            chat_messages_refuse(messages, "the template takes tools with a \"function\"", UINT64_MAX, NULL);
        chat_puts(writer, "}}");
    }
    chat_puts(writer, "][/AVAILABLE_TOOLS]");
}

static void mistral_calls(struct chat_writer *writer, const struct chat_message *message, const char *space)
{
    chat_write(writer, message, "%(");
    chat_calls_begin(writer);
    chat_puts(writer, "[TOOL_CALLS]");
    chat_puts(writer, space);
    for (size_t i = 0; i < message->call_count; i++) {
        chat_puts(writer, i ? ", " : "[");
        chat_put_json(writer, message->calls[i].function, false);
        writer->out->text.count--; /* the last brace, which follows the id */
        chat_write_call(writer, &message->calls[i], ", \"id\": \"%i\"}");
    }
    chat_puts(writer, "]");
    chat_resume(writer);
    chat_write(writer, message, "%e%)");
}

/* Returns true if a message is the last one of a user, or equal to it, as templates compare them. */
static bool is_last_question(const struct chat_messages *messages, size_t index)
{
    const struct chat_message *message = &messages->at[index];
    size_t last = messages->count - 1;
    while (!chat_is_role(&messages->at[last], "user"))
        last--;
    return index == last ||
           (message->text.count == messages->at[last].text.count && !message->extra && !messages->at[last].extra &&
            !memcmp(message->text.bytes, messages->at[last].text.bytes, message->text.count));
}

void chat_mistral_render(struct chat_writer *writer, struct chat_messages *messages, const void *user)
{
    const struct chat_mistral *how = user;
    const size_t first = how->system ? chat_system_count(messages) : 0;
    if (!mistral_check(how, messages, first))
        return;
    const size_t with_system = !first ? SIZE_MAX : how->at_end ? messages->count - 1 : first;
    chat_puts(writer, "%b");
    for (size_t i = first; i < messages->count; i++) {
        const struct chat_message *message = &messages->at[i];
        if (message->call_count) {
            mistral_calls(writer, message, how->space);
        } else if (is_tool_result(message)) {
            chat_puts(writer, "[TOOL_RESULTS]");
            chat_puts(writer, how->space);
            chat_write(writer, message, "%({\"content\": %t, \"call_id\": \"%i\"}[/TOOL_RESULTS]%)");
        } else if (chat_is_assistant(message)) {
            chat_write(writer, message, how->answer);
        } else {
            if (messages->has_tools && is_last_question(messages, i))
                mistral_tools(writer, messages, how);
            writer->prefix = i == with_system ? &messages->at[0].text : NULL;
            chat_write(writer, message, how->question);
        }
    }
}
