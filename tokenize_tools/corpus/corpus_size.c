/* corpus_size.c - see corpus_size.h. */
#include "corpus_size.h"

#include <string.h>

#include "common/bytes.h"
#include "platform/os.h"

uint64_t corpus_size(const char *const *operands, size_t count, const struct inputs_selection *select,
                     bool (*stop)(void *user), void *user)
{
    struct inputs *inputs;
    struct os_stat stat;
    const char *path;
    uint64_t total = 0;
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
        if (status || !strcmp(path, "-") || os_stat(path, &stat))
            continue;
        if (stat.kind != OS_KIND_FILE || add_overflows(total, stat.bytes, &total)) {
            total = 0;
            break;
        }
    }
    inputs_free(inputs);
    return total;
}
