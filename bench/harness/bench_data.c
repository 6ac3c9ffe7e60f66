/* SPDX-License-Identifier: MIT */
/* bench_data.c - see bench_data.h. */
#include "bench_data.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "format/shard_writer.h"
#include "format/values_file.h"
#include "platform/os.h"
#include "text/path.h"

#define BATCH_TOKENS ((uint64_t)1 << 20)   /* tokens that are generated and written at a time */
#define BATCH_BYTES ((uint64_t)4 << 20)    /* of values */
#define VALUES_MADE ((uint64_t)2000000000) /* bytes of values, by default */

/* ---- a dataset of random tokens ---- */

struct maker {
    uint64_t width, vocabulary;
    uint64_t state;      /* of the random numbers */
    uint8_t *tokens;     /* of one batch: BATCH_TOKENS and four more */
    uint64_t *ends;      /* of its documents, in tokens from the start of the batch */
    bool masked, counts; /* the dataset has a mask; the current run of tokens counts */
    uint64_t mask_state, run;
};

/* Draws the length of a document. As in real text, many are short and few are long: the logarithm is uniform, the
 * lengths are 1 to 8,191, and their mean is 945. */
static uint64_t maker_length(struct maker *maker)
{
    uint64_t power = (uint64_t)1 << random_below(&maker->state, 13);
    return power + random_below(&maker->state, power);
}

/* Fills the batch with `count` random ids below the vocabulary. */
static void maker_tokens(struct maker *maker, uint64_t count)
{
    uint64_t limit = maker->vocabulary;
    if (maker->width == 2)
        for (uint64_t i = 0; i < count; i += 4) {
            uint64_t bits = random_next(&maker->state);
            for (uint64_t j = 0; j < 4; j++) /* may write up to three ids after the last one */
                store16(maker->tokens + 2 * (i + j), (uint16_t)((bits >> (16 * j) & 0xffff) * limit >> 16));
        }
    else
        for (uint64_t i = 0; i < count; i++)
            store32(maker->tokens + 4 * i, (uint32_t)random_below(&maker->state, limit));
}

/* Cuts the batch into documents, each of which ends with the largest id. The last document ends with the batch. Returns
 * the number of documents. */
static uint64_t maker_documents(struct maker *maker, uint64_t count)
{
    uint64_t documents = 0, end = 0;
    while (end < count) {
        end = min64(count, end + maker_length(maker));
        maker->ends[documents++] = end;
        if (maker->width == 2)
            store16(maker->tokens + 2 * (end - 1), (uint16_t)(maker->vocabulary - 1));
        else
            store32(maker->tokens + 4 * (end - 1), (uint32_t)(maker->vocabulary - 1));
    }
    return documents;
}

/* Adds the mask of `count` tokens. */
static enum tokmap_status maker_mask(struct maker *maker, struct shard_writer *writer, uint64_t count,
                                     struct tokmap_error *error)
{
    uint8_t bits[1024];
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t part; count && !status; count -= part) {
        part = min64(count, sizeof bits * 8);
        memset(bits, 0, sizeof bits);
        for (uint64_t i = 0; i < part; i++) {
            if (!maker->run--) {
                maker->run = random_below(&maker->mask_state, 400);
                maker->counts = !maker->counts;
            }
            bits[i / 8] |= (uint8_t)(maker->counts << i % 8);
        }
        status = shard_writer_mask(writer, bits, 0, part, error);
    }
    return status;
}

static enum tokmap_status maker_write(struct bench *bench, struct maker *maker, const char *prefix,
                                      struct tokmap_error *error)
{
    static const char about[] = "{\"tool\":\"tokmap-bench\",\"tokenizer\":{\"name\":\"random\"}}";
    struct shard_writer_options options = {.width = (uint32_t)maker->width,
                                           .vocabulary = maker->vocabulary,
                                           .eod_id = maker->vocabulary - 1,
                                           .bos_id = TOKMAP_NO_ID,
                                           .mask = maker->masked,
                                           .sync = true};
    struct shard_writer *writer = NULL;
    struct cli_progress progress;
    enum tokmap_status status = shard_writer_open(&writer, prefix, &options, error);
    if (status)
        return status;
    uint64_t left = bench->options.tokens;
    cli_progress_start(&progress, "creating the dataset", NULL, left * maker->width, bench->options.json);
    status = shard_writer_origin(writer, "random", 6, 0, error);
    while (!status && left) {
        uint64_t count = min64(left, BATCH_TOKENS);
        maker_tokens(maker, count);
        uint64_t documents = maker_documents(maker, count);
        status = shard_writer_add(writer, maker->tokens, count, maker->ends, documents, maker->vocabulary - 1, error);
        if (!status && maker->masked)
            status = maker_mask(maker, writer, count, error);
        left -= count;
        cli_progress_update(&progress, (bench->options.tokens - left) * maker->width);
        if (!status && bench_stopped())
            status = error_set(error, TOKMAP_ERROR_INTERRUPTED, prefix, TOKMAP_NO_OFFSET,
                               "Interrupted; the incomplete dataset is removed.");
    }
    cli_progress_end(&progress);
    if (!status)
        return shard_writer_commit(writer, about, sizeof about - 1, NULL, error);
    shard_writer_abort(writer);
    return status;
}

static void random_dataset_make(struct bench *bench, const char *label, bool masked, char prefix[BENCH_PATH])
{
    struct maker maker = {.width = bench->options.width, .state = 1, .masked = masked, .mask_state = 2};
    char size[32], count[32];
    assert(maker.width == 2 || maker.width == 4);
    made_shard(bench, label, prefix);
    maker.vocabulary = maker.width == 2 ? 50257 : 200019; /* those of GPT-2 and o200k_base */
    maker.tokens = bench_new(bench, BATCH_TOKENS + 4, maker.width);
    maker.ends = bench_new(bench, BATCH_TOKENS, sizeof *maker.ends);
    bench_say(bench, "creating a dataset of %s tokens (%s) in %s", cli_count(bench->options.tokens, count),
              cli_bytes(bench->options.tokens * maker.width, size), bench->options.folder);
    const enum tokmap_status status = maker_write(bench, &maker, prefix, &bench->error);
    free(maker.tokens);
    free(maker.ends);
    bench_stop_check(bench);
    bench_check(bench, status);
}

/* ---- names, datasets, runs ---- */

const char *dataset_name(struct bench *bench)
{
    if (bench->options.dataset)
        return bench->options.dataset;
    if (!bench->made_dataset[0]) {
        char prefix[BENCH_PATH];
        random_dataset_make(bench, "data", false, prefix);
        memcpy(bench->made_dataset, prefix, sizeof prefix);
        if (bench->options.keep)
            bench_say(bench, "the dataset is kept: %s", bench->made_dataset);
    }
    return bench->made_dataset;
}

void dataset_make_masked(struct bench *bench, char name[BENCH_PATH])
{
    random_dataset_make(bench, "masked", true, name);
}

static struct tokmap_dataset_info dataset_info(struct bench *bench, const struct tokmap_dataset *dataset)
{
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    const enum tokmap_status status = tokmap_dataset_info(dataset, &info);
    if (status)
        bench_check(bench,
                    error_set(&bench->error, status, NULL, TOKMAP_NO_OFFSET, "The dataset cannot be described."));
    return info;
}

struct opened dataset_open(struct bench *bench, enum tokmap_reading reading)
{
    struct opened opened = {.first = TOKMAP_SHARD_INFO_INIT};
    struct tokmap_dataset_options options = TOKMAP_DATASET_OPTIONS_INIT;
    options.reading = reading;
    bench_check(bench, tokmap_dataset_open(&opened.dataset, dataset_name(bench), &options, &bench->error));
    opened.info = dataset_info(bench, opened.dataset);
    if (opened.info.shards)
        bench_check(bench, tokmap_dataset_shard(opened.dataset, 0, &opened.first, &bench->error));
    return opened;
}

struct tokmap_run *run_of_dataset(struct bench *bench, const char *dataset, const char *numbers,
                                  enum tokmap_reading reading)
{
    struct tokmap_run *run = NULL;
    struct tokmap_run_options options = TOKMAP_RUN_OPTIONS_INIT;
    struct bytes_buffer text = {0};
    const char quote = '"', escape = '\\';
    bool fits = bytes_append(&text, numbers, strlen(numbers)) && bytes_append(&text, "source data \"", 13);
    for (const char *at = dataset; *at && fits; at++)
        fits = (*at != quote && *at != escape) || bytes_append(&text, &escape, 1) ? bytes_append(&text, at, 1) : false;
    options.reading = reading;
    bench_check(bench, fits && bytes_append(&text, "\"\n", 3)
                           ? tokmap_run_parse(&run, (const char *)text.bytes, &options, &bench->error)
                           : error_set_memory(&bench->error, "the run's text", strlen(dataset)));
    bytes_free(&text);
    return run;
}

struct tokmap_run *run_make(struct bench *bench, const char *dataset, enum tokmap_reading reading, uint64_t seed,
                            uint64_t steps)
{
    const struct bench_options *options = &bench->options;
    char numbers[256], end[64] = "";
    if (steps != TOKMAP_FOREVER)
        (void)snprintf(end, sizeof end, "steps %" PRIu64 "\n", steps);
    (void)snprintf(numbers, sizeof numbers,
                   "seq_len %" PRIu64 "\nlookahead %" PRIu64 "\nbatch %" PRIu64 "\nseed %" PRIu64 "\norder %s\n%s",
                   options->seq_len, options->lookahead, options->batch, options->seed + seed - 1,
                   options->order == TOKMAP_SEQUENTIAL ? "sequential" : "shuffle", end);
    return run_of_dataset(bench, dataset, numbers, reading);
}

struct run_data run_get_data(struct bench *bench, const struct tokmap_run *run)
{
    struct run_data data = {.source = TOKMAP_SOURCE_INFO_INIT};
    const enum tokmap_status status = tokmap_run_source(run, 0, &data.source);
    if (status)
        bench_check(bench, error_set(&bench->error, status, NULL, TOKMAP_NO_OFFSET,
                                     "The source of the run cannot be described."));
    data.info = dataset_info(bench, data.source.dataset);
    return data;
}

/* ==== what the command line names ==== */

/* Returns the first option that a run file contradicts, or NULL. */
static const char *contradiction(const struct bench_options *options)
{
    return options->seq_len_given        ? "seq-len"
           : options->batch_given        ? "batch"
           : options->batch_tokens_given ? "batch-tokens"
                                         : NULL;
}

/* Opens a dataset that the user named, so that a wrong name is an error before anything is measured, and prints its
 * warning, as the other commands do. */
static enum tokmap_status named_check(const struct bench *bench, const char *name, struct tokmap_error *error)
{
    struct tokmap_dataset *dataset = NULL;
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    const enum tokmap_status status = tokmap_dataset_open(&dataset, name, NULL, error);
    if (!status && !tokmap_dataset_info(dataset, &info) && info.warning)
        cli_warn(bench->program, "%s: %s", bench->options.run_file ? bench->options.run_file : name, info.warning);
    tokmap_dataset_close(dataset);
    return status;
}

/* Takes everything from the run file. The name of its dataset outlives the run in `data`. */
static enum tokmap_status run_file_read(struct bench_options *options, char data[BENCH_PATH],
                                        struct tokmap_error *error)
{
    struct tokmap_run *run = NULL;
    struct tokmap_run_info info = TOKMAP_RUN_INFO_INIT;
    struct tokmap_source_info source = TOKMAP_SOURCE_INFO_INIT;
    enum tokmap_status status = tokmap_run_open(&run, options->run_file, NULL, error);
    if (status)
        return status;
    status = tokmap_run_info(run, &info);
    if (!status)
        status = tokmap_run_source(run, 0, &source);
    if (status) {
        status = error_set(error, status, options->run_file, TOKMAP_NO_OFFSET, "The run cannot be described.");
    } else if (snprintf(data, BENCH_PATH, "%s", source.data) >= BENCH_PATH) {
        status = error_set(error, TOKMAP_ERROR_LIMIT, options->run_file, TOKMAP_NO_OFFSET,
                           "The name of the run's dataset has more than %d bytes.", BENCH_PATH - 1);
    } else {
        options->seq_len = info.seq_len;
        options->lookahead = max64(1, info.lookahead); /* the cases deliver targets */
        options->batch = info.batch;
        options->seed = info.seed;
        options->order = (int)info.order;
        options->dataset = data;
    }
    tokmap_run_close(run);
    return status;
}

uint64_t operand_slice(const struct bench *bench)
{
    const struct bench_options *options = &bench->options;
    return mul_div(options->batch, bench->rank + 1, options->world) -
           mul_div(options->batch, bench->rank, options->world);
}

/* Cuts the slice of a rank into calls of next() as the loader does, and sets rows to the largest of them. */
static void calls_cut(struct bench_options *options)
{
    const uint64_t slice = div_ceil(options->batch, options->world);
    const uint64_t most = options->rows_given ? min64(options->rows, slice) : slice;
    const uint64_t calls = div_ceil(slice, most);
    options->rows = div_ceil(slice, calls);
}

void operand_rows(struct bench *bench, uint64_t rows)
{
    if (bench->options.run_file)
        return;
    bench->options.rows = rows;
    bench->options.batch = rows * bench->options.world;
}

int operand_resolve(const struct cli_command *command, struct bench *bench, const char *operand)
{
    static char data[BENCH_PATH];
    struct bench_options *options = &bench->options;
    options->dataset = operand;
    if (operand && cli_names_run(operand)) {
        const char *given = contradiction(options);
        if (given)
            return cli_misused(command, "--%s is only for datasets; the run file '%s' already sets it", given, operand);
        options->run_file = operand;
        bench_check(bench, run_file_read(options, data, &bench->error));
    }
    if (options->dataset && !options->child)
        bench_check(bench, named_check(bench, options->dataset, &bench->error));
    if (!options->world_given)
        options->world = options->ranks;
    if (options->ranks > options->world)
        return cli_misused(command, "--ranks %" PRIu64 " on this machine are more than the --world of %" PRIu64,
                           options->ranks, options->world);
    if (!options->run_file && !options->batch_given)
        options->batch = options->rows * options->world;
    if (options->world > options->batch)
        return cli_misused(command, "%" PRIu64 " ranks cannot share a global batch of %" PRIu64 " rows; lower --%s",
                           options->world, options->batch, options->world_given ? "world" : "ranks");
    if (options->run_file || options->batch_given)
        calls_cut(options);
    return -1;
}

/* ==== files that the command creates ==== */

#define SUFFIX_MOST 32 /* room for ".tmx.partial" and the like */

struct made_files {
    char id[32];
    char tree[BENCH_PATH]; /* the folder of made_tree(), or "" */
    char **paths;
    size_t count, capacity;
};

/* Returns the list, which the first call creates. */
static struct made_files *made_list(struct bench *bench)
{
    if (!bench->made) {
        bench->made = bench_new(bench, 1, sizeof *bench->made);
        (void)snprintf(bench->made->id, sizeof bench->made->id, "%" PRIx64, os_clock_ns());
    }
    return bench->made;
}

void made_path(struct bench *bench, const char *name, char path[BENCH_PATH])
{
    const int length =
        snprintf(path, BENCH_PATH, "%s/tokmap-bench-%s-%s", bench->options.folder, made_list(bench)->id, name);
    if (length <= 0 || length >= BENCH_PATH - SUFFIX_MOST)
        bench_failed_system(bench, ENAMETOOLONG, bench->options.folder,
                            "The paths of files in this folder would be too long; give a shorter --dir.");
}

void made_add(struct bench *bench, const char *path)
{
    struct made_files *made = made_list(bench);
    if (made->count == made->capacity) {
        const size_t capacity = made->capacity ? 2 * made->capacity : 64;
        char **grown = realloc(made->paths, capacity * sizeof *grown);
        if (!grown)
            bench_no_memory(bench);
        made->paths = grown;
        made->capacity = capacity;
    }
    char *copy = strdup(path);
    if (!copy)
        bench_no_memory(bench);
    made->paths[made->count++] = copy;
}

void made_file(struct bench *bench, const char *name, char path[BENCH_PATH])
{
    made_path(bench, name, path);
    made_add(bench, path);
}

void made_tree(struct bench *bench, const char *name, char path[BENCH_PATH])
{
    made_file(bench, name, path);
    bench_check_system(bench, os_make_folder(path), path, "The folder cannot be created.");
    (void)snprintf(bench->made->tree, sizeof bench->made->tree, "%s", path);
}

void made_shard(struct bench *bench, const char *name, char prefix[BENCH_PATH])
{
    static const char *const endings[] = {".bin", ".tmx", ".mask"}; /* a shard need not have the last */
    made_path(bench, name, prefix);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        char path[BENCH_PATH + 8];
        (void)snprintf(path, sizeof path, "%s%s", prefix, endings[i]);
        made_add(bench, path);
    }
}

void made_write(struct bench *bench, const char *path, const void *bytes, size_t count, const char *failed)
{
    int fd;
    bench_check_system(bench, os_open(path, OS_WRITE_NEW, &fd), path, failed);
    const int system = os_write(fd, bytes, count);
    os_close(fd);
    bench_check_system(bench, system, path, failed);
}

struct removal {
    const char *folder;
    unsigned depth;
};

static void folder_empty(const char *path, unsigned depth);

static int entry_remove(void *user, const char *name)
{
    const struct removal *removal = user;
    char path[BENCH_PATH];
    if (snprintf(path, sizeof path, "%s/%s", removal->folder, name) >= BENCH_PATH)
        return 0;                    /* too long for us; the folder then stays */
    if (os_unlink(path) == EISDIR) { /* links are removed, not followed */
        folder_empty(path, removal->depth + 1);
        (void)os_remove_folder(path);
    }
    return 0;
}

/* Removes what a folder contains, down to a depth that no converted data has. */
static void folder_empty(const char *path, unsigned depth)
{
    struct removal removal = {path, depth};
    if (depth < 32)
        (void)os_folder_list(path, entry_remove, &removal);
}

void made_tree_empty(struct bench *bench)
{
    if (bench->made && *bench->made->tree)
        folder_empty(bench->made->tree, 0);
}

static void remove_at(struct made_files *made, size_t i, bool keep)
{
    if (!keep && !strcmp(made->paths[i], made->tree))
        folder_empty(made->tree, 0);
    if (!keep && os_unlink(made->paths[i]) == EISDIR)
        (void)os_remove_folder(made->paths[i]);
    free(made->paths[i]);
    made->paths[i] = made->paths[--made->count];
}

void made_file_remove(struct bench *bench, const char *path)
{
    struct made_files *made = bench->made;
    for (size_t i = made ? made->count : 0; i-- > 0;)
        if (!strcmp(made->paths[i], path))
            remove_at(made, i, bench->options.keep);
}

void made_files_remove(struct bench *bench)
{
    struct made_files *made = bench->made;
    while (made && made->count) /* files before the folder that they are in, which was added before them */
        remove_at(made, made->count - 1, bench->options.keep);
    if (made)
        free(made->paths);
    free(made);
    bench->made = NULL;
}

/* ==== values beside a dataset ==== */

/* Puts random values of `bytes` bytes for all tokens, one after another. */
static enum tokmap_status values_fill(struct bench *bench, struct tokmap_values_writer *writer, uint64_t tokens,
                                      uint64_t bytes)
{
    const uint64_t batch = max64(1, BATCH_BYTES / bytes);
    uint64_t *random = bench_new(bench, div_ceil(batch * bytes, 8), 8), state = 3;
    const void *const arrays[] = {random};
    enum tokmap_status status = TOKMAP_OK;
    struct cli_progress progress;
    cli_progress_start(&progress, "creating the values", NULL, tokens * bytes, bench->options.json);
    for (uint64_t first = 0, count; first < tokens && !status && !bench_stopped(); first += count) {
        count = min64(batch, tokens - first);
        for (uint64_t i = 0; i < div_ceil(count * bytes, 8); i++)
            random[i] = random_next(&state);
        status = tokmap_values_put_at(writer, first, count, arrays, &bench->error);
        cli_progress_update(&progress, (first + count) * bytes);
    }
    cli_progress_end(&progress);
    free(random);
    return status;
}

/* Creates values of `bytes` bytes a token beside the dataset that dataset_name() has created. Sets their name. */
static void values_make(struct bench *bench, const struct tokmap_dataset *dataset, uint64_t bytes)
{
    static char name[64];
    char arrays[96], path[BENCH_PATH + 96], size[32];
    struct tokmap_values_writer *writer = NULL;
    const char *const endings[] = {"", ".partial"};
    const uint64_t tokens = dataset_info(bench, dataset).tokens;
    (void)snprintf(name, sizeof name, "bench_%s", made_list(bench)->id);
    (void)snprintf(arrays, sizeof arrays, "%s:u8[%" PRIu64 "]", name, bytes);
    for (int i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "%s.%s.values%s", bench->made_dataset, name, endings[i]);
        made_add(bench, path);
    }
    bench_say(bench, "creating %s of values", cli_bytes(tokens * bytes, size));
    bench_check(bench, tokmap_values_open(&writer, dataset, arrays, NULL, &bench->error));
    enum tokmap_status status = values_fill(bench, writer, tokens, bytes);
    if (!status && !bench_stopped())
        status = tokmap_values_finish(writer, NULL, NULL, &bench->error);
    const enum tokmap_status closed = tokmap_values_close(writer, status ? NULL : &bench->error);
    (void)snprintf(path, sizeof path, "%s/%s.values.notes", bench->options.folder, name);
    folder_empty(path, 0); /* the folder is still there if the values were not finished */
    (void)os_remove_folder(path);
    bench_stop_check(bench);
    bench_check(bench, status ? status : closed);
    bench->options.values = name;
}

const char *dataset_values_name(struct bench *bench, const struct tokmap_dataset *dataset)
{
    uint64_t bytes;
    if (cli_parse_size(bench->options.values, &bytes))
        values_make(bench, dataset, bytes);
    return bench->options.values;
}

int values_resolve(const struct cli_command *command, struct bench *bench)
{
    struct bench_options *options = &bench->options;
    uint64_t bytes;
    if (!options->values)
        return -1;
    const bool number = cli_parse_size(options->values, &bytes);
    if (options->device_given)
        return cli_misused(command, "--values measures batches on the host, so leave --device out");
    if (!number && !options->dataset)
        return cli_misused(command,
                           "--values %s is a name, so name the dataset that has these values, too, or give the bytes "
                           "of a token's values for a dataset that is created",
                           options->values);
    if (number && options->dataset)
        return cli_misused(command,
                           "--values %s is a size, and values are created only beside a dataset that is created; give "
                           "the name of values that '%s' has",
                           options->values, options->dataset);
    if (number && (!bytes || bytes > VALUES_TOKEN_MOST))
        return cli_misused(command, "--values must be from 1 to %d bytes, or a name", (int)VALUES_TOKEN_MOST);
    if (number && !options->tokens_given)
        options->tokens = max64(1, VALUES_MADE / (options->quick ? 5 : 1) / bytes);
    return -1;
}
