/* SPDX-License-Identifier: MIT */
/* work_busy.c - see work_busy.h. */
#include "work_busy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "format/shard_file.h"
#include "platform/os.h"
#include "task_status.h"
#include "text/path.h"

/* Returns true if a process has locked a file. The path is freed. A shared lock is tried: it does not keep other
 * processes from looking at the same time. Without memory nothing is said to be locked; what follows fails for the same
 * reason. */
static bool is_locked(char *path)
{
    int fd, system = path ? os_open(path, OS_READ_NOW, &fd) : ENOMEM;
    if (!system) {
        system = os_lock_shared(fd);
        os_close(fd);
    }
    free(path);
    return system == EWOULDBLOCK;
}

bool work_is_locked(const char *name)
{
    return is_locked(path_ended(name, ".partial")) || is_locked(shard_file_path(name, SHARD_INDEX, SHARD_PARTIAL));
}

enum tokmap_status work_locked_error(const char *name, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_BUSY, name, TOKMAP_NO_OFFSET,
                     "another process is writing this output; wait for it, or choose another name");
}

/* Looks for a task at work. watched: where no lock says whether there is one, its counter is watched. */
static enum tokmap_status tasks_check(const char *folder, bool watched, struct tokmap_error *error)
{
    struct task_status *list = NULL;
    size_t count = 0;
    enum tokmap_status status = task_status_list(folder, watched, &list, &count, error);
    if (status == TOKMAP_ERROR_NOT_FOUND) /* the folder is gone */
        return TOKMAP_OK;
    for (size_t i = 0; i < count && !status; i++)
        if (list[i].moving)
            status = error_set(error, TOKMAP_ERROR_BUSY, folder, TOKMAP_NO_OFFSET,
                               "process %" PRIu64 " on host %s is at work here, as task %" PRIu64 " of %" PRIu64
                               "; wait for it, or choose another name",
                               list[i].process, *list[i].host ? list[i].host : "?", list[i].task, list[i].tasks);
    free(list);
    return status;
}

enum tokmap_status work_idle_check(const char *name, const char *folder, struct tokmap_error *error)
{
    enum tokmap_status status = tasks_check(folder, true, error);
    if (!status && (is_locked(path_in(folder, "journal")) || is_locked(path_in(folder, "journal.new"))))
        status = work_locked_error(name, error);
    return status ? status : tasks_check(folder, false, error); /* of tasks that began while others were watched */
}
