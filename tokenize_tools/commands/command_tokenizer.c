/* SPDX-License-Identifier: MIT */
/* command_tokenizer.c - tokmap tokenizer: describes a vocabulary file. */
#include <inttypes.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "commands.h"
#include "commands/options/tokenizer_arguments.h"
#include "common/hash.h"
#include "common/visible.h"
#include "engine/cut_tokenizer.h"
#include "platform/os.h"
#include "vocabulary/folder.h"

static const char program[] = "tokmap tokenizer";

#define LISTED 24 /* added tokens that are listed without --all */

struct describing {
    struct tokenizer_arguments asked;
    struct folder folder;
    bool json, all;
};

/* Adds a token that begins or ends a document: its id, and its name. */
static void id_fact(struct cli_report *report, const char *name, const char *label, const struct tokenizer *tokenizer,
                    uint64_t id)
{
    struct tokmap_added_token added = {.bytes = 0}, at;
    const struct tokenizer_info info = info_of_tokenizer(tokenizer);
    for (uint64_t i = 0; i < info.added && id != TOKMAP_NO_ID; i++) {
        tokenizer_added_at(tokenizer, i, &at);
        added = at.id == id ? at : added;
    }
    if (id == TOKMAP_NO_ID)
        cli_fact(report, name, label, cli_id(id), "not named");
    else
        cli_fact(report, name, label, cli_id(id), "%" PRIu64 "%s%.*s", id, added.bytes ? "  " : "",
                 (int)(added.bytes < 100 ? added.bytes : 100), added.bytes ? added.text : "");
}

/* Adds how long texts are cut before they are encoded, and how the code of the model would cut them. */
static void cuts_facts(struct cli_report *report, const struct tokenizer_info *info)
{
    const struct text_cuts *cuts = text_cuts_named(info->cut_as      ? info->cut_as
                                                   : info->code_cuts ? info->code_cuts
                                                                     : "");
    cli_member(report, "code_cuts", cli_text(info->code_cuts));
    cli_member(report, "cut_as", cli_text(info->cut_as));
    if (cuts)
        cli_row(report, "long texts",
                "%s%s, every %s characters, and in runs of more than %s characters of white space, or without any",
                info->cut_as ? "cut as by the code of "
                             : "encoded as a whole; --cut-as cuts them, which changes ids there, as the code of ",
                cuts->name, CLI_COUNT(cuts->characters), CLI_COUNT(cuts->run));
}

/* Adds which files of a folder were used, which were not, and where they contradict each other. */
static void folder_facts(struct cli_report *report, const struct folder *folder)
{
    const uint32_t count = folder->path ? folder->file_count : 0;
    for (int used = 1; used >= 0; used--) {
        const char *label = used ? "used" : "not used";
        for (uint32_t i = 0; i < count; i++) {
            const struct folder_file *file = &folder->files[i];
            if (file->used != used)
                continue;
            cli_row(report, label, "%s%s%s", file->name, *file->what ? ": " : "", file->what);
            label = "";
        }
    }
    cli_report_array(report, "files");
    for (uint32_t i = 0; i < count; i++) {
        cli_report_item(report);
        cli_member(report, "name", cli_text(folder->files[i].name));
        cli_member(report, "used", cli_bool(folder->files[i].used));
        cli_member(report, "what", cli_text(folder->files[i].what));
        cli_report_close(report);
    }
    cli_report_close(report);
    cli_report_array(report, "warnings");
    for (uint32_t i = 0; i < folder->warning_count; i++)
        cli_fact_text(report, NULL, "warning", folder->warnings[i]);
    for (uint32_t i = 0; i < folder->warning_count; i++)
        cli_member(report, NULL, cli_text(folder->warnings[i]));
    cli_report_close(report);
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

static void report(const struct tokenizer *tokenizer, const struct tokenizer_info *info, uint64_t open_ns,
                   const struct describing *describing)
{
    struct cli_report report;
    const uint64_t listed = describing->all || info->added <= LISTED ? info->added : LISTED;
    cli_report_begin(&report, describing->json,
                     "tokenizer|form|scanner|fingerprint|largest id|width of a token|ends a document|begins a "
                     "document|post-processor|long texts|added tokens|note|*|ready in");
    cli_fact_text(&report, "name", "tokenizer", info->name);
    cli_fact_text(&report, "form", "form", info->form);
    cli_fact_text(&report, "scanner", "scanner", info->scanner);
    cli_fact_text(&report, "note", info->note ? "note" : NULL, info->note);
    cli_fact_text(&report, "fingerprint", "fingerprint", HASH128_HEX(info->fingerprint));
    cli_fact(&report, "largest_id", "largest id", cli_number(info->vocabulary - 1), "%" PRIu64, info->vocabulary - 1);
    cli_member(&report, "vocabulary", cli_number(info->vocabulary));
    cli_fact(&report, "width", "width of a token", cli_number(info->width), "%" PRIu32 " bytes", info->width);
    id_fact(&report, "eod", "ends a document", tokenizer, info->eod_id);
    id_fact(&report, "bos", "begins a document", tokenizer, info->bos_id);
    cli_fact(&report, "open_ms", "ready in", cli_real((double)open_ns * 1e-6), "%s",
             CLI_SECONDS((double)open_ns * 1e-9));
    cli_member(&report, "cache", cli_text("not used")); /* there is none; programs may ask for the member */
    cli_fact(&report, "post_processor", info->frame ? "post-processor" : NULL, cli_text(info->frame),
             "%s a text; --bos and --eod choose what is written", info->frame);
    cuts_facts(&report, info);
    if (info->added)
        cli_row(&report, "added tokens", "%s, %s of them special", CLI_COUNT(info->added), CLI_COUNT(info->specials));
    else
        cli_row(&report, "added tokens", "none");
    folder_facts(&report, &describing->folder);
    cli_report_rows(&report, NULL);
    cli_report_array(&report, "added_tokens");
    for (uint64_t i = 0; i < info->added; i++) {
        struct tokmap_added_token added;
        tokenizer_added_at(tokenizer, i, &added);
        cli_report_item(&report);
        cli_member(&report, "id", cli_number(added.id));
        cli_member(&report, "text", cli_bytes_text(added.text, (size_t)added.bytes));
        cli_member(&report, "special", cli_bool(added.special));
        cli_report_close(&report);
        if (i < listed && !describing->json)
            token_print(&added);
    }
    cli_report_close(&report);
    cli_report_end(&report);
    if (listed < info->added && !describing->json)
        (void)printf("  ... and %" PRIu64 " more; list them with --all\n", info->added - listed);
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
        info = info_of_tokenizer(tokenizer);
        folder_compare(&describing->folder, tokenizer);
        report(tokenizer, &info, open_ns, describing);
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
        CLI_OPTIONS(options),
        .operands = CLI_FILES,
    };
    return cli_run(&command, argc, argv, describe, &describing);
}
