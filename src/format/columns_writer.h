/* SPDX-License-Identifier: MIT */
/*
 * columns_writer.h - writes the section columns of an index: chosen fields of the records that documents came from, as
 * JSON text.
 *
 * A column is a dictionary as long as it has at most COLUMN_VALUES_MAX different values of COLUMN_DICTIONARY_BYTES in
 * all, and plain afterwards. The memory of a writer is that of the dictionaries, and does not grow with documents. A
 * columns writer belongs to one thread at a time. All functions that return int return 0 or an errno.
 */
#ifndef TOKMAP_FORMAT_COLUMNS_WRITER_H
#define TOKMAP_FORMAT_COLUMNS_WRITER_H

#include <stdbool.h>

#include "index_writer.h"
#include "layout.h"
#include "platform/table_key.h"

/* Where the parts of a column are in the section columns of an index: offsets from the start of the section. */
struct column_layout {
    uint64_t name_at, codes_at, lows_at, carries_at, values_at;
    uint64_t end; /* of the column's data, a multiple of 8; the data of the next column begins here */
};

/* Computes the layout of a column in an index with this many documents. Returns false if a size in the head exceeds
 * what a file can hold. */
bool column_layout_of(const struct column_head *head, uint64_t documents, struct column_layout *layout);

/* The value of one column for one document. json: one JSON value in UTF-8, without spaces around it; bytes 0: the
 * record lacks the field. */
struct shard_value {
    const char *json;
    uint64_t bytes;
};

/* Returns whether a value is what the comment on struct shard_value demands, and not deeper than COLUMN_DEPTH. */
bool shard_value_is_sound(const struct shard_value *value);

struct column_writer {
    char *name;
    bool plain;              /* documents from `coded` on have their values in `plain_values` */
    uint64_t coded;          /* documents whose values are in the dictionary; `codes` has a u16 for each of them */
    uint64_t values;         /* of the dictionary */
    uint32_t *ends, *hashes; /* of each value: where it ends in `bytes`, and the high half of its hash */
    uint32_t *slots;         /* a hash table: number of a value + 1; 0 is free */
    struct table_key key;    /* of the hashes, because values are a record's to choose */
    uint64_t passed;         /* slots that searches have passed over, which tests compare with the number of values */
    uint64_t ends_room, slot_count; /* both grow with `values` */
    uint8_t *bytes;                 /* of the values of the dictionary */
    uint64_t bytes_room;
    uint64_t total;   /* bytes of the values of all documents, as a plain column counts them */
    uint64_t carried; /* carries among `carries` */
    struct spill codes, lows, carries, plain_values;
    uint64_t saved;      /* values of the dictionary that columns_writer_save() has passed on */
    uint64_t code_after; /* while it is restored: more than each code */
    uint64_t loaded;     /* while it is restored: bytes of the dictionary */
};

struct columns_writer {
    uint32_t count;
    uint64_t documents; /* that have values */
    struct column_writer *columns;
};

/* names: copied. folder: see spill_init(). After a failure there is nothing to free. */
int columns_writer_init(struct columns_writer *writer, const char *const *names, uint32_t count, const char *folder);
void columns_writer_free(struct columns_writer *writer); /* a zeroed writer is allowed */

/* Finds a value in the dictionary of a column, or adds it. *fits: whether there was room for it; otherwise nothing has
 * changed. A zeroed column with a key has an empty dictionary, which column_dictionary_free() frees. */
int column_dictionary_find(struct column_writer *column, const struct shard_value *value, uint16_t *code, bool *fits);
void column_dictionary_free(struct column_writer *column);

/* Appends the values of `documents` documents: values[d * count + c] is that of column c. */
int columns_writer_add(struct columns_writer *writer, const struct shard_value *values, uint64_t documents);

/* Passes on what was added since the last call. Kinds are `kind` + COLUMN_KINDS * the number of the column + a number
 * below COLUMN_KINDS. */
#define COLUMN_KINDS 8U
void columns_writer_save(struct columns_writer *writer, uint32_t kind, struct state_sink *sink);
/* Takes what columns_writer_save() has passed on; `kind` without its first addend. When everything has been taken,
 * columns_writer_restored() checks it. EINVAL: it is not sound. */
int columns_writer_load(struct columns_writer *writer, uint32_t kind, const uint8_t *bytes, size_t count);
int columns_writer_restored(struct columns_writer *writer, uint64_t documents);

/* Writes the section columns. To be called once. */
int columns_writer_finish(struct columns_writer *writer, struct index_writer *index);

#endif
