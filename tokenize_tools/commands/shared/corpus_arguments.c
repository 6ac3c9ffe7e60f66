/* corpus_arguments.c - see corpus_arguments.h. */
#include "corpus_arguments.h"

#include <string.h>

#include "platform/os.h"

int corpus_arguments_check_named(const struct cli_command *command, const struct corpus_arguments *arguments,
                                 const char *const *operands, size_t operand_count)
{
    if (!arguments->max_record || !arguments->max_document)
        return cli_misused(command, "--max-record and --max-document must be at least 1");
    if (arguments->null && !arguments->lists.count)
        return cli_misused(command, "--null is about the paths of --files-from, which is not given");
    size_t standard = 0;
    for (size_t i = 0; i < operand_count; i++)
        standard += !strcmp(operands[i], "-");
    for (size_t i = 0; i < arguments->lists.count; i++)
        standard += !strcmp(arguments->lists.values[i], "-");
    if (standard > 1)
        return cli_misused(command, "standard input ('-') can be read only once");
    return 0;
}

int corpus_arguments_check(const struct cli_command *command, const struct corpus_arguments *arguments,
                           const char **operands, size_t *operand_count)
{
    const int status = corpus_arguments_check_named(command, arguments, operands, *operand_count);
    if (status || *operand_count || arguments->lists.count)
        return status;
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
    options->select = (struct inputs_selection){.include = arguments->include.values,
                                                .include_count = arguments->include.count,
                                                .exclude = arguments->exclude.values,
                                                .exclude_count = arguments->exclude.count,
                                                .lists = arguments->lists.values,
                                                .list_count = arguments->lists.count,
                                                .null = arguments->null,
                                                .hidden = arguments->hidden};
}
