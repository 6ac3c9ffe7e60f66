/* stored_files.h - what the files of a dataset take on disk, as `tokmap info` prints it. */
#ifndef TOKMAP_COMMANDS_INFO_STORED_FILES_H
#define TOKMAP_COMMANDS_INFO_STORED_FILES_H

#include <stdint.h>

#include "cli/cli.h"
#include "tokmap/tokmap.h"

struct stored_files {
    uint64_t index_bytes;
    uint64_t sealed;       /* shards that are sealed, */
    uint64_t sealed_bytes; /* and the bytes of their tokens on disk */
};

void stored_files_add(struct stored_files *files, const struct tokmap_shard_info *shard);
void stored_files_rows(const struct stored_files *files, const struct tokmap_dataset_info *info,
                       struct cli_table *table);
void stored_files_json(const struct stored_files *files, struct cli_json *json);

#endif
