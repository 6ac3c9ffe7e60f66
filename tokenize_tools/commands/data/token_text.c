/* token_text.c - see token_text.h. */
#include "token_text.h"

#include <stdbool.h>

#include "common/visible.h"

void token_quoted(const uint8_t *bytes, uint32_t count, FILE *file)
{
    (void)fputc('"', file);
    for (uint32_t at = 0, length; at < count; at += length) {
        bool plain;
        length = (uint32_t)visible_step((const char *)bytes + at, count - at, &plain);
        const uint8_t byte = bytes[at];
        if (byte == '\n' || byte == '\t' || byte == '\r')
            (void)fprintf(file, "\\%c", byte == '\n' ? 'n' : byte == '\t' ? 't' : 'r');
        else if (byte == '"' || byte == '\\')
            (void)fprintf(file, "\\%c", byte);
        else if (plain)
            (void)fwrite(bytes + at, 1, length, file);
        else
            for (uint32_t i = 0; i < length; i++)
                (void)fprintf(file, "\\x%02x", bytes[at + i]);
    }
    (void)fputc('"', file);
}
