/* SPDX-License-Identifier: MIT */
/*
 * manifest.h - the text file that names the shards of a dataset, read and written. FORMAT.md has its syntax.
 *
 * Version 1 has names only. Version 2 can also state what a reader would otherwise learn by opening each shard:
 *
 *     # tokmap manifest 2
 *     # shards: width=2 vocabulary=50257 eod=50256 bos=none tokenizer=none pages=yes sealed=no
 *     web-00000<TAB>1000000 1203 50256 49152 0f1e2d3c4b5a69788796a5b4c3d2e1f0
 *
 * A shard whose properties have no words here, such as one whose tokens are in a file of another project, has a line
 * with its name only, and is opened with the dataset.
 */
#ifndef TOKMAP_FORMAT_MANIFEST_H
#define TOKMAP_FORMAT_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>

#include "common/bytes_buffer.h"
#include "index_reader.h"

/* What the about section of an index says that decides how a shard may be used. Empty texts: it does not say it. */
struct about_facts {
    char tokenizer[64]; /* the tokenizer's name */
    char set[64];       /* of a split: the name of the shard's set */
    uint64_t sets;      /* of a split: a hash of the names of its sets; otherwise 0 */
};

/* Reads them. What an index does not have, or has only damaged, is empty: `tokmap verify` reports the damage. */
void about_facts_read(const struct index *index, struct about_facts *facts);

#define MANIFEST_BYTES_MOST ((uint64_t)256 << 20)

/* What a line "# shards:" states of all shards until the next such line. */
struct manifest_group {
    uint32_t width; /* 0: nothing is stated */
    bool pages, sealed;
    uint64_t first; /* the first shard after the line, counted from 0 on; it may belong to a later group */
    uint64_t vocabulary, eod_id, bos_id;
    uint8_t tokenizer[16]; /* zero if it is unknown */
    uint64_t sets;         /* as in struct about_facts; 0 if the shards are not of a split */
    char set[sizeof((struct about_facts *)0)->set];
};

/* A line that names a shard. */
struct manifest_shard {
    uint64_t tokens, documents, index_bytes;
    uint8_t content[16];
    uint64_t mask; /* the hash of the section streams; 0: the shard has no mask */
    uint32_t largest_id;
    uint32_t name;  /* offset of the name in `names` */
    uint32_t line;  /* from 1 on */
    uint32_t group; /* MANIFEST_UNSTATED: only the name is stated */
};

#define MANIFEST_UNSTATED UINT32_MAX

struct manifest {
    char *path; /* of the file */
    struct manifest_shard *shards;
    uint64_t count, stated; /* shards; with more than their name */
    struct manifest_group *groups;
    uint32_t group_count;
    struct bytes_buffer names; /* each ends with a zero byte */
    uint64_t lines;            /* in the text */
};

/* Reads the text of a manifest to the end of *text, which the caller frees, also after a failure.
 * Statuses: OK, ERROR_NOT_FOUND, ERROR_IO, ERROR_LIMIT (the file is too large), ERROR_MEMORY. */
enum tokmap_status manifest_read(const char *path, struct bytes_buffer *text, struct tokmap_error *error);

/* Checks the first line of a manifest: sets *version to 1 or 2. Statuses: OK, ERROR_FORMAT (it is not a manifest;
 * without a message), ERROR_VERSION. */
enum tokmap_status manifest_version(const char *path, const char *text, size_t bytes, uint32_t *version,
                                    struct tokmap_error *error);

/* Reads the text of a file that begins like a manifest. The caller frees *manifest with every status. Statuses: OK,
 * ERROR_NOT_FOUND (no shard is named), ERROR_FORMAT, ERROR_VERSION, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status manifest_parse(struct manifest *manifest, const char *path, const char *text, uint64_t bytes,
                                  struct tokmap_error *error);
void manifest_free(struct manifest *manifest);

/* Returns true for a line "# shards:", which states properties of shards and is no comment. */
bool manifest_line_states(const char *line, size_t bytes);

static inline bool manifest_states_all(const struct manifest *manifest)
{
    return manifest->count && manifest->stated == manifest->count;
}

static inline const char *manifest_name(const struct manifest *manifest, const struct manifest_shard *shard)
{
    return (const char *)manifest->names.bytes + shard->name;
}

/* Returns the path of the index of a shard, or NULL without memory. The caller frees it. */
char *manifest_index_path(const struct manifest *manifest, const struct manifest_shard *shard);

/* Compares an index that is open with its line, which states more than the name. The error names the line. Statuses:
 * OK, ERROR_MISMATCH. */
enum tokmap_status manifest_compare(const struct manifest *manifest, const struct manifest_shard *shard,
                                    const struct index *index, struct tokmap_error *error);

/* The text of a manifest, version 2, that is being written; zeroed before the first call. */
struct manifest_text {
    struct bytes_buffer text;
    struct manifest_group group; /* of the last line that states one */
    uint64_t about;              /* hash of the section about of the last shard, */
    struct about_facts facts;    /* facts that it has */
};

/* Begins the text, which otherwise the first shard does. Returns false without memory. */
bool manifest_text_begin(struct manifest_text *text);

/* Adds the line of a shard, without the ending of its index, as the file's readers shall see its name. index: of that
 * shard, open; NULL: only the name is stated. Returns false without memory. */
bool manifest_text_add(struct manifest_text *text, const char *name, const struct index *index);
void manifest_text_free(struct manifest_text *text);

#endif
