/* SPDX-License-Identifier: MIT */
/*
 * chat.h - writes conversations as chat templates do: a list of messages in, the text that a model is trained on out,
 * with the special tokens in it and with what counts as a target: what the assistant says, and the token that ends its
 * turn.
 *
 * The templates are the ones that tokenizers carry in tokenizer_config.json ("chat_template"). Those are programs in
 * the language Jinja, which tokmap does not run. Instead, the templates in chat_templates.h are built in, and a file is
 * accepted if its template is one of them, byte for byte. Each is equal to what apply_chat_template of Hugging Face
 * transformers writes, without a prompt for the next answer.
 *
 * Special tokens that the template writes become tokens. What reads like one in a message is the message's text, and
 * the tokenizer's own option decides about it (enum tokmap_special): as text by default, so that a message cannot
 * forge the turn of another role.
 *
 * Thread rule: a template is immutable and may be shared by threads; a chat_text belongs to one thread.
 */
#ifndef TOKMAP_CHAT_CHAT_H
#define TOKMAP_CHAT_CHAT_H

#include <stdbool.h>

#include "chat_learn.h"
#include "chat_messages.h"
#include "engine/tokenizer.h"

struct chat_template;

/* Bit 0 is set for what counts. The role is in the bits after it, so that the assistant's tokens are 1. */
#define CHAT_COUNTED(role) ((uint8_t)(1U | (unsigned)(role) << 1))
#define CHAT_COUNTED_ROLE(counted) ((enum chat_role)((counted) >> 1))

/* Opens a template for a tokenizer, which must outlive it.
 *   choice          the name of a built-in template ("chatml", "llama3"; chat_known_names), or the path of a file:
 *                   a tokenizer_config.json, a chat_template.json or .jinja, or a folder with one of them. A name is a
 *                   template even if a file has that name, too; write "./chatml" for the file. NULL: what belongs to
 *                   the tokenizer, in the folder of tokenizer_path
 *   tokenizer_path  the tokenizer's file or folder as the user gave it, or NULL: where "bos_token" and "eos_token"
 *                   are looked up if the template is built in
 * On failure *template is NULL. Statuses: OK, ERROR_NOT_FOUND, ERROR_IO, ERROR_FORMAT (a file is not valid),
 * ERROR_UNSUPPORTED (the file's template is not one of those that are built in), ERROR_ARGUMENT (no template is named
 * `choice`, the tokenizer has no template, or its vocabulary lacks a token that the template writes), ERROR_LIMIT (the
 * file is too large), ERROR_MEMORY. */
enum tokmap_status chat_template_open(struct chat_template **template, const char *choice, const char *tokenizer_path,
                                      const struct tokenizer *tokenizer, struct tokmap_error *error);
/* NULL is allowed. */
void chat_template_close(struct chat_template *template);
/* Keys of messages, and of chat_template_kwargs, that count for nothing. They must outlive the template. */
void chat_template_ignore(struct chat_template *template, const char *const *keys, size_t count);
/* Decides what counts: *learn is copied. */
void chat_template_learn(struct chat_template *template, const struct chat_learn *learn);
/* Returns that, in words, and whether the template is "rendered", in whose sections another program has decided it. */
const struct chat_learn *chat_template_learned(const struct chat_template *template);
bool chat_template_is_rendered(const struct chat_template *template);
/* Returns the name of the built-in template that it is; static. */
const char *chat_template_name(const struct chat_template *template);
/* Returns the key beside the messages that must be passed to chat_render_record() if it is empty but not null, or NULL:
 * the template takes all that is empty for none. Static. */
const char *chat_template_empty(const struct chat_template *template);

void chat_text_free(struct chat_text *text);

/* Writes a conversation: a JSON array of objects. Of each, "role" is a string; "content" is a string or, where the
 * template takes that, a list of parts {"type": "text", "text": ...}. Only an assistant that calls tools may have no
 * content, or null. "tool_calls", "tool_call_id", and "reasoning_content" are written where the template writes them.
 * "weight" 0 and "train" false mask what a message says; 1 and true, which only an assistant may
 * have unless chat_template_learn() says otherwise, make all of it count. Other keys that change what programs write
 * ("function_call", "images", and so on) are refused unless their value is null, false, or empty; further keys are
 * ignored, as the templates do.
 *   json, bytes   valid UTF-8
 *   beside        NULL, or a JSON object of those keys beside the messages that say something (chat_beside_keys() of
 *                 chat_messages.h), valid UTF-8; what the template does not write is refused
 *   out           what it had before is overwritten; its memory is used again
 * Statuses: OK (also if out->reason says why the conversation cannot be written; `text` is then incomplete),
 * ERROR_MEMORY. */
enum tokmap_status chat_render_record(const struct chat_template *template, const char *json, uint64_t bytes,
                                      const char *beside, uint64_t beside_bytes, struct chat_text *out,
                                      struct tokmap_error *error);

/* Returns the most ids that chat_encode() makes of the text, without a prefix and a suffix. */
uint64_t chat_ids_most(const struct tokenizer *tokenizer, const struct chat_text *text);

/* Encodes a conversation that was written without a reason, as tokenizer_encode() does with a batch of one document.
 *   out       `capacity` of at least chat_ids_most(), plus one each for prefix and suffix
 *   counted   NULL, or a byte for each of out->capacity ids: CHAT_COUNTED() of the role from the token with the first
 *             byte of what counts to the token with its last byte, else 0, as transformers decides it. Prefix and
 *             suffix do not count
 * Statuses: those of tokenizer_encode_marked() and tokenizer_offsets(). */
enum tokmap_status chat_encode(struct tokenizer_state *state, struct chat_text *text, struct tokenizer_out *out,
                               uint8_t *counted, struct tokmap_error *error);

#endif
