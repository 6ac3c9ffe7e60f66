/* SPDX-License-Identifier: MIT */
/*
 * train_unigram.c - see train_unigram.h. Pieces are kept in the ascending order of their characters, which is the order
 * that the trie is built in; of equally good ones the first is taken.
 */
#include "train_unigram.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "platform/os.h"
#include "text/utf8.h"
#include "train_math.h"
#include "unigram_lattice.h"
#include "unigram_seeds.h"

#define SUB_ITERATIONS 2
#define SHRINKING 0.75
#define EXPECTED_LEAST 0.5
#define LOT 1024           /* words or pieces that a thread takes at once */
#define UNKNOWN_PENALTY 10 /* so much is the score of a character without a piece below the lowest score */

struct unigram_model {
    const struct unigram_options *options;
    const struct unigram_words *words;
    struct train_budget *budget;
    uint32_t threads;

    struct unigram_piece *pieces;
    double *scores; /* natural logarithms */
    uint32_t count, room;
    struct unigram_trie trie;
    double least;           /* of the scores */
    uint32_t *single_codes; /* the numbers from 0 on: pieces of one character point into this */

    uint64_t *sums; /* of all threads, by piece */
    double *losses; /* by piece: what is lost without it; below 0: it is not needed */
    uint64_t total; /* of sums */
    uint64_t next;  /* the next lot */
    bool stopped;
    struct unigram_worker *workers;
    void (*lot)(struct unigram_worker *worker, uint64_t first, uint64_t end);
    uint64_t lot_items;
};

struct unigram_worker {
    struct unigram_model *model;
    struct unigram_lattice lattice;
    uint64_t *sums; /* by piece */
    uint32_t found[LATTICE_RUN];
};

/* ---- work that threads share ---- */

static void lots_take(void *user, uint32_t number)
{
    struct unigram_model *m = user;
    for (;;) {
        const uint64_t first = __atomic_fetch_add(&m->next, LOT, __ATOMIC_RELAXED);
        if (first >= m->lot_items || __atomic_load_n(&m->stopped, __ATOMIC_RELAXED))
            return;
        if (m->options->stop && m->options->stop(m->options->user))
            __atomic_store_n(&m->stopped, true, __ATOMIC_RELAXED);
        m->lot(&m->workers[number], first, min64(first + LOT, m->lot_items));
    }
}

/* Calls `lot` for all items below `count`, by all threads, and adds up their sums. */
static enum tokmap_status share(struct unigram_model *m, void (*lot)(struct unigram_worker *, uint64_t, uint64_t),
                                uint64_t count, bool sums, struct tokmap_error *error)
{
    m->lot = lot;
    m->lot_items = count;
    m->next = 0;
    for (uint32_t i = 0; i < m->threads; i++) {
        struct unigram_worker *worker = &m->workers[i];
        worker->lattice.trie = &m->trie;
        worker->lattice.unknown = train_exp(m->least - UNKNOWN_PENALTY);
        if (sums)
            memset(worker->sums, 0, m->count * sizeof *worker->sums);
    }
    os_threads_share("tokmap-train", m->threads, lots_take, m);
    if (m->stopped)
        return error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted");
    m->total = sums ? 0 : m->total;
    for (uint32_t p = 0; p < m->count && sums; p++) {
        uint64_t sum = 0;
        for (uint32_t i = 0; i < m->threads; i++)
            sum += m->workers[i].sums[p];
        m->sums[p] = sum;
        m->total += sum;
    }
    return TOKMAP_OK;
}

/* Calls a function for the runs of a lot of words. */
static inline void runs_each(struct unigram_worker *worker, uint64_t first, uint64_t end,
                             void (*each)(struct unigram_worker *worker, const uint32_t *codes, uint32_t count,
                                          uint64_t times))
{
    const struct unigram_words *words = worker->model->words;
    for (uint64_t w = first; w < end; w++) {
        const uint64_t stop = words->words[w + 1].begin;
        for (uint64_t at = words->words[w].begin; at < stop;) {
            uint64_t run = 0;
            while (run < LATTICE_RUN && words->codes[at + run])
                run++;
            if (run)
                each(worker, words->codes + at, (uint32_t)run, words->words[w].times);
            at += run + (words->codes[at + run] == 0);
        }
    }
}

static void run_expect(struct unigram_worker *worker, const uint32_t *codes, uint32_t count, uint64_t times)
{
    unigram_lattice_expect(&worker->lattice, codes, count, times, worker->sums);
}

static void lot_expect(struct unigram_worker *worker, uint64_t first, uint64_t end)
{
    runs_each(worker, first, end, run_expect);
}

static void run_best(struct unigram_worker *worker, const uint32_t *codes, uint32_t count, uint64_t times)
{
    uint32_t found;
    (void)unigram_lattice_best(&worker->lattice, codes, count, TRIE_NO_PIECE, worker->found, &found);
    for (uint32_t i = 0; i < found; i++)
        if (worker->found[i] != TRIE_NO_PIECE)
            worker->sums[worker->found[i]] += times;
}

static void lot_best(struct unigram_worker *worker, uint64_t first, uint64_t end)
{
    runs_each(worker, first, end, run_best);
}

/* ---- pieces ---- */

/* Builds the trie of all pieces. */
static enum tokmap_status trie_renew(struct unigram_model *m, struct tokmap_error *error)
{
    unigram_trie_free(&m->trie, m->budget);
    return unigram_trie_make(&m->trie, m->pieces, m->count, m->words->characters->count, m->budget, error);
}

/* Writes the probabilities into the trie. */
static void probabilities_set(struct unigram_model *m)
{
    m->least = 0;
    for (uint32_t p = 0; p < m->count; p++) {
        struct trie_node *node = &m->trie.nodes[m->trie.node_of[p]];
        if (node->piece == TRIE_NO_PIECE)
            continue; /* dropped */
        node->probability = (float)train_exp(m->scores[p]);
        m->least = m->scores[p] < m->least ? m->scores[p] : m->least;
    }
}

/* Moves the pieces that are not dropped to the front and builds their trie. keep: by piece. */
static enum tokmap_status pieces_keep(struct unigram_model *m, const double *keep, struct tokmap_error *error)
{
    uint32_t kept = 0;
    for (uint32_t p = 0; p < m->count; p++) {
        if (keep[p] < 0)
            continue;
        m->pieces[kept] = m->pieces[p];
        m->scores[kept++] = m->scores[p];
    }
    m->count = kept;
    const enum tokmap_status status = trie_renew(m, error);
    if (!status)
        probabilities_set(m);
    return status;
}

static int pieces_compare(const void *one, const void *other)
{
    const struct unigram_piece *a = one, *b = other;
    const uint32_t count = a->count < b->count ? a->count : b->count;
    for (uint32_t i = 0; i < count; i++)
        if (a->codes[i] != b->codes[i])
            return a->codes[i] < b->codes[i] ? -1 : 1;
    return a->count < b->count ? -1 : a->count > b->count;
}

/* A piece to begin with. pieces_compare() compares the pieces that these begin with. */
struct seed_piece {
    struct unigram_piece piece;
    uint64_t score;
};

static enum tokmap_status pieces_make(struct unigram_model *m, struct unigram_seeds *seeds, struct tokmap_error *error)
{
    const struct unigram_words *words = m->words;
    const uint64_t count = (uint64_t)words->characters->count + seeds->count;
    struct seed_piece *all = NULL;
    double sum = 0;
    enum tokmap_status status = train_take(m->budget, (void **)&all, count, sizeof *all, error);
    if (!status)
        status = train_take(m->budget, (void **)&m->single_codes, (uint64_t)words->characters->count + 1,
                            sizeof *m->single_codes, error);
    if (!status)
        status = train_take(m->budget, (void **)&m->pieces, count, sizeof *m->pieces, error);
    if (!status)
        status = train_take(m->budget, (void **)&m->scores, count, sizeof *m->scores, error);
    if (!status)
        status = train_take(m->budget, (void **)&m->sums, count, sizeof *m->sums, error);
    if (!status)
        status = train_take(m->budget, (void **)&m->losses, count, sizeof *m->losses, error);
    m->room = m->count = (uint32_t)count;
    for (uint32_t c = 1; c <= words->characters->count && !status; c++) {
        m->single_codes[c] = c;
        const uint64_t times = words->characters->times[c];
        all[c - 1] = (struct seed_piece){{m->single_codes + c, 1}, times ? times : 1};
    }
    for (uint64_t i = 0; i < seeds->count && !status; i++)
        all[words->characters->count + i] =
            (struct seed_piece){{words->codes + seeds->seeds[i].at, seeds->seeds[i].count}, seeds->seeds[i].score};
    if (!status)
        qsort(all, (size_t)count, sizeof *all, pieces_compare);
    for (uint64_t i = 0; i < count && !status; i++)
        sum += (double)all[i].score;
    for (uint64_t i = 0; i < count && !status; i++) {
        m->pieces[i] = all[i].piece;
        m->scores[i] = train_ln((double)all[i].score) - train_ln(sum);
    }
    train_give(m->budget, all, count, sizeof *all);
    if (!status)
        status = trie_renew(m, error);
    if (!status)
        probabilities_set(m);
    return status;
}

/* ---- expectation and maximization ---- */

static enum tokmap_status expect_and_maximize(struct unigram_model *m, uint32_t *left, struct tokmap_error *error)
{
    enum tokmap_status status = share(m, lot_expect, m->words->count, true, error);
    double sum = 0;
    if (status)
        return status;
    *left = 0;
    for (uint32_t p = 0; p < m->count; p++) {
        const double expected = (double)m->sums[p] / LATTICE_UNIT;
        if (expected >= EXPECTED_LEAST) {
            sum += expected;
            ++*left;
        }
    }
    const double whole = sum > 0 ? train_digamma(sum) : 0;
    for (uint32_t p = 0; p < m->count; p++) {
        const double expected = (double)m->sums[p] / LATTICE_UNIT;
        if (expected >= EXPECTED_LEAST)
            m->scores[p] = train_digamma(expected) - whole;
        else
            m->trie.nodes[m->trie.node_of[p]].piece = TRIE_NO_PIECE;
    }
    probabilities_set(m);
    return TOKMAP_OK;
}

/* ---- pruning ---- */

#define LOSS_NONE (-1.0)      /* the piece is not needed */
#define LOSS_INFINITE 1.0e300 /* there is no other way to write it */

/* Computes the losses of a lot of pieces: how much less probable the text would be if each of their places were written
 * in the next best way. */
static void lot_lose(struct unigram_worker *worker, uint64_t first, uint64_t end)
{
    const struct unigram_model *m = worker->model;
    const double sum = (double)m->total;
    for (uint64_t p = first; p < end; p++) {
        const struct unigram_piece *piece = &m->pieces[p];
        const double times = (double)m->sums[p];
        uint32_t found;
        m->losses[p] = LOSS_NONE;
        if (m->trie.nodes[m->trie.node_of[p]].piece == TRIE_NO_PIECE || !m->sums[p])
            continue;
        if (piece->count == 1) {
            m->losses[p] = LOSS_INFINITE;
            continue;
        }
        const double way =
            unigram_lattice_best(&worker->lattice, piece->codes, piece->count, (uint32_t)p, worker->found, &found);
        if (way > (double)m->trie.nodes[m->trie.node_of[p]].probability)
            continue;
        const double without = train_ln(sum + times * (found - 1.0));
        double others = 0;
        for (uint32_t i = 0; i < found; i++) {
            const double had = worker->found[i] == TRIE_NO_PIECE ? 0 : (double)m->sums[worker->found[i]];
            others += train_ln(had + times) - without;
        }
        const double loss = times * (train_ln(times) - train_ln(sum) - others);
        m->losses[p] = loss > 0 ? loss : 0;
    }
}

static int losses_compare(const void *one, const void *other)
{
    const double a = *(const double *)one, b = *(const double *)other;
    return a > b ? -1 : a < b;
}

/* Drops all but the `most` pieces with the largest losses; of those with equal losses, the first ones stay. */
static enum tokmap_status losses_cut(struct unigram_model *m, uint32_t most, struct tokmap_error *error)
{
    double *sorted = NULL;
    const enum tokmap_status status = train_take(m->budget, (void **)&sorted, m->count, sizeof *sorted, error);
    if (status)
        return status;
    memcpy(sorted, m->losses, m->count * sizeof *sorted);
    qsort(sorted, m->count, sizeof *sorted, losses_compare);
    if (most < m->count && sorted[most] >= 0) {
        const double least = sorted[most - 1];
        uint32_t equal = 0;
        while (equal < most && sorted[most - 1 - equal] == least)
            equal++; /* so many with this loss stay */
        for (uint32_t p = 0; p < m->count; p++)
            if (m->losses[p] < least || (m->losses[p] == least && !(equal && equal--)))
                m->losses[p] = LOSS_NONE;
    }
    train_give(m->budget, sorted, m->count, sizeof *sorted);
    return TOKMAP_OK;
}

static enum tokmap_status prune(struct unigram_model *m, uint32_t left, uint32_t wanted, struct tokmap_error *error)
{
    enum tokmap_status status = share(m, lot_best, m->words->count, true, error);
    if (!status)
        status = share(m, lot_lose, m->count, false, error);
    if (!status) {
        const uint32_t most = (uint32_t)(SHRINKING * left);
        status = losses_cut(m, most > wanted ? most : wanted, error);
    }
    return status ? status : pieces_keep(m, m->losses, error);
}

/* ---- the vocabulary ---- */

struct final_piece {
    struct unigram_piece piece;
    double score;
};

static int finals_compare(const void *one, const void *other)
{
    const struct final_piece *a = one, *b = other;
    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    return pieces_compare(&a->piece, &b->piece);
}

/* Returns whether a piece has a text that must not become one. */
static bool is_forbidden(const struct unigram_model *m, const struct unigram_piece *piece)
{
    char text[4 * UNIGRAM_LONGEST_MOST];
    size_t bytes = 0;
    if (piece->count < 2 || !m->options->forbidden_count)
        return false;
    for (uint32_t i = 0; i < piece->count; i++)
        bytes += utf8_put(text + bytes, m->words->characters->codes[piece->codes[i]]);
    for (uint32_t i = 0; i < m->options->forbidden_count; i++)
        if (m->options->forbidden[i].count == bytes && !memcmp(m->options->forbidden[i].bytes, text, bytes))
            return true;
    return false;
}

/* Chooses the pieces of the vocabulary: all characters, then the pieces with the highest scores. Characters that are no
 * pieces get the lowest scores. all: has room for the pieces and the characters; gets *count pieces in order. */
static enum tokmap_status finals_choose(const struct unigram_model *m, struct final_piece *all, uint32_t *count,
                                        struct tokmap_error *error)
{
    const uint32_t characters = m->words->characters->count;
    uint32_t found = 0, missing = 0, others = m->options->pieces - characters;
    uint8_t *has = NULL;
    const enum tokmap_status status = train_take(m->budget, (void **)&has, (uint64_t)characters + 1, 1, error);
    if (status)
        return status;
    for (uint32_t p = 0; p < m->count; p++)
        if (m->trie.nodes[m->trie.node_of[p]].piece != TRIE_NO_PIECE && !is_forbidden(m, &m->pieces[p])) {
            all[found++] = (struct final_piece){m->pieces[p], m->scores[p]};
            if (m->pieces[p].count == 1)
                has[m->pieces[p].codes[0]] = 1;
        }
    for (uint32_t c = 1; c <= characters; c++)
        if (!has[c])
            all[found++] = (struct final_piece){{m->single_codes + c, 1}, m->least + 0.0001 * missing++};
    train_give(m->budget, has, (uint64_t)characters + 1, 1);
    qsort(all, found, sizeof *all, finals_compare);
    *count = 0;
    for (uint32_t i = 0; i < found; i++)
        if (all[i].piece.count == 1 || others) {
            others -= all[i].piece.count > 1;
            all[(*count)++] = all[i];
        }
    return TOKMAP_OK;
}

static enum tokmap_status vocabulary_make(const struct unigram_model *m, const struct final_piece *all, uint32_t count,
                                          struct unigram_vocabulary *v, struct tokmap_error *error)
{
    uint64_t bytes = 0;
    for (uint32_t p = 0; p < count; p++)
        bytes += 4 * (uint64_t)all[p].piece.count;
    v->pieces = malloc((count + (size_t)1) * sizeof *v->pieces);
    v->scores = malloc((count + (size_t)1) * sizeof *v->scores);
    v->bytes = malloc((size_t)bytes + 1);
    if (!v->pieces || !v->scores || !v->bytes)
        return error_set_memory(error, "the vocabulary", bytes);
    bytes = 0;
    for (uint32_t p = 0; p < count; p++) {
        v->pieces[p].bytes = v->bytes + bytes;
        v->scores[p] = (float)all[p].score;
        for (uint32_t i = 0; i < all[p].piece.count; i++)
            bytes += utf8_put((char *)v->bytes + bytes, m->words->characters->codes[all[p].piece.codes[i]]);
        v->pieces[p].count = (uint64_t)(v->bytes + bytes - v->pieces[p].bytes);
    }
    v->count = count;
    return TOKMAP_OK;
}

/* Counts the tokens of the text with the vocabulary, whose pieces are sorted by their characters. */
static enum tokmap_status tokens_count(struct unigram_model *m, const struct final_piece *all, uint32_t count,
                                       struct unigram_vocabulary *v, struct tokmap_error *error)
{
    assert(count <= m->room);
    for (uint32_t p = 0; p < count; p++) {
        m->pieces[p] = all[p].piece;
        m->scores[p] = all[p].score;
    }
    m->count = count;
    enum tokmap_status status = trie_renew(m, error);
    if (status)
        return status;
    probabilities_set(m);
    status = share(m, lot_best, m->words->count, true, error);
    v->tokens = m->total;
    return status;
}

static enum tokmap_status finish(struct unigram_model *m, struct unigram_vocabulary *v, struct tokmap_error *error)
{
    const uint64_t room = (uint64_t)m->count + m->words->characters->count;
    struct final_piece *all = NULL;
    uint32_t count = 0;
    enum tokmap_status status = train_take(m->budget, (void **)&all, room, sizeof *all, error);
    if (!status)
        status = finals_choose(m, all, &count, error);
    if (!status)
        status = vocabulary_make(m, all, count, v, error);
    if (!status) {
        qsort(all, count, sizeof *all, pieces_compare); /* of the pieces that they begin with */
        status = tokens_count(m, all, count, v, error);
    }
    train_give(m->budget, all, room, sizeof *all);
    return status;
}

/* ---- all ---- */

static enum tokmap_status workers_make(struct unigram_model *m, struct tokmap_error *error)
{
    enum tokmap_status status = train_take(m->budget, (void **)&m->workers, m->threads, sizeof *m->workers, error);
    for (uint32_t i = 0; i < m->threads && !status; i++) {
        struct unigram_worker *worker = &m->workers[i];
        worker->model = m;
        status = unigram_lattice_make(&worker->lattice, m->options->longest, m->budget, error);
        if (!status)
            status = train_take(m->budget, (void **)&worker->sums, m->room, sizeof *worker->sums, error);
    }
    return status;
}

static void model_free(struct unigram_model *m)
{
    for (uint32_t i = 0; i < m->threads && m->workers; i++) {
        unigram_lattice_free(&m->workers[i].lattice, m->budget);
        train_give(m->budget, m->workers[i].sums, m->room, sizeof(uint64_t));
    }
    train_give(m->budget, m->workers, m->threads, sizeof *m->workers);
    unigram_trie_free(&m->trie, m->budget);
    train_give(m->budget, m->pieces, m->room, sizeof *m->pieces);
    train_give(m->budget, m->scores, m->room, sizeof *m->scores);
    train_give(m->budget, m->sums, m->room, sizeof *m->sums);
    train_give(m->budget, m->losses, m->room, sizeof *m->losses);
    train_give(m->budget, m->single_codes, (uint64_t)m->words->characters->count + 1, sizeof *m->single_codes);
}

static enum tokmap_status iterate(struct unigram_model *m, struct tokmap_error *error)
{
    const uint32_t wanted = (uint32_t)((uint64_t)m->options->pieces * 11 / 10);
    for (;;) {
        uint32_t left = m->count;
        for (int i = 0; i < SUB_ITERATIONS; i++) {
            if (m->options->progress)
                m->options->progress(m->options->user, left);
            const enum tokmap_status status = expect_and_maximize(m, &left, error);
            if (status)
                return status;
        }
        if (left <= wanted)
            return TOKMAP_OK;
        const enum tokmap_status status = prune(m, left, wanted, error);
        if (status)
            return status;
    }
}

enum tokmap_status train_unigram(struct unigram_vocabulary *vocabulary, const struct unigram_words *words,
                                 struct train_budget *budget, const struct unigram_options *options,
                                 struct tokmap_error *error)
{
    struct unigram_model m = {.options = options, .words = words, .budget = budget, .threads = options->threads};
    struct unigram_seeds seeds;
    const uint64_t usual = max64(UNIGRAM_SEEDS, 10 * (uint64_t)options->pieces);
    memset(vocabulary, 0, sizeof *vocabulary);
    assert(options->pieces >= words->characters->count && options->threads && words->characters->count);
    assert(options->longest && options->longest <= UNIGRAM_LONGEST_MOST);
    enum tokmap_status status =
        unigram_seeds_find(&seeds, words, options->seeds ? options->seeds : usual, options->longest, options->threads,
                           options->stop, options->user, budget, error);
    if (!status)
        status = pieces_make(&m, &seeds, error);
    unigram_seeds_free(&seeds, budget);
    if (!status)
        status = workers_make(&m, error);
    if (!status)
        status = iterate(&m, error);
    if (!status)
        status = finish(&m, vocabulary, error);
    model_free(&m);
    if (status)
        unigram_vocabulary_free(vocabulary);
    return status;
}

void unigram_vocabulary_free(struct unigram_vocabulary *vocabulary)
{
    free(vocabulary->pieces);
    free(vocabulary->scores);
    free(vocabulary->bytes);
    memset(vocabulary, 0, sizeof *vocabulary);
}
