/*
 * peers.h - other tokenizers in the turns of case tokenize: each turn of each is a Python of the user's, which encodes
 * the same text (bench/peers/encode.py), and whose ids are compared with ours once.
 */
#ifndef TOKMAP_BENCH_PEERS_PEERS_H
#define TOKMAP_BENCH_PEERS_PEERS_H

#include "tokenizer/tokenizer.h"
#include "harness/harness.h"

struct encoded_text {
    const char *path;
    char *text;
    uint64_t bytes;
    struct tokenizer_text *documents; /* of 4 KB */
    uint64_t document_count;
};

#define PEERS_MOST 4
enum peer_rate { PEER_COLD, PEER_WARM, PEER_DOC_COLD, PEER_DOC_WARM, PEER_RATES };

struct peer {
    const char *name;
    uint64_t bytes;                                    /* of the text that it gets: the slow ones not all */
    uint64_t documents;                                /* that these are */
    struct series rate[PEER_RATES], ratio[PEER_RATES]; /* ours to its, by turns */
    bool equal[2];                                     /* ids: of the whole, of the documents */
};

struct peers {
    struct peer list[PEERS_MOST];
    uint32_t count;
    char python[BENCH_PATH], script[BENCH_PATH], ids[BENCH_PATH];
    const struct encoded_text *text;
    const char *pattern; /* of a rank file */
};

/* Opens the tokenizer of --tokenizer. CLI_DONE, or CLI_FAILED after a message; the next alike. */
int peers_tokenizer(struct bench *bench, struct tokenizer **tokenizer);

/* Who is named in --against. */
int peers_open(struct bench *bench, struct peers *peers, const struct encoded_text *text,
               const struct tokenizer_info *info);

/* Each peer once. The first time (counts false) its ids must be ours. Ratios are to the last values of these. */
int peers_turn(struct bench *bench, struct peers *peers, bool counts, const struct series *const ours[PEER_RATES]);
void peers_results(struct bench *bench, struct peers *peers);

#endif
