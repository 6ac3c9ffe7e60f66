/* SPDX-License-Identifier: MIT */
/*
 * A mask that is cut, replaced, or overwritten while a loader uses it. For both ways of reading, a cut is a status at
 * the first batch that shows a missing bit, never a signal, and the same rows follow when the mask is whole again. Each
 * case runs in a child process, so that a signal is a failure of its case and does not end this program.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/bytes.h"
#include "platform/os.h"
#include "support/made.h"
#include "support/run_help.h"
#include "support/scratch.h"
#include "tokmap/tokmap.h"

#define SEQ_LEN 1000
#define BATCH 4
#define TOKENS 1200000
#define MASK_BYTES (TOKENS / 8)

static uint64_t ranks = 1; /* more than 1: the loader is the last of them, and counts what all of them deliver */
static char folder[512], mask_path[600];
static struct made made;
static uint8_t *whole; /* the bytes of the mask */

static int setup(void **unused)
{
    (void)unused;
    const uint64_t sizes[] = {TOKENS};
    scratch_make(folder);
    made_new_masked(&made, folder, "data", 2, 50257, sizes, 1);
    (void)snprintf(mask_path, sizeof mask_path, "%s/data-0.mask", folder);
    whole = calloc(MASK_BYTES, 1);
    if (!whole)
        return -1;
    for (uint64_t i = 0; i < TOKENS; i++)
        whole[i / 8] |= (uint8_t)(made.mask[i] << i % 8);
    return 0;
}

static int teardown(void **unused)
{
    (void)unused;
    free(whole);
    made_free(&made);
    scratch_remove(folder);
    return 0;
}

/* Ends the child with a message if a condition does not hold. */
#define NEED(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            (void)fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                              \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

/* Writes the whole mask to its file, or to a new file that is then renamed over it. */
static void write_mask(bool as_new_file, uint8_t flip)
{
    char path[700];
    int fd;
    (void)snprintf(path, sizeof path, "%s%s", mask_path, as_new_file ? ".new" : "");
    uint8_t *bytes = malloc(MASK_BYTES);
    NEED(bytes);
    for (uint64_t i = 0; i < MASK_BYTES; i++)
        bytes[i] = whole[i] ^ flip;
    NEED(!os_open(path, as_new_file ? OS_WRITE_NEW : OS_WRITE_OPEN, &fd));
    NEED(!os_pwrite(fd, bytes, MASK_BYTES, 0));
    os_close(fd);
    NEED(!as_new_file || !rename(path, mask_path));
    free(bytes);
}

/* The last token that a step's targets show. */
static uint64_t last_token(const struct tokmap_run *run, uint64_t step)
{
    uint64_t last = 0;
    for (uint64_t row = 0; row < BATCH; row++) {
        struct tokmap_place place;
        NEED(!tokmap_run_locate(run, step, row, &place, NULL));
        last = max64(last, place.first_token + SEQ_LEN);
    }
    return last;
}

struct use {
    struct tokmap_run *run;
    struct tokmap_loader *loader;
    struct tokmap_out out;
    struct tokmap_batch batch;
    struct tokmap_error error;
    int32_t loss_mask[BATCH * SEQ_LEN];
};

/* Returns whether the target of token `token` counts. */
static bool counts(uint64_t token, uint8_t flip)
{
    return (made.mask[token % TOKENS] ^ flip) && !made.starts[token % TOKENS];
}

/* Returns whether a batch has the bits of the mask, each of them inverted if flip is 1, and the counts of its own rows
 * and of all ranks'. The first token of a document never counts. */
static bool is_right(const struct use *use, uint8_t flip)
{
    uint64_t own = 0, all = 0;
    for (uint64_t row = 0; row < use->batch.count; row++)
        for (uint64_t j = 0; j < SEQ_LEN; j++) {
            const bool wanted = counts(use->batch.places[row].first_token + j + 1, flip);
            if (use->loss_mask[row * SEQ_LEN + j] != wanted)
                return false;
            own += wanted;
        }
    for (uint64_t row = 0; row < BATCH && ranks > 1; row++) {
        struct tokmap_place place;
        NEED(!tokmap_run_locate(use->run, use->batch.step, row, &place, NULL));
        for (uint64_t j = 0; j < SEQ_LEN; j++)
            all += counts(place.first_token + j + 1, flip);
    }
    return ranks == 1 || (use->batch.counted == own && use->batch.counted_in_step == all);
}

/* Opens a loader of BATCH rows a step, or of one of `ranks`, and takes `steps` steps from it. */
static void use_open(struct use *use, enum tokmap_reading reading, uint32_t threads, uint64_t steps)
{
    struct simple_run options = SIMPLE_RUN_INIT;
    struct tokmap_loader_options how = TOKMAP_LOADER_OPTIONS_INIT;
    *use = (struct use){.out = TOKMAP_OUT_INIT, .batch = TOKMAP_BATCH_INIT};
    use->out.loss_mask = use->loss_mask;
    options.data = made.name;
    options.seq_len = SEQ_LEN;
    options.batch = BATCH;
    options.seed = 11;
    options.passes = 4;
    options.reading = reading;
    NEED(!simple_run_open(&use->run, &options, NULL));
    how.fields = TOKMAP_LOSS_MASK;
    how.threads = threads;
    how.world = ranks;
    how.rank = ranks - 1;
    how.counts = ranks > 1;
    how.ring_bytes = 50000; /* few slots, so that the producer is never far ahead */
    NEED(!tokmap_loader_open(&use->loader, use->run, &how, NULL));
    for (uint64_t step = 0; step < steps; step++) {
        NEED(!tokmap_loader_next(use->loader, &use->out, NULL, &use->batch, NULL));
        NEED(is_right(use, 0));
    }
}

static void use_close(struct use *use)
{
    tokmap_loader_close(use->loader);
    tokmap_run_close(use->run);
}

static enum tokmap_status next(struct use *use)
{
    return tokmap_loader_next(use->loader, &use->out, NULL, &use->batch, &use->error);
}

static void cut_in_use(enum tokmap_reading reading, uint32_t threads, uint64_t before, uint64_t left)
{
    static struct use use;
    uint64_t step = before;
    use_open(&use, reading, threads, before);
    if (threads && reading == TOKMAP_READ_MAPPED)
        os_sleep_ns(30000000); /* until the ring is full: a cut in the middle of a batch can be a signal */
    NEED(!truncate(mask_path, (off_t)left));
    os_sleep_ns(100000); /* batches that begin within 50 microseconds share a look at the sizes of files */
    for (; !next(&use); step++)
        NEED(use.batch.step == step && is_right(&use, 0));
    NEED(last_token(use.run, step) >= left * 8);
    for (int again = 0; again < 3; again++) {
        NEED(use.error.status == TOKMAP_ERROR_TRUNCATED && use.error.offset == left);
        NEED(!strcmp(use.error.path, mask_path) && use.batch.count == 0);
        NEED(next(&use) == TOKMAP_ERROR_TRUNCATED);
    }
    write_mask(false, 0);
    for (enum tokmap_status status; (status = next(&use)) != TOKMAP_END; step++)
        NEED(!status && use.batch.step == step && is_right(&use, 0));
    NEED(step == TOKENS * 4 / SEQ_LEN / BATCH || step + 1 == TOKENS * 4 / SEQ_LEN / BATCH);
    use_close(&use);
}

/* The old file is used until the dataset closes, whatever has its name now. */
static void replaced_in_use(enum tokmap_reading reading, uint32_t threads, uint64_t before, uint64_t unused)
{
    static struct use use;
    (void)unused;
    use_open(&use, reading, threads, before);
    write_mask(true, 0xff);
    for (enum tokmap_status status; (status = next(&use)) != TOKMAP_END;)
        NEED(!status && is_right(&use, 0));
    use_close(&use);
    use_open(&use, reading, threads, 0);
    NEED(!next(&use) && is_right(&use, 1));
    use_close(&use);
    write_mask(true, 0);
}

/* Bits that are overwritten in place are delivered as they are, like tokens; verify finds them. */
static void overwritten_in_use(enum tokmap_reading reading, uint32_t threads, uint64_t before, uint64_t unused)
{
    static struct use use;
    struct tokmap_dataset *dataset;
    (void)unused;
    use_open(&use, reading, threads, before);
    write_mask(false, 0xff);
    NEED(!tokmap_loader_rewind(use.loader, &use.error));
    for (enum tokmap_status status; (status = next(&use)) != TOKMAP_END;)
        NEED(!status && is_right(&use, 1));
    use_close(&use);
    NEED(!tokmap_dataset_open(&dataset, made.name, NULL, NULL));
    NEED(tokmap_dataset_verify(dataset, NULL, NULL, &use.error) == TOKMAP_ERROR_CORRUPT);
    NEED(!strcmp(use.error.path, mask_path));
    tokmap_dataset_close(dataset);
    write_mask(false, 0);
}

static void in_child(void (*use)(enum tokmap_reading reading, uint32_t threads, uint64_t before, uint64_t left),
                     int reading, uint32_t threads, uint64_t before, uint64_t left)
{
    int ended = -1;
    (void)fflush(NULL);
    const pid_t child = fork();
    if (!child) {
        (void)signal(SIGBUS, SIG_DFL); /* cmocka catches it */
        (void)signal(SIGSEGV, SIG_DFL);
        use((enum tokmap_reading)reading, threads, before, left);
        _exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &ended, 0), child);
    if (WIFSIGNALED(ended))
        fail_msg("signal %d; reading %d, threads %u, after %u steps, cut to %u bytes", WTERMSIG(ended), reading,
                 threads, (unsigned)before, (unsigned)left);
    assert_int_equal(ended, 0);
}

/* Calls a case with no page populated, some, and all of them. */
static void in_children(void (*use)(enum tokmap_reading reading, uint32_t threads, uint64_t before, uint64_t left),
                        uint64_t left)
{
    for (int reading = TOKMAP_READ_MAPPED; reading <= TOKMAP_READ_PREAD; reading++)
        for (uint32_t threads = 0; threads < 2; threads++)
            for (uint64_t before = 0; before < 1000; before += 420)
                in_child(use, reading, threads, before, left);
}

static void a_cut_mask_is_a_status_where_it_happened(void **unused)
{
    (void)unused;
    in_children(cut_in_use, 0);
    in_children(cut_in_use, 70001);             /* inside a page: its rest would read as zeros */
    in_children(cut_in_use, MASK_BYTES - 3000); /* most rows can still be delivered */
}

/* A rank that counts reads the bits of all ranks' rows. It fails where any of them cannot be read, and continues. */
static void so_is_one_of_another_rank_that_is_counted(void **unused)
{
    (void)unused;
    ranks = BATCH;
    in_children(cut_in_use, 70001);
    in_children(cut_in_use, MASK_BYTES - 3000);
    in_children(overwritten_in_use, 0);
    ranks = 1;
}

static void a_replaced_mask_stays_open(void **unused)
{
    (void)unused;
    in_children(replaced_in_use, 0);
}

static void an_overwritten_mask_is_delivered_as_it_is(void **unused)
{
    (void)unused;
    in_children(overwritten_in_use, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cut_mask_is_a_status_where_it_happened),
        cmocka_unit_test(so_is_one_of_another_rank_that_is_counted),
        cmocka_unit_test(a_replaced_mask_stays_open),
        cmocka_unit_test(an_overwritten_mask_is_delivered_as_it_is),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
