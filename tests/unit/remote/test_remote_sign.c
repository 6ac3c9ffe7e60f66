/* SPDX-License-Identifier: MIT */
/* Signatures of requests for object storage, against published values: of NIST for SHA-256, of RFC 4231 for HMAC, and
 * of Amazon's documentation for signatures ("Authenticating Requests: Using the Authorization Header"). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "remote/digests.h"
#include "remote/remote_sign.h"

static void digest_is(const uint8_t digest[SHA256_BYTES], const char *wanted)
{
    char text[2 * SHA256_BYTES + 1];
    for (size_t i = 0; i < SHA256_BYTES; i++)
        (void)snprintf(text + 2 * i, 3, "%02x", digest[i]);
    assert_string_equal(text, wanted);
}

static void hash_is(const char *text, const char *wanted)
{
    struct sha256 hash;
    uint8_t digest[SHA256_BYTES];
    sha256_begin(&hash);
    sha256_add(&hash, text, strlen(text));
    sha256_end(&hash, digest);
    digest_is(digest, wanted);
}

static void test_hash(void **state)
{
    (void)state;
    hash_is("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    hash_is("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    hash_is("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

/* Texts of RFC 1321, and 80 digits, which need two blocks. */
static void test_md5(void **state)
{
    (void)state;
    static const char *const texts[][2] = {
        {"", "d41d8cd98f00b204e9800998ecf8427e"},
        {"abc", "900150983cd24fb0d6963f7d28e17f72"},
        {"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", "d174ab98d277d9f5a5611c2c9f419d9f"},
        {"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
         "57edf4a22be3c955ac49da2e2107b67a"}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        uint8_t digest[MD5_BYTES];
        char hex[2 * MD5_BYTES + 1];
        md5(texts[i][0], strlen(texts[i][0]), digest);
        for (size_t k = 0; k < MD5_BYTES; k++)
            (void)snprintf(hex + 2 * k, 3, "%02x", digest[k]);
        assert_string_equal(hex, texts[i][1]);
    }
}

/* A million times "a", in pieces of all lengths, so that each place in a block is the beginning and the end of one. */
static void test_hash_pieces(void **state)
{
    (void)state;
    char text[200];
    struct sha256 hash;
    uint8_t digest[SHA256_BYTES];
    memset(text, 'a', sizeof text);
    sha256_begin(&hash);
    for (size_t left = 1000000, take = 0; left; left -= take) {
        take = (take + 7) % sizeof text;
        take = take < left ? take : left;
        sha256_add(&hash, text, take);
    }
    sha256_end(&hash, digest);
    digest_is(digest, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void test_hmac(void **state)
{
    (void)state;
    static const char text[] = "Test Using Larger Than Block-Size Key - Hash Key First";
    uint8_t key[131], digest[SHA256_BYTES];
    sha256_hmac("Jefe", 4, "what do ya want for nothing?", 28, digest);
    digest_is(digest, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof key);
    sha256_hmac(key, sizeof key, text, sizeof text - 1, digest);
    digest_is(digest, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    memset(key, 0x0b, sizeof key);
    sha256_hmac(key, 20, "Hi There", 8, key);
    digest_is(key, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
}

#define EXAMPLE_SECONDS 1369353600u /* 2013-05-24 00:00 UTC */
static const struct remote_signer example = {
    .key = "AKIAIOSFODNN7EXAMPLE", .secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", .region = "us-east-1"};

/* Signs a GET and compares line `at` of the header. */
static void line_is(const struct remote_signer *signer, const char *url, unsigned at, const char *wanted)
{
    struct bytes_buffer header = {0};
    unsigned lines;
    assert_true(remote_sign(signer, "GET", url, NULL, 0, EXAMPLE_SECONDS, &header, &lines));
    assert_int_equal(lines, signer->token ? 5 : 4);
    size_t ends = 0;
    for (size_t i = 0; i < header.count; i++)
        ends += !header.bytes[i];
    assert_int_equal(ends, lines);
    const char *line = (const char *)header.bytes;
    for (; at; at--)
        line += strlen(line) + 1;
    assert_string_equal(line, wanted);
    bytes_free(&header);
}

#define SIGNED                                                                                                         \
    "Authorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "             \
    "SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature="

static void test_signatures(void **state)
{
    (void)state;
    const struct remote_signer session = {example.key, example.secret, example.region, "a/token+=", false};
    line_is(&example, "https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J", 3,
            SIGNED "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
    line_is(&example, "https://examplebucket.s3.amazonaws.com?lifecycle=", 3,
            SIGNED "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    line_is(&example, "https://examplebucket.s3.amazonaws.com:443/?lifecycle=", 3,
            SIGNED "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    line_is(&example, "https://h.example:443/k", 0, "Host: h.example");
    line_is(&example, "http://h.example:80/k", 0, "Host: h.example");
    line_is(&example, "http://h.example:443/k", 0, "Host: h.example:443");
    line_is(&example, "http://[::1]:9000/k", 0, "Host: [::1]:9000");
    line_is(&example, "http://h/k", 2, "x-amz-date: 20130524T000000Z");
    line_is(&session, "http://h/k", 3, "x-amz-security-token: a/token+=");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hash), cmocka_unit_test(test_md5),        cmocka_unit_test(test_hash_pieces),
        cmocka_unit_test(test_hmac), cmocka_unit_test(test_signatures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
