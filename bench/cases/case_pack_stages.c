/* SPDX-License-Identifier: MIT */
/*
 * case_pack_stages.c - see case_pack_stages.h.
 *
 * The text is generated, or that of the file which the command names, from its begin again if it is too short.
 *
 * All rates are bytes of text per second, as they are before they become JSON, so all rows can be compared. Each way of
 * packing is a row of a table and has another row as its limit, which does the same without the stage, or with half of
 * the threads.
 *
 * The journal is measured on more input, with more checkpoints than a user has, so that some are made at all: every
 * CHECKPOINT_SECONDS. What one of them costs, divided by the default interval, is the share of the time that a user's
 * journal takes. With --dedup each file is named once, because the second time all documents would be duplicates.
 */
#include "case_pack_stages.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "harness/bench_data.h"
#include "harness/bench_text.h"
#include "harness/child.h"
#include "harness/storage.h"
#include "platform/os.h"
#include "platform/zstd_library.h"

#define FILES 16
#define JOURNAL_TIMES 2 /* number of times that the journal's input names each file */
#define CHECKPOINT_SECONDS 0.1
#define CHECKPOINT_TEXT "0.1"
#define USUAL_SECONDS 4.0             /* between checkpoints, by default */
#define RECORD_MOST ((size_t)1 << 14) /* bytes of a text, but for the rest of a character */
#define LINE_MOST (2 * (RECORD_MOST + 4) + 64)
#define ZSTD_LEVEL 3
#define EXCLUDED_BYTES ((size_t)1 << 20)
#define EXCLUDED_LINE 1024
#define THREADS_MOST 256 /* that pack takes */

enum kind { JSONL, COMPRESSED, KINDS };
enum {
    RECORDS,
    ZST,
    SHARDS,
    TASKS,
    SHUFFLE,
    DEDUP,
    MINHASH,
    EXCLUDE,
    SPLIT,
    SEAL,
    ALSO,
    DEDUP_ALL,
    MINHASH_ALL,
    RECORDS_TWICE,
    ZST_TWICE,
    SHUFFLE_TWICE,
    DEDUP_TWICE,
    MINHASH_TWICE,
    SPLIT_TWICE,
    SEAL_TWICE,
    NO_JOURNAL,
    JOURNAL,
    DEDUP_NO_JOURNAL,
    DEDUP_JOURNAL,
    MINHASH_NO_JOURNAL,
    MINHASH_JOURNAL,
    WAYS
};
enum { NO_LIMIT = -1, PLAIN_TEXT = -2 };

#define SPLIT_TEXT "train=0.99,val=0.01"
/* These stand for words that stage_costs_open() makes. */
#define SHARD_TOKENS "{shard}"
#define UNIT_BYTES "{unit}"
#define EXCLUDED "{excluded}"

static const struct way {
    const char *name;
    enum kind kind;
    uint32_t threads; /* times --threads */
    uint32_t times;   /* number of times that each file is named */
    int limit;        /* the way beside which it is shown */
    const char *options[6];
} ways[WAYS] = {
    [RECORDS] = {"jsonl", JSONL, 1, 1, PLAIN_TEXT, {NULL}},
    [ZST] = {"jsonl_zst", COMPRESSED, 1, 1, RECORDS, {NULL}},
    [SHARDS] = {"shards", JSONL, 1, 1, RECORDS, {"--shard-tokens", SHARD_TOKENS}},
    [TASKS] =
        {"tasks", JSONL, 1, 1, SHARDS, {"--shard-tokens", SHARD_TOKENS, "--unit-bytes", UNIT_BYTES, "--task", "0/1"}},
    [SHUFFLE] = {"shuffle", JSONL, 1, 1, RECORDS, {"--shuffle", "7"}},
    [DEDUP] = {"dedup", JSONL, 1, 1, RECORDS, {"--dedup", "exact"}},
    [MINHASH] = {"minhash", JSONL, 1, 1, RECORDS, {"--dedup", "minhash"}},
    [EXCLUDE] = {"exclude", JSONL, 1, 1, RECORDS, {"--exclude-ngrams", EXCLUDED}},
    [SPLIT] = {"split", JSONL, 1, 1, RECORDS, {"--split", SPLIT_TEXT}},
    [SEAL] = {"seal", JSONL, 1, 1, RECORDS, {"--seal"}},
    [ALSO] = {"also", JSONL, 1, 1, RECORDS, {"--also", "megatron,llmc"}},
    [DEDUP_ALL] =
        {"dedup_shuffle_split", COMPRESSED, 1, 1, ZST, {"--dedup", "exact", "--shuffle", "7", "--split", SPLIT_TEXT}},
    [MINHASH_ALL] = {"minhash_shuffle_split",
                     COMPRESSED,
                     1,
                     1,
                     ZST,
                     {"--dedup", "minhash", "--shuffle", "7", "--split", SPLIT_TEXT}},
    [RECORDS_TWICE] = {"twice_threads", JSONL, 2, 1, RECORDS, {NULL}},
    [ZST_TWICE] = {"jsonl_zst_twice_threads", COMPRESSED, 2, 1, ZST, {NULL}},
    [SHUFFLE_TWICE] = {"shuffle_twice_threads", JSONL, 2, 1, SHUFFLE, {"--shuffle", "7"}},
    [DEDUP_TWICE] = {"dedup_twice_threads", JSONL, 2, 1, DEDUP, {"--dedup", "exact"}},
    [MINHASH_TWICE] = {"minhash_twice_threads", JSONL, 2, 1, MINHASH, {"--dedup", "minhash"}},
    [SPLIT_TWICE] = {"split_twice_threads", JSONL, 2, 1, SPLIT, {"--split", SPLIT_TEXT}},
    [SEAL_TWICE] = {"seal_twice_threads", JSONL, 2, 1, SEAL, {"--seal"}},
    [NO_JOURNAL] = {"no_journal", JSONL, 1, JOURNAL_TIMES, NO_LIMIT, {"--checkpoint-seconds", "0"}},
    [JOURNAL] = {"journal", JSONL, 1, JOURNAL_TIMES, NO_JOURNAL, {"--checkpoint-seconds", CHECKPOINT_TEXT}},
    [DEDUP_NO_JOURNAL] = {"dedup_no_journal", JSONL, 1, 1, NO_LIMIT, {"--dedup", "exact", "--checkpoint-seconds", "0"}},
    [DEDUP_JOURNAL] =
        {"dedup_journal", JSONL, 1, 1, DEDUP_NO_JOURNAL, {"--dedup", "exact", "--checkpoint-seconds", CHECKPOINT_TEXT}},
    [MINHASH_NO_JOURNAL] =
        {"minhash_no_journal", JSONL, 1, 1, NO_LIMIT, {"--dedup", "minhash", "--checkpoint-seconds", "0"}},
    [MINHASH_JOURNAL] = {"minhash_journal",
                         JSONL,
                         1,
                         1,
                         MINHASH_NO_JOURNAL,
                         {"--dedup", "minhash", "--checkpoint-seconds", CHECKPOINT_TEXT}},
};

/* The pairs that show what a checkpoint takes. */
static const struct pair {
    const char *metric;
    int with, without;
} pairs[] = {{"journal_percent", JOURNAL, NO_JOURNAL},
             {"dedup_journal_percent", DEDUP_JOURNAL, DEDUP_NO_JOURNAL},
             {"minhash_journal_percent", MINHASH_JOURNAL, MINHASH_NO_JOURNAL}};
#define PAIRS (sizeof pairs / sizeof pairs[0])

struct stage_costs {
    char paths[KINDS][FILES][BENCH_PATH];
    char folder[BENCH_PATH], output[BENCH_PATH + 8];
    char excluded[BENCH_PATH]; /* a file of texts that are in no document */
    char shard_tokens[32], unit_bytes[32];
    uint64_t text_bytes;
    struct bench_text real; /* source of the documents, if the command names a file */
    double seconds[WAYS];   /* of this repeat */
    struct series rate[WAYS], peak[WAYS];
    struct series journal[PAIRS]; /* percent */
    uint64_t stored[WAYS];        /* bytes of the tokens of this repeat: those of one shard, or 0 */
    struct series sealed;         /* percent */
};

/* ---- the records ---- */

struct making {
    struct made_text *text;
    const struct bench_text *real; /* with a path: the text of the documents; it begins again at its end */
    uint64_t real_at;
    uint64_t state;  /* of the random lengths */
    uint8_t *record; /* RECORD_MOST */
    char *line;      /* LINE_MOST */
    ZSTD_CCtx *zstd;
    char *out; /* of zstd: `out_bytes` */
    size_t out_bytes;
    int fds[KINDS];
};

/* Fills the record with the next `bytes` of text, or less, so that it ends between characters. Returns its bytes. */
static size_t record_fill(struct making *making, size_t bytes)
{
    const struct bench_text *real = making->real;
    if (!real->path) {
        made_text_fill(making->text, making->record, bytes);
        return bytes;
    }
    if (making->real_at == real->bytes)
        making->real_at = 0;
    const uint64_t begin = making->real_at;
    uint64_t end = begin + min64(bytes, real->bytes - begin);
    while (end < real->bytes && end > begin + 4 && ((uint8_t)real->text[end] & 0xC0) == 0x80)
        end--;
    while (end < real->bytes && ((uint8_t)real->text[end] & 0xC0) == 0x80) /* a character and no more */
        end++;
    making->real_at = end;
    memcpy(making->record, real->text + begin, (size_t)(end - begin));
    return (size_t)(end - begin);
}

/* Writes a byte of text as a string of JSON has it; other control characters than line ends and tabs become blanks. */
static size_t byte_escape(char *line, uint8_t byte)
{
    const char *const found = memchr("\n\t\"\\", byte, 4);
    if (!found || !byte) {
        line[0] = byte < ' ' ? ' ' : (char)byte;
        return 1;
    }
    line[0] = '\\';
    line[1] = byte == '\n' ? 'n' : byte == '\t' ? 't' : (char)byte;
    return 2;
}

/* Makes a line, whose text has at most about `most` bytes. As in real text, many documents are short and few are long:
 * the logarithm is uniform, and the mean is about 3 KB. Returns the bytes of the text. */
static uint64_t line_make(struct making *making, uint64_t most, size_t *line_bytes)
{
    static const char begin[] = "{\"text\": \"", end[] = "\"}\n";
    const uint64_t power = (uint64_t)64 << random_below(&making->state, 8);
    const size_t bytes = record_fill(making, (size_t)min64(power + random_below(&making->state, power), most));
    size_t at = sizeof begin - 1;
    memcpy(making->line, begin, sizeof begin - 1);
    for (size_t i = 0; i < bytes; i++)
        at += byte_escape(making->line + at, making->record[i]);
    memcpy(making->line + at, end, sizeof end - 1);
    *line_bytes = at + sizeof end - 1;
    return bytes;
}

/* Compresses and writes a line, or with 0 bytes ends the file. Returns 0 or an errno. */
static int compressed_write(struct making *making, size_t bytes)
{
    ZSTD_inBuffer in = {making->line, bytes, 0};
    size_t left = 1;
    int system = 0;
    while (!system && (bytes ? in.pos < in.size : left != 0)) {
        ZSTD_outBuffer out = {making->out, making->out_bytes, 0};
        left = libzstd.ZSTD_compressStream2(making->zstd, &out, &in, bytes ? ZSTD_e_continue : ZSTD_e_end);
        if (libzstd.ZSTD_isError(left))
            return ENOMEM;
        system = os_write(making->fds[COMPRESSED], making->out, out.pos);
    }
    return system;
}

/* Writes one file of each kind. */
static int files_write(struct making *making, uint64_t bytes)
{
    int system = 0;
    while (bytes && !system && !bench_stopped()) {
        size_t line = 0;
        bytes -= min64(line_make(making, bytes, &line), bytes);
        system = os_write(making->fds[JSONL], making->line, line);
        if (!system)
            system = compressed_write(making, line);
    }
    return system ? system : compressed_write(making, 0);
}

static int records_write(struct bench *bench, struct stage_costs *stages, struct making *making)
{
    static const char *const endings[KINDS] = {[JSONL] = ".jsonl", [COMPRESSED] = ".jsonl.zst"};
    for (uint32_t i = 0; i < FILES && !bench_stopped(); i++) {
        const uint64_t bytes = mul_div(stages->text_bytes, i + 1, FILES) - mul_div(stages->text_bytes, i, FILES);
        int system = 0;
        for (int kind = 0; kind < KINDS; kind++) {
            char name[32];
            (void)snprintf(name, sizeof name, "records%02u%s", i, endings[kind]);
            const int result = made_file(bench, name, stages->paths[kind][i]);
            if (result)
                return result;
        }
        for (int kind = 0; kind < KINDS && !system; kind++)
            if ((system = os_open(stages->paths[kind][i], OS_WRITE_NEW, &making->fds[kind])))
                making->fds[kind] = -1;
        if (!system)
            system = files_write(making, bytes);
        for (int kind = 0; kind < KINDS; kind++) {
            if (!system)
                system = os_sync(making->fds[kind]);
            os_close(making->fds[kind]);
            making->fds[kind] = -1;
        }
        if (system)
            return bench_failed_system(bench, system, stages->paths[JSONL][i],
                                       "The records cannot be written; give another --dir or fewer --text-bytes.");
    }
    return CLI_DONE;
}

static int records_make(struct bench *bench, struct stage_costs *stages)
{
    char reason[LIBRARY_REASON];
    if (!library_load(&libzstd_library, reason, sizeof reason)) {
        cli_say(bench->program, "zstd cannot be loaded (%s); install it (apt-get install %s)", reason,
                libzstd_library.package);
        return CLI_FAILED;
    }
    struct making making = {.text = made_text_new(12),
                            .real = &stages->real,
                            .state = 13,
                            .record = malloc(RECORD_MOST + 4),
                            .line = malloc(LINE_MOST),
                            .zstd = libzstd.ZSTD_createCCtx(),
                            .out_bytes = libzstd.ZSTD_CStreamOutSize(),
                            .fds = {-1, -1}};
    making.out = malloc(making.out_bytes);
    int result = CLI_DONE;
    if (!making.text || !making.record || !making.line || !making.zstd || !making.out ||
        libzstd.ZSTD_isError(libzstd.ZSTD_CCtx_setParameter(making.zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL)))
        result = bench_no_memory(bench);
    else
        result = records_write(bench, stages, &making);
    made_text_free(making.text);
    free(making.record);
    free(making.line);
    free(making.out);
    (void)libzstd.ZSTD_freeCCtx(making.zstd);
    return result;
}

/* Writes texts whose words are in no document, a line each. */
static int excluded_write(struct bench *bench, struct stage_costs *stages)
{
    int fd;
    uint8_t *texts = malloc(EXCLUDED_BYTES);
    struct made_text *text = made_text_new(14);
    int result = texts && text ? made_file(bench, "excluded.txt", stages->excluded) : bench_no_memory(bench);
    if (!result) {
        made_text_fill(text, texts, EXCLUDED_BYTES);
        for (size_t i = 0; i < EXCLUDED_BYTES; i++)
            if (texts[i] == '\n' || i % EXCLUDED_LINE == EXCLUDED_LINE - 1)
                texts[i] = i % EXCLUDED_LINE == EXCLUDED_LINE - 1 ? '\n' : ' ';
        int system = os_open(stages->excluded, OS_WRITE_NEW, &fd);
        if (!system) {
            system = os_write(fd, texts, EXCLUDED_BYTES);
            os_close(fd);
        }
        if (system)
            result = bench_failed_system(bench, system, stages->excluded,
                                         "The excluded texts cannot be written; give another --dir.");
    }
    made_text_free(text);
    free(texts);
    return result;
}

int stage_costs_open(struct bench *bench, struct stage_costs **stages)
{
    struct stage_costs *made = *stages = calloc(1, sizeof *made);
    if (!made)
        return bench_no_memory(bench);
    made->text_bytes = bench->options.text_bytes;
    int result = bench->options.dataset ? bench_text_open(bench, &made->real) : CLI_DONE;
    if (!result)
        result = made_tree(bench, "packed-stages", made->folder);
    (void)snprintf(made->output, sizeof made->output, "%s/out", made->folder);
    (void)snprintf(made->shard_tokens, sizeof made->shard_tokens, "%" PRIu64, max64(made->text_bytes / 16, 4096));
    (void)snprintf(made->unit_bytes, sizeof made->unit_bytes, "%" PRIu64, max64(made->text_bytes / 8, 65536));
    if (!result)
        result = excluded_write(bench, made);
    return result ? result : records_make(bench, made);
}

void stage_costs_free(struct stage_costs *stages)
{
    if (stages)
        bench_text_close(&stages->real);
    free(stages);
}

/* ---- packing ---- */

/* Returns the word of the command line that an option of the table stands for. */
static const char *option_word(const struct stage_costs *stages, const char *option)
{
    return !strcmp(option, SHARD_TOKENS) ? stages->shard_tokens
           : !strcmp(option, UNIT_BYTES) ? stages->unit_bytes
           : !strcmp(option, EXCLUDED)   ? stages->excluded
                                         : option;
}

/* Returns the bytes of the output's tokens, if it is one shard. */
static uint64_t tokens_stored(const struct stage_costs *stages, bool sealed)
{
    char path[BENCH_PATH + 32];
    struct os_stat stat;
    (void)snprintf(path, sizeof path, "%s%s", stages->output, sealed ? ".bin.zst" : ".bin");
    return os_stat(path, &stat) ? 0 : stat.bytes;
}

static int way_repeat(struct bench *bench, struct stage_costs *stages, size_t number, bool counts)
{
    const struct way *way = &ways[number];
    const char *arguments[CHILD_ARGUMENTS_MAX + 1] = {"pack", "--quiet", "--no-eod", "-o", stages->output, "--threads"};
    char threads[32];
    struct child_usage usage = {.seconds = 0};
    size_t count = 6;
    (void)snprintf(threads, sizeof threads, "%" PRIu64, min64(bench->options.threads * way->threads, THREADS_MOST));
    arguments[count++] = threads;
    count = child_tokenizer_arguments(bench, arguments, count);
    for (size_t i = 0; i < sizeof way->options / sizeof way->options[0] && way->options[i]; i++)
        arguments[count++] = option_word(stages, way->options[i]);
    for (uint32_t i = 0; i < way->times * FILES; i++)
        arguments[count++] = stages->paths[way->kind][i % FILES];
    int result = CLI_DONE;
    for (uint32_t i = 0; i < FILES && !result; i++)
        result = page_cache_read(bench, stages->paths[way->kind][i]);
    if (!result)
        result = child_run_tokmap(bench, arguments, &usage);
    stages->stored[number] = tokens_stored(stages, number == SEAL);
    made_tree_empty(bench);
    stages->seconds[number] = usage.seconds;
    if (!result && counts) {
        series_add(&stages->rate[number], (double)(way->times * stages->text_bytes) / 1e6 / usage.seconds);
        series_add(&stages->peak[number], usage.peak_mib);
    }
    return result;
}

int stage_costs_repeat(struct bench *bench, struct stage_costs *stages, bool counts)
{
    int result = CLI_DONE;
    for (size_t i = 0; i < WAYS && !result && !bench_stopped(); i++)
        result = way_repeat(bench, stages, i, counts);
    /* The end of a run is a checkpoint, too, if there was one before. */
    for (size_t i = 0; i < PAIRS && !result && counts; i++) {
        const double with = stages->seconds[pairs[i].with], without = stages->seconds[pairs[i].without];
        const uint64_t checkpoints = (uint64_t)(with / CHECKPOINT_SECONDS);
        if (checkpoints)
            series_add(&stages->journal[i], 100 * (with - without) / (double)checkpoints / USUAL_SECONDS);
    }
    if (!result && counts && stages->stored[RECORDS])
        series_add(&stages->sealed, 100 * (double)stages->stored[SEAL] / (double)stages->stored[RECORDS]);
    return result;
}

void stage_costs_report(struct bench *bench, const struct stage_costs *stages, const struct series *text)
{
    for (size_t i = 0; i < WAYS; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "%s_mb_s", ways[i].name);
        bench_result(bench, name, "MB/s", &stages->rate[i],
                     ways[i].limit == NO_LIMIT     ? NULL
                     : ways[i].limit == PLAIN_TEXT ? text
                                                   : &stages->rate[ways[i].limit]);
        (void)snprintf(name, sizeof name, "%s_peak_mib", ways[i].name);
        bench_result(bench, name, "MiB", &stages->peak[i], NULL);
    }
    for (size_t i = 0; i < PAIRS; i++)
        bench_result(bench, pairs[i].metric, "%", &stages->journal[i], NULL);
    bench_result(bench, "sealed_percent", "%", &stages->sealed, NULL);
}
