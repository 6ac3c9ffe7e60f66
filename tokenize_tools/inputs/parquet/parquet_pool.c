/* SPDX-License-Identifier: MIT */
/* parquet_pool.c - see parquet_pool.h. */
#include "parquet_pool.h"

#include <assert.h>
#include <stdlib.h>

#include "common/error.h"
#include "platform/os.h"

#define KEPT_MOST 64 /* decompressors, and buffers */

struct parquet_pool {
    uint32_t references;
    struct os_mutex *mutex; /* guards all fields below */
    struct parquet_codec *codecs[KEPT_MOST];
    uint32_t codec_count;
    struct bytes_buffer buffers[KEPT_MOST];
    uint32_t buffer_count;
    uint64_t buffer_bytes; /* capacity of all buffers */
};

enum tokmap_status parquet_pool_new(struct parquet_pool **pool, struct tokmap_error *error)
{
    *pool = calloc(1, sizeof **pool);
    if (!*pool || os_mutex_new(&(*pool)->mutex)) {
        free(*pool);
        *pool = NULL;
        return error_set_memory(error, "the reader of Parquet files", sizeof **pool);
    }
    (*pool)->references = 1;
    return TOKMAP_OK;
}

void parquet_pool_hold(struct parquet_pool *pool)
{
    __atomic_fetch_add(&pool->references, 1, __ATOMIC_RELAXED);
}

void parquet_pool_release(struct parquet_pool *pool)
{
    if (!pool || __atomic_sub_fetch(&pool->references, 1, __ATOMIC_ACQ_REL))
        return;
    for (uint32_t i = 0; i < pool->codec_count; i++)
        parquet_codec_free(pool->codecs[i]);
    for (uint32_t i = 0; i < pool->buffer_count; i++)
        bytes_free(&pool->buffers[i]);
    os_mutex_free(pool->mutex);
    free(pool);
}

enum tokmap_status parquet_pool_codec(struct parquet_pool *pool, struct parquet_codec **codec,
                                      struct tokmap_error *error)
{
    *codec = NULL;
    os_mutex_lock(pool->mutex);
    if (pool->codec_count)
        *codec = pool->codecs[--pool->codec_count];
    os_mutex_unlock(pool->mutex);
    return *codec ? TOKMAP_OK : parquet_codec_new(codec, error);
}

void parquet_pool_codec_back(struct parquet_pool *pool, struct parquet_codec *codec)
{
    if (!codec)
        return;
    os_mutex_lock(pool->mutex);
    if (pool->codec_count < KEPT_MOST) {
        pool->codecs[pool->codec_count++] = codec;
        codec = NULL;
    }
    os_mutex_unlock(pool->mutex);
    parquet_codec_free(codec);
}

struct bytes_buffer parquet_pool_buffer(struct parquet_pool *pool, uint64_t capacity)
{
    struct bytes_buffer buffer = {NULL, 0, 0};
    os_mutex_lock(pool->mutex);
    if (pool->buffer_count) {
        uint32_t best = 0;
        for (uint32_t i = 1; i < pool->buffer_count; i++) {
            const uint64_t have = pool->buffers[best].capacity, other = pool->buffers[i].capacity;
            if (have < capacity ? other > have : other >= capacity && other < have)
                best = i;
        }
        buffer = pool->buffers[best];
        pool->buffers[best] = pool->buffers[--pool->buffer_count];
        pool->buffer_bytes -= buffer.capacity;
    }
    os_mutex_unlock(pool->mutex);
    buffer.count = 0;
    return buffer;
}

void parquet_pool_buffer_back(struct parquet_pool *pool, struct bytes_buffer *buffer)
{
    if (!buffer->bytes)
        return;
    os_mutex_lock(pool->mutex);
    if (pool->buffer_count < KEPT_MOST && buffer->capacity <= POOL_KEPT_BYTES - pool->buffer_bytes) {
        pool->buffer_bytes += buffer->capacity;
        pool->buffers[pool->buffer_count++] = *buffer;
        *buffer = (struct bytes_buffer){NULL, 0, 0};
    }
    os_mutex_unlock(pool->mutex);
    bytes_free(buffer);
}
