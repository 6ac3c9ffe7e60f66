/* SPDX-License-Identifier: MIT */
/*
 * case_tokenize.c - the rate of a tokenizer on a text: whole and in documents of 4 KB, with a new state and again with
 * the same state, on one thread and on two; the command `tokmap pack` on the same documents; and, interleaved with
 * these, other tokenizers (peers.h). The limit is a loop that reads the text. With --worst, case_tokenize_worst.c runs.
 *
 * How the time divides into scanner, cache lookups and merges is computed by subtraction, because looking at a clock
 * for each piece would take longer than what it measures. The scanner runs alone over the text. A warm pass consists of
 * scanning and lookups. What a cold pass takes longer than a warm one is the cost of misses: merging, and storing the
 * result in the cache. The hot samples are encoded again and again, until the processor's caches hold all that they
 * need and its branch predictor knows them: a warm pass takes longer by what waiting for memory and wrong predictions
 * cost.
 */
#include "cases.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case_tokenize_threads.h"
#include "case_tokenize_worst.h"
#include "cli/cli.h"
#include "common/bytes.h"
#include "harness/bench_text.h"
#include "harness/child.h"
#include "harness/bench_data.h"
#include "peers/peers.h"
#include "platform/os.h"

#define TOGETHER 64 /* documents in one call, as in a batch of the packer */
#define THREADS 2   /* the most threads that are measured */
#define SAMPLES 16  /* of the text, at equal distances, that are encoded again and again */
#define SAMPLE_DOCUMENTS 16
#define SAMPLE_REPEATS 20

/* The tables of the loop that looks up: from one that a processor's own cache holds to one as large as a thread's
 * state. */
static const struct {
    const char *metric;
    uint64_t bytes;
} tables[] = {
    {"lookup2_1mib_ratio", 1 << 20},
    {"lookup2_8mib_ratio", 8 << 20},
    {"lookup2_16mib_ratio", 16 << 20},
    {"lookup2_32mib_ratio", 32 << 20},
};

#define TABLES 4

/* One value with a new state, and one with the same state again. */
struct rates {
    struct series cold, warm;
};

struct tokenizing {
    struct bench_text text;
    struct tokenizer *tokenizer;
    struct tokenizer_info info;
    void *tokens[THREADS];                  /* output of each thread */
    uint64_t capacity;                      /* of each, in tokens */
    uint64_t pieces, missed, merged;        /* counts of a cold pass over the documents */
    uint64_t document_tokens;               /* tokens of all documents */
    uint64_t open_ns;                       /* the time of opening the tokenizer */
    struct rates whole, documents, threads; /* MB/s; threads: of the documents on two threads */
    struct rates threads_ratio;             /* rate on two threads divided by the rate on one */
    struct rates cpu[THREADS], cpu_ratio;   /* seconds of all processors, by number of threads */
    struct series compute_ratio, lookup_ratio[TABLES];
    struct series read, scan, hot, start, encode, memory, memory_whole, state;
    struct series open;
    struct pack_records records;
    struct peers peers;
};

/* ---- the limit ---- */

/* Reads the whole text, which no tokenizer can do faster. */
static uint64_t text_sum(const struct bench_text *text)
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

static void whole_encode(struct bench *bench, const struct tokenizing *tokenizing, struct tokenizer_state *state)
{
    uint64_t end = 0;
    const struct tokmap_text text = {tokenizing->text.text, tokenizing->text.bytes};
    const struct tokenizer_batch batch = {&text, 1, false, false};
    struct tokenizer_out out = {.tokens = tokenizing->tokens[0], .capacity = tokenizing->capacity, .ends = &end};
    bench_check(bench, tokenizer_encode(state, &batch, &out, &bench->error));
}

/* One thread, which takes documents until none are left. */
struct encoder {
    const struct tokenizing *tokenizing;
    struct tokenizer_state *state; /* NULL: the thread makes its own, which its creator frees */
    _Atomic uint64_t *next;        /* number of the next document, shared by all threads */
    void *tokens;
    bool overwrite;        /* write the ids of each call over those of the call before */
    uint64_t made, cpu_ns; /* results: tokens, processor time of this thread */
    enum tokmap_status status;
    struct tokmap_error error;
};

static void documents_encode(void *user)
{
    struct encoder *encoder = user;
    const struct tokenizing *tokenizing = encoder->tokenizing;
    const struct bench_text *text = &tokenizing->text;
    uint64_t ends[TOGETHER];
    const uint64_t started = os_thread_cpu_ns();
    encoder->made = 0;
    encoder->status =
        encoder->state ? TOKMAP_OK : tokenizer_state_new(&encoder->state, tokenizing->tokenizer, &encoder->error);
    while (!encoder->status) {
        const uint64_t first = atomic_fetch_add(encoder->next, TOGETHER);
        if (first >= text->document_count)
            break;
        const struct tokenizer_batch batch = {text->documents + first, min64(TOGETHER, text->document_count - first),
                                              false, false};
        const uint64_t offset = encoder->overwrite ? 0 : encoder->made;
        struct tokenizer_out out = {.tokens = (uint8_t *)encoder->tokens + offset * tokenizing->info.width,
                                    .capacity = tokenizing->capacity - offset,
                                    .ends = ends};
        encoder->status = tokenizer_encode(encoder->state, &batch, &out, &encoder->error);
        encoder->made += out.count;
    }
    encoder->cpu_ns = os_thread_cpu_ns() - started;
}

/* Encodes all documents on `threads` threads with the given states. Sets *seconds, and *cpu to the processor seconds of
 * all threads. */
static void documents_pass(struct bench *bench, struct tokenizing *tokenizing, struct tokenizer_state *const *states,
                           uint32_t threads, double *seconds, double *cpu)
{
    _Atomic uint64_t next = 0;
    struct encoder encoders[THREADS];
    struct os_thread *running[THREADS] = {NULL};
    int system = 0;
    assert(threads && threads <= THREADS);
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
    bench_check_system(bench, system, NULL, "A thread cannot be started.");
    *cpu = 0;
    for (uint32_t i = 0; i < threads; i++) {
        if (encoders[i].status)
            bench_failed(bench, &encoders[i].error);
        *cpu += (double)encoders[i].cpu_ns / 1e9;
    }
    if (threads == 1)
        tokenizing->document_tokens = encoders[0].made;
}

/* ---- repeats ---- */

static double rate_of(const struct tokenizing *tokenizing, double seconds)
{
    return (double)tokenizing->text.bytes / 1e6 / seconds;
}

static void whole_repeat(struct bench *bench, struct tokenizing *tokenizing, bool counts)
{
    struct tokenizer_state *state;
    double rates[2] = {0, 0};
    bench_check(bench, tokenizer_state_new(&state, tokenizing->tokenizer, &bench->error));
    for (int warm = 0; warm < 2; warm++) {
        const uint64_t started = os_clock_ns();
        whole_encode(bench, tokenizing, state);
        rates[warm] = rate_of(tokenizing, (double)(os_clock_ns() - started) / 1e9);
    }
    tokenizer_state_free(state);
    if (counts) {
        series_add(&tokenizing->whole.cold, rates[0]);
        series_add(&tokenizing->whole.warm, rates[1]);
    }
}

/* Runs the scanner alone over the documents. state: of a pass that has ended and whose counts have been read. */
static void scan_repeat(struct tokenizing *tokenizing, struct tokenizer_state *state, bool counts)
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

/* Encodes samples that the caches of the state and of the processor hold, and the branch predictor knows. */
static void hot_repeat(struct bench *bench, struct tokenizing *tokenizing, struct tokenizer_state *state, bool counts)
{
    const struct bench_text *text = &tokenizing->text;
    const uint64_t count = min64(SAMPLE_DOCUMENTS, text->document_count);
    uint64_t ends[SAMPLE_DOCUMENTS], bytes = 0, ns = 0;
    for (uint64_t sample = 0; sample < SAMPLES; sample++) {
        const struct tokmap_text *documents = text->documents + (text->document_count - count) * sample / SAMPLES;
        const struct tokenizer_batch batch = {documents, count, false, false};
        uint64_t started = 0;
        for (int again = -2; again < SAMPLE_REPEATS; again++) {
            struct tokenizer_out out = {
                .tokens = tokenizing->tokens[0], .capacity = tokenizing->capacity, .ends = ends};
            if (again == 0)
                started = os_clock_ns();
            bench_check(bench, tokenizer_encode(state, &batch, &out, &bench->error));
        }
        ns += os_clock_ns() - started;
        for (uint64_t i = 0; i < count; i++)
            bytes += SAMPLE_REPEATS * documents[i].count;
    }
    if (counts && bytes)
        series_add(&tokenizing->hot, (double)bytes * 1e3 / (double)max64(1, ns));
}

static void documents_cold_and_warm(struct bench *bench, struct tokenizing *tokenizing, uint32_t threads, bool counts)
{
    struct tokenizer_state *states[THREADS] = {NULL};
    struct tokenizer_measures measures;
    double rates[2] = {0, 0}, cpu[2] = {0, 0}, seconds;
    for (uint32_t i = 0; i < threads; i++) {
        const uint64_t started = os_clock_ns();
        bench_check(bench, tokenizer_state_new(&states[i], tokenizing->tokenizer, &bench->error));
        if (counts && threads == 1)
            series_add(&tokenizing->state, (double)(os_clock_ns() - started) / 1e6);
    }
    for (int warm = 0; warm < 2; warm++) {
        documents_pass(bench, tokenizing, states, threads, &seconds, &cpu[warm]);
        rates[warm] = rate_of(tokenizing, seconds);
        if (!warm && threads == 1 && tokenizer_measure(states[0], "", 0, &measures)) {
            tokenizing->pieces = measures.pieces;
            tokenizing->missed = measures.missed;
            tokenizing->merged = measures.merged;
        }
    }
    if (threads == 1)
        scan_repeat(tokenizing, states[0], counts);
    if (threads == 1)
        hot_repeat(bench, tokenizing, states[0], counts);
    for (uint32_t i = 0; i < threads; i++)
        tokenizer_state_free(states[i]);
    if (counts) {
        series_add(threads == 1 ? &tokenizing->documents.cold : &tokenizing->threads.cold, rates[0]);
        series_add(threads == 1 ? &tokenizing->documents.warm : &tokenizing->threads.warm, rates[1]);
        series_add(&tokenizing->cpu[threads - 1].cold, cpu[0]);
        series_add(&tokenizing->cpu[threads - 1].warm, cpu[1]);
    }
}

static void read_repeat(struct tokenizing *tokenizing, bool counts)
{
    const uint64_t started = os_clock_ns();
    keep_value(text_sum(&tokenizing->text));
    if (counts)
        series_add(&tokenizing->read, rate_of(tokenizing, (double)(os_clock_ns() - started) / 1e9));
}

/* ---- the gain from a second thread on this machine ---- */

/* Measures what a second thread adds to loops that share nothing. No tokenizer can expect more. */
static void machine_repeat(struct bench *bench, struct tokenizing *tokenizing, bool counts)
{
    double ratio = 0;
    int system = two_threads_compute(&ratio);
    if (counts && !system)
        series_add(&tokenizing->compute_ratio, ratio);
    for (int i = 0; i < TABLES && !system; i++) {
        system = two_threads_look_up(tables[i].bytes, &ratio);
        if (counts && !system)
            series_add(&tokenizing->lookup_ratio[i], ratio);
    }
    bench_check_system(bench, system, NULL, "Two threads cannot be measured.");
}

/* ---- copies of this program ---- */

/* Prints when a tokenizer is ready, and how long opening it took. */
static void child_ready(struct bench *bench)
{
    struct tokenizer_state *state = NULL;
    const uint64_t started = os_clock_ns();
    struct tokenizer *tokenizer = bench_tokenizer_open(bench);
    const uint64_t open_ns = os_clock_ns() - started;
    bench_check(bench, tokenizer_state_new(&state, tokenizer, &bench->error));
    (void)printf("at=%" PRIu64 " open=%.6f\n", os_clock_ns(), (double)open_ns / 1e6);
    tokenizer_state_free(state);
    tokenizer_close(tokenizer);
}

/* Prints the time that encoding alone takes in a process: opening the vocabulary (already done by the caller), making a
 * state on each of two threads, and encoding documents that are in memory, without writing the ids anywhere. */
static void child_encode(struct bench *bench, const struct tokenizing *tokenizing)
{
    _Atomic uint64_t next = 0;
    struct encoder encoders[THREADS];
    struct os_thread *running = NULL;
    const uint64_t started = os_clock_ns();
    for (uint32_t i = 0; i < THREADS; i++)
        encoders[i] = (struct encoder){
            .tokenizing = tokenizing, .next = &next, .tokens = tokenizing->tokens[i], .overwrite = true};
    const int system = os_thread_start(&running, "tokenize", documents_encode, &encoders[1]);
    if (!system)
        documents_encode(&encoders[0]);
    os_thread_join(running);
    bench_check_system(bench, system, NULL, "A thread cannot be started.");
    (void)printf("seconds=%.6f\n", (double)(os_clock_ns() - started + tokenizing->open_ns) / 1e9);
    for (uint32_t i = 0; i < THREADS; i++) {
        if (encoders[i].status)
            bench_failed(bench, &encoders[i].error);
        tokenizer_state_free(encoders[i].state);
    }
}

/* Prints the memory that encoding adds to that of text, ids and vocabulary: the state of a thread. */
static void child_memory(struct bench *bench, struct tokenizing *tokenizing)
{
    struct tokenizer_state *state = NULL;
    double seconds, cpu;
    for (uint32_t i = 0; i < THREADS; i++) /* touch the memory of the ids now, so that it is not counted */
        memset(tokenizing->tokens[i], 1, (size_t)(tokenizing->capacity * tokenizing->info.width));
    const uint64_t before = os_memory_resident();
    bench_check(bench, tokenizer_state_new(&state, tokenizing->tokenizer, &bench->error));
    documents_pass(bench, tokenizing, &state, 1, &seconds, &cpu);
    const uint64_t documents = os_memory_resident();
    whole_encode(bench, tokenizing, state);
    const uint64_t whole = os_memory_resident();
    tokenizer_state_free(state);
    (void)printf("documents=%.3f whole=%.3f\n", ((double)documents - (double)before) / 1048576,
                 ((double)whole - (double)before) / 1048576);
}

static void copies_repeat(struct bench *bench, struct tokenizing *tokenizing, bool counts)
{
    const char *text = tokenizing->text.path;
    char output[256] = "";
    struct child_usage usage = {.seconds = 0};
    child_run_copy(bench, "ready", text, output, sizeof output, &usage);
    if (counts) {
        series_add(&tokenizing->start, (child_number(output, "at") - (double)usage.started_ns) / 1e6);
        series_add(&tokenizing->open, child_number(output, "open"));
    }
    child_run_copy(bench, "encode", text, output, sizeof output, NULL);
    if (counts)
        series_add(&tokenizing->encode, rate_of(tokenizing, child_number(output, "seconds")));
    if (tokenizing->memory.count) /* memory does not vary, so one value is enough */
        return;
    child_run_copy(bench, "memory", text, output, sizeof output, NULL);
    series_add(&tokenizing->memory, child_number(output, "documents"));
    series_add(&tokenizing->memory_whole, child_number(output, "whole"));
}

/* ---- results ---- */

/* Writes a part as a percentage; a negative part, which noise can cause, as 0. */
static void share_result(struct bench *bench, const char *metric, double part, double all)
{
    bench_value(bench, metric, "%", all > 0 ? 100 * fmax(part, 0) / all : (double)NAN, (double)NAN);
}

/* Writes where the time of the passes over the documents goes. */
static void share_results(struct bench *bench, const struct tokenizing *tokenizing)
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
    share_result(bench, "hit_percent", pieces - (double)tokenizing->missed, pieces);
    share_result(bench, "merged_percent", (double)tokenizing->merged, pieces);
    share_result(bench, "cold_scan_percent", scan, cold);
    share_result(bench, "cold_probe_percent", warm - scan, cold);
    share_result(bench, "cold_merge_percent", cold - warm, cold);
    share_result(bench, "warm_scan_percent", scan, warm);
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
    bench_result(bench, "hot_mb_s", "MB/s", &tokenizing->hot, read);
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
    for (int i = 0; i < TABLES; i++)
        bench_result(bench, tables[i].metric, "x", &tokenizing->lookup_ratio[i], NULL);
    share_results(bench, tokenizing);
    /* The limit of packing is encoding alone on as many threads: with vocabulary and states ready, and including them.
     */
    bench_result(bench, "pack_mb_s", "MB/s", &tokenizing->records.rate, &tokenizing->threads.cold);
    bench_result(bench, "pack_loading_mb_s", "MB/s", &tokenizing->records.rate, &tokenizing->encode);
    bench_result(bench, "pack_peak_mib", "MiB", &tokenizing->records.peak, NULL);
    bench_result(bench, "start_ms", "ms", &tokenizing->start, NULL);
    bench_result(bench, "open_ms", "ms", &tokenizing->open, NULL);
    bench_result(bench, "state_ms", "ms", &tokenizing->state, NULL);
    bench_result(bench, "memory_mib", "MiB", &tokenizing->memory, NULL);
    bench_result(bench, "memory_whole_mib", "MiB", &tokenizing->memory_whole, NULL);
    peers_results(bench, &tokenizing->peers);
}

/* ---- the case ---- */

static void tokenizing_open(struct bench *bench, struct tokenizing *tokenizing)
{
    bench_text_open(bench, &tokenizing->text);
    const uint64_t started = os_clock_ns();
    tokenizing->tokenizer = bench_tokenizer_open(bench);
    tokenizing->open_ns = os_clock_ns() - started;
    tokenizer_info(tokenizing->tokenizer, &tokenizing->info);
    if (mul_overflows(tokenizing->text.bytes, tokenizing->info.ids_per_byte_most, &tokenizing->capacity))
        bench_no_memory(bench);
    for (uint32_t i = 0; i < THREADS; i++)
        tokenizing->tokens[i] = bench_new(bench, tokenizing->capacity, tokenizing->info.width);
}

static void all_repeat(struct bench *bench, struct tokenizing *tokenizing, bool counts)
{
    read_repeat(tokenizing, counts);
    if (!bench->options.documents)
        whole_repeat(bench, tokenizing, counts);
    documents_cold_and_warm(bench, tokenizing, 1, counts);
    documents_cold_and_warm(bench, tokenizing, 2, counts);
    machine_repeat(bench, tokenizing, counts);
    copies_repeat(bench, tokenizing, counts);
    pack_records_repeat(bench, &tokenizing->records, counts);
    if (counts) {
        series_add(&tokenizing->threads_ratio.cold,
                   series_last(&tokenizing->threads.cold) / series_last(&tokenizing->documents.cold));
        series_add(&tokenizing->threads_ratio.warm,
                   series_last(&tokenizing->threads.warm) / series_last(&tokenizing->documents.warm));
        series_add(&tokenizing->cpu_ratio.cold,
                   2 * series_last(&tokenizing->cpu[0].cold) / series_last(&tokenizing->cpu[1].cold));
        series_add(&tokenizing->cpu_ratio.warm,
                   2 * series_last(&tokenizing->cpu[0].warm) / series_last(&tokenizing->cpu[1].warm));
    }
    const struct series *const ours[PEER_RATES] = {&tokenizing->whole.cold, &tokenizing->whole.warm,
                                                   &tokenizing->documents.cold, &tokenizing->documents.warm};
    peers_repeat(bench, &tokenizing->peers, counts, ours);
}

static int run(struct bench *bench)
{
    static struct tokenizing tokenizing;
    const char *child = bench->options.child;
    if (!bench->options.dataset || !bench->options.tokenizer)
        return bench_misused(bench, "name a text and a tokenizer: tokmap-bench tokenize FILE -t TOKENIZER");
    if (bench->options.worst)
        return tokenize_worst_run(bench);
    if (child && !strcmp(child, "ready")) {
        child_ready(bench);
        return CLI_DONE;
    }
    if (child && !strcmp(child, "pack")) {
        pack_records_child(bench);
        return CLI_DONE;
    }
    tokenizing_open(bench, &tokenizing);
    if (child && !strcmp(child, "encode")) {
        child_encode(bench, &tokenizing);
    } else if (child) {
        child_memory(bench, &tokenizing);
    } else {
        peers_open(bench, &tokenizing.peers, &tokenizing.text, &tokenizing.info);
        pack_records_open(bench, &tokenizing.records, &tokenizing.text);
        struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 5), REPEATS_WARM_FIRST);
        while (repeats_next(&repeats))
            all_repeat(bench, &tokenizing, repeats.counts);
        results(bench, &tokenizing);
    }
    for (uint32_t i = 0; i < THREADS; i++)
        free(tokenizing.tokens[i]);
    bench_text_close(&tokenizing.text);
    tokenizer_close(tokenizing.tokenizer);
    return CLI_DONE;
}

const struct bench_case case_tokenize = {
    "tokenize", "rate of a tokenizer, cold and warm, beside other tokenizers; needs FILE and -t", run};
