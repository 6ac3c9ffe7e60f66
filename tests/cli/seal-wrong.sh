# SPDX-License-Identifier: MIT
# ci: nonroot asan
# What seal and unseal refuse, and what damage to sealed shards looks like.
. "$TOKMAP_CLI/helpers.sh"
need python3
awk 'BEGIN { for (i = 0; i < 30000; i++) print "line " i " of a text" }' >long.txt
tokmap pack -q --eod -o web long.txt
exits 2 tokmap seal 2>err
holds err "expected one dataset"
exits 2 tokmap seal web --level 0 2>err
holds err "--level must be between 1 and 19"
exits 2 tokmap unseal web --level 3 2>err
exits 2 tokmap seal web -j 0 2>err
holds err "--threads must be between"
exits 2 tokmap seal 'web#docs=0..1' 2>err
holds err "is a part of a dataset"
exits 1 tokmap seal synthetic:tokens=1000,vocab=50 2>err
exits 1 tokmap seal nothing 2>err
holds err "nothing"
printf '\0\1\2\3' >foreign.bin
exits 1 tokmap seal raw:foreign.bin,width=2 2>err
holds err "only shards of"
tokmap index -q raw:foreign.bin,width=2
exits 1 tokmap seal raw:foreign.bin,width=2 2>err
holds err "another project"
equal "$(wc -c <foreign.bin | tr -d ' ')" 4
: >web.idx
exits 1 tokmap seal web 2>err
holds err "use --force"
tokmap seal -q --force web
[ -e web.bin.zst ] && [ ! -e web.bin ] && [ -e web.idx ]
rm web.idx
printf 'mine' >web.bin
exits 1 tokmap unseal web 2>err
holds err "use --force"
rm web.bin
cp web.bin.zst sound.zst
# damage AT: changes one byte.
damage()
{
    python3 -c 'import sys
data = bytearray(open("sound.zst", "rb").read())
data[int(sys.argv[1])] ^= 0x10
open("web.bin.zst", "wb").write(data)' "$1"
}
damage 50
exits 1 tokmap verify web >out
holds out "web.bin.zst"
holds out "frame 0, bytes 0.."
exits 1 tokmap verify web --json >out
json out
exits 1 tokmap export web -o - >out 2>err
holds err "cannot be unpacked"
exits 1 tokmap show web --tokens 0..10 >out 2>err
holds err "cannot be unpacked"
exits 1 tokmap unseal web 2>err
holds err "cannot be unpacked"
equal "$(ls web.*| tr '\n' ' ')" "web.bin.zst web.tmx "
exits 1 tokmap seal --force web 2>err
holds err "cannot be unpacked"
damage -3
exits 1 tokmap verify web >out
holds out "seek table"
tokmap unseal -q web
tokmap verify -q web
tokmap seal -q web
head -c 1000 sound.zst >web.bin.zst
exits 1 tokmap verify web >out
holds out "bytes long, but its index says"
rm web.bin.zst
exits 1 tokmap info web 2>err
holds err "web.bin.zst"
