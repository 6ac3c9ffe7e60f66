/* Deleters of DLPack tensors that only tell their owner. What they know of dlpack.h is where manager_ctx lies. */
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

/* struct DLManagedTensorVersioned, of every major version up to where flags and the tensor follow */
struct versioned {
    uint32_t major, minor;
    void *manager_ctx;
};

static void tell(void *manager_ctx)
{
    __atomic_store_n((uint32_t *)manager_ctx, 1, __ATOMIC_RELEASE);
}

void tokmap_dlpack_deleted(void *tensor)
{
    if (tensor)
        tell(((const struct managed *)tensor)->manager_ctx);
}

void tokmap_dlpack_deleted_versioned(void *tensor)
{
    if (tensor)
        tell(((const struct versioned *)tensor)->manager_ctx);
}
