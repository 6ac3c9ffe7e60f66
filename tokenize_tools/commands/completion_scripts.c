/*
 * completion_scripts.c - the scripts of tokenize_tools/completion as bytes. The assembler includes the files, so `make
 * install` and `tokmap completion` give the same text, and the tree contains it once, as files that a shell can read.
 */
#include "completion_scripts.h"

#define SCRIPT(name, file)                                                                                             \
    __asm__(".section .rodata\n"                                                                                       \
            ".hidden " #name "\n"                                                                                      \
            ".globl " #name "\n"                                                                                       \
            ".type " #name ", %object\n" #name ":\n"                                                                   \
            ".incbin \"" file "\"\n"                                                                                   \
            ".byte 0\n"                                                                                                \
            ".size " #name ", . - " #name "\n"                                                                         \
            ".text\n")

SCRIPT(completion_bash, "tokenize_tools/completion/tokmap.bash");
SCRIPT(completion_zsh, "tokenize_tools/completion/tokmap.zsh");
SCRIPT(completion_fish, "tokenize_tools/completion/tokmap.fish");
