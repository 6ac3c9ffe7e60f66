# SPDX-License-Identifier: MIT
# ci: nonroot
# --feeder: standard input is a feed, as the Python package writes it. Only the end of a feed is the end of its
# documents. A feed that is cut off anywhere before, or whose process is gone, leaves no output, also with --on-error
# skip.
. "$TOKMAP_CLI/helpers.sh"

# byte N: the byte of that value. frame TEXT: a frame of fewer than 256 bytes. end N: the end of a feed of N < 256
# lines.
byte() { printf "\\$(printf %03o "$1")"; }
frame() { byte ${#1}; printf '\0\0\0%s' "$1"; }
end() { printf '\0\0\0\0'; byte "$1"; printf '\0\0\0\0\0\0\0'; }
# pack_feed OPTION...: packs a feed of the process that calls it, which may be a subshell.
pack_feed() { sh -c 'exec tokmap pack -q --eod --input-format jsonl --threads 2 -o fed --feeder $PPID "$@" -' sh "$@"; }
# refused TEXT OPTION...: packs the file `feed`, which must fail with that message and leave nothing.
refused()
{
    refused_text=$1
    shift
    exits 1 pack_feed "$@" <feed >out 2>err
    holds err "$refused_text"
    equal "$(echo fed*)" 'fed*'
}

nl='
'
printf '{"text": "a"}\n{"text": "b"}\n{"text": "cc"}\n' >plain
tokmap pack -q --eod -o wanted --input-format jsonl - <plain

# Frames divide lines anywhere, and what follows the end is not read.
{ frame '{"text": "a"}'"$nl"'{"te'; frame 'x'; frame 't": "b"}'"$nl"; frame '{"text": "cc"}'; frame "$nl"; } >frames
{ cat frames; end 3; } >feed
{ cat feed; printf 'garbage'; } | pack_feed
same fed.bin wanted.bin
rm fed.*

# It does not matter that the pipe stays open. Its reader waits for bytes of each frame, and of its head.
mkfifo pipe
pack_feed <pipe &
exec 4>pipe
for part in 1 22 23 24 25 40 66 200; do
    head -c $part feed | tail -c +$((${last:-0} + 1)) >&4
    last=$part
done
wait $!
same fed.bin wanted.bin
exec 4>&-
rm fed.*

# Cut off after any byte, it has no end.
bytes=$(wc -c <feed)
cp feed whole
at=0
while [ $at -lt "$bytes" ]; do
    head -c $at whole >feed
    case $((at % 3)) in
    0) refused 'the program that writes the documents ended before it had written all of them' ;;
    1) refused 'the program that writes the documents ended' --on-error skip --min-tokens 2 ;;
    2) head -c $at whole | { exits 1 pack_feed --on-error skip 2>err; }
        holds err 'standard input: '
        holds err "after $(head -c $at frames | tr -cd '\n' | wc -c | tr -d ' '): it was probably killed"
        equal "$(echo fed*)" 'fed*' ;;
    esac
    at=$((at + 1))
done

# The number of lines is compared, whether they were read or left out.
for wrong in 2 4; do
    { cat frames; end $wrong; } >feed
    refused "3 lines of documents came, but the program that writes them has written $wrong" --on-error skip
done
{ frame "null$nl"; cat frames; end 4; } >feed
pack_feed --on-error skip <feed 2>err
same fed.bin wanted.bin
rm fed.*
# An empty feed has no documents. A frame of 4 GiB takes no memory for what does not come.
end 0 >feed
refused 'no documents'
printf '\377\377\377\377' >feed
cat frames >>feed
refused 'ended before it had written'
# What looks like another type of file is not left out, either.
{ frame "$(printf 'PK\003\004')"; cat frames; end 3; } >feed
refused 'standard input' --on-error skip

# The process is gone (this shell is another one), but the pipe is open: what it still has comes first.
exec 4<>pipe
for parts in 0 10 100000; do
    head -c $parts whole | head -c $((bytes - 1)) >&4
    exits 1 tokmap pack -q --eod --input-format jsonl -o fed --feeder $(($$ + 1)) - <&4 2>err
    holds err 'the program that writes the documents ended before'
    equal "$(echo fed*)" 'fed*'
done
cat whole >&4
tokmap pack -q --eod --input-format jsonl -o fed --feeder $(($$ + 1)) - <&4
same fed.bin wanted.bin
exec 4>&-
rm fed.*

# A feed that the program can repeat has a number. Work that was cut off continues with a feed of that number, and of
# no other, and what was packed is not packed again: lines of other lengths are noticed.
{ i=0; while [ $i -lt 4000 ]; do echo '{"text": "some words '$i'"}'; i=$((i + 1)); done; } >plain
line_bytes() { awk -v n="$1" '{ all += length($0) + 1 } NR == n { print all }' plain; }
feed_part() { printf "$(printf '\\%03o\\%03o\\0\\0' $(($1 % 256)) $(($1 / 256)))"; }
tokmap pack -q --eod -o wanted --force --input-format jsonl - <plain
half=$(line_bytes 1500)
{ feed_part "$half"; head -c "$half" plain; } >half
rest=$(($(line_bytes 3500) - half))
{ cat half; feed_part $rest; tail -c +$((half + 1)) plain | head -c $rest; } >most
last=$(($(wc -c <plain) - half - rest))
{ cat most; feed_part $last; tail -c $last plain; printf '\0\0\0\0\240\17\0\0\0\0\0\0'; } >whole
rm -f pipe && mkfifo pipe
sh -c 'exec tokmap pack -q --eod --input-format jsonl -o fed --checkpoint-seconds 1 --feeder $PPID --feed-id 9 -' \
    <pipe 2>err &
exec 4>pipe
cat half >&4
sleep 1.5
tail -c +$(($(wc -c <half) + 1)) most >&4
sleep 0.5
exec 4>&-
exits 1 wait $!
holds err 'it was probably killed; run the program again'
holds err 'the work so far is kept in fed.work'
exits 1 pack_feed --checkpoint-seconds 1 --feed-id 8 <whole 2>err
holds err 'standard input: this input has other first documents than when this work began'
exits 1 pack_feed --checkpoint-seconds 1 <whole 2>err
holds err 'this input can be read only once'
sed 's/words 9"/wor 9"/' whole >other
exits 1 pack_feed --checkpoint-seconds 1 --feed-id 9 <other 2>err
holds err 'the inputs have changed since this work began'
pack_feed --checkpoint-seconds 1 --feed-id 9 <whole
same fed.bin wanted.bin
equal "$(echo fed.w*)" 'fed.w*'

# Only programs use the options: --help-all leaves them out.
exits 1 grep -q feed <<help
$(tokmap pack --help-all)
help
exits 2 tokmap pack -q -o fed --feeder 0 - <whole 2>err
holds err '--feeder must be the id of a process'
for inputs in plain '- plain' '' '- --files-from plain'; do
    exits 2 tokmap pack -q -o fed --feeder $$ $inputs <whole 2>err
    holds err "--feeder is about standard input: name '-' as the only input"
done
