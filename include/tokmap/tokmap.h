/*
 * tokmap.h - datasets of token ids, runs over them, and the loader that feeds a training program
 *
 * A dataset is one or more shards (NAME.bin, tokens and nothing else, with NAME.tmx, their index) seen as one token
 * address space. A run is a short text that says what a training run reads. A loader delivers the run's rows to one
 * rank, step after step. Everything that a run delivers is arithmetic over its text and the datasets' contents: there
 * is no index to build, no worker process, and a cursor of one line resumes it exactly, on any number of ranks.
 *
 * What an operator should know first
 *   - Files that a dataset has open must not be changed while it is open. A shard is replaced by renaming a new one
 *     over it (what `tokmap pack --force` does): the open dataset then goes on reading the old one.
 *   - tokmap_dataset_view() gives pointers into a file mapping. If the file is cut shorter under it, or its storage
 *     fails, touching such a pointer raises SIGBUS in the caller. tokmap_dataset_copy(), and with TOKMAP_READ_PREAD
 *     tokmap_loader_next() and tokmap_loader_read(), report both as a status. With TOKMAP_READ_MAPPED, which
 *     TOKMAP_READ_AUTO may choose, a page is populated before its first use and the file's size is compared once a
 *     batch, so what is left is a cut between that look and the copy.
 *   - The index (.tmx) is read through a mapping for document boundaries; the same caution holds for it.
 *   - Little-endian machines only. Linux only.
 *
 * Rules that hold for every function here
 *   - The result is an enum tokmap_status, 0 (TOKMAP_OK) is success. Where a `struct tokmap_error *error` is taken it
 *     may be NULL; on failure it holds the status, the system's error number, the file, the position and a sentence
 *     that says what to do. On success it is left as it was. On failure an output handle is set to NULL.
 *   - The library never prints, never exits, never aborts, installs no signal handler and starts no process.
 *   - Close functions accept NULL.
 *   - Structs that begin with `size` can grow, always behind their last member and never into its padding: set it to
 *     sizeof, or use the _INIT macro. A size smaller than the library's is an older caller's struct and is served; a
 *     larger one is TOKMAP_ERROR_ARGUMENT.
 *   - Any function may return TOKMAP_ERROR_ARGUMENT (a NULL or out-of-range argument) and TOKMAP_ERROR_MEMORY.
 */
#ifndef TOKMAP_TOKMAP_H
#define TOKMAP_TOKMAP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TOKMAP_VERSION_MAJOR 0
#define TOKMAP_VERSION_MINOR 1
#define TOKMAP_VERSION_PATCH 0
#define TOKMAP_VERSION_STRING "0.1.0"

#if defined(__GNUC__)
#define TOKMAP_API __attribute__((visibility("default")))
#define TOKMAP_MUST_CHECK __attribute__((warn_unused_result))
#else
#define TOKMAP_API
#define TOKMAP_MUST_CHECK
#endif

/* ---------------------------------------------------------------- status and error ---------------------------- */

/* The one list of statuses: name, number, meaning. Numbers never change; new ones are added at the end. */
#define TOKMAP_STATUS_MAP(XX)                                                                                          \
    XX(OK, 0, "success")                                                                                               \
    XX(END, 1, "the run is at its end")                                                                                \
    XX(ERROR_ARGUMENT, 2, "an argument is missing or out of range")                                                    \
    XX(ERROR_MEMORY, 3, "out of memory")                                                                               \
    XX(ERROR_IO, 4, "the system refused or failed an operation on a file")                                             \
    XX(ERROR_NOT_FOUND, 5, "no such file, dataset, source or item")                                                    \
    XX(ERROR_EXISTS, 6, "the output exists already")                                                                   \
    XX(ERROR_BUSY, 7, "another process is writing this output")                                                        \
    XX(ERROR_FORMAT, 8, "not a file of the expected format")                                                           \
    XX(ERROR_VERSION, 9, "the file was written for a newer major version of the format")                               \
    XX(ERROR_CORRUPT, 10, "the content of a file contradicts its checksums or itself")                                 \
    XX(ERROR_TRUNCATED, 11, "a file is shorter or longer than its index or header says")                               \
    XX(ERROR_MISMATCH, 12, "files that must agree with each other do not")                                             \
    XX(ERROR_RANGE, 13, "a number lies outside what the dataset or the run has")                                       \
    XX(ERROR_RUN, 14, "the text of the run is wrong")                                                                  \
    XX(ERROR_CURSOR, 15, "the text is not a cursor")                                                                   \
    XX(ERROR_PAST, 16, "the run's past is not the one that the cursor stands on")                                      \
    XX(ERROR_TOKEN, 17, "a token id is not in the vocabulary")                                                         \
    XX(ERROR_INPUT, 18, "a record of the input is wrong")                                                              \
    XX(ERROR_ENCODING, 19, "the input is not valid UTF-8")                                                             \
    XX(ERROR_LIMIT, 20, "a size is over its limit")                                                                    \
    XX(ERROR_INTERRUPTED, 21, "interrupted by the caller")                                                             \
    XX(ERROR_UNSUPPORTED, 22, "this build or this version cannot do that")                                             \
    XX(ERROR_INTERNAL, 23, "a fault in tokmap itself")                                                                 \
    XX(ERROR_DEVICE, 24, "the GPU or its driver failed an operation")                                                  \
    XX(ERROR_NO_DEVICE, 25, "no such GPU, or no usable driver")

enum tokmap_status {
#define TOKMAP_STATUS_ENUM(name, number, text) TOKMAP_##name = number,
    TOKMAP_STATUS_MAP(TOKMAP_STATUS_ENUM)
#undef TOKMAP_STATUS_ENUM
};

#define TOKMAP_NO_OFFSET UINT64_MAX

/* What went wrong. Owned by the caller; a function that fails fills all of it. */
struct tokmap_error {
    enum tokmap_status status;
    int system;        /* errno of the failing system call, or 0 */
    int device;        /* CUDA result code, or 0 */
    uint32_t line;     /* line of a run file, manifest or JSONL input, from 1; 0 if none */
    uint64_t offset;   /* byte offset in the file, or TOKMAP_NO_OFFSET */
    char path[512];    /* the file, "" if none; a longer path keeps its end, after "..." */
    char message[768]; /* one sentence or two: what is wrong, and what to do. Does not repeat path, line and offset */
};

/* The name of a status as in TOKMAP_STATUS_MAP ("ERROR_RANGE"), and its meaning; "unknown" for other numbers.
 * The text is static. Any thread. Cannot fail. */
TOKMAP_API const char *tokmap_status_name(enum tokmap_status status);
TOKMAP_API const char *tokmap_status_text(enum tokmap_status status);

/* Writes "path:line: message (offset N; system text)" of an error into text[capacity], cut to fit, always terminated.
 * Any thread. Returns text; cannot fail. */
TOKMAP_API const char *tokmap_error_print(const struct tokmap_error *error, char *text, size_t capacity);

/* TOKMAP_VERSION_STRING of the library that is running. Static. Cannot fail. */
TOKMAP_API const char *tokmap_version(void);

/* ---------------------------------------------------------------- dataset -------------------------------------- */

/* A dataset. Immutable once open: any number of threads may use it at once. After fork() the child may use it too. */
struct tokmap_dataset;

/* How token bytes are read. */
enum tokmap_reading {
    TOKMAP_READ_AUTO = 0,   /* mapped if the file system is local and the dataset fits half of the memory (and of the
                               control group's), else pread */
    TOKMAP_READ_MAPPED = 1, /* from a shared mapping whose pages are populated before their first use; until then, and
                               while they are not in the page cache, by pread */
    TOKMAP_READ_PREAD = 2   /* by pread: memory use does not grow with the dataset, every failure is a status */
};

struct tokmap_dataset_options {
    size_t size;                 /* sizeof(struct tokmap_dataset_options) */
    enum tokmap_reading reading; /* TOKMAP_READ_AUTO */
};
#define TOKMAP_DATASET_OPTIONS_INIT {sizeof(struct tokmap_dataset_options), TOKMAP_READ_AUTO}

#define TOKMAP_NO_ID UINT64_MAX

/* What the name of a dataset begins with that is arithmetic instead of files: see tokmap_dataset_open(). */
#define TOKMAP_SYNTHETIC "synthetic:"

struct tokmap_dataset_info {
    size_t size;                 /* in: sizeof; out: what was filled */
    uint64_t tokens;
    uint64_t documents;
    uint64_t shards;
    uint32_t width;              /* bytes a token: 2 or 4 */
    enum tokmap_reading reading; /* how loaders read it, after AUTO was resolved */
    uint64_t vocabulary;         /* number of ids of the tokenizer, specials included: every id is below it */
    uint64_t largest_id;         /* the largest id present, 0 for no tokens */
    uint64_t eod_id;             /* the id that ends a document, or TOKMAP_NO_ID */
    uint64_t bos_id;             /* the id that begins a document, or TOKMAP_NO_ID */
    uint8_t content[16];         /* content id of the dataset (see FORMAT.md, identity) */
    uint8_t tokenizer[16];       /* fingerprint of the tokenizer; all zero if unknown */
};

/* One shard of a dataset. Pointers live as long as the dataset. */
struct tokmap_shard_info {
    size_t size;
    const char *index_path;
    const char *tokens_path;
    uint64_t first_token;    /* in the dataset's address space */
    uint64_t tokens;
    uint64_t first_document;
    uint64_t documents;
    uint64_t index_bytes;
    uint64_t blocks;         /* hashed blocks of 1 MiB of tokens, the last one perhaps shorter */
    uint8_t content[16];
    const char *about;       /* JSON, `about_bytes` long, not zero-terminated; its hash has been checked */
    uint64_t about_bytes;
};

/* Consecutive tokens in the mapping of one shard. Little-endian uint16_t or uint32_t, as the dataset's width says. The
 * pointer lives as long as the dataset, must not be written through, and is aligned to the width, no more. */
struct tokmap_span {
    const void *tokens;
    uint64_t count;
};

struct tokmap_document {
    uint64_t number;      /* in the dataset */
    uint64_t first_token; /* in the dataset's address space */
    uint64_t tokens;      /* may be 0 */
    uint64_t shard;
};

/* Where a document came from. Pointers live as long as the dataset. */
struct tokmap_origin {
    const char *path;    /* the input file as it was named to `tokmap pack`; "-" for standard input. Not terminated: */
    uint64_t path_bytes; /* its length */
    uint64_t record;     /* number of the record in that file from 0: for JSONL the line, for text always 0 */
};

/* Opens a dataset.
 *   name     a prefix ("data/web" for data/web.bin and data/web.tmx; either file's full name will do), a directory (all
 *            .tmx below it, in byte order of path), or a manifest (a text file whose first line is "tokmap-shards 1",
 *            then one prefix a line, relative to the manifest's folder); or no file at all, but arithmetic:
 *            "synthetic:vocab=50257", with ",tokens=N" ",document=N" (their average length) ",width=2|4" ",seed=N" as
 *            wanted, defined in src/run/RUN.md: the same shapes without data. It has no shards, no origins and no views
 *            (TOKMAP_ERROR_UNSUPPORTED); all else holds for it
 *   options  NULL for the defaults
 * Cost: O(shards), a few KiB read of each, whatever their size. Checks all that can be checked so: magic, version,
 * header, table and shard-section hashes, bounds, the lengths of both files. tokmap_dataset_verify() checks the rest.
 * Statuses: OK, ERROR_NOT_FOUND, ERROR_IO, ERROR_FORMAT, ERROR_VERSION, ERROR_CORRUPT, ERROR_TRUNCATED, ERROR_MISMATCH
 * (shards of different width or tokenizer), ERROR_LIMIT, ERROR_UNSUPPORTED, ERROR_ARGUMENT, ERROR_MEMORY. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_dataset_open(struct tokmap_dataset **dataset, const char *name,
                                                                    const struct tokmap_dataset_options *options,
                                                                    struct tokmap_error *error);

/* Closes a dataset; all pointers into it end. No other thread may be using it. Cannot fail. */
TOKMAP_API void tokmap_dataset_close(struct tokmap_dataset *dataset);

/* What a dataset holds. Statuses: OK, ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_dataset_info(const struct tokmap_dataset *dataset,
                                                                    struct tokmap_dataset_info *info);

/* What shard `shard` (from 0) holds. Reads its about section, checking the hash.
 * Statuses: OK, ERROR_RANGE, ERROR_CORRUPT, ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_dataset_shard(const struct tokmap_dataset *dataset,
                                                                     uint64_t shard, struct tokmap_shard_info *info,
                                                                     struct tokmap_error *error);

/* Tokens [first, first + count) without copying: fills spans[0..*used), in order, one for each shard touched.
 *   capacity  of spans; 1 does inside one shard, 2 unless shards are shorter than count
 *   used      spans filled; on ERROR_LIMIT the number that would be needed
 * Maps a shard's tokens on first use. See the caution on SIGBUS above.
 * Statuses: OK, ERROR_RANGE, ERROR_LIMIT (capacity too small), ERROR_IO (mapping failed), ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_dataset_view(const struct tokmap_dataset *dataset,
                                                                    uint64_t first, uint64_t count,
                                                                    struct tokmap_span *spans, size_t capacity,
                                                                    size_t *used, struct tokmap_error *error);

/* Copies tokens [first, first + count) to out (count * width bytes) with pread: never a signal.
 * Statuses: OK, ERROR_RANGE, ERROR_IO, ERROR_TRUNCATED, ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_dataset_copy(const struct tokmap_dataset *dataset,
                                                                    uint64_t first, uint64_t count, void *out,
                                                                    struct tokmap_error *error);

/* Document `number`; the document that holds token `token` (never an empty one). O(log documents of the shard).
 * Statuses: OK, ERROR_RANGE, ERROR_CORRUPT (the documents section contradicts itself there), ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_dataset_document(const struct tokmap_dataset *dataset,
                                                                        uint64_t number,
                                                                        struct tokmap_document *document,
                                                                        struct tokmap_error *error);
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_dataset_document_at(const struct tokmap_dataset *dataset,
                                                                           uint64_t token,
                                                                           struct tokmap_document *document,
                                                                           struct tokmap_error *error);

/* Where document `number` came from.
 * Statuses: OK, ERROR_RANGE, ERROR_NOT_FOUND (the index holds no origin), ERROR_CORRUPT, ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_dataset_origin(const struct tokmap_dataset *dataset,
                                                                      uint64_t number, struct tokmap_origin *origin,
                                                                      struct tokmap_error *error);

struct tokmap_verify_options {
    size_t size;
    uint32_t threads; /* 0: one for each processor this process may use */
    /* Called for each fault found, by one thread at a time, in no fixed order: path, offset (first byte of the faulty
     * block or section) and message say which. Return 0 to go on, else verify ends with ERROR_INTERRUPTED. */
    int (*fault)(void *user, const struct tokmap_error *error);
    /* Called now and then with the bytes read so far and in all, by one thread at a time. Return as above. */
    int (*progress)(void *user, uint64_t done, uint64_t total);
    void *user;
};
#define TOKMAP_VERIFY_OPTIONS_INIT {sizeof(struct tokmap_verify_options), 0, NULL, NULL, NULL}

struct tokmap_verify_result {
    size_t size;
    uint64_t bytes;  /* read and hashed */
    uint64_t blocks; /* of tokens */
    uint64_t faults;
};

/* Reads every byte of every shard: section hashes, block hashes, order and bounds of documents and origin, content ids,
 * the largest id, zero padding. Goes on after a fault to find them all. result and options may be NULL. A dataset that
 * is read through mappings is verified through them where that is faster, under the caution on SIGBUS above.
 * Statuses: OK (all sound), ERROR_CORRUPT (faults were found; error holds the first by position), ERROR_IO,
 * ERROR_TRUNCATED, ERROR_INTERRUPTED, ERROR_ARGUMENT, ERROR_MEMORY. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_dataset_verify(const struct tokmap_dataset *dataset,
                                                                      const struct tokmap_verify_options *options,
                                                                      struct tokmap_verify_result *result,
                                                                      struct tokmap_error *error);

/* ---------------------------------------------------------------- order ----------------------------------------- */

/* The order in which the windows of one epoch of one source are drawn: a keyed bijection on [0, windows), computed in
 * O(1) time and memory. Frozen: an update of tokmap never changes it (src/order/permutation.c holds the definition).
 * A plain value: copy it freely, use it from any thread. */
struct tokmap_order {
    uint64_t state[12];
};

/* windows 1 .. 2^63, any seed, any epoch; source: the source's name ("data" for a run made from arguments), any length.
 * Statuses: OK, ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_order_init(struct tokmap_order *order, uint64_t windows,
                                                                  uint64_t seed, const char *source, uint64_t epoch);
/* The window of draw `draw`, and the draw of window `window`; both below `windows`, else UINT64_MAX. Cannot fail. */
TOKMAP_API uint64_t tokmap_order_window(const struct tokmap_order *order, uint64_t draw);
TOKMAP_API uint64_t tokmap_order_draw(const struct tokmap_order *order, uint64_t window);

/* ---------------------------------------------------------------- run ------------------------------------------- */

/* A run with its datasets open. Immutable: any number of threads may use it. Must outlive the loaders opened on it. */
struct tokmap_run;

#define TOKMAP_FOREVER UINT64_MAX

enum tokmap_ordering { TOKMAP_SHUFFLE = 0, TOKMAP_SEQUENTIAL = 1 };

/* A run of one source, made from arguments. The source is called "data". */
struct tokmap_run_options {
    size_t size;
    const char *data;              /* dataset: prefix, directory, manifest or "synthetic:..." */
    uint64_t seq_len;              /* 1 .. 2^31 */
    uint64_t lookahead;            /* 0 .. 2^31; 1 gives targets */
    uint64_t batch;                /* rows of a global batch, 1 .. 2^31 */
    uint64_t seed;
    enum tokmap_ordering ordering;
    uint64_t steps;                /* end of the run, or TOKMAP_FOREVER */
    uint64_t passes;               /* end after this many passes, or TOKMAP_FOREVER; not both */
    enum tokmap_reading reading;
};
#define TOKMAP_RUN_OPTIONS_INIT                                                                                        \
    {                                                                                                                  \
        sizeof(struct tokmap_run_options), NULL, 0, 1, 1, 0, TOKMAP_SHUFFLE, TOKMAP_FOREVER, TOKMAP_FOREVER,           \
            TOKMAP_READ_AUTO                                                                                           \
    }

/* Opens the run described by the file `path`; paths in it are relative to its folder. The grammar is in FORMAT.md's
 * sibling src/run/RUN.md and in the man page tokmap-run(5).
 * Statuses: OK, ERROR_RUN (with line), ERROR_RANGE (a sequence longer than the dataset, a run past 2^63 draws),
 * those of tokmap_dataset_open(). */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_run_open(struct tokmap_run **run, const char *path,
                                                                struct tokmap_error *error);
/* The same from text in memory (zero-terminated); paths in it are relative to `folder`, NULL for the current one.
 * Statuses: as tokmap_run_open(). */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_run_parse(struct tokmap_run **run, const char *text,
                                                                 const char *folder, struct tokmap_error *error);
/* The same from arguments. Statuses: as tokmap_run_open(), without ERROR_RUN. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_run_make(struct tokmap_run **run,
                                                                const struct tokmap_run_options *options,
                                                                struct tokmap_error *error);
/* Closes a run and its datasets. Its loaders must be closed before. Cannot fail. */
TOKMAP_API void tokmap_run_close(struct tokmap_run *run);

struct tokmap_run_info {
    size_t size;
    uint64_t seq_len;
    uint64_t lookahead;
    uint64_t batch;      /* rows of a global batch in the first phase */
    uint64_t seed;
    enum tokmap_ordering ordering;
    uint64_t sources;
    uint64_t steps;      /* step numbers of the run are below this; TOKMAP_FOREVER if it has no end */
    uint64_t delivered;  /* steps that are delivered: steps less the skipped ones; TOKMAP_FOREVER if it has no end */
    uint64_t remainder;  /* with `passes`: windows that are left over because they fill no whole global batch */
};
/* Statuses: OK, ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_run_info(const struct tokmap_run *run,
                                                                struct tokmap_run_info *info);

struct tokmap_source_info {
    size_t size;
    const char *name;                     /* lives as long as the run */
    const struct tokmap_dataset *dataset; /* likewise */
    uint64_t windows;                     /* of one epoch */
    uint64_t tail;                        /* tokens of one epoch that lie in no window's stride: tokens - windows * seq_len */
};
/* Statuses: OK, ERROR_RANGE, ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_run_source(const struct tokmap_run *run, uint64_t source,
                                                                  struct tokmap_source_info *info);

/* Whether `step` is delivered: 1 if it is below the run's end and not skipped, else 0. Cannot fail. */
TOKMAP_API int tokmap_run_delivers(const struct tokmap_run *run, uint64_t step);
/* Rows of the global batch of a step (its phase's batch), 0 past the end of the run. Cannot fail. */
TOKMAP_API uint64_t tokmap_run_rows(const struct tokmap_run *run, uint64_t step);

/* What one row of one step holds. */
struct tokmap_place {
    uint64_t step;
    uint64_t row;         /* in the global batch */
    uint64_t draw;        /* over the whole run */
    uint64_t source;
    uint64_t epoch;       /* of the source, from 0 */
    uint64_t window;      /* in the epoch */
    uint64_t first_token; /* in the source's dataset. The window holds `tokens` tokens from here, taken modulo */
    uint64_t tokens;      /* the dataset's: seq_len + lookahead */
};

/* Which window row `row` of step `step` shows. O(1), no file is read. Skipped steps have places too (they are what the
 * step would have shown); ask tokmap_run_delivers().
 * Statuses: OK, ERROR_RANGE (row or step not in the run), ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_run_locate(const struct tokmap_run *run, uint64_t step,
                                                                  uint64_t row, struct tokmap_place *place,
                                                                  struct tokmap_error *error);

/* The way back: calls found() for every delivered row of steps [first_step, end_step) whose window holds any of the
 * tokens [first_token, first_token + count) of a source's dataset, in order of epoch and window. Return 0 from found() to
 * go on, else the search ends with ERROR_INTERRUPTED. end_step may be TOKMAP_FOREVER only if the run has an end.
 * A document's rows: its first_token and tokens.
 * Statuses: OK, ERROR_RANGE, ERROR_INTERRUPTED, ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status
tokmap_run_find(const struct tokmap_run *run, uint64_t source, uint64_t first_token, uint64_t count,
                uint64_t first_step, uint64_t end_step, int (*found)(void *user, const struct tokmap_place *place),
                void *user, struct tokmap_error *error);

/* ---------------------------------------------------------------- cursor ---------------------------------------- */

/* Bytes that hold any cursor's text, its terminating zero included. */
#define TOKMAP_CURSOR_TEXT 160

/* The exact resume state: the next step to deliver, and a fingerprint of the past it stands on. A plain value. The same
 * on every rank. Inside a step it is that step. */
struct tokmap_cursor {
    uint64_t step;
    uint64_t tokens;      /* delivered before it, over all ranks: rows * seq_len; skipped steps left out. UINT64_MAX if
                             they are more */
    uint64_t past[2];     /* fingerprint of the run restricted to the steps before `step` */
    uint32_t of[5];       /* its kinds: geometry, seed and order, batch, skips, data */
};

/* One line without newline: tokmap1 step=.. tokens=.. past=.. of=.. ; "" for a NULL cursor. Any thread. Cannot fail. */
TOKMAP_API void tokmap_cursor_print(const struct tokmap_cursor *cursor, char text[TOKMAP_CURSOR_TEXT]);
/* Reads such a line (white space around it is ignored). Statuses: OK, ERROR_CURSOR, ERROR_VERSION, ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_cursor_parse(struct tokmap_cursor *cursor, const char *text,
                                                                    struct tokmap_error *error);
/* The cursor of a run at the start of a step; steps 0 .. the run's end. Of a skipped step it is the cursor of the next
 * one that is delivered, or of the run's end.
 * Statuses: OK, ERROR_RANGE, ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_run_cursor(const struct tokmap_run *run, uint64_t step,
                                                                  struct tokmap_cursor *cursor,
                                                                  struct tokmap_error *error);
/* Whether the run's past before cursor->step is the one that the cursor stands on. The error names each kind that
 * differs and the lines of the run that say it.
 * Statuses: OK, ERROR_PAST, ERROR_RANGE (past the run's end), ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_run_check(const struct tokmap_run *run,
                                                                 const struct tokmap_cursor *cursor,
                                                                 struct tokmap_error *error);

/* ---------------------------------------------------------------- loader ---------------------------------------- */

/* Delivers a run's rows to one rank. One thread at a time may call next(); stats() may be called from any thread at any
 * time. Not usable in a child after fork() if it has a producer thread or delivers to a GPU. */
struct tokmap_loader;

/* What next() delivers. Combine with |. All but TOKMAP_ROWS and TOKMAP_CU_SEQLENS are arrays [row][j] with j < seq_len.
 * A document that holds no token is nowhere. The token that ends a document belongs to it. The window's first token and
 * the dataset's first (the seam) begin a document wherever they lie. */
enum {
    TOKMAP_INPUTS = 1 << 0,       /* out.inputs[i][j]  = token j of row i */
    TOKMAP_TARGETS = 1 << 1,      /* out.targets[i][j] = token j + 1 of row i; needs lookahead >= 1 */
    TOKMAP_POSITION_IDS = 1 << 2, /* out.position_ids[i][j] = distance of token j from the later of the window's start and
                                     the start of its document */
    TOKMAP_ROWS = 1 << 3,         /* out.rows: seq_len + lookahead tokens of each row, in the dataset's width */
    TOKMAP_DOCUMENT_IDS = 1 << 4, /* out.document_ids[i][j] = documents that start at tokens 1 .. j of row i: 0 for the one
                                     that the row begins with */
    TOKMAP_LOSS_MASK = 1 << 5,    /* out.loss_mask[i][j] = 0 where token j + 1 starts a document, so that target j lies in
                                     another than token j, else 1; needs lookahead >= 1 */
    TOKMAP_CU_SEQLENS = 1 << 6    /* out.cu_seqlens, batch.documents and batch.max_seqlen: where the documents of the whole
                                     batch begin and end, as attention over sequences of different lengths takes them */
};

/* What a target that does not count is with options.mask_targets: what PyTorch's cross_entropy ignores by itself. */
#define TOKMAP_IGNORE (-100)

enum tokmap_type { TOKMAP_I32 = 0, TOKMAP_I64 = 1 };

struct tokmap_loader_options {
    size_t size;
    uint64_t rank, world;        /* 0 <= rank < world <= batch */
    uint64_t rows;               /* rows a call, at most; 0: the rank's whole slice of a global batch in one call */
    uint32_t fields;             /* TOKMAP_INPUTS | ...; 0: row pointers only (batch.rows) */
    uint32_t threads;            /* 1: a producer thread works ahead; 0: next() does the work itself */
    const char *resume;          /* text of a cursor, or NULL: from the start */
    const char *device;          /* where `out` points: NULL or "cpu": this machine's memory; "cuda:N": GPU N; "cuda": that
                                    of the calling thread's current CUDA context, else GPU 0. See cuda.h. Not used after
                                    tokmap_loader_open() */
    uint64_t ring_bytes;         /* memory of the ring; 0: 64 MiB or 32 batches, the smaller, and 4 batches at least */
    uint32_t read_ahead;         /* windows whose bytes are asked of the storage before they are needed; 0: 128 windows
                                    or 16 MiB, the smaller, and 8 at least */
    uint32_t unchecked;          /* 1: do not compare ids with the vocabulary */
    uint32_t drop_behind;        /* 1: tell the kernel to drop pages that were read (pread only) */
    uint32_t mask_targets;       /* 1: out.targets[i][j] = TOKMAP_IGNORE where out.loss_mask[i][j] would be 0; needs
                                    TOKMAP_TARGETS */
};
#define TOKMAP_LOADER_OPTIONS_INIT                                                                                     \
    {                                                                                                                  \
        sizeof(struct tokmap_loader_options), 0, 1, 0, TOKMAP_INPUTS | TOKMAP_TARGETS, 1, NULL, NULL, 0, 0, 0, 0, 0    \
    }

/* Where next() writes. The memory is the caller's, on the loader's device; each pointer asked for in `fields` holds at
 * least tokmap_loader_rows() rows of seq_len elements (out.rows: of (seq_len + lookahead) * width bytes; out.cu_seqlens:
 * tokmap_loader_cu_seqlens() elements). On the host any alignment will do; on a GPU that of the elements must hold, and
 * that of 16 bytes is fastest. Pointers that are not asked for are not looked at. */
struct tokmap_out {
    size_t size;
    enum tokmap_type type; /* of all but rows and cu_seqlens */
    void *inputs;
    void *targets;
    void *position_ids;
    void *rows;
    void *document_ids;
    void *loss_mask;
    int32_t *cu_seqlens; /* [0] = 0, then where each document ends, the batch's count * seq_len tokens counted through; a
                            row's end is a document's. All elements behind them, up to the last that there is room for,
                            repeat count * seq_len: documents without a token */
};
#define TOKMAP_OUT_INIT {sizeof(struct tokmap_out), TOKMAP_I32, NULL, NULL, NULL, NULL, NULL, NULL, NULL}

/* What next() delivered. Pointers live until the next call on the loader. */
struct tokmap_batch {
    size_t size;                     /* sizeof(struct tokmap_batch); next() leaves it as it is */
    uint64_t step;
    uint64_t first_row;              /* in the global batch */
    uint64_t count;                  /* rows in this call; may be 0 where ranks' slices differ */
    uint64_t tokens;                 /* count * seq_len */
    int last_in_step;                /* the step's last call on this rank */
    uint32_t width;                  /* bytes a token in rows[] */
    uint64_t row_tokens;             /* seq_len + lookahead */
    const void *const *rows;         /* count pointers to rows, each 16-byte aligned */
    const struct tokmap_place *places; /* count places: what each row is */
    struct tokmap_cursor cursor;     /* the state after this call */
    /* The following are 0 unless the loader was opened with TOKMAP_CU_SEQLENS. */
    uint64_t documents;              /* in cu_seqlens: its elements 0 .. documents differ; 0 where count is */
    uint64_t max_seqlen;             /* tokens of the longest of them */
};
#define TOKMAP_BATCH_INIT                                                                                              \
    {                                                                                                                  \
        sizeof(struct tokmap_batch), 0, 0, 0, 0, 0, 0, 0, NULL, NULL, {0, 0, {0, 0}, {0, 0, 0, 0, 0}}, 0, 0            \
    }

/* Opens a loader of a run for one rank. O(1): the resume is arithmetic. With TOKMAP_CU_SEQLENS the ends of all documents
 * are read, some 10 ns each, to know how many a window can show.
 * Statuses: OK, ERROR_RANGE (rank >= world, fewer rows than ranks, TARGETS or LOSS_MASK without lookahead), ERROR_CURSOR,
 * ERROR_VERSION (a cursor of a newer version), ERROR_PAST, ERROR_LIMIT (a batch does not fit ring_bytes, or is too large for
 * cu_seqlens), ERROR_IO, ERROR_CORRUPT (the ends of documents, with TOKMAP_CU_SEQLENS), ERROR_NO_DEVICE, ERROR_DEVICE, ERROR_UNSUPPORTED, ERROR_ARGUMENT,
 * ERROR_MEMORY. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_loader_open(struct tokmap_loader **loader,
                                                                   const struct tokmap_run *run,
                                                                   const struct tokmap_loader_options *options,
                                                                   struct tokmap_error *error);

/* Delivers the next rows of this rank.
 *   out     NULL if fields is 0 or row pointers are all that is wanted
 *   stream  NULL on the host; on a GPU the CUstream on which `out` will be read, NULL for the default one: the outputs
 *           are enqueued there and are complete for what is enqueued behind them
 *   batch   begins as TOKMAP_BATCH_INIT; at most batch->size bytes of it are written
 * Allocates nothing. After a failure that is not END the same rows are tried again by the next call; *batch is all zero
 * but for its size.
 * Statuses: OK, END (the run is over; every further call says so too), ERROR_IO, ERROR_TRUNCATED, ERROR_CORRUPT,
 * ERROR_TOKEN (path, offset and id are in error), ERROR_DEVICE, ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_loader_next(struct tokmap_loader *loader,
                                                                   const struct tokmap_out *out, void *stream,
                                                                   struct tokmap_batch *batch,
                                                                   struct tokmap_error *error);

/* Waits for timeout_ns at most until the next call of next() has its rows, or its failure, ready: for callers that must
 * look at something else meanwhile, such as signals. 1 if it has, 0 if not yet. Always 1 with threads = 0, which has nothing
 * to wait for, and for NULL. As next() it ends the pointers of the last batch, and is called by one thread at a time; what
 * it waited counts for the statistics as if next() had. Cannot fail. */
TOKMAP_API int tokmap_loader_wait(struct tokmap_loader *loader, uint64_t timeout_ns);

/* Delivers `count` rows by name instead of the next ones: row rows[i] of the global batch of steps[i], in this order, of
 * whichever rank, in the way of next(). Only for loaders on the host with threads = 0. The loader's place in the run stays
 * as it is; batch->step and first_row are those of the first row, last_in_step is 0, and cursor is the loader's.
 * Statuses: OK, ERROR_RANGE (no such row or step in the run), ERROR_LIMIT (count over tokmap_loader_rows()), ERROR_IO,
 * ERROR_TRUNCATED, ERROR_CORRUPT, ERROR_TOKEN, ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_loader_read(struct tokmap_loader *loader, const uint64_t *steps,
                                                                   const uint64_t *rows, uint64_t count,
                                                                   const struct tokmap_out *out,
                                                                   struct tokmap_batch *batch,
                                                                   struct tokmap_error *error);

/* The largest batch.count of any call: what `out` must hold. 0 for NULL. Cannot fail. */
TOKMAP_API uint64_t tokmap_loader_rows(const struct tokmap_loader *loader);
/* Calls of next() a step; the same on every rank. 0 for NULL. Cannot fail. */
TOKMAP_API uint64_t tokmap_loader_calls(const struct tokmap_loader *loader);

/* The elements that out.cu_seqlens must hold, the same for every batch: tokmap_loader_rows() times the most documents that
 * a window of any of the run's datasets can show, wherever it begins, and 1. 0 if the loader was opened without
 * TOKMAP_CU_SEQLENS, and for NULL. Cannot fail. */
TOKMAP_API uint64_t tokmap_loader_cu_seqlens(const struct tokmap_loader *loader);

/* Stops the producer and frees everything; pointers from batches end. With a GPU it waits for what next() has enqueued; the
 * outputs are the caller's and stay. Cannot fail. */
TOKMAP_API void tokmap_loader_close(struct tokmap_loader *loader);

#define TOKMAP_WAIT_BUCKETS 64

struct tokmap_stats {
    size_t size;
    uint64_t batches;           /* delivered */
    uint64_t rows;
    uint64_t tokens;            /* rows * seq_len */
    uint64_t bytes;             /* of tokens gathered */
    uint64_t cold_reads;        /* windows that were not in the page cache when they were needed, as far as known */
    uint64_t epoch;             /* the latest epoch delivered */
    uint64_t ring_bytes;
    uint32_t ring_slots;
    uint32_t ring_ready;        /* slots that are filled and not yet taken */
    uint32_t ring_ready_lowest; /* the lowest of that seen by next() since the ring first filled */
    enum tokmap_reading reading;
    uint64_t waits;             /* calls of next() that found no filled slot; none with threads = 0, which has no ring */
    uint64_t wait_ns;           /* their sum */
    uint64_t wait_ns_largest;
    uint64_t wait_histogram[TOKMAP_WAIT_BUCKETS]; /* calls of next() by wait: bucket b counts [2^(b-1), 2^b) ns, b = 0: 0 */
    uint64_t host_expanded;     /* batches for a GPU that the host expanded, since the kernel could not be loaded */
    uint64_t late_copies;       /* calls of next() that found the batch still on its way to the GPU */
    uint64_t device_bytes;      /* of the GPU's memory held by the loader */
};

/* A snapshot; any thread. Statuses: OK, ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_loader_stats(const struct tokmap_loader *loader,
                                                                    struct tokmap_stats *stats);

/* ---------------------------------------------------------------- arrays for others ----------------------------- */

/* Deleters for tensors that a program hands to others by DLPack (dlpack.h) without giving the memory away: they set
 * *(uint32_t *)manager_ctx to 1, behind which the owner, who looks there, may use the memory again; the first is for a
 * DLManagedTensor, the other for a DLManagedTensorVersioned. They take no lock, allocate nothing and call nothing, so whoever
 * frees such a tensor may be in any state: an exception of Python's on its way, a signal handler, the end of the program.
 * Any thread. Cannot fail; NULL is nothing. */
TOKMAP_API void tokmap_dlpack_deleted(void *tensor);
TOKMAP_API void tokmap_dlpack_deleted_versioned(void *tensor);

#ifdef __cplusplus
}
#endif
#endif
