/* SPDX-License-Identifier: MIT */
/*
 * error.h - statuses and errors, and what all headers share; tokmap.h has the rules for all functions
 */
#ifndef TOKMAP_ERROR_H
#define TOKMAP_ERROR_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TOKMAP_API __attribute__((visibility("default")))
#define TOKMAP_MUST_CHECK __attribute__((warn_unused_result))
#else
#define TOKMAP_API
#define TOKMAP_MUST_CHECK
#endif
/* Begins the declaration of a function whose status the caller must check. */
#define TOKMAP_STATUS TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status

#ifdef __cplusplus
extern "C" {
#endif

/* clang-format off */
/* The list of statuses: name, number, meaning. Numbers never change; new statuses are added at the end. */
#define TOKMAP_STATUS_MAP(XX) \
    XX(OK, 0, "success") \
    XX(END, 1, "the run has ended") \
    XX(ERROR_ARGUMENT, 2, "an argument is missing or invalid") \
    XX(ERROR_MEMORY, 3, "out of memory") \
    XX(ERROR_IO, 4, "a file operation failed") \
    XX(ERROR_NOT_FOUND, 5, "a file, dataset, source, or item does not exist") \
    XX(ERROR_EXISTS, 6, "the output already exists") \
    XX(ERROR_BUSY, 7, "another process is writing this output") \
    XX(ERROR_FORMAT, 8, "the file does not have the expected format") \
    XX(ERROR_VERSION, 9, "the file or cursor has a newer major version of its format than this library reads") \
    XX(ERROR_CORRUPT, 10, "the content of a file does not match its checksums, or contradicts itself") \
    XX(ERROR_TRUNCATED, 11, "a file is shorter or longer than its index or header says") \
    XX(ERROR_MISMATCH, 12, "files that must agree with each other do not") \
    XX(ERROR_RANGE, 13, "a number is outside the range of the dataset or run") \
    XX(ERROR_RUN, 14, "the run text is invalid") \
    XX(ERROR_CURSOR, 15, "the text is not a valid cursor") \
    XX(ERROR_PAST, 16, "the run's past differs from the past that the cursor records") \
    XX(ERROR_TOKEN, 17, "a token id is outside the vocabulary") \
    XX(ERROR_INPUT, 18, "an input record is invalid") \
    XX(ERROR_ENCODING, 19, "the input is not valid UTF-8") \
    XX(ERROR_LIMIT, 20, "a size exceeds its limit") \
    XX(ERROR_INTERRUPTED, 21, "the caller stopped the operation") \
    XX(ERROR_UNSUPPORTED, 22, "this build or version does not support the operation") \
    XX(ERROR_INTERNAL, 23, "an internal error in tokmap") \
    XX(ERROR_DEVICE, 24, "an operation failed on the GPU or in its driver") \
    XX(ERROR_NO_DEVICE, 25, "the GPU does not exist, or has no usable driver") \
    XX(ERROR_TIMEOUT, 26, "a read took longer than its deadline")
/* clang-format on */

enum tokmap_status {
#define TOKMAP_STATUS_ENUM(name, number, text) TOKMAP_##name = number,
    TOKMAP_STATUS_MAP(TOKMAP_STATUS_ENUM)
#undef TOKMAP_STATUS_ENUM
};

#define TOKMAP_NO_OFFSET UINT64_MAX

/* Describes a failure. The struct belongs to the caller and holds no pointers, so it may be copied and kept.
 *
 * @code
 *     struct tokmap_error e = {0};
 *     struct tokmap_dataset *dataset = NULL;
 *     if (tokmap_dataset_open(&dataset, "data/web", NULL, &e)) {
 *         char text[1500];
 *         if (e.status == TOKMAP_ERROR_NOT_FOUND)
 *             puts("pack the data first");
 *         puts(tokmap_error_print(&e, text, sizeof text));
 *     }
 * @endcode
 */
struct tokmap_error {
    enum tokmap_status status;
    int system;        /* errno of the system call that failed, or 0 */
    int device;        /* CUDA result code, or 0 */
    uint32_t line;     /* line of a run file, manifest, or JSONL input, from 1; 0: unknown or not applicable */
    uint64_t offset;   /* byte offset in the file, or TOKMAP_NO_OFFSET */
    char path[512];    /* the file as it is, or ""; of a longer path the end is kept, after "..." */
    char message[768]; /* the fault, and what to do about it; does not repeat path, line, and offset */
    char field[24]; /* the option or argument that is wrong, by the name of its member, such as "rank", with which the
                     * message then begins; or "" */
};

/* Returns the name of a status, for example "ERROR_RANGE", or its meaning, as in TOKMAP_STATUS_MAP; "unknown" for a
 * number that is not a status. The text is static. Cannot fail. */
TOKMAP_API const char *tokmap_status_name(enum tokmap_status status);
TOKMAP_API const char *tokmap_status_text(enum tokmap_status status);

/* Writes an error as "path:line: message: system text (byte N)" into text, without the parts that the error does not
 * have. An empty message is replaced by the meaning of the status. Names and file content in an error may come from
 * anyone; the text, and `message` itself, are one line of plain characters, which cannot act on a terminal: escape is
 * written as ^[, newline as ^J, U+009B as \xc2\x9b.
 *   error  NULL: the text is empty
 *   text   of `capacity` bytes; the result is cut to fit and always terminated. 1,500 bytes hold any error. NULL, or a
 *          capacity of 0: nothing is written
 * Returns text. Cannot fail. */
TOKMAP_API const char *tokmap_error_print(const struct tokmap_error *error, char *text, size_t capacity);

/* Makes the macro that initializes a struct whose members are all 0 but its size. */
#ifdef __cplusplus
#define TOKMAP_SIZED(type)                                                                                             \
    []() -> type {                                                                                                     \
        type made = {};                                                                                                \
        made.size = sizeof made;                                                                                       \
        return made;                                                                                                   \
    }()
#else
#define TOKMAP_SIZED(type)                                                                                             \
    {                                                                                                                  \
        .size = sizeof(type)                                                                                           \
    }
#endif

/* The default of an option whose 0 is a value. */
#define TOKMAP_DEFAULT UINT64_MAX

/* In place of an id: no id. */
#define TOKMAP_NO_ID UINT64_MAX

/* How ids are stored in a program's memory. Loaders write only TOKMAP_ID_I32 and TOKMAP_ID_I64. */
enum tokmap_id_type {
    TOKMAP_ID_U32 = 0,
    TOKMAP_ID_I32 = 1,
    TOKMAP_ID_U16 = 2,
    TOKMAP_ID_I16 = 3,
    TOKMAP_ID_U64 = 4,
    TOKMAP_ID_I64 = 5,
    TOKMAP_ID_U8 = 6,
    TOKMAP_ID_I8 = 7
};

#ifdef __cplusplus
}
#endif
#endif
