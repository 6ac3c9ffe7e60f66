/* SPDX-License-Identifier: MIT */
#include "json_file.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "platform/os.h"
#include "text/utf8.h"

#define BLOCK_BYTES ((size_t)64 << 10)

struct text_block {
    struct text_block *next;
    size_t used, room;
    uint8_t bytes[];
};

static void text_arena_free(struct text_arena *arena)
{
    while (arena->blocks) {
        struct text_block *next = arena->blocks->next;
        free(arena->blocks);
        arena->blocks = next;
    }
}

uint8_t *text_arena_alloc(struct text_arena *arena, size_t bytes)
{
    struct text_block *block = arena->blocks;
    if (!block || block->room - block->used < bytes) {
        const bool alone = bytes > BLOCK_BYTES / 8; /* so that at most an eighth of a block stays unused */
        const size_t room = alone ? bytes : BLOCK_BYTES;
        block = room < SIZE_MAX / 2 ? malloc(sizeof *block + room) : NULL;
        if (!block)
            return NULL;
        block->used = 0;
        block->room = room;
        struct text_block **after = alone && arena->blocks ? &arena->blocks->next : &arena->blocks;
        block->next = *after;
        *after = block;
    }
    block->used += bytes;
    return block->bytes + block->used - bytes;
}

void text_arena_join(struct text_arena *arena, struct text_arena *other)
{
    struct text_block **last = &arena->blocks; /* the first block stays the one that is being filled */
    while (*last)
        last = &(*last)->next;
    *last = other->blocks;
    other->blocks = NULL;
}

/* Gives back the last `bytes` bytes of an allocation that ends at `end`, if it is the last one of a shared block. */
static void text_arena_shrink(struct text_arena *arena, const uint8_t *end, size_t bytes)
{
    if (arena->blocks && arena->blocks->bytes + arena->blocks->used == end)
        arena->blocks->used -= bytes;
}

/* ---- the check of the text ----
 *
 * A long text is checked by several threads, each of which takes one piece after the other. A piece begins where a
 * sequence of a valid text does: not at a continuation byte, of which a valid text has at most three in a row. So the
 * text is valid if all pieces are, and only then. Where the first fault is matters only if there is one; then one
 * thread looks for it. */

#define CHECKED_BYTES ((size_t)1 << 20)
#define CHECKERS_MOST 4u

struct checking {
    const char *text;
    size_t count;
    uint32_t next; /* the first piece that no thread has taken */
    uint32_t faulty;
};

/* Returns where piece `number` begins; `count` for those after the last one. */
static size_t piece_begin(const struct checking *checking, uint64_t number)
{
    if (number * CHECKED_BYTES >= checking->count)
        return checking->count;
    const size_t at = number * CHECKED_BYTES;
    size_t back = 0;
    while (back < 3 && back < at && ((unsigned char)checking->text[at - back] & 0xC0) == 0x80)
        back++;
    return at - back;
}

static void checking_run(void *user, uint32_t number)
{
    struct checking *checking = user;
    while (!__atomic_load_n(&checking->faulty, __ATOMIC_RELAXED)) {
        const uint64_t piece = __atomic_fetch_add(&checking->next, 1, __ATOMIC_RELAXED);
        const size_t from = piece_begin(checking, piece), count = piece_begin(checking, piece + 1) - from;
        if (!count)
            return;
        if (utf8_valid_prefix(checking->text + from, count) < count)
            __atomic_store_n(&checking->faulty, 1, __ATOMIC_RELAXED);
    }
}

/* Returns the number of bytes before the first fault; `count` if there is none. */
static size_t valid_prefix(const char *text, size_t count)
{
    struct checking checking = {.text = text, .count = count};
    const uint64_t threads = min64(min64(os_processors(), CHECKERS_MOST), count / CHECKED_BYTES);
    if (threads < 2)
        return utf8_valid_prefix(text, count);
    os_threads_share("tokmap-utf8", (uint32_t)threads, checking_run, &checking);
    return checking.faulty ? utf8_valid_prefix(text, count) : count;
}

bool json_file_begin(struct json_file *file, const char *path, const char *text, size_t count,
                     struct tokmap_error *error)
{
    assert(path && text);
    file->path = path;
    file->arena.blocks = NULL;
    file->error = error;
    file->content = "the JSON of a tokenizer";
    file->status = TOKMAP_OK;
    json_begin(&file->scan, text, count);
    const size_t valid = valid_prefix(text, count);
    if (valid < count) {
        file->scan.at = text + valid;
        return json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                                "the file is not valid UTF-8 at this position; it is damaged");
    }
    return true;
}

void json_file_end(struct json_file *file)
{
    text_arena_free(&file->arena);
}

bool json_file_decode(struct json_file *file, const struct json_string *string, const uint8_t **bytes, size_t *count)
{
    *bytes = (const uint8_t *)string->bytes;
    *count = string->count;
    if (!string->escaped)
        return true;
    char *decoded = (char *)text_arena_alloc(&file->arena, string->count);
    size_t lone, first;
    if (!decoded) {
        if (!file->status)
            file->status = error_set_memory(file->error, "the strings of a vocabulary file", string->count);
        return false;
    }
    memcpy(decoded, string->bytes, string->count);
    *bytes = (const uint8_t *)decoded;
    *count = json_unescape(decoded, string->count, &lone, &first);
    text_arena_shrink(&file->arena, (const uint8_t *)decoded + string->count, string->count - *count);
    return !lone ||
           json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                            "the string before this position contains half of a surrogate pair (\\ud800 to \\udfff); "
                            "write both halves, or the character itself");
}

bool json_file_text(struct json_file *file, const uint8_t **bytes, size_t *count)
{
    struct json_string string;
    return json_text(&file->scan, &string) && json_file_decode(file, &string, bytes, count);
}

bool json_file_flag(struct json_file *file, bool *value)
{
    if (json_kind(&file->scan) == JSON_NULL) {
        *value = false;
        return json_null(&file->scan);
    }
    return json_bool(&file->scan, value);
}

bool json_file_refuse(struct json_file *file, enum tokmap_status status, const char *format, ...)
{
    char sentence[384];
    va_list arguments;
    assert(status != TOKMAP_OK && file->scan.at >= file->scan.start && file->scan.at <= file->scan.end);
    if (file->status)
        return false;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    const bool ended = file->scan.at == file->scan.end; /* the failure concerns the file as a whole */
    file->status = error_set(file->error, status, file->path,
                             ended ? TOKMAP_NO_OFFSET : (uint64_t)(file->scan.at - file->scan.start), "%s", sentence);
    return false;
}

static const char *before_spaces(const char *start, const char *at)
{
    while (at > start && (at[-1] == ' ' || at[-1] == '\t' || at[-1] == '\r' || at[-1] == '\n'))
        at--;
    return at;
}

/* Returns the name, with its quotes, of the member whose value begins at `at`. *bytes: 0 if no short name is there. */
static const char *name_before(const char *start, const char *at, int *bytes)
{
    at = before_spaces(start, at);
    at = before_spaces(start, at > start && at[-1] == ':' ? at - 1 : start);
    *bytes = 0;
    if (at == start || at[-1] != '"')
        return at;
    for (const char *name = at - 1; name > start && at - name < 64;)
        if (*--name == '"') {
            *bytes = (int)(at - name);
            return name;
        }
    return at;
}

bool json_file_memory(struct json_file *file, const char *what, uint64_t bytes)
{
    if (!file->status)
        file->status = error_set_memory(file->error, what, bytes);
    return false;
}

enum tokmap_status json_file_status(struct json_file *file)
{
    const struct json_fault *fault = &file->scan.fault;
    if (!file->status && fault->reason) {
        int bytes;
        const char *name = name_before(file->scan.start, file->scan.start + fault->offset, &bytes);
        file->status =
            error_set(file->error, TOKMAP_ERROR_FORMAT, file->path, fault->offset, "the file is not %s: %s%s%.*s",
                      file->content, fault->reason, bytes ? ", as the value of " : "", bytes, name);
    }
    return file->status;
}
