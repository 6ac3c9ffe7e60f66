# SPDX-License-Identifier: MIT
# ci: nonroot
# A missing folder of an output is made, as mkdir -p would, by every command that writes files.
. "$TOKMAP_CLI/helpers.sh"
corpus
tokmap pack -q -o small in
printf 'bad\377' >bad.txt

# made FILE COMMAND...: the command makes the folder new/deep with FILE in it.
made()
{
    made_file=$1
    shift
    tokmap "$@" >out 2>err
    [ -s "new/deep/$made_file" ] || { ls -R new; cat err; exit 1; } >&2
    equal "$(ls -A new)" deep
    rm -r new
}
made d.tmx pack -q -o new/deep/d in
made d pack -q --shard-tokens 5k -o new//deep/d in
made d.train pack -q --split train=0.9,val=0.1 -o ./new/deep/d in
made d.tmx pack -q --shuffle 1 -o "$PWD/new/deep/d" in
made d.jsonl pack -q --on-error skip --skipped-list new/deep/d.jsonl -o small2 bad.txt in
made v.json train-tokenizer -q --vocab-size 257 -o new/deep/v in
made d.idx convert -q --to megatron -o new/deep/d small
made d merge -o new/deep/d small
made d.plan plan -q --seq-len 64 -o new/deep/d.plan small
made d.jsonl export -q -o new/deep/d.jsonl small
made d.run mix small:rest --seq-len 64 --batch 1 --steps 1 -o new/deep/d.run
# A run file in a new folder names its data from there.
tokmap mix small:rest --seq-len 64 --batch 1 --steps 1 -o new/deep/d.run 2>err
tokmap info new/deep/d.run >out
rm -r new

# Tasks that begin at the same time.
for task in 0 1; do
    tokmap pack -q --shard-tokens 5k --unit-bytes 9k --task $task/2 --wait 60 -o new/deep/d in &
done
wait
[ -e new/deep/d ]
rm -r new

# failed COMMAND...: the command fails and leaves no file.
failed()
{
    exits 1 "$@" >out 2>err </dev/null
    if [ -e new ]; then
        equal "$(find new ! -type d)" ''
        rm -r new
    fi
}
failed tokmap pack -q -o new/deep/d bad.txt
failed tokmap pack -q -o new/deep/d absent
failed tokmap pack -q -o bad.txt/d --skipped-list new/other/list --on-error skip in
failed tokmap train-tokenizer -q --vocab-size 257 -o new/deep/v bad.txt
failed tokmap convert -q -o new/deep/d absent
failed tokmap merge -o new/deep/d absent
failed tokmap plan -q --seq-len 64 -o new/deep/d absent
failed tokmap export -q -o new/deep/d absent
failed tokmap mix small:rest --seq-len 64000 --batch 1 --steps 1 -o new/deep/d.run
failed tokmap export -q -o s3://new/d small
holds err 's3://new/d: the output is written to files of this machine'
[ ! -e s3: ]
tokmap pack -q --dry-run -o new/deep/d in >out 2>err
[ ! -e new ]
# What cannot be a folder is named.
exits 1 tokmap pack -q -o bad.txt/deep/d in 2>err
holds err 'bad.txt: the output folder is not a folder; choose another name'
ln -s nothing new
exits 1 tokmap pack -q -o new/deep/d in 2>err
holds err 'new: the output folder is not a folder; choose another name'
rm new
if [ "$(id -u)" != 0 ]; then
    mkdir locked
    chmod a-w locked
    exits 1 tokmap pack -q -o locked/deep/d in 2>err
    holds err 'locked/deep: the output folder cannot be made; the folder that contains it may not be writable for you'
fi

# A signal leaves no file, either.
mkfifo pipe
tokmap train-tokenizer -q --vocab-size 300 -o new/deep/v pipe 2>err &
child=$!
exec 3>pipe
echo 'some text' >&3
await [ -e new/deep ]
kill -TERM $child
status=0
wait $child || status=$?
exec 3>&-
equal $status 143
equal "$(find new ! -type d)" ''
