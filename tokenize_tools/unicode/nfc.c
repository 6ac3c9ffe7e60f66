/*
 * nfc.c - most text is NFC, so what is looked for is a run that is not: a character that nothing before it can change (kind
 * 0), then marks and others up to the next such. A run whose marks are in order and stay as they are is passed over; of
 * any other the NFC is made and compared.
 */
#include "nfc.h"

#include "common/bytes.h"
#include "text/code_point.h"
#include "nfc_tables.h"

#define HANGUL_FIRST 0xAC00u
#define HANGUL_COUNT 11172u
#define LEAD_FIRST 0x1100u
#define VOWEL_FIRST 0x1161u
#define TAIL_FIRST 0x11A7u /* one before the first: tail 0 is none */
#define LEADS 19u
#define VOWELS 21u
#define TAILS 28u

void nfc_scratch_trim(struct nfc_scratch *scratch)
{
    bytes_trim(&scratch->codes);
    bytes_trim(&scratch->sorted);
    bytes_trim(&scratch->made);
}

void nfc_scratch_free(struct nfc_scratch *scratch)
{
    bytes_free(&scratch->codes);
    bytes_free(&scratch->sorted);
    bytes_free(&scratch->made);
}

static struct nfc_kind kind_of(uint32_t code)
{
    return nfc_kinds[nfc_blocks[nfc_first[code >> 6]][code & 63]];
}

static bool code_add(struct nfc_scratch *scratch, uint32_t code)
{
    const uint64_t entry = (uint64_t)kind_of(code).rank << 32 | code;
    return bytes_append(&scratch->codes, &entry, sizeof entry);
}

static bool decompose(struct nfc_scratch *scratch, uint32_t code)
{
    if (code - HANGUL_FIRST < HANGUL_COUNT) {
        const uint32_t index = code - HANGUL_FIRST;
        return code_add(scratch, LEAD_FIRST + index / (VOWELS * TAILS)) &&
               code_add(scratch, VOWEL_FIRST + index / TAILS % VOWELS) &&
               (index % TAILS == 0 || code_add(scratch, TAIL_FIRST + index % TAILS));
    }
    uint32_t low = 0, high = NFC_PARTED;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (nfc_parted[middle] < code)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == NFC_PARTED || nfc_parted[low] != code)
        return code_add(scratch, code);
    for (uint32_t i = nfc_part_offsets[low]; i < nfc_part_offsets[low + 1]; i++)
        if (!code_add(scratch, nfc_parts[i]))
            return false;
    return true;
}

/* Two that are one, or 0. */
static uint32_t compose(uint32_t first, uint32_t second)
{
    if (first - LEAD_FIRST < LEADS && second - VOWEL_FIRST < VOWELS)
        return HANGUL_FIRST + ((first - LEAD_FIRST) * VOWELS + (second - VOWEL_FIRST)) * TAILS;
    if (first - HANGUL_FIRST < HANGUL_COUNT && (first - HANGUL_FIRST) % TAILS == 0 && second > TAIL_FIRST &&
        second < TAIL_FIRST + TAILS)
        return first + (second - TAIL_FIRST);
    uint32_t low = 0, high = NFC_PAIRS;
    const uint64_t wanted = (uint64_t)first << 32 | second;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (((uint64_t)nfc_pairs[middle].first << 32 | nfc_pairs[middle].second) < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low < NFC_PAIRS && nfc_pairs[low].first == first && nfc_pairs[low].second == second ? nfc_pairs[low].whole : 0;
}

/* Orders `count` marks by class, those of a class as they stand: few by insertion, many by counting. */
static bool marks_sort(struct nfc_scratch *scratch, uint64_t *codes, size_t count)
{
    if (count <= 32) {
        for (size_t i = 1; i < count; i++) {
            const uint64_t moving = codes[i];
            size_t at = i;
            for (; at && codes[at - 1] >> 32 > moving >> 32; at--)
                codes[at] = codes[at - 1];
            codes[at] = moving;
        }
        return true;
    }
    size_t places[256] = {0}, next = 0;
    scratch->sorted.count = 0;
    if (!bytes_reserve(&scratch->sorted, count * sizeof *codes))
        return false;
    uint64_t *sorted = (uint64_t *)(void *)scratch->sorted.bytes;
    for (size_t i = 0; i < count; i++)
        places[codes[i] >> 32]++;
    for (size_t rank = 0; rank < 256; rank++) {
        const size_t here = places[rank];
        places[rank] = next;
        next += here;
    }
    for (size_t i = 0; i < count; i++)
        sorted[places[codes[i] >> 32]++] = codes[i];
    memcpy(codes, sorted, count * sizeof *codes);
    return true;
}

static bool run_order(struct nfc_scratch *scratch, uint64_t *codes, size_t count)
{
    for (size_t at = 0; at < count;) {
        size_t end = at;
        while (end < count && codes[end] >> 32)
            end++;
        if (!marks_sort(scratch, codes + at, end - at))
            return false;
        at = end + 1;
    }
    return true;
}

/* In place; returns how many are left. */
static size_t run_compose(uint64_t *codes, size_t count)
{
    size_t made = 0, starter = SIZE_MAX;
    uint32_t last = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t code = (uint32_t)codes[i], rank = (uint32_t)(codes[i] >> 32);
        if (starter != SIZE_MAX && (starter + 1 == made || last < rank)) {
            const uint32_t whole = compose((uint32_t)codes[starter], code);
            if (whole) {
                codes[starter] = whole;
                continue;
            }
        }
        if (!rank)
            starter = made;
        last = rank;
        codes[made++] = codes[i];
    }
    return made;
}

/* The NFC of a run into scratch->made. */
static bool run_normalize(struct nfc_scratch *scratch, const uint8_t *run, size_t count)
{
    scratch->codes.count = scratch->made.count = 0;
    for (size_t at = 0, bytes; at < count; at += bytes)
        if (!decompose(scratch, code_point_get(run + at, &bytes)))
            return false;
    uint64_t *codes = (uint64_t *)(void *)scratch->codes.bytes;
    size_t codes_count = scratch->codes.count / sizeof *codes;
    if (!run_order(scratch, codes, codes_count))
        return false;
    codes_count = run_compose(codes, codes_count);
    if (!bytes_reserve(&scratch->made, codes_count * 4))
        return false;
    for (size_t i = 0; i < codes_count; i++)
        scratch->made.count += code_point_put(scratch->made.bytes + scratch->made.count, (uint32_t)codes[i]);
    return true;
}

static uint8_t kind_number(uint32_t code)
{
    return nfc_blocks[nfc_first[code >> 6]][code & 63];
}

static inline bool is_ascii_32(const uint8_t *text)
{
    return !((load64(text) | load64(text + 8) | load64(text + 16) | load64(text + 24)) & UINT64_C(0x8080808080808080));
}

/* The first character from `at` on that is not of kind 0; *starter is where the one before it begins. */
static size_t next_unstable(const uint8_t *text, size_t at, size_t count, size_t *starter)
{
    size_t last = at;
    while (at < count) {
        const uint8_t lead = text[at];
        if (lead < 0x80) {
            while (count - at >= 64 && is_ascii_32(text + at) && is_ascii_32(text + at + 32))
                at += 64;
            while (at < count && text[at] < 0x80)
                at++;
            last = at - 1;
        } else if (lead < 0xE0) {
            if (nfc_masks[lead & 31] >> (text[at + 1] & 63) & 1)
                break;
            last = at;
            at += 2;
        } else if (lead < 0xF0) {
            if (nfc_masks[(lead & 15) << 6 | (text[at + 1] & 63)] >> (text[at + 2] & 63) & 1)
                break;
            last = at;
            at += 3;
        } else {
            size_t bytes;
            if (kind_number(code_point_get(text + at, &bytes)))
                break;
            last = at;
            at += 4;
        }
    }
    *starter = last;
    return at;
}

size_t nfc_find(struct nfc_scratch *scratch, const uint8_t *text, size_t at, size_t count, size_t *end)
{
    while (at < count) {
        size_t starter, bytes;
        at = next_unstable(text, at, count, &starter);
        if (at >= count)
            break;
        bool doubtful = false;
        uint32_t last = 0;
        uint8_t number = kind_number(code_point_get(text + at, &bytes));
        do {
            const struct nfc_kind kind = nfc_kinds[number];
            doubtful |= kind.stays != NFC_YES || (kind.rank && kind.rank < last);
            last = kind.rank;
            at += bytes;
            number = at < count && text[at] >= 0x80 ? kind_number(code_point_get(text + at, &bytes)) : 0;
        } while (number);
        if (!doubtful)
            continue;
        if (!run_normalize(scratch, text + starter, at - starter)) {
            scratch->lacks_memory = true;
            break;
        }
        if (scratch->made.count != at - starter || memcmp(scratch->made.bytes, text + starter, at - starter)) {
            *end = at;
            return starter;
        }
    }
    *end = count;
    return count;
}

bool nfc_append(struct nfc_scratch *scratch, struct bytes_buffer *into, const uint8_t *text, size_t count)
{
    size_t end;
    for (size_t at = 0; at < count; at = end) {
        const size_t first = nfc_find(scratch, text, at, count, &end);
        if (scratch->lacks_memory || !bytes_append(into, text + at, first - at) ||
            (first < count && !bytes_append(into, scratch->made.bytes, scratch->made.count)))
            return false;
    }
    return true;
}
