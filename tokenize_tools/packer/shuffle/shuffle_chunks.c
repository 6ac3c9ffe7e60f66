/* SPDX-License-Identifier: MIT */
/*
 * shuffle_chunks.c - see shuffle_chunks.h.
 *
 * Sort. Keys are hashes, so their high bits are uniform: entries are distributed into buckets by these bits, about
 * eight entries each, and each bucket is sorted for itself. This takes a fifth of the time of a general sort. The
 * memory of a chunk of n records, from its end:
 *
 *     [ records ... | free | scratch, 16 n bytes | entries, 16 n bytes ]
 *
 * The entries grow towards the front, and the chunk is full when records, entries, and scratch would meet. Example: in
 * a chunk of 96 MiB, documents of 12 tokens of 2 bytes have records of 80 bytes and 32 bytes for sorting, so it is full
 * with 898,779 of them.
 *
 * With a thread of its own, the full memory is cut in the middle, once: the records that begin in the first half become
 * a chunk, which the caller writes, and the others a chunk that the thread writes. From then on each half is like the
 * picture above, and is written by the thread while the other one is filled. Example: of 96 MiB, records from byte
 * 50,331,640 on belong to the first half, though they end in the second one, whose records are written before that part
 * of the memory is used again.
 */
#include "shuffle_chunks.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "order/permutation.h"
#include "platform/os.h"

#define BUCKETS_MOST ((uint64_t)1 << 20)
#define BUCKET_USUAL 8
#define WRITE_BYTES ((size_t)1 << 20)
#define AHEAD 8 /* records are anywhere in memory: each one is asked for before it is copied */
#define KEYS 8192
#define APART_LEAST ((uint64_t)64 << 10) /* of the memory: a thread for a smaller chunk costs more than it saves */
#define FILE_MOST ((uint64_t)1 << 40)    /* of one unnamed file: file systems limit the size of a file */

#define PAYLOAD_MOST ((uint64_t)1 << 62)

struct shuffle_place shuffle_place_of(uint64_t seed, uint64_t input, uint64_t position)
{
    char name[8];
    store64(name, input);
    const struct order_key key = order_key(KEY_DOCUMENT, seed, name, sizeof name, position);
    return (struct shuffle_place){key.high, key.low, input, position};
}

void shuffle_record_seal(uint8_t *record)
{
    const uint32_t bytes = load32(record + 8);
    store64(record, hash64(record + 8, bytes - 8));
}

bool shuffle_record_sound(const uint8_t *record, const struct shuffle_head *head)
{
    return head->hash == hash64(record + 8, head->bytes - 8);
}

bool shuffle_payload_bytes(uint64_t tokens, uint32_t width, bool mask, uint64_t *bytes)
{
    if (tokens > PAYLOAD_MOST / 8)
        return false;
    *bytes = tokens * width + (mask ? div_ceil(tokens, 8) : 0);
    return true;
}

bool shuffle_payload_cut(const uint8_t *payload, uint64_t bytes, uint64_t tokens, uint32_t width, bool mask,
                         uint32_t columns, struct shuffle_payload *cut)
{
    uint64_t used;
    if (!shuffle_payload_bytes(tokens, width, mask, &used) || used > bytes || (bytes - used) / 8 < columns)
        return false;
    cut->tokens = payload;
    cut->mask = payload + tokens * width;
    cut->lengths = payload + used;
    used += (uint64_t)8 * columns;
    cut->values = payload + used;
    for (uint32_t c = 0; c < columns; c++) {
        const uint64_t length = load64(cut->lengths + (uint64_t)8 * c);
        if (length > bytes - used)
            return false;
        used += length;
    }
    return used == bytes;
}

enum tokmap_status shuffle_chunks_init(struct shuffle_chunks *chunks, uint64_t seed, uint64_t chunk_bytes,
                                       const char *folder, struct tokmap_error *error)
{
    assert(chunk_bytes >= SHUFFLE_CHUNK_LEAST && chunk_bytes % 8 == 0);
    void *memory = NULL;
    memset(chunks, 0, sizeof *chunks);
    chunks->seed = seed;
    chunks->folder = folder;
    chunks->chunk_bytes = chunks->end = chunk_bytes;
    chunks->record_most = round_down(min64(chunk_bytes / 8, SHUFFLE_RECORD_MOST), 8);
    chunks->fd = -1;
    chunks->counts = malloc((BUCKETS_MOST + 1) * sizeof *chunks->counts);
    /* Small pages, because a virtual machine may ask its host for each huge one. Shuffling took 1.35 times as long with
     * huge pages, on two processors of an Intel Xeon. */
    if (!chunks->counts || os_memory_new(chunk_bytes, false, &memory))
        return error_set_memory(error, "the documents to shuffle", chunk_bytes);
    chunks->bytes = memory;
    return TOKMAP_OK;
}

static void memory_free(struct shuffle_chunks *chunks)
{
    os_memory_free(chunks->bytes, chunks->chunk_bytes);
    free(chunks->counts);
    chunks->bytes = NULL;
    chunks->counts = NULL;
}

void shuffle_chunks_free(struct shuffle_chunks *chunks)
{
    int last = -1;
    os_thread_join(chunks->writing.thread);
    for (uint64_t i = 0; i < chunks->chunk_count; i++) {
        if (chunks->chunks[i].fd != last)
            os_close(chunks->chunks[i].fd);
        last = chunks->chunks[i].fd;
    }
    if (chunks->fd != last)
        os_close(chunks->fd);
    free(chunks->chunks);
    memory_free(chunks);
    memset(chunks, 0, sizeof *chunks);
    chunks->fd = -1;
}

/* ---- sort ---- */

static struct shuffle_entry *entries_of(const struct shuffle_chunks *chunks)
{
    return (struct shuffle_entry *)(void *)(chunks->bytes + chunks->end) - chunks->entries;
}

static struct shuffle_place place_at(const struct shuffle_chunks *chunks, const struct shuffle_entry *entry)
{
    struct shuffle_head head;
    memcpy(&head, chunks->bytes + entry->at, sizeof head);
    return shuffle_place_of(chunks->seed, head.input, head.position);
}

static bool precedes(const struct shuffle_chunks *chunks, const struct shuffle_entry *a, const struct shuffle_entry *b)
{
    if (a->high != b->high)
        return a->high < b->high;
    const struct shuffle_place first = place_at(chunks, a), second = place_at(chunks, b);
    return shuffle_precedes(&first, &second);
}

/* Sorts a bucket: a Shell sort, which for the usual bucket is nearly an insertion sort, and which stays below n^2 steps
 * if someone has found inputs with similar keys. */
static void bucket_sort(const struct shuffle_chunks *chunks, struct shuffle_entry *entries, uint64_t count)
{
    uint64_t gap = 1;
    while (gap < count / 9)
        gap = 3 * gap + 1;
    for (; gap; gap /= 3)
        for (uint64_t i = gap; i < count; i++) {
            const struct shuffle_entry moved = entries[i];
            uint64_t k = i;
            for (; k >= gap && precedes(chunks, &moved, &entries[k - gap]); k -= gap)
                entries[k] = entries[k - gap];
            entries[k] = moved;
        }
}

/* Sorts entries. They end where they have been. scratch: memory for as many. */
static void entries_sort(const struct shuffle_chunks *chunks, struct shuffle_entry *entries, uint64_t count,
                         struct shuffle_entry *scratch)
{
    uint64_t buckets = 1, shift = 64;
    while (buckets < BUCKETS_MOST && buckets * BUCKET_USUAL < count) {
        buckets *= 2;
        shift--;
    }
    uint32_t *ends = chunks->counts;
    memset(ends, 0, buckets * sizeof *ends);
    if (shift == 64) {
        bucket_sort(chunks, entries, count);
        return;
    }
    for (uint64_t i = 0; i < count; i++)
        ends[entries[i].high >> shift]++;
    uint32_t sum = 0;
    for (uint64_t b = 0; b < buckets; b++) {
        const uint32_t more = ends[b];
        ends[b] = sum;
        sum += more;
    }
    for (uint64_t i = 0; i < count; i++)
        scratch[ends[entries[i].high >> shift]++] = entries[i];
    for (uint64_t b = 0, begin = 0; b < buckets; begin = ends[b++])
        bucket_sort(chunks, scratch + begin, ends[b] - begin);
    memcpy(entries, scratch, count * sizeof *entries);
}

/* ---- write ---- */

enum tokmap_status shuffle_file_failed(const char *folder, int system, struct tokmap_error *error)
{
    const bool full = system == ENOSPC || system == EDQUOT;
    return error_set_system(error, system, folder, TOKMAP_NO_OFFSET,
                            "the documents to shuffle cannot be written to a temporary file in this folder%s",
                            full ? "; until the end the shuffle needs about as much space as the tokens, besides their "
                                   "own"
                                 : "");
}

enum tokmap_status shuffle_file_unnamed(const char *folder, int *fd, struct tokmap_error *error)
{
    const int system = os_open(folder, OS_WRITE_UNNAMED, fd);
    if (system)
        *fd = -1;
    return system ? shuffle_file_failed(folder, system, error) : TOKMAP_OK;
}

enum tokmap_status shuffle_file_append(const char *folder, int fd, uint64_t *file_bytes, const void *bytes,
                                       uint64_t count, struct tokmap_error *error)
{
    const int system = os_pwrite(fd, bytes, (size_t)count, *file_bytes);
    if (system)
        return shuffle_file_failed(folder, system, error);
    *file_bytes += count;
    return TOKMAP_OK;
}

/* Returns true if a record belongs to a chunk of `set`; all do in a chunk of all sets. */
static bool is_of(const struct shuffle_chunks *chunks, const uint8_t *record, uint32_t set)
{
    return !chunks->sets || (load32(record + offsetof(struct shuffle_head, set)) & ~SHUFFLE_LONG) == set;
}

/* Writes the sorted records of a set to the file, from where it ends. */
static enum tokmap_status records_write(struct shuffle_chunks *chunks, const struct shuffle_entry *entries,
                                        uint64_t count, uint32_t set, struct tokmap_error *error)
{
    const size_t room = (size_t)max64(WRITE_BYTES, chunks->record_most);
    uint8_t *buffer = malloc(room);
    uint64_t filled = 0;
    enum tokmap_status status = buffer ? TOKMAP_OK : error_set_memory(error, "a chunk of documents", room);
    for (uint64_t i = 0; i < count && !status; i++) {
        if (i + AHEAD < count)
            __builtin_prefetch(chunks->bytes + entries[i + AHEAD].at);
        const uint8_t *record = chunks->bytes + entries[i].at;
        const uint32_t bytes = load32(record + 8);
        if (!is_of(chunks, record, set))
            continue;
        if (room - filled < bytes) {
            status = shuffle_file_append(chunks->folder, chunks->fd, &chunks->file_bytes, buffer, filled, error);
            filled = 0;
        }
        memcpy(buffer + filled, record, bytes);
        filled += bytes;
    }
    if (!status)
        status = shuffle_file_append(chunks->folder, chunks->fd, &chunks->file_bytes, buffer, filled, error);
    free(buffer);
    return status;
}

uint64_t shuffle_keys_hash(uint64_t before, const struct shuffle_key *keys, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        before = hash64_seeded(&keys[i], sizeof keys[i], before);
    return before;
}

/* Writes the keys of the same documents, and describes them. */
static enum tokmap_status keys_write(struct shuffle_chunks *chunks, const struct shuffle_entry *entries, uint64_t count,
                                     struct shuffle_chunk *chunk, struct tokmap_error *error)
{
    struct shuffle_key *keys = malloc(KEYS * sizeof *keys);
    uint64_t filled = 0;
    enum tokmap_status status =
        keys ? TOKMAP_OK : error_set_memory(error, "the keys of documents", KEYS * sizeof *keys);
    for (uint64_t i = 0; i <= count && !status; i++) {
        if (filled == KEYS || i == count) {
            chunk->keys_hash = shuffle_keys_hash(chunk->keys_hash, keys, filled);
            status = shuffle_file_append(chunks->folder, chunks->fd, &chunks->file_bytes, keys, filled * sizeof *keys,
                                         error);
            chunk->keys += filled;
            filled = 0;
        }
        if (i == count)
            break;
        if (i + AHEAD < count)
            __builtin_prefetch(chunks->bytes + entries[i + AHEAD].at);
        struct shuffle_head head;
        memcpy(&head, chunks->bytes + entries[i].at, sizeof head);
        if ((head.set & ~SHUFFLE_LONG) != chunk->set)
            continue;
        keys[filled++] = (struct shuffle_key){.high = entries[i].high,
                                              .position = head.position,
                                              .input = (uint32_t)head.input,
                                              .bytes = head.bytes,
                                              .tokens = head.tokens};
        chunk->tokens += head.tokens;
    }
    free(keys);
    return status;
}

/* Makes room in the list for `more` chunks. */
static enum tokmap_status list_grow(struct shuffle_chunks *chunks, uint64_t more, struct tokmap_error *error)
{
    if (more <= chunks->chunk_capacity - chunks->chunk_count)
        return TOKMAP_OK;
    const uint64_t room = 2 * chunks->chunk_capacity + 16 + more;
    struct shuffle_chunk *grown = realloc(chunks->chunks, room * sizeof *grown);
    if (!grown)
        return error_set_memory(error, "the list of chunks", room * sizeof *grown);
    chunks->chunks = grown;
    chunks->chunk_capacity = room;
    return TOKMAP_OK;
}

/* Opens a file for the next chunk, unless there is one with room. */
static enum tokmap_status file_next(struct shuffle_chunks *chunks, struct tokmap_error *error)
{
    if (chunks->fd >= 0 && chunks->file_bytes < FILE_MOST)
        return TOKMAP_OK;
    chunks->fd = -1; /* the chunks have the descriptor */
    chunks->file_bytes = 0;
    const enum tokmap_status status = chunks->open ? chunks->open(chunks->self, chunks->files, &chunks->fd, error)
                                                   : shuffle_file_unnamed(chunks->folder, &chunks->fd, error);
    chunks->files += !status;
    return status;
}

static void writing_run(void *user)
{
    struct shuffle_writing *writing = user;
    struct shuffle_chunks *chunks = writing->chunks;
    const uint64_t count = writing->count;
    entries_sort(chunks, writing->entries, count, writing->scratch);
    for (uint32_t set = 0; set < max64(chunks->sets, 1) && !writing->status; set++) {
        struct shuffle_chunk made = {
            .fd = chunks->fd, .file = chunks->files - 1, .begin = chunks->file_bytes, .set = set};
        writing->status = records_write(chunks, writing->entries, count, set, &writing->error);
        made.end = chunks->file_bytes;
        if (!writing->status && chunks->sets && made.end != made.begin)
            writing->status = keys_write(chunks, writing->entries, count, &made, &writing->error);
        if (made.end != made.begin)
            writing->made[writing->made_count++] = made;
    }
}

/* Begins to write a chunk. No other one is being written. apart: by a thread of its own, if that can be started. */
static enum tokmap_status writing_begin(struct shuffle_chunks *chunks, struct shuffle_entry *entries, uint64_t count,
                                        struct shuffle_entry *scratch, bool apart, struct tokmap_error *error)
{
    struct shuffle_writing *writing = &chunks->writing;
    assert(!writing->count && count);
    enum tokmap_status status = list_grow(chunks, max64(chunks->sets, 1), error);
    if (!status)
        status = file_next(chunks, error);
    if (status)
        return status;
    *writing = (struct shuffle_writing){.chunks = chunks, .entries = entries, .scratch = scratch, .count = count};
    if (apart && !os_thread_start(&writing->thread, "tokmap-chunk", writing_run, writing))
        return TOKMAP_OK;
    writing->thread = NULL;
    writing_run(writing);
    return TOKMAP_OK;
}

/* Waits until the chunk is written, if one is being written. */
static enum tokmap_status writing_end(struct shuffle_chunks *chunks, struct tokmap_error *error)
{
    struct shuffle_writing *writing = &chunks->writing;
    if (!writing->count)
        return TOKMAP_OK;
    os_thread_join(writing->thread);
    writing->thread = NULL;
    writing->count = 0;
    if (writing->status) {
        *error = writing->error;
        return writing->status;
    }
    for (uint32_t i = 0; i < writing->made_count; i++)
        chunks->chunks[chunks->chunk_count++] = writing->made[i];
    return TOKMAP_OK;
}

/* Goes on with a part of the memory, which is empty. */
static void part_begin(struct shuffle_chunks *chunks, uint64_t begin, uint64_t end)
{
    chunks->begin = chunks->used = begin;
    chunks->end = end;
    chunks->entries = 0;
}

/* Writes the chunk in memory, which is then empty. */
static enum tokmap_status chunk_write(struct shuffle_chunks *chunks, struct tokmap_error *error)
{
    struct shuffle_entry *entries = entries_of(chunks);
    enum tokmap_status status =
        writing_begin(chunks, entries, chunks->entries, entries - chunks->entries, false, error);
    if (!status)
        status = writing_end(chunks, error);
    if (!status)
        part_begin(chunks, chunks->begin, chunks->end);
    return status;
}

/* Cuts the memory, which is full for the first time. Makes two chunks of it: writes the one whose records begin in the
 * first half, which is then empty, and begins to write the other one. */
static enum tokmap_status memory_cut(struct shuffle_chunks *chunks, uint64_t half, struct tokmap_error *error)
{
    struct shuffle_entry *entries = entries_of(chunks);
    uint64_t second = 0; /* entries of the second half, which come first */
    while (entries[second].at >= half)
        second++;
    const uint64_t first = chunks->entries - second;
    assert(first && second);
    enum tokmap_status status = writing_begin(chunks, entries + second, first, entries - first, false, error);
    if (!status)
        status = writing_end(chunks, error);
    if (!status)
        status = writing_begin(chunks, entries, second, entries - second, true, error);
    if (!status)
        part_begin(chunks, 0, half);
    return status;
}

/* Makes room in the part of the memory that is full. */
static enum tokmap_status part_full(struct shuffle_chunks *chunks, struct tokmap_error *error)
{
    const uint64_t half = round_down(chunks->chunk_bytes / 2, 8);
    struct shuffle_entry *entries = entries_of(chunks);
    enum tokmap_status status = writing_end(chunks, error);
    if (status)
        return status;
    if (!chunks->own_thread || chunks->chunk_bytes < APART_LEAST)
        return chunk_write(chunks, error);
    if (chunks->end - chunks->begin == chunks->chunk_bytes)
        return memory_cut(chunks, half, error);
    status = writing_begin(chunks, entries, chunks->entries, entries - chunks->entries, true, error);
    if (status)
        return status;
    if (chunks->begin)
        part_begin(chunks, 0, half);
    else
        part_begin(chunks, half, chunks->chunk_bytes);
    return TOKMAP_OK;
}

enum tokmap_status shuffle_chunks_write(struct shuffle_chunks *chunks, struct tokmap_error *error)
{
    const enum tokmap_status status = writing_end(chunks, error);
    return status || !chunks->entries ? status : chunk_write(chunks, error);
}

enum tokmap_status shuffle_chunks_take(struct shuffle_chunks *chunks, const struct shuffle_chunk *chunk,
                                       struct tokmap_error *error)
{
    const enum tokmap_status status = list_grow(chunks, 1, error);
    if (!status)
        chunks->chunks[chunks->chunk_count++] = *chunk;
    return status;
}

uint8_t *shuffle_chunks_room(struct shuffle_chunks *chunks, uint32_t bytes, struct tokmap_error *error)
{
    const uint64_t sorting = 2 * (chunks->entries + 1) * sizeof(struct shuffle_entry);
    assert(bytes % 8 == 0 && bytes >= sizeof(struct shuffle_head) && bytes <= chunks->record_most);
    if (chunks->used + bytes + sorting > chunks->end && part_full(chunks, error))
        return NULL;
    return chunks->bytes + chunks->used;
}

void shuffle_chunks_add(struct shuffle_chunks *chunks, uint8_t *record)
{
    assert(record == chunks->bytes + chunks->used);
    struct shuffle_head head;
    memcpy(&head, record, sizeof head);
    shuffle_record_seal(record);
    chunks->entries++;
    *entries_of(chunks) =
        (struct shuffle_entry){shuffle_place_of(chunks->seed, head.input, head.position).high, chunks->used};
    chunks->used += head.bytes;
}

enum tokmap_status shuffle_chunks_end(struct shuffle_chunks *chunks, struct tokmap_error *error)
{
    struct shuffle_entry *entries = entries_of(chunks);
    if (!chunks->chunk_count && !chunks->writing.count) {
        entries_sort(chunks, entries, chunks->entries, entries - chunks->entries);
        return TOKMAP_OK;
    }
    const enum tokmap_status status = shuffle_chunks_write(chunks, error);
    memory_free(chunks);
    return status;
}

const uint8_t *shuffle_chunks_record(const struct shuffle_chunks *chunks, uint64_t number)
{
    return number < chunks->entries ? chunks->bytes + entries_of(chunks)[number].at : NULL;
}
