/* case_train.h - the other half of the case `train`: a step that a GPU computes. */
#ifndef TOKMAP_BENCH_CASES_CASE_TRAIN_H
#define TOKMAP_BENCH_CASES_CASE_TRAIN_H

#include "harness/harness.h"

/* Its results are case "device_train". */
int train_device(struct bench *bench);

#endif
