/* SPDX-License-Identifier: MIT */
/*
 * test_foreign.c - the headers of other projects' token files, with one fault each, and the grammar of their names. The
 * files themselves are tested by tests/cli/index-*.sh.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "common/bytes.h"
#include "format/foreign/foreign_formats.h"
#include "format/foreign/foreign_index.h"
#include "format/foreign/foreign_name.h"
#include "format/foreign/npy.h"

static void test_names(void **unused)
{
    (void)unused;
    static const struct {
        const char *name;
        enum foreign_kind kind;
        const char *path;
        uint64_t width, offset, eod, bos, vocabulary;
    } good[] = {
        {"data/web", FOREIGN_UNNAMED, "data/web", 0, 0, TOKMAP_NO_ID, TOKMAP_NO_ID, 0},
        {"raw:x,width=2,eod=50256", FOREIGN_RAW, "x", 2, 0, 50256, TOKMAP_NO_ID, 0},
        {"raw:a,b=1,width=8", FOREIGN_RAW, "a,b=1", 8, 0, TOKMAP_NO_ID, TOKMAP_NO_ID, 0},
        {"raw:a,eod=x,width=1", FOREIGN_RAW, "a,eod=x", 1, 0, TOKMAP_NO_ID, TOKMAP_NO_ID, 0},
        {"./raw:x", FOREIGN_UNNAMED, "./raw:x", 0, 0, TOKMAP_NO_ID, TOKMAP_NO_ID, 0},
        {"olmo:x,vocab=100278,bos=5,offset=16,width=4", FOREIGN_OLMO, "x", 4, 16, TOKMAP_NO_ID, 5, 100278},
        {"a.npy,eod=0", FOREIGN_UNNAMED, "a.npy", 0, 0, 0, TOKMAP_NO_ID, 0},
        {"megatron:a:b", FOREIGN_MEGATRON, "a:b", 0, 0, TOKMAP_NO_ID, TOKMAP_NO_ID, 0},
    };
    static const char *const bad[] = {
        "raw:",
        "raw:,width=2",
        "raw:x,width=3",
        "raw:x,width=2,width=2",
        "raw:x,eod=4294967296",
        "raw:x,vocab=0",
        "raw:x,vocab=5,eod=5",
        "npy:x,width=2",
        "llmc:x,offset=4",
        "datatrove:x,offset=0",
        "raw:x,offset=99999999999999999999",
    };
    struct foreign_name name;
    struct tokmap_error error;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(foreign_name_parse(&name, good[i].name, &error), TOKMAP_OK);
        assert_int_equal(name.kind, good[i].kind);
        assert_int_equal(name.path_bytes, strlen(good[i].path));
        assert_memory_equal(name.path, good[i].path, name.path_bytes);
        assert_true(name.words.width == good[i].width && name.words.offset == good[i].offset);
        assert_true(name.words.eod_id == good[i].eod && name.words.bos_id == good[i].bos);
        assert_true(name.words.vocabulary == good[i].vocabulary);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        memset(&error, 0, sizeof error);
        assert_int_equal(foreign_name_parse(&name, bad[i], &error), TOKMAP_ERROR_ARGUMENT);
        assert_true(error.message[0]);
    }
}

static void test_llmc(void **unused)
{
    (void)unused;
    uint8_t head[LLMC_HEAD_BYTES] = {0};
    struct foreign_layout layout;
    struct tokmap_error error;
    store32(head, 20240520);
    store32(head + 4, 1);
    store32(head + 8, 1000);
    assert_true(llmc_is(head, 16));
    assert_int_equal(llmc_parse(&layout, "x", head, sizeof head, 3024, &error), TOKMAP_OK);
    assert_true(layout.tokens == 1000 && layout.element == ELEMENT_U16 && layout.offset == 1024);
    assert_true(layout.bos_id == 50256);
    assert_int_equal(llmc_parse(&layout, "x", head, sizeof head, 3023, &error), TOKMAP_ERROR_TRUNCATED);
    assert_int_equal(error.offset, 3023);
    assert_int_equal(llmc_parse(&layout, "x", head, sizeof head, 3026, &error), TOKMAP_ERROR_TRUNCATED);
    assert_int_equal(llmc_parse(&layout, "x", head, 100, 100, &error), TOKMAP_ERROR_TRUNCATED);
    store32(head + 4, 7);
    assert_int_equal(llmc_parse(&layout, "x", head, sizeof head, 3024, &error), TOKMAP_ERROR_VERSION);
    store32(head, 20240801);
    assert_int_equal(llmc_parse(&layout, "x", head, sizeof head, 5024, &error), TOKMAP_OK);
    assert_true(layout.element == ELEMENT_U32 && layout.bos_id == 128000);
    store32(head + 8, UINT32_MAX);
    assert_int_equal(llmc_parse(&layout, "x", head, sizeof head, 5024, &error), TOKMAP_ERROR_CORRUPT);
    store32(head, 20240522);
    assert_int_equal(llmc_parse(&layout, "x", head, sizeof head, 5024, &error), TOKMAP_ERROR_UNSUPPORTED);
}

static enum tokmap_status npy_try(unsigned version, const char *dictionary, uint64_t token_bytes,
                                  struct foreign_layout *layout)
{
    uint8_t head[400] = "\x93NUMPY";
    const size_t bytes = strlen(dictionary), at = version == 1 ? 10 : 12;
    struct tokmap_error error = {0};
    store16(head + 6, (uint16_t)version);
    store32(head + 8, (uint32_t)bytes);
    memcpy(head + at, dictionary, bytes);
    enum tokmap_status status = npy_parse(layout, "x", head, at + bytes, at + bytes + token_bytes, &error);
    assert_true(!status || error.message[0]);
    return status;
}

static void test_npy(void **unused)
{
    (void)unused;
    struct foreign_layout layout;
    const char *plain = "{'descr': '<u2', 'fortran_order': False, 'shape': (7,), }   \n";
    for (unsigned version = 1; version <= 3; version++)
        assert_int_equal(npy_try(version, plain, 14, &layout), TOKMAP_OK);
    assert_true(layout.tokens == 7 && layout.element == ELEMENT_U16 && layout.offset == 12 + strlen(plain));
    assert_int_equal(npy_try(1, "{\"shape\":(2,),\"descr\":\"<i8\",\"fortran_order\":True}", 16, &layout), TOKMAP_OK);
    assert_int_equal(layout.element, ELEMENT_I64);
    assert_int_equal(npy_try(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (3,)}", 3, &layout), TOKMAP_OK);
    assert_int_equal(npy_try(4, plain, 14, &layout), TOKMAP_ERROR_VERSION);
    assert_int_equal(npy_try(1, plain, 13, &layout), TOKMAP_ERROR_TRUNCATED);
    assert_int_equal(npy_try(1, plain, 16, &layout), TOKMAP_ERROR_TRUNCATED);
    static const struct {
        const char *text;
        enum tokmap_status status;
    } bad[] = {
        {"{'descr': '>u2', 'fortran_order': False, 'shape': (7,)}", TOKMAP_ERROR_UNSUPPORTED},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (7,)}", TOKMAP_ERROR_UNSUPPORTED},
        {"{'descr': [('a', '<u2')], 'fortran_order': False, 'shape': (7,)}", TOKMAP_ERROR_UNSUPPORTED},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (7, 1)}", TOKMAP_ERROR_UNSUPPORTED},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': ()}", TOKMAP_ERROR_UNSUPPORTED},
        {"{'descr': '<u2', 'fortran_order': False}", TOKMAP_ERROR_CORRUPT},
        {"{'descr': '<u2', 'descr': '<u2', 'fortran_order': False, 'shape': (7,)}", TOKMAP_ERROR_CORRUPT},
        {"{'descr': '<u2', 'fortran_order': 0, 'shape': (7,)}", TOKMAP_ERROR_CORRUPT},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (99999999999999999999,)}", TOKMAP_ERROR_CORRUPT},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (18446744073709551615,)}", TOKMAP_ERROR_TRUNCATED},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (9223372036854775815,)}", TOKMAP_ERROR_TRUNCATED},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (7,)", TOKMAP_ERROR_CORRUPT},
        {"{'descr: ", TOKMAP_ERROR_CORRUPT},
        {"", TOKMAP_ERROR_CORRUPT},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(npy_try(1, bad[i].text, 14, &layout), bad[i].status);
}

/* What numpy.load() says about these shapes, in versions 1.0, 2.0, and 3.0. */
static void test_npy_shapes(void **unused)
{
    static const struct {
        const char *shape;
        bool good[3];
    } shapes[] = {
        {"(7,)", {true, true, true}},      {"( 7 ,\t)", {true, true, true}},  {"(7)", {false, false, false}},
        {"(7L,)", {true, true, false}},    {"(7 L,)", {true, true, false}},   {"(7L)", {false, false, false}},
        {"(7LL,)", {false, false, false}}, {"(7l,)", {false, false, false}},  {"(07,)", {false, false, false}},
        {"(7,,)", {false, false, false}},  {"(7 7)", {false, false, false}},  {"(,)", {false, false, false}},
        {"(7,)L", {false, false, false}},  {"7", {false, false, false}},      {"[7]", {false, false, false}},
        {"(7.0,)", {false, false, false}}, {"(7_0,)", {false, false, false}}, {"(", {false, false, false}},
    };
    struct foreign_layout layout;
    (void)unused;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (unsigned version = 1; version <= 3; version++) {
            char text[100];
            (void)snprintf(text, sizeof text, "{'descr': '<u2', 'fortran_order': False, 'shape': %s, }\n",
                           shapes[i].shape);
            const enum tokmap_status wanted = shapes[i].good[version - 1] ? TOKMAP_OK : TOKMAP_ERROR_CORRUPT;
            if (npy_try(version, text, 14, &layout) != wanted)
                fail_msg("%s, version %u", shapes[i].shape, version);
        }
    assert_int_equal(npy_try(1 | 1 << 8, "{'descr': '<u2', 'fortran_order': False, 'shape': (7,), }", 14, &layout),
                     TOKMAP_ERROR_VERSION);
}

/* Three sequences of 4, 0, and 6 tokens in two documents. */
static size_t megatron_make(uint8_t map[256])
{
    static const uint32_t lengths[] = {4, 0, 6};
    static const uint64_t starts[] = {0, 8, 8}, documents[] = {0, 1, 3};
    memset(map, 0, 256);
    memcpy(map, "MMIDIDX\0", 9);
    store64(map + 9, 1);
    map[17] = ELEMENT_U16;
    store64(map + 18, 3);
    store64(map + 26, 3);
    for (size_t i = 0; i < 3; i++) {
        store32(map + 34 + 4 * i, lengths[i]);
        store64(map + 46 + 8 * i, starts[i]);
        store64(map + 70 + 8 * i, documents[i]);
    }
    return 94;
}

static enum tokmap_status megatron_try(const uint8_t *map, size_t bytes, uint64_t bin_bytes)
{
    const struct foreign_bytes in_memory = {"x.idx", map, bytes, -1};
    struct megatron_index index;
    struct foreign_layout layout;
    struct tokmap_error error = {0};
    enum tokmap_status status =
        megatron_parse(&index, "x.idx", map, (size_t)min64(bytes, MEGATRON_HEAD_BYTES), bytes, &error);
    if (!status)
        status = megatron_check_ends(&index, &in_memory, "x.bin", bin_bytes, &layout, &error);
    if (!status)
        status = megatron_check(&index, &in_memory, &error);
    assert_true(!status || error.message[0]);
    return status;
}

static void test_megatron(void **unused)
{
    (void)unused;
    uint8_t map[256];
    struct foreign_index index = {
        .bytes = {"x.idx", map, sizeof map, -1}, .is_megatron = true, .count = 2, .tokens = 10};
    struct tokmap_error error;
    uint64_t end;
    const size_t bytes = megatron_make(map);
    assert_int_equal(megatron_try(map, bytes, 20), TOKMAP_OK);
    assert_int_equal(megatron_parse(&index.megatron, "x.idx", map, MEGATRON_HEAD_BYTES, bytes, &error), TOKMAP_OK);
    assert_int_equal(foreign_index_end(&index, 0, &end, &error), TOKMAP_OK);
    assert_int_equal(end, 4);
    assert_int_equal(foreign_index_end(&index, 1, &end, &error), TOKMAP_OK);
    assert_int_equal(end, 10);
    assert_int_equal(megatron_try(map, bytes, 19), TOKMAP_ERROR_TRUNCATED);
    assert_int_equal(megatron_try(map, bytes, 22), TOKMAP_ERROR_TRUNCATED);
    assert_int_equal(megatron_try(map, bytes - 1, 20), TOKMAP_ERROR_TRUNCATED);
    assert_int_equal(megatron_try(map, bytes + 3, 20), TOKMAP_ERROR_UNSUPPORTED); /* modes */
    static const struct {
        size_t at;
        uint64_t value;
        enum tokmap_status status;
    } faults[] = {
        {0, 0, TOKMAP_ERROR_FORMAT},
        {9, 2, TOKMAP_ERROR_VERSION},
        {18, 4, TOKMAP_ERROR_TRUNCATED},
        {18, UINT64_MAX, TOKMAP_ERROR_TRUNCATED},
        {18, (uint64_t)1 << 62, TOKMAP_ERROR_TRUNCATED},
        {26, 0, TOKMAP_ERROR_TRUNCATED},
        {26, UINT64_MAX, TOKMAP_ERROR_TRUNCATED},
        {46, 2, TOKMAP_ERROR_CORRUPT},
        {54, 6, TOKMAP_ERROR_CORRUPT},
        {62, 9, TOKMAP_ERROR_CORRUPT},
        {62, UINT64_MAX - 1, TOKMAP_ERROR_CORRUPT},
        {70, 1, TOKMAP_ERROR_CORRUPT},
        {78, 4, TOKMAP_ERROR_CORRUPT},
        {78, UINT64_MAX, TOKMAP_ERROR_CORRUPT},
        {86, 2, TOKMAP_ERROR_CORRUPT},
    };
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        (void)megatron_make(map);
        store64(map + faults[i].at, faults[i].value);
        assert_int_equal(megatron_try(map, bytes, 20), faults[i].status);
    }
    (void)megatron_make(map);
    map[17] = 7;
    assert_int_equal(megatron_try(map, bytes, 20), TOKMAP_ERROR_UNSUPPORTED);
    (void)megatron_make(map);
    store32(map + 34, 5);
    assert_int_equal(megatron_try(map, bytes, 20), TOKMAP_ERROR_CORRUPT);
    store32(map + 34, UINT32_MAX);
    assert_int_equal(megatron_try(map, bytes, 20), TOKMAP_ERROR_CORRUPT);
}

static void test_texts(void **unused)
{
    (void)unused;
    struct tokmap_error error;
    struct foreign_layout layout;
    uint64_t width, tokens, end;
    const char *text = "org/name|x|4\n12\n12 T";
    assert_int_equal(datatrove_parse("x", text, strlen(text), &width, &tokens, &error), TOKMAP_OK);
    assert_true(width == 4 && tokens == 12);
    assert_int_equal(datatrove_layout(&layout, "x", width, tokens, 48, &error), TOKMAP_OK);
    assert_int_equal(datatrove_layout(&layout, "x", width, tokens, 52, &error), TOKMAP_ERROR_TRUNCATED);
    assert_int_equal(datatrove_layout(&layout, "x", width, tokens, 50, &error), TOKMAP_ERROR_TRUNCATED);
    assert_int_equal(datatrove_layout(&layout, "x", 0, tokens, 48, &error), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(datatrove_parse("x", "gpt2|3\n", 7, &width, &tokens, &error), TOKMAP_ERROR_CORRUPT);
    assert_int_equal(datatrove_parse("x", "gpt2", 4, &width, &tokens, &error), TOKMAP_ERROR_CORRUPT);
    assert_int_equal(datatrove_parse("x", "gpt2|2\nten", 10, &width, &tokens, &error), TOKMAP_ERROR_CORRUPT);
    assert_int_equal(error.line, 2);
    assert_int_equal(datatrove_check_index("x", 16, 9, 9, &error), TOKMAP_OK);
    assert_int_equal(datatrove_check_index("x", 15, 9, 9, &error), TOKMAP_ERROR_TRUNCATED);
    assert_int_equal(datatrove_check_index("x", 0, 0, 9, &error), TOKMAP_ERROR_TRUNCATED);
    assert_int_equal(datatrove_check_index("x", 16, 8, 9, &error), TOKMAP_ERROR_CORRUPT);

    assert_int_equal(olmo_parse_line("x", 3, "4,9,id", 6, 4, 10, &end, &error), TOKMAP_OK);
    assert_int_equal(end, 9);
    static const char *const bad[] = {"",    "4",    "4,",  "4;9",  "5,9",
                                      "4,3", "4,11", "a,9", "4,9x", "4,99999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(olmo_parse_line("x", 3, bad[i], strlen(bad[i]), 4, 10, &end, &error), TOKMAP_ERROR_CORRUPT);
        assert_int_equal(error.line, 3);
    }
    assert_int_equal(olmo_check_end("x", 3, 10, 10, &error), TOKMAP_OK);
    assert_int_equal(olmo_check_end("x", 3, 9, 10, &error), TOKMAP_ERROR_TRUNCATED);

    const uint8_t none[16] = {0};
    struct foreign_words words = {.width = 2, .eod_id = TOKMAP_NO_ID, .bos_id = TOKMAP_NO_ID};
    assert_int_equal(raw_parse(&layout, FOREIGN_RAW, &words, "x", none, 16, 20, &error), TOKMAP_OK);
    assert_int_equal(layout.tokens, 10);
    assert_int_equal(raw_parse(&layout, FOREIGN_RAW, &words, "x", none, 16, 21, &error), TOKMAP_ERROR_TRUNCATED);
    words.offset = 22;
    assert_int_equal(raw_parse(&layout, FOREIGN_RAW, &words, "x", none, 16, 20, &error), TOKMAP_ERROR_TRUNCATED);
    words = (struct foreign_words){.eod_id = TOKMAP_NO_ID, .bos_id = TOKMAP_NO_ID};
    assert_int_equal(raw_parse(&layout, FOREIGN_RAW, &words, "x", none, 16, 20, &error), TOKMAP_ERROR_ARGUMENT);
    words.width = 2;
    assert_int_equal(raw_parse(&layout, FOREIGN_RAW, &words, "x", (const uint8_t *)"\x93NUMPY\1\0", 8, 20, &error),
                     TOKMAP_ERROR_FORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),      cmocka_unit_test(test_llmc),     cmocka_unit_test(test_npy),
        cmocka_unit_test(test_npy_shapes), cmocka_unit_test(test_megatron), cmocka_unit_test(test_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
