"""torture.py [--seed N] [--seconds S] [--only NAME,...] [--list]: attacks tokmap for some time; `make torture` runs it.

Each attack gets a share of the time and runs rounds until it is over. Round i uses the seed N + i and nothing else that
changes, so `make torture SEED=M ONLY=NAME SECONDS=1` repeats the round of seed M. What a failed round left is kept in
build/torture/NAME-SEED. The last line is "N passed, N failed, N skipped": a round that found nothing wrong is passed,
and an attack that cannot run here is skipped with the reason.

Attacks that cost their own programs (the harnesses of tests/fuzz, the comparisons with reference tokenizers) are run by
attacks_here.py; the others have a file each. To add one: write a function that takes a Round, raises Wrong for what is
wrong and Skip for what cannot run, and list it in ATTACKS with its share.
"""
import argparse, concurrent.futures, os, shutil, sys, threading, time, traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import attacks_here, faults, json_lines, kills, vocabularies
from rounds import Round, Skip, Wrong

# Name, share of the time, what it does.
ATTACKS = (
    ("indexes", 3, attacks_here.indexes),          # hostile indexes with right checksums
    ("readers", 3, attacks_here.readers),          # the other readers of files, with mutated bytes
    ("vocabularies", 3, vocabularies.mutated),     # vocabularies whose JSON is mutated as a tree
    ("references", 4, attacks_here.references),    # random vocabularies and strings against the reference tokenizers
    ("json-lines", 2, json_lines.against_python),  # lines of JSON against Python's reader
    ("memory", 3, faults.memory),                  # an allocation fails
    ("system", 3, faults.system),                  # a system call fails, is cut short, or is interrupted
    ("pack-kills", 3, kills.pack),                 # kill -9 of pack over an old shard
    ("train-kills", 3, kills.training),            # kill -9 of programs that train, which continue from their cursor
    ("cuts", 2, kills.cuts),                       # files that are cut while a loader reads them
    ("long-tests", 4, attacks_here.long_tests),    # tests whose long versions are set by the environment
)


def attack_run(name, share, function, given, folder):
    """Runs rounds of one attack on all processors for its share of the time. Returns (passed, failed, skipped)."""
    total = sum(share for other, share, _ in ATTACKS if not given.only or other in given.only)
    end = time.monotonic() + given.seconds * share / total
    numbers, lock, counts = iter(range(1 << 40)), threading.Lock(), [0, 0, 0]

    def worker():
        while True:
            with lock:
                number = next(numbers)
            # Each attack runs a round, however little time there is.
            if (number and time.monotonic() >= end) or counts[2]:
                return
            seed = given.seed + number
            place = os.path.join(folder, f"{name}-{seed}")
            shutil.rmtree(place, ignore_errors=True)
            os.makedirs(place)
            what = None
            try:
                function(Round(seed, place, end))
            except Skip as reason:
                shutil.rmtree(place, ignore_errors=True)
                with lock:
                    if not counts[2]:
                        print(f"skipped {name}: {reason}", flush=True)
                    counts[2] = 1
                return
            except Wrong as wrong:
                what = str(wrong)
            except Exception:
                what = traceback.format_exc()
            with lock:
                counts[what is not None] += 1
                if what is not None:
                    print(f"not ok - {name}, seed {seed}: {what}\n    again: make torture SEED={seed} ONLY={name} "
                          f"SECONDS=1; its files: {place}", flush=True)
            if what is None:
                shutil.rmtree(place, ignore_errors=True)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for future in [pool.submit(worker) for _ in range(os.cpu_count() or 1)]:
            future.result()
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--only", type=lambda text: [name for name in text.replace(",", " ").split()], default=[])
    parser.add_argument("--list", action="store_true")
    given = parser.parse_args()
    known = [name for name, _, _ in ATTACKS]
    if given.list:
        print("\n".join(known))
        return 0
    for name in given.only:
        if name not in known:
            parser.error(f"there is no attack '{name}'; there are: {', '.join(known)}")
    folder = os.path.join(os.environ["BUILD_DIR"], "torture")
    os.makedirs(folder, exist_ok=True)
    print(f"seed {given.seed}, {given.seconds:.0f} seconds; again: make torture SEED={given.seed} "
          f"SECONDS={given.seconds:.0f}", flush=True)
    counts = [0, 0, 0]
    for name, share, function in ATTACKS:
        if given.only and name not in given.only:
            continue
        started = time.monotonic()
        found = attack_run(name, share, function, given, folder)
        counts = [count + more for count, more in zip(counts, found)]
        if not found[2]:
            print(f"{'not ok' if found[1] else 'ok'} - {name}: {found[0]} rounds passed, {found[1]} failed, "
                  f"in {time.monotonic() - started:.0f} s", flush=True)
    print(f"{counts[0]} passed, {counts[1]} failed, {counts[2]} skipped")
    return counts[1] > 0


if __name__ == "__main__":
    sys.exit(main())
