/* SPDX-License-Identifier: MIT */
/* pcre2_library.h - the functions of PCRE2, which is loaded when a pattern is used that has no scanner of its own. */
#ifndef TOKMAP_PRETOKENIZE_PCRE2_LIBRARY_H
#define TOKMAP_PRETOKENIZE_PCRE2_LIBRARY_H

#include "platform/library.h"

#ifdef HAVE_PCRE2
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#define LIBPCRE2_FUNCTIONS(X)                                                                                          \
    X(pcre2_code_free)                                                                                                 \
    X(pcre2_compile)                                                                                                   \
    X(pcre2_compile_context_create)                                                                                    \
    X(pcre2_compile_context_free)                                                                                      \
    X(pcre2_get_error_message)                                                                                         \
    X(pcre2_get_ovector_pointer)                                                                                       \
    X(pcre2_jit_compile)                                                                                               \
    X(pcre2_jit_match)                                                                                                 \
    X(pcre2_jit_stack_assign)                                                                                          \
    X(pcre2_jit_stack_create)                                                                                          \
    X(pcre2_jit_stack_free)                                                                                            \
    X(pcre2_match)                                                                                                     \
    X(pcre2_match_context_create)                                                                                      \
    X(pcre2_match_context_free)                                                                                        \
    X(pcre2_match_data_create)                                                                                         \
    X(pcre2_match_data_free)                                                                                           \
    X(pcre2_pattern_info)                                                                                              \
    X(pcre2_set_callout)                                                                                               \
    X(pcre2_set_depth_limit)                                                                                           \
    X(pcre2_set_heap_limit)                                                                                            \
    X(pcre2_set_match_limit)                                                                                           \
    X(pcre2_set_newline)                                                                                               \
    X(pcre2_set_offset_limit)
LIBRARY_DECLARE(libpcre2, LIBPCRE2_FUNCTIONS)
#endif

#endif
