# SPDX-License-Identifier: MIT
"""power.py - what a disk may hold if the power fails after any call of a commit that replaces a shard.

    power.py LOG OLD.tmx NEW.tmx

LOG is that of inject.c (INJECT_LOG). The shard is new.*. After a power failure, the files that were synced have their
content; the changes of names since the last sync of the folder have reached the disk each or not, in any combination.
For each call and each combination, a reader as format/shard_commit.h describes it must find a complete shard: the old
index with the old files, or the new one with new files that were synced.
"""

import itertools
import struct
import sys

STREAMS = 5  # the type of the section that an index with a mask has


def index_of(path):
    """The id of an index, and whether it has a mask."""
    data = open(path, "rb").read()
    sections, = struct.unpack_from("<I", data, 20)
    table, = struct.unpack_from("<Q", data, 24)
    types = [struct.unpack_from("<I", data, table + 40 * i)[0] for i in range(sections)]
    return "%016x" % struct.unpack_from("<Q", data, 40)[0], STREAMS in types


def main():
    log, old_path, new_path = sys.argv[1:4]
    ids = {"old": index_of(old_path), "new": index_of(new_path)}
    same = ids["old"] == ids["new"]
    live = {f"new.{end}": ("old", end) for end in ("bin", "tmx", "mask") if end != "mask" or ids["old"][1]}
    disk = dict(live)  # names that are on storage for sure
    waiting = []  # changes of names since: (name, file or None), ...
    synced = {file for file in live.values()}
    checks = 0

    def resolve(names):
        """Fails unless these names are a complete shard."""
        index = names.get("new.tmx")
        assert index and index in synced, "there is no index"
        version = index[0]
        wanted, masked = ids[version]
        for end in ["bin", "mask"] if masked else ["bin"]:
            file = names.get(f"new.{end}") or names.get(f"new.{end}.{wanted}")
            assert file, f"the {version} index has no {end}"
            assert file in synced, f"the {version} index has a {end} that was not synced"
            assert file[0] == version or same, f"the {version} index has the {end} of the other one"

    for line in open(log):
        call, *paths = line.rstrip("\n").split("\t")
        names = [path.rsplit("/", 1)[-1] for path in paths]
        if call == "fsync" and names[0] in live:
            synced.add(live[names[0]])
            continue
        if call == "fsync":
            for change in waiting:
                for name, file in change:
                    disk.pop(name, None)
                    if file:
                        disk[name] = file
            waiting = []
        elif not names[0].startswith("new."):
            continue
        elif call == "create":
            if names[0] in live:
                continue
            live[names[0]] = ("new", names[0].split(".")[1])
            waiting.append([(names[0], live[names[0]])])
        elif call == "unlink":
            live.pop(names[0])
            waiting.append([(names[0], None)])
        else:
            file = live.pop(names[0])
            live[names[1]] = file
            waiting.append([(names[0], None), (names[1], file)])
        assert len(waiting) <= 12, "too many changes of names without a sync"
        for chosen in itertools.product([False, True], repeat=len(waiting)):
            names = dict(disk)
            for change, reached in zip(waiting, chosen):
                for name, file in change if reached else []:
                    names.pop(name, None)
                    if file:
                        names[name] = file
            checks += 1
            try:
                resolve(names)
            except AssertionError as wrong:
                sys.exit(f"after '{line.strip()}': {wrong}: {names}")
    assert live["new.tmx"] == ("new", "tmx") and checks > 20
    print(f"{checks} states of the disk")


main()
