/* SPDX-License-Identifier: MIT */
/*
 * index_pages.h - the bytes of an index that is read with pread instead of through a mapping, so that a file that is
 * cut under an open dataset, or that its storage loses, is a status and never a signal.
 *
 * Two ways to read, for two kinds of bytes:
 *   index_pages_need()  keeps what it reads, in memory that looks like the whole file, so callers can use pointers into
 *                       it. For what is returned as a pointer, or is small: about, origins, columns, block hashes.
 *   index_pages_read()  keeps nothing. For the ends of documents, of which a shard can have gigabytes.
 *
 * Any thread may call these functions, and a child after fork() too: no thread waits for another one's read.
 */
#ifndef TOKMAP_FORMAT_INDEX_PAGES_H
#define TOKMAP_FORMAT_INDEX_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct index_pages;

/* Makes the pages of a file of `bytes` bytes (at least 1), of which none is read yet. searched: the number of values
 * among which a binary search looks, of which the first steps are kept (see index_pages_step()). With success, the
 * pages own the descriptor. Returns 0 or an errno. */
int index_pages_open(struct index_pages **pages, int fd, uint64_t bytes, uint64_t searched);
void index_pages_close(struct index_pages *pages); /* accepts NULL */

/* Returns where the file's bytes appear. Only bytes that index_pages_need() has read may be used. */
const uint8_t *index_pages_bytes(const struct index_pages *pages);

/* Makes bytes [at, at + bytes) of the file present; they stay so. Returns 0, an errno, or ENODATA if the file has
 * become shorter. */
int index_pages_need(struct index_pages *pages, uint64_t at, uint64_t bytes);

/* Reads bytes [at, at + bytes) of the file into `into`. Returns as index_pages_need() does. */
int index_pages_read(const struct index_pages *pages, uint64_t at, void *into, size_t bytes);

/* Asks the storage to read bytes [at, at + bytes) of the file ahead. A hint. */
void index_pages_ask(const struct index_pages *pages, uint64_t at, uint64_t bytes);

/* Maps the whole file; os_unmap() ends that. Returns 0 or an errno. */
int index_pages_map(const struct index_pages *pages, const uint8_t **bytes);

/* Looks a step of a search up. The first steps of a binary search among `searched` values meet the same few values
 * again and again. These functions keep them: a value of 32 bits for its number, in a table of a fixed size, which
 * forgets a value when another one needs its place. index_pages_step() returns false if the value is not kept. */
bool index_pages_step(const struct index_pages *pages, uint64_t number, uint32_t *value);
void index_pages_keep(struct index_pages *pages, uint64_t number, uint32_t value);

#endif
