/* SPDX-License-Identifier: MIT */
#include "dataset_about.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/error.h"
#include "common/visible.h"
#include "text/json_scan.h"
#include "text/path.h"

#define TEXT_MOST 65536u /* bytes of a path or a pattern; a longer one is ignored */

/* Reads a string as zero-terminated text that the caller frees. Takes a value of any kind; *text stays as it is if the
 * value is not a string, is too long, or contains a zero byte. */
static enum tokmap_status text_read(struct json_scan *scan, char **text, struct tokmap_error *error)
{
    struct json_string string;
    size_t lone, first;
    if (json_kind(scan) != JSON_STRING) {
        (void)json_skip(scan);
        return TOKMAP_OK;
    }
    if (!json_text(scan, &string) || string.count > TEXT_MOST)
        return TOKMAP_OK;
    char *made = malloc(string.count + 1);
    if (!made)
        return error_set_memory(error, "an index's description of itself", string.count + 1);
    memcpy(made, string.bytes, string.count);
    const size_t length = string.escaped ? json_unescape(made, string.count, &lone, &first) : string.count;
    made[length] = '\0';
    if (!length || strlen(made) != length) {
        free(made);
        return TOKMAP_OK;
    }
    free(*text);
    *text = made;
    return TOKMAP_OK;
}

static void name_store(struct about_facts *facts, const char *text)
{
    bool printable = strlen(text) < ABOUT_NAME;
    for (const char *at = text; *at; at++)
        printable = printable && (unsigned char)*at >= 0x20 && *at != 0x7f; /* it may be printed on a terminal */
    facts->name[0] = '\0';
    if (printable)
        memcpy(facts->name, text, strlen(text) + 1);
}

static enum tokmap_status tokenizer_read(struct json_scan *scan, struct about_facts *facts, struct tokmap_error *error)
{
    struct json_string member;
    enum tokmap_status status = TOKMAP_OK;
    if (json_kind(scan) != JSON_OBJECT || !json_enter_object(scan))
        return TOKMAP_OK;
    while (!status && json_member(scan, &member)) {
        char *text = NULL;
        char **into = json_name_is(&member, "path")             ? &facts->path
                      : json_name_is(&member, "special_tokens") ? &facts->special_tokens
                      : json_name_is(&member, "pattern")        ? &facts->pattern
                      : json_name_is(&member, "pattern_regex")  ? &facts->pattern_regex
                      : json_name_is(&member, "cut_as")         ? &facts->cut_as
                                                                : &text;
        const bool is_name = json_name_is(&member, "name"), is_special = json_name_is(&member, "special");
        status = text_read(scan, into, error);
        if (text && is_name)
            name_store(facts, text);
        if (text && is_special)
            facts->recognizes = !strcmp(text, "recognise") || !strcmp(text, "recognize"); /* kept spelling */
        free(text);
    }
    return status;
}

static void totals_read(struct json_scan *scan, struct about_facts *facts)
{
    struct json_string member;
    bool bytes = false, tokens = false;
    if (json_kind(scan) != JSON_OBJECT || !json_enter_object(scan))
        return;
    while (json_member(scan, &member)) {
        const bool is_bytes = json_name_is(&member, "text_bytes"), is_tokens = json_name_is(&member, "tokens");
        if ((!is_bytes && !is_tokens) || json_kind(scan) != JSON_NUMBER) {
            if (!json_skip(scan))
                return;
            continue;
        }
        if (!json_unsigned(scan, is_bytes ? &facts->text_bytes : &facts->tokens))
            return;
        bytes = bytes || is_bytes;
        tokens = tokens || is_tokens;
    }
    facts->counted = bytes && tokens;
}

/* Reads how documents are rearranged to fill in the middle. */
static void fim_read(struct json_scan *scan, struct about_facts *facts)
{
    struct json_string member;
    struct fim_marks *fim = &facts->fim;
    uint64_t unit = 0;
    *fim = (struct fim_marks){false, false, TOKMAP_NO_ID, TOKMAP_NO_ID, TOKMAP_NO_ID, TOKMAP_NO_ID};
    if (!json_enter_object(scan))
        return;
    while (json_member(scan, &member)) {
        uint64_t *into = json_name_is(&member, "prefix")   ? &fim->prefix
                         : json_name_is(&member, "middle") ? &fim->middle
                         : json_name_is(&member, "suffix") ? &fim->suffix
                         : json_name_is(&member, "end")    ? &fim->end
                         : json_name_is(&member, "unit")   ? &unit
                                                           : NULL;
        if (!(into && json_kind(scan) == JSON_NUMBER ? json_unsigned(scan, into) : json_skip(scan)))
            return;
    }
    fim->pieces = unit != 0;
    fim->used = fim->prefix != TOKMAP_NO_ID && fim->middle != TOKMAP_NO_ID && fim->suffix != TOKMAP_NO_ID;
}

static void options_read(struct json_scan *scan, struct about_facts *facts)
{
    struct json_string member;
    if (!json_enter_object(scan))
        return;
    while (json_member(scan, &member)) {
        if (json_name_is(&member, "fim") && json_kind(scan) == JSON_OBJECT)
            fim_read(scan, facts);
        else if (!json_skip(scan))
            return;
    }
}

enum tokmap_status about_read(const struct tokmap_shard_info *shard, struct about_facts *facts,
                              struct tokmap_error *error)
{
    struct json_scan scan;
    struct json_string member;
    enum tokmap_status status = TOKMAP_OK;
    memset(facts, 0, sizeof *facts);
    json_begin(&scan, shard->about, (size_t)shard->about_bytes);
    if (json_kind(&scan) != JSON_OBJECT || !json_enter_object(&scan))
        return TOKMAP_OK;
    while (!status && json_member(&scan, &member)) {
        const enum json_kind kind = json_kind(&scan);
        if (json_name_is(&member, "tokenizer") && kind == JSON_OBJECT)
            status = tokenizer_read(&scan, facts, error);
        else if (json_name_is(&member, "totals") && kind == JSON_OBJECT)
            totals_read(&scan, facts);
        else if (json_name_is(&member, "options") && kind == JSON_OBJECT)
            options_read(&scan, facts);
        else if (!json_skip(&scan))
            break;
    }
    /* A shard whose section counts other tokens than its head was edited; its count of bytes is not to be trusted. */
    facts->counted = facts->counted && facts->tokens == shard->tokens;
    return status;
}

void about_free(struct about_facts *facts)
{
    free(facts->path);
    free(facts->special_tokens);
    free(facts->pattern);
    free(facts->pattern_regex);
    free(facts->cut_as);
    memset(facts, 0, sizeof *facts);
}

const char *about_title(const struct about_facts *facts, char text[ABOUT_TITLE])
{
    const char *name = facts->name, *path = facts->path;
    char given[ABOUT_TITLE];
    const bool is_file = path_ends_in(name, strlen(name), ".json") || path_ends_in(name, strlen(name), ".model") ||
                         path_ends_in(name, strlen(name), ".bpe");
    if (!path || !*name || strcmp(path, name) == 0 || (is_file && path_ends_in(path, strlen(path), name)))
        (void)snprintf(given, sizeof given, "%.200s", path ? path : name);
    else
        (void)snprintf(given, sizeof given, "%.200s (%.100s)", is_file ? path : name, is_file ? name : path);
    (void)visible_copy(text, ABOUT_TITLE, given, strlen(given), "");
    return text;
}

bool dataset_tokenizer_name(const struct tokmap_dataset *dataset, char name[ABOUT_NAME])
{
    struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
    struct tokmap_error unused;
    struct about_facts facts;
    if (tokmap_dataset_shard(dataset, 0, &shard, &unused))
        return false;
    const enum tokmap_status status = about_read(&shard, &facts, &unused);
    memcpy(name, facts.name, ABOUT_NAME);
    about_free(&facts);
    return !status && name[0];
}

/* ---- columns ---- */

enum tokmap_status column_names(const struct tokmap_dataset *dataset, const char ***names, size_t *count,
                                struct tokmap_error *error)
{
    *names = NULL;
    enum tokmap_status status = tokmap_dataset_columns(dataset, NULL, 0, count, error);
    if (status || !*count)
        return status;
    *names = malloc(*count * sizeof **names);
    if (!*names)
        return error_set_memory(error, "the names of columns", *count * sizeof **names);
    status = tokmap_dataset_columns(dataset, *names, *count, count, error);
    if (status) {
        free(*names);
        *names = NULL;
        *count = 0;
    }
    return status;
}

static void column_report(const struct tokmap_column_info *info, struct cli_report *report)
{
    char label[64];
    const bool each = info->values == info->documents && info->documents > 1;
    (void)snprintf(label, sizeof label, "column %.50s%s", info->name, strlen(info->name) > 50 ? "..." : "");
    cli_report_item(report);
    cli_member(report, "name", cli_text(info->name));
    cli_numbers(report, "shards|documents", info->shards, info->documents);
    cli_fact(report, "values", label, cli_number(info->values), "%s %s, %s", CLI_COUNT(info->values),
             each                ? "values, one for each document"
             : info->values == 1 ? "different value"
                                 : "different values",
             CLI_BYTES(info->bytes));
    cli_member(report, "bytes", cli_number(info->bytes));
    cli_report_close(report);
}

enum tokmap_status columns_report(const struct tokmap_dataset *dataset, struct cli_report *report,
                                  struct tokmap_error *error)
{
    const char **names;
    size_t count = 0;
    enum tokmap_status status = column_names(dataset, &names, &count, error);
    cli_report_array(report, "columns");
    for (size_t c = 0; c < count && !status; c++) {
        struct tokmap_column_info info = TOKMAP_COLUMN_INFO_INIT;
        status = tokmap_dataset_column(dataset, names[c], &info, error);
        if (!status)
            column_report(&info, report);
    }
    cli_report_close(report);
    free(names);
    return status;
}

enum tokmap_status document_values(const struct tokmap_dataset *dataset, uint64_t document,
                                   void (*each)(void *user, const char *name, const struct tokmap_value *value),
                                   void *user, struct tokmap_error *error)
{
    const char **names;
    size_t count = 0;
    enum tokmap_status status = column_names(dataset, &names, &count, error);
    for (size_t c = 0; c < count && !status; c++) {
        struct tokmap_value value;
        status = tokmap_dataset_value(dataset, document, names[c], &value, error);
        if (!status && value.bytes)
            each(user, names[c], &value);
    }
    free(names);
    return status;
}
