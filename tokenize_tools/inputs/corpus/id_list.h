/* SPDX-License-Identifier: MIT */
/*
 * id_list.h - reads lists of numbers in JSON: token ids, and masks of them.
 *
 * The functions that read are strict and only say yes or no: a list that they accept is valid JSON. Their loops look at
 * eight bytes at a time, because a corpus of ids consists of such lists. The functions that find faults are for a list
 * that was not accepted and is valid JSON; they say what is wrong with it.
 */
#ifndef TOKMAP_CORPUS_ID_LIST_H
#define TOKMAP_CORPUS_ID_LIST_H

#include "text/json_scan.h"

/* Returns how many elements the list at the start of the text can have at most, and sets *bytes to the length of the
 * list: up to the first closing bracket. Returns 0 without a bracket. `text` begins with an opening bracket. */
uint64_t id_list_room(const char *text, size_t count, size_t *bytes);

/* Reads a list of whole numbers from 0 to 2^32 - 1, which is all of the text, into ids, which has room for what
 * id_list_room() returned. Sets *found to their number and *largest to the largest one, 0 for an empty list. Returns
 * false if the text is no such list. */
bool id_list_read(const char *text, size_t count, uint32_t *ids, uint64_t *found, uint32_t *largest);

/* Reads a list of 0, 1, false, and true into bytes of 0 and 1, like id_list_read(). */
bool mask_list_read(const char *text, size_t count, uint8_t *values, uint64_t *found);

/* Reads a list of labels of ids into bytes, like mask_list_read(): 0 for -100, and 1 for the id of the same place.
 * Behind the last of the `id_count` ids, any id is a label. */
bool label_list_read(const char *text, size_t count, const uint32_t *ids, uint64_t id_count, uint8_t *values,
                     uint64_t *found);

/* Faults of a list. */
struct list_fault {
    const char *reason; /* static, such as "is negative"; NULL if nothing is wrong */
    uint64_t index;     /* of the element, from 0 */
    size_t offset;      /* of the element in the text */
    size_t count;       /* bytes of the element */
};

/* Finds the first element that is not an id below `vocabulary`. The text is a list in valid JSON. */
struct list_fault id_list_fault(const char *text, size_t count, uint64_t vocabulary);

/* Finds the first element that is not 0, 1, false, or true. */
struct list_fault mask_list_fault(const char *text, size_t count);

/* Finds the first element that is neither -100 nor the id of its place. */
struct list_fault label_list_fault(const char *text, size_t count, const uint32_t *ids, uint64_t id_count);

#endif
