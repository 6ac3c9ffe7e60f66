/* SPDX-License-Identifier: MIT */
#include "context.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "run/locate.h"
#include "run/run.h"

static struct columns columns_of(const struct tokmap_loader_options *options)
{
    return (struct columns){options->context_rank, options->context_world,
                            (enum tokmap_context_layout)options->context_layout};
}

/* Checks that documents are padded, so that each can be cut. */
static enum tokmap_status check_plans(const struct tokmap_run *run, uint64_t divisor, struct tokmap_error *error)
{
    const struct tokmap_run_info info = info_of_run(run);
    for (uint64_t i = 0; i < info.sources; i++) {
        const struct tokmap_source_info source = info_of_source(run, i);
        const uint64_t padded = run_source_pad(run, i);
        if (!source.plan)
            return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                             "context_layout is zigzag_documents, which cuts each document of a packed row, but source "
                             "'%s' has no plan; make one with `tokmap plan --pad-documents %" PRIu64
                             "`, or set context_layout to zigzag",
                             source.name, divisor);
        if (padded % divisor)
            return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                             "the plan of source '%s' pads documents to a multiple of %" PRIu64
                             ", but context_layout zigzag_documents with context_world %" PRIu64
                             " needs multiples of %" PRIu64 "; make the plan with --pad-documents %" PRIu64,
                             source.name, padded, divisor / 2, divisor, div_ceil(padded, divisor) * divisor);
    }
    return TOKMAP_OK;
}

enum tokmap_status context_check(const struct tokmap_loader_options *options, const struct tokmap_run *run,
                                 struct tokmap_error *error)
{
    const struct columns columns = columns_of(options);
    struct tokmap_run_info info;
    if (!columns.world || columns.rank >= columns.world)
        return error_set_field(error, TOKMAP_ERROR_RANGE, NULL, "context_rank",
                               " is %" PRIu64 "; it must be below context_world, %" PRIu64, columns.rank,
                               columns.world);
    if (options->context_layout > TOKMAP_CONTEXT_ZIGZAG_DOCUMENTS)
        return error_set_field(error, TOKMAP_ERROR_ARGUMENT, NULL, "context_layout",
                               " is %" PRIu32 "; set it to contiguous, zigzag, or zigzag_documents",
                               options->context_layout);
    if (columns.world == 1)
        return TOKMAP_OK;
    if (!options->fields || (options->fields & TOKMAP_ROWS))
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "context_world is %" PRIu64 ", so this rank reads a slice of each row, but %s; %s, or set "
                         "context_world to 1",
                         columns.world, options->fields ? "\"rows\" are whole" : "fields has nothing to deliver it in",
                         options->fields ? "remove \"rows\" from fields" : "add \"inputs\" to fields");
    if (options->trace && options->world > UINT32_MAX)
        return error_set_field(error, TOKMAP_ERROR_RANGE, NULL, "world",
                               " is %" PRIu64 ", but with context_world a trace counts fewer than 2^32 ranks",
                               options->world);
    info = info_of_run(run);
    for (uint64_t i = 0; i < info.phases; i++) {
        const struct tokmap_phase_info phase = info_of_phase(run, i);
        const uint64_t divisor = columns.world <= UINT32_MAX ? columns_divisor(&columns) : columns.world;
        const uint64_t below = phase.seq_len / divisor * divisor;
        if (phase.seq_len == below)
            continue;
        char below_text[32] = "";
        if (below)
            (void)snprintf(below_text, sizeof below_text, "%" PRIu64 " or ", below);
        return error_set_line(error, TOKMAP_ERROR_RANGE, phase.line ? run_path(run) : NULL, phase.line,
                              "seq_len %" PRIu64 " is not a multiple of %" PRIu64 ", which context_world %" PRIu64
                              " needs with this context_layout; set seq_len to "
                              "%s%" PRIu64,
                              phase.seq_len, divisor, columns.world, below_text, below + divisor);
    }
    return columns_are_fixed(&columns) ? TOKMAP_OK : check_plans(run, columns_divisor(&columns), error);
}

enum tokmap_status context_open(struct context *context, const struct tokmap_loader_options *options,
                                const struct tokmap_run *run, uint64_t ahead, struct tokmap_error *error)
{
    *context = (struct context){.columns = columns_of(options), .ahead = ahead};
    if (!context_cuts(context))
        return TOKMAP_OK;
    const struct tokmap_run_info info = info_of_run(run);
    const uint64_t words = mark_words(info.seq_len_most + info.lookahead + 1), extents = run_extents_most(run);
    context->chunks_most = columns_chunks_most(&context->columns, extents);
    context->chunks = calloc(context->chunks_most, sizeof *context->chunks);
    context->extents = calloc(context_extents_most(context, extents), sizeof *context->extents);
    context->marks = calloc(words, sizeof *context->marks);
    context->bits = calloc(words, sizeof *context->bits);
    if (!context->chunks || !context->extents || !context->marks || !context->bits)
        return error_set_memory(error, "the slices of rows", words * sizeof *context->marks);
    return TOKMAP_OK;
}

void context_close(struct context *context)
{
    free(context->chunks);
    free(context->extents);
    free(context->marks);
    free(context->bits);
}

uint64_t context_extents_most(const struct context *context, uint64_t extents_most)
{
    /* A border between chunks, and the tokens read after each, may cut an extent and repeat it. */
    return extents_most + (2 + context->ahead) * columns_chunks_most(&context->columns, extents_most);
}

uint64_t context_cut_row(const struct context *context, uint64_t seq_len, uint64_t dataset_tokens,
                         struct tokmap_extent *extents, uint64_t count)
{
    struct columns_cut cut = {.extents = extents, .count = count, .dataset_tokens = dataset_tokens};
    uint64_t made = 0;
    const uint64_t chunks = columns_of_row(&context->columns, seq_len, extents, count, context->chunks);
    for (uint64_t k = 0; k < chunks; k++)
        made += columns_cut_next(&cut, context->chunks[k].first, context->chunks[k].count + context->ahead,
                                 context->extents + made);
    memcpy(extents, context->extents, made * sizeof *extents);
    return made;
}
