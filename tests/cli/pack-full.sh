# No room for the output, early or late: the system's reason, exit status 1, no file left, an old shard untouched.
. "$TOKMAP_CLI/helpers.sh"
head -c 400000 /dev/zero >zeros
tokmap pack -q -o d zeros
cp d.bin old.bin
cp d.tmx old.tmx
for kilobytes in 8 64 500 780; do
    # Blocks of 512 bytes in some shells, of 1024 in others: in either, far too little.
    if (trap '' XFSZ; ulimit -f $kilobytes; exec tokmap pack -q --force -o d zeros) 2>err; then
        echo "a file of 800 kB fits $kilobytes" >&2
        exit 1
    fi
    holds err 'File too large'
    same d.bin old.bin
    same d.tmx old.tmx
    equal "$(ls d.* | tr '\n' ' ')" 'd.bin d.tmx '
done
tokmap verify -q d
