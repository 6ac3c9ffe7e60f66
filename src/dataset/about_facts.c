/* about_facts.c - see about_facts.h. */
#include "about_facts.h"

#include <string.h>

#include "common/hash.h"
#include "text/json_scan.h"

/* Takes a text that fits, and skips any other value. */
static bool take_text(struct json_scan *scan, char *into, size_t room)
{
    struct json_string text;
    if (json_kind(scan) != JSON_STRING)
        return json_skip(scan);
    if (!json_text(scan, &text))
        return false;
    const size_t bytes = text.count < room ? text.count : room - 1;
    memcpy(into, text.bytes, bytes);
    into[bytes] = '\0';
    return true;
}

static bool take_shares(struct json_scan *scan, uint64_t *sets)
{
    struct json_string name;
    if (json_kind(scan) != JSON_OBJECT)
        return json_skip(scan);
    *sets = 1;
    if (json_enter_object(scan))
        while (json_member(scan, &name)) {
            *sets = *sets * 0x9e3779b97f4a7c15 + hash64(name.bytes, name.count);
            if (!json_skip(scan))
                break;
        }
    return !scan->fault.reason;
}

static bool take_split(struct json_scan *scan, struct about_facts *facts)
{
    struct json_string name;
    if (json_kind(scan) != JSON_OBJECT)
        return json_skip(scan);
    if (json_enter_object(scan))
        while (json_member(scan, &name))
            if (json_name_is(&name, "set")      ? !take_text(scan, facts->set, sizeof facts->set)
                : json_name_is(&name, "shares") ? !take_shares(scan, &facts->sets)
                                                : !json_skip(scan))
                break;
    return !scan->fault.reason;
}

/* Takes an object that has `wanted` as a member, which is the tokenizer's name, or the split. */
static bool take_member(struct json_scan *scan, const char *wanted, struct about_facts *facts)
{
    struct json_string name;
    if (json_kind(scan) != JSON_OBJECT)
        return json_skip(scan);
    if (json_enter_object(scan))
        while (json_member(scan, &name))
            if (!json_name_is(&name, wanted)   ? !json_skip(scan)
                : strcmp(wanted, "split") == 0 ? !take_split(scan, facts)
                                               : !take_text(scan, facts->tokenizer, sizeof facts->tokenizer))
                break;
    return !scan->fault.reason;
}

void about_facts_read(const struct index *index, struct about_facts *facts)
{
    struct json_scan scan;
    struct json_string name;
    const char *about;
    uint64_t bytes;
    *facts = (struct about_facts){.sets = 0};
    if (index_about(index, &about, &bytes, NULL) || bytes == 0)
        return;
    json_begin(&scan, about, bytes);
    if (json_enter_object(&scan))
        while (json_member(&scan, &name))
            if (json_name_is(&name, "tokenizer") ? !take_member(&scan, "name", facts)
                : json_name_is(&name, "options") ? !take_member(&scan, "split", facts)
                                                 : !json_skip(&scan))
                break;
    if (!json_end(&scan))
        *facts = (struct about_facts){.sets = 0};
}
