/* input_size.c - see input_size.h. */
#include "input_size.h"

#include "platform/os.h"
#include "platform/process.h"

#define LATE_NS ((uint64_t)30 * 1000000000u)
#define FILES_MOST 1000 /* operands that are examined to find out whether all are files */

static bool is_stopped(void *user)
{
    (void)user;
    return os_signal_caught() != 0;
}

static void measure(struct input_size *size)
{
    size->bytes = corpus_size(size->operands, size->operand_count, size->select, is_stopped, NULL);
    size->measured = true;
}

static bool all_are_files(const struct input_size *size)
{
    struct os_stat stat;
    if (size->operand_count > FILES_MOST || size->select->list_count)
        return false;
    for (size_t i = 0; i < size->operand_count; i++)
        if (os_stat(size->operands[i], &stat) || stat.kind != OS_KIND_FILE)
            return false;
    return true;
}

void input_size_start(struct input_size *size, const char *const *operands, size_t operand_count,
                      const struct inputs_selection *select, int mode)
{
    *size = (struct input_size){
        .operands = operands, .operand_count = operand_count, .select = select, .started_ns = os_clock_ns()};
    if ((mode == CLI_PROGRESS_AUTO && os_is_terminal(2)) || all_are_files(size))
        measure(size);
}

uint64_t input_size_update(struct input_size *size)
{
    if (!size->measured && os_clock_ns() - size->started_ns >= LATE_NS)
        measure(size);
    return size->bytes;
}
