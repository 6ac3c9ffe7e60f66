# SPDX-License-Identifier: MIT
"""torture.py [--seed N] [--seconds S] [--only NAME,...] [--list]: attacks tokmap for some time; `make torture` runs it.

Each attack runs in rounds. Round i of an attack uses the seed N + i and nothing else that changes, so `make torture
SEED=M ONLY=NAME SECONDS=1` repeats the round of seed M. What a failed round left is kept in build/torture/NAME-SEED.

As many rounds run at once as there are processors, of different attacks while there are any. The next one is always of
the attack that has had the least of its share of the time, so each attack has a part of any time, and short ones have
more rounds. No round begins that would end after the time, judging by the earlier ones of its attack; each attack has
one round in any case, and ends after five that failed. Attacks that measure time compare processor time of two
commands, which is hardly disturbed by others.

The last line is "N passed, N failed, N skipped": a round that found nothing wrong is passed, and an attack that cannot
run here is skipped with the reason. Above it, a line for each attack says what its rounds have done.

To add an attack: write a function that takes a Round (rounds.py), raises Wrong for what is wrong and Skip for what
cannot run, and list it in ATTACKS with its share.
"""
import argparse, os, shutil, sys, threading, time, traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import attacks_here, collisions, cuts, faults, json_lines, kills, records, replacements, resumes, terminals, texts
import vocabularies
from rounds import Ended, Round, Skip, Wrong

FAILURES_MOST = 5  # failed rounds, after which an attack ends

# Name, share of the time, what it does. The first rounds begin in this order, so the longest ones come first.
ATTACKS = (
    ("call-kills", 2, attacks_here.call_kills),         # kill -9 in place of each call of a commit, and power failures
    ("hf-variants", 3, attacks_here.hf_variants),       # random tokenizer.json files against Hugging Face tokenizers
    ("hf-strings", 2, attacks_here.hf_strings),         # random strings against Hugging Face tokenizers
    ("sentencepiece", 2, attacks_here.sentencepiece),   # random models against the sentencepiece library
    ("differential", 2, attacks_here.differential),     # random strings through every family
    ("train-merges", 1, attacks_here.train_merges),     # trained vocabularies against Hugging Face's trainer
    ("chat-templates", 1, attacks_here.chat_templates),  # random conversations against transformers
    ("parquet", 2, attacks_here.parquet),               # random Parquet files against pyarrow
    ("parquet-mutations", 3, attacks_here.parquet_mutations),  # damaged Parquet files against pyarrow
    ("warc", 1, attacks_here.warc),                     # random WARC files against warcio
    ("foreign", 1, attacks_here.foreign),               # other projects' token files against their own readers
    ("fuzz", 18, attacks_here.fuzz),                    # the harnesses with libFuzzer and sanitizers, if built
    ("indexes", 3, attacks_here.indexes),               # hostile indexes with right checksums
    ("readers", 4, attacks_here.readers),               # the other readers of files, with mutated bytes
    ("vocabularies", 3, vocabularies.mutated),          # vocabularies whose JSON is mutated as a tree
    ("records", 3, records.mutated),                    # damaged records, Parquet files, ids, and conversations
    ("json-lines", 2, json_lines.against_python),       # lines of JSON against Python's reader
    ("collisions", 3, collisions.attack),               # words, texts, and ids with equal hashes
    ("texts", 3, texts.worst),                          # texts that are slow to split or to merge
    ("terminals", 2, terminals.attack),                 # names and texts that try to act on a terminal
    ("memory", 3, faults.memory),                       # an allocation fails
    ("system", 3, faults.system),                       # a system call fails, is cut short, or is interrupted
    ("pack-kills", 4, kills.pack),                      # kill -9 of pack over an old shard, and of a first pack
    ("resumes", 4, resumes.resumes),                    # pack of every format, interrupted after a document of 4 MB
    ("train-kills", 3, kills.train),                    # kill -9 of train over an old set of files, and of a first one
    ("writer-kills", 2, attacks_here.writer_kills),     # kill -9 of pack.h's writers, with readers at the same time
    ("consumer-kills", 3, kills.consumers),             # kill -9 of programs that train, which resume from their cursor
    ("loader-kills", 2, attacks_here.loader_kills),     # the same with up to 8 ranks in C
    ("values-kills", 1, attacks_here.values_kills),     # writers of values, and those who finish them
    ("replacements", 4, replacements.attack),           # readers in a loop while shards are replaced
    ("cuts", 2, cuts.python),                           # files that are cut while a Python loader reads them
    ("cuts-library", 3, cuts.library),                  # the same for all uses of the library in C
    ("handles", 2, attacks_here.handles),               # Python handles closed while threads use them
)


class Attack:
    def __init__(self, name, share, function):
        self.name, self.share, self.function = name, share, function
        self.used = 0.0      # seconds of ended rounds
        self.longest = None  # seconds of a round
        self.begun = {}      # the time at which each running round began, by its number
        self.next = 0        # the number of the next round
        self.rounds, self.passed, self.failed, self.skipped = 0, 0, 0, None
        self.counts = {}

    def part(self, now):
        """How much of its share the attack has had."""
        return (self.used + sum(now - began for began in self.begun.values())) / self.share


class Torture:
    """Runs rounds until the time is over. One lock guards everything."""

    def __init__(self, given, folder):
        self.given, self.folder, self.lock = given, folder, threading.Lock()
        self.attacks = [Attack(*row) for row in ATTACKS if not given.only or row[0] in given.only]
        self.began = time.monotonic()
        self.end = self.began + given.seconds

    def _choose(self):
        """The attack whose round is next, or None if the time is over."""
        now = time.monotonic()
        ready = [attack for attack in self.attacks if attack.skipped is None and attack.failed < FAILURES_MOST and
                 (not attack.next or (attack.rounds and now + 1.1 * attack.longest <= self.end))]
        # Rounds of one attack run at once only if there is no other attack.
        ready = [attack for attack in ready if not attack.begun] or [attack for attack in ready if attack.rounds]
        return min(ready, key=lambda attack: (attack.next > 0, attack.part(now)), default=None)

    def worker(self):
        while True:
            with self.lock:
                attack = self._choose()
                # A round that runs now may let others of its attack begin when it has ended.
                waits = attack is None and any(not other.rounds and other.begun for other in self.attacks)
                if attack:
                    number, attack.next = attack.next, attack.next + 1
                    attack.begun[number] = time.monotonic()
            if attack:
                self._round(attack, number)
            elif waits and time.monotonic() < self.end:
                time.sleep(0.1)
            else:
                return

    def _round(self, attack, number):
        seed = self.given.seed + number
        place = os.path.join(self.folder, f"{attack.name}-{seed}")
        shutil.rmtree(place, ignore_errors=True)
        os.makedirs(place)
        began = time.monotonic()
        seconds = min(attacks_here.PART, max(1.0, self.end - began))
        # The first round may take long, so that any attack can be repeated with SECONDS=1.
        limit = self.end + max(1.0, 0.03 * self.given.seconds) if number else None
        what, skipped, ended, round_ = None, None, False, Round(seed, place, began + seconds, limit)
        try:
            attack.function(round_)
        except Skip as reason:
            skipped = str(reason)
        except Ended:
            ended = True
        except Wrong as wrong:
            what = str(wrong)
        except Exception:
            what = traceback.format_exc()
        if what is None:
            shutil.rmtree(place, ignore_errors=True)
        with self.lock:
            took = time.monotonic() - attack.begun.pop(number)
            attack.used += took
            attack.longest = max(took, attack.longest or 0)
            attack.rounds += 1
            for name, times in round_.counts.items():
                attack.counts[name] = attack.counts.get(name, 0) + times
            if skipped is not None:
                if attack.skipped is None:
                    print(f"skipped {attack.name}: {skipped}", flush=True)
                attack.skipped = skipped
            elif what is not None:
                attack.failed += 1
                print(f"not ok - {attack.name}, seed {seed}: {what}\n    again: make torture SEED={seed} "
                      f"ONLY={attack.name} SECONDS={attacks_here.PART}; its files: {place}", flush=True)
            elif not ended:
                attack.passed += 1

    def run(self):
        threads = [threading.Thread(target=self.worker) for _ in range(os.cpu_count() or 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for attack in self.attacks:
            done = ", ".join(f"{times} {name}" for name, times in sorted(attack.counts.items()))
            if attack.passed + attack.failed:
                print(f"{'not ok' if attack.failed else 'ok'} - {attack.name}: {attack.passed} rounds passed, "
                      f"{attack.failed} failed, in {attack.used:.0f} s" + (f": {done}" if done else ""))
        failed = sum(attack.failed for attack in self.attacks)
        print(f"in {time.monotonic() - self.began:.0f} s\n{sum(attack.passed for attack in self.attacks)} passed, "
              f"{failed} failed, {sum(attack.skipped is not None for attack in self.attacks)} skipped", flush=True)
        return failed > 0


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
    return Torture(given, folder).run()


if __name__ == "__main__":
    sys.exit(main())
