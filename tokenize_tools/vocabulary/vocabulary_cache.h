/*
 * vocabulary_cache.h - opened vocabularies in files, so that short runs need not build their tables again.
 *
 * The cache is a folder with a file for each vocabulary that was opened: a snapshot (tokenizer/snapshot.h) of all its
 * parts. Its name is a key, the XXH3-128 of everything that decides the parts: all bytes of the vocabulary's file, and
 * of the file beside it that it needs; the options that describe a rank file; the sources that made the snapshot; and
 * the processor's variant, which the description of the scanner names. So a file is never out of date. It is only not
 * asked for any more.
 *
 * Opening reads and hashes the vocabulary's file, which is much less work than building tables. A file of the cache is
 * used if it belongs to this user, no other user may write it or the folder, and all that snapshot_read() and
 * parts_get() check is right. Otherwise the vocabulary is read as without a cache, and a new file replaces the old one.
 * Nothing that is wrong with the cache is an error: not a folder that cannot be made, nor a full disk.
 *
 * A file is written under another name and then renamed. Readers see no file or a whole one, and of several processes
 * that write the same file the last one wins, all being equal. It is not synced: after a power failure, the hash tells.
 *
 * When the folder has more than CACHE_MOST bytes, the files that were not used for the longest time are removed. A
 * process that is reading such a file is not disturbed.
 */
#ifndef TOKMAP_VOCABULARY_VOCABULARY_CACHE_H
#define TOKMAP_VOCABULARY_VOCABULARY_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "tokenizer/tokenizer.h"

#define CACHE_MOST ((uint64_t)512 << 20) /* bytes of all files; a file that was just written stays */

/* Returns the folder that the environment gives, which need not exist: tokmap in $XDG_CACHE_HOME, else .cache/tokmap in
 * $HOME. The caller frees it. NULL if neither is an absolute path, if $TOKMAP_NO_CACHE is set, or without memory. A
 * program that runs with the rights of another user gets NULL, too. */
char *vocabulary_cache_folder(void);

struct cache_key {
    uint8_t hash[16];
    uint8_t file[16]; /* XXH3-128 of the vocabulary's file alone */
    bool pair;        /* the vocabulary is in two files */
};
/* Finds the key of a vocabulary file by reading it and the files that it needs. Returns false if one of them cannot be
 * read; whoever opens the vocabulary says why. */
bool cache_key_find(struct cache_key *key, const char *path, const struct tokenizer_options *options);
/* Returns whether two keys are of the same files. */
bool cache_key_same(const struct cache_key *a, const struct cache_key *b);

/* Opens the tokenizer that the cache has for a key. path: of the vocabulary, which names the tokenizer. Returns false
 * if there is none. */
bool vocabulary_cache_read(struct tokenizer **tokenizer, const char *folder, const struct cache_key *key,
                           const char *path, enum tokenizer_special special);
/* Makes the folder if it is missing. Returns whether files can be kept there: it is this user's, and no other user may
 * write it. */
bool vocabulary_cache_prepare(const char *folder);
/* Keeps a tokenizer in a prepared folder. Returns whether the cache has it now. */
bool vocabulary_cache_write(const struct tokenizer *tokenizer, const char *folder, const struct cache_key *key);

struct cache_use {
    uint64_t files, bytes;
};
/* Counts the files of a cache, or removes them (remove), also those that a killed process has left. Returns 0, or a
 * positive errno if the folder cannot be listed or a file cannot be removed; ENOENT: there is no folder. */
int vocabulary_cache_look(const char *folder, bool remove, struct cache_use *use);

#endif
