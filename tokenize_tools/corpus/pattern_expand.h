/* pattern_expand.h - lists the files and folders that a pattern matches; inputs.h describes patterns. */
#ifndef TOKMAP_CORPUS_PATTERN_EXPAND_H
#define TOKMAP_CORPUS_PATTERN_EXPAND_H

#include <stdbool.h>
#include <stdint.h>

#include "names.h"

/* Sets *matches, which is empty, to the paths that match, sorted and distinct. hidden: wildcards match names that begin
 * with a dot. A pattern with a component of two stars matches no folders; *folders is how many it would have matched.
 * Folders that cannot be listed have no matches. Returns 0 or ENOMEM. */
int pattern_expand(const char *pattern, bool hidden, struct names *matches, uint64_t *folders);

#endif
