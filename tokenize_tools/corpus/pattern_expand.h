/* pattern_expand.h - lists the files and folders that a pattern matches; inputs.h describes patterns. */
#ifndef TOKMAP_CORPUS_PATTERN_EXPAND_H
#define TOKMAP_CORPUS_PATTERN_EXPAND_H

#include <stdbool.h>
#include <stdint.h>

#include "names.h"

#define PATTERN_LINKED_MOST 16 /* paths through symbolic links on which two stars may lead to one folder */

/* Sets *matches, which is empty, to the paths that match, sorted and distinct. hidden: wildcards match names that begin
 * with a dot. A pattern with a component of two stars matches no folders; *folders is how many it would have matched.
 * Folders that cannot be listed have no matches. stop(user) ends the search; it may be NULL. Returns 0, ENOMEM, EINTR
 * if it was stopped, or ELOOP if two stars lead through symbolic links to a folder on more than PATTERN_LINKED_MOST
 * paths; *matches is then one such path. */
int pattern_expand(const char *pattern, bool hidden, bool (*stop)(void *user), void *user, struct names *matches,
                   uint64_t *folders);

#endif
