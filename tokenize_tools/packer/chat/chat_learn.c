/* SPDX-License-Identifier: MIT */
#include "chat_learn.h"

#include <stdio.h>
#include <string.h>

/* In the order of enum chat_role. */
static const char *const names[] = {"assistant", "tool", "system", "user", "other"};

/* Tags of thoughts in the templates and the data of models that reason. */
static const struct {
    const char *begin, *end;
} tags[] = {
    {"<think>", "</think>"},           {"<thinking>", "</thinking>"},
    {"[THINK]", "[/THINK]"},           {"<|START_THINKING|>", "<|END_THINKING|>"},
    {"<seed:think>", "</seed:think>"},
};
#define TAGS (sizeof tags / sizeof *tags)

bool chat_learn_add(struct chat_learn *learn, const char *word)
{
    bool *flag = !strcmp(word, "-thinking") ? &learn->no_thinking
                 : !strcmp(word, "-calls")  ? &learn->no_calls
                 : !strcmp(word, "last")    ? &learn->last
                                            : NULL;
    learn->given = true;
    if (flag) {
        const bool fresh = !*flag;
        *flag = true;
        return fresh;
    }
    for (unsigned role = 0; role < CHAT_ROLE_OTHER; role++)
        if (!strcmp(word, names[role])) {
            const bool fresh = !(learn->roles & 1U << role);
            learn->roles |= 1U << role;
            return fresh;
        }
    return false;
}

static void word_print(char text[CHAT_LEARN_TEXT], const char *word, bool there)
{
    const size_t used = strlen(text);
    if (there)
        (void)snprintf(text + used, CHAT_LEARN_TEXT - used, "%s%s", used ? "," : "", word);
}

void chat_learn_print(const struct chat_learn *learn, char text[CHAT_LEARN_TEXT])
{
    *text = 0;
    for (unsigned role = 0; role < CHAT_ROLE_OTHER; role++)
        word_print(text, names[role], learn->roles & 1U << role);
    word_print(text, "-thinking", learn->no_thinking);
    word_print(text, "-calls", learn->no_calls);
    word_print(text, "last", learn->last);
}

const char *chat_role_name(enum chat_role role)
{
    return names[role];
}

/* Returns the role of a message: those that are "developer", "ipython", "tool_results", and "function" have other
 * names in some templates. */
static enum chat_role role_of(const struct chat_message *message)
{
    for (unsigned role = 0; role < CHAT_ROLE_OTHER; role++)
        if (chat_is_role(message, names[role]))
            return (enum chat_role)role;
    if (chat_is_role(message, "developer"))
        return CHAT_ROLE_SYSTEM;
    return chat_is_role(message, "ipython") || chat_is_role(message, "tool_results") ||
                   chat_is_role(message, "function")
               ? CHAT_ROLE_TOOL
               : CHAT_ROLE_OTHER;
}

void chat_learn_apply(const struct chat_learn *learn, struct chat_messages *messages)
{
    const unsigned roles = learn->given ? learn->roles : 1U << CHAT_ROLE_ASSISTANT;
    size_t first = 0;
    for (size_t i = 0; i < messages->count; i++)
        messages->at[i].speaker = role_of(&messages->at[i]);
    if (learn->last) {
        for (first = messages->count; first && !(roles & 1U << messages->at[first - 1].speaker);)
            first--;
        while (first && messages->at[first - 1].speaker != CHAT_ROLE_USER)
            first--;
        first -= first != 0; /* the question */
    }
    for (size_t i = 0; i < messages->count; i++) {
        struct chat_message *message = &messages->at[i];
        message->whole = learn->given && message->taught && !message->masked;
        message->learned = !message->masked && (message->whole || (i >= first && roles & 1U << message->speaker));
    }
}

void chat_counts_add(struct chat_counts sum[CHAT_ROLES], const struct chat_counts more[CHAT_ROLES])
{
    for (unsigned role = 0; role < CHAT_ROLES; role++) {
        sum[role].messages += more[role].messages;
        sum[role].counted += more[role].counted;
    }
}

/* ---- thoughts ---- */

static bool is_space(char byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* Returns where the next tag is in text[at, end), of those that begin thoughts or of those that end them, or `end`;
 * *which is its pair. */
static uint64_t tag_next(const char *text, uint64_t at, uint64_t end, bool begin, size_t *which)
{
    for (; at < end; at++)
        for (size_t i = 0; i < TAGS && (text[at] == '<' || text[at] == '['); i++) {
            const char *tag = begin ? tags[i].begin : tags[i].end;
            const size_t bytes = strlen(tag);
            if (end - at >= bytes && !memcmp(text + at, tag, bytes)) {
                *which = i;
                return at;
            }
        }
    return end;
}

bool chat_thoughts_find(const char *text, uint64_t at, uint64_t end, bool begins, uint64_t *first, uint64_t *after)
{
    size_t opened = 0, closed = 0;
    const uint64_t begin = tag_next(text, at, end, true, &opened), close = tag_next(text, at, begin, false, &closed);
    uint64_t next;
    if (begins && close < begin) {
        *first = at;
        next = close + strlen(tags[closed].end);
    } else {
        if (begin == end)
            return false;
        const char *inside = text + begin + strlen(tags[opened].begin);
        const char *last = memmem(inside, (size_t)(text + end - inside), tags[opened].end, strlen(tags[opened].end));
        for (uint64_t i = at; i < begin && begins; i++)
            begins = is_space(text[i]);
        if (!last && !begins)
            return false;
        *first = begins ? at : begin;
        next = last ? (uint64_t)(last - text) + strlen(tags[opened].end) : end;
    }
    while (next < end && is_space(text[next]))
        next++;
    *after = next;
    return true;
}
