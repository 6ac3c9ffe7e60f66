/* SPDX-License-Identifier: MIT */
#include "remote_hub.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "common/hash.h"
#include "platform/os.h"
#include "remote_url.h"
#include "text/json_scan.h"
#include "text/path.h"

#define PAGE_MOST ((size_t)16 << 20) /* 1,000 files have about 300 KiB */
#define PAGES_MOST 20000
#define FILES_MOST 1000000
#define PATH_MOST 1024

static bool busy;              /* a thread has fact_lock(), and perhaps asks the Hub; accessed atomically */
static struct hub_fact *facts; /* accessed atomically; nothing is removed */

/* Finds a fact, or adds an empty one, and keeps other threads from it, lest they ask for the same. NULL without memory.
 * fact_unlock() must follow in any case. */
static struct hub_fact *fact_lock(const char *name, bool whole)
{
    while (__atomic_test_and_set(&busy, __ATOMIC_ACQUIRE))
        (void)os_wait_readable(-1, 1000000);
    for (struct hub_fact *fact = facts; fact; fact = fact->next)
        if (fact->whole && fact->known ? !strncmp(name, fact->name, strlen(fact->name))
                                       : whole == fact->whole && !strcmp(name, fact->name))
            return fact;
    struct hub_fact *made = calloc(1, sizeof *made);
    char *copy = strdup(name);
    if (!made || !copy) {
        free(made);
        free(copy);
        return NULL;
    }
    *made = (struct hub_fact){.next = facts, .name = copy, .whole = whole};
    __atomic_store_n(&facts, made, __ATOMIC_RELEASE);
    return made;
}

static void fact_unlock(struct hub_fact *fact, bool known)
{
    if (fact)
        __atomic_store_n(&fact->known, known, __ATOMIC_RELEASE);
    __atomic_clear(&busy, __ATOMIC_RELEASE);
}

static enum tokmap_status no_memory(struct tokmap_error *error)
{
    return error_set_memory(error, "what the Hub says", 0);
}

static enum tokmap_status damaged(const struct remote_client *client, const char *what, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_CORRUPT, client->shown, TOKMAP_NO_OFFSET,
                     "the answer of %.200s %s; check HF_ENDPOINT, or name another revision", client->account.endpoint,
                     what);
}

/* Makes a request for what the API says of a repository. path: is escaped, with its slashes if `slashes`. */
static bool query_make(struct bytes_buffer *query, const struct remote_object *object, const char *what,
                       const char *path, size_t bytes, bool slashes, const char *options)
{
    return bytes_append(query, "api/models/", strncmp(object->bucket, "datasets/", 9) ? 11 : 4) &&
           bytes_append(query, object->bucket, object->bucket_bytes) && bytes_append(query, what, strlen(what)) &&
           remote_escape(query, path, bytes, slashes) && bytes_append(query, options, strlen(options) + 1);
}

/* Sends a request, or if `more` one for the page that the last answer has named. *absent: the repository has no such
 * path. */
static enum tokmap_status api_get(struct remote_client *client, const char *name, struct bytes_buffer *query, bool more,
                                  struct bytes_buffer *page, bool *absent, struct tokmap_error *error)
{
    const struct remote_ask ask = {.method = HTTP_GET};
    const char *next = more ? http_address(client->http, true) : NULL;
    struct http_answer answer;
    if (next && (!remote_account_is_at(&client->account, next) || !strcmp(next, (const char *)client->url.bytes)))
        return damaged(client, "continues on another host, or with itself", error);
    if (next) {
        query->count = 0;
        next += strlen(client->account.endpoint) + 1;
        if (!bytes_append(query, next, strlen(next) + 1))
            return no_memory(error);
    }
    page->count = 0;
    enum tokmap_status status = remote_client_name(client, name, (const char *)query->bytes, true, error);
    if (!status)
        status = remote_client_fetch(client, &ask, PAGE_MOST, page, &answer, error);
    *absent = !status && answer.status == 404 && !strcmp(answer.code, "EntryNotFound");
    return status || answer.status == 200 || *absent ? status : remote_client_refused(client, &answer, error);
}

/* ---- pins ---- */

/* Asks which commit a revision is. */
static enum tokmap_status commit_ask(struct hub_fact *pin, struct remote_client *client, struct tokmap_error *error)
{
    struct remote_object object;
    struct bytes_buffer query = {0}, page = {0};
    struct json_scan scan;
    struct json_string member, value = {0};
    bool absent;
    enum tokmap_status status = remote_object_of(pin->name, &object, error);
    if (!status)
        status = query_make(&query, &object, "/revision/", object.revision, object.revision_bytes, false, "?expand=sha")
                     ? api_get(client, pin->name, &query, false, &page, &absent, error)
                     : no_memory(error);
    if (!status) {
        json_begin(&scan, (const char *)page.bytes, page.count);
        if (json_enter_object(&scan))
            while (json_member(&scan, &member))
                (void)(json_name_is(&member, "sha") ? json_text(&scan, &value) : json_skip(&scan));
        if (json_end(&scan) && value.count == HUB_COMMIT && hub_is_commit(value.bytes))
            memcpy(pin->commit, value.bytes, HUB_COMMIT);
        else
            status = damaged(client, "does not name a commit", error);
    }
    bytes_free(&query);
    bytes_free(&page);
    return status;
}

enum tokmap_status remote_hub_pin(const char **name, bool dataset, char **pinned, bool (*stop)(void *user), void *user,
                                  const struct remote_watch *watch, struct tokmap_error *error)
{
    struct remote_object object;
    struct remote_client client;
    char *revision = NULL;
    if (remote_kind(*name) != REMOTE_HUB)
        return TOKMAP_OK;
    enum tokmap_status status = remote_object_of(*name, &object, error);
    if (!status && dataset != !strncmp(object.bucket, "datasets/", 9))
        status = error_set(error, TOKMAP_ERROR_ARGUMENT, *name, TOKMAP_NO_OFFSET,
                           "texts are in datasets of the Hugging Face Hub, and tokenizers in models; write "
                           "hf://datasets/OWNER/NAME/PATH for texts, hf://OWNER/NAME for a tokenizer");
    if (status)
        return status;
    const int root = (int)object.root_bytes, bytes = 5 + (int)object.bucket_bytes;
    const char *commit = object.revision;
    free(*pinned);
    *pinned = NULL;
    if (!object.pinned) {
        if (asprintf(&revision, "%.*s%s", root, *name, object.revision_bytes ? "" : "@main") < 0)
            return no_memory(error);
        remote_client_init(&client, stop, user, watch);
        struct hub_fact *pin = fact_lock(revision, false);
        status = !pin ? no_memory(error) : pin->known ? TOKMAP_OK : commit_ask(pin, &client, error);
        fact_unlock(pin, !status);
        remote_client_free(&client);
        free(revision);
        commit = pin ? pin->commit : NULL;
    }
    if (!status && asprintf(pinned, "%.*s@%.*s/%s", bytes, *name, HUB_COMMIT, commit, object.key) < 0)
        status = no_memory(error);
    *name = status ? *name : *pinned;
    return status;
}

const struct hub_fact *remote_hub_pin_next(const struct hub_fact *pin)
{
    pin = pin ? pin->next : __atomic_load_n(&facts, __ATOMIC_ACQUIRE);
    while (pin && !(__atomic_load_n(&pin->known, __ATOMIC_ACQUIRE) && *pin->commit))
        pin = pin->next;
    return pin;
}

void remote_hub_pin_take(const char *revision, const char *commit)
{
    struct hub_fact *pin = fact_lock(revision, false);
    if (pin && !pin->known)
        memcpy(pin->commit, commit, HUB_COMMIT);
    fact_unlock(pin, true);
}

/* ---- files ---- */

static int file_compare(const void *a, const void *b)
{
    return strcmp(((const struct hub_file *)a)->path, ((const struct hub_file *)b)->path);
}

/* Copies a path of an answer. Returns NULL if it is not one below the folder, or without memory. */
static char *path_copy(const struct json_string *string, const char *folder)
{
    size_t lone, first, bytes = string->count;
    struct remote_object object;
    char *path = bytes && bytes < PATH_MOST ? path_join("hf://o/n/", 9, string->bytes, bytes, "") : NULL;
    if (path && string->escaped)
        path[9 + (bytes = json_unescape(path + 9, bytes, &lone, &first))] = '\0';
    if (path && strlen(path + 9) == bytes && path[8 + bytes] != '/' && !strncmp(path + 9, folder, strlen(folder)) &&
        !remote_object_of(path, &object, NULL))
        return memmove(path, path + 9, bytes + 1);
    free(path);
    return NULL;
}

/* Reads a page of a list, and adds its files. Returns false if it is not valid. */
static bool page_read(struct hub_fact *fact, const struct bytes_buffer *page, const char *folder)
{
    struct json_scan scan;
    bool good = true;
    json_begin(&scan, (const char *)page->bytes, page->count);
    if (!json_enter_array(&scan))
        return false;
    while (good && json_element(&scan)) {
        struct json_string member, type = {0}, path = {0}, id = {0};
        uint64_t bytes = UINT64_MAX;
        if (json_enter_object(&scan))
            while (json_member(&scan, &member))
                (void)(json_name_is(&member, "type")   ? json_text(&scan, &type)
                       : json_name_is(&member, "path") ? json_text(&scan, &path)
                       : json_name_is(&member, "oid")  ? json_text(&scan, &id)
                       : json_name_is(&member, "size") ? json_unsigned(&scan, &bytes)
                                                       : json_skip(&scan));
        if (scan.fault.reason || !type.bytes || !json_name_is(&type, "file"))
            continue;
        char *copy = bytes == UINT64_MAX ? NULL : path_copy(&path, folder);
        good = copy && list_room(&fact->files, fact->count, &fact->capacity, sizeof *fact->files);
        if (good)
            fact->files[fact->count++] = (struct hub_file){copy, bytes, id.count ? hash64(id.bytes, id.count) : 0};
        else
            free(copy);
    }
    return good && json_end(&scan);
}

/* Asks for all pages of a folder. */
static enum tokmap_status files_ask(struct hub_fact *fact, struct remote_client *client,
                                    const struct remote_object *object, struct tokmap_error *error)
{
    const char *folder = object->key;
    struct bytes_buffer query = {0}, page = {0};
    bool absent = false;
    char *path = strndup(object->revision, strlen(object->revision) - 1); /* COMMIT/FOLDER without its slash */
    enum tokmap_status status = path && query_make(&query, object, "/tree/", path, strlen(path), true,
                                                   fact->whole ? "?recursive=true&expand=false&limit=1000"
                                                               : "?recursive=false&expand=false&limit=1000")
                                    ? TOKMAP_OK
                                    : no_memory(error);
    free(path);
    for (uint64_t pages = 0; !status; pages++) {
        status = api_get(client, fact->name, &query, pages != 0, &page, &absent, error);
        if (!status && !absent && !page_read(fact, &page, folder))
            status =
                damaged(client,
                        "lists files wrongly: it is not JSON, or a file has no size, or a path that is long, has a "
                        "part of dots, or is not below the folder",
                        error);
        if (status || absent || !http_address(client->http, true))
            break;
        if (pages == PAGES_MOST || fact->count > FILES_MOST)
            status = damaged(client, "is a list of more than a million files or 20,000 pages", error);
    }
    bytes_free(&query);
    bytes_free(&page);
    if (fact->count)
        qsort(fact->files, fact->count, sizeof *fact->files, file_compare);
    for (uint64_t i = 1; i < fact->count && !status; i++)
        if (!file_compare(&fact->files[i - 1], &fact->files[i]))
            status = damaged(client, "lists a file twice", error);
    while (status && fact->count)
        free(fact->files[--fact->count].path);
    return status;
}

enum tokmap_status remote_hub_files(struct remote_client *client, const char *folder, bool whole,
                                    const struct hub_fact **files, struct tokmap_error *error)
{
    struct remote_object object;
    enum tokmap_status status = remote_object_of(folder, &object, error);
    if (status)
        return status;
    struct hub_fact *fact = fact_lock(folder, whole);
    status = !fact ? no_memory(error) : fact->known ? TOKMAP_OK : files_ask(fact, client, &object, error);
    fact_unlock(fact, !status);
    *files = fact;
    return status;
}
