/* SPDX-License-Identifier: MIT */
/*
 * exclusion.c - see exclusion.h.
 *
 * The lists are taken in order of their steps, all of one step together. Of their ranges, those that an earlier step
 * excludes already are taken away. What is left is hashed, and then merged into the ranges of its source. Example: a
 * list from step 100 on has tokens 10 to 20 and one from step 200 on has tokens 15 to 30:
 *
 *     tokens 10..20 from 100, tokens 20..30 from 200;  the event of step 200 has the hash of 20..30
 */
#include "exclusion.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "dataset/dataset.h"
#include "dataset/documents.h"
#include "dataset/row_extents.h"
#include "platform/os.h"
#include "text/decimal.h"
#include "text/path.h"

#define LINE_MOST 4096                 /* bytes of a line */
#define LIST_MOST ((uint64_t)16 << 30) /* bytes of a list */
#define READ_BYTES ((size_t)64 << 10)  /* at least LINE_MOST + 2 */
#define WORDS_MOST 4                   /* of a line that are looked at */

struct list_reader {
    const char *path;
    uint64_t line;
    const struct run_sources *sources;
    uint64_t last; /* the source of the line before */
    enum tokmap_status (*each)(void *user, const struct exclusion_item *item, struct tokmap_error *error);
    void *user;
    struct tokmap_error *error;
};

struct word {
    const char *at;
    size_t bytes;
};

#define wrong(reader, status, ...)                                                                                     \
    error_set_line((reader)->error, (status), (reader)->path, (reader)->line, __VA_ARGS__)

/* Cuts a line into words; returns how many there are, at most WORDS_MOST. */
static size_t cut(const char *line, size_t bytes, struct word words[WORDS_MOST])
{
    size_t count = 0, at = 0;
    while (count < WORDS_MOST) {
        while (at < bytes && (line[at] == ' ' || line[at] == '\t'))
            at++;
        if (at == bytes)
            break;
        words[count].at = line + at;
        while (at < bytes && line[at] != ' ' && line[at] != '\t')
            at++;
        words[count].bytes = (size_t)(line + at - words[count].at);
        count++;
    }
    return count;
}

static bool is_source(const struct run_source *source, const struct word *name)
{
    return source->name_bytes == name->bytes && memcmp(source->name, name->at, name->bytes) == 0;
}

/* Finds the source that a word names. */
static enum tokmap_status find_source(struct list_reader *reader, const struct word *name, uint64_t *number)
{
    const struct run_sources *sources = reader->sources;
    const int shown = (int)min64(name->bytes, RUN_NAME_MOST);
    *number = reader->last;
    if (is_source(&sources->of[reader->last], name))
        return TOKMAP_OK;
    for (uint64_t i = 0; i < sources->opened; i++) {
        if (!is_source(&sources->of[i], name))
            continue;
        if (i >= sources->count)
            return wrong(reader, TOKMAP_ERROR_FORMAT,
                         "'%.*s' is a validation set, which no step of the run shows; remove the line", shown,
                         name->at);
        *number = reader->last = i;
        return TOKMAP_OK;
    }
    return wrong(reader, TOKMAP_ERROR_FORMAT,
                 "the run has no source '%.*s'; write the name of a source and the number of a document, such as "
                 "'%s 17'",
                 shown, name->at, sources->of[0].name);
}

/* Compares the content id that a comment states for a source with that of its dataset. */
static enum tokmap_status check_content(struct list_reader *reader, const struct word *name, const struct word *id)
{
    char found[33];
    uint64_t number;
    const enum tokmap_status status = find_source(reader, name, &number);
    if (status)
        return status;
    const struct run_source *source = &reader->sources->of[number];
    const struct tokmap_dataset_info info = info_of_dataset(source->dataset);
    hash128_hex(info.content, found);
    if (id->bytes == 32 && memcmp(found, id->at, 32) == 0)
        return TOKMAP_OK;
    return wrong(reader, TOKMAP_ERROR_MISMATCH,
                 "the list is of a dataset with the content id %.*s, but source '%s' is '%.200s' with %s, whose "
                 "documents have other numbers; make the list again with `tokmap find`",
                 (int)min64(id->bytes, 40), id->at, source->name, source->data, found);
}

static enum tokmap_status read_comment(struct list_reader *reader, const char *text, size_t bytes)
{
    struct word words[WORDS_MOST];
    const size_t count = cut(text, bytes, words);
    const size_t key = sizeof EXCLUSION_CONTENT - 1;
    if (!count || words[0].bytes != key || memcmp(words[0].at, EXCLUSION_CONTENT, key) != 0)
        return TOKMAP_OK;
    if (count != 3)
        return wrong(reader, TOKMAP_ERROR_FORMAT,
                     "a comment that begins with '" EXCLUSION_CONTENT "' states the name of a source and the content "
                     "id of its dataset; correct it, or remove the line");
    return check_content(reader, &words[1], &words[2]);
}

/* Reads a line without its end. */
static enum tokmap_status read_line(struct list_reader *reader, const char *line, size_t bytes)
{
    struct word words[WORDS_MOST];
    struct exclusion_item item = {0};
    uint64_t document;
    if (bytes && line[bytes - 1] == '\r')
        bytes--;
    if (reader->line == 1 && bytes >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0)
        line += 3, bytes -= 3;
    for (size_t i = 0; i < bytes; i++)
        if ((unsigned char)line[i] < 0x20 && line[i] != '\t')
            return wrong(reader, TOKMAP_ERROR_FORMAT,
                         "the line has a control character (0x%02x); a list of documents is plain text, with lines "
                         "such as '%s 17'",
                         (unsigned char)line[i], reader->sources->of[0].name);
    for (size_t i = 0; i < bytes; i++)
        if (line[i] == '#' && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t')) {
            const bool whole = strspn(line, " \t") == i;
            const enum tokmap_status status = whole ? read_comment(reader, line + i + 1, bytes - i - 1) : TOKMAP_OK;
            if (status)
                return status;
            bytes = i;
        }
    const size_t count = cut(line, bytes, words);
    if (!count)
        return TOKMAP_OK;
    if (count != 2 || !decimal_parse(words[1].at, words[1].bytes, &document))
        return wrong(reader, TOKMAP_ERROR_FORMAT,
                     "'%.*s' is not the name of a source and the number of a document; write both, such as '%s 17'",
                     (int)min64(bytes, 60), line, reader->sources->of[0].name);
    enum tokmap_status status = find_source(reader, &words[0], &item.source);
    if (status)
        return status;
    const struct run_source *source = &reader->sources->of[item.source];
    struct tokmap_error reason = {0};
    status = dataset_document(source->dataset, document, &item.document, &reason);
    if (status == TOKMAP_ERROR_RANGE)
        return wrong(reader, status,
                     "source '%s' (%.200s): %.300s; correct the line, or make the list again with `tokmap find`",
                     source->name, source->data, reason.message);
    if (status)
        return wrong(reader, status, "document %" PRIu64 " of source '%s' (%.200s) cannot be found: %.300s", document,
                     source->name, source->data, reason.message);
    return reader->each(reader->user, &item, reader->error);
}

/* Reads the lines of a file. */
static enum tokmap_status read_lines(struct list_reader *reader, int fd, char *buffer)
{
    enum tokmap_status status = TOKMAP_OK;
    uint64_t total = 0;
    size_t held = 0;
    for (bool ended = false; !status && !ended;) {
        size_t got, done = 0;
        const int failed = os_read(fd, buffer + held, READ_BYTES - held, &got);
        if (failed)
            return error_set_system(reader->error, failed, reader->path, total, "cannot read the list of documents");
        ended = got == 0;
        held += got;
        total += got;
        if (total > LIST_MOST)
            return error_set(
                reader->error, TOKMAP_ERROR_LIMIT, reader->path, TOKMAP_NO_OFFSET,
                "the list has more than 16 GiB, the limit for a list of documents; leave the documents out "
                "of the dataset, or check that the file is a list");
        while (!status && done < held) {
            const char *line = buffer + done, *end = memchr(line, '\n', held - done);
            const size_t bytes = end ? (size_t)(end - line) : held - done;
            if (!end && !ended && bytes <= LINE_MOST)
                break;
            reader->line++;
            if (bytes > LINE_MOST)
                return wrong(reader, TOKMAP_ERROR_FORMAT,
                             "the line has more than %d bytes; a list of documents has lines such as '%s 17'",
                             LINE_MOST, reader->sources->of[0].name);
            status = read_line(reader, line, bytes);
            done += bytes + (end != NULL);
        }
        held -= done;
        memmove(buffer, buffer + done, held);
    }
    return status;
}

enum tokmap_status exclusion_list_read(const char *path, const struct run_sources *sources,
                                       enum tokmap_status (*each)(void *user, const struct exclusion_item *item,
                                                                  struct tokmap_error *error),
                                       void *user, struct tokmap_error *error)
{
    struct list_reader reader = {.path = path, .sources = sources, .each = each, .user = user, .error = error};
    int fd;
    const int failed = os_open(path, OS_READ, &fd);
    if (failed && strstr(path, "://"))
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, TOKMAP_NO_OFFSET,
                         "a list of documents cannot be read from a URL; copy it to a disk of this machine");
    if (failed)
        return error_set_system(error, failed, path, TOKMAP_NO_OFFSET, "cannot open the list of documents");
    char *buffer = malloc(READ_BYTES);
    const enum tokmap_status status =
        buffer ? read_lines(&reader, fd, buffer) : error_set_memory(error, "a list of documents", READ_BYTES);
    free(buffer);
    os_close(fd);
    return status;
}

#define GROWN_FIRST ((uint64_t)64)
#define SORTED_FIRST ((uint64_t)1 << 16) /* from this many ranges on, they are merged before there is more room */

/* The ranges of one step, by source, while its lists are read. */
struct group {
    struct exclusion_ranges *of;
    uint64_t *capacity;
    uint64_t step;
    uint64_t kept; /* ranges of earlier steps, and room of this one, of all sources */
    const char *path;
    struct exclusion_list *list; /* that is read */
};

/* ---- ranges ---- */

static int compare_ranges(const void *a, const void *b)
{
    const struct exclusion_range *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Sorts ranges of one step, and merges those that overlap or touch. */
static void merge(struct exclusion_ranges *ranges)
{
    uint64_t kept = 0;
    if (!ranges->count)
        return;
    qsort(ranges->of, ranges->count, sizeof *ranges->of, compare_ranges);
    for (uint64_t i = 1; i < ranges->count; i++) {
        if (ranges->of[i].first > ranges->of[kept].end)
            ranges->of[++kept] = ranges->of[i];
        else
            ranges->of[kept].end = max64(ranges->of[kept].end, ranges->of[i].end);
    }
    ranges->count = kept + 1;
}

/* Makes room for another range. */
static enum tokmap_status grow(struct group *group, uint64_t source, struct tokmap_error *error)
{
    struct exclusion_ranges *ranges = &group->of[source];
    if (ranges->count >= SORTED_FIRST)
        merge(ranges);
    if (ranges->count < group->capacity[source] / 2)
        return TOKMAP_OK;
    const uint64_t capacity = max64(2 * group->capacity[source], GROWN_FIRST);
    const uint64_t more = capacity - group->capacity[source];
    if (group->kept + more > EXCLUSION_RANGES_MOST)
        return error_set(error, TOKMAP_ERROR_LIMIT, group->path, TOKMAP_NO_OFFSET,
                         "the lists of the run have more than about %" PRIu64
                         " stretches of documents, the limit for a run; pack the dataset again without them",
                         EXCLUSION_RANGES_MOST / 2);
    struct exclusion_range *grown = realloc(ranges->of, capacity * sizeof *grown);
    if (!grown)
        return error_set_memory(error, "the excluded documents", capacity * sizeof *grown);
    ranges->of = grown;
    group->capacity[source] = capacity;
    group->kept += more;
    return TOKMAP_OK;
}

static enum tokmap_status add_item(void *user, const struct exclusion_item *item, struct tokmap_error *error)
{
    struct group *group = user;
    struct exclusion_ranges *ranges = &group->of[item->source];
    const uint64_t first = item->document.first_token, end = first + item->document.tokens;
    group->list->documents++;
    group->list->tokens += item->document.tokens;
    if (first == end)
        return TOKMAP_OK;
    if (ranges->count && ranges->of[ranges->count - 1].end == first) { /* as in a list that is sorted */
        ranges->of[ranges->count - 1].end = end;
        return TOKMAP_OK;
    }
    if (ranges->count == group->capacity[item->source]) {
        const enum tokmap_status status = grow(group, item->source, error);
        if (status)
            return status;
    }
    ranges->of[ranges->count++] = (struct exclusion_range){first, end, group->step};
    return TOKMAP_OK;
}

/* Sets *left to the parts of `fresh` that are in none of `old`, all of them sorted. The caller frees left->of. */
static enum tokmap_status subtract(const struct exclusion_ranges *fresh, const struct exclusion_ranges *old,
                                   struct exclusion_ranges *left, struct tokmap_error *error)
{
    const uint64_t most = fresh->count + old->count;
    uint64_t k = 0;
    left->count = 0;
    if (!(left->of = malloc((most + 1) * sizeof *left->of)))
        return error_set_memory(error, "the excluded documents", most * sizeof *left->of);
    for (uint64_t i = 0; i < fresh->count; i++) {
        struct exclusion_range range = fresh->of[i];
        while (k < old->count && old->of[k].end <= range.first)
            k++;
        for (; k < old->count && old->of[k].first < range.end; k++) {
            if (old->of[k].first > range.first)
                left->of[left->count++] = (struct exclusion_range){range.first, old->of[k].first, range.from};
            range.first = old->of[k].end;
            if (range.first >= range.end)
                break; /* the next one may begin in the same old range */
        }
        if (range.first < range.end)
            left->of[left->count++] = range;
    }
    return TOKMAP_OK;
}

/* Adds ranges to those of earlier steps, which have none of their tokens. Takes the memory of *more, or leaves it. */
static enum tokmap_status unite(struct exclusion_ranges *into, struct exclusion_ranges *more,
                                struct tokmap_error *error)
{
    const uint64_t count = into->count + more->count;
    if (!into->count) {
        struct exclusion_range *fitting = realloc(more->of, count * sizeof *fitting);
        *into = (struct exclusion_ranges){fitting ? fitting : more->of, count};
        *more = (struct exclusion_ranges){NULL, 0};
        return TOKMAP_OK;
    }
    struct exclusion_range *grown = realloc(into->of, (count + 1) * sizeof *grown);
    if (!grown)
        return error_set_memory(error, "the excluded documents", count * sizeof *grown);
    uint64_t i = into->count, k = more->count;
    into->of = grown;
    into->count = count;
    for (uint64_t at = count; k; at--)
        grown[at - 1] = i && grown[i - 1].first > more->of[k - 1].first ? grown[--i] : more->of[--k];
    return TOKMAP_OK;
}

/* ---- the lists of one step ---- */

struct name {
    const struct run_source *source;
    uint64_t number;
};

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct name *)a)->source->name, ((const struct name *)b)->source->name);
}

static void hash_number(struct hash_state *state, uint64_t number)
{
    uint8_t bytes[8];
    store64(bytes, number);
    hash_state_add(state, bytes, sizeof bytes);
}

static void hash_ranges(struct hash_state *state, const struct run_source *source, const struct exclusion_ranges *left)
{
    hash_number(state, source->name_bytes);
    hash_state_add(state, source->name, source->name_bytes);
    hash_number(state, left->count);
    for (uint64_t i = 0; i < left->count; i++) {
        hash_number(state, left->of[i].first);
        hash_number(state, left->of[i].end);
    }
}

/* Moves the ranges of a step to those of the run, and adds its event if they exclude anything more. */
static enum tokmap_status end_group(struct exclusions *exclusions, struct group *group, const struct name *names,
                                    struct tokmap_error *error)
{
    struct hash_state *state = hash_state_new();
    enum tokmap_status status = state ? TOKMAP_OK : error_set_memory(error, "the excluded documents", 0);
    bool any = false;
    for (uint64_t i = 0; i < exclusions->sources->count && !status; i++) {
        const uint64_t source = names[i].number;
        struct exclusion_ranges *fresh = &group->of[source], *old = &exclusions->of[source], left = {NULL, 0};
        if (!fresh->count)
            continue;
        merge(fresh);
        if (old->count) {
            status = subtract(fresh, old, &left, error);
        } else {
            left = *fresh;
            fresh->of = NULL;
        }
        const uint64_t count = left.count;
        if (!status && left.count) {
            any = true;
            hash_ranges(state, names[i].source, &left);
            status = unite(old, &left, error);
        }
        free(left.of);
        group->kept += count - group->capacity[source];
        free(fresh->of);
        *fresh = (struct exclusion_ranges){NULL, 0};
        group->capacity[source] = 0;
    }
    if (!status && any)
        exclusions->events[exclusions->event_count++] =
            (struct exclusion_event){.step = group->step, .hash = hash_state_128(state)};
    hash_state_free(state);
    return status;
}

/* ---- all lists ---- */

static int compare_lists(const void *a, const void *b)
{
    const struct exclusion_list *x = *(struct exclusion_list *const *)a, *y = *(struct exclusion_list *const *)b;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    return x < y ? -1 : x > y; /* in the order of the text, so that errors do not depend on the sort */
}

static enum tokmap_status read_list(struct exclusions *exclusions, struct group *group, const char *file,
                                    const char *path, bool from_text, struct tokmap_error *error)
{
    struct tokmap_error reason = {0};
    struct exclusion_list *list = group->list;
    const enum tokmap_status status =
        exclusion_list_read(list->path, exclusions->sources, add_item, group, error ? error : &reason);
    if (status == TOKMAP_ERROR_NOT_FOUND)
        return error_set_line(
            error, status, path, from_text ? list->line : 0,
            "the list of excluded documents '%.200s' was looked for as '%.300s' and does not "
            "exist%s; correct the line, or make the list with `tokmap find` of the run without this line",
            file, list->path,
            strcmp(file, list->path) ? " (a relative name starts from the folder of the run file)" : "");
    return status;
}

/* Reads the lists in `order`, which is that of their steps. */
static enum tokmap_status read_lists(struct exclusions *exclusions, const struct run_spec *spec,
                                     struct exclusion_list *const *order, const struct name *names, struct group *group,
                                     const char *path, bool from_text, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t i = 0; i < exclusions->list_count && !status; i++) {
        group->list = order[i];
        group->step = order[i]->step;
        group->path = order[i]->path;
        status =
            read_list(exclusions, group, spec->excludes[order[i] - exclusions->lists].file, path, from_text, error);
        if (!status && (i + 1 == exclusions->list_count || order[i + 1]->step != group->step))
            status = end_group(exclusions, group, names, error);
    }
    return status;
}

enum tokmap_status exclusions_open(struct exclusions *exclusions, const struct run_sources *sources,
                                   const struct run_spec *spec, const char *folder, const char *path, bool from_text,
                                   struct tokmap_error *error)
{
    const uint64_t lists = spec->exclude_count;
    *exclusions = (struct exclusions){.sources = sources};
    if (!lists)
        return TOKMAP_OK;
    struct exclusion_list **order = calloc(lists, sizeof *order);
    struct name *names = calloc(sources->count, sizeof *names);
    struct group group = {.of = calloc(sources->count, sizeof *group.of),
                          .capacity = calloc(sources->count, sizeof *group.capacity)};
    exclusions->of = calloc(sources->count, sizeof *exclusions->of);
    exclusions->lists = calloc(lists, sizeof *exclusions->lists);
    exclusions->events = calloc(lists, sizeof *exclusions->events);
    enum tokmap_status status = TOKMAP_OK;
    if (!order || !names || !group.of || !group.capacity || !exclusions->of || !exclusions->lists ||
        !exclusions->events)
        status = error_set_memory(error, "the excluded documents", (lists + sources->count) * sizeof *group.of);
    for (uint64_t i = 0; i < sources->count && !status; i++)
        names[i] = (struct name){&sources->of[i], i};
    for (uint64_t i = 0; i < lists && !status; i++) {
        const struct exclude_line *line = &spec->excludes[i];
        exclusions->list_count = i + 1;
        order[i] = &exclusions->lists[i];
        *order[i] = (struct exclusion_list){.step = line->step, .line = line->line};
        order[i]->path = path_in(folder && !path_is_absolute(line->file) ? folder : "", line->file);
        if (!order[i]->path)
            status = error_set_memory(error, "the path of a list", strlen(line->file) + 1);
    }
    if (!status) {
        qsort(names, sources->count, sizeof *names, compare_names);
        qsort(order, lists, sizeof *order, compare_lists);
        status = read_lists(exclusions, spec, order, names, &group, path, from_text, error);
    }
    for (uint64_t i = 0; i < sources->count && group.of; i++)
        free(group.of[i].of);
    free(group.of);
    free(group.capacity);
    free(names);
    free(order);
    return status;
}

void exclusions_free(struct exclusions *exclusions)
{
    for (uint64_t i = 0; i < exclusions->list_count; i++)
        free(exclusions->lists[i].path);
    for (uint64_t i = 0; exclusions->of && i < exclusions->sources->count; i++)
        free(exclusions->of[i].of);
    free(exclusions->of);
    free(exclusions->lists);
    free(exclusions->events);
    *exclusions = (struct exclusions){0};
}

/* ---- rows ---- */

/* Returns the number of the first range that ends after a token. */
static uint64_t range_after(const struct exclusion_ranges *ranges, uint64_t token)
{
    uint64_t low = 0, high = ranges->count;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (ranges->of[middle].end > token)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

uint64_t exclusion_step(const struct exclusions *exclusions, uint64_t source, uint64_t token)
{
    if (!exclusions->of)
        return TOKMAP_FOREVER;
    const struct exclusion_ranges *ranges = &exclusions->of[source];
    const uint64_t at = range_after(ranges, token);
    return at < ranges->count && ranges->of[at].first <= token ? ranges->of[at].from : TOKMAP_FOREVER;
}

void exclusion_walk_begin(struct exclusion_walk *walk, const struct exclusions *exclusions,
                          const struct tokmap_place *place, const struct tokmap_extent *extents, uint64_t count)
{
    static const struct exclusion_ranges none = {NULL, 0};
    const bool some = exclusions->of && place->source != TOKMAP_NO_SOURCE;
    *walk = (struct exclusion_walk){
        .ranges = some ? &exclusions->of[place->source] : &none,
        .extents = extents,
        .count = count,
        .tokens = some ? exclusions->sources->of[place->source].tokens : 0,
        .step = place->step,
        .range = UINT64_MAX,
    };
}

bool exclusion_walk_next(struct exclusion_walk *walk, uint64_t *first, uint64_t *count)
{
    const struct exclusion_ranges *ranges = walk->ranges;
    while (ranges->count && walk->extent < walk->count) {
        const struct tokmap_extent *extent = &walk->extents[walk->extent];
        if (walk->done == extent->tokens || extent_is_padding(extent)) {
            walk->row += extent->tokens;
            walk->extent++;
            walk->done = 0;
            walk->range = UINT64_MAX;
            continue;
        }
        /* The tokens of the extent from here to its end, or to the dataset's, after which it begins again. */
        const uint64_t start = (extent->first_token + walk->done) % walk->tokens;
        const uint64_t end = start + min64(extent->tokens - walk->done, walk->tokens - start);
        if (walk->range == UINT64_MAX)
            walk->range = range_after(ranges, start);
        const struct exclusion_range *range = walk->range < ranges->count ? &ranges->of[walk->range] : NULL;
        if (!range || range->first >= end) {
            walk->done += end - start;
            walk->range = UINT64_MAX;
            continue;
        }
        const uint64_t from = max64(range->first, start), to = min64(range->end, end);
        const uint64_t at = walk->row + walk->done + (from - start);
        walk->done += to - start;
        walk->range = to == end ? UINT64_MAX : walk->range + 1;
        if (range->from > walk->step)
            continue;
        *first = at;
        *count = to - from;
        return true;
    }
    return false;
}
