#!/bin/sh
# test_power.sh: the power is cut while `tokmap pack` works. The next start of the same command ends with the bytes of
# an undisturbed pack, and leaves no other files. power_cuts.py says how the power is cut: of a disk TOKMAP_CUTS times
# (5; FAULT_ALL=1: 100), and computed four times as often in each of several packs, because that takes little time.
# TOKMAP_CUT_SEED chooses other moments and other losses.
set -u
here=$PWD
cuts=${TOKMAP_CUTS:-5}
[ -z "${FAULT_ALL:-}" ] || cuts=100
seed=${TOKMAP_CUT_SEED:-1}
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

name="a disk whose power is cut"
probe() {
    truncate -s 4M probe && mkfs.ext4 -q -F probe && mkdir -p there && mount -o loop probe there && umount there
}
if [ "$(id -u)" != 0 ]; then
    echo "ok - $name # SKIP only root can mount a disk"
elif ! probe 2>err; then
    echo "ok - $name # SKIP no disk can be mounted here: $(tail -n 1 err)"
else
    python3 "$here/tests/fault/power_cuts.py" mounted "$TOKMAP" "$TMPDIR/in" "$cuts" "$seed" "$TMPDIR/image" ||
        { umount disk 2>/dev/null; echo "not ok - $name"; }
fi
