/* SPDX-License-Identifier: MIT */
/*
 * dataset_name.c - see dataset_name.h.
 *
 * Percentages are exact: 0..99.5% is read as 0 to 995 of 1000, and of 1234 documents it holds those from
 * floor(1234 * 0 / 1000) up to floor(1234 * 995 / 1000) = 1227. A part that begins where another one ends therefore
 * begins with the first document that the other one does not have, whatever the number of documents.
 */
#include "dataset_name.h"

#include <assert.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "documents.h"
#include "format/shard_file.h"
#include "open_shards.h"
#include "remote/remote_url.h"
#include "text/decimal.h"

#define DECIMALS_MOST 12
#define FORMS "a part is written NAME#docs=A..B%%, NAME#docs=A..B, or NAME#tokens=A..B, for example web#docs=0..99.5%%"

#define WRONG(name, ...) error_set(error, TOKMAP_ERROR_ARGUMENT, (name), TOKMAP_NO_OFFSET, __VA_ARGS__)

/* A number with decimals: value / 10^decimals. */
struct exact {
    uint64_t value;
    uint32_t decimals;
};

static bool read_exact(const char **at, const char *end, struct exact *number)
{
    number->decimals = 0;
    if (!decimal_read(at, end, &number->value))
        return false;
    /* A point that another point follows belongs to "..". */
    if (end - *at < 2 || (*at)[0] != '.' || (*at)[1] == '.')
        return true;
    for (++*at; *at < end && decimal_is_digit(**at); ++*at, number->decimals++)
        if (number->decimals == DECIMALS_MOST || mul_overflows(number->value, 10, &number->value) ||
            add_overflows(number->value, (uint64_t)(**at - '0'), &number->value))
            return false;
    return number->decimals > 0;
}

static bool scale_to(struct exact *number, uint32_t decimals)
{
    for (; number->decimals < decimals; number->decimals++)
        if (mul_overflows(number->value, 10, &number->value))
            return false;
    return true;
}

static enum tokmap_status read_part(struct dataset_part *part, const char *name, const char *range, bool documents,
                                    struct tokmap_error *error)
{
    struct exact from, to;
    const char *at = range, *end = range + strlen(range);
    const bool percent = documents && end > at && end[-1] == '%';
    end -= percent;
    bool good = read_exact(&at, end, &from) && end - at > 2 && !memcmp(at, "..", 2);
    at += good ? 2 : 0;
    good = good && read_exact(&at, end, &to) && at == end && (percent || !(from.decimals || to.decimals));
    if (!good)
        return remote_is(name) && strchr(range, '?')
                   ? WRONG(name,
                           "the words of a cache come before the part, not after it; write "
                           "NAME?%.200s#%s=%.*s",
                           strchr(range, '?') + 1, documents ? "docs" : "tokens", (int)min64(strcspn(range, "?"), 60),
                           range)
                   : WRONG(name, "the part '%.60s' is not two numbers A..B%s; " FORMS, range,
                           documents ? "" : " of tokens");
    const uint32_t decimals = from.decimals > to.decimals ? from.decimals : to.decimals;
    struct exact whole = {100, 0};
    if (percent && (!scale_to(&from, decimals) || !scale_to(&to, decimals) || !scale_to(&whole, decimals)))
        return WRONG(name, "the part '%.60s' has too many digits; " FORMS, range);
    part->unit = percent ? PART_PERCENT : documents ? PART_DOCUMENTS : PART_TOKENS;
    part->from = from.value;
    part->to = to.value;
    part->whole = whole.value;
    if (percent && to.value > whole.value)
        return WRONG(name, "the part '%.60s' ends above 100%%; the last part of a dataset ends at 100%%", range);
    if (from.value > to.value)
        return WRONG(name,
                     "the part '%.60s' ends before it begins; A..B holds A and all that follows up to, not "
                     "including, B",
                     range);
    if (from.value == to.value)
        return WRONG(name, "the part '%.60s' is empty; A..B holds A and all that follows up to, not including, B",
                     range);
    return TOKMAP_OK;
}

/* Returns the '#' at which the part of a name begins, or NULL. */
static const char *part_of(const char *name, size_t bytes, bool *documents)
{
    while (bytes && name[bytes - 1] != '#')
        bytes--;
    if (!bytes)
        return NULL;
    *documents = !strncmp(name + bytes, "docs=", 5);
    return *documents || !strncmp(name + bytes, "tokens=", 7) ? name + bytes - 1 : NULL;
}

enum tokmap_status dataset_name_split(const char *name, char **base, struct dataset_part *part,
                                      struct tokmap_error *error)
{
    bool documents, again;
    enum tokmap_status status = TOKMAP_OK;
    const char *mark = part_of(name, strlen(name), &documents);
    *part = (struct dataset_part){PART_WHOLE, 0, 0, 0};
    *base = NULL;
    /* The full name of a file is that of a file, whatever signs it has. */
    if (mark && (shard_file_is_main(name) || name[strlen(name) - 1] == '/'))
        mark = NULL;
    const size_t bytes = mark ? (size_t)(mark - name) : strlen(name);
    if (mark)
        status = read_part(part, name, strchr(mark, '=') + 1, documents, error);
    if (!status && mark && (!bytes || part_of(name, bytes, &again)))
        status = WRONG(name, "%s; " FORMS,
                       bytes ? "the name has two parts, but a part of a part cannot be named"
                             : "the name of the dataset is missing before its part");
    if (!status && !(*base = strndup(name, bytes)))
        status = error_set_memory(error, "the name of a dataset", bytes + 1);
    return status;
}

uint64_t dataset_part_document(const struct dataset_part *part, uint64_t documents, uint64_t at)
{
    assert(part->unit == PART_PERCENT && at <= part->whole);
    return (uint64_t)((unsigned __int128)documents * at / part->whole);
}

/*
 * A part is a range of tokens and a range of documents of the whole. Both are known for the whole by now, so a part
 * reads a few numbers of one or two indexes and nothing else. Shards outside the range are closed. The first and the
 * last shard that remain hold the part of their file between skipped_tokens and skipped_tokens + tokens.
 *
 * Example: two shards have 100 and 50 tokens, in documents of 30, 70, and 50 tokens. The part #tokens=40..120 holds
 * documents 1 (from its 11th token on) and 2 (its first 20 tokens). Shard 0 has skipped_tokens 40, tokens 60,
 * skipped_documents 1, documents 1. Shard 1 has 0, 20, 0, and 1, and is cut.
 */

struct range {
    uint64_t first_token, end_token;
    uint64_t first_document, end_document;
};

#define RANGE(...) error_set(error, TOKMAP_ERROR_RANGE, dataset->name, TOKMAP_NO_OFFSET, __VA_ARGS__)

static enum tokmap_status of_documents(const struct tokmap_dataset *dataset, const struct dataset_part *part,
                                       struct range *range, struct tokmap_error *error)
{
    struct tokmap_document first, last;
    const bool percent = part->unit == PART_PERCENT;
    if (dataset_documents_unknown(dataset))
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, dataset->name, TOKMAP_NO_OFFSET,
                         "where the documents of this dataset are is not recorded, so it has no part of documents; "
                         "run `tokmap index` on it, or use #tokens=A..B");
    range->first_document = percent ? dataset_part_document(part, dataset->documents, part->from) : part->from;
    range->end_document = percent ? dataset_part_document(part, dataset->documents, part->to) : part->to;
    if (range->end_document > dataset->documents)
        return RANGE("the part ends at document %" PRIu64 ", but the dataset has %" PRIu64 " documents; end it there",
                     range->end_document, dataset->documents);
    if (range->first_document == range->end_document)
        return RANGE("the part has no documents, because the dataset has only %" PRIu64 "; name a larger part",
                     dataset->documents);
    enum tokmap_status status = dataset_document(dataset, range->first_document, &first, error);
    if (!status)
        status = dataset_document(dataset, range->end_document - 1, &last, error);
    if (status)
        return status;
    range->first_token = first.first_token;
    range->end_token = last.first_token + last.tokens;
    if (range->first_token >= range->end_token)
        return RANGE("the part has %" PRIu64 " documents, but all of them are empty; name a larger part",
                     range->end_document - range->first_document);
    return TOKMAP_OK;
}

static enum tokmap_status of_tokens(const struct tokmap_dataset *dataset, const struct dataset_part *part,
                                    struct range *range, struct tokmap_error *error)
{
    struct tokmap_document first, last;
    if (part->to > dataset->tokens)
        return RANGE("the part ends at token %" PRIu64 ", but the dataset has %" PRIu64 " tokens; end it there",
                     part->to, dataset->tokens);
    *range = (struct range){part->from, part->to, 0, dataset->documents};
    if (dataset_documents_unknown(dataset) || (!part->from && part->to == dataset->tokens))
        return TOKMAP_OK;
    enum tokmap_status status = dataset_document_at(dataset, part->from, &first, error);
    if (!status)
        status = dataset_document_at(dataset, part->to - 1, &last, error);
    if (status)
        return status;
    range->first_document = first.number;
    range->end_document = last.number + 1;
    return TOKMAP_OK;
}

/* Reduces a shard to what it has of the range. Returns false if it has nothing of it. */
static bool cut_place(struct shard_place *place, const struct range *range)
{
    const uint64_t from = max64(place->first_token, range->first_token);
    const uint64_t to = min64(place->first_token + place->tokens, range->end_token);
    const uint64_t first = max64(place->first_document, range->first_document);
    const uint64_t end = min64(place->first_document + place->documents, range->end_document);
    if (from >= to && first >= end)
        return false;
    place->skipped_tokens = min64(from - place->first_token, place->tokens);
    place->skipped_documents = min64(first - place->first_document, place->documents);
    place->tokens = to > from ? to - from : 0;
    place->documents = end > first ? end - first : 0;
    place->first_token = place->first_token + place->skipped_tokens - range->first_token;
    place->first_document = place->first_document + place->skipped_documents - range->first_document;
    return true;
}

static void cut_shards(struct tokmap_dataset *dataset, const struct range *range)
{
    uint64_t kept = 0;
    shards_close(dataset);
    for (uint64_t i = 0; i < dataset->shard_count; i++) {
        struct shard_slot *slot = &dataset->slots[i];
        if (cut_place(&slot->place, range))
            dataset->slots[kept++] = *slot;
        else
            dataset_shard_free(slot->open);
    }
    dataset->shard_count = kept;
}

/* Notes whether the last document of the part is cut, and tells the shards that are open where they are now. */
static enum tokmap_status note_cut(struct tokmap_dataset *dataset, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    uint64_t last = dataset->shard_count;
    while (last && !dataset->slots[last - 1].place.tokens)
        last--;
    for (uint64_t i = 0; i < dataset->shard_count; i++)
        if (dataset->slots[i].open)
            dataset->slots[i].open->place = dataset->slots[i].place;
    if (last--) {
        struct shard_slot *slot = &dataset->slots[last];
        const struct shard *shard;
        status = shard_hold(dataset, last, &shard, error);
        if (!status) {
            status = shard_is_cut(shard, &slot->place.cut, error);
            slot->open->place.cut = slot->place.cut;
            shard_release(dataset, last);
        }
        shards_close(dataset); /* it is not settled yet how they are read */
    }
    return status;
}

static void identify(struct tokmap_dataset *dataset, const struct range *range)
{
    uint8_t message[8 + 16 + 2 * 8];
    memcpy(message, "part 1\0\0", 8);
    memcpy(message + 8, dataset->content, 16);
    store64(message + 24, range->first_token);
    store64(message + 32, range->end_token);
    hash128_store(hash128(message, sizeof message), dataset->content);
}

enum tokmap_status dataset_cut(struct tokmap_dataset *dataset, const struct dataset_part *part,
                               struct tokmap_error *error)
{
    struct range range;
    if (part->unit == PART_WHOLE)
        return TOKMAP_OK;
    enum tokmap_status status = (part->unit == PART_TOKENS ? of_tokens : of_documents)(dataset, part, &range, error);
    if (status)
        return status;
    const uint64_t tokens = range.end_token - range.first_token, documents = range.end_document - range.first_document;
    if (tokens == dataset->tokens && documents == dataset->documents)
        return TOKMAP_OK;
    identify(dataset, &range);
    dataset->part_first = range.first_token;
    if (dataset->synthetic) {
        dataset->skipped_tokens = range.first_token;
        dataset->skipped_documents = range.first_document;
    }
    cut_shards(dataset, &range);
    dataset->tokens = tokens;
    dataset->documents = documents;
    return note_cut(dataset, error);
}
