/* SPDX-License-Identifier: MIT */
/* cache_client.c - the connections of a cache, which threads take in turn. */
#include "cache_client.h"

#include <stdlib.h>

#include "common/error.h"

static _Thread_local const uint32_t *stops; /* see cache_client_stops() */

void cache_client_stops(const uint32_t *word)
{
    stops = word;
}

/* Ends a request that another one has made superfluous, or that nobody waits for any more. */
static bool is_superfluous(void *user)
{
    const struct cache_client *client = user;
    return (stops && __atomic_load_n(stops, __ATOMIC_RELAXED)) ||
           (client->wanted && cell_word(client->wanted) & CELL_PRESENT);
}

enum tokmap_status cache_client_take(struct cache *cache, struct cache_client **client, struct tokmap_error *error)
{
    const uint32_t process = os_process_id();
    do {
        os_process_lock();
        *client = cache->clients;
        if (*client) {
            cache->clients = (*client)->next;
            cache->client_count--;
        }
        os_process_unlock();
    } while (*client && (*client)->process != process); /* after fork(): the parent uses its connections */
    if (*client)
        return TOKMAP_OK;
    struct cache_client *made = *client = calloc(1, sizeof *made);
    if (!made)
        return error_set_memory(error, "a connection", sizeof *made);
    made->process = process;
    remote_client_init(&made->client, is_superfluous, made, NULL);
    return TOKMAP_OK;
}

static void client_free(struct cache_client *client)
{
    if (!client || client->process != os_process_id())
        return;
    remote_client_free(&client->client);
    sealed_reader_free(client->reader);
    free(client->block);
    free(client);
}

void cache_client_return(struct cache *cache, struct cache_client *client)
{
    client->wanted = NULL;
    os_process_lock();
    const bool kept = cache->client_count < CACHE_CLIENTS;
    if (kept) {
        client->next = cache->clients;
        cache->clients = client;
        cache->client_count++;
    }
    os_process_unlock();
    if (!kept)
        client_free(client);
}

void cache_clients_free(struct cache *cache)
{
    while (cache->clients) {
        struct cache_client *client = cache->clients;
        cache->clients = client->next;
        client_free(client);
    }
    cache->client_count = 0;
}
