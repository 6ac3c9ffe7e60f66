/* SPDX-License-Identifier: MIT */
/*
 * npy.h - NumPy's .npy files: "\x93NUMPY", the version (1.0, 2.0, or 3.0), the length of the header
 * (2 bytes in version 1.0, otherwise 4), the header, and then the elements. The header is a Python dictionary with
 * descr, fortran_order, and shape.
 */
#ifndef TOKMAP_FORMAT_FOREIGN_NPY_H
#define TOKMAP_FORMAT_FOREIGN_NPY_H

#include <stdbool.h>
#include <stddef.h>

#include "foreign_name.h"

/* The most bytes of a file that npy_parse() needs: a header of an array of integers has about 100. */
#define NPY_HEAD_MOST 65536
#define NPY_DIMENSIONS_MOST 8

/* Returns whether the first bytes of a file are NumPy's magic. */
bool npy_is(const uint8_t *head, size_t bytes);

/* What a header says of an array of any type. */
struct npy_header {
    char descr[16];                                  /* the type of the elements; "" of records, which are refused */
    bool fortran;                                    /* the first dimension is the contiguous one */
    uint64_t dimensions, shape[NPY_DIMENSIONS_MOST]; /* of more dimensions, the last ones are left out */
    uint64_t shape_at, data_at;                      /* bytes of the file */
};

/* Reads the header of any array. head: the first `bytes` bytes of the file, NPY_HEAD_MOST of them if the file is so
 * long. Statuses: OK, ERROR_FORMAT, ERROR_VERSION, ERROR_CORRUPT, ERROR_TRUNCATED, ERROR_UNSUPPORTED (records). */
enum tokmap_status npy_header_read(struct npy_header *header, const char *path, const uint8_t *head, size_t bytes,
                                   uint64_t file_bytes, struct tokmap_error *error);

/* Reads the header of an array of tokens. head: the first `bytes` bytes of the file, NPY_HEAD_MOST of them if the file
 * is so long. Statuses: OK, ERROR_FORMAT, ERROR_VERSION, ERROR_CORRUPT, ERROR_TRUNCATED (the file is shorter or longer
 * than its header says), ERROR_UNSUPPORTED (not one dimension, not integers of at most 8 bytes, big-endian). */
enum tokmap_status npy_parse(struct foreign_layout *layout, const char *path, const uint8_t *head, size_t bytes,
                             uint64_t file_bytes, struct tokmap_error *error);

#endif
