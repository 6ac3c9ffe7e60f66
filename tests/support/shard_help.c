#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "shard_help.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "platform/os.h"

void scratch_make(char folder[512])
{
    const char *base = getenv("TMPDIR");
    for (uint64_t i = os_clock_ns();; i++) {
        (void)snprintf(folder, 512, "%s/shards.%llx", base ? base : "/tmp", (unsigned long long)i);
        if (!os_make_folder(folder))
            return;
    }
}

static int remove_one(const char *path, const struct stat *found, int kind, struct FTW *where)
{
    (void)found;
    (void)kind;
    (void)where;
    return remove(path);
}

void scratch_remove(const char *folder)
{
    (void)nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *in_folder(const char *folder, const char *name)
{
    static char paths[8][1200];
    static unsigned turn;
    char *path = paths[turn++ % 8];
    (void)snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

uint8_t *file_read(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s cannot be opened", path);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *bytes = (size_t)ftell(file);
    rewind(file);
    uint8_t *content = malloc(*bytes + 1);
    assert_non_null(content);
    assert_int_equal(fread(content, 1, *bytes, file), *bytes);
    (void)fclose(file);
    return content;
}

void file_write(const char *path, const void *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");
    if (!file)
        fail_msg("%s cannot be created", path);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

bool file_exists(const char *path)
{
    struct os_stat found;
    return os_lstat(path, &found) == 0;
}

void file_copy(const char *from, const char *to)
{
    size_t bytes;
    uint8_t *content = file_read(from, &bytes);
    file_write(to, content, bytes);
    free(content);
}

uint64_t random_next(uint64_t *state)
{
    uint64_t mixed = *state += 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
    return mixed ^ mixed >> 31;
}

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

void shard_make(const char *prefix, uint32_t width, uint64_t base, const uint64_t *ends, uint64_t documents)
{
    struct shard_writer_options options = plain_options(width);
    options.replace = true;
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
        free(tokens);
        start = ends[d];
    }
    MUST(shard_writer_commit(writer, "{\"made\": \"by a test\"}", 21, NULL, &error));
}
