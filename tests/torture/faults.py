# SPDX-License-Identifier: MIT
"""faults.py: one call of a command fails, and from outside it looks as if the command had failed or never run.

tests/fault/inject.c makes the call fail. A command that writes ends with the old files or the new ones, whole, and says
why it failed; the next one works.
"""
import json, os, shutil

from rounds import BUILD_DIR, Skip, Wrong


def _prepare(round_):
    library = os.path.join(BUILD_DIR, "tests", "inject.so")
    if os.environ.get("SANITIZE"):
        raise Skip("calls cannot be made to fail in a build with sanitizers")
    if not os.path.exists(library):
        raise Skip(f"{library} is not built")
    random = round_.random
    words = [random.choice(("a", "bc", "the ", "\n", "é", "12 ")) for _ in range(5000)]
    for name, part in (("old.txt", words[:2000]), ("new.txt", words)):
        round_.write(name, "".join(part))
    round_.tokmap("pack", "-q", "-o", "old", "old.txt", statuses=(0,))
    round_.tokmap("pack", "-q", "-o", "new", "new.txt", statuses=(0,))
    round_.tokmap("train-tokenizer", "-q", "--vocab-size", "300", "-o", "v", "new.txt", statuses=(0,))
    round_.write("a.run", "seq_len 32\nbatch 2\nsource web new\npasses 1\n")
    return library


def _environment(round_, library, kind, *words):
    """Which call of a command fails, as inject.c wants it, and its number; the command runs once to count its calls."""
    environment = {"LD_PRELOAD": library, "INJECT_KIND": kind}
    _, wanted, _ = round_.tokmap(*words, statuses=(0,), environment={
        **environment, "INJECT_NUMBER": str(10**9), "INJECT_COUNT": round_.path(".calls")})
    number = 1 + round_.random.randrange(max(1, int(round_.read(".calls"))))
    return {**environment, "INJECT_NUMBER": str(number)}, number, wanted


def _read(round_, prefix):
    return [round_.read(prefix + ending) for ending in (".bin", ".tmx")]


def _content(round_, prefix):
    """The content id of a shard, whose tokens may still have the name that contains the id of its index; None if there
    is no shard. Every byte is checked."""
    if not os.path.exists(round_.path(prefix + ".tmx")):
        return None
    round_.tokmap("verify", "-q", prefix, statuses=(0,))
    _, out, _ = round_.tokmap("info", "--json", prefix, statuses=(0,))
    return json.loads(out)["content"]


def _pack(round_, kind, library, replaced):
    threads = str(1 + round_.random.randrange(3))
    words = ("pack", "-q", "--force", "--threads", threads, "-o", "d", "new.txt")
    environment, number, _ = _environment(round_, library, kind, *words)
    old, new = _content(round_, "old"), _content(round_, "new")
    for name in os.listdir(round_.folder):
        if name.startswith("d."):
            os.remove(round_.path(name))
    for ending in (".bin", ".tmx") if replaced else ():
        shutil.copy(round_.path("old" + ending), round_.path("d" + ending))
    status, _, said = round_.tokmap(*words, environment=environment)
    if status == 0 and _read(round_, "d") != _read(round_, "new"):
        raise Wrong(f"{kind} {number}: pack succeeded, but its shard is not the new one")
    if status and not said.strip():
        raise Wrong(f"{kind} {number}: pack failed without a message")
    left = _content(round_, "d")
    if left not in ((old, new) if replaced else (None, new)):
        raise Wrong(f"{kind} {number}: the shard that is left is neither the old nor the new one: {left}, and not {old} "
                    f"or {new}")
    round_.count("packs that failed" if status else "packs that did not fail")
    round_.tokmap("pack", "-q", "--force", "-o", "d", "new.txt", statuses=(0,))
    if _read(round_, "d") != _read(round_, "new"):
        raise Wrong(f"{kind} {number}: the next pack wrote another shard")


def _fail(round_, kinds):
    library = _prepare(round_)
    for _ in range(25):
        kind = round_.random.choice(kinds)
        chosen = round_.random.randrange(8)
        if chosen < 3:
            _pack(round_, kind, library, chosen > 0)
            continue
        words = (("verify", "new"), ("info", "new"), ("info", "--json", "a.run"), ("audit", "--ranks", "2", "a.run"),
                 ("tokenizer", "v.json"), ("encode", "-t", "v.json", "new.txt"), ("show", "new", "--document", "0"),
                 ("train-tokenizer", "-q", "--force", "--vocab-size", "300", "-o", "w", "new.txt"),
                 ("export", "--force", "-o", "exported", "new"))[round_.random.randrange(9)]
        environment, number, wanted = _environment(round_, library, kind, *words)
        status, got, said = round_.tokmap(*words, environment=environment)
        # Times differ from run to run.
        if status == 0 and words[0] in ("encode", "show") and got != wanted:
            raise Wrong(f"{kind} {number}: {words} succeeded with another output")
        if status and not said.strip():
            raise Wrong(f"{kind} {number}: {words} failed without a message")
        round_.count("commands that failed" if status else "commands that did not fail")


def memory(round_):
    _fail(round_, ("memory",))


def system(round_):
    _fail(round_, ("system", "system", "eintr", "short"))
