# SPDX-License-Identifier: MIT
# ci: asan
# A mask for an existing shard: from bytes and from bits, shown, verified, counted, part of the identity, refused when
# it does not fit.
. "$TOKMAP_CLI/helpers.sh"
need script
printf 'question answer' >a.txt
printf 'another text' >b.txt
tokmap pack -q -t bytes --no-eod -o chat a.txt b.txt
tokmap info chat --json >before
tokmap show chat -d 0 -q >plain
equal "$(cat plain)" "question answer"
{ head -c 9 /dev/zero; head -c 18 /dev/zero | tr '\0' '\001'; } >bytes
tokmap index --mask bytes chat >report
holds report "masked 27 tokens, of which 18 count as targets"
exits 1 tokmap index --mask bytes chat 2>err
holds err "the shard already has a mask; use --force"
equal "$(wc -c <chat.mask | tr -d ' ')" 4
tokmap verify chat >out
holds out "sound"
tokmap info chat >out
holds out "18 tokens count as targets (66.67%)"
tokmap info chat --json >after
holds after '"masked": true, "targets": 18'
holds before '"masked": false, "targets": 27'
# The dataset's identity changes with the mask; the content id of the shard, its second one here, does not.
contents()
{
    grep -oE '"content": "[0-9a-f]*"' "$1" | sed -n "$2p"
}
[ "$(contents before 1)" != "$(contents after 1)" ]
equal "$(contents after 2)" "$(contents before 1)"
# What does not count is marked, and can be shown without marks.
equal "$(tokmap show chat -d 0 -q)" "⟦question ⟧answer"
equal "$(tokmap show chat -d 1 -q)" "another text"
equal "$(tokmap show chat -d 0 -q --unmarked)" "question answer"
equal "$(tokmap show chat --tokens 7..11 -q --ids)" "(110 32) 97 110"
equal "$(tokmap show chat --tokens 7..11 -q --ids --unmarked)" "110 32 97 110"
tokmap show chat -d 0 -q --json >out
holds out '"text": "question answer", "uncounted": [[0, 9]]'
script -qec 'tokmap show chat -d 0 -q' typescript </dev/null >seen 2>/dev/null || skip "script does not run here"
tr -d '\r' <seen >got
printf '\033[2mquestion \033[22manswer\n' >wanted
same wanted got
# The same mask as bits, and parts see their part of it.
cp chat.mask bits
cp chat.tmx first.tmx
tokmap index --mask bits --force -q chat
same bits chat.mask
same first.tmx chat.tmx
equal "$(tokmap show 'chat#tokens=5..11' --tokens 0..6 -q)" "⟦ion ⟧an"
tokmap info 'chat#docs=0..1' >out
holds out "6 tokens count as targets (40.00%)"
# Masks that do not fit.
head -c 26 bytes >short
exits 1 tokmap index --mask short --force chat 2>err
holds err "a mask of 27 tokens is a file of 27 bytes"
{ head -c 26 bytes; printf '\002'; } >two
exits 1 tokmap index --mask two --force chat 2>err
holds err "the byte of token 26 is 2"
printf '\377\377\377\377' >spare
exits 1 tokmap index --mask spare --force chat 2>err
holds err "is not a mask of 27 tokens"
exits 1 tokmap index --mask missing --force chat 2>err
holds err "missing"
same first.tmx chat.tmx
same bits chat.mask
[ ! -e chat.tmx.partial ] && [ ! -e chat.mask.partial ]
# Damage is found, with its place.
printf 'x' | dd of=chat.mask bs=1 seek=1 conv=notrunc 2>/dev/null
exits 1 tokmap verify chat >out
holds out "block 0 of the mask (bytes 0..4) does not match its hash"
head -c 3 bits >chat.mask
exits 1 tokmap verify chat >out 2>err
holds out "the mask is 3 bytes long, but 27 tokens need 4"
rm chat.mask
exits 1 tokmap info chat 2>err
holds err "the mask that belongs to the tokens cannot be opened"
