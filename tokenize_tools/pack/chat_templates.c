/*
 * chat_templates.c - see chat_templates.h. The functions follow their originals line by line; what those do in Jinja is
 * said where it surprises.
 *
 * Where an original would leave out a message without a word (a role that it does not know, or a system message that it
 * only writes before a question without an answer), the conversation is refused.
 */
#include "chat_templates.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "text/code_point.h"

#define UNKNOWN_ROLE "the template leaves out messages of this role"
#define NOT_ALTERNATING "conversation roles must alternate user/assistant/user/assistant/..."
#define NOT_ALTERNATING_SYSTEM                                                                                         \
    "after the optional system message, conversation roles must alternate user/assistant/user/assistant/..."
#define TOOL_ROLE "only tokmap.pack(..., chat_template=tokenizer) of Python writes messages with the role"

/* ---- text ---- */

static struct chat_string literal(const char *text)
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

/* Python's text.rstrip(), and text.strip(). */
static struct chat_string strip_end(struct chat_string text)
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

static struct chat_string strip(struct chat_string text)
{
    size_t size;
    text = strip_end(text);
    while (text.count && is_space(code_point_get((const uint8_t *)text.bytes, &size))) {
        text.bytes += size;
        text.count -= size;
    }
    return text;
}

static struct chat_string strip_newlines_start(struct chat_string text)
{
    while (text.count && text.bytes[0] == '\n') {
        text.bytes++;
        text.count--;
    }
    return text;
}

static struct chat_string strip_newlines_end(struct chat_string text)
{
    while (text.count && text.bytes[text.count - 1] == '\n')
        text.count--;
    return text;
}

static bool equals(struct chat_string text, const char *other)
{
    const size_t count = strlen(other);
    return text.count == count && !memcmp(text.bytes, other, count);
}

static bool starts_with(struct chat_string text, const char *start)
{
    const size_t count = strlen(start);
    return text.count >= count && !memcmp(text.bytes, start, count);
}

static bool ends_with(struct chat_string text, const char *end)
{
    const size_t count = strlen(end);
    return text.count >= count && !memcmp(text.bytes + text.count - count, end, count);
}

/* What comes after the last `mark` in the text: all of it if there is none. */
static struct chat_string after_last(struct chat_string text, const char *mark)
{
    const size_t count = strlen(mark);
    for (size_t at = text.count; at-- > 0;)
        if (text.count - at >= count && !memcmp(text.bytes + at, mark, count))
            return (struct chat_string){text.bytes + at + count, text.count - at - count};
    return text;
}

/* What comes before the first `mark`; *found is whether there is one. */
static struct chat_string before_first(struct chat_string text, const char *mark, bool *found)
{
    const char *at = text.count ? memmem(text.bytes, text.count, mark, strlen(mark)) : NULL;
    *found = at != NULL;
    return (struct chat_string){text.bytes, at ? (size_t)(at - text.bytes) : text.count};
}

/* ---- writing ---- */

static void put(struct chat_writer *writer, struct chat_string text)
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

static void puts_text(struct chat_writer *writer, const char *text)
{
    put(writer, literal(text));
}

/* Writes a token of the template's table. */
static void put_token(struct chat_writer *writer, unsigned token)
{
    struct chat_text *out = writer->out;
    const struct chat_token_found *found = &writer->tokens[token];
    const uint64_t begin = out->text.count;
    put(writer, (struct chat_string){found->text, found->bytes});
    if (writer->no_memory || found->id == TOKMAP_NO_ID)
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
    out->marks[out->mark_count++] = (struct tokenizer_mark){begin, out->text.count, (uint32_t)found->id};
}

/* What is written between the two calls counts as a target. `counts` false: neither does anything. */
static void begin(struct chat_writer *writer, bool counts)
{
    writer->open = counts ? writer->out->text.count : UINT64_MAX;
}

static void end(struct chat_writer *writer)
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

static bool is_role(const struct chat_message *message, const char *role)
{
    return equals(message->role, role);
}

static bool is_assistant(const struct chat_message *message)
{
    return is_role(message, "assistant");
}

/* Refuses the conversation because of a message; returns false. */
static bool refuse(struct chat_messages *messages, size_t index, const char *reason)
{
    chat_messages_refuse(messages, reason, index, NULL);
    return false;
}

static bool refuse_role(struct chat_messages *messages, size_t index, const char *reason)
{
    chat_messages_refuse(messages, reason, index, &messages->at[index].role);
    return false;
}

/* Checks that all contents are strings. With `null_is_empty`, null becomes the empty string. */
static bool contents_are_text(struct chat_messages *messages, bool null_is_empty)
{
    for (size_t i = 0; i < messages->count; i++) {
        struct chat_message *message = &messages->at[i];
        if (message->kind == CHAT_CONTENT_NULL && null_is_empty) {
            message->kind = CHAT_CONTENT_TEXT;
            message->text = literal("");
        }
        if (message->kind == CHAT_CONTENT_NULL)
            return refuse(messages, i, "it has no content");
        if (message->kind == CHAT_CONTENT_PARTS)
            return refuse(messages, i, "the template takes a content that is a string, not a list");
    }
    return true;
}

/* Checks that all roles are among those of a list that ends with NULL. */
static bool roles_are(struct chat_messages *messages, const char *const *roles)
{
    for (size_t i = 0; i < messages->count; i++) {
        const char *const *role = roles;
        while (*role && !is_role(&messages->at[i], *role))
            role++;
        if (!*role)
            return refuse_role(messages, i, is_role(&messages->at[i], "tool") ? TOOL_ROLE : UNKNOWN_ROLE);
    }
    return true;
}

static const char *const usual_roles[] = {"system", "user", "assistant", NULL};

/* Checks that messages from `first` on are of users at even places and of others at odd ones. */
static bool roles_alternate(struct chat_messages *messages, size_t first, const char *reason)
{
    for (size_t i = first; i < messages->count; i++)
        if (is_role(&messages->at[i], "user") != ((i - first) % 2 == 0))
            return refuse_role(messages, i, reason);
    return true;
}

/* ---- ChatML and Qwen ---- */

enum { IM_START, IM_END, THINK, THINK_END };
static const struct chat_token chatml_tokens[] = {{"<|im_start|>", CHAT_TOKEN_FIXED, false},
                                                  {"<|im_end|>", CHAT_TOKEN_FIXED, false},
                                                  {"<think>", CHAT_TOKEN_FIXED, true},
                                                  {"</think>", CHAT_TOKEN_FIXED, true},
                                                  {NULL, CHAT_TOKEN_FIXED, false}};

static void chatml_message(struct chat_writer *writer, struct chat_string role, struct chat_string text)
{
    put_token(writer, IM_START);
    put(writer, role);
    puts_text(writer, "\n");
    begin(writer, equals(role, "assistant"));
    put(writer, text);
    put_token(writer, IM_END);
    end(writer);
    puts_text(writer, "\n");
}

static void chatml_render(struct chat_writer *writer, struct chat_messages *messages)
{
    if (!contents_are_text(messages, false))
        return;
    for (size_t i = 0; i < messages->count; i++)
        chatml_message(writer, messages->at[i].role, messages->at[i].text);
}

static void qwen25_render(struct chat_writer *writer, struct chat_messages *messages)
{
    if (!roles_are(messages, usual_roles) || !contents_are_text(messages, false))
        return;
    if (!is_role(&messages->at[0], "system"))
        chatml_message(writer, literal("system"),
                       literal("You are Qwen, created by Alibaba Cloud. You are a helpful assistant."));
    for (size_t i = 0; i < messages->count; i++)
        chatml_message(writer, messages->at[i].role, messages->at[i].text);
}

static void qwen3_2507_render(struct chat_writer *writer, struct chat_messages *messages)
{
    if (!roles_are(messages, usual_roles) || !contents_are_text(messages, true))
        return;
    for (size_t i = 0; i < messages->count; i++)
        chatml_message(writer, messages->at[i].role, messages->at[i].text);
}

/* The index of the last message of a user that is not the result of a tool; the last message if there is none. */
static size_t last_query(const struct chat_messages *messages)
{
    for (size_t i = messages->count; i-- > 0;) {
        const struct chat_string text = messages->at[i].text;
        if (is_role(&messages->at[i], "user") &&
            !(starts_with(text, "<tool_response>") && ends_with(text, "</tool_response>")))
            return i;
    }
    return messages->count - 1;
}

/* Thoughts of the assistant are written only in answers to the last question; the last message always has them, if
 * only as an empty block. */
static void qwen3_answer(struct chat_writer *writer, struct chat_string text, bool current, bool last)
{
    bool thinks;
    const struct chat_string before = before_first(text, "</think>", &thinks);
    struct chat_string thoughts = {"", 0};
    if (thinks) {
        thoughts = strip_newlines_start(after_last(strip_newlines_end(before), "<think>"));
        text = strip_newlines_start(after_last(text, "</think>"));
    }
    put_token(writer, IM_START);
    puts_text(writer, "assistant\n");
    begin(writer, true);
    if (current && (last || thoughts.count)) {
        put_token(writer, THINK);
        puts_text(writer, "\n");
        put(writer, strip_newlines_end(strip_newlines_start(thoughts)));
        puts_text(writer, "\n");
        put_token(writer, THINK_END);
        puts_text(writer, "\n\n");
        text = strip_newlines_start(text);
    }
    put(writer, text);
    put_token(writer, IM_END);
    end(writer);
    puts_text(writer, "\n");
}

static void qwen3_render(struct chat_writer *writer, struct chat_messages *messages)
{
    if (!roles_are(messages, usual_roles) || !contents_are_text(messages, true))
        return;
    const size_t query = last_query(messages);
    for (size_t i = 0; i < messages->count; i++) {
        const struct chat_message *message = &messages->at[i];
        if (is_assistant(message))
            qwen3_answer(writer, message->text, i > query, i + 1 == messages->count);
        else
            chatml_message(writer, message->role, message->text);
    }
}

/* ---- Llama 2 and Mistral ---- */

enum { BOS, EOS, INST, INST_END };
static const struct chat_token llama2_tokens[] = {{"<s>", CHAT_TOKEN_BOS, false},
                                                  {"</s>", CHAT_TOKEN_EOS, false},
                                                  {"[INST]", CHAT_TOKEN_FIXED, true},
                                                  {"[/INST]", CHAT_TOKEN_FIXED, true},
                                                  {NULL, CHAT_TOKEN_FIXED, false}};
static const struct chat_token mistral_tokens[] = {{"<s>", CHAT_TOKEN_BOS, false},
                                                   {"</s>", CHAT_TOKEN_EOS, false},
                                                   {"[INST]", CHAT_TOKEN_FIXED, false},
                                                   {"[/INST]", CHAT_TOKEN_FIXED, false},
                                                   {NULL, CHAT_TOKEN_FIXED, false}};

/* The number of messages before the turns: 1 if the first message is the system's, else 0. */
static size_t system_count(const struct chat_messages *messages)
{
    return is_role(&messages->at[0], "system") ? 1 : 0;
}

/* Checks that messages from `first` on are of the assistant if they are not of users. */
static bool others_are_assistants(struct chat_messages *messages, size_t first)
{
    for (size_t i = first; i < messages->count; i++)
        if (!is_role(&messages->at[i], "user") && !is_assistant(&messages->at[i]))
            return refuse_role(messages, i, is_role(&messages->at[i], "tool") ? TOOL_ROLE : UNKNOWN_ROLE);
    return true;
}

/* The system message is a part of the first question, and what is stripped is the whole. */
static void llama2_render(struct chat_writer *writer, struct chat_messages *messages)
{
    const size_t first = system_count(messages);
    if (!roles_alternate(messages, first, NOT_ALTERNATING) || !others_are_assistants(messages, first) ||
        !contents_are_text(messages, false))
        return;
    if (first == messages->count) {
        (void)refuse(messages, 0, "the template writes a system message only before a question");
        return;
    }
    for (size_t i = first; i < messages->count; i++) {
        const struct chat_string text = messages->at[i].text;
        if (is_assistant(&messages->at[i])) {
            puts_text(writer, " ");
            begin(writer, true);
            put(writer, strip(text));
            puts_text(writer, " ");
            put_token(writer, EOS);
            end(writer);
            continue;
        }
        put_token(writer, BOS);
        put_token(writer, INST);
        puts_text(writer, " ");
        if (i == 1 && first) {
            puts_text(writer, "<<SYS>>\n");
            put(writer, messages->at[0].text);
            puts_text(writer, "\n<</SYS>>");
            if (strip(text).count)
                puts_text(writer, "\n\n");
            put(writer, strip_end(text));
        } else {
            put(writer, strip(text));
        }
        puts_text(writer, " ");
        put_token(writer, INST_END);
    }
}

/* What differs between the templates of Mistral. */
struct mistral {
    bool system; /* a system message is allowed */
    bool at_end; /* it is written in the last question, if that is the last message; else in the first one */
    const char *before_inst, *after_inst, *before_end, *before_answer; /* spaces */
    bool strips;                                                       /* the answer is stripped */
};

static bool mistral_check(const struct mistral *how, struct chat_messages *messages, size_t first)
{
    if (!roles_alternate(messages, first, how->system ? NOT_ALTERNATING_SYSTEM : NOT_ALTERNATING) ||
        !others_are_assistants(messages, first) || !contents_are_text(messages, false))
        return false;
    if (first && first == messages->count)
        return refuse(messages, 0, "the template writes a system message only before a question");
    if (first && how->at_end && !is_role(&messages->at[messages->count - 1], "user"))
        return refuse(messages, 0,
                      "the template writes a system message only in a question that is the last message, and leaves it "
                      "out of this conversation; put its text into the first question, or use another template");
    return true;
}

static void mistral_write(struct chat_writer *writer, struct chat_messages *messages, const struct mistral *how)
{
    const size_t first = how->system ? system_count(messages) : 0;
    if (!mistral_check(how, messages, first))
        return;
    const size_t with_system = !first ? SIZE_MAX : how->at_end ? messages->count - 1 : first;
    put_token(writer, BOS);
    for (size_t i = first; i < messages->count; i++) {
        const struct chat_string text = messages->at[i].text;
        if (is_assistant(&messages->at[i])) {
            puts_text(writer, how->before_answer);
            begin(writer, true);
            put(writer, how->strips ? strip(text) : text);
            put_token(writer, EOS);
            end(writer);
            continue;
        }
        puts_text(writer, how->before_inst);
        put_token(writer, INST);
        puts_text(writer, how->after_inst);
        if (i == with_system) {
            put(writer, messages->at[0].text);
            puts_text(writer, "\n\n");
        }
        put(writer, text);
        puts_text(writer, how->before_end);
        put_token(writer, INST_END);
    }
}

static void mistral_v0_render(struct chat_writer *writer, struct chat_messages *messages)
{
    static const struct mistral how = {false, false, "", " ", " ", "", false};
    mistral_write(writer, messages, &how);
}

static void mistral_v1_render(struct chat_writer *writer, struct chat_messages *messages)
{
    static const struct mistral how = {true, false, " ", " ", " ", " ", false};
    mistral_write(writer, messages, &how);
}

static void mistral_v3_render(struct chat_writer *writer, struct chat_messages *messages)
{
    static const struct mistral how = {true, true, "", " ", "", " ", true};
    mistral_write(writer, messages, &how);
}

static void mistral_v3_tekken_render(struct chat_writer *writer, struct chat_messages *messages)
{
    static const struct mistral how = {true, true, "", "", "", "", false};
    mistral_write(writer, messages, &how);
}

/* ---- Llama 3 ---- */

enum { LLAMA3_BOS, HEADER, HEADER_END, EOT };
static const struct chat_token llama3_tokens[] = {{"<|begin_of_text|>", CHAT_TOKEN_BOS, false},
                                                  {"<|start_header_id|>", CHAT_TOKEN_FIXED, false},
                                                  {"<|end_header_id|>", CHAT_TOKEN_FIXED, false},
                                                  {"<|eot_id|>", CHAT_TOKEN_FIXED, false},
                                                  {NULL, CHAT_TOKEN_FIXED, false}};

static void llama3_header(struct chat_writer *writer, struct chat_string role)
{
    put_token(writer, HEADER);
    put(writer, role);
    put_token(writer, HEADER_END);
    puts_text(writer, "\n\n");
}

static void llama3_message(struct chat_writer *writer, const struct chat_message *message)
{
    llama3_header(writer, message->role);
    begin(writer, is_assistant(message));
    put(writer, strip(message->text));
    put_token(writer, EOT);
    end(writer);
}

static void llama3_render(struct chat_writer *writer, struct chat_messages *messages)
{
    if (!contents_are_text(messages, false))
        return;
    put_token(writer, LLAMA3_BOS);
    for (size_t i = 0; i < messages->count; i++)
        llama3_message(writer, &messages->at[i]);
}

static void llama31_render(struct chat_writer *writer, struct chat_messages *messages)
{
    const size_t first = system_count(messages);
    if (!contents_are_text(messages, false))
        return;
    for (size_t i = first; i < messages->count; i++)
        if (is_role(&messages->at[i], "tool") || is_role(&messages->at[i], "ipython")) {
            (void)refuse_role(messages, i, TOOL_ROLE);
            return;
        }
    put_token(writer, LLAMA3_BOS);
    llama3_header(writer, literal("system"));
    puts_text(writer, "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n");
    if (first)
        put(writer, strip(messages->at[0].text));
    put_token(writer, EOT);
    for (size_t i = first; i < messages->count; i++)
        llama3_message(writer, &messages->at[i]);
}

/* ---- Gemma ---- */

enum { GEMMA_BOS, TURN, TURN_END };
static const struct chat_token gemma_tokens[] = {{"<bos>", CHAT_TOKEN_BOS, false},
                                                 {"<start_of_turn>", CHAT_TOKEN_FIXED, false},
                                                 {"<end_of_turn>", CHAT_TOKEN_FIXED, false},
                                                 {NULL, CHAT_TOKEN_FIXED, false}};

static void gemma_turn(struct chat_writer *writer, const struct chat_message *message, const struct chat_string *prefix)
{
    put_token(writer, TURN);
    put(writer, is_assistant(message) ? literal("model") : message->role);
    puts_text(writer, "\n");
    if (prefix) {
        put(writer, *prefix);
        puts_text(writer, "\n\n");
    }
    begin(writer, is_assistant(message));
    if (message->kind == CHAT_CONTENT_TEXT)
        put(writer, strip(message->text));
    for (size_t i = 0; i < message->part_count; i++)
        put(writer, strip(message->parts[i]));
    put_token(writer, TURN_END);
    end(writer);
    puts_text(writer, "\n");
}

static void gemma_render(struct chat_writer *writer, struct chat_messages *messages)
{
    if (is_role(&messages->at[0], "system")) {
        (void)refuse(messages, 0, "system role not supported");
        return;
    }
    if (!roles_alternate(messages, 0, NOT_ALTERNATING) || !contents_are_text(messages, false))
        return;
    put_token(writer, GEMMA_BOS);
    for (size_t i = 0; i < messages->count; i++)
        gemma_turn(writer, &messages->at[i], NULL);
}

/* Contents may be lists of texts, each of which is stripped. The system message is written before the first question,
 * as it is. */
static void gemma3_render(struct chat_writer *writer, struct chat_messages *messages)
{
    const size_t first = system_count(messages);
    const struct chat_message *system = &messages->at[0];
    if (!roles_alternate(messages, first, NOT_ALTERNATING))
        return;
    for (size_t i = 0; i < messages->count; i++)
        if (messages->at[i].kind == CHAT_CONTENT_NULL) {
            (void)refuse(messages, i, "it has no content");
            return;
        }
    if (first && system->kind == CHAT_CONTENT_PARTS && system->part_count != 1) {
        (void)refuse(messages, 0, "the template writes one part of a system message only, and it does not have one");
        return;
    }
    if (first && first == messages->count) {
        (void)refuse(messages, 0, "the template writes a system message only before a question");
        return;
    }
    put_token(writer, GEMMA_BOS);
    for (size_t i = first; i < messages->count; i++) {
        const struct chat_string *prefix = system->kind == CHAT_CONTENT_TEXT ? &system->text : system->parts;
        gemma_turn(writer, &messages->at[i], first && i == first ? prefix : NULL);
    }
}

/* ---- DeepSeek ---- */

enum { DEEPSEEK_BOS, DEEPSEEK_EOS, DEEPSEEK_USER, DEEPSEEK_ASSISTANT };
static const struct chat_token deepseek_tokens[] = {{"<\xef\xbd\x9c"
                                                     "begin\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>",
                                                     CHAT_TOKEN_BOS, false},
                                                    {"<\xef\xbd\x9c"
                                                     "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>",
                                                     CHAT_TOKEN_FIXED, false},
                                                    {"<\xef\xbd\x9cUser\xef\xbd\x9c>", CHAT_TOKEN_FIXED, false},
                                                    {"<\xef\xbd\x9c"
                                                     "Assistant\xef\xbd\x9c>",
                                                     CHAT_TOKEN_FIXED, false},
                                                    {NULL, CHAT_TOKEN_FIXED, false}};

/* System messages are written before all turns. Thoughts of the assistant are left out. */
static void deepseek_write(struct chat_writer *writer, struct chat_messages *messages, bool many_systems)
{
    size_t systems = 0;
    if (!roles_are(messages, usual_roles) || !contents_are_text(messages, false))
        return;
    put_token(writer, DEEPSEEK_BOS);
    for (size_t i = 0; i < messages->count; i++)
        if (is_role(&messages->at[i], "system")) {
            if (systems && !many_systems) {
                (void)refuse_role(messages, i, "the template writes only one of several system messages");
                return;
            }
            if (systems++)
                puts_text(writer, "\n\n");
            put(writer, messages->at[i].text);
        }
    for (size_t i = 0; i < messages->count; i++) {
        const struct chat_message *message = &messages->at[i];
        if (is_role(message, "user")) {
            put_token(writer, DEEPSEEK_USER);
            put(writer, message->text);
        } else if (is_assistant(message)) {
            put_token(writer, DEEPSEEK_ASSISTANT);
            begin(writer, true);
            put(writer, after_last(message->text, "</think>"));
            put_token(writer, DEEPSEEK_EOS);
            end(writer);
        }
    }
}

static void deepseek_v3_render(struct chat_writer *writer, struct chat_messages *messages)
{
    deepseek_write(writer, messages, true);
}

static void deepseek_r1_render(struct chat_writer *writer, struct chat_messages *messages)
{
    deepseek_write(writer, messages, false);
}

/* ---- Phi ---- */

enum { PHI_SYSTEM, PHI_USER, PHI_ASSISTANT, PHI_END, PHI_EOS };
static const struct chat_token phi3_tokens[] = {
    {"<|system|>", CHAT_TOKEN_FIXED, false},    {"<|user|>", CHAT_TOKEN_FIXED, false},
    {"<|assistant|>", CHAT_TOKEN_FIXED, false}, {"<|end|>", CHAT_TOKEN_FIXED, false},
    {"<|endoftext|>", CHAT_TOKEN_EOS, false},   {NULL, CHAT_TOKEN_FIXED, false}};

static void phi3_write(struct chat_writer *writer, struct chat_messages *messages, bool empty_systems)
{
    if (!roles_are(messages, usual_roles) || !contents_are_text(messages, false))
        return;
    for (size_t i = 0; i < messages->count; i++) {
        const struct chat_message *message = &messages->at[i];
        const bool system = is_role(message, "system");
        if (system && !empty_systems && !message->text.count)
            continue;
        put_token(writer, system ? PHI_SYSTEM : is_assistant(message) ? PHI_ASSISTANT : PHI_USER);
        puts_text(writer, "\n");
        begin(writer, is_assistant(message));
        put(writer, message->text);
        put_token(writer, PHI_END);
        end(writer);
        puts_text(writer, "\n");
    }
    put_token(writer, PHI_EOS);
}

static void phi3_render(struct chat_writer *writer, struct chat_messages *messages)
{
    phi3_write(writer, messages, true);
}

static void phi35_render(struct chat_writer *writer, struct chat_messages *messages)
{
    phi3_write(writer, messages, false);
}

enum { PHI4_START, PHI4_SEPARATOR, PHI4_END };
static const struct chat_token phi4_tokens[] = {{"<|im_start|>", CHAT_TOKEN_FIXED, false},
                                                {"<|im_sep|>", CHAT_TOKEN_FIXED, false},
                                                {"<|im_end|>", CHAT_TOKEN_FIXED, false},
                                                {NULL, CHAT_TOKEN_FIXED, false}};

static void phi4_render(struct chat_writer *writer, struct chat_messages *messages)
{
    if (!roles_are(messages, usual_roles) || !contents_are_text(messages, false))
        return;
    for (size_t i = 0; i < messages->count; i++) {
        const struct chat_message *message = &messages->at[i];
        put_token(writer, PHI4_START);
        put(writer, message->role);
        put_token(writer, PHI4_SEPARATOR);
        begin(writer, is_assistant(message));
        put(writer, message->text);
        put_token(writer, PHI4_END);
        end(writer);
    }
}

/* ---- Zephyr ---- */

enum { ZEPHYR_SYSTEM, ZEPHYR_USER, ZEPHYR_ASSISTANT, ZEPHYR_EOS };
static const struct chat_token zephyr_tokens[] = {{"<|system|>", CHAT_TOKEN_FIXED, true},
                                                  {"<|user|>", CHAT_TOKEN_FIXED, true},
                                                  {"<|assistant|>", CHAT_TOKEN_FIXED, true},
                                                  {"</s>", CHAT_TOKEN_EOS, false},
                                                  {NULL, CHAT_TOKEN_FIXED, false}};

static void zephyr_render(struct chat_writer *writer, struct chat_messages *messages)
{
    if (!roles_are(messages, usual_roles) || !contents_are_text(messages, false))
        return;
    for (size_t i = 0; i < messages->count; i++) {
        const struct chat_message *message = &messages->at[i];
        put_token(writer, is_role(message, "system") ? ZEPHYR_SYSTEM
                          : is_assistant(message)    ? ZEPHYR_ASSISTANT
                                                     : ZEPHYR_USER);
        puts_text(writer, "\n");
        begin(writer, is_assistant(message));
        put(writer, message->text);
        put_token(writer, ZEPHYR_EOS);
        end(writer);
        puts_text(writer, "\n");
    }
}

/* ---- finding them ---- */

#define KNOWN_MAP(X)                                                                                                   \
    X("chatml", chatml_tokens, chatml_render)                                                                          \
    X("deepseek-r1-distill", deepseek_tokens, deepseek_r1_render)                                                      \
    X("deepseek-v3", deepseek_tokens, deepseek_v3_render)                                                              \
    X("gemma", gemma_tokens, gemma_render)                                                                             \
    X("gemma3", gemma_tokens, gemma3_render)                                                                           \
    X("llama2", llama2_tokens, llama2_render)                                                                          \
    X("llama3", llama3_tokens, llama3_render)                                                                          \
    X("llama3.1", llama3_tokens, llama31_render)                                                                       \
    X("mistral-v0", llama2_tokens, mistral_v0_render)                                                                  \
    X("mistral-v1", llama2_tokens, mistral_v1_render)                                                                  \
    X("mistral-v3", mistral_tokens, mistral_v3_render)                                                                 \
    X("mistral-v3-tekken", mistral_tokens, mistral_v3_tekken_render)                                                   \
    X("phi3", phi3_tokens, phi3_render)                                                                                \
    X("phi3.5", phi3_tokens, phi35_render)                                                                             \
    X("phi4", phi4_tokens, phi4_render)                                                                                \
    X("qwen2.5", chatml_tokens, qwen25_render)                                                                         \
    X("qwen3", chatml_tokens, qwen3_render)                                                                            \
    X("qwen3-2507", chatml_tokens, qwen3_2507_render)                                                                  \
    X("zephyr", zephyr_tokens, zephyr_render)

#define KNOWN_STRUCT(name, tokens, render) {name, tokens, render},
static const struct chat_known known[] = {KNOWN_MAP(KNOWN_STRUCT)};
#define KNOWN_NAME(name, tokens, render) name,
static const char *const names[] = {KNOWN_MAP(KNOWN_NAME) NULL};

const char *const *chat_known_names(void)
{
    return names;
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
