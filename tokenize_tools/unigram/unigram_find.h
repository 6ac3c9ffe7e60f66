/* SPDX-License-Identifier: MIT */
/*
 * unigram_find.h - a function of unigram_word.c, which includes this file once for each type of sums: NUMBER, with the
 * scores in model->SCORES. It follows the reference step by step: Model::EncodeOptimized of SentencePiece, which RESETS
 * large sums, or encode_optimized of tokenizers.
 */
static enum unigram_divided FIND(const struct unigram_model *model, struct unigram_path *path,
                                 struct bpe_scratch *scratch, const uint8_t *text, size_t count, double *sum)
{
    const struct byte_trie *trie = &model->trie;
    const NUMBER *scores = model->SCORES;
    const size_t mask = path->ring - 1;
    NUMBER *sums = path->sums;
    uint32_t *ids = path->ids, length;
    size_t furthest = 0, look = LOOK;
    sums[0] = (NUMBER)*sum;
    for (size_t at = 0; at < count; at += length) {
        NUMBER here = sums[at & mask];
        if (RESETS && (here < -(NUMBER)UNIGRAM_RESET || here > (NUMBER)UNIGRAM_RESET)) {
            for (size_t i = at; i <= furthest; i++)
                if (i == at || ids[i] != BPE_NONE)
                    sums[i & mask] -= here;
            here = 0;
        }
        length = unigram_character(text + at, count - at);
        bool single = false;
        uint32_t node = BYTE_TRIE_ROOT;
        for (size_t to = at; to < count;) {
            node = byte_trie_step(trie, node, text[to++]);
            if (node == BYTE_TRIE_NONE)
                break;
            const uint32_t id = trie->nodes[node].value;
            if (id == BYTE_TRIE_NONE)
                continue;
            const NUMBER made = scores[id] + here;
            if (ids[to] == BPE_NONE || made > sums[to & mask]) {
                sums[to & mask] = made;
                ids[to] = id;
            }
            furthest = to > furthest ? to : furthest;
            single |= to - at == length;
        }
        if (!single) {
            const size_t to = at + length;
            const NUMBER made = scores[model->unknown] + here;
            furthest = to > furthest ? to : furthest;
            if (ids[to] == BPE_NONE || made > sums[to & mask]) {
                sums[to & mask] = made;
                ids[to] = model->unknown;
                if (!RESETS && model->sp.unk == BPE_NONE)
                    return UNIGRAM_NO_UNKNOWN;
            }
        }
        if (at >= look) {
            look = at + LOOK;
            if (bpe_scratch_stops(scratch))
                return UNIGRAM_STOPPED;
        }
    }
    *sum = (double)sums[count & mask];
    return UNIGRAM_DIVIDED;
}
