/* SPDX-License-Identifier: MIT */
/*
 * train_pieces.c - see train_pieces.h.
 *
 * A table has two parts, which are hash tables with linear probing. A piece of up to 15 bytes is its own key, as in the
 * encoder's piece cache. Longer pieces are compared by hash and text. The slot of a piece is determined by the highest
 * bits of its hash, and the shared table is divided into 64 shards by the 6 highest bits, each with its own mutex.
 *
 * So when a thread flushes its table from front to back, it visits the shards in order and each shard from front to
 * back: it locks each mutex about once, and memory is accessed almost sequentially. A shared table without that order
 * would cost a cache miss and a lock per piece.
 *
 * Hashes have a key, which all tables of a training share: words of a text cannot be chosen to collide. The key decides
 * in which order the pieces leave the table, on which nothing depends that is written (see train_merges.c).
 */
#include "train_pieces.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "platform/os.h"
#include "platform/table_key.h"

#define SHARD_BITS 6
#define SHARDS (1u << SHARD_BITS)
#define SHARD_START_BITS 8             /* a shard begins with 2^8 slots per part */
#define LOCAL_SHORT_BITS 16            /* a thread's table has 2^16 slots for short pieces, ... */
#define LOCAL_LONG_BITS 14             /* ... 2^14 for long pieces, ... */
#define LOCAL_TEXT ((uint64_t)2 << 20) /* ... and 2 MiB for their text */

struct short_piece {
    struct bpe_key key;
    uint64_t times; /* 0: the slot is empty */
};

struct long_piece {
    uint64_t hash;
    uint64_t times;
    uint64_t offset, bytes; /* of the piece in the table's text */
};

struct piece_table {
    struct short_piece *shorts;
    struct long_piece *longs;
    uint8_t *text;
    uint64_t short_count, long_count, text_count, text_room;
    struct table_key key; /* of the hashes */
    uint64_t passed;      /* slots that additions have passed over */
    uint32_t short_bits, long_bits;
    uint32_t shift; /* number of highest bits of the hash that all pieces of the table share */
};

struct train_shard {
    struct os_mutex *mutex;
    struct piece_table table;
    uint64_t bytes; /* sum of the sizes of its pieces */
};

struct train_pieces {
    struct train_budget *budget;
    struct table_key key;
    struct train_shard shards[SHARDS];
    struct os_mutex *mutex; /* guards the totals */
    uint64_t pieces, text, passed;
};

struct train_counter {
    struct train_pieces *pieces;
    struct piece_table table;
    uint64_t seen, text; /* pieces and bytes that are not in the totals yet */
    struct scanner scanner;
    struct scan_chunk chunk;
};

/* ---- memory ---- */

enum tokmap_status train_budget_reserve(struct train_budget *budget, uint64_t bytes, struct tokmap_error *error)
{
    const uint64_t used = __atomic_add_fetch(&budget->used, bytes, __ATOMIC_RELAXED);
    if (used <= budget->limit)
        return TOKMAP_OK;
    __atomic_sub_fetch(&budget->used, bytes, __ATOMIC_RELAXED);
    return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                     "the distinct pieces of this text need more memory than the %" PRIu64
                     " bytes that training may use; "
                     "raise --max-memory, or train on a part of the text",
                     budget->limit);
}

void train_budget_release(struct train_budget *budget, uint64_t bytes)
{
    const uint64_t used = __atomic_fetch_sub(&budget->used, bytes, __ATOMIC_RELAXED);
    assert(used >= bytes);
    (void)used;
}

static uint64_t table_bytes(const struct piece_table *table)
{
    return ((uint64_t)sizeof *table->shorts << table->short_bits) +
           ((uint64_t)sizeof *table->longs << table->long_bits) + table->text_room;
}

static bool table_make(struct piece_table *table, struct table_key key, uint32_t short_bits, uint32_t long_bits,
                       uint64_t text, uint32_t shift)
{
    memset(table, 0, sizeof *table);
    table->key = key;
    table->short_bits = short_bits;
    table->long_bits = long_bits;
    table->text_room = text;
    table->shift = shift;
    table->shorts = calloc((size_t)1 << short_bits, sizeof *table->shorts);
    table->longs = calloc((size_t)1 << long_bits, sizeof *table->longs);
    table->text = malloc((size_t)text);
    return table->shorts && table->longs && table->text;
}

static void table_free(struct piece_table *table)
{
    free(table->shorts);
    free(table->longs);
    free(table->text);
    memset(table, 0, sizeof *table);
}

/* ---- tables ---- */

static inline uint64_t short_hash(const struct piece_table *table, struct bpe_key key)
{
    return table_mix(table->key, key.low, key.high);
}

static inline uint64_t slot_of(uint64_t hash, uint32_t shift, uint32_t bits)
{
    return hash << shift >> (64 - bits);
}

/* Counts a short piece. The table must have an empty slot. */
static inline void short_add(struct piece_table *table, struct bpe_key key, uint64_t hash, uint64_t times)
{
    const uint64_t mask = ((uint64_t)1 << table->short_bits) - 1;
    uint64_t slot = slot_of(hash, table->shift, table->short_bits);
    struct short_piece *piece = &table->shorts[slot];
    while (piece->times && (piece->key.low != key.low || piece->key.high != key.high)) {
        slot = (slot + 1) & mask;
        piece = &table->shorts[slot];
        table->passed++;
    }
    if (!piece->times) {
        piece->key = key;
        table->short_count++;
    }
    piece->times += times;
}

/* Returns the slot of a long piece, or the empty slot where it belongs. */
static struct long_piece *long_find(const struct piece_table *table, const uint8_t *bytes, uint64_t count,
                                    uint64_t hash)
{
    const uint64_t mask = ((uint64_t)1 << table->long_bits) - 1;
    for (uint64_t slot = slot_of(hash, table->shift, table->long_bits);; slot = (slot + 1) & mask) {
        struct long_piece *piece = &table->longs[slot];
        if (!piece->times || (piece->hash == hash && piece->bytes == count &&
                              !memcmp(table->text + piece->offset, bytes, (size_t)count)))
            return piece;
    }
}

/* Counts a long piece. The table must have an empty slot and room for its text. */
static void long_add(struct piece_table *table, const uint8_t *bytes, uint64_t count, uint64_t hash, uint64_t times)
{
    struct long_piece *piece = long_find(table, bytes, count, hash);
    table->passed += ((uint64_t)(piece - table->longs) - slot_of(hash, table->shift, table->long_bits)) &
                     (((uint64_t)1 << table->long_bits) - 1);
    if (!piece->times) {
        assert(table->text_room - table->text_count >= count);
        memcpy(table->text + table->text_count, bytes, (size_t)count);
        *piece = (struct long_piece){hash, 0, table->text_count, count};
        table->text_count += count;
        table->long_count++;
    }
    piece->times += times;
}

/* ---- growing: only shards do ---- */

static enum tokmap_status shorts_grow(struct piece_table *table, struct train_budget *budget,
                                      struct tokmap_error *error)
{
    struct piece_table grown = *table;
    grown.short_bits++;
    grown.short_count = 0;
    const uint64_t bytes = (uint64_t)sizeof *grown.shorts << grown.short_bits;
    const enum tokmap_status status = train_budget_reserve(budget, bytes, error);
    if (status)
        return status;
    grown.shorts = calloc((size_t)1 << grown.short_bits, sizeof *grown.shorts);
    if (!grown.shorts) {
        train_budget_release(budget, bytes);
        return error_set_memory(error, "the distinct pieces of the text", bytes);
    }
    for (uint64_t i = 0; i < (uint64_t)1 << table->short_bits; i++)
        if (table->shorts[i].times)
            short_add(&grown, table->shorts[i].key, short_hash(table, table->shorts[i].key), table->shorts[i].times);
    free(table->shorts);
    train_budget_release(budget, bytes / 2);
    *table = grown;
    return TOKMAP_OK;
}

static enum tokmap_status longs_grow(struct piece_table *table, struct train_budget *budget, struct tokmap_error *error)
{
    const uint32_t bits = table->long_bits + 1;
    const uint64_t bytes = (uint64_t)sizeof *table->longs << bits, mask = ((uint64_t)1 << bits) - 1;
    const enum tokmap_status status = train_budget_reserve(budget, bytes, error);
    if (status)
        return status;
    struct long_piece *grown = calloc((size_t)1 << bits, sizeof *grown);
    if (!grown) {
        train_budget_release(budget, bytes);
        return error_set_memory(error, "the distinct pieces of the text", bytes);
    }
    for (uint64_t i = 0; i < (uint64_t)1 << table->long_bits; i++) {
        if (!table->longs[i].times)
            continue;
        uint64_t slot = slot_of(table->longs[i].hash, table->shift, bits);
        while (grown[slot].times)
            slot = (slot + 1) & mask;
        grown[slot] = table->longs[i];
    }
    free(table->longs);
    train_budget_release(budget, bytes / 2);
    table->longs = grown;
    table->long_bits = bits;
    return TOKMAP_OK;
}

static enum tokmap_status text_grow(struct piece_table *table, uint64_t more, struct train_budget *budget,
                                    struct tokmap_error *error)
{
    const uint64_t wanted = table->text_count + more + table->text_room / 2;
    const enum tokmap_status status = train_budget_reserve(budget, wanted - table->text_room, error);
    if (status)
        return status;
    uint8_t *grown = realloc(table->text, (size_t)wanted);
    if (!grown) {
        train_budget_release(budget, wanted - table->text_room);
        return error_set_memory(error, "the distinct pieces of the text", wanted);
    }
    table->text = grown;
    table->text_room = wanted;
    return TOKMAP_OK;
}

/* Tables are filled to at most three quarters, so that a search usually needs one or two cache lines. */
static inline bool is_full(uint64_t count, uint32_t bits)
{
    return count >= ((uint64_t)3 << bits) / 4;
}

/* Adds a piece to a shard, whose mutex the caller holds. */
static enum tokmap_status shard_add_short(struct train_pieces *pieces, struct train_shard *shard,
                                          const struct short_piece *piece, uint64_t hash, struct tokmap_error *error)
{
    struct piece_table *table = &shard->table;
    if (is_full(table->short_count, table->short_bits)) {
        const enum tokmap_status status = shorts_grow(table, pieces->budget, error);
        if (status)
            return status;
    }
    const uint64_t before = table->short_count;
    short_add(table, piece->key, hash, piece->times);
    if (table->short_count != before)
        shard->bytes += piece->key.high >> 56;
    return TOKMAP_OK;
}

/* Adds a piece to a shard, whose mutex the caller holds. */
static enum tokmap_status shard_add_long(struct train_pieces *pieces, struct train_shard *shard, const uint8_t *bytes,
                                         uint64_t count, uint64_t hash, uint64_t times, struct tokmap_error *error)
{
    struct piece_table *table = &shard->table;
    enum tokmap_status status = TOKMAP_OK;
    struct long_piece *piece = long_find(table, bytes, count, hash);
    if (piece->times) {
        piece->times += times;
        return TOKMAP_OK;
    }
    if (is_full(table->long_count, table->long_bits))
        status = longs_grow(table, pieces->budget, error);
    if (!status && table->text_room - table->text_count < count)
        status = text_grow(table, count, pieces->budget, error);
    if (!status) {
        long_add(table, bytes, count, hash, times);
        shard->bytes += count;
    }
    return status;
}

/* ---- all threads ---- */

enum tokmap_status train_pieces_new(struct train_pieces **pieces, struct train_budget *budget,
                                    struct tokmap_error *error)
{
    *pieces = calloc(1, sizeof **pieces);
    if (!*pieces)
        return error_set_memory(error, "the table of pieces", sizeof **pieces);
    (*pieces)->budget = budget;
    (*pieces)->key = table_key_new();
    enum tokmap_status status = TOKMAP_OK;
    for (uint32_t i = 0; i < SHARDS && !status; i++) {
        struct train_shard *shard = &(*pieces)->shards[i];
        if (os_mutex_new(&shard->mutex) || !table_make(&shard->table, (*pieces)->key, SHARD_START_BITS,
                                                       SHARD_START_BITS, (uint64_t)1 << SHARD_START_BITS, SHARD_BITS)) {
            table_free(&shard->table);
            status = error_set_memory(error, "the table of pieces", 0);
        } else {
            status = train_budget_reserve(budget, table_bytes(&shard->table), error);
            if (status)
                table_free(&shard->table);
        }
    }
    if (!status && os_mutex_new(&(*pieces)->mutex))
        status = error_set_memory(error, "the table of pieces", 0);
    if (status) {
        train_pieces_free(*pieces);
        *pieces = NULL;
    }
    return status;
}

void train_pieces_free(struct train_pieces *pieces)
{
    if (!pieces)
        return;
    for (uint32_t i = 0; i < SHARDS; i++) {
        if (pieces->shards[i].table.shorts)
            train_budget_release(pieces->budget, table_bytes(&pieces->shards[i].table));
        table_free(&pieces->shards[i].table);
        os_mutex_free(pieces->shards[i].mutex);
    }
    os_mutex_free(pieces->mutex);
    free(pieces);
}

void train_pieces_totals(const struct train_pieces *pieces, struct train_totals *totals)
{
    *totals = (struct train_totals){0, 0, pieces->pieces, pieces->text, pieces->passed};
    for (uint32_t i = 0; i < SHARDS; i++) {
        totals->distinct += pieces->shards[i].table.short_count + pieces->shards[i].table.long_count;
        totals->bytes += pieces->shards[i].bytes;
        totals->passed += pieces->shards[i].table.passed;
    }
}

static void table_each(const struct piece_table *table,
                       void (*each)(void *user, const uint8_t *bytes, uint64_t count, uint64_t times), void *user)
{
    for (uint64_t i = 0; i < (uint64_t)1 << table->short_bits; i++) {
        const struct short_piece *piece = &table->shorts[i];
        if (piece->times)
            each(user, (const uint8_t *)&piece->key, piece->key.high >> 56, piece->times);
    }
    for (uint64_t i = 0; i < (uint64_t)1 << table->long_bits; i++) {
        const struct long_piece *piece = &table->longs[i];
        if (piece->times)
            each(user, table->text + piece->offset, piece->bytes, piece->times);
    }
}

void train_pieces_drain(struct train_pieces *pieces,
                        void (*each)(void *user, const uint8_t *bytes, uint64_t count, uint64_t times), void *user)
{
    for (uint32_t s = 0; s < SHARDS; s++) {
        struct piece_table *table = &pieces->shards[s].table;
        if (!table->shorts)
            continue;
        table_each(table, each, user);
        train_budget_release(pieces->budget, table_bytes(table));
        table_free(table);
    }
}

/* ---- one thread ---- */

enum tokmap_status train_counter_new(struct train_counter **counter, struct train_pieces *pieces,
                                     const struct split_rules *rules, struct tokmap_error *error)
{
    struct train_counter *made = calloc(1, sizeof *made);
    *counter = NULL;
    if (!made || !table_make(&made->table, pieces->key, LOCAL_SHORT_BITS, LOCAL_LONG_BITS, LOCAL_TEXT, 0)) {
        if (made)
            table_free(&made->table);
        free(made);
        return error_set_memory(error, "a thread's table of pieces", LOCAL_TEXT);
    }
    made->pieces = pieces;
    scanner_init(&made->scanner, rules, cpu_variant_best());
    const enum tokmap_status status = train_budget_reserve(pieces->budget, table_bytes(&made->table), error);
    if (status) {
        table_free(&made->table);
        free(made);
        return status;
    }
    *counter = made;
    return TOKMAP_OK;
}

void train_counter_free(struct train_counter *counter)
{
    if (!counter)
        return;
    train_budget_release(counter->pieces->budget, table_bytes(&counter->table));
    table_free(&counter->table);
    free(counter);
}

/* Returns the shard of a hash, locked. If `held` is another shard, it is unlocked. */
static struct train_shard *shard_lock(struct train_pieces *pieces, struct train_shard *held, uint64_t hash)
{
    struct train_shard *wanted = &pieces->shards[hash >> (64 - SHARD_BITS)];
    if (wanted == held)
        return held;
    if (held)
        os_mutex_unlock(held->mutex);
    os_mutex_lock(wanted->mutex);
    return wanted;
}

/* Moves the short pieces of a thread's table to the shared table. */
static enum tokmap_status shorts_flush(struct train_counter *counter, struct tokmap_error *error)
{
    struct piece_table *table = &counter->table;
    struct train_shard *shard = NULL;
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t i = 0; i < (uint64_t)1 << table->short_bits && !status; i++) {
        const struct short_piece *piece = &table->shorts[i];
        if (!piece->times)
            continue;
        const uint64_t hash = short_hash(table, piece->key);
        shard = shard_lock(counter->pieces, shard, hash);
        status = shard_add_short(counter->pieces, shard, piece, hash, error);
    }
    if (shard)
        os_mutex_unlock(shard->mutex);
    memset(table->shorts, 0, sizeof *table->shorts << table->short_bits);
    table->short_count = 0;
    return status;
}

/* Moves the long pieces of a thread's table to the shared table. */
static enum tokmap_status longs_flush(struct train_counter *counter, struct tokmap_error *error)
{
    struct piece_table *table = &counter->table;
    struct train_shard *shard = NULL;
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t i = 0; i < (uint64_t)1 << table->long_bits && !status; i++) {
        const struct long_piece *piece = &table->longs[i];
        if (!piece->times)
            continue;
        shard = shard_lock(counter->pieces, shard, piece->hash);
        status = shard_add_long(counter->pieces, shard, table->text + piece->offset, piece->bytes, piece->hash,
                                piece->times, error);
    }
    if (shard)
        os_mutex_unlock(shard->mutex);
    memset(table->longs, 0, sizeof *table->longs << table->long_bits);
    table->long_count = table->text_count = 0;
    return status;
}

enum tokmap_status train_counter_finish(struct train_counter *counter, struct tokmap_error *error)
{
    struct train_pieces *pieces = counter->pieces;
    enum tokmap_status status = shorts_flush(counter, error);
    if (!status)
        status = longs_flush(counter, error);
    os_mutex_lock(pieces->mutex);
    pieces->pieces += counter->seen;
    pieces->text += counter->text;
    pieces->passed += counter->table.passed;
    os_mutex_unlock(pieces->mutex);
    counter->seen = counter->text = counter->table.passed = 0;
    return status;
}

/* Counts a piece of more than 15 bytes. A very long piece goes directly to its shard. */
static enum tokmap_status count_long(struct train_counter *counter, const uint8_t *bytes, uint64_t count,
                                     struct tokmap_error *error)
{
    struct piece_table *table = &counter->table;
    enum tokmap_status status = TOKMAP_OK;
    const uint64_t hash = table_hash(table->key, bytes, (size_t)count);
    if (count > LOCAL_TEXT / 16) {
        struct train_shard *shard = shard_lock(counter->pieces, NULL, hash);
        status = shard_add_long(counter->pieces, shard, bytes, count, hash, 1, error);
        os_mutex_unlock(shard->mutex);
        return status;
    }
    if (is_full(table->long_count, table->long_bits) || LOCAL_TEXT - table->text_count < count)
        status = longs_flush(counter, error);
    if (!status)
        long_add(table, bytes, count, hash, 1);
    return status;
}

/* Like bpe_key_of(), but with two loads if 16 bytes are readable. count: 1 to 15. */
static inline struct bpe_key key_at(const uint8_t *bytes, uint64_t count, uint64_t readable)
{
    if (readable < 16)
        return bpe_key_of(bytes, (uint32_t)count);
    const uint64_t low = count < 8 ? ((uint64_t)1 << 8 * count) - 1 : ~(uint64_t)0;
    const uint64_t high = count < 8 ? 0 : ((uint64_t)1 << 8 * (count - 8)) - 1;
    return (struct bpe_key){load64(bytes) & low, (load64(bytes + 8) & high) | count << 56};
}

/* Counts a piece, of which `readable` bytes can be read. */
static inline enum tokmap_status count_piece(struct train_counter *counter, const uint8_t *piece, uint64_t bytes,
                                             uint64_t readable, struct tokmap_error *error)
{
    struct piece_table *table = &counter->table;
    if (bytes > 15)
        return count_long(counter, piece, bytes, error);
    if (is_full(table->short_count, table->short_bits)) {
        const enum tokmap_status status = shorts_flush(counter, error);
        if (status)
            return status;
    }
    const struct bpe_key key = key_at(piece, bytes, readable);
    short_add(table, key, short_hash(table, key), 1);
    return TOKMAP_OK;
}

enum tokmap_status train_counter_text(struct train_counter *counter, const uint8_t *text, uint64_t count,
                                      struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    counter->text += count;
    for (uint64_t at = 0; at < count && !status;) {
        const uint64_t done = scan_chunk(&counter->scanner, &counter->chunk, text + at, (size_t)(count - at));
        uint64_t *starts = counter->chunk.starts;
        const uint64_t words = done > SCAN_BYTES ? 1 : (done + 63) / 64;
        uint64_t from = 0;
        starts[0] &=
            ~(uint64_t)1; /* each start is the end of the preceding piece, and the last piece ends with the chunk */
        for (uint64_t word = 0, bits = starts[0]; !status;) {
            while (!bits && ++word < words)
                bits = starts[word];
            const uint64_t end = bits ? 64 * word + (uint64_t)__builtin_ctzll(bits) : done;
            const uint64_t bytes = end - from;
            const uint8_t *piece = text + at + from;
            counter->seen++;
            if (bytes > 1)
                status = count_piece(counter, piece, bytes, count - at - from, error);
            if (!bits)
                break;
            bits &= bits - 1;
            from = end;
        }
        at += done;
    }
    return status;
}
