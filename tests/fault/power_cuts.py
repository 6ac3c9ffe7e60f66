# SPDX-License-Identifier: MIT
"""power_cuts.py - cuts the power of `tokmap pack` again and again; the next start must end with the right bytes.

    power_cuts.py computed TOKMAP RECORDER INPUTS CUTS SEED
    power_cuts.py mounted  TOKMAP INPUTS CUTS SEED IMAGE FIRST
    power_cuts.py killed   TOKMAP INPUTS KILLS SEED

`computed` records the calls of a pack that change files (record_calls.c). From the calls before a random one it
computes what storage may hold after a power cut, starts the same command there, and compares all files with those of an
undisturbed pack. The start after the first cut is cut, too, every third time. What may be lost:

  - A change of a name is on storage after an fsync of its folder. Before, it may be missing: either the last changes
    are (as on a file system with a journal), or any of them are. A rename is one change.
  - The bytes of a file are on storage after an fsync of the file. Before, all that was written since may be missing,
    or each page of 4 KiB that was written; the size may be the one of before, with the new pages zero.

Example: create k.tmx.partial (1), write 100 bytes, rename it to k.tmx (2), fsync the folder, power cut. Names 1 and 2
are there, and k.tmx may be empty, which is why the pack syncs the file before it renames it.

`mounted` does the same with a real file system: ext4 in a loop device, which is shut down at random moments as a power
cut does it (FS_IOC_SHUTDOWN without a flush of the log), mounted again, and used on. It takes the cases in turn, from
that with the number FIRST on.

`killed` kills processes instead (SIGKILL) at random moments, up to three times in a row, and then lets the same
commands end. For a reader, a set that is replaced is the old one, the new one, or, while files are renamed, not there
(FORMAT.md).

A state is chosen by SEED and the number of the cut alone.
"""

import fcntl
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import threading
import time

CREATE, WRITE, TRUNCATE, SYNC, RENAME, UNLINK, MAKE_FOLDER, REMOVE_FOLDER = range(1, 9)
PAGE = 4096
SHUTDOWN = 0x8004587D  # FS_IOC_SHUTDOWN
NO_FLUSH = 2

# Words of the commands after "tokmap pack -q --checkpoint-seconds 0.001"; IN is the folder of the inputs. The commands
# of a case run one after the other.
BYTES = ["-t", "bytes", "-o", "k"]
UNITS = BYTES + ["--shard-tokens", "150k", "--unit-bytes", "300k"]
CASES = {
    "one shard": [BYTES + ["--columns", "url", "IN/a.jsonl", "IN/z.jsonl.gz"]],
    "shards": [BYTES + ["--shard-tokens", "300k", "IN/a.jsonl", "IN/b.jsonl"]],
    "split": [BYTES + ["--shard-tokens", "200k", "--split", "train=0.8,val=0.2", "IN/a.jsonl"]],
    "mask": ["-o k --ids-field ids --mask-field m --vocab-size 1000 --no-eod IN/m.jsonl".split()],
    "sealed": [BYTES + ["--seal", "--shard-tokens", "300k", "IN/a.jsonl"]],
    "units": [UNITS + ["IN/a.jsonl", "IN/b.jsonl"]],
    "tasks": [UNITS + ["--task", task, "IN/a.jsonl", "IN/b.jsonl"] for task in ("0/2", "1/2")],
    "staged": [UNITS + ["--dedup", "exact", "IN/a.jsonl", "IN/b.jsonl"]],
    "staged tasks": 3 * [UNITS + ["--dedup", "minhash", "--task", task, "IN/a.jsonl", "IN/b.jsonl"]
                         for task in ("0/2", "1/2")],
    "shuffled": [BYTES + "--shuffle 3 --shuffle-memory 64Ki --shard-tokens 300k IN/a.jsonl IN/b.jsonl".split()],
    "shuffled tasks": 2 * [UNITS + "--shuffle 3 --shuffle-memory 64Ki --split a=0.7,b=0.3 --task".split() +
                           [task, "IN/a.jsonl", "IN/b.jsonl"] for task in ("0/2", "1/2")],
    "shuffled shard": [BYTES + "--shuffle 4 --columns url IN/a.jsonl IN/z.jsonl.gz".split()],
    "replaced": [BYTES + ["--force", "--shard-tokens", "300k", "IN/a.jsonl"]],
    "also": [BYTES + ["--also", "megatron,datatrove,olmo", "--shard-tokens", "300k", "IN/a.jsonl"]],
    "exact": [BYTES + ["--dedup", "exact", "IN/a.jsonl", "IN/b.jsonl"]],
    "replaced list": [BYTES + ["--force", "--dedup", "exact", "IN/a.jsonl", "IN/b.jsonl"]],
    "near": [BYTES + ["--dedup", "minhash", "--shard-tokens", "300k", "IN/a.jsonl", "IN/b.jsonl"]],
    "exact shuffled": [BYTES + "--dedup exact --shuffle 5 --shard-tokens 300k IN/a.jsonl IN/b.jsonl".split()],
}
LATER = 3  # the exit status of a task that waits for a stage of the others
COMPLETE = re.compile("already exists|the set is complete now")
NOT_THERE = "there is no dataset of this name yet, only the unfinished work"


class File:
    def __init__(self, durable=b""):
        self.durable = bytes(durable)
        self.now = bytearray(durable)
        self.pages = set()  # written since the last fsync

    def write(self, at, data):
        if len(self.now) < at:
            self.pages.update(range(len(self.now) // PAGE, at // PAGE + 1))
            self.now.extend(bytes(at - len(self.now)))
        self.now[at:at + len(data)] = data
        self.pages.update(range(at // PAGE, (at + len(data) - 1) // PAGE + 1))

    def resize(self, size):
        del self.now[size:]
        self.write(size, b"") if size > len(self.now) else None

    def sync(self):
        self.durable = bytes(self.now)
        self.pages.clear()

    def after_cut(self, chance):
        """The bytes that storage may hold."""
        if not self.pages and len(self.durable) == len(self.now):
            return self.durable
        kind = chance.randrange(4)
        if kind == 0:
            return self.durable
        if kind == 1:
            return bytes(self.now)
        size = len(self.now) if kind == 2 else chance.choice([len(self.now), len(self.durable)])
        torn = bytearray(self.durable[:size].ljust(size, b"\0"))
        for page in self.pages:
            end = min(size, (page + 1) * PAGE)
            if chance.random() < 0.5 and page * PAGE < end:
                torn[page * PAGE:end] = self.now[page * PAGE:end]
        return bytes(torn)


class Folder:
    def __init__(self):
        self.durable = {}
        self.now = {}


class Storage:
    """A folder of a disk: what is in it, and what a power cut may leave."""

    def __init__(self, path):
        self.inodes = {}
        self.waiting = []  # changes of names: [(folder, name, file, folder, or None), ...]
        self.root = self.scan(path)

    def scan(self, path):
        folder = Folder()
        self.inodes[os.stat(path).st_ino] = folder
        for entry in os.scandir(path):
            if entry.is_dir():
                found = self.scan(entry.path)
            else:
                found = File(open(entry.path, "rb").read())
                self.inodes[entry.stat().st_ino] = found
            folder.now[entry.name] = folder.durable[entry.name] = found
        return folder

    def place(self, path):
        """The folder and the last name of a path; None if it is elsewhere."""
        words = os.path.normpath(path).split("/")
        if path.startswith("/") or words[0] == "..":
            return None
        folder = self.root
        for word in words[:-1]:
            folder = folder.now[word]
        return folder, words[-1]

    def change(self, *changes):
        for folder, name, thing in changes:
            if thing is None:
                folder.now.pop(name, None)
            else:
                folder.now[name] = thing
        self.waiting.append(changes)

    def call(self, kind, inode, at, first, second, data):
        if kind in (WRITE, TRUNCATE, SYNC):
            thing = self.inodes.get(inode)
            if kind == WRITE and thing:
                thing.write(at, data)
            elif kind == TRUNCATE and thing:
                thing.resize(at)
            elif isinstance(thing, File):
                thing.sync()
            elif thing:
                self.names_sync(thing)
            return
        place = self.place(first)
        if place is None:
            self.inodes.pop(inode, None)
        elif kind in (CREATE, MAKE_FOLDER):
            self.inodes[inode] = File() if kind == CREATE else Folder()
            self.change((*place, self.inodes[inode]))
        elif kind in (UNLINK, REMOVE_FOLDER):
            self.change((*place, None))
        else:
            into = self.place(second)
            self.change((*place, None), (*into, place[0].now[place[1]]))

    def names_sync(self, folder):
        rest = []
        for changes in self.waiting:
            if any(change[0] is folder for change in changes):
                self.apply(changes)
            else:
                rest.append(changes)
        self.waiting = rest

    @staticmethod
    def apply(changes, lists=None):
        for folder, name, thing in changes:
            names = folder.durable if lists is None else lists.setdefault(id(folder), dict(folder.durable))
            if thing is None:
                names.pop(name, None)
            else:
                names[name] = thing

    def after_cut(self, path, chance):
        """Writes what storage may hold into a new folder."""
        lists = {}
        border = chance.randrange(len(self.waiting) + 1)
        reaches = chance.choice([lambda i: True, lambda i: False, lambda i: i < border, lambda i: chance.random() < 0.5,
                                 lambda i: i == border, lambda i: i != border])
        for i, changes in enumerate(self.waiting):
            if reaches(i):
                self.apply(changes, lists)
        self.put(self.root, path, lists, chance)

    def put(self, folder, path, lists=None, chance=None):
        """Without `lists`, nothing is lost."""
        os.mkdir(path)
        names = folder.now if lists is None else lists.get(id(folder), folder.durable)
        for name, thing in sorted(names.items()):
            below = os.path.join(path, name)
            if isinstance(thing, Folder):
                self.put(thing, below, lists, chance)
            else:
                with open(below, "wb") as file:
                    file.write(thing.after_cut(chance) if chance else thing.now)


def calls(path):
    """The calls of a log."""
    data = memoryview(open(path, "rb").read())
    at = 0
    while at < len(data):
        kind, inode, offset, first, second, size = struct.unpack_from("<6Q", data, at)
        at += 48
        paths = bytes(data[at:at + first + second])
        at += first + second
        yield kind, inode, offset, os.fsdecode(paths[:first]), os.fsdecode(paths[first:]), data[at:at + size]
        at += size


class Failure(Exception):
    pass


class Packs:
    """Runs the commands of a case in a folder."""

    def __init__(self, tokmap, inputs, recorder=None):
        self.tokmap, self.inputs, self.recorder = tokmap, inputs, recorder

    def words(self, command):
        return [self.tokmap, "pack", "-q", "-j", "2", "--checkpoint-seconds", "0.001"] + [
            word.replace("IN/", self.inputs + "/") for word in command]

    def run(self, case, folder, log=None):
        """Runs all commands. Each ends well, or says that the output is complete."""
        environment = dict(os.environ)
        if self.recorder:
            environment["LD_PRELOAD"] = self.recorder
        if log:
            environment["RECORD_LOG"] = log
        for command in CASES[case]:
            done = subprocess.run(self.words(command), cwd=folder, env=environment, capture_output=True, text=True)
            later = done.returncode == LATER and "--task" in command
            if done.returncode and not later and not (done.returncode == 1 and COMPLETE.search(done.stderr)):
                raise Failure(f"exit status {done.returncode}: {done.stderr.strip()}")

    def begin(self, case, folder):
        os.makedirs(folder, exist_ok=True)
        if case.startswith("replaced"):
            old = BYTES + (["--dedup", "exact"] if "list" in case else ["--shard-tokens", "250k"]) + ["IN/b.jsonl"]
            subprocess.run(self.words(old), cwd=folder, check=True)


def files(folder):
    """All files below a folder, with their bytes."""
    found = {}
    for path, folders, names in os.walk(folder):
        for name in names + [name + "/" for name in folders]:
            whole = os.path.join(path, name)
            found[os.path.relpath(whole, folder)] = b"" if name.endswith("/") else open(whole, "rb").read()
    return found


def compare(wanted, folder, found=None, more_allowed=False):
    found = files(folder) if found is None else found
    missing, more = sorted(set(wanted) - set(found)), sorted(set(found) - set(wanted))
    if missing or (more and not more_allowed):
        raise Failure(f"missing {missing[:4]}, left over {more[:4]}")
    for name, content in wanted.items():
        if found[name] != content:
            raise Failure(f"{name} differs")


def chosen(packs):
    """States that random cuts rarely meet. Prints a line."""
    failures = lock_comes_back(packs) + lock_is_first(packs)
    failures += journal_is_last(packs) + list_is_first(packs) + shuffle_is_over(packs)
    print("not ok" if failures else "ok", "- chosen power cuts")
    return failures


def lock_comes_back(packs):
    """A lock file comes back beside the complete shard."""
    where = "chosen_lock"
    packs.begin("mask", where)
    packs.run("mask", where)
    wanted = files(where)
    open(os.path.join(where, "k.tmx.partial"), "w").close()
    try:
        packs.run("mask", where)
        compare(wanted, where)
    except Failure as wrong:
        print(f"  a lock file comes back beside the complete shard: {wrong}")
        return 1
    return 0


def lock_is_first(packs):
    """Of a shard whose work is saved, and which a second process continues: before the mask and the tokens can get
    their names on storage, the partial index of that process has its own. By it, the next start knows that they are not
    files of the user. The first process is killed just before the mask gets its name."""
    where, log = "chosen_first", os.path.abspath("log_chosen")
    shutil.rmtree(where, ignore_errors=True)
    packs.begin("mask", where)
    storage = Storage(where)
    packs.run("mask", where, log)
    wanted, named, lost = files(where), 0, 0
    for call in calls(log):
        if call[0] == RENAME and call[4] == "k.mask":
            break
        storage.call(*call)
    os.remove(log)
    shutil.rmtree(where)
    storage.put(storage.root, where)
    storage = Storage(where)
    packs.run("mask", where, log)
    for call in calls(log):
        if call[0] == RENAME and call[4] in ("k.mask", "k.bin"):
            named += 1
            lost += storage.root.durable.get("k.tmx.partial") is not storage.root.now["k.tmx.partial"]
        storage.call(*call)
    os.remove(log)
    try:
        compare(wanted, where)
    except Failure as wrong:
        print(f"  a shard that is continued: {wrong}")
        return 1
    if named == 2 and not lost:
        return 0
    print("  the partial index can be lost after the names of the mask and the tokens")
    return 1


def journal_is_last(packs):
    """Of the end of tasks: if the journal is lost, so is the note that files get their names. Else, the next start would
    pack all again."""
    packs.begin("units", "chosen_units")
    storage = Storage("chosen_units")
    packs.run("units", "chosen_units", os.path.abspath("log_chosen"))
    for call in calls("log_chosen"):
        storage.call(*call)
        if call[0] == UNLINK and call[3] == "k.work/journal":
            break
    os.remove("log_chosen")
    if "naming" not in storage.root.durable["k.work"].durable:
        return 0
    print("  the journal can be lost before the note that files get their names")
    return 1


def list_is_first(packs):
    """Of sets without some documents: before the note that the set is ready can reach storage, the list of them has.
    Else, the next start would name the shards, and not make the list again."""
    packs.begin("staged", "chosen_staged")
    storage = Storage("chosen_staged")
    packs.run("staged", "chosen_staged", os.path.abspath("log_chosen"))
    ready = lost = 0
    for call in calls("log_chosen"):
        if call[0] == RENAME and call[4] == "k.work/naming":
            ready += 1
            lost += "k.dropped.partial" not in storage.root.durable
        storage.call(*call)
    os.remove("log_chosen")
    if ready and not lost:
        return 0
    print("  the list of dropped documents can be lost after the note that the set is ready")
    return 1


def shuffle_is_over(packs):
    """Of the end of a shuffle: the power is cut twice, so many calls before the end. Nothing is lost; or the first cut
    brings back chunks whose removal was not on storage. The second process did not make these."""
    failures, where = 0, "chosen_shuffled"
    log = os.path.abspath("log_chosen")

    def cut(case, before, lose=False):
        """Packs, and leaves what storage has. Returns how many removed chunks are back."""
        storage = Storage(where)
        packs.run(case, where, log)
        for call in list(calls(log))[:-before]:
            storage.call(*call)
        os.remove(log)
        removed = [(folder, name) for changes in storage.waiting if lose for folder, name, thing in changes
                   if thing is None and name.startswith("chunks-") and name in folder.durable]
        for folder, name in removed:
            folder.now[name] = folder.durable[name]
        shutil.rmtree(where)
        storage.put(storage.root, where)
        return len(removed)

    def begin(case):
        shutil.rmtree(where, ignore_errors=True)
        packs.begin(case, where)

    def nothing_is_lost(case):
        for before in range(1, 25):
            begin(case)
            cut(case, before)
            cut(case, before)
            packs.run(case, where)
            compare(wanted, where)

    def chunks_come_back(case):
        for before in range(1, 60):
            begin(case)
            if cut(case, before, lose=True):
                break
        else:
            raise Failure("no removal of a chunk could be lost")
        back = where + "_back"
        shutil.rmtree(back, ignore_errors=True)
        os.rename(where, back)
        for before in range(1, 25):
            shutil.rmtree(where, ignore_errors=True)
            shutil.copytree(back, where)
            cut(case, before)
            packs.run(case, where)
            compare(wanted, where)
        shutil.rmtree(back)

    for case, check in (("shuffled shard", nothing_is_lost), ("shuffled", nothing_is_lost),
                        ("shuffled", chunks_come_back)):
        try:
            begin(case)
            packs.run(case, where)
            wanted = files(where)
            check(case)
        except Failure as wrong:
            failures += 1
            print(f"  the end of a shuffle, {case}, {check.__name__}: {wrong}")
        shutil.rmtree(where)
    return failures


def computed(tokmap, recorder, inputs, cuts, seed):
    """Prints a line for each case."""
    packs = Packs(tokmap, inputs, recorder)
    failures = chosen(packs)
    for case in CASES:
        name = case.replace(" ", "_")
        packs.begin(case, f"ref_{name}")
        packs.run(case, f"ref_{name}")
        wanted = files(f"ref_{name}")
        packs.begin(case, f"run_{name}")
        first = Storage(f"run_{name}")
        log = os.path.abspath(f"log_{name}")
        packs.run(case, f"run_{name}", log)
        compare(wanted, f"run_{name}")
        recorded = list(calls(log))
        continued = again = bad = 0
        # The random calls, and among them the very end, in the order of the calls: the storage goes through them once.
        chance = random.Random(f"{seed} {case}")
        at = sorted([len(recorded)] + [cut_choose(recorded, chance) for _ in range(cuts - 1)])
        done = 0
        for number, cut in enumerate(at):
            for call in recorded[done:cut]:
                first.call(*call)
            done = cut
            chance = random.Random(f"{seed} {case} {number}")
            where = f"cut/{name}"
            shutil.rmtree("cut", ignore_errors=True)
            os.mkdir("cut")
            first.after_cut(where, chance)
            state = {path: len(content) for path, content in files(where).items()}
            continued += any(path.endswith("journal") for path in state)
            try:
                if cut == len(recorded):
                    compare(wanted, where, more_allowed=True)
                if number % 3 == 2:  # cut the second start, too
                    second = Storage(where)
                    packs.run(case, where, os.path.abspath("cut/log"))
                    more = list(calls("cut/log"))
                    for call in more[:cut_choose(more, chance)] if more else []:
                        second.call(*call)
                    where += "_again"
                    second.after_cut(where, chance)
                    again += 1
                    state = {path: len(content) for path, content in files(where).items()}
                packs.run(case, where)
                compare(wanted, where)
            except Failure as wrong:
                failures, bad = failures + 1, bad + 1
                print(f"  {case}, seed {seed}, cut {number} at call {cut} of {len(recorded)}: {wrong}")
                print(f"    storage held {state}")
            if bad > 4:
                break
        print("not ok" if bad else "ok", f"- {case}: {len(at)} power cuts, {again} of them followed by another, "
              f"{continued} with a journal")
        shutil.rmtree(f"run_{name}")
        os.remove(log)
    return failures


def cut_choose(recorded, chance):
    """A random call; every second time one near a change of names, of which there are few."""
    names = [i for i, call in enumerate(recorded) if call[0] >= RENAME]
    if names and chance.random() < 0.6:
        return min(len(recorded), chance.choice(names) + chance.randrange(3))
    return chance.randrange(len(recorded) + 1)


class Disk:
    """ext4 in a file."""

    def __init__(self, image):
        self.image, self.path = image, os.path.abspath("disk")
        with open(image, "wb") as file:
            file.truncate(64 << 20)
        subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
        os.makedirs(self.path, exist_ok=True)

    def mount(self):
        subprocess.run(["mount", "-o", "loop,commit=1", self.image, self.path], check=True)

    def unmount(self):
        for _ in range(100):  # a process that was killed may still hold it
            if not subprocess.run(["umount", self.path], stderr=subprocess.DEVNULL).returncode:
                return
            time.sleep(0.05)
        raise Failure("the disk cannot be unmounted")

    def cut(self):
        folder = os.open(self.path, os.O_RDONLY)
        fcntl.ioctl(folder, SHUTDOWN, struct.pack("I", NO_FLUSH))
        os.close(folder)


def mounted_attempt(packs, disk, case, seconds):
    """Packs on the disk until the power is cut. Returns whether it ended before."""
    processes = []
    cut = threading.Timer(seconds, lambda: (disk.cut(), [process.kill() for process in processes]))
    cut.start()
    ended = 0
    for command in CASES[case]:
        processes.append(subprocess.Popen(packs.words(command), cwd=disk.path, stdout=subprocess.DEVNULL,
                                          stderr=subprocess.DEVNULL))
        ended += not processes[-1].wait()
    cut.join()
    return ended == len(CASES[case])


def mounted(tokmap, inputs, cuts, seed, image, first):
    """Prints a line for all cases."""
    packs, disk, chance = Packs(tokmap, inputs), Disk(image), random.Random(seed)
    wanted, seconds, failures, continued, ended = {}, {}, 0, 0, 0
    for number in range(cuts):
        case = list(CASES)[(first + number) % len(CASES)]
        if case not in wanted:
            folder = f"mounted_{number}"
            packs.begin(case, folder)
            begin = time.monotonic()
            packs.run(case, folder)
            seconds[case] = time.monotonic() - begin
            wanted[case] = files(folder)
        disk.mount()
        try:
            packs.begin(case, disk.path)
            os.sync()
            for _ in range(chance.randrange(1, 4)):
                # A pack may take longer on this disk than it took beside it.
                ended += mounted_attempt(packs, disk, case, chance.random() * 2 * seconds[case])
                disk.unmount()
                disk.mount()
                continued += any(path.endswith("journal") for path in files(disk.path))
            packs.run(case, disk.path)
            found = {path: content for path, content in files(disk.path).items() if not path.startswith("lost+found")}
            compare(wanted[case], disk.path, found)
            for path in found:
                if not path.endswith("/"):
                    os.remove(os.path.join(disk.path, path))
        except Failure as wrong:
            failures += 1
            print(f"  {case}, power cut {number} of a disk: {wrong}")
        finally:
            disk.unmount()
        if failures:
            break
    print("not ok" if failures else "ok", f"- {cuts} packs on a disk whose power is cut: {continued} states with a "
          f"journal, {ended} packs that ended before; {', '.join(wanted)}")
    return failures


def reader_finds(packs, folder, contents):
    """A reader finds one of these content ids, and every byte is right; or the set is not there while it is renamed."""
    try:
        found = content_of(packs, folder)
    except Failure as absent:
        if NOT_THERE in str(absent) and "k.work/naming" in files(folder):
            return
        raise
    if found not in contents:
        raise Failure(f"a reader finds {found}, which is neither the old set nor the new one")
    done = subprocess.run([packs.tokmap, "verify", "-q", "k"], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise Failure(f"verify: {done.stderr.strip()}")


def content_of(packs, folder):
    done = subprocess.run([packs.tokmap, "info", "--json", "k"], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise Failure(f"info: {done.stderr.strip()}")
    return [shard["content"] for shard in json.loads(done.stdout)["shards"]]


def kill_once(packs, case, folder, seconds):
    """Runs the commands of a case, one of which is killed after at most `seconds`. Returns whether one was."""
    end = time.monotonic() + seconds
    for command in CASES[case]:
        process = subprocess.Popen(packs.words(command), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                   text=True)
        try:
            _, said = process.communicate(timeout=max(0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return True
        later = process.returncode == LATER and "--task" in command
        if process.returncode and not later and not COMPLETE.search(said):
            raise Failure(f"exit status {process.returncode}: {said.strip()}")
    return False


def killed(tokmap, inputs, kills, seed):
    """Prints a line for each case."""
    packs, failures = Packs(tokmap, inputs), 0
    for case in CASES:
        name = case.replace(" ", "_")
        wanted, contents = {}, []
        packs.begin(case, f"whole_{name}")
        if case.startswith("replaced"):
            contents.append(content_of(packs, f"whole_{name}"))
        begin = time.monotonic()
        packs.run(case, f"whole_{name}")
        seconds = time.monotonic() - begin
        wanted = files(f"whole_{name}")
        if case.startswith("replaced"):
            contents.append(content_of(packs, f"whole_{name}"))
        chance, done, tries, continued, bad = random.Random(f"{seed} {case}"), 0, 0, 0, 0
        while done < -(-kills // len(CASES)) and tries < 10 * kills and bad < 4:
            tries += 1
            shutil.rmtree("kill", ignore_errors=True)
            packs.begin(case, "kill")
            try:
                for _ in range(chance.randrange(1, 4)):
                    done += kill_once(packs, case, "kill", chance.random() * 1.1 * seconds)
                    continued += any(path.startswith("k.work/") for path in files("kill"))
                    if contents:
                        reader_finds(packs, "kill", contents)
                packs.run(case, "kill")
                compare(wanted, "kill")
            except Failure as wrong:
                failures, bad = failures + 1, bad + 1
                print(f"  {case}, seed {seed}, try {tries}: {wrong}")
                shutil.rmtree(f"bad_{name}_{tries}", ignore_errors=True)
                os.rename("kill", f"bad_{name}_{tries}")
        print("not ok" if bad else "ok", f"- {case}: {done} kills in {tries} packs, {continued} with work left")
    return failures


def main():
    kind = sys.argv[1]
    if kind == "killed":
        failures = killed(*sys.argv[2:4], int(sys.argv[4]), sys.argv[5])
    elif kind == "computed":
        failures = computed(*sys.argv[2:5], int(sys.argv[5]), sys.argv[6])
    else:
        failures = mounted(*sys.argv[2:4], int(sys.argv[4]), sys.argv[5], sys.argv[6], int(sys.argv[7]))
    sys.exit(failures != 0)


if __name__ == "__main__":
    main()
