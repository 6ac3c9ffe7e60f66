# SPDX-License-Identifier: MIT
# ci: asan
# --split: the sets together hold each document once, in the order of the inputs; a hash of the text decides, so equal
# texts are in one set and other documents move nothing; the same bytes for each number of threads.
. "$TOKMAP_CLI/helpers.sh"
need awk

awk 'BEGIN { for (i = 0; i < 5000; i++) printf "{\"text\": \"document %d\", \"n\": %d}\n", i % 4000, i }' >docs.jsonl
tokmap pack -q --columns n -o one docs.jsonl
tokmap pack --json --columns n --split train=0.9,val=0.0625,test=0.0375 --shard-tokens 9k -o d docs.jsonl >report 2>err
[ ! -s err ]
json report
for set in train val test; do
    tokmap verify -q d.$set
    tokmap export -q -o $set.jsonl d.$set
done
[ ! -e d ] && [ ! -e d.work ] && [ ! -e d.partial ]
equal "$(tokmap pack --status d.train)" 'd.train: the output is complete, and no task works on it'
tokmap pack --status d >out
equal "$(cat out)" "$(printf 'd.%s: the set is complete, and no task works on it\n' test train val)"
tokmap pack --status ./d --json | grep -q '"complete": true'
for other in d.tra docs.jsonl docs; do
    exits 1 tokmap pack --status $other 2>err
    holds err "no tasks work on '$other'"
done
[ "$(ls d.train-*.bin | wc -l)" -gt 3 ]

# A partition: each document of the whole is in one set, in its order.
tokmap export -q -o one.jsonl one
sort one.jsonl >wanted
sort train.jsonl val.jsonl test.jsonl >got
same wanted got
for set in train val test; do
    grep -Fx -f $set.jsonl one.jsonl >inorder
    same inorder $set.jsonl
done
# Equal texts, of which there are 1000 pairs, are in the same set: no text is in two of them.
for set in train val test; do
    sort -u $set.jsonl
done | sort | uniq -d >straddle
[ ! -s straddle ]
# The sets have about their shares.
[ "$(wc -l <val.jsonl)" -gt 200 ] && [ "$(wc -l <val.jsonl)" -lt 450 ]
if command -v python3 >/dev/null 2>&1; then
    equal "$(field report sets.val.documents)" "$(wc -l <val.jsonl | tr -d ' ')"
    equal "$(field report sets.train.shards)" "$(ls d.train-*.bin | wc -l | tr -d ' ')"
fi

# Golden: the library of xxHash, with seed 1, says the same.
if python3 -c 'import ctypes.util, sys; sys.exit(not ctypes.util.find_library("xxhash"))' 2>/dev/null; then
    python3 - <<'END' >wanted
import ctypes, ctypes.util
hash64 = ctypes.CDLL(ctypes.util.find_library("xxhash")).XXH3_64bits_withSeed
hash64.restype = ctypes.c_uint64
hash64.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64]
for i in range(5000):
    text = b"document %d" % (i % 4000)
    if hash64(text, len(text), 1) < 2**64 * 9 // 10:
        print(text.decode())
END
    sed 's/.*"text": *"\([^"]*\)".*/\1/' train.jsonl >got
    same wanted got
fi
head -n 3 val.jsonl | sed 's/.*"text": *"\([^"]*\)".*/\1/' >got
printf 'document 33\ndocument 38\ndocument 65\n' >wanted
same got wanted

# Others are added: nothing moves. Another seed: other sets.
awk 'BEGIN { for (i = 0; i < 3000; i++) printf "{\"text\": \"another %d\"}\n", i }' >more.jsonl
tokmap pack -q --split train=0.9,val=0.0625,test=0.0375 -o e more.jsonl docs.jsonl
for set in train val test; do
    tokmap export -q -o more.$set.jsonl e.$set
    grep '"document' more.$set.jsonl >kept
    same $set.jsonl kept
done
tokmap pack -q --split train=0.9,val=0.1 --split-seed 2 -o s docs.jsonl
tokmap export -q -o seeded.jsonl s.train
! cmp -s seeded.jsonl train.jsonl
grep -qa '"split": *{"seed": *2, *"set": *"val", *"shares": *{"train": *"0.9", *"val": *"0.1"}}' s.val-00000.tmx

# A percentage is the share that it means, also in the index.
tokmap pack -q --split train=0.9,val=0.0955,test=0.0045 -o percent docs.jsonl
mkdir decimal
mv percent* decimal/
tokmap pack -q --split train=90%,val=9.550%,test=00.45% -o percent docs.jsonl
for file in percent*; do
    same "$file" "decimal/$file"
done
grep -qa '"shares": *{"train": *"0.9", *"val": *"0.0955", *"test": *"0.0045"}}' percent.val-00000.tmx
tokmap pack -q --split all=100% -o whole docs.jsonl
grep -qa '"shares": *{"all": *"1"}}' whole.all-00000.tmx

for threads in 1 2 5; do
    tokmap pack -q --force --columns n --split train=0.9,val=0.0625,test=0.0375 --shard-tokens 9k -j $threads \
        -o m docs.jsonl
    for file in d.*-*; do
        same "$file" "m${file#d}"
    done
done

# Prompts and ids with masks are split, too; one set with all documents is the whole.
printf '{"p": "a", "c": "bc"}\n{"p": "ab", "c": "c"}\n{"p": "x", "c": "y"}\n' >prompts.jsonl
tokmap pack -q --split a=0.5,b=.5 --prompt-field p --completion-field c -o p prompts.jsonl
tokmap verify -q p.a
tokmap verify -q p.b
tokmap pack -q --split all=1 --columns n -o w docs.jsonl
same w.all-00000.bin one.bin
tokmap pack -q --split none=0.000000000000000001,all=0.999999999999999999 -o x docs.jsonl 2>err
equal "$(cat err)" "tokmap pack: warning: set 'none' got no document; give it a larger share with --split, or choose \
another seed with --split-seed"
equal "$(wc -c <x.none-00000.bin | tr -d ' ')" 0
tokmap verify -q x.none
# Of tasks, the last one says so.
none='--split none=0.000000000000000001,all=0.999999999999999999 --shard-tokens 9k --unit-bytes 20k'
for task in 0 1; do
    tokmap pack -q $none --task $task/2 -o tasks docs.jsonl 2>err
    equal "$(grep -c "set 'none' got no document" err || :)" $task
done

refused()
{
    text=$1
    shift
    exits 2 tokmap pack -o y "$@" docs.jsonl >out 2>err
    holds err "$text"
}
refused 'less than 1 together' --split train=0.9,val=0.05
refused 'more than 1 together' --split train=0.9,val=0.2
refused 'more than 1 together; for nine tenths write 0.9, or 90%' --split train=90,val=10
refused 'the share of a set' --split train=0.9,val=
refused 'the share of a set' --split train=1,val=0
refused 'the share of a set' --split train=1e0
refused 'the share of a set' --split train=90%%,val=10%
refused 'the share of a set' --split train=%,val=1
refused 'the share of a set' --split train=101%
refused 'the share of a set' --split train=99.99999999999999999%,val=0.00000000000000001%
refused 'less than 1 together' --split train=90%,val=0.01
refused 'more than 1 together' --split train=90%,val=11%
refused 'NAME=SHARE' --split train
refused 'NAME=SHARE' --split ''
refused 'the name of a set' --split =1
refused 'the name of a set' --split a/b=1
refused 'two sets have the same name' --split a=0.5,a=0.5
refused 'are not names of sets' --split bin=1
refused 'more than 16 sets' --split \
    a=.1,b=.1,c=.1,d=.1,e=.1,f=.1,g=.1,h=.1,i=.1,j=.01,k=.01,l=.01,m=.01,n=.01,o=.01,p=.01,q=.03
refused '--split-seed is about --split' --split-seed 3
exits 1 tokmap pack --split train=0.9,val=0.1 -o d docs.jsonl 2>err
holds err 'd.train'
holds err 'already exists'
[ ! -e y.train ]
