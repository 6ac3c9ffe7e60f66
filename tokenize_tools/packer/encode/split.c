/* SPDX-License-Identifier: MIT */
#include "split.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/hash.h"
#include "text/decimal.h"

#define DECIMALS_MOST 18

bool share_read(const char *text, size_t bytes, char into[SHARE_TEXT_MOST + 1], uint64_t *share)
{
    uint64_t number, one = 1;
    uint32_t decimals;
    const bool percent = bytes && bytes <= SHARE_TEXT_MOST && text[bytes - 1] == '%';
    if (bytes > SHARE_TEXT_MOST ||
        !decimal_parse_point(text, bytes - percent, DECIMALS_MOST - 2 * percent, &number, &decimals))
        return false;
    memcpy(into, text, bytes);
    into[bytes] = '\0';
    for (decimals += 2 * percent; percent && decimals && number % 10 == 0; decimals--)
        number /= 10;
    for (uint32_t i = 0; i < decimals; i++)
        one *= 10;
    if (percent && number > one)
        return false;
    if (percent)
        (void)snprintf(into, SHARE_TEXT_MOST + 1, "%s%0*" PRIu64, number == one ? "" : "0.", (int)decimals, number);
    const unsigned __int128 exact = (unsigned __int128)number * (SHARE_ONE / one);
    *share = exact < 2 * SHARE_ONE ? (uint64_t)exact : 2 * SHARE_ONE;
    return true;
}

/* Returns floor(2^64 * share), where `share` is below SHARE_ONE. */
static uint64_t share_bound(uint64_t share)
{
    return (uint64_t)(((unsigned __int128)share << 64) / SHARE_ONE);
}

/* Names of files that a set NAME.work and the like would be taken for. */
static bool is_reserved(const char *name)
{
    static const char *const names[] = {"bin", "tmx", "mask", "work", "partial", "unit", "dropped"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

static const char *name_read(const char *text, size_t bytes, struct split *split, struct split_set *set)
{
    static const char good[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    if (!bytes || bytes > SPLIT_NAME_MOST || strspn(text, good) < bytes)
        return "the name of a set has 1 to 32 letters, digits, dashes, and underscores, as in train=0.99,val=0.01";
    memcpy(set->name, text, bytes);
    set->name[bytes] = '\0';
    if (is_reserved(set->name))
        return "bin, tmx, mask, work, partial, unit, and dropped are not names of sets, because files are called so";
    for (uint32_t i = 0; i < split->count; i++)
        if (!strcmp(split->sets[i].name, set->name))
            return "two sets have the same name";
    return NULL;
}

const char *split_parse(const char *text, struct split *split)
{
    static const char form[] = "the sets are written as NAME=SHARE with commas between them: train=0.99,val=0.01";
    uint64_t shares[SPLIT_SETS_MOST];
    split->count = 0;
    for (const char *at = text;;) {
        const size_t bytes = strcspn(at, ","), name_bytes = strcspn(at, "=,");
        if (split->count == SPLIT_SETS_MOST)
            return "there are more than 16 sets";
        if (at[name_bytes] != '=')
            return form;
        struct split_set *set = &split->sets[split->count];
        const char *wrong = name_read(at, name_bytes, split, set);
        if (wrong)
            return wrong;
        if (!share_read(at + name_bytes + 1, bytes - name_bytes - 1, set->share, &shares[split->count]) ||
            !shares[split->count])
            return "the share of a set is a decimal number above 0 and up to 1, with at most 18 decimals, such as "
                   "0.01, or a percentage, such as 1%";
        split->count++;
        if (!at[bytes])
            break;
        at += bytes + 1;
    }
    unsigned __int128 sum = 0;
    for (uint32_t i = 0; i < split->count; i++) {
        split->sets[i].begin = sum < SHARE_ONE ? share_bound((uint64_t)sum) : 0;
        sum += shares[i];
        if (sum > SHARE_ONE)
            return "the shares of the sets are more than 1 together; for nine tenths write 0.9, or 90%";
    }
    return sum == SHARE_ONE ? NULL : "the shares of the sets are less than 1 together; name the rest as a set, too";
}

bool split_choose(const struct split *split, const struct corpus_document *document, struct bytes_buffer *scratch,
                  uint32_t *set)
{
    const void *bytes = document->text;
    uint64_t count = document->bytes;
    *set = 0;
    if (document->ids) {
        bytes = document->ids;
        count = document->id_count * sizeof *document->ids;
    } else if (document->second) {
        scratch->count = 0;
        if (!bytes_append(scratch, document->text, (size_t)document->bytes) ||
            !bytes_append(scratch, document->second, (size_t)document->second_bytes))
            return false;
        bytes = scratch->bytes;
        count = scratch->count;
    }
    const uint64_t v = hash64_seeded(count ? bytes : "", (size_t)count, split->seed);
    uint32_t found = split->count - 1;
    while (split->sets[found].begin > v)
        found--;
    *set = found;
    return true;
}
