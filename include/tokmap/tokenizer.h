/* SPDX-License-Identifier: MIT */
/*
 * tokenizer.h - text to token ids and back, with every vocabulary that the command tokmap reads
 *
 * This header belongs to a library of its own, libtokmap_tokenize, so that programs that only read datasets do not load
 * it. Statuses and errors are those of libtokmap: a program that uses tokenizers links both, with
 * `pkg-config --cflags --libs tokmap-tokenize`.
 *
 * The ids of a text, and the text of ids, are those of the vocabulary's reference implementation: tiktoken for rank
 * files, Hugging Face tokenizers for a tokenizer.json, SentencePiece for its models. A vocabulary for which that cannot
 * be done is refused when it is opened.
 *
 * @code
 *     struct tokmap_error e = {0};
 *     struct tokmap_tokenizer *tokenizer = NULL;
 *     if (tokmap_tokenizer_open(&tokenizer, "vocab/gpt2", NULL, &e))
 *         fatal(&e);
 *     static uint32_t ids[4096];                      // the program's own memory
 *     struct tokmap_encoded encoded = TOKMAP_ENCODED_INIT;
 *     encoded.ids = ids;
 *     encoded.room = 4096;
 *     if (tokmap_tokenizer_encode(tokenizer, "Hello world", 11, &encoded, &e))
 *         fatal(&e);                                  // TOKMAP_ERROR_LIMIT: encoded.count is the room that it needs
 *     static char text[65536];
 *     struct tokmap_decoded decoded = TOKMAP_DECODED_INIT;
 *     decoded.text = text;
 *     decoded.room = sizeof text;
 *     if (tokmap_tokenizer_decode(tokenizer, ids, encoded.count, &decoded, &e))
 *         fatal(&e);
 *     printf("%" PRIu64 " ids: %.*s\n", encoded.count, (int)decoded.bytes, text);
 *     tokmap_tokenizer_close(tokenizer);
 * @endcode
 *
 * The rules for all functions in tokmap.h hold here, too: statuses, errors, structs with a size, and what misuse does.
 * A tokenizer is immutable: any number of threads may use it at the same time, and so may a child after fork(). No
 * other thread may use a tokenizer that is being closed.
 */
#ifndef TOKMAP_TOKENIZER_H
#define TOKMAP_TOKENIZER_H

#include <stddef.h>
#include <stdint.h>

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An open tokenizer. */
struct tokmap_tokenizer;

/* What becomes of text that reads like a special token, such as "<|endoftext|>". Added tokens that are not special are
 * always found. The policy is part of the fingerprint, because it decides ids. */
enum tokmap_special {
    TOKMAP_SPECIAL_TEXT = 0,      /* it is encoded like any other text */
    TOKMAP_SPECIAL_RECOGNIZE = 1, /* it becomes the token */
    TOKMAP_SPECIAL_ERROR = 2      /* encoding fails with ERROR_INPUT */
};

struct tokmap_tokenizer_options {
    size_t size;
    enum tokmap_special special; /* default: TOKMAP_SPECIAL_TEXT */
    const char *pattern;         /* for a rank file that is not well known: the name of the pattern that splits text,
                                    such as "cl100k_base"; NULL: that of the known file */
    const char *pattern_regex;   /* for a rank file: the pattern itself, in tiktoken's syntax, or NULL */
    const char *special_tokens;  /* for a rank file: path of a JSON object that maps the texts of special tokens to ids,
                                    or NULL */
    uint32_t cache;              /* has no effect; default: 0 */
    const char *cut_as;          /* "kimi", "llama3", or "llama4": cut long texts as the code of this model does, which
                                    changes ids next to the cuts; NULL: encode each text as a whole (the default) */
    const char *lower_case;      /* for a vocab.txt without a tokenizer_config.json, which needs it: "yes" (text is made
                                    lower case and loses its accents) or "no"; NULL for every other vocabulary */
};
#define TOKMAP_TOKENIZER_OPTIONS_INIT                                                                                  \
    {                                                                                                                  \
        sizeof(struct tokmap_tokenizer_options), TOKMAP_SPECIAL_TEXT, NULL, NULL, NULL, 0, NULL, NULL                  \
    }

/* Opens a tokenizer.
 *   tokenizer  receives the handle, NULL on failure
 *   path       a tokenizer.json, a tekken.json, a vocab.bpe beside its encoder.json, a rank file (.tiktoken), a
 *              SentencePiece .model, BERT's vocab.txt, CLIP's bpe_simple_vocab_16e6.txt.gz, RWKV's vocabulary, a
 *              model's folder, or "bytes", the built-in tokenizer: ids 0 to 255 are bytes, and 256 ends a document. Of
 *              a folder the first vocabulary in the list of tokmap-tokenizer(1) counts, and the files beside it name
 *              the tokens that end and begin documents (tokenizer_config.json and others); info.note says where they
 *              contradict each other
 *   options    NULL: the defaults. Its texts must last only during the call
 * A file that is compressed (.gz, .zst, ...) is decompressed in memory, to at most 256 MiB, which then are its size.
 * The call takes at most 4 times the size of the file in memory, and 128 MiB more, and time that is linear in the size.
 * What a file may hold is limited, so that no file, hostile or not, can use more; ERROR_LIMIT names the limit: 1 GiB
 * for a file; 2,097,152 ids; 4,194,303 merges or, for SentencePiece, pairs of pieces that make a piece; 65,535 bytes
 * for a token of a JSON file, and 2,048 bytes for a token of a Unigram model or a SentencePiece piece that merges make;
 * 1,048,576 lines of a vocab.txt; 4,194,304 nodes of the trie of the tokens of WordPiece and WordLevel;
 * 1,048,576 added tokens, of which those of more than 64 bytes have 1 MiB together; 8 MiB for each file of a folder
 * beside its vocabulary; and, if a normalizer changes the added tokens, half of the file's size and 4 MiB for what it
 * makes of them.
 *
 * Any thread may call it. Where there are several processors, up to four threads share the work for a large file; they
 * have ended when the call returns, and the result does not depend on them. Statuses: OK, ERROR_NOT_FOUND,
 * ERROR_FORMAT (the file is damaged), ERROR_UNSUPPORTED (its ids cannot be reproduced; the message names the field),
 * ERROR_ARGUMENT (an option that this vocabulary does not have, or one that a rank file needs), ERROR_LIMIT,
 * ERROR_TRUNCATED, ERROR_IO, ERROR_MEMORY. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_tokenizer_open(struct tokmap_tokenizer **tokenizer,
                                                                      const char *path,
                                                                      const struct tokmap_tokenizer_options *options,
                                                                      struct tokmap_error *error);

/* Opens the vocabulary of an open tokenizer with another policy for special tokens. It takes little time and memory,
 * because both handles share the vocabulary. Either of them may be closed first; their fingerprints may differ.
 *   shared   receives the handle, NULL on failure
 *   special  the policy
 * Any thread may call it. Statuses: OK, ERROR_ARGUMENT (this vocabulary has no other policy), ERROR_MEMORY. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_tokenizer_share(struct tokmap_tokenizer **shared,
                                                                       struct tokmap_tokenizer *tokenizer,
                                                                       enum tokmap_special special,
                                                                       struct tokmap_error *error);

/* Closes a tokenizer. NULL is allowed. No other thread may use it. Cannot fail. */
TOKMAP_API void tokmap_tokenizer_close(struct tokmap_tokenizer *tokenizer);

/* What a tokenizer is. The texts are valid until it is closed. */
struct tokmap_tokenizer_info {
    size_t size;
    const char *name;        /* a name that people know, such as "gpt2", where the vocabulary is a well-known one; that
                                of its folder or file otherwise */
    const char *form;        /* the file format, for example "tokenizer.json" */
    const char *scanner;     /* pattern and method, for example "cl100k_base, AVX-512" */
    const char *note;        /* a sentence that users should read, such as about an ignored field, or files of a
                                folder that contradict each other; or NULL */
    uint64_t vocabulary;     /* number of ids, special tokens included; every id is below it */
    uint64_t eod_id;         /* the id that ends a document, or TOKMAP_NO_ID */
    uint64_t bos_id;         /* the id that begins a document, or TOKMAP_NO_ID */
    uint64_t added;          /* number of added tokens, special or not */
    uint64_t specials;       /* the number of special ones among them */
    uint8_t fingerprint[16]; /* of everything that decides ids; struct tokmap_dataset_info has that of its tokenizer */
};
#define TOKMAP_TOKENIZER_INFO_INIT TOKMAP_SIZED(struct tokmap_tokenizer_info)

/* Fills *info. Any thread may call it. Statuses: OK. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_tokenizer_info(const struct tokmap_tokenizer *tokenizer,
                                                                      struct tokmap_tokenizer_info *info);

/* Where the ids of a text go. The caller sets the members before `count`, and those after it if it wants them.
 *
 * Offsets are bytes of the text that was passed in, whatever the vocabulary's normalizer changes: token i is the bytes
 * from begins[i] up to, not including, ends[i]. Both ascend. A token that holds a part of a character begins or ends
 * inside the character. Tokens that share what normalizing made of one character overlap. A token that stands for
 * nothing in the text, such as a space that the vocabulary puts before it, is empty. Between ends[i] and begins[i + 1]
 * is what the vocabulary dropped. Offsets cost a second pass over the text, which does not merge.
 *
 * For a tokenizer.json, Hugging Face tokenizers (0.23.3) finds the same places, in characters, with these exceptions:
 * - What is put into the text is empty. There it has the place of the character beside it.
 * - What several characters became has the place of all of them. There it has the place of one of them.
 * - Each byte of a character has its own place. There it has the place of the character or, with a Unigram model, of
 *   all unknown characters in a row.
 * - An added token that takes the spaces after it (rstrip) ends where another added token is found in them. There the
 *   places of both overlap.
 * - The trim_offsets of a post-processor changes nothing. There it takes spaces off the places.
 * - Characters that BPE without unk_token leaves out are counted. There they are not, so the places of the tokens after
 *   them in the word are too small. Places after changes of a Precompiled normalizer can be wrong there, too.
 * SentencePiece (0.2.3) finds the same places, with these exceptions: the last byte of a character has the place of the
 * character there, and the first of several spaces that become one has the place of all of them. */
struct tokmap_encoded {
    size_t size;
    void *ids;                /* the caller's memory; NULL: ids are only counted */
    uint64_t room;            /* number of ids that it has room for, and so have `begins` and `ends` */
    uint64_t count;           /* result: number of ids of the text */
    enum tokmap_id_type type; /* of `ids`; default: TOKMAP_ID_U32 */
    uint64_t *begins, *ends;  /* the caller's memory for the offsets of tokens, or NULL (the default) */
};
#define TOKMAP_ENCODED_INIT TOKMAP_SIZED(struct tokmap_encoded)

/* Encodes one document. No token is added to those of the text: a caller that wants an EOD appends info.eod_id.
 *   text     `bytes` bytes of UTF-8, which may contain zeros; NULL only if `bytes` is 0
 *   encoded  if the text has more ids than there is room for, the status is ERROR_LIMIT, the first `room` ids are
 *            written, and `count` is the number of all. A byte rarely becomes more than one id
 * A text needs little working memory however long it is, but some five times its size with a vocabulary that cannot
 * be cut: one of Unigram, or one whose text is split or normalized step by step, as CLIP's is. Any thread may call it.
 * Statuses: OK, ERROR_LIMIT (also: a split pattern that PCRE2 matches needs more than 10^9 steps and 64 for each byte
 * in all matches of the text together, or 10^7 and 16 for each byte in one of them; a step takes 1 to 10 ns; the
 * message names the pattern and the place), ERROR_ENCODING (the text is not UTF-8; error->offset is the first wrong
 * byte), ERROR_INPUT (it contains the text of a special token, with TOKMAP_SPECIAL_ERROR), ERROR_ARGUMENT (encoded.type
 * cannot hold the ids of this vocabulary), ERROR_MEMORY. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_tokenizer_encode(const struct tokmap_tokenizer *tokenizer,
                                                                        const char *text, uint64_t bytes,
                                                                        struct tokmap_encoded *encoded,
                                                                        struct tokmap_error *error);

/* ---- batches ---- */

/* A text. */
struct tokmap_text {
    const char *bytes; /* UTF-8; NULL only if `count` is 0 */
    uint64_t count;    /* in bytes */
};

/* The texts of a batch: in an array of pointers, or as Apache Arrow stores them. The caller sets `count` and one of
 * `texts`, `offsets32`, `offsets64`, and `views`. Everything must stay unchanged during the call. */
struct tokmap_texts {
    size_t size;
    uint64_t count;                   /* number of texts */
    const struct tokmap_text *texts;  /* `count` of them */
    const char *data;                 /* with offsets: text i is data[offsets[i]..offsets[i + 1]) */
    const int32_t *offsets32;         /* Arrow's utf8 and binary: count + 1 offsets, ascending */
    const int64_t *offsets64;         /* Arrow's large_utf8 and large_binary */
    const void *views;                /* Arrow's utf8_view and binary_view: 16 bytes each */
    const void *const *view_buffers;  /* the variadic buffers that views point into */
    const int64_t *view_buffer_bytes; /* their sizes */
    uint64_t view_buffer_count;
};
#define TOKMAP_TEXTS_INIT TOKMAP_SIZED(struct tokmap_texts)

struct tokmap_encode_options {
    size_t size;
    uint32_t threads;    /* that encode, the calling one among them; 0: one for each processor. Default: 1 */
    uint32_t keep_going; /* 1: a text that cannot be encoded gets no ids but a status, and the others are encoded; 0:
                           the batch fails with the error of the first such text (the default) */
    uint32_t offsets;    /* 1: offsets of tokens are wanted, as in struct tokmap_encoded; default: 0 */
    uint64_t bos_id;     /* an id to put before each text; default: TOKMAP_NO_ID */
    uint64_t eod_id;     /* an id to put after each text; default: TOKMAP_NO_ID */
};
#define TOKMAP_ENCODE_OPTIONS_INIT                                                                                     \
    {                                                                                                                  \
        sizeof(struct tokmap_encode_options), 1, 0, 0, TOKMAP_NO_ID, TOKMAP_NO_ID                                      \
    }

/* The ids of encoded texts, or the texts of decoded ids, until the caller copies them to its own memory. It is
 * immutable: any number of threads may read it. It stays valid when its tokenizer is closed. */
struct tokmap_tokenizer_batch;

/* Encodes texts on several threads. How many ids there are is known only afterwards, so the function keeps them, as
 * compactly as a shard does, and tokmap_tokenizer_batch_read() copies them to memory of the right size.
 *
 * @code
 *     struct tokmap_error e = {0};
 *     struct tokmap_text some[2] = {{"Hello", 5}, {"world", 5}};
 *     struct tokmap_texts texts = TOKMAP_TEXTS_INIT;
 *     texts.count = 2;
 *     texts.texts = some;
 *     struct tokmap_encode_options options = TOKMAP_ENCODE_OPTIONS_INIT;
 *     options.threads = 8;
 *     struct tokmap_tokenizer_batch *batch;
 *     if (tokmap_tokenizer_encode_batch(tokenizer, &texts, &options, &batch, &e))
 *         fatal(&e);
 *     struct tokmap_tokenizer_batch_info info = TOKMAP_TOKENIZER_BATCH_INFO_INIT;
 *     if (tokmap_tokenizer_batch_info(batch, &info))
 *         abort();
 *     struct tokmap_tokenizer_batch_out out = TOKMAP_TOKENIZER_BATCH_OUT_INIT;
 *     out.ids = malloc(info.ids * sizeof(uint32_t));
 *     out.document_ends = malloc(info.documents * sizeof(uint64_t));
 *     if (tokmap_tokenizer_batch_read(batch, &out, &e))
 *         fatal(&e);
 *     tokmap_tokenizer_batch_close(batch);
 * @endcode
 *
 * The result is the same with any number of threads. The threads end before the function returns; they have all
 * signals blocked.
 *   options  NULL: the defaults
 *   batch    receives the handle, NULL on failure
 * Any thread may call it. Statuses: OK, ERROR_ENCODING, ERROR_INPUT, and ERROR_LIMIT as in tokmap_tokenizer_encode(),
 * with the number of the text in the message; ERROR_ARGUMENT (also: offsets that descend, or a view outside of its
 * buffer), ERROR_MEMORY. With keep_going the first three are statuses of texts. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status
tokmap_tokenizer_encode_batch(const struct tokmap_tokenizer *tokenizer, const struct tokmap_texts *texts,
                              const struct tokmap_encode_options *options, struct tokmap_tokenizer_batch **batch,
                              struct tokmap_error *error);

/* The ids of several documents, one after the other. */
struct tokmap_ids {
    size_t size;
    uint64_t count;           /* number of documents */
    const void *ids;          /* the ids of all documents; NULL only without ids */
    enum tokmap_id_type type; /* of `ids` */
    const uint64_t *ends;     /* `count`, ascending: where each document ends, counted in ids */
};
#define TOKMAP_IDS_INIT TOKMAP_SIZED(struct tokmap_ids)

struct tokmap_decode_options {
    size_t size;
    uint32_t threads;  /* as in struct tokmap_encode_options; default: 1 */
    uint32_t specials; /* as in struct tokmap_decoded; default: 0 */
    uint32_t resumed;  /* as in struct tokmap_decoded, for all documents; default: 0 */
};
#define TOKMAP_DECODE_OPTIONS_INIT                                                                                     \
    {                                                                                                                  \
        sizeof(struct tokmap_decode_options), 1, 0, 0                                                                  \
    }

/* Decodes the ids of several documents on several threads; the texts are read with tokmap_tokenizer_batch_read().
 *   options  NULL: the defaults
 *   batch    receives the handle, NULL on failure
 * Any thread may call it. Statuses: OK, those of tokmap_tokenizer_decode(), with the number of the document in the
 * message, ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status
tokmap_tokenizer_decode_batch(const struct tokmap_tokenizer *tokenizer, const struct tokmap_ids *ids,
                              const struct tokmap_decode_options *options, struct tokmap_tokenizer_batch **batch,
                              struct tokmap_error *error);

struct tokmap_tokenizer_batch_info {
    size_t size;
    uint64_t documents; /* number of texts */
    uint64_t ids;       /* number of ids, added ones included; 0 after decoding */
    uint64_t bytes;     /* number of bytes of the decoded texts; 0 after encoding */
    uint64_t failed;    /* number of texts that could not be encoded, with keep_going */
    uint64_t largest;   /* the largest id; 0 without ids */
};
#define TOKMAP_TOKENIZER_BATCH_INFO_INIT TOKMAP_SIZED(struct tokmap_tokenizer_batch_info)

/* Fills *info. Any thread may call it. Statuses: OK. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_tokenizer_batch_info(const struct tokmap_tokenizer_batch *batch,
                                                                            struct tokmap_tokenizer_batch_info *info);

/* Where the results of a batch go. The caller sets the members that it wants; NULL: it does not want them. */
struct tokmap_tokenizer_batch_out {
    size_t size;
    void *ids;                /* info.ids of them, the texts one after the other */
    enum tokmap_id_type type; /* of `ids` */
    char *text;               /* info.bytes: the decoded texts, one after the other */
    uint64_t *document_ends;  /* info.documents: where each text ends in `ids` or `text` */
    uint64_t *begins, *ends;  /* info.ids: the offsets of tokens, if options.offsets asked for them. An id that was
                                 added is empty, at the begin or the end of its text */
    int32_t *statuses;        /* info.documents: enum tokmap_status of each text */
};
#define TOKMAP_TOKENIZER_BATCH_OUT_INIT TOKMAP_SIZED(struct tokmap_tokenizer_batch_out)

/* Copies results to the caller's memory, which must be large enough. It may be called again. Any thread may call it.
 * Statuses: OK, ERROR_ARGUMENT (out.type cannot hold the largest id, or offsets were not asked for). */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status
tokmap_tokenizer_batch_read(const struct tokmap_tokenizer_batch *batch, const struct tokmap_tokenizer_batch_out *out,
                            struct tokmap_error *error);

/* Frees a batch. NULL is allowed. No other thread may use it. Cannot fail. */
TOKMAP_API void tokmap_tokenizer_batch_close(struct tokmap_tokenizer_batch *batch);

/* ---- decoding ---- */

/* Where the text of ids goes. The caller sets all members but the last one. */
struct tokmap_decoded {
    size_t size;
    char *text;        /* the caller's memory; NULL: bytes are only counted. The text is not terminated by a zero */
    uint64_t room;     /* in bytes */
    uint32_t specials; /* 1: special tokens become their names; 0: they become nothing (the default) */
    uint32_t resumed;  /* 1: the ids continue a document, so a space that encoding puts before a document, and that
                          decoding takes off, is not expected at their front; 0: they begin one (the default) */
    uint64_t bytes;    /* result: number of bytes of the text */
};
#define TOKMAP_DECODED_INIT TOKMAP_SIZED(struct tokmap_decoded)

/* Decodes the ids of one document, or of a part of it, as the vocabulary's reference does. The text is UTF-8: what is
 * not, such as half of a character at an end, becomes U+FFFD; only the tokenizer "bytes" returns bytes as they are.
 *   ids      `count` ids; NULL only if `count` is 0
 *   decoded  if the text has more bytes than there is room for, the status is ERROR_LIMIT, the first `room` bytes are
 *            written, and `bytes` is the number of all
 * Any thread may call it. Statuses: OK, ERROR_LIMIT, ERROR_TOKEN (an id is not in the vocabulary; the message has its
 * position), ERROR_UNSUPPORTED (the file asks for a way to decode that cannot be reproduced), ERROR_MEMORY. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_tokenizer_decode(const struct tokmap_tokenizer *tokenizer,
                                                                        const uint32_t *ids, uint64_t count,
                                                                        struct tokmap_decoded *decoded,
                                                                        struct tokmap_error *error);

/* Finds the bytes that one id stands for: of a special token its name, of any other token the bytes of text that become
 * it, which need not be UTF-8.
 *   bytes, count  receive the bytes and their number. They are valid until the tokenizer is closed
 * Any thread may call it. Statuses: OK, ERROR_TOKEN (the id is not in the vocabulary). */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_tokenizer_token(const struct tokmap_tokenizer *tokenizer,
                                                                       uint64_t id, const char **bytes, uint64_t *count,
                                                                       struct tokmap_error *error);

/* Finds the id of a token by its bytes, the inverse of tokmap_tokenizer_token(). Where an added token has these bytes,
 * its id is found. Where several other tokens have them, the largest id is found: in vocabularies like SentencePiece's
 * the tokens of single bytes come first, and text becomes the others.
 *   bytes  of which there are `count`
 *   id     receives the id
 * The vocabulary is searched from end to end, which takes about a millisecond. Any thread may call it. Statuses: OK,
 * ERROR_NOT_FOUND (no token has these bytes). */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_tokenizer_find(const struct tokmap_tokenizer *tokenizer,
                                                                      const char *bytes, uint64_t count, uint64_t *id,
                                                                      struct tokmap_error *error);

/* An added token: one that is looked for in text before anything else is. */
struct tokmap_added_token {
    size_t size;
    const char *text; /* not terminated by a zero; valid until the tokenizer is closed */
    uint64_t bytes;
    uint64_t id;
    uint32_t special; /* 1: found as options.special says; 0: always found */
    uint32_t flags;   /* the sum of 1: with the spaces before it; 2: with those after it; 4: only as a whole word */
};
#define TOKMAP_ADDED_TOKEN_INIT TOKMAP_SIZED(struct tokmap_added_token)

/* Describes an added token.
 *   index  less than info.added; the order is that of the ids
 * Any thread may call it. Statuses: OK, ERROR_RANGE (there are not so many). */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_tokenizer_added(const struct tokmap_tokenizer *tokenizer,
                                                                       uint64_t index, struct tokmap_added_token *token,
                                                                       struct tokmap_error *error);

/* Returns the version of the running library, which should be TOKMAP_VERSION_STRING. The text is static. Any thread may
 * call it. Cannot fail. */
TOKMAP_API const char *tokmap_tokenizer_version(void);

#ifdef __cplusplus
}
#endif

#endif
