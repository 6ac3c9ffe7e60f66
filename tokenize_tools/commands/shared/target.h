/*
 * target.h - what info, show and audit work on: a dataset, a run, or a dataset with the arguments that make a run of
 * it.
 *
 * A run is a regular text file that is no manifest and has no index beside it; every other name is a dataset's, one that
 * begins with "synthetic:" always.
 */
#ifndef TOKMAP_COMMANDS_SHARED_TARGET_H
#define TOKMAP_COMMANDS_SHARED_TARGET_H

#include <stdbool.h>

#include "cli/cli.h"
#include "tokmap/tokmap.h"

/* The arguments of a run that is made from a dataset; the names are those of the run file's directives. */
struct run_arguments {
    uint64_t seq_len, lookahead, batch, seed, steps, passes;
    int ordering; /* enum tokmap_ordering */
    bool seq_len_given, lookahead_given, batch_given, seed_given, ordering_given, steps_given, passes_given;
};
#define RUN_ARGUMENTS_INIT                                                                                             \
    {                                                                                                                  \
        .lookahead = 1, .steps = TOKMAP_FOREVER, .passes = TOKMAP_FOREVER                                              \
    }

/* Rows for a table of options. */
#define RUN_OPTION_SEQ_LEN(run)                                                                                        \
    {                                                                                                                  \
        0, "seq-len", CLI_SIZE, &(run).seq_len, &(run).seq_len_given, "S", "tokens of a row", NULL                     \
    }
#define RUN_OPTION_LOOKAHEAD(run)                                                                                      \
    {                                                                                                                  \
        0, "lookahead", CLI_NUMBER, &(run).lookahead, &(run).lookahead_given, "L",                                     \
            "tokens of a window beyond the row's, for targets; 1 by default", NULL                                     \
    }
#define RUN_OPTION_BATCH(run)                                                                                          \
    {                                                                                                                  \
        0, "batch", CLI_NUMBER, &(run).batch, &(run).batch_given, "G", "rows of a global batch", NULL                  \
    }
#define RUN_OPTION_SEED(run)                                                                                           \
    {                                                                                                                  \
        0, "seed", CLI_NUMBER, &(run).seed, &(run).seed_given, "N", "seed of the order", NULL                          \
    }
#define RUN_OPTION_ORDER(run)                                                                                          \
    {                                                                                                                  \
        0, "order", CLI_CHOICE, &(run).ordering, &(run).ordering_given, "ORDER",                                       \
            "'shuffle', the default, or 'sequential', which needs no seed", "shuffle|sequential"                       \
    }

struct target {
    const char *name;
    struct tokmap_dataset *dataset; /* opened for a dataset */
    struct tokmap_run *run;         /* opened for a run, or made from a dataset */
    bool is_run_file;
};

/* Whether `name` is a run file rather than a dataset. A name that does not exist is a dataset's. */
bool target_names_run(const char *name);

/* Opens a run file, or a dataset; with `make_run` a run of the dataset from arguments. After a message the exit status,
 * else -1. */
int target_open(struct target *target, const struct cli_command *command, const char *name,
                const struct run_arguments *arguments, bool make_run);
void target_close(struct target *target);

/* The dataset of a target; of a run, its source's. Lives as long as the target. */
const struct tokmap_dataset *target_dataset(const struct target *target, uint64_t source);

/* Writes the field "dataset" or "run": the name as it was given. */
void target_json(const struct target *target, struct cli_json *json);

/* 32 hexadecimal digits of an id, or "unknown" if all bytes are zero. */
const char *id_hex(const uint8_t id[16], char text[33]);

/* The name of the tokenizer that made the dataset, as the index of its first shard has it. False: it does not say. */
#define TOKENIZER_NAME 96
bool dataset_tokenizer(const struct tokmap_dataset *dataset, char name[TOKENIZER_NAME]);

#endif
