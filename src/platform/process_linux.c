/* SPDX-License-Identifier: MIT */
/*
 * process_linux.c - process.h for Linux.
 *
 * The obvious way to catch a signal is a handler that sets a flag, and it loses signals. A signal that arrives after
 * the program has checked the flag and before its read() blocks ends nothing. Neither does one that the kernel delivers
 * to another thread than the one that waits. And sanitizers postpone handlers in threads that wait for a lock.
 *
 * So there is no handler. The signals are blocked in every thread, and one thread, the watcher, does nothing but wait
 * for them. The first signal is stored in `state`, and the watcher makes an eventfd readable, which then stays
 * readable. Every wait that could be long polls this eventfd beside its own descriptor (os_wake_set), so it does not
 * matter whether the wait or the signal comes first.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "process.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os.h"

/* ---- signals ---- */

#define RELEASED (-1)
/* timeout(1), and a shell whose terminal closes, send the same signal twice: to the process and to its group. */
#define SAME_NS 500000000u

static struct os_thread *watcher;
static sigset_t watched; /* the signals that the watcher waits for; all threads block them */
static sigset_t before;  /* the signal mask with which this program started; children get it */
static int state;        /* 0, the signal that has come, or RELEASED if the next one ends the process */
/* Set before a signal ends the process. If that signal reaches the watcher first, because an emulator delivers it to
 * all threads, the watcher must not ignore it. */
static int dying;

/* Returns true if the parent sent a signal. The terminal and other processes are other senders. */
static bool from_parent(const siginfo_t *info)
{
    return info->si_code == SI_USER && info->si_pid == getppid();
}

static void watch(void *unused)
{
    uint64_t first_ns = 0;
    bool parent_has = false;
    for (;;) {
        siginfo_t info = {0};
        const int number = sigwaitinfo(&watched, &info);
        int before_it = 0;
        if (number < 0)
            continue;
        if (__atomic_compare_exchange_n(&state, &before_it, number, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
            first_ns = os_clock_ns();
            parent_has = from_parent(&info);
            (void)eventfd_write(os_wake(), 1);
        } else if (before_it == number && !parent_has && from_parent(&info)) {
            parent_has = true; /* it passes on what a terminal has sent to both */
        } else if (before_it != number || os_clock_ns() - first_ns >= SAME_NS ||
                   __atomic_load_n(&dying, __ATOMIC_SEQ_CST)) {
            os_signal_die(number);
        }
    }
}

void os_signals_catch(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action;
    if (watcher)
        return;
    sigemptyset(&watched);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (!sigaction(numbers[i], NULL, &action) && action.sa_handler != SIG_IGN)
            sigaddset(&watched, numbers[i]);
    const int made = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (made < 0)
        return;
    (void)pthread_sigmask(SIG_BLOCK, &watched, &before);
    os_wake_set(made);
    if (os_thread_start(&watcher, "tokmap-signals", watch, NULL)) {
        os_wake_set(-1);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
        close(made);
    }
}

int os_signal_caught(void)
{
    const int found = __atomic_load_n(&state, __ATOMIC_SEQ_CST);
    return found == RELEASED ? 0 : found;
}

int os_signals_release(void)
{
    int found = 0;
    (void)__atomic_compare_exchange_n(&state, &found, RELEASED, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return found == RELEASED ? 0 : found;
}

void os_signal_die(int signal_number)
{
    sigset_t one;
    __atomic_store_n(&dying, 1, __ATOMIC_SEQ_CST);
    (void)signal(signal_number, SIG_DFL);
    sigemptyset(&one);
    sigaddset(&one, signal_number);
    (void)pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    (void)raise(signal_number);
    _exit(128 + signal_number);
}

void os_file_limit_reported(void)
{
    (void)signal(SIGXFSZ, SIG_IGN);
}

void os_files_raise(void)
{
    struct rlimit limit;
    if (!getrlimit(RLIMIT_NOFILE, &limit)) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

void os_memory_returned(void)
{
#ifdef M_MMAP_THRESHOLD
    (void)mallopt(M_MMAP_THRESHOLD, 4 << 20);
#endif
}

void os_pipe_broken(void)
{
    (void)raise(SIGPIPE);
}

/* ---- other programs ---- */

/* input, output, errors: become the child's standard input, output, and error; -1: the child keeps ours. */
static int spawn(pid_t *id, const char *path, const posix_spawnattr_t *attributes, const char *const *arguments,
                 int input, int output, int errors)
{
    extern char **environ;
    posix_spawn_file_actions_t actions;
    int system = posix_spawn_file_actions_init(&actions);
    if (system)
        return system;
    if (input >= 0)
        system = posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    if (!system && output >= 0)
        system = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    if (!system && errors >= 0)
        system = posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
    if (!system) /* posix_spawn only reads the arguments, although its type does not say so */
        system = posix_spawn(id, path, &actions, attributes, (char *const *)(uintptr_t)arguments, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    return system;
}

static int child_start(struct os_child *child, const char *path, const char *const *arguments, bool read_output,
                       int input, int errors)
{
    int ends[2] = {-1, -1};
    pid_t id = 0;
    assert(path && arguments && arguments[0]);
    memset(child, 0, sizeof *child);
    child->output = -1;
    if (read_output && pipe2(ends, O_CLOEXEC))
        return errno;
    posix_spawnattr_t attributes;
    int system = posix_spawnattr_init(&attributes);
    if (!system) {
        if (watcher) {
            (void)posix_spawnattr_setsigmask(&attributes, &before);
            (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
        }
        system = spawn(&id, path, &attributes, arguments, input, ends[1], errors);
        (void)posix_spawnattr_destroy(&attributes);
    }
    if (read_output)
        close(ends[1]);
    if (system) {
        if (read_output)
            close(ends[0]);
        return system;
    }
    child->id = id;
    child->output = ends[0];
    return 0;
}

int os_child_start(struct os_child *child, const char *path, const char *const *arguments, bool read_output)
{
    return child_start(child, path, arguments, read_output, -1, -1);
}

int os_child_start_logged(struct os_child *child, const char *path, const char *const *arguments, int errors)
{
    assert(errors >= 0);
    return child_start(child, path, arguments, true, -1, errors);
}

int os_child_start_reading(struct os_child *child, const char *path, const char *const *arguments, bool read_output,
                           int input)
{
    assert(input >= 0);
    return child_start(child, path, arguments, read_output, input, -1);
}

void os_child_stop(const struct os_child *child)
{
    (void)kill((pid_t)child->id, SIGTERM);
}

void os_child_end(const struct os_child *child, uint64_t ns)
{
    const uint64_t started = os_clock_ns();
    os_child_stop(child);
    for (;;) {
        siginfo_t ended;
        memset(&ended, 0, sizeof ended);
        if (waitid(P_PID, (id_t)child->id, &ended, WEXITED | WNOHANG | WNOWAIT) || ended.si_pid)
            return;
        if (os_clock_ns() - started >= ns)
            break;
        (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    (void)kill((pid_t)child->id, SIGKILL);
}

/* Waits until the child has ended, without reaping it. EINTR if a signal is caught before. */
static int child_await(pid_t id)
{
    const int fd = (int)syscall(SYS_pidfd_open, id, 0u);
    if (fd >= 0) {
        const int system = os_wait_readable(fd, UINT64_MAX);
        close(fd);
        return system;
    }
    /* Linux before 5.3 and some sandboxes have no pidfd_open(): poll. */
    for (;;) {
        siginfo_t ended;
        memset(&ended, 0, sizeof ended);
        if (waitid(P_PID, (id_t)id, &ended, WEXITED | WNOHANG | WNOWAIT) || ended.si_pid)
            return 0; /* the child has ended, or wait4() reports the error */
        const int system = os_wait_readable(-1, 10000000);
        if (system != ETIMEDOUT)
            return system;
    }
}

int os_child_wait(struct os_child *child, int *exit_status)
{
    int status;
    pid_t found;
    struct rusage usage;
    assert(child->id > 0);
    memset(&usage, 0, sizeof usage);
    if (watcher && !child->signal_reported && child_await((pid_t)child->id) == EINTR) {
        child->signal_reported = true;
        return EINTR;
    }
    found = (pid_t)TEMP_FAILURE_RETRY(wait4((pid_t)child->id, &status, 0, &usage));
    child->peak_bytes = (uint64_t)usage.ru_maxrss * 1024;
    child->cpu_ns = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000u +
                    (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000u;
    int system = found < 0 ? errno : 0;
    if (child->output >= 0)
        close(child->output);
    child->output = -1;
    if (!system)
        *exit_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return system;
}

int os_program_become(const char *const *arguments)
{
    (void)execvp(arguments[0], (char *const *)(uintptr_t)arguments);
    return errno;
}

int os_program_path(char *path, size_t capacity)
{
    ssize_t length = readlink("/proc/self/exe", path, capacity);
    if (length < 0)
        return errno;
    if ((size_t)length >= capacity)
        return ENAMETOOLONG;
    path[length] = '\0';
    return 0;
}

int os_drop_all_caches(void)
{
    sync();
    int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    int system = write(fd, "3\n", 2) == 2 ? 0 : errno;
    close(fd);
    return system;
}
