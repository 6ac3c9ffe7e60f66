/* SPDX-License-Identifier: MIT */
/*
 * process.h - what a command may ask of the kernel and a library must not: signals, child processes, the machine's
 * caches.
 *
 * It is linked into commands and tests only; tests/lint checks that the library does not contain it. Functions that
 * return an int and can fail return 0 or a positive errno.
 */
#ifndef TOKMAP_PLATFORM_PROCESS_H
#define TOKMAP_PLATFORM_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- signals ---- */

/* From now on the first SIGINT, SIGTERM, or SIGHUP does not end the process. os_signal_caught() reports it, and every
 * wait of os_read(), os_wait_readable(), os_write_stream(), and os_child_wait() ends with EINTR, both a wait in
 * progress and all later ones. A second signal ends the process, except for the same signal within half a second, and
 * except for the same signal from the parent, once: a launcher passes on the Ctrl-C that the terminal has sent to both.
 * A signal that was ignored stays ignored. If no thread can be started, signals keep ending the process. To be called
 * by the main thread before it starts threads that wait; further calls do nothing. */
void os_signals_catch(void);
/* Returns the number of the first signal, or 0 if none has come. */
int os_signal_caught(void);
/* Does the same. If none has come, the next signal ends the process again: for the end of a command, when nothing is
 * left to clean up. */
int os_signals_release(void);
/* Returns true if a signal has come: for the options `stop` of other functions. */
static inline bool os_is_stopped(void *user)
{
    (void)user;
    return os_signal_caught() != 0;
}
/* Ends the process by a signal, as a shell expects of a command that was interrupted. Never returns. */
void os_signal_die(int signal) __attribute__((noreturn));
/* Does what the kernel does to a thread that writes to a pipe without a reader: ends the process by SIGPIPE, unless the
 * process ignores that signal. For a command whose output is written by another thread than the main one, because
 * threads that os_thread_start() starts block all signals. */
void os_pipe_broken(void);

/* From now on a write beyond the limit on the size of files (`ulimit -f`) fails with EFBIG, in every thread. Without
 * this, the kernel ends the process, which leaves partial files and says nothing. */
void os_file_limit_reported(void);

/* Lets this process open as many files as the system allows it: the hard limit instead of the soft one. */
void os_files_raise(void);

/* From now on free() returns every block of 4 MiB or more to the kernel at once. By itself, glibc raises this limit to
 * 32 MiB when it frees such a block, and then keeps up to 64 MiB of free memory, so that peak memory would depend on
 * the order in which threads free. To be called before other threads are started. Does nothing with other C libraries.
 */
void os_memory_returned(void);

/* ---- other programs ---- */

struct os_child {
    int64_t id; /* the process id */
    int output; /* for reading what the child writes to its standard output, or -1: it has that of this process */
    uint64_t
        peak_bytes;  /* once it has ended: the most memory that it used, at least what this process used at its start */
    uint64_t cpu_ns; /* once it has ended: its CPU time, user and system */
    bool signal_reported; /* os_child_wait() has returned EINTR */
};

/* Starts the program at `path`. arguments: its argv, from its name to a NULL. The child gets the signal mask that this
 * process had when it started. If the program cannot be run, returns the errno. */
int os_child_start(struct os_child *child, const char *path, const char *const *arguments, bool read_output);
/* Does the same, with its standard output to be read and its standard error written to the descriptor `errors`. */
int os_child_start_logged(struct os_child *child, const char *path, const char *const *arguments, int errors);
/* Does what os_child_start() does for a program whose standard input is the descriptor `input`, such as the output of
 * another child. */
int os_child_start_reading(struct os_child *child, const char *path, const char *const *arguments, bool read_output,
                           int input);
/* Asks the child to end (SIGTERM). os_child_wait() is still necessary. */
void os_child_stop(const struct os_child *child);
/* Asks the child to end, and ends it (SIGKILL) if it still runs after `ns`. os_child_wait() is still necessary; it does
 * not wait then. Signals do not shorten the time, so that a child can remove what it has made. */
void os_child_end(const struct os_child *child, uint64_t ns);
/* Waits for the child's end, closes `output`, and stores its exit status, or 128 plus the signal that ended it. Returns
 * EINTR, once, if a signal has been caught: the caller may stop the child, and then waits again. */
int os_child_wait(struct os_child *child, int *exit_status);

/* Becomes the program `arguments[0]`, which is searched for in $PATH, and so returns only if it cannot be run. */
int os_program_become(const char *const *arguments);
/* Stores the path of the running program. ENAMETOOLONG if it does not fit. */
int os_program_path(char *path, size_t capacity);
/* Writes all dirty data of the machine to storage, then empties its caches of file data, names, and inodes. EACCES if
 * this process is not root's. */
int os_drop_all_caches(void);

#endif
