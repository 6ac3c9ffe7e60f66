# SPDX-License-Identifier: MIT
"""kills.py: kill -9 of pack, of train, and of programs that train.

A kill is sent after a random time, or, where the build allows it, in place of a chosen call near the end, when names
change (tests/fault/inject.c).
"""
import json, os, signal, subprocess, sys, time

from rounds import BUILD_DIR, SANITIZED, TOKMAP, TOP, Skip, Wrong

KILLS = 40
LAST_CALLS = 36  # the renames are among them


def python_with_tokmap():
    """The environment in which Python finds this build of the library."""
    library = os.path.join(BUILD_DIR, "lib", "libtokmap.so")
    if SANITIZED:
        raise Skip("Python cannot load a library with sanitizers")
    environment = {**os.environ, "PYTHONPATH": os.path.join(TOP, "src", "python"), "TOKMAP_LIBRARY": library}
    if subprocess.run([sys.executable, "-c", "import tokmap; tokmap.library_path()"], env=environment,
                      stdin=subprocess.DEVNULL, capture_output=True).returncode:
        raise Skip("Python cannot load this build")
    return environment


class Killer:
    """Kills commands of one kind at random moments; it learns how long they take and how many calls they make."""

    def __init__(self, round_):
        self.round, self.seconds, self.calls = round_, None, None
        library = os.path.join(BUILD_DIR, "tests", "inject.so")
        self.library = library if os.path.exists(library) and not SANITIZED else None

    def _start(self, words, environment):
        return subprocess.Popen([TOKMAP, *words], cwd=self.round.folder, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                env={**os.environ, "TMPDIR": self.round.folder, **environment})

    def learn(self, *words):
        """Lets the command end well."""
        environment = {}
        if self.library:
            environment = {"LD_PRELOAD": self.library, "INJECT_KIND": "kill", "INJECT_NUMBER": str(10**9),
                           "INJECT_COUNT": self.round.path(".calls")}
        began = time.monotonic()
        self.round.tokmap(*words, statuses=(0,), environment=environment)
        self.seconds = time.monotonic() - began
        if self.library:
            self.calls = int(self.round.read(".calls"))

    def kill(self, *words):
        """Returns whether the command was killed before it ended."""
        self.round.check_time()
        random = self.round.random
        by_call = self.library and random.random() < 0.7
        environment = {}
        if by_call:
            first = 1 if random.random() < 0.2 else max(1, self.calls - LAST_CALLS)
            environment = {"LD_PRELOAD": self.library, "INJECT_KIND": "kill",
                           "INJECT_NUMBER": str(random.randrange(first, self.calls + 1))}
        process = self._start(words, environment)
        if not by_call:
            time.sleep(random.random() * self.seconds * 1.2)
            process.kill()
        try:
            _, said = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise Wrong(f"{words} did not end within 120 s") from None
        if process.returncode not in (0, -signal.SIGKILL):
            raise Wrong(f"{words}: exit status {process.returncode}: {said[-1500:].decode(errors='replace')}")
        killed = process.returncode == -signal.SIGKILL
        self.round.count("kills" if killed else "kills too late")
        return killed


# ---- pack ----

def _content(round_, name):
    """The content id of a dataset, which depends on its tokens, documents, and mask, and the number of shards."""
    _, out, _ = round_.tokmap("info", "--json", name, statuses=(0,))
    info = json.loads(out)
    return info["shards"][-1]["content"], len(info["shards"])


def pack(round_):
    """A shard that is replaced is the old one or the new one at every moment, alone and in its folder; a first one is
    new or none. The next pack works, and leaves nothing else."""
    random = round_.random
    content, inputs = {}, {}
    os.mkdir(round_.path("whole"))
    os.mkdir(round_.path("f"))
    for name in ("0", "1", "2"):
        text = random.choice("abcdef") * random.randrange(1, random.choice((100, 10000, 1000000)))
        if random.random() < 0.4:  # with a mask
            round_.write(name + ".jsonl", json.dumps({"p": "prompt" + name, "c": text}) + "\n")
            inputs[name] = ["--prompt-field", "p", "--completion-field", "c", name + ".jsonl"]
        else:
            round_.write(name + ".txt", text + name)
            inputs[name] = [name + ".txt"]
        round_.tokmap("pack", "-q", "-o", "whole/" + name, *inputs[name], statuses=(0,))
        content[name] = _content(round_, "whole/" + name)[0]
    round_.write("z.txt", "it sorts first")
    round_.tokmap("pack", "-q", "-o", "f/a", "z.txt", statuses=(0,))
    killer = Killer(round_)
    killer.learn("pack", "-q", "--force", "-o", "f/d", *inputs["2"])
    now = {"2"}  # what the shard may be; it is one of these
    for _ in range(KILLS):
        new = random.choice("012")
        threads = str(random.randrange(1, 4))
        if random.random() < 0.25:
            _first_pack(round_, killer, threads, inputs[new], content[new])
        if killer.kill("pack", "-q", "--force", "--threads", threads, "-o", "f/d", *inputs[new]):
            now = now | {new}
        else:
            now = {new}
        alone, _ = _content(round_, "f/d")
        found = {name for name in now if content[name] == alone}
        if not found:
            raise Wrong(f"the shard is neither the old one nor the new one: {alone}, and not {content}")
        beside, shards = _content(round_, "f")
        if (beside, shards) != (alone, 2):
            raise Wrong(f"in its folder, the shard is {beside} instead of {alone}, one of {shards} shards")
        round_.tokmap("verify", "-q", "f", statuses=(0,))
        round_.count("the new shard" if new in found else "the old shard")
        now = found
        if random.random() < 0.5:
            new = random.choice("012")
            round_.tokmap("pack", "-q", "--force", "-o", "f/d", *inputs[new], statuses=(0,))
            _check_files(round_, "f", {"a.bin", "a.tmx", "d.bin", "d.tmx"}, inputs[new])
            if _content(round_, "f/d")[0] != content[new]:
                raise Wrong("the next pack wrote another shard")
            now = {new}


def _check_files(round_, folder, wanted, inputs):
    found = set(os.listdir(round_.path(folder)))
    if found - {"d.mask"} != wanted or ("d.mask" in found) != (inputs[0] == "--prompt-field"):
        raise Wrong(f"there are other files than {sorted(wanted)} and a mask: {sorted(found)}")


def _first_pack(round_, killer, threads, inputs, content):
    for name in ("d.bin", "d.tmx", "d.mask"):
        if os.path.exists(round_.path("g", name)):
            os.remove(round_.path("g", name))
    os.makedirs(round_.path("g"), exist_ok=True)
    words = ("pack", "-q", "--threads", threads, "-o", "g/d", *inputs)
    killer.kill(*words)
    if not os.path.exists(round_.path("g", "d.tmx")):
        round_.count("no shard of a first pack")
        round_.tokmap(*words, statuses=(0,))  # the same command, without --force
    else:
        round_.count("the shard of a first pack")
    if _content(round_, "g/d")[0] != content:
        raise Wrong("the shard of a first pack is another one")
    round_.tokmap("verify", "-q", "g", statuses=(0,))
    round_.tokmap("pack", "-q", "--force", "-o", "g/d", *inputs, statuses=(0,))
    _check_files(round_, "g", {"d.bin", "d.tmx"}, inputs)


# ---- train ----

ENDINGS = (".json", ".tiktoken", ".specials.json")


def _set_of(round_, prefix):
    return {ending: round_.read(prefix + ending) for ending in ENDINGS if round_.read(prefix + ending) is not None}


def train(round_):
    """The files of a vocabulary are never a mixture of two sets. A set is whole, or a note says how to complete the new
    one; the next train works."""
    random = round_.random
    sets, words = [], []
    for number in range(3):
        text = " ".join("".join(random.choice("abcde") for _ in range(random.randrange(1, 7))) for _ in range(3000))
        round_.write(f"{number}.txt", text)
        words.append(["train-tokenizer", "-q", "--vocab-size", "290", "--threads", str(random.randrange(1, 3)),
                      *(["--special-tokens", f"<|{number}|>"] if random.random() < 0.5 else []), f"{number}.txt"])
        round_.tokmap(*words[-1], "-o", f"whole{number}", statuses=(0,))
        sets.append(_set_of(round_, f"whole{number}"))
    killer = Killer(round_)
    killer.learn(*words[0], "-o", "v")
    now, tried = 0, set()  # the set that is there, and those that killed commands may have put there in part since then
    for _ in range(KILLS):
        first, new = random.random() < 0.25, random.randrange(3)
        if first:
            tried = set()
            for name in os.listdir(round_.folder):
                if name.startswith("v."):
                    os.remove(round_.path(name))
        killer.kill(*words[new], *(() if first else ("--force",)), "-o", "v")
        seen = _set_of(round_, "v")
        whole = seen == sets[new]
        tried.add(new)
        if not any(all(seen[ending] == sets[number].get(ending) for ending in seen)
                   for number in tried | (set() if first else {now})):
            raise Wrong(f"files of several sets: {sorted(seen)}; the old one was {now}, then came {sorted(tried)}")
        noted = os.path.exists(round_.path("v.naming"))
        if not noted and seen not in [{}] * first + [sets[number] for number in tried | (set() if first else {now})]:
            raise Wrong(f"no set is whole, and nothing says how to complete one: {sorted(seen)}")
        round_.count("the new set" if whole else "no set of a first train" if first else
                     "a set, to be completed" if noted else "the old set")
        if not noted and seen:
            now, tried = next(number for number in range(3) if sets[number] == seen), set()
        if first or random.random() < 0.5:
            new = random.randrange(3) if not first else new
            again = ("--force",) if not first or os.path.exists(round_.path("v.json")) else ()
            round_.tokmap(*words[new], *again, "-o", "v", statuses=(0,))
            if _set_of(round_, "v") != sets[new]:
                raise Wrong("the next train wrote another set")
            left = sorted(name for name in os.listdir(round_.folder) if name.startswith("v."))
            if left != sorted("v" + ending for ending in sets[new]):
                raise Wrong(f"files are left: {left}")
            now, tried = new, set()


# ---- programs that train ----

# Delivers rows and writes down, before it goes to the next step, which rows it had and how it would continue.
TRAINER = """
import json, os, sys, tokmap
log, rank, world = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
state = json.load(open(log + ".state")) if os.path.exists(log + ".state") else None
with tokmap.Run("a.run").loader(rank=rank, world=world, threads=rank % 2, framework="dlpack") as loader:
    if state:
        loader.load_state_dict(state)
    rows = []
    for batch in loader:
        rows += [[batch.step, [int(token) for token in row]] for row in batch["inputs"].tolist()]
        if batch.last_in_step:
            with open(log + ".new", "w") as file:
                json.dump({"rows": rows, "state": loader.state_dict()}, file)
            os.rename(log + ".new", log)
            print(batch.step, flush=True)
"""


def consumers(round_):
    """The rows of a program that was killed again and again are those of one that was not."""
    environment, random = python_with_tokmap(), round_.random
    round_.write("text.txt", "".join(chr(random.randrange(97, 123)) for _ in range(random.randrange(3000, 9000))))
    round_.tokmap("pack", "-q", "-o", "d", "text.txt", statuses=(0,))
    batch = random.choice((2, 4, 8))
    round_.write("a.run", f"seq_len {random.choice((8, 16, 31))}\nbatch {batch}\nseed {round_.seed % 1000}\n"
                          f"source web d\npasses {random.randrange(1, 4)}\n")
    world = random.choice((1, 2))
    for rank in range(world):
        words = lambda log: [sys.executable, "-c", TRAINER, log, str(rank), str(world)]
        whole = round_.path(f"whole{rank}")
        ran = subprocess.run(words(whole), cwd=round_.folder, env=environment, capture_output=True, timeout=120)
        if ran.returncode:
            raise Wrong(f"the program that trains failed: {ran.stderr[-1500:].decode(errors='replace')}")
        with open(whole) as file:
            wanted = json.load(file)["rows"]
        rows, part, kills = [], round_.path(f"part{rank}"), 0
        while True:
            process = subprocess.Popen(words(part), cwd=round_.folder, env=environment, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE)
            if kills < 6:
                for _ in range(random.randrange(1, 6)):
                    if not process.stdout.readline():
                        break
                time.sleep(random.random() * 0.002)
                process.kill()
            _, said = process.communicate(timeout=120)
            kills += 1
            round_.count("kills", process.returncode == -signal.SIGKILL)
            if process.returncode not in (0, -signal.SIGKILL):
                raise Wrong(f"after {kills} kills: {said[-1500:].decode(errors='replace')}")
            if os.path.exists(part):  # the last step that was written down
                with open(part) as file:
                    found = json.load(file)
                rows += found["rows"]
                os.remove(part)
                with open(part + ".state", "w") as file:
                    json.dump(found["state"], file)
            if process.returncode == 0:
                break
        if rows != wanted:
            raise Wrong(f"rank {rank} of {world}: {len(rows)} rows after {kills} kills, and {len(wanted)} without")
