/* SPDX-License-Identifier: MIT */
/* values_import.c - see values_import.h. */
#include "values_import.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "dataset/dataset.h"
#include "dataset/values_writer.h"
#include "format/foreign/npy.h"
#include "platform/os.h"

#define READ_BYTES ((uint64_t)1 << 22)
#define TEXT_MOST 320 /* bytes of "NAME:f16[1,2,3,4]" */

/* Adds the type of a .npy file to a text. type: what the user says that the elements are, or "". */
static enum tokmap_status npy_type(const struct npy_header *header, const char *path, const char *type, char *text,
                                   struct tokmap_error *error)
{
    static const char *const names[][2] = {
        {"|u1", "u8"}, {"<u2", "u16"}, {"<u4", "u32"}, {"<f2", "f16"}, {"<f4", "f32"}};
    const char *element = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(header->descr, names[i][0]))
            element = names[i][1];
    if (!strcmp(type, "bf16") && (!strcmp(header->descr, "<u2") || !strcmp(header->descr, "|V2")))
        element = "bf16";
    if (!element || header->fortran || !header->dimensions || header->dimensions > VALUES_DIMENSIONS_MOST + 1)
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, header->shape_at,
                         "the array has type '%s', %" PRIu64 " dimensions, and %s order; values are u1, <u2, <u4, <f2, "
                         "or <f4, with 1 to 5 dimensions in C order: save numpy.ascontiguousarray(array, '<f4')",
                         header->descr, header->dimensions, header->fortran ? "Fortran" : "C");
    size_t at = strlen(text);
    at += (size_t)snprintf(text + at, TEXT_MOST - at, ":%s", element);
    for (uint64_t i = 1; i < header->dimensions; i++)
        at += (size_t)snprintf(text + at, TEXT_MOST - at, "%s%" PRIu64 "%s", i > 1 ? "," : "[", header->shape[i],
                               i + 1 < header->dimensions ? "" : "]");
    return TOKMAP_OK;
}

/* Adds the type of the file to the text, which has the name, and finds where its values begin. */
static enum tokmap_status file_examine(const char *path, const char *type, uint64_t tokens, uint64_t bytes,
                                       char text[TEXT_MOST], uint64_t *data, struct tokmap_error *error)
{
    struct npy_header header = {.dimensions = 0};
    size_t got = 0;
    const size_t used = strlen(text);
    uint8_t *head = malloc(NPY_HEAD_MOST);
    enum tokmap_status status = TOKMAP_OK;
    if (!head || !os_head_read(path, head, NPY_HEAD_MOST, &got))
        status = error_set(error, TOKMAP_ERROR_IO, path, 0, "the file of values cannot be read, or is not a file");
    else if (!npy_is(head, got) && !*type)
        status = error_set(error, TOKMAP_ERROR_FORMAT, path, 0,
                           "this is not a .npy file, so say what it has, such as --values 'teacher:f16[32]=FILE'");
    else if (!npy_is(head, got))
        (void)snprintf(text + used, TEXT_MOST - used, ":%s", type);
    else if (!(status = npy_header_read(&header, path, head, got, bytes, error)) &&
             !(status = npy_type(&header, path, type, text, error)) && header.shape[0] != tokens)
        status = error_set(error, TOKMAP_ERROR_TRUNCATED, path, header.shape_at,
                           "the first dimension of the array is %" PRIu64 ", but the dataset has %" PRIu64 " tokens",
                           header.shape[0], tokens);
    *data = header.data_at;
    free(head);
    return status;
}

static enum tokmap_status values_copy(struct tokmap_values_writer *writer, int fd, const char *path, uint64_t data,
                                      uint64_t tokens, uint64_t value_bytes, struct tokmap_error *error)
{
    const uint64_t at_once = max64(READ_BYTES / value_bytes, 1);
    uint8_t *buffer = malloc((size_t)(at_once * value_bytes));
    enum tokmap_status status = buffer ? TOKMAP_OK : error_set_memory(error, "values", at_once * value_bytes);
    for (uint64_t token = 0; token < tokens && !status; token += at_once) {
        const uint64_t count = min64(at_once, tokens - token), at = data + token * value_bytes;
        const void *const values[] = {buffer};
        size_t got = 0;
        const int system = os_pread(fd, buffer, (size_t)(count * value_bytes), at, &got);
        status = system || got < count * value_bytes
                     ? error_set_system(error, system ? system : EIO, path, at + got, "the values cannot be read")
                     : tokmap_values_put_at(writer, token, count, values, error);
    }
    free(buffer);
    return status;
}

enum tokmap_status values_import(const struct tokmap_dataset *dataset, const char *given, bool replace,
                                 struct values_array *array, struct tokmap_values_result *result,
                                 struct tokmap_error *error)
{
    struct values_array arrays[VALUES_ARRAYS_MOST];
    struct tokmap_values_writer *writer = NULL;
    const uint64_t tokens = info_of_dataset(dataset).tokens;
    const char *path = strchr(given, '=');
    char text[TEXT_MOST] = "", type[100] = "";
    uint64_t data = 0, bytes = 0;
    uint32_t count = 0;
    int fd;
    const size_t name = strcspn(given, ":="), end = strcspn(given, "=");
    if (path && name < end)
        (void)snprintf(type, sizeof type, "%.*s", (int)(end - name - 1), given + name + 1);
    (void)snprintf(text, sizeof type, "%.*s", (int)name, given);
    if (!path)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "--values is '%.100s', but must be WHAT=FILE.npy or WHAT:f16[32]=FILE", given);
    int system = os_open(++path, OS_READ_NOW, &fd);
    if (!system && (system = os_file_bytes(fd, &bytes)))
        os_close(fd);
    if (system)
        return error_set_system(error, system, path, TOKMAP_NO_OFFSET, "the file of values cannot be opened");
    enum tokmap_status status = file_examine(path, type, tokens, bytes, text, &data, error);
    if (!status)
        status = values_arrays_parse(text, arrays, &count, error);
    if (!status)
        *array = arrays[0];
    if (!status && *type && strcmp(type, VALUES_TYPE(array)) != 0 &&
        strcmp(type, values_element_name(array->element)) != 0)
        status = error_set(error, TOKMAP_ERROR_MISMATCH, path, TOKMAP_NO_OFFSET,
                           "the array is %s, but %s is asked for; leave the type out, or convert the array",
                           VALUES_TYPE(array), type);
    if (!status && bytes != data + tokens * array->value_bytes)
        status = error_set(error, TOKMAP_ERROR_TRUNCATED, path, bytes,
                           "%" PRIu64 " tokens with %s need %" PRIu64 " bytes from byte %" PRIu64
                           " on, but the file has %" PRIu64 " bytes",
                           tokens, VALUES_TYPE(array), tokens * array->value_bytes, data, bytes);
    struct tokmap_values_options options = TOKMAP_VALUES_OPTIONS_INIT;
    options.replace = replace;
    if (!status)
        status = tokmap_values_open(&writer, dataset, text, &options, error);
    if (!status)
        status = values_copy(writer, fd, path, data, tokens, array->value_bytes, error);
    if (!status)
        status = tokmap_values_finish(writer, NULL, result, error);
    if (status == TOKMAP_ERROR_INPUT) /* no other writer is open */
        values_discard(writer);
    const enum tokmap_status closed = tokmap_values_close(writer, status ? NULL : error);
    os_close(fd);
    return status ? status : closed;
}
