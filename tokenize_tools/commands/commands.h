/* commands.h - the subcommands of tokmap. argv[0] is the subcommand's name; the result is the exit status (cli.h). */
#ifndef TOKMAP_COMMANDS_COMMANDS_H
#define TOKMAP_COMMANDS_COMMANDS_H

int command_pack(int argc, char **argv);
int command_info(int argc, char **argv);
int command_verify(int argc, char **argv);
int command_show(int argc, char **argv);
int command_audit(int argc, char **argv);
int command_order(int argc, char **argv);
int command_train(int argc, char **argv);
int command_encode(int argc, char **argv);
int command_decode(int argc, char **argv);
int command_tokenizer(int argc, char **argv);

#endif
