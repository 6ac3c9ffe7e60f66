/* SPDX-License-Identifier: MIT */
#include "pack_upload.h"

#include <stdlib.h>
#include <string.h>

#include "commands/copy/dataset_copy.h"
#include "common/error.h"
#include "encode/split.h"
#include "platform/os.h"
#include "platform/process.h"
#include "remote/remote_upload.h"
#include "text/path.h"

static const char lacking[] = "the address of an output"; /* in messages about memory */

int pack_upload_begin(struct pack_upload *upload, const struct cli_command *command, const char *output,
                      const char **local)
{
    struct tokmap_error error;
    const char *name = path_name(output);
    *local = output;
    if (!remote_is(output))
        return !upload->folder ? 0
                               : cli_misused(command, "--work-folder is about an output in object storage (-o "
                                                      "s3://BUCKET/NAME)");
    struct remote_object object;
    if (remote_written_check(output, &error) || remote_object_of(output, &object, &error))
        return cli_failed(command->program, &error);
    if (!*object.key || !*name || !strcmp(name, ".") || !strcmp(name, ".."))
        return cli_misused(command, "-o '%s': the address names no output; give a prefix, such as %.5s%.*s/NAME",
                           output, output, (int)object.bucket_bytes, object.bucket);
    upload->to = strdup(output);
    upload->made = upload->folder ? strdup(upload->folder) : path_ended(name, ".upload");
    upload->prefix = upload->made ? path_in(upload->made, name) : NULL;
    *local = upload->prefix;
    if (upload->to && upload->prefix)
        return 0;
    (void)error_set_memory(&error, lacking, 0);
    return cli_failed(command->program, &error);
}

enum tokmap_status pack_upload_prefix(struct pack_upload *upload, const char *prefix, struct tokmap_error *error)
{
    /* An ending that is dropped here is dropped there. */
    upload->to[strlen(upload->to) - (strlen(upload->prefix) - strlen(prefix))] = '\0';
    free(upload->prefix);
    upload->prefix = strdup(prefix);
    return upload->prefix ? TOKMAP_OK : error_set_memory(error, lacking, 0);
}

void pack_upload_free(struct pack_upload *upload)
{
    if (upload->made && !upload->folder) /* if it is empty */
        (void)os_remove_folder(upload->made);
    free(upload->to);
    free(upload->made);
    free(upload->prefix);
    bytes_free(&upload->sent);
    upload->to = upload->made = upload->prefix = NULL;
}

static char *ended(const char *name, const char *set, const char *ending)
{
    char *dotted = set ? path_ended(name, ".") : strdup(name), *whole = NULL;
    char *named = dotted ? path_ended(dotted, set ? set : "") : NULL;
    if (named)
        whole = path_ended(named, ending);
    free(dotted);
    free(named);
    return whole;
}

static enum tokmap_status set_check(struct pack_upload *upload, const char *set, struct remote_client *client,
                                    struct tokmap_error *error)
{
    static const char *const endings[] = {"", ".tmx"};
    enum tokmap_status status = TOKMAP_OK;
    for (size_t i = 0; i < 2 && !status; i++) {
        struct remote_facts facts;
        char *name = ended(upload->to, set, endings[i]);
        status = name ? remote_object_find(client, name, &facts, error) : error_set_memory(error, lacking, 0);
        if (!status)
            status = error_set(error, TOKMAP_ERROR_EXISTS, name, TOKMAP_NO_OFFSET,
                               "there is a dataset of this name; give --force to replace it, or choose another name");
        else if (status == TOKMAP_ERROR_NOT_FOUND)
            status = TOKMAP_OK;
        free(name);
    }
    return status;
}

struct trial {
    const char *key; /* of the object */
    struct bytes_buffer id;
};

static enum tokmap_status trial_found(void *user, const char *key, const char *id, struct tokmap_error *error)
{
    struct trial *trial = user;
    if (strcmp(key, trial->key) != 0 || trial->id.count)
        return TOKMAP_OK;
    return bytes_append(&trial->id, id, strlen(id) + 1) ? TOKMAP_OK : error_set_memory(error, lacking, 0);
}

/* Begins an upload without parts, and gives it up, which shows that this user may write there. One that a killed
 * process has left is given up first. */
static enum tokmap_status writable_check(const struct pack_upload *upload, struct remote_client *client,
                                         struct tokmap_error *error)
{
    struct remote_object object = {.key = ""};
    struct trial trial = {.id = {0}};
    enum tokmap_status status = remote_object_of(upload->to, &object, error);
    trial.key = object.key;
    if (!status)
        status = remote_uploads_find(client, upload->to, trial_found, &trial, error);
    for (int i = trial.id.count ? 0 : 1; i < 2 && !status; i++) {
        if (i)
            status = remote_upload_begin(client, upload->to, &trial.id, error);
        if (!status)
            status = remote_upload_abort(client, upload->to, (const char *)trial.id.bytes, error);
        trial.id.count = 0;
    }
    bytes_free(&trial.id);
    return status;
}

enum tokmap_status pack_upload_check(struct pack_upload *upload, bool continues, const struct split *split,
                                     struct tokmap_error *error)
{
    struct remote_client client;
    enum tokmap_status status = TOKMAP_OK;
    remote_client_init(&client, os_is_stopped, NULL, NULL);
    for (uint32_t i = 0; i < (split ? split->count : 1) && !continues && !upload->force && !status; i++)
        status = set_check(upload, split ? split->sets[i].name : NULL, &client, error);
    if (!status)
        status = writable_check(upload, &client, error);
    remote_client_free(&client);
    return status;
}

static void progressed(void *user, uint64_t done, uint64_t total)
{
    struct pack_upload *upload = user;
    upload->progress.total = total;
    cli_progress_update(&upload->progress, done);
}

/* Sends a set of this machine. */
static enum tokmap_status set_send(struct pack_upload *upload, const char *set, struct tokmap_error *error)
{
    struct dataset_copy_result result;
    char *to = path_ended(upload->to, set + strlen(upload->prefix));
    const struct dataset_copy_options options = {.from = set,
                                                 .to = to,
                                                 .connections = COPY_CONNECTIONS,
                                                 .replace = upload->force,
                                                 .progress = progressed,
                                                 .user = upload};
    cli_progress_start(&upload->progress, "sending", NULL, 0, upload->quiet ? CLI_PROGRESS_NONE : upload->shown);
    const enum tokmap_status status = to ? dataset_copy(&options, &result, error) : error_set_memory(error, lacking, 0);
    cli_progress_end(&upload->progress);
    upload->failed = status != TOKMAP_OK;
    free(to);
    return status;
}

enum tokmap_status pack_upload_send(struct pack_upload *upload, const char *shard, bool numbered,
                                    struct tokmap_error *error)
{
    const char *dash = numbered ? strrchr(shard, '-') : NULL;
    char *set = dash ? strndup(shard, (size_t)(dash - shard)) : strdup(shard);
    if (!set)
        return error_set_memory(error, lacking, 0);
    const size_t bytes = strlen(set) + 1;
    enum tokmap_status status = TOKMAP_OK;
    if (!upload->sent.count || !memmem(upload->sent.bytes, upload->sent.count, set, bytes)) {
        status = set_send(upload, set, error);
        if (!status && !bytes_append(&upload->sent, set, bytes))
            status = error_set_memory(error, lacking, 0);
    }
    free(set);
    return status;
}

enum tokmap_status pack_upload_end(struct pack_upload *upload, const struct split *split, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    const uint32_t sets = split ? split->count : 1;
    for (uint32_t i = 0; i < 2 * sets && !status; i++) {
        char *set = ended(upload->prefix, split ? split->sets[i % sets].name : NULL, "");
        status = !set       ? error_set_memory(error, lacking, 0)
                 : i < sets ? pack_upload_send(upload, set, false, error)
                            : dataset_copy_remove(set, error);
        free(set);
    }
    return status;
}
