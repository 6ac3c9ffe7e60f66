/* SPDX-License-Identifier: MIT */
/*
 * document_encode.h - turns the documents of a batch into tokens one by one, where a document is more than a text:
 * ready-made ids, a prompt with its completion, a conversation, a text that is rearranged to fill in the middle; and
 * where documents of some lengths are left out.
 *
 * pack_batches.c encodes plain texts itself, in groups and in parts. Here each document is encoded whole, because its
 * mask, and whether it is used at all, are only known then.
 *
 * Which tokens count as targets: of ids, those that the mask names (all without one); of a prompt and a completion,
 * those of the completion; of a conversation, what the assistant says, with the token that ends its turn, or what
 * chat_template_learn() has chosen. An EOD that is added counts, except after a conversation; a BOS that is added does
 * not.
 */
#ifndef TOKMAP_ENCODE_DOCUMENT_ENCODE_H
#define TOKMAP_ENCODE_DOCUMENT_ENCODE_H

#include "chat/chat.h"
#include "corpus/corpus.h"
#include "engine/tokenizer.h"
#include "fim.h"
#include "histogram.h"
#include "split.h"

/* Reasons for a document that is left out because of its length in tokens. */
#define DOCUMENT_SHORT "the document has too few tokens"
#define DOCUMENT_LONG "the document has too many tokens"

struct document_rules {
    const struct corpus_options *corpus; /* content: what a document is */
    const struct tokenizer *tokenizer;   /* NULL: the documents are ids, and none is known */
    const struct chat_template *chat;    /* for conversations */
    uint32_t width;                      /* of an id in bytes: 2 or 4 */
    uint32_t ids_per_byte_most;          /* of the tokenizer */
    uint64_t eod_id, bos_id;             /* or TOKMAP_NO_ID */
    const struct split *split;           /* into sets; NULL: there is one */
    const struct fim *fim;               /* of texts; NULL: none is rearranged */
    uint64_t min_tokens, max_tokens;     /* of a document without BOS and EOD; documents outside are left out */
};

/* State of one thread. Begins as zero bytes. */
struct document_encoder {
    const struct document_rules *rules;
    struct tokenizer_state *state; /* NULL if there is no tokenizer */
    struct histogram *lengths;     /* of the documents, with BOS and EOD; NULL: not counted */
    struct chat_text chat;
    struct bytes_buffer counted, scratch; /* counted: has room for a byte for each token of a document */
};
void document_encoder_free(struct document_encoder *encoder); /* not what its first three fields point to */

/* The tokens of a batch. Begins as zero bytes, and is used again for other batches. */
struct document_tokens {
    struct bytes_buffer tokens;     /* `count` ids of rules->width bytes */
    struct bytes_buffer ends;       /* u64 of each document of the batch, in tokens */
    struct bytes_buffer text_bytes; /* u64: of the text of each document; of ids, 0 */
    struct bytes_buffer mask;       /* bit i mod 8 of byte i / 8: token i counts. Set if document_is_masked() */
    struct bytes_buffer sets;       /* u8: the set of each document of the batch, with a split */
    uint64_t count, largest;
    uint64_t counted;                     /* tokens that count, if there is a mask */
    uint64_t untaught;                    /* conversations in which no token counts */
    struct chat_counts roles[CHAT_ROLES]; /* of the conversations */
    struct fim_counts fim;
    uint64_t eod_added, bos_added;     /* tokens that were added */
    uint64_t eod_present, bos_present; /* documents of ids that had the token already, so none was added */
};
void document_tokens_free(struct document_tokens *tokens);
/* Frees large memory, which one large document needed. */
void document_tokens_trim(struct document_tokens *tokens);

/* Returns true if the shard has a mask. */
bool document_is_masked(const struct corpus_options *corpus);

/* Encodes the documents of a batch. Documents that are left out are removed from the batch and become issues, which are
 * then in the order of the input; the counts of the batch are corrected. Statuses: OK (also with issues), those of
 * tokenizer_encode(), ERROR_MEMORY. */
enum tokmap_status documents_encode(struct document_encoder *encoder, struct corpus_batch *batch,
                                    struct document_tokens *tokens, struct tokmap_error *error);

#endif
