/* SPDX-License-Identifier: MIT */
/* tokenizer_arguments.c - see tokenizer_arguments.h. */
#include "tokenizer_arguments.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "error_options.h"
#include "vocabulary/folder.h"
#include "vocabulary/vocabulary.h"

int tokenizer_arguments_check(const struct cli_command *command, const struct tokenizer_arguments *arguments)
{
    const struct tokmap_tokenizer_options *options = &arguments->options;
    const char *given = options->pattern          ? "pattern"
                        : options->pattern_regex  ? "pattern-regex"
                        : options->special_tokens ? "special-tokens"
                                                  : NULL;
    if (arguments->eod_given && arguments->no_eod)
        return cli_misused(command, "--eod and --no-eod exclude each other");
    if (options->pattern && options->pattern_regex)
        return cli_misused(command, "--pattern and --pattern-regex exclude each other");
    if (given && !strcmp(arguments->spec, "bytes"))
        return cli_misused(command, "--%s describes a rank file: name that file with --tokenizer", given);
    return 0;
}

/* Opens the tokenizer, and prints what users should know about its file, or about the files of its folder. */
static int spec_open(const struct cli_command *command, const struct tokenizer_arguments *arguments, bool print_note,
                     struct folder *folder, struct tokenizer **tokenizer)
{
    struct tokmap_error error;
    struct tokenizer_info info;
    if (vocabulary_open_reported(tokenizer, arguments->spec, &arguments->options, folder, &error))
        return command_failed(command, &error);
    tokenizer_info(*tokenizer, &info);
    if (print_note)
        folder_compare(folder, *tokenizer);
    if (info.note && print_note)
        cli_warn(command->program, "%s: %s", arguments->spec, info.note);
    for (uint32_t i = 0; i < folder->warning_count && print_note; i++)
        cli_warn(command->program, "%s: %s", arguments->spec, folder->warnings[i]);
    return 0;
}

int tokenizer_arguments_open(const struct cli_command *command, struct tokenizer_arguments *arguments, bool print_note,
                             struct tokenizer **tokenizer)
{
    struct tokmap_error error;
    const int special = arguments->special == TOKENIZER_SPECIAL_OLD ? TOKMAP_SPECIAL_RECOGNIZE : arguments->special;
    assert(special >= 0 && special < TOKENIZER_SPECIAL_OLD);
    arguments->options.special = (enum tokmap_special)special;
    if (special && !strcmp(arguments->spec, "bytes"))
        return cli_misused(command, "the tokenizer 'bytes' finds no special tokens in text: leave --special out, or "
                                    "name another tokenizer");
    if (arguments->folder)
        return spec_open(command, arguments, print_note, arguments->folder, tokenizer);
    struct folder *folder = calloc(1, sizeof *folder);
    if (!folder) {
        (void)error_set_memory(&error, "a tokenizer", sizeof *folder);
        return command_failed(command, &error);
    }
    const int status = spec_open(command, arguments, print_note, folder, tokenizer);
    folder_free(folder);
    free(folder);
    return status;
}

int tokenizer_arguments_id(const struct cli_command *command, const struct tokenizer *tokenizer, const char *option,
                           const char *value, uint64_t *id)
{
    struct tokenizer_info info;
    tokenizer_info(tokenizer, &info);
    *id = tokenizer_special(tokenizer, value);
    if (*id != TOKMAP_NO_ID)
        return 0;
    if (!cli_parse_number(value, id))
        return cli_misused(command, "--%s=%s: the tokenizer '%s' has no special token with that name%s", option, value,
                           info.name, info.added ? "; 'tokmap tokenizer' lists them" : "");
    if (*id >= info.vocabulary)
        return cli_misused(command, "--%s=%s: the ids of the tokenizer '%s' end at %" PRIu64, option, value, info.name,
                           info.vocabulary - 1);
    return 0;
}

/* Finds the id that --eod or --bos (`option`) means. value: "" for the token that the tokenizer names. */
static int id_find(const struct cli_command *command, const struct tokenizer *tokenizer, const char *option,
                   const char *value, uint64_t *id)
{
    struct tokenizer_info info;
    tokenizer_info(tokenizer, &info);
    if (!*value) {
        const bool is_eod = !strcmp(option, "eod");
        *id = is_eod ? info.eod_id : info.bos_id;
        if (*id == TOKMAP_NO_ID)
            return cli_misused(command,
                               "the tokenizer '%s' does not name a token that %s a document; choose one with --%s=NAME "
                               "or --%s=ID",
                               info.name, is_eod ? "ends" : "begins", option, option);
        return 0;
    }
    return tokenizer_arguments_id(command, tokenizer, option, value, id);
}

int tokenizer_arguments_eod_bos(const struct cli_command *command, const struct tokenizer_arguments *arguments,
                                const struct tokenizer *tokenizer, bool eod_needed, uint64_t *eod, uint64_t *bos)
{
    struct tokenizer_info info;
    tokenizer_info(tokenizer, &info);
    *eod = *bos = TOKMAP_NO_ID;
    if (eod_needed && !arguments->no_eod && !arguments->eod_given && info.eod_id == TOKMAP_NO_ID)
        return cli_misused(
            command,
            "the tokenizer '%s' does not name a token that ends a document; choose one with --eod=NAME or "
            "--eod=ID, or none with --no-eod",
            info.name);
    if (arguments->eod_given || (eod_needed && !arguments->no_eod)) {
        const int status = id_find(command, tokenizer, "eod", arguments->eod, eod);
        if (status)
            return status;
    }
    return arguments->bos_given ? id_find(command, tokenizer, "bos", arguments->bos, bos) : 0;
}
