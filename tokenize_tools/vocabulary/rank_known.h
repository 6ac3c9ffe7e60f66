/* rank_known.h - rank files known by their content: pattern and special tokens, which the files do not say. */
#ifndef TOKMAP_VOCABULARY_RANK_KNOWN_H
#define TOKMAP_VOCABULARY_RANK_KNOWN_H

#include "rank_file.h"

/* By the XXH3-128 of the file; NULL if it is not known. */
const struct rank_file_known *rank_known_find(const uint8_t fingerprint[16]);

#endif
