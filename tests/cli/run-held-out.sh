# SPDX-License-Identifier: MIT
# ci: nonroot tsan
# What is held out: a folder with several sets of one split is refused, and a validation set is shown, verified, and not
# trained on, under whatever name.
. "$TOKMAP_CLI/helpers.sh"
mkdir texts data
i=0
while [ $i -lt 60 ]; do
    echo "this is document $i and a few more words of it" >texts/$i.txt
    i=$((i + 1))
done
tokmap pack -q -o data/web --split train=0.8,val=0.2 texts/

# A folder that has both sets, whichever command is to read it, also as a part and below another folder.
mkdir above
cp -r data above/data
for name in data ./data/ above 'data#docs=0..50%'; do
    for command in info verify 'show -d 0' 'merge -o all' 'stats' 'export -o out.jsonl' 'convert -o copy'; do
        exits 1 tokmap $command "$name" >out 2>err
        cat out >>err
        holds err 'the folder has several sets of one split, web.train, web.val, '
        holds err 'name one of them'
    done
done
[ ! -e all ] && [ ! -e out.jsonl ] && [ ! -e copy.tmx ]
tokmap info data/web.train >out
holds out 'documents'
printf 'seq_len 16\nbatch 2\nsteps 9\nsource web data\n' >mixed.run
exits 1 tokmap audit mixed.run 2>err
holds err 'several sets of one split'
# What the indexes say counts, and not the names of files; two packs with sets of the same names are mixed up, too.
mkdir -p other/a other/b
for end in bin tmx; do
    cp data/web.train-00000.$end other/a/one.$end
    cp data/web.val-00000.$end other/b/two.$end
done
exits 1 tokmap info other 2>err
holds err 'one (set train), two (set val)'
mkdir more
tokmap pack -q -o more/code --split train=0.7,val=0.3 --split-seed 5 texts/
rm more/code.train* && mv more/code.val* other/ && rm -r other/b
exits 1 tokmap info other 2>err
holds err 'one (set train), code.val'
# One set of several packs, and sets of other splits, are a dataset.
mkdir same
cp data/web.val-* same/
mv other/code.val-* same/
tokmap info same >out 2>err
[ ! -s err ]
tokmap pack -q -o same/half --split a=0.5,b=0.5 texts/
rm same/half.b*
tokmap info same >out 2>err
[ ! -s err ]
# A pattern of files of another project over the same bytes.
mkdir meg
tokmap pack -q -o meg/web --also megatron --split train=0.8,val=0.2 texts/
exits 1 tokmap info 'megatron:meg/web.*.bin' 2>err
holds err 'the pattern has several sets of one split, web.train, web.val'
tokmap info 'megatron:meg/web.train*.bin' >out
# A manifest names each shard, so it is a dataset, with a warning at every opening.
tokmap merge -o all data/web.train data/web.val >out 2>err
holds err 'warning: all: this dataset mixes sets of one split, web.train, web.val'
tokmap info all >out 2>err
holds err 'this dataset mixes sets of one split'

# A validation line: shown, read by show, checked by verify, and no part of what is trained on.
cat >train.run <<END
seq_len 16
batch 2
steps 9
source web data/web.train
validation val data/web.val
END
tokmap info train.run >out
holds out 'val: data/web.val, '
holds out 'the run trains on none of it'
tokmap info --json train.run >out
json out
holds out '"validations": [{"name": "val", "data": "data/web.val", "tokens": '
tokmap audit train.run >out
holds out 'validation: val, data/web.val, '
holds out 'ranks     1 rank with 2 rows each'
tokmap audit --json train.run >out
json out
holds out '"validations": [{"name": "val"'
tokmap show --source val -d 0 train.run >shown 2>err
tokmap show -d 0 data/web.val >want 2>err
same shown want
tokmap show -d 0 train.run >shown 2>err
tokmap show -d 0 data/web.train >want 2>err
same shown want
exits 1 tokmap show --source val -d 0 --where train.run 2>err
holds err "'val' is a validation set, which no step of the run shows"
exits 1 tokmap show --source wal -d 0 train.run 2>err
holds err 'it has web, val'
tokmap verify train.run >out
holds out '60 documents in 2 shards'
sed 's/web.train/web.val/' train.run >trained.run
exits 1 tokmap info trained.run 2>err
holds err "trained.run:5: the run trains on data of validation set 'val' (data/web.val): source 'web' (data/web.val) has tokens of data/web.val-00000.bin, too"
# The same shard in a manifest.
sed 's,data/web.train,all,' train.run >trained.run
exits 1 tokmap info trained.run 2>err
holds err "source 'web' (all) has tokens of data/web.val-00000.bin, too"
# The same bytes as a file of another project, and parts of both that have no token in common.
whole=raw:data/web.val-00000.bin,width=2,eod=256
sed "s|data/web.train|$whole|" train.run >raw.run
exits 1 tokmap info raw.run 2>err
holds err "source 'web' ($whole) has tokens of data/web.val-00000.bin, too"
printf "seq_len 16\nbatch 2\nsteps 9\nsource web $whole#tokens=0..300\nvalidation val data/web.val#tokens=300..400\n" >raw.run
tokmap info raw.run >out 2>err
sed 's/300\.\.400/299..400/' raw.run >overlap.run
exits 1 tokmap info overlap.run 2>err
holds err "the run trains on data of validation set 'val'"
# Sources with parts of one dataset: a set is held out of all that they have together. A sealed shard is known by its
# content alone.
mkdir sealed
cp data/web.val* sealed/
tokmap seal -q sealed/web.val
printf '%s\n' 'seq_len 16' 'batch 2' 'steps 9' 'source all sealed/web.val' 'source b sealed/web.val#tokens=10..40' \
    'source c sealed/web.val#tokens=60..90' 'source d sealed/web.val#tokens=100..130' 'phase 0 all 1 b 1 c 1 d 1' \
    'validation val sealed/web.val#tokens=200..300' >parts.run
exits 1 tokmap info parts.run 2>err
holds err "source 'all' (sealed/web.val) has tokens of"
