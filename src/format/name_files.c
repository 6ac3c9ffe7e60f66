/* SPDX-License-Identifier: MIT */
/*
 * name_files.c - see name_files.h. The note is text: NAME_FILES_HEAD, three lines for each entry (level, from, to), and
 * "end". The paths in it begin in the folder of NAME, so that this folder may be moved.
 */
#include "name_files.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes_buffer.h"
#include "common/error.h"
#include "platform/os.h"
#include "text/path.h"

#define END "end\n"
#define NOTE_MOST ((uint64_t)1 << 30) /* bytes; SET_SHARDS_MOST shards with names of 255 bytes have less */

struct name_entry {
    unsigned level;
    char *from, *to; /* from is NULL: it is removed */
};

static enum tokmap_status failed(int system, const char *path, const char *what, struct tokmap_error *error)
{
    return error_set_system(error, system, path, TOKMAP_NO_OFFSET, "%s", what);
}

int name_file(int fd, const char *from, const char *to, bool sync, bool *named)
{
    int system = sync && fd >= 0 ? os_sync(fd) : 0;
    if (!system)
        system = os_rename(from, to);
    if (named)
        *named = !system;
    return !system && sync ? os_sync_folder(to) : system;
}

/* ---- entries ---- */

static void entry_add(struct name_files *group, unsigned level, char *from, char *to)
{
    assert(level < NAME_FILES_LEVELS);
    if (to && list_room(&group->entries, group->count, &group->room, sizeof *group->entries)) {
        group->entries[group->count++] = (struct name_entry){level, from, to};
        return;
    }
    group->failed = true;
    free(from);
    free(to);
}

void name_files_add(struct name_files *group, unsigned level, char *from, char *to)
{
    group->failed = group->failed || !from;
    entry_add(group, level, from, to);
}

void name_files_remove(struct name_files *group, unsigned level, char *path)
{
    entry_add(group, level, NULL, path);
}

void name_files_free(struct name_files *group)
{
    for (uint64_t i = 0; i < group->count; i++) {
        free(group->entries[i].from);
        free(group->entries[i].to);
    }
    free(group->entries);
    free(group->note);
    *group = (struct name_files){.name = group->name, .beside = group->beside};
}

/* ---- the note ---- */

/* Returns the path of the note, or of the one that is being written; NULL without memory. */
static char *note_path(const struct name_files *group, bool partial)
{
    static const char *const endings[2][2] = {{".work/naming", ".work/naming.partial"}, {".naming", ".naming.partial"}};
    return path_ended(group->name, endings[group->beside][partial]);
}

static bool line_add(struct bytes_buffer *text, const char *line)
{
    assert(!strchr(line, '\n'));
    return bytes_append(text, line, strlen(line)) && bytes_append(text, "\n", 1);
}

/* Returns false without memory. */
static bool text_make(const struct name_files *group, struct bytes_buffer *text)
{
    const size_t folder = path_folder_bytes(group->name);
    bool good = !group->failed && bytes_append(text, NAME_FILES_HEAD, strlen(NAME_FILES_HEAD));
    for (uint64_t i = 0; i < group->count && good; i++) {
        const struct name_entry *entry = &group->entries[i];
        const char level[] = {(char)('0' + entry->level), '\0'};
        good = line_add(text, level) && line_add(text, entry->from ? entry->from + folder : "") &&
               line_add(text, entry->to + folder);
    }
    return good && bytes_append(text, END, strlen(END));
}

/* Makes the note under its partial name, and brings that to storage. */
static int partial_write(const char *partial, const struct bytes_buffer *text, bool sync)
{
    int fd;
    (void)os_unlink(partial); /* of a writer that was killed */
    int system = os_open(partial, OS_WRITE_NEW, &fd);
    if (system)
        return system;
    system = os_pwrite(fd, text->bytes, text->count, 0);
    if (!system && sync)
        system = os_sync(fd);
    os_close(fd);
    return !system && sync ? os_sync_folder(partial) : system;
}

enum tokmap_status name_files_write(struct name_files *group, bool sync,
                                    enum tokmap_status (*last)(void *user, struct tokmap_error *error), void *user,
                                    struct tokmap_error *error)
{
    assert(!group->note && (group->count || group->failed));
    struct bytes_buffer text = {0};
    char *partial = note_path(group, true), *note = note_path(group, false);
    enum tokmap_status status =
        partial && note && text_make(group, &text) ? TOKMAP_OK : error_set_memory(error, "the names of files", 0);
    int system = status ? 0 : partial_write(partial, &text, sync);
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
    if (status && partial)
        (void)os_unlink(partial);
    if (!status)
        group->note = note;
    else
        free(note);
    bytes_free(&text);
    free(partial);
    return status;
}

bool name_files_pending(const struct name_files *group)
{
    struct os_stat found;
    char *note = note_path(group, false);
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
static bool is_ours(const struct name_files *group, const char *path)
{
    const char *last = path_name(group->name);
    return !strncmp(path, last, strlen(last)) && !path_is_absolute(path) && !strstr(path, "/../");
}

/* Finds the entries in the text. Returns false if it is not whole. */
static bool entries_find(struct name_files *group, char *text)
{
    char *at = text + strlen(NAME_FILES_HEAD);
    if (strncmp(text, NAME_FILES_HEAD, strlen(NAME_FILES_HEAD)) != 0)
        return false;
    while (*at && strcmp(at, END) != 0) {
        const char *level = line_take(&at), *from = level ? line_take(&at) : NULL, *to = from ? line_take(&at) : NULL;
        if (!to || !*to || (*from && !is_ours(group, from)) || !is_ours(group, to) || level[1] || *level < '0' ||
            *level >= '0' + NAME_FILES_LEVELS)
            return false;
        char *path = path_beside(group->name, to);
        if (*from)
            name_files_add(group, (unsigned)(*level - '0'), path_beside(group->name, from), path);
        else
            name_files_remove(group, (unsigned)(*level - '0'), path);
    }
    return *at && group->count;
}

static enum tokmap_status note_read(struct name_files *group, bool *found, struct tokmap_error *error)
{
    const char *note = group->note;
    struct os_stat stat;
    size_t got = 0;
    char *text = NULL;
    int fd, system = os_open(note, OS_READ_NOW, &fd);
    *found = system != ENOENT && system != ENOTDIR;
    if (!*found)
        return TOKMAP_OK;
    if (!system) {
        system = os_fstat(fd, &stat);
        text = system || stat.bytes > NOTE_MOST ? NULL : calloc(1, (size_t)stat.bytes + 1);
        if (!system && text)
            system = os_pread(fd, text, (size_t)stat.bytes, 0, &got);
        os_close(fd);
    }
    const bool whole = !system && text && entries_find(group, text);
    enum tokmap_status status = TOKMAP_OK;
    if (system)
        status = failed(system, note, "what an earlier command has left cannot be read", error);
    else if (!text || group->failed)
        status = error_set_memory(error, "the names of files", 0);
    else if (!whole)
        status = error_set(error, TOKMAP_ERROR_CORRUPT, note, TOKMAP_NO_OFFSET,
                           "an earlier command that wrote this name was interrupted, and this file, which says how to "
                           "complete its work, is damaged, or of another version; remove %s and run the command again",
                           group->beside ? "it" : "the folder");
    free(text);
    return status;
}

/* ---- the steps ---- */

struct naming {
    const struct name_files *group;
    bool sync, removed; /* removed: a file of the old output is gone */
    const char *note;   /* NULL: there is none */
    struct tokmap_error *error;
};

/* Returns the status of a step that failed, with what that means for the output. */
static enum tokmap_status step_failed(const struct naming *naming, int system, const char *path, const char *what)
{
    return error_set_system(naming->error, system, path, TOKMAP_NO_OFFSET, "%s%s", what,
                            naming->note      ? "; the new output is complete, and the next command that writes this "
                                                "name gives it its names"
                            : naming->removed ? "; the old output has already been removed"
                                              : "");
}

static enum tokmap_status folder_sync(const struct naming *naming, const char *path)
{
    const int system = naming->sync ? os_sync_folder(path) : 0;
    return system ? step_failed(naming, system, path, "the folder cannot be synced to storage") : TOKMAP_OK;
}

/* Removes a file, which may be absent. */
static enum tokmap_status discard(struct naming *naming, const char *path)
{
    const int system = os_unlink(path);
    naming->removed = naming->removed || !system;
    return system && system != ENOENT ? step_failed(naming, system, path, "a file of the old output cannot be removed")
                                      : TOKMAP_OK;
}

/* Step 1 of an entry. */
static enum tokmap_status entry_clear(struct naming *naming, const struct name_entry *entry)
{
    struct os_stat found;
    return entry->from && os_lstat(entry->from, &found) ? TOKMAP_OK : discard(naming, entry->to);
}

/* Step 2 of an entry. */
static enum tokmap_status entry_name(struct naming *naming, const struct name_entry *entry)
{
    struct os_stat found;
    if (!entry->from)
        return discard(naming, entry->to);
    const int system = os_rename(entry->from, entry->to);
    if (system && (system != ENOENT || !naming->note))
        return step_failed(naming, system, entry->to, "the finished file cannot be renamed");
    return !system || !os_lstat(entry->to, &found)
               ? TOKMAP_OK
               : error_set(naming->error, TOKMAP_ERROR_CORRUPT, entry->to, TOKMAP_NO_OFFSET,
                           "an earlier command was interrupted while it named these files, and since then this file "
                           "has been removed from '%.200s'; remove '%.200s', and run the command again",
                           entry->from, naming->note);
}

/* Does a step for all entries of a level, and brings it to storage. */
static enum tokmap_status level_do(struct naming *naming, unsigned level,
                                   enum tokmap_status (*step)(struct naming *naming, const struct name_entry *entry))
{
    const struct name_files *group = naming->group;
    enum tokmap_status status = TOKMAP_OK;
    bool any = false;
    for (uint64_t i = 0; i < group->count && !status; i++) {
        if (group->entries[i].level != level)
            continue;
        status = step(naming, &group->entries[i]);
        any = true;
    }
    return status || !any ? status : folder_sync(naming, group->name);
}

static enum tokmap_status steps_do(struct naming *naming)
{
    enum tokmap_status status = TOKMAP_OK;
    for (unsigned level = NAME_FILES_LEVELS; --level && !status;)
        status = level_do(naming, level, entry_clear);
    for (unsigned level = 0; level < NAME_FILES_LEVELS && !status; level++)
        status = level_do(naming, level, entry_name);
    return status;
}

enum tokmap_status name_files_now(struct name_files *group, bool sync, struct tokmap_error *error)
{
    assert(!group->note);
    struct naming naming = {.group = group, .sync = sync, .error = error};
    struct os_stat found;
    if (group->failed)
        return error_set_memory(error, "the names of files", 0);
    const enum tokmap_status status = steps_do(&naming);
    bool complete = true;
    for (uint64_t i = 0; i < group->count && status; i++)
        complete = complete && (!group->entries[i].from || os_lstat(group->entries[i].from, &found) == ENOENT);
    for (uint64_t i = 0; i < group->count && !complete; i++) /* without the last file they are worthless */
        if (group->entries[i].from && os_lstat(group->entries[i].from, &found) == ENOENT)
            (void)os_unlink(group->entries[i].to);
    return status;
}

/* Leaves the note, which says from now on that all is named. */
static enum tokmap_status note_keep(const struct naming *naming)
{
    char *named = path_ended(naming->group->name, ".work/" NAME_FILES_NAMED);
    const int system = named ? os_rename(naming->note, named) : 0;
    free(named);
    return !named   ? error_set_memory(naming->error, "the names of files", 0)
           : system ? failed(system, naming->note, "the file cannot be renamed", naming->error)
                    : TOKMAP_OK;
}

enum tokmap_status name_files_complete(struct name_files *group, bool sync, bool stays, bool *found,
                                       struct tokmap_error *error)
{
    assert(!stays || !group->beside);
    enum tokmap_status status = TOKMAP_OK;
    *found = group->note != NULL;
    if (!*found) {
        name_files_free(group);
        group->note = note_path(group, false);
        status = group->note ? note_read(group, found, error) : error_set_memory(error, "the names of files", 0);
    }
    const char *note = group->note;
    struct naming naming = {.group = group, .sync = sync, .note = note, .error = error};
    if (!status && *found) {
        /* The process that wrote the note may not have synced its name. */
        status = folder_sync(&naming, note);
        if (!status)
            status = steps_do(&naming);
        if (!status)
            status = stays ? note_keep(&naming) : discard(&naming, note);
        if (!status) /* or a power cut could take the journal and leave this note, and all would be packed again */
            status = folder_sync(&naming, note);
    }
    name_files_free(group);
    return status;
}
