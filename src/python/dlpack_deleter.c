/* SPDX-License-Identifier: MIT */
/* dlpack_deleter.c - deleters of DLPack tensors that only set their owner's flag. The only member of dlpack.h's structs
 * that they use is manager_ctx, so the structs here are complete only up to it. */
#include "tokmap/tokmap.h"

/* struct DLManagedTensor */
struct managed {
    struct {
        void *data;
        int32_t device_type, device_id, ndim;
        uint8_t code, bits;
        uint16_t lanes;
        int64_t *shape, *strides;
        uint64_t byte_offset;
    } tensor;
    void *manager_ctx;
};

/* struct DLManagedTensorVersioned: the members that precede its flags and tensor, which are the same in every major
 * version. */
struct versioned {
    uint32_t major, minor;
    void *manager_ctx;
};

static void set_flag(void *manager_ctx)
{
    __atomic_store_n((uint32_t *)manager_ctx, 1, __ATOMIC_RELEASE);
}

void tokmap_dlpack_deleter(void *tensor)
{
    if (tensor)
        set_flag(((const struct managed *)tensor)->manager_ctx);
}

void tokmap_dlpack_deleter_versioned(void *tensor)
{
    if (tensor)
        set_flag(((const struct versioned *)tensor)->manager_ctx);
}
