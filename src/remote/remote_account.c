/* SPDX-License-Identifier: MIT */
#include "remote_account.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "platform/os.h"

#define FILE_MOST ((size_t)1 << 20)
#define VALUE_MOST ((size_t)8 << 10)

/* Returns the value of a variable that is set and not empty, or NULL. */
static const char *variable(const char *name)
{
    const char *value = secure_getenv(name);
    return value && *value ? value : NULL;
}

static void wipe(char **text)
{
    if (*text)
        explicit_bzero(*text, strlen(*text));
    free(*text);
    *text = NULL;
}

void remote_account_clear(struct remote_account *account)
{
    wipe(&account->key);
    wipe(&account->secret);
    wipe(&account->token);
    free(account->endpoint);
    *account = (struct remote_account){.kind = REMOTE_NONE};
}

static bool is_region(const char *region)
{
    const size_t bytes = strlen(region);
    return bytes && bytes < ACCOUNT_REGION_MOST && strspn(region, "abcdefghijklmnopqrstuvwxyz0123456789-") == bytes;
}

bool remote_account_move(struct remote_account *account, const char *region)
{
    if (!is_region(region) || !strcmp(region, account->region))
        return false;
    memcpy(account->region, region, strlen(region) + 1);
    return true;
}

/* ---- the files of the AWS tools ---- */

/* One profile, as far as a file has it. Values point into the text of the file. */
struct profile {
    bool found;
    char *key, *secret, *token, *region, *endpoint;
};

static char *trimmed(char *begin, char *end)
{
    while (begin < end && (*begin == ' ' || *begin == '\t'))
        begin++;
    while (end > begin && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
        end--;
    *end = '\0';
    return begin;
}

/* Returns true if a line [NAME] or [profile NAME] begins the wanted profile. The first of them is also that of other
 * files. */
static bool section_is(char *line, const char *wanted)
{
    char *end = strchr(line, ']');
    if (!end)
        return false;
    char *name = trimmed(line + 1, end);
    if (!strncmp(name, "profile ", 8) || !strncmp(name, "profile\t", 8))
        name = trimmed(name + 8, name + strlen(name));
    return !strcmp(name, wanted);
}

/* Reads the lines "NAME = VALUE" of the wanted profile. Lines that are indented belong to the value before them, and
 * name nothing that is needed here. */
static void profile_read(char *text, const char *wanted, struct profile *profile)
{
    const struct {
        const char *name;
        char **value;
    } fields[] = {{"aws_access_key_id", &profile->key},
                  {"aws_secret_access_key", &profile->secret},
                  {"aws_session_token", &profile->token},
                  {"endpoint_url", &profile->endpoint},
                  {"region", &profile->region}};
    bool inside = false;
    for (char *line = text, *next; line; line = next) {
        char *newline = strchr(line, '\n');
        next = newline ? newline + 1 : NULL;
        if (newline)
            *newline = '\0';
        if (*line == '[') {
            inside = section_is(line, wanted);
            profile->found |= inside;
            continue;
        }
        char *equals = strchr(line, '=');
        if (!inside || !equals || *line == ' ' || *line == '\t' || *line == '#' || *line == ';')
            continue;
        char *value = trimmed(equals + 1, line + strlen(line));
        const char *name = trimmed(line, equals);
        for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
            if (!strcmp(name, fields[i].name) && *value)
                *fields[i].value = value;
    }
}

/* Reads a file into memory. *text is NULL if it does not exist. Returns 0 or an errno value. */
static int text_read(const char *path, char **text)
{
    int fd;
    size_t got = 0;
    *text = NULL;
    int system = os_open(path, OS_READ_NOW, &fd);
    if (system)
        return system == ENOENT || system == ENOTDIR ? 0 : system;
    char *bytes = malloc(FILE_MOST + 1);
    system = bytes ? os_pread(fd, bytes, FILE_MOST, 0, &got) : ENOMEM;
    os_close(fd);
    if (!system && got == FILE_MOST)
        system = EFBIG;
    if (system) {
        free(bytes);
        return system;
    }
    bytes[got] = '\0';
    *text = bytes;
    return 0;
}

/* Copies a value over one that is not set yet. */
static bool take(char **into, const char *value)
{
    if (*into || !value)
        return true;
    *into = strdup(value);
    return *into != NULL;
}

/* Reads the profile from one file. *found: it is there. */
static enum tokmap_status file_take(struct remote_account *account, const char *given, const char *usual,
                                    const char *wanted, bool with_keys, bool *found, struct tokmap_error *error)
{
    char path[4096];
    char *text;
    const char *home = variable("HOME");
    if (!given && !home)
        return TOKMAP_OK;
    const int length =
        given ? snprintf(path, sizeof path, "%s", given) : snprintf(path, sizeof path, "%s/%s", home, usual);
    const int system = length < 0 || (size_t)length >= sizeof path ? ENAMETOOLONG : text_read(path, &text);
    if (system)
        return error_set_system(error, system, path, TOKMAP_NO_OFFSET,
                                "the settings of the AWS tools cannot be read; correct the file, or set "
                                "AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE to others");
    if (!text)
        return TOKMAP_OK;
    struct profile profile = {0};
    profile_read(text, wanted, &profile);
    *found |= profile.found;
    bool good = take(&account->endpoint, profile.endpoint);
    if (with_keys && !account->key && !account->secret)
        good = good && take(&account->key, profile.key) && take(&account->secret, profile.secret) &&
               take(&account->token, profile.token);
    if (!*account->region && profile.region && is_region(profile.region))
        memcpy(account->region, profile.region, strlen(profile.region) + 1);
    explicit_bzero(text, strlen(text));
    free(text);
    return good ? TOKMAP_OK : error_set_memory(error, "the settings of object storage", 0);
}

/* ---- all of it ---- */

static bool is_printable(const char *text)
{
    for (; *text; text++)
        if (*text <= ' ' || *text > '~')
            return false;
    return true;
}

/* Checks what was found, which becomes part of headers and URLs. */
static enum tokmap_status account_check(const struct remote_account *account, const char *name,
                                        struct tokmap_error *error)
{
    const bool s3 = account->kind == REMOTE_S3;
    const char *endpoint = account->endpoint;
    if (!account->key != !account->secret)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, name, TOKMAP_NO_OFFSET,
                         "half of the key for object storage is missing: set %s",
                         s3 ? (account->key ? "AWS_SECRET_ACCESS_KEY (or aws_secret_access_key in ~/.aws/credentials)"
                                            : "AWS_ACCESS_KEY_ID (or aws_access_key_id in ~/.aws/credentials)")
                            : (account->key ? "GCS_SECRET" : "GCS_KEY"));
    const char *const secrets[] = {account->key, account->secret, account->token};
    for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++)
        if (secrets[i] && (!is_printable(secrets[i]) || strlen(secrets[i]) > VALUE_MOST))
            return error_set(error, TOKMAP_ERROR_ARGUMENT, name, TOKMAP_NO_OFFSET,
                             "the %s for remote files contains a space, a control character, or more than 8 KiB; set "
                             "it again",
                             i == 0   ? "key"
                             : i == 1 ? "secret"
                                      : "token");
    if (endpoint && ((strncmp(endpoint, "http://", 7) && strncmp(endpoint, "https://", 8)) || !is_printable(endpoint) ||
                     strpbrk(endpoint, "?#@") || strlen(endpoint) > VALUE_MOST))
        return error_set(error, TOKMAP_ERROR_ARGUMENT, name, TOKMAP_NO_OFFSET,
                         "the address in %s must be http://HOST:PORT or https://HOST:PORT",
                         s3                           ? "AWS_ENDPOINT_URL"
                         : account->kind == REMOTE_GS ? "STORAGE_EMULATOR_HOST"
                                                      : "HF_ENDPOINT");
    return TOKMAP_OK;
}

static enum tokmap_status s3_load(struct remote_account *account, const char *name, struct tokmap_error *error)
{
    const char *profile = variable("AWS_PROFILE"), *region = variable("AWS_REGION");
    bool found = false;
    if (!region)
        region = variable("AWS_DEFAULT_REGION");
    if (region && !remote_account_move(account, region))
        return error_set(
            error, TOKMAP_ERROR_ARGUMENT, name, TOKMAP_NO_OFFSET,
            "AWS_REGION (or AWS_DEFAULT_REGION) is not the name of a region; set it to one like us-east-1");
    if (!take(&account->key, variable("AWS_ACCESS_KEY_ID")) ||
        !take(&account->secret, variable("AWS_SECRET_ACCESS_KEY")) ||
        (account->key && !take(&account->token, variable("AWS_SESSION_TOKEN"))) ||
        !take(&account->endpoint, variable("AWS_ENDPOINT_URL_S3")) ||
        !take(&account->endpoint, variable("AWS_ENDPOINT_URL")))
        return error_set_memory(error, "the settings of object storage", 0);
    const bool with_keys = !account->key && !account->secret;
    const char *wanted = profile ? profile : "default";
    enum tokmap_status status = file_take(account, variable("AWS_SHARED_CREDENTIALS_FILE"), ".aws/credentials", wanted,
                                          with_keys, &found, error);
    if (!status)
        status = file_take(account, variable("AWS_CONFIG_FILE"), ".aws/config", wanted, with_keys, &found, error);
    if (!status && profile && !found && with_keys)
        status = error_set(error, TOKMAP_ERROR_ARGUMENT, name, TOKMAP_NO_OFFSET,
                           "AWS_PROFILE is '%.100s', and neither ~/.aws/credentials nor ~/.aws/config has that profile",
                           profile);
    if (!*account->region)
        memcpy(account->region, "us-east-1", sizeof "us-east-1");
    return status;
}

static enum tokmap_status gs_load(struct remote_account *account, struct tokmap_error *error)
{
    const bool other = !variable("GCS_KEY") && !variable("GCS_SECRET");
    const char *endpoint = variable("STORAGE_EMULATOR_HOST");
    char address[1024];
    if (endpoint && !strstr(endpoint, "://")) { /* Google's libraries also take HOST:PORT */
        (void)snprintf(address, sizeof address, "http://%s", endpoint);
        endpoint = address;
    }
    memcpy(account->region, "auto", sizeof "auto");
    return take(&account->key, variable(other ? "GS_ACCESS_KEY_ID" : "GCS_KEY")) &&
                   take(&account->secret, variable(other ? "GS_SECRET_ACCESS_KEY" : "GCS_SECRET")) &&
                   take(&account->endpoint, endpoint ? endpoint : "https://storage.googleapis.com")
               ? TOKMAP_OK
               : error_set_memory(error, "the settings of object storage", 0);
}

/* Reads the token from the file in which `hf auth login` keeps it. */
static enum tokmap_status hub_load(struct remote_account *account, struct tokmap_error *error)
{
    static const char *const files[][2] = {{"HF_TOKEN_PATH", ""},
                                           {"HF_HOME", "/token"},
                                           {"XDG_CACHE_HOME", "/huggingface/token"},
                                           {"HOME", "/.cache/huggingface/token"}};
    const char *endpoint = variable("HF_ENDPOINT");
    char path[4096], *text = NULL;
    size_t i = 0;
    bool good = take(&account->token, variable("HF_TOKEN")) &&
                take(&account->endpoint, endpoint ? endpoint : "https://huggingface.co");
    while (i < sizeof files / sizeof files[0] && !variable(files[i][0]))
        i++;
    if (good && !account->token && i < sizeof files / sizeof files[0]) {
        const int length = snprintf(path, sizeof path, "%s%s", variable(files[i][0]), files[i][1]);
        const int system = (size_t)length >= sizeof path ? ENAMETOOLONG : text_read(path, &text);
        if (system)
            return error_set_system(error, system, path, TOKMAP_NO_OFFSET,
                                    "the token of the Hugging Face Hub cannot be read; correct the file, or set "
                                    "HF_TOKEN");
        const char *token = text ? trimmed(text, text + strcspn(text, "\n")) : "";
        good = !*token || take(&account->token, token);
        wipe(&text);
    }
    return good ? TOKMAP_OK : error_set_memory(error, "the settings of the Hugging Face Hub", 0);
}

enum tokmap_status remote_account_load(struct remote_account *account, enum remote_kind kind, const char *name,
                                       struct tokmap_error *error)
{
    remote_account_clear(account);
    account->kind = kind;
    enum tokmap_status status = kind == REMOTE_S3    ? s3_load(account, name, error)
                                : kind == REMOTE_HUB ? hub_load(account, error)
                                                     : gs_load(account, error);
    if (!status)
        status = account_check(account, name, error);
    if (status) {
        remote_account_clear(account);
        return status;
    }
    if (account->endpoint)
        for (size_t end = strlen(account->endpoint); end && account->endpoint[end - 1] == '/'; end--)
            account->endpoint[end - 1] = '\0';
    return TOKMAP_OK;
}

/* Returns true if a bucket's name can begin a host's name. The certificate of *.s3.REGION.amazonaws.com and the rules
 * for hosts allow only some names before the dot. */
static bool is_host_label(const struct remote_object *object)
{
    size_t plain = 0;
    while (plain < object->bucket_bytes && strchr("abcdefghijklmnopqrstuvwxyz0123456789-", object->bucket[plain]))
        plain++;
    return plain == object->bucket_bytes && plain < 64;
}

bool remote_account_is_at(const struct remote_account *account, const char *url)
{
    const size_t bytes = strlen(account->endpoint);
    return !strncmp(url, account->endpoint, bytes) && url[bytes] == '/';
}

bool remote_account_url(const struct remote_account *account, const struct remote_object *object, const char *query,
                        bool of_object, struct bytes_buffer *url)
{
    const int bucket = (int)object->bucket_bytes;
    if (account->kind == REMOTE_HUB) {
        const bool made =
            bytes_append(url, account->endpoint, strlen(account->endpoint)) && bytes_append(url, "/", 1) &&
            (query ? bytes_append(url, query, strlen(query))
                   : bytes_append(url, object->bucket, object->bucket_bytes) && bytes_append(url, "/resolve/", 9) &&
                         remote_escape(url, object->revision, object->revision_bytes, false) &&
                         bytes_append(url, "/", 1) && remote_escape(url, object->key, strlen(object->key), true)) &&
            bytes_append(url, "", 1);
        url->count -= made;
        return made;
    }
    const bool label = !account->endpoint && is_host_label(object);
    const char *top = strncmp(account->region, "cn-", 3) ? "amazonaws.com" : "amazonaws.com.cn";
    char host[VALUE_MOST + 512];
    if (account->endpoint)
        (void)snprintf(host, sizeof host, "%s/%.*s/", account->endpoint, bucket, object->bucket);
    else if (label)
        (void)snprintf(host, sizeof host, "https://%.*s.s3.%s.%s/", bucket, object->bucket, account->region, top);
    else
        (void)snprintf(host, sizeof host, "https://s3.%s.%s/%.*s/", account->region, top, bucket, object->bucket);
    /* The path of a bucket has no slash at its end, unless it is the whole path. */
    const bool of_bucket = query && !of_object;
    const size_t bytes = strlen(host) - (of_bucket && !label);
    const bool good =
        bytes_append(url, host, bytes) && (of_bucket || remote_escape(url, object->key, strlen(object->key), true)) &&
        (!query || (bytes_append(url, "?", 1) && bytes_append(url, query, strlen(query)))) && bytes_append(url, "", 1);
    url->count -= good;
    return good;
}

const char *remote_account_advice(const struct remote_account *account)
{
    if (account->kind == REMOTE_GS)
        return account->key ? "the HMAC key in GCS_KEY and GCS_SECRET may not do this, or they do not belong together"
                            : "GCS_KEY and GCS_SECRET, the parts of an HMAC key, are not set";
    return account->token ? "the key that was found may not do this, or is wrong, or its session token has expired"
           : account->key
               ? "the key that was found may not do this, is unknown there, does not belong to its secret, or is of a "
                 "session whose AWS_SESSION_TOKEN is not set"
               : "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set, and ~/.aws/credentials has no key for the "
                 "profile; where keys come from elsewhere, 'aws configure export-credentials --format env' prints them";
}
