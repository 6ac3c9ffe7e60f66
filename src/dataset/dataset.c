/* SPDX-License-Identifier: MIT */
/*
 * dataset.c - opens shards and presents them as one address space of tokens and documents.
 */
#include "dataset.h"
#include "dataset_state.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/struct_copy.h"
#include "common/hash.h"
#include "format/about_facts.h"
#include "dataset_foreign.h"
#include "dataset_name.h"
#include "dataset_part.h"
#include "documents.h"
#include "platform/os.h"
#include "shard_documents.h"
#include "shard_names.h"
#include "shard_open.h"
#include "split_sets.h"
#include "text/path.h"
#include "common/bit_copy.h"

/* ---- open ---- */

static const uint8_t unknown[16];

/* "838f.. (gpt2)", or without the name if the index has none. */
static void tokenizer_describe(const struct shard *shard, char text[128])
{
    struct about_facts facts;
    char hex[33];
    about_facts_read(&shard->index, &facts);
    hash128_hex(shard->index.shard.tokenizer, hex);
    (void)snprintf(text, 128, facts.tokenizer[0] ? "%s (%s)" : "%s%s", hex, facts.tokenizer);
}

static enum tokmap_status check_agreement(const struct tokmap_dataset *dataset, const struct shard *shard,
                                          const struct shard *known, struct tokmap_error *error)
{
    const struct shard *first = &dataset->shards[0];
    if (shard->index.shard.width != first->index.shard.width)
        return error_set(
            error, TOKMAP_ERROR_MISMATCH, shard->index_path, TOKMAP_NO_OFFSET,
            "its tokens have %u bytes, but those of %s have %u; pack both with the same tokenizer, or do not combine "
            "them",
            shard->index.shard.width, first->index_path, first->index.shard.width);
    if (known && memcmp(shard->index.shard.tokenizer, unknown, sizeof unknown) &&
        memcmp(shard->index.shard.tokenizer, known->index.shard.tokenizer, sizeof unknown)) {
        char ours[128], theirs[128];
        tokenizer_describe(shard, ours);
        tokenizer_describe(known, theirs);
        return error_set(
            error, TOKMAP_ERROR_MISMATCH, shard->index_path, TOKMAP_NO_OFFSET,
            "its tokenizer has fingerprint %s, but that of %s has %s; pack both with the same tokenizer, or do not "
            "combine them",
            ours, known->index_path, theirs);
    }
    return TOKMAP_OK;
}

/* Adds the open shard at shards[shard_count] to the dataset. */
static enum tokmap_status join(struct tokmap_dataset *dataset, const struct shard **known, struct tokmap_error *error)
{
    struct shard *shard = &dataset->shards[dataset->shard_count];
    const struct section_shard *head = &shard->index.shard;
    bool first = !dataset->shard_count;
    enum tokmap_status status = check_agreement(dataset, shard, *known, error);
    if (status)
        return status;
    if (!*known && memcmp(head->tokenizer, unknown, sizeof unknown)) {
        *known = shard;
        memcpy(dataset->tokenizer, head->tokenizer, sizeof unknown);
    }
    shard->first_token = dataset->tokens;
    shard->first_document = dataset->documents;
    shard->tokens = head->tokens;
    shard->documents = head->documents;
    if (add_overflows(dataset->tokens, head->tokens, &dataset->tokens) || dataset->tokens >> 62 ||
        add_overflows(dataset->documents, head->documents, &dataset->documents))
        return error_set(error, TOKMAP_ERROR_LIMIT, shard->index_path, TOKMAP_NO_OFFSET,
                         "with this shard the dataset has more than 2^62 tokens; use fewer shards");
    dataset->width = head->width;
    dataset->vocabulary = max64(dataset->vocabulary, head->vocabulary);
    dataset->largest_id = max64(dataset->largest_id, head->largest_id);
    /* The dataset has an EOD or BOS only if all of its shards agree on it. */
    dataset->eod_id = first || dataset->eod_id == head->eod_id ? head->eod_id : TOKMAP_NO_ID;
    dataset->bos_id = first || dataset->bos_id == head->bos_id ? head->bos_id : TOKMAP_NO_ID;
    dataset->shard_count++;
    return TOKMAP_OK;
}

static void id_describe(uint64_t id, char text[32])
{
    if (id == TOKMAP_NO_ID)
        (void)snprintf(text, 32, "no token");
    else
        (void)snprintf(text, 32, "token %" PRIu64, id);
}

/* Appends a sentence to the warning. Returns false without memory. */
static bool warning_add(struct tokmap_dataset *dataset, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool warning_add(struct tokmap_dataset *dataset, const char *format, ...)
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

/* Shards of which some end their documents with a token and others do not (or with another one) are a dataset: where
 * documents end is in the index, so nothing is delivered wrongly. But a model that is trained on it learns two ways in
 * which texts end, which is hardly what anyone wants, and shards whose tokenizer nobody knows may mean other texts by
 * their ids. The first shard that differs is named. */
static enum tokmap_status compare_shards(struct tokmap_dataset *dataset, struct tokmap_error *error)
{
    const struct shard *first = &dataset->shards[0], *eod = NULL, *bos = NULL, *with = NULL, *without = NULL;
    char ours[32], theirs[32];
    bool good = true;
    for (uint64_t i = 0; i < dataset->shard_count; i++) {
        const struct shard *shard = &dataset->shards[i];
        const bool known = memcmp(shard->index.shard.tokenizer, unknown, sizeof unknown) != 0;
        eod = !eod && shard->index.shard.eod_id != first->index.shard.eod_id ? shard : eod;
        bos = !bos && shard->index.shard.bos_id != first->index.shard.bos_id ? shard : bos;
        with = !with && known ? shard : with;
        without = !without && !known ? shard : without;
    }
    if (eod) {
        id_describe(first->index.shard.eod_id, ours);
        id_describe(eod->index.shard.eod_id, theirs);
        good = warning_add(dataset,
                           "documents end differently: those of %.300s with %s, those of %.300s with %s; pack all "
                           "shards with the same EOD",
                           first->index_path, ours, eod->index_path, theirs);
    }
    if (bos) {
        id_describe(first->index.shard.bos_id, ours);
        id_describe(bos->index.shard.bos_id, theirs);
        good = good && warning_add(dataset,
                                   "documents begin differently: those of %.300s with %s, those of %.300s with %s; "
                                   "pack all shards with the same BOS",
                                   first->index_path, ours, bos->index_path, theirs);
    }
    if (with && without)
        good = good && warning_add(dataset,
                                   "the tokenizer of %.300s is not recorded, so its ids may mean other texts than "
                                   "those of %.300s; combine them only if one tokenizer made both",
                                   without->index_path, with->index_path);
    return good ? TOKMAP_OK : error_set_memory(error, "a warning", 1024);
}

static enum tokmap_status content_of(struct tokmap_dataset *dataset, struct tokmap_error *error)
{
    if (dataset->shard_count == 1) {
        memcpy(dataset->content, dataset->shards[0].index.shard.content, 16);
        return TOKMAP_OK;
    }
    struct hash_state *hash = hash_state_new();
    if (!hash)
        return error_set_memory(error, "the content id", 1024);
    for (uint64_t i = 0; i < dataset->shard_count; i++)
        hash_state_add(hash, dataset->shards[i].index.shard.content, 16);
    hash128_store(hash_state_128(hash), dataset->content);
    hash_state_free(hash);
    return TOKMAP_OK;
}

/* Makes the masks a part of the content id: two datasets that differ in them do not train the same model. The hash of
 * a section is known from the table, so nothing is read. */
static enum tokmap_status add_streams(struct tokmap_dataset *dataset, struct tokmap_error *error)
{
    dataset->page_hashes = dataset->shard_count > 0;
    for (uint64_t i = 0; i < dataset->shard_count; i++) {
        const struct index *index = &dataset->shards[i].index;
        dataset->masked = dataset->masked || dataset->shards[i].mask.fd >= 0;
        dataset->sealed = dataset->sealed || index_is_sealed(index);
        dataset->page_hashes =
            dataset->page_hashes && (!index->shard.tokens || index_has_token_pages(index) || index_is_sealed(index));
    }
    if (!dataset->masked)
        return TOKMAP_OK;
    struct hash_state *hash = hash_state_new();
    if (!hash)
        return error_set_memory(error, "the content id", 1024);
    hash_state_add(hash, "stream 1", 8);
    hash_state_add(hash, dataset->content, 16);
    for (uint64_t i = 0; i < dataset->shard_count; i++) {
        uint8_t section[8];
        store64(section, dataset->shards[i].index.streams.hash);
        hash_state_add(hash, section, sizeof section);
    }
    hash128_store(hash_state_128(hash), dataset->content);
    hash_state_free(hash);
    return TOKMAP_OK;
}

static enum tokmap_reading resolve_reading(const struct tokmap_dataset *dataset, enum tokmap_reading reading)
{
    if (reading != TOKMAP_READ_AUTO)
        return reading;
    const struct shard *before = NULL;
    for (uint64_t i = 0; i < dataset->shard_count; i++) {
        const struct shard *shard = &dataset->shards[i];
        /* Ask once per file system, not once per shard. */
        if ((!before || shard->index.device != before->index.device) && !os_file_is_local(shard->store.fd))
            return TOKMAP_READ_PREAD;
        before = shard;
    }
    return dataset->tokens * dataset->width <= os_memory_limit() / 2 ? TOKMAP_READ_MAPPED : TOKMAP_READ_PREAD;
}

/* Fills the fields of a synthetic dataset, which its name determines. */
static enum tokmap_status open_synthetic(struct tokmap_dataset *dataset, const char *name, struct tokmap_error *error)
{
    enum tokmap_status status = synthetic_open(&dataset->synthetic, name, error);
    if (status)
        return status;
    const struct synthetic *synthetic = dataset->synthetic;
    dataset->tokens = synthetic->tokens;
    dataset->documents = synthetic->documents;
    dataset->width = synthetic->width;
    dataset->vocabulary = synthetic->vocabulary;
    dataset->largest_id = synthetic->vocabulary - 1;
    dataset->eod_id = dataset->bos_id = TOKMAP_NO_ID;
    dataset->kind = "synthetic";
    dataset->identity = TOKMAP_IDENTITY_FULL;
    synthetic_content(synthetic, dataset->content);
    return TOKMAP_OK;
}

static enum tokmap_status open_shards(struct tokmap_dataset *dataset, struct shard_names *names,
                                      struct tokmap_error *error)
{
    dataset->shards = calloc(names->count, sizeof *dataset->shards);
    if (!dataset->shards)
        return error_set_memory(error, "the shards", names->count * sizeof *dataset->shards);
    names->reading = dataset->reading;
    shards_open_ahead(dataset->shards, names);
    const struct shard *known = NULL;
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t i = 0; i < names->count && !status; i++) {
        struct shard *shard = &dataset->shards[i];
        if (!shard->index_path)
            status = shard_open(shard, names, i, error);
        if (status == TOKMAP_ERROR_NOT_FOUND && names->lines[i])
            status = error_set_line(error, status, names->manifest, names->lines[i],
                                    "the shard %s or its .bin does not exist; correct the line or restore the files",
                                    shard->index_path);
        if (!status)
            status = join(dataset, &known, error);
    }
    /* Closing the dataset closes the shards that have joined it. */
    for (uint64_t i = dataset->shard_count; status && i < names->count; i++)
        if (dataset->shards[i].index_path)
            dataset_shard_close(&dataset->shards[i]);
    return status;
}

/* Refuses, or warns of, sets of one split in a dataset that is open. */
static enum tokmap_status check_sets(struct tokmap_dataset *dataset, enum shard_origin origin, const char *name,
                                     struct tokmap_error *error)
{
    char warning[SPLIT_SETS_WARNING];
    const enum tokmap_status status = split_sets_check(dataset, origin, name, warning, error);
    if (!status && *warning && !warning_add(dataset, "%s", warning))
        return error_set_memory(error, "a warning", 1024);
    return status;
}

/* Compares the shards of a dataset that is open, and computes what it has as a whole. */
static enum tokmap_status combine_shards(struct tokmap_dataset *dataset, enum shard_origin origin, const char *name,
                                         struct tokmap_error *error)
{
    enum tokmap_status status = check_sets(dataset, origin, name, error);
    if (!status)
        status = compare_shards(dataset, error);
    if (!status)
        status = content_of(dataset, error);
    return status ? status : add_streams(dataset, error);
}

static enum tokmap_status open_named(struct tokmap_dataset *dataset, const char *name, struct tokmap_error *error)
{
    struct shard_names names = {0};
    enum tokmap_status status = shard_names_find(&names, name, error);
    if (!status)
        status = open_shards(dataset, &names, error);
    dataset->kind = "shards";
    dataset->identity = TOKMAP_IDENTITY_FULL;
    const bool folder_too = names.folder_too;
    const enum shard_origin origin = names.manifest ? SHARDS_NAMED : SHARDS_OF_FOLDER;
    shard_names_free(&names);
    if (!status && folder_too &&
        !warning_add(dataset,
                     "this is the shard %.300s.bin, but there is a folder of that name, too; write %.300s/ for the "
                     "folder, or %.300s.bin for the shard",
                     name, name, name))
        status = error_set_memory(error, "a warning", 1024);
    return status ? status : combine_shards(dataset, origin, name, error);
}

/* ---- files of other projects ---- */

static enum tokmap_status open_foreign_indexes(struct tokmap_dataset *dataset, const struct foreign_group *group,
                                               struct tokmap_error *error)
{
    struct shard_names names = {0};
    enum tokmap_status status = foreign_group_indexes(group, &names, error);
    if (!status)
        status = open_shards(dataset, &names, error);
    shard_names_free(&names);
    for (uint64_t i = 0; i < dataset->shard_count && !status; i++)
        status = foreign_check_words(group, &dataset->shards[i], error);
    return status ? status : combine_shards(dataset, SHARDS_OF_PATTERN, dataset->name, error);
}

static enum tokmap_status open_foreign_files(struct tokmap_dataset *dataset, const struct foreign_group *group,
                                             struct tokmap_error *error)
{
    const struct shard *known = NULL;
    enum tokmap_status status = TOKMAP_OK;
    dataset->shards = calloc(group->count, sizeof *dataset->shards);
    if (!dataset->shards)
        return error_set_memory(error, "the shards", group->count * sizeof *dataset->shards);
    for (uint64_t i = 0; i < group->count && !status; i++) {
        status = foreign_shard_open(&dataset->shards[i], group, i, error);
        if (!status)
            status = join(dataset, &known, error);
        if (status && dataset->shard_count == i)
            dataset_shard_close(&dataset->shards[i]);
    }
    if (!status && group->indexed &&
        !warning_add(dataset,
                     "only %" PRIu64 " of the %" PRIu64 " files have an index, so none is used; run `tokmap index` on "
                     "all of them",
                     group->indexed, group->count))
        status = error_set_memory(error, "a warning", 1024);
    if (!status)
        status = check_sets(dataset, SHARDS_OF_PATTERN, dataset->name, error);
    for (uint64_t i = 0; i < dataset->shard_count; i++)
        dataset->masked = dataset->masked || dataset->shards[i].mask.fd >= 0;
    return status ? status : foreign_identity(dataset->shards, dataset->shard_count, dataset->content, error);
}

static enum tokmap_status open_foreign(struct tokmap_dataset *dataset, const char *name, bool named,
                                       struct tokmap_error *error)
{
    struct foreign_group group;
    enum tokmap_status status = foreign_group_find(&group, name, named, error);
    if (!status) {
        const bool indexed = group.indexed == group.count;
        dataset->kind = indexed ? "shards" : foreign_kind_name(group.kinds[0]);
        dataset->identity = indexed ? TOKMAP_IDENTITY_FULL : TOKMAP_IDENTITY_SAMPLED;
        status = indexed ? open_foreign_indexes(dataset, &group, error) : open_foreign_files(dataset, &group, error);
    }
    foreign_group_free(&group);
    return status;
}

/* Opens a dataset by its name without a part: finds out of which kind it is. A name without a kind that is not one of
 * shards may be that of files with a magic; if it is not, the error is that of shards. */
static enum tokmap_status open_whole(struct tokmap_dataset *dataset, const char *name, struct tokmap_error *error)
{
    if (synthetic_names(name))
        return open_synthetic(dataset, name, error);
    if (foreign_name_has_kind(name))
        return open_foreign(dataset, name, true, error);
    enum tokmap_status status = open_named(dataset, name, error);
    if (dataset->shards || (status != TOKMAP_ERROR_NOT_FOUND && status != TOKMAP_ERROR_FORMAT))
        return status;
    struct tokmap_error found;
    const enum tokmap_status foreign = open_foreign(dataset, name, false, &found);
    if (foreign == TOKMAP_ERROR_NOT_FOUND)
        return status;
    if (foreign && error)
        *error = found;
    return foreign;
}

/* Returns whether tokens can be used where they are in all files. */
static bool has_views(const struct tokmap_dataset *dataset)
{
    for (uint64_t i = 0; i < dataset->shard_count; i++)
        if (!store_has_views(&dataset->shards[i].store, dataset->width))
            return false;
    return !dataset->synthetic;
}

/* Decides how the dataset is read. Indexes were mapped if it was not known by then; those of foreign files were not. */
static enum tokmap_status settle_reading(struct tokmap_dataset *dataset, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    dataset->reading = has_views(dataset) ? resolve_reading(dataset, dataset->reading) : TOKMAP_READ_PREAD;
    for (uint64_t i = 0; i < dataset->shard_count && !status; i++)
        status = dataset->reading == TOKMAP_READ_PREAD ? index_unmap(&dataset->shards[i].index, error)
                                                       : foreign_shard_map(&dataset->shards[i], error);
    return status;
}

enum tokmap_status dataset_open_as(struct tokmap_dataset **dataset, const char *name, enum tokmap_reading reading,
                                   struct tokmap_error *error)
{
    if ((uint32_t)reading > TOKMAP_READ_PREAD)
        return error_set_field(error, TOKMAP_ERROR_ARGUMENT, name, "reading",
                               " is %d; set it to auto, mapped, or pread", (int)reading);
    struct tokmap_dataset *made = calloc(1, sizeof *made);
    if (!made || !(made->name = strdup(name))) {
        free(made);
        return error_set_memory(error, "the dataset", sizeof *made + strlen(name));
    }
    struct dataset_part part;
    char *base;
    made->reading = reading;
    enum tokmap_status status = dataset_name_split(name, &base, &part, error);
    if (!status)
        status = open_whole(made, base, error);
    memcpy(made->whole, made->content, sizeof made->whole);
    if (!status)
        status = dataset_cut(made, &part, error);
    if (!status)
        status = settle_reading(made, error);
    free(base);
    if (status) {
        tokmap_dataset_close(made);
        return status;
    }
    made->documents_unknown = dataset_documents_unknown(made);
    *dataset = made;
    return TOKMAP_OK;
}

enum tokmap_status tokmap_dataset_open(struct tokmap_dataset **dataset, const char *name,
                                       const struct tokmap_dataset_options *options, struct tokmap_error *error)
{
    static const struct tokmap_dataset_options defaults = TOKMAP_DATASET_OPTIONS_INIT;
    struct tokmap_dataset_options chosen;
    if (!dataset)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, name, TOKMAP_NO_OFFSET, "the place for the dataset is NULL");
    *dataset = NULL;
    if (!name || !*name)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "the name of the dataset is missing; give a prefix, a folder, or a manifest");
    enum tokmap_status status =
        struct_copy_in(&chosen, options, &defaults, sizeof chosen, "tokmap_dataset_options", error);
    return status ? status : dataset_open_as(dataset, name, chosen.reading, error);
}

void tokmap_dataset_close(struct tokmap_dataset *dataset)
{
    if (!dataset)
        return;
    for (uint64_t i = 0; i < dataset->shard_count; i++)
        dataset_shard_close(&dataset->shards[i]);
    free(dataset->shards);
    synthetic_close(dataset->synthetic);
    free(dataset->warning);
    free(dataset->name);
    free(dataset);
}

/* ---- info ---- */

void dataset_describe(const struct tokmap_dataset *dataset, struct tokmap_dataset_info *info)
{
    memset(info, 0, sizeof *info);
    info->size = sizeof *info;
    info->tokens = dataset->tokens;
    info->documents = dataset->documents_unknown ? 0 : dataset->documents;
    info->shards = dataset->shard_count;
    info->width = dataset->width;
    info->reading = dataset->reading;
    info->vocabulary = dataset->vocabulary;
    info->largest_id = dataset->largest_id;
    info->eod_id = dataset->eod_id;
    info->bos_id = dataset->bos_id;
    memcpy(info->content, dataset->content, sizeof info->content);
    memcpy(info->tokenizer, dataset->tokenizer, sizeof info->tokenizer);
    info->warning = dataset->warning;
    info->kind = dataset->kind;
    info->identity = dataset->identity;
    info->masked = dataset->masked;
    info->page_hashes = dataset->page_hashes;
}

enum tokmap_status tokmap_dataset_info(const struct tokmap_dataset *dataset, struct tokmap_dataset_info *info)
{
    if (!dataset || !info)
        return TOKMAP_ERROR_ARGUMENT;
    struct tokmap_dataset_info made;
    dataset_describe(dataset, &made);
    return struct_copy_out(info, &made, sizeof made, "tokmap_dataset_info", NULL);
}

enum tokmap_status tokmap_dataset_shard(const struct tokmap_dataset *dataset, uint64_t shard,
                                        struct tokmap_shard_info *info, struct tokmap_error *error)
{
    if (!dataset || !info)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "the dataset or the place for the result is NULL");
    if (shard >= dataset->shard_count)
        return error_set(error, TOKMAP_ERROR_RANGE, dataset->name, TOKMAP_NO_OFFSET,
                         "shard %" PRIu64 " does not exist: the dataset has %" PRIu64 " shards%s", shard,
                         dataset->shard_count, dataset->synthetic ? ", because it is synthetic" : ", counted from 0");
    const struct shard *from = &dataset->shards[shard];
    struct tokmap_shard_info made;
    memset(&made, 0, sizeof made);
    enum tokmap_status status = index_about(&from->index, &made.about, &made.about_bytes, error);
    if (status)
        return status;
    made.index_path = from->index_path;
    made.tokens_path = from->store.path;
    made.first_token = from->first_token;
    made.tokens = from->tokens;
    made.first_document = from->first_document;
    made.documents = from->documents;
    made.index_bytes = from->index.file_bytes;
    made.blocks = index_blocks(&from->index);
    memcpy(made.content, from->index.shard.content, sizeof made.content);
    made.eod_id = from->index.shard.eod_id;
    made.bos_id = from->index.shard.bos_id;
    return struct_copy_out(info, &made, sizeof made, "tokmap_shard_info", error);
}

void dataset_synthetic_copy(const struct tokmap_dataset *dataset, uint64_t first, uint64_t count, void *out)
{
    synthetic_copy(dataset->synthetic, dataset->skipped_tokens + first, count, out);
}

bool dataset_is_synthetic(const struct tokmap_dataset *dataset)
{
    return dataset->synthetic != NULL;
}

void dataset_shard_mask(const struct tokmap_dataset *dataset, uint64_t number, struct dataset_mask *out)
{
    assert(number < dataset->shard_count);
    const struct shard *shard = &dataset->shards[number];
    *out = (struct dataset_mask){.fd = shard->mask.fd,
                                 .path = shard->mask.path,
                                 .bytes = shard->mask.bytes,
                                 .first_bit = shard->skipped_tokens,
                                 .wide = shard->mask.wide};
}

bool dataset_has_mask(const struct tokmap_dataset *dataset)
{
    return dataset->masked;
}

bool dataset_scans_documents(const struct tokmap_dataset *dataset)
{
    return dataset->documents_unknown;
}

void dataset_shard_tokens(const struct tokmap_dataset *dataset, uint64_t shard, struct shard_tokens *out)
{
    assert(shard < dataset->shard_count);
    const struct shard *from = &dataset->shards[shard];
    out->fd = from->store.fd;
    out->path = from->store.path;
    out->first_token = from->first_token;
    out->tokens = from->tokens;
    out->bytes = from->store.bytes;
    out->offset = shard_offset(from);
    out->element = from->store.element;
    out->converted = !store_has_views(&from->store, dataset->width);
    out->sealed = from->store.sealed;
    out->page_hashes = from->index.bytes && index_has_token_pages(&from->index);
}

enum tokmap_status dataset_page_hashes(const struct tokmap_dataset *dataset, uint64_t shard, uint64_t first,
                                       uint64_t count, uint32_t *hashes, struct tokmap_error *error)
{
    assert(shard < dataset->shard_count);
    return index_token_pages(&dataset->shards[shard].index, first, count, hashes, error);
}

void dataset_page_hashes_ask(const struct tokmap_dataset *dataset, uint64_t shard, uint64_t first, uint64_t count)
{
    index_token_pages_ask(&dataset->shards[shard].index, first, count);
}

bool dataset_page_hashes_open(const struct tokmap_dataset *dataset, uint64_t shard, int *fd, uint64_t *at)
{
    const struct index *index = &dataset->shards[shard].index;
    struct os_stat found;
    *at = index_is_sealed(index) ? index_frame_at(index, 0) : index->token_pages.offset;
    if (index->copied || os_open(index->path, OS_READ_NOW, fd))
        return false;
    if (!os_fstat(*fd, &found) && found.device == index->device && found.inode == index->inode)
        return true;
    os_close(*fd);
    return false;
}

bool dataset_is_sealed(const struct tokmap_dataset *dataset)
{
    return dataset->sealed;
}

enum tokmap_reading dataset_reading(const struct tokmap_dataset *dataset)
{
    return dataset->reading;
}

/* ---- tokens ---- */

enum tokmap_status dataset_shard_map(const struct tokmap_dataset *dataset, uint64_t shard, const uint8_t **file,
                                     struct tokmap_error *error)
{
    assert(shard < dataset->shard_count);
    return store_map(&dataset->shards[shard].store, dataset->width, file, error);
}

static enum tokmap_status out_of_range(const struct tokmap_dataset *dataset, uint64_t first, uint64_t count,
                                       struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_RANGE, dataset->name, TOKMAP_NO_OFFSET,
                     "%" PRIu64 " tokens from token %" PRIu64 " on exceed the dataset, which has %" PRIu64 " tokens",
                     count, first, dataset->tokens);
}

static enum tokmap_status view_across(const struct tokmap_dataset *dataset, uint64_t shard, uint64_t first,
                                      uint64_t count, struct tokmap_span *spans, size_t capacity, size_t *used,
                                      struct tokmap_error *error)
{
    size_t needed = 0;
    for (; count; shard++) {
        const struct shard *from = &dataset->shards[shard];
        uint64_t local = first - from->first_token;
        uint64_t part = min64(count, from->tokens - local);
        if (!part)
            continue;
        if (needed < capacity) {
            const uint8_t *file;
            enum tokmap_status status = dataset_shard_map(dataset, shard, &file, error);
            if (status)
                return status;
            spans[needed] = (struct tokmap_span){file + shard_offset(from) + local * dataset->width, part};
        }
        needed++;
        first += part;
        count -= part;
    }
    *used = needed;
    if (needed > capacity)
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "the range touches %zu shards, but there is space for only %zu spans", needed, capacity);
    return TOKMAP_OK;
}

enum tokmap_status tokmap_dataset_view(const struct tokmap_dataset *dataset, uint64_t first, uint64_t count,
                                       struct tokmap_span *spans, size_t capacity, size_t *used,
                                       struct tokmap_error *error)
{
    if (!dataset || !used || (!spans && capacity))
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "the dataset or the place for the result is NULL");
    *used = 0;
    if (first > dataset->tokens || count > dataset->tokens - first)
        return out_of_range(dataset, first, count, error);
    if (!count)
        return TOKMAP_OK;
    if (dataset->synthetic)
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, NULL, TOKMAP_NO_OFFSET,
                         "the tokens of a synthetic dataset are not stored, so there is no view of them; copy "
                         "them instead");
    uint64_t number = dataset->shard_count == 1 ? 0 : dataset_shard_of(dataset, first, 0);
    const struct shard *shard = &dataset->shards[number];
    const uint8_t *file = __atomic_load_n(&shard->store.map, __ATOMIC_ACQUIRE);
    uint64_t local = first - shard->first_token;
    if (file && capacity && count <= shard->tokens - local) {
        spans[0] = (struct tokmap_span){file + shard_offset(shard) + local * dataset->width, count};
        *used = 1;
        return TOKMAP_OK;
    }
    return view_across(dataset, number, first, count, spans, capacity, used, error);
}

enum tokmap_status tokmap_dataset_copy(const struct tokmap_dataset *dataset, uint64_t first, uint64_t count, void *out,
                                       struct tokmap_error *error)
{
    if (!dataset || (!out && count))
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "the dataset or the place for the result is NULL");
    if (first > dataset->tokens || count > dataset->tokens - first)
        return out_of_range(dataset, first, count, error);
    if (dataset->synthetic) {
        dataset_synthetic_copy(dataset, first, count, out);
        return TOKMAP_OK;
    }
    uint8_t *into = out;
    for (uint64_t number = count ? dataset_shard_of(dataset, first, 0) : 0; count; number++) {
        const struct shard *shard = &dataset->shards[number];
        const uint64_t local = first - shard->first_token, part = min64(count, shard->tokens - local);
        enum tokmap_status status =
            part ? store_read(&shard->store, shard->skipped_tokens + local, part, dataset->width, into, error)
                 : TOKMAP_OK;
        if (status)
            return status;
        into += part * dataset->width;
        first += part;
        count -= part;
    }
    return TOKMAP_OK;
}

enum tokmap_status tokmap_dataset_mask(const struct tokmap_dataset *dataset, uint64_t first, uint64_t count,
                                       uint8_t *bits, struct tokmap_error *error)
{
    return dataset_mask_read(dataset, first, count, bits, NULL, error);
}

enum tokmap_status dataset_mask_read(const struct tokmap_dataset *dataset, uint64_t first, uint64_t count,
                                     uint8_t *bits, const struct mask_reader *reader, struct tokmap_error *error)
{
    if (!dataset || (!bits && count))
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "the dataset or the place for the result is NULL");
    if (first > dataset->tokens || count > dataset->tokens - first)
        return out_of_range(dataset, first, count, error);
    if (count)
        bits[(count - 1) / 8] = 0;
    if (!dataset->masked) {
        bit_fill(bits, 0, count);
        return TOKMAP_OK;
    }
    uint64_t at = 0;
    for (uint64_t number = count ? dataset_shard_of(dataset, first, 0) : 0; at < count; number++) {
        const struct shard *shard = &dataset->shards[number];
        const uint64_t local = first + at - shard->first_token, part = min64(count - at, shard->tokens - local);
        if (!part)
            continue;
        if (shard->mask.fd < 0) {
            bit_fill(bits, at, part);
        } else {
            enum tokmap_status status =
                mask_file_read(&shard->mask, shard->skipped_tokens + local, part, bits, at, reader, error);
            if (status)
                return status;
        }
        at += part;
    }
    return TOKMAP_OK;
}
