/* SPDX-License-Identifier: MIT */
/* bytes_buffer.h - a buffer of bytes that grows: scratch memory of one thread, which is reused from text to text; and
 * lists that grow. */
#ifndef TOKMAP_COMMON_BYTES_BUFFER_H
#define TOKMAP_COMMON_BYTES_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_BUFFER_KEPT ((size_t)1 << 20) /* bytes_trim() frees a buffer that is larger */

struct bytes_buffer {
    uint8_t *bytes;
    size_t count, capacity;
};

/* Makes room for `more` bytes after the first `count`. Returns false if there is no memory; the buffer is then
 * unchanged. */
static inline bool bytes_reserve(struct bytes_buffer *buffer, size_t more)
{
    if (buffer->capacity - buffer->count >= more)
        return true;
    size_t wanted;
    if (__builtin_add_overflow(buffer->count, more, &wanted) || wanted > SIZE_MAX / 4)
        return false;
    wanted += wanted / 2 + 256;
    uint8_t *grown = realloc(buffer->bytes, wanted);
    if (!grown)
        return false;
    buffer->bytes = grown;
    buffer->capacity = wanted;
    return true;
}

/* Appends a copy of the bytes. Returns false if there is no memory; the buffer is then unchanged. */
static inline bool bytes_append(struct bytes_buffer *buffer, const void *from, size_t count)
{
    if (!bytes_reserve(buffer, count))
        return false;
    if (count)
        memcpy(buffer->bytes + buffer->count, from, count);
    buffer->count += count;
    return true;
}

static inline void bytes_free(struct bytes_buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (struct bytes_buffer){NULL, 0, 0};
}

/* Makes room for one more element after the first `count`. list: the address of the pointer to them. Returns false if
 * there is no memory; nothing has changed then. */
static inline bool list_room(void *list, uint64_t count, uint64_t *capacity, size_t element_bytes)
{
    void *elements;
    const uint64_t more = 2 * *capacity + 16;
    if (count < *capacity)
        return true;
    memcpy(&elements, list, sizeof elements);
    elements = more < SIZE_MAX / 2 / element_bytes ? realloc(elements, (size_t)more * element_bytes) : NULL;
    if (!elements)
        return false;
    memcpy(list, &elements, sizeof elements);
    *capacity = more;
    return true;
}

/* Empties the buffer, and frees it if one long text has made it larger than BYTES_BUFFER_KEPT. */
static inline void bytes_trim(struct bytes_buffer *buffer)
{
    buffer->count = 0;
    if (buffer->capacity > BYTES_BUFFER_KEPT)
        bytes_free(buffer);
}

#endif
