/* SPDX-License-Identifier: MIT */
/*
 * charsmap.c - reads a precompiled_charsmap, and finds its keys in texts.
 *
 * The trie. A node is a number, its base. The child of the node b for the byte c is the unit b ^ c of the array, if the
 * low byte of this unit is c and bit 31 is not set; the base of the child is b ^ c ^ the offset that the unit stores. A
 * unit with bit 8 says that a key ends there; the unit at its base then has the place of the replacement. charsmap_new
 * walks through all keys that a text in UTF-8 can contain, once, with all checks; searches then need none.
 *
 * The search. The obvious way walks from the root at each character of a text. Most characters begin some key of the
 * usual maps, because "a" and a combining accent is one. But a key has one character, or its second character is,
 * nearly always, a combining mark. So a text is searched for characters that are keys by themselves or the second
 * character of one (code_search.h). A key begins at such a character or at the one before it, and nowhere else.
 *
 * Example: in "cafe" and U+0301, only U+0301 is searched for. The key begins at the "e" before it.
 */
#include "charsmap.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "code_sets.h"
#include "common/bytes.h"
#include "common/error.h"
#include "grapheme_tables.h"
#include "platform/os.h"
#include "text/code_point.h"
#include "text/utf8.h"

/*
 * ---- grapheme clusters ----
 *
 * The rules are those of Unicode Standard Annex #29, whose names the comments have.
 */

static enum grapheme_class class_at(const uint8_t *text, size_t *bytes)
{
    const uint32_t code = code_point_get(text, bytes);
    return (enum grapheme_class)grapheme_blocks[grapheme_first[code >> 6]][code & 63];
}

static bool is_control(enum grapheme_class class)
{
    return class >= GRAPHEME_CONTROL && class <= GRAPHEME_LF;
}

static bool is_extend(enum grapheme_class class)
{
    return class >= GRAPHEME_EXTEND && class <= GRAPHEME_EXTEND_ONLY;
}

/* Returns whether two characters belong together, whatever is before them. */
static bool joins(enum grapheme_class left, enum grapheme_class right)
{
    if (is_control(left) || is_control(right))
        return left == GRAPHEME_CR && right == GRAPHEME_LF; /* GB3, GB4, GB5 */
    if (is_extend(right) || right == GRAPHEME_ZWJ || right == GRAPHEME_SPACING || left == GRAPHEME_PREPEND)
        return true;        /* GB9, GB9a, GB9b */
    if (left == GRAPHEME_L) /* GB6 */
        return right == GRAPHEME_L || right == GRAPHEME_V || right == GRAPHEME_LV || right == GRAPHEME_LVT;
    if (left == GRAPHEME_LV || left == GRAPHEME_V) /* GB7 */
        return right == GRAPHEME_V || right == GRAPHEME_T;
    return (left == GRAPHEME_LVT || left == GRAPHEME_T) && right == GRAPHEME_T; /* GB8 */
}

size_t grapheme_end(const uint8_t *text, size_t at, size_t count)
{
    size_t bytes;
    assert(at < count);
    enum grapheme_class left = class_at(text + at, &bytes);
    /* What may come before the next character, of the rules that look at more than two: a pictograph with marks, and a
     * joiner after it; a consonant with marks, and a linker among them. */
    bool pictograph = left == GRAPHEME_PICTOGRAPH, joined = false;
    bool consonant = left == GRAPHEME_CONSONANT, linked = false;
    for (at += bytes; at < count; at += bytes) {
        const enum grapheme_class right = class_at(text + at, &bytes);
        if (!joins(left, right) && !(joined && right == GRAPHEME_PICTOGRAPH) && /* GB11 */
            !(linked && right == GRAPHEME_CONSONANT))                           /* GB9c */
            return at;
        joined = pictograph && right == GRAPHEME_ZWJ;
        pictograph = right == GRAPHEME_PICTOGRAPH || (pictograph && is_extend(right));
        const bool continues =
            consonant && (right == GRAPHEME_EXTEND || right == GRAPHEME_LINKER || right == GRAPHEME_ZWJ);
        linked = continues && (linked || right == GRAPHEME_LINKER);
        consonant = continues || right == GRAPHEME_CONSONANT;
        left = right;
    }
    return count;
}

size_t grapheme_begin(const uint8_t *text, size_t from, size_t at)
{
    size_t bytes;
    while (at > from) {
        size_t before = at;
        while ((text[--before] & 0xC0) == 0x80)
            ;
        const enum grapheme_class left = class_at(text + before, &bytes), right = class_at(text + at, &bytes);
        const bool longer = left == GRAPHEME_ZWJ || is_extend(left);
        if (!joins(left, right) && !(longer && (right == GRAPHEME_PICTOGRAPH || right == GRAPHEME_CONSONANT)))
            return at;
        at = before;
    }
    return from;
}

/* ---- the map ---- */

#define KEY_MOST 256
#define MADE_MOST 4096
#define NODES_MOST (1u << 21)
#define CLUSTER_MOST 6 /* a cluster of fewer bytes is replaced as a whole */

struct charsmap {
    uint8_t *bytes; /* the copy */
    size_t count;
    uint32_t *units;     /* the trie */
    const uint8_t *made; /* the replacements */
    size_t made_count;
    uint32_t root;
    uint64_t growth;
    bool makes_spaces;
    struct code_bits set; /* of `search` */
    struct code_search search;
};

static bool unit_is(uint32_t unit, uint32_t byte)
{
    return (unit & (UINT32_C(1) << 31 | 0xFF)) == byte;
}

static bool unit_ends_key(uint32_t unit)
{
    return unit >> 8 & 1;
}

static uint32_t unit_offset(uint32_t unit)
{
    return (unit >> 10) << ((unit & UINT32_C(1) << 9) >> 6);
}

static uint32_t unit_value(uint32_t unit)
{
    return unit & ~(UINT32_C(1) << 31);
}

/* ---- reading ---- */

/* A walk through all keys, with a frame for each byte of the present one. */
struct frame {
    uint32_t base;
    uint32_t child;      /* 1 + the unit of the next child, or 0 */
    uint8_t first, last; /* the bytes that may follow in UTF-8 */
    uint8_t left;        /* bytes that are missing at the present character */
    uint8_t characters;  /* whole characters before this node; 3: three or more */
    uint32_t code;       /* the present character, as far as its bytes are known */
};

struct walk {
    struct charsmap *map;
    uint32_t units, nodes;
    uint32_t *children; /* by base: 1 + the unit of a child, or 0 */
    uint32_t *others;   /* by unit: 1 + the unit of another child of the same node, or 0 */
    struct frame frames[KEY_MOST + 1];
    const char *path, *field;
    struct tokmap_error *error;
};

static enum tokmap_status damaged(const struct walk *walk, const char *what)
{
    return error_set_field(walk->error, TOKMAP_ERROR_FORMAT, walk->path, walk->field, " %s; the file is damaged", what);
}

static enum tokmap_status too_large(const struct walk *walk, const char *what)
{
    return error_set_field(walk->error, TOKMAP_ERROR_LIMIT, walk->path, walk->field,
                           " %s, which is more than tokmap can read", what);
}

/* Checks the replacement of a key of `bytes` bytes. */
static enum tokmap_status check_made(struct walk *walk, uint32_t value, uint32_t bytes)
{
    struct charsmap *map = walk->map;
    if (value > map->made_count)
        return damaged(walk, "has a replacement outside of the map");
    const uint8_t *made = map->made + value;
    const size_t room = map->made_count - value, count = strnlen((const char *)made, min64(room, MADE_MOST + 1));
    if (count > MADE_MOST)
        return too_large(walk, "has a replacement of more than 4096 bytes");
    if (utf8_valid_prefix((const char *)made, count) != count)
        return damaged(walk, "has a replacement that is not UTF-8");
    for (size_t i = 1; i < count; i++)
        map->makes_spaces |= made[i] == ' ' && made[i - 1] == ' ';
    map->growth = max64(map->growth, div_ceil(count, bytes));
    return TOKMAP_OK;
}

/* Makes the frame of the node behind a byte. Returns false if a character cannot begin with it. */
static bool frame_follow(const struct frame *frame, uint8_t byte, struct frame *into)
{
    *into = *frame;
    if (frame->left) {
        into->left--;
        into->code = frame->code << 6 | (byte & 63u);
    } else {
        if (byte >= 0x80 && byte < 0xC2)
            return false;
        into->left = byte < 0x80 ? 0 : byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
        into->code = byte < 0x80 ? byte : byte & (0x3Fu >> into->left);
    }
    into->first = into->left ? 0x80 : 1;
    into->last = into->left ? 0xBF : 0xF4;
    if (!frame->left && byte >= 0xE0) { /* nothing longer than necessary, no surrogates, nothing above U+10FFFF */
        into->first = byte == 0xE0 ? 0xA0 : byte == 0xF0 ? 0x90 : 0x80;
        into->last = byte == 0xED ? 0x9F : byte == 0xF4 ? 0x8F : 0xBF;
    }
    if (!into->left && into->characters < 3)
        into->characters++;
    return true;
}

/* Looks at a node that is reached after `bytes` bytes of a key. */
static enum tokmap_status node_visit(struct walk *walk, uint32_t unit, const struct frame *frame, uint32_t bytes)
{
    struct charsmap *map = walk->map;
    if (++walk->nodes > NODES_MOST)
        return too_large(walk, "has more than two million nodes, or a circle of nodes");
    if ((frame->base | 255) >= walk->units)
        return damaged(walk, "has a node outside of the map");
    if (unit_ends_key(unit)) {
        if (frame->left)
            return damaged(walk, "has a key that is not UTF-8");
        const enum tokmap_status status = check_made(walk, unit_value(map->units[frame->base]), bytes);
        if (status)
            return status;
    }
    const bool wanted = !frame->left && (frame->characters == 2 || (frame->characters == 1 && unit_ends_key(unit)));
    if (wanted)
        code_bits_add(&map->set, frame->code);
    return TOKMAP_OK;
}

/* Makes lists of the children of each base. */
static bool children_list(struct walk *walk)
{
    walk->children = calloc(walk->units, sizeof *walk->children);
    walk->others = calloc(walk->units, sizeof *walk->others);
    if (!walk->children || !walk->others)
        return false;
    for (uint32_t i = 0; i < walk->units; i++) {
        const uint32_t byte = walk->map->units[i] & 0xFF, base = i ^ byte;
        if (byte && unit_is(walk->map->units[i], byte) && base < walk->units) {
            walk->others[i] = walk->children[base];
            walk->children[base] = i + 1;
        }
    }
    return true;
}

/* Walks through all keys. */
static enum tokmap_status keys_walk(struct walk *walk)
{
    uint32_t depth = 0;
    walk->frames[0] =
        (struct frame){.base = walk->map->root, .child = walk->children[walk->map->root], .first = 1, .last = 0xF4};
    for (;;) {
        struct frame *frame = &walk->frames[depth], next;
        if (!frame->child) {
            if (!depth--)
                return TOKMAP_OK;
            continue;
        }
        const uint32_t at = frame->child - 1, unit = walk->map->units[at];
        const uint8_t byte = unit & 0xFF;
        frame->child = walk->others[at];
        if (byte < frame->first || byte > frame->last || !frame_follow(frame, byte, &next))
            continue;
        if (depth == KEY_MOST)
            return too_large(walk, "has a key of more than 256 bytes, or a circle of nodes");
        next.base = at ^ unit_offset(unit);
        const enum tokmap_status status = node_visit(walk, unit, &next, ++depth);
        if (status)
            return status;
        next.child = walk->children[next.base];
        walk->frames[depth] = next;
    }
}

static enum tokmap_status charsmap_read(struct walk *walk, const uint8_t *bytes, size_t count)
{
    struct charsmap *map = walk->map;
    const uint32_t size = count < 4 ? 0 : load32(bytes);
    if (size % 4 || size < 1024 || size > count - 4)
        return damaged(walk, "has a trie of a wrong size");
    walk->units = size / 4;
    map->bytes = calloc(count + 1, 1);
    map->units = malloc(size);
    if (!map->bytes || !map->units)
        return error_set_memory(walk->error, "a precompiled map", count + size);
    memcpy(map->bytes, bytes, count);
    memcpy(map->units, bytes + 4, size);
    map->count = count;
    map->made = map->bytes + 4 + size;
    map->made_count = count - 4 - size;
    map->root = unit_offset(map->units[0]);
    map->growth = 1;
    if ((map->root | 255) >= walk->units)
        return damaged(walk, "has a node outside of the map");
    return children_list(walk) ? keys_walk(walk)
                               : error_set_memory(walk->error, "a precompiled map", 2 * (uint64_t)size);
}

enum tokmap_status charsmap_new(struct charsmap **map, const uint8_t *bytes, size_t count, const char *path,
                                const char *field, struct tokmap_error *error)
{
    struct walk *walk = calloc(1, sizeof *walk);
    *map = calloc(1, sizeof **map);
    if (!walk || !*map) {
        free(walk);
        free(*map);
        *map = NULL;
        return error_set_memory(error, "a precompiled map", sizeof **map);
    }
    walk->map = *map;
    walk->path = path;
    walk->field = field;
    walk->error = error;
    const enum tokmap_status status = charsmap_read(walk, bytes, count);
    free(walk->children);
    free(walk->others);
    free(walk);
    if (status) {
        charsmap_free(*map);
        *map = NULL;
        return status;
    }
    code_search_init(&(*map)->search, &(*map)->set, cpu_variant_best());
    return TOKMAP_OK;
}

void charsmap_free(struct charsmap *map)
{
    if (!map)
        return;
    free(map->bytes);
    free(map->units);
    free(map);
}

uint64_t charsmap_growth(const struct charsmap *map)
{
    return map->growth;
}

bool charsmap_makes_spaces(const struct charsmap *map)
{
    return map->makes_spaces;
}

const uint8_t *charsmap_bytes(const struct charsmap *map, size_t *count)
{
    *count = map->count;
    return map->bytes;
}

/* ---- searching ---- */

/* Finds the longest key, or the shortest one, at the beginning of a text. Returns its bytes; 0: there is none. */
static size_t key_at(const struct charsmap *map, const uint8_t *text, size_t count, bool shortest, uint32_t *value)
{
    const uint32_t *units = map->units;
    uint32_t base = map->root;
    size_t found = 0;
    for (size_t i = 0; i < count && text[i]; i++) {
        const uint32_t unit = units[base ^ text[i]];
        if (!unit_is(unit, text[i]))
            break;
        base ^= text[i] ^ unit_offset(unit);
        if (unit_ends_key(unit)) {
            *value = unit_value(units[base]);
            found = i + 1;
            if (shortest)
                break;
        }
    }
    return found;
}

/* Sets what a key is replaced by. */
static void part_make(const struct charsmap *map, struct charsmap_part *part, uint32_t value)
{
    size_t count = 0;
    part->made = map->made + value;
    while (part->made[count]) /* most are short; map->bytes ends with a 0 */
        count++;
    part->made_count = count;
}

bool charsmap_find(const struct charsmap *map, const uint8_t *text, size_t at, size_t limit, size_t count,
                   struct code_block *block, struct charsmap_part *part)
{
    assert(at <= limit && limit <= count);
    uint32_t first = 0;
    const size_t near = at && at < limit ? key_at(map, text + at, count - at, false, &first) : 0;
    if (near) { /* what is replaced is often beside what is replaced */
        *part = (struct charsmap_part){at, at + near, NULL, 0};
        part_make(map, part, first);
        return true;
    }
    for (size_t tried = at;;) { /* no key begins before `tried` */
        size_t found = code_search_next(&map->search, text, tried, count, block);
        if (found == count)
            return false;
        size_t from = found;
        while (from > at && (--from, (text[from] & 0xC0) == 0x80))
            ;
        for (uint32_t value = 0, bytes; from < limit; from = found) {
            bytes = (uint32_t)key_at(map, text + from, count - from, false, &value);
            if (bytes) {
                *part = (struct charsmap_part){from, from + bytes, NULL, 0};
                part_make(map, part, value);
                return true;
            }
            if (from == found)
                break;
        }
        if (from >= limit)
            return false;
        size_t bytes;
        (void)code_point_get(text + found, &bytes);
        tried = found + bytes;
        if (tried >= count)
            return false;
    }
}

/* Finds the next character of the cluster that ends at place->end that is a key. */
static bool next_character(const struct charsmap *map, const uint8_t *text, size_t count,
                           struct charsmap_clusters *place, struct charsmap_part *part)
{
    while (place->at < place->end) {
        const size_t from = code_search_next(&map->search, text, place->at, count, &place->block);
        size_t bytes;
        uint32_t value = 0;
        if (from >= place->end)
            break;
        (void)code_point_get(text + from, &bytes);
        place->at = from + bytes;
        if (key_at(map, text + from, bytes, true, &value)) {
            *part = (struct charsmap_part){from, from + bytes, NULL, 0};
            part_make(map, part, value);
            return true;
        }
    }
    place->at = place->end;
    return false;
}

bool charsmap_find_cluster(const struct charsmap *map, const uint8_t *text, size_t count,
                           struct charsmap_clusters *place, struct charsmap_part *part)
{
    for (;;) {
        if (place->at < place->end && next_character(map, text, count, place, part))
            return true;
        const size_t found = code_search_next(&map->search, text, place->at, count, &place->block);
        if (found == count)
            return false;
        size_t from = grapheme_begin(text, place->at, found), end;
        while ((end = grapheme_end(text, from, count)) <= found)
            from = end;
        uint32_t value = 0;
        if (end - from < CLUSTER_MOST && key_at(map, text + from, end - from, true, &value)) {
            *part = (struct charsmap_part){from, end, NULL, 0};
            part_make(map, part, value);
            place->at = end;
            return true;
        }
        place->at = from;
        place->end = end;
    }
}

/* ---- maps of single characters ---- */

static bool map_run(int map, uint32_t code, uint32_t *end)
{
    static const uint8_t sets[] = {[CHAR_MAP_MARKS] = CODE_MARKS,
                                   [CHAR_MAP_NMT] = CODE_NMT,
                                   [CHAR_MAP_BERT_CLEAN] = CODE_BERT_CONTROL,
                                   [CHAR_MAP_BERT_MARKS] = CODE_BERT_MARKS};
    if (map == CHAR_MAP_LOWER) {
        const struct case_range *range = code_find(case_ranges, sizeof *range, CASE_RANGES, code);
        *end = !range ? CODES : range->first > code ? range->first : code + 1;
        return code_lower(code) != code;
    }
    if (map == CHAR_MAP_BERT_CHINESE) {
        *end = (code | 15) + 1; /* all ranges have whole blocks of 16 */
        return code_is_chinese(code);
    }
    const bool has = code_set_run(&code_sets[sets[map]], code, end);
    if (map != CHAR_MAP_BERT_CLEAN || code > 0x3000) /* no white space is above it */
        return has;
    *end = code + 1;
    return has || (code_is_space(code) && code != ' ');
}

const struct code_bits *char_map_set(enum char_map map)
{
    static struct code_bits sets[CHAR_MAPS];
    static bool made[CHAR_MAPS];
    os_process_lock();
    if (!made[map])
        code_bits_add_runs(&sets[map], map_run, (int)map);
    made[map] = true;
    os_process_unlock();
    return &sets[map];
}

size_t char_map_put(enum char_map map, uint8_t *into, uint32_t code)
{
    if (map == CHAR_MAP_LOWER) {
        const size_t bytes = code_point_put(into, code_lower(code));
        return bytes + (code == 0x130 ? code_point_put(into + bytes, 0x307) : 0);
    }
    *into = ' ';
    if (map == CHAR_MAP_BERT_CHINESE) {
        const size_t bytes = 1 + code_point_put(into + 1, code);
        into[bytes] = ' ';
        return bytes + 1;
    }
    return (map == CHAR_MAP_NMT && !code_set_has(CODE_NMT_REMOVED, code)) ||
           (map == CHAR_MAP_BERT_CLEAN && !code_set_has(CODE_BERT_CONTROL, code));
}
