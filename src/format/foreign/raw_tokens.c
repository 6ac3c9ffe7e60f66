/* SPDX-License-Identifier: MIT */
/* raw_tokens.c - see raw_tokens.h. */
#include "raw_tokens.h"

#include <string.h>

#include "common/error.h"
#include "format/layout.h"
#include "llmc.h"
#include "megatron.h"
#include "npy.h"

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
