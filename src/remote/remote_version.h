/* SPDX-License-Identifier: MIT */
/*
 * remote_version.h - which version of a file an answer is of: its ETag, or else the date of its last modification.
 *
 * A weak ETag (W/"x") may belong to several files, so it counts as none, and so does a date that is not older than the
 * answer (RFC 9110, 8.8.2.2): it has no fractions of seconds, so the file could change once more in the second in which
 * it was sent.
 */
#ifndef TOKMAP_REMOTE_REMOTE_VERSION_H
#define TOKMAP_REMOTE_REMOTE_VERSION_H

#include "remote_http.h"

/* One of the texts, or none: both are then "". */
struct remote_version {
    char tag[HTTP_TAG_MOST], modified[HTTP_NAME_MOST];
};

#define REMOTE_CONDITION_MOST (HTTP_TAG_MOST + 32)

void remote_version_take(struct remote_version *version, const struct http_answer *answer);
/* Returns whether an answer is of this version, which is one. */
bool remote_version_is(const struct remote_version *version, const struct http_answer *answer);
/* Returns a number that differs from those of other versions, or 0 for none. */
uint64_t remote_version_number(const struct remote_version *version);
/* Makes the line of a header by which a server refuses other versions. */
void remote_version_condition(const struct remote_version *version, char line[REMOTE_CONDITION_MOST]);

#endif
