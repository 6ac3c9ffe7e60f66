/* SPDX-License-Identifier: MIT */
/*
 * remote_xml.h - the tags and texts of an XML document, one after another, without a tree.
 *
 * Enough for the lists of object storage: elements, texts, the five named entities, and numbers of characters. Comments
 * and processing instructions are passed over. A DOCTYPE and CDATA are refused: no list has them, and the first could
 * define entities that grow. Memory does not grow with the document, and each byte is looked at once.
 *
 * Thread rule: one thread at a time per scan.
 */
#ifndef TOKMAP_REMOTE_REMOTE_XML_H
#define TOKMAP_REMOTE_REMOTE_XML_H

#include <stdbool.h>
#include <stddef.h>

#include "common/bytes_buffer.h"

#define XML_DEPTH_MOST 32

enum xml_event { XML_OPEN, XML_CLOSE, XML_TEXT, XML_END, XML_WRONG };

struct xml_scan {
    const char *at, *end;
    unsigned depth;    /* elements that are open, after the event */
    bool any;          /* an element has been seen */
    bool closing;      /* an element without content was opened and is to be closed */
    const char *bytes; /* of the event: a name without its prefix, or a text with its entities */
    size_t count;
};

void xml_begin(struct xml_scan *scan, const char *bytes, size_t count);
enum xml_event xml_next(struct xml_scan *scan);
/* Returns true if the last event's bytes are this text. */
bool xml_is(const struct xml_scan *scan, const char *text);
/* Appends the last text with its entities replaced. Returns false if one is not valid, or without memory. */
bool xml_text(const struct xml_scan *scan, struct bytes_buffer *into);
/* Reads the text of the element that was just opened, up to its end, into *into, with a zero byte that does not count.
 * Returns false if it is not a text, or has a zero byte, or without memory. */
bool xml_element(struct xml_scan *scan, struct bytes_buffer *into);

#endif
