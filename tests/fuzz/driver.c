/* SPDX-License-Identifier: MIT */
/*
 * driver.c - runs a fuzz harness without a fuzzing engine: replays files, then mutates them.
 *
 *     fuzz_NAME [-runs=N] [-seconds=S] [-seed=N] [-max_len=N] FILE-OR-FOLDER...
 *
 * First every file is passed to the harness unchanged, in an allocation of exactly its size, so that a sanitizer
 * detects a read one byte past the end. Then N inputs, or as many as fit in S seconds, are made from the files by a few
 * mutations each: changed bits and bytes, interesting integers, and pieces that are copied, removed, repeated, or
 * joined from two files. The same seed makes the same inputs. If the harness dies, the input is written to $TMPDIR (or
 * .) as crash-SEED-RUN.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

struct input {
    uint8_t *bytes;
    size_t count;
};

static struct input *inputs;
static size_t inputs_count, inputs_capacity;
static uint64_t random_state = 1;
static uint64_t seed = 1, run_number;
static struct input current;
static const char *current_path;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void *allocate(size_t bytes)
{
    void *found = malloc(bytes ? bytes : 1);
    if (!found)
        die("malloc");
    return found;
}

/* splitmix64 */
static uint64_t draw(void)
{
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static size_t below(size_t limit)
{
    return limit ? (size_t)(draw() % limit) : 0;
}

/* Saves the current input. It runs in a signal handler, so it may only make calls that are safe there. */
static void keep_current(void)
{
    static const char note[] = "the harness died on: ";
    (void)!write(2, note, sizeof note - 1);
    if (current_path) {
        (void)!write(2, current_path, strlen(current_path));
        (void)!write(2, "\n", 1);
        return;
    }
    char path[4096];
    const char *folder = getenv("TMPDIR");
    int length = snprintf(path, sizeof path, "%s/crash-%llu-%llu", folder ? folder : ".", (unsigned long long)seed,
                          (unsigned long long)run_number);
    int fd = length > 0 && (size_t)length < sizeof path ? open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666) : -1;
    if (fd >= 0) {
        (void)!write(fd, current.bytes, current.count);
        close(fd);
        (void)!write(2, path, (size_t)length);
    }
    (void)!write(2, "\n", 1);
}

static void on_signal(int number)
{
    signal(number, SIG_DFL);
    keep_current();
    raise(number);
}

static void run_harness(const uint8_t *bytes, size_t count)
{
    current.bytes = allocate(count);
    current.count = count;
    if (count)
        memcpy(current.bytes, bytes, count);
    LLVMFuzzerTestOneInput(current.bytes, count);
    free(current.bytes);
    current.bytes = NULL;
}

static void add_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        die(path);
    struct input input = {NULL, 0};
    size_t capacity = 0;
    for (;;) {
        if (input.count == capacity) {
            capacity = capacity ? capacity * 2 : 4096;
            input.bytes = realloc(input.bytes, capacity);
            if (!input.bytes)
                die("realloc");
        }
        size_t got = fread(input.bytes + input.count, 1, capacity - input.count, file);
        if (!got)
            break;
        input.count += got;
    }
    fclose(file);
    if (inputs_count == inputs_capacity) {
        inputs_capacity = inputs_capacity ? inputs_capacity * 2 : 64;
        inputs = realloc(inputs, inputs_capacity * sizeof *inputs);
        if (!inputs)
            die("realloc");
    }
    inputs[inputs_count++] = input;
    current_path = path;
    run_harness(input.bytes, input.count);
    current_path = NULL;
}

static void add_path(const char *path)
{
    struct stat found;
    if (stat(path, &found))
        die(path);
    if (!S_ISDIR(found.st_mode)) {
        add_file(path);
        return;
    }
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, alphasort);
    if (count < 0)
        die(path);
    for (int i = 0; i < count; i++) {
        if (entries[i]->d_name[0] != '.') {
            size_t length = strlen(path) + strlen(entries[i]->d_name) + 2;
            char *below_it = allocate(length);
            (void)snprintf(below_it, length, "%s/%s", path, entries[i]->d_name);
            add_path(below_it);
            free(below_it);
        }
        free(entries[i]);
    }
    free(entries);
}

static void store_number(uint8_t *bytes, size_t count)
{
    static const uint64_t interesting[] = {0,          1,           2,        0x7f,       0x80,           0xff,
                                           0x7fff,     0x8000,      0xffff,   0x10000,    0x7fffffff,     0x80000000,
                                           0xffffffff, 0x100000000, 1u << 20, UINT64_MAX, UINT64_MAX - 1, INT64_MAX};
    size_t width = (size_t)1 << below(4);
    if (width > count)
        return;
    uint8_t *at = bytes + below(count - width + 1);
    uint64_t number = interesting[below(sizeof interesting / sizeof interesting[0])];
    if (below(2)) { /* close to the number that is there now */
        number = 0;
        memcpy(&number, at, width);
        number += below(17) - 8;
    }
    memcpy(at, &number, width);
}

/* Applies one mutation in place. *count may change, up to capacity. */
static void mutate(uint8_t *bytes, size_t *count, size_t capacity)
{
    size_t from = below(*count), length = 1 + below(*count - from > 64 ? 64 : *count - from);
    switch (*count ? below(8) : 7) {
    case 0:
        bytes[from] ^= (uint8_t)(1u << below(8));
        break;
    case 1:
        bytes[from] = (uint8_t)draw();
        break;
    case 2:
    case 3:
        store_number(bytes, *count);
        break;
    case 4: /* remove */
        memmove(bytes + from, bytes + from + length, *count - from - length);
        *count -= length;
        break;
    case 5: /* repeat */
        if (*count + length <= capacity) {
            memmove(bytes + from + length, bytes + from, *count - from);
            *count += length;
        }
        break;
    case 6: /* cut */
        *count = from;
        break;
    default: { /* overwrite with a piece of another input */
        const struct input *other = &inputs[below(inputs_count)];
        size_t other_from = below(other->count), piece = other->count - other_from;
        size_t into = below(*count + 1);
        piece = piece > capacity - into ? capacity - into : piece;
        if (piece)
            memcpy(bytes + into, other->bytes + other_from, piece);
        *count = into + piece > *count || below(2) ? into + piece : *count;
    }
    }
}

static void mutate_all(uint64_t runs, uint64_t seconds, size_t max_length)
{
    if (!inputs_count) {
        struct input empty = {allocate(0), 0};
        inputs = allocate(sizeof *inputs);
        inputs[inputs_count++] = empty;
    }
    uint8_t *bytes = allocate(max_length);
    time_t end = time(NULL) + (time_t)seconds;
    for (run_number = 0; run_number < runs; run_number++) {
        if (seconds && run_number % 64 == 0 && time(NULL) >= end)
            break;
        random_state = seed * 0x2545f4914f6cdd1du + run_number;
        const struct input *start = &inputs[below(inputs_count)];
        size_t count = start->count < max_length ? start->count : max_length;
        if (count)
            memcpy(bytes, start->bytes, count);
        for (size_t times = (size_t)1 << below(5); times; times--)
            mutate(bytes, &count, max_length);
        run_harness(bytes, count);
    }
    free(bytes);
}

static int number_option(const char *argument, const char *name, uint64_t *into)
{
    size_t length = strlen(name);
    if (strncmp(argument, name, length) || argument[length] != '=')
        return 0;
    *into = strtoull(argument + length + 1, NULL, 10);
    return 1;
}

int main(int argc, char **argv)
{
    uint64_t runs = 0, seconds = 0, max_length = 1 << 16;
    if (LLVMFuzzerInitialize)
        LLVMFuzzerInitialize(&argc, &argv);
    static const int deadly[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    for (size_t i = 0; i < (__sanitizer_set_death_callback ? 1 : sizeof deadly / sizeof deadly[0]); i++)
        signal(deadly[i], on_signal); /* a sanitizer handles all of these itself, except SIGABRT */
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(keep_current);
    for (int i = 1; i < argc; i++)
        if (argv[i][0] != '-')
            add_path(argv[i]);
        else if (!number_option(argv[i], "-runs", &runs) && !number_option(argv[i], "-seconds", &seconds) &&
                 !number_option(argv[i], "-seed", &seed) && !number_option(argv[i], "-max_len", &max_length)) {
            fprintf(stderr, "usage: %s [-runs=N] [-seconds=S] [-seed=N] [-max_len=N] FILE-OR-FOLDER...\n", argv[0]);
            return 2;
        }
    size_t replayed = inputs_count;
    if (runs || seconds)
        mutate_all(runs ? runs : UINT64_MAX, seconds, (size_t)max_length);
    printf("replayed %zu inputs, made %llu more (seed %llu)\n", replayed, (unsigned long long)run_number,
           (unsigned long long)seed);
    for (size_t i = 0; i < inputs_count; i++)
        free(inputs[i].bytes);
    free(inputs);
    return 0;
}
