/* SPDX-License-Identifier: MIT */
/*
 * pack_same.h - finds out whether the output that is there is the one that a command would make. A scheduler may
 * run a task again after all tasks were done, and the task must not fail then.
 */
#ifndef TOKMAP_PACK_PACK_SAME_H
#define TOKMAP_PACK_PACK_SAME_H

#include "packing_options.h"
#include "work/work_units.h"

/* Hashes the names of all inputs in their order, as shards have them, into pack_options.inputs_hash. Returns false
 * without memory. */
bool pack_inputs_hash(const struct work_units *units, char hex[33]);

/* Compares an output in sets of numbered shards: the first shard of each set says that it has these options and inputs,
 * no input was changed since, and the files of all shards, those of other projects, and options->other_output are
 * there. False also if this cannot be found out. */
bool pack_output_is_same(const struct pack_options *options, const struct work_units *units);

#endif
