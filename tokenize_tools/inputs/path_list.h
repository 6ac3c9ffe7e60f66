/*
 * path_list.h - reads a list of paths from a file or standard input, one at a time, so that a list of any length takes
 * little memory. The file may be compressed, like other inputs. One thread at a time.
 */
#ifndef TOKMAP_INPUTS_PATH_LIST_H
#define TOKMAP_INPUTS_PATH_LIST_H

#include "stream.h"

struct path_list;

/* Opens a list. name: a path, or "-" for standard input; it must stay valid until path_list_close(). null: the paths
 * end with a zero byte instead of a newline. stop and user as for stream_new(). Statuses: OK, those of stream_open(),
 * ERROR_UNSUPPORTED (a URL).
 */
enum tokmap_status path_list_open(struct path_list **list, const char *name, bool null, bool (*stop)(void *user),
                                  void *user, struct tokmap_error *error);
void path_list_close(struct path_list *list); /* accepts NULL */

/* Sets *path to the next path, which is valid until the next call. Empty lines are passed over. In a list of lines, a
 * carriage return before the newline and a byte order mark at the beginning are not parts of a path. Statuses: OK, END,
 * ERROR_LIMIT (a path of 64 KiB or more), ERROR_INPUT (a zero byte in a list of lines), those of stream_read(). */
enum tokmap_status path_list_next(struct path_list *list, const char **path, struct tokmap_error *error);

/* After path_list_next() has failed: whether only one path was at fault, so that the next call returns the path after
 * it. Otherwise the list cannot be read any further. */
bool path_list_goes_on(const struct path_list *list);

/* Number of the path that was returned last, from 1. It is its line, where paths end with newlines. */
uint64_t path_list_line(const struct path_list *list);

#endif
