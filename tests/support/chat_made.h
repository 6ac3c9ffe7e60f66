/* SPDX-License-Identifier: MIT */
/* chat_made.h - a vocabulary with the special tokens of chat templates, for their tests, and what a template has
 * written as a text. */
#ifndef TESTS_SUPPORT_CHAT_MADE_H
#define TESTS_SUPPORT_CHAT_MADE_H

#include "chat/chat.h"

#define CHAT_SPECIALS 28
extern const char *const chat_specials[CHAT_SPECIALS]; /* id 256 + i is chat_specials[i]; each byte is its own token */
extern char chat_folder[512];
extern struct tokenizer *chat_as_text, *chat_as_tokens; /* by what becomes of special tokens in a text */

/* Are the setup and the teardown of a group of tests. */
int chat_setup(void **state);
int chat_teardown(void **state);

struct chat_template *chat_opened(const char *choice);
/* Writes a conversation that has nothing beside its messages. */
static inline enum tokmap_status chat_render(const struct chat_template *template, const char *json, uint64_t bytes,
                                             struct chat_text *out, struct tokmap_error *error)
{
    return chat_render_record(template, json, bytes, NULL, 0, out, error);
}
/* The text with 0x01 and 0x02 around what counts. */
const char *chat_shown(const struct chat_text *text);
void chat_marks_check(const struct chat_text *text);

#endif
