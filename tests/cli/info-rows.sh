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
tried = 0
for line in open("infos"):
    got = json.loads(line)["rows"]
    seq_len, lookahead = got["seq_len"], got["lookahead"]
    n = (len(documents) - lookahead) // seq_len
    counts = sorted(len(set(documents[i * seq_len:(i + 1) * seq_len])) for i in range(n))
    wanted = {"seq_len": seq_len, "lookahead": lookahead, "windows": n, "tail": len(documents) - n * seq_len,
              "documents_a_row": {"p50": counts[n - n // 2 - 1] if n else 0,
                                  "p999": counts[n - n // 1000 - 1] if n else 0,
                                  "max": counts[-1] if n else 0}}
    assert got == wanted, (got, wanted)
    tried += 1
assert tried == 24
PYTHON
# A sequence longer than the dataset: there is no window, and every token is in the tail.
tokmap info small --seq-len 20000 --json >info
holds info '"windows": 0, "tail": 14761, '
tokmap info small --seq-len 20000 >text
holds text "none; a sequence is longer than the dataset"
tokmap info small --seq-len 1Ki --json >info
holds info '"seq_len": 1024'
