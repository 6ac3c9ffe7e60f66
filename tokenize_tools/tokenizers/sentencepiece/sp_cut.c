/* SPDX-License-Identifier: MIT */
/*
 * sp_cut.c - the groups of first bytes, and cutting without special instructions; sp_cut.h explains the method.
 *
 * There are at most some 180 first bytes, but a byte of bits has room for 8 groups, and two for 16. First bytes that
 * are joined to the same left bytes share a group at no cost, and those that nothing is joined to need none. Then,
 * while there are more than 16 groups, the two are united whose union adds the fewest false joins, a join counting as
 * much as its two bytes are common side by side. A false join makes pieces longer, but never wrong.
 */
#include "sp_cut.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "bpe/bpe_model.h"
#include "common/bytes.h"

#define GROUPS 16

/* Returns how common an ASCII character is in text of any kind. Only the order of magnitude matters. */
static uint32_t weight(uint32_t byte)
{
    if (byte == ' ')
        return 16;
    if (byte >= 'a' && byte <= 'z')
        return 8;
    if ((byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') || byte == '\n')
        return 3;
    return byte > ' ' && byte < 0x7F ? 2 : 1;
}

/* Returns the number of the script of a first byte; characters side by side are mostly of the same script. 0: below all
 * scripts. */
static uint32_t script(uint32_t lead)
{
    static const uint8_t from[] = {0xC2, 0xCC, 0xD0, 0xD4, 0xD6, 0xD8, 0xDC, 0xE0,
                                   0xE1, 0xE2, 0xE3, 0xEA, 0xEE, 0xEF, 0xF0};
    uint32_t found = 0;
    while (found < sizeof from && from[found] <= lead)
        found++;
    return found;
}

/* Returns how common it is that a character with the first byte `left` comes before one with `right`. */
static uint32_t weight_of(uint32_t left, uint32_t right)
{
    if (left < 0x80 && right < 0x80)
        return weight(left) * weight(right);
    if (left < 0x80 || right < 0x80) {
        const uint32_t byte = left < 0x80 ? left : right, lead = left < 0x80 ? right : left;
        const bool letter = (byte | 32) >= 'a' && (byte | 32) <= 'z';
        return letter ? (script(lead) == 1 ? 32 : 2) : 8 * weight(byte);
    }
    return script(left) == script(right) ? 128 : 2;
}

struct groups {
    uint32_t count;
    uint8_t of[256];            /* group + 1 of a first byte; 0: nothing is joined to it */
    uint64_t joined[256][4];    /* [group]: bits of the left bytes that are joined to it */
    uint32_t weights[256][256]; /* [group][left byte]: how common the left byte is before the group */
    uint32_t costs[256][256];   /* of uniting two groups; the first number is less than the second */
};

/* Returns the sum of weights of the left bytes that are in `set` but not in `minus`. */
static uint32_t false_joins(const uint32_t weights[256], const uint64_t set[4], const uint64_t minus[4])
{
    uint32_t sum = 0;
    for (uint32_t word = 0; word < 4; word++)
        for (uint64_t rest = set[word] & ~minus[word]; rest; rest &= rest - 1)
            sum += weights[64 * word + (uint32_t)__builtin_ctzll(rest)];
    return sum;
}

/* Computes the costs of uniting a group with each of the first `count`. */
static void find_costs(struct groups *groups, uint32_t group, uint32_t count)
{
    for (uint32_t other = 0; other < count; other++) {
        const uint32_t low = group < other ? group : other, high = group < other ? other : group;
        groups->costs[low][high] = false_joins(groups->weights[high], groups->joined[low], groups->joined[high]) +
                                   false_joins(groups->weights[low], groups->joined[high], groups->joined[low]);
    }
}

/* Adds the group `gone` to the group `into`. The last group takes the number of the one that is gone. */
static void unite(struct groups *groups, uint32_t into, uint32_t gone)
{
    const uint32_t last = --groups->count;
    for (uint32_t word = 0; word < 4; word++)
        groups->joined[into][word] |= groups->joined[gone][word];
    for (uint32_t left = 0; left < 256; left++)
        groups->weights[into][left] += groups->weights[gone][left];
    memcpy(groups->joined[gone], groups->joined[last], sizeof groups->joined[gone]);
    memcpy(groups->weights[gone], groups->weights[last], sizeof groups->weights[gone]);
    for (uint32_t byte = 0; byte < 256; byte++) {
        if (groups->of[byte] == gone + 1)
            groups->of[byte] = (uint8_t)(into + 1);
        else if (groups->of[byte] == last + 1)
            groups->of[byte] = (uint8_t)(gone + 1);
    }
    if (gone != last)
        find_costs(groups, gone, groups->count);
    find_costs(groups, into, groups->count);
}

static void make_groups(struct groups *groups, const struct sp_relation *relation)
{
    for (uint32_t right = 0; right < 256; right++) {
        uint64_t joined[4] = {0, 0, 0, 0};
        for (uint32_t left = 0; left < 256; left++)
            joined[left / 64] |= (relation->bits[left][right / 64] >> (right % 64) & 1) << (left % 64);
        if (!(joined[0] | joined[1] | joined[2] | joined[3]))
            continue;
        uint32_t group = 0;
        while (group < groups->count && memcmp(groups->joined[group], joined, sizeof joined) != 0)
            group++;
        if (group == groups->count)
            memcpy(groups->joined[groups->count++], joined, sizeof joined);
        for (uint32_t left = 0; left < 256; left++)
            groups->weights[group][left] += weight_of(left, right);
        groups->of[right] = (uint8_t)(group + 1);
    }
    for (uint32_t group = 0; group < groups->count; group++)
        find_costs(groups, group, group);
}

bool sp_cut_table_build(struct sp_cut_table *table, const struct sp_relation *relation)
{
    struct groups *groups = calloc(1, sizeof *groups);
    if (!groups)
        return false;
    make_groups(groups, relation);
    while (groups->count > GROUPS) {
        uint32_t into = 0, gone = 1;
        for (uint32_t low = 0; low < groups->count; low++)
            for (uint32_t high = low + 1; high < groups->count; high++)
                if (groups->costs[low][high] < groups->costs[into][gone]) {
                    into = low;
                    gone = high;
                }
        unite(groups, into, gone);
    }
    memset(table->left, 0, sizeof table->left);
    memset(table->right, 0, sizeof table->right);
    for (uint32_t byte = 0; byte < 256; byte++) {
        const uint32_t group = groups->of[byte] - 1u;
        if (groups->of[byte])
            table->right[group / 8][byte] = (uint8_t)(1u << (group % 8));
        for (uint32_t other = 0; other < groups->count; other++)
            if (groups->joined[other][byte / 64] >> (byte % 64) & 1)
                table->left[other / 8][byte] |= (uint8_t)(1u << (other % 8));
    }
    free(groups);
    return true;
}

uint64_t sp_cut_tall(const struct bpe_model *joins, const uint8_t *text, size_t from, size_t readable, uint64_t open)
{
    uint64_t cuts = 0;
    for (; open; open &= open - 1) {
        const uint32_t at = (uint32_t)__builtin_ctzll(open);
        const size_t pair = from + at - 3;
        uint64_t six = 0;
        if (readable - pair >= 8)
            six = load64(text + pair);
        else
            memcpy(&six, text + pair, readable - pair);
        cuts |= (uint64_t)!bpe_may_join(joins, six) << at;
    }
    return cuts;
}

bool sp_cut_scalar(const struct sp_cut_table *table, const struct bpe_model *joins, const uint8_t *text, size_t count,
                   size_t readable, uint64_t *starts)
{
    assert(count && readable >= count);
    uint32_t left = 0;
    bool marked = false;
    for (size_t from = 0; from < count; from += 64) {
        const size_t bytes = min64(count - from, 64);
        uint64_t cuts = 0, open = 0;
        for (size_t i = 0; i < bytes; i++) {
            const uint32_t byte = text[from + i];
            if ((byte & 0xC0) == 0x80)
                continue;
            const uint32_t right = table->right[0][byte] | (uint32_t)table->right[1][byte] << 8;
            cuts |= (uint64_t) !(left & right) << i;
            left = table->left[0][byte] | (uint32_t)table->left[1][byte] << 8;
            if (byte < 0xE0)
                continue;
            open |= (uint64_t)(from + i >= 3 && text[from + i - 3] >= 0xE0) << i;
            marked |=
                byte == 0xE2 && readable - from - i >= 3 && text[from + i + 1] == 0x96 && text[from + i + 2] == 0x81;
        }
        if (table->tall)
            cuts |= sp_cut_tall(joins, text, from, readable, open & ~cuts);
        starts[from / 64] = cuts;
    }
    starts[0] |= 1;
    return marked && table->marks;
}

size_t sp_cut_end(sp_cut_function *cut, const struct sp_cut_table *table, const struct bpe_model *joins,
                  const uint8_t *text, size_t from, size_t count, uint64_t *starts, bool *marked)
{
    for (;;) {
        /* Begin with the character before, whose border is known. */
        from -= min64(from, 4);
        for (uint32_t steps = 0; steps < 3 && from && (text[from] & 0xC0) == 0x80; steps++)
            from--;
        const size_t bytes = min64(count - from, SCAN_BYTES);
        *marked |= cut(table, joins, text + from, bytes, count - from, starts);
        if (*marked)
            return 0;
        starts[0] &= ~(uint64_t)1;
        for (size_t word = 0; word < (bytes + 63) / 64; word++)
            if (starts[word])
                return from + 64 * word + (size_t)__builtin_ctzll(starts[word]);
        from += bytes;
        if (from == count)
            return count;
    }
}

sp_cut_function *sp_cut_variant(enum cpu_variant variant)
{
#if defined(__x86_64__)
    if (variant == CPU_VBMI)
        return sp_cut_vbmi;
    if (variant >= CPU_AVX2)
        return sp_cut_avx2;
#endif
    return sp_cut_scalar;
}
