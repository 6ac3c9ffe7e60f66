# SPDX-License-Identifier: MIT
# What a record has beside the messages of a conversation: tools are written, and what a template does not write is
# refused by name, unless it says nothing or --ignore-fields names it. Turns that are masked, and conversations of which
# nothing is learned.
. "$TOKMAP_CLI/helpers.sh"
printf 'some words to learn from\n' >words.txt
tokmap train-tokenizer -q -o v.json --vocab-size 262 --special-tokens '<|im_start|>,<|im_end|>,<tool_call>,<s>,</s>' words.txt
messages='[{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]'
tools='[{"type": "function", "function": {"name": "get", "parameters": {"n": 1.50}}}]'
pack()
{
    template=$1
    shift
    tokmap pack -q --force --no-eod -t v.json --messages-field messages --chat-template "$template" -o o "$@"
}
text() { tokmap show o -d "${1:-0}" -q --unmarked; }

# Tools are written as the template writes them: as a list, as a text of JSON, beside messages that are inside of an
# object, and where those of the record stand.
printf '{"messages": %s, "tools": %s}\n' "$messages" "$tools" >tools.jsonl
pack qwen3 tools.jsonl
text >out
holds out '{"type": "function", "function": {"name": "get", "parameters": {"n": 1.5}}}'
cp o.bin list.bin
cp o.mask list.mask
printf '{"messages": %s, "tools": "%s"}\n' "$messages" "$(printf '%s' "$tools" | sed 's/"/\\"/g')" >text.jsonl
pack qwen3 text.jsonl
same o.bin list.bin
printf '{"data": {"messages": %s, "tools": %s}}\n{"data": {"messages": %s}, "tools": %s}\n' \
    "$messages" "$tools" "$messages" "$tools" >inside.jsonl
pack qwen3 --messages-field data.messages inside.jsonl
cat list.bin list.bin >twice.bin
same o.bin twice.bin
printf '[%s]' "$(cat tools.jsonl)" >array.json
pack qwen3 array.json
same o.bin list.bin
printf 'messages,tools\n"%s","%s"\n' "$(printf '%s' "$messages" | sed 's/"/""/g')" \
    "$(printf '%s' "$tools" | sed 's/"/""/g')" >table.csv
pack qwen3 --input-format csv table.csv
same o.bin list.bin
same o.mask list.mask
pack qwen3 --columns tools tools.jsonl
same o.bin list.bin

# A call of a tool counts, its result does not. What reads like a token in them is text.
cat >call.jsonl <<'END_OF_FILE'
{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": null, "tool_calls": [{"id": "1", "type": "function", "function": {"name": "get", "arguments": {"x": "<|im_end|>"}}}]}, {"role": "tool", "tool_call_id": "1", "content": "<|im_end|>"}, {"role": "assistant", "content": "a"}]}
END_OF_FILE
pack qwen3-2507 call.jsonl
cat >wanted <<'END_OF_FILE'
⟦user
q
assistant
⟧
{"name": "get", "arguments": {"x": "<|im_end|>"}}
</tool_call>⟦
user
<tool_response>
<|im_end|>
</tool_response>
assistant
⟧a⟦
⟧
END_OF_FILE
tokmap show o -d 0 -q >out
printf '\n' >>out
same out wanted
exits 1 pack chatml call.jsonl 2>err
holds err 'call.jsonl:1: the conversation of line 1 (record 0) cannot be written with the chat template: message 2: the'
holds err 'the template does not write the key (--ignore-fields leaves keys out): tool_calls; correct the record'

# Keys that say something are refused by name, and ignored where they are to be. Others are metadata.
sed -n '/beside_keys\[\]/,/NULL/p' "$TOKMAP_TREE/tokenize_tools/packer/chat/chat_messages.c" | tr ',' '\n' |
    sed -n 's/.*"\(.*\)".*/\1/p' >keys
[ "$(wc -l <keys)" -gt 40 ]
while read -r key; do
    printf '{"messages": %s, "%s": [{"x": 1}]}\n' "$messages" "$key" >>said.jsonl
    for nothing in null '""' '[ ]' '{}'; do
        printf '{"%s": %s, "messages": %s}\n' "$key" "$nothing" "$messages" >>nothing.jsonl
    done
    grep -qw "$key" "$TOKMAP_TREE/tokenize_tools/man/tokmap-chat.7" || { echo "tokmap-chat.7 lacks $key" >&2; exit 1; }
done <keys
pack chatml nothing.jsonl
pack chatml --ignore-fields "id,$(paste -sd, keys)" said.jsonl
exits 1 pack chatml said.jsonl 2>err
holds err 'said.jsonl:1: the conversation'
cat nothing.jsonl said.jsonl >both.jsonl
pack chatml --on-error skip --skipped-list skipped both.jsonl
equal "$(wc -l <skipped | tr -d ' ')" "$(wc -l <keys | tr -d ' ')"
sed 's/.*keys out): \([a-z_.]*\);.*/\1/' skipped | cmp - keys
printf '{"messages": %s, "id": 7, "source": "x", "score": 0.5, "prompt": "q", "chosen": [1]}\n' "$messages" >one.jsonl
pack chatml one.jsonl
cp o.bin plain.bin
printf '{"messages": %s, "system": "be nice"}\n' "$messages" >system.jsonl
pack chatml --columns system system.jsonl
same o.bin plain.bin
pack chatml --ignore-fields system system.jsonl
same o.bin plain.bin
printf '{"messages": %s, "chat_template_kwargs": {"enable_thinking": false, "y": null}, "enable_thinking": true}\n' \
    "$messages" >one.jsonl
pack qwen3 one.jsonl
exits 1 pack qwen2.5 one.jsonl 2>err
holds err ': enable_thinking; correct'
printf '{"messages": %s, "chat_template_kwargs": {"python_tools": ["x"]}}\n' "$messages" >one.jsonl
exits 1 pack qwen3 one.jsonl 2>err
holds err ': python_tools; correct'
pack qwen3 --ignore-fields python_tools one.jsonl
exits 2 tokmap pack -o o --ignore-fields tools words.txt 2>err
holds err '--ignore-fields is about conversations'

# Conversations that differ in their tools alone are no duplicates; those whose tools say nothing are.
cat tools.jsonl tools.jsonl >four.jsonl
printf '{"messages": %s}\n{"tools": [ ], "messages": %s, "system": ""}\n' "$messages" "$messages" >>four.jsonl
pack qwen3 --dedup exact four.jsonl --json >report
equal "$(field report documents)" 2

# An answer without content, and without a call, is refused by every template.
printf '{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": null}]}\n' >null.jsonl
printf '{"messages": [{"role": "user", "content": "q"}, {"role": "assistant"}]}\n' >missing.jsonl
for template in chatml qwen2.5 qwen3 qwen3-2507; do
    for file in null missing; do
        exits 1 pack "$template" "$file.jsonl" 2>err
        holds err 'message 2: it has no content'
    done
done

# Masked turns, and conversations of which nothing is learned, which are counted.
cat >weights.jsonl <<'END_OF_FILE'
{"messages": [{"role": "user", "content": "q", "weight": 0}, {"role": "assistant", "content": "bad", "weight": 0}, {"role": "user", "content": "q"}, {"role": "assistant", "content": "good", "weight": 1}]}
{"messages": [{"role": "user", "content": "q"}]}
{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "bad", "train": false}]}
END_OF_FILE
pack chatml weights.jsonl --json >report 2>err
holds err 'warning: in 2 of 3 conversations no token counts as a target'
equal "$(field report documents_without_targets)" 2
equal "$(field report counted_tokens)" 5
equal "$(tokmap show o -d 0 -q | tail -n 2 | head -n 1)" '⟧good⟦'
