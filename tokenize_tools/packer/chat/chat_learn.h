/* SPDX-License-Identifier: MIT */
/*
 * chat_learn.h - which turns of a conversation are learned, and what of them: the words of `tokmap pack --learn`.
 *
 * A turn is what one message says, with the token that ends it. The words are roles, and, in any order among them:
 *   -thinking  without the thoughts of the assistant: what is between thinking tags, the tags, and the spaces after
 * them -calls     without the assistant's calls of tools last       only the last answers: from the question before the
 * last message of these roles on A message that says itself whether it is learned ("weight", "train") is learned whole,
 * or not at all.
 */
#ifndef TOKMAP_CHAT_CHAT_LEARN_H
#define TOKMAP_CHAT_CHAT_LEARN_H

#include <stdbool.h>

#include "chat_messages.h"

#define CHAT_LEARN_WORDS "assistant, tool, system, user, -thinking, -calls, last"
#define CHAT_LEARN_TEXT 64 /* bytes of chat_learn_print(), with the zero byte */

/* Zero bytes: --learn was not given. What the assistant says is learned then. */
struct chat_learn {
    bool given;
    unsigned roles; /* 1 << enum chat_role, added */
    bool no_thinking, no_calls, last;
};

/* Adds a word of --learn. Returns false if there is no such word, or if *learn has it already. */
bool chat_learn_add(struct chat_learn *learn, const char *word);
/* Writes the words in the order of CHAT_LEARN_WORDS, with commas between them; "" if --learn was not given. */
void chat_learn_print(const struct chat_learn *learn, char text[CHAT_LEARN_TEXT]);
/* Returns the name of a role as --learn has it, or "other"; static. */
const char *chat_role_name(enum chat_role role);

/* What the messages of a role are in several conversations. */
struct chat_counts {
    uint64_t messages, counted; /* tokens of theirs that count */
};
void chat_counts_add(struct chat_counts sum[CHAT_ROLES], const struct chat_counts more[CHAT_ROLES]);

/* Decides which messages are learned: sets role, learned, and whole of each. */
void chat_learn_apply(const struct chat_learn *learn, struct chat_messages *messages);

/* Finds the first block of thoughts in text[at, end): from its tag to the last space after the tag that ends it. An end
 * without a tag before it ends what the prompt has begun, so the block begins at `at`, if `begins`. Sets *first and
 * *after, and returns false without a block. A tag without an end, where nothing but spaces is before it, begins
 * thoughts that were cut: they are all of the text; anywhere else it is text about tags. */
bool chat_thoughts_find(const char *text, uint64_t at, uint64_t end, bool begins, uint64_t *first, uint64_t *after);

#endif
