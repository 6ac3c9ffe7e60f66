/* name_kind.h - what the name of a file says about its content. */
#ifndef TOKMAP_CORPUS_NAME_KIND_H
#define TOKMAP_CORPUS_NAME_KIND_H

/* The ending decides, before that of a compression. TABLE: .csv, .tsv. MIXED: standard input, devices, and .json, which
 * contain text or records. WARC: .warc, .wet, and others of the kind. TEXT: all other names. */
enum name_kind { NAME_TEXT, NAME_JSONL, NAME_TABLE, NAME_MIXED, NAME_PARQUET, NAME_WARC };
enum name_kind name_kind_of(const char *path);

/* Returns the ending of the name, with its dot and with that of a compression, such as ".jsonl.zst", or "" if it has
 * none. */
const char *name_ending(const char *path);

#endif
