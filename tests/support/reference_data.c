/* SPDX-License-Identifier: MIT */
/* reference_data.c - see reference_data.h. */
#include "reference_data.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool has(const char *folder, const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (file)
        fclose(file);
    return file != NULL;
}

const char *reference_data(void)
{
    static const char packed[] = "../shared/data";
    static char unpacked[512];
    char command[2048];
    const char *given = getenv("TOKMAP_DATA"), *build = getenv("BUILD");
    if (given && *given) {
        if (has(given, "golden/files.tsv"))
            return given;
        printf("TOKMAP_DATA=%s does not contain golden/files.tsv\n", given);
        return NULL;
    }
    snprintf(unpacked, sizeof unpacked, "%s/reference_data", build ? build : "build");
    /* A folder of an older tree lacks the second archives. */
    if (has(unpacked, "complete") && (has(unpacked, "golden2/index.tsv") || !has(packed, "golden2.tar.zst")))
        return unpacked;
    if (!has(packed, "golden.tar.zst")) {
        printf("there is no reference data: TOKMAP_DATA is not set, and %s does not exist\n", packed);
        return NULL;
    }
    snprintf(command, sizeof command,
             "d='%s' && mkdir -p \"$d.$$\" && for i in vocab golden corpus vocab2 golden2; do f=%s/$i.tar.zst; "
             "case $i in *2) [ -e $f ] || continue; esac; zstd -qdc $f | tar -xf - -C \"$d.$$\" || exit 1; done && "
             "touch \"$d.$$/complete\" && rm -rf \"$d\" && mv \"$d.$$\" \"$d\"",
             unpacked, packed);
    if (system(command) || !has(unpacked, "golden/files.tsv")) {
        printf("the reference data could not be unpacked with zstd and tar\n");
        return NULL;
    }
    return unpacked;
}

char *reference_read(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    char *content = NULL;
    long end = 0;
    if (!fseek(file, 0, SEEK_END) && (end = ftell(file)) >= 0 && !fseek(file, 0, SEEK_SET))
        content = malloc((size_t)end + 1);
    if (content) {
        *bytes = fread(content, 1, (size_t)end, file);
        content[*bytes] = 0;
    }
    fclose(file);
    return content;
}

/* ---- SHA-256 (FIPS 180-4) ---- */

static uint32_t right(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

/* Returns the first 32 bits of the fraction of the square root (power 2) or cube root of n, by binary search. */
static uint32_t root_bits(uint32_t n, int power)
{
    unsigned __int128 low = 0, high = (unsigned __int128)1 << 36;
    while (high - low > 1) {
        const unsigned __int128 middle = (low + high) / 2;
        const bool below = power == 2 ? middle * middle <= (unsigned __int128)n << 64
                                      : middle * middle * middle <= (unsigned __int128)n << 96;
        if (below)
            low = middle;
        else
            high = middle;
    }
    return (uint32_t)low;
}

static void sha256_block(uint32_t hash[8], const uint32_t constants[64], const uint8_t *block)
{
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 |
               block[4 * i + 3];
    for (int i = 16; i < 64; i++)
        w[i] = w[i - 16] + (right(w[i - 15], 7) ^ right(w[i - 15], 18) ^ w[i - 15] >> 3) + w[i - 7] +
               (right(w[i - 2], 17) ^ right(w[i - 2], 19) ^ w[i - 2] >> 10);
    memcpy(v, hash, sizeof v);
    for (int i = 0; i < 64; i++) {
        const uint32_t a = v[7] + (right(v[4], 6) ^ right(v[4], 11) ^ right(v[4], 25)) +
                           ((v[4] & v[5]) ^ (~v[4] & v[6])) + constants[i] + w[i];
        const uint32_t b =
            (right(v[0], 2) ^ right(v[0], 13) ^ right(v[0], 22)) + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += a;
        v[0] = a + b;
    }
    for (int i = 0; i < 8; i++)
        hash[i] += v[i];
}

void sha256_hex(const void *bytes, size_t count, char into[65])
{
    uint32_t constants[64], hash[8];
    for (uint32_t n = 2, found = 0; found < 64; n++) {
        bool prime = true;
        for (uint32_t d = 2; d * d <= n && prime; d++)
            prime = n % d != 0;
        if (!prime)
            continue;
        if (found < 8)
            hash[found] = root_bits(n, 2);
        constants[found++] = root_bits(n, 3);
    }
    const uint8_t *at = bytes;
    size_t left = count;
    for (; left >= 64; left -= 64, at += 64)
        sha256_block(hash, constants, at);
    uint8_t last[128] = {0};
    const size_t blocks = left + 9 > 64 ? 2 : 1;
    memcpy(last, at, left);
    last[left] = 0x80;
    for (int i = 0; i < 8; i++)
        last[64 * blocks - 1 - (size_t)i] = (uint8_t)((uint64_t)count * 8 >> (8 * i));
    for (size_t i = 0; i < blocks; i++)
        sha256_block(hash, constants, last + 64 * i);
    for (int i = 0; i < 8; i++)
        snprintf(into + 8 * i, 9, "%08x", hash[i]);
}

/* ---- lines ---- */

static uint32_t hex4(const char *at)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++)
        value = value << 4 | (uint32_t)(at[i] <= '9' ? at[i] - '0' : (at[i] | 0x20) - 'a' + 10);
    return value;
}

static char *put_utf8(char *into, uint32_t c)
{
    if (c < 0x80) {
        *into++ = (char)c;
    } else if (c < 0x800) {
        *into++ = (char)(0xC0 | c >> 6);
        *into++ = (char)(0x80 | (c & 63));
    } else if (c < 0x10000) {
        *into++ = (char)(0xE0 | c >> 12);
        *into++ = (char)(0x80 | (c >> 6 & 63));
        *into++ = (char)(0x80 | (c & 63));
    } else {
        *into++ = (char)(0xF0 | c >> 18);
        *into++ = (char)(0x80 | (c >> 12 & 63));
        *into++ = (char)(0x80 | (c >> 6 & 63));
        *into++ = (char)(0x80 | (c & 63));
    }
    return into;
}

/* Decodes a JSON string that begins after its opening quote, and sets *end to the byte after the closing quote. Returns
 * NULL if there is no closing quote. The caller frees the result. */
static char *string_content(const char *at, size_t *bytes, const char **end)
{
    char *content = malloc(strlen(at) + 1), *into = content;
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    while (content && *at && *at != '"') {
        if (*at != '\\') {
            *into++ = *at++;
            continue;
        }
        const char *escape = strchr(from, at[1]);
        if (at[1] == 'u' && strlen(at) >= 6) {
            uint32_t c = hex4(at + 2);
            at += 6;
            if (c >= 0xD800 && c < 0xDC00 && at[0] == '\\' && at[1] == 'u' && strlen(at) >= 6 &&
                hex4(at + 2) >= 0xDC00 && hex4(at + 2) < 0xE000) {
                c = 0x10000 + ((c - 0xD800) << 10) + (hex4(at + 2) - 0xDC00);
                at += 6;
            }
            into = put_utf8(into, c >= 0xD800 && c < 0xE000 ? 0xFFFD : c);
        } else {
            *into++ = escape && at[1] ? to[escape - from] : at[1];
            at += 2;
        }
    }
    if (content)
        *into = 0; /* for strstr(); the text itself may contain zeros */
    *bytes = content ? (size_t)(into - content) : 0;
    *end = at + 1;
    if (content && *at != '"') {
        free(content);
        content = NULL;
    }
    return content;
}

int golden_text(const char *line, char **text, size_t *bytes)
{
    const char *at = strstr(line, "\"text\":"), *end;
    *text = at ? string_content(at + 7 + strspn(at + 7, " ") + 1, bytes, &end) : NULL;
    return *text != NULL;
}

int golden_ids(const char *line, const char *name, uint32_t **ids, size_t *count)
{
    char key[64];
    snprintf(key, sizeof key, "\"%s\":", name);
    /* The text comes first, and every quote in it is escaped. */
    const char *list = strstr(line, key);
    list = list ? list + strlen(key) + strspn(list + strlen(key), " ") : NULL;
    *count = 0;
    *ids = list && *list == '[' ? malloc((strlen(list) + 1) * sizeof **ids) : NULL;
    if (!*ids)
        return 0;
    for (list++; *list && *list != ']';) {
        char *behind;
        const unsigned long id = strtoul(list, &behind, 10);
        if (behind == list) {
            list++;
            continue;
        }
        (*ids)[(*count)++] = (uint32_t)id;
        list = behind;
    }
    return 1;
}

int golden_line(const char *line, char **text, size_t *text_bytes, uint32_t **ids, size_t *id_count)
{
    if (!golden_text(line, text, text_bytes))
        return 0;
    if (golden_ids(line, "ids", ids, id_count))
        return 1;
    free(*text);
    return 0;
}
