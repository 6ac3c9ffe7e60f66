/* SPDX-License-Identifier: MIT */
/* foreign_layout.h - what the header of another project's token file says about the tokens. */
#ifndef TOKMAP_FORMAT_FOREIGN_FOREIGN_LAYOUT_H
#define TOKMAP_FORMAT_FOREIGN_FOREIGN_LAYOUT_H

#include "format/element.h"

/* Token i has element_bytes(element) bytes at offset + i * element_bytes(element) of a file of `bytes` bytes. The
 * parsers return this struct only if tokens, element, offset, and bytes agree, so none of these products overflows. */
struct foreign_layout {
    enum element element;
    uint64_t offset;
    uint64_t tokens;
    uint64_t bytes;
    uint64_t eod_id, bos_id; /* ids that the format prescribes; TOKMAP_NO_ID if it prescribes none */
};

/* Bytes of an element. */
static inline uint32_t element_bytes(enum element element)
{
    return 1u << element_shift(element);
}

/* Returns the code of unsigned elements of 1, 2, or 4 bytes, or I64 for 8. */
static inline enum element element_of_bytes(uint64_t bytes)
{
    return bytes == 1 ? ELEMENT_U8 : bytes == 2 ? ELEMENT_U16 : bytes == 4 ? ELEMENT_U32 : ELEMENT_I64;
}

/* Returns the name of a code for messages: "uint16". */
static inline const char *element_name(uint64_t code)
{
    static const char *const names[] = {"unknown", "uint8",   "int8",    "int16",  "int32",
                                        "int64",   "float64", "float32", "uint16", "uint32"};
    return code < sizeof names / sizeof names[0] ? names[code] : names[0];
}

#define FOREIGN_BYTES_MAX ((uint64_t)1 << 62) /* of a token file; as for a .bin (FORMAT.md) */

#endif
