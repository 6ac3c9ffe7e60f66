/* SPDX-License-Identifier: MIT */
/*
 * pack_facts.h - all options on which the bytes of packed shards depend, as facts of work_folder.h.
 *
 * The values of these facts are written with escapes: the separator of a zero byte and a newline is "\x00\n". If
 * you change how a value is written, change the numbers of both layouts, in pack_journal.c and in unit_record.c.
 */
#ifndef TOKMAP_PACK_PACK_FACTS_H
#define TOKMAP_PACK_PACK_FACTS_H

#include "packing_options.h"
#include "work/work_folder.h"

#define PACK_FACTS_MOST 49

struct pack_facts {
    struct work_fact list[PACK_FACTS_MOST];
    size_t count;
    bool lost; /* true if there was not enough memory */
};

/* Makes the facts. `layout` is a number that changes with the format of the journal's records. Returns false without
 * memory. pack_facts_free() frees them in any case. */
bool pack_facts_make(struct pack_facts *facts, const struct pack_options *options, uint64_t layout);
void pack_facts_free(struct pack_facts *facts);

/* Returns how the inputs are read, as far as it decides which documents they have and which numbers, such as
 * "--input-format auto, kind of content text, --field text". drop: what is left out follows, after a semicolon; or
 * NULL. The caller frees the text. NULL: no memory. */
char *pack_reading(const struct corpus_options *corpus, const struct drop_options *drop);

#endif
