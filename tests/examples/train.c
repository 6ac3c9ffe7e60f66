/* SPDX-License-Identifier: MIT */
/*
 * train.c - a complete training loop without a GPU. It opens a run, receives one rank's batches in its own memory, and
 * prints cursors from which it can resume.
 *
 *     cc train.c $(pkg-config --cflags --libs tokmap) -o train
 *     ./train train.run [RANK WORLD [CURSOR]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tokmap/tokmap.h>

static void fatal(const struct tokmap_error *e)
{
    char text[1024];
    fprintf(stderr, "%s\n", tokmap_error_print(e, text, sizeof text));
    exit(1);
}

static void train_step(const int32_t *inputs, const int32_t *targets, uint64_t rows)
{
    printf("%llu rows: %d is followed by %d\n", (unsigned long long)rows, inputs[0], targets[0]);
}

static void save_checkpoint(uint64_t step, const char *text)
{
    printf("after step %llu: %s\n", (unsigned long long)step, text);
}

int main(int argc, char **argv) /* RUN [RANK WORLD [CURSOR]] */
{
    struct tokmap_error e = {0};
    struct tokmap_run *run = NULL;
    struct tokmap_loader *ld = NULL;
    if (argc < 2) {
        fprintf(stderr, "Usage: %s RUN [RANK WORLD [CURSOR]]\n", argv[0]);
        return 2;
    }
    if (tokmap_run_open(&run, argv[1], NULL, &e)) /* or tokmap_run_parse(&run, text, NULL, &e) */
        fatal(&e);

    struct tokmap_loader_options o = TOKMAP_LOADER_OPTIONS_INIT;
    o.rank = argc > 3 ? strtoull(argv[2], NULL, 10) : 0;
    o.world = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    o.rows = 16; /* rows per call; the run fixes the global batch */
    o.fields = TOKMAP_INPUTS | TOKMAP_TARGETS;
    o.resume = argc > 4 ? argv[4] : NULL; /* NULL: from the start */
    if (tokmap_loader_open(&ld, run, &o, &e))
        fatal(&e);

    size_t elements = (size_t)tokmap_loader_elements(ld); /* of the largest batch in any phase */
    int32_t *x = malloc(elements * sizeof *x), *y = malloc(elements * sizeof *y);
    if (!x || !y)
        return 1;
    struct tokmap_out out = TOKMAP_OUT_INIT; /* this program's memory */
    out.inputs = x;
    out.targets = y;

    struct tokmap_batch b = TOKMAP_BATCH_INIT;
    enum tokmap_status st;
    while ((st = tokmap_loader_next(ld, &out, NULL, &b, &e)) == TOKMAP_OK) {
        if (b.count)
            train_step(x, y, b.count);
        if (b.last_in_step && b.step % 1000 == 0) {
            char text[TOKMAP_CURSOR_TEXT];
            tokmap_cursor_print(&b.cursor, text); /* the state after this batch, the same on every rank */
            save_checkpoint(b.step, text);
        }
    }
    if (st != TOKMAP_END)
        fatal(&e);
    tokmap_loader_close(ld);
    tokmap_run_close(run);
    free(x);
    free(y);
    return 0;
}
