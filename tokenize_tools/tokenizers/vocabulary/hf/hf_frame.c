/* SPDX-License-Identifier: MIT */
#include "hf_frame.h"

#include <assert.h>
#include <string.h>

#include "common/visible.h"

#define NESTED_MOST 8 /* sequences within sequences */

/* Tokens on one side of a text. */
struct side {
    struct hf_frame_token tokens[HF_FRAME_MOST];
    uint32_t count;
    uint32_t id; /* of the first token; UINT32_MAX: not known */
};

/* One processor. */
struct framing {
    struct side front, back;
    bool sequence; /* the template's text was passed */
};

static void side_add(struct side *side, const struct hf_frame_token *token)
{
    if (side->count < HF_FRAME_MOST)
        side->tokens[side->count++] = *token;
}

/* Parses a token with its id, ["</s>", 2]. */
static bool named_parse(struct json_file *file, struct side *side)
{
    struct hf_frame_token token;
    uint64_t number;
    if (json_kind(&file->scan) != JSON_ARRAY)
        return json_skip(&file->scan);
    if (!json_enter_array(&file->scan) || !json_element(&file->scan) ||
        !json_file_text(file, &token.text, &token.bytes) || !json_element(&file->scan) ||
        !json_unsigned(&file->scan, &number) || json_element(&file->scan))
        return json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                                "post_processor: a token and its id are expected here, such as [\"</s>\", 2]");
    side->count = 0;
    side_add(side, &token);
    side->id = number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
    return !file->scan.fault.reason;
}

/* ---- templates ---- */

/* Parses {"SpecialToken": {"id": "<s>", "type_id": 0}} or {"Sequence": {"id": "A", "type_id": 0}}. */
static bool piece_parse(struct json_file *file, struct framing *framing)
{
    struct json_string name, member;
    if (json_kind(&file->scan) != JSON_OBJECT)
        return json_skip(&file->scan);
    for (json_enter_object(&file->scan); json_member(&file->scan, &name);) {
        framing->sequence |= json_name_is(&name, "Sequence");
        if (!json_name_is(&name, "SpecialToken") || json_kind(&file->scan) != JSON_OBJECT) {
            json_skip(&file->scan);
            continue;
        }
        for (json_enter_object(&file->scan); json_member(&file->scan, &member);) {
            struct hf_frame_token token;
            if (!(json_name_is(&member, "id") ? json_file_text(file, &token.text, &token.bytes)
                                              : json_skip(&file->scan)))
                return false;
            if (json_name_is(&member, "id"))
                side_add(framing->sequence ? &framing->back : &framing->front, &token);
        }
    }
    return !file->scan.fault.reason;
}

/* Parses "single", the template for one text. */
static bool template_parse(struct json_file *file, struct framing *framing)
{
    if (json_kind(&file->scan) != JSON_ARRAY)
        return json_skip(&file->scan);
    for (json_enter_array(&file->scan); json_element(&file->scan);)
        if (!piece_parse(file, framing))
            return false;
    return !file->scan.fault.reason;
}

/* Parses the "ids" of {"<s>": {"ids": [1], ...}}, the value of "special_tokens". Several ids are not one token. */
static bool ids_parse(struct json_file *file, uint32_t *id)
{
    struct json_string name;
    for (json_enter_object(&file->scan); json_member(&file->scan, &name);) {
        uint64_t number = UINT64_MAX;
        uint32_t count = 0;
        if (!json_name_is(&name, "ids")) {
            json_skip(&file->scan);
            continue;
        }
        for (json_enter_array(&file->scan); json_element(&file->scan);) {
            if (!json_unsigned(&file->scan, &number))
                return false;
            count++;
        }
        *id = count == 1 && number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
    }
    return !file->scan.fault.reason;
}

static bool specials_parse(struct json_file *file, struct framing *framing)
{
    struct json_string name;
    if (json_kind(&file->scan) != JSON_OBJECT)
        return json_skip(&file->scan);
    for (json_enter_object(&file->scan); json_member(&file->scan, &name);) {
        uint32_t id = UINT32_MAX;
        struct side *const sides[] = {&framing->front, &framing->back};
        if (!ids_parse(file, &id))
            return false;
        for (int i = 0; i < 2; i++)
            if (sides[i]->count &&
                json_equals(&name, (const char *)sides[i]->tokens[0].text, sides[i]->tokens[0].bytes))
                sides[i]->id = id;
    }
    return !file->scan.fault.reason;
}

/* ---- processors ---- */

/* Puts the tokens of a processor around those of the processors before it. */
static void frame_wrap(struct hf_frame *frame, const struct framing *framing)
{
    struct side front = framing->front, back = {.count = 0};
    for (uint32_t i = 0; i < frame->front_count; i++)
        side_add(&front, &frame->fronts[i]);
    for (uint32_t i = 0; i < frame->back_count; i++)
        side_add(&back, &frame->backs[i]);
    for (uint32_t i = 0; i < framing->back.count; i++)
        side_add(&back, &framing->back.tokens[i]);
    memcpy(frame->fronts, front.tokens, front.count * sizeof *front.tokens);
    memcpy(frame->backs, back.tokens, back.count * sizeof *back.tokens);
    frame->front_count = front.count;
    frame->back_count = back.count;
    if (framing->front.id != UINT32_MAX)
        frame->before = framing->front.id;
    if (framing->back.id != UINT32_MAX)
        frame->after = framing->back.id;
}

static bool processor_parse(struct json_file *file, struct hf_frame *frame, uint32_t depth);

static bool processors_parse(struct json_file *file, struct hf_frame *frame, uint32_t depth)
{
    if (json_kind(&file->scan) != JSON_ARRAY)
        return json_skip(&file->scan);
    for (json_enter_array(&file->scan); json_element(&file->scan);)
        if (!processor_parse(file, frame, depth + 1))
            return false;
    return !file->scan.fault.reason;
}

static bool processor_parse(struct json_file *file, struct hf_frame *frame, uint32_t depth)
{
    struct json_string name;
    struct framing framing = {.front = {.id = UINT32_MAX}, .back = {.id = UINT32_MAX}};
    if (depth > NESTED_MOST)
        return json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED, "post_processor: more than %d sequences are nested",
                                NESTED_MOST);
    /* The template may come after the ids of its tokens, so the object is parsed twice. */
    const struct json_scan start = file->scan;
    for (json_enter_object(&file->scan); json_member(&file->scan, &name);)
        if (!(json_name_is(&name, "single") ? template_parse(file, &framing)
              : json_name_is(&name, "cls")  ? named_parse(file, &framing.front)
              : json_name_is(&name, "sep")  ? named_parse(file, &framing.back)
                                            : json_skip(&file->scan)))
            return false;
    if (file->scan.fault.reason)
        return false;
    file->scan = start;
    for (json_enter_object(&file->scan); json_member(&file->scan, &name);)
        if (!(json_name_is(&name, "special_tokens") ? specials_parse(file, &framing)
              : json_name_is(&name, "processors")   ? processors_parse(file, frame, depth)
                                                    : json_skip(&file->scan)))
            return false;
    frame_wrap(frame, &framing);
    return !file->scan.fault.reason;
}

bool hf_frame_parse(struct json_file *file, struct hf_frame *frame)
{
    assert(!file->status && frame);
    return json_kind(&file->scan) == JSON_OBJECT ? processor_parse(file, frame, 0) : json_skip(&file->scan);
}

/* ---- description ---- */

/* Appends the tokens of a side and its place. *used: the bytes in `into` before its zero. */
static void side_describe(const struct hf_frame_token *tokens, uint32_t count, const char *place, char *into,
                          size_t room, size_t *used)
{
    for (uint32_t i = 0; i <= count && count && room - *used > 1; i++) {
        const char *text = i < count ? (const char *)tokens[i].text : place;
        *used += visible_copy(into + *used, room - *used, text, i < count ? tokens[i].bytes : strlen(place), "");
        if (i < count && room - *used > 1) {
            into[(*used)++] = ' ';
            into[*used] = '\0';
        }
    }
}

void hf_frame_describe(const struct hf_frame *frame, char *into, size_t room)
{
    size_t used = 0;
    assert(room);
    *into = '\0';
    side_describe(frame->fronts, frame->front_count, frame->back_count ? "before and " : "before", into, room, &used);
    side_describe(frame->backs, frame->back_count, "after", into, room, &used);
}
