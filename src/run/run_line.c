/* SPDX-License-Identifier: MIT */
/* run_line.c - see run_line.h. */
#include "run_line.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes_buffer.h"

enum { WORDS_MOST = 16 }; /* of any line but those whose directive takes a list */

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

static enum tokmap_status add_word(struct run_line *at, char *word)
{
    if (at->count >= WORDS_MOST && strcmp(at->words[0], "phase") != 0)
        return line_wrong(at, "the line has more words than any directive but 'phase' takes; write one directive on a "
                              "line");
    if (!list_room(&at->words, at->count, &at->capacity, sizeof *at->words))
        return error_set_memory(at->error, "the words of a line", at->capacity * sizeof *at->words);
    at->words[at->count++] = word;
    return TOKMAP_OK;
}

enum tokmap_status run_line_cut(struct run_line *at, char *text)
{
    at->count = 0;
    for (;;) {
        while (is_space(*text))
            text++;
        if (*text == '\0' || *text == '#')
            return TOKMAP_OK;
        char *into = text;
        enum tokmap_status status = add_word(at, text);
        if (status)
            return status;
        if (*text != '"') {
            while (*text != '\0' && !is_space(*text))
                text++;
            if (*text != '\0')
                *text++ = '\0';
            continue;
        }
        for (text++; *text != '"'; text++) {
            if (*text == '\\' && (text[1] == '"' || text[1] == '\\'))
                text++;
            if (*text == '\0')
                return line_wrong(at, "a word begins with a double quote but does not end with one; add the closing "
                                      "quote");
            *into++ = *text;
        }
        text++;
        bool end = *text == '\0';
        if (!end && !is_space(*text))
            return line_wrong(at, "the closing double quote is not followed by a space; add one");
        *into = '\0';
        if (!end)
            text++;
    }
}

void run_line_free(struct run_line *at)
{
    free(at->words);
    at->words = NULL;
    at->count = at->capacity = 0;
}
