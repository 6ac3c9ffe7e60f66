/* SPDX-License-Identifier: MIT */
/* test_work_folder.c - the folder of unfinished work: what it refuses, and torn, damaged, and hostile journals. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/name_files.h"
#include "pack/output_names.h"
#include "platform/os.h"
#include "support/scratch_folder.h"
#include "work/set_commit.h"
#include "work/work_folder.h"

static const char *operands[] = {"a.txt", "b.txt"};
static const struct inputs_selection all;
static struct work_fact facts[] = {{"--shard-tokens", "1000"}, {"--columns", ""}, {"the tokenizer", "0123"}};

static bool owns(const char *unused, const char *entry, bool journal)
{
    (void)unused;
    (void)journal;
    return !strncmp(entry, "part", 4);
}

static struct work_folder_options options_of(void)
{
    return (struct work_folder_options){.name = "out",
                                        .facts = facts,
                                        .fact_count = 3,
                                        .inputs = {.operands = operands, .count = 2, .select = &all},
                                        .owns = owns,
                                        .create = true};
}

static void begin(void)
{
    assert_int_equal(chdir(folder), 0);
    (void)unlink("out.work/other");
    scratch_remove("out.work");
    file_write_text("a.txt", "first text");
    file_write_text("b.txt", "second text");
    facts[0].value = "1000";
    operands[0] = "a.txt";
}

static struct work_folder *opened(bool found)
{
    struct tokmap_error error;
    struct work_folder *work = NULL;
    const struct work_folder_options options = options_of();
    const enum tokmap_status status = work_folder_open(&work, &options, &error);
    if (status)
        fail_msg("%s", error.message);
    assert_int_equal(work_folder_found(work), found);
    return work;
}

static void refused(enum tokmap_status wanted, const char *words)
{
    struct tokmap_error error = {0};
    struct work_folder *work = NULL;
    const struct work_folder_options options = options_of();
    assert_int_equal(work_folder_open(&work, &options, &error), wanted);
    assert_null(work);
    if (!strstr(error.message, words))
        fail_msg("no '%s' in: %s", words, error.message);
}

static void append(struct work_folder *work, uint32_t type, const char *text)
{
    assert_int_equal(work_folder_append(work, type, text, (uint32_t)strlen(text), NULL), TOKMAP_OK);
}

/* Returns how many records follow, of types 16, 17, and so on with the texts "record 16" and so on. */
static uint32_t count_records(struct work_folder *work, uint64_t *end)
{
    struct work_record record;
    uint32_t count = 0;
    enum tokmap_status status;
    while (!(status = work_folder_next(work, &record, NULL))) {
        char text[32];
        (void)snprintf(text, sizeof text, "record %u", record.type);
        assert_int_equal(record.type, 16 + count);
        assert_int_equal(record.bytes, strlen(text));
        assert_memory_equal(record.payload, text, record.bytes);
        *end = record.end;
        count++;
    }
    assert_int_equal(status, TOKMAP_END);
    return count;
}

static void make_three(void)
{
    begin();
    struct work_folder *work = opened(false);
    append(work, 16, "record 16");
    append(work, 17, "record 17");
    append(work, 18, "record 18");
    assert_int_equal(work_folder_sync(work, NULL), TOKMAP_OK);
    work_folder_close(work);
}

static void test_records_return(void **unused)
{
    (void)unused;
    uint64_t end = 0;
    make_three();
    struct work_folder *work = opened(true);
    assert_int_equal(count_records(work, &end), 3);
    assert_int_equal(work_folder_cut(work, end, NULL), TOKMAP_OK);
    append(work, 19, "record 19");
    assert_int_equal(work_folder_sync(work, NULL), TOKMAP_OK);
    work_folder_close(work);
    work = opened(true);
    assert_int_equal(count_records(work, &end), 4);
    assert_int_equal(work_folder_cut(work, 0, NULL), TOKMAP_OK);
    work_folder_close(work);
    work = opened(true);
    assert_int_equal(count_records(work, &end), 0);
    work_folder_close(work);
}

static void test_what_differs_is_named(void **unused)
{
    (void)unused;
    make_three();
    facts[0].value = "2000";
    refused(TOKMAP_ERROR_MISMATCH, "another --shard-tokens: it had 1000, and this one has 2000");
    facts[0].value = "";
    refused(TOKMAP_ERROR_MISMATCH, "it had 1000, and this one has none");
    facts[0].value = "1000";
    facts[1].value = "url";
    refused(TOKMAP_ERROR_MISMATCH, "another --columns: it had none, and this one has url");
    facts[1].value = "";
    file_write_text("a.txt", "first text, longer");
    refused(TOKMAP_ERROR_MISMATCH, "had 10 bytes when this work began, and now it has 18");
    file_write_text("a.txt", "First text");
    refused(TOKMAP_ERROR_MISMATCH, "has another content");
    assert_int_equal(unlink("a.txt"), 0);
    refused(TOKMAP_ERROR_MISMATCH, "cannot be opened any more");
    file_write_text("a.txt", "first text");
    operands[0] = "b.txt";
    refused(TOKMAP_ERROR_MISMATCH, "another list of inputs: it had a.txt, and this one has b.txt");
    operands[0] = "a.txt";
    facts[2].name = "another name";
    refused(TOKMAP_ERROR_UNSUPPORTED, "another version of tokmap");
    refused(TOKMAP_ERROR_UNSUPPORTED, "; start over with --no-resume");
    struct work_folder *work = NULL; /* A task may not start over, so it is not told to. */
    struct work_folder_options options = options_of();
    struct tokmap_error error;
    options.shared = true;
    assert_int_equal(work_folder_open(&work, &options, &error), TOKMAP_ERROR_UNSUPPORTED);
    assert_non_null(
        strstr(error.message, "; remove the folder of the work while no task runs, and run all tasks again"));
    facts[2].name = "the tokenizer";
    operands[0] = "b.txt";
    assert_int_equal(work_folder_open(&work, &options, &error), TOKMAP_ERROR_MISMATCH);
    assert_non_null(strstr(error.message, "to continue it, or remove the folder of the work while no task runs"));
    operands[0] = "a.txt";
    work_folder_close(opened(true));
}

static void test_list_of_inputs(void **unused)
{
    (void)unused;
    struct tokmap_error error;
    struct work_folder *work = NULL;
    make_three();
    struct work_folder_options options = options_of();
    options.inputs.count = 1;
    assert_int_equal(work_folder_open(&work, &options, &error), TOKMAP_ERROR_MISMATCH);
    assert_non_null(strstr(error.message, "it had b.txt, and this one has no more"));
    const char *three[] = {"a.txt", "b.txt", "b.txt"};
    options.inputs.operands = three;
    options.inputs.count = 3;
    assert_int_equal(work_folder_open(&work, &options, &error), TOKMAP_ERROR_MISMATCH);
    assert_non_null(strstr(error.message, "it had no more, and this one has b.txt"));
    const char *standard[] = {"-"};
    options.inputs.operands = standard;
    options.inputs.count = 1;
    assert_int_equal(work_folder_open(&work, &options, &error), TOKMAP_ERROR_MISMATCH);
    assert_non_null(strstr(error.message, "can be read only once, so the unfinished work in 'out.work' is that of a "
                                          "command with other inputs; repeat that command"));
    assert_non_null(strstr(error.message, "--no-resume"));
    assert_int_equal(unlink("a.txt"), 0);
    assert_int_equal(mkfifo("a.txt", 0666), 0);
    refused(TOKMAP_ERROR_MISMATCH, "can be read only once");
    assert_int_equal(unlink("a.txt"), 0);
    options.name = "second";
    assert_int_equal(work_folder_open(&work, &options, &error), TOKMAP_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "cannot be read twice"));
    assert_false(file_exists("second.work"));
}

/* Changes a byte of the input, which is noticed or not. */
static void byte_change(char *bytes, size_t count, size_t at, bool noticed)
{
    bytes[at] = 'y';
    file_write("a.txt", bytes, count);
    if (noticed)
        refused(TOKMAP_ERROR_MISMATCH, "has another content");
    else
        work_folder_close(opened(true));
    bytes[at] = 'x';
}

/* Of an input of at most 1 MiB all bytes are compared; of a larger one, 16 pieces of 64 KiB. */
static void test_pieces_of_large_inputs(void **unused)
{
    (void)unused;
    const size_t piece = (size_t)64 << 10, sizes[] = {200000, 16 * piece, 16 * piece + 1, 10000000};
    char *bytes = malloc(sizes[3]);
    assert_non_null(bytes);
    memset(bytes, 'x', sizes[3]);
    for (size_t s = 0; s < 4; s++) {
        begin();
        file_write("a.txt", bytes, sizes[s]);
        work_folder_close(opened(false));
        for (size_t i = 0; i < 16; i++) {
            const size_t first = s < 2 ? i * sizes[s] / 16 : i * (sizes[s] - piece) / 15;
            const size_t end = s < 2 ? (i + 1) * sizes[s] / 16 : first + piece;
            byte_change(bytes, sizes[s], first, true);
            byte_change(bytes, sizes[s], end - 1, true);
            if (s == 3 && i < 15)
                byte_change(bytes, sizes[s], end, false);
            if (s == 3 && i)
                byte_change(bytes, sizes[s], first - 1, false);
        }
        file_write("a.txt", bytes, sizes[s]);
        work_folder_close(opened(true));
    }
    free(bytes);
}

/* Where an input is cut is compared also by tasks that do not read it. */
static void test_cuts(void **unused)
{
    (void)unused;
    struct tokmap_error error;
    struct work_folder *work = NULL;
    struct work_folder_options options = options_of();
    uint64_t cuts[] = {0, 77};
    begin();
    options.shared = true;
    options.inputs.cuts = cuts;
    options.inputs.cut_count = 2;
    assert_int_equal(work_folder_open(&work, &options, &error), TOKMAP_OK);
    work_folder_close(work);
    file_write_text("b.txt", "second_text"); /* not compared, since it is not among compare_first and so on */
    assert_int_equal(work_folder_open(&work, &options, &error), TOKMAP_OK);
    work_folder_close(work);
    cuts[1] = 78;
    assert_int_equal(work_folder_open(&work, &options, &error), TOKMAP_ERROR_MISMATCH);
    assert_non_null(strstr(error.message, "has other row groups than when this work began"));
    assert_string_equal(error.path, "b.txt");
}

/* The journal of a build before it had that. */
static void test_older_journal(void **unused)
{
    (void)unused;
    size_t bytes;
    make_three();
    char *journal = file_read("out.work/journal", &bytes);
    assert_memory_equal(journal, "tokmap-journal 3", 16);
    journal[15] = '1';
    file_write("out.work/journal", journal, bytes);
    free(journal);
    refused(TOKMAP_ERROR_UNSUPPORTED, "of another version of tokmap, whose journal this one cannot read");
}

static void test_torn_tail(void **unused)
{
    (void)unused;
    size_t bytes;
    uint64_t end = 0;
    make_three();
    char *journal = file_read("out.work/journal", &bytes);
    const size_t record = 8 + 9 + 8;
    for (size_t cut = 1; cut <= 2 * record; cut++) {
        file_write("out.work/journal", journal, bytes - cut);
        struct work_folder *work = opened(true);
        assert_int_equal(count_records(work, &end), 3 - (cut + record - 1) / record);
        work_folder_close(work);
    }
    for (size_t at = bytes - 3 * record; at < bytes; at++) {
        journal[at] ^= (char)(1 << at % 8);
        file_write("out.work/journal", journal, bytes);
        struct work_folder *work = opened(true);
        assert_int_equal(count_records(work, &end), 3 - (bytes - at + record - 1) / record);
        work_folder_close(work);
        journal[at] ^= (char)(1 << at % 8);
    }
    free(journal);
}

/* The hash of a record depends on its offset, so a whole record that was copied to another offset ends the journal. */
static void test_moved_record(void **unused)
{
    (void)unused;
    size_t bytes;
    uint64_t end = 0;
    make_three();
    char *journal = file_read("out.work/journal", &bytes);
    const size_t record = 8 + 9 + 8;
    memmove(journal + bytes - 3 * record, journal + bytes - 2 * record, 2 * record);
    file_write("out.work/journal", journal, bytes - record);
    struct work_folder *work = opened(true);
    assert_int_equal(count_records(work, &end), 0);
    work_folder_close(work);
    free(journal);
}

/* Every flipped bit of the head and the facts is refused, and nothing is changed. */
static void test_damaged_facts(void **unused)
{
    (void)unused;
    size_t bytes, later;
    make_three();
    char *journal = file_read("out.work/journal", &bytes);
    struct tokmap_error error;
    for (size_t at = 0; at < bytes - (size_t)3 * (8 + 9 + 8); at++) {
        struct work_folder *work = NULL;
        const struct work_folder_options options = options_of();
        journal[at] ^= (char)(1 << at % 8);
        file_write("out.work/journal", journal, bytes);
        const enum tokmap_status status = work_folder_open(&work, &options, &error);
        assert_null(work);
        assert_int_equal(status, at == 15 ? TOKMAP_ERROR_UNSUPPORTED : TOKMAP_ERROR_CORRUPT);
        char *same = file_read("out.work/journal", &later);
        assert_int_equal(later, bytes);
        assert_memory_equal(same, journal, bytes);
        free(same);
        journal[at] ^= (char)(1 << at % 8);
    }
    free(journal);
}

/* Journals with sound hashes and random content pass every check of the hashes, and are read within bounds. */
static void test_hostile(void **unused)
{
    (void)unused;
    size_t bytes;
    uint64_t state = 15, end;
    make_three();
    char *journal = file_read("out.work/journal", &bytes), *wrong = malloc(bytes + 64);
    assert_non_null(wrong);
    for (int i = 0; i < 500; i++) {
        size_t count = 16 + random_below(&state, bytes - 16);
        memcpy(wrong, journal, count);
        for (uint64_t k = random_below(&state, 48); k; k--)
            wrong[count++] = (char)(random_next(&state) >> random_below(&state, 64));
        file_write("out.work/journal", wrong, count);
        struct work_folder *work = NULL;
        const struct work_folder_options options = options_of();
        if (!work_folder_open(&work, &options, NULL))
            (void)count_records(work, &end);
        work_folder_close(work);
    }
    free(wrong);
    free(journal);
}

/* What another user has left, and may not be opened, is refused with what to do. */
static void test_not_permitted(void **unused)
{
    (void)unused;
    make_three();
    assert_int_equal(chmod("out.work/journal", 0444), 0);
    assert_int_equal(chmod(".", 0755), 0);
    if (!access("out.work/journal", W_OK)) { /* a user whom no mode stops becomes one whom it does */
        const pid_t child = fork();
        int ended = 0;
        if (!child) {
            struct tokmap_error error = {0};
            struct work_folder *work = NULL;
            const struct work_folder_options options = options_of();
            const bool other = !setuid(65534) && !access(".", X_OK);
            _exit(!other ? 77
                  : work_folder_open(&work, &options, &error) == TOKMAP_ERROR_IO &&
                          strstr(error.message, "choose another name for the output")
                      ? 0
                      : 1);
        }
        assert_int_equal(waitpid(child, &ended, 0), child);
        assert_true(WIFEXITED(ended) && (WEXITSTATUS(ended) == 0 || WEXITSTATUS(ended) == 77));
    } else {
        refused(TOKMAP_ERROR_IO, "choose another name for the output");
    }
    assert_int_equal(chmod("out.work/journal", 0644), 0);
}

static void test_one_process(void **unused)
{
    (void)unused;
    begin();
    struct work_folder *work = opened(false);
    refused(TOKMAP_ERROR_BUSY, "another process is working here");
    work_folder_close(work);
    work = opened(true);
    refused(TOKMAP_ERROR_BUSY, "another process is working here");
    work_folder_remove(work);
    assert_false(file_exists("out.work"));
}

static void test_start_over(void **unused)
{
    (void)unused;
    uint64_t end;
    make_three();
    file_write_text("out.work/part-1", "mine");
    facts[0].value = "2000";
    struct tokmap_error error;
    struct work_folder *work = NULL;
    struct work_folder_options options = options_of();
    options.start_over = true;
    if (work_folder_open(&work, &options, &error))
        fail_msg("%s", error.message);
    assert_false(work_folder_found(work));
    assert_false(file_exists("out.work/part-1"));
    work_folder_close(work);
    work = opened(true);
    assert_int_equal(count_records(work, &end), 0);
    file_write_text("out.work/part-2", "mine");
    file_write_text("out.work/other", "of somebody else");
    work_folder_remove(work);
    assert_false(file_exists("out.work/journal"));
    assert_false(file_exists("out.work/part-2"));
    assert_true(file_exists("out.work/other"));
    options = options_of();
    options.create = false;
    assert_int_equal(work_folder_open(&work, &options, &error), TOKMAP_OK);
    assert_null(work);
}

/* A damaged journal does not keep work from starting over. */
static void test_start_over_damaged(void **unused)
{
    (void)unused;
    struct tokmap_error error;
    struct work_folder *work = NULL;
    begin();
    assert_int_equal(mkdir("out.work", 0777), 0);
    file_write_text("out.work/journal", "");
    refused(TOKMAP_ERROR_CORRUPT, "start over");
    struct work_folder_options options = options_of();
    options.start_over = true;
    assert_int_equal(work_folder_open(&work, &options, &error), TOKMAP_OK);
    work_folder_close(work);
    work_folder_close(opened(true));
}

/* Files that a power cut has brought back are removed, but not those of others, and not while a process begins or
 * works.
 */
static void test_sweep(void **unused)
{
    (void)unused;
    int fd;
    begin();
    work_folder_sweep("out", owns); /* there is no folder */
    assert_int_equal(mkdir("out.work", 0777), 0);
    file_write_text("out.work/part-1", "came back");
    file_write_text("out.work/journal.new", "");
    assert_int_equal(os_open("out.work/journal.new", OS_WRITE_OLD, &fd), 0);
    assert_int_equal(os_lock(fd), 0);
    work_folder_sweep("out", owns);
    assert_true(file_exists("out.work/part-1"));
    os_close(fd);
    file_write_text("out.work/journal", "of a process that works");
    work_folder_sweep("out", owns);
    assert_true(file_exists("out.work/part-1") && file_exists("out.work/journal.new"));
    assert_int_equal(unlink("out.work/journal"), 0);
    file_write_text("out.work/other", "of somebody else");
    work_folder_sweep("out", owns);
    assert_true(file_exists("out.work/other"));
    assert_false(file_exists("out.work/part-1") || file_exists("out.work/journal.new"));
}

/* Files of the output in a folder of inputs are no inputs, but files with other endings are, and with numbers that
 * shards do not have. */
static void test_output_among_inputs(void **unused)
{
    (void)unused;
    static const char *const endings[] = {".idx", ".nanogpt.meta.json"};
    static const struct pack_also also = {.endings = endings, .ending_count = 2};
    static const struct split split = {.count = 2, .sets = {{.name = "a"}, {.name = "val"}}};
    static const struct {
        bool numbered, split;
        const char *own[6], *others[6];
    } cases[] = {
        {false,
         false,
         {"out.bin.partial", "out.tmx", "out.dropped", "out.work/part", "out.idx"},
         {"out.txt", "out-00012.tmx", "out2.bin", "other/out.bin", "out-00001.idx", "out.npy"}},
        {true,
         false,
         {"out-00000.bin.0123456789abcdef", "out-00012.tmx", "out.dropped", "out.work/part",
          "out-00003.nanogpt.meta.json.partial", "out.partial"},
         {"out.txt", "out.idx", "out-1.bins", "out-20260101.idx", "out2-00000.bin", "out.a-00000.tmx"}},
        {false,
         true,
         {"out.a-00000.bin", "out.val-00012.mask", "out.dropped.0123456789abcdef", "out.work/part", "out.val-00000.idx",
          "out.partial"},
         {"out.b-00000.tmx", "out-00000.tmx", "out.a.bin", "out.value-00000.idx", "out.val-000.idx", "out.a.dropped"}},
    };
    struct tokmap_error error;
    struct work_folder *work = NULL;
    struct work_folder_options options = options_of();
    const char *in[] = {"."};
    options.name = ".//out";
    options.inputs.operands = in;
    options.inputs.count = 1;
    struct output_names names = {.name = options.name, .also = &also};
    options.inputs.is_output = output_names_either;
    options.inputs.output = &names;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        names.numbered = cases[i].numbered;
        names.split = cases[i].split ? &split : NULL;
        begin();
        assert_true(!mkdir("in", 0777) && !chdir("in") && !mkdir("other", 0777));
        file_write_text("a.txt", "an input");
        assert_int_equal(work_folder_open(&work, &options, &error), TOKMAP_OK);
        work_folder_close(work);
        for (size_t k = 0; k < 6 && cases[i].own[k]; k++)
            file_write_text(cases[i].own[k], "made by the command");
        assert_int_equal(work_folder_open(&work, &options, &error), TOKMAP_OK);
        assert_true(work_folder_found(work));
        work_folder_close(work);
        for (size_t k = 0; k < 6; k++) {
            file_write_text(cases[i].others[k], "an input");
            assert_int_equal(work_folder_open(&work, &options, &error), TOKMAP_ERROR_MISMATCH);
            assert_int_equal(unlink(cases[i].others[k]), 0);
        }
        assert_int_equal(chdir(".."), 0);
        scratch_remove("in");
    }
}

/* A process whose journal somebody has removed does not remove what another one has begun there since. */
static void test_taken_over(void **unused)
{
    (void)unused;
    begin();
    struct work_folder *work = opened(false);
    file_write_text("out.work/part-1", "mine");
    assert_int_equal(unlink("out.work/journal"), 0);
    struct work_folder *other = opened(false);
    assert_false(file_exists("out.work/part-1"));
    file_write_text("out.work/part-2", "of the other one");
    work_folder_remove(work);
    assert_true(file_exists("out.work/journal") && file_exists("out.work/part-2"));
    work_folder_remove(other);
    assert_false(file_exists("out.work"));
}

static bool is_work(uint32_t type, const char *entry)
{
    return entry ? !strcmp(entry, "work") : type == 18;
}

/* Earlier work of which nothing could be continued is refused only if it may be that of another kind of command. */
static void test_worthless(void **unused)
{
    (void)unused;
    struct tokmap_error error;
    struct work_folder *work = NULL;
    struct work_folder_options options = options_of();
    options.is_work = is_work;
    for (int round = 0; round < 5; round++) {
        make_three();
        if (round < 4) { /* without the last record */
            uint64_t end = 0;
            work = opened(true);
            assert_int_equal(count_records(work, &end), 3);
            assert_int_equal(work_folder_cut(work, end - 25, NULL), TOKMAP_OK);
            work_folder_close(work);
        }
        if (round == 1)
            file_write_text("out.work/work", "");
        facts[2].value = round == 3 ? "0123" : "4567";
        facts[0].value = round == 3 ? "2000" : "1000";
        options.create = round == 2;
        const bool stays = round == 1 || round >= 3;
        assert_int_equal(work_folder_open(&work, &options, &error), stays ? TOKMAP_ERROR_MISMATCH : TOKMAP_OK);
        assert_int_equal(file_exists("out.work/journal"), stays || options.create);
        assert_true(options.create ? work && !work_folder_found(work) : !work);
        work_folder_close(work);
        (void)unlink("out.work/work");
        facts[2].value = "0123";
    }
}

/* Whoever has locked the journal removes it, and not the one who names the shards. */
static void test_journal_of_a_set(void **unused)
{
    (void)unused;
    static const char *const endings[] = {""};
    struct set_work *set = NULL;
    struct set_work_options options = {.endings = endings, .sets = 1, .journaled = true};
    begin();
    assert_int_equal(set_work_open(&set, "out", &options, NULL), TOKMAP_OK);
    struct work_folder *work = opened(false);
    file_write_text("out.work/out-00000.bin.ready", "");
    set_work_abandon(set);
    assert_false(file_exists("out.work/out-00000.bin.ready"));
    assert_true(file_exists("out.work/journal"));
    work_folder_remove(work);
    assert_false(file_exists("out.work"));
}

static void file_holds(const char *path, const char *text)
{
    size_t bytes;
    char *found = file_read(path, &bytes);
    assert_int_equal(bytes, strlen(text));
    assert_memory_equal(found, text, bytes);
    free(found);
}

/* A folder of the user may have the name of ours, and files with names of ours. They stay, and so does what a link in
 * place of the folder leads to. */
static void test_files_of_the_user(void **unused)
{
    (void)unused;
    struct tokmap_error error;
    struct work_folder *work = NULL;
    struct work_folder_options options = options_of();
    begin();
    assert_int_equal(mkdir("out.work", 0777), 0);
    file_write_text("out.work/journal.new", "a diary");
    work_folder_settle("out");
    file_write_text("out.work/part-1", "mine");
    work_folder_sweep("out", owns);
    refused(TOKMAP_ERROR_EXISTS, "this file has the name of a new journal");
    file_holds("out.work/journal.new", "a diary");
    file_holds("out.work/part-1", "mine");
    assert_int_equal(rename("out.work/journal.new", "out.work/journal"), 0);
    options.start_over = true;
    for (int round = 0; round < 2; round++) {
        assert_int_equal(work_folder_open(&work, &options, &error), TOKMAP_ERROR_CORRUPT);
        assert_non_null(strstr(error.message, "it may be yours, and is not removed"));
        options.start_over = false;
    }
    file_holds("out.work/journal", "a diary");
    assert_int_equal(rename("out.work", "elsewhere"), 0);
    file_write_text("elsewhere/journal", "");
    file_write_text("elsewhere/journal.new", "");
    assert_int_equal(symlink("elsewhere", "out.work"), 0);
    assert_false(work_folder_exists("out"));
    work_folder_settle("out");
    work_folder_sweep("out", owns);
    refused(TOKMAP_ERROR_EXISTS, "this symbolic link has the name of the folder");
    assert_true(file_exists("elsewhere/journal") && file_exists("elsewhere/journal.new"));
    assert_int_equal(unlink("out.work"), 0);
    scratch_remove("elsewhere");
    /* What a power cut may leave of a new journal is ours. */
    static const char torn[] = "tokmap-jour\0\0\0\0\0\0\0";
    assert_int_equal(mkdir("out.work", 0777), 0);
    file_write("out.work/journal.new", torn, sizeof torn);
    work_folder_close(opened(false));
    assert_false(file_exists("out.work/journal.new"));
}

static void set_refused(const char *words)
{
    static const char *const endings[] = {""};
    struct tokmap_error error = {0};
    struct set_work *set = NULL;
    const struct set_work_options options = {.endings = endings, .sets = 1};
    assert_int_equal(set_work_open(&set, "out", &options, &error), TOKMAP_ERROR_EXISTS);
    assert_null(set);
    if (!strstr(error.message, words))
        fail_msg("no '%s' in: %s", words, error.message);
    assert_false(file_exists("out.partial"));
}

/* The same for whoever names shards: one file of another name keeps all of them. */
static void test_units_of_the_user(void **unused)
{
    (void)unused;
    static const char *const names[] = {"a.ready", "naming.partial", "journal", "journal.new", "notes.txt"};
    static const char *const endings[] = {""};
    struct set_work *set = NULL;
    const struct set_work_options options = {.endings = endings, .sets = 1};
    begin();
    assert_int_equal(mkdir("out.work", 0777), 0);
    file_write_text("out.work/out-00000.bin.ready", "ours");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[64], words[64];
        (void)snprintf(path, sizeof path, "out.work/%s", names[i]);
        (void)snprintf(words, sizeof words, "because '%s' in it does not belong to this output", names[i]);
        file_write_text(path, "mine");
        set_refused(words);
        set_work_clear("out");
        file_holds(path, "mine");
        if (strcmp(names[i], "journal") != 0) /* set_work_clear() has removed what a power cut had brought back */
            file_write_text("out.work/out-00000.bin.ready", "ours");
        file_holds("out.work/out-00000.bin.ready", "ours");
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(rename("out.work", "elsewhere"), 0);
    file_write_text("elsewhere/naming", NAME_FILES_HEAD "0\nout.work/out-00000.bin.ready\nout-00000.bin\nend\n");
    assert_int_equal(symlink("elsewhere", "out.work"), 0);
    set_refused("this symbolic link has the name of the folder");
    set_work_clear("out");
    file_holds("elsewhere/out-00000.bin.ready", "ours");
    assert_int_equal(unlink("out.work"), 0);
    assert_int_equal(unlink("elsewhere/naming"), 0);
    assert_int_equal(rename("elsewhere", "out.work"), 0);
    file_write_text("out.work/naming.partial", "tokmap-nam");
    file_write_text("out.work/journal.new", "");
    assert_int_equal(set_work_open(&set, "out", &options, NULL), TOKMAP_OK);
    assert_false(file_exists("out.work/out-00000.bin.ready") || file_exists("out.work/naming.partial"));
    set_work_abandon(set);
    assert_false(file_exists("out.work"));
}

/* Tasks that begin and end at the same time: one removes the folder that another one has just made. */
static void test_at_once(void **unused)
{
    (void)unused;
    enum { PROCESSES = 4, ROUNDS = 400 };
    pid_t children[PROCESSES];
    struct work_folder_options options = options_of();
    options.shared = true;
    begin();
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        for (int round = 0; !children[i] && round < ROUNDS; round++) {
            struct tokmap_error error = {0};
            struct work_folder *work = NULL;
            work_folder_settle("out");
            const enum tokmap_status status = work_folder_open(&work, &options, &error);
            if (status && status != TOKMAP_ERROR_BUSY)
                fprintf(stderr, "round %d: %s: %s\n", round, error.path, error.message);
            if (status && status != TOKMAP_ERROR_BUSY)
                _exit(1);
            if (work)
                work_folder_discard(work);
        }
        if (!children[i])
            _exit(0);
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status = -1;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_at_once),
        cmocka_unit_test(test_taken_over),
        cmocka_unit_test(test_worthless),
        cmocka_unit_test(test_journal_of_a_set),
        cmocka_unit_test(test_records_return),
        cmocka_unit_test(test_what_differs_is_named),
        cmocka_unit_test(test_list_of_inputs),
        cmocka_unit_test(test_pieces_of_large_inputs),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_older_journal),
        cmocka_unit_test(test_torn_tail),
        cmocka_unit_test(test_moved_record),
        cmocka_unit_test(test_damaged_facts),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_files_of_the_user),
        cmocka_unit_test(test_units_of_the_user),
        cmocka_unit_test(test_not_permitted),
        cmocka_unit_test(test_one_process),
        cmocka_unit_test(test_start_over),
        cmocka_unit_test(test_start_over_damaged),
        cmocka_unit_test(test_sweep),
        cmocka_unit_test(test_output_among_inputs),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
