# SPDX-License-Identifier: MIT
# ci: nonroot tsan
# Synthetic datasets and runs of them, in every command that takes a dataset. No command looks for a file.
. "$TOKMAP_CLI/helpers.sh"
data=synthetic:vocab=50257
# A file and a folder with the same name are ignored.
mkdir "$data,seed=1"
: >"$data"
printf 'seq_len 128\nbatch 12\nseed 5\nsource x %s,tokens=100000,document=50 # no path\npasses 2\n' "$data" >x.run

tokmap info $data --seq-len 2048 --json >info
json info
holds info '"tokens": 1099511627776, "documents": 1099511628, "width": 2, "vocabulary": 50257, "largest_id": 50256'
holds info '"windows_counted": 1048576'
holds info '"shards": []'
tokmap info x.run --json >info
json info
holds info '"windows": 781'
holds info '"delivered": 130'
tokmap info x.run >text
holds text 'none (computed)'

tokmap audit x.run --ranks 5 --rows 2 >audit
holds audit 'each of the 781 windows appears once in the full epoch'
tokmap audit $data --seq-len 2048 --batch 512 --seed 1 --steps 300 --ranks 8 >audit
holds audit 'counted all 153,600 draws'

# Computes the identity that RUN.md describes a second time.
tokmap show -q "$data,tokens=100000,document=50" --tokens 65500..65600 --ids >ids
tokmap show x.run --step 129 --row 3 --ids --json >row
json row
holds row '"shard": null, "path": null'
if command -v python3 >/dev/null 2>&1; then
    python3 - <<'PYTHON'
import json
def number(stream, index, below):
    mask = 2 ** 64 - 1
    x = ((stream << 56) + (index + 1) * 0x9e3779b97f4a7c15) & mask
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 & mask
    x = (x ^ x >> 27) * 0x94d049bb133111eb & mask
    return (x ^ x >> 31) * below >> 64
def token(x):
    return (number(1, x % 65536, 50257) + number(2, x // 65536, 50257)) % 50257
assert [int(t) for t in open("ids").read().split()] == [token(x) for x in range(65500, 65600)]
row = json.load(open("row"))
assert row["ids"] == [token((row["first_token"] + i) % 100000) for i in range(129)]
for document in row["documents"]:
    k = document["document"]
    end = min(k * 50 + 1 + number(3, k, 50) if k + 1 < 2000 else 100000, 100000)
    assert document["first_token"] + document["tokens"] == end, document
PYTHON
fi
exits 1 tokmap show $data --document 1 2>error
holds error 'print its ids with --ids'
tokmap verify $data >verify
holds verify 'synthetic; it has no files to verify'
tokmap verify x.run --json >verify
json verify

for name in synthetic: synthetic:vocab synthetic:vocab=0 "$data,width=3" "$data,foo=1" "$data,tokens=1,tokens=2"; do
    exits 1 tokmap info "$name" 2>error
    holds error "tokmap info: $name: "
done
sed 's/50257,/50257,x/' x.run >wrong.run
exits 1 tokmap audit wrong.run --ranks 1 2>error
holds error "the word 'xtokens' is unknown"
