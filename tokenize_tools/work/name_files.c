/* SPDX-License-Identifier: MIT */
/*
 * name_files.c - see name_files.h. The note is text: NAME_FILES_HEAD, three lines for each entry (level, from, to), and
 * "end". The paths in it begin in the folder of NAME, so that this folder may be moved.
 */
#include "name_files.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "platform/os.h"
#include "text/path.h"

#define END "end\n"
#define NOTE_MOST ((uint64_t)1 << 30) /* bytes; SET_SHARDS_MOST shards with names of 255 bytes have less */

struct entry {
    unsigned level;
    const char *from, *to; /* *from is 0: it is removed */
};

struct naming {
    const char *name;
    char *note; /* NAME.work/naming */
    char *text; /* in it; the entries point into it */
    struct entry *entries;
    size_t count;
    bool sync;
    struct tokmap_error *error;
};

static enum tokmap_status no_memory(struct tokmap_error *error)
{
    return error_set_memory(error, "the names of a shard set", 0);
}

static enum tokmap_status failed(int system, const char *path, const char *what, struct tokmap_error *error)
{
    return error_set_system(error, system, path, TOKMAP_NO_OFFSET, "%s", what);
}

/* Returns the path of the note, or of the one that is being written; NULL without memory. */
static char *note_path(const char *name, bool partial)
{
    return path_ended(name, partial ? ".work/naming.partial" : ".work/naming");
}

/* ---- write ---- */

/* Returns the part of a path below the folder of NAME. */
static const char *below(const struct name_files *group, const char *path)
{
    const size_t folder = path_folder_bytes(group->name);
    assert(!strncmp(path, group->name, folder) && !strchr(path + folder, '\n'));
    return path + folder;
}

static void entry_add(struct name_files *group, unsigned level, const char *from, const char *to)
{
    char text[4];
    assert(level < NAME_FILES_LEVELS);
    (void)snprintf(text, sizeof text, "%u\n", level);
    if (!group->text.count)
        group->failed = !bytes_append(&group->text, NAME_FILES_HEAD, strlen(NAME_FILES_HEAD));
    group->failed = group->failed || !bytes_append(&group->text, text, strlen(text)) ||
                    !bytes_append(&group->text, from, strlen(from)) || !bytes_append(&group->text, "\n", 1) ||
                    !bytes_append(&group->text, to, strlen(to)) || !bytes_append(&group->text, "\n", 1);
}

void name_files_add(struct name_files *group, unsigned level, char *from, char *to)
{
    if (from && to)
        entry_add(group, level, below(group, from), below(group, to));
    group->failed = group->failed || !from || !to;
    free(from);
    free(to);
}

void name_files_remove(struct name_files *group, unsigned level, char *path)
{
    if (path)
        entry_add(group, level, "", below(group, path));
    group->failed = group->failed || !path;
    free(path);
}

/* Makes the note under its partial name, and brings that to storage. */
static int partial_write(const struct name_files *group, const char *partial, bool sync)
{
    int fd;
    (void)os_unlink(partial); /* of a writer that was killed */
    int system = os_open(partial, OS_WRITE_NEW, &fd);
    if (system)
        return system;
    system = os_pwrite(fd, group->text.bytes, group->text.count, 0);
    if (!system && sync)
        system = os_sync(fd);
    os_close(fd);
    return !system && sync ? os_sync_folder(partial) : system;
}

enum tokmap_status name_files_write(struct name_files *group, bool sync,
                                    enum tokmap_status (*last)(void *user, struct tokmap_error *error), void *user,
                                    struct tokmap_error *error)
{
    char *partial = note_path(group->name, true), *note = note_path(group->name, false);
    const bool good = partial && note && !group->failed && bytes_append(&group->text, END, strlen(END));
    enum tokmap_status status = good ? TOKMAP_OK : no_memory(error);
    int system = status ? 0 : partial_write(group, partial, sync);
    if (!status && !system && last)
        status = last(user, error);
    /* Files that were made before the note must be on storage before it, such as a file that is in this folder until it
     * gets its name. */
    if (!status && !system && sync) {
        system = os_sync_folder(group->name);
        if (system)
            status = failed(system, group->name, "the folder cannot be synced to storage", error);
    }
    if (!status && !system)
        system = os_rename(partial, note);
    if (!status && system)
        status = failed(system, note, "the end of the work cannot be recorded", error);
    free(partial);
    free(note);
    return status;
}

void name_files_free(struct name_files *group)
{
    bytes_free(&group->text);
}

/* ---- read ---- */

bool name_files_pending(const char *name)
{
    struct os_stat found;
    char *note = note_path(name, false);
    const bool pending = !note || !os_lstat(note, &found);
    free(note);
    return pending;
}

/* Cuts off a line. Returns it, or NULL at the end. */
static char *line_take(char **at)
{
    char *line = *at, *end = strchr(line, '\n');
    if (!end)
        return NULL;
    *end = '\0';
    *at = end + 1;
    return line;
}

/* Returns true if a path of the note is that of a file of NAME, or is below NAME.work: it begins as NAME does, and
 * stays below the folder. So a note that somebody else has made removes no file of another name. */
static bool is_ours(const struct naming *naming, const char *path)
{
    const char *slash = strrchr(naming->name, '/'), *last = slash ? slash + 1 : naming->name;
    return !strncmp(path, last, strlen(last)) && !path_is_absolute(path) && !strstr(path, "/../");
}

/* Finds the entries in the text. Returns false if it is not whole. */
static bool entries_find(struct naming *naming)
{
    char *at = naming->text + strlen(NAME_FILES_HEAD);
    if (strncmp(naming->text, NAME_FILES_HEAD, strlen(NAME_FILES_HEAD)) != 0)
        return false;
    while (*at && strcmp(at, END) != 0) {
        const char *level = line_take(&at), *from = level ? line_take(&at) : NULL, *to = from ? line_take(&at) : NULL;
        if (!to || !*to || (*from && !is_ours(naming, from)) || !is_ours(naming, to) || level[1] || *level < '0' ||
            *level >= '0' + NAME_FILES_LEVELS)
            return false;
        naming->entries[naming->count++] = (struct entry){(unsigned)(*level - '0'), from, to};
    }
    return *at && naming->count;
}

static size_t lines_count(const char *text)
{
    size_t lines = 0;
    for (; (text = strchr(text, '\n')); text++)
        lines++;
    return lines;
}

static enum tokmap_status note_read(struct naming *naming, bool *found)
{
    struct os_stat stat;
    size_t got = 0;
    int fd, system = os_open(naming->note, OS_READ_NOW, &fd);
    *found = system != ENOENT && system != ENOTDIR;
    if (!*found)
        return TOKMAP_OK;
    if (!system) {
        system = os_fstat(fd, &stat);
        naming->text = system || stat.bytes > NOTE_MOST ? NULL : calloc(1, (size_t)stat.bytes + 1);
        if (!system && naming->text)
            system = os_pread(fd, naming->text, (size_t)stat.bytes, 0, &got);
        os_close(fd);
    }
    if (system)
        return failed(system, naming->note, "what an earlier `tokmap pack` has left cannot be read", naming->error);
    naming->entries = naming->text ? malloc((lines_count(naming->text) / 3 + 1) * sizeof *naming->entries) : NULL;
    if (!naming->entries)
        return no_memory(naming->error);
    return entries_find(naming)
               ? TOKMAP_OK
               : error_set(naming->error, TOKMAP_ERROR_CORRUPT, naming->note, TOKMAP_NO_OFFSET,
                           "an earlier `tokmap pack` of this name was interrupted, and this file, which says how to "
                           "complete it, is damaged, or of another version; remove the folder and pack again");
}

/* ---- the steps ---- */

static enum tokmap_status folder_sync(const struct naming *naming, const char *path)
{
    const int system = naming->sync ? os_sync_folder(path) : 0;
    return system ? failed(system, path, "the folder cannot be synced to storage", naming->error) : TOKMAP_OK;
}

/* Removes a file, which may be absent. */
static enum tokmap_status discard(const struct naming *naming, const char *path)
{
    const int system = os_unlink(path);
    return system && system != ENOENT
               ? failed(system, path,
                        "a file of the old set cannot be removed; the new set is complete in its .work folder, and the "
                        "next `tokmap pack` of this name renames it",
                        naming->error)
               : TOKMAP_OK;
}

/* Step 1 of an entry. */
static enum tokmap_status entry_clear(const struct naming *naming, const char *from, const char *to)
{
    struct os_stat found;
    return from && os_lstat(from, &found) ? TOKMAP_OK : discard(naming, to);
}

/* Step 2 of an entry. */
static enum tokmap_status entry_name(const struct naming *naming, const char *from, const char *to)
{
    struct os_stat found;
    if (!from)
        return discard(naming, to);
    const int system = os_rename(from, to);
    if (system && system != ENOENT)
        return failed(system, to,
                      "the finished file cannot be renamed; the set is complete in its .work folder, and the next "
                      "`tokmap pack` of this name renames it",
                      naming->error);
    return !system || !os_lstat(to, &found)
               ? TOKMAP_OK
               : error_set(naming->error, TOKMAP_ERROR_CORRUPT, to, TOKMAP_NO_OFFSET,
                           "an earlier `tokmap pack` was interrupted while it named this set, and since then this "
                           "file has been removed from '%.200s.work'; remove that folder and pack again",
                           naming->name);
}

/* Does a step for all entries of a level, and brings it to storage. */
static enum tokmap_status level_do(const struct naming *naming, unsigned level,
                                   enum tokmap_status (*step)(const struct naming *naming, const char *from,
                                                              const char *to))
{
    enum tokmap_status status = TOKMAP_OK;
    bool any = false;
    for (size_t i = 0; i < naming->count && !status; i++) {
        const struct entry *entry = &naming->entries[i];
        if (entry->level != level)
            continue;
        char *from = *entry->from ? path_beside(naming->name, entry->from) : NULL;
        char *to = path_beside(naming->name, entry->to);
        status = to && (from || !*entry->from) ? step(naming, from, to) : no_memory(naming->error);
        any = true;
        free(from);
        free(to);
    }
    return status || !any ? status : folder_sync(naming, naming->name);
}

/* Leaves the note, which says from now on that all is named. */
static enum tokmap_status note_keep(const struct naming *naming)
{
    char *named = path_ended(naming->name, ".work/" NAME_FILES_NAMED);
    const int system = named ? os_rename(naming->note, named) : 0;
    free(named);
    return !named   ? no_memory(naming->error)
           : system ? failed(system, naming->note, "the file cannot be renamed", naming->error)
                    : TOKMAP_OK;
}

enum tokmap_status name_files_complete(const char *name, bool sync, bool stays, bool *found, struct tokmap_error *error)
{
    struct naming naming = {.name = name, .note = note_path(name, false), .sync = sync, .error = error};
    *found = false;
    enum tokmap_status status = naming.note ? note_read(&naming, found) : no_memory(error);
    if (!status && *found) {
        /* The process that wrote the note may not have synced its name. */
        status = folder_sync(&naming, naming.note);
        for (unsigned level = NAME_FILES_LEVELS; --level && !status;)
            status = level_do(&naming, level, entry_clear);
        for (unsigned level = 0; level < NAME_FILES_LEVELS && !status; level++)
            status = level_do(&naming, level, entry_name);
        if (!status)
            status = stays ? note_keep(&naming) : discard(&naming, naming.note);
        if (!status) /* or a power cut could take the journal and leave this note, and all would be packed again */
            status = folder_sync(&naming, naming.note);
    }
    free(naming.text);
    free(naming.entries);
    free(naming.note);
    return status;
}
