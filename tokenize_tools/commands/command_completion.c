/* SPDX-License-Identifier: MIT */
/* command_completion.c - tokmap completion: prints the script that makes a shell complete command lines. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "commands.h"

/* ---- the scripts ---- */

/* The scripts of tokenize_tools/commands/completion as bytes, each with a zero byte at its end. The assembler includes
 * the files, so `make install` and `tokmap completion` give the same text, and the tree contains it once, as files that
 * a shell can read. */
extern const char completion_bash[], completion_zsh[], completion_fish[];

#define SCRIPT(name, file)                                                                                             \
    __asm__(".section .rodata\n"                                                                                       \
            ".hidden " #name "\n"                                                                                      \
            ".globl " #name "\n"                                                                                       \
            ".type " #name ", %object\n" #name ":\n"                                                                   \
            ".incbin \"" file "\"\n"                                                                                   \
            ".byte 0\n"                                                                                                \
            ".size " #name ", . - " #name "\n"                                                                         \
            ".text\n")

SCRIPT(completion_bash, "tokenize_tools/commands/completion/tokmap.bash");
SCRIPT(completion_zsh, "tokenize_tools/commands/completion/tokmap.zsh");
SCRIPT(completion_fish, "tokenize_tools/commands/completion/tokmap.fish");

/* ---- the command ---- */

static const char program[] = "tokmap completion";

#define SHELLS "bash|zsh|fish"

static int print(const struct cli_command *command, const char **operands, size_t count, void *user)
{
    static const struct {
        const char *shell, *script;
    } scripts[] = {{"bash", completion_bash}, {"zsh", completion_zsh}, {"fish", completion_fish}};
    if (!count)
        return cli_misused(command, "name the shell: bash, zsh, or fish");
    if (count > 1)
        return cli_misused(command, "one shell is expected; got '%s', too", operands[1]);
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++)
        if (strcmp(operands[0], scripts[i].shell) == 0) {
            (void)fputs(scripts[i].script, stdout);
            return cli_finish(program, CLI_DONE);
        }
    return cli_misused(command, "there is a script for bash, zsh, and fish, not for '%s'", operands[0]);
}

int command_completion(int argc, char **argv)
{
    const struct cli_command command = {
        .program = program,
        .usage = "bash|zsh|fish",
        .summary = "Prints the script with which a shell completes commands, options, their values, and the names of "
                   "datasets and runs when you press the Tab key, for tokmap and tokmap-bench.",
        .details = "'make install' has put the scripts where shells look for them. Without it, print the script when "
                   "the shell starts: in ~/.bashrc, after compinit in ~/.zshrc, or in ~/.config/fish/config.fish.\n\n"
                   "Examples:\n"
                   "  source <(tokmap completion bash)\n"
                   "  source <(tokmap completion zsh)\n"
                   "  tokmap completion fish | source\n",
        .first_operand = SHELLS,
    };
    return cli_run(&command, argc, argv, print, NULL);
}
