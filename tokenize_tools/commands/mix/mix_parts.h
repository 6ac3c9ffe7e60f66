/* SPDX-License-Identifier: MIT */
/*
 * mix_parts.h - a mixture as a person thinks of it (percent, epochs, tokens, and the rest), and the tokens of each
 * source that follow from it.
 *
 *     web=rest               source web, dataset web, all tokens that the others leave
 *     wiki:epochs=3          source wiki, dataset wiki, three times
 *     code=data/code:20%     source code, dataset data/code, a fifth of all tokens
 *     data/books:tokens=40B  source books, dataset data/books, 40 * 10^9 tokens
 */
#ifndef TOKMAP_COMMANDS_MIX_MIX_PARTS_H
#define TOKMAP_COMMANDS_MIX_MIX_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MIX_NAME_MOST 64
#define MIX_DECIMALS 6 /* digits after the point of a percentage and of a number of epochs */

enum mix_kind { MIX_REST, MIX_EPOCHS, MIX_PERCENT, MIX_TOKENS };

struct mix_part {
    char name[MIX_NAME_MOST + 1];
    char *data; /* the dataset; free it with mix_part_free() */
    enum mix_kind kind;
    uint64_t amount;       /* tokens; or percent or epochs, multiplied by 10^MIX_DECIMALS */
    uint64_t epoch_tokens; /* of one epoch, at least 1; set between mix_part_parse() and mix_solve() */
    uint64_t tokens;       /* the result */
    char share[24];        /* a share as a run file has it, such as 33.5; set by mix_are_shares() */
};

struct mix_error {
    char text[512];
    bool memory; /* nothing is wrong with the arguments, but there is no memory */
};

/* Reads an argument as above. Returns false after writing what is wrong. */
bool mix_part_parse(struct mix_part *part, const char *text, struct mix_error *error);
/* Does the same for a validation set, NAME=DATASET or DATASET, of which a run has no amount. */
bool mix_validation_parse(struct mix_part *part, const char *text, struct mix_error *error);
void mix_part_free(struct mix_part *part);

/* Computes the tokens of each part. *total is the tokens of the run, or 0: then they follow from the parts, and are
 * stored. The parts sum to *total, which is below 2^63. Returns false after writing what is wrong. */
bool mix_solve(struct mix_part *parts, size_t count, uint64_t *total, struct mix_error *error);

/* Sets the shares of parts that are solved, if they follow from percentages and the rest alone, and so hold for a run
 * of any length. Returns false, without shares, if a part is in epochs or tokens. */
bool mix_are_shares(struct mix_part *parts, size_t count);

#endif
