/* SPDX-License-Identifier: MIT */
/*
 * library.h - libraries that are opened at their first use, because most programs never use them.
 *
 * A program that names a library when it is linked loads it at every start. With the caches of the system empty, each
 * library costs 0.3 to 3 ms. So decompressors and PCRE2 are not named, and a table has the functions that are called.
 * An example, for a library libxy.so with a header xy.h:
 *
 *     in a header     #define LIBXY_FUNCTIONS(X) X(xy_open) X(xy_close)
 *                     LIBRARY_DECLARE(libxy, LIBXY_FUNCTIONS)
 *     in its .c file  LIBRARY_DEFINE(libxy, LIBXY_FUNCTIONS, LIBRARY_FILE_xy, "libxy1")
 *     at the use      if (!library_load(&libxy_library, reason, sizeof reason)) ...
 *                     libxy.xy_open(...)
 *
 * The members of the table have the types that xy.h declares. The Makefile decides LIBRARY_FILE_xy: the versioned name
 * that the linker would store in a program, so the types fit the file. A program that is linked with -static, the
 * Python package, and `make DLOPEN=no` define LIBRARIES_LINKED: the same tables then hold addresses that the linker
 * fills in.
 */
#ifndef TOKMAP_PLATFORM_LIBRARY_H
#define TOKMAP_PLATFORM_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The state of a library. While a thread loads it, the state has the id of its process, too: a child of fork() has a
 * copy of the state, and not that thread. */
enum { LIBRARY_UNOPENED, LIBRARY_OPENING, LIBRARY_READY };
#define LIBRARY_OPENING_BY(process) ((uint32_t)(process) << 2 | LIBRARY_OPENING) /* ids are below 2^22 */

struct library {
    const char *file;         /* its name for the dynamic linker; NULL for no library */
    const char *other;        /* another name, tried if there is no such file; may be NULL */
    const char *package;      /* of Debian and Ubuntu, for messages */
    const char *const *names; /* of the functions */
    void *functions;          /* pointers to them, in the same order */
    size_t count;
    bool (*start)(void); /* called once after loading, and returns false if it fails; may be NULL */
    uint32_t state;
};

/* Loads a library unless it is loaded, which costs a load of one word. It stays in memory until the process ends. On
 * failure returns false and stores the reason in reason[], cut to `capacity` bytes; the next call tries again. Any
 * thread. */
bool library_load(struct library *library, char *reason, size_t capacity);

#define LIBRARY_REASON ((size_t)256) /* bytes that hold every usual reason */

/* An argument may be a macro of the library's header (pcre2_match is pcre2_match_8), and is replaced first. */
#define LIBRARY_TEXT(name) #name
#define LIBRARY_MEMBER(name) __typeof__(&name) name;
#define LIBRARY_NAME(name) LIBRARY_TEXT(name),
#define LIBRARY_ADDRESS(name) .name = &name,

#define LIBRARY_TABLE(table, FUNCTIONS)                                                                                \
    struct table##_functions {                                                                                         \
        FUNCTIONS(LIBRARY_MEMBER)                                                                                      \
    };                                                                                                                 \
    extern struct library table##_library;

/* For a library that is never linked. More members of struct library may follow the package. */
#define LIBRARY_DECLARE_OPENED(table, FUNCTIONS)                                                                       \
    LIBRARY_TABLE(table, FUNCTIONS)                                                                                    \
    extern struct table##_functions table;
#define LIBRARY_DEFINE_OPENED(table, FUNCTIONS, its_file, its_package, ...)                                            \
    struct table##_functions table;                                                                                    \
    static const char *const table##_names[] = {FUNCTIONS(LIBRARY_NAME)};                                              \
    _Static_assert(sizeof table == sizeof table##_names, "a table holds nothing but its functions");                   \
    struct library table##_library = {.file = its_file,                                                                \
                                      .package = its_package,                                                          \
                                      .names = table##_names,                                                          \
                                      .functions = &table,                                                             \
                                      .count = sizeof table##_names / sizeof table##_names[0],                         \
                                      ##__VA_ARGS__};

#ifdef LIBRARIES_LINKED
#define LIBRARY_DECLARE(table, FUNCTIONS)                                                                              \
    LIBRARY_TABLE(table, FUNCTIONS)                                                                                    \
    extern const struct table##_functions table;
#define LIBRARY_DEFINE(table, FUNCTIONS, its_file, its_package)                                                        \
    const struct table##_functions table = {FUNCTIONS(LIBRARY_ADDRESS)};                                               \
    struct library table##_library = {.state = LIBRARY_READY};
#else
#define LIBRARY_DECLARE LIBRARY_DECLARE_OPENED
#define LIBRARY_DEFINE LIBRARY_DEFINE_OPENED
#endif

#endif
