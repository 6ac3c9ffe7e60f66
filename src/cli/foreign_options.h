/* foreign_options.h - the names that other projects give to options, for "did you mean". */
#ifndef TOKMAP_CLI_FOREIGN_OPTIONS_H
#define TOKMAP_CLI_FOREIGN_OPTIONS_H

#include "option_table.h"

struct cli_foreign_option {
    const char *names;  /* "workers num-workers": how other projects spell it, with dashes for underscores */
    const char *option; /* what the command calls it, without "--"; the row is about commands that have this option */
    const char *advice; /* what to write, or NULL: the option, with the same value */
};

/* Returns the row for an unknown option --TYPED of the command, or NULL. The result is static. */
const struct cli_foreign_option *cli_foreign_option(const struct cli_command *command, const char *typed);

#endif
