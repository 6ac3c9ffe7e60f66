/* SPDX-License-Identifier: MIT */
/*
 * gzip_text.c - RFC 1952 (gzip) and RFC 1951 (deflate). A code of Huffman is read bit by bit: codes of one length are
 * numbers in a row, so it is enough to know how many there are of each length, and their symbols in order.
 */
#include "gzip_text.h"

#include <string.h>

#include "common/error.h"

#define CODE_BITS 15
#define LITERALS 288 /* symbols of a code for literals and lengths */
#define DISTANCES 30
#define LENGTHS 19 /* symbols of the code for the lengths of codes */

struct source {
    const uint8_t *at, *end;
    uint64_t bits; /* read, but not used yet */
    uint32_t bit_count;
    bool good; /* false: the file is damaged, or ends too early */
};

struct code {
    uint16_t counts[CODE_BITS + 1]; /* by length: codes that have it */
    uint16_t symbols[LITERALS];
};

/* Takes up to 32 bits, the lowest one first. */
static uint32_t take(struct source *source, uint32_t count)
{
    while (source->bit_count < count) {
        source->good = source->good && source->at < source->end;
        if (!source->good)
            return 0;
        source->bits |= (uint64_t)*source->at++ << source->bit_count;
        source->bit_count += 8;
    }
    const uint32_t taken = (uint32_t)(source->bits & (((uint64_t)1 << count) - 1));
    source->bits >>= count;
    source->bit_count -= count;
    return taken;
}

/* Makes a code from the length of each symbol's code (0: it has none). Returns false if there are too many codes. Too
 * few are allowed, as for a text with one distance; a code that is missing is found when it is read. */
static bool code_make(struct code *code, const uint8_t *lengths, uint32_t count)
{
    uint16_t offsets[CODE_BITS + 2] = {0};
    int32_t left = 1;
    memset(code->counts, 0, sizeof code->counts);
    for (uint32_t i = 0; i < count; i++)
        code->counts[lengths[i]]++;
    code->counts[0] = 0;
    for (uint32_t bits = 1; bits <= CODE_BITS; bits++) {
        left = 2 * left - code->counts[bits];
        if (left < 0)
            return false;
        offsets[bits + 1] = (uint16_t)(offsets[bits] + code->counts[bits]);
    }
    for (uint32_t i = 0; i < count; i++)
        if (lengths[i])
            code->symbols[offsets[lengths[i]]++] = (uint16_t)i;
    return true;
}

/* Reads a symbol. Returns 0, with source->good false, if no symbol has the code. */
static uint32_t symbol_take(struct source *source, const struct code *code)
{
    uint32_t number = 0, first = 0, index = 0;
    while (source->bit_count < CODE_BITS && source->at < source->end) {
        source->bits |= (uint64_t)*source->at++ << source->bit_count;
        source->bit_count += 8;
    }
    for (uint32_t bits = 1; bits <= CODE_BITS && bits <= source->bit_count; bits++) {
        const uint32_t count = code->counts[bits];
        number |= (uint32_t)(source->bits >> (bits - 1)) & 1;
        if (number < first + count) {
            source->bits >>= bits;
            source->bit_count -= bits;
            return code->symbols[index + number - first];
        }
        index += count;
        first = (first + count) << 1;
        number <<= 1;
    }
    source->good = false;
    return 0;
}

/* Makes the codes of a block of fixed codes. */
static void codes_fixed(struct code *literals, struct code *distances)
{
    uint8_t lengths[LITERALS];
    for (uint32_t i = 0; i < LITERALS; i++)
        lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    (void)code_make(literals, lengths, LITERALS);
    memset(lengths, 5, DISTANCES);
    (void)code_make(distances, lengths, DISTANCES);
}

/* Reads the codes of a block. */
static bool codes_take(struct source *source, struct code *literals, struct code *distances)
{
    static const uint8_t order[LENGTHS] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    uint8_t lengths[LITERALS + DISTANCES + 140] = {0}; /* a repeat of at most 138 may begin at the last one */
    const uint32_t literal_count = take(source, 5) + 257, distance_count = take(source, 5) + 1;
    const uint32_t length_count = take(source, 4) + 4, count = literal_count + distance_count;
    if (!source->good || literal_count > 286 || distance_count > DISTANCES)
        return false;
    for (uint32_t i = 0; i < length_count; i++)
        lengths[order[i]] = (uint8_t)take(source, 3);
    if (!code_make(literals, lengths, LENGTHS))
        return false;
    memset(lengths, 0, LENGTHS);
    for (uint32_t i = 0; i < count && source->good;) {
        const uint32_t symbol = symbol_take(source, literals);
        if (symbol < 16) {
            lengths[i++] = (uint8_t)symbol;
            continue;
        }
        if (symbol == 16 && !i)
            return false;
        const uint8_t again = symbol == 16 ? lengths[i - 1] : 0;
        const uint32_t times = symbol == 16   ? 3 + take(source, 2)
                               : symbol == 17 ? 3 + take(source, 3)
                                              : 11 + take(source, 7);
        if (i + times > count)
            return false;
        memset(lengths + i, again, times);
        i += times;
    }
    return source->good && lengths[256] && code_make(literals, lengths, literal_count) &&
           code_make(distances, lengths + literal_count, distance_count);
}

/* Makes room for `more` bytes. */
static enum tokmap_status room_make(struct bytes_buffer *text, size_t more, const char *path,
                                    struct tokmap_error *error)
{
    if (text->count + more > GZIP_TEXT_MOST)
        return error_set(error, TOKMAP_ERROR_LIMIT, path, TOKMAP_NO_OFFSET,
                         "the file has more than 64 MiB when it is unpacked, which is the most that tokmap can read; "
                         "unpack it, and name the result");
    return bytes_reserve(text, more) ? TOKMAP_OK : error_set_memory(error, "a vocabulary file", text->count + more);
}

/* Appends what a block of codes says. Leaves source->good false if it is damaged. */
static enum tokmap_status block_coded(struct source *source, const struct code *literals, const struct code *distances,
                                      struct bytes_buffer *text, const char *path, struct tokmap_error *error)
{
    static const uint16_t lengths[] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                       31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const uint16_t distances_from[] = {1,    2,    3,    4,    5,    7,    9,    13,    17,    25,
                                              33,   49,   65,   97,   129,  193,  257,  385,   513,   769,
                                              1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
    for (;;) {
        const uint32_t symbol = symbol_take(source, literals);
        if (!source->good || symbol == 256)
            return TOKMAP_OK;
        const enum tokmap_status status = room_make(text, 258, path, error);
        if (status)
            return status;
        if (symbol < 256) {
            text->bytes[text->count++] = (uint8_t)symbol;
            continue;
        }
        const uint32_t at = symbol - 257;
        if (at >= sizeof lengths / sizeof *lengths) {
            source->good = false;
            return TOKMAP_OK;
        }
        const uint32_t length = lengths[at] + take(source, at < 8 || at == 28 ? 0 : at / 4 - 1);
        const uint32_t far = symbol_take(source, distances);
        const uint32_t distance = distances_from[far] + take(source, far < 4 ? 0 : far / 2 - 1);
        source->good = source->good && distance <= text->count;
        for (uint32_t i = 0; i < length && source->good; i++, text->count++)
            text->bytes[text->count] = text->bytes[text->count - distance];
    }
}

/* Appends a block that is not compressed. */
static enum tokmap_status block_stored(struct source *source, struct bytes_buffer *text, const char *path,
                                       struct tokmap_error *error)
{
    (void)take(source, source->bit_count % 8);
    const uint32_t count = take(source, 16), inverse = take(source, 16);
    source->at -= source->bit_count / 8; /* loaded ahead */
    source->bits = source->bit_count = 0;
    source->good = source->good && count == (inverse ^ 0xFFFF) && count <= (size_t)(source->end - source->at);
    if (!source->good)
        return TOKMAP_OK;
    const enum tokmap_status status = room_make(text, count + 1, path, error);
    if (!status) {
        (void)bytes_append(text, source->at, count);
        source->at += count;
    }
    return status;
}

/* Skips the header. */
static void header_skip(struct source *source)
{
    const uint32_t magic = take(source, 24), flags = take(source, 8);
    (void)take(source, 32);
    (void)take(source, 16);
    source->good = source->good && magic == 0x088B1F && !(flags & 0xE0);
    for (uint32_t left = flags & 4 ? take(source, 16) : 0; left && source->good; left--)
        (void)take(source, 8);
    for (uint32_t texts = (flags >> 3 & 1) + (flags >> 4 & 1); texts && source->good; texts--) /* name and comment */
        while (take(source, 8) && source->good)
            continue;
    if (flags & 2)
        (void)take(source, 16);
}

/* Returns the checksum of gzip: CRC-32. */
static uint32_t checksum(const uint8_t *bytes, size_t count)
{
    static const uint32_t table[16] = {0x00000000, 0x1DB71064, 0x3B6E20C8, 0x26D930AC, 0x76DC4190, 0x6B6B51F4,
                                       0x4DB26158, 0x5005713C, 0xEDB88320, 0xF00F9344, 0xD6D6A3E8, 0xCB61B38C,
                                       0x9B64C2B0, 0x86D3D2D4, 0xA00AE278, 0xBDBDF21C};
    uint32_t sum = UINT32_MAX;
    for (size_t i = 0; i < count; i++) {
        sum = table[(sum ^ bytes[i]) & 15] ^ sum >> 4;
        sum = table[(sum ^ bytes[i] >> 4) & 15] ^ sum >> 4;
    }
    return ~sum;
}

bool gzip_text_is(const char *bytes, uint64_t count)
{
    return count >= 3 && !memcmp(bytes, "\x1F\x8B\x08", 3);
}

enum tokmap_status gzip_text_unpack(struct bytes_buffer *text, const char *path, const char *bytes, uint64_t count,
                                    struct tokmap_error *error)
{
    struct source source = {.at = (const uint8_t *)bytes, .end = (const uint8_t *)bytes + count, .good = true};
    struct code literals, distances;
    enum tokmap_status status = TOKMAP_OK;
    bool last = false;
    header_skip(&source);
    while (!last && !status && source.good) {
        last = take(&source, 1);
        const uint32_t kind = take(&source, 2);
        if (kind == 1)
            codes_fixed(&literals, &distances);
        else if (kind == 2)
            source.good = codes_take(&source, &literals, &distances);
        else
            source.good = source.good && !kind;
        if (source.good && kind)
            status = block_coded(&source, &literals, &distances, text, path, error);
        else if (source.good)
            status = block_stored(&source, text, path, error);
    }
    if (status)
        return status;
    (void)take(&source, source.bit_count % 8);
    const uint32_t sum = take(&source, 32), length = take(&source, 32);
    if (!source.good || length != (uint32_t)text->count || source.at - source.bit_count / 8 < source.end ||
        sum != checksum(text->bytes, text->count))
        return error_set(error, TOKMAP_ERROR_FORMAT, path, (uint64_t)(source.at - (const uint8_t *)bytes),
                         "the gzip file is damaged or incomplete");
    return TOKMAP_OK;
}
