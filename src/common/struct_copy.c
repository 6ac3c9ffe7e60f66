/* SPDX-License-Identifier: MIT */
#include "struct_copy.h"

#include <assert.h>
#include <string.h>

#include "error.h"

static enum tokmap_status size_check(size_t given, size_t size, const char *name, struct tokmap_error *error)
{
    assert(size > sizeof given);
    if (given >= sizeof given && given <= size)
        return TOKMAP_OK;
    return error_set(
        error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
        "%s.size is %zu, but this library accepts %zu to %zu; set it with the _INIT macro or to sizeof the "
        "struct, and compile with the header of the library that is installed",
        name, given, sizeof given, size);
}

enum tokmap_status struct_copy_in(void *into, const void *given, const void *defaults, size_t size, const char *name,
                                  struct tokmap_error *error)
{
    size_t given_size = 0;
    assert(into && defaults);
    memcpy(into, defaults, size);
    if (!given)
        return TOKMAP_OK;
    memcpy(&given_size, given, sizeof given_size);
    enum tokmap_status status = size_check(given_size, size, name, error);
    if (status)
        return status;
    memcpy(into, given, given_size);
    memcpy(into, &size, sizeof size);
    return TOKMAP_OK;
}

enum tokmap_status struct_size_check(const void *into, size_t size, const char *name, struct tokmap_error *error)
{
    size_t given = 0;
    if (!into)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "%s is NULL; pass the address of one",
                         name);
    memcpy(&given, into, sizeof given);
    return size_check(given, size, name, error);
}

enum tokmap_status struct_copy_out(void *into, const void *made, size_t size, const char *name,
                                   struct tokmap_error *error)
{
    size_t given = 0;
    assert(made && into != made);
    enum tokmap_status status = struct_size_check(into, size, name, error);
    if (status)
        return status;
    memcpy(&given, into, sizeof given);
    memcpy(into, made, given);
    memcpy(into, &given, sizeof given);
    return TOKMAP_OK;
}
