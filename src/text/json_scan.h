/*
 * json_scan.h - JSON as RFC 8259 has it, read from front to back: no tree is built, nothing is allocated, and memory does
 * not grow with the text.
 *
 * Objects and arrays nest at most JSON_DEPTH deep, numbers of any size pass, and inside strings any byte from 0x20 on:
 * whether they are UTF-8 is asked by whoever uses them. The first fault is kept; from then on every function returns
 * false, so that a reader may ask once, at its end. Whole documents are read so:
 *
 *     struct json_scan scan;
 *     struct json_string name;
 *     json_begin(&scan, text, count);
 *     if (json_enter_object(&scan))
 *         while (json_member(&scan, &name))
 *             if (json_name_is(&name, "width") ? !json_unsigned(&scan, &width) : !json_skip(&scan)) break;
 *     if (!json_end(&scan)) ... scan.fault
 */
#ifndef TOKMAP_TEXT_JSON_SCAN_H
#define TOKMAP_TEXT_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_DEPTH 1024

struct json_fault {
    size_t offset;      /* in the text */
    const char *reason; /* static; NULL: none */
};

/* A string as it is written, without its quotes. */
struct json_string {
    const char *bytes;
    size_t count;
    bool escaped; /* it holds a backslash */
};

struct json_scan {
    const char *start, *at, *end;
    struct json_fault fault;
    unsigned depth, depth_most; /* objects and arrays that are open now, and that may be */
    uint64_t in_object[JSON_DEPTH / 64]; /* bit d: the container at depth d is an object */
    bool fresh;                          /* a container was just entered: no comma before what comes next */
};

enum json_kind { JSON_OBJECT, JSON_ARRAY, JSON_STRING, JSON_NUMBER, JSON_TRUE, JSON_FALSE, JSON_NULL, JSON_NOTHING };

void json_begin(struct json_scan *scan, const char *text, size_t count);
/* What stands here; JSON_NOTHING: no value. Takes nothing but the spaces before it. */
enum json_kind json_kind(struct json_scan *scan);

/* Takes the opening brace or bracket; false is a fault. */
bool json_enter_object(struct json_scan *scan);
bool json_enter_array(struct json_scan *scan);
/* The name of the next member, behind its colon. False: the object has ended and is left behind, or a fault. */
bool json_member(struct json_scan *scan, struct json_string *name);
/* The same for the elements of an array. */
bool json_element(struct json_scan *scan);

/* Each takes one value; false: it is another, which is a fault. */
bool json_text(struct json_scan *scan, struct json_string *text);
bool json_unsigned(struct json_scan *scan, uint64_t *number); /* digits alone, at most UINT64_MAX */
bool json_real(struct json_scan *scan, double *number);
bool json_bool(struct json_scan *scan, bool *value);
bool json_null(struct json_scan *scan);
bool json_skip(struct json_scan *scan); /* any */
/* Takes any value and stores it as the text spells it: a container with its brackets, a string with its quotes. */
bool json_value(struct json_scan *scan, const char **bytes, size_t *count);
/* Nothing but spaces follows, and there was no fault. */
bool json_end(struct json_scan *scan);
/* Makes `reason` the fault if there is none yet, at what was read last; returns false. */
bool json_wrong(struct json_scan *scan, const char *reason);

/* Whether a text is one JSON value in which at most depth_most (up to JSON_DEPTH) objects and arrays contain one another. Text
 * for which this returns true can be put into JSON output as it is. UTF-8 inside strings is not checked. */
bool json_is_valid(const char *text, size_t count, unsigned depth_most);

/* Whether a string is these bytes once its escapes are decoded. */
bool json_equals(const struct json_string *string, const char *bytes, size_t count);
bool json_name_is(const struct json_string *string, const char *name);

/* Decodes the escapes of a string that was read, in place; returns what is left of `count` bytes. Each escape of a
 * surrogate without its other half becomes U+FFFD; *lone counts them, *first is the offset of the first. */
size_t json_unescape(char *text, size_t count, size_t *lone, size_t *first);

#endif
