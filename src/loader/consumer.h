/*
 * consumer.h - delivers filled slots to the caller: tokmap_loader_next(), tokmap_loader_read(), and what else the
 * caller asks of an open loader. The public functions are declared in tokmap.h and cuda.h.
 */
#ifndef TOKMAP_LOADER_CONSUMER_H
#define TOKMAP_LOADER_CONSUMER_H

#include "loader_state.h"

/* Fills *work with what a backend must do to write the outputs *out of a batch of `count` rows, all but the slot. */
void consumer_describe_work(const struct tokmap_loader *loader, uint64_t count, const struct tokmap_out *out,
                            struct expand_arguments *work);

#endif
