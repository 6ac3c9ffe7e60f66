/* SPDX-License-Identifier: MIT */
/* chat_made.c - see chat_made.h. */
#include "chat_made.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "support/scratch.h"
#include "text/code_point.h"
#include "unicode/byte_alphabet.h"
#include "vocabulary/vocabulary.h"

const char *const chat_specials[CHAT_SPECIALS] = {"<|im_start|>",
                                                  "<|im_end|>",
                                                  "<|im_sep|>",
                                                  "<s>",
                                                  "</s>",
                                                  "[INST]",
                                                  "[/INST]",
                                                  "<|begin_of_text|>",
                                                  "<|end_header_id|>",
                                                  "<|eot_id|>",
                                                  "<bos>",
                                                  "<start_of_turn>",
                                                  "<|user|>",
                                                  "<|start_header_id|>",
                                                  "<|assistant|>",
                                                  "<|end|>",
                                                  "<end_of_turn>",
                                                  "<|endoftext|>",
                                                  "<|system|>",
                                                  "<｜User｜>",
                                                  "<｜Assistant｜>",
                                                  "<think>",
                                                  "</think>",
                                                  "<tool_call>",
                                                  "</tool_call>",
                                                  "[TOOL_CALLS]",
                                                  "<｜begin▁of▁sentence｜>",
                                                  "<｜end▁of▁sentence｜>"};

char chat_folder[512];
struct tokenizer *chat_as_text, *chat_as_tokens;

/* Writes a vocabulary in which each byte is its own token, and id 256 + i is specials[i]. */
int chat_setup(void **state)
{
    static char text[16384];
    size_t used = 0;
    struct tokmap_error error;
    const struct tokmap_tokenizer_options recognize = {.special = TOKMAP_SPECIAL_RECOGNIZE};
#define ADD(...) used += (size_t)snprintf(text + used, sizeof text - used, __VA_ARGS__)
    scratch_make(chat_folder);
    ADD("{\"version\": \"1.0\", \"added_tokens\": [");
    for (size_t i = 0; i < CHAT_SPECIALS; i++)
        ADD("%s{\"id\": %zu, \"content\": \"%s\", \"single_word\": false, \"lstrip\": false, \"rstrip\": %s, "
            "\"normalized\": false, \"special\": true}",
            i ? ", " : "", 256 + i, chat_specials[i], !strcmp(chat_specials[i], "<|end|>") ? "true" : "false");
    ADD("], \"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, "
        "\"use_regex\": false}, \"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true, \"trim_offsets\": "
        "true, \"use_regex\": true}, \"model\": {\"type\": \"BPE\", \"vocab\": {");
    for (unsigned byte = 0; byte < 256; byte++) {
        uint8_t character[5] = {0};
        character[code_point_put(character, byte_character((uint8_t)byte))] = 0;
        ADD("%s\"%s%s\": %u", byte ? ", " : "", *character == '"' || *character == '\\' ? "\\" : "", (char *)character,
            byte);
    }
    ADD("}, \"merges\": []}}");
#undef ADD
    assert_true(used < sizeof text);
    file_write_text(in_folder(chat_folder, "tokenizer.json"), text);
    assert_int_equal(vocabulary_open(&chat_as_text, in_folder(chat_folder, "tokenizer.json"), NULL, &error), TOKMAP_OK);
    assert_int_equal(vocabulary_open(&chat_as_tokens, in_folder(chat_folder, "tokenizer.json"), &recognize, &error),
                     TOKMAP_OK);
    return 0;
}

int chat_teardown(void **state)
{
    tokenizer_close(chat_as_text);
    tokenizer_close(chat_as_tokens);
    scratch_remove(chat_folder);
    return 0;
}

struct chat_template *chat_opened(const char *choice)
{
    struct chat_template *template;
    struct tokmap_error error;
    if (chat_template_open(&template, choice, NULL, chat_as_text, &error))
        fail_msg("%s: %s", choice, error.message);
    return template;
}

/* The text with 0x01 and 0x02 around what counts. */
const char *chat_shown(const struct chat_text *text)
{
    static char out[4096];
    size_t used = 0;
    uint64_t span = 0;
    for (uint64_t i = 0; i <= text->text.count; i++) {
        assert_true(used + 8 < sizeof out);
        if (span < text->counted_count && i == text->counted[span].end) {
            out[used++] = 2;
            span++;
        }
        if (span < text->counted_count && i == text->counted[span].begin)
            out[used++] = 1;
        if (i < text->text.count)
            out[used++] = text->text.bytes[i];
    }
    out[used] = 0;
    return out;
}

void chat_marks_check(const struct chat_text *text)
{
    for (uint64_t i = 0; i < text->mark_count; i++) {
        const struct tokenizer_mark *mark = &text->marks[i];
        assert_in_range(mark->id, 256, 256 + CHAT_SPECIALS - 1);
        assert_int_equal(mark->end - mark->begin, strlen(chat_specials[mark->id - 256]));
        assert_memory_equal(text->text.bytes + mark->begin, chat_specials[mark->id - 256], mark->end - mark->begin);
        assert_true(i == 0 || text->marks[i - 1].end <= mark->begin);
    }
}
