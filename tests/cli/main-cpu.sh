# SPDX-License-Identifier: MIT
# ci: nonroot
# TOKMAP_CPU caps the CPU variant: every value gives the same files, and a value that does not exist is refused.
. "$TOKMAP_CLI/helpers.sh"
awk 'BEGIN { for (i = 0; i < 2000; i++) print "line " i " of a text, caf\303\251 \342\202\254" i * i }' >text
env -u TOKMAP_CPU tokmap pack --eod -q -o best text
values=scalar
case $(uname -m) in
x86_64) values='scalar avx2 avx512' ;;
aarch64) values='scalar neon' ;;
esac
for value in $values; do
    TOKMAP_CPU=$value tokmap pack --eod -q -o "with-$value" text
    same best.bin "with-$value.bin"
    same best.tmx "with-$value.tmx"
    TOKMAP_CPU=$value tokmap verify -q best
done
TOKMAP_CPU=sse9 exits 2 tokmap info best 2>err
holds err "tokmap info: TOKMAP_CPU is 'sse9'; set it to scalar"
TOKMAP_CPU=AVX2 exits 2 tokmap-bench gather 2>err
holds err "TOKMAP_CPU is 'AVX2'"
TOKMAP_CPU=sse9 tokmap info --help >/dev/null
TOKMAP_CPU='' tokmap info best >/dev/null
