/* SPDX-License-Identifier: MIT */
/*
 * output_names.c - see output_names.h.
 *
 * Example: the files of one shard web with --also megatron are web.tmx, web.bin.partial, web.bin.0123456789abcdef
 * (format/shard_commit.h), web.idx, and web.work/journal, but neither web.npy nor website.bin. Those of a set web are
 * web-00003.tmx, web-00003.idx, and so on, but not web.idx, which may be an input. With the sets train and val, they
 * are web.train-00003.tmx and so on.
 *
 * An older output of the same name may have had other sets, shards, and formats of --also, and nothing lists its files.
 * web.csv.gz may be of olmo's format, or an input of the user from which web was packed. So a file is taken for an
 * older one only if others agree. All files of the format must be there, here web.npy, and the first of them begins as
 * it must: web.npy of OLMo has no header, and an array of NumPy has. The index need not be there, since new shards may
 * be fewer than old ones. The files of a shard need an index that begins as one does.
 */
#include "output_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "format/layout.h"
#include "format/partial_file.h"
#include "format/shard_file.h"
#include "pack_also.h"
#include "platform/os.h"
#include "shuffle/shuffle.h"
#include "text/path.h"
#include "work/set_commit.h"
#include "work/stage_file.h"
#include "work/task_status.h"
#include "work/work_folder.h"
#include "work/work_units.h"

static bool is_same_folder(const char *a, const char *b)
{
    struct os_stat of_a, of_b;
    return !os_stat(a, &of_a) && !os_stat(b, &of_b) && of_a.device == of_b.device && of_a.inode == of_b.inode;
}

/* Returns true if `text` is one of `endings`, optionally followed by ".partial" or by an id: a file that is being
 * written, or one that is being replaced. */
static bool is_one_of(const char *text, const char *const *endings, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const size_t bytes = strlen(endings[i]);
        const char *rest = text + bytes;
        if (strncmp(text, endings[i], bytes) != 0)
            continue;
        if (!*rest || !strcmp(rest, ".partial") ||
            (*rest == '.' && strlen(rest) == 1 + SHARD_ID_DIGITS &&
             strspn(rest + 1, "0123456789abcdef") == SHARD_ID_DIGITS))
            return true;
    }
    return false;
}

/* Returns what follows the name of the output in the name of a file; NULL: it begins otherwise. */
static const char *rest_of(const char *output, const char *path)
{
    const char *name = path_name(output), *leaf = path_name(path);
    const size_t bytes = strlen(name);
    return strncmp(leaf, name, bytes) ? NULL : leaf + bytes;
}

/* Returns what follows the name of a shard of a set; NULL: another name. */
static const char *ending_of(const struct output_names *names, uint32_t set, const char *rest)
{
    enum { DIGITS = 5 };
    const char *of = names->split ? names->split->sets[set].name : "";
    const size_t bytes = strlen(of);
    if (names->split && (*rest != '.' || strncmp(rest + 1, of, bytes) != 0))
        return NULL;
    rest += names->split ? 1 + bytes : 0;
    if (!names->split && !names->numbered)
        return rest;
    return *rest == '-' && strspn(rest + 1, "0123456789") == DIGITS ? rest + 1 + DIGITS : NULL;
}

static bool is_beside(const char *output, const char *path)
{
    char *of_path = path_folder(path), *of_output = path_folder(output);
    const bool is = of_path && of_output && is_same_folder(of_path, of_output);
    free(of_path);
    free(of_output);
    return is;
}

/* Returns true if a path is the name of a shard and one of some endings. */
static bool is_of_shard(const struct output_names *names, const char *path, const char *const *endings, size_t count)
{
    const char *rest = rest_of(names->name, path);
    bool is = false;
    for (uint32_t set = 0; rest && !is && set < (names->split ? names->split->count : 1); set++) {
        const char *ending = ending_of(names, set, rest);
        is = ending && is_one_of(ending, endings, count);
    }
    return is && is_beside(names->name, path);
}

/* Returns true if a path is in the folder OUTPUT.work, to whatever name it leads. */
static bool is_work(const char *output, const char *path)
{
    static const char end[] = ".work";
    char *folder = path_name(path) != path ? path_folder(path) : NULL;
    char *work = folder ? path_ended(output, end) : NULL;
    const bool is = work && !strcmp(folder + max64(strlen(folder), sizeof end - 1) - (sizeof end - 1), end) &&
                    is_same_folder(folder, work);
    free(folder);
    free(work);
    return is;
}

bool output_names_also(const struct output_names *names, const char *path)
{
    return names->also && is_of_shard(names, path, names->also->endings, names->also->ending_count);
}

/* Returns true if a path is that of a file in the folder NAME.work, of a finished or unfinished file of the output, or
 * of a file of `also`. */
static bool output_names_have(const struct output_names *names, const char *path)
{
    const char *ends[SHARD_FILE_KINDS];
    const char *rest = rest_of(names->name, path);
    for (int i = 0; i < SHARD_FILE_KINDS; i++)
        ends[i] = shard_file_ending((enum shard_file)i, SHARD_FINAL);
    if (rest && (names->numbered || names->split) && !strcmp(rest, ".partial") && is_beside(names->name, path))
        return true; /* the lock on a set */
    return is_of_shard(names, path, ends, SHARD_DROPPED) || output_names_also(names, path) ||
           (rest && is_one_of(rest, &ends[SHARD_DROPPED], 1) && is_beside(names->name, path)) ||
           is_work(names->name, path);
}

/* ---- older outputs ---- */

#define HEAD_MOST 64
#define NOTE_HEAD "{\"dtype\":\"uint16\",\"vocab_size\":"

/* The files of other projects beside a shard, sealed or not. */
static const struct older_files {
    const char *endings[4];
    const char *head; /* head of the first file; NULL: any */
    bool other;       /* true if the file must not begin with `head` */
} older_files[] = {
    {.endings = {".idx"}, .head = "MMIDIDX"},
    {.endings = {".megatron.idx", ".megatron.bin"}, .head = "MMIDIDX"},
    {.endings = {".llmc.bin"}, .head = "\x88\xd8\x34\x01"}, /* 20240520, for tokens of 2 bytes */
    {.endings = {".llmc.bin"}, .head = "\xa1\xd9\x34\x01"}, /* and 20240801 */
    {.endings = {".ds", ".ds.index", ".ds.metadata"}},
    {.endings = {".ds.loss", ".ds", ".ds.index", ".ds.metadata"}},
    {.endings = {".npy", ".csv.gz"}, .head = "\x93NUMPY", .other = true},
    {.endings = {".meta.json"}, .head = NOTE_HEAD},
    {.endings = {".nanogpt.meta.json", ".nanogpt.bin"}, .head = NOTE_HEAD},
};

static bool begins_with(const char *path, const char *head)
{
    char bytes[HEAD_MOST];
    size_t got;
    return os_head_read(path, bytes, strlen(head), &got) && got == strlen(head) && !memcmp(bytes, head, got);
}

/* Returns true if SHARD and an ending is a file that exists and, unless `head` is NULL, begins so or, with `other`,
 * does not. */
static bool has_file(const char *shard, size_t shard_bytes, const char *ending, const char *head, bool other)
{
    struct os_stat found;
    char *path = path_join("", 0, shard, shard_bytes, ending);
    const bool has =
        path && !os_stat(path, &found) && found.kind == OS_KIND_FILE && (!head || begins_with(path, head) != other);
    free(path);
    return has;
}

/* Returns the bytes of a name that are those of a set: ".train"; 0: there is none. */
static size_t set_bytes(const char *rest)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    const size_t bytes = *rest == '.' ? strspn(rest + 1, letters) : 0;
    return bytes ? bytes + 1 : 0;
}

/* Returns true if `bytes` of a name, after that of the output, name a shard of any output: "", "-00012",
 * ".train-00012". */
static bool is_shard_name(const char *rest, size_t bytes)
{
    enum { DIGITS = 5 };
    const size_t set = min64(set_bytes(rest), bytes), number = 1 + DIGITS, word = bytes - min64(bytes, number);
    return !bytes || (bytes >= number && rest[word] == '-' && strspn(rest + word + 1, "0123456789") == DIGITS &&
                      (!word || set == bytes));
}

/* Returns true if a file belongs to one of the formats of --also, and all files of that format are there with the heads
 * that they must have. rest: the part of its name after that of the output. */
static bool is_older_file(const char *path, const char *rest, const struct older_files *files)
{
    const size_t bytes = strlen(rest);
    bool is = false;
    for (size_t i = 0; i < 4 && files->endings[i] && !is; i++) {
        const size_t ending = strlen(files->endings[i]);
        is =
            bytes >= ending && !strcmp(rest + bytes - ending, files->endings[i]) && is_shard_name(rest, bytes - ending);
        for (size_t k = 0; k < 4 && files->endings[k] && is; k++)
            is = has_file(path, strlen(path) - ending, files->endings[k], k ? NULL : files->head, files->other);
    }
    return is;
}

/* Returns true if a path is that of a file of a shard that has an index. */
static bool is_older_shard(const char *path, const char *rest)
{
    struct shard_name found;
    if (!shard_file_find(path, strlen(path), &found) || found.state != SHARD_FINAL || found.file == SHARD_DROPPED)
        return false;
    const char *ending = shard_file_ending(found.file, SHARD_FINAL);
    const size_t bytes = strlen(rest), tail = strlen(ending);
    return bytes >= tail && is_shard_name(rest, bytes - tail) && has_file(path, found.stem, ending, NULL, false) &&
           has_file(path, found.stem, shard_file_ending(SHARD_INDEX, SHARD_FINAL), INDEX_MAGIC, false);
}

bool output_names_older(const char *output, const char *path)
{
    const char *rest = rest_of(output, path);
    if (!rest || !is_beside(output, path))
        return false;
    if (rest[set_bytes(rest)] == '\0' &&
        (begins_with(path, "tokmap-shards ") || begins_with(path, "# tokmap manifest ")))
        return true;
    if (is_older_shard(path, rest))
        return true;
    for (size_t i = 0; i < sizeof older_files / sizeof older_files[0]; i++)
        if (is_older_file(path, rest, &older_files[i]))
            return true;
    return false;
}

bool output_names_either(const void *output, const char *path)
{
    const struct output_names *names = output;
    return output_names_have(names, path) || output_names_older(names->name, path);
}

static enum excluded_kind kind_of(const void *user, const char *path)
{
    const struct pack_options *options = user;
    const struct output_names names = {options->prefix, options->split, options->shard_tokens != 0, options->also};
    const bool numbered = options->split || options->shard_tokens; /* otherwise corpus_exclude() has added them */
    return numbered && output_names_have(&names, path) ? EXCLUDED_OUTPUT
           : output_names_older(options->prefix, path) ? EXCLUDED_OLDER
                                                       : EXCLUDED_NOT;
}

enum tokmap_status output_names_exclude(const struct pack_options *options, struct corpus *corpus,
                                        struct tokmap_error *error)
{
    const struct pack_also *also = options->shard_tokens || options->split ? NULL : options->also;
    enum tokmap_status status = TOKMAP_OK;
    for (size_t i = 0; also && i < also->ending_count && !status; i++) {
        char *path = path_ended(options->prefix, also->endings[i]);
        status = path ? corpus_exclude(corpus, path, error) : error_set_memory(error, "a path", 0);
        free(path);
    }
    if (!options->unit) /* else it was listed before (work_units.h), and the name is one in NAME.work */
        corpus_exclude_kinds(corpus, kind_of, options);
    return status;
}

struct clearing {
    const char *folder;
    bool inside;  /* true in a folder of a unit */
    bool journal; /* true if there was a journal, so that files of a shuffle and torn files of stages are ours */
    bool left;    /* true if the journal is still there, so that the note stays for the next process */
    bool refused; /* true if there was no memory to remove an entry */
};

/* Returns true if units and tasks have made an entry, and not the user. */
static bool is_ours(const struct clearing *clearing, const char *entry, bool *is_folder)
{
    static const char *const names[] = {"journal", "journal.new", "naming", "naming.partial"};
    bool named = false;
    *is_folder = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        named = named || (clearing->inside && !strcmp(entry, names[i]));
    if (clearing->inside)
        return named || shard_file_waits(entry) || shuffle_is_name(entry);
    return unit_is_name(entry, is_folder) || task_status_is_name(entry) ||
           (!clearing->left && set_note_is_named(clearing->folder, entry)) ||
           stage_is_ours(clearing->folder, entry, clearing->journal) || (clearing->journal && shuffle_is_name(entry));
}

static int entry_remove(void *user, const char *entry)
{
    struct clearing *clearing = user;
    bool is_folder;
    if (!is_ours(clearing, entry, &is_folder))
        return 0;
    char *path = path_in(clearing->folder, entry);
    if (path && is_folder) {
        struct clearing below = {.folder = path, .inside = true};
        const int system = os_folder_list(path, entry_remove, &below);
        (void)os_remove_folder(path);
        clearing->refused = clearing->refused || below.refused || system == ENOMEM;
    } else if (path) {
        (void)os_unlink(path);
    }
    clearing->refused = clearing->refused || !path;
    free(path);
    return 0;
}

void pack_clear_unit(const char *folder, uint64_t unit)
{
    char *path = unit_path(folder, unit, ".work");
    struct clearing below = {.folder = path, .inside = true};
    if (path) {
        (void)os_folder_list(path, entry_remove, &below);
        (void)os_remove_folder(path);
    }
    free(path);
}

/* Removes the journal first: files without a journal are not work, whatever a process that is killed here leaves of
 * them. */
enum tokmap_status pack_clear_work(const char *folder, bool sync, struct tokmap_error *error)
{
    struct clearing clearing = {.folder = folder};
    struct os_stat found;
    char *journal = path_in(folder, "journal");
    if (!journal)
        return error_set_memory(error, "the end of the work", 0);
    if (set_folder_is_link(folder)) {
        free(journal);
        return set_folder_link_error(folder, error);
    }
    clearing.journal = partial_file_begins(journal, SET_JOURNAL_HEAD);
    if (clearing.journal)
        (void)os_unlink(journal);
    clearing.left = !os_lstat(journal, &found);
    int system = sync ? os_sync_folder(journal) : 0;
    system = system == ENOENT ? 0 : system; /* another process has removed the folder */
    free(journal);
    if (system)
        return error_set_system(error, system, folder, TOKMAP_NO_OFFSET, "the folder cannot be synced");
    /* Twice, because memory may have been short. Other files are the user's. */
    for (int i = 0; i < 2; i++) {
        clearing.refused = false;
        clearing.refused = os_folder_list(folder, entry_remove, &clearing) == ENOMEM || clearing.refused;
        if (!os_remove_folder(folder))
            return TOKMAP_OK;
    }
    return clearing.refused ? error_set_memory(error, "removing the unfinished work, which is over", 0) : TOKMAP_OK;
}

void pack_clear_settle(const struct pack_options *options, const char *folder)
{
    int fd;
    char *note = path_in(folder, "named");
    char *lock = path_ended(options->prefix, ".partial");
    const bool over = lock && !work_folder_exists(options->prefix) && !pack_also_begun(options->prefix);
    if (over && !set_folder_is_link(folder) && !partial_file_open(lock, NULL, NULL, &fd)) {
        (void)pack_clear_work(folder, options->sync, NULL);
        if (options->sync && note) /* or a power cut could bring it back, beside the journal of other work */
            (void)os_sync_folder(note);
        (void)os_unlink(lock);
        os_close(fd);
    }
    free(note);
    free(lock);
}

enum tokmap_status pack_clear_start(const char *name, const char *folder, struct tokmap_error *error)
{
    struct os_stat found;
    int fd = -1;
    if (os_lstat(folder, &found) == ENOENT)
        return TOKMAP_OK;
    if (set_folder_is_link(folder))
        return set_folder_link_error(folder, error);
    char *lock = path_ended(name, ".partial");
    if (!lock)
        return error_set_memory(error, "a path", 0);
    /* If the lock fails for another reason, such as a folder of this name, the work that follows reports it, if it
     * needs the lock. */
    const int system = partial_file_open(lock, NULL, NULL, &fd);
    enum tokmap_status status =
        system == EWOULDBLOCK ? work_locked_error(name, error) : work_idle_check(name, folder, error);
    if (!status)
        status = pack_clear_work(folder, false, error);
    if (!system)
        (void)os_unlink(lock);
    os_close(fd);
    free(lock);
    return status;
}
