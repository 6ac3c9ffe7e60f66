/* SPDX-License-Identifier: MIT */
/*
 * hf_model.c - reads the vocabulary and the merges in one pass over the file, without copying a text that has no
 * escapes.
 *
 * A file can list a million tokens and as many merges, and opening it should take a fraction of a second. Almost all of
 * that time would be cache misses of the hash table, so texts are added and looked up in groups: the memory that the
 * whole group needs is prefetched before the first text is handled.
 *
 * A long list of merges is read by two threads, and so is a long vocabulary. Where an element begins cannot be known
 * without reading from the front, because the same characters can be inside a string; so the place where the second
 * thread begins is a guess, and the first thread finds out whether it was right. Example: of  "a b", "c d", "e f"  the
 * second thread begins at the quote before e, because it follows a quote and a comma. If the first thread, in its turn,
 * comes to an element that begins exactly there, then it would read the same from there on as the second thread has
 * read, and takes over what that has found. If it never comes to that place, or if the second thread has found anything
 * wrong, it ignores the other and reads on. So what is read, and what is refused and why, is always what one thread
 * would find. (Only the first thread adds texts to the table. The second one looks up its merges in it, when it is
 * complete.)
 */
#include "hf_model.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "platform/os.h"

#define TOKEN_BYTES_MOST 65535u
#define AFFIX_BYTES_MOST 256u
/* Bytes of the vocabulary for a token, and of the file for a token and its merge: estimates, by which the table is
 * allocated. A table that is too small is built twice; one that is too large takes memory for nothing. */
#define BYTES_A_MEMBER 16
#define BYTES_A_TOKEN 64
_Static_assert(TEXT_TABLE_MOST == BPE_IDS, "a table holds a token for every id");

void hf_model_shed(struct hf_model *model)
{
    text_table_free(&model->vocabulary);
    free(model->merges);
    bytes_free(&model->results);
    model->merges = NULL;
    model->merge_count = model->merge_room = 0;
}

void hf_model_free(struct hf_model *model)
{
    hf_model_shed(model);
    memset(model, 0, sizeof *model);
}

#define TOKENS_WAITING 16

/* Tokens that were parsed, and whose slots were prefetched, but that are not in the table yet. */
struct tokens_waiting {
    struct text_entry tokens[TOKENS_WAITING];
    uint64_t hashes[TOKENS_WAITING];
    const char *at[TOKENS_WAITING]; /* position in the file, for messages */
    uint32_t count;
};

bool hf_token_refuse(struct json_file *file, const struct text_table *vocabulary, const struct text_entry *token,
                     const char *field, enum text_added added)
{
    switch (added) {
    case TEXT_DUPLICATE:
        return json_file_refuse(file, TOKMAP_ERROR_FORMAT, "%s lists the token '%.*s' twice; the file is damaged",
                                field, shown(token->bytes), (const char *)token->text);
    case TEXT_FULL:
        return json_file_refuse(file, TOKMAP_ERROR_LIMIT,
                                "%s has more than %u tokens, which is the most that tokmap "
                                "can read; use a smaller vocabulary",
                                field, TEXT_TABLE_MOST);
    case TEXT_ADDED:
    case TEXT_NO_MEMORY:
    default:
        return json_file_memory(file, "a vocabulary", (size_t)vocabulary->room * 2 * sizeof *token);
    }
}

static bool tokens_add(struct json_file *file, struct text_table *vocabulary, struct tokens_waiting *waiting,
                       const char *field)
{
    for (uint32_t i = 0; i < waiting->count; i++) {
        const struct text_entry *token = &waiting->tokens[i];
        const enum text_added added = text_table_add_hashed(vocabulary, token, waiting->hashes[i]);
        if (added == TEXT_ADDED)
            continue;
        if (added != TEXT_NO_MEMORY)
            file->scan.at = waiting->at[i];
        return hf_token_refuse(file, vocabulary, token, field, added);
    }
    waiting->count = 0;
    return true;
}

/* Parses a member, whose name is a token and whose value is the id. */
static bool token_parse(struct json_file *file, const struct json_string *name, const char *field,
                        struct text_entry *token)
{
    const uint8_t *text;
    size_t bytes;
    uint64_t id;
    if (!json_file_decode(file, name, &text, &bytes) || !json_unsigned(&file->scan, &id))
        return false;
    if (id >= BPE_IDS)
        return json_file_refuse(file, TOKMAP_ERROR_LIMIT,
                                "%s: the token '%.*s' has the id %llu; the largest id that tokmap can read is %u",
                                field, shown(bytes), (const char *)text, (unsigned long long)id, BPE_IDS - 1);
    if (bytes > TOKEN_BYTES_MOST)
        return json_file_refuse(file, TOKMAP_ERROR_LIMIT,
                                "%s: the token with the id %llu has %zu bytes; the longest "
                                "that tokmap can read has %u",
                                field, (unsigned long long)id, bytes, TOKEN_BYTES_MOST);
    *token = (struct text_entry){text, (uint32_t)bytes, (uint32_t)id};
    return true;
}

/* ---- a second thread ---- */

#define SHARED_LEAST ((size_t)128 << 10) /* bytes of JSON that make a second thread worth it */
#define GUESS_BYTES ((size_t)4 << 10)    /* bytes in which a place for it is looked for */

static const char *space_skip(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
        at++;
    return at;
}

/* What the second thread reads. */
struct second {
    struct json_file file;
    const char *begin; /* place in the text of the first thread where it begins */
    struct os_thread *thread;
    uint32_t unwanted;
    bool good; /* result: it has come to the end without a fault */
};

/* Starts the second thread at another place of the same container, where an element or a comma follows. Returns false
 * if it is not started. */
static bool second_start(struct second *second, const struct json_file *file, const char *begin, const char *name,
                         void (*run)(void *user), void *user)
{
    second->file.path = file->path;
    second->file.scan = file->scan;
    second->file.scan.at = second->begin = begin;
    second->file.scan.fresh = false;
    return !os_thread_start(&second->thread, name, run, user);
}

static void second_wait(struct second *second)
{
    os_thread_join(second->thread);
    second->thread = NULL;
}

/* Ends the second thread, if it still runs. */
static void second_stop(struct second *second)
{
    __atomic_store_n(&second->unwanted, 1, __ATOMIC_RELAXED);
    second_wait(second);
}

/* ---- the vocabulary ---- */

/* The first thread parses this many of FIRST_OF bytes of the vocabulary. Then it adds the tokens of the second thread,
 * too, which takes it about as long as the second thread needs to parse what it has more. */
#define FIRST_PARSES 2
#define FIRST_OF 5

/* A token that the second thread has parsed. */
struct rest_token {
    struct text_entry entry;
    uint64_t hash; /* in the vocabulary */
};

/* The rest of the vocabulary, which the second thread reads. */
struct tokens_rest {
    struct second second;                /* begins at the comma before its first member */
    const struct text_table *vocabulary; /* to which the first thread adds tokens meanwhile */
    uint64_t bytes;                      /* about as many as its members have */
    const char *field;
    struct rest_token *tokens;
    uint32_t count, room;
};

/* Returns whether members with numbers as values seem to be there. */
static bool has_members(const char *at, const char *end)
{
    end = end - at > 1024 ? at + 1024 : end;
    for (; end - at >= 4; at++)
        if (at[0] == '"' && at[1] == ':') {
            const char *value = space_skip(at + 2, end);
            if (value < end && *value >= '0' && *value <= '9')
                return true;
        }
    return false;
}

/* Guesses where a member ends, behind the part of the object that the first thread is to parse: at a comma between a
 * digit and a quote. The end of the object is guessed, too: from there on, other things than numbers have names. NULL:
 * there is no such place. */
static const char *tokens_guess(const struct json_scan *scan)
{
    const char *first = scan->at, *last = scan->end;
    for (int i = 0; i < 6; i++) {
        const char *middle = first + (last - first) / 2;
        *(has_members(middle, scan->end) ? &first : &last) = middle;
    }
    if ((size_t)(first - scan->at) < SHARED_LEAST)
        return NULL;
    const char *at = scan->at + (first - scan->at) / FIRST_OF * FIRST_PARSES, *const end = at + GUESS_BYTES;
    for (; (at = memchr(at, ',', (size_t)(end - at))); at++) {
        const char *next = space_skip(at + 1, end);
        if (at[-1] >= '0' && at[-1] <= '9' && next < end && *next == '"')
            return at;
    }
    return NULL;
}

/* Makes room for more tokens: for all, if the others are as long as those that were read. */
static bool rest_grow(struct tokens_rest *rest)
{
    const uint64_t read = max64((uint64_t)(rest->second.file.scan.at - rest->second.begin), 1);
    const uint64_t guess = max64(2 * (uint64_t)rest->room, rest->count * rest->bytes / read + rest->count / 8);
    const uint32_t room = rest->room ? (uint32_t)min64(guess, BPE_IDS - 1) : 4096;
    struct rest_token *grown = room > rest->room ? os_memory_large(room * sizeof *grown) : NULL;
    if (!grown)
        return false;
    if (rest->count)
        memcpy(grown, rest->tokens, rest->count * sizeof *grown);
    free(rest->tokens);
    rest->tokens = grown;
    rest->room = room;
    return true;
}

static void tokens_run(void *user)
{
    struct tokens_rest *rest = user;
    struct json_string name;
    while (json_member(&rest->second.file.scan, &name)) {
        if (rest->count == rest->room && !rest_grow(rest))
            return;
        struct rest_token *token = &rest->tokens[rest->count];
        if (__atomic_load_n(&rest->second.unwanted, __ATOMIC_RELAXED) ||
            !token_parse(&rest->second.file, &name, rest->field, &token->entry))
            return;
        token->hash = text_table_hash(rest->vocabulary, token->entry.text, token->entry.bytes);
        rest->count++;
    }
    rest->second.good = !rest->second.file.scan.fault.reason;
}

/* Starts the second thread at the comma `begin`. Returns NULL if it is not started. */
static struct tokens_rest *tokens_start(const struct json_file *file, const struct text_table *vocabulary,
                                        const char *field, const char *begin)
{
    struct tokens_rest *rest = calloc(1, sizeof *rest);
    if (!rest)
        return NULL;
    rest->vocabulary = vocabulary;
    rest->field = field;
    rest->bytes = (uint64_t)(begin - file->scan.at) / FIRST_PARSES * (FIRST_OF - FIRST_PARSES);
    if (second_start(&rest->second, file, begin, "tokmap-tokens", tokens_run, rest))
        return rest;
    free(rest);
    return NULL;
}

static void tokens_free(struct tokens_rest *rest)
{
    if (!rest)
        return;
    second_stop(&rest->second);
    free(rest->tokens);
    json_file_end(&rest->second.file);
    free(rest);
}

/* Ends the group. If parsing has ended with a fault, what is wrong with a token that waits comes before it in the file,
 * and is the one that is reported: which tokens are in a group must not decide that. */
static bool tokens_end(struct json_file *file, struct text_table *vocabulary, struct tokens_waiting *waiting,
                       const char *field)
{
    const enum tokmap_status status = file->status;
    file->status = TOKMAP_OK;
    if (!tokens_add(file, vocabulary, waiting, field))
        return false;
    file->status = status;
    return !status && !file->scan.fault.reason;
}

/* Parses members up to the end of the object, or up to `stop`. */
static bool tokens_take(struct json_file *file, struct text_table *vocabulary, const char *field, const char *stop)
{
    struct json_string name;
    struct tokens_waiting waiting;
    waiting.count = 0;
    while (file->scan.at != stop && json_member(&file->scan, &name)) {
        struct text_entry *token = &waiting.tokens[waiting.count];
        if (!token_parse(file, &name, field, token))
            break;
        waiting.hashes[waiting.count] = text_table_hash(vocabulary, token->text, token->bytes);
        text_table_prefetch(vocabulary, waiting.hashes[waiting.count]);
        waiting.at[waiting.count++] = file->scan.at;
        if (waiting.count == TOKENS_WAITING && !tokens_add(file, vocabulary, &waiting, field))
            return false;
    }
    return tokens_end(file, vocabulary, &waiting, field);
}

/* Adds the tokens that the second thread has read. If one cannot be added, the members up to it are read again, so that
 * the message has its position. */
static bool tokens_append(struct json_file *file, struct text_table *vocabulary, struct tokens_rest *rest)
{
    text_arena_join(&file->arena, &rest->second.file.arena);
    for (uint32_t i = 0; i < rest->count; i++) {
        const struct text_entry *token = &rest->tokens[i].entry;
        if (rest->count - i > TOKENS_WAITING)
            text_table_prefetch(vocabulary, rest->tokens[i + TOKENS_WAITING].hash);
        const enum text_added added = text_table_add_hashed(vocabulary, token, rest->tokens[i].hash);
        if (added == TEXT_ADDED)
            continue;
        struct json_string name;
        struct text_entry again;
        for (uint32_t k = 0; k <= i; k++)
            if (!json_member(&file->scan, &name) || !token_parse(file, &name, rest->field, &again))
                return false;
        return hf_token_refuse(file, vocabulary, token, rest->field, added);
    }
    file->scan = rest->second.file.scan;
    return true;
}

bool hf_vocabulary_parse(struct json_file *file, struct text_table *vocabulary, const char *field)
{
    uint32_t duplicate;
    if (vocabulary->indexed)
        return json_file_refuse(file, TOKMAP_ERROR_FORMAT, "the file has %s twice; it is damaged", field);
    if (!json_enter_object(&file->scan))
        return false;
    const char *begin = os_processors() > 1 ? tokens_guess(&file->scan) : NULL;
    const uint64_t bytes = (uint64_t)((begin ? begin : file->scan.end) - file->scan.at);
    bool good = text_table_reserve(vocabulary, begin ? bytes * FIRST_OF / (FIRST_PARSES * BYTES_A_MEMBER)
                                                     : bytes / BYTES_A_TOKEN) ||
                json_file_memory(file, "a vocabulary", (size_t)bytes);
    struct tokens_rest *rest = good && begin ? tokens_start(file, vocabulary, field, begin) : NULL;
    const char *stop = rest ? begin : NULL;
    good = good && tokens_take(file, vocabulary, field, stop);
    if (good && stop && file->scan.at == stop) {
        second_wait(&rest->second);
        good = rest->second.good ? tokens_append(file, vocabulary, rest) : tokens_take(file, vocabulary, field, NULL);
    }
    tokens_free(rest);
    if (!good)
        return false;
    if (text_table_index(vocabulary, &duplicate))
        return true;
    return duplicate == TEXT_NONE
               ? json_file_memory(file, "a vocabulary", ((size_t)vocabulary->ids + 1) * sizeof *vocabulary->by_id)
               : json_file_refuse(file, TOKMAP_ERROR_FORMAT, "%s: two tokens have the id %u; the file is damaged",
                                  field, duplicate);
}

/* ---- merges ---- */

const char *hf_merge_space(struct json_file *file, const char *line, const char *end, uint64_t number)
{
    const char *space = memchr(line, ' ', (size_t)(end - line));
    if (space && space > line && space + 1 < end && !memchr(space + 1, ' ', (size_t)(end - space - 1)))
        return space;
    file->scan.at = line;
    (void)json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                           "merge %llu (counted from 0) must be two tokens with one space between them",
                           (unsigned long long)number);
    return NULL;
}

static bool absent(struct json_file *file, uint64_t number, const uint8_t *text, size_t bytes)
{
    return json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                            "merge %llu (counted from 0) needs the token '%.*s', which the "
                            "vocabulary lacks; the file is damaged",
                            (unsigned long long)number, shown(bytes), (const char *)text);
}

/* Returns whether the text of an id is these two texts joined, the second one without the prefix. */
static bool is_both(const struct hf_model *model, uint32_t id, const struct text_query *left,
                    const struct text_query *right)
{
    const struct text_entry *entry = text_table_by_id(&model->vocabulary, id);
    const uint32_t rest = right->bytes - model->prefix.bytes;
    return entry && entry->bytes == left->bytes + rest && !memcmp(entry->text, left->text, left->bytes) &&
           !memcmp(entry->text + left->bytes, right->text + model->prefix.bytes, rest);
}

/* Looks up the results of the waiting merges from `first` on. Returns false if memory is lacking. */
static bool results_look_up(struct hf_model *model, uint32_t first, uint32_t count, struct text_query *results)
{
    size_t total = 0;
    for (uint32_t i = first; i < count; i++)
        total += (size_t)model->waiting[2 * i].bytes + model->waiting[2 * i + 1].bytes;
    model->results.count = 0;
    if (!bytes_reserve(&model->results, total)) /* now, because texts that were appended must not move */
        return false;
    for (uint32_t i = first; i < count; i++) {
        const struct text_query *left = &model->waiting[2 * i], *right = left + 1;
        results[i] = (struct text_query){.text = model->results.bytes + model->results.count,
                                         .bytes = left->bytes + right->bytes - model->prefix.bytes};
        (void)bytes_append(&model->results, left->text, left->bytes);
        (void)bytes_append(&model->results, right->text + model->prefix.bytes, right->bytes - model->prefix.bytes);
    }
    text_table_find_all(&model->vocabulary, results + first, count - first);
    return true;
}

/* Finds the ids that the waiting merges make. Most files list merges in the order of these ids, so the id after the
 * last one, and the last one itself, are tried before the hash table. */
static bool results_find(struct json_file *file, struct hf_model *model, uint32_t count, struct text_query *results)
{
    uint32_t id = model->last_result, known = 0;
    for (; known < count; known++) {
        const struct text_query *left = &model->waiting[2 * known], *right = left + 1;
        if (is_both(model, id + 1, left, right))
            id++;
        else if (!is_both(model, id, left, right))
            break;
        results[known].id = id;
    }
    if (known < count && !results_look_up(model, known, count, results))
        return json_file_memory(file, "a vocabulary", model->results.capacity);
    model->last_result = results[count - 1].id;
    return true;
}

/* Makes room for `count` more merges. */
static bool merges_grow(struct json_file *file, struct hf_model *model, uint32_t count)
{
    assert(count <= HF_MERGES_WAITING && model->merge_count <= model->merge_room);
    if (BPE_MERGES - model->merge_count < count)
        return json_file_refuse(file, TOKMAP_ERROR_LIMIT,
                                "the model has more than %u merges, which is the most that tokmap "
                                "can read; use a smaller vocabulary",
                                BPE_MERGES);
    if (model->merge_room - model->merge_count >= count)
        return true;
    /* Room for all, if the others are as long as those that were read. Not realloc(), whose copy has small pages. */
    const uint64_t read = model->merge_count + count, bytes = max64((uint64_t)(file->scan.at - model->merges_begin), 1);
    const uint64_t guess = read + read / 8 + (uint64_t)(file->scan.end - file->scan.at) * read / bytes;
    const uint64_t wanted = max64(2 * (uint64_t)model->merge_room, guess);
    const uint32_t room = model->merge_room ? (uint32_t)min64(wanted, BPE_MERGES) : 4096;
    struct bpe_merge *grown = os_memory_large(room * sizeof *grown);
    if (!grown)
        return json_file_memory(file, "a vocabulary", room * sizeof *grown);
    if (model->merge_count)
        memcpy(grown, model->merges, model->merge_count * sizeof *grown);
    free(model->merges);
    model->merges = grown;
    model->merge_room = room;
    return true;
}

/* Looks up the merges that wait, and appends them to the list. */
static bool merges_look_up(struct json_file *file, struct hf_model *model)
{
    const uint32_t count = model->waiting_count;
    const struct text_query *parts = model->waiting;
    struct text_query results[HF_MERGES_WAITING];
    model->waiting_count = 0;
    text_table_find_all(&model->vocabulary, model->waiting, 2 * (size_t)count);
    if (count && !results_find(file, model, count, results))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const struct text_query *lacking = parts[2 * i].id == TEXT_NONE       ? &parts[2 * i]
                                           : parts[2 * i + 1].id == TEXT_NONE ? &parts[2 * i + 1]
                                           : results[i].id == TEXT_NONE       ? &results[i]
                                                                              : NULL;
        if (lacking)
            return absent(file, model->waiting_first + i, lacking->text, lacking->bytes);
    }
    if (!merges_grow(file, model, count))
        return false;
    for (uint32_t i = 0; i < count; i++)
        model->merges[model->merge_count++] = (struct bpe_merge){parts[2 * i].id, parts[2 * i + 1].id, results[i].id};
    return true;
}

bool hf_merges_finish(struct json_file *file, struct hf_model *model)
{
    const enum tokmap_status status = file->status;
    file->status = TOKMAP_OK;
    if (!merges_look_up(file, model))
        return false;
    file->status = status;
    return !status && !file->scan.fault.reason;
}

bool hf_merge_add(struct json_file *file, struct hf_model *model, const uint8_t *left, size_t left_bytes,
                  const uint8_t *right, size_t right_bytes, uint64_t number)
{
    assert(model->waiting_count < HF_MERGES_WAITING && model->vocabulary.indexed);
    if (left_bytes > TOKEN_BYTES_MOST || right_bytes > TOKEN_BYTES_MOST)
        return absent(file, number, left_bytes > right_bytes ? left : right, 64);
    const uint32_t prefix = model->prefix.bytes;
    if (prefix && (right_bytes <= prefix || memcmp(right, model->prefix.text, prefix)))
        return json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED,
                                "merge %llu (counted from 0): the right part '%.*s' does not begin with "
                                "model.continuing_subword_prefix, or has nothing after it; the file is damaged",
                                (unsigned long long)number, shown(right_bytes), (const char *)right);
    struct text_query *query = &model->waiting[2 * model->waiting_count];
    query[0] = (struct text_query){.text = left, .bytes = (uint32_t)left_bytes};
    query[1] = (struct text_query){.text = right, .bytes = (uint32_t)right_bytes};
    if (!model->waiting_count++)
        model->waiting_first = number;
    return model->waiting_count < HF_MERGES_WAITING || merges_look_up(file, model);
}

/* Parses a merge that is written "a b". */
static bool merge_line(struct json_file *file, struct hf_model *model, uint64_t number)
{
    const uint8_t *line;
    size_t bytes;
    if (!json_file_text(file, &line, &bytes))
        return false;
    if (bytes >= 8 && !memcmp(line, "#version", 8)) /* a comment, as in the reference */
        return true;
    const uint8_t *space = memchr(line, ' ', bytes);
    if (!space || memchr(space + 1, ' ', bytes - (size_t)(space + 1 - line)))
        return json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                                "merge %llu (counted from 0) must be two tokens with one space between them",
                                (unsigned long long)number);
    return hf_merge_add(file, model, line, (size_t)(space - line), space + 1, bytes - (size_t)(space + 1 - line),
                        number);
}

/* Parses a merge that is written ["a", "b"]. */
static bool merge_pair(struct json_file *file, struct hf_model *model, uint64_t number)
{
    const uint8_t *text[2];
    size_t bytes[2];
    if (!json_enter_array(&file->scan))
        return false;
    for (int i = 0; i < 2; i++)
        if (!json_element(&file->scan) || !json_file_text(file, &text[i], &bytes[i]))
            return json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                                    "merge %llu (counted from 0) must be an array of two tokens",
                                    (unsigned long long)number);
    if (json_element(&file->scan))
        return json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                                "merge %llu (counted from 0) must be an array of two tokens, but has more",
                                (unsigned long long)number);
    return !file->scan.fault.reason && hf_merge_add(file, model, text[0], bytes[0], text[1], bytes[1], number);
}

/* Progress of a thread in the list of merges. */
struct merges_place {
    uint64_t number;     /* of the next merge */
    enum json_kind kind; /* of all merges before it; JSON_NOTHING: it is the first one that this thread reads */
    bool begun;          /* it begins at the current position: its comma has been taken */
};

/* Parses merges up to the end of the list, or up to an element that begins at `stop` or after it (NULL: no such place):
 * then place->begun is set. unwanted: NULL, or where another thread says that the result is not needed. */
static bool merges_take(struct json_file *file, struct hf_model *model, struct merges_place *place, const char *stop,
                        const uint32_t *unwanted)
{
    for (; place->begun || json_element(&file->scan); place->number++) {
        const enum json_kind next = json_kind(&file->scan);
        place->begun = true;
        if (stop && file->scan.at >= stop)
            return true;
        if (unwanted && __atomic_load_n(unwanted, __ATOMIC_RELAXED))
            return false;
        if (place->kind != JSON_NOTHING && next != place->kind) {
            (void)json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                                   "model.merges contains both strings and arrays; all merges must be written alike");
            break;
        }
        place->kind = next;
        if (!(next == JSON_ARRAY ? merge_pair(file, model, place->number) : merge_line(file, model, place->number)))
            break;
        place->begun = false;
    }
    return hf_merges_finish(file, model);
}

/* ---- a second thread for a long list ---- */

/* The rest of the list, which the second thread reads. */
struct merges_rest {
    struct second second;
    struct hf_model model; /* borrows the vocabulary */
    struct merges_place place;
};

/* Guesses where an element begins: after the quote or bracket that ends another one, and a comma. NULL: no such place
 * is near the middle of the file's rest. */
static const char *rest_guess(const struct json_scan *scan, enum json_kind kind)
{
    const char first = kind == JSON_ARRAY ? '[' : '"', last = kind == JSON_ARRAY ? ']' : '"';
    const char *at = scan->at + (scan->end - scan->at) / 2, *const end = at + GUESS_BYTES;
    if ((size_t)(scan->end - scan->at) < SHARED_LEAST || (kind != JSON_ARRAY && kind != JSON_STRING))
        return NULL;
    while ((at = memchr(at, last, (size_t)(end - at)))) {
        const char *comma = space_skip(++at, end);
        const char *next = comma < end && *comma == ',' ? space_skip(comma + 1, end) : end;
        if (at[-2] != '\\' && next < end && *next == first)
            return next;
    }
    return NULL;
}

static void rest_run(void *user)
{
    struct merges_rest *rest = user;
    struct second *second = &rest->second;
    second->good = merges_take(&second->file, &rest->model, &rest->place, NULL, &second->unwanted);
}

/* Starts the second thread, if the list is long, and there is a processor for it. Returns NULL if it is not started:
 * then the caller reads the whole list. The list has been entered. */
static struct merges_rest *rest_start(struct json_file *file, const struct hf_model *model)
{
    const char *begin = rest_guess(&file->scan, json_kind(&file->scan));
    struct merges_rest *rest = begin && os_processors() > 1 ? calloc(1, sizeof *rest) : NULL;
    if (!rest)
        return NULL;
    rest->model.vocabulary = model->vocabulary;
    rest->model.prefix = model->prefix;
    rest->model.merges_begin = begin;
    rest->place.begun = true;
    rest->place.kind = JSON_NOTHING;
    if (second_start(&rest->second, file, begin, "tokmap-merges", rest_run, rest))
        return rest;
    free(rest);
    return NULL;
}

static void rest_free(struct merges_rest *rest)
{
    if (!rest)
        return;
    second_stop(&rest->second);
    free(rest->model.merges);
    bytes_free(&rest->model.results);
    json_file_end(&rest->second.file);
    free(rest);
}

/* Waits for the second thread, or stops it. Returns whether it has read the merges from `place` to the end of the list
 * without a fault, so that they can be appended. */
static bool rest_fits(const struct json_file *file, const struct hf_model *model, const struct merges_place *place,
                      struct merges_rest *rest)
{
    if (!place->begun || file->scan.at != rest->second.begin) {
        second_stop(&rest->second);
        return false;
    }
    second_wait(&rest->second);
    return rest->second.good && rest->place.kind == place->kind &&
           rest->model.merge_count <= BPE_MERGES - model->merge_count - model->waiting_count;
}

/* Appends what the second thread has read. */
static bool rest_append(struct json_file *file, struct hf_model *model, const struct merges_rest *rest)
{
    if (!hf_merges_finish(file, model))
        return false;
    const uint32_t count = model->merge_count + rest->model.merge_count;
    if (count >= model->merge_room) {
        struct bpe_merge *joined = os_memory_large(((size_t)count + 1) * sizeof *joined);
        if (!joined)
            return json_file_memory(file, "a vocabulary", count * sizeof *joined);
        if (model->merge_count)
            memcpy(joined, model->merges, model->merge_count * sizeof *joined);
        free(model->merges);
        model->merges = joined;
        model->merge_room = count + 1;
    }
    if (rest->model.merge_count)
        memcpy(model->merges + model->merge_count, rest->model.merges, rest->model.merge_count * sizeof *model->merges);
    model->merge_count = count;
    model->last_result = rest->model.last_result;
    file->scan = rest->second.file.scan;
    return true;
}

static bool merges_parse(struct json_file *file, struct hf_model *model)
{
    struct merges_place place = {.kind = JSON_NOTHING};
    if (!json_enter_array(&file->scan))
        return false;
    model->merges_begin = file->scan.at;
    struct merges_rest *rest = rest_start(file, model);
    bool good = merges_take(file, model, &place, rest ? rest->second.begin : NULL, NULL);
    if (good && rest && rest_fits(file, model, &place, rest))
        good = rest_append(file, model, rest);
    else if (good && place.begun)
        good = merges_take(file, model, &place, NULL, NULL);
    rest_free(rest);
    return good;
}

/* Parses null or a text. */
static bool affix_parse(struct json_file *file, const char *field, struct bpe_affix *affix)
{
    size_t bytes = 0;
    *affix = (struct bpe_affix){NULL, 0};
    if (json_kind(&file->scan) == JSON_NULL)
        return json_null(&file->scan);
    if (!json_file_text(file, &affix->text, &bytes))
        return false;
    affix->bytes = (uint32_t)bytes;
    return bytes <= AFFIX_BYTES_MOST || json_file_refuse(file, TOKMAP_ERROR_LIMIT,
                                                         "model.%s has %zu bytes; the longest that tokmap can read "
                                                         "has %u",
                                                         field, bytes, AFFIX_BYTES_MOST);
}

static bool dropout_parse(struct json_file *file)
{
    double dropout = 0;
    if (json_kind(&file->scan) == JSON_NULL)
        return json_null(&file->scan);
    if (!json_real(&file->scan, &dropout))
        return false;
    return !(dropout < 0 || dropout > 0) || json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED,
                                                             "model.dropout is %g, which makes ids random; set it to "
                                                             "null",
                                                             dropout);
}

static bool unk_parse(struct json_file *file, struct hf_model *model)
{
    model->unk = NULL;
    return json_kind(&file->scan) == JSON_NULL ? json_null(&file->scan)
                                               : json_file_text(file, &model->unk, &model->unk_bytes);
}

static bool member_parse(struct json_file *file, struct hf_model *model, const struct json_string *name,
                         struct json_scan *merges)
{
    if (json_name_is(name, "continuing_subword_prefix")) {
        if (!affix_parse(file, "continuing_subword_prefix", &model->prefix))
            return false;
        return !model->prefix.bytes || !merges->start ||
               json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED,
                                "model.continuing_subword_prefix comes after model.merges, which depend on it; tokmap "
                                "can read such a file if it comes first");
    }
    if (json_name_is(name, "end_of_word_suffix"))
        return affix_parse(file, "end_of_word_suffix", &model->suffix);
    if (json_name_is(name, "dropout"))
        return dropout_parse(file);
    if (json_name_is(name, "unk_token"))
        return unk_parse(file, model);
    if (json_name_is(name, "fuse_unk"))
        return json_file_flag(file, &model->fuse_unk);
    if (json_name_is(name, "byte_fallback"))
        return json_file_flag(file, &model->byte_fallback);
    if (json_name_is(name, "ignore_merges"))
        return json_file_flag(file, &model->ignore_merges);
    if (json_name_is(name, "vocab"))
        return hf_vocabulary_parse(file, &model->vocabulary, "model.vocab");
    if (json_name_is(name, "merges")) {
        if (merges->start)
            return json_file_refuse(file, TOKMAP_ERROR_FORMAT, "the file has model.merges twice; it is damaged");
        *merges = file->scan;
        return model->vocabulary.indexed ? merges_parse(file, model) : json_skip(&file->scan);
    }
    return json_skip(&file->scan);
}

static const char *const kind_names[] = {
    [HF_BPE] = "BPE", [HF_UNIGRAM] = "Unigram", [HF_WORDPIECE] = "WordPiece", [HF_WORD_LEVEL] = "WordLevel"};
#define KINDS (sizeof kind_names / sizeof kind_names[0])

static bool kind_parse(struct json_file *file, enum hf_model_kind *kind)
{
    const uint8_t *text;
    size_t bytes, found = 0;
    if (!json_file_text(file, &text, &bytes))
        return false;
    while (found < KINDS && (bytes != strlen(kind_names[found]) || memcmp(text, kind_names[found], bytes)))
        found++;
    *kind = (enum hf_model_kind)found;
    return found < KINDS ||
           json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED,
                            "model.type is '%.*s'; tokmap can read BPE, Unigram, WordPiece, and WordLevel",
                            shown(bytes), (const char *)text);
}

/* Old files lack "type". The reference then tries the kinds in the order BPE, WordPiece, WordLevel, Unigram, and takes
 * the first one whose fields are all there. */
bool hf_model_kind_find(struct json_file *file, enum hf_model_kind *kind)
{
    const struct json_scan start = file->scan;
    struct json_string name;
    bool named = false, merges = false, array = false, longest = false;
    if (!json_enter_object(&file->scan))
        return false;
    while (!named && json_member(&file->scan, &name)) {
        named = json_name_is(&name, "type");
        merges |= json_name_is(&name, "merges");
        longest |= json_name_is(&name, "max_input_chars_per_word");
        array |= json_name_is(&name, "vocab") && json_kind(&file->scan) == JSON_ARRAY;
        if (!(named ? kind_parse(file, kind) : json_skip(&file->scan)))
            return false;
    }
    if (file->scan.fault.reason)
        return false;
    if (!named)
        *kind = array ? HF_UNIGRAM : merges ? HF_BPE : longest ? HF_WORDPIECE : HF_WORD_LEVEL;
    file->scan = start;
    return true;
}

bool hf_model_parse(struct json_file *file, struct hf_model *model)
{
    struct json_string name;
    struct json_scan merges = {0};
    if (!json_enter_object(&file->scan))
        return false;
    bool before = false; /* the merges come before the vocabulary, without which they cannot be parsed */
    while (json_member(&file->scan, &name)) {
        if (!member_parse(file, model, &name, &merges))
            return false;
        before |= merges.start && !model->vocabulary.indexed;
    }
    if (file->scan.fault.reason)
        return false;
    if (!model->vocabulary.indexed || !model->vocabulary.count)
        return json_file_refuse(file, TOKMAP_ERROR_FORMAT, "model.vocab is missing or empty; the file is incomplete");
    if (!merges.start)
        return json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED, "model.merges is missing; the file is incomplete");
    if (before) {
        const struct json_scan end = file->scan;
        file->scan = merges;
        if (!merges_parse(file, model))
            return false;
        file->scan = end;
    }
    return true;
}
