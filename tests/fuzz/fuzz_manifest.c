/* SPDX-License-Identifier: MIT */
/*
 * fuzz_manifest.c - hostile manifests. Version 2 has one text for each fact, so what is read of an accepted line is
 * printed again and must be the line. If all shards are stated, and are files, the dataset is opened, too, and must be
 * their sum.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "common/hash.h"
#include "format/manifest.h"
#include "fuzz_case.h"
#include "platform/os.h"
#include "remote/remote_url.h"
#include "tokmap/tokmap.h"

/* A place in the text, in whole lines. */
struct place {
    const char *at, *end;
    uint64_t line;
};

/* Finds the next line. It does not contain its end, which can have carriage returns. */
static bool line_next(struct place *place, const char **start, size_t *bytes)
{
    if (place->at == place->end)
        return false;
    const char *stop = memchr(place->at, '\n', (size_t)(place->end - place->at));
    *start = place->at;
    *bytes = (size_t)((stop ? stop : place->end) - place->at);
    place->at = stop ? stop + 1 : place->end;
    place->line++;
    while (*bytes && (*start)[*bytes - 1] == '\r')
        --*bytes;
    return true;
}

static const char *id_print(uint64_t id, char text[24])
{
    (void)snprintf(text, 24, id == TOKMAP_NO_ID ? "none" : "%" PRIu64, id);
    return text;
}

static void group_check(const struct manifest_group *group, const char *line, size_t bytes)
{
    static const uint8_t unknown[16];
    char text[512], eod[24], bos[24], hex[33] = "none";
    const char *stated = memmem(line, bytes, " tokenizer=", 11); /* the first one; the name of a set may have another */
    REQUIRE(group->width == 2 || group->width == 4);
    REQUIRE(group->vocabulary <= (uint64_t)1 << 8 * group->width);
    if (memcmp(group->tokenizer, unknown, sizeof unknown) != 0)
        hash128_hex(group->tokenizer, hex);
    else if (stated && stated + 11 < line + bytes && stated[11] == '0')
        memset(hex, '0', 32);
    int count = snprintf(text, sizeof text,
                         "# shards: width=%u vocabulary=%" PRIu64 " eod=%s bos=%s tokenizer=%s pages=%s sealed=%s",
                         group->width, group->vocabulary, id_print(group->eod_id, eod), id_print(group->bos_id, bos),
                         hex, group->pages ? "yes" : "no", group->sealed ? "yes" : "no");
    if (group->sets)
        count += snprintf(text + count, sizeof text - (size_t)count, " split=%016" PRIx64 " set=%s", group->sets,
                          group->set);
    REQUIRE((size_t)count == bytes && memcmp(text, line, bytes) == 0);
}

static void shard_check(const struct manifest *manifest, const struct manifest_shard *shard, const char *line,
                        size_t bytes)
{
    char text[160], hex[33];
    const char *name = manifest_name(manifest, shard);
    const char *tab = memrchr(line, '\t', bytes), *found = memmem(line, bytes, name, strlen(name));
    REQUIRE(*name && found && shard->name + strlen(name) < manifest->names.count);
    if (shard->group == MANIFEST_UNSTATED)
        return;
    REQUIRE(tab && found < tab && shard->group < manifest->group_count);
    hash128_hex(shard->content, hex);
    int count = snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64 " %u %" PRIu64 " %s", shard->tokens,
                         shard->documents, shard->largest_id, shard->index_bytes, hex);
    if (shard->mask)
        count += snprintf(text + count, sizeof text - (size_t)count, " %016" PRIx64, shard->mask);
    REQUIRE((size_t)count == (size_t)(line + bytes - tab - 1) && memcmp(text, tab + 1, (size_t)count) == 0);
    REQUIRE(!shard->tokens || shard->largest_id < manifest->groups[shard->group].vocabulary);
}

/* Compares each line with what was read of it. */
static void lines_check(const struct manifest *manifest, struct place place)
{
    const char *line;
    size_t bytes;
    uint64_t shard = 0, stated = 0;
    uint32_t group = 0;
    bool second = false;
    while (line_next(&place, &line, &bytes)) {
        if (place.line == 1) {
            second = *line == '#';
        } else if (second && manifest_line_states(line, bytes)) {
            REQUIRE(group < manifest->group_count && manifest->groups[group].first == shard);
            group_check(&manifest->groups[group++], line, bytes);
        } else if (shard < manifest->count && manifest->shards[shard].line == place.line) {
            const struct manifest_shard *now = &manifest->shards[shard++];
            REQUIRE(now->group == MANIFEST_UNSTATED || now->group + 1 == group);
            stated += now->group != MANIFEST_UNSTATED;
            shard_check(manifest, now, line, bytes);
        }
    }
    REQUIRE(manifest->count && shard == manifest->count && group == manifest->group_count);
    REQUIRE(stated == manifest->stated && place.line == manifest->lines);
}

/* A URL may have words of its own, such as a folder for a cache, which would be made. */
static bool names_a_url(const struct manifest *manifest)
{
    for (uint64_t i = 0; i < manifest->count; i++)
        if (remote_is(manifest_name(manifest, &manifest->shards[i])))
            return true;
    return false;
}

static void dataset_check(const struct manifest *manifest, const uint8_t *data, size_t size)
{
    struct tokmap_dataset *dataset;
    struct tokmap_dataset_info info = {.size = sizeof info};
    struct tokmap_error error = {0};
    uint64_t tokens = 0, documents = 0;
    int fd;
    const char *path = fuzz_file("manifest");
    (void)os_unlink(path);
    REQUIRE(!os_open(path, OS_WRITE_NEW, &fd) && !os_pwrite(fd, data, size, 0));
    os_close(fd);
    const enum tokmap_status status = tokmap_dataset_open(&dataset, path, NULL, &error);
    if (status) {
        REQUIRE(error.message[0]);
        REQUIRE(status == TOKMAP_ERROR_MISMATCH || status == TOKMAP_ERROR_LIMIT);
        return;
    }
    REQUIRE(!tokmap_dataset_info(dataset, &info) && info.shards == manifest->count);
    for (uint64_t i = 0; i < manifest->count; i++) {
        tokens += manifest->shards[i].tokens;
        documents += manifest->shards[i].documents;
        REQUIRE(manifest->shards[i].largest_id <= info.largest_id);
        REQUIRE(manifest->groups[manifest->shards[i].group].vocabulary <= info.vocabulary);
    }
    REQUIRE(info.tokens == tokens && info.documents == documents);
    tokmap_dataset_close(dataset);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct manifest manifest;
    struct tokmap_error error = {0};
    char *text = malloc(size + 1); /* an array of its own, so that a byte behind it is noticed */
    REQUIRE(text);
    if (size)
        memcpy(text, data, size);
    char *exact = realloc(text, size ? size : 1);
    REQUIRE(exact);
    const enum tokmap_status status = manifest_parse(&manifest, "x", exact, size, &error);
    if (!status) {
        lines_check(&manifest, (struct place){.at = exact, .end = exact + size});
        if (manifest_states_all(&manifest) && !names_a_url(&manifest))
            dataset_check(&manifest, data, size);
    } else if (status != TOKMAP_ERROR_FORMAT || error.line) { /* the first line has no message of its own */
        REQUIRE(error.status == status && error.message[0]);
    }
    manifest_free(&manifest);
    free(exact);
    return 0;
}
