/* SPDX-License-Identifier: MIT */
/* also.c - see also.h. */
#include "also.h"

#include <stdlib.h>

#include "common/bytes.h"
#include "common/error.h"
#include "row_pieces.h"
#include "run/exclusion.h"
#include "run/locate.h"
#include "run/run.h"
#include "shared_tokens.h"

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
    struct tokmap_run_info info;
    struct finding finding = {.run = run,
                              .found = {.run = run},
                              .of = place,
                              .extents = calloc(run_extents_most(run), sizeof *finding.extents),
                              .all = run_exclusions(run)->sources->of[place->source].tokens};
    *also = (struct also){.count = 0};
    run_describe(run, &info);
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
