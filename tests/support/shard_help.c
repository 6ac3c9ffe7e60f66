/* SPDX-License-Identifier: MIT */
/* shard_help.c - see shard_help.h. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "shard_help.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"

void must_succeed(enum tokmap_status status, const struct tokmap_error *found, const char *file, int line)
{
    if (status == TOKMAP_OK)
        return;
    char text[1400];
    fail_msg("%s:%d: %s: %s", file, line, tokmap_status_name(status), tokmap_error_print(found, text, sizeof text));
}

struct shard_writer_options plain_options(uint32_t width)
{
    struct shard_writer_options options;
    memset(&options, 0, sizeof options);
    options.width = width;
    options.vocabulary = (uint64_t)1 << 8 * width;
    options.eod_id = options.bos_id = TOKMAP_NO_ID;
    return options;
}

static void add_values(struct shard_writer *writer, uint64_t document)
{
    char url[60];
    const int bytes = snprintf(url, sizeof url, "\"https://example.org/%llu\"", (unsigned long long)document);
    const struct shard_value values[] = {{url, (uint64_t)bytes}, {"-1.5", document % 2 ? 0 : 4}};
    MUST(shard_writer_values(writer, values, 1, &error));
}

static void make(const char *prefix, uint32_t width, uint64_t base, const uint64_t *ends, uint64_t documents,
                 bool columns)
{
    struct shard_writer_options options = plain_options(width);
    options.replace = true;
    options.columns = (const char *const[]){"url", "meta.score"};
    options.column_count = columns ? 2 : 0;
    struct shard_writer *writer;
    MUST(shard_writer_open(&writer, prefix, &options, &error));
    uint64_t start = 0;
    for (uint64_t d = 0; d < documents; d++) {
        uint64_t count = ends[d] - start, largest = 0;
        uint8_t *tokens = malloc(count * width + 1);
        assert_non_null(tokens);
        for (uint64_t i = 0; i < count; i++) {
            uint32_t id = token_value(base + start + i, width);
            largest = max64(largest, id);
            if (width == 2)
                store16(tokens + 2 * i, (uint16_t)id);
            else
                store32(tokens + 4 * i, id);
        }
        char path[40];
        int path_bytes = snprintf(path, sizeof path, "input-%llu", (unsigned long long)(d / 3));
        MUST(shard_writer_origin(writer, path, (uint64_t)path_bytes, d % 3, &error));
        MUST(shard_writer_add(writer, tokens, count, &count, 1, largest, &error));
        if (columns)
            add_values(writer, d);
        free(tokens);
        start = ends[d];
    }
    MUST(shard_writer_commit(writer, "{\"made\": \"by a test\"}", 21, NULL, &error));
}

void shard_make(const char *prefix, uint32_t width, uint64_t base, const uint64_t *ends, uint64_t documents)
{
    make(prefix, width, base, ends, documents, false);
}

void shard_make_columns(const char *prefix, uint32_t width, uint64_t base, const uint64_t *ends, uint64_t documents)
{
    make(prefix, width, base, ends, documents, true);
}
