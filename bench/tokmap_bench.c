/*
 * tokmap_bench.c - the command tokmap-bench: its options, and the choice of the case to run.
 *
 * harness/ has what the cases share, peers/ runs other projects' programs, and cases/ has a file for each case.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases/cases.h"
#include "cli/cli.h"
#include "harness/child.h"
#include "harness/dataset_make.h"
#include "harness/gpu.h"
#include "harness/harness.h"
#include "harness/machine.h"
#include "harness/made_files.h"
#include "platform/process.h"
#include "tokmap/cuda.h"

static const struct bench_case *const cases[] = {&case_limits, &case_order,  &case_slice, &case_loader,
                                                 &case_open,   &case_train,  &case_pack,  &case_verify,
                                                 &case_h2d,    &case_expand, &case_race,  &case_tokenize};
#define CASES (sizeof cases / sizeof cases[0])

static const char details[] =
    "CASE is a case that --list shows, or `all`. DATASET is a prefix, a folder, or a manifest; cases that deliver to a "
    "GPU "
    "also accept a synthetic dataset such as synthetic:vocab=50257. Without DATASET the command creates one in --dir "
    "and "
    "removes it at the end.\n"
    "\n"
    "Each result is the median of several repeats. The repeats are interleaved with those of the limit, which is shown "
    "beside the result; ratio is result / limit. For rates a larger ratio is better, for times a smaller one.\n"
    "\n"
    "  tokmap-bench all\n"
    "  tokmap-bench loader data/web\n"
    "  tokmap-bench train --step-ms 2.5 --cold\n"
    "  tokmap-bench train --device 0 data/web\n"
    "  tokmap-bench race --batches 1000000\n"
    "  tokmap-bench slice --json\n"
    "  tokmap-bench tokenize prose.txt -t gpt2/tokenizer.json\n"
    "\n"
    "The case tokenize needs a text in a real language that does not repeat itself. tokmap-bench(1) says how to make "
    "such "
    "texts from Debian packages.\n";

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

static int list_cases(void)
{
    for (size_t i = 0; i < CASES; i++)
        (void)printf("%-8s %s\n", cases[i]->name, cases[i]->summary);
    return cli_finish("tokmap-bench", CLI_DONE);
}

/* Prints a line if there is no GPU. */
static bool gpu_exists(struct bench *bench)
{
    struct tokmap_cuda_info info = {.size = sizeof info};
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

/* Runs every case in its own process, so that none inherits memory of another one, on the same dataset. */
static int run_all(struct bench *bench, const struct arguments *given)
{
    const char *name;
    int result = dataset_name(bench, &name);
    if (result)
        return result;
    const bool has_gpu = gpu_exists(bench);
    for (size_t i = 0; i < CASES && !bench_stopped(); i++) {
        if (cases[i] == &case_tokenize) /* needs a text and a tokenizer */
            continue;
        if (!has_gpu && (cases[i] == &case_h2d || cases[i] == &case_expand || cases[i] == &case_race))
            continue;
        const char *arguments[CHILD_ARGUMENTS_MAX + 1] = {cases[i]->name, name};
        size_t count = 2;
        for (int j = 1; j < given->argc && count < CHILD_ARGUMENTS_MAX; j++) {
            bool operand = false;
            for (size_t k = 0; k < given->operand_count; k++)
                operand |= given->argv[j] == given->operands[k];
            if (!operand)
                arguments[count++] = given->argv[j];
        }
        if (!bench->options.json && i)
            (void)printf("\n");
        (void)fflush(stdout);
        if (child_run(bench, bench->self, arguments, NULL, 0, NULL))
            result = CLI_FAILED;
    }
    return result;
}

static int run_case(struct bench *bench, const struct bench_case *chosen)
{
    char program[64], line[512];
    assert(chosen);
    (void)snprintf(program, sizeof program, "tokmap-bench %s", chosen->name);
    bench->program = program;
    bench->name = chosen->name;
    if (!bench->options.child && !bench->options.json)
        (void)printf("%s\n", machine_line(bench->options.folder, line, sizeof line));
    const int result = chosen->run(bench);
    report_print(bench->report);
    return cli_finish(program, result);
}

/* Returns -1 if all options have values that the cases can work with, else CLI_MISUSED after a message. */
static int options_check(const struct cli_command *command, const struct bench_options *options)
{
    if (options->width != 2 && options->width != 4)
        return cli_misused(command, "--width must be 2 or 4");
    if (!options->tokens || options->tokens > (uint64_t)1 << 48)
        return cli_misused(command, "--tokens must be from 1 to 2^48");
    if (!options->seq_len || options->seq_len > (uint64_t)1 << 24)
        return cli_misused(command, "--seq-len must be from 1 to 2^24");
    if (!options->rows || options->rows > (uint64_t)1 << 16)
        return cli_misused(command, "--rows must be from 1 to 65536");
    if (options->repeats > SERIES_MOST)
        return cli_misused(command, "--repeats must be at most %d", SERIES_MOST);
    if (!(options->seconds >= 0 && options->seconds <= 3600))
        return cli_misused(command, "--seconds must be from 0 to 3600");
    if (!(options->step_ms > 0 && options->step_ms <= 60000))
        return cli_misused(command, "--step-ms must be more than 0 and at most 60000");
    if (!options->batch_tokens)
        return cli_misused(command, "--batch-tokens must be at least 1");
    if (options->device > 1023)
        return cli_misused(command, "--device must be at most 1023");
    if (!options->batches || options->batches > (uint64_t)1 << 40)
        return cli_misused(command, "--batches must be from 1 to 2^40");
    if (options->copy_bytes < 4096 || options->copy_bytes > (uint64_t)1 << 34)
        return cli_misused(command, "--copy-bytes must be from 4Ki to 16Gi");
    if (!options->text_bytes || options->text_bytes > (uint64_t)1 << 44)
        return cli_misused(command, "--text-bytes must be from 1 to 2^44");
    return -1;
}

struct request {
    struct bench bench;
    bool list;
    int argc;
    char **argv;
};

/* What the command does once its options are known. */
static int run_request(const struct cli_command *command, const char **operands, size_t count, void *user)
{
    struct request *request = user;
    struct bench *bench = &request->bench;
    if (request->list)
        return list_cases();
    if (!count)
        return cli_misused(command, "name a case; --list shows them");
    if (count > 2)
        return cli_misused(command, "give one case and at most one dataset");
    if (strcmp(operands[0], "all") && !case_find(operands[0]))
        return cli_misused(command, "there is no case '%s'; --list shows all of them", operands[0]);
    int result = options_check(command, &bench->options);
    if (result >= 0)
        return result;
    bench->options.dataset = count > 1 ? operands[1] : NULL;
    bench->report = bench->options.json || bench->options.child ? NULL : report_new();
    if (!bench->options.child)
        cli_signals_catch();
    const int system = os_program_path(bench->self, sizeof bench->self);
    if (system)
        result = bench_failed_system(bench, system, NULL, "The path of this program cannot be found.");
    else if (!strcmp(operands[0], "all"))
        result = run_all(bench, &(struct arguments){request->argc, request->argv, operands, count});
    else
        result = run_case(bench, case_find(operands[0]));
    made_files_remove(bench);
    report_free(bench->report);
    return result;
}

int main(int argc, char **argv)
{
    static struct request request;
    struct bench_options *o = &request.bench.options;
    const char *temporary = getenv("TMPDIR");
    char names[512];
    request.bench.program = "tokmap-bench";
    request.argc = argc;
    request.argv = argv;
    *o = (struct bench_options){.folder = temporary && *temporary ? temporary : "/tmp",
                                .tokens = 1000000000,
                                .width = 2,
                                .seq_len = 2048,
                                .rows = 8,
                                .threads = 1,
                                .step_ms = 24.5,
                                .batch_tokens = 16384,
                                .batches = 1000000,
                                .copy_bytes = (uint64_t)256 << 20,
                                .text_bytes = (uint64_t)256 << 20};
    const struct cli_option options[] = {
        {0, "dir", CLI_TEXT, &o->folder, NULL, "FOLDER", "where files are created (default $TMPDIR, else /tmp)", NULL},
        {0, "tokens", CLI_SIZE, &o->tokens, NULL, "N", "size of the dataset that is created (default 1g)", NULL},
        {0, "width", CLI_NUMBER, &o->width, NULL, "2|4", "bytes per token in that dataset (default 2)", NULL},
        {0, "keep", CLI_FLAG, &o->keep, NULL, NULL, "do not remove the files that are created", NULL},
        {0, "repeats", CLI_NUMBER, &o->repeats, NULL, "N",
         "repeats of each measurement (each case has its own default)", NULL},
        {0, "seconds", CLI_REAL, &o->seconds, NULL, "S", "length of a repeat (each case has its own default)", NULL},
        {0, "seq-len", CLI_SIZE, &o->seq_len, NULL, "N", "tokens in a row (default 2048)", NULL},
        {0, "rows", CLI_NUMBER, &o->rows, NULL, "N", "rows in a batch (default 8)", NULL},
        {0, "cold", CLI_FLAG, &o->cold, NULL, NULL,
         "loader, train: first drop the tokens from the page cache, and read with pread; not on tmpfs", NULL},
        {0, "threads", CLI_NUMBER, &o->threads, NULL, "N", "pack, verify: number of threads (default 1)", NULL},
        {0, "step-ms", CLI_REAL, &o->step_ms, NULL, "MS", "train: computing time of a step (default 24.5)", NULL},
        {0, "batch-tokens", CLI_SIZE, &o->batch_tokens, NULL, "N",
         "train: tokens in a step, in rows of --seq-len (default 16384)", NULL},
        {0, "wait", CLI_CHOICE, &o->wait, NULL, "spin|sleep",
         "train: how a step spends its computing time (default spin)", "spin|sleep"},
        {0, "device", CLI_NUMBER, &o->device, &o->device_given, "N",
         "loader, train: deliver to GPU N; h2d, expand, race: the GPU to measure (default 0)", NULL},
        {0, "batches", CLI_NUMBER, &o->batches, NULL, "N", "race: number of batches (default 1000000)", NULL},
        {0, "copy-bytes", CLI_SIZE, &o->copy_bytes, NULL, "SIZE",
         "h2d: the largest copy; expand: 16 times the tokens in the largest batch (default 256Mi)", NULL},
        {0, "text-bytes", CLI_SIZE, &o->text_bytes, NULL, "SIZE",
         "pack: size of the text that is created (default 256Mi)", NULL},
        {'t', "tokenizer", CLI_TEXT, &o->tokenizer, NULL, "FILE", "tokenize: the tokenizer, as in tokmap encode", NULL},
        {0, "pattern", CLI_TEXT, &o->pattern, NULL, "NAME", "tokenize: the split pattern of a rank file", NULL},
        {0, "special-tokens", CLI_TEXT, &o->special_tokens, NULL, "FILE", "tokenize: the special tokens of a rank file",
         NULL},
        {0, "documents", CLI_FLAG, &o->documents, NULL, NULL,
         "tokenize: measure documents of 4 KB only; some peers cannot encode the whole text in one call", NULL},
        {0, "against", CLI_TEXT, &o->against, NULL, "NAMES",
         "tokenize: also measure these peers (gigatoken, fastokens, tiktoken, tokenizers) and compare their ids", NULL},
        {0, "venv", CLI_TEXT, &o->venv, NULL, "FOLDER", "tokenize: Python environment that contains the peers", NULL},
        {0, "peers", CLI_TEXT, &o->peers, NULL, "FOLDER", "tokenize: the folder bench/peers of the source tree", NULL},
        {0, "json", CLI_FLAG, &o->json, NULL, NULL, "print one JSON object per line instead of a table", NULL},
        {0, "list", CLI_FLAG, &request.list, NULL, NULL, "list the cases", NULL},
        {0, "child", CLI_TEXT, &o->child, NULL, "WHAT", "internal: what a copy of the command measures for it", NULL},
    };
    const struct cli_command command = {.program = "tokmap-bench",
                                        .usage = "CASE [OPTION]... [DATASET]",
                                        .summary = "Measures tokmap against the limits of the machine.",
                                        .details = details,
                                        .options = options,
                                        .option_count = sizeof options / sizeof options[0],
                                        .operands = CLI_DATASETS | CLI_RUNS,
                                        .first_operand = case_choices(names, sizeof names)};
    const int result = cli_run(&command, argc, argv, run_request, &request);
    if (os_signal_caught())
        os_signal_die(os_signal_caught());
    return result;
}
