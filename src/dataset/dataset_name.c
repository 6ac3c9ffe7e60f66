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
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "format/shard_file.h"
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
