/* SPDX-License-Identifier: MIT */
/* pipeline_parts.c - what the parts of a pipeline own, how many ids they can make, and the usual names of EOD and
 * BOS. */
#include "pipeline_parts.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"

void pipeline_parts_free(struct pipeline_parts *parts)
{
    if (parts->engine)
        parts->engine->kind->free(parts->engine);
    added_tokens_free(parts->added);
    normalizer_free(&parts->normalizer);
    match_table_free(parts->symbols);
    free(parts->symbol_texts);
    pretokenizer_free(&parts->pretokenizer);
    text_decoder_free(&parts->decoder);
    free(parts->texts);
    free(parts->text_bytes);
    memset(parts, 0, sizeof *parts);
}

uint64_t pipeline_parts_ids_per_byte(const struct pipeline_parts *parts)
{
    if (parts->engine_raw)
        return 1;
    uint64_t most = normalizer_growth(&parts->normalizer);
    if (mul_overflows(most, max64(1, parts->ids_per_byte_most), &most))
        return UINT64_MAX;
    for (uint32_t i = 0; i < parts->pretokenizer.count; i++) {
        const struct pretokenizer_step *step = &parts->pretokenizer.steps[i];
        /* One byte becomes at most itself and the prefix; a space becomes the literal, also after a prefix. */
        const uint64_t growth = step->kind == STEP_METASPACE ? 1 + step->literal_bytes : step->prefix_space ? 2 : 1;
        if (mul_overflows(most, growth, &most))
            return UINT64_MAX;
    }
    return most;
}

/* Returns the id of the first of these names that is the text of a special token. The list of names ends with NULL. */
static uint32_t first_of(const struct added_tokens *added, const char *const *names)
{
    for (; *names; names++) {
        const struct added_token *token = added_tokens_by_text(added, *names, strlen(*names));
        if (token && token->special)
            return token->id;
    }
    return PIPELINE_NO_ID;
}

/* clang-format off */
const char *const pipeline_eod_names[] = {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|eos|>",
                                          "<\xEF\xBD\x9C" "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>",
                                          "[EOS]", "<EOS_TOKEN>", "<|END_OF_TURN_TOKEN|>", "<EOS>", NULL};
const char *const pipeline_bos_names[] = {"<|begin_of_text|>", "<s>", "<bos>", "<|bos|>", "<|startoftext|>",
                                          "<\xEF\xBD\x9C" "begin\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>",
                                          "[BOS]", "<BOS_TOKEN>", "<BOS>", NULL};
/* clang-format on */

uint32_t pipeline_usual_eod(const struct added_tokens *added)
{
    return first_of(added, pipeline_eod_names);
}

uint32_t pipeline_usual_bos(const struct added_tokens *added)
{
    return first_of(added, pipeline_bos_names);
}
