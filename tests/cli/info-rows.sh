# SPDX-License-Identifier: MIT
# ci: asan
# Documents per row, compared with a count over tokens; windows and tail with every lookahead.
. "$TOKMAP_CLI/helpers.sh"
need python3
pack_corpus
tokmap show small -q --tokens 0..14761 --ids >tokens
for seq_len in 1 2 3 7 64 100 1000 14760; do
    for lookahead in 0 1 5; do
        tokmap info small --seq-len $seq_len --lookahead $lookahead --json
    done
done >infos
python3 - <<'PYTHON'
import json
document, documents = 0, []
for token in open("tokens").read().split():
    documents.append(document)
    document += token == "256"
lengths = sorted(documents.count(number) for number in range(document))
mean = len(documents) / document
bytes_of_text = sum(token != "256" for token in open("tokens").read().split())
tried = 0
for line in open("infos"):
    info = json.loads(line)
    at_least = lambda share: next(x for i, x in enumerate(lengths) if i + 1 >= share * document)
    assert info["document_tokens"] == {"p50": at_least(.5), "p90": at_least(.9), "p99": at_least(.99),
                                       "max": lengths[-1], "mean": float("%.12g" % mean)}, info
    assert info["text_bytes"] == bytes_of_text and abs(info["text_bytes_a_token"] * len(documents) - bytes_of_text) < 1e-6
    got = info["rows"]
    seq_len, lookahead = got["seq_len"], got["lookahead"]
    n = (len(documents) - lookahead) // seq_len
    counts = sorted(len(set(documents[i * seq_len:(i + 1) * seq_len])) for i in range(n))
    wanted = {"seq_len": seq_len, "lookahead": lookahead, "windows": n, "tail": len(documents) - n * seq_len,
              "tokens": n * seq_len,
              "documents_a_row": {"p50": counts[n - n // 2 - 1] if n else 0,
                                  "p999": counts[n - n // 1000 - 1] if n else 0,
                                  "max": counts[-1] if n else 0}}
    assert got == wanted, (got, wanted)
    tried += 1
assert tried == 24
PYTHON
# An epoch in steps; 230 windows of 64 tokens.
tokmap info small --seq-len 64 --batch 8 --json >info
holds info '"windows": 230, "tail": 41, "tokens": 14720, "steps": 28, "windows_left": 6, '
tokmap info small --seq-len 64 --batch 23 >text
holds text "an epoch           10 steps"
# The text of several shards is known if each index records it. A folder of one shard twice has twice the text.
printf 'tokmap-shards 1\nsmall\nsmall\n' >twice
tokmap info twice --json >info
equal "$(field info text_bytes)" 29486
equal "$(field info document_tokens.p50)" 58
# A sequence longer than the dataset: there is no window, and every token is in the tail.
tokmap info small --seq-len 20000 --json >info
holds info '"windows": 0, "tail": 14761, '
tokmap info small --seq-len 20000 >text
holds text "none; a sequence is longer than the dataset"
tokmap info small --seq-len 1Ki --json >info
holds info '"seq_len": 1024'
# No token: the text has no bytes for each.
printf 'a text\n' >text.txt
tokmap pack -q --split none=0.000000000000000001,all=0.999999999999999999 -o sets text.txt 2>err
tokmap info sets.none >text
equal "$(sed -n 's/^text  *//p' text)" '0 B'
tokmap info sets.all >text
holds text ' a token'
