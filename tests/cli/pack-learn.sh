# SPDX-License-Identifier: MIT
# ci: asan
# --learn: what the report and the index say, what is refused, that threads, tasks, shards, and a shuffle change no bit,
# that work with other words is not continued, and labels of ready-made ids.
. "$TOKMAP_CLI/helpers.sh"
need awk
unset SLURM_ARRAY_TASK_ID SLURM_PROCID TOKMAP_TASKS RANK WORLD_SIZE || true
printf 'some words to learn from\n' >words.txt
tokmap train-tokenizer -q -o v.json --vocab-size 262 --special-tokens '<|im_start|>,<|im_end|>,<tool_call>,<s>,</s>' words.txt
pack() { tokmap pack --no-eod -t v.json --messages-field messages --chat-template chatml "$@"; }
learn() { pack -q --force -o o --learn "$@"; }
shown() { tokmap show o -d "${1:-0}" -q --specials; }
talk='{"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "q"}, {"role": "assistant", "content": "<think>t</think>a"}]}'
printf '%s\n{"messages": [{"role": "user", "content": "only a question"}]}\n' "$talk" >t.jsonl

# The report has the tokens of each role; a role that no message has, and conversations without a learned token, are
# warnings.
pack --force --json -o o --learn last,user,assistant t.jsonl >report
pack --force -o o --learn assistant,tool t.jsonl >people 2>err
holds people 'assistant: 18 tokens'
holds people 'tool: 0 tokens'
holds err "no message has the role 'tool' of --learn"
holds err 'in 1 of 2 conversations no token is learned with the given --learn'
if command -v python3 >/dev/null 2>&1; then
    equal "$(field report counted_tokens_of.assistant)" 18
    equal "$(field report counted_tokens_of.user)" 18
    equal "$(field report counted_tokens)" 36
fi
learn -thinking t.jsonl 2>err
shown >out
holds out '⟧a<|im_end|>⟦'
tokmap info o >out
holds out 'options learn              assistant,-thinking'

# Without --learn, and with the same as a word, the tokens count that did before; the index differs by the word.
pack -q --force -o plain t.jsonl 2>err
learn assistant t.jsonl 2>err
same o.mask plain.mask
same o.bin plain.bin
grep -q '"learn"' plain.tmx && exit 1

# What is refused.
refused()
{
    wanted=$1
    shift
    exits 2 pack -q -o no "$@" t.jsonl 2>err
    holds err "$wanted"
}
refused "'asistant' is not one of assistant, tool, system, user, -thinking, -calls, last; did you mean 'assistant'?" --learn asistant
refused "'user' is there twice" --learn user,tool,user
refused "'' is not one of" --learn ''
refused "'assistantassistantassistant' is not one of" --learn assistantassistantassistant
exits 2 tokmap pack -q -o no --learn user words.txt 2>err
holds err '--learn is about conversations: name their field with --messages-field'
exits 1 pack -q -o no --learn tool,-calls t.jsonl 2>err
holds err 'no token of 2 conversations is learned with --learn tool,-calls; the messages have the roles assistant, system, user'
[ ! -e no.tmx ]
exits 1 pack -q -o no --dry-run --learn tool t.jsonl 2>err
holds err 'no token of 2 conversations is learned'
exits 1 pack -q -o no --shard-tokens 10 --learn tool t.jsonl 2>err
holds err 'no token of 2 conversations is learned'
[ ! -e no ]
rm -rf no.work
# A message's own weight wins, and must be 0 or 1. Only with --learn can others than an assistant have 1.
own() { printf '{"messages": [{"role": "user", "content": "q", "weight": %s}, {"role": "assistant", "content": "a"}]}\n' "$1" >own.jsonl; }
own 1
learn assistant own.jsonl
shown >out
holds out '⟧q<|im_end|>⟦'
exits 1 pack -q -o no own.jsonl 2>err
holds err "message 1: only what an assistant says can count (--learn takes other roles), and its role is: user"
for weight in 0.5 2 -1 '"1"' '[1]' 1e0; do
    own "$weight"
    exits 1 pack -q -o no --learn assistant own.jsonl 2>err
    holds err 'the conversation of line 1 (record 0) cannot be written with the chat template: message 1: its "weight" or "train" is neither 0 nor 1'
done

# The same bits by any number of threads and tasks, and the mask of words together is that of each of them.
awk 'BEGIN { for (i = 0; i < 3000; i++) {
    printf "{\"messages\": ["
    for (k = 0; k <= i % 6; k++)
        printf "%s{\"role\": \"%s\", \"content\": \"%s%d words\"%s}", k ? ", " : "", \
            k % 2 ? "assistant" : i % 4 ? "user" : "tool", i % 3 ? "" : "<think>t</think>", i, \
            (i + k) % 7 ? "" : ", \"weight\": " i % 2
    printf "]}\n" } }' >many.jsonl
learn assistant,user,-thinking -j 1 many.jsonl
cp o.mask one.mask
for threads in 2 3 8; do
    learn assistant,user,-thinking -j $threads many.jsonl
    same o.mask one.mask
done
units='--shard-tokens 20k --unit-bytes 40000 --learn user,-thinking,assistant'
pack -q -o whole $units many.jsonl
for task in 2 0 1; do
    pack -q -o tasks $units --task $task/3 many.jsonl
done
for shard in whole-*.mask; do
    same "$shard" "tasks${shard#whole}"
done
pack -q --force -o tasks --json $units many.jsonl >report
if command -v python3 >/dev/null 2>&1; then
    # Sums of bits: what each role has by itself is what they have together.
    sums=0
    for role in assistant user tool; do
        pack -q --force -o o --json --learn $role,-thinking many.jsonl >one
        eval "$role=$(field one counted_tokens_of.$role)"
    done
    equal "$(field report counted_tokens_of.assistant)" "$assistant"
    equal "$(field report counted_tokens_of.user)" "$user"
fi

# Work that was begun with other words is refused.
pack -q -o begun --shard-tokens 20k --unit-bytes 40000 --learn user --task 0/2 many.jsonl
exits 1 pack -q -o begun --shard-tokens 20k --unit-bytes 40000 --learn user,last --task 1/2 many.jsonl 2>err
holds err 'another --learn: it had user, and this one has user,last'

# Labels: the ids again, or -100.
bytes() { od -An -v -tu"$1" "$2" | tr -s ' \n' ' '; }
ids='--ids-field i --labels-field l --vocab-size 100'
printf '{"i": [1, 2, 3], "l": [-100, 2, 3]}\n{"i": [7, 8], "l": [ -100,\t-100 ]}\n{"i": [], "l": []}\n{"i": [9], "l": "[9]"}\n' >l.jsonl
tokmap pack -q $ids --eod=9 -o l l.jsonl
equal "$(bytes 2 l.bin)" ' 1 2 3 9 7 8 9 9 9 '
equal "$(bytes 1 l.mask)" ' 206 1 '
holds l.tmx '"labels_field": "l"'
printf 'i,l\n"[1, 2]","[-100,2]"\n' >l.csv
tokmap pack -q $ids --input-format csv -o c l.csv
equal "$(bytes 1 c.mask)" ' 2 '
bad()
{
    printf '{"i": [1, 2], "l": [-100, 2]}\n{"i": [1, 2], "l": %s}\n' "$1" >bad.jsonl
    exits 1 tokmap pack -q $ids -o bad bad.jsonl 2>err
    holds err "the mask 'l' of line 2 (record 1) cannot be used: $2"
}
wrong='is neither -100 nor the id in its place, so the labels are shifted or changed'
bad '[2, -100]' "number 1 of the list, 2, $wrong"
bad '[-100, -1000]' "number 2 of the list, -1000, $wrong"
bad '[-100, -1]' "number 2 of the list, -1, $wrong"
bad '[-100, 2.0]' "number 2 of the list, 2.0, $wrong"
bad '[-100, true]' 'number 2 of the list, true, is not a number'
bad '[-100]' 'it has 1 values for 2 ids'
bad '[1, 2, 3]' 'it has 3 values for 2 ids'
exits 2 tokmap pack -q --labels-field l -o bad l.jsonl 2>err
holds err '--labels-field has the labels of token ids: name their field with --ids-field'
exits 2 tokmap pack -q $ids --mask-field l -o bad l.jsonl 2>err
holds err '--mask-field and --labels-field exclude each other'
