/* SPDX-License-Identifier: MIT */
/*
 * train_nvtx.c - a training loop whose loader shows in NVIDIA's profilers: each call of next(), each wait, and each
 * slot that the producer thread fills is an NVTX range on its thread's line. NVTX is part of the CUDA toolkit, consists
 * of headers only, and costs a few nanoseconds a range while no profiler runs.
 *
 *     cc train_nvtx.c $(pkg-config --cflags --libs tokmap) -I/usr/local/cuda/include -ldl -o train_nvtx
 *     nsys profile -t nvtx ./train_nvtx train.run
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <nvtx3/nvToolsExt.h>
#include <tokmap/tokmap.h>

static void fatal(const struct tokmap_error *e)
{
    char text[1500];
    fprintf(stderr, "%s\n", tokmap_error_print(e, text, sizeof text));
    exit(1);
}

static void event(void *user, const char *name, int begin)
{
    (void)user;
    if (begin)
        nvtxRangePushA(name);
    else
        nvtxRangePop();
}

int main(int argc, char **argv)
{
    struct tokmap_error e = {0};
    struct tokmap_run *run = NULL;
    struct tokmap_loader *ld = NULL;
    struct tokmap_loader_options o = TOKMAP_LOADER_OPTIONS_INIT;
    struct tokmap_batch b = TOKMAP_BATCH_INIT;
    enum tokmap_status st;
    if (argc != 2) {
        fprintf(stderr, "Usage: %s RUN\n", argv[0]);
        return 2;
    }
    if (tokmap_run_open(&run, argv[1], NULL, &e))
        fatal(&e);
    o.fields = 0; /* the rows are read where they are */
    o.event = event;
    if (tokmap_loader_open(&ld, run, &o, &e))
        fatal(&e);
    uint64_t rows = 0;
    while ((st = tokmap_loader_next(ld, NULL, NULL, &b, &e)) == TOKMAP_OK) {
        nvtxRangePushA("train step"); /* the program's own ranges are beside them */
        rows += b.count;
        nvtxRangePop();
    }
    if (st != TOKMAP_END)
        fatal(&e);
    printf("%" PRIu64 " rows\n", rows);
    tokmap_loader_close(ld);
    tokmap_run_close(run);
    return 0;
}
