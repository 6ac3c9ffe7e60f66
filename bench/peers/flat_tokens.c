/* SPDX-License-Identifier: MIT */
/* flat_tokens.c - see flat_tokens.h. */
#include "flat_tokens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "harness/bench_data.h"
#include "platform/os.h"

#define PART_TOKENS ((uint64_t)1 << 20) /* tokens that are copied at a time */
#define PROBE_TOKENS ((uint64_t)1024)   /* tokens that are compared at both ends of a file */

/* Returns whether `count` tokens from `first` are in the file where a flat file has them. */
static bool part_is_flat(const struct tokmap_dataset *dataset, int fd, uint64_t width, uint64_t first, uint64_t count)
{
    uint8_t theirs[PROBE_TOKENS * 4], ours[PROBE_TOKENS * 4];
    struct tokmap_error error = {0};
    const size_t bytes = (size_t)(count * width);
    size_t got = 0;
    return !tokmap_dataset_copy(dataset, first, count, ours, &error) &&
           !os_pread(fd, theirs, bytes, first * width, &got) && got == bytes && !memcmp(theirs, ours, bytes);
}

static bool file_is_flat(const struct tokmap_dataset *dataset, const char *path, const struct tokmap_dataset_info *info)
{
    struct os_stat stat;
    int fd;
    const uint64_t count = min64(info->tokens, PROBE_TOKENS);
    if (info->shards != 1 || os_open(path, OS_READ, &fd))
        return false;
    const bool flat = !os_fstat(fd, &stat) && stat.bytes == info->tokens * info->width &&
                      part_is_flat(dataset, fd, info->width, 0, count) &&
                      part_is_flat(dataset, fd, info->width, info->tokens - count, count);
    os_close(fd);
    return flat;
}

static int copy_part(struct bench *bench, const struct tokmap_dataset *dataset, int fd, void *buffer, uint64_t first,
                     uint64_t count, uint64_t width, const char *path)
{
    struct tokmap_error error = {0};
    if (tokmap_dataset_copy(dataset, first, count, buffer, &error))
        return bench_failed(bench, &error);
    const int system = os_write(fd, buffer, (size_t)(count * width));
    return system ? bench_failed_system(bench, system, path,
                                        "The copy of the tokens for other systems cannot be written; name a folder "
                                        "with more space with --dir.")
                  : CLI_DONE;
}

static int tokens_copy(struct bench *bench, const struct tokmap_dataset *dataset,
                       const struct tokmap_dataset_info *info, char path[BENCH_PATH])
{
    int fd = -1;
    int result = made_file(bench, "flat.bin", path);
    const int system = result ? 0 : os_open(path, OS_WRITE_NEW, &fd);
    if (result)
        return result;
    if (system)
        return bench_failed_system(bench, system, path, "The copy of the tokens for other systems cannot be created.");
    char size[32];
    struct cli_progress progress;
    void *buffer = malloc((size_t)(PART_TOKENS * info->width));
    result = buffer ? CLI_DONE : bench_no_memory(bench);
    bench_say(bench, "copying the tokens (%s) into one flat file for other systems",
              cli_bytes(info->tokens * info->width, size));
    cli_progress_start(&progress, "copying", info->tokens * info->width, bench->options.json);
    for (uint64_t at = 0; !result && at < info->tokens; at += PART_TOKENS) {
        result = copy_part(bench, dataset, fd, buffer, at, min64(PART_TOKENS, info->tokens - at), info->width, path);
        cli_progress_update(&progress, at * info->width);
        if (bench_stopped())
            result = CLI_FAILED;
    }
    cli_progress_end(&progress);
    free(buffer);
    os_close(fd);
    return result;
}

/* Writes the paths of the files of tokens, a line each. */
static int files_list(struct bench *bench, const struct tokmap_dataset *dataset, uint64_t shards, char path[BENCH_PATH])
{
    int fd = -1;
    int result = made_file(bench, "files.list", path);
    int system = result ? 0 : os_open(path, OS_WRITE_NEW, &fd);
    for (uint64_t i = 0; i < shards && !result && !system; i++) {
        struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
        struct tokmap_error error = {0};
        if (tokmap_dataset_shard(dataset, i, &shard, &error)) {
            result = bench_failed(bench, &error);
        } else {
            system = os_write(fd, shard.tokens_path, strlen(shard.tokens_path));
            if (!system)
                system = os_write(fd, "\n", 1);
        }
    }
    if (fd >= 0)
        os_close(fd);
    return system ? bench_failed_system(bench, system, path, "The list of the dataset's files cannot be written.")
                  : result;
}

int flat_tokens_open(struct bench *bench, struct flat_tokens *flat)
{
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    struct tokmap_shard_info first = TOKMAP_SHARD_INFO_INIT;
    struct tokmap_dataset *dataset = NULL;
    memset(flat, 0, sizeof *flat);
    int result = dataset_open(bench, TOKMAP_READ_PREAD, &dataset);
    if (!result)
        result = dataset_get_info(bench, dataset, &info, &first);
    if (!result) {
        flat->width = info.width;
        flat->tokens = info.tokens;
        flat->eod = info.eod_id;
        if (file_is_flat(dataset, first.tokens_path, &info) && strlen(first.tokens_path) < sizeof flat->path)
            (void)snprintf(flat->path, sizeof flat->path, "%s", first.tokens_path);
        else
            result = tokens_copy(bench, dataset, &info, flat->path);
    }
    if (!result)
        result = files_list(bench, dataset, info.shards, flat->files);
    tokmap_dataset_close(dataset);
    return result;
}
