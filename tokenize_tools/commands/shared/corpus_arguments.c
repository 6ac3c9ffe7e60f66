/* corpus_arguments.c - see corpus_arguments.h. */
#include "corpus_arguments.h"

#include <string.h>

#include "platform/os.h"

int corpus_arguments_check(const struct cli_command *command, const struct corpus_arguments *arguments,
                           const char **operands, size_t *operand_count)
{
    if (!arguments->max_record || !arguments->max_document)
        return cli_misused(command, "--max-record and --max-document must be at least 1");
    size_t standard = 0;
    for (size_t i = 0; i < *operand_count; i++)
        standard += !strcmp(operands[i], "-");
    if (standard > 1)
        return cli_misused(command, "standard input ('-') can be read only once");
    if (*operand_count)
        return 0;
    struct os_stat stat;
    /* Reading a terminal or /dev/null would look like a command that hangs, or like an empty corpus. */
    if (os_fstat(0, &stat) || stat.kind == OS_KIND_OTHER)
        return cli_misused(command, "no input given: name files, folders, or patterns, or '-' for standard input");
    operands[(*operand_count)++] = "-";
    return 0;
}

void corpus_arguments_apply(const struct corpus_arguments *arguments, struct corpus_options *options)
{
    options->format = (enum corpus_format)arguments->format;
    options->invalid = (enum corpus_invalid)arguments->invalid;
    options->field = arguments->field;
    options->skip = arguments->on_error == 1;
    options->record_limit = arguments->max_record;
    options->document_limit = arguments->max_document;
}
