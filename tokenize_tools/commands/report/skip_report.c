/* SPDX-License-Identifier: MIT */
#include "skip_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "common/hash.h"
#include "corpus/name_kind.h"
#include "corpus/stream.h"
#include "format/name_files.h"
#include "format/partial_file.h"
#include "platform/os.h"
#include "text/path.h"

#define ITEMS_MOST 1000   /* that --json lists */
#define PRINTED_MOST 20   /* lines on standard error, ... */
#define PRINTED_OF_FILE 3 /* ... and of them about one file, so that a bad file does not hide the others */

struct skip_item {
    struct tokmap_error why;
    enum corpus_reason reason;
    bool is_file;
    uint64_t bytes;
};

/* ---- open and close ---- */

/* Returns true if a file is an earlier list, or empty. Where the FILE of --skipped-list was forgotten, the word after
 * it is an input, which --force must not destroy. */
static bool is_list(const char *path)
{
    static const char begin[] = "{\"path\":";
    char head[sizeof begin - 1];
    size_t got;
    return os_head_read(path, head, sizeof head, &got) &&
           (!got || (got == sizeof head && !memcmp(head, begin, sizeof head)));
}

static enum tokmap_status list_refuse(const struct skip_report *skips, int system, struct tokmap_error *error)
{
    return error_set_system(error, system, skips->list_path, TOKMAP_NO_OFFSET,
                            "the list cannot be created; choose another name%s",
                            skips->force ? " (--force replaces only a list of what was left out)" : ", or use --force");
}

/* For partial_file_open(): only what a killed command has begun as a list is replaced. */
static int leftover_check(void *user)
{
    return is_list(user) ? 0 : EEXIST;
}

/* Opens the list as FILE.partial: a list that has its name is one of a command that has ended, and stays unless
 * --force is given. Where another process may make the list, only looks whether it can be made. */
static enum tokmap_status list_open(struct skip_report *skips, struct tokmap_error *error)
{
    struct os_stat found;
    const bool exists = !os_lstat(skips->list_path, &found);
    const bool old = exists && (skips->resume || skips->force) && is_list(skips->list_path);
    if (exists && !old)
        return list_refuse(skips, EEXIST, error);
    if (skips->shared)
        return TOKMAP_OK;
    skips->partial = path_ended(skips->list_path, ".partial");
    if (!skips->partial)
        return error_set_memory(error, "a path", 0);
    const enum tokmap_status status = cli_output_folder(skips->list_path, error);
    if (status)
        return status;
    int system = ENOENT;
    if (old && !skips->resume)
        (void)os_unlink(skips->list_path);
    else if (old && os_lstat(skips->partial, &found) == ENOENT) /* of a command whose work is kept */
        (void)name_file(-1, skips->list_path, skips->partial, false, NULL);
    if (is_list(skips->partial)) /* it keeps what it has until something is left out */
        system = partial_file_take(skips->partial, &skips->list);
    skips->resume |= !system;
    if (system == ENOENT || system == EPERM)
        system = partial_file_open(skips->partial, leftover_check, skips->partial, &skips->list);
    if (system == EWOULDBLOCK)
        return error_set(error, TOKMAP_ERROR_BUSY, skips->list_path, TOKMAP_NO_OFFSET,
                         "another process is writing this list; wait for it, or choose another name");
    return system ? list_refuse(skips, system, error) : TOKMAP_OK;
}

/* Gives the list its name, unless it has it. all: nothing of it follows, so what a killed process has listed later is
 * no part of it. */
static int list_name(struct skip_report *skips, bool all)
{
    struct os_stat found;
    int system = skips->list >= 0 && skips->resume && all ? os_truncate(skips->list, skips->list_bytes) : 0;
    if (system || skips->list < 0 || !skips->partial || skips->named)
        return system;
    const bool taken = !os_lstat(skips->list_path, &found) && !is_list(skips->list_path);
    return taken ? EEXIST : name_file(-1, skips->partial, skips->list_path, false, &skips->named);
}

const char *skip_report_file(const struct skip_report *skips)
{
    return skips->partial && !skips->named ? skips->partial : skips->list_path;
}

int skip_report_open(struct skip_report *skips, const struct cli_command *command,
                     const struct corpus_arguments *corpus, struct cli_progress *progress, bool json, bool force)
{
    struct tokmap_error error;
    skips->command = command;
    skips->progress = progress;
    skips->json = json;
    skips->list = -1;
    skips->limit = (struct skip_limit){.text = ""};
    if (skips->limit_text && !skip_limit_parse(skips->limit_text, &skips->limit))
        return cli_misused(command,
                           "--max-skipped must be a number, such as 1000, or a share with at most 6 decimals, such as "
                           "0.1%%; got '%s'",
                           skips->limit_text);
    skips->skipping = corpus->on_error == 1 || corpus->invalid == CORPUS_INVALID_SKIP;
    if (!skips->skipping && (skips->limit_text || (skips->list_path && !skips->may_choose)))
        return cli_misused(command, "--%s needs --on-error skip: without it, nothing is left out",
                           skips->limit_text ? "max-skipped" : "skipped-list");
    skips->force = force;
    if (!skips->list_path)
        return 0;
    return list_open(skips, &error) ? cli_failed(command->program, &error) : 0;
}

void skip_report_close(struct skip_report *skips, bool failed)
{
    /* A list of a killed command, of which nothing was used, stays what it is. */
    if (!failed || (skips->count && !skips->abandoned))
        (void)list_name(skips, skips->count > 0);
    else if (!skips->count && skips->list >= 0 && !skips->resume)
        (void)os_unlink(skip_report_file(skips));
    free(skips->partial);
    skips->partial = NULL;
    os_close(skips->list);
    skips->list = -1;
    free(skips->items);
    skips->items = NULL;
}

/* ---- saving ---- */

enum { SAVED_NUMBERS, SAVED_ITEM };
enum { NUMBER_COUNT, NUMBER_PRINTED, NUMBER_CHOSEN, NUMBER_OF_FILE, NUMBER_HASH, NUMBER_LISTED, NUMBER_BYTES, NUMBERS };

void skip_report_save(struct skip_report *skips, struct state_sink *sink)
{
    const uint64_t numbers[NUMBERS] = {skips->count,     skips->printed,   skips->chosen,    skips->of_file,
                                       skips->file_hash, skips->list >= 0, skips->list_bytes};
    if (skips->list >= 0)
        sink->failed = os_sync(skips->list);
    for (; skips->items_saved < skips->item_count; skips->items_saved++)
        state_put(sink, SAVED_ITEM, &skips->items[skips->items_saved], sizeof *skips->items);
    state_put(sink, SAVED_NUMBERS, numbers, sizeof numbers);
}

static enum tokmap_status numbers_load(struct skip_report *skips, const uint8_t *bytes, struct tokmap_error *error)
{
    uint64_t numbers[NUMBERS], size;
    memcpy(numbers, bytes, sizeof numbers);
    if (numbers[NUMBER_LISTED] != (skips->list >= 0))
        return error_set(error, TOKMAP_ERROR_MISMATCH, skips->list_path, TOKMAP_NO_OFFSET,
                         "the unfinished work was begun %s --skipped-list; repeat that command, or start over with "
                         "--no-resume",
                         numbers[NUMBER_LISTED] ? "with" : "without");
    if (skips->list >= 0 && (os_file_bytes(skips->list, &size) || size < numbers[NUMBER_BYTES]))
        return error_set(error, TOKMAP_ERROR_MISMATCH, skips->list_path, TOKMAP_NO_OFFSET,
                         "this list is shorter than it was when the unfinished work was interrupted; start over with "
                         "--no-resume");
    skips->count = numbers[NUMBER_COUNT];
    skips->printed = numbers[NUMBER_PRINTED];
    skips->chosen = numbers[NUMBER_CHOSEN];
    skips->of_file = numbers[NUMBER_OF_FILE];
    skips->file_hash = numbers[NUMBER_HASH];
    skips->list_bytes = numbers[NUMBER_BYTES];
    return TOKMAP_OK;
}

/* Returns whether an item of another process can be printed. */
static bool item_is_sound(const struct skip_item *item)
{
    return (unsigned)item->reason < CORPUS_REASONS && memchr(item->why.path, '\0', sizeof item->why.path) &&
           memchr(item->why.message, '\0', sizeof item->why.message);
}

enum tokmap_status skip_report_load(struct skip_report *skips, uint32_t kind, const uint8_t *bytes, size_t count,
                                    struct tokmap_error *error)
{
    struct skip_item item;
    if (kind == SAVED_NUMBERS && count == NUMBERS * sizeof(uint64_t))
        return numbers_load(skips, bytes, error);
    if (kind != SAVED_ITEM || count != sizeof item)
        return error_set(error, TOKMAP_ERROR_CORRUPT, NULL, TOKMAP_NO_OFFSET,
                         "the journal of the unfinished work is damaged; start over with --no-resume");
    memcpy(&item, bytes, sizeof item);
    if (!skips->items && skips->json)
        skips->items = malloc(ITEMS_MOST * sizeof *skips->items);
    if (skips->items && skips->item_count < ITEMS_MOST && item_is_sound(&item))
        skips->items[skips->item_count++] = item;
    skips->items_saved = skips->item_count;
    return TOKMAP_OK;
}

/* ---- items ---- */

static void item_add(const struct skip_item *item, struct cli_report *report)
{
    cli_member(report, "path", cli_text(item->why.path));
    cli_member_number_if(report, "line", item->why.line);
    if (item->why.offset != TOKMAP_NO_OFFSET)
        cli_member(report, "offset", cli_number(item->why.offset));
    cli_member(report, "left_out", cli_text(item->is_file ? "file" : "record"));
    cli_member(report, "class", cli_text(corpus_reason_word(item->reason)));
    cli_member(report, "status", cli_text(tokmap_status_name(item->why.status)));
    cli_member(report, "reason", cli_text(item->why.message));
    cli_member(report, "bytes", cli_number(item->bytes));
}

static void item_list(struct skip_report *skips, const struct skip_item *item)
{
    struct cli_report report;
    size_t length = 0;
    if (skips->list < 0 || skips->list_failed || (skips->later && !skips->joining))
        return;
    cli_report_begin_text(&report, false);
    item_add(item, &report);
    char *text = cli_report_end_text(&report, &length);
    skips->list_failed = text ? os_pwrite(skips->list, text, length, skips->list_bytes) : ENOMEM;
    skips->list_bytes += length;
    free(text);
}

/* Lists an item, and keeps the first ones for JSON. */
static void item_keep(struct skip_report *skips, const struct skip_item *item)
{
    item_list(skips, item);
    if (!skips->json || skips->item_count == ITEMS_MOST)
        return;
    if (!skips->items)
        skips->items = malloc(ITEMS_MOST * sizeof *skips->items);
    if (skips->items)
        skips->items[skips->item_count++] = *item;
}

void skip_report_add(struct skip_report *skips, const struct corpus_issue *issue, const struct tokmap_error *why)
{
    struct skip_item item = {*why, issue->left_out, issue->is_file, issue->bytes};
    const uint64_t hash = hash64(why->path, strlen(why->path));
    if (hash != skips->file_hash)
        skips->of_file = 0;
    skips->file_hash = hash;
    skips->count++;
    skips->chosen += issue->asked;
    if (!issue->asked && skips->printed < PRINTED_MOST && skips->of_file < PRINTED_OF_FILE) {
        cli_progress_clear(skips->progress);
        command_skipped(skips->command, why);
        skips->printed++;
        skips->of_file++;
        if (skips->printed == PRINTED_MOST)
            cli_say(skips->command->program, "skipped: what follows is only counted");
    }
    error_name_options(skips->command, &item.why);
    item_keep(skips, &item);
}

static enum tokmap_status taker_begin(void *user, struct tokmap_error *error)
{
    struct skip_report *skips = user;
    int system = 0;
    skips->count = skips->chosen = skips->item_count = skips->list_bytes = 0;
    skips->later = skips->joining = true;
    if (skips->list < 0) {
        const enum tokmap_status status = cli_output_folder(skips->list_path, error);
        if (status)
            return status;
        system = os_open(skips->list_path, OS_WRITE_NEW, &skips->list);
        /* The list of a process that was killed here, or, with --force, an old one. */
        if (system == EEXIST && is_list(skips->list_path))
            system = os_open(skips->list_path, OS_WRITE_OLD, &skips->list);
    }
    return system ? list_refuse(skips, system, error) : TOKMAP_OK;
}

static enum tokmap_status list_failure(struct skip_report *skips, int system, struct tokmap_error *error)
{
    skips->list_failed = 0; /* it ends the work, and is reported as its error */
    return error_set_system(error, system, skips->list_path, TOKMAP_NO_OFFSET,
                            "the list of what was left out cannot be written");
}

static enum tokmap_status taker_item(void *user, const struct corpus_issue *issue, const struct tokmap_error *why,
                                     struct tokmap_error *error)
{
    struct skip_report *skips = user;
    struct skip_item item = {*why, issue->left_out, issue->is_file, issue->bytes};
    skips->count++;
    skips->chosen += issue->asked;
    error_name_options(skips->command, &item.why);
    item_keep(skips, &item);
    return skips->list_failed ? list_failure(skips, skips->list_failed, error) : TOKMAP_OK;
}

static enum tokmap_status taker_end(void *user, struct tokmap_error *error)
{
    struct skip_report *skips = user;
    int system = os_truncate(skips->list, skips->list_bytes); /* the rest of an old list */
    if (!system)
        system = os_sync(skips->list);
    if (!system)
        system = list_name(skips, false);
    if (!system)
        system = os_sync_folder(skips->list_path);
    skips->joined = !system;
    return system ? list_failure(skips, system, error) : TOKMAP_OK;
}

struct skipped_taker skip_report_taker(struct skip_report *skips)
{
    return (struct skipped_taker){skips, taker_begin, taker_item, taker_end};
}

enum tokmap_status skip_report_name(struct skip_report *skips, struct tokmap_error *error)
{
    const int system = list_name(skips, true);
    return system ? list_failure(skips, system, error) : TOKMAP_OK;
}

bool skip_report_finish(struct skip_report *skips, bool failed)
{
    struct tokmap_error error;
    char a[32];
    const uint64_t wrong = skips->count - skips->chosen;
    const char *where = skips->later && !skips->joined ? "; all tasks together list them in " : "; all are listed in ";
    if (!skips->list_failed && (!failed || skips->count)) /* else it is still the list of a killed process */
        skips->list_failed = list_name(skips, true);
    if (wrong > skips->printed)
        cli_say(skips->command->program, "skipped: %s more%s%s", cli_count(wrong - skips->printed, a),
                skips->list_path ? where : "; list all with --skipped-list FILE",
                skips->list_path ? skips->list_path : "");
    if (!skips->list_failed)
        return true;
    (void)error_set_system(&error, skips->list_failed, skips->list_path, TOKMAP_NO_OFFSET,
                           "the list of what was left out cannot be written and is not complete");
    (void)cli_failed(skips->command->program, &error);
    return false;
}

/* ---- sums ---- */

/* "1 file and 2,000 records"; a count of zero is left out. */
static const char *items_text(uint64_t files, uint64_t records, char text[160])
{
    (void)snprintf(text, 160, "%s%s%s", files ? CLI_COUNTED(files, "file") : "", files && records ? " and " : "",
                   records ? CLI_COUNTED(records, "record") : "");
    return text;
}

/* Counts what was left out without being opened. */
static void not_read_add(const struct inputs_counts *counts, struct cli_report *report)
{
    static const struct inputs_counts nothing;
    const struct {
        uint64_t count;
        const char *name, *label, *remark;
    } rows[] = {{counts->files_hidden, "hidden_files", "hidden files", "--hidden reads them"},
                {counts->folders_hidden, "hidden_folders", "hidden folders", "--hidden reads them"},
                {counts->files_excluded, "excluded_files", "files not chosen", "by --include, --exclude"},
                {counts->folders_excluded, "excluded_folders", "folders not chosen", "by --exclude"},
                {counts->links, "links", "symbolic links", "in folders; name their targets"},
                {counts->specials, "specials", "pipes and devices", "in folders; name them"}};
    if (!report->as_json && memcmp(counts, &nothing, sizeof nothing) != 0)
        (void)puts("\nnot read:");
    cli_report_object(report, "not_read");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        cli_line(report, rows[i].name, rows[i].count ? rows[i].label : NULL, rows[i].count, rows[i].remark);
    cli_report_close(report);
}

void skip_report_to(const struct skip_report *skips, const struct corpus_counts *counts, struct cli_report *report)
{
    char text[160];
    not_read_add(&counts->not_read, report);
    if (!report->as_json && counts->files_skipped + counts->records_skipped)
        printf("\nleft out: %s (%s of %s read)\n", items_text(counts->files_skipped, counts->records_skipped, text),
               CLI_BYTES(counts->skipped_bytes), CLI_BYTES(counts->stream_bytes));
    cli_report_object(report, "left_out");
    for (int i = 0; i < CORPUS_REASONS; i++) {
        const struct corpus_left_out *left_out = &counts->left_out[i];
        if (!left_out->files && !left_out->records)
            continue;
        if (!report->as_json)
            printf("  %s:\n    %s\n", items_text(left_out->files, left_out->records, text),
                   corpus_reason_text((enum corpus_reason)i));
        cli_report_object(report, corpus_reason_word((enum corpus_reason)i));
        cli_numbers(report, "files|records|bytes", left_out->files, left_out->records, left_out->bytes);
        cli_report_close(report);
    }
    cli_report_close(report);
    cli_report_array(report, "skipped");
    for (uint64_t i = 0; i < skips->item_count; i++) {
        cli_report_item(report);
        item_add(&skips->items[i], report);
        cli_report_close(report);
    }
    cli_report_close(report);
    cli_member(report, "skipped_items", cli_number(skips->count));
}

void skip_report_advise(const struct skip_report *skips, const struct corpus_counts *counts)
{
    if (!skips->skipping)
        return;
    /* Without numbers, because after a failure the counts include the rest of a batch. */
    const struct corpus_left_out *left_out = counts->left_out;
    if (left_out[CORPUS_REASON_FORMAT].files + left_out[CORPUS_REASON_ENCODING].files > counts->files)
        cli_warn(skips->command->program, "more files were left out because they are not text than were used; %s",
                 command_has_option(skips->command, "include")
                     ? "choose the files with --include, for example --include '*.txt'"
                     : "name the files that contain text, for example with a pattern, '*.txt'");
    if (left_out[CORPUS_REASON_FIELD].records > counts->documents)
        cli_warn(skips->command->program,
                 "more records were left out because of the field than documents were kept; name the field that holds "
                 "the text with --field");
}

void skip_report_hint(const struct skip_report *skips, const struct corpus_counts *counts, const char **operands,
                      size_t operand_count, const struct tokmap_error *error)
{
    if (skips->skipping || !counts->left_out[CORPUS_REASON_FORMAT].files)
        return;
    for (size_t i = 0; i < operand_count; i++)
        if (!strcmp(stream_name(operands[i]), error->path))
            return;
    cli_say(skips->command->program, "choose files with --include, for example --include '*.txt', or leave out what is "
                                     "not text with --on-error skip");
}

/* ---- warnings about inputs ---- */

/* Returns a glob, ready for the shell, that chooses the files with the ending of this one, or with its name if it has
 * none. */
static char *glob_of(const char *path)
{
    const char *ending = name_ending(path), *name = path_name(path);
    char glob[256];
    const int count = snprintf(glob, sizeof glob, "%s%s", *ending ? "*" : "", *ending ? ending : name);
    return cli_shell_quote(count > 0 && (size_t)count < sizeof glob ? glob : name);
}

/* Keeps a message, if it is the first one of its kind: the inputs are listed more than once. From any thread. A warning
 * that memory is missing for is not worth an error. */
static void keep(struct input_warnings *warnings, enum input_warning kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void keep(struct input_warnings *warnings, enum input_warning kind, const char *format, ...)
{
    char *message, *none = NULL;
    va_list arguments;
    va_start(arguments, format);
    const bool made = vasprintf(&message, format, arguments) >= 0;
    va_end(arguments);
    if (made && !atomic_compare_exchange_strong(&warnings->messages[kind], &none, message))
        free(message);
}

static void mixed_found(void *user, const char *operand, const char *text, const char *records)
{
    char *texts = glob_of(text), *others = glob_of(records);
    if (texts && others)
        keep(user, INPUTS_MIXED,
             "'%s' has files of records and of text; '%s' is read as text, one document per file: leave such files out "
             "with --exclude %s, or choose the files with --include %s",
             operand, text, texts, others);
    free(texts);
    free(others);
}

static void repeated_found(void *user, const char *path)
{
    keep(user, INPUTS_REPEATED, "some inputs are named more than once, and are read each time; the first is '%s'",
         path);
}

/* Writes a separator as --separator reads it, ready for the shell. */
static char *separator_typed(const char *separator, uint64_t bytes)
{
    static const char bare[] = "\n\t\r\\", escaped[] = "ntr\\";
    char typed[4 * 2 * RECORD_SEPARATOR_MOST + 1];
    size_t at = 0;
    for (uint64_t i = 0; i < bytes; i++) {
        const unsigned char byte = (unsigned char)separator[i];
        const char *named = byte ? strchr(bare, byte) : NULL;
        if (named) {
            typed[at++] = '\\';
            typed[at++] = escaped[named - bare];
        } else if (byte < 0x20 || byte == 0x7f) {
            at += (size_t)snprintf(typed + at, sizeof typed - at, "\\x%02x", byte);
        } else {
            typed[at++] = separator[i];
        }
    }
    typed[at] = '\0';
    return cli_shell_quote(typed);
}

static void undivided_found(void *user, const char *path, const char *other, uint64_t other_bytes)
{
    char *typed = other ? separator_typed(other, other_bytes) : NULL;
    if (typed)
        keep(user, INPUTS_OTHER_LINE_ENDS,
             "the separator does not occur in '%s', which has %s line ends; it is one document; use --separator %s for "
             "such files",
             path, memchr(other, '\r', other_bytes) ? "CRLF" : "LF", typed);
    else
        keep(user, INPUTS_UNDIVIDED, "the separator does not occur in '%s', which is one document; check --separator",
             path);
    free(typed);
}

static void unversioned_found(void *user, const char *path)
{
    keep(user, INPUTS_UNVERSIONED,
         "%s: the server names no version of this file (an ETag that is not weak, or an older Last-Modified): after an "
         "interruption the file is read from its beginning again",
         path);
}

/* Says at once what is waited for, from the thread that waits. Another one may draw the progress meanwhile, so the line
 * of a terminal is cleared without it. */
static void waits_told(void *user, const char *path, const char *reason, uint64_t seconds)
{
    const struct input_warnings *warnings = user;
    if (os_is_terminal(fileno(stderr)))
        (void)fputs("\r\033[K", stderr);
    cli_warn(warnings->program, "%s: %s; waiting %" PRIu64 " s", path, reason, seconds);
}

void input_warnings_watch(struct input_warnings *warnings, struct corpus_options *options)
{
    options->select.user = warnings;
    options->select.repeated = repeated_found;
    options->undivided = undivided_found;
    options->undivided_user = warnings;
    options->select.watch = (struct remote_watch){warnings->saved ? unversioned_found : NULL, waits_told, warnings};
    if (options->format == CORPUS_AUTO && options->content == CORPUS_CONTENT_TEXT && !options->select.include_count)
        options->select.mixed = mixed_found;
}

void input_warnings_tell(struct input_warnings *warnings, struct cli_progress *progress)
{
    for (int i = 0; i < INPUT_WARNINGS; i++) {
        const char *message = warnings->told[i] ? NULL : atomic_load(&warnings->messages[i]);
        if (!message)
            continue;
        warnings->told[i] = true;
        cli_progress_clear(progress);
        cli_warn(warnings->program, "%s", message);
    }
}

void input_warnings_free(struct input_warnings *warnings)
{
    for (int i = 0; i < INPUT_WARNINGS; i++)
        free(atomic_exchange(&warnings->messages[i], NULL));
}
