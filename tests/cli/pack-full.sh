# SPDX-License-Identifier: MIT
# ci: nonroot
# No room for the output, early or late: the message has the system's reason, the exit status is 1, no file is left, and an
# old shard stays unchanged.
. "$TOKMAP_CLI/helpers.sh"
head -c 400000 /dev/zero >zeros
tokmap pack -q --input-format text -o d zeros
cp d.bin old.bin
cp d.tmx old.tmx
for kilobytes in 8 64 500 780; do
    # Some shells count blocks of 512 bytes, others of 1024; both limits are far too small.
    if (trap '' XFSZ; ulimit -f $kilobytes; exec tokmap pack -q --force --input-format text -o d zeros) 2>err; then
        echo "a file of 800 kB fits $kilobytes" >&2
        exit 1
    fi
    holds err 'File too large'
    same d.bin old.bin
    same d.tmx old.tmx
    equal "$(ls d.* | tr '\n' ' ')" 'd.bin d.tmx '
done
tokmap verify -q d
