/* SPDX-License-Identifier: MIT */
/* about_facts.c - see about_facts.h. */
#include "about_facts.h"

#include <string.h>

#include "common/hash.h"
#include "text/json_scan.h"

/* Goes to the value of a member, from the beginning of the section: names inside one another, which end with NULL. */
static bool begin_at(struct json_scan *scan, const struct index *index, const char *const names[])
{
    struct json_string name;
    const char *about;
    uint64_t bytes;
    if (index_about(index, &about, &bytes, NULL))
        return false;
    json_begin(scan, about, bytes);
    for (; *names; names++) {
        bool found = false;
        if (json_kind(scan) == JSON_OBJECT && json_enter_object(scan))
            while (!found && json_member(scan, &name))
                if (!(found = json_name_is(&name, *names)) && !json_skip(scan))
                    break;
        if (!found)
            return false;
    }
    return true;
}

static void text_at(const struct index *index, const char *const names[], char *into, size_t room)
{
    struct json_scan scan;
    struct json_string text;
    if (begin_at(&scan, index, names) && json_kind(&scan) == JSON_STRING && json_text(&scan, &text)) {
        const size_t bytes = text.count < room ? text.count : room - 1;
        memcpy(into, text.bytes, bytes);
        into[bytes] = '\0';
    }
}

void about_facts_read(const struct index *index, struct about_facts *facts)
{
    static const char *const tokenizer[] = {"tokenizer", "name", NULL};
    static const char *const set[] = {"options", "split", "set", NULL};
    static const char *const shares[] = {"options", "split", "shares", NULL};
    struct json_scan scan;
    struct json_string name;
    *facts = (struct about_facts){.sets = 0};
    text_at(index, tokenizer, facts->tokenizer, sizeof facts->tokenizer);
    text_at(index, set, facts->set, sizeof facts->set);
    if (begin_at(&scan, index, shares) && json_kind(&scan) == JSON_OBJECT && json_enter_object(&scan))
        for (facts->sets = 1; json_member(&scan, &name) && json_skip(&scan);)
            facts->sets = facts->sets * 0x9e3779b97f4a7c15 + hash64(name.bytes, name.count);
}
