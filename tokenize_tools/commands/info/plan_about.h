/* plan_about.h - what the header of a plan says, for `tokmap info`. */
#ifndef TOKMAP_COMMANDS_INFO_PLAN_ABOUT_H
#define TOKMAP_COMMANDS_INFO_PLAN_ABOUT_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

/* Opens a plan and prints its header as a table or a JSON object. Statuses: those of plan_open(). */
enum tokmap_status plan_about_print(const char *path, bool as_json, struct tokmap_error *error);

#endif
