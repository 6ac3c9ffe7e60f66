/* SPDX-License-Identifier: MIT */
#include "losses.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/whole_file.h"
#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "corpus/csv_field.h"
#include "run/exclusion.h"
#include "run/locate.h"
#include "run/run.h"
#include "step_rows.h"
#include "text/decimal.h"
#include "text/json_scan.h"

enum { STEP, ROW, RANK, CALL, LOSS, COLUMNS, CELL_MOST = 64 };
#define FILE_MOST ((size_t)4 << 30)

static const char *const names[COLUMNS] = {"step", "row", "rank", "call", "loss"};

struct reading {
    const char *path;
    uint64_t line;
    int columns[COLUMNS]; /* of CSV: which cell has the step, the row, and so on; -1: none */
    struct losses *losses;
    uint64_t capacity;
    struct tokmap_error *error;
};

#define wrong(reading, ...)                                                                                            \
    error_set_line((reading)->error, TOKMAP_ERROR_FORMAT, (reading)->path, (reading)->line, __VA_ARGS__)

static enum tokmap_status add(struct reading *reading, const struct loss *loss)
{
    struct losses *losses = reading->losses;
    if (!list_room(&losses->of, losses->count, &reading->capacity, sizeof *losses->of))
        return error_set_memory(reading->error, "the losses", reading->capacity * sizeof *losses->of);
    losses->of[losses->count] = *loss;
    if (!loss->of_call) /* the row says it all */
        losses->of[losses->count].rank = losses->of[losses->count].call = 0;
    losses->count++;
    return TOKMAP_OK;
}

/* Takes a number, or NaN, Infinity, or -Infinity, as Python writes them. */
static bool loss_read(struct json_scan *scan, double *loss)
{
    const char *bytes;
    size_t count;
    if (json_kind(scan) != JSON_NAN)
        return json_real(scan, loss);
    if (!json_value(scan, &bytes, &count))
        return false;
    *loss = *bytes == 'N' ? (double)NAN : *bytes == '-' ? (double)-INFINITY : (double)INFINITY;
    return true;
}

/* Returns what a loss lacks if it has the columns whose bits are set, or NULL. */
static const char *missing(unsigned found)
{
    const bool of_call = !(found & 1u << ROW) && found & (1u << RANK | 1u << CALL);
    const unsigned needed = 1u << STEP | 1u << LOSS | (of_call ? 1u << RANK | 1u << CALL : 1u << ROW);
    for (int i = 0; i < COLUMNS; i++)
        if (needed & ~found & 1u << i)
            return names[i];
    return NULL;
}

/* Returns where a loss has an integer, for a column other than LOSS. */
static uint64_t *integer_of(struct loss *loss, int column)
{
    return column == STEP ? &loss->step : column == ROW ? &loss->row : column == RANK ? &loss->rank : &loss->call;
}

static enum tokmap_status read_json(struct reading *reading, const char *line, size_t bytes)
{
    struct json_scan scan;
    struct json_string name;
    struct loss loss = {0};
    unsigned found = 0;
    json_begin(&scan, line, bytes);
    scan.not_finite_allowed = true;
    if (json_enter_object(&scan))
        while (json_member(&scan, &name)) {
            int i = 0;
            while (i < COLUMNS && !json_name_is(&name, names[i]))
                i++;
            found |= 1u << i;
            if (!(i == COLUMNS ? json_skip(&scan)
                  : i == LOSS  ? loss_read(&scan, &loss.loss)
                               : json_unsigned(&scan, integer_of(&loss, i))))
                break;
        }
    if (!json_end(&scan))
        return wrong(reading, "%s; write {\"step\": 12, \"row\": 3, \"loss\": 2.5}", scan.fault.reason);
    if (missing(found))
        return wrong(reading,
                     "the object has no \"%s\"; write {\"step\": 12, \"row\": 3, \"loss\": 2.5}, or \"rank\" and "
                     "\"call\" in place of \"row\"",
                     missing(found));
    loss.of_call = !(found & 1u << ROW);
    return add(reading, &loss);
}

/* Takes the next cell of a line. One that no number needs so much room for is cut, and ends with "~". Returns false
 * after the last one, and after a fault. */
static bool cell_next(struct csv_record *record, char cell[CELL_MOST])
{
    struct csv_field field;
    if (!csv_field_next(record, &field))
        return false;
    const bool fits = field.count < CELL_MOST - 1;
    const size_t bytes = fits ? field.count : CELL_MOST - 2;
    memcpy(cell, record->bytes + field.offset, bytes);
    memcpy(cell + bytes, fits ? "" : "~", fits ? 1 : 2);
    return true;
}

static enum tokmap_status read_names(struct reading *reading, struct csv_record *record)
{
    char cell[CELL_MOST];
    unsigned found = 0;
    for (int i = 0; i < COLUMNS; i++)
        reading->columns[i] = -1;
    for (int column = 0; cell_next(record, cell); column++)
        for (int i = 0; i < COLUMNS; i++)
            if (!strcmp(cell, names[i]))
                reading->columns[i] = column, found |= 1u << i;
    if (record->fault.reason)
        return wrong(reading, "%s", record->fault.reason);
    if (missing(found))
        return wrong(reading,
                     "no column is called '%s'; the first line of a CSV file names the columns: step,row,loss or "
                     "step,rank,call,loss",
                     missing(found));
    return TOKMAP_OK;
}

static enum tokmap_status read_cells(struct reading *reading, struct csv_record *record)
{
    char cell[CELL_MOST], *rest;
    struct loss loss = {0};
    unsigned found = 0;
    for (int column = 0; cell_next(record, cell); column++)
        for (int i = 0; i < COLUMNS; i++) {
            if (reading->columns[i] != column)
                continue;
            if (i != LOSS && !decimal_parse(cell, strlen(cell), integer_of(&loss, i)))
                return wrong(reading, "the %s is '%s'; write decimal digits", names[i], cell);
            if (i == LOSS) {
                loss.loss = strtod(cell, &rest);
                if (rest == cell || *rest)
                    return wrong(reading, "the loss is '%s'; write a number", cell);
            }
            found |= 1u << i;
        }
    if (record->fault.reason)
        return wrong(reading, "%s", record->fault.reason);
    for (int i = 0; i < COLUMNS; i++)
        if (reading->columns[i] >= 0 && !(found & 1u << i))
            return wrong(reading, "the line ends before the cell '%s'; write as many cells as the first line has",
                         names[i]);
    loss.of_call = !(found & 1u << ROW);
    return add(reading, &loss);
}

static enum tokmap_status read_lines(struct reading *reading, const char *text, size_t bytes)
{
    const char *const all = text + bytes;
    enum tokmap_status status = TOKMAP_OK;
    bool csv = false;
    for (const char *line = text, *end; line < all && !status; line = end + 1) {
        end = memchr(line, '\n', (size_t)(all - line));
        end = end ? end : all;
        reading->line++;
        size_t spaces = 0;
        while (line + spaces < end && (line[spaces] == ' ' || line[spaces] == '\t' || line[spaces] == '\r'))
            spaces++;
        if (line + spaces == end)
            continue;
        struct csv_record record = {
            .bytes = line, .count = csv_record_length(line, (size_t)(end - line)), .separator = ','};
        if (csv)
            status = read_cells(reading, &record);
        else if (line[spaces] == '{')
            status = read_json(reading, line, (size_t)(end - line));
        else if (!reading->losses->count)
            csv = !(status = read_names(reading, &record));
        else
            status = wrong(reading, "the line is not a JSON object, as those before it are");
    }
    return status;
}

/* ---- order ---- */

static int compare_doubles(double a, double b) /* the larger first, NaN before all numbers */
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b) ? 0 : isnan(a) ? -1 : 1;
    return a > b ? -1 : a < b;
}

static int compare_places(const struct loss *a, const struct loss *b)
{
    const uint64_t of_a[] = {a->step, a->rank, a->call, a->row}, of_b[] = {b->step, b->rank, b->call, b->row};
    for (int i = 0; i < 4; i++)
        if (of_a[i] != of_b[i])
            return of_a[i] < of_b[i] ? -1 : 1;
    return 0;
}

static int by_step(const void *one, const void *other)
{
    const struct loss *a = one, *b = other;
    return a->step != b->step ? a->step < b->step ? -1 : 1 : compare_doubles(a->loss, b->loss);
}

static int by_place(const void *one, const void *other)
{
    const struct loss *a = one, *b = other;
    if (a->of_call != b->of_call)
        return a->of_call ? 1 : -1;
    const int order = compare_places(a, b);
    return order ? order : compare_doubles(a->loss, b->loss);
}

/* Keeps the largest loss of each row and of each call: a step that was delivered again after a resume has several. */
static void keep_largest(struct losses *losses)
{
    uint64_t kept = 0;
    qsort(losses->of, losses->count, sizeof *losses->of, by_place);
    for (uint64_t i = 0; i < losses->count; i++) {
        const struct loss *last = &losses->of[kept ? kept - 1 : 0];
        if (!kept || last->of_call != losses->of[i].of_call || compare_places(last, &losses->of[i]) != 0)
            losses->of[kept++] = losses->of[i];
    }
    losses->count = kept;
}

static int by_loss(const void *one, const void *other)
{
    const int order = compare_doubles(((const struct loss *)one)->loss, ((const struct loss *)other)->loss);
    return order ? order : compare_places(one, other);
}

enum tokmap_status losses_read(struct losses *losses, const char *path, struct tokmap_error *error)
{
    struct reading reading = {.path = path, .losses = losses, .error = error};
    struct bytes_buffer text = {0};
    *losses = (struct losses){0};
    enum tokmap_status status = cli_file_read(path, FILE_MOST, &text, error);
    if (!status)
        status = read_lines(&reading, (const char *)text.bytes, text.count);
    bytes_free(&text);
    if (!status && !losses->count)
        return error_set(error, TOKMAP_ERROR_FORMAT, path, TOKMAP_NO_OFFSET,
                         "the file has no losses; write lines such as {\"step\": 12, \"row\": 3, \"loss\": 2.5}");
    if (status)
        return status;
    keep_largest(losses);
    qsort(losses->of, losses->count, sizeof *losses->of, by_step);
    for (uint64_t first = 0, end; first < losses->count; first = end) {
        for (end = first; end < losses->count && losses->of[end].step == losses->of[first].step;)
            end++;
        const double low = losses->of[(first + end) / 2].loss, high = losses->of[(first + end - 1) / 2].loss;
        for (uint64_t i = first; i < end; i++)
            losses->of[i].median = low / 2 + high / 2;
    }
    qsort(losses->of, losses->count, sizeof *losses->of, by_loss);
    return TOKMAP_OK;
}

void losses_free(struct losses *losses)
{
    free(losses->of);
    *losses = (struct losses){0};
}

/* ---- ranks and calls ---- */

struct step_choice loss_choice(const struct loss *loss, const struct step_choice *given)
{
    struct step_choice choice = *given;
    choice.step = loss->step;
    choice.rank = loss->rank;
    choice.call = loss->call;
    choice.rank_given = choice.call_given = true;
    return choice;
}

enum tokmap_status losses_check(const struct losses *losses, const char *path, const struct tokmap_run *run,
                                const struct step_choice *given, struct tokmap_error *error)
{
    struct step_rows rows;
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t i = 0; i < losses->count && !status; i++) {
        const struct loss *loss = &losses->of[i];
        const struct step_choice choice = loss_choice(loss, given);
        if (loss->of_call && !given->ranks)
            status = error_set(error, TOKMAP_ERROR_RANGE, path, TOKMAP_NO_OFFSET,
                               "the losses are of ranks and calls; add --ranks, and --rows if the loaders had this "
                               "option");
        else if (loss->of_call)
            status = step_rows_slice(&rows, run, path, &choice, error);
    }
    return status;
}

/* ---- other rows ---- */

#define FOUND_MOST 100000 /* rows that are looked at: a file may name a step after millions of epochs */

struct finding {
    const struct tokmap_run *run;
    const struct tokmap_place *of;
    struct tokmap_extent *extents; /* of the row */
    uint64_t all;                  /* tokens of the dataset */
    uint64_t sum;                  /* of the tokens that were looked for */
    struct sharing found;          /* in which a row is as often as it shows some of them */
};

/* Looks for tokens of the dataset, which do not pass its last one. */
static enum tokmap_status look(struct finding *finding, uint64_t first, uint64_t count, uint64_t rows_most,
                               uint64_t end, struct tokmap_error *error)
{
    if (!count)
        return TOKMAP_OK;
    finding->sum += count;
    return sharing_find(&finding->found, finding->of->source, first, count, 0, end, rows_most, error);
}

/* Looks for the tokens of all pieces of the row. */
static enum tokmap_status look_for_row(struct finding *finding, struct row_pieces *pieces, uint64_t end,
                                       struct tokmap_error *error)
{
    uint64_t count;
    enum tokmap_status status =
        run_row_extents(finding->run, finding->of, finding->extents, run_extents_most(finding->run), &count, error);
    if (!status)
        status = row_pieces_cut(pieces, finding->run, finding->of, finding->extents, count, error);
    const bool whole = !status && !pieces->count;
    for (uint64_t i = 0; whole && i < count && !status; i++)
        status = row_pieces_add(pieces, &finding->extents[i], error);
    for (uint64_t i = 0; i < pieces->count && !status; i++) {
        const struct tokmap_extent *piece = &pieces->extents[i];
        const uint64_t rows_most = max64(FOUND_MOST / pieces->count, 1);
        if (extent_is_padding(piece) || pieces->excluded[i])
            continue;
        const uint64_t tokens = min64(piece->tokens, finding->all);
        const uint64_t before_seam = min64(tokens, finding->all - piece->first_token);
        status = look(finding, piece->first_token, before_seam, rows_most, end, error);
        if (!status)
            status = look(finding, 0, tokens - before_seam, rows_most, end, error);
    }
    return status;
}

/* Lists each row once. */
static void sum_up(struct also *also, struct finding *finding, uint64_t least)
{
    struct sharing_row *found = finding->found.rows;
    for (uint64_t i = 0, k; i < finding->found.count; i = k) {
        const struct tokmap_place *place = &found[i].place;
        for (k = i + 1; k < finding->found.count && found[k].place.draw == place->draw; k++)
            found[i].shared += found[k].shared;
        if (found[i].shared < least || place->draw == finding->of->draw)
            continue;
        if (also->count < ALSO_MOST) {
            also->of[also->count].step = place->step;
            also->of[also->count].row = place->row;
            also->of[also->count].shared = found[i].shared;
        }
        also->count++;
    }
}

enum tokmap_status also_find(struct also *also, const struct tokmap_run *run, const struct tokmap_place *place,
                             uint64_t end, struct tokmap_error *error)
{
    struct row_pieces pieces = {.count = 0};
    struct finding finding = {.run = run,
                              .found = {.run = run},
                              .of = place,
                              .extents = calloc(run_extents_most(run), sizeof *finding.extents),
                              .all = run_exclusions(run)->sources->of[place->source].tokens};
    *also = (struct also){.count = 0};
    const struct tokmap_run_info info = info_of_run(run);
    const enum tokmap_status status = finding.extents
                                          ? look_for_row(&finding, &pieces, end, error)
                                          : error_set_memory(error, "the extents of a row", sizeof *finding.extents);
    if (!status)
        sum_up(also, &finding, min64(info.lookahead + 1, finding.sum));
    row_pieces_free(&pieces);
    free(finding.extents);
    sharing_free(&finding.found);
    return status;
}

/* ---- what is printed ---- */

void loss_print(const struct loss *loss, const struct also *also)
{
    (void)fprintf(stderr, "loss %.4g", loss->loss);
    if (loss->of_call)
        (void)fprintf(stderr, " of rank %" PRIu64 " call %" PRIu64, loss->rank, loss->call);
    (void)fprintf(stderr, ", step's median %.4g", loss->median);
    for (uint64_t i = 0; i < min64(also->count, ALSO_MOST); i++)
        (void)fprintf(stderr, "%s step %" PRIu64 " row %" PRIu64 " (%" PRIu64 " tokens)",
                      i ? "," : "; its tokens are also in", also->of[i].step, also->of[i].row, also->of[i].shared);
    if (also->count > ALSO_MOST)
        (void)fprintf(stderr, ", and %" PRIu64 " more rows", also->count - ALSO_MOST);
    (void)fputc('\n', stderr);
}

void loss_members(const struct loss *loss, const struct also *also, struct cli_report *report)
{
    cli_member(report, "loss", cli_real(loss->loss));
    cli_member(report, "median", cli_real(loss->median));
    if (loss->of_call)
        cli_numbers(report, "rank|call", loss->rank, loss->call);
    cli_report_array(report, "also");
    for (uint64_t i = 0; i < min64(also->count, ALSO_MOST); i++) {
        cli_report_item(report);
        cli_numbers(report, "step|row|shared", also->of[i].step, also->of[i].row, also->of[i].shared);
        cli_report_close(report);
    }
    cli_report_close(report);
    cli_member(report, "also_rows", cli_number(also->count));
}
