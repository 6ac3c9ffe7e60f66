/* SPDX-License-Identifier: MIT */
/*
 * tokmap.h - datasets of token ids, runs over them, and the loader that feeds a training program
 *
 * A *dataset* is one or more shards, seen as one address space of tokens. A shard is a file NAME.bin, which contains
 * tokens and nothing else, and its index NAME.tmx. A *run* is a short text that says everything a training run reads:
 * the dataset, the sequence length, the global batch, the seed, the end. A *loader* delivers the run's rows to one
 * rank, step after step. All of it is arithmetic over the text and the contents of the datasets. So there is no index
 * to build and no worker process, and a cursor of one line resumes the run exactly, on any number of ranks.
 *
 *   error.h      statuses, errors, types of ids            cuda.h       loaders on a GPU
 *   dataset.h    tokens, documents, columns; verify        pack.h       writes shards
 *   run.h        runs, the places of rows, cursors         tokenizer.h  text to ids and back (libtokmap_tokenize)
 *   loader.h     loaders, batches, statistics
 *   order.h      the order of windows                      This header includes those on the left.
 *   values.h     writes values beside tokens
 *
 * A training program opens a run, opens a loader on it, and calls tokmap_loader_next() until it returns TOKMAP_END:
 *
 * @code
 *     struct tokmap_error e = {0};
 *     struct tokmap_run *run = NULL;
 *     struct tokmap_loader *loader = NULL;
 *     if (tokmap_run_open(&run, "train.run", NULL, &e))
 *         fatal(&e);
 *     struct tokmap_loader_options o = TOKMAP_LOADER_OPTIONS_INIT;
 *     o.rank = rank;
 *     o.world = world;
 *     o.rows = 16;                                    // at most, in one call
 *     if (tokmap_loader_open(&loader, run, &o, &e))
 *         fatal(&e);
 *     struct tokmap_out out = TOKMAP_OUT_INIT;        // the program's own memory
 *     out.inputs = inputs;                            // int32_t[16][seq_len]
 *     out.targets = targets;
 *     struct tokmap_batch b = TOKMAP_BATCH_INIT;
 *     enum tokmap_status status;
 *     while ((status = tokmap_loader_next(loader, &out, NULL, &b, &e)) == TOKMAP_OK) {
 *         if (b.count)
 *             train(inputs, targets, b.count);
 *         if (b.last_in_step && b.step % 1000 == 0) {
 *             char text[TOKMAP_CURSOR_TEXT];
 *             tokmap_cursor_print(&b.cursor, text);   // the same on every rank
 *             save(text);                             // beside the model's checkpoint
 *         }
 *     }
 *     if (status != TOKMAP_END)
 *         fatal(&e);
 *     tokmap_loader_close(loader);
 *     tokmap_run_close(run);
 * @endcode
 *
 * A test compiles the lines between @code and @endcode in all headers. They use names of the program around them:
 * fatal() prints an error and exits; train(), save(), and found() are functions of its own; inputs, targets, rank,
 * world, saved_text, and interrupted are its variables; dataset, run, and loader are open. It includes <inttypes.h>.
 *
 * Rules for all functions
 *
 *   - A function that can fail returns enum tokmap_status. TOKMAP_OK, which is 0, is success. The compiler warns where
 *     the result is ignored. Each comment lists the statuses. All of these functions may also return
 *     TOKMAP_ERROR_ARGUMENT (an argument is NULL or invalid) and TOKMAP_ERROR_MEMORY, and are not listed with them.
 *   - `error` may be NULL. On failure the function fills all of it. On success it leaves it unchanged.
 *   - `options` and pointers to results that are not wanted may be NULL where the comment says so. Options and strings
 *     are copied: they must last only during the call.
 *   - A function that returns a handle through a pointer sets it to NULL on failure. A close function accepts NULL.
 *   - A function without a status returns 0 for NULL, unless its comment says otherwise.
 *   - Threads: any thread may call any function at any time, and several threads may use one dataset or one run. The
 *     exceptions are a handle that is being closed, which no other thread may use, and loaders (see loader.h).
 *   - Strings end in a zero byte unless their length is beside them. Paths are bytes, as for open(2). JSON is UTF-8.
 *   - Numbers count from 0, except lines, which count from 1. True is 1 and false is 0. Sizes are in bytes.
 *   - A struct whose first member is `size_t size` can grow in later versions, by members at its end. Initialize it
 *     with its macro, as in `struct tokmap_stats stats = TOKMAP_STATS_INIT;`, which sets size. A smaller size belongs
 *     to a program that was compiled with an older header: members that it does not have are neither read nor written.
 *     A larger size, or 0, is TOKMAP_ERROR_ARGUMENT, and nothing is written.
 *   - The library never prints, exits, or aborts because of its input. It starts no process and installs no signal
 *     handler. It connects to other machines only for datasets whose names begin with s3://, gs://, or http(s)://.
 *   - Some misuse cannot be detected, and its behavior is undefined: using a handle after closing it; closing a run
 *     before its loaders, or a dataset that belongs to a run (tokmap_source_info); two threads in one loader; output
 *     memory that is smaller than documented.
 *
 * Caveats, which tokmap(7) explains
 *
 *   - Do not change a file while a dataset has it open. `tokmap pack --force` and pack.h replace shards safely.
 *   - A load from a file mapping raises SIGBUS, which ends the program, if the file was truncated or its storage fails.
 *     With TOKMAP_READ_PREAD both are statuses, except in tokmap_dataset_view(), verify(), and index().
 *   - On network file systems tokens are never mapped by default. Give replaced data a new name there, and in object
 *     storage, too. What is read from object storage is kept in a cache folder: tokmap-remote(7).
 *   - Memory of the process grows with mapped reads (page cache), not with pread. A dataset has up to 4 descriptors or
 *     mappings for each shard, and up to 8 in object storage.
 *   - A child after fork() may use datasets and runs. It may use a loader only with threads = 0, no trace, no
 *     io_threads, no deadline_ns, and on the host. Other calls of a loader are TOKMAP_ERROR_ARGUMENT there.
 *   - Signals do not end a wait. Only the two deleters at the end of loader.h may be called in a signal handler.
 *
 * Linux on 64-bit, little-endian processors (x86-64, aarch64).
 */
#ifndef TOKMAP_TOKMAP_H
#define TOKMAP_TOKMAP_H

#include "dataset.h"
#include "error.h"
#include "loader.h"
#include "order.h"
#include "run.h"
#include "values.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TOKMAP_VERSION_MAJOR 0
#define TOKMAP_VERSION_MINOR 2
#define TOKMAP_VERSION_PATCH 0
#define TOKMAP_VERSION_STRING "0.2.0"

/* Returns TOKMAP_VERSION_STRING of the running library. The text is static. Cannot fail. */
TOKMAP_API const char *tokmap_version(void);

#ifdef __cplusplus
}
#endif
#endif
