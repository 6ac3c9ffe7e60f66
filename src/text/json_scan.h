/* SPDX-License-Identifier: MIT */
/*
 * json_scan.h - reads JSON (RFC 8259) from front to back: no tree is built, nothing is allocated, and memory does not
 * grow with the text.
 *
 * Objects and arrays may be nested up to JSON_DEPTH deep. Numbers may have any size. NaN, Infinity, and -Infinity,
 * which Python's json.dump() writes and JSON does not have, are faults unless the reader sets scan.not_finite_allowed.
 * Strings may contain any byte from 0x20 on; the user of a string checks whether it is UTF-8. The first fault is kept,
 * and from then on every function returns false, so a reader can ask for faults once, at its end. A reader of a whole
 * document looks like this:
 *
 *     struct json_scan scan;
 *     struct json_string name;
 *     json_begin(&scan, text, count);
 *     if (json_enter_object(&scan))
 *         while (json_member(&scan, &name))
 *             if (json_name_is(&name, "width") ? !json_unsigned(&scan, &width) : !json_skip(&scan))
 *                 break;
 *     if (!json_end(&scan))
 *         return error_set(error, TOKMAP_ERROR_FORMAT, path, scan.fault.offset, "%s", scan.fault.reason);
 *
 * The text must stay in memory and unchanged while the scan and the strings it returned are in use. One thread uses a
 * scan.
 */
#ifndef TOKMAP_TEXT_JSON_SCAN_H
#define TOKMAP_TEXT_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_DEPTH 1024

/* The reason of the fault where NaN or Infinity is a value. */
#define JSON_NOT_FINITE "NaN and Infinity are not JSON values; Python's json.dumps() refuses them with allow_nan=False"

struct json_fault {
    size_t offset;      /* in the text */
    const char *reason; /* a sentence without its full stop, static; NULL if there is no fault */
};

/* A string as it is spelled in the text, without its quotes and with its escapes. */
struct json_string {
    const char *bytes;
    size_t count;
    bool escaped; /* it contains a backslash */
};

struct json_scan {
    const char *start, *at, *end;
    struct json_fault fault;
    unsigned depth, depth_most;          /* containers that are open, and how many may be */
    uint64_t in_object[JSON_DEPTH / 64]; /* bit d: the container at depth d is an object */
    bool fresh;                          /* a container has just been entered: no comma comes before the next item */
    bool not_finite_allowed;             /* set by the reader, at any time: NaN, Infinity, and -Infinity are values */
    uint64_t not_finite;                 /* number of those that were taken */
};

/* JSON_NAN: NaN, Infinity, or -Infinity, where they are allowed. */
enum json_kind {
    JSON_OBJECT,
    JSON_ARRAY,
    JSON_STRING,
    JSON_NUMBER,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL,
    JSON_NAN,
    JSON_NOTHING
};

void json_begin(struct json_scan *scan, const char *text, size_t count);
/* Returns the kind of the value that comes next, judged by its first byte; JSON_NOTHING if no value can begin with
 * that. Takes only the spaces before it. */
enum json_kind json_kind(struct json_scan *scan);

/* Takes the opening brace or bracket. Returns false, with a fault, if the next value is not an object or array. */
bool json_enter_object(struct json_scan *scan);
bool json_enter_array(struct json_scan *scan);
/* Takes the name of the next member and its colon. Returns false after the end of the object, which it takes, and after
 * a fault. */
bool json_member(struct json_scan *scan, struct json_string *name);
/* Goes to the next element of an array. Returns false after the end of the array, which it takes, and after a fault. */
bool json_element(struct json_scan *scan);

/* Take one value each. Return false, with a fault, if the next value is of another kind. */
bool json_text(struct json_scan *scan, struct json_string *text);
bool json_unsigned(struct json_scan *scan, uint64_t *number); /* digits only, at most UINT64_MAX */
bool json_real(struct json_scan *scan, double *number);
bool json_bool(struct json_scan *scan, bool *value);
bool json_null(struct json_scan *scan);
bool json_skip(struct json_scan *scan); /* a value of any kind */
/* Takes a value of any kind and stores where it is in the text: a container with its brackets, a string with its
 * quotes. */
bool json_value(struct json_scan *scan, const char **bytes, size_t *count);
/* Checks that only spaces follow. Returns false, with a fault, if there is more, and after any earlier fault. */
bool json_end(struct json_scan *scan);
/* Makes `reason` the fault, at the current position, unless there is a fault already; returns false. */
bool json_wrong(struct json_scan *scan, const char *reason);

/* Returns whether a value of JSON, without spaces around it, is null, "", [], or {}. */
bool json_says_nothing(const char *bytes, size_t count);

/* Returns whether a text is one JSON value in which at most depth_most (up to JSON_DEPTH) containers are inside one
 * another. Such a text can be put into JSON output unchanged, if it is UTF-8, which is not checked. */
bool json_is_valid(const char *text, size_t count, unsigned depth_most);

/* Returns whether a string, with its escapes decoded, consists of these bytes. */
bool json_equals(const struct json_string *string, const char *bytes, size_t count);
bool json_name_is(const struct json_string *string, const char *name);

/* Decodes the escapes of a string in place and returns the number of decoded bytes, which is at most `count`. The
 * string must have been read without a fault. An escaped surrogate that is not half of a pair becomes U+FFFD: *lone
 * counts these escapes, and *first is the offset of the first one in the text as it was before. */
size_t json_unescape(char *text, size_t count, size_t *lone, size_t *first);

#endif
