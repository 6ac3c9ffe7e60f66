/* SPDX-License-Identifier: MIT */
/* datatrove_writer.h - the text of a .ds.metadata (datatrove.h), as datatrove writes it. */
#ifndef TOKMAP_COMMANDS_CONVERT_DATATROVE_WRITER_H
#define TOKMAP_COMMANDS_CONVERT_DATATROVE_WRITER_H

#include <stddef.h>
#include <stdint.h>

#define DATATROVE_NAME_MOST 256 /* bytes of the tokenizer's name that are written */
#define DATATROVE_TEXT_MOST (DATATROVE_NAME_MOST + 96)

/* Writes the three lines and returns their bytes. tokenizer: its name; NULL: unknown. width: 2 or 4. */
size_t datatrove_metadata(char text[DATATROVE_TEXT_MOST], const char *tokenizer, uint32_t width, uint64_t tokens);

#endif
