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

static void tokens_copy(struct bench *bench, const struct opened *data, char path[BENCH_PATH])
{
    const uint64_t tokens = data->info.tokens, width = data->info.width;
    char size[32];
    int fd;
    struct cli_progress progress;
    void *buffer = bench_new(bench, PART_TOKENS, (size_t)width);
    made_file(bench, "flat.bin", path);
    bench_check_system(bench, os_open(path, OS_WRITE_NEW, &fd), path,
                       "The copy of the tokens for other systems cannot be created.");
    bench_say(bench, "copying the tokens (%s) into one flat file for other systems", cli_bytes(tokens * width, size));
    cli_progress_start(&progress, "copying", tokens * width, bench->options.json);
    for (uint64_t at = 0; at < tokens; at += PART_TOKENS) {
        const uint64_t count = min64(PART_TOKENS, tokens - at);
        bench_stop_check(bench);
        bench_check(bench, tokmap_dataset_copy(data->dataset, at, count, buffer, &bench->error));
        bench_check_system(bench, os_write(fd, buffer, (size_t)(count * width)), path,
                           "The copy of the tokens for other systems cannot be written; name a folder with more space "
                           "with --dir.");
        cli_progress_update(&progress, at * width);
    }
    cli_progress_end(&progress);
    free(buffer);
    os_close(fd);
}

/* Writes the paths of the files of tokens, a line each. */
static void files_list(struct bench *bench, const struct opened *data, char path[BENCH_PATH])
{
    struct bytes_buffer list = {.bytes = NULL};
    for (uint64_t i = 0; i < data->info.shards; i++) {
        struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
        bench_check(bench, tokmap_dataset_shard(data->dataset, i, &shard, &bench->error));
        bench_append(bench, &list, "%s\n", shard.tokens_path);
    }
    made_file(bench, "files.list", path);
    made_write(bench, path, list.bytes, list.count, "The list of the dataset's files cannot be written.");
    bytes_free(&list);
}

void flat_tokens_open(struct bench *bench, struct flat_tokens *flat)
{
    const struct opened data = dataset_open(bench, TOKMAP_READ_PREAD);
    const char *path = data.first.tokens_path;
    memset(flat, 0, sizeof *flat);
    flat->width = data.info.width;
    flat->tokens = data.info.tokens;
    flat->eod = data.info.eod_id;
    if (file_is_flat(data.dataset, path, &data.info) && strlen(path) < sizeof flat->path)
        (void)snprintf(flat->path, sizeof flat->path, "%s", path);
    else
        tokens_copy(bench, &data, flat->path);
    files_list(bench, &data, flat->files);
    tokmap_dataset_close(data.dataset);
}
