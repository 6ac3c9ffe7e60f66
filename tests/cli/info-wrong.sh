# SPDX-License-Identifier: MIT
# ci: nonroot asan
# Misuse, and datasets that are missing or damaged.
. "$TOKMAP_CLI/helpers.sh"
pack_corpus
exits 2 tokmap info 2>err
exits 2 tokmap info small small 2>err
exits 2 tokmap info small --lookahead 2 2>err
exits 2 tokmap info small --seq-len 0 2>err
exits 2 tokmap info small --seq-len 5x 2>err
printf 'seq_len 64\nbatch 8\nsource web small\n' >train.run
exits 2 tokmap info train.run --seq-len 64 2>err
holds err "--seq-len is only for datasets"
exits 1 tokmap info nothing 2>err
holds err "nothing"
mkdir empty
exits 1 tokmap info empty 2>err
: >zero.tmx
exits 1 tokmap info zero 2>err
printf 'abc' >data.bin
exits 1 tokmap info data.bin 2>err
head -c 5000 /dev/zero >zeros
exits 1 tokmap info zeros 2>err
cp small.bin short.bin
cp small.tmx short.tmx
: >short.bin
exits 1 tokmap info short 2>err
holds err "short.bin"
# A folder where an index should be: the message calls it a folder.
mkdir folder.tmx
exits 1 tokmap info folder 2>err
holds err "folder.tmx: this is a folder, but it has the name of a shard's index"
rmdir folder.tmx
# A zero byte in a run file is an error in that line, not a sign of another file format.
printf 'seq_len 64\nbatch 8\nse\000ed 3\nsource web small\n' >zero.run
exits 1 tokmap info zero.run 2>err
holds err "zero.run:3: the line has a zero byte"
# A pipe where a file should be is refused; the command does not wait for it.
cp small.bin pipe.bin
mkfifo pipe.tmx
exits 1 timeout -s KILL 200 tokmap info pipe 2>err
holds err "pipe.tmx: an index must be a regular file"
rm pipe.tmx pipe.bin
cp small.tmx pipe.tmx
mkfifo pipe.bin
exits 1 timeout -s KILL 200 tokmap info pipe 2>err
holds err "pipe.bin: this is not a regular file"
# A run file that was moved away from its dataset, and files that are neither.
mkdir moved
cp train.run moved/
exits 1 tokmap info moved/train.run 2>err
holds err "moved/train.run:3: source 'web' is the dataset 'small', which was looked for as 'moved/small'"
holds err "a relative name starts from the folder of the run file"
printf '{"text": "one"}\n' >lines.jsonl
exits 1 tokmap info lines.jsonl 2>err
holds err "lines.jsonl: this is JSON, not a run file and not a dataset; \`tokmap tokenizer\`"
exits 1 tokmap info in/a.txt 2>err
holds err "in/a.txt:1: unknown directive 'alpha'"
holds err "so it is probably not a run file; \`tokmap pack\` makes a dataset of text"
printf 'seq_len 4\nbach 2\n' >bach.run
exits 1 tokmap info bach.run 2>err
holds err "did you mean 'batch'?"
if grep 'probably not' err; then exit 1; fi
[ -w /dev/full ] && exits 1 tokmap info small >/dev/full 2>err
exit 0
# A dataset that is not complete yet.
mkdir later.work
exits 1 tokmap info later 2>err
holds err 'later: there is no dataset of this name yet, only the unfinished work of a `tokmap pack` (later.work); repeat'
exits 1 tokmap show later --document 0 2>err
holds err 'only the unfinished work'
# After --split, the sets have names; the prefix has none.
seq 200 | sed 's/.*/{"text": "number &"}/' >numbers.jsonl
mkdir sets
tokmap pack -q -o sets/web --split train=0.5,val=0.5 numbers.jsonl
exits 1 tokmap info sets/web 2>err
holds err "sets/web: there is no dataset of this name, but the folder has web."
holds err web.train
holds err web.val
tokmap pack -q -o sets/cut --split train=0.5,val=0.5 --shard-tokens 1K numbers.jsonl
exits 1 tokmap info sets/cut 2>err
holds err cut.train
if grep -e -00000 err; then exit 1; fi
exits 1 tokmap info sets/we 2>err
holds err "there is no run file and no dataset of this name"
