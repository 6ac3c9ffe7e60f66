/* SPDX-License-Identifier: MIT */
/*
 * fuzz_index.c - the reader of .tmx files, with hostile bytes under valid checksums.
 *
 * The first byte of an input chooses whether the hashes are computed again, and how long the .bin is: as the index
 * says, or different; and whether a part of the dataset is opened. The remaining bytes are the index. A mask of the
 * right length is beside it. If it opens, all functions of a dataset are called. They may
 * fail, but must not crash, read out of bounds, overflow, or use unlimited memory.
 */
#include <stdio.h>
#include <unistd.h>

#include "index_exercise.h"
#include "platform/os.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char index_path[600], tokens_path[600], mask_path[600], prefix[560];

static void names_make(void)
{
    const char *base = getenv("TMPDIR");
    (void)snprintf(prefix, sizeof prefix, "%.500s/fuzz_index.%ld", base ? base : "/tmp", (long)getpid());
    (void)snprintf(index_path, sizeof index_path, "%s.tmx", prefix);
    (void)snprintf(tokens_path, sizeof tokens_path, "%s.bin", prefix);
    (void)snprintf(mask_path, sizeof mask_path, "%s.mask", prefix);
}

static void names_remove(void)
{
    (void)os_unlink(index_path);
    (void)os_unlink(tokens_path);
    (void)os_unlink(mask_path);
}

static void write_whole(const char *path, const void *bytes, size_t count, uint64_t length)
{
    int fd;
    (void)os_unlink(path); /* a new file: ext4 writes a truncated one to disk when it is closed, which is slow */
    if (os_open(path, OS_WRITE_OPEN, &fd))
        abort();
    if (os_pwrite(fd, bytes, count, 0))
        abort();
    if (length > count)
        (void)os_truncate(fd, length); /* if the file system refuses the length, the .bin has a different one */
    os_close(fd);
}

/* Returns the size in bytes that the index claims for its tokens, or 0. With a .bin of that size it can be opened. */
static uint64_t tokens_claimed(const uint8_t *bytes, size_t count, uint64_t *tokens)
{
    struct index_header header;
    if (count < sizeof header)
        return 0;
    memcpy(&header, bytes, sizeof header);
    for (uint64_t i = 0; i < header.sections && i < INDEX_SECTIONS_MAX; i++) {
        struct index_entry entry;
        uint64_t at = header.table_offset;
        if (at > count || (i + 1) * sizeof entry > count - at)
            return 0;
        memcpy(&entry, bytes + at + i * sizeof entry, sizeof entry);
        struct section_shard shard;
        if (entry.type != SECTION_SHARD || entry.offset > count || count - entry.offset < sizeof shard)
            continue;
        memcpy(&shard, bytes + entry.offset, sizeof shard);
        uint64_t claimed;
        *tokens = shard.tokens;
        if (mul_overflows(shard.tokens, shard.width, &claimed))
            return 0;
        return claimed;
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size || size > (size_t)1 << 20)
        return 0;
    if (!prefix[0]) {
        names_make();
        (void)atexit(names_remove);
    }
    uint8_t choice = data[0];
    size_t count = size - 1;
    uint8_t *bytes = malloc(count + 1);
    if (!bytes)
        return 0;
    memcpy(bytes, data + 1, count);
    if (!(choice & 1))
        index_rehash(bytes, count);
    uint64_t tokens = 0, claimed = tokens_claimed(bytes, count, &tokens);
    if (choice & 2)
        claimed += choice & 4 ? 1 : (uint64_t)-1;
    write_whole(index_path, bytes, count, 0);
    write_whole(tokens_path, "", 0, claimed);
    write_whole(mask_path, "\x55", tokens ? 1 : 0, div_ceil(tokens, 8));
    free(bytes);
    struct tokmap_dataset *dataset;
    struct tokmap_dataset_options options = TOKMAP_DATASET_OPTIONS_INIT;
    options.reading = TOKMAP_READ_PREAD;
    struct tokmap_error error;
    static const char *const parts[] = {"", "#docs=30..70.5%", "#docs=1..3", "#tokens=2..9"};
    char name[600];
    (void)snprintf(name, sizeof name, "%s%s", prefix, parts[choice >> 3 & 3]);
    if (!tokmap_dataset_open(&dataset, name, &options, &error)) {
        /* Verifying a huge sparse .bin would only cost time: then everything except verify is called. */
        if (claimed <= (uint64_t)4 << 20)
            (void)exercise_dataset(dataset);
        else
            exercise_functions(dataset);
        tokmap_dataset_close(dataset);
    } else if (!error.message[0] || error.status == TOKMAP_OK) {
        abort(); /* an error without a message */
    }
    return 0;
}
