#include "shell_quote.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/visible.h"
#include "messages.h"

static char *append(char *to, const char *text)
{
    const size_t count = strlen(text);
    memcpy(to, text, count);
    return to + count;
}

char *cli_shell_quote(const char *path)
{
    static const char safe[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-+=:,@%";
    const size_t count = strlen(path);
    const bool plain = count && strspn(path, safe) == count;
    if (!visible_all(path, count))
        return NULL;
    char *text = malloc(4 * count + 5); /* a quote becomes '\'' */
    if (!text) {
        cli_output_lost();
        return NULL;
    }
    char *to = text;
    if (!plain)
        *to++ = '\'';
    if (path[0] == '-')
        to = append(to, "./");
    for (size_t i = 0; i < count; i++) {
        if (path[i] == '\'')
            to = append(to, "'\\''");
        else
            *to++ = path[i];
    }
    if (!plain)
        *to++ = '\'';
    *to = '\0';
    return text;
}
