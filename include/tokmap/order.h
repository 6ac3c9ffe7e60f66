/* SPDX-License-Identifier: MIT */
/*
 * order.h - the order of windows, as a function of integers; tokmap.h has the rules for all functions
 */
#ifndef TOKMAP_ORDER_H
#define TOKMAP_ORDER_H

#include <stddef.h>
#include <stdint.h>

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The order in which the windows of one epoch of one source are drawn: a keyed bijection on [0, windows). Each call
 * takes constant time and memory. The definition is in src/order/ORDER.md and never changes. The struct is a plain
 * value: it may be copied, and any thread may use it. Its content is private. It needs no data:
 *
 * @code
 *     struct tokmap_order order;                      // the windows that begin epoch 3
 *     if (tokmap_order_init(&order, 1000000, 1234, "web", 3) == TOKMAP_OK)
 *         for (uint64_t draw = 0; draw < 10; draw++)
 *             printf("%" PRIu64 "\n", tokmap_order_window(&order, draw));
 * @endcode
 */
struct tokmap_order {
    uint64_t state[12];
};

/* Prepares an order.
 *   windows  1 to 2^63
 *   seed     the seed of the run, any value
 *   source   the name of the source, of any length
 *   epoch    any value
 * Statuses: OK. */
TOKMAP_STATUS tokmap_order_init(struct tokmap_order *order, uint64_t windows, uint64_t seed, const char *source,
                                uint64_t epoch);

/* Returns the window of a draw, or UINT64_MAX if draw is not below `windows` or order is NULL. Cannot fail. */
TOKMAP_API uint64_t tokmap_order_window(const struct tokmap_order *order, uint64_t draw);

/* Returns the draw of a window, the inverse of tokmap_order_window(), or UINT64_MAX if window is not below `windows` or
 * order is NULL. Cannot fail. */
TOKMAP_API uint64_t tokmap_order_draw(const struct tokmap_order *order, uint64_t window);

#ifdef __cplusplus
}
#endif
#endif
