/* SPDX-License-Identifier: MIT */
/*
 * struct_copy.h - public structs that can grow: each begins with a field `size_t size`, which the caller sets to the
 * size that the struct had when the caller was compiled.
 *
 * A later version of the library may add fields at the end of such a struct. A caller that was compiled earlier has a
 * smaller struct, and the functions below copy only the fields that both sides know. A caller that was compiled later
 * has a larger one, with fields that this library cannot honor or fill, which is an error. All other code sees complete
 * structs only.
 *
 * `name` begins the message: "tokmap_run_info". Any thread may call these functions.
 */
#ifndef TOKMAP_COMMON_STRUCT_COPY_H
#define TOKMAP_COMMON_STRUCT_COPY_H

#include <stddef.h>

#include "tokmap/tokmap.h"

/* Makes a complete struct of `size` bytes out of the one that the caller passed. Fields that the caller's struct lacks,
 * or all of them if it is NULL, come from *defaults. Statuses: OK, ERROR_ARGUMENT. */
enum tokmap_status struct_copy_in(void *into, const void *given, const void *defaults, size_t size, const char *name,
                                  struct tokmap_error *error);

/* Checks that the caller's struct is there and that its `size` field is possible, for functions that have work to do
 * before they can fill it. Statuses: OK, ERROR_ARGUMENT. */
enum tokmap_status struct_size_check(const void *into, size_t size, const char *name, struct tokmap_error *error);

/* Copies the first fields of *made, which has `size` bytes, to the caller's struct: as many bytes as its `size` field
 * says, and leaves that field as it is. Statuses: OK, ERROR_ARGUMENT, after which *into is unchanged. */
enum tokmap_status struct_copy_out(void *into, const void *made, size_t size, const char *name,
                                   struct tokmap_error *error);

#endif
