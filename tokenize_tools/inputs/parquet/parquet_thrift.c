/* SPDX-License-Identifier: MIT */
#include "parquet_thrift.h"

#define WRONG_TYPE "a field has another type than the format says"

static void fault(struct thrift *thrift, const char *reason)
{
    if (!thrift->fault)
        thrift->fault = reason;
    thrift->at = thrift->count;
}

static uint8_t byte_take(struct thrift *thrift)
{
    if (thrift->at >= thrift->count) {
        fault(thrift, THRIFT_FAULT_SHORT);
        return 0;
    }
    return thrift->bytes[thrift->at++];
}

static uint64_t varint_take(struct thrift *thrift)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        const uint8_t byte = byte_take(thrift);
        const uint64_t part = byte & 0x7f;
        if (shift == 63 && part > 1)
            break;
        value |= part << shift;
        if (!(byte & 0x80))
            return thrift->fault ? 0 : value;
    }
    fault(thrift, "an integer has more than 64 bits");
    return 0;
}

static int64_t zigzag_take(struct thrift *thrift)
{
    const uint64_t value = varint_take(thrift);
    return (int64_t)(value >> 1 ^ (0 - (value & 1)));
}

static void bytes_skip(struct thrift *thrift, uint64_t count)
{
    if (count > thrift->count - thrift->at)
        fault(thrift, THRIFT_FAULT_SHORT);
    else
        thrift->at += count;
}

bool thrift_field_next(struct thrift *thrift, struct thrift_field *field)
{
    const uint8_t head = byte_take(thrift);
    field->type = (enum thrift_type)(head & 15);
    if (thrift->fault || field->type == THRIFT_STOP)
        return false;
    if (field->type > THRIFT_STRUCT) {
        fault(thrift, "a field has a type that does not exist");
        return false;
    }
    const int64_t id = head >> 4 ? field->id + (head >> 4) : zigzag_take(thrift);
    if (id < INT16_MIN || id > INT16_MAX) {
        fault(thrift, "a field has a number that does not exist");
        return false;
    }
    field->id = id;
    return !thrift->fault;
}

int64_t thrift_integer(struct thrift *thrift, const struct thrift_field *field)
{
    if (field->type == THRIFT_BYTE)
        return (int8_t)byte_take(thrift);
    if (field->type == THRIFT_I16 || field->type == THRIFT_I32 || field->type == THRIFT_I64)
        return zigzag_take(thrift);
    fault(thrift, WRONG_TYPE);
    return 0;
}

bool thrift_bool(struct thrift *thrift, const struct thrift_field *field)
{
    if (field->type != THRIFT_TRUE && field->type != THRIFT_FALSE)
        fault(thrift, WRONG_TYPE);
    return field->type == THRIFT_TRUE;
}

const char *thrift_binary(struct thrift *thrift, const struct thrift_field *field, uint64_t *count)
{
    *count = 0;
    if (field->type != THRIFT_BINARY)
        fault(thrift, WRONG_TYPE);
    const uint64_t bytes = varint_take(thrift);
    const char *begin = (const char *)thrift->bytes + thrift->at;
    bytes_skip(thrift, bytes);
    *count = thrift->fault ? 0 : bytes;
    return begin;
}

/* Reads the head of a list or set. Each element has at least one byte, so a count above the bytes that follow is a
 * lie, and is found before anybody makes room for the elements. */
static uint64_t list_head(struct thrift *thrift, enum thrift_type *element)
{
    const uint8_t head = byte_take(thrift);
    const uint64_t count = head >> 4 == 15 ? varint_take(thrift) : head >> 4;
    *element = (enum thrift_type)(head & 15);
    if (count > thrift->count - thrift->at)
        fault(thrift, THRIFT_FAULT_SHORT);
    if (*element > THRIFT_STRUCT || (*element == THRIFT_STOP && count))
        fault(thrift, "a list has elements of a type that does not exist");
    return thrift->fault ? 0 : count;
}

bool thrift_structs(struct thrift *thrift, const struct thrift_field *field, uint64_t *count)
{
    enum thrift_type element;
    *count = 0;
    if (field->type != THRIFT_LIST) {
        fault(thrift, WRONG_TYPE);
        return false;
    }
    *count = list_head(thrift, &element);
    if (*count && element != THRIFT_STRUCT)
        fault(thrift, WRONG_TYPE);
    if (thrift->fault)
        *count = 0;
    return !thrift->fault;
}

bool thrift_struct(struct thrift *thrift, const struct thrift_field *field)
{
    if (field->type != THRIFT_STRUCT)
        fault(thrift, WRONG_TYPE);
    return !thrift->fault;
}

static void skip(struct thrift *thrift, enum thrift_type type, bool element, unsigned depth);

static void struct_skip(struct thrift *thrift, unsigned depth)
{
    struct thrift_field field = {0};
    while (thrift_field_next(thrift, &field))
        skip(thrift, field.type, false, depth + 1);
}

static void list_skip(struct thrift *thrift, unsigned depth)
{
    enum thrift_type type;
    const uint64_t count = list_head(thrift, &type);
    for (uint64_t i = 0; i < count && !thrift->fault; i++)
        skip(thrift, type, true, depth + 1);
}

static void map_skip(struct thrift *thrift, unsigned depth)
{
    const uint64_t count = varint_take(thrift);
    if (!count || thrift->fault)
        return;
    const uint8_t types = byte_take(thrift);
    const enum thrift_type key = (enum thrift_type)(types >> 4), value = (enum thrift_type)(types & 15);
    for (uint64_t i = 0; i < count && !thrift->fault; i++) {
        skip(thrift, key, true, depth + 1);
        skip(thrift, value, true, depth + 1);
    }
}

/* element: the value is in a list or a map, where a bool has a byte of its own. */
static void skip(struct thrift *thrift, enum thrift_type type, bool element, unsigned depth)
{
    if (depth > THRIFT_DEPTH_MOST) {
        fault(thrift, "structs are nested too deep");
        return;
    }
    switch (type) {
    case THRIFT_TRUE:
    case THRIFT_FALSE:
        bytes_skip(thrift, element);
        break;
    case THRIFT_BYTE:
        bytes_skip(thrift, 1);
        break;
    case THRIFT_I16:
    case THRIFT_I32:
    case THRIFT_I64:
        (void)varint_take(thrift);
        break;
    case THRIFT_DOUBLE:
        bytes_skip(thrift, 8);
        break;
    case THRIFT_BINARY:
        bytes_skip(thrift, varint_take(thrift));
        break;
    case THRIFT_LIST:
    case THRIFT_SET:
        list_skip(thrift, depth);
        break;
    case THRIFT_MAP:
        map_skip(thrift, depth);
        break;
    case THRIFT_STRUCT:
        struct_skip(thrift, depth);
        break;
    case THRIFT_STOP:
    default:
        fault(thrift, "a value has a type that does not exist");
    }
}

void thrift_skip(struct thrift *thrift, const struct thrift_field *field)
{
    skip(thrift, field->type, false, 0);
}
