/* SPDX-License-Identifier: MIT */
/*
 * pack_same.h - finds out whether the output that is there is the one that a command would make. A scheduler may
 * run a task again after all tasks were done, and the task must not fail then.
 */
#ifndef TOKMAP_PACK_PACK_SAME_H
#define TOKMAP_PACK_PACK_SAME_H

#include "packing_options.h"
#include "work/work_units.h"

/* Compares an output in sets of numbered shards: the first shard of each set says that it has these options, all
 * shards together have documents of each input and of no other, no input was changed since, and the files of all
 * shards and those of other projects are there. False also if this cannot be found out. An input without documents
 * makes it false. */
bool pack_output_is_same(const struct pack_options *options, const struct work_units *units);

#endif
