/*
 * cuda_owned.h - the GPU memory and the streams that tokmap/cuda.h made for the program, each with its context.
 *
 * A reset of the device frees them all. Then a handle points to nothing, and the driver can give the same address to
 * somebody else. So freeing needs to know whether the context still exists in which the thing was made:
 *
 *   memory_new()             address A, in context 7
 *   reset of the device      A is free
 *   another library          allocates in context 8 and gets A
 *   memory_free(A)           A belongs to context 7, which is gone: nothing is freed
 *
 * Drivers before CUDA 12.0 do not number their contexts. With them, the context always seems to exist.
 */
#ifndef TOKMAP_CUDA_CUDA_OWNED_H
#define TOKMAP_CUDA_CUDA_OWNED_H

#include <stdbool.h>

#include "cuda_device.h"

/* Records an address or a handle that was made in the context of an open device, and that the device stays open for.
 * Returns false if there is no memory for that. */
bool cuda_owned_add(const struct cuda_device *device, const void *made);

/* Removes the record. Of two with the same address it is the older one, because the address was given out again only
 * after a reset had freed that. In a child that was forked, the records of the parent do not exist.
 *   device    receives the device, which the caller closes
 *   exists    receives whether the context still exists, so that something is to be freed
 * Returns false if there is no such record. */
bool cuda_owned_remove(const void *made, struct cuda_device *device, bool *exists);

#endif
