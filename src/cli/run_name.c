/* SPDX-License-Identifier: MIT */
/* run_name.c - see run_name.h. */
#include "run_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/shard_file.h"
#include "platform/os.h"
#include "tokmap/tokmap.h"

static bool exists_with(const char *name, const char *ending)
{
    const size_t capacity = strlen(name) + strlen(ending) + 1;
    char *path = malloc(capacity);
    struct os_stat found;
    if (!path)
        return false;
    snprintf(path, capacity, "%s%s", name, ending);
    const bool exists = os_stat(path, &found) == 0;
    free(path);
    return exists;
}

bool cli_head_read(const char *path, char *head, size_t room, size_t *got)
{
    int fd;
    *got = 0;
    if (os_open(path, OS_READ_NOW, &fd))
        return false;
    const int failed = os_pread(fd, head, room, 0, got);
    os_close(fd);
    return !failed;
}

bool cli_is_manifest(const char *path)
{
    char head[64];
    size_t got;
    return cli_head_read(path, head, sizeof head, &got) && shard_manifest_begins(head, got);
}

/* Returns whether the bytes before a zero byte are lines of text. The file is then a damaged run file, whose reader
 * reports the zero byte, rather than a file of tokens. */
static bool is_damaged_text(const char *head, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if ((unsigned char)head[i] < ' ' && !strchr("\t\n\r", head[i]))
            return false;
    return memchr(head, '\n', count) != NULL;
}

/* Looks at the beginning of the file, which decides: a manifest has its own first line, and token files contain zero
 * bytes. */
static bool is_plain_text(const char *name)
{
    char head[4096];
    size_t got;
    if (!cli_head_read(name, head, sizeof head, &got))
        return false;
    const char *zero = memchr(head, '\0', got);
    return (!zero || is_damaged_text(head, (size_t)(zero - head))) && !shard_manifest_begins(head, got);
}

bool cli_names_run(const char *name)
{
    struct os_stat found;
    if (strncmp(name, TOKMAP_SYNTHETIC, sizeof TOKMAP_SYNTHETIC - 1) == 0)
        return false;
    return os_stat(name, &found) == 0 && found.kind == OS_KIND_FILE && !shard_file_is(name, SHARD_INDEX) &&
           !shard_file_is(name, SHARD_TOKENS) && !exists_with(name, shard_file_ending(SHARD_INDEX, SHARD_FINAL)) &&
           is_plain_text(name);
}
