/* shell_quote.h - words for a command line that a user can copy. */
#ifndef TOKMAP_CLI_SHELL_QUOTE_H
#define TOKMAP_CLI_SHELL_QUOTE_H

/* Returns the word as a POSIX shell reads it back: unchanged if that is safe, otherwise between single quotes. A word
 * that begins with '-' gets "./" before it, since it is a path and not an option. The caller frees the result. Returns
 * NULL if the word has characters that a terminal does not show, and, after cli_output_lost(), if there is not enough
 * memory. */
char *cli_shell_quote(const char *path);

#endif
