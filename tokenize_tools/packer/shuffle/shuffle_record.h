/* SPDX-License-Identifier: MIT */
/*
 * shuffle_record.h - a document on its way through the shuffle: its place in the shuffled order, and its bytes in
 * memory and in temporary files.
 *
 * The *key* of a document is order_key("document", seed, input number as 8 bytes, position): see ORDER.md, which has
 * the definition and an example. Documents are sorted by their keys as numbers of 128 bits (high * 2^64 + low), and
 * those with equal keys, of which there are practically none, by input and position. So the order is a function of the
 * seed and of where each document is in the inputs, and not of the documents that are shuffled with it.
 *
 * A *record* is a head and a payload: the tokens, the mask (bit i mod 8 of byte i / 8), for each column the length of
 * its value as 8 bytes, and then the values; zeros up to a multiple of 8 bytes follow. The payload of a long document
 * is in another file, and its record has where and what hash it has. Temporary files have no stable format.
 *
 * All functions are pure.
 */
#ifndef TOKMAP_SHUFFLE_SHUFFLE_RECORD_H
#define TOKMAP_SHUFFLE_SHUFFLE_RECORD_H

#include <stdbool.h>
#include <stdint.h>

struct shuffle_place {
    uint64_t high, low; /* of the key */
    uint64_t input, position;
};

struct shuffle_place shuffle_place_of(uint64_t seed, uint64_t input, uint64_t position);

/* Returns true if a document at `a` precedes one at `b`. */
static inline bool shuffle_precedes(const struct shuffle_place *a, const struct shuffle_place *b)
{
    if (a->high != b->high)
        return a->high < b->high;
    if (a->low != b->low)
        return a->low < b->low;
    return a->input != b->input ? a->input < b->input : a->position < b->position;
}

struct shuffle_head {
    uint64_t hash;  /* XXH3-64 of the rest of the record */
    uint32_t bytes; /* of the record, a multiple of 8 */
    uint32_t set;   /* of the split; and SHUFFLE_LONG */
    uint64_t input, position, record;
    uint64_t text_bytes;
    uint64_t tokens;
};
_Static_assert(sizeof(struct shuffle_head) == 56, "a head has no padding");

#define SHUFFLE_LONG ((uint32_t)1 << 31) /* the payload is a struct shuffle_long */

/* Place of the payload of a long document in the file of long documents. */
struct shuffle_long {
    uint64_t offset, bytes;
    uint64_t hash; /* XXH3-64 of the payload, without zeros after it */
};

/* Stores the hash of a record that is complete. record: aligned for uint64_t. */
void shuffle_record_seal(uint8_t *record);
/* Returns true if the hash is that of the record; head->bytes of it are there. */
bool shuffle_record_sound(const uint8_t *record, const struct shuffle_head *head);

/* Cuts a payload of `bytes` bytes into its parts; returns false if it has another length than its parts. lengths: of
 * the values, 8 bytes each, at any alignment; each of them is checked. */
struct shuffle_payload {
    const uint8_t *tokens, *mask, *lengths, *values;
};
bool shuffle_payload_cut(const uint8_t *payload, uint64_t bytes, uint64_t tokens, uint32_t width, bool mask,
                         uint32_t columns, struct shuffle_payload *cut);

/* Bytes of the tokens and the mask; false if they are more than 2^62. */
bool shuffle_payload_bytes(uint64_t tokens, uint32_t width, bool mask, uint64_t *bytes);

#endif
