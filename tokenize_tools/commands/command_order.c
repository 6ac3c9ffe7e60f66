/* SPDX-License-Identifier: MIT */
/*
 * command_order.c - tokmap order: prints the numbers of the windows in the order in which they are drawn, or of a
 * mixture, the source of each draw.
 *
 * Numbers are formatted into one large buffer, so the speed is limited by computing the draws, not by printing them.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "commands.h"
#include "common/bytes.h"
#include "common/error.h"
#include "order/blocks.h"
#include "order/mixture.h"
#include "platform/os.h"
#include "text/decimal.h"

#define OUT_BYTES ((size_t)256 << 10)
#define IN_BYTES ((size_t)64 << 10)
#define NUMBER_BYTES 24 /* at least the digits of a number and its separator, or any text of out_text() */
#define WINDOWS_MAX ((uint64_t)1 << 63)
#define WEIGHTS_MOST 10000u
#define WEIGHT_DECIMALS 9

static const char program[] = "tokmap order";

struct order_arguments {
    uint64_t windows, seed, epoch, start, count;
    bool windows_given, seed_given, epoch_given, start_given, count_given;
    uint64_t blocks, span;
    bool blocks_given, span_given, even;
    const char *source, *weights;
    bool inverse, requests, json;
};

/* The order of an epoch, or a mixture. */
struct order_made {
    struct tokmap_order shuffle;
    struct blocks_order blocks;
    bool has_blocks;
    struct mixture *mixture; /* NULL: an order */
};

/* The output: numbers, one per line, or several in one line, or as a JSON array. */
struct order_out {
    char *bytes;
    size_t used;
    const char *between; /* separates two numbers */
    bool any;            /* a number has been printed, so the next one needs a separator */
};

/* Returns false if standard output cannot be written. */
static bool out_flush(struct order_out *out)
{
    const bool good = fwrite(out->bytes, 1, out->used, stdout) == out->used;
    out->used = 0;
    return good && !ferror(stdout);
}

static bool out_room(struct order_out *out)
{
    return out->used + NUMBER_BYTES <= OUT_BYTES || out_flush(out);
}

static bool out_text(struct order_out *out, const char *text)
{
    if (!out_room(out))
        return false;
    const size_t length = strlen(text);
    memcpy(out->bytes + out->used, text, length);
    out->used += length;
    return true;
}

static bool out_number(struct order_out *out, uint64_t number)
{
    if (!out_room(out))
        return false;
    if (out->any) {
        const size_t length = strlen(out->between);
        memcpy(out->bytes + out->used, out->between, length);
        out->used += length;
    }
    out->any = true;
    out->used += decimal_write(number, out->bytes + out->used);
    return true;
}

/* Prints two numbers: in one line, or as an array. */
static bool out_pair(struct order_out *out, uint64_t first, uint64_t second, bool json)
{
    if (json && !out_text(out, out->any ? ", [" : "["))
        return false;
    const char *between = out->between;
    out->any = false;
    if (!out_number(out, first))
        return false;
    out->between = json ? ", " : " ";
    const bool good = out_number(out, second) && out_text(out, json ? "]" : "\n");
    out->between = between;
    return good;
}

/* Prints the windows, or in a mixture the sources and their draws, of the draws [start, start + count). */
static bool out_draws(struct order_out *out, struct order_made *made, uint64_t start, uint64_t count, bool json)
{
    for (uint64_t i = start; i < start + count; i++) {
        uint64_t k;
        bool good;
        if (made->mixture) {
            const uint64_t source = mixture_draw(made->mixture, i, &k);
            good = out_pair(out, source, k, json);
        } else {
            good = out_number(out, made->has_blocks ? blocks_forward(&made->blocks, i)
                                                    : tokmap_order_window(&made->shuffle, i));
        }
        if (!good)
            return false;
    }
    return true;
}

/* ---- lines of standard input ---- */

struct line_reader {
    char *bytes; /* IN_BYTES, and one more for a terminating zero */
    size_t at, end;
    uint64_t line; /* number of the line returned last, from 1 */
    bool over;     /* standard input has ended */
};

enum line_result { LINE_READ, LINE_WAITS, LINE_END, LINE_FAILED };

/* Returned in place of a line that contains a zero byte. It is never a valid request. */
static char zero_byte[] = "a zero byte";

/* Returns the next line, zero-terminated, if the buffer contains one; LINE_WAITS if more bytes must be read first. */
static enum line_result line_next(struct line_reader *reader, char **line)
{
    char *newline = memchr(reader->bytes + reader->at, '\n', reader->end - reader->at);
    if (!newline && !reader->over)
        return LINE_WAITS;
    if (!newline && reader->at == reader->end)
        return LINE_END;
    char *end = newline ? newline : reader->bytes + reader->end;
    *line = reader->bytes + reader->at;
    reader->at = (size_t)(end - reader->bytes) + (newline != NULL);
    reader->line++;
    /* A zero byte would end the text early and hide what follows it. */
    if (memchr(*line, '\0', (size_t)(end - *line)))
        *line = zero_byte;
    if (*line == zero_byte)
        return LINE_READ;
    if (end > *line && end[-1] == '\r')
        end--;
    *end = '\0';
    return LINE_READ;
}

/* Waits for input and reads the bytes that have arrived. Returns false after a message. */
static bool line_fill(struct line_reader *reader)
{
    memmove(reader->bytes, reader->bytes + reader->at, reader->end - reader->at);
    reader->end -= reader->at;
    reader->at = 0;
    if (reader->end == IN_BYTES) {
        cli_say(program, "standard input:%" PRIu64 ": the line is longer than %zu bytes", reader->line + 1, IN_BYTES);
        return false;
    }
    size_t got = 0;
    const int failed = os_read(0, reader->bytes + reader->end, IN_BYTES - reader->end, &got);
    if (failed) {
        cli_say(program, "standard input could not be read: %s", strerror(failed));
        return false;
    }
    reader->end += got;
    reader->over = got == 0;
    return true;
}

/* Reads up to five decimal numbers separated by blanks. Returns their count, or -1 if the line contains anything
 * else. */
static int numbers_parse(char *line, uint64_t numbers[5])
{
    int count = 0;
    for (char *at = line + strspn(line, " \t"); *at;) {
        const size_t length = strcspn(at, " \t");
        const char last = at[length];
        at[length] = '\0';
        const bool good = count < 5 && cli_parse_number(at, &numbers[count]);
        at[length] = last;
        if (!good)
            return -1;
        count++;
        at += length;
        at += strspn(at, " \t");
    }
    return count;
}

/* Returns what is wrong with the five numbers of a request, or NULL. */
static const char *request_check(const uint64_t numbers[5])
{
    if (numbers[0] == 0 || numbers[0] > WINDOWS_MAX)
        return "the number of windows must be between 1 and 2^63";
    if (numbers[3] > numbers[0] || numbers[4] > numbers[0] - numbers[3])
        return "the draws reach past the last one of the epoch";
    return NULL;
}

/* Answers one line of --stdin. Returns false after a message, or if standard output cannot be written. */
static bool request_answer(const struct order_arguments *given, struct order_out *out, char *line, uint64_t number)
{
    uint64_t numbers[5];
    const char *wrong = numbers_parse(line, numbers) == 5 ? request_check(numbers)
                                                          : "expected five numbers: windows seed epoch start count";
    struct order_made made = {0};
    if (!wrong && tokmap_order_init(&made.shuffle, numbers[0], numbers[1], given->source, numbers[2]))
        wrong = "these numbers do not define an order";
    if (wrong) {
        (void)out_flush(out);
        cli_say(program, "standard input:%" PRIu64 ": %s; got '%.80s'", number, wrong, line);
        return false;
    }
    out->any = false;
    return (!given->json || out_text(out, "[")) && out_draws(out, &made, numbers[3], numbers[4], given->json) &&
           out_text(out, given->json ? "]\n" : "\n") && out_flush(out) && cli_flush();
}

/* Answers one line of --inverse, in the same way. */
static bool inverse_answer(const struct order_arguments *given, struct order_out *out, struct order_made *made,
                           char *line, uint64_t number)
{
    uint64_t numbers[5], draw;
    const int count = numbers_parse(line, numbers);
    if (made->mixture && (count != 2 || numbers[0] >= mixture_leaves(made->mixture))) {
        (void)out_flush(out);
        cli_say(program,
                "standard input:%" PRIu64 ": expected the number of a source, 0 to %" PRIu64
                ", and of its draw; got '%.80s'",
                number, mixture_leaves(made->mixture) - 1, line);
        return false;
    }
    if (!made->mixture && (count != 1 || numbers[0] >= given->windows)) {
        (void)out_flush(out);
        cli_say(program, "standard input:%" PRIu64 ": expected the number of a window, 0 to %" PRIu64 "; got '%.80s'",
                number, given->windows - 1, line);
        return false;
    }
    if (made->mixture)
        draw = mixture_draw_of(made->mixture, numbers[0], numbers[1]);
    else
        draw = made->has_blocks ? blocks_inverse(&made->blocks, numbers[0])
                                : tokmap_order_draw(&made->shuffle, numbers[0]);
    if (made->mixture && draw == MIXTURE_NONE) {
        (void)out_flush(out);
        cli_say(program, "standard input:%" PRIu64 ": draw %" PRIu64 " of source %" PRIu64 " is not among 2^63 draws",
                number, numbers[1], numbers[0]);
        return false;
    }
    return out_number(out, draw) && (given->json || out_text(out, "\n"));
}

/* Answers lines until standard input ends. made: for --inverse; NULL: the lines are requests of --stdin. */
static bool answer_lines(const struct order_arguments *given, struct order_out *out, struct order_made *made)
{
    struct line_reader reader = {malloc(IN_BYTES + 1), 0, 0, 0, false};
    enum line_result result = reader.bytes ? LINE_READ : LINE_FAILED;
    if (!reader.bytes)
        cli_say(program, "out of memory for lines of standard input");
    while (result == LINE_READ) {
        char *line = NULL;
        result = line_next(&reader, &line);
        if (result == LINE_WAITS) {
            /* The asking program may wait for its answers before it writes the next line. */
            const bool flushed = out_flush(out) && cli_flush();
            result = flushed && line_fill(&reader) ? LINE_READ : LINE_FAILED;
        } else if (result == LINE_READ) {
            const bool good = made ? inverse_answer(given, out, made, line, reader.line)
                                   : request_answer(given, out, line, reader.line);
            result = good ? LINE_READ : LINE_FAILED;
        }
    }
    free(reader.bytes);
    return result == LINE_END;
}

/* ---- mixtures ---- */

/* Reads a weight: digits, and at most WEIGHT_DECIMALS more after a point. Returns its length, or 0. */
static size_t weight_parse(const char *text, uint64_t *weight)
{
    size_t used = 0;
    int decimals = -1; /* -1: no point so far */
    *weight = 0;
    for (; (text[used] >= '0' && text[used] <= '9') || (text[used] == '.' && decimals < 0 && used); used++) {
        if (text[used] == '.')
            decimals = 0;
        else if (decimals == WEIGHT_DECIMALS || mul_overflows(*weight, 10, weight) ||
                 add_overflows(*weight, (uint64_t)(text[used] - '0'), weight))
            return 0;
        else if (decimals >= 0)
            decimals++;
    }
    for (int i = decimals > 0 ? decimals : 0; i < WEIGHT_DECIMALS; i++)
        if (mul_overflows(*weight, 10, weight))
            return 0;
    return used;
}

/* Makes the mixture of --weights. Returns -1 to go on, or prints a message and returns the exit status. */
static int mixture_make(const struct cli_command *command, const struct order_arguments *given, struct order_made *made)
{
    uint64_t *weights = malloc(WEIGHTS_MOST * sizeof *weights), count = 0;
    struct tokmap_error error;
    const char *at = given->weights;
    int status = -1;
    if (!weights) {
        (void)error_set_memory(&error, "the weights", WEIGHTS_MOST * sizeof *weights);
        return command_failed(command, &error);
    }
    for (bool more = true; more && status < 0;) {
        const size_t used = count < WEIGHTS_MOST ? weight_parse(at, &weights[count]) : 0;
        if (count == WEIGHTS_MOST)
            status = cli_misused(command, "--weights takes at most %u weights", WEIGHTS_MOST);
        else if (!used || (at[used] && at[used] != ','))
            status = cli_misused(
                command,
                "--weights takes numbers below 9223372036, separated by commas, with at most %d decimals; got "
                "'%.40s'",
                WEIGHT_DECIMALS, at);
        more = used && at[used] == ',';
        at += used + more;
        count++;
    }
    const enum tokmap_status made_status = status < 0 ? mixture_new(&made->mixture, weights, count, &error) : TOKMAP_OK;
    if (made_status == TOKMAP_ERROR_MEMORY)
        status = command_failed(command, &error);
    else if (made_status)
        status = cli_misused(command, "--weights: %s", error.message);
    free(weights);
    return status;
}

static int mixture_arguments_check(const struct cli_command *command, struct order_arguments *given)
{
    if (given->windows_given || given->seed_given || given->epoch_given || given->requests || given->blocks_given)
        return cli_misused(command, "a mixture depends only on its weights: of the other options, --weights takes "
                                    "--start, --count, --inverse, and --json");
    if (given->inverse && (given->start_given || given->count_given))
        return cli_misused(command, "with --inverse the draws of sources come from standard input; --start and --count "
                                    "cannot be added");
    if (!given->inverse && !given->count_given)
        return cli_misused(command, "a mixture has no end: say how many draws with --count");
    if (!given->inverse && (given->start >= MIXTURE_DRAWS || given->count > MIXTURE_DRAWS - given->start))
        return cli_misused(command, "the draws reach past the last one, 2^63 - 1");
    return -1;
}

/* ---- the command ---- */

static int arguments_check(const struct cli_command *command, struct order_arguments *given, const char **operands,
                           size_t operand_count)
{
    if (operand_count)
        return cli_misused(command, "no operand is expected; got '%s'", operands[0]);
    if (given->blocks_given != given->span_given || (given->blocks_given && (!given->blocks || !given->span)))
        return cli_misused(command, "--blocks and --span belong together and must be at least 1");
    if (given->weights)
        return mixture_arguments_check(command, given);
    if (given->requests) {
        if (given->blocks_given || given->windows_given || given->seed_given || given->epoch_given ||
            given->start_given || given->count_given || given->inverse)
            return cli_misused(command, "with --stdin the numbers come from standard input, and only --source and "
                                        "--json can be added");
        return -1;
    }
    if (!given->windows_given)
        return cli_misused(command, "--windows is required");
    if (given->windows == 0 || given->windows > WINDOWS_MAX)
        return cli_misused(command, "--windows must be between 1 and 2^63");
    if (given->inverse && (given->start_given || given->count_given))
        return cli_misused(command,
                           "with --inverse the windows come from standard input; --start and --count cannot be "
                           "added");
    if (given->start > given->windows)
        return cli_misused(command, "--start %" PRIu64 " is past the last draw, %" PRIu64, given->start,
                           given->windows - 1);
    if (!given->count_given)
        given->count = given->windows - given->start;
    if (given->count > given->windows - given->start)
        return cli_misused(command, "--start %" PRIu64 " --count %" PRIu64 " reaches past the last draw, %" PRIu64,
                           given->start, given->count, given->windows - 1);
    return -1;
}

static bool answer_print(const struct order_arguments *given, struct order_out *out, struct order_made *made)
{
    if (given->requests)
        return answer_lines(given, out, NULL);
    if (!made->mixture && tokmap_order_init(&made->shuffle, given->windows, given->seed, given->source, given->epoch)) {
        cli_say(program, "these numbers do not define an order");
        return false;
    }
    made->has_blocks = given->blocks_given;
    if (made->has_blocks)
        blocks_init(&made->blocks, given->windows, given->blocks, given->span, given->even, given->seed, given->source,
                    strlen(given->source), given->epoch);
    if (given->json && !out_text(out, "["))
        return false;
    bool good =
        given->inverse ? answer_lines(given, out, made) : out_draws(out, made, given->start, given->count, given->json);
    if (good && given->json)
        good = out_text(out, "]\n");
    else if (good && !given->inverse && given->count && !made->mixture)
        good = out_text(out, "\n");
    return out_flush(out) && good;
}

static int order(const struct cli_command *command, const char **operands, size_t operand_count, void *user)
{
    struct order_arguments *given = user;
    struct order_out out = {.between = "\n"};
    struct tokmap_error error;
    struct order_made made = {0};
    int status = arguments_check(command, given, operands, operand_count);
    if (status < 0 && given->weights)
        status = mixture_make(command, given, &made);
    if (status >= 0)
        return status;
    out.bytes = malloc(OUT_BYTES);
    if (!out.bytes) {
        (void)error_set_memory(&error, "the output", OUT_BYTES);
        mixture_free(made.mixture);
        return command_failed(command, &error);
    }
    out.between = given->json ? ", " : given->requests ? " " : given->inverse ? "" : "\n";
    const bool good = answer_print(given, &out, &made);
    mixture_free(made.mixture);
    free(out.bytes);
    return cli_finish(program, good ? CLI_DONE : CLI_FAILED);
}

int command_order(int argc, char **argv)
{
    struct order_arguments given = {.source = "data"};
    const struct cli_option options[] = {
        CLI_HEADING("The order"),
        {'n', "windows", CLI_NUMBER, &given.windows, &given.windows_given, "N", "windows of an epoch, 1 to 2^63", NULL},
        {'s', "seed", CLI_NUMBER, &given.seed, &given.seed_given, "SEED",
         "seed of the run, any 64-bit number (default: 0)", NULL},
        {'e', "epoch", CLI_NUMBER, &given.epoch, &given.epoch_given, "E", "the epoch (default: 0)", NULL},
        {0, "source", CLI_TEXT, &given.source, NULL, "NAME", "name of the source (default: data)", NULL},
        {0, "blocks", CLI_NUMBER, &given.blocks, &given.blocks_given, "W",
         "the order 'blocks W SPAN': windows of a block", NULL},
        {0, "span", CLI_NUMBER, &given.span, &given.span_given, "SPAN",
         "of that order: blocks whose windows are permuted together", NULL},
        {0, "even", CLI_FLAG, &given.even, NULL, NULL, "with --blocks and --span, the order 'even W SPAN'", NULL},
        CLI_HEADING("A mixture"),
        {'w', "weights", CLI_TEXT, &given.weights, NULL, "A,B,..",
         "weights of sources, in byte order of their names: print for each draw the number of its source, and which of "
         "the source's draws it is",
         NULL},
        CLI_HEADING("What to print"),
        {0, "start", CLI_NUMBER, &given.start, &given.start_given, "A", "the first draw (default: 0)", NULL},
        {0, "count", CLI_NUMBER, &given.count, &given.count_given, "C",
         "number of draws (default: all from --start on)", NULL},
        {0, "inverse", CLI_FLAG, &given.inverse, NULL, NULL,
         "read numbers of windows from standard input, one per line, and print the draw of each; of a mixture, lines "
         "of a "
         "source and its draw",
         NULL},
        {0, "stdin", CLI_FLAG, &given.requests, NULL, NULL,
         "read lines 'N S E A C' (windows, seed, epoch, start, count) from standard input, and answer each at once "
         "with one line of C numbers",
         NULL},
        CLI_HEADING("General"),
        {0, "json", CLI_FLAG, &given.json, NULL, NULL, "print JSON arrays", NULL},
    };
    const struct cli_command command = {
        .program = program,
        .usage = "--windows N [--seed S] [OPTION]...\n       tokmap order --stdin [--source NAME] [--json]\n"
                 "       tokmap order --weights A,B,.. --count C [--start A] [--json]",
        .summary =
            "Prints the windows of one epoch in the order in which they are drawn, one number per line. The order "
            "depends only on the number of windows, the seed, the epoch, and the name of the source.",
        .details = "Examples:\n"
                   "  tokmap order --windows 1000000 --seed 1234 --count 10\n"
                   "  echo 17 | tokmap order --windows 1000000 --seed 1234 --inverse\n"
                   "  echo '1000 7 0 990 10' | tokmap order --stdin\n"
                   "  tokmap order --weights 0.5,0.3,0.2 --count 10\n",
        CLI_OPTIONS(options),
    };
    return cli_run(&command, argc, argv, order, &given);
}
