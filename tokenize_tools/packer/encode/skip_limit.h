/* SPDX-License-Identifier: MIT */
/*
 * skip_limit.h - how much input may be left out before the work fails (--max-skipped).
 *
 * A limit is a number of files and records, or a share of all of them. What is left out is counted in the order of the
 * input, so that the result does not depend on the number of threads.
 */
#ifndef TOKMAP_ENCODE_SKIP_LIMIT_H
#define TOKMAP_ENCODE_SKIP_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#define SKIP_LIMIT_SHARES ((uint64_t)100000000) /* unit of a share: 100% */
/* A share is judged on the way from so many files and records on, and then with twice the limit, because bad input may
 * come first. At the end it is judged exactly. */
#define SKIP_LIMIT_EARLY 10000

struct skip_limit {
    bool given;
    bool is_share;
    uint64_t most;    /* files and records, or shares */
    const char *text; /* as it was typed, for messages; "" if none is given */
};

/* Reads "1000" or "0.1%", with at most 6 digits after the point, at most 100%. Returns false, and leaves *limit alone,
 * if the text has another form. The text must stay valid as long as the limit is used. */
bool skip_limit_parse(const char *text, struct skip_limit *limit);

/* Returns whether `left_out` files and records are too many, where `kept` documents were read. at_end: nothing follows.
 */
bool skip_limit_passed(const struct skip_limit *limit, uint64_t left_out, uint64_t kept, bool at_end);

#endif
