/* SPDX-License-Identifier: MIT */
/* train_words.c - see train_words.h. */
#include "train_words.h"

#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "text/code_point.h"
#include "unicode/code_sets.h"

/* Kinds of characters: a script, by number, or one of these. */
enum {
    KIND_ANY = SCRIPT_ANY, /* belongs to its neighbors on both sides, of whatever script */
    KIND_LINE = 252,       /* belongs to its like only */
    KIND_ALONE,            /* belongs to nothing */
    KIND_SPACE,            /* begins a word */
    KIND_MARK              /* belongs to what is before it: of the script Inherited */
};
#define MARK 0x300 /* a character of that script */

struct train_cutter {
    bool dummy_prefix;
    uint8_t kinds[CODES];
};

static void digits_are(struct train_cutter *cutter, uint8_t kind)
{
    memset(&cutter->kinds['0'], kind, 10);
    memset(&cutter->kinds[0xFF10], kind, 10);
}

enum tokmap_status train_cutter_new(struct train_cutter **cutter, const struct train_word_rules *rules,
                                    struct train_budget *budget, struct tokmap_error *error)
{
    const enum tokmap_status status = train_take(budget, (void **)cutter, 1, sizeof **cutter, error);
    if (status)
        return status;
    struct train_cutter *made = *cutter;
    made->dummy_prefix = rules->dummy_prefix;
    for (uint32_t i = 0; i < SCRIPT_SPANS && rules->scripts; i++) {
        const struct code_span *span = &script_spans[i];
        const bool mark = span->number == code_script(MARK);
        memset(made->kinds + span->first, mark ? KIND_MARK : span->number, span->last + 1 - span->first);
    }
    if (rules->digits)
        digits_are(made, KIND_ALONE);
    else if (!rules->numbers)
        digits_are(made, KIND_ANY);
    made->kinds['\n'] = made->kinds['\r'] = KIND_LINE;
    made->kinds[' '] = made->kinds[TRAIN_SPACE] = KIND_SPACE;
    return TOKMAP_OK;
}

void train_cutter_free(struct train_cutter *cutter, struct train_budget *budget)
{
    train_give(budget, cutter, 1, sizeof *cutter);
}

/* Counts a word with a space in front of it. */
static enum tokmap_status prefixed_count(struct train_counter *counter, const uint8_t *word, uint64_t count,
                                         struct tokmap_error *error)
{
    uint8_t *copy = malloc((size_t)count + 1);
    if (!copy)
        return error_set_memory(error, "the first word of a document", count + 1);
    copy[0] = ' ';
    memcpy(copy + 1, word, (size_t)count);
    const enum tokmap_status status = train_counter_piece(counter, copy, count + 1, count + 1, error);
    free(copy);
    return status;
}

enum tokmap_status train_words_count(const struct train_cutter *cutter, struct train_counter *counter,
                                     const uint8_t *text, uint64_t count, struct tokmap_error *error)
{
    uint32_t before = KIND_ANY;
    uint64_t from = 0;
    bool prefix = cutter->dummy_prefix && count;
    enum tokmap_status status = TOKMAP_OK;
    train_counter_read(counter, count);
    for (uint64_t at = 0; at < count && !status;) {
        size_t bytes;
        const uint32_t code = code_point_get(text + at, &bytes);
        uint32_t kind = cutter->kinds[code];
        bool cut = kind != before && before != KIND_ANY && kind != KIND_ANY;
        if (kind == KIND_SPACE) {
            cut = true;
            kind = KIND_ANY;
        } else if (kind == KIND_MARK) {
            cut = before >= KIND_LINE;
            kind = cut ? KIND_ANY : before;
        } else if (kind == KIND_ALONE || before == KIND_ALONE) {
            cut = true;
        }
        if (cut && (at > from || prefix)) {
            status = prefix ? prefixed_count(counter, text + from, at - from, error)
                            : train_counter_piece(counter, text + from, at - from, count - from, error);
            prefix = false;
            from = at;
        }
        before = kind;
        at += bytes;
    }
    if (!status && (count > from || prefix))
        status = prefix ? prefixed_count(counter, text + from, count - from, error)
                        : train_counter_piece(counter, text + from, count - from, count - from, error);
    return status;
}
