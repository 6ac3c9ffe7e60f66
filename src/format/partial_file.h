/* SPDX-License-Identifier: MIT */
/* partial_file.h - creates the file NAME.partial that a writer fills, and the lock on it that keeps others away. */
#ifndef TOKMAP_FORMAT_PARTIAL_FILE_H
#define TOKMAP_FORMAT_PARTIAL_FILE_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

/* Creates an empty file, which is always new, so that it belongs to this user and has the mode that the umask gives,
 * and locks it. The lock lasts until *fd is closed. A file of this name that no process has locked was left by a writer
 * that was killed, or put there by somebody else: it is removed in both cases, and never filled. Before that, and
 * with that file locked, leftover(user) is called, if it is not NULL; a result other than 0 ends the attempt and is
 * returned.
 * Returns 0; EWOULDBLOCK if another process has locked the file; another errno, with *fd -1. ENOLCK: the file system
 * has no locks, so nothing would keep others away; what was created is removed, and a file that was there stays. ELOOP:
 * the name is a symbolic link; EINVAL: that of a pipe or a device. EACCES, EPERM: the file belongs to another user, and
 * this one may not open or remove it. */
int partial_file_open(const char *path, int (*leftover)(void *user), void *user, int *fd);

/* Returns the status of an errno of partial_file_open(), with a message about the output that it was created for:
 * ERROR_BUSY, ERROR_NOT_FOUND, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status partial_file_failed(int system, const char *path, struct tokmap_error *error);

/* Opens a file that an interrupted process of this user has left, to continue it, without a lock. Returns 0, or an
 * errno with *fd -1. EPERM: the file belongs to another user, who could change it at any time; EINVAL: it is not a
 * regular file; ELOOP: the name is a symbolic link. */
int partial_file_reopen(const char *path, int *fd);

/* Does the same with a lock, as partial_file_open() does: EWOULDBLOCK if another process has locked the file. */
int partial_file_take(const char *path, int *fd);

/* Returns true if a file may be one that a killed writer has begun with the text `head` of at most 64 bytes: it is
 * empty, or each of its first bytes is that of `head`, or zero, which a power cut may leave. False also if it cannot be
 * read. */
bool partial_file_begins(const char *path, const char *head);

#endif
