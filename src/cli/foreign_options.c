/* foreign_options.c - see foreign_options.h. */
#include "foreign_options.h"

#include <string.h>

/* From Megatron's preprocess_data, datatrove, nanotron, litgpt, litdata, MosaicML's streaming, dolma, the scripts of
 * transformers, and the trainers of tokenizers and SentencePiece. The first row whose option the command has counts. */
static const struct cli_foreign_option table[] = {
    {"workers num-workers n-workers nproc num-proc n-proc jobs n-jobs processes num-processes num-threads cpus "
     "preprocessing-num-workers",
     "threads", NULL},
    {"text-field text-key text-column text-column-name json-key json-keys key column content-key content-field",
     "field", NULL},
    {"input input-file input-files input-folder input-dir data data-path data-dir data-folder dataset documents "
     "train-file",
     "input-format", "inputs have no option: write their names at the end"},
    {"format file-format data-format", "input-format", NULL},
    {"parquet jsonl csv tsv warc", "input-format",
     "the format is found by name and content; otherwise name it with --input-format"},
    {"output-prefix output-folder output-dir output-path output-file out out-root destination destination-path "
     "model-prefix",
     "output", NULL},
    {"tokenizer-type", "tokenizer", "the type is found in the tokenizer's file, which --tokenizer names"},
    {"tokenizer-model tokenizer-name tokenizer-path tokenizer-file tokenizer-name-or-path model model-name "
     "model-name-or-path checkpoint-dir vocab vocab-file merge-file merges-file encoding encoding-name",
     "tokenizer", "name the tokenizer's file, or the folder that holds it, with --tokenizer"},
    {"append-eod append-eos add-eod add-eos eos eos-token eos-token-id eos-text eod-token", "eod", NULL},
    {"add-bos append-bos bos-token bos-token-id bos-text", "bos", NULL},
    {"shard-size chunk-size chunk-bytes max-size max-shard-size max-tokens-per-file tokens-per-shard partitions",
     "shard-tokens", "give the size of a shard in tokens with --shard-tokens, such as 1G"},
    {"random-seed data-seed shuffle-seed", "seed", NULL},
    {"seed random-seed data-seed shuffle-seed shuffle-documents", "shuffle",
     "--shuffle SEED puts the documents in a random order, and --split-seed chooses the sets of --split"},
    {"val-split val-size val-fraction val-split-fraction validation-split validation-split-percentage test-size "
     "train-split splits",
     "split", "name the sets and their shares: --split train=0.99,val=0.01"},
    {"tasks n-tasks num-tasks rank world-size", "task", "write the number of this process and of all: --task 0/8"},
    {"world world-size num-ranks n-ranks", "ranks", NULL},
    {"seq-length sequence-length max-seq-length max-seq-len max-length block-size context-length", "seq-len", NULL},
    {"seq-len seq-length sequence-length max-seq-length max-seq-len max-length block-size context-length",
     "input-format", "documents stay whole; a run file says with seq_len how long the rows of training are"},
    {"batch-size global-batch-size train-batch-size", "batch", NULL},
    {"dtype token-dtype", "input-format", "the size of the vocabulary decides whether an id has 2 or 4 bytes"},
    {"keep-sequential-samples keep-newlines", "input-format", "leave it out: texts and their order stay as they are"},
    {"overwrite overwrite-output-dir replace yes", "force", NULL},
    {"resume continue skip-completed", "no-resume", "leave it out: the same command continues by itself"},
    {"compress compression zstd", "seal", NULL},
    {"dedupe deduplicate minhash", "dedup", "write --dedup exact or --dedup minhash"},
    {"messages messages-key messages-column conversations conversation-field", "messages-field", NULL},
    {"template apply-chat-template", "chat-template", NULL},
    {"prompt-key prompt-column", "prompt-field", NULL},
    {"completion-key completion-column response-field response-key answer-field", "completion-field", NULL},
    {"ignore-errors skip-errors skip-bad continue-on-error", "on-error", "write --on-error skip"},
    {"glob glob-pattern", "include", NULL},
    {"special-token user-defined-symbols added-tokens", "special-tokens", NULL},
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
