/* SPDX-License-Identifier: MIT */
/* form.c - see form.h. */
#include "form.h"

#include "common/bytes.h"

bool form_make(struct form *form, const struct form_needs *needs, uint64_t rows, uint64_t seq_len)
{
    const uint32_t masking = TOKMAP_LOSS_MASK | TOKMAP_LABELS;
    const uint32_t marked = TOKMAP_POSITION_IDS | TOKMAP_DOCUMENT_IDS | FORM_CU | masking;
    const uint32_t of_targets = TOKMAP_TARGETS | TOKMAP_TARGETS_AHEAD | masking;
    const bool masks = (needs->fields & masking) || needs->mask_targets;
    const uint64_t columns = seq_len / needs->slices / needs->chunks, ahead = form_ahead(needs);
    const uint64_t lists = needs->chunks_most, tokens_of_lists = lists * ahead;
    *form = (struct form){.seq_len = seq_len, .columns = columns, .row_tokens = columns + ahead};
    struct ring_shape *shape = &form->shape;
    if (mul_overflows(rows, needs->chunks, &shape->rows))
        return false;
    /* Each chunk of a list begins at a multiple of 64 bytes, and its marks and bits at a word. */
    shape->row_bytes = (form->row_tokens + tokens_of_lists) * needs->width + lists * FORM_ALIGN;
    if ((needs->fields & marked) || needs->mask_targets)
        shape->row_marks = mark_words(form_marked_tokens(needs, columns) + tokens_of_lists) + lists;
    if (masks && (needs->masked || form_first_labels(needs)))
        shape->row_bits = mark_words(max64(form_masked_targets(needs, columns), columns) +
                                     (needs->slices > 1) * (lists + 1) + tokens_of_lists) +
                          lists;
    shape->row_chunks = lists;
    shape->bounds = needs->bounds && (needs->fields & of_targets); /* targets in padding are always ignored */
    shape->sources = needs->fields & TOKMAP_SOURCE_IDS;
    shape->cu_elements = needs->cu_elements;
    if (needs->fields & TOKMAP_CU_SEQLENS_SLICE)
        shape->cu_elements += form_cu_slice_at(needs);
    return ring_layout_of(shape, &form->layout);
}
