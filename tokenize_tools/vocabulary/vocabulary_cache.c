/* vocabulary_cache.c - see vocabulary_cache.h. */
#include "vocabulary_cache.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpe/bpe_model.h"
#include "bpe_files.h"
#include "common/bytes.h"
#include "common/cpu.h"
#include "common/hash.h"
#include "hf_file.h"
#include "json_form.h"
#include "pair_kind.h"
#include "parts_snapshot.h"
#include "platform/os.h"
#include "text/path.h"
#include "tokenizer/pipeline.h"
#include "tokenizer/snapshot.h"
#include "vocabulary_file.h"

/* A checksum of the sources of all rooms that decide a snapshot (Makefile). A release that reads a vocabulary
 * differently, because an error was corrected, must not find the tables of the release before it. */
#ifndef TOKENIZER_SOURCES
#error "define TOKENIZER_SOURCES"
#endif

#define READ_AT_ONCE ((size_t)256 << 10)
#define ENDING ".vocabulary"
#define PARTIAL ".partial"
#define PARTIAL_SECONDS 3600u /* after which a partial file is one that a killed process has left */
#define TOUCH_SECONDS 86400u  /* how old the time of the last use may be */

/* ---- the folder ---- */

char *vocabulary_cache_folder(void)
{
    const char *no = secure_getenv("TOKMAP_NO_CACHE"), *cache = secure_getenv("XDG_CACHE_HOME"),
               *home = secure_getenv("HOME");
    if (no && *no)
        return NULL;
    if (cache && path_is_absolute(cache))
        return path_in(cache, "tokmap");
    return home && path_is_absolute(home) ? path_in(home, ".cache/tokmap") : NULL;
}

/* Returns whether the folder is this user's, and no one else can put files there. */
static bool folder_is_safe(const char *folder)
{
    struct os_stat about;
    int fd;
    if (os_open(folder, OS_READ_NOW, &fd))
        return false;
    const bool safe = !os_fstat(fd, &about) && about.kind == OS_KIND_FOLDER && os_is_own_alone(fd);
    os_close(fd);
    return safe;
}

/* Makes a folder in one that belongs to this user. Root with the home of another user, as `sudo -E` runs programs, must
 * not leave folders there that this user cannot write. Returns 0, or a positive errno; ENOENT: the folder above is not
 * there. */
static int own_folder_make(const char *folder)
{
    int fd;
    char *above = path_folder(folder);
    int failed = above ? os_open(above, OS_READ_NOW, &fd) : ENOMEM;
    if (!failed) {
        failed = os_is_own(fd) ? os_make_private_folder(folder) : EPERM;
        os_close(fd);
    }
    free(above);
    return failed;
}

bool vocabulary_cache_prepare(const char *folder)
{
    if (folder_is_safe(folder))
        return true;
    /* The folder that it is in is made, too, but not that one's own folder, the user's home. */
    if (own_folder_make(folder) == ENOENT) {
        char *above = path_folder(folder);
        if (above && !own_folder_make(above))
            (void)own_folder_make(folder);
        free(above);
    }
    return folder_is_safe(folder);
}

static char *file_path(const char *folder, const struct cache_key *key)
{
    char name[33];
    hash128_hex(key->hash, name);
    const size_t bytes = strlen(folder);
    return path_join(folder, bytes, name, strlen(name), ENDING);
}

/* ---- the key ---- */

/* Hashes a file. first: NULL, or receives the first bytes, READ_AT_ONCE at most, and *count their number. */
static bool file_hash(const char *path, uint8_t stored[16], char *first, size_t *count)
{
    struct os_stat about;
    struct hash_state *hash = hash_state_new();
    char *room = first ? first : malloc(READ_AT_ONCE), *own = room;
    int fd = -1;
    bool good = hash && room && !os_open(path, OS_READ_NOW, &fd) && !os_fstat(fd, &about) &&
                about.kind == OS_KIND_FILE && about.bytes && about.bytes <= VOCABULARY_FILE_MOST;
    /* The first part stays where it is, so others go to a room of their own. */
    for (uint64_t at = 0; good && at < about.bytes; at += READ_AT_ONCE) {
        size_t got = 0;
        const size_t wanted = (size_t)min64(about.bytes - at, READ_AT_ONCE);
        if (at && own == first)
            own = malloc(READ_AT_ONCE);
        good = own && !os_pread(fd, own, wanted, at, &got) && got == wanted;
        if (good)
            hash_state_add(hash, own, wanted);
        if (good && !at && first)
            *count = wanted;
    }
    if (good)
        hash128_store(hash_state_128(hash), stored);
    os_close(fd);
    hash_state_free(hash);
    if (own != first)
        free(own);
    return good;
}

static void text_add(struct hash_state *hash, const char *text)
{
    const uint64_t count = text ? strlen(text) + 1 : 0;
    hash_state_add(hash, &count, sizeof count);
    if (count)
        hash_state_add(hash, text, (size_t)count);
}

/* What decides how tables are made and laid out, besides the files. */
static void layout_add(struct hash_state *hash)
{
    const uint64_t layout[] = {SNAPSHOT_FORMAT,
                               sizeof(void *),
                               sizeof(struct bpe_entry),
                               BPE_PAIRS_LINE,
                               BPE_JOIN_BITS,
                               BPE_JOIN_FACTOR,
                               0x0102030405060708u, /* the order of bytes */
                               (uint64_t)cpu_variant_best()};
    text_add(hash, "tokmap vocabulary cache");
    text_add(hash, TOKMAP_VERSION_STRING);
    text_add(hash, TOKENIZER_SOURCES);
    hash_state_add(hash, layout, sizeof layout);
}

/* Finds the file that belongs to a vocabulary in two files, whose first bytes are given. *other: NULL for other
 * vocabularies. */
static bool other_find(char **other, const char *path, const char *first, size_t count)
{
    struct tokmap_error unused;
    *other = NULL;
    const bool merges = bpe_files_is(first, count);
    if (!merges && (!hf_file_is(first, count) || json_form_of(first, count) != FORM_ENCODER))
        return true;
    return !bpe_files_other(other, path, merges, &unused);
}

/* Hashes the file beside a vocabulary in two files that can say that they are of another kind. All zeros: there is no
 * such file. */
static bool config_hash(const char *path, uint8_t stored[16])
{
    struct os_stat about;
    char *config = pair_config_path(path);
    memset(stored, 0, 16);
    const bool good =
        config && (os_stat(config, &about) || about.kind != OS_KIND_FILE || file_hash(config, stored, NULL, NULL));
    free(config);
    return good;
}

bool cache_key_find(struct cache_key *key, const char *path, const struct tokenizer_options *options)
{
    static const uint8_t none[16];
    uint8_t beside[16], config[16] = {0}, specials[16];
    size_t count = 0;
    char *first = malloc(READ_AT_ONCE), *other = NULL;
    struct hash_state *hash = hash_state_new();
    bool good = first && hash && file_hash(path, key->file, first, &count) && other_find(&other, path, first, count) &&
                (!other || (file_hash(other, beside, NULL, NULL) && config_hash(path, config))) &&
                (!options->special_tokens || file_hash(options->special_tokens, specials, NULL, NULL));
    if (good) {
        key->pair = other != NULL;
        layout_add(hash);
        hash_state_add(hash, key->file, sizeof key->file);
        hash_state_add(hash, other ? beside : none, sizeof none);
        hash_state_add(hash, config, sizeof config);
        hash_state_add(hash, options->special_tokens ? specials : none, sizeof none);
        text_add(hash, options->special_tokens ? "special tokens" : NULL);
        text_add(hash, options->pattern);
        text_add(hash, options->pattern_regex);
        hash128_store(hash_state_128(hash), key->hash);
    }
    free(first);
    free(other);
    hash_state_free(hash);
    return good;
}

bool cache_key_same(const struct cache_key *a, const struct cache_key *b)
{
    return a->pair == b->pair && !memcmp(a->hash, b->hash, sizeof a->hash) && !memcmp(a->file, b->file, sizeof a->file);
}

/* ---- reading ---- */

/* Notes that a file was used, once a day: a change of its time is a write. */
static void file_used(int fd)
{
    struct os_stat about;
    const uint64_t now = os_wall_seconds();
    if (!os_fstat(fd, &about) && about.modified_ns / 1000000000u + TOUCH_SECONDS < now)
        os_touch(fd);
}

static bool parts_read(struct pipeline_parts *parts, const char *folder, const struct cache_key *key, const char *path)
{
    struct snapshot_reader reader = {.failed = true};
    char *name = file_path(folder, key);
    int fd = -1;
    memset(parts, 0, sizeof *parts);
    if (name && !os_open(name, OS_READ_OWN, &fd) && os_is_own_alone(fd) && snapshot_read(&reader, fd, key->hash)) {
        file_used(fd);
        parts_get(parts, &reader, path);
    }
    os_close(fd);
    free(name);
    if (reader.failed || !reader.bytes) {
        pipeline_parts_free(parts);
        return false;
    }
    return true;
}

bool vocabulary_cache_read(struct tokenizer **tokenizer, const char *folder, const struct cache_key *key,
                           const char *path, enum tokenizer_special special)
{
    struct tokmap_error unused;
    struct pipeline_parts *parts = malloc(sizeof *parts);
    *tokenizer = NULL;
    const bool good = parts && folder_is_safe(folder) && parts_read(parts, folder, key, path) &&
                      !pipeline_new(tokenizer, parts, special, path, &unused);
    free(parts);
    return good;
}

/* ---- the size of the folder ---- */

struct cache_file {
    char *path;
    uint64_t bytes, used; /* used: when, in ns */
};

struct listing {
    const char *folder;
    struct cache_file *files;
    size_t count, room;
    bool partial; /* lists the partial files instead of the whole ones */
    int failed;
};

static bool name_ends(const char *name, const char *ending)
{
    const size_t bytes = strlen(name), own = strlen(ending);
    return bytes > own && !strcmp(name + bytes - own, ending);
}

/* A name of ours: a key of 32 digits, and an ending. */
static bool name_is_ours(const char *name, bool partial)
{
    return strspn(name, "0123456789abcdef") == 32 && name[32] == '.' && name_ends(name, partial ? PARTIAL : ENDING);
}

static int file_list(void *user, const char *name)
{
    struct listing *listing = user;
    struct os_stat about;
    if (!name_is_ours(name, listing->partial))
        return 0;
    if (listing->count == listing->room) {
        const size_t room = 2 * listing->room + 16;
        struct cache_file *grown = realloc(listing->files, room * sizeof *grown);
        if (!grown)
            return ENOMEM;
        listing->files = grown;
        listing->room = room;
    }
    struct cache_file *file = &listing->files[listing->count];
    file->path = path_in(listing->folder, name);
    if (!file->path)
        return ENOMEM;
    if (os_lstat(file->path, &about) || about.kind == OS_KIND_FOLDER) { /* gone, or not ours */
        free(file->path);
        return 0;
    }
    file->bytes = about.bytes;
    file->used = about.modified_ns;
    listing->count++;
    return 0;
}

/* Lists the files of a folder. The caller calls listing_free() in any case. */
static void listing_make(struct listing *listing, const char *folder, bool partial)
{
    *listing = (struct listing){.folder = folder, .partial = partial};
    listing->failed = os_folder_list(folder, file_list, listing);
}

static void listing_free(struct listing *listing)
{
    for (size_t i = 0; i < listing->count; i++)
        free(listing->files[i].path);
    free(listing->files);
}

static int by_use(const void *one, const void *other)
{
    const struct cache_file *a = one, *b = other;
    return a->used < b->used ? -1 : a->used > b->used;
}

/* Removes what killed processes have left, and the files that were not used for the longest time; not the one at
 * `keep`. */
static void folder_trim(const char *folder, const char *keep)
{
    struct listing listing;
    uint64_t bytes = 0;
    const uint64_t now = os_wall_seconds();
    listing_make(&listing, folder, true);
    for (size_t i = 0; i < listing.count; i++)
        if (listing.files[i].used / 1000000000u + PARTIAL_SECONDS < now)
            (void)os_unlink(listing.files[i].path);
    listing_free(&listing);
    listing_make(&listing, folder, false);
    for (size_t i = 0; i < listing.count; i++)
        bytes += listing.files[i].bytes;
    if (bytes > CACHE_MOST && listing.count)
        qsort(listing.files, listing.count, sizeof *listing.files, by_use);
    for (size_t i = 0; i < listing.count && bytes > CACHE_MOST; i++)
        if (strcmp(listing.files[i].path, keep) != 0) {
            bytes -= listing.files[i].bytes;
            (void)os_unlink(listing.files[i].path);
        }
    listing_free(&listing);
}

int vocabulary_cache_look(const char *folder, bool remove, struct cache_use *use)
{
    struct listing listing;
    int failed = 0;
    *use = (struct cache_use){0, 0};
    for (int partial = 0; partial < 2; partial++) {
        listing_make(&listing, folder, partial);
        failed = failed ? failed : listing.failed;
        for (size_t i = 0; i < listing.count && !failed; i++) {
            use->files++;
            use->bytes += listing.files[i].bytes;
            const int kept = remove ? os_unlink(listing.files[i].path) : 0;
            failed = kept == ENOENT ? 0 : kept;
        }
        listing_free(&listing);
    }
    return failed;
}

/* ---- writing ---- */

/* A name that no other process or thread uses at this time. */
static char *partial_path(const char *path)
{
    uint64_t number = 0;
    char ending[48];
    if (os_random(&number, sizeof number))
        number = os_clock_ns();
    (void)snprintf(ending, sizeof ending, ".%" PRIx32 "-%016" PRIx64 PARTIAL, os_process_id(), number);
    const size_t folder = path_folder_bytes(path);
    /* The key, without the ending. */
    return path_join(path, folder, path + folder, 32, ending);
}

static bool snapshot_save(const struct snapshot_writer *writer, const char *path, const struct cache_key *key)
{
    char *partial = partial_path(path);
    int fd = -1;
    if (!partial || os_open(partial, OS_WRITE_PRIVATE, &fd)) {
        free(partial);
        return false;
    }
    int failed = snapshot_write(writer, fd, key->hash);
    os_close(fd);
    if (!failed)
        failed = os_rename(partial, path);
    if (failed)
        (void)os_unlink(partial);
    free(partial);
    return !failed;
}

bool vocabulary_cache_write(const struct tokenizer *tokenizer, const char *folder, const struct cache_key *key)
{
    const struct pipeline_parts *parts = pipeline_parts_of(tokenizer);
    if (!parts || key->pair != !strcmp(parts->form, "vocab.bpe and encoder.json"))
        return false;
    struct snapshot_writer *writer = calloc(1, sizeof *writer);
    char *path = file_path(folder, key);
    bool good = false;
    if (writer && path) {
        parts_put(parts, writer);
        good = !writer->failed && snapshot_save(writer, path, key);
        snapshot_writer_free(writer);
    }
    if (good)
        folder_trim(folder, path);
    free(writer);
    free(path);
    return good;
}
