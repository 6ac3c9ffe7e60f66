/* json_fast.h - JSON strings 64 bytes at a time by AVX-512 (json_fast_vbmi.c). These functions handle nearly all of a
 * long string; json_scan.c handles the rest, and everything on other processors. */
#ifndef TOKMAP_TEXT_JSON_FAST_H
#define TOKMAP_TEXT_JSON_FAST_H

#include <stdbool.h>
#include <stdint.h>

#include "common/cpu.h"

/* The character for which an escape of two bytes stands, by its second byte; 0 for a byte that cannot follow a
 * backslash, and for 'u', whose escape is longer. */
extern const char json_escape_values[256];

#if defined(__x86_64__)
static inline bool json_has_vbmi(void)
{
    return cpu_has(CPU_VBMI);
}

/* Skips plain bytes and escapes of two bytes, from a position inside a string that is not directly after a backslash.
 * Stops at a quote, at a control character, at the backslash of any other escape, or when fewer than 65 bytes are left.
 * Sets *escaped if it has skipped an escape. */
const char *json_skip_plain_vbmi(const char *at, const char *end, bool *escaped);

/* Decodes the same bytes of a string that has been read without a fault: moves them from *at to *into, which is not
 * after *at, and advances both. */
void json_unescape_plain_vbmi(char **into, const char **at, const char *end);
#else
static inline bool json_has_vbmi(void)
{
    return false;
}
static inline const char *json_skip_plain_vbmi(const char *at, const char *end, bool *escaped)
{
    return at;
}
static inline void json_unescape_plain_vbmi(char **into, const char **at, const char *end)
{
}
#endif

#endif
