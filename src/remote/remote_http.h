/* SPDX-License-Identifier: MIT */
/*
 * remote_http.h - one HTTP request at a time, by libcurl, whose only user this is.
 *
 * libcurl is loaded when the first URL is opened, so a command that reads only files does not spend time on linking it
 * and the thirty libraries that it needs. A build without its headers has these functions, too: http_new() then fails
 * with the reason.
 *
 * The caller pulls: http_begin() sends a request and waits for the header of the answer, and http_read() waits for
 * bytes of the body. No thread of tokmap is in between, and at most HTTP_BUFFER_BYTES are in memory: when they are not
 * read, TCP makes the server wait. Connections are kept for the next request.
 *
 * Thread rule: one thread at a time per object.
 */
#ifndef TOKMAP_REMOTE_REMOTE_HTTP_H
#define TOKMAP_REMOTE_REMOTE_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include "tokmap/tokmap.h"

#define HTTP_BUFFER_BYTES ((size_t)1 << 20)
#define HTTP_TAG_MOST 256 /* a longer ETag counts as none */
#define HTTP_NAME_MOST 64 /* the same for a date, and for the name of a region */
#define HTTP_REASON_MOST 320

struct http;

enum http_method { HTTP_GET, HTTP_HEAD, HTTP_PUT, HTTP_POST, HTTP_DELETE };

struct http_request {
    enum http_method method;
    const char *url;
    bool ranged;          /* only bytes [first, last] of the file are wanted: */
    uint64_t first, last; /* last UINT64_MAX: to the end; first UINT64_MAX: the last `last` bytes */
    const void *body;     /* the bytes that PUT and POST send; they must stay valid until http_end() */
    size_t body_bytes;
    char *into;        /* memory for the body of an answer 206 of `into_bytes` bytes, or NULL: the body is then */
    size_t into_bytes; /* not copied by http_read(), which only counts. Valid until http_end() */
    const char *const *headers; /* complete lines of the header, such as "If-Match: \"x\"" */
    size_t header_count;
    uint64_t
        within_ns;  /* nanoseconds after which a server is given up that has sent nothing, or no answer yet, if the */
                    /* usual limits are longer */
    bool keep_host; /* redirections are not followed, because they could lead a secret elsewhere */
};

/* The header of an answer. Texts are "" if they are missing, too long, or not printable ASCII. */
struct http_answer {
    uint32_t status;
    uint64_t length; /* of the body; UINT64_MAX if the header does not say it */
    bool framed;     /* the end of the body differs from a connection that broke */
    bool has_range;  /* Content-Range, with bytes [range_first, range_last] of range_total (UINT64_MAX: unknown) */
    uint64_t range_first, range_last, range_total;
    bool keyed;                /* encrypted with a key of the server's key service: the ETag is no MD5 */
    bool ranges;               /* the server says that it serves ranges (Accept-Ranges: bytes) */
    uint64_t wait_seconds;     /* Retry-After, or with status 429 RateLimit */
    uint64_t date;             /* the time that the server says it is, in seconds since 1970; 0: it does not say */
    uint64_t changed;          /* Last-Modified in the same way; 0: it is missing, or has another form */
    uint64_t linked;           /* the size of the file to which the answer sends (X-Linked-Size), or UINT64_MAX */
    char code[HTTP_NAME_MOST]; /* of an error (X-Error-Code) */
    char tag[HTTP_TAG_MOST], modified[HTTP_NAME_MOST], region[HTTP_NAME_MOST];
};

/* UNREACHED: no server answered, or none that speaks TLS to an https URL. BROKEN: the connection broke, or no byte came
 * for a minute, or too few; a new attempt may work. FAILED: a new attempt would fail, too. STOPPED: interrupted, by a
 * signal or by stop(). The reason of UNREACHED, BROKEN, and FAILED is a text. */
enum http_result { HTTP_OK, HTTP_UNREACHED, HTTP_BROKEN, HTTP_FAILED, HTTP_STOPPED, HTTP_MEMORY };

/* stop(user) is called about every 0.1 s while a call waits; it may be NULL. `name`: of the input, for the error.
 * Statuses: OK, ERROR_UNSUPPORTED (no libcurl), ERROR_MEMORY. */
enum tokmap_status http_new(struct http **http, bool (*stop)(void *user), void *user, const char *name,
                            struct tokmap_error *error);
void http_free(struct http *http); /* accepts NULL */

/* Returns "GET" and so on. */
const char *http_method_name(enum http_method method);

/* Ends the request before it, and sends one. The request is used only during the call, but for its memory. */
enum http_result http_begin(struct http *http, const struct http_request *request, struct http_answer *answer);
/* Reads up to `capacity` bytes (> 0) of the body. *end: none follow; only then can *got be 0. Of a body that goes to
 * the memory of the request, *got is the number of new bytes there, which may be above `capacity`, and `into` may be
 * NULL. After http_end(), none follow. */
enum http_result http_read(struct http *http, char *into, size_t capacity, size_t *got, bool *end);
void http_end(struct http *http); /* ends the request */

/* Returns the bytes of all bodies that this process has received. */
uint64_t http_fetched(void);
/* Returns where the last answer sends the request, or the next page that it names (Link), or NULL. Valid until the next
 * request. */
const char *http_address(const struct http *http, bool next);

/* Returns why the last call failed. Valid until the next call. */
const char *http_reason(const struct http *http);
/* Waits, for example between two attempts. Statuses: HTTP_OK, HTTP_STOPPED. */
enum http_result http_wait(const struct http *http, uint64_t ns);

#endif
