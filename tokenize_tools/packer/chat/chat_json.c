/* SPDX-License-Identifier: MIT */
#include "chat_json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "corpus/record_values.h"

#define REAL_BYTES 32

void chat_json_free(struct chat_json *json)
{
    bytes_free(&json->out);
    bytes_free(&json->text);
    bytes_free(&json->names);
    *json = (struct chat_json){.no_memory = false};
}

static void add(struct chat_json *json, const char *bytes, size_t count)
{
    json->no_memory |= !bytes_append(&json->out, bytes, count);
}

void chat_json_string(struct chat_json *json, const char *text, size_t bytes)
{
    if (bytes > SIZE_MAX / 8 || !bytes_reserve(&json->out, 6 * bytes + 2)) {
        json->no_memory = true;
        return;
    }
    json->out.count += json_string_write((char *)json->out.bytes + json->out.count, text, bytes);
}

/* Copies a text into the scratch memory, with a zero behind it. */
static char *text_copy(struct chat_json *json, const char *text, size_t bytes)
{
    json->text.count = 0;
    if (bytes_append(&json->text, text, bytes) && bytes_append(&json->text, "", 1))
        return (char *)json->text.bytes;
    json->no_memory = true;
    return NULL;
}

/* Decodes a string into the scratch memory, unless it has no escapes. Returns its text and sets *count. */
static const char *string_decode(struct chat_json *json, const struct json_string *string, size_t *count)
{
    size_t lone = 0, first;
    char *text = string->escaped ? text_copy(json, string->bytes, string->count) : NULL;
    *count = string->escaped ? 0 : string->count;
    if (text)
        *count = json_unescape(text, string->count, &lone, &first);
    json->lone += lone;
    return text ? text : string->bytes;
}

void chat_json_text(struct chat_json *json, const struct json_string *string)
{
    size_t count;
    const char *text = string_decode(json, string, &count);
    add(json, text, count);
}

static void string_write(struct chat_json *json, const struct json_string *string)
{
    size_t count;
    const char *text = string_decode(json, string, &count);
    chat_json_string(json, text, count);
}

/* Writes repr(number): the fewest digits that give the same number, with an exponent if that is below -4 or above 15.
 */
static void real_write(struct chat_json *json, double number)
{
    char digits[REAL_BYTES], plain[REAL_BYTES];
    int places = 0, exponent = 0;
    if (!isfinite(number)) {
        add(json, number < 0 ? "-Infinity" : "Infinity", number < 0 ? 9 : 8);
        return;
    }
    do
        (void)snprintf(digits, sizeof digits, "%.*e", places, number);
    while (strtod(digits, NULL) != number && ++places <= 16);
    exponent = (int)strtol(strchr(digits, 'e') + 1, NULL, 10);
    if (exponent < -4 || exponent > 15) {
        add(json, digits, strlen(digits));
        return;
    }
    (void)snprintf(plain, sizeof plain, "%.*f", places > exponent ? places - exponent : 1, number);
    add(json, plain, strlen(plain));
}

static void number_write(struct chat_json *json, const char *bytes, size_t count)
{
    const char *text = text_copy(json, bytes, count);
    if (!text)
        return;
    if (strpbrk(text, ".eE"))
        real_write(json, strtod(text, NULL));
    else if (!strcmp(text, "-0")) /* an integer of Python has no sign then */
        add(json, "0", 1);
    else
        add(json, bytes, count);
}

static void line_write(struct chat_json *json, unsigned depth)
{
    add(json, "\n", 1);
    for (unsigned i = 0; i < depth; i++)
        add(json, "    ", 4);
}

static int hashes_compare(const void *a, const void *b)
{
    uint64_t first, second;
    memcpy(&first, a, sizeof first);
    memcpy(&second, b, sizeof second);
    return first < second ? -1 : first > second;
}

/* Forgets the names of an object, the hashes from `begin` on, and notes whether two of them are equal. */
static void names_end(struct chat_json *json, size_t begin)
{
    uint64_t before = 0, hash;
    uint8_t *bytes = json->names.bytes + begin;
    const size_t count = (json->names.count - begin) / sizeof hash;
    if (count > 1)
        qsort(bytes, count, sizeof hash, hashes_compare);
    for (size_t i = 0; i < count; i++, before = hash) {
        memcpy(&hash, bytes + i * sizeof hash, sizeof hash);
        json->names_twice |= i && hash == before;
    }
    json->names.count = begin;
}

static void any_write(struct chat_json *json, struct json_scan *scan, unsigned depth);

/* Writes what comes before an item of a container. */
static void item_begin(struct chat_json *json, bool first, unsigned depth)
{
    if (!first)
        add(json, json->indent ? "," : ", ", json->indent ? 1 : 2);
    if (json->indent)
        line_write(json, depth + 1);
}

static void object_write(struct chat_json *json, struct json_scan *scan, unsigned depth)
{
    const size_t names = json->names.count;
    struct json_string name;
    bool any = false;
    add(json, "{", 1);
    if (json_enter_object(scan))
        while (json_member(scan, &name) && !json->no_memory) {
            item_begin(json, !any, depth);
            const size_t at = json->out.count;
            string_write(json, &name);
            const uint64_t hash = json->no_memory ? 0 : hash64(json->out.bytes + at, json->out.count - at);
            json->no_memory |= !bytes_append(&json->names, &hash, sizeof hash);
            add(json, ": ", 2);
            any_write(json, scan, depth + 1);
            any = true;
        }
    names_end(json, names);
    if (any && json->indent)
        line_write(json, depth);
    add(json, "}", 1);
}

static void array_write(struct chat_json *json, struct json_scan *scan, unsigned depth)
{
    bool any = false;
    add(json, "[", 1);
    if (json_enter_array(scan))
        while (json_element(scan) && !json->no_memory) {
            item_begin(json, !any, depth);
            any_write(json, scan, depth + 1);
            any = true;
        }
    if (any && json->indent)
        line_write(json, depth);
    add(json, "]", 1);
}

static void any_write(struct chat_json *json, struct json_scan *scan, unsigned depth)
{
    struct json_string string;
    const char *bytes;
    size_t count;
    const enum json_kind kind = json_kind(scan);
    if (kind == JSON_OBJECT)
        object_write(json, scan, depth);
    else if (kind == JSON_ARRAY)
        array_write(json, scan, depth);
    else if (kind == JSON_STRING && json_text(scan, &string))
        string_write(json, &string);
    else if (kind != JSON_STRING && json_value(scan, &bytes, &count))
        kind == JSON_NUMBER ? number_write(json, bytes, count) : add(json, bytes, count);
}

void chat_json_value(struct chat_json *json, const char *value, size_t bytes)
{
    struct json_scan scan;
    json_begin(&scan, value, bytes);
    scan.depth_most = CHAT_JSON_DEPTH;
    any_write(json, &scan, 0);
}
