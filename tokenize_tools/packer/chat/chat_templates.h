/* SPDX-License-Identifier: MIT */
/*
 * chat_templates.h - the chat templates that are built in. chat.c opens them and the functions of chat.h call them.
 *
 * Each template is a function, with forms or other constants, that appends to a struct chat_writer what its Jinja
 * original writes, token by token. The tokens that it uses are a table of texts: those that a vocabulary has as added
 * tokens are marked as tokens in the text, as a tokenizer would find them there. A vocabulary must have all tokens of
 * the table that are not optional.
 */
#ifndef TOKMAP_CHAT_CHAT_TEMPLATES_H
#define TOKMAP_CHAT_CHAT_TEMPLATES_H

#include "chat_writer.h"

struct chat_known {
    const char *name;
    const struct chat_token *tokens; /* CHAT_TOKENS_MOST at most */
    unsigned abilities;              /* enum chat_ability, added */
    void (*render)(struct chat_writer *writer, struct chat_messages *messages, const void *how);
    const void *how; /* differences between the templates of one function */
};

/* Returns the names of all templates in alphabetical order, and a NULL; static. */
const char *const *chat_known_names(void);
/* Returns the same names as a text, with a comma and a blank between them. */
const char *chat_known_list(void);
/* Finds a template by its name, or returns NULL. "rendered", which chat_known_names() does not name, is for programs
 * that render conversations on their own, as tokmap.pack() of Python does with transformers: each message is a section
 * of the text, and its role is "text", or "token" for a special token, or, for what counts, "said" or "said-token" for
 * the assistant, and "tool", "tool-token", and so on for other roles. */
const struct chat_known *chat_known_by_name(const char *name);
/* Finds the template that a text in Jinja is, or returns NULL; *why is then a reason to refuse it that users should
 * read, or NULL if the text is not known. Spaces around the text do not matter. */
const struct chat_known *chat_known_by_text(const char *jinja, size_t bytes, const char **why);

#endif
