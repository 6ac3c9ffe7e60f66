/*
 * corpus.c - see corpus.h. Fills batches with raw bytes, and cuts them where a line or a character ends.
 *
 * Bytes are read directly to their final position in the batch, so that nothing is copied. The bytes after the last
 * cut, which are less than a line or a character, are carried over into the next batch.
 *
 * Example, with a batch of 32 bytes and lines of 13 bytes: the first read fills the batch with 32 bytes, which are
 * lines 0 and 1 and 6 bytes of line 2. The cut is at byte 26: the batch becomes one part of 26 bytes, and 6 bytes are
 * carried over and begin the next batch. (The size of a real batch is at least 8 KiB.)
 *
 * A line that is longer than a batch makes its batch grow, up to options.record_limit, because JSON is parsed by whole
 * lines. A text document does not: it continues in further parts, and memory stays small for a text of any size. There
 * are two exceptions, in which a text must be held whole (`whole`): the tokenizer cannot process parts; or the document
 * may have to be skipped, which must be known before its first part is packed, and the input is a pipe, which cannot be
 * read twice. A regular file can be read twice: where invalid documents are skipped, a text that does not fit in a
 * batch is first read to its end and only checked (text_prescan()).
 */
#include "corpus.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "text/utf8.h"
#include "common/bytes.h"
#include "common/error.h"
#include "inputs.h"
#include "json_field.h"
#include "stream.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define READ_LEAST 4096 /* bytes of free space that make a read worth its call */
#define ITEMS_MOST 1024 /* a batch with more parts or issues is complete */
#define EXCLUDED_MOST 8
#define BOM "\xef\xbb\xbf"

struct corpus {
    struct corpus_options options;
    struct inputs *inputs;
    struct stream *stream;
    bool done; /* no input is left, or an issue ends the work */

    char *path;             /* of the open file */
    const char *batch_path; /* its copy in the batch that is being filled, or NULL */
    bool open, format_known, jsonl;
    bool resumed;    /* parts of its document have been delivered */
    bool whole;      /* its document must be held in memory whole */
    uint64_t offset; /* in the stream, of the first byte that is in no part yet */
    uint64_t record; /* number of the next line */

    char *carry; /* `carried` bytes of the open file that begin the next batch */
    uint64_t carried, carry_capacity;
    uint64_t finished_stored; /* stored bytes of all files that have been closed */
    struct os_stat excluded[EXCLUDED_MOST];
    size_t excluded_count;
};

enum tokmap_status corpus_open(struct corpus **corpus, const char *const *operands, size_t count,
                               const struct corpus_options *options, struct tokmap_error *error)
{
    assert(operands || !count);
    struct corpus *made = calloc(1, sizeof *made);
    *corpus = NULL;
    if (!made)
        return error_set_memory(error, "the reader of the inputs", sizeof *made);
    made->options = *options;
    made->options.batch_bytes = max64(options->batch_bytes, 2 * READ_LEAST);
    enum tokmap_status status = inputs_new(&made->inputs, operands, count, error);
    if (!status)
        status = stream_new(&made->stream, options->stop, options->user, error);
    if (status)
        corpus_close(made);
    else
        *corpus = made;
    return status;
}

void corpus_close(struct corpus *corpus)
{
    if (!corpus)
        return;
    stream_free(corpus->stream);
    inputs_free(corpus->inputs);
    free(corpus->path);
    free(corpus->carry);
    free(corpus);
}

enum tokmap_status corpus_exclude(struct corpus *corpus, const char *path, struct tokmap_error *error)
{
    if (corpus->excluded_count == EXCLUDED_MOST)
        return error_set(error, TOKMAP_ERROR_LIMIT, path, TOKMAP_NO_OFFSET,
                         "more than 8 files are excluded from the inputs; this is a bug in tokmap, please report it");
    if (!os_stat(path, &corpus->excluded[corpus->excluded_count]))
        corpus->excluded_count++;
    return TOKMAP_OK;
}

uint64_t corpus_size(const char *const *operands, size_t count)
{
    struct inputs *inputs;
    struct os_stat stat;
    const char *path;
    uint64_t total = 0;
    if (inputs_new(&inputs, operands, count, NULL))
        return 0;
    for (;;) {
        const enum tokmap_status status = inputs_next(inputs, &path, NULL);
        if (status == TOKMAP_END)
            break;
        if (status || !strcmp(path, "-") || os_stat(path, &stat))
            continue;
        if (stat.kind != OS_KIND_FILE || add_overflows(total, stat.bytes, &total)) {
            total = 0;
            break;
        }
    }
    inputs_free(inputs);
    return total;
}

/* ---- format ---- */

static bool ends_with(const char *name, size_t length, const char *end)
{
    const size_t bytes = strlen(end);
    return length > bytes && !memcmp(name + length - bytes, end, bytes);
}

/* Returns the format that the name selects, or AUTO if the content decides. */
static enum corpus_format format_of_name(const char *path)
{
    static const char *const lines[] = {".jsonl", ".ndjson", ".jsonlines", ".json-lines"};
    size_t length = strlen(path);
    if (!strcmp(path, "-") || !strncmp(path, "/dev/", 5))
        return CORPUS_AUTO;
    if (ends_with(path, length, ".gz"))
        length -= 3;
    else if (ends_with(path, length, ".zst"))
        length -= 4;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        if (ends_with(path, length, lines[i]))
            return CORPUS_JSONL;
    return ends_with(path, length, ".json") ? CORPUS_AUTO : CORPUS_TEXT;
}

/* Returns true if these bytes are the beginning of a line that can still turn out to be a JSON object. */
static bool may_be_jsonl(const char *bytes, uint64_t count)
{
    uint64_t at = memcmp(bytes, BOM, min64(count, 3)) ? 0 : min64(count, 3);
    while (at < count && (bytes[at] == ' ' || bytes[at] == '\t' || bytes[at] == '\r'))
        at++;
    return at == count || (bytes[at] == '{' && !memchr(bytes + at, '\n', count - at));
}

/* Returns true if the first line is a JSON object. */
static bool is_jsonl(const char *bytes, uint64_t count)
{
    if (count >= 3 && !memcmp(bytes, BOM, 3)) {
        bytes += 3;
        count -= 3;
    }
    const char *newline = memchr(bytes, '\n', count);
    struct json_field field;
    struct json_fault fault;
    if (newline)
        count = (uint64_t)(newline - bytes);
    /* A JSON object passes every check except the last one, since it need not have a field with an empty name. */
    return json_field_find(bytes, count, "", 0, &field, &fault) || !strcmp(fault.reason, JSON_FIELD_MISSING) ||
           !strcmp(fault.reason, JSON_FIELD_NOT_STRING);
}

/* Counts the newlines. */
static uint64_t lines_count(const char *bytes, uint64_t count)
{
    uint64_t found = 0, i = 0;
#if defined(__SSE2__)
    const __m128i newline = _mm_set1_epi8('\n');
    while (count - i >= 16) {
        /* Each byte of `sums` counts up to 255 newlines before the bytes are added up. */
        __m128i sums = _mm_setzero_si128();
        const uint64_t stop = i + min64((count - i) / 16, 255) * 16;
        for (; i < stop; i += 16)
            sums = _mm_sub_epi8(sums,
                                _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(const void *)(bytes + i)), newline));
        const __m128i two = _mm_sad_epu8(sums, _mm_setzero_si128());
        found += (uint64_t)_mm_cvtsi128_si64(two) + (uint64_t)_mm_cvtsi128_si64(_mm_unpackhi_epi64(two, two));
    }
#endif
    for (; i < count; i++)
        found += bytes[i] == '\n';
    return found;
}

/* ---- issues ---- */

static enum tokmap_status no_memory(struct tokmap_error *error)
{
    return error_set_memory(error, "a batch of the corpus", 0);
}

/* Adds an issue about the open file or `path`. Unless issues are skipped, it ends the work. NULL: not enough memory. */
static struct corpus_issue *issue_add(struct corpus *corpus, struct corpus_batch *batch, enum corpus_issue_kind kind,
                                      const char *path)
{
    struct corpus_issue *issue = corpus_batch_add_issue(batch);
    if (!issue)
        return NULL;
    issue->kind = kind;
    issue->path = corpus_batch_add_path(batch, path);
    issue->jsonl = corpus->jsonl;
    if (!corpus->options.skip && !(kind == CORPUS_ISSUE_ENCODING && corpus->options.invalid == CORPUS_INVALID_SKIP))
        corpus->done = true;
    return issue->path ? issue : NULL;
}

static enum corpus_reason reason_of_status(enum tokmap_status status)
{
    if (status == TOKMAP_ERROR_UNSUPPORTED)
        return CORPUS_REASON_FORMAT;
    if (status == TOKMAP_ERROR_LIMIT)
        return CORPUS_REASON_TOO_LONG;
    if (status == TOKMAP_ERROR_TRUNCATED || status == TOKMAP_ERROR_CORRUPT || status == TOKMAP_ERROR_MISMATCH)
        return CORPUS_REASON_DAMAGED;
    return CORPUS_REASON_UNREADABLE;
}

/* Turns an error of a file into an issue. An interrupt or a lack of memory is not the file's fault, and is returned. */
static enum tokmap_status file_failed(struct corpus *corpus, struct corpus_batch *batch, const char *path,
                                      uint64_t skipped, enum tokmap_status status, const struct tokmap_error *why,
                                      struct tokmap_error *error)
{
    if (status == TOKMAP_ERROR_INTERRUPTED || status == TOKMAP_ERROR_MEMORY) {
        if (error)
            *error = *why;
        return status;
    }
    struct corpus_issue *issue = issue_add(corpus, batch, CORPUS_ISSUE_FILE, path);
    if (!issue)
        return no_memory(error);
    issue->error = malloc(sizeof *issue->error);
    if (!issue->error)
        return no_memory(error);
    *issue->error = *why;
    issue->left_out = reason_of_status(status);
    issue->is_file = true;
    issue->offset = why->offset;
    issue->bytes = skipped;
    corpus_batch_count_issue(batch, issue);
    return TOKMAP_OK;
}

/* ---- one file ---- */

static uint64_t current_limit(const struct corpus *corpus)
{
    return corpus->jsonl ? corpus->options.record_limit : corpus->options.document_limit;
}

static void file_end(struct corpus *corpus, struct corpus_batch *batch)
{
    const uint64_t stored = stream_stored(corpus->stream);
    batch->counts.stored_bytes += stored;
    corpus->finished_stored += stored;
    stream_close(corpus->stream);
    corpus->open = false;
    corpus->carried = 0;
}

static enum tokmap_status file_begin(struct corpus *corpus, struct corpus_batch *batch, const char *path,
                                     struct tokmap_error *error)
{
    struct tokmap_error why;
    free(corpus->path);
    corpus->path = strdup(path);
    if (!corpus->path)
        return no_memory(error);
    assert(!corpus->open && !corpus->carried);
    corpus->jsonl = corpus->options.format == CORPUS_JSONL;
    enum tokmap_status status = stream_open(corpus->stream, corpus->path, &why);
    if (!status) {
        const struct os_stat *own = stream_stat(corpus->stream);
        for (size_t i = 0; i < corpus->excluded_count && !status; i++)
            if (own->device == corpus->excluded[i].device && own->inode == corpus->excluded[i].inode)
                status =
                    error_set(&why, TOKMAP_ERROR_ARGUMENT, path, TOKMAP_NO_OFFSET,
                              "this input is an output of the same command; write it outside of the inputs' folder");
        if (status)
            stream_close(corpus->stream);
    }
    if (status)
        return file_failed(corpus, batch, corpus->path, 0, status, &why, error);
    enum corpus_format format = corpus->options.format;
    if (format == CORPUS_AUTO)
        format = format_of_name(path);
    corpus->jsonl = format == CORPUS_JSONL;
    corpus->format_known = format != CORPUS_AUTO;
    corpus->open = true;
    corpus->batch_path = NULL;
    corpus->resumed = false;
    corpus->offset = corpus->record = corpus->carried = 0;
    /* Text that may have to be left out as a whole must be seen whole before any of it is used. */
    const bool may_skip = corpus->options.skip || corpus->options.invalid == CORPUS_INVALID_SKIP;
    corpus->whole =
        !corpus->options.cut_anywhere || (may_skip && (corpus->options.cut || !stream_is_regular(corpus->stream)));
    return TOKMAP_OK;
}

/* Keeps bytes [from, from + count) of the batch for the next call. */
static enum tokmap_status carry_over(struct corpus *corpus, const struct corpus_batch *batch, uint64_t from,
                                     uint64_t count, struct tokmap_error *error)
{
    assert(from + count <= batch->capacity);
    if (count > corpus->carry_capacity) {
        char *grown = realloc(corpus->carry, count);
        if (!grown)
            return no_memory(error);
        corpus->carry = grown;
        corpus->carry_capacity = count;
    }
    if (count)
        memcpy(corpus->carry, batch->bytes + from, count);
    corpus->carried = count;
    return TOKMAP_OK;
}

/* Makes a part of the first `count` bytes from batch->filled on. end: the document ends with them. */
static enum tokmap_status part_add(struct corpus *corpus, struct corpus_batch *batch, uint64_t count, bool end,
                                   struct tokmap_error *error)
{
    /* If this batch has a part of the document already, the new bytes are adjacent to it: the part grows. */
    if (!corpus->jsonl && corpus->resumed && corpus->batch_path) {
        struct corpus_part *last = &batch->parts[batch->part_count - 1];
        assert(last->unfinished && last->end == batch->filled);
        last->end += count;
        last->unfinished = !end;
        corpus->offset += count;
        batch->filled += count;
        return TOKMAP_OK;
    }
    if (!corpus->batch_path)
        corpus->batch_path = corpus_batch_add_path(batch, corpus->path);
    struct corpus_part *part = corpus->batch_path ? corpus_batch_add_part(batch) : NULL;
    if (!part)
        return no_memory(error);
    part->path = corpus->batch_path;
    part->begin = batch->filled;
    part->end = batch->filled + count;
    part->offset = corpus->offset;
    part->record = corpus->record;
    part->jsonl = corpus->jsonl;
    if (corpus->jsonl) {
        corpus->record += lines_count(batch->bytes + part->begin, count);
    } else {
        part->resumed = corpus->resumed;
        part->unfinished = !end;
        corpus->resumed = true;
    }
    corpus->offset += count;
    batch->filled += count;
    return TOKMAP_OK;
}

/* Skips a line or document that is over its limit: reads to its end without keeping it, and adds an issue. `have` bytes
 * of it are in the batch. */
static enum tokmap_status skip_over_limit(struct corpus *corpus, struct corpus_batch *batch, uint64_t have, bool end,
                                          struct tokmap_error *error)
{
    struct corpus_issue *issue = issue_add(corpus, batch, CORPUS_ISSUE_LIMIT, corpus->path);
    if (!issue)
        return no_memory(error);
    issue->limit = current_limit(corpus);
    issue->reason = corpus->jsonl ? "the line is longer than the limit" : "the document is larger than the limit";
    issue->record = corpus->record;
    issue->offset = corpus->offset;
    corpus->carried = 0;
    uint64_t skipped = have;
    char *buffer = batch->bytes + batch->filled;
    const size_t room = (size_t)min64(batch->capacity - batch->filled, corpus->options.batch_bytes);
    struct tokmap_error why;
    enum tokmap_status status = TOKMAP_OK;
    bool found = false;
    while (!corpus->done && !end && !found && !status) {
        size_t got;
        status = stream_read(corpus->stream, buffer, room, &got, &end, &why);
        batch->counts.stream_bytes += got;
        const char *newline = corpus->jsonl ? memchr(buffer, '\n', got) : NULL;
        uint64_t used = got;
        if (newline) {
            found = true;
            used = (uint64_t)(newline - buffer) + 1;
            const enum tokmap_status carried = carry_over(corpus, batch, batch->filled + used, got - used, error);
            if (carried)
                return carried;
        }
        skipped += used;
    }
    issue->bytes = skipped;
    issue->left_out = CORPUS_REASON_TOO_LONG;
    issue->is_file = !corpus->jsonl && !status; /* if the read failed, the file is counted below */
    corpus_batch_count_issue(batch, issue);
    corpus->offset += skipped;
    corpus->record++;
    if (status) {
        status = file_failed(corpus, batch, corpus->path, corpus->carried, status, &why, error);
        file_end(corpus, batch);
        return status;
    }
    if (end && !corpus->carried) {
        batch->counts.files += corpus->jsonl;
        file_end(corpus, batch);
    }
    return TOKMAP_OK;
}

/* Reads a whole text file and only checks it. Sets *bytes to its size and *offset to the position of the first invalid
 * byte, or to TOKMAP_NO_OFFSET. */
static enum tokmap_status text_prescan(const struct corpus *corpus, uint64_t *bytes, uint64_t *offset,
                                       struct tokmap_error *error)
{
    const size_t room = corpus->options.batch_bytes;
    struct stream *stream;
    char *buffer = malloc(room);
    *bytes = 0;
    *offset = TOKMAP_NO_OFFSET;
    if (!buffer)
        return no_memory(error);
    enum tokmap_status status = stream_new(&stream, corpus->options.stop, corpus->options.user, error);
    if (!status)
        status = stream_open(stream, corpus->path, error);
    uint64_t have = 0;
    for (bool end = false; !status && !end;) {
        size_t got;
        status = stream_read(stream, buffer + have, room - have, &got, &end, error);
        *bytes += got;
        have += got;
        const uint64_t cut = end ? have : utf8_cut(buffer, have);
        if (*offset == TOKMAP_NO_OFFSET && corpus->options.invalid != CORPUS_INVALID_REPLACE) {
            const uint64_t valid = utf8_valid_prefix(buffer, cut);
            if (valid < cut)
                *offset = *bytes - have + valid;
        }
        memmove(buffer, buffer + cut, have - cut);
        have -= cut;
    }
    stream_free(stream);
    free(buffer);
    return status;
}

/* Checks a text that does not fit in a batch before its first part is delivered, where invalid documents are skipped.
 * Sets *skip if it cannot be used; its issue and its bytes are then recorded, and the file is closed. */
static enum tokmap_status text_check(struct corpus *corpus, struct corpus_batch *batch, uint64_t have, bool *skip,
                                     struct tokmap_error *error)
{
    struct tokmap_error why;
    uint64_t bytes, offset;
    *skip = false;
    enum tokmap_status status = text_prescan(corpus, &bytes, &offset, &why);
    if (!status && offset == TOKMAP_NO_OFFSET)
        return TOKMAP_OK;
    *skip = true;
    bytes = max64(bytes, have);
    batch->counts.stream_bytes += bytes - have;
    if (status) {
        status = file_failed(corpus, batch, corpus->path, bytes, status, &why, error);
    } else {
        struct corpus_issue *issue = issue_add(corpus, batch, CORPUS_ISSUE_ENCODING, corpus->path);
        if (!issue)
            return no_memory(error);
        issue->reason = "";
        issue->offset = offset;
        issue->bytes = bytes;
        issue->left_out = CORPUS_REASON_ENCODING;
        issue->is_file = true;
        corpus_batch_count_issue(batch, issue);
    }
    file_end(corpus, batch);
    return status;
}

/* What to do with the bytes that were read. BATCH_FULL: process the batch without them, and carry them over. */
enum cut_decision { CUT, READ_MORE, BATCH_FULL, OVER_LIMIT };

/* Decides about the `have` bytes from batch->filled on; the first `seen` of them contain no newline. For CUT, *cut is
 * the number of bytes that make a part. */
static enum cut_decision choose_cut(const struct corpus *corpus, const struct corpus_batch *batch, uint64_t have,
                                    uint64_t seen, bool end, uint64_t *cut)
{
    const char *bytes = batch->bytes + batch->filled;
    const uint64_t limit = current_limit(corpus);
    const bool room = batch->capacity - batch->filled - have >= READ_LEAST;
    assert(batch->filled + have <= batch->capacity && seen <= have);
    *cut = have;
    if (corpus->jsonl) {
        const char *newline = end ? NULL : memrchr(bytes + seen, '\n', have - seen);
        if (newline)
            *cut = (uint64_t)(newline - bytes) + 1;
        if (end || newline)
            return CUT;
    } else if (!corpus->whole) {
        const struct corpus_options *options = &corpus->options;
        *cut = end ? have : options->cut ? options->cut(options->cut_user, bytes, have) : utf8_cut(bytes, have);
        if (*cut || end)
            return CUT;
    } else if (end) {
        return have > limit ? OVER_LIMIT : CUT;
    }
    if (have > limit)
        return OVER_LIMIT;
    return room || !batch->filled ? READ_MORE : BATCH_FULL;
}

/* Makes room for a read after `have` bytes: a line or document that fills its batch makes the batch grow. */
static enum tokmap_status room_grow(struct corpus *corpus, struct corpus_batch *batch, uint64_t have,
                                    struct tokmap_error *error)
{
    if (batch->capacity - batch->filled - have >= READ_LEAST)
        return TOKMAP_OK;
    const uint64_t usual = corpus->options.batch_bytes;
    if (batch->capacity <= 4 * usual && 2 * batch->capacity > 4 * usual && corpus->options.before_large)
        corpus->options.before_large(corpus->options.user);
    /* The capacity doubles, but not beyond what a line or document within its limit can need. */
    uint64_t most, capacity = 2 * max64(batch->capacity, usual);
    if (!add_overflows(current_limit(corpus), 2 * usual, &most) && have <= current_limit(corpus))
        capacity = min64(capacity, most);
    if (!corpus_batch_reserve(batch, max64(capacity, batch->filled + have + READ_LEAST)))
        return error_set_memory(error, "a long line or document", capacity);
    return TOKMAP_OK;
}

/* Detects the format and removes a byte order mark of JSONL. Returns false if more bytes are needed for that. */
static bool format_detect(struct corpus *corpus, struct corpus_batch *batch, uint64_t *have, bool end)
{
    const char *bytes = batch->bytes + batch->filled;
    if (!corpus->format_known) {
        /* The whole first line is needed, however long it is. */
        if (!end && may_be_jsonl(bytes, *have) && *have <= corpus->options.record_limit)
            return false;
        corpus->jsonl = is_jsonl(bytes, *have);
        corpus->format_known = true;
    }
    if (corpus->jsonl && !corpus->offset && *have >= 3 && !memcmp(bytes, BOM, 3)) {
        batch->counts.structure_bytes += 3;
        batch->filled += 3;
        corpus->offset += 3;
        *have -= 3;
    }
    return true;
}

/* A read has failed after `have` bytes that are in no part yet. Delivers the whole lines among them, makes the error an
 * issue, and closes the file. */
static enum tokmap_status file_damaged(struct corpus *corpus, struct corpus_batch *batch, uint64_t have,
                                       enum tokmap_status status, const struct tokmap_error *why,
                                       struct tokmap_error *error)
{
    const char *bytes = batch->bytes + batch->filled;
    const bool started = corpus->resumed;
    /* Whole lines before the damage are used, and an issue in one of them precedes the issue of the file. */
    const char *newline = corpus->jsonl && corpus->format_known ? memrchr(bytes, '\n', have) : NULL;
    if (newline) {
        const uint64_t cut = (uint64_t)(newline - bytes) + 1;
        const enum tokmap_status added = part_add(corpus, batch, cut, false, error);
        if (added)
            return added;
        have -= cut;
    }
    status = file_failed(corpus, batch, corpus->path, have, status, why, error);
    if (!status && started)
        batch->issues[batch->issue_count - 1].fatal = true;
    file_end(corpus, batch);
    return status;
}

/* Adds bytes of the open file to the batch. Sets *full if the batch should be processed now. */
static enum tokmap_status file_read(struct corpus *corpus, struct corpus_batch *batch, bool *full,
                                    struct tokmap_error *error)
{
    uint64_t have = corpus->carried, cut = 0, seen = 0;
    enum cut_decision decision;
    bool end = false;
    if (batch->capacity - batch->filled < have + READ_LEAST && batch->filled) {
        *full = true;
        return TOKMAP_OK;
    }
    enum tokmap_status status = corpus_batch_reserve(batch, have + READ_LEAST) ? TOKMAP_OK : no_memory(error);
    if (status)
        return status;
    if (have)
        memcpy(batch->bytes + batch->filled, corpus->carry, have);
    corpus->carried = 0;
    do {
        status = room_grow(corpus, batch, have, error);
        if (status)
            return status;
        struct tokmap_error why;
        size_t got;
        /* Not more than a batch at a time, because the bytes after the end of a long line are carried over. */
        const uint64_t room = min64(batch->capacity - batch->filled - have, corpus->options.batch_bytes);
        status = stream_read(corpus->stream, batch->bytes + batch->filled + have, (size_t)room, &got, &end, &why);
        batch->counts.stream_bytes += got;
        have += got;
        if (status)
            return file_damaged(corpus, batch, have, status, &why, error);
        decision = READ_MORE;
        if (format_detect(corpus, batch, &have, end)) {
            decision = choose_cut(corpus, batch, have, seen, end, &cut);
            seen = have;
        }
    } while (decision == READ_MORE);
    if (decision == OVER_LIMIT)
        return skip_over_limit(corpus, batch, have, end, error);
    if (decision == BATCH_FULL) {
        *full = true;
        return carry_over(corpus, batch, batch->filled, have, error);
    }
    const bool may_skip = corpus->options.skip || corpus->options.invalid == CORPUS_INVALID_SKIP;
    if (!corpus->jsonl && !corpus->whole && !end && !corpus->resumed && may_skip) {
        bool skip;
        status = text_check(corpus, batch, have, &skip, error);
        if (status || skip)
            return status;
    }
    const uint64_t from = batch->filled;
    assert(cut <= have);
    if (cut || (!corpus->jsonl && end))
        status = part_add(corpus, batch, cut, end, error);
    if (!status)
        status = carry_over(corpus, batch, from + cut, have - cut, error);
    if (!status && end) {
        batch->counts.files++;
        file_end(corpus, batch);
    }
    return status;
}

enum tokmap_status corpus_next(struct corpus *corpus, struct corpus_batch *batch, struct tokmap_error *error)
{
    assert(corpus && batch);
    const uint64_t usual = corpus->options.batch_bytes;
    corpus_batch_clear(batch, 4 * usual);
    corpus->batch_path = NULL;
    if (!corpus_batch_reserve(batch, usual))
        return no_memory(error);
    bool full = false;
    enum tokmap_status status = TOKMAP_OK;
    while (!status && !full && !(corpus->done && !corpus->open)) {
        const bool something = batch->part_count || batch->issue_count;
        if (corpus->open) {
            if (something && stream_would_wait(corpus->stream)) {
                batch->pause = true;
                break;
            }
            status = file_read(corpus, batch, &full, error);
            if (corpus->done && corpus->open)
                file_end(corpus, batch);
            continue;
        }
        if (batch->filled * 2 > usual || batch->part_count > ITEMS_MOST || batch->issue_count > ITEMS_MOST)
            break;
        struct tokmap_error why;
        const char *path = "";
        const enum tokmap_status found = inputs_next(corpus->inputs, &path, &why);
        if (found == TOKMAP_END)
            corpus->done = true;
        else if (found)
            status = file_failed(corpus, batch, why.path, 0, found, &why, error);
        else
            status = file_begin(corpus, batch, path, error);
    }
    batch->progress = corpus->finished_stored + (corpus->open ? stream_stored(corpus->stream) : 0);
    if (status)
        return status;
    return batch->part_count || batch->issue_count || batch->counts.stream_bytes || batch->counts.files ? TOKMAP_OK
                                                                                                        : TOKMAP_END;
}
