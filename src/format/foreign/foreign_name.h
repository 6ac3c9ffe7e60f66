/* SPDX-License-Identifier: MIT */
/*
 * foreign_name.h - the names of other projects' token files: [KIND:]PATH[,WORD=VALUE]...
 *
 * KIND is megatron, llmc, npy, datatrove, olmo, or raw. The words are width=1|2|4|8, offset=BYTES, eod=ID, bos=ID, and
 * vocab=V. They are read from the end of the name, so a path may contain commas and equals signs: reading stops at the
 * first part from the end that is not one of these words with a value in decimal digits. FORMAT.md explains the kinds.
 */
#ifndef TOKMAP_FORMAT_FOREIGN_FOREIGN_NAME_H
#define TOKMAP_FORMAT_FOREIGN_FOREIGN_NAME_H

#include <stdbool.h>
#include <stddef.h>

#include "format/element.h"
#include "tokmap/tokmap.h"

enum foreign_kind {
    FOREIGN_UNNAMED, /* the name has no KIND; a magic tells */
    FOREIGN_MEGATRON,
    FOREIGN_LLMC,
    FOREIGN_NPY,
    FOREIGN_DATATROVE,
    FOREIGN_OLMO,
    FOREIGN_RAW,
};

/* The name that a user of a file without a magic has to write; messages show it. */
#define FOREIGN_RAW_FORM "raw:PATH,width=2,eod=50256 (50256 is the EOD of GPT-2: write your vocabulary's)"

struct foreign_words {
    uint64_t width;  /* bytes of an element; 0 if not given */
    uint64_t offset; /* the byte of the first token */
    bool offset_given;
    uint64_t eod_id;     /* TOKMAP_NO_ID if not given */
    uint64_t bos_id;     /* TOKMAP_NO_ID if not given */
    uint64_t vocabulary; /* 0 if not given */
};

struct foreign_name {
    enum foreign_kind kind;
    const char *path; /* in the name that was parsed; not terminated */
    size_t path_bytes;
    struct foreign_words words;
};

/* Returns the word for a kind ("megatron"); "" for FOREIGN_UNNAMED. */
const char *foreign_kind_name(enum foreign_kind kind);

/* Returns true if the name begins with a KIND and a colon. Opening it never looks for a shard of that name. */
bool foreign_name_has_kind(const char *name);

/* Takes a name apart. The file system is not asked. Statuses: OK, ERROR_ARGUMENT (a word is given twice, its value is
 * not possible, the path is empty, or the kind does not take the word). */
enum tokmap_status foreign_name_parse(struct foreign_name *parsed, const char *name, struct tokmap_error *error);

/* Returns ERROR_ARGUMENT, naming the word, if a kind does not take a word that is given: width and offset are fields of
 * the other formats' headers. */
enum tokmap_status foreign_words_check(const struct foreign_words *words, enum foreign_kind kind, const char *name,
                                       struct tokmap_error *error);

/* What the header of a file says about its tokens. Token i has element_bytes(element) bytes at offset + i *
 * element_bytes(element) of a file of `bytes` bytes. The parsers return this struct only if tokens, element, offset,
 * and bytes agree, so none of these products overflows. */
struct foreign_layout {
    enum element element;
    uint64_t offset;
    uint64_t tokens;
    uint64_t bytes;
    uint64_t eod_id, bos_id; /* ids that the format prescribes; TOKMAP_NO_ID if it prescribes none */
};

#define FOREIGN_BYTES_MAX ((uint64_t)1 << 62) /* of a token file; as for a .bin (FORMAT.md) */

#endif
