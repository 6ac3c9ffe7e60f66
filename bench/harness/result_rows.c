/* SPDX-License-Identifier: MIT */
/* result_rows.c - see result_rows.h. */
#include "result_rows.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/error.h"
#include "platform/os.h"
#include "text/json_scan.h"
#include "text/path.h"
#include "text/utf8.h"

/* ---- one line ---- */

/* Makes room for one more element. */
static bool grow(void **list, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return true;
    const size_t more = *capacity ? 2 * *capacity : 64;
    void *grown = realloc(*list, more * size);
    if (!grown)
        return false;
    *list = grown;
    *capacity = more;
    return true;
}

/* Copies a string of JSON, decoded. Returns NULL, and sets *memory if that is the reason. */
static const char *text_keep(struct result_rows *rows, const struct json_string *string, bool *memory)
{
    size_t lone, first;
    char *text = malloc(string->count + 1);
    if (!text || !grow((void **)&rows->texts, rows->text_count, &rows->text_capacity, sizeof *rows->texts)) {
        free(text);
        *memory = true;
        return NULL;
    }
    memcpy(text, string->bytes, string->count);
    const size_t count = string->escaped ? json_unescape(text, string->count, &lone, &first) : string->count;
    text[count] = '\0';
    rows->texts[rows->text_count++] = text;
    return utf8_valid_prefix(text, count) == count && strlen(text) == count ? text : NULL;
}

/* Takes a string, or null, which leaves the text as it is. */
static bool text_take(struct json_scan *scan, struct result_rows *rows, const char **into, bool *memory)
{
    struct json_string string;
    if (json_kind(scan) == JSON_NULL)
        return json_null(scan);
    if (!json_text(scan, &string))
        return false;
    const char *text = text_keep(rows, &string, memory);
    if (!text)
        return json_wrong(scan, "a text is not UTF-8, or has a zero byte");
    *into = text;
    return true;
}

static bool real_take(struct json_scan *scan, double *into)
{
    return json_kind(scan) == JSON_NULL ? json_null(scan) : json_real(scan, into);
}

static bool member_take(struct json_scan *scan, const struct json_string *name, struct result_rows *rows,
                        struct result_row *row, bool *memory)
{
    const struct {
        const char *name, **into;
    } texts[] = {{"case", &row->case_name},  {"table", &row->table},     {"row", &row->row},
                 {"metric", &row->metric},   {"unit", &row->unit},       {"better", &row->better},
                 {"text", &row->text},       {"verdict", &row->verdict}, {"command", &row->command},
                 {"machine", &row->machine}, {"date", &row->date},       {"sentence", &row->text}};
    const struct {
        const char *name;
        double *into;
    } reals[] = {{"value", &row->value},
                 {"min", &row->smallest},
                 {"max", &row->largest},
                 {"limit", &row->limit},
                 {"ratio", &row->ratio}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (json_name_is(name, texts[i].name))
            return text_take(scan, rows, texts[i].into, memory);
    for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++)
        if (json_name_is(name, reals[i].name))
            return real_take(scan, reals[i].into);
    return json_name_is(name, "n") ? json_unsigned(scan, &row->count) : json_skip(scan);
}

static enum tokmap_status line_read(struct result_rows *rows, const char *line, size_t count, const char *path,
                                    uint64_t number, struct tokmap_error *error)
{
    struct json_scan scan;
    struct json_string name;
    bool memory = false;
    struct result_row row = {.case_name = "", .table = "", .row = "", .metric = "", .unit = "", .better = ""};
    row.text = row.verdict = row.command = row.machine = row.date = "";
    row.value = row.smallest = row.largest = row.limit = row.ratio = (double)NAN;
    json_begin(&scan, line, count);
    if (json_enter_object(&scan))
        while (json_member(&scan, &name) && member_take(&scan, &name, rows, &row, &memory))
            ;
    const bool sound = json_end(&scan);
    if (memory || !grow((void **)&rows->rows, rows->count, &rows->capacity, sizeof row))
        return error_set_memory(error, "rows of results", 0);
    if (!sound)
        return error_set_line(error, TOKMAP_ERROR_FORMAT, path, number,
                              "this is not a result of tokmap-bench --json: %s at byte %zu of the line",
                              scan.fault.reason, scan.fault.offset);
    if (!*row.case_name || !*row.metric)
        return error_set_line(error, TOKMAP_ERROR_FORMAT, path, number,
                              "this is not a result of tokmap-bench --json: it has no \"%s\"",
                              *row.case_name ? "metric" : "case");
    if (strcmp(row.better, "more") != 0 && strcmp(row.better, "less") != 0)
        row.better = "";
    rows->rows[rows->count++] = row;
    return TOKMAP_OK;
}

enum tokmap_status result_rows_parse(struct result_rows *rows, const char *text, size_t bytes, const char *path,
                                     struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    uint64_t number = 1;
    for (size_t at = 0; at < bytes && !status; number++) {
        const char *end = memchr(text + at, '\n', bytes - at);
        const size_t count = end ? (size_t)(end - text) - at : bytes - at;
        size_t blanks = 0;
        while (blanks < count && memchr(" \t\r", text[at + blanks], 3))
            blanks++;
        if (blanks < count)
            status = line_read(rows, text + at, count, path, number, error);
        at += count + 1;
    }
    return status;
}

/* ---- files ---- */

static enum tokmap_status file_read(struct result_rows *rows, const char *path, struct tokmap_error *error)
{
    struct bytes_buffer text = {0};
    enum tokmap_status status = cli_file_read(path, RESULT_BYTES_MOST, &text, error);
    if (!status)
        status = result_rows_parse(rows, (const char *)text.bytes, text.count, path, error);
    bytes_free(&text);
    return status;
}

struct names {
    char **list;
    size_t count, capacity;
};

static bool ends_with(const char *name, const char *ending)
{
    const size_t length = strlen(name), tail = strlen(ending);
    return length > tail && strcmp(name + length - tail, ending) == 0;
}

static int name_add(void *user, const char *name)
{
    struct names *names = user;
    if (name[0] == '.' || (!ends_with(name, ".json") && !ends_with(name, ".jsonl")))
        return 0;
    char *copy = strdup(name);
    if (!copy || !grow((void **)&names->list, names->count, &names->capacity, sizeof *names->list)) {
        free(copy);
        return ENOMEM;
    }
    names->list[names->count++] = copy;
    return 0;
}

static int name_order(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

enum tokmap_status result_rows_read(struct result_rows *rows, const char *path, struct tokmap_error *error)
{
    struct os_stat stat;
    struct names names = {0};
    enum tokmap_status status = TOKMAP_OK;
    int system = os_stat(path, &stat);
    if (!system && stat.kind != OS_KIND_FOLDER)
        return file_read(rows, path, error);
    if (!system)
        system = os_folder_list(path, name_add, &names);
    if (system)
        status = error_set_system(error, system, path, TOKMAP_NO_OFFSET,
                                  "the results cannot be read; name a file or a folder of results");
    else if (!names.count)
        status =
            error_set(error, TOKMAP_ERROR_NOT_FOUND, path, TOKMAP_NO_OFFSET,
                      "the folder has no results (*.json, *.jsonl); `tokmap-bench CASE --save FOLDER` writes them");
    if (names.count)
        qsort(names.list, names.count, sizeof *names.list, name_order);
    for (size_t i = 0; i < names.count; i++) {
        char *file = path_in(path, names.list[i]);
        if (!file && !status)
            status = error_set_memory(error, "a path", 0);
        if (!status)
            status = file_read(rows, file, error);
        free(file);
        free(names.list[i]);
    }
    free(names.list);
    return status;
}

void result_rows_free(struct result_rows *rows)
{
    for (size_t i = 0; i < rows->text_count; i++)
        free(rows->texts[i]);
    free(rows->texts);
    free(rows->rows);
    *rows = (struct result_rows){0};
}
