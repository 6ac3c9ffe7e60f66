/*
 * backend_cuda.c - a GPU as a device: slots in pinned memory with twins in the GPU's, outputs written by a kernel on the
 * consumer's stream.
 *
 *     producer    await    host waits for copied[slot]
 *                 copy     copy stream: wait expanded[slot]; slot -> twin; record copied[slot]
 *     consumer    expand   consumer's stream: wait copied[slot]; twin -> outputs; record expanded[slot]
 *
 * Two dangers, two events. The host must not refill a slot that is still on its way (copied, awaited by the host), and the
 * next copy must not overwrite a twin that is still being read (expanded, awaited by the copy stream). An event that was
 * never recorded counts as happened, so the first round needs no exception. expand() is called, and with it `expanded`
 * recorded, before the ring gives the slot back to the producer: so copy() always waits for the latest expansion.
 *
 * If a call fails after work was enqueued whose event could then not be recorded, that work is waited for at once: who
 * comes next would not know of it.
 *
 * Where the driver does not take the kernel, the host expands: into one of a few pinned bounces, from which each output is
 * copied on the consumer's stream. The twins are not needed then. A bounce is written again when its last copies are done.
 */
#include "backend_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "cuda_device.h"
#include "expand_ptx.h"
#include "platform/os.h"

#define HUGE_FROM ((uint64_t)16 << 20) /* from here on huge pages pay for the time it takes to clear them */
#define BOUNCES 4
#define KNOWN_OUTPUTS 16
#define PART 64 /* bytes; parts of a bounce begin at its multiples */

/* Page-locked host memory. */
struct pinned {
    void *memory;
    uint64_t bytes;
    bool registered; /* a mapping of ours that was registered; else the driver's own */
};

/* Outputs on their way from the host, where the host expands. */
struct bounce {
    uint8_t *memory;
    struct CUevent_st *sent;
};

struct backend_cuda {
    struct backend head;
    struct cuda_device device;
    int node;            /* of the host's memory, near the GPU; -1 unknown */
    int processors;      /* of the GPU */
    struct CUmod_st *module;
    struct CUfunc_st *kernel; /* NULL: the host expands */
    char reason[256];         /* why */
    const struct expand_kernels *on_host;
    uint64_t output_bytes;    /* of a batch, at most */

    struct pinned slots_memory, bounces_memory;
    uint32_t slots;
    uint64_t slot_bytes;
    uint64_t twins; /* the device's address of slot 0 */
    struct CUstream_st *stream;
    struct CUevent_st **copied, **expanded; /* one each a slot */

    /* the consumer's */
    struct bounce bounces[BOUNCES];
    uint32_t next_bounce;
    uint64_t known_outputs[KNOWN_OUTPUTS]; /* addresses found to be of this device, by some of their bits */
    uint64_t host_expanded, late_copies;
};

static enum tokmap_status failed(const struct backend_cuda *cuda, int result, struct tokmap_error *error,
                                 const char *doing)
{
    enum tokmap_status status = result == CUDA_OUT_OF_MEMORY ? TOKMAP_ERROR_MEMORY : TOKMAP_ERROR_DEVICE;
    return cuda_driver_error(cuda->device.driver, status, result, error, doing);
}

/* ---- memory ---- */

/* Memory of our own is on the node that we choose, and what the kernel tells of it is true; but a driver may be unable to
 * register it (in some virtual machines), and then gives its own. */
static enum tokmap_status pin(const struct backend_cuda *cuda, uint64_t bytes, struct pinned *pinned,
                              struct tokmap_error *error)
{
    const struct cuda_driver *driver = cuda->device.driver;
    char doing[160];
    if (!os_memory_new(bytes, bytes >= HUGE_FROM, &pinned->memory)) {
        os_memory_prefer_node(pinned->memory, bytes, cuda->node);
        /* A page that a child shares would be copied when we write it, and the GPU would go on reading the old one. */
        os_memory_zero_on_fork(pinned->memory, bytes);
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
                       "page-locking %" PRIu64 " bytes of host memory (a smaller ring_bytes needs less)", bytes);
        return failed(cuda, result, error, doing);
    }
    memset(pinned->memory, 0, bytes);
    pinned->bytes = bytes;
    return TOKMAP_OK;
}

static void unpin(const struct backend_cuda *cuda, struct pinned *pinned, bool forked)
{
    const struct cuda_driver *driver = cuda->device.driver;
    if (pinned->registered) {
        if (!forked)
            (void)driver->host_unregister(pinned->memory);
        os_memory_free(pinned->memory, pinned->bytes);
    } else if (pinned->memory && !forked) {
        (void)driver->host_free(pinned->memory);
    }
    memset(pinned, 0, sizeof *pinned);
}

static int make_events(const struct cuda_driver *driver, struct CUevent_st **events, uint32_t count, unsigned flags)
{
    int result = 0;
    for (uint32_t i = 0; i < count && !result; i++)
        result = driver->event_create(&events[i], CUDA_EVENT_DISABLE_TIMING | flags);
    return result;
}

/* What the kernel needs: twins, events, a stream for the copies that does not wait for the default one. */
static enum tokmap_status allocate_twins(struct backend_cuda *cuda, uint64_t bytes, struct tokmap_error *error)
{
    const struct cuda_driver *driver = cuda->device.driver;
    int least = 0, greatest = 0;
    char doing[128];
    int result = driver->mem_alloc(&cuda->twins, bytes);
    if (result) {
        cuda->twins = 0;
        (void)snprintf(doing, sizeof doing,
                       "allocating %" PRIu64 " bytes of GPU memory for the ring (a smaller ring_bytes needs less)", bytes);
        return failed(cuda, result, error, doing);
    }
    result = driver->ctx_priority_range(&least, &greatest);
    if (!result)
        result = driver->stream_create_with_priority(&cuda->stream, CUDA_STREAM_NON_BLOCKING, greatest);
    if (!result)
        result = make_events(driver, cuda->copied, cuda->slots, CUDA_EVENT_BLOCKING_SYNC);
    if (!result)
        result = make_events(driver, cuda->expanded, cuda->slots, CUDA_EVENT_BLOCKING_SYNC);
    return result ? failed(cuda, result, error, "making the loader's stream and events") : TOKMAP_OK;
}

static enum tokmap_status allocate_bounces(struct backend_cuda *cuda, struct tokmap_error *error)
{
    uint64_t one = round_up(cuda->output_bytes, PART), bytes;
    if (!one) /* no field: nothing is ever sent */
        return TOKMAP_OK;
    if (mul_overflows(one, BOUNCES, &bytes) || bytes > UINT64_MAX / 2)
        return error_set_memory(error, "expanding on the host", UINT64_MAX);
    enum tokmap_status status = pin(cuda, bytes, &cuda->bounces_memory, error);
    for (uint32_t i = 0; i < BOUNCES && !status; i++) {
        cuda->bounces[i].memory = (uint8_t *)cuda->bounces_memory.memory + i * one;
        int result = make_events(cuda->device.driver, &cuda->bounces[i].sent, 1, CUDA_EVENT_BLOCKING_SYNC);
        if (result)
            status = failed(cuda, result, error, "making the loader's events");
    }
    return status;
}

static enum tokmap_status cuda_allocate(struct backend *backend, uint32_t slots, uint64_t slot_bytes, void **memory,
                                        struct tokmap_error *error)
{
    struct backend_cuda *cuda = (struct backend_cuda *)backend;
    struct cuda_entered entered;
    uint64_t bytes;
    if (mul_overflows(slots, slot_bytes, &bytes))
        return error_set_memory(error, "the ring", UINT64_MAX);
    cuda->copied = calloc(2 * (size_t)slots, sizeof *cuda->copied);
    if (!cuda->copied)
        return error_set_memory(error, "the ring", 2 * slots * sizeof *cuda->copied);
    cuda->expanded = cuda->copied + slots;
    cuda->slots = slots;
    cuda->slot_bytes = slot_bytes;
    int result = cuda_enter(&cuda->device, &entered);
    if (result)
        return failed(cuda, result, error, "using the GPU's context");
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
    os_thread_prefer_node(((struct backend_cuda *)backend)->node);
}

static enum tokmap_status cuda_await(struct backend *backend, uint32_t slot, struct tokmap_error *error)
{
    struct backend_cuda *cuda = (struct backend_cuda *)backend;
    struct cuda_entered entered;
    if (!cuda->kernel)
        return TOKMAP_OK;
    int result = cuda_enter(&cuda->device, &entered);
    if (!result) {
        result = cuda->device.driver->event_synchronize(cuda->copied[slot]);
        cuda_leave(&cuda->device, &entered);
    }
    return result ? failed(cuda, result, error, "waiting for a copy to the GPU") : TOKMAP_OK;
}

static int enqueue_copy(const struct backend_cuda *cuda, uint32_t slot, uint64_t bytes)
{
    const struct cuda_driver *driver = cuda->device.driver;
    uint64_t offset = slot * cuda->slot_bytes;
    int result = driver->stream_wait_event(cuda->stream, cuda->expanded[slot], 0);
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
    if (!cuda->kernel || !bytes)
        return TOKMAP_OK;
    int result = cuda_enter(&cuda->device, &entered);
    if (!result) {
        result = enqueue_copy(cuda, slot, bytes);
        cuda_leave(&cuda->device, &entered);
    }
    return result ? failed(cuda, result, error, "copying a batch to the GPU") : TOKMAP_OK;
}

/* ---- the consumer's side ---- */

static void count(uint64_t *counter)
{
    __atomic_store_n(counter, *counter + 1, __ATOMIC_RELAXED);
}

/* A stream belongs to a context; work of another could not be put into order with ours. Asked each time, since it is one
 * look into the stream: the handle of one that was destroyed may come back as another's. */
static enum tokmap_status check_stream(const struct backend_cuda *cuda, struct CUstream_st *stream,
                                       struct tokmap_error *error)
{
    const struct cuda_driver *driver = cuda->device.driver;
    struct CUctx_st *context = NULL, *popped;
    int handle = -1;
    if (cuda_stream_is_default(stream))
        return TOKMAP_OK;
    int result = driver->stream_get_ctx(stream, &context);
    if (result)
        return failed(cuda, result, error, "asking what the stream belongs to");
    if (context == cuda->device.context)
        return TOKMAP_OK;
    if (!driver->ctx_push(context)) {
        (void)driver->ctx_get_device(&handle);
        (void)driver->ctx_pop(&popped);
    }
    if (handle == cuda->device.handle)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "the stream is of another context of device cuda:%d than the primary one, in which the loader "
                         "works: give a stream that was made in the primary context, as the CUDA runtime's are",
                         cuda->device.ordinal);
    return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                     "the stream is of device cuda:%d, the loader delivers to cuda:%d: give a stream of that device", handle,
                     cuda->device.ordinal);
}

/* What is enqueued on a stream that captures a graph is kept in the graph: the event that it records would draw the copy
 * stream into the capture, and every replay would deliver the same batch. */
static enum tokmap_status check_capture(const struct backend_cuda *cuda, struct CUstream_st *stream,
                                        struct tokmap_error *error)
{
    const struct cuda_driver *driver = cuda->device.driver;
    int capturing = 0;
    /* The legacy default stream cannot capture, the one of each thread can. */
    if ((uintptr_t)stream <= 1 || !driver->stream_is_capturing)
        return TOKMAP_OK;
    int result = driver->stream_is_capturing(stream, &capturing);
    if (result)
        return failed(cuda, result, error, "asking whether the stream captures a graph");
    return !capturing ? TOKMAP_OK
                      : error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                                  "the stream is capturing a graph, whose every replay would deliver the same batch: call "
                                  "next() before each launch of the graph, with outputs that the graph reads");
}

/* Wrong memory would be a fault on the GPU, after which it serves this process no more. An address that was found right is
 * not asked for again, since asking takes the driver's lock, twice for each of seven outputs a batch. So an output that was
 * freed, and whose address another device has now, is found by the fault: it is a wrong pointer of the caller's either way,
 * and nothing is written but where it points. */
static enum tokmap_status check_output(struct backend_cuda *cuda, const char *name, uint64_t address, uint64_t element,
                                       struct tokmap_error *error)
{
    const struct cuda_driver *driver = cuda->device.driver;
    uint64_t *known = &cuda->known_outputs[(address >> 6 ^ address >> 16) % KNOWN_OUTPUTS];
    unsigned type = 0;
    int ordinal = -1;
    if (address % element)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "out.%s is at an address that is no multiple of %" PRIu64 ", the size of its elements", name,
                         element);
    if (!address || *known == address)
        return TOKMAP_OK;
    int result = driver->pointer_get_attribute(&type, CUDA_POINTER_MEMORY_TYPE, address);
    if (result == CUDA_INVALID_VALUE)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "out.%s is ordinary host memory, this loader writes to device cuda:%d: give it memory of that "
                         "device",
                         name, cuda->device.ordinal);
    if (!result && type == CUDA_MEMORY_DEVICE)
        result = driver->pointer_get_attribute(&ordinal, CUDA_POINTER_DEVICE_ORDINAL, address);
    if (result)
        return failed(cuda, result, error, "asking what memory an output is");
    if (type == CUDA_MEMORY_DEVICE && ordinal != cuda->device.ordinal)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "out.%s is memory of device cuda:%d, this loader writes to device cuda:%d", name, ordinal,
                         cuda->device.ordinal);
    *known = address;
    return TOKMAP_OK;
}

static enum tokmap_status check_outputs(struct backend_cuda *cuda, const struct expand_arguments *work,
                                        struct tokmap_error *error)
{
    const struct {
        const char *name;
        uint64_t address, element;
    } outputs[] = {
        {"inputs", work->inputs, work->element},
        {"targets", work->targets, work->element},
        {"position_ids", work->position_ids, work->element},
        {"document_ids", work->document_ids, work->element},
        {"loss_mask", work->loss_mask, work->element},
        {"rows", work->rows, work->width},
        {"cu_seqlens", work->cu_seqlens, sizeof(int32_t)},
    };
    enum tokmap_status status = TOKMAP_OK;
    for (size_t i = 0; i < sizeof outputs / sizeof outputs[0] && !status; i++)
        status = check_output(cuda, outputs[i].name, outputs[i].address, outputs[i].element, error);
    return status;
}

/* A copy that has arrived needs no order on the stream: what is enqueued from now on comes after it. */
static int order_after_copy(struct backend_cuda *cuda, uint32_t slot, struct CUstream_st *stream)
{
    int result = cuda->device.driver->event_query(cuda->copied[slot]);
    if (result != CUDA_NOT_READY)
        return result;
    count(&cuda->late_copies);
    return cuda->device.driver->stream_wait_event(stream, cuda->copied[slot], 0);
}

static int expand_there(struct backend_cuda *cuda, uint32_t slot, const struct expand_arguments *work,
                        struct CUstream_st *stream)
{
    const struct cuda_driver *driver = cuda->device.driver;
    struct expand_arguments there = *work;
    void *parameters[] = {&there};
    there.slot = cuda->twins + slot * cuda->slot_bytes;
    int result = order_after_copy(cuda, slot, stream);
    if (!result)
        result = driver->launch_kernel(cuda->kernel, expand_blocks(&there, (uint32_t)cuda->processors), 1, 1,
                                       EXPAND_BLOCK, 1, 1, 0, stream, parameters, NULL);
    if (result)
        return result;
    result = driver->event_record(cuda->expanded[slot], stream);
    if (result)
        (void)driver->stream_synchronize(stream);
    return result;
}

/* One output to be: where it goes, how large it is, where in the bounce it is made. */
struct part {
    uint64_t *address; /* in the work for the host */
    uint64_t into, bytes, at;
};

/* The parts of a batch, laid out in a bounce; how many, and in *bytes how large they are together. */
static unsigned list_parts(struct expand_arguments *here, struct part parts[7], uint64_t *bytes)
{
    uint64_t field = here->count * here->seq_len * here->element, at = 0;
    const struct part all[7] = {
        {&here->inputs, here->inputs, field, 0},
        {&here->targets, here->targets, field, 0},
        {&here->position_ids, here->position_ids, field, 0},
        {&here->document_ids, here->document_ids, field, 0},
        {&here->loss_mask, here->loss_mask, field, 0},
        {&here->rows, here->rows, here->count * here->row_tokens * here->width, 0},
        {&here->cu_seqlens, here->cu_seqlens, here->cu_elements * sizeof(int32_t), 0},
    };
    unsigned found = 0;
    for (unsigned i = 0; i < 7; i++) {
        if (!all[i].into || !all[i].bytes)
            continue;
        parts[found] = all[i];
        parts[found++].at = at;
        at += round_up(all[i].bytes, PART);
    }
    *bytes = at;
    return found;
}

uint64_t backend_cuda_output_bytes(const struct expand_arguments *work)
{
    struct expand_arguments largest = *work;
    struct part parts[7];
    uint64_t bytes;
    largest.element = 8;
    (void)list_parts(&largest, parts, &bytes);
    return bytes;
}

static int expand_here(struct backend_cuda *cuda, uint32_t slot, const struct expand_arguments *work,
                       struct CUstream_st *stream)
{
    const struct cuda_driver *driver = cuda->device.driver;
    const struct bounce *bounce = &cuda->bounces[cuda->next_bounce];
    struct expand_arguments here = *work;
    struct part parts[7];
    uint64_t bytes;
    int result = driver->event_synchronize(bounce->sent);
    if (result)
        return result;
    unsigned found = list_parts(&here, parts, &bytes);
    for (unsigned i = 0; i < found; i++)
        *parts[i].address = (uintptr_t)bounce->memory + parts[i].at;
    here.slot = (uintptr_t)cuda->slots_memory.memory + slot * cuda->slot_bytes;
    expand_batch(cuda->on_host, &here);
    for (unsigned i = 0; i < found && !result; i++)
        result = driver->copy_to_device(parts[i].into, bounce->memory + parts[i].at, parts[i].bytes, stream);
    if (!result)
        result = driver->event_record(bounce->sent, stream);
    if (result) {
        (void)driver->stream_synchronize(stream);
        return result;
    }
    cuda->next_bounce = (cuda->next_bounce + 1) % BOUNCES;
    count(&cuda->host_expanded);
    return 0;
}

static enum tokmap_status cuda_expand(struct backend *backend, uint32_t slot, const struct expand_arguments *work,
                                      void *given, struct tokmap_error *error)
{
    struct backend_cuda *cuda = (struct backend_cuda *)backend;
    struct CUstream_st *stream = given;
    struct cuda_entered entered;
    uint64_t rows_of = work->inputs | work->targets | work->position_ids | work->document_ids | work->loss_mask | work->rows;
    if (!(work->count && rows_of) && !work->cu_seqlens)
        return TOKMAP_OK;
    int result = cuda_enter(&cuda->device, &entered);
    if (result)
        return failed(cuda, result, error, "using the GPU's context");
    enum tokmap_status status = check_capture(cuda, stream, error);
    if (!status)
        status = check_stream(cuda, stream, error);
    if (!status)
        status = check_outputs(cuda, work, error);
    if (!status) {
        result = cuda->kernel ? expand_there(cuda, slot, work, stream) : expand_here(cuda, slot, work, stream);
        if (result)
            status = failed(cuda, result, error, "writing a batch's outputs on the GPU");
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
    facts->reason = cuda->reason;
    facts->pinned_bytes = cuda->slots_memory.bytes + cuda->bounces_memory.bytes;
    facts->device_bytes = cuda->twins ? cuda->slots * cuda->slot_bytes : 0;
    facts->host_expanded = __atomic_load_n(&cuda->host_expanded, __ATOMIC_RELAXED);
    facts->late_copies = __atomic_load_n(&cuda->late_copies, __ATOMIC_RELAXED);
}

/* ---- opening and closing ---- */

/* Without the kernel the host expands: never an error, but the reason is kept. */
static void load_kernel(struct backend_cuda *cuda)
{
    const struct cuda_driver *driver = cuda->device.driver;
    char log[512] = "";
    int names[] = {CUDA_JIT_ERROR_LOG, CUDA_JIT_ERROR_LOG_BYTES};
    void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
    const char *name = NULL, *doing = "load";
    int result = driver->module_load(&cuda->module, expand_ptx, 2, names, values);
    if (result)
        cuda->module = NULL;
    if (!result) {
        doing = "find";
        result = driver->module_get_function(&cuda->kernel, cuda->module, "tokmap_expand");
    }
    /* Drivers that load a function at its first launch would do that in the first next(). */
    if (!result && driver->func_load) {
        doing = "prepare";
        result = driver->func_load(cuda->kernel);
    }
    if (!result)
        result = driver->device_get_attribute(&cuda->processors, CUDA_DEVICE_MULTIPROCESSORS, cuda->device.handle);
    if (!result)
        return;
    cuda->kernel = NULL;
    if (driver->get_error_name(result, &name) || !name)
        name = "an error without a name";
    log[strcspn(log, "\n")] = '\0';
    (void)snprintf(cuda->reason, sizeof cuda->reason, "the driver does not %s the kernel: %.60s (%d)%s%.140s", doing, name,
                   result, log[0] ? ": " : "", log);
}

/* Waits for what is enqueued, then gives everything back. Errors are those of a context that is lost, where nothing is
 * enqueued any more. */
static void free_on_device(struct backend_cuda *cuda)
{
    const struct cuda_driver *driver = cuda->device.driver;
    struct cuda_entered entered;
    bool inside = !cuda_enter(&cuda->device, &entered);
    if (cuda->stream)
        (void)driver->stream_synchronize(cuda->stream);
    for (uint32_t i = 0; cuda->copied && i < 2 * cuda->slots; i++) {
        if (!cuda->copied[i])
            continue;
        (void)driver->event_synchronize(cuda->copied[i]);
        (void)driver->event_destroy(cuda->copied[i]);
    }
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
    if (cuda->module)
        (void)driver->module_unload(cuda->module);
    if (inside)
        cuda_leave(&cuda->device, &entered);
    cuda_device_close(&cuda->device);
}

static void cuda_close(struct backend *backend, bool forked)
{
    struct backend_cuda *cuda = (struct backend_cuda *)backend;
    if (forked) {
        unpin(cuda, &cuda->slots_memory, true);
        unpin(cuda, &cuda->bounces_memory, true);
    } else if (cuda->device.context) {
        free_on_device(cuda);
    }
    free(cuda->copied);
    free(cuda);
}

static const struct backend_calls cuda_calls = {
    "cuda", cuda_allocate, cuda_begin, cuda_await, cuda_copy, cuda_expand, cuda_facts, cuda_close,
};

enum tokmap_status backend_cuda_open(struct backend **backend, const char *device, uint64_t output_bytes,
                                     struct tokmap_error *error)
{
    struct cuda_entered entered;
    struct backend_cuda *cuda = calloc(1, sizeof *cuda);
    *backend = NULL;
    if (!cuda)
        return error_set_memory(error, "a loader", sizeof *cuda);
    cuda->head.calls = &cuda_calls;
    cuda->output_bytes = output_bytes;
    cuda->on_host = expand_variant(0);
    enum tokmap_status status = cuda_device_open(&cuda->device, device, error);
    if (!status) {
        int result = cuda_enter(&cuda->device, &entered);
        if (result)
            status = failed(cuda, result, error, "using the GPU's context");
    }
    if (status) {
        cuda_close(&cuda->head, false);
        return status;
    }
    cuda->node = cuda_device_node(&cuda->device);
    load_kernel(cuda);
    cuda_leave(&cuda->device, &entered);
    *backend = &cuda->head;
    return TOKMAP_OK;
}
