/* SPDX-License-Identifier: MIT */
/*
 * loader.h - loaders, their options, batches, and statistics; tokmap.h has the rules for all functions
 */
#ifndef TOKMAP_LOADER_H
#define TOKMAP_LOADER_H

#include <stddef.h>
#include <stdint.h>

#include "run.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Delivers a run's rows to one rank. Of sources in object storage it fetches the blocks that its rows need ahead of
 * them, and says which blocks the cache folder should keep (tokmap-remote(7)). One thread at a time may call next(),
 * wait(), rewind(), repartition(), reload(), read(), flush(), and calls_per_step(). Any thread may call the other
 * functions at any time before the loader is closed, except during repartition() and reload(). In a child after fork()
 * that may not use the loader (see tokmap.h), all but close() are ERROR_ARGUMENT.
 *
 * The program in tokmap.h shows a loader. To resume, and to read the rows without copying them:
 *
 * @code
 *     struct tokmap_error e = {0};
 *     struct tokmap_loader *loader = NULL;
 *     struct tokmap_loader_options o = TOKMAP_LOADER_OPTIONS_INIT;
 *     o.resume = saved_text;
 *     o.fields = 0;                                   // pointers to the rows only
 *     if (tokmap_loader_open(&loader, run, &o, &e))
 *         fatal(&e);
 *     struct tokmap_batch b = TOKMAP_BATCH_INIT;
 *     if (tokmap_loader_next(loader, NULL, NULL, &b, &e))
 *         fatal(&e);
 *     for (uint64_t i = 0; i < b.count; i++)
 *         printf("row %" PRIu64 " is window %" PRIu64 "\n", b.first_row + i, b.places[i].window);
 *     tokmap_loader_close(loader);
 * @endcode
 */
struct tokmap_loader;

/* The fields that next() can deliver; combine them with |. Most are arrays [i][j] with i < count and j < seq_len. Those
 * with targets need lookahead >= 1. tokmap(7) says when a target counts and where documents start. */
enum {
    TOKMAP_INPUTS = 1 << 0,        /* inputs[i][j] = token j of row i */
    TOKMAP_TARGETS = 1 << 1,       /* targets[i][j] = token j + 1 of row i; TOKMAP_IGNORE in padding, and with
                                      options.mask_targets where it does not count */
    TOKMAP_POSITION_IDS = 1 << 2,  /* position_ids[i][j] = how many tokens token j is after its document's start */
    TOKMAP_ROWS = 1 << 3,          /* rows: the seq_len + lookahead tokens of each row, in the run's width */
    TOKMAP_DOCUMENT_IDS = 1 << 4,  /* document_ids[i][j] = how many documents start at tokens 1 to j of row i */
    TOKMAP_LOSS_MASK = 1 << 5,     /* loss_mask[i][j] = 1 if the target of token j counts, else 0 */
    TOKMAP_CU_SEQLENS = 1 << 6,    /* cu_seqlens, batch.documents, batch.max_seqlen: where documents begin and end, for
                                      variable-length attention. Padding is a document of its own */
    TOKMAP_TARGETS_AHEAD = 1 << 7, /* targets_ahead[i][j][k] = token j + 1 + k of row i, for k < lookahead;
                                      TOKMAP_IGNORE as in targets, and then also beyond the document of token j */
    TOKMAP_LABELS = 1 << 8,        /* labels[i][j] = token j of row i if it counts as the target of token j - 1, else
                                      TOKMAP_IGNORE: for models that shift targets themselves */
    TOKMAP_SOURCE_IDS = 1 << 9,    /* source_ids[i] = the source of row i, a number of tokmap_run_source();
                                      TOKMAP_IGNORE for a row of padding */
    TOKMAP_CU_SEQLENS_SLICE = 1 << 10 /* cu_seqlens_slice, batch.max_seqlen_slice: the same as cu_seqlens, counted over
                                         the columns that this rank gets, with options.context_world */
};

/* How ranks that share their rows divide the columns of each, for context parallelism. Rank c of C gets
 * seq_len / C columns, in rising order: */
enum tokmap_context_layout {
    TOKMAP_CONTEXT_CONTIGUOUS,      /* one run of columns: [c * seq_len / C, (c + 1) * seq_len / C) */
    TOKMAP_CONTEXT_ZIGZAG,          /* chunks c and 2C - 1 - c of 2C equal ones, so that causal attention costs each
                                       rank the same */
    TOKMAP_CONTEXT_ZIGZAG_DOCUMENTS /* those chunks of each segment of a plan's row, as the THD layout of Transformer
                                       Engine has them. Every source has a plan that was made with
                                       `tokmap plan --pad-documents N`, N a multiple of 2C */
};

#define TOKMAP_VALUES_MOST 8 /* of options.values */

/* The value of a masked target. PyTorch's cross_entropy ignores it by default. */
#define TOKMAP_IGNORE (-100)

/* What options.alarm receives: how many of the last calls of next() had to wait. */
struct tokmap_stall {
    size_t size;
    uint64_t step;    /* of the batch that the last of these calls delivered */
    uint64_t calls;   /* options.alarm_calls */
    uint64_t stalled; /* the ones of them that found no filled slot */
    uint64_t wait_ns; /* the sum of their waits */
};
#define TOKMAP_STALL_INIT TOKMAP_SIZED(struct tokmap_stall)

/* Options of a loader. tokmap(7) has more about mask_targets, io_threads, deadline_ns, trace, and alarm. */
struct tokmap_loader_options {
    size_t size;
    uint64_t rank, world;  /* 0 <= rank < world <= batch, in every phase from the first step on; default: 0 and 1 */
    const char *resume;    /* the text of a cursor to start from; NULL (default): the start of the run */
    uint64_t rows;         /* the most rows in one call; 0 (default): the rank's whole slice of a global batch */
    uint32_t fields;       /* TOKMAP_INPUTS | ...; default: inputs and targets; 0: pointers to rows (batch.rows) only */
    uint32_t mask_targets; /* 1: what does not count is TOKMAP_IGNORE; needs inputs, targets, or labels. Required,
                              unless TOKMAP_LOSS_MASK says it, where some targets do not count (a mask, a stride,
                              excluded documents); default: 0 */
    const char *device;    /* to which `out` points: NULL (default) or "cpu"; "cuda:N": GPU N; "cuda": the GPU of the
                              calling thread's current CUDA context, or else GPU 0. See cuda.h */
    uint32_t threads;      /* 1 (default): a producer thread works ahead; 0: next() does the work itself */
    uint32_t read_ahead;   /* windows requested from the storage before they are needed, at most 65536; 0 (default): the
                              smaller of 128 windows and 16 MiB, but at least 8 windows */
    uint64_t ring_bytes;   /* memory of the ring; 0 (default): the smaller of 64 MiB and 32 batches, but at least 4 */
    uint32_t io_threads;   /* at most 256 threads that read ahead if the storage is slow (1 ms a read); default: 0 */
    uint32_t drop_behind;  /* 1: pages that were read leave the page cache, which implies pread; default: 0 */
    uint32_t trust_files;  /* 1: ids are not compared with the vocabulary, nor pages with their hashes; default: 0 */
    uint32_t alarm_percent; /* 1 to 100; 0 (default): 10 */
    uint32_t alarm_calls;   /* 0 (default): 100 */
    uint64_t deadline_ns;   /* a read of tokens or of a mask that takes longer is ERROR_TIMEOUT, which implies pread;
                               default: 0, no deadline */
    const char *trace;      /* a file of this rank's own, to which 16 bytes are appended for each step that next()
                               has delivered completely, for `tokmap replay`; continued if it exists; default: NULL */
    /* Called by next(), in the caller's thread, when of alarm_calls calls, one after another, alarm_percent percent or
     * more had to wait, and of the alarm_calls calls before them fewer had. It must not use the loader, except for
     * statistics. NULL (default): not called. Not with threads = 0, which has no waits. */
    void (*alarm)(void *user, const struct tokmap_stall *stall);
    void *alarm_user; /* passed to alarm() */
    /* Called at the beginning (begin is 1) and the end (0) of what the loader does, for a profiler: "tokmap next" (a
     * call of next()) and in it "tokmap wait" (until a slot is filled), and on the producer thread "tokmap fill" (of
     * one slot). Events nest on each thread. The names are static. NULL (default): not called. */
    void (*event)(void *user, const char *name, int begin);
    void *event_user; /* passed to event() */
    double balance;   /* q: rows are assigned so that what they cost differs little between the calls of all ranks; see
                         tokmap_balance(). The same on every rank, as rows is. 0 (default): off */
    /* Context parallelism: this rank gets a slice of each of its rows, seq_len / context_world columns of it. Loaders
     * with the same rank and world, and every context_rank, get the same rows and cursors. The arrays of a batch are
     * [count][seq_len / context_world], and each element is that of its column in the whole row: a target may be in
     * the columns of another rank, positions count from the document's start, and document ids from the row's. Only the
     * tokens of the slice, and the next one after each chunk, are read. The seq_len of every phase must be divisible
     * by context_world, or by 2 * context_world with zigzag. Not with TOKMAP_ROWS, nor with fields 0. */
    uint64_t context_rank, context_world; /* context_rank < context_world; 0 and 1 (default), or 0 and 0: whole rows */
    uint32_t context_layout;              /* enum tokmap_context_layout; default: TOKMAP_CONTEXT_CONTIGUOUS */
    /* Affinity: with `order even W SPAN` (or, less, `order blocks`), the rows of a step are assigned to nodes by the
     * block that they are in, so that all nodes together read a block of slow or remote storage about once instead of
     * once each. Rank r is on node r / (world / nodes), as torchrun numbers ranks; nodes divides world, and is the same
     * on every rank. SPAN is best a multiple of it. A step has the same rows, and each call as many, but others, which
     * places[i].row says. ORDER.md has the rule, and `tokmap-bench cost --cache` prints what it saves. A rank computes
     * it in some 100 ns for each row of a step. tokmap_loader_repartition() keeps the ranks of a node, and changes
     * nodes: loaders that join then are opened with tokmap_loader_nodes(). Rows of a plan have no common place, so they
     * gain nothing. Not with balance, nor with another order. 1: one node has all rows. 0 (default): off */
    uint64_t nodes;
    uint32_t counts;         /* 1: batch.counted and batch.counted_in_step are set; default: 0 */
    uint32_t values_present; /* 1: out.values_present says which tokens have values; default: 0 */
    /* Values beside the tokens (values.h), for out.values: at most 8 names, such as "teacher_ids teacher". All sources
     * have them, with one type. The loader opens a file for each shard and name, and checks its header; `tokmap verify`
     * compares all bytes. NULL (default): no values */
    const char *values;
};
/* clang-format off */
#define TOKMAP_LOADER_OPTIONS_INIT \
    {sizeof(struct tokmap_loader_options), 0, 1, NULL, 0, TOKMAP_INPUTS | TOKMAP_TARGETS, 0, NULL, 1, 0, 0, 0, 0, 0, \
     0, 0, 0, NULL, NULL, NULL, NULL, NULL, 0, 0, 1, TOKMAP_CONTEXT_CONTIGUOUS, 0, 0, 0, NULL}
/* clang-format on */

/* Computes q of options.balance. A row costs the sum over its documents of L + q * L^2, L being a document's tokens in
 * the row: each token passes through the model's matrices, and attends to the tokens before it in its document. With
 * causal attention, a document takes
 *
 *     2 * parameters * L + 2 * layers * width * L^2     floating-point operations, so
 *     q = layers * width / parameters
 *
 * forward, and twice as many of both backward. Where attention computes fewer operations a second than matrix products
 * do, a multiple of this q says what it costs in time. Of the layers, count those that attend to whole documents.
 *
 * With balance, a step has the same rows, but which call of which rank gets them follows from what they cost: rows by
 * falling cost (of equal ones, the lowest number first), each to the call that has the least cost so far, of those of
 * all ranks that still lack rows (of equal ones, the earliest call, and in it the lowest rank). Each call has as many
 * rows as without it, in the order of their numbers, which batch.places has. ORDER.md has the rule in integers.
 *
 * It depends on the run, the indexes of its data, world, and rows. So every rank computes it by itself, ahead, in some
 * microseconds for each row of a step. Padding counts as a document, as in cu_seqlens. Rows cost the same, and nothing
 * is gained, if attention passes the borders of documents.
 *
 *   width       of attention: heads * dimension of a head; usually that of the model
 *   layers      that attend
 *   parameters  that each token is multiplied with: without the table of embeddings, with the output's matrix, and of
 *               experts only those that a token passes through. 0: 12 * layers * width^2, so q is 1 / (12 * width)
 *   q           receives it
 * Statuses: OK, ERROR_RANGE (width or layers is 0 or more than 2^32; or q is more than 1 or less than 2^-40, which
 * options.balance cannot be). */
TOKMAP_STATUS tokmap_balance(uint64_t width, uint64_t layers, uint64_t parameters, double *q,
                             struct tokmap_error *error);

/* Where next() writes: memory of the caller, on the loader's device. Each pointer that `fields` requests has room for E
 * = tokmap_loader_elements() elements, but rows for (E + tokmap_loader_rows() * lookahead) * width bytes, targets_ahead
 * for E * lookahead elements, cu_seqlens and cu_seqlens_slice for tokmap_loader_cu_seqlens() elements, and source_ids
 * for tokmap_loader_rows(). The arrays of a batch are [count][columns] with its own columns, from the beginning of the
 * memory and without gaps. On the host any alignment works. On a GPU a pointer must be aligned to its elements; 16
 * bytes are fastest. Other pointers are ignored. The contents are undefined after a call that failed. */
struct tokmap_out {
    size_t size;
    enum tokmap_id_type type; /* of all fields but rows and cu_seqlens: TOKMAP_ID_I32 (default) or TOKMAP_ID_I64 */
    void *inputs;
    void *targets;
    void *labels;
    void *targets_ahead;
    void *position_ids;
    void *document_ids;
    void *loss_mask;
    void *rows;
    int32_t *cu_seqlens; /* 0, then the end of each document, counted over the batch's count * seq_len tokens (the end
                            of a row ends its last document), then count * seq_len in all further elements */
    void *source_ids;
    int32_t *cu_seqlens_slice; /* 0, then for each document of cu_seqlens the end of its columns on this rank, counted
                                  over the batch's count * columns: a document without a column there repeats the end of
                                  the one before. Then count * columns in all further elements */
    /* For each name of options.values an array [count][columns] of what a token has: tokmap_loader_values() says how
     * many bytes. Element [i][j] belongs to token j + 1 of row i, the target of column j. It is zeros for padding, for
     * tokens that the run excludes, and behind them, and for tokens that have no values: with options.values_present,
     * values_present[k][i][j] is 1 if there are some, else 0. A target counts whether it has values or not. */
    void *values[TOKMAP_VALUES_MOST];
    uint8_t *values_present[TOKMAP_VALUES_MOST];
};
/* clang-format off */
#define TOKMAP_OUT_INIT \
    {sizeof(struct tokmap_out), TOKMAP_ID_I32, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
     {NULL}, {NULL}}
/* clang-format on */

/* What next() delivered. Its pointers are valid until the next call of next(), wait(), rewind(), repartition(),
 * reload(), or read() on the loader, or until it is closed. The same struct serves all calls. */
struct tokmap_batch {
    size_t size; /* not changed */
    uint64_t step;
    uint64_t first_row;      /* number of the first of these rows in the global batch. The others follow it, but with
                                options.balance or nodes are any rows with higher numbers: places[i].row */
    uint64_t count;          /* rows in this batch; 0 is possible where the ranks' slices differ in size */
    uint64_t real_rows;      /* the first real_rows rows contain data; the others are padding, without a place.source */
    uint64_t seq_len;        /* tokens of a sequence: that of the step's phase */
    uint64_t tokens;         /* count * columns */
    int last_in_step;        /* 1: this is the step's last batch on this rank */
    uint32_t width;          /* bytes of a token in rows[]: 2 or 4 */
    uint64_t row_tokens;     /* tokens of a row in rows[]: seq_len + lookahead */
    const void *const *rows; /* `count` pointers to rows in host memory, each aligned to 16 bytes: row_tokens ids
                                of uint16_t or uint32_t (the run's width). NULL where `out` was given, on the host, and
                                the fields are inputs, or inputs and targets, without padding or masks: these are
                                written straight from the file. Add TOKMAP_ROWS to have rows, too */
    const struct tokmap_place *places; /* `count` places: which window each row contains */
    uint64_t documents;  /* in cu_seqlens, whose elements 0 to `documents` are all different; 0 without that field */
    uint64_t max_seqlen; /* tokens of the longest of these documents */
    struct tokmap_cursor cursor; /* the state after this batch: what to save */
    uint64_t columns;            /* of the arrays: seq_len / options.context_world */
    uint64_t max_seqlen_slice;   /* columns of the document of cu_seqlens_slice that has the most */
    /* With options.counts, how many targets count: of this call, in this rank's columns; and of all calls of all ranks
     * of the step, the same on every rank, and known at a step's first call. The mean loss of a step is the sum over
     * its targets divided by counted_in_step, however it is cut into ranks and calls; the mean of their means is not,
     * where some targets do not count. Counted are those of targets, of the first of targets_ahead, or of loss_mask;
     * of labels if none of these is in fields: rows have one label less. Without mask_targets and loss_mask, all
     * targets but padding count. A rank computes it from indexes and masks, in about a microsecond for each row of a
     * step. read() sets counted_in_step if its rows are of one step, and else 0. */
    uint64_t counted, counted_in_step;
};
#define TOKMAP_BATCH_INIT TOKMAP_SIZED(struct tokmap_batch)

/* Opens a loader of a run for one rank. The time does not depend on where the run resumes. With TOKMAP_CU_SEQLENS the
 * ends of all documents are read, about 10 ns each, to compute how many documents a window can contain.
 *   loader   receives the handle; close it with tokmap_loader_close(), before the run
 *   options  NULL: the defaults
 * Statuses: OK, ERROR_RANGE (rank >= world, a phase has fewer rows than ranks, targets without lookahead, the cursor's
 * step is after the run's end, balance is not 0 and not in [2^-40, 1], or nodes do not divide world), ERROR_CURSOR,
 * ERROR_VERSION (of the cursor), ERROR_PAST, ERROR_LIMIT (a batch does not fit in ring_bytes or in memory, or is too
 * large for cu_seqlens; with balance, nodes, or counts, a step has more than 2^24 rows), ERROR_IO, ERROR_CORRUPT (the
 * ends of documents, with TOKMAP_CU_SEQLENS), ERROR_NOT_FOUND, ERROR_FORMAT, and ERROR_BUSY (options.trace names a file
 * whose folder does not exist, that is not a trace, or that another loader writes), ERROR_NO_DEVICE, ERROR_DEVICE,
 * ERROR_UNSUPPORTED (also: with balance, or with counts where documents matter, a source has no document index; with
 * counts, masks in object storage of more than 1 GiB; with nodes, an order without blocks, or balance), ERROR_ARGUMENT.
 */
TOKMAP_STATUS tokmap_loader_open(struct tokmap_loader **loader, const struct tokmap_run *run,
                                 const struct tokmap_loader_options *options, struct tokmap_error *error);

/* What a token has in an array of values. */
struct tokmap_values_info {
    size_t size;
    const char *name;
    const char *element; /* "u8", "u16", "u32", "f16", "bf16", or "f32" */
    uint32_t dimensions; /* 0: one element for each token */
    uint64_t shape[4];   /* elements in each dimension, the last one contiguous */
    uint64_t bytes;      /* of a token */
};
#define TOKMAP_VALUES_INFO_INIT TOKMAP_SIZED(struct tokmap_values_info)

/* Reports name k, from 0 on, of options.values. The name lives as long as the loader. Any thread. Statuses: OK,
 * ERROR_ARGUMENT (there are not so many). */
TOKMAP_STATUS tokmap_loader_values(const struct tokmap_loader *loader, uint64_t k, struct tokmap_values_info *info);

/* Delivers the next rows of this rank. It waits until the batch is ready, and allocates no memory.
 *   out     NULL: nothing is written to the caller's memory, and the rows are read through batch->rows
 *   stream  on the host NULL. On a GPU the CUstream on which the outputs are enqueued; NULL is the default stream
 *   batch   at most batch->size bytes of it are written; less than the struct's first version is ERROR_ARGUMENT
 * After a failure other than END all members of *batch but size are 0, and the next call tries the same rows again.
 * Statuses: OK, END (the run has ended; so do all further calls, until tokmap_loader_rewind()), ERROR_IO,
 * ERROR_TRUNCATED, ERROR_CORRUPT, ERROR_TOKEN (error has the file, the offset, and the id), ERROR_TIMEOUT (with
 * options.deadline_ns), ERROR_DEVICE. */
TOKMAP_STATUS tokmap_loader_next(struct tokmap_loader *loader, const struct tokmap_out *out, void *stream,
                                 struct tokmap_batch *batch, struct tokmap_error *error);

/* Waits at most timeout_ns nanoseconds until the rows of the next call of next(), or its failure, are ready, for
 * programs that look at signals meanwhile. Returns 1 if they are ready and 0 if not; always 1 with threads = 0 and for
 * NULL. The time counts in the statistics as if next() had waited. Cannot fail. */
TOKMAP_API int tokmap_loader_wait(struct tokmap_loader *loader, uint64_t timeout_ns);

/* Returns to where the loader was opened, at any time: after END, in the middle of a step, and after a failure. Batches
 * that were read ahead are dropped. It waits only until the producer has read the batch at hand, starts no thread, and
 * allocates no memory. What next() has enqueued on a stream is completed there. The statistics go on.
 * Statuses: OK, ERROR_IO (the trace; the loader is then where it was). */
TOKMAP_STATUS tokmap_loader_rewind(struct tokmap_loader *loader, struct tokmap_error *error);

/* Continues as another rank, of another number of ranks, from before the first step of which next() has not delivered
 * everything. The global batches stay the same, if every rank calls it after the same step. Delivered rows of an
 * unfinished step are delivered again, to whichever rank now owns them. tokmap_loader_rewind() from now on returns
 * here. During the call there are two rings. tokmap_loader_rows(), elements(), and cu_seqlens() may change, and so must
 * `out`. A trace continues in its file. After a failure the loader is unchanged. Statuses: OK, ERROR_RANGE (rank >=
 * world, or a phase has fewer rows than ranks), ERROR_LIMIT, ERROR_IO (the trace), ERROR_DEVICE. */
TOKMAP_STATUS tokmap_loader_repartition(struct tokmap_loader *loader, uint64_t rank, uint64_t world,
                                        struct tokmap_error *error);

/* Continues with another run, usually the same file after it was edited, in the same way. The past of the new run
 * before that step must be that of the old one. Options stay, and statistics of sources, by name.
 *   run  must stay open until the loader is closed; the old run may be closed after a success
 * Statuses: OK, ERROR_PAST, those of tokmap_loader_repartition() and tokmap_loader_open(). */
TOKMAP_STATUS tokmap_loader_reload(struct tokmap_loader *loader, const struct tokmap_run *run,
                                   struct tokmap_error *error);

/* Delivers chosen rows instead of the next ones: row rows[i] of the global batch of steps[i], for i < count, of any
 * rank. It works only on the host with threads = 0, and does not move the loader. Of *batch, step and first_row are
 * those of the first row, last_in_step is 0, cursor is the loader's, and real_rows counts rows with data, wherever they
 * are. Otherwise it is as tokmap_loader_next().
 *   count  0 to tokmap_loader_rows()
 * Statuses: OK, ERROR_RANGE (the run does not have the row or the step, or the steps have rows of different seq_len),
 * ERROR_LIMIT (count is too large), ERROR_IO, ERROR_TRUNCATED, ERROR_CORRUPT, ERROR_TOKEN, ERROR_TIMEOUT. */
TOKMAP_STATUS tokmap_loader_read(struct tokmap_loader *loader, const uint64_t *steps, const uint64_t *rows,
                                 uint64_t count, const struct tokmap_out *out, struct tokmap_batch *batch,
                                 struct tokmap_error *error);

/* Returns the largest batch.count, or the largest batch.count * batch.columns, of any call, in any phase of the run.
 * Cannot fail. */
TOKMAP_API uint64_t tokmap_loader_rows(const struct tokmap_loader *loader);
TOKMAP_API uint64_t tokmap_loader_elements(const struct tokmap_loader *loader);

/* Returns the number of elements of out.cu_seqlens, and of out.cu_seqlens_slice, the same for every batch:
 * tokmap_loader_rows() times the most documents of any window, plus 1; 0 without these fields. Cannot fail. */
TOKMAP_API uint64_t tokmap_loader_cu_seqlens(const struct tokmap_loader *loader);

/* Returns the number of calls of next() in the step of which it delivers rows next, or in the run's last one. It is the
 * same on every rank, and changes only where a phase changes the batch. Cannot fail. */
TOKMAP_API uint64_t tokmap_loader_calls_per_step(const struct tokmap_loader *loader);

/* Returns the nodes that the ranks are on: options.nodes, or what the last repartition() made of it, which is
 * world / the ranks of a node, and at least 1, whose node then has fewer ranks. Cannot fail. */
TOKMAP_API uint64_t tokmap_loader_nodes(const struct tokmap_loader *loader);

/* Writes what is still to be written of the trace to storage. Call it before a checkpoint is saved, so that the trace
 * never lacks a step before a saved cursor. Statuses: OK, ERROR_IO. */
TOKMAP_STATUS tokmap_loader_flush(struct tokmap_loader *loader, struct tokmap_error *error);

/* Stops the producer thread and frees everything. On a GPU it first waits for what next() has enqueued. Cannot fail. */
TOKMAP_API void tokmap_loader_close(struct tokmap_loader *loader);

/* ---- statistics ---- */

#define TOKMAP_WAIT_BUCKETS 64

/* What a loader has done since it was opened. */
struct tokmap_stats {
    size_t size;
    uint64_t batches; /* delivered */
    uint64_t rows;    /* delivered */
    uint64_t padding; /* rows of padding among them */
    uint64_t tokens;  /* delivered: rows * seq_len */
    uint64_t epoch;   /* the largest epoch delivered */
    uint64_t waits;   /* calls of next() that found no filled slot; always 0 with threads = 0 */
    uint64_t wait_ns; /* the sum of their waits */
    uint64_t wait_ns_largest;
    uint64_t wait_histogram[TOKMAP_WAIT_BUCKETS]; /* calls of next() by wait: bucket 0 counts waits of 0 ns, bucket b
                                                     waits of 2^(b-1) ns to below 2^b ns */
    uint64_t alarms;                              /* calls of options.alarm */
    uint64_t ring_bytes;                          /* memory of the ring */
    uint32_t ring_slots;                          /* batches that it holds */
    uint32_t ring_ready;                          /* slots that are filled and not yet taken */
    uint32_t ring_ready_lowest;  /* the smallest ring_ready that next() found since the ring was full, after the loader
                                    was opened or rewound */
    enum tokmap_reading reading; /* TOKMAP_READ_MAPPED or TOKMAP_READ_PREAD */
    uint64_t bytes;              /* of tokens copied into the ring */
    uint64_t cold_reads;   /* windows that were not in the page cache when needed, as far as the kernel reports it; once
                              nearly all are, pread asks for one in 16 */
    uint64_t probe_ns;     /* time of the probe's read; 0 without options.io_threads */
    uint64_t io_threads;   /* threads that read tokens, besides the producer */
    uint64_t io_reads;     /* windows that they had read, or were reading, when the producer needed them */
    uint64_t timeouts;     /* reads that took longer than options.deadline_ns */
    uint64_t device_bytes; /* GPU memory that the loader holds */
    uint64_t late_copies;  /* calls of next() that found the batch still on its way to the GPU */
    uint64_t host_expanded; /* batches for a GPU that the host expanded, because the kernel could not be loaded, or the
                               context layout is zigzag_documents */
    uint64_t excluded;      /* inputs delivered as the pad id, because the run excludes their documents */
    uint64_t excluded_rows; /* rows without any other token, which are delivered, too */
    /* Of datasets in object storage. These count what this process has done with the cache folder, for all loaders. */
    uint64_t fetch_requests;    /* answered by the storage */
    uint64_t fetch_bytes;       /* that it sent */
    uint64_t fetch_repeated;    /* requests that took too long, and were sent again on another connection */
    uint64_t fetch_evicted;     /* bytes that left the cache for others */
    uint64_t fetch_storage_ns;  /* time that reads waited for the first byte of an answer, */
    uint64_t fetch_transfer_ns; /* for the rest of it, because the bandwidth was used up, */
    uint64_t fetch_disk_ns;     /* and for the disk of the cache folder */
};
#define TOKMAP_STATS_INIT TOKMAP_SIZED(struct tokmap_stats)

/* Fills *stats with a snapshot. Statuses: OK. */
TOKMAP_STATUS tokmap_loader_stats(const struct tokmap_loader *loader, struct tokmap_stats *stats);

/* What a loader has delivered of one source since it was opened, to this rank unless it says otherwise. */
struct tokmap_source_stats {
    size_t size;
    const char *name; /* of the source; valid until the run is closed */
    uint64_t rows;
    uint64_t tokens;  /* of data delivered as inputs: rows * seq_len, less in rows that end with padding; divided by
                         options.context_world */
    uint64_t bytes;   /* of tokens copied into the ring */
    uint64_t epoch;   /* the largest epoch delivered; 0 before the first row */
    uint64_t draws;   /* rows of all ranks in all steps of the run before the current one, since step 0 */
    uint64_t windows; /* rows of one epoch; draws / windows is the number of epochs so far, where seq_len is constant */
};
#define TOKMAP_SOURCE_STATS_INIT TOKMAP_SIZED(struct tokmap_source_stats)

/* Fills *stats for source number `source` of the run. Statuses: OK, ERROR_RANGE. */
TOKMAP_STATUS tokmap_loader_source_stats(const struct tokmap_loader *loader, uint64_t source,
                                         struct tokmap_source_stats *stats);

/* Writes the statistics of a loader and its sources in the text format of Prometheus (version 0.0.4). All names begin
 * with tokmap_loader_; every sample has the label rank.
 *   labels  for every sample besides rank, as NAME="VALUE",... with VALUE escaped as Prometheus wants it; NULL: none
 *   text    of `capacity` bytes; always terminated by a zero byte if capacity is not 0
 *   bytes   receives the length without that byte, also with ERROR_LIMIT; 16 KiB and 1 KiB a source are enough. NULL:
 *           not wanted
 * Statuses: OK, ERROR_LIMIT (capacity is too small). */
TOKMAP_STATUS tokmap_loader_prometheus(const struct tokmap_loader *loader, const char *labels, char *text,
                                       size_t capacity, size_t *bytes);

/* ---- arrays for others ---- */

/* Deleters for tensors that a program exports through DLPack (dlpack.h) while it keeps the memory: the first for a
 * DLManagedTensor, the second for a DLManagedTensorVersioned. They set *(uint32_t *)manager_ctx to 1, with release
 * ordering. The owner reads that flag, and may reuse the memory once it is set. They take no lock, allocate nothing,
 * and call nothing, so a tensor may be freed in any state, also in a signal handler. NULL is ignored. Cannot fail. */
TOKMAP_API void tokmap_dlpack_deleter(void *tensor);
TOKMAP_API void tokmap_dlpack_deleter_versioned(void *tensor);

#ifdef __cplusplus
}
#endif
#endif
