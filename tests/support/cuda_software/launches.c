/* SPDX-License-Identifier: MIT */
/*
 * launches.c - the kernels that the emulated driver can run. A module is identified by its image, a kernel in it by its
 * name. There are three modules: the PTX of the library, whose kernel runs as it was compiled for the host; that of the
 * benchmark (bench_launches.c); and one for the tests of the driver.
 */
#include <stdio.h>
#include <string.h>

#include "cuda/expand_ptx.h"
#include "launches.h"
#include "software.h"
#include "support/expand_cu_host.h"

/* ---- the kernel of the tests: copies words and adds a number to each ---- */

static unsigned add_ranges(const void *arguments, const unsigned grid[3], const unsigned block[3],
                           struct range ranges[RANGES_MOST])
{
    const struct cuda_software_add *add = arguments;
    ranges[0] = (struct range){add->from, add->words * 4, false};
    ranges[1] = (struct range){add->into, add->words * 4, true};
    return 2;
}

static void add_translate(void *arguments, uint64_t (*memory_of)(uint64_t address))
{
    struct cuda_software_add *add = arguments;
    add->from = memory_of(add->from);
    add->into = memory_of(add->into);
}

static void add_run(const void *arguments, const unsigned grid[3], const unsigned block[3])
{
    const struct cuda_software_add *add = arguments;
    const uint32_t *from = (const uint32_t *)(uintptr_t)add->from;
    uint32_t *into = (uint32_t *)(uintptr_t)add->into;
    for (uint64_t i = 0; i < add->words; i++)
        into[i] = from[i] + (uint32_t)add->number;
}

/* ---- the kernel of the library ---- */

#define MARK_BYTES 16
#define EXTENT_BYTES 16

static unsigned expand_ranges(const void *arguments, const unsigned grid[3], const unsigned block[3],
                              struct range ranges[RANGES_MOST])
{
    const struct expand_arguments *work = arguments;
    uint64_t cells = work->count * work->seq_len * work->element, count = work->count;
    bool tokens = count && (work->inputs || work->targets || work->rows || work->targets_ahead || work->labels);
    bool masked = work->loss_mask || work->labels || ((work->targets || work->targets_ahead) && work->mask_targets);
    bool marks = work->position_ids || work->document_ids || masked;
    bool bounds = work->bounds && (work->loss_mask || work->targets || work->targets_ahead || work->labels);
    const struct range all[] = {
        {work->slot, tokens ? (count - 1) * work->row_stride + work->row_tokens * work->width : 0, false},
        {work->slot + work->marks_at, marks ? count * work->row_marks * MARK_BYTES : 0, false},
        {work->slot + work->bits_at, masked ? count * work->row_bits * sizeof(uint64_t) : 0, false},
        {work->slot + work->bounds_at, bounds ? count * EXTENT_BYTES : 0, false},
        {work->slot + work->sources_at, work->source_ids ? work->sources * 4 : 0, false},
        {work->slot + work->cu_slice_at, work->cu_seqlens_slice ? work->cu_elements * 4 : 0, false},
        {work->slot + work->cu_at, work->cu_seqlens ? work->cu_elements * 4 : 0, false},
        {work->inputs, cells, true},
        {work->targets, cells, true},
        {work->position_ids, cells, true},
        {work->document_ids, cells, true},
        {work->loss_mask, cells, true},
        {work->rows, count * work->row_tokens * work->width, true},
        {work->cu_seqlens, work->cu_elements * 4, true},
        {work->targets_ahead, cells * (work->row_tokens - work->seq_len), true},
        {work->labels, cells, true},
        {work->source_ids, work->sources * work->element, true},
        {work->cu_seqlens_slice, work->cu_elements * 4, true},
    };
    unsigned used = 0;
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].bytes && (!all[i].write || all[i].address))
            ranges[used++] = all[i];
    return used;
}

static void expand_translate(void *arguments, uint64_t (*memory_of)(uint64_t address))
{
    struct expand_arguments *work = arguments;
    uint64_t *addresses[] = {&work->slot,          &work->inputs,    &work->targets,    &work->position_ids,
                             &work->document_ids,  &work->loss_mask, &work->rows,       &work->cu_seqlens,
                             &work->targets_ahead, &work->labels,    &work->source_ids, &work->cu_seqlens_slice};
    for (unsigned i = 0; i < sizeof addresses / sizeof *addresses; i++)
        *addresses[i] = memory_of(*addresses[i]);
}

static void expand_run(const void *arguments, const unsigned grid[3], const unsigned block[3])
{
    expand_cu_host(arguments, grid[0], block[0]);
}

static CUresult expand_fault(void)
{
    return expand_cu_host_misaligned() ? CUDA_ERROR_MISALIGNED_ADDRESS : CUDA_SUCCESS;
}

static const struct kernel kernels[] = {
    {CUDA_SOFTWARE_IMAGE, "add", sizeof(struct cuda_software_add), add_ranges, add_run, add_translate, NULL},
    {expand_ptx, "tokmap_expand", sizeof(struct expand_arguments), expand_ranges, expand_run, expand_translate,
     expand_fault},
};
_Static_assert(sizeof(struct expand_arguments) <= ARGUMENTS_MOST, "a launch holds its arguments");
#define OWN_KERNELS (sizeof kernels / sizeof *kernels)
#define KERNELS (OWN_KERNELS + BENCH_KERNELS)

static const struct kernel *kernel_at(unsigned i)
{
    return i < OWN_KERNELS ? &kernels[i] : &bench_kernels[i - OWN_KERNELS];
}

const struct kernel *kernel_of_code(const uint8_t *code, uint64_t bytes, bool is_ptx)
{
    char words[80];
    for (unsigned i = 0; i < KERNELS; i++) {
        (void)snprintf(words, sizeof words, "%s%s%s", is_ptx ? ".entry " : ".text.", kernel_at(i)->name,
                       is_ptx ? "(" : "");
        if (memmem(code, bytes, words, strlen(words)))
            return kernel_at(i);
    }
    return NULL;
}

const struct kernel *kernel_of_image(const char *image)
{
    for (unsigned i = 0; i < KERNELS; i++)
        if (!strcmp(kernel_at(i)->image, image))
            return kernel_at(i);
    return NULL;
}

const struct kernel *kernel_named(const struct kernel *first, const char *name)
{
    for (unsigned i = 0; i < KERNELS; i++)
        if (!strcmp(kernel_at(i)->image, first->image) && !strcmp(kernel_at(i)->name, name))
            return kernel_at(i);
    return NULL;
}
