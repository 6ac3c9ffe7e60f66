/* SPDX-License-Identifier: MIT */
/*
 * text_decoder.c - the steps form a chain of stages. A stage receives tokens, each in one or more chunks, and passes
 * what it makes of them to the next stage; the last stage appends to the caller's buffer.
 *
 * Example, the decoder of Llama 2: Replace, ByteFallback, Fuse, Strip. Of the tokens "_Hi", "_the", "<0x0A>" (here "_"
 * is the mark U+2581), Replace makes " Hi", " the", "<0x0A>"; ByteFallback makes a newline of the third; Fuse passes
 * all three on as chunks of one token; Strip takes the space off the front of this token: "Hi the" and a newline.
 *
 * The reference applies a step to all tokens before it begins the next step. A chain gives the same result and need not
 * hold the document. A stage that must see a whole token, or the token after it, holds what it needs.
 */
#include "text_decoder.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "text/code_point.h"
#include "text/utf8.h"
#include "tokenizer_kind.h"
#include "unicode/byte_alphabet.h"

#define BYTE_NAME_BYTES 6 /* of "<0x0A>" */

struct stage {
    const struct decode_step *step;
    bool fused; /* an earlier step has joined all tokens into one */
    struct regex_state *regex;

    uint64_t index;              /* tokens that have ended */
    uint64_t stripped;           /* STRIP: characters taken off the front of this token */
    bool passing;                /* STRIP: the front is done; BYTE_FALLBACK: the token is too long to name a byte */
    bool waiting;                /* WORDPIECE, CTC, BPE: `before` holds a token */
    bool begins, took;           /* SENTENCEPIECE: a space may be taken off; the last piece lost one */
    bool any;                    /* SENTENCEPIECE: the document has text */
    struct bytes_buffer held;    /* a token of which not all chunks have arrived */
    struct bytes_buffer before;  /* the token before this one; bytes of a run; the start of a character */
    struct bytes_buffer made[2]; /* results */
};

struct text_decoding {
    struct stage stages[DECODER_STEPS_MOST + 1];
    uint32_t count;
    struct text_buffer *into;
    struct tokmap_error *error;
    enum tokmap_status status; /* of the first failure; nothing is done after it */
    uint64_t *replaced;
};

/* ---- decoders ---- */

void text_decoder_free(struct text_decoder *decoder)
{
    for (uint32_t i = 0; i < decoder->count; i++) {
        free(decoder->steps[i].pattern);
        free(decoder->steps[i].content);
        regex_free(decoder->steps[i].regex);
    }
    free(decoder->texts);
    free(decoder->offsets);
    free(decoder->kinds);
    memset(decoder, 0, sizeof *decoder);
}

static uint64_t step_growth(const struct decode_step *step)
{
    /* LOSSY, SENTENCEPIECE, BYTE_LEVEL: a byte that is not UTF-8 becomes U+FFFD. WORDPIECE, CTC, BPE: a space before a
     * byte, and after it where an empty text is replaced. */
    static const uint8_t growths[] = {[DECODE_LOSSY] = 3,     [DECODE_SENTENCEPIECE] = 3, [DECODE_BYTE_LEVEL] = 3,
                                      [DECODE_WORDPIECE] = 3, [DECODE_CTC] = 3,           [DECODE_BPE] = 3};
    if (step->kind != DECODE_REPLACE)
        return max64(1, growths[step->kind]);
    /* A pattern can have empty matches, before each byte and at the end. */
    return step->regex ? 1 + 2 * (uint64_t)step->content_bytes
                       : max64(1, div_ceil(step->content_bytes, step->pattern_bytes));
}

uint64_t text_decoder_growth(const struct text_decoder *decoder)
{
    uint64_t growth = 1;
    for (uint32_t i = 0; i < decoder->count; i++)
        if (mul_overflows(growth, step_growth(&decoder->steps[i]), &growth) || growth > UINT32_MAX)
            return UINT64_MAX;
    return growth;
}

bool text_decoder_map(const uint8_t *text, size_t count, uint8_t *into, size_t *made)
{
    size_t bytes, written = 0;
    for (size_t at = 0; at < count; at += bytes) {
        const int byte = character_byte(code_point_get(text + at, &bytes));
        if (byte < 0)
            return false;
        into[written++] = (uint8_t)byte;
    }
    *made = written;
    return true;
}

/* ---- passing on ---- */

static bool no_memory(struct text_decoding *own, uint64_t bytes)
{
    if (!own->status)
        own->status = error_set_memory(own->error, "decoded text", bytes);
    return false;
}

static void put(struct text_decoding *own, uint32_t at, const uint8_t *text, size_t count, bool last);

static void output(struct text_decoding *own, const uint8_t *text, size_t count)
{
    if (!count || own->status)
        return;
    own->status = text_buffer_reserve(own->into, count, own->error);
    if (own->status)
        return;
    memcpy(own->into->bytes + own->into->count, text, count);
    own->into->count += count;
}

/* Passes a chunk of a token to a stage, or to the caller after the last one. */
static void pass(struct text_decoding *own, uint32_t to, const void *text, size_t count, bool last)
{
    if (to == own->count)
        output(own, text, count);
    else
        put(own, to, text, count, last);
}

/* Passes on what stands for bytes that are not UTF-8. */
static void pass_replacement(struct text_decoding *own, uint32_t to, bool last)
{
    ++*own->replaced;
    pass(own, to, UTF8_REPLACEMENT, UTF8_REPLACEMENT_BYTES, last);
}

/* ---- texts ---- */

static bool bytes_put(struct text_decoding *own, struct bytes_buffer *into, const void *bytes, size_t count)
{
    return bytes_append(into, bytes, count) || no_memory(own, count);
}

/* Copies a text with `to` in place of each `from`. An empty `from` is found before each character and at the end, as in
 * Rust's str::replace. */
static bool replace_all(struct text_decoding *own, struct bytes_buffer *into, const uint8_t *text, size_t count,
                        const void *from, size_t from_bytes, const void *to, size_t to_bytes)
{
    const uint8_t *at = text, *end = text + count;
    into->count = 0;
    if (!from_bytes) {
        size_t bytes;
        for (; at < end; at += bytes) {
            (void)code_point_get(at, &bytes);
            if (!bytes_put(own, into, to, to_bytes) || !bytes_put(own, into, at, bytes))
                return false;
        }
        return bytes_put(own, into, to, to_bytes);
    }
    for (const uint8_t *found; at < end && (found = memmem(at, (size_t)(end - at), from, from_bytes));
         at = found + from_bytes)
        if (!bytes_put(own, into, at, (size_t)(found - at)) || !bytes_put(own, into, to, to_bytes))
            return false;
    return bytes_put(own, into, at, (size_t)(end - at));
}

/* Takes out the spaces that separate punctuation, as the reference's cleanup does: each of these in turn. Returns the
 * buffer of the result. The text is in made[0]. */
static struct bytes_buffer *clean(struct text_decoding *own, struct stage *stage)
{
    static const char *const pairs[][2] = {{" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
                                           {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
                                           {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    struct bytes_buffer *from = &stage->made[0], *to = &stage->made[1];
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (!replace_all(own, to, from->bytes, from->count, pairs[i][0], strlen(pairs[i][0]), pairs[i][1],
                         strlen(pairs[i][1])))
            return from;
        struct bytes_buffer *const other = from;
        from = to;
        to = other;
    }
    return from;
}

/* ---- stages that pass chunks on ---- */

/* Joins bytes of UTF-8. The bytes of a character may arrive in several chunks. */
static void put_lossy(struct text_decoding *own, uint32_t at, const uint8_t *text, size_t count)
{
    struct stage *stage = &own->stages[at];
    if (stage->before.count) {
        if (!bytes_put(own, &stage->before, text, count))
            return;
        text = stage->before.bytes;
        count = stage->before.count;
    }
    const size_t end = utf8_cut((const char *)text, count);
    for (size_t done = 0; done < end && !own->status;) {
        const size_t good = utf8_valid_prefix((const char *)text + done, end - done);
        pass(own, at + 1, text + done, good, false);
        done += good;
        if (done == end)
            break;
        bool valid;
        done += utf8_step((const char *)text + done, end - done, &valid);
        pass_replacement(own, at + 1, false);
    }
    if (stage->before.count) {
        memmove(stage->before.bytes, stage->before.bytes + end, count - end);
        stage->before.count = count - end;
    } else {
        (void)bytes_put(own, &stage->before, text + end, count - end);
    }
}

static void end_lossy(struct text_decoding *own, uint32_t at)
{
    struct stage *stage = &own->stages[at];
    for (size_t done = 0; done < stage->before.count;) {
        bool valid;
        done += utf8_step((const char *)stage->before.bytes + done, stage->before.count - done, &valid);
        pass_replacement(own, at + 1, false);
    }
    stage->before.count = 0;
    pass(own, at + 1, "", 0, true);
}

/* Spaces for marks; in the first token, nothing for marks. */
static void put_metaspace(struct text_decoding *own, uint32_t at, const uint8_t *text, size_t count, bool last)
{
    struct stage *stage = &own->stages[at];
    const struct decode_step *step = stage->step;
    uint8_t mark[4];
    const size_t mark_bytes = code_point_put(mark, step->character);
    const bool removes = stage->index == 0 && step->prepends;
    if (replace_all(own, &stage->made[0], text, count, mark, mark_bytes, " ", !removes))
        pass(own, at + 1, stage->made[0].bytes, stage->made[0].count, last);
}

/* Takes the character off the front only. The front is that of the document in a text whose tokens are joined, so
 * nothing is taken off if the document began earlier. */
static void put_strip_front(struct text_decoding *own, uint32_t at, const uint8_t *text, size_t count, bool last)
{
    struct stage *stage = &own->stages[at];
    size_t done = 0, bytes;
    if (stage->fused && stage->index)
        stage->passing = true;
    while (!stage->passing && done < count) {
        if (stage->stripped == stage->step->start || code_point_get(text + done, &bytes) != stage->step->character) {
            stage->passing = true;
            break;
        }
        done += bytes;
        stage->stripped++;
    }
    /* A token that is not UTF-8 may end inside its last character. */
    pass(own, at + 1, text + done, done < count ? count - done : 0, last);
    if (last) {
        stage->passing = false;
        stage->stripped = 0;
    }
}

/* ---- bytes that tokens name ---- */

/* Returns the byte that a token names, or -1. The reference parses the two characters as a number with an optional
 * sign, so "<0x+A>" is a name, too. */
static int named_byte(const uint8_t *text, size_t count)
{
    if (count != BYTE_NAME_BYTES || memcmp(text, "<0x", 3) || text[5] != '>')
        return -1;
    const int high = text[3] == '+' ? 0 : hex_digit((char)text[3]), low = hex_digit((char)text[4]);
    return high < 0 || low < 0 ? -1 : 16 * high + low;
}

/* Passes on the bytes of a run: their text, or a U+FFFD for each of them if the run as a whole is not UTF-8. */
static void run_end(struct text_decoding *own, uint32_t at)
{
    struct bytes_buffer *run = &own->stages[at].before;
    const size_t count = run->count;
    if (!count)
        return;
    if (utf8_valid_prefix((const char *)run->bytes, count) == count)
        pass(own, at + 1, run->bytes, count, true);
    else
        for (size_t i = 0; i < count && !own->status; i++)
            pass_replacement(own, at + 1, true);
    run->count = 0;
}

static void put_byte_fallback(struct text_decoding *own, uint32_t at, const uint8_t *text, size_t count, bool last)
{
    struct stage *stage = &own->stages[at];
    if (!stage->passing && (!last || stage->held.count)) {
        if (!bytes_put(own, &stage->held, text, count))
            return;
        text = stage->held.bytes;
        count = stage->held.count;
    }
    if (!stage->passing && !last && count <= BYTE_NAME_BYTES)
        return;
    const int byte = stage->passing ? -1 : named_byte(text, count);
    if (byte >= 0) {
        const uint8_t one = (uint8_t)byte;
        (void)bytes_put(own, &stage->before, &one, 1);
    } else {
        run_end(own, at);
        pass(own, at + 1, text, count, last);
    }
    stage->held.count = 0;
    stage->passing = !last;
}

/* ---- stages that need whole tokens ---- */

static void token_byte_level(struct text_decoding *own, uint32_t at, const uint8_t *text, size_t count)
{
    struct bytes_buffer *made = &own->stages[at].made[0];
    size_t bytes = 0;
    made->count = 0;
    if (!bytes_reserve(made, count + 1)) {
        (void)no_memory(own, count);
        return;
    }
    if (text_decoder_map(text, count, made->bytes, &bytes))
        put_lossy(own, at, made->bytes, bytes);
    else
        put_lossy(own, at, text, count);
}

static void token_replace(struct text_decoding *own, uint32_t at, const uint8_t *text, size_t count)
{
    struct stage *stage = &own->stages[at];
    const struct decode_step *step = stage->step;
    struct bytes_buffer *made = &stage->made[0];
    if (!step->regex) {
        if (!count || !memmem(text, count, step->pattern, step->pattern_bytes))
            pass(own, at + 1, text, count, true);
        else if (replace_all(own, made, text, count, step->pattern, step->pattern_bytes, step->content,
                             step->content_bytes))
            pass(own, at + 1, made->bytes, made->count, true);
        return;
    }
    size_t done = 0, from, to;
    enum regex_found found = REGEX_END;
    made->count = 0;
    /* The reference does not search an empty text. */
    if (count && !regex_begin(stage->regex, text, count, false)) {
        (void)no_memory(own, count);
        return;
    }
    while (count && !own->status && (found = regex_next(stage->regex, &from, &to)) == REGEX_MATCH) {
        (void)(bytes_put(own, made, text + done, from - done) &&
               bytes_put(own, made, step->content, step->content_bytes));
        done = to;
    }
    if (found == REGEX_FAILED)
        own->status = error_set(own->error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                                "a pattern of the tokenizer's decoder needs too many steps or too much memory for a "
                                "text of %zu bytes; decode fewer ids at once",
                                count);
    else if (bytes_put(own, made, text + done, count - done))
        pass(own, at + 1, made->bytes, made->count, true);
}

static void token_strip(struct text_decoding *own, uint32_t at, const uint8_t *text, size_t count)
{
    struct stage *stage = &own->stages[at];
    const struct decode_step *step = stage->step;
    const uint64_t most = stage->fused && stage->index ? 0 : step->start;
    size_t from = 0, to = count, bytes;
    for (uint64_t i = 0; i < most && from < count && code_point_get(text + from, &bytes) == step->character; i++)
        from += bytes;
    for (uint64_t i = 0; i < step->stop && to; i++) {
        size_t last = to - 1;
        while (last && (text[last] & 0xC0) == 0x80)
            last--;
        if (code_point_get(text + last, &bytes) != step->character)
            break;
        to = last;
    }
    /* If both ends meet, the reference fails; nothing is left of such a token. */
    pass(own, at + 1, text + from, to > from ? to - from : 0, true);
}

static void token_wordpiece(struct text_decoding *own, uint32_t at, const uint8_t *text, size_t count)
{
    struct stage *stage = &own->stages[at];
    const struct decode_step *step = stage->step;
    struct bytes_buffer *made = &stage->made[0];
    const bool continues = count >= step->pattern_bytes && !memcmp(text, step->pattern, step->pattern_bytes);
    const bool first = stage->fused || !stage->index;
    const size_t from = !first && continues ? step->pattern_bytes : 0;
    made->count = 0;
    if ((!first && !continues && !bytes_put(own, made, " ", 1)) || !bytes_put(own, made, text + from, count - from))
        return;
    if (step->cleanup)
        made = clean(own, stage);
    pass(own, at + 1, made->bytes, made->count, true);
}

static void token_ctc(struct text_decoding *own, uint32_t at, const uint8_t *text, size_t count)
{
    struct stage *stage = &own->stages[at];
    const struct decode_step *step = stage->step;
    if (stage->waiting && stage->before.count == count && (!count || !memcmp(stage->before.bytes, text, count)))
        return;
    stage->before.count = 0;
    stage->waiting = true;
    if (!bytes_put(own, &stage->before, text, count) ||
        !replace_all(own, &stage->made[0], text, count, step->pattern, step->pattern_bytes, "", 0))
        return;
    struct bytes_buffer *made = &stage->made[0];
    if (step->cleanup) {
        made = clean(own, stage);
        struct bytes_buffer *spaced = &stage->made[made == &stage->made[0]];
        if (!replace_all(own, spaced, made->bytes, made->count, step->content, step->content_bytes, " ", 1))
            return;
        made = spaced;
    }
    if (made->count)
        pass(own, at + 1, made->bytes, made->count, true);
}

/* Passes on the token that waits, with `to` in place of the suffix. */
static void bpe_waiting(struct text_decoding *own, uint32_t at, const char *to)
{
    struct stage *stage = &own->stages[at];
    const struct decode_step *step = stage->step;
    if (stage->waiting && replace_all(own, &stage->made[0], stage->before.bytes, stage->before.count, step->pattern,
                                      step->pattern_bytes, to, strlen(to)))
        pass(own, at + 1, stage->made[0].bytes, stage->made[0].count, true);
    stage->waiting = false;
    stage->before.count = 0;
}

static void token_bpe(struct text_decoding *own, uint32_t at, const uint8_t *text, size_t count)
{
    struct stage *stage = &own->stages[at];
    bpe_waiting(own, at, " ");
    stage->waiting = bytes_put(own, &stage->before, text, count);
}

/* ---- SentencePiece ---- */

/* Passes on a run of bytes. Each byte that is not part of a character becomes a U+FFFD: unlike DECODE_LOSSY, which
 * makes one of a whole subpart. */
static void sentencepiece_bytes(struct text_decoding *own, uint32_t at)
{
    struct stage *stage = &own->stages[at];
    const char *run = (const char *)stage->before.bytes;
    const size_t count = stage->before.count;
    for (size_t done = 0; done < count && !own->status;) {
        bool valid;
        const size_t bytes = utf8_step(run + done, count - done, &valid);
        if (valid)
            pass(own, at + 1, run + done, bytes, true);
        else
            for (size_t i = 0; i < bytes; i++)
                pass_replacement(own, at + 1, true);
        done += bytes;
    }
    stage->any |= count != 0;
    stage->before.count = 0;
}

/* Decodes a piece. At the front of the text it loses the mark that it begins with, which encoding has put there. The
 * rules are those of SentencePieceProcessor::Decode: the front lasts until a piece has text or has lost its mark. */
static void token_sentencepiece(struct text_decoding *own, uint32_t at, const uint8_t *text, size_t count,
                                enum decode_token kind)
{
    static const char mark[] = "\xE2\x96\x81";
    struct stage *stage = &own->stages[at];
    const struct decode_step *step = stage->step;
    if (kind == DECODE_BYTE) {
        (void)bytes_put(own, &stage->before, text, count);
        return;
    }
    sentencepiece_bytes(own, at);
    if (stage->took || stage->any)
        stage->begins = false;
    stage->took = false;
    if (kind == DECODE_CONTROL) {
        stage->any |= count != 0;
        pass(own, at + 1, text, count, true);
        return;
    }
    if (stage->begins && (step->trims_front || step->trims_spaces) && count >= 3 && !memcmp(text, mark, 3)) {
        text += 3;
        count -= 3;
        stage->took = !step->trims_spaces;
    }
    if (!replace_all(own, &stage->made[0], text, count, mark, 3, " ", 1))
        return;
    stage->any |= stage->made[0].count != 0;
    pass(own, at + 1, stage->made[0].bytes, stage->made[0].count, true);
}

/* ---- the chain ---- */

/* Receive whole tokens. put() handles the other kinds. */
static void (*const token_functions[])(struct text_decoding *own, uint32_t at, const uint8_t *text, size_t count) = {
    [DECODE_BYTE_LEVEL] = token_byte_level, [DECODE_REPLACE] = token_replace, [DECODE_STRIP] = token_strip,
    [DECODE_WORDPIECE] = token_wordpiece,   [DECODE_CTC] = token_ctc,         [DECODE_BPE] = token_bpe};

/* Gives a stage a chunk of a token. last: the token ends with it. */
static void put(struct text_decoding *own, uint32_t at, const uint8_t *text, size_t count, bool last)
{
    struct stage *stage = &own->stages[at];
    const struct decode_step *step = stage->step;
    if (own->status)
        return;
    if (step->kind == DECODE_LOSSY) {
        put_lossy(own, at, text, count);
    } else if (step->kind == DECODE_FUSE) {
        pass(own, at + 1, text, count, false);
    } else if (step->kind == DECODE_METASPACE) {
        put_metaspace(own, at, text, count, last);
    } else if (step->kind == DECODE_STRIP && !step->stop) {
        put_strip_front(own, at, text, count, last);
    } else if (step->kind == DECODE_BYTE_FALLBACK) {
        put_byte_fallback(own, at, text, count, last);
    } else if (last && !stage->held.count) {
        token_functions[step->kind](own, at, text, count);
    } else {
        if (!bytes_put(own, &stage->held, text, count) || !last)
            return;
        token_functions[step->kind](own, at, stage->held.bytes, stage->held.count);
        stage->held.count = 0;
    }
    stage->index += last;
}

/* Ends the tokens of a stage, and then those of the stages after it. */
static void finish(struct text_decoding *own)
{
    for (uint32_t at = 0; at < own->count && !own->status; at++) {
        const enum decode_kind kind = own->stages[at].step->kind;
        if (kind == DECODE_LOSSY || kind == DECODE_BYTE_LEVEL)
            end_lossy(own, at);
        else if (kind == DECODE_FUSE)
            pass(own, at + 1, "", 0, true);
        else if (kind == DECODE_BYTE_FALLBACK)
            run_end(own, at);
        else if (kind == DECODE_BPE)
            bpe_waiting(own, at, "");
        else if (kind == DECODE_SENTENCEPIECE)
            sentencepiece_bytes(own, at);
    }
}

enum tokmap_status text_decoding_new(struct text_decoding **decoding, const struct text_decoder *decoder,
                                     uint64_t *replaced, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    assert(decoder->count <= DECODER_STEPS_MOST);
    *decoding = NULL;
    if (decoder->refused[0])
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, NULL, TOKMAP_NO_OFFSET, "%s", decoder->refused);
    struct text_decoding *made = calloc(1, sizeof *made);
    if (!made)
        return error_set_memory(error, "decoding", sizeof *made);
    made->replaced = replaced;
    made->count = decoder->count;
    bool fused = false;
    for (uint32_t i = 0; i < made->count && !status; i++) {
        struct stage *stage = &made->stages[i];
        stage->step = &decoder->steps[i];
        stage->fused = fused;
        fused |= stage->step->kind == DECODE_FUSE || stage->step->kind == DECODE_BYTE_LEVEL ||
                 stage->step->kind == DECODE_LOSSY;
        if (stage->step->regex)
            status = regex_state_new(&stage->regex, stage->step->regex, error);
    }
    text_decoding_begin(made, false);
    if (status)
        text_decoding_free(made);
    else
        *decoding = made;
    return status;
}

void text_decoding_free(struct text_decoding *decoding)
{
    for (uint32_t i = 0; decoding && i < decoding->count; i++) {
        struct stage *stage = &decoding->stages[i];
        regex_state_free(stage->regex);
        bytes_free(&stage->held);
        bytes_free(&stage->before);
        bytes_free(&stage->made[0]);
        bytes_free(&stage->made[1]);
    }
    free(decoding);
}

void text_decoding_begin(struct text_decoding *decoding, bool resumed)
{
    for (uint32_t i = 0; i < decoding->count; i++) {
        struct stage *stage = &decoding->stages[i];
        stage->index = resumed;
        stage->stripped = 0;
        stage->passing = stage->waiting = stage->took = stage->any = false;
        stage->begins = !resumed;
        bytes_trim(&stage->held);
        bytes_trim(&stage->before);
        bytes_trim(&stage->made[0]);
        bytes_trim(&stage->made[1]);
        if (stage->regex)
            regex_trim(stage->regex);
    }
    decoding->status = TOKMAP_OK;
}

enum tokmap_status text_decoding_token(struct text_decoding *decoding, const uint8_t *text, size_t count,
                                       enum decode_token kind, struct text_buffer *into, struct tokmap_error *error)
{
    decoding->into = into;
    decoding->error = error;
    if (decoding->status)
        return decoding->status;
    if (decoding->count && decoding->stages[0].step->kind == DECODE_SENTENCEPIECE)
        token_sentencepiece(decoding, 0, text, count, kind);
    else
        pass(decoding, 0, text, count, true);
    return decoding->status;
}

enum tokmap_status text_decoding_end(struct text_decoding *decoding, struct text_buffer *into,
                                     struct tokmap_error *error)
{
    decoding->into = into;
    decoding->error = error;
    finish(decoding);
    const enum tokmap_status status = decoding->status;
    text_decoding_begin(decoding, false);
    return status;
}
