/* SPDX-License-Identifier: MIT */
/* backend_host.h - the host as a device: slots in ordinary memory, outputs written by the consumer's own thread. */
#ifndef TOKMAP_STAGING_BACKEND_HOST_H
#define TOKMAP_STAGING_BACKEND_HOST_H

#include "backend.h"

/* Opens a backend that works on the host; its close call frees it. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status backend_host_open(struct backend **backend, struct tokmap_error *error);

#endif
