/* SPDX-License-Identifier: MIT */
/* peers.c - see peers.h. */
#include "peers.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "harness/child.h"
#include "harness/bench_data.h"
#include "platform/os.h"
#include "scripts.h"

/* The peers that encode.py can run. Slow ones get only a part of the text: their rate does not depend on its length. */
static const struct {
    const char *name;
    uint64_t bytes; /* the most that it gets */
} known[] = {{"gigatoken", UINT64_MAX},
             {"fastokens", UINT64_MAX},
             {"tiktoken", (uint64_t)16 << 20},
             {"tokenizers", (uint64_t)4 << 20},
             {"sentencepiece", (uint64_t)4 << 20},
             {"kitoken", (uint64_t)4 << 20}};
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
    cli_say(bench->program,
            "--against accepts gigatoken, fastokens, tiktoken, tokenizers, sentencepiece and kitoken, separated by "
            "commas, but not '%.*s'",
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

void peers_open(struct bench *bench, struct peers *peers, const struct bench_text *text,
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
                "python3 -m venv FOLDER; FOLDER/bin/pip install numpy awkward gigatoken fastokens tiktoken tokenizers "
                "sentencepiece kitoken");
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
    struct tokenizer_info info;
    struct tokenizer_state *state = NULL;
    tokenizer_info(tokenizer, &info);
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
    struct tokenizer_info info;
    struct tokenizer *tokenizer = bench_tokenizer_open(bench);
    tokenizer_info(tokenizer, &info);
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

void peers_repeat(struct bench *bench, struct peers *peers, bool counts, const struct series *const ours[PEER_RATES])
{
    for (uint32_t i = 0; i < peers->count && !bench_stopped(); i++)
        peer_repeat(bench, peers, &peers->list[i], counts, ours);
}

void peers_results(struct bench *bench, struct peers *peers)
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
