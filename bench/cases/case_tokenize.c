/*
 * case_tokenize.c - a text through a tokenizer: whole and in documents of 4 KB, with a fresh state and again with the
 * same one, on one thread and on two, beside a loop that reads the text; and, in the same turns, other tokenizers
 * (peers.h).
 *
 * What share of the time the scanner, the lookups and the merges have is told by subtraction, since a clock inside
 * would cost more than what it measures: the scanner alone is run over the text; a warm pass is scanner and lookups;
 * what a cold one takes longer is misses: merges, and what they put into the caches.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/utf8.h"
#include "harness/child.h"
#include "cli/cli.h"
#include "common/bytes.h"
#include "peers/pack_records.h"
#include "platform/os.h"

#define DOCUMENT ((size_t)4096)
#define TOGETHER 64 /* documents in one call, as the packer has them in a batch */
#define THREADS 2   /* at most, and what is measured beside one */

struct rates {
    struct series cold, warm;
};

struct tokenizing {
    struct encoded_text text;
    struct tokenizer *tokenizer;
    struct tokenizer_info info;
    void *tokens[THREADS];           /* one for each thread */
    uint64_t capacity;               /* of each, in tokens */
    uint64_t pieces, missed, merged; /* of a cold pass over the documents */
    uint64_t document_tokens;
    uint64_t open_ns; /* that the tokenizer took to open */
    struct rates whole, documents, threads, threads_ratio;
    struct rates cpu[THREADS], cpu_ratio; /* seconds of all processors, by threads */
    struct series compute_ratio;
    struct series read, scan, start, encode, memory, memory_whole, state;
    struct pack_records records;
    struct peers peers;
};

/* ---- the text ---- */

static int text_read(struct bench *bench, struct encoded_text *text)
{
    const char *path = bench->options.dataset;
    struct os_stat stat;
    int fd;
    size_t got = 0;
    int system = os_open(path, OS_READ, &fd);
    if (system)
        return bench_failed_system(bench, system, path, "The text cannot be opened.");
    system = os_fstat(fd, &stat);
    if (!system && (stat.kind != OS_KIND_FILE || !stat.bytes || stat.bytes > SIZE_MAX / 8)) {
        os_close(fd);
        cli_say(bench->program, "%s: this is no file with text in it", path);
        return CLI_FAILED;
    }
    text->path = path;
    text->bytes = system ? 0 : stat.bytes;
    text->text = system ? NULL : malloc((size_t)text->bytes);
    if (text->text)
        system = os_pread(fd, text->text, (size_t)text->bytes, 0, &got);
    os_close(fd);
    if (system || (text->text && got != text->bytes))
        return bench_failed_system(bench, system ? system : EIO, path, "The text cannot be read.");
    if (!text->text)
        return bench_no_memory(bench);
    if (utf8_valid_prefix(text->text, got) != got) {
        cli_say(bench->program, "%s: the text is not valid UTF-8 (byte %zu); peers would not take it", path,
                utf8_valid_prefix(text->text, got));
        return CLI_FAILED;
    }
    return CLI_DONE;
}

static int text_cut(struct bench *bench, struct encoded_text *text)
{
    const uint64_t most = text->bytes / (DOCUMENT - 3) + 1;
    text->documents = malloc((size_t)most * sizeof *text->documents);
    if (!text->documents)
        return bench_no_memory(bench);
    for (uint64_t at = 0; at < text->bytes;) {
        const uint64_t left = text->bytes - at;
        const size_t bytes = left > DOCUMENT ? utf8_cut(text->text + at, DOCUMENT) : (size_t)left;
        text->documents[text->document_count++] = (struct tokenizer_text){text->text + at, bytes};
        at += bytes;
    }
    return CLI_DONE;
}

/* The whole text read, as a limit that no tokenizer passes. */
static uint64_t text_sum(const struct encoded_text *text)
{
    uint64_t sums[4] = {0}, words[4];
    for (uint64_t at = 0; at + 32 <= text->bytes; at += 32) {
        memcpy(words, text->text + at, 32);
        for (int i = 0; i < 4; i++)
            sums[i] += words[i];
    }
    return sums[0] + sums[1] + sums[2] + sums[3];
}

/* ---- encoding ---- */

static enum tokmap_status whole_encode(const struct tokenizing *tokenizing, struct tokenizer_state *state,
                                       uint64_t *tokens, struct tokmap_error *error)
{
    uint64_t end = 0;
    const struct tokenizer_text text = {tokenizing->text.text, tokenizing->text.bytes};
    const struct tokenizer_batch batch = {&text, 1, false, false};
    struct tokenizer_out out = {.tokens = tokenizing->tokens[0], .capacity = tokenizing->capacity, .ends = &end};
    const enum tokmap_status status = tokenizer_encode(state, &batch, &out, error);
    *tokens = out.count;
    return status;
}

/* What one thread does: takes documents until there are none left. */
struct encoder {
    const struct tokenizing *tokenizing;
    struct tokenizer_state *state;
    _Atomic uint64_t *next; /* document */
    void *tokens;
    bool over; /* ids are written over those before them */
    uint64_t made, cpu_ns;
    enum tokmap_status status;
    struct tokmap_error error;
};

static void documents_encode(void *user)
{
    struct encoder *encoder = user;
    const struct tokenizing *tokenizing = encoder->tokenizing;
    const struct encoded_text *text = &tokenizing->text;
    uint64_t ends[TOGETHER];
    const uint64_t started = os_thread_cpu_ns();
    encoder->made = 0;
    encoder->status = encoder->state ? TOKMAP_OK
                                     : tokenizer_state_new(&encoder->state, tokenizing->tokenizer, &encoder->error);
    while (!encoder->status) {
        const uint64_t first = atomic_fetch_add(encoder->next, TOGETHER);
        if (first >= text->document_count)
            break;
        const struct tokenizer_batch batch = {text->documents + first, min64(TOGETHER, text->document_count - first),
                                              false, false};
        const uint64_t behind = encoder->over ? 0 : encoder->made;
        struct tokenizer_out out = {.tokens = (uint8_t *)encoder->tokens + behind * tokenizing->info.width,
                                    .capacity = tokenizing->capacity - behind,
                                    .ends = ends};
        encoder->status = tokenizer_encode(encoder->state, &batch, &out, &encoder->error);
        encoder->made += out.count;
    }
    encoder->cpu_ns = os_thread_cpu_ns() - started;
}

/* All documents on `threads` threads with these states; seconds, and those of the processors together. */
static int documents_turn(struct bench *bench, struct tokenizing *tokenizing, struct tokenizer_state *const *states,
                          uint32_t threads, double *seconds, double *cpu)
{
    _Atomic uint64_t next = 0;
    struct encoder encoders[THREADS];
    struct os_thread *running[THREADS] = {NULL};
    int system = 0;
    for (uint32_t i = 0; i < threads; i++)
        encoders[i] = (struct encoder){
            .tokenizing = tokenizing, .state = states[i], .next = &next, .tokens = tokenizing->tokens[i]};
    const uint64_t started = os_clock_ns();
    for (uint32_t i = 1; i < threads && !system; i++)
        system = os_thread_start(&running[i], "tokenize", documents_encode, &encoders[i]);
    documents_encode(&encoders[0]);
    for (uint32_t i = 1; i < threads; i++)
        os_thread_join(running[i]);
    *seconds = (double)(os_clock_ns() - started) / 1e9;
    if (system)
        return bench_failed_system(bench, system, NULL, "A thread cannot be started.");
    *cpu = 0;
    for (uint32_t i = 0; i < threads; i++) {
        if (encoders[i].status)
            return bench_failed(bench, &encoders[i].error);
        *cpu += (double)encoders[i].cpu_ns / 1e9;
    }
    if (threads == 1)
        tokenizing->document_tokens = encoders[0].made;
    return CLI_DONE;
}

/* ---- turns ---- */

static double rate_of(const struct tokenizing *tokenizing, double seconds)
{
    return (double)tokenizing->text.bytes / 1e6 / seconds;
}

static int whole_turn(struct bench *bench, struct tokenizing *tokenizing, bool counts)
{
    struct tokenizer_state *state;
    struct tokmap_error error;
    uint64_t tokens;
    double rates[2] = {0, 0};
    if (tokenizer_state_new(&state, tokenizing->tokenizer, &error))
        return bench_failed(bench, &error);
    enum tokmap_status status = TOKMAP_OK;
    for (int warm = 0; warm < 2 && !status; warm++) {
        const uint64_t started = os_clock_ns();
        status = whole_encode(tokenizing, state, &tokens, &error);
        rates[warm] = rate_of(tokenizing, (double)(os_clock_ns() - started) / 1e9);
    }
    tokenizer_state_free(state);
    if (status)
        return bench_failed(bench, &error);
    if (counts) {
        series_add(&tokenizing->whole.cold, rates[0]);
        series_add(&tokenizing->whole.warm, rates[1]);
    }
    return CLI_DONE;
}

/* The scanner alone, with the state of a pass that has ended, whose counts it takes first. */
static void scan_turn(struct tokenizing *tokenizing, struct tokenizer_state *state, bool counts)
{
    struct tokenizer_measures measures;
    uint64_t started = os_clock_ns();
    for (uint64_t i = 0; i < tokenizing->text.document_count; i++)
        if (!tokenizer_measure(state, tokenizing->text.documents[i].bytes, tokenizing->text.documents[i].count,
                               &measures))
            return;
    if (counts)
        series_add(&tokenizing->scan, rate_of(tokenizing, (double)(os_clock_ns() - started) / 1e9));
}

static int documents_turns(struct bench *bench, struct tokenizing *tokenizing, uint32_t threads, bool counts)
{
    struct tokenizer_state *states[THREADS] = {NULL};
    struct tokmap_error error;
    struct tokenizer_measures measures;
    double rates[2] = {0, 0}, cpu[2] = {0, 0}, seconds;
    int result = CLI_DONE;
    for (uint32_t i = 0; i < threads && !result; i++) {
        const uint64_t started = os_clock_ns();
        if (tokenizer_state_new(&states[i], tokenizing->tokenizer, &error))
            result = bench_failed(bench, &error);
        else if (counts && threads == 1)
            series_add(&tokenizing->state, (double)(os_clock_ns() - started) / 1e6);
    }
    for (int warm = 0; warm < 2 && !result; warm++) {
        result = documents_turn(bench, tokenizing, states, threads, &seconds, &cpu[warm]);
        rates[warm] = rate_of(tokenizing, seconds);
        if (!warm && !result && threads == 1 && tokenizer_measure(states[0], "", 0, &measures)) {
            tokenizing->pieces = measures.pieces;
            tokenizing->missed = measures.missed;
            tokenizing->merged = measures.merged;
        }
    }
    if (!result && threads == 1)
        scan_turn(tokenizing, states[0], counts);
    for (uint32_t i = 0; i < threads; i++)
        tokenizer_state_free(states[i]);
    if (counts && !result) {
        series_add(threads == 1 ? &tokenizing->documents.cold : &tokenizing->threads.cold, rates[0]);
        series_add(threads == 1 ? &tokenizing->documents.warm : &tokenizing->threads.warm, rates[1]);
        series_add(&tokenizing->cpu[threads - 1].cold, cpu[0]);
        series_add(&tokenizing->cpu[threads - 1].warm, cpu[1]);
    }
    return result;
}

static void read_turn(struct tokenizing *tokenizing, bool counts)
{
    const uint64_t started = os_clock_ns();
    keep_value(text_sum(&tokenizing->text));
    if (counts)
        series_add(&tokenizing->read, rate_of(tokenizing, (double)(os_clock_ns() - started) / 1e9));
}

/* ---- what two threads are worth on this machine ---- */

#define COMPUTE_ROUNDS 40000000 /* some 50 ms */

/* In registers alone. */
static void compute(void *user)
{
    uint64_t a = 1, b = 2;
    for (uint64_t i = 0; i < COMPUTE_ROUNDS; i++) {
        a = a * 6364136223846793005u + i;
        b = b * 2862933555777941757u + i;
    }
    keep_value(a ^ b);
}

/* How much more two threads compute than one: beside other programs, or with two threads of one core, that is not 2, and
 * no tokenizer can do better. */
static int compute_turn(struct bench *bench, struct tokenizing *tokenizing, bool counts)
{
    struct os_thread *other = NULL;
    uint64_t times[3];
    times[0] = os_clock_ns();
    compute(NULL);
    times[1] = os_clock_ns();
    const int system = os_thread_start(&other, "compute", compute, NULL);
    if (system)
        return bench_failed_system(bench, system, NULL, "A thread cannot be started.");
    compute(NULL);
    os_thread_join(other);
    times[2] = os_clock_ns();
    if (counts)
        series_add(&tokenizing->compute_ratio, 2 * (double)(times[1] - times[0]) / (double)(times[2] - times[1]));
    return CLI_DONE;
}

static double last_of(const struct series *series)
{
    return series->values[series->count - 1];
}

/* ---- copies of this program ---- */

static int child_ready(struct bench *bench)
{
    struct tokenizer *tokenizer = NULL;
    struct tokenizer_state *state = NULL;
    struct tokmap_error error;
    int result = CLI_DONE;
    if (peers_tokenizer(bench, &tokenizer))
        return CLI_FAILED;
    if (tokenizer_state_new(&state, tokenizer, &error))
        result = bench_failed(bench, &error);
    else
        (void)printf("at=%" PRIu64 "\n", os_clock_ns());
    tokenizer_state_free(state);
    tokenizer_close(tokenizer);
    return result;
}

/* All that encoding alone needs of a process: a vocabulary is opened, two threads each make their state and take documents
 * that are in memory, and ids go nowhere. */
static int child_encode(struct bench *bench, const struct tokenizing *tokenizing)
{
    _Atomic uint64_t next = 0;
    struct encoder encoders[THREADS];
    struct os_thread *running = NULL;
    int result = CLI_DONE;
    const uint64_t started = os_clock_ns();
    for (uint32_t i = 0; i < THREADS; i++)
        encoders[i] =
            (struct encoder){.tokenizing = tokenizing, .next = &next, .tokens = tokenizing->tokens[i], .over = true};
    const int system = os_thread_start(&running, "tokenize", documents_encode, &encoders[1]);
    if (!system)
        documents_encode(&encoders[0]);
    os_thread_join(running);
    if (system)
        return bench_failed_system(bench, system, NULL, "A thread cannot be started.");
    (void)printf("seconds=%.6f\n", (double)(os_clock_ns() - started + tokenizing->open_ns) / 1e9);
    for (uint32_t i = 0; i < THREADS; i++) {
        if (encoders[i].status && !result)
            result = bench_failed(bench, &encoders[i].error);
        tokenizer_state_free(encoders[i].state);
    }
    return result;
}

/* What encoding adds to the memory that holds text, ids and vocabulary: a thread's state. */
static int child_memory(struct bench *bench, struct tokenizing *tokenizing)
{
    struct tokenizer_state *state = NULL;
    struct tokmap_error error;
    uint64_t unused;
    double seconds, cpu;
    for (uint32_t i = 0; i < THREADS; i++) /* or ids would be counted, where they are written for the first time */
        memset(tokenizing->tokens[i], 1, (size_t)(tokenizing->capacity * tokenizing->info.width));
    const uint64_t before = os_memory_resident();
    if (tokenizer_state_new(&state, tokenizing->tokenizer, &error))
        return bench_failed(bench, &error);
    int result = documents_turn(bench, tokenizing, &state, 1, &seconds, &cpu);
    const uint64_t documents = os_memory_resident();
    if (!result && whole_encode(tokenizing, state, &unused, &error))
        result = bench_failed(bench, &error);
    const uint64_t whole = os_memory_resident();
    tokenizer_state_free(state);
    if (!result)
        (void)printf("documents=%.3f whole=%.3f\n", ((double)documents - (double)before) / 1048576,
                     ((double)whole - (double)before) / 1048576);
    return result;
}

static int copy_run(struct bench *bench, const char *what, char *output, size_t capacity, uint64_t *started)
{
    const struct bench_options *options = &bench->options;
    const char *arguments[16] = {"tokenize", options->dataset, "--child", what, "-t", options->tokenizer};
    (void)tokenizer_arguments_put(bench, arguments, 6);
    return child_run(bench, bench->self, arguments, output, capacity, started);
}

static int copies_turn(struct bench *bench, struct tokenizing *tokenizing, bool counts)
{
    char output[256];
    uint64_t started;
    int result = copy_run(bench, "ready", output, sizeof output, &started);
    if (result)
        return result;
    if (counts)
        series_add(&tokenizing->start, (child_number(output, "at") - (double)started) / 1e6);
    result = copy_run(bench, "encode", output, sizeof output, &started);
    if (result)
        return result;
    if (counts)
        series_add(&tokenizing->encode, rate_of(tokenizing, child_number(output, "seconds")));
    if (tokenizing->memory.count) /* once is enough */
        return CLI_DONE;
    result = copy_run(bench, "memory", output, sizeof output, &started);
    if (!result) {
        series_add(&tokenizing->memory, child_number(output, "documents"));
        series_add(&tokenizing->memory_whole, child_number(output, "whole"));
    }
    return result;
}

/* ---- results ---- */

static void share(struct bench *bench, const char *metric, double part, double all)
{
    bench_value(bench, metric, "%", all > 0 ? 100 * fmax(part, 0) / all : (double)NAN, (double)NAN);
}

/* Of the documents: shares of the cold pass, and the scanner's of the warm one. */
static void shares(struct bench *bench, const struct tokenizing *tokenizing)
{
    const double cold = 1 / series_median(&tokenizing->documents.cold),
                 warm = 1 / series_median(&tokenizing->documents.warm), scan = 1 / series_median(&tokenizing->scan),
                 ns = (double)tokenizing->text.bytes * 1e3;
    const double pieces = (double)tokenizing->pieces;
    if (!tokenizing->scan.count || !tokenizing->pieces)
        return;
    bench_result(bench, "scan_mb_s", "MB/s", &tokenizing->scan, &tokenizing->read);
    bench_value(bench, "piece_bytes", "bytes", (double)tokenizing->text.bytes / pieces, (double)NAN);
    bench_value(bench, "cold_piece_ns", "ns", cold * ns / pieces, (double)NAN);
    bench_value(bench, "warm_piece_ns", "ns", warm * ns / pieces, (double)NAN);
    share(bench, "hit_percent", pieces - (double)tokenizing->missed, pieces);
    share(bench, "merged_percent", (double)tokenizing->merged, pieces);
    share(bench, "cold_scan_percent", scan, cold);
    share(bench, "cold_probe_percent", warm - scan, cold);
    share(bench, "cold_merge_percent", cold - warm, cold);
    share(bench, "warm_scan_percent", scan, warm);
}

static void results(struct bench *bench, struct tokenizing *tokenizing)
{
    const struct series *read = &tokenizing->read;
    const double bytes_a_token = (double)tokenizing->text.bytes / (double)max64(1, tokenizing->document_tokens);
    if (!bench->options.documents) {
        bench_result(bench, "cold_mb_s", "MB/s", &tokenizing->whole.cold, read);
        bench_result(bench, "warm_mb_s", "MB/s", &tokenizing->whole.warm, read);
    }
    bench_result(bench, "doc_cold_mb_s", "MB/s", &tokenizing->documents.cold, read);
    bench_result(bench, "doc_warm_mb_s", "MB/s", &tokenizing->documents.warm, read);
    bench_value(bench, "cold_tokens_per_s", "M/s", series_median(&tokenizing->documents.cold) / bytes_a_token,
                (double)NAN);
    bench_value(bench, "warm_tokens_per_s", "M/s", series_median(&tokenizing->documents.warm) / bytes_a_token,
                (double)NAN);
    bench_value(bench, "token_bytes", "bytes", bytes_a_token, (double)NAN);
    bench_result(bench, "threads2_cold_mb_s", "MB/s", &tokenizing->threads.cold, read);
    bench_result(bench, "threads2_warm_mb_s", "MB/s", &tokenizing->threads.warm, read);
    bench_result(bench, "threads2_ratio", "x", &tokenizing->threads_ratio.cold, &tokenizing->compute_ratio);
    bench_result(bench, "threads2_warm_ratio", "x", &tokenizing->threads_ratio.warm, &tokenizing->compute_ratio);
    bench_result(bench, "threads2_cpu_ratio", "x", &tokenizing->cpu_ratio.cold, NULL);
    bench_result(bench, "threads2_cpu_warm_ratio", "x", &tokenizing->cpu_ratio.warm, NULL);
    bench_result(bench, "compute2_ratio", "x", &tokenizing->compute_ratio, NULL);
    shares(bench, tokenizing);
    /* Beside encoding alone, on as many threads: with states and vocabulary ready, and from a vocabulary's file on. */
    bench_result(bench, "pack_mb_s", "MB/s", &tokenizing->records.rate, &tokenizing->threads.cold);
    bench_result(bench, "pack_loading_mb_s", "MB/s", &tokenizing->records.rate, &tokenizing->encode);
    bench_result(bench, "pack_peak_mib", "MiB", &tokenizing->records.peak, NULL);
    bench_result(bench, "start_ms", "ms", &tokenizing->start, NULL);
    bench_result(bench, "state_ms", "ms", &tokenizing->state, NULL);
    bench_result(bench, "memory_mib", "MiB", &tokenizing->memory, NULL);
    bench_result(bench, "memory_whole_mib", "MiB", &tokenizing->memory_whole, NULL);
    peers_results(bench, &tokenizing->peers);
}

/* ---- the case ---- */

static int tokenizing_open(struct bench *bench, struct tokenizing *tokenizing)
{
    int result = text_read(bench, &tokenizing->text);
    if (!result)
        result = text_cut(bench, &tokenizing->text);
    const uint64_t started = os_clock_ns();
    if (!result)
        result = peers_tokenizer(bench, &tokenizing->tokenizer);
    tokenizing->open_ns = os_clock_ns() - started;
    if (result)
        return result;
    uint64_t bytes = 0;
    tokenizer_info(tokenizing->tokenizer, &tokenizing->info);
    if (mul_overflows(tokenizing->text.bytes, tokenizing->info.ids_per_byte_most, &tokenizing->capacity) ||
        mul_overflows(tokenizing->capacity, tokenizing->info.width, &bytes) || bytes > SIZE_MAX)
        return bench_no_memory(bench);
    for (uint32_t i = 0; i < THREADS; i++) {
        tokenizing->tokens[i] = malloc((size_t)bytes);
        if (!tokenizing->tokens[i])
            return bench_no_memory(bench);
    }
    return CLI_DONE;
}

static int turn_run(struct bench *bench, struct tokenizing *tokenizing, bool counts)
{
    int result = CLI_DONE;
    read_turn(tokenizing, counts);
    if (!bench->options.documents)
        result = whole_turn(bench, tokenizing, counts);
    if (!result)
        result = documents_turns(bench, tokenizing, 1, counts);
    if (!result)
        result = documents_turns(bench, tokenizing, 2, counts);
    if (!result)
        result = compute_turn(bench, tokenizing, counts);
    if (!result)
        result = copies_turn(bench, tokenizing, counts);
    if (!result)
        result = pack_records_turn(bench, &tokenizing->records, counts);
    if (!result && counts) {
        series_add(&tokenizing->threads_ratio.cold,
                   last_of(&tokenizing->threads.cold) / last_of(&tokenizing->documents.cold));
        series_add(&tokenizing->threads_ratio.warm,
                   last_of(&tokenizing->threads.warm) / last_of(&tokenizing->documents.warm));
        series_add(&tokenizing->cpu_ratio.cold,
                   2 * last_of(&tokenizing->cpu[0].cold) / last_of(&tokenizing->cpu[1].cold));
        series_add(&tokenizing->cpu_ratio.warm,
                   2 * last_of(&tokenizing->cpu[0].warm) / last_of(&tokenizing->cpu[1].warm));
    }
    const struct series *const ours[PEER_RATES] = {&tokenizing->whole.cold, &tokenizing->whole.warm,
                                                   &tokenizing->documents.cold, &tokenizing->documents.warm};
    return result ? result : peers_turn(bench, &tokenizing->peers, counts, ours);
}

static int run(struct bench *bench)
{
    static struct tokenizing tokenizing;
    const char *child = bench->options.child;
    if (!bench->options.dataset || !bench->options.tokenizer) {
        cli_say(bench->program, "which text, and which tokenizer? tokmap-bench tokenize FILE -t TOKENIZER");
        return CLI_MISUSED;
    }
    if (child && !strcmp(child, "ready"))
        return child_ready(bench);
    if (child && !strcmp(child, "pack"))
        return pack_records_child(bench);
    int result = tokenizing_open(bench, &tokenizing);
    if (!result && child) {
        result = strcmp(child, "encode") ? child_memory(bench, &tokenizing) : child_encode(bench, &tokenizing);
    } else if (!result) {
        result = peers_open(bench, &tokenizing.peers, &tokenizing.text, &tokenizing.info);
        if (!result)
            result = pack_records_open(bench, &tokenizing.records, &tokenizing.text);
        for (uint64_t turn = 0; !result && turn <= bench_repeats(bench, 5) && !bench_stopped(); turn++)
            result = turn_run(bench, &tokenizing, turn > 0); /* the first warms */
        if (bench_stopped())
            result = CLI_FAILED;
        if (!result)
            results(bench, &tokenizing);
    }
    for (uint32_t i = 0; i < THREADS; i++)
        free(tokenizing.tokens[i]);
    free(tokenizing.text.documents);
    free(tokenizing.text.text);
    tokenizer_close(tokenizing.tokenizer);
    return result;
}

const struct bench_case case_tokenize = {
    "tokenize", "text through a tokenizer, fresh and warm, beside other tokenizers; needs FILE and -t", run};
