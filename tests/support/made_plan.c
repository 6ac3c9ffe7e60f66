/* SPDX-License-Identifier: MIT */
/* made_plan.c - see made_plan.h. */
#include "made_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "plan/planner.h"
#include "platform/os.h"

void made_plan(const struct made *made, uint64_t seq_len, const char *path)
{
    const struct planner_options options = {.seq_len = seq_len};
    struct planner *planner;
    struct planner_result result;
    struct plan_header header;
    struct tokmap_dataset *dataset;
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    int fd;
    assert_int_equal(tokmap_dataset_open(&dataset, made->name, NULL, NULL), TOKMAP_OK);
    assert_int_equal(tokmap_dataset_info(dataset, &info), TOKMAP_OK);
    assert_int_equal(planner_new(&planner, &options, NULL), TOKMAP_OK);
    for (uint64_t from = 0, end; from < made->tokens; from = end) {
        for (end = from + 1; end < made->tokens && !made->starts[end];)
            end++;
        assert_int_equal(planner_add(planner, end - from, NULL), TOKMAP_OK);
    }
    assert_int_equal(planner_pack(planner, NULL, NULL, &result, NULL), TOKMAP_OK);
    assert_int_equal(os_open(path, OS_WRITE_NEW, &fd), 0);
    assert_int_equal(planner_write(planner, fd, info.content, info.identity, &header), 0);
    os_close(fd);
    planner_free(planner);
    tokmap_dataset_close(dataset);
}
