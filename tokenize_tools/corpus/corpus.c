/*
 * corpus.c - the reader: fills batches with raw bytes, cut where a line or a character ends.
 *
 * Bytes are read straight to where the documents will lie. What is behind the last cut, less than a line or a
 * character, is carried into the next batch. A line longer than a batch makes its batch grow, up to the limit; a text
 * document does not: it goes on in parts, unless it must be held whole, because the tokenizer cannot take parts, or
 * because it may have to be left out altogether and cannot be read twice. A regular file can: where wrong documents are
 * to be skipped, a text that does not fit a batch is first read to its end without being used.
 */
#include "corpus.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "text/utf8.h"
#include "document_batch.h"
#include "common/bytes.h"
#include "common/error.h"
#include "inputs.h"
#include "json_field.h"
#include "stream.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define READ_LEAST 4096 /* room that makes a read worth its call */
#define ITEMS_MOST 1024 /* files and issues in a batch */
#define EXCLUDED_MOST 8
#define BOM "\xef\xbb\xbf"

struct corpus {
    struct corpus_options options;
    struct inputs *inputs;
    struct stream *stream;
    bool done;

    char *path;             /* of the open file */
    const char *batch_path; /* its copy in the batch being filled, or NULL */
    bool open, format_known, jsonl;
    bool resumed;    /* its document has given parts already */
    bool whole;      /* its document must be held whole */
    uint64_t offset; /* in the stream, of the first byte that no part holds */
    uint64_t record; /* of the next line */

    char *carry;
    uint64_t carried, carry_capacity;
    uint64_t finished_stored;
    struct os_stat excluded[EXCLUDED_MOST];
    size_t excluded_count;
};

enum tokmap_status corpus_open(struct corpus **corpus, const char *const *operands, size_t count,
                               const struct corpus_options *options, struct tokmap_error *error)
{
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
        return error_set(error, TOKMAP_ERROR_LIMIT, path, TOKMAP_NO_OFFSET, "too many excluded files");
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

void corpus_counts_add(struct corpus_counts *sum, const struct corpus_counts *more)
{
    sum->files += more->files;
    sum->files_skipped += more->files_skipped;
    sum->stored_bytes += more->stored_bytes;
    sum->stream_bytes += more->stream_bytes;
    sum->documents += more->documents;
    sum->records_skipped += more->records_skipped;
    sum->blank_lines += more->blank_lines;
    sum->empty_documents += more->empty_documents;
    sum->replaced += more->replaced;
    sum->document_bytes += more->document_bytes;
    sum->structure_bytes += more->structure_bytes;
    sum->skipped_bytes += more->skipped_bytes;
    sum->text_bytes += more->text_bytes;
}

/* ---- format ---- */

static bool ends_with(const char *name, size_t length, const char *end)
{
    const size_t bytes = strlen(end);
    return length > bytes && !memcmp(name + length - bytes, end, bytes);
}

/* By the name: JSONL, text, or AUTO where it says nothing. */
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

/* True if a line that is not yet whole begins like one of JSONL. */
static bool may_be_jsonl(const char *bytes, uint64_t count)
{
    uint64_t at = memcmp(bytes, BOM, min64(count, 3)) ? 0 : min64(count, 3);
    while (at < count && (bytes[at] == ' ' || bytes[at] == '\t' || bytes[at] == '\r'))
        at++;
    return at == count || (bytes[at] == '{' && !memchr(bytes + at, '\n', count - at));
}

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
    /* An object that lacks every field passes all of the check but its last question. */
    return json_find(bytes, count, "", 0, &field, &fault) || !strcmp(fault.reason, JSON_MISSING) ||
           !strcmp(fault.reason, JSON_NO_STRING);
}

/* Number of line ends. */
static uint64_t lines_count(const char *bytes, uint64_t count)
{
    uint64_t found = 0, i = 0;
#if defined(__SSE2__)
    const __m128i newline = _mm_set1_epi8('\n');
    while (count - i >= 16) {
        /* Bytes count up to 255 before they are summed. */
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

static struct corpus_issue *issue_add(struct corpus *corpus, struct corpus_batch *batch, enum corpus_issue_kind kind,
                                      const char *path)
{
    struct corpus_issue *issue = batch_issue(batch);
    if (!issue)
        return NULL;
    issue->kind = kind;
    issue->path = batch_path(batch, path);
    issue->jsonl = corpus->jsonl;
    if (!corpus->options.skip && !(kind == CORPUS_ISSUE_ENCODING && corpus->options.invalid == CORPUS_INVALID_SKIP))
        corpus->done = true;
    return issue->path ? issue : NULL;
}

/* A file's failure becomes an issue; what is no fault of the file ends the call. */
static enum tokmap_status file_fails(struct corpus *corpus, struct corpus_batch *batch, const char *path,
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
    issue->offset = why->offset;
    issue->bytes = skipped;
    batch->counts.skipped_bytes += skipped;
    batch->counts.files_skipped++;
    return TOKMAP_OK;
}

/* ---- one file ---- */

static uint64_t limit_of(const struct corpus *corpus)
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
        return file_fails(corpus, batch, corpus->path, 0, status, &why, error);
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
    corpus->whole = !corpus->options.cut_anywhere ||
                    (may_skip && (corpus->options.cut || !stream_is_regular(corpus->stream)));
    return TOKMAP_OK;
}

/* Bytes [from, from + count) of the batch wait for the next call. */
static enum tokmap_status carry(struct corpus *corpus, const struct corpus_batch *batch, uint64_t from, uint64_t count,
                                struct tokmap_error *error)
{
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

/* The first `count` bytes behind batch->filled become a part. */
static enum tokmap_status part_add(struct corpus *corpus, struct corpus_batch *batch, uint64_t count, bool end,
                                   struct tokmap_error *error)
{
    /* A document that has a part in this batch already has one part in it still: the bytes lie side by side. */
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
        corpus->batch_path = batch_path(batch, corpus->path);
    struct corpus_part *part = corpus->batch_path ? batch_part(batch) : NULL;
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

/* A line or document over its limit: reads on to its end without keeping it. `have` bytes of it are in the batch. */
static enum tokmap_status over_limit(struct corpus *corpus, struct corpus_batch *batch, uint64_t have, bool end,
                                     struct tokmap_error *error)
{
    struct corpus_issue *issue = issue_add(corpus, batch, CORPUS_ISSUE_LIMIT, corpus->path);
    if (!issue)
        return no_memory(error);
    issue->limit = limit_of(corpus);
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
            const enum tokmap_status carried = carry(corpus, batch, batch->filled + used, got - used, error);
            if (carried)
                return carried;
        }
        skipped += used;
    }
    issue->bytes = skipped;
    batch->counts.skipped_bytes += skipped;
    batch->counts.records_skipped++;
    corpus->offset += skipped;
    corpus->record++;
    if (status) {
        status = file_fails(corpus, batch, corpus->path, corpus->carried, status, &why, error);
        file_end(corpus, batch);
        return status;
    }
    if (end && !corpus->carried) {
        batch->counts.files++;
        file_end(corpus, batch);
    }
    return TOKMAP_OK;
}

/* Reads a whole text file without using it. *offset: of the first invalid byte, or TOKMAP_NO_OFFSET. */
static enum tokmap_status text_examine(struct corpus *corpus, struct corpus_batch *batch, uint64_t *bytes,
                                       uint64_t *offset, struct tokmap_error *error)
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

/* A text that will not fit, where wrong ones are left out: *skip if it is wrong; it is accounted for then. */
static enum tokmap_status text_check(struct corpus *corpus, struct corpus_batch *batch, uint64_t have, bool *skip,
                                     struct tokmap_error *error)
{
    struct tokmap_error why;
    uint64_t bytes, offset;
    *skip = false;
    enum tokmap_status status = text_examine(corpus, batch, &bytes, &offset, &why);
    if (!status && offset == TOKMAP_NO_OFFSET)
        return TOKMAP_OK;
    *skip = true;
    bytes = max64(bytes, have);
    batch->counts.stream_bytes += bytes - have;
    if (status) {
        status = file_fails(corpus, batch, corpus->path, bytes, status, &why, error);
    } else {
        struct corpus_issue *issue = issue_add(corpus, batch, CORPUS_ISSUE_ENCODING, corpus->path);
        if (!issue)
            return no_memory(error);
        issue->reason = "";
        issue->offset = offset;
        issue->bytes = bytes;
        batch->counts.skipped_bytes += bytes;
        batch->counts.records_skipped++;
        batch->counts.files++;
    }
    file_end(corpus, batch);
    return status;
}

/* What to do with the bytes that were read. */
enum verdict { CUT, READ_MORE, BATCH_FULL, OVER_LIMIT };

/* `have` bytes lie behind batch->filled, the first `seen` of them without the end of a line. *cut: how many of them
 * make a part. */
static enum verdict judge(const struct corpus *corpus, const struct corpus_batch *batch, uint64_t have, uint64_t seen,
                          bool end, uint64_t *cut)
{
    const char *bytes = batch->bytes + batch->filled;
    const uint64_t limit = limit_of(corpus);
    const bool room = batch->capacity - batch->filled - have >= READ_LEAST;
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

/* Room for a read behind `have` bytes; a line or document that fills its batch makes it grow. */
static enum tokmap_status room_make(struct corpus *corpus, struct corpus_batch *batch, uint64_t have,
                                    struct tokmap_error *error)
{
    if (batch->capacity - batch->filled - have >= READ_LEAST)
        return TOKMAP_OK;
    const uint64_t usual = corpus->options.batch_bytes;
    if (batch->capacity <= 4 * usual && 2 * batch->capacity > 4 * usual && corpus->options.before_large)
        corpus->options.before_large(corpus->options.user);
    /* Doubled, but not past what the limit can ask for. */
    uint64_t most, capacity = 2 * max64(batch->capacity, usual);
    if (!add_overflows(limit_of(corpus), 2 * usual, &most) && have <= limit_of(corpus))
        capacity = min64(capacity, most);
    if (!batch_reserve(batch, max64(capacity, batch->filled + have + READ_LEAST)))
        return error_set_memory(error, "a long line or document", capacity);
    return TOKMAP_OK;
}

/* The format, once the first bytes are there; false: more of them are needed. */
static bool format_tell(struct corpus *corpus, struct corpus_batch *batch, uint64_t *have, bool end)
{
    const char *bytes = batch->bytes + batch->filled;
    if (!corpus->format_known) {
        /* Its first line must be seen whole, however long it is. */
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

static enum tokmap_status file_damaged(struct corpus *corpus, struct corpus_batch *batch, uint64_t have,
                                       enum tokmap_status status, const struct tokmap_error *why,
                                       struct tokmap_error *error)
{
    const char *bytes = batch->bytes + batch->filled;
    const bool started = corpus->resumed;
    /* Lines that came whole are as good as any; a fault in one of them comes first. */
    const char *newline = corpus->jsonl && corpus->format_known ? memrchr(bytes, '\n', have) : NULL;
    if (newline) {
        const uint64_t cut = (uint64_t)(newline - bytes) + 1;
        const enum tokmap_status added = part_add(corpus, batch, cut, false, error);
        if (added)
            return added;
        have -= cut;
    }
    status = file_fails(corpus, batch, corpus->path, have, status, why, error);
    if (!status && started)
        batch->issues[batch->issue_count - 1].fatal = true;
    file_end(corpus, batch);
    return status;
}

/* Takes what the open file has for this batch. *full: the batch should go. */
static enum tokmap_status file_read(struct corpus *corpus, struct corpus_batch *batch, bool *full,
                                    struct tokmap_error *error)
{
    uint64_t have = corpus->carried, cut = 0, seen = 0;
    enum verdict verdict;
    bool end = false;
    if (batch->capacity - batch->filled < have + READ_LEAST && batch->filled) {
        *full = true;
        return TOKMAP_OK;
    }
    enum tokmap_status status = batch_reserve(batch, have + READ_LEAST) ? TOKMAP_OK : no_memory(error);
    if (status)
        return status;
    if (have)
        memcpy(batch->bytes + batch->filled, corpus->carry, have);
    corpus->carried = 0;
    do {
        status = room_make(corpus, batch, have, error);
        if (status)
            return status;
        struct tokmap_error why;
        size_t got;
        /* Not more than a batch at once: what is read behind the end of a long line has to be carried. */
        const uint64_t room = min64(batch->capacity - batch->filled - have, corpus->options.batch_bytes);
        status = stream_read(corpus->stream, batch->bytes + batch->filled + have, (size_t)room, &got, &end, &why);
        batch->counts.stream_bytes += got;
        have += got;
        if (status)
            return file_damaged(corpus, batch, have, status, &why, error);
        verdict = READ_MORE;
        if (format_tell(corpus, batch, &have, end)) {
            verdict = judge(corpus, batch, have, seen, end, &cut);
            seen = have;
        }
    } while (verdict == READ_MORE);
    if (verdict == OVER_LIMIT)
        return over_limit(corpus, batch, have, end, error);
    if (verdict == BATCH_FULL) {
        *full = true;
        return carry(corpus, batch, batch->filled, have, error);
    }
    const bool may_skip = corpus->options.skip || corpus->options.invalid == CORPUS_INVALID_SKIP;
    if (!corpus->jsonl && !corpus->whole && !end && !corpus->resumed && may_skip) {
        bool skip;
        status = text_check(corpus, batch, have, &skip, error);
        if (status || skip)
            return status;
    }
    const uint64_t from = batch->filled;
    if (cut || (!corpus->jsonl && end))
        status = part_add(corpus, batch, cut, end, error);
    if (!status)
        status = carry(corpus, batch, from + cut, have - cut, error);
    if (!status && end) {
        batch->counts.files++;
        file_end(corpus, batch);
    }
    return status;
}

enum tokmap_status corpus_next(struct corpus *corpus, struct corpus_batch *batch, struct tokmap_error *error)
{
    const uint64_t usual = corpus->options.batch_bytes;
    batch_clear(batch, 4 * usual);
    corpus->batch_path = NULL;
    if (!batch_reserve(batch, usual))
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
            status = file_fails(corpus, batch, why.path, 0, found, &why, error);
        else
            status = file_begin(corpus, batch, path, error);
    }
    batch->progress = corpus->finished_stored + (corpus->open ? stream_stored(corpus->stream) : 0);
    if (status)
        return status;
    return batch->part_count || batch->issue_count || batch->counts.stream_bytes || batch->counts.files ? TOKMAP_OK
                                                                                                        : TOKMAP_END;
}
