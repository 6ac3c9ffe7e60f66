/* SPDX-License-Identifier: MIT */
/* result_rows.c - see result_rows.h. */
#include "result_rows.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
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

/* Returns zeros that memory_free() frees, or NULL. */
static void *keep(struct result_memory *memory, size_t bytes)
{
    const bool grown = grow((void **)&memory->list, memory->count, &memory->capacity, sizeof *memory->list);
    void *kept = grown ? calloc(1, bytes) : NULL;
    if (kept)
        memory->list[memory->count++] = kept;
    return kept;
}

static void memory_free(struct result_memory *memory)
{
    for (size_t i = 0; i < memory->count; i++)
        free(memory->list[i]);
    free(memory->list);
}

/* Copies a string of JSON, decoded. Returns NULL, and sets *memory if that is the reason. */
static const char *text_keep(struct result_rows *rows, const struct json_string *string, bool *memory)
{
    size_t lone, first;
    char *text = keep(&rows->texts, string->count + 1);
    *memory = !text;
    if (!text)
        return NULL;
    memcpy(text, string->bytes, string->count);
    const size_t count = string->escaped ? json_unescape(text, string->count, &lone, &first) : string->count;
    text[count] = '\0';
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
    } texts[] = {{"case", &row->case_name}, {"table", &row->table},     {"row", &row->row},
                 {"metric", &row->metric},  {"unit", &row->unit},       {"better", &row->better},
                 {"text", &row->text},      {"command", &row->command}, {"machine", &row->machine},
                 {"date", &row->date},      {"sentence", &row->text}};
    const struct {
        const char *name;
        double *into;
    } reals[] = {{"value", &row->value}, {"min", &row->smallest}, {"max", &row->largest}, {"limit", &row->limit}};
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
    row.text = row.machine = row.date = "";
    row.value = row.smallest = row.largest = row.limit = (double)NAN;
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

/* Gives a row that names no command the command, machine, and date of the row before it in the file. */
static void row_complete(struct result_row *row, const struct result_row *before)
{
    if (!row->command) {
        row->command = before ? before->command : "";
        row->machine = before ? before->machine : row->machine;
        row->date = before ? before->date : row->date;
    }
}

enum tokmap_status result_rows_parse(struct result_rows *rows, const char *text, size_t bytes, const char *path,
                                     struct tokmap_error *error)
{
    const size_t first = rows->count;
    enum tokmap_status status = TOKMAP_OK;
    uint64_t number = 1;
    for (size_t at = 0; at < bytes && !status; number++) {
        const char *end = memchr(text + at, '\n', bytes - at);
        const size_t count = end ? (size_t)(end - text) - at : bytes - at;
        size_t blanks = 0;
        while (blanks < count && memchr(" \t\r", text[at + blanks], 3))
            blanks++;
        if (blanks < count) {
            status = line_read(rows, text + at, count, path, number, error);
            const size_t last = rows->count - 1;
            if (!status)
                row_complete(&rows->rows[last], last > first ? &rows->rows[last - 1] : NULL);
        }
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

static bool ends_with(const char *name, const char *ending)
{
    const size_t length = strlen(name), tail = strlen(ending);
    return length > tail && strcmp(name + length - tail, ending) == 0;
}

static int name_add(void *user, const char *name)
{
    if (name[0] == '.' || (!ends_with(name, ".json") && !ends_with(name, ".jsonl")))
        return 0;
    char *copy = keep(user, strlen(name) + 1);
    if (!copy)
        return ENOMEM;
    memcpy(copy, name, strlen(name));
    return 0;
}

static int name_order(const void *a, const void *b)
{
    return strcmp(*(void *const *)a, *(void *const *)b);
}

enum tokmap_status result_rows_read(struct result_rows *rows, const char *path, struct tokmap_error *error)
{
    struct os_stat stat;
    struct result_memory names = {0};
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
    }
    memory_free(&names);
    return status;
}

void result_rows_free(struct result_rows *rows)
{
    memory_free(&rows->texts);
    free(rows->rows);
    *rows = (struct result_rows){0};
}

/* ==== pictures ==== */

#define LOG_FROM 30.0  /* largest value / smallest value */
#define LABELS_MOST 48 /* groups of bars in one picture; more become further pictures */
#define COLORS_MOST 6
#define BUSY_PERCENT 10

/* One picture while its rows are found. */
struct group {
    const struct result_row *first; /* says what belongs into it */
    const struct result_row **rows;
    size_t count;
    const char *labels[LABELS_MOST], *colors[COLORS_MOST];
    size_t label_count, color_count;
    bool named; /* its labels are systems, and its colors metrics */
};

/* Returns false for texts, and for what describes the machine. */
static bool row_is_drawn(const struct result_row *row)
{
    static const char *const others[] = {"verdict", "equal",          "absent",        "about",       "note",
                                         "answer",  "others_percent", "steal_percent", "load_average"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (!strcmp(row->metric, others[i]))
            return false;
    return isfinite(row->value) && !*row->text;
}

static bool belongs(const struct result_row *row, const struct result_row *first)
{
    return row_is_drawn(row) && !strcmp(row->command, first->command) && !strcmp(row->case_name, first->case_name) &&
           !strcmp(row->table, first->table) && !strcmp(row->unit, first->unit) &&
           !strcmp(row->better, first->better) && !*row->row == !*first->row;
}

/* Returns the place of a name in a list, to which it is added; `most` if the list is full. */
static size_t place_of(const char **names, size_t *count, size_t most, const char *name)
{
    for (size_t i = 0; i < *count; i++)
        if (!strcmp(names[i], name))
            return i;
    if (*count == most)
        return most;
    names[*count] = name;
    return (*count)++;
}

/* Returns the metric for people: "next p99" for next_p99_us. */
static char *metric_label(struct result_plots *plots, const struct result_row *row)
{
    size_t length = strlen(row->metric);
    const size_t unit = strlen(row->unit);
    if (unit && length > unit + 1 && row->metric[length - unit - 1] == '_' &&
        !strcmp(row->metric + length - unit, row->unit))
        length -= unit + 1;
    char *label = keep(&plots->memory, length + 1);
    for (size_t i = 0; label && i < length; i++)
        label[i] = row->metric[i] == '_' ? ' ' : row->metric[i];
    return label;
}

/* ---- the picture of a group ---- */

static struct plot_point point_of(const struct result_row *row, const char *label)
{
    return (struct plot_point){.label = label, .y = row->value, .low = row->smallest, .high = row->largest};
}

/* Fills the points of a table of systems: series are metrics. */
static bool named_fill(struct result_plots *plots, struct group *group, struct plot_series *series)
{
    for (size_t c = 0; c < group->color_count; c++) {
        struct plot_point *points = keep(&plots->memory, group->label_count * sizeof *points);
        if (!points)
            return false;
        for (size_t l = 0; l < group->label_count; l++)
            points[l] = (struct plot_point){
                .label = group->labels[l], .y = (double)NAN, .low = (double)NAN, .high = (double)NAN};
        series[c] = (struct plot_series){.points = points};
        for (size_t i = 0; i < group->count; i++) {
            const struct result_row *row = group->rows[i];
            if (strcmp(row->metric, group->colors[c]) != 0)
                continue;
            series[c].name = series[c].name ? series[c].name : metric_label(plots, row);
            for (size_t l = 0; l < group->label_count; l++)
                if (!strcmp(row->row, group->labels[l]))
                    points[l] = point_of(row, group->labels[l]);
        }
        if (!series[c].name)
            return false;
    }
    return true;
}

/* Fills the points of a case: what was measured, and the limit. Returns the number of series, 0 without memory. */
static size_t metrics_fill(struct result_plots *plots, struct group *group, struct plot_series *series)
{
    struct plot_point *ours = keep(&plots->memory, group->count * sizeof *ours);
    struct plot_point *limits = keep(&plots->memory, group->count * sizeof *limits);
    bool limited = false;
    if (!ours || !limits)
        return 0;
    for (size_t i = 0; i < group->count; i++) {
        const struct result_row *row = group->rows[i];
        const char *label = metric_label(plots, row); /* also of one system: its metrics are the labels */
        if (!label)
            return 0;
        ours[i] = point_of(row, label);
        limits[i] = (struct plot_point){.label = label, .y = row->limit, .low = (double)NAN, .high = (double)NAN};
        limited |= isfinite(row->limit);
    }
    series[0] = (struct plot_series){"measured", ours, false};
    series[1] = (struct plot_series){"limit in the same run", limits, true};
    return limited ? 2 : 1;
}

/* Returns true if the values need a logarithmic axis: they are far apart, and none is negative. */
static bool is_logarithmic(const struct plot *plot)
{
    double largest = 0, smallest = (double)INFINITY;
    for (size_t s = 0; s < plot->series_count; s++)
        for (size_t i = 0; i < plot->labels; i++) {
            const double value = plot->series[s].points[i].y;
            if (value < 0)
                return false;
            if (isfinite(value) && value > 0) {
                largest = fmax(largest, value);
                smallest = fmin(smallest, value);
            }
        }
    return largest > LOG_FROM * smallest;
}

/* Makes a name for files: of every other character '-' is made, and '/' becomes "_per_". */
static void name_make(struct result_plot *plot, const struct result_row *row, const struct result_plots *plots)
{
    char text[160];
    size_t length = 0;
    const char *unit = !strcmp(row->unit, "%") ? "percent" : !strcmp(row->unit, "1") ? "number" : row->unit;
    (void)snprintf(text, sizeof text, "%.50s%s%.30s-%.20s", row->case_name, *row->table ? "-" : "", row->table, unit);
    for (const char *at = text; *at && length + 6 < sizeof plot->name - 12; at++) {
        if (*at == '/') {
            memcpy(plot->name + length, "_per_", 5);
            length += 5;
        } else {
            plot->name[length] = isalnum((unsigned char)*at) || (length && strchr("._", *at)) ? *at : '-';
            length++;
        }
    }
    plot->name[length] = '\0';
    size_t same = 0;
    for (const struct result_plot *other = plots->plots; other < plot; other++)
        same += !strncmp(other->name, plot->name, length) && (!other->name[length] || other->name[length] == '+');
    if (same)
        (void)snprintf(plot->name + length, sizeof plot->name - length, "+%zu", same + 1);
}

/* Makes the texts around the bars. Returns false without memory. */
static bool texts_make(struct result_plots *plots, struct result_plot *plot, const struct group *group,
                       const struct result_rows *rows)
{
    const struct result_row *row = group->first;
    const size_t room = 512;
    char *title = keep(&plots->memory, room), *subtitle = keep(&plots->memory, room),
         *made = keep(&plots->memory, room);
    const char **notes = keep(&plots->memory, 2 * sizeof *notes);
    uint64_t least = UINT64_MAX, most = 0;
    double others = 0;
    if (!title || !subtitle || !made || !notes)
        return false;
    for (size_t i = 0; i < group->count; i++) {
        least = group->rows[i]->count < least ? group->rows[i]->count : least;
        most = group->rows[i]->count > most ? group->rows[i]->count : most;
    }
    for (size_t i = 0; i < rows->count; i++)
        if (!strcmp(rows->rows[i].metric, "others_percent") && !strcmp(rows->rows[i].command, row->command))
            others = fmax(others, rows->rows[i].value);
    (void)snprintf(title, room, "%s%s%s: %s", row->case_name, *row->table ? " " : "", row->table,
                   plot_unit_name(row->unit));
    const int used = snprintf(subtitle, room, "%s%sbars are medians", row->better, *row->better ? " is better; " : "");
    if (most > 1)
        (void)snprintf(subtitle + used, room - (size_t)used,
                       ", marks go from the smallest to the largest of %" PRIu64 "%s%.0" PRIu64 " repeats", least,
                       most > least ? " to " : "", most > least ? most : 0);
    const size_t so_far = strlen(subtitle);
    (void)snprintf(subtitle + so_far, room - so_far, "%s", plot->plot.log_y ? "; logarithmic axis" : "");
    if (others >= BUSY_PERCENT)
        (void)snprintf(made, room, "%s, %s; other programs used %.0f%% of the processors", row->machine, row->date,
                       others);
    else
        (void)snprintf(made, room, "%s, %s", row->machine, row->date);
    notes[0] = row->command;
    notes[1] = made;
    plot->plot.title = title;
    plot->plot.subtitle = subtitle;
    plot->plot.notes = notes;
    plot->plot.note_count = 2;
    return true;
}

/* Adds the picture of a group, unless it would say nothing. Returns false without memory. */
static bool plot_add(struct result_plots *plots, struct group *group, const struct result_rows *rows)
{
    struct plot_series *series = keep(&plots->memory, COLORS_MOST * sizeof *series);
    struct result_plot *grown = realloc(plots->plots, (plots->count + 1) * sizeof *grown);
    if (grown)
        plots->plots = grown;
    if (!series || !grown)
        return false;
    struct result_plot *plot = &plots->plots[plots->count];
    *plot = (struct result_plot){.name = ""};
    size_t count = group->color_count;
    if (group->named ? !named_fill(plots, group, series) : !(count = metrics_fill(plots, group, series)))
        return false;
    if (group->count == 1 && count == 1)
        return true;
    plot->plot = (struct plot){.unit = group->first->unit,
                               .labels = group->named ? group->label_count : group->count,
                               .series = series,
                               .series_count = count};
    plot->plot.log_y = is_logarithmic(&plot->plot);
    if (!texts_make(plots, plot, group, rows))
        return false;
    name_make(plot, group->first, plots);
    plots->count++;
    return true;
}

/* ---- groups ---- */

/* Finds which rows belong to the one that begins a group and are not in another one, as many as a picture has room for.
 */
static void group_find(struct group *group, const struct result_rows *rows, size_t begin, bool *taken)
{
    const char *systems[2];
    size_t system_count = 0;
    group->first = &rows->rows[begin];
    for (size_t i = begin; i < rows->count; i++)
        if (*rows->rows[i].row && belongs(&rows->rows[i], group->first))
            (void)place_of(systems, &system_count, 2, rows->rows[i].row);
    group->named = system_count > 1;
    for (size_t i = begin; i < rows->count; i++) {
        const struct result_row *row = &rows->rows[i];
        if (taken[i] || !belongs(row, group->first))
            continue;
        if (group->named) {
            size_t labels = group->label_count, colors = group->color_count;
            if (place_of(group->labels, &labels, LABELS_MOST, row->row) == LABELS_MOST ||
                place_of(group->colors, &colors, COLORS_MOST, row->metric) == COLORS_MOST)
                continue;
            group->label_count = labels;
            group->color_count = colors;
        } else if (group->count == LABELS_MOST) {
            break;
        }
        taken[i] = true;
        group->rows[group->count++] = row;
    }
}

enum tokmap_status result_plots_make(struct result_plots *plots, const struct result_rows *rows,
                                     struct tokmap_error *error)
{
    bool *taken = calloc(rows->count + 1, sizeof *taken);
    const struct result_row **list = calloc(rows->count + 1, sizeof *list);
    bool memory = taken && list;
    for (size_t i = 0; i < rows->count && memory; i++) {
        struct group group = {.rows = list};
        if (taken[i] || !row_is_drawn(&rows->rows[i]))
            continue;
        group_find(&group, rows, i, taken);
        memory = plot_add(plots, &group, rows);
    }
    free(taken);
    free(list);
    return memory ? TOKMAP_OK : error_set_memory(error, "pictures of results", 0);
}

enum tokmap_status result_plots_write(const struct result_plots *plots, const char *folder, struct tokmap_error *error)
{
    static const char *const endings[] = {[PLOT_SVG] = ".svg", [PLOT_PNG] = ".png"};
    enum tokmap_status status = TOKMAP_OK;
    for (size_t i = 0; i < 2 * plots->count && !status; i++) {
        const struct result_plot *plot = &plots->plots[i / 2];
        char *path = path_join(folder, strlen(folder), plot->name, strlen(plot->name), endings[i % 2]);
        status = path ? plot_write(&plot->plot, i % 2 ? PLOT_PNG : PLOT_SVG, path, error)
                      : error_set_memory(error, "a path", 0);
        free(path);
    }
    return status;
}

void result_plots_free(struct result_plots *plots)
{
    memory_free(&plots->memory);
    free(plots->plots);
    *plots = (struct result_plots){0};
}
