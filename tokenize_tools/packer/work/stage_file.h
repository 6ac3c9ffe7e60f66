/* SPDX-License-Identifier: MIT */
/*
 * stage_file.h - files in the folder NAME.work that pass what one stage of the work has found to the next stage, which
 * may run in other processes (stage_schedule.h). WORK.md lists all of the folder.
 *
 *     scan-000012      what the scan of unit 12 has found (drop_list.h)
 *     drops-000003     what portion 3 of the comparison has found (drop_list.h)
 *     packed-000012    unit 12 is packed (unit_record.h), and where its sorted documents are (sorted_units.h)
 *     cuts-000000      where the shuffled shards begin in them (shuffle_cut.h)
 *     merged-000007    shuffled shard 7 is finished (shard_merge.h)
 *     also-000000      files of other projects are written, and also-000001 which one is next (pack_also.h)
 *     tail-123456      the end of a file whose path has this hash (work_units.h)
 *
 * A file has a fixed number of sections, each with records of one size. It is complete as soon as it has its name. The
 * header has a key, the hash of version and options (unit_record.h), so that a file of other work is refused. Each
 * section has a hash, which is compared when its last record is read: until then a reader must expect any bytes.
 *
 * A file whose making takes long has parts (stage_parts.h), which are files of the same kind:
 *
 *     scan-000012.part-000003     what the scan of unit 12 has found between two moments
 */
#ifndef TOKMAP_WORK_STAGE_FILE_H
#define TOKMAP_WORK_STAGE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes_buffer.h"
#include "tokmap/tokmap.h"

enum stage_kind { STAGE_SCAN, STAGE_DROPS, STAGE_PACKED, STAGE_CUTS, STAGE_MERGED, STAGE_ALSO, STAGE_TAIL, STAGES };

/* Identity of a file. The header that describes the contents of a kind of file makes the ids, too. */
struct stage_id {
    const char *folder;
    uint64_t key;
    enum stage_kind kind;
    uint64_t number;   /* below 2^56 */
    uint64_t sections; /* number of sections that it must have, at least 1 */
    uint64_t part;     /* 0: the file; else 1 + the number of its part */
};

/* Returns true if an entry of the folder is the name of such a file, or of one that is being written. */
bool stage_is_name(const char *entry);

/* Returns true if an entry with such a name is such a file, by its first bytes. They are zeros as long as it is not
 * finished; so may those of a finished one be, after a power cut, if there is a journal. */
bool stage_is_ours(const char *folder, const char *entry, bool journal);

/* Checks whether a file is complete. Statuses: OK, ERROR_NOT_FOUND, ERROR_CORRUPT (it is torn, or of other work),
 * ERROR_IO, ERROR_MEMORY. */
enum tokmap_status stage_find(const struct stage_id *id, struct tokmap_error *error);

/* Lists the folder once, and sets there[i] for each file of a kind with number i below `count` that has its name, and
 * may be damaged. Statuses: OK, ERROR_IO. */
enum tokmap_status stage_list(const char *folder, enum stage_kind kind, uint64_t count, bool *there,
                              struct tokmap_error *error);

/* ---- write ---- */

struct stage_writer; /* for one thread at a time */

/* Creates the unfinished file. It has one section, which is empty. Statuses: OK, ERROR_IO, ERROR_BUSY, ERROR_MEMORY. */
enum tokmap_status stage_writer_open(struct stage_writer **writer, const struct stage_id *id,
                                     struct tokmap_error *error);
/* Appends to the open section. Statuses: OK, ERROR_IO. */
enum tokmap_status stage_writer_add(struct stage_writer *writer, const void *bytes, size_t count,
                                    struct tokmap_error *error);
/* Ends a section, and begins the next one. Statuses: OK, ERROR_IO. */
enum tokmap_status stage_writer_next(struct stage_writer *writer, struct tokmap_error *error);
/* Ends the last section, writes the header, syncs, and names the file. Statuses: OK, ERROR_IO. */
enum tokmap_status stage_writer_commit(struct stage_writer *writer, bool sync, struct tokmap_error *error);
/* Removes an unfinished file, unless stage_writer_keep() has been called. Accepts NULL. */
void stage_writer_free(struct stage_writer *writer);
/* Writes a file with one section. Statuses: those of stage_writer_open() and stage_writer_commit(). */
enum tokmap_status stage_write(const struct stage_id *id, const void *bytes, size_t count, bool sync,
                               struct tokmap_error *error);

/* Does the same as stage_writer_open(), but leaves what a killed process has left. stage_writer_resume() follows, and
 * then stage_writer_add(). In between, no other process writes this file. */
enum tokmap_status stage_writer_reopen(struct stage_writer **writer, const struct stage_id *id,
                                       struct tokmap_error *error);
/* Continues where the last stage_writer_keep() with this token was: *section is the open section, which has *bytes.
 * Both are 0 if there is nothing to continue. Statuses: OK, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status stage_writer_resume(struct stage_writer *writer, uint64_t token, uint64_t *section, uint64_t *bytes,
                                       struct tokmap_error *error);
/* Lets another process continue here, if this one is killed. token: of what was read to make the file so far; with
 * another one, nothing is continued. Statuses: OK, ERROR_IO. */
enum tokmap_status stage_writer_keep(struct stage_writer *writer, uint64_t token, bool sync,
                                     struct tokmap_error *error);
/* Reads the last bytes of the open section, which has so many, after stage_writer_resume(). Statuses: OK, ERROR_IO. */
enum tokmap_status stage_writer_last(const struct stage_writer *writer, void *record, uint32_t record_bytes,
                                     struct tokmap_error *error);

/* ---- read ---- */

/* Reads one section from its beginning. The file is open only during calls, so there may be many readers. Begins as
 * zero bytes. */
struct stage_reader {
    char *path;
    uint8_t *buffer;
    uint32_t buffer_bytes, record_bytes;
    uint64_t next, end; /* bytes of the file that are not in the buffer yet */
    uint32_t at, filled;
    uint64_t expected; /* hash of the section */
    struct hash_state *hash;
};

/* Opens a section. buffer_bytes: at least record_bytes. Statuses: those of stage_find(). */
enum tokmap_status stage_reader_open(struct stage_reader *reader, const struct stage_id *id, uint64_t section,
                                     uint32_t record_bytes, uint32_t buffer_bytes, struct tokmap_error *error);
/* Sets *record to the next record, which is valid until the next call, or to NULL at the end, when the hash is right.
 * Statuses: OK, ERROR_CORRUPT, ERROR_IO. */
enum tokmap_status stage_reader_next(struct stage_reader *reader, const void **record, struct tokmap_error *error);
void stage_reader_free(struct stage_reader *reader);

/* Reads a whole section, of at most `most` bytes, and compares its hash. Statuses: those of stage_reader_next(),
 * ERROR_MEMORY. */
enum tokmap_status stage_section_load(struct bytes_buffer *into, const struct stage_id *id, uint64_t section,
                                      uint64_t most, struct tokmap_error *error);

/* Reads a section that has exactly `bytes` bytes. Statuses: those of stage_section_load(). */
enum tokmap_status stage_section_read(const struct stage_id *id, uint64_t section, void *into, size_t bytes,
                                      struct tokmap_error *error);

/* Appends a whole section to the open section of a writer. Statuses: those of stage_reader_next() and
 * stage_writer_add(). */
enum tokmap_status stage_section_copy(struct stage_writer *into, const struct stage_id *id, uint64_t section,
                                      struct tokmap_error *error);

/* Sets filled[i] if section first + i has bytes, for `count` sections. It costs as much as opening one of them.
 * Statuses: those of stage_find(). */
enum tokmap_status stage_sections_filled(const struct stage_id *id, uint64_t first, uint64_t count, bool *filled,
                                         struct tokmap_error *error);

/* Sets *digest to a number that depends on all bytes of a file. Statuses: those of stage_find(). */
enum tokmap_status stage_digest(const struct stage_id *id, uint64_t *digest, struct tokmap_error *error);

/* Returns true if there is a file with this name, whatever it has. */
bool stage_exists(const struct stage_id *id);

/* Removes a file. It need not exist. */
void stage_remove(const struct stage_id *id);

/* Removes all files of a kind in a folder, with their parts, finished or not. Statuses: OK, ERROR_IO. */
enum tokmap_status stage_kind_remove(const char *folder, enum stage_kind kind, struct tokmap_error *error);

/* Counts the records of a section from its size, so that a number elsewhere can be compared with it before memory is
 * allocated. Statuses: those of stage_reader_open(). */
enum tokmap_status stage_section_count(const struct stage_id *id, uint64_t section, uint32_t record_bytes,
                                       uint64_t *count, struct tokmap_error *error);

/* Says how many bytes of the file are in a section and those after it. Statuses: those of stage_reader_open(). */
enum tokmap_status stage_bytes_from(const struct stage_id *id, uint64_t section, uint64_t *bytes,
                                    struct tokmap_error *error);

/* Reads record `number` of a section, whose hash is not compared: a reader of the whole section must do that. Statuses:
 * those of stage_reader_open(). */
enum tokmap_status stage_record_read(const struct stage_id *id, uint64_t section, uint64_t number, void *record,
                                     uint32_t record_bytes, struct tokmap_error *error);

/* Returns the path of the file; the caller frees it. NULL without memory. */
char *stage_path(const struct stage_id *id);

/* Returns the error of a file that has other contents than it must have. */
enum tokmap_status stage_corrupt(const struct stage_id *id, struct tokmap_error *error);

/* Returns the error of a file that another process is writing. */
enum tokmap_status stage_busy(const struct stage_id *id, struct tokmap_error *error);

#endif
