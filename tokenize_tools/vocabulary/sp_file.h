/*
 * sp_file.h - reads SentencePiece's .model files.
 *
 * Such a file is a protocol buffer (ModelProto): pieces with scores, and the settings of the trainer and the
 * normalizer. tokmap reads BPE models. A setting that changes ids in a way that it does not reproduce exactly is
 * refused by the field's name.
 */
#ifndef TOKMAP_VOCABULARY_SP_FILE_H
#define TOKMAP_VOCABULARY_SP_FILE_H

#include "sentencepiece/sp_source.h"
#include "tokmap/tokmap.h"

/* Returns whether a file begins like a model: with a piece. */
bool sp_file_is(const uint8_t *bytes, uint64_t count);

struct sp_file {
    struct sp_source source; /* complete; points to the arrays below */
    uint8_t *bytes;
    uint32_t *offsets;
    float *scores;
    uint8_t *kinds; /* enum sp_kind of each piece */
    uint32_t control_count;
    const uint8_t
        *unk_surface; /* the text of the unknown token when decoded, within the bytes of the file; NULL: the default */
    uint32_t unk_surface_bytes;
    uint8_t fingerprint[16]; /* of all that decides ids */
};

/* Reads the `count` bytes of a model, which must outlive *file, as must path, its name in messages. Call
 * sp_file_free after success and after failure. Statuses: OK, ERROR_FORMAT (with the offset of the damage),
 * ERROR_UNSUPPORTED, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status sp_file_read(struct sp_file *file, const char *path, const uint8_t *bytes, uint64_t count,
                                struct tokmap_error *error);
void sp_file_free(struct sp_file *file);

#endif
