/* dataset_make.c - see dataset_make.h. */
#include "dataset_make.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "common/error.h"
#include "format/shard_writer.h"
#include "platform/os.h"

#define MADE_MAX 256
#define BATCH_TOKENS ((uint64_t)1 << 20) /* made at a time */

struct made {
    char id[32];
    char *paths[MADE_MAX];
    size_t count;
    char dataset[BENCH_PATH];
};

/* ---- files to remove ---- */

static struct made *made_of(struct bench *bench)
{
    if (!bench->made) {
        bench->made = calloc(1, sizeof *bench->made);
        if (bench->made)
            (void)snprintf(bench->made->id, sizeof bench->made->id, "%" PRIx64, os_clock_ns());
    }
    return bench->made;
}

bool made_path(struct bench *bench, const char *name, char path[BENCH_PATH])
{
    struct made *made = made_of(bench);
    if (!made)
        return false;
    int length = snprintf(path, BENCH_PATH, "%s/tokmap-bench-%s-%s", bench->options.folder, made->id, name);
    return length > 0 && length < BENCH_PATH - 32; /* room for ".tmx.partial" and the like */
}

bool made_add(struct bench *bench, const char *path)
{
    struct made *made = made_of(bench);
    if (!made || made->count == MADE_MAX)
        return false;
    char *copy = strdup(path);
    if (copy)
        made->paths[made->count++] = copy;
    return copy != NULL;
}

static void made_forget(struct made *made, size_t i, bool keep)
{
    if (!keep)
        (void)os_unlink(made->paths[i]);
    free(made->paths[i]);
    made->paths[i] = made->paths[--made->count];
}

void made_remove(struct bench *bench, const char *path)
{
    struct made *made = bench->made;
    for (size_t i = made ? made->count : 0; i-- > 0;)
        if (!strcmp(made->paths[i], path))
            made_forget(made, i, bench->options.keep);
}

void made_remove_all(struct bench *bench)
{
    struct made *made = bench->made;
    while (made && made->count)
        made_forget(made, made->count - 1, bench->options.keep);
    free(made);
    bench->made = NULL;
}

/* Both files of a shard. */
static bool made_add_shard(struct bench *bench, const char *prefix)
{
    static const char *const endings[] = {".bin", ".tmx"};
    for (size_t i = 0; i < 2; i++) {
        char path[BENCH_PATH + 8];
        (void)snprintf(path, sizeof path, "%s%s", prefix, endings[i]);
        if (!made_add(bench, path))
            return false;
    }
    return true;
}

/* ---- a dataset of random tokens ---- */

struct maker {
    uint64_t width, vocabulary, state, largest;
    uint64_t document_left; /* tokens of the document that is under way */
    uint8_t *tokens;
    uint64_t *ends;
};

/* Lengths as of real text: many short, few long. Uniform in the logarithm, 1 to 8,191, 945 on average. */
static uint64_t maker_document(struct maker *maker)
{
    uint64_t power = (uint64_t)1 << random_below(&maker->state, 13);
    return power + random_below(&maker->state, power);
}

/* Fills `count` tokens with ids below the vocabulary. */
static void maker_tokens(struct maker *maker, uint64_t count)
{
    uint64_t limit = maker->vocabulary;
    if (maker->width == 2)
        for (uint64_t i = 0; i < count; i += 4) {
            uint64_t bits = random_next(&maker->state);
            for (uint64_t j = 0; j < 4; j++) /* the buffer has room for three more */
                store16(maker->tokens + 2 * (i + j), (uint16_t)((bits >> (16 * j) & 0xffff) * limit >> 16));
        }
    else
        for (uint64_t i = 0; i < count; i++)
            store32(maker->tokens + 4 * i, (uint32_t)random_below(&maker->state, limit));
}

/* Cuts them into documents, each ended by the largest id; the last ends with the buffer. Returns their number. */
static uint64_t maker_documents(struct maker *maker, uint64_t count)
{
    uint64_t documents = 0, end = 0;
    while (end < count) {
        end = min64(count, end + maker_document(maker));
        maker->ends[documents++] = end;
        if (maker->width == 2)
            store16(maker->tokens + 2 * (end - 1), (uint16_t)(maker->vocabulary - 1));
        else
            store32(maker->tokens + 4 * (end - 1), (uint32_t)(maker->vocabulary - 1));
    }
    return documents;
}

static enum tokmap_status maker_write(struct bench *bench, struct maker *maker, const char *prefix,
                                      struct tokmap_error *error)
{
    static const char about[] = "{\"tool\":\"tokmap-bench\",\"tokenizer\":{\"name\":\"random\"}}";
    struct shard_writer_options options = {.width = (uint32_t)maker->width,
                                           .vocabulary = maker->vocabulary,
                                           .eod_id = maker->vocabulary - 1,
                                           .bos_id = TOKMAP_NO_ID,
                                           .sync = true};
    struct shard_writer *writer = NULL;
    struct cli_progress progress;
    enum tokmap_status status = shard_writer_open(&writer, prefix, &options, error);
    if (status)
        return status;
    uint64_t left = bench->options.tokens;
    cli_progress_start(&progress, "making the dataset", left * maker->width, bench->options.json);
    status = shard_writer_origin(writer, "random", 6, 0, error);
    while (!status && left) {
        uint64_t count = min64(left, BATCH_TOKENS);
        maker_tokens(maker, count);
        uint64_t documents = maker_documents(maker, count);
        status = shard_writer_add(writer, maker->tokens, count, maker->ends, documents, maker->vocabulary - 1, error);
        left -= count;
        cli_progress_update(&progress, (bench->options.tokens - left) * maker->width);
        if (!status && bench_stopped())
            status = error_set(error, TOKMAP_ERROR_INTERRUPTED, prefix, TOKMAP_NO_OFFSET,
                               "Interrupted; what was written is removed.");
    }
    cli_progress_end(&progress);
    if (!status)
        return shard_writer_commit(writer, about, sizeof about - 1, NULL, error);
    shard_writer_abort(writer);
    return status;
}

static int dataset_make(struct bench *bench, const char *prefix)
{
    struct maker maker = {.width = bench->options.width, .state = 1};
    struct tokmap_error error = {0};
    char size[32], count[32];
    maker.vocabulary = maker.width == 2 ? 50257 : 200019;
    maker.tokens = malloc((size_t)((BATCH_TOKENS + 4) * maker.width));
    maker.ends = malloc((size_t)(BATCH_TOKENS * sizeof *maker.ends));
    enum tokmap_status status = TOKMAP_ERROR_MEMORY;
    if (maker.tokens && maker.ends && made_add_shard(bench, prefix)) {
        bench_talk(bench, "making a dataset of %s tokens (%s) in %s", cli_count(bench->options.tokens, count),
                   cli_bytes(bench->options.tokens * maker.width, size), bench->options.folder);
        status = maker_write(bench, &maker, prefix, &error);
    } else {
        (void)error_set_memory(&error, "a dataset", BATCH_TOKENS * 12);
    }
    free(maker.tokens);
    free(maker.ends);
    if (status && !bench_stopped())
        return bench_failed(bench, &error);
    return status ? CLI_FAILED : CLI_DONE;
}

/* ---- sparse datasets ---- */

#define SPARSE_DOCUMENT ((uint64_t)1 << 20)

static enum tokmap_status sparse_shard(const char *prefix, uint64_t tokens, struct tokmap_error *error)
{
    static const char about[] = "{\"tool\":\"tokmap-bench\",\"tokenizer\":{\"name\":\"zeros\"}}";
    struct shard_writer_options options = {
        .width = 2, .vocabulary = 50257, .eod_id = TOKMAP_NO_ID, .bos_id = TOKMAP_NO_ID, .sync = false};
    struct shard_writer *writer = NULL;
    enum tokmap_status status = shard_writer_open(&writer, prefix, &options, error);
    if (status)
        return status;
    status = shard_writer_origin(writer, "zeros", 5, 0, error);
    while (!status && tokens) {
        uint64_t count = min64(tokens, SPARSE_DOCUMENT);
        status = shard_writer_add_zeros(writer, count, error);
        tokens -= count;
        if (!status && bench_stopped())
            status = error_set(error, TOKMAP_ERROR_INTERRUPTED, prefix, TOKMAP_NO_OFFSET, "Interrupted.");
    }
    if (!status)
        return shard_writer_commit(writer, about, sizeof about - 1, NULL, error);
    shard_writer_abort(writer);
    return status;
}

/* A manifest of shards that lie in its own folder. 0 or an errno. */
static int sparse_manifest(const char *path, const char *const *names, uint64_t count)
{
    int fd;
    int system = os_open(path, OS_WRITE_NEW, &fd);
    if (system)
        return system;
    system = os_write(fd, "tokmap-shards 1\n", 16);
    for (uint64_t i = 0; !system && i < count; i++) {
        const char *slash = strrchr(names[i], '/');
        const char *name = slash ? slash + 1 : names[i];
        system = os_write(fd, name, strlen(name));
        if (!system)
            system = os_write(fd, "\n", 1);
    }
    os_close(fd);
    return system;
}

#define SPARSE_SHARDS_MAX 16

int dataset_make_sparse(struct bench *bench, const char *label, uint64_t shards, uint64_t tokens_a_shard,
                        char name[BENCH_PATH], bool *unsupported)
{
    static char prefixes[SPARSE_SHARDS_MAX][BENCH_PATH];
    const char *names[SPARSE_SHARDS_MAX];
    struct tokmap_error error = {0};
    char part[64];
    *unsupported = false;
    for (uint64_t i = 0; i < shards && i < SPARSE_SHARDS_MAX; i++) {
        (void)snprintf(part, sizeof part, "%s-%" PRIu64, label, i);
        names[i] = prefixes[i];
        if (!made_path(bench, part, prefixes[i]) || !made_add_shard(bench, prefixes[i]))
            return bench_failed_system(bench, ENAMETOOLONG, bench->options.folder, "Give a shorter --dir.");
        if (sparse_shard(prefixes[i], tokens_a_shard, &error)) {
            *unsupported = error.system == EFBIG || error.system == EOVERFLOW || error.system == EINVAL;
            if (*unsupported)
                bench_talk(bench, "%s is left out: the file system holds no files of that size", label);
            if (*unsupported || bench_stopped())
                return *unsupported ? CLI_DONE : CLI_FAILED;
            return bench_failed(bench, &error);
        }
    }
    if (shards == 1) {
        memcpy(name, prefixes[0], BENCH_PATH);
        return CLI_DONE;
    }
    (void)snprintf(part, sizeof part, "%s.shards", label);
    if (!made_path(bench, part, name) || !made_add(bench, name))
        return bench_failed_system(bench, ENAMETOOLONG, bench->options.folder, "Give a shorter --dir.");
    int system = sparse_manifest(name, names, shards);
    if (system)
        return bench_failed_system(bench, system, name, "The manifest cannot be written.");
    return CLI_DONE;
}

int dataset_get(struct bench *bench, const char **name)
{
    *name = bench->options.dataset;
    if (*name)
        return CLI_DONE;
    struct made *made = made_of(bench);
    if (!made)
        return bench_no_memory(bench);
    if (!made->dataset[0]) {
        char prefix[BENCH_PATH];
        if (!made_path(bench, "data", prefix))
            return bench_failed_system(bench, ENAMETOOLONG, bench->options.folder, "Give a shorter --dir.");
        int result = dataset_make(bench, prefix);
        if (result)
            return result;
        memcpy(made->dataset, prefix, sizeof prefix);
        if (bench->options.keep)
            bench_talk(bench, "the dataset stays: %s", made->dataset);
    }
    *name = made->dataset;
    return CLI_DONE;
}

int dataset_open(struct bench *bench, enum tokmap_reading reading, struct tokmap_dataset **dataset)
{
    const char *name;
    struct tokmap_dataset_options options = TOKMAP_DATASET_OPTIONS_INIT;
    struct tokmap_error error = {0};
    int result = dataset_get(bench, &name);
    if (result)
        return result;
    options.reading = reading;
    if (tokmap_dataset_open(dataset, name, &options, &error))
        return bench_failed(bench, &error);
    return CLI_DONE;
}

int run_make(struct bench *bench, const char *data, enum tokmap_reading reading, uint64_t seed, uint64_t steps,
             struct tokmap_run **run)
{
    struct tokmap_run_options options = TOKMAP_RUN_OPTIONS_INIT;
    struct tokmap_error error = {0};
    options.data = data;
    options.seq_len = bench->options.seq_len;
    options.batch = bench->options.rows;
    options.seed = seed;
    options.steps = steps;
    options.reading = reading;
    if (tokmap_run_make(run, &options, &error))
        return bench_failed(bench, &error);
    return CLI_DONE;
}

/* ---- the page cache ---- */

#define PROBES 64

/* Probes of a file that are in the page cache, of PROBES. */
static int probes_cached(int fd, uint64_t bytes, uint32_t *cached)
{
    uint64_t state = 7;
    *cached = 0;
    for (int i = 0; i < PROBES; i++) {
        char byte;
        size_t got = 0;
        int system = os_pread_cached(fd, &byte, 1, random_below(&state, bytes), &got);
        if (system && system != EAGAIN)
            return system;
        *cached += !system && got;
    }
    return 0;
}

static int file_drop(struct bench *bench, const char *path)
{
    int fd;
    uint32_t cached = PROBES;
    struct os_stat stat;
    int system = os_open(path, OS_READ, &fd);
    if (system)
        return bench_failed_system(bench, system, path, "The tokens cannot be opened.");
    if (os_file_is_memory(fd)) {
        os_close(fd);
        struct tokmap_error error = {0};
        (void)error_set(
            &error, TOKMAP_ERROR_UNSUPPORTED, path, TOKMAP_NO_OFFSET,
            "This file system keeps its files in memory (tmpfs): there is nothing to read cold. Give a --dir, "
            "or a dataset, on a disk.");
        return bench_failed(bench, &error);
    }
    system = os_fstat(fd, &stat);
    for (int attempt = 0; !system && cached > PROBES / 16 && attempt < 3; attempt++) {
        system = os_sync(fd); /* only clean pages can go */
        os_advise_drop(fd, 0, stat.bytes);
        if (!system && stat.bytes)
            system = probes_cached(fd, stat.bytes, &cached);
        if (!stat.bytes)
            cached = 0;
    }
    os_close(fd);
    if (system == ENOTSUP)
        return CLI_DONE; /* this kernel cannot tell; the advice was given */
    if (system)
        return bench_failed_system(bench, system, path, "The tokens could not be dropped from the page cache.");
    if (cached > PROBES / 16) {
        struct tokmap_error error = {0};
        (void)error_set(&error, TOKMAP_ERROR_BUSY, path, TOKMAP_NO_OFFSET,
                        "%" PRIu32 " of %d pages looked at stayed in the page cache after they were dropped; another "
                        "process has the file mapped. End it, or measure on another dataset.",
                        cached, PROBES);
        return bench_failed(bench, &error);
    }
    return CLI_DONE;
}

static int file_warm(struct bench *bench, const char *path)
{
    static char buffer[1 << 20];
    int fd;
    uint64_t at = 0;
    size_t got = 0;
    int system = os_open(path, OS_READ, &fd);
    if (system)
        return bench_failed_system(bench, system, path, "The tokens cannot be opened.");
    if (!os_file_is_memory(fd)) {
        (void)os_sync(fd);
        os_advise_drop(fd, 0, 0);
    }
    do {
        system = os_pread(fd, buffer, sizeof buffer, at, &got);
        at += got;
    } while (!system && got == sizeof buffer && !bench_stopped());
    os_close(fd);
    if (system)
        return bench_failed_system(bench, system, path, "The tokens cannot be read.");
    return CLI_DONE;
}

static int each_shard(struct bench *bench, const struct tokmap_dataset *dataset,
                      int (*file)(struct bench *bench, const char *path))
{
    struct tokmap_dataset_info info = {.size = sizeof info};
    int result = tokmap_dataset_info(dataset, &info) ? CLI_FAILED : CLI_DONE;
    for (uint64_t i = 0; !result && i < info.shards; i++) {
        struct tokmap_shard_info shard = {.size = sizeof shard};
        struct tokmap_error error = {0};
        if (tokmap_dataset_shard(dataset, i, &shard, &error))
            result = bench_failed(bench, &error);
        else
            result = file(bench, shard.tokens_path);
    }
    return result;
}

int dataset_drop(struct bench *bench, const struct tokmap_dataset *dataset)
{
    return each_shard(bench, dataset, file_drop);
}

int dataset_warm(struct bench *bench, const struct tokmap_dataset *dataset)
{
    struct tokmap_dataset_info info = {.size = sizeof info};
    if (!tokmap_dataset_info(dataset, &info) && info.shards && info.tokens > os_memory_limit() / 2 / info.width) {
        bench_talk(bench, "the dataset does not fit half of the memory: it is measured as it lies");
        return CLI_DONE;
    }
    return each_shard(bench, dataset, file_warm);
}
