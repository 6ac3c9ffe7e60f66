/* SPDX-License-Identifier: MIT */
/* foreign_index.c - see foreign_index.h. */
#include "foreign_index.h"

#include <assert.h>

#include "common/bytes.h"
#include "common/error.h"

enum { ENDS_AT_ONCE = 4096 };

static enum tokmap_status bad_end(const struct foreign_index *index, uint64_t document, uint64_t start, uint64_t end,
                                  struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_CORRUPT, index->bytes.path, 8 * document,
                     "document %" PRIu64 " ends at token %" PRIu64 ", but begins at token %" PRIu64
                     ", and the file has %" PRIu64 " tokens; copy the files of this .ds again from where datatrove "
                     "wrote them",
                     document, end, start, index->tokens);
}

enum tokmap_status foreign_index_end(const struct foreign_index *index, uint64_t document, uint64_t *end,
                                     struct tokmap_error *error)
{
    assert(document < index->count);
    uint64_t start = 0;
    if (index->is_megatron)
        return megatron_document_end(&index->megatron, &index->bytes, index->tokens, document, end, error);
    enum tokmap_status status = foreign_load64(&index->bytes, 8 * document, end, error);
    if (status || *end <= index->tokens)
        return status;
    status = document ? foreign_load64(&index->bytes, 8 * (document - 1), &start, error) : TOKMAP_OK;
    return status ? status : bad_end(index, document, start, *end, error);
}

enum tokmap_status foreign_index_check(const struct foreign_index *index, struct tokmap_error *error)
{
    uint64_t ends[ENDS_AT_ONCE], before = 0;
    if (index->is_megatron)
        return megatron_check(&index->megatron, &index->bytes, error);
    for (uint64_t i = 0; i < index->count; i += ENDS_AT_ONCE) {
        const size_t count = (size_t)min64(ENDS_AT_ONCE, index->count - i);
        const enum tokmap_status status = foreign_load(&index->bytes, 8 * i, ends, 8 * count, error);
        if (status)
            return status;
        for (size_t j = 0; j < count; before = ends[j++])
            if (ends[j] < before || ends[j] > index->tokens)
                return bad_end(index, i + j, before, ends[j], error);
    }
    return TOKMAP_OK;
}
