# SPDX-License-Identifier: MIT
# The case compare without a network: what Python is there measures tokmap beside what can be had, from any dataset, and
# each other row says why it is absent.
. "$TOKMAP_CLI/helpers.sh"
need python3
[ -z "${SANITIZE:-}" ] || skip 'Python cannot load a library with a sanitizer'
python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' || skip 'Python is older than 3.9'

mkdir made
small="--peers memmap,tokmap_c --offline --venv nowhere --dir made --seq-len 64 --rows 4 --repeats 2 --seconds 0.02"

# measured FILE: fails unless the JSON of a run has tokmap's figures and its tokens were those of the reference.
measured()
{
    json "$1"
    for metric in tokens_per_s cpu_s_per_mtok next_p50_us next_p99_us next_p999_us next_max_us start_ms resume_ms \
        memory_mib processes; do
        grep '"row": "tokmap"' "$1" | grep -q "\"metric\": \"$metric\", \"value\": [0-9]" ||
            { echo "FAULT: $1 lacks $metric" >&2; cat "$1" >&2; exit 1; }
    done
    for key in case metric value unit better min max n; do
        equal "$(grep -vc "\"$key\":" "$1" || :)" 0 "$1: results without $key"
    done
    grep '"row": "tokmap"' "$1" | grep -q '"verdict": "yes"' || { echo "FAULT: $1: not equal" >&2; exit 1; }
    grep '"row": "tokmap"' "$1" | grep '"metric": "resume_other_rows"' | grep -q '"max": 0,' || exit 1
    grep '"metric": "about"' "$1" | grep '"row": "tokmap"' | grep -q 'tokmap 0' || exit 1
    # The library without Python delivers the same, and continues where it was left.
    grep '"row": "tokmap in C"' "$1" | grep -q '"verdict": "yes"' || { echo "FAULT: $1: C" >&2; cat "$1" >&2; exit 1; }
    grep '"row": "tokmap in C"' "$1" | grep '"metric": "resume_other_rows"' | grep -q '"max": 0,' || exit 1
    equal "$(grep -o 'order sequential: [^;]*' "$1" | sort -u | wc -l)" 1 "$1: checksums"
    # np.memmap is there where NumPy is, and says so where it is not.
    if python3 -c 'import numpy' 2>/dev/null; then
        grep '"row": "np.memmap"' "$1" | grep -q '"metric": "tokens_per_s"' || exit 1
        grep '"row": "np.memmap"' "$1" | grep -q '"verdict": "yes"' || exit 1
        grep '"metric": "tokens_per_s"' "$1" | grep '"row": "np.memmap"' | grep -q '"ratio":' || exit 1
    else
        grep '"row": "np.memmap"' "$1" | grep -q '"metric": "absent"' || exit 1
    fi
    grep '"metric": "answer"' "$1" | grep -q '"text": "[A-Z]' || { echo "FAULT: $1: no answer" >&2; exit 1; }
    equal "$(ls made)" '' 'files that were left'
}

# A dataset of one shard is read where it is; without the name of a table, that of loaders is measured.
corpus
tokmap pack -q -o one in
# shellcheck disable=SC2086
tokmap-bench compare one $small --json >one.json 2>one.err || { cat one.err >&2; exit 1; }
measured one.json
equal "$(grep -c copying one.err || :)" 0 'a copy of a flat file'

# Several shards are copied into one file, whose windows are those of the dataset. The table is for people.
mkdir several
tokmap pack -q -o several/first in/b
tokmap pack -q -o several/second in/c.jsonl
# shellcheck disable=SC2086
tokmap-bench compare loaders several $small --repeats 1 >table 2>err || { cat err >&2; exit 1; }
holds err 'copying the tokens'
holds table 'tokmap: delivered the tokens of the reference'
holds table 'cold_tokens_per_s'
holds table 'interleaved turns of 0.02 s'
grep -q '^tokmap  .* 1$\|^tokmap  .*[0-9]' table || { cat table >&2; exit 1; }
equal "$(ls made)" '' 'files that were left'

# Without a dataset one is made; tokens can have 4 bytes.
# shellcheck disable=SC2086
tokmap-bench compare $small --repeats 1 --tokens 60k --width 4 --json >wide.json 2>err || { cat err >&2; exit 1; }
measured wide.json

# A file of another project has a header; other systems get a copy without it.
python3 - <<'LLMC'
import array
tokens = array.array("H", (i * i % 50257 for i in range(20000)))
with open("theirs.bin", "wb") as file:
    array.array("i", [20240520, 1, len(tokens)] + [0] * 253).tofile(file)
    tokens.tofile(file)
LLMC
# shellcheck disable=SC2086
tokmap-bench compare theirs.bin $small --repeats 1 --json >theirs.json 2>err || { cat err >&2; exit 1; }
measured theirs.json

# Wrong words.
# shellcheck disable=SC2086
exits 1 tokmap-bench compare ./nosuch $small 2>err
holds err nosuch
# shellcheck disable=SC2086
exits 2 tokmap-bench compare loaders one two $small 2>err
holds err "not also 'two'"
# shellcheck disable=SC2086
exits 2 tokmap-bench compare synthetic:vocab=50257 $small 2>err
holds err 'has no files'
# shellcheck disable=SC2086
exits 1 tokmap-bench compare one $small --seq-len 100k 2>err
holds err 'lower --seq-len or --rows'
# shellcheck disable=SC2086
exits 1 tokmap-bench compare one $small --peers tokmap,nothing 2>err
holds err "there is no system 'nothing'"
exits 1 tokmap-bench compare one --peers-folder nowhere 2>err
holds err '--peers-folder: nowhere does not exist'
exits 2 tokmap-bench compare one --patience 0 2>err
holds err '--patience must be'
equal "$(ls made)" '' 'files that were left'
