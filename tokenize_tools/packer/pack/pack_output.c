/* SPDX-License-Identifier: MIT */
#include "pack_output.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "encode/document_encode.h"
#include "format/shard_commit.h"
#include "format/shard_file.h"
#include "platform/os.h"
#include "text/path.h"
#include "work/dropped_writer.h"

struct tokenizer_info pack_tokenizer(const struct tokenizer *tokenizer, uint64_t vocabulary)
{
    if (tokenizer)
        return info_of_tokenizer(tokenizer);
    return (struct tokenizer_info){.vocabulary = vocabulary, .width = vocabulary <= (uint64_t)UINT16_MAX + 1 ? 2 : 4};
}

uint32_t pack_output_sets(const struct pack_options *options)
{
    return options->split ? options->split->count : 1;
}

void pack_set_ending(const struct pack_options *options, uint32_t set, char ending[SPLIT_NAME_MOST + 2])
{
    assert(set < pack_output_sets(options));
    (void)snprintf(ending, SPLIT_NAME_MOST + 2, "%s%s", options->split ? "." : "",
                   options->split ? options->split->sets[set].name : "");
}

char *pack_set_name(const struct pack_options *options, uint32_t set)
{
    char ending[SPLIT_NAME_MOST + 2];
    pack_set_ending(options, set, ending);
    return path_ended(options->prefix, ending);
}

struct shard_writer_options pack_output_shard(const struct pack_options *options)
{
    const struct tokenizer_info info = pack_tokenizer(options->tokenizer, options->vocabulary);
    const bool sets = options->shard_tokens || options->split; /* set_commit.h calls it */
    struct shard_writer_options shard = {.width = info.width,
                                         .vocabulary = info.vocabulary,
                                         .eod_id = options->eod_id,
                                         .bos_id = options->bos_id,
                                         .replace = options->replace,
                                         .mask = document_is_masked(&options->corpus),
                                         .mixed = options->shuffle != NULL,
                                         .own_thread = options->shuffle && options->threads > 1,
                                         .seal = options->seal,
                                         .sync = options->sync,
                                         .list = sets            ? SHARD_LIST_STAYS
                                                 : options->drop ? SHARD_LIST_NEW
                                                                 : SHARD_LIST_GOES,
                                         .last = sets ? NULL : options->before_commit,
                                         .last_user = options->user,
                                         .columns = options->corpus.columns,
                                         .column_count = (uint32_t)options->corpus.column_count};
    memcpy(shard.tokenizer, info.fingerprint, sizeof shard.tokenizer);
    return shard;
}

void pack_output_settle(const struct pack_options *options)
{
    if (options->shard_tokens || options->split)
        return;
    shard_settle(options->prefix);
    drop_names_add(NULL, options->prefix, false); /* the list of the output has its name */
    if (!options->seal)
        return;
    char *plain = shard_file_path(options->prefix, SHARD_TOKENS, SHARD_PARTIAL);
    if (plain)
        (void)os_unlink(plain);
    free(plain);
}

/* ---- accounts ---- */

/* Refuses an output from which nothing would be learned, though --learn says what is. */
static enum tokmap_status learned_check(const struct pack_options *options, const struct pack_result *result,
                                        struct tokmap_error *error)
{
    const struct chat_learn *learn = options->chat ? chat_template_learned(options->chat) : NULL;
    char words[CHAT_LEARN_TEXT], found[128] = "";
    if (!learn || !learn->given || result->counted_tokens)
        return TOKMAP_OK;
    chat_learn_print(learn, words);
    for (unsigned role = 0; role < CHAT_ROLES; role++)
        if (result->roles[role].messages && !chat_template_is_rendered(options->chat))
            (void)snprintf(found + strlen(found), sizeof found - strlen(found), "%s%s",
                           *found ? ", " : "; the messages have the roles ", chat_role_name((enum chat_role)role));
    return error_set(error, TOKMAP_ERROR_INPUT, NULL, TOKMAP_NO_OFFSET,
                     "no token of %" PRIu64 " conversations is learned with --learn %s%s", result->counts.documents,
                     words, found);
}

enum tokmap_status pack_documents_check(const struct pack_options *options, const struct pack_result *result,
                                        struct tokmap_error *error)
{
    const struct corpus_counts *counts = &result->counts;
    const struct corpus_left_out *by_length = &counts->left_out[CORPUS_REASON_LENGTH];
    if (!counts->documents && result->dropped.documents)
        return error_set(error, TOKMAP_ERROR_INPUT, NULL, TOKMAP_NO_OFFSET,
                         "all %" PRIu64 " documents contain words of the excluded texts, so nothing is packed",
                         result->dropped.documents);
    if (!counts->documents && result->listed.documents && !by_length->files && !by_length->records)
        return error_set(error, TOKMAP_ERROR_INPUT, NULL, TOKMAP_NO_OFFSET,
                         "all %" PRIu64 " documents are in the lists of --drop, so nothing is packed",
                         result->listed.documents);
    if (!counts->documents && by_length->files + by_length->records)
        return error_set(error, TOKMAP_ERROR_INPUT, NULL, TOKMAP_NO_OFFSET,
                         "no document is left to pack: %" PRIu64 " of the inputs' documents have fewer tokens than "
                         "--min-tokens or more than --max-tokens",
                         by_length->files + by_length->records);
    if (!counts->documents)
        return error_set(error, TOKMAP_ERROR_INPUT, NULL, TOKMAP_NO_OFFSET,
                         "the inputs contain no documents; name inputs that contain text");
    if (!counts->stream_bytes)
        return error_set(error, TOKMAP_ERROR_INPUT, NULL, TOKMAP_NO_OFFSET,
                         "the inputs are empty: no file has a byte; name inputs that contain text");
    return learned_check(options, result, error);
}

enum tokmap_status pack_accounts_check(const struct pack_options *options, struct shard_set *const *sets,
                                       uint32_t set_count, const struct pack_result *result, struct tokmap_error *error)
{
    assert(set_count == 0 || set_count == pack_output_sets(options));
    const struct corpus_counts *counts = &result->counts;
    const uint64_t accounted = counts->document_bytes + counts->structure_bytes + counts->skipped_bytes;
    if (accounted != counts->stream_bytes)
        return error_set(error, TOKMAP_ERROR_INTERNAL, NULL, TOKMAP_NO_OFFSET,
                         "%" PRIu64 " bytes were read and %" PRIu64
                         " are accounted for; this is a bug in tokmap, please report it",
                         counts->stream_bytes, accounted);
    struct shard_set_result written = {0};
    for (uint32_t i = 0; i < set_count; i++) {
        struct shard_set_result set;
        shard_set_result(sets[i], &set);
        written.tokens += set.tokens;
        written.documents += set.documents;
    }
    for (uint32_t i = 0; !set_count && i < SPLIT_SETS_MOST; i++) { /* they are sorted */
        written.tokens += result->sets[i].tokens;
        written.documents += result->sets[i].documents;
    }
    if (options->dry_run)
        written = (struct shard_set_result){.tokens = result->tokens, .documents = counts->documents};
    if (written.tokens != result->tokens || written.documents != counts->documents)
        return error_set(error, TOKMAP_ERROR_INTERNAL, NULL, TOKMAP_NO_OFFSET,
                         "%" PRIu64 " documents were read and %" PRIu64
                         " were written; this is a bug in tokmap, please report it",
                         counts->documents, written.documents);
    return options->unit ? TOKMAP_OK
                         : pack_documents_check(options, result, error); /* pack_finish.c looks at all units */
}

void pack_values_count(struct pack_result *result, size_t columns, const struct corpus_batch *batch)
{
    for (uint64_t i = 0; columns && i < batch->document_count; i++) {
        const struct corpus_document *document = &batch->documents[i];
        for (size_t c = 0; c < columns && !document->unfinished; c++) /* the values come with the last part */
            result->with_value[c] += document->values[c].bytes != 0;
    }
}
