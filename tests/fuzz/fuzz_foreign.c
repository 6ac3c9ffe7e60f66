/* SPDX-License-Identifier: MIT */
/*
 * fuzz_foreign.c - the headers, texts, and names of other projects' token files. The first byte of an input chooses the
 * parser, the next 8 are the size of the file, and the rest is its first bytes or text. What a parser accepts must
 * agree with the size of the file.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "format/foreign/foreign_formats.h"
#include "format/foreign/foreign_index.h"
#include "format/foreign/foreign_name.h"
#include "format/foreign/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good)
{
    if (!good)
        abort();
}

/* Checks what every parser promises about the layout, or about the error. */
static void result_check(enum tokmap_status status, const struct tokmap_error *error,
                         const struct foreign_layout *layout, uint64_t file_bytes)
{
    if (status) {
        must(error->message[0] && error->status == status);
        return;
    }
    const uint64_t element = element_bytes(layout->element);
    must(element && layout->bytes == file_bytes && layout->offset <= file_bytes);
    must(layout->tokens == (file_bytes - layout->offset) / element && (file_bytes - layout->offset) % element == 0);
}

static void name_try(const char *text)
{
    struct foreign_name name;
    struct tokmap_error error = {0};
    enum tokmap_status status = foreign_name_parse(&name, text, &error);
    must(status ? error.message[0] != '\0' : name.path_bytes && name.path + name.path_bytes <= text + strlen(text));
}

static void datatrove_try(const uint8_t *bytes, size_t count, uint64_t file_bytes)
{
    struct tokmap_error error = {0};
    struct foreign_layout layout;
    uint64_t width = 0, tokens = 0;
    enum tokmap_status status = datatrove_parse("x.ds.metadata", (const char *)bytes, count, &width, &tokens, &error);
    if (!status)
        status = datatrove_layout(&layout, "x.ds", width, tokens, file_bytes, &error);
    result_check(status, &error, &layout, file_bytes);
}

static void ends_try(const uint8_t *bytes, size_t count, uint64_t tokens)
{
    struct tokmap_error error = {0};
    const uint64_t whole = count / 8;
    const struct foreign_index index = {.bytes = {"x.ds.index", bytes, count, -1}, .count = whole, .tokens = tokens};
    const uint64_t last = whole ? load64(bytes + 8 * (whole - 1)) : 0;
    if (datatrove_check_index("x.ds.index", count, last, tokens, &error) || !whole)
        return;
    uint64_t before = 0, end;
    bool good = true;
    for (uint64_t i = 0; i < whole && good; i++) {
        good = !foreign_index_end(&index, i, &end, &error) && end >= before;
        must(!good || end <= tokens);
        before = end;
    }
    must(good == !foreign_index_check(&index, &error));
}

static void olmo_try(const uint8_t *bytes, size_t count, uint64_t tokens)
{
    struct tokmap_error error = {0};
    uint64_t before = 0, line = 1, end;
    for (size_t at = 0; at < count; line++) {
        const uint8_t *stop = memchr(bytes + at, '\n', count - at);
        const size_t length = stop ? (size_t)(stop - bytes) - at : count - at;
        if (olmo_parse_line("x.csv.gz", line, (const char *)bytes + at, length, before, tokens, &end, &error))
            break;
        must(end >= before && end <= tokens);
        before = end;
        at += length + 1;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tokmap_error error = {0};
    struct foreign_layout layout;
    if (size < 9)
        return 0;
    const uint64_t file_bytes = load64(data + 1);
    const size_t bytes = size - 9;
    uint8_t *copy = malloc(bytes + 1); /* the zero byte ends a name; other parsers must not need it */
    if (!copy)
        return 0;
    memcpy(copy, data + 9, bytes);
    copy[bytes] = 0;
    const size_t head = (size_t)min64(bytes, file_bytes);
    const struct foreign_words words = {.width = 1u << data[0] / 8 % 4, .eod_id = TOKMAP_NO_ID, .bos_id = TOKMAP_NO_ID};
    switch (data[0] % 8) {
    case 0:
        result_check(llmc_parse(&layout, "x.bin", copy, head, file_bytes, &error), &error, &layout, file_bytes);
        break;
    case 1:
    case 2:
        result_check(npy_parse(&layout, "x.npy", copy, head, file_bytes, &error), &error, &layout, file_bytes);
        break;
    case 3:
        result_check(raw_parse(&layout, FOREIGN_RAW, &words, "x", copy, head, file_bytes, &error), &error, &layout,
                     file_bytes);
        break;
    case 4:
        datatrove_try(copy, bytes, file_bytes);
        break;
    case 5:
        olmo_try(copy, bytes, file_bytes);
        break;
    case 6:
        ends_try(copy, bytes, file_bytes);
        break;
    default:
        name_try((const char *)copy);
    }
    free(copy);
    return 0;
}
