/* SPDX-License-Identifier: MIT */
/*
 * megatron_writer.c - see megatron_writer.h.
 *
 * Example: documents of 3 and 5 tokens of 2 bytes. The lengths are 3 and 5, the pointers 0 and 6 (bytes), and the
 * first sequences 0, 1, and, for the end, 2. If the limit of a length were 4, the second document would be the
 * sequences of 4 tokens and of 1 token: the lengths 3, 4, 1, the pointers 0, 6, 14, the first sequences 0, 1, 3.
 */
#include "megatron_writer.h"

#include <string.h>

#include "common/bytes.h"
#include "format/foreign/foreign_index.h"
#include "format/foreign/foreign_name.h"

#define LENGTH_MOST ((uint64_t)INT32_MAX)
#define CONTINUES ((uint32_t)1 << 31)
enum { LENGTHS_AT_ONCE = 4096 };

enum array { LENGTHS, POINTERS, DOCUMENTS };

void megatron_writer_init(struct megatron_writer *writer, const char *folder)
{
    writer->sequences = writer->documents = 0;
    spill_init(&writer->lengths, folder);
}

void megatron_writer_free(struct megatron_writer *writer)
{
    if (writer->lengths.folder)
        spill_free(&writer->lengths);
}

int megatron_writer_add(struct megatron_writer *writer, uint64_t tokens)
{
    int system = 0;
    uint32_t continues = 0;
    do {
        const uint32_t length = (uint32_t)min64(tokens, LENGTH_MOST), stored = length | continues;
        system = spill_add(&writer->lengths, &stored, sizeof stored);
        tokens -= length;
        continues = CONTINUES;
        writer->sequences++;
    } while (tokens && !system);
    writer->documents++;
    return system;
}

/* Fills `out` with the elements of an array for `count` lengths, from sequence `first` on. Returns the bytes. *at: the
 * byte in the .bin at which the first of them begins, and then the one after the last. */
static size_t array_fill(enum array array, const uint32_t *lengths, size_t count, uint64_t first, uint32_t width,
                         uint64_t *at, uint8_t *out)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (array == LENGTHS) {
            store32(out + used, lengths[i] & ~CONTINUES);
            used += 4;
        } else if (array == POINTERS) {
            store64(out + used, *at);
            *at += (uint64_t)(lengths[i] & ~CONTINUES) * width;
            used += 8;
        } else if (!(lengths[i] & CONTINUES)) {
            store64(out + used, first + i);
            used += 8;
        }
    }
    return used;
}

static enum tokmap_status array_write(const struct megatron_writer *writer, enum array array, uint32_t width,
                                      struct output_group *group, uint32_t part, struct tokmap_error *error)
{
    uint32_t lengths[LENGTHS_AT_ONCE];
    uint8_t out[LENGTHS_AT_ONCE * 8];
    uint64_t at = 0;
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t first = 0; first < writer->sequences && !status; first += LENGTHS_AT_ONCE) {
        const size_t count = (size_t)min64(LENGTHS_AT_ONCE, writer->sequences - first);
        const int system = spill_read(&writer->lengths, first * sizeof lengths[0], lengths, count * sizeof lengths[0]);
        if (system)
            return output_group_failed(group, part, system, error);
        const size_t bytes = array_fill(array, lengths, count, first, width, &at, out);
        status = output_group_add(group, part, out, bytes, error);
    }
    return status;
}

enum tokmap_status megatron_writer_finish(struct megatron_writer *writer, enum element element,
                                          struct output_group *group, uint32_t part, struct tokmap_error *error)
{
    uint8_t head[MEGATRON_HEAD_BYTES] = MEGATRON_MAGIC, last[8];
    store64(head + 9, MEGATRON_VERSION);
    head[17] = (uint8_t)element;
    store64(head + 18, writer->sequences);
    store64(head + 26, writer->documents + 1);
    store64(last, writer->sequences);
    enum tokmap_status status = output_group_add(group, part, head, sizeof head, error);
    for (enum array array = LENGTHS; array <= DOCUMENTS && !status; array++)
        status = array_write(writer, array, element_bytes(element), group, part, error);
    return status ? status : output_group_add(group, part, last, sizeof last, error);
}
