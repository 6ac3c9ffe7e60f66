/* SPDX-License-Identifier: MIT */
/* Names of remote inputs, XML from a hostile server, and how often a server that is away is asked. */
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "remote/remote_list.h"
#include "remote/remote_range.h"
#include "remote/remote_url.h"
#include "remote/remote_xml.h"

static void shown_is(const char *name, const char *wanted)
{
    char *shown = remote_shown(name);
    assert_non_null(shown);
    assert_string_equal(shown, wanted);
    free(shown);
}

static void test_shown(void **state)
{
    (void)state;
    shown_is("https://h/a.txt", "https://h/a.txt");
    shown_is("https://h/a.txt?X-Amz-Signature=s", "https://h/a.txt");
    shown_is("https://h?s#f", "https://h");
    shown_is("http://user:s@h:80/a@b?s", "http://h:80/a@b");
    shown_is("http://user:s@s@h", "http://h");
    shown_is("http://user:s@", "http://");
    shown_is("s3://b/a?b#c@d", "s3://b/a?b#c@d");
    shown_is("data/a?b", "data/a?b");
    assert_int_equal(remote_kind("HTTP"), REMOTE_NONE);
    assert_int_equal(remote_kind("https:/x"), REMOTE_NONE);
    assert_int_equal(remote_kind("./s3://b/k"), REMOTE_NONE);
    assert_int_equal(remote_kind("gs://b/k"), REMOTE_GS);
}

#define COMMIT "0123456789abcdef0123456789abcdef01234567"

/* Names of the Hub: each has the four parts after it, and is a list or not. */
static void test_hub_names(void **state)
{
    (void)state;
    static const struct {
        const char *name, *bucket, *revision, *key;
        bool list, pinned;
    } good[] = {
        {"hf://datasets/a/b", "datasets/a/b", "", "", true, false},
        {"hf://datasets/a/b/", "datasets/a/b", "", "", true, false},
        {"hf://datasets/a/b/x@y/z", "datasets/a/b", "", "x@y/z", false, false},
        {"hf://a.b/c-1_d@" COMMIT, "a.b/c-1_d", COMMIT, "", true, true},
        {"hf://datasets/a/b@" COMMIT "/x/*.gz", "datasets/a/b", COMMIT, "x/*.gz", true, true},
        {"hf://datasets/a/b@" COMMIT "0/x", "datasets/a/b", COMMIT "0", "x", false, false},
        {"hf://datasets/a/b@v1.0/x/", "datasets/a/b", "v1.0", "x/", true, false},
        {"hf://datasets/a/b@refs/convert/parquet/x/y", "datasets/a/b", "refs/convert/parquet", "x/y", false, false},
        {"hf://datasets/a/b@refs/pr/7", "datasets/a/b", "refs/pr/7", "", true, false},
        {"hf://datasets/a/b/..x/.y/...", "datasets/a/b", "", "..x/.y/...", false, false},
    };
    static const char *const bad[] = {"hf://",
                                      "hf:///",
                                      "hf://a",
                                      "hf://a/",
                                      "hf:///b",
                                      "hf://datasets/a",
                                      "hf://datasets/a@b/c",
                                      "hf://a/b@",
                                      "hf://a/b@/c",
                                      "hf://a/b//c",
                                      "hf://a/b/../c",
                                      "hf://a/b/c/..",
                                      "hf://a/b/./c",
                                      "hf://a/b/x\ny",
                                      "hf://../b",
                                      "hf://a/.b",
                                      "hf://-a/b",
                                      "hf://a/b?c",
                                      "hf://a/b c",
                                      "hf://a/b@x/../y",
                                      "hf://a/b@refs/pr/../x",
                                      "hf://a/b@refs/pr//x",
                                      "hf://a b/c"};
    struct remote_object object;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(remote_object_of(good[i].name, &object, NULL), TOKMAP_OK);
        assert_int_equal(object.bucket_bytes, strlen(good[i].bucket));
        assert_memory_equal(object.bucket, good[i].bucket, object.bucket_bytes);
        assert_int_equal(object.revision_bytes, strlen(good[i].revision));
        assert_memory_equal(object.revision, good[i].revision, object.revision_bytes);
        assert_string_equal(object.key, good[i].key);
        assert_int_equal(object.pinned, good[i].pinned);
        assert_int_equal(remote_is_list(good[i].name), good[i].list);
        assert_true(object.root_bytes + strlen(object.key) <= strlen(good[i].name));
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (remote_object_of(bad[i], &object, NULL) != TOKMAP_ERROR_ARGUMENT)
            fail_msg("%s is a name", bad[i]);
}

static void test_objects(void **state)
{
    (void)state;
    static const char *const lists[] = {"s3://b", "s3://b/", "gs://b/x/", "s3://b/x*", "s3://b/[x]/y"};
    static const char *const single[] = {"s3://b/x", "gs://b/x/y", "http://h/x/", "https://h/*", "x/", "x*"};
    struct remote_object object;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        assert_true(remote_is_list(lists[i]));
    for (size_t i = 0; i < sizeof single / sizeof single[0]; i++)
        assert_false(remote_is_list(single[i]));
    assert_int_equal(remote_object_of("s3://my.bucket/a//b", &object, NULL), TOKMAP_OK);
    assert_int_equal(object.bucket_bytes, 9);
    assert_string_equal(object.key, "a//b");
    assert_int_equal(remote_object_of("s3://b", &object, NULL), TOKMAP_OK);
    assert_string_equal(object.key, "");
    assert_int_equal(remote_object_of("s3://b@c/d", &object, NULL), TOKMAP_ERROR_ARGUMENT);
    struct bytes_buffer text = {0};
    assert_true(remote_escape(&text, "a/\xc3\xa9 +%~", 8, true));
    assert_memory_equal(text.bytes, "a/%C3%A9%20%2B%25~", text.count);
    assert_int_equal(text.count, 18);
    bytes_free(&text);
}

/* Takes a document to its end, and counts the events. The document is in memory of exactly its size, so that a
 * sanitizer sees a read beyond it. */
static enum xml_event document_scan(const char *bytes, size_t count, struct bytes_buffer *texts)
{
    char *exact = malloc(count ? count : 1);
    struct xml_scan scan;
    enum xml_event event;
    size_t events = 0;
    assert_non_null(exact);
    memcpy(exact, bytes, count);
    xml_begin(&scan, exact, count);
    do {
        event = xml_next(&scan);
        assert_true(++events <= 2 * count + 2);
        assert_true(scan.depth <= XML_DEPTH_MOST);
        if (event == XML_TEXT)
            (void)xml_text(&scan, texts);
    } while (event != XML_END && event != XML_WRONG);
    free(exact);
    return event;
}

static const char list[] = "<?xml version='1.0'?><!-- > --><L xmlns=\"x>y\"><Contents><Key>a&amp;&#x41;&#66;</Key><x/>"
                           "<n:Size a='1'>7</n:Size></Contents><IsTruncated>false</IsTruncated></L>\n";

static void test_xml(void **state)
{
    (void)state;
    struct bytes_buffer texts = {0};
    assert_int_equal(document_scan(list, sizeof list - 1, &texts), XML_END);
    assert_int_equal(texts.count, 4 + 1 + 5);
    assert_memory_equal(texts.bytes, "a&AB7false", 10);
    for (size_t cut = 0; cut < sizeof list - 3; cut++)
        assert_int_equal(document_scan(list, cut, &texts), XML_WRONG);
    bytes_free(&texts);
}

static void test_xml_mutated(void **state)
{
    (void)state;
    static const char marks[] = "<>/&;\"'!?-#x\0 =";
    uint64_t seed = 12345;
    struct bytes_buffer texts = {0};
    for (unsigned round = 0; round < 20000; round++) {
        char document[sizeof list];
        memcpy(document, list, sizeof list);
        for (unsigned i = 0; i <= round % 4; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            document[(seed >> 33) % (sizeof list - 1)] = marks[(seed >> 20) % (sizeof marks - 1)];
        }
        texts.count = 0;
        (void)document_scan(document, sizeof list - 1, &texts);
        assert_true(texts.count < sizeof list);
    }
    bytes_free(&texts);
}

/* Answers one request. Returns the URL. */
static const char *server_once(char url[64])
{
    static const char answer[] = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    char request[4096];
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, bytes), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &bytes), 0);
    if (!fork()) {
        const int fd = accept(listener, NULL, NULL);
        _exit(read(fd, request, sizeof request) <= 0 || write(fd, answer, sizeof answer - 1) <= 0);
    }
    (void)close(listener);
    (void)snprintf(url, 64, "http://127.0.0.1:%d/x", ntohs(address.sin_port));
    return url;
}

/* A name may be misspelled, unless it is that of data that is being read, or a server has answered before. */
static void test_a_server_that_is_away(void **state)
{
    (void)state;
    uint8_t byte;
    struct remote_client client;
    assert_int_equal(setenv("AWS_MAX_ATTEMPTS", "5", 1), 0);
    remote_client_init(&client, NULL, NULL, NULL);
    for (int known = 0; known < 3; known++) {
        char tag[HTTP_TAG_MOST] = "", url[64];
        struct tokmap_error error = {0};
        struct remote_range range = {.count = 1, .into = &byte, .tag = tag, .known = known == 1};
        if (known == 2)
            assert_int_equal(remote_range_read(&client, server_once(url), &range, &error), TOKMAP_ERROR_NOT_FOUND);
        const enum tokmap_status status = remote_range_read(&client, "http://127.0.0.1:1/x", &range, &error);
        if (status == TOKMAP_ERROR_UNSUPPORTED) /* no libcurl */
            skip();
        assert_int_equal(status, TOKMAP_ERROR_IO);
        assert_non_null(strstr(error.message, known ? "attempt 5 " : "attempt 4 "));
    }
    remote_client_free(&client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shown), cmocka_unit_test(test_hub_names),   cmocka_unit_test(test_objects),
        cmocka_unit_test(test_xml),   cmocka_unit_test(test_xml_mutated), cmocka_unit_test(test_a_server_that_is_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
