/* SPDX-License-Identifier: MIT */
/* scratch.c - see scratch.h. */
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/bytes.h"
#include "platform/os.h"

void scratch_make(char folder[512])
{
    const char *base = getenv("TMPDIR");
    int system = EEXIST;
    for (uint64_t i = os_clock_ns(); system == EEXIST; i++) {
        (void)snprintf(folder, 512, "%s/scratch.%llx", base ? base : "/tmp", (unsigned long long)i);
        system = os_make_folder(folder);
    }
    if (system)
        fail_msg("%s cannot be created: %s", folder, strerror(system));
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

static struct {
    const char *from, *into, *without;
} doubling;

static int double_one(const char *path, const struct stat *found, int kind, struct FTW *where)
{
    char into[1200];
    (void)found;
    (void)snprintf(into, sizeof into, "%s%s", doubling.into, path + strlen(doubling.from));
    if (kind == FTW_D)
        assert_int_equal(os_make_folder(into), 0);
    else if (!strstr(path + where->base, doubling.without))
        assert_int_equal(os_link(path, into), 0);
    return 0;
}

void scratch_double(const char *from, const char *into, const char *without)
{
    scratch_remove(into);
    doubling.from = from;
    doubling.into = into;
    doubling.without = without;
    assert_int_equal(nftw(from, double_one, 16, FTW_PHYS), 0);
}

const char *in_folder(const char *folder, const char *name)
{
    static char paths[8][1200];
    static unsigned used;
    char *path = paths[used++ % 8];
    (void)snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

void *file_read(const char *path, size_t *bytes)
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

void file_write_text(const char *path, const char *text)
{
    file_write(path, text, strlen(text));
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

uint64_t file_cached(const char *path)
{
    const size_t page = os_page_bytes();
    struct os_stat found;
    int fd;
    uint64_t cached = 0;
    assert_int_equal(os_stat(path, &found), 0);
    assert_int_equal(os_open(path, OS_READ, &fd), 0);
    const size_t pages = (size_t)div_ceil(found.bytes, page);
    uint8_t *present = malloc(pages + 1);
    void *map = mmap(NULL, found.bytes, PROT_READ, MAP_SHARED, fd, 0);
    assert_non_null(present);
    assert_true(map != MAP_FAILED);
    assert_int_equal(mincore(map, found.bytes, present), 0);
    for (size_t i = 0; i < pages; i++)
        cached += (present[i] & 1) * page;
    munmap(map, found.bytes);
    os_close(fd);
    free(present);
    return cached;
}

bool file_pages_drop(const char *folder)
{
    static const uint8_t bytes[1 << 20] = {1};
    const char *path = in_folder(folder, "probe");
    int fd;
    assert_int_equal(os_open(path, OS_WRITE_NEW, &fd), 0);
    assert_int_equal(os_write(fd, bytes, sizeof bytes), 0);
    assert_int_equal(os_sync(fd), 0);
    os_advise_drop(fd, 0, sizeof bytes);
    os_close(fd);
    const bool dropped = !file_cached(path);
    assert_int_equal(os_unlink(path), 0);
    return dropped;
}
