/* SPDX-License-Identifier: MIT */
/*
 * os.h - the whole contract with the kernel, on one page.
 *
 * Only src/platform calls open, read, write, mmap, madvise, readahead, posix_fadvise, fsync, rename, pthread_create,
 * dlopen, and their like; tests/lint checks this for the library and for the commands. (Signals and child processes are
 * in process.h.)
 *
 * Rules for all functions, unless a comment says otherwise:
 *   - A function that returns an int returns 0, or a positive errno on failure. EINTR is retried inside.
 *   - Paths are the bytes that the kernel takes, terminated by a zero byte.
 *   - A *hint* may do nothing and reports no failure.
 *   - Any thread may call any function at any time.
 */
#ifndef TOKMAP_PLATFORM_OS_H
#define TOKMAP_PLATFORM_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- files ---- */

/* Ways in which os_open() opens a file, which must exist if nothing else is said. O_CLOEXEC is always set. */
enum os_open {
    OS_READ,        /* for reading */
    OS_READ_DIRECT, /* for reading with O_DIRECT; EINVAL where the file system does not support it */
    OS_WRITE_NEW,   /* for reading and writing; creates the file, which must not exist, not even as a symbolic link */
    OS_WRITE_OPEN, /* for reading and writing; creates the file, or keeps its content; ELOOP if it is a symbolic link */
    OS_WRITE_OLD,  /* for reading and writing; ELOOP if the path is a symbolic link */
    OS_WRITE_ONLY, /* for writing, as some files of /proc are */
    OS_WRITE_UNNAMED, /* for reading and writing; creates a file without a name in the folder, until it is closed */
    OS_READ_NOW, /* for reading, without waiting for the writer of a pipe, which os_fstat() reports; os_wait_readable()
                    waits for its data */
    OS_READ_OWN  /* as OS_READ_NOW; ELOOP if the path is a symbolic link */
};

enum os_kind { OS_KIND_FILE, OS_KIND_FOLDER, OS_KIND_LINK, OS_KIND_PIPE, OS_KIND_OTHER, OS_KIND_UNKNOWN };

struct os_stat {
    uint64_t bytes;         /* the size */
    uint64_t device, inode; /* both together identify the file */
    enum os_kind kind;      /* never OS_KIND_UNKNOWN */
    uint64_t allocated;     /* bytes of storage that the file occupies; less than `bytes` if it is sparse */
    uint64_t modified_ns;   /* time of the last change in ns since 1970; only for finding out whether a file changed */
    uint64_t changed_ns;    /* the same, also of its names and its mode; no program can set it */
};

int os_open(const char *path, enum os_open how, int *fd);
/* Errors are ignored: what close() could report, os_sync() has reported. A negative descriptor is ignored, too. */
void os_close(int fd);
/* Says that about `count` more files will be opened and stay open. The kernel keeps a table of a process's files,
 * doubles it when it is full, and, in a process with threads, waits several milliseconds each time. This makes it large
 * enough at once. A hint. */
void os_files_expect(uint64_t count);
/* Returns how many files the process may have open (ulimit -n), and how many mappings (vm.max_map_count). */
uint64_t os_files_limit(void);
uint64_t os_mappings_limit(void);
int os_fstat(int fd, struct os_stat *out);
/* Returns whether an open file belongs to the user whose rights this process has (the effective user). */
bool os_is_own(int fd);
/* Returns the size of an open regular file alone, in a third of the time of os_fstat(). Moves the file's position. */
int os_file_bytes(int fd, uint64_t *bytes);
int os_stat(const char *path, struct os_stat *out);  /* follows symbolic links */
int os_lstat(const char *path, struct os_stat *out); /* describes a symbolic link itself */
/* Finds how many bytes a user who is not root may still write to the file system that contains the path. */
int os_disk_free(const char *path, uint64_t *bytes);
/* Finds how large that file system is. */
int os_disk_size(const char *path, uint64_t *bytes);

/* Reads `count` bytes at `offset`, or fewer if the file ends before; *got is their number. Reaching the end is a
 * success. */
int os_pread(int fd, void *into, size_t count, uint64_t offset, size_t *got);
/* Reads the first bytes of a file, at most `room`. Returns false if it is not a regular file, or cannot be read. */
bool os_head_read(const char *path, void *head, size_t room, size_t *got);
/* Reads once, from the page cache only, without waiting for storage. *got is less than `count` if only the first pages
 * of the range are in the page cache; EAGAIN if the first one is not. ENOTSUP if the kernel or the file system does not
 * support this. */
int os_pread_cached(int fd, void *into, size_t count, uint64_t offset, size_t *got);
/* Reads once from a stream (pipe, terminal); *got is 0 at its end. EINTR if waits are to end (os_wake_set). */
int os_read(int fd, void *into, size_t count, size_t *got);
/* Waits until a read of a stream would not block, because there is data, an error, or the end. ETIMEDOUT after `ns`;
 * UINT64_MAX waits without a limit. EINTR if waits are to end (os_wake_set). fd -1 only waits. */
int os_wait_readable(int fd, uint64_t ns);
/* Writes all bytes. */
int os_write(int fd, const void *from, size_t count);
/* Writes all bytes to a stream (pipe, terminal). EINTR if waits are to end (os_wake_set) and the stream would block; a
 * part of the bytes may have been written. (A terminal that the user has stopped can block nevertheless.) */
int os_write_stream(int fd, const void *from, size_t count);
int os_pwrite(int fd, const void *from, size_t count, uint64_t offset);
/* Copies `count` bytes from one file to another, inside the kernel where it can. ENODATA if the source ends before. */
int os_copy_range(int from, uint64_t from_offset, int into, uint64_t into_offset, uint64_t count);
int os_truncate(int fd, uint64_t bytes);
/* Starts writing the dirty pages of a range to storage and returns without waiting. A hint. */
void os_write_behind(int fd, uint64_t offset, uint64_t bytes);

int os_sync(int fd);                  /* the file's data and size are on storage when this returns 0 */
int os_sync_folder(const char *path); /* the same for the names in the folder that contains `path` */
int os_rename(const char *from, const char *to);
int os_unlink(const char *path);
/* Gives a file another name, which must not exist. EPERM, ENOTSUP, EMLINK, or EXDEV where it cannot have one. */
int os_link(const char *path, const char *name);
int os_make_folder(const char *path);
int os_make_folders(const char *path);  /* the folders that it is in, if they are missing */
int os_remove_folder(const char *path); /* an empty one */
/* Finds the absolute path of a file or folder, without symbolic links, "." and ".."; free *real with free(). NULL on
 * failure. */
int os_real_path(const char *path, char **real);
/* Locks an open file exclusively, until it is closed or the process ends. EWOULDBLOCK if it is locked by another
 * opening; ENOLCK if the file system has no locks. */
int os_lock(int fd);
/* Locks the file together with others that lock it so. It suffices that the file is open for reading. */
int os_lock_shared(int fd);

/* Opens those of the descriptors 0, 1, and 2 that are closed, on a file for which reads and writes fail. Commands call
 * it first, so that no file that they open later gets such a number and then receives what is printed. */
void os_standard_files(void);

/* ---- folders ---- */

/* Calls entry() for each name in a folder except "." and "..", in no particular order. A result of entry() other than 0
 * ends the walk and is returned. */
int os_folder_list(const char *path, int (*entry)(void *user, const char *name), void *user);
/* Does the same with what each name is, as os_lstat() would say it; OS_KIND_UNKNOWN where the file system does not
 * record it in the folder. */
int os_folder_kinds(const char *path, int (*entry)(void *user, const char *name, enum os_kind kind), void *user);

/* ---- page cache ---- */

/* Starts reading a range into the page cache and returns without waiting for it. A hint. */
void os_read_ahead(int fd, uint64_t offset, uint64_t bytes);
void os_advise_random(int fd); /* no read-ahead by the kernel for this opening. A hint. */
/* Removes the clean pages of a range from the cache. A hint. */
void os_advise_drop(int fd, uint64_t offset, uint64_t bytes);

/* ---- files that are fetched ---- */

/* The source of an open file whose bytes come from elsewhere when they are needed. Any thread calls the functions,
 * and a child after fork() too. */
struct os_fetched {
    /* Makes bytes [offset, offset + bytes) present and sets *state to what kept() compares. wait: it may fetch them, or
     * wait for somebody who does; otherwise EAGAIN. Returns 0 or a number for error_set_system(). */
    int (*need)(struct os_fetched *file, uint64_t offset, uint64_t bytes, bool wait, uint64_t *state);
    /* Returns whether the bytes have been present without a break since need() set `state`. */
    bool (*kept)(struct os_fetched *file, uint64_t offset, uint64_t bytes, uint64_t state);
    void (*ask)(struct os_fetched *file, uint64_t offset, uint64_t bytes); /* fetches ahead. A hint */
    void (*close)(struct os_fetched *file);                                /* its last use has ended */
    uint32_t users; /* the descriptor, and reads that may outlive it; accessed atomically */
};

/* From now on os_pread() and os_pread_cached() of the descriptor read bytes that are present, os_read_ahead() asks for
 * those that are not, and os_close() gives the descriptor's use of the file up. In a mapping, bytes that are not
 * present are zeros: call need() before a load from it, and kept() after. Returns 0 or ENOMEM. */
int os_fetched_set(int fd, struct os_fetched *file);
struct os_fetched *os_fetched_of(int fd); /* NULL: the file is not one that is fetched */
/* Returns the file of a descriptor, as os_fetched_of() does, which stays until it is released, even if another thread
 * closes the descriptor meanwhile. */
struct os_fetched *os_fetched_hold(int fd);
void os_fetched_release(struct os_fetched *file); /* accepts NULL */
/* os_pread() and os_read_ahead() of a descriptor whose file is known, and held if another thread may close it. */
int os_fetched_pread(struct os_fetched *file, int fd, void *into, size_t count, uint64_t offset, size_t *got);
void os_fetched_read_ahead(struct os_fetched *file, int fd, uint64_t offset, uint64_t bytes);

/* Maps the first `bytes` of a file, shared, for reading and writing; os_unmap() ends it. */
int os_map_shared(int fd, uint64_t bytes, void **address);
/* Gives bytes of such a mapping storage before they are written: without it, a write to a full disk kills the process.
 * Returns 0 (also on kernels that cannot do so) or ENOSPC. */
int os_map_fill(void *address, uint64_t bytes);
/* Gives the storage of a range of a file back; its bytes are zeros then. ENOTSUP where the file system cannot. */
int os_punch(int fd, uint64_t offset, uint64_t bytes);
/* Locks byte `at` of a file for this process: no child has the lock, and it ends with the process, or when the process
 * closes any descriptor of the file. EWOULDBLOCK if another process has it. */
int os_byte_lock(int fd, uint64_t at);
void os_byte_unlock(int fd, uint64_t at);
bool os_byte_is_locked(int fd, uint64_t at); /* by another process */
bool os_is_private(int fd);                  /* it belongs to this user, and no other may write it */
int os_make_private(const char *folder);     /* no other user may read or write it */
uint64_t os_boot_id(void);                   /* of this run of the machine; 0 if unknown */

/* ---- memory ---- */

size_t os_page_bytes(void);

/* Maps the first `bytes` of a file, shared and read-only; bytes > 0. From 2 MiB on, the mapping starts at a multiple of
 * 2 MiB, so that the kernel can use huge pages. Reading a page of it that the file no longer has is a SIGBUS: see
 * os_map_populate(). */
int os_map_file(int fd, uint64_t bytes, const void **address);
void os_unmap(const void *address, uint64_t bytes); /* accepts NULL */
/* Asks the storage to read a mapped range of a file ahead. A hint. */
void os_map_ask(const void *address, uint64_t bytes);
/* Makes the pages of a mapped range present, reading them from storage if necessary. Where a load from a page would be
 * a SIGBUS, this returns EFAULT (the file has been truncated) or EIO (its storage fails). ENOTSUP on kernels
 * before 5.14. While the kernel answers EAGAIN it is asked again after a pause; EAGAIN is returned if it still does
 * after OS_POPULATE_TRIES, and if it answers EINTR OS_POPULATE_INTERRUPTS times. */
int os_map_populate(const void *address, uint64_t bytes);
#define OS_POPULATE_TRIES 100
#define OS_POPULATE_PAUSE_NS 1000000
#define OS_POPULATE_INTERRUPTS 10000
/* Returns whether all pages of a mapped range are in the page cache; at most OS_RESIDENT_PAGES, false for more. The
 * kernel reports every page as present to a process that neither owns the file nor may write it. */
bool os_map_resident(const void *address, uint64_t bytes);
#define OS_RESIDENT_PAGES 512
/* Reports how many pages of a range of a file are in the page cache, or are being read into it. Returns 0 or an errno:
 * ENOTSUP on kernels before 6.5, EPERM if this process neither owns the file nor may write it. A file system that is
 * stacked on others may report 0 pages. */
int os_file_cached(int fd, uint64_t offset, uint64_t bytes, uint64_t *pages);

/* Makes anonymous, zeroed memory, of which only touched pages occupy RAM. huge: asks for huge pages, of 2 MiB, and
 * begins at a multiple of that. os_memory_free() frees it. */
int os_memory_new(uint64_t bytes, bool huge, void **address);
void os_memory_free(void *address, uint64_t bytes); /* accepts NULL */
/* Memory as of malloc(), for free(), where a table of one size is filled once, such as those of a vocabulary. From
 * OS_LARGE bytes on it asks for huge pages: the first touch of a page of 4 KiB takes up to 2 us in a virtual machine,
 * longer than filling it, and that of a page of 2 MiB takes 200 us, a fifth. Below 4 MiB, a last page of OS_LARGE bytes
 * or more is a huge one, too. The memory begins at a multiple of 64 bytes. NULL if memory is lacking. */
void *os_memory_large(size_t bytes);
#define OS_LARGE ((size_t)512 << 10)
/* Does the same for `count` elements of `bytes` bytes, filled with zeros. */
void *os_memory_large_zeros(size_t count, size_t bytes);
/* Keeps the kernel from using huge pages for memory of os_memory_new() that is not touched yet, where it would do so
 * unasked. A hint. */
void os_memory_small_pages(void *address, uint64_t bytes);
/* Makes memory of os_memory_new() zero again in a child after fork(). Returns false if the kernel cannot do that: it
 * is older than 4.14, or a sandbox. */
bool os_memory_zero_on_fork(void *address, uint64_t bytes);
/* Keeps memory of os_memory_new() out of a child after fork(): there nothing is mapped at its addresses, until the
 * child maps something of its own. A hint. */
void os_memory_not_in_child(void *address, uint64_t bytes);

/* Returns the NUMA node nearest to a PCI device; -1 if it is unknown or if the machine has only one node. */
int os_pci_node(unsigned domain, unsigned bus, unsigned device);
/* Takes pages of the range that are not yet present from the given node, as long as it has free memory. A hint. */
void os_memory_prefer_node(void *address, uint64_t bytes, int node);

/* Bytes of physical memory that this process may use: the machine's, or the limit of its control group if that is
 * smaller. */
uint64_t os_memory_limit(void);
/* False if the file is on a network file system or on one that another process implements (FUSE), or if that is
 * unknown. */
bool os_file_is_local(int fd);
/* Returns whether the file's data is in memory (tmpfs, hugetlbfs), where it cannot be dropped from the page cache. */
bool os_file_is_memory(int fd);

/* ---- time, processors, identity ---- */

uint64_t os_clock_ns(void);       /* monotonic; does not count time during which the machine is suspended */
uint64_t os_wall_seconds(void);   /* since 1970-01-01 00:00 UTC; may be set back at any time */
uint64_t os_thread_cpu_ns(void);  /* CPU time of the calling thread */
uint64_t os_process_cpu_ns(void); /* CPU time of all threads */
/* Returns when the process started, on the clock of os_clock_ns(), to about 10 ms; 0 if unknown. */
uint64_t os_process_start_ns(void);
void os_sleep_ns(uint64_t ns);
uint32_t os_processors(void);      /* on which this process may run; at least 1 */
uint64_t os_memory_resident(void); /* bytes of RAM that the process uses, 0 if unknown */
/* Bytes that this process has caused to be read from storage so far; UINT64_MAX if unknown. */
uint64_t os_storage_bytes_read(void);
/* Fills at most 256 bytes with random numbers of the kernel. Never waits: EAGAIN shortly after the machine's start. */
int os_random(void *into, size_t count);
/* Finds the name of this machine on its network, cut to fit; "?" if unknown. */
void os_host_name(char *name, size_t capacity);
uint32_t os_process_id(void); /* a child after fork() has another one than its parent. Costs a load */
/* Returns the process that has started this one; when that is gone, another process; 0 if it is in another
 * namespace. */
uint32_t os_parent_id(void);
bool os_is_terminal(int fd);
uint32_t os_terminal_columns(int fd); /* 80 if unknown */
bool os_is_root(void);

/* ---- shared libraries ---- */

/* Loads a shared library by its name or path and stores its handle, which is the same for every call that loads this
 * library. The library stays in memory until the process ends. On failure returns false and stores the dynamic linker's
 * message in reason[], cut to `capacity` bytes. */
bool os_library_open(const char *name, void **library, char *reason, size_t capacity);
/* Returns the address of a function or variable, or NULL if the library does not export it. */
void *os_library_symbol(void *library, const char *name);
/* Stores the path of the file that was loaded, cut to `capacity` bytes, or "" if it is unknown. */
void os_library_path(void *library, char *path, size_t capacity);
/* Ends the use of the handle. Addresses of symbols stay valid. */
void os_library_close(void *library);

/* ---- threads ---- */

/* Mutexes and conditions are pthread's. os_*_new() returns ENOMEM, or what pthread returns, and os_*_free() accepts
 * NULL. */

struct os_thread;
/* Starts a thread with all signals blocked, so that they reach the threads of the program that uses the library. The
 * exceptions are the signals of faults (SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS), which only the thread at
 * fault can get, and for which the program may have handlers. It starts on another processor than the calling thread
 * has, if the program may use several, and may run on all of them from then on. name: what ps and debuggers show, cut
 * to 15 bytes. */
int os_thread_start(struct os_thread **thread, const char *name, void (*body)(void *user), void *user);
/* Starts a thread for body() if `apart` and there are several processors. Otherwise, and if it cannot be started,
 * body() is called before this returns. Returns the thread, which the caller joins, or NULL. */
struct os_thread *os_thread_beside(bool apart, const char *name, void (*body)(void *user), void *user);
/* Does the same as os_thread_start for a thread that is not joined: it ends when body() returns. Its function and data
 * must outlive it. */
int os_thread_start_detached(const char *name, void (*body)(void *user), void *user);
void os_thread_join(struct os_thread *thread); /* waits until body() has returned and frees the handle; accepts NULL */
/* Calls body(user, number) for the numbers below `count`, which is at least 1, each on a thread of its own, and returns
 * when all of them have returned. The calling thread takes number 0. The numbers whose threads cannot be started are
 * left out, so the calls share work of which each takes the next share. */
void os_threads_share(const char *name, uint32_t count, void (*body)(void *user, uint32_t number), void *user);
/* From now on the calling thread runs on the processors of that NUMA node, if it may run on any of them. A hint. */
void os_thread_prefer_node(int node);

struct os_mutex;
int os_mutex_new(struct os_mutex **mutex);
void os_mutex_free(struct os_mutex *mutex);
void os_mutex_lock(struct os_mutex *mutex);
void os_mutex_unlock(struct os_mutex *mutex);

/* Lock and unlock the one lock of this process, for a few lines without a system call: a child after fork() finds it
 * unlocked, and what it protects complete. */
void os_process_lock(void);
void os_process_unlock(void);

struct os_condition;
int os_condition_new(struct os_condition **condition);
void os_condition_free(struct os_condition *condition);
/* Waits for a signal. The calling thread has locked the mutex. It can return without a signal, so the caller checks its
 * own condition in a loop. */
void os_condition_wait(struct os_condition *condition, struct os_mutex *mutex);
/* Waits for at most `ns`; returns false if that time has passed. */
bool os_condition_wait_for(struct os_condition *condition, struct os_mutex *mutex, uint64_t ns);
void os_condition_signal(struct os_condition *condition);
void os_condition_broadcast(struct os_condition *condition);

/* Sleeps while *word == expected, until os_word_wake() (a futex of this process). Returns at once if *word has another
 * value, and can return without a cause, so the caller checks the word in a loop. */
void os_word_wait(const uint32_t *word, uint32_t expected);
void os_word_wait_for(const uint32_t *word, uint32_t expected, uint64_t ns); /* the same for at most `ns` */
void os_word_wake(const uint32_t *word); /* wakes all threads that sleep on the word */

void os_relax(void); /* for the body of a loop that spins: lets the other hardware thread of the core run */

/* Makes os_read(), os_wait_readable(), and os_write_stream() end with EINTR instead of waiting, in all threads, as soon
 * as the descriptor `fd` is readable. -1, the initial state, means that nothing ends them. process.h uses it for
 * signals; the library never does. To be called while no other thread waits. */
void os_wake_set(int fd);
int os_wake(void); /* that descriptor, or -1 */

#endif
