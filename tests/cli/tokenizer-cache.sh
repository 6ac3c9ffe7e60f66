# The cache of vocabularies: the second run of any command reads it and prints the same, --no-cache and TOKMAP_NO_CACHE
# leave it out, --cache shows it, --clear-cache empties it, and nothing that is wrong with it is an error.
. "$TOKMAP_CLI/helpers.sh"
unset TOKMAP_NO_CACHE
export XDG_CACHE_HOME="$PWD/cache home" HOME="$PWD/home"
cp "$TOKMAP_TREE/tests/fuzz/corpus/fuzz_vocabulary/gpt2.json" tokenizer.json
printf 'the ab <|endoftext|> abc, then h\303\251\n' >text
# cached WORD [OPTION]...: fails unless the cache does what WORD says when the tokenizer is opened.
cached()
{
    word=$1
    shift
    tokmap tokenizer "$@" tokenizer.json >out
    holds out "cache              $word"
    tokmap tokenizer --json "$@" tokenizer.json >out.json
    json out.json
}
tokmap tokenizer --cache >out
holds out "cache home/tokmap: 0 files, 0 B"
tokmap encode --no-cache -t tokenizer.json text >plain
[ ! -e "$XDG_CACHE_HOME" ] || { echo "--no-cache made the folder" >&2; exit 1; }
TOKMAP_NO_CACHE=1 tokmap encode -t tokenizer.json text >ids
same plain ids
[ ! -e "$XDG_CACHE_HOME" ] || { echo "TOKMAP_NO_CACHE made the folder" >&2; exit 1; }

# The folder above the cache's own is made, but nothing above that.
cached "not used" --no-cache
tokmap encode -t tokenizer.json text >ids
same plain ids
cached read
tokmap encode -t tokenizer.json text >ids
same plain ids
tokmap decode -t tokenizer.json ids >back
tokmap decode --no-cache -t tokenizer.json ids >back.plain
same back.plain back
tokmap pack -q --no-eod -t tokenizer.json -o with text
tokmap pack -q --no-eod --no-cache -t tokenizer.json -o without text
same with.bin without.bin
same with.tmx without.tmx
tokmap show -d 0 with >out
tokmap show --no-cache -d 0 with >out.plain
same out.plain out
tokmap export with >out
tokmap export --no-cache with >out.plain
same out.plain out
tokmap tokenizer --cache >out
holds out "cache home/tokmap: 1 file, "
tokmap tokenizer --cache --json >out
json out
equal "$(field out files)" 1 "files:"

# A damaged file is replaced, and nothing is said.
for file in "$XDG_CACHE_HOME"/tokmap/*; do
    printf x | dd of="$file" bs=1 seek=5000 conv=notrunc 2>/dev/null
done
tokmap encode -t tokenizer.json text >ids 2>err
same plain ids
[ ! -s err ] || { cat err >&2; exit 1; }
cached read

# A changed file is another one.
sed 's/"special": *true/"special":false/' tokenizer.json >changed.json
if cmp -s tokenizer.json changed.json; then echo "nothing was changed" >&2; exit 1; fi
tokmap tokenizer changed.json >out
holds out "cache              written"
tokmap tokenizer --clear-cache >out
holds out "cache home/tokmap: removed "
tokmap tokenizer --cache >out
holds out "cache home/tokmap: 0 files, 0 B"
tokmap tokenizer --clear-cache >out
holds out "removed 0 files"

# Without XDG_CACHE_HOME it is in the home folder; without that, or where it cannot be made, it is not used.
unset XDG_CACHE_HOME
mkdir home
tokmap tokenizer tokenizer.json >out
holds out "cache              written"
[ -d home/.cache/tokmap ]
HOME=/proc/none tokmap tokenizer tokenizer.json >out 2>err
holds out "cache              not used"
env -u HOME tokmap tokenizer tokenizer.json >out 2>>err
holds out "cache              not used"
[ ! -s err ] || { cat err >&2; exit 1; }
env -u HOME tokmap encode -t tokenizer.json text >ids
same plain ids
exits 2 env -u HOME tokmap tokenizer --cache 2>err
holds err "there is no cache"
exits 2 tokmap tokenizer --cache tokenizer.json 2>err
holds err "takes no tokenizer"
exits 2 tokmap tokenizer --clear-cache bytes 2>err
holds err "takes no tokenizer"
