/* SPDX-License-Identifier: MIT */
#include "json_writer.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/visible.h"
#include "text/code_point.h"
#include "text/decimal.h"
#include "text/json_scan.h"
#include "text/utf8.h"

void cli_json_begin(struct cli_json *json, FILE *file)
{
    memset(json, 0, sizeof *json);
    json->file = file;
}

/* Writes a character of two bytes or more, which is valid UTF-8. One that is not plain becomes an escape. */
static void put_character(const struct cli_json *json, const unsigned char *at, size_t length)
{
    bool plain = true;
    size_t bytes;
    if (!json->as_given)
        (void)visible_step((const char *)at, length, &plain);
    if (plain)
        (void)fwrite(at, 1, length, json->file);
    else
        (void)fprintf(json->file, "\\u%04x", (unsigned)code_point_get(at, &bytes));
}

static void put_string(const struct cli_json *json, const char *text, size_t bytes)
{
    FILE *const file = json->file;
    const unsigned char *at = (const unsigned char *)text;
    const unsigned char *const end = at + bytes;
    (void)fputc('"', file);
    while (at < end) {
        const unsigned char *plain = at;
        while (at < end && *at >= 0x20 && *at < 0x7f && *at != '"' && *at != '\\')
            at++;
        if (at > plain)
            (void)fwrite(plain, 1, (size_t)(at - plain), file);
        if (at == end)
            break;
        bool valid;
        const size_t length = utf8_step((const char *)at, (size_t)(end - at), &valid);
        if (valid && length > 1) {
            put_character(json, at, length);
            at += length;
            continue;
        }
        if (!valid)
            (void)fputs(UTF8_REPLACEMENT, file);
        else if (*at == '"' || *at == '\\')
            (void)fprintf(file, "\\%c", *at);
        else if (*at == '\n')
            (void)fputs("\\n", file);
        else if (*at == '\t')
            (void)fputs("\\t", file);
        else if (*at == '\r')
            (void)fputs("\\r", file);
        else
            (void)fprintf(file, "\\u%04x", *at);
        at++;
    }
    (void)fputc('"', file);
}

/* Writes what comes before a value: the comma after the last one, and the key. */
static void item_begin(struct cli_json *json, const char *key)
{
    const uint64_t bit = (uint64_t)1 << json->depth;
    assert(json->depth == 0 || (key == NULL) == ((json->is_array & bit) != 0));
    if (json->has_items & bit)
        (void)fputs(", ", json->file);
    if (json->depth)
        json->has_items |= bit;
    if (key) {
        put_string(json, key, strlen(key));
        (void)fputs(": ", json->file);
    }
}

static void container_begin(struct cli_json *json, const char *key, bool array)
{
    item_begin(json, key);
    assert(json->depth < 63);
    const uint64_t bit = (uint64_t)1 << ++json->depth;
    json->has_items &= ~bit;
    json->is_array = array ? json->is_array | bit : json->is_array & ~bit;
    (void)fputc(array ? '[' : '{', json->file);
}

void cli_json_object(struct cli_json *json, const char *key)
{
    container_begin(json, key, false);
}

void cli_json_array(struct cli_json *json, const char *key)
{
    container_begin(json, key, true);
}

void cli_json_end(struct cli_json *json)
{
    assert(json->depth > 0);
    (void)fputc(json->is_array >> json->depth & 1 ? ']' : '}', json->file);
    if (--json->depth == 0)
        (void)fputc('\n', json->file);
}

void cli_json_text(struct cli_json *json, const char *key, const char *text)
{
    cli_json_bytes(json, key, text, strlen(text));
}

void cli_json_bytes(struct cli_json *json, const char *key, const char *text, size_t bytes)
{
    item_begin(json, key);
    put_string(json, text, bytes);
}

void cli_json_number(struct cli_json *json, const char *key, uint64_t number)
{
    char digits[20];
    item_begin(json, key);
    (void)fwrite(digits, 1, decimal_write(number, digits), json->file);
}

void cli_json_real(struct cli_json *json, const char *key, double number)
{
    item_begin(json, key);
    if (!isfinite(number)) {
        (void)fputs("null", json->file);
        return;
    }
    /* Twelve digits are more than any measurement has. Seventeen, which read back as the same bits, would also show the
     * rounding of a unit's conversion: 52.447886999999994 for 52447887 ns. */
    char text[32];
    snprintf(text, sizeof text, "%.12g", number);
    (void)fputs(text, json->file);
}

void cli_json_bool(struct cli_json *json, const char *key, bool value)
{
    item_begin(json, key);
    (void)fputs(value ? "true" : "false", json->file);
}

void cli_json_null(struct cli_json *json, const char *key)
{
    item_begin(json, key);
    (void)fputs("null", json->file);
}

void cli_json_raw(struct cli_json *json, const char *key, const char *text, size_t bytes)
{
    if (!json_is_valid(text, bytes, CLI_JSON_RAW_DEPTH)) {
        cli_json_null(json, key);
        return;
    }
    item_begin(json, key);
    while (bytes && memchr(" \t\r\n", text[bytes - 1], 4))
        bytes--;
    /* Valid JSON contains line ends and tabs only between its values, where a space means the same, and other
     * characters that are not plain only in strings. */
    for (size_t at = 0, length; at < bytes; at += length) {
        bool valid;
        length = utf8_step(text + at, bytes - at, &valid);
        if (text[at] == '\n' || text[at] == '\r')
            (void)fputc(' ', json->file);
        else if (text[at] == 0x7f && !json->as_given)
            (void)fputs("\\u007f", json->file);
        else if (length == 1)
            (void)fputc(text[at], json->file);
        else
            put_character(json, (const unsigned char *)text + at, length);
    }
}
