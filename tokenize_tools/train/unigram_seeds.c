/* SPDX-License-Identifier: MIT */
#include "unigram_seeds.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "platform/os.h"

struct suffix {
    uint32_t at; /* of its first character */
    uint32_t word;
};

/* What all threads share. */
struct search {
    const struct unigram_words *words;
    struct suffix *suffixes; /* grouped by their first character */
    uint64_t *starts;        /* of the groups, by the number of the character */
    uint32_t next;           /* the next group that a thread takes */
    uint64_t most;
    uint32_t longest;
    struct train_budget *budget;
    bool (*stop)(void *user);
    void *user;
    struct finder *finders;
};

/* One thread. */
struct finder {
    struct search *search;
    struct unigram_seeds found; /* not sorted */
    uint64_t least;             /* score: seeds below it are not among the best */
    enum tokmap_status status;
    struct tokmap_error error;
};

/* ---- the best seeds ---- */

/* The comparison of qsort() has no argument for the characters, so each thread that sorts sets this. */
static _Thread_local const uint32_t *sorted_codes;

static int seeds_compare(const void *one, const void *other)
{
    const struct unigram_seed *a = one, *b = other;
    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    const uint32_t *codes_a = sorted_codes + a->at, *codes_b = sorted_codes + b->at;
    for (uint32_t i = 0; i < a->count && i < b->count; i++)
        if (codes_a[i] != codes_b[i])
            return codes_a[i] < codes_b[i] ? -1 : 1;
    return a->count < b->count ? -1 : a->count > b->count;
}

/* Keeps the best seeds, in order. */
static void seeds_trim(struct unigram_seeds *seeds, const uint32_t *codes, uint64_t most)
{
    sorted_codes = codes;
    qsort(seeds->seeds, (size_t)seeds->count, sizeof *seeds->seeds, seeds_compare);
    seeds->count = min64(seeds->count, most);
}

static void seed_add(struct finder *f, uint32_t at, uint32_t count, uint64_t times)
{
    const struct search *s = f->search;
    const uint64_t score = times * count;
    if (score < f->least || f->status)
        return;
    if (f->found.count == f->found.room) {
        if (f->found.count >= 2 * s->most) {
            seeds_trim(&f->found, s->words->codes, s->most);
            f->least = f->found.seeds[s->most - 1].score;
        } else {
            const uint64_t wanted = min64(max64(2 * f->found.room, 4096), 2 * s->most);
            f->status = train_grow(s->budget, (void **)&f->found.seeds, f->found.room, wanted, sizeof *f->found.seeds,
                                   &f->error);
            if (f->status)
                return;
            f->found.room = wanted;
        }
    }
    f->found.seeds[f->found.count++] = (struct unigram_seed){score, at, count};
}

/* ---- the tree of suffixes ---- */

static uint64_t node_visit(struct finder *f, struct suffix *suffixes, uint64_t count, uint32_t depth);

/* Sorts suffixes, which have equal characters before `depth`, by the next one, and visits the child for each. Returns
 * how often the children occur. *children: the number of children, and 2 for the end of words. */
static uint64_t children_visit(struct finder *f, struct suffix *suffixes, uint64_t count, uint32_t depth,
                               uint32_t *children)
{
    const uint32_t *codes = f->search->words->codes + depth;
    uint64_t times = 0;
    while (count) {
        const uint32_t pivot = codes[suffixes[count / 2].at];
        uint64_t low = 0, at = 0, high = count; /* below `low` are smaller ones, from `high` on larger ones */
        while (at < high) {
            const uint32_t code = codes[suffixes[at].at];
            const struct suffix moved = suffixes[at];
            if (code < pivot) {
                suffixes[at++] = suffixes[low];
                suffixes[low++] = moved;
            } else if (code > pivot) {
                suffixes[at] = suffixes[--high];
                suffixes[high] = moved;
            } else {
                at++;
            }
        }
        if (pivot) {
            *children += 1;
            times += node_visit(f, suffixes + low, high - low, depth + 1);
        } else {
            *children += 2;
            for (uint64_t i = low; i < high; i++)
                times += f->search->words->words[suffixes[i].word].times;
        }
        /* The larger side continues in this loop, so that calls do not nest deeply. */
        const uint64_t above = count - high;
        if (low < above) {
            times += children_visit(f, suffixes, low, depth, children);
            suffixes += high;
            count = above;
        } else {
            times += children_visit(f, suffixes + high, above, depth, children);
            count = low;
        }
    }
    return times;
}

/* Visits the text that consists of the first `depth` characters of these suffixes. Returns how often it occurs. */
static uint64_t node_visit(struct finder *f, struct suffix *suffixes, uint64_t count, uint32_t depth)
{
    const struct unigram_words *words = f->search->words;
    uint64_t times = 0;
    uint32_t children = 0;
    if (depth > f->search->longest) { /* only how often it occurs matters */
        for (uint64_t i = 0; i < count; i++)
            times += words->words[suffixes[i].word].times;
        return times;
    }
    if (count == 1) { /* it continues in one way only, so only its end counts */
        const uint32_t *codes = words->codes + suffixes->at;
        times = words->words[suffixes->word].times;
        while (depth <= f->search->longest && codes[depth])
            depth++;
        if (depth <= f->search->longest && depth >= 2 && times >= 2)
            seed_add(f, suffixes->at, depth, times);
        return times;
    }
    const uint32_t at = suffixes->at;
    times = children_visit(f, suffixes, count, depth, &children);
    if (depth >= 2 && times >= 2 && children >= 2)
        seed_add(f, at, depth, times);
    return times;
}

/* Visits one group after another. */
static void groups_find(void *user, uint32_t number)
{
    struct search *s = user;
    struct finder *f = &s->finders[number];
    uint32_t group;
    while (!f->status && (group = __atomic_add_fetch(&s->next, 1, __ATOMIC_RELAXED)) <= s->words->characters->count) {
        if (s->stop && s->stop(s->user)) {
            f->status = error_set(&f->error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted");
            return;
        }
        const uint64_t count = s->starts[group + 1] - s->starts[group];
        if (count)
            (void)node_visit(f, s->suffixes + s->starts[group], count, 1);
    }
}

/* ---- all ---- */

static uint64_t suffixes_count(const struct unigram_words *words)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < words->code_count; i++)
        count += words->codes[i] != 0;
    return count;
}

/* Groups the suffixes by their first characters. */
static void suffixes_fill(struct search *s)
{
    const struct unigram_words *words = s->words;
    uint64_t total = 0;
    for (uint64_t i = 0; i < words->code_count; i++)
        if (words->codes[i])
            s->starts[words->codes[i]]++;
    for (uint32_t c = 1; c <= words->characters->count + 1; c++) {
        const uint64_t count = s->starts[c];
        s->starts[c] = total;
        total += count;
    }
    for (uint64_t w = 0; w < words->count; w++)
        for (uint64_t at = words->words[w].begin; at < words->words[w + 1].begin; at++)
            if (words->codes[at])
                s->suffixes[s->starts[words->codes[at]]++] = (struct suffix){(uint32_t)at, (uint32_t)w};
    for (uint32_t c = words->characters->count + 1; c > 1; c--) /* now each start is that of the next group */
        s->starts[c] = s->starts[c - 1];
    s->starts[1] = 0;
}

/* Moves what the threads have found to *seeds. */
static enum tokmap_status finders_join(struct search *s, struct unigram_seeds *seeds, uint32_t threads,
                                       struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    for (uint32_t i = 0; i < threads && !status; i++) {
        status = s->finders[i].status;
        if (status && error)
            *error = s->finders[i].error;
        seeds->room += s->finders[i].found.count;
    }
    const uint64_t room = seeds->room;
    seeds->room = 0;
    if (!status)
        status = train_take(s->budget, (void **)&seeds->seeds, room, sizeof *seeds->seeds, error);
    if (status)
        return status;
    seeds->room = room;
    for (uint32_t i = 0; i < threads; i++) {
        const struct unigram_seeds *found = &s->finders[i].found;
        if (found->count)
            memcpy(seeds->seeds + seeds->count, found->seeds, (size_t)found->count * sizeof *found->seeds);
        seeds->count += found->count;
    }
    seeds_trim(seeds, s->words->codes, s->most);
    return TOKMAP_OK;
}

enum tokmap_status unigram_seeds_find(struct unigram_seeds *seeds, const struct unigram_words *words, uint64_t most,
                                      uint32_t longest, uint32_t threads, bool (*stop)(void *user), void *user,
                                      struct train_budget *budget, struct tokmap_error *error)
{
    struct search s = {.words = words, .most = most, .longest = longest, .budget = budget, .stop = stop, .user = user};
    const uint64_t count = suffixes_count(words), groups = (uint64_t)words->characters->count + 2;
    memset(seeds, 0, sizeof *seeds);
    assert(most && longest >= 1 && words->count <= UINT32_MAX && words->code_count <= UINT32_MAX);
    enum tokmap_status status = train_take(budget, (void **)&s.suffixes, count, sizeof *s.suffixes, error);
    if (!status)
        status = train_take(budget, (void **)&s.starts, groups, sizeof *s.starts, error);
    if (!status)
        status = train_take(budget, (void **)&s.finders, threads, sizeof *s.finders, error);
    if (!status) {
        suffixes_fill(&s);
        for (uint32_t i = 0; i < threads; i++)
            s.finders[i].search = &s;
        os_threads_share("tokmap-seeds", threads, groups_find, &s);
        status = finders_join(&s, seeds, threads, error);
        for (uint32_t i = 0; i < threads; i++)
            train_give(budget, s.finders[i].found.seeds, s.finders[i].found.room, sizeof *seeds->seeds);
    }
    train_give(budget, s.finders, threads, sizeof *s.finders);
    train_give(budget, s.starts, groups, sizeof *s.starts);
    train_give(budget, s.suffixes, count, sizeof *s.suffixes);
    return status;
}

void unigram_seeds_free(struct unigram_seeds *seeds, struct train_budget *budget)
{
    train_give(budget, seeds->seeds, seeds->room, sizeof *seeds->seeds);
    memset(seeds, 0, sizeof *seeds);
}
