/* output_arguments.c - see output_arguments.h. */
#include "output_arguments.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "platform/os.h"
#include "text/path.h"

int output_prefix_make(const struct cli_command *command, const char *typed, const char *const *endings, char **prefix)
{
    assert(typed && endings[0]);
    const char *name = path_name(typed);
    size_t bytes = strlen(typed);
    for (size_t i = 0; endings[i]; i++) {
        const size_t ending = strlen(endings[i]);
        if (strlen(name) > ending && !strcmp(typed + bytes - ending, endings[i]) && typed[bytes - ending - 1] == '.') {
            bytes -= ending + 1;
            break;
        }
    }
    if (!*name || bytes == (size_t)(name - typed) || !strcmp(name, ".") || !strcmp(name, ".."))
        return cli_misused(command,
                           "-o '%s': the name of the output is empty or names a folder; give a prefix, such as "
                           "'%.*sNAME'",
                           typed, (int)(name - typed), typed);
    *prefix = strndup(typed, bytes);
    if (*prefix)
        return 0;
    struct tokmap_error error;
    (void)error_set_memory(&error, "a path", bytes);
    return cli_failed(command->program, &error);
}

enum tokmap_status output_place_check(const char *prefix, bool set, struct tokmap_error *error)
{
    struct os_stat stat;
    enum tokmap_status status = cli_output_folder(prefix, error);
    if (status)
        return status;
    if (!os_stat(prefix, &stat) && stat.kind == OS_KIND_FOLDER)
        status = error_set(error, TOKMAP_ERROR_EXISTS, prefix, TOKMAP_NO_OFFSET,
                           "this is a folder, and an output of the same name beside it would be mistaken for it; write "
                           "into it with '-o %s/NAME', or choose another name than '%s'",
                           prefix, prefix);
    else if (!set && !os_stat(prefix, &stat) && stat.kind == OS_KIND_FILE && cli_is_manifest(prefix))
        status = error_set(error, TOKMAP_ERROR_EXISTS, prefix, TOKMAP_NO_OFFSET,
                           "this is a manifest, and an output of the same name beside it would be taken for it; choose "
                           "another name, or replace a shard set by another one with options.shard_tokens");
    return status;
}
