/* SPDX-License-Identifier: MIT */
/*
 * plan_file.h - plans: files that list the rows which a source draws in place of windows. FORMAT.md specifies them.
 *
 *     header, 128 bytes | u32 first segment of each row | zeros up to a multiple of 16 | 16 bytes per segment
 *
 * The segments are stored row by row. Together they hold every token of a dataset exactly once, so a token is found by
 * the order of the segments by first token, which the segments store as well.
 *
 * plan_open() checks everything that can be checked at a cost that does not grow with the plan. Each use compares every
 * number with its bounds, and each answer with its neighbors, so a hostile plan results in TOKMAP_ERROR_CORRUPT, never
 * in an access outside the file, a row that is too long, or a segment outside the dataset. plan_verify() checks the
 * rest.
 *
 * A plan is mapped, or read with pread: then a file that is cut while it is in use, or that its storage loses, is a
 * status and never a signal. Nothing that was read with pread is kept, because a plan can have gigabytes; the page
 * cache has it.
 */
#ifndef TOKMAP_FORMAT_PLAN_FILE_H
#define TOKMAP_FORMAT_PLAN_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "tokmap/tokmap.h"

#define PLAN_MAGIC "\x89TPL\r\n\x1a\n" /* 8 bytes that a transfer in text mode or with 7 bits would change */
#define PLAN_MAJOR 1
#define PLAN_MINOR 0
#define PLAN_SEQ_LEN_MOST ((uint64_t)1 << 31)
#define PLAN_SEGMENTS_MOST ((uint64_t)UINT32_MAX)
#define PLAN_TOKENS_MOST ((uint64_t)1 << 62)

struct plan_header {
    uint8_t magic[8];
    uint16_t major, minor;
    uint32_t header_bytes;   /* 128 */
    uint8_t dataset[16];     /* the dataset's identity */
    uint32_t identity;       /* its kind: 1 full, 2 sampled */
    uint32_t pad;            /* 0, or 2 or more: padding makes each segment a multiple of it, as seq_len is */
    uint64_t tokens;         /* of the dataset; the sum of all segments */
    uint64_t seq_len;        /* 1 to 2^31 */
    uint64_t rows;           /* 1 to segments */
    uint64_t segments;       /* 1 to 2^32 - 1 */
    uint64_t row_segments;   /* the most segments of any row */
    uint64_t documents_most; /* the limit on the segments of a row that the planner was given; 0: none */
    uint64_t documents;      /* of the dataset, without empty ones; at most segments */
    uint64_t cut;            /* those of them that are longer than seq_len, and therefore cut */
    uint64_t file_bytes;
    uint64_t body_hash;   /* XXH3-64 of everything after the header */
    uint64_t header_hash; /* XXH3-64 of the preceding 120 bytes */
};
_Static_assert(sizeof(struct plan_header) == 128, "as in FORMAT.md");

struct plan_segment {
    uint64_t first_token;
    uint32_t tokens;  /* 1 to seq_len */
    uint32_t ordered; /* entry i: the number of the i-th segment by first token */
};
_Static_assert(sizeof(struct plan_segment) == 16, "as in FORMAT.md");

/* An open plan. It is immutable, so any thread may use it. */
struct plan {
    const char *path;     /* owned by the caller; must outlive the plan */
    const uint8_t *bytes; /* the mapping of the whole file; NULL: it is read with pread */
    int fd;               /* of the file, if it is read with pread */
    struct plan_header header;
    uint64_t segments_at; /* offset of the first segment */
};

/* Returns whether the file at `path` begins with the magic of a plan. False if it cannot be read. */
bool plan_is_file(const char *path);

/* Maps the file at `path` and checks it as described above. On failure *plan needs no plan_close().
 * Statuses: OK, ERROR_NOT_FOUND, ERROR_IO, ERROR_FORMAT, ERROR_VERSION, ERROR_CORRUPT, ERROR_TRUNCATED,
 * ERROR_MEMORY. */
enum tokmap_status plan_open(struct plan *plan, const char *path, struct tokmap_error *error);
/* Does the same for a plan that is read with pread if `reading` is TOKMAP_READ_PREAD. */
enum tokmap_status plan_open_as(struct plan *plan, const char *path, enum tokmap_reading reading,
                                struct tokmap_error *error);
void plan_close(struct plan *plan); /* accepts a struct that is all zero */

/* Functions below that read the plan fail with ERROR_CORRUPT or, with pread, ERROR_IO or ERROR_TRUNCATED. */

/* Finds the segments [*first, *first + *count) of a row (< header.rows). *count is 1 to header.row_segments. */
enum tokmap_status plan_row(const struct plan *plan, uint64_t row, uint64_t *first, uint64_t *count,
                            struct tokmap_error *error);
/* Prefetch what plan_row() reads of a row (< header.rows), and later, when that has come, the segments that
 * plan_row_extents() reads. Both pass over what is corrupt, and do nothing if the plan is not mapped. Cannot fail. */
void plan_prefetch_row(const struct plan *plan, uint64_t row);
void plan_prefetch_segments(const struct plan *plan, uint64_t row);

/* Reads a segment (< header.segments); its tokens are within the dataset's and at most seq_len. */
enum tokmap_status plan_segment(const struct plan *plan, uint64_t number, struct plan_segment *segment,
                                struct tokmap_error *error);
/* Counts the extents of a row and the tokens of its segments, and writes the first `capacity` of them: its segments,
 * each followed by its padding, if it has any. Checks that together they have at most seq_len tokens. */
enum tokmap_status plan_row_extents(const struct plan *plan, uint64_t row, struct tokmap_extent *extents,
                                    uint64_t capacity, uint64_t *count, uint64_t *tokens, struct tokmap_error *error);
/* Finds the i-th segment by first token (i < header.segments). */
enum tokmap_status plan_ordered(const struct plan *plan, uint64_t i, uint64_t *number, struct plan_segment *segment,
                                struct tokmap_error *error);
/* Finds i such that the i-th segment by first token holds a token (< header.tokens). */
enum tokmap_status plan_find(const struct plan *plan, uint64_t token, uint64_t *i, struct tokmap_error *error);
/* Finds the row of a segment (< header.segments). */
enum tokmap_status plan_row_of(const struct plan *plan, uint64_t segment, uint64_t *row, struct tokmap_error *error);

/* Returns the most extents of any row. */
static inline uint64_t plan_extents_most(const struct plan *plan)
{
    return plan->header.pad ? 2 * plan->header.row_segments : plan->header.row_segments;
}

/* Computes the identity `plan 1` of a dataset whose rows a plan lists: XXH3-128 of "plan 1", two zero bytes, the
 * dataset's identity, and the body hash as a u64. If documents are padded, `pad` follows as a u32. */
void plan_identity(const struct plan *plan, const uint8_t dataset[16], uint8_t identity[16]);

/* Reads the whole plan and checks the hash of the body, the padding, and that the segments hold every token exactly
 * once in rows of at most seq_len tokens. Reports the first fault. progress: may be NULL; called with the segments that
 * have been checked; a result other than 0 ends the work. The plan is mapped. Statuses: OK, ERROR_CORRUPT,
 * ERROR_INTERRUPTED. */
enum tokmap_status plan_verify(const struct plan *plan, int (*progress)(void *user, uint64_t done, uint64_t total),
                               void *user, struct tokmap_error *error);

/* Writes a plan to an empty file. header: the caller sets dataset, identity, tokens, seq_len, rows, segments,
 * row_segments, documents_most, pad, documents, and cut; the function sets the rest. first: the first segment of each
 * row. segment(): returns segment `number`; called once for each, in order. Returns 0 or an errno. */
int plan_write(int fd, struct plan_header *header, const uint32_t *first,
               struct plan_segment (*segment)(void *user, uint64_t number), void *user);

#endif
