/* command_decode.c - tokmap decode: ids to text. Ids are read by a machine of five states, a character at a time, so that lines
 * of any length pass. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "corpus/stream.h"
#include "cli/cli.h"
#include "commands.h"
#include "common/bytes.h"
#include "common/error.h"
#include "commands/shared/field_options.h"
#include "commands/shared/tokenizer_arguments.h"

static const char program[] = "tokmap decode";

#define READ_BYTES ((size_t)64 << 10)
#define IDS_MOST 4096 /* that are decoded at once */

enum { FORMAT_AUTO, FORMAT_TEXT, FORMAT_JSONL };

enum state {
    STATE_OUTSIDE, /* JSONL: before '[' or behind ']' */
    STATE_FIRST,   /* JSONL: behind '[' */
    STATE_BETWEEN, /* text: an id may come; JSONL: behind ',' an id must */
    STATE_ID,      /* in an id */
    STATE_BEHIND   /* JSONL: behind an id and a space */
};

struct decoding {
    const struct cli_command *command;
    struct tokenizer_arguments asked;
    int input, output;
    bool specials;
    struct tokenizer *tokenizer;
    struct tokenizer_info info;

    const char *path;
    uint64_t line, offset;
    enum state state;
    bool closed; /* JSONL: the line's array is complete */
    bool any;    /* text: the line holds something */
    bool begun;  /* the document has given some text */
    uint64_t id;
    uint8_t *ids;
    uint64_t id_count;
    struct text_buffer text;
};

static enum tokmap_status wrong(const struct decoding *decoding, const char *reason, struct tokmap_error *error)
{
    (void)error_set(error, TOKMAP_ERROR_INPUT, decoding->path, decoding->offset, "%s; a line holds %s", reason,
                    decoding->input == FORMAT_JSONL ? "one JSON array of ids, as [72, 105]"
                                                    : "ids with spaces between, as 72 105");
    if (error)
        error->line = (uint32_t)min64(decoding->line, UINT32_MAX);
    return TOKMAP_ERROR_INPUT;
}

/* Decodes the ids that wait; their text goes out at once where that is all that is done with it. */
static enum tokmap_status ids_decode(struct decoding *decoding, struct tokmap_error *error)
{
    const enum tokmap_status status = tokenizer_decode(decoding->tokenizer, decoding->ids, decoding->id_count,
                                                       decoding->specials, decoding->begun, &decoding->text, error);
    decoding->id_count = 0;
    decoding->begun |= decoding->text.count != 0;
    if (status) {
        memcpy(error->path, decoding->path, min64(strlen(decoding->path) + 1, sizeof error->path));
        error->path[sizeof error->path - 1] = '\0';
        error->line = (uint32_t)min64(decoding->line, UINT32_MAX);
        return status;
    }
    if (decoding->output == FORMAT_TEXT) {
        (void)fwrite(decoding->text.bytes, 1, (size_t)decoding->text.count, stdout);
        decoding->text.count = 0;
    }
    return TOKMAP_OK;
}

static enum tokmap_status id_take(struct decoding *decoding, struct tokmap_error *error)
{
    if (decoding->id >= decoding->info.vocabulary) {
        (void)error_set(error, TOKMAP_ERROR_TOKEN, decoding->path, decoding->offset,
                        "id %" PRIu64 " is not in the vocabulary of the tokenizer '%s' (0 to %" PRIu64
                        "); these ids come from another tokenizer",
                        decoding->id, decoding->info.name, decoding->info.vocabulary - 1);
        error->line = (uint32_t)min64(decoding->line, UINT32_MAX);
        return TOKMAP_ERROR_TOKEN;
    }
    if (decoding->info.width == 2)
        store16(decoding->ids + 2 * decoding->id_count, (uint16_t)decoding->id);
    else
        store32(decoding->ids + 4 * decoding->id_count, (uint32_t)decoding->id);
    decoding->id_count++;
    return decoding->id_count == IDS_MOST ? ids_decode(decoding, error) : TOKMAP_OK;
}

static enum tokmap_status document_end(struct decoding *decoding, struct tokmap_error *error)
{
    const enum tokmap_status status = ids_decode(decoding, error);
    decoding->begun = false;
    if (status || decoding->output == FORMAT_TEXT)
        return status;
    struct cli_json json;
    cli_json_begin(&json, stdout);
    cli_json_object(&json, NULL);
    cli_json_bytes(&json, "text", decoding->text.bytes ? decoding->text.bytes : "", (size_t)decoding->text.count);
    cli_json_end(&json);
    decoding->text.count = 0;
    return TOKMAP_OK;
}

static enum tokmap_status line_end(struct decoding *decoding, struct tokmap_error *error)
{
    const bool list = decoding->input == FORMAT_JSONL;
    enum tokmap_status status = TOKMAP_OK;
    if (list && decoding->state != STATE_OUTSIDE)
        return wrong(decoding, "the array has no end", error);
    if (!list && decoding->state == STATE_ID)
        status = id_take(decoding, error);
    /* An empty line is an empty document of a text; in JSONL it is nothing. */
    if (!status && (!list || decoding->closed))
        status = document_end(decoding, error);
    decoding->state = list ? STATE_OUTSIDE : STATE_BETWEEN;
    decoding->closed = decoding->any = false;
    decoding->line++;
    return status;
}

static enum tokmap_status digit_take(struct decoding *decoding, char digit, struct tokmap_error *error)
{
    if (decoding->state == STATE_OUTSIDE || decoding->state == STATE_BEHIND)
        return wrong(decoding, "a number stands where none may", error);
    const uint64_t before = decoding->state == STATE_ID ? decoding->id : 0;
    decoding->state = STATE_ID;
    decoding->id = before > UINT64_MAX / 10 - 1 ? UINT64_MAX / 10 : before * 10 + (uint64_t)(digit - '0');
    return TOKMAP_OK;
}

/* A character of a JSON array that is no digit. */
static enum tokmap_status mark_take(struct decoding *decoding, char mark, struct tokmap_error *error)
{
    const enum state before = decoding->state;
    enum tokmap_status status = TOKMAP_OK;
    if (before == STATE_ID && (mark == ' ' || mark == '\t' || mark == '\r' || mark == ',' || mark == ']'))
        status = id_take(decoding, error);
    if (mark == ' ' || mark == '\t' || mark == '\r')
        decoding->state = before == STATE_ID ? STATE_BEHIND : before;
    else if (mark == '[' && before == STATE_OUTSIDE && !decoding->closed)
        decoding->state = STATE_FIRST;
    else if (mark == ',' && (before == STATE_ID || before == STATE_BEHIND))
        decoding->state = STATE_BETWEEN;
    else if (mark == ']' && (before == STATE_ID || before == STATE_BEHIND || before == STATE_FIRST))
        decoding->state = STATE_OUTSIDE, decoding->closed = true;
    else
        return wrong(decoding, "this is no array of ids", error);
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
            status = wrong(decoding, "this is no id", error);
        else if (decoding->state == STATE_ID) {
            status = id_take(decoding, error);
            decoding->state = STATE_BETWEEN;
        }
    }
    return status;
}

/* auto: what begins with '[' is JSONL. */
static void formats_tell(struct decoding *decoding, const char *bytes, size_t count)
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
            formats_tell(decoding, buffer, got);
        begun = true;
        status = bytes_take(decoding, buffer, got, error);
        if (!status && end && decoding->any)
            status = line_end(decoding, error);
        /* Whoever writes the pipe may wait for the answer to what it has written. */
        if (!cli_flush())
            break;
    }
    stream_close(stream);
    return status;
}

static int decode(struct decoding *decoding, const char **operands, size_t operand_count)
{
    struct tokmap_error error;
    struct stream *stream = NULL;
    char *buffer = malloc(READ_BYTES);
    decoding->ids = malloc((size_t)IDS_MOST * decoding->info.width);
    enum tokmap_status status = buffer && decoding->ids ? stream_new(&stream, NULL, NULL, &error)
                                                        : error_set_memory(&error, "ids to decode", READ_BYTES);
    for (size_t i = 0; i < operand_count && !status; i++)
        status = file_decode(decoding, stream, operands[i], buffer, &error);
    stream_free(stream);
    free(buffer);
    free(decoding->ids);
    free(decoding->text.bytes);
    return cli_finish(program, status ? command_failed(decoding->command, &error) : CLI_DONE);
}

int command_decode(int argc, char **argv)
{
    struct decoding decoding = {.asked = TOKENIZER_ARGUMENTS_INIT};
    const struct cli_option table[] = {
        TOKENIZER_OPTIONS(decoding.asked),
        {0, "input-format", CLI_CHOICE, &decoding.input, NULL, "FORMAT",
         "text (ids with spaces between), jsonl (a JSON array a line), or auto (default): by the first character",
         "auto|text|jsonl"},
        {0, "output-format", CLI_CHOICE, &decoding.output, NULL, "FORMAT",
         "text (nothing between the texts), jsonl ({\"text\": ...} a line), or auto (default): as the input",
         "auto|text|jsonl"},
        {0, "specials", CLI_FLAG, &decoding.specials, NULL, NULL,
         "print the names of special tokens, which are left out otherwise", NULL},
    };
    const struct cli_command command = {
        .program = program,
        .usage = "[OPTION]... [FILE]...",
        .summary = "Turns token ids into text: each line of ids is a document.",
        .details = "Without a FILE, or where it is '-', reads standard input.\n\n"
                   "Examples:\n"
                   "  echo 72 105 | tokmap decode\n"
                   "  tokmap encode -t gpt2/ < text | tokmap decode -t gpt2/ | cmp - text\n",
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
    decoding.command = &command;
    int status = cli_parse(&command, argc, argv, operands, &operand_count);
    if (status < 0) {
        if (!operand_count)
            operands[operand_count++] = "-";
        status = tokenizer_arguments_check(&command, &decoding.asked);
        if (!status)
            status = tokenizer_arguments_open(&command, &decoding.asked, &decoding.tokenizer);
        if (!status) {
            tokenizer_info(decoding.tokenizer, &decoding.info);
            status = decode(&decoding, operands, operand_count);
        }
    }
    tokenizer_close(decoding.tokenizer);
    free(operands);
    return status;
}
