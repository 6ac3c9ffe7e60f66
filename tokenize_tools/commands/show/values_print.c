/* SPDX-License-Identifier: MIT */
/* values_print.c - see values_print.h. */
#include "values_print.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "dataset/dataset.h"
#include "dataset/dataset_values.h"

static double real_of(const uint8_t *bytes, enum values_element element)
{
    const uint32_t bits = element == VALUES_BF16 ? (uint32_t)load16(bytes) << 16 : load32(bytes);
    float real;
    memcpy(&real, &bits, sizeof real);
    return (double)real;
}

static double half_of(uint16_t bits)
{
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double size = exponent == 31 ? (fraction ? (double)NAN : (double)INFINITY)
                        : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                       : ldexp(fraction, -24);
    return bits >> 15 ? -size : size;
}

/* Prints an element, or adds it to a report. Reals have as many digits as their type holds. */
static void element_print(const uint8_t *bytes, enum values_element element, struct cli_report *report)
{
    const bool real = element >= VALUES_F16;
    const uint64_t number = element == VALUES_U8 ? *bytes : element == VALUES_U16 ? load16(bytes) : 0;
    const double value = element == VALUES_F16 ? half_of(load16(bytes)) : real ? real_of(bytes, element) : 0;
    char text[32];
    (void)snprintf(text, sizeof text, "%.*g", element == VALUES_F32 ? 9 : element == VALUES_F16 ? 5 : 4, value);
    if (!real)
        (void)snprintf(text, sizeof text, "%" PRIu64, element == VALUES_U32 ? load32(bytes) : number);
    if (!report)
        printf(" %s", text);
    else if (!real || isfinite(value))
        cli_member(report, NULL, cli_raw(text, strlen(text)));
    else
        cli_member(report, NULL, cli_text(text)); /* JSON has no number for it */
}

static void token_print(const uint8_t *bytes, const struct values_array *array, struct cli_report *report)
{
    const uint32_t each = values_element_bytes(array->element);
    if (report && array->dimensions)
        cli_report_array(report, NULL);
    for (uint32_t at = 0; at < array->value_bytes; at += each)
        element_print(bytes + at, array->element, report);
    if (report && array->dimensions)
        cli_report_close(report);
}

enum tokmap_status token_values_print(const struct tokmap_dataset *dataset, const char *what,
                                      struct tokmap_extent extent, struct cli_report *report,
                                      struct tokmap_error *error)
{
    struct tokmap_dataset *values;
    struct values_array array;
    const uint64_t tokens = info_of_dataset(dataset).tokens;
    enum tokmap_status status = dataset_values_open(&values, &array, dataset, what, error);
    if (status)
        return status;
    uint8_t *bytes = malloc(array.value_bytes);
    if (!bytes)
        status = error_set_memory(error, "values", array.value_bytes);
    if (report)
        cli_report_array(report, "values");
    for (uint64_t i = 0; i < extent.tokens && !status; i++) {
        const uint64_t token = (extent.first_token + i) % tokens;
        uint8_t present = 0;
        status = tokmap_dataset_mask(values, token, 1, &present, error);
        if (!status)
            status = tokmap_dataset_copy(values, token * array.value_bytes, array.value_bytes, bytes, error);
        if (!report)
            printf("%" PRIu64 "%s", token, present || status ? "" : " -");
        else if (!present)
            cli_member(report, NULL, cli_null());
        if (present && !status)
            token_print(bytes, &array, report);
        if (!report)
            putchar('\n');
    }
    if (report)
        cli_report_close(report);
    free(bytes);
    tokmap_dataset_close(values);
    return status;
}
