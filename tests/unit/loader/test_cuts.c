/* SPDX-License-Identifier: MIT */
/*
 * Files that are cut at any moment while they are in use. With TOKMAP_READ_PREAD each use of an index, of tokens, of a
 * mask, of a plan, and of the document indexes of Megatron and datatrove is a status and never a signal; what is read
 * is the same as through a mapping. A fault in a thread of the library, which a mapping can raise, reaches the
 * program's handler.
 *
 * With TOKMAP_TEST_CUTS=N, N files are cut under readings with pread, instead of 52. With TOKMAP_TEST_MAPPED=N, files
 * of 90 MB are cut to nothing N times under a loader that delivers rows of 4 KiB from a mapping as fast as it can,
 * instead of 4 small ones; how many cuts end in SIGBUS is printed. TEST_SEED chooses when and where files are cut.
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
#include "format/plan_file.h"
#include "format/shard_writer.h"
#include "platform/os.h"
#include "support/run_help.h"
#include "support/scratch.h"
#include "tokmap/tokmap.h"

#define DOCUMENTS 60000
#define TOKENS ((uint64_t)DOCUMENTS * 8)
#define SEQ_LEN 64
#define BATCH 8
#define FIELDS                                                                                                         \
    (TOKMAP_INPUTS | TOKMAP_TARGETS | TOKMAP_POSITION_IDS | TOKMAP_DOCUMENT_IDS | TOKMAP_LOSS_MASK | TOKMAP_CU_SEQLENS)
#define USE_NS ((uint64_t)20000000000) /* a use that meets no cut for so long has failed */

/* Ends the child with a message if a condition does not hold. */
#define NEED(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            (void)fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                              \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

static char folders[2][512]; /* on a disk, where $TMPDIR is on one, and in memory */
static uint64_t folder_count;

static uint64_t number_of(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);
    const uint64_t number = text ? strtoull(text, NULL, 10) : 0;
    return number ? number : otherwise;
}

/* ---- a shard with everything that an index can have ---- */

static uint16_t tokens[TOKENS];
static uint64_t ends[DOCUMENTS];

static void write_shard(const char *folder, const char *name)
{
    static const char *const columns[] = {"url", "language"};
    static uint8_t bits[TOKENS / 8];
    struct shard_writer_options options = {.width = 2,
                                           .vocabulary = 50000,
                                           .eod_id = TOKMAP_NO_ID,
                                           .bos_id = TOKMAP_NO_ID,
                                           .mask = true,
                                           .columns = columns,
                                           .column_count = 2};
    struct shard_writer *writer;
    uint64_t state = 5, at = 0;
    assert_int_equal(shard_writer_open(&writer, in_folder(folder, name), &options, NULL), 0);
    for (uint64_t i = 0; i < TOKENS; i++)
        tokens[i] = (uint16_t)random_below(&state, 50000);
    for (uint64_t i = 0; i < TOKENS / 8; i++)
        bits[i] = (uint8_t)random_next(&state);
    for (uint64_t d = 0; d < DOCUMENTS; d++)
        ends[d] = at += min64(random_below(&state, 17), TOKENS - at);
    ends[DOCUMENTS - 1] = TOKENS;
    for (uint64_t d = 0; d < DOCUMENTS; d += 100) {
        char path[40];
        const uint64_t first = d ? ends[d - 1] : 0;
        const int bytes = snprintf(path, sizeof path, "files/part-%u.jsonl", (unsigned)(d / 100));
        uint64_t local[100];
        assert_int_equal(shard_writer_origin(writer, path, (uint64_t)bytes, d % 7, NULL), 0);
        for (uint64_t i = 0; i < 100; i++) {
            char url[80];
            const int length = snprintf(url, sizeof url, "\"https://example.org/%u/%u\"",
                                        (unsigned)(d + i) * 2654435761u, (unsigned)i);
            const struct shard_value values[] = {{url, (uint64_t)length}, {i % 3 ? "\"en\"" : "\"de\"", 4}};
            local[i] = ends[d + i] - first;
            assert_int_equal(shard_writer_values(writer, values, 1, NULL), 0);
        }
        assert_int_equal(shard_writer_add(writer, tokens + first, local[99], local, 100, 49999, NULL), 0);
    }
    assert_int_equal(shard_writer_mask(writer, bits, 0, TOKENS, NULL), 0);
    assert_int_equal(shard_writer_commit(writer, "{\"made\": \"for cuts\"}", 20, NULL, NULL), 0);
}

static void write_file(const char *folder, const char *name, const void *bytes, size_t count)
{
    FILE *file = fopen(in_folder(folder, name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

/* Writes the same tokens and documents as Megatron and datatrove do. */
static void write_foreign(const char *folder)
{
    enum { HEAD = 34, BYTES = HEAD + 12 * DOCUMENTS + 8 * (DOCUMENTS + 1) };
    static uint8_t index[BYTES];
    memcpy(index, "MMIDIDX\0\0\1\0\0\0\0\0\0\0\x08", 18); /* uint16 */
    store64(index + 18, DOCUMENTS);
    store64(index + 26, DOCUMENTS + 1);
    uint8_t *lengths = index + HEAD, *pointers = lengths + 4 * (size_t)DOCUMENTS;
    uint8_t *documents = pointers + 8 * (size_t)DOCUMENTS;
    for (uint64_t d = 0; d < DOCUMENTS; d++) {
        const uint64_t first = d ? ends[d - 1] : 0;
        store32(lengths + 4 * d, (uint32_t)(ends[d] - first));
        store64(pointers + 8 * d, 2 * first);
        store64(documents + 8 * (d + 1), d + 1);
    }
    write_file(folder, "whole_megatron.idx", index, sizeof index);
    write_file(folder, "whole_megatron.bin", tokens, sizeof tokens);
    write_file(folder, "whole.ds", tokens, sizeof tokens);
    write_file(folder, "whole.ds.index", ends, sizeof ends);
}

static struct plan_segment segment_of(void *user, uint64_t number)
{
    (void)user;
    return (struct plan_segment){8 * number, 8, (uint32_t)number};
}

/* Writes a plan of the shard: rows of eight segments of eight tokens. */
static void write_plan(const char *folder)
{
    static uint32_t first[DOCUMENTS / 8];
    struct tokmap_dataset *dataset;
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    int fd;
    assert_int_equal(tokmap_dataset_open(&dataset, in_folder(folder, "whole"), NULL, NULL), 0);
    assert_int_equal(tokmap_dataset_info(dataset, &info), 0);
    struct plan_header header = {.identity = 1,
                                 .tokens = TOKENS,
                                 .seq_len = SEQ_LEN,
                                 .rows = TOKENS / SEQ_LEN,
                                 .segments = TOKENS / 8,
                                 .row_segments = 8,
                                 .documents = TOKENS / 8};
    memcpy(header.dataset, info.content, sizeof header.dataset);
    for (uint32_t row = 0; row < header.rows; row++)
        first[row] = 8 * row;
    tokmap_dataset_close(dataset);
    write_file(folder, "whole.plan", "", 0);
    assert_int_equal(os_open(in_folder(folder, "whole.plan"), OS_WRITE_OPEN, &fd), 0);
    assert_int_equal(plan_write(fd, &header, first, segment_of, NULL), 0);
    os_close(fd);
}

static int setup(void **unused)
{
    (void)unused;
    char *before = getenv("TMPDIR"), *kept = before ? strdup(before) : NULL;
    scratch_make(folders[folder_count++]);
    if (!access("/dev/shm", W_OK)) {
        (void)setenv("TMPDIR", "/dev/shm", 1);
        scratch_make(folders[folder_count++]);
        (void)(kept ? setenv("TMPDIR", kept, 1) : unsetenv("TMPDIR"));
    }
    free(kept);
    for (uint64_t i = 0; i < folder_count; i++) {
        write_shard(folders[i], "whole");
        write_foreign(folders[i]);
        write_plan(folders[i]);
    }
    return 0;
}

static int teardown(void **unused)
{
    (void)unused;
    for (uint64_t i = 0; i < folder_count; i++)
        scratch_remove(folders[i]);
    return 0;
}

/* Makes the files "data" of a folder copies of those of a shard. */
static void restore(const char *folder, const char *shard)
{
    static const char *const endings[] = {".bin",          ".mask",         ".tmx", ".plan",
                                          "_megatron.bin", "_megatron.idx", ".ds",  ".ds.index"};
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        char from[32], to[32];
        (void)snprintf(from, sizeof from, "%s%s", shard, endings[i]);
        (void)snprintf(to, sizeof to, "data%s", endings[i]);
        (void)unlink(in_folder(folder, to));
        if (file_exists(in_folder(folder, from)))
            file_copy(in_folder(folder, from), in_folder(folder, to));
    }
}

/* ---- uses ---- */

/* Says that the use has begun, and is in its first round. */
static void begun(int ready)
{
    NEED(write(ready, "", 1) == 1);
}

/* Opens the run of a dataset, or, of "PREFIX.plan", that of the plan of the dataset PREFIX. */
static void open_run(struct tokmap_run **run, const char *data, enum tokmap_reading reading)
{
    const size_t bytes = strlen(data), plan = bytes > 5 && !strcmp(data + bytes - 5, ".plan") ? 5 : 0;
    char text[2000];
    (void)snprintf(text, sizeof text, "seq_len %d\nbatch %d\nseed 3\npasses 1000000\nsource a \"%.*s\"%s%s%s\n",
                   SEQ_LEN, BATCH, (int)(bytes - plan), data, plan ? " plan \"" : "", plan ? data : "",
                   plan ? "\"" : "");
    NEED(!run_parse_reading(run, text, reading, NULL));
}

/* Whether the error names a file of the dataset, whose name may begin with its kind. */
static bool names_file(const struct tokmap_error *error, const char *data)
{
    const char *path = strchr(data, '/');
    return path && !strncmp(error->path, path, strcspn(path, ","));
}

static uint32_t trust_files; /* 1: loaders do not need the hashes of the index, whose absence is a status */

static void use_loader(const char *data, enum tokmap_reading reading, uint32_t threads, int ready)
{
    static int32_t fields[5][BATCH * SEQ_LEN], cu_seqlens[BATCH * SEQ_LEN + 1];
    struct tokmap_loader_options how = TOKMAP_LOADER_OPTIONS_INIT;
    struct tokmap_out out = TOKMAP_OUT_INIT;
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    struct tokmap_error error;
    struct tokmap_run *run;
    struct tokmap_loader *loader;
    open_run(&run, data, reading);
    how.fields = FIELDS;
    how.threads = threads;
    how.ring_bytes = 200000;
    how.trust_files = trust_files;
    NEED(!tokmap_loader_open(&loader, run, &how, NULL));
    out.inputs = fields[0];
    out.targets = fields[1];
    out.position_ids = fields[2];
    out.document_ids = fields[3];
    out.loss_mask = fields[4];
    out.cu_seqlens = cu_seqlens;
    NEED(!tokmap_loader_next(loader, &out, NULL, &batch, NULL));
    begun(ready);
    const uint64_t until = os_clock_ns() + USE_NS;
    enum tokmap_status status;
    while (!(status = tokmap_loader_next(loader, &out, NULL, &batch, &error)))
        NEED(os_clock_ns() < until);
    NEED(status == TOKMAP_ERROR_TRUNCATED && names_file(&error, data));
    NEED(tokmap_loader_next(loader, &out, NULL, &batch, &error) == TOKMAP_ERROR_TRUNCATED);
    tokmap_loader_close(loader);
    tokmap_run_close(run);
}

/* Locates rows of a run of a plan, and finds tokens in it. */
static void use_run(const char *data, enum tokmap_reading reading, uint32_t threads, int ready)
{
    (void)threads;
    struct tokmap_run *run;
    struct tokmap_extent extents[8];
    struct tokmap_place place = {0};
    struct tokmap_error error;
    uint64_t state = (uint64_t)getpid(), used;
    open_run(&run, data, reading);
    begun(ready);
    const uint64_t until = os_clock_ns() + USE_NS;
    enum tokmap_status status;
    do {
        status = tokmap_run_locate(run, random_below(&state, 1000), 0, &place, &error);
        NEED(status || place.tokens == SEQ_LEN); /* never a row without tokens */
        if (!status)
            status = tokmap_run_extents(run, &place, extents, 8, &used, &error);
        NEED(os_clock_ns() < until);
    } while (!status);
    NEED(status == TOKMAP_ERROR_TRUNCATED && names_file(&error, data));
    tokmap_run_close(run);
}

static int count_found(void *user, const struct tokmap_place *place)
{
    (void)place;
    ++*(uint64_t *)user;
    return 0;
}

/* The same search each time, so each must find as many rows as the first, or report the cut. */
static void use_find(const char *data, enum tokmap_reading reading, uint32_t threads, int ready)
{
    (void)threads;
    struct tokmap_run *run;
    struct tokmap_error error;
    uint64_t first = 0, found;
    open_run(&run, data, reading);
    NEED(!tokmap_run_find(run, 0, 0, 20 * SEQ_LEN, 0, 50, count_found, &first, &error));
    begun(ready);
    const uint64_t until = os_clock_ns() + USE_NS;
    enum tokmap_status status;
    do {
        found = 0;
        status = tokmap_run_find(run, 0, 0, 20 * SEQ_LEN, 0, 50, count_found, &found, &error);
        NEED(status || found == first);
        NEED(os_clock_ns() < until);
    } while (!status);
    NEED(first && status == TOKMAP_ERROR_TRUNCATED && names_file(&error, data));
    tokmap_run_close(run);
}

/* Uses of a document, from everything that an index has. */
static enum tokmap_status use_document(const struct tokmap_dataset *dataset, uint64_t number, uint64_t *sum,
                                       struct tokmap_error *error)
{
    struct tokmap_document document, at;
    struct tokmap_origin origin;
    struct tokmap_value url, language;
    enum tokmap_status status = tokmap_dataset_document(dataset, number, &document, error);
    if (!status)
        status = tokmap_dataset_document_at(dataset, number * 8, &at, error);
    if (!status)
        status = tokmap_dataset_origin(dataset, number, &origin, error);
    if (!status)
        status = tokmap_dataset_value(dataset, number, "url", &url, error);
    if (!status)
        status = tokmap_dataset_value(dataset, number, "language", &language, error);
    if (status)
        return status;
    const uint64_t numbers[] = {document.first_token, document.tokens, at.number, at.first_token, at.tokens,
                                origin.record,        language.bytes};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        *sum = (*sum ^ numbers[i]) * 0x9e3779b97f4a7c15u;
    for (uint64_t i = 0; i < url.bytes; i++) /* what a pointer leads to stays readable */
        *sum = (*sum ^ (uint8_t)url.json[i]) * 0x9e3779b97f4a7c15u;
    for (uint64_t i = 0; i < origin.path_bytes; i++)
        *sum = (*sum ^ (uint8_t)origin.path[i]) * 0x9e3779b97f4a7c15u;
    return TOKMAP_OK;
}

static void use_dataset(const char *data, enum tokmap_reading reading, uint32_t threads, int ready)
{
    (void)threads;
    const struct tokmap_dataset_options options = {sizeof options, reading};
    struct tokmap_dataset *dataset;
    struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
    struct tokmap_error error;
    uint64_t state = (uint64_t)getpid(), sum = 0;
    NEED(!tokmap_dataset_open(&dataset, data, &options, NULL));
    begun(ready);
    const uint64_t until = os_clock_ns() + USE_NS;
    enum tokmap_status status;
    while (!(status = use_document(dataset, random_below(&state, DOCUMENTS), &sum, &error)))
        NEED(os_clock_ns() < until);
    NEED(status == TOKMAP_ERROR_TRUNCATED && !strncmp(error.path, data, strlen(data)));
    status = tokmap_dataset_shard(dataset, 0, &shard, &error);
    NEED(!status || status == TOKMAP_ERROR_TRUNCATED); /* its page may have been read before */
    tokmap_dataset_close(dataset);
}

typedef void use(const char *data, enum tokmap_reading reading, uint32_t threads, int ready);

/* What is used, and cut. */
struct target {
    const char *shard; /* whose files are copied */
    const char *name;  /* of what is used, in the folder, perhaps with its kind before it */
    const char *file;  /* that is cut */
};

/* Runs a use of a copy of a shard in a child, and cuts a file under it. Returns how the child ended. */
static int cut_under(use *used, enum tokmap_reading reading, uint32_t threads, const char *folder,
                     const struct target *target, uint64_t delay_ns, uint64_t left, void (*handler)(int))
{
    int ready[2], ended = -1;
    char byte, data[600];
    restore(folder, target->shard);
    const char *name = target->name, *colon = strchr(name, ':');
    const size_t kind = colon ? (size_t)(colon - name) + 1 : 0;
    (void)snprintf(data, sizeof data, "%.*s%s", (int)kind, name, in_folder(folder, name + kind));
    assert_int_equal(pipe(ready), 0);
    (void)fflush(NULL);
    const pid_t child = fork();
    if (!child) {
        (void)signal(SIGBUS, handler); /* cmocka catches it */
        (void)signal(SIGSEGV, SIG_DFL);
        used(data, reading, threads, ready[1]);
        _exit(0);
    }
    assert_true(child > 0);
    (void)close(ready[1]);
    if (read(ready[0], &byte, 1) == 1) {
        os_sleep_ns(delay_ns);
        assert_int_equal(truncate(in_folder(folder, target->file), (off_t)left), 0);
    }
    assert_int_equal(waitpid(child, &ended, 0), child);
    (void)close(ready[0]);
    return ended;
}

static void pread_turns_every_cut_into_a_status(void **unused)
{
    (void)unused;
    static const struct {
        use *used;
        uint32_t threads;
        struct target target;
    } kinds[] = {
        {use_loader, 0, {"whole", "data", "data.tmx"}},
        {use_loader, 1, {"whole", "data", "data.tmx"}},
        {use_loader, 0, {"whole", "data", "data.bin"}},
        {use_loader, 1, {"whole", "data", "data.bin"}},
        {use_loader, 1, {"whole", "data", "data.mask"}},
        {use_dataset, 0, {"whole", "data", "data.tmx"}},
        {use_loader, 0, {"whole", "data.plan", "data.plan"}},
        {use_loader, 1, {"whole", "data.plan", "data.plan"}},
        {use_run, 0, {"whole", "data.plan", "data.plan"}},
        {use_find, 0, {"whole", "data.plan", "data.plan"}},
        {use_loader, 0, {"whole", "data_megatron", "data_megatron.idx"}},
        {use_loader, 1, {"whole", "data_megatron", "data_megatron.idx"}},
        {use_loader, 1, {"whole", "data_megatron", "data_megatron.bin"}},
        {use_loader, 1, {"whole", "datatrove:data.ds,width=2", "data.ds.index"}},
    };
    const uint64_t count = sizeof kinds / sizeof kinds[0], cuts = number_of("TOKMAP_TEST_CUTS", 56);
    uint64_t state = number_of("TEST_SEED", 77);
    for (uint64_t i = 0; i < cuts; i++) {
        const char *folder = folders[i / count % folder_count];
        /* Some cuts leave the start of the file, where the header and the first documents are. */
        const uint64_t left = random_below(&state, 2) ? 0 : random_below(&state, 20000);
        const int ended = cut_under(kinds[i % count].used, TOKMAP_READ_PREAD, kinds[i % count].threads, folder,
                                    &kinds[i % count].target, random_below(&state, 5000000), left, SIG_DFL);
        if (ended)
            fail_msg("cut %u, %s in %s to %u bytes, threads %u: %s %d", (unsigned)i, kinds[i % count].target.file,
                     folder, (unsigned)left, kinds[i % count].threads, WIFSIGNALED(ended) ? "signal" : "exit status",
                     WIFSIGNALED(ended) ? WTERMSIG(ended) : WEXITSTATUS(ended));
    }
    print_message("%u cuts with pread, 0 signals\n", (unsigned)cuts);
}

/* ---- cuts under a mapping ---- */

#define ROW_TOKENS 2048 /* rows of 4 KiB */
#define BATCH_ROWS 512

/* Writes a shard without a mask, whose tokens have about `bytes` bytes. */
static void write_large(const char *folder, const char *name, uint64_t bytes)
{
    static uint16_t filler[TOKENS];
    struct shard_writer_options options = {
        .width = 2, .vocabulary = 50000, .eod_id = TOKMAP_NO_ID, .bos_id = TOKMAP_NO_ID};
    struct shard_writer *writer;
    const uint64_t end = TOKENS;
    for (uint64_t i = 0; i < TOKENS; i++)
        filler[i] = (uint16_t)(i % 50000);
    assert_int_equal(shard_writer_open(&writer, in_folder(folder, name), &options, NULL), 0);
    for (uint64_t at = 0; at < bytes; at += sizeof filler)
        assert_int_equal(shard_writer_add(writer, filler, TOKENS, &end, 1, 49999, NULL), 0);
    assert_int_equal(shard_writer_commit(writer, "{}", 2, NULL, NULL), 0);
}

/* A loader that delivers as fast as it can. */
static void use_free(const char *data, enum tokmap_reading reading, uint32_t threads, int ready)
{
    static int32_t inputs[BATCH_ROWS * ROW_TOKENS];
    struct simple_run options = SIMPLE_RUN_INIT;
    struct tokmap_loader_options how = TOKMAP_LOADER_OPTIONS_INIT;
    struct tokmap_out out = TOKMAP_OUT_INIT;
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    struct tokmap_error error;
    struct tokmap_run *run;
    struct tokmap_loader *loader;
    options.data = data;
    options.seq_len = ROW_TOKENS;
    options.batch = BATCH_ROWS;
    options.seed = 3;
    options.passes = 1000000;
    options.reading = reading;
    NEED(!simple_run_open(&run, &options, NULL));
    how.fields = TOKMAP_INPUTS;
    how.threads = threads;
    NEED(!tokmap_loader_open(&loader, run, &how, NULL));
    out.inputs = inputs;
    NEED(!tokmap_loader_next(loader, &out, NULL, &batch, NULL));
    begun(ready);
    const uint64_t until = os_clock_ns() + USE_NS;
    enum tokmap_status status;
    while (!(status = tokmap_loader_next(loader, &out, NULL, &batch, &error)))
        NEED(os_clock_ns() < until);
    NEED(status == TOKMAP_ERROR_TRUNCATED && !strncmp(error.path, data, strlen(data)));
    tokmap_loader_close(loader);
    tokmap_run_close(run);
}

static void mapped_ends_in_a_status_or_in_SIGBUS(void **unused)
{
    (void)unused;
    static const struct target large = {"large", "data", "data.bin"};
    const uint64_t given = number_of("TOKMAP_TEST_MAPPED", 0), cuts = given ? given : 4;
    uint64_t state = number_of("TEST_SEED", 78), signals = 0;
    write_large(folders[0], "large", given ? 90000000 : 8000000);
    for (uint64_t i = 0; i < cuts; i++) {
        const uint32_t threads = i % 2;
        const int ended = cut_under(use_free, TOKMAP_READ_MAPPED, threads, folders[0], &large,
                                    random_below(&state, 200000000), 0, SIG_DFL);
        signals += WIFSIGNALED(ended) && WTERMSIG(ended) == SIGBUS;
        if (ended && !(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGBUS))
            fail_msg("cut %u, threads %u: %s %d", (unsigned)i, (unsigned)threads,
                     WIFSIGNALED(ended) ? "signal" : "exit status",
                     WIFSIGNALED(ended) ? WTERMSIG(ended) : WEXITSTATUS(ended));
    }
    print_message("%u cuts of a mapping, %u ended in SIGBUS\n", (unsigned)cuts, (unsigned)signals);
}

/* ---- the same answers ---- */

static void pread_reads_what_a_mapping_has(void **unused)
{
    (void)unused;
    struct tokmap_dataset *datasets[2];
    for (int i = 0; i < 2; i++) {
        const struct tokmap_dataset_options options = {sizeof options, i ? TOKMAP_READ_PREAD : TOKMAP_READ_MAPPED};
        assert_int_equal(tokmap_dataset_open(&datasets[i], in_folder(folders[0], "whole"), &options, NULL), 0);
        assert_int_equal(tokmap_dataset_verify(datasets[i], NULL, NULL, NULL), 0);
    }
    for (uint64_t step = 1; step < 5000; step += 1234) { /* in several orders: a search meets what another one kept */
        uint64_t sums[2] = {0, 0};
        for (int i = 0; i < 2; i++)
            for (uint64_t d = 0; d < DOCUMENTS; d += step)
                assert_int_equal(use_document(datasets[i], (d * 7919) % DOCUMENTS, &sums[i], NULL), 0);
        assert_int_equal(sums[0], sums[1]);
    }
    for (int i = 0; i < 2; i++) {
        struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
        assert_int_equal(tokmap_dataset_shard(datasets[i], 0, &shard, NULL), 0);
        assert_int_equal(shard.about_bytes, 20);
        assert_memory_equal(shard.about, "{\"made\": \"for cuts\"}", 20);
        assert_true(shard.index_bytes > 100000);
        tokmap_dataset_close(datasets[i]);
    }
}

/* ---- a fault in a thread of the library ---- */

static void ends_as_a_program_wants(int number)
{
    _exit(number == SIGBUS ? 77 : 78);
}

static void a_fault_in_the_producer_reaches_the_program(void **unused)
{
    (void)unused;
    static const struct target index = {"whole", "data", "data.tmx"};
    trust_files = 1;
    for (uint32_t threads = 0; threads < 2; threads++) {
        const int ended =
            cut_under(use_loader, TOKMAP_READ_MAPPED, threads, folders[0], &index, 1000000, 0, ends_as_a_program_wants);
        assert_true(WIFEXITED(ended));
        assert_int_equal(WEXITSTATUS(ended), 77);
    }
    trust_files = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pread_reads_what_a_mapping_has),
        cmocka_unit_test(pread_turns_every_cut_into_a_status),
        cmocka_unit_test(mapped_ends_in_a_status_or_in_SIGBUS),
        cmocka_unit_test(a_fault_in_the_producer_reaches_the_program),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
