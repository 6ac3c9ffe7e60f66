/* pack_records.h - documents as JSONL through `tokmap pack` with a vocabulary, as a process, synced to storage. */
#ifndef TOKMAP_BENCH_PEERS_PACK_RECORDS_H
#define TOKMAP_BENCH_PEERS_PACK_RECORDS_H

#include "peers.h"

struct pack_records {
    char path[BENCH_PATH];
    uint64_t text_bytes;
    struct series rate, peak; /* MB/s of text, MiB */
};

/* Writes the JSONL file. CLI_DONE, or CLI_FAILED after a message; the next alike. */
int pack_records_open(struct bench *bench, struct pack_records *records, const struct encoded_text *text);
/* One run with two threads, by a copy of this program. */
int pack_records_turn(struct bench *bench, struct pack_records *records, bool counts);
/* The copy: a process's peak is not below what its parent held when it started it, so the parent must hold little. The
 * records are bench->options.dataset. */
int pack_records_child(struct bench *bench);

/* Puts --pattern and --special-tokens behind `count` arguments, as they were given; the new count. */
size_t tokenizer_arguments_put(const struct bench *bench, const char **arguments, size_t count);

#endif
