# SPDX-License-Identifier: MIT
# --save and --plot: results as files and as pictures.
. "$TOKMAP_CLI/helpers.sh"

# Each line names its command, machine, and date; the saved file has the same lines as --json prints.
tokmap-bench order --repeats 2 --seconds 0.01 --json --save results >printed
same printed results/order.jsonl
json printed
equal "$(grep -c '"command": "tokmap-bench order --repeats 2 --seconds 0.01 --json --save results", "machine": ".* processors, .*", "date": "20..-..-..T..:..:..Z"}$' printed)" \
    "$(grep -c . printed)" 'lines with command, machine, and date'
# A table is printed as before, and the file is replaced.
tokmap-bench order --repeats 1 --seconds 0.01 --save results >table
holds table order.draw_ns
equal "$(grep -c others_percent table || :)" 0 'rows of the machine in the table'
holds results/order.jsonl '"n": 1'
: >file
exits 1 tokmap-bench order --repeats 1 --seconds 0.01 --save file/results >out 2>err
holds err 'the folder for results cannot be created'
# What cannot be replaced by a file is named, and nothing else is left.
mkdir -p taken/order.jsonl
exits 1 tokmap-bench order --repeats 1 --seconds 0.01 --save taken >out 2>err
holds err 'order.jsonl: the file cannot be written'
equal "$(ls taken)" order.jsonl
# The command can be typed again.
tokmap-bench order --repeats 1 --seconds 0.01 --json --dir "$(printf "it's\033 \044x")" >printed
holds printed "--dir 'it'\\\\''s^[ \$x'\""
mkdir empty
PATH=$PWD/empty exits 1 "$(command -v tokmap-bench)" order --repeats 1 --seconds 0.01 --plot pictures >out 2>err
holds err 'apt-get install gnuplot-nox'
[ ! -s out ]

need gnuplot
tokmap-bench order --repeats 2 --seconds 0.01 --plot pictures >table
holds table order.draw_ns
for one in pictures/order-ns.svg pictures/order-ns.png; do
    [ -s $one ] || { echo "FAULT: no $one" >&2; exit 1; }
done
holds pictures/order-ns.svg 'less is better'
holds pictures/order-ns.svg 'tokmap-bench order --repeats 2'
