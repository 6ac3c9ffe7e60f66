#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# measure.sh: measures every figure of bench/RESULTS.md and of README.md's five numbers, and writes both pages.
#
#     make measure [ONLY="STEP..."] [MACHINE=NAME] [BUSY=mark] [TEXTS=FOLDER] [VOCABULARIES=FOLDER] [DIR=FOLDER]
#                  [OFFLINE=1]
#
# ONLY          measures these steps; the others keep the rows that they have. ONLY=none only writes the pages.
# MACHINE       the name of this machine (default: the generation of its processors, such as zen4). The pages show the
#               rows of bench/results/$MACHINE.jsonl. With ONLY=none it is the machine that the pages show already.
# BUSY=mark     measures on a busy machine, too; the pages then say how busy it was. Otherwise that is refused.
# TEXTS         the folder with prose.txt, code.txt, mixed.txt, and cjk.txt (default: $BUILD/measure/texts, where
#               texts.py makes them from Debian packages).
# VOCABULARIES  the folder with gpt2/tokenizer.json and others; without it, steps that need a vocabulary are left out.
# DIR           where datasets are created (default: $BUILD/measure); it should be on the storage to be measured.
# OFFLINE=1     downloads nothing: neither packages for texts nor other systems for comparisons.
#
# Each step replaces its rows in the machine's file, whose form rows.py describes, and leaves its messages in
# $BUILD/measure/STEP.log. A step that fails does not stop the others: the pages say "not measured", and why.
set -u
export LC_ALL=C
build=${BUILD:-build} python=${PYTHON:-python3}
here=bench/measure results=bench/results
bench=$build/bin/tokmap-bench
folder=${DIR:-$build/measure}
texts=${TEXTS:-$build/measure/texts}
words=" ${ONLY:-} "
say() { printf 'measure: %s\n' "$*" >&2; }
logs=$build/measure
mkdir -p "$results" "$folder" "$logs" || exit 1
folder=$(cd "$folder" && pwd) || exit 1 # run files below it name the dataset
[ -x "$bench" ] || { say "$bench does not exist; run make"; exit 1; }
command -v "$python" >/dev/null || { say "python3 is missing; install it, or name it with PYTHON="; exit 1; }
rows() { "$python" "$here/rows.py" "$@"; }
# The page says which machine it shows, so that it can be written again from the same rows.
shown=$(sed -n 's|^<!-- Written from results/\([^ /]*\)\.jsonl .*|\1|p' bench/RESULTS.md 2>/dev/null)
if [ "${ONLY:-}" = none ]; then machine=${MACHINE:-$shown}; else machine=${MACHINE:-$(rows name)}; fi
[ -n "$machine" ] || { say "name the machine whose rows the pages show: MACHINE=zen4"; exit 1; }
file=$results/$machine.jsonl commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)

# ---- is the machine quiet? ----

# Prints the share of the processors' time, in percent, that is used in five seconds in which this script sleeps.
used_percent() {
    { head -n 1 /proc/stat; sleep 5; head -n 1 /proc/stat; } |
        awk 'NR == 1 { for (i = 2; i < 10; i++) a[i] = $i }
             NR == 2 { for (i = 2; i < 10; i++) { all += $i - a[i]; if (i != 5 && i != 6) busy += $i - a[i] }
                       printf "%.0f\n", all ? 100 * busy / all : 0 }'
}
busy=0
if [ "${ONLY:-}" != none ]; then
    busy=$(used_percent)
    if [ "$busy" -gt 5 ] && [ "${BUSY:-}" != mark ]; then
        say "other programs use $busy% of the processors: stop them, or mark the results with: make measure BUSY=mark"
        exit 1
    fi
fi

# ---- the steps ----

started=$SECONDS
others_most=0
measured=0
# Steps whose pictures are in bench/RESULTS.md, with the unit that is drawn; gnuplot draws them.
pictured=" compare-loaders:tokens_per_s "
# step NAME ARGUMENT...: runs tokmap-bench with these arguments.
step() {
    local name=$1 begin=$SECONDS others plot=() drawn=$folder/pictures unit=${pictured#* "$1":}
    shift
    [ -z "${ONLY:-}" ] || case $words in *" $name "*) ;; *) return ;; esac
    say "$name ($((SECONDS - started)) s): tokmap-bench $*"
    if [ "$unit" != "$pictured" ] && command -v gnuplot >/dev/null; then plot=(--plot "$drawn"); fi
    if "$bench" "$@" --json --dir "$folder" "${plot[@]}" >"$logs/$name.json" 2>"$logs/$name.log" &&
        others=$(rows add "$file" "$name" "$commit" "tokmap-bench $*" <"$logs/$name.json"); then
        [ ${#plot[@]} = 0 ] || rows picture "$drawn/$name-${unit%% *}.svg" "$results/$machine-$name.svg"
        others_most=$(printf '%s\n%.1f\n' "$others_most" "$others" | sort -g | tail -n 1)
        measured=$((measured + 1))
    else
        local status=$? message
        message=$(tail -n 1 "$logs/$name.log" | cut -c 1-300)
        leave "$name" "${message:-it ended with exit status $status and without a message}" "tokmap-bench $*"
    fi
    rm -rf "$drawn" "$logs/$name.json"
    printf '%s %d s\n' "$name" $((SECONDS - begin)) >>"$logs/seconds"
}
# leave NAME REASON [COMMAND]: stores that a step has no results.
leave() {
    say "$1 was not measured: $2"
    rows absent "$file" "$1" "$commit" "${3:-}" "$2"
}
[ -n "${ONLY:-}" ] || rm -f "$logs/seconds"

wanted() { [ -z "${ONLY:-}" ] || case $words in *" $1 "*) ;; *) return 1 ;; esac; }

. "$here/steps.sh"

# ---- the pages ----

if [ "$measured" != 0 ]; then
    model=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
    # Names of processors in the cloud often say no more than the vendor.
    generation=$(awk -F'[\t ]*: ' '$1 == "cpu family" { family = $2 } $1 == "model" { model = $2 }
        END { if (family != "" && model != "") printf " (family %s, model %s)", family, model }' /proc/cpuinfo)
    memory=$(awk '/^MemTotal/ { printf "%.0f GB", $2 / 976562.5 }' /proc/meminfo)
    distribution=$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release)
    rows machine "$file" "processor=${model:-$(uname -m)}$generation, $(nproc) processors" \
        "memory=$memory, $(stat -f -c %T "$folder")" \
        "system=Linux $(uname -r), $distribution, $(${CC:-cc} --version | head -n 1)" \
        "state=other programs used $busy% of the processors before the first step, and at most $others_most% during one"
fi
"$python" "$here/fill.py" "$results" "$machine" "$here/RESULTS.template.md" bench/RESULTS.md &&
    "$python" "$here/fill.py" "$results" "$machine" "$here/five_numbers.template.md" README.md --between "five numbers" ||
    exit 1
say "done in $(((SECONDS - started) / 60)) minutes; read bench/RESULTS.md and look at: git diff README.md"
