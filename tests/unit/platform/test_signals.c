/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/* Caught signals: none is lost, whether it arrives before or during a wait, and the second one ends the process. Each
 * case runs in a process of its own, to which the signals are sent. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/os.h"
#include "platform/process.h"
#include "support/scratch.h"

#define GOOD 7 /* the exit status of a case that succeeds */

static char folder[512], fifo[600];

static int folder_make(void **unused)
{
    (void)unused;
    scratch_make(folder);
    (void)snprintf(fifo, sizeof fifo, "%s/fifo", folder);
    return mkfifo(fifo, 0600);
}

static int folder_remove(void **unused)
{
    (void)unused;
    scratch_remove(folder);
    return 0;
}

/* The process of a case. It writes to `ready` once signals may be sent, and reads from `data`. */
struct body {
    int data[2];
    pid_t id;
};

static void begin(struct body *body, void (*run)(int ready, int data))
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(body->data), 0);
    body->id = fork();
    assert_true(body->id >= 0);
    if (!body->id) {
        close(ready[0]);
        close(body->data[1]);
        /* A shell that runs the tests in the background may have made some signals ignored. */
        (void)signal(SIGHUP, SIG_DFL);
        (void)signal(SIGINT, SIG_DFL);
        (void)signal(SIGTERM, SIG_DFL);
        run(ready[1], body->data[0]);
        _exit(1);
    }
    close(ready[1]);
    close(body->data[0]);
    while (read(ready[0], &byte, 1) < 0)
        assert_int_equal(errno, EINTR);
    close(ready[0]);
}

static int end(struct body *body)
{
    int status;
    while (waitpid(body->id, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    close(body->data[1]);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void await_signal(int number)
{
    while (os_signal_caught() != number)
        os_sleep_ns(1000000);
}

static void say(int ready)
{
    if (write(ready, "", 1) != 1)
        _exit(99);
}

/* ---- the cases ---- */

static void before_the_wait(int ready, int data)
{
    char text[16];
    size_t got = 9;
    int fd;
    os_signals_catch();
    (void)kill(getpid(), SIGHUP);
    await_signal(SIGHUP);
    say(ready);
    for (int turn = 0; turn < 3; turn++) {
        if (os_open(fifo, OS_READ, &fd) || os_read(fd, text, sizeof text, &got) != EINTR || got)
            _exit(1);
        os_close(fd);
        if (os_read(data, text, sizeof text, &got) != EINTR || os_wait_readable(data, UINT64_MAX) != EINTR)
            _exit(2);
    }
    _exit(GOOD);
}

struct full {
    int pipe, ready;
};

/* Reports that the pipe is full. */
static void say_when_full(void *user)
{
    const struct full *full = user;
    int before = -1, unread = 0;
    while (unread == 0 || unread != before) {
        before = unread;
        os_sleep_ns(20000000);
        (void)ioctl(full->pipe, FIONREAD, &unread);
    }
    say(full->ready);
}

static void in_a_read(int ready, int data)
{
    char text[16];
    size_t got;
    os_signals_catch();
    say(ready);
    if (os_read(data, text, sizeof text, &got) || got != 5)
        _exit(2);
    _exit(os_read(data, text, sizeof text, &got) == EINTR && os_signal_caught() == SIGTERM ? GOOD : 1);
}

/* Writes to a pipe that nobody reads, and reports to the parent once it is full. */
static void in_a_write(int ready, int data)
{
    static const char text[1 << 16];
    int ends[2], unread, system = 0;
    (void)data;
    os_signals_catch();
    if (pipe(ends))
        _exit(2);
    struct os_thread *watcher;
    struct full full = {ends[0], ready};
    if (os_thread_start(&watcher, "watcher", say_when_full, &full))
        _exit(3);
    while (!system)
        system = os_write_stream(ends[1], text, sizeof text);
    if (system != EINTR || os_signal_caught() != SIGTERM)
        _exit(4);
    /* A stream whose reader still reads gets all of the output. */
    if (os_write_stream(ends[1], text, 1) != EINTR || ioctl(ends[0], FIONREAD, &unread))
        _exit(5);
    for (char back[PIPE_BUF]; unread > 0; unread -= PIPE_BUF)
        if (read(ends[0], back, sizeof back) <= 0)
            _exit(6);
    _exit(os_write_stream(ends[1], text, PIPE_BUF) ? 7 : GOOD);
}

static void in_the_open_of_a_fifo(int ready, int data)
{
    char text[16];
    size_t got;
    int fd;
    os_signals_catch();
    say(ready);
    if (os_open(fifo, OS_READ, &fd))
        _exit(2);
    _exit(os_read(fd, text, sizeof text, &got) == EINTR ? GOOD : 1);
}

static void read_by_a_thread(void *user)
{
    char text[16];
    size_t got;
    int *data = user;
    *data = os_read(*data, text, sizeof text, &got) == EINTR ? -1 : 0;
}

/* The thread that called os_signals_catch() waits for another thread and for a lock; the other one reads. */
static void in_another_thread(int ready, int data)
{
    struct os_thread *reader;
    os_signals_catch();
    if (os_thread_start(&reader, "reader", read_by_a_thread, &data))
        _exit(2);
    say(ready);
    os_thread_join(reader);
    _exit(data == -1 && os_signal_caught() == SIGINT ? GOOD : 1);
}

static void in_a_wait_for_a_child(int ready, int data)
{
    static const char *const arguments[] = {"sleep", "1000", NULL};
    struct os_child child;
    int status = 0;
    os_signals_catch();
    if (os_child_start(&child, "/bin/sleep", arguments, false))
        _exit(2);
    say(ready);
    if (os_child_wait(&child, &status) != EINTR)
        _exit(3);
    os_child_stop(&child); /* the child starts with it unblocked, so it ends the child */
    _exit(os_child_wait(&child, &status) == 0 && status == 128 + SIGTERM ? GOOD : 1);
}

static void for_ever(int ready, int data)
{
    os_signals_catch();
    (void)kill(getpid(), SIGTERM);
    await_signal(SIGTERM);
    say(ready);
    for (;;)
        os_sleep_ns(1000000000);
}

/* A signal that is sent twice, the second time at once, but after the first one has been noticed. */
static void twice(int ready, int data)
{
    sigset_t waiting;
    os_signals_catch();
    (void)kill(getpid(), SIGTERM);
    await_signal(SIGTERM);
    (void)kill(getpid(), SIGTERM);
    do { /* until it was noticed */
        os_sleep_ns(1000000);
        (void)sigpending(&waiting);
    } while (sigismember(&waiting, SIGTERM));
    os_sleep_ns(50000000);
    say(ready);
    _exit(GOOD);
}

/* A signal of somebody else, and later the same one of the parent, which has passed on its own. */
static void passed_on(int ready, int data)
{
    sigset_t waiting;
    char byte;
    os_signals_catch();
    (void)kill(getpid(), SIGINT);
    await_signal(SIGINT);
    os_sleep_ns(600000000);
    say(ready);
    if (read(data, &byte, 1) != 1)
        _exit(2);
    do {
        os_sleep_ns(50000000);
        (void)sigpending(&waiting);
    } while (sigismember(&waiting, SIGINT));
    if (byte == 'e')
        _exit(GOOD);
    (void)kill(getppid(), SIGUSR1);
    for (;;)
        os_sleep_ns(1000000000);
}

static void released(int ready, int data)
{
    os_signals_catch();
    if (os_signals_release() || os_signal_caught())
        _exit(2);
    say(ready);
    for (;;)
        os_sleep_ns(1000000000);
}

static void ignored(int ready, int data)
{
    char text[16];
    size_t got;
    (void)signal(SIGHUP, SIG_IGN);
    os_signals_catch();
    (void)kill(getpid(), SIGHUP);
    say(ready);
    if (os_read(data, text, sizeof text, &got) != EINTR)
        _exit(2);
    _exit(os_signal_caught() == SIGTERM ? GOOD : 1);
}

static void ends_by_itself(int ready, int data)
{
    os_signals_catch();
    (void)kill(getpid(), SIGINT);
    await_signal(SIGINT);
    say(ready);
    os_signal_die(os_signals_release());
}

/* ---- the tests ---- */

static void none_is_lost(void **unused)
{
    static const struct {
        void (*run)(int ready, int data);
        int number;
    } cases[] = {{before_the_wait, 0},        {in_the_open_of_a_fifo, SIGTERM}, {in_the_open_of_a_fifo, SIGINT},
                 {in_another_thread, SIGINT}, {in_a_wait_for_a_child, SIGHUP},  {ignored, SIGTERM},
                 {in_a_write, SIGTERM}};
    (void)unused;
    for (size_t i = 0; i < 3 * sizeof cases / sizeof cases[0]; i++) {
        struct body body;
        begin(&body, cases[i / 3].run);
        if (cases[i / 3].number)
            assert_int_equal(kill(body.id, cases[i / 3].number), 0);
        assert_int_equal(end(&body), GOOD);
    }
}

static void a_read_gets_what_came_before(void **unused)
{
    struct body body;
    (void)unused;
    begin(&body, in_a_read);
    assert_int_equal(write(body.data[1], "bytes", 5), 5);
    int unread;
    do /* until it has them: a signal has priority over data to be read */
        assert_int_equal(ioctl(body.data[1], FIONREAD, &unread), 0);
    while (unread);
    assert_int_equal(kill(body.id, SIGTERM), 0);
    assert_int_equal(end(&body), GOOD);
}

static void the_second_ends_the_process(void **unused)
{
    struct body body;
    (void)unused;
    begin(&body, for_ever);
    assert_int_equal(kill(body.id, SIGINT), 0);
    assert_int_equal(end(&body), 128 + SIGINT);
    begin(&body, released);
    assert_int_equal(kill(body.id, SIGTERM), 0);
    assert_int_equal(end(&body), 128 + SIGTERM);
    begin(&body, ends_by_itself);
    assert_int_equal(end(&body), 128 + SIGINT);
}

static void a_parent_may_pass_it_on(void **unused)
{
    struct body body;
    sigset_t noticed;
    int number;
    (void)unused;
    sigemptyset(&noticed);
    sigaddset(&noticed, SIGUSR1);
    assert_int_equal(sigprocmask(SIG_BLOCK, &noticed, NULL), 0);
    for (int again = 0; again < 2; again++) {
        begin(&body, passed_on);
        assert_int_equal(kill(body.id, SIGINT), 0);
        assert_int_equal(write(body.data[1], again ? "a" : "e", 1), 1);
        if (again) {
            assert_int_equal(sigwait(&noticed, &number), 0);
            assert_int_equal(kill(body.id, SIGINT), 0);
        }
        assert_int_equal(end(&body), again ? 128 + SIGINT : GOOD);
    }
    assert_int_equal(sigprocmask(SIG_UNBLOCK, &noticed, NULL), 0);
}

/* As timeout(1) sends it. A machine that takes half a second between the two gets more attempts. */
static void the_same_at_once_does_not(void **unused)
{
    struct body body;
    int status = 0;
    (void)unused;
    for (int turn = 0; turn < 10 && status != GOOD; turn++) {
        begin(&body, twice);
        status = end(&body);
    }
    assert_int_equal(status, GOOD);
}

/* Later the same signal does end the process, so it is sent until the process has ended. */
static void the_same_later_ends_the_process(void **unused)
{
    struct body body;
    int status;
    pid_t ended;
    (void)unused;
    begin(&body, for_ever);
    while (!(ended = waitpid(body.id, &status, WNOHANG))) {
        assert_int_equal(kill(body.id, SIGTERM), 0);
        os_sleep_ns(20000000);
    }
    close(body.data[1]);
    assert_int_equal(ended, body.id);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(none_is_lost),
        cmocka_unit_test(a_read_gets_what_came_before),
        cmocka_unit_test(the_second_ends_the_process),
        cmocka_unit_test(a_parent_may_pass_it_on),
        cmocka_unit_test(the_same_at_once_does_not),
        cmocka_unit_test(the_same_later_ends_the_process),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
