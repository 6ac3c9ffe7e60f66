/* SPDX-License-Identifier: MIT */
/* parquet_values.c - see parquet_values.h. */
#include "parquet_values.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"

#define ENDS_EARLY "its bytes end before its last value"
#define WRONG_ENCODING "its encoding is not one for values of this type"
#define LEVELS_END_EARLY "its levels or indexes end before its last value"
#define TOO_LARGE "a level is larger than the schema allows"
#define BLOCK 1024

/* ---- levels ---- */

void parquet_hybrid_begin(struct parquet_hybrid *hybrid, const uint8_t *bytes, uint64_t count, unsigned width)
{
    *hybrid = (struct parquet_hybrid){.at = bytes, .end = bytes + count, .width = width};
}

/* Reads the head of the next run. */
static const char *run_begin(struct parquet_hybrid *hybrid)
{
    uint64_t head = 0;
    unsigned shift = 0;
    if (hybrid->width > 32)
        return "its levels or indexes have more than 32 bits";
    for (;; shift += 7) {
        if (hybrid->at == hybrid->end)
            return LEVELS_END_EARLY;
        if (shift > 28)
            return "a run of its levels or indexes has an impossible length";
        const uint8_t byte = *hybrid->at++;
        head |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            break;
    }
    hybrid->packed = head & 1;
    hybrid->bit = 0;
    hybrid->left = head >> 1;
    if (hybrid->packed) {
        hybrid->left *= 8;
        return NULL;
    }
    const unsigned bytes = (hybrid->width + 7) / 8;
    if ((uint64_t)(hybrid->end - hybrid->at) < bytes)
        return LEVELS_END_EARLY;
    hybrid->value = 0;
    for (unsigned i = 0; i < bytes; i++)
        hybrid->value |= (uint32_t)*hybrid->at++ << 8 * i;
    if (hybrid->width < 32 && hybrid->value >> hybrid->width)
        return "a run repeats a value that has too many bits";
    return NULL;
}

/* Takes values of a bit-packed run. The run must have them. */
static const char *packed_take(struct parquet_hybrid *hybrid, uint32_t *into, uint64_t count)
{
    const unsigned width = hybrid->width;
    const uint64_t bits = hybrid->bit + count * width, mask = width == 32 ? UINT32_MAX : ((uint64_t)1 << width) - 1;
    if (bits > (uint64_t)(hybrid->end - hybrid->at) * 8)
        return LEVELS_END_EARLY;
    uint64_t bit = hybrid->bit, i = 0;
    /* A value has at most 32 bits and begins in the first byte of the 8 that are loaded. */
    for (; i < count && hybrid->end - hybrid->at >= (int64_t)(bit / 8 + 8); i++, bit += width)
        into[i] = (uint32_t)(load64(hybrid->at + bit / 8) >> bit % 8 & mask);
    for (; i < count; i++, bit += width) {
        uint64_t value = 0;
        for (unsigned k = 0; k < 5 && hybrid->at + bit / 8 + k < hybrid->end; k++)
            value |= (uint64_t)hybrid->at[bit / 8 + k] << 8 * k;
        into[i] = (uint32_t)(value >> bit % 8 & mask);
    }
    hybrid->at += bits / 8;
    hybrid->bit = (unsigned)(bits % 8);
    return NULL;
}

/* Takes the next `count` values. Returns NULL, or what is wrong, as a static text. */
static const char *parquet_hybrid_take(struct parquet_hybrid *hybrid, uint32_t *into, uint64_t count)
{
    while (count) {
        if (!hybrid->left) {
            const char *fault = run_begin(hybrid);
            if (fault)
                return fault;
            continue;
        }
        const uint64_t some = min64(count, hybrid->left);
        if (hybrid->packed) {
            const char *fault = packed_take(hybrid, into, some);
            if (fault)
                return fault;
        } else {
            for (uint64_t i = 0; i < some; i++)
                into[i] = hybrid->value;
        }
        into += some;
        count -= some;
        hybrid->left -= some;
    }
    return NULL;
}

bool parquet_hybrid_is_run(struct parquet_hybrid *hybrid, uint32_t value, uint64_t count)
{
    const struct parquet_hybrid before = *hybrid;
    bool is_run = count == 0;
    if (count && (hybrid->left || !run_begin(hybrid)))
        is_run = !hybrid->packed && hybrid->left >= count && hybrid->value == value;
    *hybrid = before;
    return is_run;
}

const char *parquet_levels_take(struct parquet_hybrid *hybrid, uint8_t *into, uint64_t count, uint8_t most)
{
    uint32_t block[BLOCK];
    for (uint64_t done = 0; done < count;) {
        const uint64_t some = min64(count - done, BLOCK);
        const char *fault = parquet_hybrid_take(hybrid, block, some);
        if (fault)
            return fault;
        uint32_t largest = 0;
        for (uint64_t i = 0; i < some; i++) {
            into[done + i] = (uint8_t)block[i];
            largest = largest > block[i] ? largest : block[i];
        }
        if (largest > most)
            return TOO_LARGE;
        done += some;
    }
    return NULL;
}

unsigned parquet_levels_width(uint8_t most)
{
    unsigned width = 0;
    while (most >> width)
        width++;
    return width;
}

/* ---- values ---- */

/* The values that are being decoded. */
struct decoding {
    struct parquet_values *values;
    const struct parquet_column *column;
    const uint8_t *bytes; /* bytes that were not taken yet */
    uint64_t left;        /* of `bytes` */
    uint64_t count;
    uint64_t shared_most;
};

static bool is_text(const struct parquet_column *column)
{
    return column->kind.type == PARQUET_BYTE_ARRAY || column->kind.type == PARQUET_FIXED;
}

/* Returns the bytes of a value of a fixed length; 0 for the other types. */
static uint64_t fixed_bytes(const struct parquet_column *column)
{
    switch (column->kind.type) {
    case PARQUET_INT32:
    case PARQUET_FLOAT:
        return 4;
    case PARQUET_INT64:
    case PARQUET_DOUBLE:
        return 8;
    case PARQUET_INT96:
        return 12;
    case PARQUET_FIXED:
        return column->kind.type_bytes;
    case PARQUET_BOOLEAN:
    case PARQUET_BYTE_ARRAY:
        break;
    }
    return 0;
}

/* Returns the value that has these bits in the file, with 64 bits. */
static uint64_t number_of(const struct parquet_column *column, uint64_t bits)
{
    if (column->kind.type == PARQUET_INT32)
        return column->kind.is_unsigned ? (uint32_t)bits : (uint64_t)(int64_t)(int32_t)(uint32_t)bits;
    if (column->kind.type == PARQUET_FLOAT) {
        const uint32_t low = (uint32_t)bits;
        float single;
        memcpy(&single, &low, sizeof single);
        const double wide = (double)single;
        memcpy(&bits, &wide, sizeof bits);
    }
    return bits;
}

/* ---- PLAIN and BYTE_STREAM_SPLIT ---- */

static const char *plain_texts(struct decoding *decoding)
{
    struct parquet_span *spans = decoding->values->spans;
    const uint8_t *bytes = decoding->bytes;
    const uint64_t left = decoding->left;
    uint64_t at = 0;
    decoding->values->text = (const char *)bytes;
    for (uint64_t i = 0; i < decoding->count; i++) {
        if (left - at < 4)
            return ENDS_EARLY;
        const uint32_t length = load32(bytes + at);
        at += 4;
        if (length > left - at)
            return ENDS_EARLY;
        spans[i] = (struct parquet_span){(uint32_t)at, length};
        at += length;
    }
    return NULL;
}

static const char *plain_bools(struct decoding *decoding)
{
    if (decoding->left < div_ceil(decoding->count, 8))
        return ENDS_EARLY;
    for (uint64_t i = 0; i < decoding->count; i++)
        decoding->values->numbers[i] = decoding->bytes[i / 8] >> i % 8 & 1;
    return NULL;
}

static const char *plain(struct decoding *decoding)
{
    const struct parquet_column *column = decoding->column;
    const uint64_t width = fixed_bytes(column), count = decoding->count;
    uint64_t *numbers = decoding->values->numbers;
    if (column->kind.type == PARQUET_BYTE_ARRAY)
        return plain_texts(decoding);
    if (column->kind.type == PARQUET_BOOLEAN)
        return plain_bools(decoding);
    if (count > decoding->left / width)
        return ENDS_EARLY;
    if (column->kind.type == PARQUET_FIXED) {
        decoding->values->text = (const char *)decoding->bytes;
        for (uint64_t i = 0; i < count; i++)
            decoding->values->spans[i] = (struct parquet_span){(uint32_t)(i * width), (uint32_t)width};
    } else if (width == 8) {
        if (count)
            memcpy(numbers, decoding->bytes, count * 8);
    } else if (width == 4) {
        for (uint64_t i = 0; i < count; i++)
            numbers[i] = number_of(column, load32(decoding->bytes + 4 * i));
    } else {
        return WRONG_ENCODING;
    }
    return NULL;
}

static const char *stream_split(struct decoding *decoding)
{
    const struct parquet_column *column = decoding->column;
    const uint64_t width = fixed_bytes(column), count = decoding->count;
    if (!width || column->kind.type == PARQUET_INT96)
        return WRONG_ENCODING;
    if (count > decoding->left / width)
        return ENDS_EARLY;
    /* Where a byte of a value is depends on how many values there are. */
    if (count * width != decoding->left)
        return "it has the bytes of more values than it says";
    if (column->kind.type != PARQUET_FIXED) {
        for (uint64_t i = 0; i < count; i++) {
            uint64_t bits = 0;
            for (unsigned k = 0; k < width; k++)
                bits |= (uint64_t)decoding->bytes[k * count + i] << 8 * k;
            decoding->values->numbers[i] = number_of(column, bits);
        }
        return NULL;
    }
    char *owned = decoding->values->owned = malloc(count * width + 1);
    if (!owned)
        return PARQUET_NO_MEMORY;
    decoding->values->text = owned;
    for (uint64_t i = 0; i < count; i++) {
        decoding->values->spans[i] = (struct parquet_span){(uint32_t)(i * width), (uint32_t)width};
        for (uint64_t k = 0; k < width; k++)
            owned[i * width + k] = (char)decoding->bytes[k * count + i];
    }
    return NULL;
}

/* ---- dictionaries and runs ---- */

static const char *dictionary_values(struct decoding *decoding, const struct parquet_values *dictionary)
{
    struct parquet_values *values = decoding->values;
    struct parquet_hybrid hybrid;
    uint32_t indexes[BLOCK];
    if (!dictionary)
        return "its values are indexes of a dictionary, and its column has none in this row group";
    values->text = dictionary->text;
    if (!decoding->count)
        return NULL;
    if (!decoding->left)
        return ENDS_EARLY;
    parquet_hybrid_begin(&hybrid, decoding->bytes + 1, decoding->left - 1, decoding->bytes[0]);
    for (uint64_t done = 0; done < decoding->count;) {
        const uint64_t some = min64(decoding->count - done, BLOCK);
        const char *fault = parquet_hybrid_take(&hybrid, indexes, some);
        if (fault)
            return fault;
        uint32_t largest = 0;
        for (uint64_t i = 0; i < some; i++)
            largest = largest > indexes[i] ? largest : indexes[i];
        if (largest >= dictionary->count)
            return "an index is outside of the dictionary";
        if (values->spans)
            for (uint64_t i = 0; i < some; i++)
                values->spans[done + i] = dictionary->spans[indexes[i]];
        else
            for (uint64_t i = 0; i < some; i++)
                values->numbers[done + i] = dictionary->numbers[indexes[i]];
        done += some;
    }
    return NULL;
}

static const char *run_bools(struct decoding *decoding)
{
    struct parquet_hybrid hybrid;
    if (decoding->column->kind.type != PARQUET_BOOLEAN)
        return WRONG_ENCODING;
    if (decoding->left < 4)
        return ENDS_EARLY;
    const uint64_t bytes = load32(decoding->bytes);
    if (bytes > decoding->left - 4)
        return ENDS_EARLY;
    parquet_hybrid_begin(&hybrid, decoding->bytes + 4, bytes, 1);
    for (uint64_t i = 0; i < decoding->count; i++) {
        uint32_t value;
        const char *fault = parquet_hybrid_take(&hybrid, &value, 1);
        if (fault)
            return fault;
        decoding->values->numbers[i] = value;
    }
    return NULL;
}

/* ---- DELTA ---- */

/*
 * DELTA_BINARY_PACKED: the number of values in a block, of miniblocks in a block, of all values, and the first value,
 * as varints; then blocks. A block has its smallest difference, the bits of each miniblock, a byte each, and then the
 * miniblocks: what the differences exceed the smallest one by, bit-packed. Example, 4 values in a miniblock: 7 5 3 1 2
 * begins with 7; its differences are -2 -2 -2 1; the smallest is -2; so 0 0 0 3 are packed with 2 bits each.
 */
struct delta {
    const uint8_t *at, *end;
    uint64_t block, miniblocks, each; /* values of a block and of a miniblock, and miniblocks of a block */
    uint64_t left;                    /* values that were not taken, with the first one */
    uint64_t value;                   /* the next one is made from it */
    bool first;
    uint64_t smallest;     /* difference of the block, modulo 2^64 */
    uint64_t in_block;     /* values of the block that were not taken */
    const uint8_t *widths; /* of the miniblocks of the block */
};

static const char *delta_varint(struct delta *delta, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (delta->at == delta->end)
            return ENDS_EARLY;
        const uint8_t byte = *delta->at++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return NULL;
    }
    return "an integer has more than 64 bits";
}

static const char *delta_zigzag(struct delta *delta, uint64_t *value)
{
    const char *fault = delta_varint(delta, value);
    *value = *value >> 1 ^ (0 - (*value & 1));
    return fault;
}

static const char *delta_begin(struct delta *delta, const uint8_t *bytes, uint64_t count)
{
    *delta = (struct delta){.at = bytes, .end = bytes + count, .first = true};
    const char *fault = delta_varint(delta, &delta->block);
    if (!fault)
        fault = delta_varint(delta, &delta->miniblocks);
    if (!fault)
        fault = delta_varint(delta, &delta->left);
    if (!fault)
        fault = delta_zigzag(delta, &delta->value);
    if (fault)
        return fault;
    if (!delta->block || delta->block > 1 << 24 || !delta->miniblocks || delta->miniblocks > delta->block ||
        delta->block % delta->miniblocks || delta->block / delta->miniblocks % 8)
        return "the size of its blocks of differences is impossible";
    delta->each = delta->block / delta->miniblocks;
    return NULL;
}

/* Begins the next block. */
static const char *delta_block(struct delta *delta)
{
    const char *fault = delta_zigzag(delta, &delta->smallest);
    if (fault)
        return fault;
    if ((uint64_t)(delta->end - delta->at) < delta->miniblocks)
        return ENDS_EARLY;
    delta->widths = delta->at;
    delta->at += delta->miniblocks;
    delta->in_block = delta->block;
    return NULL;
}

/* Unpacks `count` values of `width` bits, up to 64. The bytes must be there. */
static void delta_unpack(const uint8_t *bytes, uint64_t bytes_count, unsigned width, uint64_t *into, uint64_t count)
{
    const uint64_t mask = width == 64 ? UINT64_MAX : ((uint64_t)1 << width) - 1;
    for (uint64_t i = 0, bit = 0; i < count; i++, bit += width) {
        const uint64_t at = bit / 8, shift = bit % 8;
        uint64_t low = 0, high = 0;
        if (bytes_count - at >= 9) {
            low = load64(bytes + at);
            high = bytes[at + 8];
        } else {
            uint8_t tail[9] = {0};
            memcpy(tail, bytes + at, bytes_count - at);
            low = load64(tail);
            high = tail[8];
        }
        into[i] = (low >> shift | (shift ? high << (64 - shift) : 0)) & mask;
    }
}

/* Takes `count` values. Returns a fault if there are fewer. */
static const char *delta_take(struct delta *delta, uint64_t *into, uint64_t count)
{
    if (count > delta->left)
        return "it has fewer differences than values";
    delta->left -= count;
    uint64_t done = 0;
    if (count && delta->first) {
        into[done++] = delta->value;
        delta->first = false;
    }
    while (done < count) {
        if (!delta->in_block) {
            const char *fault = delta_block(delta);
            if (fault)
                return fault;
        }
        /* Callers take all values at once, so a miniblock is never continued. */
        const uint64_t number = (delta->block - delta->in_block) / delta->each;
        const unsigned width = delta->widths[number];
        const uint64_t some = min64(delta->each, count - done), have = (uint64_t)(delta->end - delta->at);
        const uint64_t bytes = delta->each / 8 * width;
        if (width > 64)
            return "its differences have more than 64 bits";
        /* Some writers leave out the padding of the last miniblock. */
        if (div_ceil(some * width, 8) > have)
            return ENDS_EARLY;
        delta_unpack(delta->at, min64(bytes, have), width, into + done, some);
        for (uint64_t i = 0; i < some; i++)
            into[done + i] = delta->value += into[done + i] + delta->smallest;
        done += some;
        delta->at += min64(bytes, have);
        delta->in_block -= delta->each;
    }
    return NULL;
}

/* Decodes all values of a DELTA_BINARY_PACKED part of the page, and takes its bytes. */
static const char *delta_all(struct decoding *decoding, uint64_t *into, uint64_t count)
{
    struct delta delta;
    const char *fault = delta_begin(&delta, decoding->bytes, decoding->left);
    if (!fault && delta.left != count)
        fault = "it has another number of differences than of values";
    if (!fault)
        fault = delta_take(&delta, into, count);
    if (fault)
        return fault;
    decoding->left -= (uint64_t)(delta.at - decoding->bytes);
    decoding->bytes = delta.at;
    return NULL;
}

static const char *delta_numbers(struct decoding *decoding)
{
    const struct parquet_column *column = decoding->column;
    uint64_t *numbers = decoding->values->numbers;
    if (column->kind.type != PARQUET_INT32 && column->kind.type != PARQUET_INT64)
        return WRONG_ENCODING;
    const char *fault = delta_all(decoding, numbers, decoding->count);
    if (!fault && column->kind.type == PARQUET_INT32)
        for (uint64_t i = 0; i < decoding->count; i++)
            numbers[i] = number_of(column, numbers[i]);
    return fault;
}

/* Decodes lengths, and then finds the texts, which follow them one after another. */
static const char *delta_lengths(struct decoding *decoding, uint64_t *lengths)
{
    const char *fault = delta_all(decoding, lengths, decoding->count);
    uint64_t at = 0;
    if (fault)
        return fault;
    decoding->values->text = (const char *)decoding->bytes;
    for (uint64_t i = 0; i < decoding->count; i++) {
        if (lengths[i] > decoding->left - at)
            return (int64_t)lengths[i] < 0 ? "a text has a negative length" : ENDS_EARLY;
        decoding->values->spans[i] = (struct parquet_span){(uint32_t)at, (uint32_t)lengths[i]};
        at += lengths[i];
    }
    return NULL;
}

/* Decodes texts of which each shares its first prefixes[i] bytes with the one before. */
static const char *delta_prefixes(struct decoding *decoding, const uint64_t *prefixes, uint64_t *lengths)
{
    struct parquet_values *values = decoding->values;
    const char *fault = delta_lengths(decoding, lengths);
    uint64_t total = 0, before = 0;
    if (fault)
        return fault;
    for (uint64_t i = 0; i < decoding->count; i++) {
        if (prefixes[i] > before)
            return "a text shares more bytes with the one before than that has";
        before = prefixes[i] + values->spans[i].bytes;
        total += before;
        if (total > decoding->shared_most)
            return "its texts take too much memory; write the file with smaller pages";
        if (decoding->column->kind.type == PARQUET_FIXED && before != decoding->column->kind.type_bytes)
            return "a text has another length than its column";
    }
    char *owned = values->owned = malloc(total + 1);
    if (!owned)
        return PARQUET_NO_MEMORY;
    uint64_t at = 0, last = 0;
    for (uint64_t i = 0; i < decoding->count; i++) {
        const struct parquet_span rest = values->spans[i];
        memcpy(owned + at, owned + last, prefixes[i]);
        memcpy(owned + at + prefixes[i], values->text + rest.offset, rest.bytes);
        last = at;
        values->spans[i] = (struct parquet_span){(uint32_t)at, (uint32_t)(prefixes[i] + rest.bytes)};
        at += values->spans[i].bytes;
    }
    values->text = owned;
    return NULL;
}

static const char *delta_texts(struct decoding *decoding, bool shared)
{
    if (!is_text(decoding->column) || (!shared && decoding->column->kind.type != PARQUET_BYTE_ARRAY))
        return WRONG_ENCODING;
    uint64_t *lengths = malloc((decoding->count + 1) * sizeof *lengths);
    uint64_t *prefixes = shared ? malloc((decoding->count + 1) * sizeof *prefixes) : NULL;
    const char *fault = !lengths || (shared && !prefixes) ? PARQUET_NO_MEMORY : NULL;
    if (!fault && shared)
        fault = delta_all(decoding, prefixes, decoding->count);
    if (!fault)
        fault = shared ? delta_prefixes(decoding, prefixes, lengths) : delta_lengths(decoding, lengths);
    free(lengths);
    free(prefixes);
    return fault;
}

/* ---- all ---- */

const char *parquet_values_decode(struct parquet_values *values, const struct parquet_column *column, int encoding,
                                  const uint8_t *bytes, uint64_t bytes_count, uint64_t count, uint64_t room,
                                  const struct parquet_values *dictionary, uint64_t shared_most)
{
    assert(shared_most <= PARQUET_SHARED_MOST);
    assert(count <= room && room < UINT32_MAX && bytes_count <= UINT32_MAX);
    struct decoding decoding = {values, column, bytes, bytes_count, count, shared_most};
    values->count = count;
    if (is_text(column))
        values->spans = malloc((room + 1) * sizeof *values->spans);
    else
        values->numbers = malloc((room + 1) * sizeof *values->numbers);
    if (!values->spans && !values->numbers)
        return PARQUET_NO_MEMORY;
    switch (encoding) {
    case PARQUET_PLAIN:
        return plain(&decoding);
    case PARQUET_PLAIN_DICTIONARY:
    case PARQUET_RLE_DICTIONARY:
        return dictionary_values(&decoding, dictionary);
    case PARQUET_RLE:
        return run_bools(&decoding);
    case PARQUET_DELTA_BINARY_PACKED:
        return delta_numbers(&decoding);
    case PARQUET_DELTA_LENGTH_BYTE_ARRAY:
        return delta_texts(&decoding, false);
    case PARQUET_DELTA_BYTE_ARRAY:
        return delta_texts(&decoding, true);
    case PARQUET_BYTE_STREAM_SPLIT:
        return stream_split(&decoding);
    default:
        return "its encoding is not known to this tokmap" PARQUET_REWRITE " with another encoding, such as PLAIN";
    }
}

void parquet_values_free(struct parquet_values *values)
{
    free(values->spans);
    free(values->numbers);
    free(values->owned);
    *values = (struct parquet_values){0};
}
