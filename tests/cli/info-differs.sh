# SPDX-License-Identifier: MIT
# ci: asan
# A folder in which one shard has no EOD is read, and every command that opens it says so in the same words.
. "$TOKMAP_CLI/helpers.sh"
mkdir shards
printf 'one text\n' >a.txt
tokmap pack -q -o shards/a a.txt
tokmap pack -q -o shards/b --no-eod a.txt
wanted='warning: shards: documents end differently: those of shards/a.tmx with token 256, those of shards/b.tmx with no token; pack all shards with the same EOD'
said()
{
    program=$1
    shift
    tokmap "$@" >/dev/null 2>err
    equal "$(grep warning err)" "tokmap $program: $wanted"
}
said info info shards
said info info shards --json
said show show shards -d 1
said verify verify shards
said audit audit shards --seq-len 4 --batch 1 --seed 1 --passes 1 --ranks 1
printf 'seq_len 4\nbatch 1\nsource web shards\n' >train.run
for command in 'info train.run' 'verify train.run' 'show train.run --step 0'; do
    tokmap $command >/dev/null 2>err
    holds err 'warning: train.run: documents end differently: those of shards/a.tmx with token 256'
done
# BOS alike. A dataset of shards that agree has no warning, whatever they agree on.
mkdir bos none
tokmap pack -q -o bos/a a.txt
tokmap pack -q -o bos/b --bos=7 a.txt
tokmap info bos >/dev/null 2>err
holds err 'warning: bos: documents begin differently'
tokmap pack -q -o none/a --no-eod a.txt
tokmap pack -q -o none/b --no-eod a.txt
tokmap info none >/dev/null 2>err
[ ! -s err ]
# A folder that was made after a shard of that name is not opened, and that is said. With a suffix or a slash it is not.
mkdir beside beside/web
cp shards/a.bin beside/web.bin
cp shards/a.tmx beside/web.tmx
cp shards/b.bin shards/b.tmx beside/web
tokmap info beside/web >/dev/null 2>err
equal "$(cat err)" "tokmap info: warning: beside/web: this is the shard beside/web.bin, but there is a folder of that name, too; write beside/web/ for the folder, or beside/web.bin for the shard"
for name in beside/web/ beside/web.bin beside/web.tmx; do
    tokmap info $name >/dev/null 2>err
    [ ! -s err ]
done
