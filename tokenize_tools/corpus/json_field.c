/* json_field.c - one field of one object; the scanning is text/json_scan's. */
#include "json_field.h"

static bool fault_of(const struct json_scan *scan, struct json_fault *fault)
{
    *fault = scan->fault;
    return false;
}

/* A fault of the record as a whole or of its field, which is JSON all the same. */
static bool wrong_at(struct json_fault *fault, size_t offset, const char *reason)
{
    *fault = (struct json_fault){offset, reason};
    return false;
}

bool json_find(const char *record, size_t count, const char *field, size_t field_bytes, struct json_field *found,
               struct json_fault *fault)
{
    struct json_scan scan;
    struct json_string name, text;
    const char *found_at = NULL;
    bool is_string = false;
    json_begin(&scan, record, count);
    if (json_kind(&scan) != JSON_OBJECT) {
        const size_t offset = (size_t)(scan.at - record);
        return json_skip(&scan) ? wrong_at(fault, offset, "the record is not a JSON object") : fault_of(&scan, fault);
    }
    (void)json_enter_object(&scan);
    while (json_member(&scan, &name)) {
        if (!json_equals(&name, field, field_bytes)) {
            (void)json_skip(&scan);
            continue;
        }
        if (found_at)
            return wrong_at(fault, (size_t)(scan.at - record), "the field appears twice in the object");
        found_at = scan.at;
        is_string = json_kind(&scan) == JSON_STRING;
        if (is_string ? json_text(&scan, &text) : json_skip(&scan))
            continue;
    }
    if (!json_end(&scan))
        return fault_of(&scan, fault);
    if (!found_at)
        return wrong_at(fault, 0, JSON_MISSING);
    if (!is_string)
        return wrong_at(fault, (size_t)(found_at - record), JSON_NO_STRING);
    *found = (struct json_field){(size_t)(text.bytes - record), text.count, text.escaped};
    return true;
}
