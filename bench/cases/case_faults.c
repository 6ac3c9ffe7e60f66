/* SPDX-License-Identifier: MIT */
/*
 * case_faults.c - the fault matrix: what each loader does when its files, its storage, or its processes fail.
 *
 * The script bench/peers/compare/faults injects each fault into each loader, in child processes, and prints a cell for
 * each: a word (crash, garbage, ...) and a sentence with counts. This case prints the cells as tables of words, a row
 * for each loader, and then the sentences. It fails if a cell of tokmap is not what tokmap promises.
 */
#include "cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/table.h"
#include "peers/scripts.h"
#include "peers/wide.h"

#define FAULTS_MOST 32
#define SYSTEMS_MOST 64
#define COLUMNS 4 /* faults of one table */

/* What can be the word of a cell, and whether the loader kept silent while rows were wrong. */
static const struct word {
    const char *word;
    bool silent;
    const char *meaning;
} words[] = {{"none", false, "every row came once and right"},
             {"place", false, "an error that names the file and a position in it"},
             {"status", false, "an error that names the file"},
             {"exception", false, "an error that names no file"},
             {"crash", false, "the process died"},
             {"hang", false, "no batch came any more"},
             {"garbage", true, "rows that are not the data, without a word"},
             {"lost", true, "rows never came, without a word"},
             {"repeated", true, "rows came again, without a word"},
             {"unreachable", false, "the fault cannot be injected into this loader here"},
             {"absent", false, "the loader cannot be had here"}};

struct matrix {
    struct bench *bench;
    struct wide *wide; /* the lines that are not cells */
    char *faults[FAULTS_MOST], *systems[SYSTEMS_MOST];
    size_t fault_count, system_count;
    const struct word *word[SYSTEMS_MOST][FAULTS_MOST]; /* NULL: there is no such cell */
    char *text[SYSTEMS_MOST][FAULTS_MOST];
};

static void matrix_free(struct matrix *matrix)
{
    for (size_t s = 0; s < matrix->system_count; s++) {
        for (size_t f = 0; f < matrix->fault_count; f++)
            free(matrix->text[s][f]);
        free(matrix->systems[s]);
    }
    for (size_t f = 0; f < matrix->fault_count; f++)
        free(matrix->faults[f]);
    wide_free(matrix->wide);
}

/* ---- lines ---- */

/* Returns the index of a name in the list, to which it is added if it is new; `most` if that cannot be. */
static size_t index_of(char **list, size_t *count, size_t most, const char *name)
{
    for (size_t i = 0; i < *count; i++)
        if (!strcmp(list[i], name))
            return i;
    if (*count == most || !(list[*count] = strdup(name)))
        return most;
    return (*count)++;
}

static const struct word *word_of(const char *text)
{
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (!strcmp(words[i].word, text))
            return &words[i];
    return NULL;
}

static int cell_take(struct matrix *matrix, const struct script_line *line)
{
    const size_t fault = index_of(matrix->faults, &matrix->fault_count, FAULTS_MOST, line->fields[1]);
    const size_t system = index_of(matrix->systems, &matrix->system_count, SYSTEMS_MOST, line->fields[2]);
    const struct word *word = word_of(line->fields[3]);
    char *text = strdup(line->fields[4]);
    if (fault == FAULTS_MOST || system == SYSTEMS_MOST || !word || !text || matrix->word[system][fault]) {
        free(text);
        cli_say(matrix->bench->program, "the cell of the fault '%s' and the system '%s' cannot be taken: '%s'",
                line->fields[1], line->fields[2], line->fields[3]);
        return CLI_FAILED;
    }
    matrix->word[system][fault] = word;
    matrix->text[system][fault] = text;
    return CLI_DONE;
}

static int line_take(void *user, const struct script_line *line)
{
    struct matrix *matrix = user;
    return !strcmp(line->fields[0], "cell") ? cell_take(matrix, line) : wide_line(matrix->bench, matrix->wide, line);
}

/* ---- results ---- */

static void words_print(const struct matrix *matrix, size_t first, size_t count)
{
    const char *cells[COLUMNS + 1] = {"loader"};
    struct cli_table *table = cli_table_new(count + 1);
    for (size_t i = 0; i < count; i++)
        cells[i + 1] = matrix->faults[first + i];
    cli_table_row(table, cells);
    for (size_t s = 0; s < matrix->system_count; s++) {
        cells[0] = matrix->systems[s];
        for (size_t i = 0; i < count; i++)
            cells[i + 1] = matrix->word[s][first + i] ? matrix->word[s][first + i]->word : "";
        cli_table_row(table, cells);
    }
    cli_table_print(table, NULL, stdout);
    cli_table_free(table);
    (void)printf("\n");
}

/* Prints the sentences of all cells but those of loaders that are absent, which are named below them. */
static void sentences_print(const struct matrix *matrix)
{
    for (size_t f = 0; f < matrix->fault_count; f++) {
        cli_print("%s\n", matrix->faults[f]);
        for (size_t s = 0; s < matrix->system_count; s++)
            if (matrix->word[s][f] && strcmp(matrix->word[s][f]->word, "absent") != 0)
                cli_print("  %s: %s: %s\n", matrix->systems[s], matrix->word[s][f]->word, matrix->text[s][f]);
    }
    (void)printf("\n");
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        cli_print("%s: %s\n", words[i].word, words[i].meaning);
}

/* The value is the number of silent faults, so that fewer are better. */
static void cell_json(const struct matrix *matrix, size_t s, size_t f)
{
    struct cli_json json;
    const double value = matrix->word[s][f]->silent ? 1 : 0;
    cli_json_begin(&json, stdout);
    cli_json_object(&json, NULL);
    cli_json_text(&json, "case", matrix->bench->name);
    cli_json_text(&json, "table", "faults");
    cli_json_text(&json, "row", matrix->systems[s]);
    cli_json_text(&json, "metric", matrix->faults[f]);
    cli_json_real(&json, "value", value);
    cli_json_text(&json, "unit", "silent");
    cli_json_text(&json, "better", "less");
    cli_json_real(&json, "min", value);
    cli_json_real(&json, "max", value);
    cli_json_number(&json, "n", 1);
    cli_json_text(&json, "result", matrix->word[s][f]->word);
    cli_json_text(&json, "text", matrix->text[s][f]);
    cli_json_end(&json);
}

static void matrix_print(const struct matrix *matrix)
{
    if (matrix->bench->options.json) {
        for (size_t s = 0; s < matrix->system_count; s++)
            for (size_t f = 0; f < matrix->fault_count; f++)
                if (matrix->word[s][f])
                    cell_json(matrix, s, f);
        return;
    }
    for (size_t f = 0; f < matrix->fault_count; f += COLUMNS)
        words_print(matrix, f, matrix->fault_count - f < COLUMNS ? matrix->fault_count - f : COLUMNS);
    sentences_print(matrix);
}

/* Does tokmap promise more than this cell? Errors of tokmap name the file, no row is lost or repeated, and what is
 * delivered is the data, because rows are compared with the hashes of their pages. */
static bool breaks_promise(const char *system, const struct word *word)
{
    static const char *const never[] = {"exception", "crash", "hang", "garbage", "lost", "repeated"};
    if (strncmp(system, "tokmap", 6) != 0)
        return false;
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
        if (!strcmp(word->word, never[i]))
            return true;
    return false;
}

/* Checks that no cell is empty, and that tokmap's are what it promises. */
static int matrix_check(const struct matrix *matrix)
{
    int result = CLI_DONE;
    for (size_t s = 0; s < matrix->system_count; s++)
        for (size_t f = 0; f < matrix->fault_count; f++) {
            const struct word *word = matrix->word[s][f];
            if (word && !breaks_promise(matrix->systems[s], word))
                continue;
            cli_say(matrix->bench->program, "%s, %s: %s: %s", matrix->systems[s], matrix->faults[f],
                    word ? word->word : "there is no result", word ? matrix->text[s][f] : "the script left it out");
            result = CLI_FAILED;
        }
    return result;
}

static int run(struct bench *bench)
{
    static struct matrix matrix;
    static struct script_arguments arguments;
    matrix = (struct matrix){.bench = bench, .wide = wide_new()};
    int result = matrix.wide ? CLI_DONE : bench_no_memory(bench);
    scripts_text(&arguments, "--faults", bench->options.faults);
    scripts_real(&arguments, "--stall", bench->options.stall);
    if (bench->options.no_fuse)
        scripts_flag(&arguments, "--no-fuse");
    if (!result)
        result = scripts_run(bench, "faults", &arguments, line_take, &matrix);
    if (matrix.wide && !bench_stopped()) {
        matrix_print(&matrix); /* after a failure, what happened until then */
        wide_print(bench, matrix.wide);
        if (!result)
            result = matrix_check(&matrix);
    }
    matrix_free(&matrix);
    return result;
}

const struct bench_case case_faults = {
    "faults", "what tokmap and other loaders do when files, storage, or processes fail; --peers, --venv, --offline",
    run};
