/* stated_tokenizer.c - see stated_tokenizer.h. */
#include "stated_tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/error.h"
#include "common/hash.h"
#include "pack/shard_about.h"
#include "vocabulary/vocabulary.h"

static enum tokmap_status about_make(struct stated_tokenizer *stated, const struct tokenizer *tokenizer,
                                     const struct tokmap_tokenizer_options *options, const char *path,
                                     struct tokmap_error *error)
{
    struct cli_json json;
    size_t bytes;
    FILE *file = open_memstream(&stated->about, &bytes);
    if (!file)
        return error_set_memory(error, "the about section", 0);
    cli_json_begin(&json, file);
    json.as_given = true;
    shard_about_tokenizer(&json, NULL, tokenizer, options, path);
    const bool failed = ferror(file) != 0;
    if (fclose(file) || failed)
        return error_set_memory(error, "the about section", 0);
    stated->about[strcspn(stated->about, "\n")] = '\0'; /* the writer ends the object with a line */
    return TOKMAP_OK;
}

static enum tokmap_status mismatch(const struct tokenizer_arguments *asked, const uint8_t *found,
                                   const uint8_t *recorded, struct tokmap_error *error)
{
    char ours[33], theirs[33];
    hash128_hex(found, ours);
    hash128_hex(recorded, theirs);
    return error_set(error, TOKMAP_ERROR_MISMATCH, asked->spec, TOKMAP_NO_OFFSET,
                     "the dataset was not made with this tokenizer, whose fingerprint is %s; the fingerprint that the "
                     "dataset records is %s. Leave out options.tokenizer to keep that",
                     ours, theirs);
}

/* The fingerprint depends on whether special tokens in text are recognized. Ids are stated to be those of a tokenizer
 * that takes them for text, the default of `tokmap pack`; a recorded fingerprint may be either. */
enum tokmap_status stated_tokenizer_open(struct stated_tokenizer *stated, const struct tokenizer_arguments *asked,
                                         const uint8_t *recorded, struct tokmap_error *error)
{
    static const uint8_t none[16];
    static const enum tokmap_special ways[] = {TOKMAP_SPECIAL_TEXT, TOKMAP_SPECIAL_RECOGNIZE};
    const bool is_recorded = recorded && memcmp(recorded, none, sizeof none);
    enum tokmap_status status = TOKMAP_OK;
    *stated = (struct stated_tokenizer){.vocabulary = 0};
    for (int i = 0; i < 2 && asked->spec_given && !stated->vocabulary && !status; i++) {
        struct tokmap_tokenizer_options options = asked->options;
        struct tokenizer *tokenizer;
        struct tokenizer_info info;
        options.special = ways[i];
        status = vocabulary_open(&tokenizer, asked->spec, &options, error);
        if (status)
            break;
        tokenizer_info(tokenizer, &info);
        if (!i)
            memcpy(stated->fingerprint, info.fingerprint, sizeof stated->fingerprint);
        if (!is_recorded || !memcmp(info.fingerprint, recorded, sizeof none)) {
            memcpy(stated->fingerprint, info.fingerprint, sizeof stated->fingerprint);
            stated->vocabulary = info.vocabulary;
            (void)snprintf(stated->name, sizeof stated->name, "%s", info.name);
            status = about_make(stated, tokenizer, &options, strcmp(asked->spec, "bytes") ? asked->spec : NULL, error);
        }
        tokenizer_close(tokenizer);
    }
    if (!status && asked->spec_given && !stated->vocabulary)
        status = mismatch(asked, stated->fingerprint, recorded, error);
    if (status)
        stated_tokenizer_free(stated);
    return status;
}

void stated_tokenizer_free(struct stated_tokenizer *stated)
{
    free(stated->about);
    *stated = (struct stated_tokenizer){.vocabulary = 0};
}
