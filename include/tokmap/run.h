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

/* A run with its datasets open. It is immutable. It must stay open until all loaders on it are closed. What its
 * functions report through pointers is valid until it is closed.
 *
 * @code
 *     struct tokmap_error e = {0};
 *     struct tokmap_run *run = NULL;
 *     if (tokmap_run_parse(&run, "seq_len 2048\nbatch 64\nsource data data/web\npasses 2\n", NULL, &e))
 *         fatal(&e);
 *     struct tokmap_source_info source = TOKMAP_SOURCE_INFO_INIT;
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

/* In place of a number of steps or passes: there is no end. */
#define TOKMAP_FOREVER UINT64_MAX

struct tokmap_run_options {
    size_t size;
    const char *folder;          /* in which relative paths start, of datasets, plans, and lists; NULL (default): the
                                    run file's folder, or for a text the current folder */
    enum tokmap_reading reading; /* of all sources, which changes no row; default: TOKMAP_READ_AUTO */
};
#define TOKMAP_RUN_OPTIONS_INIT TOKMAP_SIZED(struct tokmap_run_options)

/* Opens the run of a run file, or of its text: see src/run/RUN.md and tokmap-run(5).
 *   run      receives the handle; close it with tokmap_run_close()
 *   options  NULL: the defaults
 * Statuses: OK, ERROR_RUN (error->line is the line), ERROR_RANGE (a window is longer than the dataset, a source needs
 * more epochs than its line allows, the run trains on a validation set, or it has more than 2^63 rows or no step),
 * ERROR_MISMATCH (sources have different tokenizers, or a plan or a list of excluded documents is not of its dataset or
 * length), ERROR_LIMIT (the text has more than 16 MiB, the phases have too many sources, or the lists too many
 * documents), ERROR_FORMAT (the path is that of a dataset or of JSON, not of a run file, or error->line of a list is
 * wrong), ERROR_UNSUPPORTED (a list is of a source whose documents have no numbers), and those of
 * tokmap_dataset_open(). */
TOKMAP_STATUS tokmap_run_open(struct tokmap_run **run, const char *path, const struct tokmap_run_options *options,
                              struct tokmap_error *error);
TOKMAP_STATUS tokmap_run_parse(struct tokmap_run **run, const char *text, const struct tokmap_run_options *options,
                               struct tokmap_error *error);

/* Closes a run and its datasets. Close its loaders first. Cannot fail. */
TOKMAP_API void tokmap_run_close(struct tokmap_run *run);

/* Returns the text of a run file that describes the run: parsed in the same current folder, it is the same run (a list
 * of excluded documents is read again). NULL if
 * run is NULL or there was no memory. Cannot fail. */
TOKMAP_API const char *tokmap_run_text(const struct tokmap_run *run);

/* Opens a run that continues another one with other weights, batch, or length of rows from a step on: what a program
 * needs that changes them while it trains. All steps before it are the same, so loaders that have not delivered it can
 * move there with tokmap_loader_reload(). A checkpoint stores tokmap_run_text() of the new run beside the cursor.
 *   continued  receives the handle, a run like any other; close it with tokmap_run_close(). It does not need `run`
 *   step       0 to tokmap_run_info.steps. If the run skips it, the change begins with the next step that is not
 *              skipped. Later phases stay
 *   change     what a phase line says after its step, such as "prose 0.6 code 0.4" or "batch 512 seq_len 4096". It
 *              replaces a phase line of that step
 * Every rank must make the same change. Statuses: OK, ERROR_RANGE (among others: the run ends before the step), and
 * those of tokmap_run_open(); error->line is a line of the new text. */
TOKMAP_STATUS tokmap_run_continue(struct tokmap_run **continued, const struct tokmap_run *run, uint64_t step,
                                  const char *change, struct tokmap_error *error);

enum tokmap_order_kind {
    TOKMAP_SHUFFLE = 0,    /* the windows of each epoch, and the rows of each step, are permuted */
    TOKMAP_SEQUENTIAL = 1, /* windows are delivered in the order in which they are stored */
    TOKMAP_BLOCKS = 2, /* blocks of neighboring windows are permuted, the windows of every few blocks, and the rows of
                          each step */
    TOKMAP_EVEN = 3    /* the same, but every few blocks have one window each among as many draws: see ORDER.md */
};

struct tokmap_run_info {
    size_t size;
    uint64_t seq_len;      /* tokens of a sequence in the first phase */
    uint64_t lookahead;    /* tokens that a window has beyond seq_len */
    uint64_t stride;       /* tokens from one window's beginning to the next one's; 0: seq_len, in each phase */
    uint64_t batch;        /* rows of a global batch in the first phase */
    uint64_t seq_len_most; /* the largest seq_len of any phase */
    uint64_t batch_most;   /* the largest batch of any phase */
    uint64_t seed;
    enum tokmap_order_kind order;
    uint32_t width;          /* bytes of a token in a row: the largest width of the sources, 2 or 4 */
    uint64_t blocks;         /* of TOKMAP_BLOCKS and TOKMAP_EVEN: windows of a block; otherwise 0 */
    uint64_t span;           /* of the same: blocks whose windows are permuted together; otherwise 0 */
    uint64_t sources;        /* that steps may draw */
    uint64_t validations;    /* datasets that no step draws, which tokmap_run_evaluation() reads */
    uint64_t phases;         /* at least 1 */
    uint64_t steps;          /* the end of the step numbers, or TOKMAP_FOREVER */
    uint64_t delivered;      /* number of steps without the skipped ones, or TOKMAP_FOREVER */
    uint64_t remainder;      /* of a run with `passes`: windows left over because they do not fill a global batch */
    uint64_t real_rows_last; /* rows of the last step that are not padding; 0 if the run has no end */
    uint64_t vocabulary;     /* the largest vocabulary of any source or validation set; every id is below it */
    uint64_t pad_id;         /* the id with which rows are padded */
    uint32_t tail_pad;       /* 1: the end of each dataset, and the last step, are padded instead of left out */
    const char *warning;     /* a text for the user; NULL: none. A source's tokenizer is not known, or sources end their
                                documents with different ids */
};
#define TOKMAP_RUN_INFO_INIT TOKMAP_SIZED(struct tokmap_run_info)

/* Fills *info. Statuses: OK. */
TOKMAP_STATUS tokmap_run_info(const struct tokmap_run *run, struct tokmap_run_info *info);

struct tokmap_source_info {
    size_t size;
    const char *name;
    const char *data;                     /* the name with which the run opened the dataset, folder included */
    const struct tokmap_dataset *dataset; /* belongs to the run, which closes it */
    const char *plan;                     /* the path of its plan, folder included; NULL: it draws windows */
    uint64_t line;                        /* of the run file; 0: no text has the source */
    uint64_t windows;                     /* of one epoch, or rows of the plan; in the first phase */
    uint64_t tail; /* tokens after the stride of the last window of an epoch, in the first phase; 0 with a plan or
                      `tail pad` */
    uint64_t epochs_most; /* of `epochs<=N`; 0: no limit */
};
#define TOKMAP_SOURCE_INFO_INIT TOKMAP_SIZED(struct tokmap_source_info)

/* Fills *info for a source by its number. After the sources come the validation sets; their windows are those of an
 * evaluation with its defaults. Statuses: OK, ERROR_RANGE. */
TOKMAP_STATUS tokmap_run_source(const struct tokmap_run *run, uint64_t source, struct tokmap_source_info *info);

/* ---- phases and steps ---- */

/* A span of steps with a constant mixture of sources, batch, and sequence length. A run without phase lines has one. */
struct tokmap_phase_info {
    size_t size;
    uint64_t first_step;   /* the phase begins with this step */
    uint64_t end_step;     /* and ends before this one; TOKMAP_FOREVER in the last phase of a run without an end */
    uint64_t first_draw;   /* number of the first row of its first step over the whole run */
    uint64_t batch;        /* rows of a global batch */
    uint64_t seq_len;      /* tokens of a sequence */
    uint64_t shares;       /* sources in its mixture */
    uint64_t mixture_step; /* the step at which its mixture began, maybe in an earlier phase */
    uint64_t line;         /* of the run file; 0: no line begins the phase */
};
#define TOKMAP_PHASE_INFO_INIT TOKMAP_SIZED(struct tokmap_phase_info)

/* Fills *info for a phase by its number. Statuses: OK, ERROR_RANGE. */
TOKMAP_STATUS tokmap_run_phase(const struct tokmap_run *run, uint64_t phase, struct tokmap_phase_info *info);

/* Returns the number of the phase that has a step. The last phase has all steps beyond the run's end, too. O(log
 * phases). Cannot fail. */
TOKMAP_API uint64_t tokmap_run_phase_at(const struct tokmap_run *run, uint64_t step);

/* What one source has in one phase. Of d draws, the source gets d * weight / weights, up to less than one draw for each
 * level of the mixture's tree. */
struct tokmap_share_info {
    size_t size;
    uint64_t source;      /* its number */
    uint64_t weight;      /* in lowest terms, */
    uint64_t weights;     /* and the sum over all sources of the phase */
    uint64_t windows;     /* of one epoch at the phase's seq_len, or rows of the source's plan */
    uint64_t first_epoch; /* the epoch of its first draw in the phase */
    uint64_t first_draw;  /* number of that draw in its epoch */
    uint64_t draws;       /* in the phase, skipped steps included; without an end up to the 2^63rd row of the run */
};
#define TOKMAP_SHARE_INFO_INIT TOKMAP_SIZED(struct tokmap_share_info)

/* Fills *info for source number `share` of a phase. They are in byte order of their names. Statuses: OK, ERROR_RANGE.
 */
TOKMAP_STATUS tokmap_run_share(const struct tokmap_run *run, uint64_t phase, uint64_t share,
                               struct tokmap_share_info *info);

/* Computes how many rows of steps [0, step), skipped ones included, show a source. step is at most
 * tokmap_run_info.steps. O(log phases + log sources). Statuses: OK, ERROR_RANGE. */
TOKMAP_STATUS tokmap_run_drawn(const struct tokmap_run *run, uint64_t source, uint64_t step, uint64_t *draws);

/* Returns the step from which the run excludes a token of a source's dataset; TOKMAP_FOREVER: it never does, or there
 * is no such token. In rows of that step and later ones, which loaders deliver, the token is tokmap_run_info.pad_id.
 * The functions on places, extents, and datasets know only where it is. O(log stretches of excluded documents).
 * Cannot fail. */
TOKMAP_API uint64_t tokmap_run_excluded(const struct tokmap_run *run, uint64_t source, uint64_t token);

/* Returns 1 if `step` is delivered, that is, before the run's end and not skipped; otherwise 0. Cannot fail. */
TOKMAP_API int tokmap_run_delivers(const struct tokmap_run *run, uint64_t step);

/* Returns the number of rows in the global batch of `step`, skipped or not; 0 from the run's end on. Cannot fail. */
TOKMAP_API uint64_t tokmap_run_rows(const struct tokmap_run *run, uint64_t step);

/* Returns how many of these rows are not padding: the first ones. All are, except in the last step of a run with `tail
 * pad`. Cannot fail. */
TOKMAP_API uint64_t tokmap_run_real_rows(const struct tokmap_run *run, uint64_t step);

/* ---- the places of rows ---- */

/* In tokmap_place.source: the row is padding, and shows no source. */
#define TOKMAP_NO_SOURCE UINT64_MAX

/* Which window one row of one step contains. */
struct tokmap_place {
    uint64_t step;
    uint64_t row;         /* in the global batch */
    uint64_t draw;        /* number of the row over the whole run, before rows are permuted within their step */
    uint64_t source;      /* number of the source; TOKMAP_NO_SOURCE: padding, and all members below are 0 */
    uint64_t epoch;       /* of the source */
    uint64_t window;      /* number of the window in its epoch, or of the row in the source's plan */
    uint64_t first_token; /* address of the window's, or the first segment's, first token in the source's dataset,
                             which may be a part of another one */
    uint64_t tokens;      /* of the dataset in the row: seq_len + lookahead, where the dataset's first token follows its
                             last one. The last windows with `tail pad`, and rows of a plan, may have fewer, and then
                             padding */
};

/* Computes which window a row of a step contains, in constant time and without reading a file but a row of the plan.
 * Skipped steps have the places that they would have had. Where a plan contradicts itself, first_token and tokens are
 * 0, and tokmap_run_extents() reports why.
 * Statuses: OK, ERROR_RANGE (the run does not have the step or the row), ERROR_IO or ERROR_TRUNCATED (the plan cannot
 * be read). */
TOKMAP_STATUS tokmap_run_locate(const struct tokmap_run *run, uint64_t step, uint64_t row, struct tokmap_place *place,
                                struct tokmap_error *error);

/* Tokens [first_token, first_token + tokens) of a source's dataset, whose first token follows its last one. */
struct tokmap_extent {
    uint64_t first_token;
    uint64_t tokens;
};

/* Reports what a row is made of: extents[0] to extents[*used - 1], one after another, and padding after them. A window
 * is one extent. A row of a plan has one for each segment: a document, or a part of one that is longer than a row. In a
 * plan of `tokmap plan --pad-documents` each may be followed by an extent of padding, whose first_token is UINT64_MAX.
 * A padding row has none.
 *   place    from this run
 *   extents  receives the first `capacity` of them; NULL if the capacity is 0
 *   used     receives their number
 * Statuses: OK, ERROR_LIMIT (there are more than `capacity`: call it again with room for *used), ERROR_CORRUPT (the
 * plan contradicts itself), ERROR_IO or ERROR_TRUNCATED (it cannot be read). */
TOKMAP_STATUS tokmap_run_extents(const struct tokmap_run *run, const struct tokmap_place *place,
                                 struct tokmap_extent *extents, uint64_t capacity, uint64_t *used,
                                 struct tokmap_error *error);

/* Inverts tokmap_run_locate(): calls found() for every delivered row of steps [first_step, end_step) whose
 * window contains any of the tokens [first_token, first_token + count) of a source's dataset, in order of epoch and
 * window. The time depends on the number of epochs and of windows found, not on the size of the dataset.
 *   end_step  TOKMAP_FOREVER: to the run's end, which it must then have
 *   found     called in the calling thread; `place` is valid during the call. It returns 0 to continue; any other value
 *             ends the search with ERROR_INTERRUPTED
 *   user      passed to found()
 * Statuses: OK, ERROR_RANGE, ERROR_INTERRUPTED, ERROR_IO or ERROR_TRUNCATED (a plan cannot be read), ERROR_CORRUPT (it
 * contradicts itself). */
TOKMAP_STATUS tokmap_run_find(const struct tokmap_run *run, uint64_t source, uint64_t first_token, uint64_t count,
                              uint64_t first_step, uint64_t end_step,
                              int (*found)(void *user, const struct tokmap_place *place), void *user,
                              struct tokmap_error *error);

/* ---- evaluation ---- */

struct tokmap_evaluation_options {
    size_t size;
    const char *source; /* one validation set or source of the run; default: NULL, all validation sets, or all sources
                           of a run without any, mixed in proportion to their windows */
    const char *part;   /* of the source's dataset, such as "docs=99..100%"; default: NULL, what the run leaves out */
    uint64_t seq_len;   /* default: 0, the largest of the run */
    uint64_t lookahead; /* default: TOKMAP_DEFAULT, 1, whatever the run has */
    uint64_t stride;    /* 1 to seq_len: windows overlap, and only the last `stride` targets of each but a dataset's
                           first count; default: 0, seq_len */
    uint64_t batch;     /* rows of a global batch; default: 0, that of the run's first phase */
    uint64_t steps;     /* the evaluation ends after this many steps; default: TOKMAP_FOREVER, one pass over the data */
    uint64_t pad_id;    /* default: TOKMAP_DEFAULT, that of the run */
    uint32_t trained;   /* 1: data that the run trains on is read too; default: 0, it is refused */
    enum tokmap_reading reading; /* default: TOKMAP_READ_AUTO */
};
/* clang-format off */
#define TOKMAP_EVALUATION_OPTIONS_INIT \
    {sizeof(struct tokmap_evaluation_options), NULL, NULL, 0, TOKMAP_DEFAULT, 0, 0, TOKMAP_FOREVER, TOKMAP_DEFAULT, 0, \
     TOKMAP_READ_AUTO}
/* clang-format on */

/* Opens a run that evaluates on data which another run leaves out: windows in the order of the dataset, one pass, with
 * `tail pad`, so every target counts exactly once and every rank makes the same calls with the same shapes.
 *   evaluation  receives the handle, a run like any other; close it with tokmap_run_close(). It does not need `run`
 *   options     NULL: the defaults
 * It reads the validation sets of the run, or else what the run's parts of a dataset leave out (the last hundredth for
 * `#docs=0..99%`). What the run trains on is refused: content ids of shards and their tokens are compared. Windows are
 * drawn, without a plan.
 * Statuses: OK, ERROR_NOT_FOUND (no source has that name, or nothing is left out), ERROR_RANGE (among others: the run
 * trains on some of it; or it is a single token, which has no target), and those of tokmap_run_open(). */
TOKMAP_STATUS tokmap_run_evaluation(struct tokmap_run **evaluation, const struct tokmap_run *run,
                                    const struct tokmap_evaluation_options *options, struct tokmap_error *error);

/* ---- cursors ---- */

/* Bytes that hold the text of any cursor, including its terminating zero. */
#define TOKMAP_CURSOR_TEXT 160

/* The exact resume state of a run: the next step to deliver, and a fingerprint of the past before that step. It is the
 * same on every rank. During a step it is the cursor of the start of that step. It is a plain value. Its text belongs
 * in a checkpoint, and in tokmap_loader_options.resume.
 */
struct tokmap_cursor {
    uint64_t step;
    uint64_t tokens;  /* delivered before it, over all ranks, without skipped steps; at most UINT64_MAX */
    uint64_t past[2]; /* fingerprint of the run restricted to the steps before `step` */
    uint32_t of[5];   /* fingerprints of its kinds: geometry, order (with the seed), batch, skips, data */
};

/* Writes the text of a cursor: one line, "tokmap1 step=.. tokens=.. past=.. of=..", without a newline; "" if cursor is
 * NULL. Cannot fail. */
TOKMAP_API void tokmap_cursor_print(const struct tokmap_cursor *cursor, char text[TOKMAP_CURSOR_TEXT]);

/* Reads the text of a cursor. White space around it is ignored.
 * Statuses: OK, ERROR_CURSOR, ERROR_VERSION (a newer version of tokmap wrote it). */
TOKMAP_STATUS tokmap_cursor_parse(struct tokmap_cursor *cursor, const char *text, struct tokmap_error *error);

/* Computes the cursor of the start of a step, 0 to tokmap_run_info.steps, inclusive. For a skipped step it is the
 * cursor of the next step that is delivered, or of the run's end. Statuses: OK, ERROR_RANGE. */
TOKMAP_STATUS tokmap_run_cursor(const struct tokmap_run *run, uint64_t step, struct tokmap_cursor *cursor,
                                struct tokmap_error *error);

/* Compares the run's past before cursor->step with the past that the cursor records. The error names each kind that
 * differs and the lines of the run that set it. Changes to the future (the end, later skips and phases, sources that
 * have not been drawn) do not matter.
 * Statuses: OK, ERROR_PAST, ERROR_RANGE (the step is after the run's end). */
TOKMAP_STATUS tokmap_run_check_cursor(const struct tokmap_run *run, const struct tokmap_cursor *cursor,
                                      struct tokmap_error *error);

#ifdef __cplusplus
}
#endif
#endif
