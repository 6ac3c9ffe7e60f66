"""kills.py: kill -9 of pack and of programs that train, and files that are cut while a loader reads them."""
import os, signal, subprocess, sys, time

from rounds import BUILD_DIR, TOKMAP, TOP, Skip, Wrong


def _python(round_):
    library = os.path.join(BUILD_DIR, "lib", "libtokmap.so")
    if os.environ.get("SANITIZE"):
        raise Skip("Python cannot load a library with sanitizers")
    environment = {**os.environ, "PYTHONPATH": os.path.join(TOP, "src", "python"), "TOKMAP_LIBRARY": library}
    if subprocess.run([sys.executable, "-c", "import tokmap; tokmap.library_path()"], env=environment,
                      stdin=subprocess.DEVNULL, capture_output=True).returncode:
        raise Skip("Python cannot load this build")
    return environment


def _content(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def pack(round_):
    """After kill -9 at any moment, the shard is the old one, the new one, or none, and the next pack works."""
    random = round_.random
    for name in ("old", "new"):
        round_.write(name + ".txt", random.choice("abcdef") * random.randrange(1000, 3000000) + name)
        round_.tokmap("pack", "-q", "-o", name, name + ".txt", statuses=(0,))
    both = {name: [_content(round_.path(name + ending)) for ending in (".bin", ".tmx")] for name in ("old", "new")}
    started = time.monotonic()
    round_.tokmap("pack", "-q", "-o", "d", "new.txt", statuses=(0,))
    usual = time.monotonic() - started
    round_.tokmap("pack", "-q", "--force", "-o", "d", "old.txt", statuses=(0,))
    for _ in range(20):
        threads = str(random.randrange(1, 4))
        process = subprocess.Popen([TOKMAP, "pack", "-q", "--force", "--threads", threads, "-o", "d", "new.txt"],
                                   cwd=round_.folder, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        time.sleep(random.random() * usual * 1.2)
        process.kill()
        process.communicate()
        if os.path.exists(round_.path("d.tmx")):
            round_.tokmap("verify", "-q", "d", statuses=(0,))
            left = [_content(round_.path("d" + ending)) for ending in (".bin", ".tmx")]
            if left not in both.values():
                raise Wrong("the shard is sound, but neither the old nor the new one")
        round_.tokmap("pack", "-q", "--force", "-o", "d", random.choice(("old", "new")) + ".txt", statuses=(0,))
    found = sorted(name for name in os.listdir(round_.folder) if name.startswith("d."))
    if found != ["d.bin", "d.tmx"]:
        raise Wrong(f"files are left: {found}")


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


def training(round_):
    """The rows of a program that was killed again and again are those of one that was not."""
    import json
    environment, random = _python(round_), round_.random
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


CUTTER = """
import os, sys, tokmap
path, at, reading, threads = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
seen = 0
try:
    run = tokmap.Run("a.run", reading=reading)
    with run.loader(threads=threads, fields="inputs targets position_ids", framework="dlpack") as loader:
        for batch in loader:
            seen += 1
            if seen == 3:
                os.truncate(path, at)
            if seen == 2000:
                break
except tokmap.TokmapError as error:
    print("error", error)
"""


def cuts(round_):
    """With `reading` pread, a file that is cut is an error of next(), never a signal."""
    environment, random = _python(round_), round_.random
    round_.write("text.jsonl", "".join('{"text": "%s"}\n' % ("w" * random.randrange(1, 200)) for _ in range(3000)))
    for ending in (".bin", ".tmx"):
        for threads in (0, 1):
            round_.tokmap("pack", "-q", "--force", "-o", "d", "text.jsonl", statuses=(0,))
            round_.write("a.run", "seq_len 64\nbatch 8\nsource web d\npasses 3\n")
            size = os.path.getsize(round_.path("d" + ending))
            ran = subprocess.run([sys.executable, "-c", CUTTER, "d" + ending, str(random.randrange(size)), "pread",
                                  str(threads)], cwd=round_.folder, env=environment, capture_output=True, timeout=300)
            if ran.returncode:
                raise Wrong(f"d{ending} was cut, threads {threads}: exit status {ran.returncode}: "
                            f"{ran.stderr[-1500:].decode(errors='replace')}")
