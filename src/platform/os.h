/*
 * os.h - the whole contract with the kernel, on one page.
 *
 * Nothing else in the library, nor in the commands, calls open, read, write, mmap, madvise, readahead, fadvise, fsync,
 * rename, pthread or their kin: tests/lint checks it. Functions that can fail return 0 or a positive errno and retry
 * EINTR themselves. Paths are bytes as the kernel takes them. Any thread, unless a line says otherwise.
 */
#ifndef TOKMAP_PLATFORM_OS_H
#define TOKMAP_PLATFORM_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- files ---- */

enum os_open {
    OS_READ = 0,          /* must exist; O_RDONLY | O_CLOEXEC */
    OS_READ_DIRECT = 1,   /* likewise with O_DIRECT; EINVAL where the file system has none */
    OS_WRITE_NEW = 2,     /* created, must not exist (O_EXCL | O_NOFOLLOW); read and write */
    OS_WRITE_OPEN = 3,    /* created if missing, kept as it is if not; read and write; not through a symbolic link */
    OS_WRITE_UNNAMED = 4, /* path is a folder: a file without a name in it, gone when closed; read and write */
    OS_READ_NOW = 5       /* as OS_READ, without waiting for the writer of a pipe: os_fstat() says what it is, and of a
                             pipe os_wait_readable() when there is something to read */
};

enum os_kind { OS_KIND_FILE, OS_KIND_FOLDER, OS_KIND_LINK, OS_KIND_PIPE, OS_KIND_OTHER };

struct os_stat {
    uint64_t bytes;
    uint64_t device, inode; /* together the file's identity */
    enum os_kind kind;
    uint64_t allocated;   /* bytes of storage that it occupies; below `bytes` for a sparse file */
    uint64_t modified_ns; /* time of the last change, since 1970: only to see whether a file changed */
};

int os_open(const char *path, enum os_open how, int *fd);
void os_close(int fd); /* errors of close lose nothing that fsync has not said */
int os_fstat(int fd, struct os_stat *out);
int os_stat(const char *path, struct os_stat *out);  /* follows links */
int os_lstat(const char *path, struct os_stat *out); /* does not */

/* Reads until `count` bytes are there or the file ends; *got says how many. A short read is no error. */
int os_pread(int fd, void *into, size_t count, uint64_t offset, size_t *got);
/* One read from the page cache only: EAGAIN if any of it is not there (*got may be short then, or 0), ENOTSUP where the
 * kernel or the file system cannot tell. */
int os_pread_cached(int fd, void *into, size_t count, uint64_t offset, size_t *got);
/* One read of a stream (pipe, terminal); 0 bytes is its end. EINTR: os_wake() is readable: a signal has come,
 * now or before; a wait ends with it, and so does every later one. */
int os_read(int fd, void *into, size_t count, size_t *got);
/* Waits at most `ns` until a read of a stream would not block (data, its end or an error is there); ETIMEDOUT if it
 * still would, EINTR as from os_read. UINT64_MAX: without an end. */
int os_wait_readable(int fd, uint64_t ns);
/* Writes all of it. */
int os_write(int fd, const void *from, size_t count);
/* The same to a stream (pipe, terminal). EINTR: os_wake() is readable: a signal has come, now or before, and the
 * stream takes no more without a wait; part of it may be written. A terminal that was stopped may wait in spite of it. */
int os_write_stream(int fd, const void *from, size_t count);
int os_pwrite(int fd, const void *from, size_t count, uint64_t offset);
/* Copies count bytes between files inside the kernel where it can; ENODATA if the source ends before. */
int os_copy_range(int from, uint64_t from_offset, int into, uint64_t into_offset, uint64_t count);
int os_truncate(int fd, uint64_t bytes);
/* Reserves storage so that a later write cannot lack space; ENOTSUP where the file system cannot. */
int os_reserve(int fd, uint64_t offset, uint64_t bytes);
/* Starts writing a range of dirty pages to storage and does not wait. A hint. */
void os_write_behind(int fd, uint64_t offset, uint64_t bytes);

int os_sync(int fd);                  /* fsync */
int os_sync_folder(const char *path); /* of the folder that holds `path` */
int os_rename(const char *from, const char *to);
int os_unlink(const char *path);
int os_make_folder(const char *path);
int os_link_count(int fd, uint64_t *links); /* 0: the file has no name any more */
/* An exclusive lock on an open file, released when it is closed (by death too); EWOULDBLOCK if another has it. */
int os_lock(int fd);

/* For the start of a command: gives descriptors 0, 1 and 2 that are closed a file on which reads and writes fail, so
 * that no file opened later takes their number and receives what is printed. */
void os_standard_files(void);

/* ---- folders ---- */

/* Calls entry() for each name in a folder but . and .., in no order. A result other than 0 from it ends the walk and is
 * returned. */
int os_folder_list(const char *path, int (*entry)(void *user, const char *name), void *user);

/* ---- page cache ---- */

/* Asks for a range to be read into the page cache and does not wait for it. A hint; ignores failures. */
void os_read_ahead(int fd, uint64_t offset, uint64_t bytes);
void os_advise_random(int fd); /* no read-ahead of the kernel's own */
void os_advise_sequential(int fd);
void os_advise_drop(int fd, uint64_t offset, uint64_t bytes); /* clean pages of the range leave the cache */

/* ---- memory ---- */

size_t os_page_bytes(void);

/* Maps a whole file, or its first `bytes`, shared and read-only. bytes > 0. The start is at a multiple of 2 MiB for
 * files of that size and more, so that the kernel can map huge folios. */
int os_map_file(int fd, uint64_t bytes, const void **address);
void os_unmap(const void *address, uint64_t bytes);
/* Makes the pages of a mapped range present. EFAULT if the file has no such pages any more, EIO if its storage fails:
 * what a plain load would have answered with SIGBUS. ENOTSUP on kernels before 5.14. */
int os_map_populate(const void *address, uint64_t bytes);
#define OS_POPULATE_TRIES 100 /* while the kernel reports EAGAIN, which os_map_populate() returns then */
#define OS_POPULATE_PAUSE_NS 1000000
void os_map_random(const void *address, uint64_t bytes); /* faults read one page, not the neighbourhood */
/* True if all pages of a mapped range are in the page cache, as far as the kernel tells: to a process that may neither
 * own nor write the file it says yes. At most 64 pages. */
bool os_map_resident(const void *address, uint64_t bytes);

/* Anonymous zeroed memory, untouched pages cost nothing. huge: ask for huge pages. Freed by os_memory_free. */
int os_memory_new(uint64_t bytes, bool huge, void **address);
void os_memory_free(void *address, uint64_t bytes);
/* In a child after fork() such memory of os_memory_new is zero again. A hint. */
void os_memory_zero_on_fork(void *address, uint64_t bytes);

/* The NUMA node nearest to a PCI device, -1 if it is unknown or the machine has one. */
int os_pci_node(unsigned domain, unsigned bus, unsigned device);
/* Pages of the range that are not there yet will be taken from that node as long as it has any. A hint. */
void os_memory_prefer_node(void *address, uint64_t bytes, int node);

/* Physical memory that this process may use: the smaller of the machine's and its control group's. */
uint64_t os_memory_limit(void);
/* True if the file's data comes from this machine (no network or user-space file system), as far as known. */
bool os_file_is_local(int fd);
/* True if its data lives in memory (tmpfs, hugetlbfs): it cannot be dropped from the page cache. */
bool os_file_is_memory(int fd);

/* ---- time, processors, identity ---- */

uint64_t os_clock_ns(void); /* monotonic */
uint64_t os_thread_cpu_ns(void);
uint64_t os_process_cpu_ns(void);
uint64_t os_process_start_ns(void); /* on the clock of os_clock_ns, to about 10 ms */
void os_sleep_ns(uint64_t ns);
uint32_t os_processors(void);           /* that this process may run on, at least 1 */
uint64_t os_memory_resident(void);      /* VmRSS in bytes, 0 if unknown */
uint64_t os_memory_resident_peak(void); /* ru_maxrss in bytes */
void os_faults(uint64_t *minor, uint64_t *major);
/* Bytes that this process made the storage read (/proc/self/io read_bytes); UINT64_MAX if unknown. */
uint64_t os_storage_bytes_read(void);
bool os_is_terminal(int fd);
uint32_t os_terminal_columns(int fd); /* 80 if unknown */
bool os_is_root(void);

/* ---- shared libraries ---- */

/* Loads a shared library by name or path and stores its handle; every call for the same library returns the same handle. It stays
 * in memory until the process ends. On failure returns false and stores the dynamic linker's sentence in `reason`. */
bool os_library_open(const char *name, void **library, char *reason, size_t capacity);
/* The address of a function or variable, or NULL if the library does not export it. */
void *os_library_symbol(void *library, const char *name);
/* Stores the path that the library was loaded from, cut to `capacity` bytes; "" if it is unknown. */
void os_library_path(void *library, char *path, size_t capacity);
/* Ends the use of the handle. Addresses of symbols stay valid. */
void os_library_close(void *library);

/* ---- threads ---- */

struct os_thread;
/* name: at most 15 bytes. The thread has all signals blocked. */
int os_thread_start(struct os_thread **thread, const char *name, void (*body)(void *user), void *user);
void os_thread_join(struct os_thread *thread); /* waits and frees; accepts NULL */

/* The calling thread runs on that NUMA node's processors from now on, if it may run on any of them. A hint. */
void os_thread_prefer_node(int node);

struct os_mutex;
int os_mutex_new(struct os_mutex **mutex);
void os_mutex_free(struct os_mutex *mutex);
void os_mutex_lock(struct os_mutex *mutex);
void os_mutex_unlock(struct os_mutex *mutex);

struct os_condition;
int os_condition_new(struct os_condition **condition);
void os_condition_free(struct os_condition *condition);
void os_condition_wait(struct os_condition *condition, struct os_mutex *mutex);
/* False if `ns` passed without a signal. */
bool os_condition_wait_for(struct os_condition *condition, struct os_mutex *mutex, uint64_t ns);
void os_condition_signal(struct os_condition *condition);
void os_condition_broadcast(struct os_condition *condition);

/* Sleeps while *word == expected (a futex); returns at once if it is not, and may return without cause. */
void os_word_wait(const uint32_t *word, uint32_t expected);
void os_word_wait_for(const uint32_t *word, uint32_t expected, uint64_t ns); /* the same, for ns at most */
void os_word_wake(const uint32_t *word);                                     /* all that sleep on it */

void os_relax(void); /* one turn of a spinning loop */

/* A descriptor that becomes readable, and stays so, when waits are to end (os_read, os_wait_readable, os_write_stream); -1,
 * as at first: none. process.h sets it, for commands; in a program that uses the library alone nothing does. */
void os_wake_set(int fd);
int os_wake(void);

#endif
