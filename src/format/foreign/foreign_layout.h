/* foreign_layout.h - what the header of another project's token file says about the tokens. */
#ifndef TOKMAP_FORMAT_FOREIGN_LAYOUT_H
#define TOKMAP_FORMAT_FOREIGN_LAYOUT_H

#include "element.h"

/* Token i has element_bytes(element) bytes at offset + i * element_bytes(element) of a file of `bytes` bytes. The
 * parsers return this struct only if tokens, element, offset, and bytes agree, so none of these products overflows. */
struct foreign_layout {
    enum element element;
    uint64_t offset;
    uint64_t tokens;
    uint64_t bytes;
    uint64_t eod_id, bos_id; /* what the format prescribes; TOKMAP_NO_ID if nothing */
};

#define FOREIGN_BYTES_MAX ((uint64_t)1 << 62) /* of a token file; as for a .bin (FORMAT.md) */

#endif
