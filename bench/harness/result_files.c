/* result_files.c - see result_files.h. */
#include "result_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/error.h"
#include "platform/os.h"
#include "result_plots.h"
#include "result_rows.h"
#include "text/path.h"

static int folder_make(struct bench *bench, const char *path)
{
    struct os_stat stat;
    const int system = path ? os_make_folder(path) : 0;
    if (system && (system != EEXIST || os_stat(path, &stat) || stat.kind != OS_KIND_FOLDER))
        return bench_failed_system(bench, system, path, "the folder for results cannot be created");
    return CLI_DONE;
}

int results_prepare(struct bench *bench)
{
    struct tokmap_error error = {0};
    if (bench->options.plot && cli_plot_possible(&error))
        return bench_failed(bench, &error);
    const int result = folder_make(bench, bench->options.save);
    return result ? result : folder_make(bench, bench->options.plot);
}

static enum tokmap_status lines_save(const struct bench *bench, const char *case_name, struct tokmap_error *error)
{
    char name[128];
    const char *table = bench->options.table;
    (void)snprintf(name, sizeof name, "%s%s%.60s", case_name, table ? "-" : "", table ? table : "");
    char *path = path_join(bench->options.save, strlen(bench->options.save), name, strlen(name), ".jsonl");
    const enum tokmap_status status = path ? cli_file_write(path, bench->lines.bytes, bench->lines.count, error)
                                           : error_set_memory(error, "a path", 0);
    free(path);
    return status;
}

static enum tokmap_status lines_plot(const struct bench *bench, struct tokmap_error *error)
{
    struct result_rows rows = {0};
    struct result_plots plots = {0};
    enum tokmap_status status =
        result_rows_parse(&rows, (const char *)bench->lines.bytes, bench->lines.count, "the results", error);
    if (!status)
        status = result_plots_make(&plots, &rows, error);
    if (!status)
        status = result_plots_write(&plots, bench->options.plot, error);
    result_plots_free(&plots);
    result_rows_free(&rows);
    return status;
}

int results_keep(struct bench *bench, const char *case_name)
{
    struct tokmap_error error = {0};
    enum tokmap_status status = TOKMAP_OK;
    if (bench->options.save)
        status = lines_save(bench, case_name, &error);
    if (!status && bench->options.plot)
        status = lines_plot(bench, &error);
    bytes_free(&bench->lines);
    return status ? bench_failed(bench, &error) : CLI_DONE;
}
