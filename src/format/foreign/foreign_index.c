/* foreign_index.c - see foreign_index.h. */
#include "foreign_index.h"

#include <assert.h>

#include "common/bytes.h"
#include "common/error.h"

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
    const uint8_t *map = index->bytes.map;
    assert(map || !index->bytes.count);
    if (index->is_megatron)
        return megatron_check(&index->megatron, index->bytes.path, map, error);
    uint64_t before = 0;
    for (uint64_t i = 0; i < index->count; i++) {
        const uint64_t end = load64(map + 8 * i);
        if (end < before || end > index->tokens)
            return bad_end(index, i, before, end, error);
        before = end;
    }
    return TOKMAP_OK;
}
