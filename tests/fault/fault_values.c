/* SPDX-License-Identifier: MIT */
/*
 * fault_values.c - writes values of every token of a dataset in three puts, and finishes them. test_values.sh runs it
 * with calls that fail.
 *
 *     fault_values DATASET
 *
 * Exit status: 0 the values are finished, also by an earlier process, 1 a call failed with a message, 2 misused.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tokmap/tokmap.h"

static enum tokmap_status all_put(struct tokmap_values_writer *writer, uint64_t tokens, struct tokmap_error *error)
{
    uint16_t *ids = malloc(tokens * 3 * sizeof *ids);
    float *weights = malloc(tokens * sizeof *weights);
    enum tokmap_status status = ids && weights ? TOKMAP_OK : TOKMAP_ERROR_MEMORY;
    snprintf(error->message, sizeof error->message, "there is no memory");
    for (uint64_t i = 0; i < tokens && !status; i++) {
        ids[3 * i] = ids[3 * i + 1] = ids[3 * i + 2] = (uint16_t)i;
        weights[i] = (float)i;
    }
    for (uint64_t part = 0; part < 3 && !status; part++) {
        const uint64_t first = part * tokens / 3, end = (part + 1) * tokens / 3;
        const void *const values[] = {ids + 3 * first, weights + first};
        status = tokmap_values_put_at(writer, first, end - first, values, error);
        if (!status && part == 1)
            status = tokmap_values_sync(writer, error);
    }
    free(ids);
    free(weights);
    return status;
}

int main(int argc, char **argv)
{
    struct tokmap_error error = {0}, unused;
    struct tokmap_dataset *dataset = NULL;
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    struct tokmap_values_writer *writer = NULL;
    char text[1500];
    if (argc != 2)
        return 2;
    enum tokmap_status status = tokmap_dataset_open(&dataset, argv[1], NULL, &error);
    if (!status)
        status = tokmap_dataset_info(dataset, &info);
    if (!status)
        status = tokmap_values_open(&writer, dataset, "a:u16[3] b:f32", NULL, &error);
    const int exists = status == TOKMAP_ERROR_EXISTS;
    if (!status)
        status = all_put(writer, info.tokens, &error);
    if (!status || (status == TOKMAP_ERROR_EXISTS && writer))
        status = tokmap_values_finish(writer, NULL, NULL, &error);
    const enum tokmap_status closed = tokmap_values_close(writer, status ? &unused : &error);
    tokmap_dataset_close(dataset);
    if ((!status && !closed) || exists)
        return 0;
    fprintf(stderr, "fault_values: %s\n", tokmap_error_print(&error, text, sizeof text));
    return error.message[0] ? 1 : 3;
}
