#include "visible_write.h"

#include "common/visible.h"

static void held_escape(struct visible *visible)
{
    char form[VISIBLE_MOST + 1];
    for (unsigned i = 0; i < visible->held_count; i++)
        (void)fwrite(form, 1, visible_form(form, visible->held[i]), visible->file);
    visible->held_count = 0;
    visible->wanted = 0;
}

static void ascii_write(struct visible *visible, unsigned char byte)
{
    char form[VISIBLE_MOST + 1];
    if ((byte >= 0x20 && byte < 0x7f) || (!visible->line && (byte == '\n' || byte == '\t')))
        (void)fputc(byte, visible->file);
    else
        (void)fwrite(form, 1, visible_form(form, byte), visible->file);
}

void visible_write(struct visible *visible, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        const unsigned char byte = (unsigned char)text[i];
        if (visible->wanted && (byte & 0xc0) != 0x80)
            held_escape(visible);
        if (byte < 0x80) {
            ascii_write(visible, byte);
            continue;
        }
        if (!visible->wanted)
            visible->wanted = byte >= 0xc2 && byte < 0xe0 ? 2 : byte >= 0xe0 && byte < 0xf0 ? 3 : byte < 0xf5 ? 4 : 0;
        /* Not a first byte: a continuation byte, or the 0xc0 and 0xc1 of overlong forms. */
        if (!visible->held_count && byte < 0xc2)
            visible->wanted = 0;
        visible->held[visible->held_count++] = byte;
        bool plain = false;
        if (!visible->wanted) {
            held_escape(visible);
        } else if (visible->held_count == visible->wanted) {
            if (visible_step((const char *)visible->held, visible->held_count, &plain) != visible->held_count || !plain)
                held_escape(visible);
            else
                (void)fwrite(visible->held, 1, visible->held_count, visible->file);
            visible->held_count = 0;
            visible->wanted = 0;
        }
    }
}

void visible_end(struct visible *visible)
{
    held_escape(visible);
}

void visible_name(FILE *file, const char *name, size_t bytes)
{
    struct visible visible = {.file = file, .line = true};
    visible_write(&visible, name, bytes);
    visible_end(&visible);
}
