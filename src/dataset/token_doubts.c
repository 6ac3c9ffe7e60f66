/* SPDX-License-Identifier: MIT */
/*
 * token_doubts.c - see token_doubts.h.
 *
 * A wrong width gives tokens, too: the ids 5, 70, 261 in 4 bytes each, read as 2, are 5, 0, 70, 0, 261, 0. What is
 * looked for is what no text has. High bytes of ids are concentrated on few values, because frequent tokens are and the
 * vocabulary ends. So two tokens have more often the same high byte than the same low one: in 3,843 parts of 256 and
 * 4,096 tokens of true files at least 1.26 times as often, and with swapped bytes less than 1 / 1.26 times.
 */
#include "token_doubts.h"

#include <inttypes.h>
#include <string.h>

#include "common/bytes.h"
#include "shard_combine.h"
#include "text/path.h"

enum { PLACES = 8, PLACE_TOKENS = 512, SHARDS = 4 };
enum { FEW = 64, ENOUGH = 256 };             /* tokens: fewer say nothing; with this many, shares do */
enum { HALF_MOST = 15, ID_MOST = 0xffffff }; /* no vocabulary has larger ids, or larger high halves of 4 bytes */

/* Reads tokens from places all over a shard, which begin at multiples of 8 tokens. Returns how many. */
static uint32_t sample_read(const struct shard *shard, uint32_t *ids)
{
    const uint64_t tokens = shard->store.tokens, part = min64(tokens, PLACE_TOKENS);
    uint32_t count = 0;
    for (uint64_t i = 0; i < PLACES && count < tokens; i++, count += (uint32_t)part)
        if (store_read(&shard->store, ((tokens - part) / (PLACES - 1) * i) & ~(uint64_t)7, part, 4, ids + count, NULL))
            return 0;
    return count;
}

static bool is_letter(uint32_t code)
{
    return (code >= ' ' && code < 127) || code == '\n';
}

/* Returns what these tokens have that no text has, or NULL. */
static const char *doubt(const struct shard *shard, const uint32_t *ids, uint32_t count)
{
    const enum element element = shard->store.element;
    const uint64_t vocabulary = shard->index.shard.vocabulary;
    const bool two = element_shift(element) == 1;
    uint32_t low[256] = {0}, high[256] = {0}, most[4] = {0}, largest = 0, above = 0, large = 0, text = 0, wide = 0;
    uint64_t lows = 0, highs = 0; /* pairs of tokens with the same byte */
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t half = two && !(ids[i] & 255) ? ids[i] >> 8 : ids[i]; /* a high half whose bytes are swapped */
        lows += low[ids[i] & 255]++;
        highs += high[ids[i] >> 8 & 255]++;
        most[i % 4] = half > most[i % 4] ? half : most[i % 4];
        largest = ids[i] > largest ? ids[i] : largest;
        above += half > HALF_MOST;
        large += ids[i] > ID_MOST;
        text += is_letter(ids[i] & 255) && is_letter(ids[i] >> 8);
    }
    for (uint32_t i = 0; i < 4; i++)
        wide += most[i] > HALF_MOST;
    if (low[ids[0] & 255] == count && largest == ids[0])
        return "all tokens that were looked at have the same id";
    if (wide && wide <= 2 && largest > 255 && 8 * above > wide * count)
        return wide == 2 ? "every second token is below 16, as if the ids had twice as many bytes"
                         : "three of every four tokens are below 16, as if the ids had four times as many bytes";
    if (4 * large > count)
        return "many ids are above 16,777,215, which no vocabulary has";
    if (two && 10 * text > 9 * count)
        return "nine of ten tokens are two letters of a text, as if it had not been tokenized, or the ids had one byte";
    if (low[0] == count || (two && count >= ENOUGH && 2 * lows > 3 * highs))
        return "the low bytes of ids differ less than the high ones, as if their order were another, or the file's "
               "tokens began elsewhere";
    if (count >= ENOUGH && largest < 256 && vocabulary >= 4096 && vocabulary <= ID_MOST &&
        vocabulary != element_vocabulary(element))
        return "all ids that were looked at are below 256, of a vocabulary that has many more";
    return NULL;
}

bool token_doubts_add(struct tokmap_dataset *dataset)
{
    uint32_t ids[PLACES * PLACE_TOKENS];
    const uint64_t shards = dataset->shard_count, looked_at = min64(shards, SHARDS);
    const char *path = NULL;
    for (uint64_t i = 0; i < shards && !path; i++) {
        const struct shard *shard = dataset->slots[i].open;
        if (shard && !shard->store.tokens && path_ends_in(shard->store.path, strlen(shard->store.path), ".ds"))
            path = shard->store.path;
    }
    if (path && !dataset_warning_add(dataset,
                                     "%.300s has no tokens: with shuffle_chunk_size, datatrove leaves out what follows "
                                     "the last whole chunk of each task, also if that is all of it; compare the "
                                     "numbers of tokens with those of the texts",
                                     path))
        return false;
    for (uint64_t i = 0; i < looked_at; i++) {
        const struct shard *shard = dataset->slots[i * shards / looked_at].open;
        if (!shard || (!shard->foreign.close && !shard->index.store.offset))
            continue;
        const uint32_t count = sample_read(shard, ids);
        const char *what = count < FEW ? NULL : doubt(shard, ids, count);
        if (what)
            return dataset_warning_add(dataset,
                                       "%.300s: %s; its tokens are read with %u bytes from byte %" PRIu64
                                       " on: check the words width and offset, and how the file was written",
                                       shard->store.path, what, 1u << element_shift(shard->store.element),
                                       shard->store.offset);
    }
    return true;
}
