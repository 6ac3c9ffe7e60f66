/* SPDX-License-Identifier: MIT */
/* verdict.c - see verdict.h. */
#include "verdict.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

#define ROOM_ENOUGH                                                                                                    \
    2.0 /* the rate divided by the need: other programs and slow moments of a storage take their part                  \
         */
#define WAIT_TIGHT 0.01
#define WAIT_BOTTLENECK 0.05
#define BUSY_ALL 0.85      /* share of the processors from which on all of them count as used */
#define OTHERS_MATTER 0.25 /* share from which on other programs are part of the answer */

const char *verdict_name(enum verdict verdict)
{
    static const char *const names[] = {"ok", "tight", "bottleneck", "none"};
    return names[verdict];
}

const char *verdict_binds_name(enum verdict_binds binds)
{
    static const char *const names[] = {"nothing", "storage", "processors", "threads"};
    return names[binds];
}

/* Appends to a sentence, which is cut if it becomes too long. */
static void say(struct verdict_answer *answer, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct verdict_answer *answer, const char *format, ...)
{
    const size_t used = strlen(answer->sentence);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(answer->sentence + used, sizeof answer->sentence - used, format, arguments);
    va_end(arguments);
}

/* "0.27 GB/s", "3.1 GB/s", "310 GB/s": two digits that count. */
static const char *rate(double bytes_per_s, char text[32])
{
    const double gb = bytes_per_s / 1e9;
    if (gb >= 99.5)
        (void)snprintf(text, 32, "%.0f GB/s", gb);
    else if (gb >= 0.00995)
        (void)snprintf(text, 32, "%.2g GB/s", gb);
    else
        (void)snprintf(text, 32, "%.2g MB/s", bytes_per_s / 1e6);
    return text;
}

static double smaller(double a, double b)
{
    return isfinite(b) && (!isfinite(a) || b < a) ? b : a;
}

static double larger(double a, double b)
{
    return isfinite(b) && (!isfinite(a) || b > a) ? b : a;
}

/* Says what the loaders reach: "this storage gives 3.1 GB/s cold, 20 GB/s warm". */
static void say_rates(const struct verdict_figures *figures, struct verdict_answer *answer)
{
    char cold[32], warm[32];
    if (isfinite(figures->cold) && isfinite(figures->warm))
        say(answer, "this storage gives %s cold, %s warm", rate(figures->cold, cold), rate(figures->warm, warm));
    else if (isfinite(figures->cold))
        say(answer, "this storage gives %s cold", rate(figures->cold, cold));
    else
        say(answer, "this machine gives %s warm (cold was not measured: %s)", rate(figures->warm, warm),
            figures->cold_reason ? figures->cold_reason : "the dataset has no files");
}

static void say_remedy(const struct verdict_figures *figures, struct verdict_answer *answer)
{
    char bytes[32];
    switch (answer->binds) {
    case BINDS_NOTHING:
        break;
    case BINDS_STORAGE:
        say(answer, " The storage binds: ");
        if (figures->fits)
            say(answer, "read the dataset once before training, for example with `cat`, since its %s fit in memory.",
                cli_bytes(figures->dataset_bytes, bytes));
        else
            say(answer, "put the dataset on a faster one, such as a local disk of each machine.");
        break;
    case BINDS_PROCESSORS:
        if (figures->others >= OTHERS_MATTER)
            say(answer,
                " The processors bind: of %" PRIu64 ", other programs use %.0f%% and the loaders %.0f%%; end the other "
                "programs, or give the job more processors.",
                figures->processors, 100 * figures->others, 100 * figures->busy);
        else
            say(answer,
                " The processors bind: the loaders use %.0f%% of %" PRIu64
                "; give the job more of them, or run fewer ranks "
                "on this machine.",
                100 * figures->busy, figures->processors);
        break;
    case BINDS_THREADS:
        say(answer, " The loaders' own threads bind, while processors are idle: take fewer fields, 32-bit instead of "
                    "64-bit ids, or rows that a GPU expands (`device`).");
        break;
    }
}

/* Returns the side that is short: if the loaders are too slow even from memory, it is not the storage. */
static enum verdict_binds binds_find(const struct verdict_figures *figures, double need)
{
    const bool warm_is_slow = isfinite(figures->warm) && figures->warm < need * ROOM_ENOUGH;
    const bool warm_waits = isfinite(figures->wait_warm) && figures->wait_warm >= WAIT_TIGHT;
    if (isfinite(figures->cold) && !warm_is_slow && !warm_waits)
        return BINDS_STORAGE;
    return figures->busy + figures->others >= BUSY_ALL ? BINDS_PROCESSORS : BINDS_THREADS;
}

/* Without a step time. */
static void fastest_find(const struct verdict_figures *figures, struct verdict_answer *answer)
{
    char cold[32], warm[32], ranks[64];
    answer->verdict = VERDICT_NONE;
    say(answer, "This machine can feed %s a step every ", cli_counted(figures->ranks, "rank", ranks));
    if (isfinite(figures->cold) && isfinite(figures->warm))
        say(answer, "%s cold, %s warm", cli_seconds(figures->step_bytes / figures->cold, cold),
            cli_seconds(figures->step_bytes / figures->warm, warm));
    else
        say(answer, "%s", cli_seconds(figures->step_bytes / smaller(figures->cold, figures->warm), cold));
    say(answer, ": ");
    say_rates(figures, answer);
    say(answer, ". With --step-ms the answer is a verdict.");
}

void verdict_find(const struct verdict_figures *figures, struct verdict_answer *answer)
{
    char text[32], ranks[64];
    assert(figures->ranks && figures->step_bytes > 0 && (isfinite(figures->cold) || isfinite(figures->warm)));
    *answer = (struct verdict_answer){.binds = BINDS_NOTHING};
    if (!(figures->step_ms > 0)) {
        fastest_find(figures, answer);
        return;
    }
    const double need = figures->step_bytes / (figures->step_ms / 1e3);
    const double room = smaller(figures->cold, figures->warm) / need;
    const double wait = larger(figures->wait_cold, figures->wait_warm);
    answer->verdict = room < 1 || wait >= WAIT_BOTTLENECK        ? VERDICT_BOTTLENECK
                      : room < ROOM_ENOUGH || wait >= WAIT_TIGHT ? VERDICT_TIGHT
                                                                 : VERDICT_OK;
    if (answer->verdict != VERDICT_OK)
        answer->binds = binds_find(figures, need);
    say(answer, "%s: %s need%s %s; ", verdict_name(answer->verdict), cli_counted(figures->ranks, "rank", ranks),
        figures->ranks == 1 ? "s" : "", rate(need, text));
    say_rates(figures, answer);
    /* The ring hides a shortage for as long as it lasts, so the rates may say more than the waits. */
    const double lost = room < 1 ? larger(wait, 1 - room) : wait;
    say(answer, ". A step would wait %.2f%%.", 100 * (isfinite(lost) ? lost : 0));
    say_remedy(figures, answer);
}
