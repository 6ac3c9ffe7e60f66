/* SPDX-License-Identifier: MIT */
/*
 * command_show.c - tokmap show: prints documents, windows, tokens, or the rows of a step, with the documents that they
 * came from; with --where, lists the steps and rows that show a document.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "commands/commands.h"
#include "commands/options/target.h"
#include "commands/options/tokenizer_arguments.h"
#include "common/bytes.h"
#include "common/error.h"
#include "losses.h"
#include "printer.h"
#include "show_lists.h"
#include "step_rows.h"
#include "values_print.h"

/* ---- the command ---- */

static const char program[] = "tokmap show";

struct show_arguments {
    struct run_arguments run;
    struct tokenizer_arguments tokenizer;
    uint64_t document, window;
    struct step_choice of_step;
    bool document_given, window_given, step_given, ranks_given, balance_given;
    struct cli_range tokens, steps;
    const char *source, *losses, *exposures;
    uint64_t top;
    bool top_given;
    bool dropped;
    bool where, ids, json, specials, unmarked, quiet;
    const char *values; /* of --values, or NULL */
};

static const char kind_document[] = "document", kind_window[] = "window", kind_tokens[] = "tokens", kind_row[] = "row";

/* One range of tokens to print, or a row of several. */
struct item {
    const char *kind;                    /* one of the names above */
    uint64_t first, count;               /* tokens; past the last one it continues at token 0 */
    const struct tokmap_place *place;    /* for kind_row, else NULL */
    uint64_t document, window;           /* for kind_document and kind_window */
    const struct tokmap_extent *extents; /* of a row of a plan, or with excluded pieces; NULL: the range above is all */
    const bool *excluded;                /* of each of them; NULL: none is */
    uint64_t extent_count;
    const struct fim_reader *order; /* of the text of a document that is rearranged; NULL: the range is its text */
    uint64_t pad_id;                /* of the run */
    uint64_t segments;              /* of a row of a plan */
    uint64_t padding;               /* of a row: tokens after those of the dataset */
    const struct loss *loss;        /* of a row of --losses, else NULL */
    const struct also *also;        /* other rows that show its tokens */
};

#define SCREEN_TOKENS 300 /* of such a row, as text */

struct showing {
    const struct show_arguments *given;
    struct target *target;
    uint64_t sources;                 /* of a run, and its validation sets; 1 for a dataset */
    uint64_t drawn;                   /* sources alone */
    struct printer *printers;         /* one for each source, all zero until it is used */
    struct printer *printer;          /* of the source at hand */
    struct tokmap_source_info source; /* of the source at hand, if the target is a run */
    struct tokmap_extent *extents;    /* of the row at hand */
    uint64_t extents_capacity;
    struct row_pieces pieces; /* of it, if the run excludes some */
    uint64_t last_loss;       /* the last step of --losses */
    bool assumed_said;        /* that a dataset does not record its tokenizer */
    struct cli_report report;
};

/* Makes a source the one at hand. Its printer is opened at the first use. */
static enum tokmap_status source_use(struct showing *show, uint64_t number, struct tokmap_error *error)
{
    const struct show_arguments *given = show->given;
    const struct tokmap_run *run = show->target->run;
    show->source = run ? info_of_source(run, number) : (struct tokmap_source_info){.size = sizeof show->source};
    show->printer = &show->printers[number];
    if (show->printer->dataset)
        return TOKMAP_OK;
    const enum tokmap_status status =
        printer_open(show->printer, target_dataset(show->target, number),
                     given->ids || given->where ? NULL : &given->tokenizer, given->specials, !given->unmarked, error);
    if (!status && !given->quiet)
        dataset_tokenizer_note(program, show->printer->tokenizer);
    if (!status && !given->quiet && show->printer->assumed && !show->assumed_said) {
        dataset_tokenizer_assumed(program, given->tokenizer.spec);
        show->assumed_said = true;
    }
    return status;
}

#define NAMES_MOST 6

/* Writes the first names of the run's sources, such as "code, web, wiki" or "a, b, c, d, e, f, and 94 more". */
static void names_write(const struct showing *show, char *into, size_t room)
{
    size_t at = 0;
    *into = '\0';
    for (uint64_t i = 0; i < show->sources && at < room; i++) {
        int written;
        if (i == NAMES_MOST)
            written = snprintf(into + at, room - at, ", and %" PRIu64 " more", show->sources - i);
        else
            written =
                snprintf(into + at, room - at, "%s%.40s", i ? ", " : "", info_of_source(show->target->run, i).name);
        if (i == NAMES_MOST || written < 0)
            return;
        at += (size_t)written;
    }
}

/* Finds the source that --source names, or the only one. */
static enum tokmap_status source_choose(struct showing *show, uint64_t *number, struct tokmap_error *error)
{
    const char *wanted = show->given->source;
    *number = 0;
    if (!wanted && show->drawn == 1)
        return TOKMAP_OK;
    char names[400] = "";
    if (show->target->run)
        names_write(show, names, sizeof names);
    if (!wanted)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, show->target->name, TOKMAP_NO_OFFSET,
                         "the run has %" PRIu64 " sources; choose one with --source NAME: %s", show->drawn, names);
    for (uint64_t i = 0; i < show->sources && show->target->run; i++)
        if (!strcmp(info_of_source(show->target->run, i).name, wanted)) {
            *number = i;
            return TOKMAP_OK;
        }
    return error_set(error, TOKMAP_ERROR_NOT_FOUND, show->target->name, TOKMAP_NO_OFFSET,
                     show->target->run ? "the run has no source '%.100s'; it has %s"
                                       : "a dataset has no sources; leave out --source %.100s",
                     wanted, names);
}

/* ---- one item ---- */

static void part_to_stderr(void *user, const struct part *part)
{
    (void)user;
    (void)fputs("  ", stderr);
    part_print(part, stderr);
}

static void part_to_json(void *user, const struct part *part)
{
    cli_report_item(user);
    part_members(part, user);
    cli_report_close(user);
}

static void row_head_print(const struct showing *show, const struct item *item)
{
    const struct tokmap_place *place = item->place;
    if (item->loss)
        loss_print(item->loss, item->also);
    (void)fprintf(stderr, "step %" PRIu64 " row %" PRIu64 ": draw %" PRIu64 ", ", place->step, place->row, place->draw);
    if (place->source == TOKMAP_NO_SOURCE) {
        (void)fprintf(stderr, "padding\n");
        return;
    }
    if (show->sources > 1)
        cli_print_to(stderr, "source %s, ", show->source.name);
    (void)fprintf(stderr, "epoch %" PRIu64 ", ", place->epoch);
    if (show->source.plan)
        (void)fprintf(stderr, "row %" PRIu64 " of the plan: %s in %s", place->window,
                      CLI_COUNTED(place->tokens, "token"), CLI_COUNTED(item->segments, "segment"));
    else
        (void)fprintf(stderr, "window %" PRIu64 ": tokens %" PRIu64 "..%" PRIu64, place->window, item->first,
                      item->first + item->count);
    if (item->padding)
        (void)fprintf(stderr, ", then %s", CLI_COUNTED(item->padding, "token"));
    (void)fprintf(stderr, "%s\n", item->padding ? " of padding" : "");
}

static void item_head_print(const struct showing *show, const struct item *item)
{
    if (item->place) {
        row_head_print(show, item);
        return;
    }
    if (item->kind == kind_document)
        (void)fprintf(stderr, "document %" PRIu64 ": ", item->document);
    else if (item->kind == kind_window)
        (void)fprintf(stderr, "window %" PRIu64 ": ", item->window);
    (void)fprintf(stderr, "tokens %" PRIu64 "..%" PRIu64, item->first, item->first + item->count);
    if (item->order)
        order_print(item->order, stderr);
    (void)fputc('\n', stderr);
}

static void place_members(const struct showing *show, const struct tokmap_place *place, struct cli_report *report)
{
    const bool drawn = place->source != TOKMAP_NO_SOURCE;
    cli_numbers(report, "step|row|draw", place->step, place->row, place->draw);
    cli_member(report, "source", cli_number_if(drawn, place->source));
    if (show->sources > 1 && drawn)
        cli_member(report, "name", cli_text(show->source.name));
    cli_numbers(report, "epoch|window", place->epoch, place->window);
}

static void item_head_members(const struct showing *show, const struct item *item, struct cli_report *report)
{
    cli_member(report, "kind", cli_text(item->kind));
    if (item->place) {
        place_members(show, item->place, report);
        if (item->loss)
            loss_members(item->loss, item->also, report);
    } else if (item->kind == kind_window) {
        cli_numbers(report, "epoch|window", 0, item->window);
    } else if (item->kind == kind_document) {
        cli_member(report, "document", cli_number(item->document));
        if (item->order)
            order_members(item->order, report);
    }
    cli_numbers(report, "first_token|tokens", item->first, item->count);
    if (item->padding || item->extents)
        cli_member(report, "padding", cli_number(item->padding));
}

/* Passes on a part of an extent, whose offset is counted from the start of the row. */
struct shifted {
    uint64_t by;
    bool excluded;
    void (*each)(void *user, const struct part *part);
    void *user;
};

static void part_shifted(void *user, const struct part *part)
{
    const struct shifted *shifted = user;
    struct part in_row = *part;
    in_row.offset += shifted->by;
    in_row.excluded = shifted->excluded;
    shifted->each(shifted->user, &in_row);
}

/* Calls each() for the documents of an item. A document that is shown by number has a part even if it is empty. */
static enum tokmap_status item_parts(struct showing *show, const struct item *item,
                                     void (*each)(void *user, const struct part *part), void *user,
                                     struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    if (item->kind == kind_document) {
        struct part part;
        status = part_whole(show->printer->dataset, item->document, &part, error);
        if (!status)
            each(user, &part);
        return status;
    }
    if (!item->extents)
        return item->count ? parts_walk(show->printer->dataset, item->first, item->count, each, user, error) : status;
    struct shifted shifted = {0, false, each, user};
    for (uint64_t i = 0; i < item->extent_count && !status; i++) {
        const struct tokmap_extent *extent = &item->extents[i];
        shifted.excluded = item->excluded && item->excluded[i];
        if (!extent_is_padding(extent))
            status =
                parts_walk(show->printer->dataset, extent->first_token, extent->tokens, part_shifted, &shifted, error);
        shifted.by += extent->tokens;
    }
    return status;
}

/* Returns whether a document begins with a token. */
static bool begins_document(const struct showing *show, uint64_t token)
{
    struct tokmap_document document;
    return !tokmap_dataset_document_at(show->printer->dataset, token, &document, NULL) && document.first_token == token;
}

/* Prints the tokens of an item, as text or ids, without a newline after them. */
static enum tokmap_status item_print(struct showing *show, const struct item *item, struct tokmap_error *error)
{
    const struct tokmap_extent range = {item->first, item->count};
    const struct tokmap_extent *extents = item->extents ? item->extents : &range;
    const uint64_t count = item->extents ? item->extent_count : item->count > 0;
    enum tokmap_status status = TOKMAP_OK;
    uint64_t left = item->loss && !show->given->ids ? SCREEN_TOKENS : UINT64_MAX;
    for (uint64_t i = 0; i < count && left && !status; i++) {
        const struct tokmap_extent cut = {extents[i].first_token, min64(extents[i].tokens, left)}, *extent = &cut;
        const bool excluded = item->excluded && item->excluded[i];
        if (extent_is_padding(&cut))
            continue;
        left -= extent->tokens;
        if (!show->given->ids && excluded)
            continue;
        if (!show->given->ids) {
            const bool start = item->extents ? begins_document(show, extent->first_token) : item->kind == kind_document;
            status = item->order ? printer_text(show->printer, item->order->extents, item->order->count, true, error)
                                 : printer_text(show->printer, extent, 1, start, error);
            continue;
        }
        if (i)
            putchar(' ');
        for (uint64_t k = 0; k < extent->tokens && excluded; k++)
            printf("%s%" PRIu64, k ? " " : "", item->pad_id);
        if (!excluded)
            status = printer_ids(show->printer, extent->first_token, extent->tokens, error);
    }
    return status;
}

static enum tokmap_status item_json(struct showing *show, const struct item *item, struct tokmap_error *error)
{
    struct cli_report *report = &show->report;
    cli_report_begin(report, true, NULL);
    item_head_members(show, item, report);
    cli_report_array(report, "documents");
    enum tokmap_status status = item_parts(show, item, part_to_json, report, error);
    cli_report_close(report);
    if (!status && item->extents) {
        cli_report_array(report, "pieces");
        for (uint64_t i = 0; i < item->extent_count && !status; i++) {
            const struct tokmap_extent *extent = &item->extents[i];
            if (extent_is_padding(extent))
                continue;
            cli_report_item(report);
            cli_numbers(report, "first_token|tokens", extent->first_token, extent->tokens);
            if (item->excluded && item->excluded[i])
                cli_member(report, "excluded", cli_bool(true));
            else
                status =
                    printer_json(show->printer, extent, 1, begins_document(show, extent->first_token), report, error);
            if (!status && show->given->values)
                status = token_values_print(show->printer->dataset, show->given->values, *extent, report, error);
            cli_report_close(report);
        }
        cli_report_close(report);
    } else if (!status && show->printer) {
        const struct tokmap_extent range = {item->first, item->count};
        status = printer_json(show->printer, item->order ? item->order->extents : &range,
                              item->order ? item->order->count : 1, item->kind == kind_document, report, error);
        if (!status && show->given->values)
            status = token_values_print(show->printer->dataset, show->given->values, range, report, error);
    }
    cli_report_end(report);
    return status;
}

static enum tokmap_status item_show(struct showing *show, const struct item *item, bool one_of_many,
                                    struct tokmap_error *error)
{
    enum tokmap_status status;
    if (show->given->json)
        return item_json(show, item, error);
    (void)cli_flush();
    if (!show->given->quiet) {
        item_head_print(show, item);
        status = item_parts(show, item, part_to_stderr, NULL, error);
        if (status)
            return status;
    }
    if (show->printer)
        show->printer->last = '\n';
    status = item_print(show, item, error);
    /* Into a pipe or a file, a single item is its text and nothing else, so that a document comes out byte for byte. */
    if (show->given->ids || show->given->values || one_of_many ||
        (show->printer && show->printer->to_terminal && show->printer->last != '\n'))
        putchar('\n');
    const struct tokmap_extent range = {item->first, item->count};
    for (uint64_t i = 0; i < (item->extents ? item->extent_count : 1) && !status && show->given->values; i++) {
        const struct tokmap_extent *extent = item->extents ? &item->extents[i] : &range;
        if (show->printer && !extent_is_padding(extent))
            status = token_values_print(show->printer->dataset, show->given->values, *extent, NULL, error);
    }
    return status;
}

/* ---- what to show ---- */

static enum tokmap_status show_document(struct showing *show, struct tokmap_error *error)
{
    struct tokmap_document document;
    struct fim_reader order = {.count = 0};
    enum tokmap_status status =
        tokmap_dataset_document(show->printer->dataset, show->given->document, &document, error);
    if (!status && !show->given->ids && !show->given->specials)
        status = printer_order(show->printer, &document, &order, error);
    const struct item item = {.kind = kind_document,
                              .first = document.first_token,
                              .count = document.tokens,
                              .document = document.number,
                              .order = order.psm || order.spm ? &order : NULL};
    if (!status)
        status = item_show(show, &item, false, error);
    fim_reader_free(&order);
    return status;
}

static enum tokmap_status show_tokens(struct showing *show, struct tokmap_error *error)
{
    const struct cli_range range = show->given->tokens;
    if (range.end > show->printer->info.tokens)
        return error_set(error, TOKMAP_ERROR_RANGE, show->target->name, TOKMAP_NO_OFFSET,
                         "tokens %" PRIu64 "..%" PRIu64 " reach past the end; the dataset has %s", range.first,
                         range.end, CLI_COUNTED(show->printer->info.tokens, "token"));
    const struct item item = {.kind = kind_tokens, .first = range.first, .count = range.end - range.first};
    return item_show(show, &item, false, error);
}

/* Windows of a run are those of epoch 0, at the seq_len of its first phase; of a validation set, those of an
 * evaluation.
 */
static enum tokmap_status show_window(struct showing *show, struct tokmap_error *error)
{
    uint64_t seq_len = show->given->run.seq_len, lookahead = show->given->run.lookahead, stride = seq_len;
    const uint64_t tokens = show->printer->info.tokens;
    uint64_t windows = seq_len && tokens > lookahead ? (tokens - lookahead) / seq_len : 0; /* of a run: below */
    if (show->target->run && show->source.plan)
        return error_set(
            error, TOKMAP_ERROR_ARGUMENT, show->target->name, TOKMAP_NO_OFFSET,
            "source '%s' draws the rows of a plan in place of windows; show the rows of a step with --step",
            show->source.name);
    if (show->target->run) {
        const struct tokmap_run_info info = info_of_run(show->target->run);
        const bool held_out = (uint64_t)(show->printer - show->printers) >= show->drawn;
        seq_len = held_out ? info.seq_len_most : info.seq_len;
        lookahead = held_out ? 1 : info.lookahead;
        stride = info.stride && !held_out ? info.stride : seq_len;
        windows = show->source.windows;
    }
    if (show->given->window >= windows)
        return error_set(error, TOKMAP_ERROR_RANGE, show->target->name, TOKMAP_NO_OFFSET,
                         "window %" PRIu64 " does not exist; the %" PRIu64 " tokens make %s of %s and %" PRIu64
                         " of lookahead, numbered from 0",
                         show->given->window, tokens, CLI_COUNTED(windows, "window"), CLI_COUNTED(seq_len, "token"),
                         lookahead);
    const uint64_t first = show->given->window * stride;
    const struct item item = {.kind = kind_window,
                              .first = first,
                              .count = min64(seq_len + lookahead, tokens - first),
                              .window = show->given->window};
    return item_show(show, &item, false, error);
}

/* Lists the extents of a row in show->extents. */
static enum tokmap_status extents_list(struct showing *show, const struct tokmap_place *place, uint64_t *count,
                                       struct tokmap_error *error)
{
    enum tokmap_status status =
        tokmap_run_extents(show->target->run, place, show->extents, show->extents_capacity, count, error);
    if (status != TOKMAP_ERROR_LIMIT)
        return status;
    struct tokmap_extent *grown = realloc(show->extents, *count * sizeof *grown);
    if (!grown)
        return error_set_memory(error, "the extents of a row", *count * sizeof *grown);
    show->extents = grown;
    show->extents_capacity = *count;
    return tokmap_run_extents(show->target->run, place, show->extents, show->extents_capacity, count, error);
}

/* loss: that of the row, or NULL. */
static enum tokmap_status show_row(struct showing *show, uint64_t step, uint64_t row, const struct loss *loss,
                                   bool one_of_many, struct tokmap_error *error)
{
    struct also also = {.count = 0};
    struct tokmap_place place;
    const struct tokmap_run *run = show->target->run;
    const struct tokmap_run_info info = info_of_run(run);
    struct tokmap_phase_info phase = TOKMAP_PHASE_INFO_INIT;
    enum tokmap_status status = tokmap_run_locate(run, step, row, &place, error);
    struct item item = {.kind = kind_row, .place = &place, .loss = loss, .also = &also};
    show->printer = NULL;
    if (!status && place.source != TOKMAP_NO_SOURCE)
        status = source_use(show, place.source, error);
    if (!status)
        phase = info_of_phase(run, tokmap_run_phase_at(run, place.step));
    if (!status && show->printer) {
        uint64_t extents = 0;
        status = extents_list(show, &place, &extents, error);
        if (!status)
            status = row_pieces_cut(&show->pieces, run, &place, show->extents, extents, error);
        for (uint64_t i = 0; i < extents && !status; i++)
            item.segments += !extent_is_padding(&show->extents[i]);
        const bool cut = show->pieces.count;
        item.extents = cut ? show->pieces.extents : show->source.plan ? show->extents : NULL;
        item.excluded = cut ? show->pieces.excluded : NULL;
        item.extent_count = cut ? show->pieces.count : extents;
        item.pad_id = info.pad_id;
    }
    item.first = place.first_token;
    item.count = place.tokens;
    item.padding = phase.seq_len + info.lookahead - place.tokens;
    if (!status && loss && show->printer)
        status = also_find(
            &also, run, &place,
            info.steps == TOKMAP_FOREVER ? min64(show->last_loss, TOKMAP_FOREVER - 2) + 1 : TOKMAP_FOREVER, error);
    return status ? status : item_show(show, &item, one_of_many, error);
}

static enum tokmap_status show_step(struct showing *show, struct tokmap_error *error)
{
    const struct show_arguments *given = show->given;
    struct step_rows rows;
    enum tokmap_status status = step_rows_find(&rows, show->target->run, show->target->name, &given->of_step, error);
    const uint64_t step = given->of_step.step;
    if (!status && !tokmap_run_delivers(show->target->run, step))
        cli_say(program, "step %" PRIu64 " is skipped; these are the rows that it would have shown", step);
    for (uint64_t i = 0; i < rows.count && !status && !ferror(stdout); i++)
        status = show_row(show, step, assignment_row(&rows.assignment, rows.first + i), NULL, rows.count > 1, error);
    step_rows_free(&rows);
    return status;
}

/* ---- from documents to rows ---- */

/* tokens: of which the row shows some. */
static void place_print(const struct showing *show, const struct sharing_row *row, uint64_t tokens)
{
    const struct tokmap_place *place = &row->place;
    struct cli_report report;
    cli_report_begin(&report, show->given->json, NULL);
    place_members(show, place, &report);
    cli_numbers(&report, "first_token|tokens|shared", place->first_token, place->tokens, row->shared);
    cli_report_end(&report);
    if (show->given->json)
        return;
    printf("step %" PRIu64 " row %" PRIu64, place->step, place->row);
    if (show->sources > 1)
        cli_print(" source %s", show->source.name);
    printf(" epoch %" PRIu64 " window %" PRIu64 " shows %" PRIu64 " of %" PRIu64 " tokens\n", place->epoch,
           place->window, row->shared, tokens);
}

static enum tokmap_status show_where(struct showing *show, struct tokmap_error *error)
{
    const struct show_arguments *given = show->given;
    uint64_t first = given->tokens.first, tokens = given->tokens.end - first;
    struct sharing found = {.run = show->target->run};
    const struct tokmap_run_info info = info_of_run(show->target->run);
    enum tokmap_status status = TOKMAP_OK;
    if (given->document_given) {
        struct part part;
        status = part_whole(show->printer->dataset, given->document, &part, error);
        if (status)
            return status;
        first = part.document.first_token;
        tokens = part.document.tokens;
        if (!given->quiet && !given->json)
            part_print(&part, stderr);
    }
    if (!given->steps.given && info.steps == TOKMAP_FOREVER)
        return error_set(error, TOKMAP_ERROR_RANGE, show->target->name, TOKMAP_NO_OFFSET,
                         "the run has no end; choose the steps to search with --steps A..B");
    if (!tokens)
        return TOKMAP_OK;
    const uint64_t number = (uint64_t)(show->printer - show->printers);
    if (number >= show->drawn)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, show->target->name, TOKMAP_NO_OFFSET,
                         "'%s' is a validation set, which no step of the run shows; leave out --where",
                         show->source.name);
    status = sharing_find(&found, number, first, tokens, given->steps.given ? given->steps.first : 0,
                          given->steps.given ? min64(given->steps.end, info.steps) : TOKMAP_FOREVER, UINT64_MAX, error);
    for (uint64_t i = 0; i < found.count && !status && !ferror(stdout); i++)
        place_print(show, &found.rows[i], tokens);
    if (!status && !given->quiet)
        cli_say(program, "shown in %" PRIu64 " row%s", found.count, found.count == 1 ? "" : "s");
    sharing_free(&found);
    return status;
}

/* ---- losses ---- */

/* Shows the row of a loss, or the rows of its call. */
static enum tokmap_status show_loss(struct showing *show, const struct loss *loss, struct tokmap_error *error)
{
    const struct step_choice choice = loss_choice(loss, &show->given->of_step);
    struct step_rows rows;
    if (!loss->of_call)
        return show_row(show, loss->step, loss->row, loss, true, error);
    enum tokmap_status status = step_rows_find(&rows, show->target->run, show->target->name, &choice, error);
    if (!status && !rows.count && !show->given->quiet)
        cli_say(program, "step %" PRIu64 " rank %" PRIu64 " call %" PRIu64 " has a loss, but no rows", loss->step,
                loss->rank, loss->call);
    for (uint64_t i = 0; i < rows.count && !status && !ferror(stdout); i++)
        status = show_row(show, loss->step, assignment_row(&rows.assignment, rows.first + i), loss, true, error);
    step_rows_free(&rows);
    return status;
}

/* Shows the rows with the largest losses of a file. */
static enum tokmap_status show_losses(struct showing *show, struct tokmap_error *error)
{
    struct losses losses;
    const uint64_t top = show->given->top;
    enum tokmap_status status = losses_read(&losses, show->given->losses, error);
    for (uint64_t i = 0; i < losses.count && !status; i++)
        show->last_loss = max64(show->last_loss, losses.of[i].step);
    if (!status)
        status = losses_check(&losses, show->given->losses, show->target->run, &show->given->of_step, error);
    for (uint64_t i = 0; i < min64(top, losses.count) && !status && !ferror(stdout); i++)
        status = show_loss(show, &losses.of[i], error);
    losses_free(&losses);
    return status;
}

/* ---- arguments ---- */

static int arguments_check(const struct cli_command *command, const struct show_arguments *given, size_t operands)
{
    const int asked = given->document_given + given->window_given + given->step_given + given->tokens.given +
                      given->dropped + (given->losses != NULL) + (given->exposures != NULL);
    if (operands > 1)
        return cli_misused(command, "expected one dataset or run file, not %zu; a document is named with --document N",
                           operands);
    if (!operands)
        return cli_misused(command, "expected one dataset or run file");
    if (asked != 1)
        return cli_misused(command, "choose what to show with one of --document, --window, --tokens, --step, "
                                    "--losses, --exposures, and --dropped");
    if (given->top_given && !given->losses)
        return cli_misused(command, "--top needs --losses");
    if (given->dropped && (given->ids || given->specials || given->source || given->run.seq_len_given))
        return cli_misused(command, "--dropped prints a list of documents; only --json and --quiet can be added");
    if (given->where && !given->document_given && !given->tokens.given)
        return cli_misused(command, "--where needs --document or --tokens");
    if (given->source && (given->step_given || given->losses))
        return cli_misused(command, "%s shows the rows of all sources, so --source cannot be added",
                           given->losses ? "--losses" : "--step");
    if (given->exposures && (given->ids || given->specials || given->source || given->where))
        return cli_misused(command, "--exposures lists steps and rows; only --steps, --json, and --quiet can be added");
    if (given->steps.given && !given->where && !given->exposures)
        return cli_misused(command, "--steps needs --where or --exposures; to show a step, use --step");
    const struct step_choice *step = &given->of_step;
    if ((step->row_given || step->rank_given || (given->ranks_given && !given->losses)) && !given->step_given)
        return cli_misused(command, "--row, --rank, and --ranks need --step");
    if (step->rank_given != given->ranks_given && !given->losses)
        return cli_misused(command, "--rank and --ranks need each other");
    if (step->rank_given && step->rank >= step->ranks)
        return cli_misused(command,
                           "rank %" PRIu64 " does not exist; with --ranks %" PRIu64 " ranks are below %" PRIu64,
                           step->rank, step->ranks, step->ranks);
    if ((given->balance_given || step->rows || step->nodes) && !given->ranks_given)
        return cli_misused(command, "--balance, --nodes, and --rows say which rows a rank has: add %s",
                           given->losses ? "--ranks" : "--rank and --ranks");
    if (step->rows && !given->balance_given && !given->losses)
        return cli_misused(command, "--rows needs --balance, because otherwise a rank has the same rows in any calls");
    if (given->where && (given->ids || given->specials))
        return cli_misused(command, "--where prints no tokens, so --ids and --specials cannot be added");
    if (given->ids && given->specials)
        return cli_misused(command, "--specials is for text and cannot be used with --ids");
    if (given->run.seq_len_given && !given->run.seq_len)
        return cli_misused(command, "--seq-len must be at least 1");
    return -1;
}

static int name_show(const struct cli_command *command, const struct show_arguments *given, const char *name)
{
    struct target target = {0};
    struct showing showing = {.given = given, .target = &target, .sources = 1, .drawn = 1};
    struct tokmap_error error = {0};
    const bool of_rows = given->step_given || given->losses, make_run = of_rows || given->where;
    int exit_status = -1;
    if (given->window_given && !given->run.seq_len_given && !cli_names_run(name))
        exit_status = cli_misused(command, "--window of a dataset needs --seq-len");
    if (exit_status < 0)
        exit_status = target_open(&target, command, name, &given->run, make_run);
    if (exit_status < 0) {
        uint64_t source = 0;
        enum tokmap_status status = TOKMAP_OK;
        if (target.run) {
            const struct tokmap_run_info info = info_of_run(target.run);
            showing.drawn = info.sources;
            showing.sources = info.sources + info.validations;
        }
        showing.printers = calloc(showing.sources, sizeof *showing.printers);
        if (!showing.printers)
            status = error_set_memory(&error, "the printers", showing.sources * sizeof *showing.printers);
        if (!status && !of_rows)
            status = source_choose(&showing, &source, &error);
        if (!status && !of_rows)
            status = source_use(&showing, source, &error);
        if (!status)
            status = given->where            ? show_where(&showing, &error)
                     : given->document_given ? show_document(&showing, &error)
                     : given->window_given   ? show_window(&showing, &error)
                     : given->step_given     ? show_step(&showing, &error)
                     : given->losses         ? show_losses(&showing, &error)
                                             : show_tokens(&showing, &error);
        if (status && !error.status) /* from a function that takes no error */
            (void)error_set(&error, status, name, TOKMAP_NO_OFFSET, "%s", tokmap_status_text(status));
        exit_status = status ? command_failed(command, &error) : CLI_DONE;
    }
    for (uint64_t i = 0; i < showing.sources && showing.printers; i++)
        printer_close(&showing.printers[i]);
    free(showing.printers);
    free(showing.extents);
    row_pieces_free(&showing.pieces);
    target_close(&target);
    return cli_finish(program, exit_status);
}

static int show(const struct cli_command *command, const char **operands, size_t operand_count, void *user)
{
    const struct show_arguments *given = user;
    int status = arguments_check(command, given, operand_count);
    if (status < 0 && tokenizer_arguments_check(command, &given->tokenizer))
        status = CLI_MISUSED;
    if (status < 0 && given->dropped)
        return cli_finish(program, dropped_list_show(command, operands[0], given->json, given->quiet));
    const struct exposures_arguments exposures = {given->exposures, given->steps, given->json, given->quiet};
    if (status < 0 && given->exposures)
        return cli_finish(program, exposures_show(command, operands[0], &given->run, &exposures));
    return status < 0 ? name_show(command, given, operands[0]) : status;
}

int command_show(int argc, char **argv)
{
    struct show_arguments given = {.run = RUN_ARGUMENTS_INIT, .tokenizer = TOKENIZER_ARGUMENTS_INIT, .top = 20};
    const struct cli_option options[] = {
        CLI_HEADING("What to show"),
        {'d', "document", CLI_NUMBER, &given.document, &given.document_given, "N", "show document N", NULL},
        {'w', "window", CLI_NUMBER, &given.window, &given.window_given, "I",
         "show window I of epoch 0; a dataset needs --seq-len", NULL},
        {0, "tokens", CLI_RANGE, &given.tokens, NULL, "A..B", "show tokens A up to, not including, B", NULL},
        {0, "dropped", CLI_FLAG, &given.dropped, NULL, NULL,
         "list the documents that `tokmap pack --dedup` and --exclude-ngrams have dropped, and why", NULL},
        {0, "step", CLI_NUMBER, &given.of_step.step, &given.step_given, "N",
         "show the rows of step N of a run; a dataset needs --seq-len and --batch", NULL},
        {0, "source", CLI_TEXT, &given.source, NULL, "SOURCE",
         "the source or validation set of a run to which documents, windows, and tokens belong; needed if the run has "
         "several sources",
         NULL},
        {0, "row", CLI_NUMBER, &given.of_step.row, &given.of_step.row_given, "J",
         "show only row J of the step or, with --rank, of the rank's slice", NULL},
        {0, "rank", CLI_NUMBER, &given.of_step.rank, &given.of_step.rank_given, "R",
         "show only the rows of rank R of --ranks", NULL},
        {0, "ranks", CLI_NUMBER, &given.of_step.ranks, &given.ranks_given, "W", "number of ranks that share a step",
         NULL},
        {0, "balance", CLI_REAL, &given.of_step.balance, &given.balance_given, "Q",
         "with --rank or --losses, the option balance of the run's loaders: show the rows that it gives the rank",
         NULL},
        {0, "nodes", CLI_NUMBER, &given.of_step.nodes, NULL, "N",
         "with --rank or --losses, the option nodes of the run's loaders: show the rows that it gives the rank", NULL},
        {0, "rows", CLI_NUMBER, &given.of_step.rows, NULL, "N",
         "with --balance or --losses, the option rows of the loaders", NULL},
        {0, "losses", CLI_TEXT, &given.losses, NULL, "FILE",
         "show the rows of a run that have the largest losses in FILE: JSONL with step, row (or rank and call), and "
         "loss, or CSV",
         NULL},
        {0, "top", CLI_NUMBER, &given.top, &given.top_given, "N", "with --losses, show N of them (default: 20)", NULL},
        {0, "exposures", CLI_TEXT, &given.exposures, NULL, "LIST",
         "list every step and row that shows a document of LIST (see `tokmap find`) before the run excludes it", NULL},
        {0, "where", CLI_FLAG, &given.where, NULL, NULL,
         "list every step and row that shows tokens of --document or --tokens", NULL},
        {0, "steps", CLI_RANGE, &given.steps, NULL, "A..B",
         "with --where or --exposures, search steps A up to, not including, B; required if the run has no end", NULL},
        CLI_HEADING("How to show it"),
        TOKENIZER_OPTIONS_RECORDED(given.tokenizer),
        {'i', "ids", CLI_FLAG, &given.ids, NULL, NULL, "print token ids instead of text", NULL},
        {0, "values", CLI_TEXT, &given.values, NULL, "WHAT",
         "after the tokens, print the values WHAT that each of them has beside it", NULL},
        {0, "unmarked", CLI_FLAG, &given.unmarked, NULL, NULL,
         "do not mark text that does not count as a target, as the mask of its shard says", NULL},
        {0, "specials", CLI_FLAG, &given.specials, NULL, NULL,
         "print special tokens, and documents that `tokmap pack --fim` has rearranged as they are stored", NULL},
        CLI_HEADING("A run made from a dataset"),
        RUN_OPTIONS(given.run),
        CLI_HEADING("General"),
        {0, "json", CLI_FLAG, &given.json, NULL, NULL, "print one JSON object per line, provenance included", NULL},
        {'q', "quiet", CLI_FLAG, &given.quiet, NULL, NULL, "print no provenance and no notes on standard error", NULL},
    };
    const struct cli_command command = {
        .program = program,
        .usage = "DATASET|RUN --document N|--window I|--tokens A..B [OPTION]...\n"
                 "       tokmap show RUN --step N [--row J] [OPTION]...\n"
                 "       tokmap show RUN --losses FILE [--top N] [--ranks W] [OPTION]...\n"
                 "       tokmap show RUN --document N --where [--steps A..B] [OPTION]...\n"
                 "       tokmap show RUN --exposures LIST [--steps A..B] [OPTION]...",
        .summary =
            "Prints tokens of a dataset, or the rows of a step of a run, as text or ids. Reports on standard error "
            "which documents they came from.",
        .details = "Instead of a run file, a dataset with --seq-len, --batch, and perhaps --seed can be used.\n\n"
                   "Examples:\n"
                   "  tokmap show data/web --document 17\n"
                   "  tokmap show moved/web --document 17 -t gpt2/tokenizer.json\n"
                   "  tokmap show train.run --step 12345 --row 17\n"
                   "  tokmap show train.run --losses losses.jsonl --top 5\n"
                   "  tokmap show train.run --document 17 --where --json\n"
                   "  tokmap show train.run --exposures takedown.txt\n",
        CLI_OPTIONS(options),
        .operands = CLI_DATASETS | CLI_RUNS,
    };
    return cli_run(&command, argc, argv, show, &given);
}
