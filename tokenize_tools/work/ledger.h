/*
 * ledger.h - the records of an item of work, in one file that only grows: checkpoints (append_file.h), and what the
 * work has made when it is done.
 *
 *     records   u32 type, u32 bytes, the bytes, u64 XXH3-64 of type, bytes, and payload, with the record's offset as
 *               the seed
 *
 * A record above 1 MiB is several of these: all but its last one have LEDGER_MORE in their type. A record that is not
 * whole, or whose hash is wrong, ends the ledger: it and all that follows was not synced when the process was killed.
 *
 * Example: two checkpoints of 300 bytes are records of 316 bytes. A process that was killed while it wrote the third
 * one has left 200 bytes of it, which the next process cuts off.
 */
#ifndef TOKMAP_WORK_LEDGER_H
#define TOKMAP_WORK_LEDGER_H

#include "common/bytes_buffer.h"
#include "tokmap/tokmap.h"

#define LEDGER_MORE ((uint32_t)1 << 31)
#define LEDGER_RECORD_MOST ((uint32_t)1 << 20) /* bytes of one record of the file */

/* For one thread at a time. Begins with fd, path, and the offset of the first record; the rest is zero. */
struct ledger {
    int fd;                     /* not owned */
    const char *path;           /* for messages; not owned */
    uint64_t at, written;       /* offset of the next record that is read or added; the bytes in the file */
    struct bytes_buffer record; /* that was read last */
    struct bytes_buffer out;    /* records that are added and not written yet */
};

struct ledger_record {
    uint32_t type;
    uint64_t bytes;
    const uint8_t *payload; /* valid until the next call */
    uint64_t end;           /* offset of the next record */
};

/* Reads the next record. Statuses: OK, END (there is none, or the rest of the file is torn), ERROR_IO, ERROR_MEMORY. */
enum tokmap_status ledger_next(struct ledger *ledger, struct ledger_record *record, struct tokmap_error *error);

/* Cuts the file at the end of a record; the next one is added there. Statuses: OK, ERROR_IO. */
enum tokmap_status ledger_cut(struct ledger *ledger, uint64_t end, struct tokmap_error *error);

/* Adds a record, of two pieces; it is written at the latest by ledger_sync(). Statuses: OK, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status ledger_add(struct ledger *ledger, uint32_t type, const void *first, size_t first_bytes,
                              const void *second, size_t second_bytes, struct tokmap_error *error);
enum tokmap_status ledger_sync(struct ledger *ledger, struct tokmap_error *error);

/* The error of a call that has failed with this errno. */
enum tokmap_status ledger_failed(int system, const char *path, const char *what, struct tokmap_error *error);

void ledger_free(struct ledger *ledger);

#endif
