/* SPDX-License-Identifier: MIT */
/*
 * token_doubts.c - see token_doubts.h.
 *
 * Files without a header mean what the words of their name say, and a wrong word gives tokens, too: the ids 5, 70, 261
 * in 4 bytes each, read as 2, are 5, 0, 70, 0, 261, 0. What is looked for is what no text can have, so that no dataset
 * is accused whose words are right. Frequent tokens are in few values of each byte of their ids, but of a small part of
 * the vocabulary: so the high bytes of ids are always concentrated on fewer values than the low ones. In all true files
 * that were tried (8 vocabularies, 5 languages and code, 256 tokens and more) the 8 most frequent low bytes had at most
 * the share that the 8 most frequent high bytes had; in swapped ones it was greater by more than a fifth in 94 of 100.
 */
#include "token_doubts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "format/foreign/foreign_name.h"
#include "shard_combine.h"

enum { PLACES = 8, PLACE_TOKENS = 512, SAMPLE = PLACES * PLACE_TOKENS, SHARDS = 4 };
enum { FEW = 64, ENOUGH = 256 };                           /* tokens: fewer say nothing; with this many, shares do */
enum { FREQUENT = 8, HALF_MOST = 15, ID_MOST = 0xffffff }; /* no vocabulary has larger ids, or high halves of 4 bytes */

/* Reads tokens from places all over a shard; places begin at multiples of 8 tokens. Returns how many. */
static uint64_t sample_read(const struct shard *shard, uint32_t *ids)
{
    const uint64_t tokens = shard->store.tokens, part = min64(tokens, PLACE_TOKENS);
    uint64_t count = 0;
    for (uint64_t i = 0; i < PLACES && count < tokens; i++, count += part)
        if (store_read(&shard->store, ((tokens - part) / (PLACES - 1) * i) & ~(uint64_t)7, part, 4, ids + count, NULL))
            return 0;
    return count;
}

static int compare_counts(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x < y) - (x > y);
}

/* Returns how many of the tokens have one of the most frequent values of a byte. Sorts the counters. */
static uint32_t frequent(uint32_t counts[256])
{
    uint32_t sum = 0;
    qsort(counts, 256, sizeof *counts, compare_counts);
    for (int i = 0; i < FREQUENT; i++)
        sum += counts[i];
    return sum;
}

/* Returns true for a character that is frequent in text. */
static bool is_letter(uint32_t code)
{
    return (code >= ' ' && code < 127) || code == '\n';
}

/* Returns what these tokens have that no text has, or NULL. */
static const char *doubt(const struct shard *shard, const uint32_t *ids, uint32_t count)
{
    const enum element element = shard->store.element;
    const uint32_t bytes = 1u << element_shift(element);
    const uint64_t vocabulary = shard->index.shard.vocabulary;
    uint32_t low[256] = {0}, high[256] = {0}, most[4] = {0}, largest = 0;
    uint32_t equal = 0, above = 0, large = 0, text = 0, wide = 0;
    for (uint32_t i = 0; i < count; i++) {
        low[ids[i] & 255]++;
        high[ids[i] >> 8 & 255]++;
        /* A high half in the other byte order has a low byte of 0. */
        const uint32_t half = bytes == 2 && !(ids[i] & 255) ? ids[i] >> 8 : ids[i];
        most[i % 4] = half > most[i % 4] ? half : most[i % 4];
        largest = ids[i] > largest ? ids[i] : largest;
        equal += ids[i] == ids[0];
        above += half > HALF_MOST;
        large += ids[i] > ID_MOST;
        text += is_letter(ids[i] & 255) && is_letter(ids[i] >> 8);
    }
    for (uint32_t i = 0; i < 4; i++)
        wide += most[i] > HALF_MOST;
    const uint32_t zero = low[0];
    if (equal == count)
        return "all tokens that were looked at have the same id";
    if (wide && wide <= 2 && largest > 255 && 8 * above > wide * count)
        return wide == 2 ? "every second token is below 16, as if the ids had twice as many bytes"
                         : "three of every four tokens are below 16, as if the ids had four times as many bytes";
    if (4 * large > count)
        return "many ids are above 16,777,215, which no vocabulary has";
    if (bytes == 2 && 10 * text > 9 * count)
        return "nine of ten tokens are two letters of a text, as if it had not been tokenized, or the ids had one byte";
    if (zero == count || (bytes == 2 && count >= ENOUGH && 5 * frequent(low) > 5 * frequent(high) + count))
        return "the low bytes of ids differ less than the high ones, as if their order were another, or the file's "
               "tokens began elsewhere";
    if (count >= ENOUGH && largest < 256 && vocabulary >= 4096 && vocabulary <= ID_MOST &&
        vocabulary != element_vocabulary(element))
        return "all ids that were looked at are below 256, of a vocabulary that has many more";
    return NULL;
}

bool token_doubts_add(struct tokmap_dataset *dataset)
{
    uint32_t ids[SAMPLE];
    const uint64_t shards = dataset->shard_count, looked_at = min64(shards, SHARDS);
    const struct shard *empty = NULL;
    for (uint64_t i = shards; i-- > 0;) {
        const struct shard *shard = dataset->slots[i].open;
        const char *ending = shard && !shard->store.tokens ? strrchr(shard->store.path, '.') : NULL;
        empty = ending && !strcmp(ending, ".ds") ? shard : empty;
    }
    if (empty &&
        !dataset_warning_add(dataset,
                             "%.300s has no tokens: with shuffle_chunk_size, datatrove leaves out what follows "
                             "the last whole chunk of each task, also if that is all of it; compare the "
                             "numbers of tokens with those of the texts",
                             empty->store.path))
        return false;
    for (uint64_t i = 0; i < looked_at; i++) {
        const struct shard *shard = dataset->slots[i * shards / looked_at].open;
        if (!shard || (!shard->foreign.close && !shard->index.store.offset))
            continue;
        const uint64_t count = sample_read(shard, ids);
        const char *what = count < FEW ? NULL : doubt(shard, ids, (uint32_t)count);
        if (what)
            return dataset_warning_add(dataset,
                                       "%.300s: %s; its tokens are read with %u bytes from byte %" PRIu64
                                       " on: check the words width and offset, and how the file was written",
                                       shard->store.path, what, 1u << element_shift(shard->store.element),
                                       shard->store.offset);
    }
    return true;
}
