/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/*
 * Threads of one process, and its children, read a dataset of a server through a cache that holds less than half of it:
 * they fetch, wait for each other, repeat slow requests, refuse flipped bytes, and give cells up. Another thread opens
 * the dataset again and closes it, and another one says what it will read. All get the tokens of their places. Under
 * the thread sanitizer (`make tsan`) this shows that the cache has no race. The children come only without a sanitizer.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cache/cache_attach.h"
#include "cache/cache_evict.h"
#include "cache/cache_state.h"
#include "common/bytes.h"
#include "dataset/dataset_fetch.h"
#include "format/shard_seal.h"
#include "platform/os.h"
#include "support/sanitized.h"
#include "support/scratch.h"
#include "support/shard_help.h"
#include "tokmap/tokmap.h"

#define MIB ((uint64_t)1 << 20)
#define SHARDS 3
#define SHARD_TOKENS (6 * MIB / 4 + 1000)
#define TOKENS (SHARDS * SHARD_TOKENS)
#define CACHE_BYTES (8 * MIB)
#define READERS 4
#define ROUNDS 120
#define CHILDREN 3
#define MANIFEST "tokmap-shards 1\nplain\nmasked\nsealed\n"

/* ---- the server ---- */

static const char *const paths[] = {"/all",        "/plain.tmx",   "/plain.bin",  "/masked.tmx",
                                    "/masked.bin", "/masked.mask", "/sealed.tmx", "/sealed.bin.zst"};
#define OBJECTS (sizeof paths / sizeof paths[0])
#define CONNECTIONS 512

static struct server {
    int fd;
    uint16_t port;
    uint8_t *bytes[OBJECTS];
    size_t sizes[OBJECTS];
    uint32_t seen[OBJECTS][16]; /* requests that begin in each MiB; accessed atomically */
    struct os_thread *accepts, *threads[CONNECTIONS];
    int connections[CONNECTIONS];
    uint32_t count;
    uint32_t slow, flipped, refused; /* accessed atomically */
} server;

static bool send_all(int fd, const void *bytes, size_t count)
{
    const char *from = bytes;
    for (ssize_t sent; count; from += sent, count -= (size_t)sent)
        if ((sent = send(fd, from, count, MSG_NOSIGNAL)) <= 0)
            return false;
    return true;
}

/* Answers a request. The first one of a MiB of tokens may be slow, have a wrong byte, or be refused. */
static bool answer(int fd, const char *head)
{
    size_t number = 0;
    char path[64] = "", text[300];
    const bool body = !strncmp(head, "GET ", 4);
    (void)sscanf(head, "%*s %63s", path);
    while (number < OBJECTS && strcmp(paths[number], path) != 0)
        number++;
    if (number == OBJECTS)
        return send_all(fd, text, (size_t)snprintf(text, sizeof text, "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"));
    const size_t size = server.sizes[number];
    unsigned long long first = 0, last = size - 1;
    const char *range = strcasestr(head, "\r\nrange: bytes=");
    if (range && sscanf(range + 15, "%llu-%llu", &first, &last) == 0)
        first = 0;
    last = min64(last, size - 1);
    if (first > last)
        return send_all(fd, text, (size_t)snprintf(text, sizeof text, "HTTP/1.1 416 No\r\nContent-Length: 0\r\n\r\n"));
    const size_t count = (size_t)(last - first + 1);
    uint8_t *copy = malloc(count);
    memcpy(copy, server.bytes[number] + first, count);
    const bool tokens = !strstr(path, ".tmx") && number;
    if (body && tokens && !__atomic_fetch_add(&server.seen[number][first / MIB], 1, __ATOMIC_RELAXED)) {
        const uint64_t fault = (first / MIB + number) % 3;
        (void)__atomic_fetch_add(fault == 0   ? &server.slow
                                 : fault == 1 ? &server.flipped
                                              : &server.refused,
                                 1, __ATOMIC_RELAXED);
        if (fault == 0)
            os_sleep_ns(1200000000);
        copy[count / 2] ^= fault == 1;
        if (fault == 2) {
            free(copy);
            return send_all(fd, text,
                            (size_t)snprintf(text, sizeof text, "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"));
        }
    }
    const int bytes = snprintf(text, sizeof text,
                               "HTTP/1.1 %s\r\nContent-Length: %zu\r\nContent-Range: bytes %llu-%llu/%zu\r\n"
                               "ETag: \"%zu\"\r\nAccept-Ranges: bytes\r\n\r\n",
                               range ? "206 Partial Content" : "200 OK", count, first, last, size, number);
    const bool sent = send_all(fd, text, (size_t)bytes) && (!body || send_all(fd, copy, count));
    free(copy);
    return sent;
}

static void connection(void *user)
{
    const int fd = *(const int *)user;
    char head[8192];
    size_t filled = 0;
    for (ssize_t got; filled < sizeof head - 1 && (got = recv(fd, head + filled, sizeof head - 1 - filled, 0)) > 0;) {
        filled += (size_t)got;
        head[filled] = '\0';
        const char *end = strstr(head, "\r\n\r\n");
        if (!end)
            continue;
        filled = 0; /* curl sends nothing more before the answer */
        if (!answer(fd, head))
            break;
    }
    close(fd);
}

static void accepts(void *user)
{
    (void)user;
    while (server.count < CONNECTIONS) {
        int *fd = &server.connections[server.count];
        *fd = accept4(server.fd, NULL, NULL, SOCK_CLOEXEC);
        if (*fd < 0 || os_thread_start(&server.threads[server.count], "server", connection, fd))
            return;
        server.count++;
    }
}

static void server_start(const char *folder)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    server.bytes[0] = (uint8_t *)strdup(MANIFEST);
    server.sizes[0] = strlen(MANIFEST);
    for (size_t i = 1; i < OBJECTS; i++)
        server.bytes[i] = file_read(in_folder(folder, paths[i] + 1), &server.sizes[i]);
    server.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server.fd, (struct sockaddr *)&address, bytes), 0);
    assert_int_equal(listen(server.fd, 256), 0);
    assert_int_equal(getsockname(server.fd, (struct sockaddr *)&address, &bytes), 0);
    server.port = ntohs(address.sin_port);
    assert_int_equal(os_thread_start(&server.accepts, "server", accepts, NULL), 0);
}

static void server_end(void)
{
    (void)shutdown(server.fd, SHUT_RDWR);
    os_thread_join(server.accepts);
    for (uint32_t i = 0; i < server.count; i++)
        os_thread_join(server.threads[i]);
    close(server.fd);
    for (size_t i = 0; i < OBJECTS; i++)
        free(server.bytes[i]);
}

/* ---- the data ---- */

static bool mask_bit(uint64_t token)
{
    const uint64_t at = token - SHARD_TOKENS;
    return at >= SHARD_TOKENS || at % 3 == 0; /* only the second shard has a mask */
}

static void data_make(const char *folder)
{
    static uint32_t tokens[SHARD_TOKENS];
    static uint8_t bits[SHARD_TOKENS / 8 + 1];
    static const char *const names[] = {"plain", "masked", "sealed"};
    const struct shard_seal_options seal = {.level = 1, .threads = 1};
    for (uint64_t shard = 0; shard < SHARDS; shard++) {
        struct shard_writer_options options = plain_options(4);
        struct shard_writer *writer;
        struct shard_seal_result result;
        const uint64_t end = SHARD_TOKENS;
        options.mask = shard == 1;
        for (uint64_t i = 0; i < SHARD_TOKENS; i++) {
            tokens[i] = (uint32_t)(shard * SHARD_TOKENS + i);
            bits[i / 8] |= (uint8_t)(mask_bit(SHARD_TOKENS + i) << i % 8);
        }
        MUST(shard_writer_open(&writer, in_folder(folder, names[shard]), &options, &error));
        MUST(shard_writer_add(writer, tokens, SHARD_TOKENS, &end, 1, TOKENS, &error));
        if (shard == 1)
            MUST(shard_writer_mask(writer, bits, 0, SHARD_TOKENS, &error));
        MUST(shard_writer_commit(writer, "{}", 2, NULL, &error));
        if (shard == 2)
            MUST(shard_seal(in_folder(folder, "sealed.tmx"), &seal, &result, &error));
    }
}

/* ---- readers ---- */

static struct tokmap_dataset *dataset;
static char name[1100];
static uint32_t failures, ends; /* accessed atomically */

static void failed(const char *what, const struct tokmap_error *why)
{
    char text[1400] = "";
    if (__atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED) < 5)
        (void)fprintf(stderr, "# %s: %s\n", what, why ? tokmap_error_print(why, text, sizeof text) : "");
}

/* Reads tokens anywhere, and compares them with their places. */
static void read_some(const struct tokmap_dataset *from, uint64_t *chance)
{
    static _Thread_local uint32_t tokens[300000];
    struct tokmap_error why;
    uint8_t bits[512];
    const uint64_t most = random_below(chance, 16) ? 4096 : sizeof tokens / sizeof tokens[0];
    const uint64_t count = 1 + random_below(chance, most), first = random_below(chance, TOKENS - count);
    if (tokmap_dataset_copy(from, first, count, tokens, &why)) {
        failed("copy", &why);
        return;
    }
    for (uint64_t i = 0; i < count; i++)
        if (tokens[i] != first + i) {
            failed("a token is wrong", NULL);
            return;
        }
    const uint64_t masked = min64(count, 8 * sizeof bits);
    if (tokmap_dataset_mask(from, first, masked, bits, &why))
        failed("mask", &why);
    else
        for (uint64_t i = 0; i < masked; i++)
            if ((bits[i / 8] >> i % 8 & 1) != (first + i < SHARD_TOKENS || mask_bit(first + i)))
                failed("a bit of the mask is wrong", NULL);
}

static void reader(void *user)
{
    uint64_t chance = (uint64_t)(uintptr_t)user;
    for (int i = 0; i < ROUNDS; i++)
        read_some(dataset, &chance);
    (void)__atomic_fetch_add(&ends, 1, __ATOMIC_RELAXED);
}

/* Says what it will read, as a loader does. */
static void plan_some(uint64_t *chance, uint64_t row)
{
    uint64_t changes, shard = 0;
    const uint64_t token = random_below(chance, TOKENS);
    (void)dataset_fetch_cell(dataset, CACHE_CELL, token, &shard);
    (void)dataset_fetch_plan(dataset, shard, token, row + random_below(chance, 50));
    (void)dataset_fetch_ask(dataset, shard, token, row + 5);
    (void)cache_reach(dataset_cache(dataset), &changes);
    cache_now(dataset_cache(dataset), row, 10);
}

static void planner(void *user)
{
    uint64_t chance = (uint64_t)(uintptr_t)user;
    struct cache_counts counts;
    for (uint64_t row = 0; __atomic_load_n(&ends, __ATOMIC_RELAXED) < READERS; row++) {
        plan_some(&chance, row);
        cache_count(dataset_cache(dataset), &counts);
        os_sleep_ns(1000000);
    }
}

static void opener(void *user)
{
    uint64_t chance = (uint64_t)(uintptr_t)user;
    while (__atomic_load_n(&ends, __ATOMIC_RELAXED) < READERS) {
        struct tokmap_dataset *other;
        struct tokmap_error why;
        if (tokmap_dataset_open(&other, name, NULL, &why)) {
            failed("open", &why);
            return;
        }
        for (int i = 0; i < 5; i++)
            read_some(other, &chance);
        tokmap_dataset_close(other);
    }
}

/* Makes children, which read with the parent's dataset and with one of their own. */
static void forker(void *user)
{
    uint64_t chance = (uint64_t)(uintptr_t)user;
    for (int i = 0; i < CHILDREN; i++) {
        const pid_t child = fork();
        if (!child) {
            __atomic_store_n(&failures, 0, __ATOMIC_RELAXED);
            __atomic_store_n(&ends, READERS - 1, __ATOMIC_RELAXED);
            for (uint64_t row = 0; row < 30; row++) {
                plan_some(&chance, row);
                read_some(dataset, &chance);
            }
            _exit(__atomic_load_n(&failures, __ATOMIC_RELAXED) != 0);
        }
        int status = -1;
        if (waitpid(child, &status, 0) != child || status) {
            (void)fprintf(stderr, "# a child ended with status %x\n", (unsigned)status);
            failed("child", NULL);
        }
        (void)random_next(&chance);
    }
}

/* ---- tests ---- */

static char folder[512];

static int setup(void **state)
{
    (void)state;
    (void)unsetenv("http_proxy");
    (void)unsetenv("all_proxy");
    scratch_make(folder);
    data_make(folder);
    server_start(folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    server_end();
    scratch_remove(folder);
    return 0;
}

/* Opens the dataset with a cache of that name, which holds less than a name may say. */
static struct tokmap_dataset *opened(const char *cache)
{
    struct tokmap_dataset *made;
    assert_true(snprintf(name, sizeof name, "http://127.0.0.1:%u/all?cache=%s/%s&block=2M&connections=4", server.port,
                         folder, cache) > 0);
    const enum tokmap_status status = tokmap_dataset_open(&made, name, NULL, &error);
    if (status == TOKMAP_ERROR_UNSUPPORTED) /* no libcurl, or a file system without holes */
        skip();
    MUST(status);
    dataset_cache(made)->size = CACHE_BYTES;
    return made;
}

static void test_threads(void **state)
{
    (void)state;
    void (*const others[])(void *) = {planner, opener, forker};
    struct os_thread *threads[READERS + 3];
    struct cache_counts counts;
    uint32_t count = READERS + 3;
#ifdef SANITIZED
    count--; /* the malloc() of a sanitizer can stay locked in a child that is forked while another thread allocates */
#endif
    dataset = opened("cache");
    for (uintptr_t i = 0; i < count; i++)
        assert_int_equal(
            os_thread_start(&threads[i], "reader", i < READERS ? reader : others[i - READERS], (void *)(i + 1)), 0);
    for (uint32_t i = 0; i < count; i++)
        os_thread_join(threads[i]);
    cache_count(dataset_cache(dataset), &counts);
    print_message("# %" PRIu64 " requests, %" PRIu64 " MiB, %" PRIu64 " repeated, %" PRIu64
                  " MiB given up; %u slow, %u "
                  "flipped, %u refused\n",
                  counts.requests, counts.bytes / MIB, counts.repeated, counts.evicted / MIB, server.slow,
                  server.flipped, server.refused);
    tokmap_dataset_close(dataset);
    assert_int_equal(failures, 0);
    assert_true(counts.evicted && server.slow && server.flipped && server.refused);
}

static const char *ending;
static bool replace; /* the file by a copy; otherwise it is removed */

static int file_remove(void *user, const char *file)
{
    uint32_t *removed = user;
    const size_t bytes = strlen(file), count = strlen(ending);
    if (bytes > count && !strcmp(file + bytes - count, ending)) {
        const char *path = in_folder(in_folder(folder, "removed"), file);
        *removed += 1;
        if (!replace)
            return os_unlink(path);
        size_t count_all;
        void *copy = file_read(path, &count_all);
        file_write(in_folder(folder, "copy"), copy, count_all);
        free(copy);
        return os_rename(in_folder(folder, "copy"), path);
    }
    return 0;
}

/* Something cleans the folder while a process reads, or replaces a file by a copy. Another one that opens the dataset
 * then shares nothing with it, so that neither takes what the other one has stored for its own, or gives it up. */
static void test_removed_files(void **state)
{
    (void)state;
    static const char *const endings[] = {".state", ".bin", ".mask", ".bin.zst"};
    for (size_t i = 0; i < 2 * sizeof endings / sizeof endings[0]; i++) {
        uint64_t chance = i;
        uint32_t removed = 0;
        struct tokmap_dataset *first = opened("removed"), *second;
        for (int round = 0; round < 30; round++)
            read_some(first, &chance);
        ending = endings[i / 2];
        replace = i % 2;
        assert_int_equal(os_folder_list(in_folder(folder, "removed"), file_remove, &removed), 0);
        assert_true(removed);
        second = opened("removed");
        for (int round = 0; round < 60; round++)
            read_some(round % 2 ? first : second, &chance);
        tokmap_dataset_close(first);
        tokmap_dataset_close(second);
        assert_int_equal(failures, 0);
    }
}

static void waker(void *user)
{
    const int *ends_of_pipe = user;
    os_sleep_ns(300000000);
    assert_int_equal(write(ends_of_pipe[1], "", 1), 1);
}

/* Opening waits for a process that gives cells up, until it is interrupted. */
static void test_interrupted_opening(void **state)
{
    (void)state;
    struct tokmap_dataset *first = opened("removed"), *second;
    struct cache_processes *processes = &dataset_cache(first)->processes;
    struct os_thread *thread;
    uint32_t removed = 0;
    int ends_of_pipe[2];
    ending = ".state";
    replace = false;
    assert_int_equal(os_folder_list(in_folder(folder, "removed"), file_remove, &removed), 0);
    assert_true(removed && cache_evict_begin(processes));
    assert_int_equal(pipe(ends_of_pipe), 0);
    os_wake_set(ends_of_pipe[0]);
    assert_int_equal(os_thread_start(&thread, "waker", waker, ends_of_pipe), 0);
    const enum tokmap_status status = tokmap_dataset_open(&second, name, NULL, &error);
    os_thread_join(thread);
    os_wake_set(-1);
    (void)close(ends_of_pipe[0]);
    (void)close(ends_of_pipe[1]);
    cache_evict_end(processes);
    assert_int_equal(status, TOKMAP_ERROR_INTERRUPTED);
    MUST(tokmap_dataset_open(&second, name, NULL, &error));
    tokmap_dataset_close(first);
    tokmap_dataset_close(second);
}

/* ---- a hole that takes long to make ---- */

static uint32_t holes_wait; /* accessed atomically */

/* In place of the C library's: what the disk, or a process that is stopped, can make of it. */
int fallocate(int fd, int mode, off_t offset, off_t bytes)
{
    if (__atomic_exchange_n(&holes_wait, 0, __ATOMIC_ACQ_REL))
        os_sleep_ns(2000000000);
    return (int)syscall(SYS_fallocate, fd, mode, offset, bytes);
}

static void room_maker(void *user)
{
    struct cache *cache = user;
    __atomic_store_n(&holes_wait, 1, __ATOMIC_RELEASE);
    (void)cache_room(cache, MIB, 0);
    cache_room_end(cache, MIB, false);
    (void)__atomic_fetch_add(&ends, 1, __ATOMIC_RELAXED);
}

/* What is being given up is not fetched until it is a hole, however long that takes. */
static void test_slow_hole(void **state)
{
    (void)state;
    struct os_thread *thread;
    uint64_t chance = 1;
    dataset = opened("slow");
    struct cache *cache = dataset_cache(dataset);
    __atomic_store_n(&cache->size, UINT64_MAX, __ATOMIC_RELAXED);
    for (int i = 0; i < 200; i++)
        read_some(dataset, &chance);
    __atomic_store_n(&cache->size, CACHE_BYTES, __ATOMIC_RELAXED);
    __atomic_store_n(&cache->time_count, 0, __ATOMIC_RELAXED); /* a request that takes longer than 0.5 s is repeated */
    ends = 0;
    assert_int_equal(os_thread_start(&thread, "room", room_maker, cache), 0);
    while (!__atomic_load_n(&ends, __ATOMIC_RELAXED))
        read_some(dataset, &chance);
    os_thread_join(thread);
    for (int i = 0; i < 200; i++)
        read_some(dataset, &chance);
    assert_int_equal(holes_wait, 0);
    tokmap_dataset_close(dataset);
    assert_int_equal(failures, 0);
}

#ifndef SANITIZED
/* In a child: gives cells up, slowly, with the table of processes that the folder has now. */
static int give_up(void)
{
    struct cache *cache;
    char *rest, text[1100];
    (void)snprintf(text, sizeof text, "s3://bucket/data?cache=%s/table", folder);
    tokmap_dataset_close(dataset); /* and with it the cache of the parent's table */
    if (cache_open(&cache, &rest, text, NULL))
        return 1;
    __atomic_store_n(&cache->size, CACHE_BYTES, __ATOMIC_RELAXED);
    __atomic_store_n(&holes_wait, 1, __ATOMIC_RELEASE);
    (void)cache_room(cache, 2 * CACHE_BYTES, 0);
    return __atomic_load_n(&holes_wait, __ATOMIC_ACQUIRE) ? 2 : 0;
}

/* Something removes the table of processes. Who has the old one does not take the claims of the others for those of the
 * dead, which it could end before their holes are made: it fails, or gets its tokens. */
static void test_removed_table(void **state)
{
    (void)state;
    static uint32_t tokens[4096];
    uint64_t chance = 1;
    uint32_t errors = 0, after = 0;
    int status = -1;
    dataset = opened("table");
    dataset_cache(dataset)->size = UINT64_MAX;
    for (int i = 0; i < 200; i++)
        read_some(dataset, &chance);
    assert_int_equal(os_unlink(in_folder(in_folder(folder, "table"), CACHE_PROCESSES_FILE)), 0);
    const pid_t child = fork();
    if (!child)
        _exit(give_up());
    for (bool runs = true; runs || after++ < 1000;) {
        const uint64_t first = random_below(&chance, TOKENS - 4096);
        struct tokmap_error why;
        if (tokmap_dataset_copy(dataset, first, 4096, tokens, &why)) {
            errors++;
            assert_int_equal(why.status, TOKMAP_ERROR_IO);
        } else {
            assert_int_equal(tokens[0], first);
            assert_int_equal(tokens[4095], first + 4095);
        }
        runs = runs && waitpid(child, &status, WNOHANG) != child;
    }
    assert_int_equal(status, 0);
    assert_true(errors);
    tokmap_dataset_close(dataset);
    assert_int_equal(failures, 0);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads), cmocka_unit_test(test_removed_files),
                                       cmocka_unit_test(test_interrupted_opening), cmocka_unit_test(test_slow_hole),
#ifndef SANITIZED
                                       cmocka_unit_test(test_removed_table)
#endif
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
