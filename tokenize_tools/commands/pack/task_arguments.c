/*
 * task_arguments.c - see task_arguments.h.
 *
 * Example: mpirun starts 8 processes in a job of Slurm. Each finds OMPI_COMM_WORLD_RANK and ..._SIZE, and also
 * SLURM_PROCID of the daemon that started it, which is the same for all processes of a machine. So Slurm's numbers do
 * not count where those of MPI exist. In an array of Slurm, a step of 4 processes has both SLURM_ARRAY_TASK_ID and
 * SLURM_PROCID: whether each element of the array has work of its own is for the user to say.
 *
 * torchrun numbers processes, too, in RANK, and is itself one of several processes that a step of Slurm, an indexed
 * job, or AWS Batch has started. If there are as many of these as it says that it has groups, they make one world
 * together, and RANK is the number that counts. If not, each of them may have a world of its own: the user must choose.
 */
#include "task_arguments.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "work/task_status.h"
#include "text/decimal.h"

#define TASKS_VARIABLE "TOKMAP_TASKS"
#define WAIT_MOST ((uint64_t)365 * 86400)
#define WAIT_TOGETHER 600 /* seconds: what starts all processes at once also ends them */
#define WAIT_APART 60

enum scheduler { SLURM_ARRAY, SLURM_STEP, OPEN_MPI, PMI, PMIX, KUBERNETES, AWS_ARRAY, AWS_NODES, TORCH, SCHEDULERS };

static const struct {
    const char *number, *count; /* count NULL: TOKMAP_TASKS */
    const char *both;           /* for reports */
    bool apart;                 /* some processes may begin when others have ended */
} variables[SCHEDULERS] = {
    [SLURM_ARRAY] = {"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_ID and _COUNT", true},
    [SLURM_STEP] = {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID and SLURM_STEP_NUM_TASKS", false},
    [OPEN_MPI] = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK and _SIZE", false},
    [PMI] = {"PMI_RANK", "PMI_SIZE", "PMI_RANK and PMI_SIZE", false},
    [PMIX] = {"PMIX_RANK", NULL, "PMIX_RANK and " TASKS_VARIABLE, false},
    [KUBERNETES] = {"JOB_COMPLETION_INDEX", NULL, "JOB_COMPLETION_INDEX and " TASKS_VARIABLE, true},
    [AWS_ARRAY] = {"AWS_BATCH_JOB_ARRAY_INDEX", "AWS_BATCH_JOB_ARRAY_SIZE", "AWS_BATCH_JOB_ARRAY_INDEX and _SIZE",
                   true},
    [AWS_NODES] = {"AWS_BATCH_JOB_NODE_INDEX", "AWS_BATCH_JOB_NUM_NODES",
                   "AWS_BATCH_JOB_NODE_INDEX and AWS_BATCH_JOB_NUM_NODES", false},
    [TORCH] = {"RANK", "WORLD_SIZE", "RANK and WORLD_SIZE", false},
};

struct found {
    bool there;
    uint64_t task, tasks;
};

/* A variable of the environment; NULL if it is not set, or empty. */
static const char *variable(const char *name)
{
    const char *text = name ? secure_getenv(name) : NULL;
    return text && *text ? text : NULL;
}

/* Reads a variable that is set. Returns 0, or the exit status after a message. */
static int number_read(const struct cli_command *command, const char *name, uint64_t *number)
{
    const char *text = variable(name);
    if (text && decimal_parse(text, strlen(text), number))
        return 0;
    return cli_misused(command, "--task auto: the variable %s is %s%s%s, and should be a number; use --task I/N", name,
                       text ? "'" : "", text ? text : "not set", text ? "'" : "");
}

/* An array of Slurm may begin at any number, and have steps: 5, 7, 9 are tasks 0, 1, 2 of 3. */
static int array_read(const struct cli_command *command, struct found *found)
{
    uint64_t least, most, step = 1, id;
    int status = number_read(command, "SLURM_ARRAY_TASK_ID", &id);
    if (!status)
        status = number_read(command, "SLURM_ARRAY_TASK_COUNT", &found->tasks);
    if (!status)
        status = number_read(command, "SLURM_ARRAY_TASK_MIN", &least);
    if (!status)
        status = number_read(command, "SLURM_ARRAY_TASK_MAX", &most);
    if (!status && variable("SLURM_ARRAY_TASK_STEP"))
        status = number_read(command, "SLURM_ARRAY_TASK_STEP", &step);
    if (status)
        return status;
    if (!step || !found->tasks || id < least || id > most || (id - least) % step || (most - least) % step ||
        (most - least) / step != found->tasks - 1)
        return cli_misused(command,
                           "--task auto: the numbers of this array job are not evenly spaced (SLURM_ARRAY_TASK_MIN "
                           "%" PRIu64 ", _MAX %" PRIu64 ", _COUNT %" PRIu64 "); use --array 0-N, or --task I/N",
                           least, most, found->tasks);
    found->task = (id - least) / step;
    return 0;
}

static int scheduler_read(const struct cli_command *command, enum scheduler scheduler, struct found *found)
{
    const char *count = variables[scheduler].count ? variables[scheduler].count : TASKS_VARIABLE;
    found->there = variable(variables[scheduler].number) != NULL;
    /* The script of a job has SLURM_PROCID, too, and is no step. */
    if (scheduler == SLURM_STEP || scheduler == TORCH)
        found->there = found->there && variable(count);
    if (!found->there)
        return 0;
    if (scheduler == SLURM_ARRAY)
        return array_read(command, found);
    const int status = number_read(command, variables[scheduler].number, &found->task);
    return status ? status : number_read(command, count, &found->tasks);
}

/* How many processes of torchrun together have numbered the processes of this world; 0 if it is not torchrun that did,
 * or an old one, which does not say. */
static uint64_t torchrun_groups(void)
{
    const char *text = variable("TORCHELASTIC_RUN_ID") ? variable("GROUP_WORLD_SIZE") : NULL;
    uint64_t groups;
    return text && decimal_parse(text, strlen(text), &groups) ? groups : 0;
}

/* Leaves out what says nothing beside other variables. */
static void found_reduce(struct found found[SCHEDULERS])
{
    size_t several = 0;
    if (found[OPEN_MPI].there || found[PMI].there)
        found[SLURM_STEP].there = found[AWS_NODES].there = false;
    const uint64_t groups = found[TORCH].there ? torchrun_groups() : 0;
    for (int i = 0; i < TORCH && groups; i++)
        if (i != SLURM_ARRAY && i != AWS_ARRAY && found[i].tasks == groups)
            found[i].there = false;
    for (int i = 0; i < SCHEDULERS; i++)
        several += found[i].there && found[i].tasks > 1;
    for (int i = 0; i < SCHEDULERS && several; i++)
        found[i].there = found[i].there && found[i].tasks > 1;
}

/* Whether this is the main node of a job of AWS Batch, which ends all other nodes when this one ends. */
static bool is_main_node(void)
{
    const char *own = variable(variables[AWS_NODES].number), *main_node = variable("AWS_BATCH_JOB_MAIN_NODE_INDEX");
    return own && main_node && !strcmp(own, main_node);
}

static int environment_read(const struct cli_command *command, struct task_arguments *arguments)
{
    struct found found[SCHEDULERS] = {{false, 0, 0}};
    int chosen = -1, other = -1;
    for (int i = 0; i < SCHEDULERS; i++) {
        /* PMIx does not say how many there are; whoever starts processes with it has other variables, too. */
        const bool needless = i == PMIX && (found[SLURM_STEP].there || found[OPEN_MPI].there || found[PMI].there);
        const int status = needless ? 0 : scheduler_read(command, (enum scheduler)i, &found[i]);
        if (status)
            return status;
    }
    found_reduce(found);
    for (int i = SCHEDULERS - 1; i >= 0; i--) {
        if (found[i].there && chosen >= 0 &&
            (found[i].task != found[chosen].task || found[i].tasks != found[chosen].tasks))
            other = chosen;
        chosen = found[i].there ? i : chosen;
    }
    if (chosen < 0)
        return cli_misused(
            command, "--task auto: no variable has a number for this process (SLURM_ARRAY_TASK_ID, SLURM_PROCID in a "
                     "step of srun, OMPI_COMM_WORLD_RANK, PMI_RANK, PMIX_RANK, JOB_COMPLETION_INDEX, "
                     "AWS_BATCH_JOB_ARRAY_INDEX, AWS_BATCH_JOB_NODE_INDEX, RANK with WORLD_SIZE); use --task I/N");
    if (other >= 0)
        return cli_misused(command,
                           "--task auto: variables disagree: %s say task %" PRIu64 " of %" PRIu64
                           ", and %s say task %" PRIu64 " of %" PRIu64 "; use --task I/N",
                           variables[chosen].both, found[chosen].task, found[chosen].tasks, variables[other].both,
                           found[other].task, found[other].tasks);
    arguments->task = found[chosen].task;
    arguments->tasks = found[chosen].tasks;
    arguments->variables = variables[chosen].both;
    arguments->stays = is_main_node();
    if (!arguments->wait_given)
        arguments->wait_seconds = variables[chosen].apart ? WAIT_APART : WAIT_TOGETHER;
    return 0;
}

int task_arguments_check(const struct cli_command *command, struct task_arguments *arguments)
{
    const char *text = arguments->task_text;
    if (arguments->unit_given && !arguments->unit_bytes)
        return cli_misused(command, "--unit-bytes must be at least 1");
    if (arguments->wait_given && !text)
        return cli_misused(command, "--wait is for one of several tasks: give its number with --task I/N");
    if (arguments->wait_seconds > WAIT_MOST)
        return cli_misused(command, "--wait must be at most %" PRIu64 " seconds; got %" PRIu64, WAIT_MOST,
                           arguments->wait_seconds);
    arguments->given = text || arguments->finish;
    if (!text)
        return 0;
    if (arguments->finish)
        return cli_misused(command, "--finish is for the end of all tasks: leave out --task");
    const char *slash = strchr(text, '/');
    if (!strcmp(text, "auto")) {
        const int status = environment_read(command, arguments);
        if (status)
            return status;
    } else if (!slash || !decimal_parse(text, (size_t)(slash - text), &arguments->task) ||
               !decimal_parse(slash + 1, strlen(slash + 1), &arguments->tasks)) {
        return cli_misused(command, "--task must be I/N, such as 0/8, or auto; got '%s'", text);
    }
    if (!arguments->tasks || arguments->tasks > TASKS_MOST)
        return cli_misused(command, "--task: there can be 1 to %" PRIu64 " tasks; got %" PRIu64, TASKS_MOST,
                           arguments->tasks);
    if (arguments->task >= arguments->tasks)
        return cli_misused(command, "--task: %" PRIu64 " tasks are numbered from 0 to %" PRIu64 "; got %" PRIu64,
                           arguments->tasks, arguments->tasks - 1, arguments->task);
    return 0;
}
