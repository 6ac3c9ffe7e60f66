# --task auto under a real mpirun: three processes make an output, also after one of them was killed, which ends all.
. "$TOKMAP_CLI/helpers.sh"
need mpirun awk
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
for file in ref/*; do same "$file" "d/${file#ref/}"; done
equal "$(ls d | wc -l)" "$(ls ref | wc -l)" files:
