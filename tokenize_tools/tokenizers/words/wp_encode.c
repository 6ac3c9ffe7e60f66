/* SPDX-License-Identifier: MIT */
/*
 * wp_encode.c - words are written one after the other to a block, and when it is full, they are looked up together in
 * the caches of bpe/.
 *
 * Example: of "The cat, it's" the block receives "thecat,it's", and the starts of words are 0, 3, 6, 7, 9 and 10. So
 * text is read once, and the caches see neither spaces nor capital letters: "The", "the", and "THE" are one entry.
 *
 * The last word of a block may continue after it and is moved to the next block. A word that is longer than a block is
 * put together elsewhere. Below is the engine over all this (text_engine.h).
 */
#include "wp_encode.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "bpe/bpe_engine.h"
#include "common/bytes.h"
#include "common/cpu.h"
#include "common/error.h"
#include "platform/os.h"
#include "text/code_point.h"
#include "unicode/nfc_tables.h"

/*
 * ---- the model ----
 *
 * The obvious way to divide a word looks up the longest text that fits, then a shorter one, and so on: n^2 lookups for
 * a word of n bytes, and even with a trie each token may read the bytes that the next one reads again. Here, after the
 * first token, each byte is read once, as in LinMaxMatch (Song, Salcianu, Song, Dopson, Zhou: Fast WordPiece
 * Tokenization, 2021).
 *
 * The trie has all tokens as they are in the file. So it has a trie of those that continue words in it, which begins at
 * the node of their prefix, `rest`. A node there knows what to do if the next byte leads nowhere: the tokens that are
 * certain then, and the node for the bytes that they leave over. Example: the tokens are "a", "##b", "##bcde", "##c",
 * and "##cdx". The word "abcdx" begins with "a", and bcd leads from `rest` to the node of "##bcd". There x leads
 * nowhere: "##b" is certain, and the node for "cd" is that of "##cd", where x leads to "##cdx". In "abcdz" z leads
 * nowhere from there, too: "##c" is certain, and no token begins with "d", so the word is unknown. In "abc" the word
 * ends where nothing fits: "##b" is certain, then "##c", and the node for what is left, nothing, is `rest`.
 *
 * These tokens and nodes are found when the model is made, shorter texts first: what a text of n bytes needs follows
 * from that of its first n - 1 bytes. Lists of tokens share their beginnings, so they have at most one link for each
 * byte of the vocabulary.
 */

struct building {
    struct wp_model *model;
    const struct wp_source *source;
    struct byte_trie_key *keys;
    uint64_t link_room;
    bool lacks_memory, too_large;
};

/* Returns a list with one more token at its end; 0 if there are too many or memory ran out. */
static uint32_t link_add(struct building *own, uint32_t before, uint32_t token)
{
    struct wp_model *model = own->model;
    own->too_large |= model->link_count == WP_LINKS_MOST;
    own->lacks_memory |=
        !own->too_large && !list_room(&model->links, model->link_count, &own->link_room, sizeof *model->links);
    if (own->too_large || own->lacks_memory)
        return 0;
    model->links[model->link_count] = (struct wp_link){token, before};
    return model->link_count++;
}

/* Returns how many tokens a list has. */
static inline uint32_t list_count(const struct wp_model *model, uint32_t link)
{
    uint32_t count = 0;
    for (; link; link = model->links[link].before)
        count++;
    return count;
}

/* Returns a list with the tokens of `more` at its end. */
static uint32_t links_join(struct building *own, uint32_t before, uint32_t more)
{
    struct wp_model *model = own->model;
    const uint32_t count = list_count(model, more), first = model->link_count;
    for (uint32_t i = 0; i < count && !own->too_large && !own->lacks_memory; i++)
        before = link_add(own, before, BPE_NONE);
    for (uint32_t i = count; i-- > 0 && !own->too_large && !own->lacks_memory; more = model->links[more].before)
        model->links[first + i].token = model->links[more].token;
    return before;
}

/* Finds the failure and the tokens of a node that a byte leads to, from those of shorter texts. */
static void failure_find(struct building *own, uint32_t node, uint8_t byte)
{
    struct wp_model *model = own->model;
    const struct byte_trie_node *at = &model->trie.nodes[node];
    struct wp_node *found = &model->nodes[node];
    uint32_t from = model->nodes[at->parent].failure, next = BYTE_TRIE_NONE, tokens = model->nodes[at->parent].tokens;
    if (found->failure || found->tokens)
        return; /* another token begins with this text, too */
    if (at->value != BYTE_TRIE_NONE) {
        *found = (struct wp_node){model->rest, link_add(own, 0, at->value)};
        return;
    }
    while (from != BYTE_TRIE_NONE && (next = byte_trie_step(&model->trie, from, byte)) == BYTE_TRIE_NONE) {
        tokens = links_join(own, tokens, model->nodes[from].tokens);
        from = model->nodes[from].failure;
    }
    *found = from == BYTE_TRIE_NONE ? (struct wp_node){BYTE_TRIE_NONE, 0} : (struct wp_node){next, tokens};
}

/* Finds them for all nodes after `rest`. The keys become the tokens that continue words, without what they share with
 * the node that is their value; and each step makes them a byte shorter. */
static void failures_find(struct building *own, size_t count)
{
    struct wp_model *model = own->model;
    const struct wp_source *source = own->source;
    struct byte_trie_key *keys = own->keys;
    const uint32_t prefix = model->prefix_bytes;
    size_t kept = 0;
    model->rest = source->prefix ? BYTE_TRIE_ROOT : BYTE_TRIE_NONE;
    for (uint32_t i = 0; i < prefix && model->rest != BYTE_TRIE_NONE; i++)
        model->rest = byte_trie_step(&model->trie, model->rest, source->prefix[i]);
    if (model->rest == BYTE_TRIE_NONE)
        return;
    model->nodes[model->rest].failure = BYTE_TRIE_NONE;
    for (size_t i = 0; i < count; i++)
        if (keys[i].count > prefix && !memcmp(keys[i].bytes, source->prefix, prefix))
            keys[kept++] = (struct byte_trie_key){keys[i].bytes + prefix, keys[i].count - prefix, model->rest};
    while ((count = kept)) {
        kept = 0;
        for (size_t i = 0; i < count && !own->too_large && !own->lacks_memory; i++) {
            struct byte_trie_key key = keys[i];
            key.value = byte_trie_step(&model->trie, key.value, *key.bytes);
            failure_find(own, key.value, *key.bytes++);
            if (--key.count)
                keys[kept++] = key;
        }
    }
}

/* Returns whether a text has more characters than `most`. */
static bool is_longer(const uint8_t *bytes, size_t count, uint64_t most)
{
    uint64_t characters = 0;
    if (count <= most)
        return false;
    for (size_t i = 0; i < count; i++)
        characters += (bytes[i] & 0xC0) != 0x80;
    return characters > most;
}

/* Makes each token that is a word by itself a seed of the caches. */
static void seeds_fill(struct wp_model *model)
{
    struct bpe_model *head = &model->head;
    for (uint32_t id = 0; id < head->vocabulary; id++) {
        const uint8_t *text = head->bytes + head->offsets[id];
        const uint32_t count = bpe_token_bytes(head, id);
        if (count && !is_longer(text, count, model->characters_most))
            bpe_seed_add(head, text, count, &id, 1); /* 16 bytes follow the last text */
    }
}

/* Copies the texts. Returns false if memory ran out. */
static bool texts_copy(struct building *own)
{
    struct bpe_model *head = &own->model->head;
    const struct wp_source *source = own->source;
    const size_t bytes = source->offsets[source->vocabulary];
    head->bytes = os_memory_large(bytes + 16);
    head->offsets = os_memory_large(((size_t)source->vocabulary + 1) * sizeof *head->offsets);
    head->seeds = os_memory_large(((size_t)min64(source->vocabulary, BPE_SEEDS) + 1) * sizeof *head->seeds);
    if (!head->bytes || !head->offsets || !head->seeds)
        return false;
    memcpy(head->bytes, source->bytes, bytes);
    memset(head->bytes + bytes, 0, 16);
    memcpy(head->offsets, source->offsets, ((size_t)source->vocabulary + 1) * sizeof *source->offsets);
    return true;
}

static bool trie_make(struct building *own)
{
    struct wp_model *model = own->model;
    const struct wp_source *source = own->source;
    size_t count = 0;
    own->keys = os_memory_large(source->vocabulary * sizeof *own->keys);
    if (!own->keys)
        return false;
    for (uint32_t id = 0; id < source->vocabulary; id++) {
        const uint32_t from = source->offsets[id], to = source->offsets[id + 1];
        if (to > from)
            own->keys[count++] = (struct byte_trie_key){source->bytes + from, to - from, id};
    }
    const enum tokmap_status status = byte_trie_build(&model->trie, own->keys, count, false);
    own->too_large = status == TOKMAP_ERROR_LIMIT || model->trie.count > WP_NODES_MOST;
    if (status || own->too_large)
        return false;
    model->nodes = os_memory_large_zeros(model->trie.count, sizeof *model->nodes);
    model->link_count = 1; /* number 0 means an empty list */
    if (!model->nodes)
        return false;
    failures_find(own, count);
    return !own->too_large && !own->lacks_memory;
}

enum tokmap_status wp_model_new(struct wp_model **out, const struct wp_source *source, struct tokmap_error *error)
{
    struct wp_model *model = calloc(1, sizeof *model);
    struct building own = {.model = model, .source = source};
    assert(source->vocabulary && source->vocabulary <= BPE_IDS - 2);
    *out = NULL;
    if (!model)
        return error_set_memory(error, "a vocabulary", sizeof *model);
    model->head.merge = wp_merge;
    model->head.vocabulary = source->vocabulary;
    model->head.wide = source->vocabulary > 65536;
    model->prefix_bytes = (uint32_t)source->prefix_bytes;
    model->characters_most = source->characters_most;
    model->unknown = source->unknown == BPE_NONE ? source->vocabulary : source->unknown;
    const bool good = trie_make(&own) && texts_copy(&own);
    free(own.keys);
    if (good) {
        seeds_fill(model);
        *out = model;
        return TOKMAP_OK;
    }
    wp_model_free(model);
    if (!own.too_large)
        return error_set_memory(error, "a vocabulary", source->offsets[source->vocabulary]);
    return error_set(error, TOKMAP_ERROR_LIMIT, source->path, TOKMAP_NO_OFFSET,
                     "the tokens of the vocabulary need a trie of more than %u nodes, or the rests of words have more "
                     "than %u tokens, which is the most that tokmap can read of WordPiece and WordLevel; use a smaller "
                     "vocabulary",
                     WP_NODES_MOST, WP_LINKS_MOST);
}

void wp_model_free(struct wp_model *model)
{
    if (!model)
        return;
    byte_trie_free(&model->trie);
    free(model->nodes);
    free(model->links);
    bpe_model_free(&model->head);
}

/* ---- words ---- */

/* Writes the tokens of a list, unless ids is NULL. Returns how many there are. */
static inline uint32_t list_write(const struct wp_model *model, uint32_t link, uint32_t *ids)
{
    const uint32_t count = list_count(model, link);
    for (uint32_t i = count; ids && i-- > 0; link = model->links[link].before)
        ids[i] = model->links[link].token;
    return count;
}

/* Writes the tokens of a word, unless ids is NULL. Returns how many there are, or 0 if the word is unknown. */
static size_t match(const struct wp_model *model, const uint8_t *bytes, size_t count, uint32_t *ids)
{
    uint32_t id, node = model->rest;
    size_t i = byte_trie_longest(&model->trie, bytes, count, &id), made = 1;
    if (!i || is_longer(bytes, count, model->characters_most))
        return 0;
    if (ids)
        ids[0] = id;
    while (i < count || node != model->rest) {
        if (node == BYTE_TRIE_NONE)
            return 0;
        const uint32_t next = i < count ? byte_trie_step(&model->trie, node, bytes[i]) : BYTE_TRIE_NONE;
        if (next != BYTE_TRIE_NONE) {
            node = next;
            i++;
            continue;
        }
        made += list_write(model, model->nodes[node].tokens, ids ? ids + made : NULL);
        node = model->nodes[node].failure;
    }
    return made;
}

/* Returns whether the word, which is not empty, becomes the unknown token because its tokens are not known. */
static bool wp_is_unknown(const struct wp_model *model, const uint8_t *bytes, size_t count)
{
    return !match(model, bytes, count, NULL);
}

/* ---- texts ---- */

size_t wp_merge(const struct bpe_model *head, struct bpe_scratch *scratch, const uint8_t *bytes, size_t count,
                uint32_t *ids)
{
    const struct wp_model *model = (const struct wp_model *)head;
    const size_t made = match(model, bytes, count, ids);
    if (made)
        return made;
    ids[0] = model->unknown;
    return 1;
}

#define BLOCK_FULL (SCAN_BYTES - 64) /* a step adds at most 64 bytes */

/* ---- words to ids ---- */

/* Returns the status after pieces were encoded, and raises the largest id. */
static enum tokmap_status pieces_check(struct wp_state *state, uint64_t count, struct ids_out *out,
                                       struct tokmap_error *error)
{
    const enum tokmap_status status = bpe_state_check(state->pieces, count, error);
    const uint64_t largest = state->pieces->largest;
    if (status)
        return status;
    if (largest >= state->model->head.vocabulary)
        return error_set(error, TOKMAP_ERROR_INPUT, NULL, TOKMAP_NO_OFFSET,
                         "the text has a word that is not in the vocabulary, and the vocabulary has no unknown token; "
                         "add the token that model.unk_token names to the vocabulary, or leave the text out");
    out->largest = max64(out->largest, largest);
    return TOKMAP_OK;
}

enum tokmap_status wp_encode_word(struct wp_state *state, const uint8_t *word, uint64_t count, struct ids_out *out,
                                  struct tokmap_error *error)
{
    uint64_t written = 0;
    state->pieces->largest = 0;
    enum tokmap_status status = bpe_encode_piece(state->pieces, word, count, ids_end(out), &written, error);
    if (!status)
        status = pieces_check(state, count, out, error);
    out->count += written;
    return status;
}

/* Encodes the words in the first bytes of the block, whose starts are set. */
static void words_encode(struct wp_state *state, uint32_t count)
{
    struct ids_out *out = state->out;
    const size_t width = out->wide ? 4 : 2;
    if (!count)
        return;
    state->pieces->text_end = state->block + sizeof state->block;
    if (out->room - out->count >= count) {
        out->count += bpe_encode_starts(state->pieces, state->block, count, ids_end(out), out->room - out->count);
        return;
    }
    const size_t made = bpe_encode_starts(state->pieces, state->block, count, state->spill, SCAN_BYTES);
    assert(made <= out->room - out->count); /* no more ids than characters of the text */
    memcpy(ids_end(out), state->spill, made * width);
    out->count += made;
}

/* Returns the first byte of the block, below `made`, at which a word begins, or `made`. */
static uint32_t first_start(const struct wp_state *state)
{
    const uint64_t *starts = state->pieces->chunk.starts;
    for (uint32_t word = 0; word <= state->made / 64; word++)
        if (starts[word])
            return 64 * word + (uint32_t)__builtin_ctzll(starts[word]);
    return state->made;
}

/* Returns the last byte of the block at which a word begins, or 0. */
static uint32_t last_start(const struct wp_state *state)
{
    const uint64_t *starts = state->pieces->chunk.starts;
    for (uint32_t word = state->made / 64 + 1; word-- > 0;)
        if (starts[word])
            return 64 * word + 63 - (uint32_t)__builtin_clzll(starts[word]);
    return 0;
}

/* Moves the end of the last mark with the block, out of which the first bytes are taken. */
static void mark_shift(struct wp_state *state, uint32_t taken)
{
    state->mark_end = state->mark_end > taken ? state->mark_end - taken : 0;
}

/* Takes the first bytes out of the block. */
static void block_shift(struct wp_state *state, uint32_t taken)
{
    uint64_t *starts = state->pieces->chunk.starts;
    const uint32_t words = state->made / 64 + 1, skip = taken / 64, bits = taken % 64;
    memmove(state->block, state->block + taken, state->made - taken);
    for (uint32_t i = 0; i < words; i++) {
        const uint64_t low = i + skip < words ? starts[i + skip] : 0,
                       high = i + skip + 1 < words ? starts[i + skip + 1] : 0;
        starts[i] = bits ? low >> bits | high << (64 - bits) : low;
    }
    mark_shift(state, taken);
    state->made -= taken;
}

/* Continues the word that is longer than a block. Returns false if the block ends before it does, or memory is
 * lacking. */
static bool word_continue(struct wp_state *state, bool last)
{
    const uint32_t end = first_start(state);
    if (!bytes_append(&state->word, state->block, end)) {
        state->pieces->lacks_memory = true;
        return false;
    }
    const bool ends = end < state->made || !state->open || last;
    block_shift(state, end);
    if (!ends)
        return false;
    uint64_t written = 0;
    struct tokmap_error unused; /* pieces_check() reports it again */
    if (bpe_encode_piece(state->pieces, state->word.bytes, state->word.count, ids_end(state->out), &written, &unused))
        state->pieces->lacks_memory = true;
    state->out->count += written;
    state->word.count = 0;
    return true;
}

/* Encodes the words of the block that are complete; all of them if the text ends here. */
static void block_encode(struct wp_state *state, bool last)
{
    uint64_t *starts = state->pieces->chunk.starts;
    if (state->word.count && !word_continue(state, last))
        return;
    const uint32_t end = last || !state->open ? state->made : last_start(state);
    if (!end && state->made) { /* one word, which continues */
        starts[0] = 0;
        (void)word_continue(state, false);
        return;
    }
    if (end < state->made)
        starts[end / 64] &= ~((uint64_t)1 << (end % 64));
    words_encode(state, end);
    memset(starts, 0, (state->made / 64 + 1) * sizeof *starts);
    memmove(state->block, state->block + end, state->made - end);
    mark_shift(state, end);
    state->made -= end;
    starts[0] = state->made != 0;
}

/* ---- text to words ---- */

size_t wp_ascii_scalar(const struct wp_characters *characters, const uint8_t *text, size_t count,
                       struct wp_words *words)
{
    uint32_t made = 0, open = words->open;
    uint64_t starts = 0;
    size_t at = 0;
    for (count = min64(count, 64); at < count && text[at] < 0x80; at++) {
        const uint32_t is = characters->ascii_is[text[at]], kept = is & 1, alone = is >> 1 & 1, dropped = is >> 2;
        words->into[made] = characters->ascii_put[text[at]];
        starts |= (uint64_t)(kept & (alone | (open ^ 1))) << (made & 63);
        made += kept;
        open = (open & dropped) | (kept & (alone ^ 1));
    }
    words->made = made;
    words->starts = starts;
    words->open = open;
    return at;
}

/* Appends a character to the block. alone: as a word of its own. */
static inline void put(struct wp_state *state, uint32_t code, bool alone)
{
    const uint32_t at = state->made;
    state->pieces->chunk.starts[at / 64] |= (uint64_t)(alone || !state->open) << (at % 64);
    state->made += (uint32_t)code_point_put(state->block + at, code);
    state->open = !alone;
}

static void put_mark(struct wp_state *state, uint32_t code)
{
    const uint8_t class = nfc_kinds[nfc_blocks[nfc_first[code / 64]][code % 64]].combining_class;
    state->unsorted |= state->mark_end == state->made + 1 && state->mark_class > class;
    put(state, code, false);
    state->mark_end = state->made + 1;
    state->mark_class = class;
}

static void put_syllable(struct wp_state *state, uint32_t code)
{
    const uint32_t index = code - 0xAC00;
    put(state, 0x1100 + index / (21 * 28), false);
    put(state, 0x1161 + index / 28 % 21, false);
    if (index % 28)
        put(state, 0x11A7 + index % 28, false);
}

/* Appends what becomes of a character. */
static void put_entry(struct wp_state *state, uint32_t entry, uint32_t code)
{
    const uint32_t rest = entry >> WP_ACTION_BITS;
    switch (entry & ((1u << WP_ACTION_BITS) - 1)) {
    case WP_KEEP:
        put(state, code, false);
        break;
    case WP_DROP:
        break;
    case WP_SPACE:
        state->open = false;
        break;
    case WP_ALONE:
        put(state, code, true);
        break;
    case WP_PUT:
        put(state, rest, false);
        break;
    case WP_PUT_ALONE:
        put(state, rest, true);
        break;
    case WP_MARK:
        put_mark(state, rest);
        break;
    case WP_SYLLABLE:
        put_syllable(state, code);
        break;
    case WP_SEVERAL:
    default:
        for (const uint32_t *list = state->characters->lists + rest; *list != WP_LIST_END; list++)
            put_entry(state, *list, 0);
    }
}

/* Appends ASCII characters to the block. Returns how many. */
static inline size_t put_ascii(struct wp_state *state, const uint8_t *text, size_t count)
{
    uint64_t *starts = state->pieces->chunk.starts + state->made / 64;
    const uint32_t bit = state->made % 64;
    struct wp_words words = {.into = state->block + state->made, .open = state->open};
    const size_t read = state->ascii(state->characters, text, count, &words);
    starts[0] |= words.starts << bit;
    starts[1] |= words.starts >> 1 >> (63 - bit);
    state->made += words.made;
    state->open = words.open;
    return read;
}

/* Appends characters of several bytes to the block, up to one of ASCII that others of ASCII follow. Returns how many
 * bytes have been read. */
static inline size_t put_wide(struct wp_state *state, const uint8_t *text, size_t count)
{
    size_t at = 0, bytes;
    while (at < count && state->made < BLOCK_FULL) {
        if (text[at] < 0x80 && (at + 1 == count || text[at + 1] < 0x80))
            break;
        const uint32_t code = code_point_get(text + at, &bytes);
        const uint32_t entry = wp_character(state->characters, code);
        if (entry == WP_KEEP || entry == WP_ALONE) {
            const uint32_t to = state->made;
            for (size_t i = 0; i < bytes; i++)
                state->block[to + i] = text[at + i];
            state->pieces->chunk.starts[to / 64] |= (uint64_t)(entry == WP_ALONE || !state->open) << (to % 64);
            state->made = to + (uint32_t)bytes;
            state->open = entry == WP_KEEP;
        } else {
            put_entry(state, entry, code);
        }
        at += bytes;
    }
    return at;
}

enum tokmap_status wp_encode_text(struct wp_state *state, const uint8_t *text, uint64_t count, struct ids_out *out,
                                  bool *done, struct tokmap_error *error)
{
    const uint64_t before = out->count;
    state->out = out;
    state->made = state->mark_end = 0;
    state->open = state->unsorted = false;
    state->word.count = 0;
    state->pieces->largest = 0;
    memset(state->pieces->chunk.starts, 0, sizeof state->pieces->chunk.starts);
    for (uint64_t at = 0; at < count && !state->unsorted && !state->pieces->lacks_memory;) {
        if (state->made >= BLOCK_FULL) {
            block_encode(state, false);
            if (bpe_scratch_stops(&state->pieces->scratch))
                break;
        }
        const size_t left = (size_t)(count - at);
        const bool ascii = text[at] < 0x80 && (left == 1 || text[at + 1] < 0x80);
        at += ascii ? put_ascii(state, text + at, left) : put_wide(state, text + at, left);
    }
    *done = !state->unsorted;
    if (!*done) {
        out->count = before;
        bytes_trim(&state->word);
        return TOKMAP_OK;
    }
    block_encode(state, true);
    bytes_trim(&state->word);
    return pieces_check(state, count, out, error);
}

/* ---- the state ---- */

enum tokmap_status wp_state_new(struct wp_state **out, const struct wp_model *model,
                                const struct wp_characters *characters, enum cpu_variant variant,
                                struct tokmap_error *error)
{
    struct wp_state *state = calloc(1, sizeof *state);
    *out = NULL;
    if (!state)
        return error_set_memory(error, "the state of a tokenizer", sizeof *state);
    state->model = model;
    state->characters = characters;
    state->ascii = wp_ascii_scalar;
#if defined(__x86_64__)
    if (variant == CPU_VBMI)
        state->ascii = wp_ascii_vbmi;
#endif
    const enum tokmap_status status = bpe_state_new(&state->pieces, &model->head, variant, error);
    if (status)
        free(state);
    else
        *out = state;
    return status;
}

void wp_state_free(struct wp_state *state)
{
    if (!state)
        return;
    bpe_state_free(state->pieces);
    bytes_free(&state->word);
    free(state);
}

/* ---- the engine ---- */

struct wp_engine {
    struct pieces_engine base;
    struct wp_model *model;
    struct wp_characters *characters; /* or NULL */
};

static void engine_free(struct text_engine *engine)
{
    struct wp_engine *own = (struct wp_engine *)engine;
    wp_model_free(own->model);
    wp_characters_free(own->characters);
    free(own);
}

static void engine_state_free(struct text_engine_state *state)
{
    wp_state_free((struct wp_state *)state);
}

static enum tokmap_status engine_state_new(struct text_engine_state **state, const struct text_engine *engine,
                                           struct tokmap_error *error)
{
    const struct wp_engine *own = (const struct wp_engine *)engine;
    return wp_state_new((struct wp_state **)state, own->model, own->characters, cpu_variant_best(), error);
}

static enum tokmap_status engine_piece(struct text_engine_state *state, const uint8_t *bytes, uint64_t count,
                                       struct ids_out *out, struct tokmap_error *error)
{
    return count ? wp_encode_word((struct wp_state *)state, bytes, count, out, error) : TOKMAP_OK;
}

static enum tokmap_status engine_raw(struct text_engine_state *state, const uint8_t *text, uint64_t count,
                                     struct ids_out *out, bool *done, struct tokmap_error *error)
{
    return wp_encode_text((struct wp_state *)state, text, count, out, done, error);
}

/* Walks along a word. The unknown token stands for all of it, and any other for its text, without the prefix where it
 * continues the word. */
static bool engine_walk(const struct text_engine *engine, const uint8_t *text, uint64_t count, enum engine_place place,
                        struct id_walk *walk)
{
    const struct wp_model *model = ((const struct wp_engine *)engine)->model;
    if (count && walk->at < walk->count && id_walk_next(walk) == model->unknown &&
        wp_is_unknown(model, text, (size_t)count)) {
        walk->found(walk->user, walk->at++, 0, count);
        return true;
    }
    for (uint64_t at = 0; at < count; walk->at++) {
        const uint8_t *bytes;
        uint32_t length;
        if (walk->at == walk->count || !pieces_id_bytes(engine, id_walk_next(walk), &bytes, &length))
            return false;
        const uint32_t skip = at ? model->prefix_bytes : 0;
        if (length <= skip || length - skip > count - at || memcmp(text + at, bytes + skip, length - skip) != 0)
            return false;
        walk->found(walk->user, walk->at, at, at + length - skip);
        at += length - skip;
    }
    return true;
}

static const struct text_engine_kind engine_kind = {.free = engine_free,
                                                    .state_new = engine_state_new,
                                                    .state_free = engine_state_free,
                                                    .state_stop = pieces_state_stop,
                                                    .encode_piece = engine_piece,
                                                    .encode_raw = engine_raw,
                                                    .id_bytes = pieces_id_bytes,
                                                    .walk = engine_walk};

enum tokmap_status wp_engine_new(struct text_engine **engine, const struct wp_source *source,
                                 const struct wp_rules *rules, struct tokmap_error *error)
{
    struct wp_engine *made = calloc(1, sizeof *made);
    *engine = NULL;
    if (!made)
        return error_set_memory(error, "a tokenizer", sizeof *made);
    enum tokmap_status status = wp_model_new(&made->model, source, error);
    made->base = (struct pieces_engine){{&engine_kind}, &made->model->head};
    if (!status && rules)
        status = wp_characters_new(&made->characters, *rules, error);
    if (status)
        engine_free(&made->base.head);
    else
        *engine = &made->base.head;
    return status;
}
