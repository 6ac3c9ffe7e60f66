/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/*
 * Training that is killed: consumers on 8, 6, 4, and 3 ranks end by SIGKILL at random moments and resume from the last
 * cursor that all ranks had reached, until the run has ended. The run is a mixture of three sources with a change of
 * weights, of the batch, and of the sequence length, and with skipped steps.
 *
 * The parent first reads the whole run as a single rank that nothing disturbs, and keeps a hash of each row. Each round
 * then forks one consumer per rank, which balance rows in two of three rounds, kills all of them, and looks at what
 * they noted in shared memory:
 *
 *   - Ranks of one training step wait for each other, so the step from which training resumes is the first one that
 *     some rank has not completed. It is called the step reached.
 *   - Every row of the steps before it was delivered exactly once in this round, to one rank, and has the hash of the
 *     undisturbed run. So no row was lost, repeated, or reordered.
 *   - The cursors that the ranks noted for the step reached are the same text, on all ranks and in the undisturbed run.
 *
 * TEST_KILLS is the number of consumers that are killed, 50 if it is not set. TEST_SEED chooses the moments.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/hash.h"
#include "support/made.h"
#include "support/scratch.h"
#include "tokmap/tokmap.h"

#define STEPS 260
#define BATCH_MOST 52
#define RANKS_MOST 8

/* Written by the consumers, read by the parent after they are dead. */
struct notes {
    uint64_t hash[STEPS][BATCH_MOST];                       /* of the row that was delivered last */
    uint32_t times[STEPS][BATCH_MOST];                      /* how often the row was delivered in this round */
    uint64_t completed[RANKS_MOST];                         /* the rank has all rows of the steps before this one */
    char cursor[RANKS_MOST][STEPS + 1][TOKMAP_CURSOR_TEXT]; /* noted when the step before was completed */
    uint32_t failed;                                        /* a consumer met an error: its text follows */
    char failure[1500];
};

static char folder[512], run_path[600];
static struct made sources[3];
static struct notes *notes;
static uint64_t expected[STEPS][BATCH_MOST];
static char expected_cursor[STEPS + 1][TOKMAP_CURSOR_TEXT];

static int setup(void **unused)
{
    (void)unused;
    const uint64_t web[] = {9000, 4000}, code[] = {7000}, wiki[] = {3000, 700, 1300};
    char text[2400];
    scratch_make(folder);
    made_new(&sources[0], folder, "web", 2, 50257, web, 2);
    made_new(&sources[1], folder, "code", 4, 100277, code, 1);
    made_new(&sources[2], folder, "wiki", 2, 50257, wiki, 3);
    snprintf(text, sizeof text,
             "seq_len 64\nbatch 26\nseed 11\nsource web \"%s\"\nsource code \"%s\"\nsource wiki \"%s\"\n"
             "phase 0 web 0.8 wiki 0.15 code 0.05\nphase 70 web 0.3 code 0.7\nphase 120 batch 52\n"
             "phase 190 web 2 wiki 1 code 1 seq_len 96 batch 40\nskip 30..33\nskip 118..122\nsteps %d\n",
             sources[0].name, sources[1].name, sources[2].name, STEPS);
    snprintf(run_path, sizeof run_path, "%s/train.run", folder);
    file_write_text(run_path, text);
    notes = mmap(NULL, sizeof *notes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return notes == MAP_FAILED;
}

static int teardown(void **unused)
{
    (void)unused;
    munmap(notes, sizeof *notes);
    for (int i = 0; i < 3; i++)
        made_free(&sources[i]);
    scratch_remove(folder);
    return 0;
}

/* ---- a consumer ---- */

static void note_failure(const struct tokmap_error *error)
{
    if (!__atomic_exchange_n(&notes->failed, 1, __ATOMIC_SEQ_CST))
        tokmap_error_print(error, notes->failure, sizeof notes->failure);
}

/* Reads the run as one rank, from a cursor ("": from the start), until it ends or the process is killed. */
static void consume(uint64_t rank, uint64_t world, const char *resume, uint64_t rows, double balance, uint32_t threads)
{
    struct tokmap_run *run;
    struct tokmap_loader *loader;
    struct tokmap_error error = {0};
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    enum tokmap_status status;
    options.rank = rank;
    options.world = world;
    options.rows = rows;
    options.balance = balance;
    options.threads = threads;
    options.fields = 0;
    options.resume = resume[0] ? resume : NULL;
    if (tokmap_run_open(&run, run_path, NULL, &error) || tokmap_loader_open(&loader, run, &options, &error)) {
        note_failure(&error);
        return;
    }
    while ((status = tokmap_loader_next(loader, NULL, NULL, &batch, &error)) == TOKMAP_OK) {
        for (uint64_t i = 0; i < batch.count; i++) {
            const uint64_t row = batch.places[i].row;
            notes->hash[batch.step][row] = hash64(batch.rows[i], batch.row_tokens * batch.width);
            __atomic_add_fetch(&notes->times[batch.step][row], 1, __ATOMIC_SEQ_CST);
        }
        if (!batch.last_in_step)
            continue;
        tokmap_cursor_print(&batch.cursor, notes->cursor[rank][batch.cursor.step]);
        __atomic_store_n(&notes->completed[rank], batch.cursor.step, __ATOMIC_SEQ_CST);
    }
    if (status != TOKMAP_END)
        note_failure(&error);
    tokmap_loader_close(loader);
    tokmap_run_close(run);
}

/* ---- the parent ---- */

/* Keeps the hash of every row and the cursor of every step of the undisturbed run. */
static void read_undisturbed(void)
{
    memset(notes, 0, sizeof *notes);
    consume(0, 1, "", 0, 0, 0);
    if (notes->failed)
        fail_msg("%s", notes->failure);
    memcpy(expected, notes->hash, sizeof expected);
    memcpy(expected_cursor, notes->cursor[0], sizeof expected_cursor);
    assert_int_equal(notes->completed[0], STEPS);
}

static void pause_for(uint64_t ns)
{
    const struct timespec time = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    nanosleep(&time, NULL);
}

/* Forks the consumers of one round, and kills them after a random time of up to `longest` nanoseconds unless they end
 * before. */
static void run_round(uint64_t world, const char *resume, uint64_t longest, uint64_t *state, uint64_t *killed)
{
    pid_t consumers[RANKS_MOST];
    const uint64_t rows = random_below(state, 2) ? 0 : 1 + random_below(state, 6);
    const uint32_t threads = (uint32_t)random_below(state, 4) != 0;
    const double balance = 0.01 * (double)random_below(state, 3);
    memset(notes->times, 0, sizeof notes->times);
    memset(notes->completed, 0, sizeof notes->completed);
    for (uint64_t rank = 0; rank < world; rank++) {
        consumers[rank] = fork();
        assert_true(consumers[rank] >= 0);
        if (consumers[rank] == 0) {
            consume(rank, world, resume, rows, balance, threads);
            _exit(0);
        }
    }
    for (uint64_t rank = 0; rank < world; rank++) {
        pause_for(random_below(state, rank ? 200000 : longest));
        kill(consumers[rank], SIGKILL);
    }
    for (uint64_t rank = 0; rank < world; rank++) {
        int status;
        assert_int_equal(waitpid(consumers[rank], &status, 0), consumers[rank]);
        *killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    }
    if (notes->failed)
        fail_msg("%s", notes->failure);
}

/* Checks the steps that every rank completed, and returns the step reached. */
static uint64_t check_round(const struct tokmap_run *run, uint64_t world, uint64_t from)
{
    uint64_t reached = STEPS;
    for (uint64_t rank = 0; rank < world; rank++)
        reached = notes->completed[rank] < reached ? notes->completed[rank] : reached;
    if (reached <= from)
        return from;
    for (uint64_t step = from; step < reached; step++)
        for (uint64_t row = 0; row < tokmap_run_rows(run, step); row++) {
            const uint32_t times = tokmap_run_delivers(run, step) ? 1 : 0;
            if (notes->times[step][row] != times || (times && notes->hash[step][row] != expected[step][row]))
                fail_msg("row %" PRIu64 " of step %" PRIu64 " was delivered %" PRIu32 " times, or is another row", row,
                         step, notes->times[step][row]);
        }
    for (uint64_t rank = 0; rank < world; rank++)
        assert_string_equal(notes->cursor[rank][reached], expected_cursor[reached]);
    return reached;
}

static void killed_consumers_lose_and_repeat_nothing(void **unused)
{
    (void)unused;
    static const uint64_t worlds[] = {8, 6, 4, 3};
    const char *given = getenv("TEST_KILLS");
    const uint64_t wanted = given ? strtoull(given, NULL, 10) : 50;
    const char *seed = getenv("TEST_SEED");
    uint64_t state = seed ? strtoull(seed, NULL, 10) : 4711, killed = 0, step = 0, rounds = 0, runs = 0;
    /* The longest time is doubled after each 16 rounds without a step, because a slow machine needs more time for one.
     */
    uint64_t longest = 2500000, without_step = 0;
    struct tokmap_run *run;
    struct tokmap_error error = {0};
    char resume[TOKMAP_CURSOR_TEXT] = "";
    if (tokmap_run_open(&run, run_path, NULL, &error))
        fail_msg("%s", error.message);
    read_undisturbed();
    while (killed < wanted || step < STEPS) {
        const uint64_t world = worlds[rounds++ % 4];
        if (step == STEPS) {
            step = 0;
            resume[0] = '\0';
            runs++;
        }
        run_round(world, resume, longest, &state, &killed);
        const uint64_t reached = check_round(run, world, step);
        without_step = reached > step ? 0 : without_step + 1;
        if (without_step % 16 == 15 && longest < 1000000000)
            longest *= 2;
        step = reached;
        if (step)
            memcpy(resume, expected_cursor[step], sizeof resume);
        assert_true(rounds < 100 * wanted + 1000);
    }
    printf("# %" PRIu64 " consumers were killed in %" PRIu64 " rounds; the run was completed %" PRIu64 " times\n",
           killed, rounds, runs + 1);
    tokmap_run_close(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(killed_consumers_lose_and_repeat_nothing, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
