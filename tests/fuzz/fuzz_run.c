/*
 * fuzz_run.c - parsing hostile texts of runs and cursors. An accepted text must be within the limits, and must have the
 * same meaning after it is printed and parsed again.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/run_text.h"
#include "tokmap/tokmap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                                                             \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                                    \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

static void print_run(FILE *file, const struct run_spec *spec)
{
    fprintf(file, "source %s \"", spec->sources[0].name);
    for (const char *at = spec->sources[0].data; *at; at++) {
        if (*at == '"' || *at == '\\')
            fputc('\\', file);
        fputc(*at, file);
    }
    fprintf(file, "\"\norder %s\n", spec->ordering == TOKMAP_SEQUENTIAL ? "sequential" : "shuffle");
    fprintf(file, "seq_len %" PRIu64 "\nlookahead %" PRIu64 "\nbatch %" PRIu64 "\nseed %" PRIu64 "\n", spec->seq_len,
            spec->lookahead, spec->batch, spec->seed);
    if (spec->steps != TOKMAP_FOREVER)
        fprintf(file, "steps %" PRIu64 "\n", spec->steps);
    if (spec->passes != TOKMAP_FOREVER)
        fprintf(file, "passes %" PRIu64 "\n", spec->passes);
    for (size_t i = 0; i < spec->skip_count; i++)
        fprintf(file, "skip %" PRIu64 "..%" PRIu64 "\n", spec->skips[i].first, spec->skips[i].end);
}

static void check_run(const struct run_spec *spec)
{
    REQUIRE(spec->seq_len >= 1 && spec->seq_len <= RUN_SEQ_LEN_MOST && spec->lookahead <= RUN_SEQ_LEN_MOST);
    REQUIRE(spec->batch >= 1 && spec->batch <= RUN_BATCH_MOST);
    REQUIRE(spec->steps == TOKMAP_FOREVER || spec->passes == TOKMAP_FOREVER);
    REQUIRE(spec->sources[0].name && spec->sources[0].name[0] && strlen(spec->sources[0].name) <= RUN_NAME_MOST && spec->sources[0].data && spec->sources[0].data[0]);
    for (size_t i = 0; i < spec->skip_count; i++)
        REQUIRE(spec->skips[i].first < spec->skips[i].end && spec->skips[i].end <= RUN_DRAWS_MOST);

    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    REQUIRE(file);
    print_run(file, spec);
    REQUIRE(fclose(file) == 0);
    struct run_spec again;
    REQUIRE(run_text_read(&again, text, bytes, NULL, NULL) == TOKMAP_OK);
    REQUIRE(again.seq_len == spec->seq_len && again.lookahead == spec->lookahead && again.batch == spec->batch &&
            again.seed == spec->seed && again.steps == spec->steps && again.passes == spec->passes &&
            again.ordering == spec->ordering && again.skip_count == spec->skip_count);
    REQUIRE(strcmp(again.sources[0].name, spec->sources[0].name) == 0 && strcmp(again.sources[0].data, spec->sources[0].data) == 0);
    for (size_t i = 0; i < spec->skip_count; i++)
        REQUIRE(again.skips[i].first == spec->skips[i].first && again.skips[i].end == spec->skips[i].end);
    run_spec_free(&again);
    free(text);
}

static void check_error(enum tokmap_status status, const struct tokmap_error *error)
{
    REQUIRE(status == TOKMAP_ERROR_RUN || status == TOKMAP_ERROR_UNSUPPORTED);
    REQUIRE(error->status == status && error->message[0] && strcmp(error->path, "x.run") == 0);
    REQUIRE(error->line > 0 || strstr(error->message, "the run has no '"));
}

static void try_cursor(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    REQUIRE(text);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    struct tokmap_cursor cursor, again;
    if (tokmap_cursor_parse(&cursor, text, NULL) == TOKMAP_OK) {
        char printed[TOKMAP_CURSOR_TEXT];
        tokmap_cursor_print(&cursor, printed);
        REQUIRE(tokmap_cursor_parse(&again, printed, NULL) == TOKMAP_OK);
        REQUIRE(memcmp(&cursor.past, &again.past, sizeof cursor.past) == 0 && cursor.step == again.step &&
                cursor.tokens == again.tokens && memcmp(&cursor.of, &again.of, sizeof cursor.of) == 0);
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct run_spec spec;
    struct tokmap_error error;
    memset(&error, 0, sizeof error);
    enum tokmap_status status = run_text_read(&spec, (const char *)data, size, "x.run", &error);
    if (status == TOKMAP_OK) {
        check_run(&spec);
        run_spec_free(&spec);
    } else {
        check_error(status, &error);
    }
    try_cursor(data, size);
    return 0;
}
