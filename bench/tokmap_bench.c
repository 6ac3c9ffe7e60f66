/* tokmap_bench.c - the command tokmap-bench: options, and the case to run. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/child.h"
#include "cli/cli.h"
#include "harness/dataset_make.h"
#include "harness/gpu.h"
#include "harness/harness.h"
#include "harness/machine.h"
#include "platform/os.h"
#include "platform/process.h"
#include "tokmap/cuda.h"

static const struct bench_case *const cases[] = {&case_limits, &case_order, &case_slice,  &case_loader,  &case_open,
                                                 &case_train,  &case_pack,  &case_verify, &case_h2d,     &case_expand,
                                                 &case_race,   &case_tokenize};
#define CASES (sizeof cases / sizeof cases[0])

static const char details[] =
    "CASE is one of those that --list names, or `all`. DATASET is a prefix, a directory or a manifest, or "
    "synthetic:vocab=50257 in cases that deliver to a GPU; without it a dataset is made in --dir and removed afterwards.\n"
    "\n"
    "Each result is the median of repeats made in turns with the limit that bounds it, which stands beside it; ratio "
    "is "
    "result / limit. Times have a smaller ratio the better they are, rates a larger one.\n"
    "\n"
    "  tokmap-bench all\n"
    "  tokmap-bench loader data/web\n"
    "  tokmap-bench train --step-ms 2.5 --cold\n"
    "  tokmap-bench train --device 0 data/web\n"
    "  tokmap-bench race --batches 1000000\n"
    "  tokmap-bench slice --json\n"
    "  tokmap-bench tokenize prose.txt -t gpt2/tokenizer.json --venv peers --against gigatoken,tokenizers\n"
    "\n"
    "tokenize takes a text of real language that does not repeat. Such texts of 64 MB are made from Debian's packages "
    "(apt-get download NAME; dpkg-deb -x NAME_*.deb x), from these files below x, plain or .gz:\n"
    "  prose  .html and .txt of perl-doc, postgresql-doc-15, python3.11-doc, linux-doc-6.1, rust-doc\n"
    "  code   .c, .h, .py, .S and .sh of linux-source-6.1, its archive unpacked\n"
    "  CJK    .html and man pages of libreoffice-help-zh-cn, -zh-tw, -ja, manpages-zh, manpages-ja, "
    "debian-reference-zh-cn, -ja\n"
    "  mixed  the same of libreoffice-help-ru, -hi, -ko, -el, -km, -dz, -zh-cn, -ja, -fr, manpages-ru, manpages-uk\n"
    "Take files of the packages in turn, markup and scripts out of HTML, each line of more than 24 characters once; "
    "for CJK "
    "and mixed only lines with such characters; leave out what is not UTF-8; cut at 64 MiB between two characters.\n";

/* NULL if there is none of that name. */
static const struct bench_case *case_find(const char *name)
{
    for (size_t i = 0; i < CASES; i++)
        if (!strcmp(name, cases[i]->name))
            return cases[i];
    return NULL;
}

static int list_cases(void)
{
    for (size_t i = 0; i < CASES; i++)
        (void)printf("%-8s %s\n", cases[i]->name, cases[i]->summary);
    return cli_finish("tokmap-bench", CLI_DONE);
}

/* What needs a GPU is left out where there is none, with one line. */
static bool gpu_is_there(struct bench *bench)
{
    struct tokmap_cuda_info info = {.size = sizeof info};
    struct tokmap_error error = {0};
    if (!tokmap_cuda_probe(&info, &error))
        return true;
    bench_talk(bench, "h2d, expand and race are left out: no GPU: %s", gpu_reason(&error));
    return false;
}

/* Every case in a process of its own, so that none inherits another's memory, on one dataset. */
static int run_all(struct bench *bench, int argc, char **argv, const char *const *operands, size_t operand_count)
{
    const char *name;
    int result = dataset_get(bench, &name);
    if (result)
        return result;
    const bool has_gpu = gpu_is_there(bench);
    for (size_t i = 0; i < CASES && !bench_stopped(); i++) {
        if (cases[i] == &case_tokenize) /* which needs a text and a tokenizer */
            continue;
        if (!has_gpu && (cases[i] == &case_h2d || cases[i] == &case_expand || cases[i] == &case_race))
            continue;
        const char *arguments[32] = {cases[i]->name, name};
        size_t count = 2;
        for (int j = 1; j < argc && count < 30; j++) {
            bool operand = false;
            for (size_t k = 0; k < operand_count; k++)
                operand |= argv[j] == operands[k];
            if (!operand)
                arguments[count++] = argv[j];
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
    (void)snprintf(program, sizeof program, "tokmap-bench %s", chosen->name);
    bench->program = program;
    bench->name = chosen->name;
    if (!bench->options.child && !bench->options.json)
        (void)printf("%s\n", machine_line(bench->options.folder, line, sizeof line));
    int result = chosen->run(bench);
    report_print(bench->report);
    return cli_finish(program, result);
}

static int options_check(const struct cli_command *command, const struct bench_options *options)
{
    if (options->width != 2 && options->width != 4)
        return cli_misused(command, "--width is 2 or 4");
    if (!options->tokens || options->tokens > (uint64_t)1 << 48)
        return cli_misused(command, "--tokens is 1 to 2^48");
    if (!options->seq_len || options->seq_len > (uint64_t)1 << 24)
        return cli_misused(command, "--seq-len is 1 to 2^24");
    if (!options->rows || options->rows > (uint64_t)1 << 16)
        return cli_misused(command, "--rows is 1 to 65536");
    if (options->repeats > BENCH_REPEATS_MAX)
        return cli_misused(command, "--repeats is at most %d", BENCH_REPEATS_MAX);
    if (!(options->seconds >= 0 && options->seconds <= 3600))
        return cli_misused(command, "--seconds is 0 to 3600");
    if (!(options->step_ms > 0 && options->step_ms <= 60000))
        return cli_misused(command, "--step-ms is more than 0 and at most 60000");
    if (!options->batch_tokens)
        return cli_misused(command, "--batch-tokens is at least 1");
    if (options->device > 1023)
        return cli_misused(command, "--device is at most 1023");
    if (!options->batches || options->batches > (uint64_t)1 << 40)
        return cli_misused(command, "--batches is 1 to 2^40");
    if (options->copy_bytes < 4096 || options->copy_bytes > (uint64_t)1 << 34)
        return cli_misused(command, "--copy-bytes is 4Ki to 16Gi");
    if (!options->text_bytes || options->text_bytes > (uint64_t)1 << 44)
        return cli_misused(command, "--text-bytes is 1 to 2^44");
    return -1;
}

/* Reads the arguments into bench->options, operands[0] (the case) and operands[1] (the dataset). -1 to go on, else the
 * exit status. */
static int parse(struct bench *bench, int argc, char **argv, const char **operands, size_t *count)
{
    struct bench_options *o = &bench->options;
    bool list = false;
    const struct cli_option options[] = {
        {0, "dir", CLI_TEXT, &o->folder, NULL, "FOLDER", "where datasets are made (default $TMPDIR, else /tmp)", NULL},
        {0, "tokens", CLI_SIZE, &o->tokens, NULL, "N", "tokens of the dataset that is made (default 1g)", NULL},
        {0, "width", CLI_NUMBER, &o->width, NULL, "2|4", "its bytes a token (default 2)", NULL},
        {0, "keep", CLI_FLAG, &o->keep, NULL, NULL, "do not remove what was made", NULL},
        {0, "repeats", CLI_NUMBER, &o->repeats, NULL, "N", "turns of each measurement (default: the case's own)", NULL},
        {0, "seconds", CLI_REAL, &o->seconds, NULL, "S", "length of a turn (default: the case's own)", NULL},
        {0, "seq-len", CLI_SIZE, &o->seq_len, NULL, "N", "tokens of a row (default 2048)", NULL},
        {0, "rows", CLI_NUMBER, &o->rows, NULL, "N", "rows of a batch (default 8)", NULL},
        {0, "cold", CLI_FLAG, &o->cold, NULL, NULL,
         "loader, train: drop the tokens from the page cache first and read with pread; not on tmpfs", NULL},
        {0, "threads", CLI_NUMBER, &o->threads, NULL, "N", "pack, verify: threads (default 1)", NULL},
        {0, "step-ms", CLI_REAL, &o->step_ms, NULL, "MS", "train: how long a step computes (default 24.5)", NULL},
        {0, "batch-tokens", CLI_SIZE, &o->batch_tokens, NULL, "N",
         "train: tokens of a step, in rows of --seq-len (default 16384)", NULL},
        {0, "wait", CLI_CHOICE, &o->wait, NULL, "spin|sleep", "train: how a step computes (default spin)",
         "spin|sleep"},
        {0, "device", CLI_NUMBER, &o->device, &o->device_given, "N",
         "loader, train: deliver to GPU N; h2d, expand, race: the GPU (default 0)", NULL},
        {0, "batches", CLI_NUMBER, &o->batches, NULL, "N", "race: batches (default 1000000)", NULL},
        {0, "copy-bytes", CLI_SIZE, &o->copy_bytes, NULL, "SIZE", "h2d: the largest copy (default 256Mi)", NULL},
        {0, "text-bytes", CLI_SIZE, &o->text_bytes, NULL, "SIZE", "pack: text that is made (default 256Mi)", NULL},
        {'t', "tokenizer", CLI_TEXT, &o->tokenizer, NULL, "FILE", "tokenize: the vocabulary, as tokmap takes it", NULL},
        {0, "pattern", CLI_TEXT, &o->pattern, NULL, "NAME", "tokenize: split pattern of a rank file", NULL},
        {0, "special-tokens", CLI_TEXT, &o->special_tokens, NULL, "FILE", "tokenize: special tokens of a rank file",
         NULL},
        {0, "documents", CLI_FLAG, &o->documents, NULL, NULL,
         "tokenize: documents of 4 KB alone; the whole text in one piece is too much for some peers", NULL},
        {0, "against", CLI_TEXT, &o->against, NULL, "NAMES",
         "tokenize: gigatoken,fastokens,tiktoken,tokenizers in the same turns, and are the ids equal", NULL},
        {0, "venv", CLI_TEXT, &o->venv, NULL, "FOLDER", "tokenize: Python environment that has them", NULL},
        {0, "peers", CLI_TEXT, &o->peers, NULL, "FOLDER", "tokenize: bench/peers of the source tree", NULL},
        {0, "json", CLI_FLAG, &o->json, NULL, NULL, "one JSON object a line instead of a table", NULL},
        {0, "list", CLI_FLAG, &list, NULL, NULL, "list the cases", NULL},
        {0, "child", CLI_TEXT, &o->child, NULL, "WHAT", "what the command asks of copies of itself", NULL},
    };
    const struct cli_command command = {.program = "tokmap-bench",
                                        .usage = "CASE [OPTION]... [DATASET]",
                                        .summary = "Measure tokmap against the limits of the machine.",
                                        .details = details,
                                        .options = options,
                                        .option_count = sizeof options / sizeof options[0]};
    int result = cli_parse(&command, argc, argv, operands, count);
    if (result >= 0)
        return result;
    if (list)
        return list_cases();
    if (!*count)
        return cli_misused(&command, "which case? --list names them");
    if (*count > 2)
        return cli_misused(&command, "one case and one dataset at most");
    if (strcmp(operands[0], "all") && !case_find(operands[0]))
        return cli_misused(&command, "no such case: %s; --list names them", operands[0]);
    return options_check(&command, o);
}

int main(int argc, char **argv)
{
    static struct bench bench;
    const char *temporary = getenv("TMPDIR");
    const char **operands = calloc((size_t)argc + 1, sizeof *operands);
    size_t count = 0;
    bench.program = "tokmap-bench";
    bench.options = (struct bench_options){.folder = temporary && *temporary ? temporary : "/tmp",
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
    int result = operands ? parse(&bench, argc, argv, operands, &count) : CLI_FAILED;
    if (result < 0) {
        bench.options.dataset = count > 1 ? operands[1] : NULL;
        bench.report = bench.options.json || bench.options.child ? NULL : report_new();
        if (!bench.options.child)
            cli_signals_catch();
        int system = os_program_path(bench.self, sizeof bench.self);
        if (system)
            result = bench_failed_system(&bench, system, NULL, "The path of this program is not known.");
        else if (!strcmp(operands[0], "all"))
            result = run_all(&bench, argc, argv, operands, count);
        else
            result = run_case(&bench, case_find(operands[0]));
        made_remove_all(&bench);
        report_free(bench.report);
    }
    free(operands);
    if (os_signal_caught())
        os_signal_die(os_signal_caught());
    return result;
}
