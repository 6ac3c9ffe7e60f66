/* SPDX-License-Identifier: MIT */
/* datatrove.c - see datatrove.h. */
#include "datatrove.h"

#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "text/decimal.h"

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
