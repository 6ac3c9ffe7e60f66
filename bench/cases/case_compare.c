/* SPDX-License-Identifier: MIT */
/*
 * case_compare.c - the cases `compare` and `faults`.
 *
 * `compare` is tokmap beside other systems, on the same tokens, in the same minutes.
 *
 * The scripts in bench/peers/compare run the systems and print what they measured, line by line. This case finds or
 * makes the tokens, starts the script of a table, and prints the table.
 */
#include "cases.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/report.h"
#include "common/bytes.h"
#include "common/error.h"
#include "corpus/records.h"
#include "dedup/document_bands.h"
#include "format/shard_writer.h"
#include "harness/bench_data.h"
#include "harness/loops.h"
#include "peers/scripts.h"
#include "peers/wide.h"
#include "platform/os.h"
#include "text/path.h"

/* ---- the row `tokmap in C`: a process with nothing but a loader ---- */

#define SAMPLES ((size_t)1 << 18) /* calls of a turn that are timed; those after them only count */

struct served {
    struct bench *bench;
    struct tokmap_run *run;
    struct reader reader;
    struct samples samples;
    struct cli_json json;
};

static void answer_begin(struct served *served)
{
    cli_json_begin(&served->json, stdout);
    cli_json_object(&served->json, NULL);
}

static void answer_end(struct served *served)
{
    cli_json_end(&served->json);
    if (!cli_flush())
        bench_end(served->bench, CLI_FAILED);
}

/* Returns the CRC-32 of zlib. */
static uint32_t crc32_of(const void *bytes, size_t count)
{
    const uint8_t *at = bytes;
    uint32_t sum = UINT32_MAX;
    for (size_t i = 0; i < count; i++) {
        sum ^= at[i];
        for (int bit = 0; bit < 8; bit++)
            sum = sum >> 1 ^ (sum & 1 ? UINT32_C(0xedb88320) : 0);
    }
    return ~sum;
}

static const int64_t *row_at(const void *outputs, const struct bench *bench, uint64_t row)
{
    return (const int64_t *)outputs + row * bench->options.seq_len;
}

/* Adds the checksums of the last batch's rows to the array that is open. */
static void sums_add(struct served *served)
{
    const size_t bytes = (size_t)served->bench->options.seq_len * 8;
    for (uint64_t row = 0; row < served->reader.batch.count; row++) {
        cli_json_array(&served->json, NULL);
        cli_json_number(&served->json, NULL, crc32_of(row_at(served->reader.out.inputs, served->bench, row), bytes));
        cli_json_number(&served->json, NULL, crc32_of(row_at(served->reader.out.targets, served->bench, row), bytes));
        cli_json_end(&served->json);
    }
}

static void hello(struct served *served)
{
    char text[256];
    (void)snprintf(text, sizeof text,
                   "tokmap %s; a C program, int64 inputs and targets into the same memory, one producer thread",
                   tokmap_version());
    answer_begin(served);
    cli_json_text(&served->json, "about", text);
    answer_end(served);
}

static void close_loader(struct served *served)
{
    reader_close(&served->reader);
    tokmap_run_close(served->run);
    served->run = NULL;
}

/* Takes batches for a turn and adds the results to the object that is open. */
static void turn(struct served *served, double seconds, uint64_t most)
{
    const uint64_t length = (uint64_t)(seconds * 1e9), cpu = os_process_cpu_ns(), started = os_clock_ns();
    uint64_t now = started, tokens = 0, batches = 0;
    samples_clear(&served->samples);
    while ((now - started < length || !batches) && (!most || batches < most)) {
        const uint64_t before = os_clock_ns();
        reader_take(served->bench, &served->reader, 1);
        now = os_clock_ns();
        samples_add(&served->samples, now - before);
        tokens += served->reader.batch.tokens;
        batches++;
    }
    cli_json_number(&served->json, "tokens", tokens);
    cli_json_number(&served->json, "batches", batches);
    cli_json_real(&served->json, "seconds", (double)(now - started) / 1e9);
    cli_json_real(&served->json, "cpu_s", (double)(os_process_cpu_ns() - cpu) / 1e9);
    cli_json_real(&served->json, "p50", samples_at(&served->samples, 0.5) / 1e3);
    cli_json_real(&served->json, "p99", samples_at(&served->samples, 0.99) / 1e3);
    cli_json_real(&served->json, "p999", samples_at(&served->samples, 0.999) / 1e3);
    cli_json_real(&served->json, "max", samples_at(&served->samples, 1) / 1e3);
    cli_json_number(&served->json, "epochs", 0);
}

static void run_turn(struct served *served, double seconds, uint64_t most)
{
    answer_begin(served);
    turn(served, seconds, most);
    answer_end(served);
}

static void loader_new(struct served *served, const char *order, const char *cursor)
{
    struct bench *bench = served->bench;
    struct tokmap_loader_options options = reader_options(bench, 1, READER_BOTH);
    options.world = 1;
    options.resume = cursor;
    bench->options.order = strcmp(order, "sequential") ? TOKMAP_SHUFFLE : TOKMAP_SEQUENTIAL;
    served->run = run_make(bench, dataset_name(bench), TOKMAP_READ_AUTO, 1, TOKMAP_FOREVER);
    reader_open(bench, &served->reader, served->run, &options);
    served->reader.out.type = TOKMAP_ID_I64;
}

/* Opens the loader and takes its first batch, and then those of a turn unless `most` is 0. */
static void open_loader(struct served *served, const char *order, double seconds, uint64_t most, const char *cursor)
{
    close_loader(served);
    const uint64_t started = os_clock_ns();
    loader_new(served, order, cursor);
    const uint64_t opened = os_clock_ns();
    reader_take(served->bench, &served->reader, 1);
    const uint64_t at = os_clock_ns();
    answer_begin(served);
    if (most)
        turn(served, seconds, most);
    cli_json_real(&served->json, "open_s", (double)(opened - started) / 1e9);
    cli_json_real(&served->json, "first_s", (double)(at - opened) / 1e9);
    cli_json_real(&served->json, "at", (double)at / 1e9);
    cli_json_array(&served->json, "sums");
    if (!most)
        sums_add(served);
    cli_json_end(&served->json);
    answer_end(served);
}

/* Adds the S + 1 ids of a row to the array that is open. */
static void row_add(struct served *served, uint64_t row)
{
    const uint64_t length = served->bench->options.seq_len;
    const int64_t *inputs = row_at(served->reader.out.inputs, served->bench, row);
    cli_json_array(&served->json, NULL);
    for (uint64_t i = 0; i < length; i++)
        cli_json_number(&served->json, NULL, (uint64_t)inputs[i]);
    cli_json_number(&served->json, NULL, (uint64_t)row_at(served->reader.out.targets, served->bench, row)[length - 1]);
    cli_json_end(&served->json);
}

static void take(struct served *served, uint64_t batches, uint64_t rows)
{
    const uint64_t length = served->bench->options.seq_len;
    uint64_t shifted = 0;
    answer_begin(served);
    cli_json_array(&served->json, "sums");
    for (uint64_t i = 0; i < batches; i++) {
        reader_take(served->bench, &served->reader, 1);
        sums_add(served);
        for (uint64_t row = 0; row < served->reader.batch.count; row++)
            shifted += memcmp(row_at(served->reader.out.inputs, served->bench, row) + 1,
                              row_at(served->reader.out.targets, served->bench, row), (size_t)(length - 1) * 8) != 0;
    }
    cli_json_end(&served->json);
    cli_json_array(&served->json, "rows"); /* of the last batch */
    for (uint64_t row = 0; batches && row < rows && row < served->reader.batch.count; row++)
        row_add(served, row);
    cli_json_end(&served->json);
    cli_json_number(&served->json, "shifted", shifted);
    answer_end(served);
}

static void state(struct served *served)
{
    char text[TOKMAP_CURSOR_TEXT];
    const uint64_t started = os_clock_ns();
    tokmap_cursor_print(&served->reader.batch.cursor, text);
    answer_begin(served);
    cli_json_text(&served->json, "state", text);
    cli_json_number(&served->json, "bytes", strlen(text));
    cli_json_real(&served->json, "seconds", (double)(os_clock_ns() - started) / 1e9);
    answer_end(served);
}

/* Runs a command of at most five words, the last of which is the rest of the line. */
static void command_run(struct served *served, char *line)
{
    const char *words[5] = {NULL};
    char *rest = NULL;
    for (size_t i = 0; i < 5; i++)
        words[i] = strtok_r(i ? NULL : line, i == 4 ? "\n" : " \n", &rest);
    const char *command = words[0] ? words[0] : "";
    const bool open = served->run != NULL;
    if (!strcmp(command, "hello"))
        hello(served);
    else if (!strcmp(command, "open") && words[3])
        open_loader(served, words[1], strtod(words[2], NULL), strtoull(words[3], NULL, 10), words[4]);
    else if (open && !strcmp(command, "run") && words[2])
        run_turn(served, strtod(words[1], NULL), strtoull(words[2], NULL, 10));
    else if (open && !strcmp(command, "take") && words[2])
        take(served, strtoull(words[1], NULL, 10), strtoull(words[2], NULL, 10));
    else if (open && !strcmp(command, "state"))
        state(served);
    else if (!strcmp(command, "close")) {
        close_loader(served);
        answer_begin(served);
        answer_end(served);
    } else {
        cli_say(served->bench->program, "a command that this process does not have, or not now: '%s'", command);
        bench_end(served->bench, CLI_FAILED);
    }
}

/* Reads commands from standard input, a line each, and answers each with a line of JSON on standard output, until its
 * input ends. bench/peers/compare/driver.py documents the answers:
 *
 *     hello
 *     open sequential|own SECONDS MOST [CURSOR]
 *     run SECONDS MOST
 *     take BATCHES ROWS    instead of places, the ids of the first ROWS rows
 *     state
 *     close */
static int compare_child(struct bench *bench)
{
    struct served served = {.bench = bench};
    char line[512];
    bench_samples_new(bench, &served.samples, SAMPLES);
    while (fgets(line, sizeof line, stdin))
        command_run(&served, line);
    close_loader(&served);
    samples_free(&served.samples);
    return CLI_DONE;
}

/* ---- the table `parts`: what `tokmap pack` consists of ---- */

#define PART_BATCH ((uint64_t)256 << 10)
#define PART_SHINGLES 512 /* at once, as when a text is read */

static const struct minhash_form part_form = {.words = 5, .bands = 14, .rows = 8};

/* Adds the documents of a JSONL file, the bytes of their texts, and the processor time: that of reading them, or with
 * `sign` that of their words and bands alone. */
static void documents_part(struct served *served, const char *path, bool sign)
{
    const struct corpus_options options = {.format = CORPUS_JSONL,
                                           .field = "text",
                                           .batch_bytes = PART_BATCH,
                                           .record_limit = UINT32_MAX,
                                           .document_limit = UINT32_MAX};
    struct bench *bench = served->bench;
    struct corpus *corpus = NULL;
    struct corpus_batch batch = {.bytes = NULL};
    struct band_signer signer = {.minhash = NULL};
    struct document_bands bands = {.signature = NULL};
    struct bytes_buffer found = {.bytes = NULL};
    uint64_t documents = 0, bytes = 0, signing = 0;
    enum tokmap_status status;
    bench_check(bench, band_signer_make(&signer, &part_form, &bench->error));
    const uint64_t begun = os_process_cpu_ns();
    bench_check(bench, corpus_open(&corpus, &path, 1, &options, &bench->error));
    while (!(status = corpus_next(corpus, &batch, &bench->error))) {
        bench_check(bench, records_to_documents(&options, &batch, &bench->error));
        const uint64_t read = os_process_cpu_ns();
        for (uint64_t i = 0; sign && i < batch.document_count; i++, found.count = 0)
            bench_check(bench, document_bands_add(&signer, &bands, &batch.documents[i], false, &found, &bench->error));
        signing += os_process_cpu_ns() - read;
        documents += batch.document_count;
        bytes += batch.counts.text_bytes;
    }
    if (status != TOKMAP_END)
        bench_failed(bench, &bench->error);
    cli_json_real(&served->json, "seconds", (double)(sign ? signing : os_process_cpu_ns() - begun) / 1e9);
    cli_json_array(&served->json, "equal");
    cli_json_number(&served->json, NULL, documents);
    cli_json_number(&served->json, NULL, bytes);
    cli_json_end(&served->json);
    corpus_close(corpus);
    corpus_batch_free(&batch);
    document_bands_free(&bands);
    band_signer_free(&signer);
    bytes_free(&found);
}

/* Adds the processor time of signatures, and their sum. The file has the shingles of one document after the other, as
 * numbers of 64 bits, and before them how many they are. */
static void signatures_part(struct served *served, const char *path)
{
    struct bench *bench = served->bench;
    struct bytes_buffer file = {.bytes = NULL};
    struct minhash *minhash = minhash_new(part_form.bands, part_form.rows);
    uint64_t *signature = minhash ? bench_new(bench, minhash_places(minhash), sizeof *signature) : NULL, sum = 0;
    if (!minhash)
        bench_no_memory(bench);
    bench_check(bench, cli_file_read(path, UINT32_MAX, &file, &bench->error));
    const uint64_t *at = (const uint64_t *)(const void *)file.bytes, *end = at + file.count / sizeof *at;
    const uint64_t begun = os_process_cpu_ns();
    while (at < end) {
        const uint64_t *const last = at + 1 + min64(*at, (uint64_t)(end - at - 1));
        minhash_begin(minhash, signature);
        for (at++; at < last; at += min64(PART_SHINGLES, (uint64_t)(last - at)))
            minhash_add(minhash, signature, at, (uint32_t)min64(PART_SHINGLES, (uint64_t)(last - at)));
        for (uint32_t i = 0; i < part_form.bands * part_form.rows; i++)
            sum += signature[i];
    }
    cli_json_real(&served->json, "seconds", (double)(os_process_cpu_ns() - begun) / 1e9);
    cli_json_number(&served->json, "equal", sum);
    minhash_free(minhash);
    free(signature);
    bytes_free(&file);
}

/* Measures the part that options.child names, in one thread, and prints a line of JSON. */
static int parts_child(struct bench *bench)
{
    struct served served = {.bench = bench};
    answer_begin(&served);
    if (!strcmp(bench->options.child, "signatures"))
        signatures_part(&served, bench->options.dataset);
    else
        documents_part(&served, bench->options.dataset, strcmp(bench->options.child, "reading") != 0);
    answer_end(&served);
    return CLI_DONE;
}

/* ---- a dataset's tokens in one flat file, which is what other systems read ---- */

struct flat_tokens {
    char path[BENCH_PATH];  /* little-endian tokens of `width` bytes, without a header */
    char files[BENCH_PATH]; /* a text with the paths of the dataset's own files of tokens, a line each */
    uint64_t width, tokens;
    uint64_t eod; /* or TOKMAP_NO_ID */
};

#define PART_TOKENS ((uint64_t)1 << 20) /* tokens that are copied at a time */
#define PROBE_TOKENS ((uint64_t)1024)   /* tokens that are compared at both ends of a file */

/* Returns whether `count` tokens from `first` are in the file where a flat file has them. */
static bool part_is_flat(const struct tokmap_dataset *dataset, int fd, uint64_t width, uint64_t first, uint64_t count)
{
    uint8_t theirs[PROBE_TOKENS * 4], ours[PROBE_TOKENS * 4];
    struct tokmap_error error = {0};
    const size_t bytes = (size_t)(count * width);
    size_t got = 0;
    return !tokmap_dataset_copy(dataset, first, count, ours, &error) &&
           !os_pread(fd, theirs, bytes, first * width, &got) && got == bytes && !memcmp(theirs, ours, bytes);
}

static bool file_is_flat(const struct tokmap_dataset *dataset, const char *path, const struct tokmap_dataset_info *info)
{
    struct os_stat stat;
    int fd;
    const uint64_t count = min64(info->tokens, PROBE_TOKENS);
    if (info->shards != 1 || os_open(path, OS_READ, &fd))
        return false;
    const bool flat = !os_fstat(fd, &stat) && stat.bytes == info->tokens * info->width &&
                      part_is_flat(dataset, fd, info->width, 0, count) &&
                      part_is_flat(dataset, fd, info->width, info->tokens - count, count);
    os_close(fd);
    return flat;
}

static void tokens_copy(struct bench *bench, const struct opened *data, char path[BENCH_PATH])
{
    const uint64_t tokens = data->info.tokens, width = data->info.width;
    char size[32];
    int fd;
    struct cli_progress progress;
    void *buffer = bench_new(bench, PART_TOKENS, (size_t)width);
    made_file(bench, "flat.bin", path);
    bench_check_system(bench, os_open(path, OS_WRITE_NEW, &fd), path,
                       "The copy of the tokens for other systems cannot be created.");
    bench_say(bench, "copying the tokens (%s) into one flat file for other systems", cli_bytes(tokens * width, size));
    cli_progress_start(&progress, "copying", NULL, tokens * width, bench->options.json);
    for (uint64_t at = 0; at < tokens; at += PART_TOKENS) {
        const uint64_t count = min64(PART_TOKENS, tokens - at);
        bench_stop_check(bench);
        bench_check(bench, tokmap_dataset_copy(data->dataset, at, count, buffer, &bench->error));
        bench_check_system(bench, os_write(fd, buffer, (size_t)(count * width)), path,
                           "The copy of the tokens for other systems cannot be written; name a folder with more space "
                           "with --dir.");
        cli_progress_update(&progress, at * width);
    }
    cli_progress_end(&progress);
    free(buffer);
    os_close(fd);
}

/* Writes the paths of the files of tokens, a line each. */
static void files_list(struct bench *bench, const struct opened *data, char path[BENCH_PATH])
{
    struct bytes_buffer list = {.bytes = NULL};
    for (uint64_t i = 0; i < data->info.shards; i++) {
        struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
        bench_check(bench, tokmap_dataset_shard(data->dataset, i, &shard, &bench->error));
        bench_append(bench, &list, "%s\n", shard.tokens_path);
    }
    made_file(bench, "files.list", path);
    made_write(bench, path, list.bytes, list.count, "The list of the dataset's files cannot be written.");
    bytes_free(&list);
}

/* Finds or makes that file of the dataset that dataset_name() returns. It is the dataset's own file of tokens if that
 * is flat and the only one: of a native shard, sealed or not, and of a file of another project without a header.
 * Otherwise, for several shards, a header, or tokens of another width, it is a copy in --dir, which is removed at the
 * end. */
static void flat_tokens_open(struct bench *bench, struct flat_tokens *flat)
{
    const struct opened data = dataset_open(bench, TOKMAP_READ_PREAD);
    const char *path = data.first.tokens_path;
    memset(flat, 0, sizeof *flat);
    flat->width = data.info.width;
    flat->tokens = data.info.tokens;
    flat->eod = data.info.eod_id;
    if (file_is_flat(data.dataset, path, &data.info) && strlen(path) < sizeof flat->path)
        (void)snprintf(flat->path, sizeof flat->path, "%s", path);
    else
        tokens_copy(bench, &data, flat->path);
    files_list(bench, &data, flat->files);
    tokmap_dataset_close(data.dataset);
}

/* ---- what a table reads ---- */

static void dataset_arguments(struct bench *bench, struct flat_tokens *flat, struct child_arguments *arguments)
{
    arguments_text(arguments, "--data", dataset_name(bench));
    flat_tokens_open(bench, flat);
    arguments_text(arguments, "--bin", flat->path);
    arguments_text(arguments, "--files", flat->files);
    arguments_number(arguments, "--width", flat->width);
    arguments_number(arguments, "--count", flat->tokens);
    if (flat->eod != TOKMAP_NO_ID)
        arguments_number(arguments, "--eod", flat->eod);
}

/* ---- the table start: sparse datasets of zeros, which need no storage but their indexes ---- */

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

#define SPARSE_SHARDS_MOST 16

/* Creates a dataset of `shards` (1 to 16) shards with tokens_per_shard tokens each. Each shard is a sparse file of
 * zeros with a valid index and documents of 2^20 tokens, so it takes almost no space. name: its prefix, or a manifest
 * if it has several shards. If the file system cannot hold files of that size, prints a line and returns false; nothing
 * may then be done with the name. */
static bool dataset_make_sparse(struct bench *bench, const char *label, uint64_t shards, uint64_t tokens_per_shard,
                                char name[BENCH_PATH])
{
    static char prefix[BENCH_PATH], manifest[SPARSE_SHARDS_MOST * BENCH_PATH];
    char part[64];
    assert(shards && shards <= SPARSE_SHARDS_MOST);
    size_t used = (size_t)snprintf(manifest, sizeof manifest, "tokmap-shards 1\n");
    for (uint64_t i = 0; i < shards; i++) {
        (void)snprintf(part, sizeof part, "%s-%" PRIu64, label, i);
        made_shard(bench, part, prefix);
        used += (size_t)snprintf(manifest + used, sizeof manifest - used, "%s\n", path_name(prefix));
        if (!sparse_shard(prefix, tokens_per_shard, &bench->error))
            continue;
        const int system = bench->error.system;
        if (system != EFBIG && system != EOVERFLOW && system != EINVAL) {
            bench_stop_check(bench);
            bench_failed(bench, &bench->error);
        }
        bench_say(bench, "measurements on %s are skipped: this file system cannot hold files of that size", label);
        return false;
    }
    if (shards == 1) {
        memcpy(name, prefix, BENCH_PATH);
        return true;
    }
    (void)snprintf(part, sizeof part, "%s.shards", label);
    made_file(bench, part, name);
    made_write(bench, name, manifest, used, "The manifest cannot be written.");
    return true;
}

#define SPARSE_SIZES 5
#define SPARSE_SHARD ((uint64_t)2000000000000) /* tokens: 4 TB, which most file systems can hold */

static void sparse_arguments(struct bench *bench, struct child_arguments *arguments)
{
    static char named[SPARSE_SIZES][BENCH_PATH + 32];
    uint64_t tokens = 1000000000;
    for (uint32_t i = 0; i < SPARSE_SIZES; i++, tokens *= 10) {
        char label[32], name[BENCH_PATH];
        const uint64_t shards = div_ceil(tokens, SPARSE_SHARD);
        (void)snprintf(label, sizeof label, "1e%u", 9 + i);
        const bool made = dataset_make_sparse(bench, label, shards, tokens / shards, name);
        (void)snprintf(named[i], sizeof named[i], "%" PRIu64 "=%s", tokens, made ? name : "");
        arguments_text(arguments, "--sparse", named[i]);
    }
}

static int compare_run(struct bench *bench)
{
    static struct flat_tokens flat;
    static struct child_arguments arguments;
    const char *table = bench->options.table ? bench->options.table : "loaders";
    if (bench->options.child)
        return scripts_read_text(bench) ? parts_child(bench) : compare_child(bench);
    if (scripts_read_text(bench)) {
        arguments_text(&arguments, "--text", bench->options.dataset);
        arguments_text(&arguments, "--tokenizer", bench->options.tokenizer);
        arguments_text(&arguments, "--pattern", bench->options.pattern);
        arguments_text(&arguments, "--field", bench->options.field);
        arguments_number(&arguments, "--text-bytes", bench->options.text_bytes);
    } else if (!strcmp(table, "start")) {
        sparse_arguments(bench, &arguments);
    } else {
        dataset_arguments(bench, &flat, &arguments);
    }
    int result = scripts_run(bench, table, &arguments, wide_line);
    made_files_remove(bench); /* before anything is printed, which ends the command if nobody reads it */
    bench_stop_check(bench);
    wide_print(bench); /* after a failure, what was measured until then */
    return wide_check(bench) ? CLI_FAILED : result;
}

const struct bench_case case_compare = {
    "compare", "tokmap beside other loaders on the same tokens; [TABLE] [DATA], --peers, --venv, --offline",
    .run = compare_run, .reads_files = true};

/* ==== the case `faults` ==== */

/*
 * The fault matrix: what each loader does when its files, its storage, or its processes fail.
 *
 * The script bench/peers/compare/faults injects each fault into each loader, in child processes, and prints a cell for
 * each: a word (crash, garbage, ...) and a sentence with counts. It fails if a cell of tokmap is not what tokmap
 * promises.
 */

static int faults_run(struct bench *bench)
{
    static struct child_arguments arguments;
    arguments_text(&arguments, "--faults", bench->options.faults);
    arguments_real(&arguments, "--stall", bench->options.stall);
    const int result = scripts_run(bench, "faults", &arguments, wide_line);
    bench_stop_check(bench);
    wide_print(bench); /* after a failure, what happened until then */
    return result ? result : wide_check(bench);
}

const struct bench_case case_faults = {
    "faults", "what tokmap and other loaders do when files, storage, or processes fail; --peers, --venv, --offline",
    .run = faults_run};
