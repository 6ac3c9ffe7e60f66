/* SPDX-License-Identifier: MIT */
#include "parquet_footer.h"

#include <stdlib.h>
#include <string.h>

#include "codec/file_type.h"
#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "common/hash.h"
#include "parquet_input.h"
#include "parquet_thrift.h"
#include "text/name_list.h"

#define TAIL_BYTES 8   /* the length of the footer, and PAR1 */
#define NESTED_MOST 64 /* depth of the schema */
#define PATH_MOST 4096 /* bytes of a column's path that are compared */
#define FOOTER_MOST ((uint64_t)1 << 30)
#define COPY_AGAIN "copy the file again from its source"

/* The pages of a chunk. */
struct extent {
    uint64_t offset, end;
    uint32_t group, leaf;
};

struct reading {
    struct parquet_footer *footer;
    const char *path;
    const struct parquet_wanted *wanted;
    size_t wanted_count;
    struct thrift thrift;
    uint64_t footer_at; /* its offset in the file */
    struct tokmap_error *error;
    struct name_list names;  /* of the columns, for messages */
    struct name_list inside; /* of the columns below a wanted field that is not a column itself */
    uint64_t group_capacity;
    struct extent *extents; /* of all chunks that have values, in the order of the footer */
    uint64_t extent_count, extent_capacity;
};

static enum tokmap_status damaged(const struct reading *reading, const char *what, const char *reason)
{
    return error_set(reading->error, TOKMAP_ERROR_CORRUPT, reading->path, reading->footer_at,
                     "the footer of the Parquet file is damaged: %s%s%s; " COPY_AGAIN, what, *what ? ": " : "", reason);
}

static enum tokmap_status thrift_status(const struct reading *reading, const char *what)
{
    return reading->thrift.fault ? damaged(reading, what, reading->thrift.fault) : TOKMAP_OK;
}

/* ---- the schema ---- */

/* An element of the schema as the file has it. */
struct element {
    int64_t type, type_bytes, repetition, children;
    bool is_leaf; /* it has a type and no children */
    const char *name;
    uint64_t name_bytes;
    struct parquet_kind old_kind, new_kind; /* its annotations of the two kinds */
};

/* A group of the schema that is being read. */
struct level {
    uint64_t children; /* that still follow */
    uint64_t path;     /* bytes of the path up to here */
    uint64_t group;    /* place of the name of the last group in it */
    uint32_t definition, repetition, repeated_definition;
    bool is_variant; /* its bytes are parts of a VARIANT */
};

/* Reads the union of logical types. */
static void logical_read(struct thrift *thrift, struct element *element)
{
    struct thrift_field field = {0};
    while (thrift_field_next(thrift, &field)) {
        struct parquet_kind *kind = &element->new_kind;
        *kind = (struct parquet_kind){.annotation = parquet_annotation_new(field.id)};
        const bool decimal = kind->annotation == PARQUET_DECIMAL, integer = kind->annotation == PARQUET_INTEGER;
        if ((!decimal && !integer) || !thrift_struct(thrift, &field)) {
            thrift_skip(thrift, &field);
            continue;
        }
        struct thrift_field part = {0};
        while (thrift_field_next(thrift, &part)) {
            if (integer && part.id == 2)
                kind->is_unsigned = !thrift_bool(thrift, &part);
            else if (decimal && part.id == 1)
                kind->scale = thrift_integer(thrift, &part);
            else if (decimal && part.id == 2)
                kind->precision = thrift_integer(thrift, &part);
            else
                thrift_skip(thrift, &part);
        }
    }
}

static void element_read(struct thrift *thrift, struct element *element)
{
    enum { UINT_8 = 11, UINT_64 = 14 }; /* of the older annotations */
    struct thrift_field field = {0};
    bool has_type = false;
    *element = (struct element){0};
    while (thrift_field_next(thrift, &field)) {
        if (field.id == 1) {
            element->type = thrift_integer(thrift, &field);
            has_type = true;
        } else if (field.id == 2) {
            element->type_bytes = thrift_integer(thrift, &field);
        } else if (field.id == 3) {
            element->repetition = thrift_integer(thrift, &field);
        } else if (field.id == 4) {
            element->name = thrift_binary(thrift, &field, &element->name_bytes);
        } else if (field.id == 5) {
            element->children = thrift_integer(thrift, &field);
        } else if (field.id == 6) {
            const int64_t number = thrift_integer(thrift, &field);
            element->old_kind.annotation = parquet_annotation_old(number);
            element->old_kind.is_unsigned = number >= UINT_8 && number <= UINT_64;
        } else if (field.id == 7) {
            element->old_kind.scale = thrift_integer(thrift, &field);
        } else if (field.id == 8) {
            element->old_kind.precision = thrift_integer(thrift, &field);
        } else if (field.id == 10 && thrift_struct(thrift, &field)) {
            logical_read(thrift, element);
        } else {
            thrift_skip(thrift, &field);
        }
    }
    /* Some writers give groups a type, the root above all. */
    element->is_leaf = has_type && !element->children;
}

/* Copies a name for messages. */
static void name_copy(char *into, size_t capacity, const char *name, uint64_t count)
{
    struct name_list list = {0};
    name_list_add(&list, name, (size_t)min64(count, capacity - 1));
    const size_t bytes = min64(strlen(list.text), capacity - 1);
    memcpy(into, list.text, bytes);
    into[bytes] = '\0';
}

/* Returns the type of a leaf. Of the annotations, the newer one counts, unless it is missing or unknown. */
static struct parquet_kind leaf_kind(const struct element *element, bool is_variant)
{
    const enum parquet_annotation new = element->new_kind.annotation;
    const bool old = new == PARQUET_NOT_ANNOTATED ||
                     (new == PARQUET_UNKNOWN && element->old_kind.annotation != PARQUET_NOT_ANNOTATED);
    struct parquet_kind kind = old ? element->old_kind : element->new_kind;
    kind.type = (enum parquet_type)element->type;
    kind.type_bytes = kind.type == PARQUET_FIXED ? (uint32_t)element->type_bytes : 0;
    if (is_variant && kind.annotation == PARQUET_NOT_ANNOTATED && kind.type == PARQUET_BYTE_ARRAY)
        kind.annotation = PARQUET_VARIANT;
    return kind;
}

/* Returns whether a column is, or is part of, a wanted field: its path is the field's, or continues it. `below` is set
 * to the latter. */
static bool path_matches(const char *path, uint64_t bytes, const char *field, bool *below)
{
    const size_t length = strlen(field);
    if (bytes < length || memcmp(path, field, length) != 0)
        return false;
    *below = bytes > length;
    return bytes == length || path[length] == '.';
}

/* Columns that each use takes. */
#define MEANS(meaning) (1u << PARQUET_IS_##meaning)
static const struct {
    unsigned meanings;
    uint8_t lists_most; /* number of lists that the values are in; numbers are in one, and a text of them in none */
    const char *text;
} uses[] = {
    [PARQUET_USE_TEXT] = {MEANS(TEXT), 0, "a column of text"},
    [PARQUET_USE_NUMBERS] = {MEANS(INTEGER) | MEANS(BOOL) | MEANS(TEXT), 1, "a list of integers"},
    [PARQUET_USE_VALUE] = {~MEANS(OTHER), 0, "a column of text, numbers, or bools"},
    [PARQUET_USE_BESIDE] = {~MEANS(OTHER), 0, "a column of text, numbers, or bools"},
    [PARQUET_USE_MESSAGES] = {MEANS(TEXT), 1, "a list of structs of text"},
};

static bool is_usable(const struct parquet_column *column, enum parquet_use use)
{
    const bool numbers = use == PARQUET_USE_NUMBERS, text = column->meaning == PARQUET_IS_TEXT;
    return (uses[use].meanings >> column->meaning & 1) && column->max_repetition <= uses[use].lists_most &&
           (!numbers || text == !column->max_repetition);
}

static const char *shape_text(const struct parquet_column *column)
{
    return column->max_repetition > 1 ? "lists of lists of " : column->max_repetition ? "lists of " : "";
}

/* Adds a column to those of a field. By its depth, a name that contains dots is preferred to a nested one; *best is the
 * depth of the field's own column so far. */
static enum tokmap_status column_choose(struct reading *reading, uint32_t wanted, const struct parquet_column *column,
                                        uint32_t *best, bool below)
{
    struct parquet_footer *footer = reading->footer;
    const char *field = reading->wanted[wanted].field;
    bool twice = !below && *best == column->nodes;
    for (uint32_t i = 0; i < footer->column_count && below && !twice; i++)
        twice = footer->columns[i].wanted == wanted && footer->columns[i].path == column->path;
    if (twice)
        return error_set(reading->error, TOKMAP_ERROR_INPUT, reading->path, TOKMAP_NO_OFFSET,
                         "the Parquet file has two columns '%s'; rename one, or name another with %s", column->name,
                         reading->wanted[wanted].option);
    if (!below && *best && *best < column->nodes)
        return TOKMAP_OK;
    if (!below) {
        /* This one replaces what was found before. */
        uint32_t kept = 0;
        for (uint32_t i = 0; i < footer->column_count; i++)
            if (footer->columns[i].wanted != wanted)
                footer->columns[kept++] = footer->columns[i];
        footer->column_count = kept;
        *best = column->nodes;
    } else if (*best) {
        return TOKMAP_OK;
    }
    if (footer->column_count == PARQUET_LEAVES_MOST)
        return error_set(reading->error, TOKMAP_ERROR_UNSUPPORTED, reading->path, TOKMAP_NO_OFFSET,
                         "the fields that are read have more than %d columns in this Parquet file; name a field inside "
                         "'%s', with a dot",
                         PARQUET_LEAVES_MOST, field);
    footer->columns[footer->column_count] = *column;
    footer->columns[footer->column_count].inside = below;
    footer->columns[footer->column_count++].wanted = wanted;
    return TOKMAP_OK;
}

/* Takes a leaf of the schema. */
static enum tokmap_status leaf_add(struct reading *reading, const struct element *element, const struct level *level,
                                   const char *path, uint64_t bytes, uint32_t nodes, uint32_t *best)
{
    const uint64_t group_end = bytes - min64(bytes, element->name_bytes + 1);
    struct parquet_column column = {
        .leaf = reading->footer->leaves++, .nodes = nodes, .path = hash64(path, (size_t)bytes)};
    if (element->type < PARQUET_BOOLEAN || element->type > PARQUET_FIXED)
        return damaged(reading, "", "a column has a type that does not exist");
    if (element->type == PARQUET_FIXED && (element->type_bytes < 1 || element->type_bytes > INT32_MAX))
        return damaged(reading, "", "a column of values of a fixed length has no length");
    column.kind = leaf_kind(element, level->is_variant);
    column.meaning = parquet_meaning(&column.kind);
    column.max_definition = (uint8_t)level->definition;
    column.max_repetition = (uint8_t)level->repetition;
    column.repeated_definition = (uint8_t)level->repeated_definition;
    name_copy(column.name, sizeof column.name, path, bytes);
    name_copy(column.last, sizeof column.last, element->name, element->name_bytes);
    if (group_end > level->group)
        name_copy(column.group, sizeof column.group, path + level->group, group_end - level->group);
    name_list_add(&reading->names, path, (size_t)bytes);
    for (uint32_t i = 0; i < reading->wanted_count; i++) {
        bool below;
        if (!path_matches(path, bytes, reading->wanted[i].field, &below))
            continue;
        if (below)
            name_list_add(&reading->inside, path, (size_t)bytes);
        const enum tokmap_status status = column_choose(reading, i, &column, &best[i], below);
        if (status)
            return status;
    }
    return TOKMAP_OK;
}

/* Reads the schema: `count` elements, depth first, of which the first is the root. */
static enum tokmap_status schema_read(struct reading *reading, uint64_t count)
{
    struct level levels[NESTED_MOST + 1];
    char path[PATH_MOST];
    uint32_t depth = 0, *best = calloc(reading->wanted_count + 1, sizeof *best);
    enum tokmap_status status = best ? TOKMAP_OK : error_set_memory(reading->error, "the columns of a file", 0);
    for (uint64_t i = 0; i < count && !status; i++) {
        struct element element;
        element_read(&reading->thrift, &element);
        const uint64_t follow = count - i - 1;
        if (reading->thrift.fault)
            status = thrift_status(reading, "the schema");
        else if (element.children < 0 || (uint64_t)element.children > follow)
            status = damaged(reading, "the schema", "a group has more fields than follow");
        else if (element.repetition < 0 || element.repetition > 2)
            status = damaged(reading, "the schema", "a field has a repetition that does not exist");
        if (status)
            break;
        if (!i) {
            levels[0] = (struct level){.children = (uint64_t)element.children};
            continue;
        }
        while (depth && !levels[depth].children)
            depth--;
        if (!levels[depth].children) {
            status = damaged(reading, "the schema", "a field is in no group");
            break;
        }
        levels[depth].children--;
        struct level level = levels[depth];
        level.children = (uint64_t)element.children;
        level.definition += element.repetition != 0;
        level.repetition += element.repetition == 2;
        if (element.repetition == 2)
            level.repeated_definition = level.definition;
        level.is_variant |= element.new_kind.annotation == PARQUET_VARIANT;
        /* A path that is too long to be kept is cut, and then equals no field. */
        const uint64_t dot = level.path != 0;
        if (dot && level.path < PATH_MOST)
            path[level.path] = '.';
        const uint64_t begin = min64(level.path + dot, PATH_MOST);
        const uint64_t bytes = min64(element.name_bytes, PATH_MOST - begin);
        if (bytes)
            memcpy(path + begin, element.name, bytes);
        level.path = begin + bytes;
        if (element.is_leaf) {
            status = leaf_add(reading, &element, &level, path, level.path, depth + 1, best);
        } else if (depth == NESTED_MOST) {
            status = damaged(reading, "the schema", "its groups are nested too deep");
        } else if (element.children) {
            level.group = begin;
            levels[++depth] = level;
        }
    }
    free(best);
    return status;
}

static enum tokmap_status column_refuse(const struct reading *reading, const struct parquet_column *column,
                                        enum parquet_use use, const char *option)
{
    char kind[128];
    parquet_kind_text(&column->kind, kind, sizeof kind);
    return error_set(reading->error, TOKMAP_ERROR_INPUT, reading->path, TOKMAP_NO_OFFSET,
                     "the column '%s' of the Parquet file has %s%s, and %s is needed; name another with %s",
                     column->name, shape_text(column), kind, uses[use].text, option);
}

/* Tells the fields of messages from the fields of a struct in a message, by their depth. Messages have no struct in
 * such a struct. */
static enum tokmap_status groups_find(const struct reading *reading, struct parquet_column *columns, uint32_t count,
                                      const char *option)
{
    uint32_t least = UINT32_MAX;
    for (uint32_t i = 0; i < count; i++)
        least = columns[i].nodes < least ? columns[i].nodes : least;
    for (uint32_t i = 0; i < count; i++) {
        columns[i].in_group = columns[i].nodes > least;
        if (columns[i].nodes > least + 1)
            return error_set(reading->error, TOKMAP_ERROR_INPUT, reading->path, TOKMAP_NO_OFFSET,
                             "the column '%s' of the Parquet file is in a struct in a struct of a message; write the "
                             "messages as a text of JSON, or name another field with %s",
                             columns[i].name, option);
    }
    return TOKMAP_OK;
}

/* Puts the columns into the order of the wanted fields, and checks that each field can be read. */
static enum tokmap_status columns_check(struct reading *reading)
{
    struct parquet_footer *footer = reading->footer;
    struct parquet_column sorted[PARQUET_LEAVES_MOST];
    uint32_t count = 0;
    for (uint32_t w = 0; w < reading->wanted_count; w++) {
        const enum parquet_use use = reading->wanted[w].use;
        const char *field = reading->wanted[w].field, *option = reading->wanted[w].option;
        const uint32_t first = count;
        for (uint32_t i = 0; i < footer->column_count; i++)
            if (footer->columns[i].wanted == w)
                sorted[count++] = footer->columns[i];
        const uint32_t found = count - first;
        if (!found && (use == PARQUET_USE_VALUE || use == PARQUET_USE_BESIDE))
            continue; /* records may lack a field that is only kept */
        if (!found)
            return error_set(reading->error, TOKMAP_ERROR_INPUT, reading->path, TOKMAP_NO_OFFSET,
                             "the Parquet file has no column '%s'; it has: %s; name another with %s", field,
                             *reading->names.text ? reading->names.text : "no columns", option);
        const struct parquet_column *column = &sorted[first];
        if (use == PARQUET_USE_BESIDE && (found > 1 || column->inside || !is_usable(column, use)))
            return error_set(reading->error, TOKMAP_ERROR_INPUT, reading->path, TOKMAP_NO_OFFSET,
                             "the field '%s' is beside the messages in the Parquet file and is not a column of "
                             "text, so no template can write it; write it as a text of JSON, or leave it out with %s",
                             field, option);
        if (use != PARQUET_USE_MESSAGES && (found > 1 || (column->inside && !column->max_repetition)))
            return error_set(reading->error, TOKMAP_ERROR_INPUT, reading->path, TOKMAP_NO_OFFSET,
                             "the field '%s' of the Parquet file is a group of columns: %s; name one with %s", field,
                             reading->inside.text, option);
        for (uint32_t i = first; i < count; i++)
            if (!is_usable(&sorted[i], use) || sorted[i].max_repetition != column->max_repetition ||
                sorted[i].repeated_definition != column->repeated_definition || (found > 1 && !column->max_repetition))
                return column_refuse(reading, &sorted[i], use, option);
        const enum tokmap_status status =
            use == PARQUET_USE_MESSAGES ? groups_find(reading, &sorted[first], found, option) : TOKMAP_OK;
        if (status)
            return status;
    }
    memcpy(footer->columns, sorted, count * sizeof sorted[0]);
    footer->column_count = count;
    return TOKMAP_OK;
}

/* ---- row groups ---- */

/* Facts about a chunk that the file states. */
struct chunk_meta {
    int64_t codec, values, bytes, data_page, dictionary_page;
    bool has_meta, has_dictionary, elsewhere, encrypted;
};

static void column_meta_read(struct thrift *thrift, struct chunk_meta *meta)
{
    struct thrift_field field = {0};
    meta->has_meta = true;
    while (thrift_field_next(thrift, &field)) {
        if (field.id == 4) {
            meta->codec = thrift_integer(thrift, &field);
        } else if (field.id == 5) {
            meta->values = thrift_integer(thrift, &field);
        } else if (field.id == 7) {
            meta->bytes = thrift_integer(thrift, &field);
        } else if (field.id == 9) {
            meta->data_page = thrift_integer(thrift, &field);
        } else if (field.id == 11) {
            meta->dictionary_page = thrift_integer(thrift, &field);
            meta->has_dictionary = true;
        } else {
            thrift_skip(thrift, &field);
        }
    }
}

static void chunk_read(struct thrift *thrift, struct chunk_meta *meta)
{
    struct thrift_field field = {0};
    *meta = (struct chunk_meta){0};
    while (thrift_field_next(thrift, &field)) {
        if (field.id == 1) {
            uint64_t bytes;
            (void)thrift_binary(thrift, &field, &bytes);
            meta->elsewhere = bytes > 0;
        } else if (field.id == 3 && thrift_struct(thrift, &field)) {
            column_meta_read(thrift, meta);
        } else {
            meta->encrypted |= field.id == 8 || field.id == 9;
            thrift_skip(thrift, &field);
        }
    }
}

/* Returns the first byte of the pages of a chunk. */
static int64_t chunk_begin(const struct chunk_meta *meta)
{
    /* Some writers set the place of a dictionary to 0 if there is none. */
    const bool dictionary = meta->has_dictionary && meta->dictionary_page > 0;
    return dictionary && meta->dictionary_page < meta->data_page ? meta->dictionary_page : meta->data_page;
}

/* Notes which bytes a chunk has, whether its column is chosen or not. */
static enum tokmap_status extent_add(struct reading *reading, uint64_t leaf, const struct chunk_meta *meta)
{
    const uint64_t data_end = reading->footer->data_end;
    const int64_t begin = chunk_begin(meta);
    const uint64_t bytes = meta->bytes > 0 ? (uint64_t)meta->bytes : 0;
    if (!meta->has_meta || meta->elsewhere || meta->encrypted || meta->values <= 0 || begin < 4 ||
        (uint64_t)begin >= data_end)
        return TOKMAP_OK;
    if (!list_room(&reading->extents, reading->extent_count, &reading->extent_capacity, sizeof *reading->extents))
        return error_set_memory(reading->error, "the columns of a Parquet file", sizeof *reading->extents);
    reading->extents[reading->extent_count++] =
        (struct extent){(uint64_t)begin, (uint64_t)begin + min64(bytes, data_end - (uint64_t)begin),
                        (uint32_t)reading->footer->group_count, (uint32_t)leaf};
    return TOKMAP_OK;
}

/* Checks what the footer says about a chunk against the size of the file. */
static enum tokmap_status chunk_check(struct reading *reading, uint64_t group, const struct parquet_column *column,
                                      const struct chunk_meta *meta, struct parquet_chunk *chunk)
{
    const struct parquet_footer *footer = reading->footer;
    const char *wrong = NULL;
    if (meta->encrypted)
        return error_set(reading->error, TOKMAP_ERROR_UNSUPPORTED, reading->path, TOKMAP_NO_OFFSET,
                         "the column '%s' of the Parquet file is encrypted; decrypt it with the program that has the "
                         "keys",
                         column->name);
    if (meta->elsewhere)
        return error_set(reading->error, TOKMAP_ERROR_UNSUPPORTED, reading->path, TOKMAP_NO_OFFSET,
                         "row group %" PRIu64 " of the Parquet file is in another file; name the files that it is in",
                         group);
    int64_t begin = chunk_begin(meta), bytes = meta->bytes;
    if (!meta->values) {
        begin = 4; /* without values, pages are said to begin anywhere, and a dictionary is empty */
        bytes = 0;
    }
    if (!meta->has_meta)
        wrong = "it has no description";
    else if (meta->values < 0 || meta->bytes < 0)
        wrong = "it has a negative number of values or bytes";
    else if (begin < 4 || (uint64_t)begin > footer->data_end)
        wrong = "it begins outside of the file";
    else if ((uint64_t)bytes > footer->data_end - (uint64_t)begin)
        wrong = "it ends outside of the file";
    else if (!column->max_repetition && (uint64_t)meta->values != footer->groups[group].rows)
        wrong = "its number of values is not the number of rows";
    else if ((uint64_t)meta->values < footer->groups[group].rows)
        wrong = "it has fewer values than rows";
    else if (meta->codec < 0 || meta->codec > INT32_MAX)
        wrong = "its codec does not exist";
    if (wrong)
        return error_set(reading->error, TOKMAP_ERROR_CORRUPT, reading->path, reading->footer_at,
                         "the footer of the Parquet file is damaged: row group %" PRIu64
                         ", column '%s': %s; " COPY_AGAIN,
                         group, column->name, wrong);
    *chunk = (struct parquet_chunk){(int)meta->codec, (uint64_t)begin, (uint64_t)bytes, (uint64_t)meta->values,
                                    footer->data_end};
    return TOKMAP_OK;
}

/* Makes room for one more row group. */
static enum tokmap_status group_room(struct reading *reading)
{
    struct parquet_footer *footer = reading->footer;
    uint64_t capacity = reading->group_capacity;
    const size_t chunks_bytes = (footer->column_count + 1) * sizeof *footer->chunks;
    if (!list_room(&footer->groups, footer->group_count, &capacity, sizeof *footer->groups) ||
        !list_room(&footer->chunks, footer->group_count, &reading->group_capacity, chunks_bytes))
        return error_set_memory(reading->error, "the row groups of a Parquet file", capacity * chunks_bytes);
    return TOKMAP_OK;
}

/* Reads a row group. Its number of rows may follow its columns, so the chunks are checked at its end. */
static enum tokmap_status group_read(struct reading *reading)
{
    struct parquet_footer *footer = reading->footer;
    struct thrift *thrift = &reading->thrift;
    struct chunk_meta metas[PARQUET_LEAVES_MOST];
    struct thrift_field field = {0};
    uint64_t chunks = 0;
    int64_t rows = -1;
    enum tokmap_status status = group_room(reading);
    while (!status && thrift_field_next(thrift, &field)) {
        if (field.id == 1 && thrift_structs(thrift, &field, &chunks)) {
            for (uint64_t i = 0; i < chunks && !thrift->fault && !status; i++) {
                struct chunk_meta meta;
                chunk_read(thrift, &meta);
                status = extent_add(reading, i, &meta);
                for (uint32_t c = 0; c < footer->column_count; c++)
                    if (footer->columns[c].leaf == i)
                        metas[c] = meta;
            }
        } else if (field.id == 3) {
            rows = thrift_integer(thrift, &field);
        } else {
            thrift_skip(thrift, &field);
        }
    }
    if (!status)
        status = thrift_status(reading, "the row groups");
    if (!status && chunks != footer->leaves)
        status = damaged(reading, "the row groups", "a row group has another number of columns than the schema");
    uint64_t all = 0;
    if (!status && (rows < 0 || add_overflows(footer->rows, (uint64_t)rows, &all)))
        status = damaged(reading, "the row groups", "a row group has no valid number of rows");
    if (status)
        return status;
    const uint64_t group = footer->group_count++;
    footer->groups[group] = (struct parquet_row_group){(uint64_t)rows, footer->rows};
    footer->rows = all;
    for (uint32_t c = 0; c < footer->column_count && !status; c++)
        status = chunk_check(reading, group, &footer->columns[c], &metas[c],
                             &footer->chunks[group * footer->column_count + c]);
    return status;
}

static int extent_compare(const void *a, const void *b)
{
    const struct extent *left = a, *right = b;
    return (left->offset > right->offset) - (left->offset < right->offset);
}

/* Returns a chosen column that a leaf is, or NULL. */
static const struct parquet_column *leaf_column(const struct parquet_footer *footer, uint32_t leaf)
{
    for (uint32_t c = 0; c < footer->column_count; c++)
        if (footer->columns[c].leaf == leaf)
            return &footer->columns[c];
    return NULL;
}

/* Reports that two chunks have bytes in common; the column of `chosen` is read. */
static enum tokmap_status overlap(const struct reading *reading, const struct extent *chosen,
                                  const struct extent *other)
{
    const char *name = leaf_column(reading->footer, chosen->leaf)->name;
    if (chosen->leaf == other->leaf)
        return error_set(reading->error, TOKMAP_ERROR_CORRUPT, reading->path, reading->footer_at,
                         "the footer of the Parquet file is damaged: row groups %" PRIu32 " and %" PRIu32
                         " have the same bytes in column '%s'; " COPY_AGAIN,
                         chosen->group < other->group ? chosen->group : other->group,
                         chosen->group < other->group ? other->group : chosen->group, name);
    return error_set(reading->error, TOKMAP_ERROR_CORRUPT, reading->path, reading->footer_at,
                     "the footer of the Parquet file is damaged: column '%s' in row group %" PRIu32
                     " has bytes of another column in row group %" PRIu32 "; " COPY_AGAIN,
                     name, chosen->group, other->group);
}

/* Sets the limits of the chunks. Checks that no byte of a chosen column belongs to two chunks: a page would be read as
 * one of another column, or again and again, and the accounts of bytes would be wrong. */
static enum tokmap_status limits_set(struct reading *reading)
{
    struct parquet_footer *footer = reading->footer;
    struct extent *list = reading->extents;
    const struct extent *furthest = NULL, *furthest_chosen = NULL; /* of those before */
    for (uint64_t i = 1; i < reading->extent_count; i++)
        if (list[i].offset < list[i - 1].offset) {
            qsort(list, reading->extent_count, sizeof *list, extent_compare);
            break;
        }
    for (uint64_t i = 0; i < reading->extent_count; i++) {
        const bool chosen = leaf_column(footer, list[i].leaf) != NULL;
        if (chosen && furthest && list[i].offset < furthest->end)
            return overlap(reading, &list[i], furthest);
        if (furthest_chosen && list[i].offset < furthest_chosen->end)
            return overlap(reading, furthest_chosen, &list[i]);
        if (!furthest || list[i].end > furthest->end)
            furthest = &list[i];
        if (!chosen)
            continue;
        furthest_chosen = &list[i];
        for (uint32_t c = 0; c < footer->column_count && i + 1 < reading->extent_count; c++)
            if (footer->columns[c].leaf == list[i].leaf)
                footer->chunks[(uint64_t)list[i].group * footer->column_count + c].limit = list[i + 1].offset;
    }
    return TOKMAP_OK;
}

/* Returns true if the writer is Arrow before 3: "parquet-cpp version 1.5.1-SNAPSHOT"; later it is called
 * parquet-cpp-arrow. */
static bool is_old_arrow(const char *writer, uint64_t bytes)
{
    static const char name[] = "parquet-cpp", words[] = " version ";
    const uint64_t name_bytes = sizeof name - 1, before = name_bytes + sizeof words - 1;
    if (bytes < name_bytes || memcmp(writer, name, name_bytes) != 0)
        return false;
    if (bytes == name_bytes)
        return true;
    return bytes > before + 1 && !memcmp(writer + name_bytes, words, sizeof words - 1) &&
           (writer[before] == '0' || writer[before] == '1') && writer[before + 1] == '.';
}

/* Reads the footer's struct. The schema precedes the row groups in every file, since fields are in ascending order. */
static enum tokmap_status meta_read(struct reading *reading)
{
    struct thrift *thrift = &reading->thrift;
    struct thrift_field field = {0};
    enum tokmap_status status = TOKMAP_OK;
    bool has_schema = false;
    uint64_t count;
    while (!status && thrift_field_next(thrift, &field)) {
        if (field.id == 2 && !has_schema && thrift_structs(thrift, &field, &count)) {
            has_schema = true;
            status = schema_read(reading, count);
            if (!status)
                status = columns_check(reading);
        } else if (field.id == 4 && thrift_structs(thrift, &field, &count)) {
            if (!has_schema || reading->footer->group_count)
                return damaged(reading, "the row groups", "they precede the schema, or are listed twice");
            for (uint64_t i = 0; i < count && !status; i++)
                status = group_read(reading);
        } else if (field.id == 6) {
            const char *writer = thrift_binary(thrift, &field, &count);
            reading->footer->is_compressed_anyway = is_old_arrow(writer, count);
        } else {
            thrift_skip(thrift, &field);
        }
    }
    if (!status)
        status = thrift_status(reading, "");
    if (!status && !has_schema)
        status = damaged(reading, "", "it has no schema");
    return status ? status : limits_set(reading);
}

enum tokmap_status parquet_footer_read(struct parquet_footer *footer, const struct parquet_input *input,
                                       const char *path, const struct parquet_wanted *wanted, size_t count,
                                       struct tokmap_error *error)
{
    struct reading reading = {.footer = footer, .path = path, .wanted = wanted, .wanted_count = count, .error = error};
    char tail[TAIL_BYTES], head[4] = "";
    const uint64_t file_bytes = input->bytes;
    const size_t got = file_bytes >= 4 + TAIL_BYTES ? TAIL_BYTES : 0;
    const size_t got_head = file_bytes >= 4 ? 4 : 0;
    *footer = (struct parquet_footer){.file_bytes = file_bytes};
    enum tokmap_status status = parquet_input_read(input, path, tail, file_bytes - got, got, error);
    /* Of an object, the first bytes would take a request, and its end is that of a Parquet file or of none. */
    if (!status && got && input->asked && !memcmp(tail + 4, "PAR1", 4))
        memcpy(head, "PAR1", 4);
    else if (!status)
        status = parquet_input_read(input, path, head, 0, got_head, error);
    if (status)
        return status;
    if (got_head == 4 && (!memcmp(head, "PARE", 4) || (got == TAIL_BYTES && !memcmp(tail + 4, "PARE", 4))))
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, TOKMAP_NO_OFFSET,
                         "the Parquet file is encrypted; decrypt it with the program that has the keys");
    if ((got_head != 4 || memcmp(head, "PAR1", 4) != 0) && file_type_packed_ending(path, strlen(path)))
        return error_set(
            error, TOKMAP_ERROR_UNSUPPORTED, path, TOKMAP_NO_OFFSET,
            "the file is compressed, and a Parquet file is read from its end: decompress it to a file, and "
            "name that");
    if (got_head == 4 && !memcmp(head, "vers", 4)) /* version https://git-lfs.github.com/spec/v1 */
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, 0,
                         "the file is not a Parquet file, because it begins with 'vers', as a pointer of Git LFS does; "
                         "fetch the data that it stands for with 'git lfs pull'");
    if (got_head != 4 || memcmp(head, "PAR1", 4) != 0)
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, 0,
                         "the file is not a Parquet file, because it does not begin with PAR1; name its format with "
                         "--input-format");
    if (got != TAIL_BYTES || memcmp(tail + 4, "PAR1", 4) != 0)
        return error_set(
            error, TOKMAP_ERROR_TRUNCATED, path, file_bytes,
            "the Parquet file is truncated: it does not end with PAR1, which follows its footer; " COPY_AGAIN);
    const uint64_t bytes = load32(tail);
    if (bytes > file_bytes - 4 - TAIL_BYTES || bytes > FOOTER_MOST)
        return error_set(error, TOKMAP_ERROR_CORRUPT, path, file_bytes - TAIL_BYTES,
                         "the Parquet file says that its footer has %" PRIu64 " bytes, and the file has %" PRIu64
                         "; " COPY_AGAIN,
                         bytes, file_bytes);
    footer->data_end = reading.footer_at = file_bytes - TAIL_BYTES - bytes;
    uint8_t *memory = malloc(bytes + 1);
    if (!memory)
        return error_set_memory(error, "the footer of a Parquet file", bytes);
    reading.thrift = (struct thrift){.bytes = memory, .count = bytes};
    status = parquet_input_read(input, path, memory, reading.footer_at, bytes, error);
    if (!status)
        status = meta_read(&reading);
    free(reading.extents);
    free(memory);
    return status;
}

void parquet_footer_free(struct parquet_footer *footer)
{
    free(footer->groups);
    free(footer->chunks);
    *footer = (struct parquet_footer){0};
}
