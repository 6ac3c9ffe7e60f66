/* SPDX-License-Identifier: MIT */
/*
 * remote_names.c - see remote_names.h.
 *
 * The rules are those of shard_names.c, tried in the same order: NAME.tmx is the index of a shard, NAME is a manifest,
 * NAME/ is the beginning of the keys of indexes. So a name costs one request if it is that of a shard, two if it is
 * that of a manifest, and three and a list otherwise. What was a manifest before is asked for first.
 */
#include "remote_names.h"

#include <stdlib.h>
#include <string.h>

#include "cache/cache_folder.h"
#include "cache/cache_index.h"
#include "cache/cache_shard.h"
#include "common/error.h"
#include "format/shard_file.h"
#include "remote/remote_list.h"
#include "remote/remote_url.h"
#include "text/path.h"

/* Reports the first object that holds tokens and has no index beside it. */
static enum tokmap_status orphan_find(const struct shard_names *indexes, const struct shard_names *tokens,
                                      struct tokmap_error *error)
{
    for (uint64_t i = 0; i < tokens->count; i++) {
        char *index = shard_file_beside(tokens->index_paths[i], SHARD_INDEX, SHARD_FINAL);
        if (!index)
            return error_set_memory(error, "the path of a shard", 0);
        const bool there = indexes->count && bsearch(&index, indexes->index_paths, indexes->count,
                                                     sizeof *indexes->index_paths, path_compare);
        free(index);
        if (!there)
            return error_set(error, TOKMAP_ERROR_MISMATCH, tokens->index_paths[i], TOKMAP_NO_OFFSET,
                             "this object has the name of a shard's tokens, but its index (.tmx) is missing: the "
                             "dataset may still be being written; open it when that has ended, or name the shards in "
                             "a manifest");
    }
    return TOKMAP_OK;
}

/* Lists the keys that begin with a name and a slash, in byte order, in which the list has them. */
static enum tokmap_status find_in_list(struct shard_names *names, const char *name, struct tokmap_error *error)
{
    struct shard_names tokens = {0};
    struct remote_list *list = NULL;
    const char *path;
    uint64_t bytes, tag;
    char *prefix = path_ended(name, name[strlen(name) - 1] == '/' ? "" : "/");
    enum tokmap_status status = prefix ? remote_list_open(&list, prefix, false, NULL, NULL, NULL, error)
                                       : error_set_memory(error, "the name of a dataset", strlen(name));
    while (!status && !(status = remote_list_next(list, &path, &bytes, &tag, error))) {
        if (shard_file_is(path_name(path), SHARD_INDEX))
            status = shard_names_add(names, strdup(path), error);
        else if (shard_file_is_main(path_name(path)))
            status = shard_names_add(&tokens, strdup(path), error);
    }
    remote_list_close(list);
    free(prefix);
    if (status == TOKMAP_END)
        status = TOKMAP_OK;
    if (!status)
        status = orphan_find(names, &tokens, error);
    const char *query = strrchr(name, '?');
    if (!status && !names->count)
        status = error_set(error, TOKMAP_ERROR_NOT_FOUND, name, TOKMAP_NO_OFFSET,
                           "there is no dataset of this name: no object has it with .tmx added, it is not a manifest, "
                           "and no key that begins with it and a slash ends in .tmx; correct the name%s",
                           !query ? ""
                                  : ". What follows its ? belongs to the key, because it does not begin with "
                                    "cache=, block=, size=, or connections=");
    shard_names_free(&tokens);
    return status;
}

/* Checks that a manifest, which somebody elsewhere may have written, names only what has its own scheme, host, and
 * bucket: not files of this machine, and not what only this machine may reach. */
static enum tokmap_status lines_check(const struct manifest *manifest, struct tokmap_error *error)
{
    const char *host = strstr(manifest->path, "://") + 3;
    const size_t place = (size_t)(host - manifest->path) + strcspn(host, "/") + 1;
    for (uint64_t i = 0; i < manifest->count; i++) {
        const struct manifest_shard *line = &manifest->shards[i];
        char *path = manifest_index_path(manifest, line);
        if (!path)
            return error_set_memory(error, "the path of a shard", 0);
        /* Web servers resolve "..", below their host; those of objects may, where buckets are a part of the path. */
        const bool good = !strncmp(path, manifest->path, place) &&
                          (remote_kind(path) == REMOTE_WEB || !strstr(path + place - 1, "/../"));
        free(path);
        if (!good)
            return error_set_line(error, TOKMAP_ERROR_FORMAT, manifest->path, line->line,
                                  "a manifest that is not on this machine may name only shards of its own host and "
                                  "bucket, and not '%.200s'; if you trust it, copy it to a file of this machine",
                                  manifest_name(manifest, line));
    }
    return TOKMAP_OK;
}

/* Reads a manifest. *found: there is an object of that name, and it is one. */
static enum tokmap_status find_manifest(struct shard_names *names, const char *name, uint64_t since_ns, bool *found,
                                        struct tokmap_error *error)
{
    struct bytes_buffer text = {0};
    enum tokmap_status status = cache_text(names->cache, name, MANIFEST_BYTES_MOST, since_ns, &text, error);
    *found = !status;
    if (!status && !shard_manifest_begins((const char *)text.bytes, text.count))
        status = error_set(error, TOKMAP_ERROR_FORMAT, name, TOKMAP_NO_OFFSET,
                           "this object is neither a shard's index or tokens nor a manifest; give the name of a shard "
                           "without its ending, a manifest, or, with a slash, what keys begin with");
    if (!status)
        status = manifest_parse(&names->manifest, name, (const char *)text.bytes, text.count, error);
    if (!status)
        status = lines_check(&names->manifest, error);
    names->count = names->manifest.count;
    bytes_free(&text);
    return status;
}

static enum tokmap_status find(struct shard_names *names, const char *name, struct tokmap_error *error)
{
    const size_t bytes = strlen(name);
    const uint64_t since_ns = os_clock_ns();
    struct cache_shard *shard = NULL;
    struct tokmap_error second = {0};
    bool found;
    const bool web = remote_kind(name) == REMOTE_WEB;
    const char *slash = strchr(strstr(name, "://") + 3, '/');
    if (web && remote_web_check(name, error))
        return TOKMAP_ERROR_ARGUMENT;
    if (web && (!slash || name[bytes - 1] == '/'))
        return error_set(error, TOKMAP_ERROR_ARGUMENT, name, TOKMAP_NO_OFFSET,
                         "a web server lists no files, so neither a host nor a name that ends in a slash names a "
                         "dataset; name a shard without its ending, or a manifest");
    if (!web && (!slash || name[bytes - 1] == '/'))
        return find_in_list(names, name, error);
    if (cache_text_is_kept(names->cache, name)) { /* it was a manifest before */
        const enum tokmap_status status = find_manifest(names, name, since_ns, &found, error);
        if (status != TOKMAP_ERROR_NOT_FOUND)
            return status;
    }
    char *index = shard_file_index("", 0, name, bytes);
    if (!index)
        return error_set_memory(error, "the path of a shard", bytes);
    enum tokmap_status status = cache_shard_find(names->cache, index, NULL, 0, &shard, error);
    cache_shard_free(shard);
    if (!status) {
        cache_shard_confirm(names->cache, index);
        return shard_names_add(names, index, error);
    }
    free(index);
    if (shard_file_is_main(name) || (status != TOKMAP_ERROR_NOT_FOUND && status != TOKMAP_ERROR_IO))
        return status;
    /* A server that does not let this user list a bucket refuses to say that an object is missing. */
    const enum tokmap_status other = find_manifest(names, name, since_ns, &found, &second);
    if (found || (other != TOKMAP_ERROR_NOT_FOUND && status == TOKMAP_ERROR_NOT_FOUND)) {
        if (other && error)
            *error = second;
        return other;
    }
    if (status == TOKMAP_ERROR_NOT_FOUND && web)
        return error_set(error, status, name, TOKMAP_NO_OFFSET,
                         "there is no dataset of this name: the server has neither this file nor one of this name with "
                         ".tmx added (HTTP status 404); correct the name");
    return status == TOKMAP_ERROR_NOT_FOUND ? find_in_list(names, name, error) : status;
}

enum tokmap_status remote_names_find(struct shard_names *names, const char *given, struct tokmap_error *error)
{
    char *name;
    enum tokmap_status status = cache_open(&names->cache, &name, given, error);
    if (!status)
        status = find(names, name, error);
    free(name);
    return status;
}
