/* SPDX-License-Identifier: MIT */
/*
 * run_phase_text.c - see run_phase_text.h.
 *
 * A source may follow the phases that name it, and a run may have tens of thousands of names. So a phase line
 * keeps only where its names are in the text. After the last line, the sources are sorted by name once, and each name
 * is found by binary search.
 */
#include "run_phase_text.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "text/decimal.h"
#include "text/edit_distance.h"

enum { WORDS_MOST = 16 }; /* of any line but those whose directive takes a list */

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

static enum tokmap_status add_word(struct run_line *at, char *word)
{
    if (at->count >= WORDS_MOST && strcmp(at->words[0], "phase") != 0)
        return line_wrong(at, "the line has more words than any directive but 'phase' takes; write one directive on a "
                              "line");
    if (!list_room(&at->words, at->count, &at->capacity, sizeof *at->words))
        return error_set_memory(at->error, "the words of a line", at->capacity * sizeof *at->words);
    at->words[at->count++] = word;
    return TOKMAP_OK;
}

enum tokmap_status run_line_cut(struct run_line *at, char *text)
{
    at->count = 0;
    for (;;) {
        while (is_space(*text))
            text++;
        if (*text == '\0' || *text == '#')
            return TOKMAP_OK;
        char *into = text;
        enum tokmap_status status = add_word(at, text);
        if (status)
            return status;
        if (*text != '"') {
            while (*text != '\0' && !is_space(*text))
                text++;
            if (*text != '\0')
                *text++ = '\0';
            continue;
        }
        for (text++; *text != '"'; text++) {
            if (*text == '\\' && (text[1] == '"' || text[1] == '\\'))
                text++;
            if (*text == '\0')
                return line_wrong(at, "a word begins with a double quote but does not end with one; add the closing "
                                      "quote");
            *into++ = *text;
        }
        text++;
        bool end = *text == '\0';
        if (!end && !is_space(*text))
            return line_wrong(at, "the closing double quote is not followed by a space; add one");
        *into = '\0';
        if (!end)
            text++;
    }
}

void run_line_free(struct run_line *at)
{
    free(at->words);
    at->words = NULL;
    at->count = at->capacity = 0;
}

/* ---- one line ---- */

bool run_name_is_good(const char *name)
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

static bool is_reserved(const char *name)
{
    return strcmp(name, "natural") == 0 || strcmp(name, "batch") == 0 || strcmp(name, "seq_len") == 0;
}

/* Reads the value of `batch` or `seq_len` in a phase. */
static enum tokmap_status read_change(struct run_line *at, size_t i, uint64_t most, uint64_t *into)
{
    const char *name = at->words[i], *value = i + 1 < at->count ? at->words[i + 1] : "";
    if (*into)
        return line_wrong(at, "the line sets '%s' twice; keep one of the two", name);
    if (!decimal_parse(value, strlen(value), into))
        return line_wrong(at, "'%.40s' is not a number for '%s'; write decimal digits only, below 2^64", value, name);
    if (*into < 1 || *into > most)
        return line_wrong(at, "%s %.40s is out of range; it must be 1 to %" PRIu64, name, value, most);
    return TOKMAP_OK;
}

/* Reads a weight: a share, which is *amount / 10^*decimals, or tokens. */
static enum tokmap_status read_weight(struct run_line *at, const char *name, const char *word, enum weight_kind *kind,
                                      uint64_t *amount, uint32_t *decimals)
{
    *amount = *decimals = 0;
    if (strcmp(word, "natural") == 0) {
        *kind = WEIGHTS_NATURAL;
        return TOKMAP_OK;
    }
    if (strncmp(word, "tokens=", 7) == 0) {
        *kind = WEIGHTS_TOKENS;
        if (decimal_parse_tokens(word + 7, amount) && *amount <= RUN_WEIGHTS_MOST)
            return TOKMAP_OK;
        return line_wrong(at,
                          "'%.60s' is not a number of tokens for source '%.80s'; write a whole number below 2^63, such "
                          "as tokens=300B or tokens=1.5T (K, M, G or B, T are 10^3, 10^6, 10^9, 10^12)",
                          word, name);
    }
    *kind = WEIGHTS_SHARES;
    if (decimal_parse_point(word, strlen(word), RUN_SHARE_DECIMALS, amount, decimals))
        return TOKMAP_OK;
    const size_t digits = strspn(word, "0123456789.");
    const char *hint = "write a share such as 0.25 or 25, 'natural', or tokens=300B";
    if (word[0] == '\0')
        hint = "write its weight after its name: a share such as 0.25 or 25, 'natural', or tokens=300B";
    else if (digits > 0 && word[digits] == '%')
        hint = "leave out the percent sign: shares are relative to each other";
    else if (digits > 0 && word[digits] == '\0')
        hint = "a share has one point, at most 9 digits after it, and is below 2^63";
    else if (digits > 0 && strchr("kKMGBT", word[digits]))
        hint = "a share has no suffix; for a number of tokens write tokens= before it";
    return line_wrong(at, "'%.40s' is not a weight for source '%.80s'; %s", word, name, hint);
}

static const char *kind_name(enum weight_kind kind)
{
    return kind == WEIGHTS_SHARES ? "a share" : kind == WEIGHTS_NATURAL ? "'natural'" : "tokens";
}

static enum tokmap_status add_weight(struct run_line *at, size_t i, struct phase_line *phase, uint64_t *capacity)
{
    const char *name = at->words[i], *word = i + 1 < at->count ? at->words[i + 1] : "";
    enum weight_kind kind;
    uint64_t amount;
    uint32_t decimals;
    if (!run_name_is_good(name))
        return line_wrong(at, "'%.80s' cannot be the name of a source; write '%s'", name, RUN_PHASE_USAGE);
    if (phase->kind == WEIGHTS_NATURAL && phase->weight_count == 0)
        return line_wrong(at,
                          "'natural' stands for all sources, but '%.80s' follows; remove it, or write 'natural' "
                          "after the name of each source that the phase has",
                          name);
    enum tokmap_status status = read_weight(at, name, word, &kind, &amount, &decimals);
    if (status)
        return status;
    if (phase->weight_count > 0 && kind != phase->kind)
        return line_wrong(at,
                          "source '%.80s' has %s, but '%.80s' before it has %s; all weights of a line must be of one "
                          "kind",
                          name, kind_name(kind), at->words[phase->weights[0].source], kind_name(phase->kind));
    if (!list_room(&phase->weights, phase->weight_count, capacity, sizeof *phase->weights))
        return error_set_memory(at->error, "the weights of a phase", *capacity * sizeof *phase->weights);
    phase->kind = kind;
    if (decimals > phase->decimals)
        phase->decimals = decimals;
    phase->weights[phase->weight_count++] = (struct phase_weight){i, amount};
    return TOKMAP_OK;
}

/* Multiplies the shares by a common power of ten, and replaces the numbers of words by offsets in the text. */
static enum tokmap_status scale_weights(struct run_line *at, const char *text, struct phase_line *phase)
{
    uint64_t sum = 0;
    for (size_t k = 0; k < phase->weight_count; k++) {
        struct phase_weight *weight = &phase->weights[k];
        const char *word = at->words[weight->source + 1];
        bool overflow = false;
        if (phase->kind == WEIGHTS_SHARES) {
            uint64_t amount;
            uint32_t decimals = 0;
            const bool read = decimal_parse_point(word, strlen(word), RUN_SHARE_DECIMALS, &amount, &decimals);
            assert(read); /* read_weight() read the same word */
            (void)read;
            for (; decimals < phase->decimals; decimals++)
                overflow |= mul_overflows(weight->amount, 10, &weight->amount);
        }
        if (overflow || add_overflows(sum, weight->amount, &sum) || sum > RUN_WEIGHTS_MOST)
            return line_wrong(at,
                              "the weights up to source '%.80s' sum to more than 2^63 after all are multiplied by "
                              "10^%u to make them whole; write fewer digits",
                              at->words[weight->source], (unsigned)phase->decimals);
        weight->source = (size_t)(at->words[weight->source] - text);
    }
    if (phase->weight_count > 0 && phase->kind != WEIGHTS_NATURAL && sum == 0)
        return line_wrong(at, "all weights of the phase are 0; give at least one source a weight above 0");
    return TOKMAP_OK;
}

static enum tokmap_status read_step(struct run_line *at, const struct phase_line *before, uint64_t *step)
{
    const char *word = at->count > 1 ? at->words[1] : "";
    if (!decimal_parse(word, strlen(word), step))
        return line_wrong(at,
                          "'%.40s' is not the step at which the phase begins; write '%s', the step in decimal digits",
                          word, RUN_PHASE_USAGE);
    if (*step >= RUN_DRAWS_MOST)
        return line_wrong(at, "step %" PRIu64 " is beyond %" PRIu64 ", the last step that any run can have; lower it",
                          *step, (uint64_t)RUN_DRAWS_MOST - 1);
    if (before && before->step == *step)
        return line_wrong(at, "the phase on line %" PRIu64 " begins at step %" PRIu64 " too; write both as one line",
                          before->line, *step);
    if (before && before->step > *step)
        return line_wrong(at,
                          "the phase begins at step %" PRIu64 ", before the phase on line %" PRIu64 ", which begins at "
                          "step %" PRIu64 "; order the lines by step",
                          *step, before->line, before->step);
    return TOKMAP_OK;
}

enum tokmap_status run_phase_read(struct run_line *at, const char *text, const struct phase_line *before,
                                  struct phase_line *phase)
{
    *phase = (struct phase_line){.line = at->line};
    uint64_t capacity = 0;
    enum tokmap_status status = read_step(at, before, &phase->step);
    for (size_t i = 2; !status && i < at->count;) {
        const char *word = at->words[i];
        if (strcmp(word, "natural") == 0) {
            if (phase->kind != WEIGHTS_NONE)
                return line_wrong(at, "'natural' is in the place of a source's name; alone it stands for all sources, "
                                      "so no other weight may be in the line");
            phase->kind = WEIGHTS_NATURAL;
            i++;
            continue;
        }
        if (strcmp(word, "batch") == 0)
            status = read_change(at, i, RUN_BATCH_MOST, &phase->batch);
        else if (strcmp(word, "seq_len") == 0)
            status = read_change(at, i, RUN_SEQ_LEN_MOST, &phase->seq_len);
        else
            status = add_weight(at, i, phase, &capacity);
        i += 2;
    }
    if (status)
        return status;
    if (phase->kind == WEIGHTS_NONE && !phase->batch && !phase->seq_len)
        return line_wrong(at, "the phase changes nothing; write '%s', or remove the line", RUN_PHASE_USAGE);
    if (phase->step == 0 && (phase->batch || phase->seq_len))
        return line_wrong(at, "the run begins with its '%s' directive; change that line, and remove '%s' from this one",
                          phase->batch ? "batch" : "seq_len", phase->batch ? "batch" : "seq_len");
    return scale_weights(at, text, phase);
}

/* ---- all lines ---- */

struct named {
    const char *name;
    size_t index;     /* of run_spec_line() */
    size_t mentioned; /* 1 + the number of the last phase that names the source; 0: none */
};

static int by_name(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    const int order = strcmp(x->name, y->name);
    return order ? order : (x->index > y->index) - (x->index < y->index);
}

static struct named *find(struct named *sorted, size_t count, const char *name)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(sorted[middle].name, name);
        if (order == 0)
            return &sorted[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* Finds a source by its name. */
static enum tokmap_status find_source(struct run_line *at, const struct run_spec *spec, struct named *sorted,
                                      const char *name, struct named **found)
{
    const char *nearest = NULL;
    size_t fewest = strlen(name) < 4 ? 2 : 3; /* this many edits are too many */
    *found = find(sorted, run_spec_lines(spec), name);
    if (*found && (*found)->index < spec->source_count)
        return TOKMAP_OK;
    if (*found)
        return line_wrong(at,
                          "'%.80s' is the validation set of line %" PRIu64 ", which no step draws; remove the name "
                          "here, or make that line a source",
                          name, run_spec_line(spec, (*found)->index)->line);
    for (size_t i = 0; i < spec->source_count; i++) {
        const size_t distance = edit_distance(name, spec->sources[i].name);
        if (distance < fewest) {
            fewest = distance;
            nearest = spec->sources[i].name;
        }
    }
    if (nearest)
        return line_wrong(at, "the run has no source '%.80s'; did you mean '%s'?", name, nearest);
    return line_wrong(at, "the run has no source '%.80s'; correct the name, or add a line 'source %.80s DATASET'", name,
                      name);
}

static enum tokmap_status check_names(struct run_line *at, const struct run_spec *spec, const struct named *sorted)
{
    size_t second = SIZE_MAX, first = 0;
    for (size_t i = 1; i < run_spec_lines(spec); i++)
        if (strcmp(sorted[i - 1].name, sorted[i].name) == 0 && sorted[i].index < second) {
            second = sorted[i].index;
            first = sorted[i - 1].index;
        }
    if (second != SIZE_MAX) {
        const struct source_line *line = run_spec_line(spec, second);
        at->line = line->line;
        return line_wrong(at,
                          second < spec->source_count ? "source '%s' is already set on line %" PRIu64
                                                        "; remove one of the two lines, or give it another name"
                                                      : "the name '%s' is already that of line %" PRIu64
                                                        "; give the validation set another name",
                          line->name, run_spec_line(spec, first)->line);
    }
    for (size_t i = 0; i < spec->source_count && spec->source_count + spec->phase_count > 1; i++)
        if (is_reserved(spec->sources[i].name)) {
            at->line = spec->sources[i].line;
            return line_wrong(at,
                              "a source of a run with phases cannot have the name '%s', which means something else in "
                              "a phase; rename it",
                              spec->sources[i].name);
        }
    return TOKMAP_OK;
}

static enum tokmap_status resolve_phase(struct run_line *at, const char *text, struct run_spec *spec, size_t which,
                                        struct named *sorted)
{
    struct phase_line *phase = &spec->phases[which];
    at->line = phase->line;
    for (size_t k = 0; k < phase->weight_count; k++) {
        const char *name = text + phase->weights[k].source;
        struct named *found;
        const enum tokmap_status status = find_source(at, spec, sorted, name, &found);
        if (status)
            return status;
        if (found->mentioned == which + 1)
            return line_wrong(at, "the line names source '%s' twice; keep one of the two weights", name);
        found->mentioned = which + 1;
        phase->weights[k].source = found->index;
    }
    if (phase->kind == WEIGHTS_NATURAL && phase->weight_count == 0)
        for (size_t i = 0; i < run_spec_lines(spec); i++)
            sorted[i].mentioned = which + 1;
    return TOKMAP_OK;
}

/* Checks that the first phase of a run of several sources gives their weights. */
static enum tokmap_status check_first_phase(struct run_line *at, const struct run_spec *spec)
{
    const struct phase_line *first = spec->phase_count ? &spec->phases[0] : NULL;
    if (spec->source_count == 1 || (first && first->step == 0 && first->kind != WEIGHTS_NONE))
        return TOKMAP_OK;
    at->line = first ? first->line : spec->sources[1].line;
    const char *why = first && first->step == 0 ? "the phase at step 0 gives them no weights"
                      : first                   ? "no phase begins at step 0"
                                                : "no phase gives them weights";
    if (spec->source_count > 3)
        return line_wrong(at,
                          "the run has %zu sources, but %s; add a line 'phase 0 natural', or one with a weight "
                          "after the name of each source",
                          spec->source_count, why);
    const char *third = spec->source_count > 2 ? spec->sources[2].name : "";
    return line_wrong(at,
                      "the run has %zu sources, but %s; add a line such as 'phase 0 %s 1 %s 1%s%s%s' or 'phase 0 "
                      "natural'",
                      spec->source_count, why, spec->sources[0].name, spec->sources[1].name, *third ? " " : "", third,
                      *third ? " 1" : "");
}

static enum tokmap_status check_all_named(struct run_line *at, const struct run_spec *spec, const struct named *sorted)
{
    size_t unnamed = spec->source_count; /* validation sets follow */
    for (size_t i = 0; i < run_spec_lines(spec) && spec->source_count > 1; i++)
        if (!sorted[i].mentioned && sorted[i].index < unnamed)
            unnamed = sorted[i].index;
    if (unnamed == spec->source_count)
        return TOKMAP_OK;
    at->line = spec->sources[unnamed].line;
    return line_wrong(at,
                      "no phase names source '%s'; give it a weight (0 if it is not to be drawn), or remove the line",
                      spec->sources[unnamed].name);
}

/* Windows may overlap, but no token may be left out between them. */
static enum tokmap_status check_stride(struct run_line *at, const struct run_spec *spec)
{
    if (!spec->stride)
        return TOKMAP_OK;
    at->line = spec->lines[RUN_STRIDE];
    if (spec->stride > spec->seq_len)
        return line_wrong(at,
                          "stride %" PRIu64 " is above seq_len %" PRIu64 ", so tokens between windows would be left "
                          "out; lower it to seq_len or less",
                          spec->stride, spec->seq_len);
    for (size_t i = 0; i < spec->phase_count; i++)
        if (spec->phases[i].seq_len && spec->stride > spec->phases[i].seq_len)
            return line_wrong(at,
                              "stride %" PRIu64 " is above the seq_len %" PRIu64 " of the phase on line %" PRIu64
                              ", so tokens between windows would be left out; lower it",
                              spec->stride, spec->phases[i].seq_len, spec->phases[i].line);
    return TOKMAP_OK;
}

static enum tokmap_status check_passes(struct run_line *at, const char *passes_of, struct run_spec *spec,
                                       struct named *sorted)
{
    at->line = spec->lines[RUN_PASSES];
    if (passes_of) {
        struct named *found;
        const enum tokmap_status status = find_source(at, spec, sorted, passes_of, &found);
        if (!status)
            spec->passes_of = found->index;
        return status;
    }
    if (spec->passes == TOKMAP_FOREVER || spec->source_count == 1)
        return TOKMAP_OK;
    for (size_t i = 0; i < spec->phase_count; i++)
        if (spec->phases[i].kind == WEIGHTS_SHARES || spec->phases[i].kind == WEIGHTS_TOKENS)
            return line_wrong(at,
                              "'passes' counts the windows of all sources, which needs natural weights, but the phase "
                              "on line %" PRIu64 " has %s; write 'passes %" PRIu64 " of %s', or use 'steps'",
                              spec->phases[i].line, spec->phases[i].kind == WEIGHTS_SHARES ? "shares" : "tokens",
                              spec->passes, spec->sources[0].name);
    return TOKMAP_OK;
}

/* Returns the tokens of steps [first, end) with rows of one batch and length. */
static unsigned __int128 tokens_of(uint64_t first, uint64_t end, uint64_t batch, uint64_t seq_len)
{
    return (unsigned __int128)(end - first) * batch * seq_len; /* below 2^(63 + 31 + 31 + 2) */
}

/* Checks that weights in tokens fill the steps for which they hold. */
static enum tokmap_status check_tokens(struct run_line *at, const struct run_spec *spec, size_t which, uint64_t batch,
                                       uint64_t seq_len)
{
    const struct phase_line *phase = &spec->phases[which];
    unsigned __int128 given = 0, room = 0;
    for (size_t k = 0; k < phase->weight_count; k++)
        given += phase->weights[k].amount;
    size_t next = which + 1;
    uint64_t from = phase->step, end;
    for (;; next++) {
        const bool last = next == spec->phase_count || spec->phases[next].step >= spec->steps;
        end = last ? spec->steps : spec->phases[next].step;
        if (end == TOKMAP_FOREVER)
            break;
        if (end > from)
            room += tokens_of(from, end, batch, seq_len);
        if (last || spec->phases[next].kind != WEIGHTS_NONE)
            break;
        from = end;
        batch = spec->phases[next].batch ? spec->phases[next].batch : batch;
        seq_len = spec->phases[next].seq_len ? spec->phases[next].seq_len : seq_len;
    }
    const unsigned __int128 step = (unsigned __int128)batch * seq_len;
    at->line = phase->line;
    const uint64_t shown = given > UINT64_MAX ? UINT64_MAX : (uint64_t)given;
    if (end == TOKMAP_FOREVER) {
        const unsigned __int128 left = given > room ? given - room : step;
        const uint64_t steps = from + (uint64_t)((left + step - 1) / step);
        return line_wrong(at,
                          "the weights are tokens, so the phase needs an end; add a line 'steps %" PRIu64 "', which "
                          "fits their sum of %" PRIu64 ", or the phase that follows",
                          steps, shown);
    }
    const unsigned __int128 apart = given > room ? given - room : room - given;
    if (apart < step || phase->step >= spec->steps)
        return TOKMAP_OK;
    return line_wrong(
        at,
        "the tokens sum to %" PRIu64 ", but the phase, steps %" PRIu64 " to %" PRIu64 ", has %" PRIu64
        "%s; they must agree within one step, so change the tokens or the step at which it ends, or write weights in "
        "their place",
        shown, phase->step, end - 1, room > UINT64_MAX ? UINT64_MAX : (uint64_t)room,
        room > UINT64_MAX ? " or more" : "");
}

static enum tokmap_status check_phases(struct run_line *at, const struct run_spec *spec)
{
    uint64_t batch = spec->batch, seq_len = spec->seq_len;
    for (size_t i = 0; i < spec->phase_count; i++) {
        const struct phase_line *phase = &spec->phases[i];
        batch = phase->batch ? phase->batch : batch;
        seq_len = phase->seq_len ? phase->seq_len : seq_len;
        if (phase->kind != WEIGHTS_TOKENS)
            continue;
        enum tokmap_status status = check_tokens(at, spec, i, batch, seq_len);
        if (status)
            return status;
    }
    return TOKMAP_OK;
}

enum tokmap_status run_text_resolve(struct run_line *at, const char *text, const char *passes_of, struct run_spec *spec)
{
    const size_t lines = run_spec_lines(spec);
    struct named *sorted = malloc(lines * sizeof *sorted);
    if (!sorted)
        return error_set_memory(at->error, "the names of the run's sources", lines * sizeof *sorted);
    for (size_t i = 0; i < lines; i++)
        sorted[i] = (struct named){run_spec_line(spec, i)->name, i, 0};
    qsort(sorted, lines, sizeof *sorted, by_name);
    enum tokmap_status status = check_names(at, spec, sorted);
    for (size_t i = 0; !status && i < spec->phase_count; i++)
        status = resolve_phase(at, text, spec, i, sorted);
    if (!status && !(status = check_first_phase(at, spec)) && !(status = check_all_named(at, spec, sorted)) &&
        !(status = check_stride(at, spec)) && !(status = check_passes(at, passes_of, spec, sorted)))
        status = check_phases(at, spec);
    free(sorted);
    return status;
}
