/* SPDX-License-Identifier: MIT */
/* llmc.c - see llmc.h. */
#include "llmc.h"

#include "common/bytes.h"
#include "common/error.h"
#include "foreign_name.h"

#define EVALUATION_MAGIC 20240522

bool llmc_is(const uint8_t *head, size_t bytes)
{
    if (bytes < 8)
        return false;
    const uint32_t magic = load32(head), version = load32(head + 4);
    return (magic == LLMC_GPT2_MAGIC && version == LLMC_GPT2_VERSION) ||
           (magic == LLMC_LLAMA3_MAGIC && version == LLMC_LLAMA3_VERSION);
}

enum tokmap_status llmc_parse(struct foreign_layout *layout, const char *path, const uint8_t *head, size_t bytes,
                              uint64_t file_bytes, struct tokmap_error *error)
{
    const uint32_t magic = bytes >= 4 ? load32(head) : 0;
    if (magic == EVALUATION_MAGIC)
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, 0,
                         "this is an evaluation file of llm.c (multiple-choice questions), which is not a stream of "
                         "tokens; name a training or validation file");
    if (magic != LLMC_GPT2_MAGIC && magic != LLMC_LLAMA3_MAGIC)
        return error_set(error, TOKMAP_ERROR_FORMAT, path, 0,
                         "this is not a token file of llm.c (it does not begin with the magic number %d or %d); if its "
                         "tokens have no header, name it " FOREIGN_RAW_FORM,
                         LLMC_GPT2_MAGIC, LLMC_LLAMA3_MAGIC);
    if (bytes < LLMC_HEAD_BYTES)
        return error_set(error, TOKMAP_ERROR_TRUNCATED, path, bytes,
                         "the file ends inside the header of %d bytes; copy or make the file again", LLMC_HEAD_BYTES);
    const uint32_t version = load32(head + 4),
                   wanted = magic == LLMC_GPT2_MAGIC ? LLMC_GPT2_VERSION : LLMC_LLAMA3_VERSION;
    if (version != wanted)
        return error_set(error, TOKMAP_ERROR_VERSION, path, 4,
                         "the header has version %u, but tokmap reads version %u of this kind of file; make the file "
                         "again with the current script of llm.c",
                         version, wanted);
    const uint32_t tokens = load32(head + 8);
    if (tokens >> 31)
        return error_set(error, TOKMAP_ERROR_CORRUPT, path, 8,
                         "the header counts a negative number of tokens (%d); copy or make the file again",
                         (int32_t)tokens);
    *layout = (struct foreign_layout){
        .element = magic == LLMC_GPT2_MAGIC ? ELEMENT_U16 : ELEMENT_U32,
        .offset = LLMC_HEAD_BYTES,
        .tokens = tokens,
        .eod_id = TOKMAP_NO_ID,
        .bos_id = magic == LLMC_GPT2_MAGIC ? 50256 : 128000,
    };
    layout->bytes = LLMC_HEAD_BYTES + (uint64_t)tokens * element_bytes(layout->element);
    if (file_bytes != layout->bytes)
        return error_set(error, TOKMAP_ERROR_TRUNCATED, path, min64(file_bytes, layout->bytes),
                         "the file is %" PRIu64 " bytes long, but its header counts %u tokens of %u bytes, which is "
                         "%" PRIu64 " bytes with the header; copy or make the file again",
                         file_bytes, tokens, element_bytes(layout->element), layout->bytes);
    return TOKMAP_OK;
}
