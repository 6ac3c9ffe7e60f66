/* SPDX-License-Identifier: MIT */
/* chat_mistral.h - the chat templates of Llama 2 and of Mistral, for the table of chat_templates.h. */
#ifndef TOKMAP_CHAT_CHAT_MISTRAL_H
#define TOKMAP_CHAT_CHAT_MISTRAL_H

#include "chat_writer.h"

struct chat_mistral; /* differences between the templates of Mistral */

extern const struct chat_token chat_llama2_tokens[], chat_mistral_tokens[];
extern const struct chat_mistral chat_mistral_v0, chat_mistral_v1, chat_mistral_v3, chat_mistral_tekken;

void chat_llama2_render(struct chat_writer *writer, struct chat_messages *messages, const void *how);
/* how: a struct chat_mistral. */
void chat_mistral_render(struct chat_writer *writer, struct chat_messages *messages, const void *how);

#endif
