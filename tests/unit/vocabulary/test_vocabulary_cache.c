/*
 * test_vocabulary_cache.c - the cache never fails and never does harm: damaged, cut, hostile, old, and foreign files,
 * links, folders of others, a full disk, several processes, and a folder that grows.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/hash.h"
#include "platform/os.h"
#include "tokenizer/snapshot.h"
#include "vocabulary/vocabulary.h"
#include "vocabulary/vocabulary_cache.h"
#include "support/cached_tokenizer.h"
#include "support/scratch.h"

#define BYTE_LEVEL "tests/fuzz/corpus/fuzz_vocabulary/gpt2.json"
#define CHARACTERS "tests/fuzz/corpus/fuzz_vocabulary/characters.json"
#define SENTENCEPIECE "tests/fuzz/corpus/fuzz_vocabulary/small.model"

static const struct tokenizer_options plain;
static const char text[] = "the \xE4\xB8\xAD\xE6\x96\x87 abcab <|endoftext|>then, \xC3\xA9"
                           "abc  ab the th he hello\n\n 12 \xF0\x9F\x98\x80";

static char scratch[512], folder[640];

/* Begins a test with a folder that does not exist yet. */
static void fresh(void)
{
    static unsigned number;
    (void)snprintf(folder, sizeof folder, "%s/%u/tokmap", scratch, number++);
    file_write_text(in_folder(scratch, "other"), "not a cache");
}

/* Returns the path of the file that the cache has for a vocabulary. */
static const char *file_of(const char *vocabulary)
{
    struct cache_key key;
    char name[64];
    assert_true(cache_key_find(&key, vocabulary, &plain));
    hash128_hex(key.hash, name);
    strcat(name, ".vocabulary");
    return in_folder(folder, name);
}

static void expect(const char *vocabulary, enum tokenizer_cached wanted)
{
    struct tokenizer *without;
    assert_int_equal(vocabulary_open(&without, vocabulary, &plain, NULL), TOKMAP_OK);
    struct tokenizer *with = open_cached(vocabulary, folder, plain, wanted);
    same_tokenizer(without, with, text, sizeof text - 1);
    tokenizer_close(without);
    tokenizer_close(with);
}

static uint64_t files_count(void)
{
    struct cache_use use;
    assert_int_equal(vocabulary_cache_look(folder, false, &use), 0);
    return use.files;
}

/* ---- damage ---- */

/* Sets the hash of a file in memory to the one that its bytes have. */
static void hash_set(uint8_t *file, size_t bytes)
{
    struct snapshot_header *header = (struct snapshot_header *)(void *)file;
    hash128_store(hash128(header->key, bytes - offsetof(struct snapshot_header, key)), header->hash);
}

/* Opens a vocabulary whose file in the cache is damaged, and finds that it was replaced. */
static void expect_replaced(const char *vocabulary)
{
    tokenizer_close(open_cached(vocabulary, folder, plain, TOKENIZER_CACHE_WRITTEN));
    tokenizer_close(open_cached(vocabulary, folder, plain, TOKENIZER_CACHE_READ));
    assert_int_equal(files_count(), 1);
}

static void a_damaged_page_is_noticed(void **unused)
{
    size_t bytes;
    fresh();
    expect(BYTE_LEVEL, TOKENIZER_CACHE_WRITTEN);
    expect(BYTE_LEVEL, TOKENIZER_CACHE_READ);
    const char *path = file_of(BYTE_LEVEL);
    uint8_t *file = file_read(path, &bytes);
    assert_int_equal(bytes % SNAPSHOT_PAGE, 0);
    for (size_t at = 0; at < bytes; at += SNAPSHOT_PAGE) {
        const size_t where = at + (at * 31 + 5) % 64;
        file[where] ^= 4;
        file_write(path, file, bytes);
        file[where] ^= 4;
        assert_int_equal(chmod(path, 0600), 0);
        expect_replaced(BYTE_LEVEL);
    }
    free(file);
}

static void a_cut_file_is_noticed(void **unused)
{
    size_t bytes;
    fresh();
    expect(SENTENCEPIECE, TOKENIZER_CACHE_WRITTEN);
    const char *path = file_of(SENTENCEPIECE);
    uint8_t *file = file_read(path, &bytes);
    for (size_t at = 0; at < bytes; at += SNAPSHOT_PAGE) {
        file_write(path, file, at ? at : 0);
        expect_replaced(SENTENCEPIECE);
    }
    file_write(path, file, bytes - 1);
    expect_replaced(SENTENCEPIECE);
    /* Pages of another file after the end. */
    uint8_t *longer = calloc(1, bytes + SNAPSHOT_PAGE);
    assert_non_null(longer);
    memcpy(longer, file, bytes);
    file_write(path, longer, bytes + SNAPSHOT_PAGE);
    expect_replaced(SENTENCEPIECE);
    free(longer);
    free(file);
}

static void another_version_is_not_used(void **unused)
{
    size_t bytes;
    fresh();
    expect(BYTE_LEVEL, TOKENIZER_CACHE_WRITTEN);
    const char *path = file_of(BYTE_LEVEL);
    uint8_t *file = file_read(path, &bytes);
    struct snapshot_header *header = (struct snapshot_header *)(void *)file;
    header->format++;
    hash_set(file, bytes);
    file_write(path, file, bytes);
    expect_replaced(BYTE_LEVEL);
    header->format--;
    header->key[3] ^= 1; /* the file of another key, under this name */
    hash_set(file, bytes);
    file_write(path, file, bytes);
    expect_replaced(BYTE_LEVEL);
    header->key[3] ^= 1;
    hash_set(file, bytes);
    file_write(path, file, bytes);
    expect(BYTE_LEVEL, TOKENIZER_CACHE_READ);
    free(file);
}

/* ---- hostile files, whose hash is right ---- */

/* Opens a file with a fault. If it is taken, encodes and decodes: nothing may be read or written out of bounds, which a
 * build with sanitizers sees. Ids may be wrong. */
static bool hostile_try(const char *vocabulary, const struct cache_key *key, uint8_t *file, size_t bytes)
{
    struct tokenizer *tokenizer;
    struct tokenizer_state *state;
    struct tokenizer_info info;
    struct tokmap_error error;
    const struct tokenizer_text document = {text, sizeof text - 1};
    const struct tokenizer_batch batch = {&document, 1, false, false};
    hash_set(file, bytes);
    file_write(file_of(vocabulary), file, bytes);
    if (!vocabulary_cache_read(&tokenizer, folder, key, vocabulary, TOKENIZER_SPECIAL_RECOGNIZE))
        return false;
    uint64_t end;
    tokenizer_info(tokenizer, &info);
    struct tokenizer_out out = {.capacity = sizeof text * info.ids_per_byte_most + 64, .ends = &end};
    assert_non_null(out.tokens = malloc((size_t)out.capacity * info.width));
    assert_int_equal(tokenizer_state_new(&state, tokenizer, &error), TOKMAP_OK);
    if (!tokenizer_encode(state, &batch, &out, &error)) {
        struct text_buffer back = {NULL, 0, 0};
        (void)tokenizer_decode(tokenizer, out.tokens, out.count, true, false, &back, &error);
        free(back.bytes);
    }
    for (uint64_t id = 0; id < info.vocabulary; id++) {
        const uint8_t *token;
        uint32_t count;
        volatile uint8_t sum = 0;
        for (uint32_t i = 0; tokenizer_token(tokenizer, id, &token, &count) && i < count; i++)
            sum = (uint8_t)(sum + token[i]);
    }
    free(out.tokens);
    tokenizer_state_free(state);
    tokenizer_close(tokenizer);
    return true;
}

/* Changes the 8 bytes at `at` in turn to several numbers. */
static void hostile_words(const char *vocabulary, const struct cache_key *key, uint8_t *file, size_t bytes, size_t at)
{
    static const uint64_t numbers[] = {0, UINT64_MAX, UINT64_C(0x00012FFF00000001)};
    const size_t count = sizeof numbers / sizeof numbers[0];
    uint64_t before;
    if (at + 8 > bytes)
        return;
    memcpy(&before, file + at, sizeof before);
    for (size_t i = 0; i <= count; i++) {
        const uint64_t now = i < count ? numbers[i] : before + 1;
        memcpy(file + at, &now, sizeof now);
        if (now != before)
            (void)hostile_try(vocabulary, key, file, bytes);
    }
    memcpy(file + at, &before, sizeof before);
}

static void hostile(const char *vocabulary)
{
    struct cache_key key;
    size_t bytes;
    uint64_t random = 7;
    fresh();
    expect(vocabulary, TOKENIZER_CACHE_WRITTEN);
    assert_true(cache_key_find(&key, vocabulary, &plain));
    uint8_t *file = file_read(file_of(vocabulary), &bytes);
    const struct snapshot_header *header = (const struct snapshot_header *)(const void *)file;
    const struct snapshot_place fields = header->fields;
    const uint64_t arrays = header->arrays;
    assert_true(hostile_try(vocabulary, &key, file, bytes));
    /* The header after the hash: numbers and places. */
    for (size_t at = offsetof(struct snapshot_header, format);
         at < offsetof(struct snapshot_header, places) + (arrays + 1) * sizeof(struct snapshot_place); at += 8)
        hostile_words(vocabulary, &key, file, bytes, at);
    /* The first fields, the last ones, and some of those between, then some words of each array: its first, its
     * last, and others. */
    for (size_t at = 0, step = 8; at < fields.bytes; at += step) {
        hostile_words(vocabulary, &key, file, bytes, (size_t)fields.offset + at);
        step = at < 160 || at + 240 > fields.bytes ? 8 : 88;
    }
    for (uint64_t i = 0; i < arrays; i++) {
        const struct snapshot_place place = header->places[i];
        for (int k = 0; k < 4 && place.bytes >= 8; k++) {
            const uint64_t words = place.bytes / 8, word = !k ? 0 : k == 1 ? words - 1 : random_below(&random, words);
            hostile_words(vocabulary, &key, file, bytes, (size_t)(place.offset + 8 * word));
        }
    }
    free(file);
}

static void hostile_byte_level(void **unused)
{
    hostile(BYTE_LEVEL);
}

static void hostile_characters(void **unused)
{
    hostile(CHARACTERS);
}

static void hostile_sentencepiece(void **unused)
{
    hostile(SENTENCEPIECE);
}

/* A table of pairs that is nearly full would be searched as good as without end. */
static void a_full_table_is_refused(void **unused)
{
    struct cache_key key;
    size_t bytes;
    fresh();
    expect(BYTE_LEVEL, TOKENIZER_CACHE_WRITTEN);
    assert_true(cache_key_find(&key, BYTE_LEVEL, &plain));
    uint8_t *file = file_read(file_of(BYTE_LEVEL), &bytes);
    const struct snapshot_place *places = ((const struct snapshot_header *)(const void *)file)->places;
    const struct snapshot_place pairs = places[2];
    assert_true(pairs.bytes >= 128 && !(pairs.bytes & (pairs.bytes - 1)));
    uint64_t sound = UINT64_MAX, empty = 0;
    for (uint64_t at = 0; at < pairs.bytes && sound == UINT64_MAX; at += 8)
        memcpy(&sound, file + pairs.offset + at, 8);
    assert_true(sound != UINT64_MAX);
    for (uint64_t at = 0; at < pairs.bytes; at += 8) {
        uint64_t slot;
        memcpy(&slot, file + pairs.offset + at, 8);
        if (slot != UINT64_MAX)
            continue;
        memcpy(file + pairs.offset + at, &sound, 8);
        empty = at;
    }
    assert_false(hostile_try(BYTE_LEVEL, &key, file, bytes));
    memset(file + pairs.offset + empty, 0xFF, 8);
    assert_false(hostile_try(BYTE_LEVEL, &key, file, bytes));
    free(file);
}

/* Texts that loops over characters read must be UTF-8. */
static void texts_that_are_not_utf8_are_refused(void **unused)
{
    static const char token[] = "<s>";
    struct cache_key key;
    size_t bytes;
    int found = 0;
    fresh();
    expect(BYTE_LEVEL, TOKENIZER_CACHE_WRITTEN);
    assert_true(cache_key_find(&key, BYTE_LEVEL, &plain));
    uint8_t *file = file_read(file_of(BYTE_LEVEL), &bytes), *at = file;
    const struct snapshot_place fields = ((const struct snapshot_header *)(const void *)file)->fields;
    while ((at = memmem(at, (size_t)(file + fields.offset + fields.bytes - at), token, sizeof token - 1))) {
        at += sizeof token - 2;
        *at = 0xE4; /* a character begins, but does not end */
        assert_false(hostile_try(BYTE_LEVEL, &key, file, bytes));
        *at = '>';
        found++;
    }
    assert_true(found >= 2); /* the same text for each use of the token */
    assert_true(hostile_try(BYTE_LEVEL, &key, file, bytes));
    free(file);
}

/* Makes a SentencePiece model with so many pieces that ids do not fit 16 bits: small.model, and unused pieces. */
static const char *wide_model(void)
{
    enum { PIECES = 66000, PIECE = 2 + 10 + 2 };
    size_t count;
    const char *path = in_folder(scratch, "wide.model");
    uint8_t *small = file_read(SENTENCEPIECE, &count), *all = malloc(count + PIECES * PIECE + 1);
    assert_non_null(all);
    memcpy(all, small, count);
    for (unsigned i = 0; i < PIECES; i++, count += PIECE) /* pieces { piece: "q0000000" type: UNUSED } */
        (void)snprintf((char *)all + count, PIECE + 1, "\x0A\x0C\x0A\x08q%07u\x18\x05", i);
    file_write(path, all, count);
    free(all);
    free(small);
    return path;
}

/* Where the arrays of a model are, in the order of decoder_put(), bpe_model_put(), and sp_model_put(). */
enum { SP_BYTE_PAIRS = 3 + 4, SP_IDS = 3 + 9 };

/* A character that no token holds becomes the tokens of its bytes. If one had none, BPE_NONE would be an id. */
static void numbers_that_encoding_relies_on(void **unused)
{
    struct cache_key key;
    size_t bytes;
    const char *path = wide_model();
    fresh();
    expect(path, TOKENIZER_CACHE_WRITTEN);
    assert_true(cache_key_find(&key, path, &plain));
    uint8_t *file = file_read(file_of(path), &bytes);
    const struct snapshot_header *header = (const struct snapshot_header *)(const void *)file;
    uint8_t *at = file + header->fields.offset;
    for (uint64_t word = 0; word != 1024; at += 8) { /* the 256 tokens of bytes */
        assert_true(at + 8 + 1024 <= file + header->fields.offset + header->fields.bytes);
        memcpy(&word, at, 8);
    }
    for (const char *byte = "\xE4\xB8\xAD"; *byte; byte++) {
        uint8_t *id = at + 4 * (uint8_t)*byte, before[4];
        memcpy(before, id, 4);
        memset(id, 0xFF, 4);
        assert_false(hostile_try(path, &key, file, bytes));
        memcpy(id, before, 4);
    }
    /* A pair of bytes that the table of pairs does not have. */
    assert_int_equal(header->places[SP_BYTE_PAIRS].bytes, 65536 * 4);
    uint8_t *pair = file + header->places[SP_BYTE_PAIRS].offset + 4 * ('z' << 8 | 'q');
    memset(pair, 0, 4);
    assert_false(hostile_try(path, &key, file, bytes));
    memset(pair, 0xFF, 4);
    assert_true(hostile_try(path, &key, file, bytes));
    /* Merges that make what has no token. */
    assert_true(header->places[SP_IDS].bytes > 66000 * 4);
    memset(file + header->places[SP_IDS].offset, 0xFF, (size_t)header->places[SP_IDS].bytes);
    assert_false(hostile_try(path, &key, file, bytes));
    free(file);
}

/* ---- files and folders of others, links ---- */

static void files_of_others_are_not_used(void **unused)
{
    fresh();
    expect(BYTE_LEVEL, TOKENIZER_CACHE_WRITTEN);
    struct stat about;
    assert_int_equal(stat(folder, &about), 0);
    assert_int_equal(about.st_mode & 07777, 0700);
    const char *path = file_of(BYTE_LEVEL);
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 07777, 0600);
    assert_int_equal(chmod(path, 0622), 0); /* others may have changed it */
    expect_replaced(BYTE_LEVEL);
    assert_int_equal(chmod(folder, 0777), 0);
    expect(BYTE_LEVEL, TOKENIZER_NOT_CACHED);
    assert_int_equal(chmod(folder, 0700), 0);
    expect(BYTE_LEVEL, TOKENIZER_CACHE_READ);
    if (!os_is_root())
        return;
    assert_int_equal(chown(path, 12345, (gid_t)-1), 0);
    expect_replaced(BYTE_LEVEL);
    assert_int_equal(chown(folder, 12345, (gid_t)-1), 0);
    expect(BYTE_LEVEL, TOKENIZER_NOT_CACHED);
    assert_int_equal(chown(folder, 0, (gid_t)-1), 0);
    expect(BYTE_LEVEL, TOKENIZER_CACHE_READ);
}

/* What root runs with a user's home must leave nothing there that this user cannot write. */
static void nothing_is_made_in_folders_of_others(void **unused)
{
    if (!os_is_root())
        return;
    fresh();
    char *above = strdup(folder);
    assert_non_null(above);
    *strrchr(above, '/') = '\0';
    assert_int_equal(mkdir(above, 0755), 0);
    assert_int_equal(chown(above, 12345, (gid_t)-1), 0);
    expect(BYTE_LEVEL, TOKENIZER_NOT_CACHED);
    assert_false(file_exists(folder));
    strcat(folder, "/tokmap");
    expect(BYTE_LEVEL, TOKENIZER_NOT_CACHED);
    *strrchr(folder, '/') = '\0';
    assert_false(file_exists(folder));
    assert_int_equal(chown(above, 0, (gid_t)-1), 0);
    expect(BYTE_LEVEL, TOKENIZER_CACHE_WRITTEN);
    free(above);
}

static void links_and_other_things(void **unused)
{
    fresh();
    expect(BYTE_LEVEL, TOKENIZER_CACHE_WRITTEN);
    const char *path = file_of(BYTE_LEVEL), *other = in_folder(scratch, "other");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink(other, path), 0);
    expect_replaced(BYTE_LEVEL);
    size_t bytes;
    char *kept = file_read(other, &bytes);
    assert_int_equal(bytes, 11);
    assert_memory_equal(kept, "not a cache", 11);
    free(kept);
    struct stat about;
    assert_int_equal(lstat(path, &about), 0);
    assert_true(S_ISREG(about.st_mode));
    /* A pipe does not make the reader wait. */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_replaced(BYTE_LEVEL);
    /* A folder cannot be replaced. */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    expect(BYTE_LEVEL, TOKENIZER_NOT_CACHED);
    assert_int_equal(rmdir(path), 0);
    expect(BYTE_LEVEL, TOKENIZER_CACHE_WRITTEN);
    assert_int_equal(files_count(), 1);
}

static void a_folder_that_cannot_be_made(void **unused)
{
    fresh();
    (void)snprintf(folder, sizeof folder, "%s/other/tokmap", scratch); /* below a file */
    expect(BYTE_LEVEL, TOKENIZER_NOT_CACHED);
    (void)snprintf(folder, sizeof folder, "%s/missing/home/tokmap", scratch);
    expect(BYTE_LEVEL, TOKENIZER_NOT_CACHED);              /* a home folder is not made */
    (void)snprintf(folder, sizeof folder, "/proc/tokmap"); /* read-only, for root too */
    expect(BYTE_LEVEL, TOKENIZER_NOT_CACHED);
    if (os_is_root())
        return;
    fresh();
    expect(BYTE_LEVEL, TOKENIZER_CACHE_WRITTEN);
    assert_int_equal(chmod(folder, 0500), 0);
    expect(BYTE_LEVEL, TOKENIZER_CACHE_READ);
    expect(SENTENCEPIECE, TOKENIZER_NOT_CACHED);
    assert_int_equal(chmod(folder, 0700), 0);
}

/* ---- keys ---- */

static void the_key_has_all_that_decides(void **unused)
{
    struct cache_key keys[9];
    struct tokenizer_options options = {.pattern = "gpt2"};
    const char *ranks = "tests/fuzz/corpus/fuzz_vocabulary/ranks.tiktoken";
    const char *specials = in_folder(scratch, "specials.json");
    assert_true(cache_key_find(&keys[0], ranks, &options));
    options.pattern = "cl100k_base";
    assert_true(cache_key_find(&keys[1], ranks, &options));
    options = (struct tokenizer_options){.pattern_regex = "gpt2"};
    assert_true(cache_key_find(&keys[2], ranks, &options));
    options = (struct tokenizer_options){.pattern = "gpt2", .special_tokens = specials};
    file_write_text(specials, "{\"<s>\": 1000}");
    assert_true(cache_key_find(&keys[3], ranks, &options));
    file_write_text(specials, "{\"<s>\": 1001}");
    assert_true(cache_key_find(&keys[4], ranks, &options));
    assert_true(cache_key_find(&keys[5], BYTE_LEVEL, &plain));
    /* Two files: both decide, whichever is named. */
    const char *merges = in_folder(scratch, "vocab.bpe"), *ids = in_folder(scratch, "encoder.json");
    file_write_text(merges, "#version: 0.2\na b\n");
    file_write_text(ids, "{\"a\": 0, \"b\": 1}");
    assert_true(cache_key_find(&keys[6], merges, &plain) && keys[6].pair);
    file_write_text(ids, "{\"a\": 1, \"b\": 0}");
    assert_true(cache_key_find(&keys[7], merges, &plain));
    /* So does what says which kind they are. */
    file_write_text(in_folder(scratch, "tokenizer_config.json"), "{}");
    assert_true(cache_key_find(&keys[8], merges, &plain));
    assert_int_equal(unlink(in_folder(scratch, "tokenizer_config.json")), 0);
    for (int i = 0; i < 9; i++)
        for (int k = 0; k < 9; k++)
            assert_int_equal(cache_key_same(&keys[i], &keys[k]), i == k);
    assert_true(cache_key_find(&keys[0], ids, &plain) && keys[0].pair);
    assert_int_equal(unlink(ids), 0);
    assert_false(cache_key_find(&keys[0], merges, &plain));
    assert_false(cache_key_find(&keys[0], in_folder(scratch, "missing"), &plain));
    options.special_tokens = in_folder(scratch, "missing");
    assert_false(cache_key_find(&keys[0], ranks, &options));
}

static void the_name_is_that_of_the_path(void **unused)
{
    struct tokenizer_info info;
    fresh();
    expect(BYTE_LEVEL, TOKENIZER_CACHE_WRITTEN);
    const char *copy = in_folder(scratch, "renamed.json");
    file_copy(BYTE_LEVEL, copy);
    struct tokenizer *tokenizer = open_cached(copy, folder, plain, TOKENIZER_CACHE_READ);
    tokenizer_info(tokenizer, &info);
    assert_string_equal(info.name, "renamed.json");
    tokenizer_close(tokenizer);
}

static void where_the_folder_is(void **unused)
{
    static const struct {
        const char *no, *cache, *home, *folder;
    } cases[] = {
        {NULL, "/x/cache", "/u/home", "/x/cache/tokmap"},
        {NULL, NULL, "/u/home", "/u/home/.cache/tokmap"},
        {NULL, "relative", "/u/home", "/u/home/.cache/tokmap"},
        {NULL, "", "/u/home", "/u/home/.cache/tokmap"},
        {NULL, NULL, NULL, NULL},
        {NULL, NULL, "relative", NULL},
        {"1", "/x/cache", "/u/home", NULL},
        {"", "/x/cache", NULL, "/x/cache/tokmap"},
    };
    const char *const names[] = {"TOKMAP_NO_CACHE", "XDG_CACHE_HOME", "HOME"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const values[] = {cases[i].no, cases[i].cache, cases[i].home};
        for (int k = 0; k < 3; k++)
            assert_int_equal(values[k] ? setenv(names[k], values[k], 1) : unsetenv(names[k]), 0);
        char *found = vocabulary_cache_folder();
        assert_int_equal(!found, !cases[i].folder);
        if (found)
            assert_string_equal(found, cases[i].folder);
        free(found);
    }
}

/* ---- processes, disks, and size ---- */

static void processes_race(void **unused)
{
    pid_t children[8];
    int pipes[2];
    fresh();
    assert_int_equal(pipe(pipes), 0);
    for (int i = 0; i < 8; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i])
            continue;
        /* All begin when the pipe is closed. */
        char byte;
        struct tokenizer *tokenizer;
        struct tokenizer_options options = {.cache = folder};
        close(pipes[1]);
        bool good = read(pipes[0], &byte, 1) == 0;
        for (int k = 0; k < 4 && good; k++) {
            good = !vocabulary_open(&tokenizer, i % 2 ? BYTE_LEVEL : SENTENCEPIECE, &options, NULL);
            if (good)
                tokenizer_close(tokenizer);
            if (k == 1)
                (void)unlink(file_of(BYTE_LEVEL));
        }
        _exit(!good);
    }
    close(pipes[0]);
    close(pipes[1]);
    for (int i = 0; i < 8; i++) {
        int status;
        assert_true(waitpid(children[i], &status, 0) == children[i]);
        assert_int_equal(status, 0);
    }
    tokenizer_close(open_cached(SENTENCEPIECE, folder, plain, TOKENIZER_CACHE_READ));
    assert_true(files_count() <= 2); /* no partial file is left */
}

/* A process whose files are limited does not get the signal that writing more than the limit is. */
static void a_limit_of_files(void **unused)
{
    fresh();
    for (rlim_t most = 0; most <= 128 << 10; most += 16 << 10) {
        const pid_t child = fork();
        assert_true(child >= 0);
        if (!child) {
            const struct rlimit limit = {most, most};
            struct tokenizer *tokenizer;
            enum tokenizer_cached cached = TOKENIZER_CACHE_READ;
            const struct tokenizer_options options = {.cache = folder, .cached = &cached};
            (void)signal(SIGXFSZ, SIG_DFL);
            if (setrlimit(RLIMIT_FSIZE, &limit) || vocabulary_open(&tokenizer, BYTE_LEVEL, &options, NULL))
                _exit(1);
            tokenizer_close(tokenizer);
            _exit(cached == TOKENIZER_NOT_CACHED ? 0 : 2);
        }
        int status;
        assert_true(waitpid(child, &status, 0) == child);
        assert_int_equal(status, 0);
        assert_int_equal(files_count(), 0);
    }
    expect(BYTE_LEVEL, TOKENIZER_CACHE_WRITTEN);
}

/* Makes a file of `bytes` bytes, which take no room, that was used so many hours ago. */
static void file_make(const char *name, uint64_t bytes, unsigned hours)
{
    const char *path = in_folder(folder, name);
    file_write(path, "", 0);
    assert_int_equal(truncate(path, (off_t)bytes), 0);
    const struct timespec when = {.tv_sec = (time_t)os_wall_seconds() - 3600 * (time_t)hours};
    const struct timespec both[2] = {when, when};
    assert_int_equal(utimensat(AT_FDCWD, path, both, 0), 0);
}

static void the_folder_stays_small(void **unused)
{
    fresh();
    expect(BYTE_LEVEL, TOKENIZER_CACHE_WRITTEN);
    file_make("00000000000000000000000000000001.vocabulary", CACHE_MOST / 2, 3);
    file_make("00000000000000000000000000000002.vocabulary", CACHE_MOST / 2, 4);
    file_make("00000000000000000000000000000003.1a-0000000000000001.partial", 10, 2);
    file_make("00000000000000000000000000000004.1b-0000000000000001.partial", 10, 0);
    file_make("my notes", CACHE_MOST, 1000);
    file_make("00000000000000000000000000000005.text", CACHE_MOST, 1000);
    expect(SENTENCEPIECE, TOKENIZER_CACHE_WRITTEN);
    assert_false(file_exists(in_folder(folder, "00000000000000000000000000000002.vocabulary")));
    assert_true(file_exists(in_folder(folder, "00000000000000000000000000000001.vocabulary")));
    assert_false(file_exists(in_folder(folder, "00000000000000000000000000000003.1a-0000000000000001.partial")));
    assert_true(file_exists(in_folder(folder, "00000000000000000000000000000004.1b-0000000000000001.partial")));
    expect(BYTE_LEVEL, TOKENIZER_CACHE_READ);
    /* Reading a file that was not used today notes its use. */
    const char *path = file_of(BYTE_LEVEL);
    const struct timespec long_ago[2] = {{.tv_sec = 1000000}, {.tv_sec = 1000000}};
    struct os_stat about;
    assert_int_equal(utimensat(AT_FDCWD, path, long_ago, 0), 0);
    expect(BYTE_LEVEL, TOKENIZER_CACHE_READ);
    assert_int_equal(os_stat(path, &about), 0);
    assert_true(about.modified_ns / 1000000000u > 1000000);
    struct cache_use use;
    assert_int_equal(vocabulary_cache_look(folder, true, &use), 0);
    assert_int_equal(use.files, 4);
    assert_int_equal(files_count(), 0);
    assert_true(file_exists(in_folder(folder, "my notes")));
    assert_true(file_exists(in_folder(folder, "00000000000000000000000000000005.text")));
    assert_int_equal(vocabulary_cache_look(in_folder(scratch, "missing"), true, &use), ENOENT);
}

static int setup(void **unused)
{
    scratch_make(scratch);
    return 0;
}

static int teardown(void **unused)
{
    scratch_remove(scratch);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_damaged_page_is_noticed),
        cmocka_unit_test(a_cut_file_is_noticed),
        cmocka_unit_test(another_version_is_not_used),
        cmocka_unit_test(hostile_byte_level),
        cmocka_unit_test(hostile_characters),
        cmocka_unit_test(hostile_sentencepiece),
        cmocka_unit_test(a_full_table_is_refused),
        cmocka_unit_test(texts_that_are_not_utf8_are_refused),
        cmocka_unit_test(numbers_that_encoding_relies_on),
        cmocka_unit_test(files_of_others_are_not_used),
        cmocka_unit_test(nothing_is_made_in_folders_of_others),
        cmocka_unit_test(links_and_other_things),
        cmocka_unit_test(a_folder_that_cannot_be_made),
        cmocka_unit_test(the_key_has_all_that_decides),
        cmocka_unit_test(the_name_is_that_of_the_path),
        cmocka_unit_test(where_the_folder_is),
        cmocka_unit_test(processes_race),
        cmocka_unit_test(a_limit_of_files),
        cmocka_unit_test(the_folder_stays_small),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
