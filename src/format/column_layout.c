/* SPDX-License-Identifier: MIT */
/* column_layout.c - see column_layout.h. Every size is limited before it is added, so that no sum overflows. */
#include "column_layout.h"

#include "common/bytes.h"

#define PART_BYTES_MAX ((uint64_t)1 << 60)

bool column_layout_of(const struct column_head *head, uint64_t documents, struct column_layout *layout)
{
    if (head->code_bytes > 2 || head->name_bytes > PART_BYTES_MAX || head->value_bytes > PART_BYTES_MAX ||
        head->values > PART_BYTES_MAX / 4 || documents > PART_BYTES_MAX / 4 || head->offset > PART_BYTES_MAX)
        return false;
    layout->name_at = head->offset;
    layout->codes_at = layout->name_at + round_up(head->name_bytes + 1, 8);
    layout->lows_at = layout->codes_at + round_up(head->code_bytes * documents, 8);
    layout->carries_at = layout->lows_at + round_up(4 * head->values, 8);
    layout->values_at = layout->carries_at + 8 * (head->value_bytes >> 32);
    layout->end = layout->values_at + round_up(head->value_bytes, 8);
    return true;
}
