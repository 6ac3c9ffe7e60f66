/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/*
 * Two threads of one process share nothing: each opens its own vocabularies, dataset, run and loader at the same time
 * as the other, encodes, trains and verifies, and gets what one thread alone gets. Under the thread sanitizer (`make
 * tsan`) this shows that no room keeps state that two handles share.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "engine/tokenizer.h"
#include "platform/os.h"
#include "support/made.h"
#include "support/run_help.h"
#include "support/scratch.h"
#include "tokmap/tokmap.h"
#include "vocabulary/vocabulary.h"

#define THREADS 2
#define ROUNDS 4
#define TEXTS 40
#define IDS 8192

static char folder[512];

/* ---- vocabulary files ---- */

struct file {
    uint8_t bytes[1 << 16];
    size_t count;
};

static void put(struct file *file, const void *bytes, size_t count)
{
    assert_true(file->count + count <= sizeof file->bytes);
    memcpy(file->bytes + file->count, bytes, count);
    file->count += count;
}

static void put_varint(struct file *file, uint64_t value)
{
    for (; value >= 128; value >>= 7)
        put(file, &(uint8_t){(uint8_t)(value | 128)}, 1);
    put(file, &(uint8_t){(uint8_t)value}, 1);
}

static void put_field(struct file *file, uint32_t number, const void *bytes, size_t count)
{
    put_varint(file, number << 3 | 2);
    put_varint(file, count);
    put(file, bytes, count);
}

/* A SentencePiece .model of all words of one to three letters of an alphabet of `letters`, with scores in a random
 * order. */
static void make_model(const char *path, uint64_t seed, unsigned letters)
{
    static struct file file;
    file.count = 0;
    for (unsigned i = 0; i < 4 + letters + letters * letters + letters * letters * letters; i++) {
        static const char *const specials[] = {"<unk>", "<s>", "</s>", "\xe2\x96\x81"};
        struct file extent = {.count = 0};
        char word[4] = "";
        const char *text = i < 4 ? specials[i] : word;
        float score = i < 4 ? 0 : -(float)(random_below(&seed, 100000) + letters);
        unsigned number = i - 4, length = 1, range = letters;
        for (; i >= 4 && number >= range; length++, range *= letters)
            number -= range;
        for (unsigned k = 0; i >= 4 && k < length; k++, number /= letters)
            word[k] = (char)('a' + number % letters);
        uint8_t kind = i == 0 ? 2 : i < 3 ? 3 : 1;
        put_field(&extent, 1, text, strlen(text));
        put_varint(&extent, 2 << 3 | 5);
        put(&extent, &score, sizeof score);
        put_varint(&extent, 3 << 3);
        put_varint(&extent, kind);
        put_field(&file, 1, extent.bytes, extent.count);
    }
    const uint8_t bpe[] = {3 << 3, 2}, keep_spaces[] = {4 << 3, 0};
    put_field(&file, 2, bpe, sizeof bpe);
    put_field(&file, 3, keep_spaces, sizeof keep_spaces);
    file_write(path, file.bytes, file.count);
}

/* A rank file of all bytes and of the pairs of the first `letters` letters. */
static void make_ranks(const char *path, unsigned letters)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static struct file file;
    file.count = 0;
    for (unsigned rank = 0; rank < 256 + letters * letters; rank++) {
        char line[32];
        unsigned pair = rank - 256, one = rank < 256 ? rank : 'a' + pair / letters, two = 'a' + pair % letters;
        unsigned bits = one << 16 | (rank < 256 ? 0 : two << 8);
        (void)snprintf(line, sizeof line, "%c%c%c= %u\n", digits[bits >> 18], digits[bits >> 12 & 63],
                       rank < 256 ? '=' : digits[bits >> 6 & 63], rank);
        put(&file, line, strlen(line));
    }
    file_write(path, file.bytes, file.count);
}

/* ---- what one thread does ---- */

struct ids {
    uint64_t count;
    uint8_t bytes[IDS * 4];
};

#define VOCABULARIES 3

struct work {
    char vocabularies[VOCABULARIES][600];
    struct made made;
    char texts[TEXTS][200];
    struct ids alone[VOCABULARIES]; /* what encoding gives with no other thread */
    uint32_t *start;                /* both threads wait for it */
    char fault[1000];               /* "": none. (cmocka's assertions work in the main thread only.) */
};

static bool failed(struct work *work, const char *what, const struct tokmap_error *error)
{
    (void)snprintf(work->fault, sizeof work->fault, "%s: %s", what, error ? error->message : "");
    return false;
}

static bool encode(struct work *work, unsigned which, struct ids *ids)
{
    const struct tokmap_tokenizer_options options = {.pattern = which == 1 ? "gpt2" : NULL};
    struct tokenizer *tokenizer;
    struct tokenizer_state *state;
    struct tokmap_error error;
    struct tokmap_text texts[TEXTS];
    uint64_t ends[TEXTS];
    for (unsigned i = 0; i < TEXTS; i++)
        texts[i] = (struct tokmap_text){work->texts[i], strlen(work->texts[i])};
    const struct tokenizer_batch batch = {.documents = texts, .count = TEXTS};
    struct tokenizer_out out = {.tokens = ids->bytes, .capacity = IDS, .ends = ends};
    memset(ids, 0, sizeof *ids);
    if (vocabulary_open(&tokenizer, work->vocabularies[which], &options, &error))
        return failed(work, work->vocabularies[which], &error);
    enum tokmap_status status = tokenizer_state_new(&state, tokenizer, &error);
    if (!status) {
        status = tokenizer_encode(state, &batch, &out, &error);
        tokenizer_state_free(state);
    }
    tokenizer_close(tokenizer);
    ids->count = out.count;
    return status ? failed(work, "encode", &error) : true;
}

static bool train(struct work *work, uint32_t threads, const struct tokmap_run *run, struct tokmap_error *error)
{
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    struct tokmap_loader *loader;
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    int32_t inputs[4 * 50], targets[4 * 50];
    struct tokmap_out out = TOKMAP_OUT_INIT;
    bool right = true;
    out.inputs = inputs;
    out.targets = targets;
    options.threads = threads;
    if (tokmap_loader_open(&loader, run, &options, error))
        return failed(work, "loader_open", error);
    enum tokmap_status status;
    while (right && !(status = tokmap_loader_next(loader, &out, NULL, &batch, error)))
        for (uint64_t i = 0; i < batch.count; i++)
            for (uint64_t j = 0; right && j < 50; j++)
                right = (uint32_t)inputs[i * 50 + j] == made_token(&work->made, batch.places[i].first_token + j) &&
                        (uint32_t)targets[i * 50 + j] == made_token(&work->made, batch.places[i].first_token + j + 1);
    tokmap_loader_close(loader);
    return right && status == TOKMAP_END ? true
                                         : failed(work,
                                                  "a row is not what the dataset "
                                                  "has",
                                                  right ? error : NULL);
}

static bool read_and_verify(struct work *work, unsigned round)
{
    struct tokmap_dataset_options how = TOKMAP_DATASET_OPTIONS_INIT;
    struct tokmap_verify_options verify = TOKMAP_VERIFY_OPTIONS_INIT;
    struct simple_run options = SIMPLE_RUN_INIT;
    struct tokmap_dataset *dataset;
    struct tokmap_run *run;
    struct tokmap_error error;
    options.data = work->made.name;
    options.seq_len = 50;
    options.batch = 4;
    options.passes = 1;
    options.seed = round;
    options.reading = how.reading = round % 2 ? TOKMAP_READ_PREAD : TOKMAP_READ_MAPPED;
    verify.threads = 2;
    if (tokmap_dataset_open(&dataset, work->made.name, &how, &error))
        return failed(work, "dataset_open", &error);
    enum tokmap_status status = tokmap_dataset_verify(dataset, &verify, NULL, &error);
    tokmap_dataset_close(dataset);
    if (status)
        return failed(work, "verify", &error);
    if (simple_run_open(&run, &options, &error))
        return failed(work, "run_make", &error);
    bool right = train(work, round / 2 % 2, run, &error);
    tokmap_run_close(run);
    return right;
}

static void body(void *user)
{
    struct work *work = user;
    struct ids *ids = malloc(sizeof *ids);
    __atomic_sub_fetch(work->start, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(work->start, __ATOMIC_ACQUIRE))
        os_relax();
    for (unsigned round = 0; round < ROUNDS && !work->fault[0]; round++) {
        for (unsigned which = 0; which < VOCABULARIES; which++)
            if (encode(work, which, ids) && memcmp(ids, &work->alone[which], sizeof *ids) != 0)
                (void)failed(work, "ids differ from those of one thread", NULL);
        if (!work->fault[0])
            (void)read_and_verify(work, round);
    }
    free(ids);
}

/* ---- both threads ---- */

static void prepare(struct work *work, unsigned number, uint32_t *start)
{
    const uint64_t sizes[] = {2000 + 100 * number, 3000};
    char name[40];
    uint64_t seed = number + 1;
    memset(work, 0, sizeof *work);
    work->start = start;
    (void)snprintf(work->vocabularies[0], sizeof work->vocabularies[0], "bytes");
    (void)snprintf(work->vocabularies[1], sizeof work->vocabularies[1], "%s/%u.tiktoken", folder, number);
    (void)snprintf(work->vocabularies[2], sizeof work->vocabularies[2], "%s/%u.model", folder, number);
    make_ranks(work->vocabularies[1], 6 + number);
    make_model(work->vocabularies[2], seed, 8 + number);
    (void)snprintf(name, sizeof name, "data%u", number);
    made_new(&work->made, folder, name, 2, 300 + number, sizes,
             2); /* few ids, so that all of them occur and verify is content */
    for (unsigned i = 0; i < TEXTS; i++)
        for (unsigned k = 0; k < 60; k++)
            work->texts[i][k] = random_below(&seed, 5) ? (char)('a' + random_below(&seed, 6)) : ' ';
    for (unsigned which = 0; which < VOCABULARIES; which++)
        if (!encode(work, which, &work->alone[which]))
            fail_msg("%s", work->fault);
}

static void two_threads_share_nothing(void **unused)
{
    static struct work works[THREADS];
    struct os_thread *threads[THREADS];
    uint32_t start = THREADS;
    (void)unused;
    scratch_make(folder);
    for (unsigned i = 0; i < THREADS; i++)
        prepare(&works[i], i, &start);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(os_thread_start(&threads[i], "test", body, &works[i]), 0);
    for (unsigned i = 0; i < THREADS; i++)
        os_thread_join(threads[i]);
    for (unsigned i = 0; i < THREADS; i++) {
        if (works[i].fault[0])
            fail_msg("thread %u: %s", i, works[i].fault);
        made_free(&works[i].made);
    }
    scratch_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_threads_share_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
