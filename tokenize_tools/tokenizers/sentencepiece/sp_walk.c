/* SPDX-License-Identifier: MIT */
#include "sp_walk.h"

#include <string.h>

#include "unicode/byte_alphabet.h"

static bool begins_with_space(const struct sp_model *model, const uint8_t *text, uint64_t count)
{
    return text[0] == ' ' || (model->escape && count >= 3 && !memcmp(text, SP_MARK, 3));
}

/* Returns whether a space is put before a text, which is not empty. */
static bool wants_prefix(const struct sp_model *model, const uint8_t *text, uint64_t count, enum engine_place place)
{
    switch (model->prefix) {
    case SP_PREFIX_ALWAYS:
        return place != ENGINE_INSIDE;
    case SP_PREFIX_UNLESS:
        return !begins_with_space(model, text, count);
    case SP_PREFIX_FIRST:
        return place == ENGINE_DOCUMENT_START && !begins_with_space(model, text, count);
    case SP_PREFIX_NEVER:
    default:
        return false;
    }
}

bool sp_begins(const struct sp_model *model, enum engine_place place, const uint8_t **text, uint64_t *count,
               bool *prefix)
{
    *prefix = *count && wants_prefix(model, *text, *count, place);
    if (*count || model->suffix)
        return true;
    if (model->prefix != SP_PREFIX_ALWAYS || model->remove_spaces || place == ENGINE_INSIDE)
        return false;
    *text = (const uint8_t *)" ";
    *count = 1;
    return true;
}

/* ---- where the ids of a text are in it ----
 *
 * The model sees the text with changes: a space before it, U+2581 as a space, and with remove_spaces fewer spaces. The
 * walk makes these changes as it goes. Example, with a prefix and remove_spaces: the text "a  b" is " a b" to the
 * model, and the tokens " a" and " b" are [0,1) and [1,4) of the text: the second space, which was removed, is inside
 * of the token that has the first one.
 *
 * An unknown token says nothing of its text. It takes one character or, with fuse_unk, what is unknown up to where the
 * next id fits. */

/* Skips spaces that remove_spaces removes. */
static void skip(struct sp_walker *own)
{
    const uint8_t *text = own->text;
    uint64_t at = own->at;
    while (own->model->remove_spaces && at < own->count && text[at] == ' ' && (!at || text[at - 1] == ' '))
        at++;
    own->at = at;
}

static bool reads_mark(const struct sp_walker *own, uint64_t at)
{
    return own->count - at >= 3 && !memcmp(own->text + at, SP_MARK, 3);
}

/* Returns whether a mark stands for a space. */
static bool is_mark(const struct sp_walker *own, uint64_t at)
{
    return own->model->escape && reads_mark(own, at);
}

/* Moves along the bytes of a token. *begin receives the first byte of the text that is part of it. Returns false if the
 * text is different. */
static bool match(struct sp_walker *own, const uint8_t *bytes, uint32_t length, uint64_t *begin)
{
    struct sp_walker now = *own;
    bool begun = false;
    for (uint32_t i = 0; i < length; i++) {
        skip(&now);
        if (now.prefix) {
            now.prefix = false;
            if (bytes[i] != ' ')
                return false;
            *begin = now.at;
            continue;
        }
        if (now.at >= own->count) {
            if (!now.suffix || bytes[i] != ' ')
                return false;
            now.suffix = false;
            if (!begun)
                *begin = now.at;
            begun = true;
            continue;
        }
        /* The bytes of tokens have spaces for marks, also where the text has both. */
        const bool mark = is_mark(own, now.at) || (bytes[i] == ' ' && reads_mark(own, now.at));
        if ((mark ? ' ' : own->text[now.at]) != bytes[i])
            return false;
        if (!begun)
            *begin = now.at;
        begun = true;
        now.at += mark ? 3 : 1;
    }
    *own = now;
    return length != 0;
}

static bool match_id(struct sp_walker *own, uint32_t id, uint64_t *begin)
{
    const struct bpe_model *head = &own->model->head;
    return id < head->vocabulary &&
           match(own, head->bytes + head->offsets[id], head->offsets[id + 1] - head->offsets[id], begin);
}

/* Returns whether the next character has no token, and its length. */
static bool is_unknown(const struct sp_walker *own, uint32_t *length)
{
    const struct sp_model *model = own->model;
    *length = 0;
    const bool end = !own->prefix && own->at >= own->count;
    if (end && !own->suffix)
        return false;
    const uint32_t code = own->prefix || end || is_mark(own, own->at)
                              ? ' '
                              : sp_character(own->text + own->at, own->count - own->at, length);
    if (!own->prefix && !end && !*length)
        *length = 3; /* a mark */
    const uint32_t symbol = model->atoms[code];
    return !symbol || model->ids[symbol - 1] == BPE_NONE;
}

/* Returns whether the id after the next one fits. */
static bool other_fits(struct sp_walker own, const struct id_walk *walk)
{
    struct id_walk rest = *walk;
    uint64_t unused;
    return ++rest.at < rest.count && match_id(&own, id_walk_next(&rest), &unused);
}

/* Moves along a character without a token. Returns false if the next one has a token. */
static bool take_character(struct sp_walker *own, uint64_t *begin)
{
    uint32_t length;
    if (!is_unknown(own, &length))
        return false;
    *begin = own->at;
    if (!own->prefix && own->at >= own->count)
        own->suffix = false;
    own->prefix = false;
    own->at += length;
    return true;
}

/* Moves along the name of the unknown token, if the text continues after it as the ids do. */
static bool take_name(struct sp_walker *own, const struct id_walk *walk, uint64_t *begin)
{
    struct sp_walker next = *own, again;
    uint64_t named, unused;
    uint32_t length;
    if (!match_id(&next, own->model->unk, &named))
        return false;
    again = next;
    const bool ends = next.at >= own->count; /* ids that are left are of the next piece */
    if (!ends && !other_fits(next, walk) && !is_unknown(&next, &length) && !match_id(&again, own->model->unk, &unused))
        return false;
    *own = next;
    *begin = named;
    return true;
}

/* Moves along what an unknown token stands for: characters without a token, or its own name. */
static bool take_unknown(struct sp_walker *own, const struct id_walk *walk, uint64_t *begin)
{
    const bool fused = own->model->fuse_unk && !own->model->byte_fallback;
    uint64_t from = 0;
    for (bool any = false;; any = true) {
        skip(own);
        if (any && !fused)
            return true;
        if (!take_name(own, walk, &from) && ((any && other_fits(*own, walk)) || !take_character(own, &from)))
            return any || match_id(own, own->model->unk, begin);
        if (!any)
            *begin = from;
    }
}

/* Returns where the text ends without the spaces that are removed from its end. */
static uint64_t stripped_end(const struct sp_model *model, const uint8_t *text, uint64_t count)
{
    for (;;) {
        if (count && text[count - 1] == ' ')
            count--;
        else if (model->escape && count >= 3 && !memcmp(text + count - 3, SP_MARK, 3))
            count -= 3;
        else
            return count;
    }
}

/* Returns whether a space comes after a text: not after spaces that are all removed. */
static bool has_suffix(const struct sp_model *model, const uint8_t *text, uint64_t count)
{
    uint64_t spaces = 0;
    while (model->remove_spaces && spaces < count && text[spaces] == ' ')
        spaces++;
    return model->suffix && (!count || spaces < count);
}

bool sp_walker_begin(struct sp_walker *walker, const struct sp_model *model, const uint8_t *text, uint64_t count,
                     enum engine_place place)
{
    bool prefix;
    if (!count) { /* it may become a space, which is not in the text */
        const uint8_t *unused = text;
        uint64_t spaces = 0;
        if (!sp_begins(model, place, &unused, &spaces, &prefix))
            return false;
        prefix = !model->suffix;
    } else {
        prefix = wants_prefix(model, text, count, place);
    }
    *walker = (struct sp_walker){.model = model,
                                 .text = text,
                                 .count = model->remove_spaces ? stripped_end(model, text, count) : count,
                                 .prefix = prefix,
                                 .suffix = has_suffix(model, text, count)};
    return !count || walker->count || walker->suffix; /* an empty text gets no space before it either */
}

bool sp_walker_token(struct sp_walker *walker, uint32_t id, const uint8_t *bytes, uint32_t length, struct id_walk *walk)
{
    uint64_t begin = 0;
    skip(walker);
    if (walk->at == walk->count || id_walk_next(walk) != id)
        return false;
    if (!length)
        begin = walker->at;
    else if (!match(walker, bytes, length, &begin))
        return false;
    walk->found(walk->user, walk->at++, begin, begin > walker->at ? begin : walker->at);
    return true;
}

bool sp_walk(const struct sp_model *model, const uint8_t *text, uint64_t count, enum engine_place place,
             struct id_walk *walk)
{
    struct sp_walker own;
    uint64_t begin = 0;
    if (!sp_walker_begin(&own, model, text, count, place))
        return true;
    if (model->whole_bytes && !own.prefix && count == 6 && walk->at < walk->count &&
        sp_whole(model, text, (size_t)count) == id_walk_next(walk) && byte_named(text, 6) >= 0) {
        walk->found(walk->user, walk->at++, 0, count);
        return true;
    }
    for (;; walk->at++) {
        skip(&own);
        if (own.at >= own.count && !own.prefix && !own.suffix)
            return true;
        if (walk->at == walk->count)
            return false;
        const uint32_t id = id_walk_next(walk);
        if (!(id == model->unk ? take_unknown(&own, walk, &begin) : match_id(&own, id, &begin)))
            return false;
        walk->found(walk->user, walk->at, begin, begin > own.at ? begin : own.at);
    }
}
