/* SPDX-License-Identifier: MIT */
/* What --learn names: whose turns count, and which parts of them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "chat/chat.h"
#include "chat/chat_templates.h"
#include "support/chat_made.h"

static struct chat_learn learned(const char *words)
{
    struct chat_learn learn = {0};
    char copy[64], *rest = copy, *word;
    (void)snprintf(copy, sizeof copy, "%s", words);
    while ((word = strsep(&rest, ",")))
        assert_true(chat_learn_add(&learn, word));
    return learn;
}

/* Returns what the template writes, as shown(), or the reason to refuse it. */
static const char *written(const char *name, const char *words, const char *json, struct chat_text *text)
{
    struct chat_template *template = chat_opened(name);
    const struct chat_learn learn = learned(words);
    struct tokmap_error error;
    chat_template_learn(template, &learn);
    assert_int_equal(chat_render(template, json, strlen(json), text, &error), TOKMAP_OK);
    chat_template_close(template);
    if (text->reason)
        return text->reason;
    chat_marks_check(text);
    return chat_shown(text);
}

#define SYSTEM "{\"role\": \"system\", \"content\": \"S\"}, "
#define USER "{\"role\": \"user\", \"content\": \"q\"}"
#define ANSWER(rest) "{\"role\": \"assistant\", \"content\": " rest "}"
#define RESULT "{\"role\": \"tool\", \"content\": \"r\", \"tool_call_id\": \"abcdefghi\"}"
#define CALLS                                                                                                          \
    "\"tool_calls\": [{\"id\": \"abcdefghi\", \"type\": \"function\", \"function\": {\"name\": \"f\", \"arguments\": " \
    "\"{}\"}}]"

/* What each writes of a question and an answer, after a system message where it takes one, if all of them count. */
static void everybody_is_learned(void **state)
{
    static const struct {
        const char *name, *text;
    } all[] = {
        {"chatml", "<|im_start|>system\n\1S<|im_end|>\2\n<|im_start|>user\n\1q<|im_end|>\2\n<|im_start|>assistant\n\1a<"
                   "|im_end|>\2\n"},
        {"deepseek-r1-distill", "<｜begin▁of▁sentence｜>\1S\2<｜User｜>\1q\2<｜Assistant｜>\1a<｜end▁of▁sentence｜>\2"},
        {"deepseek-v3", "<｜begin▁of▁sentence｜>\1S\2<｜User｜>\1q\2<｜Assistant｜>\1a<｜end▁of▁sentence｜>\2"},
        {"gemma", "<bos><start_of_turn>user\n\1q<end_of_turn>\2\n<start_of_turn>model\n\1a<end_of_turn>\2\n"},
        {"gemma3", "<bos><start_of_turn>user\n\1S\2\n\n\1q<end_of_turn>\2\n<start_of_turn>model\n\1a<end_of_turn>\2\n"},
        {"llama2", "<s>[INST] <<SYS>>\n\1S\2\n<</SYS>>\n\n\1q [/INST]\2 \1a </s>\2"},
        {"llama3",
         "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\n\1S<|eot_id|>\2<|start_header_id|>user<|end_"
         "header_id|>\n\n\1q<|eot_id|>\2<|start_header_id|>assistant<|end_header_id|>\n\n\1a<|eot_id|>\2"},
        {"llama3.1", "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December "
                     "2023\nToday Date: 26 Jul "
                     "2024\n\n\1S<|eot_id|>\2<|start_header_id|>user<|end_header_id|>\n\n\1q<|eot_id|>\2<|start_header_"
                     "id|>assistant<|end_header_id|>\n\n\1a<|eot_id|>\2"},
        {"mistral-v0", "<s>[INST] \1q [/INST]\2\1a</s>\2"},
        {"mistral-v1", "<s> [INST] \1S\2\n\n\1q [/INST]\2 \1a</s>\2"},
        {"mistral-v3", "<s>[INST] \1q[/INST]\2 \1a</s>\2"},
        {"mistral-v3-tekken", "<s>[INST]\1q[/INST]\2\1a</s>\2"},
        {"phi3", "<|system|>\n\1S<|end|>\2\n<|user|>\n\1q<|end|>\2\n<|assistant|>\n\1a<|end|>\2\n<|endoftext|>"},
        {"phi3.5", "<|system|>\n\1S<|end|>\2\n<|user|>\n\1q<|end|>\2\n<|assistant|>\n\1a<|end|>\2\n<|endoftext|>"},
        {"phi4", "<|im_start|>system<|im_sep|>\1S<|im_end|>\2<|im_start|>user<|im_sep|>\1q<|im_end|>\2<|im_start|>"
                 "assistant<|im_sep|>\1a<|im_end|>\2"},
        {"qwen2.5", "<|im_start|>system\n\1S<|im_end|>\2\n<|im_start|>user\n\1q<|im_end|>\2\n<|im_start|>"
                    "assistant\n\1a<|im_end|>\2\n"},
        {"qwen3", "<|im_start|>system\n\1S<|im_end|>\2\n<|im_start|>user\n\1q<|im_end|>\2\n<|im_start|>assistant\n\1<"
                  "think>\n\n</think>\n\na<|im_end|>\2\n"},
        {"qwen3-2507", "<|im_start|>system\n\1S<|im_end|>\2\n<|im_start|>user\n\1q<|im_end|>\2\n<|im_start|>"
                       "assistant\n\1a<|im_end|>\2\n"},
        {"zephyr", "<|system|>\n\1S</s>\2\n<|user|>\n\1q</s>\2\n<|assistant|>\n\1a</s>\2\n"},
    };
    struct chat_text text = {0};
    size_t count = 0;
    for (const char *const *name = chat_known_names(); *name; name++, count++) {
        const bool without =
            !strcmp(*name, "gemma") || !strcmp(*name, "mistral-v0") || !strncmp(*name, "mistral-v3", 10);
        const char *json = without ? "[" USER ", " ANSWER("\"a\"") "]" : "[" SYSTEM USER ", " ANSWER("\"a\"") "]";
        assert_string_equal(*name, all[count].name);
        assert_string_equal(written(*name, "system,user,assistant", json, &text), all[count].text);
        /* What each role has is what all of them have together. */
        const struct chat_span *spans = text.counted;
        uint64_t bytes[CHAT_ROLES] = {0}, one = 0;
        for (uint64_t i = 0; i < text.counted_count; i++)
            bytes[spans[i].role] += spans[i].end - spans[i].begin;
        for (unsigned role = 0; role < CHAT_ROLE_OTHER; role++) {
            (void)written(*name, chat_role_name((enum chat_role)role), json, &text);
            for (uint64_t i = one = 0; i < text.counted_count; i++)
                one += text.counted[i].end - text.counted[i].begin;
            assert_int_equal(one, bytes[role]);
        }
    }
    chat_text_free(&text);
}

static void parts_of_turns_are_learned(void **state)
{
    static const struct {
        const char *template, *words, *json, *text;
    } cases[] = {
        {"chatml", "assistant,-thinking", "[" USER ", " ANSWER("\"<think>t</think>\\n\\na\"") "]",
         "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n<think>t</think>\n\n\1a<|im_end|>\2\n"},
        {"chatml", "assistant,-thinking", "[" USER ", " ANSWER("\" t</think> a\"") "]",
         "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n t</think> \1a<|im_end|>\2\n"},
        {"chatml", "assistant,-thinking", "[" USER ", " ANSWER("\"a <think>t</think> b <thinking>t</thinking>c\"") "]",
         "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n\1a \2<think>t</think> \1b "
         "\2<thinking>t</thinking>\1c<|im_end|>\2\n"},
        {"chatml", "assistant,-thinking", "[" USER ", " ANSWER("\"a <think> b\"") "]",
         "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n\1a <think> b<|im_end|>\2\n"},
        {"chatml", "assistant,-thinking", "[" USER ", " ANSWER("\" <think> cut\"") "]",
         "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n <think> cut<|im_end|>\n"},
        {"chatml", "assistant,-thinking", "[" USER ", " ANSWER("\"<think>t</think>\"") "]",
         "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n<think>t</think><|im_end|>\n"},
        {"chatml", "assistant,-thinking", "[" USER ", " ANSWER("\"\"") "]",
         "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n\1<|im_end|>\2\n"},
        {"chatml", "user,-thinking", "[{\"role\": \"user\", \"content\": \"<think>t</think>\"}]",
         "<|im_start|>user\n\1<think>t</think><|im_end|>\2\n"},
        {"qwen3", "assistant,-thinking", "[" USER ", " ANSWER("\"a\", \"reasoning_content\": \"t\", " CALLS) "]",
         "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n<think>\nt\n</think>\n\n\1a\n<tool_call>\n{\"name\": "
         "\"f\", \"arguments\": {}}\n</tool_call><|im_end|>\2\n"},
        {"qwen3", "assistant,-calls", "[" USER ", " ANSWER("\"a\", \"reasoning_content\": \"t\", " CALLS) "]",
         "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n\1<think>\nt\n</think>\n\na\2\n<tool_call>\n{\"name\": "
         "\"f\", \"arguments\": {}}\n</tool_call>\1<|im_end|>\2\n"},
        {"qwen3", "assistant,-calls,-thinking", "[" USER ", " ANSWER("\"a\", \"reasoning_content\": \"t\", " CALLS) "]",
         "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n<think>\nt\n</think>\n\n\1a\2\n<tool_call>\n{\"name\": "
         "\"f\", \"arguments\": {}}\n</tool_call>\1<|im_end|>\2\n"},
        {"qwen3", "assistant,-calls,-thinking", "[" USER ", " ANSWER("\"\", \"reasoning_content\": \"t\", " CALLS) "]",
         "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n<think>\nt\n</think>\n\n<tool_call>\n{\"name\": \"f\", "
         "\"arguments\": {}}\n</tool_call><|im_end|>\n"},
        {"qwen3", "assistant,-calls,-thinking",
         "[" USER ", " ANSWER("\"\", \"weight\": 1, \"reasoning_content\": \"t\", " CALLS) "]",
         "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n\1<think>\nt\n</think>\n\n<tool_call>\n{\"name\": "
         "\"f\", \"arguments\": {}}\n</tool_call><|im_end|>\2\n"},
        {"qwen3", "assistant,tool,-calls",
         "[" USER ", " ANSWER("\"\", " CALLS) ", " RESULT ", " RESULT ", " ANSWER("\"b\"") "]",
         "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n<tool_call>\n{\"name\": \"f\", \"arguments\": "
         "{}}\n</tool_call><|im_end|>\n<|im_start|>user\n<tool_response>\n\1r\n</"
         "tool_response>\2\n<tool_response>\n\1r\n</tool_response><|im_end|>\2\n<|im_start|>assistant\n\1<think>\n\n</"
         "think>\n\nb<|im_end|>\2\n"},
        {"qwen2.5", "tool,last",
         "[" USER ", " ANSWER("\"a\"") ", " USER ", " ANSWER("\"\", " CALLS) ", " RESULT ", " ANSWER("\"b\"") "]",
         "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful "
         "assistant.<|im_end|>\n<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\na<|im_end|>\n<|im_start|>user\nq<"
         "|im_end|>\n<|im_start|>assistant\n<tool_call>\n{\"name\": \"f\", \"arguments\": "
         "\"{}\"}\n</tool_call><|im_end|>\n<|im_start|>user\n<tool_response>\n\1r\n</"
         "tool_response><|im_end|>\2\n<|im_start|>assistant\nb<|im_end|>\n"},
        {"llama3.1", "assistant,tool,-calls", "[" USER ", " ANSWER("null, " CALLS) ", " RESULT ", " ANSWER("\"b\"") "]",
         "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\nToday "
         "Date: 26 Jul "
         "2024\n\n<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nq<|eot_id|><|start_header_id|>assistant<|end_"
         "header_id|>\n\n{\"name\": \"f\", \"parameters\": "
         "\"{}\"}<|eot_id|><|start_header_id|>ipython<|end_header_id|>\n\n\1\"r\"<|eot_id|>\2<|start_header_id|>"
         "assistant<|end_header_id|>\n\n\1b<|eot_id|>\2"},
        {"mistral-v3-tekken", "assistant,tool,-calls",
         "[" USER ", " ANSWER("null, " CALLS) ", " RESULT ", " ANSWER("\"b\"") "]",
         "<s>[INST]q[/INST][TOOL_CALLS][{\"name\": \"f\", \"arguments\": \"{}\", \"id\": "
         "\"abcdefghi\"}]</s>[TOOL_RESULTS]\1{\"content\": r, \"call_id\": \"abcdefghi\"}[/TOOL_RESULTS]\2\1b</s>\2"},
        {"deepseek-v3", "assistant,tool,-calls",
         "[" USER ", " ANSWER("\"a\", " CALLS) ", " RESULT ", " ANSWER("\"b\"") "]",
         "<｜begin▁of▁sentence｜><｜User｜>q<｜Assistant｜>\1a\2<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<"
         "｜tool▁sep｜>f\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>\1<｜end▁of▁sentence｜>\2<"
         "｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>\1r<｜tool▁output▁end｜>\2<｜tool▁outputs▁end｜>\1b<"
         "｜end▁of▁sentence｜>\2"},
        {"deepseek-v3", "assistant", "[" USER ", " ANSWER("\"a\", " CALLS) ", " RESULT ", " ANSWER("\"b\"") "]",
         "<｜begin▁of▁sentence｜><｜User｜>q<｜Assistant｜>\1a<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<"
         "｜tool▁sep｜>f\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>\2<"
         "｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>r<｜tool▁output▁end｜><｜tool▁outputs▁end｜>\1b<"
         "｜end▁of▁sentence｜>\2"},
        {"chatml", "assistant,last", "[" USER ", " ANSWER("\"a\"") ", " USER ", " ANSWER("\"b\"") ", " USER "]",
         "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\na<|im_end|>\n<|im_start|>user\nq<|im_end|>\n<|im_start|"
         ">assistant\n\1b<|im_end|>\2\n<|im_start|>user\nq<|im_end|>\n"},
        {"chatml", "user,last", "[" USER ", " ANSWER("\"a\"") ", " USER "]",
         "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\na<|im_end|>\n<|im_start|>user\n\1q<|im_end|>\2\n"},
        {"chatml", "assistant,last",
         "[" USER ", " ANSWER("\"a\", \"weight\": 1") ", " USER ", " ANSWER("\"b\", \"train\": false") "]",
         "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n\1a<|im_end|>\2\n<|im_start|>user\nq<|im_end|>\n<|im_"
         "start|>assistant\nb<|im_end|>\n"},
        {"chatml", "assistant", "[{\"role\": \"user\", \"content\": \"q\", \"weight\": 1}, " ANSWER("\"b\"") "]",
         "<|im_start|>user\n\1q<|im_end|>\2\n<|im_start|>assistant\n\1b<|im_end|>\2\n"},
        {"chatml", "user",
         "[{\"role\": \"user\", \"content\": \"q\", \"weight\": 0}, {\"role\": \"narrator\", \"content\": \"n\", "
         "\"train\": true}]",
         "<|im_start|>user\nq<|im_end|>\n<|im_start|>narrator\n\1n<|im_end|>\2\n"},
        {"chatml", "assistant", "[" USER ", " ANSWER("\"b\", \"weight\": 0.5") "]",
         "its \"weight\" or \"train\" is neither 0 nor 1, neither true nor false; others are "
         "values, which `tokmap index --values` puts beside what is packed"},
    };
    struct chat_text text = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(written(cases[i].template, cases[i].words, cases[i].json, &text), cases[i].text);
    chat_text_free(&text);
}

/* Whatever a template writes before an answer, and whatever thoughts end before them: thoughts that do not end are not
 * learned, nor is the token after them. */
static void cut_thoughts_are_not_learned(void **state)
{
    static const char *const opened[] = {"<think>",
                                         "<thinking>",
                                         "[THINK]",
                                         "<|START_THINKING|>",
                                         "<seed:think>",
                                         " \\n<think>",
                                         "<think>t</think>\\n<think>",
                                         "<think></think><thinking>t</thinking> [THINK]",
                                         "t</think><think>"};
    struct chat_text text = {0};
    char json[512];
    for (const char *const *name = chat_known_names(); *name; name++)
        for (size_t i = 0; i < sizeof opened / sizeof *opened; i++) {
            (void)snprintf(json, sizeof json, "[" USER ", " ANSWER("\"%scut\"") ", " USER ", " ANSWER("\"%s cut\"") "]",
                           opened[i], opened[i]);
            (void)written(*name, "assistant,-thinking", json, &text);
            assert_null(text.reason);
            if (text.counted_count)
                fail_msg("%s of %s: %s", *name, opened[i], chat_shown(&text));
        }
    static const struct {
        const char *answer, *learned;
    } beside[] = {
        {ANSWER("\"<think>cut\", \"reasoning_content\": \"t\""), ""},
        {ANSWER("\"[THINK] cut\", \"reasoning_content\": \"\""), ""},
        {ANSWER("\"a\", \"reasoning_content\": \"t </think> u\""), "a<|im_end|>"},
        {ANSWER("\"<thinking>t</thinking>a\", \"reasoning_content\": \"t\""), "a<|im_end|>"},
        {ANSWER("\"a <think>b\", \"reasoning_content\": \"t\""), "a <think>b<|im_end|>"},
    };
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        (void)snprintf(json, sizeof json, "[" USER ", %s]", beside[i].answer);
        (void)written("qwen3", "assistant,-thinking", json, &text);
        assert_int_equal(text.counted_count, *beside[i].learned != 0);
        if (text.counted_count)
            assert_memory_equal(text.text.bytes + text.counted[0].begin, beside[i].learned, strlen(beside[i].learned));
    }
    chat_text_free(&text);
}

static void words_are_read(void **state)
{
    char text[CHAT_LEARN_TEXT];
    struct chat_learn learn = learned("last,user,-calls,assistant,-thinking,system,tool");
    chat_learn_print(&learn, text);
    assert_string_equal(text, "assistant,tool,system,user,-thinking,-calls,last");
    assert_false(chat_learn_add(&learn, "user"));
    assert_false(chat_learn_add(&learn, "last"));
    assert_false(chat_learn_add(&learn, "other"));
    assert_false(chat_learn_add(&learn, ""));
    learn = (struct chat_learn){0};
    chat_learn_print(&learn, text);
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everybody_is_learned),
        cmocka_unit_test(parts_of_turns_are_learned),
        cmocka_unit_test(cut_thoughts_are_not_learned),
        cmocka_unit_test(words_are_read),
    };
    return cmocka_run_group_tests(tests, chat_setup, chat_teardown);
}
