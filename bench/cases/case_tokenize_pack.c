/* SPDX-License-Identifier: MIT */
/* case_tokenize_pack.c - see case_tokenize_pack.h. */
#include "case_tokenize_pack.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "harness/child.h"
#include "harness/made_files.h"
#include "harness/page_cache.h"
#include "platform/os.h"

#define BUFFER ((size_t)1 << 20)
#define ESCAPED 6 /* bytes that a byte of text takes in JSON, at most */
#define FRAME 32  /* room for what surrounds a document on its line */

/* Writes a JSON string's content; returns its number of bytes. Text is valid UTF-8, so bytes from 0x80 on stay as they
 * are. */
static size_t escape(char *into, const char *text, uint64_t count)
{
    static const char digits[] = "0123456789abcdef";
    size_t at = 0;
    for (uint64_t i = 0; i < count; i++) {
        const unsigned char byte = (unsigned char)text[i];
        if (byte >= 0x20 && byte != '"' && byte != '\\') {
            into[at++] = text[i];
            continue;
        }
        into[at++] = '\\';
        if (byte == '"' || byte == '\\' || byte == '\n') {
            into[at++] = byte == '\n' ? 'n' : text[i];
            continue;
        }
        memcpy(into + at, "u00", 3);
        into[at + 3] = digits[byte >> 4];
        into[at + 4] = digits[byte & 15];
        at += 5;
    }
    return at;
}

/* Writes one line {"text": "..."} for each document. Returns 0 or an errno. */
static int records_write(const struct bench_text *text, int fd, char *buffer)
{
    size_t used = 0;
    int system = 0;
    for (uint64_t i = 0; i < text->document_count && !system; i++) {
        const struct tokmap_text *document = &text->documents[i];
        assert(ESCAPED * document->count + FRAME <= BUFFER);
        if (used + ESCAPED * document->count + FRAME > BUFFER) {
            system = os_write(fd, buffer, used);
            used = 0;
        }
        used += (size_t)snprintf(buffer + used, FRAME, "{\"text\": \"");
        used += escape(buffer + used, document->bytes, document->count);
        memcpy(buffer + used, "\"}\n", 3);
        used += 3;
    }
    return system ? system : os_write(fd, buffer, used);
}

int pack_records_open(struct bench *bench, struct pack_records *records, const struct bench_text *text)
{
    int fd;
    const int result = made_file(bench, "records.jsonl", records->path);
    if (result)
        return result;
    char *buffer = malloc(BUFFER);
    if (!buffer)
        return bench_no_memory(bench);
    records->text_bytes = text->bytes;
    int system = os_open(records->path, OS_WRITE_NEW, &fd);
    if (!system) {
        system = records_write(text, fd, buffer);
        if (!system)
            system = os_sync(fd);
        os_close(fd);
    }
    free(buffer);
    return system ? bench_failed_system(bench, system, records->path,
                                        "The text cannot be written as JSONL; give another --dir.")
                  : CLI_DONE;
}

int pack_records_repeat(struct bench *bench, struct pack_records *records, bool counts)
{
    char output[256] = "";
    const int result = child_run_copy(bench, "pack", records->path, output, sizeof output, NULL);
    if (!result && counts) {
        series_add(&records->rate, (double)records->text_bytes / 1e6 / child_number(output, "seconds"));
        series_add(&records->peak, child_number(output, "peak"));
    }
    return result;
}

int pack_records_child(struct bench *bench)
{
    static char output[BENCH_PATH];
    struct child_usage usage = {.seconds = 0};
    int result = made_shard(bench, "packed", output);
    if (result)
        return result;
    const char *arguments[CHILD_ARGUMENTS_MAX + 1] = {"pack", "--quiet", "--threads", "2",
                                                      "-o",   output,    "--no-eod"};
    const size_t count = child_tokenizer_arguments(bench, arguments, 7);
    arguments[count] = bench->options.dataset;
    result = page_cache_read(bench, bench->options.dataset);
    if (!result)
        result = child_run_tokmap(bench, arguments, &usage);
    if (!result)
        (void)printf("seconds=%.6f peak=%.3f\n", usage.seconds, usage.peak_mib);
    return result;
}
