/* SPDX-License-Identifier: MIT */
/* olmo.c - see olmo.h. */
#include "olmo.h"

#include "common/error.h"
#include "text/decimal.h"

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
