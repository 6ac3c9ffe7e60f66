# SPDX-License-Identifier: MIT
# CLIP's file of merges is read compressed or not, with any kind of blocks; a damaged .gz is refused.
. "$TOKMAP_CLI/helpers.sh"
{
    echo '"bpe_simple_vocab_16e6.txt#version: 0.2'
    printf '%s\n' 'i n' 't h' 'th e</w>' 'in g</w>'
} >clip.txt
gzip -9 -n <clip.txt >clip.gz # fixed codes
for i in 1 2 3 4 5 6 7 8 9; do cat clip.txt; done | gzip -1 >many.gz # codes of its own
tokmap tokenizer clip.txt | grep fingerprint >a
tokmap tokenizer clip.gz | grep fingerprint >b
same a b
printf 'The thing, INING' >in
equal "$(tokmap encode -t clip.gz in)" "514 513 515 267 512 515"
exits 1 tokmap tokenizer many.gz 2>err
holds err 'two merges make the same token'
# Every shorter file, and every file with another byte, is refused, or means the same (a time, or a name).
size=$(wc -c <clip.gz)
for count in 3 9 11 20 40 $((size - 9)) $((size - 1)); do
    head -c "$count" clip.gz >cut.gz
    exits 1 tokmap tokenizer cut.gz 2>err
    holds err 'the compressed file '
done
for at in 10 11 15 20 30 $((size - 8)) $((size - 4)) $((size - 1)); do
    { head -c "$at" clip.gz && printf '\377' && tail -c +$((at + 2)) clip.gz; } >other.gz
    exits 1 tokmap tokenizer other.gz 2>err
    holds err 'the compressed file '
done
# A byte of flags that RFC 1952 has not defined.
{ head -c 3 clip.gz && printf '\377' && tail -c +5 clip.gz; } >other.gz
exits 1 tokmap tokenizer other.gz 2>err
holds err 'has a reserved flag'
{ cat clip.gz && echo; } >more.gz
exits 1 tokmap tokenizer more.gz 2>err
holds err 'the compressed file '
head -c 300000000 /dev/zero | gzip -1 >bomb.gz
exits 1 tokmap tokenizer bomb.gz 2>err
holds err 'more than 256 MiB when it is decompressed'
: | gzip >nothing.gz
exits 1 tokmap tokenizer nothing.gz 2>err
holds err 'the file is empty when it is decompressed'
