/*
 * layout.h - the bytes of a .tmx index, as constants and structs. FORMAT.md is the specification; this file follows it.
 *
 * A .tmx is: a header of 64 bytes; sections, each starting at a multiple of 64, zero bytes between them; the table, one
 * entry a section in order of their offsets, last in the file. Every byte is under a hash (header, table, section) or
 * zero. The table stands at the end because a writer streams: it knows a section's length and hash only when it has
 * written it.
 */
#ifndef TOKMAP_FORMAT_LAYOUT_H
#define TOKMAP_FORMAT_LAYOUT_H

#include <stdint.h>

#define INDEX_MAGIC "\x89TMX\r\n\x1a\n" /* 8 bytes; a text-mode transfer or a 7-bit one breaks it */
#define INDEX_MAJOR 1
#define INDEX_MINOR 0
#define INDEX_ALIGN 64
#define INDEX_SECTIONS_MAX 64 /* a reader's limit on the table */

struct index_header {
    uint8_t magic[8];
    uint16_t major, minor;
    uint32_t header_bytes;  /* 64 */
    uint32_t entry_bytes;   /* 40 */
    uint32_t sections;
    uint64_t table_offset;
    uint64_t file_bytes;    /* table_offset + sections * entry_bytes */
    uint64_t table_hash;    /* XXH3-64 of the table */
    uint64_t reserved;      /* 0 */
    uint64_t header_hash;   /* XXH3-64 of the 56 bytes before */
};
_Static_assert(sizeof(struct index_header) == 64, "as in FORMAT.md");

struct index_entry {
    uint32_t type;          /* enum section_type */
    uint32_t flags;         /* SECTION_REQUIRED or 0; 0 for the types of this version */
    uint64_t offset;        /* multiple of 64 */
    uint64_t bytes;
    uint64_t hash;          /* XXH3-64 of the section's bytes */
    uint64_t reserved;      /* 0 */
};
_Static_assert(sizeof(struct index_entry) == 40, "as in FORMAT.md");

/* Types 1..7 are of this version or kept for the design's next ones; a reader skips what it does not know. At most one
 * section of a type. */
enum section_type {
    SECTION_SHARD = 1,
    SECTION_DOCUMENTS = 2,
    SECTION_BLOCKS = 3,
    SECTION_ORIGIN = 4,
    SECTION_STREAMS = 5, /* kept */
    SECTION_FRAMES = 6,  /* kept */
    SECTION_ABOUT = 7,
};

/* A reader that does not know a section with this flag refuses the file: skipping it would misread the shard. */
#define SECTION_REQUIRED 1

#define BLOCK_BYTES ((uint64_t)1 << 20)
#define NO_ID UINT64_MAX

struct section_shard {
    uint64_t tokens;
    uint64_t documents;
    uint32_t width;         /* 2 or 4 */
    uint32_t block_bytes;   /* 1 MiB */
    uint64_t vocabulary;    /* ids are below it; at most 2^16 for width 2, 2^32 for width 4 */
    uint64_t largest_id;    /* present; 0 without tokens */
    uint64_t eod_id, bos_id; /* or NO_ID */
    uint8_t content[16];    /* content id: XXH3-128 of struct content_source */
    uint8_t tokenizer[16];  /* fingerprint; zero: unknown */
    uint64_t reserved[4];   /* 0 */
};
_Static_assert(sizeof(struct section_shard) == 120, "as in FORMAT.md");

/* What the content id is a hash of. All of it stands in the table and the shard section, so a reader recomputes it at
 * open; verify compares the two hashes with the sections and the blocks with the tokens. */
struct content_source {
    uint64_t width;
    uint64_t tokens;
    uint64_t documents;
    uint64_t blocks_hash;    /* of the blocks section, as in the table */
    uint64_t documents_hash; /* likewise */
};
_Static_assert(sizeof(struct content_source) == 40, "as in FORMAT.md");

/* Documents: uint32_t low[documents], zero padding to 8, then uint64_t carry[tokens >> 32].
 * Document i ends before token end(i) = (number of carries <= i) << 32 | low[i]; carry[k] is the first document whose
 * end is >= (k + 1) << 32. Ends never fall. 4 bytes a document, O(log documents) both ways, streamed in order. */

/* Blocks: uint64_t hash[ceil(tokens * width / 1 MiB)], XXH3-64 of each block of the .bin; the last may be shorter. */

/* Origin: struct origin_head, struct origin_run runs[], struct origin_file files[], then the paths' bytes. A run covers
 * documents from `document` to the next run's: the first is record `record` of file `file`, the next record + 1 .. */
struct origin_head {
    uint64_t runs, files, path_bytes, reserved;
};
struct origin_run {
    uint64_t document;      /* rises strictly; the first is 0 */
    uint64_t record;
    uint64_t file;
};
struct origin_file {
    uint64_t path_end;      /* in the paths' bytes; a path begins where the one before ends */
};

#endif
