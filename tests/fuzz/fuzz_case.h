/* SPDX-License-Identifier: MIT */
/* fuzz_case.h - what the fuzz harnesses share: a check, and the file that a case is written to. */
#ifndef TESTS_FUZZ_FUZZ_CASE_H
#define TESTS_FUZZ_FUZZ_CASE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the program, which the fuzzer reports, if the condition is false. */
#define REQUIRE(condition)                                                                                             \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                                    \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

/* The file of fuzz_file(). */
static char fuzz_path[4096];

static inline void fuzz_file_remove(void)
{
    (void)unlink(fuzz_path);
}

/* Returns the path of a file below $TMPDIR (or /tmp), of this process and with this ending. The file is removed at the
 * end of the program. */
static inline const char *fuzz_file(const char *ending)
{
    const char *folder = getenv("TMPDIR");
    if (!fuzz_path[0]) {
        REQUIRE(snprintf(fuzz_path, sizeof fuzz_path, "%s/fuzz-%ld.%s", folder ? folder : "/tmp", (long)getpid(),
                         ending) < (int)sizeof fuzz_path);
        REQUIRE(!atexit(fuzz_file_remove));
    }
    return fuzz_path;
}

#endif
