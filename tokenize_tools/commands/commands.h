/* SPDX-License-Identifier: MIT */
/*
 * commands.h - the list of subcommands. command_NAME.c defines command_NAME(), and
 * command_seal.c also command_unseal(); NAME has underscores for dashes.
 *
 * A new subcommand needs a line here, its file, and its page in man/; lint and the tests look for the rest. The fields
 * `operands` and `first_operand` of its struct cli_command make shells complete its operands.
 */
#ifndef TOKMAP_COMMANDS_COMMANDS_H
#define TOKMAP_COMMANDS_COMMANDS_H

/* GROUP(heading of `tokmap --help`), then XX(NAME of its function, name, what `tokmap --help` says it does) for each
 * command of the group. */
#define COMMANDS(XX, GROUP)                                                                                            \
    GROUP("Make a dataset")                                                                                            \
    XX(pack, "pack", "tokenize text into a dataset")                                                                   \
    XX(dedup, "dedup", "list duplicates and excluded documents, which pack leaves out")                                \
    XX(merge, "merge", "make one dataset of several without copying (also: cat)")                                      \
    XX(index, "index", "index token files of other projects, in place")                                                \
    XX(convert, "convert", "copy a dataset to or from the token files of other projects")                              \
    XX(copy, "copy", "copy a dataset to or from object storage, and compare it")                                       \
    XX(plan, "plan", "pack documents into rows, so that few of them are cut")                                          \
    XX(seal, "seal", "compress the tokens of shards, which stay usable as they are")                                   \
    XX(unseal, "unseal", "restore the tokens of sealed shards")                                                        \
    XX(mix, "mix", "write a run file for a mixture of sources")                                                        \
    GROUP("Look at a dataset or a run")                                                                                \
    XX(info, "info", "describe a dataset or a run")                                                                    \
    XX(stats, "stats", "print document lengths, shares of inputs, and counts of ids")                                  \
    XX(export, "export", "turn a dataset back into text")                                                              \
    XX(show, "show", "print documents, windows, tokens, or the rows of a step")                                        \
    XX(find, "find", "list documents by what they are or say, so that a run excludes them")                            \
    XX(verify, "verify", "check bytes: read all of a dataset and report each fault")                                   \
    XX(audit, "audit", "check rows: prove that ranks read all data and nothing twice")                                 \
    XX(replay, "replay", "compare what loaders delivered with the data")                                               \
    XX(order, "order", "print the order in which windows are drawn")                                                   \
    GROUP("Work with a tokenizer")                                                                                     \
    XX(tokenizer, "tokenizer", "describe a tokenizer file")                                                            \
    XX(encode, "encode", "turn text into token ids")                                                                   \
    XX(decode, "decode", "turn token ids into text")                                                                   \
    XX(train_tokenizer, "train-tokenizer", "make a vocabulary from text")                                              \
    GROUP("Set up your shell")                                                                                         \
    XX(completion, "completion", "print the script that completes commands in bash, zsh, or fish")

/* argv[0] is the subcommand's name, argv[1 .. argc) are its arguments. Returns the exit status: CLI_DONE,
 * CLI_FAILED, or CLI_MISUSED (cli.h). To be called once per process: a command may catch signals and replace
 * standard output. */
#define COMMAND_DECLARE(suffix, name, text) int command_##suffix(int argc, char **argv);
#define COMMAND_GROUP(heading)
COMMANDS(COMMAND_DECLARE, COMMAND_GROUP)
#undef COMMAND_DECLARE
#undef COMMAND_GROUP

#endif
