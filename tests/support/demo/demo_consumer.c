/* SPDX-License-Identifier: MIT */
/*
 * demo_consumer.c - a training program as a user would write it, which uses only the public header. The demonstration
 * and tests run it.
 *
 *     consumer stream RUN TOKENS  reads every row to the end of the run, compares each token with the file TOKENS (the
 *                                 .bin of the dataset), counts each window, and prints figures as lines "name value"
 *     consumer rows RUN RANK WORLD CHECKPOINT ROWS [DIE]
 *                                 appends "step row hash" of every row to the file ROWS. With DIE, it starts at step
 *                                 0, rank 0 saves CHECKPOINT every 5 steps, and it kills itself with SIGKILL in the
 *                                 middle of step DIE. Without DIE, it continues from CHECKPOINT if that exists, to the
 *                                 end of the run
 *     consumer first RUN          reads one batch and prints the time from the start of the process to that batch
 *     consumer copy               prints the bandwidth of memory copies: the median of 9 copies of 64 MiB
 *
 * Exit status: 0 done, 1 wrong or failed, 2 misused.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "tokmap/tokmap.h"

enum { CHECKPOINT_EVERY = 5 };

static void fail(const char *what, const struct tokmap_error *error)
{
    char text[1500];
    fprintf(stderr, "consumer: %s: %s\n", what, tokmap_error_print(error, text, sizeof text));
    exit(1);
}

static void wrong(const char *what, uint64_t step, uint64_t row)
{
    fprintf(stderr, "consumer: %s (step %" PRIu64 ", row %" PRIu64 ")\n", what, step, row);
    exit(1);
}

static void *allocate(size_t bytes)
{
    void *found = calloc(1, bytes);
    if (!found) {
        fprintf(stderr, "consumer: out of memory\n");
        exit(1);
    }
    return found;
}

static double seconds_now(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Returns the seconds since this process was started, including exec and loading. The kernel stores the start to the
 * tick, which is 10 ms at most. */
static double seconds_since_start(void)
{
    char text[1024] = "";
    FILE *file = fopen("/proc/self/stat", "r");
    if (!file)
        return 0;
    size_t got = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    const char *at = got ? strrchr(text, ')') : NULL;
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    if (!at)
        return 0;
    double started = (double)strtoull(at + 1, NULL, 10) / (double)sysconf(_SC_CLK_TCK);
    return seconds_now(CLOCK_BOOTTIME) - started;
}

static char *read_all(const char *path, size_t *count)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) {
        perror(path);
        exit(1);
    }
    *count = (size_t)ftell(file);
    rewind(file);
    char *bytes = allocate(*count + 1);
    if (fread(bytes, 1, *count, file) != *count) {
        perror(path);
        exit(1);
    }
    fclose(file);
    return bytes;
}

struct training {
    struct tokmap_run *run;
    struct tokmap_run_info info;
    struct tokmap_source_info source;
    struct tokmap_dataset_info dataset;
    struct tokmap_loader *loader;
    struct tokmap_out out;
    int32_t *inputs, *targets;
};

static void training_open(struct training *training, const char *run, uint64_t rank, uint64_t world, const char *resume)
{
    struct tokmap_error error = {0};
    memset(training, 0, sizeof *training);
    if (tokmap_run_open(&training->run, run, NULL, &error))
        fail("opening the run", &error);
    training->info.size = sizeof training->info;
    training->source.size = sizeof training->source;
    training->dataset.size = sizeof training->dataset;
    if (tokmap_run_info(training->run, &training->info) || tokmap_run_source(training->run, 0, &training->source) ||
        tokmap_dataset_info(training->source.dataset, &training->dataset))
        fail("describing the run", &error);
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    options.rank = rank;
    options.world = world;
    options.rows = 16;
    options.resume = resume;
    if (tokmap_loader_open(&training->loader, training->run, &options, &error))
        fail("opening the loader", &error);
    size_t elements = (size_t)(tokmap_loader_rows(training->loader) * training->info.seq_len);
    training->inputs = allocate(elements * sizeof(int32_t));
    training->targets = allocate(elements * sizeof(int32_t));
    struct tokmap_out out = TOKMAP_OUT_INIT;
    out.inputs = training->inputs;
    out.targets = training->targets;
    training->out = out;
}

static void training_close(struct training *training)
{
    tokmap_loader_close(training->loader);
    tokmap_run_close(training->run);
    free(training->inputs);
    free(training->targets);
}

/* Returns token `index` of the dataset, from the file. */
static int32_t token_of(const char *tokens, uint32_t width, uint64_t index)
{
    uint16_t narrow;
    uint32_t wide;
    if (width == 2) {
        memcpy(&narrow, tokens + index * 2, 2);
        return narrow;
    }
    memcpy(&wide, tokens + index * 4, 4);
    return (int32_t)wide;
}

/* Compares a delivered row with the file, and marks its window as seen in its epoch. */
static void row_check(const struct training *training, const struct tokmap_batch *batch, uint64_t i, const char *tokens,
                      uint8_t *seen, uint64_t *shift)
{
    const struct tokmap_place *place = &batch->places[i];
    uint64_t length = training->info.seq_len, total = training->dataset.tokens;
    if (place->step != batch->step || place->row != batch->first_row + i)
        wrong("the place is that of another row", batch->step, place->row);
    if (place->epoch > 1 || place->window >= training->source.windows)
        wrong("the window is not in its epoch", place->step, place->row);
    uint8_t *mark = &seen[place->epoch * training->source.windows + place->window];
    if (*mark)
        wrong("the window was delivered before", place->step, place->row);
    *mark = 1;
    /* All windows of an epoch are on one grid: the first token of each is a multiple of seq_len away from one shift. */
    uint64_t grid = (place->first_token + total - place->window * length % total) % total;
    if (shift[place->epoch] == UINT64_MAX)
        shift[place->epoch] = grid;
    if (shift[place->epoch] != grid || (place->epoch == 0 && grid != 0))
        wrong("the window is not on the grid of its epoch", place->step, place->row);
    for (uint64_t j = 0; j < length; j++) {
        uint64_t at = (place->first_token + j) % total;
        if (training->inputs[i * length + j] != token_of(tokens, training->dataset.width, at) ||
            training->targets[i * length + j] != token_of(tokens, training->dataset.width, (at + 1) % total))
            wrong("a token differs from the file", place->step, place->row);
    }
}

static int stream(const char *run, const char *tokens_path)
{
    struct training training;
    struct tokmap_error error = {0};
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    size_t bytes;
    char *tokens = read_all(tokens_path, &bytes);
    training_open(&training, run, 0, 1, NULL);
    if (bytes != training.dataset.tokens * training.dataset.width)
        wrong("the file does not have the size of the dataset", 0, 0);
    uint8_t *seen = allocate((size_t)training.source.windows * 2);
    uint64_t shift[2] = {UINT64_MAX, UINT64_MAX}, next_step = 0, rows = 0, in_step = 0;
    double in_next = 0, started = seconds_now(CLOCK_MONOTONIC);
    enum tokmap_status status;
    for (;;) {
        double before = seconds_now(CLOCK_MONOTONIC);
        status = tokmap_loader_next(training.loader, &training.out, NULL, &batch, &error);
        in_next += seconds_now(CLOCK_MONOTONIC) - before;
        if (status)
            break;
        if (batch.step != next_step)
            wrong("the step is out of order", batch.step, 0);
        for (uint64_t i = 0; i < batch.count; i++)
            row_check(&training, &batch, i, tokens, seen, shift);
        rows += batch.count;
        in_step += batch.count;
        if (batch.last_in_step) {
            if (in_step != training.info.batch)
                wrong("the step lacks rows", batch.step, in_step);
            in_step = 0;
            next_step++;
        }
    }
    if (status != TOKMAP_END)
        fail("next", &error);
    uint64_t marks = 0;
    for (uint64_t i = 0; i < training.source.windows * 2; i++) {
        marks += seen[i];
        if (i < training.source.windows && !seen[i])
            wrong("a window of the first epoch was never delivered", i, 0);
    }
    if (marks != rows || rows + training.info.remainder != training.source.windows * 2)
        wrong("the number of windows delivered is wrong", rows, marks);
    struct tokmap_stats stats = TOKMAP_STATS_INIT;
    if (tokmap_loader_stats(training.loader, &stats))
        fail("statistics", &error);
    printf("steps %" PRIu64 "\nrows %" PRIu64 "\ntokens %" PRIu64 "\nremainder %" PRIu64 "\nseconds %.6f\n"
           "next_seconds %.6f\nwaits %" PRIu64 "\nwait_ms %.3f\nlargest_wait_ms %.3f\nring_mib %.1f\nshift "
           "%" PRIu64 "\n",
           next_step, rows, rows * training.info.seq_len, training.info.remainder,
           seconds_now(CLOCK_MONOTONIC) - started, in_next, stats.waits, (double)stats.wait_ns * 1e-6,
           (double)stats.wait_ns_largest * 1e-6, (double)stats.ring_bytes / 1048576.0, shift[1]);
    training_close(&training);
    free(seen);
    free(tokens);
    return 0;
}

/* Writes a checkpoint that is complete or absent at any moment, as the checkpoints of a training program must be. */
static void checkpoint_save(const char *path, const struct tokmap_cursor *cursor)
{
    char text[TOKMAP_CURSOR_TEXT], partial[4096];
    tokmap_cursor_print(cursor, text);
    (void)snprintf(partial, sizeof partial, "%s.partial", path);
    FILE *file = fopen(partial, "w");
    if (!file || fprintf(file, "%s\n", text) < 0 || fclose(file) || rename(partial, path)) {
        perror(path);
        exit(1);
    }
}

static uint64_t row_hash(const struct training *training, uint64_t i)
{
    uint64_t hash = 0xcbf29ce484222325u, length = training->info.seq_len; /* FNV-1a over ids */
    for (uint64_t j = 0; j < length; j++)
        hash = (hash ^ (uint32_t)training->inputs[i * length + j]) * 0x100000001b3u;
    return (hash ^ (uint32_t)training->targets[i * length + length - 1]) * 0x100000001b3u;
}

static int rows(const char *run, uint64_t rank, uint64_t world, const char *checkpoint, const char *rows_path,
                uint64_t die)
{
    char *resume = NULL;
    size_t bytes;
    if (die == UINT64_MAX && !access(checkpoint, F_OK)) /* with DIE, the run starts at step 0 */
        resume = read_all(checkpoint, &bytes);
    struct training training;
    struct tokmap_error error = {0};
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    training_open(&training, run, rank, world, resume);
    FILE *file = fopen(rows_path, "a");
    if (!file) {
        perror(rows_path);
        return 1;
    }
    enum tokmap_status status;
    while (!(status = tokmap_loader_next(training.loader, &training.out, NULL, &batch, &error))) {
        for (uint64_t i = 0; i < batch.count; i++)
            fprintf(file, "%08" PRIu64 " %06" PRIu64 " %016" PRIx64 "\n", batch.step, batch.first_row + i,
                    row_hash(&training, i));
        if (fflush(file)) {
            perror(rows_path);
            return 1;
        }
        if (batch.step == die)
            (void)kill(getpid(), SIGKILL);
        if (batch.last_in_step && rank == 0 && (batch.step + 1) % CHECKPOINT_EVERY == 0 && die != UINT64_MAX)
            checkpoint_save(checkpoint, &batch.cursor);
    }
    if (status != TOKMAP_END)
        fail("next", &error);
    fclose(file);
    training_close(&training);
    free(resume);
    return 0;
}

static int first(const char *run)
{
    struct training training;
    struct tokmap_error error = {0};
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    double started = seconds_now(CLOCK_MONOTONIC);
    training_open(&training, run, 0, 1, NULL);
    if (tokmap_loader_next(training.loader, &training.out, NULL, &batch, &error))
        fail("next", &error);
    printf("first_batch_ms %.3f\nsince_exec_ms %.0f\n", (seconds_now(CLOCK_MONOTONIC) - started) * 1e3,
           seconds_since_start() * 1e3);
    training_close(&training);
    return 0;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int copy(void)
{
    enum { BYTES = 64 << 20, TIMES = 9 };
    char *from = allocate(BYTES), *into = allocate(BYTES);
    double rates[TIMES];
    memset(from, 1, BYTES);
    memcpy(into, from, BYTES);
    for (int i = 0; i < TIMES; i++) {
        double before = seconds_now(CLOCK_MONOTONIC);
        memcpy(into, from, BYTES);
        __asm__ volatile("" : : "r"(into) : "memory"); /* so that the compiler keeps the copy */
        rates[i] = BYTES / (seconds_now(CLOCK_MONOTONIC) - before);
    }
    qsort(rates, TIMES, sizeof rates[0], compare_doubles);
    printf("copy_mb_s %.0f\n", rates[TIMES / 2] * 1e-6);
    free(from);
    free(into);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "stream") && argc == 4)
        return stream(argv[2], argv[3]);
    if (!strcmp(what, "rows") && (argc == 7 || argc == 8))
        return rows(argv[2], strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10), argv[5], argv[6],
                    argc == 8 ? strtoull(argv[7], NULL, 10) : UINT64_MAX);
    if (!strcmp(what, "first") && argc == 3)
        return first(argv[2]);
    if (!strcmp(what, "copy") && argc == 2)
        return copy();
    fprintf(stderr, "usage: consumer stream RUN TOKENS | rows RUN RANK WORLD CHECKPOINT ROWS [DIE] | first RUN | "
                    "copy\n");
    return 2;
}
