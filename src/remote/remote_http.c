/* SPDX-License-Identifier: MIT */
/*
 * remote_http.c - see remote_http.h.
 *
 * libcurl's multi interface does all work inside our calls: pump() lets it send and receive until what the caller waits
 * for is there. The body arrives in on_body(), which keeps it in a buffer of fixed size. If the next delivery does not
 * fit, on_body() pauses the transfer, and http_read() continues it when the buffer is empty.
 *
 * What a server sends is bounded: the buffer by its size, a header by HEADER_MOST, and the few texts that are kept of
 * it by their fields. A server that sends nothing is given up after STALL_NS; one that sends a byte now and then, after
 * SLOW_NS of a body and ANSWER_NS of a header. That time counts only while a call waits, so a transfer does not fail
 * because the tokenizer is slower than the network.
 */
#include "remote_http.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "platform/library.h"
#include "platform/os.h"
#include "text/decimal.h"

#ifdef HAVE_LIBCURL
#include <curl/curl.h>
#if LIBCURL_VERSION_NUM >= 0x074200 /* 7.66, the first with curl_multi_poll() */
#define WITH_LIBCURL
#endif
#endif

#define WAIT_NS 100000000u /* between two calls of stop() */

static bool is_stopped(bool (*stop)(void *user), void *user)
{
    return os_wait_readable(-1, 0) == EINTR || (stop && stop(user));
}

const char *http_method_name(enum http_method method)
{
    static const char *const names[] = {"GET", "HEAD", "PUT", "POST", "DELETE"};
    return names[method];
}

static uint64_t fetched; /* bytes of bodies; accessed atomically */

uint64_t http_fetched(void)
{
    return __atomic_load_n(&fetched, __ATOMIC_RELAXED);
}

#ifdef WITH_LIBCURL

#define SECONDS(n) ((uint64_t)(n)*1000000000u)
#define STALL_NS SECONDS(60)
#define SLOW_NS SECONDS(60) /* of waiting, in which a body must have SLOW_BYTES */
#define SLOW_BYTES 60000u
#define ANSWER_NS SECONDS(120) /* of waiting for the first byte of a body, with all redirections */
#define CONNECT_SECONDS 30L
#define REDIRECTIONS_MOST 10L
#define NEXT_MOST 4096
#define HEADER_MOST ((size_t)1 << 20)
#define CURL_TOO_LARGE 100 /* of libcurl 8.6, whose headers may be newer than those that tokmap is built with */

#undef curl_easy_setopt /* macros that check types, which the table cannot use */
#undef curl_easy_getinfo
#define LIBCURL_FUNCTIONS(X)                                                                                           \
    X(curl_easy_cleanup)                                                                                               \
    X(curl_easy_getinfo)                                                                                               \
    X(curl_easy_init)                                                                                                  \
    X(curl_easy_pause)                                                                                                 \
    X(curl_easy_reset)                                                                                                 \
    X(curl_easy_setopt)                                                                                                \
    X(curl_easy_strerror)                                                                                              \
    X(curl_getdate)                                                                                                    \
    X(curl_global_init)                                                                                                \
    X(curl_multi_add_handle)                                                                                           \
    X(curl_multi_cleanup)                                                                                              \
    X(curl_multi_info_read)                                                                                            \
    X(curl_multi_init)                                                                                                 \
    X(curl_multi_perform)                                                                                              \
    X(curl_multi_poll)                                                                                                 \
    X(curl_multi_remove_handle)                                                                                        \
    X(curl_slist_append)                                                                                               \
    X(curl_slist_free_all)

static bool curl_start(void);
LIBRARY_DECLARE_OPENED(libcurl, LIBCURL_FUNCTIONS)
LIBRARY_DEFINE_OPENED(libcurl, LIBCURL_FUNCTIONS, "libcurl.so.4", "libcurl4", .other = "libcurl-gnutls.so.4",
                      .start = curl_start)

static bool curl_start(void)
{
    return libcurl.curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

struct http {
    bool (*stop)(void *user);
    void *user;
    CURLM *multi;
    CURL *easy;
    struct curl_slist *headers;
    bool running;  /* the request is in `multi` */
    bool finished; /* libcurl has reported its end, with `code` */
    bool paused;   /* on_body() has refused bytes */
    bool stopped;
    CURLcode code;
    bool body_begun;
    bool http1, chunked;
    bool ranged; /* bytes of the file were asked for */
    size_t header_bytes;
    size_t at, filled; /* bytes [at, filled) of `buffer`, or of `into`, have not been read */
    char *into;        /* of the request */
    size_t into_bytes;
    bool direct;               /* the body goes there */
    uint64_t within_ns;        /* of the request */
    bool sending;              /* the request has a body, */
    curl_off_t sent;           /* of which so many bytes were sent when `waited` was last set to 0 */
    curl_off_t sent_last;      /* and when libcurl last worked */
    uint64_t activity;         /* grows with each delivery of a header or body */
    uint64_t waited, received; /* nanoseconds and bytes: of the header, and then of the body since the last SLOW_NS */
    struct http_answer answer;
    char next[NEXT_MOST]; /* the next page */
    char curl_reason[CURL_ERROR_SIZE];
    char reason[HTTP_REASON_MOST];
    char buffer[HTTP_BUFFER_BYTES];
};

enum tokmap_status http_new(struct http **http, bool (*stop)(void *user), void *user, const char *name,
                            struct tokmap_error *error)
{
    char reason[LIBRARY_REASON];
    *http = NULL;
    if (!library_load(&libcurl_library, reason, sizeof reason))
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, name, TOKMAP_NO_OFFSET,
                         "URLs are read by libcurl, which cannot be loaded (%s); install it (apt-get install %s), "
                         "or download the file and name that",
                         reason, libcurl_library.package);
    struct http *made = calloc(1, sizeof *made);
    if (made) {
        made->stop = stop;
        made->user = user;
        made->easy = libcurl.curl_easy_init();
        made->multi = libcurl.curl_multi_init();
    }
    if (!made || !made->easy || !made->multi) {
        http_free(made);
        return error_set_memory(error, "the reader of URLs", sizeof *made);
    }
    *http = made;
    return TOKMAP_OK;
}

void http_free(struct http *http)
{
    if (!http)
        return;
    http_end(http);
    if (http->easy)
        libcurl.curl_easy_cleanup(http->easy);
    if (http->multi)
        libcurl.curl_multi_cleanup(http->multi);
    free(http);
}

/* ---- what libcurl delivers ---- */

/* Copies the value of a line of the header, without the spaces around it, if it fits and is printable ASCII. */
static void value_copy(char *into, size_t capacity, const char *value, size_t count)
{
    *into = '\0';
    if (count >= capacity)
        return;
    for (size_t i = 0; i < count; i++)
        if (value[i] < ' ' || value[i] > '~')
            return;
    memcpy(into, value, count);
    into[count] = '\0';
}

/* "bytes 100-199/1000", or with * for a total that the server does not know. */
static void range_take(struct http_answer *answer, const char *at, const char *end)
{
    answer->has_range = false;
    if (end - at < 6 || memcmp(at, "bytes ", 6) != 0)
        return;
    at += 6;
    if (!decimal_read(&at, end, &answer->range_first) || at == end || *at++ != '-' ||
        !decimal_read(&at, end, &answer->range_last) || at == end || *at++ != '/')
        return;
    answer->range_total = UINT64_MAX;
    if (end - at == 1 && *at == '*')
        at++;
    else if (!decimal_read(&at, end, &answer->range_total))
        return;
    answer->has_range =
        at == end && answer->range_first <= answer->range_last && answer->range_last < answer->range_total;
}

/* "Sun, 06 Nov 1994 08:49:37 GMT" to seconds since 1970; 0 if the text has another form. */
static uint64_t date_read(const char *value, size_t count)
{
    char text[30];
    value_copy(text, sizeof text, value, count);
    const time_t seconds = strlen(text) == sizeof text - 1 ? libcurl.curl_getdate(text, NULL) : -1;
    return seconds > 0 ? (uint64_t)seconds : 0;
}

/* <URL>; rel="next" (RFC 8288), perhaps after others. */
static void next_take(struct http *http, const char *value, size_t count)
{
    const char *rel = memmem(value, count, "; rel=\"next\"", 12),
               *at = rel ? memrchr(value, '<', (size_t)(rel - value)) : NULL;
    if (at && rel[-1] == '>')
        value_copy(http->next, sizeof http->next, at + 1, (size_t)(rel - 2 - at));
}

static bool name_is(const char *line, size_t name_bytes, const char *name)
{
    if (strlen(name) != name_bytes)
        return false;
    for (size_t i = 0; i < name_bytes; i++)
        if ((line[i] >= 'A' && line[i] <= 'Z' ? line[i] + ('a' - 'A') : line[i]) != name[i])
            return false;
    return true;
}

/* Takes one line of a header. A line "HTTP/1.1 200 OK" begins the header of one more answer, after a redirection. */
static size_t on_header(char *line, size_t size, size_t count, void *user)
{
    struct http *http = user;
    const size_t bytes = size * count;
    struct http_answer *answer = &http->answer;
    http->activity++;
    http->header_bytes += bytes;
    if (http->header_bytes > HEADER_MOST)
        return 0;
    if (bytes >= 5 && !memcmp(line, "HTTP/", 5)) {
        *answer = (struct http_answer){.length = UINT64_MAX, .linked = UINT64_MAX};
        *http->next = '\0';
        http->http1 = bytes > 5 && line[5] == '1';
        http->chunked = false;
        return bytes;
    }
    const char *colon = memchr(line, ':', bytes);
    if (!colon)
        return bytes;
    const size_t name = (size_t)(colon - line);
    const char *value = colon + 1, *end = line + bytes;
    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    while (end > value && (end[-1] == '\r' || end[-1] == '\n' || end[-1] == ' ' || end[-1] == '\t'))
        end--;
    const size_t length = (size_t)(end - value);
    if (name_is(line, name, "etag"))
        value_copy(answer->tag, sizeof answer->tag, value, length);
    else if (name_is(line, name, "last-modified")) {
        value_copy(answer->modified, sizeof answer->modified, value, length);
        answer->changed = date_read(value, length);
    } else if (name_is(line, name, "x-amz-bucket-region"))
        value_copy(answer->region, sizeof answer->region, value, length);
    else if (name_is(line, name, "x-amz-server-side-encryption"))
        answer->keyed = length >= 7 && !memcmp(value, "aws:kms", 7);
    else if (name_is(line, name, "x-goog-encryption-kms-key-name"))
        answer->keyed = true;
    else if (name_is(line, name, "date"))
        answer->date = date_read(value, length);
    else if (name_is(line, name, "content-range"))
        range_take(answer, value, end);
    else if (name_is(line, name, "accept-ranges"))
        answer->ranges = length == 5 && !memcmp(value, "bytes", 5);
    else if (name_is(line, name, "x-error-code"))
        value_copy(answer->code, sizeof answer->code, value, length);
    else if (name_is(line, name, "link"))
        next_take(http, value, length);
    else if (name_is(line, name, "ratelimit"))
        (void)((value = memmem(value, length, ";t=", 3)) && (value += 3) &&
               decimal_read(&value, end, &answer->wait_seconds)); /* "api";r=0;t=55 */
    else if (name_is(line, name, "x-linked-size"))
        (void)decimal_parse(value, length, &answer->linked);
    else if (name_is(line, name, "transfer-encoding"))
        http->chunked = length >= 7 && !memcmp(end - 7, "chunked", 7);
    return bytes;
}

/* Some servers, such as rclone's, answer a range that was asked for with status 200. */
static uint32_t status_of(const struct http *http)
{
    long status = 0;
    (void)libcurl.curl_easy_getinfo(http->easy, CURLINFO_RESPONSE_CODE, &status);
    return status == 200 && http->ranged && http->answer.has_range ? 206 : (uint32_t)status;
}

/* Returns true if the body that begins is the one that the request has memory for. */
static bool goes_direct(const struct http *http)
{
    const struct http_answer *answer = &http->answer;
    return http->into && status_of(http) == 206 && answer->has_range &&
           answer->range_last - answer->range_first == http->into_bytes - 1;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *user)
{
    struct http *http = user;
    const size_t got = size * count;
    http->activity++;
    (void)__atomic_add_fetch(&fetched, got, __ATOMIC_RELAXED);
    if (!http->body_begun) {
        http->waited = 0;
        http->direct = goes_direct(http);
    }
    http->body_begun = true;
    if (http->direct) {
        if (got > http->into_bytes - http->filled)
            return 0;
        memcpy(http->into + http->filled, bytes, got);
        http->filled += got;
        http->received += got;
        return got;
    }
    if (http->at == http->filled)
        http->at = http->filled = 0;
    if (got > sizeof http->buffer - http->filled) {
        http->paused = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    memcpy(http->buffer + http->filled, bytes, got);
    http->filled += got;
    http->received += got;
    return got;
}

/* ---- a request ---- */

const char *http_reason(const struct http *http)
{
    return http->reason;
}

void http_end(struct http *http)
{
#if LIBCURL_VERSION_NUM >= 0x075700
    /* Otherwise libcurl waits for a thread that waits for a name server. */
    if (http->stopped && http->easy)
        (void)libcurl.curl_easy_setopt(http->easy, CURLOPT_QUICK_EXIT, 1L);
#endif
    if (http->running)
        (void)libcurl.curl_multi_remove_handle(http->multi, http->easy);
    http->running = http->finished = http->paused = false;
    http->at = http->filled = 0;
    if (http->headers)
        libcurl.curl_slist_free_all(http->headers);
    http->headers = NULL;
}

/* Returns true if a header did not end within the limits of this file or of libcurl, which has no code of its own for
 * that, and before version 8.6 calls a long line a lack of memory. */
static bool is_long_header(const struct http *http, CURLcode code, const char *text)
{
    if (http->body_begun || !http->header_bytes)
        return false;
    return code == CURLE_WRITE_ERROR || code == CURLE_OUT_OF_MEMORY || (unsigned)code == CURL_TOO_LARGE ||
           strstr(text, "arge response header");
}

/* Judges how a transfer ended. */
static enum http_result ended_with(struct http *http, CURLcode code)
{
    const char *text = *http->curl_reason ? http->curl_reason : libcurl.curl_easy_strerror(code);
    (void)snprintf(http->reason, sizeof http->reason, "%.250s", text);
    if (is_long_header(http, code, text)) {
        (void)snprintf(http->reason, sizeof http->reason,
                       "the header of the server's answer, or a line of it, is too long");
        return HTTP_FAILED;
    }
    switch ((unsigned)code) {
    case CURLE_OK:
        return HTTP_OK;
    case CURLE_PEER_FAILED_VERIFICATION:
        (void)snprintf(http->reason, sizeof http->reason,
                       "%.200s (if you trust this server, set AWS_CA_BUNDLE to a file with its certificate)", text);
        return HTTP_FAILED;
    case CURLE_OUT_OF_MEMORY:
        return HTTP_MEMORY;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT: /* of connecting: there is no other limit */
    case CURLE_SSL_CONNECT_ERROR:  /* the port may be one of plain HTTP */
        return HTTP_UNREACHED;
    case CURLE_UNSUPPORTED_PROTOCOL: /* also of an answer that is not HTTP */
        /* The text may be that of a failure before it, after which libcurl has tried again by itself. */
        return strstr(text, "Protocol") ? HTTP_FAILED : HTTP_BROKEN;
    case CURLE_URL_MALFORMAT:
    case CURLE_NOT_BUILT_IN:
    case CURLE_TOO_MANY_REDIRECTS:
    case CURLE_UNKNOWN_OPTION:
    case CURLE_BAD_FUNCTION_ARGUMENT:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_ENGINE_NOTFOUND:
        return HTTP_FAILED;
    default:
        return HTTP_BROKEN;
    }
}

/* Returns true if a server is too slow. Sets the reason. */
static bool is_slow(struct http *http)
{
    const uint64_t got = http->received;
    const uint64_t limit = min64(http->body_begun ? SLOW_NS : ANSWER_NS, http->within_ns);
    const unsigned seconds = (unsigned)(limit / SECONDS(1));
    if (http->waited < limit)
        return false;
    if (!http->body_begun) {
        (void)snprintf(http->reason, sizeof http->reason, "the server has not sent its answer in %u seconds", seconds);
        return true;
    }
    http->waited = http->received = 0;
    if (got < SLOW_BYTES)
        (void)snprintf(http->reason, sizeof http->reason, "the server sent only %u bytes in %u seconds", (unsigned)got,
                       seconds);
    return got < SLOW_BYTES;
}

/* Counts what was sent of the request's body as activity, and SLOW_BYTES of it as an answer that is not late yet. */
static void sent_count(struct http *http)
{
    curl_off_t sent = 0;
    if (!http->sending || libcurl.curl_easy_getinfo(http->easy, CURLINFO_SIZE_UPLOAD_T, &sent) != CURLE_OK)
        return;
    http->activity += sent != http->sent_last;
    http->sent_last = sent;
    if (sent - http->sent < (curl_off_t)SLOW_BYTES)
        return;
    http->sent = sent;
    http->waited = 0;
}

/* Lets libcurl work until `wanted` bytes of the body are in the buffer, or more do not fit, or the transfer ends. */
static enum http_result pump(struct http *http, size_t wanted)
{
    uint64_t seen = http->activity, since = os_clock_ns(), last = since;
    for (;;) {
        int running, messages;
        if (libcurl.curl_multi_perform(http->multi, &running) != CURLM_OK)
            return HTTP_MEMORY;
        for (const CURLMsg *message; (message = libcurl.curl_multi_info_read(http->multi, &messages)) != NULL;)
            if (message->msg == CURLMSG_DONE) {
                http->finished = true;
                http->code = message->data.result;
            }
        sent_count(http);
        const uint64_t now = os_clock_ns();
        http->waited += now - last;
        last = now;
        if (http->finished || http->filled - http->at >= wanted || http->paused)
            return HTTP_OK;
        http->stopped = is_stopped(http->stop, http->user);
        if (http->stopped)
            return HTTP_STOPPED;
        if (is_slow(http))
            return HTTP_BROKEN;
        if (http->activity != seen) {
            seen = http->activity;
            since = now;
        }
        const uint64_t limit = min64(STALL_NS, http->within_ns);
        if (now - since > limit) {
            (void)snprintf(http->reason, sizeof http->reason, "the server sent nothing for %u seconds",
                           (unsigned)(limit / SECONDS(1)));
            return HTTP_BROKEN;
        }
        struct curl_waitfd wake = {.fd = os_wake(), .events = CURL_WAIT_POLLIN};
        if (libcurl.curl_multi_poll(http->multi, &wake, wake.fd >= 0, (int)(WAIT_NS / 1000000), NULL) != CURLM_OK)
            return HTTP_MEMORY;
    }
}

static void headers_add(struct http *http, const char *line, bool *good)
{
    struct curl_slist *more = *good ? libcurl.curl_slist_append(http->headers, line) : NULL;
    *good = more != NULL;
    http->headers = more ? more : http->headers;
}

static bool options_set(struct http *http, const struct http_request *request)
{
    static const char *const bundles[] = {"AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"};
    CURL *easy = http->easy;
    bool good = true;
    libcurl.curl_easy_reset(easy);
#define SET(option, value) good = good && libcurl.curl_easy_setopt(easy, option, value) == CURLE_OK
    SET(CURLOPT_URL, request->url);
    SET(CURLOPT_ERRORBUFFER, http->curl_reason);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_PATH_AS_IS, 1L);
    SET(CURLOPT_USERAGENT, "tokmap/" TOKMAP_VERSION_STRING);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, http);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, http);
    /* A wish: libcurl 7.88 keeps the buffer of a request whose host was not found, and then refuses another size. */
    (void)libcurl.curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 256L << 10);
    SET(CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
    SET(CURLOPT_NOBODY, request->method == HTTP_HEAD ? 1L : 0L);
    if (request->method > HTTP_HEAD) {
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_bytes);
        SET(CURLOPT_POSTFIELDS, request->body ? request->body : "");
        SET(CURLOPT_CUSTOMREQUEST, http_method_name(request->method));
        (void)libcurl.curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, 512L << 10);
        headers_add(http, "Expect:", &good); /* libcurl would ask for permission, and name a type that is not signed */
        headers_add(http, "Content-Type:", &good);
    }
    SET(CURLOPT_FOLLOWLOCATION, request->keep_host ? 0L : 1L);
    SET(CURLOPT_MAXREDIRS, REDIRECTIONS_MOST);
    const bool secure = !strncmp(request->url, "https:", 6);
#if LIBCURL_VERSION_NUM >= 0x075500
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https");
#else
    SET(CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    SET(CURLOPT_REDIR_PROTOCOLS, (long)(secure ? CURLPROTO_HTTPS : CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
    if (!request->keep_host)
        SET(CURLOPT_NETRC, (long)CURL_NETRC_OPTIONAL);
    for (size_t i = 0; i < sizeof bundles / sizeof bundles[0]; i++) {
        const char *bundle = secure_getenv(bundles[i]);
        if (bundle && *bundle) {
            SET(CURLOPT_CAINFO, bundle);
            break;
        }
    }
    char range[64];
    if (request->ranged) {
        if (request->first == UINT64_MAX)
            (void)snprintf(range, sizeof range, "-%" PRIu64, request->last);
        else if (request->last == UINT64_MAX)
            (void)snprintf(range, sizeof range, "%" PRIu64 "-", request->first);
        else
            (void)snprintf(range, sizeof range, "%" PRIu64 "-%" PRIu64, request->first, request->last);
        SET(CURLOPT_RANGE, range);
    }
    for (size_t i = 0; i < request->header_count; i++)
        headers_add(http, request->headers[i], &good);
    if (http->headers)
        SET(CURLOPT_HTTPHEADER, http->headers);
#undef SET
    return good;
}

enum http_result http_begin(struct http *http, const struct http_request *request, struct http_answer *answer)
{
    http_end(http);
    http->body_begun = http->http1 = http->chunked = http->direct = false;
    http->ranged = request->ranged;
    http->into = request->into;
    http->into_bytes = request->into_bytes;
    http->within_ns = request->within_ns;
    http->sending = request->body_bytes != 0;
    http->sent = http->sent_last = 0;
    http->header_bytes = 0;
    http->waited = http->received = 0;
    http->answer = (struct http_answer){.length = UINT64_MAX};
    *http->reason = *http->curl_reason = '\0';
    if (!options_set(http, request) || libcurl.curl_multi_add_handle(http->multi, http->easy) != CURLM_OK)
        return HTTP_MEMORY;
    http->running = true;
    enum http_result result = pump(http, 1);
    if (!result && http->finished && !http->body_begun)
        result = ended_with(http, http->code); /* otherwise http_read() reports it, after the bytes */
    *answer = http->answer;
    if (result)
        return result;
    curl_off_t length = -1, wait = 0;
    (void)libcurl.curl_easy_getinfo(http->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    (void)libcurl.curl_easy_getinfo(http->easy, CURLINFO_RETRY_AFTER, &wait);
    answer->status = status_of(http);
    answer->length = length < 0 ? UINT64_MAX : (uint64_t)length;
    answer->wait_seconds = wait > 0 ? (uint64_t)wait : answer->status == 429 ? answer->wait_seconds : 0;
    answer->framed = length >= 0 || !http->http1 || http->chunked;
    return HTTP_OK;
}

const char *http_address(const struct http *http, bool next)
{
    char *location = NULL;
    if (next)
        return *http->next ? http->next : NULL;
    (void)libcurl.curl_easy_getinfo(http->easy, CURLINFO_REDIRECT_URL, &location);
    return location;
}

enum http_result http_read(struct http *http, char *into, size_t capacity, size_t *got, bool *end)
{
    *got = 0;
    *end = !http->running;
    if (*end)
        return HTTP_OK;
    while (http->at == http->filled && !http->finished) {
        if (http->paused) {
            http->paused = false;
            if (libcurl.curl_easy_pause(http->easy, CURLPAUSE_CONT) != CURLE_OK)
                return HTTP_MEMORY;
            if (http->filled > http->at)
                break;
            if (http->paused) {
                (void)snprintf(http->reason, sizeof http->reason, "libcurl delivers more bytes at once than expected");
                return HTTP_FAILED;
            }
        }
        const enum http_result result = pump(http, 1);
        if (result)
            return result;
    }
    *got = http->filled - http->at;
    if (!http->direct) {
        *got = (size_t)min64(capacity, *got);
        memcpy(into, http->buffer + http->at, *got);
    }
    http->at += *got;
    if (*got || !http->finished)
        return HTTP_OK;
    *end = true;
    return ended_with(http, http->code);
}

#else

#pragma GCC diagnostic ignored "-Wunused-parameter" /* nothing but http_new() is called */

struct http {
    bool (*stop)(void *user);
    void *user;
};

enum tokmap_status http_new(struct http **http, bool (*stop)(void *user), void *user, const char *name,
                            struct tokmap_error *error)
{
    *http = NULL;
    return error_set(error, TOKMAP_ERROR_UNSUPPORTED, name, TOKMAP_NO_OFFSET,
                     "this tokmap was built without libcurl, which reads URLs; build it where libcurl4-openssl-dev is "
                     "installed, or download the file and name that");
}

void http_free(struct http *http)
{
    free(http);
}

enum http_result http_begin(struct http *http, const struct http_request *request, struct http_answer *answer)
{
    return HTTP_FAILED;
}

enum http_result http_read(struct http *http, char *into, size_t capacity, size_t *got, bool *end)
{
    return HTTP_FAILED;
}

void http_end(struct http *http)
{
}

const char *http_address(const struct http *http, bool next)
{
    return NULL;
}

const char *http_reason(const struct http *http)
{
    return "built without libcurl";
}

#endif

enum http_result http_wait(const struct http *http, uint64_t ns)
{
    const uint64_t begun = os_clock_ns();
    for (uint64_t waited = 0; waited < ns; waited = os_clock_ns() - begun) {
        if (is_stopped(http->stop, http->user))
            return HTTP_STOPPED;
        (void)os_wait_readable(-1, min64(WAIT_NS, ns - waited));
    }
    return is_stopped(http->stop, http->user) ? HTTP_STOPPED : HTTP_OK;
}
