/* SPDX-License-Identifier: MIT */
/*
 * id_list.c - see id_list.h.
 *
 * Method. A number is read with one load of eight bytes. XOR with '0' in each byte leaves 0 to 9 in the digits. Adding
 * 0x76 to each byte sets the highest bit of the bytes that are more than 9, so the lowest bit that is set says how many
 * digits there are. They are shifted to the top of the word, which puts zeros before them, and three multiplications
 * add up pairs, then groups of four, then all eight. For example, of "50256, 1" the first byte that is not a digit is
 * byte 5; the word is shifted by three bytes, and the digits are 0 0 0 5 0 2 5 6.
 */
#include "id_list.h"

#include <assert.h>
#include <string.h>

#include "text/decimal.h"

#define ZEROS UINT64_C(0x3030303030303030)
#define TO_HIGH UINT64_C(0x7676767676767676)
#define HIGH UINT64_C(0x8080808080808080)
/* Bytes after a number that the fast loop reads: those of one load. */
#define LOAD 8

uint64_t id_list_room(const char *text, size_t count, size_t *bytes)
{
    assert(count && *text == '[');
    const char *end = memchr(text, ']', count);
    if (!end)
        return 0;
    const size_t inside = (size_t)(end - text);
    uint64_t room = 1;
    for (size_t i = 0; i < inside; i++)
        room += text[i] == ',';
    *bytes = inside + 1;
    return room;
}

static bool is_space(char byte)
{
    return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

static const char *space_skip(const char *at, const char *end)
{
    while (at < end && is_space(*at))
        at++;
    return at;
}

/* Reads a number by bytes, and moves *at past it. Returns false if there is none, or if it is 2^32 or more. */
static bool number_read(const char **at, const char *end, uint32_t *number)
{
    uint64_t value = 0;
    const char *first = *at, *digit = first;
    while (digit < end && decimal_is_digit(*digit) && value <= UINT32_MAX)
        value = 10 * value + (uint64_t)(*digit++ - '0');
    const bool zeros = *first == '0' && digit - first > 1;
    if (digit == first || value > UINT32_MAX || zeros)
        return false;
    *number = (uint32_t)value;
    *at = digit;
    return true;
}

/* Reads a number of at most seven digits from a place where eight bytes can be read. Returns false, and changes
 * nothing, if there is no number, if it has more digits, or if it begins with a zero that is not all of it. */
static inline bool number_read_fast(const char **at, uint32_t *number)
{
    uint64_t word;
    memcpy(&word, *at, sizeof word);
    word ^= ZEROS;
    const uint64_t others = ((word + TO_HIGH) | word) & HIGH;
    const unsigned digits = others ? (unsigned)__builtin_ctzll(others) / 8 : 8;
    if (digits - 1 >= 7 || (!(word & 0xff) && digits > 1))
        return false;
    word <<= 8 * (8 - digits);
    word = 10 * word + (word >> 8); /* byte 2i + 1 becomes pair i of digits; see the masks below */
    const uint64_t mask = UINT64_C(0x000000ff000000ff);
    word = (((word & mask) * (100 + (UINT64_C(1000000) << 32))) +
            (((word >> 16) & mask) * (1 + (UINT64_C(10000) << 32)))) >>
           32;
    *number = (uint32_t)word;
    *at += digits;
    return true;
}

bool id_list_read(const char *text, size_t count, uint32_t *ids, uint64_t *found, uint32_t *largest)
{
    const char *end = text + count, *at = space_skip(text + 1, end);
    uint32_t most = 0;
    uint64_t n = 0;
    assert(count && *text == '[');
    if (at < end && *at == ']') {
        *found = *largest = 0;
        return at + 1 == end;
    }
    while (at < end) {
        uint32_t id;
        const bool fast = end - at >= LOAD && number_read_fast(&at, &id);
        if (!fast && !number_read(&at, end, &id))
            return false;
        ids[n++] = id;
        most = id > most ? id : most;
        if (at < end && *at != ',')
            at = space_skip(at, end);
        if (at == end)
            return false;
        if (*at == ',') {
            at++;
            at += at < end && *at == ' ';
            if (at < end && !decimal_is_digit(*at))
                at = space_skip(at, end);
            continue;
        }
        *found = n;
        *largest = most;
        return *at == ']' && at + 1 == end;
    }
    return false;
}

/* Reads one value of a mask and moves *at past it. */
static bool mask_value_read(const char **at, const char *end, uint8_t *value)
{
    const char *text = *at;
    const size_t left = (size_t)(end - text);
    const bool is_true = left >= 4 && !memcmp(text, "true", 4), is_false = left >= 5 && !memcmp(text, "false", 5);
    if (left && (*text == '0' || *text == '1'))
        *at += 1;
    else if (is_true || is_false)
        *at += is_true ? 4 : 5;
    else
        return false;
    *value = is_true || *text == '1';
    return true;
}

bool mask_list_read(const char *text, size_t count, uint8_t *values, uint64_t *found)
{
    const char *end = text + count, *at = space_skip(text + 1, end);
    uint64_t n = 0;
    assert(count && *text == '[');
    if (at < end && *at == ']') {
        *found = 0;
        return at + 1 == end;
    }
    for (;;) {
        /* Most lists are "0, 0, 1, 1": a digit, a comma, and a space. */
        while (end - at >= 4 && (*at | 1) == '1' && at[1] == ',' && (at[3] == ',' || at[2] == ' ')) {
            values[n++] = *at & 1;
            at += at[2] == ' ' ? 3 : 2;
        }
        at = space_skip(at, end);
        if (!mask_value_read(&at, end, &values[n]))
            return false;
        n++;
        at = space_skip(at, end);
        if (at == end || *at != ',')
            break;
        at++;
    }
    *found = n;
    return at + 1 == end && *at == ']';
}

#define IGNORED "-100"

bool label_list_read(const char *text, size_t count, const uint32_t *ids, uint64_t id_count, uint8_t *values,
                     uint64_t *found)
{
    const char *end = text + count, *at = space_skip(text + 1, end);
    uint64_t n = 0;
    assert(count && *text == '[');
    for (bool more = at < end && *at != ']'; more; n++) {
        uint32_t id;
        at = space_skip(at, end);
        const bool ignored = (size_t)(end - at) > strlen(IGNORED) && !memcmp(at, IGNORED, strlen(IGNORED));
        at += ignored ? strlen(IGNORED) : 0;
        if (!ignored && (at == end || !number_read(&at, end, &id) || (n < id_count && id != ids[n])))
            return false;
        values[n] = !ignored;
        at = space_skip(at, end);
        more = at < end && *at == ',';
        at += more;
    }
    *found = n;
    return at + 1 == end && *at == ']';
}

/* ---- faults ---- */

/* What the elements of a list must be. */
struct list_rule {
    uint64_t vocabulary;
    const uint32_t *ids;
    uint64_t id_count;
};

/* Returns what is wrong with one element of a list of ids; NULL if it is an id. */
static const char *id_wrong(enum json_kind kind, const char *text, size_t count, const struct list_rule *rule,
                            uint64_t index)
{
    const uint64_t vocabulary = rule->vocabulary;
    (void)index;
    uint64_t id;
    if (kind != JSON_NUMBER)
        return "is not a number";
    if (decimal_parse(text, count, &id))
        return id < vocabulary ? NULL : "is not below the size of the vocabulary";
    for (size_t i = *text == '-'; i < count; i++)
        if (!decimal_is_digit(text[i]))
            return "is not written as a whole number";
    return *text == '-' ? "is negative" : "is not below the size of the vocabulary";
}

static const char *mask_wrong(enum json_kind kind, const char *text, size_t count, const struct list_rule *rule,
                              uint64_t index)
{
    (void)rule;
    (void)index;
    const bool digit = kind == JSON_NUMBER && count == 1 && (*text | 1) == '1';
    return digit || kind == JSON_TRUE || kind == JSON_FALSE ? NULL : "is not 0, 1, false, or true";
}

static const char *label_wrong(enum json_kind kind, const char *text, size_t count, const struct list_rule *rule,
                               uint64_t index)
{
    uint64_t id;
    if (kind != JSON_NUMBER)
        return "is not a number";
    if (count == strlen(IGNORED) && !memcmp(text, IGNORED, count))
        return NULL;
    return decimal_parse(text, count, &id) && (index < rule->id_count ? id == rule->ids[index] : id <= UINT32_MAX)
               ? NULL
               : "is neither -100 nor the id in its place, so the labels are shifted or changed";
}

static struct list_fault list_fault(const char *text, size_t count, const struct list_rule *rule,
                                    const char *(*wrong)(enum json_kind, const char *, size_t, const struct list_rule *,
                                                         uint64_t))
{
    struct json_scan scan;
    struct list_fault fault = {0};
    json_begin(&scan, text, count);
    if (!json_enter_array(&scan))
        return fault;
    while (!fault.reason && json_element(&scan)) {
        const enum json_kind kind = json_kind(&scan);
        const char *element;
        if (!json_value(&scan, &element, &fault.count))
            break;
        fault.reason = wrong(kind, element, fault.count, rule, fault.index);
        fault.offset = (size_t)(element - text);
        fault.index += !fault.reason;
    }
    return fault;
}

struct list_fault id_list_fault(const char *text, size_t count, uint64_t vocabulary)
{
    const struct list_rule rule = {.vocabulary = vocabulary};
    return list_fault(text, count, &rule, id_wrong);
}

struct list_fault mask_list_fault(const char *text, size_t count)
{
    return list_fault(text, count, NULL, mask_wrong);
}

struct list_fault label_list_fault(const char *text, size_t count, const uint32_t *ids, uint64_t id_count)
{
    const struct list_rule rule = {.ids = ids, .id_count = id_count};
    return list_fault(text, count, &rule, label_wrong);
}
