/* SPDX-License-Identifier: MIT */
/* special_file.c - see special_file.h. */
#include "special_file.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "bpe/bpe_model.h"
#include "common/error.h"
#include "vocabulary_file.h"

void special_list_free(struct special_list *list)
{
    free(list->tokens);
    json_file_end(&list->file);
    free(list->text);
    memset(list, 0, sizeof *list);
}

enum tokmap_status special_list_add(struct special_list *list, const char *text, size_t bytes, uint32_t id,
                                    struct tokmap_error *error)
{
    assert(list->count <= list->room && bytes <= UINT32_MAX);
    if (list->count == list->room) {
        const uint32_t room = list->room ? 2 * list->room : 64;
        struct added_token *grown = realloc(list->tokens, room * sizeof *grown);
        if (!grown)
            return error_set_memory(error, "special tokens", room * sizeof *grown);
        list->tokens = grown;
        list->room = room;
    }
    struct added_token *token = &list->tokens[list->count++];
    memset(token, 0, sizeof *token);
    token->text = token->match = (const uint8_t *)text;
    token->bytes = token->match_bytes = (uint32_t)bytes;
    token->id = id;
    token->special = true;
    return TOKMAP_OK;
}

static bool list_parse(struct special_list *list)
{
    struct json_file *file = &list->file;
    struct json_string name;
    const uint8_t *text;
    size_t bytes;
    uint64_t id;
    for (json_enter_object(&file->scan); json_member(&file->scan, &name);) {
        if (!json_file_decode(file, &name, &text, &bytes) || !json_unsigned(&file->scan, &id))
            return false;
        if (!bytes || bytes > UINT16_MAX || id >= BPE_IDS)
            return json_file_refuse(file, TOKMAP_ERROR_LIMIT,
                                    "a special token has %zu bytes and the id %llu; it must have "
                                    "1 to 65535 bytes and an id below %u",
                                    bytes, (unsigned long long)id, BPE_IDS);
        for (uint32_t i = 0; i < list->count; i++) {
            const struct added_token *token = &list->tokens[i];
            if (token->id == id)
                return json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                                        "two special tokens have the id %u; give each its own", (unsigned)id);
            if (token->bytes == bytes && !memcmp(token->text, text, bytes))
                return json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                                        "the special token '%.*s' has two ids, %u and %u; remove one of them",
                                        shown(bytes), (const char *)text, (unsigned)token->id, (unsigned)id);
        }
        file->status = special_list_add(list, (const char *)text, bytes, (uint32_t)id, file->error);
        if (file->status)
            return false;
    }
    return json_end(&file->scan);
}

enum tokmap_status special_list_read(struct special_list *list, const char *path, struct tokmap_error *error)
{
    const enum tokmap_status status = vocabulary_file_read(path, &list->text, &list->text_bytes, error);
    if (status)
        return status;
    const bool begun = json_file_begin(&list->file, path, list->text, (size_t)list->text_bytes, error);
    list->file.content = "a JSON object that maps the texts of special tokens to ids";
    if (begun)
        (void)list_parse(list);
    return json_file_status(&list->file);
}
