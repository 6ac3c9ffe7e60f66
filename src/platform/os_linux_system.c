/* SPDX-License-Identifier: MIT */
/*
 * os_linux_system.c - os.h for Linux: time, processors, identity, shared libraries, threads, and which
 * processors and which memory are near a device.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "os.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/error.h"

/* ---- time, processors, identity ---- */

static uint64_t clock_read(clockid_t which)
{
    struct timespec now;
    if (clock_gettime(which, &now))
        return 0;
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t os_clock_ns(void)
{
    return clock_read(CLOCK_MONOTONIC);
}

uint64_t os_wall_seconds(void)
{
    return clock_read(CLOCK_REALTIME) / 1000000000u;
}

uint64_t os_thread_cpu_ns(void)
{
    return clock_read(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t os_process_cpu_ns(void)
{
    return clock_read(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t os_process_start_ns(void)
{
    char text[1024] = "";
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    const char *at = got > 0 ? strrchr(text, ')')
                             : NULL; /* the program's name, which may contain spaces and parentheses, ends there */
    for (int field = 2; at && field < 22; field++) {
        at = strchr(at + 1, ' ');
    }
    if (!at)
        return 0;
    uint64_t ticks = strtoull(at + 1, NULL, 10);
    long per_second = sysconf(_SC_CLK_TCK);
    uint64_t since_boot = ticks * (1000000000u / (uint64_t)(per_second > 0 ? per_second : 100));
    uint64_t monotonic = clock_read(CLOCK_MONOTONIC); /* read first, so that the difference is never negative */
    uint64_t ahead = clock_read(CLOCK_BOOTTIME) - monotonic;
    return since_boot > ahead ? since_boot - ahead : 0;
}

void os_sleep_ns(uint64_t ns)
{
    struct timespec wait = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    while (nanosleep(&wait, &wait) && errno == EINTR)
        ;
}

uint32_t os_processors(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set)) {
        long online = sysconf(_SC_NPROCESSORS_ONLN); /* the machine has more processors than cpu_set_t can describe */
        return online > 0 ? (uint32_t)online : 1;
    }
    int count = CPU_COUNT(&set);
    return count > 0 ? (uint32_t)count : 1;
}

/* Returns the number that follows a name in a file of lines "name: number"; UINT64_MAX if the file or the name is
 * missing. */
static uint64_t field_in(const char *path, const char *name)
{
    char text[4096] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return UINT64_MAX;
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    const char *at = got > 0 ? strstr(text, name) : NULL;
    return at ? strtoull(at + strlen(name), NULL, 10) : UINT64_MAX;
}

uint64_t os_memory_resident(void)
{
    uint64_t kib = field_in("/proc/self/status", "VmRSS:");
    return kib == UINT64_MAX ? 0 : kib * 1024;
}

uint64_t os_storage_bytes_read(void)
{
    return field_in("/proc/self/io", "\nread_bytes:");
}

int os_random(void *into, size_t count)
{
    assert(count <= 256); /* so many come whole, and no signal interrupts them */
    const ssize_t got = getrandom(into, count, GRND_NONBLOCK);
    return got == (ssize_t)count ? 0 : got < 0 ? errno : EIO;
}

bool os_is_terminal(int fd)
{
    return isatty(fd) == 1;
}

uint32_t os_terminal_columns(int fd)
{
    struct winsize size;
    return ioctl(fd, TIOCGWINSZ, &size) || !size.ws_col ? 80 : size.ws_col;
}

void os_host_name(char *name, size_t capacity)
{
    if (gethostname(name, capacity) || !memchr(name, '\0', capacity) || !*name)
        (void)snprintf(name, capacity, "?");
}

uint32_t os_parent_id(void)
{
    return (uint32_t)getppid();
}

bool os_is_root(void)
{
    return geteuid() == 0;
}

/* ---- shared libraries ---- */

bool os_library_open(const char *name, void **library, char *reason, size_t capacity)
{
    *library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (*library)
        return true;
    const char *said = dlerror();
    (void)snprintf(reason, capacity, "%s", said ? said : name);
    return false;
}

void *os_library_symbol(void *library, const char *name)
{
    assert(library && name);
    return dlsym(library, name);
}

void os_library_path(void *library, char *path, size_t capacity)
{
    struct link_map *map = NULL;
    const bool known = !dlinfo(library, RTLD_DI_LINKMAP, &map) && map && map->l_name;
    (void)snprintf(path, capacity, "%s", known ? map->l_name : "");
}

void os_library_close(void *library)
{
    (void)dlclose(library);
}

/* ---- threads ---- */

struct os_thread {
    pthread_t handle;
    void (*body)(void *user);
    void *user;
    bool detached;      /* nobody joins the thread, so it frees this struct */
    bool elsewhere;     /* it is started on another processor, and then may run on */
    cpu_set_t anywhere; /* all of these */
    char name[16];
};

/* Sets the processors where a thread is started: all but that of the calling thread, which is busy. Most kernels choose
 * an idle processor themselves. Some put a new thread on the processor of the thread that starts it, so that another
 * one can sleep, and move it only after some milliseconds. Many of our threads have no more work than that. Returns
 * false if there is no other processor. */
static bool start_elsewhere(struct os_thread *thread, pthread_attr_t *attributes)
{
    const int here = sched_getcpu();
    cpu_set_t others;
    if (here < 0 || here >= CPU_SETSIZE || sched_getaffinity(0, sizeof thread->anywhere, &thread->anywhere))
        return false;
    others = thread->anywhere;
    CPU_CLR(here, &others);
    return CPU_COUNT(&others) && !pthread_attr_setaffinity_np(attributes, sizeof others, &others);
}

static void *thread_main(void *argument)
{
    struct os_thread *thread = argument;
    if (thread->elsewhere)
        (void)sched_setaffinity(0, sizeof thread->anywhere, &thread->anywhere);
    (void)pthread_setname_np(pthread_self(), thread->name);
    void (*const body)(void *user) = thread->body;
    void *user = thread->user;
    if (thread->detached)
        free(thread);
    body(user);
    return NULL;
}

static int create(struct os_thread *thread, pthread_t *handle, bool elsewhere)
{
    pthread_attr_t attributes;
    int system = pthread_attr_init(&attributes);
    if (system)
        return system;
    (void)pthread_attr_setdetachstate(&attributes,
                                      thread->detached ? PTHREAD_CREATE_DETACHED : PTHREAD_CREATE_JOINABLE);
    thread->elsewhere = elsewhere && start_elsewhere(thread, &attributes);
    system = pthread_create(handle, &attributes, thread_main, thread);
    (void)pthread_attr_destroy(&attributes);
    return system;
}

static int start(struct os_thread **thread, const char *name, void (*body)(void *user), void *user, bool detached)
{
    assert(name && body);
    *thread = NULL;
    struct os_thread *started = calloc(1, sizeof *started);
    if (!started)
        return ENOMEM;
    started->body = body;
    started->user = user;
    started->detached = detached;
    (void)snprintf(started->name, sizeof started->name, "%s", name);
    /* A thread inherits the signal mask of the thread that starts it. A blocked signal of a fault would end the process
     * without the program's handler. */
    static const int faults[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&blocked, faults[i]);
    int system = pthread_sigmask(SIG_SETMASK, &blocked, &before);
    pthread_t handle;
    if (!system) {
        system = create(started, &handle, true);
        if (system && started->elsewhere) /* a program may be forbidden to say where its threads run */
            system = create(started, &handle, false);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    if (system) {
        free(started);
        return system;
    }
    if (detached)
        return 0;
    started->handle = handle;
    *thread = started;
    return 0;
}

int os_thread_start(struct os_thread **thread, const char *name, void (*body)(void *user), void *user)
{
    return start(thread, name, body, user, false);
}

struct os_thread *os_thread_beside(bool apart, const char *name, void (*body)(void *user), void *user)
{
    struct os_thread *thread;
    if (apart && os_processors() > 1 && !start(&thread, name, body, user, false))
        return thread;
    body(user);
    return NULL;
}

int os_thread_start_detached(const char *name, void (*body)(void *user), void *user)
{
    struct os_thread *unused;
    return start(&unused, name, body, user, true);
}

void os_thread_join(struct os_thread *thread)
{
    if (!thread)
        return;
    (void)pthread_join(thread->handle, NULL);
    free(thread);
}

struct shared_call {
    struct os_thread *thread;
    void (*body)(void *user, uint32_t number);
    void *user;
    uint32_t number;
};

static void call_shared(void *user)
{
    const struct shared_call *call = user;
    call->body(call->user, call->number);
}

void os_threads_share(const char *name, uint32_t count, void (*body)(void *user, uint32_t number), void *user)
{
    struct shared_call *calls = count > 1 ? calloc(count, sizeof *calls) : NULL;
    uint32_t started = 1;
    for (; calls && started < count; started++) {
        struct shared_call *call = &calls[started];
        *call = (struct shared_call){.body = body, .user = user, .number = started};
        if (os_thread_start(&call->thread, name, call_shared, call))
            break;
    }
    body(user, 0);
    for (uint32_t i = 1; calls && i < started; i++)
        os_thread_join(calls[i].thread);
    free(calls);
}

struct os_mutex {
    pthread_mutex_t handle;
};

int os_mutex_new(struct os_mutex **mutex)
{
    *mutex = malloc(sizeof **mutex);
    if (!*mutex)
        return ENOMEM;
    int system = pthread_mutex_init(&(*mutex)->handle, NULL);
    if (system) {
        free(*mutex);
        *mutex = NULL;
    }
    return system;
}

void os_mutex_free(struct os_mutex *mutex)
{
    if (!mutex)
        return;
    (void)pthread_mutex_destroy(&mutex->handle);
    free(mutex);
}

void os_mutex_lock(struct os_mutex *mutex)
{
    (void)pthread_mutex_lock(&mutex->handle);
}

void os_mutex_unlock(struct os_mutex *mutex)
{
    (void)pthread_mutex_unlock(&mutex->handle);
}

uint64_t os_mappings_limit(void)
{
    static uint64_t known; /* accessed atomically */
    uint64_t limit = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (limit)
        return limit;
    char text[32] = "";
    const int fd = open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
    const ssize_t count = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    os_close(fd);
    limit = count > 0 ? strtoull(text, NULL, 10) : 0;
    limit = limit ? limit : 65530; /* the kernel's default */
    __atomic_store_n(&known, limit, __ATOMIC_RELAXED);
    return limit;
}

static pthread_mutex_t process_mutex = PTHREAD_MUTEX_INITIALIZER;

void os_process_unlock(void)
{
    (void)pthread_mutex_unlock(&process_mutex);
}

static void process_mutex_lock(void)
{
    (void)pthread_mutex_lock(&process_mutex);
}

static void fork_begin(void)
{
    process_mutex_lock();
    errors_hold();
}

static void fork_end(void)
{
    errors_release();
    os_process_unlock();
}

static uint32_t process_id; /* 0: unknown; accessed atomically */
static bool forks_are_seen;

static void fork_end_in_child(void)
{
    __atomic_store_n(&process_id, 0, __ATOMIC_RELAXED);
    fork_end();
}

static void forks_prepare(void)
{
    forks_are_seen = !pthread_atfork(fork_begin, fork_end, fork_end_in_child);
}

static void forks_see(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, forks_prepare);
}

void os_process_lock(void)
{
    forks_see();
    process_mutex_lock();
}

uint32_t os_process_id(void)
{
    uint32_t id = __atomic_load_n(&process_id, __ATOMIC_RELAXED);
    if (id)
        return id;
    forks_see();
    id = (uint32_t)getpid();
    if (forks_are_seen)
        __atomic_store_n(&process_id, id, __ATOMIC_RELAXED);
    return id;
}

struct os_condition {
    pthread_cond_t handle;
};

int os_condition_new(struct os_condition **condition)
{
    *condition = malloc(sizeof **condition);
    if (!*condition)
        return ENOMEM;
    pthread_condattr_t attributes;
    int system = pthread_condattr_init(&attributes);
    if (!system) {
        (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        system = pthread_cond_init(&(*condition)->handle, &attributes);
        (void)pthread_condattr_destroy(&attributes);
    }
    if (system) {
        free(*condition);
        *condition = NULL;
    }
    return system;
}

void os_condition_free(struct os_condition *condition)
{
    if (!condition)
        return;
    (void)pthread_cond_destroy(&condition->handle);
    free(condition);
}

void os_condition_wait(struct os_condition *condition, struct os_mutex *mutex)
{
    (void)pthread_cond_wait(&condition->handle, &mutex->handle);
}

bool os_condition_wait_for(struct os_condition *condition, struct os_mutex *mutex, uint64_t ns)
{
    uint64_t until = os_clock_ns() + ns;
    struct timespec when = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
    return pthread_cond_timedwait(&condition->handle, &mutex->handle, &when) == 0;
}

void os_condition_signal(struct os_condition *condition)
{
    (void)pthread_cond_signal(&condition->handle);
}

void os_condition_broadcast(struct os_condition *condition)
{
    (void)pthread_cond_broadcast(&condition->handle);
}

void os_word_wait(const uint32_t *word, uint32_t expected)
{
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

void os_word_wait_for(const uint32_t *word, uint32_t expected, uint64_t ns)
{
    struct timespec limit = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, &limit, NULL, 0);
}

void os_word_wake(const uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void os_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

bool os_head_read(const char *path, void *head, size_t room, size_t *got)
{
    struct os_stat found;
    int fd;
    *got = 0;
    if (os_stat(path, &found) || found.kind != OS_KIND_FILE || os_open(path, OS_READ_NOW, &fd))
        return false;
    const int system = os_pread(fd, head, room, 0, got);
    os_close(fd);
    return !system;
}

/* ---- NUMA: two small files of the kernel and two system calls are enough, so libnuma is not needed ---- */

#define POLICY_PREFERRED 1 /* MPOL_PREFERRED of mbind(2) */
#define NODES_MOST 1024    /* the kernel's own limit */

/* Reads the start of a small text file; "" if it cannot be read. */
static void text_in(const char *path, char *text, size_t capacity)
{
    ssize_t got = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        do
            got = read(fd, text, capacity - 1);
        while (got < 0 && errno == EINTR);
        close(fd);
    }
    text[got > 0 ? got : 0] = '\0';
}

int os_pci_node(unsigned domain, unsigned bus, unsigned device)
{
    char path[96], text[32], *end;
    (void)snprintf(path, sizeof path, "/sys/bus/pci/devices/%04x:%02x:%02x.0/numa_node", domain, bus, device);
    text_in(path, text, sizeof text);
    long node = strtol(text, &end, 10);
    return end == text || node < 0 || node >= NODES_MOST ? -1 : (int)node;
}

void os_memory_prefer_node(void *address, uint64_t bytes, int node)
{
    enum { WORD = 8 * sizeof(unsigned long) };
    unsigned long nodes[NODES_MOST / WORD + 1] = {0};
    if (node < 0 || node >= NODES_MOST)
        return;
    nodes[(unsigned)node / WORD] = 1ul << ((unsigned)node % WORD);
    (void)syscall(SYS_mbind, address, (unsigned long)bytes, POLICY_PREFERRED, nodes, (unsigned long)NODES_MOST, 0);
}

/* Reads a list such as "0-3,8,10-11" and stores those processors that are also in `allowed`. Returns their number. */
static int processors_in(const char *list, const cpu_set_t *allowed, cpu_set_t *found)
{
    CPU_ZERO(found);
    for (char *end; *list >= '0' && *list <= '9'; list = *end == ',' ? end + 1 : end) {
        unsigned long first = strtoul(list, &end, 10), last = first;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        for (unsigned long i = first; i <= last && i < CPU_SETSIZE; i++)
            if (CPU_ISSET(i, allowed))
                CPU_SET(i, found);
    }
    return CPU_COUNT(found);
}

void os_thread_prefer_node(int node)
{
    char path[64], list[4096];
    cpu_set_t allowed, near;
    if (node < 0)
        return;
    (void)snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", node);
    text_in(path, list, sizeof list);
    if (sched_getaffinity(0, sizeof allowed, &allowed) || !processors_in(list, &allowed, &near))
        return;
    (void)sched_setaffinity(0, sizeof near, &near);
}
