# SPDX-License-Identifier: MIT
"""Ranks and whole nodes are killed again and again while they read from object storage through shared cache folders,
and bytes of the cache are changed while a node is down. Every row is that of the local files, and each comes once.

From the environment: KILLS (6), and what ranks.py names. RANKS_POISON: endings of the cache's files whose bytes are
changed (.bin .mask .zst). REMOVE: how often a file of a cache is removed after a rank was killed (0), while the other
ranks of its node run; one that opens it at that moment may end with an error that says so."""
import os
import time
import unittest

from ranks import Ranks

KILLS = int(os.environ.get("KILLS", "6"))
REMOVE = float(os.environ.get("REMOVE", "0"))
POISON = os.environ.get("RANKS_POISON", ".bin .mask .zst").split()


class Kills(unittest.TestCase):
    def test_kills(self):
        ranks = Ranks(self, delay=0.002)
        chance, killed, poisoned, nodes, removed = ranks.chance, 0, 0, 0, 0
        usual = ranks.started()
        while killed < KILLS:
            time.sleep(chance.random() * usual)
            ranks.step()
            if chance.random() < 0.7:
                rank = chance.choice(ranks.ranks)
                killed += ranks.kill([rank])
                files = rank.node.files(".bin", ".mask", ".zst", ".state") if chance.random() < REMOVE else []
                if files:
                    os.remove(chance.choice(files))
                    removed += 1
            else:
                down = [chance.choice(ranks.nodes)] if chance.random() < 0.8 else ranks.nodes
                for node in down:
                    killed += ranks.kill(node.ranks)
                for node in down:
                    nodes += 1
                    if chance.random() < 0.1:
                        node.wipe()
                    elif chance.random() < 0.8:
                        poisoned += node.poison(chance, *POISON)
            ranks.start()
        ranks.finish()
        self.assertEqual(ranks.errors, [])
        print(f"# {killed} kills, {nodes} of whole nodes; {poisoned} places and {removed} files of caches changed; "
              f"{ranks.rows} rows compared; {ranks.server.counts()['requests']} requests; {sum(rank.laps for rank in ranks.ranks)} passes "
              "of ranks")


if __name__ == "__main__":
    unittest.main()
