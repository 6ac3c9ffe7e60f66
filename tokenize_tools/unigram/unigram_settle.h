/* SPDX-License-Identifier: MIT */
/*
 * unigram_settle.h - a function of unigram_encode.c, which includes this file once for each type of sums: NUMBER, with
 * the scores in model->SCORES. The loop is for what is usual: a token, and a sum that is far from the limit.
 */
static void SETTLE(struct unigram_state *state, const struct chunk *chunk, struct ids_out *out)
{
    const struct unigram_model *model = state->model;
    const NUMBER *scores = model->SCORES;
    const uint32_t *lengths = model->lengths, vocabulary = model->sp.head.vocabulary;
    const uint32_t own_unk = model->doubles ? model->sp.unk : BPE_NONE;
    const NUMBER far = (NUMBER)(model->limit - (UNIGRAM_WORD_MOST + 1) * model->reach - 1);
    size_t at = 0, i = 0;
    while (i < chunk->found && !state->failure) {
        NUMBER sum = (NUMBER)state->sum;
        for (; i < chunk->found; i++) {
            const uint32_t id = state->found[i];
            if (id >= vocabulary || id == own_unk || state->unknown || !(sum < far && -sum < far))
                break;
            sum += scores[id];
            at += lengths[id];
            ids_append(out, id);
        }
        state->sum = (double)sum;
        if (i < chunk->found)
            settle_rest(state, chunk, &at, &i, out);
    }
}
