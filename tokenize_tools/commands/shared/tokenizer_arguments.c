#include "tokenizer_arguments.h"
#include "field_options.h"
#include "vocabulary/vocabulary.h"

#include <inttypes.h>
#include <string.h>

int tokenizer_arguments_check(const struct cli_command *command, const struct tokenizer_arguments *arguments)
{
    const struct tokenizer_options *options = &arguments->options;
    const char *given = options->pattern          ? "pattern"
                        : options->pattern_regex  ? "pattern-regex"
                        : options->special_tokens ? "special-tokens"
                                                  : NULL;
    if (arguments->eod_given && arguments->no_eod)
        return cli_misused(command, "--eod and --no-eod exclude each other");
    if (options->pattern && options->pattern_regex)
        return cli_misused(command, "--pattern and --pattern-regex exclude each other");
    if (given && !strcmp(arguments->spec, "bytes"))
        return cli_misused(command, "--%s is for rank files: name one with --tokenizer", given);
    return 0;
}

int tokenizer_arguments_open(const struct cli_command *command, struct tokenizer_arguments *arguments,
                             struct tokenizer **tokenizer)
{
    struct tokmap_error error;
    struct tokenizer_info info;
    arguments->options.special = (enum tokenizer_special)arguments->special;
    if (vocabulary_open(tokenizer, arguments->spec, &arguments->options, &error))
        return command_failed(command, &error);
    tokenizer_info(*tokenizer, &info);
    if (info.note)
        cli_say(command->program, "%s: %s", arguments->spec, info.note);
    return 0;
}

/* value: "" for the token that the tokenizer names, else the name of a special token, or an id. */
static int id_choose(const struct cli_command *command, const struct tokenizer *tokenizer, const char *option,
                     const char *value, uint64_t *id)
{
    struct tokenizer_info info;
    tokenizer_info(tokenizer, &info);
    if (!*value) {
        *id = strcmp(option, "eod") ? info.bos_id : info.eod_id;
        if (*id == TOKMAP_NO_ID)
            return cli_misused(command, "the tokenizer '%s' names no such token: choose --%s=NAME or --%s=ID",
                               info.name, option, option);
        return 0;
    }
    *id = tokenizer_special(tokenizer, value);
    if (*id != TOKMAP_NO_ID)
        return 0;
    if (!cli_parse_number(value, id))
        return cli_misused(command, "--%s=%s: the tokenizer '%s' has no special token of that name%s", option, value,
                           info.name, info.added ? "; 'tokmap tokenizer' lists them" : "");
    if (*id >= info.vocabulary)
        return cli_misused(command, "--%s=%s: the tokenizer '%s' has the ids 0 to %" PRIu64, option, value, info.name,
                           info.vocabulary - 1);
    return 0;
}

int tokenizer_arguments_around(const struct cli_command *command, const struct tokenizer_arguments *arguments,
                               const struct tokenizer *tokenizer, bool needed, uint64_t *eod, uint64_t *bos)
{
    struct tokenizer_info info;
    tokenizer_info(tokenizer, &info);
    *eod = *bos = TOKMAP_NO_ID;
    if (needed && !arguments->no_eod && !arguments->eod_given && info.eod_id == TOKMAP_NO_ID)
        return cli_misused(command,
                           "the tokenizer '%s' names no token that ends a document: choose one with --eod=NAME or "
                           "--eod=ID, or none with --no-eod",
                           info.name);
    if (arguments->eod_given || (needed && !arguments->no_eod)) {
        const int status = id_choose(command, tokenizer, "eod", arguments->eod, eod);
        if (status)
            return status;
    }
    return arguments->bos_given ? id_choose(command, tokenizer, "bos", arguments->bos, bos) : 0;
}
