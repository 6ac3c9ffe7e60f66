/* SPDX-License-Identifier: MIT */
#include "row_cost.h"

#include "common/bytes.h"
#include "common/error.h"
#include "dataset/documents.h"
#include "dataset/row_extents.h"
#include "locate.h"
#include "run_state.h"

#define ENDS 256 /* ends of documents that are read at once */

enum tokmap_status row_cost_scale(double q, uint64_t *scale, struct tokmap_error *error)
{
    const double one = (double)ROW_COST_ONE; /* a power of 2, so the product below is exact */
    if (!(q >= 1 / one && q <= 1))
        return error_set_field(error, TOKMAP_ERROR_RANGE, NULL, "balance",
                               " is %g; set it to a number from 1e-12 to 1, such as 1 / (12 * the model's width), or "
                               "to 0",
                               q);
    *scale = (uint64_t)(q * one + 0.5);
    return TOKMAP_OK;
}

static uint64_t square(uint64_t length)
{
    return length * length; /* a row has at most 2^31 tokens */
}

/* Adds the documents among the `count` tokens from `first` on, which do not pass the dataset's last token. The first of
 * these tokens begins one, whatever is before it. */
static enum tokmap_status add_range(const struct tokmap_dataset *dataset, uint64_t first, uint64_t count,
                                    uint64_t *squares, struct tokmap_error *error)
{
    uint64_t ends[ENDS], used, most = count, begin = 0;
    for (uint64_t done = 0; done < count;) {
        uint64_t part = min64(count - done, most);
        const enum tokmap_status status = dataset_first_ends(dataset, first + done, &part, ends, ENDS, &used, error);
        if (status)
            return status;
        for (uint64_t i = 0; i < used; i++) {
            *squares += square(done + ends[i] - begin);
            begin = done + ends[i];
        }
        most = 2 * part; /* ends beyond ENDS are counted, too: few, if the part is small */
        done += part;
    }
    *squares += square(count - begin);
    return TOKMAP_OK;
}

enum tokmap_status row_cost(const struct tokmap_run *run, const struct tokmap_place *place, uint64_t seq_len,
                            uint64_t scale, struct tokmap_extent *extents, uint64_t capacity, balance_cost *cost,
                            struct tokmap_error *error)
{
    const struct run_source *source =
        place->source == TOKMAP_NO_SOURCE ? NULL : &run->sources.of[place->source]; /* NULL: a row of padding */
    uint64_t count, squares = 0, at = 0;
    enum tokmap_status status = run_row_extents(run, place, extents, capacity, &count, error);
    for (uint64_t i = 0; i < count && at < seq_len && !status; i++) {
        uint64_t tokens = extents[i].tokens;
        while (i + 1 < count && extent_is_padding(&extents[i + 1]))
            tokens += extents[++i].tokens; /* it belongs to the document before it */
        tokens = min64(tokens, seq_len - at);
        at += tokens;
        if (source->plan_path) {
            squares += square(tokens);
            continue;
        }
        const uint64_t before_seam = min64(tokens, source->tokens - extents[i].first_token);
        status = add_range(source->dataset, extents[i].first_token, before_seam, &squares, error);
        if (!status && before_seam < tokens)
            status = add_range(source->dataset, 0, tokens - before_seam, &squares, error);
    }
    squares += square(seq_len - at);
    *cost = (balance_cost)seq_len * ROW_COST_ONE + (balance_cost)squares * scale;
    return status;
}

enum tokmap_status tokmap_balance(uint64_t width, uint64_t layers, uint64_t parameters, double *q,
                                  struct tokmap_error *error)
{
    const uint64_t most = (uint64_t)1 << 32;
    uint64_t scale;
    if (!q)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "q is NULL; pass one");
    if (!width || width > most || !layers || layers > most)
        return error_set(error, TOKMAP_ERROR_RANGE, NULL, TOKMAP_NO_OFFSET,
                         "width is %" PRIu64 " and layers is %" PRIu64 "; each must be 1 to 2^32", width, layers);
    const double computed = parameters ? (double)layers * (double)width / (double)parameters : 1 / (12 * (double)width);
    if (!row_cost_scale(computed, &scale, NULL)) {
        *q = computed;
        return TOKMAP_OK;
    }
    return error_set(error, TOKMAP_ERROR_RANGE, NULL, TOKMAP_NO_OFFSET,
                     "%" PRIu64 " layers of width %" PRIu64 " and %" PRIu64 " parameters are no model: q would be %g; "
                     "pass the parameters of all layers together",
                     layers, width, parameters, computed);
}
