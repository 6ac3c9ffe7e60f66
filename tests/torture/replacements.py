# SPDX-License-Identifier: MIT
"""replacements.py: readers in a loop while a shard is replaced again and again: each finds the old shard or the new one,
complete, by its own name and in its folder."""
import json, os, subprocess, sys, threading

from kills import python_with_tokmap
from rounds import Round, Skip, Wrong

TIMES = 50  # replacements in a round

# Opens the dataset again and again, until its standard input ends. Prints how often, and the versions that it saw.
READER = """
import sys, threading, tokmap
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
names, readings, before, changes = sys.argv[1:], 0, None, 0
while not ended.is_set():
    name = names[readings % len(names)]
    with tokmap.Dataset(name) as dataset:
        tokens = [int(token) for token in dataset.tokens(dataset.info.tokens - 2000, 1999)]
    if len(set(tokens)) != 1:
        sys.exit(f"{name}: tokens of several versions: {sorted(set(tokens))}")
    changes += tokens[0] != before
    before = tokens[0]
    readings += 1
print(readings, changes)
"""


def attack(round_):
    """All versions have the same size and number of documents, so that no size gives a mixture away."""
    random = round_.random
    size = random.choice((3000, 30000, 300000))
    content = set()
    for letter in "abc":
        round_.write(letter + ".txt", letter * size)
        round_.tokmap("pack", "-q", "-o", "whole-" + letter, letter + ".txt", statuses=(0,))
        content.add(_content(round_, "whole-" + letter)[0])
    if len(content) != 3:
        raise Wrong("different shards have the same content id")
    os.mkdir(round_.path("f"))
    round_.tokmap("pack", "-q", "-o", "f/first", "a.txt", statuses=(0,))
    round_.tokmap("pack", "-q", "-o", "f/d", "a.txt", statuses=(0,))
    round_.write("m", "tokmap-shards 1\nf/first\nf/d\n")
    errors, ended = [], threading.Event()
    lock = threading.Lock()

    def read(number):
        os.makedirs(round_.path(f"reader{number}"))
        mine = Round(round_.seed + number, round_.path(f"reader{number}"), round_.end, round_.limit)
        readings, changes, before = 0, 0, None
        names = (("f/d", 1), ("f", 2), ("m", 2))
        try:
            while not ended.is_set():
                name, shards = names[readings % len(names)]
                now = _content(mine, os.path.join("..", name))
                if now[0] not in content or now[1] != shards:
                    raise Wrong(f"{name}: {now} is neither the old nor the new shard beside {shards - 1} others")
                if readings % 4 == 3:
                    mine.tokmap("verify", "-q", os.path.join("..", name), statuses=(0,))
                changes += now[0] != before
                before = now[0]
                readings += 1
        except Exception as error:
            with lock:
                errors.append(error)
            ended.set()
        with lock:
            round_.count("readings", readings)
            round_.count("changes seen", changes)

    threads = [threading.Thread(target=read, args=(number,)) for number in (1, 2)]
    python = _python_reader(round_)
    for thread in threads:
        thread.start()
    replaced, letter = 0, "a"
    try:
        while replaced < TIMES and not ended.is_set():
            letter = random.choice([other for other in "abc" if other != letter])
            round_.tokmap("pack", "-q", "--force", "--threads", str(random.randrange(1, 4)), "-o", "f/d",
                          letter + ".txt", statuses=(0,))
            replaced += 1
    finally:
        ended.set()
        for thread in threads:
            thread.join()
        if python:
            out, said = python.communicate()
    round_.count("replacements", replaced)
    if errors:
        raise errors[0]
    if python:
        if python.returncode:
            raise Wrong(f"a reader in Python: exit status {python.returncode}: {said[-1500:].decode(errors='replace')}")
        readings, changes = out.split()
        round_.count("readings in Python", int(readings))
        round_.count("changes seen", int(changes))


def _content(round_, name):
    _, out, _ = round_.tokmap("info", "--json", name, statuses=(0,))
    info = json.loads(out)
    return info["shards"][-1]["content"], len(info["shards"])


def _python_reader(round_):
    try:
        environment = python_with_tokmap()
    except Skip:
        return None
    return subprocess.Popen([sys.executable, "-c", READER, "f/d", "f", "m"], cwd=round_.folder, env=environment,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
