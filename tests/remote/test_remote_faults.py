# SPDX-License-Identifier: MIT
"""Ranks read from a server that fails. Faults that another request survives change nothing. Others may be errors that
name the object. Every row that is delivered is that of the local files.

From the environment: FAULTS (120), RATE (0.3), and what ranks.py names."""
import os
import time
import unittest

from object_server import FINAL, TRANSIENT
from ranks import LOCAL, Ranks

FAULTS = int(os.environ.get("FAULTS", "120"))
RATE = float(os.environ.get("RATE", "0.3"))


class Faults(unittest.TestCase):
    def read(self, faults, kinds):
        """Ranks read until there were so many faults; the caches are emptied when a node's ranks are between laps."""
        ranks = Ranks(self, pause=0, rate=RATE, kinds=kinds, slow=0.3)
        ranks.start()
        laps = [0] * len(ranks.nodes)
        said = time.monotonic()
        while ranks.server.counts()["faults"] < faults and not (LOCAL and ranks.rows > 10000):
            time.sleep(0.1)
            ranks.step()
            for i, node in enumerate(ranks.nodes):
                if max(rank.laps for rank in node.ranks) > laps[i] or ranks.errors and ranks.chance.random() < 0.05:
                    ranks.kill(node.ranks)
                    laps[i] = max(rank.laps for rank in node.ranks)
                    node.wipe()
                    ranks.start(node.ranks)
            if time.monotonic() > said + 30:
                said = time.monotonic()
                print(f"# {ranks.server.counts()['faults']} faults, {ranks.rows} rows, {len(ranks.errors)} errors",
                      flush=True)
        counts = ranks.server.set(rate=0)
        ranks.finish()
        print(f"# {counts['faults']} faults in {counts['requests']} requests, {counts['bytes'] >> 20} MiB; {ranks.rows} "
              f"rows compared; errors: {sorted({line['error'] for line in ranks.errors})}, {len(ranks.errors)} in all")
        if not LOCAL:
            for kind in kinds:
                self.assertTrue(counts["fault " + kind] or faults < 1000, kind)
        return ranks

    def test_faults_that_are_survived(self):
        self.assertEqual(self.read(FAULTS // 2, TRANSIENT).errors, [])

    @unittest.skipUnless("FAULTS" in os.environ, "few faults of the others' kinds are final; set FAULTS to many")
    def test_faults_that_may_be_errors(self):
        self.read(FAULTS // 2, TRANSIENT * 20 + FINAL)

    def test_faults_that_stay_are_errors(self):
        """A rank ends with an error that names the object, and continues when it can. An object that is replaced by the
        same bytes may be read."""
        ranks = Ranks(self, pause=0)
        for kind in () if LOCAL else ("403", "404", "416", "redirect"):
            ranks.kill(ranks.ranks)
            for node in ranks.nodes:
                node.wipe()
            ranks.server.set(rules=[{"path": "/bucket/data/large", "fault": kind}])
            ranks.start(ranks.nodes[0].ranks)
            failed, until = len(ranks.errors), time.monotonic() + 120
            while len(ranks.errors) == failed:
                self.assertLess(time.monotonic(), until, f"no rank fails because of {kind}")
                ranks.step()
                time.sleep(0.02)
            ranks.server.set(rules=[])
            print(f"# {kind}: {ranks.errors[-1]['error']}: {ranks.errors[-1]['text']}")
        ranks.start()
        ranks.finish()


if __name__ == "__main__":
    unittest.main()
