/* SPDX-License-Identifier: MIT */
#include "foreign_formats.h"

#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "foreign_index.h"
#include "format/layout.h"
#include "npy.h"
#include "text/decimal.h"

/* ---- llm.c ---- */

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

/* ---- tokens without a header ---- */

/* Returns the name of the format that the first bytes of a file belong to, or NULL. */
static const char *other_format(const uint8_t *head, size_t bytes)
{
    if (npy_is(head, bytes))
        return "NumPy array, which is named npy:PATH";
    if (llmc_is(head, bytes))
        return "token file of llm.c, which is named llmc:PATH";
    if (megatron_is(head, bytes))
        return "Megatron index, which is named megatron:PATH";
    if (bytes >= 8 && !memcmp(head, INDEX_MAGIC, 8))
        return "tokmap index, whose shard is named by its prefix";
    return NULL;
}

enum tokmap_status raw_parse(struct foreign_layout *layout, enum foreign_kind kind, const struct foreign_words *words,
                             const char *path, const uint8_t *head, size_t bytes, uint64_t file_bytes,
                             struct tokmap_error *error)
{
    const char *name = foreign_kind_name(kind), *other = words->offset ? NULL : other_format(head, bytes);
    if (!words->width)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, path, TOKMAP_NO_OFFSET,
                         "%s files have no header that says how wide their tokens are; add the word width, for example "
                         "%s:PATH,width=2,eod=50256",
                         name, name);
    if (other)
        return error_set(error, TOKMAP_ERROR_FORMAT, path, 0,
                         "this is a %s; its header would be read as tokens (add offset=BYTES to read the bytes after "
                         "it)",
                         other);
    if (words->offset > file_bytes)
        return error_set(error, TOKMAP_ERROR_TRUNCATED, path, file_bytes,
                         "the file is %" PRIu64 " bytes long, but its tokens would begin at byte %" PRIu64
                         "; correct the word offset",
                         file_bytes, words->offset);
    const uint64_t token_bytes = file_bytes - words->offset;
    if (file_bytes > FOREIGN_BYTES_MAX || token_bytes % words->width)
        return error_set(error, TOKMAP_ERROR_TRUNCATED, path, file_bytes - token_bytes % words->width,
                         "the file has %" PRIu64 " bytes of tokens, which is not a multiple of %" PRIu64
                         "; correct the word width, or copy the file again",
                         token_bytes, words->width);
    *layout = (struct foreign_layout){
        element_of_bytes(words->width),
        words->offset,
        token_bytes / words->width,
        file_bytes,
        TOKMAP_NO_ID,
        TOKMAP_NO_ID,
    };
    return TOKMAP_OK;
}

/* ---- OLMo ---- */

enum tokmap_status olmo_parse_line(const char *path, uint64_t line, const char *text, size_t bytes, uint64_t before,
                                   uint64_t tokens, uint64_t *end, struct tokmap_error *error)
{
    const char *at = text, *stop = text + bytes;
    uint64_t start;
    if (!decimal_read(&at, stop, &start) || at == stop || *at++ != ',' || !decimal_read(&at, stop, end) ||
        (at < stop && *at != ',' && *at != '\r'))
        return error_set_line(error, TOKMAP_ERROR_CORRUPT, path, line,
                              "the line should begin with the first token of a document and its end, START,END; make "
                              "the file again, or remove it and name the EOD with eod=ID");
    if (start != before)
        return error_set_line(error, TOKMAP_ERROR_CORRUPT, path, line,
                              "the document begins at token %" PRIu64 ", but the one before it ends at token %" PRIu64
                              "; make the file again, or remove it and name the EOD with eod=ID",
                              start, before);
    if (*end < start || *end > tokens)
        return error_set_line(error, TOKMAP_ERROR_CORRUPT, path, line,
                              "the document ends at token %" PRIu64 ", but begins at token %" PRIu64
                              ", and the file has %" PRIu64 " tokens; make the file again, or remove it and name the "
                              "EOD with eod=ID",
                              *end, start, tokens);
    return TOKMAP_OK;
}

enum tokmap_status olmo_check_end(const char *path, uint64_t line, uint64_t end, uint64_t tokens,
                                  struct tokmap_error *error)
{
    if (end == tokens)
        return TOKMAP_OK;
    return error_set_line(error, TOKMAP_ERROR_TRUNCATED, path, line,
                          "the list of documents ends here, at token %" PRIu64 ", but the file has %" PRIu64
                          " tokens; copy or make the list again, or remove it and name the EOD with eod=ID",
                          end, tokens);
}

/* ---- datatrove ---- */

#define REMEDY "copy the files of this .ds again from where datatrove wrote them"

/* Returns the bytes of a line without its end. */
static size_t line_bytes(const char *text, size_t bytes)
{
    const char *end = memchr(text, '\n', bytes);
    size_t length = end ? (size_t)(end - text) : bytes;
    while (length && (text[length - 1] == '\r' || text[length - 1] == ' '))
        length--;
    return length;
}

enum tokmap_status datatrove_parse(const char *path, const char *text, size_t bytes, uint64_t *width, uint64_t *tokens,
                                   struct tokmap_error *error)
{
    const size_t first = line_bytes(text, bytes);
    const char *bar = memrchr(text, '|', first);
    *tokens = TOKMAP_NO_ID;
    if (!bar || !decimal_parse(bar + 1, first - (size_t)(bar + 1 - text), width) || (*width != 2 && *width != 4))
        return error_set_line(error, TOKMAP_ERROR_CORRUPT, path, 1,
                              "the line should be TOKENIZER|2 or TOKENIZER|4, the bytes of a token; correct it, or "
                              "remove the file and add the word width=2 or width=4 to the name");
    const char *second = memchr(text, '\n', bytes);
    if (!second || ++second == text + bytes)
        return TOKMAP_OK;
    const size_t length = line_bytes(second, bytes - (size_t)(second - text));
    if (length && !decimal_parse(second, length, tokens))
        return error_set_line(error, TOKMAP_ERROR_CORRUPT, path, 2,
                              "the line should be the number of tokens in decimal digits; " REMEDY);
    return TOKMAP_OK;
}

enum tokmap_status datatrove_layout(struct foreign_layout *layout, const char *path, uint64_t width, uint64_t tokens,
                                    uint64_t file_bytes, struct tokmap_error *error)
{
    const enum element element = element_of_bytes(width);
    const uint32_t bytes = element_bytes(element);
    if (!width)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, path, TOKMAP_NO_OFFSET,
                         "this file has no .metadata beside it that says how wide its tokens are; add the word "
                         "width=2 or width=4 to the name");
    if (file_bytes > FOREIGN_BYTES_MAX || file_bytes % bytes)
        return error_set(error, TOKMAP_ERROR_TRUNCATED, path, file_bytes - file_bytes % bytes,
                         "the file is %" PRIu64 " bytes long, which is not a multiple of %u, the bytes of a token; "
                         "" REMEDY,
                         file_bytes, bytes);
    if (tokens != TOKMAP_NO_ID && tokens != file_bytes / bytes)
        return error_set(error, TOKMAP_ERROR_TRUNCATED, path, tokens < file_bytes / bytes ? tokens * bytes : file_bytes,
                         "the file has %" PRIu64 " tokens of %u bytes, but its .metadata counts %" PRIu64 "; " REMEDY,
                         file_bytes / bytes, bytes, tokens);
    *layout = (struct foreign_layout){element, 0, file_bytes / bytes, file_bytes, TOKMAP_NO_ID, TOKMAP_NO_ID};
    return TOKMAP_OK;
}

enum tokmap_status datatrove_check_index(const char *path, uint64_t index_bytes, uint64_t last_end, uint64_t tokens,
                                         struct tokmap_error *error)
{
    if (index_bytes % 8)
        return error_set(error, TOKMAP_ERROR_TRUNCATED, path, index_bytes - index_bytes % 8,
                         "the index is %" PRIu64 " bytes long, which is not a multiple of 8, the bytes of a "
                         "document's end; " REMEDY,
                         index_bytes);
    if (!index_bytes && tokens)
        return error_set(error, TOKMAP_ERROR_TRUNCATED, path, 0,
                         "the index is empty, but there are %" PRIu64 " tokens; " REMEDY, tokens);
    if (index_bytes && last_end != tokens)
        return error_set(error, TOKMAP_ERROR_CORRUPT, path, index_bytes - 8,
                         "the last document ends at token %" PRIu64 ", but the file has %" PRIu64 " tokens; " REMEDY,
                         last_end, tokens);
    return TOKMAP_OK;
}
