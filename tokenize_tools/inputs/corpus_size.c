/* corpus_size.c - see corpus_size.h. */
#include "corpus_size.h"

#include <string.h>

#include "common/bytes.h"
#include "platform/os.h"
#include "remote/remote_stream.h"
#include "remote/remote_url.h"

#define REMOTE_ASKED_MOST 200 /* URLs whose servers are asked for the size; of more the total is unknown */

/* Adds the size of a URL. Returns false if it is unknown. */
static bool remote_total(struct remote **remote, const char *name, bool (*stop)(void *user), void *user,
                         uint64_t *total)
{
    if (!*remote && remote_new(remote, stop, user, NULL, NULL))
        return false;
    const uint64_t bytes = remote_size(*remote, name);
    return bytes != UINT64_MAX && !add_overflows(*total, bytes, total);
}

uint64_t corpus_size(const char *const *operands, size_t count, const struct inputs_selection *select,
                     bool (*stop)(void *user), void *user)
{
    struct inputs *inputs;
    struct os_stat stat;
    const char *path;
    struct remote *remote = NULL;
    uint64_t total = 0, asked = 0;
    for (size_t i = 0; i < select->list_count; i++)
        if (!strcmp(select->lists[i], "-") || os_stat(select->lists[i], &stat) || stat.kind != OS_KIND_FILE)
            return 0;
    if (inputs_new(&inputs, operands, count, select, stop, user, NULL))
        return 0;
    for (;;) {
        const enum tokmap_status status = inputs_next(inputs, &path, NULL);
        if (status == TOKMAP_END)
            break;
        if (status == TOKMAP_ERROR_INTERRUPTED || (stop && stop(user))) {
            total = 0;
            break;
        }
        if (!status && inputs_bytes(inputs) != UINT64_MAX) {
            if (add_overflows(total, inputs_bytes(inputs), &total)) {
                total = 0;
                break;
            }
            continue;
        }
        if (!status && remote_kind(path)) {
            if (asked++ == REMOTE_ASKED_MOST || !remote_total(&remote, path, stop, user, &total)) {
                total = 0;
                break;
            }
            continue;
        }
        if (status || !strcmp(path, "-") || os_stat(path, &stat))
            continue;
        if (stat.kind != OS_KIND_FILE || add_overflows(total, stat.bytes, &total)) {
            total = 0;
            break;
        }
    }
    inputs_free(inputs);
    remote_free(remote);
    return total;
}
