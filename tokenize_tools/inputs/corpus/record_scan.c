/* SPDX-License-Identifier: MIT */
/*
 * record_scan.c - see record_scan.h.
 *
 * JSON needs three things to find the commas of the outermost array: whether a byte is inside a string, whether it
 * follows a backslash there, and how many brackets are open. CSV needs to know whether a quote opens a field, because a
 * newline inside quotes does not end the record. Example: in  a,"b<newline>c"<newline>  the first newline belongs to
 * the field, and the second one ends the record. In  a,5"<newline>  the quote does not open the field, so the newline
 * ends the record.
 */
#include "record_scan.h"

#include <assert.h>
#include <string.h>

#include "common/bytes.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

void record_scan_begin(struct record_scan *scan, enum corpus_format format)
{
    assert(format > CORPUS_TEXT);
    memset(scan, 0, sizeof *scan);
    scan->format = format;
    scan->state = RECORD_BEGIN;
}

void record_scan_begin_separated(struct record_scan *scan, const char *separator, uint64_t separator_bytes)
{
    assert(separator_bytes && separator_bytes <= RECORD_SEPARATOR_MOST);
    record_scan_begin(scan, CORPUS_SEPARATED);
    scan->separator = separator;
    scan->separator_bytes = (uint32_t)separator_bytes;
}

char record_scan_separator(enum corpus_format format)
{
    return format == CORPUS_TSV ? '\t' : ',';
}

#if defined(__SSE2__)
static inline __m128i newlines_16(const char *bytes)
{
    return _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(const void *)bytes), _mm_set1_epi8('\n'));
}

static inline uint64_t bytes_sum(__m128i bytes)
{
    const __m128i two = _mm_sad_epu8(bytes, _mm_setzero_si128());
    return (uint64_t)_mm_cvtsi128_si64(two) + (uint64_t)_mm_cvtsi128_si64(_mm_unpackhi_epi64(two, two));
}

/* Returns the newlines in `groups` times 64 bytes, at most 63 times: each byte of a vector counts up to 252 of them. */
static inline uint64_t newlines_64(const char *bytes, uint64_t groups)
{
    __m128i sums = _mm_setzero_si128();
    for (uint64_t i = 0; i < groups; i++, bytes += 64) {
        const __m128i some = _mm_add_epi8(newlines_16(bytes), newlines_16(bytes + 16));
        sums = _mm_sub_epi8(sums, _mm_add_epi8(some, _mm_add_epi8(newlines_16(bytes + 32), newlines_16(bytes + 48))));
    }
    return bytes_sum(sums);
}
#endif

uint64_t record_scan_lines(const char *bytes, uint64_t count)
{
    uint64_t found = 0, i = 0;
#if defined(__SSE2__)
    while (count - i >= 64) {
        const uint64_t groups = min64((count - i) / 64, 63);
        found += newlines_64(bytes + i, groups);
        i += 64 * groups;
    }
    __m128i sums = _mm_setzero_si128();
    for (; count - i >= 16; i += 16)
        sums = _mm_sub_epi8(sums, newlines_16(bytes + i));
    found += bytes_sum(sums);
#endif
    for (; i < count; i++)
        found += bytes[i] == '\n';
    return found;
}

/* Returns the index of the first byte that is one of the three, or `count`. */
static uint64_t find_three(const char *bytes, uint64_t from, uint64_t count, char a, char b, char c)
{
    uint64_t i = from;
#if defined(__SSE2__)
    const __m128i first = _mm_set1_epi8(a), second = _mm_set1_epi8(b), third = _mm_set1_epi8(c);
    for (; count - i >= 16; i += 16) {
        const __m128i some = _mm_loadu_si128((const __m128i *)(const void *)(bytes + i));
        const __m128i found = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(some, first), _mm_cmpeq_epi8(some, second)),
                                           _mm_cmpeq_epi8(some, third));
        const unsigned mask = (unsigned)_mm_movemask_epi8(found);
        if (mask)
            return i + (unsigned)__builtin_ctz(mask);
    }
#endif
    while (i < count && bytes[i] != a && bytes[i] != b && bytes[i] != c)
        i++;
    return i;
}

/* Ends a segment: the next one begins in `state`. */
static uint64_t segment_end(struct record_scan *scan, enum record_state state, enum record_kind found, uint64_t taken,
                            enum record_kind *kind)
{
    scan->state = state;
    scan->filled = scan->string = scan->escape = scan->loose = false;
    scan->depth = 0;
    scan->record += found == RECORD_WHOLE;
    *kind = found;
    return taken;
}

/* ---- JSON ---- */

static bool is_space(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

/* Continues in a string. Returns the index after its closing quote, or `count`. */
static uint64_t string_take(struct record_scan *scan, const char *bytes, uint64_t i, uint64_t count)
{
    while (i < count) {
        if (scan->escape) {
            scan->escape = false;
            i++;
            continue;
        }
        i = find_three(bytes, i, count, '"', '\\', '"');
        if (i == count)
            break;
        scan->escape = bytes[i] == '\\';
        scan->string = scan->escape;
        i++;
        if (!scan->string)
            break;
    }
    return i;
}

/* Takes an element of the outermost array, up to the comma after it or the bracket that closes the array. */
static uint64_t element_take(struct record_scan *scan, const char *bytes, uint64_t count, enum record_kind *kind)
{
    for (uint64_t i = 0; i < count;) {
        if (scan->string) {
            i = string_take(scan, bytes, i, count);
            continue;
        }
        const char byte = bytes[i++];
        const bool outside = !scan->depth;
        if (outside && byte == ',')
            return segment_end(scan, RECORD_ARRAY, RECORD_WHOLE, i, kind);
        if (outside && byte == ']') {
            /* "[]" has no record, but after a comma one must follow. */
            const bool none = scan->state == RECORD_ARRAY_FIRST && !scan->filled;
            return segment_end(scan, RECORD_AFTER, none ? RECORD_BLANK : RECORD_WHOLE, i, kind);
        }
        scan->string = byte == '"';
        scan->depth += byte == '{' || byte == '[';
        scan->depth -= !outside && (byte == '}' || byte == ']');
        scan->filled = scan->filled || !is_space(byte);
    }
    return count;
}

/* Takes a value of a sequence of values. Only objects and arrays have an end of their own; anything else is not a
 * record, and is taken up to the end of its line. */
static uint64_t value_take(struct record_scan *scan, const char *bytes, uint64_t count, enum record_kind *kind)
{
    for (uint64_t i = 0; i < count;) {
        if (scan->string) {
            i = string_take(scan, bytes, i, count);
            continue;
        }
        const char byte = bytes[i++];
        if (scan->loose) {
            if (byte == '\n')
                return segment_end(scan, RECORD_SEQUENCE, RECORD_WHOLE, i, kind);
            continue;
        }
        if (!scan->filled && is_space(byte))
            continue;
        const bool opens = byte == '{' || byte == '[';
        scan->loose = !scan->filled && !opens;
        scan->filled = true;
        scan->string = byte == '"' && !scan->loose;
        scan->depth += opens;
        scan->depth -= scan->depth && (byte == '}' || byte == ']');
        if (!scan->depth && !scan->loose)
            return segment_end(scan, RECORD_SEQUENCE, RECORD_WHOLE, i, kind);
    }
    return count;
}

static uint64_t json_take(struct record_scan *scan, const char *bytes, uint64_t count, enum record_kind *kind)
{
    if (scan->state == RECORD_BEGIN) {
        uint64_t i = 0;
        while (i < count && is_space(bytes[i]))
            i++;
        if (i == count)
            return count;
        if (bytes[i] == '[')
            return segment_end(scan, RECORD_ARRAY_FIRST, RECORD_BLANK, i + 1, kind);
        scan->state = RECORD_SEQUENCE;
    }
    if (scan->state == RECORD_SEQUENCE)
        return value_take(scan, bytes, count, kind);
    if (scan->state == RECORD_AFTER)
        return count; /* all that follows an array is one segment, which ought to be blank */
    return element_take(scan, bytes, count, kind);
}

/* ---- CSV ---- */

static uint64_t row_take(struct record_scan *scan, const char *bytes, uint64_t count, enum record_kind *kind)
{
    const char separator = record_scan_separator(scan->format);
    for (uint64_t i = 0; i < count;) {
        if (scan->state == RECORD_QUOTED) {
            i = find_three(bytes, i, count, '"', '"', '"');
            while (count - i >= 2 && bytes[i] == '"' && bytes[i + 1] == '"') /* doubled */
                i = find_three(bytes, i + 2, count, '"', '"', '"');
            scan->state = i < count ? RECORD_QUOTE : RECORD_QUOTED;
            i += i < count;
            continue;
        }
        if (scan->state == RECORD_FIELD) {
            i = find_three(bytes, i, count, separator, '\n', '\r');
            if (i == count)
                break;
        }
        const char byte = bytes[i++];
        if (byte == '\n')
            return segment_end(scan, RECORD_BEGIN, scan->filled ? RECORD_WHOLE : RECORD_BLANK, i, kind);
        if (byte == '\r') {
            scan->filled |= scan->state == RECORD_RETURN;
            scan->state = RECORD_RETURN;
            continue;
        }
        scan->filled = true;
        if (byte == separator)
            scan->state = RECORD_FIELD_BEGIN;
        else if (byte == '"' &&
                 (scan->state == RECORD_BEGIN || scan->state == RECORD_FIELD_BEGIN || scan->state == RECORD_QUOTE))
            scan->state = RECORD_QUOTED;
        else
            scan->state = RECORD_FIELD;
    }
    return count;
}

/* ---- texts between separators ---- */

/* Returns how many bytes of the separator match if the next byte is `byte`, and before it `matched` bytes matched: the
 * longest start of the separator that ends with this byte. Separators are short, so the starts are tried one by one. */
static uint32_t match_step(const struct record_scan *scan, uint32_t matched, char byte)
{
    const char *separator = scan->separator;
    for (uint32_t length = matched + 1; length; length--) {
        /* The bytes before this one are separator[0..matched), of which the last length - 1 have to fit. */
        if (separator[length - 1] == byte && !memcmp(separator, separator + (matched + 1 - length), length - 1))
            return length;
    }
    return 0;
}

/* Returns the longest start of the separator, but not all of it, that ends the bytes. */
static uint32_t match_at_end(const struct record_scan *scan, const char *bytes, uint64_t count)
{
    for (uint32_t length = (uint32_t)min64(count, scan->separator_bytes - 1); length; length--)
        if (!memcmp(bytes + count - length, scan->separator, length))
            return length;
    return 0;
}

static uint64_t text_take(struct record_scan *scan, const char *bytes, uint64_t count, enum record_kind *kind)
{
    uint64_t i = 0;
    while (scan->matched && scan->matched < scan->separator_bytes && i < count) /* it may have begun in earlier bytes */
        scan->matched = match_step(scan, scan->matched, bytes[i++]);
    if (!scan->matched && i < count) {
        const char *found = memmem(bytes + i, count - i, scan->separator, scan->separator_bytes);
        scan->matched = found ? scan->separator_bytes : match_at_end(scan, bytes + i, count - i);
        i = found ? (uint64_t)(found - bytes) + scan->separator_bytes : count;
    }
    scan->depth += i;
    if (scan->matched < scan->separator_bytes)
        return count;
    const bool filled = scan->depth > scan->separator_bytes;
    scan->matched = 0;
    return segment_end(scan, RECORD_BEGIN, filled ? RECORD_WHOLE : RECORD_BLANK, i, kind);
}

/* ---- WARC ---- */

static uint64_t warc_take(struct record_scan *scan, const char *bytes, uint64_t count, enum record_kind *kind)
{
    enum warc_end end;
    const uint64_t taken = warc_scan_take(&scan->warc, bytes, count, &end);
    *kind = end == WARC_OPEN ? RECORD_UNFINISHED : end == WARC_RECORD ? RECORD_WHOLE : RECORD_BLANK;
    scan->record += end == WARC_RECORD;
    return taken;
}

uint64_t record_scan_take(struct record_scan *scan, const char *bytes, uint64_t count, enum record_kind *kind)
{
    *kind = RECORD_UNFINISHED;
    if (!count)
        return 0;
    if (scan->format == CORPUS_JSON)
        return json_take(scan, bytes, count, kind);
    if (scan->format == CORPUS_SEPARATED)
        return text_take(scan, bytes, count, kind);
    if (scan->format == CORPUS_WARC)
        return warc_take(scan, bytes, count, kind);
    if (scan->format != CORPUS_JSONL)
        return row_take(scan, bytes, count, kind);
    const char *newline = memchr(bytes, '\n', count);
    if (!newline)
        return count;
    *kind = RECORD_WHOLE;
    scan->record++;
    return (uint64_t)(newline - bytes) + 1;
}
