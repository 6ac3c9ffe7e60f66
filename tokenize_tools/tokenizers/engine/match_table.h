/* SPDX-License-Identifier: MIT */
/*
 * match_table.h - searches a text for the leftmost of many texts, and of several that begin there for the longest.
 *
 * The work of a search is linear in the text, whatever the texts are; the memory of a table is linear in the number of
 * texts, plus 13 bytes for each byte of texts longer than MATCH_WALK bytes.
 */
#ifndef TOKMAP_ENGINE_MATCH_TABLE_H
#define TOKMAP_ENGINE_MATCH_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tokmap/tokmap.h"

#define MATCH_WALK 64u                      /* bytes of a text that are compared at a place */
#define MATCH_LONG_MOST (UINT64_C(1) << 20) /* bytes of all texts that have more than MATCH_WALK bytes */
#define MATCH_NONE SIZE_MAX

struct match_text {
    const uint8_t *bytes;
    uint32_t count; /* at least 1 */
};

struct match_table; /* immutable; shared by threads */

/* Compares two texts by their bytes; of two that begin alike, the shorter one is first. Returns less than 0, 0, or more
 * than 0. */
int match_text_compare(const struct match_text *one, const struct match_text *other);

/* Makes a table of `count` texts, at least 1, sorted by match_text_compare, of which no two are equal. The array and
 * the bytes of the texts must outlive the table. `path` is for messages and may be NULL. On failure *table is NULL.
 * Statuses: OK, ERROR_LIMIT (see MATCH_LONG_MOST), ERROR_MEMORY. */
enum tokmap_status match_table_new(struct match_table **table, const struct match_text *texts, size_t count,
                                   const char *path, struct tokmap_error *error);
void match_table_free(struct match_table *table); /* accepts NULL */
/* Returns a text of the table by its index. */
const struct match_text *match_table_text(const struct match_table *table, size_t index);

/* A search of one text. */
struct match_search {
    const struct match_table *table;
    const uint8_t *text;
    size_t count;
    uint32_t *found; /* of places [found_from, found_to): 1 + the long text that begins there, or 0 */
    size_t found_from, found_to;
    uint64_t steps;    /* work so far: bytes that were compared */
    bool lacks_memory; /* so the search has ended early */
};

/* Starts a search of `count` bytes, which must stay until match_search_end(). */
void match_search_begin(struct match_search *search, const struct match_table *table, const uint8_t *text,
                        size_t count);
/* Returns the index of the next text that begins at *at or after it, and sets *at to where it begins; or MATCH_NONE.
 * *at must not decrease from call to call. After MATCH_NONE, look at search->lacks_memory. */
size_t match_search_next(struct match_search *search, size_t *at);
/* Frees the memory of a search. */
void match_search_end(struct match_search *search);

#endif
