/*
 * streams.c - streams and events of the emulated driver. See software.h for how their order is known.
 *
 * A stream's thread starts with its first operation and ends when the stream is destroyed and empty. While it has
 * nothing to do it naps, at most 5 ms, and nobody wakes it for a new operation: a call that enqueues costs no system
 * call, and the stream is late. Whoever waits for a stream wakes all of them.
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
pthread_cond_t progress = PTHREAD_COND_INITIALIZER; /* something was done, held, or released */
static unsigned progress_waiters;
bool all_held;
CUstream all_streams;          /* that are not destroyed and empty; */
static CUstream past_streams; /* the others: events may still point to them */
static struct operation *spare;
static uint64_t place_numbers[PLACES]; /* the last number given in each place */
static bool place_taken[PLACES];
unsigned places_used;

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
    for (unsigned i = 0; i < places_used; i++)
        into[i] = from[i] > into[i] ? from[i] : into[i];
}

/* ---- waiting ---- */

/* With the lock: until something has happened, or 5 ms have passed. */
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

void nudge(void)
{
    for (CUstream stream = all_streams; stream; stream = stream->next)
        if (stream->asleep && stream->first)
            (void)pthread_cond_signal(&stream->wake);
}

bool is_over(CUstream stream, uint64_t number)
{
    return stream->completed >= number;
}

/* What a lazy stream may begin. */
static void want(CUstream stream, uint64_t number)
{
    if (stream->wanted >= number)
        return;
    stream->wanted = number;
    if (configuration.lazy)
        (void)pthread_cond_broadcast(&progress);
}

void await_over(CUstream stream, uint64_t number)
{
    want(stream, number);
    while (!is_over(stream, number)) {
        nudge();
        wait_for_progress();
    }
}

static bool is_held(CUstream stream)
{
    return all_held || stream->held ||
           (configuration.lazy && !stream->destroyed && stream->first->number > stream->wanted);
}

/* With the lock: whether what a stream waits for has yet to happen; that is wanted then. */
static bool must_wait(CUstream stream, const struct operation *operation)
{
    if (operation->kind != OPERATION_WAIT || stream->context->failed || is_over(operation->on, operation->on_number))
        return false;
    want(operation->on, operation->on_number);
    nudge();
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

/* ---- a stream's thread ---- */

/* Copies in pieces of 1 to some 1000 bytes, beginning anywhere, with pauses between. Returns the sum of what was
 * read. */
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

/* Without the lock. */
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
                  operation->kind == OPERATION_COPY ? "copy" : "kernel", operation->kind == OPERATION_COPY ? "copy" : "launch");
        pthread_mutex_unlock(&big);
    }
}

/* With the lock, which is let go of meanwhile. */
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

/* ---- calls, with the lock ---- */

CUstream stream_new(CUcontext context, unsigned flags, int priority, bool own)
{
    unsigned place = 0;
    while (place < PLACES && place_taken[place])
        place++;
    CUstream stream = place < PLACES ? calloc(1, sizeof *stream) : NULL;
    if (!stream)
        return NULL;
    place_taken[place] = true;
    places_used = place < places_used ? places_used : place + 1;
    *stream =
        (struct CUstream_st){.context = context, .flags = flags, .priority = priority, .own = own, .place = place};
    stream->issued = stream->completed = stream->clock[place] = place_numbers[place];
    stream->random = configuration.seed * 1000003 + place_numbers[place] * 31 + place;
    stream->pace = (unsigned)(random_next(&stream->random) % 9);
    (void)pthread_cond_init(&stream->wake, NULL);
    stream->next = all_streams;
    all_streams = stream;
    return stream;
}

CUstream stream_of(CUstream handle, const char *what)
{
    if (handle == NULL || handle == CU_STREAM_LEGACY)
        return current_context ? current_context->legacy : NULL;
    if (handle == CU_STREAM_PER_THREAD)
        return current_context ? current_context->per_thread : NULL;
    for (CUstream stream = all_streams; stream; stream = stream->next) {
        if (stream != handle || stream->own)
            continue;
        if (stream->destroyed)
            violation("%s uses a stream that was destroyed", what);
        return stream->destroyed ? NULL : stream;
    }
    for (CUstream stream = past_streams; stream; stream = stream->next) {
        if (stream == handle) {
            violation("%s uses a stream that was destroyed", what);
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
    place_taken[stream->place] = false;
}

/* The work that it has is still done. */
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
    static CUevent buried[EVENT_GRAVES]; /* a ring: the handle of each is told from one of an event for that long */
    static unsigned next;
    event->destroyed = true;
    CUevent oldest = buried[next];
    if (oldest && oldest->pending)
        return; /* rather a record that stays than one that is missed */
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
            violation("%s uses an event that was destroyed", what);
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
    place_numbers[stream->place] = stream->issued;
    stream->clock[stream->place] = stream->issued;
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
