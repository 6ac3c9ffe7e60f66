# SPDX-License-Identifier: MIT
# ci: nonroot asan tsan
# tokmap convert: a dataset becomes the files of each other project and comes back as the same dataset.
. "$TOKMAP_CLI/helpers.sh"
need python3
pack_corpus
content()
{
    tokmap info "$1" --json >info.json
    python3 -c 'import json; f = json.load(open("info.json")); print(f["content"], f["documents"])'
}
small=$(content small)

# Golden bytes, computed here from the documents.
cat >golden.py <<'PY'
import gzip, json, struct, subprocess
from array import array
tokens = array("H", open("small.bin", "rb").read())
ends = [i + 1 for i, token in enumerate(tokens) if token == 256]
starts = [0] + ends[:-1]
assert len(ends) == 18 and tokens[-1] == 256
def is_same(name, data):
    found = open(name, "rb").read()
    assert found == data, (name, len(found), len(data))
raw = tokens.tobytes()
def megatron(name, dtype, code, size):
    is_same(name + ".bin", array(code, tokens).tobytes())
    is_same(name + ".idx", b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, dtype, 18, 19)
            + array("i", [e - s for s, e in zip(starts, ends)]).tobytes()
            + array("q", [s * size for s in starts]).tobytes() + array("q", range(19)).tobytes())
megatron("m", 8, "H", 2)
megatron("m4", 4, "i", 4)
is_same("l.bin", struct.pack("<3i", 20240520, 1, len(tokens)) + bytes(1012) + raw)
is_same("l4.bin", struct.pack("<3i", 20240801, 7, len(tokens)) + bytes(1012) + array("I", tokens).tobytes())
is_same("d.ds", raw)
is_same("d.ds.index", array("Q", ends).tobytes())
is_same("d.ds.metadata", b"bytes|2\n14761\n14.8 kT")
is_same("o.npy", raw)
rows = []
for number, (start, end) in enumerate(zip(starts, ends)):
    source, line = (["in/a.txt", "in/b/long.txt", "in/b/none.txt"][number], 1) if number < 3 else ("in/c.jsonl", number - 2)
    rows.append(f"{start},{end},{number},{source},{line}\n")
assert gzip.open("o.csv.gz", "rt").read() == "".join(rows)
is_same("n.bin", raw)
assert json.load(open("n.meta.json")) == {"dtype": "uint16", "vocab_size": 257, "tokens": 14761, "documents": 18,
                                          "eod_id": 256, "bos_id": None}
PY
for form in megatron:m llmc:l datatrove:d olmo:o nanogpt:n; do
    tokmap convert -q --to ${form%:*} -o ${form#*:} small
done
tokmap convert -q --width 4 --to megatron -o m4 small
tokmap convert -q --width 4 --to llmc -o l4.bin small
python3 golden.py
equal "$(ls m.* m4.* l.* l4.* d.* o.* n.* | tr '\n' ' ')" 'd.ds d.ds.index d.ds.metadata l.bin l4.bin m.bin m.idx m4.bin '\
'm4.idx n.bin n.meta.json o.csv.gz o.npy '

# Back: the same content, from each.
for name in m,eod=256,vocab=257 llmc:l.bin,eod=256,vocab=257 datatrove:d.ds,eod=256,vocab=257 \
    olmo:o.npy,width=2,eod=256,vocab=257 raw:n.bin,width=2,eod=256,vocab=257 n.bin 'n*.bin'; do
    tokmap convert -q --force -o back "$name"
    equal "$(content back)" "$small" "$name"
    same back.bin small.bin
    tokmap verify -q back
done
# Without the note, or with words that contradict it, nothing says what nanoGPT's tokens are; without an EOD they are one
# document, and the warning names the EOD of the note.
exits 1 tokmap info n.bin,eod=7 2>err
cp n.bin bare.bin
exits 1 tokmap info bare.bin 2>err
holds err "name it raw:PATH,width=2,eod=50256 (50256 is the EOD of GPT-2: write your vocabulary's)"
tokmap info raw:n.bin,width=2 >out 2>err
holds err "n.bin is one document, because the name does not say which token ends a document; add eod=ID with the EOD of its vocabulary, which is 256"
tokmap convert -q --force -o lone raw:bare.bin,width=2 2>err
holds err "bare.bin is one document, because the name does not say which token ends a document; add eod=ID"
tokmap info raw:bare.bin,width=2,eod=256 2>err >out
[ ! -s err ]
tokmap convert -q --force -o back m4,eod=256,vocab=257
equal "$(content back | cut -d' ' -f2)" 18
tokmap convert -q --force --width 2 -o back m4,eod=256,vocab=257
equal "$(content back)" "$small" narrowed
tokmap info back --json >out
holds out '"page_hashes": true'

# A copy of a shard keeps origins, columns, tokenizer, and mask; several shards become one.
tokmap pack -q -o other --columns id in/c.jsonl
tokmap convert -q -o copy other
equal "$(content copy)" "$(content other)"
tokmap show other --document 3 >out
tokmap show copy --document 3 >out2
same out out2
tokmap export --origin other >out
tokmap export --origin copy >out2
same out out2
tokmap info copy >out
holds out "id"
tokmap merge -q -o both small other
tokmap convert -q -o one both
tokmap export --origin both >out
tokmap export --origin one >out2
same out out2
tokmap convert --json -o ten 'small#docs=0..10' >out
json out
holds out '"documents": 10'
tokmap verify -q ten

# Empty documents and documents longer than a block are kept where there is an index; elsewhere they are counted.
awk 'BEGIN { printf "{\"text\": \""; for (i = 0; i < 800000; i++) printf "x"; print "\"}"; print "{\"text\": \"\"}"
    print "{\"text\": \"\"}"; print "{\"text\": \"b\"}"; print "{\"text\": \"\"}" }' >long.jsonl
tokmap pack -q --no-eod -o long long.jsonl
for form in megatron:m_l datatrove:d_l olmo:o_l; do
    tokmap convert -q --to ${form%:*} -o ${form#*:} long
done
for name in m_l,vocab=256 datatrove:d_l.ds,vocab=256 olmo:o_l.npy,width=2,vocab=256; do
    tokmap convert -q --force -o back "$name"
    equal "$(content back)" "$(content long)" "$name"
done
tokmap convert --json --to nanogpt -o n_l long >out 2>err
holds out '"documents_lost": 5'
holds err "warning: nanogpt has no index of documents, and of 5 documents, 5 cannot be found"
printf '{"ids": [1, 2, 9]}\n{"ids": [9, 3, 9]}\n{"ids": [4]}\n{"ids": [5, 9]}\n{"ids": [6]}\n' >ids.jsonl
tokmap pack -q -o ids --ids-field ids --vocab-size 10 --no-eod ids.jsonl
tokmap convert -q --to megatron -o m_i ids
tokmap convert --json -q --to llmc -o l_i m_i,eod=9 >out 2>err
holds out '"documents_lost": 2'
tokmap convert --json -q --to nanogpt -o n_i m_i,bos=9 >out 2>err
holds out '"documents_lost": 5'

# A delimiter is seen at each place: 99 of 100 documents have one before their last, and 100 of other lengths have none.
awk 'function ids(tokens, at,   i, text) {
        for (i = 1; i < tokens; i++) text = text (i == at ? "9, " : "1, ")
        return "{\"ids\": [" text "9]}"
    }
    BEGIN { for (n = 1; n <= 100; n++) { print ids(100, n) > "places-99.jsonl"; print ids(n, 0) > "places-0.jsonl" } }'
for vocabulary in 10 70000; do
    for lost in 0 99; do
        tokmap pack -q --force -o places --ids-field ids --vocab-size $vocabulary --no-eod places-$lost.jsonl
        tokmap convert -q --force --to megatron -o m_p places
        tokmap convert --json -q --force --to llmc -o l_p m_p,eod=9 >out 2>err
        holds out "\"documents\": 100, \"documents_lost\": $lost,"
    done
done

# An index of many pages.
awk 'BEGIN { for (i = 0; i < 40000; i++) print "{\"text\": \"record " i " of many, and more of it\"}" }' >many.jsonl
tokmap pack -q -o many many.jsonl
tokmap convert -q --to megatron -o m_n many
tokmap convert -q -o back_n m_n,eod=256,vocab=257
equal "$(content back_n)" "$(content many)"
tokmap convert -q --to olmo -o o_n many
tokmap convert -q --force -o back_n olmo:o_n.npy,width=2,eod=256,vocab=257
equal "$(content back_n)" "$(content many)"

# The mask: only datatrove can have one.
printf '{"i": [1, 2, 3], "m": [0, 1, 1]}\n{"i": [4, 5], "m": [1, 0]}\n' >masked.jsonl
tokmap pack -q -o masked --ids-field i --mask-field m --vocab-size 10 --no-eod masked.jsonl
tokmap convert -q --to datatrove -o dm masked
printf '\000\001\001\001\000' >wanted
same dm.ds.loss wanted
tokmap convert -q -o mback datatrove:dm.ds,vocab=10
equal "$(content mback)" "$(content masked)"
same mback.mask masked.mask
exits 1 tokmap convert -q --to megatron -o mm masked 2>err
holds err "masked: the dataset has a mask, and the files of megatron cannot have one; convert to datatrove, or leave"
holds err "with --drop-mask"
[ ! -e mm.bin ] && [ ! -e mm.idx.partial ]
tokmap convert --drop-mask --to megatron -o mm masked 2>err >out
holds err "warning: megatron's files cannot have a mask"
# A mask of before does not stay beside tokens without one.
tokmap convert -q --force --to datatrove -o dm small
[ ! -e dm.ds.loss ]
tokmap convert -q --force -o back datatrove:dm.ds,eod=256,vocab=257
equal "$(content back)" "$small"

# In place: the tokens of the shard are shared.
tokmap convert --to megatron -o small small >out 2>err
holds out "shares 29.5 kB of tokens with the shard"
same small.idx m.idx
tokmap convert -q --to nanogpt -o small.bin small
same small.meta.json n.meta.json
tokmap convert -q --to olmo -o small small
tokmap convert -q --to datatrove -o small small
same small.csv.gz o.csv.gz
equal "$(stat -c %i small.bin small.npy small.ds | sort -u | wc -l)" 1
equal "$(content small)" "$small"
tokmap verify -q small
