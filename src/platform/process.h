/*
 * process.h - what a command asks of the kernel and a library must not: signals, child processes, the machine's caches.
 * Linked into commands and tests only.
 */
#ifndef TOKMAP_PLATFORM_PROCESS_H
#define TOKMAP_PLATFORM_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- signals ---- */

/* From now on the first of SIGINT, SIGTERM and SIGHUP is kept for os_signal_caught() instead of ending the process, and ends
 * waits (os_read, os_wait_readable, os_write_stream, os_child_wait); a second one ends the process, but for the same within
 * half a second. One that is ignored stays so. To be called by the first thread, before others read. Where no thread can be
 * started, signals go on ending the process. */
void os_signals_catch(void);
/* The signal that came, or 0. */
int os_signal_caught(void);
/* The same; and if none came, the next one ends the process again: for when there is nothing left to clean up. */
int os_signals_release(void);
/* Ends the process by that signal, as the shell expects of an interrupted command. Never returns. */
void os_signal_die(int signal) __attribute__((noreturn));
void os_ignore_broken_pipe(void);

/* ---- other programs ---- */

struct os_child {
    int64_t id;
    int output;          /* where what it writes to its standard output can be read, or -1: it shares ours */
    uint64_t peak_bytes; /* after its end: ru_maxrss. Not below what its parent held when it started it */
    uint64_t cpu_ns;     /* after its end: user and system */
    bool told;           /* of a signal, by os_child_wait */
};
/* Starts a program; arguments: argv, its name first, NULL last. A program that cannot be run is its errno. It finds signals
 * as this program did at its start. */
int os_child_start(struct os_child *child, const char *path, const char *const *arguments, bool read_output);
void os_child_stop(const struct os_child *child); /* SIGTERM */
/* Waits for its end and closes `output`. exit_status: its own, or 128 + the signal that ended it. EINTR, once: a
 * signal was caught, which may be a reason to stop the child; wait again then. */
int os_child_wait(struct os_child *child, int *exit_status);
/* The path of the program that is running. ENAMETOOLONG if it does not fit. */
int os_program_path(char *path, size_t capacity);
/* Writes everything back, then empties the system's caches of files, names and inodes. EACCES if not root. */
int os_drop_all_caches(void);

#endif
