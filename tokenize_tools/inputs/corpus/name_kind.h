/* SPDX-License-Identifier: MIT */
/* name_kind.h - what the name of a file says about its content. */
#ifndef TOKMAP_CORPUS_NAME_KIND_H
#define TOKMAP_CORPUS_NAME_KIND_H

/* The ending decides, in letters of either case and before that of a compression. JSONL: .jsonl, .ndjson, and others of
 * the kind. JSON: .json, .jsonc, .json5. WARC: .warc, .wet, .wat. BINARY: .arrow, .orc, and others whose files are
 * never text, and .parquet before the ending of a compression. MIXED: standard input and devices, which contain text or
 * records. TEXT: all other names. */
enum name_kind {
    NAME_TEXT,
    NAME_JSONL,
    NAME_JSON,
    NAME_CSV,
    NAME_TSV,
    NAME_MIXED,
    NAME_PARQUET,
    NAME_WARC,
    NAME_BINARY
};
enum name_kind name_kind_of(const char *path);

/* Returns the ending of the name, with its dot and with that of a compression, such as ".jsonl.zst", or "" if it has
 * none. */
const char *name_ending(const char *path);

#endif
