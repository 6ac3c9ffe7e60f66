/* SPDX-License-Identifier: MIT */
/* made_dataset.c - see made_dataset.h. */
#include "made_dataset.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "format/shard_writer.h"
#include "scratch.h"

void made_dataset_new(struct made_dataset *made, uint64_t tokens, uint64_t first)
{
    scratch_make(made->folder);
    (void)snprintf(made->name, sizeof made->name, "%s/d", made->folder);

    uint16_t *values = malloc((tokens + 1) * sizeof *values);
    assert_non_null(values);
    uint64_t largest = 0;
    for (uint64_t i = 0; i < tokens; i++) {
        values[i] = (uint16_t)((first + i) % 50000);
        largest = values[i] > largest ? values[i] : largest;
    }
    const struct shard_writer_options options = {
        .width = 2, .vocabulary = 50000, .eod_id = TOKMAP_NO_ID, .bos_id = TOKMAP_NO_ID};
    struct tokmap_error error = {0};
    struct shard_writer *writer = NULL;
    if (shard_writer_open(&writer, made->name, &options, &error) ||
        shard_writer_add(writer, values, tokens, &tokens, 1, largest, &error) ||
        shard_writer_commit(writer, "{}", 2, NULL, &error))
        fail_msg("the dataset cannot be created: %s: %s", error.path, error.message);
    free(values);
}

void made_dataset_remove(struct made_dataset *made)
{
    scratch_remove(made->folder);
}
