# SPDX-License-Identifier: MIT
# A vocabulary has the name of its folder or file, in the repository's form in the cache of the Hub, or a name that
# people know where its fingerprint is a well-known one.
. "$TOKMAP_CLI/helpers.sh"
named()
{
    equal "$(tokmap tokenizer "$1" | sed -n 's/^tokenizer  *//p')" "$2" "$1:"
}
mkdir -p models/my-model hub/models--an-owner--a--model/snapshots/0123abcd
cat >tokenizer.json <<'END'
{"version": "1.0", "added_tokens": [], "model": {"type": "BPE", "unk_token": "<unk>", "vocab": {"<unk>": 0, "a": 1},
 "merges": []}}
END
cp tokenizer.json models/my-model/tokenizer.json
cp tokenizer.json models/my-model/other.json
cp tokenizer.json hub/models--an-owner--a--model/snapshots/0123abcd/tokenizer.json
named tokenizer.json tokenizer.json
named ./tokenizer.json tokenizer.json
named . tokenizer.json
named models/my-model my-model
named models/my-model/ my-model
named models//my-model//tokenizer.json my-model
named models/my-model/other.json other.json
named hub/models--an-owner--a--model/snapshots/0123abcd an-owner/a--model
named bytes bytes
# What other programs load by a name is downloaded first: the message says from where.
elsewhere()
{
    exits 1 tokmap tokenizer "$1" 2>err
    equal "$(cat err)" "tokmap tokenizer: $1: there is no file or folder of this name; name a vocabulary file, a folder \
that contains one, or 'bytes'$2"
}
hub='; if this is a repository of Hugging Face, name hf://an-owner/a.model-1.5B to a command, or download https://huggingface.co/'
elsewhere o200k_base '; download https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken'
login=', for which some owners ask for a login'
while read -r name place; do
    elsewhere "$name" "; if this is a model's name, name hf://$place to a command, or download https://huggingface.co/$place/resolve/main/tokenizer.json$login"
done <<'END'
gpt2 openai-community/gpt2
llama2 meta-llama/Llama-2-7b-hf
llama3 meta-llama/Meta-Llama-3-8B
Llama-3.1-8B meta-llama/Llama-3.1-8B
qwen2.5 Qwen/Qwen2.5-0.5B
mistral mistralai/Mistral-7B-v0.3
gemma google/gemma-2-2b
deepseek-v3 deepseek-ai/DeepSeek-V3
END
for name in cl100k gpt-4; do
    elsewhere $name '; download https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken'
done
elsewhere gpt-4o '; download https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken'
elsewhere an-owner/a.model-1.5B "${hub}an-owner/a.model-1.5B/resolve/main/tokenizer.json"
for name in gpt3 llama3.json models/tokenizer.json x/y.tiktoken ./x ../x /x x/ a/b/c; do
    elsewhere "$name" ''
done
# A name that is too long is cut between two characters.
long=$(printf '%060d' 0)
mkdir "x$long$(printf '\303\251\303\251')"
cp tokenizer.json "x$long$(printf '\303\251\303\251')/"
named "x$long$(printf '\303\251\303\251')" "x$long$(printf '\303\251')"
# A rank file that is not a known one is not called by the name of its pattern.
i=0
while [ $i -lt 256 ]; do
    printf "\\$(printf '%03o' $i)" | base64 | tr -d '\n'
    echo " $i"
    i=$((i + 1))
done >own.tiktoken
equal "$(tokmap tokenizer --pattern cl100k_base own.tiktoken | sed -n 's/^tokenizer  *//p')" own.tiktoken
# The index of a dataset has the name.
echo a >text.txt
tokmap pack -q -t models/my-model --no-eod -o data text.txt
tokmap info --json data | grep -q '"my-model"' || { echo "FAULT: info does not name my-model" >&2 && exit 1; }

data=${TOKMAP_DATA:-$TOKMAP_TREE/../shared/data}
if [ ! -d "$data/vocab" ] && [ -f "$data/vocab.tar.zst" ] && command -v zstd >/dev/null 2>&1; then
    mkdir data.d && zstd -qdc "$data/vocab.tar.zst" | tar -xf - -C data.d || exit 1
    data=data.d
fi
[ -d "$data/vocab" ] || exit 0
while read -r file name; do
    cp "$data/vocab/$file" "any name"
    equal "$(tokmap tokenizer --special recognize "any name" | sed -n 's/^tokenizer  *//p')" "$name" "$file:"
done <<'END'
gpt2/tokenizer.json gpt2
openai/r50k_base.tiktoken r50k_base
openai/o200k_base.tiktoken o200k_base
llama3/tokenizer.json llama3
llama3/tokenizer.model llama3
llama2/tokenizer.model llama2
gemma/tokenizer.json gemma
mistral7b_v1/tokenizer.model mistral-7b
mistral_nemo/tokenizer.json mistral-nemo
deepseek_v3/tokenizer.json deepseek-v3
gpt_neox_20b/tokenizer.json gpt-neox-20b
qwen2.5/tokenizer.json qwen2.5
END
