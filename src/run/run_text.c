/*
 * run_text.c - see run_text.h. One table holds the directives. Each line is cut into words, the first word selects the
 * directive, and its read function stores the value. Every mistake is an error with the line.
 */
#include "run_text.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "text/decimal.h"
#include "text/edit_distance.h"

enum { WORDS_MOST = 16 };

struct reader {
    struct run_spec *spec;
    const char *path;
    uint64_t line;
    char *words[WORDS_MOST]; /* of the line, zero-terminated; words[0] is the directive */
    size_t count;
    size_t skip_capacity;
    struct tokmap_error *error;
};

struct directive {
    const char *name;
    const char *usage;
    enum tokmap_status (*read)(struct reader *reader, enum run_directive which);
    uint64_t least, most; /* range of the value, for read_number() */
};

static enum tokmap_status read_number(struct reader *reader, enum run_directive which);
static enum tokmap_status read_order(struct reader *reader, enum run_directive which);
static enum tokmap_status read_source(struct reader *reader, enum run_directive which);
static enum tokmap_status read_skip(struct reader *reader, enum run_directive which);

static const struct directive directives[RUN_DIRECTIVES] = {
    [RUN_SEQ_LEN] = {"seq_len", "seq_len TOKENS", read_number, 1, RUN_SEQ_LEN_MOST},
    [RUN_LOOKAHEAD] = {"lookahead", "lookahead TOKENS", read_number, 0, RUN_SEQ_LEN_MOST},
    [RUN_BATCH] = {"batch", "batch ROWS", read_number, 1, RUN_BATCH_MOST},
    [RUN_SEED] = {"seed", "seed NUMBER", read_number, 0, UINT64_MAX},
    [RUN_ORDER] = {"order", "order shuffle|sequential", read_order, 0, 0},
    [RUN_SOURCE] = {"source", "source NAME DATASET", read_source, 0, 0},
    [RUN_PASSES] = {"passes", "passes NUMBER", read_number, 1, RUN_DRAWS_MOST},
    [RUN_STEPS] = {"steps", "steps NUMBER", read_number, 1, RUN_DRAWS_MOST},
    [RUN_SKIP] = {"skip", "skip FIRST..END", read_skip, 0, 0},
};

/* Directives of later versions. They are refused as unsupported, not as unknown. */
static const char *const later_directives[] = {"phase", "plan", "tail"};

/* Names of other systems, and the directive to suggest for each. */
static const struct {
    const char *word, *directive;
} other_names[] = {
    {"sequence", "seq_len"}, {"sequence_length", "seq_len"}, {"seqlen", "seq_len"},     {"block_size", "seq_len"},
    {"context", "seq_len"},  {"batch_size", "batch"},        {"global_batch", "batch"}, {"data", "source"},
    {"dataset", "source"},   {"epochs", "passes"},           {"max_steps", "steps"},    {"iterations", "steps"},
    {"shuffle", "order"},    {"train_iters", "steps"},       {"random_seed", "seed"},
};

#define wrong(reader, ...)                                                                                             \
    error_set_line((reader)->error, TOKMAP_ERROR_RUN, (reader)->path, (reader)->line, __VA_ARGS__)
#define not_yet(reader, ...)                                                                                           \
    error_set_line((reader)->error, TOKMAP_ERROR_UNSUPPORTED, (reader)->path, (reader)->line, __VA_ARGS__)

/* ---- words ---- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

/* Cuts the line (zero-terminated, changed in place) into words. A comment begins at a # that is first in the line or
 * follows a space. A word in double quotes may contain spaces, \" for a quote, and \\ for a backslash. */
static enum tokmap_status cut_words(struct reader *reader, char *line)
{
    reader->count = 0;
    char *at = line;
    for (;;) {
        while (is_space(*at))
            at++;
        if (*at == '\0' || *at == '#')
            return TOKMAP_OK;
        if (reader->count == WORDS_MOST)
            return wrong(reader, "the line has more words than any directive takes; write one directive on a line");
        char *into = at;
        reader->words[reader->count++] = at;
        if (*at != '"') {
            while (*at != '\0' && !is_space(*at))
                at++;
            if (*at != '\0')
                *at++ = '\0';
            continue;
        }
        for (at++; *at != '"'; at++) {
            if (*at == '\\' && (at[1] == '"' || at[1] == '\\'))
                at++;
            if (*at == '\0')
                return wrong(reader, "a word begins with a double quote but does not end with one; add the closing "
                                     "quote");
            *into++ = *at;
        }
        at++;
        *into = '\0';
        if (*at != '\0' && !is_space(*at))
            return wrong(reader, "the closing double quote is not followed by a space; add one");
    }
}

/* ---- directives ---- */

static enum tokmap_status read_number(struct reader *reader, enum run_directive which)
{
    const struct directive *directive = &directives[which];
    struct run_spec *spec = reader->spec;
    const char *word = reader->words[1];
    uint64_t number;
    if (!decimal_parse(word, strlen(word), &number))
        return wrong(reader, "'%.40s' is not a number for '%s'; write decimal digits only, below 2^64%s", word,
                     directive->name, strchr(word, '#') ? ", and a space before a comment" : "");
    if (number < directive->least || number > directive->most)
        return wrong(reader, "%s %" PRIu64 " is out of range; it must be %" PRIu64 " to %" PRIu64, directive->name,
                     number, directive->least, directive->most);
    uint64_t *into[RUN_DIRECTIVES] = {
        [RUN_SEQ_LEN] = &spec->seq_len, [RUN_LOOKAHEAD] = &spec->lookahead, [RUN_BATCH] = &spec->batch,
        [RUN_SEED] = &spec->seed,       [RUN_PASSES] = &spec->passes,       [RUN_STEPS] = &spec->steps,
    };
    assert(into[which]);
    *into[which] = number;
    return TOKMAP_OK;
}

static enum tokmap_status read_order(struct reader *reader, enum run_directive which)
{
    const char *word = reader->words[1];
    if (strcmp(word, "shuffle") == 0)
        reader->spec->ordering = TOKMAP_SHUFFLE;
    else if (strcmp(word, "sequential") == 0)
        reader->spec->ordering = TOKMAP_SEQUENTIAL;
    else
        return wrong(reader, "'%.40s' is not an order; write '%s'", word, directives[which].usage);
    return TOKMAP_OK;
}

static bool name_is_good(const char *name)
{
    size_t length = strlen(name);
    if (length == 0 || length > RUN_NAME_MOST)
        return false;
    for (size_t i = 0; i < length; i++) {
        char c = name[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        bool other = (c >= '0' && c <= '9') || c == '-' || c == '.';
        if (!letter && !(other && i > 0))
            return false;
    }
    return true;
}

static enum tokmap_status read_source(struct reader *reader, enum run_directive which)
{
    struct run_spec *spec = reader->spec;
    const char *name = reader->words[1], *data = reader->words[2];
    if (!name_is_good(name))
        return wrong(reader,
                     "'%.80s' is not a valid name for a source; use at most %d letters, digits, '_', '-', and '.', "
                     "beginning with a letter or '_'",
                     name, RUN_NAME_MOST);
    if (data[0] == '\0')
        return wrong(reader, "the dataset of source '%s' is an empty word; name a prefix, a folder, or a manifest",
                     name);
    if (strstr(data, "#docs="))
        return not_yet(reader, "this version does not read parts of datasets ('#docs='); name a whole dataset");
    spec->source = strdup(name);
    spec->data = strdup(data);
    if (!spec->source || !spec->data)
        return error_set_memory(reader->error, "the run's source", strlen(name) + strlen(data) + 2);
    return TOKMAP_OK;
}

static enum tokmap_status read_skip(struct reader *reader, enum run_directive which)
{
    struct run_spec *spec = reader->spec;
    const char *word = reader->words[1];
    const char *dots = strstr(word, "..");
    struct skip_line skip = {.line = reader->line};
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
    if (spec->skip_count == reader->skip_capacity) {
        size_t capacity = reader->skip_capacity ? 2 * reader->skip_capacity : 16;
        struct skip_line *grown = realloc(spec->skips, capacity * sizeof *grown);
        if (!grown)
            return error_set_memory(reader->error, "the run's skipped steps", capacity * sizeof *grown);
        spec->skips = grown;
        reader->skip_capacity = capacity;
    }
    spec->skips[spec->skip_count++] = skip;
    return TOKMAP_OK;
}

/* ---- unknown directives ---- */

static const char *nearest_directive(const char *word)
{
    for (size_t i = 0; i < sizeof other_names / sizeof other_names[0]; i++)
        if (edit_distance(word, other_names[i].word) == 0)
            return other_names[i].directive;
    const char *nearest = NULL;
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
    char *word = reader->words[0];
    for (size_t i = 0; i < sizeof later_directives / sizeof later_directives[0]; i++)
        if (strcmp(word, later_directives[i]) == 0)
            return not_yet(reader, "this version of tokmap does not read '%s'; remove the line or use a newer version",
                           word);
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
                 "passes, steps, and skip",
                 word);
}

/* Refuses a line that only later versions read as unsupported, not as a mistake. */
static enum tokmap_status later_form(struct reader *reader, int which)
{
    const struct run_spec *spec = reader->spec;
    if (which == RUN_ORDER && reader->count >= 2 && strcmp(reader->words[1], "blocks") == 0)
        return not_yet(reader, "this version does not read 'order blocks'; use shuffle or sequential");
    if (which != RUN_SOURCE)
        return TOKMAP_OK;
    if (reader->count >= 4 && strncmp(reader->words[3], "epochs", 6) == 0)
        return not_yet(reader, "this version does not read 'epochs<='; remove it, and use 'passes' to end the run");
    if (spec->lines[RUN_SOURCE] && reader->count >= 2 && strcmp(reader->words[1], spec->source) != 0)
        return not_yet(reader,
                       "this version does not read runs of more than one source; the first source is on line %" PRIu64,
                       spec->lines[RUN_SOURCE]);
    return TOKMAP_OK;
}

static enum tokmap_status read_line(struct reader *reader, char *line)
{
    struct run_spec *spec = reader->spec;
    for (const char *at = line; *at; at++)
        if ((unsigned char)*at < 0x20 && *at != '\t')
            return wrong(reader, "the line has a control character (0x%02x); a run is plain text", (unsigned char)*at);
    enum tokmap_status status = cut_words(reader, line);
    if (status || reader->count == 0)
        return status;
    int which = 0;
    while (which < RUN_DIRECTIVES && strcmp(reader->words[0], directives[which].name) != 0)
        which++;
    if (which == RUN_DIRECTIVES)
        return unknown_directive(reader);
    if ((status = later_form(reader, which)))
        return status;
    if (spec->lines[which] && which != RUN_SKIP)
        return wrong(reader, "'%s' is already set on line %" PRIu64 "; keep one of the two lines",
                     directives[which].name, spec->lines[which]);
    if ((which == RUN_STEPS && spec->lines[RUN_PASSES]) || (which == RUN_PASSES && spec->lines[RUN_STEPS]))
        return wrong(reader,
                     "'steps' and 'passes' both end the run, and the other directive is on line %" PRIu64 "; keep one "
                     "of them",
                     spec->lines[which == RUN_STEPS ? RUN_PASSES : RUN_STEPS]);
    if (reader->count >= 2 && (reader->words[1][0] == '=' || reader->words[1][0] == ':'))
        return wrong(reader, "the value of '%s' must follow a space, without '%c'; write '%s'", directives[which].name,
                     reader->words[1][0], directives[which].usage);
    size_t wanted = which == RUN_SOURCE ? 3 : 2;
    if (reader->count != wanted)
        return wrong(reader, "'%s' takes %s, but this line has %zu; write '%s'", directives[which].name,
                     wanted == 3 ? "two words" : "one word", reader->count - 1, directives[which].usage);
    if ((status = directives[which].read(reader, (enum run_directive)which)))
        return status;
    if (!spec->lines[which])
        spec->lines[which] = reader->line;
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
        reader->line++;
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
    reader->line = 0;
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        if (!reader->spec->lines[needed[i]])
            return wrong(reader, "the run has no '%s'; add a line '%s'", directives[needed[i]].name,
                         directives[needed[i]].usage);
    return TOKMAP_OK;
}

enum tokmap_status run_text_read(struct run_spec *spec, const char *text, size_t bytes, const char *path,
                                 struct tokmap_error *error)
{
    memset(spec, 0, sizeof *spec);
    spec->lookahead = 1;
    spec->steps = spec->passes = TOKMAP_FOREVER;
    spec->ordering = TOKMAP_SHUFFLE;
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
    struct reader reader = {.spec = spec, .path = path, .error = error};
    enum tokmap_status status = read_lines(&reader, copy, bytes);
    if (status)
        run_spec_free(spec);
    free(copy);
    return status;
}

void run_spec_free(struct run_spec *spec)
{
    free(spec->source);
    free(spec->data);
    free(spec->skips);
    memset(spec, 0, sizeof *spec);
}
