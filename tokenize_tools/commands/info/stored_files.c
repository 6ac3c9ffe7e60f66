/* stored_files.c - see stored_files.h. */
#include "stored_files.h"

#include <stdio.h>
#include <string.h>

#include "format/shard_file.h"
#include "platform/os.h"

/* Returns true if a path is that of sealed tokens, or of such a file while it is replaced. */
static bool is_sealed_name(const char *path)
{
    struct shard_name found;
    return shard_file_find(path, strlen(path), &found) && found.file == SHARD_SEALED &&
           (found.state == SHARD_FINAL || found.state == SHARD_REPLACED);
}

void stored_files_add(struct stored_files *files, const struct tokmap_shard_info *shard)
{
    struct os_stat found;
    files->index_bytes += shard->index_bytes;
    if (!shard->tokens_path || !is_sealed_name(shard->tokens_path))
        return;
    files->sealed++;
    if (!os_stat(shard->tokens_path, &found))
        files->sealed_bytes += found.bytes;
}

static void row(struct cli_table *table, const char *name, const char *text)
{
    const char *const cells[] = {name, text};
    cli_table_row(table, cells);
}

void stored_files_rows(const struct stored_files *files, const struct tokmap_dataset_info *info,
                       struct cli_table *table)
{
    char text[192], bytes[32], count[32], shards[64];
    row(table, "token files", info->shards ? cli_bytes(info->tokens * info->width, bytes) : "none (computed)");
    if (files->sealed) {
        snprintf(text, sizeof text, "%s of %s, %s on disk", cli_count(files->sealed, count),
                 cli_counted(info->shards, "shard", shards), cli_bytes(files->sealed_bytes, bytes));
        row(table, "sealed", text);
    }
    if (info->shards)
        row(table, "indexes",
            info->identity == TOKMAP_IDENTITY_SAMPLED ? "none of tokmap" : cli_bytes(files->index_bytes, bytes));
}

void stored_files_json(const struct stored_files *files, struct cli_json *json)
{
    cli_json_number(json, "sealed_shards", files->sealed);
    cli_json_number(json, "index_bytes", files->index_bytes);
}
