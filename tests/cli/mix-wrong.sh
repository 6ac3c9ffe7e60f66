# SPDX-License-Identifier: MIT
# ci: nonroot asan
# Mixtures that cannot be, each with what to do.
. "$TOKMAP_CLI/helpers.sh"
a=a=synthetic:vocab=10,tokens=1001
b=b=synthetic:vocab=10,tokens=501
misused()
{
    exits 2 tokmap mix "$@" >out 2>err
    [ ! -s out ]
    holds err "tokmap mix: "
}
failed()
{
    exits 1 tokmap mix "$@" >out 2>err
    [ ! -s out ]
    holds err "tokmap mix: "
}
misused
holds err 'no source is given'
misused --tokens 1.2.3 $a:rest
holds err '--tokens must be a whole number above 0, such as 4096, 300B, or 1.5T'
misused --tokens 0 $a:rest
misused --tokens 1.5 $a:rest
misused --tokens 1K --steps 4 --seq-len 2 --batch 2 $a:rest
holds err 'give one of them'
misused --steps 4 $a:rest
holds err 'which needs --seq-len and --batch'
misused --batch 4 $a:rest
holds err '--batch needs --seq-len'
misused --seq-len 0 --batch 4 $a:rest
misused --seq-len 2 --batch 0 $a:rest
misused --seq-len 2 --seed 4 $a:rest
holds err 'a whole run file, which also needs --batch'
misused --tokens 1K --seq-len 2 -o run $a:rest
holds err '-o writes a whole run file, which also needs --batch'
misused --max-epochs 0 $a:rest
misused --tokens 1K data/web:80
holds err "such as 'data/web:80%'"
misused --tokens 1K data/web:0.5
holds err "such as 'data/web:50%'"
misused --tokens 1K w=data/web:0.125
holds err "such as 'w=data/web:12.5%'"
misused --tokens 1K data/web:1
holds err "such as 'data/web:1%'"
misused --tokens 1K data/web:101
holds err "such as 'data/web:101:rest'"
misused --tokens 1K web
holds err "'web' does not say how much of the source is wanted; end it with a colon and one of rest, 20%, epochs=3, or "
for how in '' resty 0% 101% -1% 1e3% 0.0000001% epochs= epochs=0 epochs=x tokens=0 tokens=B tokens=1.5 tokens=99999999T; do
    misused --tokens 1K "web:$how"
    holds err 'does not say how much'
    misused --tokens 1K "web=data:$how"
done
misused --tokens 1K :rest
holds err 'names no dataset'
misused --tokens 1K 'data/9:rest'
holds err "put a name of letters, digits, '_', '-', and '.' before it"
misused --tokens 1K synthetic:vocab=10:rest
misused --tokens 1K $a:rest $a:20%
holds err "two sources have the name 'a'"
misused --tokens 1K natural=synthetic:vocab=10:rest
holds err "cannot have the name 'natural'"

failed --tokens 1K nothing:rest
holds err 'nothing: there is no dataset of this name'
failed $a:rest
holds err "'rest' needs the length of the run; give it with --tokens"
failed $a:20% $b:30%
holds err 'percentages alone do not say how much is read'
holds err 'or with --steps'
failed --seq-len 10 --batch 10 --steps 10 $a:20% $b:30%
holds err "end one of them with ':rest', or raise the percentages to 100% together"
failed $a:epochs=1 $b:100%
failed --tokens 1K $a:60% $b:41%
holds err 'the percentages sum to 101%, more than 100%; lower some'
failed --tokens 1K $a:60% $b:epochs=1
holds err 'the sources need 1101 tokens (501 in epochs and tokens, 60% of the run), but the run has 1000'
failed --tokens 2K $a:epochs=1 $b:40%
holds err "the sources sum to 1801 of 2000 tokens, and nothing fills the rest; end one of them with ':rest', or leave out --tokens and --steps"
failed --tokens 1001 $a:epochs=1 $b:rest
holds err "nothing is left for 'rest'"
failed --tokens 10 $a:1% $b:rest
holds err "source 'a' would have no token"
failed --tokens 3K --max-epochs 4 $a:20% $b:rest
holds err "source 'b' runs out: 2400 tokens are 4.79 epochs, but --max-epochs allows 4, which are 2004 tokens"
failed --tokens 3K --seq-len 2000 $a:20% $b:rest
holds err "the dataset of source 'a' has 1001 tokens, fewer than a row needs"
failed --tokens 3K --seq-len 100 --batch 31 $a:20% $b:rest
holds err '3000 tokens do not fill a step of 31 rows of 100'
