/* SPDX-License-Identifier: MIT */
/*
 * index_reader.h - opens the index of a shard, NAME.tmx, and returns its counts, block hashes, and about text.
 *
 * index_open() checks everything that can be checked at a cost that does not grow with the shard; index_verify() checks
 * the rest. In between, the functions here and in index_documents.h read sections in place, from the mapping, and
 * compare every number with its bounds before they use it. A hostile index therefore results in TOKMAP_ERROR_CORRUPT,
 * never in an access outside the mapping. FORMAT.md lists both sets of checks.
 *
 * An index that is read with pread has no mapping. index_need() is called before bytes are used in place, and
 * index_pages.h has what it does; the ends of documents are read by index_documents.c.
 */
#ifndef TOKMAP_FORMAT_INDEX_READER_H
#define TOKMAP_FORMAT_INDEX_READER_H

#include <stdbool.h>

#include "index_pages.h"
#include "layout.h"
#include "tokmap/tokmap.h"

struct index_section {
    uint64_t offset; /* 0: the index has no such section */
    uint64_t bytes;
    uint64_t hash;
};

/* An open index. It is immutable, so any thread may use it. */
struct index {
    const char *path;     /* owned by the caller; must outlive the index */
    const uint8_t *bytes; /* the whole file: its mapping, a copy if it is small, or the memory of `pages` */
    uint64_t file_bytes;
    bool copied;               /* bytes is a copy */
    uint32_t about_sound;      /* the hash of the about section was checked; accessed atomically */
    struct index_pages *pages; /* NULL unless the index is read with pread */
    uint64_t device, inode;
    uint64_t id; /* the hash of the table, which has the hash of every section: see shard_commit.h */
    struct section_shard shard;
    uint64_t token_bytes; /* tokens * width */
    uint64_t carries;     /* tokens >> 32 */
    struct index_section documents, blocks, origin, about, streams, store, columns, frames;
    struct index_section token_pages;
    struct store_head store_head;       /* of the store section: where the tokens are, instead of in NAME.bin */
    uint64_t sealed_bytes;              /* of NAME.bin.zst, if there is a section frames; otherwise 0 */
    uint64_t mask_bytes;                /* of the mask, NAME.mask; 0: the shard has none */
    const struct values_ranges *values; /* for shard_ranges.h alone: of a file of values, which has no index; then no
                                           other member but `path` is set. NULL: this is an index */
};

/* Maps or copies the file at `path` and checks it as described above. On failure *index needs no index_close().
 * Statuses: OK, ERROR_NOT_FOUND, ERROR_IO, ERROR_FORMAT, ERROR_VERSION, ERROR_CORRUPT, ERROR_TRUNCATED,
 * ERROR_UNSUPPORTED, ERROR_MEMORY. */
enum tokmap_status index_open(struct index *index, const char *path, struct tokmap_error *error);
/* Does the same for an index that is read as a dataset with this reading is. TOKMAP_READ_AUTO maps it on a local file
 * system. An index that is not mapped keeps the file open, unless it is small. */
enum tokmap_status index_open_as(struct index *index, const char *path, enum tokmap_reading reading,
                                 struct tokmap_error *error);
/* Does the same, but leaves the file open: in *fd, which the caller closes, or, with *fd -1, by the index. As long as
 * it is open, no other file of the file system has the index's inode number. *fd is -1 on failure. */
enum tokmap_status index_open_held(struct index *index, const char *path, enum tokmap_reading reading, int *fd,
                                   struct tokmap_error *error);
void index_close(struct index *index);

/* Makes a mapped index one that is read with pread, by its name. If the name is another file by now, the index stays
 * mapped: a file without a name cannot be cut. No other thread may use the index. Statuses: OK, ERROR_IO,
 * ERROR_MEMORY. */
enum tokmap_status index_unmap(struct index *index, struct tokmap_error *error);

/* Makes bytes [at, at + bytes) of index->bytes usable. They stay so. Statuses: OK, ERROR_IO, ERROR_TRUNCATED. */
enum tokmap_status index_read(const struct index *index, uint64_t at, uint64_t bytes, struct tokmap_error *error);
static inline enum tokmap_status index_need(const struct index *index, uint64_t at, uint64_t bytes,
                                            struct tokmap_error *failure)
{
    return index->pages ? index_read(index, at, bytes, failure) : TOKMAP_OK;
}

/* Makes bytes [at, at + bytes) of index->bytes present, mapped or not: a file that was cut, or whose storage fails, is
 * a status then and not a signal. (A kernel before 5.14 cannot do that for a mapping.) Statuses: OK, ERROR_IO,
 * ERROR_TRUNCATED. */
enum tokmap_status index_present(const struct index *index, uint64_t at, uint64_t bytes, struct tokmap_error *error);

/* Reports that a read of the index at byte `at` failed; system: an errno, or ENODATA if the file has become shorter. */
enum tokmap_status index_read_failed(const struct index *index, int system, uint64_t at, struct tokmap_error *error);

/* Returns the number of blocks of tokens. */
static inline uint64_t index_blocks(const struct index *index)
{
    return index->blocks.bytes / sizeof(uint64_t);
}

/* Returns the stored hash of a block of tokens; block < index_blocks(). index_blocks_check() comes first. */
uint64_t index_block_hash(const struct index *index, uint64_t block);

/* Returns whether the index has the hashes of pages of tokens. */
static inline bool index_has_token_pages(const struct index *index)
{
    return index->token_pages.offset != 0;
}

/* Copies the stored hashes of pages [first, first + count) of tokens. The index has them, and so many pages. Raises no
 * signal, also if the index is mapped and was cut, as far as the kernel can populate mappings. Statuses: OK, ERROR_IO,
 * ERROR_TRUNCATED. */
enum tokmap_status index_token_pages(const struct index *index, uint64_t first, uint64_t count, uint32_t *hashes,
                                     struct tokmap_error *error);

/* Asks the storage for them. A hint. */
void index_token_pages_ask(const struct index *index, uint64_t first, uint64_t count);

/* Returns whether the tokens are sealed: compressed in frames, in NAME.bin.zst. */
static inline bool index_is_sealed(const struct index *index)
{
    return index->frames.offset != 0;
}

/* Returns the number of frames of a sealed shard. */
static inline uint64_t index_frames(const struct index *index)
{
    return (index->frames.bytes - sizeof(struct frames_head)) / sizeof(struct frame_entry);
}

/* Returns where the entry of a frame is in the index. */
static inline uint64_t index_frame_at(const struct index *index, uint64_t frame)
{
    return index->frames.offset + sizeof(struct frames_head) + frame * sizeof(struct frame_entry);
}

/* Copies the entries of frames [first, first + count) of a sealed shard, which has so many, as they are stored: nothing
 * in them is checked. Raises no signal, like index_token_pages(). Statuses: OK, ERROR_IO, ERROR_TRUNCATED. */
enum tokmap_status index_frame_entries(const struct index *index, uint64_t first, uint64_t count,
                                       struct frame_entry *entries, struct tokmap_error *error);

/* Asks the storage for the section frames. A hint. */
void index_frames_ask(const struct index *index);

/* Returns the number of blocks of the mask, and the stored hash of one of them. */
static inline uint64_t index_mask_blocks(const struct index *index)
{
    return (index->mask_bytes + BLOCK_BYTES - 1) / BLOCK_BYTES;
}
uint64_t index_mask_hash(const struct index *index, uint64_t block);

/* Checks the hash of the about section, the first time, and returns its text, which lives as long as the index and is
 * not terminated. Statuses: OK, ERROR_CORRUPT; with pread also ERROR_IO, ERROR_TRUNCATED. */
enum tokmap_status index_about(const struct index *index, const char **about, uint64_t *bytes,
                               struct tokmap_error *error);

/* Returns the path of the file with the tokens, as the store section says it (store.offset is not 0), or NULL without
 * memory. The caller frees it. */
char *index_store_path(const struct index *index);

/* Computes the content id as FORMAT.md defines it. */
void index_content_id(uint32_t width, uint64_t tokens, uint64_t documents, uint64_t blocks_hash,
                      uint64_t documents_hash, uint8_t content[16]);

#endif
