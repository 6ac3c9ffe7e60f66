/* pair_kind.c - see pair_kind.h. */
#include "pair_kind.h"

#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "platform/os.h"
#include "text/code_point.h"
#include "text/path.h"
#include "unicode/byte_alphabet.h"
#include "vocabulary_file.h"

#define KINDS "tokmap reads two files only as byte-level BPE of GPT-2's kind"

/* How many bytes of a text a message prints. */
static int shown(size_t bytes)
{
    return bytes < 64 ? (int)bytes : 64;
}

/* ---- merges ---- */

enum byte_class { OTHER, LETTER, DIGIT, PUNCTUATION, SPACE };

static enum byte_class class_of(int byte)
{
    if ((byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z'))
        return LETTER;
    if (byte >= '0' && byte <= '9')
        return DIGIT;
    if (byte == ' ' || (byte >= '\t' && byte <= '\r'))
        return SPACE;
    return byte > ' ' && byte < 0x7F && byte != '\'' ? PUNCTUATION : OTHER;
}

/* Returns whether GPT-2's pattern always splits a text between two characters of these classes. A space before a word
 * belongs to it. */
static bool always_apart(enum byte_class before, enum byte_class next)
{
    return before != OTHER && next != OTHER && before != next && before != SPACE;
}

bool pair_merge_check(struct json_file *file, const char *line, size_t bytes, uint64_t number)
{
    const unsigned long long merge = (unsigned long long)number;
    const uint8_t *text = (const uint8_t *)line;
    enum byte_class before = OTHER;
    if (bytes && memmem(line, bytes, "</w>", 4))
        return json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED,
                                "merge %llu (counted from 0) marks the end of a word with </w>, as CLIP's and GPT-1's "
                                "do; " KINDS ", and cannot read this kind",
                                merge);
    for (size_t at = 0, length; at < bytes; at += length) {
        length = 1;
        if (text[at] == ' ')
            continue;
        const int byte = character_byte(code_point_get(text + at, &length));
        if (byte < 0)
            return json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED,
                                    "merge %llu (counted from 0) has the character '%.*s', which stands for no byte, "
                                    "so the two files are not of a byte-level vocabulary; " KINDS
                                    "; name the tokenizer.json of this vocabulary",
                                    merge, (int)length, line + at);
        const enum byte_class next = class_of(byte);
        if (always_apart(before, next))
            return json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED,
                                    "merge %llu (counted from 0) is '%.*s', but GPT-2's pattern splits text between "
                                    "such characters, so the two files belong to a tokenizer with another pattern, "
                                    "which they do not say; name its tokenizer.json",
                                    merge, shown(bytes), line);
        before = next;
    }
    return true;
}

bool pair_vocabulary_check(struct json_file *file, const struct text_table *vocabulary)
{
    uint8_t space[4];
    const size_t bytes = code_point_put(space, byte_character(' '));
    return text_table_find(vocabulary, space, bytes) != TEXT_NONE ||
           json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED,
                            "the vocabulary has no token for the space ('%.*s'), so it is not byte-level; " KINDS
                            "; name the tokenizer.json of this vocabulary",
                            (int)bytes, (const char *)space);
}

/* ---- tokenizer_config.json ---- */

struct config {
    const uint8_t *class_name; /* NULL: not given */
    size_t class_bytes;
    const uint8_t *added; /* the first added token that has no mark as a special one; or NULL */
    size_t added_bytes;
    bool prefix_space;
};

/* The classes of transformers that read two files as GPT-2 does, without the ending "Fast", and those that say nothing
 * of it. */
static bool class_is_alike(const struct config *config)
{
    static const char *const alike[] = {
        "GPT2Tokenizer",    "RobertaTokenizer",    "BartTokenizer",       "LEDTokenizer",      "LongformerTokenizer",
        "DebertaTokenizer", "CodeGenTokenizer",    "WhisperTokenizer",    "MarkupLMTokenizer", "LukeTokenizer",
        "MvpTokenizer",     "BlenderbotTokenizer", "PreTrainedTokenizer", "TokenizersBackend"};
    const char *name = (const char *)config->class_name;
    size_t bytes = config->class_bytes;
    if (bytes > 4 && !memcmp(name + bytes - 4, "Fast", 4))
        bytes -= 4;
    for (size_t i = 0; i < sizeof alike / sizeof alike[0]; i++)
        if (strlen(alike[i]) == bytes && !memcmp(alike[i], name, bytes))
            return true;
    return false;
}

/* Reads an added token: {"content": ..., "special": ...}. */
static bool added_parse(struct json_file *file, struct config *config)
{
    const uint8_t *content = NULL;
    size_t bytes = 0;
    bool special = false, good = json_enter_object(&file->scan);
    struct json_string name;
    while (good && json_member(&file->scan, &name)) {
        const enum json_kind kind = json_kind(&file->scan);
        if (json_name_is(&name, "content") && kind == JSON_STRING)
            good = json_file_text(file, &content, &bytes);
        else if (json_name_is(&name, "special") && (kind == JSON_TRUE || kind == JSON_FALSE))
            good = json_bool(&file->scan, &special);
        else
            good = json_skip(&file->scan);
    }
    if (content && !special && !config->added) {
        config->added = content;
        config->added_bytes = bytes;
    }
    return good && !file->scan.fault.reason;
}

/* Reads the object of all added tokens, by their ids. */
static bool all_added_parse(struct json_file *file, struct config *config)
{
    struct json_string id;
    bool good = json_enter_object(&file->scan);
    while (good && json_member(&file->scan, &id))
        good = json_kind(&file->scan) == JSON_OBJECT ? added_parse(file, config) : json_skip(&file->scan);
    return good && !file->scan.fault.reason;
}

static bool config_parse(struct json_file *file, struct config *config)
{
    struct json_string name;
    if (!json_enter_object(&file->scan))
        return false;
    while (json_member(&file->scan, &name)) {
        const enum json_kind kind = json_kind(&file->scan);
        bool good;
        if (json_name_is(&name, "tokenizer_class") && kind == JSON_STRING)
            good = json_file_text(file, &config->class_name, &config->class_bytes);
        else if (json_name_is(&name, "add_prefix_space") && (kind == JSON_TRUE || kind == JSON_FALSE))
            good = json_bool(&file->scan, &config->prefix_space);
        else if (json_name_is(&name, "added_tokens_decoder") && kind == JSON_OBJECT)
            good = all_added_parse(file, config);
        else
            good = json_skip(&file->scan);
        if (!good)
            return false;
    }
    return json_end(&file->scan);
}

enum tokmap_status pair_folder_check(const char *path, struct tokmap_error *error)
{
    struct os_stat about;
    struct json_file file = {0};
    struct config config = {0};
    char *name = path_beside(path, "tokenizer_config.json"), *text = NULL;
    uint64_t bytes;
    if (!name)
        return error_set_memory(error, "a path", strlen(path));
    if (os_stat(name, &about) || about.kind != OS_KIND_FILE) {
        free(name);
        return TOKMAP_OK;
    }
    enum tokmap_status status = vocabulary_file_read(name, &text, &bytes, error);
    if (!status) {
        if (json_file_begin(&file, name, text, (size_t)bytes, error))
            (void)config_parse(&file, &config);
        status = json_file_status(&file);
        if (!status && config.class_name && !class_is_alike(&config))
            status = error_set(error, TOKMAP_ERROR_UNSUPPORTED, name, TOKMAP_NO_OFFSET,
                               "the tokenizer_class is '%.*s', which reads the two files beside it in a way of its "
                               "own; " KINDS "; name the tokenizer.json of this vocabulary",
                               shown(config.class_bytes), (const char *)config.class_name);
        else if (!status && config.prefix_space)
            status = error_set(error, TOKMAP_ERROR_UNSUPPORTED, name, TOKMAP_NO_OFFSET,
                               "add_prefix_space is true, so a space is put before each text, which the two files "
                               "beside it do not say; name the tokenizer.json of this vocabulary");
        else if (!status && config.added)
            status = error_set(error, TOKMAP_ERROR_UNSUPPORTED, name, TOKMAP_NO_OFFSET,
                               "the added token '%.*s' is an ordinary one, so it is found in every text, which the two "
                               "files beside it do not say; name the tokenizer.json of this vocabulary",
                               shown(config.added_bytes), (const char *)config.added);
        json_file_end(&file);
    }
    free(text);
    free(name);
    return status;
}
