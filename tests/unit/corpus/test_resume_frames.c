/* SPDX-License-Identifier: MIT */
/*
 * test_resume_frames.c - a compressed file of several frames is continued at the frame that a place names: nothing
 * before this frame is read again but the beginning of the file, and the records, the issues, and the bytes that damage
 * costs are those of a process that read the file from its beginning.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zdict.h>
#include <zstd.h>
#ifdef HAVE_BZIP2
#include <bzlib.h>
#endif
#ifdef HAVE_ISAL
#include <isa-l/igzip_lib.h>
#endif
#ifdef HAVE_LZ4
#include <lz4frame.h>
#endif
#ifdef HAVE_XZ
#include <lzma.h>
#endif

#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "corpus/corpus.h"
#include "corpus/corpus_issue.h"
#include "corpus/corpus_range.h"
#include "corpus/records.h"
#include "support/awkward_text.h"
#include "support/scratch_folder.h"

#define TEXT_BYTES ((size_t)900000)
#define HEAD_BYTES ((size_t)256 << 10) /* what a process reads of a file before it goes to the frame */
#define PLACES 512

typedef size_t pack_function(uint8_t *into, size_t room, const char *bytes, size_t count);

static size_t pack_zstd(uint8_t *into, size_t room, const char *bytes, size_t count)
{
    ZSTD_CCtx *zstd = ZSTD_createCCtx();
    assert_non_null(zstd);
    assert_false(ZSTD_isError(ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 1)));
    const size_t made = ZSTD_compress2(zstd, into, room, bytes, count);
    assert_false(ZSTD_isError(made));
    (void)ZSTD_freeCCtx(zstd);
    return made;
}

static uint8_t dictionaries[2][4096];
static size_t dictionary_bytes[2];
static uint64_t frames_packed; /* of the file */
static bool is_changing;       /* another dictionary comes in the middle of the file */

static void dictionary_make(int which)
{
    static char samples[60000];
    size_t sizes[1000], count = 0;
    for (int i = 0; i < 1000; i++) {
        sizes[i] = (size_t)sprintf(samples + count, which ? "{\"text\": \"%d and %d\"}" : "%d, then %d\n", i, i * i);
        count += sizes[i];
    }
    dictionary_bytes[which] =
        ZDICT_trainFromBuffer(dictionaries[which], sizeof dictionaries[which], samples, sizes, 1000);
    assert_false(ZDICT_isError(dictionary_bytes[which]));
}

/* As in .warc.zst: a skippable frame has the dictionary of the frames after it, every other one compressed. */
static size_t pack_dictionary(uint8_t *into, size_t room, const char *bytes, size_t count)
{
    const int which = is_changing && frames_packed >= 60;
    size_t made = 0;
    if (!frames_packed || (is_changing && frames_packed == 60)) {
        made = which ? ZSTD_compress(into + 8, room - 8, dictionaries[which], dictionary_bytes[which], 3)
                     : dictionary_bytes[which];
        if (!which)
            memcpy(into + 8, dictionaries[which], made);
        memcpy(into, "\x5d\x2a\x4d\x18", 4);
        store32(into + 4, (uint32_t)made);
        made += 8;
    }
    frames_packed++;
    ZSTD_CCtx *zstd = ZSTD_createCCtx();
    assert_non_null(zstd);
    assert_false(ZSTD_isError(ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 1)));
    assert_false(ZSTD_isError(ZSTD_CCtx_loadDictionary(zstd, dictionaries[which], dictionary_bytes[which])));
    const size_t frame = ZSTD_compress2(zstd, into + made, room - made, bytes, count);
    assert_false(ZSTD_isError(frame));
    (void)ZSTD_freeCCtx(zstd);
    return made + frame;
}

#ifdef HAVE_ISAL
static size_t pack_gzip(uint8_t *into, size_t room, const char *bytes, size_t count)
{
    struct isal_zstream gzip;
    isal_deflate_stateless_init(&gzip);
    gzip.gzip_flag = IGZIP_GZIP;
    gzip.end_of_stream = 1;
    gzip.next_in = (uint8_t *)(uintptr_t)bytes;
    gzip.avail_in = (uint32_t)count;
    gzip.next_out = into;
    gzip.avail_out = (uint32_t)room;
    assert_int_equal(isal_deflate_stateless(&gzip), COMP_OK);
    return room - gzip.avail_out;
}
#endif

#ifdef HAVE_BZIP2
static size_t pack_bzip2(uint8_t *into, size_t room, const char *bytes, size_t count)
{
    unsigned made = (unsigned)room;
    assert_int_equal(BZ2_bzBuffToBuffCompress((char *)into, &made, (char *)(uintptr_t)bytes, (unsigned)count, 1, 0, 0),
                     BZ_OK);
    return made;
}
#endif

#ifdef HAVE_XZ
/* Every other stream has padding behind it. */
static size_t pack_xz(uint8_t *into, size_t room, const char *bytes, size_t count)
{
    size_t made = 0;
    assert_int_equal(
        lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, NULL, (const uint8_t *)bytes, count, into, &made, room), LZMA_OK);
    if (count % 2) {
        memset(into + made, 0, 8);
        made += 8;
    }
    return made;
}
#endif

#ifdef HAVE_LZ4
static size_t pack_lz4(uint8_t *into, size_t room, const char *bytes, size_t count)
{
    const LZ4F_preferences_t with_hash = {.frameInfo.contentChecksumFlag = LZ4F_contentChecksumEnabled};
    const size_t made = LZ4F_compressFrame(into, room, bytes, count, &with_hash);
    assert_false(LZ4F_isError(made));
    return made;
}
#endif

/* ---- files ---- */

struct file {
    char *text;
    uint8_t *packed;
    size_t count, packed_count;
};

/* Records of random letters and digits, so that the file is much larger than its head when it is compressed. */
static void text_make(struct file *file, uint64_t *random, bool lines)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    file->text = malloc(TEXT_BYTES + 4096);
    assert_non_null(file->text);
    file->count = 0;
    while (file->count < TEXT_BYTES) {
        const size_t bytes = 1 + random_below(random, 2000);
        if (lines)
            file->count += (size_t)sprintf(file->text + file->count, "{\"text\": \"");
        for (size_t i = 0; i < bytes; i++)
            file->text[file->count++] = letters[random_below(random, 64)];
        file->count += (size_t)sprintf(file->text + file->count, lines ? "\"}\n" : "\n");
    }
}

/* Packs the text into frames of up to `most` bytes, some of which are empty. */
static void file_pack(struct file *file, pack_function *pack, uint64_t *random, size_t most)
{
    const size_t room = 3 * TEXT_BYTES;
    file->packed = malloc(room);
    assert_non_null(file->packed);
    file->packed_count = 0;
    frames_packed = 0;
    for (size_t done = 0, part; done < file->count; done += part) {
        part = random_below(random, 8) ? 1 + random_below(random, most) : 0;
        part = part < file->count - done ? part : file->count - done;
        file->packed_count +=
            pack(file->packed + file->packed_count, room - file->packed_count, file->text + done, part);
    }
    file_write("in", file->packed, file->packed_count);
}

static void file_free(struct file *file)
{
    free(file->text);
    free(file->packed);
}

/* ---- reading ---- */

struct read {
    struct bytes_buffer out; /* documents with their numbers, and issues with their places */
    struct corpus_counts counts;
    struct corpus_place places[PLACES];
    size_t ends[PLACES]; /* of the output, at that place */
    uint64_t batches;
};

static struct corpus_options options_of(bool lines)
{
    return (struct corpus_options){.format = lines ? CORPUS_JSONL : CORPUS_TEXT,
                                   .field = "text",
                                   .cut_anywhere = true,
                                   .skip = true,
                                   .batch_bytes = 40000,
                                   .record_limit = 1 << 20,
                                   .document_limit = 1 << 22};
}

static void batch_note(struct read *read, const struct corpus_batch *batch, const struct corpus_options *options)
{
    char row[64];
    for (uint64_t i = 0; i < batch->document_count; i++) {
        const struct corpus_document *document = &batch->documents[i];
        (void)snprintf(row, sizeof row, "%" PRIu64 ":", document->record);
        assert_true(document->resumed || bytes_append(&read->out, row, strlen(row)));
        assert_true(bytes_append(&read->out, document->text, document->bytes));
        assert_true(document->unfinished || bytes_append(&read->out, ".", 1));
    }
    for (uint64_t i = 0; i < batch->issue_count; i++) {
        struct tokmap_error error;
        (void)corpus_issue_to_error(&batch->issues[i], options, &error);
        (void)snprintf(row, sizeof row, "!%d at %" PRIu64, (int)error.status, error.offset);
        assert_true(bytes_append(&read->out, row, strlen(row)));
    }
}

/* Reads the file, from a place on if there is one. (Where batches of a text end depends on where the reading began, and
 * what is noted does not.) */
static void read_file(struct read *read, const struct corpus_options *options, const struct corpus_place *from)
{
    static const char *const name = "in";
    struct corpus *corpus;
    struct corpus_batch batch = {0};
    struct tokmap_error error;
    uint64_t carried = 0;
    assert_int_equal(corpus_open(&corpus, &name, 1, options, &error), TOKMAP_OK);
    enum tokmap_status status = from ? corpus_resume(corpus, from, &carried, &error) : TOKMAP_OK;
    while (!status && !(status = corpus_next(corpus, &batch, &error))) {
        assert_int_equal(records_to_documents(options, &batch, &error), TOKMAP_OK);
        batch_note(read, &batch, options);
        corpus_counts_add(&read->counts, &batch.counts);
        assert_true(read->batches < PLACES);
        read->ends[read->batches] = read->out.count;
        read->places[read->batches++] = batch.place;
    }
    assert_int_equal(status, TOKMAP_END);
    corpus_batch_free(&batch);
    corpus_close(corpus);
}

/* From one place at which reading continues to the next: more under an emulator. */
static uint64_t places_step(void)
{
    return awkward_share() > 3 ? 7 : 3;
}

/* Continues at some places of `whole`. ruined: what a process must not read is overwritten before. Returns at how
 * many places this was some of the file. */
static uint64_t check_places(const struct file *file, const struct read *whole, const struct corpus_options *options,
                             bool ruined)
{
    uint64_t passed = 0, before = 0;
    for (uint64_t i = 0; i + 1 < whole->batches; i += places_step()) {
        const struct corpus_place *place = &whole->places[i];
        struct read rest = {.batches = 0};
        if (!place->open || place->unfit)
            continue;
        assert_true(place->frame_begins <= place->offset && place->frame_begins >= before);
        before = place->frame_begins;
        const bool some = place->frame_stored > HEAD_BYTES;
        passed += some;
        if (ruined && some) {
            uint8_t *bytes = malloc(file->packed_count);
            assert_non_null(bytes);
            memcpy(bytes, file->packed, file->packed_count);
            memset(bytes + HEAD_BYTES, 0xA5, place->frame_stored - HEAD_BYTES);
            file_write("in", bytes, file->packed_count);
            free(bytes);
        }
        read_file(&rest, options, place);
        assert_int_equal(rest.out.count, whole->out.count - whole->ends[i]);
        assert_memory_equal(rest.out.bytes, whole->out.bytes + whole->ends[i], rest.out.count);
        bytes_free(&rest.out);
        if (ruined && some)
            file_write("in", file->packed, file->packed_count);
    }
    return passed;
}

/* A frame that cannot be one, as a journal of somebody else could name it, is not used: behind the place, or behind the
 * end of the file. The file is read from its beginning instead. */
static void check_forged(const struct file *file, const struct read *whole, const struct corpus_options *options)
{
    const uint64_t middle = whole->batches / 2;
    for (int forged = 0; forged < 2; forged++) {
        struct corpus_place place = whole->places[middle];
        struct read rest = {.batches = 0};
        assert_true(place.open && place.frame_stored > HEAD_BYTES);
        if (forged)
            place.frame_stored = file->packed_count + 1;
        else
            place.frame_begins = place.offset + 1;
        read_file(&rest, options, &place);
        assert_int_equal(rest.out.count, whole->out.count - whole->ends[middle]);
        assert_memory_equal(rest.out.bytes, whole->out.bytes + whole->ends[middle], rest.out.count);
        bytes_free(&rest.out);
    }
}

static void check_packed(pack_function *pack, bool lines, size_t most)
{
    uint64_t random = most;
    struct file file;
    struct read whole = {.batches = 0};
    const struct corpus_options options = options_of(lines);
    text_make(&file, &random, lines);
    file_pack(&file, pack, &random, most);
    read_file(&whole, &options, NULL);
    assert_int_equal(whole.counts.stored_bytes, file.packed_count);
    assert_int_equal(whole.counts.files_skipped, 0);
    assert_true(check_places(&file, &whole, &options, true) > whole.batches / (4 * places_step()));
    check_forged(&file, &whole, &options);
    bytes_free(&whole.out);

    /* Damage in the last third: what is lost is the same, wherever the reading began. */
    memset(file.packed + file.packed_count * 3 / 4, 0x5A, 64);
    file_write("in", file.packed, file.packed_count);
    whole = (struct read){.batches = 0};
    read_file(&whole, &options, NULL);
    assert_true(whole.counts.files_skipped + whole.counts.records_skipped > 0);
    const uint64_t passed = check_places(&file, &whole, &options, false);
    assert_true(passed || !lines); /* a damaged text is left out as a whole */
    bytes_free(&whole.out);
    file_free(&file);
}

static void check_kind(pack_function *pack)
{
    assert_int_equal(chdir(folder), 0);
    check_packed(pack, true, 60000);
    check_packed(pack, true, 3000); /* hundreds of frames in each batch */
    check_packed(pack, false, 200000);
}

static void test_zstd(void **unused)
{
    (void)unused;
    check_kind(pack_zstd);
}

static void test_dictionary(void **unused)
{
    (void)unused;
    dictionary_make(0);
    dictionary_make(1);
    is_changing = false;
    check_kind(pack_dictionary);
    /* Two such files after another: a frame is not continued at if the dictionary for it would not be read before. */
    is_changing = true;
    uint64_t random = 1;
    struct file file;
    struct read whole = {.batches = 0};
    const struct corpus_options options = options_of(true);
    text_make(&file, &random, true);
    file_pack(&file, pack_dictionary, &random, 20000);
    assert_true(frames_packed > 70);
    read_file(&whole, &options, NULL);
    assert_int_equal(whole.counts.files_skipped + whole.counts.records_skipped, 0);
    assert_int_equal(whole.counts.stream_bytes, file.count);
    assert_true(check_places(&file, &whole, &options, false) > 0);
    bytes_free(&whole.out);
    file_free(&file);
}

static void test_gzip(void **unused)
{
    (void)unused;
#ifdef HAVE_ISAL
    check_kind(pack_gzip);
#else
    skip();
#endif
}

static void test_bzip2(void **unused)
{
    (void)unused;
#ifdef HAVE_BZIP2
    check_kind(pack_bzip2);
#else
    skip();
#endif
}

static void test_xz(void **unused)
{
    (void)unused;
#ifdef HAVE_XZ
    check_kind(pack_xz);
#else
    skip();
#endif
}

static void test_lz4(void **unused)
{
    (void)unused;
#ifdef HAVE_LZ4
    check_kind(pack_lz4);
#else
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zstd),  cmocka_unit_test(test_dictionary), cmocka_unit_test(test_gzip),
        cmocka_unit_test(test_bzip2), cmocka_unit_test(test_xz),         cmocka_unit_test(test_lz4),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
