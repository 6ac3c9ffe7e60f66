/* SPDX-License-Identifier: MIT */
/* scanner_classify_neon.c - the same as scanner_classify.c with NEON, which every aarch64 processor has: four vectors
 * of 16 bytes per step. */
#include "scanner_classify.h"

#if defined(__aarch64__)

#include <arm_neon.h>
#include <string.h>

/* Looks up 16 bytes in a table of 128 entries; bytes above 127 give 0. vqtbl4q gives 0 for indexes outside of the lower
 * half, and vqtbx4q leaves these lanes as they are if they are outside of the upper half, too. */
static inline uint8x16_t look_up(uint8x16x4_t low, uint8x16x4_t high, uint8x16_t bytes)
{
    return vqtbx4q_u8(vqtbl4q_u8(low, bytes), high, vsubq_u8(bytes, vdupq_n_u8(64)));
}

/* Collects 64 bytes, each 0 or 255, into the bits of a word. */
static inline uint64_t gather(const uint8x16_t set[4])
{
    static const uint8_t numbers[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x16_t bit = vld1q_u8(numbers);
    const uint8x16_t front = vpaddq_u8(vandq_u8(set[0], bit), vandq_u8(set[1], bit));
    const uint8x16_t back = vpaddq_u8(vandq_u8(set[2], bit), vandq_u8(set[3], bit));
    const uint8x16_t all = vpaddq_u8(front, back);
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(all, all)), 0);
}

#define GATHER(condition)                                                                                              \
    ({                                                                                                                 \
        uint8x16_t set[4];                                                                                             \
        for (int i = 0; i < 4; i++)                                                                                    \
            set[i] = (condition);                                                                                      \
        gather(set);                                                                                                   \
    })

void scan_classify_neon(struct scan_masks *masks, const struct scan_tables *tables, const uint8_t *text, size_t count,
                        size_t readable)
{
    const uint8x16x4_t low = vld1q_u8_x4(tables->ascii), high = vld1q_u8_x4(tables->ascii + 64);
    uint8_t carry = 0;
    for (size_t at = 0, word = 0; at < count; at += 64, word++) {
        uint8_t padded[SCAN_BLOCK];
        const uint8_t *block = scan_block_at(text + at, readable - at, padded);
        uint8x16_t bytes[4], bits[4];
        for (int i = 0; i < 4; i++) {
            bytes[i] = vld1q_u8(block + 16 * i);
            bits[i] = look_up(low, high, bytes[i]);
        }
        const uint64_t wide = GATHER(vcgeq_u8(bytes[i], vdupq_n_u8(0x80)));
        const uint64_t start = GATHER(vcgtq_s8(vreinterpretq_s8_u8(bytes[i]), vdupq_n_s8(-65)));
        if (wide) {
            uint8_t found[68];
            memset(found, carry, sizeof found); /* the character that the previous block ends with */
            scan_wide_bits(found, tables, block, wide & start);
            for (int i = 0; i < 4; i++)
                bits[i] = vbslq_u8(vcgeq_u8(bytes[i], vdupq_n_u8(0x80)), vld1q_u8(found + 16 * i), bits[i]);
            carry = wide >> 63 ? found[63] : 0;
        }
        const uint64_t quote = GATHER(vceqq_u8(bytes[i], vdupq_n_u8('\'')));
        masks->wide_words[word / 64] |= (uint64_t)(wide != 0) << (word % 64);
        SCAN_ROW(masks->start)[word] = start;
        SCAN_ROW(masks->tall)[word] = GATHER(vcgeq_u8(bytes[i], vdupq_n_u8(0xE0)));
        SCAN_ROW(masks->blank)[word] = GATHER(vceqq_u8(bytes[i], vdupq_n_u8(' ')));
        SCAN_ROW(masks->quote)[word] = quote;
        masks->any_quote |= quote;
        for (int kind = 0; kind < SCAN_KINDS; kind++) {
            const uint64_t mask = GATHER(vtstq_u8(bits[i], vdupq_n_u8((uint8_t)(1 << kind))));
            SCAN_ROW(masks->kind[kind])[word] = mask;
            masks->any[kind] |= mask;
        }
    }
}

#endif
