# SPDX-License-Identifier: MIT
# With real vocabularies of each form, packing what export writes gives the same tokens.
. "$TOKMAP_CLI/helpers.sh"
data=${TOKMAP_DATA:-${TOKMAP_BIN%/bin}/reference_data}
if [ ! -d "$data/vocab" ]; then
    archives=$TOKMAP_TREE/../shared/data
    [ -e "$archives/vocab.tar.zst" ] || skip "no vocabularies on this machine"
    need zstd tar
    mkdir data
    for archive in vocab corpus; do
        zstd -qdc "$archives/$archive.tar.zst" | tar -xf - -C data
    done
    data=data
fi
corpus
cat >in/odd.jsonl <<'END'
{"text": "  two blanks, \u2581 and \u2581\u2581, a tab\t, no break\u00a0space, \u3000wide  "}
{"text": "\ufffd\u0000\u001b[0m \ud83d\udc69\u200d\ud83d\ude80 e\u0301 \u00e9 \ufb01 \ud55c\uae00 \u1112\u1161\u11ab"}
{"text": "<s> </s> <unk> <|endoftext|> <0x41> <bos> [INST]"}
{"text": "\n\n\r\n   \n"}
END
for text in en_wikitext2_test.txt ja_wagahai_neko.txt code_c_valkey_server.c json_twitter.json; do
    head -n 400 "$data/corpus/$text" >"in/$text.txt"
done
for vocabulary in gpt2/tokenizer.json gpt2/vocab.bpe openai/cl100k_base.tiktoken llama2/tokenizer.json \
    llama2/tokenizer.model llama3/tokenizer.json gemma/tokenizer.json qwen2.5/tokenizer.json \
    mistral_nemo/tekken_derived.json; do
    set -- -q -t "$data/vocab/$vocabulary" --eod --input-format auto --on-error skip
    # A vocabulary that does not name its EOD gets one.
    tokmap pack "$@" -o d in 2>err || set -- "$@" --no-eod
    [ -e d.bin ] || tokmap pack "$@" -o d in 2>err
    tokmap export -q --check -o d.jsonl d
    tokmap pack "$@" -o e d.jsonl
    same d.bin e.bin
    rm d.* e.*
done
