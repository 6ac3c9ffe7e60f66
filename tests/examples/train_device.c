/* SPDX-License-Identifier: MIT */
/*
 * train_device.c - the same loop with a GPU. Batches arrive in device memory, ordered on the program's stream. The
 * program needs no CUDA header, because tokmap opens the driver at run time. A program that uses the CUDA runtime
 * passes memory from cudaMalloc() and its own cudaStream_t instead.
 *
 *     cc train_device.c $(pkg-config --cflags --libs tokmap) -o train_device
 *     ./train_device train.run [cuda:N]
 */
#include <stdio.h>
#include <stdlib.h>
#include <tokmap/cuda.h>

static void check(enum tokmap_status status, const struct tokmap_error *e)
{
    char text[1024];
    if (status == TOKMAP_OK)
        return;
    fprintf(stderr, "%s\n", tokmap_error_print(e, text, sizeof text));
    exit(1);
}

int main(int argc, char **argv) /* RUN [DEVICE] */
{
    struct tokmap_error e = {0};
    struct tokmap_run *run = NULL;
    struct tokmap_loader *ld = NULL;
    struct tokmap_loader_options o = TOKMAP_LOADER_OPTIONS_INIT;
    if (argc < 2) {
        fprintf(stderr, "Usage: %s RUN [DEVICE]\n", argv[0]);
        return 2;
    }
    check(tokmap_run_open(&run, argv[1], NULL, &e), &e);
    o.rows = 16;
    o.device = argc > 2 ? argv[2] : "cuda:0";
    check(tokmap_loader_open(&ld, run, &o, &e), &e);

    uint64_t bytes = tokmap_loader_elements(ld) * sizeof(int32_t); /* of the largest batch in any phase */
    struct tokmap_out out = TOKMAP_OUT_INIT;
    struct CUstream_st *stream = NULL;
    check(tokmap_cuda_memory_new(o.device, bytes, &out.inputs, &e), &e); /* or cudaMalloc() */
    check(tokmap_cuda_memory_new(o.device, bytes, &out.targets, &e), &e);
    check(tokmap_cuda_stream_new(o.device, &stream, &e), &e); /* or any stream of the program */

    struct tokmap_batch b = TOKMAP_BATCH_INIT;
    enum tokmap_status st;
    while ((st = tokmap_cuda_next(ld, &out, stream, &b, &e)) == TOKMAP_OK) {
        int32_t x, y; /* a training step would be launched on the stream here */
        if (!b.count)
            continue;
        check(tokmap_cuda_memory_read(o.device, &x, out.inputs, sizeof x, stream, &e), &e);
        check(tokmap_cuda_memory_read(o.device, &y, out.targets, sizeof y, stream, &e), &e);
        printf("%llu rows: %d is followed by %d\n", (unsigned long long)b.count, x, y);
    }
    if (st != TOKMAP_END)
        check(st, &e);
    tokmap_loader_close(ld);
    tokmap_run_close(run);
    tokmap_cuda_memory_free(o.device, out.inputs);
    tokmap_cuda_memory_free(o.device, out.targets);
    tokmap_cuda_stream_free(o.device, stream);
    return 0;
}
