/* SPDX-License-Identifier: MIT */
/*
 * unigram_settle.h - a function of unigram_encode.c, which includes this file once for each type of sums: NUMBER, with
 * the scores in model->SCORES. The loop is for what is usual: tokens, unknown characters that become one unknown token
 * (FUSES), and a sum that is far from the limit.
 */
static void SETTLE(struct unigram_state *state, const struct chunk *chunk, struct ids_out *out)
{
    const struct unigram_model *model = state->model;
    const NUMBER *scores = model->SCORES;
    const uint32_t *lengths = model->lengths, vocabulary = model->sp.head.vocabulary;
    const uint32_t own_unk = FUSES ? BPE_NONE : model->sp.unk;
    const uint32_t fused = FUSES && !model->sp.byte_fallback ? model->unknown : BPE_NONE;
    const NUMBER far = (NUMBER)(model->limit - (UNIGRAM_WORD_MOST + 1) * model->reach - 1);
    size_t at = 0, i = 0;
    while (i < chunk->found && !state->failure) {
        NUMBER sum = (NUMBER)state->sum;
        bool unknown = state->unknown;
        for (; i < chunk->found && sum < far && -sum < far; i++) {
            const uint32_t id = state->found[i];
            if (id < vocabulary && id != own_unk && (FUSES || !unknown)) {
                unknown = false;
                ids_append(out, id);
                at += lengths[id];
            } else if (id == fused) {
                if (!unknown)
                    ids_append(out, model->sp.unk);
                unknown = true;
                at += unigram_character(chunk->text + at, chunk->count - at);
            } else {
                break;
            }
            sum += scores[id];
        }
        state->sum = (double)sum;
        state->unknown = unknown;
        if (i < chunk->found)
            settle_rest(state, chunk, &at, &i, out);
    }
}
