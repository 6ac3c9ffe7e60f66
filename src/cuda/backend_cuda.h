/* SPDX-License-Identifier: MIT */
/* backend_cuda.h - a GPU as a device: pinned slots with twins in GPU memory, outputs written by a kernel. */
#ifndef TOKMAP_CUDA_BACKEND_CUDA_H
#define TOKMAP_CUDA_BACKEND_CUDA_H

#include "staging/backend.h"

/* Opens a backend on a GPU; its close call frees it.
 *   device         "cuda:N" or "cuda", as in struct tokmap_loader_options
 *   output_bytes   backend_cuda_output_bytes() of the largest batch: room that is needed if the host has to expand
 *   on_host        why the host has to expand; NULL: the kernel does, if it can be loaded
 * Statuses: OK, ERROR_ARGUMENT, ERROR_NO_DEVICE, ERROR_DEVICE, ERROR_MEMORY. */
enum tokmap_status backend_cuda_open(struct backend **backend, const char *device, uint64_t output_bytes,
                                     const char *on_host, struct tokmap_error *error);

/* Returns the size of a buffer for all outputs of such a batch with elements of 8 bytes. Of the output addresses it
 * matters only whether they are 0. */
uint64_t backend_cuda_output_bytes(const struct expand_arguments *work);

#endif
