/* SPDX-License-Identifier: MIT */
/*
 * layout.h - the bytes of an index, NAME.tmx, as constants and structs. FORMAT.md is the specification; this file
 * follows it.
 *
 * A .tmx consists of a header of 64 bytes; sections, each starting at a multiple of 64, with zero bytes between them;
 * and the table at the end of the file, with one entry per section in order of their offsets. Every byte is covered by
 * a hash (of the header, the table, or a section) or is zero. The table is at the end because a writer streams: it
 * learns the length and hash of a section only by writing it.
 */
#ifndef TOKMAP_FORMAT_LAYOUT_H
#define TOKMAP_FORMAT_LAYOUT_H

#include <stdint.h>

#define INDEX_MAGIC "\x89TMX\r\n\x1a\n" /* 8 bytes that a transfer in text mode or with 7 bits would change */
#define INDEX_MAJOR 1
#define INDEX_MINOR 4 /* the highest minor version whose sections this code writes */
#define INDEX_ALIGN 64
#define INDEX_SECTIONS_MAX 64 /* the most entries of a table that a reader accepts */

struct index_header {
    uint8_t magic[8];
    uint16_t major, minor;
    uint32_t header_bytes; /* 64 */
    uint32_t entry_bytes;  /* 40 */
    uint32_t sections;
    uint64_t table_offset;
    uint64_t file_bytes;  /* table_offset + sections * entry_bytes */
    uint64_t table_hash;  /* XXH3-64 of the table */
    uint64_t reserved;    /* 0 */
    uint64_t header_hash; /* XXH3-64 of the preceding 56 bytes */
};
_Static_assert(sizeof(struct index_header) == 64, "as in FORMAT.md");

struct index_entry {
    uint32_t type;   /* enum section_type */
    uint32_t flags;  /* SECTION_REQUIRED or 0; 0 for the types of version 1.0 */
    uint64_t offset; /* multiple of 64 */
    uint64_t bytes;
    uint64_t hash;     /* XXH3-64 of the section's bytes */
    uint64_t reserved; /* 0 */
};
_Static_assert(sizeof(struct index_entry) == 40, "as in FORMAT.md");

/* Types 1 to 10 belong to this version or are reserved for later ones. A reader skips unknown types. An index has at
 * most one section of each type. */
enum section_type {
    SECTION_SHARD = 1,
    SECTION_DOCUMENTS = 2,
    SECTION_BLOCKS = 3,
    SECTION_ORIGIN = 4,
    SECTION_STREAMS = 5, /* since 1.1, and required */
    SECTION_FRAMES = 6,  /* required; since minor version 4 */
    SECTION_ABOUT = 7,
    SECTION_STORE = 8,   /* required; since minor version 1 */
    SECTION_COLUMNS = 9, /* since minor version 2 */
    SECTION_PAGES = 10,  /* since minor version 3 */
};

/* A reader refuses a file that has a section of unknown type with this flag, because without that section it would
 * misread the shard. */
#define SECTION_REQUIRED 1

static inline int section_is_required(uint32_t type)
{
    return type == SECTION_STREAMS || type == SECTION_STORE || type == SECTION_FRAMES;
}

/* Returns the minor version that defines a type of section. */
static inline uint16_t section_minor(uint32_t type)
{
    if (type == SECTION_FRAMES)
        return 4;
    if (type == SECTION_PAGES)
        return 3;
    if (type == SECTION_COLUMNS)
        return 2;
    return type == SECTION_STREAMS || type == SECTION_STORE ? 1 : 0;
}

#define BLOCK_BYTES ((uint64_t)1 << 20)
#define NO_ID UINT64_MAX

struct section_shard {
    uint64_t tokens;
    uint64_t documents;
    uint32_t width;          /* 2 or 4 */
    uint32_t block_bytes;    /* 1 MiB */
    uint64_t vocabulary;     /* ids are below it; at most 2^16 for width 2, 2^32 for width 4 */
    uint64_t largest_id;     /* the largest id in the .bin; 0 without tokens */
    uint64_t eod_id, bos_id; /* or NO_ID */
    uint8_t content[16];     /* content id: XXH3-128 of struct content_source */
    uint8_t tokenizer[16];   /* fingerprint; zero if unknown */
    uint64_t reserved[4];    /* 0 */
};
_Static_assert(sizeof(struct section_shard) == 120, "as in FORMAT.md");

/* The bytes whose hash is the content id. The table and the shard section contain all of them, so a reader
 * recomputes the content id when it opens a shard. Verify compares the two hashes with the sections, and the hashes
 * of blocks with the tokens. */
struct content_source {
    uint64_t width;
    uint64_t tokens;
    uint64_t documents;
    uint64_t blocks_hash;    /* hash of the blocks section in the table */
    uint64_t documents_hash; /* hash of the documents section in the table */
};
_Static_assert(sizeof(struct content_source) == 40, "as in FORMAT.md");

/* Documents: uint32_t low[documents], zero padding to 8, then uint64_t carry[tokens >> 32].
 * Document i ends before token end(i) = (number of carries <= i) << 32 | low[i]; carry[k] is the first document whose
 * end is >= (k + 1) << 32. Ends never decrease. This takes 4 bytes per document, allows lookups in both directions in
 * O(log documents), and can be written as a stream. */

/* Blocks: uint64_t hash[ceil(tokens * width / 1 MiB)], the XXH3-64 of each block of the .bin. The last block may be
 * shorter. */

/* Pages: uint32_t hash[ceil(tokens * width / 4096)], the low half of the XXH3-64 of each page of 4096 bytes of the
 * .bin. The last page may be shorter. A loader reads whole pages of a file anyway, so it can compare each row that it
 * delivers with these hashes; a block would be 256 times as much. */
#define TOKEN_PAGE_BYTES ((uint64_t)4096)

/* Frames: struct frames_head, then a struct frame_entry for each frame. The tokens are in NAME.bin.zst instead of
 * NAME.bin. Frame i is a zstd frame of bytes [65536 i, 65536 (i + 1)) of the .bin; the last one may be shorter. The
 * frames follow each other from byte 0 on, and the seek table of the zstd seekable format ends the file: SEEK_HEAD
 * bytes, SEEK_ENTRY for each frame, SEEK_FOOT bytes. */
#define FRAME_BYTES ((uint64_t)65536)
#define FRAME_STORED_MOST ((uint64_t)65536 + 512) /* bytes of a frame in the file; ZSTD_compressBound() is below it */
#define FRAMES_MOST ((uint64_t)1 << 27)           /* what zstd's readers of seek tables accept: 8 TiB of tokens */
#define SEEK_HEAD 8
#define SEEK_ENTRY 8
#define SEEK_FOOT 9
#define SEEK_HEAD_MAGIC 0x184D2A5Eu
#define SEEK_FOOT_MAGIC 0x8F92EAB1u
struct frames_head {
    uint64_t frame_bytes; /* FRAME_BYTES */
    uint64_t file_bytes;  /* the size of NAME.bin.zst */
};
struct frame_entry {
    uint64_t end;  /* of the frame in the file */
    uint64_t hash; /* XXH3-64 of its uncompressed bytes */
};

/* Origin: struct origin_head, struct origin_run runs[], struct origin_file files[], then the bytes of the paths. A
 * run covers the documents from its `document` up to, not including, the next run's. The first of them is record
 * `record` of file `file`, the next one is record + 1, and so on. */
struct origin_head {
    uint64_t runs, files, path_bytes, reserved;
};
struct origin_run {
    uint64_t document; /* 0 in the first run, greater in each later one */
    uint64_t record;
    uint64_t file;
};
struct origin_file {
    uint64_t path_end; /* in the bytes of the paths; a path begins where the previous one ends */
};

/* Store: struct store_head, then the bytes of the path, which starts from the folder of the index unless it begins with
 * a slash. The tokens are in that file instead of NAME.bin. */
struct store_head {
    uint64_t element;    /* enum element */
    uint64_t offset;     /* of token 0 in the file, in bytes */
    uint64_t file_bytes; /* the size of the file */
    uint64_t path_bytes;
};
/* Streams: uint64_t count, struct stream_entry entries[count], then uint64_t hash[ceil(file_bytes / 1 MiB)] of each
 * file in turn, the XXH3-64 of each block of it. A stream is a file NAME.<name> with one value per token, without a
 * header. The only name so far is "mask": bit i mod 8 of byte i / 8 is 1 if token i counts as a target; spare bits are
 * 0. */
#define STREAM_MASK "mask"
struct stream_entry {
    char name[16];       /* padded with zeros */
    uint64_t bits;       /* per token; 1 for "mask" */
    uint64_t file_bytes; /* ceil(tokens * bits / 8) */
};
_Static_assert(sizeof(struct stream_entry) == 32, "as in FORMAT.md");

/* Columns: uint64_t count, struct column_head heads[count], then the data of each column. A column has a JSON text for
 * each document, with 0 bytes where the record of the document lacks the field. Its data is: the name, terminated by a
 * zero byte; a code for each document, the number of its value; uint32_t low[values] and uint64_t carry[value_bytes >>
 * 32], the ends of values, as the section documents stores those of documents; and the bytes of the values. Each part
 * is padded with zeros to a multiple of 8 bytes. */
#define COLUMNS_MAX 64
#define COLUMN_NAME_MAX 1024                         /* bytes of a name, at least 1 */
#define COLUMN_VALUES_MAX 65536                      /* of a dictionary */
#define COLUMN_DICTIONARY_BYTES ((uint64_t)16 << 20) /* of all values of a dictionary */
#define COLUMN_DEPTH 64                              /* containers inside one another in a value */
struct column_head {
    uint64_t code_bytes; /* 1: up to 256 values; 2: more; 0: plain, document i has value i, and there are no codes */
    uint64_t name_bytes;
    uint64_t values;
    uint64_t value_bytes; /* of all values */
    uint64_t offset;      /* of the column's data in the section */
};
_Static_assert(sizeof(struct column_head) == 40, "as in FORMAT.md");

#endif
