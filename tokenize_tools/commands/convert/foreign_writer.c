/* SPDX-License-Identifier: MIT */
/*
 * Each format has a row in the table below: the endings of its files, of which the last is the key (output_group.h),
 * and which of them has the tokens and the documents. With shared tokens, the file of the tokens is left out if its
 * name is that of the shard, and otherwise becomes a link.
 */
#include "foreign_writer.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/data/token_decode.h"
#include "common/bytes.h"
#include "common/error.h"
#include "format/element.h"
#include "format/foreign/foreign_index.h"
#include "format/shard_file.h"
#include "output_group.h"
#include "platform/os.h"
#include "text/path.h"

enum file_use { USE_NONE, USE_TOKENS, USE_DOCUMENTS, USE_METADATA, USE_MASK, USE_NOTE };

enum { NONE = OUTPUT_GROUP_MOST };   /* no such part */
enum { CONVERTED_TOKENS = 1 << 14 }; /* tokens that are converted at once */

static const struct format {
    const char *name;
    struct {
        const char *ending;
        enum file_use use;
    } files[OUTPUT_GROUP_MOST];
} formats[FOREIGN_TARGETS] = {
    [TARGET_MEGATRON] = {"megatron", {{".bin", USE_TOKENS}, {".idx", USE_DOCUMENTS}}},
    [TARGET_LLMC] = {"llmc", {{".bin", USE_TOKENS}}},
    [TARGET_DATATROVE] =
        {"datatrove",
         {{".ds.index", USE_DOCUMENTS}, {".ds.metadata", USE_METADATA}, {".ds.loss", USE_MASK}, {".ds", USE_TOKENS}}},
    [TARGET_OLMO] = {"olmo", {{".csv.gz", USE_DOCUMENTS}, {".npy", USE_TOKENS}}},
    [TARGET_NANOGPT] = {"nanogpt", {{".meta.json", USE_NOTE}, {".bin", USE_TOKENS}}},
};

struct foreign_writer {
    struct foreign_writer_options options;
    struct output_group group;
    uint32_t parts[USE_NOTE + 1]; /* of each use; NONE */
    char *folder, *absent;
    uint64_t tokens, documents, masked;
    uint64_t start;             /* of the open document */
    uint64_t marks, first_mark; /* delimiters in the open document; the place of the first in it */
    uint64_t lost;              /* documents so far whose boundaries are lost */
    bool last_lost;             /* one of them is the last, because it has no EOD */
    struct megatron_writer megatron;
    struct olmo_writer *olmo;
    uint8_t converted[CONVERTED_TOKENS * 4];
};

const char *foreign_target_name(enum foreign_target target)
{
    return formats[target].name;
}

static bool has_use(enum foreign_target target, enum file_use use)
{
    for (int i = 0; i < OUTPUT_GROUP_MOST; i++)
        if (formats[target].files[i].use == use)
            return true;
    return false;
}

bool foreign_target_has_mask(enum foreign_target target)
{
    return has_use(target, USE_MASK);
}

bool foreign_target_shares(enum foreign_target target, uint32_t width)
{
    return target != TARGET_LLMC && (target != TARGET_NANOGPT || width == 2);
}

/* ---- open ---- */

/* Lists the endings of the files that are written. Returns their number. */
static uint32_t endings_list(const struct foreign_writer_options *options, const char *endings[OUTPUT_GROUP_MOST],
                             uint32_t parts[USE_NOTE + 1])
{
    uint32_t count = 0;
    for (int use = 0; use <= USE_NOTE; use++)
        parts[use] = NONE;
    for (int i = 0; i < OUTPUT_GROUP_MOST && formats[options->target].files[i].ending; i++) {
        const char *ending = formats[options->target].files[i].ending;
        const enum file_use use = formats[options->target].files[i].use;
        if ((use == USE_MASK && !options->mask) ||
            (use == USE_TOKENS && options->shared_tokens && !strcmp(ending, ".bin")))
            continue;
        parts[use] = count;
        endings[count++] = ending;
    }
    return count;
}

uint32_t foreign_writer_files(const struct foreign_writer_options *options)
{
    const char *endings[OUTPUT_GROUP_MOST];
    uint32_t parts[USE_NOTE + 1];
    return endings_list(options, endings, parts);
}

char *foreign_writer_path(const struct foreign_writer_options *options, uint32_t n)
{
    const char *endings[OUTPUT_GROUP_MOST];
    uint32_t parts[USE_NOTE + 1];
    return n < endings_list(options, endings, parts) ? path_ended(options->prefix, endings[n]) : NULL;
}

/* Refuses to write PREFIX.bin beside a PREFIX.tmx, which describes other tokens of that name. */
static enum tokmap_status shard_check(const struct foreign_writer_options *options, struct tokmap_error *error)
{
    struct os_stat found;
    char *path = shard_file_path(options->prefix, SHARD_INDEX, SHARD_FINAL);
    if (!path)
        return error_set_memory(error, "a path", strlen(options->prefix));
    enum tokmap_status status = TOKMAP_OK;
    if (!os_lstat(path, &found))
        status = error_set(error, TOKMAP_ERROR_EXISTS, path, TOKMAP_NO_OFFSET,
                           "this is the index of a shard of the same name, whose tokens would be replaced; choose "
                           "another name, or remove the shard first");
    free(path);
    return status;
}

/* Finds the file of an older group that a group without a mask must not have beside it. */
static enum tokmap_status absent_find(struct foreign_writer *writer, struct tokmap_error *error)
{
    const struct foreign_writer_options *options = &writer->options;
    if (!foreign_target_has_mask(options->target) || options->mask)
        return TOKMAP_OK;
    writer->absent = path_ended(options->prefix, ".ds.loss");
    return writer->absent ? TOKMAP_OK : error_set_memory(error, "a path", strlen(options->prefix));
}

/* ---- headers of formats ---- */

void llmc_head(uint8_t head[LLMC_HEAD_BYTES], uint32_t width, uint64_t tokens)
{
    assert(tokens <= LLMC_TOKENS_MOST);
    memset(head, 0, LLMC_HEAD_BYTES);
    store32(head, width == 2 ? LLMC_GPT2_MAGIC : LLMC_LLAMA3_MAGIC);
    store32(head + 4, width == 2 ? LLMC_GPT2_VERSION : LLMC_LLAMA3_VERSION);
    store32(head + 8, (uint32_t)tokens);
}

/* Writes the number as datatrove does for people, with three digits and the unit T, for tokens: "950 T", "1.25 kT",
 * "60.1 kT", "7.00 MT", and "1.00 MT" for 999,999. */
static void number_print(uint64_t number, char *text, size_t room)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
    double value = (double)number;
    int unit = 0, before = 1; /* digits before the point */
    for (; value >= 999.5; unit++)
        value /= 1000;
    before += (value >= 9.995) + (value >= 99.95);
    (void)snprintf(text, room, "%.*f %sT", 3 - before, value, prefixes[unit]);
}

size_t datatrove_metadata(char text[DATATROVE_TEXT_MOST], const char *tokenizer, uint32_t width, uint64_t tokens)
{
    char number[32];
    number_print(tokens, number, sizeof number);
    const int bytes = snprintf(text, DATATROVE_TEXT_MOST, "%.*s|%u\n%" PRIu64 "\n%s", DATATROVE_NAME_MOST,
                               tokenizer && *tokenizer ? tokenizer : "Unknown Tokenizer", width, tokens, number);
    for (int i = 0; text[i] && text[i] != '|'; i++) /* the name is one line; control characters would break it */
        if ((unsigned char)text[i] < ' ')
            text[i] = '?';
    return (size_t)bytes;
}

/* Begins the files that have something before their first token or document. */
static enum tokmap_status files_begin(struct foreign_writer *writer, struct tokmap_error *error)
{
    const struct foreign_writer_options *options = &writer->options;
    const uint32_t tokens = writer->parts[USE_TOKENS];
    if (options->shared_tokens && tokens != NONE)
        output_group_link(&writer->group, tokens, options->shared_tokens);
    megatron_writer_init(&writer->megatron, writer->folder);
    if (options->target == TARGET_LLMC) {
        uint8_t head[LLMC_HEAD_BYTES];
        llmc_head(head, options->stored, 0);
        return output_group_add(&writer->group, tokens, head, sizeof head, error);
    }
    if (options->target != TARGET_OLMO)
        return TOKMAP_OK;
    writer->olmo = malloc(sizeof *writer->olmo);
    return writer->olmo ? olmo_writer_begin(writer->olmo, &writer->group, writer->parts[USE_DOCUMENTS], error)
                        : error_set_memory(error, "the list of documents", sizeof *writer->olmo);
}

enum tokmap_status foreign_writer_open(struct foreign_writer **writer, const struct foreign_writer_options *options,
                                       struct tokmap_error *error)
{
    const char *endings[OUTPUT_GROUP_MOST];
    struct foreign_writer *made = calloc(1, sizeof *made);
    *writer = NULL;
    if (!made)
        return error_set_memory(error, "the writer", sizeof *made);
    assert(options->stored == 2 || options->target != TARGET_NANOGPT);
    assert(!options->mask || foreign_target_has_mask(options->target));
    assert(!options->shared_tokens ||
           (options->stored == options->width && foreign_target_shares(options->target, options->width)));
    made->options = *options;
    made->group = (struct output_group){.count = endings_list(options, endings, made->parts),
                                        .replace = options->replace,
                                        .equal = options->equal,
                                        .sync = options->sync};
    made->folder = path_folder(options->prefix);
    enum tokmap_status status = made->folder ? TOKMAP_OK : error_set_memory(error, "a path", strlen(options->prefix));
    if (!status)
        status = absent_find(made, error);
    made->group.absent = made->absent;
    if (!status && made->parts[USE_TOKENS] != NONE && !strcmp(endings[made->parts[USE_TOKENS]], ".bin"))
        status = shard_check(options, error);
    if (!status)
        status = output_group_open(&made->group, options->prefix, endings, error);
    if (!status)
        status = files_begin(made, error);
    if (status)
        foreign_writer_abort(made);
    else
        *writer = made;
    return status;
}

/* ---- tokens ---- */

/* Reports the first of `count` ids of 4 bytes that does not fit, if there is one. */
static enum tokmap_status ids_check(const struct foreign_writer *writer, const uint8_t *tokens, uint64_t count,
                                    uint64_t limit, struct tokmap_error *error)
{
    uint64_t i = 0;
    while (i < count && load32(tokens + 4 * i) < limit)
        i++;
    if (i == count)
        return TOKMAP_OK;
    return error_set(error, TOKMAP_ERROR_TOKEN, NULL, TOKMAP_NO_OFFSET,
                     "token %" PRIu64 " has the id %u, but %s's tokens of %u bytes hold ids below %" PRIu64 "%s",
                     writer->tokens + i, load32(tokens + 4 * i), formats[writer->options.target].name,
                     writer->options.stored, limit,
                     writer->options.target == TARGET_NANOGPT ? "; choose another format"
                     : writer->options.stored == 2            ? "; use --width of 4"
                                                              : "; choose another format");
}

/* Returns the ids that a token of the files can have. */
static uint64_t id_limit(const struct foreign_writer *writer)
{
    return writer->options.stored == 2                 ? (uint64_t)1 << 16
           : writer->options.target == TARGET_MEGATRON ? (uint64_t)1 << 31
                                                       : (uint64_t)1 << 32;
}

static enum tokmap_status tokens_write(struct foreign_writer *writer, const uint8_t *tokens, uint64_t count,
                                       uint64_t largest, struct tokmap_error *error)
{
    const struct foreign_writer_options *options = &writer->options;
    const uint32_t part = writer->parts[USE_TOKENS];
    const uint64_t limit = id_limit(writer);
    enum tokmap_status status = largest < limit ? TOKMAP_OK : ids_check(writer, tokens, count, limit, error);
    if (status || options->shared_tokens || !count)
        return status;
    if (options->width == options->stored)
        return output_group_add(&writer->group, part, tokens, (size_t)count * options->width, error);
    for (uint64_t done = 0; done < count && !status; done += CONVERTED_TOKENS) {
        const size_t some = (size_t)min64(CONVERTED_TOKENS, count - done);
        const uint8_t *from = tokens + done * options->width;
        ids_convert(writer->converted, options->stored, from, some);
        status = output_group_add(&writer->group, part, writer->converted, some * options->stored, error);
    }
    return status;
}

/* ---- documents ---- */

/* Returns the first place from `at` on that has the id, or `count`. The compiler makes vectors of the inner loops. */
static uint64_t id_next(const uint8_t *tokens, uint32_t width, uint64_t at, uint64_t count, uint64_t id)
{
    enum { STEP = 32 };
    for (uint64_t found = 0; count - at >= STEP; at += STEP) {
        for (int i = 0; i < STEP && width == 2; i++)
            found |= load16(tokens + 2 * (at + i)) == (uint16_t)id;
        for (int i = 0; i < STEP && width == 4; i++)
            found |= load32(tokens + 4 * (at + i)) == (uint32_t)id;
        if (found)
            break;
    }
    while (at < count && id_load(tokens, width, at) != id)
        at++;
    return at;
}

/* Counts the delimiters among tokens of the open document, which has `before` tokens before them. */
static void marks_count(struct foreign_writer *writer, const uint8_t *tokens, uint64_t count, uint64_t before)
{
    const struct foreign_writer_options *options = &writer->options;
    const uint64_t id = options->eod_id != TOKMAP_NO_ID ? options->eod_id : options->bos_id;
    if (id == TOKMAP_NO_ID)
        return;
    for (uint64_t i = 0; (i = id_next(tokens, options->width, i, count, id)) < count; i++)
        if (!writer->marks++)
            writer->first_mark = before + i;
}

/* Notes whether a reader that knows the EOD, or if there is none the BOS, finds a document of so many tokens. */
static void boundaries_check(struct foreign_writer *writer, uint64_t tokens)
{
    const bool by_eod = writer->options.eod_id != TOKMAP_NO_ID;
    writer->lost += writer->last_lost;
    writer->last_lost = false;
    if (by_eod && !writer->marks)
        writer->last_lost = true; /* the end of the file can end it */
    else if (writer->marks != 1 || writer->first_mark != (by_eod ? tokens - 1 : 0))
        writer->lost++;
    if (by_eod && !tokens) { /* but not an empty one */
        writer->last_lost = false;
        writer->lost++;
    }
}

static enum tokmap_status document_add(struct foreign_writer *writer, uint64_t end, const struct tokmap_origin *origin,
                                       struct tokmap_error *error)
{
    const uint32_t part = writer->parts[USE_DOCUMENTS];
    const uint64_t start = writer->start;
    uint8_t bytes[8];
    int system = 0;
    writer->documents++;
    writer->start = end;
    switch (writer->options.target) {
    case TARGET_MEGATRON:
        system = megatron_writer_add(&writer->megatron, end - start);
        return system ? output_group_failed(&writer->group, part, system, error) : TOKMAP_OK;
    case TARGET_DATATROVE:
        store64(bytes, end);
        return output_group_add(&writer->group, part, bytes, sizeof bytes, error);
    case TARGET_OLMO:
        return olmo_writer_add(writer->olmo, start, end, origin, &writer->group, part, error);
    case TARGET_LLMC:
    case TARGET_NANOGPT:
    case FOREIGN_TARGETS:
        break;
    }
    boundaries_check(writer, end - start);
    writer->marks = 0;
    return TOKMAP_OK;
}

enum tokmap_status foreign_writer_add(struct foreign_writer *writer, const void *tokens, uint64_t count,
                                      const uint64_t *ends, uint64_t documents, const struct tokmap_origin *origins,
                                      uint64_t largest, struct tokmap_error *error)
{
    const bool indexed = has_use(writer->options.target, USE_DOCUMENTS);
    const uint8_t *from = tokens;
    const uint64_t first = writer->tokens;
    uint64_t at = 0;
    if (writer->options.target == TARGET_LLMC && count > LLMC_TOKENS_MOST - first)
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "a file of llm.c has at most %" PRIu64 " tokens; convert the parts NAME#docs=0..50%% and "
                         "NAME#docs=50..100%%, or more of them",
                         LLMC_TOKENS_MOST);
    enum tokmap_status status = tokens_write(writer, from, count, largest, error);
    for (uint64_t i = 0; i < documents && !status; i++) {
        assert(ends[i] >= at && ends[i] <= count);
        if (!indexed)
            marks_count(writer, from + at * writer->options.width, ends[i] - at, first + at - writer->start);
        at = ends[i];
        status = document_add(writer, first + at, origins ? &origins[i] : NULL, error);
    }
    if (!indexed && !status)
        marks_count(writer, from + at * writer->options.width, count - at, first + at - writer->start);
    writer->tokens += count;
    return status;
}

enum tokmap_status foreign_writer_mask(struct foreign_writer *writer, const uint8_t *bits, uint64_t count,
                                       struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    uint64_t done = 0;
    while (done < count && !status) {
        const size_t some = (size_t)min64(sizeof writer->converted, count - done);
        for (size_t i = 0; i < some; i++)
            writer->converted[i] = (bits[(done + i) / 8] >> ((done + i) % 8)) & 1;
        status = output_group_add(&writer->group, writer->parts[USE_MASK], writer->converted, some, error);
        done += some;
    }
    writer->masked += count;
    return status;
}

/* ---- commit ---- */

static void json_id(char *text, size_t room, uint64_t id)
{
    (void)snprintf(text, room, id == TOKMAP_NO_ID ? "null" : "%" PRIu64, id);
}

/* Writes the note beside the tokens of nanoGPT, which have no header: what its train.py needs to know, and how tokmap
 * opens them. */
static enum tokmap_status note_write(struct foreign_writer *writer, struct tokmap_error *error)
{
    const struct foreign_writer_options *options = &writer->options;
    char text[512], eod[24], bos[24];
    json_id(eod, sizeof eod, options->eod_id);
    json_id(bos, sizeof bos, options->bos_id);
    const int bytes = snprintf(text, sizeof text,
                               "{\"dtype\":\"uint16\",\"vocab_size\":%" PRIu64 ",\"tokens\":%" PRIu64
                               ",\"documents\":%" PRIu64 ",\"eod_id\":%s,\"bos_id\":%s}\n",
                               options->vocabulary, writer->tokens, writer->documents, eod, bos);
    return output_group_add(&writer->group, writer->parts[USE_NOTE], text, (size_t)bytes, error);
}

/* Writes what is known only at the end. */
static enum tokmap_status files_finish(struct foreign_writer *writer, struct tokmap_error *error)
{
    const struct foreign_writer_options *options = &writer->options;
    struct output_group *group = &writer->group;
    uint8_t head[LLMC_HEAD_BYTES];
    char text[DATATROVE_TEXT_MOST];
    switch (options->target) {
    case TARGET_MEGATRON:
        return megatron_writer_finish(&writer->megatron, options->stored == 2 ? ELEMENT_U16 : ELEMENT_I32, group,
                                      writer->parts[USE_DOCUMENTS], error);
    case TARGET_LLMC:
        llmc_head(head, options->stored, writer->tokens);
        return output_group_rewrite(group, writer->parts[USE_TOKENS], 0, head, sizeof head, error);
    case TARGET_DATATROVE:
        return output_group_add(group, writer->parts[USE_METADATA], text,
                                datatrove_metadata(text, options->tokenizer, options->stored, writer->tokens), error);
    case TARGET_OLMO:
        return olmo_writer_end(writer->olmo, group, writer->parts[USE_DOCUMENTS], error);
    case TARGET_NANOGPT:
        return note_write(writer, error);
    case FOREIGN_TARGETS:
        break;
    }
    return TOKMAP_OK;
}

static void account(const struct foreign_writer *writer, struct foreign_written *written)
{
    const uint64_t token_bytes = writer->tokens * writer->options.stored;
    uint64_t shared = writer->options.shared_tokens ? token_bytes : 0;
    *written = (struct foreign_written){.tokens = writer->tokens, .documents = writer->documents, .lost = writer->lost};
    for (uint32_t i = 0; i < writer->group.count; i++) {
        const struct output_part *part = &writer->group.parts[i];
        if (part->copied)
            shared = 0;
        written->written_bytes += part->linked && !part->copied ? 0 : part->bytes;
    }
    written->shared_bytes = shared;
    /* Without a delimiter, only a single document can be found. */
    if (writer->options.eod_id == TOKMAP_NO_ID && writer->options.bos_id == TOKMAP_NO_ID &&
        !has_use(writer->options.target, USE_DOCUMENTS))
        written->lost = writer->documents > 1 ? writer->documents : 0;
}

enum tokmap_status foreign_writer_commit(struct foreign_writer *writer, struct foreign_written *written,
                                         struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    assert(!writer->options.mask || writer->masked == writer->tokens);
    if (!writer->tokens)
        status = error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                           "there are no tokens, and %s's readers do not open empty files; name a dataset with tokens",
                           formats[writer->options.target].name);
    else if (writer->start != writer->tokens)
        status = error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "the last document has no end");
    if (!status)
        status = files_finish(writer, error);
    if (!status)
        status = output_group_commit(&writer->group, error);
    if (!status)
        account(writer, written);
    foreign_writer_abort(writer);
    return status;
}

void foreign_writer_abort(struct foreign_writer *writer)
{
    if (!writer)
        return;
    output_group_free(&writer->group);
    megatron_writer_free(&writer->megatron);
    free(writer->olmo);
    free(writer->folder);
    free(writer->absent);
    free(writer);
}

/* ---- megatron ---- */

/*
 * Example: documents of 3 and 5 tokens of 2 bytes. The lengths are 3 and 5, the pointers 0 and 6 (bytes), and the
 * first sequences 0, 1, and, for the end, 2. If the limit of a length were 4, the second document would be the
 * sequences of 4 tokens and of 1 token: the lengths 3, 4, 1, the pointers 0, 6, 14, the first sequences 0, 1, 3.
 */

#define LENGTH_MOST ((uint64_t)INT32_MAX)
#define CONTINUES ((uint32_t)1 << 31)
enum { LENGTHS_AT_ONCE = 4096 };

enum array { LENGTHS, POINTERS, DOCUMENTS };

void megatron_writer_init(struct megatron_writer *writer, const char *folder)
{
    writer->sequences = writer->documents = 0;
    spill_init(&writer->lengths, folder);
}

void megatron_writer_free(struct megatron_writer *writer)
{
    if (writer->lengths.folder)
        spill_free(&writer->lengths);
}

int megatron_writer_add(struct megatron_writer *writer, uint64_t tokens)
{
    int system = 0;
    uint32_t continues = 0;
    do {
        const uint32_t length = (uint32_t)min64(tokens, LENGTH_MOST), stored = length | continues;
        system = spill_add(&writer->lengths, &stored, sizeof stored);
        tokens -= length;
        continues = CONTINUES;
        writer->sequences++;
    } while (tokens && !system);
    writer->documents++;
    return system;
}

/* Fills `out` with the elements of an array for `count` lengths, from sequence `first` on. Returns the bytes. *at: the
 * byte in the .bin at which the first of them begins, and then the one after the last. */
static size_t array_fill(enum array array, const uint32_t *lengths, size_t count, uint64_t first, uint32_t width,
                         uint64_t *at, uint8_t *out)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (array == LENGTHS) {
            store32(out + used, lengths[i] & ~CONTINUES);
            used += 4;
        } else if (array == POINTERS) {
            store64(out + used, *at);
            *at += (uint64_t)(lengths[i] & ~CONTINUES) * width;
            used += 8;
        } else if (!(lengths[i] & CONTINUES)) {
            store64(out + used, first + i);
            used += 8;
        }
    }
    return used;
}

static enum tokmap_status array_write(const struct megatron_writer *writer, enum array array, uint32_t width,
                                      struct output_group *group, uint32_t part, struct tokmap_error *error)
{
    uint32_t lengths[LENGTHS_AT_ONCE];
    uint8_t out[LENGTHS_AT_ONCE * 8];
    uint64_t at = 0;
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t first = 0; first < writer->sequences && !status; first += LENGTHS_AT_ONCE) {
        const size_t count = (size_t)min64(LENGTHS_AT_ONCE, writer->sequences - first);
        const int system = spill_read(&writer->lengths, first * sizeof lengths[0], lengths, count * sizeof lengths[0]);
        if (system)
            return output_group_failed(group, part, system, error);
        const size_t bytes = array_fill(array, lengths, count, first, width, &at, out);
        status = output_group_add(group, part, out, bytes, error);
    }
    return status;
}

enum tokmap_status megatron_writer_finish(struct megatron_writer *writer, enum element element,
                                          struct output_group *group, uint32_t part, struct tokmap_error *error)
{
    uint8_t head[MEGATRON_HEAD_BYTES] = MEGATRON_MAGIC, last[8];
    store64(head + 9, MEGATRON_VERSION);
    head[17] = (uint8_t)element;
    store64(head + 18, writer->sequences);
    store64(head + 26, writer->documents + 1);
    store64(last, writer->sequences);
    enum tokmap_status status = output_group_add(group, part, head, sizeof head, error);
    for (enum array array = LENGTHS; array <= DOCUMENTS && !status; array++)
        status = array_write(writer, array, element_bytes(element), group, part, error);
    return status ? status : output_group_add(group, part, last, sizeof last, error);
}

/* ---- olmo ---- */

/* Lines are those of Python's module csv, but end in \n alone. Some readers cut a line at each comma and take the first
 * two numbers, so a line must not end inside a field: in SOURCE, control characters become '?'. */

/* ---- gzip ----
 *
 * RFC 1952 describes the file, and RFC 1951, section 3.2.4, the blocks: a byte that is 1 for the last block, the number
 * of bytes as u16, its complement, and the bytes. */

#define POLYNOMIAL UINT32_C(0xEDB88320)

/* Continues the CRC-32 of gzip, half a byte at a time. */
static uint32_t crc_add(uint32_t crc, const uint8_t *bytes, size_t count)
{
    uint32_t table[16];
    for (uint32_t i = 0; i < 16; i++) {
        table[i] = i;
        for (int bit = 0; bit < 4; bit++)
            table[i] = (table[i] >> 1) ^ (table[i] & 1 ? POLYNOMIAL : 0);
    }
    crc = ~crc;
    for (size_t i = 0; i < count; i++) {
        crc = table[(crc ^ bytes[i]) & 15] ^ (crc >> 4);
        crc = table[(crc ^ (bytes[i] >> 4)) & 15] ^ (crc >> 4);
    }
    return ~crc;
}

static enum tokmap_status block_write(struct gzip_stored *gzip, bool last, struct output_group *group, uint32_t part,
                                      struct tokmap_error *error)
{
    uint8_t head[5] = {last};
    store16(head + 1, (uint16_t)gzip->used);
    store16(head + 3, (uint16_t)~gzip->used);
    enum tokmap_status status = output_group_add(group, part, head, sizeof head, error);
    if (!status)
        status = output_group_add(group, part, gzip->block, gzip->used, error);
    gzip->crc = crc_add(gzip->crc, gzip->block, gzip->used);
    gzip->bytes += gzip->used;
    gzip->used = 0;
    return status;
}

enum tokmap_status gzip_stored_begin(struct gzip_stored *gzip, uint8_t *block, struct output_group *group,
                                     uint32_t part, struct tokmap_error *error)
{
    static const uint8_t head[10] = {0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF}; /* no time, unknown system */
    *gzip = (struct gzip_stored){.block = block};
    return output_group_add(group, part, head, sizeof head, error);
}

enum tokmap_status gzip_stored_add(struct gzip_stored *gzip, const void *bytes, size_t count,
                                   struct output_group *group, uint32_t part, struct tokmap_error *error)
{
    const uint8_t *from = bytes;
    enum tokmap_status status = TOKMAP_OK;
    while (count && !status) {
        const size_t some = (size_t)min64(count, GZIP_BLOCK - gzip->used);
        memcpy(gzip->block + gzip->used, from, some);
        gzip->used += some;
        from += some;
        count -= some;
        if (gzip->used == GZIP_BLOCK)
            status = block_write(gzip, false, group, part, error);
    }
    return status;
}

enum tokmap_status gzip_stored_end(struct gzip_stored *gzip, struct output_group *group, uint32_t part,
                                   struct tokmap_error *error)
{
    uint8_t tail[8];
    enum tokmap_status status = block_write(gzip, true, group, part, error);
    store32(tail, gzip->crc);
    store32(tail + 4, (uint32_t)gzip->bytes);
    return status ? status : output_group_add(group, part, tail, sizeof tail, error);
}

/* ---- lines ---- */

#define LINE_NUMBERS 96 /* bytes of three numbers in decimal and their commas */

enum tokmap_status olmo_writer_begin(struct olmo_writer *writer, struct output_group *group, uint32_t part,
                                     struct tokmap_error *error)
{
    writer->documents = 0;
    return gzip_stored_begin(&writer->gzip, writer->block, group, part, error);
}

/* Writes a field, in quotes if it needs them. */
static enum tokmap_status field_add(struct olmo_writer *writer, const char *text, uint64_t bytes,
                                    struct output_group *group, uint32_t part, struct tokmap_error *error)
{
    char buffer[512];
    size_t used = 0;
    enum tokmap_status status = TOKMAP_OK;
    const bool quoted = bytes && (memchr(text, ',', bytes) || memchr(text, '"', bytes));
    if (quoted)
        buffer[used++] = '"';
    for (uint64_t i = 0; i < bytes && !status; i++) {
        if (text[i] == '"')
            buffer[used++] = '"';
        buffer[used++] = (unsigned char)text[i] < ' ' || text[i] == 127 ? '?' : text[i];
        if (used > sizeof buffer - 4) {
            status = gzip_stored_add(&writer->gzip, buffer, used, group, part, error);
            used = 0;
        }
    }
    if (quoted)
        buffer[used++] = '"';
    return status ? status : gzip_stored_add(&writer->gzip, buffer, used, group, part, error);
}

enum tokmap_status olmo_writer_add(struct olmo_writer *writer, uint64_t start, uint64_t end,
                                   const struct tokmap_origin *origin, struct output_group *group, uint32_t part,
                                   struct tokmap_error *error)
{
    char text[LINE_NUMBERS];
    int bytes = snprintf(text, sizeof text, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", start, end, writer->documents++);
    enum tokmap_status status = gzip_stored_add(&writer->gzip, text, (size_t)bytes, group, part, error);
    if (!status && origin)
        status = field_add(writer, origin->path, origin->path_bytes, group, part, error);
    if (status)
        return status;
    bytes =
        origin ? snprintf(text, sizeof text, ",%" PRIu64 "\n", origin->record + 1) : snprintf(text, sizeof text, ",\n");
    return gzip_stored_add(&writer->gzip, text, (size_t)bytes, group, part, error);
}

enum tokmap_status olmo_writer_end(struct olmo_writer *writer, struct output_group *group, uint32_t part,
                                   struct tokmap_error *error)
{
    return gzip_stored_end(&writer->gzip, group, part, error);
}
