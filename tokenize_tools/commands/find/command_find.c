/* SPDX-License-Identifier: MIT */
/*
 * command_find.c - tokmap find: lists documents of a run's sources by what they are, where they came from, or what they
 * say. The list is that of a line `exclude FILE from STEP` of a run (src/run/RUN.md).
 *
 * The kinds of conditions that are given must all be true of a document; of each kind, one of its values is enough.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "commands/commands.h"
#include "commands/data/block_compare.h"
#include "commands/data/token_decode.h"
#include "commands/options/target.h"
#include "commands/options/tokenizer_arguments.h"
#include "commands/report/dataset_about.h"
#include "common/bytes.h"
#include "common/error.h"
#include "dedup/ngram_table.h"
#include "encode/fim.h"
#include "platform/process.h"
#include "run/exclusion.h"
#include "text/json_scan.h"

static const char program[] = "tokmap find";

#define WORDS 13 /* default of --words, as of `pack --exclude-words` */
#define EACH 256 /* documents between two looks at signals */

/* ---- texts ---- */

/* The text of one document of a dataset after the other. Blocks of tokens are compared with their hashes first, so
 * damaged tokens are never searched. */
struct document_text {
    const struct tokmap_dataset *dataset;
    struct tokmap_dataset_info info;
    struct tokenizer *tokenizer;
    bool assumed; /* the dataset does not record its tokenizer (see tokenizer_arguments.h) */
    struct tokenizer_decoder *decoder;
    struct text_buffer text; /* of the document that was read last */
    struct block_compare *compare;
    uint8_t *room;        /* of block_compare_range() */
    void *tokens;         /* of a document */
    uint64_t tokens_most; /* that fit there */
    uint64_t shard;       /* 1 + its number: that of the document that was read last; 0: none */
    struct fim_marks fim; /* of that shard */
    struct fim_reader order;
};

/* Prepares to read documents of a dataset, which must stay open. document_text_close() must follow in any case. */
static enum tokmap_status document_text_open(struct document_text *reader, const struct tokmap_dataset *dataset,
                                             const struct tokenizer_arguments *asked, struct tokmap_error *error)
{
    *reader = (struct document_text){.dataset = dataset, .info = info_of_dataset(dataset)};
    enum tokmap_status status = dataset_tokenizer_open(&reader->tokenizer, dataset, asked, &reader->assumed, error);
    if (!status)
        status = tokenizer_decoder_new(&reader->decoder, reader->tokenizer, false, error);
    return status ? status : block_compare_open(&reader->compare, dataset, error);
}

/* Accepts one that is all zero. */
static void document_text_close(struct document_text *reader)
{
    tokenizer_decoder_free(reader->decoder);
    if (reader->tokenizer)
        tokenizer_close(reader->tokenizer);
    block_compare_close(reader->compare);
    free(reader->room);
    free(reader->tokens);
    free(reader->text.bytes);
    fim_reader_free(&reader->order);
    *reader = (struct document_text){0};
}

/* Finds the special tokens by which the text of documents of a shard is rearranged. */
static enum tokmap_status shard_use(struct document_text *reader, uint64_t shard, struct tokmap_error *error)
{
    struct tokmap_shard_info info = TOKMAP_SHARD_INFO_INIT;
    struct about_facts about = {.path = NULL};
    if (!reader->info.shards || reader->shard == shard + 1)
        return TOKMAP_OK;
    enum tokmap_status status = tokmap_dataset_shard(reader->dataset, shard, &info, error);
    if (!status)
        status = about_read(&info, &about, error);
    reader->fim = about.fim;
    reader->shard = status ? 0 : shard + 1;
    about_free(&about);
    return status;
}

/* Sets reader->text to the text of a document, without special tokens, as it was before `pack --fim` rearranged it. */
static enum tokmap_status document_text_read(struct document_text *reader, const struct tokmap_document *document,
                                             struct tokmap_error *error)
{
    const uint64_t count = document->tokens;
    uint64_t unknown = 0;
    if (count > reader->tokens_most) {
        const uint64_t most = max64(count, 2 * reader->tokens_most);
        void *grown = realloc(reader->tokens, most * reader->info.width);
        if (!grown)
            return error_set_memory(error, "a document", most * reader->info.width);
        reader->tokens = grown;
        reader->tokens_most = most;
    }
    reader->text.count = 0;
    enum tokmap_status status = shard_use(reader, document->shard, error);
    if (count && !status)
        status = block_compare_range(reader->compare, document->first_token, count, &reader->room, error);
    if (count && !status)
        status = tokmap_dataset_copy(reader->dataset, document->first_token, count, reader->tokens, error);
    if (status)
        return status;
    const struct token_list list = {reader->tokens, reader->info.width, count};
    status = token_decode_document(reader->decoder, reader->tokenizer, &reader->fim, &reader->order, &list,
                                   &reader->text, &unknown, error);
    if (status == TOKMAP_ERROR_TOKEN) {
        char message[sizeof error->message];
        memcpy(message, error->message, sizeof message);
        return error_set(error, status, NULL, TOKMAP_NO_OFFSET, "document %" PRIu64 ", token %" PRIu64 ": %.600s",
                         document->number, unknown, message);
    }
    return status;
}

/* ---- the command ---- */

struct find_arguments {
    struct cli_list columns, inputs, ngrams, numbers;
    struct cli_range ranges[CLI_LIST_MOST]; /* of `numbers` */
    struct cli_range records;
    struct tokenizer_arguments tokenizer;
    const char *source, *field;
    uint64_t words;
    bool words_given, json, quiet;
    int progress;
};

struct finding {
    const struct find_arguments *given;
    struct target target;
    struct ngram_table *ngrams;
    struct ngram_search search;
    struct cli_progress progress;
    uint64_t documents, tokens; /* found */
    uint64_t looked;            /* documents of all sources, so far */
    bool assumed_said;
    /* of the source at hand */
    const char *name;
    const struct tokmap_dataset *dataset;
    struct tokmap_dataset_info info;
    uint64_t listed; /* its documents */
    bool has_column[CLI_LIST_MOST];
    struct document_text text;
    /* of all sources: whether some have what is asked for */
    bool any_column[CLI_LIST_MOST], any_origin, input_seen;
    char input_like[200]; /* an input that the indexes record */
};

/* ---- one document ---- */

/* Returns where the value of NAME=VALUE begins. */
static const char *column_value(const char *option)
{
    return strchr(option, '=') + 1;
}

/* Returns whether a value that an index has is the one that the user typed: its JSON text, or the string that it is. */
static bool value_is(const struct tokmap_value *value, const char *wanted)
{
    const size_t count = strlen(wanted);
    struct json_scan scan;
    struct json_string text;
    if (value->bytes == count && memcmp(value->json, wanted, count) == 0)
        return true;
    if (!value->bytes || value->json[0] != '"')
        return false;
    json_begin(&scan, value->json, value->bytes);
    return json_text(&scan, &text) && json_equals(&text, wanted, count);
}

static enum tokmap_status column_matches(const struct finding *finding, uint64_t number, bool *matches,
                                         struct tokmap_error *error)
{
    const struct cli_list *columns = &finding->given->columns;
    enum tokmap_status status = TOKMAP_OK;
    *matches = columns->count == 0;
    for (size_t i = 0; i < columns->count && !*matches && !status; i++) {
        struct tokmap_value value;
        if (!finding->has_column[i])
            continue;
        char *name = strndup(columns->values[i], (size_t)(column_value(columns->values[i]) - columns->values[i]) - 1);
        if (!name)
            return error_set_memory(error, "the name of a column", strlen(columns->values[i]));
        status = tokmap_dataset_value(finding->dataset, number, name, &value, error);
        free(name);
        *matches = !status && value_is(&value, column_value(columns->values[i]));
    }
    return status;
}

static enum tokmap_status input_matches(struct finding *finding, uint64_t number, bool *matches,
                                        struct tokmap_error *error)
{
    const struct find_arguments *given = finding->given;
    struct tokmap_origin origin;
    *matches = given->inputs.count == 0;
    if (*matches)
        return TOKMAP_OK;
    const enum tokmap_status status = tokmap_dataset_origin(finding->dataset, number, &origin, error);
    if (status)
        return status == TOKMAP_ERROR_NOT_FOUND ? TOKMAP_OK : status;
    finding->any_origin = true;
    for (size_t i = 0; i < given->inputs.count && !*matches; i++)
        *matches = strlen(given->inputs.values[i]) == origin.path_bytes &&
                   memcmp(given->inputs.values[i], origin.path, origin.path_bytes) == 0;
    finding->input_seen = finding->input_seen || *matches;
    if (!*matches && !finding->input_like[0])
        (void)snprintf(finding->input_like, sizeof finding->input_like, "%.*s", (int)min64(origin.path_bytes, 199),
                       origin.path);
    if (given->records.given)
        *matches = *matches && origin.record >= given->records.first && origin.record < given->records.end;
    return TOKMAP_OK;
}

static enum tokmap_status text_matches(struct finding *finding, const struct tokmap_document *document, bool *matches,
                                       struct tokmap_error *error)
{
    uint64_t found;
    *matches = !finding->ngrams;
    if (*matches)
        return TOKMAP_OK;
    enum tokmap_status status = document_text_read(&finding->text, document, error);
    if (!status)
        status = ngram_table_find(finding->ngrams, &finding->search, finding->text.text.bytes, finding->text.text.count,
                                  NULL, 0, &found, error);
    *matches = !status && found != NGRAM_NONE;
    return status;
}

static void document_list(struct finding *finding, const struct tokmap_document *document)
{
    struct cli_report report;
    struct tokmap_origin origin;
    finding->tokens += document->tokens;
    finding->documents++;
    if (!finding->given->json && !finding->listed++) /* with another dataset, a run refuses the list */
        cli_print("# " EXCLUSION_CONTENT " %s %s\n", finding->name, ID_HEX(finding->info.content));
    if (!finding->given->json) {
        cli_print("%s %" PRIu64 "\n", finding->name, document->number);
        return;
    }
    cli_report_begin(&report, true, NULL);
    cli_member(&report, "source", cli_text(finding->name));
    cli_numbers(&report, "document|first_token|tokens", document->number, document->first_token, document->tokens);
    if (!tokmap_dataset_origin(finding->dataset, document->number, &origin, NULL)) {
        cli_member(&report, "input", cli_bytes_text(origin.path, origin.path_bytes));
        cli_member(&report, "record", cli_number(origin.record));
    }
    cli_report_end(&report);
}

/* Lists a document if it meets the conditions: the cheap ones are looked at first. */
static enum tokmap_status document_look(struct finding *finding, uint64_t number, struct tokmap_error *error)
{
    struct tokmap_document document;
    bool matches;
    enum tokmap_status status = column_matches(finding, number, &matches, error);
    if (!status && matches)
        status = input_matches(finding, number, &matches, error);
    if (status || !matches)
        return status;
    status = tokmap_dataset_document(finding->dataset, number, &document, error);
    if (!status)
        status = text_matches(finding, &document, &matches, error);
    if (!status && matches)
        document_list(finding, &document);
    return status;
}

/* ---- one source ---- */

/* Returns the first document at or after `number` that --document names, and in *end where its range ends. */
static uint64_t range_next(const struct find_arguments *given, uint64_t number, uint64_t documents, uint64_t *end)
{
    uint64_t next = documents;
    *end = documents;
    if (!given->numbers.count)
        return number;
    for (size_t i = 0; i < given->numbers.count; i++) {
        const struct cli_range *range = &given->ranges[i];
        const uint64_t first = max64(range->first, number);
        if (first >= range->end || first > next || first >= documents)
            continue;
        *end = first < next ? range->end : max64(*end, range->end);
        next = first;
    }
    return next;
}

static enum tokmap_status source_begin(struct finding *finding, uint64_t number, struct tokmap_error *error)
{
    const struct find_arguments *given = finding->given;
    struct tokmap_document first;
    finding->dataset = target_dataset(&finding->target, number);
    finding->info = info_of_dataset(finding->dataset);
    enum tokmap_status status = TOKMAP_OK;
    if (finding->info.tokens && !finding->info.documents)
        return tokmap_dataset_document(finding->dataset, 0, &first, error); /* says why */
    for (size_t i = 0; i < given->numbers.count; i++)
        if (given->ranges[i].end > finding->info.documents)
            return error_set(error, TOKMAP_ERROR_RANGE, NULL, TOKMAP_NO_OFFSET,
                             "--document %s does not exist in source '%s', which has %" PRIu64
                             " documents, numbered from 0; correct it, or choose a source with --source",
                             given->numbers.values[i], finding->name, finding->info.documents);
    for (size_t i = 0; i < given->columns.count && !status; i++) {
        struct tokmap_column_info column = TOKMAP_COLUMN_INFO_INIT;
        const char *option = given->columns.values[i];
        char *name = strndup(option, (size_t)(column_value(option) - option) - 1);
        if (!name)
            return error_set_memory(error, "the name of a column", strlen(option));
        status = tokmap_dataset_column(finding->dataset, name, &column, error);
        free(name);
        finding->has_column[i] = !status;
        finding->any_column[i] = finding->any_column[i] || !status;
        status = status == TOKMAP_ERROR_NOT_FOUND ? TOKMAP_OK : status;
    }
    if (!status && finding->ngrams)
        status = document_text_open(&finding->text, finding->dataset, &given->tokenizer, error);
    if (!status && finding->text.assumed && !given->quiet && !finding->assumed_said) {
        finding->assumed_said = true;
        dataset_tokenizer_assumed(program, given->tokenizer.spec);
    }
    return status;
}

static enum tokmap_status source_find(struct finding *finding, uint64_t number, struct tokmap_error *error)
{
    enum tokmap_status status = source_begin(finding, number, error);
    const uint64_t documents = finding->info.documents;
    finding->listed = 0;
    for (uint64_t at = 0, end = 0; !status && !ferror(stdout); at++) {
        if (at >= end && (at = range_next(finding->given, at, documents, &end)) >= documents)
            break;
        if (at % EACH == 0) {
            cli_progress_update(&finding->progress, finding->looked + at);
            if (os_signal_caught())
                return error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted");
        }
        status = document_look(finding, at, error);
    }
    finding->looked += documents;
    document_text_close(&finding->text);
    return status;
}

/* ---- all sources ---- */

/* Fails if nothing could have been found, because no source has what was asked for. */
static enum tokmap_status asked_check(const struct finding *finding, struct tokmap_error *error)
{
    const struct find_arguments *given = finding->given;
    for (size_t i = 0; i < given->columns.count; i++)
        if (!finding->any_column[i])
            return error_set(error, TOKMAP_ERROR_NOT_FOUND, finding->target.name, TOKMAP_NO_OFFSET,
                             "no source has a column '%.*s'; `tokmap info` lists the columns, which `tokmap pack "
                             "--columns` stores",
                             (int)(column_value(given->columns.values[i]) - given->columns.values[i] - 1),
                             given->columns.values[i]);
    if (given->inputs.count && !given->columns.count && finding->looked && !finding->any_origin)
        return error_set(error, TOKMAP_ERROR_NOT_FOUND, finding->target.name, TOKMAP_NO_OFFSET,
                         "no source records the input files of its documents, so --input finds nothing; choose "
                         "documents by another condition");
    return TOKMAP_OK;
}

static enum tokmap_status sources_find(struct finding *finding, struct tokmap_error *error)
{
    const struct tokmap_run *run = finding->target.run;
    const char *wanted = finding->given->source;
    const uint64_t sources = run ? info_of_run(run).sources : 1;
    uint64_t total = 0, found = 0;
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t pass = 0; pass < 2 && !status; pass++)
        for (uint64_t i = 0; i < sources && !status; i++) {
            finding->name = run ? info_of_source(run, i).name : "data";
            if (wanted && strcmp(finding->name, wanted) != 0)
                continue;
            if (pass) {
                status = source_find(finding, i, error);
                continue;
            }
            total += info_of_dataset(target_dataset(&finding->target, i)).documents;
            finding->progress.total = total;
            found++;
        }
    if (!status && !found)
        return error_set(error, TOKMAP_ERROR_NOT_FOUND, finding->target.name, TOKMAP_NO_OFFSET,
                         "there is no source '%.80s'; `tokmap info` lists the sources of a run, and the source of a "
                         "dataset is called 'data'",
                         wanted);
    if (!status && finding->given->numbers.count && found > 1)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, finding->target.name, TOKMAP_NO_OFFSET,
                         "the run has %" PRIu64 " sources, and each numbers its own documents; add --source NAME "
                         "to say which source --document means",
                         found);
    return status ? status : asked_check(finding, error);
}

static enum tokmap_status ngrams_read(struct finding *finding, struct tokmap_error *error)
{
    const struct find_arguments *given = finding->given;
    struct ngram_counts counts;
    if (!given->ngrams.count)
        return TOKMAP_OK;
    enum tokmap_status status = ngram_table_new(&finding->ngrams, (uint32_t)given->words, error);
    if (!status)
        status = ngram_table_load(finding->ngrams, given->ngrams.values, given->ngrams.count,
                                  given->field ? given->field : "text", NULL, NULL, error);
    if (!status)
        status = ngram_table_finish(finding->ngrams, error);
    if (status)
        return status;
    ngram_table_counts(finding->ngrams, &counts);
    if (counts.short_texts)
        cli_warn(program,
                 "%" PRIu64 " of %" PRIu64 " texts of --ngrams have fewer than %" PRIu64
                 " words, so they find nothing; --words N sets another number",
                 counts.short_texts, counts.texts, given->words);
    return status;
}

static void found_print(const struct finding *finding)
{
    (void)cli_flush();
    cli_say(program, "found %s with %s", CLI_COUNTED(finding->documents, "document"),
            CLI_COUNTED(finding->tokens, "token"));
    if (finding->given->inputs.count && !finding->input_seen && finding->input_like[0])
        cli_say(program,
                "no document came from such an input; inputs are recorded as `tokmap pack` was given them, "
                "such as '%s'",
                finding->input_like);
}

static int find_name(const struct cli_command *command, const struct find_arguments *given, const char *name)
{
    const struct run_arguments none = RUN_ARGUMENTS_INIT;
    struct finding finding = {.given = given};
    struct tokmap_error error = {0};
    int exit_status = target_open(&finding.target, command, name, &none, false);
    if (exit_status < 0) {
        enum tokmap_status status = ngrams_read(&finding, &error);
        cli_progress_start(&finding.progress, "searching", "documents", 0,
                           given->quiet ? CLI_PROGRESS_NONE : given->progress);
        cli_signals_catch();
        if (!status)
            status = sources_find(&finding, &error);
        cli_progress_end(&finding.progress);
        if (status && !error.status) /* from a function that takes no error */
            (void)error_set(&error, status, name, TOKMAP_NO_OFFSET, "%s", tokmap_status_text(status));
        cli_signals_end(program, NULL);
        if (!status && !given->quiet)
            found_print(&finding);
        exit_status = status ? command_failed(command, &error) : CLI_DONE;
    }
    ngram_search_free(&finding.search);
    ngram_table_free(finding.ngrams);
    target_close(&finding.target);
    return cli_finish(program, exit_status);
}

/* ---- arguments ---- */

static int find(const struct cli_command *command, const char **operands, size_t operand_count, void *user)
{
    struct find_arguments *given = user;
    if (operand_count != 1)
        return cli_misused(command, "expected one run file or dataset");
    if (!given->columns.count && !given->inputs.count && !given->ngrams.count && !given->numbers.count)
        return cli_misused(command, "choose documents with --column, --input, --ngrams, or --document");
    if (given->records.given && !given->inputs.count)
        return cli_misused(command, "--record needs --input, whose records it counts");
    if ((given->words_given || given->field) && !given->ngrams.count)
        return cli_misused(command, "--words and --field are about the files of --ngrams");
    if (!given->words || given->words > NGRAM_WORDS_MOST)
        return cli_misused(command, "--words must be 1 to %d", NGRAM_WORDS_MOST);
    for (size_t i = 0; i < given->columns.count; i++)
        if (given->columns.values[i][0] == '=' || !strchr(given->columns.values[i], '='))
            return cli_misused(command,
                               "--column is '%s'; write the name of a column and its value, such as "
                               "--column license=MIT",
                               given->columns.values[i]);
    for (size_t i = 0; i < given->numbers.count; i++) {
        struct cli_range *range = &given->ranges[i];
        if (cli_parse_number(given->numbers.values[i], &range->first) && range->first < UINT64_MAX)
            range->end = range->first + 1;
        else if (!cli_parse_range(given->numbers.values[i], range))
            return cli_misused(command, "--document is '%s'; write the number of a document, or a range A..B",
                               given->numbers.values[i]);
    }
    if (tokenizer_arguments_check(command, &given->tokenizer))
        return CLI_MISUSED;
    return find_name(command, given, operands[0]);
}

int command_find(int argc, char **argv)
{
    struct find_arguments given = {.tokenizer = TOKENIZER_ARGUMENTS_INIT, .words = WORDS};
    const struct cli_option options[] = {
        CLI_HEADING("Which documents"),
        {'d', "document", CLI_LIST, &given.numbers, NULL, "N|A..B",
         "document N, or documents A up to, not including, B; may be repeated", NULL},
        {0, "column", CLI_LIST, &given.columns, NULL, "NAME=VALUE",
         "those whose column NAME has VALUE, a text or a JSON value; may be repeated", NULL},
        {0, "input", CLI_LIST, &given.inputs, NULL, "FILE",
         "those of the input FILE, as `tokmap pack` was given it; may be repeated", NULL},
        {0, "record", CLI_RANGE, &given.records, NULL, "A..B",
         "of --input, only records A up to, not including, B, counted from 0", NULL},
        {0, "ngrams", CLI_LIST, &given.ngrams, NULL, "FILE",
         "those that contain --words words in a row of a line or record of FILE, as with `tokmap pack "
         "--exclude-ngrams`; may be repeated",
         NULL},
        {0, "words", CLI_NUMBER, &given.words, &given.words_given, "N", "with --ngrams, how many (default: 13)", NULL},
        {0, "field", CLI_TEXT, &given.field, NULL, "NAME",
         "with --ngrams, the field of records that has the text (default: text)", NULL},
        {0, "source", CLI_TEXT, &given.source, NULL, "SOURCE", "only documents of this source of a run", NULL},
        CLI_HEADING("Tokenizer of the texts"),
        TOKENIZER_OPTIONS_RECORDED(given.tokenizer),
        CLI_HEADING("General"),
        {0, "json", CLI_FLAG, &given.json, NULL, NULL, "print one JSON object per line, with the input and the record",
         NULL},
        CLI_OPTION_PROGRESS(given.progress),
        {'q', "quiet", CLI_FLAG, &given.quiet, NULL, NULL, "print no progress and no report", NULL},
    };
    const struct cli_command command = {
        .program = program,
        .usage = "RUN|DATASET CONDITION... [OPTION]...",
        .summary = "Lists documents by number, by the value of a column, by input file and record, or by what they "
                   "say: the list of a line 'exclude FILE from STEP' of a run.",
        .details =
            "Conditions of several kinds must all be true of a document. The list begins with the content ids of "
            "the datasets, so that a run with others refuses it. The source of a dataset is called 'data'.\n\n"
            "Examples:\n"
            "  tokmap find train.run --source web --document 17 >takedown.txt\n"
            "  tokmap find data/web --input a.jsonl --record 3..4 >takedown.txt\n"
            "  tokmap find train.run --document 3..9 --json\n",
        CLI_OPTIONS(options),
        .operands = CLI_DATASETS | CLI_RUNS,
    };
    return cli_run(&command, argc, argv, find, &given);
}
