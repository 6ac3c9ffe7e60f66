/*
 * snapshot.h - the parts of an opened tokenizer in one file, so that it can be opened again without reading its
 * vocabulary: the file of vocabulary/vocabulary_cache.h.
 *
 * A snapshot has fields and arrays. A field is a number of 8 bytes, or a text after its length, filled up to 8 bytes.
 * Each part of a tokenizer puts its fields, and gets them in the same order. Arrays are the large tables. They begin at
 * multiples of SNAPSHOT_PAGE, so that a table that is read is aligned as one that is built.
 *
 *     struct snapshot_header | fields | array 0 | array 1 | ...      each part filled up with zeros to SNAPSHOT_PAGE
 *
 * The file is read into memory, not mapped. Nothing that happens to the file later can then change what was checked, or
 * be a signal, and the tables are in huge pages, as encoding wants them.
 *
 * The hash in the header covers all that follows it, so a reader of a snapshot is sure that the bytes are those that
 * were written. It does not rely on that: whatever the bytes are, every get function checks its bounds, and the parts
 * check each number that is used as an index.
 */
#ifndef TOKMAP_TOKENIZER_SNAPSHOT_H
#define TOKMAP_TOKENIZER_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bytes_buffer.h"
#include "common/hash.h"
#include "pretokenize/split_rules.h"

#define SNAPSHOT_FORMAT 1u /* grows when a part changes what it puts */
#define SNAPSHOT_PAGE ((uint64_t)4096)
#define SNAPSHOT_ARRAYS 48
#define SNAPSHOT_MOST ((uint64_t)1 << 30) /* bytes of a file */

struct snapshot_place {
    uint64_t offset, bytes;
};

/* The first page of a file. All numbers are little-endian. */
struct snapshot_header {
    char magic[16];   /* SNAPSHOT_MAGIC */
    uint64_t bytes;   /* of the file */
    uint8_t hash[16]; /* XXH3-128 of the file from `key` on */
    uint8_t key[16];  /* of what the snapshot was made of, as the file's name says it too */
    uint64_t format;  /* SNAPSHOT_FORMAT */
    uint64_t arrays;
    struct snapshot_place fields;
    struct snapshot_place places[SNAPSHOT_ARRAYS];
};
#define SNAPSHOT_MAGIC "tokmap snapshot" /* and a zero byte */
_Static_assert(sizeof(struct snapshot_header) <= 4096, "the header fits its page");

/* ---- writing ---- */

/* Initialize with zeros. After a failure, which `failed` says, all functions do nothing. */
struct snapshot_writer {
    struct bytes_buffer fields;
    struct {
        const void *bytes;
        uint64_t count;
        void *owned; /* memory that snapshot_writer_free() frees, or NULL */
    } arrays[SNAPSHOT_ARRAYS];
    uint32_t array_count;
    bool failed; /* memory ran out, or there are too many arrays */
};

void snapshot_put(struct snapshot_writer *writer, uint64_t number);
/* count: any; NULL is allowed with 0. */
void snapshot_put_text(struct snapshot_writer *writer, const void *bytes, uint64_t count);
/* Adds an array, which must not change before the snapshot is written. */
void snapshot_put_array(struct snapshot_writer *writer, const void *bytes, uint64_t count);
/* Adds an array of zeros, which belongs to the writer, and returns it for the caller to fill in; NULL if memory ran
 * out. */
void *snapshot_put_room(struct snapshot_writer *writer, uint64_t count);

/* Puts the rules of a scanner, by their name. Fails for rules without a name, which no vocabulary has so far. */
void snapshot_put_rules(struct snapshot_writer *writer, const struct split_rules *rules);

/* Writes all to an empty file. Returns 0, or a positive errno (ENOMEM after a failure, EFBIG for more than
 * SNAPSHOT_MOST bytes or than this process may write to a file). */
int snapshot_write(const struct snapshot_writer *writer, int fd, const uint8_t key[16]);
void snapshot_writer_free(struct snapshot_writer *writer);

/* ---- reading ---- */

struct snapshot_reader {
    uint8_t *bytes;          /* the whole file; free() frees it, which is the owner's task */
    const uint8_t *at, *end; /* the fields that are left */
    const struct snapshot_header *header;
    uint64_t next; /* array */
    bool failed;   /* something did not fit; from then on all get functions fail */
};

/* Reads and checks a file: its length, magic, format, key, and hash, and that all places are inside of it. On success
 * reader->bytes is the owner's; on failure it is NULL. */
bool snapshot_read(struct snapshot_reader *reader, int fd, const uint8_t key[16]);

/* Returns the next number, which is at most `most`; 0 and a failure otherwise. */
uint64_t snapshot_get(struct snapshot_reader *reader, uint64_t most);
bool snapshot_get_flag(struct snapshot_reader *reader);
/* Returns the next text and its length, at most `most`. It lasts as long as reader->bytes. After a failure it is empty,
 * but not NULL. */
const uint8_t *snapshot_get_text(struct snapshot_reader *reader, uint64_t most, uint64_t *count);
/* Returns a copy of the next text for free(), with a zero byte after it. NULL: a failure, or no memory. */
uint8_t *snapshot_get_copy(struct snapshot_reader *reader, uint64_t most, size_t *count);
/* Copies the next text, which must have `count` bytes. */
void snapshot_get_exactly(struct snapshot_reader *reader, void *into, uint64_t count);
/* Returns the next array, which must have `count` elements of `bytes` bytes. It lasts as long as reader->bytes. NULL: a
 * failure. */
void *snapshot_get_array(struct snapshot_reader *reader, uint64_t count, uint64_t bytes);
void snapshot_get_rules(struct snapshot_reader *reader, struct split_rules *rules);
/* Fails unless all fields and arrays were read. */
void snapshot_get_end(struct snapshot_reader *reader);

/* Makes `good` a condition: records a failure if it is false. Returns whether there was none so far. */
static inline bool snapshot_require(struct snapshot_reader *reader, bool good)
{
    reader->failed |= !good;
    return !reader->failed;
}

/* Returns whether `count` + 1 offsets begin with 0, never descend, and end with `total`. */
bool snapshot_offsets_rise(const uint32_t *offsets, uint64_t count, uint64_t total);

#endif
