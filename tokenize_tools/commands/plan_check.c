/* plan_check.c - see plan_check.h. */
#include "plan_check.h"

#include <string.h>

#include "common/bytes.h"
#include "common/error.h"

#define DOCUMENTS_A_LOOK ((uint64_t)1 << 14)

/* Checks the segments of one document, which are numbers `next` and so on in order of their first tokens. */
static enum tokmap_status document_check(const struct plan *plan, const struct tokmap_document *document,
                                         uint64_t *next, struct tokmap_error *error)
{
    const uint64_t seq_len = plan->header.seq_len;
    for (uint64_t done = 0; done < document->tokens;) {
        struct plan_segment segment = {0};
        uint64_t number;
        const uint64_t part = min64(document->tokens - done, seq_len);
        enum tokmap_status status =
            *next < plan->header.segments ? plan_ordered(plan, *next, &number, &segment, error) : TOKMAP_OK;
        if (status)
            return status;
        if (segment.first_token != document->first_token + done || segment.tokens != part)
            return error_set(error, TOKMAP_ERROR_MISMATCH, plan->path, TOKMAP_NO_OFFSET,
                             "the plan has no segment of %" PRIu64 " tokens from token %" PRIu64 " on, although "
                             "document %" PRIu64 " of the dataset has them; make the plan again with `tokmap plan`",
                             part, document->first_token + done, document->number);
        ++*next;
        done += part;
    }
    return TOKMAP_OK;
}

static enum tokmap_status documents_check(const struct plan *plan, const struct tokmap_dataset *dataset,
                                          int (*progress)(void *user, uint64_t done, uint64_t total), void *user,
                                          struct tokmap_error *error)
{
    struct tokmap_dataset_info info = {.size = sizeof info};
    enum tokmap_status status = tokmap_dataset_info(dataset, &info);
    uint64_t next = 0;
    for (uint64_t number = 0; number < info.documents && !status; number++) {
        struct tokmap_document document;
        if (number % DOCUMENTS_A_LOOK == 0 && progress && progress(user, number, info.documents))
            return error_set(error, TOKMAP_ERROR_INTERRUPTED, plan->path, TOKMAP_NO_OFFSET,
                             "the caller stopped the check");
        status = tokmap_dataset_document(dataset, number, &document, error);
        if (!status)
            status = document_check(plan, &document, &next, error);
    }
    if (!status && next != plan->header.segments)
        status = error_set(error, TOKMAP_ERROR_MISMATCH, plan->path, TOKMAP_NO_OFFSET,
                           "the plan has %" PRIu64 " segments, but the documents of the dataset make %" PRIu64
                           "; make the plan again with `tokmap plan`",
                           plan->header.segments, next);
    return status;
}

enum tokmap_status plan_check(const char *path, const struct tokmap_dataset *dataset,
                              int (*progress)(void *user, uint64_t done, uint64_t total), void *user,
                              struct plan_header *header, struct tokmap_error *error)
{
    struct plan plan;
    *header = (struct plan_header){0};
    enum tokmap_status status = plan_open(&plan, path, error);
    if (status)
        return status;
    *header = plan.header;
    status = plan_verify(&plan, progress, user, error);
    if (!status && dataset)
        status = documents_check(&plan, dataset, progress, user, error);
    plan_close(&plan);
    return status;
}
