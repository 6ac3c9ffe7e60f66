/* completion_scripts.h - the scripts of tokenize_tools/completion, each with a zero byte at its end. */
#ifndef TOKMAP_COMMANDS_COMPLETION_SCRIPTS_H
#define TOKMAP_COMMANDS_COMPLETION_SCRIPTS_H

extern const char completion_bash[], completion_zsh[], completion_fish[];

#endif
