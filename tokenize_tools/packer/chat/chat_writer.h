/* SPDX-License-Identifier: MIT */
/*
 * chat_writer.h - what the chat templates of chat_templates.h share: texts as Python handles them, writing, and checks
 * of messages.
 */
#ifndef TOKMAP_CHAT_CHAT_WRITER_H
#define TOKMAP_CHAT_CHAT_WRITER_H

#include "chat_learn.h"
#include "chat_messages.h"

#define CHAT_TOKENS_MOST 16

/* BOS and EOS are what tokenizer_config.json may replace. An optional token is text if the vocabulary lacks it. */
enum chat_token_kind { CHAT_TOKEN_NEEDED, CHAT_TOKEN_OPTIONAL, CHAT_TOKEN_BOS, CHAT_TOKEN_EOS };

struct chat_token {
    const char *text; /* NULL: the end of the table */
    enum chat_token_kind kind;
};

/* Destination of a template. */
struct chat_writer {
    struct chat_text *out;
    const struct chat_token_found {
        char *text;
        size_t bytes;
        uint64_t id; /* or TOKMAP_NO_ID: it is text */
        enum chat_token_kind kind;
    } * tokens; /* as in the table of the template */
    size_t token_count;
    const struct tokenizer *tokenizer;
    struct chat_messages *messages;
    const struct chat_string *prefix; /* text of the system message, for the next %p of a form, or NULL: nothing */
    const struct chat_learn *learn;
    const struct chat_message *turn; /* the message of the turn that counts, or NULL */
    uint64_t turn_begin, turn_first; /* its beginning in the text, and among the spans that count */
    bool left_out;                   /* true if something of it does not count */
    uint64_t open;                   /* beginning of a span that counts, or UINT64_MAX */
    bool no_memory;
};

/* Reasons to refuse a conversation. */
#define CHAT_LEAVES_OUT_TEXT "the template leaves out the text of a message that calls tools"
#define CHAT_SYSTEM_ALONE "the template writes a system message only before a question"
#define CHAT_UNKNOWN_ROLE "the template leaves out messages of this role"
#define CHAT_NOT_ALTERNATING "conversation roles must alternate user/assistant/user/assistant/..."
#define CHAT_NOT_ALTERNATING_SYSTEM                                                                                    \
    "after the optional system message, conversation roles must alternate user/assistant/user/assistant/..."

/* Roles, and a NULL: without tools, and with them. */
extern const char *const chat_usual_roles[], *const chat_tool_roles[];

/* Python's text.rstrip(), and text.strip(). */
struct chat_string chat_strip_end(struct chat_string text);
struct chat_string chat_strip(struct chat_string text);
struct chat_string chat_strip_newlines_start(struct chat_string text);
struct chat_string chat_strip_newlines_end(struct chat_string text);
bool chat_starts_with(struct chat_string text, const char *start);
bool chat_ends_with(struct chat_string text, const char *end);
/* Returns what comes after the last `mark` in the text: all of it without a mark. */
struct chat_string chat_after_last(struct chat_string text, const char *mark);
/* Returns what comes before the first `mark`, and sets *found if there is one. */
struct chat_string chat_before_first(struct chat_string text, const char *mark, bool *found);
size_t chat_code_points(struct chat_string text);
/* Returns the value of a member of an object, or "". */
struct chat_string chat_member(struct chat_string object, const char *wanted);
void chat_put(struct chat_writer *writer, struct chat_string text);
/* Writes the text of a token. id: TOKMAP_NO_ID for one that stays text. */
void chat_put_id(struct chat_writer *writer, struct chat_string text, uint64_t id);
/* Writes a form: text of the template, in which tokens of its table are tokens, and
 *   %b %e  the tokens BOS and EOS
 *   %( %)  around the turn of the message: what it says, and the token that ends it
 *   %r     the message's role
 *   %t %s  its text, and its text or its parts without the spaces around each
 *   %q     its text as a string of JSON
 *   %i     the id of the call of which it is the result
 *   %p     the prefix, which is what the system message says, and two newlines after it
 *   %?     the rest of the form is left out if the text is empty */
void chat_write(struct chat_writer *writer, const struct chat_message *message, const char *form);
/* Writes a form of a call: %n its name, %i its id, %y its type, %a its arguments as JSON, %x as text if they are a
 * string and as JSON otherwise. */
void chat_write_call(struct chat_writer *writer, const struct chat_call *call, const char *form);
/* Writes a form without a message. */
void chat_puts(struct chat_writer *writer, const char *form);
/* Writes a value of JSON as the filter `tojson` does. */
void chat_put_json(struct chat_writer *writer, struct chat_string value, bool indent);
/* Are called around the turn of a message, which counts as a target as far as it is learned. If something of it is not
 * and the token that ends the turn is all that is left, nothing counts. */
void chat_begin(struct chat_writer *writer, const struct chat_message *message);
void chat_end(struct chat_writer *writer);
/* Are called inside a turn, around its calls of tools, and around text of the template that is not of a message. */
void chat_calls_begin(struct chat_writer *writer);
void chat_pause(struct chat_writer *writer);
void chat_resume(struct chat_writer *writer);
bool chat_is_assistant(const struct chat_message *message);
/* Refuses the conversation because of a message; returns false. */
bool chat_refuse(struct chat_messages *messages, size_t index, const char *reason);
bool chat_refuse_role(struct chat_messages *messages, size_t index, const char *reason);
/* Checks that all contents are strings. Of an assistant that calls tools, no content becomes the empty string. */
bool chat_contents_are_text(struct chat_messages *messages);
/* Checks that all roles, from the message `first` on, are among those of a list that ends with NULL. */
bool chat_roles_from_are(struct chat_messages *messages, size_t first, const char *const *roles);
bool chat_roles_are(struct chat_messages *messages, const char *const *roles);
/* Checks that messages from `first` on are of users at even places and of others at odd ones. */
bool chat_roles_alternate(struct chat_messages *messages, size_t first, const char *reason);
/* Returns the number of messages before the turns: 1 if the first message is the system's, else 0. */
size_t chat_system_count(const struct chat_messages *messages);

#endif
