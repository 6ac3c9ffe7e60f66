/* SPDX-License-Identifier: MIT */
#include "corpus_arguments.h"

#include <inttypes.h>
#include <string.h>

#include "common/bytes.h"
#include "platform/os.h"
#include "platform/process.h"

/* Decodes one escape of --separator, which begins after its backslash. Returns how many bytes it has, or 0. */
static size_t escape_read(const char *at, char *byte)
{
    static const char letters[] = "ntr\\", values[] = "\n\t\r\\";
    const char *letter = *at ? strchr(letters, *at) : NULL;
    if (letter) {
        *byte = values[letter - letters];
        return 1;
    }
    if (*at != 'x' || hex_digit(at[1]) < 0 || hex_digit(at[2]) < 0)
        return 0;
    *byte = (char)(hex_digit(at[1]) * 16 + hex_digit(at[2]));
    return 3;
}

static int separator_read(const struct cli_command *command, struct corpus_arguments *arguments)
{
    arguments->separator_bytes = 0;
    if (!arguments->separator)
        return 0;
    if (arguments->format != CORPUS_AUTO && arguments->format != CORPUS_TEXT)
        return cli_misused(command, "--separator is about text files, and --input-format names another format");
    for (const char *at = arguments->separator; *at;) {
        char byte = *at++;
        if (byte == '\\') {
            const size_t bytes = escape_read(at, &byte);
            if (!bytes)
                return cli_misused(command,
                                   "--separator '%s' has an unknown escape; a backslash begins one of \\n, \\t, \\r, "
                                   "\\xHH (two hexadecimal digits), and \\\\",
                                   arguments->separator);
            at += bytes;
        }
        if (arguments->separator_bytes == RECORD_SEPARATOR_MOST)
            return cli_misused(command, "--separator has more than %d bytes", RECORD_SEPARATOR_MOST);
        arguments->separator_text[arguments->separator_bytes++] = byte;
    }
    return arguments->separator_bytes ? 0 : cli_misused(command, "--separator needs at least one character");
}

int corpus_arguments_check_named(const struct cli_command *command, struct corpus_arguments *arguments,
                                 const char *const *operands, size_t operand_count)
{
    const int wrong = separator_read(command, arguments);
    if (wrong)
        return wrong;
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
    if (arguments->feeder_given && (!arguments->feeder || arguments->feeder > UINT32_MAX))
        return cli_misused(command, "--feeder must be the id of a process; got %" PRIu64, arguments->feeder);
    if (arguments->feeder_given && (operand_count != 1 || strcmp(operands[0], "-") != 0 || arguments->lists.count))
        return cli_misused(command, "--feeder is about standard input: name '-' as the only input");
    return 0;
}

int corpus_arguments_check(const struct cli_command *command, struct corpus_arguments *arguments, const char **operands,
                           size_t *operand_count)
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
    options->separator = arguments->separator ? arguments->separator_text : NULL;
    options->separator_bytes = arguments->separator_bytes;
    options->skip = arguments->on_error == 1;
    options->record_limit = arguments->max_record;
    options->document_limit = arguments->max_document;
    options->feeder = (uint32_t)arguments->feeder;
    options->feed = arguments->feed;
    options->select = (struct inputs_selection){.include = arguments->include.values,
                                                .include_count = arguments->include.count,
                                                .exclude = arguments->exclude.values,
                                                .exclude_count = arguments->exclude.count,
                                                .lists = arguments->lists.values,
                                                .list_count = arguments->lists.count,
                                                .null = arguments->null,
                                                .hidden = arguments->hidden,
                                                .table_files = arguments->table_files};
}

/* ---- the size of the inputs ---- */

#define LATE_NS ((uint64_t)30 * 1000000000u)
#define FILES_MOST 1000 /* operands that are examined to find out whether all are files */

static void measure(struct input_size *size)
{
    size->bytes = corpus_size(size->operands, size->operand_count, size->select, os_is_stopped, NULL);
    size->measured = true;
}

static bool all_are_files(const struct input_size *size)
{
    struct os_stat stat;
    if (size->operand_count > FILES_MOST || size->select->list_count)
        return false;
    for (size_t i = 0; i < size->operand_count; i++)
        if (os_stat(size->operands[i], &stat) || stat.kind != OS_KIND_FILE)
            return false;
    return true;
}

void input_size_start(struct input_size *size, const char *const *operands, size_t operand_count,
                      const struct inputs_selection *select, int mode)
{
    *size = (struct input_size){
        .operands = operands, .operand_count = operand_count, .select = select, .started_ns = os_clock_ns()};
    if ((mode == CLI_PROGRESS_AUTO && os_is_terminal(2)) || all_are_files(size))
        measure(size);
}

uint64_t input_size_update(struct input_size *size)
{
    if (!size->measured && os_clock_ns() - size->started_ns >= LATE_NS)
        measure(size);
    return size->bytes;
}
