/*
 * element.h - the integers in which other projects store tokens, and their conversion to a dataset's width.
 *
 * The codes are those of Megatron's .idx (DType), with 9 for unsigned integers of 32 bits, which Megatron does not
 * have. They are stored in the store section of an index, so they never change. Floating-point codes (6, 7) are not
 * tokens.
 */
#ifndef TOKMAP_FORMAT_ELEMENT_H
#define TOKMAP_FORMAT_ELEMENT_H

#include <stdint.h>

enum element {
    ELEMENT_U8 = 1,
    ELEMENT_I8 = 2,
    ELEMENT_I16 = 3,
    ELEMENT_I32 = 4,
    ELEMENT_I64 = 5,
    ELEMENT_U16 = 8,
    ELEMENT_U32 = 9,
};

/* Returns the bytes of an element, or 0 for a code that is not one of the above. */
uint32_t element_bytes(uint64_t code);

/* Returns the width of the tokens of a dataset whose files have these elements: 2 for elements of 1 and 2 bytes, 4 for
 * elements of 4 and 8 bytes. */
uint32_t element_width(enum element code);

/* Returns the number of ids that the code can express, which is the vocabulary if nothing else is known. A negative
 * number, read in the dataset's width, is at least this number, so a check against the vocabulary finds it. So does an
 * element of 8 bytes outside [0, 2^32 - 1), which becomes id 2^32 - 1. */
uint64_t element_vocabulary(enum element code);

/* Returns the code of unsigned elements of that size (1, 2, 4), or I64 for 8; 0 for another size. */
enum element element_of_bytes(uint64_t bytes);

/* The name for messages: "uint16". */
const char *element_name(uint64_t code);

/* Writes `count` elements as tokens of the width element_width(code). Neither address needs to be aligned. The ranges
 * overlap only if `from` is `into`, which is possible where the element is not narrower than the token. Returns the
 * largest id. */
uint64_t element_convert(enum element code, const void *from, uint64_t count, void *into);

#endif
