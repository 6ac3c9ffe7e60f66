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

enum { PLACES = 8, PLACE_TOKENS = 512, SAMPLE = PLACES * PLACE_TOKENS, SHARDS = 4 };
enum { FEW = 64, FEW_KINDS = 16 };           /* tokens, and different ones: fewer say nothing */
enum { ENOUGH = 256, BUCKETS = 1024 };       /* tokens, of which shares say something, and a table of them */
enum { HALF_MOST = 15, ID_MOST = 0xffffff }; /* no vocabulary has larger ids, or larger high halves of 4 bytes */

/* Reads all tokens of a shard, or some from places all over it, which begin at multiples of 8 tokens and do not
 * overlap. Returns how many. */
static uint32_t sample_read(const struct shard *shard, uint32_t *ids)
{
    const uint64_t tokens = shard->store.tokens, part = tokens <= SAMPLE ? tokens : PLACE_TOKENS;
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

/* Returns a token, or, if it can be a high half whose bytes are swapped, that half. */
static uint32_t half_of(uint32_t id, bool two)
{
    return two && !(id & 255) ? id >> 8 : id;
}

/* Returns whether tokens depend on the small ones beside them as the halves of ids do: almost all of those are 0, or
 * tokens beside the same one are equal more often than others. A flag for each token, say, is not such a half. */
static bool are_halves(const uint32_t *ids, uint32_t count, const bool small[4], bool two)
{
    uint16_t of[HALF_MOST + 1][BUCKETS] = {{0}}, in[HALF_MOST + 1] = {0}, any[BUCKETS] = {0};
    uint64_t same = 0, same_of = 0, all = 0, tokens = 0; /* pairs that are equal, of how many; of any tokens */
    for (uint32_t i = 0; i < (count & ~1u); i++) {
        const uint32_t beside = half_of(ids[i ^ 1], two), bucket = ids[i] * 2654435761u / (UINT32_MAX / BUCKETS + 1);
        if (small[i % 4])
            continue;
        same += of[beside][bucket]++;
        same_of += in[beside]++;
        all += any[bucket]++;
        tokens++;
    }
    const uint64_t others_of = tokens * (tokens - 1) / 2 - same_of;
    return 8 * in[0] >= 7 * tokens || (tokens >= ENOUGH && same * others_of > 2 * (all - same) * same_of);
}

/* Returns what these tokens have that no text has, or NULL. */
static const char *doubt(const struct shard *shard, const uint32_t *ids, uint32_t count)
{
    const bool two = element_shift(shard->store.element) == 1;
    uint32_t low[256] = {0}, high[256] = {0}, kinds[256] = {0}, most[4] = {0};
    uint32_t different = 0, above = 0, large = 0, glued = 0, text = 0, wide = 0;
    uint64_t lows = 0, highs = 0; /* pairs of tokens with the same byte */
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t half = half_of(ids[i], two);
        different += !kinds[ids[i] * 2654435761u >> 24]++;
        lows += low[ids[i] & 255]++;
        highs += high[ids[i] >> 8 & 255]++;
        most[i % 4] = half > most[i % 4] ? half : most[i % 4];
        above += half > 255;
        large += ids[i] > ID_MOST;
        glued += ids[i] >> 16 && !(ids[i] >> 8 & 255) && i && ids[i] != ids[i - 1];
        text += is_letter(ids[i] & 255) && is_letter(ids[i] >> 8);
    }
    const bool small[4] = {most[0] <= HALF_MOST, most[1] <= HALF_MOST, most[2] <= HALF_MOST, most[3] <= HALF_MOST};
    for (uint32_t i = 0; i < 4; i++)
        wide += !small[i];
    if (different < FEW_KINDS)
        return NULL;
    if ((wide == 1 || (wide == 2 && small[0] == small[2])) && 16 * above > wide * count &&
        are_halves(ids, count, small, two))
        return wide == 2 ? "every second token is below 16, as if the ids had twice as many bytes"
                         : "three of every four tokens are below 16, as if the ids had four times as many bytes";
    if (4 * large > count)
        return "many ids are above 16,777,215, which no vocabulary has";
    if (4 * glued > count)
        return "many ids are two numbers below 256 with a byte of 0 between them, as if the ids had half as many bytes";
    if (two && 10 * text > 9 * count)
        return "nine of ten tokens are two letters of a text, as if it had not been tokenized, or the ids had one byte";
    if (low[0] == count || (two && count >= ENOUGH && 2 * lows > 3 * highs))
        return "the low bytes of ids differ less than the high ones, as if their order were another, or the file's "
               "tokens began elsewhere";
    return NULL;
}

bool token_doubts_add(struct tokmap_dataset *dataset)
{
    uint32_t ids[SAMPLE];
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
