/* form.h - what a file is by its first bytes. */
#ifndef TOKMAP_CORPUS_FORM_H
#define TOKMAP_CORPUS_FORM_H

#include <stdbool.h>
#include <stddef.h>

enum form { FORM_PLAIN, FORM_GZIP, FORM_ZSTD, FORM_REFUSED };

#define FORM_HEAD 512 /* bytes that are looked at */

/* *name: what it is, for messages ("a Parquet file"), and *advice: what to do, both for FORM_REFUSED. */
enum form form_of(const char *head, size_t count, const char **name, const char **advice);

/* True if more bytes than these few are needed to tell: they begin like a form that is not plain. */
bool form_undecided(const char *head, size_t count);

#endif
