/* SPDX-License-Identifier: MIT */
/*
 * run_text.c - see run_text.h. One table holds the directives. Each line is cut into words, the first word selects the
 * directive, and its read function stores the value. Every mistake is an error with the line. What several lines say
 * together is checked after the last line (run_phase_text.h).
 */
#include "run_text.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes_buffer.h"
#include "common/error.h"
#include "run_phase_text.h"
#include "text/decimal.h"
#include "text/edit_distance.h"

struct reader {
    struct run_line at; /* the line, its words, and the error */
    struct run_spec *spec;
    const char *text;      /* all lines; the words are parts of it */
    const char *passes_of; /* the name in `passes P of NAME`, or NULL */
    uint64_t skip_capacity, source_capacity, validation_capacity, phase_capacity, exclude_capacity;
};

struct directive {
    const char *name;
    const char *usage;
    enum tokmap_status (*read)(struct reader *reader, enum run_directive which);
    uint64_t least, most; /* range of the value, for read_number() */
    size_t words_most;    /* after the directive's name; one word is always needed, two for a dataset */
    bool repeats;         /* a run may have several such lines */
};

static enum tokmap_status read_number(struct reader *reader, enum run_directive which);
static enum tokmap_status read_order(struct reader *reader, enum run_directive which);
static enum tokmap_status read_source(struct reader *reader, enum run_directive which);
static enum tokmap_status read_phase(struct reader *reader, enum run_directive which);
static enum tokmap_status read_tail(struct reader *reader, enum run_directive which);
static enum tokmap_status read_passes(struct reader *reader, enum run_directive which);
static enum tokmap_status read_skip(struct reader *reader, enum run_directive which);
static enum tokmap_status read_exclude(struct reader *reader, enum run_directive which);

static const struct directive directives[RUN_DIRECTIVES] = {
    [RUN_SEQ_LEN] = {"seq_len", "seq_len TOKENS", read_number, 1, RUN_SEQ_LEN_MOST, 1, false},
    [RUN_LOOKAHEAD] = {"lookahead", "lookahead TOKENS", read_number, 0, RUN_SEQ_LEN_MOST, 1, false},
    [RUN_BATCH] = {"batch", "batch ROWS", read_number, 1, RUN_BATCH_MOST, 1, false},
    [RUN_SEED] = {"seed", "seed NUMBER", read_number, 0, UINT64_MAX, 1, false},
    [RUN_ORDER] = {"order", "order shuffle|sequential|blocks W SPAN|even W SPAN", read_order, 1, RUN_BLOCKS_MOST, 3,
                   false},
    [RUN_SOURCE] = {"source", "source NAME DATASET [plan FILE] [epochs<=N]", read_source, 0, 0, 7, true},
    [RUN_PHASE] = {"phase", RUN_PHASE_USAGE, read_phase, 0, 0, SIZE_MAX, true},
    [RUN_STRIDE] = {"stride", "stride TOKENS", read_number, 1, RUN_SEQ_LEN_MOST, 1, false},
    [RUN_TAIL] = {"tail", "tail pad|drop", read_tail, 0, 0, 1, false},
    [RUN_PAD] = {"pad", "pad ID", read_number, 0, RUN_PAD_MOST, 1, false},
    [RUN_PASSES] = {"passes", "passes NUMBER [of SOURCE]", read_passes, 1, RUN_DRAWS_MOST, 3, false},
    [RUN_STEPS] = {"steps", "steps NUMBER", read_number, 1, RUN_DRAWS_MOST, 1, false},
    [RUN_SKIP] = {"skip", "skip FIRST..END", read_skip, 0, 0, 1, true},
    [RUN_VALIDATION] = {"validation", "validation NAME DATASET", read_source, 0, 0, 2, true},
    [RUN_EXCLUDE] = {"exclude", "exclude FILE from STEP", read_exclude, 0, RUN_DRAWS_MOST - 1, SIZE_MAX, true},
};

/* Names of other systems, and the directive to suggest for each. */
static const struct {
    const char *word, *directive;
} other_names[] = {
    {"sequence", "seq_len"}, {"sequence_length", "seq_len"}, {"seqlen", "seq_len"},      {"block_size", "seq_len"},
    {"context", "seq_len"},  {"batch_size", "batch"},        {"global_batch", "batch"},  {"data", "source"},
    {"dataset", "source"},   {"epochs", "passes"},           {"max_steps", "steps"},     {"iterations", "steps"},
    {"shuffle", "order"},    {"train_iters", "steps"},       {"random_seed", "seed"},    {"val", "validation"},
    {"valid", "validation"}, {"eval", "validation"},         {"held_out", "validation"},
};

#define wrong(reader, ...) line_wrong(&(reader)->at, __VA_ARGS__)

/* ---- directives ---- */

/* Grows a list by one element if it is full. */
static enum tokmap_status reserve(struct reader *reader, void *list, size_t count, uint64_t *capacity, size_t bytes)
{
    return list_room(list, count, capacity, bytes)
               ? TOKMAP_OK
               : error_set_memory(reader->at.error, "the lines of the run", *capacity * bytes);
}

/* Reads a number in the range of a directive. name: what messages call it. */
static enum tokmap_status parse_number(struct reader *reader, enum run_directive which, const char *name,
                                       const char *word, uint64_t *number)
{
    const struct directive *directive = &directives[which];
    if (!decimal_parse(word, strlen(word), number)) {
        const size_t digits = strspn(word, "0123456789.");
        const char *hint = "";
        if (strchr(word, '#'))
            hint = ", and a space before a comment";
        else if (digits && word[digits] && strchr("kKMGBT", word[digits]))
            hint = ". Only tokens= in a phase takes a suffix, and there K is 1000; write all digits, such as 1024 or "
                   "1000000";
        return wrong(reader, "'%.40s' is not a number for '%s'; write decimal digits only, below 2^64%s", word, name,
                     hint);
    }
    if (*number < directive->least || *number > directive->most)
        return wrong(reader, "%s %" PRIu64 " is out of range; it must be %" PRIu64 " to %" PRIu64, name, *number,
                     directive->least, directive->most);
    return TOKMAP_OK;
}

static enum tokmap_status read_number(struct reader *reader, enum run_directive which)
{
    struct run_spec *spec = reader->spec;
    uint64_t *into[RUN_DIRECTIVES] = {
        [RUN_SEQ_LEN] = &spec->seq_len, [RUN_LOOKAHEAD] = &spec->lookahead, [RUN_BATCH] = &spec->batch,
        [RUN_SEED] = &spec->seed,       [RUN_STRIDE] = &spec->stride,       [RUN_PAD] = &spec->pad_id,
        [RUN_PASSES] = &spec->passes,   [RUN_STEPS] = &spec->steps,
    };
    assert(into[which]);
    uint64_t number;
    enum tokmap_status status = parse_number(reader, which, directives[which].name, reader->at.words[1], &number);
    if (!status)
        *into[which] = number;
    return status;
}

static enum tokmap_status read_order(struct reader *reader, enum run_directive which)
{
    struct run_spec *spec = reader->spec;
    char **words = reader->at.words;
    const bool even = strcmp(words[1], "even") == 0;
    if (even || strcmp(words[1], "blocks") == 0) {
        if (reader->at.count != 4)
            return wrong(reader,
                         "'order %s' takes two numbers, the windows of a block and the blocks that are shuffled "
                         "together; write 'order %s W SPAN', such as 'order %s 64 16'",
                         words[1], words[1], words[1]);
        enum tokmap_status status = parse_number(reader, which, "blocks W", words[2], &spec->blocks);
        spec->order = even ? TOKMAP_EVEN : TOKMAP_BLOCKS;
        return status ? status : parse_number(reader, which, "blocks SPAN", words[3], &spec->span);
    }
    if (reader->at.count > 2)
        return wrong(reader, "'order' takes one word, but this line has %zu; write '%s'", reader->at.count - 1,
                     directives[which].usage);
    if (strcmp(words[1], "shuffle") == 0)
        spec->order = TOKMAP_SHUFFLE;
    else if (strcmp(words[1], "sequential") == 0)
        spec->order = TOKMAP_SEQUENTIAL;
    else
        return wrong(reader, "'%.40s' is not an order; write '%s'", words[1], directives[which].usage);
    return TOKMAP_OK;
}

static enum tokmap_status read_tail(struct reader *reader, enum run_directive which)
{
    const char *word = reader->at.words[1];
    if (strcmp(word, "pad") != 0 && strcmp(word, "drop") != 0)
        return wrong(reader, "'%.40s' is not a kind of tail; write '%s'", word, directives[which].usage);
    reader->spec->tail_pad = strcmp(word, "pad") == 0;
    return TOKMAP_OK;
}

static enum tokmap_status read_passes(struct reader *reader, enum run_directive which)
{
    enum tokmap_status status = read_number(reader, which);
    if (status || reader->at.count == 2)
        return status;
    if (reader->at.count != 4 || strcmp(reader->at.words[2], "of") != 0)
        return wrong(reader, "'passes' takes a number and perhaps the source whose passes end the run; write '%s'",
                     directives[which].usage);
    reader->passes_of = reader->at.words[3];
    return TOKMAP_OK;
}

/* Reads what follows the dataset of a source. */
static enum tokmap_status read_source_options(struct reader *reader, struct source_line *source,
                                              enum run_directive which)
{
    char **words = reader->at.words;
    for (size_t i = 3; i < reader->at.count; i++) {
        if (strcmp(words[i], "plan") == 0) {
            if (source->plan)
                return wrong(reader, "the line names two plans; keep one of them");
            if (i + 1 == reader->at.count || words[i + 1][0] == '\0')
                return wrong(reader, "'plan' must be followed by the file that 'tokmap plan' wrote; write '%s'",
                             directives[which].usage);
            if (!(source->plan = strdup(words[++i])))
                return error_set_memory(reader->at.error, "the run's source", strlen(words[i]) + 1);
        } else if (strncmp(words[i], "epochs", 6) == 0) {
            const char *number = words[i] + 8;
            if (source->epochs_most)
                return wrong(reader, "the line limits the epochs of source '%s' twice; keep one", source->name);
            if (strncmp(words[i], "epochs<=", 8) != 0 || !decimal_parse(number, strlen(number), &source->epochs_most))
                return wrong(reader,
                             "'%.40s' does not limit the epochs of source '%s'; write 'epochs<=N' as one word, N in "
                             "decimal digits",
                             words[i], source->name);
            if (source->epochs_most == 0)
                return wrong(reader, "epochs<=0 would never draw source '%s'; write 1 or more, or remove the source",
                             source->name);
        } else {
            return wrong(reader, "'%.60s' is not an option of a source; write '%s'%s", words[i],
                         directives[which].usage,
                         strspn(words[i], "0123456789.%") == strlen(words[i]) ? "; weights belong in phase lines" : "");
        }
    }
    return TOKMAP_OK;
}

static enum tokmap_status read_source(struct reader *reader, enum run_directive which)
{
    struct run_spec *spec = reader->spec;
    const bool held_out = which == RUN_VALIDATION;
    struct source_line **lines = held_out ? &spec->validations : &spec->sources;
    size_t *count = held_out ? &spec->validation_count : &spec->source_count;
    const char *name = reader->at.words[1], *data = reader->at.words[2];
    const char *what = held_out ? "validation set" : "source";
    if (!run_name_is_good(name))
        return wrong(reader,
                     "'%.80s' is not a valid name for a %s; use at most %d letters, digits, '_', '-', and '.', "
                     "beginning with a letter or '_'",
                     name, what, RUN_NAME_MOST);
    if (data[0] == '\0')
        return wrong(reader, "the dataset of %s '%s' is an empty word; name a prefix, a folder, or a manifest", what,
                     name);
    enum tokmap_status status = reserve(
        reader, lines, *count, held_out ? &reader->validation_capacity : &reader->source_capacity, sizeof **lines);
    if (status)
        return status;
    struct source_line *source = &(*lines)[(*count)++];
    *source = (struct source_line){strdup(name), strdup(data), NULL, 0, reader->at.line};
    if (!source->name || !source->data)
        return error_set_memory(reader->at.error, "the run's source", strlen(name) + strlen(data) + 2);
    return read_source_options(reader, source, which);
}

static enum tokmap_status read_phase(struct reader *reader, enum run_directive which)
{
    struct run_spec *spec = reader->spec;
    (void)which;
    enum tokmap_status status =
        reserve(reader, &spec->phases, spec->phase_count, &reader->phase_capacity, sizeof *spec->phases);
    if (status)
        return status;
    struct phase_line *phase = &spec->phases[spec->phase_count++];
    return run_phase_read(&reader->at, reader->text, spec->phase_count > 1 ? phase - 1 : NULL, phase);
}

static enum tokmap_status read_skip(struct reader *reader, enum run_directive which)
{
    struct run_spec *spec = reader->spec;
    const char *word = reader->at.words[1];
    const char *dots = strstr(word, "..");
    struct skip_line skip = {.line = reader->at.line};
    if (!dots || !decimal_parse(word, (size_t)(dots - word), &skip.first) ||
        !decimal_parse(dots + 2, strlen(dots + 2), &skip.end))
        return wrong(reader, "'%.60s' is not a range of steps; write '%s', with decimal digits on both sides", word,
                     directives[which].usage);
    if (skip.end <= skip.first)
        return wrong(reader,
                     "skip %" PRIu64 "..%" PRIu64 " contains no step; A..B includes A but not B, so B must be above A",
                     skip.first, skip.end);
    if (skip.end > RUN_DRAWS_MOST)
        return wrong(reader,
                     "the range ends after step %" PRIu64 ", the last step that any run can have; lower its end",
                     (uint64_t)RUN_DRAWS_MOST - 1);
    enum tokmap_status status =
        reserve(reader, &spec->skips, spec->skip_count, &reader->skip_capacity, sizeof *spec->skips);
    if (status)
        return status;
    spec->skips[spec->skip_count++] = skip;
    return TOKMAP_OK;
}

static enum tokmap_status read_exclude(struct reader *reader, enum run_directive which)
{
    struct run_spec *spec = reader->spec;
    char **words = reader->at.words;
    struct exclude_line exclude = {.line = reader->at.line};
    if (reader->at.count != 4 || strcmp(words[2], "from") != 0 || words[1][0] == '\0')
        return wrong(reader,
                     "'exclude' takes a list of documents and the step from which they are not shown; write "
                     "'%s'",
                     directives[which].usage);
    enum tokmap_status status = parse_number(reader, which, "exclude FILE from", words[3], &exclude.step);
    if (status)
        return status;
    if (spec->exclude_count == RUN_EXCLUDES_MOST)
        return wrong(reader,
                     "the run has more than %d lists of excluded documents; put the documents of one step into "
                     "one list",
                     RUN_EXCLUDES_MOST);
    status = reserve(reader, &spec->excludes, spec->exclude_count, &reader->exclude_capacity, sizeof *spec->excludes);
    if (status)
        return status;
    if (!(exclude.file = strdup(words[1])))
        return error_set_memory(reader->at.error, "the run's list", strlen(words[1]) + 1);
    spec->excludes[spec->exclude_count++] = exclude;
    return TOKMAP_OK;
}

/* ---- unknown directives ---- */

/* Returns the only directive that begins with the word, or NULL. */
static const char *directive_begun(const char *word)
{
    const char *begun = NULL;
    for (int d = 0; d < RUN_DIRECTIVES; d++) {
        if (strncmp(word, directives[d].name, strlen(word)) != 0)
            continue;
        if (begun)
            return NULL;
        begun = directives[d].name;
    }
    return begun;
}

static const char *nearest_directive(const char *word)
{
    for (size_t i = 0; i < sizeof other_names / sizeof other_names[0]; i++)
        if (edit_distance(word, other_names[i].word) == 0)
            return other_names[i].directive;
    const char *nearest = directive_begun(word);
    if (nearest)
        return nearest;
    size_t fewest = strlen(word) < 4 ? 2 : 3; /* this many edits are too many */
    for (int d = 0; d < RUN_DIRECTIVES; d++) {
        size_t length = strlen(directives[d].name);
        size_t distance = strncmp(word, directives[d].name, length) == 0 ? 1 : edit_distance(word, directives[d].name);
        if (distance < fewest) {
            fewest = distance;
            nearest = directives[d].name;
        }
    }
    return nearest;
}

static enum tokmap_status unknown_directive(struct reader *reader)
{
    char *word = reader->at.words[0];
    if (strcmp(word, "plan") == 0 || strncmp(word, "epochs<", 7) == 0)
        return wrong(reader, "'%.40s' belongs to the line of its source; write '%s'", word,
                     directives[RUN_SOURCE].usage);
    size_t plain = strcspn(word, "=:");
    if (word[plain] != '\0' && plain > 0) {
        word[plain] = '\0';
        for (int d = 0; d < RUN_DIRECTIVES; d++)
            if (strcmp(word, directives[d].name) == 0)
                return wrong(reader, "the value of '%s' must follow a space; write '%s'", word, directives[d].usage);
    }
    const char *nearest = nearest_directive(word);
    if (nearest)
        return wrong(reader, "unknown directive '%.40s'; did you mean '%s'?", word, nearest);
    return wrong(reader,
                 "unknown directive '%.40s'; the directives are seq_len, lookahead, batch, seed, order, source, "
                 "phase, validation, stride, tail, pad, passes, steps, skip, and exclude",
                 word);
}

static enum tokmap_status read_line(struct reader *reader, char *line)
{
    struct run_spec *spec = reader->spec;
    for (const char *at = line; *at; at++)
        if ((unsigned char)*at < 0x20 && *at != '\t')
            return wrong(reader, "the line has a control character (0x%02x); a run is plain text", (unsigned char)*at);
    enum tokmap_status status = run_line_cut(&reader->at, line);
    if (status || reader->at.count == 0)
        return status;
    int which = 0;
    while (which < RUN_DIRECTIVES && strcmp(reader->at.words[0], directives[which].name) != 0)
        which++;
    if (which == RUN_DIRECTIVES)
        return unknown_directive(reader);
    if (spec->lines[which] && !directives[which].repeats)
        return wrong(reader, "'%s' is already set on line %" PRIu64 "; keep one of the two lines",
                     directives[which].name, spec->lines[which]);
    if ((which == RUN_STEPS && spec->lines[RUN_PASSES]) || (which == RUN_PASSES && spec->lines[RUN_STEPS]))
        return wrong(reader,
                     "'steps' and 'passes' both end the run, and the other directive is on line %" PRIu64 "; keep one "
                     "of them",
                     spec->lines[which == RUN_STEPS ? RUN_PASSES : RUN_STEPS]);
    if (reader->at.count >= 2 && (reader->at.words[1][0] == '=' || reader->at.words[1][0] == ':'))
        return wrong(reader, "the value of '%s' must follow a space, without '%c'; write '%s'", directives[which].name,
                     reader->at.words[1][0], directives[which].usage);
    const size_t least = which == RUN_SOURCE || which == RUN_VALIDATION ? 2 : 1, given = reader->at.count - 1;
    if (given < least || given > directives[which].words_most)
        return wrong(reader, "'%s' takes %s%s, but this line has %zu; write '%s'", directives[which].name,
                     given < least && directives[which].words_most > least ? "at least " : "",
                     least == 2 ? "two words" : "one word", given, directives[which].usage);
    if ((status = directives[which].read(reader, (enum run_directive)which)))
        return status;
    if (!spec->lines[which])
        spec->lines[which] = reader->at.line;
    return TOKMAP_OK;
}

/* Reads all lines, then checks that the required directives are set. text[bytes] is writable. */
static enum tokmap_status read_lines(struct reader *reader, char *text, size_t bytes)
{
    char *at = text, *end = text + bytes;
    if (bytes >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0)
        at += 3;
    while (at < end) {
        char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop)
            stop = end;
        reader->at.line++;
        if (memchr(at, '\0', (size_t)(stop - at)))
            return wrong(reader, "the line has a zero byte; a run is plain text");
        *stop = '\0';
        if (stop > at && stop[-1] == '\r')
            stop[-1] = '\0';
        enum tokmap_status status = read_line(reader, at);
        if (status)
            return status;
        at = stop + 1;
    }
    static const enum run_directive needed[] = {RUN_SEQ_LEN, RUN_BATCH, RUN_SOURCE};
    reader->at.line = 0;
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        if (!reader->spec->lines[needed[i]])
            return wrong(reader, "the run has no '%s'; add a line '%s'", directives[needed[i]].name,
                         directives[needed[i]].usage);
    return run_text_resolve(&reader->at, reader->text, reader->passes_of, reader->spec);
}

enum tokmap_status run_text_read(struct run_spec *spec, const char *text, size_t bytes, const char *path,
                                 struct tokmap_error *error)
{
    memset(spec, 0, sizeof *spec);
    spec->lookahead = 1;
    spec->steps = spec->passes = TOKMAP_FOREVER;
    spec->passes_of = SIZE_MAX;
    spec->pad_id = TOKMAP_NO_ID;
    spec->order = TOKMAP_SHUFFLE;
    spec->reading = TOKMAP_READ_AUTO;
    if (bytes > RUN_TEXT_MOST)
        return error_set(error, TOKMAP_ERROR_LIMIT, path, TOKMAP_NO_OFFSET,
                         "the text is longer than %d bytes, the limit for a run; check that the file is a run file",
                         RUN_TEXT_MOST);
    char *copy = malloc(bytes + 1);
    if (!copy)
        return error_set_memory(error, "the run's text", bytes + 1);
    if (bytes)
        memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    struct reader reader = {.spec = spec, .text = copy, .at = {.path = path, .error = error}};
    enum tokmap_status status = read_lines(&reader, copy, bytes);
    run_line_free(&reader.at);
    if (status)
        run_spec_free(spec);
    free(copy);
    return status;
}

/* ---- the text of a run, from its values ---- */

enum { NAME_COLUMN_MOST = 16 }; /* longer names are not aligned */

struct printer {
    struct bytes_buffer text;
    bool failed; /* there is no memory, or a word cannot be written */
};

static void put(struct printer *printer, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct printer *printer, const char *format, ...)
{
    char line[2 * RUN_NAME_MOST + 64];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof line || !bytes_append(&printer->text, line, (size_t)length))
        printer->failed = true;
}

/* Writes a word, in quotes if it would otherwise be read as something else. */
static void put_word(struct printer *printer, const char *word)
{
    const bool quoted = word[0] == '\0' || word[0] == '"' || word[0] == '#' || strpbrk(word, " \t");
    if (quoted)
        put(printer, "\"");
    for (const char *at = word; *at; at++) {
        if ((unsigned char)*at < 0x20 && *at != '\t')
            printer->failed = true;
        if (quoted && (*at == '"' || *at == '\\'))
            put(printer, "\\");
        if (!bytes_append(&printer->text, at, 1))
            printer->failed = true;
    }
    if (quoted)
        put(printer, "\"");
}

/* Writes amount / 10^decimals without zeros after the point that do not count. */
static void put_share(struct printer *printer, uint64_t amount, uint32_t decimals)
{
    for (; decimals > 0 && amount % 10 == 0; decimals--)
        amount /= 10;
    uint64_t one = 1;
    for (uint32_t i = 0; i < decimals; i++)
        one *= 10;
    put(printer, "%" PRIu64, amount / one);
    if (decimals > 0)
        put(printer, ".%0*" PRIu64, (int)decimals, amount % one);
}

static void put_tokens(struct printer *printer, uint64_t tokens)
{
    static const struct {
        uint64_t unit;
        char suffix;
    } units[] = {{1000000000000, 'T'}, {1000000000, 'B'}, {1000000, 'M'}, {1000, 'K'}};
    put(printer, "tokens=");
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (tokens > 0 && tokens % units[i].unit == 0) {
            put(printer, "%" PRIu64 "%c", tokens / units[i].unit, units[i].suffix);
            return;
        }
    put(printer, "%" PRIu64, tokens);
}

static void put_source(struct printer *printer, const char *directive, const struct source_line *source, int column)
{
    put(printer, "%-8s %-*s ", directive, column, source->name);
    put_word(printer, source->data);
    if (source->plan) {
        put(printer, " plan ");
        put_word(printer, source->plan);
    }
    if (source->epochs_most)
        put(printer, " epochs<=%" PRIu64, source->epochs_most);
    put(printer, "\n");
}

static void put_phase(struct printer *printer, const struct run_spec *spec, const struct phase_line *phase)
{
    put(printer, "phase    %" PRIu64, phase->step);
    if (phase->kind == WEIGHTS_NATURAL && phase->weight_count == 0)
        put(printer, " natural");
    for (size_t k = 0; k < phase->weight_count; k++) {
        const struct phase_weight *weight = &phase->weights[k];
        put(printer, " %s ", spec->sources[weight->source].name);
        if (phase->kind == WEIGHTS_NATURAL)
            put(printer, "natural");
        else if (phase->kind == WEIGHTS_TOKENS)
            put_tokens(printer, weight->amount);
        else
            put_share(printer, weight->amount, phase->decimals);
    }
    if (phase->batch)
        put(printer, " batch %" PRIu64, phase->batch);
    if (phase->seq_len)
        put(printer, " seq_len %" PRIu64, phase->seq_len);
    put(printer, "\n");
}

static void put_numbers(struct printer *printer, const struct run_spec *spec)
{
    put(printer, "seq_len  %" PRIu64 "\n", spec->seq_len);
    if (spec->lookahead != 1)
        put(printer, "lookahead %" PRIu64 "\n", spec->lookahead);
    put(printer, "batch    %" PRIu64 "\n", spec->batch);
    put(printer, "seed     %" PRIu64 "\n", spec->seed);
    if (run_spec_has_blocks(spec))
        put(printer, "order    %s %" PRIu64 " %" PRIu64 "\n", spec->order == TOKMAP_EVEN ? "even" : "blocks",
            spec->blocks, spec->span);
    else if (spec->order == TOKMAP_SEQUENTIAL)
        put(printer, "order    sequential\n");
    if (spec->stride)
        put(printer, "stride   %" PRIu64 "\n", spec->stride);
    if (spec->tail_pad)
        put(printer, "tail     pad\n");
    if (spec->pad_id != TOKMAP_NO_ID)
        put(printer, "pad      %" PRIu64 "\n", spec->pad_id);
}

char *run_spec_print(const struct run_spec *spec)
{
    struct printer printer = {.failed = false};
    size_t column = 0;
    for (size_t i = 0; i < spec->source_count; i++) {
        const size_t length = strlen(spec->sources[i].name);
        if (length > column && length <= NAME_COLUMN_MOST)
            column = length;
    }
    put_numbers(&printer, spec);
    for (size_t i = 0; i < spec->source_count; i++)
        put_source(&printer, "source", &spec->sources[i], (int)column);
    for (size_t i = 0; i < spec->validation_count; i++)
        put_source(&printer, "validation", &spec->validations[i], 0);
    for (size_t i = 0; i < spec->phase_count; i++)
        put_phase(&printer, spec, &spec->phases[i]);
    for (size_t i = 0; i < spec->skip_count; i++)
        put(&printer, "skip     %" PRIu64 "..%" PRIu64 "\n", spec->skips[i].first, spec->skips[i].end);
    for (size_t i = 0; i < spec->exclude_count; i++) {
        put(&printer, "exclude  ");
        put_word(&printer, spec->excludes[i].file);
        put(&printer, " from %" PRIu64 "\n", spec->excludes[i].step);
    }
    if (spec->steps != TOKMAP_FOREVER)
        put(&printer, "steps    %" PRIu64 "\n", spec->steps);
    if (spec->passes != TOKMAP_FOREVER && spec->passes_of < spec->source_count)
        put(&printer, "passes   %" PRIu64 " of %s\n", spec->passes, spec->sources[spec->passes_of].name);
    else if (spec->passes != TOKMAP_FOREVER)
        put(&printer, "passes   %" PRIu64 "\n", spec->passes);
    if (!bytes_append(&printer.text, "", 1))
        printer.failed = true;
    if (printer.failed)
        bytes_free(&printer.text);
    return (char *)printer.text.bytes;
}
