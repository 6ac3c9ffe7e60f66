/* SPDX-License-Identifier: MIT */
#include "remote_xml.h"

#include <stdint.h>
#include <string.h>

#include "text/utf8.h"

void xml_begin(struct xml_scan *scan, const char *bytes, size_t count)
{
    *scan = (struct xml_scan){.at = bytes, .end = bytes + count};
}

bool xml_is(const struct xml_scan *scan, const char *text)
{
    return strlen(text) == scan->count && !memcmp(scan->bytes, text, scan->count);
}

/* Moves past the next `text`. Returns false if there is none. */
static bool pass(struct xml_scan *scan, const char *text)
{
    const char *found = memmem(scan->at, (size_t)(scan->end - scan->at), text, strlen(text));
    scan->at = found ? found + strlen(text) : scan->end;
    return found != NULL;
}

static bool begins(const struct xml_scan *scan, const char *text)
{
    const size_t bytes = strlen(text);
    return (size_t)(scan->end - scan->at) >= bytes && !memcmp(scan->at, text, bytes);
}

/* Takes a tag, from after its <. */
static enum xml_event tag_next(struct xml_scan *scan)
{
    const bool close = begins(scan, "/");
    const char *name = scan->at += close;
    while (scan->at < scan->end && !strchr(" \t\r\n/>", *scan->at) && *scan->at)
        scan->at++;
    const char *end = scan->at;
    /* Attributes say nothing that is needed. Their values may contain a >. */
    char quote = 0;
    for (; scan->at < scan->end && (quote || *scan->at != '>'); scan->at++) {
        if (quote ? *scan->at == quote : *scan->at == '"' || *scan->at == '\'')
            quote = quote ? 0 : *scan->at;
        else if (*scan->at == '<')
            return XML_WRONG;
    }
    if (scan->at == scan->end || end == name || (close ? !scan->depth : scan->depth == XML_DEPTH_MOST))
        return XML_WRONG;
    if (!close && !scan->depth && scan->any)
        return XML_WRONG; /* a second root */
    scan->closing = !close && scan->at[-1] == '/';
    scan->at++;
    const char *colon = memchr(name, ':', (size_t)(end - name));
    scan->bytes = colon ? colon + 1 : name;
    scan->count = (size_t)(end - scan->bytes);
    scan->any = true;
    scan->depth += close ? -1u : 1u;
    return close ? XML_CLOSE : XML_OPEN;
}

enum xml_event xml_next(struct xml_scan *scan)
{
    if (scan->closing) {
        scan->closing = false;
        scan->depth--;
        return XML_CLOSE;
    }
    while (scan->at < scan->end) {
        if (*scan->at != '<') {
            const char *begin = scan->at;
            const char *next = memchr(begin, '<', (size_t)(scan->end - begin));
            scan->at = next ? next : scan->end;
            scan->bytes = begin;
            scan->count = (size_t)(scan->at - begin);
            if (scan->depth)
                return XML_TEXT;
            continue; /* blanks, or the mark of UTF-8 */
        }
        scan->at++;
        if (begins(scan, "?")) {
            if (!pass(scan, "?>"))
                return XML_WRONG;
        } else if (begins(scan, "!--")) {
            if (!pass(scan, "-->"))
                return XML_WRONG;
        } else {
            return begins(scan, "!") ? XML_WRONG : tag_next(scan);
        }
    }
    return scan->any && !scan->depth ? XML_END : XML_WRONG;
}

/* Appends the character that an entity names, without its & and ;. */
static bool entity_append(const char *name, size_t count, struct bytes_buffer *into)
{
    static const struct {
        const char *name;
        char character;
    } named[] = {{"amp", '&'}, {"apos", '\''}, {"gt", '>'}, {"lt", '<'}, {"quot", '"'}};
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++)
        if (strlen(named[i].name) == count && !memcmp(named[i].name, name, count))
            return bytes_append(into, &named[i].character, 1);
    if (count < 2 || *name != '#' || count > 8)
        return false;
    const bool hex = name[1] == 'x';
    uint32_t code = 0;
    for (size_t i = 1 + hex; i < count; i++) {
        const char c = name[i];
        const int digit = c >= '0' && c <= '9'          ? c - '0'
                          : hex && c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : hex && c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                        : -1;
        if (digit < 0)
            return false;
        code = code * (hex ? 16 : 10) + (uint32_t)digit;
    }
    if (!code || count == 1u + hex || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return false;
    char bytes[4];
    return bytes_append(into, bytes, utf8_put(bytes, code));
}

bool xml_text(const struct xml_scan *scan, struct bytes_buffer *into)
{
    for (const char *at = scan->bytes, *end = at + scan->count; at < end;) {
        const char *mark = memchr(at, '&', (size_t)(end - at));
        if (!bytes_append(into, at, (size_t)((mark ? mark : end) - at)))
            return false;
        if (!mark)
            return true;
        const char *close = memchr(mark, ';', (size_t)(end - mark));
        if (!close || !entity_append(mark + 1, (size_t)(close - mark - 1), into))
            return false;
        at = close + 1;
    }
    return true;
}

bool xml_element(struct xml_scan *scan, struct bytes_buffer *into)
{
    into->count = 0;
    for (enum xml_event event; (event = xml_next(scan)) != XML_CLOSE;)
        if (event != XML_TEXT || !xml_text(scan, into))
            return false;
    const bool good = bytes_append(into, "", 1);
    into->count -= good;
    return good && strlen((const char *)into->bytes) == into->count;
}
