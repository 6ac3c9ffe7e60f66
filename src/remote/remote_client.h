/* SPDX-License-Identifier: MIT */
/*
 * remote_client.h - requests for the file of a URL or for an object, one at a time: signed where there is a key, and
 * repeated while what failed may pass.
 *
 * A request that fails in a way that may pass (no answer, a broken connection, HTTP 408, 429, and 5xx) is repeated,
 * after a pause that doubles from 0.2 s to at most 20 s and is shortened by chance by up to a half, or after what the
 * server asks for, up to a minute at a time. After REMOTE_ATTEMPTS failures, or after REMOTE_PATIENCE_NS, without
 * REMOTE_PROGRESS bytes in between that are not read again, it is an error: a training program is ended when some ranks
 * wait for others longer than ten minutes. The variable AWS_MAX_ATTEMPTS sets another number, and no limit of time.
 *
 * The Hugging Face Hub answers with the signed address of a file on another host, which ends after a while:
 *
 *     GET HUB/datasets/a/b/resolve/COMMIT/x.parquet  (with the token)  -> 302, https://CDN/1f/2e?Expires=...
 *     GET https://CDN/1f/2e?Expires=...  Range: bytes=0-99             -> 206
 *     GET https://CDN/1f/2e?Expires=...  Range: bytes=500-599          -> 403: the Hub is asked again
 *
 * The token goes to the Hub alone. A commit never changes, so it names the version of the file, and not what the hosts
 * say of it (ETag): two of them may differ.
 *
 * Thread rule: one thread at a time per client.
 */
#ifndef TOKMAP_REMOTE_REMOTE_CLIENT_H
#define TOKMAP_REMOTE_REMOTE_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include "common/bytes_buffer.h"
#include "remote_account.h"
#include "remote_http.h"

#define REMOTE_ATTEMPTS 8
#define REMOTE_ATTEMPTS_FIRST 4 /* to reach a server before any has answered: its name may be misspelled */
#define REMOTE_PROGRESS ((uint64_t)1 << 20)
#define REMOTE_CHANGED "the file changed while it was read; run the command again when no program writes to it"
#define REMOTE_PATIENCE_NS ((uint64_t)300 * 1000000000)

/* Receiver of reports about waiting and repeated requests. The functions may be NULL. */
struct remote_watch {
    /* A URL was opened whose server names no version of the file: no other process could continue in it. */
    void (*unversioned)(void *user, const char *name);
    /* A wait of some seconds begins that a server has asked for. */
    void (*waits)(void *user, const char *name, const char *reason, uint64_t seconds);
    void *user;
};

/* Read its members; the functions below change them. */
struct remote_client {
    bool (*stop)(void *user);
    void *user;
    const struct remote_watch *watch; /* or NULL */
    struct http *http;                /* NULL until the first name */
    char *shown;                      /* the name, for messages, or NULL */
    uint64_t at;                      /* the byte of the file that a message names; 0: none */
    uint64_t since_ns;                /* when the wait for the file began; 0: with the request */
    /* Private. */
    struct bytes_buffer url;       /* with a zero byte that does not count */
    struct remote_account account; /* of object storage, once it was needed */
    struct remote_object object;   /* that is named, in `shown` */
    struct bytes_buffer header;    /* the lines that sign a request, with zero bytes */
    const char *query;             /* of requests, or NULL */
    bool query_of_object;          /* the query is for the object, not for its bucket */
    bool moved;                    /* the region has been changed for this name */
    bool away;                     /* `url` is the address of another host, which the Hub has named for this file, */
    char *placed;                  /* or for the one before it, which had this name */
    unsigned hops;                 /* redirections that were followed for this request */
    bool known;                    /* the name is that of data that is being read */
    bool ranged;                   /* a server has sent a range of bytes */
    uint32_t failures, attempts;
    bool endless;      /* only `attempts` is a limit, and no time */
    uint64_t good;     /* bytes since the last failure that are not read again */
    uint64_t begun_ns; /* when the last byte came before the first failure, or the first attempt began */
    char code[64];     /* of the error document that remote_client_fetch() has read, such as "SlowDown", or "" */
};

/* A request. Zeros: a GET of the whole file. */
struct remote_ask {
    enum http_method method;
    bool ranged;           /* only bytes [first, last] of the file are wanted: */
    uint64_t first, last;  /* last UINT64_MAX: to the end; first UINT64_MAX: the last `last` bytes */
    const char *condition; /* a line of the header, such as "if-match: \"x\"", or NULL */
    const void *body;      /* the bytes that are sent, or NULL */
    size_t body_bytes;
    const char *body_check; /* a line "content-md5: ..." of the body, or NULL: the server compares it. Over TLS the */
                            /* signature then does without a second hash of the body */
    char *into; /* NULL, or where the body of an answer 206 goes if it has exactly so many bytes: see remote_http.h */
    size_t into_bytes;
};

/* stop and user as for stream_new(). */
void remote_client_init(struct remote_client *client, bool (*stop)(void *user), void *user,
                        const struct remote_watch *watch);
void remote_client_free(struct remote_client *client);

/* Names the file of the requests that follow. query: of the bucket, or of the object, already escaped and with its
 * names in byte order; of the Hub, the path of its API with a query; NULL: none. It must stay valid. Statuses: OK,
 * ERROR_ARGUMENT, ERROR_IO (a file with keys cannot be read), ERROR_UNSUPPORTED (no libcurl), ERROR_MEMORY. */
enum tokmap_status remote_client_name(struct remote_client *client, const char *name, const char *query,
                                      bool query_of_object, struct tokmap_error *error);
/* Ends a request and forgets the name. */
void remote_client_close(struct remote_client *client);

/* Sends a request until an answer comes that no further attempt would change, whatever its HTTP status. Its body is
 * read with http_read(client->http). Statuses: OK, ERROR_IO, ERROR_INTERRUPTED, ERROR_MEMORY. */
enum tokmap_status remote_client_send(struct remote_client *client, const struct remote_ask *ask,
                                      struct http_answer *answer, struct tokmap_error *error);

/* Does that and appends the body of the answer to *into: at most `most` bytes. Statuses: also ERROR_LIMIT. */
enum tokmap_status remote_client_fetch(struct remote_client *client, const struct remote_ask *ask, size_t most,
                                       struct bytes_buffer *into, struct http_answer *answer,
                                       struct tokmap_error *error);

/* Notes that bytes of a body have come. kept: they are not read again after a failure. */
void remote_client_came(struct remote_client *client, size_t bytes, bool kept);
/* Counts a failure that may pass, and waits. wait_seconds: what the server asks for. Statuses: OK (try again),
 * ERROR_IO, ERROR_INTERRUPTED. */
enum tokmap_status remote_client_failed(struct remote_client *client, const char *reason, uint64_t wait_seconds,
                                        struct tokmap_error *error);
/* Does the same for a request that libcurl could not finish. Statuses: also ERROR_MEMORY. */
enum tokmap_status remote_client_broke(struct remote_client *client, enum http_result result,
                                       struct tokmap_error *error);
/* Reports an answer that was not wanted, with the code of its body, and that no further attempt would change. Statuses:
 * ERROR_NOT_FOUND, ERROR_IO. */
enum tokmap_status remote_client_refused(const struct remote_client *client, const struct http_answer *answer,
                                         struct tokmap_error *error);

#endif
