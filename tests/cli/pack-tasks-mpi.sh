# SPDX-License-Identifier: MIT
# --task auto under a real mpirun: three processes make an output, also after one of them was killed, which ends all:
# before it works, and in the middle of its share.
. "$TOKMAP_CLI/helpers.sh"
need mpirun awk python3
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
    OMPI_MCA_btl_vader_single_copy_mechanism=none
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMPI_MCA_rmaps_base_oversubscribe \
    OMPI_MCA_btl_vader_single_copy_mechanism
mpirun -n 2 true </dev/null 2>err || skip "mpirun cannot start processes here: $(head -n 3 err | tr '\n' ' ')"
awk 'BEGIN { for (i = 0; i < 4000; i++) printf "{\"text\": \"document %d with a few words\"}\n", i * i }' >in.jsonl
options='-q -j 1 --shard-tokens 5k --unit-bytes 9000'
mkdir ref d
tokmap pack $options -o ref/d in.jsonl

# The process of rank 1 kills itself before it works: mpirun ends the others.
cat >one <<'END'
[ "$OMPI_COMM_WORLD_RANK" != 1 ] || kill -s KILL $$
exec tokmap "$@"
END
status=0
mpirun -n 3 sh ./one pack $options --task auto -o d/d in.jsonl </dev/null >out 2>err || status=$?
[ $status -ne 0 ]
[ ! -e d/d ]
mpirun -n 3 tokmap pack $options --task auto -o d/d in.jsonl </dev/null
diff -r ref d

# It is killed when it has finished the first of its two units, and has saved a part of the second, after some shards of
# it. If it was faster than whoever kills it, the same is tried again.
for i in 1 2 3 4 5 6 7 8; do cat in.jsonl in.jsonl in.jsonl in.jsonl in.jsonl in.jsonl in.jsonl; done >long.jsonl
options="-q -j 1 --shard-tokens 60k --unit-bytes $(($(wc -c <long.jsonl) / 6 + 1))"
rm -r ref
mkdir ref
tokmap pack $options -o ref/d long.jsonl
cat >one <<'END'
pid=$$
[ "$OMPI_COMM_WORLD_RANK" != 1 ] || while kill -0 $pid 2>/dev/null; do
    [ ! -e d/d.work/packed-000002 ] || [ ! -e d/d.work/unit-000003.work/unit-000003-00009.bin.ready ] ||
        kill -s KILL $pid
done &
exec tokmap "$@"
END
tries=0
killed=
while [ -z "$killed" ]; do
    tries=$((tries + 1))
    [ $tries -lt 20 ]
    rm -r d
    mkdir d
    status=0
    mpirun -n 3 sh ./one pack $options --checkpoint-seconds 0.001 --task auto -o d/d long.jsonl </dev/null >out 2>err ||
        status=$?
    [ ! -e d/d.work/packed-000002 ] || [ -e d/d.work/packed-000003 ] || killed=1
done
[ $status -ne 0 ]
holds err 'exited on signal 9'
[ -s d/d.work/unit-000003.work/journal ]
[ ! -e d/d ]
tokmap pack --status d/d --json >report
equal "$(field report tasks.1.state) $(field report tasks.1.units)" 'stopped 2'
mpirun -n 3 tokmap pack $options --checkpoint-seconds 0.001 --task auto -o d/d long.jsonl </dev/null
diff -r ref d
