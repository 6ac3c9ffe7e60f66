/* ledger.c - see ledger.h. */
#include "ledger.h"

#include <assert.h>
#include <errno.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "platform/os.h"

#define RECORD_HEAD 8U
#define RECORD_HASH 8U
#define FLUSH_BYTES ((size_t)1 << 18)

static enum tokmap_status no_memory(struct tokmap_error *error)
{
    return error_set_memory(error, "the journal", 0);
}

enum tokmap_status ledger_failed(int system, const char *path, const char *what, struct tokmap_error *error)
{
    const char *remedy = system == EACCES
                             ? "; it or its folder may belong to another user, who can complete or remove the work; "
                               "otherwise choose another name for the output"
                             : "";
    return error_set_system(error, system, path, TOKMAP_NO_OFFSET, "%s%s", what, remedy);
}

/* ---- read ---- */

/* Appends the payload of the next record of the file to the one that is read. */
static enum tokmap_status part_read(struct ledger *ledger, uint32_t *type, struct tokmap_error *error)
{
    struct bytes_buffer *record = &ledger->record;
    uint8_t head[RECORD_HEAD];
    size_t got = 0;
    int system = os_pread(ledger->fd, head, sizeof head, ledger->at, &got);
    if (!system && got < sizeof head)
        return TOKMAP_END;
    const uint32_t bytes = system ? 0 : load32(head + 4);
    if (bytes > LEDGER_RECORD_MOST)
        return TOKMAP_END;
    const size_t all = RECORD_HEAD + bytes + RECORD_HASH;
    if (!system && !bytes_reserve(record, all))
        return no_memory(error);
    uint8_t *from = record->bytes + record->count;
    if (!system)
        system = os_pread(ledger->fd, from, all, ledger->at, &got);
    if (system)
        return error_set_system(error, system, ledger->path, ledger->at, "the journal cannot be read");
    if (got < all || hash64_seeded(from, RECORD_HEAD + bytes, ledger->at) != load64(from + RECORD_HEAD + bytes) ||
        load32(from + 4) != bytes)
        return TOKMAP_END;
    *type = load32(from);
    memmove(from, from + RECORD_HEAD, bytes);
    record->count += bytes;
    ledger->at += all;
    return TOKMAP_OK;
}

enum tokmap_status ledger_next(struct ledger *ledger, struct ledger_record *record, struct tokmap_error *error)
{
    const uint64_t begin = ledger->at;
    uint32_t type = LEDGER_MORE, first = 0;
    enum tokmap_status status = TOKMAP_OK;
    ledger->record.count = 0;
    while (!status && type & LEDGER_MORE) {
        status = part_read(ledger, &type, error);
        if (!status && ledger->record.count && first && (type & ~LEDGER_MORE) != first)
            status = TOKMAP_END;
        first = type & ~LEDGER_MORE;
    }
    if (status == TOKMAP_END)
        ledger->at = begin;
    *record = (struct ledger_record){first, ledger->record.count, ledger->record.bytes, ledger->at};
    return status;
}

/* ---- write ---- */

static enum tokmap_status flush(struct ledger *ledger, struct tokmap_error *error)
{
    const int system = os_pwrite(ledger->fd, ledger->out.bytes, ledger->out.count, ledger->written);
    if (system)
        return ledger_failed(system, ledger->path, "the journal cannot be written", error);
    ledger->written += ledger->out.count;
    bytes_trim(&ledger->out);
    return TOKMAP_OK;
}

static enum tokmap_status part_add(struct ledger *ledger, uint32_t type, const void *first, size_t first_bytes,
                                   const void *second, size_t second_bytes, struct tokmap_error *error)
{
    const size_t bytes = first_bytes + second_bytes, begin = ledger->out.count;
    uint8_t head[RECORD_HEAD], hash[RECORD_HASH];
    if (!bytes_reserve(&ledger->out, RECORD_HEAD + bytes + RECORD_HASH))
        return no_memory(error);
    store32(head, type);
    store32(head + 4, (uint32_t)bytes);
    (void)bytes_append(&ledger->out, head, sizeof head);
    (void)bytes_append(&ledger->out, first, first_bytes);
    (void)bytes_append(&ledger->out, second, second_bytes);
    store64(hash, hash64_seeded(ledger->out.bytes + begin, RECORD_HEAD + bytes, ledger->at));
    (void)bytes_append(&ledger->out, hash, sizeof hash);
    ledger->at += RECORD_HEAD + bytes + RECORD_HASH;
    return ledger->out.count >= FLUSH_BYTES ? flush(ledger, error) : TOKMAP_OK;
}

enum tokmap_status ledger_add(struct ledger *ledger, uint32_t type, const void *first, size_t first_bytes,
                              const void *second, size_t second_bytes, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    assert(!(type & LEDGER_MORE) && first_bytes <= LEDGER_RECORD_MOST);
    while (!status && second_bytes > LEDGER_RECORD_MOST - first_bytes) {
        const size_t part = LEDGER_RECORD_MOST - first_bytes;
        status = part_add(ledger, type | LEDGER_MORE, first, first_bytes, second, part, error);
        second = (const uint8_t *)second + part;
        second_bytes -= part;
        first_bytes = 0;
    }
    return status ? status : part_add(ledger, type, first, first_bytes, second, second_bytes, error);
}

enum tokmap_status ledger_sync(struct ledger *ledger, struct tokmap_error *error)
{
    const enum tokmap_status status = flush(ledger, error);
    const int system = status ? 0 : os_sync(ledger->fd);
    return system ? ledger_failed(system, ledger->path, "the journal cannot be synced to storage", error) : status;
}

enum tokmap_status ledger_cut(struct ledger *ledger, uint64_t end, struct tokmap_error *error)
{
    assert(!ledger->out.count);
    ledger->at = ledger->written = end;
    const int system = os_truncate(ledger->fd, end);
    return system ? ledger_failed(system, ledger->path, "the journal cannot be cut", error) : TOKMAP_OK;
}

void ledger_free(struct ledger *ledger)
{
    bytes_free(&ledger->record);
    bytes_free(&ledger->out);
}
