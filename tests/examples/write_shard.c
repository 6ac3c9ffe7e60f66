/* SPDX-License-Identifier: MIT */
/*
 * write_shard.c - a dataset from a program that has a tokenizer of its own. Each line of standard input becomes a
 * document; the result is what `tokmap pack` would have written, and every tokmap command reads it.
 *
 *     cc write_shard.c $(pkg-config --cflags --libs tokmap) -o write_shard
 *     ./write_shard data/lines <lines.txt && tokmap info data/lines
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tokmap/pack.h>

static void fatal(const struct tokmap_error *e)
{
    char text[1500];
    fprintf(stderr, "%s\n", tokmap_error_print(e, text, sizeof text));
    exit(1);
}

/* Your tokenizer. Ids of this one are bytes; 256 ends a document. */
static uint64_t my_tokenizer(const char *text, int32_t *ids)
{
    uint64_t count = 0;
    while (text[count]) {
        ids[count] = (unsigned char)text[count];
        count++;
    }
    return count;
}

int main(int argc, char **argv)
{
    enum { LONGEST = 1 << 16 };
    static char line[LONGEST];
    static int32_t ids[LONGEST];
    struct tokmap_error e = {0};
    struct tokmap_writer *writer = NULL;
    if (argc != 2) {
        fprintf(stderr, "Usage: %s NAME <lines.txt\n", argv[0]);
        return 2;
    }
    struct tokmap_writer_options o = TOKMAP_WRITER_OPTIONS_INIT;
    o.vocabulary = 257; /* every id is below it */
    o.eod_id = 256;     /* the writer appends it to each document */
    if (tokmap_writer_open(&writer, argv[1], &o, &e))
        fatal(&e);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        struct tokmap_documents document = TOKMAP_DOCUMENTS_INIT;
        document.ids = ids;
        document.type = TOKMAP_ID_I32;
        document.id_count = my_tokenizer(line, ids);
        if (tokmap_writer_add(writer, &document, &e)) {
            tokmap_writer_abandon(writer); /* leaves nothing behind */
            fatal(&e);
        }
    }
    uint8_t content[16];
    if (ferror(stdin)) {
        tokmap_writer_abandon(writer);
        return 1;
    }
    if (tokmap_writer_commit(writer, content, &e)) /* now the dataset exists, complete and synced */
        fatal(&e);
    for (int i = 0; i < 16; i++)
        printf("%02x", content[i]);
    printf("\n");
    return 0;
}
