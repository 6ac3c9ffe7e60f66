/* SPDX-License-Identifier: MIT */
/*
 * consumer.h - delivers filled slots to the caller: tokmap_loader_next(), tokmap_loader_read(), and what else the
 * caller asks of an open loader. The public functions are declared in tokmap.h and cuda.h.
 */
#ifndef TOKMAP_LOADER_CONSUMER_H
#define TOKMAP_LOADER_CONSUMER_H

#include "loader_state.h"

/* Fills *work with what a backend must do to write the outputs *out of a batch of `count` rows in a slot of this form,
 * all but the slot. */
void consumer_describe_work(const struct tokmap_loader *loader, const struct form *form, uint64_t count,
                            const struct tokmap_out *out, struct expand_arguments *work);

/* Statuses: OK, ERROR_ARGUMENT (this process was forked, and cannot use the loader). */
enum tokmap_status consumer_check_fork(const struct tokmap_loader *loader, struct tokmap_error *error);

/* Puts the loader to loader->start. The producer, if there is one, is paused. */
void consumer_restart(struct tokmap_loader *loader);

#endif
