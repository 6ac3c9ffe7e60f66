/* SPDX-License-Identifier: MIT */
/* json_field.c - see json_field.h. text/json_scan does the scanning. */
#include "json_field.h"

#include <assert.h>
#include <string.h>

static bool scan_failed(const struct json_scan *scan, struct json_fault *fault)
{
    *fault = scan->fault;
    return false;
}

/* Reports a record that is valid JSON, but is not, or its field is not, what is needed. */
static bool fault_at(struct json_fault *fault, size_t offset, const char *reason)
{
    *fault = (struct json_fault){offset, reason};
    return false;
}

/* Finds a field in an object inside the record, which is valid JSON. */
static bool inner_find(const char *record, size_t count, const char *field, size_t field_bytes,
                       struct json_field *found, struct json_fault *fault)
{
    struct json_wanted wanted = {.name = field, .name_bytes = field_bytes};
    uint64_t not_finite;
    size_t wrong;
    if (!json_fields_find(record, count, &wanted, 1, false, &not_finite, fault, &wrong))
        return false;
    if (wanted.kind == JSON_NOTHING)
        return fault_at(fault, 0, JSON_FIELD_MISSING);
    if (wanted.kind != JSON_STRING)
        return fault_at(fault, wanted.offset, wanted.kind == JSON_NULL ? JSON_FIELD_NULL : JSON_FIELD_NOT_STRING);
    *found = (struct json_field){wanted.offset, wanted.count, wanted.escaped, not_finite};
    return true;
}

/* Starts to read a record. If the record is not an object or not JSON, the function sets *fault and returns false. */
static bool object_begin(struct json_scan *scan, const char *record, size_t count, struct json_fault *fault)
{
    json_begin(scan, record, count);
    scan->not_finite_allowed = true;
    if (json_kind(scan) != JSON_OBJECT) {
        const size_t offset = (size_t)(scan->at - record);
        return json_skip(scan) ? fault_at(fault, offset, JSON_FIELD_NOT_OBJECT) : scan_failed(scan, fault);
    }
    (void)json_enter_object(scan);
    return true;
}

bool json_field_find(const char *record, size_t count, const char *field, size_t field_bytes, struct json_field *found,
                     struct json_fault *fault)
{
    struct json_scan scan;
    struct json_string name, text;
    const char *found_at = NULL;
    bool is_string = false;
    assert(field && found && fault);
    if (!object_begin(&scan, record, count, fault))
        return false;
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
    if (!found_at && memchr(field, '.', field_bytes))
        return inner_find(record, count, field, field_bytes, found, fault);
    if (!found_at)
        return fault_at(fault, 0, JSON_FIELD_MISSING);
    if (!is_string)
        return fault_at(fault, (size_t)(found_at - record), *found_at == 'n' ? JSON_FIELD_NULL : JSON_FIELD_NOT_STRING);
    *found = (struct json_field){(size_t)(text.bytes - record), text.count, text.escaped, scan.not_finite};
    return true;
}

/* Takes the next value, whose kind is known, and stores where it is. In it, NaN and Infinity are faults. */
static bool value_take(struct json_scan *scan, const char *record, enum json_kind kind, bool jump,
                       struct json_wanted *value)
{
    const char *begin = scan->at;
    struct json_string text;
    value->kind = kind;
    value->escaped = false;
    if (kind == JSON_STRING) {
        if (!json_text(scan, &text))
            return false;
        value->offset = (size_t)(text.bytes - record);
        value->count = text.count;
        value->escaped = text.escaped;
        return true;
    }
    const char *end = jump ? memchr(begin, ']', (size_t)(scan->end - begin)) : NULL;
    scan->not_finite_allowed = false;
    if (end)
        scan->at = end + 1;
    else if (!json_skip(scan))
        return false;
    scan->not_finite_allowed = true;
    value->offset = (size_t)(begin - record);
    value->count = (size_t)(scan->at - begin);
    return true;
}

static void value_copy(struct json_wanted *into, const struct json_wanted *from)
{
    into->kind = from->kind;
    into->offset = from->offset;
    into->count = from->count;
    into->escaped = from->escaped;
}

/* Bytes of the name before its first dot, 0 if it has none, or if it begins or ends with the dot. */
static size_t head_bytes(const struct json_wanted *wanted)
{
    const char *dot = memchr(wanted->name, '.', wanted->name_bytes);
    const size_t head = dot ? (size_t)(dot - wanted->name) : 0;
    return head + 1 < wanted->name_bytes ? head : 0;
}

/* Finds the rest of a name in the object in which it is expected, if that is there. */
static bool rest_find(const char *record, const struct json_wanted *outer, struct json_wanted *wanted, size_t head,
                      struct json_fault *fault)
{
    struct json_wanted rest = {.name = wanted->name + head + 1, .name_bytes = wanted->name_bytes - head - 1};
    uint64_t not_finite; /* counted in the whole record */
    size_t wrong;
    if (outer->kind != JSON_OBJECT)
        return true;
    if (!json_fields_find(record + outer->offset, outer->count, &rest, 1, false, &not_finite, fault, &wrong)) {
        fault->offset += outer->offset;
        return false;
    }
    value_copy(wanted, &rest);
    wanted->offset += outer->offset;
    return true;
}

/* Finds a field whose name has dots in an object inside the record. The record has been scanned, and has no field of
 * the whole name. */
static bool outer_find(const char *record, size_t count, struct json_wanted *wanted, struct json_fault *fault)
{
    struct json_scan scan;
    struct json_string name;
    struct json_wanted outer = {.kind = JSON_NOTHING};
    const size_t head = head_bytes(wanted);
    (void)object_begin(&scan, record, count, fault);
    while (json_member(&scan, &name)) {
        const enum json_kind kind = json_kind(&scan);
        const bool taken = json_equals(&name, wanted->name, head);
        if (taken && outer.kind != JSON_NOTHING)
            return fault_at(fault, (size_t)(scan.at - record), JSON_FIELD_TWICE);
        if (taken)
            outer = (struct json_wanted){.kind = kind, .offset = (size_t)(scan.at - record)};
        (void)json_skip(&scan);
        if (taken)
            outer.count = (size_t)(scan.at - record) - outer.offset;
    }
    return rest_find(record, &outer, wanted, head, fault);
}

bool json_fields_find(const char *record, size_t count, struct json_wanted *wanted, size_t wanted_count, bool fast,
                      uint64_t *not_finite, struct json_fault *fault, size_t *wrong)
{
    struct json_scan scan;
    struct json_string name;
    bool outer = false; /* a member may be an object that contains a wanted field */
    for (size_t i = 0; i < wanted_count; i++)
        wanted[i].kind = JSON_NOTHING;
    if (!object_begin(&scan, record, count, fault))
        return false;
    while (json_member(&scan, &name)) {
        const enum json_kind kind = json_kind(&scan);
        const size_t at = (size_t)(scan.at - record);
        const struct json_wanted *taken = NULL; /* the value of this member, if it is taken */
        for (size_t i = 0; i < wanted_count && !scan.fault.reason; i++) {
            struct json_wanted *one = &wanted[i];
            const size_t head = head_bytes(one);
            outer |= head && json_equals(&name, one->name, head);
            if (!json_equals(&name, one->name, one->name_bytes))
                continue;
            *wrong = i;
            if (one->kind != JSON_NOTHING)
                return fault_at(fault, at, JSON_FIELD_TWICE);
            if (taken)
                value_copy(one, taken);
            else if (value_take(&scan, record, kind, fast && one->numbers && kind == JSON_ARRAY, one))
                taken = one;
        }
        if (!taken)
            (void)json_skip(&scan);
    }
    *not_finite = scan.not_finite;
    if (!json_end(&scan))
        return scan_failed(&scan, fault);
    for (size_t i = 0; i < wanted_count && outer; i++)
        if (wanted[i].kind == JSON_NOTHING && head_bytes(&wanted[i]) && !outer_find(record, count, &wanted[i], fault)) {
            *wrong = i;
            return false;
        }
    return true;
}
