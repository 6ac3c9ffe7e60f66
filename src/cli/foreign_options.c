/* foreign_options.c - see foreign_options.h. */
#include "foreign_options.h"

#include <string.h>

/* From Megatron's preprocess_data, nanotron, litgpt, litdata, and the scripts of transformers. The first row whose
 * option the command has counts. */
static const struct cli_foreign_option table[] = {
    {"workers num-workers num-proc nproc jobs preprocessing-num-workers", "threads", NULL},
    {"text-field text-key text-column text-column-name json-key json-keys key column", "field", NULL},
    {"input input-file input-dir data data-path data-dir dataset train-file", "input-format",
     "inputs have no option: write their names at the end"},
    {"parquet jsonl csv tsv warc format", "input-format",
     "the format is found by name and content; otherwise name it with --input-format"},
    {"output-prefix output-dir output-path output-file out", "output", NULL},
    {"tokenizer-type", "tokenizer", "the type is found in the tokenizer's file, which --tokenizer names"},
    {"tokenizer-model tokenizer-name tokenizer-path tokenizer-file tokenizer-name-or-path model model-name-or-path "
     "vocab vocab-file merge-file",
     "tokenizer", "name the tokenizer's file, or the folder that holds it, with --tokenizer"},
    {"append-eod append-eos add-eos eos eos-token eos-token-id", "eod", NULL},
    {"add-bos bos-token bos-token-id", "bos", NULL},
    {"shard-size chunk-size chunk-bytes max-shard-size max-tokens-per-file partitions", "shard-tokens",
     "give the size of a shard in tokens with --shard-tokens, such as 1G"},
    {"random-seed data-seed", "seed", NULL},
    {"seed random-seed data-seed", "shuffle",
     "--shuffle SEED puts the documents in a random order, and --split-seed chooses the sets of --split"},
    {"val-split val-size val-split-fraction validation-split validation-split-percentage test-size", "split",
     "name the sets and their shares: --split train=0.99,val=0.01"},
    {"world-size", "ranks", NULL},
    {"seq-length sequence-length max-seq-length max-seq-len max-length block-size", "seq-len", NULL},
    {"seq-len seq-length sequence-length max-seq-length max-seq-len max-length block-size", "input-format",
     "documents stay whole; a run file says with seq_len how long the rows of training are"},
    {"batch-size global-batch-size", "batch", NULL},
    {"overwrite", "force", NULL},
    {"messages messages-key messages-column conversations", "messages-field", NULL},
};

/* Whether a list of words has the word, which may have underscores for dashes. */
static bool list_has(const char *list, const char *word)
{
    for (const char *at = list;; at++) {
        size_t i = 0;
        while (word[i] && (at[i] == word[i] || (at[i] == '-' && word[i] == '_')))
            i++;
        if (!word[i] && (!at[i] || at[i] == ' '))
            return true;
        at += strcspn(at, " ");
        if (!*at)
            return false;
    }
}

const struct cli_foreign_option *cli_foreign_option(const struct cli_command *command, const char *typed)
{
    for (size_t row = 0; row < sizeof table / sizeof table[0]; row++)
        for (size_t i = 0; i < command->option_count && list_has(table[row].names, typed); i++)
            if (!strcmp(command->options[i].name, table[row].option))
                return &table[row];
    return NULL;
}
