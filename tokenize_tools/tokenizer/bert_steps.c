/* SPDX-License-Identifier: MIT */
/* bert_steps.c - each step goes from character to character, and copies what is between those that it changes. */
#include "bert_steps.h"

#include "text/code_point.h"
#include "unicode/code_sets.h"

/* Returns the text that replaces a character, or NULL if it stays. */
static const char *replacement(enum bert_step step, uint32_t code)
{
    if (step == BERT_MARKS)
        return code_set_has(CODE_BERT_MARKS, code) ? "" : NULL;
    if (code_set_has(CODE_BERT_CONTROL, code))
        return "";
    return code_is_space(code) && code != ' ' ? " " : NULL;
}

static bool put(struct bytes_buffer *into, struct text_edits *trace, const void *bytes, size_t count, size_t from,
                size_t to)
{
    return (!trace || text_edits_add(trace, (struct text_edit){into->count, into->count + count, from, to})) &&
           bytes_append(into, bytes, count);
}

/* Puts spaces around the character text[at..end). */
static bool put_spaces(struct bytes_buffer *into, struct text_edits *trace, const uint8_t *text, size_t at, size_t end)
{
    return put(into, trace, " ", 1, at, at) && bytes_append(into, text + at, end - at) &&
           put(into, trace, " ", 1, end, end);
}

bool bert_step_run(enum bert_step step, struct bytes_buffer *into, struct text_edits *trace, const uint8_t **text,
                   size_t *count)
{
    const uint8_t *from = *text;
    size_t done = 0, bytes;
    for (size_t at = 0; at < *count; at += bytes) {
        bytes = 1;
        if (from[at] >= ' ' && from[at] < 0x7F)
            continue;
        const uint32_t code = code_point_get(from + at, &bytes);
        const bool chinese = step == BERT_CHINESE;
        const char *replaced = chinese ? NULL : replacement(step, code);
        if (!(chinese ? code_is_chinese(code) : replaced != NULL))
            continue;
        if (!bytes_append(into, from + done, at - done) ||
            !(chinese ? put_spaces(into, trace, from, at, at + bytes)
                      : put(into, trace, replaced, *replaced != '\0', at, at + bytes)))
            return false;
        done = at + bytes;
    }
    if (!done)
        return true;
    if (!bytes_append(into, from + done, *count - done))
        return false;
    *text = into->bytes;
    *count = into->count;
    return true;
}
