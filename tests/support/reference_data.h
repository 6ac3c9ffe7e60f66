/* reference_data.h - vocabularies and the ids that the reference tokenizers gave, where this machine has them. */
#ifndef TOKMAP_TESTS_REFERENCE_DATA_H
#define TOKMAP_TESTS_REFERENCE_DATA_H

#include <stddef.h>
#include <stdint.h>

/* The folder with vocab/, golden/ and corpus/: $TOKMAP_DATA, else what ../shared/data holds packed, unpacked under the
 * build folder once. NULL, having said why, if neither is there. */
const char *reference_data(void);
/* A file's content with a zero behind it, to be freed; NULL if it cannot be read. */
char *reference_read(const char *path, size_t *bytes);

/* SHA-256 as 64 hexadecimal digits and a zero. */
void sha256_hex(const void *bytes, size_t count, char into[65]);

/* A line {"text":"...","ids":[...]}: the text as UTF-8 (a lone surrogate is U+FFFD), the ids. Both to be freed. Returns 0
 * if the line is no such object or its ids are null. */
int golden_line(const char *line, char **text, size_t *text_bytes, uint32_t **ids, size_t *id_count);

#endif
