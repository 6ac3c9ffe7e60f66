# SPDX-License-Identifier: MIT
# --task auto under a real Slurm, of four nodes on this machine: by srun, and as an array of which one node dies midway.
# Its job is requeued, and the bytes are those of a pack without tasks.
. "$TOKMAP_CLI/helpers.sh"
need slurmctld slurmd srun sbatch scontrol munged awk
[ "$(id -u)" = 0 ] || skip "only root can start slurmd for jobs"
# Slurm takes no path with a space, as that of the test is, and a socket no long one.
d=$(mktemp -d "$(cd ../.. && pwd)/slurm.XXXXXX")
case $d in *' '*) rmdir "$d"; skip "Slurm takes no path with a space: $d" ;; esac
[ ${#d} -lt 90 ] || { rmdir "$d"; skip "too long for the path of a socket: $d"; }
daemons=
tasks=
cleanup()
{
    for pid in $tasks $daemons; do kill -s KILL $pid 2>/dev/null || true; done
    [ ! -e "$d/munge.pid" ] || kill -s KILL "$(cat "$d/munge.pid")" 2>/dev/null || true
    rm -rf "$d"
}
trap cleanup EXIT

# Five ports that nobody uses: of the controller, and of the nodes.
port=$((20000 + $$ % 10000))
while awk -v first=$port '{ split($2, at, ":"); for (i = 0; i < 5; i++) if (at[2] == sprintf("%04X", first + i)) found = 1 }
    END { exit !found }' /proc/net/tcp; do
    port=$((port + 5))
done
host=$(uname -n)
host=${host%%.*}
head -c 1024 /dev/urandom >"$d/key"
chmod 600 "$d/key"
munged --force --key-file="$d/key" --socket="$d/munge" --pid-file="$d/munge.pid" --log-file="$d/munge.log" \
    --seed-file="$d/munge.seed" 2>err || skip "munged does not start here: $(tail -n 1 err)"
# The time that a job must wait before it starts again is that of a credential.
cat >"$d/slurm.conf" <<END
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmctldPort=$port
AuthType=auth/munge
CryptoType=crypto/munge
AuthInfo=socket=$d/munge,cred_expire=5
StateSaveLocation=$d/state
SlurmctldPidFile=$d/slurmctld.pid
SlurmctldLogFile=$d/slurmctld.log
SlurmdPidFile=$d/%n.pid
SlurmdLogFile=$d/%n.log
SlurmdSpoolDir=$d/%n
SlurmdParameters=config_overrides
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0
SlurmdTimeout=60
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
KillWait=1
NodeName=n0 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 1)) CPUs=1 State=UNKNOWN
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 2)) CPUs=1 State=UNKNOWN
NodeName=n2 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 3)) CPUs=1 State=UNKNOWN
NodeName=n3 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 4)) CPUs=1 State=UNKNOWN
PartitionName=all Nodes=n[0-3] Default=YES MaxTime=INFINITE State=UP
END
mkdir "$d/state" "$d/n0" "$d/n1" "$d/n2" "$d/n3"
SLURM_CONF=$d/slurm.conf
export SLURM_CONF
slurmctld -D >"$d/out" 2>&1 &
daemons=$!
for node in n0 n1 n2 n3; do
    slurmd -D -N $node >"$d/$node.out" 2>&1 &
    daemons="$daemons $!"
    echo $! >"$d/$node.slurmd"
done
waited=0
until sinfo -h -o '%T %D' 2>/dev/null | grep -q '^idle 4$'; do
    waited=$((waited + 1))
    [ $waited -lt 200 ] || skip "Slurm does not start here: $(tail -q -n 1 "$d/out" "$d/slurmctld.log" | tr '\n' ' ')"
    sleep 0.1
done

awk 'BEGIN { for (i = 0; i < 4000; i++) printf "{\"text\": \"document %d with a few words\"}\n", i * i }' >in.jsonl
mkdir ref d e
options="-q -j 1 --shard-tokens 5k --unit-bytes 9000"
tokmap pack $options -o ref/d in.jsonl
is_whole()
{
    for file in "${2:-ref}"/*; do same "$file" "$1/${file##*/}"; done
    equal "$(ls $1 | wc -l)" "$(ls "${2:-ref}" | wc -l)" files:
}

srun -N 4 -n 4 tokmap pack $options --task auto -o e/d in.jsonl
is_whole e
# In stages, in which each task waits for the others.
mkdir shuffled f
tokmap pack $options --dedup exact --shuffle 3 -o shuffled/d in.jsonl
srun -N 4 -n 4 tokmap pack $options --dedup exact --shuffle 3 --task auto -o f/d in.jsonl
is_whole f shuffled
# As programs of MPI are started, with the variables of each plugin that works here; on one node, because the plugin of
# PMIx makes a folder with the same name for each node.
for mpi in pmi2 pmix; do
    srun --mpi=$mpi -n 1 sh -c 'env | grep -q "^PMI"' 2>err || continue
    rm -rf e
    mkdir e
    srun --mpi=$mpi -N 1 -n 4 --overcommit tokmap pack $options --task auto -o e/d in.jsonl
    is_whole e
done

# Task 2 stops in the middle of its work when it runs for the first time. Then its node dies, with all that runs on it.
cat >job <<'END'
#!/bin/sh
[ "$SLURM_ARRAY_TASK_ID:${SLURM_RESTART_COUNT:-0}" = 2:0 ] || exec tokmap pack "$@"
tokmap pack "$@" --checkpoint-seconds 0.001 &
while [ ! -e d/d.work/task-2-of-4.status ]; do sleep 0.002; done
kill -s STOP $!
echo "$SLURMD_NODENAME $PPID $$ $!" >began.new
mv began.new began
wait
END
job=$(sbatch --parsable --requeue --array=0-3 -o 'out.%a' job $options --task auto -o d/d in.jsonl)
await test -e began
read -r node tasks <began
# The others end, and --finish says what is missing.
await sh -c "[ \"\$(squeue -h -j $job | wc -l)\" = 1 ]"
exits 1 srun -n 1 tokmap pack $options --finish -o d/d in.jsonl 2>err
holds err 'run again, of 4 tasks: 2'
for pid in "$(cat "$d/$node.slurmd")" $tasks; do kill -s KILL $pid; done
scontrol update nodename=$node state=down reason='killed by a test'
await sh -c "[ -z \"\$(squeue -h -j $job)\" ]"
[ ! -s out.2 ] || { cat out.2 >&2; exit 1; }
is_whole d
