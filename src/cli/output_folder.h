/* output_folder.h - the folder of an output, which a command makes where it is missing, as `mkdir -p` would. */
#ifndef TOKMAP_CLI_OUTPUT_FOLDER_H
#define TOKMAP_CLI_OUTPUT_FOLDER_H

#include "tokmap/tokmap.h"

/* Makes the folder that contains the file `output`, and those that contain it, where they are missing; they stay if the
 * command fails later. A command calls this after its arguments have been checked. Statuses: OK, ERROR_NOT_FOUND (it is
 * the name of something else, or a URL), ERROR_IO, ERROR_MEMORY. */
enum tokmap_status cli_output_folder(const char *output, struct tokmap_error *error);

#endif
