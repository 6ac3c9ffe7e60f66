/* SPDX-License-Identifier: MIT */
/*
 * stand_in.h - recognizes, by their first bytes, files that a user has in place of the ones that were meant: the
 * pointer that git leaves where Git LFS has not fetched a file, and a page of a web server.
 */
#ifndef TOKMAP_TEXT_STAND_IN_H
#define TOKMAP_TEXT_STAND_IN_H

#include <stdint.h>

enum stand_in { STAND_IN_NONE, STAND_IN_POINTER, STAND_IN_PAGE };

/* Words for a pointer. */
#define STAND_IN_POINTER_MESSAGE                                                                                       \
    "the file is only a pointer of Git LFS; fetch the data that it stands for with 'git lfs pull'"

/* Judges a file by its first bytes. A page (of HTML) may be what the user wants. */
enum stand_in stand_in_of(const char *bytes, uint64_t count);

#endif
