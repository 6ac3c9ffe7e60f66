/* SPDX-License-Identifier: MIT */
#include "set_commit.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "format/manifest.h"
#include "format/partial_file.h"
#include "format/shard_file.h"
#include "platform/os.h"
#include "text/path.h"

#define READY ".ready"
#define NUMBER_MOST 24 /* bytes of "-00000" and a zero byte */

struct set {
    char *path;                /* of the manifest: NAME and the ending of the set */
    uint64_t shards, old;      /* of the new set; of the old one, 0 if there is none */
    struct manifest_text text; /* of the manifest, */
    uint64_t stated;           /* number of shards that have a line in it */
};

struct set_work {
    struct set_work_options options; /* but for the endings, which need not stay valid */
    char *name;                      /* NAME, as a path */
    char *folder, *lock;
    int lock_fd;
    bool locked, made; /* true if the lock and the folder are ours to remove */
    bool mask;
    bool journaled; /* true if the journal is not ours to remove */
    struct set sets[SETS_MOST];
    uint32_t count;
    struct name_files group;
};

/* ---- names ---- */

/* Returns the path of a file of a waiting shard, or, with an empty ending, the prefix of the shard. */
static char *ready_path(const struct set_work *work, const struct set *set, uint64_t number, const char *ending)
{
    char text[NUMBER_MOST + 16];
    const char *name = path_name(set->path);
    (void)snprintf(text, sizeof text, "-%05" PRIu64 "%s", number, ending);
    return path_join(work->folder, strlen(work->folder), name, strlen(name), text);
}

char *set_work_shard(const struct set_work *work, uint32_t set, uint64_t number)
{
    assert(set < work->count);
    return ready_path(work, &work->sets[set], number, "");
}

const char *set_work_folder(const struct set_work *work)
{
    return work->folder;
}

const char *set_work_lock(const struct set_work *work)
{
    return work->lock;
}

/* Returns where the finished manifest of a set waits. */
static char *ready_manifest(const struct set_work *work, const struct set *set)
{
    const char *name = path_name(set->path);
    return path_join(work->folder, strlen(work->folder), name, strlen(name), READY);
}

static enum tokmap_status failed(int system, const char *path, const char *what, struct tokmap_error *error)
{
    return error_set_system(error, system, path, TOKMAP_NO_OFFSET, "%s", what);
}

static const char lacking[] = "the names of a shard set"; /* in messages about memory */

static enum tokmap_status folder_sync(const struct set_work *work, const char *path, struct tokmap_error *error)
{
    const int system = work->options.sync ? os_sync_folder(path) : 0;
    return system ? failed(system, path, "the folder cannot be synced to storage", error) : TOKMAP_OK;
}

static bool ending_is_good(const char *ending)
{
    static const char good[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    return strlen(ending) <= SET_ENDING_MOST && ending[strspn(ending, good)] == '\0';
}

bool set_folder_is_link(const char *path)
{
    struct os_stat found;
    return !os_lstat(path, &found) && found.kind == OS_KIND_LINK;
}

enum tokmap_status set_folder_link_error(const char *path, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_EXISTS, path, TOKMAP_NO_OFFSET,
                     "this symbolic link has the name of the folder for unfinished work, and is not followed; remove "
                     "it, or choose another name");
}

/* Returns true if a file in the folder is one of a work of this name, and not one of the user: the name says so of
 * shards, and the first bytes of the others. */
static bool is_ours(const struct set_work *work, const char *entry)
{
    static const char *const names[][2] = {{"naming.partial", NAME_FILES_HEAD},
                                           {NAME_FILES_NAMED, NAME_FILES_HEAD},
                                           {"journal", SET_JOURNAL_HEAD},
                                           {"journal.new", SET_JOURNAL_HEAD}};
    const char *name = path_name(work->name);
    bool ours = shard_file_waits(entry) && !strncmp(entry, name, strlen(name));
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !ours; i++) {
        char *path = strcmp(entry, names[i][0]) != 0 ? NULL : path_in(work->folder, entry);
        ours = path && partial_file_begins(path, names[i][1]);
        free(path);
    }
    return ours;
}

static int waiting_remove(void *user, const char *entry)
{
    const struct set_work *work = user;
    const bool stays = !strncmp(entry, "journal", strlen("journal"))
                           ? work->options.shared || work->journaled
                           : work->options.continues && !strcmp(entry, NAME_FILES_NAMED);
    char *path = !stays && is_ours(work, entry) ? path_in(work->folder, entry) : NULL;
    if (path)
        (void)os_unlink(path);
    free(path);
    return 0;
}

bool set_note_is_named(const char *folder, const char *entry)
{
    char *path = strcmp(entry, NAME_FILES_NAMED) != 0 ? NULL : path_in(folder, entry);
    const bool is_named = path && partial_file_begins(path, NAME_FILES_HEAD);
    free(path);
    return is_named;
}

enum tokmap_status set_note_find(const char *name, enum set_note *note, struct tokmap_error *error)
{
    struct os_stat found;
    char *path = path_ended(name, ".work/" NAME_FILES_NAMED);
    *note = SET_NOTE_NONE;
    if (!path)
        return error_set_memory(error, lacking, 0);
    if (name_files_pending(&(const struct name_files){.name = name}))
        *note = SET_NOTE_NAMING;
    else if (!os_lstat(path, &found))
        *note = SET_NOTE_NAMED;
    free(path);
    return TOKMAP_OK;
}

/* Removes the folder with the shards of a killed writer, or of this one. It stays if it has a file of another name. */
static int folder_clear(struct set_work *work)
{
    const int system = os_folder_list(work->folder, waiting_remove, work);
    return system || work->options.shared ? system : os_remove_folder(work->folder);
}

/* Completes the names that a killed writer has left. Sets *found if there were such names. */
static enum tokmap_status recover(struct set_work *work, bool *found, struct tokmap_error *error)
{
    *found = false;
    if (set_folder_is_link(work->folder)) /* folder_make() reports it */
        return TOKMAP_OK;
    const enum tokmap_status status =
        name_files_complete(&work->group, work->options.sync, work->options.continues, found, error);
    if (!status && *found)
        (void)folder_clear(work); /* a file of another name keeps the folder, which open() reports */
    return status;
}

/* ---- open ---- */

/* Returns whether the rest of a name is "-00012.bin" or the like. A set has at most SET_SHARDS_MOST shards, whose
 * numbers have five digits: "-20260101.bin" is another dataset. */
static bool is_shard_name(const char *rest)
{
    enum { DIGITS = 5 };
    if (*rest != '-' || strspn(rest + 1, "0123456789") != DIGITS)
        return false;
    for (int i = 0; i <= SHARD_INDEX; i++)
        if (!strcmp(rest + 1 + DIGITS, shard_file_ending((enum shard_file)i, SHARD_FINAL)))
            return true;
    return false;
}

struct taken {
    const char *name;
    size_t bytes;
    char *entry; /* a file that has the name of a shard of the set */
    bool lost;   /* true if there was not enough memory */
};

static int entry_look(void *user, const char *entry)
{
    struct taken *taken = user;
    if (strncmp(entry, taken->name, taken->bytes) != 0 || !is_shard_name(entry + taken->bytes))
        return 0;
    taken->entry = strdup(entry);
    taken->lost = !taken->entry;
    return -1;
}

/* Without options.replace: no file may have the name of a shard of the set. */
static enum tokmap_status shards_absent(const struct set_work *work, const struct set *set, struct tokmap_error *error)
{
    struct taken taken = {.name = path_name(set->path), .bytes = strlen(path_name(set->path))};
    char *folder = path_folder(work->name);
    if (!folder)
        return error_set_memory(error, lacking, 0);
    const int system = os_folder_list(folder, entry_look, &taken);
    enum tokmap_status status = taken.lost ? error_set_memory(error, lacking, 0) : TOKMAP_OK;
    if (system > 0)
        status = failed(system, folder, "the folder of the output cannot be listed", error);
    if (taken.entry)
        status =
            error_set(error, TOKMAP_ERROR_EXISTS, set->path, TOKMAP_NO_OFFSET,
                      "the output already exists, at least '%.200s'; choose another name, or use --force", taken.entry);
    free(taken.entry);
    free(folder);
    return status;
}

/* Counts the shards of an old set. Returns false if the text is not a manifest that a set has. */
static bool manifest_count(const char *text, size_t bytes, const char *path, uint64_t *shards)
{
    struct manifest manifest = {.count = 0};
    const char *name = path_name(path);
    const bool marked = strchr(" \t\r#", *name) != NULL;
    bool is = bytes && text[bytes - 1] == '\n' && !manifest_parse(&manifest, path, text, bytes, NULL);
    *shards = is ? manifest.count : 0;
    is = is && *shards <= SET_SHARDS_MOST && manifest.lines == 1 + manifest.group_count + manifest.count;
    for (uint64_t i = 0; i < *shards && is; i++) {
        char number[NUMBER_MOST];
        const char *line = manifest_name(&manifest, &manifest.shards[i]);
        (void)snprintf(number, sizeof number, "-%05" PRIu64, i);
        const char *from = line + (marked && !strncmp(line, "./", 2) ? 2 : 0);
        is = !strncmp(from, name, strlen(name)) && !strcmp(from + strlen(name), number);
    }
    manifest_free(&manifest);
    return is;
}

enum tokmap_status set_shards_count(const char *manifest, uint64_t *shards, struct tokmap_error *error)
{
    struct os_stat found;
    struct bytes_buffer text = {0};
    const int system = os_lstat(manifest, &found);
    if (system)
        return failed(system, manifest, "the output cannot be examined", error);
    if (found.kind != OS_KIND_FILE || found.bytes > MANIFEST_BYTES_MOST)
        return error_set(error, TOKMAP_ERROR_EXISTS, manifest, TOKMAP_NO_OFFSET,
                         "this exists and is not a shard set, so it is not replaced; choose another name");
    enum tokmap_status status = manifest_read(manifest, &text, error);
    if (!status && !manifest_count((const char *)text.bytes, text.count, manifest, shards))
        status = error_set(error, TOKMAP_ERROR_EXISTS, manifest, TOKMAP_NO_OFFSET,
                           "this file is not the manifest of a shard set that `tokmap pack` has made, so it is not "
                           "replaced; remove it, or choose another name");
    bytes_free(&text);
    return status;
}

/* Checks the files that a set of this name would replace. recovered: a killed writer's set was completed just now. */
static enum tokmap_status name_check(const struct set_work *work, struct set *set, bool recovered,
                                     struct tokmap_error *error)
{
    struct os_stat found;
    enum tokmap_status status = TOKMAP_OK;
    static const enum shard_file files[] = {SHARD_TOKENS, SHARD_INDEX, SHARD_SEALED};
    for (size_t i = 0; i < sizeof files / sizeof files[0] && !status; i++) {
        char *path = shard_file_path(set->path, files[i], SHARD_FINAL);
        if (!path)
            return error_set_memory(error, lacking, 0);
        if (!os_lstat(path, &found))
            status = error_set(error, TOKMAP_ERROR_EXISTS, path, TOKMAP_NO_OFFSET,
                               "this shard exists, so '%.200s' means it and would not mean the shard set; remove it, "
                               "or choose another name",
                               set->path);
        free(path);
    }
    if (status)
        return status;
    const int system = os_lstat(set->path, &found);
    if (system && system != ENOENT)
        return failed(system, set->path, "the output cannot be examined", error);
    if (!system && !work->options.replace)
        return error_set(error, TOKMAP_ERROR_EXISTS, set->path, TOKMAP_NO_OFFSET, "%s",
                         recovered ? "an earlier `tokmap pack` was interrupted while it named this set; the set is "
                                     "complete now; choose another name, or use --force"
                                   : "the output already exists; choose another name, or use --force");
    if (!system)
        return set_shards_count(set->path, &set->old, error);
    return work->options.replace ? TOKMAP_OK : shards_absent(work, set, error);
}

static enum tokmap_status lock_take(struct set_work *work, struct tokmap_error *error)
{
    const int system = partial_file_open(work->lock, NULL, NULL, &work->lock_fd);
    work->locked = !system;
    return system ? partial_file_failed(system, work->lock, error) : TOKMAP_OK;
}

struct stranger {
    const struct set_work *work;
    char *entry; /* a file of the folder that no work of this name has made */
    bool lost;   /* true if there was not enough memory */
};

static int stranger_look(void *user, const char *entry)
{
    struct stranger *stranger = user;
    if (is_ours(stranger->work, entry))
        return 0;
    stranger->entry = strdup(entry);
    stranger->lost = !stranger->entry;
    return -1;
}

/* Refuses a folder with a file of the user, which is not ours to empty, before anything is removed. */
static enum tokmap_status folder_check(const struct set_work *work, struct tokmap_error *error)
{
    struct stranger stranger = {.work = work};
    enum tokmap_status status = TOKMAP_OK;
    if (set_folder_is_link(work->folder))
        return set_folder_link_error(work->folder, error);
    if (!work->options.keep && !work->options.shared)
        (void)os_folder_list(work->folder, stranger_look, &stranger);
    if (stranger.lost)
        status = error_set_memory(error, lacking, 0);
    if (stranger.entry)
        status = error_set(
            error, TOKMAP_ERROR_EXISTS, work->folder, TOKMAP_NO_OFFSET,
            "the folder for unfinished work cannot be emptied, because '%.200s' in it does not belong to this "
            "output; nothing is removed; move that file away, or choose another name",
            stranger.entry);
    free(stranger.entry);
    return status;
}

static enum tokmap_status folder_make(struct set_work *work, struct tokmap_error *error)
{
    const enum tokmap_status status = folder_check(work, error);
    if (status)
        return status;
    int system = work->options.keep ? 0 : folder_clear(work);
    if (system && system != ENOENT)
        return failed(system, work->folder,
                      "the folder for unfinished work cannot be emptied; remove it, or choose another name", error);
    system = os_make_folder(work->folder);
    if (system && !((work->options.keep || work->options.shared) && system == EEXIST))
        return failed(system, work->folder, "the folder for unfinished work cannot be made", error);
    work->made = !work->options.keep; /* what is continued stays, also if the sync fails */
    const enum tokmap_status synced = folder_sync(work, work->folder, error);
    work->made = work->made || !synced;
    return synced;
}

static enum tokmap_status work_make(struct set_work *work, const char *name, const struct set_work_options *options,
                                    struct tokmap_error *error)
{
    work->lock_fd = -1;
    work->options = *options;
    work->journaled = options->continues; /* while what a killed writer has left is completed */
    work->name = strdup(name);
    work->lock = path_ended(name, ".partial");
    work->folder = path_ended(name, ".work");
    if (!work->name || !work->lock || !work->folder)
        return error_set_memory(error, lacking, 0);
    work->group.name = work->name;
    if (strchr(path_name(name), '\n') || !*path_name(name))
        return error_set(error, TOKMAP_ERROR_ARGUMENT, name, TOKMAP_NO_OFFSET,
                         "the name of a shard set is not empty and contains no line end, which its manifest cannot "
                         "hold; choose another name");
    return TOKMAP_OK;
}

enum tokmap_status set_work_open(struct set_work **work, const char *name, const struct set_work_options *options,
                                 struct tokmap_error *error)
{
    bool recovered = false;
    *work = NULL;
    assert(options->sets && options->sets <= SETS_MOST);
    assert(!options->keep || !options->shared);
    struct set_work *made = calloc(1, sizeof *made);
    if (!made)
        return error_set_memory(error, lacking, 0);
    enum tokmap_status status = work_make(made, name, options, error);
    if (!status)
        status = lock_take(made, error);
    if (!status)
        status = recover(made, &recovered, error);
    made->journaled = false;
    for (; made->count < options->sets && !status; made->count++) {
        struct set *set = &made->sets[made->count];
        assert(ending_is_good(options->endings[made->count]));
        set->path = path_ended(made->name, options->endings[made->count]);
        status = set->path ? name_check(made, set, recovered, error) : error_set_memory(error, lacking, 0);
    }
    if (!status && recovered && options->keep) /* what was to be continued is complete */
        status = error_set(error, TOKMAP_ERROR_EXISTS, name, TOKMAP_NO_OFFSET,
                           "an earlier `tokmap pack` was interrupted while it named this set; the set is complete now");
    if (!status)
        status = folder_make(made, error);
    made->journaled = options->journaled || options->continues; /* what was there before is removed */
    if (status) {
        set_work_abandon(made);
        return status;
    }
    *work = made;
    return TOKMAP_OK;
}

enum tokmap_status set_work_recover(const char *name, bool sync, bool continues, struct tokmap_error *error)
{
    const struct set_work_options options = {.sets = 1, .sync = sync, .continues = continues};
    bool recovered;
    struct set_work *work = calloc(1, sizeof *work);
    if (!work)
        return error_set_memory(error, lacking, 0);
    enum tokmap_status status = work_make(work, name, &options, error);
    if (!status)
        status = lock_take(work, error);
    if (!status)
        status = recover(work, &recovered, error);
    set_work_abandon(work);
    return status;
}

/* ---- commit ---- */

enum tokmap_status set_work_state(struct set_work *work, uint32_t set, const char *index_path,
                                  struct tokmap_error *error)
{
    assert(set < work->count);
    struct set *of = &work->sets[set];
    struct index index;
    enum tokmap_status status = index_open_as(&index, index_path, TOKMAP_READ_PREAD, error);
    if (status)
        return status;
    char number[NUMBER_MOST];
    (void)snprintf(number, sizeof number, "-%05" PRIu64, of->stated++);
    char *name = path_ended(path_name(of->path), number);
    if (!name || !manifest_text_add(&of->text, name, &index))
        status = error_set_memory(error, lacking, 0);
    free(name);
    index_close(&index);
    return status;
}

static enum tokmap_status manifest_write(struct set_work *work, uint32_t number, struct tokmap_error *error)
{
    struct set *set = &work->sets[number];
    char *path = ready_manifest(work, set);
    enum tokmap_status status = path ? TOKMAP_OK : error_set_memory(error, lacking, 0);
    while (set->stated < set->shards && !status) {
        char *prefix = ready_path(work, set, set->stated, "");
        char *index = prefix ? shard_file_path(prefix, SHARD_INDEX, SHARD_READY) : NULL;
        status = index ? set_work_state(work, number, index, error) : error_set_memory(error, lacking, 0);
        free(prefix);
        free(index);
    }
    if (!status && work->options.keep)
        (void)os_unlink(path); /* of the writer that was killed */
    int fd, system = status ? 0 : os_open(path, OS_WRITE_NEW, &fd);
    if (!status && !system) {
        system = os_pwrite(fd, set->text.text.bytes, set->text.text.count, 0);
        if (!system && work->options.sync)
            system = os_sync(fd);
        os_close(fd);
    }
    if (system)
        status = failed(system, path, "the manifest cannot be written", error);
    free(path);
    return status;
}

/* Checks once more, at the end of work that may have taken days, what opening has checked. */
static enum tokmap_status names_check(struct set_work *work, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    for (uint32_t i = 0; i < work->count && !status; i++) {
        work->sets[i].old = 0;
        status = name_check(work, &work->sets[i], false, error);
    }
    return status;
}

/* Adds the files of a set to the group, and removals of the old files. With options.replace, files with the names of
 * new shards are removed that belong to no set. */
static void set_add(struct set_work *work, const struct set *set)
{
    struct name_files *group = &work->group;
    const enum shard_file tokens = work->options.sealed ? SHARD_SEALED : SHARD_TOKENS;
    const enum shard_file other = work->options.sealed ? SHARD_TOKENS : SHARD_SEALED;
    const enum shard_file files[] = {tokens, SHARD_MASK, SHARD_INDEX};
    const uint64_t most = set->old > set->shards ? set->old : set->shards;
    for (uint64_t k = 0; k < most; k++) {
        for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
            const unsigned level = files[i] == SHARD_INDEX;
            const bool is_new = k < set->shards && (files[i] != SHARD_MASK || work->mask);
            char *path =
                is_new && work->options.placed ? NULL : shard_file_numbered(set->path, k, files[i], SHARD_FINAL);
            if (!is_new)
                name_files_remove(group, level, path);
            else if (!work->options.placed)
                name_files_add(group, level, ready_path(work, set, k, shard_file_ending(files[i], SHARD_READY)), path);
        }
        name_files_remove(group, 0, shard_file_numbered(set->path, k, other, SHARD_FINAL));
    }
    name_files_add(group, 2, ready_manifest(work, set), strdup(set->path));
}

/* Returns true if the folder has a journal, with which another writer can continue. */
static bool is_saved(const struct set_work *work)
{
    struct os_stat found;
    char *journal = path_in(work->folder, "journal");
    const bool saved = journal && !os_lstat(journal, &found);
    free(journal);
    return saved;
}

struct name_files *set_work_group(struct set_work *work)
{
    return &work->group;
}

enum tokmap_status set_work_commit(struct set_work *work, const uint64_t *shards, bool mask, bool *ready,
                                   struct tokmap_error *error)
{
    enum tokmap_status status = names_check(work, error);
    work->mask = mask;
    for (uint32_t i = 0; i < work->count && !status; i++) {
        assert(shards[i] && shards[i] <= SET_SHARDS_MOST);
        assert(work->sets[i].stated == (work->options.placed ? shards[i] : 0));
        work->sets[i].shards = shards[i];
        status = manifest_write(work, i, error);
    }
    for (uint32_t i = 0; i < work->count && !status; i++)
        set_add(work, &work->sets[i]);
    if (!status)
        status = name_files_write(&work->group, work->options.sync, work->options.last, work->options.last_user, error);
    *ready = !status;
    if (!*ready && is_saved(work))
        work->made = false; /* the next writer continues the shards */
    bool found;
    if (!status)
        status = name_files_complete(&work->group, work->options.sync, work->options.continues, &found, error);
    if (*ready && status)
        work->made = false; /* the next writer completes the set */
    set_work_abandon(work);
    return status;
}

void set_work_clear(const char *name)
{
    const struct set_work_options options = {.sets = 1};
    struct os_stat found;
    struct set_work *work = calloc(1, sizeof *work);
    if (!work)
        return;
    if (!work_make(work, name, &options, NULL) && !os_lstat(work->folder, &found) && !lock_take(work, NULL))
        work->made = !is_saved(work) && !name_files_pending(&work->group);
    set_work_abandon(work);
}

static int plain_remove(void *user, const char *entry)
{
    const struct set_work *work = user;
    struct shard_name found;
    const bool plain = shard_file_find(entry, strlen(entry), &found) && found.file == SHARD_TOKENS &&
                       found.state == SHARD_READY_PARTIAL;
    char *path = plain ? path_in(work->folder, entry) : NULL;
    if (path)
        (void)os_unlink(path);
    free(path);
    return 0;
}

void set_work_tidy(const struct set_work *work)
{
    if (work->options.sealed)
        (void)os_folder_list(work->folder, plain_remove, (void *)(uintptr_t)work);
}

void set_work_leave(struct set_work *work)
{
    if (!work)
        return;
    work->made = false;
    set_work_abandon(work);
}

/* Removing the lock comes last, because no other writer may use these names before. */
void set_work_abandon(struct set_work *work)
{
    if (!work)
        return;
    if (work->made)
        (void)folder_clear(work);
    if (work->locked)
        (void)os_unlink(work->lock);
    os_close(work->lock_fd);
    for (uint32_t i = 0; i < work->count; i++) {
        free(work->sets[i].path);
        manifest_text_free(&work->sets[i].text);
    }
    name_files_free(&work->group);
    free(work->name);
    free(work->folder);
    free(work->lock);
    free(work);
}
