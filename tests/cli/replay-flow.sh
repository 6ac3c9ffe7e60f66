# SPDX-License-Identifier: MIT
# ci: nonroot asan tsan
# Traces of real loaders, replayed: the same rows; a rank or a step without a record; data that was changed after it was
# delivered; a run whose past is another; a file that was cut or damaged; what is no trace.
. "$TOKMAP_CLI/helpers.sh"
need python3
pack_corpus
printf 'seq_len 32\nbatch 6\nseed 3\nsource web small\nsource more small#docs=0..50%%\n' >train.run
printf 'phase 0 web 3 more 1\nphase 5 web 1 more 1 batch 8\nsteps 12\n' >>train.run
PYTHONPATH=$TOKMAP_TREE/src/python TOKMAP_LIBRARY=${TOKMAP_BIN%/bin}/lib/libtokmap.so python3 -c '
import tokmap
state = None
for world, steps in ((2, 7), (3, 12)):
    for rank in range(world):
        with tokmap.Run("train.run").loader(rank=rank, world=world, trace=f"rank{rank}.trace") as loader:
            if state:
                loader.load_state_dict(state)
            for batch in loader:
                if batch.last_in_step and batch.step == steps - 1:
                    break
            after = loader.state_dict()
    state = after' 2>err || skip "Python cannot load this build: $(tail -n 1 err)"

tokmap replay train.run --trace rank*.trace >out 2>err
holds out "train.run: the same: 12 steps"
tokmap replay train.run --trace rank*.trace --steps 3..9 --json >out 2>err
json out
equal "$(field out same)" true

exits 1 tokmap replay train.run --trace rank0.trace rank1.trace >out 2>err
holds out "step 7, rank 2: has no record"
tokmap replay train.run --trace rank0.trace rank1.trace --steps 0..7 >out 2>err

# A cut record is not there. The step of another rank shows that it is missing.
cp rank2.trace whole.trace
size=$(wc -c <rank2.trace)
head -c $((size - 5)) whole.trace >rank2.trace
exits 1 tokmap replay train.run --trace rank*.trace >out 2>err
holds out "step 11, rank 2: has no record"
# A damaged sum differs, and is named.
python3 -c '
data = bytearray(open("whole.trace", "rb").read())
data[-1] ^= 1
open("rank2.trace", "wb").write(data)'
exits 1 tokmap replay train.run --trace rank*.trace --json >out 2>err
equal "$(field out same) $(field out first.step) $(field out first.rank)" "false 11 2"
cp whole.trace rank2.trace

# One token of the data, of row 0 of step 8, is another one now. The first step that differs is the first one that
# shows this token.
cp small.bin small.keep
token=$(($(tokmap show train.run --step 8 --row 0 --ids --json -q | sed 's/.*"first_token": \([0-9]*\).*/\1/') + 5))
first=$(for source in web more; do
    tokmap show train.run --source $source --tokens $token..$((token + 1)) --where --json -q 2>err || true
done | sed 's/.*"step": \([0-9]*\),.*/\1/' | sort -n | head -n 1)
python3 -c '
import sys
with open("small.bin", "r+b") as file:
    file.seek(2 * int(sys.argv[1]))
    token = file.read(1)
    file.seek(2 * int(sys.argv[1]))
    file.write(bytes([token[0] ^ 1]))' "$token"
exits 1 tokmap replay train.run --trace rank*.trace --json >out 2>err
equal "$(field out first.step)" "$first"
cp small.keep small.bin

sed 's/seed 3/seed 4/' train.run >other.run
exits 1 tokmap replay other.run --trace rank*.trace >out 2>err
exits 2 tokmap replay train.run 2>err
holds err "trace"
exits 1 tokmap replay train.run --trace train.run 2>err
holds err "train.run"
exits 1 tokmap replay train.run --trace missing.trace 2>err
holds err "missing.trace"
