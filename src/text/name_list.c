/* SPDX-License-Identifier: MIT */
#include "name_list.h"

#include <stdio.h>
#include <string.h>

#include "common/visible.h"

#define NAME_MOST 48 /* bytes of a name that are shown */

void name_list_add(struct name_list *list, const char *name, size_t count)
{
    char shown[NAME_MOST * VISIBLE_MOST + 4] = "";
    if (list->full)
        return;
    size_t bytes = count < NAME_MOST ? count : NAME_MOST;
    if (bytes < count)
        while (bytes > 0 && ((unsigned char)name[bytes] & 0xc0) == 0x80)
            bytes--; /* not inside a character */
    const size_t length = visible_copy(shown, sizeof shown - 3, name, bytes, "");
    (void)snprintf(shown + length, sizeof shown - length, "%s", bytes < count ? "..." : "");
    const size_t wanted = strlen(shown) + 2, last = sizeof ", ...";
    list->full = list->used + wanted + last > sizeof list->text;
    list->used += (size_t)snprintf(list->text + list->used, sizeof list->text - list->used, "%s%s",
                                   list->used ? ", " : "", list->full ? "..." : shown);
}
