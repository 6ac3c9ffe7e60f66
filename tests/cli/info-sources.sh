# SPDX-License-Identifier: MIT
# ci: asan
# A run of very many sources: --json describes all of them, and people get a thousand and the number of the others.
. "$TOKMAP_CLI/helpers.sh"
{
    printf 'seq_len 16\nbatch 64\nsteps 10\n'
    i=1000
    while [ $i -lt 2500 ]; do
        echo "source s$i synthetic:vocab=100,tokens=1000,seed=$i"
        i=$((i + 1))
    done
    printf 'phase 0 s1000 1 s2499 1\nphase 5 natural\n'
} >many.run
tokmap info many.run >out
[ "$(grep -c '^source  *s[0-9]*$' out)" = 1000 ]
holds out '... and 500 more sources; --json lists all'
holds out '... and 500 more sources; --json describes all'
tokmap info --json many.run >report
json report
[ "$(grep -o '"source": "s[0-9]*"' report | sort -u | wc -l)" = 1500 ]
