/* SPDX-License-Identifier: MIT */
/* scripts_tables.h - the table that code_scripts.c uses. make_unicode.py generates scripts_tables.c and prints the size
 * below. */
#ifndef TOKMAP_UNICODE_SCRIPTS_TABLES_H
#define TOKMAP_UNICODE_SCRIPTS_TABLES_H

#include <stdint.h>

#define SCRIPT_SPANS 852
#define SCRIPT_ANY 0 /* of the space, and of characters without a script */

struct script_span {
    uint32_t first, last; /* both included */
    uint8_t script;
};
extern const struct script_span script_spans[SCRIPT_SPANS]; /* ascending; what is in none has SCRIPT_ANY */

#endif
