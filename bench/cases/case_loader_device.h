/* SPDX-License-Identifier: MIT */
/*
 * case_loader_device.h - the case `loader` with --device: batches delivered to a GPU.
 */
#ifndef TOKMAP_BENCH_CASES_CASE_LOADER_DEVICE_H
#define TOKMAP_BENCH_CASES_CASE_LOADER_DEVICE_H

#include "harness/harness.h"

/* Runs it. Its results have the case name "device_loader". */
int loader_device(struct bench *bench);

#define FIRST_OPENING_CHILD "first-opening"
/* Does the work of a copy of this program whose options.child is FIRST_OPENING_CHILD: opens the first loader of a
 * process. */
int first_opening_child(struct bench *bench);

#endif
