/*
 * sp_file.h - SentencePiece's .model files: a protocol buffer (ModelProto) of pieces with scores, and of how text is
 * normalized. BPE models are read; what changes ids and is not reproduced exactly is refused by the field's name.
 */
#ifndef TOKMAP_VOCABULARY_SP_FILE_H
#define TOKMAP_VOCABULARY_SP_FILE_H

#include "sentencepiece/sp_source.h"
#include "tokmap/tokmap.h"

/* Whether a file is such a model, as far as its first bytes tell. */
bool sp_file_is(const uint8_t *bytes, uint64_t count);

struct sp_file {
    struct sp_source source; /* into what is below */
    uint8_t *bytes;
    uint32_t *offsets;
    float *scores;
    uint8_t *kinds;
    uint32_t control_count;
    const uint8_t *unk_surface; /* what unk is decoded to, in the file's bytes; NULL: what SentencePiece takes then */
    uint32_t unk_surface_bytes;
    uint8_t fingerprint[16]; /* of all that decides ids */
};

/* Statuses: OK, ERROR_FORMAT (offset: where in the file), ERROR_UNSUPPORTED, ERROR_LIMIT, ERROR_MEMORY; sp_file_free
 * after any. */
enum tokmap_status sp_file_read(struct sp_file *file, const char *path, const uint8_t *bytes, uint64_t count,
                                struct tokmap_error *error);
void sp_file_free(struct sp_file *file);

#endif
