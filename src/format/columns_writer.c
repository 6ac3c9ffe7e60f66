/* SPDX-License-Identifier: MIT */
/*
 * columns_writer.c - see columns_writer.h.
 *
 * A column of few values costs a code of one or two bytes per document: its dictionary is in memory, and the codes are
 * spilled, always as two bytes, since the number of values is known only at the end. When a value does not fit in the
 * dictionary any more, the column becomes plain, which needs a value per document and not per code. The documents
 * before that moment are not written again: their codes and the dictionary remain, and columns_writer_finish() puts
 * their values together while it writes the section. From that moment on, the ends and bytes of values are spilled.
 *
 * Worked example: the dictionary may have 2 values, and the documents have the values "a" "b" "a" "c" "a". The first
 * three become the codes 0 1 0 of the dictionary "a" "b". "c" does not fit, so it and the last "a" are spilled. The
 * section has the ends 3 6 9 12 15 and the bytes "a""b""a""c""a": the first three by the codes, the rest from the
 * spill. With only "a" "b" "a" it would have the codes 0 1 0, the ends 3 6, and the bytes "a""b".
 */
#include "columns_writer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "text/json_scan.h"
#include "text/utf8.h"

/* Every size is limited before it is added, so that no sum overflows. */
#define PART_BYTES_MAX ((uint64_t)1 << 60)

bool column_layout_of(const struct column_head *head, uint64_t documents, struct column_layout *layout)
{
    if (head->code_bytes > 2 || head->name_bytes > PART_BYTES_MAX || head->value_bytes > PART_BYTES_MAX ||
        head->values > PART_BYTES_MAX / 4 || documents > PART_BYTES_MAX / 4 || head->offset > PART_BYTES_MAX)
        return false;
    layout->name_at = head->offset;
    layout->codes_at = layout->name_at + round_up(head->name_bytes + 1, 8);
    layout->lows_at = layout->codes_at + round_up(head->code_bytes * documents, 8);
    layout->carries_at = layout->lows_at + round_up(4 * head->values, 8);
    layout->values_at = layout->carries_at + 8 * (head->value_bytes >> 32);
    layout->end = layout->values_at + round_up(head->value_bytes, 8);
    return true;
}

#define SLOTS_LEAST 256
#define ROOM_LEAST 4096
#define COPY_BYTES ((size_t)1 << 16)
#define COPY_CODES (COPY_BYTES / sizeof(uint16_t))

bool shard_value_is_sound(const struct shard_value *value)
{
    const char *json = value->json;
    const uint64_t count = value->bytes;
    if (!count)
        return true;
    if ((unsigned char)json[0] <= ' ' || (unsigned char)json[count - 1] <= ' ')
        return false;
    return utf8_valid_prefix(json, (size_t)count) == count && json_is_valid(json, (size_t)count, COLUMN_DEPTH);
}

int columns_writer_init(struct columns_writer *writer, const char *const *names, uint32_t count, const char *folder)
{
    *writer = (struct columns_writer){.count = count, .columns = calloc(count, sizeof *writer->columns)};
    bool complete = writer->columns;
    for (uint32_t c = 0; complete && c < count; c++) {
        struct column_writer *column = &writer->columns[c];
        complete = (column->name = strdup(names[c]));
        column->key = table_key_new();
        spill_init(&column->codes, folder);
        spill_init(&column->lows, folder);
        spill_init(&column->carries, folder);
        spill_init(&column->plain_values, folder);
    }
    if (complete)
        return 0;
    columns_writer_free(writer);
    return ENOMEM;
}

void column_dictionary_free(struct column_writer *column)
{
    free(column->ends);
    free(column->hashes);
    free(column->slots);
    free(column->bytes);
}

void columns_writer_free(struct columns_writer *writer)
{
    for (uint32_t c = 0; writer->columns && c < writer->count; c++) {
        struct column_writer *column = &writer->columns[c];
        if (!column->name)
            continue; /* its spills have no descriptors yet */
        free(column->name);
        column_dictionary_free(column);
        spill_free(&column->codes);
        spill_free(&column->lows);
        spill_free(&column->carries);
        spill_free(&column->plain_values);
    }
    free(writer->columns);
    *writer = (struct columns_writer){0};
}

/* ---- the dictionary ---- */

static uint64_t value_begin(const struct column_writer *column, uint64_t value)
{
    return value ? column->ends[value - 1] : 0;
}

/* Makes the hash table larger, so that at most half of it is in use. */
static int grow_slots(struct column_writer *column)
{
    uint64_t slots = column->slot_count ? 2 * column->slot_count : SLOTS_LEAST;
    while (slots <= 2 * column->values) /* a restored dictionary has all its values at once */
        slots *= 2;
    uint32_t *made = calloc(slots, sizeof *made);
    if (!made)
        return ENOMEM;
    for (uint64_t v = 0; v < column->values; v++) {
        uint64_t at = column->hashes[v] % slots;
        while (made[at])
            at = (at + 1) % slots;
        made[at] = (uint32_t)(v + 1);
    }
    free(column->slots);
    column->slots = made;
    column->slot_count = slots;
    return 0;
}

/* Makes room for `values` values of the dictionary, which take `bytes` bytes. */
static bool values_room(struct column_writer *column, uint64_t values, uint64_t bytes)
{
    if (bytes > column->bytes_room) {
        const uint64_t room = min64(max64(2 * bytes, ROOM_LEAST), COLUMN_DICTIONARY_BYTES);
        uint8_t *grown = realloc(column->bytes, room);
        if (!grown)
            return false;
        column->bytes = grown;
        column->bytes_room = room;
    }
    if (values > column->ends_room) {
        const uint64_t room = max64(2 * values, SLOTS_LEAST / 2);
        uint32_t *ends = realloc(column->ends, room * sizeof *ends);
        column->ends = ends ? ends : column->ends;
        uint32_t *hashes = ends ? realloc(column->hashes, room * sizeof *hashes) : NULL;
        column->hashes = hashes ? hashes : column->hashes;
        column->ends_room = hashes ? room : column->ends_room;
        return hashes != NULL;
    }
    return true;
}

/* Makes room for one more value of `bytes` bytes. */
static int grow_values(struct column_writer *column, uint64_t bytes)
{
    if (!values_room(column, column->values + 1, value_begin(column, column->values) + bytes))
        return ENOMEM;
    return 2 * column->values >= column->slot_count ? grow_slots(column) : 0;
}

int column_dictionary_find(struct column_writer *column, const struct shard_value *value, uint16_t *code, bool *fits)
{
    const uint32_t hash =
        (uint32_t)(table_hash(column->key, (const uint8_t *)(value->bytes ? value->json : ""), value->bytes) >> 32);
    *fits = true;
    if (column->slot_count) {
        for (uint64_t at = hash % column->slot_count; column->slots[at]; at = (at + 1) % column->slot_count) {
            const uint64_t found = column->slots[at] - 1, begin = value_begin(column, found);
            if (column->hashes[found] == hash && column->ends[found] - begin == value->bytes &&
                (!value->bytes || !memcmp(column->bytes + begin, value->json, (size_t)value->bytes))) {
                *code = (uint16_t)found;
                return 0;
            }
            column->passed++;
        }
    }
    const uint64_t begin = value_begin(column, column->values);
    *fits = column->values < COLUMN_VALUES_MAX && value->bytes <= COLUMN_DICTIONARY_BYTES - begin;
    if (!*fits)
        return 0;
    const int system = grow_values(column, value->bytes);
    if (system)
        return system;
    uint64_t at = hash % column->slot_count;
    while (column->slots[at])
        at = (at + 1) % column->slot_count;
    if (value->bytes)
        memcpy(column->bytes + begin, value->json, (size_t)value->bytes);
    column->ends[column->values] = (uint32_t)(begin + value->bytes);
    column->hashes[column->values] = hash;
    *code = (uint16_t)column->values++;
    column->slots[at] = (uint32_t)column->values;
    return 0;
}

/* ---- documents ---- */

static int add_value(struct column_writer *column, const struct shard_value *value, uint64_t document)
{
    uint16_t code = 0;
    bool fits = false;
    int system = column->plain ? 0 : column_dictionary_find(column, value, &code, &fits);
    if (!system && fits) {
        system = spill_add(&column->codes, &code, sizeof code);
        column->coded++;
    }
    uint64_t end;
    if (system || add_overflows(column->total, value->bytes, &end))
        return system ? system : EFBIG;
    column->total = end;
    for (; column->carried < end >> 32 && !system; column->carried++)
        system = spill_add(&column->carries, &document, sizeof document);
    if (fits || system)
        return system;
    column->plain = true;
    const uint32_t low = (uint32_t)end;
    system = spill_add(&column->lows, &low, sizeof low);
    return system || !value->bytes ? system : spill_add(&column->plain_values, value->json, (size_t)value->bytes);
}

int columns_writer_add(struct columns_writer *writer, const struct shard_value *values, uint64_t documents)
{
    int system = 0;
    for (uint64_t d = 0; d < documents && !system; d++) {
        for (uint32_t c = 0; c < writer->count && !system; c++)
            system = add_value(&writer->columns[c], &values[d * writer->count + c], writer->documents);
        writer->documents++;
    }
    return system;
}

/* ---- saving ---- */

enum { SAVED_NUMBERS, SAVED_CODES, SAVED_LOWS, SAVED_CARRIES, SAVED_PLAIN, SAVED_ENDS, SAVED_BYTES };
enum { NUMBER_PLAIN, NUMBER_CODED, NUMBER_VALUES, NUMBER_TOTAL, NUMBER_CARRIED, NUMBERS };
enum { SAVED_MOST = 1 << 14 };

/* Passes on memory in increments. */
static void memory_save(const void *bytes, uint64_t count, uint32_t kind, struct state_sink *sink)
{
    for (uint64_t done = 0; done < count; done += SAVED_MOST)
        state_put(sink, kind, (const uint8_t *)bytes + done, (size_t)min64(count - done, SAVED_MOST));
}

static void column_save(struct column_writer *column, uint32_t kind, struct state_sink *sink)
{
    const uint64_t begin = value_begin(column, column->saved), end = value_begin(column, column->values);
    const uint64_t numbers[NUMBERS] = {column->plain, column->coded, column->values, column->total, column->carried};
    spill_save(&column->codes, kind + SAVED_CODES, sink);
    spill_save(&column->lows, kind + SAVED_LOWS, sink);
    spill_save(&column->carries, kind + SAVED_CARRIES, sink);
    spill_save(&column->plain_values, kind + SAVED_PLAIN, sink);
    if (column->saved < column->values)
        memory_save(column->ends + column->saved, (column->values - column->saved) * sizeof *column->ends,
                    kind + SAVED_ENDS, sink);
    if (begin < end)
        memory_save(column->bytes + begin, end - begin, kind + SAVED_BYTES, sink);
    column->saved = column->values;
    state_put(sink, kind + SAVED_NUMBERS, numbers, sizeof numbers);
}

void columns_writer_save(struct columns_writer *writer, uint32_t kind, struct state_sink *sink)
{
    for (uint32_t c = 0; c < writer->count; c++)
        column_save(&writer->columns[c], kind + c * COLUMN_KINDS, sink);
}

/* Takes ends of values of the dictionary. */
static int ends_load(struct column_writer *column, const uint8_t *bytes, size_t count)
{
    const uint64_t more = count / sizeof *column->ends, all = column->values + more;
    if (count % sizeof *column->ends || all > COLUMN_VALUES_MAX)
        return EINVAL;
    if (!values_room(column, all, 0))
        return ENOMEM;
    memcpy(column->ends + column->values, bytes, count);
    column->values = all;
    return 0;
}

/* Takes bytes of values of the dictionary. */
static int bytes_load(struct column_writer *column, const uint8_t *bytes, size_t count)
{
    const uint64_t all = column->loaded + count;
    if (all > COLUMN_DICTIONARY_BYTES)
        return EINVAL;
    if (!values_room(column, 0, all))
        return ENOMEM;
    memcpy(column->bytes + column->loaded, bytes, count);
    column->loaded = all;
    return 0;
}

static int numbers_load(struct column_writer *column, const uint8_t *bytes, size_t count)
{
    uint64_t numbers[NUMBERS];
    if (count != sizeof numbers)
        return EINVAL;
    memcpy(numbers, bytes, sizeof numbers);
    if (numbers[NUMBER_PLAIN] > 1 || numbers[NUMBER_VALUES] != column->values)
        return EINVAL;
    column->plain = numbers[NUMBER_PLAIN];
    column->coded = numbers[NUMBER_CODED];
    column->total = numbers[NUMBER_TOTAL];
    column->carried = numbers[NUMBER_CARRIED];
    return 0;
}

int columns_writer_load(struct columns_writer *writer, uint32_t kind, const uint8_t *bytes, size_t count)
{
    if (kind / COLUMN_KINDS >= writer->count)
        return EINVAL;
    struct column_writer *column = &writer->columns[kind / COLUMN_KINDS];
    switch (kind % COLUMN_KINDS) {
    case SAVED_NUMBERS:
        return numbers_load(column, bytes, count);
    case SAVED_CODES:
        if (count % sizeof(uint16_t))
            return EINVAL;
        for (size_t i = 0; i < count; i += sizeof(uint16_t))
            column->code_after = max64(column->code_after, (uint64_t)load16(bytes + i) + 1);
        return spill_add(&column->codes, bytes, count);
    case SAVED_LOWS:
        return spill_add(&column->lows, bytes, count);
    case SAVED_CARRIES:
        return spill_add(&column->carries, bytes, count);
    case SAVED_PLAIN:
        return spill_add(&column->plain_values, bytes, count);
    case SAVED_ENDS:
        return ends_load(column, bytes, count);
    case SAVED_BYTES:
        return bytes_load(column, bytes, count);
    default:
        return EINVAL;
    }
}

/* Checks a column, and makes the hash table of its dictionary. */
static int column_restored(struct column_writer *column, uint64_t documents)
{
    uint64_t end = 0;
    for (uint64_t v = 0; v < column->values; v++) {
        if (column->ends[v] < end || column->ends[v] > column->loaded)
            return EINVAL;
        column->hashes[v] =
            (uint32_t)(table_hash(column->key, column->bytes ? column->bytes + end : (const uint8_t *)"",
                                  column->ends[v] - end) >>
                       32);
        end = column->ends[v];
    }
    const uint64_t lows = documents - min64(column->coded, documents);
    if (end != column->loaded || column->code_after > column->values || column->coded > documents ||
        spill_bytes(&column->codes) != column->coded * sizeof(uint16_t) ||
        spill_bytes(&column->lows) != lows * sizeof(uint32_t) || (!column->plain && lows) ||
        spill_bytes(&column->carries) / sizeof(uint64_t) != column->carried || column->total >> 32 != column->carried ||
        spill_bytes(&column->plain_values) > column->total)
        return EINVAL;
    column->saved = column->values;
    spill_restored(&column->codes);
    spill_restored(&column->lows);
    spill_restored(&column->carries);
    spill_restored(&column->plain_values);
    return column->values ? grow_slots(column) : 0;
}

int columns_writer_restored(struct columns_writer *writer, uint64_t documents)
{
    int system = 0;
    for (uint32_t c = 0; c < writer->count && !system; c++)
        system = column_restored(&writer->columns[c], documents);
    writer->documents = documents;
    return system;
}

/* ---- the section ---- */

static struct column_head head_of(const struct column_writer *column, uint64_t documents)
{
    struct column_head head = {.name_bytes = strlen(column->name)};
    head.code_bytes = column->plain ? 0 : column->values <= 256 ? 1 : 2;
    head.values = column->plain ? documents : column->values;
    head.value_bytes = column->plain ? column->total : value_begin(column, column->values);
    return head;
}

/* Reads codes back from their spill, in order. */
struct code_reader {
    struct spill *spill;
    uint64_t done;   /* codes that have been read */
    uint16_t *codes; /* COPY_CODES of them */
};

static int next_codes(struct code_reader *reader, uint64_t count)
{
    const int system = spill_read(reader->spill, reader->done * sizeof *reader->codes, reader->codes,
                                  (size_t)count * sizeof *reader->codes);
    reader->done += count;
    return system;
}

static int write_codes(struct column_writer *column, struct index_writer *index, uint16_t *room)
{
    struct code_reader reader = {&column->codes, 0, room};
    int system = 0;
    while (reader.done < column->coded && !system) {
        const uint64_t count = min64(column->coded - reader.done, COPY_CODES);
        system = next_codes(&reader, count);
        if (column->values <= 256)
            for (uint64_t i = 0; i < count; i++)
                ((uint8_t *)room)[i] = (uint8_t)room[i]; /* byte i is before the codes that are still to be read */
        if (!system)
            system = index_writer_add(index, room, (size_t)count * (column->values <= 256 ? 1 : 2));
    }
    return system;
}

/* Writes the ends or the bytes of the documents of a plain column that have codes. */
static int write_coded(struct column_writer *column, struct index_writer *index, uint16_t *room, bool bytes)
{
    struct code_reader reader = {&column->codes, 0, room};
    uint64_t end = 0;
    int system = 0;
    while (reader.done < column->coded && !system) {
        const uint64_t count = min64(column->coded - reader.done, COPY_CODES);
        system = next_codes(&reader, count);
        for (uint64_t i = 0; i < count && !system; i++) {
            assert(room[i] < column->values);
            const uint64_t begin = value_begin(column, room[i]), value_bytes = column->ends[room[i]] - begin;
            end += value_bytes;
            const uint32_t low = (uint32_t)end;
            system = bytes ? index_writer_add(index, column->bytes + begin, (size_t)value_bytes)
                           : index_writer_add(index, &low, sizeof low);
        }
    }
    return system;
}

static int write_plain(struct column_writer *column, struct index_writer *index, uint16_t *room)
{
    int system = write_coded(column, index, room, false);
    if (!system)
        system = index_writer_add_spill(index, &column->lows);
    if (!system)
        system = index_writer_pad(index, 8);
    if (!system)
        system = index_writer_add_spill(index, &column->carries);
    if (!system)
        system = write_coded(column, index, room, true);
    return system ? system : index_writer_add_spill(index, &column->plain_values);
}

static int write_dictionary(struct column_writer *column, struct index_writer *index, uint16_t *room)
{
    int system = write_codes(column, index, room);
    if (!system)
        system = index_writer_pad(index, 8);
    if (!system && column->values)
        system = index_writer_add(index, column->ends, (size_t)column->values * sizeof *column->ends);
    if (!system)
        system = index_writer_pad(index, 8);
    return system || !column->values
               ? system
               : index_writer_add(index, column->bytes, (size_t)value_begin(column, column->values));
}

int columns_writer_finish(struct columns_writer *writer, struct index_writer *index)
{
    const uint64_t count = writer->count;
    uint16_t *room = malloc(COPY_BYTES);
    uint64_t offset = sizeof count + count * sizeof(struct column_head);
    int system = room ? index_writer_begin(index, SECTION_COLUMNS) : ENOMEM;
    if (!system)
        system = index_writer_add(index, &count, sizeof count);
    for (uint64_t c = 0; c < count && !system; c++) {
        struct column_head head = head_of(&writer->columns[c], writer->documents);
        struct column_layout layout;
        head.offset = offset;
        system = column_layout_of(&head, writer->documents, &layout) ? 0 : EFBIG;
        offset = layout.end;
        if (!system)
            system = index_writer_add(index, &head, sizeof head);
    }
    for (uint64_t c = 0; c < count && !system; c++) {
        struct column_writer *column = &writer->columns[c];
        system = index_writer_add(index, column->name, strlen(column->name) + 1);
        if (!system)
            system = index_writer_pad(index, 8);
        if (!system)
            system = column->plain ? write_plain(column, index, room) : write_dictionary(column, index, room);
        if (!system)
            system = index_writer_pad(index, 8);
    }
    free(room);
    return system ? system : index_writer_end(index);
}
