# SPDX-License-Identifier: MIT
# ci: nonroot asan tsan
# mix turns percent, epochs, tokens, and the rest into run files that open, and its numbers are right.
. "$TOKMAP_CLI/helpers.sh"
web=synthetic:vocab=1000,tokens=10000001
wiki=synthetic:vocab=1000,tokens=1000001,seed=2
code=synthetic:vocab=1000,tokens=2000001,seed=3
tokmap mix --tokens 20M "web=$web:rest" "wiki=$wiki:epochs=3" "code=$code:20%" >lines 2>table
# An epoch has all tokens of the dataset, because the length of a row is not known.
cat >want <<END
source   web  $web
source   wiki $wiki
source   code $code
phase    0 web tokens=12999997 wiki tokens=3000003 code tokens=4M
# Add seq_len, batch, and steps, which is 20000000 / (batch * seq_len).
END
same lines want
holds table 'source      tokens    share   one epoch  epochs   repeated'
holds table 'web     12,999,997   65.00%  10,000,001   1.300  2,999,996'
holds table 'wiki     3,000,003   15.00%   1,000,001   3.000  2,000,002'
holds table 'code     4,000,000   20.00%   2,000,001   2.000  1,999,999'
holds table 'all     20,000,000  100.00%                      6,999,997'
tokmap mix -q --tokens 20M "web=$web:rest" "wiki=$wiki:epochs=3" "code=$code:20%" >again 2>table
same lines again
[ ! -s table ]

# A whole run file is opened. With rows of 1000 tokens the epochs are 10^7, 10^6, and 2 * 10^6 tokens, and a step has
# 10^5: the tokens of 200 steps sum up.
tokmap mix --tokens 20M --seq-len 1000 --batch 100 --seed 7 "web=$web:rest" "wiki=$wiki:epochs=3" "code=$code:20%" \
    >train.run 2>table
cat >want <<END
seq_len  1000
batch    100
seed     7
source   web  $web
source   wiki $wiki
source   code $code
phase    0 web tokens=13M wiki tokens=3M code tokens=4M
steps    200
END
same train.run want
tokmap info train.run >out
holds out '200'
tokmap mix --steps 200 --seq-len 1000 --batch 100 --seed 7 "web=$web:rest" "wiki=$wiki:epochs=3" "code=$code:20%" \
    >again 2>table
same train.run again
# The run draws what the table says: 13,000, 3,000, and 4,000 rows, except that a mixture is exact to 2 rows.
tokmap mix --json --tokens 20M --seq-len 1000 --batch 100 --seed 7 "web=$web:rest" "wiki=$wiki:epochs=3" \
    "code=$code:20%" >report
json report
holds report '{"tokens": 20000000, "steps": 200, "sources": [{"name": "web", '
holds report '"tokens": 13000000, "share": 0.65, "epoch_tokens": 10000000, "epochs": 1.3, "repeated_tokens": 3000000'
holds report '"unread_tokens": 0}], "text": "seq_len  1000\nbatch    100\n'

# Without --tokens the run has what the sources have. 20 percent of all are a quarter of the others.
tokmap mix "web=$web:epochs=0.5" "wiki=$wiki:tokens=3M" "code=$code:20%" --json >report
json report
holds report '{"tokens": 10000000, "steps": null'
holds report '"epochs": 0.49999995'
holds report '"unread_tokens": 5000001'
# Several sources share the rest by their sizes; percentages that are rounded down still sum to the run.
tokmap mix -q --tokens 6K "web=$web:rest" "code=$code:rest" "wiki=$wiki:tokens=1.5K" >out
holds out 'phase    0 web tokens=3750 code tokens=750 wiki tokens=1500'
tokmap mix -q --tokens 1001 "web=$web:33.333%" "wiki=$wiki:33.333%" "code=$code:33.334%" >out
holds out 'phase    0 web 33.333 wiki 33.333 code 33.334'
# Percentages and the rest are shares, so the run may get longer, or another phase, without another line.
tokmap mix -q --steps 60 --seq-len 100 --batch 10 "web=$web:79.5%" "wiki=$wiki:rest" >mix.run
holds mix.run 'phase    0 web 79.5 wiki 20.5'
sed 's/^steps .*/steps 90/' mix.run >longer.run
echo 'phase 30 web 1 wiki 0' >>longer.run
tokmap audit -q longer.run >out
holds out 'shares    computed for all steps'
tokmap mix -q --steps 60 --seq-len 100 --batch 10 "web=$web:20%" "wiki=$wiki:rest" "code=$code:rest" >mix.run
holds mix.run 'phase    0 web 12000 wiki 16000 code 32000'
# Validation sets: named like sources, read by no step, and refused if one is trained on.
tokmap mix -q --steps 60 --seq-len 100 --batch 10 --validation "val=$web,seed=9" --validation "two=$wiki,document=7" \
    "web=$web:rest" >mix.run
holds mix.run "validation val $web,seed=9"
holds mix.run "validation two $wiki,document=7"
exits 1 tokmap mix -q --steps 60 --seq-len 100 --batch 10 --validation "val=$web#docs=0..5" "web=$web:rest" >out 2>err
holds err "the run trains on data of validation set 'val'"
exits 2 tokmap mix --tokens 1K --validation "$web" "web=$web:rest" >out 2>err
holds err 'write NAME=DATASET, such as --validation val=data/web.val'
# Nobody has seen the lines of a run that is refused.
! grep -q 'line [0-9]' err
exits 1 tokmap mix --tokens 1K --validation val=data/web.vla "web=$web:rest" >out 2>err
holds err 'tokmap mix: data/web.vla: there is no dataset of this name'
exits 2 tokmap mix --tokens 1K --validation "web=$wiki" "web=$web:rest" >out 2>err
holds err "two datasets have the name 'web'; write NAME=DATASET, with another name, for one of them"
printf x >x.txt
tokmap pack -q -o set --split train=0.9999,val=0.0001 x.txt 2>err
exits 1 tokmap mix --tokens 1K --validation val=set.val "web=$web:rest" >out 2>err
equal "$(cat err)" "tokmap mix: set.val: the dataset of validation set 'val' has no tokens to evaluate on; leave it out, \
or hold out another one"

# Names: the line as it is typed with datasets in this folder, paths, parts, and names that need quotes.
printf 'some text that is long enough' >a.txt
for name in web wiki code; do
    tokmap pack -q -o $name a.txt
done
tokmap mix --tokens 1T web=rest wiki:epochs=3 code:20% >out 2>table
holds out 'source   web  web'
holds out 'code tokens=200B'
mkdir -p 'my data'
tokmap pack -q -o 'my data/books' a.txt
tokmap mix -q --tokens 1K --seq-len 8 --batch 2 'my data/books:50%' './web/../web:rest' >out 2>err || {
    holds err './web/../web'
    tokmap mix -q --tokens 1K --seq-len 8 --batch 2 'my data/books:50%' './web:rest' >out
}
holds out 'source   books "my data/books"'
tokmap mix -q --tokens 1K 'w=web#docs=0..100%:rest' code:1% >out
holds out 'source   w    web#docs=0..100%'
tokmap mix -q --tokens 1K 'web#docs=0..100%:rest' code:1% >out
holds out 'source   web  web#docs=0..100%'

# -o writes the file, in whose folder its relative names start, and the table is the result.
whole='--steps 20 --seq-len 8 --batch 2'
mkdir -p runs/deep
tokmap mix $whole -o mine.run web:rest code:50% >table 2>err
[ ! -s err ]
holds table 'source  tokens'
tokmap mix -q $whole web:rest code:50% >want
same mine.run want
[ ! -e mine.run.partial ]
tokmap mix $whole -q -o runs/deep/train.run web:rest 'my data/books#docs=0..100%:50%' "$PWD/wiki:10%" "s=$web:1%" >table
[ ! -s table ]
holds runs/deep/train.run 'source   web   ../../web'
printf 'another text, which is long enough' >b.txt
tokmap pack -q -o held b.txt
tokmap mix $whole -q -o runs/deep/held.run --validation held web:rest >table
holds runs/deep/held.run 'validation held ../../held'
holds runs/deep/train.run 'source   books "../../my data/books#docs=0..100%"'
holds runs/deep/train.run "$PWD/wiki"
holds runs/deep/train.run "source   s     $web"
tokmap info runs/deep/train.run >out
(cd runs && tokmap mix $whole -q -o ../up.run ../web:rest "raw=raw:../code.bin,width=2:50%")
holds up.run 'source   web web'
holds up.run 'source   raw raw:code.bin,width=2'
ln -s runs/deep link
tokmap mix $whole -q --force -o link/train.run web:rest
holds link/train.run 'source   web ../../web'
tokmap mix $whole --json --force -o mine.run web:rest >report
json report
holds report '"output": "mine.run", "text": "seq_len  8\nbatch    2\n'

# A file that exists is replaced only with --force; nothing remains of a run that cannot be.
cp mine.run before
exits 1 tokmap mix $whole -o mine.run web:rest code:50% >out 2>err
holds err 'mine.run'
holds err '--force'
[ ! -s out ]
same mine.run before
tokmap mix $whole -q --force -o mine.run web:rest code:50%
same mine.run want
exits 1 tokmap mix $whole -o runs/new.run missing:rest 2>err
[ ! -e runs/new.run ] && [ ! -e runs/new.run.partial ]
exits 1 tokmap mix $whole -o mine.run/new.run web:rest 2>err
holds err "mine.run: the output folder is not a folder"
exits 1 tokmap mix $whole --force -o runs web:rest 2>err
holds err 'folder'
exits 2 tokmap mix --tokens 1K -o new.run web:rest 2>err
holds err '-o writes a whole run file, which needs --seq-len and --batch'
exits 2 tokmap mix $whole --force web:rest 2>err
holds err 'name one'
