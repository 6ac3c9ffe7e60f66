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
 * A test compiles the lines between @code and @endcode in this header. They use names of the program around them:
 * fatal() prints an error and exits; train(), save(), and found() are functions of its own; inputs, targets, rank,
 * world, saved_text, and interrupted are its variables; dataset, run, and loader are open.
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
 *   tokmap_loader_wait() with a timeout first. Of this library only the deleters at the end of this header may be
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

#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

#define TOKMAP_VERSION_MAJOR 0
#define TOKMAP_VERSION_MINOR 2
#define TOKMAP_VERSION_PATCH 0
#define TOKMAP_VERSION_STRING "0.2.0"

#if defined(__GNUC__)
#define TOKMAP_API __attribute__((visibility("default")))
#define TOKMAP_MUST_CHECK __attribute__((warn_unused_result))
#else
#define TOKMAP_API
#define TOKMAP_MUST_CHECK
#endif

/* ---------------------------------------------------------------- status and error ---------------------------- */

/* The list of statuses: name, number, meaning. Numbers never change; new statuses are added at the end. */
#define TOKMAP_STATUS_MAP(XX)                                                                                          \
    XX(OK, 0, "success")                                                                                               \
    XX(END, 1, "the run has ended")                                                                                    \
    XX(ERROR_ARGUMENT, 2, "an argument is missing or invalid")                                                         \
    XX(ERROR_MEMORY, 3, "out of memory")                                                                               \
    XX(ERROR_IO, 4, "a file operation failed")                                                                         \
    XX(ERROR_NOT_FOUND, 5, "a file, dataset, source, or item does not exist")                                          \
    XX(ERROR_EXISTS, 6, "the output already exists")                                                                   \
    XX(ERROR_BUSY, 7, "another process is writing this output")                                                        \
    XX(ERROR_FORMAT, 8, "the file does not have the expected format")                                                  \
    XX(ERROR_VERSION, 9, "the file or cursor has a newer major version of its format than this library reads")         \
    XX(ERROR_CORRUPT, 10, "the content of a file does not match its checksums, or contradicts itself")                 \
    XX(ERROR_TRUNCATED, 11, "a file is shorter or longer than its index or header says")                               \
    XX(ERROR_MISMATCH, 12, "files that must agree with each other do not")                                             \
    XX(ERROR_RANGE, 13, "a number is outside the range of the dataset or run")                                         \
    XX(ERROR_RUN, 14, "the run text is invalid")                                                                       \
    XX(ERROR_CURSOR, 15, "the text is not a valid cursor")                                                             \
    XX(ERROR_PAST, 16, "the run's past differs from the past that the cursor records")                                 \
    XX(ERROR_TOKEN, 17, "a token id is outside the vocabulary")                                                        \
    XX(ERROR_INPUT, 18, "an input record is invalid")                                                                  \
    XX(ERROR_ENCODING, 19, "the input is not valid UTF-8")                                                             \
    XX(ERROR_LIMIT, 20, "a size exceeds its limit")                                                                    \
    XX(ERROR_INTERRUPTED, 21, "the caller stopped the operation")                                                      \
    XX(ERROR_UNSUPPORTED, 22, "this build or version does not support the operation")                                  \
    XX(ERROR_INTERNAL, 23, "an internal error in tokmap")                                                              \
    XX(ERROR_DEVICE, 24, "an operation failed on the GPU or in its driver")                                            \
    XX(ERROR_NO_DEVICE, 25, "the GPU does not exist, or has no usable driver")                                         \
    XX(ERROR_TIMEOUT, 26, "a read took longer than its deadline")

enum tokmap_status {
#define TOKMAP_STATUS_ENUM(name, number, text) TOKMAP_##name = number,
    TOKMAP_STATUS_MAP(TOKMAP_STATUS_ENUM)
#undef TOKMAP_STATUS_ENUM
};

#define TOKMAP_NO_OFFSET UINT64_MAX

/* Describes a failure. The struct belongs to the caller and holds no pointers, so it may be copied and kept.
 *
 * @code
 *     struct tokmap_error e = {0};
 *     struct tokmap_dataset *dataset = NULL;
 *     if (tokmap_dataset_open(&dataset, "data/web", NULL, &e)) {
 *         char text[1500];
 *         if (e.status == TOKMAP_ERROR_NOT_FOUND)
 *             puts("pack the data first");
 *         puts(tokmap_error_print(&e, text, sizeof text));
 *     }
 * @endcode
 */
struct tokmap_error {
    enum tokmap_status status;
    int system;        /* errno of the system call that failed, or 0 */
    int device;        /* CUDA result code, or 0 */
    uint32_t line;     /* line of a run file, manifest, or JSONL input, from 1; 0: unknown or not applicable */
    uint64_t offset;   /* byte offset in the file, or TOKMAP_NO_OFFSET */
    char path[512];    /* the file, or ""; of a longer path the end is kept, after "..." */
    char message[768]; /* what is wrong, and what to do about it; path, line, and offset are not repeated in it */
};

/* Returns the name of a status as it appears in TOKMAP_STATUS_MAP, for example "ERROR_RANGE", or "unknown" for a number
 * that is not a status. The text is static. Any thread may call it. Cannot fail. */
TOKMAP_API const char *tokmap_status_name(enum tokmap_status status);

/* Returns the meaning of a status as it appears in TOKMAP_STATUS_MAP, or "unknown". The text is static. Any thread may
 * call it. Cannot fail. */
TOKMAP_API const char *tokmap_status_text(enum tokmap_status status);

/* Writes an error as "path:line: message: system text (byte N)" into text, without the parts that the error does not
 * have. An empty message is replaced by the meaning of the status. Names and file content in an error may come from
 * anyone; the text, and `message` itself, are one line of plain characters, which cannot act on a terminal: escape is
 * written as ^[, newline as ^J, U+009B as \xc2\x9b. `path` is the path as it is.
 *   error     NULL: the text is empty
 *   text      of `capacity` bytes; the result is cut to fit and always terminated. 1,500 bytes hold any error. NULL, or
 *             a capacity of 0: nothing is written
 * Returns text. Any thread may call it. Cannot fail. */
TOKMAP_API const char *tokmap_error_print(const struct tokmap_error *error, char *text, size_t capacity);

/* Returns TOKMAP_VERSION_STRING of the running library. The text is static. Any thread may call it. Cannot fail. */
TOKMAP_API const char *tokmap_version(void);

/* How ids are stored in the memory of a program that writes shards (pack.h) or encodes text (tokenizer.h). */
enum tokmap_id_type {
    TOKMAP_ID_U32 = 0,
    TOKMAP_ID_I32 = 1,
    TOKMAP_ID_U16 = 2,
    TOKMAP_ID_I16 = 3,
    TOKMAP_ID_U64 = 4,
    TOKMAP_ID_I64 = 5,
    TOKMAP_ID_U8 = 6,
    TOKMAP_ID_I8 = 7
};

/* ---------------------------------------------------------------- dataset -------------------------------------- */

/* An open dataset. It is immutable: any number of threads may use it at the same time, and so may a child after fork().
 *
 * @code
 *     struct tokmap_error e = {0};
 *     struct tokmap_dataset *dataset = NULL;
 *     if (tokmap_dataset_open(&dataset, "data/web", NULL, &e))
 *         fatal(&e);
 *     struct tokmap_dataset_info info = {.size = sizeof info};
 *     struct tokmap_document document;
 *     if (tokmap_dataset_info(dataset, &info) || tokmap_dataset_document(dataset, 17, &document, &e))
 *         fatal(&e);
 *     struct tokmap_span spans[2];                    // 2, in case the range continues in the next shard
 *     size_t used;
 *     if (tokmap_dataset_view(dataset, document.first_token, document.tokens, spans, 2, &used, &e))
 *         fatal(&e);
 *     for (size_t i = 0; i < used; i++)
 *         for (uint64_t k = 0; k < spans[i].count; k++)
 *             printf("%" PRIu32 "\n", info.width == 2 ? ((const uint16_t *)spans[i].tokens)[k]
 *                                                     : ((const uint32_t *)spans[i].tokens)[k]);
 *     tokmap_dataset_close(dataset);                  // the spans end here
 * @endcode
 */
struct tokmap_dataset;

/* How loaders read tokens. */
enum tokmap_reading {
    TOKMAP_READ_AUTO = 0,   /* mapped if all files are on local file systems and the tokens fit in half of the memory
                               that this process may use (of the machine and of its control group); otherwise pread */
    TOKMAP_READ_MAPPED = 1, /* from a shared mapping, page by page after the kernel has made the page present; by pread
                               until then, and where a page is not in the page cache */
    TOKMAP_READ_PREAD = 2   /* by pread: the memory of the process does not grow with the dataset, and every failure is
                               a status */
};

struct tokmap_dataset_options {
    size_t size;                 /* sizeof(struct tokmap_dataset_options) */
    enum tokmap_reading reading; /* default: TOKMAP_READ_AUTO */
};
#define TOKMAP_DATASET_OPTIONS_INIT {sizeof(struct tokmap_dataset_options), TOKMAP_READ_AUTO}

#define TOKMAP_NO_ID UINT64_MAX

/* The beginning of the name of a synthetic dataset: see tokmap_dataset_open(). */
#define TOKMAP_SYNTHETIC "synthetic:"

struct tokmap_dataset_info {
    size_t size;                 /* set by the caller: sizeof(struct tokmap_dataset_info) */
    uint64_t tokens;
    uint64_t documents;          /* 0 if there are tokens, but nothing says where documents are: other projects' files
                                    without a document index, until `tokmap index` */
    uint64_t shards;             /* 0 for a synthetic dataset */
    uint32_t width;              /* bytes of a token: 2 or 4 */
    enum tokmap_reading reading; /* how loaders read it: TOKMAP_READ_MAPPED or TOKMAP_READ_PREAD */
    uint64_t vocabulary;         /* number of ids of the tokenizer, special tokens included; every id is below it */
    uint64_t largest_id;         /* the largest id in the dataset; 0 if it has no tokens */
    uint64_t eod_id;             /* the id that ends a document, or TOKMAP_NO_ID if there is none or shards differ */
    uint64_t bos_id;             /* the id that begins a document, or TOKMAP_NO_ID, as for eod_id */
    uint8_t content[16];         /* content id of the dataset: see "Identity" in src/format/FORMAT.md */
    uint8_t tokenizer[16];       /* fingerprint of the tokenizer; all zero if it is unknown */
    const char *warning;         /* a text that the user should read, valid until the dataset is closed; NULL: none. The
                                    shards differ in the id that ends or begins documents, the tokenizer of some is not
                                    recorded, or the name of the shard is that of a folder, too. The data is read as it
                                    is. The library prints nothing, so a program passes the text on */
    const char *kind;            /* "shards" (also files of other projects that have an index), "synthetic", or the kind
                                    of other projects' files: "megatron", "llmc", "npy", "datatrove", "olmo", "raw".
                                    Valid as long as the library is loaded */
    uint32_t identity;           /* what `content` covers: TOKMAP_IDENTITY_FULL or TOKMAP_IDENTITY_SAMPLED */
    uint32_t masked;             /* 1: some shard has a mask: see tokmap_dataset_mask() */
    uint32_t page_hashes;        /* 1: loaders compare what they read with hashes of its pages (4 KiB), or of
                                    the frames of a sealed shard. 0: some shard
                                    has none, because it has holes, belongs to another project, or was packed before
                                    format 1.3; only tokmap_dataset_verify() finds out whether it is damaged */
};

/* What a content id covers. The id of shards covers every token. That of other projects' files without an index covers
 * their names' words, their sizes, and 256 samples of 4 KiB, so it finds out most changes, but not all; `tokmap index`
 * makes it full. */
#define TOKMAP_IDENTITY_FULL 1
#define TOKMAP_IDENTITY_SAMPLED 2

/* One shard of a dataset. Its pointers are valid until the dataset is closed. */
struct tokmap_shard_info {
    size_t size;             /* set by the caller: sizeof(struct tokmap_shard_info) */
    const char *index_path;
    const char *tokens_path;
    uint64_t first_token;    /* address of the shard's first token in the dataset */
    uint64_t tokens;
    uint64_t first_document; /* number of the shard's first document in the dataset */
    uint64_t documents;
    uint64_t index_bytes;    /* size of the index file */
    uint64_t blocks;         /* hashed blocks of 1 MiB of tokens; the last block may be shorter */
    uint8_t content[16];     /* content id of the shard */
    const char *about;       /* JSON of `about_bytes` bytes, not terminated; its hash has been checked */
    uint64_t about_bytes;
    uint64_t eod_id;         /* the id that ends each document of this shard, or TOKMAP_NO_ID */
    uint64_t bos_id;         /* the id that begins each document of this shard, or TOKMAP_NO_ID */
};

/* Consecutive tokens in the mapping of one shard, as little-endian uint16_t or uint32_t according to the dataset's
 * width. The pointer is aligned to the width and not more. It is valid until the dataset is closed. The memory is
 * read-only. */
struct tokmap_span {
    const void *tokens;
    uint64_t count;
};

struct tokmap_document {
    uint64_t number;      /* in the dataset, from 0 */
    uint64_t first_token; /* address in the dataset */
    uint64_t tokens;      /* may be 0 */
    uint64_t shard;       /* number of the shard that contains it, from 0 */
};

/* Where a document came from. The pointer is valid until the dataset is closed. */
struct tokmap_origin {
    const char *path;    /* the input file as `tokmap pack` was given it, or "-" for standard input; not terminated */
    uint64_t path_bytes; /* the length of path */
    uint64_t record;     /* number of the record in that file, from 0. For JSONL it is the line, which messages and
                            editors count from 1: line record + 1. For a text file that is one document it is 0 */
};

/* Opens a dataset.
 *   dataset  receives the handle; close it with tokmap_dataset_close()
 *   name     one of:
 *              a prefix: "data/web" for data/web.bin and data/web.tmx; the full name of either file works too
 *              a folder: all .tmx files below it, in byte order of their paths. A NAME.bin whose NAME.tmx is missing
 *                is ERROR_MISMATCH, unless it begins like a file of Megatron or llm.c, because the dataset would be
 *                smaller without a word. So are several sets of one split, such as web.train and web.val, because a
 *                run of the folder would train on what the split holds out. A shard that is being written for the first
 *                time is not in the folder yet
 *              a manifest: a text file whose first line is "tokmap-shards 1", followed by one prefix per line, relative
 *                to the manifest's folder. Several sets of one split in it are a warning
 *              files of another project, in place: "[KIND:]PATH[,WORD=VALUE]...", such as "data/my_text_document" of
 *                Megatron, or "raw:train.bin,width=2,eod=50256". See src/format/FORMAT.md
 *              a synthetic dataset, which has no files: "synthetic:vocab=50257", optionally followed by ",tokens=N",
 *                ",document=N" (average tokens of a document), ",width=2" or ",width=4", and ",seed=N". Its tokens are
 *                computed: see src/run/RUN.md. It has no shards, origins, or views
 *            Any of these names may end with a part, which is then all that the dataset has: "data/web#docs=0..99.5%",
 *            the first 99.5 of 100 documents; "data/web#docs=100..200", documents 100 to 199;
 *            "data/web#tokens=0..4096", tokens 0 to 4095. Parts that begin where others end have no document in common
 *   options  NULL: the defaults
 * Opening reads a few KiB per shard, whatever its size, and of other projects' files without indexes a sample of at
 * most 1 MiB in all. It checks the magic, the version, the hashes of the header, the section table, and the shard
 * section, all bounds, and the sizes of all files. tokmap_dataset_verify() checks the rest. Any thread may call it.
 * Statuses: OK, ERROR_NOT_FOUND, ERROR_IO, ERROR_FORMAT, ERROR_VERSION, ERROR_CORRUPT, ERROR_TRUNCATED, ERROR_MISMATCH
 * (shards differ in width or tokenizer, a folder has tokens without their index, or a folder or pattern has several
 * sets of one split), ERROR_BUSY (a shard is replaced again and again while it is being opened), ERROR_LIMIT,
 * ERROR_UNSUPPORTED, ERROR_ARGUMENT, ERROR_MEMORY. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_dataset_open(struct tokmap_dataset **dataset, const char *name,
                                                                    const struct tokmap_dataset_options *options,
                                                                    struct tokmap_error *error);

/* Closes a dataset. All pointers into it become invalid. Accepts NULL. No other thread may be using the dataset. Do not
 * close a dataset that tokmap_run_source() returned: it belongs to its run. Cannot fail. */
TOKMAP_API void tokmap_dataset_close(struct tokmap_dataset *dataset);

/* Fills *info. Statuses: OK, ERROR_ARGUMENT (an argument is NULL, or info->size is not set). */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_dataset_info(const struct tokmap_dataset *dataset,
                                                                    struct tokmap_dataset_info *info);

/* Fills *info for shard number `shard`, from 0. It reads the shard's about section and checks its hash.
 * Statuses: OK, ERROR_RANGE, ERROR_CORRUPT, ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_dataset_shard(const struct tokmap_dataset *dataset,
                                                                     uint64_t shard, struct tokmap_shard_info *info,
                                                                     struct tokmap_error *error);

/* Returns tokens [first, first + count) without copying them: fills spans[0] to spans[*used - 1], in order, one span
 * for each shard that contains some of them.
 *   spans     of `capacity` elements. Inside one shard 1 element suffices; 2 suffice unless a shard is shorter than
 *             count
 *   used      receives the number of spans; with ERROR_LIMIT, the number that is needed; with any other failure 0
 * The first view of a shard maps its tokens; the mapping stays until the dataset is closed. Reading a span raises
 * SIGBUS if the file was truncated: see the caveats at the top. A synthetic dataset has no views; nor has a file of
 * another project whose elements have 1 or 8 bytes, or do not begin at a multiple of their size; nor a sealed shard.
 * Statuses: OK, ERROR_RANGE, ERROR_LIMIT (capacity is too small), ERROR_IO (mapping failed), ERROR_UNSUPPORTED (there
 * is no view of these tokens), ERROR_ARGUMENT, ERROR_MEMORY. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_dataset_view(const struct tokmap_dataset *dataset,
                                                                    uint64_t first, uint64_t count,
                                                                    struct tokmap_span *spans, size_t capacity,
                                                                    size_t *used, struct tokmap_error *error);

/* Copies tokens [first, first + count) to out, which holds count * width bytes and may have any alignment. It reads
 * with pread and never raises a signal. Of a sealed shard, each call unpacks the frames of 64 KiB that hold the tokens,
 * in about 300 KiB of memory. After a failure the content of out is undefined.
 * Statuses: OK, ERROR_RANGE, ERROR_IO, ERROR_TRUNCATED, ERROR_TOKEN (in a file of another project: a number is negative
 * or has more than 32 bits), ERROR_CORRUPT and ERROR_MEMORY (of a sealed shard), ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_dataset_copy(const struct tokmap_dataset *dataset,
                                                                    uint64_t first, uint64_t count, void *out,
                                                                    struct tokmap_error *error);

/* Reports which of tokens [first, first + count) count as targets, that is, should be learned when they come next: bit
 * i mod 8 of bits[i / 8] is 1 if token first + i does. All do in shards without a mask. `bits` has room for (count + 7)
 * / 8 bytes; spare bits of the last one are 0. It reads with pread and never raises a signal. After a failure the
 * content of bits is undefined. Any thread may call it. Statuses: OK, ERROR_RANGE, ERROR_IO, ERROR_TRUNCATED,
 * ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_dataset_mask(const struct tokmap_dataset *dataset,
                                                                    uint64_t first, uint64_t count, uint8_t *bits,
                                                                    struct tokmap_error *error);

/* Looks up document `number`, from 0. The time is logarithmic in the shard's documents.
 * Statuses: OK, ERROR_RANGE, ERROR_CORRUPT (the index contradicts itself there), ERROR_UNSUPPORTED (it is not recorded
 * where documents are: see tokmap_dataset_info.documents), ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_dataset_document(const struct tokmap_dataset *dataset,
                                                                        uint64_t number,
                                                                        struct tokmap_document *document,
                                                                        struct tokmap_error *error);

/* Looks up the document that contains the token at address `token`; it is never an empty document. The time is
 * logarithmic in the shard's documents.
 * Statuses: OK, ERROR_RANGE, ERROR_CORRUPT (the index contradicts itself there), ERROR_UNSUPPORTED (it is not recorded
 * where documents are), ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_dataset_document_at(const struct tokmap_dataset *dataset,
                                                                           uint64_t token,
                                                                           struct tokmap_document *document,
                                                                           struct tokmap_error *error);

/* Looks up where document `number`, from 0, came from.
 * Statuses: OK, ERROR_RANGE, ERROR_NOT_FOUND (the index records no origins), ERROR_CORRUPT, ERROR_UNSUPPORTED (it is
 * not recorded where documents are), ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_dataset_origin(const struct tokmap_dataset *dataset,
                                                                      uint64_t number, struct tokmap_origin *origin,
                                                                      struct tokmap_error *error);

/* ---- columns ----
 *
 * An index can keep chosen fields of the records that its documents came from, the columns: their addresses, scores,
 * languages. `tokmap pack --columns url,score` writes them, and so does pack.h.
 *
 * @code
 *     struct tokmap_error e = {0};
 *     struct tokmap_value value;
 *     if (tokmap_dataset_value(dataset, 17, "url", &value, &e))
 *         fatal(&e);
 *     printf("%.*s\n", (int)value.bytes, value.json);  // "https://example.org/"
 * @endcode
 */

/* A value: JSON text in UTF-8 of `bytes` bytes, not terminated, as the record has it: a string with its quotes, a
 * number, true, false, null, an object, an array. bytes 0: the record has no such field. */
struct tokmap_value {
    const char *json;
    uint64_t bytes;
};

/* What a dataset has of one column. */
struct tokmap_column_info {
    size_t size;        /* set by the caller: sizeof(struct tokmap_column_info) */
    const char *name;   /* UTF-8; valid until the dataset is closed */
    uint64_t shards;    /* that have the column */
    uint64_t documents; /* of the dataset, in these shards */
    uint64_t values;    /* that are stored: in a shard whose documents have at most 65,536 different values of at most
                           16 MiB, these; in other shards one for each document */
    uint64_t bytes;     /* of the column in the indexes of these shards */
};

/* Lists the columns of a dataset, which are those of all its shards, in the order in which they first appear. A dataset
 * of other projects' files, or a synthetic one, has none.
 *   names  receives `capacity` names at most, each UTF-8 and valid until the dataset is closed. NULL with capacity 0:
 *          only *count is wanted
 *   count  receives the number of columns, also with ERROR_LIMIT
 * Any thread may call it. Statuses: OK, ERROR_LIMIT (capacity is too small), ERROR_CORRUPT (the columns of a shard
 * contradict each other), ERROR_ARGUMENT, ERROR_MEMORY. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_dataset_columns(const struct tokmap_dataset *dataset,
                                                                       const char **names, size_t capacity,
                                                                       size_t *count, struct tokmap_error *error);

/* Fills *info for the column `name`. The time is proportional to the number of shards. Any thread may call it.
 * Statuses: OK, ERROR_NOT_FOUND (no shard has such a column), ERROR_CORRUPT, ERROR_ARGUMENT (an argument is NULL, or
 * info->size is not set). */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_dataset_column(const struct tokmap_dataset *dataset,
                                                                      const char *name,
                                                                      struct tokmap_column_info *info,
                                                                      struct tokmap_error *error);

/* Looks up the value of the column `name` for document `number`, from 0. value->json points into the index and is
 * valid until the dataset is closed; value->bytes is 0 if the document's record has no such field, or if its shard
 * has no such column although another shard does. Its bounds are checked here. That it is JSON was checked when it was
 * written; tokmap_dataset_verify() checks it again. Any thread may call it.
 * Statuses: OK, ERROR_RANGE (no such document), ERROR_NOT_FOUND (no shard has such a column), ERROR_CORRUPT,
 * ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_dataset_value(const struct tokmap_dataset *dataset,
                                                                     uint64_t number, const char *name,
                                                                     struct tokmap_value *value,
                                                                     struct tokmap_error *error);

/* Options of tokmap_dataset_verify(). The callbacks may be called from threads of the library, one call at a time. They
 * return 0 to continue; any other value ends the verification with ERROR_INTERRUPTED. */
struct tokmap_verify_options {
    size_t size;      /* sizeof(struct tokmap_verify_options) */
    uint32_t threads; /* 0: one for each processor that this process may use */
    /* Called for each fault, in no particular order. The error has the file, the offset of the first byte of the faulty
     * block or section, and a message. NULL: not called. */
    int (*fault)(void *user, const struct tokmap_error *error);
    /* Called from time to time with the number of bytes read so far and in total. NULL: not called. */
    int (*progress)(void *user, uint64_t done, uint64_t total);
    void *user; /* passed to both callbacks */
};
#define TOKMAP_VERIFY_OPTIONS_INIT {sizeof(struct tokmap_verify_options), 0, NULL, NULL, NULL}

struct tokmap_verify_result {
    size_t size;     /* set by the caller: sizeof(struct tokmap_verify_result) */
    uint64_t bytes;  /* read and hashed */
    uint64_t blocks; /* blocks of tokens that were hashed */
    uint64_t faults;
};

/* Reads every byte of every shard and checks everything that the index says about it: section hashes, block hashes, the
 * order and bounds of documents, origins, and columns, content ids, the largest id, and zero padding. It continues
 * after a fault, to find them all. A synthetic dataset has nothing to verify.
 *   options  NULL: the defaults
 *   result   NULL: not wanted
 * A dataset that loaders read through mappings is verified through them where that is faster; the caveat about SIGBUS
 * at the top applies. Memory use does not grow with the dataset.
 *
 * @code
 *     struct tokmap_error e = {0};
 *     struct tokmap_verify_result result = {.size = sizeof result};
 *     if (tokmap_dataset_verify(dataset, NULL, &result, &e))
 *         fatal(&e);                                  // e is the first fault
 *     printf("%" PRIu64 " bytes are sound\n", result.bytes);
 * @endcode
 *
 * Statuses: OK (no faults); ERROR_CORRUPT, ERROR_IO, or ERROR_TRUNCATED (there are faults; error describes the first by
 * position); ERROR_INTERRUPTED (a callback did not return 0); ERROR_ARGUMENT, ERROR_MEMORY. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_dataset_verify(const struct tokmap_dataset *dataset,
                                                                      const struct tokmap_verify_options *options,
                                                                      struct tokmap_verify_result *result,
                                                                      struct tokmap_error *error);

/* Options of tokmap_dataset_index(). The callbacks may be called from threads of the library, one call at a time. */
struct tokmap_index_options {
    size_t size;      /* sizeof(struct tokmap_index_options) */
    uint32_t threads; /* 0: one for each processor that this process may use */
    int replace;      /* 1: an index that exists is written again (the index of a packed shard never is); 0: it is an
                         error */
    /* Called from time to time with the number of bytes of tokens read so far and in total. A result other than 0 ends
     * the indexing with ERROR_INTERRUPTED. NULL: not called. */
    int (*progress)(void *user, uint64_t done, uint64_t total);
    /* Asked where the documents of a file end, if its format does not say so: for OLMo's .csv.gz, for example. Called
     * again and again for a file: it writes the next ends, in tokens, at most `capacity` of them, in order, and sets
     * *used; 0 is the end. ERROR_NOT_FOUND in the first call for a file: documents end and begin at the EOD and BOS of
     * the name. Every other status but OK fails the indexing; it fills *error. NULL: not called. */
    enum tokmap_status (*ends)(void *user, const char *tokens_path, uint64_t tokens, uint64_t *ends, uint64_t capacity,
                               uint64_t *used, struct tokmap_error *error);
    void *user; /* passed to both callbacks */
    /* The tokenizer that made the ids, which no other project's file states. The indexes record it, as those of packed
     * shards do, so that commands find it, and that datasets of different tokenizers are not combined. */
    const uint8_t *tokenizer;    /* its fingerprint, 16 bytes; NULL: it is not known */
    uint64_t vocabulary;         /* the number of its ids, as the word vocab of a name; 0: not known */
    const char *tokenizer_about; /* a JSON object in UTF-8 that describes it, for the about section, such as
                                    {"name":"gpt2"}; NULL: nothing more is known */
};
#define TOKMAP_INDEX_OPTIONS_INIT {sizeof(struct tokmap_index_options), 0, 0, NULL, NULL, NULL, NULL, 0, NULL}

struct tokmap_index_result {
    size_t size;        /* set by the caller: sizeof(struct tokmap_index_result) */
    uint64_t files;     /* indexes that were written; those before a failure remain */
    uint64_t tokens;
    uint64_t documents;
    uint64_t bytes;     /* of the files with tokens */
};

/* Indexes files of other projects (see tokmap_dataset_open()): reads each file once and writes its .tmx beside it, and
 * a .mask if datatrove's .loss exists. The files themselves do not change. With all of its indexes, a dataset has
 * numbered documents and a full identity: its content id is that of a packed copy. Its cursors differ from those
 * before, because the id is part of them.
 *   name     as for tokmap_dataset_open(), of files of another project
 *   options  NULL: the defaults
 *   result   NULL: not wanted; also filled on failure
 * An index appears complete or not at all. Memory use does not grow with the files.
 * Statuses: OK; ERROR_EXISTS (an index exists); ERROR_TOKEN (an id is not in the vocabulary; the error has its byte);
 * ERROR_CORRUPT, ERROR_TRUNCATED, ERROR_FORMAT, ERROR_VERSION (a file is damaged); ERROR_BUSY (another process writes
 * an index, or a file changed meanwhile); ERROR_NOT_FOUND, ERROR_IO, ERROR_UNSUPPORTED, ERROR_ARGUMENT,
 * ERROR_INTERRUPTED, ERROR_MEMORY. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_dataset_index(const char *name,
                                                                     const struct tokmap_index_options *options,
                                                                     struct tokmap_index_result *result,
                                                                     struct tokmap_error *error);

/* ---------------------------------------------------------------- order ----------------------------------------- */

/* The order in which the windows of one epoch of one source are drawn: a keyed bijection on [0, windows). Each call
 * takes constant time and memory. The definition is in src/order/ORDER.md and never changes. The struct is a plain
 * value: it may be copied, and any thread may use it. Its content is private.
 *
 * The order can be computed without any data, for example to list the windows that begin epoch 3:
 *
 * @code
 *     struct tokmap_order order;
 *     if (tokmap_order_init(&order, 1000000, 1234, "web", 3) == TOKMAP_OK)
 *         for (uint64_t draw = 0; draw < 10; draw++)
 *             printf("%" PRIu64 "\n", tokmap_order_window(&order, draw));
 * @endcode
 */
struct tokmap_order {
    uint64_t state[12];
};

/* Prepares an order.
 *   windows  1 to 2^63
 *   seed     the seed of the run, any value
 *   source   the name of the source, of any length; "data" for a run made by tokmap_run_make()
 *   epoch    any value
 * Statuses: OK, ERROR_ARGUMENT (a NULL argument, or windows is out of range). */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_order_init(struct tokmap_order *order, uint64_t windows,
                                                                  uint64_t seed, const char *source, uint64_t epoch);

/* Returns the window of a draw, or UINT64_MAX if draw is not below `windows` or order is NULL. Cannot fail. */
TOKMAP_API uint64_t tokmap_order_window(const struct tokmap_order *order, uint64_t draw);

/* Returns the draw of a window, the inverse of tokmap_order_window(), or UINT64_MAX if window is not below `windows` or
 * order is NULL. Cannot fail. */
TOKMAP_API uint64_t tokmap_order_draw(const struct tokmap_order *order, uint64_t window);

/* ---------------------------------------------------------------- run ------------------------------------------- */

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

enum tokmap_ordering {
    TOKMAP_SHUFFLE = 0,   /* the windows of each epoch, and the rows of each step, are permuted */
    TOKMAP_SEQUENTIAL = 1, /* windows are delivered in the order in which they are stored */
    TOKMAP_BLOCKS = 2     /* blocks of neighboring windows are permuted, and then the windows of every few blocks, for
                             storage that is fast only with long reads; the rows of each step are permuted */
};

/* A run of one source, made from arguments. The source is called "data". A run file with a source of that name and the
 * same values is the same run: cursors are interchangeable. */
struct tokmap_run_options {
    size_t size;                   /* sizeof(struct tokmap_run_options) */
    const char *data;              /* name of the dataset, as for tokmap_dataset_open() */
    uint64_t seq_len;              /* tokens of a sequence, 1 to 2^31 */
    uint64_t lookahead;            /* tokens that a window has beyond seq_len, 0 to 2^31; default: 1, so that each token
                                      has a target */
    uint64_t batch;                /* rows of a global batch, over all ranks, 1 (default) to 2^31 */
    uint64_t seed;                 /* default: 0 */
    enum tokmap_ordering ordering; /* TOKMAP_SHUFFLE (default) or TOKMAP_SEQUENTIAL; TOKMAP_BLOCKS needs a text */
    uint64_t steps;                /* the run ends after this many steps; default: TOKMAP_FOREVER */
    uint64_t passes;               /* the run ends after this many passes over the data; default: TOKMAP_FOREVER. Set at
                                      most one of steps and passes */
    enum tokmap_reading reading;   /* default: TOKMAP_READ_AUTO */
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
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_run_make(struct tokmap_run **run,
                                                                const struct tokmap_run_options *options,
                                                                struct tokmap_error *error);

/* Closes a run and its datasets. Accepts NULL. Close its loaders first. Cannot fail. */
TOKMAP_API void tokmap_run_close(struct tokmap_run *run);

struct tokmap_run_info {
    size_t size;         /* set by the caller: sizeof(struct tokmap_run_info) */
    uint64_t seq_len;    /* tokens of a sequence in the first phase */
    uint64_t lookahead;  /* tokens that a window has beyond seq_len */
    uint64_t batch;      /* rows of a global batch in the first phase */
    uint64_t seed;
    enum tokmap_ordering ordering;
    uint64_t sources;    /* that steps may draw: see tokmap_run_source() */
    uint64_t steps;      /* the run's step numbers are below this; TOKMAP_FOREVER if it has no end */
    uint64_t delivered;  /* the number of steps that are delivered, which is all but the skipped ones; TOKMAP_FOREVER if
                            the run has no end */
    uint64_t remainder;  /* of a run with `passes`: windows left over because they do not fill a global batch */
    uint64_t phases;     /* at least 1: see tokmap_run_phase() */
    uint64_t stride;     /* tokens from the beginning of a window to that of the next; 0: seq_len, in each phase */
    uint64_t batch_most; /* the largest batch of any phase */
    uint64_t seq_len_most; /* the largest seq_len of any phase */
    uint64_t pad_id;     /* the id with which rows are padded */
    uint32_t tail_pad;   /* 1: the end of each dataset, and the run's last step, are padded instead of left out */
    uint32_t warned;     /* 1: warning is not NULL */
    uint64_t blocks;     /* of TOKMAP_BLOCKS: windows of a block; otherwise 0 */
    uint64_t span;       /* of TOKMAP_BLOCKS: blocks whose windows are permuted together; otherwise 0 */
    uint64_t valid_last; /* rows of the last step that are not padding; 0 if the run has no end */
    uint64_t vocabulary; /* the largest vocabulary of the sources and validation sets; every id is below it */
    uint32_t width;      /* bytes of a token in a row: the largest width of the sources, 2 or 4 */
    const char *warning; /* a text that the user should read, valid until the run is closed; NULL: none. A source's
                            tokenizer is not known, or sources end their documents with different ids */
    uint64_t validations; /* lines `validation`: datasets that no step draws, which tokmap_run_evaluation() reads.
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
TOKMAP_API uint64_t tokmap_run_valid(const struct tokmap_run *run, uint64_t step);

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
 * tokmap_run_pieces() reports why.
 * Statuses: OK, ERROR_RANGE (the run does not have the step or the row), ERROR_IO or ERROR_TRUNCATED (the plan cannot
 * be read), ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_run_locate(const struct tokmap_run *run, uint64_t step,
                                                                  uint64_t row, struct tokmap_place *place,
                                                                  struct tokmap_error *error);

/* Tokens [first_token, first_token + tokens) of a source's dataset. After the dataset's last token they continue with
 * its first. */
struct tokmap_piece {
    uint64_t first_token;
    uint64_t tokens;
};

/* Reports what a row is made of: pieces[0] to pieces[*used - 1], one after another, and after them padding up to
 * seq_len + lookahead tokens. A window is one piece. A row of a plan is one piece for each of its segments, in their
 * order; the segments are whole documents, or parts of a document that is longer than a row. A padding row has none.
 *   place     from tokmap_run_locate() or tokmap_run_find() of this run
 *   pieces    receives the first `capacity` of them; NULL if the capacity is 0
 *   used      receives their number
 * Any thread may call it. Statuses: OK, ERROR_LIMIT (there are more than `capacity`: call it again with room for
 * *used), ERROR_CORRUPT (the plan contradicts itself), ERROR_IO or ERROR_TRUNCATED (it cannot be read),
 * ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_run_pieces(const struct tokmap_run *run,
                                                                  const struct tokmap_place *place,
                                                                  struct tokmap_piece *pieces, uint64_t capacity,
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
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status
tokmap_run_evaluation(struct tokmap_run **evaluation, const struct tokmap_run *run,
                      const struct tokmap_evaluation_options *options, struct tokmap_error *error);

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
 *     if (tokmap_run_check(run, &cursor, &e) == TOKMAP_ERROR_PAST)
 *         puts(e.message);                            // which kinds differ, and the lines of the run that set them
 *     printf("resumes at step %" PRIu64 "\n", cursor.step);
 * @endcode
 */
struct tokmap_cursor {
    uint64_t step;
    uint64_t tokens;      /* delivered before it, over all ranks: rows * seq_len, without skipped steps; UINT64_MAX if
                             the number is larger */
    uint64_t past[2];     /* fingerprint of the run restricted to the steps before `step` */
    uint32_t of[5];       /* fingerprints of its kinds: geometry, order (with the seed), batch, skips, data */
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
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_run_check(const struct tokmap_run *run,
                                                                 const struct tokmap_cursor *cursor,
                                                                 struct tokmap_error *error);

/* ---------------------------------------------------------------- loader ---------------------------------------- */

/* Delivers a run's rows to one rank. One thread at a time may call next(), wait(), rewind(), repartition(), reload(),
 * read(), flush(), and calls(); any thread may call stats(), source_stats(), rows(), elements(), and cu_seqlens() at
 * any time before the loader is closed, except during repartition() and reload(). A child after fork() cannot use it if
 * it has a thread of its own or a trace, or delivers to a GPU.
 *
 * The program at the top of this header shows a loader. To resume, and to read the rows without copying them:
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

enum tokmap_type { TOKMAP_I32 = 0, TOKMAP_I64 = 1 };

/* What options.alarm receives: how many of the last calls of next() had to wait. */
struct tokmap_stall {
    size_t size;        /* sizeof(struct tokmap_stall) */
    uint64_t step;      /* of the batch that the last of these calls delivered */
    uint64_t calls;     /* options.alarm_calls */
    uint64_t stalled;   /* how many of them found no filled slot */
    uint64_t wait_ns;   /* the sum of their waits */
};

struct tokmap_loader_options {
    size_t size;                 /* sizeof(struct tokmap_loader_options) */
    uint64_t rank, world;        /* 0 <= rank < world <= batch, in every phase from the loader's first step on; default:
                                    0 and 1 */
    uint64_t rows;               /* the largest number of rows in one call; 0 (default): the rank's whole slice of a
                                    global batch in one call */
    uint32_t fields;             /* TOKMAP_INPUTS | ...; default: inputs and targets; 0: pointers to rows (batch.rows)
                                    only */
    uint32_t threads;            /* 1 (default): a producer thread works ahead; 0: next() does the work itself */
    const char *resume;          /* text of a cursor to start from; NULL (default): from the start of the run. Not used
                                    after tokmap_loader_open() */
    const char *device;          /* where `out` points. NULL (default) or "cpu": to memory of this machine. "cuda:N": to
                                    memory of GPU N. "cuda": to that of the GPU of the calling thread's current CUDA
                                    context, or else GPU 0. See cuda.h. Not used after tokmap_loader_open() */
    uint64_t ring_bytes;         /* memory of the ring; 0 (default): the smaller of 64 MiB and 32 batches, but at least
                                    4 batches */
    uint32_t read_ahead;         /* how many windows are requested from the storage before they are needed, at most
                                    65536; 0 (default): the smaller of 128 windows and 16 MiB, but at least 8 windows */
    uint32_t unchecked;          /* 1: ids are not compared with the vocabulary, nor pages with their hashes; default:
                                    0 */
    uint32_t drop_behind;        /* 1: pages that were read leave the page cache, which implies pread; default: 0 */
    uint32_t mask_targets;       /* 1: out.targets[i][j] = TOKMAP_IGNORE where out.loss_mask[i][j] would be 0, and
                                    the same in out.targets_ahead. If the run has a mask or overlapping windows, targets
                                    need this or TOKMAP_LOSS_MASK, lest what does not count be trained on. So do inputs
                                    alone, or TOKMAP_LABELS, and also if rows can be padded; 1 then says that the
                                    program knows which count. Needs inputs, targets, or labels; default: 0 */
    const char *trace;           /* a file to which the loader appends 16 bytes for each step that next() has delivered
                                    completely: a proof of what it delivered, which `tokmap replay` checks. Each rank
                                    needs a file of its own; a file that exists is continued. NULL (default): none.
                                    Not used after tokmap_loader_open() */
    uint64_t deadline_ns;        /* a read of tokens or of a mask that takes longer is ERROR_TIMEOUT, which implies
                                    pread, on threads of the library that the loader does not wait for; 0 (default):
                                    reads have no deadline. It does not cover tokmap_loader_open() and document
                                    boundaries, which are read through a mapping */
    uint32_t io_threads;         /* how many threads, at most 256, read windows ahead where tokmap_loader_open() finds
                                    by a probe that the storage is slow: a read takes 1 ms or more; 0 (default): none,
                                    the kernel reads ahead */
    uint32_t alarm_percent;      /* see alarm; 1 to 100; 0 (default): 10 */
    uint32_t alarm_calls;        /* see alarm; 0 (default): 100 */
    /* Called when of alarm_calls calls of next(), one after another, alarm_percent percent or more had to wait, and of
     * the alarm_calls calls before them fewer had. The first call after opening is not counted, because the ring is
     * still empty. It is called by next(), in the caller's thread, when the batch is complete; it must not use the
     * loader, except for statistics. NULL (default): not called. Not with threads = 0, which has no waits. */
    void (*alarm)(void *user, const struct tokmap_stall *stall);
    void *alarm_user;            /* passed to alarm() */
    /* Called at the beginning and the end of what the loader does, for a profiler such as NVTX: "tokmap next" (a call
     * of next()) and in it "tokmap wait" (until a slot is filled), and on the producer thread "tokmap fill" (of one
     * slot). Ranges nest on each thread. The names are static. tests/examples/train_nvtx.c shows it. Set both or
     * neither; NULL (default): not called. */
    void (*range_push)(void *user, const char *name);
    void (*range_pop)(void *user);
    void *range_user;            /* passed to range_push() and range_pop() */
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
    size_t size;           /* sizeof(struct tokmap_out) */
    enum tokmap_type type; /* of the elements of all fields but rows and cu_seqlens; default: TOKMAP_I32 */
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
#define TOKMAP_OUT_INIT {sizeof(struct tokmap_out), TOKMAP_I32, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL}

/* What next() delivered. Its pointers are valid until the next call of next(), wait(), rewind(), or read() on the
 * loader, or until it is closed. Initialize it with TOKMAP_BATCH_INIT; the same struct serves all calls. */
struct tokmap_batch {
    size_t size;                     /* set by the caller: sizeof(struct tokmap_batch); not changed */
    uint64_t step;
    uint64_t first_row;              /* number of the first of these rows in the global batch */
    uint64_t count;                  /* rows in this batch; 0 is possible where the ranks' slices differ in size */
    uint64_t tokens;                 /* count * seq_len */
    int last_in_step;                /* 1: this is the step's last batch on this rank */
    uint32_t width;                  /* bytes of a token in rows[]: 2 or 4 */
    uint64_t row_tokens;             /* tokens of a row in rows[]: seq_len + lookahead */
    const void *const *rows;         /* `count` pointers to rows in host memory, each aligned to 16 bytes */
    const struct tokmap_place *places; /* `count` places: which window each row contains */
    struct tokmap_cursor cursor;     /* the state after this batch: what to save */
    /* The following members are 0 unless the loader was opened with TOKMAP_CU_SEQLENS. */
    uint64_t documents;              /* documents in cu_seqlens, whose elements 0 to `documents` are all different; 0 if
                                        count is 0 */
    uint64_t max_seqlen;             /* tokens of the longest of these documents */
    /* The following members are always set. */
    uint64_t seq_len;                /* tokens of a sequence: that of the step's phase */
    uint64_t valid;                  /* rows that contain data: rows 0 to valid - 1. The others are padding, at the end
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
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_loader_reload(struct tokmap_loader *loader,
                                                                     const struct tokmap_run *run,
                                                                     struct tokmap_error *error);

/* Delivers chosen rows instead of the next ones: in this order, row rows[i] of the global batch of steps[i], for i <
 * count, of any rank. It works only for loaders on the host with threads = 0. The position of the loader in the run
 * does not change. Of *batch, step and first_row are those of the first row, last_in_step is 0, and cursor is the
 * loader's; valid counts the rows that contain data, wherever they are. After a failure all members of *batch but size
 * are 0.
 *   count   0 to tokmap_loader_rows()
 *   out, batch  as in tokmap_loader_next()
 * Statuses: OK, ERROR_RANGE (the run does not have the row or the step, or the steps have rows of different seq_len),
 * ERROR_LIMIT (count is larger than tokmap_loader_rows()), ERROR_IO, ERROR_TRUNCATED, ERROR_CORRUPT, ERROR_TOKEN,
 * ERROR_TIMEOUT, ERROR_ARGUMENT (among others, the process was forked), ERROR_MEMORY. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_loader_read(struct tokmap_loader *loader, const uint64_t *steps,
                                                                   const uint64_t *rows, uint64_t count,
                                                                   const struct tokmap_out *out,
                                                                   struct tokmap_batch *batch,
                                                                   struct tokmap_error *error);

/* Returns the largest batch.count of any call, in any phase of the run; 0 for NULL. Cannot fail. */
TOKMAP_API uint64_t tokmap_loader_rows(const struct tokmap_loader *loader);

/* Returns the largest batch.count * batch.seq_len of any call, in any phase of the run, for which `out` must have room;
 * 0 for NULL. Cannot fail. */
TOKMAP_API uint64_t tokmap_loader_elements(const struct tokmap_loader *loader);

/* Returns the number of calls of next() in the next step, which is the same on every rank: the step of which next()
 * delivers rows next, or, after the run's end, its last one. It changes only where a phase changes the batch. Returns 0
 * for NULL. Only the thread that calls next() may call it. Cannot fail. */
TOKMAP_API uint64_t tokmap_loader_calls(const struct tokmap_loader *loader);

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
    size_t size;                /* set by the caller: sizeof(struct tokmap_stats) */
    uint64_t batches;           /* delivered */
    uint64_t rows;              /* delivered */
    uint64_t tokens;            /* delivered: rows * seq_len */
    uint64_t bytes;             /* of tokens copied into the ring */
    uint64_t cold_reads;        /* windows that were not in the page cache when they were needed, as far as the kernel
                                   was asked and reports it: once nearly all are, pread() asks for one in 16 */
    uint64_t epoch;             /* the largest epoch delivered */
    uint64_t ring_bytes;        /* memory of the ring */
    uint32_t ring_slots;        /* batches that the ring holds */
    uint32_t ring_ready;        /* slots that are filled and not yet taken */
    uint32_t ring_ready_lowest; /* the smallest ring_ready that next() found since the ring was full, after the loader
                                   was opened or rewound */
    enum tokmap_reading reading; /* TOKMAP_READ_MAPPED or TOKMAP_READ_PREAD */
    uint64_t waits;             /* calls of next() that found no filled slot; always 0 with threads = 0 */
    uint64_t wait_ns;           /* the sum of their waits */
    uint64_t wait_ns_largest;   /* the longest of their waits */
    uint64_t wait_histogram[TOKMAP_WAIT_BUCKETS]; /* calls of next() by wait: bucket 0 counts waits of 0 ns, bucket b
                                                     those of 2^(b-1) ns to below 2^b ns */
    uint64_t host_expanded;     /* batches for a GPU that the host expanded, because the kernel could not be loaded */
    uint64_t late_copies;       /* calls of next() that found the batch still on its way to the GPU */
    uint64_t device_bytes;      /* GPU memory that the loader holds */
    uint64_t timeouts;          /* reads that took longer than options.deadline_ns */
    uint64_t io_threads;        /* threads that read tokens, besides the producer */
    uint64_t io_reads;          /* windows that they had read, or were reading, when the producer needed them */
    uint64_t probe_ns;          /* how long the read of the probe took; 0 without options.io_threads */
    uint64_t padding;           /* rows of padding among `rows` */
    uint64_t alarms;            /* calls of options.alarm */
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
    size_t size;         /* set by the caller: sizeof(struct tokmap_source_stats) */
    const char *name;    /* of the source; valid until the run is closed */
    uint64_t rows;       /* delivered */
    uint64_t tokens;     /* of data delivered as inputs: rows * seq_len, less in rows that end with padding */
    uint64_t epoch;      /* the largest epoch delivered; 0 before the first row */
    uint64_t bytes;      /* of tokens copied into the ring */
    uint64_t draws;      /* rows of all ranks in all steps of the run before the current one, since step 0 */
    uint64_t windows;    /* rows of one epoch; draws / windows is the number of epochs so far, where seq_len does not
                            change */
};

/* Fills *stats for source number `source` of the run, from 0. Any thread may call it while another thread is in next().
 * Statuses: OK, ERROR_RANGE (the run does not have the source), ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_loader_source_stats(const struct tokmap_loader *loader,
                                                                           uint64_t source,
                                                                           struct tokmap_source_stats *stats);

/* Writes the statistics of a loader and its sources in the text format of Prometheus (version 0.0.4), for the program's
 * own /metrics page or a textfile collector. All names begin with tokmap_loader_; every sample has the label rank.
 *
 * @code
 *     char text[65536];
 *     size_t bytes;
 *     if (tokmap_stats_prometheus(loader, "loader=\"train\"", text, sizeof text, &bytes) == TOKMAP_OK)
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
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_stats_prometheus(const struct tokmap_loader *loader,
                                                                        const char *labels, char *text,
                                                                        size_t capacity, size_t *bytes);

/* ---------------------------------------------------------------- arrays for others ----------------------------- */

/* Deleters for tensors that a program exports through DLPack (dlpack.h) while it keeps the memory: the first for a
 * DLManagedTensor, the second for a DLManagedTensorVersioned. They set *(uint32_t *)manager_ctx to 1, with release
 * ordering. The owner reads that flag, and may reuse the memory once it is set. They take no lock, allocate nothing,
 * and call nothing, so a tensor may be freed in any state: while a Python exception propagates, in a signal handler, or
 * while the program exits. Any thread may call them. NULL is ignored. Cannot fail. */
TOKMAP_API void tokmap_dlpack_deleted(void *tensor);
TOKMAP_API void tokmap_dlpack_deleted_versioned(void *tensor);

#ifdef __cplusplus
}
#endif
#endif
