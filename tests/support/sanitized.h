/* SPDX-License-Identifier: MIT */
/* sanitized.h - SANITIZED is defined in a build with the address, thread, or memory sanitizer. A sanitizer has its own
 * malloc() and needs additional memory, so tests that count memory or make malloc() fail are skipped then. */
#ifndef TESTS_SUPPORT_SANITIZED_H
#define TESTS_SUPPORT_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED
#endif
#endif

#endif
