/* SPDX-License-Identifier: MIT */
/* block_rounds.c - see block_rounds.h. */
#include "block_rounds.h"

#include <assert.h>

#include "common/bytes.h"
#include "platform/os.h"

struct round {
    const struct block_rounds *rounds;
    uint64_t first, end; /* blocks of this round */
    uint64_t next;       /* the next of them; accessed atomically */
};

/* Runs in each thread. */
static void work(void *user, uint32_t number)
{
    struct round *round = user;
    for (;;) {
        const uint64_t block = __atomic_fetch_add(&round->next, 1, __ATOMIC_RELAXED);
        if (block >= round->end)
            return;
        round->rounds->work(round->rounds->user, number, (uint32_t)(block - round->first), block);
    }
}

enum tokmap_status block_rounds_run(const struct block_rounds *rounds, struct tokmap_error *error)
{
    assert(rounds->threads && rounds->slots);
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t first = 0; first < rounds->blocks && !status;) {
        struct round round = {rounds, first, min64(rounds->blocks, first + rounds->slots), first};
        os_threads_share(rounds->name, rounds->threads, work, &round);
        for (uint64_t block = first; block < round.end && !status; block++)
            status = rounds->take(rounds->user, (uint32_t)(block - first), block, error);
        if (!status)
            status = rounds->taken(rounds->user, round.end, error);
        first = round.end;
    }
    return status;
}
