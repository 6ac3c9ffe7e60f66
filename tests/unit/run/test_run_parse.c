/* SPDX-License-Identifier: MIT */
/* The text of a run: what is read, and what is refused on which line; runs from files and from arguments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/run.h"
#include "run/run_text.h"
#include "support/made_dataset.h"
#include "support/run_help.h"
#include "support/scratch.h"
#include "tokmap/tokmap.h"

static enum tokmap_status read_text(struct run_spec *spec, const char *text, struct tokmap_error *error)
{
    return run_text_read(spec, text, strlen(text), "some.run", error);
}

/* ---- the text, without a dataset ---- */

static void four_lines(void **state)
{
    struct run_spec spec;
    assert_int_equal(read_text(&spec, "seq_len 8192\nbatch 1024\nseed 1234\nsource web data/web\n", NULL), TOKMAP_OK);
    assert_int_equal(spec.seq_len, 8192);
    assert_int_equal(spec.lookahead, 1);
    assert_int_equal(spec.batch, 1024);
    assert_int_equal(spec.seed, 1234);
    assert_int_equal(spec.order, TOKMAP_SHUFFLE);
    assert_true(spec.steps == TOKMAP_FOREVER && spec.passes == TOKMAP_FOREVER);
    assert_string_equal(spec.sources[0].name, "web");
    assert_string_equal(spec.sources[0].data, "data/web");
    assert_int_equal(spec.skip_count, 0);
    assert_int_equal(spec.lines[RUN_SEED], 3);
    assert_int_equal(spec.lines[RUN_LOOKAHEAD], 0);
    run_spec_free(&spec);
}

static void everything(void **state)
{
    static const char text[] = "\xef\xbb\xbf# a run\r\n"
                               "\r\n"
                               "  \tsource  a.b-c_1\t\"my data/w \\\"q\\\" \\\\ #1\"   # quoted\r\n"
                               "seq_len 1#2\n";
    struct run_spec spec;
    struct tokmap_error error = {0};
    assert_int_equal(read_text(&spec, text, &error), TOKMAP_ERROR_RUN);
    assert_int_equal(error.line, 4);
    assert_non_null(strstr(error.message, "a space before a comment"));

    static const char good[] = "\xef\xbb\xbf# a run\r\n"
                               "\r\n"
                               "  \tsource  a.b-c_1\t\"my data/w \\\"q\\\" \\\\ #1\"   # quoted\r\n"
                               "skip 9..12\nskip 3..10 #overlaps\n"
                               "seq_len 2147483648\nlookahead 0\nbatch\t2147483648\nseed 18446744073709551615\n"
                               "order sequential\npasses 3\nskip 0..1";
    assert_int_equal(read_text(&spec, good, &error), TOKMAP_OK);
    assert_string_equal(spec.sources[0].name, "a.b-c_1");
    assert_string_equal(spec.sources[0].data, "my data/w \"q\" \\ #1");
    assert_true(spec.seed == UINT64_MAX && spec.seq_len == (uint64_t)1 << 31 && spec.batch == (uint64_t)1 << 31);
    assert_int_equal(spec.lookahead, 0);
    assert_int_equal(spec.order, TOKMAP_SEQUENTIAL);
    assert_int_equal(spec.passes, 3);
    assert_int_equal(spec.skip_count, 3);
    assert_int_equal(spec.skips[1].first, 3);
    assert_int_equal(spec.skips[1].end, 10);
    assert_int_equal(spec.skips[1].line, 5);
    assert_int_equal(spec.skips[2].line, 12);
    assert_int_equal(spec.lines[RUN_SKIP], 4);
    run_spec_free(&spec);

    assert_int_equal(read_text(&spec, "source a data/web#1\nseq_len 4\nbatch 1", NULL), TOKMAP_OK);
    assert_string_equal(spec.sources[0].data, "data/web#1");
    run_spec_free(&spec);
}

#define BASE "seq_len 8\nbatch 2\nseed 1\nsource web data/web\n" /* lines 1 to 4 */

static const struct {
    const char *text;
    enum tokmap_status status;
    uint32_t line;
    const char *says;
} refused[] = {
    {"", TOKMAP_ERROR_RUN, 0, "no 'seq_len'"},
    {"# nothing\n", TOKMAP_ERROR_RUN, 0, "no 'seq_len'"},
    {"seq_len 8\nsource a b\n", TOKMAP_ERROR_RUN, 0, "no 'batch'"},
    {"seq_len 8\nbatch 2\n", TOKMAP_ERROR_RUN, 0, "no 'source'"},
    {BASE "seq_len 9\n", TOKMAP_ERROR_RUN, 5, "already set on line 1;"},
    {BASE "batch 2\n", TOKMAP_ERROR_RUN, 5, "already set on line 2;"},
    {BASE "\n\nseed 2\n", TOKMAP_ERROR_RUN, 7, "already set on line 3;"},
    {BASE "source web data/web\n", TOKMAP_ERROR_RUN, 5, "already set on line 4;"},
    {BASE "order shuffle\norder shuffle\n", TOKMAP_ERROR_RUN, 6, "already set on line 5;"},
    {BASE "steps 5\npasses 1\n", TOKMAP_ERROR_RUN, 6, "both end the run, and the other directive is on line 5"},
    {BASE "passes 5\nsteps 1\n", TOKMAP_ERROR_RUN, 6, "both end the run, and the other directive is on line 5"},
    {"seq_len 0\n", TOKMAP_ERROR_RUN, 1, "out of range; it must be 1 to 2147483648"},
    {"seq_len 2147483649\n", TOKMAP_ERROR_RUN, 1, "out of range"},
    {"lookahead 2147483649\n", TOKMAP_ERROR_RUN, 1, "out of range"},
    {"batch 0\n", TOKMAP_ERROR_RUN, 1, "out of range"},
    {"steps 0\n", TOKMAP_ERROR_RUN, 1, "out of range"},
    {"passes 0\n", TOKMAP_ERROR_RUN, 1, "out of range"},
    {"steps 9223372036854775809\n", TOKMAP_ERROR_RUN, 1, "out of range"},
    {"seed 18446744073709551616\n", TOKMAP_ERROR_RUN, 1, "not a number for 'seed'"},
    {"seed -1\n", TOKMAP_ERROR_RUN, 1, "not a number"},
    {"seed +1\n", TOKMAP_ERROR_RUN, 1, "not a number"},
    {"seed 0x10\n", TOKMAP_ERROR_RUN, 1, "not a number"},
    {"seq_len 8k\n", TOKMAP_ERROR_RUN, 1, "'8k' is not a number"},
    {"seq_len 8.0\n", TOKMAP_ERROR_RUN, 1, "not a number"},
    {"seq_len \"\"\n", TOKMAP_ERROR_RUN, 1, "not a number"},
    {"seq_len = 8\n", TOKMAP_ERROR_RUN, 1, "follow a space, without '='"},
    {"seq_len =\n", TOKMAP_ERROR_RUN, 1, "follow a space"},
    {"seq_len=8\n", TOKMAP_ERROR_RUN, 1, "follow a space; write 'seq_len TOKENS'"},
    {"seq_len: 8\n", TOKMAP_ERROR_RUN, 1, "follow a space"},
    {"seq_len\n", TOKMAP_ERROR_RUN, 1, "takes one word, but this line has 0"},
    {"seq_len 8 9\n", TOKMAP_ERROR_RUN, 1, "takes one word, but this line has 2"},
    {"\n\nseqlen 8\n", TOKMAP_ERROR_RUN, 3, "did you mean 'seq_len'?"},
    {"seq_length 8\n", TOKMAP_ERROR_RUN, 1, "did you mean 'seq_len'?"},
    {"SEQ_LEN 8\n", TOKMAP_ERROR_RUN, 1, "did you mean 'seq_len'?"},
    {"bach 8\n", TOKMAP_ERROR_RUN, 1, "did you mean 'batch'?"},
    {"batch_size 8\n", TOKMAP_ERROR_RUN, 1, "did you mean 'batch'?"},
    {"batch_size=8\n", TOKMAP_ERROR_RUN, 1, "did you mean 'batch'?"},
    {"pass 2\n", TOKMAP_ERROR_RUN, 1, "did you mean 'passes'?"},
    {"step 2\n", TOKMAP_ERROR_RUN, 1, "did you mean 'steps'?"},
    {"pa eod\n", TOKMAP_ERROR_RUN, 1, "did you mean 'pad'?"},
    {"epochs 2\n", TOKMAP_ERROR_RUN, 1, "did you mean 'passes'?"},
    {"skips 2..3\n", TOKMAP_ERROR_RUN, 1, "did you mean 'skip'?"},
    {"frobnicate\n", TOKMAP_ERROR_RUN, 1, "unknown directive 'frobnicate'; the directives are"},
    {"order random\n", TOKMAP_ERROR_RUN, 1, "'random' is not an order"},
    {"order\n", TOKMAP_ERROR_RUN, 1, "takes at least one word"},
    {"order shuffle 3\n", TOKMAP_ERROR_RUN, 1, "takes one word"},
    {"skip 3\n", TOKMAP_ERROR_RUN, 1, "not a range of steps"},
    {"skip 3..\n", TOKMAP_ERROR_RUN, 1, "not a range of steps"},
    {"skip ..3\n", TOKMAP_ERROR_RUN, 1, "not a range of steps"},
    {"skip 1...3\n", TOKMAP_ERROR_RUN, 1, "not a range of steps"},
    {"skip 3..3\n", TOKMAP_ERROR_RUN, 1, "B must be above A"},
    {"skip 4..3\n", TOKMAP_ERROR_RUN, 1, "B must be above A"},
    {"skip 0..9223372036854775809\n", TOKMAP_ERROR_RUN, 1, "the last step that any run can have"},
    {"source web\n", TOKMAP_ERROR_RUN, 1, "takes at least two words, but this line has 1"},
    {"source web data 0.5\n", TOKMAP_ERROR_RUN, 1, "'0.5' is not an option of a source"},
    {"source 1web data\n", TOKMAP_ERROR_RUN, 1, "not a valid name for a source"},
    {"source \"\" data\n", TOKMAP_ERROR_RUN, 1, "not a valid name for a source"},
    {"source we/b data\n", TOKMAP_ERROR_RUN, 1, "not a valid name for a source"},
    {"source web \"\"\n", TOKMAP_ERROR_RUN, 1, "empty word"},
    {"source aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa data\n", TOKMAP_ERROR_RUN, 1,
     "not a "
     "valid name"},
    {"source web \"data\n", TOKMAP_ERROR_RUN, 1, "add the closing quote"},
    {"source web \"data\\\n", TOKMAP_ERROR_RUN, 1, "add the closing quote"},
    {"source web \"data\"x\n", TOKMAP_ERROR_RUN, 1, "not followed by a space"},
    {"a b c d e f g h i j k l m n o p q r\n", TOKMAP_ERROR_RUN, 1, "more words"},
    {"seq_len 8\x01\n", TOKMAP_ERROR_RUN, 1, "control character (0x01)"},
    {"seq_len\r8\n", TOKMAP_ERROR_RUN, 1, "control character (0x0d)"},
    {BASE "plan p\n", TOKMAP_ERROR_RUN, 5, "belongs to the line of its source"},
};

static void refusals(void **state)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct run_spec spec;
        struct tokmap_error error = {0};
        enum tokmap_status status = read_text(&spec, refused[i].text, &error);
        if (status != refused[i].status || error.status != status || error.line != refused[i].line ||
            !strstr(error.message, refused[i].says) || strcmp(error.path, "some.run") != 0)
            fail_msg("\"%s\": %s, line %u: %s", refused[i].text, tokmap_status_name(status), error.line, error.message);
        assert_int_equal(read_text(&spec, refused[i].text, NULL), refused[i].status);
    }
}

static void zero_byte_and_size(void **state)
{
    struct run_spec spec;
    struct tokmap_error error = {0};
    assert_int_equal(run_text_read(&spec, "seq_len 8\nba\0ch 1\n", 18, NULL, &error), TOKMAP_ERROR_RUN);
    assert_int_equal(error.line, 2);
    char *long_text = malloc(RUN_TEXT_MOST + 1);
    assert_non_null(long_text);
    memset(long_text, '\n', RUN_TEXT_MOST + 1);
    assert_int_equal(run_text_read(&spec, long_text, RUN_TEXT_MOST + 1, NULL, &error), TOKMAP_ERROR_LIMIT);
    assert_int_equal(run_text_read(&spec, long_text, RUN_TEXT_MOST, NULL, &error), TOKMAP_ERROR_RUN);
    free(long_text);
}

/* A text that is cut anywhere is read or refused, and never read past its end (the address sanitizer checks that). */
static void cut_anywhere(void **state)
{
    static const char text[] =
        "# x\nsource web \"a \\\"b\" #\nseq_len 8\nskip 1..22\nskip 5..30\nbatch 3\norder sequential\n";
    for (size_t length = 0; length < sizeof text; length++) {
        char *exact = malloc(length ? length : 1);
        assert_non_null(exact);
        memcpy(exact, text, length);
        struct run_spec spec;
        if (run_text_read(&spec, exact, length, NULL, NULL) == TOKMAP_OK)
            run_spec_free(&spec);
        free(exact);
    }
}

/* ---- with a dataset ---- */

static struct made_dataset made; /* 1000 tokens */

static int make_dataset(void **state)
{
    made_dataset_new(&made, 1000, 0);
    return 0;
}

static int remove_dataset(void **state)
{
    made_dataset_remove(&made);
    return 0;
}

static struct tokmap_run *parse(const char *text)
{
    struct tokmap_run *run = NULL;
    struct tokmap_error error = {0};
    if (run_parse_in(&run, text, made.folder, &error))
        fail_msg("%s: %s", text, error.message);
    return run;
}

static struct tokmap_run_info info_of(const struct tokmap_run *run)
{
    struct tokmap_run_info info = TOKMAP_RUN_INFO_INIT;
    assert_int_equal(tokmap_run_info(run, &info), TOKMAP_OK);
    return info;
}

static void info(void **state)
{
    struct tokmap_run *run =
        parse("seq_len 10\nbatch 7\nseed 5\nsource web d\npasses 2\nskip 3..5\nskip 4..8\nskip 20..99\n");
    struct tokmap_run_info i = info_of(run);
    assert_int_equal(i.size, sizeof i);
    assert_int_equal(i.seq_len, 10);
    assert_int_equal(i.lookahead, 1);
    assert_int_equal(i.batch, 7);
    assert_int_equal(i.seed, 5);
    assert_int_equal(i.sources, 1);
    assert_int_equal(i.steps, 28); /* floor(2 * 99 / 7) */
    assert_int_equal(i.remainder, 2);
    assert_int_equal(i.delivered, 28 - 5 - 8);
    struct tokmap_source_info source = TOKMAP_SOURCE_INFO_INIT;
    assert_int_equal(tokmap_run_source(run, 0, &source), TOKMAP_OK);
    assert_string_equal(source.name, "web");
    assert_int_equal(source.windows, 99);
    assert_int_equal(source.tail, 10);
    assert_string_equal(source.data + strlen(source.data) - 2, "/d"); /* in the folder of the run */
    assert_int_equal(tokmap_run_source(run, 1, &source), TOKMAP_ERROR_RANGE);

    static const struct {
        uint64_t step, next, delivered;
    } steps[] = {{0, 0, 0},
                 {2, 2, 2},
                 {3, 8, 3},
                 {5, 8, 3},
                 {7, 8, 3},
                 {8, 8, 3},
                 {19, 19, 14},
                 {20, UINT64_MAX, 15},
                 {27, UINT64_MAX, 15},
                 {28, UINT64_MAX, 15}};
    for (size_t k = 0; k < sizeof steps / sizeof steps[0]; k++) {
        assert_true(run_next_step(run, steps[k].step) == steps[k].next);
        assert_int_equal(run_delivered_before(run, steps[k].step), steps[k].delivered);
        assert_int_equal(tokmap_run_delivers(run, steps[k].step), steps[k].next == steps[k].step);
        assert_int_equal(tokmap_run_rows(run, steps[k].step), steps[k].step < 28 ? 7 : 0);
    }
    tokmap_run_close(run);

    run = parse("seq_len 1000\nbatch 1\nlookahead 0\nsource web d\n");
    i = info_of(run);
    assert_true(i.steps == TOKMAP_FOREVER && i.delivered == TOKMAP_FOREVER);
    assert_int_equal(i.remainder, 0);
    assert_int_equal(tokmap_run_delivers(run, ((uint64_t)1 << 63) - 1), 1);
    assert_int_equal(tokmap_run_delivers(run, (uint64_t)1 << 63), 0);
    tokmap_run_close(run);
}

/* Random skips, compared with a table of all steps. */
static void skips_at_random(void **state)
{
    uint64_t random = 3;
    for (int trial = 0; trial < 300; trial++) {
        char text[2000], skipped[128] = {0};
        int used = snprintf(text, sizeof text, "seq_len 10\nbatch 1\nsource web d\nsteps 100\n");
        for (int k = 0; k < trial % 12; k++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            unsigned first = (unsigned)(random >> 33) % 110, count = 1 + (unsigned)(random >> 50) % 15;
            used += snprintf(text + used, sizeof text - (size_t)used, "skip %u..%u\n", first, first + count);
            for (unsigned s = first; s < first + count; s++)
                skipped[s] = 1;
        }
        struct tokmap_run *run = parse(text);
        uint64_t delivered = 0;
        for (uint64_t step = 0; step < 100; step++) {
            assert_int_equal(run_delivered_before(run, step), delivered);
            assert_int_equal(tokmap_run_delivers(run, step), !skipped[step]);
            uint64_t next = step;
            while (next < 100 && skipped[next])
                next++;
            assert_true(run_next_step(run, step) == (next < 100 ? next : TOKMAP_FOREVER));
            delivered += !skipped[step];
        }
        assert_int_equal(info_of(run).delivered, delivered);
        tokmap_run_close(run);
    }
}

static const struct {
    const char *text;
    uint32_t line;
    const char *says;
} out_of_range[] = {
    {"batch 2\nseq_len 1000\nsource web d\n", 2, "which has 1000 tokens; lower seq_len to 999 or less"},
    {"batch 2\nseq_len 1001\nlookahead 0\nsource web d\n", 2, "lower seq_len to 1000 or less"},
    {"batch 2\nseq_len 1\nlookahead 1000\nsource web d\n", 2, "use a larger dataset"},
    {"seq_len 10\nsource web d\nbatch 100\npasses 1\n", 3,
     "1 pass over 99 windows does not fill a global batch of 100"},
    {"seq_len 10\nsource web d\nbatch 199\npasses 2\n", 3, "2 passes over 99 windows do not fill"},
    {"seq_len 999\nsource web d\nbatch 2\npasses 1\n", 3, "1 pass over 1 window does not fill"},
    {"seq_len 10\nsource web d\nbatch 2147483648\nsteps 4294967297\n", 4, "lower steps to 4294967296"},
    {"seq_len 10\nsource web d\nbatch 1\npasses 100000000000000000\n", 4, "more than 2^63 rows"},
};

static void ranges(void **state)
{
    for (size_t i = 0; i < sizeof out_of_range / sizeof out_of_range[0]; i++) {
        struct tokmap_run *run = (struct tokmap_run *)&run;
        struct tokmap_error error = {0};
        enum tokmap_status status = run_parse_in(&run, out_of_range[i].text, made.folder, &error);
        if (status != TOKMAP_ERROR_RANGE || run || error.line != out_of_range[i].line ||
            !strstr(error.message, out_of_range[i].says))
            fail_msg("\"%s\": %s, line %u: %s", out_of_range[i].text, tokmap_status_name(status), error.line,
                     error.message);
    }
    tokmap_run_close(parse("seq_len 999\nbatch 2\nsource web d\n"));
    tokmap_run_close(parse("seq_len 10\nsource web d\nbatch 2147483648\nsteps 4294967296\n"));
    tokmap_run_close(parse("seq_len 10\nsource web d\nbatch 99\npasses 1\n"));
}

static void files(void **state)
{
    char folder[530], path[540], here[1000];
    (void)snprintf(folder, sizeof folder, "%s/runs", made.folder);
    (void)snprintf(path, sizeof path, "%s/a.run", folder);
    assert_int_equal(mkdir(folder, 0777), 0);
    struct tokmap_run *run = NULL;
    struct tokmap_error error = {0};
    assert_int_equal(tokmap_run_open(&run, path, NULL, &error), TOKMAP_ERROR_NOT_FOUND);
    assert_string_equal(error.path, path);
    assert_int_equal(tokmap_run_open(&run, folder, NULL, &error), TOKMAP_ERROR_FORMAT);

    /* Paths are relative to the folder of the run file, wherever the process runs. */
    file_write_text(path, "seq_len 10\nbatch 2\nsource web ../d\n");
    assert_int_equal(tokmap_run_open(&run, path, NULL, &error), TOKMAP_OK);
    tokmap_run_close(run);
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(tokmap_run_open(&run, "a.run", NULL, &error), TOKMAP_OK);
    tokmap_run_close(run);
    assert_int_equal(chdir(here), 0);

    char text[700];
    (void)snprintf(text, sizeof text, "seq_len 10\nbatch 2\nsource web \"%s\"\n", made.name);
    file_write_text(path, text);
    assert_int_equal(tokmap_run_open(&run, path, NULL, &error), TOKMAP_OK);
    tokmap_run_close(run);

    file_write_text(path, "seq_len 10\nbatch 2\nsource web d\n");
    assert_int_equal(tokmap_run_open(&run, path, NULL, &error), TOKMAP_ERROR_NOT_FOUND);
    assert_null(run);
    assert_string_equal(error.path, path);
    assert_int_equal(error.line, 3);
    assert_non_null(strstr(error.message, "runs/d'"));

    file_write_text(path, "seq_len 10\nbatch x\n");
    assert_int_equal(tokmap_run_open(&run, path, NULL, &error), TOKMAP_ERROR_RUN);
    assert_string_equal(error.path, path);
    assert_int_equal(error.line, 2);
    file_write_text(path, "seq_len 10000\nbatch 1\nsource web ../d\n");
    assert_int_equal(tokmap_run_open(&run, path, NULL, &error), TOKMAP_ERROR_RANGE);
    assert_string_equal(error.path, path);
    assert_int_equal(error.line, 1);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void arguments(void **state)
{
    struct tokmap_run *run = NULL;
    struct tokmap_error error = {0};
    const struct run_values base = {
        .data = made.name, .seq_len = 10, .lookahead = 1, .batch = 7, .steps = TOKMAP_FOREVER, .passes = 1};
    struct run_values options;
    struct tokmap_run_options of_text = TOKMAP_RUN_OPTIONS_INIT;
    assert_int_equal(run_of_values(&run, &base, &error), TOKMAP_OK);
    struct tokmap_source_info source = TOKMAP_SOURCE_INFO_INIT;
    assert_int_equal(tokmap_run_source(run, 0, &source), TOKMAP_OK);
    assert_string_equal(source.name, "data");
    assert_int_equal(info_of(run).steps, 14);
    assert_int_equal(info_of(run).lookahead, 1);
    tokmap_run_close(run);
    tokmap_run_close(NULL);

#define REFUSED(change, expected, text)                                                                                \
    do {                                                                                                               \
        options = base;                                                                                                \
        change;                                                                                                        \
        assert_int_equal(run_of_values(&run, &options, &error), expected);                                             \
        assert_null(run);                                                                                              \
        assert_non_null(strstr(error.message, text));                                                                  \
        assert_int_equal(error.line, 0);                                                                               \
    } while (0)
    REFUSED(options.data = NULL, TOKMAP_ERROR_ARGUMENT, "data is missing");
    REFUSED(options.seq_len = 0, TOKMAP_ERROR_ARGUMENT, "seq_len is 0");
    REFUSED(options.batch = 0, TOKMAP_ERROR_ARGUMENT, "batch is 0");
    REFUSED(options.batch = RUN_BATCH_MOST + 1, TOKMAP_ERROR_ARGUMENT, "batch is 2147483649");
    REFUSED(options.lookahead = UINT64_MAX, TOKMAP_ERROR_ARGUMENT, "lookahead is");
    REFUSED(options.steps = 4, TOKMAP_ERROR_ARGUMENT, "are both set");
    REFUSED(options.passes = 0, TOKMAP_ERROR_ARGUMENT, "passes is 0");
    REFUSED(options.order = (enum tokmap_order_kind)7, TOKMAP_ERROR_ARGUMENT, "order is 7");
    REFUSED(options.seq_len = 1000, TOKMAP_ERROR_RANGE, "lower seq_len to 999");
    of_text.size += 8;
    assert_int_equal(tokmap_run_parse(&run, "", &of_text, &error), TOKMAP_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "tokmap_run_options.size"));
    of_text.size -= 8;
    of_text.reading = (enum tokmap_reading)7;
    assert_int_equal(tokmap_run_open(&run, "x", &of_text, &error), TOKMAP_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "reading is 7; set it to auto"));
    assert_string_equal(error.field, "reading");
    assert_int_equal(tokmap_run_open(NULL, "x", NULL, NULL), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(tokmap_run_open(&run, NULL, NULL, NULL), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(tokmap_run_parse(&run, NULL, NULL, NULL), TOKMAP_ERROR_ARGUMENT);

    /* The structs of an older caller. */
    of_text.size = offsetof(struct tokmap_run_options, reading); /* whose value would be refused */
    char text[5000];
    (void)snprintf(text, sizeof text, "seq_len 10\nbatch 7\nsource data \"%s\"\npasses 1\n", made.name);
    assert_int_equal(tokmap_run_parse(&run, text, &of_text, &error), TOKMAP_OK);
    struct tokmap_run_info old = {.size = offsetof(struct tokmap_run_info, sources)};
    old.sources = 77;
    assert_int_equal(tokmap_run_info(run, &old), TOKMAP_OK);
    assert_int_equal(old.sources, 77);
    assert_int_equal(old.batch, 7);
    old.size = sizeof old + 1;
    assert_int_equal(tokmap_run_info(run, &old), TOKMAP_ERROR_ARGUMENT);
    tokmap_run_close(run);
}

static void rank_rows(void **state)
{
    for (uint64_t rows = 1; rows <= 40; rows++)
        for (uint64_t world = 1; world <= rows; world++) {
            uint64_t next = 0, first, count;
            for (uint64_t rank = 0; rank < world; rank++) {
                run_rank_rows(rows, rank, world, &first, &count);
                assert_int_equal(first, next);
                assert_true(count >= rows / world && count <= (rows + world - 1) / world);
                next += count;
            }
            assert_int_equal(next, rows);
        }
    uint64_t first, count;
    run_rank_rows((uint64_t)1 << 31, ((uint64_t)1 << 31) - 1, (uint64_t)1 << 31, &first, &count);
    assert_true(first == ((uint64_t)1 << 31) - 1 && count == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_lines),         cmocka_unit_test(everything),   cmocka_unit_test(refusals),
        cmocka_unit_test(zero_byte_and_size), cmocka_unit_test(cut_anywhere), cmocka_unit_test(info),
        cmocka_unit_test(skips_at_random),    cmocka_unit_test(ranges),       cmocka_unit_test(files),
        cmocka_unit_test(arguments),          cmocka_unit_test(rank_rows),
    };
    return cmocka_run_group_tests_name("run_parse", tests, make_dataset, remove_dataset);
}
