/* SPDX-License-Identifier: MIT */
/*
 * tokmap_bench.c - the command tokmap-bench: its options, and the choice of the case to run.
 *
 * harness/ has what the cases share, peers/ runs other projects' programs, and cases/ has the cases by subject.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cases/cases.h"
#include "cli/cli.h"
#include "common/error.h"
#include "common/visible.h"
#include "harness/bench_data.h"
#include "harness/child.h"
#include "harness/gpu.h"
#include "harness/harness.h"
#include "harness/machine.h"
#include "harness/plot.h"
#include "harness/result_rows.h"
#include "harness/storage.h"
#include "peers/scripts.h"
#include "platform/os.h"
#include "platform/process.h"
#include "text/path.h"
#include "tokmap/cuda.h"

/* ---- what --save and --plot leave in folders ---- */

static void folder_make(struct bench *bench, const char *path)
{
    struct os_stat stat;
    const int system = path ? os_make_folder(path) : 0;
    if (system && (system != EEXIST || os_stat(path, &stat) || stat.kind != OS_KIND_FOLDER))
        bench_failed_system(bench, system, path, "the folder for results cannot be created");
}

/* Before the case: creates the folders, and finds out whether gnuplot is there. */
static void results_prepare(struct bench *bench)
{
    if (bench->options.plot)
        bench_check(bench, plot_possible(&bench->error));
    folder_make(bench, bench->options.save);
    folder_make(bench, bench->options.plot);
}

static enum tokmap_status lines_save(const struct bench *bench, const char *case_name, struct tokmap_error *error)
{
    char name[128];
    const char *table = bench->options.table;
    int used = snprintf(name, sizeof name, "%s%s%.60s%s%s%s", case_name, table ? "-" : "", table ? table : "",
                        bench->options.worst ? "-worst" : "", bench->options.values ? "-values" : "",
                        bench->options.cold ? "-cold" : "");
    if (bench->options.cold && bench->options.step_ms_given)
        (void)snprintf(name + used, sizeof name - (size_t)used, "-%g", bench->options.step_ms);
    char *path = path_join(bench->options.save, strlen(bench->options.save), name, strlen(name), ".jsonl");
    const enum tokmap_status status = path ? bench_file_write(path, bench->lines.bytes, bench->lines.count, error)
                                           : error_set_memory(error, "a path", 0);
    free(path);
    return status;
}

static enum tokmap_status lines_plot(const struct bench *bench, struct tokmap_error *error)
{
    struct result_rows rows = {0};
    struct result_plots plots = {0};
    enum tokmap_status status =
        result_rows_parse(&rows, (const char *)bench->lines.bytes, bench->lines.count, "the results", error);
    if (!status)
        status = result_plots_make(&plots, &rows, error);
    if (!status)
        status = result_plots_write(&plots, bench->options.plot, error);
    result_plots_free(&plots);
    result_rows_free(&rows);
    return status;
}

/* After it: writes FOLDER/CASE.jsonl, which replaces an earlier one in one step, and the pictures. case_name: with the
 * table of `compare` it becomes CASE-TABLE. */
static void results_keep(struct bench *bench, const char *case_name)
{
    if (bench->options.save)
        bench_check(bench, lines_save(bench, case_name, &bench->error));
    if (bench->options.plot)
        bench_check(bench, lines_plot(bench, &bench->error));
}

static const struct bench_case *const cases[] = {
    &case_check, &case_order,    &case_loader,  &case_open,   &case_train,   &case_pack,
    &case_plan,  &case_sources,  &case_verify,  &case_h2d,    &case_expand,  &case_race,
    &case_gpu,   &case_tokenize, &case_compare, &case_faults, &case_hostile, &case_cost};
#define CASES (sizeof cases / sizeof cases[0])

static const char details[] =
    "CASE is one that --list shows, or `all`. WHAT is a run file or a dataset: a prefix, a folder, or a manifest. A "
    "run "
    "file sets the source, seq_len, batch, seed, and order. check, train, race, and cases with --device also take a "
    "synthetic dataset such as synthetic:vocab=50257. Without WHAT most cases create a dataset in --dir and remove it "
    "at the end.\n"
    "\n"
    "Each result is the median of several repeats. The repeats are interleaved with those of the limit, which is shown "
    "beside the result; ratio is result / limit. The column `better` says whether more or less is better, for a result "
    "and for its ratio.\n"
    "\n"
    "Examples:\n"
    "  tokmap-bench check train.run --step-ms 250 --ranks 8\n"
    "  tokmap-bench check data/web --seq-len 2048 --batch 512 --ranks 8\n"
    "  tokmap-bench train train.run --ranks 8 --step-ms 250 --cold\n"
    "  tokmap-bench cost train.run --gpus 1024 --step-ms 8000\n"
    "  tokmap-bench cost train.run --gpus 64 --nodes 8 --cache 2T --step-ms 2500\n"
    "  tokmap-bench loader data/web\n"
    "  tokmap-bench train --device 0 data/web\n"
    "  tokmap-bench gpu\n"
    "  tokmap-bench tokenize prose.txt -t gpt2/tokenizer.json\n"
    "  tokmap-bench tokenize --worst prose.txt -t gpt2/tokenizer.json\n"
    "  tokmap-bench compare data/web\n"
    "  tokmap-bench all --quick\n"
    "  tokmap-bench all --save results --plot pictures\n"
    "\n"
    "The case tokenize needs a text in a real language that does not repeat itself. "
    "tokmap-bench-text(7) says how to make such texts from Debian packages.\n";

/* Returns NULL if no case has that name. */
static const struct bench_case *case_find(const char *name)
{
    for (size_t i = 0; i < CASES; i++)
        if (!strcmp(name, cases[i]->name))
            return cases[i];
    return NULL;
}

/* Returns `names` with the words for the first operand, "all|NAME|...", which completion in a shell offers. */
static const char *case_choices(char *names, size_t size)
{
    size_t used = (size_t)snprintf(names, size, "all");
    for (size_t i = 0; i < CASES; i++) {
        used += (size_t)snprintf(names + used, size - used, "|%s", cases[i]->name);
        assert(used < size);
    }
    return names;
}

/* Returns true if a clause of an option's help begins with names of cases and a colon, "pack, verify: number of
 * threads", and sets *names_it if one of them is `name`. */
static bool clause_has_cases(const char *clause, const char *name, bool *names_it)
{
    bool cases_only = true;
    for (const char *at = clause; cases_only; at += strspn(at, ", ")) {
        char word[16];
        const size_t length = strcspn(at, " ,:");
        (void)snprintf(word, sizeof word, "%.*s", (int)length, at);
        cases_only = case_find(word);
        *names_it |= cases_only && !strcmp(word, name);
        at += strcspn(at, ",:"); /* after a name may come that of a table or an option: "pack --memory" */
        if (*at != ',')
            return cases_only && *at == ':';
    }
    return false;
}

/* Stores the options that the case `name` takes: those whose help names it, or no case at all. Returns how many. */
static size_t case_options(const char *name, const struct cli_option *options, size_t count, struct cli_often *often)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        bool limited = false, taken = false;
        for (const char *clause = options[i].help; clause; clause = strstr(clause, "; ")) {
            clause += clause == options[i].help ? 0 : 2;
            limited |= clause_has_cases(clause, name, &taken);
        }
        if (options[i].kind != CLI_TITLE && (taken || !limited))
            often[used++] = (struct cli_often){options[i].name, NULL};
    }
    return used;
}

static int list_cases(void)
{
    for (size_t i = 0; i < CASES; i++)
        (void)printf("%-8s %s\n", cases[i]->name, cases[i]->summary);
    return cli_finish("tokmap-bench", CLI_DONE);
}

/* Prints a line if there is no GPU. */
static bool gpu_exists(struct bench *bench)
{
    struct tokmap_cuda_info info = TOKMAP_CUDA_INFO_INIT;
    struct tokmap_error error = {0};
    if (!tokmap_cuda_probe(&info, &error))
        return true;
    bench_say(bench, "the cases h2d, expand and race are skipped because there is no GPU: %s", gpu_reason(&error));
    return false;
}

/* The arguments of this process, for copies that run one case each. */
struct arguments {
    int argc;
    char **argv;
    const char **operands; /* elements of argv that are not options; the first one is the case */
    size_t operand_count;
};

/* The rows of bench/RESULTS.md, in the order in which they are measured: cases, and the options of each. With --plot,
 * the pictures of the last run of a case stay. */
static const struct step {
    const struct bench_case *chosen;
    const char *more[3];
} steps[] = {{&case_check, {NULL}},        {&case_loader, {"--cold"}},
             {&case_loader, {NULL}},       {&case_train, {"--cold", "--step-ms", "2.5"}},
             {&case_train, {"--cold"}},    {&case_train, {NULL}},
             {&case_open, {NULL}},         {&case_order, {NULL}},
             {&case_verify, {NULL}},       {&case_sources, {NULL}},
             {&case_plan, {NULL}},         {&case_pack, {NULL}},
             {&case_hostile, {NULL}},      {&case_h2d, {NULL}},
             {&case_expand, {NULL}},       {&case_race, {NULL}},
             {&case_tokenize, {NULL}},     {&case_tokenize, {"--worst", "--against", ""}},
             {&case_compare, {"loaders"}}, {&case_compare, {"pack"}},
             {&case_compare, {"prepare"}}, {&case_compare, {"parts"}},
             {&case_faults, {NULL}}};

/* Returns whether the dataset can be read from storage, or prints a line. */
static bool cold_possible(struct bench *bench)
{
    const struct opened data = dataset_open(bench, TOKMAP_READ_PREAD);
    const bool possible = !page_cache_try_drop(data.dataset, &bench->error);
    tokmap_dataset_close(data.dataset);
    if (!possible)
        bench_say(bench, "nothing is measured with --cold: %s", bench->error.message);
    return possible;
}

/* Returns whether the command line has what a step needs. operand: receives what it reads, or NULL. */
static bool step_possible(const struct bench_options *o, const struct step *step, const char *dataset,
                          const char **operand)
{
    const struct bench_case *chosen = step->chosen;
    const bool others = chosen == &case_compare || chosen == &case_faults;
    const bool text = chosen == &case_tokenize || chosen == &case_pack;
    const bool packs = others && step->more[0] && step->more[0][0] == 'p'; /* pack, prepare, and parts */
    *operand = text ? o->text : packs || chosen == &case_faults ? NULL : dataset;
    return (chosen != &case_check || o->run_file || o->batch_given) &&
           (chosen != &case_tokenize || (o->text && o->tokenizer)) && (!others || o->venv || o->offline) &&
           (!packs || o->tokenizer) && (chosen != &case_faults || !o->quick);
}

/* Runs every step in its own process, so that none inherits memory of another one, on the same dataset. */
static int run_all(struct bench *bench, const struct arguments *given)
{
    const char *name = bench->options.run_file ? bench->options.run_file : dataset_name(bench);
    int result = CLI_DONE;
    size_t count_run = 0;
    const bool has_gpu = gpu_exists(bench), cold = cold_possible(bench);
    for (const struct step *step = steps; step < steps + sizeof steps / sizeof steps[0] && !bench_stopped(); step++) {
        const char *arguments[CHILD_ARGUMENTS_MAX + 1] = {step->chosen->name};
        const char *operand;
        size_t count = 1;
        if (!step_possible(&bench->options, step, name, &operand) || (step->chosen->needs_gpu && !has_gpu))
            continue;
        if (step->more[0] && !strcmp(step->more[0], "--cold") && !cold)
            continue;
        if (!bench->options.json)
            (void)printf("%stokmap-bench %s", count_run++ ? "\n" : "", step->chosen->name);
        for (int j = 1; j < given->argc && count < CHILD_ARGUMENTS_MAX - 4; j++) {
            bool typed = false;
            for (size_t k = 0; k < given->operand_count; k++)
                typed |= given->argv[j] == given->operands[k];
            if (!typed)
                arguments[count++] = given->argv[j];
        }
        for (size_t i = 0; i < sizeof step->more / sizeof step->more[0] && step->more[i]; i++) {
            arguments[count++] = step->more[i];
            if (!bench->options.json)
                (void)printf(" %s", step->more[i]);
        }
        if (operand)
            arguments[count++] = operand;
        if (!bench->options.json)
            (void)printf("\n");
        (void)fflush(stdout);
        if (child_try(bench, bench->self, arguments, NULL, 0, NULL))
            result = CLI_FAILED;
    }
    return result;
}

/* ---- what the results say about their origin ---- */

/* Writes the command line as it could be typed again, as far as there is room. Words are quoted as a POSIX shell needs
 * it, and what is not plain in them is in its visible form. */
static void command_line(int argc, char *const *argv, char *text, size_t room)
{
    static const char safe[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-+=:,@%";
    memset(text, 0, room);
    FILE *file = fmemopen(text, room - 1, "w");
    if (!file)
        return;
    (void)fputs("tokmap-bench", file);
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        const size_t count = strlen(word);
        const bool plain = count && strspn(word, safe) == count;
        (void)fputs(plain ? " " : " '", file);
        for (size_t at = 0, step; at < count; at += step) {
            char shown[4 * VISIBLE_MOST + 1];
            bool is_plain;
            step = visible_step(word + at, count - at, &is_plain);
            (void)visible_copy(shown, sizeof shown, word + at, step, "");
            (void)fputs(word[at] == '\'' ? "'\\''" : shown, file);
        }
        (void)fputs(plain ? "" : "'", file);
    }
    (void)fclose(file);
}

/* Writes the time now, in UTC: "2026-11-21T17:16:09Z". */
static void date_now(char *text, size_t room)
{
    const time_t now = (time_t)os_wall_seconds();
    struct tm parts;
    if (!gmtime_r(&now, &parts) || !strftime(text, room, "%Y-%m-%dT%H:%M:%SZ", &parts))
        (void)snprintf(text, room, "unknown");
}

/* The case that runs in this process, and what its results say about the machine. */
static struct {
    const struct bench_case *chosen; /* NULL: none, or its results have been printed */
    char program[64], machine[512];
    struct machine_times begin;
} running;

static void results_print(struct bench *bench)
{
    const bool answer_first = running.chosen == &case_check; /* the figures under it say why */
    running.chosen = NULL;
    if (!bench->options.json)
        cli_print("%s\n", running.machine);
    if (!bench_stopped())
        machine_report(bench, &running.begin);
    if (bench->report && answer_first && bench->sentence[0])
        cli_print("\n%s\n\n", bench->sentence);
    report_print(bench->report);
    if (bench->report && !answer_first && bench->sentence[0])
        cli_print("\n%s\n", bench->sentence);
}

/* Ends the work of this process, wherever it is: prints what was measured until now, keeps the results of a case that
 * is done, and removes what was created. Returns the exit status. */
static int finish(struct bench *bench, int result)
{
    const struct bench_case *chosen = running.chosen;
    if (chosen && result != CLI_MISUSED)
        results_print(bench);
    if (chosen && result == CLI_DONE)
        results_keep(bench, chosen->name);
    result = cli_finish(bench->program, result);
    bytes_free(&bench->lines);
    made_files_remove(bench);
    report_free(bench->report);
    if (os_signal_caught())
        os_signal_die(os_signal_caught());
    return result;
}

static int run_case(struct bench *bench, const struct bench_case *chosen)
{
    (void)snprintf(running.program, sizeof running.program, "tokmap-bench %s", chosen->name);
    bench->program = running.program;
    bench->name = chosen->name;
    if (bench->options.child) /* what the machine is must not take time of what a child measures */
        return chosen->run(bench);
    (void)machine_name(bench->options.folder, bench->machine, sizeof bench->machine);
    date_now(bench->date, sizeof bench->date);
    (void)machine_line(bench->options.folder, running.machine, sizeof running.machine);
    machine_times(&running.begin);
    running.chosen = chosen;
    return chosen->run(bench);
}

/* Refuses what a case cannot measure. Returns -1, or CLI_MISUSED after a message. */
static int files_check(const struct cli_command *command, const struct bench *bench, const struct bench_case *chosen)
{
    const char *name = bench->options.dataset;
    if (!chosen->reads_files || !name || strncmp(name, TOKMAP_SYNTHETIC, sizeof TOKMAP_SYNTHETIC - 1) ||
        (chosen == &case_loader && bench->options.device_given))
        return -1;
    return cli_misused(
        command,
        "the case %s measures reading from files, and '%s' has no files; name a dataset that is stored, or "
        "measure the loader alone with `tokmap-bench check` or `tokmap-bench train`",
        chosen->name, name);
}

/* Returns the case that was typed, or NULL after a message that names the nearest one. */
static const struct bench_case *case_named(const struct cli_command *command, const char *typed, int *result)
{
    const char *names[CASES + 1];
    const struct bench_case *chosen = case_find(typed);
    *result = CLI_DONE;
    if (chosen || !strcmp(typed, "all"))
        return chosen;
    for (size_t i = 0; i < CASES; i++)
        names[i] = cases[i]->name;
    names[CASES] = "all";
    const char *nearest = cli_nearest(typed, names, CASES + 1);
    *result = nearest ? cli_misused(command, "there is no case '%s'; did you mean '%s'?", typed, nearest)
                      : cli_misused(command, "there is no case '%s'; --list shows all of them", typed);
    return NULL;
}

/* Returns -1 if all options have values that the cases can work with, else CLI_MISUSED after a message. */
static int options_check(const struct cli_command *command, const struct bench_options *o)
{
    const struct {
        bool right;
        const char *message;
    } checks[] = {
        {o->width == 2 || o->width == 4, "--width must be 2 or 4"},
        {o->tokens && o->tokens <= (uint64_t)1 << 48, "--tokens must be from 1 to 2^48"},
        {o->seq_len && o->seq_len <= (uint64_t)1 << 24, "--seq-len must be from 1 to 2^24"},
        {o->rows && o->rows <= (uint64_t)1 << 16, "--rows must be from 1 to 65536"},
        {!o->batch_given || (o->batch && o->batch <= (uint64_t)1 << 31), "--batch must be from 1 to 2^31"},
        {o->ranks, "--ranks must be at least 1"},
        {!o->world_given || o->world, "--world must be at least 1"},
        {o->threads, "--threads must be at least 1"},
        {o->repeats <= SERIES_MOST, "--repeats must be at most 1000"},
        {o->seconds >= 0 && o->seconds <= 3600, "--seconds must be from 0 to 3600"},
        {o->step_ms > 0 && o->step_ms <= 60000, "--step-ms must be more than 0 and at most 60000"},
        {o->batch_tokens, "--batch-tokens must be at least 1"},
        {o->patience >= 0.1 && o->patience <= 1e6, "--patience must be from 0.1 to 1000000"},
        {o->stall >= 0.1 && o->stall <= 3600, "--stall must be from 0.1 to 3600"},
        {o->device <= 1023, "--device must be at most 1023"},
        {o->batches && o->batches <= (uint64_t)1 << 40, "--batches must be from 1 to 2^40"},
        {o->copy_bytes >= 4096 && o->copy_bytes <= (uint64_t)1 << 34, "--copy-bytes must be from 4Ki to 16Gi"},
        {o->tiny_documents && o->tiny_documents <= UINT32_MAX, "--tiny-documents must be from 1 to 2^32 - 1"},
        {o->text_bytes && o->text_bytes <= (uint64_t)1 << 44, "--text-bytes must be from 1 to 2^44"}};
    static_assert(SERIES_MOST == 1000, "a message names the number");
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
        if (!checks[i].right)
            return cli_misused(command, "%s", checks[i].message);
    return -1;
}

#define QUICK_TOKENS 200000000
#define QUICK_TEXT_BYTES ((uint64_t)32 << 20)

struct request {
    struct bench bench;
    bool list;
};

/* Runs the command, once its options are known. */
static int run_request(const struct cli_command *command, const char **operands, size_t count, void *user)
{
    struct request *request = user;
    struct bench *bench = &request->bench;
    if (request->list)
        return list_cases();
    if (!count)
        return cli_misused(command, "name a case; --list shows them");
    int result;
    const struct bench_case *chosen = case_named(command, operands[0], &result);
    if (result)
        return result;
    bench->finish = finish;
    if (bench->options.quick && !bench->options.tokens_given)
        bench->options.tokens = QUICK_TOKENS;
    if (bench->options.quick && !bench->options.text_bytes_given)
        bench->options.text_bytes = QUICK_TEXT_BYTES;
    bench_check_system(bench, os_program_path(bench->self, sizeof bench->self), NULL,
                       "The path of this program cannot be found.");
    if (chosen == &case_compare && count > 1 && scripts_have_table(bench, operands[1])) {
        bench->options.table = operands[1]; /* TABLE and DATA, either of which may be left out */
        operands++;
        count--;
    }
    if (chosen == &case_faults && count > 1)
        return cli_misused(command, "the case faults makes its data itself, so leave '%s' out", operands[1]);
    if (count > 2)
        return cli_misused(command, "give one case and at most one run file or dataset, not also '%s'", operands[2]);
    result = options_check(command, &bench->options);
    if (result < 0 && (chosen == &case_tokenize || chosen == &case_pack || scripts_read_text(bench)))
        bench->options.dataset = count > 1 ? operands[1] : NULL;
    else if (result < 0)
        result = operand_resolve(command, bench, count > 1 ? operands[1] : NULL);
    if (chosen != &case_loader)
        bench->options.values = NULL;
    if (result < 0)
        result = values_resolve(command, bench);
    if (result < 0 && chosen)
        result = files_check(command, bench, chosen);
    if (result >= 0)
        return result;
    bench->report = bench->options.json || bench->options.child ? NULL : report_new();
    if (!bench->options.child) {
        cli_signals_catch();
        results_prepare(bench);
    }
    if (!chosen)
        result = run_all(bench, &(struct arguments){bench->argc, bench->argv, operands, count});
    else
        result = run_case(bench, chosen);
    return finish(bench, result);
}

int main(int argc, char **argv)
{
    static struct request request;
    struct bench_options *o = &request.bench.options;
    const char *temporary = getenv("TMPDIR");
    char names[512];
    request.bench.program = "tokmap-bench";
    *o = (struct bench_options){.folder = temporary && *temporary ? temporary : "/tmp",
                                .tokens = 1000000000,
                                .width = 2,
                                .seq_len = 2048,
                                .rows = 8,
                                .seed = 1,
                                .lookahead = 1,
                                .ranks = 1,
                                .threads = 1,
                                .step_ms = 24.5,
                                .batch_tokens = 16384,
                                .batches = 1000000,
                                .copy_bytes = (uint64_t)256 << 20,
                                .text_bytes = (uint64_t)256 << 20,
                                .tiny_documents = 10000000,
                                .patience = 3600,
                                .stall = 10,
                                .nodes = 64,
                                .block = 4 << 20};
    if (argc > 2 && !strcmp(argv[1], CHILD_MARK)) { /* a copy of the command, started by it */
        o->child = argv[2];
        argv[2] = argv[0];
        argv += 2;
        argc -= 2;
    }
    command_line(argc, argv, request.bench.command, sizeof request.bench.command);
    request.bench.argc = argc;
    request.bench.argv = argv;
    const struct cli_option options[] = {
        CLI_HEADING("What is read (a run file says it all)"),
        {0, "seq-len", CLI_SIZE, &o->seq_len, &o->seq_len_given, "N", "tokens of a row (default 2048)", NULL},
        {0, "batch", CLI_NUMBER, &o->batch, &o->batch_given, "G",
         "rows of a global batch (default: --rows for each rank)", NULL},
        {0, "rows", CLI_NUMBER, &o->rows, &o->rows_given, "N",
         "rows of one call (default: the rows of a rank; without a run file and --batch, 8)", NULL},
        {0, "ranks", CLI_NUMBER, &o->ranks, &o->ranks_given, "R",
         "ranks on this machine (default 1); check runs a loader for each of them, other cases one", NULL},
        {0, "world", CLI_NUMBER, &o->world, &o->world_given, "W", "ranks of the run on all machines (default: --ranks)",
         NULL},
        {0, "cold", CLI_FLAG, &o->cold, NULL, NULL,
         "loader, train: first drop the tokens from the page cache, and read with pread; not on tmpfs", NULL},
        {0, "values", CLI_TEXT, &o->values, NULL, "N|NAME",
         "loader: deliver values beside the tokens: N bytes a token, which are created with the dataset (by default 2 "
         "GB of them), or those of this NAME that WHAT has",
         NULL},
        {0, "device", CLI_NUMBER, &o->device, &o->device_given, "N",
         "loader, train: deliver to GPU N; h2d, expand, race, gpu: the GPU to measure (default 0)", NULL},
        CLI_HEADING("The training step"),
        {0, "step-ms", CLI_REAL, &o->step_ms, &o->step_ms_given, "MS",
         "check, train, cost: computing time of a step (train: default 24.5)", NULL},
        {0, "gpus", CLI_NUMBER, &o->gpus, NULL, "N", "cost: GPUs that train, each with a loader of its own", NULL},
        {0, "cache", CLI_SIZE, &o->cache, NULL, "SIZE",
         "cost: simulate what --nodes read from object storage if each has a cache of SIZE bytes, such as 2T", NULL},
        {0, "block", CLI_SIZE, &o->block, NULL, "SIZE", "cost: bytes of a request to object storage (default 4Mi)",
         NULL},
        {0, "batch-tokens", CLI_SIZE, &o->batch_tokens, &o->batch_tokens_given, "N",
         "train: tokens in a step, in rows of --seq-len (default 16384)", NULL},
        {0, "wait", CLI_CHOICE, &o->wait, &o->wait_given, "spin|sleep",
         "check, train: how a step spends its computing time (default: sleep for check, spin for train)", "spin|sleep"},
        {0, "require", CLI_CHOICE, &o->require, &o->require_given, "tight|ok|held",
         "check: exit with 1 if the verdict is worse; gpu, pack --memory: held: exit with 1 if a figure is not held",
         "tight|ok|held"},
        CLI_HEADING("How it is measured"),
        {0, "quick", CLI_FLAG, &o->quick, NULL, NULL,
         "measure less: fewer and shorter repeats of smaller data; each result says so", NULL},
        {0, "before", CLI_TEXT, &o->before, NULL, "COMMAND",
         "pack: another tokmap, such as that of an earlier build, which each repeat runs as well", NULL},
        {0, "repeats", CLI_NUMBER, &o->repeats, NULL, "N",
         "repeats of each measurement (each case has its own default)", NULL},
        {0, "seconds", CLI_REAL, &o->seconds, NULL, "S", "length of a repeat (each case has its own default)", NULL},
        {'j', "threads", CLI_NUMBER, &o->threads, NULL, "N", "pack, verify: number of threads (default 1)", NULL},
        {0, "batches", CLI_NUMBER, &o->batches, NULL, "N", "race, gpu: number of batches (default 1000000)", NULL},
        {0, "copy-bytes", CLI_SIZE, &o->copy_bytes, NULL, "SIZE",
         "h2d, gpu: the largest copy; expand, gpu: 16 times the tokens in the largest batch (default 256Mi)", NULL},
        {0, "memory", CLI_FLAG, &o->memory, NULL, NULL,
         "pack: measure the peak memory for many tiny documents and for a large one, beside what is allowed", NULL},
        CLI_HEADING("What is created"),
        {0, "dir", CLI_TEXT, &o->folder, NULL, "FOLDER", "where files are created (default $TMPDIR, else /tmp)", NULL},
        {0, "tokens", CLI_SIZE, &o->tokens, &o->tokens_given, "N", "size of the dataset that is created (default 1g)",
         NULL},
        {0, "width", CLI_NUMBER, &o->width, NULL, "2|4", "bytes per token in that dataset (default 2)", NULL},
        {0, "text-bytes", CLI_SIZE, &o->text_bytes, &o->text_bytes_given, "SIZE",
         "pack: size of the text that is created (default 256Mi, with --memory 1Gi); tokenize --worst: of each text "
         "(at "
         "most 16Mi)",
         NULL},
        {0, "tiny-documents", CLI_SIZE, &o->tiny_documents, NULL, "N",
         "pack --memory: number of tiny documents (default 10M)", NULL},
        {0, "text", CLI_TEXT, &o->text, NULL, "FILE", "the text that `all` gives to tokenize and pack", NULL},
        {0, "keep", CLI_FLAG, &o->keep, NULL, NULL, "do not remove the files that are created", NULL},
        CLI_HEADING("The case tokenize"),
        {'t', "tokenizer", CLI_TEXT, &o->tokenizer, NULL, "FILE",
         "tokenize, pack, compare: the tokenizer, as in tokmap encode", NULL},
        {0, "pattern", CLI_TEXT, &o->pattern, NULL, "NAME", "tokenize, compare: the split pattern of a rank file",
         NULL},
        {0, "special-tokens", CLI_TEXT, &o->special_tokens, NULL, "FILE", "tokenize: the special tokens of a rank file",
         NULL},
        {0, "documents", CLI_FLAG, &o->documents, NULL, NULL,
         "tokenize: measure documents of 4 KB only; some peers cannot encode the whole text in one call", NULL},
        {0, "worst", CLI_FLAG, &o->worst, NULL, NULL,
         "tokenize: measure texts that are made to be slow, from the tokens of the vocabulary, beside FILE, which is "
         "prose",
         NULL},
        {0, "against", CLI_TEXT, &o->against, NULL, "NAMES",
         "tokenize: also measure these peers (gigatoken, tokenizers) and compare their ids", NULL},
        CLI_HEADING("Other systems: compare, faults, and tokenize --against"),
        {0, "peers", CLI_TEXT, &o->peers, NULL, "NAMES",
         "compare, faults: measure only these systems, such as torch,grain (default: all)", NULL},
        {0, "venv", CLI_TEXT, &o->venv, NULL, "FOLDER",
         "compare, faults, tokenize: Python environment of the systems, which the first two make (default: "
         "build/peers-venv of the source tree, "
         "else "
         "tokmap/peers in $XDG_CACHE_HOME)",
         NULL},
        {0, "offline", CLI_FLAG, &o->offline, NULL, NULL, "compare, faults: install nothing; measure what is there",
         NULL},
        {0, "field", CLI_TEXT, &o->field, NULL, "NAME", "compare pack: the field that holds the text (default: text)",
         NULL},
        {0, "patience", CLI_REAL, &o->patience, NULL, "S",
         "compare, faults: end a script that prints nothing for so long (default 3600)", NULL},
        {0, "peers-folder", CLI_TEXT, &o->peers_folder, NULL, "FOLDER",
         "compare, faults, tokenize: where the scripts are: bench/peers of the source tree, or share/tokmap/peers",
         NULL},
        {0, "faults", CLI_TEXT, &o->faults, NULL, "NAMES",
         "faults: inject only these, such as \"EIO,slow rank\" (default: all)", NULL},
        {0, "stall", CLI_REAL, &o->stall, NULL, "S", "faults: how long a stalled read takes (default 10)", NULL},
        {0, "nodes", CLI_NUMBER, &o->nodes, NULL, "N", "cost: machines that train (default 64)", NULL},
        {0, "figures", CLI_TEXT, &o->figures, NULL, "FILE",
         "cost: what `tokmap-bench compare --json` printed, or a folder of it (default: bench/results of the source "
         "tree)",
         NULL},
        CLI_HEADING("General"),
        {0, "json", CLI_FLAG, &o->json, NULL, NULL, "print one JSON object per line instead of a table", NULL},
        {0, "save", CLI_TEXT, &o->save, NULL, "FOLDER",
         "also write the lines of --json into FOLDER, as CASE.jsonl, once the case is done", NULL},
        {0, "plot", CLI_TEXT, &o->plot, NULL, "FOLDER",
         "also draw pictures of the results into FOLDER, as SVG and PNG, with gnuplot", NULL},
        {0, "list", CLI_FLAG, &request.list, NULL, NULL, "list the cases", NULL},
    };
    const size_t count = sizeof options / sizeof options[0];
    struct cli_often often[sizeof options / sizeof options[0]];
    const bool has_case = argc > 1 && case_find(argv[1]);
    const struct cli_command command = {.program = "tokmap-bench",
                                        .usage = "CASE [OPTION]... [WHAT]",
                                        .summary = "Measures tokmap against the limits of the machine.",
                                        .details = details,
                                        .often = often,
                                        .often_count = has_case ? case_options(argv[1], options, count, often) : 0,
                                        .options = options,
                                        .option_count = count,
                                        .operands = CLI_DATASETS | CLI_RUNS,
                                        .first_operand = case_choices(names, sizeof names)};
    return cli_run(&command, argc, argv, run_request, &request);
}
