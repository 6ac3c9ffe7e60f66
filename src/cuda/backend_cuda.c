/* SPDX-License-Identifier: MIT */
/*
 * backend_cuda.c - see backend_cuda.h.
 *
 * The idea. A batch takes three steps: the producer thread gathers tokens into a pinned slot; the GPU's copy engine
 * transfers the slot to its twin in GPU memory; a kernel expands the twin into the caller's tensors. Each step has its
 * own queue: the producer thread, our copy stream, and the consumer's stream, which is the one that the training step
 * runs on. The steps of different batches overlap, and the host waits only if the ring has nothing left to do. Two
 * events per slot put the steps in order:
 *
 *     copied     recorded on the copy stream after slot -> twin. The host waits for it before it fills the slot again,
 *                because a slot that is still being read must not change. The consumer's stream waits for it before it
 *                reads the twin.
 *     expanded   recorded on the consumer's stream after twin -> outputs. The copy stream waits for it before the next
 *                copy into the twin, because a twin that is still being read must not change.
 *
 * An example. Batches A and B go through slots 0 and 1; then batch C uses slot 0 again. Time runs downward, each column
 * is a queue, and a wait in one column is for the record of the same name in another:
 *
 *     producer (host)             copy stream                   consumer's stream
 *     await 0: passes (1)
 *     fill slot 0 with A
 *     copy 0                      wait expanded[0]: passes (1)
 *     await 1: passes (1)         slot 0 -> twin 0
 *     fill slot 1 with B          record copied[0]              next():  wait copied[0]
 *     copy 1                      wait expanded[1]: passes (1)           twin 0 -> outputs: A
 *                                 slot 1 -> twin 1                       record expanded[0]
 *                                 record copied[1]              the trainer's step on A
 *                                                               next():  (the ring gets slot 0 back)
 *     await 0: copied[0]                                                 wait copied[1]
 *     fill slot 0 with C                                                 twin 1 -> outputs: B
 *     copy 0                      wait expanded[0]                       record expanded[1]
 *                                 slot 0 -> twin 0              the trainer's step on B
 *                                 record copied[0]
 *
 * (1) An event that was never recorded counts as completed, so the first round needs no special case.
 *
 * `copied` blocks the thread that waits for it, because the producer does, and must not spin meanwhile. `expanded` does
 * not: only the copy stream waits for it, and a plain event costs the consumer's stream less.
 *
 * A wait for an event is for its latest record at the time of the call. It is always the right one: expand() records
 * `expanded` before the consumer returns the slot to the ring, and copy() of that slot comes after the producer got it
 * from the ring. Where `copied` has completed already when the consumer asks, which is normal, no wait is enqueued.
 *
 * Why not cudaMemcpy, or a copy followed by a synchronization? The host would wait once per batch, so it could not
 * enqueue training steps ahead, and the GPU would be idle between them. Why not a copy from pinned memory without an
 * event, as many training scripts do? Nothing would keep the host from refilling a buffer that is still queued for its
 * copy, and the result would be wrong tokens without any error. Why no call with which the consumer releases a batch?
 * If it came too early or not at all, the result would be wrong tokens, too, or a standstill. Here the outputs belong
 * to the caller, and the order of the caller's own stream says when they are read and written.
 *
 * Failures. If a call fails after work was enqueued, and the event that marks the end of that work could not be
 * recorded, the host waits for the work at once, because nobody could wait for it later.
 *
 * Graph capture. Any thread of the program may be capturing a CUDA graph. cuda_enter() therefore switches our thread to
 * the relaxed capture mode, in which our calls do not invalidate a capture elsewhere. next() on a stream that is
 * capturing is refused: the graph would contain the expansion of one certain batch, and each launch would deliver it
 * again. Outputs may have the same addresses in every call, so a graph can read them, and next() goes between its
 * launches.
 *
 * Without the kernel. If the driver does not accept the kernel, the host expands each batch into one of a few pinned
 * buffers (a bounce), from which every output is copied on the consumer's stream. Slots then have no twins, and copy()
 * does nothing. Each bounce has an event, `sent`, recorded after its copies; the host waits for it before it writes the
 * bounce again.
 */
#include "backend_cuda.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "cuda_device.h"
#include "cuda_kernel.h"
#include "platform/os.h"

/* Rings of at least this many bytes get huge pages: a smaller one does not fill a page. */
#define HUGE_FROM ((uint64_t)2 << 20)
#define BOUNCES 4
#define OUTPUTS 11 /* how many outputs a batch can have */
/* Addresses of an output that are remembered. An allocator that reuses memory alternates between few of them. */
#define OUTPUT_ADDRESSES 4
#define PART_ALIGN 64 /* bytes; the outputs in a bounce begin at multiples of it */

/* Page-locked host memory. */
struct pinned {
    void *memory;
    uint64_t bytes;
    bool registered; /* true: our own mapping, registered with the driver. false: allocated by the driver */
};

/* A buffer for the outputs of one batch that the host has expanded. */
struct bounce {
    uint8_t *memory;
    struct CUevent_st *sent; /* recorded after the copies to the outputs */
};

/* Addresses of an output that are known to be memory of this device. */
struct checked {
    uint64_t addresses[OUTPUT_ADDRESSES];
    uint32_t next; /* the place of the next one, modulo OUTPUT_ADDRESSES */
};

struct backend_cuda {
    struct backend head;
    struct cuda_device device;
    uint64_t context;                 /* the number of its context; 0: unknown */
    int node;                         /* the host's NUMA node near the GPU; -1: unknown */
    bool coherent;                    /* the GPU reads memory of the host as the host does */
    const struct cuda_kernel *kernel; /* NULL: the host expands */
    char reason[CUDA_KERNEL_REASON];  /* reason why the kernel is not used, else "" */
    const struct expand_kernels *host_kernels;
    uint64_t output_bytes; /* most bytes of all outputs of a batch */

    struct pinned slots_memory, bounces_memory;
    uint32_t slots;
    uint64_t slot_bytes;
    uint64_t twins; /* the device's address of slot 0 */
    struct CUstream_st *stream;
    struct CUevent_st **copied, **expanded; /* one of each per slot; both are parts of one array */

    /* used by the consumer alone */
    struct bounce bounces[BOUNCES];
    uint32_t next_bounce;
    struct checked checked[OUTPUTS + BACKEND_COPIES_MOST];
    uint64_t host_expanded, late_copies; /* any thread reads them */
};

static enum tokmap_status call_failed(const struct backend_cuda *cuda, int result, struct tokmap_error *error,
                                      const char *doing)
{
    enum tokmap_status status = result == CUDA_OUT_OF_MEMORY ? TOKMAP_ERROR_MEMORY : TOKMAP_ERROR_DEVICE;
    return cuda_driver_error(cuda->device.driver, status, result, error, doing);
}

/* Makes the loader's context current, as cuda_enter() does. A context that the program has reset is found here, before
 * anything uses what was destroyed with it: handles that dangle, and memory that is no longer page-locked. */
static int enter(const struct backend_cuda *cuda, struct cuda_entered *entered)
{
    if (!cuda_context_exists(&cuda->device, cuda->context))
        return CUDA_CONTEXT_IS_DESTROYED;
    return cuda_enter(&cuda->device, entered);
}

/* ---- memory ---- */

/* Allocates page-locked memory. Our own mapping is the first choice, because we choose its NUMA node, and Linux
 * counts it as memory of the process. Where the driver cannot register it, as in some virtual machines, the driver
 * allocates the memory. */
static enum tokmap_status pin(const struct backend_cuda *cuda, uint64_t bytes, struct pinned *pinned,
                              struct tokmap_error *error)
{
    const struct cuda_driver *driver = cuda->device.driver;
    char doing[200];
    if (!os_memory_new(bytes, bytes >= HUGE_FROM, &pinned->memory)) {
        os_memory_prefer_node(pinned->memory, bytes, cuda->node);
        /* If a child shared a page with us, our next write would move us to a copy, and the GPU would continue to read
         * the old page. */
        if (!os_memory_zero_on_fork(pinned->memory, bytes))
            os_memory_not_in_child(pinned->memory, bytes);
        pinned->bytes = bytes;
        pinned->registered = !driver->host_register(pinned->memory, bytes, CUDA_HOST_PORTABLE);
        if (pinned->registered)
            return TOKMAP_OK;
        os_memory_free(pinned->memory, bytes);
    }
    memset(pinned, 0, sizeof *pinned);
    int result = driver->host_alloc(&pinned->memory, bytes, CUDA_HOST_PORTABLE);
    if (result) {
        pinned->memory = NULL;
        (void)snprintf(doing, sizeof doing,
                       "page-locking %" PRIu64 " bytes of host memory (to need less, lower ring_bytes or rows)", bytes);
        return call_failed(cuda, result, error, doing);
    }
    memset(pinned->memory, 0, bytes);
    pinned->bytes = bytes;
    return TOKMAP_OK;
}

/* lost: the context does not exist any more, and with it neither do the registration and the driver's own memory. */
static void unpin(const struct backend_cuda *cuda, struct pinned *pinned, bool lost)
{
    const struct cuda_driver *driver = cuda->device.driver;
    if (pinned->registered) {
        if (!lost)
            (void)driver->host_unregister(pinned->memory);
        os_memory_free(pinned->memory, pinned->bytes);
    } else if (pinned->memory && !lost) {
        (void)driver->host_free(pinned->memory);
    }
    memset(pinned, 0, sizeof *pinned);
}

/* Creates the events of a slot that has none yet. That happens at the slot's first use, because a ring can have
 * thousands of slots, of which the first batch needs one. */
static int make_events(struct backend_cuda *cuda, uint32_t slot)
{
    const struct cuda_driver *driver = cuda->device.driver;
    int result = 0;
    if (!cuda->copied[slot])
        result = driver->event_create(&cuda->copied[slot], CUDA_EVENT_DISABLE_TIMING | CUDA_EVENT_BLOCKING_SYNC);
    if (!result && !cuda->expanded[slot])
        result = driver->event_create(&cuda->expanded[slot], CUDA_EVENT_DISABLE_TIMING);
    return result;
}

/* Makes what the kernel needs: twins, and a stream for the copies that does not wait for the default stream. */
static enum tokmap_status allocate_twins(struct backend_cuda *cuda, uint64_t bytes, struct tokmap_error *error)
{
    const struct cuda_driver *driver = cuda->device.driver;
    int least = 0, greatest = 0;
    char doing[200];
    int result = driver->mem_alloc(&cuda->twins, bytes);
    if (result) {
        cuda->twins = 0;
        (void)snprintf(
            doing, sizeof doing,
            "allocating %" PRIu64 " bytes of GPU memory for the ring (to need less, lower ring_bytes or rows)", bytes);
        return call_failed(cuda, result, error, doing);
    }
    result = driver->ctx_priority_range(&least, &greatest);
    if (!result)
        result = driver->stream_create_with_priority(&cuda->stream, CUDA_STREAM_NON_BLOCKING, greatest);
    return result ? call_failed(cuda, result, error, "creating the loader's stream") : TOKMAP_OK;
}

static enum tokmap_status allocate_bounces(struct backend_cuda *cuda, struct tokmap_error *error)
{
    uint64_t one = round_up(cuda->output_bytes, PART_ALIGN), bytes;
    if (!one) /* no field is requested, so nothing is ever sent */
        return TOKMAP_OK;
    if (mul_overflows(one, BOUNCES, &bytes) || bytes > UINT64_MAX / 2)
        return error_set_memory(error, "expanding on the host", UINT64_MAX);
    enum tokmap_status status = pin(cuda, bytes, &cuda->bounces_memory, error);
    for (uint32_t i = 0; i < BOUNCES && !status; i++) {
        cuda->bounces[i].memory = (uint8_t *)cuda->bounces_memory.memory + i * one;
        int result = cuda->device.driver->event_create(&cuda->bounces[i].sent,
                                                       CUDA_EVENT_DISABLE_TIMING | CUDA_EVENT_BLOCKING_SYNC);
        if (result)
            status = call_failed(cuda, result, error, "creating the loader's events");
    }
    return status;
}

static enum tokmap_status cuda_allocate(struct backend *backend, uint32_t slots, uint64_t slot_bytes, void **memory,
                                        struct tokmap_error *error)
{
    struct backend_cuda *cuda = (struct backend_cuda *)backend;
    struct cuda_entered entered;
    uint64_t bytes;
    assert(!cuda->copied && slots && slot_bytes && slot_bytes % 64 == 0);
    if (mul_overflows(slots, slot_bytes, &bytes))
        return error_set_memory(error, "the ring", UINT64_MAX);
    cuda->copied = calloc(2 * (size_t)slots, sizeof *cuda->copied);
    if (!cuda->copied)
        return error_set_memory(error, "the ring", 2 * slots * sizeof *cuda->copied);
    cuda->expanded = cuda->copied + slots;
    cuda->slots = slots;
    cuda->slot_bytes = slot_bytes;
    int result = enter(cuda, &entered);
    if (result)
        return call_failed(cuda, result, error, "making the GPU's context current");
    enum tokmap_status status = pin(cuda, bytes, &cuda->slots_memory, error);
    if (!status)
        status = cuda->kernel ? allocate_twins(cuda, bytes, error) : allocate_bounces(cuda, error);
    cuda_leave(&cuda->device, &entered);
    *memory = cuda->slots_memory.memory;
    return status;
}

/* ---- the producer's side ---- */

static void cuda_begin(struct backend *backend)
{
    struct backend_cuda *cuda = (struct backend_cuda *)backend;
    os_thread_prefer_node(cuda->node);
    cuda_stay(&cuda->device);
}

static enum tokmap_status cuda_await(struct backend *backend, uint32_t slot, struct tokmap_error *error)
{
    struct backend_cuda *cuda = (struct backend_cuda *)backend;
    struct cuda_entered entered;
    assert(slot < cuda->slots);
    int result = enter(cuda, &entered);
    if (!result) {
        if (cuda->copied[slot]) /* else it was never copied, or the host expands */
            result = cuda->device.driver->event_synchronize(cuda->copied[slot]);
        cuda_leave(&cuda->device, &entered);
    }
    return result ? call_failed(cuda, result, error, "waiting for a copy to the GPU") : TOKMAP_OK;
}

static int enqueue_copy(struct backend_cuda *cuda, uint32_t slot, uint64_t bytes)
{
    const struct cuda_driver *driver = cuda->device.driver;
    uint64_t offset = slot * cuda->slot_bytes;
    bool first = !cuda->expanded[slot];
    int result = first ? make_events(cuda, slot) : driver->stream_wait_event(cuda->stream, cuda->expanded[slot], 0);
    if (!result)
        result = driver->copy_to_device(cuda->twins + offset, (uint8_t *)cuda->slots_memory.memory + offset, bytes,
                                        cuda->stream);
    if (result)
        return result;
    result = driver->event_record(cuda->copied[slot], cuda->stream);
    if (result)
        (void)driver->stream_synchronize(cuda->stream);
    return result;
}

static enum tokmap_status cuda_copy(struct backend *backend, uint32_t slot, uint64_t bytes, struct tokmap_error *error)
{
    struct backend_cuda *cuda = (struct backend_cuda *)backend;
    struct cuda_entered entered;
    assert(slot < cuda->slots && bytes <= cuda->slot_bytes);
    if (!cuda->kernel || !bytes)
        return TOKMAP_OK;
    int result = enter(cuda, &entered);
    if (!result) {
        result = enqueue_copy(cuda, slot, bytes);
        cuda_leave(&cuda->device, &entered);
    }
    return result ? call_failed(cuda, result, error, "copying a batch to the GPU") : TOKMAP_OK;
}

/* ---- the consumer's side ---- */

/* Increments a counter that only this thread writes and any thread reads. */
static void increment(uint64_t *counter)
{
    __atomic_store_n(counter, *counter + 1, __ATOMIC_RELAXED);
}

/* Checks that the stream belongs to the context in which the loader works, because work in different contexts cannot be
 * put in order. The result is not kept: the call is cheap, and the handle of a destroyed stream may become that of
 * another. */
static enum tokmap_status check_stream(const struct backend_cuda *cuda, struct CUstream_st *stream,
                                       struct tokmap_error *error)
{
    const struct cuda_driver *driver = cuda->device.driver;
    struct CUctx_st *context = NULL, *popped;
    int handle = -1;
    if (cuda_stream_is_default(stream))
        return TOKMAP_OK;
    /* A green context is a part of the device inside the primary context. Its streams are as good as others, but only
     * the newer form of the question names the primary context for them. */
    struct CUgreenCtx_st *green = NULL;
    int result = driver->stream_get_both_ctx ? driver->stream_get_both_ctx(stream, &context, &green)
                                             : driver->stream_get_ctx(stream, &context);
    if (result)
        return call_failed(cuda, result, error, "finding the context of the stream");
    if (context == cuda->device.context)
        return TOKMAP_OK;
    if (!driver->ctx_push(context)) {
        (void)driver->ctx_get_device(&handle);
        (void)driver->ctx_pop(&popped);
    }
    if (handle == cuda->device.handle)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "the stream does not belong to the primary context of device cuda:%d, in which the loader "
                         "works; pass a stream that was created in the primary context, as those of the CUDA runtime "
                         "are",
                         cuda->device.ordinal);
    return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                     "the stream belongs to device cuda:%d, but the loader delivers to cuda:%d; pass a stream of that "
                     "device",
                     handle, cuda->device.ordinal);
}

/* Refuses a stream that is capturing a graph. Work that is enqueued on it becomes part of the graph: the event that it
 * records would pull the copy stream into the capture, and every launch of the graph would deliver the same batch. The
 * legacy default stream itself cannot capture, but while another stream that is ordered with it does, work on it is
 * refused and invalidates that capture. To ask does not. */
static enum tokmap_status check_capture(const struct backend_cuda *cuda, struct CUstream_st *stream,
                                        struct tokmap_error *error)
{
    const struct cuda_driver *driver = cuda->device.driver;
    int capturing = 0;
    if (!driver->stream_is_capturing)
        return TOKMAP_OK;
    int result = driver->stream_is_capturing(stream, &capturing);
    if (result == CUDA_STREAM_CAPTURE_IMPLICIT)
        capturing = 1;
    else if (result)
        return call_failed(cuda, result, error, "finding out whether the stream is capturing a graph");
    return !capturing ? TOKMAP_OK
                      : error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                                  "the stream is capturing a graph%s, and each launch of that graph would deliver the "
                                  "same batch; ask for a batch before each launch of the graph, with outputs "
                                  "that the graph reads",
                                  result ? " through another stream, because it is the legacy default stream" : "");
}

/* Checks that an output is memory of this device. Writing to other memory would be a fault on the GPU, after which this
 * process cannot use the GPU any more. Each check takes the driver's lock twice, and a batch has up to eight outputs,
 * so the last addresses of each output that have passed are remembered and not checked again. One mistake is not found
 * this way: the caller has freed the output, and its address now belongs to other memory. Then the kernel either faults
 * or writes to that memory. */
static enum tokmap_status check_output(struct backend_cuda *cuda, const char *name, uint64_t address, uint64_t element,
                                       struct checked *checked, struct tokmap_error *error)
{
    const struct cuda_driver *driver = cuda->device.driver;
    unsigned type = 0;
    int ordinal = -1;
    if (address % element)
        return error_set_field(error, TOKMAP_ERROR_ARGUMENT, NULL, name,
                               " has an address that is not a multiple of %" PRIu64 ", the size of its elements; pass "
                               "aligned memory",
                               element);
    if (!address)
        return TOKMAP_OK;
    for (unsigned i = 0; i < OUTPUT_ADDRESSES; i++)
        if (checked->addresses[i] == address)
            return TOKMAP_OK;
    int result = driver->pointer_get_attribute(&type, CUDA_POINTER_MEMORY_TYPE, address);
    if (result == CUDA_INVALID_VALUE)
        return error_set_field(error, TOKMAP_ERROR_ARGUMENT, NULL, name,
                               " is ordinary host memory, but this loader writes to device cuda:%d; pass memory of "
                               "that device",
                               cuda->device.ordinal);
    if (!result && type == CUDA_MEMORY_DEVICE)
        result = driver->pointer_get_attribute(&ordinal, CUDA_POINTER_DEVICE_ORDINAL, address);
    if (result)
        return call_failed(cuda, result, error, "finding out to which memory an output belongs");
    if (type == CUDA_MEMORY_DEVICE && ordinal != cuda->device.ordinal)
        return error_set_field(error, TOKMAP_ERROR_ARGUMENT, NULL, name,
                               " is memory of device cuda:%d, but this loader writes to device cuda:%d; pass memory of "
                               "that device",
                               ordinal, cuda->device.ordinal);
    checked->addresses[checked->next++ % OUTPUT_ADDRESSES] = address;
    return TOKMAP_OK;
}

static enum tokmap_status check_outputs(struct backend_cuda *cuda, const struct expand_arguments *work,
                                        const struct backend_copy *copies, uint32_t count, struct tokmap_error *error)
{
    const struct {
        const char *name;
        uint64_t address, element;
    } outputs[OUTPUTS] = {
        {"inputs", work->inputs, work->element},
        {"targets", work->targets, work->element},
        {"position_ids", work->position_ids, work->element},
        {"document_ids", work->document_ids, work->element},
        {"loss_mask", work->loss_mask, work->element},
        {"rows", work->rows, work->width},
        {"cu_seqlens", work->cu_seqlens, sizeof(int32_t)},
        {"targets_ahead", work->targets_ahead, work->element},
        {"labels", work->labels, work->element},
        {"source_ids", work->source_ids, work->element},
        {"cu_seqlens_slice", work->cu_seqlens_slice, sizeof(int32_t)},
    };
    enum tokmap_status status = TOKMAP_OK;
    for (size_t i = 0; i < OUTPUTS && !status; i++)
        status = check_output(cuda, outputs[i].name, outputs[i].address, outputs[i].element, &cuda->checked[i], error);
    for (uint32_t i = 0; i < count && !status; i++)
        status =
            check_output(cuda, copies[i].name, copies[i].into, copies[i].element, &cuda->checked[OUTPUTS + i], error);
    return status;
}

/* Makes the stream wait for the slot's copy. If the copy has completed, there is nothing to wait for: whatever is
 * enqueued from now on runs after it. */
static int order_after_copy(struct backend_cuda *cuda, uint32_t slot, struct CUstream_st *stream)
{
    int result = cuda->device.driver->event_query(cuda->copied[slot]);
    if (result != CUDA_NOT_READY)
        return result;
    increment(&cuda->late_copies);
    return cuda->device.driver->stream_wait_event(stream, cuda->copied[slot], 0);
}

/* Returns whether there is something to expand. */
static bool expands(const struct expand_arguments *work)
{
    const uint64_t row_outputs = work->inputs | work->targets | work->position_ids | work->document_ids |
                                 work->loss_mask | work->rows | work->targets_ahead | work->labels | work->source_ids;
    return (work->count && row_outputs) || work->cu_seqlens || work->cu_seqlens_slice;
}

/* Enqueues the copies from the slot's twin, and the kernel, which expands it, on the consumer's stream. */
static int expand_on_device(struct backend_cuda *cuda, uint32_t slot, const struct expand_arguments *work,
                            const struct backend_copy *copies, uint32_t count, struct CUstream_st *stream)
{
    const struct cuda_driver *driver = cuda->device.driver;
    struct expand_arguments arguments = *work;
    void *parameters[] = {&arguments};
    arguments.slot = cuda->twins + slot * cuda->slot_bytes;
    int result = make_events(cuda, slot); /* a batch of which nothing had to be copied may be the slot's first */
    if (!result)
        result = order_after_copy(cuda, slot, stream);
    if (result)
        return result;
    uint32_t enqueued = 0;
    for (; enqueued < count && !result; enqueued += !result)
        result = driver->copy_on_device(copies[enqueued].into, arguments.slot + copies[enqueued].from,
                                        copies[enqueued].bytes, stream);
    if (!result && expands(work))
        result = driver->launch_kernel(cuda->kernel->function, expand_blocks(&arguments, cuda->kernel->held), 1, 1,
                                       EXPAND_BLOCK, 1, 1, 0, stream, parameters, NULL);
    if (result && !enqueued)
        return result;
    if (!result)
        result = driver->event_record(cuda->expanded[slot], stream);
    if (result)
        (void)driver->stream_synchronize(stream);
    return result;
}

/* One output in a bounce. */
struct part {
    uint64_t *address; /* the output's field in the host's expand_arguments */
    uint64_t into;     /* the caller's output on the GPU */
    uint64_t bytes;
    uint64_t at; /* its offset in the bounce */
};

/* Lays out the requested outputs of a batch in a bounce. Returns how many there are, and in *bytes their total size. */
static unsigned list_parts(struct expand_arguments *work, struct part parts[OUTPUTS], uint64_t *bytes)
{
    uint64_t field = work->count * work->seq_len * work->element, at = 0;
    const struct part all[OUTPUTS] = {
        {&work->inputs, work->inputs, field, 0},
        {&work->targets, work->targets, field, 0},
        {&work->position_ids, work->position_ids, field, 0},
        {&work->document_ids, work->document_ids, field, 0},
        {&work->loss_mask, work->loss_mask, field, 0},
        {&work->rows, work->rows, work->count * work->row_tokens * work->width, 0},
        {&work->cu_seqlens, work->cu_seqlens, work->cu_elements * sizeof(int32_t), 0},
        {&work->targets_ahead, work->targets_ahead, field * (work->row_tokens - work->seq_len), 0},
        {&work->labels, work->labels, field, 0},
        {&work->source_ids, work->source_ids, work->sources * work->element, 0},
        {&work->cu_seqlens_slice, work->cu_seqlens_slice, work->cu_elements * sizeof(int32_t), 0},
    };
    unsigned found = 0;
    for (unsigned i = 0; i < OUTPUTS; i++) {
        if (!all[i].into || !all[i].bytes)
            continue;
        parts[found] = all[i];
        parts[found++].at = at;
        at += round_up(all[i].bytes, PART_ALIGN);
    }
    *bytes = at;
    return found;
}

uint64_t backend_cuda_output_bytes(const struct expand_arguments *work)
{
    struct expand_arguments largest = *work;
    struct part parts[OUTPUTS];
    uint64_t bytes;
    largest.element = 8;
    (void)list_parts(&largest, parts, &bytes);
    return bytes;
}

/* Expands the slot into the next bounce, copies the rest there, too, and enqueues the copies from there to the outputs
 * on the consumer's stream. */
static int expand_on_host(struct backend_cuda *cuda, uint32_t slot, const struct expand_arguments *work,
                          const struct backend_copy *copies, uint32_t count, struct CUstream_st *stream)
{
    const struct cuda_driver *driver = cuda->device.driver;
    const struct bounce *bounce = &cuda->bounces[cuda->next_bounce];
    struct expand_arguments arguments = *work;
    struct part parts[OUTPUTS];
    uint64_t bytes;
    int result = driver->event_synchronize(bounce->sent);
    if (result)
        return result;
    unsigned found = list_parts(&arguments, parts, &bytes);
    for (unsigned i = 0; i < found; i++)
        *parts[i].address = (uintptr_t)bounce->memory + parts[i].at;
    arguments.slot = (uintptr_t)cuda->slots_memory.memory + slot * cuda->slot_bytes;
    expand_batch(cuda->host_kernels, &arguments);
    for (unsigned i = 0; i < found && !result; i++)
        result = driver->copy_to_device(parts[i].into, bounce->memory + parts[i].at, parts[i].bytes, stream);
    for (uint32_t i = 0; i < count && !result; i++) {
        memcpy(bounce->memory + bytes, (const uint8_t *)(uintptr_t)arguments.slot + copies[i].from,
               (size_t)copies[i].bytes);
        result = driver->copy_to_device(copies[i].into, bounce->memory + bytes, copies[i].bytes, stream);
        bytes += round_up(copies[i].bytes, PART_ALIGN);
    }
    assert(bytes <= round_up(cuda->output_bytes, PART_ALIGN));
    if (!result)
        result = driver->event_record(bounce->sent, stream);
    if (result) {
        (void)driver->stream_synchronize(stream);
        return result;
    }
    cuda->next_bounce = (cuda->next_bounce + 1) % BOUNCES;
    increment(&cuda->host_expanded);
    return 0;
}

static enum tokmap_status cuda_expand(struct backend *backend, uint32_t slot, const struct expand_arguments *work,
                                      const struct backend_copy *copies, uint32_t count, void *consumer_stream,
                                      struct tokmap_error *error)
{
    struct backend_cuda *cuda = (struct backend_cuda *)backend;
    struct CUstream_st *stream = consumer_stream;
    struct cuda_entered entered;
    assert(slot < cuda->slots);
    if (!expands(work) && !(work->count && count))
        return TOKMAP_OK;
    int result = enter(cuda, &entered);
    if (result)
        return call_failed(cuda, result, error, "making the GPU's context current");
    enum tokmap_status status = check_capture(cuda, stream, error);
    if (!status)
        status = check_stream(cuda, stream, error);
    if (!status)
        status = check_outputs(cuda, work, copies, count, error);
    if (!status) {
        result = (cuda->kernel ? expand_on_device : expand_on_host)(cuda, slot, work, copies, count, stream);
        if (result)
            status = call_failed(cuda, result, error, "writing a batch's outputs on the GPU");
    }
    cuda_leave(&cuda->device, &entered);
    return status;
}

/* ---- any thread ---- */

static void cuda_facts(const struct backend *backend, struct backend_facts *facts)
{
    const struct backend_cuda *cuda = (const struct backend_cuda *)backend;
    facts->device = cuda->device.ordinal;
    facts->numa_node = cuda->node;
    facts->kernel = cuda->kernel != NULL;
    facts->coherent = cuda->coherent;
    facts->reason = cuda->reason;
    facts->pinned_bytes = cuda->slots_memory.bytes + cuda->bounces_memory.bytes;
    facts->device_bytes = cuda->twins ? cuda->slots * cuda->slot_bytes : 0;
    facts->host_expanded = __atomic_load_n(&cuda->host_expanded, __ATOMIC_RELAXED);
    facts->late_copies = __atomic_load_n(&cuda->late_copies, __ATOMIC_RELAXED);
}

/* ---- opening and closing ---- */

/* Waits until the GPU has read every slot and every twin. The copy stream waits for the consumers' streams, so that one
 * event remains to be waited for, and the host sleeps meanwhile. Errors are ignored: they mean that the context is
 * lost, and nothing is enqueued in it any more; or one call failed, and the host waits for the events themselves. */
static void drain(const struct backend_cuda *cuda)
{
    const struct cuda_driver *driver = cuda->device.driver;
    struct CUevent_st *last = NULL;
    int result = 0;
    for (uint32_t i = 0; i < cuda->slots && !result; i++) {
        if (cuda->expanded[i])
            result = driver->stream_wait_event(cuda->stream, cuda->expanded[i], 0);
        last = cuda->copied[i] ? cuda->copied[i] : last;
    }
    if (!result && last)
        result = driver->event_record(last, cuda->stream);
    if (!result && last)
        result = driver->event_synchronize(last);
    (void)driver->stream_synchronize(cuda->stream);
    for (uint32_t i = 0; i < cuda->slots && result; i++)
        if (cuda->expanded[i])
            (void)driver->event_synchronize(cuda->expanded[i]);
}

/* Frees memory only. The program has reset the device, or the driver has ended with the process, while the loader was
 * open. The driver's objects are gone, and their handles may be those of others by now, so only memory of the host is
 * freed. */
static void free_lost(struct backend_cuda *cuda)
{
    unpin(cuda, &cuda->slots_memory, true);
    unpin(cuda, &cuda->bounces_memory, true);
    cuda_kernel_release(cuda->kernel, true);
    cuda_device_close(&cuda->device); /* a reset does not end the uses of the primary context */
}

/* Waits for everything that is enqueued, then frees all objects of the driver. */
static void free_device_objects(struct backend_cuda *cuda)
{
    const struct cuda_driver *driver = cuda->device.driver;
    struct cuda_entered entered;
    if (enter(cuda, &entered)) {
        free_lost(cuda);
        return;
    }
    if (cuda->stream)
        drain(cuda);
    for (uint32_t i = 0; cuda->copied && i < 2 * cuda->slots; i++)
        if (cuda->copied[i])
            (void)driver->event_destroy(cuda->copied[i]);
    for (uint32_t i = 0; i < BOUNCES; i++) {
        if (!cuda->bounces[i].sent)
            continue;
        (void)driver->event_synchronize(cuda->bounces[i].sent);
        (void)driver->event_destroy(cuda->bounces[i].sent);
    }
    if (cuda->stream)
        (void)driver->stream_destroy(cuda->stream);
    if (cuda->twins)
        (void)driver->mem_free(cuda->twins);
    unpin(cuda, &cuda->slots_memory, false);
    unpin(cuda, &cuda->bounces_memory, false);
    cuda_kernel_release(cuda->kernel, false);
    cuda_leave(&cuda->device, &entered);
    cuda_device_close(&cuda->device);
}

static void cuda_close(struct backend *backend, bool forked)
{
    struct backend_cuda *cuda = (struct backend_cuda *)backend;
    /* A forked child leaves everything as it is. The pinned memory may not be mapped in it, so by now its addresses may
     * be those of something else. */
    if (!forked && cuda->device.context)
        free_device_objects(cuda);
    free(cuda->copied);
    free(cuda);
}

static const struct backend_calls cuda_calls = {
    "cuda", cuda_allocate, cuda_begin, cuda_await, cuda_copy, cuda_expand, cuda_facts, cuda_close,
};

enum tokmap_status backend_cuda_open(struct backend **backend, const char *device, uint64_t output_bytes,
                                     const char *on_host, struct tokmap_error *error)
{
    struct cuda_entered entered;
    struct backend_cuda *cuda = calloc(1, sizeof *cuda);
    *backend = NULL;
    if (!cuda)
        return error_set_memory(error, "a loader", sizeof *cuda);
    cuda->head.calls = &cuda_calls;
    cuda->output_bytes = output_bytes;
    cuda->host_kernels = expand_variant(0);
    enum tokmap_status status = cuda_device_open(&cuda->device, device, error);
    if (!status) {
        int result = cuda_enter(&cuda->device, &entered);
        if (result)
            status = call_failed(cuda, result, error, "making the GPU's context current");
    }
    if (status) {
        cuda_close(&cuda->head, false);
        return status;
    }
    cuda->node = cuda_device_node(&cuda->device);
    cuda->context = cuda_context_number(&cuda->device);
    cuda->coherent = cuda_device_reads_host(&cuda->device);
    if (on_host)
        (void)snprintf(cuda->reason, sizeof cuda->reason, "%s", on_host);
    else
        cuda->kernel = cuda_kernel_take(&cuda->device, cuda->reason);
    cuda_leave(&cuda->device, &entered);
    *backend = &cuda->head;
    return TOKMAP_OK;
}
