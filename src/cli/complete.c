/* SPDX-License-Identifier: MIT */
#include "complete.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/visible.h"
#include "format/shard_file.h"
#include "platform/os.h"
#include "text/path.h"
#include "whole_file.h"

#define OPENED_MOST 1000     /* files of a folder that are read to find manifests; the user waits for the answer */
#define DESCRIPTION_MOST 100 /* bytes of a help text that are printed; a shell shows one line */

static bool begins_with(const char *word, const char *typed)
{
    return strncmp(word, typed, strlen(typed)) == 0;
}

void cli_offer(const char *typed, const char *word, const char *help)
{
    if (!begins_with(word, typed))
        return;
    printf("%s%s", word, help ? "\t" : "\n");
    if (!help)
        return;
    for (size_t i = 0; help[i] && i < DESCRIPTION_MOST; i++)
        putchar(help[i] == '\n' || help[i] == '\t' ? ' ' : help[i]);
    putchar('\n');
}

/* Prints the choices that begin with what was typed in `word` from the byte `from` on, each after the bytes before it.
 * Returns whether there are any. */
static bool choices_print(const char *word, size_t from, const char *choices)
{
    const size_t end = cli_choices_listed(choices), length = strlen(word + from);
    bool found = false;
    size_t bytes;
    for (size_t at = 0; at < end; at += bytes + 1) {
        bytes = strcspn(choices + at, "|, ");
        if (!bytes || bytes < length || memcmp(choices + at, word + from, length) != 0)
            continue;
        printf("%.*s%.*s\n", (int)from, word, (int)bytes, choices + at);
        found = true;
    }
    return found;
}

/* ---- datasets and runs ---- */

struct listing {
    const char *typed;  /* as the user typed it: a folder, then the beginning of a name */
    size_t folder;      /* bytes of the folder in `typed`, with its slash */
    const char *before; /* printed before each offer */
    size_t before_length;
    const char *path; /* of the folder */
    unsigned wanted;  /* CLI_DATASETS + CLI_RUNS */
    uint64_t offers;
    uint64_t opened; /* files whose beginning has been read */
};

static int listing_entry(void *user, const char *name)
{
    struct listing *listing = user;
    const char *typed = listing->typed + listing->folder;
    struct os_stat found;
    /* Hidden names are offered to those who typed the dot. A name that is not plain has no place in the answer,
     * which shells show on the terminal. */
    if (!begins_with(name, typed) || (name[0] == '.' && typed[0] != '.') || !visible_all(name, strlen(name)))
        return 0;
    char *path = path_in(listing->path, name);
    if (!path || os_stat(path, &found)) {
        free(path);
        return 0;
    }
    const char *ending = NULL;
    size_t length = strlen(name);
    if (found.kind == OS_KIND_FOLDER) {
        ending = "/";
    } else if (found.kind == OS_KIND_FILE) {
        if (shard_file_is(name, SHARD_INDEX) && (listing->wanted & CLI_DATASETS)) {
            length -= strlen(shard_file_ending(SHARD_INDEX, SHARD_FINAL));
            ending = "";
        } else if (path_ends_in(name, strlen(name), ".run")) {
            ending = listing->wanted & CLI_RUNS ? "" : NULL;
        } else if ((listing->wanted & CLI_DATASETS) && !shard_file_is(name, SHARD_INDEX) &&
                   !shard_file_is(name, SHARD_TOKENS) && listing->opened++ < OPENED_MOST && cli_is_manifest(path)) {
            ending = "";
        }
    }
    free(path);
    if (!ending)
        return 0;
    printf("%.*s%.*s%.*s%s\n", (int)listing->before_length, listing->before, (int)listing->folder, listing->typed,
           (int)length, name, ending);
    listing->offers++;
    return 0;
}

/* Returns the first bytes of `typed` as a path, whose "~/" is the home folder; NULL if memory is short. */
static char *path_typed(const char *typed, size_t bytes)
{
    const char *home = secure_getenv("HOME");
    char *path = strndup(typed, bytes);
    if (!path || strncmp(path, "~/", 2) != 0 || !home)
        return path;
    char *whole = path_in(home, path + 2);
    free(path);
    return whole;
}

/* Prints the datasets and runs whose names begin with `typed`, and the folders, which may contain some. If there are
 * none, asks the shell for files: a run file or a manifest may have any name. */
static void datasets_print(const char *before, size_t before_length, const char *typed, unsigned wanted)
{
    struct listing listing = {
        .typed = typed, .folder = path_folder_bytes(typed), .before = before, .before_length = before_length};
    listing.wanted = wanted;
    char *folder = path_typed(typed, listing.folder);
    listing.path = listing.folder ? folder : ".";
    if (!strpbrk(typed, "\n\t") && listing.path)
        (void)os_folder_list(listing.path, listing_entry, &listing);
    if (!listing.offers)
        puts(":files");
    free(folder);
}

/* Prints the sources and validation sets in the run file `typed`, as choices_print(). */
static void sources_print(const char *typed, const char *word, size_t from)
{
    char *path = path_typed(typed, strlen(typed)), text[1 << 16] = "", *rest = text, *line;
    size_t got;
    if (path && cli_names_run(path))
        (void)cli_head_read(path, text, sizeof text - 1, &got);
    while ((line = strsep(&rest, "\n"))) {
        const char *kind = strtok_r(line, " \t\r", &line), *name = strtok_r(NULL, " \t\r", &line);
        if (name && (strcmp(kind, "source") == 0 || strcmp(kind, "validation") == 0))
            (void)choices_print(word, from, name);
    }
    free(path);
}

/* ---- options and operands ---- */

/* Prints the values of an option that begin with what was typed in `word` from the byte `from` on. `run`: the last
 * operand before it, or NULL. */
static void values_print(const struct cli_option *option, const char *run, const char *word, size_t from)
{
    const char *value = option->value ? option->value : "", *comma = strrchr(word + from, ',');
    if (strstr(value, ",...") && comma)
        from = (size_t)(comma + 1 - word);
    if ((option->choices && choices_print(word, from, option->choices)) ||
        (option->kind != CLI_TEXT && option->kind != CLI_LIST))
        return;
    if (strcmp(value, "SOURCE") == 0 && run)
        sources_print(run, word, from);
    else if (strstr(value, "FILE") || strstr(value, "PREFIX") || strcmp(value, "LIST") == 0)
        puts(":files");
    else if (strstr(value, "FOLDER"))
        puts(":folders");
    else if (strstr(value, "DATASET") || strstr(value, "RUN"))
        datasets_print(word, from, word + from,
                       (strstr(value, "DATASET") ? CLI_DATASETS : 0) | (strstr(value, "RUN") ? CLI_RUNS : 0));
}

static bool takes_word(const struct cli_option *option)
{
    return option->kind != CLI_FLAG && option->kind != CLI_MAYBE && option->kind != CLI_TITLE;
}

/* Returns the option that "--NAME" of `length` bytes, or the last letter of "-abc", names; NULL if there is none. */
static const struct cli_option *option_find(const struct cli_command *command, const char *word, size_t length)
{
    const bool is_long = word[1] == '-';
    for (size_t i = 0; i < command->option_count; i++) {
        const struct cli_option *option = &command->options[i];
        if (option->kind == CLI_TITLE)
            continue;
        if (is_long && strlen(option->name) == length - 2 && memcmp(option->name, word + 2, length - 2) == 0)
            return option;
        if (!is_long && option->letter && option->letter == word[length - 1])
            return option;
    }
    return NULL;
}

/* Returns the option whose value the word after `word` is, or NULL if that word is not a value. The first option with a
 * value in "-abc" takes the rest of the word, so it must be the last one. */
static const struct cli_option *option_awaits(const struct cli_command *command, const char *word)
{
    const size_t length = strlen(word);
    if (length < 2 || word[0] != '-' || strchr(word, '='))
        return NULL;
    for (size_t i = 2; word[1] != '-' && i < length; i++) {
        const struct cli_option *option = option_find(command, word, i);
        if (!option || takes_word(option))
            return NULL;
    }
    const struct cli_option *option = option_find(command, word, length);
    return option && takes_word(option) ? option : NULL;
}

static void options_print(const struct cli_command *command, const char *typed)
{
    for (size_t i = 0; i < command->option_count; i++) {
        char word[64];
        if (command->options[i].kind == CLI_TITLE || cli_is_internal(&command->options[i]))
            continue;
        snprintf(word, sizeof word, "--%s", command->options[i].name);
        cli_offer(typed, word, command->options[i].help);
    }
    cli_offer(typed, "--help", "print the help");
    if (command->often_count)
        cli_offer(typed, "--help-all", "print all options");
    cli_offer(typed, "--version", "print the version");
}

static void operand_print(const struct cli_command *command, const char *typed, size_t place)
{
    if (place == 0 && command->first_operand)
        (void)choices_print(typed, 0, command->first_operand);
    else if (command->operands & (CLI_DATASETS | CLI_RUNS))
        datasets_print("", 0, typed, command->operands);
    else if (command->operands & CLI_FILES)
        puts(":files");
}

void cli_complete(const struct cli_command *command, int count, char **words)
{
    const struct cli_option *awaits = NULL;
    const char *operand = NULL;
    bool options_end = false;
    size_t operands = 0;
    assert(command && count >= 1 && words);
    for (int i = 0; i < count - 1; i++) {
        if (awaits) {
            awaits = NULL;
        } else if (options_end || words[i][0] != '-' || !words[i][1]) {
            operands++;
            operand = words[i];
        } else if (strcmp(words[i], "--") == 0) {
            options_end = true;
        } else {
            awaits = option_awaits(command, words[i]);
        }
    }
    const char *typed = words[count - 1];
    const char *equals = strchr(typed, '=');
    if (awaits) {
        values_print(awaits, operand, typed, 0);
    } else if (options_end || typed[0] != '-') {
        operand_print(command, typed, operands);
    } else if (typed[1] == '-' && equals) {
        const struct cli_option *option = option_find(command, typed, (size_t)(equals - typed));
        if (option)
            values_print(option, operand, typed, (size_t)(equals + 1 - typed));
    } else {
        options_print(command, typed);
    }
}
