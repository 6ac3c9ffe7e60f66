/* command_encode.c - tokmap encode: text to ids on standard output, a line for each document, as soon as it has come. */
#include <stdlib.h>
#include <string.h>

#include "corpus/corpus.h"
#include "text/decimal.h"
#include "text/utf8.h"
#include "cli/cli.h"
#include "commands.h"
#include "common/bytes.h"
#include "common/error.h"
#include "commands/shared/field_options.h"
#include "commands/shared/tokenizer_arguments.h"

static const char program[] = "tokmap encode";

#define BATCH_BYTES ((uint64_t)256 << 10)
#define LINE_IDS 4096                    /* printed at once */
#define PIECE_BYTES ((uint64_t)64 << 10) /* of a document that is encoded at once, where it can be cut */

enum { OUTPUT_AUTO, OUTPUT_TEXT, OUTPUT_JSONL };

struct encoding {
    const struct cli_command *command;
    struct tokenizer_arguments asked;
    int input, output, invalid;
    struct corpus_options corpus;
    struct tokenizer *tokenizer;
    struct tokenizer_info info;
    struct tokenizer_state *state;
    struct tokenizer_out out;
    uint64_t end;             /* out.ends */
    char line[LINE_IDS * 12]; /* text of ids: ten digits, a comma, a space each */
    bool open;                /* a document's line has begun */
};

/* Ids of a part of a document, behind what its line holds already. */
static void ids_print(struct encoding *encoding, bool first)
{
    const struct tokenizer_out *out = &encoding->out;
    const bool list = encoding->output == OUTPUT_JSONL;
    char *at = encoding->line;
    for (uint64_t i = 0; i < out->count; i++) {
        const uint8_t *token = (const uint8_t *)out->tokens + i * encoding->info.width;
        if (!first) {
            if (list)
                *at++ = ',';
            *at++ = ' ';
        }
        first = false;
        at += decimal_write(encoding->info.width == 2 ? load16(token) : load32(token), at);
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

static enum tokmap_status document_encode(struct encoding *encoding, const struct corpus_batch *from, uint64_t number,
                                          struct tokmap_error *error)
{
    const struct corpus_document *document = &from->documents[number];
    const bool list = encoding->output == OUTPUT_JSONL;
    bool first = !document->resumed || !encoding->open;
    uint64_t at = 0;
    do {
        uint64_t bytes = document->bytes - at;
        if (encoding->info.cuts && bytes > PIECE_BYTES) {
            const uint64_t cut = tokenizer_cut(encoding->tokenizer, document->text + at, PIECE_BYTES);
            bytes = cut ? cut : bytes;
        }
        const struct tokenizer_text text = {document->text + at, bytes};
        const struct tokenizer_batch batch = {&text, 1, document->resumed || at,
                                              document->unfinished || at + bytes < document->bytes};
        enum tokmap_status status = out_reserve(encoding, bytes, error);
        if (!status)
            status = tokenizer_encode(encoding->state, &batch, &encoding->out, error);
        if (status == TOKMAP_ERROR_INPUT || status == TOKMAP_ERROR_LIMIT)
            corpus_error_place(from, number, error);
        if (status)
            return status;
        if (list && !document->resumed && !at)
            (void)putchar('[');
        ids_print(encoding, first);
        first = first && !encoding->out.count;
        at += bytes;
    } while (at < document->bytes);
    encoding->open = !first && document->unfinished;
    if (!document->unfinished)
        (void)fputs(list ? "]\n" : "\n", stdout);
    return TOKMAP_OK;
}

static enum tokmap_status batch_encode(struct encoding *encoding, const struct corpus_batch *batch,
                                       struct tokmap_error *error)
{
    if (encoding->output == OUTPUT_AUTO && batch->part_count)
        encoding->output = batch->parts[0].jsonl ? OUTPUT_JSONL : OUTPUT_TEXT;
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t i = 0; i < batch->document_count && !status; i++)
        status = document_encode(encoding, batch, i, error);
    for (uint64_t i = 0; i < batch->issue_count && !status; i++) {
        const struct corpus_issue *issue = &batch->issues[i];
        struct tokmap_error why;
        const enum tokmap_status wrong = corpus_issue_error(issue, &encoding->corpus, &why);
        if (issue->fatal || issue->kind != CORPUS_ISSUE_ENCODING || encoding->corpus.invalid != CORPUS_INVALID_SKIP) {
            *error = why;
            return wrong;
        }
        command_skipped(encoding->command, &why);
    }
    return status;
}

static uint64_t corpus_cut(void *user, const char *bytes, uint64_t count)
{
    return tokenizer_cut(user, bytes, count);
}

static int encode(struct encoding *encoding, const char **operands, size_t operand_count)
{
    struct tokmap_error error;
    struct corpus *corpus = NULL;
    struct corpus_batch batch = {0};
    encoding->out.ends = &encoding->end;
    enum tokmap_status status = tokenizer_state_new(&encoding->state, encoding->tokenizer, &error);
    if (!status)
        status = corpus_open(&corpus, operands, operand_count, &encoding->corpus, &error);
    while (!status) {
        status = corpus_next(corpus, &batch, &error);
        if (!status)
            status = corpus_prepare(&encoding->corpus, &batch, &error);
        if (!status)
            status = batch_encode(encoding, &batch, &error);
        /* Whoever writes the pipe may wait for the answer to what it has written. */
        if (!cli_flush())
            break;
    }
    corpus_batch_free(&batch);
    corpus_close(corpus);
    tokenizer_state_free(encoding->state);
    free(encoding->out.tokens);
    return cli_finish(program, status && status != TOKMAP_END ? command_failed(encoding->command, &error) : CLI_DONE);
}

static int around_choose(const struct cli_command *command, struct encoding *encoding)
{
    struct tokenizer_out *out = &encoding->out;
    uint64_t eod, bos;
    const int status = tokenizer_arguments_around(command, &encoding->asked, encoding->tokenizer, false, &eod, &bos);
    out->has_suffix = eod != TOKMAP_NO_ID;
    out->suffix = (uint32_t)eod;
    out->has_prefix = bos != TOKMAP_NO_ID;
    out->prefix = (uint32_t)bos;
    return status;
}

int command_encode(int argc, char **argv)
{
    struct encoding encoding = {.asked = TOKENIZER_ARGUMENTS_INIT};
    struct corpus_options *corpus = &encoding.corpus;
    corpus->field = "text";
    corpus->batch_bytes = BATCH_BYTES;
    corpus->record_limit = corpus->document_limit = (uint64_t)64 << 20;
    const struct cli_option table[] = {
        TOKENIZER_OPTIONS(encoding.asked),
        TOKENIZER_OPTION_SPECIAL(encoding.asked),
        TOKENIZER_OPTIONS_AROUND(encoding.asked, "end each document with this token",
                                 "end documents with no token (default)"),
        {0, "input-format", CLI_CHOICE, &encoding.input, NULL, "FORMAT",
         "text, jsonl, or auto (default): by name and content", "auto|text|jsonl"},
        {0, "output-format", CLI_CHOICE, &encoding.output, NULL, "FORMAT",
         "text (ids with spaces between), jsonl (a JSON array), or auto (default): as the input", "auto|text|jsonl"},
        {0, "field", CLI_TEXT, &corpus->field, NULL, "NAME", "the field of a JSONL record that holds the text (text)",
         NULL},
        {0, "invalid-utf8", CLI_CHOICE, &encoding.invalid, NULL, "WHAT",
         "at text that is not UTF-8: error (default), replace (U+FFFD for each wrong sequence), or skip (leave the "
         "document out)",
         "error|replace|skip"},
        {0, "max-record", CLI_SIZE, &corpus->record_limit, NULL, "SIZE", "longest line of JSONL (64Mi)", NULL},
        {0, "max-document", CLI_SIZE, &corpus->document_limit, NULL, "SIZE",
         "largest text that has to be held whole (64Mi)", NULL},
    };
    const struct cli_command command = {
        .program = program,
        .usage = "[OPTION]... [INPUT]...",
        .summary = "Turns text into token ids: a line for each document.",
        .details = "Without an INPUT, or where it is '-', reads standard input. No token is added unless asked for.\n\n"
                   "Examples:\n"
                   "  printf 'some text' | tokmap encode -t tokenizer.json\n"
                   "  tokmap encode --input-format jsonl < records.jsonl\n",
        .options = table,
        .option_count = sizeof table / sizeof table[0],
    };
    const char **operands = calloc((size_t)argc + 1, sizeof *operands);
    size_t operand_count = 0;
    struct tokmap_error error;
    if (!operands) {
        (void)error_set_memory(&error, "the arguments", (uint64_t)argc * sizeof *operands);
        return cli_failed(program, &error);
    }
    encoding.command = &command;
    int status = cli_parse(&command, argc, argv, operands, &operand_count);
    if (status < 0) {
        corpus->format = (enum corpus_format)encoding.input;
        corpus->invalid = (enum corpus_invalid)encoding.invalid;
        if (!operand_count)
            operands[operand_count++] = "-";
        status = tokenizer_arguments_check(&command, &encoding.asked);
        if (!status)
            status = tokenizer_arguments_open(&command, &encoding.asked, &encoding.tokenizer);
        if (!status) {
            tokenizer_info(encoding.tokenizer, &encoding.info);
            corpus->cut_anywhere = encoding.info.cuts;
            corpus->cut = encoding.info.cut_anywhere ? NULL : corpus_cut;
            corpus->cut_user = encoding.tokenizer;
            status = around_choose(&command, &encoding);
        }
        if (!status)
            status = encode(&encoding, operands, operand_count);
    }
    tokenizer_close(encoding.tokenizer);
    free(operands);
    return status;
}
