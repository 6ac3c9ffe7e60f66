/* SPDX-License-Identifier: MIT */
/*
 * chat_templates.c - see chat_templates.h. The functions follow their originals line by line; what those do in Jinja is
 * said where it surprises.
 *
 * Where an original would leave out a message without a word (a role that it does not know, or a system message that it
 * only writes before a question without an answer), the conversation is refused.
 */
#include "chat_templates.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "chat_writer.h"
#include "common/hash.h"

/* A template that writes each message by itself: the form of the first entry whose role it has, "" for any. */
struct turns {
    const char *begin, *end;
    struct {
        const char *role, *form; /* NULL: the end */
    } of[4];
};

/* ---- Llama 2 and Mistral ---- */

static const struct chat_token chat_llama2_tokens[] = {{"<s>", CHAT_TOKEN_BOS},
                                                       {"</s>", CHAT_TOKEN_EOS},
                                                       {"[INST]", CHAT_TOKEN_OPTIONAL},
                                                       {"[/INST]", CHAT_TOKEN_OPTIONAL},
                                                       {NULL, CHAT_TOKEN_NEEDED}};
static const struct chat_token chat_mistral_tokens[] = {{"<s>", CHAT_TOKEN_BOS},
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
static void chat_llama2_render(struct chat_writer *writer, struct chat_messages *messages, const void *how)
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

static const struct chat_mistral chat_mistral_v0 = {.question = "[INST] %(%t [/INST]%)", .answer = "%(%t%e%)"};
static const struct chat_mistral chat_mistral_v1 = {
    .system = true, .question = " [INST] %p%(%t [/INST]%)", .answer = " %(%t%e%)"};
static const struct chat_mistral chat_mistral_v3 = {.system = true,
                                                    .at_end = true,
                                                    .tools = true,
                                                    .question = "[INST] %p%(%t[/INST]%)",
                                                    .answer = " %(%s%e%)",
                                                    .space = " "};
static const struct chat_mistral chat_mistral_tekken = {.system = true,
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

/* how: a struct chat_mistral. */
static void chat_mistral_render(struct chat_writer *writer, struct chat_messages *messages, const void *user)
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

static const char *turn_form(const struct turns *turns, const struct chat_message *message)
{
    size_t i = 0;
    while (turns->of[i].form && *turns->of[i].role && !chat_is_role(message, turns->of[i].role))
        i++;
    return turns->of[i].form;
}

static void turns_write(struct chat_writer *writer, const struct chat_messages *messages, size_t first,
                        const struct turns *turns)
{
    chat_puts(writer, turns->begin);
    for (size_t i = first; i < messages->count; i++)
        chat_write(writer, &messages->at[i], turn_form(turns, &messages->at[i]));
    chat_puts(writer, turns->end);
}

static void turns_render(struct chat_writer *writer, struct chat_messages *messages, const void *how)
{
    for (size_t i = 0; i < messages->count; i++)
        if (!turn_form(how, &messages->at[i])) {
            (void)chat_refuse_role(messages, i, CHAT_UNKNOWN_ROLE);
            return;
        }
    if (chat_contents_are_text(messages))
        turns_write(writer, messages, 0, how);
}

/* ---- ChatML and Qwen ---- */

static const struct chat_token chatml_tokens[] = {{"<|im_start|>", CHAT_TOKEN_NEEDED},
                                                  {"<|im_end|>", CHAT_TOKEN_NEEDED},
                                                  {"<think>", CHAT_TOKEN_OPTIONAL},
                                                  {"</think>", CHAT_TOKEN_OPTIONAL},
                                                  {"<tool_call>", CHAT_TOKEN_OPTIONAL},
                                                  {"</tool_call>", CHAT_TOKEN_OPTIONAL},
                                                  {"<tool_response>", CHAT_TOKEN_OPTIONAL},
                                                  {"</tool_response>", CHAT_TOKEN_OPTIONAL},
                                                  {"<tools>", CHAT_TOKEN_OPTIONAL},
                                                  {"</tools>", CHAT_TOKEN_OPTIONAL},
                                                  {NULL, CHAT_TOKEN_NEEDED}};
static const struct turns chatml = {"", "", {{"", "<|im_start|>%r\n%(%t<|im_end|>%)\n"}}};

/* Differences between the templates of Qwen. */
struct qwen {
    const char *own; /* the system message where the conversation has none, or NULL */
    const char *call;
    bool thinks; /* thoughts of the assistant are written */
};

#define QWEN_CALL(arguments) "<tool_call>\n{\"name\": \"%n\", \"arguments\": " arguments "}\n</tool_call>"
static const struct qwen qwen25 = {"You are Qwen, created by Alibaba Cloud. You are a helpful assistant.",
                                   QWEN_CALL("%a"), false};
static const struct qwen qwen3 = {NULL, QWEN_CALL("%x"), true}, qwen3_2507 = {NULL, QWEN_CALL("%x"), false};

/* Writes the system message with the tools, or, without both, the one that the template has of its own. Returns how
 * many messages have been written. */
static size_t qwen_system(struct chat_writer *writer, const struct chat_messages *messages, const char *own)
{
    const bool given = chat_is_role(&messages->at[0], "system");
    if (!messages->has_tools && (given || !own))
        return 0;
    chat_puts(writer, "<|im_start|>system\n");
    if (given) {
        chat_begin(writer, &messages->at[0]);
        chat_put(writer, messages->at[0].text);
        chat_pause(writer);
    } else if (own) {
        chat_puts(writer, own);
    }
    if (messages->has_tools) {
        chat_puts(writer, given || own ? "\n\n" : "");
        chat_puts(writer, "# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are "
                          "provided with function signatures within <tools></tools> XML tags:\n<tools>");
        for (size_t i = 0; i < messages->tool_count; i++) {
            chat_puts(writer, "\n");
            chat_put_json(writer, messages->tools[i], false);
        }
        chat_puts(writer, "\n</tools>\n\nFor each function call, return a json object with function name and arguments "
                          "within <tool_call></tool_call> XML tags:\n<tool_call>\n{\"name\": <function-name>, "
                          "\"arguments\": <args-json-object>}\n</tool_call>");
    }
    chat_resume(writer);
    chat_puts(writer, "<|im_end|>");
    chat_end(writer);
    chat_puts(writer, "\n");
    return given;
}

/* Writes the result of a tool. Results that follow one another are one message of the user. */
static void qwen_result(struct chat_writer *writer, const struct chat_messages *messages, size_t index)
{
    if (!index || !chat_is_role(&messages->at[index - 1], "tool"))
        chat_puts(writer, "<|im_start|>user");
    const bool last = index + 1 == messages->count || !chat_is_role(&messages->at[index + 1], "tool");
    chat_write(writer, &messages->at[index],
               last ? "\n<tool_response>\n%(%t\n</tool_response><|im_end|>%)\n"
                    : "\n<tool_response>\n%(%t\n</tool_response>%)");
}

/* Returns the index of the last message of a user that is not the result of a tool; the last message if there is
 * none. */
static size_t last_query(const struct chat_messages *messages)
{
    for (size_t i = messages->count; i-- > 0;) {
        const struct chat_string text = messages->at[i].text;
        if (chat_is_role(&messages->at[i], "user") &&
            !(chat_starts_with(text, "<tool_response>") && chat_ends_with(text, "</tool_response>")))
            return i;
    }
    return messages->count - 1;
}

/* Takes the thoughts out of an answer, and writes them if they belong to the last question; the last message always has
 * them then, if only as an empty block. Returns the rest. */
static struct chat_string qwen_think(struct chat_writer *writer, const struct chat_message *message, bool current,
                                     bool last, bool *follows)
{
    bool thinks;
    struct chat_string text = message->text, thoughts = message->thoughts;
    const struct chat_string before = chat_before_first(text, "</think>", &thinks);
    if (thinks && !thoughts.bytes) {
        thoughts = chat_strip_newlines_start(chat_after_last(chat_strip_newlines_end(before), "<think>"));
        text = chat_strip_newlines_start(chat_after_last(text, "</think>"));
    }
    *follows = text.count;
    if (!current || !(last || thoughts.count))
        return text;
    chat_puts(writer, "<think>\n");
    chat_put(writer, chat_strip_newlines_end(chat_strip_newlines_start(thoughts)));
    chat_puts(writer, "\n</think>\n\n");
    return chat_strip_newlines_start(text);
}

static void qwen_render(struct chat_writer *writer, struct chat_messages *messages, const void *user)
{
    const struct qwen *how = user;
    if (!chat_roles_are(messages, chat_tool_roles) || !chat_contents_are_text(messages))
        return;
    const size_t query = last_query(messages);
    for (size_t i = qwen_system(writer, messages, how->own); i < messages->count; i++) {
        const struct chat_message *message = &messages->at[i];
        if (chat_is_role(message, "tool")) {
            qwen_result(writer, messages, i);
            continue;
        }
        bool follows = message->text.count;
        chat_write(writer, message, "<|im_start|>%r\n%(");
        chat_put(writer, how->thinks && chat_is_assistant(message)
                             ? qwen_think(writer, message, i > query, i + 1 == messages->count, &follows)
                             : message->text);
        chat_calls_begin(writer);
        for (size_t k = 0; k < message->call_count; k++) {
            chat_puts(writer, k || follows ? "\n" : "");
            chat_write_call(writer, &message->calls[k], how->call);
        }
        chat_resume(writer);
        chat_write(writer, message, "<|im_end|>%)\n");
    }
}

/* ---- Llama 3 ---- */

static const struct chat_token llama3_tokens[] = {{"<|begin_of_text|>", CHAT_TOKEN_BOS},
                                                  {"<|start_header_id|>", CHAT_TOKEN_NEEDED},
                                                  {"<|end_header_id|>", CHAT_TOKEN_NEEDED},
                                                  {"<|eot_id|>", CHAT_TOKEN_NEEDED},
                                                  {NULL, CHAT_TOKEN_NEEDED}};
#define LLAMA3(role, text) "<|start_header_id|>" role "<|end_header_id|>\n\n" text
static const struct turns llama3 = {"%b", "", {{"", LLAMA3("%r", "%(%s<|eot_id|>%)")}}};
static const struct turns llama31 = {"",
                                     "",
                                     {{"tool", LLAMA3("ipython", "%(%q<|eot_id|>%)")},
                                      {"ipython", LLAMA3("ipython", "%(%q<|eot_id|>%)")},
                                      {"", LLAMA3("%r", "%(%s<|eot_id|>%)")}}};

static bool llama31_check(struct chat_messages *messages, size_t first)
{
    if (!chat_contents_are_text(messages))
        return false;
    if (messages->has_tools && (first == messages->count || !chat_is_role(&messages->at[first], "user")))
        return chat_refuse(
            messages, first == messages->count ? 0 : first,
            "the template writes tools in the first message after the system's, which must be the user's");
    for (size_t i = first; i < messages->count; i++) {
        const struct chat_message *message = &messages->at[i];
        if (message->call_count && message->text.count)
            return chat_refuse(messages, i, CHAT_LEAVES_OUT_TEXT);
        if (message->call_count > 1)
            return chat_refuse(messages, i, "the template takes one tool call in a message");
        if (message->call_count && !message->calls[0].function.bytes)
            return chat_refuse(messages, i, "the template takes tool calls with a \"function\"");
    }
    return true;
}

/* Writes the first question, with the tools before it. */
static void llama31_tools(struct chat_writer *writer, const struct chat_messages *messages, size_t index)
{
    chat_puts(writer, LLAMA3("user", "Given the following functions, please respond with a JSON for a function call "
                                     "with its proper arguments that best answers the given prompt.\n\nRespond in the "
                                     "format {\"name\": function name, \"parameters\": dictionary of argument name and "
                                     "its value}.Do not use variables.\n\n"));
    for (size_t i = 0; i < messages->tool_count; i++) {
        chat_put_json(writer, messages->tools[i], true);
        chat_puts(writer, "\n\n");
    }
    chat_write(writer, &messages->at[index], "%(%s<|eot_id|>%)");
}

static void llama31_render(struct chat_writer *writer, struct chat_messages *messages, const void *how)
{
    size_t next = chat_system_count(messages);
    if (!llama31_check(messages, next))
        return;
    chat_puts(writer, "%b" LLAMA3("system", ""));
    chat_puts(writer, messages->has_tools ? "Environment: ipython\n" : "");
    chat_puts(writer, "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n");
    chat_write(writer, &messages->at[0], next ? "%(%s<|eot_id|>%)" : "<|eot_id|>");
    if (messages->has_tools)
        llama31_tools(writer, messages, next++);
    for (; next < messages->count; next++) {
        const struct chat_message *message = &messages->at[next];
        if (!message->call_count) {
            chat_write(writer, message, turn_form(how, message));
            continue;
        }
        chat_write(writer, message, LLAMA3("%r", "%("));
        chat_calls_begin(writer);
        chat_write_call(writer, message->calls, "{\"name\": \"%n\", \"parameters\": %a}");
        chat_resume(writer);
        chat_write(writer, message, "<|eot_id|>%)");
    }
}

/* ---- Gemma ---- */

static const struct chat_token gemma_tokens[] = {{"<bos>", CHAT_TOKEN_BOS},
                                                 {"<start_of_turn>", CHAT_TOKEN_NEEDED},
                                                 {"<end_of_turn>", CHAT_TOKEN_NEEDED},
                                                 {NULL, CHAT_TOKEN_NEEDED}};
static const struct turns gemma = {
    "%b",
    "",
    {{"assistant", "<start_of_turn>model\n%(%s<end_of_turn>%)\n"}, {"", "<start_of_turn>%r\n%p%(%s<end_of_turn>%)\n"}}};

static void gemma_render(struct chat_writer *writer, struct chat_messages *messages, const void *how)
{
    if (chat_is_role(&messages->at[0], "system")) {
        (void)chat_refuse(messages, 0, "system role not supported");
        return;
    }
    if (chat_roles_alternate(messages, 0, CHAT_NOT_ALTERNATING) && chat_contents_are_text(messages))
        turns_write(writer, messages, 0, how);
}

/* Contents may be lists of texts, each of which is stripped. The system message is written before the first question,
 * as it is. */
static void gemma3_render(struct chat_writer *writer, struct chat_messages *messages, const void *how)
{
    const size_t first = chat_system_count(messages);
    const struct chat_message *system = &messages->at[0];
    if (!chat_roles_alternate(messages, first, CHAT_NOT_ALTERNATING))
        return;
    if (first && system->kind == CHAT_CONTENT_PARTS && system->part_count != 1) {
        (void)chat_refuse(messages, 0,
                          "the template writes one part of a system message only, and it does not have one");
        return;
    }
    if (first == messages->count) {
        (void)chat_refuse(messages, 0, CHAT_SYSTEM_ALONE);
        return;
    }
    writer->prefix = !first ? NULL : system->kind == CHAT_CONTENT_TEXT ? &system->text : system->parts;
    turns_write(writer, messages, first, how);
}

/* ---- DeepSeek ---- */

/* The token of a name of three words. */
#define DEEPSEEK(a, b, c) "<\uff5c" a "\u2581" b "\u2581" c "\uff5c>"
#define DEEPSEEK_SEPARATOR "<\uff5ctool\u2581sep\uff5c>"
#define DEEPSEEK_USER "<\uff5cUser\uff5c>"
#define DEEPSEEK_ASSISTANT                                                                                             \
    "<\uff5c"                                                                                                          \
    "Assistant\uff5c>"
#define DEEPSEEK_EOS DEEPSEEK("end", "of", "sentence")
static const struct chat_token deepseek_tokens[] = {{DEEPSEEK("begin", "of", "sentence"), CHAT_TOKEN_BOS},
                                                    {DEEPSEEK_EOS, CHAT_TOKEN_NEEDED},
                                                    {DEEPSEEK_USER, CHAT_TOKEN_NEEDED},
                                                    {DEEPSEEK_ASSISTANT, CHAT_TOKEN_NEEDED},
                                                    {DEEPSEEK("tool", "calls", "begin"), CHAT_TOKEN_OPTIONAL},
                                                    {DEEPSEEK("tool", "call", "begin"), CHAT_TOKEN_OPTIONAL},
                                                    {DEEPSEEK_SEPARATOR, CHAT_TOKEN_OPTIONAL},
                                                    {DEEPSEEK("tool", "call", "end"), CHAT_TOKEN_OPTIONAL},
                                                    {DEEPSEEK("tool", "calls", "end"), CHAT_TOKEN_OPTIONAL},
                                                    {DEEPSEEK("tool", "outputs", "begin"), CHAT_TOKEN_OPTIONAL},
                                                    {DEEPSEEK("tool", "output", "begin"), CHAT_TOKEN_OPTIONAL},
                                                    {DEEPSEEK("tool", "output", "end"), CHAT_TOKEN_OPTIONAL},
                                                    {DEEPSEEK("tool", "outputs", "end"), CHAT_TOKEN_OPTIONAL},
                                                    {NULL, CHAT_TOKEN_NEEDED}};

/* Differences between the templates, and their state while they write. */
struct deepseek {
    bool distill;  /* the template of R1-Distill */
    bool called;   /* a tool has been called */
    bool results;  /* the last message is a result of a tool */
    bool resulted; /* there was a result */
};

static const struct deepseek deepseek_v3 = {.distill = false}, deepseek_r1 = {.distill = true};

static bool deepseek_check(const struct deepseek *how, struct chat_messages *messages)
{
    bool system = false, called = false;
    if (!chat_roles_are(messages, chat_tool_roles) || !chat_contents_are_text(messages))
        return false;
    for (size_t i = 0; i < messages->count; i++) {
        const struct chat_message *message = &messages->at[i];
        if (chat_is_role(message, "system") && system && how->distill)
            return chat_refuse_role(messages, i, "the template writes only one of several system messages");
        system |= chat_is_role(message, "system");
        if (!message->call_count)
            continue;
        if (message->missing && (how->distill || !called))
            return chat_refuse(messages, i, "the template takes tool calls with a content, which may be null");
        if (how->distill && message->kind != CHAT_CONTENT_NULL)
            return chat_refuse(messages, i,
                               "the template leaves out the tool calls of a message whose content is not null");
        if (called && message->text.count)
            return chat_refuse(messages, i, CHAT_LEAVES_OUT_TEXT);
        called = true;
        for (size_t k = 0; k < message->call_count; k++) {
            const struct chat_call *call = &message->calls[k];
            if (!call->function.bytes || !call->type.bytes || !call->arguments_text.bytes)
                return chat_refuse(
                    messages, i,
                    "the template takes tool calls with a \"type\" and a \"function\" whose arguments are a "
                    "string");
        }
    }
    return true;
}

/* Writes an answer that calls tools. After the first one of a conversation, the original leaves out what begins it, and
 * the one of R1-Distill ends it only after two calls. */
static void deepseek_calls(struct chat_writer *writer, struct deepseek *how, const struct chat_message *message)
{
    chat_write(writer, message, how->called ? "%(" : DEEPSEEK_ASSISTANT "%(%t");
    chat_calls_begin(writer);
    chat_puts(writer, how->called ? "" : DEEPSEEK("tool", "calls", "begin"));
    for (size_t i = 0; i < message->call_count; i++) {
        chat_puts(writer, how->called ? "\n" : "");
        chat_write_call(writer, &message->calls[i],
                        DEEPSEEK("tool", "call", "begin") "%y" DEEPSEEK_SEPARATOR
                                                          "%n\n```json\n%x\n```" DEEPSEEK("tool", "call", "end"));
        chat_puts(writer, how->called && how->distill ? DEEPSEEK("tool", "calls", "end") DEEPSEEK_EOS : "");
        how->called = true;
    }
    chat_puts(writer, how->distill ? "" : DEEPSEEK("tool", "calls", "end"));
    chat_resume(writer);
    chat_puts(writer, how->distill ? "" : DEEPSEEK_EOS);
    chat_end(writer);
}

static void deepseek_turn(struct chat_writer *writer, struct deepseek *how, const struct chat_message *message)
{
    const bool after_results = how->results;
    how->results = chat_is_role(message, "tool");
    if (how->results) {
        chat_puts(writer, !how->resulted ? DEEPSEEK("tool", "outputs", "begin") : how->distill ? "\n" : "");
        how->resulted = true;
        chat_write(writer, message, DEEPSEEK("tool", "output", "begin") "%(%t" DEEPSEEK("tool", "output", "end") "%)");
    } else if (message->call_count) {
        deepseek_calls(writer, how, message);
    } else if (chat_is_role(message, "user")) {
        chat_write(writer, message, DEEPSEEK_USER "%(%t%)");
    } else {
        chat_write(writer, message, after_results ? DEEPSEEK("tool", "outputs", "end") "%(" : DEEPSEEK_ASSISTANT "%(");
        chat_put(writer, after_results ? message->text : chat_after_last(message->text, "</think>"));
        chat_write(writer, message, DEEPSEEK_EOS "%)");
    }
}

/* System messages are written before all turns. Thoughts of the assistant are left out. */
static void deepseek_render(struct chat_writer *writer, struct chat_messages *messages, const void *user)
{
    struct deepseek how = *(const struct deepseek *)user;
    bool system = false;
    if (!deepseek_check(&how, messages))
        return;
    chat_puts(writer, "%b");
    for (size_t i = 0; i < messages->count; i++)
        if (chat_is_role(&messages->at[i], "system")) {
            chat_write(writer, &messages->at[i], system ? "\n\n%(%t%)" : "%(%t%)");
            system = true;
        }
    for (size_t i = 0; i < messages->count; i++)
        if (!chat_is_role(&messages->at[i], "system"))
            deepseek_turn(writer, &how, &messages->at[i]);
    if (how.results)
        chat_puts(writer, DEEPSEEK("tool", "outputs", "end"));
}

/* ---- Phi and Zephyr ---- */

static const struct chat_token phi3_tokens[] = {{"<|system|>", CHAT_TOKEN_NEEDED},    {"<|user|>", CHAT_TOKEN_NEEDED},
                                                {"<|assistant|>", CHAT_TOKEN_NEEDED}, {"<|end|>", CHAT_TOKEN_NEEDED},
                                                {"<|endoftext|>", CHAT_TOKEN_EOS},    {NULL, CHAT_TOKEN_NEEDED}};
#define PHI3(system)                                                                                                   \
    {                                                                                                                  \
        "", "%e",                                                                                                      \
        {                                                                                                              \
            {"system", system "<|system|>\n%(%t<|end|>%)\n"}, {"user", "<|user|>\n%(%t<|end|>%)\n"},                   \
            {                                                                                                          \
                "assistant", "<|assistant|>\n%(%t<|end|>%)\n"                                                          \
            }                                                                                                          \
        }                                                                                                              \
    }
static const struct turns phi3 = PHI3(""), phi35 = PHI3("%?"); /* without an empty system message */

static const struct chat_token phi4_tokens[] = {{"<|im_start|>", CHAT_TOKEN_NEEDED},
                                                {"<|im_sep|>", CHAT_TOKEN_NEEDED},
                                                {"<|im_end|>", CHAT_TOKEN_NEEDED},
                                                {NULL, CHAT_TOKEN_NEEDED}};
#define PHI4 "<|im_start|>%r<|im_sep|>%(%t<|im_end|>%)"
static const struct turns phi4 = {"", "", {{"system", PHI4}, {"user", PHI4}, {"assistant", PHI4}}};

static const struct chat_token zephyr_tokens[] = {{"<|system|>", CHAT_TOKEN_OPTIONAL},
                                                  {"<|user|>", CHAT_TOKEN_OPTIONAL},
                                                  {"<|assistant|>", CHAT_TOKEN_OPTIONAL},
                                                  {"</s>", CHAT_TOKEN_EOS},
                                                  {NULL, CHAT_TOKEN_NEEDED}};
static const struct turns zephyr = {"",
                                    "",
                                    {{"system", "<|system|>\n%(%t%e%)\n"},
                                     {"user", "<|user|>\n%(%t%e%)\n"},
                                     {"assistant", "<|assistant|>\n%(%t%e%)\n"}}};

/* ---- texts that another program has rendered ---- */

static const struct chat_token no_tokens[] = {{NULL, CHAT_TOKEN_NEEDED}};

/* Sections of the text that count are of the assistant, unless their role names another one. Where several of a role
 * follow each other, they are one span: a character at the end of a section may be several tokens. */
static void rendered_render(struct chat_writer *writer, struct chat_messages *messages, const void *how)
{
    static const char *const roles[] = {"text",   "token",        "said", "said-token", "tool",  "tool-token",
                                        "system", "system-token", "user", "user-token", "other", "other-token",
                                        NULL};
    if (!chat_roles_are(messages, roles) || !chat_contents_are_text(messages))
        return;
    for (size_t i = 0; i < messages->count; i++) {
        struct chat_message *section = &messages->at[i];
        const bool is_token = chat_is_role(section, "token") || chat_ends_with(section->role, "-token");
        const uint64_t id =
            is_token ? tokenizer_added_find(writer->tokenizer, section->text.bytes, section->text.count) : TOKMAP_NO_ID;
        if (is_token && id == TOKMAP_NO_ID) {
            chat_messages_refuse(messages, "the vocabulary lacks the special token", i, &section->text);
            return;
        }
        section->speaker = CHAT_ROLE_ASSISTANT;
        section->learned = section->whole = !chat_is_role(section, "text") && !chat_is_role(section, "token");
        for (unsigned role = CHAT_ROLE_TOOL; role < CHAT_ROLES && section->learned; role++)
            if (chat_starts_with(section->role, chat_role_name((enum chat_role)role)))
                section->speaker = (enum chat_role)role;
        if (!i || !section->learned || !section[-1].learned || section->speaker != section[-1].speaker) {
            chat_end(writer);
            chat_begin(writer, section);
        }
        chat_put_id(writer, section->text, id);
    }
    chat_end(writer);
}

/* ---- finding them ---- */

#define TOOLS (CHAT_WRITES_TOOLS | CHAT_WRITES_CALLS)
#define TOOLS_MEET_EMPTY (TOOLS | CHAT_MEETS_EMPTY)
#define KNOWN_MAP(X)                                                                                                   \
    X("chatml", chatml_tokens, turns_render, &chatml, 0)                                                               \
    X("deepseek-r1-distill", deepseek_tokens, deepseek_render, &deepseek_r1, CHAT_WRITES_CALLS)                        \
    X("deepseek-v3", deepseek_tokens, deepseek_render, &deepseek_v3, CHAT_WRITES_CALLS | CHAT_MEETS_EMPTY)             \
    X("gemma", gemma_tokens, gemma_render, &gemma, 0)                                                                  \
    X("gemma3", gemma_tokens, gemma3_render, &gemma, 0)                                                                \
    X("llama2", chat_llama2_tokens, chat_llama2_render, NULL, 0)                                                       \
    X("llama3", llama3_tokens, turns_render, &llama3, 0)                                                               \
    X("llama3.1", llama3_tokens, llama31_render, &llama31, TOOLS_MEET_EMPTY)                                           \
    X("mistral-v0", chat_llama2_tokens, chat_mistral_render, &chat_mistral_v0, 0)                                      \
    X("mistral-v1", chat_llama2_tokens, chat_mistral_render, &chat_mistral_v1, 0)                                      \
    X("mistral-v3", chat_mistral_tokens, chat_mistral_render, &chat_mistral_v3, TOOLS_MEET_EMPTY)                      \
    X("mistral-v3-tekken", chat_mistral_tokens, chat_mistral_render, &chat_mistral_tekken, TOOLS_MEET_EMPTY)           \
    X("phi3", phi3_tokens, turns_render, &phi3, 0)                                                                     \
    X("phi3.5", phi3_tokens, turns_render, &phi35, 0)                                                                  \
    X("phi4", phi4_tokens, turns_render, &phi4, 0)                                                                     \
    X("qwen2.5", chatml_tokens, qwen_render, &qwen25, TOOLS)                                                           \
    X("qwen3", chatml_tokens, qwen_render, &qwen3, TOOLS | CHAT_WRITES_THOUGHTS)                                       \
    X("qwen3-2507", chatml_tokens, qwen_render, &qwen3_2507, TOOLS)                                                    \
    X("zephyr", zephyr_tokens, turns_render, &zephyr, 0)

#define KNOWN_STRUCT(name, tokens, render, how, abilities) {name, tokens, abilities, render, how},
static const struct chat_known known[] = {
    KNOWN_MAP(KNOWN_STRUCT){"rendered", no_tokens, CHAT_IS_RENDERED, rendered_render, NULL}};
#define KNOWN_NAME(name, tokens, render, how, abilities) name,
static const char *const names[] = {KNOWN_MAP(KNOWN_NAME) NULL};
#define KNOWN_LISTED(name, tokens, render, how, abilities) ", " name
static const char list[] = KNOWN_MAP(KNOWN_LISTED);

const char *const *chat_known_names(void)
{
    return names;
}

const char *chat_known_list(void)
{
    return list + 2; /* after the first comma */
}

const struct chat_known *chat_known_by_name(const char *name)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].name, name))
            return &known[i];
    return NULL;
}

/* XXH3-128 of the texts in Jinja, without the spaces around them, of the tokenizers that are named. A template of NULL
 * is refused with the reason. */
static const struct {
    uint64_t high, low;
    const char *name;
} originals[] = {
    {0x577a7fce73f72e1e, 0xe2be9fd6966bb5eb, "chatml"},              /* OpenHermes-2.5-Mistral-7B */
    {0xa344e8c84fb0282d, 0xda206a9e46a4ac01, "chatml"},              /* axolotl chatml */
    {0xb59c4fde1d06da00, 0x55b25ceb4910aa64, "deepseek-r1-distill"}, /* DeepSeek-R1-Distill-Llama-8B, -Qwen-32B */
    {0xfc60798d3b3a2312, 0x56a138c31521e7c8, "deepseek-v3"},         /* DeepSeek-V3 */
    {0x8b30bb763d138e69, 0x2c2e86beabccd2a4, "gemma"},               /* gemma-7b-it, gemma-2-2b-it */
    {0x6c84c2da794fd4c1, 0xd9c620dcaf86f38d, "gemma3"},              /* gemma-3-4b-it */
    {0x4adb1f81f5c508ea, 0x24f6d97f87d647f5, "llama2"},              /* Llama-2-7b-chat-hf */
    {0x09facc0e4aa94318, 0x9799ad6e2dea0594, "llama3"},              /* Meta-Llama-3-8B-Instruct */
    {0x9ddcd6cd71f96dd7, 0x6ca7779b7730196a, "llama3.1"},            /* Llama-3.1-8B-Instruct, Llama-3.3-70B-Instruct */
    {0x573e1bcc8c56f178, 0xc3d57e38f5ff0756, NULL},                  /* Llama-3.2-3B-Instruct */
    {0xf395fc5daa794129, 0xa5d004210ebce758, "mistral-v0"},          /* Mistral-7B-Instruct-v0.2, first version */
    {0x6aef58edf0d62df9, 0xf89cfc57f651ff3d, "mistral-v1"}, /* Mistral-7B-Instruct-v0.2, Mixtral-8x7B-Instruct-v0.1 */
    {0xdf3ebcd92fa9a63f, 0xc6614466504d495b, "mistral-v3"}, /* Mistral-Large-Instruct-2407 */
    {0x638e5c8b05f6278c, 0xcae647ce0048756b, "mistral-v3-tekken"}, /* Mistral-Nemo-Instruct-2407 */
    {0x0850c77e9e7c37ed, 0x82fc89c04c54ba66, "phi3"},              /* Phi-3-mini-4k-instruct */
    {0xceaa31b1554ec3f5, 0xcd8aff863abd4554, "phi3.5"},            /* Phi-3.5-mini-instruct */
    {0x32dc022941195ae7, 0x70325d9540e2904f, "phi4"},              /* phi-4 */
    {0xe392aa06018503fd, 0x2469c9508f79506e, "qwen2.5"},           /* Qwen2.5-7B-Instruct */
    {0x4457e3d12b367a86, 0x0283f874ff58d644, "qwen3"},             /* Qwen3-0.6B, first version */
    {0x0fab82ce8f4d5175, 0xc9e0155c80737cf2, "qwen3"},             /* Qwen3-0.6B */
    {0xcc9ddd5a40bc1c0c, 0x8fb5d937b1e8f5d0, "qwen3-2507"},        /* Qwen3-4B-Instruct-2507 */
    {0x5ae4edc1a6c08aa6, 0x1db34e9fc60441d8, "zephyr"},            /* zephyr-7b-beta */
    {0x5c929235d1675dbf, 0xd9fe74edcb57aa82, "zephyr"},            /* zephyr-7b-beta, with escaped newlines */
};

const struct chat_known *chat_known_by_text(const char *jinja, size_t bytes, const char **why)
{
    while (bytes && strchr(" \t\r\n", jinja[bytes - 1]))
        bytes--;
    while (bytes && strchr(" \t\r\n", jinja[0])) {
        jinja++;
        bytes--;
    }
    *why = NULL;
    const struct hash128 hash = hash128(jinja, bytes);
    for (size_t i = 0; i < sizeof originals / sizeof *originals; i++)
        if (originals[i].high == hash.high && originals[i].low == hash.low) {
            if (!originals[i].name)
                *why = "the template writes the date of the day on which it runs, so the same input would give other "
                       "tokens tomorrow; llama3.1 writes the same text with the date 26 Jul 2024";
            return originals[i].name ? chat_known_by_name(originals[i].name) : NULL;
        }
    return NULL;
}
