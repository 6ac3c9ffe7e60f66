/* json_field.c - see json_field.h. text/json_scan does the scanning. */
#include "json_field.h"

#include <assert.h>

static bool scan_failed(const struct json_scan *scan, struct json_fault *fault)
{
    *fault = scan->fault;
    return false;
}

/* The record is valid JSON, but the record or its field is not what is needed. */
static bool fault_at(struct json_fault *fault, size_t offset, const char *reason)
{
    *fault = (struct json_fault){offset, reason};
    return false;
}

bool json_field_find(const char *record, size_t count, const char *field, size_t field_bytes, struct json_field *found,
                     struct json_fault *fault)
{
    struct json_scan scan;
    struct json_string name, text;
    const char *found_at = NULL;
    bool is_string = false;
    assert(field && found && fault);
    json_begin(&scan, record, count);
    if (json_kind(&scan) != JSON_OBJECT) {
        const size_t offset = (size_t)(scan.at - record);
        return json_skip(&scan) ? fault_at(fault, offset, JSON_FIELD_NOT_OBJECT) : scan_failed(&scan, fault);
    }
    (void)json_enter_object(&scan);
    while (json_member(&scan, &name)) {
        if (!json_equals(&name, field, field_bytes)) {
            (void)json_skip(&scan);
            continue;
        }
        if (found_at)
            return fault_at(fault, (size_t)(scan.at - record), JSON_FIELD_TWICE);
        found_at = scan.at;
        is_string = json_kind(&scan) == JSON_STRING;
        if (is_string ? json_text(&scan, &text) : json_skip(&scan))
            continue;
    }
    if (!json_end(&scan))
        return scan_failed(&scan, fault);
    if (!found_at)
        return fault_at(fault, 0, JSON_FIELD_MISSING);
    if (!is_string)
        return fault_at(fault, (size_t)(found_at - record), JSON_FIELD_NOT_STRING);
    *found = (struct json_field){(size_t)(text.bytes - record), text.count, text.escaped};
    return true;
}
