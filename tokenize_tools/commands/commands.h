/*
 * commands.h - the list of subcommands. command_NAME.c defines command_NAME().
 *
 * A new subcommand needs a line here, its file, and its page in man/; lint and the tests look for the rest. The fields
 * `operands` and `first_operand` of its struct cli_command make shells complete its operands.
 */
#ifndef TOKMAP_COMMANDS_COMMANDS_H
#define TOKMAP_COMMANDS_COMMANDS_H

/* GROUP(heading of `tokmap --help`), then XX(name, what `tokmap --help` says it does) for each command of the group. */
#define COMMANDS(XX, GROUP)                                                                                            \
    GROUP("Make a dataset")                                                                                            \
    XX(pack, "tokenize text into a dataset")                                                                           \
    XX(merge, "make one dataset of several, without copying (also: cat)")                                              \
    XX(index, "index token files of other projects, in place")                                                         \
    XX(convert, "copy a dataset to or from the token files of other projects")                                         \
    XX(plan, "pack documents into rows, so that few of them are cut")                                                  \
    XX(seal, "compress the tokens of shards, which stay usable as they are")                                          \
    XX(unseal, "restore the tokens of sealed shards")                                                                  \
    XX(mix, "write a run file for a mixture of sources in percent, epochs, or tokens")                                 \
    GROUP("Look at a dataset or a run")                                                                                \
    XX(info, "describe a dataset or a run")                                                                            \
    XX(stats, "print lengths of documents, shares of input files, and how often ids occur")                            \
    XX(export, "turn a dataset back into text")                                                                        \
    XX(show, "print documents, windows, tokens, or the rows of a step")                                                \
    XX(verify, "read every byte of a dataset and report each fault")                                                   \
    XX(audit, "prove that a run covers its dataset and that ranks are disjoint")                                       \
    XX(replay, "compare what loaders delivered with the data")                                                         \
    XX(order, "print the order in which windows are drawn")                                                            \
    GROUP("Work with a tokenizer")                                                                                     \
    XX(tokenizer, "describe a tokenizer file")                                                                         \
    XX(encode, "turn text into token ids")                                                                             \
    XX(decode, "turn token ids into text")                                                                             \
    XX(train, "make a vocabulary from text")                                                                           \
    GROUP("Set up your shell")                                                                                         \
    XX(completion, "print the script that completes command lines in bash, zsh, or fish")

/* argv[0] is the subcommand's name, argv[1 .. argc) are its arguments. Returns the exit status: CLI_DONE,
 * CLI_FAILED, or CLI_MISUSED (cli.h). To be called once per process: a command may catch signals and replace
 * standard output. */
#define COMMAND_DECLARE(name, text) int command_##name(int argc, char **argv);
#define COMMAND_GROUP(heading)
COMMANDS(COMMAND_DECLARE, COMMAND_GROUP)
#undef COMMAND_DECLARE
#undef COMMAND_GROUP

#endif
