"""attacks_here.py: attacks that other tests contain, with a seed and for a time: fuzz harnesses, comparisons with
reference tokenizers, and tests with long versions."""
import glob, os, shlex, subprocess

from rounds import BUILD_DIR, TOP, Skip, Wrong

PART = 20  # seconds of a round of a program that runs for a given time


def _harness(round_, name):
    program = os.path.join(BUILD_DIR, "tests", name)
    if not os.path.exists(program):
        raise Skip(f"{program} is not built")
    corpus = os.path.join(TOP, "tests", "fuzz", "corpus", name)
    seconds = int(max(1, min(PART, round_.seconds_left())))
    round_.run(program, f"-seconds={seconds}", f"-seed={round_.seed}", *([corpus] if os.path.isdir(corpus) else []),
               statuses=(0,), limit=seconds + 300)


def indexes(round_):
    _harness(round_, "fuzz_index")


def readers(round_):
    names = sorted(os.path.basename(path)[:-2] for path in glob.glob(os.path.join(TOP, "tests", "fuzz", "fuzz_*.c")))
    names.remove("fuzz_index")
    _harness(round_, names[round_.seed % len(names)])


def _script(round_, words, limit=900, **environment):
    ran = subprocess.run(words, cwd=TOP, capture_output=True, timeout=limit + round_.seconds_left(),
                         stdin=subprocess.DEVNULL, env={**os.environ, "TMPDIR": round_.folder, **environment})
    said = ran.stdout.decode(errors="replace")
    if ran.returncode == 77:
        raise Skip((said.splitlines() or ["no reason given"])[-1])
    wrong = [line for line in said.splitlines() if line.startswith("not ok")]
    if ran.returncode or wrong:
        raise Wrong(f"{shlex.join(words)}: exit status {ran.returncode}\n" + "\n".join(wrong) + said[-1500:] +
                    ran.stderr[-1500:].decode(errors="replace"))


def references(round_):
    """Random tokenizer.json files, and random strings through every family."""
    scripts = ("reference/run.sh", "reference/test_hf_variants.sh", "reference/test_sp_reference.sh",
               "differential/run.sh")
    seed = str(round_.seed % (1 << 31))
    _script(round_, ["sh", "tests/" + scripts[round_.seed % len(scripts)]], REFERENCE_SEED=seed, DIFFERENTIAL_SEED=seed)


# Tests whose long version environment variables set: the job, as TESTS names it, and the variables. SEED is replaced.
LONG = (
    ("reference/test_train.sh", {"REFERENCE_SEED": "SEED"}),
    ("reference/test_parquet.sh", {"REFERENCE_SEED": "SEED", "PARQUET_FILES": "300"}),
    ("python/run.sh", {"PYTHON_TESTS": "test_handles", "TOKMAP_STORM_ROUNDS": "200"}),
    ("reference/test_warc.sh", {"REFERENCE_SEED": "SEED", "WARC_FILES": "200"}),
)


def long_tests(round_):
    script, variables = LONG[round_.seed % len(LONG)]
    try:
        _script(round_, ["sh", "tests/" + script],
                **{name: value.replace("SEED", str(round_.seed % (1 << 31))) for name, value in variables.items()})
    except Skip as reason:
        print(f"skipped {script} (seed {round_.seed}): {reason}", flush=True)
