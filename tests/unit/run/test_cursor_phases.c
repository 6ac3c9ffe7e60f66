/* SPDX-License-Identifier: MIT */
/*
 * Cursors of runs with mixtures and phases: golden values that tests/reference/cursor_reference.py computed, which are
 * frozen like those of test_cursor.c; what may be edited after a step without changing its cursor; and the kinds that
 * an edit of the past is refused with.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "run/past.h"
#include "tokmap/tokmap.h"

#define WEB "source web synthetic:vocab=7,tokens=500\n"
#define WIKI "source wiki synthetic:vocab=7,tokens=300,seed=1\n"
#define CODE "source code synthetic:vocab=7,tokens=90,seed=2\n"
#define RARE "source rare synthetic:vocab=7,tokens=80,seed=3\n"

static const char mixed[] =
    "seq_len 8\nlookahead 2\nbatch 6\nseed 7\norder blocks 4 2\nstride 4\ntail pad\npad 3\n" RARE WEB WIKI CODE
    "skip 3..5\nphase 0 wiki 0.19 web 0.80 rare 0.01\nphase 10 batch 4 seq_len 16\n"
    "phase 20 web 0.5 wiki 0.25 code 0.25\nphase 30 code natural batch 8\nsteps 50\n";
static const char *const mixed_cursors[] = {
    "tokmap1 step=1 tokens=48 past=77157e51ce40c3fb7fd7635797d811cd "
    "of=c2ab8691,09f108c2,749e4886,5a9acee2,f8b30288",
    "tokmap1 step=4 tokens=144 past=4464d76fe8fc666bf71b79f6bea40980 "
    "of=c2ab8691,09f108c2,749e4886,4abe5b86,f8b30288",
    "tokmap1 step=10 tokens=384 past=fca4ecf07fe106ace7e63fcb3c1295d1 "
    "of=c2ab8691,09f108c2,749e4886,f14990d7,f8b30288",
    "tokmap1 step=11 tokens=448 past=0b8fd039344bf1886eaffdac936a333c "
    "of=848e8d53,09f108c2,8605182b,f14990d7,f8b30288",
    "tokmap1 step=16 tokens=768 past=0c58e3ce96c22fe4a5d3196e4265ccda "
    "of=848e8d53,09f108c2,8605182b,f14990d7,f8b30288",
    "tokmap1 step=20 tokens=1024 past=36f4b4e6cceae63b227cd7439827970e "
    "of=848e8d53,09f108c2,8605182b,f14990d7,0570f32a",
    "tokmap1 step=21 tokens=1088 past=2c73ef5d0d69836bd94ce89326f0d125 "
    "of=848e8d53,09f108c2,8605182b,f14990d7,e90746bb",
    "tokmap1 step=31 tokens=1792 past=25eeab0c9acadc76e491c1d41ca807d9 "
    "of=848e8d53,09f108c2,be4925cd,f14990d7,b40620f0",
    "tokmap1 step=40 tokens=2944 past=09d651adc1f5f46500b68bbda00eebf1 "
    "of=848e8d53,09f108c2,be4925cd,f14990d7,b40620f0",
};
static const char grown[] = "seq_len 8\nbatch 6\nseed 7\n" WEB WIKI
                            "skip 3..5\nphase 0 web 5\nphase 4 batch 12\nphase 9 web 30 wiki 10 seq_len 5\nsteps 50\n";
static const char *const grown_cursors[] = {
    "tokmap1 step=1 tokens=48 past=5acb7f85d8046789d6949d2669a8da5a "
    "of=f66b5e6f,3d3b63d7,749e4886,5a9acee2,e1157996",
    "tokmap1 step=4 tokens=144 past=bdbb5fa9c3f6bfa531bc956bb6ad3826 "
    "of=f66b5e6f,3d3b63d7,749e4886,4abe5b86,e1157996",
    "tokmap1 step=5 tokens=144 past=b5d1cbecc8af0c2c58150e12f9da8ed0 "
    "of=f66b5e6f,3d3b63d7,4dc48bfa,f14990d7,e1157996",
    "tokmap1 step=9 tokens=528 past=dc85d23519ce920d49a41c68aff5ea00 "
    "of=f66b5e6f,3d3b63d7,4dc48bfa,f14990d7,e1157996",
    "tokmap1 step=10 tokens=588 past=837bf2f487c28118b3eb421721b39eac "
    "of=ff935120,3d3b63d7,4dc48bfa,f14990d7,8c5fa74f",
    "tokmap1 step=12 tokens=708 past=e83c4469a2b9cf36dd1aff0a6005b537 "
    "of=ff935120,3d3b63d7,4dc48bfa,f14990d7,8c5fa74f",
};

static const char even[] = "seq_len 8\nlookahead 2\nbatch 4\nseed 7\ntail pad\nskip 3..5\n"
                           "source even synthetic:vocab=7,tokens=100,seed=4\n";
static const char *const even_cursors[] = {
    "tokmap1 step=1 tokens=32 past=e9c58d980a60661bfb676485ed6dffdc "
    "of=fde92a97,3d3b63d7,572ea627,5a9acee2,8b87e294",
    "tokmap1 step=9 tokens=224 past=e346709fd31ac774edba06024f7ee038 "
    "of=fde92a97,3d3b63d7,572ea627,f14990d7,8b87e294",
};
static struct tokmap_run *parse(const char *text)
{
    struct tokmap_run *run = NULL;
    struct tokmap_error error = {0};
    if (tokmap_run_parse(&run, text, NULL, &error))
        fail_msg("%s: line %u: %s", text, error.line, error.message);
    return run;
}

static void golden(const char *text, const char *const *expected, size_t count)
{
    struct tokmap_run *run = parse(text);
    for (size_t i = 0; i < count; i++) {
        struct tokmap_cursor cursor, own;
        char printed[TOKMAP_CURSOR_TEXT];
        struct tokmap_error error = {0};
        assert_int_equal(tokmap_cursor_parse(&cursor, expected[i], NULL), TOKMAP_OK);
        if (tokmap_run_check_cursor(run, &cursor, &error))
            fail_msg("%s: %s", expected[i], error.message);
        if (!tokmap_run_delivers(run, cursor.step))
            continue;
        assert_int_equal(tokmap_run_cursor(run, cursor.step, &own, NULL), TOKMAP_OK);
        tokmap_cursor_print(&own, printed);
        assert_string_equal(printed, expected[i]);
    }
    tokmap_run_close(run);
}

static void golden_values(void **state)
{
    (void)state;
    golden(mixed, mixed_cursors, sizeof mixed_cursors / sizeof mixed_cursors[0]);
    golden(grown, grown_cursors, sizeof grown_cursors / sizeof grown_cursors[0]);
    golden(even, even_cursors, sizeof even_cursors / sizeof even_cursors[0]);
}

/* Checks the cursor that one text has at a step against another text. Returns the bits of the kinds that the error
 * names, 0 if the cursor is accepted. */
static unsigned refused(const char *from, const char *to, uint64_t step, struct tokmap_error *error)
{
    static const char *const names[PAST_KINDS] = {"its geometry (", "its order (", "its batch (", "its skips (",
                                                  "its data ("};
    struct tokmap_run *before = parse(from), *after = parse(to);
    struct tokmap_cursor cursor;
    unsigned kinds = 0;
    *error = (struct tokmap_error){0};
    assert_int_equal(tokmap_run_cursor(before, step, &cursor, NULL), TOKMAP_OK);
    assert_int_equal(cursor.step, step);
    const enum tokmap_status status = tokmap_run_check_cursor(after, &cursor, error);
    for (int kind = 0; kind < PAST_KINDS; kind++)
        if (strstr(error->message, names[kind]))
            kinds |= 1u << kind;
    if (status != (kinds ? TOKMAP_ERROR_PAST : TOKMAP_OK))
        fail_msg("%s\n%s\nstep %u: %s", from, to, (unsigned)step, error->message);
    tokmap_run_close(before);
    tokmap_run_close(after);
    return kinds;
}

#define HEAD "seq_len 8\nbatch 4\nseed 5\n"
#define BODY HEAD WEB WIKI CODE

/* Edits of a run. From `first` steps on, the cursor is refused with `kinds`; up to that step it is accepted. */
static const struct {
    const char *from, *to;
    uint64_t first; /* UINT64_MAX: accepted at every step */
    unsigned kinds;
} edits[] = {
    /* The same run in other words. */
    {BODY "phase 0 web 0.5 wiki 0.5 code 0\nsteps 40\n", BODY "phase 0 wiki 7 web 7 code 0\nsteps 30\n", UINT64_MAX, 0},
    {BODY "phase 0 web 1 wiki 2 code 0\nsteps 40\n", HEAD WIKI WEB "phase 0 wiki 0.2 web 0.1\nsteps 35\n", UINT64_MAX,
     0},
    {BODY "phase 0 web 1 wiki 2 code 3\nsteps 40\n",
     BODY "phase 0 web 1 wiki 2 code 3\nphase 9 batch 4 seq_len 8\nsteps 40\n", UINT64_MAX, 0},
    {HEAD WEB "steps 40\n", HEAD WEB WIKI "phase 0 web 1 wiki 0\nsteps 40\n", UINT64_MAX, 0},
    /* Phases that are added, moved, and changed later. */
    {HEAD WEB "steps 40\n", HEAD WEB "phase 12 batch 8\nsteps 40\n", 13, 1 << PAST_BATCH},
    {HEAD WEB "steps 40\n", HEAD WEB "phase 12 seq_len 16\nsteps 40\n", 13, 1 << PAST_GEOMETRY},
    {HEAD WEB "steps 40\n", HEAD WEB WIKI "phase 0 web 1\nphase 12 web 1 wiki 1\nsteps 40\n", 13, 1 << PAST_DATA},
    {BODY "phase 0 web 1 wiki 2 code 3\nsteps 40\n",
     BODY "phase 0 web 1 wiki 2 code 3\nphase 12 web 2 wiki 1 batch 8\nsteps 40\n", 13,
     1 << PAST_DATA | 1 << PAST_BATCH},
    {BODY "phase 0 web 1 wiki 2 code 3\nphase 12 web 1\nsteps 40\n",
     BODY "phase 0 web 1 wiki 2 code 3\nphase 14 web 1\nsteps 40\n", 13, 1 << PAST_DATA},
    {BODY "phase 0 web 1 wiki 2 code 3\nphase 12 batch 8\nphase 20 batch 4\nsteps 40\n",
     BODY "phase 0 web 1 wiki 2 code 3\nphase 12 batch 8\nphase 20 batch 6\nsteps 40\n", 21, 1 << PAST_BATCH},
    /* A source that is drawn only later may change until then; one that is not drawn may always. */
    {BODY "phase 0 web 1 wiki 2 code 0\nphase 20 code 1\nsteps 40\n",
     HEAD WEB WIKI "source code synthetic:vocab=7,tokens=91\nphase 0 web 1 wiki 2 code 0\nphase 20 code 1\nsteps 40\n",
     21, 1 << PAST_DATA},
    {BODY "phase 0 web 1 wiki 2 code 0\nsteps 40\n",
     HEAD WEB WIKI "source code synthetic:vocab=7,tokens=91\nphase 0 web 1 wiki 2 code 0\nsteps 40\n", UINT64_MAX, 0},
    {BODY "phase 0 web 1000 wiki 1000 code 1\nsteps 600\n",
     HEAD WEB WIKI "source code synthetic:vocab=7,tokens=91\nphase 0 web 1000 wiki 1000 code 1\nsteps 600\n", 501,
     1 << PAST_DATA},
    /* The past from the first step on. */
    {BODY "phase 0 web 1 wiki 2 code 3\nsteps 40\n", BODY "phase 0 web 1 wiki 2 code 4\nsteps 40\n", 1, 1 << PAST_DATA},
    {BODY "phase 0 web 1 wiki 2 code 3\nsteps 40\n", BODY "phase 0 web 1 wiki 2 code 3\nstride 4\nsteps 40\n", 1,
     1 << PAST_GEOMETRY},
    {BODY "phase 0 web 1 wiki 2 code 3\nsteps 40\n", BODY "phase 0 web 1 wiki 2 code 3\nstride 8\nsteps 40\n",
     UINT64_MAX, 0},
    {BODY "phase 0 web 1 wiki 2 code 3\nsteps 40\n", BODY "phase 0 web 1 wiki 2 code 3\ntail pad\nsteps 40\n", 1,
     1 << PAST_GEOMETRY},
    {BODY "phase 0 web 1 wiki 2 code 3\ntail pad\npad 1\nsteps 40\n",
     BODY "phase 0 web 1 wiki 2 code 3\ntail pad\nsteps 40\n", 1, 1 << PAST_GEOMETRY},
    {BODY "phase 0 web 1 wiki 2 code 3\nsteps 40\n", BODY "phase 0 web 1 wiki 2 code 3\npad 3\nsteps 40\n", UINT64_MAX,
     0},
    {BODY "order blocks 2 2\nphase 0 web 1 wiki 2 code 3\nsteps 40\n",
     BODY "order blocks 2 3\nphase 0 web 1 wiki 2 code 3\nsteps 40\n", 1, 1 << PAST_ORDER},
    {BODY "phase 0 web 1 wiki 2 code 3\nsteps 40\n", BODY "phase 0 web 1 wiki 2 code 3\nskip 7..9\nsteps 40\n", 8,
     1 << PAST_SKIPS},
};

static void edits_of_past_and_future(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        static const uint64_t steps[] = {1, 2, 7, 10, 11, 12, 13, 14, 20, 21, 30, 500, 501};
        for (size_t j = 0; j < sizeof steps / sizeof steps[0]; j++) {
            struct tokmap_error error;
            if (steps[j] > 30 && !strstr(edits[i].from, "steps 600"))
                break;
            if (strstr(edits[i].to, "skip 7..9") && steps[j] == 7)
                continue;
            const unsigned expected = steps[j] >= edits[i].first ? edits[i].kinds : 0;
            const unsigned kinds = refused(edits[i].from, edits[i].to, steps[j], &error);
            if (kinds != expected)
                fail_msg("edit %u, step %u: kinds %x instead of %x: %s", (unsigned)i, (unsigned)steps[j], kinds,
                         expected, error.message);
        }
    }
}

/* The message names the lines of phases, weights, and sources. */
static void messages(void **state)
{
    (void)state;
    struct tokmap_error error;
    const char *ends[] = {"phase 0 web 1 wiki 2 code 3\nphase 10 batch 8 seq_len 4\nsteps 40\n",
                          "phase 0 web 1 wiki 2 code 4\nphase 10 batch 9 seq_len 5\nsteps 40\n"};
    char from[1000], to[1000];
    (void)snprintf(from, sizeof from, "%s%s", BODY, ends[0]);
    (void)snprintf(to, sizeof to, "%s%s", BODY, ends[1]);
    assert_int_equal(refused(from, to, 20, &error), 1 << PAST_GEOMETRY | 1 << PAST_BATCH | 1 << PAST_DATA);
    assert_non_null(strstr(error.message, "line 1: seq_len 8"));
    assert_non_null(strstr(error.message, "line 8: phase 10 seq_len 5"));
    assert_non_null(strstr(error.message, "line 8: phase 10 batch 9"));
    assert_non_null(strstr(error.message, "line 7: the weights from step 0 on"));
    assert_non_null(strstr(error.message, "line 4: source web synthetic"));
    assert_int_equal(error.line, 1);
}

/* A cursor of a step that the run does not have any more is out of range, and not a change of its phases. */
static void shorter(void **state)
{
    (void)state;
    struct tokmap_run *before = parse(BODY "phase 0 web 1 wiki 2 code 3\nphase 20 web 1 batch 8\nsteps 40\n");
    struct tokmap_run *after = parse(BODY "phase 0 web 1 wiki 2 code 3\nphase 20 web 1 batch 8\nsteps 15\n");
    struct tokmap_cursor cursor;
    struct tokmap_error error = {0};
    assert_int_equal(tokmap_run_cursor(before, 30, &cursor, NULL), TOKMAP_OK);
    assert_int_equal(tokmap_run_check_cursor(after, &cursor, &error), TOKMAP_ERROR_RANGE);
    tokmap_run_close(before);
    tokmap_run_close(after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_values),
        cmocka_unit_test(edits_of_past_and_future),
        cmocka_unit_test(messages),
        cmocka_unit_test(shorter),
    };
    return cmocka_run_group_tests_name("cursor_phases", tests, NULL, NULL);
}
