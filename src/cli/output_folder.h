/*
 * output_folder.h - the folder of an output. Where it is missing, a command makes it, as `mkdir -p` would, and removes
 * it again if the command fails and has left nothing in it.
 */
#ifndef TOKMAP_CLI_OUTPUT_FOLDER_H
#define TOKMAP_CLI_OUTPUT_FOLDER_H

#include "tokmap/tokmap.h"

/* Makes the folder that contains the file `output`, and those that contain it, where they are missing. A command calls
 * this after its arguments have been checked. Statuses: OK, ERROR_NOT_FOUND (it is the name of something else, or a
 * URL), ERROR_IO, ERROR_MEMORY. */
enum tokmap_status cli_output_folder(const char *output, struct tokmap_error *error);

/* The command has failed: removes the folders that it has made, as far as they are empty. cli_run() and
 * cli_signal_die() call this. */
void cli_output_folders_remove(void);

#endif
