/* SPDX-License-Identifier: MIT */
#include "error.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "visible.h"

static const struct {
    enum tokmap_status status;
    const char *name;
    const char *text;
} status_table[] = {
#define STATUS_ROW(name, number, text) {TOKMAP_##name, #name, text},
    TOKMAP_STATUS_MAP(STATUS_ROW)
#undef STATUS_ROW
};

const char *tokmap_status_name(enum tokmap_status status)
{
    for (size_t i = 0; i < sizeof status_table / sizeof status_table[0]; i++)
        if (status_table[i].status == status)
            return status_table[i].name;
    return "unknown";
}

const char *tokmap_status_text(enum tokmap_status status)
{
    for (size_t i = 0; i < sizeof status_table / sizeof status_table[0]; i++)
        if (status_table[i].status == status)
            return status_table[i].text;
    return "unknown";
}

const char *tokmap_version(void)
{
    return TOKMAP_VERSION_STRING;
}

/* Stores the end of a path that is too long, because the name of the file says more than its first folders. */
static void path_store(char *into, size_t capacity, const char *path)
{
    size_t length = path ? strlen(path) : 0;
    if (length < capacity) {
        if (length)
            memcpy(into, path, length);
        into[length] = '\0';
        return;
    }
    memcpy(into, "...", 3);
    memcpy(into + 3, path + length - (capacity - 4), capacity - 4);
    into[capacity - 1] = '\0';
}

__attribute__((format(printf, 7, 0))) static void error_fill(struct tokmap_error *error, enum tokmap_status status,
                                                             int system, const char *path, uint64_t line,
                                                             uint64_t offset, const char *format, va_list arguments)
{
    assert(status != TOKMAP_OK && format);
    if (!error)
        return;
    /* Built in a struct of its own, because an argument may point into *error. */
    struct tokmap_error built;
    memset(&built, 0, sizeof built);
    built.status = status;
    built.system = system;
    built.line = line > UINT32_MAX ? UINT32_MAX : (uint32_t)line;
    built.offset = offset;
    path_store(built.path, sizeof built.path, path);
    char message[sizeof built.message];
    (void)vsnprintf(message, sizeof message, format, arguments);
    (void)visible_copy(built.message, sizeof built.message, message, strlen(message), "");
    *error = built;
}

enum tokmap_status error_set(struct tokmap_error *error, enum tokmap_status status, const char *path, uint64_t offset,
                             const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    error_fill(error, status, 0, path, 0, offset, format, arguments);
    va_end(arguments);
    return status;
}

enum tokmap_status error_set_line(struct tokmap_error *error, enum tokmap_status status, const char *path,
                                  uint64_t line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    error_fill(error, status, 0, path, line, TOKMAP_NO_OFFSET, format, arguments);
    va_end(arguments);
    return status;
}

enum tokmap_status error_set_field(struct tokmap_error *error, enum tokmap_status status, const char *path,
                                   const char *field, const char *format, ...)
{
    char rest[sizeof error->message];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(rest, sizeof rest, format, arguments);
    va_end(arguments);
    (void)error_set(error, status, path, TOKMAP_NO_OFFSET, "%s%s", field, rest);
    if (error)
        (void)snprintf(error->field, sizeof error->field, "%s", field);
    return status;
}

/* Returns what helps wherever a system call fails with this errno, or NULL. */
static const char *remedy(int system)
{
    if (system == ENOSPC || system == EDQUOT)
        return "; free space on its file system, or write elsewhere";
    if (system == EMFILE || system == ENFILE)
        return "; raise the limit of open files (ulimit -n), or name shards in a manifest (tokmap merge), from which "
               "they are opened when they are needed";
    return system == ENOLCK ? "; without locks (flock), two processes could damage one output, so mount this file "
                              "system with locks, or write to another one"
                            : NULL;
}

/* Kept errors: number KEPT_FIRST + n is in place n % ERRORS_KEPT, until n + ERRORS_KEPT is. */
#define KEPT_FIRST 0x10000u
#define KEPT_NUMBERS 0x40000000u
static struct {
    uint32_t locked, next; /* accessed atomically */
    uint32_t numbers[ERRORS_KEPT];
    struct tokmap_error errors[ERRORS_KEPT];
} kept;

void errors_hold(void)
{
    while (__atomic_exchange_n(&kept.locked, 1, __ATOMIC_ACQUIRE))
        ;
}

void errors_release(void)
{
    __atomic_store_n(&kept.locked, 0, __ATOMIC_RELEASE);
}

int error_keep(const struct tokmap_error *error)
{
    errors_hold();
    const uint32_t number = kept.next++ % KEPT_NUMBERS;
    kept.numbers[number % ERRORS_KEPT] = number + KEPT_FIRST;
    kept.errors[number % ERRORS_KEPT] = *error;
    errors_release();
    return (int)(number + KEPT_FIRST);
}

/* Finds a kept error. Returns false if `system` is not the number of one. */
static bool kept_find(int system, struct tokmap_error *error)
{
    if (system < (int)KEPT_FIRST)
        return false;
    const uint32_t place = ((uint32_t)system - KEPT_FIRST) % ERRORS_KEPT;
    errors_hold();
    const bool found = kept.numbers[place] == (uint32_t)system;
    if (found)
        *error = kept.errors[place];
    errors_release();
    return found;
}

enum tokmap_status error_set_system(struct tokmap_error *error, int system, const char *path, uint64_t offset,
                                    const char *format, ...)
{
    enum tokmap_status status = TOKMAP_ERROR_IO;
    struct tokmap_error before;
    if (kept_find(system, &before)) {
        if (error)
            *error = before;
        return before.status;
    }
    system = system < (int)KEPT_FIRST ? system : EIO;
    if (system == ENOENT || system == ENOTDIR)
        status = TOKMAP_ERROR_NOT_FOUND;
    else if (system == ENOMEM)
        status = TOKMAP_ERROR_MEMORY;
    va_list arguments;
    va_start(arguments, format);
    error_fill(error, status, system, path, 0, offset, format, arguments);
    va_end(arguments);
    if (error && remedy(system)) {
        const size_t count = strlen(error->message);
        (void)snprintf(error->message + count, sizeof error->message - count, "%s", remedy(system));
    }
    return status;
}

enum tokmap_status error_set_memory(struct tokmap_error *error, const char *what, uint64_t bytes)
{
    if (!bytes || bytes == UINT64_MAX)
        return error_set(error, TOKMAP_ERROR_MEMORY, NULL, TOKMAP_NO_OFFSET,
                         "out of memory for %s; free memory or ask for less", what);
    return error_set(error, TOKMAP_ERROR_MEMORY, NULL, TOKMAP_NO_OFFSET,
                     "out of memory: %" PRIu64 " bytes are needed for %s; free memory or ask for less", bytes, what);
}

/* Writes a path that is shorter than `capacity` in its visible form, of which the end is kept if it is longer. */
static void path_visible(char *into, size_t capacity, const char *path)
{
    char shown[sizeof((struct tokmap_error *)0)->path * VISIBLE_MOST];
    const size_t length = visible_copy(shown, sizeof shown, path, strnlen(path, capacity), "");
    const char *end = length < capacity ? shown : shown + length - (capacity - 4);
    while ((*end & 0xc0) == 0x80) /* not in the middle of a character */
        end++;
    if (length >= capacity) {
        memcpy(into, "...", 3);
        into += 3;
    }
    memcpy(into, end, strlen(end) + 1);
}

const char *tokmap_error_print(const struct tokmap_error *error, char *text, size_t capacity)
{
    if (!text || !capacity)
        return text;
    text[0] = '\0';
    if (!error)
        return text;
    char path[sizeof error->path], where[sizeof path + 24] = "", offset[48] = "", system[160] = "";
    path_visible(path, sizeof path, error->path);
    if (error->path[0] && error->line)
        (void)snprintf(where, sizeof where, "%s:%" PRIu32 ": ", path, error->line);
    else if (error->path[0])
        (void)snprintf(where, sizeof where, "%s: ", path);
    else if (error->line)
        (void)snprintf(where, sizeof where, "line %" PRIu32 ": ", error->line);
    if (error->offset != TOKMAP_NO_OFFSET)
        (void)snprintf(offset, sizeof offset, " (byte %" PRIu64 ")", error->offset);
    if (error->system) {
        char buffer[128];
        const char *said = strerror_r(error->system, buffer, sizeof buffer);
        (void)snprintf(system, sizeof system, ": %s", said);
    }
    (void)snprintf(text, capacity, "%s%s%s%s", where,
                   error->message[0] ? error->message : tokmap_status_text(error->status), system, offset);
    return text;
}
