/* SPDX-License-Identifier: MIT */
/*
 * foreign_name.c - see foreign_name.h.
 *
 * Example: "raw:data/a,b=1.bin,width=2,eod=50256". From the end, ",eod=50256" and ",width=2" are words. ",b=1.bin" is
 * not one, so the path is "data/a,b=1.bin".
 */
#include "foreign_name.h"

#include <string.h>

#include "common/error.h"
#include "text/decimal.h"

static const char *const kind_names[] = {"", "megatron", "llmc", "npy", "datatrove", "olmo", "raw"};
enum { KINDS = sizeof kind_names / sizeof kind_names[0] };

enum word { WIDTH, OFFSET, EOD, BOS, VOCAB, WORDS };
static const char *const word_names[WORDS] = {"width", "offset", "eod", "bos", "vocab"};

const char *foreign_kind_name(enum foreign_kind kind)
{
    return (unsigned)kind < KINDS ? kind_names[kind] : "";
}

static enum foreign_kind kind_of(const char *name, size_t *bytes)
{
    *bytes = 0;
    for (unsigned kind = 1; kind < KINDS; kind++) {
        const size_t length = strlen(kind_names[kind]);
        if (!strncmp(name, kind_names[kind], length) && name[length] == ':') {
            *bytes = length + 1;
            return (enum foreign_kind)kind;
        }
    }
    return FOREIGN_UNNAMED;
}

bool foreign_name_has_kind(const char *name)
{
    size_t bytes;
    return kind_of(name, &bytes) != FOREIGN_UNNAMED;
}

/* Reads "WORD=DIGITS". Returns WORDS if the text is not a word with a value of digits. *fits: the value is below
 * 2^64. */
static enum word word_read(const char *text, size_t bytes, uint64_t *value, bool *fits)
{
    for (unsigned word = 0; word < WORDS; word++) {
        const size_t length = strlen(word_names[word]);
        if (bytes < length + 2 || memcmp(text, word_names[word], length) != 0 || text[length] != '=')
            continue;
        for (size_t i = length + 1; i < bytes; i++)
            if (!decimal_is_digit(text[i]))
                return WORDS;
        *fits = decimal_parse(text + length + 1, bytes - length - 1, value);
        return (enum word)word;
    }
    return WORDS;
}

static enum tokmap_status wrong(struct tokmap_error *error, const char *name, const char *what, const char *word)
{
    return error_set(error, TOKMAP_ERROR_ARGUMENT, name, TOKMAP_NO_OFFSET,
                     "the word %s %s; a name has the form [KIND:]PATH[,WORD=VALUE]..., for example " FOREIGN_RAW_FORM,
                     word, what);
}

static enum tokmap_status word_take(struct foreign_words *words, enum word word, uint64_t value, bool fits,
                                    const char *name, struct tokmap_error *error)
{
    if (!fits)
        return wrong(error, name, "has a value of 2^64 or more", word_names[word]);
    switch (word) {
    case WIDTH:
        if (value != 1 && value != 2 && value != 4 && value != 8)
            return wrong(error, name, "must be 1, 2, 4, or 8 (bytes of a token in the file)", "width");
        words->width = value;
        return TOKMAP_OK;
    case OFFSET:
        if (value >> 62)
            return wrong(error, name, "must be below 2^62", "offset");
        words->offset = value;
        words->offset_given = true;
        return TOKMAP_OK;
    case EOD:
    case BOS:
        if (value > UINT32_MAX)
            return wrong(error, name, "must be a token id, which is below 2^32", word_names[word]);
        *(word == EOD ? &words->eod_id : &words->bos_id) = value;
        return TOKMAP_OK;
    case VOCAB:
        if (!value || value > (uint64_t)1 << 32)
            return wrong(error, name, "must be a number of ids from 1 to 2^32", "vocab");
        words->vocabulary = value;
        return TOKMAP_OK;
    case WORDS:
        break;
    }
    return TOKMAP_OK;
}

enum tokmap_status foreign_name_parse(struct foreign_name *parsed, const char *name, struct tokmap_error *error)
{
    size_t kind_bytes;
    *parsed = (struct foreign_name){.words = {.eod_id = TOKMAP_NO_ID, .bos_id = TOKMAP_NO_ID}};
    parsed->kind = kind_of(name, &kind_bytes);
    parsed->path = name + kind_bytes;
    size_t bytes = strlen(parsed->path);
    bool given[WORDS] = {false};
    for (;;) {
        const char *comma = memrchr(parsed->path, ',', bytes);
        uint64_t value = 0;
        bool fits = false;
        const enum word word =
            comma ? word_read(comma + 1, (size_t)(parsed->path + bytes - comma - 1), &value, &fits) : WORDS;
        if (word == WORDS)
            break;
        if (given[word])
            return wrong(error, name, "is given twice", word_names[word]);
        given[word] = true;
        enum tokmap_status status = word_take(&parsed->words, word, value, fits, name, error);
        if (status)
            return status;
        bytes = (size_t)(comma - parsed->path);
    }
    parsed->path_bytes = bytes;
    if (!bytes)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, name, TOKMAP_NO_OFFSET,
                         "the path is missing; a name has the form [KIND:]PATH[,WORD=VALUE]..., for example "
                         "" FOREIGN_RAW_FORM);
    const struct foreign_words *words = &parsed->words;
    if (words->vocabulary && ((words->eod_id != TOKMAP_NO_ID && words->eod_id >= words->vocabulary) ||
                              (words->bos_id != TOKMAP_NO_ID && words->bos_id >= words->vocabulary)))
        return wrong(error, name, "must be below vocab",
                     words->eod_id != TOKMAP_NO_ID && words->eod_id >= words->vocabulary ? "eod" : "bos");
    return parsed->kind ? foreign_words_check(words, parsed->kind, name, error) : TOKMAP_OK;
}

enum tokmap_status foreign_words_check(const struct foreign_words *words, enum foreign_kind kind, const char *name,
                                       struct tokmap_error *error)
{
    const bool headerless = kind == FOREIGN_RAW || kind == FOREIGN_OLMO;
    if (words->width && !headerless && kind != FOREIGN_DATATROVE)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, name, TOKMAP_NO_OFFSET,
                         "a %s file says itself how wide its tokens are; leave out the word width",
                         foreign_kind_name(kind));
    if (words->offset_given && !headerless)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, name, TOKMAP_NO_OFFSET,
                         "a %s file says itself where its tokens begin; leave out the word offset",
                         foreign_kind_name(kind));
    return TOKMAP_OK;
}
