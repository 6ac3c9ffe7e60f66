/* SPDX-License-Identifier: MIT */
/* field_options.c - see field_options.h. */
#include "field_options.h"

#include <assert.h>
#include <string.h>

/* Fields of struct tokmap_tokenizer_options, corpus_options, pack_options, train_corpus_options, and of the library's
 * options, by name. A field has the same option in every command that has the option at all. The option is NULL if no
 * command lets its user set the field. */
static const struct field_option table[] = {
    {"about", NULL, NULL},
    {"alarm_percent", NULL, NULL},
    {"also", "also", NULL},
    {"batch", "batch", NULL},
    {"bos_id", "bos", NULL},
    {"chat_template", "chat-template", NULL},
    {"column_count", NULL, NULL},
    {"columns", "columns", NULL},
    {"completion_field", "completion-field", NULL},
    {"data", NULL, NULL},
    {"deadline_ns", NULL, NULL},
    {"dedup", "dedup", NULL},
    {"dedup_memory", "dedup-memory", NULL},
    {"delimited", NULL, NULL},
    {"document_limit", "max-document", NULL},
    {"documents_most", "max-documents", NULL},
    {"drop_mask", "drop-mask", NULL},
    {"eod_id", "eod", NULL},
    {"exclude", "exclude", NULL},
    {"exclude_field", "exclude-field", NULL},
    {"exclude_ngrams", "exclude-ngrams", NULL},
    {"exclude_words", "exclude-words", NULL},
    {"field", "field", NULL},
    {"fields", NULL, NULL},
    {"format", "input-format", NULL},
    {"hidden", "hidden", NULL},
    {"ids", "ids", NULL},
    {"ids_field", "ids-field", NULL},
    {"ignore_fields", "ignore-fields", NULL},
    {"include", "include", NULL},
    {"invalid", "invalid-utf8", NULL},
    {"io_threads", NULL, NULL},
    {"lookahead", "lookahead", NULL},
    {"mask", NULL, NULL},
    {"mask_field", "mask-field", NULL},
    {"mask_targets", NULL, NULL},
    {"max_tokens", "max-tokens", NULL},
    {"memory", "max-memory", NULL},
    {"messages_field", "messages-field", NULL},
    {"min_frequency", "min-frequency", NULL},
    {"min_tokens", "min-tokens", NULL},
    {"no_ids", "no-ids", NULL},
    {"null", "null", NULL},
    {"offsets", NULL, NULL},
    {"order", "order", NULL},
    {"other_output", "skipped-list", NULL},
    {"passes", "passes", NULL},
    {"pattern", "pattern", NULL},
    {"pattern_regex", "pattern-regex", NULL},
    {"prefix", "output", NULL},
    {"prompt_field", "prompt-field", NULL},
    {"rank", "rank", NULL},
    {"read_ahead", NULL, NULL},
    {"reading", NULL, NULL},
    {"record_limit", "max-record", NULL},
    {"replace", "force", NULL},
    {"ring_bytes", NULL, NULL},
    {"rows", "rows", NULL},
    {"seal", "seal", NULL},
    {"seed", "seed", NULL},
    {"separator", "separator", NULL},
    {"seq_len", "seq-len", NULL},
    {"shard_tokens", "shard-tokens", NULL},
    {"shuffle", "shuffle", NULL},
    {"skip", "on-error", "skip"},
    {"skip_limit", "max-skipped", NULL},
    {"special", "special", NULL},
    {"special_tokens", "special-tokens", NULL},
    {"split", "split", NULL},
    {"split_seed", "split-seed", NULL},
    {"start_over", "no-resume", NULL},
    {"steps", "steps", NULL},
    {"threads", "threads", NULL},
    {"tokenizer", "tokenizer", NULL},
    {"tokenizer_about", NULL, NULL},
    {"trace", NULL, NULL},
    {"trained", NULL, NULL},
    {"unit_bytes", "unit-bytes", NULL},
    {"vocabulary", "vocab-size", NULL},
    {"width", "width", NULL},
    {"world", "ranks", NULL},
};

static const char prefix[] = "options.", clause[] = ", or ";
#define PREFIX_LENGTH (sizeof prefix - 1)

const struct field_option *field_options(size_t *count)
{
    *count = sizeof table / sizeof table[0];
    return table;
}

bool command_has_option(const struct cli_command *command, const char *name)
{
    for (size_t i = 0; name && i < command->option_count; i++)
        if (strcmp(command->options[i].name, name) == 0)
            return true;
    return false;
}

static bool is_name_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '_';
}

/* Returns the entry of the field that is named at `at`, which is inside `message`, and sets *length to the bytes of
 * its name. Returns NULL if no field of the table is named there. */
static const struct field_option *field_at(const char *message, const char *at, size_t *length)
{
    if ((at > message && is_name_byte(at[-1])) || strncmp(at, prefix, PREFIX_LENGTH) != 0)
        return NULL;
    size_t end = PREFIX_LENGTH;
    while (is_name_byte(at[end]))
        end++;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strlen(table[i].field) == end - PREFIX_LENGTH &&
            memcmp(table[i].field, at + PREFIX_LENGTH, end - PREFIX_LENGTH) == 0) {
            *length = end;
            return &table[i];
        }
    return NULL;
}

/* If a clause ", or ..." begins at `at` and names a field whose option the command lacks, returns its bytes, else 0.
 * The clause ends before the next ", or", before a semicolon or a period, or with the message. */
static size_t clause_without_option(const struct cli_command *command, const char *message, const char *at)
{
    bool lacking = false;
    size_t i, length;
    if (strncmp(at, clause, sizeof clause - 1) != 0)
        return 0;
    for (i = sizeof clause - 1; at[i] && at[i] != ';' && strncmp(at + i, clause, sizeof clause - 1) != 0; i++) {
        if (at[i] == '.' && (at[i + 1] == ' ' || !at[i + 1]))
            break;
        const struct field_option *entry = field_at(message, at + i, &length);
        lacking = lacking || (entry && !command_has_option(command, entry->option));
    }
    return lacking ? i : 0;
}

void error_name_options(const struct cli_command *command, struct tokmap_error *error)
{
    char named[sizeof error->message];
    const size_t room = sizeof named - 1;
    size_t used = 0, length = 0;
    assert(memchr(error->message, '\0', sizeof error->message));
    for (const char *at = error->message; *at && used < room;) {
        const size_t left_out = clause_without_option(command, error->message, at);
        const struct field_option *entry = left_out ? NULL : field_at(error->message, at, &length);
        if (left_out) {
            at += left_out;
        } else if (entry && command_has_option(command, entry->option)) {
            used += (size_t)snprintf(named + used, sizeof named - used, "--%s%s%s", entry->option,
                                     entry->value ? " " : "", entry->value ? entry->value : "");
            at += length;
        } else {
            named[used++] = *at++;
        }
    }
    used = used < room ? used : room;
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
