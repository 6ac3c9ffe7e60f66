/* SPDX-License-Identifier: MIT */
/*
 * piece_rules.c - see piece_rules.h. The rules are those of the classes in Python (transformers 4, and 5 for Marian and
 * M2M100), which look up each piece that SentencePiece returns. For an unknown piece that is the text of all unknown
 * characters in a row, so the vocab.json of Marian may have an id for it, if it is a piece of the other language.
 */
#include "piece_rules.h"

#include <stdlib.h>
#include <string.h>

#include "bpe/bpe_model.h"
#include "common/error.h"
#include "sentencepiece/sp_model.h"
#include "text/path.h"
#include "vocabulary/hf/hf_model.h"
#include "vocabulary_file.h"

#define FAIRSEQ "<s> <pad> </s> <unk>"
#define MBART                                                                                                          \
    "ar_AR cs_CZ de_DE en_XX es_XX et_EE fi_FI fr_XX gu_IN hi_IN it_IT ja_XX kk_KZ ko_KR lt_LT lv_LV my_MM ne_NP "     \
    "nl_XX ro_RO ru_RU si_LK tr_TR vi_VN zh_CN "
#define TEN(tens)                                                                                                      \
    "<unk_" tens "0> <unk_" tens "1> <unk_" tens "2> <unk_" tens "3> <unk_" tens "4> <unk_" tens "5> <unk_" tens       \
    "6> <unk_" tens "7> <unk_" tens "8> <unk_" tens "9> "

#define EXTRA(tens)                                                                                                    \
    "<extra_id_" tens "9> <extra_id_" tens "8> <extra_id_" tens "7> <extra_id_" tens "6> <extra_id_" tens              \
    "5> <extra_id_" tens "4> <extra_id_" tens "3> <extra_id_" tens "2> <extra_id_" tens "1> <extra_id_" tens "0> "
#define EXTRAS                                                                                                         \
    EXTRA("9") EXTRA("8") EXTRA("7") EXTRA("6") EXTRA("5") EXTRA("4") EXTRA("3") EXTRA("2") EXTRA("1") EXTRA("")
#define CLASS(rule) (int)strcspn((rule)->classes, " "), (rule)->classes /* the first, for %.*s */
#define WITH(setting) (1u << SETTING_##setting)
#define T5 "T5Tokenizer MT5Tokenizer", "t5 umt5 longt5 switch_transformers musicgen musicgen_melody pix2struct mt5"
#define T5_LAST "</s> <unk> <pad>", .kept = true, .refused = WITH(LEGACY)

static const struct piece_rule {
    const char *classes;   /* whose names blanks separate; messages have the first */
    const char *type;      /* types of models in a config.json, which count where no file names a class; "": none */
    const char *first;     /* special tokens, whose ids begin at 0 or, with `json`, are those of vocab.json */
    uint32_t from;         /* the first piece after them; those before it are among them. Not with `json` */
    const char *last;      /* special tokens after the pieces */
    bool json;             /* vocab.json has the ids */
    bool codes;            /* tokens of the form >>...<< in it are special */
    bool kept;             /* pieces keep their ids; `last` follows, without those of its names that are pieces */
    uint64_t offset;       /* the only "offset" or "extra_ids" that the rule is for; 0: it has none */
    const char *languages; /* the same of "language_codes", or NULL */
    bool plain;            /* for "extra_ids": 0 */
    uint32_t refused;      /* settings with which the ids are others: WITH() of one or more */
} rules[] = {
    {"MarianTokenizer", "marian", "</s> <unk> <pad>", .json = true, .codes = true},
    {"M2M100Tokenizer", "m2m_100", FAIRSEQ, .json = true, .languages = "m2m100",
     .last = "__af__ __am__ __ar__ __ast__ __az__ __ba__ __be__ __bg__ __bn__ __br__ __bs__ __ca__ __ceb__ __cs__ "
             "__cy__ __da__ __de__ __el__ __en__ __es__ __et__ __fa__ __ff__ __fi__ __fr__ __fy__ __ga__ __gd__ "
             "__gl__ __gu__ __ha__ __he__ __hi__ __hr__ __ht__ __hu__ __hy__ __id__ __ig__ __ilo__ __is__ __it__ "
             "__ja__ __jv__ __ka__ __kk__ __km__ __kn__ __ko__ __lb__ __lg__ __ln__ __lo__ __lt__ __lv__ __mg__ "
             "__mk__ __ml__ __mn__ __mr__ __ms__ __my__ __ne__ __nl__ __no__ __ns__ __oc__ __or__ __pa__ __pl__ "
             "__ps__ __pt__ __ro__ __ru__ __sd__ __si__ __sk__ __sl__ __so__ __sq__ __sr__ __ss__ __su__ __sv__ "
             "__sw__ __ta__ __th__ __tl__ __tn__ __tr__ __uk__ __ur__ __uz__ __vi__ __wo__ __xh__ __yi__ __yo__ "
             "__zh__ __zu__"},
    {"XLMRobertaTokenizer LayoutXLMTokenizer", "xlm-roberta xlm-roberta-xl xmod metaclip_2 layoutxlm", FAIRSEQ,
     .from = 3, .last = "<mask>"},
    {"MBartTokenizer", "mbart", FAIRSEQ, .from = 3, .last = MBART "<mask>"},
    {"MBart50Tokenizer", "", FAIRSEQ, .from = 3,
     .last =
         MBART "af_ZA az_AZ bn_IN fa_IR he_IL hr_HR id_ID ka_GE km_KH mk_MK ml_IN mn_MN mr_IN pl_PL ps_AF pt_XX sv_SE "
               "sw_KE ta_IN te_IN th_TH tl_XX uk_UA ur_PK xh_ZA gl_ES sl_SI <mask>"},
    {"XGLMTokenizer", "xglm", FAIRSEQ, .from = 3,
     .last = "<madeupword0> <madeupword1> <madeupword2> <madeupword3> <madeupword4> <madeupword5> <madeupword6>"},
    {"CamembertTokenizer", "camembert", "<s>NOTUSED <pad> </s>NOTUSED <unk> <unk>NOTUSED", .from = 1, .last = "<mask>"},
    {"PegasusTokenizer", "pegasus bigbird_pegasus pegasus_x",
     "<pad> </s> <mask_1> <mask_2> <unk_2> <unk_3> <unk_4> <unk_5> <unk_6> <unk_7> <unk_8> <unk_9> " TEN("1") TEN("2")
         TEN("3") TEN("4") TEN("5") TEN("6") TEN("7") TEN("8") TEN("9") "<unk_100> <unk_101> <unk_102>",
     .from = 2, .offset = 103},
    {"LlamaTokenizer",
     "llama mistral mixtral ministral mistral3 aria chameleon deepseek_v2 deepseek_v3 idefics2 idefics3 jamba jetmoe "
     "llava llava_next llava_onevision mllama paligemma persimmon phi3 phimoe vipllava video_llava zamba zamba2",
     .last = "<s> </s> <unk>", .kept = true, .refused = WITH(LEGACY) | WITH(PREFIX_SPACE)},
    {"GemmaTokenizer",
     "gemma gemma2 gemma3 gemma3_text gemma3n gemma3n_text recurrent_gemma shieldgemma2 siglip2 t5gemma",
     .last = "<bos> <eos> <unk> <pad>", .kept = true},
    {T5, .last = T5_LAST, .plain = true},
    {T5, .last = EXTRAS T5_LAST, .offset = 100},
    {"BigBirdTokenizer", "big_bird", .last = "<s> </s> <unk> [SEP] <pad> [CLS] [MASK]", .kept = true},
    {"ReformerTokenizer", "reformer", .last = "</s> <unk>", .kept = true},
    {"BertGenerationTokenizer", "bert-generation", .last = "<s> </s> <unk> <::::> <pad>", .kept = true},
    {"RemBertTokenizer", "rembert", .last = "[CLS] [SEP] [UNK] [PAD] [MASK]", .kept = true, .refused = WITH(LOWER)},
    {"DebertaV2Tokenizer", "deberta-v2", .last = "[CLS] [SEP] [UNK] [PAD] [MASK]", .kept = true,
     .refused = WITH(LOWER) | WITH(PUNCTUATION)},
};

/* Returns the next name of a list, which blanks separate, and its length. Returns NULL at the end. */
static const uint8_t *next_name(const char **list, uint32_t *bytes)
{
    const char *name = *list;
    *bytes = name ? (uint32_t)strcspn(name, " ") : 0;
    if (!*bytes)
        return NULL;
    *list = name + *bytes + (name[*bytes] == ' ');
    return (const uint8_t *)name;
}

/* ---- finding ---- */

static const struct piece_rule *rule_of(const struct folder_config *config, bool source, bool ids_beside)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if ((!rules[i].plain || (config->offset_given && !config->offset)) &&
            (config->class_name.bytes
                 ? config_class_is(&config->class_name, rules[i].classes)
                 : config_class_is(&config->model_type, rules[i].type) || (source && ids_beside && rules[i].codes)))
            return &rules[i];
    return NULL;
}

enum tokmap_status piece_rule_find(const struct piece_rule **rule, const struct folder_config *config, const char *path,
                                   bool ids_beside, struct tokmap_error *error)
{
    const struct config_text *name = &config->class_name, *languages = &config->language_codes;
    const struct piece_rule *found = rule_of(config, !strcmp(path_name(path), "source.spm"), ids_beside);
    const uint32_t heeded = WITH(CODE) | WITH(MODEL) | WITH(SPLIT_SPECIALS) | (found ? found->refused : 0);
    const struct config_text *given = name->bytes ? name : &config->model_type;
    const char *refused = NULL;
    *rule = found;
    for (int i = 0; i < SETTINGS; i++)
        if (heeded >> i & 1 &&
            (config->settings[i] == VALUE_OTHER ||
             config->settings[i] == (1u << i & (WITH(LEGACY) | WITH(PREFIX_SPACE)) ? VALUE_FALSE : VALUE_TRUE)))
            refused = config_setting_name((enum config_setting)i);
    if (refused || (!found && given->bytes))
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, TOKMAP_NO_OFFSET,
                         "the %s '%.*s' beside %s gives its pieces other ids than the file does, or divides texts in "
                         "another way; save this tokenizer as a tokenizer.json with transformers "
                         "(AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR)), or name %s itself for the ids of "
                         "the file",
                         refused         ? "setting"
                         : given == name ? "tokenizer_class"
                                         : "model_type",
                         refused ? 64 : shown(given->bytes), refused ? refused : (const char *)given->text,
                         path_name(path), path_name(path));
    if (found && found->json && !ids_beside)
        return error_set(
            error, TOKMAP_ERROR_UNSUPPORTED, path, TOKMAP_NO_OFFSET,
            "%.*s takes the ids of the pieces from vocab.json, which is not in this folder; put it there, or "
            "name %s itself for the ids of the file",
            CLASS(found), path_name(path));
    if (found && found->offset && config->offset_given && config->offset != found->offset)
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, TOKMAP_NO_OFFSET,
                         "tokenizer_config.json sets %s %" PRIu64 ", but tokmap knows the ids of %.*s with %" PRIu64
                         " only; save this tokenizer as a tokenizer.json with transformers (save_pretrained)",
                         found->first ? "the offset" : "extra_ids to", config->offset, CLASS(found), found->offset);
    if (found && found->languages && languages->text &&
        !config_is_listed(found->languages, languages->text, languages->bytes))
        return error_set(
            error, TOKMAP_ERROR_UNSUPPORTED, path, TOKMAP_NO_OFFSET,
            "tokenizer_config.json sets language_codes to '%.*s', but tokmap knows the ids of %.*s with %s "
            "only",
            shown(languages->bytes), (const char *)languages->text, CLASS(found), found->languages);
    return TOKMAP_OK;
}

bool piece_rule_reads_ids(const struct piece_rule *rule)
{
    return rule && rule->json;
}

bool piece_rule_keeps_ids(const struct piece_rule *rule)
{
    return rule && rule->kept;
}

static bool is_extra(const uint8_t *text, uint32_t bytes)
{
    return bytes > 10 && !memcmp(text, "<extra_id_", 10);
}

bool piece_rule_strips(const struct piece_rule *rule, const uint8_t *text, uint32_t bytes, bool *right)
{
    *right = rule && rule->offset && is_extra(text, bytes);
    return *right ||
           (rule && bytes == 6 &&
            (!memcmp(text, "<mask>", 6) || (!memcmp(text, "[MASK]", 6) && !(rule->refused & WITH(PUNCTUATION)))));
}

/* ---- the ids ---- */

struct numbering {
    const struct piece_rule *rule;
    const struct piece_set *pieces;
    struct piece_set *made;
    struct text_table ids; /* texts that have an id, without rule->last */
    uint32_t last;         /* the number of names in rule->last */
    uint32_t *places;      /* by piece: its id, an id of made->known or more, or BPE_NONE for none */
    bool mergeable;
    const char *path;
    struct tokmap_error *error;
};

static const uint8_t *text_of(const struct piece_set *pieces, uint32_t id, uint32_t *bytes)
{
    *bytes = pieces->offsets[id + 1] - pieces->offsets[id];
    return pieces->bytes + pieces->offsets[id];
}

static enum tokmap_status refuse(const struct numbering *own, const uint8_t *text, uint32_t bytes, const char *what)
{
    return error_set(own->error, TOKMAP_ERROR_UNSUPPORTED, own->path, TOKMAP_NO_OFFSET,
                     "%s is not laid out as %.*s expects: '%.*s' %s; save this tokenizer as a tokenizer.json with "
                     "transformers (save_pretrained), or name %s itself for the ids of the file",
                     path_name(own->path), CLASS(own->rule), shown(bytes), (const char *)text, what,
                     path_name(own->path));
}

static enum tokmap_status no_memory(const struct numbering *own)
{
    return error_set_memory(own->error, "the ids of pieces", own->pieces->count);
}

static bool is_special(const struct piece_rule *rule, const uint8_t *text, uint32_t bytes)
{
    return config_is_listed(rule->first, text, bytes) || config_is_listed(rule->last, text, bytes) ||
           (rule->codes && bytes > 4 && !memcmp(text, ">>", 2) && !memcmp(text + bytes - 2, "<<", 2));
}

/* Adds a text with the next id. */
static enum tokmap_status add(struct numbering *own, const uint8_t *text, uint32_t bytes)
{
    switch (text_table_add(&own->ids, text, bytes, own->ids.count)) {
    case TEXT_ADDED:
        return TOKMAP_OK;
    case TEXT_DUPLICATE:
        return refuse(own, text, bytes, "would have two ids");
    case TEXT_FULL:
    case TEXT_NO_MEMORY:
    default:
        return no_memory(own);
    }
}

/* Numbers rule->first and the pieces. */
static enum tokmap_status ids_make(struct numbering *own)
{
    const struct piece_set *pieces = own->pieces;
    const char *list = own->rule->first;
    enum tokmap_status status = TOKMAP_OK;
    uint32_t bytes, unused;
    for (const uint8_t *name; !status && (name = next_name(&list, &bytes)) != NULL;)
        status = add(own, name, bytes);
    for (uint32_t id = 0; id < pieces->count && !status; id++) {
        const uint8_t *text = text_of(pieces, id, &bytes);
        if (id >= own->rule->from)
            status = add(own, text, bytes);
        else if (!config_is_listed(own->rule->first, text, bytes))
            status = refuse(own, text, bytes, "is among the first pieces");
    }
    return !status && !text_table_index(&own->ids, &unused) ? no_memory(own) : status;
}

/* Reads the vocab.json beside the model. */
static enum tokmap_status ids_read(struct numbering *own, struct json_file *file, char **text)
{
    uint64_t bytes;
    char *path = path_beside(own->path, "vocab.json");
    enum tokmap_status status = path ? vocabulary_file_read(path, text, &bytes, own->error) : no_memory(own);
    if (!status && !(json_file_begin(file, path, *text, (size_t)bytes, own->error) &&
                     hf_vocabulary_parse(file, &own->ids, "the vocabulary") && json_end(&file->scan)))
        status = json_file_status(file);
    free(path);
    return status;
}

/* Finds the place of each piece. */
static enum tokmap_status places_find(struct numbering *own)
{
    const struct piece_set *pieces = own->pieces;
    struct piece_set *made = own->made;
    for (uint32_t id = 0; id < pieces->count; id++) {
        uint32_t bytes;
        const uint8_t *text = text_of(pieces, id, &bytes);
        const uint32_t found = text_table_find(&own->ids, text, bytes);
        const uint8_t kind = pieces->kinds[id];
        const bool found_in_text = kind != SP_CONTROL && kind != SP_UNKNOWN && kind != SP_UNUSED;
        own->places[id] = found;
        if (found_in_text && is_special(own->rule, text, bytes))
            return refuse(own, text, bytes, "is an ordinary piece");
        if (found == TEXT_NONE && (own->mergeable ? kind != SP_CONTROL && kind != SP_UNKNOWN : kind == SP_BYTE))
            return refuse(own, text, bytes, "has no id");
        if (found == TEXT_NONE && found_in_text)
            own->places[id] = made->count++;
    }
    return made->count <= BPE_IDS - 2
               ? TOKMAP_OK
               : error_set(own->error, TOKMAP_ERROR_LIMIT, own->path, TOKMAP_NO_OFFSET,
                           "the model has ids for more than the %u tokens that are supported", BPE_IDS - 2);
}

/* ---- the pieces ---- */

/* Sets *text to that of an id, which may be empty. */
static void text_find(const struct numbering *own, uint32_t id, uint32_t piece, const char **last, const uint8_t **text,
                      uint32_t *bytes)
{
    const struct text_entry *entry = text_table_by_id(&own->ids, id);
    *text = (const uint8_t *)"";
    *bytes = 0;
    if (entry) {
        *text = entry->text;
        *bytes = entry->bytes;
    } else if (piece != BPE_NONE) {
        *text = text_of(own->pieces, piece, bytes);
    } else if (id >= own->ids.ids) {
        while ((*text = next_name(last, bytes)) && text_table_find(&own->ids, *text, *bytes) != TEXT_NONE)
            continue; /* a piece */
    }
}

/* Fills the arrays in the order of the new ids. by_id: which piece has an id; BPE_NONE: none. */
static enum tokmap_status pieces_fill(struct numbering *own, const uint32_t *by_id)
{
    struct piece_set *made = own->made;
    const char *last = own->rule->last;
    uint32_t at = 0, bytes;
    for (uint32_t id = 0; id < made->count; id++) {
        const uint32_t piece = by_id[id];
        const uint8_t *text;
        text_find(own, id, piece, &last, &text, &bytes);
        const bool special = is_special(own->rule, text, bytes);
        uint8_t kind = piece != BPE_NONE ? own->pieces->kinds[piece] : special ? SP_CONTROL : SP_UNUSED;
        if (own->rule->kept ? kind == SP_UNKNOWN
                            : (special || kind == SP_UNKNOWN) && bytes == 5 && !memcmp(text, "<unk>", 5)) {
            kind = special || !own->rule->kept ? SP_CONTROL : SP_UNKNOWN;
            made->unk = id;
        } else if (kind == SP_UNKNOWN) {
            kind = SP_UNUSED;
        }
        if (kind == SP_UNUSED && bytes && own->mergeable && !own->rule->kept)
            return refuse(own, text, bytes, "is not a piece");
        made->unknown_named |= kind == SP_UNUSED && bytes;
        made->kinds[id] = kind;
        made->scores[id] = piece == BPE_NONE ? 0 : own->pieces->scores[piece];
        made->offsets[id] = at;
        memcpy(made->bytes + at, text, bytes);
        at += bytes;
    }
    made->offsets[made->count] = at;
    return made->unk == BPE_NONE ? refuse(own, (const uint8_t *)"<unk>", 5, "has no id") : TOKMAP_OK;
}

/* Makes the arrays. */
static enum tokmap_status pieces_make(struct numbering *own)
{
    struct piece_set *made = own->made;
    const size_t count = made->count;
    uint64_t text = own->pieces->offsets[own->pieces->count] + (own->rule->last ? strlen(own->rule->last) : 0);
    for (uint32_t i = 0; i < own->ids.count; i++)
        text += own->ids.entries[i].bytes;
    if (text > UINT32_MAX / 2)
        return error_set(own->error, TOKMAP_ERROR_LIMIT, own->path, TOKMAP_NO_OFFSET,
                         "the tokens have more than 2 GiB of text in total");
    uint32_t *by_id = malloc(count * sizeof *by_id);
    made->bytes = malloc((size_t)text + 1);
    made->offsets = malloc((count + 1) * sizeof *made->offsets);
    made->scores = malloc(count * sizeof *made->scores);
    made->kinds = malloc(count);
    enum tokmap_status status = TOKMAP_OK;
    if (!by_id || !made->bytes || !made->offsets || !made->scores || !made->kinds) {
        status = no_memory(own);
    } else {
        memset(by_id, 0xFF, count * sizeof *by_id); /* BPE_NONE */
        for (uint32_t id = 0; id < own->pieces->count; id++)
            if (own->places[id] != TEXT_NONE)
                by_id[own->places[id]] = id;
        status = pieces_fill(own, by_id);
    }
    free(by_id);
    return status;
}

/* Counts rule->last, whose names must be new, behind ids without gaps. */
static enum tokmap_status last_count(struct numbering *own)
{
    const char *list = own->rule->last;
    uint32_t bytes;
    for (const uint8_t *name; (name = next_name(&list, &bytes)) != NULL; own->last++)
        if (own->rule->kept && !is_extra(name, bytes) && text_table_find(&own->ids, name, bytes) != TEXT_NONE)
            own->last--;
        else if (own->ids.count != own->ids.ids || text_table_find(&own->ids, name, bytes) != TEXT_NONE)
            return refuse(own, name, bytes,
                          own->ids.count != own->ids.ids ? "comes after ids with gaps" : "would have two ids");
    return TOKMAP_OK;
}

enum tokmap_status piece_rule_apply(const struct piece_rule *rule, struct piece_set *numbered,
                                    const struct piece_set *pieces, bool mergeable, const char *path,
                                    struct tokmap_error *error)
{
    struct numbering own = {rule, pieces, numbered, .mergeable = mergeable, .path = path, .error = error};
    struct json_file file = {0};
    char *text = NULL;
    *numbered = (struct piece_set){.unk = BPE_NONE};
    own.places = malloc(pieces->count * sizeof *own.places);
    enum tokmap_status status = !own.places  ? no_memory(&own)
                                : rule->json ? ids_read(&own, &file, &text)
                                             : ids_make(&own);
    if (!status)
        status = last_count(&own);
    if (!status) {
        numbered->known = numbered->count = own.ids.ids + own.last;
        status = places_find(&own);
    }
    if (!status)
        status = pieces_make(&own);
    json_file_end(&file);
    text_table_free(&own.ids);
    free(own.places);
    free(text);
    return status;
}
