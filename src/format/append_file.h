/*
 * append_file.h - a file that only grows, and checkpoints of work whose state is in such files.
 *
 * What is added to a file goes to a buffer, which overflows into a file without a name. What must survive the process
 * gets a name at the first checkpoint that counts on it: "kept-STEM-NAME" in the folder of the unfinished work.
 *
 * A *checkpoint* is a byte string: of each file its length and XXH3-64 of its bytes, and the numbers that no file has.
 * Whoever has state passes it on in a fixed order, and with the same calls takes it back in another process. To take a
 * file back is to cut it to its length. Nothing else is saved.
 *
 * Example: the hashes of blocks have 800 bytes at a checkpoint, 1600 bytes when the process is killed, and at the next
 * start 800 bytes again, which are compared with their hash.
 *
 * Functions that return int return 0 or an errno; EINVAL: a checkpoint does not agree with a file, or with what is
 * taken from it. A file or checkpoint belongs to one thread at a time.
 */
#ifndef TOKMAP_FORMAT_APPEND_FILE_H
#define TOKMAP_FORMAT_APPEND_FILE_H

#include <stdbool.h>

#include "common/bytes_buffer.h"

enum { APPEND_BUFFER = 1 << 16 };

struct append_file {
    const char *folder;      /* of the file without a name; must outlive this */
    int fd;                  /* -1 until the buffer is full for the first time, or the file has a name */
    bool named;              /* a checkpoint counts on it */
    size_t used;             /* bytes in the buffer */
    uint64_t stored, synced; /* bytes in the file; those on storage */
    uint8_t *buffer;         /* APPEND_BUFFER bytes, allocated at the first use */
    struct hash_state *hash; /* of the bytes in a file with a name */
};

void append_file_init(struct append_file *file, const char *folder);
void append_file_free(struct append_file *file); /* leaves a file with a name */
int append_file_add(struct append_file *file, const void *bytes, size_t count);
/* Reads bytes back; offset + count is at most append_file_bytes(). */
int append_file_read(const struct append_file *file, uint64_t offset, void *into, size_t count);
static inline uint64_t append_file_bytes(const struct append_file *file)
{
    return file->stored + file->used;
}
/* Whether an entry of a folder is the name of a file that a checkpoint counts on. */
bool append_file_is_name(const char *entry);

/* Begins as zero bytes but for `folder` and `takes`. */
struct checkpoint {
    const char *folder; /* of the files with names; not owned */
    bool takes;         /* state is taken from `bytes`; otherwise it is added there */
    bool is_new;        /* a name is new in the folder */
    struct bytes_buffer bytes;
    size_t at;                 /* the next byte that is taken */
    struct bytes_buffer files; /* struct append_file *: those that checkpoint_sync() syncs */
};

/* Passes numbers on, or takes them back. */
int checkpoint_pass(struct checkpoint *checkpoint, void *numbers, size_t count);
/* The same with the bytes of a file, which must stay valid until checkpoint_sync(). */
int checkpoint_file(struct checkpoint *checkpoint, struct append_file *file, const char *stem, const char *name);
/* Syncs the files that have grown, and their names. */
int checkpoint_sync(struct checkpoint *checkpoint);
/* Whether all bytes were taken. */
static inline bool checkpoint_is_taken(const struct checkpoint *checkpoint)
{
    return checkpoint->at == checkpoint->bytes.count;
}
void checkpoint_free(struct checkpoint *checkpoint);

#endif
