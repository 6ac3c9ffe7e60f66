/* mixed_folder.h - warns that an operand names files of records together with files that are read as text, as a folder
 * with a data set and its README does. */
#ifndef TOKMAP_COMMANDS_SHARED_MIXED_FOLDER_H
#define TOKMAP_COMMANDS_SHARED_MIXED_FOLDER_H

#include "corpus/corpus_options.h"
#include "field_options.h"

/* Begins as zeros. */
struct mixed_folder {
    _Atomic(char *) message; /* NULL: none was found */
    bool told;
};

/* Asks the reader of the inputs to look, unless the user has chosen the format or the files (--include), or wants
 * another content than text, which text files do not have. */
void mixed_folder_watch(struct mixed_folder *mixed, struct corpus_options *options);

/* Warns if one was found, once per command. progress: what is shown meanwhile. From one thread. */
void mixed_folder_tell(struct mixed_folder *mixed, const char *program, struct cli_progress *progress);

void mixed_folder_free(struct mixed_folder *mixed);

#endif
