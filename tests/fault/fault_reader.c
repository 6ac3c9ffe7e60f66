/* SPDX-License-Identifier: MIT */
/*
 * fault_reader.c - reads a dataset through the loader and by copying, and continues after failures. test_reading.sh
 * runs it.
 *
 *     fault_reader PREFIX mapped|pread THREADS
 *
 * Prints a hash of everything that it read. If a call fails, it reports the error on standard error and makes the call
 * once more, which tokmap.h allows; opening is tried only once. Exit status: 0 all calls succeeded, 4 some call failed
 * and succeeded the second time, 1 a call failed for good, 3 a failure broke the rules of tokmap.h, 2 misused.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/run_help.h"
#include "tokmap/tokmap.h"

static int failures;

static void report(const char *what, const struct tokmap_error *error)
{
    char text[1500];
    fprintf(stderr, "fault_reader: %s: %s\n", what, tokmap_error_print(error, text, sizeof text));
    if (!error->status || !error->message[0]) {
        fprintf(stderr, "fault_reader: a failure without a status or a message\n");
        exit(3);
    }
    failures++;
}

static uint64_t mix(uint64_t hash, const void *bytes, size_t count)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ at[i]) * 0x100000001b3u;
    return hash;
}

static uint64_t read_rows(struct tokmap_loader *loader, uint64_t seq_len, struct tokmap_out *out, uint64_t hash)
{
    struct tokmap_error error = {0};
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    int again = 0;
    for (;;) {
        enum tokmap_status status = tokmap_loader_next(loader, out, NULL, &batch, &error);
        if (status == TOKMAP_END)
            return hash;
        if (status) {
            report("next", &error);
            if (again++)
                exit(1);
            continue;
        }
        again = 0;
        hash = mix(hash, &batch.step, sizeof batch.step);
        hash = mix(hash, out->inputs, (size_t)(batch.count * seq_len) * sizeof(int32_t));
        hash = mix(hash, out->targets, (size_t)(batch.count * seq_len) * sizeof(int32_t));
        hash = mix(hash, out->position_ids, (size_t)(batch.count * seq_len) * sizeof(int32_t));
    }
}

static uint64_t read_copies(const struct tokmap_dataset *dataset, uint64_t hash)
{
    struct tokmap_error error = {0};
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    if (tokmap_dataset_info(dataset, &info))
        exit(1);
    char *tokens = malloc((size_t)(info.tokens * info.width));
    if (!tokens) { /* memory of this program, not of the library */
        perror("fault_reader");
        exit(1);
    }
    if (tokmap_dataset_copy(dataset, 0, info.tokens, tokens, &error)) {
        report("copy", &error);
        if (tokmap_dataset_copy(dataset, 0, info.tokens, tokens, &error))
            exit(1);
    }
    hash = mix(hash, tokens, (size_t)(info.tokens * info.width));
    free(tokens);
    return hash;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    struct tokmap_error error = {0};
    struct tokmap_run *run;
    struct tokmap_loader *loader;
    struct simple_run options = SIMPLE_RUN_INIT;
    options.data = argv[1];
    options.seq_len = 128;
    options.batch = 8;
    options.passes = 1;
    options.reading = strcmp(argv[2], "pread") ? TOKMAP_READ_MAPPED : TOKMAP_READ_PREAD;
    if (simple_run_open(&run, &options, &error)) {
        report("run", &error);
        return run ? 3 : 1;
    }
    struct tokmap_loader_options loading = TOKMAP_LOADER_OPTIONS_INIT;
    loading.threads = (uint32_t)strtoul(argv[3], NULL, 10);
    loading.fields = TOKMAP_INPUTS | TOKMAP_TARGETS | TOKMAP_POSITION_IDS;
    if (tokmap_loader_open(&loader, run, &loading, &error)) {
        report("loader", &error);
        tokmap_run_close(run);
        return loader ? 3 : 1;
    }
    static int32_t inputs[8 * 128], targets[8 * 128], positions[8 * 128];
    struct tokmap_out out = TOKMAP_OUT_INIT;
    out.inputs = inputs;
    out.targets = targets;
    out.position_ids = positions;
    struct tokmap_source_info source = TOKMAP_SOURCE_INFO_INIT;
    if (tokmap_run_source(run, 0, &source))
        return 1;
    uint64_t hash = read_rows(loader, options.seq_len, &out, 0xcbf29ce484222325u);
    hash = read_copies(source.dataset, hash);
    printf("%016" PRIx64 "\n", hash);
    tokmap_loader_close(loader);
    tokmap_run_close(run);
    return failures ? 4 : 0;
}
