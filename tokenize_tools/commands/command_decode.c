/* SPDX-License-Identifier: MIT */
/*
 * command_decode.c - tokmap decode: prints the text of each line of ids.
 *
 * A state machine with five states reads the ids byte by byte, so a line may be longer than memory, and text is printed
 * before its line has ended.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "commands.h"
#include "commands/options/tokenizer_arguments.h"
#include "common/bytes.h"
#include "common/error.h"
#include "corpus/stream.h"
#include "platform/os.h"

static const char program[] = "tokmap decode";

#define READ_BYTES ((size_t)64 << 10)
#define IDS_MOST 4096 /* decoded at a time */

enum { FORMAT_AUTO, FORMAT_TEXT, FORMAT_JSONL };

enum state {
    STATE_OUTSIDE, /* JSONL: before '[' or after ']' */
    STATE_FIRST,   /* JSONL: after '[' */
    STATE_BETWEEN, /* text: an id may follow; JSONL: after ',' an id must follow */
    STATE_ID,      /* inside an id */
    STATE_AFTER    /* JSONL: after an id and a space */
};

struct decoding {
    const struct cli_command *command;
    struct tokenizer_arguments asked;
    int input, output;
    bool specials;
    const char *given; /* the ids of --ids; NULL: files are decoded */
    struct tokenizer *tokenizer;
    struct tokenizer_info info;
    struct tokenizer_decoder *decoder;

    const char *path;
    uint64_t line, offset;
    enum state state;
    bool closed;        /* JSONL: the line's array is complete */
    bool any;           /* the line contains at least one byte */
    uint64_t id, id_at; /* the current id, and the offset of its first digit */
    uint8_t *ids;
    uint64_t id_count;
    struct text_buffer text;
    bool to_terminal; /* text is printed with its control characters made visible */
    struct visible visible;
};

static enum tokmap_status wrong(const struct decoding *decoding, const char *reason, struct tokmap_error *error)
{
    (void)error_set(error, TOKMAP_ERROR_INPUT, decoding->path, decoding->offset, "%s; write each line as %s", reason,
                    decoding->input == FORMAT_JSONL ? "one JSON array of ids, such as [72, 105]"
                                                    : "ids separated by spaces, such as 72 105");
    if (error)
        error->line = (uint32_t)min64(decoding->line, UINT32_MAX);
    return TOKMAP_ERROR_INPUT;
}

/* Decodes the collected ids; end: they end the document. As text, prints the result at once; for JSONL, keeps it until
 * the document ends. */
static enum tokmap_status ids_decode(struct decoding *decoding, bool end, struct tokmap_error *error)
{
    enum tokmap_status status =
        tokenizer_decoder_add(decoding->decoder, decoding->ids, decoding->id_count, &decoding->text, error);
    if (!status && end)
        status = tokenizer_decoder_end(decoding->decoder, &decoding->text, error);
    decoding->id_count = 0;
    if (status) {
        memcpy(error->path, decoding->path, min64(strlen(decoding->path) + 1, sizeof error->path));
        error->path[sizeof error->path - 1] = '\0';
        error->line = (uint32_t)min64(decoding->line, UINT32_MAX);
        return status;
    }
    if (decoding->output == FORMAT_TEXT) {
        if (decoding->to_terminal)
            visible_write(&decoding->visible, decoding->text.bytes, (size_t)decoding->text.count);
        else
            (void)fwrite(decoding->text.bytes, 1, (size_t)decoding->text.count, stdout);
        if (end && decoding->to_terminal)
            visible_end(&decoding->visible);
        decoding->text.count = 0;
    }
    return TOKMAP_OK;
}

static enum tokmap_status id_take(struct decoding *decoding, struct tokmap_error *error)
{
    const uint8_t *bytes;
    uint32_t count;
    if (!tokenizer_token(decoding->tokenizer, decoding->id, &bytes, &count)) {
        const bool past = decoding->id >= decoding->info.vocabulary;
        char end[64] = "";
        if (past)
            (void)snprintf(end, sizeof end, ", whose ids end at %" PRIu64, decoding->info.vocabulary - 1);
        (void)error_set(error, TOKMAP_ERROR_TOKEN, decoding->path, decoding->id_at,
                        "id %" PRIu64 " is not in the vocabulary of the tokenizer '%s'%s; choose the tokenizer that "
                        "made these ids with --tokenizer",
                        decoding->id, decoding->info.name, end);
        error->line = (uint32_t)min64(decoding->line, UINT32_MAX);
        return TOKMAP_ERROR_TOKEN;
    }
    if (decoding->info.width == 2)
        store16(decoding->ids + 2 * decoding->id_count, (uint16_t)decoding->id);
    else
        store32(decoding->ids + 4 * decoding->id_count, (uint32_t)decoding->id);
    decoding->id_count++;
    return decoding->id_count == IDS_MOST ? ids_decode(decoding, false, error) : TOKMAP_OK;
}

static enum tokmap_status document_end(struct decoding *decoding, struct tokmap_error *error)
{
    const enum tokmap_status status = ids_decode(decoding, true, error);
    if (status || decoding->output == FORMAT_TEXT)
        return status;
    struct cli_report report;
    cli_report_begin(&report, true, NULL);
    cli_member(&report, "text",
               cli_bytes_text(decoding->text.bytes ? decoding->text.bytes : "", (size_t)decoding->text.count));
    cli_report_end(&report);
    decoding->text.count = 0;
    return TOKMAP_OK;
}

static enum tokmap_status line_end(struct decoding *decoding, struct tokmap_error *error)
{
    const bool list = decoding->input == FORMAT_JSONL;
    enum tokmap_status status = TOKMAP_OK;
    if (list && decoding->state != STATE_OUTSIDE)
        return wrong(decoding, "the array is not closed", error);
    if (!list && decoding->state == STATE_ID)
        status = id_take(decoding, error);
    /* In text an empty line is an empty document; in JSONL it is skipped. */
    if (!status && (!list || decoding->closed))
        status = document_end(decoding, error);
    decoding->state = list ? STATE_OUTSIDE : STATE_BETWEEN;
    decoding->closed = decoding->any = false;
    decoding->line++;
    return status;
}

static enum tokmap_status digit_take(struct decoding *decoding, char digit, struct tokmap_error *error)
{
    if (decoding->state == STATE_OUTSIDE || decoding->state == STATE_AFTER)
        return wrong(decoding, "a number is out of place", error);
    const uint64_t before = decoding->state == STATE_ID ? decoding->id : 0;
    if (decoding->state != STATE_ID)
        decoding->id_at = decoding->offset;
    decoding->state = STATE_ID;
    decoding->id = before > UINT64_MAX / 10 - 1 ? UINT64_MAX / 10 : before * 10 + (uint64_t)(digit - '0');
    return TOKMAP_OK;
}

/* Takes a byte of a JSON array other than a digit. */
static enum tokmap_status mark_take(struct decoding *decoding, char mark, struct tokmap_error *error)
{
    const enum state before = decoding->state;
    enum tokmap_status status = TOKMAP_OK;
    if (before == STATE_ID && (mark == ' ' || mark == '\t' || mark == '\r' || mark == ',' || mark == ']'))
        status = id_take(decoding, error);
    if (mark == ' ' || mark == '\t' || mark == '\r')
        decoding->state = before == STATE_ID ? STATE_AFTER : before;
    else if (mark == '[' && before == STATE_OUTSIDE && !decoding->closed)
        decoding->state = STATE_FIRST;
    else if (mark == ',' && (before == STATE_ID || before == STATE_AFTER))
        decoding->state = STATE_BETWEEN;
    else if (mark == ']' && (before == STATE_ID || before == STATE_AFTER || before == STATE_FIRST))
        decoding->state = STATE_OUTSIDE, decoding->closed = true;
    else
        return wrong(decoding, "this is not an array of ids", error);
    return status;
}

static enum tokmap_status bytes_take(struct decoding *decoding, const char *bytes, size_t count,
                                     struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    for (size_t i = 0; i < count && !status; i++, decoding->offset++) {
        const char byte = bytes[i];
        if (byte == '\n') {
            status = line_end(decoding, error);
            continue;
        }
        decoding->any = true;
        if (byte >= '0' && byte <= '9')
            status = digit_take(decoding, byte, error);
        else if (decoding->input == FORMAT_JSONL)
            status = mark_take(decoding, byte, error);
        else if (byte != ' ' && byte != '\t' && byte != '\r')
            status = wrong(decoding, "this is not an id", error);
        else if (decoding->state == STATE_ID) {
            status = id_take(decoding, error);
            decoding->state = STATE_BETWEEN;
        }
    }
    return status;
}

/* Resolves the format "auto": input whose first byte after white space is '[' is JSONL. */
static void formats_resolve(struct decoding *decoding, const char *bytes, size_t count)
{
    if (decoding->input == FORMAT_AUTO) {
        size_t at = 0;
        while (at < count && strchr(" \t\r\n", bytes[at]))
            at++;
        decoding->input = at < count && bytes[at] == '[' ? FORMAT_JSONL : FORMAT_TEXT;
    }
    if (decoding->output == FORMAT_AUTO)
        decoding->output = decoding->input;
    decoding->state = decoding->input == FORMAT_JSONL ? STATE_OUTSIDE : STATE_BETWEEN;
}

static enum tokmap_status file_decode(struct decoding *decoding, struct stream *stream, const char *path, char *buffer,
                                      struct tokmap_error *error)
{
    decoding->path = stream_name(path);
    decoding->line = 1;
    decoding->offset = 0;
    enum tokmap_status status = stream_open(stream, path, error);
    for (bool end = false, begun = false; !status && !end;) {
        size_t got;
        status = stream_read(stream, buffer, READ_BYTES, &got, &end, error);
        if (status)
            break;
        if (!begun)
            formats_resolve(decoding, buffer, got);
        begun = true;
        status = bytes_take(decoding, buffer, got, error);
        if (!status && end && decoding->any)
            status = line_end(decoding, error);
        /* The writer of the pipe may wait for this text before it writes more. */
        if (!cli_flush())
            break;
    }
    stream_close(stream);
    return status;
}

/* Decodes the ids of --ids, which are one document. */
static enum tokmap_status given_decode(struct decoding *decoding, struct tokmap_error *error)
{
    const size_t bytes = strlen(decoding->given);
    decoding->path = "--ids";
    decoding->line = 1;
    decoding->offset = 0;
    formats_resolve(decoding, decoding->given, bytes);
    const enum tokmap_status status = bytes_take(decoding, decoding->given, bytes, error);
    const enum tokmap_status ended = status ? status : line_end(decoding, error);
    if (!ended && decoding->output == FORMAT_TEXT && decoding->to_terminal)
        (void)putchar('\n');
    return ended;
}

static int files_decode(struct decoding *decoding, const char **operands, size_t operand_count)
{
    struct tokmap_error error;
    struct stream *stream = NULL;
    char *buffer = malloc(READ_BYTES);
    decoding->ids = malloc((size_t)IDS_MOST * decoding->info.width);
    enum tokmap_status status = buffer && decoding->ids ? stream_new(&stream, NULL, NULL, &error)
                                                        : error_set_memory(&error, "ids to decode", READ_BYTES);
    if (!status)
        status = tokenizer_decoder_new(&decoding->decoder, decoding->tokenizer, decoding->specials, &error);
    if (!status && decoding->given)
        status = given_decode(decoding, &error);
    for (size_t i = 0; i < operand_count && !status && !decoding->given; i++)
        status = file_decode(decoding, stream, operands[i], buffer, &error);
    tokenizer_decoder_free(decoding->decoder);
    stream_free(stream);
    free(buffer);
    free(decoding->ids);
    free(decoding->text.bytes);
    if (!status)
        return cli_finish(program, CLI_DONE);
    const int failed = command_failed(decoding->command, &error);
    if (status == TOKMAP_ERROR_NOT_FOUND)
        cli_say(program, "an argument is the name of a file; to decode ids themselves, write --ids '15496 995'");
    return cli_finish(program, failed);
}

static int decode(const struct cli_command *command, const char **operands, size_t operand_count, void *user)
{
    struct decoding *decoding = user;
    decoding->command = command;
    if (decoding->given && operand_count)
        return cli_misused(command, "--ids and files (%s) exclude each other", operands[0]);
    if (!operand_count)
        operands[operand_count++] = "-";
    int status = tokenizer_arguments_check(command, &decoding->asked);
    if (!status)
        status = tokenizer_arguments_open(command, &decoding->asked, true, &decoding->tokenizer);
    if (!status) {
        decoding->info = info_of_tokenizer(decoding->tokenizer);
        status = files_decode(decoding, operands, operand_count);
    }
    tokenizer_close(decoding->tokenizer);
    return status;
}

int command_decode(int argc, char **argv)
{
    struct decoding decoding = {.asked = TOKENIZER_ARGUMENTS_INIT, .visible = {.file = stdout}};
    decoding.to_terminal = os_is_terminal(1);
    const struct cli_option options[] = {
        CLI_HEADING("Tokenizer"),
        TOKENIZER_OPTIONS(decoding.asked),
        CLI_HEADING("Input and output"),
        {0, "ids", CLI_TEXT, &decoding.given, NULL, "IDS", "decode these ids instead of files: '72 105' or '[72, 105]'",
         NULL},
        {0, "input-format", CLI_CHOICE, &decoding.input, NULL, "FORMAT",
         "text (ids separated by spaces), jsonl (a JSON array per line), or auto (default): by the first character",
         "auto|text|jsonl"},
        {0, "output-format", CLI_CHOICE, &decoding.output, NULL, "FORMAT",
         "text (the texts with nothing between them), jsonl ({\"text\": ...} per line), or auto (default): as the "
         "input",
         "auto|text|jsonl"},
        {0, "specials", CLI_FLAG, &decoding.specials, NULL, NULL,
         "print the names of special tokens, which are left out by default", NULL},
    };
    const struct cli_command command = {
        .program = program,
        .usage = "[OPTION]... [FILE]...",
        .summary = "Turns token ids into text. Each line of ids is a document.",
        .details = "Reads standard input if no FILE is given or FILE is '-'.\n\n"
                   "On a terminal, control characters of the text are made visible (^[ for escape); into a file or a "
                   "pipe, such as '| cat', the text is written as it is.\n\n"
                   "Examples:\n"
                   "  tokmap decode -t gpt2/ --ids '15496 995'\n"
                   "  echo 72 105 | tokmap decode\n"
                   "  tokmap encode -t gpt2/ < text | tokmap decode -t gpt2/ | cmp - text\n",
        CLI_OPTIONS(options),
        .operands = CLI_FILES,
    };
    return cli_run(&command, argc, argv, decode, &decoding);
}
