/* SPDX-License-Identifier: MIT */
/*
 * run.h - runs, the places of their rows, and cursors; tokmap.h has the rules for all functions
 */
#ifndef TOKMAP_RUN_H
#define TOKMAP_RUN_H

#include <stddef.h>
#include <stdint.h>

#include "dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A run with its datasets open. It is immutable: any number of threads may use it at the same time, and so may a child
 * after fork(). It must stay open until all loaders on it are closed.
 *
 * A row of a step can be located, and a document found, without reading tokens:
 *
 * @code
 *     struct tokmap_error e = {0};
 *     struct tokmap_run *run = NULL;
 *     struct tokmap_run_options o = TOKMAP_RUN_OPTIONS_INIT;
 *     o.data = "data/web";
 *     o.seq_len = 2048;
 *     o.batch = 64;
 *     o.seed = 1;
 *     o.passes = 2;
 *     if (tokmap_run_make(&run, &o, &e))
 *         fatal(&e);
 *     struct tokmap_source_info source = {.size = sizeof source};
 *     struct tokmap_place place;
 *     struct tokmap_document document;
 *     if (tokmap_run_source(run, 0, &source) || tokmap_run_locate(run, 12345, 17, &place, &e) ||
 *         tokmap_dataset_document_at(source.dataset, place.first_token, &document, &e))
 *         fatal(&e);
 *     printf("row 17 of step 12345 begins in document %" PRIu64 "\n", document.number);
 *     if (tokmap_run_find(run, 0, document.first_token, document.tokens, 0, TOKMAP_FOREVER, found, NULL, &e))
 *         fatal(&e);                                  // found() is called for every row that contains the document
 *     tokmap_run_close(run);
 * @endcode
 */
struct tokmap_run;

#define TOKMAP_FOREVER UINT64_MAX

enum tokmap_order_kind {
    TOKMAP_SHUFFLE = 0,    /* the windows of each epoch, and the rows of each step, are permuted */
    TOKMAP_SEQUENTIAL = 1, /* windows are delivered in the order in which they are stored */
    TOKMAP_BLOCKS = 2      /* blocks of neighboring windows are permuted, and then the windows of every few blocks, for
                              storage that is fast only with long reads; the rows of each step are permuted */
};

/* A run of one source, made from arguments. The source is called "data". A run file with a source of that name and the
 * same values is the same run: cursors are interchangeable. */
struct tokmap_run_options {
    size_t size;                  /* sizeof(struct tokmap_run_options) */
    const char *data;             /* name of the dataset, as for tokmap_dataset_open() */
    uint64_t seq_len;             /* tokens of a sequence, 1 to 2^31 */
    uint64_t lookahead;           /* tokens that a window has beyond seq_len, 0 to 2^31; default: 1, so that each token
                                     has a target */
    uint64_t batch;               /* rows of a global batch, over all ranks, 1 (default) to 2^31 */
    uint64_t seed;                /* default: 0 */
    enum tokmap_order_kind order; /* TOKMAP_SHUFFLE (default) or TOKMAP_SEQUENTIAL; TOKMAP_BLOCKS needs a text */
    uint64_t steps;               /* the run ends after this many steps; default: TOKMAP_FOREVER */
    uint64_t passes;              /* the run ends after this many passes over the data; default: TOKMAP_FOREVER. Set at
                                     most one of steps and passes */
    enum tokmap_reading reading;  /* default: TOKMAP_READ_AUTO */
};
#define TOKMAP_RUN_OPTIONS_INIT                                                                                        \
    {                                                                                                                  \
        sizeof(struct tokmap_run_options), NULL, 0, 1, 1, 0, TOKMAP_SHUFFLE, TOKMAP_FOREVER, TOKMAP_FOREVER,           \
            TOKMAP_READ_AUTO                                                                                           \
    }

/* Opens the run that a file describes. The grammar is in src/run/RUN.md and in the man page tokmap-run(5).
 *   run   receives the handle; close it with tokmap_run_close()
 *   path  the run file; relative paths in it start from its own folder
 * Any thread may call it.
 * Statuses: OK, ERROR_RUN (error->line is the line), ERROR_RANGE (a window is longer than the dataset, a source needs
 * more epochs than its line allows, the run trains on a validation set, or it has more than 2^63 rows or no step),
 * ERROR_MISMATCH (sources have different tokenizers, or a plan is not of its dataset or length), ERROR_LIMIT (the text
 * has more than 16 MiB, or the phases have too many sources), ERROR_FORMAT (the path is that of a dataset or of JSON,
 * not of a run file), and those of tokmap_dataset_open(). */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_run_open(struct tokmap_run **run, const char *path,
                                                                struct tokmap_error *error);

/* Opens a run from the text of a run file, terminated by a zero byte. Relative paths in it start from `folder`, or from
 * the current folder if that is NULL. Everything else is as in tokmap_run_open().
 * Statuses: those of tokmap_run_open(). */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_run_parse(struct tokmap_run **run, const char *text,
                                                                 const char *folder, struct tokmap_error *error);

/* Does the same, and chooses how the tokens of all sources are read, which tokmap_run_parse() leaves to
 * TOKMAP_READ_AUTO. It changes no row.
 * Statuses: those of tokmap_run_open(), and ERROR_ARGUMENT (another value of reading). */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_run_parse_reading(struct tokmap_run **run, const char *text,
                                                                         const char *folder,
                                                                         enum tokmap_reading reading,
                                                                         struct tokmap_error *error);

/* Opens a run from arguments. Everything else is as in tokmap_run_open().
 * Statuses: those of tokmap_run_open(), except ERROR_RUN. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status
tokmap_run_make(struct tokmap_run **run, const struct tokmap_run_options *options, struct tokmap_error *error);

/* Closes a run and its datasets. Accepts NULL. Close its loaders first. Cannot fail. */
TOKMAP_API void tokmap_run_close(struct tokmap_run *run);

struct tokmap_run_info {
    size_t size;        /* set by the caller: sizeof(struct tokmap_run_info) */
    uint64_t seq_len;   /* tokens of a sequence in the first phase */
    uint64_t lookahead; /* tokens that a window has beyond seq_len */
    uint64_t batch;     /* rows of a global batch in the first phase */
    uint64_t seed;
    enum tokmap_order_kind order;
    uint64_t sources;    /* that steps may draw: see tokmap_run_source() */
    uint64_t steps;      /* the run's step numbers are below this; TOKMAP_FOREVER if it has no end */
    uint64_t delivered;  /* the number of steps that are delivered, which is all but the skipped ones; TOKMAP_FOREVER if
                            the run has no end */
    uint64_t remainder;  /* of a run with `passes`: windows left over because they do not fill a global batch */
    uint64_t phases;     /* at least 1: see tokmap_run_phase() */
    uint64_t stride;     /* tokens from the beginning of a window to that of the next; 0: seq_len, in each phase */
    uint64_t batch_most; /* the largest batch of any phase */
    uint64_t seq_len_most;   /* the largest seq_len of any phase */
    uint64_t pad_id;         /* the id with which rows are padded */
    uint32_t tail_pad;       /* 1: the end of each dataset, and the run's last step, are padded instead of left out */
    uint32_t warned;         /* 1: warning is not NULL */
    uint64_t blocks;         /* of TOKMAP_BLOCKS: windows of a block; otherwise 0 */
    uint64_t span;           /* of TOKMAP_BLOCKS: blocks whose windows are permuted together; otherwise 0 */
    uint64_t real_rows_last; /* rows of the last step that are not padding; 0 if the run has no end */
    uint64_t vocabulary;     /* the largest vocabulary of the sources and validation sets; every id is below it */
    uint32_t width;          /* bytes of a token in a row: the largest width of the sources, 2 or 4 */
    const char *warning;     /* a text that the user should read, valid until the run is closed; NULL: none. A source's
                                tokenizer is not known, or sources end their documents with different ids */
    uint64_t validations;    /* lines `validation`: datasets that no step draws, which tokmap_run_evaluation() reads.
                                tokmap_run_source() has them after the sources */
};

/* Fills *info. Statuses: OK, ERROR_ARGUMENT (an argument is NULL, or info->size is not set). */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_run_info(const struct tokmap_run *run,
                                                                struct tokmap_run_info *info);

struct tokmap_source_info {
    size_t size;                          /* set by the caller: sizeof(struct tokmap_source_info) */
    const char *name;                     /* valid until the run is closed */
    const struct tokmap_dataset *dataset; /* valid until the run is closed, which closes it */
    uint64_t windows;                     /* of one epoch, or rows of the plan; in the first phase */
    uint64_t tail;                        /* tokens left over in one epoch, in the first phase: those of the dataset
                                             after the stride of its last window; 0 with a plan or `tail pad` */
    const char *data;                     /* the name with which the run opened the dataset, the run file's folder
                                             included; valid until the run is closed */
    const char *plan;                     /* the path of its plan, folder included; NULL: it draws windows */
    uint64_t epochs_most;                 /* of `epochs<=N`; 0: no limit */
    uint64_t line;                        /* of the run file; 0: the run was made from arguments */
};

/* Fills *info for source number `source`, from 0, below tokmap_run_info.sources. The next numbers, as many as
 * tokmap_run_info.validations, are the validation sets; their windows are those of an evaluation with its defaults.
 * Statuses: OK, ERROR_RANGE, ERROR_ARGUMENT (an argument is NULL, or info->size is not set). */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_run_source(const struct tokmap_run *run, uint64_t source,
                                                                  struct tokmap_source_info *info);

/* A phase: a span of steps with a constant mixture of sources, batch, and sequence length. A run without phase
 * lines has one phase. */
struct tokmap_phase_info {
    size_t size;           /* set by the caller: sizeof(struct tokmap_phase_info) */
    uint64_t first_step;   /* the phase begins with this step */
    uint64_t end_step;     /* and ends before this one; TOKMAP_FOREVER in the last phase of a run without an end */
    uint64_t first_draw;   /* number of the first row of its first step over the whole run */
    uint64_t batch;        /* rows of a global batch */
    uint64_t seq_len;      /* tokens of a sequence */
    uint64_t shares;       /* sources in its mixture: see tokmap_run_share() */
    uint64_t mixture_step; /* the step at which its mixture began, which is in an earlier phase if the phase line has no
                              weights */
    uint64_t line;         /* of the run file; 0: no line begins the phase, as in a run without `phase 0` */
};

/* Fills *info for phase number `phase`, from 0, below tokmap_run_info.phases.
 * Statuses: OK, ERROR_RANGE, ERROR_ARGUMENT (an argument is NULL, or info->size is not set). */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_run_phase(const struct tokmap_run *run, uint64_t phase,
                                                                 struct tokmap_phase_info *info);

/* Returns the number of the phase that has step `step`. The last phase has every step after its first one, also beyond
 * the run's end. 0 for NULL. O(log phases). Cannot fail. */
TOKMAP_API uint64_t tokmap_run_phase_at(const struct tokmap_run *run, uint64_t step);

/* What one source has in one phase. Of d draws, the source gets d * weight / weights, up to less than one draw for each
 * level of the mixture's tree. */
struct tokmap_share_info {
    size_t size;          /* set by the caller: sizeof(struct tokmap_share_info) */
    uint64_t source;      /* its number */
    uint64_t weight;      /* of the source, in lowest terms, */
    uint64_t weights;     /* and the sum over all sources of the phase */
    uint64_t windows;     /* of one epoch at the phase's seq_len, or rows of the source's plan */
    uint64_t first_epoch; /* the epoch of its first draw in the phase */
    uint64_t first_draw;  /* number of that draw in its epoch */
    uint64_t draws;       /* that it gets in the phase, in skipped steps too; in the last phase of a run without an end,
                             up to the 2^63rd row of the run */
};

/* Fills *info for source number `share`, from 0, below tokmap_phase_info.shares, of phase number `phase`. The sources
 * of a phase are in byte order of their names.
 * Statuses: OK, ERROR_RANGE, ERROR_ARGUMENT (an argument is NULL, or info->size is not set). */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_run_share(const struct tokmap_run *run, uint64_t phase,
                                                                 uint64_t share, struct tokmap_share_info *info);

/* Computes how many rows of steps [0, step), skipped steps included, show source number `source`.
 *   step  at most tokmap_run_info.steps
 * O(log phases + log sources). Any thread may call it. Statuses: OK, ERROR_RANGE, ERROR_ARGUMENT (an argument is
 * NULL). */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_run_drawn(const struct tokmap_run *run, uint64_t source,
                                                                 uint64_t step, uint64_t *draws);

/* Returns 1 if `step` is delivered, that is, before the run's end and not skipped; otherwise 0. Cannot fail. */
TOKMAP_API int tokmap_run_delivers(const struct tokmap_run *run, uint64_t step);

/* Returns the number of rows in the global batch of `step`, skipped or not; 0 from the run's end on. Cannot fail. */
TOKMAP_API uint64_t tokmap_run_rows(const struct tokmap_run *run, uint64_t step);

/* Returns the rows of step `step` that are not padding. It is tokmap_run_rows(), except in the last step of a run with
 * `tail pad`. The rows before this number are real, and all others are padding. Cannot fail. */
TOKMAP_API uint64_t tokmap_run_real_rows(const struct tokmap_run *run, uint64_t step);

/* In tokmap_place.source: the row is padding, and shows no source. */
#define TOKMAP_NO_SOURCE UINT64_MAX

/* Which window one row of one step contains. */
struct tokmap_place {
    uint64_t step;
    uint64_t row;         /* in the global batch, from 0 */
    uint64_t draw;        /* number of the row over the whole run, before rows are permuted within their step */
    uint64_t source;      /* number of the source, from 0; TOKMAP_NO_SOURCE: the row is padding, and all members below
                             are 0 */
    uint64_t epoch;       /* of the source, from 0 */
    uint64_t window;      /* number of the window in its epoch, or of the row in the source's plan, from 0 */
    uint64_t first_token; /* address of the window's first token in the source's dataset; in a plan, that of the row's
                             first segment */
    uint64_t tokens;      /* of the dataset in the row. Of a window they are seq_len + lookahead; after the dataset's
                             last token the window continues with its first. With `tail pad` the last windows, and rows
                             of a plan, may have fewer tokens, and padding follows them */
};

/* Computes which window row `row` of step `step` contains, in constant time and without reading a file, except a row of
 * the plan if the source has one. Skipped steps have places too: those that the step would have had.
 * tokmap_run_delivers() tells them apart. Where a plan contradicts itself, first_token and tokens are 0, and
 * tokmap_run_extents() reports why.
 * Statuses: OK, ERROR_RANGE (the run does not have the step or the row), ERROR_IO or ERROR_TRUNCATED (the plan cannot
 * be read), ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_run_locate(const struct tokmap_run *run, uint64_t step,
                                                                  uint64_t row, struct tokmap_place *place,
                                                                  struct tokmap_error *error);

/* Tokens [first_token, first_token + tokens) of a source's dataset. After the dataset's last token they continue with
 * its first. */
struct tokmap_extent {
    uint64_t first_token;
    uint64_t tokens;
};

/* Reports what a row is made of: extents[0] to extents[*used - 1], one after another, and after them padding up to
 * seq_len + lookahead tokens. A window is one extent. A row of a plan is one extent for each of its segments, in their
 * order; the segments are whole documents, or parts of a document that is longer than a row. A padding row has none.
 *   place     from tokmap_run_locate() or tokmap_run_find() of this run
 *   extents   receives the first `capacity` of them; NULL if the capacity is 0
 *   used      receives their number
 * Any thread may call it. Statuses: OK, ERROR_LIMIT (there are more than `capacity`: call it again with room for
 * *used), ERROR_CORRUPT (the plan contradicts itself), ERROR_IO or ERROR_TRUNCATED (it cannot be read),
 * ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_run_extents(const struct tokmap_run *run,
                                                                   const struct tokmap_place *place,
                                                                   struct tokmap_extent *extents, uint64_t capacity,
                                                                   uint64_t *used, struct tokmap_error *error);

/* The inverse of tokmap_run_locate(): calls found() for every delivered row of steps [first_step, end_step) whose
 * window contains any of the tokens [first_token, first_token + count) of a source's dataset, in order of epoch and
 * window. To find the rows of a document, pass its first_token and tokens.
 *   end_step  TOKMAP_FOREVER: to the run's end, which it must then have
 *   found     called in the calling thread; `place` is valid during the call. It returns 0 to continue; any other value
 *             ends the search with ERROR_INTERRUPTED
 *   user      passed to found()
 * The time depends on the number of epochs and of windows found, not on the size of the dataset.
 * Statuses: OK, ERROR_RANGE, ERROR_INTERRUPTED, ERROR_IO or ERROR_TRUNCATED (a plan cannot be read), ERROR_CORRUPT (it
 * contradicts itself), ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status
tokmap_run_find(const struct tokmap_run *run, uint64_t source, uint64_t first_token, uint64_t count,
                uint64_t first_step, uint64_t end_step, int (*found)(void *user, const struct tokmap_place *place),
                void *user, struct tokmap_error *error);

/* Returns the text of a run file that describes the run: parsed with `folder` NULL in the same current folder, it is
 * the same run. It is how a run made from arguments, or by tokmap_run_evaluation(), is shown and saved. The text is
 * valid until the run is closed; NULL if run is NULL, if a name in the arguments has a control character, which no text
 * of a run can have, or if there was no memory for it. Any thread may call it. Cannot fail. */
TOKMAP_API const char *tokmap_run_text(const struct tokmap_run *run);

/* What tokmap_run_evaluation() reads. */
struct tokmap_evaluation_options {
    size_t size;        /* sizeof(struct tokmap_evaluation_options) */
    const char *source; /* the name of one validation set or source of the run; default: NULL, all validation sets, or
                           all sources of a run without any, mixed in proportion to their windows */
    const char *part;   /* a part of the source's dataset, such as "docs=99..100%" or "tokens=0..1000000"; default:
                           NULL, what the run's parts of that dataset leave out */
    uint64_t batch;     /* rows of a global batch; default: 0, that of the run's first phase */
    uint64_t seq_len;   /* default: 0, the largest of the run */
    uint64_t lookahead; /* default: TOKMAP_NO_ID, 1, whatever the run has */
    uint64_t stride;    /* 1 to seq_len: windows overlap, and of each but the first of a dataset only the last `stride`
                           targets count; default: 0, seq_len */
    uint64_t pad_id;    /* default: TOKMAP_NO_ID, that of the run */
    uint64_t steps;     /* the evaluation ends after this many steps; default: TOKMAP_FOREVER, one pass over the data */
    uint32_t trained;   /* 1: data that the run trains on is read too; default: 0, it is refused */
    enum tokmap_reading reading; /* default: TOKMAP_READ_AUTO */
};
#define TOKMAP_EVALUATION_OPTIONS_INIT                                                                                 \
    {                                                                                                                  \
        sizeof(struct tokmap_evaluation_options), NULL, NULL, 0, 0, TOKMAP_NO_ID, 0, TOKMAP_NO_ID, TOKMAP_FOREVER, 0,  \
            TOKMAP_READ_AUTO                                                                                           \
    }

/* Opens a run that evaluates on data which another run leaves out: windows in the order of the dataset, one pass, with
 * `tail pad`, so every target counts exactly once and every rank makes the same calls with the same shapes. For a run
 * file with `validation val data/web.val`:
 *
 * @code
 *     struct tokmap_error e = {0};
 *     struct tokmap_run *evaluation = NULL;
 *     struct tokmap_evaluation_options o = TOKMAP_EVALUATION_OPTIONS_INIT;
 *     o.batch = 32;
 *     if (tokmap_run_evaluation(&evaluation, run, &o, &e)) // data/web.val
 *         fatal(&e);
 *     puts(tokmap_run_text(evaluation));
 *     tokmap_run_close(evaluation);
 * @endcode
 *
 *   evaluation  receives the handle, a run like any other; close it with tokmap_run_close(). It does not need `run`
 *   options     NULL: the defaults
 * It reads the validation sets of the run. For a run without any, or if options.source names a source, it reads what
 * the run's parts of a dataset leave out: for `source web data/web#docs=0..99%` these are the last hundredth of the
 * documents; datasets of which nothing is left out are not read, and one must remain. What it reads is compared with
 * what the run trains on, by the content ids of shards and the tokens of each, and refused if they have any in common.
 * Copies of a text in other shards are not found. A plan is not used: windows are drawn. Any thread may call it.
 * Statuses: OK, ERROR_NOT_FOUND (no source has that name, or nothing is left out), ERROR_RANGE (among others: the run
 * trains on some of it), and those of tokmap_run_open(). */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_run_evaluation(struct tokmap_run **evaluation,
                                                                      const struct tokmap_run *run,
                                                                      const struct tokmap_evaluation_options *options,
                                                                      struct tokmap_error *error);

/* ---------------------------------------------------------------- cursor ---------------------------------------- */

/* Bytes that hold the text of any cursor, including its terminating zero. */
#define TOKMAP_CURSOR_TEXT 160

/* The exact resume state of a run: the next step to deliver, and a fingerprint of the past before that step. It is the
 * same on every rank. During a step it is the cursor of the start of that step. It is a plain value.
 *
 * The text of a cursor belongs in a checkpoint. tokmap_loader_options.resume takes it; to examine it first:
 *
 * @code
 *     struct tokmap_error e = {0};
 *     struct tokmap_cursor cursor;
 *     if (tokmap_cursor_parse(&cursor, saved_text, &e))
 *         fatal(&e);
 *     if (tokmap_run_check_cursor(run, &cursor, &e) == TOKMAP_ERROR_PAST)
 *         puts(e.message);                            // which kinds differ, and the lines of the run that set them
 *     printf("resumes at step %" PRIu64 "\n", cursor.step);
 * @endcode
 */
struct tokmap_cursor {
    uint64_t step;
    uint64_t tokens;  /* delivered before it, over all ranks: rows * seq_len, without skipped steps; UINT64_MAX if
                         the number is larger */
    uint64_t past[2]; /* fingerprint of the run restricted to the steps before `step` */
    uint32_t of[5];   /* fingerprints of its kinds: geometry, order (with the seed), batch, skips, data */
};

/* Writes the text of a cursor: one line, "tokmap1 step=.. tokens=.. past=.. of=..", without a newline; "" if cursor is
 * NULL. Any thread may call it. Cannot fail. */
TOKMAP_API void tokmap_cursor_print(const struct tokmap_cursor *cursor, char text[TOKMAP_CURSOR_TEXT]);

/* Reads the text of a cursor. White space around it is ignored. Any thread may call it.
 * Statuses: OK, ERROR_CURSOR, ERROR_VERSION (a newer version of tokmap wrote it), ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_cursor_parse(struct tokmap_cursor *cursor, const char *text,
                                                                    struct tokmap_error *error);

/* Computes the cursor of the start of a step. For a skipped step it is the cursor of the next step that is delivered,
 * or of the run's end.
 *   step  0 to tokmap_run_info.steps, inclusive
 * Statuses: OK, ERROR_RANGE, ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_run_cursor(const struct tokmap_run *run, uint64_t step,
                                                                  struct tokmap_cursor *cursor,
                                                                  struct tokmap_error *error);

/* Compares the run's past before cursor->step with the past that the cursor records. If they differ, the error names
 * each kind that differs and the lines of the run that set it. Changes to the future (steps, passes, later skips and
 * phases, sources that have not been drawn) do not matter.
 * Statuses: OK, ERROR_PAST, ERROR_RANGE (the step is after the run's end), ERROR_ARGUMENT, ERROR_MEMORY. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status
tokmap_run_check_cursor(const struct tokmap_run *run, const struct tokmap_cursor *cursor, struct tokmap_error *error);

#ifdef __cplusplus
}
#endif
#endif
