/* SPDX-License-Identifier: MIT */
/* made_plan.h - plans of the datasets of made.h. Failures end the test (cmocka). */
#ifndef TESTS_SUPPORT_MADE_PLAN_H
#define TESTS_SUPPORT_MADE_PLAN_H

#include "made.h"

/* Writes a plan of rows of seq_len tokens to a new file. */
void made_plan(const struct made *made, uint64_t seq_len, const char *path);

#endif
