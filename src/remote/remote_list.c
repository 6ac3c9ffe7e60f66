/* SPDX-License-Identifier: MIT */
#include "remote_list.h"

#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "common/hash.h"
#include "remote_hub.h"
#include "remote_url.h"
#include "remote_xml.h"
#include "text/decimal.h"
#include "text/path.h"
#include "text/path_glob.h"

#define PAGE_MOST ((size_t)16 << 20) /* 1,000 keys of 1 KiB in escapes have about 4 MiB */
#define KEY_MOST 1024
#define COMPONENT_MOST 511 /* longer ones are not compared by path_glob.h */
#define EMPTY_PAGES_MOST 100000

struct remote_list {
    const char *name;
    struct remote_object object;
    struct remote_client client;
    size_t prefix_bytes; /* of the key: what all keys begin with */
    size_t stem;         /* of a path: up to the slash that follows the bucket */
    size_t base;
    char *glob;                  /* "/" and the pattern, or NULL */
    bool flat;                   /* keys with a slash after the prefix cannot match */
    struct bytes_buffer page;    /* the document */
    struct xml_scan scan;        /* in it */
    bool has_page, more;         /* more: further pages follow */
    bool escaped;                /* the keys of the page are, as the page says */
    bool known, truncated;       /* the page says whether others follow; they do, */
    struct bytes_buffer next;    /* with this token */
    uint64_t empty_pages;        /* pages without a key, in a row */
    struct bytes_buffer token;   /* of the next page */
    struct bytes_buffer path;    /* of the last object, with a zero byte that does not count */
    struct bytes_buffer key;     /* of the object that is being read */
    const struct hub_fact *tree; /* of a repository, in place of pages, once it was asked for; */
    uint64_t file;               /* the next file of it */
};

bool remote_is_list(const char *name)
{
    struct remote_object object;
    const enum remote_kind kind = remote_kind(name);
    if (kind == REMOTE_HUB && !remote_object_of(name, &object, NULL))
        return !*object.key || name[strlen(name) - 1] == '/' || strpbrk(object.key, "*?[");
    if (kind != REMOTE_S3 && kind != REMOTE_GS)
        return false;
    const char *slash = strchr(name + 5, '/');
    return !slash || name[strlen(name) - 1] == '/' || strpbrk(slash, "*?[");
}

enum tokmap_status remote_list_open(struct remote_list **list, const char *name, bool patterns,
                                    bool (*stop)(void *user), void *user, const struct remote_watch *watch,
                                    struct tokmap_error *error)
{
    struct remote_list *made = calloc(1, sizeof *made);
    *list = NULL;
    if (!made)
        return error_set_memory(error, "a list of objects", sizeof *made);
    remote_client_init(&made->client, stop, user, watch);
    const enum tokmap_status status = remote_object_of(name, &made->object, error);
    if (status) {
        remote_list_close(made);
        return status;
    }
    const char *key = made->object.key;
    made->name = name;
    made->prefix_bytes = patterns ? strcspn(key, "*?[") : strlen(key);
    made->stem = made->object.root_bytes + 1;
    made->base = made->prefix_bytes;
    while (made->base && key[made->base - 1] != '/')
        made->base--;
    made->base += made->stem;
    made->more = true;
    const char *rest = key + made->prefix_bytes;
    if (*rest) {
        const size_t bytes = strlen(key);
        made->flat = !strchr(rest, '/') && !strstr(rest, "**");
        made->glob = malloc(bytes + 2);
        if (made->glob) {
            made->glob[0] = '/';
            memcpy(made->glob + 1, key, bytes + 1);
        }
    }
    if (!bytes_append(&made->path, name, made->stem - 1) || !bytes_append(&made->path, "/", 2) ||
        (*rest && !made->glob)) {
        remote_list_close(made);
        return error_set_memory(error, "a list of objects", 0);
    }
    made->path.count = made->stem;
    *list = made;
    return TOKMAP_OK;
}

void remote_list_close(struct remote_list *list)
{
    if (!list)
        return;
    remote_client_free(&list->client);
    bytes_free(&list->page);
    bytes_free(&list->token);
    bytes_free(&list->next);
    bytes_free(&list->path);
    bytes_free(&list->key);
    free(list->glob);
    free(list);
}

size_t remote_list_base(const struct remote_list *list)
{
    return list->base;
}

static enum tokmap_status damaged(const struct remote_list *list, const char *what, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_CORRUPT, list->name, TOKMAP_NO_OFFSET,
                     "the server's list of objects %s; name the objects themselves", what);
}

/* Looks for what a page says of itself, before its objects or after them. Servers that do not know encoding-type send
 * keys as they are, and do not say EncodingType. */
static void page_look(struct remote_list *list)
{
    struct bytes_buffer text = {0};
    struct xml_scan *scan = &list->scan;
    bool good = true;
    list->escaped = list->known = list->truncated = false;
    list->next.count = 0;
    xml_begin(scan, (const char *)list->page.bytes, list->page.count);
    for (enum xml_event event; good && (event = xml_next(scan)) != XML_END;) {
        good = event != XML_WRONG;
        if (event != XML_OPEN || scan->depth != 2)
            continue;
        if (xml_is(scan, "IsTruncated")) {
            list->known = good = xml_element(scan, &text);
            list->truncated = text.count == 4 && !memcmp(text.bytes, "true", 4);
        } else if (xml_is(scan, "NextContinuationToken")) {
            good = xml_element(scan, &list->next);
        } else if (xml_is(scan, "EncodingType")) {
            good = xml_element(scan, &text);
            list->escaped = text.count == 3 && !memcmp(text.bytes, "url", 3);
        }
    }
    list->known = list->known && good;
    bytes_free(&text);
    xml_begin(scan, (const char *)list->page.bytes, list->page.count);
}

/* Asks for the next page. The names of a query are in byte order, because that is how they are signed. */
static enum tokmap_status page_get(struct remote_list *list, struct tokmap_error *error)
{
    const struct remote_ask ask = {.method = HTTP_GET};
    struct http_answer answer;
    static const char token[] = "continuation-token=", type[] = "encoding-type=url&list-type=2&prefix=";
    struct bytes_buffer query = {0};
    bool good = true;
    if (list->token.count)
        good = bytes_append(&query, token, sizeof token - 1) &&
               remote_escape(&query, (const char *)list->token.bytes, list->token.count, false) &&
               bytes_append(&query, "&", 1);
    if (list->flat)
        good = good && bytes_append(&query, "delimiter=%2F&", 14);
    good = good && bytes_append(&query, type, sizeof type - 1) &&
           remote_escape(&query, list->object.key, list->prefix_bytes, false) && bytes_append(&query, "", 1);
    list->page.count = 0;
    enum tokmap_status status =
        good ? remote_client_name(&list->client, list->name, (const char *)query.bytes, false, error)
             : error_set_memory(error, "a list of objects", 0);
    if (!status)
        status = remote_client_fetch(&list->client, &ask, PAGE_MOST, &list->page, &answer, error);
    if (!status && answer.status != 200)
        status = remote_client_refused(&list->client, &answer, error);
    bytes_free(&query);
    if (!status)
        page_look(list);
    return status;
}

/* Replaces %XX, and + by a space, in place. Returns false if an escape is not valid, or names a zero byte. */
static bool unescape(struct bytes_buffer *text)
{
    static const char digits[] = "0123456789ABCDEFabcdef";
    size_t filled = 0;
    for (size_t i = 0; i < text->count; i++) {
        uint8_t byte = text->bytes[i];
        if (byte == '%') {
            uint8_t value = 0;
            if (text->count - i < 3)
                return false;
            for (int k = 0; k < 2; k++) {
                const char *found = memchr(digits, text->bytes[++i], sizeof digits - 1);
                if (!found)
                    return false;
                const size_t digit = (size_t)(found - digits);
                value = (uint8_t)(value * 16 + (digit < 16 ? digit : digit - 6));
            }
            byte = value;
        } else if (byte == '+') {
            byte = ' ';
        }
        if (!byte)
            return false;
        text->bytes[filled++] = byte;
    }
    text->count = filled;
    return true;
}

/* Reads one element <Contents>: list->key, *size, and *tag. Returns false if it lacks one of the first two, or is not
 * valid. */
static bool object_read(struct remote_list *list, uint64_t *size, uint64_t *tag)
{
    struct xml_scan *scan = &list->scan;
    const unsigned depth = scan->depth;
    struct bytes_buffer number = {0}, text = {0};
    bool has_key = false, has_size = false, good = true;
    *tag = 0;
    while (good) {
        const enum xml_event event = xml_next(scan);
        if (event == XML_CLOSE && scan->depth < depth)
            break;
        good = event != XML_WRONG && event != XML_END;
        if (event != XML_OPEN || scan->depth != depth + 1)
            continue;
        if (xml_is(scan, "Key"))
            has_key = good = !has_key && xml_element(scan, &list->key) && (!list->escaped || unescape(&list->key));
        else if (xml_is(scan, "Size"))
            has_size = good = !has_size && xml_element(scan, &number) &&
                              decimal_parse((const char *)number.bytes, number.count, size);
        else if (xml_is(scan, "ETag") && (good = xml_element(scan, &text)))
            *tag = text.count ? hash64(text.bytes, text.count) : 0;
    }
    bytes_free(&number);
    bytes_free(&text);
    return good && has_key && has_size;
}

/* Returns true if the key is the next one: below the prefix, and after the last one. */
static bool key_is_next(const struct remote_list *list)
{
    const struct bytes_buffer *key = &list->key;
    const size_t last = list->path.count - list->stem;
    if (!key->count || key->count > KEY_MOST || key->count < list->prefix_bytes ||
        memcmp(key->bytes, list->object.key, list->prefix_bytes) != 0)
        return false;
    const size_t both = key->count < last ? key->count : last;
    const int order = memcmp(key->bytes, list->path.bytes + list->stem, both);
    return order > 0 || (order == 0 && key->count > last);
}

/* Makes the path of the key. */
static bool path_make(struct remote_list *list)
{
    list->path.count = list->stem;
    const bool good = bytes_append(&list->path, list->key.bytes, list->key.count) && bytes_append(&list->path, "", 1);
    list->path.count -= good;
    return good;
}

/* Finds out whether the object is one that the name stands for. */
static enum tokmap_status object_choose(const struct remote_list *list, bool *chosen, struct tokmap_error *error)
{
    const char *path = (const char *)list->path.bytes, *key = path + list->stem;
    *chosen = list->key.bytes[list->key.count - 1] != '/';
    if (!*chosen || !list->glob || !strcmp(key, list->glob + 1))
        return TOKMAP_OK;
    for (const char *at = key; *at; at += strspn(at, "/")) {
        const size_t bytes = strcspn(at, "/");
        if (bytes > COMPONENT_MOST)
            return error_set(error, TOKMAP_ERROR_LIMIT, path, TOKMAP_NO_OFFSET,
                             "a part of this key has more than %d bytes between its slashes, and is not compared with "
                             "patterns; name a prefix that ends with a slash instead",
                             COMPONENT_MOST);
        at += bytes;
    }
    *chosen = path_glob_file(list->glob, key);
    return TOKMAP_OK;
}

/* Ends the page, and takes the token of the next one. */
static enum tokmap_status page_end(struct remote_list *list, struct tokmap_error *error)
{
    const struct bytes_buffer *next = &list->next;
    const bool same =
        next->count == list->token.count && (!next->count || !memcmp(next->bytes, list->token.bytes, next->count));
    if (!list->known)
        return damaged(list, "does not say whether more follows", error);
    list->has_page = false;
    list->more = list->truncated;
    if (list->more && (!next->count || same || ++list->empty_pages > EMPTY_PAGES_MOST))
        return damaged(list, "has no end, or cannot be continued", error);
    list->token.count = 0;
    return bytes_append(&list->token, next->bytes, next->count) ? TOKMAP_OK
                                                                : error_set_memory(error, "a list of objects", 0);
}

/* Reads the page up to its next object, or to its end. *found: there is an object. */
static enum tokmap_status page_read(struct remote_list *list, bool *found, uint64_t *size, uint64_t *tag,
                                    struct tokmap_error *error)
{
    struct xml_scan *scan = &list->scan;
    *found = false;
    for (;;) {
        const enum xml_event event = xml_next(scan);
        if (event == XML_WRONG || event == XML_END)
            return event == XML_END ? TOKMAP_END : damaged(list, "is not valid XML", error);
        if (event != XML_OPEN)
            continue;
        if (scan->depth == 1 && !xml_is(scan, "ListBucketResult"))
            return damaged(list, "is no ListBucketResult", error);
        if (scan->depth != 2 || !xml_is(scan, "Contents"))
            continue;
        if (!object_read(list, size, tag))
            return damaged(list, "has an entry without a valid key and size", error);
        if (!key_is_next(list))
            return damaged(list, "is not sorted by the bytes of the keys, or has keys that were not asked for", error);
        list->empty_pages = 0;
        *found = true;
        return path_make(list) ? TOKMAP_OK : error_set_memory(error, "a list of objects", 0);
    }
}

/* Does what remote_list_next() does for the Hub, whose lists have another order than that of their bytes. */
static enum tokmap_status hub_next(struct remote_list *list, uint64_t *bytes, uint64_t *tag, struct tokmap_error *error)
{
    bool chosen = false;
    enum tokmap_status status = TOKMAP_OK;
    if (!list->tree) {
        char *folder = path_join(list->name, list->base - 1, "", 0, ""); /* the last slash may be missing */
        status = folder ? remote_hub_files(&list->client, folder, !list->flat, &list->tree, error)
                        : error_set_memory(error, "a list of files", 0);
        free(folder);
    }
    while (!status && !chosen) {
        if (list->file == list->tree->count)
            return TOKMAP_END;
        const struct hub_file *file = &list->tree->files[list->file++];
        if (strncmp(file->path, list->object.key, list->prefix_bytes) != 0)
            continue;
        list->key.count = 0;
        if (!bytes_append(&list->key, file->path, strlen(file->path)) || !path_make(list))
            return error_set_memory(error, "a list of files", 0);
        status = object_choose(list, &chosen, error);
        *bytes = file->bytes;
        *tag = file->tag;
    }
    return status;
}

enum tokmap_status remote_list_next(struct remote_list *list, const char **path, uint64_t *bytes, uint64_t *tag,
                                    struct tokmap_error *error)
{
    if (list->object.revision) {
        const enum tokmap_status status = hub_next(list, bytes, tag, error);
        *path = (const char *)list->path.bytes;
        return status;
    }
    for (;;) {
        enum tokmap_status status;
        bool found = false, chosen = false;
        if (!list->has_page) {
            if (!list->more)
                return TOKMAP_END;
            status = page_get(list, error);
            if (status)
                return status;
            list->has_page = true;
        }
        status = page_read(list, &found, bytes, tag, error);
        if (status == TOKMAP_END)
            status = page_end(list, error);
        else if (!status)
            status = object_choose(list, &chosen, error);
        *path = (const char *)list->path.bytes;
        if (status || (found && chosen))
            return status;
    }
}
