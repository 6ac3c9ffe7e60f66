/* SPDX-License-Identifier: MIT */
/*
 * streams.c - streams and events of the emulated driver. software.h explains how their order is determined.
 *
 * The thread of a stream starts with its first operation and ends when the stream is destroyed and empty. While its
 * queue is empty it sleeps for up to 5 ms, and a new operation does not wake it: enqueueing then makes no system call,
 * and the stream is late. A thread that waits for a stream wakes all of them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "software.h"

#define NAP_LEAST_US 50
#define NAP_MOST_US 5000

pthread_mutex_t big = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t progress = PTHREAD_COND_INITIALIZER; /* an operation has finished, or a hold has changed */
static unsigned progress_waiters;
bool all_held;
CUstream all_streams;         /* streams that are not both destroyed and empty */
static CUstream past_streams; /* all others, because events may still point to them */
static struct operation *spare;
static uint64_t column_numbers[COLUMNS]; /* the last number that was assigned in each column */
static bool column_taken[COLUMNS];
unsigned columns_used;

#define EVENT_BUCKETS 4096
#define EVENT_GRAVES 1024
static CUevent event_buckets[EVENT_BUCKETS];

static CUevent *bucket_of(const struct CUevent_st *event)
{
    return &event_buckets[(uintptr_t)event / 64 % EVENT_BUCKETS];
}

static double now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void pause_us(uint64_t us)
{
    struct timespec span = {(time_t)(us / 1000000), (long)(us % 1000000 * 1000)};
    if (us)
        (void)nanosleep(&span, NULL);
}

void clock_join(uint64_t *into, const uint64_t *from)
{
    for (unsigned i = 0; i < columns_used; i++)
        into[i] = from[i] > into[i] ? from[i] : into[i];
}

/* ---- waiting ---- */

/* Waits until something has happened or 5 ms have passed. The lock is held by the caller. */
static void wait_for_progress(void)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 5000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    progress_waiters++;
    (void)pthread_cond_timedwait(&progress, &big, &until);
    progress_waiters--;
}

static void nap(CUstream stream, unsigned us)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)us * 1000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    stream->asleep = true;
    (void)pthread_cond_timedwait(&stream->wake, &big, &until);
    stream->asleep = false;
}

void wake_sleepers(void)
{
    for (CUstream stream = all_streams; stream; stream = stream->next)
        if (stream->asleep && stream->first)
            (void)pthread_cond_signal(&stream->wake);
}

bool is_over(CUstream stream, uint64_t number)
{
    return stream->completed >= number;
}

/* Allows a lazy stream to begin operations up to this number. */
static void mark_wanted(CUstream stream, uint64_t number)
{
    if (stream->wanted >= number)
        return;
    stream->wanted = number;
    if (configuration.lazy)
        (void)pthread_cond_broadcast(&progress);
}

void await_over(CUstream stream, uint64_t number)
{
    mark_wanted(stream, number);
    while (!is_over(stream, number)) {
        wake_sleepers();
        wait_for_progress();
    }
}

static bool is_held(CUstream stream)
{
    return all_held || stream->held ||
           (configuration.lazy && !stream->destroyed && stream->first->number > stream->wanted);
}

/* Returns whether an operation is a wait for something that has not happened yet, and marks that as wanted. The lock is
 * held by the caller. */
static bool must_wait(CUstream stream, const struct operation *operation)
{
    if (operation->kind != OPERATION_WAIT || stream->context->failed || is_over(operation->on, operation->on_number))
        return false;
    mark_wanted(operation->on, operation->on_number);
    wake_sleepers();
    return true;
}

void cuda_software_hold(int held)
{
    pthread_mutex_lock(&big);
    all_held = held != 0;
    (void)pthread_cond_broadcast(&progress);
    pthread_mutex_unlock(&big);
}

void cuda_software_hold_stream(CUstream handle, int held)
{
    pthread_mutex_lock(&big);
    CUstream stream = stream_of(handle, "cuda_software_hold_stream");
    if (stream)
        stream->held = held != 0;
    (void)pthread_cond_broadcast(&progress);
    pthread_mutex_unlock(&big);
}

/* ---- the thread of a stream ---- */

/* Copies pieces of 1 to 1,000 bytes, beginning at a random one, with pauses between them. Returns the checksum of the
 * bytes that were read. */
static uint64_t copy_in_pieces(CUstream stream, const struct operation *operation, uint64_t longest_us)
{
    uint64_t bytes = operation->bytes, start = random_next(&stream->random) % bytes, done = 0, sum = 0;
    while (done < bytes) {
        uint64_t at = (start + done) % bytes, piece = 1 + random_next(&stream->random) % (longest_us ? 1000 : bytes);
        piece = piece < bytes - at ? piece : bytes - at;
        piece = piece < bytes - done ? piece : bytes - done;
        if (operation->checked)
            sum += range_sum(operation->from + at, at, piece);
        memcpy(operation->into + at, operation->from + at, piece);
        done += piece;
        if (longest_us && random_next(&stream->random) % 64 == 0)
            pause_us(random_next(&stream->random) % (longest_us / 2 + 1));
    }
    return sum;
}

static uint64_t memory_of(uint64_t address)
{
    struct region *region = address ? region_of(address, 1) : NULL;
    return region ? (uint64_t)(uintptr_t)region_memory(region, address) : address;
}

/* The lock is not held. */
static void carry_out(CUstream stream, struct operation *operation, uint64_t longest)
{
    uint64_t sum = operation->checked_sum;
    if (longest && random_next(&stream->random) % 2)
        pause_us(random_next(&stream->random) % longest);
    if (operation->kind == OPERATION_COPY)
        sum = copy_in_pieces(stream, operation, longest);
    else if (operation->kind == OPERATION_SET)
        memset(operation->into, operation->value, operation->bytes);
    else if (operation->kind == OPERATION_LAUNCH)
        operation->kernel->run(operation->arguments, operation->grid, operation->block);
    if (operation->kind == OPERATION_LAUNCH && operation->checked)
        sum = range_sum(operation->checked, 0, operation->checked_bytes);
    if (operation->checked && sum != operation->checked_sum) {
        pthread_mutex_lock(&big);
        violation("host memory that a %s reads has changed between the call and the %s",
                  operation->kind == OPERATION_COPY ? "copy" : "kernel",
                  operation->kind == OPERATION_COPY ? "copy" : "launch");
        pthread_mutex_unlock(&big);
    }
}

/* The lock is held by the caller and released while the operation is executed. */
static void perform(CUstream stream, struct operation *operation)
{
    bool void_ = stream->context->failed != 0;
    for (unsigned i = 0; i < operation->region_count; i++)
        void_ |= operation->regions[i]->freed;
    if (operation->fails && !stream->context->failed)
        stream->context->failed = operation->fails;
    if (operation->kind == OPERATION_RECORD) {
        operation->event->pending--;
        if (operation->event->stream == stream && operation->event->number == operation->number)
            operation->event->time_ms = now_ms();
        return;
    }
    if (void_ || operation->fails || operation->kind == OPERATION_WAIT)
        return;
    if (operation->kind == OPERATION_LAUNCH)
        operation->kernel->translate(operation->arguments, memory_of);
    uint64_t longest = configuration.delay_us * stream->pace / 4;
    stream->busy = true;
    pthread_mutex_unlock(&big);
    carry_out(stream, operation, longest);
    pthread_mutex_lock(&big);
    CUresult fault = operation->kind == OPERATION_LAUNCH && operation->kernel->fault ? operation->kernel->fault() : 0;
    if (fault) {
        violation("%s accesses memory at an address that is not a multiple of the access", operation->kernel->name);
        stream->context->failed = fault;
    }
    stream->busy = false;
    counted.launches += operation->kind == OPERATION_LAUNCH;
    counted.copies += operation->kind == OPERATION_COPY;
    counted.copied_bytes += operation->kind == OPERATION_COPY ? operation->bytes : 0;
}

static void finish(CUstream stream, struct operation *operation)
{
    stream->first = operation->next;
    if (!stream->first)
        stream->last = NULL;
    stream->completed = operation->number;
    free(operation->snapshot);
    operation->next = spare;
    spare = operation;
    if (progress_waiters)
        (void)pthread_cond_broadcast(&progress);
}

static void retire(CUstream stream);

static void *work(void *user)
{
    CUstream stream = user;
    unsigned nap_us = NAP_LEAST_US;
    (void)prctl(PR_SET_TIMERSLACK, 1000ul);
    pthread_mutex_lock(&big);
    while (stream->first || !stream->destroyed) {
        struct operation *operation = stream->first;
        if (!operation) {
            nap(stream, nap_us);
            nap_us = nap_us * 2 < NAP_MOST_US ? nap_us * 2 : NAP_MOST_US;
        } else if (is_held(stream) || must_wait(stream, operation)) {
            wait_for_progress();
        } else {
            nap_us = NAP_LEAST_US;
            perform(stream, operation);
            finish(stream, operation);
        }
    }
    retire(stream);
    pthread_mutex_unlock(&big);
    return NULL;
}

/* ---- functions that are called with the lock held ---- */

CUstream stream_new(CUcontext context, unsigned flags, int priority, bool own)
{
    unsigned column = 0;
    while (column < COLUMNS && column_taken[column])
        column++;
    CUstream stream = column < COLUMNS ? calloc(1, sizeof *stream) : NULL;
    if (!stream)
        return NULL;
    column_taken[column] = true;
    columns_used = column < columns_used ? columns_used : column + 1;
    *stream =
        (struct CUstream_st){.context = context, .flags = flags, .priority = priority, .own = own, .column = column};
    stream->issued = stream->completed = stream->clock[column] = column_numbers[column];
    stream->random = configuration.seed * 1000003 + column_numbers[column] * 31 + column;
    stream->pace = (unsigned)(random_next(&stream->random) % 9);
    (void)pthread_cond_init(&stream->wake, NULL);
    stream->next = all_streams;
    all_streams = stream;
    return stream;
}

static __thread unsigned long long asked; /* see context_asked() */

void context_asked(unsigned long long id)
{
    asked = id;
}

/* Reports the use of a handle that does not exist any more. */
static void gone(unsigned long long lost, const char *what, const char *kind)
{
    if (lost && lost == asked)
        return;
    violation(lost ? "%s uses %s of a context that was reset: the handle dangles, and what happens is undefined"
                   : "%s uses %s that was destroyed",
              what, kind);
}

/* ---- the default stream of each thread, handle 2 ---- */

static __thread struct own {
    CUstream stream;
    unsigned long long context_id; /* of the stream's context when the stream was made */
} own_streams[DEVICES_MOST];
static pthread_key_t own_key;

/* At the end of a thread. */
static void own_streams_end(void *array)
{
    struct own *own = array;
    pthread_mutex_lock(&big);
    for (unsigned i = 0; i < DEVICES_MOST; i++)
        if (own[i].stream && !own[i].stream->destroyed)
            stream_end(own[i].stream);
    pthread_mutex_unlock(&big);
}

static void make_own_key(void)
{
    (void)pthread_key_create(&own_key, own_streams_end);
}

static CUstream own_stream(CUcontext context)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct own *own = &own_streams[context->device];
    (void)pthread_once(&once, make_own_key);
    if (own->stream && own->context_id == context->id)
        return own->stream;
    own->stream = stream_new(context, CU_STREAM_DEFAULT, 0, true);
    own->context_id = context->id;
    (void)pthread_setspecific(own_key, own_streams);
    return own->stream;
}

bool is_stuck(CUcontext context)
{
    for (CUstream stream = all_streams; stream; stream = stream->next)
        if (stream->context == context && stream->first && (stream->held || all_held))
            return true;
    return false;
}

void streams_lost(CUcontext context, bool own)
{
    for (CUstream stream = all_streams, next; stream; stream = next) {
        next = stream->next;
        if (stream->context != context || stream->own != own || stream->destroyed)
            continue;
        counted.streams -= !own;
        stream->lost = own ? 0 : context->id;
        stream_end(stream);
    }
    for (unsigned i = 0; i < EVENT_BUCKETS && !own; i++) {
        for (CUevent event = event_buckets[i]; event; event = event->next) {
            if (event->context != context || event->destroyed)
                continue;
            event->lost = context->id;
            event->destroyed = true;
            counted.events--;
            counted.blocking_events -= (event->flags & CU_EVENT_BLOCKING_SYNC) != 0;
        }
    }
    if (own)
        context->legacy = NULL;
}

CUstream stream_of(CUstream handle, const char *what)
{
    if (handle == NULL || handle == CU_STREAM_LEGACY)
        return current_context ? current_context->legacy : NULL;
    if (handle == CU_STREAM_PER_THREAD)
        return current_context && !current_handle->green ? own_stream(current_context) : NULL;
    for (CUstream stream = all_streams; stream; stream = stream->next) {
        if (stream != handle || stream->own)
            continue;
        if (stream->destroyed)
            gone(stream->lost, what, "a stream");
        return stream->destroyed ? NULL : stream;
    }
    for (CUstream stream = past_streams; stream; stream = stream->next) {
        if (stream == handle) {
            gone(stream->lost, what, "a stream");
            return NULL;
        }
    }
    violation("%s uses %p, which is not a stream", what, (void *)handle);
    return NULL;
}

static void retire(CUstream stream)
{
    CUstream *at = &all_streams;
    while (*at != stream)
        at = &(*at)->next;
    *at = stream->next;
    stream->next = past_streams;
    past_streams = stream;
    column_taken[stream->column] = false;
}

/* Operations in its queue are still executed. */
void stream_end(CUstream stream)
{
    stream->destroyed = true;
    if (!stream->started)
        retire(stream);
    else if (stream->asleep)
        (void)pthread_cond_signal(&stream->wake);
}

/* ---- events ---- */

CUevent event_new(CUcontext context, unsigned flags)
{
    CUevent event = calloc(1, sizeof *event);
    if (!event)
        return NULL;
    event->context = context;
    event->flags = flags;
    CUevent *bucket = bucket_of(event);
    event->next = *bucket;
    *bucket = event;
    return event;
}

void event_end(CUevent event)
{
    static CUevent
        buried[EVENT_GRAVES]; /* a ring of destroyed events, so that the use of their handles is recognized */
    static unsigned next;
    event->destroyed = true;
    CUevent oldest = buried[next];
    if (oldest && oldest->pending)
        return; /* `event` is then never freed: a small leak is better than a missed record */
    buried[next] = event;
    next = (next + 1) % EVENT_GRAVES;
    if (!oldest)
        return;
    CUevent *at = bucket_of(oldest);
    while (*at != oldest)
        at = &(*at)->next;
    *at = oldest->next;
    free(oldest);
}

CUevent event_of(CUevent handle, const char *what)
{
    for (CUevent event = *bucket_of(handle); event; event = event->next) {
        if (event != handle)
            continue;
        if (event->destroyed)
            gone(event->lost, what, "an event");
        return event->destroyed ? NULL : event;
    }
    violation("%s uses %p, which is not an event", what, (void *)handle);
    return NULL;
}

/* ---- operations ---- */

struct operation *operation_new(enum operation_kind kind)
{
    struct operation *operation = spare;
    if (operation)
        spare = operation->next;
    else
        operation = malloc(sizeof *operation);
    if (!operation)
        abort();
    memset(operation, 0, sizeof *operation);
    operation->kind = kind;
    return operation;
}

static void start(CUstream stream)
{
    pthread_attr_t attributes;
    pthread_t thread;
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)pthread_attr_setstacksize(&attributes, 1 << 20);
    if (pthread_create(&thread, &attributes, work, stream))
        abort();
    (void)pthread_attr_destroy(&attributes);
    stream->started = true;
}

void stream_issue(CUstream stream, struct operation *operation)
{
    operation->number = ++stream->issued;
    column_numbers[stream->column] = stream->issued;
    stream->clock[stream->column] = stream->issued;
    if (stream->last)
        stream->last->next = operation;
    else
        stream->first = operation;
    stream->last = operation;
    if (!stream->started)
        start(stream);
}

void stream_wait_for(CUstream stream, CUstream on, uint64_t number, const uint64_t *clock)
{
    clock_join(stream->clock, clock);
    if (on == stream)
        return;
    struct operation *operation = operation_new(OPERATION_WAIT);
    operation->on = on;
    operation->on_number = number;
    stream_issue(stream, operation);
}

void stream_begin(CUstream stream)
{
    CUstream legacy = stream->context->legacy;
    clock_join(stream->clock, host_clock);
    if (stream->flags & CU_STREAM_NON_BLOCKING)
        return;
    if (stream != legacy) {
        if (!is_over(legacy, legacy->issued))
            stream_wait_for(stream, legacy, legacy->issued, legacy->clock);
        clock_join(stream->clock, legacy->clock);
        return;
    }
    for (CUstream other = all_streams; other; other = other->next) {
        if (other == stream || other->context != stream->context || (other->flags & CU_STREAM_NON_BLOCKING))
            continue;
        if (!is_over(other, other->issued))
            stream_wait_for(stream, other, other->issued, other->clock);
        clock_join(stream->clock, other->clock);
    }
}
