/*
 * storage.h - finds out whether the storage of a run is slow, and starts the threads that read in place of the producer
 * where that, or a deadline, asks for them.
 */
#ifndef TOKMAP_LOADER_STORAGE_H
#define TOKMAP_LOADER_STORAGE_H

#include "loader_state.h"

/* Probes the storage and opens the pool, as options.io_threads and options.deadline_ns ask. The queue and the residency
 * are open.
 *   window     rows to ask for ahead
 *   row_bytes  of the largest row
 * Statuses: OK, ERROR_MEMORY, ERROR_IO (a thread could not be started). */
enum tokmap_status storage_open(struct tokmap_loader *loader, uint32_t window, uint64_t row_bytes,
                                struct tokmap_error *error);

#endif
