/* content_arguments.c - see content_arguments.h. */
#include "content_arguments.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "chat/chat_messages.h"
#include "text/utf8.h"

#define COLUMN_BYTES_MOST 1024 /* of a name, in the index */

/* Splits the names of an option at their commas: at most `most`. *text is their memory. */
static int names_split(const struct cli_command *command, const char *option, const struct cli_list *typed, char **text,
                       const char **names, size_t most, size_t *count)
{
    size_t bytes = 1, filled = 0;
    for (size_t i = 0; i < typed->count; i++)
        bytes += strlen(typed->values[i]) + 1;
    *text = malloc(bytes);
    if (!*text) {
        struct tokmap_error error;
        (void)error_set_memory(&error, "the names of fields", bytes);
        return cli_failed(command->program, &error);
    }
    for (size_t i = 0; i < typed->count; i++) {
        const char *at = typed->values[i];
        for (bool more = true; more;) {
            const size_t length = strcspn(at, ",");
            char *name = *text + filled;
            memcpy(name, at, length);
            name[length] = '\0';
            filled += length + 1;
            more = at[length] == ',';
            at += length + more;
            if (!length || length > COLUMN_BYTES_MOST || utf8_valid_prefix(name, length) < length)
                return cli_misused(command,
                                   "--%s %s: the name of a field has 1 to %d bytes of UTF-8, and commas are between "
                                   "names, as in url,meta.score",
                                   option, typed->values[i], COLUMN_BYTES_MOST);
            for (size_t k = 0; k < *count; k++)
                if (!strcmp(names[k], name))
                    return cli_misused(command, "--%s names the field '%s' twice", option, name);
            if (*count == most)
                return cli_misused(command, "--%s names more than %zu fields", option, most);
            names[(*count)++] = name;
        }
    }
    return 0;
}

static bool is_among(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(names[i], name))
            return true;
    return false;
}

/* Sets the fields that say something beside the messages: in the object that has these, and in the record. What is kept
 * as a column is not lost, unless a template could write it. */
static int beside_list(const struct cli_command *command, struct content_arguments *arguments)
{
    const char *field = arguments->messages_field, *dot = strrchr(field, '.');
    const size_t path = dot ? (size_t)(dot - field) + 1 : 0;
    size_t bytes = 1;
    for (const char *const *key = chat_beside_keys(); *key; key++)
        bytes += path + strlen(*key) + 1;
    char *at = arguments->beside_text = malloc(bytes);
    if (!at) {
        struct tokmap_error error;
        (void)error_set_memory(&error, "the names of fields", bytes);
        return cli_failed(command->program, &error);
    }
    for (const char *const *key = chat_beside_keys(); *key; key++) {
        const char *const names[] = {*key, at};
        memcpy(at, field, path);
        memcpy(at + path, *key, strlen(*key) + 1);
        at += path + strlen(*key) + 1;
        for (size_t i = 0; i < (path ? 2 : 1); i++) {
            const bool kept = is_among(names[i], arguments->column_names, arguments->column_count);
            if (is_among(*key, arguments->ignore_names, arguments->ignore_count) ||
                is_among(names[i], arguments->ignore_names, arguments->ignore_count) || !strcmp(names[i], field) ||
                (kept && !chat_beside_written(*key)))
                continue;
            assert(arguments->beside_count < RECORD_BESIDE_MOST);
            arguments->beside_names[arguments->beside_count++] = names[i];
        }
    }
    return 0;
}

/* Refuses options that need another one, or exclude each other. Returns NULL, or what is wrong. */
static const char *conflict(const struct content_arguments *arguments, const struct corpus_arguments *corpus,
                            const struct tokenizer_arguments *tokenizer)
{
    const bool ids = arguments->ids_field, prompt = arguments->prompt_field, messages = arguments->messages_field;
    if (arguments->mask_field && !ids)
        return "--mask-field is the mask of token ids: name their field with --ids-field";
    if (prompt != (arguments->completion_field != NULL))
        return "--prompt-field and --completion-field belong together: name both fields";
    if (ids + prompt + messages > 1)
        return "--ids-field, --prompt-field, and --messages-field exclude each other: a record is one document";
    if (arguments->chat_template && !messages)
        return "--chat-template writes conversations: name their field with --messages-field";
    if (arguments->ignore.count && !messages)
        return "--ignore-fields is about conversations: name their field with --messages-field";
    if ((ids || prompt || messages) && strcmp(corpus->field, "text") != 0)
        return "--field names the field of a text; leave it out with --ids-field, --prompt-field, and --messages-field";
    if (arguments->vocabulary_given && !ids)
        return "--vocab-size is about ready-made ids: name their field with --ids-field";
    if (arguments->vocabulary_given && tokenizer->spec_given)
        return "--vocab-size and -t exclude each other: the ids are checked against the tokenizer";
    if (ids && !arguments->vocabulary_given && !tokenizer->spec_given)
        return "the ids of --ids-field are checked: name their tokenizer with -t FILE, or only the size of its "
               "vocabulary with --vocab-size N";
    if (arguments->vocabulary_given && (!arguments->vocabulary || arguments->vocabulary > (uint64_t)UINT32_MAX + 1))
        return "--vocab-size must be between 1 and 4294967296";
    if (ids && tokenizer->special)
        return "--special is about text, and --ids-field names token ids";
    if (messages && !strcmp(tokenizer->spec, "bytes"))
        return "a conversation needs a tokenizer with the special tokens of its chat template: name one with -t FILE";
    if ((ids || prompt || messages || arguments->columns.count) && corpus->format == CORPUS_TEXT)
        return "text files have no fields: leave --input-format text out, or name the format of the records";
    if (arguments->max_given && !arguments->max_tokens)
        return "--max-tokens must be at least 1";
    if (arguments->max_given && arguments->min_tokens > arguments->max_tokens)
        return "--min-tokens is more than --max-tokens: no document would be left";
    return NULL;
}

/* Refuses the same field for two purposes, which is a slip. */
static const char *same_field(const struct content_arguments *arguments)
{
    if (arguments->mask_field && !strcmp(arguments->ids_field, arguments->mask_field))
        return "--ids-field and --mask-field name the same field";
    if (arguments->prompt_field && !strcmp(arguments->prompt_field, arguments->completion_field))
        return "--prompt-field and --completion-field name the same field";
    return NULL;
}

int content_arguments_check(const struct cli_command *command, struct content_arguments *arguments,
                            const struct corpus_arguments *corpus, const struct tokenizer_arguments *tokenizer)
{
    const char *wrong = conflict(arguments, corpus, tokenizer);
    if (!wrong)
        wrong = same_field(arguments);
    if (wrong)
        return cli_misused(command, "%s", wrong);
    arguments->content = arguments->ids_field        ? CORPUS_CONTENT_IDS
                         : arguments->prompt_field   ? CORPUS_CONTENT_PROMPT
                         : arguments->messages_field ? CORPUS_CONTENT_MESSAGES
                                                     : CORPUS_CONTENT_TEXT;
    int status = names_split(command, "columns", &arguments->columns, &arguments->column_text, arguments->column_names,
                             RECORD_COLUMNS_MOST, &arguments->column_count);
    if (!status)
        status = names_split(command, "ignore-fields", &arguments->ignore, &arguments->ignore_text,
                             arguments->ignore_names, RECORD_BESIDE_MOST, &arguments->ignore_count);
    return status || !arguments->messages_field ? status : beside_list(command, arguments);
}

void content_arguments_free(struct content_arguments *arguments)
{
    free(arguments->column_text);
    free(arguments->ignore_text);
    free(arguments->beside_text);
    arguments->column_text = arguments->ignore_text = arguments->beside_text = NULL;
}

void content_arguments_apply(const struct content_arguments *arguments, struct corpus_options *options)
{
    options->content = arguments->content;
    if (arguments->ids_field) {
        options->field = arguments->ids_field;
        options->second_field = arguments->mask_field;
    } else if (arguments->prompt_field) {
        options->field = arguments->prompt_field;
        options->second_field = arguments->completion_field;
    } else if (arguments->messages_field) {
        options->field = arguments->messages_field;
    }
    options->columns = arguments->column_names;
    options->column_count = arguments->column_count;
    options->beside = arguments->beside_names;
    options->beside_count = arguments->beside_count;
}

/* Reads the id of --eod or --bos (`option`). */
static int id_read(const struct cli_command *command, const struct content_arguments *arguments, const char *option,
                   const char *value, uint64_t *id)
{
    if (!*value || !cli_parse_number(value, id))
        return cli_misused(command, "--%s needs an id where no tokenizer is named: --%s=ID, or name one with -t FILE",
                           option, option);
    if (*id >= arguments->vocabulary)
        return cli_misused(command, "--%s=%s: the ids of --vocab-size end at %" PRIu64, option, value,
                           arguments->vocabulary - 1);
    return 0;
}

int content_arguments_eod_bos(const struct cli_command *command, const struct content_arguments *arguments,
                              const struct tokenizer_arguments *tokenizer, uint64_t *eod, uint64_t *bos)
{
    *eod = *bos = TOKMAP_NO_ID;
    const int status = tokenizer->eod_given ? id_read(command, arguments, "eod", tokenizer->eod, eod) : 0;
    return status || !tokenizer->bos_given ? status : id_read(command, arguments, "bos", tokenizer->bos, bos);
}
