/* json_fast.h - what takes most of a long string, 64 bytes at a time (AVX-512); json_scan.c does the rest. */
#ifndef TOKMAP_TEXT_JSON_FAST_H
#define TOKMAP_TEXT_JSON_FAST_H

#include <stdbool.h>
#include <stdint.h>

#include "common/cpu.h"

/* What the character behind a backslash stands for; 0: no escape, or \\u, which is longer. */
extern const char json_escape_values[256];

#if defined(__x86_64__)
static inline bool json_fast(void)
{
    return cpu_has(CPU_VBMI);
}

/* From inside a string, not behind a backslash: passes what is plain and escapes of two bytes. It ends at a quote, at a
 * control character, at the backslash of any other escape, or where fewer than 65 bytes are left. *escaped: set if an escape
 * was passed. */
const char *json_pass_vbmi(const char *at, const char *end, bool *escaped);

/* The same of a string that is known to be good, moving it to *into and decoding the escapes; *into is not behind *at. */
void json_move_vbmi(char **into, const char **at, const char *end);
#else
static inline bool json_fast(void)
{
    return false;
}
static inline const char *json_pass_vbmi(const char *at, const char *end, bool *escaped)
{
    return at;
}
static inline void json_move_vbmi(char **into, const char **at, const char *end)
{
}
#endif

#endif
