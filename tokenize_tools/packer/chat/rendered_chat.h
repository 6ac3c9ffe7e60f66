/* SPDX-License-Identifier: MIT */
/* rendered_chat.h - a conversation as a chat template writes it: what chat.h and chat_templates.h share. */
#ifndef TOKMAP_CHAT_RENDERED_CHAT_H
#define TOKMAP_CHAT_RENDERED_CHAT_H

#include "chat_messages.h"
#include "engine/tokenizer.h"

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
