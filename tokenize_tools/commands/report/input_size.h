/*
 * input_size.h - how many bytes the inputs have, for progress and for estimates.
 *
 * To add them up, every folder must be walked, which takes about as long as reading small files. Where a person waits
 * at a terminal, this is done at once. Elsewhere it is done at once only if every operand is a file; otherwise when the
 * work has taken half a minute, so that short work in scripts is not slowed down.
 */
#ifndef TOKMAP_COMMANDS_REPORT_INPUT_SIZE_H
#define TOKMAP_COMMANDS_REPORT_INPUT_SIZE_H

#include "cli/cli.h"
#include "inputs/corpus_size.h"

struct input_size {
    const char *const *operands;
    size_t operand_count;
    const struct inputs_selection *select;
    uint64_t started_ns;
    bool measured;
    uint64_t bytes; /* 0 if not measured, or unknown because an input is a pipe */
};

/* Begins, and measures if that is to be done at once. The operands and the selection must stay valid. mode: enum
 * cli_progress_mode. */
void input_size_start(struct input_size *size, const char *const *operands, size_t operand_count,
                      const struct inputs_selection *select, int mode);
/* Measures if it is time. Returns the size, or 0. To be called from time to time, by one thread at a time. */
uint64_t input_size_update(struct input_size *size);

#endif
