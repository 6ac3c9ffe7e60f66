/* field_options.c - see field_options.h. */
#include "field_options.h"

#include <assert.h>
#include <string.h>

/* Fields of struct tokenizer_options, corpus_options, pack_options, train_corpus_options, and of the library's options, by
 * name. A field has the same option in every command that has the option at all. */
static const struct field_option table[] = {
    {"batch", "batch", NULL},
    {"bos_id", "bos", NULL},
    {"document_limit", "max-document", NULL},
    {"eod_id", "eod", NULL},
    {"field", "field", NULL},
    {"format", "input-format", NULL},
    {"invalid", "invalid-utf8", NULL},
    {"lookahead", "lookahead", NULL},
    {"memory", "max-memory", NULL},
    {"min_frequency", "min-frequency", NULL},
    {"ordering", "order", NULL},
    {"passes", "passes", NULL},
    {"pattern", "pattern", NULL},
    {"pattern_regex", "pattern-regex", NULL},
    {"prefix", "output", NULL},
    {"rank", "rank", NULL},
    {"record_limit", "max-record", NULL},
    {"replace", "force", NULL},
    {"rows", "rows", NULL},
    {"seed", "seed", NULL},
    {"seq_len", "seq-len", NULL},
    {"skip", "on-error", "skip"},
    {"special", "special", NULL},
    {"special_tokens", "special-tokens", NULL},
    {"steps", "steps", NULL},
    {"threads", "threads", NULL},
    {"vocabulary", "vocab-size", NULL},
    {"world", "ranks", NULL},
};

static const char prefix[] = "options.";
#define PREFIX_LENGTH (sizeof prefix - 1)

const struct field_option *field_options(size_t *count)
{
    *count = sizeof table / sizeof table[0];
    return table;
}

static bool has_option(const struct cli_command *command, const char *name)
{
    for (size_t i = 0; i < command->option_count; i++)
        if (strcmp(command->options[i].name, name) == 0)
            return true;
    return false;
}

/* The entry of a field whose option the command has, or NULL. */
static const struct field_option *entry_find(const struct cli_command *command, const char *field, size_t length)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strlen(table[i].field) == length && memcmp(table[i].field, field, length) == 0)
            return has_option(command, table[i].option) ? &table[i] : NULL;
    return NULL;
}

static bool is_name_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '_';
}

void error_name_options(const struct cli_command *command, struct tokmap_error *error)
{
    char named[sizeof error->message];
    size_t used = 0;
    assert(memchr(error->message, '\0', sizeof error->message));
    for (const char *at = error->message; *at && used < sizeof named - 1;) {
        const struct field_option *entry = NULL;
        size_t length = 0;
        if ((at == error->message || !is_name_byte(at[-1])) && strncmp(at, prefix, PREFIX_LENGTH) == 0) {
            while (is_name_byte(at[PREFIX_LENGTH + length]))
                length++;
            entry = entry_find(command, at + PREFIX_LENGTH, length);
        }
        if (!entry) {
            named[used++] = *at++;
            continue;
        }
        const int written = snprintf(named + used, sizeof named - used, "--%s%s%s", entry->option,
                                     entry->value ? " " : "", entry->value ? entry->value : "");
        used += (size_t)written;
        at += PREFIX_LENGTH + length;
    }
    used = used < sizeof named - 1 ? used : sizeof named - 1;
    named[used] = '\0';
    memcpy(error->message, named, used + 1);
}

int command_failed(const struct cli_command *command, const struct tokmap_error *error)
{
    struct tokmap_error named = *error;
    error_name_options(command, &named);
    return cli_failed(command->program, &named);
}

void command_skipped(const struct cli_command *command, const struct tokmap_error *why)
{
    struct tokmap_error named = *why;
    char text[sizeof named.path + sizeof named.message + 256];
    error_name_options(command, &named);
    cli_say(command->program, "skipped: %s", tokmap_error_print(&named, text, sizeof text));
}
