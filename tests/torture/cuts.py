# SPDX-License-Identifier: MIT
"""cuts.py: files that are cut while a loader reads them."""
import os, subprocess, sys

from attacks_here import counted, unit_test
from kills import python_with_tokmap
from rounds import Wrong

CUTTER = """
import os, sys, tokmap
path, at, reading, threads = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
seen = 0
try:
    run = tokmap.Run(data="d", seq_len=64, batch=8, passes=3, reading=reading)
    with run.loader(threads=threads, fields="inputs targets position_ids", framework="dlpack") as loader:
        for batch in loader:
            seen += 1
            if seen == 3:
                os.truncate(path, at)
            if seen == 2000:
                break
except tokmap.errors.class_of("ERROR_TRUNCATED") as error:
    print("truncated", error)
"""


def python(round_):
    """With `reading` pread, a file that is cut is an error of next(), never a signal, and never other tokens."""
    environment, random = python_with_tokmap(), round_.random
    round_.write("text.jsonl", "".join('{"text": "%s"}\n' % ("w" * random.randrange(1, 60)) for _ in range(20000)))
    for ending in (".bin", ".tmx"):
        for threads in (0, 1):
            round_.tokmap("pack", "-q", "--force", "-o", "d", "text.jsonl", statuses=(0,))
            size = os.path.getsize(round_.path("d" + ending))
            ran = subprocess.run([sys.executable, "-c", CUTTER, "d" + ending, str(random.randrange(size)), "pread",
                                  str(threads)], cwd=round_.folder, env=environment, capture_output=True, timeout=300)
            if ran.returncode:
                raise Wrong(f"d{ending} was cut, threads {threads}: exit status {ran.returncode}: "
                            f"{ran.stderr[-1500:].decode(errors='replace')}")
            if ending == ".bin" and not ran.stdout.startswith(b"truncated"):
                raise Wrong(f"d{ending} was cut, threads {threads}, and all of its tokens were delivered")
            round_.count("cuts")


def library(round_):
    """All uses of the library, with pread and mapped; include/tokmap/tokmap.h says how often the latter end by a signal."""
    lines = unit_test(round_, "test_cuts", TOKMAP_TEST_CUTS="100", TOKMAP_TEST_MAPPED="20",
                      TEST_SEED=str(1 + round_.seed % (1 << 31)))
    counted(round_, lines, r"(?P<cuts_with_pread>\d+) cuts with pread, 0 signals")
    counted(round_, lines, r"(?P<cuts_of_a_mapping>\d+) cuts of a mapping, (?P<that_ended_in_SIGBUS>\d+) ended")
