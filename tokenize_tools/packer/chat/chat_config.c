/* SPDX-License-Identifier: MIT */
/* chat_config.c - see chat_config.h. */
#include "chat_config.h"

#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "platform/os.h"
#include "text/json_scan.h"
#include "text/path.h"
#include "text/utf8.h"

#define CONFIG_NAME "tokenizer_config.json"

void chat_config_free(struct chat_config *config)
{
    free(config->jinja);
    free(config->jinja_path);
    free(config->bos);
    free(config->eos);
    *config = (struct chat_config){0};
}

/* Reads a whole file; the caller frees *text. */
static enum tokmap_status file_read(const char *path, char **text, size_t *bytes, struct tokmap_error *error)
{
    int fd, failed = os_open(path, OS_READ_NOW, &fd);
    struct os_stat about;
    enum tokmap_status status = TOKMAP_OK;
    *text = NULL;
    *bytes = 0;
    if (failed)
        return error_set_system(error, failed, path, TOKMAP_NO_OFFSET, "the file cannot be opened");
    failed = os_fstat(fd, &about);
    if (!failed && about.kind != OS_KIND_FILE)
        status = error_set(error, TOKMAP_ERROR_FORMAT, path, TOKMAP_NO_OFFSET,
                           "this is not a regular file, so it cannot be read as a chat template");
    else if (!failed && about.bytes > CHAT_CONFIG_MOST)
        status =
            error_set(error, TOKMAP_ERROR_LIMIT, path, TOKMAP_NO_OFFSET,
                      "the file has %" PRIu64 " bytes; files with chat templates have at most 64 MiB", about.bytes);
    else if (!failed && !(*text = malloc((size_t)about.bytes + 1)))
        status = error_set_memory(error, "a chat template", about.bytes);
    else if (!failed)
        failed = os_pread(fd, *text, (size_t)about.bytes, 0, bytes);
    os_close(fd);
    if (failed)
        status = error_set_system(error, failed, path, TOKMAP_NO_OFFSET, "the file cannot be read");
    if (!status && utf8_valid_prefix(*text, *bytes) != *bytes)
        status = error_set(error, TOKMAP_ERROR_FORMAT, path, utf8_valid_prefix(*text, *bytes),
                           "the file is not valid UTF-8");
    if (status) {
        free(*text);
        *text = NULL;
    }
    return status;
}

/* Contents of a JSON file. The strings point into its text. */
struct found {
    struct json_string jinja, bos, eos;
    bool has_jinja, has_bos, has_eos, several;
};

/* Takes one of several templates: {"name": ..., "template": ...}. */
static bool named_read(struct json_scan *scan, struct found *found)
{
    struct json_string name, key = {0}, text = {0};
    if (!json_enter_object(scan))
        return false;
    while (json_member(scan, &name))
        if (json_name_is(&name, "name")       ? !json_text(scan, &key)
            : json_name_is(&name, "template") ? !json_text(scan, &text)
                                              : !json_skip(scan))
            return false;
    if (json_equals(&key, "default", 7) && text.bytes) {
        found->jinja = text;
        found->has_jinja = true;
    }
    return !scan->fault.reason;
}

static bool jinja_read(struct json_scan *scan, struct found *found)
{
    const enum json_kind kind = json_kind(scan);
    if (kind == JSON_STRING) {
        found->has_jinja = true;
        return json_text(scan, &found->jinja);
    }
    if (kind != JSON_ARRAY)
        return json_skip(scan);
    found->several = true;
    if (!json_enter_array(scan))
        return false;
    while (json_element(scan))
        if (!named_read(scan, found))
            return false;
    return !scan->fault.reason;
}

/* Takes a token: a string, or an object with it in "content". */
static bool token_read(struct json_scan *scan, struct json_string *text, bool *has)
{
    struct json_string name;
    const enum json_kind kind = json_kind(scan);
    if (kind == JSON_STRING) {
        *has = true;
        return json_text(scan, text);
    }
    if (kind != JSON_OBJECT)
        return json_skip(scan);
    if (!json_enter_object(scan))
        return false;
    while (json_member(scan, &name)) {
        if (!json_name_is(&name, "content")) {
            if (!json_skip(scan))
                return false;
            continue;
        }
        if (!json_text(scan, text))
            return false;
        *has = true;
    }
    return !scan->fault.reason;
}

static bool found_read(struct json_scan *scan, struct found *found)
{
    struct json_string name;
    if (!json_enter_object(scan))
        return false;
    while (json_member(scan, &name))
        if (json_name_is(&name, "chat_template") ? !jinja_read(scan, found)
            : json_name_is(&name, "bos_token")   ? !token_read(scan, &found->bos, &found->has_bos)
            : json_name_is(&name, "eos_token")   ? !token_read(scan, &found->eos, &found->has_eos)
                                                 : !json_skip(scan))
            return false;
    return json_end(scan);
}

/* Returns a terminated copy of a string, decoded. */
static char *string_copy(const struct json_string *string, size_t *bytes)
{
    char *made = malloc(string->count + 1);
    size_t lone = 0, first;
    if (!made)
        return NULL;
    memcpy(made, string->bytes, string->count);
    *bytes = string->escaped ? json_unescape(made, string->count, &lone, &first) : string->count;
    made[*bytes] = 0;
    return made;
}

/* Adds what the JSON text of a file says to *config, except what that has already. */
static enum tokmap_status json_add(struct chat_config *config, const char *path, const char *text, size_t count,
                                   struct tokmap_error *error)
{
    struct found found = {0};
    struct json_scan scan;
    size_t bytes;
    json_begin(&scan, text, count);
    if (!found_read(&scan, &found))
        return error_set(error, TOKMAP_ERROR_FORMAT, path, scan.fault.offset, "%s", scan.fault.reason);
    bool good = true;
    if (found.has_jinja && !config->jinja) {
        config->jinja = string_copy(&found.jinja, &config->jinja_bytes);
        config->jinja_path = strdup(path);
        config->several = found.several;
        good = config->jinja && config->jinja_path;
    }
    if (found.has_bos && !config->bos)
        good &= (config->bos = string_copy(&found.bos, &bytes)) != NULL;
    if (found.has_eos && !config->eos)
        good &= (config->eos = string_copy(&found.eos, &bytes)) != NULL;
    return good ? TOKMAP_OK : error_set_memory(error, "a chat template", 0);
}

/* Adds a file, JSON or Jinja. */
static enum tokmap_status file_add(struct chat_config *config, const char *path, struct tokmap_error *error)
{
    char *text;
    size_t bytes;
    enum tokmap_status status = file_read(path, &text, &bytes, error);
    if (status)
        return status;
    size_t at = 0;
    while (at < bytes && strchr(" \t\r\n", text[at]))
        at++;
    const char *ending = strrchr(path_name(path), '.');
    const bool jinja = ending && (!strcmp(ending, ".jinja") || !strcmp(ending, ".jinja2"));
    /* A template begins with text or with {{, {%, {#, which no JSON object does. */
    if (jinja || at == bytes || text[at] != '{' || (at + 1 < bytes && strchr("{%#", text[at + 1]))) {
        if (config->jinja) {
            free(text);
            return TOKMAP_OK;
        }
        config->jinja = text;
        config->jinja_bytes = bytes;
        config->jinja_path = strdup(path);
        return config->jinja_path ? TOKMAP_OK : error_set_memory(error, "a chat template", 0);
    }
    status = json_add(config, path, text, bytes, error);
    free(text);
    return status;
}

/* Adds the file of this name in a folder, if it exists. */
static enum tokmap_status folder_add(struct chat_config *config, const char *folder, const char *name,
                                     struct tokmap_error *error)
{
    struct os_stat about;
    char *path = path_in(folder, name);
    if (!path)
        return error_set_memory(error, "the path of a chat template", 0);
    const enum tokmap_status status = os_stat(path, &about) ? TOKMAP_OK : file_add(config, path, error);
    free(path);
    return status;
}

/* Adds the tokens, but not the template, of the configuration beside a file. */
static enum tokmap_status tokens_add(struct chat_config *config, const char *path, struct tokmap_error *error)
{
    struct chat_config beside = {0};
    char *folder = path_folder(path);
    if (!folder)
        return error_set_memory(error, "the path of a chat template", 0);
    const enum tokmap_status status = folder_add(&beside, folder, CONFIG_NAME, error);
    free(folder);
    if (!config->bos) {
        config->bos = beside.bos;
        beside.bos = NULL;
    }
    if (!config->eos) {
        config->eos = beside.eos;
        beside.eos = NULL;
    }
    chat_config_free(&beside);
    return status;
}

enum tokmap_status chat_config_read(struct chat_config *config, const char *path, struct tokmap_error *error)
{
    static const char *const names[] = {"chat_template.jinja", "chat_template.json", CONFIG_NAME};
    struct os_stat about;
    *config = (struct chat_config){0};
    const int failed = os_stat(path, &about);
    if (failed)
        return error_set_system(error, failed, path, TOKMAP_NO_OFFSET, "the chat template cannot be opened");
    enum tokmap_status status = TOKMAP_OK;
    if (about.kind == OS_KIND_FOLDER) {
        for (size_t i = 0; i < sizeof names / sizeof *names && !status; i++)
            status = folder_add(config, path, names[i], error);
    } else {
        status = file_add(config, path, error);
        if (!status && (!config->bos || !config->eos))
            status = tokens_add(config, path, error);
    }
    if (status)
        chat_config_free(config);
    return status;
}
