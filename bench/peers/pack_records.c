#include "pack_records.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/child.h"
#include "cli/cli.h"
#include "common/bytes.h"
#include "harness/dataset_make.h"
#include "platform/os.h"
#include "platform/process.h"

#define BUFFER ((size_t)1 << 20)
#define ESCAPED 6 /* bytes that one byte becomes, at most */

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

static int records_write(const struct encoded_text *text, int fd, char *buffer)
{
    size_t used = 0;
    int system = 0;
    for (uint64_t i = 0; i < text->document_count && !system; i++) {
        const struct tokenizer_text *document = &text->documents[i];
        if (used + ESCAPED * document->count + 32 > BUFFER) {
            system = os_write(fd, buffer, used);
            used = 0;
        }
        used += (size_t)snprintf(buffer + used, 32, "{\"text\": \"");
        used += escape(buffer + used, document->bytes, document->count);
        memcpy(buffer + used, "\"}\n", 3);
        used += 3;
    }
    return system ? system : os_write(fd, buffer, used);
}

int pack_records_open(struct bench *bench, struct pack_records *records, const struct encoded_text *text)
{
    int fd;
    char *buffer = malloc(BUFFER);
    if (!buffer)
        return bench_no_memory(bench);
    records->text_bytes = text->bytes;
    int system = made_path(bench, "records.jsonl", records->path) ? 0 : ENAMETOOLONG;
    if (!system && !made_add(bench, records->path))
        system = ENOMEM;
    if (!system)
        system = os_open(records->path, OS_WRITE_NEW, &fd);
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

size_t tokenizer_arguments_put(const struct bench *bench, const char **arguments, size_t count)
{
    if (bench->options.pattern) {
        arguments[count++] = "--pattern";
        arguments[count++] = bench->options.pattern;
    }
    if (bench->options.special_tokens) {
        arguments[count++] = "--special-tokens";
        arguments[count++] = bench->options.special_tokens;
    }
    return count;
}

int pack_records_turn(struct bench *bench, struct pack_records *records, bool counts)
{
    const struct bench_options *options = &bench->options;
    const char *arguments[16] = {"tokenize", records->path,      "--child", "pack",
                                 "-t",       options->tokenizer, "--dir",   options->folder};
    char output[256];
    (void)tokenizer_arguments_put(bench, arguments, 8);
    const int result = child_run(bench, bench->self, arguments, output, sizeof output, NULL);
    if (!result && counts) {
        series_add(&records->rate, (double)records->text_bytes / 1e6 / child_number(output, "seconds"));
        series_add(&records->peak, child_number(output, "peak"));
    }
    return result;
}

int pack_records_child(struct bench *bench)
{
    static char tokmap[BENCH_PATH], output[BENCH_PATH], tokens[BENCH_PATH + 8], index[BENCH_PATH + 8];
    memcpy(tokmap, bench->self, sizeof tokmap);
    char *slash = strrchr(tokmap, '/');
    if (slash)
        (void)snprintf(slash + 1, sizeof tokmap - (size_t)(slash + 1 - tokmap), "tokmap");
    if (!made_path(bench, "packed", output))
        return bench_failed_system(bench, ENAMETOOLONG, bench->options.folder, "Give a shorter --dir.");
    (void)snprintf(tokens, sizeof tokens, "%s.bin", output);
    (void)snprintf(index, sizeof index, "%s.tmx", output);
    if (!made_add(bench, tokens) || !made_add(bench, index))
        return bench_no_memory(bench);
    const char *arguments[24] = {
        tokmap, "pack", "--quiet", "--threads", "2", "-o", output, "--tokenizer", bench->options.tokenizer, "--no-eod"};
    const size_t count = tokenizer_arguments_put(bench, arguments, 10);
    arguments[count] = bench->options.dataset;
    struct os_child child;
    int status = 0;
    const uint64_t started = os_clock_ns();
    int system = os_child_start(&child, tokmap, arguments, false);
    if (!system)
        system = child_wait(&child, &status);
    const double seconds = (double)(os_clock_ns() - started) / 1e9;
    if (system)
        return bench_failed_system(bench, system, tokmap, "tokmap could not be run; it belongs beside tokmap-bench.");
    if (status) {
        cli_say(bench->program, "%s pack failed with status %d", tokmap, status);
        return CLI_FAILED;
    }
    (void)printf("seconds=%.6f peak=%.3f\n", seconds, (double)child.peak_bytes / 1048576);
    return CLI_DONE;
}
