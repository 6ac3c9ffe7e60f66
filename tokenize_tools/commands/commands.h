/*
 * commands.h - the list of subcommands. command_NAME.c defines command_NAME().
 *
 * A new subcommand needs a line here, its file, and its page in man/; lint and the tests look for the rest.
 */
#ifndef TOKMAP_COMMANDS_COMMANDS_H
#define TOKMAP_COMMANDS_COMMANDS_H

/* XX(name, what `tokmap --help` says it does), in the order of the help. */
#define COMMANDS(XX)                                                                                                   \
    XX(pack, "tokenize text into a dataset")                                                                           \
    XX(info, "describe a dataset or a run")                                                                            \
    XX(verify, "read every byte of a dataset and report each fault")                                                   \
    XX(show, "print documents, windows, tokens, or the rows of a step")                                                \
    XX(audit, "prove that a run covers its dataset and that ranks are disjoint")                                       \
    XX(order, "print the order in which windows are drawn")                                                            \
    XX(train, "make a vocabulary from text")                                                                           \
    XX(encode, "turn text into token ids")                                                                             \
    XX(decode, "turn token ids into text")                                                                             \
    XX(tokenizer, "describe a tokenizer file")

/* argv[0] is the subcommand's name, argv[1 .. argc) are its arguments. Returns the exit status: CLI_DONE,
 * CLI_FAILED, or CLI_MISUSED (cli.h). To be called once per process: a command may catch signals and replace
 * standard output. */
#define COMMAND_DECLARE(name, text) int command_##name(int argc, char **argv);
COMMANDS(COMMAND_DECLARE)
#undef COMMAND_DECLARE

#endif
