/* chat_mistral.h - the chat templates of Llama 2 and of Mistral, for the table of chat_templates.h. */
#ifndef TOKMAP_PACK_CHAT_MISTRAL_H
#define TOKMAP_PACK_CHAT_MISTRAL_H

#include "chat_writer.h"

extern const struct chat_token chat_llama2_tokens[], chat_mistral_tokens[];
void chat_llama2_render(struct chat_writer *writer, struct chat_messages *messages);
void chat_mistral_v0_render(struct chat_writer *writer, struct chat_messages *messages);
void chat_mistral_v1_render(struct chat_writer *writer, struct chat_messages *messages);
void chat_mistral_v3_render(struct chat_writer *writer, struct chat_messages *messages);
void chat_mistral_v3_tekken_render(struct chat_writer *writer, struct chat_messages *messages);

#endif
