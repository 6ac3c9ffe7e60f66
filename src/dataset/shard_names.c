/* SPDX-License-Identifier: MIT */
/*
 * shard_names.c - finds the shards that the name of a dataset refers to.
 *
 * The rules are tried in this order. A name that ends in .tmx or .bin is that shard. If NAME.tmx exists, NAME is the
 * prefix of a shard. A folder stands for all .tmx files below it. A file is a manifest. No other file is assumed to
 * contain tokens.
 */
#include "shard_names.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes_buffer.h"
#include "common/error.h"
#include "format/foreign/foreign_file.h"
#include "format/foreign/foreign_name.h"
#include "format/shard_file.h"
#include "platform/os.h"
#include "text/path.h"

#define APPEAR_TRIES 75 /* pauses until a missing index has appeared: 150 ms */
#define APPEAR_PAUSE_NS 2000000

enum shard_role shard_role_of(const char *name, size_t bytes, size_t *stem_bytes)
{
    struct shard_name found;
    if (!shard_file_find(name, bytes, &found))
        return SHARD_ROLE_NONE;
    *stem_bytes = found.stem;
    if (found.file == SHARD_INDEX)
        return found.state == SHARD_FINAL     ? SHARD_ROLE_INDEX
               : found.state == SHARD_PARTIAL ? SHARD_ROLE_SIGN
                                              : SHARD_ROLE_NONE;
    if (found.file != SHARD_TOKENS && found.file != SHARD_SEALED)
        return SHARD_ROLE_NONE;
    return found.state == SHARD_FINAL      ? SHARD_ROLE_TOKENS
           : found.state == SHARD_REPLACED ? SHARD_ROLE_SIGN
                                           : SHARD_ROLE_NONE;
}

/* ---- stems ---- */

/* 0 marks an empty slot. */
static uint64_t hash_of(const struct shard_stems *stems, const char *folder, const char *name, size_t stem_bytes)
{
    const uint64_t of_folder = table_hash(stems->key, (const uint8_t *)folder, strlen(folder));
    const uint64_t hash = table_mix(stems->key, of_folder, table_hash(stems->key, (const uint8_t *)name, stem_bytes));
    return hash ? hash : 1;
}

bool shard_stems_add(struct shard_stems *stems, const char *folder, const char *name, size_t stem_bytes)
{
    if (!list_room(&stems->hashes, stems->count, &stems->capacity, sizeof *stems->hashes))
        return false;
    stems->hashes[stems->count++] = hash_of(stems, folder, name, stem_bytes);
    return true;
}

static uint64_t slot_of(const struct shard_stems *stems, uint64_t hash)
{
    uint64_t slot = hash & (stems->slots - 1);
    while (stems->table[slot] && stems->table[slot] != hash)
        slot = (slot + 1) & (stems->slots - 1);
    return slot;
}

bool shard_stems_ready(struct shard_stems *stems)
{
    stems->slots = 16;
    stems->passed = 0;
    while (stems->slots < 2 * stems->count)
        stems->slots *= 2;
    free(stems->table);
    stems->table = calloc(stems->slots, sizeof *stems->table);
    for (uint64_t i = 0; stems->table && i < stems->count; i++) {
        const uint64_t slot = slot_of(stems, stems->hashes[i]);
        stems->passed += (slot - stems->hashes[i]) & (stems->slots - 1);
        stems->table[slot] = stems->hashes[i];
    }
    return stems->table != NULL;
}

bool shard_stems_has(const struct shard_stems *stems, const char *folder, const char *name, size_t stem_bytes)
{
    assert(stems->table);
    return stems->table[slot_of(stems, hash_of(stems, folder, name, stem_bytes))] != 0;
}

bool shard_stems_within(const struct shard_stems *some, const struct shard_stems *all)
{
    assert(all->table);
    for (uint64_t i = 0; i < some->count; i++)
        if (!all->table[slot_of(all, some->hashes[i])])
            return false;
    return true;
}

void shard_stems_free(struct shard_stems *stems)
{
    free(stems->hashes);
    free(stems->table);
    memset(stems, 0, sizeof *stems);
}

/* Returns whether an index that is missing may appear: a writer that replaces the shard removes first an index that
 * cannot be read. */
static bool may_appear(const char *index_path)
{
    struct os_stat found;
    char *partial = shard_file_beside(index_path, SHARD_INDEX, SHARD_PARTIAL);
    const bool may = partial && !os_stat(partial, &found);
    free(partial);
    return may;
}

bool shard_index_awaited(const char *index_path)
{
    struct os_stat found;
    char *tokens = shard_file_beside(index_path, SHARD_TOKENS, SHARD_FINAL);
    bool there = false;
    if (tokens && !os_stat(tokens, &found) && found.kind == OS_KIND_FILE)
        for (int try = 0; try < APPEAR_TRIES && !there && may_appear(index_path); try++) {
            os_sleep_ns(APPEAR_PAUSE_NS);
            there = !os_stat(index_path, &found) && found.kind != OS_KIND_FOLDER;
        }
    free(tokens);
    return there;
}

#define SHARDS_MAX ((uint64_t)1 << 24)

/* ---- lists of names ---- */

void shard_names_free(struct shard_names *names)
{
    for (uint64_t i = 0; names->index_paths && i < names->count; i++)
        free(names->index_paths[i]);
    free(names->index_paths);
    manifest_free(&names->manifest);
    memset(names, 0, sizeof *names);
}

const struct manifest_shard *shard_names_line(const struct shard_names *names, uint64_t number)
{
    return names->manifest.path ? &names->manifest.shards[number] : NULL;
}

char *shard_names_take(struct shard_names *names, uint64_t number)
{
    if (names->manifest.path)
        return manifest_index_path(&names->manifest, shard_names_line(names, number));
    char *path = names->index_paths[number];
    names->index_paths[number] = NULL;
    return path;
}

void shard_names_return(struct shard_names *names, uint64_t number, char *path)
{
    if (names->manifest.path)
        free(path);
    else
        names->index_paths[number] = path;
}

enum tokmap_status shard_names_add(struct shard_names *names, char *path, struct tokmap_error *error)
{
    if (!path)
        return error_set_memory(error, "the path of a shard", 0);
    if (names->count == SHARDS_MAX) {
        free(path);
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "the dataset has more than %" PRIu64 " shards; use fewer and larger shards", SHARDS_MAX);
    }
    if (!list_room(&names->index_paths, names->count, &names->capacity, sizeof *names->index_paths)) {
        free(path);
        return error_set_memory(error, "the paths of shards", names->capacity * sizeof *names->index_paths);
    }
    names->index_paths[names->count++] = path;
    return TOKMAP_OK;
}

/* ---- folders ---- */

/* The folders that are still to be listed. A list instead of recursion keeps deep trees from using up the stack. */
struct walk {
    struct shard_names *names;
    char **folders;
    uint64_t count, capacity;
    const char *folder;                 /* the folder that is being listed */
    struct shard_stems indexes, others; /* the stems of the indexes, and of the other files that a shard has */
    bool missing;                       /* an index was not listed, but is there now */
    enum tokmap_status status;
    struct tokmap_error *error;
};

static int walk_push(struct walk *walk, char *folder)
{
    if (!list_room(&walk->folders, walk->count, &walk->capacity, sizeof *walk->folders)) {
        free(folder);
        walk->status = error_set_memory(walk->error, "the list of folders", walk->capacity * sizeof *walk->folders);
        return -1;
    }
    walk->folders[walk->count++] = folder;
    return 0;
}

/* Finds out what an entry is if the folder does not say it, or if it is a link that could be a shard. */
static int examine(const char *path, bool index, enum os_kind *kind)
{
    struct os_stat found;
    if (*kind == OS_KIND_UNKNOWN) {
        const int system = os_lstat(path, &found);
        if (system)
            return system;
        *kind = found.kind;
    }
    if (*kind == OS_KIND_LINK && index) {
        const int system = os_stat(path, &found);
        if (system)
            return system;
        *kind = found.kind == OS_KIND_FOLDER ? OS_KIND_OTHER : found.kind; /* a link to a folder is not followed */
    }
    return 0;
}

/* Handles one entry of a folder. A negative result means that walk->status has the reason. */
static int walk_entry(void *user, const char *name, enum os_kind kind)
{
    struct walk *walk = user;
    const size_t name_bytes = strlen(name);
    size_t stem_bytes;
    const enum shard_role role = shard_role_of(name, name_bytes, &stem_bytes);
    const bool index = role == SHARD_ROLE_INDEX;
    if (role && !shard_stems_add(index ? &walk->indexes : &walk->others, walk->folder, name, stem_bytes)) {
        walk->status = error_set_memory(walk->error, "the names in a folder", 8 * walk->others.count);
        return -1;
    }
    if (!index && kind != OS_KIND_FOLDER && kind != OS_KIND_UNKNOWN)
        return 0;
    char *path = path_in(walk->folder, name);
    if (!path) {
        walk->status = error_set_memory(walk->error, "the path of a shard", strlen(walk->folder) + name_bytes + 2);
        return -1;
    }
    const int system = examine(path, index, &kind);
    if (system == ENOENT && !index) { /* removed in the meantime */
        free(path);
        return 0;
    }
    if (system) {
        walk->status = error_set_system(walk->error, system, path, TOKMAP_NO_OFFSET, "the file cannot be examined");
        free(path);
        return -1;
    }
    if (kind == OS_KIND_FOLDER)
        return walk_push(walk, path);
    if (index && kind == OS_KIND_FILE) {
        walk->status = shard_names_add(walk->names, path, walk->error);
        return walk->status ? -1 : 0;
    }
    free(path);
    return 0;
}

/* Calls entry() for what is in a folder and below it. */
static void walk_all(struct walk *walk, const char *name, int (*entry)(void *, const char *, enum os_kind))
{
    char *top = strdup(name);
    if (!top)
        walk->status = error_set_memory(walk->error, "the path of a folder", strlen(name));
    else
        (void)walk_push(walk, top);
    while (walk->count && !walk->status) {
        char *folder = walk->folders[--walk->count];
        walk->folder = folder;
        int system = os_folder_kinds(folder, entry, walk);
        if (system > 0)
            walk->status =
                error_set_system(walk->error, system, folder, TOKMAP_NO_OFFSET, "the folder cannot be listed");
        free(folder);
    }
    while (walk->count)
        free(walk->folders[--walk->count]);
}

/* Returns true if a file NAME.bin is a copy that `tokmap pack --seal --also` writes beside a shard, by its name and
 * another file: for nanoGPT the note, which is there before it; for Megatron the index that gets its name after it, and
 * from then on says what it is. */
static bool is_copy(const char *path, size_t stem_bytes)
{
    static const char *const signs[][2] = {
        {".nanogpt", ".meta.json"}, {".megatron", ".idx.partial"}, {".megatron", ".idx"}};
    struct os_stat found;
    bool is = false;
    for (size_t i = 0; i < sizeof signs / sizeof signs[0] && !is; i++) {
        char *sign =
            path_ends_in(path, stem_bytes, signs[i][0]) ? path_join("", 0, path, stem_bytes, signs[i][1]) : NULL;
        is = sign && !os_stat(sign, &found) && found.kind == OS_KIND_FILE;
        free(sign);
    }
    return is;
}

/* Looks at one file, NAME.bin, NAME.bin.zst, or a sign of a writer, whose NAME.tmx was not listed. */
static int check_orphan(struct walk *walk, const char *path, size_t stem_bytes, enum shard_role role, enum os_kind kind)
{
    struct os_stat found;
    char *index_path = path_join("", 0, path, stem_bytes, shard_file_ending(SHARD_INDEX, SHARD_FINAL));
    if (!index_path) {
        walk->status = error_set_memory(walk->error, "the path of a shard", stem_bytes);
        return -1;
    }
    const bool there = !os_stat(index_path, &found) && found.kind == OS_KIND_FILE;
    const bool tokens = role == SHARD_ROLE_TOKENS && !examine(path, true, &kind) && kind == OS_KIND_FILE &&
                        !foreign_kind_of(path) && !is_copy(path, stem_bytes);
    if (there || (tokens && shard_index_awaited(index_path))) {
        walk->missing = true;
    } else if (tokens && walk->names->count) {
        walk->status = error_set(
            walk->error, TOKMAP_ERROR_MISMATCH, path, TOKMAP_NO_OFFSET,
            "the folder has shards, and this file has the name of a shard's tokens, but its index (.tmx) is missing; "
            "restore the index or pack the shard again, or, if the file is not part of the dataset, move it to another "
            "folder or name the shards in a manifest");
    }
    free(index_path);
    return walk->status ? -1 : 0;
}

/* Handles one entry of a folder that is listed again because an index was missing. */
static int check_entry(void *user, const char *name, enum os_kind kind)
{
    struct walk *walk = user;
    const size_t name_bytes = strlen(name);
    size_t stem_bytes;
    const enum shard_role role = shard_role_of(name, name_bytes, &stem_bytes);
    const bool other = role == SHARD_ROLE_TOKENS || role == SHARD_ROLE_SIGN;
    const bool folder = kind == OS_KIND_FOLDER || kind == OS_KIND_UNKNOWN;
    if (!folder && (!other || shard_stems_has(&walk->indexes, walk->folder, name, stem_bytes)))
        return 0;
    char *path = path_in(walk->folder, name);
    if (!path) {
        walk->status = error_set_memory(walk->error, "the path of a shard", strlen(walk->folder) + name_bytes + 2);
        return -1;
    }
    if (examine(path, false, &kind)) /* removed in the meantime */
        kind = OS_KIND_OTHER;
    if (kind == OS_KIND_FOLDER)
        return walk_push(walk, path);
    int result = 0;
    if (other && !shard_stems_has(&walk->indexes, walk->folder, name, stem_bytes))
        result = check_orphan(walk, path, strlen(path) - name_bytes + stem_bytes, role, kind);
    free(path);
    return result;
}

/* Lists a folder once. A NAME.bin without a NAME.tmx would make the dataset smaller without a word: see FORMAT.md,
 * "Names and writing". */
static void walk_once(struct walk *walk, const char *name)
{
    walk->indexes.key = walk->others.key = table_key_new();
    walk_all(walk, name, walk_entry);
    if (!walk->status && !shard_stems_ready(&walk->indexes))
        walk->status = error_set_memory(walk->error, "the names in a folder", 16 * walk->indexes.count);
    if (!walk->status && !shard_stems_within(&walk->others, &walk->indexes))
        walk_all(walk, name, check_entry);
    shard_stems_free(&walk->indexes);
    shard_stems_free(&walk->others);
    free(walk->folders);
    walk->folders = NULL;
    walk->capacity = 0;
}

static enum tokmap_status find_in_folder(struct shard_names *names, const char *name, struct tokmap_error *error)
{
    enum { TRIES = 8 };
    struct walk walk = {.names = names, .error = error};
    for (int try = 0; try < TRIES; try++) {
        walk.missing = false;
        walk_once(&walk, name);
        if (walk.status || !walk.missing)
            break;
        while (names->count)
            free(names->index_paths[--names->count]);
    }
    if (!walk.status && walk.missing)
        return error_set(error, TOKMAP_ERROR_BUSY, name, TOKMAP_NO_OFFSET,
                         "shards of the folder are replaced again and again while it is being listed; open it when "
                         "their writers have finished");
    if (!walk.status && !names->count)
        return error_set(
            error, TOKMAP_ERROR_NOT_FOUND, name, TOKMAP_NO_OFFSET,
            "the folder and its subfolders contain no shard (no file name ends in .tmx); make one with `tokmap pack`");
    /* strcmp() compares unsigned bytes in every locale. */
    if (!walk.status)
        qsort(names->index_paths, names->count, sizeof *names->index_paths, path_compare);
    return walk.status;
}

/* ---- manifest ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Returns whether the beginning of a file looks like that of a run file (RUN.md): its first line that is neither blank
 * nor a comment begins with a directive. */
static bool is_run(const char *text, size_t bytes)
{
    static const char *const directives[] = {"seq_len ", "batch ", "source ", "seed ", "order ", "lookahead "};
    if (bytes >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
        text += 3, bytes -= 3;
    while (bytes) {
        const char *stop = memchr(text, '\n', bytes);
        while (bytes && is_blank(*text))
            text++, bytes--;
        if (bytes && *text != '#' && *text != '\n')
            break;
        if (!stop)
            return false;
        bytes -= (size_t)(stop + 1 - text);
        text = stop + 1;
    }
    for (size_t i = 0; i < sizeof directives / sizeof directives[0]; i++)
        if (bytes > strlen(directives[i]) && !memcmp(text, directives[i], strlen(directives[i])))
            return true;
    return false;
}

static enum tokmap_status check_manifest_head(const char *path, const char *text, size_t bytes,
                                              struct tokmap_error *error)
{
    uint32_t version;
    const enum tokmap_status status = manifest_version(path, text, bytes, &version, error);
    if (status != TOKMAP_ERROR_FORMAT)
        return status;
    return error_set(
        error, status, path, TOKMAP_NO_OFFSET,
        "this is not a shard, a folder, or a manifest (a manifest begins with the line \"tokmap-shards 1\" or "
        "\"# tokmap manifest 2\"), and it does not begin like a token file of Megatron, llm.c, or NumPy; tokmap does "
        "not assume that a file without a .tmx contains tokens: `tokmap pack` makes both files, and %s",
        path_ends_in(path, strlen(path), ".ds")    ? "datatrove:PATH names a file of datatrove"
        : path_ends_in(path, strlen(path), ".npy") ? "olmo:PATH,width=2,eod=50256 names a file of OLMo-core"
                                                   : FOREIGN_RAW_FORM " names tokens without a header");
}

static enum tokmap_status read_manifest(struct shard_names *names, const char *name, uint64_t bytes,
                                        struct tokmap_error *error)
{
    int fd;
    int system = os_open(name, OS_READ_NOW, &fd);
    if (system)
        return error_set_system(error, system, name, TOKMAP_NO_OFFSET, "the file cannot be opened");
    /* Read the first line first, so that a large file that is not a manifest is not read completely. */
    char head[4096];
    size_t got = 0;
    enum tokmap_status status = TOKMAP_OK;
    char *text = NULL;
    system = os_pread(fd, head, sizeof head, 0, &got);
    if (!system) {
        const char *end = memchr(head, '\n', got);
        if (!shard_manifest_begins(head, got) && is_run(head, got))
            status = error_set(error, TOKMAP_ERROR_FORMAT, name, TOKMAP_NO_OFFSET,
                               "this is a run file, not a dataset; open it as a run, or open the dataset that its line "
                               "'source' names");
        else
            status = check_manifest_head(name, head, end ? (size_t)(end - head) : got, error);
    }
    if (!system && !status && bytes > MANIFEST_BYTES_MOST)
        status = error_set(error, TOKMAP_ERROR_LIMIT, name, TOKMAP_NO_OFFSET,
                           "the manifest has %" PRIu64 " bytes, but the limit is %" PRIu64, bytes, MANIFEST_BYTES_MOST);
    if (!system && !status && !(text = os_memory_large(bytes + 1)))
        status = error_set_memory(error, "the manifest", bytes);
    if (!system && !status)
        system = os_pread(fd, text, bytes, 0, &got);
    if (system)
        status = error_set_system(error, system, name, TOKMAP_NO_OFFSET, "the file cannot be read");
    if (!status)
        status = manifest_parse(&names->manifest, name, text, got, error);
    names->count = names->manifest.count;
    free(text);
    os_close(fd);
    return status;
}

/* ---- all names ---- */

/* Reports that there is no dataset of this name. index_path: of the shard whose file was named; NULL: a prefix was, and
 * there may be a .bin of it, such as nanoGPT writes. */
static enum tokmap_status not_found(const char *name, const char *index_path, struct tokmap_error *error)
{
    struct os_stat about;
    char *tokens = index_path ? NULL : shard_file_path(name, SHARD_TOKENS, SHARD_FINAL);
    if (!index_path && !tokens)
        return error_set_memory(error, "the path of a shard", strlen(name));
    const bool bare = tokens && !os_stat(tokens, &about) && about.kind == OS_KIND_FILE;
    free(tokens);
    return error_set_system(error, ENOENT, index_path ? index_path : name, TOKMAP_NO_OFFSET,
                            index_path || bare
                                ? "the shard has no index, and tokmap does not assume that a file without a .tmx "
                                  "contains tokens; make both files with `tokmap pack`, or, if it has tokens of "
                                  "another program without a header, name it " FOREIGN_RAW_FORM
                                : "there is no dataset of this name: it is not the prefix of a shard (no file has this "
                                  "name with .tmx added), a folder, or a manifest");
}

enum tokmap_status shard_names_find(struct shard_names *names, const char *name, struct tokmap_error *error)
{
    size_t bytes = strlen(name);
    struct os_stat found;
    char *index_path = shard_file_index("", 0, name, bytes);
    if (!index_path)
        return error_set_memory(error, "the path of a shard", bytes);
    bool whole = shard_file_is_main(name);
    int system = bytes && name[bytes - 1] == '/' ? ENOENT : os_stat(index_path, &found);
    if (system == ENOENT && bytes && name[bytes - 1] != '/' && shard_index_awaited(index_path))
        system = os_stat(index_path, &found);
    if (!system && found.kind != OS_KIND_FOLDER) {
        names->folder_too = !whole && !os_stat(name, &found) && found.kind == OS_KIND_FOLDER;
        return shard_names_add(names, index_path, error);
    }
    int named = os_stat(name, &found);
    enum tokmap_status status;
    if (!named && found.kind == OS_KIND_FOLDER)
        status = find_in_folder(names, name, error);
    else if (!named && found.kind == OS_KIND_FILE && !whole)
        status = read_manifest(names, name, found.bytes, error);
    else if (!named && !whole)
        status = error_set(
            error, TOKMAP_ERROR_FORMAT, name, TOKMAP_NO_OFFSET,
            "this is neither a file nor a folder; give the prefix of a shard, a folder of shards, or a manifest");
    else if (!system)
        status =
            error_set(error, TOKMAP_ERROR_FORMAT, index_path, TOKMAP_NO_OFFSET,
                      "this is a folder, but it has the name of a shard's index; give the prefix of another shard, or "
                      "rename the folder");
    else if (system != ENOENT && system != ENOTDIR)
        status = error_set_system(error, system, index_path, TOKMAP_NO_OFFSET, "the index cannot be examined");
    else if (named && named != ENOENT && named != ENOTDIR)
        status = error_set_system(error, named, name, TOKMAP_NO_OFFSET, "the dataset cannot be examined");
    else
        status = not_found(name, whole ? index_path : NULL, error);
    free(index_path);
    return status;
}
