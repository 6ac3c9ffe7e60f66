# SPDX-License-Identifier: MIT
# ci: nonroot asan
# Outputs that exist, whose folder is missing, that are being written, that are also inputs, or for which there is no
# room.
. "$TOKMAP_CLI/helpers.sh"
mkdir in
printf 'text' >in/a
tokmap pack -q -o d in
cp d.bin old.bin
exits 1 tokmap pack -o d in 2>err
holds err 'd.bin: the output already exists; choose another name, or use --force'
rm d.bin
exits 1 tokmap pack -o d in 2>err
holds err 'd.tmx: the output already exists'
tokmap pack -q --force -o d in
same d.bin old.bin
exits 1 tokmap pack -o in/a/d in 2>err
holds err 'in/a: the output folder is not a folder; choose another name'
exits 1 tokmap pack -o in/d in 2>err
holds err 'this input is an output of the same command'
exits 2 tokmap pack in 2>err
exits 2 tokmap pack -o d </dev/null 2>err
holds err 'no input given'
exits 2 tokmap pack -o d --eod --no-eod in 2>err
exits 2 tokmap pack -o d --eod=999 in 2>err
exits 2 tokmap pack -o d --threads 0 in 2>err
exits 2 tokmap pack -o d - - 2>err
equal "$(ls | tr '\n' ' ')" 'd.bin d.tmx err in old.bin '
# A second command with the same output while the first one still reads.
mkfifo pipe
tokmap pack -q -o busy pipe &
first=$!
exec 3>pipe
printf 'first' >&3
await [ -e busy.tmx.partial ]
exits 1 tokmap pack -o busy in 2>err
holds err 'another process is writing this output'
exits 1 tokmap pack -q -o https://host/x /dev/null 2>err
holds err 'files of web servers (http://, https://) are read and not written; name an object'
exec 3>&-
wait $first
equal "$(wc -c <busy.bin | tr -d ' ')" 12
tokmap verify -q busy
