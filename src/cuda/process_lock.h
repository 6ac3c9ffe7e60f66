/* SPDX-License-Identifier: MIT */
/*
 * process_lock.h - a lock for a few memory accesses, which a fork cannot leave locked in the child.
 *
 * The lock contains the number of the process that holds it. In a child that was forked while another thread of the
 * parent held it, no thread could unlock it. So the child takes the lock of another process. What it protects must
 * therefore be valid between any two stores.
 */
#ifndef TOKMAP_CUDA_PROCESS_LOCK_H
#define TOKMAP_CUDA_PROCESS_LOCK_H

#include <stdint.h>

/* Takes the lock, which is 0 at first, and waits while another thread of this process holds it. */
void process_lock(uint32_t *lock);

/* Releases it. */
void process_unlock(uint32_t *lock);

#endif
