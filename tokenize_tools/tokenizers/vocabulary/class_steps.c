/* SPDX-License-Identifier: MIT */
/* class_steps.c - steps of transformers 5.24.0.
 * Made by tests/reference/make_class_steps.py: do not edit.
 * Left out are
 * EsmcTokenizer, Tipsv2Tokenizer, MLukeTokenizer, SeamlessM4TTokenizer, LayoutXLMTokenizer, DPRContextEncoderTokenizer,
 * DPRQuestionEncoderTokenizer, DPRReaderTokenizer, MarkupLMTokenizer, RoFormerTokenizer.
 */
#include "class_steps.h"

#define STEP(type) "{\"type\":\"" type "\"}"
#define SPACE(where, split) \
    "{\"type\":\"Metaspace\",\"replacement\":\"\\u2581\",\"prepend_scheme\":\"" where "\",\"split\":" split "}"
#define STRING(pattern, text) \
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\"" pattern "\"},\"content\":\"" text "\"}"
#define REGEX(pattern, text) "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"" pattern "\"},\"content\":\"" text "\"}"
#define STRIP(left, right) "{\"type\":\"Strip\",\"strip_left\":" left ",\"strip_right\":" right "}"
#define SPLIT(pattern, behavior) \
    "{\"type\":\"Split\",\"pattern\":{\"String\":\"" pattern "\"},\"behavior\":\"" behavior "\",\"invert\":false}"
#define MAP "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"@\"}"
#define BYTES(prefix, regex) \
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":" prefix ",\"trim_offsets\":true,\"use_regex\":" regex "}"
#define NFC "\"normalizer\":" STEP("NFC") ",\"pre_tokenizer\":"
#define NONE "\"normalizer\":null,\"pre_tokenizer\":"
#define SEQUENCE "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":["
#define NORMALIZERS "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":["
#define BERT(chinese, accents, lower) \
    "\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":" chinese "," \
    "\"strip_accents\":" accents ",\"lowercase\":" lower "},\"pre_tokenizer\":" STEP("BertPreTokenizer")
const struct class_steps class_steps[CLASS_STEPS] = {
    {HF_UNIGRAM, "AlbertTokenizer", "albert yoso", NORMALIZERS STRING("``", "\\\"") "," STRING("''", "\\\"")
     "@keep_accents@," STEP("NFKD") "," STEP("StripAccents") "@," STEP("NFKD") "," STEP("StripAccents")
     "@@@do_lower_case@," STEP("Lowercase") "@@," STEP("Lowercase") "@@charsmap@@," MAP "@]}," SEQUENCE
     STEP("WhitespaceSplit") "," SPACE("@add_prefix_space@always@never@always@", "true") "]}"},
    {HF_BPE, "GPT2Tokenizer RobertaTokenizer BartTokenizer LEDTokenizer MvpTokenizer DebertaTokenizer LukeTokenizer "
     "WhisperTokenizer LongformerTokenizer CodeGenTokenizer", "florence2 led mvp bart bridgetower clap data2vec-text "
     "ibert lilt longformer mega mra roberta roberta-prelayernorm deberta blip-2 codegen dbrx emu3 gpt2 gpt_neo gptj "
     "hyperclovax_vision_v2 instructblip instructblipvideo jais2 opt phi starcoder2 luke whisper", NONE
     BYTES("@add_prefix_space@false@false@true@", "true")},
    {HF_UNIGRAM, "BarthezTokenizer", "barthez", NORMALIZERS REGEX("\\\\s{2,}|[\\\\n\\\\r\\\\t]", " ") "," STEP("NFC")
     "," STRIP("false", "true") "]},\"pre_tokenizer\":" SPACE("@add_prefix_space@always@never@always@", "true")},
    {HF_WORDPIECE, "BertTokenizer LxmertTokenizer MobileBertTokenizer FunnelTokenizer LayoutLMv2Tokenizer "
     "MPNetTokenizer SplinterTokenizer ElectraTokenizer LayoutLMTokenizer SqueezeBertTokenizer DistilBertTokenizer",
     "align bark bert blip bros chinese_clip convbert distilbert electra ernie flava git grounding-dino layoutlm "
     "megatron-bert mm-grounding-dino nezha nomic_bert qdqbert realm retribert squeezebert tvp vilt visual_bert "
     "lxmert mobilebert funnel layoutlmv2 mpnet splinter", BERT("@tokenize_chinese_chars@true@false@true@",
     "@strip_accents@null@false@true@", "@do_lower_case@true@false@true@")},
    {HF_UNIGRAM, "BigBirdTokenizer", "big_bird", NORMALIZERS STRIP("false", "false") "," REGEX(" {2,}", "\\u2581")
     "]},\"pre_tokenizer\":" SPACE("@add_prefix_space@always@never@always@", "true")},
    {HF_BPE, "BlenderbotTokenizer LayoutLMv3Tokenizer", "blenderbot layoutlmv3", NONE
     BYTES("@add_prefix_space@true@false@true@", "true")},
    {HF_BPE, "CLIPTokenizer", "aimv2 clip clipseg groupvit omdet-turbo oneformer owlv2 owlvit sam3 sam3_video xclip",
     NORMALIZERS STEP("NFC") "," REGEX("\\\\s+", " ") "," STEP("Lowercase") "]}," SEQUENCE "{\"type\":\"Split\","
     "\"pattern\":{\"Regex\":\"<\\\\|startoftext\\\\|>|<\\\\|endoftext\\\\|>|'s|'t|'re|'ve|'m|'ll|'d|[\\\\p{L}]+|"
     "[\\\\p{N}]|[^\\\\s\\\\p{L}\\\\p{N}]+\"},\"behavior\":\"Removed\",\"invert\":true}," BYTES("false", "true")
     "]}"},
    {HF_UNIGRAM, "XLMRobertaTokenizer CamembertTokenizer", "camembert gte jina_embeddings_v3 metaclip_2 trocr "
     "xlm-roberta xmod", "\"normalizer\":@charsmap@null@" MAP "@," SEQUENCE STEP("WhitespaceSplit") ","
     SPACE("@add_prefix_space@always@never@always@", "true") "]}"},
    {HF_BPE, "CodeLlamaTokenizer", "code_llama", NONE SPACE("@add_prefix_space@first@never@first@", "false")},
    {HF_BPE, "CohereTokenizer", "aya_vision cohere cohere2", "\"normalizer\":" STEP("NFC") "," SEQUENCE
     "{\"type\":\"Digits\",\"individual_digits\":true}," BYTES("@add_prefix_space@false@false@true@", "true") "]}"},
    {HF_UNIGRAM, "DebertaV2Tokenizer", "deberta-v2", NORMALIZERS "@do_lower_case@@@" STEP("Lowercase") ",@"
     REGEX("\\\\s{2,}|[\\\\n\\\\r\\\\t]", " ") "," STEP("NFC") "," STRIP("false", "true") "]}," SEQUENCE
     "@split_by_punct@@@{\"type\":\"Punctuation\",\"behavior\":\"Isolated\"},@"
     SPACE("@add_prefix_space@always@first@always@", "true") "]}"},
    {HF_BPE, "GPTNeoXTokenizer", "falcon_mamba gpt_neox mamba mamba2 mpt olmo olmoe rwkv xlstm", NFC
     BYTES("@add_prefix_space@false@false@true@", "true")},
    {HF_BPE, "GemmaTokenizer", "diffusion_gemma gemma gemma2 gemma3 gemma3_text gemma3n gemma3n_text recurrent_gemma "
     "shieldgemma2 t5gemma zaya", "\"normalizer\":" STRING(" ", "\\u2581") ",\"pre_tokenizer\":" SPLIT(" ",
     "MergedWithPrevious")},
    {HF_BPE, "HerbertTokenizer", "herbert", BERT("true", "false", "false")},
    {HF_UNIGRAM, "T5Tokenizer LasrTokenizer VideoPrismTokenizer", "lasr_ctc lasr_encoder mt5 musicgen musicgen_melody "
     "switch_transformers t5 videoprism", "\"normalizer\":@charsmap@null@" MAP "@," SEQUENCE STEP("WhitespaceSplit")
     "," SPACE("always", "true") "]}"},
    {HF_BPE, "LlamaTokenizer Phi3Tokenizer", "idefics idefics2", NONE SPACE("@legacy@first@first@always@", "false")
     "@add_prefix_space@@?@@"},
    {HF_UNIGRAM, "MBart50Tokenizer", "mbart50", NORMALIZERS "@charsmap@@" MAP ",@" REGEX(" {2,}", " ") "]},"
     "\"pre_tokenizer\":" SPACE("always", "true")},
    {HF_UNIGRAM, "MBartTokenizer UdopTokenizer", "mbart udop", "\"normalizer\":null," SEQUENCE STEP("WhitespaceSplit")
     "," SPACE("always", "true") "]}"},
    {HF_BPE, "NllbTokenizer ReformerTokenizer", "nllb nllb-moe reformer",
     "\"normalizer\":@charsmap@null@{\"type\":\"Sequence\",\"normalizers\":[" MAP "," REGEX(" {2,}", " ") "]}@,"
     "\"pre_tokenizer\":" SPACE("always", "true")},
    {HF_BPE, "NougatTokenizer", "nougat pp_formulanet", "\"normalizer\":" STEP("NFKC") "," SEQUENCE
     SPLIT("SPL1T-TH1S-Pl3A5E", "Removed") ",{\"type\":\"Digits\",\"individual_digits\":true},{\"type\":\"Split\","
     "\"pattern\":{\"String\":\"[\\\\(\\\\)\\\\[\\\\]\\\\{\\\\}]|([!\\\\\\\"#\\\\$%\\\\&'\\\\*\\\\+,"
     "\\\\-\\\\./:;<=>\\\\?\\\\\\\\\\\\^_`\\\\|\\\\~])\\\\1*\"},\"behavior\":\"Isolated\",\"invert\":false},"
     SPLIT("\\n", "Isolated") "," BYTES("false", "true") "]}"},
    {HF_BPE, "OpenAIGPTTokenizer", "openai-gpt", BERT("true", "null", "true")},
    {HF_UNIGRAM, "PegasusTokenizer", "pegasus", NORMALIZERS "{\"type\":\"@charsmap@Replace\","
     "\"pattern\":{\"Regex\":\"\\\\n\"},\"content\":\" @Precompiled\",\"precompiled_charsmap\":\"@@\"},"
     REGEX(" {2,}", " ") "]},\"pre_tokenizer\":" SPACE("always", "true")},
    {HF_BPE, "Qwen2Tokenizer", "audioflamingo3 colqwen2 cosmos3_omni dots3_note fun_asr_nano hunyuan_vl internvl "
     "lighton_ocr moss_transcribe_diarize ovis2 qianfan_ocr qwen2 qwen2_5_omni qwen2_5_vl qwen2_audio qwen2_moe "
     "qwen2_vl qwen3 qwen3_asr qwen3_moe qwen3_next qwen3_omni_moe qwen3_vl qwen3_vl_moe vibevoice", "\"normalizer\":"
     STEP("NFC") "," SEQUENCE "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|"
     "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|"
     "\\\\s+(?!\\\\S)|\\\\s+\"},\"behavior\":\"Isolated\",\"invert\":false},"
     BYTES("@add_prefix_space@false@false@true@", "false") "]}"},
    {HF_BPE, "Qwen3_5Tokenizer", "qwen3_5 qwen3_5_moe qwen3_5_moe_text qwen3_5_text qwen4_exp", "\"normalizer\":"
     STEP("NFC") "," SEQUENCE "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|"
     "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?[\\\\p{L}\\\\p{M}]+|\\\\p{N}| ?[^\\\\s\\\\p{L}\\\\p{M}\\\\p{N}]+[\\\\r\\\\n]*|"
     "\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"},\"behavior\":\"Isolated\",\"invert\":false},"
     BYTES("@add_prefix_space@false@false@true@", "false") "]}"},
    {HF_UNIGRAM, "RemBertTokenizer", "rembert", NORMALIZERS STRING("``", "\\\"") "," STRING("''", "\\\"") ","
     REGEX(" {2,}", " ") "@keep_accents@@," STEP("NFKD") "," STEP("StripAccents") "@@@do_lower_case@@@,"
     STEP("Lowercase") "@@charsmap@@," MAP "@]},\"pre_tokenizer\":" SPACE("@add_prefix_space@always@never@always@",
     "true")},
    {HF_BPE, "Siglip2Tokenizer", "siglip2", NORMALIZERS STEP("Lowercase") "," STRING(" ", "\\u2581") "]},"
     "\"pre_tokenizer\":" SPLIT(" ", "MergedWithPrevious")},
    {HF_UNIGRAM, "XGLMTokenizer", "xglm", NORMALIZERS "@charsmap@@" MAP ",@" REGEX(" {2,}", " ") "]},"
     "\"pre_tokenizer\":" SPACE("@add_prefix_space@always@never@always@", "true")},
    {HF_UNIGRAM, "XLNetTokenizer", "xlnet", NORMALIZERS STRING("``", "\\\"") "," STRING("''", "\\\"") "," STEP("NFKD")
     "," STEP("StripAccents") "@do_lower_case@@@," STEP("Lowercase") "@@charsmap@@," MAP "@]}," SEQUENCE
     STEP("WhitespaceSplit") "," SPACE("always", "true") "]}"},
};
const char class_steps_none[] =
     "EvollaModel arctic aria beam bigbird_pegasus camembertv2-base canary chatlm cohere_asr ernie4_5 ernie4_5_moe "
     "flex_olmo fuyu glm glm4 glm4_moe glm4_moe_lite glm4v glm4v_moe glm_image glmasr got_ocr2 gpt_bigcode "
     "gradium_phonon_tts granite granitemoe granitemoehybrid granitemoeshared h2ovl_chat hyperclovax hyperclovax_vlm "
     "internlm2 internlm3 iquestcoder jamba kimi_k25 kimi_linear kosmos-2 llava llava_next mimo_v2_flash minicpm3 "
     "minicpm_ocr minicpmv minicpmv4_6 minicpmv4_7 minimax_m2 ministral ministral3 mistral mistral3 mistral_large4 "
     "mixtral modernbert modernbert-decoder molmo molmo2 nemo_speechlm nemotron nvfp4 nystromformer olmo2 olmo3 "
     "olmo_hybrid omniasr opencua openvla paddleocr_vl pegasus_x persimmon phi3 phi3_v phimoe pix2struct pixtral "
     "pocket_tts smolvlm stablelm step3_vl umt5 vipllava voxtral voxtral_realtime xlm-roberta-xl";
const char class_steps_always[] =
     "hyperclovax_vision_v2 qwen2 qwen3_5 qwen3_5_moe qwen3_5_moe_text qwen4_exp siglip2";
