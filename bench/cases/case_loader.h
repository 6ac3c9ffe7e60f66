/* case_loader.h - the other halves of the case `loader`: from cold storage, and to a GPU. */
#ifndef TOKMAP_BENCH_CASES_CASE_LOADER_H
#define TOKMAP_BENCH_CASES_CASE_LOADER_H

#include "harness/harness.h"

/* Random windows from storage, beside O_DIRECT reads of as many page spans at depth 64. Its results are case "cold". */
int loader_cold(struct bench *bench);
/* Batches delivered to a GPU. Its results are case "device_loader". */
int loader_device(struct bench *bench);

#endif
