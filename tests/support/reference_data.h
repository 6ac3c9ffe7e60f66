/* SPDX-License-Identifier: MIT */
/* reference_data.h - vocabularies, and ids that the reference tokenizers produced, if this machine has them. */
#ifndef TOKMAP_TESTS_REFERENCE_DATA_H
#define TOKMAP_TESTS_REFERENCE_DATA_H

#include <stddef.h>
#include <stdint.h>

/* Returns the folder that contains vocab/, golden/, corpus/, and perhaps vocab2/ and golden2/: $TOKMAP_DATA, or else
 * the archives in ../shared/data, which the first caller unpacks into the build folder. If neither exists, prints the
 * reason and returns NULL. */
const char *reference_data(void);
/* Returns the content of a file, followed by a zero; the caller frees it. NULL if it cannot be read. */
char *reference_read(const char *path, size_t *bytes);

/* Writes the SHA-256 of some bytes as 64 hexadecimal digits and a zero. */
void sha256_hex(const void *bytes, size_t count, char into[65]);

/* Parses a line {"text":"...","ids":[...]}. Returns 1 and sets the text as UTF-8, with U+FFFD for a lone surrogate, and
 * the ids; the caller frees both. Returns 0 if the line is not an object of this form, or if its ids are null. */
int golden_line(const char *line, char **text, size_t *text_bytes, uint32_t **ids, size_t *id_count);

/* The parts of such a line. golden_ids() returns 0 if the member `name` is not there, or is null. The caller frees the
 * results. */
int golden_text(const char *line, char **text, size_t *bytes);
int golden_ids(const char *line, const char *name, uint32_t **ids, size_t *count);

#endif
