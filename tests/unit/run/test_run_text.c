/* SPDX-License-Identifier: MIT */
/* The text of a run with several sources and phases: what is read, what is refused and why, and the text printed from
 * the values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "run/run_text.h"

static void read_good(struct run_spec *spec, const char *text)
{
    struct tokmap_error error = {0};
    if (run_text_read(spec, text, strlen(text), "some.run", &error) != TOKMAP_OK)
        fail_msg("\"%.400s\": line %u: %s", text, error.line, error.message);
}

static const char full[] = "phase    0       web 0.80  wiki 0.10  code .1\n" /* sources may come later */
                           "seq_len  8192\n"
                           "batch    1024\n"
                           "seed     1234\n"
                           "source   web   data/web#docs=0..99%\n"
                           "source   wiki  data/wiki  epochs<=4\n"
                           "source   code  \"my data\"  plan data/code.plan epochs<=1 # packed\n"
                           "phase    150000  batch 2048 web 0.40  wiki 0.5  code 0\n"
                           "phase    160000  seq_len 16384\n"
                           "phase    170000  natural seq_len 32768 batch 16\n"
                           "phase    180000  web natural code natural\n"
                           "skip     12345..12360\n"
                           "passes   2 of wiki\n"
                           "order    blocks 64 16\n"
                           "stride   4096\n"
                           "tail     pad\n"
                           "validation val data/web.val\n"
                           "validation more \"other val#docs=0..5\"\n"
                           "pad      7\n";

static void everything(void **state)
{
    struct run_spec spec;
    read_good(&spec, full);
    assert_int_equal(spec.source_count, 3);
    assert_string_equal(spec.sources[0].data, "data/web#docs=0..99%");
    assert_null(spec.sources[0].plan);
    assert_int_equal(spec.sources[0].epochs_most, 0);
    assert_int_equal(spec.sources[1].epochs_most, 4);
    assert_int_equal(spec.sources[1].line, 6);
    assert_string_equal(spec.sources[2].name, "code");
    assert_string_equal(spec.sources[2].data, "my data");
    assert_string_equal(spec.sources[2].plan, "data/code.plan");
    assert_int_equal(spec.sources[2].epochs_most, 1);
    assert_int_equal(spec.phase_count, 5);
    static const struct {
        uint64_t step, line, batch, seq_len;
        enum weight_kind kind;
        size_t weights;
        uint64_t amounts[3];
    } phases[] = {{0, 1, 0, 0, WEIGHTS_SHARES, 3, {8, 1, 1}},
                  {150000, 8, 2048, 0, WEIGHTS_SHARES, 3, {4, 5, 0}},
                  {160000, 9, 0, 16384, WEIGHTS_NONE, 0, {0}},
                  {170000, 10, 16, 32768, WEIGHTS_NATURAL, 0, {0}},
                  {180000, 11, 0, 0, WEIGHTS_NATURAL, 2, {0, 0, 0}}};
    for (size_t i = 0; i < spec.phase_count; i++) {
        const struct phase_line *phase = &spec.phases[i];
        assert_int_equal(phase->step, phases[i].step);
        assert_int_equal(phase->line, phases[i].line);
        assert_int_equal(phase->batch, phases[i].batch);
        assert_int_equal(phase->seq_len, phases[i].seq_len);
        assert_int_equal(phase->kind, phases[i].kind);
        assert_int_equal(phase->weight_count, phases[i].weights);
        for (size_t k = 0; k < phase->weight_count; k++)
            assert_int_equal(phase->weights[k].amount, phases[i].amounts[k]);
    }
    assert_int_equal(spec.phases[0].decimals, 1);
    assert_int_equal(spec.phases[4].weights[1].source, 2);
    assert_int_equal(spec.passes, 2);
    assert_int_equal(spec.passes_of, 1);
    assert_int_equal(spec.order, TOKMAP_BLOCKS);
    assert_int_equal(spec.blocks, 64);
    assert_int_equal(spec.span, 16);
    assert_int_equal(spec.stride, 4096);
    assert_true(spec.tail_pad);
    assert_int_equal(spec.pad_id, 7);
    assert_int_equal(spec.lines[RUN_SOURCE], 5);
    assert_int_equal(spec.lines[RUN_PHASE], 1);
    run_spec_free(&spec);

    read_good(&spec, "seq_len 8\nbatch 2\nsource natural d\ntail drop\npasses 2 of natural\n");
    assert_true(spec.pad_id == TOKMAP_NO_ID && !spec.tail_pad && spec.stride == 0 && spec.passes_of == 0);
    assert_int_equal(spec.phase_count, 0);
    run_spec_free(&spec);
    read_good(&spec, "seq_len 8\nbatch 2\nsource a d\nphase 100 batch 4\npasses 2\n");
    assert_true(spec.phase_count == 1 && spec.phases[0].kind == WEIGHTS_NONE && spec.passes_of == SIZE_MAX);
    run_spec_free(&spec);
}

static void printed(void **state)
{
    struct run_spec spec;
    read_good(&spec, full);
    char *text = run_spec_print(&spec);
    assert_string_equal(text, "seq_len  8192\n"
                              "batch    1024\n"
                              "seed     1234\n"
                              "order    blocks 64 16\n"
                              "stride   4096\n"
                              "tail     pad\n"
                              "pad      7\n"
                              "source   web  data/web#docs=0..99%\n"
                              "source   wiki data/wiki epochs<=4\n"
                              "source   code \"my data\" plan data/code.plan epochs<=1\n"
                              "validation val data/web.val\n"
                              "validation more \"other val#docs=0..5\"\n"
                              "phase    0 web 0.8 wiki 0.1 code 0.1\n"
                              "phase    150000 web 0.4 wiki 0.5 code 0 batch 2048\n"
                              "phase    160000 seq_len 16384\n"
                              "phase    170000 natural batch 16 seq_len 32768\n"
                              "phase    180000 web natural code natural\n"
                              "skip     12345..12360\n"
                              "passes   2 of wiki\n");
    run_spec_free(&spec);
    free(text);

    char letter[] = "x", two_lines[] = "a\nb";
    /* Names that need quotes, and one that no text can hold. */
    static char names[][8] = {"#a", "\"a", "a b", "a\tb", "a#b", "\\", " \\\" #", "a\\\"b c", "\xef\xbb\xbf", "~"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct source_line source = {letter, names[i], names[i], 3, 0};
        struct run_spec made = {.seq_len = 1, .batch = 1, .steps = TOKMAP_FOREVER, .passes = TOKMAP_FOREVER};
        made.sources = &source;
        made.source_count = 1;
        made.passes_of = SIZE_MAX;
        made.pad_id = TOKMAP_NO_ID;
        assert_non_null(text = run_spec_print(&made));
        read_good(&spec, text);
        assert_string_equal(spec.sources[0].data, names[i]);
        assert_string_equal(spec.sources[0].plan, names[i]);
        assert_int_equal(spec.lookahead, 0);
        run_spec_free(&spec);
        free(text);
        source.data = two_lines;
        assert_null(run_spec_print(&made));
    }
}

/* ---- refusals ---- */

#define ONE "seq_len 8\nbatch 2\nsource web w\n" /* lines 1 to 3 */
#define TWO ONE "source wiki k\n"                /* line 4 */
#define MIX TWO "phase 0 web 1 wiki 1\n"         /* line 5 */

static const struct {
    const char *text;
    uint32_t line;
    const char *says;
} refused[] = {
    /* sources */
    {TWO, 4, "the run has 2 sources, but no phase gives them weights; add a line such as 'phase 0 web 1 wiki 1' or"},
    {TWO "source c c\n", 4, "'phase 0 web 1 wiki 1 c 1'"},
    {TWO "source c c\nsource d d\n", 4, "the run has 4 sources"},
    {TWO "phase 3 web 1 wiki 1\n", 5, "no phase begins at step 0; add a line such as 'phase 0 web 1 wiki 1'"},
    {TWO "source a x\nsource web z\nphase 0 natural\n", 6, "source 'web' is already set on line 3; remove one"},
    {ONE "source b x\nsource a x\nsource b x\nsource a x\nphase 0 natural\n", 6, "'b' is already set on line 4"},
    {ONE "source natural x\nphase 0 natural\n", 4, "cannot have the name 'natural'"},
    {ONE "source batch x\nphase 0 web 1\n", 4, "cannot have the name 'batch'"},
    {ONE "source seq_len x\nphase 0 web 1\n", 4, "rename it"},
    {"seq_len 8\nbatch 2\nsource natural x\nphase 5 batch 3\n", 3, "cannot have the name 'natural'"},
    {TWO "phase 0 web 1\n", 4, "no phase names source 'wiki'; give it a weight (0 if it is not to be drawn)"},
    {ONE "validation web v\n", 4, "the name 'web' is already that of line 3"},
    {ONE "validation v a\nvalidation w b\nvalidation v c\n", 6, "the name 'v' is already that of line 4"},
    {ONE "validation v a\nvalidation v b\nvalidation web c\n", 5, "the name 'v' is already that of line 4"},
    {ONE "validation v\n", 4, "takes two words, but this line has 1; write 'validation NAME DATASET'"},
    {ONE "validation v a b\n", 4, "takes two words, but this line has 3"},
    {ONE "validation 1v a\n", 4, "not a valid name for a validation set"},
    {ONE "validation v \"\"\n", 4, "the dataset of validation set 'v' is an empty word"},
    {ONE "validation v a\nphase 0 v 1\n", 5, "'v' is the validation set of line 4, which no step draws"},
    {ONE "validation v a\npasses 2 of v\n", 5, "'v' is the validation set of line 4"},
    {ONE "val v a\n", 4, "did you mean 'validation'"},
    {"source a b\nbatch 4\nseq_len 1K\n", 3, "write all digits, such as 1024"},
    {"source web w epochs<=0\n", 1, "epochs<=0 would never draw source 'web'"},
    {"source web w epochs<=\n", 1, "write 'epochs<=N' as one word"},
    {"source web w epochs<=3k\n", 1, "does not limit the epochs of source 'web'"},
    {"source web w epochs <= 3\n", 1, "write 'epochs<=N' as one word"},
    {"source web w epochs=3\n", 1, "write 'epochs<=N' as one word"},
    {"source web w epochs<=3 epochs<=3\n", 1, "limits the epochs of source 'web' twice"},
    {"source web w plan\n", 1, "'plan' must be followed by the file"},
    {"source web w plan \"\"\n", 1, "'plan' must be followed by the file"},
    {"source web w plan p plan q\n", 1, "names two plans"},
    {"source web w x\n", 1, "'x' is not an option of a source; write 'source NAME DATASET [plan FILE] [epochs<=N]'"},
    {"source web w 50%\n", 1, "weights belong in phase lines"},
    {"epochs<=3 web\n", 1, "belongs to the line of its source"},
    /* phases: steps */
    {ONE "phase\n", 4, "takes at least one word"},
    {ONE "phase web 1\n", 4, "'web' is not the step at which the phase begins"},
    {ONE "phase 1k web 1\n", 4, "'1k' is not the step"},
    {ONE "phase 9223372036854775808 web 1\n", 4, "beyond 9223372036854775807"},
    {MIX "phase 0 web 1\n", 6, "the phase on line 5 begins at step 0 too"},
    {MIX "phase 7 web 1\nphase 6 web 1\n", 7, "before the phase on line 6, which begins at step 7; order the lines"},
    {ONE "phase 5\n", 4, "the phase changes nothing"},
    {ONE "phase 0 batch 4\n", 4, "the run begins with its 'batch' directive"},
    {ONE "phase 0 web 1 seq_len 4\n", 4, "the run begins with its 'seq_len' directive"},
    {ONE "phase 1 batch 4 batch 5\n", 4, "sets 'batch' twice"},
    {ONE "phase 1 batch 0\n", 4, "batch 0 is out of range; it must be 1 to 2147483648"},
    {ONE "phase 1 seq_len 2147483649\n", 4, "out of range"},
    {ONE "phase 1 seq_len\n", 4, "'' is not a number for 'seq_len'"},
    {ONE "phase 1 batch 4k\n", 4, "'4k' is not a number for 'batch'"},
    /* phases: names and weights */
    {MIX "phase 9 wed 1\n", 6, "the run has no source 'wed'; did you mean 'web'?"},
    {MIX "phase 9 wikis 1\n", 6, "did you mean 'wiki'?"},
    {MIX "phase 9 books 1\n", 6, "no source 'books'; correct the name, or add a line 'source books DATASET'"},
    {MIX "phase 9 web 1 web 1\n", 6, "names source 'web' twice"},
    {MIX "phase 9 1 web\n", 6, "'1' cannot be the name of a source"},
    {MIX "phase 9 web=1\n", 6, "'web=1' cannot be the name of a source"},
    {MIX "phase 9 web\n", 6, "'' is not a weight for source 'web'; write its weight after its name"},
    {MIX "phase 9 web wiki 1\n", 6, "'wiki' is not a weight for source 'web'; write a share"},
    {MIX "phase 9 web 50%\n", 6, "leave out the percent sign"},
    {MIX "phase 9 web 300B\n", 6, "for a number of tokens write tokens= before it"},
    {MIX "phase 9 web -1\n", 6, "'-1' is not a weight"},
    {MIX "phase 9 web 1e3\n", 6, "'1e3' is not a weight"},
    {MIX "phase 9 web .\n", 6, "'.' is not a weight"},
    {MIX "phase 9 web 1.2.3\n", 6, "'1.2.3' is not a weight"},
    {MIX "phase 9 web 0.0000000001\n", 6, "at most 9 digits after it"},
    {MIX "phase 9 web 99999999999999999999\n", 6, "below 2^63"},
    {MIX "phase 9 web 9223372036854775807 wiki 1\n", 6, "sum to more than 2^63"},
    {MIX "phase 9 web 9223372036.854775807 wiki 0.000000001\n", 6, "multiplied by 10^9"},
    {MIX "phase 9 web 10000000000 wiki 0.000000001\n", 6, "sum to more than 2^63"},
    {MIX "phase 9 web 0 wiki 0.00\n", 6, "all weights of the phase are 0"},
    {MIX "phase 9 web tokens=0\n", 6, "all weights of the phase are 0"},
    {MIX "phase 9 web 1 wiki natural\n", 6, "source 'wiki' has 'natural', but 'web' before it has a share"},
    {MIX "phase 9 web tokens=5 wiki 1\n", 6, "source 'wiki' has a share, but 'web' before it has tokens"},
    {MIX "phase 9 natural web 1\n", 6, "'natural' stands for all sources, but 'web' follows"},
    {MIX "phase 9 web 1 natural\n", 6, "alone it stands for all sources"},
    {MIX "phase 9 natural natural\n", 6, "alone it stands for all sources"},
    {MIX "phase 9 web tokens=5x\n", 6, "'tokens=5x' is not a number of tokens"},
    {MIX "phase 9 web tokens=1.5\n", 6, "write a whole number below 2^63"},
    {MIX "phase 9 web tokens=0.0001K\n", 6, "write a whole number"},
    {MIX "phase 9 web tokens=99999999T\n", 6, "below 2^63"},
    {MIX "phase 9 web tokens=\n", 6, "is not a number of tokens"},
    {MIX "phase 9 web tokens=B\n", 6, "is not a number of tokens"},
    /* phases: tokens fill the phase. A step has 16 tokens. */
    {TWO "phase 0 web tokens=100 wiki tokens=60\n", 5, "add a line 'steps 10', which fits their sum of 160"},
    {TWO "phase 0 web tokens=100 wiki tokens=60\nsteps 11\n", 5,
     "the tokens sum to 160, but the phase, steps 0 to 10, has 176"},
    {TWO "steps 9\nphase 0 web tokens=100 wiki tokens=60\n", 6,
     "steps 0 to 8, has 144; they must agree within one step, so change the tokens or the step at which it ends, or "
     "write weights"},
    {TWO "phase 0 web tokens=100 wiki tokens=60\nphase 9 natural\n", 5, "steps 0 to 8, has 144"},
    {TWO "phase 0 natural\nphase 5 batch 4\nphase 9 web tokens=320\nphase 14 batch 8 seq_len 4\nsteps 16\n", 7,
     "the tokens sum to 320, but the phase, steps 9 to 15, has 224"},
    /* numbers that must agree */
    {ONE "stride 9\n", 4, "stride 9 is above seq_len 8"},
    {ONE "stride 8\nphase 5 seq_len 4\n", 4, "above the seq_len 4 of the phase on line 5"},
    {ONE "stride 0\n", 4, "out of range"},
    {ONE "order blocks\n", 4, "write 'order blocks W SPAN'"},
    {ONE "order blocks 64\n", 4, "takes two numbers"},
    {ONE "order blocks 0 3\n", 4, "blocks W 0 is out of range; it must be 1 to"},
    {ONE "order blocks 3 2147483649\n", 4, "blocks SPAN 2147483649 is out of range"},
    {ONE "order blocks 3 x\n", 4, "'x' is not a number for 'blocks SPAN'"},
    {ONE "tail fill\n", 4, "'fill' is not a kind of tail; write 'tail pad|drop'"},
    {ONE "pad 4294967296\n", 4, "pad 4294967296 is out of range; it must be 0 to 4294967295"},
    {MIX "passes 1\n", 6, "needs natural weights, but the phase on line 5 has shares; write 'passes 1 of web', or use"},
    {MIX "passes 1 of\n", 6, "write 'passes NUMBER [of SOURCE]'"},
    {MIX "passes 1 in web\n", 6, "write 'passes NUMBER [of SOURCE]'"},
    {MIX "passes 1 of weeb\n", 6, "did you mean 'web'?"},
    {MIX "steps 1.5M\n", 6, "'1.5M' is not a number for 'steps'"},
};

static void refusals(void **state)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct run_spec spec;
        struct tokmap_error error = {0};
        const char *text = refused[i].text;
        enum tokmap_status status = run_text_read(&spec, text, strlen(text), "some.run", &error);
        if (status != TOKMAP_ERROR_RUN || error.line != refused[i].line || !strstr(error.message, refused[i].says) ||
            strcmp(error.path, "some.run") != 0)
            fail_msg("\"%s\": %s, line %u: %s", text, tokmap_status_name(status), error.line, error.message);
        assert_int_equal(run_text_read(&spec, text, strlen(text), NULL, NULL), TOKMAP_ERROR_RUN);
    }
}

/* ---- weights in tokens ---- */

static const struct {
    const char *text;
    int good;
} tokens[] = {
    {TWO "phase 0 web tokens=100 wiki tokens=60\nsteps 10\n", 1},
    {TWO "phase 0 web tokens=100 wiki tokens=75\nsteps 10\n", 1}, /* 15 more, less than a step */
    {TWO "phase 0 web tokens=100 wiki tokens=76\nsteps 10\n", 0},
    {TWO "phase 0 web tokens=100 wiki tokens=45\nsteps 10\n", 1},
    {TWO "phase 0 web tokens=100 wiki tokens=44\nsteps 10\n", 0},
    {TWO "phase 0 web tokens=0.1K wiki tokens=60\nphase 10 natural\n", 1},
    /* The batch and the length change while the mixture continues: 5 steps of 16, then 5 of 4 rows of 16 tokens. */
    {TWO "phase 0 web tokens=320 wiki tokens=80\nphase 5 batch 4 seq_len 16\nphase 10 natural\n", 1},
    {TWO "phase 0 web tokens=320 wiki tokens=144\nphase 5 batch 4 seq_len 16\nphase 10 natural\n", 0},
    /* The run ends inside the phase, and before another. */
    {TWO "phase 0 web tokens=100 wiki tokens=60\nphase 20 web tokens=7\nsteps 10\n", 1},
    {TWO "phase 0 web tokens=9223372036854775807\nphase 576460752303423488 wiki natural\n", 1},
};

static void tokens_fill_a_phase(void **state)
{
    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
        struct run_spec spec;
        struct tokmap_error error = {0};
        enum tokmap_status status = run_text_read(&spec, tokens[i].text, strlen(tokens[i].text), NULL, &error);
        if (status != (tokens[i].good ? TOKMAP_OK : TOKMAP_ERROR_RUN))
            fail_msg("\"%s\": line %u: %s", tokens[i].text, error.line, error.message);
        if (!status)
            run_spec_free(&spec);
    }
    struct run_spec spec;
    static const struct {
        const char *word;
        uint64_t tokens;
    } sizes[] = {{"1500", 1500},       {"1.5k", 1500},         {"1.5K", 1500},          {"2M", 2000000},
                 {"0.25G", 250000000}, {"300B", 300000000000}, {"1.5T", 1500000000000}, {".000000000001T", 1}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char text[200];
        (void)snprintf(text, sizeof text, "seq_len 1\nbatch 1\nsource a d\nphase 0 a tokens=%s\nsteps %llu\n",
                       sizes[i].word, (unsigned long long)sizes[i].tokens);
        read_good(&spec, text);
        assert_int_equal(spec.phases[0].weights[0].amount, sizes[i].tokens);
        run_spec_free(&spec);
    }
}

/* ---- many ---- */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* 10,000 sources and 40 phases of 20,000 words, forwards and backwards in the order of the sources. A parser that looks
 * a name up by comparing it with each source would need 4 * 10^9 comparisons. */
static void many_sources(void **state)
{
    enum { SOURCES = 10000, PHASES = 40 };
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    assert_non_null(file);
    fputs("seq_len 8\nbatch 2\n", file);
    for (unsigned i = 0; i < SOURCES; i++)
        fprintf(file, "source s%u data/s%u\n", i, i);
    for (unsigned p = 0; p < PHASES; p++) {
        fprintf(file, "phase %u", p);
        for (unsigned i = 0; i < SOURCES; i++)
            fprintf(file, " s%u 0.%u", p % 2 ? i : SOURCES - 1 - i, i + 1);
        fputs("\n", file);
    }
    assert_int_equal(fclose(file), 0);
    struct run_spec spec;
    const double begin = seconds();
    read_good(&spec, text);
    const double took = seconds() - begin;
    assert_int_equal(spec.source_count, SOURCES);
    assert_int_equal(spec.phase_count, PHASES);
    for (size_t p = 0; p < PHASES; p++)
        for (size_t i = 0; i < SOURCES; i++)
            assert_int_equal(spec.phases[p].weights[i].source, p % 2 ? i : SOURCES - 1 - i);
    char *again = run_spec_print(&spec);
    assert_non_null(again);
    struct run_spec read_again;
    read_good(&read_again, again);
    char *twice = run_spec_print(&read_again);
    assert_string_equal(again, twice);
    run_spec_free(&read_again);
    run_spec_free(&spec);
    free(again);
    free(twice);
    free(text);
    print_message("%d sources, %d phases of %d words: %.0f ms\n", SOURCES, PHASES, 2 * SOURCES, 1e3 * took);
    assert_true(took < 20);
}

/* ---- random runs ---- */

static uint64_t random_state = 1;

static unsigned below(unsigned bound)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((random_state >> 33) % bound);
}

static void write_random(FILE *file)
{
    const unsigned sources = 1 + below(4);
    fprintf(file, "seq_len %u\nbatch %u\n", 100 + below(100), 1 + below(50));
    for (unsigned i = 0; i < sources; i++) {
        fprintf(file, "source s%u data/%u", i, below(9));
        fputs(below(2) ? " plan \"x y\"" : "", file);
        if (below(2))
            fprintf(file, " epochs<=%u", 1 + below(9));
        fputs("\n", file);
    }
    if (below(2))
        fprintf(file, "stride %u\n", 1 + below(20));
    if (below(2))
        fprintf(file, "order %s\n", below(2) ? "sequential" : "blocks 3 4");
    fprintf(file, "phase 0 natural\n");
    unsigned step = 1;
    for (unsigned phases = below(5); phases > 0; phases--, step += 1 + below(9)) {
        fprintf(file, "phase %u seq_len %u", step, 20 + below(200));
        const unsigned natural = below(3);
        for (unsigned i = 0; i < sources; i++) {
            if (!natural)
                fprintf(file, " s%u natural", i);
            else if (i == 0 || below(2))
                fprintf(file, " s%u %u.%u0", i, 1 + below(3), below(1000));
        }
        fputs("\n", file);
    }
    if (below(2))
        fprintf(file, "passes %u of s%u\n", 1 + below(9), below(sources));
    else if (below(2))
        fprintf(file, "skip %u..%u\nsteps %u\n", step, step + 3, step + 9);
}

/* Printing what was read, and reading what was printed, loses nothing. */
static void random_runs(void **state)
{
    for (int trial = 0; trial < 2000; trial++) {
        char *text = NULL;
        size_t bytes = 0;
        FILE *file = open_memstream(&text, &bytes);
        assert_non_null(file);
        write_random(file);
        assert_int_equal(fclose(file), 0);
        struct run_spec spec, again;
        read_good(&spec, text);
        char *printed_once = run_spec_print(&spec);
        assert_non_null(printed_once);
        read_good(&again, printed_once);
        char *printed_twice = run_spec_print(&again);
        assert_string_equal(printed_once, printed_twice);
        assert_int_equal(spec.phase_count, again.phase_count);
        for (size_t i = 0; i < spec.phase_count; i++) {
            assert_int_equal(spec.phases[i].decimals, again.phases[i].decimals);
            assert_int_equal(spec.phases[i].weight_count, again.phases[i].weight_count);
            for (size_t k = 0; k < spec.phases[i].weight_count; k++)
                assert_int_equal(spec.phases[i].weights[k].amount, again.phases[i].weights[k].amount);
        }
        run_spec_free(&spec);
        run_spec_free(&again);
        free(printed_once);
        free(printed_twice);
        free(text);
    }
}

/* A text that is cut anywhere is read or refused, and never read past its end (the address sanitizer checks that). */
static void cut_anywhere(void **state)
{
    for (size_t length = 0; length < sizeof full; length++) {
        char *exact = malloc(length ? length : 1);
        assert_non_null(exact);
        memcpy(exact, full, length);
        struct run_spec spec;
        if (run_text_read(&spec, exact, length, NULL, NULL) == TOKMAP_OK)
            run_spec_free(&spec);
        free(exact);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything),          cmocka_unit_test(printed),      cmocka_unit_test(refusals),
        cmocka_unit_test(tokens_fill_a_phase), cmocka_unit_test(many_sources), cmocka_unit_test(random_runs),
        cmocka_unit_test(cut_anywhere),
    };
    return cmocka_run_group_tests_name("run_text", tests, NULL, NULL);
}
