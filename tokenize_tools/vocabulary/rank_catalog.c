/* rank_catalog.c - the fingerprints are those of the files exactly as they were published. */
#include "rank_catalog.h"

#include <string.h>

#define SPECIAL(text, id) {text, sizeof(text) - 1, id}

static const struct rank_catalog_token gpt2_specials[] = {SPECIAL("<|endoftext|>", 50256)};
static const struct rank_catalog_token cl100k_specials[] = {
    SPECIAL("<|endoftext|>", 100257),  SPECIAL("<|fim_prefix|>", 100258),  SPECIAL("<|fim_middle|>", 100259),
    SPECIAL("<|fim_suffix|>", 100260), SPECIAL("<|endofprompt|>", 100276),
};
static const struct rank_catalog_token o200k_specials[] = {
    SPECIAL("<|endoftext|>", 199999),
    SPECIAL("<|endofprompt|>", 200018),
};
#define RESERVED(n) SPECIAL("<|reserved_special_token_" #n "|>", 128010 + n)
#define RESERVED_TEN(n) \
    RESERVED(n##0), RESERVED(n##1), RESERVED(n##2), RESERVED(n##3), RESERVED(n##4), RESERVED(n##5), RESERVED(n##6), \
        RESERVED(n##7), RESERVED(n##8), RESERVED(n##9)
static const struct rank_catalog_token llama3_specials[] = {
    SPECIAL("<|begin_of_text|>", 128000),
    SPECIAL("<|end_of_text|>", 128001),
    SPECIAL("<|reserved_special_token_0|>", 128002),
    SPECIAL("<|reserved_special_token_1|>", 128003),
    SPECIAL("<|finetune_right_pad_id|>", 128004),
    SPECIAL("<|step_id|>", 128005),
    SPECIAL("<|start_header_id|>", 128006),
    SPECIAL("<|end_header_id|>", 128007),
    SPECIAL("<|eom_id|>", 128008),
    SPECIAL("<|eot_id|>", 128009),
    SPECIAL("<|python_tag|>", 128010),
    SPECIAL("<|image|>", 128011),
    RESERVED(2), RESERVED(3), RESERVED(4), RESERVED(5), RESERVED(6), RESERVED(7), RESERVED(8), RESERVED(9),
    RESERVED_TEN(1), RESERVED_TEN(2), RESERVED_TEN(3), RESERVED_TEN(4), RESERVED_TEN(5), RESERVED_TEN(6),
    RESERVED_TEN(7), RESERVED_TEN(8), RESERVED_TEN(9), RESERVED_TEN(10), RESERVED_TEN(11), RESERVED_TEN(12),
    RESERVED_TEN(13), RESERVED_TEN(14), RESERVED_TEN(15), RESERVED_TEN(16), RESERVED_TEN(17), RESERVED_TEN(18),
    RESERVED_TEN(19), RESERVED_TEN(20), RESERVED_TEN(21), RESERVED_TEN(22), RESERVED_TEN(23),
    RESERVED(240), RESERVED(241), RESERVED(242), RESERVED(243), RESERVED(244), RESERVED(245),
};

#define ENTRY(name, specials, eod, bos) {name, specials, sizeof specials / sizeof specials[0], eod, bos}

static const struct {
    uint8_t fingerprint[16];
    struct rank_catalog_entry entry;
} catalog[] = {
    {{0xaa, 0x5e, 0xf6, 0x9a, 0x71, 0x6d, 0x8a, 0x56, 0x3c, 0xb2, 0xfb, 0xe9, 0x59, 0x39, 0xbd, 0x2d},
     ENTRY("r50k_base", gpt2_specials, "<|endoftext|>", NULL)},
    {{0x1b, 0xfe, 0x2e, 0xad, 0xd4, 0x9e, 0x96, 0x88, 0xf2, 0xd3, 0xfa, 0x62, 0x56, 0x5e, 0x6e, 0x17},
     ENTRY("p50k_base", gpt2_specials, "<|endoftext|>", NULL)},
    {{0x7c, 0xdb, 0x78, 0x1b, 0xb5, 0xd5, 0x96, 0x57, 0xaa, 0x5d, 0x7b, 0xf3, 0x89, 0x00, 0x64, 0x1a},
     ENTRY("cl100k_base", cl100k_specials, "<|endoftext|>", NULL)},
    {{0xde, 0xe5, 0xd4, 0xce, 0xd0, 0x9a, 0x2d, 0xb6, 0x72, 0xa0, 0x95, 0xe8, 0x2c, 0xa1, 0x09, 0xd6},
     ENTRY("o200k_base", o200k_specials, "<|endoftext|>", NULL)},
    {{0x22, 0xe6, 0xee, 0x98, 0x36, 0x4f, 0x2a, 0x1f, 0xe7, 0x33, 0x97, 0x03, 0xbb, 0x9e, 0x9d, 0x7b},
     ENTRY("llama3", llama3_specials, "<|end_of_text|>", "<|begin_of_text|>")},
};

const struct rank_catalog_entry *rank_catalog_find(const uint8_t fingerprint[16])
{
    for (size_t i = 0; i < sizeof catalog / sizeof catalog[0]; i++)
        if (!memcmp(catalog[i].fingerprint, fingerprint, 16))
            return &catalog[i].entry;
    return NULL;
}
