# SPDX-License-Identifier: MIT
"""memory.py: every command, while it gets no memory. test_memory.sh runs it in an empty folder.

Each command runs once without a fault. Then it runs again and again with one allocation refused: the first, the second,
and so on, once alone ("memory") and once with all later ones ("starved"; see inject.c). Each time it must either
succeed with the same output and files, or exit with 1 and a message. An output that lacks something although the exit
status is 0 is the failure that this test looks for: a table without a column, a list without its last lines.

By default a sample of the allocations is refused, the same in each run: about SAMPLE of each command and kind. With
FAULT_MEMORY=all every allocation is (a minute).
"""
import concurrent.futures
import os
import re
import subprocess
import sys

TOKMAP = os.environ["TOKMAP"]
INJECT = os.environ["BUILD_DIR"] + "/tests/inject.so"
SAMPLE = {"memory": 22, "starved": 5} if os.environ.get("FAULT_MEMORY") != "all" else None
# What differs from run to run: times and rates.
UNSTABLE = re.compile(
    rb"^.*\b[0-9.,]+ *(s|ms|us|MB/s|GB/s|docs/s|tokens/s)\b.*$|\"(open_ms|seconds|\w*_per_second|rate)\": *[0-9.e+-]+",
    re.M)

RUN = """seq_len 64
batch 6
seed 3
source a shard
source b other#docs=0..50%
source c shard plan shard.plan
phase 0 a 3 b 1 c 1
phase 5 a 1 b 1 batch 8
steps 12
"""
TRACES = """import tokmap
for rank in range(2):
    with tokmap.Run("train.run").loader(rank=rank, world=2, trace=f"rank{rank}.trace") as loader:
        for batch in loader:
            pass
"""


def cases():
    """Yields the name of each case, its arguments, its standard input, and the files that it writes."""
    for name, arguments, *more in [
        ("help", "--help"),
        ("version", "--version --json"),
        ("completion", "completion bash"),
        ("info of a dataset", "info shard"),
        ("info as JSON", "info shard --json"),
        ("info of a folder", "info folder"),
        ("info of a run", "info train.run"),
        ("info of a run as JSON", "info train.run --json"),
        ("info of a plan", "info shard.plan"),
        ("info --lengths", "info shard --lengths"),
        ("info of a foreign file", "info raw:foreign.bin,width=2,eod=256"),
        ("info of a pattern", "info raw:for*.bin,width=2,eod=256 --json"),
        ("stats", "stats shard --threads 1"),
        ("stats as JSON", "stats shard --threads 1 --json"),
        ("stats --unused", "stats columns --threads 1 --unused -v"),
        ("stats --no-ids", "stats folder --no-ids"),
        ("show of a document", "show columns --document 1"),
        ("show as JSON", "show columns --document 1 --json"),
        ("show of a step", "show train.run --step 3 --ids"),
        ("show --where", "show train.run --source a --document 1 --where"),
        ("verify", "verify folder --threads 1"),
        ("verify of a run", "verify train.run --threads 1 --json"),
        ("audit of a run", "audit train.run --ranks 2 --threads 1"),
        ("audit as JSON", "audit train.run --ranks 2 --threads 1 --json"),
        ("replay", "replay train.run --trace rank0.trace rank1.trace"),
        ("replay with differences", "replay train.run --trace rank0.trace --json"),
        ("order", "order --windows 1000 --count 20"),
        ("order as JSON", "order --windows 1000 --count 20 --json"),
        ("order of a mixture", "order --weights 0.5,0.3,0.2 --count 20"),
        ("order --inverse", "order --windows 1000 --inverse", b"17\n3\n"),
        ("order --stdin", "order --stdin", b"1000 7 0 990 10\n"),
        ("mix", "mix --tokens 1M a=shard:rest other:epochs=3 columns:20%"),
        ("mix as JSON", "mix --tokens 1M a=shard:rest other:epochs=3 columns:20% --json"),
        ("mix -o", "mix --seq-len 64 --batch 4 -o new.run a=shard:epochs=1 other:epochs=3", b"", "new.run"),
        ("tokenizer", "tokenizer --all v.json"),
        ("tokenizer as JSON", "tokenizer --all --json v.json"),
        ("encode", "encode -t v.json --text hello_world"),
        ("encode of records", "encode -t v.tiktoken --pattern gpt2 docs.jsonl"),
        ("decode", "decode -t v.json", b"72 105\n72 280 299\n"),
        ("export", "export --origin --threads 1 columns"),
        ("merge", "merge --json -o new.list shard other", b"", "new.list"),
        ("plan", "plan --json --seq-len 64 -o new.plan shard", b"", "new.plan"),
        ("index", "index --json --threads 1 raw:foreign.bin,width=2,eod=256", b"", "foreign.tmx"),
        ("index --mask", "index --mask mask.bytes --json masked", b"", "masked.tmx", "masked.mask"),
        ("train", "train-tokenizer --threads 1 -q --vocab-size 300 --special-tokens <a>,<b> -o new docs.jsonl", b"",
         "new.json", "new.tiktoken", "new.specials.json"),
        ("pack", "pack --threads 1 --json --columns n --eod -o new docs.jsonl", b"", "new.bin", "new.tmx"),
        ("pack --also", "pack --threads 1 -q --also megatron,olmo --checkpoint-seconds 0 --eod -o new docs.jsonl", b"",
         "new.bin", "new.tmx", "new.idx", "new.npy", "new.csv.gz"),
        ("pack with a list", "pack --threads 1 --on-error skip --skipped-list list -o new bad.jsonl docs.jsonl", b"",
         "new.bin", "new.tmx", "list"),
    ]:
        yield name, arguments.split(), more[0] if more else b"", more[1:]


def tokmap(*arguments):
    subprocess.run([TOKMAP, *arguments], check=True, stdout=subprocess.DEVNULL)


def inputs():
    with open("docs.jsonl", "w") as file:
        for i in range(300):
            file.write('{"text": "document %d \\u00e9 with text", "n": %d, "url": "u%d"}\n' % (i, i % 7, i))
    with open("bad.jsonl", "wb") as file:
        file.write(b'{"text": "right"}\n{"text": 5}\n{"text": "\xff"}\n{"text": "right, too"}\n')
    with open("other.txt", "w") as file:
        file.write("".join("an older text, line %d\n" % i for i in range(400)))
    tokmap("train-tokenizer", "-q", "--vocab-size", "300", "--special-tokens", "<a>,<b>", "-o", "v", "docs.jsonl")
    tokmap("pack", "-q", "--eod", "-o", "shard", "docs.jsonl", "other.txt")
    tokmap("pack", "-q", "--eod", "-o", "other", "--separator", "\\n", "other.txt")
    tokmap("pack", "-q", "--eod", "--columns", "n,url", "-o", "columns", "docs.jsonl")
    tokmap("pack", "-q", "--eod", "-o", "masked", "docs.jsonl")
    tokmap("plan", "-q", "--seq-len", "64", "-o", "shard.plan", "shard")
    os.mkdir("folder")
    for name in "shard", "other":
        for end in ".bin", ".tmx":
            os.link(name + end, "folder/" + name + end)
    with open("shard.bin", "rb") as file, open("foreign.bin", "wb") as copy:
        copy.write(file.read())
    with open("mask.bytes", "wb") as file:
        file.write((b"\0\1\1\1" * os.path.getsize("masked.bin"))[:os.path.getsize("masked.bin") // 2])
    with open("train.run", "w") as file:
        file.write(RUN)
    subprocess.run([sys.executable, "-c", TRACES], check=True, env=dict(
        os.environ, PYTHONPATH=os.environ["TOP"] + "/src/python",
        TOKMAP_LIBRARY=os.environ["BUILD_DIR"] + "/lib/libtokmap.so"))


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


class Case:
    """A command in a folder of its own, beside links to the inputs, so that cases run at once."""

    def __init__(self, name, arguments, standard_input, writes):
        self.name, self.arguments, self.input, self.writes = name, arguments, standard_input, writes
        self.folder = "case " + re.sub(r"\W", "_", name)
        os.mkdir(self.folder)
        self.shared = [name for name in os.listdir(".") if not name.startswith("case ")]
        self.before = {}
        for shared in self.shared:
            if shared in writes:
                self.before[shared] = read(shared)
            else:
                os.symlink("../" + shared, self.folder + "/" + shared)

    def run(self, kind, number):
        for name in self.writes:
            if name in self.before:
                with open(self.folder + "/" + name, "wb") as file:
                    file.write(self.before[name])
            elif os.path.exists(self.folder + "/" + name):
                os.remove(self.folder + "/" + name)
        done = subprocess.run([TOKMAP, *self.arguments], cwd=self.folder, input=self.input, capture_output=True,
                              timeout=120, env=dict(os.environ, INJECT_KIND=kind, INJECT_NUMBER=str(number),
                                                    INJECT_COUNT="count", LD_PRELOAD=INJECT))
        files = {name: read(self.folder + "/" + name) for name in self.writes}
        return done.returncode, UNSTABLE.sub(b"", done.stdout), done.stderr, files

    def problem(self, result):
        status, out, err, files = result
        whole_status, whole_out, whole_err, whole_files = self.whole
        if status not in (0, 1, whole_status):
            return "it crashed" if status < 0 else "exit status %d" % status
        same = status == whole_status and out == whole_out and files == whole_files
        if status == 0 and not same:
            return "it exited with 0, but its output is another"
        if status == 1 and not same and not err.strip():
            return "it failed without a message"
        for name, content in files.items():
            # The list of what is left out is written while the command runs.
            if content not in (None, whole_files[name], self.before.get(name)) and name != "list":
                return name + " is not complete"
        left = [name for name in os.listdir(self.folder) if name.endswith(".partial")]
        if left:
            return "%s was left" % left[0]
        return None

    def sweep(self):
        self.whole = self.run("memory", 10 ** 9)
        if self.whole[0] not in (0, 1) or (self.whole[0] == 1 and "differences" not in self.name):
            return "not ok - %s: without a fault: %s" % (self.name, self.whole)
        count = int(read(self.folder + "/count"))
        problems = []
        tried = 0
        for kind in "memory", "starved":
            for number in range(count, 0, -max(1, count // SAMPLE[kind]) if SAMPLE else -1):
                result = self.run(kind, number)
                tried += 1
                problem = self.problem(result)
                if problem:
                    problems.append("  %s, allocation %d of %d (%s): %s\n    %s" % (
                        self.name, number, count, kind, problem, result[2].decode(errors="replace").strip()[:300]))
                    for name in os.listdir(self.folder):
                        if name.endswith(".partial"):
                            os.remove(self.folder + "/" + name)
        return "\n".join(problems[:4] + ["%s - %s: %d of %d allocations refused" % (
            "not ok" if problems else "ok", self.name, tried, 2 * count)])


def main():
    inputs()
    chosen = sys.argv[1:]
    all_cases = [Case(*case) for case in cases() if not chosen or any(word in case[0] for word in chosen)]
    print("1..%d" % len(all_cases))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for line in pool.map(Case.sweep, all_cases):
            print(line, flush=True)


main()
