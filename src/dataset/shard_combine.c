/* SPDX-License-Identifier: MIT */
/*
 * shard_combine.c - see shard_combine.h.
 *
 * What is combined is in the index of a shard that is open, and in the manifest of one that is not. head_of() returns
 * it for both, so nothing else here depends on which it is.
 */
#include "shard_combine.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "format/foreign/foreign_file.h"
#include "format/manifest.h"
#include "format/shard_file.h"
#include "open_shards.h"
#include "remote/remote_url.h"
#include "text/path.h"

static const uint8_t unknown[16];

/* What the combination of shards depends on, of one of them. */
struct shard_head {
    struct section_shard shard;
    uint64_t streams; /* the hash of the section */
    bool masked, sealed, pages;
};

static bool line_masked(const struct manifest_shard *line)
{
    return line->mask && line->tokens;
}

/* Returns all but the content id. */
static void head_of(const struct tokmap_dataset *dataset, uint64_t number, struct shard_head *head)
{
    const struct manifest_shard *line = shard_line(dataset, number);
    if (line) {
        const struct manifest_group *group = &dataset->manifest.groups[line->group];
        *head = (struct shard_head){
            .shard = {.tokens = line->tokens,
                      .documents = line->documents,
                      .width = group->width,
                      .vocabulary = group->vocabulary,
                      .largest_id = line->largest_id,
                      .eod_id = group->eod_id,
                      .bos_id = group->bos_id},
            .streams = line->mask,
            .masked = line_masked(line),
            .sealed = group->sealed,
            .pages = group->pages,
        };
        memcpy(head->shard.tokenizer, group->tokenizer, sizeof group->tokenizer);
    } else {
        const struct shard *shard = shard_held(dataset, number);
        *head = (struct shard_head){.shard = shard->index.shard,
                                    .streams = shard->index.streams.hash,
                                    .masked = shard->mask.fd >= 0,
                                    .sealed = index_is_sealed(&shard->index),
                                    .pages = index_has_token_pages(&shard->index)};
    }
}

static bool tokenizer_known(const struct shard_head *head)
{
    return memcmp(head->shard.tokenizer, unknown, sizeof unknown) != 0;
}

/* Returns the path of a shard's index, or of the tokens if the index is in a cache. *made: NULL, or what the caller
 * frees. */
static const char *path_of(const struct tokmap_dataset *dataset, uint64_t number, char **made)
{
    const struct manifest_shard *line = shard_line(dataset, number);
    *made = line ? manifest_index_path(&dataset->manifest, line) : NULL;
    if (line)
        return *made ? *made : manifest_name(&dataset->manifest, line);
    const struct shard *shard = shard_held(dataset, number);
    return remote_is(shard->store.path) ? shard->store.path : shard->index_path;
}

/* "838f.. (gpt2)", or without the name if it is not known. */
static void tokenizer_describe(const struct tokmap_dataset *dataset, uint64_t number, const struct shard_head *head,
                               char text[128])
{
    struct about_facts facts = {.sets = 0};
    char hex[33];
    if (!shard_line(dataset, number))
        about_facts_read(&shard_held(dataset, number)->index, &facts);
    hash128_hex(head->shard.tokenizer, hex);
    (void)snprintf(text, 128, facts.tokenizer[0] ? "%s (%s)" : "%s%s", hex, facts.tokenizer);
}

/* Refuses a shard that differs from the first one in its width, or from shard `known` in its tokenizer. */
static enum tokmap_status check_agreement(const struct tokmap_dataset *dataset, uint64_t number,
                                          const struct shard_head *head, uint64_t known, struct tokmap_error *error)
{
    char *made, *other;
    const bool wide = number && head->shard.width != dataset->width;
    if (!wide && (known == UINT64_MAX || !tokenizer_known(head) ||
                  !memcmp(head->shard.tokenizer, dataset->tokenizer, sizeof unknown)))
        return TOKMAP_OK;
    const char *path = path_of(dataset, number, &made), *theirs_path = path_of(dataset, wide ? 0 : known, &other);
    if (wide) {
        (void)error_set(
            error, TOKMAP_ERROR_MISMATCH, path, TOKMAP_NO_OFFSET,
            "its tokens have %u bytes, but those of %s have %u; pack both with the same tokenizer, or do not combine "
            "them",
            head->shard.width, theirs_path, dataset->width);
    } else {
        struct shard_head before;
        char ours[128], theirs[128];
        head_of(dataset, known, &before);
        tokenizer_describe(dataset, number, head, ours);
        tokenizer_describe(dataset, known, &before, theirs);
        (void)error_set(
            error, TOKMAP_ERROR_MISMATCH, path, TOKMAP_NO_OFFSET,
            "its tokenizer has fingerprint %s, but that of %s has %s; pack both with the same tokenizer, or do not "
            "combine them",
            ours, theirs_path, theirs);
    }
    free(made);
    free(other);
    return TOKMAP_ERROR_MISMATCH;
}

/* Gives the next shard its place. */
static enum tokmap_status place_next(struct tokmap_dataset *dataset, uint64_t tokens, uint64_t documents,
                                     uint64_t largest_id, struct tokmap_error *error)
{
    struct shard_slot *slot = &dataset->slots[dataset->shard_count];
    slot->place = (struct shard_place){
        .first_token = dataset->tokens, .first_document = dataset->documents, .tokens = tokens, .documents = documents};
    if (add_overflows(dataset->tokens, tokens, &dataset->tokens) || dataset->tokens >> 62 ||
        add_overflows(dataset->documents, documents, &dataset->documents)) {
        char *made;
        (void)error_set(error, TOKMAP_ERROR_LIMIT, path_of(dataset, dataset->shard_count, &made), TOKMAP_NO_OFFSET,
                        "with this shard the dataset has more than 2^62 tokens; use fewer shards");
        free(made);
        return TOKMAP_ERROR_LIMIT;
    }
    dataset->largest_id = max64(dataset->largest_id, largest_id);
    if (slot->open) {
        slot->open->place = slot->place;
        slot->kept = true;
    }
    dataset->shard_count++;
    return TOKMAP_OK;
}

/* Adds the next shard, which has the properties of the one before it. */
static enum tokmap_status join_next(struct tokmap_dataset *dataset, const struct manifest_shard *line,
                                    struct tokmap_error *error)
{
    const struct manifest_group *group = &dataset->manifest.groups[line->group];
    dataset->masked = dataset->masked || line_masked(line);
    dataset->page_hashes = dataset->page_hashes && (!line->tokens || group->pages || group->sealed);
    return place_next(dataset, line->tokens, line->documents, line->largest_id, error);
}

enum tokmap_status shard_join(struct tokmap_dataset *dataset, uint64_t *known, struct tokmap_error *error)
{
    const uint64_t number = dataset->shard_count;
    struct shard_head head;
    if (shard_continues(dataset, number))
        return join_next(dataset, shard_line(dataset, number), error);
    head_of(dataset, number, &head);
    const struct section_shard *shard = &head.shard;
    enum tokmap_status status = check_agreement(dataset, number, &head, *known, error);
    if (status)
        return status;
    if (*known == UINT64_MAX && tokenizer_known(&head)) {
        *known = number;
        memcpy(dataset->tokenizer, shard->tokenizer, sizeof unknown);
    }
    dataset->width = shard->width;
    dataset->vocabulary = max64(dataset->vocabulary, shard->vocabulary);
    /* The dataset has an EOD or BOS only if all of its shards agree on it. */
    dataset->eod_id = !number || dataset->eod_id == shard->eod_id ? shard->eod_id : TOKMAP_NO_ID;
    dataset->bos_id = !number || dataset->bos_id == shard->bos_id ? shard->bos_id : TOKMAP_NO_ID;
    dataset->masked = dataset->masked || head.masked;
    dataset->sealed = dataset->sealed || head.sealed;
    dataset->page_hashes = (!number || dataset->page_hashes) && (!shard->tokens || head.pages || head.sealed);
    return place_next(dataset, shard->tokens, shard->documents, shard->largest_id, error);
}

static void id_describe(uint64_t id, char text[32])
{
    if (id == TOKMAP_NO_ID)
        (void)snprintf(text, 32, "no token");
    else
        (void)snprintf(text, 32, "token %" PRIu64, id);
}

bool dataset_warning_add(struct tokmap_dataset *dataset, const char *format, ...)
{
    char sentence[1024];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    const size_t before = dataset->warning ? strlen(dataset->warning) : 0, room = before + strlen(sentence) + 3;
    char *grown = realloc(dataset->warning, room);
    if (!grown)
        return false;
    (void)snprintf(grown + before, room - before, "%s%s", before ? "; " : "", sentence);
    dataset->warning = grown;
    return true;
}

/* Adds to the warning what two shards differ in. format: with the paths and what they have. Returns false without
 * memory. */
static bool warn_of_ids(struct tokmap_dataset *dataset, const char *verb, const char *name, uint64_t first_id,
                        uint64_t number, uint64_t id)
{
    char ours[32], theirs[32], *made, *other;
    id_describe(first_id, ours);
    id_describe(id, theirs);
    const char *path = path_of(dataset, 0, &made), *differs = path_of(dataset, number, &other);
    const bool good =
        dataset_warning_add(dataset,
                            "documents %s differently: those of %.300s with %s, those of %.300s with %s; pack all "
                            "shards with the same %s",
                            verb, path, ours, differs, theirs, name);
    free(made);
    free(other);
    return good;
}

/* Shards of which some end their documents with a token and others do not (or with another one) are a dataset: where
 * documents end is in the index, so nothing is delivered wrongly. But a model that is trained on it learns two ways in
 * which texts end, which is hardly what anyone wants, and shards whose tokenizer nobody knows may mean other texts by
 * their ids. The first shard that differs is named. */
static enum tokmap_status compare_shards(struct tokmap_dataset *dataset, struct tokmap_error *error)
{
    const uint64_t none = dataset->shard_count;
    uint64_t eod = none, bos = none, with = none, without = none;
    struct shard_head first, head;
    bool good = true;
    head_of(dataset, 0, &first);
    for (uint64_t i = 0; i < dataset->shard_count; i = shard_next_unlike(dataset, i)) {
        head_of(dataset, i, &head);
        const bool known = tokenizer_known(&head);
        eod = eod == none && head.shard.eod_id != first.shard.eod_id ? i : eod;
        bos = bos == none && head.shard.bos_id != first.shard.bos_id ? i : bos;
        with = with == none && known ? i : with;
        without = without == none && !known ? i : without;
    }
    if (eod < none) {
        head_of(dataset, eod, &head);
        good = warn_of_ids(dataset, "end", "EOD", first.shard.eod_id, eod, head.shard.eod_id);
    }
    if (bos < none && good) {
        head_of(dataset, bos, &head);
        good = warn_of_ids(dataset, "begin", "BOS", first.shard.bos_id, bos, head.shard.bos_id);
    }
    if (with < none && without < none && good) {
        char *made, *other;
        const char *path = path_of(dataset, without, &made), *known = path_of(dataset, with, &other);
        good = dataset_warning_add(
            dataset,
            "the tokenizer of %.300s is not recorded, so its ids may mean other texts than those of "
            "%.300s; combine them only if one tokenizer made both",
            path, known);
        free(made);
        free(other);
    }
    return good ? TOKMAP_OK : error_set_memory(error, "a warning", 1024);
}

/* ---- sets of one split ---- */

enum { SPLITS_KEPT = 64, NUMBER_BYTES = 6 }; /* splits; bytes of the -00000 in a shard's name */

struct found {
    struct about_facts sets[SPLITS_KEPT]; /* the first set of each split */
    size_t count;
    bool several;
    char list[256]; /* "web.train, web.val" */
    size_t bytes;
    char last[128]; /* the last name in it */
};

/* Adds the name of a shard's set to the list, such as web.train for web.train-00000.tmx. A few names are enough. */
static void list_add(struct found *found, const char *index_path, const char *set)
{
    char name[sizeof found->last];
    const char *file = path_name(index_path);
    size_t length = strlen(file) - strlen(shard_file_ending(SHARD_INDEX, SHARD_FINAL));
    const size_t digits = NUMBER_BYTES - 1;
    if (length > NUMBER_BYTES && file[length - NUMBER_BYTES] == '-' &&
        strspn(file + length - digits, "0123456789") >= digits)
        length -= NUMBER_BYTES;
    const size_t own = strlen(set);
    const bool says = length > own && strncmp(file + length - own, set, own) == 0 && file[length - own - 1] == '.';
    (void)snprintf(name, sizeof name, "%.*s%s%.60s%s", (int)(length < 60 ? length : 60), file, says ? "" : " (set ",
                   says ? "" : set, says ? "" : ")");
    if (strcmp(name, found->last) == 0 || found->bytes + strlen(name) + 3 > sizeof found->list)
        return;
    memcpy(found->last, name, sizeof name);
    found->bytes += (size_t)snprintf(found->list + found->bytes, sizeof found->list - found->bytes, "%s%s",
                                     found->bytes ? ", " : "", name);
}

static void take(struct found *found, const struct about_facts *facts, const char *path)
{
    if (!facts->set[0])
        return;
    size_t split = 0;
    while (split < found->count && found->sets[split].sets != facts->sets)
        split++;
    if (split < found->count)
        found->several = found->several || strcmp(found->sets[split].set, facts->set) != 0;
    else if (split < SPLITS_KEPT)
        found->sets[found->count++] = *facts;
    list_add(found, path, facts->set);
}

static void take_index(struct found *found, const struct index *index, const char *path)
{
    struct about_facts facts;
    about_facts_read(index, &facts);
    take(found, &facts, path);
}

/* Notes a shard of which the manifest states the set. */
static void take_line(struct found *found, const struct manifest *manifest, const struct manifest_shard *line)
{
    const struct manifest_group *group = &manifest->groups[line->group];
    struct about_facts facts = {.sets = group->sets};
    char *path = group->sets ? manifest_index_path(manifest, line) : NULL;
    memcpy(facts.set, group->set, sizeof facts.set);
    if (path)
        take(found, &facts, path);
    free(path);
}

/* Notes the index beside a file of another project: `tokmap pack --also` has made a shard of it, too. */
static void take_beside(struct found *found, const struct shard *shard)
{
    struct index index;
    char *path = foreign_index_path(shard->store.path);
    if (path && !index_open_as(&index, path, TOKMAP_READ_PREAD, NULL)) {
        take_index(found, &index, path);
        index_close(&index);
    }
    free(path);
}

enum tokmap_status shards_check_sets(struct tokmap_dataset *dataset, enum shard_origin origin, const char *name,
                                     struct tokmap_error *error)
{
    struct found found = {.count = 0};
    const struct shard *before = NULL; /* the shards of a set have the same about section, and the same group */
    for (uint64_t i = 0; i < dataset->shard_count && dataset->shard_count > 1; i = shard_next_unlike(dataset, i)) {
        const struct manifest_shard *line = shard_line(dataset, i);
        const struct shard *shard = line ? NULL : shard_held(dataset, i);
        const bool has_index = shard && (shard->index.bytes || shard->index.pages);
        if (line)
            take_line(&found, &dataset->manifest, line);
        else if (shard && !has_index)
            take_beside(&found, shard);
        else if (shard && (!before || shard->index.about.hash != before->index.about.hash))
            take_index(&found, &shard->index, shard->index_path);
        before = shard;
    }
    if (!found.several)
        return TOKMAP_OK;
    if (origin != SHARDS_NAMED)
        return error_set(
            error, TOKMAP_ERROR_MISMATCH, name, TOKMAP_NO_OFFSET,
            "the %s has several sets of one split, %s, so a dataset of it would mix what the split keeps "
            "apart; name one of them, or, to mix them on purpose, name them in a manifest (`tokmap merge`)",
            origin == SHARDS_OF_FOLDER ? "folder" : "pattern", found.list);
    const bool good = dataset_warning_add(dataset,
                                          "this dataset mixes sets of one split, %s, so whoever trains on it trains "
                                          "on what the split holds out",
                                          found.list);
    return good ? TOKMAP_OK : error_set_memory(error, "a warning", 1024);
}

static const uint8_t *content_at(const struct tokmap_dataset *dataset, uint64_t number)
{
    const struct manifest_shard *line = shard_line(dataset, number);
    return line ? line->content : shard_held(dataset, number)->index.shard.content;
}

static enum tokmap_status content_of(struct tokmap_dataset *dataset, struct tokmap_error *error)
{
    if (dataset->shard_count == 1) {
        memcpy(dataset->content, content_at(dataset, 0), 16);
        return TOKMAP_OK;
    }
    struct hash_state *hash = hash_state_new();
    if (!hash)
        return error_set_memory(error, "the content id", 1024);
    for (uint64_t i = 0; i < dataset->shard_count;) {
        uint8_t ids[128][16]; /* a call costs more than an id */
        size_t count = 0;
        for (; count < sizeof ids / sizeof ids[0] && i < dataset->shard_count; i++)
            memcpy(ids[count++], content_at(dataset, i), sizeof ids[0]);
        hash_state_add(hash, ids, count * sizeof ids[0]);
    }
    hash128_store(hash_state_128(hash), dataset->content);
    hash_state_free(hash);
    return TOKMAP_OK;
}

/* Makes the masks a part of the content id: two datasets that differ in them do not train the same model. The hash of
 * a section is known from the table, so nothing is read. */
static enum tokmap_status add_streams(struct tokmap_dataset *dataset, struct tokmap_error *error)
{
    if (!dataset->masked)
        return TOKMAP_OK;
    struct hash_state *hash = hash_state_new();
    if (!hash)
        return error_set_memory(error, "the content id", 1024);
    hash_state_add(hash, "stream 1", 8);
    hash_state_add(hash, dataset->content, 16);
    for (uint64_t i = 0; i < dataset->shard_count; i++) {
        struct shard_head head;
        uint8_t section[8];
        head_of(dataset, i, &head);
        store64(section, head.streams);
        hash_state_add(hash, section, sizeof section);
    }
    hash128_store(hash_state_128(hash), dataset->content);
    hash_state_free(hash);
    return TOKMAP_OK;
}

enum tokmap_status shards_combine(struct tokmap_dataset *dataset, enum shard_origin origin, const char *name,
                                  struct tokmap_error *error)
{
    enum tokmap_status status = shards_check_sets(dataset, origin, name, error);
    if (!status)
        status = compare_shards(dataset, error);
    if (!status)
        status = content_of(dataset, error);
    return status ? status : add_streams(dataset, error);
}
