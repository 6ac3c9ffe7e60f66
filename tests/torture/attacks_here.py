# SPDX-License-Identifier: MIT
"""attacks_here.py: attacks that other tests contain, with a seed and for a time: fuzz harnesses, comparisons with
reference tokenizers, and tests with long versions."""
import glob, os, re

from rounds import BUILD_DIR, DATA, SANITIZED, TOP, Skip, Wrong

PART = 10  # seconds of a round of a program that runs for a given time


def _short(round_):
    """A seed for programs whose seeds have 31 bits."""
    return str(round_.seed % (1 << 31))


# ---- fuzz harnesses ----

def _harness_names():
    return sorted(os.path.basename(path)[:-2] for path in glob.glob(os.path.join(TOP, "tests", "fuzz", "fuzz_*.c")))


def _corpus(name):
    corpus = os.path.join(TOP, "tests", "fuzz", "corpus", name)
    return [corpus] if os.path.isdir(corpus) else []


def _harness(round_, name):
    program = os.path.join(BUILD_DIR, "tests", name)
    if not os.path.exists(program):
        raise Skip(f"{program} is not built")
    seconds = int(max(1, min(PART, round_.seconds_left())))
    _, said, _ = round_.run(program, f"-seconds={seconds}", f"-seed={round_.seed}", *_corpus(name), statuses=(0,),
                            limit=seconds + 300)
    made = re.search(rb"replayed (\d+) inputs, made (\d+) more", said)
    if not made or int(made.group(2)) == 0:
        raise Wrong(f"{name} has made no inputs: {said[-500:]!r}")
    round_.count("inputs", int(made.group(2)))


def indexes(round_):
    _harness(round_, "fuzz_index")


def readers(round_):
    names = _harness_names()
    names.remove("fuzz_index")
    _harness(round_, names[round_.seed % len(names)])


def fuzz(round_):
    """The harnesses that `make fuzz` has built: with libFuzzer where there is clang, and with sanitizers. What libFuzzer
    finds is kept in build/fuzz/corpus and used by later rounds, so a seed does not repeat a round; what fails does."""
    built = os.environ.get("FUZZ_BUILD") or os.path.join(BUILD_DIR, "fuzz")
    names = [name for name in _harness_names() if os.path.exists(os.path.join(built, "tests", name))]
    if not names:
        raise Skip(f"no harness is built in {built}; `make fuzz FUZZ_SECONDS=0` builds them there, and the variable "
                   "FUZZ_BUILD names another folder")
    name = names[round_.seed % len(names)]
    program = os.path.join(built, "tests", name)
    seconds = int(max(1, min(PART / 2, round_.seconds_left())))
    _, printed, usage = round_.run(program, "-help=1", statuses=None)
    if b"max_total_time" in printed + usage:
        found = os.path.join(built, "corpus", name)
        os.makedirs(found, exist_ok=True)
        _, _, said = round_.run(program, f"-max_total_time={seconds}", f"-seed={1 + round_.seed % (1 << 31)}",
                                "-rss_limit_mb=1500", "-timeout=20", "-max_len=65536", "-print_final_stats=1",
                                f"-artifact_prefix={round_.folder}/crash-", found, *_corpus(name), statuses=(0,),
                                limit=seconds + 300)
        made = re.search(rb"number_of_executed_units: *(\d+)", said)
    else:
        _, said, _ = round_.run(program, f"-seconds={seconds}", f"-seed={round_.seed}", *_corpus(name), statuses=(0,),
                                limit=seconds + 300)
        made = re.search(rb"made (\d+) more", said)
    if not made:
        raise Wrong(f"{name} does not say how many inputs it has made: {said[-500:]!r}")
    round_.count("inputs", int(made.group(1)))


# ---- comparisons with other programs ----

def hf_strings(round_):
    round_.script("sh", "tests/reference/run.sh", REFERENCE_SEED=_short(round_), REFERENCE_STRINGS="60")


def hf_variants(round_):
    round_.script("sh", "tests/reference/test_hf_variants.sh", REFERENCE_SEED=_short(round_), REFERENCE_FILES="60")
    round_.count("files", 60)


def sentencepiece(round_):
    round_.script("sh", "tests/reference/test_sp_reference.sh", REFERENCE_SEED=_short(round_), REFERENCE_STRINGS="100")


def differential(round_):
    round_.script("sh", "tests/differential/run.sh", DIFFERENTIAL_SEED=_short(round_), DIFFERENTIAL_STRINGS="150")


def train_merges(round_):
    round_.script("sh", "tests/reference/test_train.sh", TRAIN_SEED=_short(round_))


def chat_templates(round_):
    round_.script("sh", "tests/reference/test_chat.sh", REFERENCE_SEED=_short(round_), REFERENCE_CONVERSATIONS="40",
                  TOKMAP_DATA=DATA)


def parquet(round_):
    round_.script("sh", "tests/reference/test_parquet.sh", REFERENCE_SEED=_short(round_), PARQUET_FILES="30")
    round_.count("files", 30)


def parquet_mutations(round_):
    round_.script("sh", "tests/reference/test_parquet_mutations.sh", REFERENCE_SEED=_short(round_), PARQUET_FILES="40")
    round_.count("files", 40)


def warc(round_):
    round_.script("sh", "tests/reference/test_warc.sh", REFERENCE_SEED=_short(round_), WARC_FILES="60")
    round_.count("files", 60)


def foreign(round_):
    round_.script("sh", "tests/reference/test_foreign.sh", REFERENCE_SEED=_short(round_))


def handles(round_):
    round_.script("sh", "tests/python/run.sh", PYTHON_TESTS="test_handles", TOKMAP_STORM_ROUNDS="40")
    round_.count("storms", 40)


# ---- unit tests and scripts with long versions ----

def unit_test(round_, name, **environment):
    program = os.path.join(BUILD_DIR, "tests", name)
    if not os.path.exists(program):
        raise Skip(f"{program} is not built (cmocka is missing)")
    return round_.script(program, CMOCKA_MESSAGE_OUTPUT="TAP", **environment)


def counted(round_, lines, pattern):
    """Adds the numbers of the lines that match: one group per number, whose names are those in the report."""
    matches = [match for match in (re.search(pattern, line) for line in lines) if match]
    if not matches:
        raise Wrong(f"no line matches {pattern!r}, so it is not known what was done: {lines[-5:]}")
    for match in matches:
        for name, number in match.groupdict().items():
            round_.count(name.replace("_", " "), int(number))


def call_kills(round_):
    """The sweep has no choices. Every fourth round does it for all calls, and the others for the last ones."""
    if SANITIZED:
        raise Skip("calls cannot be made to fail in a build with sanitizers")
    lines = round_.script("sh", "tests/fault/test_killed.sh", FAULT_ALL="1" if round_.seed % 4 == 3 else "")
    counted(round_, lines, r"killed at each of (?P<kills>\d+) calls")


def writer_kills(round_):
    lines = unit_test(round_, "test_replaced", REPLACED_SECONDS="2", REPLACED_KILLS="150", TEST_SEED=_short(round_))
    counted(round_, lines, r"(?P<kills>\d+) kills, (?P<kills_between_renames>\d+) of them between")
    counted(round_, lines, r"synced: (?P<readings>\d+) reads, (?P<replacements_seen>\d+) changes")


def values_kills(round_):
    lines = unit_test(round_, "test_values", TOKMAP_VALUES_KILLS="500", TOKMAP_VALUES_SEED=_short(round_))
    counted(round_, lines, r"(?P<datasets>\d+) datasets, (?P<kills>\d+) kills")


def loader_kills(round_):
    lines = unit_test(round_, "test_loader_kills", TEST_KILLS="60", TEST_SEED=_short(round_))
    counted(round_, lines, r"(?P<kills>\d+) consumers were killed")
