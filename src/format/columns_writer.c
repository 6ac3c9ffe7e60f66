/*
 * columns_writer.c - see columns_writer.h.
 *
 * A column of few values costs a code of one or two bytes per document: its dictionary is in memory, and the codes are
 * in a file, always as two bytes, since the number of values is known only at the end. When a value does not fit in the
 * dictionary any more, the column becomes plain, which needs a value per document and not per code. The documents
 * before that moment are not written again: their codes and the dictionary remain, and columns_writer_finish() puts
 * their values together while it writes the section. From that moment on, the ends and bytes of values are in files.
 *
 * Worked example: the dictionary may have 2 values, and the documents have the values "a" "b" "a" "c" "a". The first
 * three become the codes 0 1 0 of the dictionary "a" "b". "c" does not fit, so it and the last "a" are in the file. The
 * section has the ends 3 6 9 12 15 and the bytes "a""b""a""c""a": the first three by the codes, the rest from the
 * file. With only "a" "b" "a" it would have the codes 0 1 0, the ends 3 6, and the bytes "a""b".
 */
#include "columns_writer.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "column_layout.h"
#include "common/bytes.h"
#include "text/json_scan.h"
#include "text/utf8.h"

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
        append_file_init(&column->codes, folder);
        append_file_init(&column->lows, folder);
        append_file_init(&column->carries, folder);
        append_file_init(&column->plain_values, folder);
        append_file_init(&column->dictionary, folder);
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
            continue; /* its files have no descriptors yet */
        free(column->name);
        column_dictionary_free(column);
        append_file_free(&column->codes);
        append_file_free(&column->lows);
        append_file_free(&column->carries);
        append_file_free(&column->plain_values);
        append_file_free(&column->dictionary);
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

/* Makes room for one more value of `bytes` bytes. */
static int grow_values(struct column_writer *column, uint64_t bytes)
{
    const uint64_t needed = value_begin(column, column->values) + bytes;
    if (needed > column->bytes_room) {
        const uint64_t room = min64(max64(2 * needed, ROOM_LEAST), COLUMN_DICTIONARY_BYTES);
        uint8_t *grown = realloc(column->bytes, room);
        if (!grown)
            return ENOMEM;
        column->bytes = grown;
        column->bytes_room = room;
    }
    if (column->values == column->ends_room) {
        const uint64_t room = max64(2 * column->ends_room, SLOTS_LEAST / 2);
        uint32_t *ends = realloc(column->ends, room * sizeof *ends);
        column->ends = ends ? ends : column->ends;
        uint32_t *hashes = ends ? realloc(column->hashes, room * sizeof *hashes) : NULL;
        column->hashes = hashes ? hashes : column->hashes;
        if (!hashes)
            return ENOMEM;
        column->ends_room = room;
    }
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
        system = append_file_add(&column->codes, &code, sizeof code);
        column->coded++;
    }
    uint64_t end;
    if (system || add_overflows(column->total, value->bytes, &end))
        return system ? system : EFBIG;
    column->total = end;
    for (; column->carried < end >> 32 && !system; column->carried++)
        system = append_file_add(&column->carries, &document, sizeof document);
    if (fits || system)
        return system;
    column->plain = true;
    const uint32_t low = (uint32_t)end;
    system = append_file_add(&column->lows, &low, sizeof low);
    return system || !value->bytes ? system : append_file_add(&column->plain_values, value->json, (size_t)value->bytes);
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

/* ---- checkpoints ---- */

/* Adds the new values of the dictionary to their file. */
static int dictionary_keep(struct column_writer *column)
{
    int system = 0;
    for (; column->kept < column->values && !system; column->kept++) {
        const uint64_t begin = value_begin(column, column->kept);
        const uint32_t bytes = (uint32_t)(column->ends[column->kept] - begin);
        system = append_file_add(&column->dictionary, &bytes, sizeof bytes);
        if (!system && bytes)
            system = append_file_add(&column->dictionary, column->bytes + begin, bytes);
    }
    return system;
}

/* Makes the dictionary from its file. */
static int dictionary_take(struct column_writer *column)
{
    const uint64_t all = append_file_bytes(&column->dictionary);
    if (all > COLUMN_DICTIONARY_BYTES + COLUMN_VALUES_MAX * sizeof(uint32_t))
        return EINVAL;
    char *bytes = malloc((size_t)all + 1);
    int system = bytes ? append_file_read(&column->dictionary, 0, bytes, (size_t)all) : ENOMEM;
    for (uint64_t at = 0; at < all && !system;) {
        const uint64_t left = all - at - min64(sizeof(uint32_t), all - at);
        const uint64_t value_bytes = left ? load32((const uint8_t *)bytes + at) : 0;
        const struct shard_value value = {bytes + at + sizeof(uint32_t), value_bytes};
        const uint64_t known = column->values;
        uint16_t code;
        bool fits;
        if (all - at < sizeof(uint32_t) || value_bytes > left)
            system = EINVAL;
        else
            system = column_dictionary_find(column, &value, &code, &fits);
        if (!system && column->values == known) /* it has no room, or was there before */
            system = EINVAL;
        at += sizeof(uint32_t) + value_bytes;
    }
    column->kept = column->values;
    free(bytes);
    return system;
}

/* Derives the numbers of a column from its files. */
static int numbers_take(struct column_writer *column)
{
    const uint64_t lows = append_file_bytes(&column->lows) / sizeof(uint32_t);
    uint32_t low = 0;
    int system = lows ? append_file_read(&column->lows, (lows - 1) * sizeof low, &low, sizeof low) : 0;
    column->coded = append_file_bytes(&column->codes) / sizeof(uint16_t);
    column->carried = append_file_bytes(&column->carries) / sizeof(uint64_t);
    column->plain = lows != 0;
    for (uint64_t i = 0; i < column->coded && !system;) {
        uint16_t codes[512];
        const size_t count = (size_t)min64(sizeof codes / sizeof codes[0], column->coded - i);
        system = append_file_read(&column->codes, i * sizeof codes[0], codes, count * sizeof codes[0]);
        for (size_t k = 0; k < count && !system; k++) {
            if (codes[k] >= column->values)
                system = EINVAL;
            else
                column->total += column->ends[codes[k]] - value_begin(column, codes[k]);
        }
        i += count;
    }
    if (column->plain)
        column->total = column->carried << 32 | low;
    return !system && column->total >> 32 != column->carried ? EINVAL : system;
}

int columns_writer_pass(struct columns_writer *writer, struct checkpoint *checkpoint, const char *stem)
{
    int system = 0;
    for (uint32_t c = 0; c < writer->count && !system; c++) {
        struct column_writer *column = &writer->columns[c];
        char own[64];
        (void)snprintf(own, sizeof own, "%s-%" PRIu32, stem, c);
        system = checkpoint->takes ? 0 : dictionary_keep(column);
        if (!system)
            system = checkpoint_file(checkpoint, &column->dictionary, own, "dictionary");
        if (!system)
            system = checkpoint_file(checkpoint, &column->codes, own, "codes");
        if (!system)
            system = checkpoint_file(checkpoint, &column->lows, own, "lows");
        if (!system)
            system = checkpoint_file(checkpoint, &column->carries, own, "carries");
        if (!system)
            system = checkpoint_file(checkpoint, &column->plain_values, own, "values");
        if (!system && checkpoint->takes)
            system = dictionary_take(column);
        if (!system && checkpoint->takes)
            system = numbers_take(column);
        const uint64_t documents = column->coded + append_file_bytes(&column->lows) / sizeof(uint32_t);
        if (!system && c && checkpoint->takes && documents != writer->documents)
            system = EINVAL;
        writer->documents = checkpoint->takes ? documents : writer->documents;
    }
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

/* Reads codes back from their file, in order. */
struct code_reader {
    const struct append_file *file;
    uint64_t done;   /* codes that have been read */
    uint16_t *codes; /* COPY_CODES of them */
};

static int next_codes(struct code_reader *reader, uint64_t count)
{
    const int system = append_file_read(reader->file, reader->done * sizeof *reader->codes, reader->codes,
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
        system = index_writer_add_file(index, &column->lows);
    if (!system)
        system = index_writer_pad(index, 8);
    if (!system)
        system = index_writer_add_file(index, &column->carries);
    if (!system)
        system = write_coded(column, index, room, true);
    return system ? system : index_writer_add_file(index, &column->plain_values);
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
