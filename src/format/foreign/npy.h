/* SPDX-License-Identifier: MIT */
/*
 * npy.h - NumPy's .npy files of one dimension: "\x93NUMPY", the version (1.0, 2.0, or 3.0), the length of the header
 * (2 bytes in version 1.0, otherwise 4), the header, and then the elements. The header is a Python dictionary with
 * descr, fortran_order, and shape.
 */
#ifndef TOKMAP_FORMAT_FOREIGN_NPY_H
#define TOKMAP_FORMAT_FOREIGN_NPY_H

#include <stdbool.h>
#include <stddef.h>

#include "foreign_name.h"
#include "tokmap/tokmap.h"

/* The most bytes of a file that npy_parse() needs: a header of an array of integers has about 100. */
#define NPY_HEAD_MOST 65536

/* Returns whether the first bytes of a file are NumPy's magic. */
bool npy_is(const uint8_t *head, size_t bytes);

/* Reads a header. head: the first `bytes` bytes of the file, NPY_HEAD_MOST of them if the file is so long.
 * Statuses: OK, ERROR_FORMAT, ERROR_VERSION, ERROR_CORRUPT, ERROR_TRUNCATED (the file is shorter or longer than its
 * header says), ERROR_UNSUPPORTED (not one dimension, not integers of at most 8 bytes, big-endian). */
enum tokmap_status npy_parse(struct foreign_layout *layout, const char *path, const uint8_t *head, size_t bytes,
                             uint64_t file_bytes, struct tokmap_error *error);

#endif
