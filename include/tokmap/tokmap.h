/* SPDX-License-Identifier: MIT */
/*
 * tokmap.h - datasets of token ids, runs over them, and the loader that feeds a training program
 *
 * A *dataset* is one or more shards, seen as one address space of tokens. A shard is a file NAME.bin, which contains
 * tokens and nothing else, and its index NAME.tmx. A *run* is a short text that says everything a training run reads:
 * the dataset, the sequence length, the global batch, the seed, the end. A *loader* delivers the run's rows to one
 * rank, step after step.
 *
 * Everything that a run delivers is arithmetic over its text and the contents of its datasets. So there is no index to
 * build and no worker process, and a cursor of one line resumes the run exactly, on any number of ranks.
 *
 * A training program opens a run, opens a loader on it, and calls tokmap_loader_next() until it returns TOKMAP_END:
 *
 * @code
 *     struct tokmap_error e = {0};
 *     struct tokmap_run *run = NULL;
 *     struct tokmap_loader *loader = NULL;
 *     if (tokmap_run_open(&run, "train.run", &e))
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
 * A test compiles the lines between @code and @endcode in these headers. They use names of the program around them:
 * fatal() prints an error and exits; train(), save(), and found() are functions of its own; inputs, targets, rank,
 * world, saved_text, and interrupted are its variables; dataset, run, and loader are open.
 *
 * The headers
 *
 *   error.h      statuses and errors
 *   dataset.h    open datasets: tokens, documents, columns; verify and index
 *   run.h        runs, where their rows come from, cursors
 *   loader.h     loaders, what they deliver, statistics
 *   order.h      the order of windows, as a function of integers
 *   cuda.h       loaders on a GPU; a program includes it itself
 *   pack.h       writes shards; a program includes it itself
 *   tokenizer.h  text to ids and back; a program includes it itself, and links libtokmap_tokenize
 *
 * Caveats for operators
 *
 *   Replacing files. Do not change a file while a dataset has it open. To replace a shard, write it with `tokmap pack
 *   --force` or options.replace of pack.h: whoever opens the shard meanwhile finds the old one or the new one,
 *   complete, and so does everyone after the writer was killed (src/format/FORMAT.md has the protocol). Renaming
 *   files of one's own over a .tmx and a .bin is two steps, between which they do not belong together. A dataset that
 *   is open continues to read the old files, which keep their space on disk until the dataset is closed. If bytes
 *   are overwritten in place, loaders notice within some milliseconds that the file has changed, and compare its pages
 *   with their hashes again; with options.deadline_ns or slow storage, each read. What does not match is
 *   TOKMAP_ERROR_CORRUPT. A view, tokmap_dataset_copy(), and a shard without hashes of pages
 *   (tokmap_dataset_info.page_hashes) have no such comparison: there, an id outside the vocabulary is
 *   TOKMAP_ERROR_TOKEN in a loader, and any other change is found only by tokmap_dataset_verify(). The tokens of a
 *   sealed shard (`tokmap seal`) are compared with hashes whoever reads them.
 *
 *   Truncated files and SIGBUS. A load from a file mapping raises SIGBUS, which ends the program, if the file was
 *   truncated or its storage fails. Which calls can raise it depends on how they read:
 *     - A dataset with TOKMAP_READ_PREAD reads tokens, masks, indexes (.tmx), and the document indexes of other
 *       projects with pread, and so do its loaders, which read plans like the tokens of their source. A truncated file
 *       is TOKMAP_ERROR_TRUNCATED, a failing storage TOKMAP_ERROR_IO, and neither is ever SIGBUS. There are three
 *       exceptions: views, and tokmap_dataset_verify() and tokmap_dataset_index(), which map an index or a document
 *       index for the time of their check.
 *     - tokmap_dataset_copy() and tokmap_dataset_mask() read tokens and masks with pread in every dataset.
 *     - Loaders with TOKMAP_READ_MAPPED, which TOKMAP_READ_AUTO may choose, touch only pages of tokens and masks that
 *       the kernel has made present. They compare the file's size with its index at the start of a batch, but not more
 *       often than every 50 microseconds, and in a batch after each 128 KiB of tokens. Both failures are statuses. What
 *       remains is a file that is truncated between that comparison and the copies that follow it. A loader that waits
 *       for the training step is hardly ever in there. One that delivers rows of 4 KiB as fast as it can often is: 28
 *       of 40 cuts ended in SIGBUS.
 *     - tokmap_dataset_view() returns pointers into a mapping. Reading them raises SIGBUS in the caller.
 *     - With TOKMAP_READ_MAPPED, indexes (.tmx) of more than 16 KiB, the document indexes of other projects' files, and
 *       plans are read through mappings. So an index that is truncated can raise SIGBUS in every function that looks up
 *       documents, origins, columns, or the about section, in tokmap_dataset_verify(), and in loaders that deliver
 *       anything computed from document boundaries (all fields but inputs, targets, and rows; and mask_targets). A plan
 *       that is truncated can raise it in loaders of a run that has one, and where its rows are located.
 *
 *   Network file systems. TOKMAP_READ_AUTO never maps tokens on NFS, Lustre, and the like. Where another client
 *   replaces a file there, an open dataset may get an I/O error instead of the old bytes, so use new names.
 *
 *   Memory. Tokens are read through the page cache, which the kernel reclaims when memory is needed. With
 *   TOKMAP_READ_PREAD the memory of the process does not grow with the dataset, but what was asked for of origins,
 *   columns, and about sections stays in memory until the dataset is closed. With TOKMAP_READ_MAPPED the pages that
 *   were read count as resident memory (RSS) of the process, although they are page cache. The option drop_behind
 *   removes what was read from the page cache. Besides that, a loader has its ring (see ring_bytes).
 *
 *   Descriptors and mappings. An open dataset keeps one file descriptor per shard, another one for its mask, and a
 *   mapping of an index of more than 16 KiB, or, with TOKMAP_READ_PREAD, another descriptor instead; and another
 *   mapping per shard whose tokens are mapped. Large datasets may need a higher `ulimit -n` or vm.max_map_count.
 *
 *   Fork. A child after fork() may use datasets and runs that its parent opened. It may use a loader only if that has
 *   threads = 0, no trace, and no threads that read (io_threads, deadline_ns), and delivers on the host;
 *   tokmap_loader_next(), read(), rewind(), repartition(), reload(), and flush() of any other loader return
 *   TOKMAP_ERROR_ARGUMENT in the child, and closing it is safe. After exec() or in another process, open
 *   everything again by name.
 *
 *   Threads. Any number of threads may use one dataset or one run; for a loader, see struct tokmap_loader. No other
 *   thread may use a handle that is being closed.
 *
 *   Signals. The library installs no signal handler. Its threads block all signals, so they are delivered to the
 *   program's own threads, except those of faults (SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS): a handler that
 *   the program has for them, as crash reporters do, runs in the thread at fault. System calls that a signal interrupts
 *   are repeated: a signal does not end tokmap_loader_next(). A program that must act on signals while it waits calls
 *   tokmap_loader_wait() with a timeout first. Of this library only the deleters at the end of loader.h may be
 *   called in a signal handler.
 *
 *   Machines. Linux on 64-bit, little-endian processors (x86-64, aarch64). The environment variable TOKMAP_CPU=scalar,
 *   avx2, avx512, or neon caps the instruction sets that are used; it changes no result.
 *
 * Rules for all functions
 *
 *   - Functions that can fail return enum tokmap_status; TOKMAP_OK, which is 0, is success. The compiler warns where
 *     the result is ignored. The comment of each function lists its statuses. Every one of them may also return
 *     TOKMAP_ERROR_ARGUMENT (an argument is NULL or invalid) and TOKMAP_ERROR_MEMORY.
 *   - Where a function takes `struct tokmap_error *error`, it may be NULL. On failure the function fills all of it. On
 *     success it leaves it unchanged.
 *   - A function that returns a handle through a pointer sets it to NULL on failure.
 *   - The library never prints, exits, or aborts because of its input, and starts no process.
 *   - Strings end in a zero byte unless their length is beside them. Paths are bytes, as for open(2).
 *   - Structs that begin with `size_t size` can grow in later versions, by members at their end. Set size to the size
 *     of the struct, with the _INIT macro or as in `struct tokmap_stats s = {.size = sizeof s};`. A smaller size
 *     belongs to a program that was compiled with an older header: members that it does not have are neither read nor
 *     written. A larger size, or one that was not set, is TOKMAP_ERROR_ARGUMENT, and nothing is written.
 *
 * What misuse does
 *
 *   - NULL for a handle or a result is TOKMAP_ERROR_ARGUMENT; functions without a status return 0 (what else they
 *     return is said in their comment). Close functions accept NULL.
 *   - Some errors cannot be detected, and their behavior is undefined: using a handle after closing it; closing a run
 *     before its loaders; closing a dataset that belongs to a run (see tokmap_source_info); two threads in
 *     tokmap_loader_next() of one loader; output memory that is smaller than documented.
 */
#ifndef TOKMAP_TOKMAP_H
#define TOKMAP_TOKMAP_H

#include "dataset.h"
#include "error.h"
#include "loader.h"
#include "order.h"
#include "run.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TOKMAP_VERSION_MAJOR 0
#define TOKMAP_VERSION_MINOR 2
#define TOKMAP_VERSION_PATCH 0
#define TOKMAP_VERSION_STRING "0.2.0"

/* Returns TOKMAP_VERSION_STRING of the running library. The text is static. Any thread may call it. Cannot fail. */
TOKMAP_API const char *tokmap_version(void);

#ifdef __cplusplus
}
#endif
#endif
