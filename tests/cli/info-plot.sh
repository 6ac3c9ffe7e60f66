# SPDX-License-Identifier: MIT
# ci: asan
# info --lengths --plot, stats --plot: pictures in both formats, and what is refused. Names of datasets are no commands
# of gnuplot.
. "$TOKMAP_CLI/helpers.sh"

pack_corpus
exits 2 tokmap info small --plot x.svg 2>err
holds err '--lengths'
exits 2 tokmap info small --lengths --plot x.jpg 2>err
holds err "ends in .svg or .png, not 'x.jpg'"
mkdir empty
PATH=$PWD/empty exits 1 "$(command -v tokmap)" info small --lengths --plot x.svg >out 2>err
holds err 'apt-get install gnuplot-nox'
[ ! -e x.svg ]

exits 2 tokmap stats small --plot x.jpg 2>err
holds err "ends in .svg or .png, not 'x.jpg'"
exits 2 tokmap stats small small --plot x.svg 2>err
holds err "--plot draws the lengths of one dataset"

need gnuplot
tokmap info small --lengths --plot x.svg >out
holds out 'lengths of documents in tokens'
holds x.svg 'prefers-color-scheme: dark'
holds x.svg 'tokmap info small --lengths --plot x.svg'
holds x.svg ' processors, '
holds x.svg "$(date -u +%Y-)"
holds x.svg '16..31'
tokmap info small --lengths --plot y.png --json >out
json out
equal "$(head -c 4 y.png | od -An -c | tr -d ' ')" '211PNG' 'the beginning of a PNG'

# tokmap stats draws the same picture, but for its caption.
tokmap stats small --no-ids --plot stats.svg >out
holds out 'lengths of documents in tokens'
holds stats.svg 'tokmap stats small --no-ids --plot stats.svg'
sed '/tokmap stats\|tokmap info\|processors/d' x.svg >one
sed '/tokmap stats\|tokmap info\|processors/d' stats.svg >two
same one two

# Labels that do not fit between their neighbors are rotated. gnuplot 6 writes -35.00.
for bins in 8 13; do
    awk -v bins=$bins 'BEGIN { for (i = 0; i < bins; i++) printf "{\"text\": \"%*s\"}\n", 2 ^ i, "x" }' >bins.jsonl
    tokmap pack -q --force -o bins bins.jsonl
    tokmap stats bins --no-ids --plot bins.svg >out
    equal "$(grep -cE 'rotate\(-35(\.00)?\)' bins.svg || :)" "$((bins == 8 ? 0 : 12))" "rotated labels of $bins"
done

# A name that would be a command; the picture is replaced.
name="\`touch made\`'; system('touch made') #"
tokmap pack -q -o "$name" in/a.txt
tokmap info "$name" --lengths --plot x.svg >out
[ ! -e made ]
holds x.svg '`touch made`'
# A folder of that name is not.
mkdir z.svg
exits 1 tokmap info small --lengths --plot z.svg >out 2>err
holds err 'not a regular file'
equal "$(find . -name '*.partial')" '' 'partial files'
