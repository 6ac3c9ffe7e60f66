/* SPDX-License-Identifier: MIT */
#include "tokenizer_fetch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "format/name_files.h"
#include "platform/os.h"
#include "platform/process.h"
#include "remote/remote_hub.h"
#include "remote/remote_object.h"
#include "text/path.h"
#include "vocabulary/folder.h"

#define FILE_MOST ((size_t)256 << 20) /* the largest tokenizer.json of 2026 have 35 MiB */
#define COMPLETE "complete"           /* a file that is made last */

static struct fetched {
    struct fetched *next;
    char *pinned, *folder;
} * fetched; /* by this process */

/* Writes a file, which then has its name or does not exist. */
static enum tokmap_status file_write(const char *folder, const char *name, const struct bytes_buffer *body,
                                     struct tokmap_error *error)
{
    char *path = path_in(folder, name), *partial = NULL;
    uint64_t number = 0;
    int fd, system = ENOMEM;
    (void)os_random(&number, sizeof number);
    if (path && asprintf(&partial, "%s/.%016" PRIx64, folder, number) >= 0 && !(system = os_make_folders(path)) &&
        !(system = os_open(partial, OS_WRITE_NEW, &fd))) {
        system = os_write(fd, body->bytes, body->count);
        system = system ? system : name_file(fd, partial, path, true, NULL);
        os_close(fd);
        if (system)
            (void)os_unlink(partial);
    }
    free(partial);
    free(path);
    return system ? error_set_system(error, system, folder, TOKMAP_NO_OFFSET,
                                     "the tokenizer cannot be stored; set TOKMAP_CACHE to a folder for it")
                  : TOKMAP_OK;
}

/* Fetches the files that the reader of a folder looks at. */
static enum tokmap_status files_fetch(struct remote_client *client, const struct fetched *made,
                                      struct tokmap_error *error)
{
    const struct hub_fact *files;
    struct bytes_buffer body = {0};
    enum tokmap_status status = remote_hub_files(client, made->pinned, false, &files, error);
    for (uint64_t i = 0; !status && i < files->count; i++) {
        struct remote_facts facts;
        if (!folder_reads(files->files[i].path))
            continue;
        char *name = path_in(made->pinned, files->files[i].path);
        body.count = 0;
        status = name ? remote_object_get(client, name, FILE_MOST, &body, &facts, error)
                      : error_set_memory(error, "a tokenizer", 0);
        if (!status)
            status = file_write(made->folder, files->files[i].path, &body, error);
        free(name);
    }
    body.count = 0;
    if (!status)
        status = file_write(made->folder, COMPLETE, &body, error);
    bytes_free(&body);
    return status;
}

/* Finds the files on this machine, or fetches them. */
static enum tokmap_status folder_find(struct fetched *made, const char *name, struct tokmap_error *error)
{
    struct remote_object object;
    struct remote_client client;
    struct os_stat found;
    enum tokmap_status status = remote_hub_pin(&name, false, &made->pinned, os_is_stopped, NULL, NULL, error);
    if (status || (status = remote_object_of(name, &object, error)))
        return status;
    if (*object.key)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, name, TOKMAP_NO_OFFSET,
                         "a tokenizer is named by its repository; write hf://OWNER/NAME or hf://OWNER/NAME@REVISION");
    char *base = path_user_cache(), *mark = NULL;
    const int owner = (int)strcspn(object.bucket, "/"), rest = (int)object.bucket_bytes - owner - 1;
    if (!base || asprintf(&made->folder, "%s/hub/models--%.*s--%.*s/snapshots/%.*s", base, owner, object.bucket, rest,
                          object.bucket + owner + 1, HUB_COMMIT, object.revision) < 0)
        status = error_set(error, TOKMAP_ERROR_IO, name, TOKMAP_NO_OFFSET,
                           "no folder is named in which the tokenizer can be kept, and HOME is not set; set "
                           "TOKMAP_CACHE");
    else if ((mark = path_in(made->folder, COMPLETE)) && os_stat(mark, &found)) {
        remote_client_init(&client, os_is_stopped, NULL, NULL);
        status = files_fetch(&client, made, error);
        remote_client_free(&client);
    }
    free(mark);
    free(base);
    made->pinned[strlen(made->pinned) - 1] = '\0';
    return status;
}

enum tokmap_status tokenizer_fetch(const char *name, const char **pinned, const char **path, struct tokmap_error *error)
{
    struct fetched *made;
    *pinned = *path = name;
    if (remote_kind(name) != REMOTE_HUB)
        return TOKMAP_OK;
    made = calloc(1, sizeof *made);
    if (!made)
        return error_set_memory(error, "a tokenizer", sizeof *made);
    made->next = fetched;
    fetched = made;
    const enum tokmap_status status = folder_find(made, name, error);
    if (!status) {
        *pinned = made->pinned;
        *path = made->folder;
    }
    return status;
}
