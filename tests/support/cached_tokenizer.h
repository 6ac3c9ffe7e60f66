/* cached_tokenizer.h - opens vocabularies with a cache, for tests of the cache. Failures end the test (cmocka). */
#ifndef TOKMAP_TESTS_CACHED_TOKENIZER_H
#define TOKMAP_TESTS_CACHED_TOKENIZER_H

#include <stddef.h>

#include "tokenizer/tokenizer.h"

/* Opens a tokenizer with a cache in `folder`, and fails unless the cache does what is `wanted`. */
struct tokenizer *open_cached(const char *path, const char *folder, struct tokenizer_options options,
                              enum tokenizer_cached wanted);

/* Encodes a text, returns its ids, and checks that all are in the vocabulary. The caller frees them. */
uint32_t *ids_of(const struct tokenizer *tokenizer, const char *text, size_t bytes, uint64_t *count);

/* Fails unless both tokenizers are the same in everything: what describes them, each token, each added token, and, of
 * the text, the ids, the offsets, and the decoded text. */
void same_tokenizer(const struct tokenizer *one, const struct tokenizer *other, const char *text, size_t bytes);

#endif
