/* SPDX-License-Identifier: MIT */
/* about_facts.h - what the about section of an index says that decides how a shard may be used. */
#ifndef TOKMAP_FORMAT_ABOUT_FACTS_H
#define TOKMAP_FORMAT_ABOUT_FACTS_H

#include "index_reader.h"

/* Empty texts: the section does not say it. */
struct about_facts {
    char tokenizer[64]; /* the tokenizer's name */
    char set[64];       /* of a split: the name of the shard's set */
    uint64_t sets;      /* of a split: a hash of the names of its sets; otherwise 0 */
};

/* Reads them. What an index does not have, or has only damaged, is empty: `tokmap verify` reports the damage. */
void about_facts_read(const struct index *index, struct about_facts *facts);

#endif
