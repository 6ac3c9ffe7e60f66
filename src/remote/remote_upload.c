/* SPDX-License-Identifier: MIT */
#include "remote_upload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "common/hash.h"
#include "remote_xml.h"

#define PAGES_MOST 100000

/* Makes the query of an upload, with a zero byte: `before`, its id, `after`. */
static bool query_make(struct bytes_buffer *query, const char *before, const char *upload, const char *after)
{
    return bytes_append(query, before, strlen(before)) && remote_escape(query, upload, strlen(upload), false) &&
           bytes_append(query, after, strlen(after) + 1);
}

/* Sends a request about an upload. */
static enum tokmap_status upload_send(struct remote_client *client, const char *name, const char *upload,
                                      const char *before, const struct remote_ask *ask, struct remote_written *written,
                                      struct tokmap_error *error)
{
    struct bytes_buffer query = {0};
    *written = (struct remote_written){.body = {0}};
    const enum tokmap_status status = query_make(&query, before, upload, "")
                                          ? remote_write(client, name, (const char *)query.bytes, ask, written, error)
                                          : error_set_memory(error, "an upload", 0);
    bytes_free(&query);
    return status;
}

static enum tokmap_status upload_gone(const struct remote_client *client, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_NOT_FOUND, client->shown, TOKMAP_NO_OFFSET,
                     "the server no longer has the unfinished upload of this object (HTTP status 404); run the command "
                     "again");
}

static enum tokmap_status answer_wrong(const struct remote_client *client, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_IO, client->shown, TOKMAP_NO_OFFSET,
                     "the server's answer about an upload is not one that object storage gives; check the address of "
                     "the server");
}

enum tokmap_status remote_upload_begin(struct remote_client *client, const char *name, struct bytes_buffer *upload,
                                       struct tokmap_error *error)
{
    const struct remote_ask ask = {.method = HTTP_POST};
    struct remote_written written = {.body = {0}};
    struct xml_scan scan;
    bool found = false, good = true;
    enum tokmap_status status = remote_written_check(name, error);
    if (!status)
        status = remote_write(client, name, "uploads=", &ask, &written, error);
    if (!status && written.answer.status != 200)
        status = error_set(error, TOKMAP_ERROR_NOT_FOUND, client->shown, TOKMAP_NO_OFFSET,
                           "there is no such bucket (HTTP status 404); correct the name, or make the bucket");
    if (!status) {
        xml_begin(&scan, (const char *)written.body.bytes, written.body.count);
        for (enum xml_event event; good && (event = xml_next(&scan)) != XML_END;) {
            good = event != XML_WRONG;
            if (event == XML_OPEN && scan.depth == 2 && xml_is(&scan, "UploadId"))
                found = good = xml_element(&scan, upload) && upload->count;
        }
        upload->count += found;
        status = good && found ? TOKMAP_OK : answer_wrong(client, error);
    }
    bytes_free(&written.body);
    return status;
}

enum tokmap_status remote_upload_part(struct remote_client *client, const char *name, const char *upload,
                                      uint32_t number, const void *bytes, size_t count, const uint8_t hash[MD5_BYTES],
                                      char tag[HTTP_TAG_MOST], struct tokmap_error *error)
{
    char before[48], wanted[HTTP_TAG_MOST], check[BODY_CHECK_MOST];
    const struct remote_ask ask = {
        .method = HTTP_PUT, .body = count ? bytes : "", .body_bytes = count, .body_check = check};
    struct remote_written written;
    uint8_t digest[1][MD5_BYTES];
    memcpy(digest[0], hash, MD5_BYTES);
    remote_tag_of(digest, 1, false, wanted);
    remote_body_check(hash, check);
    (void)snprintf(before, sizeof before, "partNumber=%" PRIu32 "&uploadId=", number);
    enum tokmap_status status = upload_send(client, name, upload, before, &ask, &written, error);
    memcpy(tag, written.answer.tag, HTTP_TAG_MOST);
    if (!status && written.answer.status != 200)
        status = upload_gone(client, error);
    if (!status && !*tag)
        status = answer_wrong(client, error);
    if (!status && !written.answer.keyed && remote_tag_denies(tag, wanted))
        status = remote_stored_wrong(client, error);
    bytes_free(&written.body);
    return status;
}

enum tokmap_status remote_upload_end(struct remote_client *client, const char *name, const char *upload,
                                     char *const *tags, uint32_t count, uint64_t bytes, const char *wanted,
                                     struct tokmap_error *error)
{
    static const char open[] = "<CompleteMultipartUpload>", close[] = "</CompleteMultipartUpload>";
    struct bytes_buffer text = {0};
    struct remote_written written = {.body = {0}};
    char line[HTTP_TAG_MOST + 96];
    bool good = bytes_append(&text, open, sizeof open - 1);
    for (uint32_t i = 0; i < count; i++) {
        const int used = snprintf(line, sizeof line, "<Part><PartNumber>%" PRIu32 "</PartNumber><ETag>%s</ETag></Part>",
                                  i + 1, tags[i]);
        good = good && bytes_append(&text, line, (size_t)used);
    }
    good = good && bytes_append(&text, close, sizeof close - 1);
    const struct remote_ask ask = {.method = HTTP_POST, .body = text.bytes, .body_bytes = text.count};
    enum tokmap_status status = good ? upload_send(client, name, upload, "uploadId=", &ask, &written, error)
                                     : error_set_memory(error, "an upload", 0);
    const uint32_t http = written.answer.status;
    bytes_free(&text);
    bytes_free(&written.body);
    if (status)
        return status;
    /* With another answer, an earlier request may have done it, whose answer was lost. */
    status = remote_stored_check(client, name, bytes, wanted, error);
    return status && http / 100 != 2 ? upload_gone(client, error) : status;
}

enum tokmap_status remote_upload_abort(struct remote_client *client, const char *name, const char *upload,
                                       struct tokmap_error *error)
{
    const struct remote_ask ask = {.method = HTTP_DELETE};
    struct remote_written written;
    const enum tokmap_status status = upload_send(client, name, upload, "uploadId=", &ask, &written, error);
    bytes_free(&written.body);
    return status;
}

/* ---- what the server has ---- */

/* Texts of one element of a list, and of the list. */
struct listed {
    const char *element;    /* "Upload", "Part" */
    const char *members[3]; /* whose texts are wanted */
    const char *next[2];    /* marks of the next page */
    struct bytes_buffer texts[3], marks[2];
    bool more;
};

static uint64_t marks_hash(const struct listed *listed)
{
    const struct bytes_buffer *marks = listed->marks;
    return hash64(marks[0].bytes, marks[0].count) + 3 * hash64(marks[1].bytes, marks[1].count);
}

/* Reads a page, and calls found() for each element. A page after which the same one would follow is wrong. */
static enum tokmap_status
page_read(const struct remote_client *client, const struct bytes_buffer *page, struct listed *listed,
          enum tokmap_status (*found)(void *user, const struct listed *listed, struct tokmap_error *error), void *user,
          struct tokmap_error *error)
{
    struct xml_scan scan;
    struct bytes_buffer text = {0};
    enum tokmap_status status = TOKMAP_OK;
    bool inside = false, good = true;
    const uint64_t before = marks_hash(listed);
    listed->more = false;
    xml_begin(&scan, (const char *)page->bytes, page->count);
    for (enum xml_event event; !status && good && (event = xml_next(&scan)) != XML_END;) {
        good = event != XML_WRONG;
        if (event == XML_CLOSE && scan.depth == 1 && inside) {
            inside = false;
            status = found(user, listed, error);
        }
        if (event != XML_OPEN)
            continue;
        if (scan.depth == 2 && (inside = xml_is(&scan, listed->element)))
            for (size_t i = 0; i < 3; i++)
                listed->texts[i].count = 0;
        for (size_t i = 0; i < 3 && scan.depth == 3 && inside && good; i++)
            if (listed->members[i] && xml_is(&scan, listed->members[i])) {
                good = xml_element(&scan, &listed->texts[i]);
                break;
            }
        if (scan.depth != 2 || inside || !good)
            continue;
        if (xml_is(&scan, "IsTruncated")) {
            good = xml_element(&scan, &text);
            listed->more = text.count == 4 && !memcmp(text.bytes, "true", 4);
        }
        for (size_t i = 0; i < 2 && scan.depth == 2; i++)
            if (listed->next[i] && xml_is(&scan, listed->next[i])) {
                good = xml_element(&scan, &listed->marks[i]);
                break;
            }
    }
    bytes_free(&text);
    good = good && !(listed->more && marks_hash(listed) == before);
    return status ? status : good ? TOKMAP_OK : answer_wrong(client, error);
}

static void listed_free(struct listed *listed)
{
    for (size_t i = 0; i < 3; i++)
        bytes_free(&listed->texts[i]);
    for (size_t i = 0; i < 2; i++)
        bytes_free(&listed->marks[i]);
}

static const char *text_of(const struct bytes_buffer *text)
{
    return text->count ? (const char *)text->bytes : "";
}

struct uploads_search {
    enum tokmap_status (*found)(void *user, const char *key, const char *upload, struct tokmap_error *error);
    void *user;
};

static enum tokmap_status upload_found(void *user, const struct listed *listed, struct tokmap_error *error)
{
    const struct uploads_search *search = user;
    return search->found(search->user, text_of(&listed->texts[0]), text_of(&listed->texts[1]), error);
}

/* Makes the query of a page of uploads, with the names in byte order. */
static bool uploads_query(struct bytes_buffer *query, const struct listed *listed, const char *key)
{
    query->count = 0;
    bool good = true;
    if (listed->marks[0].count)
        good = query_make(query, "key-marker=", text_of(&listed->marks[0]), "&");
    query->count -= listed->marks[0].count != 0;
    good = good && query_make(query, "prefix=", key, "&");
    query->count--;
    if (listed->marks[0].count && listed->marks[1].count) {
        good = good && query_make(query, "upload-id-marker=", text_of(&listed->marks[1]), "&");
        query->count--;
    }
    return good && bytes_append(query, "uploads=", sizeof "uploads=");
}

enum tokmap_status remote_uploads_find(struct remote_client *client, const char *name,
                                       enum tokmap_status (*found)(void *user, const char *key, const char *upload,
                                                                   struct tokmap_error *error),
                                       void *user, struct tokmap_error *error)
{
    const struct remote_ask ask = {.method = HTTP_GET};
    struct listed listed = {
        .element = "Upload", .members = {"Key", "UploadId"}, .next = {"NextKeyMarker", "NextUploadIdMarker"}};
    struct uploads_search search = {found, user};
    struct bytes_buffer query = {0}, page = {0};
    struct remote_object object;
    struct http_answer answer;
    enum tokmap_status status = remote_written_check(name, error);
    if (!status)
        status = remote_object_of(name, &object, error);
    listed.more = true;
    for (uint32_t pages = 0; !status && listed.more && pages < PAGES_MOST; pages++) {
        page.count = 0;
        status = uploads_query(&query, &listed, object.key)
                     ? remote_client_name(client, name, (const char *)query.bytes, false, error)
                     : error_set_memory(error, "an upload", 0);
        if (!status)
            status = remote_client_fetch(client, &ask, (size_t)16 << 20, &page, &answer, error);
        if (!status && (answer.status == 501 || answer.status == 405 || answer.status == 404))
            break;
        if (!status && answer.status != 200)
            status = remote_client_refused(client, &answer, error);
        if (!status)
            status = page_read(client, &page, &listed, upload_found, &search, error);
    }
    listed_free(&listed);
    bytes_free(&query);
    bytes_free(&page);
    return status;
}

struct parts_search {
    enum tokmap_status (*found)(void *user, uint32_t number, uint64_t bytes, const char *tag,
                                struct tokmap_error *error);
    void *user;
};

static enum tokmap_status part_found(void *user, const struct listed *listed, struct tokmap_error *error)
{
    const struct parts_search *search = user;
    const uint64_t number = strtoull(text_of(&listed->texts[0]), NULL, 10);
    return number && number <= UPLOAD_PARTS_MOST && listed->texts[2].count < HTTP_TAG_MOST
               ? search->found(search->user, (uint32_t)number, strtoull(text_of(&listed->texts[1]), NULL, 10),
                               text_of(&listed->texts[2]), error)
               : TOKMAP_OK;
}

enum tokmap_status remote_parts_find(struct remote_client *client, const char *name, const char *upload,
                                     enum tokmap_status (*found)(void *user, uint32_t number, uint64_t bytes,
                                                                 const char *tag, struct tokmap_error *error),
                                     void *user, struct tokmap_error *error)
{
    const struct remote_ask ask = {.method = HTTP_GET};
    struct listed listed = {
        .element = "Part", .members = {"PartNumber", "Size", "ETag"}, .next = {"NextPartNumberMarker"}};
    struct parts_search search = {found, user};
    enum tokmap_status status = remote_written_check(name, error);
    uint32_t pages = 0;
    do {
        struct remote_written written = {.body = {0}};
        char before[64] = "uploadId=";
        const uint64_t mark = strtoull(text_of(&listed.marks[0]), NULL, 10);
        if (mark)
            (void)snprintf(before, sizeof before, "part-number-marker=%" PRIu64 "&uploadId=", mark);
        if (!status)
            status = upload_send(client, name, upload, before, &ask, &written, error);
        if (!status && written.answer.status != 200)
            status = upload_gone(client, error);
        if (!status)
            status = page_read(client, &written.body, &listed, part_found, &search, error);
        bytes_free(&written.body);
    } while (!status && listed.more && ++pages < PAGES_MOST);
    listed_free(&listed);
    return status;
}
