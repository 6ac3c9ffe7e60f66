/* SPDX-License-Identifier: MIT */
/* chat_messages.h - reads the messages of a conversation from JSON, and what is beside them in the record. */
#ifndef TOKMAP_CHAT_CHAT_MESSAGES_H
#define TOKMAP_CHAT_CHAT_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chat_json.h"
#include "engine/tokenizer.h"

/* Decoded text, or a value of JSON; valid UTF-8, not terminated. */
struct chat_string {
    const char *bytes;
    size_t count;
};

/* Abilities of a template beside roles and contents. */
enum chat_ability {
    CHAT_WRITES_TOOLS = 1,    /* the tools of the record */
    CHAT_WRITES_CALLS = 2,    /* calls of tools, and their results */
    CHAT_WRITES_THOUGHTS = 4, /* reasoning_content */
    CHAT_IS_RENDERED = 8,     /* the messages are sections of a text that has all that the record says */
    CHAT_MEETS_EMPTY = 16,    /* tools or calls that are an empty list are not the same as none */
};

/* A call of a tool. Texts of NULL are missing. */
struct chat_call {
    struct chat_string function;       /* JSON: the object of that name, or of NULL: the call has its keys */
    struct chat_string name, id, type; /* text */
    struct chat_string arguments;      /* JSON */
    struct chat_string arguments_text; /* text, if they are a string */
};

/* Roles, as far as they decide what is learned. What completes a prompt counts as the assistant's. */
enum chat_role { CHAT_ROLE_ASSISTANT, CHAT_ROLE_TOOL, CHAT_ROLE_SYSTEM, CHAT_ROLE_USER, CHAT_ROLE_OTHER, CHAT_ROLES };

enum chat_content { CHAT_CONTENT_NULL, CHAT_CONTENT_TEXT, CHAT_CONTENT_PARTS };

struct chat_message {
    struct chat_string role;
    enum chat_content kind;
    struct chat_string text;         /* of CHAT_CONTENT_TEXT */
    const struct chat_string *parts; /* of CHAT_CONTENT_PARTS: the texts of its parts */
    size_t part_count;
    const struct chat_call *calls;
    size_t call_count;
    struct chat_string call_id;  /* of NULL: it has none */
    struct chat_string thoughts; /* of NULL: it has none */
    bool missing;                /* of CHAT_CONTENT_NULL: not even the key is there */
    bool extra;                  /* it has keys besides role and content */
    bool masked;                 /* it does not count as a target, in any role: "weight" is 0, or "train" false */
    bool taught;                 /* "weight" is 1, or "train" true */

    /* Results of chat_learn_apply(): what it says counts; and all of it does, whatever --learn leaves out. */
    enum chat_role speaker;
    bool learned, whole;
};

/* The messages of one conversation, and the memory for those of the next one. Initialize with zeros. */
struct chat_messages {
    struct chat_message *at;
    uint64_t count, capacity;
    struct chat_string *parts; /* of all messages */
    uint64_t part_count, part_capacity;
    struct chat_call *calls; /* of all messages */
    uint64_t call_count, call_capacity;
    struct chat_string *tools; /* JSON objects, if has_tools */
    uint64_t tool_count, tool_capacity;
    bool has_tools;
    char *texts; /* memory of all decoded strings */
    size_t texts_capacity;
    struct chat_json json; /* scratch memory for templates */
    uint64_t lone;         /* escapes of half a surrogate pair, each of which became U+FFFD */

    /* Reason why the conversation cannot be used: a sentence without its full stop, or NULL. With a reason: the number
     * of the message or UINT64_MAX, and a word of the conversation (a key, a type) or "". */
    const char *reason;
    uint64_t message;
    char detail[96];
};

void chat_messages_free(struct chat_messages *messages);

/* The conversation that is read. Initialize with zeros. */
struct chat_source {
    const char *json; /* an array of messages (chat.h says which), valid UTF-8 */
    size_t bytes;
    const char *beside; /* an object of what is beside them, or NULL: nothing */
    size_t beside_bytes;
    unsigned abilities;         /* of the template: enum chat_ability, added. What it does not write is refused */
    const char *const *ignored; /* ignored_count keys of messages and chat_template_kwargs that count for nothing */
    size_t ignored_count;
    bool any_role; /* true if what others than an assistant say can count */
};

/* Reads a conversation. What *messages had before is overwritten. The strings are valid until the next call, and as
 * long as the source. Statuses: OK (also with a reason), ERROR_MEMORY. */
enum tokmap_status chat_messages_read(struct chat_messages *messages, const struct chat_source *source,
                                      struct tokmap_error *error);

bool chat_is_role(const struct chat_message *message, const char *role);

/* Returns the keys beside the messages that say something, and a NULL; static. All others are ignored. */
const char *const *chat_beside_keys(void);
/* Returns true if some template writes what such a key says. */
bool chat_beside_written(const char *key);

/* Sets the reason of a conversation that has none yet. `detail` may be NULL; a long one is shortened, and what a
 * terminal cannot show becomes '?'. */
void chat_messages_refuse(struct chat_messages *messages, const char *reason, uint64_t message,
                          const struct chat_string *detail);

/* Bytes [begin, end) of a text, which a message of the role has said. */
struct chat_span {
    uint64_t begin, end;
    enum chat_role role;
};

/* A conversation as a template writes it. Initialize with zeros; chat_text_free() in the end. */
struct chat_text {
    struct text_buffer text;      /* valid UTF-8 */
    struct tokenizer_mark *marks; /* the special tokens that the template has written, in the order of the text */
    uint64_t mark_count, mark_capacity;
    struct chat_span *counted; /* spans that count as targets, in the order of the text */
    uint64_t counted_count, counted_capacity;
    uint64_t messages; /* their number */
    uint64_t messages_of[CHAT_ROLES];
    uint64_t lone; /* escapes of half a surrogate pair in them, each of which became U+FFFD */
    /* Reason why the conversation cannot be written: a sentence without its full stop, static; or NULL. */
    const char *reason;
    uint64_t message; /* with a reason: the number of the message, from 0, or UINT64_MAX: the whole conversation */
    char detail[96];  /* with a reason: a word of the conversation that it is about, such as a role, or "" */
    uint32_t width;   /* bytes of an id of the template's tokenizer */
    struct chat_messages *parsed;   /* memory of chat_render_record() */
    struct tokenizer_place *places; /* memory of chat_encode() */
    uint64_t *offsets;
    uint64_t place_capacity, offset_capacity;
};

#endif
