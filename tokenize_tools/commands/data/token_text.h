/* token_text.h - the text of one token, as people read it. */
#ifndef TOKMAP_COMMANDS_DATA_TOKEN_TEXT_H
#define TOKMAP_COMMANDS_DATA_TOKEN_TEXT_H

#include <stdint.h>
#include <stdio.h>

/* Writes the text of a token in quotes. What a terminal does not show as itself is escaped: control characters, and
 * bytes that are not UTF-8, such as parts of a character. */
void token_quoted(const uint8_t *bytes, uint32_t count, FILE *file);

#endif
