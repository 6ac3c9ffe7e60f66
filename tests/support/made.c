/* SPDX-License-Identifier: MIT */
/* made.c - see made.h. */
#include "made.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "format/index_writer.h"
#include "format/shard_writer.h"
#include "platform/os.h"
#include "scratch.h"

static void check(bool fine, const char *what)
{
    if (fine)
        return;
    (void)fprintf(stderr, "made.c: %s failed\n", what);
    abort();
}

uint32_t made_token(const struct made *made, uint64_t i)
{
    if (made->width == 4)
        return (uint32_t)i;
    uint64_t mixed = (i + 1) * 0x9e3779b97f4a7c15u;
    return (uint32_t)((mixed ^ mixed >> 29) % made->vocabulary);
}

bool made_row_is(const struct made *made, const void *row, uint64_t first, uint64_t count)
{
    for (uint64_t j = 0; j < count; j++) {
        const char *at = (const char *)row + j * made->width;
        uint32_t id = made->width == 4 ? load32(at) : load16(at);
        if (id != made_token(made, (first + j) % made->tokens))
            return false;
    }
    return true;
}

/* Draws the mask of a shard, in runs of up to 200 tokens with single ones between them, and writes it. */
static void write_mask(const struct made *made, struct shard_writer *writer, uint64_t first, uint64_t size)
{
    uint8_t *bits = calloc(size / 8 + 1, 1);
    check(bits, "allocation");
    uint64_t left = 0;
    bool counts = false;
    for (uint64_t i = 0; i < size; i++) {
        if (!left--) {
            left = ((first + i) * 2654435761u >> 9) % 7 ? ((first + i) * 2654435761u >> 11) % 200 : 0;
            counts = !counts;
        }
        made->mask[first + i] = counts;
        bits[i / 8] |= (uint8_t)(counts << i % 8);
    }
    check(!shard_writer_mask(writer, bits, 0, size, NULL), "adding a mask");
    free(bits);
}

static void write_shard(struct made *made, const char *prefix, uint64_t first, uint64_t size, bool masked)
{
    struct shard_writer_options options = {.width = made->width,
                                           .vocabulary = made->vocabulary,
                                           .eod_id = TOKMAP_NO_ID,
                                           .bos_id = TOKMAP_NO_ID,
                                           .mask = masked};
    struct shard_writer *writer;
    check(!shard_writer_open(&writer, prefix, &options, NULL), "opening a shard writer");
    check(!shard_writer_origin(writer, "made", 4, 0, NULL), "naming the origin");
    char *tokens = calloc(size + 1, made->width);
    uint64_t *ends = calloc(2 * size + 2, sizeof *ends), documents = 0, at = 0;
    check(tokens && ends, "allocation");
    for (uint64_t i = 0; i < size; i++) {
        uint32_t id = made_token(made, first + i);
        if (made->width == 4)
            store32(tokens + i * 4, id);
        else
            store16(tokens + i * 2, (uint16_t)id);
    }
    for (uint64_t number = first; at < size; number++) {
        uint64_t length = (number * 2654435761u >> 7) % 97;
        if (length > 80)
            length = length % 3; /* several short documents in a row, some of them empty */
        else if (length < 3)
            length += 150;
        if (at > size / 2 && at < size / 4 * 3)
            length = number % 3 != 0; /* hundreds of documents of one token, some of them empty */
        length = min64(length, size - at);
        if (length)
            made->starts[first + at] = 1;
        at += length;
        ends[documents++] = at;
        if (documents == 2 * size)
            ends[documents - 1] = at = size;
    }
    check(!shard_writer_add(writer, tokens, size, ends, documents, (uint32_t)(made->vocabulary - 1), NULL), "adding");
    if (masked)
        write_mask(made, writer, first, size);
    check(!shard_writer_commit(writer, "{}", 2, NULL, NULL), "committing a shard");
    free(tokens);
    free(ends);
}

static void make(struct made *made, const char *folder, const char *name, uint32_t width, uint64_t vocabulary,
                 const uint64_t *sizes, uint64_t shards, bool masked)
{
    char prefix[600], line[80];
    memset(made, 0, sizeof *made);
    made->width = width;
    made->vocabulary = vocabulary;
    made->shards = shards;
    uint64_t all = 0;
    for (uint64_t i = 0; i < shards; i++)
        all += sizes[i];
    made->starts = calloc(all + 1, 1);
    made->mask = masked ? malloc(all + 1) : NULL;
    check(made->starts && (made->mask || !masked), "allocation");
    if (masked)
        memset(made->mask, 1, all + 1);
    (void)snprintf(made->name, sizeof made->name, "%s/%s.list", folder, name);
    int fd;
    check(!os_open(made->name, OS_WRITE_NEW, &fd) && !os_write(fd, "tokmap-shards 1\n", 16), "writing a manifest");
    for (uint64_t i = 0; i < shards; i++) {
        int length = snprintf(line, sizeof line, "%s-%u\n", name, (unsigned)i);
        check(!os_write(fd, line, (size_t)length), "writing a manifest");
        (void)snprintf(prefix, sizeof prefix, "%s/%s-%u", folder, name, (unsigned)i);
        if (i < 8)
            (void)snprintf(made->bin[i], sizeof made->bin[i], "%s.bin", prefix);
        write_shard(made, prefix, made->tokens, sizes[i], masked && i % 3 < 2);
        made->tokens += sizes[i];
    }
    os_close(fd);
}

void made_new(struct made *made, const char *folder, const char *name, uint32_t width, uint64_t vocabulary,
              const uint64_t *sizes, uint64_t shards)
{
    make(made, folder, name, width, vocabulary, sizes, shards, false);
}

void made_new_masked(struct made *made, const char *folder, const char *name, uint32_t width, uint64_t vocabulary,
                     const uint64_t *sizes, uint64_t shards)
{
    make(made, folder, name, width, vocabulary, sizes, shards, true);
}

void made_free(struct made *made)
{
    free(made->starts);
    free(made->mask);
    made->starts = made->mask = NULL;
}

void made_drop_pages(const struct made *made, uint64_t shard)
{
    const char *tokens_path = made->bin[shard];
    char path[700], changed[710];
    const int stem = (int)strlen(tokens_path) - 4;
    (void)snprintf(path, sizeof path, "%.*s.tmx", stem, tokens_path);
    (void)snprintf(changed, sizeof changed, "%.*s.changed", stem, tokens_path);
    size_t bytes;
    uint8_t *index = file_read(path, &bytes);
    struct index_header header;
    memcpy(&header, index, sizeof header);
    struct index_writer writer;
    int fd;
    check(!os_open(changed, OS_WRITE_NEW, &fd), "rewriting an index");
    check(!index_writer_init(&writer, fd), "rewriting an index");
    for (uint32_t i = 0; i < header.sections; i++) {
        struct index_entry entry;
        memcpy(&entry, index + header.table_offset + i * sizeof entry, sizeof entry);
        if (entry.type == SECTION_PAGES)
            continue;
        check(!index_writer_begin(&writer, (enum section_type)entry.type), "rewriting an index");
        check(!index_writer_add(&writer, index + entry.offset, (size_t)entry.bytes), "rewriting an index");
        check(!index_writer_end(&writer), "rewriting an index");
    }
    check(!index_writer_finish(&writer), "rewriting an index");
    index_writer_free(&writer);
    os_close(fd);
    check(!os_rename(changed, path), "rewriting an index");
    free(index);
}
