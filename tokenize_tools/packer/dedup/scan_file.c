/* SPDX-License-Identifier: MIT */
/* scan_file.c - see scan_file.h. */
#include "scan_file.h"

struct stage_id scan_file_id(const char *folder, uint64_t key, uint64_t unit)
{
    return (struct stage_id){
        .folder = folder, .key = key, .kind = STAGE_SCAN, .number = unit, .sections = SCAN_SECTIONS};
}

enum tokmap_status scan_file_read(struct unit_scan *scan, const struct stage_id *id, struct tokmap_error *error)
{
    return stage_section_read(id, SCAN_TOTALS, scan, sizeof *scan, error);
}
