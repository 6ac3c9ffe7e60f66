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

/* Delivers a run's rows to one rank. One thread at a time may call next(), wait(), rewind(), repartition(), reload(),
 * read(), flush(), and calls(); any thread may call stats(), source_stats(), rows(), elements(), and cu_seqlens() at
 * any time before the loader is closed, except during repartition() and reload(). A child after fork() cannot use it if
 * it has a thread of its own or a trace, or delivers to a GPU.
 *
 * The program at the top of tokmap.h shows a loader. To resume, and to read the rows without copying them:
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

/* The fields that next() can deliver; combine them with |. All but TOKMAP_ROWS and TOKMAP_CU_SEQLENS are arrays [i][j]
 * with i < count and j < seq_len; TOKMAP_TARGETS_AHEAD has a third axis, k < lookahead.
 *
 * A token that ends a document belongs to it. A document without tokens appears nowhere. The first token of a window
 * and the first token of the dataset (the seam) count as the start of a document, wherever they are; so do the first
 * token of each segment of a row of a plan, and the first token of padding.
 *
 * The target of token j is token j + 1. It counts unless
 *   - it starts a document, so that it belongs to another document than token j,
 *   - the dataset has a mask (NAME.mask) in which the bit of token j + 1 is 0,
 *   - the run has a stride, and an earlier window has scored the target already: in windows after the first of an
 *     epoch, only the last `stride` targets count, or
 *   - it is padding, as at the end of a row of a plan and of a run with `tail pad`. */
enum {
    TOKMAP_INPUTS = 1 << 0,       /* out.inputs[i][j] = token j of row i */
    TOKMAP_TARGETS = 1 << 1,      /* out.targets[i][j] = token j + 1 of row i, or TOKMAP_IGNORE where that is padding;
                                     needs lookahead >= 1. See also options.mask_targets */
    TOKMAP_POSITION_IDS = 1 << 2, /* out.position_ids[i][j] = how many tokens token j is after the start of its
                                     document, or after the start of the window if that is later */
    TOKMAP_ROWS = 1 << 3,         /* out.rows: the seq_len + lookahead tokens of each row, in the dataset's width */
    TOKMAP_DOCUMENT_IDS = 1 << 4, /* out.document_ids[i][j] = how many documents start at tokens 1 to j of row i: 0 for
                                     the document at the start of the row */
    TOKMAP_LOSS_MASK = 1 << 5,    /* out.loss_mask[i][j] = 1 if the target of token j counts, else 0; needs
                                     lookahead >= 1 */
    TOKMAP_CU_SEQLENS = 1 << 6,   /* out.cu_seqlens, batch.documents, and batch.max_seqlen: where the documents of the
                                     batch begin and end, in the form that variable-length attention takes. Padding is a
                                     document of its own */
    TOKMAP_LABELS = 1 << 8,       /* out.labels[i][j] = token j of row i if it counts as the target of token j - 1, else
                                     TOKMAP_IGNORE, as label 0 always is: for models that shift targets themselves.
                                     options.mask_targets does not matter */
    TOKMAP_TARGETS_AHEAD = 1 << 7 /* out.targets_ahead[i][j][k] = token j + 1 + k of row i, for k < lookahead, or
                                     TOKMAP_IGNORE where that is padding: what multi-token prediction predicts from
                                     token j; needs lookahead >= 1. Element k = 0 is the target. With
                                     options.mask_targets, an element is TOKMAP_IGNORE, too, if a document starts
                                     between token j and it or with it, if its bit in the dataset's mask is 0, or if
                                     an earlier window has scored what token j predicts */
};

/* The value of a masked target (options.mask_targets). PyTorch's cross_entropy ignores it by default. */
#define TOKMAP_IGNORE (-100)

/* What options.alarm receives: how many of the last calls of next() had to wait. */
struct tokmap_stall {
    size_t size;      /* sizeof(struct tokmap_stall) */
    uint64_t step;    /* of the batch that the last of these calls delivered */
    uint64_t calls;   /* options.alarm_calls */
    uint64_t stalled; /* how many of them found no filled slot */
    uint64_t wait_ns; /* the sum of their waits */
};

struct tokmap_loader_options {
    size_t size;            /* sizeof(struct tokmap_loader_options) */
    uint64_t rank, world;   /* 0 <= rank < world <= batch, in every phase from the loader's first step on; default:
                               0 and 1 */
    uint64_t rows;          /* the largest number of rows in one call; 0 (default): the rank's whole slice of a
                               global batch in one call */
    uint32_t fields;        /* TOKMAP_INPUTS | ...; default: inputs and targets; 0: pointers to rows (batch.rows)
                               only */
    uint32_t threads;       /* 1 (default): a producer thread works ahead; 0: next() does the work itself */
    const char *resume;     /* text of a cursor to start from; NULL (default): from the start of the run. Not used
                               after tokmap_loader_open() */
    const char *device;     /* where `out` points. NULL (default) or "cpu": to memory of this machine. "cuda:N": to
                               memory of GPU N. "cuda": to that of the GPU of the calling thread's current CUDA
                               context, or else GPU 0. See cuda.h. Not used after tokmap_loader_open() */
    uint64_t ring_bytes;    /* memory of the ring; 0 (default): the smaller of 64 MiB and 32 batches, but at least
                               4 batches */
    uint32_t read_ahead;    /* how many windows are requested from the storage before they are needed, at most
                               65536; 0 (default): the smaller of 128 windows and 16 MiB, but at least 8 windows */
    uint32_t trust_files;   /* 1: ids are not compared with the vocabulary, nor pages with their hashes; default:
                             0 */
    uint32_t drop_behind;   /* 1: pages that were read leave the page cache, which implies pread; default: 0 */
    uint32_t mask_targets;  /* 1: out.targets[i][j] = TOKMAP_IGNORE where out.loss_mask[i][j] would be 0, and
                               the same in out.targets_ahead. If the run has a mask or overlapping windows, targets
                               need this or TOKMAP_LOSS_MASK, lest what does not count be trained on. So do inputs
                               alone, or TOKMAP_LABELS, and also if rows can be padded; 1 then says that the
                               program knows which count. Needs inputs, targets, or labels; default: 0 */
    const char *trace;      /* a file to which the loader appends 16 bytes for each step that next() has delivered
                               completely: a proof of what it delivered, which `tokmap replay` checks. Each rank
                               needs a file of its own; a file that exists is continued. NULL (default): none.
                               Not used after tokmap_loader_open() */
    uint64_t deadline_ns;   /* a read of tokens or of a mask that takes longer is ERROR_TIMEOUT, which implies
                               pread, on threads of the library that the loader does not wait for; 0 (default):
                               reads have no deadline. It does not cover tokmap_loader_open() and document
                               boundaries, which are read through a mapping */
    uint32_t io_threads;    /* how many threads, at most 256, read windows ahead where tokmap_loader_open() finds
                               by a probe that the storage is slow: a read takes 1 ms or more; 0 (default): none,
                               the kernel reads ahead */
    uint32_t alarm_percent; /* see alarm; 1 to 100; 0 (default): 10 */
    uint32_t alarm_calls;   /* see alarm; 0 (default): 100 */
    /* Called when of alarm_calls calls of next(), one after another, alarm_percent percent or more had to wait, and of
     * the alarm_calls calls before them fewer had. The first call after opening is not counted, because the ring is
     * still empty. It is called by next(), in the caller's thread, when the batch is complete; it must not use the
     * loader, except for statistics. NULL (default): not called. Not with threads = 0, which has no waits. */
    void (*alarm)(void *user, const struct tokmap_stall *stall);
    void *alarm_user; /* passed to alarm() */
    /* Called at the beginning and the end of what the loader does, for a profiler such as NVTX: "tokmap next" (a call
     * of next()) and in it "tokmap wait" (until a slot is filled), and on the producer thread "tokmap fill" (of one
     * slot). Ranges nest on each thread. The names are static. tests/examples/train_nvtx.c shows it. Set both or
     * neither; NULL (default): not called. */
    void (*range_push)(void *user, const char *name);
    void (*range_pop)(void *user);
    void *range_user; /* passed to range_push() and range_pop() */
};
#define TOKMAP_LOADER_OPTIONS_INIT                                                                                     \
    {                                                                                                                  \
        sizeof(struct tokmap_loader_options), 0, 1, 0, TOKMAP_INPUTS | TOKMAP_TARGETS, 1, NULL, NULL, 0, 0, 0, 0, 0,   \
            NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL                                                             \
    }

/* Where next() writes. The memory belongs to the caller, and is on the loader's device. Each pointer that `fields`
 * requests has room for tokmap_loader_elements() elements; out.rows has room for tokmap_loader_elements() +
 * tokmap_loader_rows() * lookahead tokens of `width` bytes, out.targets_ahead for tokmap_loader_elements() * lookahead
 * elements, and out.cu_seqlens for tokmap_loader_cu_seqlens() elements.
 * Where the phases of a run have different lengths, the arrays of a batch are [count][seq_len] with its own seq_len,
 * from the beginning of the memory and without gaps. On the host any alignment
 * works. On a GPU a pointer must be aligned to its elements, and alignment to 16 bytes is fastest. Other pointers are
 * ignored. The contents are undefined after a call that failed. */
struct tokmap_out {
    size_t size;              /* sizeof(struct tokmap_out) */
    enum tokmap_id_type type; /* of the elements of all fields but rows and cu_seqlens: TOKMAP_ID_I32 (default) or
                                 TOKMAP_ID_I64 */
    void *inputs;
    void *targets;
    void *position_ids;
    void *rows;
    void *document_ids;
    void *loss_mask;
    int32_t *cu_seqlens; /* [0] is 0. Then comes the end of each document, counted over the batch's count * seq_len
                            tokens; the end of a row ends its last document. All further elements, up to the last for
                            which there is room, are count * seq_len: documents without tokens */
    void *targets_ahead; /* room for lookahead times the elements of the other fields */
    void *labels;
};
#define TOKMAP_OUT_INIT                                                                                                \
    {                                                                                                                  \
        sizeof(struct tokmap_out), TOKMAP_ID_I32, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL                 \
    }

/* What next() delivered. Its pointers are valid until the next call of next(), wait(), rewind(), or read() on the
 * loader, or until it is closed. Initialize it with TOKMAP_BATCH_INIT; the same struct serves all calls. */
struct tokmap_batch {
    size_t size; /* set by the caller: sizeof(struct tokmap_batch); not changed */
    uint64_t step;
    uint64_t first_row;                /* number of the first of these rows in the global batch */
    uint64_t count;                    /* rows in this batch; 0 is possible where the ranks' slices differ in size */
    uint64_t tokens;                   /* count * seq_len */
    int last_in_step;                  /* 1: this is the step's last batch on this rank */
    uint32_t width;                    /* bytes of a token in rows[]: 2 or 4 */
    uint64_t row_tokens;               /* tokens of a row in rows[]: seq_len + lookahead */
    const void *const *rows;           /* `count` pointers to rows in host memory, each aligned to 16 bytes */
    const struct tokmap_place *places; /* `count` places: which window each row contains */
    struct tokmap_cursor cursor;       /* the state after this batch: what to save */
    /* The following members are 0 unless the loader was opened with TOKMAP_CU_SEQLENS. */
    uint64_t documents;  /* documents in cu_seqlens, whose elements 0 to `documents` are all different; 0 if
                            count is 0 */
    uint64_t max_seqlen; /* tokens of the longest of these documents */
    /* The following members are always set. */
    uint64_t seq_len;   /* tokens of a sequence: that of the step's phase */
    uint64_t real_rows; /* rows that contain data: rows 0 to real_rows - 1. The others are padding, at the end
                           of a run with `tail pad`; their place.source is TOKMAP_NO_SOURCE */
};
#define TOKMAP_BATCH_INIT                                                                                              \
    {                                                                                                                  \
        sizeof(struct tokmap_batch), 0, 0, 0, 0, 0, 0, 0, NULL, NULL, {0, 0, {0, 0}, {0, 0, 0, 0, 0}}, 0, 0, 0, 0      \
    }

/* Opens a loader of a run for one rank. The time does not depend on where the run resumes. With TOKMAP_CU_SEQLENS the
 * ends of all documents are read, about 10 ns each, to compute how many documents a window can contain.
 *   loader   receives the handle; close it with tokmap_loader_close(), before the run
 *   options  NULL: the defaults
 * Any thread may call it.
 * Statuses: OK, ERROR_RANGE (rank >= world, a phase of the run has fewer rows than ranks, targets or loss mask without
 * lookahead, or the cursor's step is after the run's end), ERROR_CURSOR, ERROR_VERSION (the cursor has a newer
 * version), ERROR_PAST, ERROR_LIMIT (a batch does not fit in ring_bytes or in memory, or is too large for cu_seqlens),
 * ERROR_IO, ERROR_CORRUPT (the ends of documents, with TOKMAP_CU_SEQLENS), ERROR_NOT_FOUND, ERROR_FORMAT, and
 * ERROR_BUSY (options.trace names a file whose folder does not exist, that is not a trace, or that another loader
 * writes), ERROR_NO_DEVICE, ERROR_DEVICE, ERROR_UNSUPPORTED, ERROR_ARGUMENT, ERROR_MEMORY. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_loader_open(struct tokmap_loader **loader,
                                                                   const struct tokmap_run *run,
                                                                   const struct tokmap_loader_options *options,
                                                                   struct tokmap_error *error);

/* Delivers the next rows of this rank.
 *   out     NULL: nothing is written to the caller's memory, and the rows are read through batch->rows
 *   stream  on the host NULL. On a GPU the CUstream on which `out` will be read; NULL is the default stream. The
 *           outputs are enqueued on it, so they are complete for work that is enqueued after the call
 *   batch   initialized with TOKMAP_BATCH_INIT; at most batch->size bytes of it are written. A size smaller than that
 *           of the struct's first version is ERROR_ARGUMENT
 * It waits until the batch is ready, and allocates no memory. After a failure other than END all members of *batch but
 * size are 0, and the next call tries the same rows again.
 * Statuses: OK, END (the run has ended; so do all further calls, until tokmap_loader_rewind()), ERROR_IO,
 * ERROR_TRUNCATED, ERROR_CORRUPT, ERROR_TOKEN (error has the file, the offset, and the id), ERROR_TIMEOUT (with
 * options.deadline_ns), ERROR_DEVICE, ERROR_ARGUMENT (among others: batch->size is not set; the process was forked),
 * ERROR_MEMORY (a shard could not be mapped). */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_loader_next(struct tokmap_loader *loader,
                                                                   const struct tokmap_out *out, void *stream,
                                                                   struct tokmap_batch *batch,
                                                                   struct tokmap_error *error);

/* Waits at most timeout_ns nanoseconds until the rows of the next call of next(), or its failure, are ready. It is for
 * programs that must look at something else while they wait, such as signals:
 *
 * @code
 *     while (!tokmap_loader_wait(loader, 50000000))
 *         if (interrupted)                            // set by a signal handler
 *             exit(1);
 * @endcode
 *
 * Returns 1 if they are ready and 0 if not. It always returns 1 with threads = 0, which has nothing to wait for, and
 * for NULL. Like next(), it ends the pointers of the last batch, and one thread at a time may call it. The time that it
 * waited counts in the statistics as if next() had waited. Cannot fail. */
TOKMAP_API int tokmap_loader_wait(struct tokmap_loader *loader, uint64_t timeout_ns);

/* Returns to where the loader was opened: the next call of next() delivers the first batch again, that of the cursor in
 * options.resume, or else that of the run's first step. It works at any time: after END, in the middle of a step, and
 * after a failure. It is for evaluation, which reads the same rows many times:
 *
 * @code
 *     struct tokmap_error e = {0};
 *     struct tokmap_out out = TOKMAP_OUT_INIT;
 *     struct tokmap_batch b = TOKMAP_BATCH_INIT;
 *     enum tokmap_status status;
 *     out.inputs = inputs;
 *     out.targets = targets;
 *     for (int pass = 0; pass < 3; pass++) {
 *         while ((status = tokmap_loader_next(loader, &out, NULL, &b, &e)) == TOKMAP_OK)
 *             train(inputs, targets, b.count);
 *         if (status != TOKMAP_END || tokmap_loader_rewind(loader, &e))
 *             fatal(&e);
 *     }
 * @endcode
 *
 * The batches that the producer thread has read ahead are dropped. If it is reading one, the call waits until that is
 * done; it waits for nothing else, starts no thread, and allocates no memory. What next() has enqueued on a stream is
 * completed there, so outputs that are not written yet will hold their batch. The pointers of the last batch end. The
 * statistics go on, except that ring_ready_lowest counts from when the ring is full again. Like next(), one thread at a
 * time may call it.
 * Statuses: OK, ERROR_IO (the trace; the loader is then where it was), ERROR_ARGUMENT (loader is NULL; the process was
 * forked). */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_loader_rewind(struct tokmap_loader *loader,
                                                                     struct tokmap_error *error);

/* Continues as another rank, of another number of ranks, from where the loader is: at the step boundary before the
 * first step of which next() has not delivered everything. It is for training that continues when machines fail or come
 * back: the global batches stay the same, and every rank calls it after the same step. Rows of an unfinished step that
 * were delivered are delivered again, to whichever rank now owns them.
 *   rank, world  as in struct tokmap_loader_options
 * Batches that were read ahead are dropped, as by tokmap_loader_rewind(), which from now on returns here. The ring is
 * made again, so during the call there are two. tokmap_loader_rows(), tokmap_loader_elements(), and
 * tokmap_loader_cu_seqlens() may have grown or shrunk, and so must `out`. A trace continues in its file. After a
 * failure the loader is unchanged. Like next(), one thread at a time may call it, and no other thread may be in a
 * function of this loader.
 * Statuses: OK, ERROR_RANGE (rank >= world, or a phase has fewer rows than ranks), ERROR_LIMIT, ERROR_IO (the trace),
 * ERROR_DEVICE, ERROR_ARGUMENT (among others, the process was forked), ERROR_MEMORY. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_loader_repartition(struct tokmap_loader *loader, uint64_t rank,
                                                                          uint64_t world, struct tokmap_error *error);

/* Continues with another run, usually the same file opened again after it was edited, from where the loader is: at the
 * step boundary before the first step of which next() has not delivered everything. The past of the new run before that
 * step must be that of the old one, as where a loader is opened with a cursor. Its future may be another: weights,
 * sources, batch and seq_len of phases from that step on, later skips, the end. The loader's options stay.
 *   run   must stay open until the loader is closed; the old run may be closed after a success
 * Everything else is as in tokmap_loader_repartition(). Statistics of sources are kept by name.
 * Statuses: OK, ERROR_PAST, those of tokmap_loader_repartition() and tokmap_loader_open(). */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status
tokmap_loader_reload(struct tokmap_loader *loader, const struct tokmap_run *run, struct tokmap_error *error);

/* Delivers chosen rows instead of the next ones: in this order, row rows[i] of the global batch of steps[i], for i <
 * count, of any rank. It works only for loaders on the host with threads = 0. The position of the loader in the run
 * does not change. Of *batch, step and first_row are those of the first row, last_in_step is 0, and cursor is the
 * loader's; real_rows counts the rows that contain data, wherever they are. After a failure all members of *batch but
 * size are 0. count   0 to tokmap_loader_rows() out, batch  as in tokmap_loader_next() Statuses: OK, ERROR_RANGE (the
 * run does not have the row or the step, or the steps have rows of different seq_len), ERROR_LIMIT (count is larger
 * than tokmap_loader_rows()), ERROR_IO, ERROR_TRUNCATED, ERROR_CORRUPT, ERROR_TOKEN, ERROR_TIMEOUT, ERROR_ARGUMENT
 * (among others, the process was forked), ERROR_MEMORY. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status
tokmap_loader_read(struct tokmap_loader *loader, const uint64_t *steps, const uint64_t *rows, uint64_t count,
                   const struct tokmap_out *out, struct tokmap_batch *batch, struct tokmap_error *error);

/* Returns the largest batch.count of any call, in any phase of the run; 0 for NULL. Cannot fail. */
TOKMAP_API uint64_t tokmap_loader_rows(const struct tokmap_loader *loader);

/* Returns the largest batch.count * batch.seq_len of any call, in any phase of the run, for which `out` must have room;
 * 0 for NULL. Cannot fail. */
TOKMAP_API uint64_t tokmap_loader_elements(const struct tokmap_loader *loader);

/* Returns the number of calls of next() in the next step, which is the same on every rank: the step of which next()
 * delivers rows next, or, after the run's end, its last one. It changes only where a phase changes the batch. Returns 0
 * for NULL. Only the thread that calls next() may call it. Cannot fail. */
TOKMAP_API uint64_t tokmap_loader_calls_per_step(const struct tokmap_loader *loader);

/* Writes to storage what is still to be written of the trace: the steps that next() has delivered completely. Call it
 * before a checkpoint is saved, so that the trace never lacks a step before a cursor that was saved. Like next(), one
 * thread at a time may call it. Without a trace it does nothing.
 * Statuses: OK, ERROR_IO (the file), ERROR_ARGUMENT (loader is NULL; the process was forked). */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_loader_flush(struct tokmap_loader *loader,
                                                                    struct tokmap_error *error);

/* Returns the number of elements of out.cu_seqlens, which is the same for every batch: tokmap_loader_rows() times the
 * largest number of documents that a window of any dataset of the run can contain, wherever it begins, plus 1. Returns
 * 0 if the loader was opened without TOKMAP_CU_SEQLENS, and for NULL. Cannot fail. */
TOKMAP_API uint64_t tokmap_loader_cu_seqlens(const struct tokmap_loader *loader);

/* Stops the producer thread and frees everything; pointers from batches become invalid. On a GPU it first waits for
 * what next() has enqueued; the outputs belong to the caller and stay. Accepts NULL. Cannot fail. */
TOKMAP_API void tokmap_loader_close(struct tokmap_loader *loader);

#define TOKMAP_WAIT_BUCKETS 64

/* What a loader has done since it was opened. */
struct tokmap_stats {
    size_t size;                 /* set by the caller: sizeof(struct tokmap_stats) */
    uint64_t batches;            /* delivered */
    uint64_t rows;               /* delivered */
    uint64_t tokens;             /* delivered: rows * seq_len */
    uint64_t bytes;              /* of tokens copied into the ring */
    uint64_t cold_reads;         /* windows that were not in the page cache when they were needed, as far as the kernel
                                    was asked and reports it: once nearly all are, pread() asks for one in 16 */
    uint64_t epoch;              /* the largest epoch delivered */
    uint64_t ring_bytes;         /* memory of the ring */
    uint32_t ring_slots;         /* batches that the ring holds */
    uint32_t ring_ready;         /* slots that are filled and not yet taken */
    uint32_t ring_ready_lowest;  /* the smallest ring_ready that next() found since the ring was full, after the loader
                                    was opened or rewound */
    enum tokmap_reading reading; /* TOKMAP_READ_MAPPED or TOKMAP_READ_PREAD */
    uint64_t waits;              /* calls of next() that found no filled slot; always 0 with threads = 0 */
    uint64_t wait_ns;            /* the sum of their waits */
    uint64_t wait_ns_largest;    /* the longest of their waits */
    uint64_t wait_histogram[TOKMAP_WAIT_BUCKETS]; /* calls of next() by wait: bucket 0 counts waits of 0 ns, bucket b
                                                     those of 2^(b-1) ns to below 2^b ns */
    uint64_t host_expanded; /* batches for a GPU that the host expanded, because the kernel could not be loaded */
    uint64_t late_copies;   /* calls of next() that found the batch still on its way to the GPU */
    uint64_t device_bytes;  /* GPU memory that the loader holds */
    uint64_t timeouts;      /* reads that took longer than options.deadline_ns */
    uint64_t io_threads;    /* threads that read tokens, besides the producer */
    uint64_t io_reads;      /* windows that they had read, or were reading, when the producer needed them */
    uint64_t probe_ns;      /* how long the read of the probe took; 0 without options.io_threads */
    uint64_t padding;       /* rows of padding among `rows` */
    uint64_t alarms;        /* calls of options.alarm */
};

/* Fills *stats with a snapshot. Any thread may call it while another thread is in next().
 *
 * @code
 *     struct tokmap_stats stats = {.size = sizeof stats};
 *     if (tokmap_loader_stats(loader, &stats) == TOKMAP_OK)
 *         printf("waited %.3f s for data\n", (double)stats.wait_ns / 1e9);
 * @endcode
 *
 * Statuses: OK, ERROR_ARGUMENT (an argument is NULL, or stats->size is not set). */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_loader_stats(const struct tokmap_loader *loader,
                                                                    struct tokmap_stats *stats);

/* What a loader has delivered of one source since it was opened. Numbers without another remark are of this rank. */
struct tokmap_source_stats {
    size_t size;      /* set by the caller: sizeof(struct tokmap_source_stats) */
    const char *name; /* of the source; valid until the run is closed */
    uint64_t rows;    /* delivered */
    uint64_t tokens;  /* of data delivered as inputs: rows * seq_len, less in rows that end with padding */
    uint64_t epoch;   /* the largest epoch delivered; 0 before the first row */
    uint64_t bytes;   /* of tokens copied into the ring */
    uint64_t draws;   /* rows of all ranks in all steps of the run before the current one, since step 0 */
    uint64_t windows; /* rows of one epoch; draws / windows is the number of epochs so far, where seq_len does not
                         change */
};

/* Fills *stats for source number `source` of the run, from 0. Any thread may call it while another thread is in next().
 * Statuses: OK, ERROR_RANGE (the run does not have the source), ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status
tokmap_loader_source_stats(const struct tokmap_loader *loader, uint64_t source, struct tokmap_source_stats *stats);

/* Writes the statistics of a loader and its sources in the text format of Prometheus (version 0.0.4), for the program's
 * own /metrics page or a textfile collector. All names begin with tokmap_loader_; every sample has the label rank.
 *
 * @code
 *     char text[65536];
 *     size_t bytes;
 *     if (tokmap_loader_prometheus(loader, "loader=\"train\"", text, sizeof text, &bytes) == TOKMAP_OK)
 *         fwrite(text, 1, bytes, stdout);
 * @endcode
 *
 *   labels    written into every sample besides rank, as NAME="VALUE",... with VALUE escaped as Prometheus wants it;
 *             NULL: none
 *   text      of `capacity` bytes; always terminated by a zero byte if capacity is not 0
 *   bytes     receives the length without that byte, also with ERROR_LIMIT. 16 KiB and 1 KiB for each source suffice
 *             where labels are short. NULL: not wanted
 * Any thread may call it while another thread is in next().
 * Statuses: OK, ERROR_LIMIT (capacity is too small), ERROR_ARGUMENT (loader is NULL, text is NULL and capacity is not
 * 0, or labels are not written like that). */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_loader_prometheus(const struct tokmap_loader *loader,
                                                                         const char *labels, char *text,
                                                                         size_t capacity, size_t *bytes);

/* ---------------------------------------------------------------- arrays for others ----------------------------- */

/* Deleters for tensors that a program exports through DLPack (dlpack.h) while it keeps the memory: the first for a
 * DLManagedTensor, the second for a DLManagedTensorVersioned. They set *(uint32_t *)manager_ctx to 1, with release
 * ordering. The owner reads that flag, and may reuse the memory once it is set. They take no lock, allocate nothing,
 * and call nothing, so a tensor may be freed in any state: while a Python exception propagates, in a signal handler, or
 * while the program exits. Any thread may call them. NULL is ignored. Cannot fail. */
TOKMAP_API void tokmap_dlpack_deleter(void *tensor);
TOKMAP_API void tokmap_dlpack_deleter_versioned(void *tensor);

#ifdef __cplusplus
}
#endif
#endif
