/* SPDX-License-Identifier: MIT */
/* case_train_device.h - the case `train` with --device: a training step that a GPU computes. */
#ifndef TOKMAP_BENCH_CASES_CASE_TRAIN_DEVICE_H
#define TOKMAP_BENCH_CASES_CASE_TRAIN_DEVICE_H

#include "harness/harness.h"

/* Runs it. Its results have the case name "device_train". Returns CLI_DONE, or CLI_FAILED after a message. */
int train_device(struct bench *bench);

#endif
