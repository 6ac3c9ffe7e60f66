/* SPDX-License-Identifier: MIT */
/* command_tokenizer.c - tokmap tokenizer: describes a vocabulary file. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "commands.h"
#include "commands/options/error_options.h"
#include "commands/options/tokenizer_arguments.h"
#include "common/error.h"
#include "common/hash.h"
#include "common/visible.h"
#include "platform/os.h"
#include "tokenizer/text_cuts.h"
#include "vocabulary/folder.h"

static const char program[] = "tokmap tokenizer";

#define LISTED 24 /* added tokens that are listed without --all */

struct describing {
    struct tokenizer_arguments asked;
    struct folder folder;
    bool json, all;
};

static void id_row(struct cli_table *table, const char *what, const struct tokenizer *tokenizer, uint64_t id)
{
    char text[160] = "not named";
    struct tokenizer_info info;
    tokenizer_info(tokenizer, &info);
    if (id != TOKMAP_NO_ID)
        (void)snprintf(text, sizeof text, "%" PRIu64, id);
    for (uint64_t i = 0; i < info.added && id != TOKMAP_NO_ID; i++) {
        struct tokmap_added_token added;
        tokenizer_added_at(tokenizer, i, &added);
        if (added.id == id)
            (void)snprintf(text, sizeof text, "%" PRIu64 "  %.*s", id, (int)(added.bytes < 100 ? added.bytes : 100),
                           added.text);
    }
    const char *const cells[] = {what, text};
    cli_table_row(table, cells);
}

static void row(struct cli_table *table, const char *what, const char *value)
{
    const char *const cells[] = {what, value};
    cli_table_row(table, cells);
}

/* Adds how long texts are cut before they are encoded, and how the code of the model would cut them. */
static void cuts_row(struct cli_table *table, const struct tokenizer_info *info)
{
    char text[320], every[32], run[32];
    const struct text_cuts *cuts = text_cuts_named(info->cut_as      ? info->cut_as
                                                   : info->code_cuts ? info->code_cuts
                                                                     : "");
    if (!cuts)
        return;
    (void)snprintf(text, sizeof text,
                   "%s%s, every %s characters, and in runs of more than %s characters of white space, or without any",
                   info->cut_as ? "cut as by the code of "
                                : "encoded as a whole; --cut-as cuts them, which changes ids there, as the code of ",
                   cuts->name, cli_count(cuts->characters, every), cli_count(cuts->run, run));
    row(table, "long texts", text);
}

/* Adds which files of a folder were used, which were not, and where they contradict each other. */
static void folder_rows(struct cli_table *table, const struct folder *folder)
{
    for (int used = 1; used >= 0; used--) {
        bool first = true;
        for (uint32_t i = 0; i < folder->file_count && folder->path; i++) {
            const struct folder_file *file = &folder->files[i];
            char text[sizeof file->name + sizeof file->what + 4];
            if (file->used != used)
                continue;
            (void)snprintf(text, sizeof text, *file->what ? "%s: %s" : "%s", file->name, file->what);
            row(table, !first ? "" : used ? "used" : "not used", text);
            first = false;
        }
    }
    for (uint32_t i = 0; i < folder->warning_count; i++)
        row(table, "warning", folder->warnings[i]);
}

static void text_json(struct cli_json *out, const char *key, const char *text)
{
    if (text)
        cli_json_text(out, key, text);
    else
        cli_json_null(out, key);
}

static void folder_json(struct cli_json *out, const struct folder *folder)
{
    cli_json_array(out, "files");
    for (uint32_t i = 0; i < folder->file_count && folder->path; i++) {
        const struct folder_file *file = &folder->files[i];
        cli_json_object(out, NULL);
        cli_json_text(out, "name", file->name);
        cli_json_bool(out, "used", file->used);
        cli_json_text(out, "what", file->what);
        cli_json_end(out);
    }
    cli_json_end(out);
    cli_json_array(out, "warnings");
    for (uint32_t i = 0; i < folder->warning_count; i++)
        cli_json_text(out, NULL, folder->warnings[i]);
    cli_json_end(out);
}

/* Escapes control characters, so that a token with a newline stays on its line. */
static void token_print(const struct tokmap_added_token *added)
{
    (void)printf("  %10" PRIu64 "  %s  ", added->id, added->special ? "special" : "added  ");
    for (uint64_t at = 0, length; at < added->bytes; at += length) {
        bool plain;
        length = visible_step(added->text + at, (size_t)(added->bytes - at), &plain);
        if (plain && added->text[at] != '\\')
            (void)fwrite(added->text + at, 1, (size_t)length, stdout);
        else
            for (uint64_t i = 0; i < length; i++)
                (void)printf("\\x%02x", (unsigned char)added->text[at + i]);
    }
    (void)putchar('\n');
}

static void text_print(const struct tokenizer *tokenizer, const struct tokenizer_info *info, uint64_t open_ns,
                       const struct describing *describing)
{
    const bool all = describing->all;
    char hex[33], text[64], count[32], around[256];
    struct cli_table *table = cli_table_new(2);
    hash128_hex(info->fingerprint, hex);
    row(table, "tokenizer", info->name);
    row(table, "form", info->form);
    row(table, "scanner", info->scanner);
    row(table, "fingerprint", hex);
    (void)snprintf(text, sizeof text, "%" PRIu64, info->vocabulary - 1);
    row(table, "largest id", text);
    (void)snprintf(text, sizeof text, "%" PRIu32 " bytes", info->width);
    row(table, "width of a token", text);
    id_row(table, "ends a document", tokenizer, info->eod_id);
    id_row(table, "begins a document", tokenizer, info->bos_id);
    if (info->frame) {
        (void)snprintf(around, sizeof around, "%s a text; --bos and --eod choose what is written", info->frame);
        row(table, "post-processor", around);
    }
    cuts_row(table, info);
    char specials[32];
    (void)snprintf(text, sizeof text, "%s, %s of them special", cli_count(info->added, count),
                   cli_count(info->specials, specials));
    row(table, "added tokens", info->added ? text : "none");
    if (info->note)
        row(table, "note", info->note);
    folder_rows(table, &describing->folder);
    row(table, "ready in", cli_seconds((double)open_ns * 1e-9, text));
    cli_table_print(table, NULL, stdout);
    cli_table_free(table);
    const uint64_t listed = all || info->added <= LISTED ? info->added : LISTED;
    for (uint64_t i = 0; i < listed; i++) {
        struct tokmap_added_token added;
        tokenizer_added_at(tokenizer, i, &added);
        token_print(&added);
    }
    if (listed < info->added)
        (void)printf("  ... and %" PRIu64 " more; list them with --all\n", info->added - listed);
}

static void json_print(const struct tokenizer *tokenizer, const struct tokenizer_info *info, uint64_t open_ns,
                       const struct describing *describing)
{
    char hex[33];
    struct cli_json out;
    hash128_hex(info->fingerprint, hex);
    cli_json_begin(&out, stdout);
    cli_json_object(&out, NULL);
    cli_json_text(&out, "name", info->name);
    cli_json_text(&out, "form", info->form);
    cli_json_text(&out, "scanner", info->scanner);
    text_json(&out, "note", info->note);
    cli_json_text(&out, "fingerprint", hex);
    cli_json_number(&out, "largest_id", info->vocabulary - 1);
    cli_json_number(&out, "vocabulary", info->vocabulary);
    cli_json_number(&out, "width", info->width);
    cli_json_id(&out, "eod", info->eod_id);
    cli_json_id(&out, "bos", info->bos_id);
    cli_json_real(&out, "open_ms", (double)open_ns * 1e-6);
    cli_json_text(&out, "cache", "not used"); /* there is none; programs may ask for the member */
    text_json(&out, "post_processor", info->frame);
    text_json(&out, "code_cuts", info->code_cuts);
    text_json(&out, "cut_as", info->cut_as);
    folder_json(&out, &describing->folder);
    cli_json_array(&out, "added_tokens");
    for (uint64_t i = 0; i < info->added; i++) {
        struct tokmap_added_token added;
        tokenizer_added_at(tokenizer, i, &added);
        cli_json_object(&out, NULL);
        cli_json_number(&out, "id", added.id);
        cli_json_bytes(&out, "text", added.text, (size_t)added.bytes);
        cli_json_bool(&out, "special", added.special);
        cli_json_end(&out);
    }
    cli_json_end(&out);
    cli_json_end(&out);
}

static int describe(const struct cli_command *command, const char **operands, size_t operand_count, void *user)
{
    struct describing *describing = user;
    struct tokenizer *tokenizer = NULL;
    struct tokenizer_state *state = NULL;
    struct tokenizer_info info;
    struct tokmap_error error;
    if (operand_count != 1)
        return cli_misused(command, "expected one tokenizer: a file, a folder, or 'bytes'");
    describing->asked.spec = operands[0];
    describing->asked.folder = &describing->folder;
    const uint64_t started = os_clock_ns();
    int status = tokenizer_arguments_open(command, &describing->asked, false, &tokenizer);
    if (!status && tokenizer_state_new(&state, tokenizer, &error))
        status = command_failed(command, &error);
    const uint64_t open_ns = os_clock_ns() - started;
    if (!status) {
        tokenizer_info(tokenizer, &info);
        folder_compare(&describing->folder, tokenizer);
        if (describing->json)
            json_print(tokenizer, &info, open_ns, describing);
        else
            text_print(tokenizer, &info, open_ns, describing);
    }
    tokenizer_state_free(state);
    tokenizer_close(tokenizer);
    folder_free(&describing->folder);
    return cli_finish(program, status);
}

int command_tokenizer(int argc, char **argv)
{
    struct describing describing = {.asked = TOKENIZER_ARGUMENTS_INIT};
    const struct cli_option options[] = {
        CLI_HEADING("Tokenizer"),
        TOKENIZER_OPTION_SPECIAL(describing.asked),
        TOKENIZER_OPTIONS_RANK_FILE(describing.asked),
        CLI_HEADING("General"),
        {'a', "all", CLI_FLAG, &describing.all, NULL, NULL, "list all added tokens, not only the first 24", NULL},
        {0, "json", CLI_FLAG, &describing.json, NULL, NULL, "print a JSON object", NULL},
    };
    const struct cli_command command = {
        .program = program,
        .usage = "[OPTION]... FILE",
        .summary =
            "Describes a tokenizer: its form, the scanner that cuts text into pieces, its fingerprint, its largest "
            "id, the width of a token, and its special tokens.",
        .details =
            "FILE is a tokenizer.json, a tekken.json, a vocab.bpe beside its encoder.json, a rank file (.tiktoken), "
            "a SentencePiece .model, BERT's vocab.txt, CLIP's bpe_simple_vocab_16e6.txt.gz, RWKV's vocabulary, a "
            "model's "
            "folder, or 'bytes'.\n\n"
            "Examples:\n"
            "  tokmap tokenizer tokenizer.json\n"
            "  tokmap tokenizer --json models/llama3/\n",
        .options = options,
        .option_count = sizeof options / sizeof options[0],
        .operands = CLI_FILES,
    };
    return cli_run(&command, argc, argv, describe, &describing);
}
