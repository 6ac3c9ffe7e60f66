/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/*
 * Sealed shards: a loader delivers from them what it delivers from plain ones, in every way of reading and also if
 * shards are sealed and unsealed in the middle of a run; unsealing gives the same files; and each damaged byte, entry,
 * or table is a status, never a wrong token. TEST_SEED chooses the bytes.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/index_exercise.h"

#include "common/bytes.h"
#include "common/hash.h"
#include "format/sealed.h"
#include "format/shard_seal.h"
#include "platform/os.h"
#include "support/made.h"
#include "support/run_help.h"
#include "support/scratch_folder.h"
#include "support/shard_help.h"
#include "tokmap/tokmap.h"

/* How a loader reads. */
static const struct way {
    enum tokmap_reading reading;
    uint32_t threads, io_threads, drop_behind;
    uint64_t deadline_ns;
} ways[] = {
    {TOKMAP_READ_MAPPED, 0, 0, 0, 0},
    {TOKMAP_READ_PREAD, 1, 0, 0, 0},
    {TOKMAP_READ_AUTO, 1, 0, 1, 0},
    {TOKMAP_READ_AUTO, 0, 2, 0, 60000000000u},
};
enum { WAYS = sizeof ways / sizeof ways[0] };

/* An order of a run. */
struct shape {
    uint64_t seq_len;
    enum tokmap_order_kind order;
    uint64_t world;
};

static uint64_t random_state;
static const uint64_t sizes[] = {40000, 1, 32768, 0, 70001, 131072};
enum { SHARDS = sizeof sizes / sizeof sizes[0] };

static void index_path(char path[640], const char *name, uint64_t shard)
{
    (void)snprintf(path, 640, "%s/%s-%u.tmx", folder, name, (unsigned)shard);
}

static void sealed_path(char path[640], const char *name, uint64_t shard)
{
    (void)snprintf(path, 640, "%s/%s-%u.bin.zst", folder, name, (unsigned)shard);
}

static struct shard_seal_result convert(const char *name, uint64_t shard, bool unseal, uint32_t threads)
{
    const struct shard_seal_options options = {.unseal = unseal, .level = 1, .threads = threads};
    struct shard_seal_result result;
    char path[640];
    index_path(path, name, shard);
    MUST(shard_seal(path, &options, &result, &error));
    assert_true(result.changed);
    assert_int_equal(result.tokens, sizes[shard]);
    return result;
}

static void convert_all(const char *name, bool unseal)
{
    for (uint64_t shard = 0; shard < SHARDS; shard++)
        (void)convert(name, shard, unseal, 1 + (uint32_t)shard % 3);
}

static struct tokmap_run *make_run(const char *data, const struct shape *shape, enum tokmap_reading reading)
{
    struct simple_run options = SIMPLE_RUN_INIT;
    struct tokmap_run *run;
    options.data = data;
    options.seq_len = shape->seq_len;
    options.batch = 5;
    options.seed = 7;
    options.order = shape->order;
    options.steps = shape->seq_len > 1000 ? 20 : 60;
    options.reading = reading;
    MUST(simple_run_open(&run, &options, &error));
    return run;
}

static struct tokmap_loader *open_loader(const struct tokmap_run *run, const struct way *way, uint64_t rank,
                                         uint64_t world, const char *resume)
{
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    struct tokmap_loader *loader;
    options.rank = rank;
    options.world = world;
    options.threads = way->threads;
    options.io_threads = way->io_threads;
    options.drop_behind = way->drop_behind;
    options.deadline_ns = way->deadline_ns;
    options.resume = resume;
    options.fields = 0;
    MUST(tokmap_loader_open(&loader, run, &options, &error));
    return loader;
}

/* Returns a hash of at most `batches` batches, of their places and cursors, which depends on their order. The rows are
 * compared with what the dataset has. */
static uint64_t read_batches(struct tokmap_loader *loader, const struct made *made, uint64_t batches, char *cursor,
                             uint64_t sum)
{
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    char text[TOKMAP_CURSOR_TEXT];
    for (uint64_t n = 0; n < batches; n++) {
        const enum tokmap_status status = tokmap_loader_next(loader, NULL, NULL, &batch, &error);
        if (status == TOKMAP_END)
            break;
        MUST(status);
        for (uint64_t i = 0; i < batch.count; i++) {
            assert_true(made_row_is(made, batch.rows[i], batch.places[i].first_token, batch.row_tokens));
            sum = hash64_seeded(batch.rows[i], (size_t)batch.row_tokens * batch.width, sum);
        }
        tokmap_cursor_print(&batch.cursor, text);
        sum = hash64_seeded(text, strlen(text), sum);
    }
    if (cursor)
        memcpy(cursor, text, sizeof text);
    return sum;
}

/* Returns the hash of what all ranks get. */
static uint64_t delivered(const struct made *made, const struct shape *shape, const struct way *way)
{
    uint64_t sum = 0;
    struct tokmap_run *run = make_run(made->name, shape, way->reading);
    for (uint64_t rank = 0; rank < shape->world; rank++) {
        struct tokmap_loader *loader = open_loader(run, way, rank, shape->world, NULL);
        sum = read_batches(loader, made, UINT64_MAX, NULL, sum);
        tokmap_loader_close(loader);
    }
    tokmap_run_close(run);
    return sum;
}

static const struct shape shapes[] = {
    {1, TOKMAP_SHUFFLE, 1},        {100, TOKMAP_SHUFFLE, 3},  {100, TOKMAP_SEQUENTIAL, 1},
    {32768, TOKMAP_SEQUENTIAL, 2}, {5000, TOKMAP_SHUFFLE, 2}, {90000, TOKMAP_SHUFFLE, 1},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

/* made_new() says that the largest id is the vocabulary's, so this fault of its indexes is left out. */
static int count_fault(void *user, const struct tokmap_error *fault)
{
    uint64_t *faults = user;
    if (strstr(fault->message, "largest id"))
        return 0;
    error = *fault;
    ++*faults;
    return 0;
}

/* Returns the number of faults that verify finds, of which `error` has the last one. */
static uint64_t faults_of(const struct tokmap_dataset *dataset)
{
    struct tokmap_verify_options options = TOKMAP_VERIFY_OPTIONS_INIT;
    uint64_t faults = 0;
    options.fault = count_fault;
    options.user = &faults;
    options.threads = 2;
    const enum tokmap_status status = tokmap_dataset_verify(dataset, &options, NULL, NULL);
    assert_true(!faults || status);
    return faults;
}

static void content_of(const char *name, uint8_t content[16])
{
    struct tokmap_dataset *dataset;
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    MUST(tokmap_dataset_open(&dataset, name, NULL, &error));
    MUST(tokmap_dataset_info(dataset, &info));
    memcpy(content, info.content, 16);
    assert_true(info.page_hashes);
    assert_int_equal(faults_of(dataset), 0);
    tokmap_dataset_close(dataset);
}

static void sealed_is_read_as_plain_is(void **unused)
{
    (void)unused;
    for (uint32_t width = 2; width <= 4; width += 2) {
        const char *name = width == 2 ? "narrow" : "wide";
        struct made made;
        uint64_t plain[SHAPES];
        uint8_t before[16], after[16];
        made_new(&made, folder, name, width, width == 2 ? 50257 : 1u << 20, sizes, SHARDS);
        for (int shape = 0; shape < SHAPES; shape++)
            plain[shape] = delivered(&made, &shapes[shape], &ways[0]);
        content_of(made.name, before);
        (void)convert(name, 0, false, 2); /* sealed and plain shards in one dataset */
        (void)convert(name, 4, false, 2);
        for (int shape = 0; shape < SHAPES; shape++)
            assert_int_equal(delivered(&made, &shapes[shape], &ways[shape % WAYS]), plain[shape]);
        (void)convert(name, 0, true, 2);
        (void)convert(name, 4, true, 2);
        convert_all(name, false);
        for (int shape = 0; shape < SHAPES; shape++)
            for (int way = 0; way < WAYS; way++)
                assert_int_equal(delivered(&made, &shapes[shape], &ways[way]), plain[shape]);
        content_of(made.name, after);
        assert_memory_equal(before, after, 16);
        made_free(&made);
    }
}

/* Every range of tokens is copied right, there is no view, and parts work. */
static void ranges_of_sealed_tokens(void **unused)
{
    (void)unused;
    struct made made;
    struct tokmap_dataset *dataset;
    struct tokmap_span span;
    size_t used;
    made_new(&made, folder, "ranges", 2, 50257, sizes, SHARDS);
    convert_all("ranges", false);
    uint16_t *tokens = malloc(made.tokens * sizeof *tokens);
    MUST(tokmap_dataset_open(&dataset, made.name, NULL, &error));
    for (int n = 0; n < 200; n++) {
        const uint64_t first = random_below(&random_state, made.tokens);
        const uint64_t count =
            random_below(&random_state, n % 2 ? 300 : made.tokens - first + 1) % (made.tokens - first + 1);
        MUST(tokmap_dataset_copy(dataset, first, count, tokens, &error));
        assert_true(made_row_is(&made, tokens, first, count));
    }
    assert_int_equal(tokmap_dataset_view(dataset, 5, 5, &span, 1, &used, &error), TOKMAP_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "sealed"));
    tokmap_dataset_close(dataset);
    char part[700];
    (void)snprintf(part, sizeof part, "%s#tokens=72760..142000", made.name);
    MUST(tokmap_dataset_open(&dataset, part, NULL, &error));
    MUST(tokmap_dataset_copy(dataset, 0, 142000 - 72760, tokens, &error));
    assert_true(made_row_is(&made, tokens, 72760, 142000 - 72760));
    assert_int_equal(faults_of(dataset), 0);
    tokmap_dataset_close(dataset);
    free(tokens);
    made_free(&made);
}

/* A run stops, is continued from its cursor while shards are sealed or plain, and delivers the same. So does a loader
 * that stays open meanwhile. */
static void sealed_in_the_middle_of_a_run(void **unused)
{
    (void)unused;
    struct made made;
    const struct shape shape = {100, TOKMAP_SHUFFLE, 1};
    made_new(&made, folder, "middle", 2, 50257, sizes, SHARDS);
    const uint64_t whole = delivered(&made, &shape, &ways[0]);
    struct tokmap_run *first = make_run(made.name, &shape, TOKMAP_READ_AUTO);
    struct tokmap_loader *kept = open_loader(first, &ways[1], 0, 1, NULL);
    uint64_t kept_sum = read_batches(kept, &made, 3, NULL, 0);
    char cursor[TOKMAP_CURSOR_TEXT] = "";
    uint64_t sum = 0;
    for (int part = 0; part < 4; part++) {
        struct tokmap_run *run = make_run(made.name, &shape, TOKMAP_READ_AUTO);
        struct tokmap_loader *loader = open_loader(run, &ways[part], 0, 1, part ? cursor : NULL);
        sum = read_batches(loader, &made, part == 3 ? UINT64_MAX : 13, cursor, sum);
        tokmap_loader_close(loader);
        tokmap_run_close(run);
        if (part < 3)
            convert_all("middle", part % 2);
    }
    assert_int_equal(sum, whole);
    kept_sum = read_batches(kept, &made, UINT64_MAX, NULL, kept_sum);
    assert_int_equal(kept_sum, whole);
    tokmap_loader_close(kept);
    tokmap_run_close(first);
    made_free(&made);
}

static void assert_same_file(const char *path, const void *bytes, size_t count)
{
    size_t found_count;
    uint8_t *found = file_read(path, &found_count);
    assert_int_equal(found_count, count);
    assert_memory_equal(found, bytes, count);
    free(found);
}

static void unsealing_gives_the_same_files(void **unused)
{
    (void)unused;
    struct made made;
    char index[640], sealed[640];
    made_new_masked(&made, folder, "same", 2, 50257, sizes, SHARDS);
    for (uint64_t shard = 0; shard < SHARDS; shard++) {
        size_t bin_bytes, tmx_bytes, zst_bytes, sealed_tmx_bytes;
        index_path(index, "same", shard);
        sealed_path(sealed, "same", shard);
        uint8_t *bin = file_read(made.bin[shard], &bin_bytes), *tmx = file_read(index, &tmx_bytes);
        const struct shard_seal_result result = convert("same", shard, false, 1);
        assert_false(file_exists(made.bin[shard]));
        uint8_t *zst = file_read(sealed, &zst_bytes), *sealed_tmx = file_read(index, &sealed_tmx_bytes);
        assert_int_equal(result.sealed_bytes, zst_bytes);
        assert_int_equal(result.token_bytes, bin_bytes);
        (void)convert("same", shard, true, 3);
        assert_false(file_exists(sealed));
        assert_same_file(made.bin[shard], bin, bin_bytes);
        assert_same_file(index, tmx, tmx_bytes);
        (void)convert("same", shard, false, 7); /* the bytes do not depend on the threads */
        assert_same_file(sealed, zst, zst_bytes);
        assert_same_file(index, sealed_tmx, sealed_tmx_bytes);
        free(bin);
        free(tmx);
        free(zst);
        free(sealed_tmx);
    }
    struct tokmap_dataset *dataset;
    MUST(tokmap_dataset_open(&dataset, made.name, NULL, &error));
    assert_int_equal(faults_of(dataset), 0);
    tokmap_dataset_close(dataset);
    made_free(&made);
}

/* Makes one sealed shard of 70001 tokens, three frames, whose loaders deliver rows of 100. */
static void make_one(struct made *made, char index[640], char sealed[640])
{
    static int count;
    char name[32];
    (void)snprintf(name, sizeof name, "one%d", count++);
    static const uint64_t size = 70001;
    const struct shard_seal_options options = {.level = 3, .threads = 1};
    struct shard_seal_result result;
    made_new(made, folder, name, 2, 50257, &size, 1);
    index_path(index, name, 0);
    sealed_path(sealed, name, 0);
    MUST(shard_seal(index, &options, &result, &error));
}

/* Reads the one shard in order. Returns the first status that is not OK, and the rows before it. */
static enum tokmap_status outcome(const struct made *made, const struct way *way, uint64_t *rows)
{
    const struct shape shape = {100, TOKMAP_SEQUENTIAL, 1};
    struct simple_run options = SIMPLE_RUN_INIT;
    struct tokmap_loader_options opening = TOKMAP_LOADER_OPTIONS_INIT;
    struct tokmap_run *run;
    struct tokmap_loader *loader;
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    *rows = 0;
    options.data = made->name;
    options.seq_len = shape.seq_len;
    options.batch = 5;
    options.order = shape.order;
    options.passes = 1;
    options.reading = way->reading;
    enum tokmap_status status = simple_run_open(&run, &options, &error);
    if (status)
        return status;
    opening.threads = way->threads;
    opening.deadline_ns = way->deadline_ns;
    opening.drop_behind = way->drop_behind;
    opening.fields = 0;
    status = tokmap_loader_open(&loader, run, &opening, &error);
    while (!status) {
        status = tokmap_loader_next(loader, NULL, NULL, &batch, &error);
        for (uint64_t i = 0; !status && i < batch.count; i++, ++*rows)
            assert_true(made_row_is(made, batch.rows[i], batch.places[i].first_token, 101));
    }
    tokmap_loader_close(loader);
    tokmap_run_close(run);
    return status;
}

static enum tokmap_status verified(const struct made *made)
{
    struct tokmap_dataset *dataset;
    enum tokmap_status status = tokmap_dataset_open(&dataset, made->name, NULL, &error);
    if (!status && faults_of(dataset))
        status = error.status;
    tokmap_dataset_close(dataset);
    return status;
}

static void damaged_frames_are_found(void **unused)
{
    (void)unused;
    struct made made;
    char index[640], sealed[640];
    size_t bytes;
    uint64_t rows, whole;
    make_one(&made, index, sealed);
    uint8_t *sound = file_read(sealed, &bytes), *bad = malloc(bytes + 1);
    assert_int_equal(outcome(&made, &ways[0], &whole), TOKMAP_END);
    assert_int_equal(verified(&made), TOKMAP_OK);
    for (int n = 0; n < 60; n++) {
        /* Most are in the frames; the seek table is 41 bytes. */
        const size_t at = n < 41 ? bytes - 1 - (size_t)n : (size_t)random_below(&random_state, bytes - 41);
        memcpy(bad, sound, bytes);
        bad[at] ^= (uint8_t)(1u << n % 8);
        file_write(sealed, bad, bytes);
        const enum tokmap_status status = outcome(&made, &ways[n % WAYS], &rows);
        if (n < 41) { /* tokmap reads frames by its index */
            assert_int_equal(status, TOKMAP_END);
            assert_int_equal(rows, whole);
        } else {
            assert_int_equal(status, TOKMAP_ERROR_CORRUPT);
            assert_string_equal(error.path, sealed);
            assert_true(rows < whole);
        }
        assert_int_equal(verified(&made), TOKMAP_ERROR_CORRUPT);
        assert_string_equal(error.path, sealed);
    }
    /* Another size, and bytes of another kind. */
    memcpy(bad, sound, bytes);
    for (size_t cut = 0; cut < bytes; cut += 1 + bytes / 7) {
        file_write(sealed, bad, cut);
        assert_int_equal(outcome(&made, &ways[0], &rows), TOKMAP_ERROR_TRUNCATED);
    }
    bad[bytes] = 0;
    file_write(sealed, bad, bytes + 1);
    assert_int_equal(outcome(&made, &ways[0], &rows), TOKMAP_ERROR_TRUNCATED);
    memset(bad, 0, bytes);
    file_write(sealed, bad, bytes);
    assert_int_equal(outcome(&made, &ways[0], &rows), TOKMAP_ERROR_CORRUPT);
    assert_int_equal(rows, 0);
    (void)os_unlink(sealed);
    assert_int_equal(outcome(&made, &ways[0], &rows), TOKMAP_ERROR_NOT_FOUND);
    free(sound);
    free(bad);
    made_free(&made);
}

/* A file that is cut, or changed, under an open loader. */
static void changed_under_a_loader(void **unused)
{
    (void)unused;
    for (int way = 0; way < WAYS; way++)
        for (int cut = 0; cut < 2; cut++) {
            struct made made;
            char index[640], sealed[640];
            size_t bytes;
            int fd;
            const struct shape shape = {100, TOKMAP_SEQUENTIAL, 1};
            struct tokmap_batch batch = TOKMAP_BATCH_INIT;
            make_one(&made, index, sealed);
            uint8_t *sound = file_read(sealed, &bytes);
            struct tokmap_run *run = make_run(made.name, &shape, ways[way].reading);
            struct tokmap_loader *loader = open_loader(run, &ways[way], 0, 1, NULL);
            (void)read_batches(loader, &made, 2, NULL, 0);
            assert_int_equal(os_open(sealed, OS_WRITE_OLD, &fd), 0);
            if (cut)
                assert_int_equal(os_truncate(fd, 10), 0);
            else
                assert_int_equal(os_pwrite(fd, "0123456789abcdef", 16, 66000), 0);
            os_close(fd);
            enum tokmap_status status = TOKMAP_OK;
            for (int n = 0; n < 58 && !status; n++)
                if (!(status = tokmap_loader_next(loader, NULL, NULL, &batch, &error)))
                    for (uint64_t i = 0; i < batch.count; i++)
                        assert_true(made_row_is(&made, batch.rows[i], batch.places[i].first_token, 101));
            /* The 60 steps need the first frame only, which the loader may have unpacked before. */
            assert_true(!status || status == (cut ? TOKMAP_ERROR_TRUNCATED : TOKMAP_ERROR_CORRUPT));
            tokmap_loader_close(loader);
            tokmap_run_close(run);
            free(sound);
            made_free(&made);
            (void)os_unlink(sealed);
        }
}

/* The bytes of the section frames, in an index whose hashes are made right again. */
static void hostile_frames(void **unused)
{
    (void)unused;
    struct made made;
    struct index opened;
    char index[640], sealed[640];
    size_t bytes;
    uint64_t rows;
    make_one(&made, index, sealed);
    MUST(index_open(&opened, index, &error));
    const uint64_t at = opened.frames.offset, values[] = {0,
                                                          1,
                                                          65535,
                                                          65537,
                                                          1u << 31,
                                                          UINT64_MAX,
                                                          UINT64_MAX - 16,
                                                          (uint64_t)1 << 62,
                                                          opened.sealed_bytes,
                                                          opened.sealed_bytes - 1};
    assert_int_equal(index_frames(&opened), 3);
    index_close(&opened);
    uint8_t *sound = file_read(index, &bytes), *bad = malloc(bytes);
    for (uint64_t word = 0; word < 2 + 2 * 3; word++)
        for (size_t v = 0; v < sizeof values / sizeof values[0]; v++) {
            memcpy(bad, sound, bytes);
            if (load64(bad + at + 8 * word) == values[v])
                continue;
            store64(bad + at + 8 * word, values[v]);
            index_rehash(bad, bytes);
            (void)os_unlink(index);
            file_write(index, bad, bytes);
            const enum tokmap_status status = outcome(&made, &ways[v % WAYS], &rows);
            assert_true(status == TOKMAP_ERROR_CORRUPT || status == TOKMAP_ERROR_TRUNCATED);
            assert_true(verified(&made) != TOKMAP_OK);
            struct tokmap_dataset *dataset;
            if (!tokmap_dataset_open(&dataset, made.name, NULL, &error)) {
                (void)exercise_dataset(dataset);
                tokmap_dataset_close(dataset);
            }
        }
    free(sound);
    free(bad);
    made_free(&made);
}

/* What is refused, and leaves everything as it was. */
static void refused(void **unused)
{
    (void)unused;
    struct made made;
    char index[640], sealed[640], other[640];
    static const uint64_t size = 70001;
    struct shard_seal_options options = {.level = 3, .threads = 2};
    struct shard_seal_result result;
    made_new(&made, folder, "refused", 2, 50257, &size, 1);
    index_path(index, "refused", 0);
    sealed_path(sealed, "refused", 0);
    file_write_text(sealed, "something");
    assert_int_equal(shard_seal(index, &options, &result, &error), TOKMAP_ERROR_EXISTS);
    (void)os_unlink(sealed);
    (void)snprintf(other, sizeof other, "%.*sidx", (int)strlen(index) - 3, index);
    file_write_text(other, "MMIDIDX");
    assert_int_equal(shard_seal(index, &options, &result, &error), TOKMAP_ERROR_EXISTS);
    (void)os_unlink(other);
    /* Damaged tokens are not sealed. */
    size_t bytes;
    uint8_t *tokens = file_read(made.bin[0], &bytes);
    tokens[100] ^= 1;
    file_write(made.bin[0], tokens, bytes);
    assert_int_equal(shard_seal(index, &options, &result, &error), TOKMAP_ERROR_CORRUPT);
    assert_true(file_exists(made.bin[0]) && !file_exists(sealed));
    tokens[100] ^= 1;
    file_write(made.bin[0], tokens, bytes);
    MUST(shard_seal(index, &options, &result, &error));
    MUST(shard_seal(index, &options, &result, &error));
    assert_false(result.changed);
    options.replace = true;
    MUST(shard_seal(index, &options, &result, &error));
    assert_true(result.changed);
    options.replace = false;
    options.unseal = true;
    file_write_text(made.bin[0], "another file");
    assert_int_equal(shard_seal(index, &options, &result, &error), TOKMAP_ERROR_EXISTS);
    options.replace = true;
    MUST(shard_seal(index, &options, &result, &error));
    assert_same_file(made.bin[0], tokens, bytes);
    free(tokens);
    made_free(&made);
}

/* A block of zeros becomes a hole, and such a shard has no hashes of pages. */
static void zeros_become_holes(void **unused)
{
    (void)unused;
    struct shard_writer_options writing = plain_options(2);
    struct shard_writer *writer;
    struct shard_seal_options options = {.level = 1, .threads = 2};
    struct shard_seal_result result;
    struct os_stat found;
    size_t bin_bytes, tmx_bytes;
    const char *index = in_folder(folder, "zeros.tmx"), *bin = in_folder(folder, "zeros.bin");
    MUST(shard_writer_open(&writer, in_folder(folder, "zeros"), &writing, &error));
    MUST(shard_writer_add_zeros(writer, 3000000, &error));
    MUST(shard_writer_commit(writer, NULL, 0, NULL, &error));
    uint8_t *before = file_read(bin, &bin_bytes), *before_tmx = file_read(index, &tmx_bytes);
    MUST(shard_seal(index, &options, &result, &error));
    assert_true(result.sealed_bytes < 20000);
    options.unseal = true;
    MUST(shard_seal(index, &options, &result, &error));
    assert_same_file(bin, before, bin_bytes);
    assert_same_file(index, before_tmx, tmx_bytes);
    assert_int_equal(os_stat(bin, &found), 0);
    assert_true(found.allocated < 2000000);
    free(before);
    free(before_tmx);
}

static int setup_seed(void **state)
{
    const char *seed = getenv("TEST_SEED");
    random_state = seed ? strtoull(seed, NULL, 10) : 1;
    return setup(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sealed_is_read_as_plain_is, setup_seed, teardown),
        cmocka_unit_test_setup_teardown(ranges_of_sealed_tokens, setup_seed, teardown),
        cmocka_unit_test_setup_teardown(sealed_in_the_middle_of_a_run, setup_seed, teardown),
        cmocka_unit_test_setup_teardown(unsealing_gives_the_same_files, setup_seed, teardown),
        cmocka_unit_test_setup_teardown(damaged_frames_are_found, setup_seed, teardown),
        cmocka_unit_test_setup_teardown(changed_under_a_loader, setup_seed, teardown),
        cmocka_unit_test_setup_teardown(hostile_frames, setup_seed, teardown),
        cmocka_unit_test_setup_teardown(refused, setup_seed, teardown),
        cmocka_unit_test_setup_teardown(zeros_become_holes, setup_seed, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
