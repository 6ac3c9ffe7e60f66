/* SPDX-License-Identifier: MIT */
/* form.c - see form.h. */
#include "form.h"

#include "common/bytes.h"

bool form_make(struct form *form, const struct form_needs *needs, uint64_t rows, uint64_t seq_len)
{
    const uint32_t masking = TOKMAP_LOSS_MASK | TOKMAP_LABELS;
    const uint32_t marked = TOKMAP_POSITION_IDS | TOKMAP_DOCUMENT_IDS | TOKMAP_CU_SEQLENS | masking;
    const uint32_t of_targets = TOKMAP_TARGETS | TOKMAP_TARGETS_AHEAD | masking;
    const bool masks = (needs->fields & masking) || needs->mask_targets;
    *form = (struct form){.seq_len = seq_len, .row_tokens = seq_len + needs->lookahead};
    struct ring_shape *shape = &form->shape;
    shape->rows = rows;
    shape->row_bytes = form->row_tokens * needs->width;
    if ((needs->fields & marked) || needs->mask_targets)
        shape->row_marks = mark_words(form_marked_tokens(needs, seq_len));
    if (masks && needs->masked)
        shape->row_bits = mark_words(max64(form_masked_targets(needs, seq_len), seq_len));
    shape->bounds = needs->bounds && (needs->fields & of_targets); /* targets in padding are always ignored */
    shape->sources = needs->fields & TOKMAP_SOURCE_IDS;
    shape->cu_elements = needs->cu_elements;
    return ring_layout_of(shape, &form->layout);
}
