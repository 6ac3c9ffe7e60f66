/* SPDX-License-Identifier: MIT */
/* manifest_file.c - see manifest_file.h. */
#include "manifest_file.h"

#include <stdlib.h>
#include <string.h>

#include "cli/run_name.h"
#include "common/bytes.h"
#include "common/error.h"
#include "format/manifest.h"
#include "output_file.h"
#include "platform/os.h"

/* Adds the line of a shard, with what its index says if `state` says so. */
static enum tokmap_status line_add(struct manifest_text *made, const struct manifest *manifest,
                                   const struct manifest_shard *shard, bool state, struct tokmap_error *error)
{
    struct index index;
    char *path = manifest_index_path(manifest, shard);
    enum tokmap_status status = path ? TOKMAP_OK : error_set_memory(error, "the manifest", 0);
    if (!status && state)
        status = index_open_as(&index, path, TOKMAP_READ_PREAD, error);
    if (!status) {
        if (!manifest_text_add(made, manifest_name(manifest, shard), state ? &index : NULL))
            status = error_set_memory(error, "the manifest", 0);
        if (state)
            index_close(&index);
    }
    free(path);
    return status;
}

/* Makes the new text from the old one. Comments stay where they are. */
static enum tokmap_status text_make(struct manifest_text *made, const struct manifest *manifest,
                                    const struct bytes_buffer *text, bool state, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    const char *at = (const char *)text->bytes, *end = at + text->count;
    uint64_t number = 0, line = 0;
    if (!manifest_text_begin(made))
        return error_set_memory(error, "the manifest", 0);
    while (at < end && !status) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const size_t bytes = (size_t)((stop ? stop : end) - at);
        if (++line > 1 && number < manifest->count && manifest->shards[number].line == line)
            status = line_add(made, manifest, &manifest->shards[number++], state, error);
        else if (line > 1 && !manifest_line_states(at, bytes) &&
                 (!bytes_append(&made->text, at, bytes) || !bytes_append(&made->text, "\n", 1)))
            status = error_set_memory(error, "the manifest", 0);
        at += bytes + 1;
    }
    return status;
}

static enum tokmap_status file_write(const char *path, const struct bytes_buffer *text, struct tokmap_error *error)
{
    struct output_file file = {.fd = -1};
    enum tokmap_status status = output_file_open(&file, path, true, error);
    if (status)
        return status;
    const int system = os_pwrite(file.fd, text->bytes, text->count, 0);
    if (!system)
        return output_file_commit(&file, error);
    status = error_set_system(error, system, file.partial, TOKMAP_NO_OFFSET, "the manifest cannot be written");
    output_file_abort(&file);
    return status;
}

static enum tokmap_status rewrite(const char *path, bool state, bool *stated, struct tokmap_error *error)
{
    struct bytes_buffer text = {0};
    struct manifest manifest = {.count = 0};
    struct manifest_text made = {.about = 0};
    enum tokmap_status status = manifest_read(path, &text, error);
    if (!status)
        status = manifest_parse(&manifest, path, (const char *)text.bytes, text.count, error);
    *stated = !status && manifest.group_count;
    if (!status && (state || *stated)) {
        status = text_make(&made, &manifest, &text, state, error);
        if (!status)
            status = file_write(path, &made.text, error);
    }
    manifest_text_free(&made);
    manifest_free(&manifest);
    bytes_free(&text);
    return status;
}

enum tokmap_status manifest_file_state(const char *path, struct tokmap_error *error)
{
    bool stated;
    return rewrite(path, true, &stated, error);
}

enum tokmap_status manifest_file_clear(const char *path, bool *stated, struct tokmap_error *error)
{
    *stated = false;
    return cli_is_manifest(path) ? rewrite(path, false, stated, error) : TOKMAP_OK;
}
