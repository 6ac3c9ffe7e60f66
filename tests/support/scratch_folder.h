/* SPDX-License-Identifier: MIT */
/* scratch_folder.h - the setup and teardown of a unit test whose files are in one scratch folder. */
#ifndef TESTS_SUPPORT_SCRATCH_FOLDER_H
#define TESTS_SUPPORT_SCRATCH_FOLDER_H

#include "support/scratch.h"

static char folder[512];

static int setup(void **unused)
{
    (void)unused;
    scratch_make(folder);
    return 0;
}

static int teardown(void **unused)
{
    (void)unused;
    scratch_remove(folder);
    return 0;
}

#endif
