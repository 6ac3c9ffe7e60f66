/* SPDX-License-Identifier: MIT */
/*
 * dataset.c - opens shards and presents them as one address space of tokens and documents.
 */
#include "dataset.h"
#include "opened_dataset.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache/cache_folder.h"
#include "cache/cache_pool.h"
#include "common/bit_copy.h"
#include "common/bytes.h"
#include "common/error.h"
#include "common/struct_copy.h"
#include "dataset_fetch.h"
#include "dataset_foreign.h"
#include "dataset_name.h"
#include "documents.h"
#include "open_shards.h"
#include "platform/os.h"
#include "remote/remote_url.h"
#include "remote_names.h"
#include "shard_combine.h"
#include "shard_names.h"
#include "text/path.h"

/* ---- open ---- */

/* Returns whether the file system of a shard is local. Of one that is not open, its index is asked, and that of the
 * next shard in the same folder is not; a file that is missing is reported when a row needs it. */
static bool is_local(const struct tokmap_dataset *dataset, uint64_t number)
{
    const struct manifest_shard *line = shard_line(dataset, number);
    if (!line) { /* Ask once per file system, not once per shard. */
        const struct shard *shard = shard_held(dataset, number);
        const struct shard *before =
            number && !shard_line(dataset, number - 1) ? shard_held(dataset, number - 1) : NULL;
        return (before && shard->index.device == before->index.device) || os_file_is_local(shard->store.fd);
    }
    const struct manifest *manifest = &dataset->manifest;
    const char *name = manifest_name(manifest, line);
    const size_t folder_bytes = path_folder_bytes(name);
    const char *before = number ? manifest_name(manifest, line - 1) : NULL;
    if (before && path_folder_bytes(before) == folder_bytes && !memcmp(name, before, folder_bytes))
        return true;
    char *path = manifest_index_path(manifest, line);
    int fd;
    bool local = true;
    if (path && !os_open(path, OS_READ_NOW, &fd)) {
        local = os_file_is_local(fd);
        os_close(fd);
    }
    free(path);
    return local;
}

static enum tokmap_reading resolve_reading(const struct tokmap_dataset *dataset, enum tokmap_reading reading)
{
    if (reading != TOKMAP_READ_AUTO)
        return reading;
    if (dataset->tokens * dataset->width > os_memory_limit() / 2)
        return TOKMAP_READ_PREAD;
    for (uint64_t i = 0; i < dataset->shard_count; i++)
        if (!is_local(dataset, i))
            return TOKMAP_READ_PREAD;
    return TOKMAP_READ_MAPPED;
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

static enum tokmap_status slots_new(struct tokmap_dataset *dataset, uint64_t count, struct tokmap_error *error)
{
    dataset->slots = os_memory_large_zeros(count, sizeof *dataset->slots);
    dataset->column_names = calloc(1, sizeof *dataset->column_names);
    return dataset->slots && dataset->column_names
               ? TOKMAP_OK
               : error_set_memory(error, "the shards", count * sizeof *dataset->slots);
}

static enum tokmap_status open_shards(struct tokmap_dataset *dataset, struct shard_names *names,
                                      struct tokmap_error *error)
{
    uint64_t known = UINT64_MAX;
    enum tokmap_status status = slots_new(dataset, names->count, error);
    if (status)
        return status;
    names->reading = dataset->reading;
    shards_open_ahead(dataset->slots, names);
    dataset->manifest = names->manifest; /* the names have it, too, until they are freed */
    for (uint64_t i = 0; i < names->count && !status; i++) {
        struct shard_slot *slot = &dataset->slots[i];
        const struct manifest_shard *line = shard_names_line(names, i);
        slot->line = line ? (uint32_t)i : 0;
        if (!slot->open && !shard_line(dataset, i))
            status = shard_open(&slot->open, shard_names_take(names, i), names->reading, names->cache, line, error);
        if (status == TOKMAP_ERROR_NOT_FOUND && line)
            status = error_set_line(error, status, names->manifest.path, line->line,
                                    "the shard %s or its .bin does not exist; correct the line or restore the files",
                                    slot->open->index_path);
        if (!status)
            status = shard_join(dataset, &known, error);
    }
    /* Closing the dataset closes the shards that have joined it. */
    for (uint64_t i = dataset->shard_count; status && i < names->count; i++)
        dataset_shard_free(dataset->slots[i].open);
    memset(&names->manifest, 0, sizeof names->manifest); /* the dataset has it now */
    return status;
}

/* Makes a manifest in memory that states all shards, from which they are opened when they are needed. folder: the name,
 * if it is not that of a manifest. */
static enum tokmap_status names_state(struct shard_names *names, const char *folder, struct tokmap_error *error)
{
    struct manifest_text text = {.about = 0};
    struct manifest made = {.path = NULL}, *old = &names->manifest;
    char *path = path_ended(old->path ? old->path : folder, old->path || folder[strlen(folder) - 1] == '/' ? "" : "/");
    bool good = path != NULL;
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t i = 0; i < names->count && good && !status; i++) {
        struct shard *shard;
        char *index = shard_names_take(names, i);
        char *name = index ? strdup(index + (path_is_absolute(index) ? 0 : path_folder_bytes(path))) : NULL;
        status = shard_open(&shard, index, TOKMAP_READ_PREAD, names->cache, NULL, error);
        good = name && (status || manifest_text_add(&text, name, &shard->index));
        dataset_shard_free(shard);
        free(name);
    }
    if (good && !status)
        status = manifest_parse(&made, path, (const char *)text.text.bytes, text.text.count, error);
    for (uint64_t i = 0; old->path && i < made.count; i++)
        made.shards[i].line = old->shards[i].line;
    manifest_free(old);
    *old = made;
    manifest_text_free(&text);
    free(path);
    return good ? status : error_set_memory(error, "the shards", names->count);
}

static enum tokmap_status open_named(struct tokmap_dataset *dataset, const char *name, struct tokmap_error *error)
{
    struct shard_names names = {0};
    enum tokmap_status status = (remote_is(name) ? remote_names_find : shard_names_find)(&names, name, error);
    for (uint64_t i = 0; i < names.count && !status && !names.cache; i++) { /* a manifest here may name objects */
        const struct manifest_shard *line = shard_names_line(&names, i);
        char *rest = NULL;
        if (line && remote_is(manifest_name(&names.manifest, line)))
            status = cache_open(&names.cache, &rest, manifest_name(&names.manifest, line), error);
        free(rest);
    }
    dataset->cache = names.cache;
    const enum shard_origin origin = names.manifest.path ? SHARDS_NAMED : SHARDS_OF_FOLDER;
    if (!status && dataset->sparing && (names.count > 1 || names.manifest.path) &&
        !manifest_states_all(&names.manifest))
        status = names_state(&names, name, error);
    if (!status)
        status = open_shards(dataset, &names, error);
    dataset->kind = "shards";
    dataset->identity = TOKMAP_IDENTITY_FULL;
    const bool folder_too = names.folder_too;
    shard_names_free(&names);
    if (!status && folder_too &&
        !dataset_warning_add(
            dataset,
            "this is the shard %.300s.bin, but there is a folder of that name, too; write %.300s/ for the "
            "folder, or %.300s.bin for the shard",
            name, name, name))
        status = error_set_memory(error, "a warning", 1024);
    return status ? status : shards_combine(dataset, origin, name, error);
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
        status = foreign_check_words(group, shard_held(dataset, i), error);
    return status ? status : shards_combine(dataset, SHARDS_OF_PATTERN, dataset->name, error);
}

static enum tokmap_status open_foreign_files(struct tokmap_dataset *dataset, const struct foreign_group *group,
                                             struct tokmap_error *error)
{
    uint64_t known = UINT64_MAX;
    enum tokmap_status status = slots_new(dataset, group->count, error);
    for (uint64_t i = 0; i < group->count && !status; i++) {
        status = foreign_shard_open(&dataset->slots[i].open, group, i, error);
        if (!status)
            status = shard_join(dataset, &known, error);
        if (status && dataset->shard_count == i)
            dataset_shard_free(dataset->slots[i].open);
    }
    dataset->page_hashes = false;
    if (!status && group->indexed &&
        !dataset_warning_add(dataset,
                             "only %" PRIu64 " of the %" PRIu64
                             " files have an index, so none is used; run `tokmap index` on "
                             "all of them",
                             group->indexed, group->count))
        status = error_set_memory(error, "a warning", 1024);
    if (!status)
        status = shards_check_sets(dataset, SHARDS_OF_PATTERN, dataset->name, error);
    return status ? status : foreign_identity(dataset, dataset->content, error);
}

/* Warns of files without an index that are one document each because nothing says where one ends. Returns false without
 * memory. */
static bool endless_warn(struct tokmap_dataset *dataset, const struct foreign_group *group)
{
    struct foreign_words note = {.eod_id = TOKMAP_NO_ID, .bos_id = TOKMAP_NO_ID};
    char id[32] = "";
    if (group->kinds[0] < FOREIGN_NPY || group->kinds[0] == FOREIGN_DATATROVE || dataset->eod_id != TOKMAP_NO_ID ||
        dataset->bos_id != TOKMAP_NO_ID || !dataset->tokens || dataset->documents > dataset->shard_count)
        return true;
    if (foreign_note_read(group->paths[0], &note) && note.eod_id != TOKMAP_NO_ID)
        (void)snprintf(id, sizeof id, ", which is %" PRIu64, note.eod_id);
    return dataset_warning_add(dataset,
                               "%.300s is one document, because the name does not say which token ends a document; add "
                               "eod=ID with the EOD of its vocabulary%s",
                               group->paths[0], id);
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
        if (!status && !endless_warn(dataset, &group))
            status = error_set_memory(error, "a warning", 1024);
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
    const bool maybe = status == TOKMAP_ERROR_NOT_FOUND || status == TOKMAP_ERROR_FORMAT;
    if (dataset->slots || dataset->cache || remote_is(name) || !maybe)
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
    const bool stated = manifest_states_all(&dataset->manifest);
    for (uint64_t i = 0; i < dataset->shard_count && !dataset->sealed && !stated; i++)
        if (!shard_line(dataset, i) && !store_has_views(&shard_held(dataset, i)->store, dataset->width))
            return false;
    return !dataset->synthetic && !dataset->sealed;
}

/* Decides how the dataset is read. Indexes were mapped if it was not known by then; those of foreign files were not. */
static enum tokmap_status settle_reading(struct tokmap_dataset *dataset, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    dataset->reading = has_views(dataset) ? resolve_reading(dataset, dataset->reading) : TOKMAP_READ_PREAD;
    for (uint64_t i = 0; i < dataset->shard_count && !status; i++) {
        struct shard *shard = dataset->slots[i].open;
        if (shard)
            status = dataset->reading == TOKMAP_READ_PREAD ? index_unmap(&shard->index, error)
                                                           : foreign_shard_map(shard, error);
    }
    return status;
}

static enum tokmap_status open_once(struct tokmap_dataset **dataset, const char *name, enum tokmap_reading reading,
                                    bool sparing, struct tokmap_error *error)
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
    made->sparing = sparing;
    enum tokmap_status status = dataset_name_split(name, &base, &part, error);
    if (!status)
        status = open_whole(made, base, error);
    if (!status && !token_doubts_add(made))
        status = error_set_memory(error, "a warning", 1024);
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

enum tokmap_status dataset_open_as(struct tokmap_dataset **dataset, const char *name, enum tokmap_reading reading,
                                   struct tokmap_error *error)
{
    struct tokmap_error reason = {0};
    enum tokmap_status status = open_once(dataset, name, reading, false, &reason);
    if (status && (reason.system == EMFILE || reason.system == ENFILE || reason.system == ENOMEM))
        status = open_once(dataset, name, reading, true, &reason);
    if (status && error)
        *error = reason;
    return status;
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
    if (dataset->cache)
        cache_forget(dataset->cache, dataset);
    shards_close(dataset);
    for (uint64_t i = 0; i < dataset->shard_count; i++) {
        dataset_shard_free(dataset->slots[i].open);
        free(dataset->slots[i].told);
    }
    free(dataset->slots);
    for (struct column_name *name = dataset->column_names, *next; name; name = next) {
        next = name->next;
        free(name);
    }
    manifest_free(&dataset->manifest);
    cache_close(dataset->cache);
    synthetic_close(dataset->synthetic);
    free(dataset->warning);
    free(dataset->name);
    free(dataset);
}

/* ---- info ---- */

struct tokmap_dataset_info info_of_dataset(const struct tokmap_dataset *dataset)
{
    struct tokmap_dataset_info info = {
        .size = sizeof info,
        .tokens = dataset->tokens,
        .documents = dataset->documents_unknown ? 0 : dataset->documents,
        .shards = dataset->shard_count,
        .width = dataset->width,
        .reading = dataset->reading,
        .vocabulary = dataset->vocabulary,
        .largest_id = dataset->largest_id,
        .eod_id = dataset->eod_id,
        .bos_id = dataset->bos_id,
        .warning = dataset->warning,
        .kind = dataset->kind,
        .identity = dataset->identity,
        .masked = dataset->masked,
        .page_hashes = dataset->page_hashes,
    };
    memcpy(info.content, dataset->content, sizeof info.content);
    memcpy(info.tokenizer, dataset->tokenizer, sizeof info.tokenizer);
    return info;
}

enum tokmap_status tokmap_dataset_info(const struct tokmap_dataset *dataset, struct tokmap_dataset_info *info)
{
    if (!dataset || !info)
        return TOKMAP_ERROR_ARGUMENT;
    const struct tokmap_dataset_info made = info_of_dataset(dataset);
    return struct_copy_out(info, &made, sizeof made, "tokmap_dataset_info", NULL);
}

/* What tokmap_dataset_shard() has returned of a shard that may be closed again. */
struct shard_told {
    uint64_t about_bytes;
    size_t tokens_path; /* offset of the path in `text` */
    size_t about;
    char text[];
};

/* Copies the texts, the first time, so that they live as long as the dataset and its shard need not stay open. */
static enum tokmap_status told_keep(struct shard_slot *slot, struct tokmap_shard_info *info, struct tokmap_error *error)
{
    struct shard_told *told = __atomic_load_n(&slot->told, __ATOMIC_ACQUIRE);
    if (!told) {
        const size_t index = strlen(info->index_path) + 1, tokens = strlen(info->tokens_path) + 1;
        struct shard_told *made = malloc(sizeof *made + index + tokens + info->about_bytes);
        if (!made)
            return error_set_memory(error, "the about section", info->about_bytes);
        *made = (struct shard_told){info->about_bytes, index, index + tokens};
        memcpy(made->text, info->index_path, index);
        memcpy(made->text + index, info->tokens_path, tokens);
        memcpy(made->text + made->about, info->about, info->about_bytes);
        if (__atomic_compare_exchange_n(&slot->told, &told, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            told = made;
        else
            free(made); /* another thread has copied them */
    }
    info->index_path = told->text;
    info->tokens_path = told->text + told->tokens_path;
    info->about = told->text + told->about;
    info->about_bytes = told->about_bytes;
    return TOKMAP_OK;
}

#define SHARDS_IN_TURN 8 /* that are described one after the other, up or down, until all others are expected to be */

/* Returns whether the SHARDS_IN_TURN shards after (step 1) or before (-1) a shard were described. */
static bool are_told(const struct tokmap_dataset *dataset, uint64_t shard, int step)
{
    bool told = true;
    for (int i = 1; i <= SHARDS_IN_TURN && told; i++) {
        const uint64_t number = shard + (uint64_t)(i * step);
        told = number < dataset->shard_count && __atomic_load_n(&dataset->slots[number].told, __ATOMIC_RELAXED);
    }
    return told;
}

enum tokmap_status tokmap_dataset_shard(const struct tokmap_dataset *dataset, uint64_t shard,
                                        struct tokmap_shard_info *info, struct tokmap_error *error)
{
    if (!dataset || !info)
        return dataset_no_room(error);
    if (shard >= dataset->shard_count)
        return error_set(error, TOKMAP_ERROR_RANGE, dataset->name, TOKMAP_NO_OFFSET,
                         "shard %" PRIu64 " does not exist: the dataset has %" PRIu64 " shards%s", shard,
                         dataset->shard_count, dataset->synthetic ? ", because it is synthetic" : ", counted from 0");
    const struct shard *from;
    struct tokmap_shard_info made;
    memset(&made, 0, sizeof made);
    if (dataset->cache && (are_told(dataset, shard, 1) || are_told(dataset, shard, -1)))
        dataset_fetch_shards(dataset, shard);
    enum tokmap_status status = shard_hold(dataset, shard, &from, error);
    if (status)
        return status;
    status = index_about(&from->index, &made.about, &made.about_bytes, error);
    made.index_path = from->index_path;
    made.tokens_path = from->store.path;
    made.first_token = from->place.first_token;
    made.tokens = from->place.tokens;
    made.first_document = from->place.first_document;
    made.documents = from->place.documents;
    made.index_bytes = from->index.file_bytes;
    made.blocks = index_blocks(&from->index);
    memcpy(made.content, from->index.shard.content, sizeof made.content);
    made.eod_id = from->index.shard.eod_id;
    made.bos_id = from->index.shard.bos_id;
    if (!status && !shard_if_kept(dataset, shard))
        status = told_keep(&dataset->slots[shard], &made, error);
    shard_release(dataset, shard);
    return status ? status : struct_copy_out(info, &made, sizeof made, "tokmap_shard_info", error);
}

void dataset_synthetic_copy(const struct tokmap_dataset *dataset, uint64_t first, uint64_t count, void *out)
{
    synthetic_copy(dataset->synthetic, dataset->skipped_tokens + first, count, out);
}

bool dataset_is_synthetic(const struct tokmap_dataset *dataset)
{
    return dataset->synthetic != NULL;
}

uint64_t dataset_unit(const struct tokmap_dataset *dataset)
{
    return dataset->unit ? dataset->unit : 1;
}

void dataset_shard_mask(const struct tokmap_dataset *dataset, uint64_t number, struct dataset_mask *out)
{
    assert(number < dataset->shard_count);
    const struct shard *shard = shard_held(dataset, number);
    *out =
        (struct dataset_mask){.fd = shard->mask.fd,
                              .bytes = shard->mask.bytes,
                              .first_bit = shard->mask.first_bit + shard->place.skipped_tokens / dataset_unit(dataset),
                              .wide = shard->mask.wide};
}

enum tokmap_status dataset_shard_hold(const struct tokmap_dataset *dataset, uint64_t shard, struct tokmap_error *error)
{
    const struct shard *held;
    return shard_hold(dataset, shard, &held, error);
}

void dataset_shard_release(const struct tokmap_dataset *dataset, uint64_t shard)
{
    shard_release(dataset, shard);
}

uint32_t dataset_held_most(const struct tokmap_dataset *dataset)
{
    return dataset->manifest.group_count ? shards_held_most() : 0;
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
    const struct shard *from = shard_held(dataset, shard);
    out->fd = from->store.fd;
    out->path = from->store.path;
    out->first_token = from->place.first_token;
    out->tokens = from->place.tokens;
    out->opening = from->number;
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
    return index_token_pages(&shard_held(dataset, shard)->index, first, count, hashes, error);
}

void dataset_page_hashes_ask(const struct tokmap_dataset *dataset, uint64_t shard, uint64_t first, uint64_t count)
{
    index_token_pages_ask(&shard_held(dataset, shard)->index, first, count);
}

bool dataset_page_hashes_open(const struct tokmap_dataset *dataset, uint64_t shard, int *fd, uint64_t *at)
{
    const struct index *index = &shard_held(dataset, shard)->index;
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
    return store_map(&dataset->slots[shard].open->store, dataset->width, file, error);
}

enum tokmap_status dataset_shard_map_any(const struct tokmap_dataset *dataset, uint64_t shard, const uint8_t **file,
                                         struct tokmap_error *error)
{
    assert(shard < dataset->shard_count);
    return store_map_any(&dataset->slots[shard].open->store, dataset->width, file, error);
}

static enum tokmap_status view_across(const struct tokmap_dataset *dataset, uint64_t shard, uint64_t first,
                                      uint64_t count, struct tokmap_span *spans, size_t capacity, size_t *used,
                                      struct tokmap_error *error)
{
    size_t needed = 0;
    for (; count; shard++) {
        const struct shard_place *place = &dataset->slots[shard].place;
        uint64_t local = first - place->first_token;
        uint64_t part = min64(count, place->tokens - local);
        if (!part)
            continue;
        if (needed < capacity) {
            const struct shard *from;
            const uint8_t *file;
            enum tokmap_status status = shard_keep(dataset, shard, &from, error);
            if (!status)
                status = dataset_shard_map(dataset, shard, &file, error);
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
        return dataset_no_room(error);
    *used = 0;
    enum tokmap_status status = dataset_range_check(dataset, first, count, error);
    if (status)
        return status;
    if (!count)
        return TOKMAP_OK;
    if (dataset->synthetic)
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, NULL, TOKMAP_NO_OFFSET,
                         "the tokens of a synthetic dataset are not stored, so there is no view of them; copy "
                         "them instead");
    uint64_t number = dataset->shard_count == 1 ? 0 : dataset_shard_of(dataset, first, 0);
    const struct shard *shard = shard_if_kept(dataset, number);
    /* The mapping of a shard that is fetched is one of which only a part may be present. */
    const uint8_t *file = shard && !dataset->cache ? __atomic_load_n(&shard->store.map, __ATOMIC_ACQUIRE) : NULL;
    uint64_t local = first - dataset->slots[number].place.first_token;
    if (file && capacity && count <= shard->place.tokens - local) {
        spans[0] = (struct tokmap_span){file + shard_offset(shard) + local * dataset->width, count};
        *used = 1;
        return TOKMAP_OK;
    }
    return view_across(dataset, number, first, count, spans, capacity, used, error);
}

/* What one shard has of a range of tokens. */
struct held_part {
    const struct shard *shard;
    uint64_t number, token, count; /* of the shard; of the first token, in its file; of tokens */
};

/* Holds the shard that has token `first`; count: the tokens that are wanted from there on. */
static enum tokmap_status part_hold(const struct tokmap_dataset *dataset, uint64_t first, uint64_t count,
                                    struct held_part *part, struct tokmap_error *error)
{
    part->number = dataset_shard_of(dataset, first, 0);
    const struct shard_place *place = &dataset->slots[part->number].place;
    const uint64_t local = first - place->first_token;
    part->token = place->skipped_tokens + local;
    part->count = min64(count, place->tokens - local);
    return shard_hold(dataset, part->number, &part->shard, error);
}

enum tokmap_status tokmap_dataset_copy(const struct tokmap_dataset *dataset, uint64_t first, uint64_t count, void *out,
                                       struct tokmap_error *error)
{
    if (!dataset || (!out && count))
        return dataset_no_room(error);
    enum tokmap_status status = dataset_range_check(dataset, first, count, error);
    if (status)
        return status;
    if (dataset->synthetic) {
        dataset_synthetic_copy(dataset, first, count, out);
        return TOKMAP_OK;
    }
    struct held_part part;
    for (uint64_t at = 0; at < count && !status; at += part.count) {
        status = part_hold(dataset, first + at, count - at, &part, error);
        if (status)
            return status;
        uint8_t *into = (uint8_t *)out + at * dataset->width;
        status = store_read(&part.shard->store, part.token, part.count, dataset->width, into, error);
        shard_release(dataset, part.number);
    }
    return status;
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
        return dataset_no_room(error);
    const uint64_t unit = dataset_unit(dataset);
    enum tokmap_status status = dataset_range_check(dataset, first * unit, count * unit, error);
    if (status)
        return status;
    if (count)
        bits[(count - 1) / 8] = 0;
    if (!dataset->masked) {
        bit_fill(bits, 0, count);
        return TOKMAP_OK;
    }
    struct held_part part;
    for (uint64_t at = 0; at < count && !status; at += part.count / unit) {
        status = part_hold(dataset, (first + at) * unit, (count - at) * unit, &part, error);
        if (status)
            return status;
        if (part.shard->mask.fd < 0)
            bit_fill(bits, at, part.count / unit);
        else
            status = mask_file_read(&part.shard->mask, part.token / unit, part.count / unit, bits, at, reader, error);
        shard_release(dataset, part.number);
    }
    return status;
}
