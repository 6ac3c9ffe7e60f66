/* SPDX-License-Identifier: MIT */
/*
 * peers.h - other tokenizers in the case `tokenize`.
 *
 * A repeat of a peer is a new process of a Python that the user provides. It runs bench/peers/encode.py, which encodes
 * the same text. The ids of each peer are compared with ours once.
 */
#ifndef TOKMAP_BENCH_PEERS_PEERS_H
#define TOKMAP_BENCH_PEERS_PEERS_H

#include "harness/bench_text.h"

#define PEERS_MOST 6
/* With a new state and again with the same state: of the whole text, and of its documents. */
enum peer_rate { PEER_COLD, PEER_WARM, PEER_DOC_COLD, PEER_DOC_WARM, PEER_RATES };

struct peer {
    const char *name;
    uint64_t bytes;                  /* of the text that it gets; slow peers do not get all of it */
    uint64_t documents;              /* number of documents in these bytes */
    struct series rate[PEER_RATES];  /* MB/s */
    struct series ratio[PEER_RATES]; /* our rate divided by the peer's, repeat by repeat */
    bool equal[2];                   /* the ids are ours: of the whole text, of the documents */
};

struct peers {
    struct peer list[PEERS_MOST];
    uint32_t count;
    char python[BENCH_PATH], script[BENCH_PATH], ids[BENCH_PATH];
    const struct bench_text *text;
    const char *pattern; /* split pattern of a rank file */
};

/* Prepares the peers that --against names; none without that option. *text must stay valid. */
void peers_open(struct bench *bench, struct peers *peers, const struct bench_text *text,
                const struct tokenizer_info *info);

/* Runs each peer once. If counts is false (the first repeat), compares its ids with ours; otherwise adds its rates to
 * the series, and the ratios to the last values of `ours`. */
void peers_repeat(struct bench *bench, struct peers *peers, bool counts, const struct series *const ours[PEER_RATES]);
void peers_results(struct bench *bench, struct peers *peers);

#endif
