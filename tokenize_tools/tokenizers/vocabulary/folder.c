/* SPDX-License-Identifier: MIT */
#include "folder.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpe/bpe_model.h"
#include "class_steps.h"
#include "common/error.h"
#include "common/visible.h"
#include "engine/growing.h"
#include "platform/os.h"
#include "rank_catalog.h"
#include "text/json_scan.h"
#include "text/path.h"
#include "text_table.h"
#include "vocabulary/hf/hf_file.h"
#include "vocabulary_file.h"

/* The vocabulary of a folder is the file whose form comes first here. A form is a name, or its two ends with a *
 * between them. */
static const struct folder_form {
    const char *name;
    const char *companion; /* a file that belongs to it, or NULL */
} forms[] = {
    {"tokenizer.json", NULL},
    {"tekken.json", NULL},
    {"tokenizer.model", NULL}, /* of SentencePiece, or a rank file (Llama 3, GLM-4) */
    {"tokenizer.model.v*", NULL},
    {"spiece.model", NULL},
    {"sentencepiece.bpe.model", NULL},
    {"sentencepiece.model", NULL},
    {"spm.model", NULL},
    {"source.spm", NULL},
    {"tiktoken.model", NULL},
    {"vocab.bpe", "encoder.json"},
    {"merges.txt", "vocab.json"},
    {"bpe_simple_vocab_16e6.txt.gz", NULL},
    {"*.tiktoken", NULL},
    {"vocab.txt", NULL},
    {"rwkv_vocab*.txt", NULL},
    {"*.model", NULL},
    {"*.spm", NULL},
};
#define CODE_MOST ((uint64_t)1 << 20)      /* bytes of a Python file */
#define COMPARED_MOST ((uint64_t)64 << 20) /* bytes of a tokenizer.json that is opened once more */
#define FORMS (sizeof forms / sizeof forms[0])

static void folder_warn(struct folder *folder, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Copies what a printf makes, with control characters in their visible form. */
static void say(char *into, size_t room, const char *format, va_list arguments) __attribute__((format(printf, 3, 0)));

static void say(char *into, size_t room, const char *format, va_list arguments)
{
    char text[640];
    const int bytes = vsnprintf(text, sizeof text, format, arguments);
    const size_t count = bytes < 0 ? 0 : (size_t)bytes < sizeof text ? (size_t)bytes : sizeof text - 1;
    (void)visible_copy(into, room, text, count, "");
}

static void folder_warn(struct folder *folder, const char *format, ...)
{
    va_list arguments;
    if (folder->warning_count == FOLDER_WARNINGS_MOST)
        return;
    va_start(arguments, format);
    say(folder->warnings[folder->warning_count++], sizeof folder->warnings[0], format, arguments);
    va_end(arguments);
}

static struct folder_file *file_named(struct folder *folder, const char *name)
{
    for (uint32_t i = 0; i < folder->file_count; i++)
        if (!strcmp(folder->files[i].name, name))
            return &folder->files[i];
    return NULL;
}

/* Says of a file what was used, or why it was not. Does nothing if the folder does not have it. */
static void file_say(struct folder *folder, const char *name, bool used, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void file_say(struct folder *folder, const char *name, bool used, const char *format, ...)
{
    struct folder_file *file = file_named(folder, name);
    va_list arguments;
    if (!file)
        return;
    file->used |= used;
    va_start(arguments, format);
    const size_t had = strlen(file->what);
    if (had)
        (void)snprintf(file->what + had, sizeof file->what - had, ", ");
    say(file->what + strlen(file->what), sizeof file->what - strlen(file->what), format, arguments);
    va_end(arguments);
}

/* ---- choosing ---- */

static bool form_is(const char *form, const char *name)
{
    const char *star = strchr(form, '*');
    const size_t front = star ? (size_t)(star - form) : 0, back = star ? strlen(star + 1) : 0, bytes = strlen(name);
    if (!star)
        return !strcmp(form, name);
    return bytes > front + back && !strncmp(form, name, front) && !strcmp(name + bytes - back, star + 1);
}

static size_t form_of(const char *name)
{
    size_t form = 0;
    while (form < FORMS && !form_is(forms[form].name, name))
        form++;
    return form;
}

static bool is_code(const char *name)
{
    return form_is("tokenization_*.py", name);
}

/* Returns whether a file is listed in the report although it is not a vocabulary. */
static bool is_other(const char *name)
{
    for (int i = 0; i < FOLDER_CONFIGS; i++)
        if (!strcmp(name, folder_config_name((enum folder_config_kind)i)))
            return true;
    for (size_t i = 0; i < FORMS; i++)
        if (forms[i].companion && !strcmp(name, forms[i].companion))
            return true;
    return is_code(name);
}

bool folder_reads(const char *name)
{
    return form_of(name) < FORMS || is_other(name) || form_is("chat_template.j*", name);
}

struct listing {
    struct folder *folder;
    const char *path;
    size_t form; /* the first form of which the folder has a file; FORMS: none */
    char *found; /* a file of this form: the first one by its name */
    bool several, no_memory;
};

/* Keeps the files of the report in the order of their names. */
static void file_list(struct folder *folder, const char *name)
{
    uint32_t at = folder->file_count;
    if (strlen(name) >= sizeof folder->files[0].name || folder->file_count == FOLDER_FILES_MOST)
        return;
    for (; at && strcmp(folder->files[at - 1].name, name) > 0; at--)
        folder->files[at] = folder->files[at - 1];
    folder->files[at] = (struct folder_file){.used = false};
    memcpy(folder->files[at].name, name, strlen(name) + 1);
    folder->file_count++;
}

static int listing_entry(void *user, const char *name)
{
    struct listing *listing = user;
    const size_t form = form_of(name);
    struct os_stat about;
    if (form == FORMS && !is_other(name))
        return 0;
    char *file = path_in(listing->path, name);
    if (!file)
        return listing->no_memory = true;
    /* A link that leads nowhere counts, so that nobody gets another vocabulary without a word. */
    const bool counts = os_stat(file, &about) || about.kind == OS_KIND_FILE;
    free(file);
    if (!counts)
        return 0;
    file_list(listing->folder, name);
    if (form > listing->form || form == FORMS)
        return 0;
    listing->several = form == listing->form;
    if (listing->several && strcmp(name, listing->found) > 0)
        return 0;
    free(listing->found);
    listing->form = form;
    listing->found = strdup(name);
    return listing->no_memory = !listing->found;
}

static enum tokmap_status choose(struct folder *folder, const char *path, char **found, struct tokmap_error *error)
{
    struct listing listing = {.folder = folder, .path = path, .form = FORMS};
    const int failed = os_folder_list(path, listing_entry, &listing);
    *found = listing.found;
    if (listing.no_memory)
        return error_set_memory(error, "a path", strlen(path));
    if (failed)
        return error_set_system(error, failed, path, TOKMAP_NO_OFFSET, "the folder cannot be listed");
    if (listing.several)
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, TOKMAP_NO_OFFSET,
                         "the folder contains several %s files; name the one to use",
                         strchr(forms[listing.form].name, '*') == forms[listing.form].name
                             ? forms[listing.form].name + 1
                             : forms[listing.form].name);
    if (!listing.found)
        return error_set(
            error, TOKMAP_ERROR_NOT_FOUND, path, TOKMAP_NO_OFFSET,
            "the folder contains no tokenizer, which would be tokenizer.json, tekken.json, tokenizer.model or another "
            "*.model, vocab.bpe, merges.txt, *.tiktoken, vocab.txt, or rwkv_vocab*.txt");
    return TOKMAP_OK;
}

enum tokmap_status folder_rule_find(struct folder *folder, struct tokmap_error *error)
{
    return piece_rule_find(&folder->rule, &folder->config, folder->path, file_named(folder, "vocab.json"), error);
}

/* Looks for the split pattern of a rank file in the code of the model. */
static enum tokmap_status code_read(struct folder *folder, const char *path, struct tokmap_error *error)
{
    const char *const form = forms[form_of(folder->name)].name;
    bool several = false;
    if (!strstr(form, "tiktoken") && strcmp(form, "tokenizer.model") && strcmp(form, "*.model"))
        return TOKMAP_OK;
    for (uint32_t i = 0; i < folder->file_count; i++) {
        struct os_stat about;
        uint64_t bytes;
        char *code = NULL, *file;
        if (!is_code(folder->files[i].name))
            continue;
        file = path_in(path, folder->files[i].name);
        if (!file)
            return error_set_memory(error, "a path", strlen(path));
        const bool readable =
            !os_stat(file, &about) && about.bytes <= CODE_MOST && !vocabulary_file_read(file, &code, &bytes, NULL);
        const char *pattern = readable ? rank_catalog_pattern_in(code, (size_t)bytes) : NULL;
        free(file);
        free(code);
        if (!pattern)
            continue;
        several |= folder->beside.regex && strcmp(pattern, folder->beside.regex);
        folder->beside.regex = pattern;
        folder->code = folder->files[i].name;
    }
    if (several)
        folder->beside.regex = NULL;
    return TOKMAP_OK;
}

enum tokmap_status folder_read(struct folder *folder, const char *path, struct tokmap_error *error)
{
    char *found = NULL;
    enum tokmap_status status = choose(folder, path, &found, error);
    if (!status) {
        folder->path = path_in(path, found);
        if (!folder->path)
            status = error_set_memory(error, "a path", strlen(path));
    }
    free(found);
    if (!status) {
        folder->name = path_name(folder->path);
        status = folder_config_read(&folder->config, path, error);
    }
    if (!status)
        status = code_read(folder, path, error);
    folder->beside.specials = folder->config.added.tokens;
    folder->beside.count = folder->config.added.count;
    while (folder->beside.count && folder->config.added.tokens[folder->beside.count - 1].id == BPE_NONE)
        folder->beside.count--;
    return status;
}

/* ---- finishing ---- */

/* Finds the token that a kind of name (eos_token, bos_token) means, by the first file that has one, and says which file
 * that is. *id does not change if no file names a token of the vocabulary. */
static void end_find(struct folder *folder, const struct tokenizer *tokenizer, bool eos, uint64_t *id)
{
    const char *const what = eos ? "eos_token" : "bos_token";
    const char *taken = NULL;
    const struct tokenizer_info info = info_of_tokenizer(tokenizer);
    for (int i = 0; i < FOLDER_CONFIGS; i++) {
        const char *const name = folder_config_name((enum folder_config_kind)i);
        const struct folder_config_file *file = &folder->config.files[i];
        const struct folder_token *token = eos ? &file->eos : &file->bos;
        const char *text = token->text ? (const char *)token->text : "";
        if (!token->given)
            continue;
        uint64_t found = token->text ? tokenizer_find(tokenizer, token->text, token->bytes) : token->id;
        if (found >= info.vocabulary) {
            if (token->text)
                folder_warn(folder, "%s names the %s '%.*s', which %s does not have", name, what, shown(token->bytes),
                            text, folder->name);
            else
                folder_warn(folder, "%s names the %s_id %" PRIu64 ", but the ids of %s end at %" PRIu64, name, what,
                            token->id, folder->name, info.vocabulary - 1);
            file_say(folder, name, false, "its %s is not in the vocabulary", what);
        } else if (!taken) {
            taken = name;
            if (eos && info.framed_eod && found != *id && token->text)
                folder_warn(folder, "%s names the eos_token '%.*s', which counts, but the post-processor of %s puts %s",
                            name, shown(token->bytes), text, folder->name, info.frame);
            *id = found;
            if (token->text)
                file_say(folder, name, true, "%s %.*s", what, shown(token->bytes), text);
            else
                file_say(folder, name, true, "%s_id %" PRIu64, what, found);
        } else if (found == *id) {
            file_say(folder, name, false, "its %s%s is the same", what, token->text ? "" : "_id");
        } else if (token->text) {
            folder_warn(folder, "%s names the %s '%.*s', but %s names another one, which counts", name, what,
                        shown(token->bytes), text, taken);
            file_say(folder, name, false, "its %s is another one", what);
        } else {
            file_say(folder, name, false, "its %s_id, %" PRIu64 ", is another one", what, found);
        }
    }
}

/* Returns whether an added token of the tokenizer has other flags than one with its id. at: where to look for it. */
static bool flags_differ(const struct tokenizer *tokenizer, const struct added_token *token, uint64_t *at)
{
    const uint32_t flags = (uint32_t)token->lstrip | (uint32_t)token->rstrip << 1 | (uint32_t)token->single_word << 2;
    struct tokmap_added_token added = {0};
    const struct tokenizer_info info = info_of_tokenizer(tokenizer);
    for (; *at < info.added; *at += 1) {
        tokenizer_added_at(tokenizer, *at, &added);
        if (added.id >= token->id)
            return added.id == token->id && (added.flags != flags || added.special != token->special);
    }
    return false;
}

/* Compares the added tokens of the other files with those of the vocabulary. */
static void added_compare(struct folder *folder, const struct tokenizer *tokenizer)
{
    const struct folder_config *config = &folder->config;
    const struct added_token *changed = NULL;
    uint64_t at = 0;
    uint32_t lacking = 0, first = 0;
    for (uint32_t i = 0; i < folder->beside.count; i++) {
        const struct added_token *token = &config->added.tokens[i];
        const uint8_t *bytes;
        uint32_t count;
        if (tokenizer_token(tokenizer, token->id, &bytes, &count) && count == token->bytes &&
            !memcmp(bytes, token->text, count)) {
            if (token->hidden && !changed && !strcmp(folder->name, "tokenizer.json") &&
                flags_differ(tokenizer, token, &at))
                changed = token;
            continue;
        }
        first = lacking++ ? first : i;
    }
    for (int i = 0; i < FOLDER_CONFIGS; i++) {
        const uint32_t added = config->files[i].added;
        if (added)
            file_say(folder, folder_config_name((enum folder_config_kind)i), !lacking, "%s%" PRIu32 " added token%s",
                     !lacking    ? ""
                     : added > 1 ? "not all of its "
                                 : "not its ",
                     added, added > 1 ? "s" : "");
    }
    if (lacking)
        folder_warn(folder,
                    "%" PRIu32 " added token%s of %s %s not in %s, such as '%.*s' with the id %" PRIu32
                    ": transformers would find %s in texts, and tokmap does not",
                    lacking, lacking > 1 ? "s" : "",
                    config->files[FOLDER_TOKENIZER_CONFIG].added ? "tokenizer_config.json" : "added_tokens.json",
                    lacking > 1 ? "are" : "is", folder->name, shown(config->added.tokens[first].bytes),
                    (const char *)config->added.tokens[first].text, config->added.tokens[first].id,
                    lacking > 1 ? "them" : "it");
    if (changed)
        folder_warn(folder,
                    "added_tokens_decoder gives '%.*s' other flags (lstrip, rstrip, single_word, special) than %s: "
                    "transformers finds it in texts as these say, and tokmap does not",
                    shown(changed->bytes), (const char *)changed->text, folder->name);
}

/* Warns of the first token that is only named, and is not an added token of the vocabulary. */
static void named_compare(struct folder *folder, const struct tokenizer *tokenizer)
{
    const struct special_list *named = &folder->config.added;
    struct text_table texts = {0}; /* of the added tokens; there may be a million */
    struct tokmap_added_token added;
    uint32_t i = folder->beside.count;
    bool good = true;
    const struct tokenizer_info info = info_of_tokenizer(tokenizer);
    for (uint64_t at = 0; at < info.added && i < named->count && good; at++) {
        tokenizer_added_at(tokenizer, at, &added);
        good = text_table_add(&texts, (const uint8_t *)added.text, (uint32_t)added.bytes, 0) <= TEXT_DUPLICATE;
    }
    while (i < named->count && text_table_find(&texts, named->tokens[i].text, named->tokens[i].bytes) != TEXT_NONE)
        i++;
    if (i < named->count && good) {
        const struct added_token *token = &named->tokens[i];
        const uint64_t id = tokenizer_find(tokenizer, token->text, token->bytes);
        folder_warn(folder,
                    "'%.*s' is named as a special token, but not among the added tokens of %s: transformers 5 finds it "
                    "in texts, with the id %" PRIu64 ", and tokmap does not",
                    shown(token->bytes), (const char *)token->text, folder->name,
                    id == TOKMAP_NO_ID ? info.vocabulary : id);
    }
    text_table_free(&texts);
}

/* ---- what transformers makes of a tokenizer.json ---- */

/* Returns the steps of the class that AutoTokenizer of transformers 5.24 opens. Returns NULL if it takes the file as it
 * is, and for a class that the table does not have. */
static const struct class_steps *class_steps_of(const struct folder_config *config)
{
    const struct config_text *type = &config->model_type, *name = &config->class_name;
    const bool named = name->bytes && !config_is_listed(class_steps_always, type->text, type->bytes);
    if (config->settings[SETTING_CODE] || (named && config_is_listed(class_steps_none, type->text, type->bytes)))
        return NULL;
    for (size_t i = 0; i < CLASS_STEPS; i++)
        if (named ? config_class_is(name, class_steps[i].classes)
                  : config_is_listed(class_steps[i].types, type->text, type->bytes))
            return &class_steps[i];
    return NULL;
}

/* Appends steps with the settings of a folder. charsmap: that of the file. Returns false where the table does not know
 * the steps. */
static bool steps_append(struct growing *g, const char *steps, const enum config_value *settings,
                         const struct json_string *charsmap)
{
    for (;;) {
        struct config_text parts[4]; /* the name of the setting and three texts */
        enum config_value value = VALUE_NONE;
        append(g, steps, strcspn(steps, "@"));
        steps += strcspn(steps, "@");
        if (!*steps)
            return true;
        for (int i = 0; i < 4; i++) {
            parts[i] = (struct config_text){(const uint8_t *)steps + 1, strcspn(steps + 1, "@")};
            steps += 1 + parts[i].bytes;
        }
        steps++;
        for (int i = 0; i < SETTINGS; i++)
            if (config_is_listed(config_setting_name((enum config_setting)i), parts[0].text, parts[0].bytes))
                value = settings[i];
        const bool mapped = charsmap->bytes && config_is_listed("charsmap", parts[0].text, parts[0].bytes);
        const struct config_text *chosen = &parts[value == VALUE_TRUE ? 3 : value == VALUE_FALSE || mapped ? 2 : 1];
        if (value == VALUE_OTHER || (chosen->bytes && *chosen->text == '?'))
            return false;
        append(g, chosen->text, chosen->bytes);
        if (mapped) {
            append(g, charsmap->bytes, charsmap->count);
            append(g, parts[3].text, parts[3].bytes);
        }
    }
}

/* Finds the charsmap of the first normalizer that has one. */
static void charsmap_text_find(const char *normalizer, size_t count, struct json_string *charsmap)
{
    static const char name[] = "\"precompiled_charsmap\"";
    const char *at = memmem(normalizer, count, name, sizeof name - 1), *const end = normalizer + count;
    const char *begin = at ? memchr(at + sizeof name - 1, '"', (size_t)(end - at) - sizeof name + 1) : NULL;
    const char *close = begin ? memchr(begin + 1, '"', (size_t)(end - begin) - 1) : NULL;
    if (close)
        *charsmap = (struct json_string){begin + 1, (size_t)(close - begin) - 1, false};
}

/* Opens the vocabulary with other steps. Returns NULL after a failure, and where the class takes the file as it is. */
static struct tokenizer *class_open(const struct folder *folder, const struct class_steps *steps)
{
    static const struct tokmap_tokenizer_options options;
    struct growing g = {.failed = false};
    struct tokenizer *made = NULL;
    struct os_stat about;
    struct tokmap_error error;
    struct json_scan scan;
    struct json_string name, charsmap = {0};
    const char *value;
    char *text;
    uint64_t bytes;
    size_t count;
    if (os_stat(folder->path, &about) || about.bytes > COMPARED_MOST ||
        vocabulary_file_read(folder->path, &text, &bytes, &error))
        return NULL;
    /* A byte-level file is opened by few other classes, and by LlamaTokenizer as it is. */
    const bool good = strstr(steps->steps, "ByteLevel") || !memmem(text, (size_t)bytes, "\"ByteLevel\"", 11);
    json_begin(&scan, text, (size_t)bytes);
    json_enter_object(&scan);
    const size_t begin = (size_t)(scan.at - text);
    while (json_member(&scan, &name) && json_value(&scan, &value, &count)) {
        if (json_name_is(&name, "normalizer"))
            charsmap_text_find(value, count, &charsmap);
        if (json_name_is(&name, "normalizer") || json_name_is(&name, "pre_tokenizer"))
            text[name.bytes - text] = '_'; /* a member that is not read */
    }
    append_text(&g, "{");
    g.failed |= !good || !steps_append(&g, steps->steps, folder->config.settings, &charsmap);
    append_text(&g, ",");
    append(&g, text + begin, (size_t)bytes - begin);
    free(text);
    if (!g.failed)
        (void)hf_text_open(&made, &(struct hf_text){folder->path, g.bytes, g.count, "", ~(1u << steps->kind)}, &options,
                           &error);
    free(g.bytes);
    return made;
}

/* Returns the ids of a short text, to be freed, or NULL after a failure. */
static void *ids_make(const struct tokenizer *tokenizer, const char *string, size_t *bytes)
{
    const struct tokmap_text text = {string, strlen(string)};
    const struct tokenizer_batch batch = {.documents = &text, .count = 1};
    struct tokenizer_state *state = NULL;
    struct tokmap_error error;
    uint64_t end;
    const struct tokenizer_info info = info_of_tokenizer(tokenizer);
    struct tokenizer_out out = {.capacity = info.ids_per_byte_most * text.count, .ends = &end};
    out.tokens = malloc((size_t)out.capacity * info.width);
    const bool failed =
        !out.tokens || tokenizer_state_new(&state, tokenizer, &error) || tokenizer_encode(state, &batch, &out, &error);
    tokenizer_state_free(state);
    *bytes = (size_t)out.count * info.width;
    if (!failed)
        return out.tokens;
    free(out.tokens);
    return NULL;
}

/* Returns whether two tokenizers give two texts the same ids; true after a failure. */
static bool same_ids(const struct tokenizer *const tokenizers[2], const char *const texts[2])
{
    size_t bytes[2];
    void *const ids[2] = {ids_make(tokenizers[0], texts[0], &bytes[0]), ids_make(tokenizers[1], texts[1], &bytes[1])};
    const bool same = !ids[0] || !ids[1] || (bytes[0] == bytes[1] && !memcmp(ids[0], ids[1], bytes[0]));
    free(ids[0]);
    free(ids[1]);
    return same;
}

void folder_compare(struct folder *folder, const struct tokenizer *tokenizer)
{
    static const char *const texts[] = {"Hello World", "e\xCC\x81t\xC3\xA9",
                                        " a  b",       "DON'T 12345",
                                        "a\n\n b!c",   "\xEF\xAC\x81 \xE4\xB8\xAD\xE6\x96\x87",
                                        "``a'' ",      "a\t1.b",
                                        "a  (b)"};
    const struct config_text *name = &folder->config.class_name;
    const enum config_value *settings = folder->config.settings;
    const struct class_steps *steps = folder->path ? class_steps_of(&folder->config) : NULL;
    if (!steps)
        return;
    if (folder->rule && config_class_is(name, "LlamaTokenizer") && settings[SETTING_LEGACY] != VALUE_TRUE &&
        settings[SETTING_PREFIX_SPACE] != VALUE_TRUE &&
        !same_ids((const struct tokenizer *[]){tokenizer, tokenizer}, (const char *[]){" a", "a"}))
        folder_warn(folder,
                    "AutoTokenizer of transformers 5 drops a space at the start of a text, so it gives other ids than "
                    "%s and tokmap, such as for ' a'",
                    folder->name);
    struct tokenizer *made = !strcmp(folder->name, "tokenizer.json") ? class_open(folder, steps) : NULL;
    const size_t count = sizeof texts / sizeof texts[0];
    const bool own = config_class_is(name, steps->classes);
    size_t i = 0;
    while (made && i < count &&
           same_ids((const struct tokenizer *[]){tokenizer, made}, (const char *[]){texts[i], texts[i]}))
        i++;
    if (made && i < count)
        folder_warn(folder,
                    "AutoTokenizer of transformers 5 replaces steps of tokenizer.json by those of %.*s, so it gives "
                    "other ids than the file and tokmap, such as for '%s'",
                    (int)(own ? config_class_bytes(name) : strcspn(steps->classes, " ")),
                    own ? (const char *)name->text : steps->classes, texts[i]);
    tokenizer_close(made);
}

/* Says what tokenizer_config.json decides beside a vocabulary that does not say it itself. */
static void config_say(struct folder *folder)
{
    const struct folder_form *form = &forms[form_of(folder->name)];
    const char *const name = folder_config_name(FOLDER_TOKENIZER_CONFIG);
    if (*folder->config.files[FOLDER_TOKENIZER_CONFIG].fault)
        return;
    if (!strcmp(form->name, "vocab.txt"))
        file_say(folder, name, true, "the case and the cuts of words");
    else if ((form->companion || folder->rule) && folder->config.class_name.bytes)
        file_say(folder, name, true, "its tokenizer_class");
}

/* Says of the files that were not used why. */
static void others_say(struct folder *folder)
{
    const char *companion = forms[form_of(folder->name)].companion;
    file_say(folder, folder->name, true, "the vocabulary");
    if (companion)
        file_say(folder, companion, true, "the ids of the tokens");
    if (piece_rule_reads_ids(folder->rule))
        file_say(folder, "vocab.json", true, "the ids of the pieces");
    if (folder->beside.regex_used)
        file_say(folder, folder->code, true, "the split pattern");
    for (int i = 0; i < FOLDER_CONFIGS; i++) {
        const struct folder_config_file *file = &folder->config.files[i];
        const char *const name = folder_config_name((enum folder_config_kind)i);
        if (!*file->fault)
            continue;
        file_say(folder, name, false, "%s", file->fault);
        folder_warn(folder, "%s is not used: %s", name, file->fault);
    }
    for (uint32_t i = 0; i < folder->file_count; i++) {
        struct folder_file *file = &folder->files[i];
        if (file->used || *file->what)
            continue;
        if (form_of(file->name) < FORMS || !strcmp(file->name, "vocab.json") || !strcmp(file->name, "encoder.json"))
            file_say(folder, file->name, false, "%s is the vocabulary", folder->name);
        else if (is_code(file->name))
            file_say(folder, file->name, false, "no code of a model is run");
        else
            file_say(folder, file->name, false, "tokmap needs nothing of it");
    }
}

void folder_finish(struct folder *folder, struct tokenizer *tokenizer)
{
    struct tokenizer_info info = info_of_tokenizer(tokenizer);
    end_find(folder, tokenizer, true, &info.eod_id);
    end_find(folder, tokenizer, false, &info.bos_id);
    added_compare(folder, tokenizer);
    named_compare(folder, tokenizer);
    config_say(folder);
    others_say(folder);
    tokenizer_name_ends(tokenizer, info.eod_id, info.bos_id);
}

void folder_free(struct folder *folder)
{
    folder_config_free(&folder->config);
    free(folder->path);
    folder->path = NULL;
    folder->name = NULL;
}
