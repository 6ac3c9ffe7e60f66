/* drop_arguments.c - see drop_arguments.h. */
#include "drop_arguments.h"

#include <string.h>

#include "commands/options/field_options.h"
#include "common/error.h"
#include "pack/shingles.h"
#include "platform/os.h"

static bool is_minhash(const struct drop_arguments *drop)
{
    return drop->dedup_given && drop->dedup == DROP_MINHASH;
}

/* Checks the options of --dedup minhash, and what it cannot be used with. */
static int minhash_check(const struct cli_command *command, const struct drop_arguments *drop,
                         const struct content_arguments *content, bool dry_run)
{
    if (!is_minhash(drop))
        return drop->ngram_given || drop->bands_given || drop->rows_given
                   ? cli_misused(command,
                                 "--minhash-ngram, --minhash-bands, and --minhash-rows are about --dedup minhash")
                   : 0;
    if (!drop->ngram || drop->ngram > SHINGLE_WORDS_MOST)
        return cli_misused(command, "--minhash-ngram must be between 1 and %d", SHINGLE_WORDS_MOST);
    if (!drop->bands || !drop->rows || drop->bands > MINHASH_BANDS_MOST || drop->rows > MINHASH_HASHES_MOST ||
        drop->bands * drop->rows > MINHASH_HASHES_MOST)
        return cli_misused(
            command,
            "--minhash-bands must be between 1 and %d, --minhash-rows at least 1, and their product, the "
            "hashes of a signature, at most %d",
            MINHASH_BANDS_MOST, MINHASH_HASHES_MOST);
    if (dry_run)
        return cli_misused(command, "--dedup minhash keeps the bands of the documents beside the output, and cannot be "
                                    "used with --dry-run; pack into a folder that you remove");
    if (content->ids_field)
        return cli_misused(command,
                           "--dedup minhash compares words, and ready-made ids have none: pack the texts, or use "
                           "--dedup exact");
    if (content->messages_field)
        return cli_misused(command,
                           "--dedup minhash cannot be used with --messages-field: the words of a conversation are "
                           "divided among its messages; use --dedup exact");
    return 0;
}

int drop_arguments_check(const struct cli_command *command, const struct drop_arguments *drop,
                         const struct content_arguments *content, bool dry_run)
{
    if (drop->memory_given && !drop->dedup_given)
        return cli_misused(command, "--dedup-memory is about --dedup exact and --dedup minhash");
    const int wrong = minhash_check(command, drop, content, dry_run);
    if (wrong)
        return wrong;
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
    drop->form = (struct minhash_form){(uint32_t)drop->ngram, (uint32_t)drop->bands, (uint32_t)drop->rows};
    drop->options = (struct drop_options){.duplicates = drop->dedup_given && !is_minhash(drop),
                                          .minhash = is_minhash(drop) ? &drop->form : NULL,
                                          .memory = drop->memory};
    if (!drop->memory_given)
        drop->options.memory = os_memory_limit() / 4;
    if (drop->dedup_given || drop->ngrams.count)
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
    cli_print("\ndropped: %s of %s documents",
              cli_count(counts->duplicates + counts->near_duplicates + counts->excluded, a),
              cli_count(counts->documents, b));
    if (name)
        cli_print(" (tokmap show --dropped %s)", name);
    cli_print("\n  %-20s %20s\n  %-20s %20s\n", counts->by_minhash ? "near-duplicates" : "duplicates",
              cli_count(counts->duplicates + counts->near_duplicates, a), "excluded", cli_count(counts->excluded, b));
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
    cli_json_number(json, "near_duplicates", counts->near_duplicates);
    cli_json_number(json, "excluded", counts->excluded);
    cli_json_number(json, "key_file_bytes", counts->file_bytes);
    cli_json_end(json);
}
