#!/bin/sh
# SPDX-License-Identifier: MIT
# test_power.sh: the power is cut while `tokmap pack` works. The next start of the same command ends with the bytes of
# an undisturbed pack, and leaves no other files. power_cuts.py says how the power is cut: of a disk TOKMAP_CUTS times
# (5; FAULT_ALL=1: 100), and computed four times as often in each of several packs, because that takes little time.
# Processes are also killed TOKMAP_KILLS times (50; FAULT_ALL=1: 2,000), over all these kinds of packs.
# TOKMAP_CUT_SEED chooses other moments and other losses. The commit chooses with which pack the disk begins, so that
# all of them are cut on a disk over some commits; FAULT_COMMIT=NUMBER replaces it.
set -u
here=$PWD
cuts=${TOKMAP_CUTS:-5}
kills=${TOKMAP_KILLS:-50}
[ -z "${FAULT_ALL:-}" ] || cuts=100 kills=${TOKMAP_KILLS:-2000}
seed=${TOKMAP_CUT_SEED:-1}
commit=${FAULT_COMMIT:-$((0x$(git -C "$here" rev-parse --short=7 HEAD 2>/dev/null || echo 0)))}
if [ -n "${SANITIZE:-}" ]; then
    echo "skipped: a preloaded library cannot be combined with the runtime of a sanitizer"
    exit 77
fi
python3 -c '' 2>/dev/null || { echo "skipped: there is no python3"; exit 77; }
mkdir -p "$TMPDIR/in" "$TMPDIR/work" && cd "$TMPDIR/in" || exit 1
awk 'BEGIN { srand(4); for (i = 0; i < 6000; i++) { t = ""; n = int(rand() * 30); for (k = 0; k < n; k++)
    t = t " word" int(rand() * 5000); printf "{\"text\":\"%s\",\"url\":\"u%d\",\"n\":%d}\n", t, i % 700, i } }' >a.jsonl
head -n 2000 a.jsonl >b.jsonl
gzip -n -c a.jsonl >z.jsonl.gz
awk 'BEGIN { for (i = 0; i < 20000; i++)
    printf "{\"ids\":[%d,%d,7],\"m\":[1,%d,0]}\n", i % 999, i % 17, i % 2 }' >m.jsonl
cd ../work || exit 1
python3 "$here/tests/fault/power_cuts.py" computed "$TOKMAP" "$BUILD_DIR/tests/record_calls.so" "$TMPDIR/in" \
    $((4 * cuts)) "$seed" || echo "not ok - computed power cuts"
mkdir killed && cd killed || exit 1
python3 "$here/tests/fault/power_cuts.py" killed "$TOKMAP" "$TMPDIR/in" "$kills" "$seed" || echo "not ok - killed packs"
cd ..

name="a disk whose power is cut"
probe() {
    truncate -s 4M probe && mkfs.ext4 -q -F probe && mkdir -p there && mount -o loop probe there && umount there
}
# Why no device of the device mapper loses the writes. Without one, the file system is shut down, which loses what its
# log does not have yet, but never reorders what is in the block layer.
mapper() {
    command -v dmsetup >/dev/null 2>&1 || { echo 'there is no dmsetup'; return; }
    for target in flakey log-writes; do modprobe "dm-$target" 2>/dev/null; done
    dmsetup targets >targets 2>err || { echo "the kernel has no device mapper: $(head -n 1 err)"; return; }
    grep -q '^flakey \|^log-writes ' targets || { echo 'the kernel has neither dm-flakey nor dm-log-writes'; return; }
    echo "this test does not use them, though the kernel has them"
}
if [ "$(id -u)" != 0 ]; then
    echo "ok - $name # SKIP only root can mount a disk"
elif ! probe 2>err; then
    echo "ok - $name # SKIP no disk can be mounted here: $(tail -n 1 err)"
else
    echo "# dm-flakey and dm-log-writes are not used: $(mapper). The file system is shut down (FS_IOC_SHUTDOWN)"
    python3 "$here/tests/fault/power_cuts.py" mounted "$TOKMAP" "$TMPDIR/in" "$cuts" "$seed" "$TMPDIR/image" \
        "$commit" ||
        { umount disk 2>/dev/null; echo "not ok - $name"; }
fi
