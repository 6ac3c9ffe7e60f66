/* SPDX-License-Identifier: MIT */
#include "utf8.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "code_point.h"
#include "common/bytes.h"
#include "common/cpu.h"

size_t utf8_step(const char *bytes, size_t count, bool *valid)
{
    assert(count > 0);
    const uint8_t *at = (const uint8_t *)bytes;
    const uint8_t lead = at[0];
    *valid = lead < 0x80;
    if (lead < 0xc2 || lead > 0xf4)
        return 1;
    /* The range of the second byte depends on the first one; that of the others does not. */
    const size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    const uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    const uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (count < 2 || at[1] < low || at[1] > high)
        return 1;
    for (size_t i = 2; i < length; i++)
        if (i >= count || (at[i] & 0xc0) != 0x80)
            return i;
    *valid = true;
    return length;
}

static size_t valid_prefix_scalar(const char *bytes, size_t count)
{
    size_t at = 0;
    while (at < count) {
        if (count - at >= 16 && !((load64(bytes + at) | load64(bytes + at + 8)) & UINT64_C(0x8080808080808080))) {
            at += 16;
            continue;
        }
        bool valid;
        const size_t length = utf8_step(bytes + at, count - at, &valid);
        if (!valid)
            return at;
        at += length;
    }
    return count;
}

size_t utf8_valid_prefix(const char *bytes, size_t count)
{
#if defined(__x86_64__)
    /* This says only whether all is valid. Invalid text is rare, so the position is found by a second pass. */
    if (count >= 64 && cpu_has(CPU_AVX2) && utf8_valid_avx2(bytes, count))
        return count;
#endif
    return valid_prefix_scalar(bytes, count);
}

size_t utf8_cut(const char *bytes, size_t count)
{
    for (size_t back = 1; back <= 3 && back <= count; back++) {
        const uint8_t byte = (uint8_t)bytes[count - back];
        if (byte >= 0xc0) {
            const size_t length = byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
            return length > back ? count - back : count;
        }
        if (byte < 0x80)
            break;
    }
    return count;
}

size_t utf8_replaced_bytes(const char *bytes, size_t count, size_t *replaced)
{
    size_t total = 0, found = 0;
    for (size_t at = 0; at < count;) {
        const size_t good = valid_prefix_scalar(bytes + at, count - at);
        total += good;
        at += good;
        if (at == count)
            break;
        bool valid;
        at += utf8_step(bytes + at, count - at, &valid);
        total += UTF8_REPLACEMENT_BYTES;
        found++;
    }
    *replaced = found;
    return total;
}

void utf8_replace(char *into, const char *bytes, size_t count)
{
    for (size_t at = 0; at < count;) {
        bool valid;
        const size_t length = utf8_step(bytes + at, count - at, &valid);
        const size_t written = valid ? length : UTF8_REPLACEMENT_BYTES;
        memcpy(into, valid ? bytes + at : UTF8_REPLACEMENT, written);
        into += written;
        at += length;
    }
}

size_t utf8_put(char *into, unsigned code)
{
    assert(code < 0x110000 && (code < 0xd800 || code >= 0xe000));
    return code_point_put((uint8_t *)into, code);
}
