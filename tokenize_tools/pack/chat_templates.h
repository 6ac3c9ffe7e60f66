/*
 * chat_templates.h - the chat templates that are built in. chat.c opens them and chat_render() of chat.h calls them.
 *
 * Each template is a function that appends to a struct chat_writer what its Jinja original writes, token by token. The
 * tokens that it uses are a table of texts: those that a vocabulary has as added tokens are marked as tokens in the
 * text, as a tokenizer would find them there. A vocabulary must have all tokens of the table that are not optional.
 */
#ifndef TOKMAP_PACK_CHAT_TEMPLATES_H
#define TOKMAP_PACK_CHAT_TEMPLATES_H

#include "chat_messages.h"
#include "rendered_chat.h"

#define CHAT_TOKENS_MOST 12

/* What tokenizer_config.json may replace. */
enum chat_token_kind { CHAT_TOKEN_FIXED, CHAT_TOKEN_BOS, CHAT_TOKEN_EOS };

struct chat_token {
    const char *text; /* NULL: the end of the table */
    enum chat_token_kind kind;
    bool optional; /* it is written as text if the vocabulary lacks it */
};

/* Where a template writes to. */
struct chat_writer {
    struct chat_text *out;
    const struct chat_token_found {
        char *text;
        size_t bytes;
        uint64_t id; /* or TOKMAP_NO_ID: it is text */
    } * tokens;      /* as in the table of the template */
    struct chat_messages *messages;
    uint64_t open; /* where a span that counts began, or UINT64_MAX */
    bool no_memory;
};

struct chat_known {
    const char *name;
    const struct chat_token *tokens; /* CHAT_TOKENS_MOST at most */
    void (*render)(struct chat_writer *writer, struct chat_messages *messages);
};

/* The names of all templates in alphabetical order, and a NULL; static. */
const char *const *chat_known_names(void);
/* Finds a template by its name, or returns NULL. */
const struct chat_known *chat_known_by_name(const char *name);
/* Finds the template that a text in Jinja is, or returns NULL; *why is then a reason to refuse it that users should
 * read, or NULL if the text is not known. Spaces around the text do not matter. */
const struct chat_known *chat_known_by_text(const char *jinja, size_t bytes, const char **why);

#endif
