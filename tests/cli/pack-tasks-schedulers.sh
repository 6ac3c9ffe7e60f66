# SPDX-License-Identifier: MIT
# --task auto: the variables of each scheduler make the bytes of a pack without tasks, also where those of several are
# there; where they do not say which numbers count, the command refuses. The main node of AWS Batch ends last.
. "$TOKMAP_CLI/helpers.sh"
need awk python3
for name in $(env | sed -n 's/^\([A-Za-z_0-9]*\)=.*/\1/p'); do
    case $name in
    SLURM_* | OMPI_* | PMI_* | PMIX_* | AWS_BATCH_* | TORCHELASTIC_* | GROUP_*) unset $name ;;
    JOB_COMPLETION_INDEX | TOKMAP_TASKS | RANK | WORLD_SIZE) unset $name ;;
    esac
done
awk 'BEGIN { for (i = 0; i < 3000; i++) { t = ""; for (k = i * 7 % 23; k > 0; k--) t = t "w" k " of " i " "
    printf "{\"text\": \"%s\"}\n", t } }' >in.jsonl
options='--shard-tokens 40k --unit-bytes 30000 -j 1'
mkdir ref
tokmap pack -q $options -o ref/d in.jsonl

# run N OUT VARIABLE=VALUE...: runs N tasks with these variables, in which @ is the number of the task, and compares the
# bytes. The last task has the report of the whole, and each one before it says from which variables its numbers are.
run()
{
    count=$1
    from=$2
    shift 2
    rm -rf d
    mkdir d
    i=0
    while [ $i -lt $count ]; do
        variables=
        for variable; do
            case $variable in
            *@/*) at=$((i / ${variable#*@/})); variable=${variable%@*}$at ;;
            *@*) variable=${variable%@*}$((i * ${step:-1} + ${first:-0})) ;;
            esac
            variables="$variables $variable"
        done
        env $variables tokmap pack $options --task auto --wait 0 -o d/d in.jsonl >report || [ $? = 3 ]
        i=$((i + 1))
        [ $i = $count ] || holds report "task $((i - 1)) of $count (from $from): "
    done
    diff -r ref d
}
run 3 'SLURM_ARRAY_TASK_ID and _COUNT' SLURM_ARRAY_TASK_ID=@ SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_MIN=0 \
    SLURM_ARRAY_TASK_MAX=2
first=5 step=2
run 3 'SLURM_ARRAY_TASK_ID and _COUNT' SLURM_ARRAY_TASK_ID=@ SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_MIN=5 \
    SLURM_ARRAY_TASK_MAX=9 SLURM_ARRAY_TASK_STEP=2 SLURM_PROCID=0
first= step=
run 2 'SLURM_PROCID and SLURM_STEP_NUM_TASKS' SLURM_PROCID=@ SLURM_STEP_NUM_TASKS=2 PMIX_RANK=@
run 4 'OMPI_COMM_WORLD_RANK and _SIZE' OMPI_COMM_WORLD_RANK=@ OMPI_COMM_WORLD_SIZE=4 PMIX_RANK=@
run 3 'PMI_RANK and PMI_SIZE' PMI_RANK=@ PMI_SIZE=3
run 3 'PMIX_RANK and TOKMAP_TASKS' PMIX_RANK=@ TOKMAP_TASKS=3
run 5 'JOB_COMPLETION_INDEX and TOKMAP_TASKS' JOB_COMPLETION_INDEX=@ TOKMAP_TASKS=5
run 3 'AWS_BATCH_JOB_ARRAY_INDEX and _SIZE' AWS_BATCH_JOB_ARRAY_INDEX=@ AWS_BATCH_JOB_ARRAY_SIZE=3
run 3 'AWS_BATCH_JOB_NODE_INDEX and AWS_BATCH_JOB_NUM_NODES' AWS_BATCH_JOB_NODE_INDEX=@ AWS_BATCH_JOB_NUM_NODES=3 \
    AWS_BATCH_JOB_MAIN_NODE_INDEX=0 TORCHX_REPLICA_IDX=@
torchrun='RANK=@ WORLD_SIZE=4 TORCHELASTIC_RUN_ID=x'
run 4 'RANK and WORLD_SIZE' RANK=@ WORLD_SIZE=4
run 4 'RANK and WORLD_SIZE' $torchrun GROUP_WORLD_SIZE=1

# Where several are there: a process of MPI, or of torchrun, was started by one of another kind.
mpi='OMPI_COMM_WORLD_RANK=@ OMPI_COMM_WORLD_SIZE=4'
run 4 'OMPI_COMM_WORLD_RANK and _SIZE' $mpi SLURM_PROCID=@/2 SLURM_STEP_NUM_TASKS=2
run 4 'OMPI_COMM_WORLD_RANK and _SIZE' $mpi AWS_BATCH_JOB_NODE_INDEX=0 AWS_BATCH_JOB_NUM_NODES=2
run 2 'PMI_RANK and PMI_SIZE' PMI_RANK=@ PMI_SIZE=2 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=3
for outer in 'SLURM_PROCID=@/2 SLURM_STEP_NUM_TASKS=2' 'JOB_COMPLETION_INDEX=@/2 TOKMAP_TASKS=2' \
    'AWS_BATCH_JOB_NODE_INDEX=@/2 AWS_BATCH_JOB_NUM_NODES=2' 'OMPI_COMM_WORLD_RANK=@/2 OMPI_COMM_WORLD_SIZE=2' \
    'PMI_RANK=@/2 PMI_SIZE=2'; do
    run 4 'RANK and WORLD_SIZE' $torchrun GROUP_WORLD_SIZE=2 $outer
done
run 3 'SLURM_ARRAY_TASK_ID and _COUNT' SLURM_ARRAY_TASK_ID=@ SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_MIN=0 \
    SLURM_ARRAY_TASK_MAX=2 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1

# refused MESSAGE VARIABLE=VALUE...
refused()
{
    message=$1
    shift
    exits 2 env "$@" tokmap pack -q $options --task auto -o v/d in.jsonl 2>err
    holds err "$message"
}
one='RANK=3 WORLD_SIZE=4 TORCHELASTIC_RUN_ID=x'
array='SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_COUNT=2 SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_MAX=1'
for torch in "$one GROUP_WORLD_SIZE=1" "$one" 'RANK=3 WORLD_SIZE=4 GROUP_WORLD_SIZE=2'; do
    refused 'disagree: SLURM_PROCID and SLURM_STEP_NUM_TASKS say task 1 of 2, and RANK and WORLD_SIZE say task 3 of 4' \
        $torch SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2
done
refused 'disagree: SLURM_ARRAY_TASK_ID and _COUNT say task 1 of 2, and RANK and WORLD_SIZE say task 3 of 4' \
    $one GROUP_WORLD_SIZE=2 $array
refused 'SLURM_ARRAY_TASK_ID and _COUNT say task 1 of 2, and SLURM_PROCID and SLURM_STEP_NUM_TASKS say task 0 of 2' \
    $array SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2
refused 'disagree: JOB_COMPLETION_INDEX and TOKMAP_TASKS say task 1 of 4, and RANK and WORLD_SIZE say task 3 of 4' \
    $one GROUP_WORLD_SIZE=2 JOB_COMPLETION_INDEX=1 TOKMAP_TASKS=4
refused 'the variable AWS_BATCH_JOB_NUM_NODES is not set' AWS_BATCH_JOB_NODE_INDEX=1
refused '4 tasks are numbered from 0 to 3; got 4' AWS_BATCH_JOB_NODE_INDEX=4 AWS_BATCH_JOB_NUM_NODES=4
refused 'no variable has a number for this process' TORCHX_REPLICA_IDX=1
[ ! -e v ]

# TorchX does not say how many replicas there are.
rm -rf d
mkdir d
for i in 0 1 2; do
    TORCHX_REPLICA_IDX=$i sh -c 'tokmap pack -q '"$options"' --task "$TORCHX_REPLICA_IDX/3" -o d/d in.jsonl'
done
diff -r ref d

# node N OPTION...: a node of a job of AWS Batch. by: a word before the command.
by=
main=
trap '[ -z "$main" ] || kill -s KILL $main 2>/dev/null || true' EXIT
node()
{
    node=$1
    shift
    $by env AWS_BATCH_JOB_NODE_INDEX=$node AWS_BATCH_JOB_NUM_NODES=2 AWS_BATCH_JOB_MAIN_NODE_INDEX=0 \
        tokmap pack $options --task auto -o d/d "$@" in.jsonl
}
for way in '' '--shuffle 3' '--dedup exact'; do
    rm -rf ref d
    mkdir ref d
    tokmap pack -q $options $way -o ref/d in.jsonl
    (by=exec; node 0 $way --wait 100 >report) &
    main=$!
    # Its share of the last stage is done, and it stays.
    [ -n "$way" ] || await sh -c "tokmap pack --status d/d 2>err | grep -q '^0 of 2  *done'"
    sleep 0.3
    kill -0 $main
    node 1 $way --wait 100 >report.child
    wait $main
    [ -n "$way" ] || holds report 'd/d is complete: another process has named the shards'
    diff -r ref d
done

# If no other node begins, or the last one was killed, the job fails, and its next attempt continues. With --wait 0 the
# main node does not stay. A signal ends the wait.
rm -rf ref d
mkdir ref d
tokmap pack -q $options -o ref/d in.jsonl
for seconds in 0 1; do
    exits 3 node 0 --wait $seconds >report
    holds report 'units of other tasks are missing; the task that finishes last names the shards of d/d'
    holds report 'this is the main node, at whose end AWS Batch ends the others, and none of them works on it'
done
exits 3 node 0 --wait 0 --json >report
equal "$(field report complete)" false
(by=exec; node 0 --wait 1000 >report 2>err) &
main=$!
await sh -c "tokmap pack --status d/d 2>/dev/null | grep -q '^0 of 2  *done'"
sleep 0.3
kill -s TERM $main
status=0
wait $main || status=$?
equal $status 143
holds err 'interrupted; the same command continues'
node 1 >report
diff -r ref d
