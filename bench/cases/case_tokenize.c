/* SPDX-License-Identifier: MIT */
/*
 * case_tokenize.c - the rate of a tokenizer on a text: whole and in documents of 4 KB, with a new state and again with
 * the same state, on one thread and on two; the command `tokmap pack` on the same documents; and, interleaved with
 * these, other tokenizers (struct peers). The limit is a loop that reads the text. With --worst, case_tokenize_worst.c
 * runs.
 */
#include "cases.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "harness/bench_data.h"
#include "harness/bench_text.h"
#include "harness/child.h"
#include "harness/storage.h"
#include "peers/scripts.h"
#include "platform/os.h"

/* ==== other tokenizers ==== */

/*
 * A repeat of a peer is a new process of a Python that the user provides. It runs bench/peers/encode.py, which encodes
 * the same text. The ids of each peer are compared with ours once.
 */

#define PEERS_MOST 2
/* With a new state and again with the same state: of the whole text, and of its documents. */
enum peer_rate { PEER_COLD, PEER_WARM, PEER_DOC_COLD, PEER_DOC_WARM, PEER_RATES };

struct peer {
    const char *name;
    uint64_t bytes;                  /* of the text that it gets; slow peers do not get all of it */
    uint64_t documents;              /* number of documents in these bytes */
    struct series rate[PEER_RATES];  /* MB/s */
    struct series ratio[PEER_RATES]; /* our rate divided by the peer's, repeat by repeat */
    bool equal[2];                   /* the ids are ours: of the whole text, of the documents */
};

struct peers {
    struct peer list[PEERS_MOST];
    uint32_t count;
    char python[BENCH_PATH], script[BENCH_PATH], ids[BENCH_PATH];
    const struct bench_text *text;
    const char *pattern; /* split pattern of a rank file */
};

/* The peers that encode.py can run. Slow ones get only a part of the text: their rate does not depend on its length. */
static const struct {
    const char *name;
    uint64_t bytes; /* the most that it gets */
} known[] = {{"gigatoken", UINT64_MAX}, {"tokenizers", (uint64_t)4 << 20}};
#define KNOWN (sizeof known / sizeof known[0])

static const char *const rate_names[PEER_RATES] = {"cold", "warm", "doc_cold", "doc_warm"};

/* ---- choosing peers ---- */

static void peer_add(struct bench *bench, struct peers *peers, const char *name, size_t length)
{
    for (size_t i = 0; i < KNOWN; i++) {
        if (strlen(known[i].name) != length || memcmp(known[i].name, name, length))
            continue;
        if (peers->count == PEERS_MOST)
            break;
        struct peer *peer = &peers->list[peers->count++];
        peer->name = known[i].name;
        while (peer->documents < peers->text->document_count && peer->bytes < known[i].bytes)
            peer->bytes += peers->text->documents[peer->documents++].count;
        return;
    }
    cli_say(bench->program, "--against accepts gigatoken and tokenizers, separated by a comma, but not '%.*s'",
            (int)length, name);
    bench_end(bench, CLI_MISUSED);
}

static void script_find(struct bench *bench, struct peers *peers)
{
    char folder[BENCH_PATH];
    struct os_stat stat;
    scripts_folder(bench, folder);
    const int length = snprintf(peers->script, BENCH_PATH, "%s/encode.py", folder);
    if (length >= 0 && length < BENCH_PATH && !os_stat(peers->script, &stat))
        return;
    cli_say(bench->program, "%s does not exist; name its folder with --peers-folder", peers->script);
    bench_end(bench, CLI_FAILED);
}

/* Names the file to which encode.py writes the ids of the whole text or of the documents. */
static void ids_path(const struct peers *peers, bool documents, char path[BENCH_PATH + 16])
{
    (void)snprintf(path, BENCH_PATH + 16, "%s.%s", peers->ids, documents ? "documents" : "whole");
}

/* Prepares the peers that --against names; none without that option. *text must stay valid. */
static void peers_open(struct bench *bench, struct peers *peers, const struct bench_text *text,
                       const struct tokenizer_info *info)
{
    const char *names = bench->options.against;
    const char *venv = bench->options.venv;
    peers->text = text;
    peers->pattern = bench->options.pattern ? bench->options.pattern : info->name;
    while (names && *names) {
        const size_t length = strcspn(names, ",");
        peer_add(bench, peers, names, length);
        names += length + (names[length] == ',');
    }
    if (!peers->count)
        return;
    if (!venv) {
        cli_say(bench->program,
                "--against needs --venv FOLDER, a Python environment that contains these tokenizers; make one with: "
                "python3 -m venv FOLDER; FOLDER/bin/pip install numpy awkward gigatoken tokenizers");
        bench_end(bench, CLI_MISUSED);
    }
    const int length = snprintf(peers->python, sizeof peers->python, "%s/bin/python", venv);
    if (length < 0 || length >= BENCH_PATH)
        bench_failed_system(bench, ENAMETOOLONG, venv, "The path of its Python would be too long; move it.");
    made_path(bench, "ids", peers->ids);
    for (int documents = 0; documents < 2; documents++) {
        char path[BENCH_PATH + 16];
        ids_path(peers, documents, path);
        made_add(bench, path);
    }
    script_find(bench, peers);
}

/* ---- comparing ids ---- */

/* Encodes with our tokenizer the text that a peer gets. The caller frees the tokens. */
static struct tokenizer_out ours_encode(struct bench *bench, const struct peers *peers, const struct peer *peer,
                                        bool documents, struct tokenizer *tokenizer)
{
    const struct tokmap_text whole = {peers->text->text, peer->bytes};
    const struct tokenizer_batch batch = {documents ? peers->text->documents : &whole, documents ? peer->documents : 1,
                                          false, false};
    struct tokenizer_out out = {0};
    struct tokenizer_state *state = NULL;
    const struct tokenizer_info info = info_of_tokenizer(tokenizer);
    if (mul_overflows(peer->bytes, info.ids_per_byte_most, &out.capacity))
        bench_no_memory(bench);
    out.tokens = bench_new(bench, out.capacity, info.width);
    out.ends = bench_new(bench, batch.count, sizeof *out.ends);
    bench_check(bench, tokenizer_state_new(&state, tokenizer, &bench->error));
    bench_check(bench, tokenizer_encode(state, &batch, &out, &bench->error));
    tokenizer_state_free(state);
    free(out.ends);
    return out;
}

static void ids_compare(struct bench *bench, const struct peers *peers, struct peer *peer, bool documents,
                        const void *ours, uint64_t count, uint32_t width)
{
    char path[BENCH_PATH + 16];
    const void *theirs = NULL;
    struct os_stat stat = {0};
    int fd;
    ids_path(peers, documents, path);
    int system = os_open(path, OS_READ, &fd);
    if (!system) {
        system = os_fstat(fd, &stat);
        if (!system && stat.bytes)
            system = os_map_file(fd, stat.bytes, &theirs);
        os_close(fd);
    }
    bench_check_system(bench, system, path, "The ids that another tokenizer wrote cannot be read.");
    uint64_t same = 0;
    const uint64_t both = min64(count, stat.bytes / 4);
    for (; same < both; same++) {
        const uint8_t *own = (const uint8_t *)ours + same * width;
        if (load32((const uint8_t *)theirs + 4 * same) != (width == 2 ? load16(own) : load32(own)))
            break;
    }
    if (theirs)
        os_unmap(theirs, stat.bytes);
    made_file_remove(bench, path);
    peer->equal[documents] = same == count && 4 * count == stat.bytes;
    if (!peer->equal[documents])
        cli_say(bench->program,
                "the ids of %s differ from ours (%s): it has %" PRIu64 " ids, we have %" PRIu64
                ", and the first difference is at id number %" PRIu64,
                peer->name, documents ? "documents" : "whole text", stat.bytes / 4, count, same);
}

static void ids_check(struct bench *bench, const struct peers *peers, struct peer *peer, bool documents)
{
    struct tokenizer *tokenizer = bench_tokenizer_open(bench);
    const struct tokenizer_info info = info_of_tokenizer(tokenizer);
    struct tokenizer_out out = ours_encode(bench, peers, peer, documents, tokenizer);
    ids_compare(bench, peers, peer, documents, out.tokens, out.count, info.width);
    free(out.tokens);
    tokenizer_close(tokenizer);
}

/* ---- repeats ---- */

static void peer_repeat(struct bench *bench, struct peers *peers, struct peer *peer, bool counts,
                        const struct series *const ours[PEER_RATES])
{
    char bytes[32], output[1024] = "";
    const bool documents = bench->options.documents;
    (void)snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)peer->bytes);
    const char *const arguments[] = {peers->script, peer->name,     bench->options.tokenizer, peers->text->path,
                                     bytes,         peers->pattern, documents ? "0" : "1",    counts ? "" : peers->ids,
                                     NULL};
    bench_say(bench, "running %s on %s", peer->name,
              peer->bytes == peers->text->bytes ? "the whole text" : "a part of the text");
    child_run(bench, peers->python, arguments, output, sizeof output, NULL);
    for (int i = documents ? PEER_DOC_COLD : PEER_COLD; i < PEER_RATES && counts; i++) {
        const double rate = (double)peer->bytes / 1e6 / child_number(output, rate_names[i]);
        if (!isfinite(rate))
            continue;
        series_add(&peer->rate[i], rate);
        assert(ours[i]->count);
        series_add(&peer->ratio[i], series_last(ours[i]) / rate);
    }
    if (!counts && !documents)
        ids_check(bench, peers, peer, false);
    if (!counts)
        ids_check(bench, peers, peer, true);
}

/* Runs each peer once. If counts is false (the first repeat), compares its ids with ours; otherwise adds its rates to
 * the series, and the ratios to the last values of `ours`. */
static void peers_repeat(struct bench *bench, struct peers *peers, bool counts,
                         const struct series *const ours[PEER_RATES])
{
    for (uint32_t i = 0; i < peers->count && !bench_stopped(); i++)
        peer_repeat(bench, peers, &peers->list[i], counts, ours);
}

static void peers_results(struct bench *bench, struct peers *peers)
{
    const bool documents = bench->options.documents;
    char metric[64];
    for (uint32_t i = 0; i < peers->count; i++) {
        const struct peer *peer = &peers->list[i];
        for (int rate = documents ? PEER_DOC_COLD : PEER_COLD; rate < PEER_RATES; rate++) {
            (void)snprintf(metric, sizeof metric, "%s_%s_mb_s", peer->name, rate_names[rate]);
            bench_result(bench, metric, "MB/s", &peer->rate[rate], NULL);
            (void)snprintf(metric, sizeof metric, "%s_%s_times", peer->name, rate_names[rate]);
            bench_result(bench, metric, "x", &peer->ratio[rate], NULL);
        }
        (void)snprintf(metric, sizeof metric, "%s_equal", peer->name);
        bench_value(bench, metric, "0|1", (peer->equal[0] || documents) && peer->equal[1], (double)NAN);
    }
}

/* ==== what a second thread adds on this machine ==== */

/*
 * What a second thread adds on this machine, for two loops that share nothing: one that works in registers, and one
 * that reads at random addresses of a table of its own. No program that encodes can expect more from a second thread
 * than these loops get.
 *
 * The second loop is there because two virtual processors usually share a level of cache, and often also with other
 * machines: a table that fits in that level alone may not fit beside another one.
 */

#define COMPUTE_ROUNDS 40000000 /* about 50 ms */
#define LOOKUPS 4000000         /* 20 to 80 ms, depending on the level of cache */

/* One thread's loop. */
struct loop {
    void (*body)(const struct loop *);
    uint64_t *table;      /* of body look_up() */
    uint64_t bytes;       /* of the table */
    _Atomic uint32_t *at; /* number of threads that have reached the beginning */
    uint32_t threads;     /* number of threads that must be there */
    uint64_t from_ns, to_ns;
};

static void compute(const struct loop *loop)
{
    (void)loop;
    uint64_t a = 1, b = 2;
    for (uint64_t i = 0; i < COMPUTE_ROUNDS; i++) {
        a = a * 6364136223846793005u + i;
        b = b * 2862933555777941757u + i;
    }
    keep_value(a ^ b);
}

/* Looks values up at addresses that do not depend on what was read, so a processor reads several at a time, as an
 * encoder does. */
static void look_up(const struct loop *loop)
{
    const uint64_t mask = loop->bytes / 8 - 1;
    uint64_t a = 1, sum = 0;
    for (uint64_t i = 0; i < LOOKUPS; i++) {
        a = a * 6364136223846793005u + 1442695040888963407u;
        sum += loop->table[(a >> 32) & mask];
    }
    keep_value(sum);
}

static void loop_run(void *user)
{
    struct loop *loop = user;
    atomic_fetch_add(loop->at, 1);
    while (atomic_load(loop->at) < loop->threads)
        os_relax();
    loop->from_ns = os_clock_ns();
    loop->body(loop);
    loop->to_ns = os_clock_ns();
}

/* Runs one loop or two, and returns the time from the first beginning to the last end, or 0 and *system. */
static uint64_t time_loops(struct loop *loops, uint32_t threads, int *system)
{
    _Atomic uint32_t at = 0;
    struct os_thread *other = NULL;
    for (uint32_t i = 0; i < threads; i++) {
        loops[i].at = &at;
        loops[i].threads = threads;
    }
    *system = threads > 1 ? os_thread_start(&other, "loop", loop_run, &loops[1]) : 0;
    if (*system)
        return 0;
    loop_run(&loops[0]);
    os_thread_join(other);
    uint64_t from = loops[0].from_ns, to = loops[0].to_ns;
    if (threads > 1) {
        from = min64(from, loops[1].from_ns);
        to = max64(to, loops[1].to_ns);
    }
    return max64(to - from, 1);
}

static int time_both(struct loop *loops, double *ratio)
{
    int system;
    const uint64_t one = time_loops(loops, 1, &system);
    const uint64_t two = system ? 0 : time_loops(loops, 2, &system);
    if (!system)
        *ratio = 2 * (double)one / (double)two;
    return system;
}

/* Sets *ratio to the work of two threads divided by the work of one in the same time: 2 if the second thread adds all
 * of a processor. It is below 2 if other programs run, or if both threads share a core. Takes about 0.1 s. Returns 0,
 * or an errno of starting a thread. */
static int two_threads_compute(double *ratio)
{
    struct loop loops[2] = {{.body = compute}, {.body = compute}};
    return time_both(loops, ratio);
}

/* Does the same with random reads of 8 bytes from a table of table_bytes, a power of two of at least 4096, in memory
 * of huge pages where the kernel has them. Each thread has its own table, and begins when both tables are filled. Takes
 * about 0.2 s. Returns 0, ENOMEM, or an errno of starting a thread. */
static int two_threads_look_up(uint64_t table_bytes, double *ratio)
{
    assert(table_bytes >= 4096 && !(table_bytes & (table_bytes - 1)));
    struct loop loops[2];
    int system = 0;
    for (int i = 0; i < 2; i++) {
        void *table = NULL;
        if (!system)
            system = os_memory_new(table_bytes, true, &table);
        loops[i] = (struct loop){.body = look_up, .table = table, .bytes = table_bytes};
        for (uint64_t at = 0; table && at < table_bytes / 8; at++)
            loops[i].table[at] = at;
    }
    if (!system)
        system = time_both(loops, ratio);
    for (int i = 0; i < 2; i++)
        os_memory_free(loops[i].table, table_bytes);
    return system;
}

/* ==== `tokmap pack` on two threads, from the documents of the text as JSONL to a shard on storage ==== */

struct pack_records {
    char path[BENCH_PATH]; /* the JSONL file */
    uint64_t text_bytes;
    struct series rate, peak; /* MB/s of text, MiB */
};

/* Writes the JSONL file. */
static void pack_records_open(struct bench *bench, struct pack_records *records, const struct bench_text *text)
{
    struct bytes_buffer lines = {.bytes = NULL};
    made_file(bench, "records.jsonl", records->path);
    records->text_bytes = text->bytes;
    for (uint64_t i = 0; i < text->document_count; i++) {
        const struct tokmap_text *document = &text->documents[i];
        if (!bytes_reserve(&lines, TEXT_JSON_MOST((size_t)document->count)))
            bench_no_memory(bench);
        lines.count += text_json_line((char *)lines.bytes + lines.count, document->bytes, document->count);
    }
    made_write(bench, records->path, lines.bytes, lines.count,
               "The text cannot be written as JSONL; give another --dir.");
    bytes_free(&lines);
}

/* Packs the file once, in a copy of this program that starts `tokmap pack`. The peak memory that the kernel reports for
 * a process is never below what its parent held when it started the process, and this process holds the text and its
 * ids; the copy holds nothing. counts: add the results to the series. */
static void pack_records_repeat(struct bench *bench, struct pack_records *records, bool counts)
{
    char output[256] = "";
    child_run_copy(bench, "pack", records->path, output, sizeof output, NULL);
    if (counts) {
        series_add(&records->rate, (double)records->text_bytes / 1e6 / child_number(output, "seconds"));
        series_add(&records->peak, child_number(output, "peak"));
    }
}

/* Does the work of that copy: packs the file options.dataset and prints "seconds=S peak=MIB". */
static void pack_records_child(struct bench *bench)
{
    static char output[BENCH_PATH];
    struct child_usage usage = {.seconds = 0};
    made_shard(bench, "packed", output);
    struct child_arguments arguments = {.list = {"pack", "--quiet", "--threads", "2", "-o", output, "--no-eod"},
                                        .count = 7};
    arguments_tokenizer(&arguments, bench);
    arguments_add(&arguments, bench->options.dataset);
    page_cache_read(bench, bench->options.dataset);
    child_run_tokmap(bench, arguments.list, &usage);
    (void)printf("seconds=%.6f peak=%.3f\n", usage.seconds, usage.peak_mib);
}

/* ==== the case `tokenize` ==== */

#define TOGETHER 64                     /* documents in one call, as in a batch of the packer */
#define THREADS 2                       /* the most threads that are measured */
#define TABLE_BYTES ((uint64_t)8 << 20) /* of the loop that looks up: a quarter of a thread's state */

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
    uint64_t document_tokens;               /* tokens of all documents */
    uint64_t open_ns;                       /* the time of opening the tokenizer */
    struct rates whole, documents, threads; /* MB/s; threads: of the documents on two threads */
    struct rates threads_ratio;             /* rate on two threads divided by the rate on one */
    struct series compute_ratio, lookup_ratio;
    struct series read, start, encode;
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
    bool overwrite; /* write the ids of each call over those of the call before */
    uint64_t made;  /* tokens */
    enum tokmap_status status;
    struct tokmap_error error;
};

static void encoder_loop(void *user)
{
    struct encoder *encoder = user;
    const struct tokenizing *tokenizing = encoder->tokenizing;
    const struct bench_text *text = &tokenizing->text;
    uint64_t ends[TOGETHER];
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
}

/* Encodes all documents on `threads` threads with the given states. Returns the seconds that this takes. */
static double documents_pass(struct bench *bench, struct tokenizing *tokenizing, struct tokenizer_state *const *states,
                             uint32_t threads)
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
        system = os_thread_start(&running[i], "tokenize", encoder_loop, &encoders[i]);
    encoder_loop(&encoders[0]);
    for (uint32_t i = 1; i < threads; i++)
        os_thread_join(running[i]);
    const double seconds = (double)(os_clock_ns() - started) / 1e9;
    bench_check_system(bench, system, NULL, "A thread cannot be started.");
    for (uint32_t i = 0; i < threads; i++)
        if (encoders[i].status)
            bench_failed(bench, &encoders[i].error);
    if (threads == 1)
        tokenizing->document_tokens = encoders[0].made;
    return seconds;
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

static void documents_cold_and_warm(struct bench *bench, struct tokenizing *tokenizing, uint32_t threads, bool counts)
{
    struct tokenizer_state *states[THREADS] = {NULL};
    double rates[2] = {0, 0};
    for (uint32_t i = 0; i < threads; i++)
        bench_check(bench, tokenizer_state_new(&states[i], tokenizing->tokenizer, &bench->error));
    for (int warm = 0; warm < 2; warm++)
        rates[warm] = rate_of(tokenizing, documents_pass(bench, tokenizing, states, threads));
    for (uint32_t i = 0; i < threads; i++)
        tokenizer_state_free(states[i]);
    if (counts) {
        series_add(threads == 1 ? &tokenizing->documents.cold : &tokenizing->threads.cold, rates[0]);
        series_add(threads == 1 ? &tokenizing->documents.warm : &tokenizing->threads.warm, rates[1]);
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
    if (!system)
        system = two_threads_look_up(TABLE_BYTES, &ratio);
    if (counts && !system)
        series_add(&tokenizing->lookup_ratio, ratio);
    bench_check_system(bench, system, NULL, "Two threads cannot be measured.");
}

/* ---- copies of this program ---- */

/* Prints when a tokenizer is ready. */
static void child_ready(struct bench *bench)
{
    struct tokenizer_state *state = NULL;
    struct tokenizer *tokenizer = bench_tokenizer_open(bench);
    bench_check(bench, tokenizer_state_new(&state, tokenizer, &bench->error));
    (void)printf("at=%" PRIu64 "\n", os_clock_ns());
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
    const int system = os_thread_start(&running, "tokenize", encoder_loop, &encoders[1]);
    if (!system)
        encoder_loop(&encoders[0]);
    os_thread_join(running);
    bench_check_system(bench, system, NULL, "A thread cannot be started.");
    (void)printf("seconds=%.6f\n", (double)(os_clock_ns() - started + tokenizing->open_ns) / 1e9);
    for (uint32_t i = 0; i < THREADS; i++) {
        if (encoders[i].status)
            bench_failed(bench, &encoders[i].error);
        tokenizer_state_free(encoders[i].state);
    }
}

static void copies_repeat(struct bench *bench, struct tokenizing *tokenizing, bool counts)
{
    const char *text = tokenizing->text.path;
    char output[256] = "";
    struct child_usage usage = {.seconds = 0};
    child_run_copy(bench, "ready", text, output, sizeof output, &usage);
    if (counts)
        series_add(&tokenizing->start, (child_number(output, "at") - (double)usage.started_ns) / 1e6);
    child_run_copy(bench, "encode", text, output, sizeof output, NULL);
    if (counts)
        series_add(&tokenizing->encode, rate_of(tokenizing, child_number(output, "seconds")));
}

/* ---- results ---- */

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
    bench_value(bench, "token_bytes", "bytes", bytes_a_token, (double)NAN);
    bench_result(bench, "threads2_cold_mb_s", "MB/s", &tokenizing->threads.cold, read);
    bench_result(bench, "threads2_warm_mb_s", "MB/s", &tokenizing->threads.warm, read);
    bench_result(bench, "threads2_ratio", "x", &tokenizing->threads_ratio.cold, &tokenizing->compute_ratio);
    bench_result(bench, "threads2_warm_ratio", "x", &tokenizing->threads_ratio.warm, &tokenizing->compute_ratio);
    bench_result(bench, "compute2_ratio", "x", &tokenizing->compute_ratio, NULL);
    bench_result(bench, "lookup2_8mib_ratio", "x", &tokenizing->lookup_ratio, NULL);
    /* The limit of packing is encoding alone on as many threads: with vocabulary and states ready, and including them.
     */
    bench_result(bench, "pack_mb_s", "MB/s", &tokenizing->records.rate, &tokenizing->threads.cold);
    bench_result(bench, "pack_loading_mb_s", "MB/s", &tokenizing->records.rate, &tokenizing->encode);
    bench_result(bench, "pack_peak_mib", "MiB", &tokenizing->records.peak, NULL);
    bench_result(bench, "start_ms", "ms", &tokenizing->start, NULL);
    peers_results(bench, &tokenizing->peers);
}

/* ---- the case ---- */

static void tokenizing_open(struct bench *bench, struct tokenizing *tokenizing)
{
    bench_text_open(bench, &tokenizing->text);
    const uint64_t started = os_clock_ns();
    tokenizing->tokenizer = bench_tokenizer_open(bench);
    tokenizing->open_ns = os_clock_ns() - started;
    tokenizing->info = info_of_tokenizer(tokenizing->tokenizer);
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
        return case_tokenize_worst.run(bench);
    if (child && !strcmp(child, "ready")) {
        child_ready(bench);
        return CLI_DONE;
    }
    if (child && !strcmp(child, "pack")) {
        pack_records_child(bench);
        return CLI_DONE;
    }
    tokenizing_open(bench, &tokenizing);
    if (child) {
        child_encode(bench, &tokenizing);
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
    "tokenize", "rate of a tokenizer, cold and warm, beside other tokenizers; needs FILE and -t", .run = run};
