/* SPDX-License-Identifier: MIT */
/*
 * command_encode.c - tokmap encode: prints the ids of each document as one line.
 *
 * A program may hold a conversation with this command through two pipes. So a line is written as soon as its document
 * has arrived, and standard output is flushed before each wait for more input.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "commands.h"
#include "commands/data/token_decode.h"
#include "commands/options/corpus_arguments.h"
#include "commands/options/tokenizer_arguments.h"
#include "commands/report/skip_report.h"
#include "common/error.h"
#include "corpus/corpus_issue.h"
#include "corpus/records.h"
#include "text/decimal.h"
#include "text/utf8.h"

static const char program[] = "tokmap encode";

#define BATCH_BYTES ((uint64_t)256 << 10)
#define LINE_IDS 4096                   /* ids that are formatted before they are written */
#define PART_BYTES ((uint64_t)64 << 10) /* of a long document that are encoded at a time, if it can be cut */

enum { OUTPUT_AUTO, OUTPUT_TEXT, OUTPUT_JSONL };

struct encoding {
    const struct cli_command *command;
    struct tokenizer_arguments asked;
    struct corpus_arguments inputs;
    struct input_warnings warnings;
    int output;
    bool json, pieces;
    const char *text; /* NULL: inputs are encoded */
    bool text_given;
    struct corpus_options corpus;
    struct tokenizer *tokenizer;
    struct tokenizer_info info;
    struct tokenizer_state *state;
    struct tokenizer_out out;
    uint64_t end;             /* out.ends points here */
    char line[LINE_IDS * 12]; /* ids as text: at most ten digits, a comma, and a space each */
    bool open;                /* the line of the current document contains an id */
    struct cli_report report; /* with `pieces`: of the current document */
};

/* ---- pieces ---- */

/* Prints the tokens of a part of a document: each with its id, on a line of its own or as a JSON object. */
static void pieces_print(struct encoding *encoding)
{
    const struct tokenizer_out *out = &encoding->out;
    for (uint64_t i = 0; i < out->count; i++) {
        const uint32_t id = id_load(encoding->out.tokens, encoding->info.width, i);
        const uint8_t *bytes = NULL;
        uint32_t count = 0;
        (void)tokenizer_token(encoding->tokenizer, id, &bytes, &count);
        cli_report_item(&encoding->report);
        cli_member(&encoding->report, "id", cli_number(id));
        cli_member(&encoding->report, "text", cli_bytes_text(count ? (const char *)bytes : "", count));
        cli_report_close(&encoding->report);
        if (!encoding->report.as_json) {
            (void)printf("%10" PRIu32 "  ", id);
            token_quoted(bytes, count, stdout);
            (void)putchar('\n');
        }
    }
}

/* Begins and ends the pieces of a document. */
static void pieces_begin(struct encoding *encoding)
{
    cli_report_begin(&encoding->report, encoding->output == OUTPUT_JSONL, NULL);
    cli_report_array(&encoding->report, "tokens");
}

static void pieces_end(struct encoding *encoding)
{
    cli_report_close(&encoding->report);
    cli_report_end(&encoding->report);
    if (!encoding->report.as_json)
        (void)putchar('\n');
}

/* ---- ids ---- */

/* Prints the ids of a part of a document. first: its line does not contain an id yet. */
static void ids_print(struct encoding *encoding, bool first)
{
    const struct tokenizer_out *out = &encoding->out;
    const bool list = encoding->output == OUTPUT_JSONL;
    char *at = encoding->line;
    for (uint64_t i = 0; i < out->count; i++) {
        if (!first) {
            if (list)
                *at++ = ',';
            *at++ = ' ';
        }
        first = false;
        at += decimal_write(id_load(encoding->out.tokens, encoding->info.width, i), at);
        if (i % LINE_IDS == LINE_IDS - 1) {
            (void)fwrite(encoding->line, 1, (size_t)(at - encoding->line), stdout);
            at = encoding->line;
        }
    }
    (void)fwrite(encoding->line, 1, (size_t)(at - encoding->line), stdout);
}

static enum tokmap_status out_reserve(struct encoding *encoding, uint64_t bytes, struct tokmap_error *error)
{
    const uint64_t tokens = bytes * encoding->info.ids_per_byte_most + 2;
    if (encoding->out.capacity >= tokens)
        return TOKMAP_OK;
    free(encoding->out.tokens);
    encoding->out.tokens = malloc((size_t)tokens * encoding->info.width);
    encoding->out.capacity = encoding->out.tokens ? tokens : 0;
    return encoding->out.tokens ? TOKMAP_OK
                                : error_set_memory(error, "the ids of a document", tokens * encoding->info.width);
}

static enum tokmap_status document_encode(struct encoding *encoding, const struct corpus_document *document,
                                          struct tokmap_error *error)
{
    const bool list = encoding->output == OUTPUT_JSONL;
    bool first = !document->resumed || !encoding->open;
    uint64_t at = 0;
    do {
        uint64_t bytes = document->bytes - at;
        if (encoding->info.cuts && bytes > PART_BYTES) {
            const uint64_t cut = tokenizer_cut(encoding->tokenizer, document->text + at, PART_BYTES);
            bytes = cut ? cut : bytes;
        }
        const struct tokmap_text text = {document->text + at, bytes};
        const struct tokenizer_batch batch = {&text, 1, document->resumed || at,
                                              document->unfinished || at + bytes < document->bytes};
        enum tokmap_status status = out_reserve(encoding, bytes, error);
        if (!status)
            status = tokenizer_encode(encoding->state, &batch, &encoding->out, error);
        if (status)
            return status;
        if (encoding->pieces) {
            if (!document->resumed && !at)
                pieces_begin(encoding);
            pieces_print(encoding);
        } else {
            if (list && !document->resumed && !at)
                (void)putchar('[');
            ids_print(encoding, first);
        }
        first = first && !encoding->out.count;
        at += bytes;
    } while (at < document->bytes);
    encoding->open = !first && document->unfinished;
    if (!document->unfinished && encoding->pieces)
        pieces_end(encoding);
    else if (!document->unfinished)
        (void)fputs(list ? "]\n" : "\n", stdout);
    return TOKMAP_OK;
}

static enum tokmap_status batch_encode(struct encoding *encoding, const struct corpus_batch *batch,
                                       struct tokmap_error *error)
{
    if (encoding->output == OUTPUT_AUTO && batch->part_count)
        encoding->output = batch->parts[0].format != CORPUS_TEXT ? OUTPUT_JSONL : OUTPUT_TEXT; /* as the first input */
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t i = 0; i < batch->document_count && !status; i++) {
        status = document_encode(encoding, &batch->documents[i], error);
        if (status == TOKMAP_ERROR_INPUT || status == TOKMAP_ERROR_LIMIT)
            corpus_error_add_place(batch, i, error);
    }
    for (uint64_t i = 0; i < batch->issue_count && !status; i++) {
        const struct corpus_issue *issue = &batch->issues[i];
        struct tokmap_error why;
        const enum tokmap_status wrong = corpus_issue_to_error(issue, &encoding->corpus, &why);
        if (issue->fatal || issue->kind != CORPUS_ISSUE_ENCODING || encoding->corpus.invalid != CORPUS_INVALID_SKIP) {
            *error = why;
            return wrong;
        }
        command_skipped(encoding->command, &why);
    }
    return status;
}

/* Encodes the text of --text. */
static int text_encode(struct encoding *encoding)
{
    struct tokmap_error error;
    const size_t bytes = strlen(encoding->text), valid = utf8_valid_prefix(encoding->text, bytes);
    const struct corpus_document document = {.text = encoding->text, .bytes = bytes};
    encoding->out.ends = &encoding->end;
    if (encoding->output == OUTPUT_AUTO)
        encoding->output = OUTPUT_TEXT;
    if (valid != bytes)
        return cli_misused(encoding->command, "--text is not UTF-8 (byte %zu)", valid);
    enum tokmap_status status = tokenizer_state_new(&encoding->state, encoding->tokenizer, &error);
    if (!status)
        status = document_encode(encoding, &document, &error);
    tokenizer_state_free(encoding->state);
    free(encoding->out.tokens);
    return cli_finish(program, status ? command_failed(encoding->command, &error) : CLI_DONE);
}

static uint64_t corpus_cut(void *user, const char *bytes, uint64_t count)
{
    return tokenizer_cut(user, bytes, count);
}

static int inputs_encode(struct encoding *encoding, const char **operands, size_t operand_count)
{
    struct tokmap_error error;
    struct corpus *corpus = NULL;
    struct corpus_batch batch = {0};
    struct cli_progress silent = {0};
    encoding->warnings.program = program;
    input_warnings_watch(&encoding->warnings, &encoding->corpus);
    encoding->out.ends = &encoding->end;
    enum tokmap_status status = tokenizer_state_new(&encoding->state, encoding->tokenizer, &error);
    if (!status)
        status = corpus_open(&corpus, operands, operand_count, &encoding->corpus, &error);
    while (!status) {
        status = corpus_next(corpus, &batch, &error);
        input_warnings_tell(&encoding->warnings, &silent);
        if (!status)
            status = records_to_documents(&encoding->corpus, &batch, &error);
        if (!status)
            status = batch_encode(encoding, &batch, &error);
        /* The writer of the pipe may wait for these lines before it writes more. */
        if (!cli_flush())
            break;
    }
    corpus_batch_free(&batch);
    corpus_close(corpus);
    input_warnings_free(&encoding->warnings);
    tokenizer_state_free(encoding->state);
    free(encoding->out.tokens);
    if (!status || status == TOKMAP_END)
        return cli_finish(program, CLI_DONE);
    const int failed = command_failed(encoding->command, &error);
    for (size_t i = 0; i < operand_count && status == TOKMAP_ERROR_NOT_FOUND; i++)
        if (!strcmp(error.path, operands[i])) {
            cli_say(program, "an argument is the name of a file; to encode a text itself, write --text TEXT");
            cli_maybe_hint(encoding->command, operands[i]);
        }
    return cli_finish(program, failed);
}

static int eod_bos_choose(const struct cli_command *command, struct encoding *encoding)
{
    struct tokenizer_out *out = &encoding->out;
    uint64_t eod, bos;
    const int status = tokenizer_arguments_eod_bos(command, &encoding->asked, encoding->tokenizer, false, &eod, &bos);
    out->has_suffix = eod != TOKMAP_NO_ID;
    out->suffix = (uint32_t)eod;
    out->has_prefix = bos != TOKMAP_NO_ID;
    out->prefix = (uint32_t)bos;
    return status;
}

static int encode(const struct cli_command *command, const char **operands, size_t operand_count, void *user)
{
    struct encoding *encoding = user;
    struct corpus_options *corpus = &encoding->corpus;
    encoding->command = command;
    if (encoding->text_given && operand_count)
        return cli_misused(command, "--text and inputs (%s) exclude each other", operands[0]);
    if (encoding->text_given && encoding->inputs.lists.count)
        return cli_misused(command, "--text and --files-from exclude each other");
    if (encoding->json && encoding->output == OUTPUT_TEXT)
        return cli_misused(command, "--json and --output-format text exclude each other");
    if (encoding->json)
        encoding->output = OUTPUT_JSONL;
    if (!operand_count && !encoding->inputs.lists.count)
        operands[operand_count++] = "-";
    int status = corpus_arguments_check_named(command, &encoding->inputs, operands, operand_count);
    if (!status)
        status = tokenizer_arguments_check(command, &encoding->asked);
    if (!status)
        status = tokenizer_arguments_open(command, &encoding->asked, true, &encoding->tokenizer);
    if (!status) {
        encoding->info = info_of_tokenizer(encoding->tokenizer);
        corpus_arguments_apply(&encoding->inputs, corpus);
        corpus->batch_bytes = BATCH_BYTES;
        corpus->cut_anywhere = encoding->info.cuts;
        corpus->cut = encoding->info.cut_anywhere ? NULL : corpus_cut;
        corpus->cut_user = encoding->tokenizer;
        status = eod_bos_choose(command, encoding);
    }
    if (!status)
        status = encoding->text_given ? text_encode(encoding) : inputs_encode(encoding, operands, operand_count);
    tokenizer_close(encoding->tokenizer);
    return status;
}

static const struct cli_often often[] = {
    {"tokenizer", NULL}, {"text", NULL},         {"pieces", NULL}, {"special", NULL},       {"eod", NULL},
    {"bos", NULL},       {"input-format", NULL}, {"field", NULL},  {"output-format", NULL},
};

int command_encode(int argc, char **argv)
{
    struct encoding encoding = {.asked = TOKENIZER_ARGUMENTS_INIT, .inputs = CORPUS_ARGUMENTS_INIT};
    const struct cli_option options[] = {
        CLI_HEADING("Tokenizer"),
        TOKENIZER_OPTIONS(encoding.asked),
        TOKENIZER_OPTION_SPECIAL(encoding.asked),
        TOKENIZER_OPTIONS_EOD_BOS(encoding.asked, "end each document with this token",
                                  "end no document with a token (default)"),
        CLI_HEADING("Inputs"),
        {0, "text", CLI_TEXT, &encoding.text, &encoding.text_given, "TEXT", "encode this text instead of inputs", NULL},
        CORPUS_OPTIONS_INPUT(encoding.inputs),
        CORPUS_OPTIONS_FILES(encoding.inputs),
        CORPUS_OPTIONS_TEXTS(encoding.inputs),
        CLI_HEADING("Output"),
        {0, "output-format", CLI_CHOICE, &encoding.output, NULL, "FORMAT",
         "text (ids separated by spaces), jsonl (a JSON array per line), or auto (default): as the first input",
         "auto|text|jsonl"},
        {0, "json", CLI_FLAG, &encoding.json, NULL, NULL, "the same as --output-format jsonl", NULL},
        {0, "pieces", CLI_FLAG, &encoding.pieces, NULL, NULL,
         "print each token with its text: one per line, and an empty line after each document; as JSONL, objects with "
         "id and text",
         NULL},
    };
    const struct cli_command command = {
        .program = program,
        .usage = "[OPTION]... [INPUT]...",
        .summary = "Turns text into token ids, one line per document.",
        .often = often,
        .often_count = sizeof often / sizeof often[0],
        .details = "Reads standard input if no INPUT is given or INPUT is '-'. Adds no token to those of the text "
                   "unless --eod or --bos asks for it.\n\n"
                   "Examples:\n"
                   "  tokmap encode -t gpt2/ --text 'Hello world' --pieces\n"
                   "  printf 'some text' | tokmap encode -t tokenizer.json\n"
                   "  tokmap encode --input-format jsonl < records.jsonl\n",
        CLI_OPTIONS(options),
        .operands = CLI_FILES,
    };
    return cli_run(&command, argc, argv, encode, &encoding);
}
