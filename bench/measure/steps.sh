#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# steps.sh: the steps of measure.sh, in the order in which they run. A step is a name and the arguments of tokmap-bench.
# Steps that need a quiet machine most come first.

# The dataset is made in a new folder, because only the names of its files are known to be ours.
data=$folder/tokmap-measure-1g
if [ "${ONLY:-}" != none ] && [ ! -e "$data.tmx" ]; then
    say "making the dataset of 10^9 tokens"
    new=$(mktemp -d "$folder/tokmap-measure.XXXXXX") || exit 1
    "$bench" verify --keep --repeats 1 --dir "$new" >/dev/null 2>&1 || exit 1
    mv "$new"/tokmap-bench-*.bin "$data.bin" && mv "$new"/tokmap-bench-*.tmx "$data.tmx" && rmdir "$new" || exit 1
fi

step loader loader "$data"
step loader-cold loader --cold "$data"
step loader-values loader --values 128 --dir "$folder"
step loader-values-cold loader --values 128 --cold --dir "$folder"
step train-cold train --cold "$data"
step train-cold-2.5 train --cold --step-ms 2.5 "$data"
step open open "$data"
step order order
step verify verify "$data"
step sources sources --repeats 5
step plan plan --repeats 3
step pack pack
step pack-memory pack --memory
step hostile hostile

# Vocabularies, and texts in real languages.
prose=$texts/prose.txt
[ -z "${VOCABULARIES:-}" ] || [ -e "$prose" ] || [ -n "${OFFLINE:-}" ] || [ "${ONLY:-}" = none ] ||
    "$python" "$here/texts.py" "$texts" || say "the texts could not be made"
# gigatoken is in the environment that the comparisons below make; these steps come before them.
against=() peers=$build/peers-venv
if [ -z "${OFFLINE:-}" ] && [ -n "${VOCABULARIES:-}" ] && [ "${ONLY:-}" != none ]; then
    [ -x "$peers/bin/python" ] || "$python" -m venv "$peers"
    "$peers/bin/python" -c 'import gigatoken' 2>/dev/null ||
        "$peers/bin/python" -m pip install --quiet --disable-pip-version-check gigatoken
fi
if "$peers/bin/python" -c 'import gigatoken' 2>/dev/null; then against=(--against gigatoken --venv "$peers")
elif [ -n "${VOCABULARIES:-}" ]; then say "$peers has no gigatoken: tokenizers are measured without it"; fi
# tokenize_step VOCABULARY FILE TEXT OPTION...
tokenize_step() {
    local name=tokenize-$1-$3 vocabulary=${VOCABULARIES:-}/$2 text=$texts/$3.txt
    shift 3
    wanted "$name" || return 0
    if [ -z "${VOCABULARIES:-}" ]; then leave "$name" "VOCABULARIES= names no folder"
    elif [ ! -e "$vocabulary" ]; then leave "$name" "$vocabulary does not exist"
    elif [ ! -e "$text" ]; then leave "$name" "$text does not exist"
    else step "$name" tokenize "$text" -t "$vocabulary" --repeats 5 "${against[@]}" "$@"; fi
}
for text in prose code mixed cjk; do
    tokenize_step gpt2 gpt2/tokenizer.json $text
    tokenize_step o200k openai/o200k_base.tiktoken $text
    tokenize_step llama3 llama3/tokenizer.json $text
    tokenize_step qwen2.5 qwen2.5/tokenizer.json $text
    tokenize_step deepseek_v3 deepseek_v3/tokenizer.json $text
    tokenize_step llama2 llama2/tokenizer.json $text --documents
    tokenize_step gemma gemma/tokenizer.json $text --documents
done
# The prose eight times, because loading a vocabulary and starting a process take much of packing it once.
if [ -n "${VOCABULARIES:-}" ] && [ -e "$prose" ]; then
    if wanted tokenize-gpt2-512m; then
        long=$folder/tokmap-measure-512m.txt
        for _ in 1 2 3 4 5 6 7 8; do cat "$prose"; done >"$long" || exit 1
        step tokenize-gpt2-512m tokenize "$long" -t "$VOCABULARIES/gpt2/tokenizer.json" --documents --repeats 7
        rm -f "$long"
    fi
elif wanted tokenize-gpt2-512m; then leave tokenize-gpt2-512m "it needs VOCABULARIES= and $prose"; fi
# worst_step VOCABULARY FILE
worst_step() {
    local name=tokenize-worst-$1 vocabulary=${VOCABULARIES:-}/$2
    wanted "$name" || return 0
    if [ -z "${VOCABULARIES:-}" ]; then leave "$name" "VOCABULARIES= names no folder"
    elif [ ! -e "$vocabulary" ]; then leave "$name" "$vocabulary does not exist"
    elif [ ! -e "$prose" ]; then leave "$name" "$prose does not exist"
    else step "$name" tokenize --worst "$prose" -t "$vocabulary" --repeats 5; fi
}
worst_step gpt2 gpt2/tokenizer.json
worst_step o200k openai/o200k_base.tiktoken
worst_step llama3 llama3/tokenizer.json
worst_step qwen2.5 qwen2.5/tokenizer.json
worst_step deepseek_v3 deepseek_v3/tokenizer.json
if [ -n "${VOCABULARIES:-}" ] && [ -e "$prose" ]; then
    step pack-gpt2 pack "$prose" -t "$VOCABULARIES/gpt2/tokenizer.json" --text-bytes 512M --repeats 3
elif wanted pack-gpt2; then leave pack-gpt2 "it needs VOCABULARIES= and $prose"; fi

# A sealed shard of real text and the plain one; its frames are compressed one by one, so that the text may repeat.
# sealed_step NAME ARGUMENT...: a step on the plain shard, and NAME-sealed on the sealed one.
sealed_step() {
    local name=$1 kind
    shift
    wanted "$name" || wanted "$name-sealed" || return 0
    if [ -z "${VOCABULARIES:-}" ] || [ ! -e "$prose" ]; then
        for kind in "$name" "$name-sealed"; do
            ! wanted "$kind" || leave "$kind" "it needs VOCABULARIES= and $prose"
        done
        return 0
    fi
    if ! sealed_make; then
        for kind in "$name" "$name-sealed"; do ! wanted "$kind" || leave "$kind" "the shards could not be made"; done
        return 0
    fi
    step "$name" "$@" "$folder/tokmap-measure-prose"
    step "$name-sealed" "$@" "$folder/tokmap-measure-sealed"
}
sealed_make() {
    local kind texts=() seal=() new
    for _ in 1 2 3 4 5 6 7 8; do texts+=("$prose"); done
    for kind in prose sealed; do
        [ ! -e "$folder/tokmap-measure-$kind.tmx" ] || continue
        [ $kind = prose ] || seal=(--seal)
        new=$(mktemp -d "$folder/tokmap-measure.XXXXXX") || return 1
        "$build/bin/tokmap" pack -q "${seal[@]}" -t "$VOCABULARIES/gpt2/tokenizer.json" -o "$new/tokmap-measure-$kind" \
            "${texts[@]}" && mv "$new"/* "$folder" && rmdir "$new" || return 1
    done
}
sealed_step verify-prose verify
sealed_step train-cold-prose train --cold
sealed_step train-cold-2.5-prose train --cold --step-ms 2.5

# Other systems, in the same minutes on the same tokens.
offline=()
[ -z "${OFFLINE:-}" ] || offline=(--offline)
# Its rows start a process more than any other table's, most of whose time is the import of torch.
step compare-loaders compare loaders "$data" "${offline[@]}" --repeats 3 --seconds 0.5
# What a run of 15 T tokens costs, by rows of its length, with the kernel's usual readahead if it can be set.
ahead=/sys/dev/block/$(mountpoint -d "$(stat -c %m "$folder")" 2>/dev/null)/queue/read_ahead_kb ahead_was=
if wanted compare-loaders-8192 && [ -w "$ahead" ]; then
    ahead_was=$(cat "$ahead")
    trap 'echo "$ahead_was" >"$ahead"' EXIT
    echo 128 >"$ahead"
fi
step compare-loaders-8192 compare loaders "$data" "${offline[@]}" --seq-len 8192 \
    --peers tokmap,tokmap_c,tokmap_dataset,memmap --repeats 3 --seconds 0.5
[ -z "$ahead_was" ] || { echo "$ahead_was" >"$ahead"; trap - EXIT; }
run=$folder/15t.run
! wanted cost-15t ||
    printf 'source text synthetic:vocab=50257,tokens=15000000000000\nseq_len 8192\nbatch 2048\npasses 1\n' >"$run"
step cost-15t cost "$run" --gpus 1024 --step-ms 8000
for table in progressive pin overlap start remote; do
    step "compare-$table" compare $table "$data" "${offline[@]}"
done
step compare-values compare values "${offline[@]}"
if [ -n "${VOCABULARIES:-}" ] && [ -e "$prose" ]; then
    # Several systems take a minute for each repeat.
    step compare-pack compare pack -t "$VOCABULARIES/gpt2/tokenizer.json" "${offline[@]}" --repeats 3 --seconds 6
    # The prose sixteen times, in documents: the first answers of a server take 0.1 s, much of packing it once.
    if wanted compare-lake; then
        long=$folder/tokmap-measure-1g.jsonl
        "$python" -c 'import json, sys
prose = open(sys.argv[1], encoding="utf-8").read()
for at in [*range(0, len(prose), 6000)] * 16:
    print(json.dumps({"text": prose[at:at + 6000]}))' "$prose" >"$long" || exit 1
        step compare-lake compare lake "$long" -t "$VOCABULARIES/gpt2/tokenizer.json" "${offline[@]}" --repeats 5
        rm -f "$long"
    fi
    step compare-prepare compare prepare -t "$VOCABULARIES/gpt2/tokenizer.json" "${offline[@]}" --repeats 3 --seconds 30
else
    for table in pack lake prepare; do
        ! wanted "compare-$table" || leave "compare-$table" "it needs VOCABULARIES= and $prose"
    done
fi
step compare-parts compare parts "${offline[@]}"
step faults faults "${offline[@]}"
if [ -e /dev/nvidia0 ]; then step gpu gpu "$data"
elif wanted gpu; then leave gpu "this machine has no GPU"; fi
