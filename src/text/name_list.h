/* SPDX-License-Identifier: MIT */
/* name_list.h - a short list of the fields of a record, for a message: "id, url, content". */
#ifndef TOKMAP_TEXT_NAME_LIST_H
#define TOKMAP_TEXT_NAME_LIST_H

#include <stdbool.h>
#include <stddef.h>

/* Begins as zeros. */
struct name_list {
    char text[240];
    size_t used;
    bool full; /* the text ends with ", ..." */
};

/* Appends a name as it is spelled in the file. Control characters and invalid UTF-8 become '?', a long name is cut, and
 * names that do not fit are left out. */
void name_list_add(struct name_list *list, const char *name, size_t count);

#endif
