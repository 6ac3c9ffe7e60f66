/* SPDX-License-Identifier: MIT */
/*
 * fuzz_charsmap.c - opens arbitrary bytes as a precompiled_charsmap. A map that opens must be searched in both ways
 * within its bytes, and what it makes of a text must be UTF-8 and no longer than it says.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_case.h"
#include "text/utf8.h"
#include "unicode/charsmap.h"

static const char text[] =
    "Hello  world, \xef\xac\x81\xc2\xbd\r\n\t\xc3\xa9t\x65\xcc\x81 \xe2\x96\x81\xe4\xb8\xad\xe6\x96\x87 "
    "\xe3\x81\x8b\xe3\x82\x99 \xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8 \xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9 "
    "\xe0\xa4\x95\xe0\xa5\x8d\xe0\xa4\x95 \xf0\x9d\x90\x80 \xd8\x80\x61 the theme \xcc\x81\xcc\x81.";

struct checked {
    size_t end;    /* of the last part */
    uint64_t made; /* bytes so far */
};

static void check(struct checked *checked, const struct charsmap *map, const struct charsmap_part *part)
{
    size_t count;
    const uint8_t *bytes = charsmap_bytes(map, &count);
    REQUIRE(part->from >= checked->end && part->to > part->from && part->to < sizeof text);
    REQUIRE(part->made >= bytes && part->made + part->made_count <= bytes + count);
    REQUIRE(utf8_valid_prefix((const char *)part->made, part->made_count) == part->made_count);
    REQUIRE(part->made_count <= charsmap_growth(map) * (part->to - part->from));
    checked->made += part->from - checked->end + part->made_count;
    checked->end = part->to;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct charsmap *map;
    struct tokmap_error error;
    struct charsmap_part part;
    memset(&error, 0, sizeof error);
    const enum tokmap_status status = charsmap_new(&map, data, size, "map", "field", &error);
    if (status) {
        REQUIRE(!map && error.status == status && error.message[0]);
        REQUIRE(status == TOKMAP_ERROR_FORMAT || status == TOKMAP_ERROR_LIMIT || status == TOKMAP_ERROR_MEMORY);
        return 0;
    }
    struct checked longest = {0, 0}, clusters = {0, 0};
    struct code_block block = CODE_BLOCK_NONE;
    struct charsmap_clusters place = CHARSMAP_CLUSTERS;
    const uint8_t *bytes = (const uint8_t *)text;
    const size_t count = sizeof text - 1;
    while (charsmap_find(map, bytes, longest.end, count, count, &block, &part))
        check(&longest, map, &part);
    while (charsmap_find_cluster(map, bytes, count, &place, &part))
        check(&clusters, map, &part);
    REQUIRE(longest.made <= charsmap_growth(map) * count && clusters.made <= charsmap_growth(map) * count);
    charsmap_free(map);
    return 0;
}
