/* SPDX-License-Identifier: MIT */
/*
 * warc_scan.c - see warc_scan.h.
 *
 * The scanner sees a header in stretches of any size, and its state must stay small. So it keeps the first bytes of one
 * line, which suffice for the three lines that decide how the file continues: Content-Length, WARC-Type, Content-Type.
 * The other lines are read later, by the thread that makes the document and has the whole header.
 */
#include "warc_scan.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "common/bytes.h"

#define MARK "WARC/1."
#define MARK_BYTES 7

enum { FIELD_NONE, FIELD_LENGTH, FIELD_TYPE };

const char *warc_fault_text(enum warc_fault fault)
{
    static const char *const texts[] = {
#define FAULT_TEXT(name, text) text,
        WARC_FAULT_MAP(FAULT_TEXT)
#undef FAULT_TEXT
    };
    assert(fault < sizeof texts / sizeof texts[0]);
    return texts[fault];
}

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

static uint64_t end_trim(const char *text, uint64_t count)
{
    while (count && is_blank(text[count - 1]))
        count--;
    return count;
}

bool warc_name_is(const char *text, uint64_t count, const char *name)
{
    return strlen(name) == count && !strncasecmp(text, name, count);
}

/* ---- the scanner is lost ---- */

static void lose(struct warc_scan *scan, bool inside, bool after_blank)
{
    scan->state = WARC_BETWEEN;
    scan->lost = true;
    scan->inside = inside;
    scan->blank = !inside;
    scan->after_blank = after_blank;
    scan->matched = 0;
}

/* Takes filler up to where a record may begin. Stops there, and returns how many bytes are before it. */
static uint64_t lost_take(struct warc_scan *scan, const char *bytes, uint64_t count)
{
    uint64_t i = 0;
    while (i < count) {
        if (!scan->inside && scan->after_blank && !memcmp(bytes + i, MARK, min64(MARK_BYTES, count - i)))
            return i;
        const char *newline = memchr(bytes + i, '\n', count - i);
        const uint64_t stop = newline ? (uint64_t)(newline - bytes) : count;
        for (uint64_t at = i; at < stop && scan->blank; at++)
            scan->blank = bytes[at] == '\r';
        scan->inside = !newline;
        if (newline) {
            scan->after_blank = scan->blank;
            scan->blank = true;
        }
        i = stop + (newline != NULL);
    }
    return count;
}

/* ---- the header ---- */

/* Reads a number below 2^63. Returns false if the text is not one. */
static bool length_read(const char *text, uint64_t count, uint64_t *number)
{
    *number = 0;
    for (uint64_t i = 0; i < count; i++) {
        const unsigned digit = (unsigned)(unsigned char)text[i] - '0';
        if (digit > 9 || *number > ((uint64_t)INT64_MAX - digit) / 10)
            return false;
        *number = *number * 10 + digit;
    }
    return count > 0;
}

static void fault_set(struct warc_scan *scan, enum warc_fault fault)
{
    const bool before = scan->fault >= WARC_FAULT_ENDLESS && scan->fault <= WARC_FAULT_LENGTH;
    if (!before) /* a fault of the length counts more than any other, since the record's end depends on it */
        scan->fault = fault;
}

static void type_note(struct warc_scan *scan, const char *value, uint64_t count)
{
    if (scan->has_type)
        fault_set(scan, WARC_FAULT_TYPE);
    scan->has_type = true;
    scan->is_info = warc_name_is(value, count, "warcinfo");
    scan->class = warc_name_is(value, count, "conversion") ? WARC_TEXT
                  : scan->is_info || warc_name_is(value, count, "metadata") || warc_name_is(value, count, "request")
                      ? WARC_ABOUT
                      : WARC_OTHER;
}

/* Notes what a complete line of the header says, of which scan->line has the beginning. */
static void line_note(struct warc_scan *scan)
{
    const bool cut = scan->line_bytes > WARC_LINE_KEPT;
    const char *line = scan->line;
    const uint64_t count = end_trim(line, min64(scan->line_bytes, WARC_LINE_KEPT));
    if (!scan->lines++) {
        if (count != MARK_BYTES + 1 || (line[MARK_BYTES] != '0' && line[MARK_BYTES] != '1'))
            fault_set(scan, WARC_FAULT_VERSION);
        return;
    }
    if (*line == ' ' || *line == '\t') {
        if (scan->field)
            fault_set(scan, scan->field == FIELD_LENGTH ? WARC_FAULT_LENGTH : WARC_FAULT_TYPE);
        return;
    }
    scan->field = FIELD_NONE;
    const char *colon = memchr(line, ':', count);
    if (!colon)
        return;
    const uint64_t name = end_trim(line, (uint64_t)(colon - line));
    uint64_t from = (uint64_t)(colon - line) + 1;
    while (from < count && is_blank(line[from]))
        from++;
    const char *value = line + from;
    if (warc_name_is(line, name, "Content-Length")) {
        scan->field = FIELD_LENGTH;
        if (scan->has_length)
            fault_set(scan, WARC_FAULT_LENGTH_TWICE);
        else if (cut || !length_read(value, count - from, &scan->length))
            fault_set(scan, WARC_FAULT_LENGTH);
        scan->has_length = true;
    } else if (warc_name_is(line, name, "WARC-Type")) {
        scan->field = FIELD_TYPE;
        type_note(scan, value, count - from);
    } else if (warc_name_is(line, name, "Content-Type")) {
        const char *end = memchr(value, ';', count - from);
        scan->is_text =
            warc_name_is(value, end_trim(value, end ? (uint64_t)(end - value) : count - from), "text/plain");
    } else if (warc_name_is(line, name, "WARC-Segment-Number")) {
        scan->segmented = true;
    }
}

static void header_begin(struct warc_scan *scan)
{
    scan->state = WARC_HEADER;
    scan->lost = scan->returned = scan->segmented = scan->has_length = scan->has_type = scan->is_info = false;
    scan->blank = false;
    scan->is_text = true;
    scan->field = FIELD_NONE;
    scan->class = WARC_WRONG;
    scan->fault = WARC_FAULT_NONE;
    scan->matched = 0;
    scan->lines = 0;
    scan->length = scan->left = 0;
    scan->header_bytes = scan->line_bytes = MARK_BYTES;
    memcpy(scan->line, MARK, MARK_BYTES);
}

/* Decides what follows, when the header has ended. Returns true if the segment ends with it. */
static bool header_end(struct warc_scan *scan)
{
    if (!scan->has_length)
        fault_set(scan, WARC_FAULT_NO_LENGTH);
    if (!scan->has_type)
        fault_set(scan, WARC_FAULT_NO_TYPE);
    if (scan->class == WARC_TEXT && !scan->is_text)
        scan->class = WARC_OTHER;
    if (scan->class == WARC_TEXT && scan->segmented)
        fault_set(scan, WARC_FAULT_SEGMENT);
    if (scan->fault) {
        scan->class = WARC_WRONG;
        if (scan->fault >= WARC_FAULT_ENDLESS && scan->fault <= WARC_FAULT_LENGTH) {
            lose(scan, false, true);
            return true;
        }
    }
    scan->left = scan->length;
    scan->texts += scan->class == WARC_TEXT;
    scan->others += scan->class == WARC_OTHER || (scan->class == WARC_ABOUT && !scan->is_info);
    scan->state = scan->class == WARC_TEXT ? WARC_CONTENT : scan->left ? WARC_OTHERS : WARC_BETWEEN;
    return scan->class != WARC_TEXT;
}

/* Takes bytes of the header. Sets *end to WARC_RECORD if the segment ends with it. */
static uint64_t header_take(struct warc_scan *scan, const char *bytes, uint64_t count, enum warc_end *end)
{
    uint64_t i = 0;
    while (i < count && scan->state == WARC_HEADER && *end == WARC_OPEN) {
        const uint64_t most = min64(count - i, WARC_HEADER_MOST - scan->header_bytes);
        const char *newline = memchr(bytes + i, '\n', most);
        const uint64_t taken = newline ? (uint64_t)(newline - (bytes + i)) + 1 : most;
        for (uint64_t at = i; at < i + taken && (scan->blank || scan->line_bytes < WARC_LINE_KEPT); at++) {
            scan->blank = scan->blank && is_blank(bytes[at]);
            if (scan->line_bytes + (at - i) < WARC_LINE_KEPT)
                scan->line[scan->line_bytes + (at - i)] = bytes[at];
            else if (!scan->blank)
                break;
        }
        scan->line_bytes += (uint32_t)taken;
        scan->header_bytes += taken;
        i += taken;
        if (newline && scan->blank) {
            *end = header_end(scan) ? WARC_RECORD : WARC_OPEN;
        } else if (scan->header_bytes == WARC_HEADER_MOST) {
            scan->fault = WARC_FAULT_ENDLESS;
            scan->class = WARC_WRONG;
            lose(scan, !newline, false);
            *end = WARC_RECORD;
        } else if (newline) {
            line_note(scan);
            scan->line_bytes = 0;
            scan->blank = true;
        }
    }
    return i;
}

/* ---- all ---- */

/* Takes what is between records, up to the mark of the next one, and with it. */
static uint64_t between_take(struct warc_scan *scan, const char *bytes, uint64_t count, enum warc_end *end)
{
    uint64_t i = 0;
    if (!scan->matched) {
        if (scan->lost)
            i = lost_take(scan, bytes, count);
        else
            while (i < count && (bytes[i] == '\r' || bytes[i] == '\n'))
                i++;
        if (i) {
            *end = WARC_FILLER;
            return i;
        }
    }
    for (; i < count && scan->matched < MARK_BYTES && bytes[i] == MARK[scan->matched]; i++)
        scan->matched++;
    if (scan->matched == MARK_BYTES) {
        header_begin(scan);
    } else if (i < count && scan->lost) { /* it only began like the mark */
        lose(scan, true, false);
        *end = WARC_FILLER;
    } else if (i < count) {
        scan->fault = WARC_FAULT_NOT_A_RECORD;
        scan->class = WARC_WRONG;
        lose(scan, bytes[i] != '\n', false);
        *end = WARC_RECORD;
        i++;
    }
    return i;
}

/* Takes the line end after the content of a record of text. */
static uint64_t after_take(struct warc_scan *scan, const char *bytes, uint64_t count, enum warc_end *end)
{
    uint64_t i = 0;
    if (!scan->returned && bytes[i] == '\r') {
        scan->returned = true;
        i++;
    }
    if (i == count)
        return i;
    *end = WARC_RECORD;
    if (bytes[i] == '\n') {
        scan->state = WARC_BETWEEN;
        return i + 1;
    }
    scan->fault = WARC_FAULT_FOLLOWED;
    lose(scan, true, false);
    return i;
}

uint64_t warc_scan_take(struct warc_scan *scan, const char *bytes, uint64_t count, enum warc_end *end)
{
    uint64_t i = 0;
    *end = WARC_OPEN;
    while (i < count && *end == WARC_OPEN) {
        const uint64_t some = min64(scan->left, count - i);
        switch (scan->state) {
        case WARC_BETWEEN:
            i += between_take(scan, bytes + i, count - i, end);
            break;
        case WARC_HEADER:
            i += header_take(scan, bytes + i, count - i, end);
            break;
        case WARC_CONTENT:
            i += some;
            scan->left -= some;
            scan->state = scan->left ? WARC_CONTENT : WARC_AFTER;
            break;
        case WARC_OTHERS:
            i += some;
            scan->left -= some;
            scan->state = scan->left ? WARC_OTHERS : WARC_BETWEEN;
            *end = WARC_FILLER;
            break;
        case WARC_AFTER:
            i += after_take(scan, bytes + i, count - i, end);
            break;
        }
    }
    return i;
}

/* ---- lines of a header ---- */

bool warc_line_next(const char *header, uint64_t header_bytes, uint64_t at, struct warc_line *line)
{
    uint64_t next = at, stop = at;
    line->continued = false;
    do {
        const char *newline = next < header_bytes ? memchr(header + next, '\n', header_bytes - next) : NULL;
        if (!newline || end_trim(header + next, (uint64_t)(newline - header) - next) == 0)
            break; /* the empty line */
        line->continued = next > at;
        stop = (uint64_t)(newline - header);
        next = stop + 1;
    } while (next < header_bytes && (header[next] == ' ' || header[next] == '\t'));
    if (next == at)
        return false;
    line->next = next;
    line->name = line->value = header + at;
    line->name_bytes = line->value_bytes = 0;
    const char *first_end = memchr(header + at, '\n', header_bytes - at);
    const char *colon = memchr(header + at, ':', (size_t)(first_end - (header + at)));
    if (!colon)
        return true;
    line->name_bytes = end_trim(header + at, (uint64_t)(colon - (header + at)));
    const char *value = colon + 1, *end = header + stop;
    while (value < first_end && is_blank(*value))
        value++;
    line->value = value;
    line->value_bytes = end_trim(value, (uint64_t)(end - value));
    return true;
}

uint64_t warc_value_join(char *into, const struct warc_line *line)
{
    uint64_t made = 0;
    for (uint64_t at = 0; at < line->value_bytes;) {
        const char *newline = memchr(line->value + at, '\n', line->value_bytes - at);
        const uint64_t count = newline ? (uint64_t)(newline - (line->value + at)) : line->value_bytes - at;
        const uint64_t kept = end_trim(line->value + at, count);
        memmove(into + made, line->value + at, kept);
        made += kept;
        at += count + (newline != NULL);
    }
    return made;
}
