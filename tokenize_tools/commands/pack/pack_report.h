/* SPDX-License-Identifier: MIT */
/* pack_report.h - the closing report of `tokmap pack`, for people and as JSON. */
#ifndef TOKMAP_COMMANDS_PACK_PACK_REPORT_H
#define TOKMAP_COMMANDS_PACK_PACK_REPORT_H

#include "also_arguments.h"
#include "cli/cli.h"
#include "commands/report/skip_report.h"
#include "pack/pack_output.h"

struct pack_report {
    const char *shown;  /* the name of the output, which may be an address */
    const char *prefix; /* of the output; not used for a dry run, may then be NULL */
    bool dry_run;
    bool sets;                          /* the output is one or several shard sets */
    uint64_t shard_tokens;              /* with sets; 0: no limit */
    const struct split *split;          /* NULL: there is one set */
    const struct fim *fim;              /* NULL: no text is rearranged */
    const struct pack_shuffle *shuffle; /* NULL: the documents have the order of the inputs */
    bool sealed;                        /* the tokens of the shards are compressed */
    const struct tokenizer *tokenizer;  /* NULL: none was named; ids are below `vocabulary` */
    uint64_t vocabulary;
    const struct chat_template *chat; /* NULL: no conversations */
    const struct corpus_options *corpus;
    const char *tokenizer_path; /* as it was typed; NULL: the tokenizer is the built-in one, for bytes */
    bool tokenizer_given;       /* -t was given */
    uint64_t eod_id, bos_id;    /* or TOKMAP_NO_ID */
    const struct pack_result *result;
    const struct skip_report *skips;
    const struct listed_documents *listed; /* NULL: no --drop */
    const struct also_arguments *also;     /* files of other projects; its count may be 0 */
    double seconds;
};

/* Prints on standard output: what was made, what was read, what was left out, and, for people, the next commands. */
void pack_report(const struct pack_report *report, bool json);

#endif
