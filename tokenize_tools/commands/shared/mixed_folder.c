/* mixed_folder.c - see mixed_folder.h. */
#include "mixed_folder.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "corpus/name_kind.h"
#include "text/path.h"

/* A glob, ready for the shell, that chooses the files with the ending of this one, or with its name if it has none. */
static char *glob_of(const char *path)
{
    const char *ending = name_ending(path), *name = path_name(path);
    char glob[256];
    const int count = snprintf(glob, sizeof glob, "%s%s", *ending ? "*" : "", *ending ? ending : name);
    return cli_shell_quote(count > 0 && (size_t)count < sizeof glob ? glob : name);
}

/* Called by the reader of the inputs, from any thread. A warning that memory is missing for is not worth an error. */
static void found(void *user, const char *operand, const char *text, const char *records)
{
    static const char form[] = "'%s' has files of records and of text; '%s' is read as text, one document per file: "
                               "leave such files out with --exclude %s, or choose the files with --include %s";
    struct mixed_folder *mixed = user;
    char *none = NULL, *message = NULL, *texts = glob_of(text), *others = glob_of(records);
    if (texts && others) {
        const size_t room = sizeof form + strlen(operand) + strlen(text) + strlen(texts) + strlen(others);
        message = malloc(room);
        if (message)
            (void)snprintf(message, room, form, operand, text, texts, others);
    }
    free(texts);
    free(others);
    if (message && !atomic_compare_exchange_strong(&mixed->message, &none, message))
        free(message); /* the inputs are listed more than once */
}

void mixed_folder_watch(struct mixed_folder *mixed, struct corpus_options *options)
{
    if (options->format != CORPUS_AUTO || options->content != CORPUS_CONTENT_TEXT || options->select.include_count)
        return;
    options->select.mixed = found;
    options->select.mixed_user = mixed;
}

void mixed_folder_tell(struct mixed_folder *mixed, const char *program, struct cli_progress *progress)
{
    const char *message = mixed->told ? NULL : atomic_load(&mixed->message);
    if (!message)
        return;
    mixed->told = true;
    cli_progress_clear(progress);
    cli_warn(program, "%s", message);
}

void mixed_folder_free(struct mixed_folder *mixed)
{
    free(atomic_load(&mixed->message));
    atomic_store(&mixed->message, NULL);
}
