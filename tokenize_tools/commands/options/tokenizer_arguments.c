/* SPDX-License-Identifier: MIT */
#include "tokenizer_arguments.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "commands/report/dataset_about.h"
#include "common/error.h"
#include "common/hash.h"
#include "pack/shard_about.h"
#include "platform/os.h"
#include "remote/remote_url.h"
#include "target.h"
#include "text/path.h"
#include "tokenizer_fetch.h"
#include "vocabulary/folder.h"
#include "vocabulary/vocabulary.h"

int tokenizer_arguments_check(const struct cli_command *command, const struct tokenizer_arguments *arguments)
{
    const struct tokmap_tokenizer_options *options = &arguments->options;
    const char *given = options->pattern          ? "pattern"
                        : options->pattern_regex  ? "pattern-regex"
                        : options->special_tokens ? "special-tokens"
                                                  : NULL;
    if (arguments->eod_given && arguments->no_eod)
        return cli_misused(command, "--eod and --no-eod exclude each other");
    if (options->pattern && options->pattern_regex)
        return cli_misused(command, "--pattern and --pattern-regex exclude each other");
    if (given && !strcmp(arguments->spec, "bytes"))
        return cli_misused(command, "--%s describes a rank file: name that file with --tokenizer", given);
    return 0;
}

/* Opens the tokenizer, and prints what users should know about its file, or about the files of its folder. */
static int spec_open(const struct cli_command *command, struct tokenizer_arguments *arguments, bool print_note,
                     struct folder *folder, struct tokenizer **tokenizer)
{
    struct tokmap_error error;
    if (tokenizer_fetch(arguments->spec, &arguments->spec, &arguments->path, &error) ||
        vocabulary_open_reported(tokenizer, arguments->path, &arguments->options, folder, &error))
        return command_failed(command, &error);
    const struct tokenizer_info info = info_of_tokenizer(*tokenizer);
    if (print_note)
        folder_compare(folder, *tokenizer);
    if (info.note && print_note)
        cli_warn(command->program, "%s: %s", arguments->spec, info.note);
    for (uint32_t i = 0; i < folder->warning_count && print_note; i++)
        cli_warn(command->program, "%s: %s", arguments->spec, folder->warnings[i]);
    return 0;
}

int tokenizer_arguments_open(const struct cli_command *command, struct tokenizer_arguments *arguments, bool print_note,
                             struct tokenizer **tokenizer)
{
    struct tokmap_error error;
    const int special = arguments->special == TOKENIZER_SPECIAL_OLD ? TOKMAP_SPECIAL_RECOGNIZE : arguments->special;
    assert(special >= 0 && special < TOKENIZER_SPECIAL_OLD);
    arguments->options.special = (enum tokmap_special)special;
    if (special && !strcmp(arguments->spec, "bytes"))
        return cli_misused(command, "the tokenizer 'bytes' finds no special tokens in text: leave --special out, or "
                                    "name another tokenizer");
    if (arguments->folder)
        return spec_open(command, arguments, print_note, arguments->folder, tokenizer);
    struct folder *folder = calloc(1, sizeof *folder);
    if (!folder) {
        (void)error_set_memory(&error, "a tokenizer", sizeof *folder);
        return command_failed(command, &error);
    }
    const int status = spec_open(command, arguments, print_note, folder, tokenizer);
    folder_free(folder);
    free(folder);
    return status;
}

int tokenizer_arguments_id(const struct cli_command *command, const struct tokenizer *tokenizer, const char *option,
                           const char *value, uint64_t *id)
{
    const struct tokenizer_info info = info_of_tokenizer(tokenizer);
    *id = tokenizer_special(tokenizer, value);
    if (*id != TOKMAP_NO_ID)
        return 0;
    if (!cli_parse_number(value, id))
        return cli_misused(command, "--%s=%s: the tokenizer '%s' has no special token with that name%s", option, value,
                           info.name, info.added ? "; 'tokmap tokenizer' lists them" : "");
    if (*id >= info.vocabulary)
        return cli_misused(command, "--%s=%s: the ids of the tokenizer '%s' end at %" PRIu64, option, value, info.name,
                           info.vocabulary - 1);
    return 0;
}

/* Finds the id that --eod or --bos (`option`) means. value: "" for the token that the tokenizer names. */
static int id_find(const struct cli_command *command, const struct tokenizer *tokenizer, const char *option,
                   const char *value, uint64_t *id)
{
    const struct tokenizer_info info = info_of_tokenizer(tokenizer);
    if (!*value) {
        const bool is_eod = !strcmp(option, "eod");
        *id = is_eod ? info.eod_id : info.bos_id;
        if (*id == TOKMAP_NO_ID)
            return cli_misused(command,
                               "the tokenizer '%s' does not name a token that %s a document; choose one with --%s=NAME "
                               "or --%s=ID",
                               info.name, is_eod ? "ends" : "begins", option, option);
        return 0;
    }
    return tokenizer_arguments_id(command, tokenizer, option, value, id);
}

int tokenizer_arguments_eod_bos(const struct cli_command *command, const struct tokenizer_arguments *arguments,
                                const struct tokenizer *tokenizer, bool eod_needed, uint64_t *eod, uint64_t *bos)
{
    const struct tokenizer_info info = info_of_tokenizer(tokenizer);
    *eod = *bos = TOKMAP_NO_ID;
    if (eod_needed && !arguments->no_eod && !arguments->eod_given && info.eod_id == TOKMAP_NO_ID)
        return cli_misused(
            command,
            "the tokenizer '%s' does not name a token that ends a document; choose one with --eod=NAME or "
            "--eod=ID, or none with --no-eod",
            info.name);
    if (arguments->eod_given || (eod_needed && !arguments->no_eod)) {
        const int status = id_find(command, tokenizer, "eod", arguments->eod, eod);
        if (status)
            return status;
    }
    return arguments->bos_given ? id_find(command, tokenizer, "bos", arguments->bos, bos) : 0;
}

/* ---- the tokenizer of a dataset ---- */

#define SHARDS_TRIED 64u /* shards whose recorded paths are tried; more than a few differ only in a strange dataset */
#define FOLDERS_ABOVE 64 /* folders above an index in which a path is looked for */

struct search {
    const struct tokmap_dataset_info *info; /* of the dataset */
    const struct tokenizer_arguments *asked;
    const struct about_facts *facts; /* of the shard whose path is tried; NULL: the user named the file */
    struct tokenizer *found;
    bool recorded;     /* the dataset records the fingerprint of its tokenizer */
    uint8_t other[16]; /* the fingerprint of the last tokenizer that was not the right one, and the one that it has if
                          special tokens in text are recognized */
    uint8_t other_recognizing[16];
    bool other_seen;
    char seen[512]; /* its path, cut to fit */
};

/* Opens a file and compares its fingerprint. The fingerprint depends on whether special tokens in text were recognized
 * when the dataset was packed, and on whether a vocab.txt that does not say it made text lower case. A reader should
 * not have to know that, so all ways are tried. The width of tokens is not compared: ids mean the same in any.
 * special_tokens: the path that belongs to `spec`, or NULL. */
static enum tokmap_status file_try(struct search *search, const char *spec, const char *special_tokens,
                                   struct tokmap_error *error)
{
    const struct about_facts *facts = search->facts;
    struct tokmap_tokenizer_options options = search->asked->options;
    struct tokenizer_info info;
    const char *path;
    enum tokmap_status status = tokenizer_fetch(spec, &spec, &path, error);
    if (status)
        return status;
    options.special_tokens = special_tokens;
    if (facts) {
        options.pattern = facts->pattern;
        options.pattern_regex = facts->pattern_regex;
        options.cut_as = facts->cut_as;
    }
    for (int try = 0, tries = 2; try < tries; try++) {
        const bool recognize = (try % 2) != (facts && facts->recognizes);
        options.special = recognize ? TOKMAP_SPECIAL_RECOGNIZE : TOKMAP_SPECIAL_TEXT;
        options.lower_case = try < 2 ? search->asked->options.lower_case : try < 4 ? "yes" : "no";
        status = vocabulary_open(&search->found, path, &options, error);
        if (status && !options.lower_case && !strcmp(error->field, "lower_case")) {
            tries = 6;
            continue;
        }
        if (status)
            return status;
        info = info_of_tokenizer(search->found);
        if (!memcmp(info.fingerprint, search->info->tokenizer, 16))
            return TOKMAP_OK;
        memcpy(recognize ? search->other_recognizing : search->other, info.fingerprint, sizeof search->other);
        tokenizer_close(search->found);
        search->found = NULL;
    }
    search->other_seen = true;
    (void)snprintf(search->seen, sizeof search->seen, "%s", spec);
    return TOKMAP_OK;
}

/* Tries the recorded paths below `folder` ("" for the current one). A file that does not exist, or is not a tokenizer,
 * is passed over: only running out of memory is a failure. */
static enum tokmap_status folder_try(struct search *search, const char *folder, struct tokmap_error *error)
{
    const struct about_facts *facts = search->facts;
    struct tokmap_error reason;
    struct os_stat stat;
    enum tokmap_status status = TOKMAP_OK;
    char *path = path_in(path_is_absolute(facts->path) ? "" : folder, facts->path);
    char *special = NULL;
    const bool hub = remote_kind(facts->path) == REMOTE_HUB;
    if (facts->special_tokens && path)
        special = path_in(path_is_absolute(facts->special_tokens) ? "" : folder, facts->special_tokens);
    if (!path || (facts->special_tokens && !special))
        status = error_set_memory(error, "a path", strlen(folder) + strlen(facts->path));
    else if (hub || (!os_stat(path, &stat) && (stat.kind == OS_KIND_FILE || stat.kind == OS_KIND_FOLDER)))
        status = file_try(search, path, special, error ? error : &reason);
    if (status != TOKMAP_ERROR_MEMORY && !hub)
        status = TOKMAP_OK;
    free(path);
    free(special);
    return status;
}

/* Looks for the paths that one shard records, in all places that tokenizer_arguments.h lists. */
static enum tokmap_status shard_try(struct search *search, const char *index_path, struct tokmap_error *error)
{
    enum tokmap_status status = folder_try(search, "", error);
    if (status || search->found || path_is_absolute(search->facts->path))
        return status;
    char *folder = path_folder(index_path);
    struct os_stat here = {0}, above = {0};
    for (int i = 0; folder && i < FOLDERS_ABOVE && !status; i++) {
        status = folder_try(search, folder, error);
        char *next = status || search->found ? NULL : path_in(folder, "..");
        const bool ends = next && (os_stat(folder, &here) || os_stat(next, &above) ||
                                   (here.device == above.device && here.inode == above.inode));
        free(folder);
        folder = next;
        if (ends)
            break;
    }
    free(folder);
    return status;
}

static enum tokmap_status recorded_try(struct search *search, const struct tokmap_dataset *dataset, char **recorded,
                                       struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t number = 0; number < search->info->shards && number < SHARDS_TRIED; number++) {
        struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
        struct about_facts facts;
        status = tokmap_dataset_shard(dataset, number, &shard, error);
        if (status)
            return status;
        status = about_read(&shard, &facts, error);
        if (!status && facts.path && (!*recorded || strcmp(*recorded, facts.path) != 0)) {
            search->facts = &facts;
            status = shard_try(search, shard.index_path, error);
            search->facts = NULL;
            free(*recorded);
            *recorded = facts.path;
            facts.path = NULL;
        }
        about_free(&facts);
        if (status || search->found)
            return status;
    }
    return TOKMAP_OK;
}

/* Reports that nothing is recorded about the ids. It names the dataset, because a run may have several. */
static enum tokmap_status not_recorded(const struct tokmap_dataset *dataset, struct tokmap_error *error)
{
    struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
    const enum tokmap_status status = tokmap_dataset_shard(dataset, 0, &shard, error);
    return status ? status
                  : error_set(error, TOKMAP_ERROR_UNSUPPORTED, shard.tokens_path, TOKMAP_NO_OFFSET,
                              "the index does not record which tokenizer made the ids; name that tokenizer's file with "
                              "--tokenizer, or print ids with --ids");
}

/* Reports a tokenizer that was neither named nor found. */
static enum tokmap_status not_found(const struct search *search, const struct tokmap_dataset *dataset,
                                    const char *recorded, struct tokmap_error *error)
{
    char name[ABOUT_NAME], hex[33] = "unknown";
    const bool named = dataset_tokenizer_name(dataset, name);
    if (search->recorded)
        hash128_hex(search->info->tokenizer, hex);
    if (recorded && search->other_seen)
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, NULL, TOKMAP_NO_OFFSET,
                         "the dataset was made with the tokenizer '%.200s' (fingerprint %s), but that file is now "
                         "another tokenizer (%.200s); name the file of the dataset's tokenizer with "
                         "--tokenizer, or print ids with --ids",
                         recorded, hex, search->seen);
    if (recorded)
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, NULL, TOKMAP_NO_OFFSET,
                         "the dataset was made with the tokenizer '%.300s' (fingerprint %s), and there is no such file "
                         "%s; name the tokenizer's file with --tokenizer, or print ids with --ids",
                         recorded, hex,
                         path_is_absolute(recorded) ? "any more"
                                                    : "in the current folder, the dataset's folder, or above it");
    if (!search->recorded && !named)
        return not_recorded(dataset, error);
    return error_set(error, TOKMAP_ERROR_UNSUPPORTED, NULL, TOKMAP_NO_OFFSET,
                     "the dataset was made with %s%s%s (fingerprint %s); name that tokenizer's file with "
                     "--tokenizer, or print ids with --ids",
                     named ? "the tokenizer '" : "another tokenizer", named ? name : "", named ? "'" : "", hex);
}

static enum tokmap_status named_try(struct search *search, const struct tokmap_dataset *dataset,
                                    struct tokmap_error *error)
{
    char name[ABOUT_NAME], hex[33], wanted[33], other[33], recognizing[96] = "";
    const struct tokenizer_arguments *asked = search->asked;
    const char *pinned, *path;
    enum tokmap_status status = tokenizer_fetch(asked->spec, &pinned, &path, error);
    if (status || !search->recorded) /* the user is taken at their word */
        return status ? status : vocabulary_open(&search->found, path, &asked->options, error);
    status = file_try(search, asked->spec, asked->options.special_tokens, error);
    if (status || search->found)
        return status;
    const bool named = dataset_tokenizer_name(dataset, name);
    hash128_hex(search->other, hex);
    hash128_hex(search->info->tokenizer, wanted);
    hash128_hex(search->other_recognizing, other);
    if (strcmp(hex, other) != 0)
        (void)snprintf(recognizing, sizeof recognizing, " (%s where special tokens in text are recognized)", other);
    return error_set(
        error, TOKMAP_ERROR_MISMATCH, asked->spec, TOKMAP_NO_OFFSET,
        "the dataset was not made with this tokenizer, whose fingerprint is %s%s; the fingerprint of the dataset's "
        "tokenizer%s%s%s is %s. Name the file of that tokenizer, or print ids with --ids",
        hex, recognizing, named ? " '" : "", named ? name : "", named ? "'" : "", wanted);
}

enum tokmap_status dataset_tokenizer_open(struct tokenizer **tokenizer, const struct tokmap_dataset *dataset,
                                          const struct tokenizer_arguments *asked, bool *assumed,
                                          struct tokmap_error *error)
{
    static const uint8_t unknown[16];
    const struct tokmap_dataset_info info = info_of_dataset(dataset);
    struct search search = {.info = &info, .asked = asked};
    char *recorded = NULL;
    *assumed = false;
    *tokenizer = NULL;
    enum tokmap_status status = TOKMAP_OK;
    if (!info.shards)
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, NULL, TOKMAP_NO_OFFSET,
                         "a synthetic dataset has no text; choose another one, or print its ids with --ids");
    search.recorded = memcmp(info.tokenizer, unknown, sizeof unknown) != 0;
    if (asked->spec_given) {
        status = named_try(&search, dataset, error);
    } else {
        status = file_try(&search, asked->spec, asked->options.special_tokens, error);
        search.other_seen = false; /* the built-in tokenizer is not a file that has changed */
        if (!status && !search.found)
            status = recorded_try(&search, dataset, &recorded, error);
        if (!status && !search.found)
            status = not_found(&search, dataset, recorded, error);
    }
    free(recorded);
    *tokenizer = search.found;
    *assumed = search.found && !search.recorded;
    return status;
}

void dataset_tokenizer_note(const char *program, const struct tokenizer *tokenizer)
{
    if (!tokenizer)
        return;
    const struct tokenizer_info info = info_of_tokenizer(tokenizer);
    if (info.note)
        cli_say(program, "%s: %s", info.name, info.note);
}

void dataset_tokenizer_assumed(const char *program, const char *tokenizer)
{
    cli_say(program, "the dataset does not record its tokenizer, so the texts are those that '%s' gives", tokenizer);
}

/* ---- a tokenizer that the user states ---- */

static enum tokmap_status about_make(struct stated_tokenizer *stated, const struct tokenizer *tokenizer,
                                     const struct tokmap_tokenizer_options *options, const char *path,
                                     struct tokmap_error *error)
{
    struct cli_report report;
    size_t bytes;
    cli_report_begin_text(&report, true);
    shard_about_tokenizer(&report, tokenizer, options, path);
    stated->about = cli_report_end_text(&report, &bytes);
    if (!stated->about)
        return error_set_memory(error, "the about section", 0);
    stated->about[strcspn(stated->about, "\n")] = '\0'; /* the writer ends the object with a line */
    return TOKMAP_OK;
}

static enum tokmap_status mismatch(const struct tokenizer_arguments *asked, const uint8_t *found,
                                   const uint8_t *recorded, struct tokmap_error *error)
{
    char ours[33], theirs[33];
    hash128_hex(found, ours);
    hash128_hex(recorded, theirs);
    return error_set(error, TOKMAP_ERROR_MISMATCH, asked->spec, TOKMAP_NO_OFFSET,
                     "the dataset was not made with this tokenizer, whose fingerprint is %s; the fingerprint that the "
                     "dataset records is %s. Leave out --tokenizer to keep that",
                     ours, theirs);
}

/* Opens the tokenizer. The fingerprint depends on whether special tokens in text are recognized. Ids are stated to be
 * those of a tokenizer that takes them for text, the default of `tokmap pack`; a recorded fingerprint may be either. */
enum tokmap_status stated_tokenizer_open(struct stated_tokenizer *stated, const struct tokenizer_arguments *asked,
                                         const uint8_t *recorded, struct tokmap_error *error)
{
    static const uint8_t none[16];
    static const enum tokmap_special ways[] = {TOKMAP_SPECIAL_TEXT, TOKMAP_SPECIAL_RECOGNIZE};
    const bool is_recorded = recorded && memcmp(recorded, none, sizeof none);
    const char *spec, *path;
    enum tokmap_status status = tokenizer_fetch(asked->spec, &spec, &path, error);
    *stated = (struct stated_tokenizer){.vocabulary = 0};
    for (int i = 0; i < 2 && asked->spec_given && !stated->vocabulary && !status; i++) {
        struct tokmap_tokenizer_options options = asked->options;
        struct tokenizer *tokenizer;
        options.special = ways[i];
        status = vocabulary_open(&tokenizer, path, &options, error);
        if (status)
            break;
        const struct tokenizer_info info = info_of_tokenizer(tokenizer);
        if (!i)
            memcpy(stated->fingerprint, info.fingerprint, sizeof stated->fingerprint);
        if (!is_recorded || !memcmp(info.fingerprint, recorded, sizeof none)) {
            memcpy(stated->fingerprint, info.fingerprint, sizeof stated->fingerprint);
            stated->vocabulary = info.vocabulary;
            (void)snprintf(stated->name, sizeof stated->name, "%s", info.name);
            status = about_make(stated, tokenizer, &options, strcmp(spec, "bytes") ? spec : NULL, error);
        }
        tokenizer_close(tokenizer);
    }
    if (!status && asked->spec_given && !stated->vocabulary)
        status = mismatch(asked, stated->fingerprint, recorded, error);
    if (status)
        stated_tokenizer_free(stated);
    return status;
}

void stated_tokenizer_free(struct stated_tokenizer *stated)
{
    free(stated->about);
    *stated = (struct stated_tokenizer){.vocabulary = 0};
}
