/* SPDX-License-Identifier: MIT */
/*
 * pack_finish.c - see pack_finish.h.
 *
 * Example: units 0, 1, and 2 have 3, 1, and 2 shards. Unit 1 has no documents, so its shard is empty. Units 1 and 2 are
 * parts of one file: unit 2 begins at line 700 of it, since unit 1 has 700 lines.
 *
 *     unit-000000.work/unit-000000-00000.bin.ready   becomes   web-00000.bin
 *     unit-000000.work/unit-000000-00001 and 00002            web-00001 and web-00002
 *     unit-000002.work/unit-000002-00000 and 00001            web-00003 and web-00004; in their indexes, 700 is added
 *                                                             to each record
 */
#include "pack_finish.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "dedup/drop_finish.h"
#include "encode/document_encode.h"
#include "format/index_reader.h"
#include "format/index_writer.h"
#include "format/name_files.h"
#include "format/partial_file.h"
#include "format/shard_file.h"
#include "format/shard_ranges.h"
#include "output_names.h"
#include "pack_also.h"
#include "pack_output.h"
#include "platform/os.h"
#include "remote/remote_url.h"
#include "shard_about.h"
#include "skipped_items.h"
#include "text/path.h"
#include "unit_record.h"
#include "work/dropped_writer.h"
#include "work/set_commit.h"
#include "work/work_folder.h"
#include "work/work_units.h"

struct finish {
    const struct pack_options *options;
    const struct work_units *units;
    const char *folder;
    const struct pack_found *found;
    struct set_work *work;
    struct unit_result *record;       /* record of the unit that was read last */
    uint64_t shards[SPLIT_SETS_MOST]; /* shards of each set so far */
    struct hash_state *contents[SPLIT_SETS_MOST];
};

/* ---- the record numbers of an index whose writer began inside an input file ---- */

static enum tokmap_status damaged(const struct index *index, uint64_t at, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_CORRUPT, index->path, at,
                     "the section origin of this index is damaged; pack the inputs again");
}

/* Writes the section origin with other record numbers. */
static enum tokmap_status origin_write(const struct index *from, const struct index_entry *entry, uint64_t records,
                                       struct index_writer *into, int *system, struct tokmap_error *error)
{
    struct origin_head head;
    const uint8_t *bytes = from->bytes + entry->offset;
    const enum tokmap_status status = index_present(from, entry->offset, entry->bytes, error);
    if (status)
        return status;
    if (entry->bytes < sizeof head || hash64(bytes, entry->bytes) != entry->hash)
        return damaged(from, entry->offset, error);
    memcpy(&head, bytes, sizeof head);
    if (head.runs > (entry->bytes - sizeof head) / sizeof(struct origin_run))
        return damaged(from, entry->offset, error);
    *system = index_writer_begin(into, SECTION_ORIGIN);
    if (!*system)
        *system = index_writer_add(into, bytes, sizeof head);
    uint64_t at = sizeof head;
    for (uint64_t i = 0; i < head.runs && !*system; i++, at += sizeof(struct origin_run)) {
        struct origin_run run;
        memcpy(&run, bytes + at, sizeof run);
        if (add_overflows(run.record, records, &run.record))
            return damaged(from, entry->offset + at, error);
        *system = index_writer_add(into, &run, sizeof run);
    }
    if (!*system)
        *system = index_writer_add(into, bytes + at, (size_t)(entry->bytes - at));
    if (!*system)
        *system = index_writer_end(into);
    return TOKMAP_OK;
}

static enum tokmap_status sections_write(const struct index *from, uint64_t records, int fd, int *system,
                                         struct tokmap_error *error)
{
    struct index_writer writer;
    enum tokmap_status status = TOKMAP_OK;
    *system = index_writer_init(&writer, fd);
    if (*system)
        return TOKMAP_OK;
    for (uint32_t i = 0; i < index_sections(from) && !status && !*system; i++) {
        struct index_entry entry;
        index_section_entry(from, i, &entry);
        status = entry.type == SECTION_ORIGIN ? origin_write(from, &entry, records, &writer, system, error)
                                              : index_copy_section(from, &entry, &writer, system, error);
    }
    if (!status && !*system)
        *system = index_writer_finish(&writer);
    index_writer_free(&writer);
    return status;
}

/* Writes the index `from` to the new file `into`, with `records` added to the record of every run of the section
 * origin. All other sections keep their bytes. An older file `into` is replaced. No other process uses the names. */
static enum tokmap_status origin_shift(const char *from, const char *into, uint64_t records, bool sync,
                                       struct tokmap_error *error)
{
    struct index index;
    int fd = -1, system = 0;
    enum tokmap_status status = index_open(&index, from, error);
    if (status)
        return status;
    char *partial = path_ended(into, ".partial");
    if (!partial)
        status = error_set_memory(error, "a path", 0);
    else
        (void)os_unlink(partial); /* of a process that was killed */
    if (!status)
        system = os_open(partial, OS_WRITE_NEW, &fd);
    if (!status && !system)
        status = sections_write(&index, records, fd, &system, error);
    if (!status && !system)
        system = name_file(fd, partial, into, sync, NULL);
    if (fd >= 0)
        os_close(fd);
    if (system)
        status = error_set_system(error, system, into, TOKMAP_NO_OFFSET, "the index cannot be written");
    if (status && partial && fd >= 0)
        (void)os_unlink(partial);
    index_close(&index);
    free(partial);
    return status;
}

static const char lacking[] = "the end of the work"; /* in messages about memory */

/* ---- names ---- */

/* Returns 1 if "PREFIX" with both endings exists, 0 if not, and -1 without memory. */
static int exists(const char *prefix, const char *ending, const char *more)
{
    struct os_stat found;
    char *path = path_ended(prefix, ending);
    char *whole = path ? path_ended(path, more) : NULL;
    const int there = whole ? !os_lstat(whole, &found) : -1;
    free(whole);
    free(path);
    return there;
}

enum tokmap_status pack_names_check(const struct pack_options *options, enum set_note *note, struct tokmap_error *error)
{
    static const char *const taken[] = {"", ".bin", ".tmx", "-00000.bin", "-00000.tmx"};
    const enum tokmap_status status = set_note_find(options->prefix, note, error);
    if (status || *note == SET_NOTE_NAMING || options->replace)
        return status;
    for (uint32_t set = 0; set < pack_output_sets(options); set++) {
        char ending[SPLIT_NAME_MOST + 2];
        pack_set_ending(options, set, ending);
        for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
            const int there = exists(options->prefix, ending, taken[i]);
            if (there < 0)
                return error_set_memory(error, lacking, 0);
            if (there)
                return error_set(error, TOKMAP_ERROR_EXISTS, options->prefix, TOKMAP_NO_OFFSET,
                                 "the output already exists, at least '%.200s%s%s'; choose another name, or use "
                                 "--force",
                                 path_name(options->prefix), ending, taken[i]);
        }
    }
    return TOKMAP_OK;
}

/* Returns true if a path is in the folder NAME.work. Both are compared as text. */
static bool is_work(const char *path, const char *output)
{
    static const char work[] = ".work/";
    const size_t bytes = strlen(output);
    while (!strncmp(path, "./", 2))
        path += 2;
    while (!strncmp(output, "./", 2))
        output += 2;
    return !strncmp(path, output, strlen(output)) && bytes && !strncmp(path + strlen(output), work, strlen(work));
}

enum tokmap_status pack_input_check(const void *output, const char *path, bool *skips, struct tokmap_error *error)
{
    const struct output_names *names = output;
    const bool also = output_names_also(names, path);
    const bool older = !also && !remote_kind(path) && output_names_older(names->name, path);
    /* The process that is continued would have refused older files. */
    *skips = (also && pack_also_begun(names->name)) || (older && work_folder_exists(names->name));
    if (*skips || !(also || older || is_work(path, names->name)))
        return TOKMAP_OK;
    return excluded_kind_error(older ? EXCLUDED_OLDER : EXCLUDED_OUTPUT, path, error);
}

/* ---- sums ---- */

/* A file that several units share, in the sum of the units so far. */
struct cut_file {
    bool counted; /* true if it is counted among the files */
    bool lost;    /* true if the rest of a part was left out, so that it is not counted */
};

/* Adds a part of a file: it counts once, after corpus_counts_add() of all its parts. */
static void part_count(struct corpus_counts *sum, const struct unit *unit, const struct corpus_counts *more,
                       struct cut_file *file)
{
    const enum corpus_format format =
        unit->groups ? CORPUS_PARQUET : CORPUS_JSONL; /* no other is cut (corpus_range.h) */
    const uint64_t times = file->counted + more->files;
    file->lost = file->lost || more->files_skipped;
    file->counted = times && !file->lost;
    sum->files -= times - file->counted;
    sum->files_of[format] -= times - file->counted;
}

/* Adds the record of a unit. */
static void result_add(struct pack_result *sum, const struct pack_result *more)
{
    corpus_counts_add(&sum->counts, &more->counts);
    sum->tokens += more->tokens;
    sum->eod_tokens += more->eod_tokens;
    sum->bos_tokens += more->bos_tokens;
    sum->eod_present += more->eod_present;
    sum->bos_present += more->bos_present;
    sum->has_mask |= more->has_mask;
    sum->counted_tokens += more->counted_tokens;
    sum->untaught += more->untaught;
    sum->uncut += more->uncut;
    fim_counts_add(&sum->fim, &more->fim);
    chat_counts_add(sum->roles, more->roles);
    for (size_t i = 0; i < RECORD_COLUMNS_MOST; i++)
        sum->with_value[i] += more->with_value[i];
    sum->largest_id = max64(sum->largest_id, more->largest_id);
    sum->oversized += more->oversized;
    sum->listed.documents += more->listed.documents;
    for (size_t i = 0; i < LISTED_MOST; i++)
        sum->listed.dropped[i] += more->listed.dropped[i];
    sum->dropped.documents += more->dropped.documents;
    sum->dropped.duplicates += more->dropped.duplicates;
    sum->dropped.near_duplicates += more->dropped.near_duplicates;
    sum->dropped.excluded += more->dropped.excluded;
    sum->dropped.file_bytes += more->dropped.file_bytes;
    sum->dropped.by_minhash |= more->dropped.by_minhash;
    sum->dropped.read_twice |= more->dropped.read_twice;
    for (uint32_t i = 0; i < SPLIT_SETS_MOST; i++) {
        sum->sets[i].documents += more->sets[i].documents;
        sum->sets[i].tokens += more->sets[i].tokens;
        sum->sets[i].oversized += more->sets[i].oversized;
        sum->sets[i].sealed_bytes += more->sets[i].sealed_bytes;
    }
}

enum tokmap_status pack_units_sum(const struct pack_options *options, const struct work_units *units,
                                  const char *folder, uint64_t key, struct pack_result *result,
                                  struct tokmap_error *error)
{
    struct histogram lengths = {0};
    struct cut_file file = {.counted = false};
    struct listed_search *listed = NULL;
    struct unit_result *record = malloc(sizeof *record);
    enum tokmap_status status = record && histogram_new(&lengths) ? TOKMAP_OK : error_set_memory(error, lacking, 0);
    memset(result, 0, sizeof *result);
    if (!status && options->listed)
        status = listed_search_new(&listed, options->listed, 0, &result->listed, false, error);
    for (uint64_t i = 0; i < units->count && !status; i++) {
        const struct stage_id id = unit_record_id(folder, key, i);
        status = options->stop && options->stop(options->user)
                     ? error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted")
                     : unit_record_read(&id, record, &lengths, listed, error);
        if (!status)
            result_add(result, &record->pack);
        file = units->list[i].begin ? file : (struct cut_file){.counted = false};
        if (!status && units->list[i].end)
            part_count(&result->counts, &units->list[i], &record->pack.counts, &file);
    }
    if (!status)
        lengths_of(&lengths, &result->lengths);
    if (!status && listed)
        status = listed_search_check(listed, options->corpus.skip, error);
    listed_search_free(listed);
    result->counts.not_read = units->not_read;
    histogram_free(&lengths);
    free(record);
    return status;
}

/* Returns the files and records that a limit counts: all but those that options ask to leave out. */
static uint64_t left_out_count(const struct corpus_counts *counts)
{
    uint64_t sum = 0;
    for (int i = 0; i < CORPUS_REASONS; i++)
        if (i != CORPUS_REASON_LENGTH && i != CORPUS_REASON_NOT_TEXT && i != CORPUS_REASON_DUPLICATE &&
            i != CORPUS_REASON_NEAR_DUPLICATE && i != CORPUS_REASON_EXCLUDED && i != CORPUS_REASON_LISTED)
            sum += counts->left_out[i].files + counts->left_out[i].records;
    return sum;
}

/* Checks what must be true of all units together, as pack_run() does for work without units. */
static enum tokmap_status sum_check(const struct finish *finish, const struct pack_result *result,
                                    struct tokmap_error *error)
{
    const struct corpus_counts *counts = &result->counts;
    const struct skip_limit *limit = &finish->options->skip_limit;
    const uint64_t left_out = left_out_count(counts);
    const enum tokmap_status status = pack_documents_check(finish->options, result, error);
    if (status)
        return status;
    if (skip_limit_passed(limit, left_out, counts->documents, true))
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "files and records left out: %" PRIu64 ", documents kept: %" PRIu64
                         "; this is more than --max-skipped %s allows; correct the inputs, or raise the limit",
                         left_out, counts->documents, limit->text);
    return TOKMAP_OK;
}

/* ---- files ---- */

/* Returns the path of a file of a shard: of one that a unit has, or of one that is merged. */
static char *shard_path(const struct finish *finish, uint64_t unit, uint32_t set, uint64_t shard, enum shard_file file,
                        enum shard_state state)
{
    char ending[SPLIT_NAME_MOST + 2];
    const char *name = shard_file_ending(file, state);
    pack_set_ending(finish->options, set, ending);
    return finish->options->shuffle ? merged_shard_path(finish->folder, shard, name)
                                    : unit_shard_path(finish->folder, unit, ending, shard, name);
}

/* Checks that a file of a finished shard is there. */
static enum tokmap_status file_check(const struct finish *finish, const char *path, struct tokmap_error *error)
{
    struct os_stat found;
    const int system = path ? os_lstat(path, &found) : 0;
    if (!path)
        return error_set_memory(error, lacking, 0);
    return system ? error_set_system(
                        error, system, path, TOKMAP_NO_OFFSET,
                        finish->options->shuffle
                            ? "a finished shard cannot be found; remove the file merged- with its number, and run its "
                              "task again"
                            : "a finished shard of a unit cannot be found; remove the unit's record, the file packed- "
                              "with its number, and run its task again")
                  : TOKMAP_OK;
}

/* Reads the content id of a shard from its index. */
static enum tokmap_status content_read(struct finish *finish, uint32_t set, const char *path,
                                       struct tokmap_error *error)
{
    struct index index;
    const enum tokmap_status status = index_open(&index, path, error);
    if (status)
        return status;
    hash_state_add(finish->contents[set], index.shard.content, sizeof index.shard.content);
    memcpy(finish->record->pack.sets[set].content, index.shard.content, sizeof index.shard.content);
    index_close(&index);
    return TOKMAP_OK;
}

/* Replaces the path of an index by that of a copy with corrected records. */
static enum tokmap_status index_shift(const struct finish *finish, uint32_t set, char **path, uint64_t records,
                                      struct tokmap_error *error)
{
    char *prefix = set_work_shard(finish->work, set, finish->shards[set]);
    char *into = prefix ? shard_file_path(prefix, SHARD_INDEX, SHARD_READY) : NULL;
    const enum tokmap_status status =
        into ? origin_shift(*path, into, records, finish->options->sync, error) : error_set_memory(error, lacking, 0);
    free(prefix);
    if (status) {
        free(into);
        return status;
    }
    free(*path);
    *path = into;
    return TOKMAP_OK;
}

/* Adds one shard to the group, as the next one of its set, and reads its content id. shard: of the unit, or of all that
 * are merged. */
static enum tokmap_status shard_add(struct finish *finish, uint64_t unit, uint32_t set, uint64_t shard,
                                    uint64_t records, bool has_mask, struct tokmap_error *error)
{
    const enum shard_file files[] = {finish->options->seal ? SHARD_SEALED : SHARD_TOKENS, SHARD_MASK, SHARD_INDEX};
    const uint64_t number = finish->shards[set];
    if (number == SET_SHARDS_MOST)
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "the documents need more than %d shards; choose larger ones with --shard-tokens",
                         SET_SHARDS_MOST);
    char *name = pack_set_name(finish->options, set);
    enum tokmap_status status = name ? TOKMAP_OK : error_set_memory(error, lacking, 0);
    for (int i = 0; i < 3 && !status; i++) {
        if (files[i] == SHARD_MASK && !has_mask)
            continue;
        char *from = shard_path(finish, unit, set, shard, files[i], SHARD_READY);
        status = file_check(finish, from, error);
        if (!status && files[i] == SHARD_INDEX)
            status = content_read(finish, set, from, error);
        if (!status && files[i] == SHARD_INDEX && records)
            status = index_shift(finish, set, &from, records, error);
        if (!status && files[i] == SHARD_INDEX)
            status = set_work_state(finish->work, set, from, error);
        if (status)
            free(from);
        else
            name_files_add(set_work_group(finish->work), files[i] == SHARD_INDEX, from,
                           shard_file_numbered(name, number, files[i], SHARD_FINAL));
    }
    /* Plain tokens of a sealed shard are there if a process was killed before it removed them. */
    char *plain = finish->options->seal && !status
                      ? shard_path(finish, unit, set, shard, SHARD_TOKENS, SHARD_READY_PARTIAL)
                      : NULL;
    if (plain)
        (void)os_unlink(plain);
    free(plain);
    free(name);
    finish->shards[set] += !status;
    return status;
}

/* Adds the shards of a set. */
static enum tokmap_status set_add(struct finish *finish, uint32_t set, bool empty, struct pack_result *result,
                                  struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    const struct pack_result *record = &finish->record->pack;
    uint64_t records = 0; /* records of the open file, in the units before */
    for (uint64_t i = 0; i < finish->units->count && !status; i++) {
        const struct unit *unit = &finish->units->list[i];
        const bool wanted = empty && !finish->shards[set];
        const struct stage_id id = unit_record_id(finish->folder, finish->found->key, i);
        status = unit_record_read(&id, finish->record, NULL, NULL, error);
        records = unit->begin ? records : 0;
        const struct shard_set_result *found = &record->sets[set];
        const uint64_t shards = found->documents || wanted ? found->shards : 0;
        for (uint64_t k = 0; k < shards && !status; k++)
            status = shard_add(finish, i, set, k, records, record->has_mask, error);
        if (!status && shards)
            memcpy(result->sets[set].content, found->content, sizeof found->content);
        records += status ? 0 : record->counts.lines;
    }
    if (!status && finish->shards[set] != 1)
        hash128_store(hash_state_128(finish->contents[set]), result->sets[set].content);
    result->sets[set].shards = finish->shards[set];
    result->shards += finish->shards[set];
    return status;
}

/* Adds the merged shards of a set, which begin with number `first` of all. */
static enum tokmap_status merged_add(struct finish *finish, uint32_t set, uint64_t first, struct pack_result *result,
                                     struct tokmap_error *error)
{
    const struct pack_found *found = finish->found;
    const uint64_t shards = found->cuts.sets[set].shards;
    struct shard_set_result *sum = &result->sets[set];
    struct merged_shard shard = {0};
    uint64_t documents = 0, tokens = 0;
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t k = 0; k < shards && !status; k++) {
        const struct stage_id id = merged_shard_id(finish->folder, found->key, first + k);
        status = merged_shard_read(&shard, &id, error);
        if (!status && (shard.set != set || shard.shard != k))
            status = stage_corrupt(&id, error);
        if (!status)
            status = shard_add(finish, 0, set, first + k, 0, result->has_mask, error);
        if (!status && memcmp(finish->record->pack.sets[set].content, shard.content, sizeof shard.content) != 0)
            status = stage_corrupt(&id, error);
        documents += shard.documents;
        tokens += shard.tokens;
        sum->sealed_bytes += shard.sealed_bytes;
    }
    if (!status && (documents != sum->documents || tokens != sum->tokens))
        return error_set(error, TOKMAP_ERROR_CORRUPT, finish->folder, TOKMAP_NO_OFFSET,
                         "the shards have %" PRIu64 " documents with %" PRIu64 " tokens, and the units %" PRIu64
                         " with %" PRIu64 "; remove the folder, and run all tasks again",
                         documents, tokens, sum->documents, sum->tokens);
    if (!status && shards == 1)
        memcpy(sum->content, shard.content, sizeof sum->content);
    else if (!status)
        hash128_store(hash_state_128(finish->contents[set]), sum->content);
    sum->shards = finish->shards[set];
    sum->oversized = found->cuts.sets[set].oversized;
    result->shards += finish->shards[set];
    result->oversized += sum->oversized;
    return status;
}

static enum tokmap_status work_open(struct finish *finish, struct tokmap_error *error)
{
    const struct pack_options *options = finish->options;
    char endings[SPLIT_SETS_MOST][SPLIT_NAME_MOST + 2];
    const char *list[SPLIT_SETS_MOST];
    for (uint32_t i = 0; i < pack_output_sets(options); i++) {
        pack_set_ending(options, i, endings[i]);
        list[i] = endings[i];
    }
    const struct set_work_options work = {.endings = list,
                                          .sets = pack_output_sets(options),
                                          .sealed = options->seal != NULL,
                                          .replace = options->replace,
                                          .sync = options->sync,
                                          .keep = true,
                                          .placed = true,
                                          .continues = true,
                                          .last = options->before_commit,
                                          .last_user = options->user};
    enum set_note note = SET_NOTE_NONE;
    enum tokmap_status status = set_work_open(&finish->work, options->prefix, &work, error);
    if (!status)
        status = set_note_find(options->prefix, &note, error);
    return status || note != SET_NOTE_NAMED ? status
                                            : error_set(error, TOKMAP_ERROR_EXISTS, options->prefix, TOKMAP_NO_OFFSET,
                                                        "another process has given the shards their names");
}

static enum tokmap_status sets_finish(struct finish *finish, struct pack_result *result, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    uint64_t merged = 0;
    result->shards = 0;
    for (uint32_t i = 0; i < pack_output_sets(finish->options) && !status; i++) {
        finish->contents[i] = hash_state_new();
        if (!finish->contents[i])
            status = error_set_memory(error, lacking, 0);
        else if (finish->options->shuffle)
            status = merged_add(finish, i, merged, result, error);
        else
            status = set_add(finish, i, !result->sets[i].documents, result, error);
        merged += finish->shards[i];
        if (!status && !finish->shards[i])
            status = error_set(error, TOKMAP_ERROR_CORRUPT, finish->folder, TOKMAP_NO_OFFSET,
                               "no unit has a shard of this set; remove the folder, and run all tasks again");
    }
    if (!finish->options->split)
        memcpy(result->content, result->sets[0].content, sizeof result->content);
    return status;
}

/* Passes on what was left out of all units. */
static enum tokmap_status skipped_list(const struct pack_options *options, const struct work_units *units,
                                       const char *folder, struct tokmap_error *error)
{
    const struct skipped_taker *taker = options->skipped_taker;
    uint64_t key;
    if (!unit_record_key(options, &key))
        return error_set_memory(error, lacking, 0);
    struct unit_result *record = malloc(sizeof *record);
    enum tokmap_status status = record ? taker->begin(taker->user, error) : error_set_memory(error, lacking, 0);
    for (uint64_t i = 0; i < units->count && !status; i++) {
        const struct stage_id id = unit_record_id(folder, key, i);
        status = options->stop && options->stop(options->user)
                     ? error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted")
                     : unit_record_read(&id, record, NULL, NULL, error);
        if (!status)
            status = skipped_items_read(folder, key, i, &record->skipped, taker, error);
    }
    free(record);
    return status ? status : taker->end(taker->user, error);
}

/* ---- files of other projects ---- */

#define LOCK_WAIT_NS ((uint64_t)50000000) /* between two tries to get the lock */
#define LOCK_TRIES 20

static enum tokmap_status lock_take(const char *lock, int *fd, struct tokmap_error *error)
{
    int system = EWOULDBLOCK;
    /* Other tasks hold the lock for a moment when they look at the names. */
    for (int i = 0; i < LOCK_TRIES && system == EWOULDBLOCK; i++) {
        if (i)
            os_sleep_ns(LOCK_WAIT_NS);
        system = partial_file_open(lock, NULL, NULL, fd);
    }
    if (system == EWOULDBLOCK)
        return error_set(error, TOKMAP_ERROR_BUSY, lock, TOKMAP_NO_OFFSET,
                         "another process is writing the files of other projects beside this output; wait for it");
    return system ? error_set_system(error, system, lock, TOKMAP_NO_OFFSET, "the output cannot be locked") : TOKMAP_OK;
}

enum tokmap_status pack_finish_also(const struct pack_options *options, const struct work_units *units,
                                    const char *folder, struct pack_result *result, struct tokmap_error *error)
{
    int fd = -1;
    char *lock = path_ended(options->prefix, ".partial");
    enum tokmap_status status = lock ? lock_take(lock, &fd, error) : error_set_memory(error, lacking, 0);
    const bool locked = !status;
    /* Another process may have continued, or finished, before this one had the lock. */
    if (!status)
        status = pack_also_read(options, folder, result, error);
    if (!status && units) /* the process that has named the shards was killed, perhaps before it did this */
        pack_output_settle(options);
    if (!status && units && options->skipped_taker) /* the list of the process that was killed is made once more */
        status = skipped_list(options, units, folder, error);
    if (!status)
        status = pack_also_write(options, folder, units != NULL, result, error);
    if (!status)
        status = pack_also_end(options, folder, error);
    if (!status)
        status = pack_clear_work(folder, options->sync, error);
    if (locked) {
        (void)os_unlink(lock);
        os_close(fd);
    }
    free(lock);
    return status;
}

/* ---- the end ---- */

enum tokmap_status pack_finish(const struct pack_options *options, const struct work_units *units, const char *folder,
                               const struct pack_found *found, struct pack_result *result, struct tokmap_error *error)
{
    struct dropped_writer *dropped = NULL;
    const struct drop_stage stage = pack_scan_options(options).stage;
    struct finish finish = {.options = options, .units = units, .folder = folder, .found = found};
    assert(options->shard_tokens && options->unit_bytes && units->count && !options->unit);
    assert((options->drop != NULL) == (found->scans != NULL));
    enum tokmap_status status = sum_check(&finish, result, error);
    finish.record = malloc(sizeof *finish.record);
    if (!status && !finish.record)
        status = error_set_memory(error, lacking, 0);
    if (!status)
        status = work_open(&finish, error);
    if (!status && options->skipped_taker)
        status = skipped_list(options, units, folder, error);
    if (!status)
        status = sets_finish(&finish, result, error);
    if (!status && options->drop)
        status = drop_finish(&dropped, options->prefix, NULL, &stage, units, found->scans, error);
    if (!status && options->also)
        status = pack_also_begin(options, folder, result, error);
    bool ready = false;
    if (!status) {
        drop_names_add(set_work_group(finish.work), options->prefix, dropped != NULL);
        struct set_work *work = finish.work;
        finish.work = NULL;
        status = set_work_commit(work, finish.shards, result->has_mask, &ready, error);
    }
    if (ready && dropped)
        dropped_writer_given(dropped);
    dropped_writer_free(dropped);
    set_work_leave(finish.work);
    for (uint32_t i = 0; i < SPLIT_SETS_MOST; i++)
        hash_state_free(finish.contents[i]);
    free(finish.record);
    return status || options->also ? status : pack_clear_work(folder, options->sync, error);
}

/* ---- the same output, made before ---- */

bool pack_inputs_hash(const struct work_units *units, char hex[33])
{
    struct hash_state *state = hash_state_new();
    bool good = state != NULL;
    for (uint64_t i = 0; i < units->file_count && good; i++) {
        char *shown = remote_shown(units->paths[i]);
        good = shown != NULL;
        if (good)
            hash_state_add(state, shown, strlen(shown) + 1);
        free(shown);
    }
    if (good) {
        uint8_t stored[16];
        hash128_store(hash_state_128(state), stored);
        hash128_hex(stored, hex);
    }
    hash_state_free(state);
    return good;
}

/* Returns true if no input has changed since the output got its name. */
static bool inputs_are_older(const struct work_units *units, uint64_t named_ns)
{
    struct os_stat stat;
    for (uint64_t i = 0; i < units->file_count; i++) /* an older file may replace one: its change is newer */
        if (!remote_kind(units->paths[i]) &&
            (os_stat(units->paths[i], &stat) || stat.modified_ns > named_ns || stat.changed_ns > named_ns))
            return false;
    return true;
}

/* Returns true if a shard of set `set` was made with these options: its about section is that of such a shard, up to
 * the totals, which are its last member. */
static bool about_is_same(const struct pack_options *options, uint32_t set, const struct index *index)
{
    static const struct pack_result no_result;
    static const struct shard_totals no_totals;
    const char *there;
    uint64_t there_bytes, bytes;
    char *own = shard_about_text(options, &no_result, set, &no_totals, &bytes);
    const char *totals = own;
    for (const char *next = own; next && (next = strstr(next, "\"totals\""));)
        totals = next++;
    const size_t same = own ? (size_t)(totals - own) : 0;
    const bool good = same && !index_about(index, &there, &there_bytes, NULL) && there_bytes > same &&
                      !memcmp(there, own, same) && (options->seal != NULL) == (index->sealed_bytes != 0);
    free(own);
    return good;
}

/* Returns true if a file exists, and its size. Frees the path. */
static bool is_there(char *path, uint64_t *bytes)
{
    struct os_stat found = {0};
    const bool there = path && !os_stat(path, &found);
    *bytes = found.bytes;
    free(path);
    return there;
}

/* Returns true if the tokens and the mask of a shard are there, whole. */
static bool tokens_are_there(const char *path, const struct index *index)
{
    uint64_t bytes;
    for (enum shard_file file = 0; file < SHARD_FILES; file++)
        if (shard_has_file(index, file) &&
            !(is_there(shard_file_beside(path, file, SHARD_FINAL), &bytes) && bytes == shard_file_size(index, file)))
            return false;
    return true;
}

/* Returns true if the first shard of a set has the files of other projects. */
static bool also_is_there(const struct pack_options *options, const char *name)
{
    const struct pack_also *also = options->also;
    size_t there = 0;
    uint64_t bytes;
    for (size_t i = 0; also && i < also->ending_count; i++) {
        char *shard = path_ended(name, "-00000");
        there += shard && is_there(path_ended(shard, also->endings[i]), &bytes);
        free(shard);
    }
    return !also || there == also->ending_count - (document_is_masked(&options->corpus) ? 0 : also->mask_endings);
}

static bool set_is_same(const struct pack_options *options, uint32_t set, const char *name)
{
    uint64_t shards;
    bool good = !set_shards_count(name, &shards, NULL);
    for (uint64_t i = 0; good && i < shards; i++) {
        struct index index;
        char *path = shard_file_numbered(name, i, SHARD_INDEX, SHARD_FINAL);
        good = path && !index_open(&index, path, NULL);
        if (good) {
            good = (i || about_is_same(options, set, &index)) && tokens_are_there(path, &index);
            index_close(&index);
        }
        free(path);
    }
    return good && also_is_there(options, name);
}

bool pack_output_is_same(const struct pack_options *options, const struct work_units *units)
{
    struct os_stat manifest;
    bool good = options->inputs_hash && (!options->other_output || !os_stat(options->other_output, &manifest));
    for (uint32_t set = 0; set < pack_output_sets(options) && good; set++) {
        char *name = pack_set_name(options, set);
        good = name && !os_lstat(name, &manifest) && manifest.kind == OS_KIND_FILE &&
               (set || inputs_are_older(units, manifest.modified_ns)) && set_is_same(options, set, name);
        free(name);
    }
    return good;
}
