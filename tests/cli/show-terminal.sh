# SPDX-License-Identifier: MIT
# ci: asan
# On a terminal, control characters are made visible and the last line gets a newline; into a pipe, nothing is changed.
. "$TOKMAP_CLI/helpers.sh"
need script
printf 'esc\033[31m del\177 bell\007 c1\302\233 half\303( \303\251\tend' >in.txt
tokmap pack -q -o odd --invalid-utf8 replace in.txt
tokmap show odd -d 0 -q >plain
printf 'esc\033[31m del\177 bell\007 c1\302\233 half\357\277\275( \303\251\tend' >wanted
same wanted plain
script -qec 'tokmap show odd -d 0 -q' typescript </dev/null >seen 2>/dev/null || skip "script does not run here"
tr -d '\r' <seen >got
printf 'esc^[[31m del^? bell^G c1\\xc2\\x9b half\357\277\275( \303\251\tend\n' >wanted
same wanted got
