/* drop_arguments.c - see drop_arguments.h. */
#include "drop_arguments.h"

#include <string.h>

#include "common/error.h"
#include "field_options.h"
#include "platform/os.h"

int drop_arguments_check(const struct cli_command *command, const struct drop_arguments *drop,
                         const struct content_arguments *content)
{
    if (drop->dedup && strcmp(drop->dedup, "exact") != 0)
        return cli_misused(command, "--dedup %s: the only method is exact", drop->dedup);
    if (drop->memory_given && !drop->dedup)
        return cli_misused(command, "--dedup-memory is about --dedup exact");
    if (!drop->ngrams.count && (drop->words_given || drop->field))
        return cli_misused(command, "--exclude-words and --exclude-field are about the files of --exclude-ngrams FILE");
    if (!drop->words || drop->words > NGRAM_WORDS_MOST)
        return cli_misused(command, "--exclude-words must be between 1 and %d", NGRAM_WORDS_MOST);
    if (drop->ngrams.count && content->ids_field)
        return cli_misused(command, "--exclude-ngrams compares words, and ready-made ids have none: pack the texts, or "
                                    "exclude documents where the ids are made");
    if (drop->ngrams.count && content->messages_field)
        return cli_misused(command,
                           "--exclude-ngrams cannot be used with --messages-field: the words of a conversation "
                           "are divided among its messages");
    return 0;
}

/* An error about the files, whose options have other names than those of the inputs. */
static int list_failed(const struct cli_command *command, struct tokmap_error *error)
{
    static const char field[] = "options.field";
    char *at = strstr(error->message, field);
    char rest[sizeof error->message];
    if (at) {
        (void)snprintf(rest, sizeof rest, "%s", at + sizeof field - 1);
        (void)snprintf(at, sizeof error->message - (size_t)(at - error->message), "options.exclude_field%s", rest);
    }
    cli_say(command->program, "a file of --exclude-ngrams cannot be used; it has a text in each line, or in the field "
                              "of each record if its name ends in .jsonl, .json, or .parquet");
    return command_failed(command, error);
}

int drop_arguments_open(const struct cli_command *command, struct drop_arguments *drop, bool (*stop)(void *user),
                        void *user, const struct drop_options **options)
{
    struct tokmap_error error;
    struct ngram_counts counts;
    *options = NULL;
    drop->options = (struct drop_options){.duplicates = drop->dedup, .memory = drop->memory};
    if (!drop->memory_given)
        drop->options.memory = os_memory_limit() / 4;
    if (drop->dedup || drop->ngrams.count)
        *options = &drop->options;
    if (!drop->ngrams.count)
        return 0;
    enum tokmap_status status = ngram_set_new(&drop->set, (uint32_t)drop->words, &error);
    if (status)
        return command_failed(command, &error);
    status = ngram_set_load(drop->set, drop->ngrams.values, drop->ngrams.count, drop->field ? drop->field : "text",
                            stop, user, &error);
    if (status)
        return list_failed(command, &error);
    status = ngram_set_finish(drop->set, &error);
    if (status)
        return command_failed(command, &error);
    ngram_set_counts(drop->set, &counts);
    if (counts.short_texts)
        cli_warn(command->program,
                 "%" PRIu64 " of %" PRIu64 " texts of --exclude-ngrams have fewer than %" PRIu64
                 " words, so they exclude nothing; --exclude-words N sets another number",
                 counts.short_texts, counts.texts, drop->words);
    drop->options.ngrams = drop->set;
    return 0;
}

void drop_arguments_free(struct drop_arguments *drop)
{
    ngram_set_free(drop->set);
    drop->set = NULL;
}

void drop_report_print(const struct drop_counts *counts, const char *name)
{
    char a[32], b[32], c[32];
    if (!counts->documents)
        return;
    cli_print("\ndropped: %s of %s documents", cli_count(counts->duplicates + counts->excluded, a),
              cli_count(counts->documents, b));
    if (name)
        cli_print(" (tokmap show --dropped %s)", name);
    cli_print("\n  %-20s %20s\n  %-20s %20s\n", "duplicates", cli_count(counts->duplicates, a), "excluded",
              cli_count(counts->excluded, b));
    if (counts->read_twice)
        cli_print("  the inputs were read twice, and the keys of the documents needed %s in a file\n",
                  cli_bytes(counts->file_bytes, c));
}

void drop_report_json(const struct drop_counts *counts, struct cli_json *json)
{
    if (!counts->documents)
        return;
    cli_json_object(json, "dropped");
    cli_json_number(json, "documents_read", counts->documents);
    cli_json_number(json, "duplicates", counts->duplicates);
    cli_json_number(json, "excluded", counts->excluded);
    cli_json_number(json, "key_file_bytes", counts->file_bytes);
    cli_json_end(json);
}
