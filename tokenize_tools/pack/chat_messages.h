/* chat_messages.h - reads the messages of a conversation from JSON. */
#ifndef TOKMAP_PACK_CHAT_MESSAGES_H
#define TOKMAP_PACK_CHAT_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tokmap/tokmap.h"

/* Decoded text, valid UTF-8, not terminated. */
struct chat_string {
    const char *bytes;
    size_t count;
};

enum chat_content { CHAT_CONTENT_NULL, CHAT_CONTENT_TEXT, CHAT_CONTENT_PARTS };

struct chat_message {
    struct chat_string role;
    enum chat_content kind;
    struct chat_string text;         /* of CHAT_CONTENT_TEXT */
    const struct chat_string *parts; /* of CHAT_CONTENT_PARTS: the texts of its parts */
    size_t part_count;
};

/* The messages of one conversation, and the memory for those of the next one. Initialize with zeros. */
struct chat_messages {
    struct chat_message *at;
    size_t count, capacity;
    struct chat_string *parts; /* of all messages */
    size_t part_count, part_capacity;
    char *texts; /* what all strings point into */
    size_t texts_capacity;
    uint64_t lone; /* escapes of half a surrogate pair, each of which became U+FFFD */

    /* Why the conversation cannot be used: a sentence without its full stop, or NULL. With a reason: the number of the
     * message or UINT64_MAX, and a word of the conversation (a key, a type) or "". */
    const char *reason;
    uint64_t message;
    char detail[96];
};

void chat_messages_free(struct chat_messages *messages);

/* Reads a JSON array of messages (chat.h says which), valid UTF-8. What *messages had before is overwritten. The
 * strings are valid until the next call. Statuses: OK (also with a reason), ERROR_MEMORY. */
enum tokmap_status chat_messages_read(struct chat_messages *messages, const char *json, size_t bytes,
                                      struct tokmap_error *error);

/* Sets the reason of a conversation that has none yet. `detail` may be NULL; a long one is shortened, and what a
 * terminal cannot show becomes '?'. */
void chat_messages_refuse(struct chat_messages *messages, const char *reason, uint64_t message,
                          const struct chat_string *detail);

#endif
