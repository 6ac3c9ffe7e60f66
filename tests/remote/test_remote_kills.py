# SPDX-License-Identifier: MIT
"""Ranks and whole nodes are killed again and again while they read from object storage through shared cache folders,
and bytes of the cache are changed while a node is down. Every row is that of the local files, and each comes once.

From the environment: KILLS (6), and what ranks.py names. RANKS_POISON: endings of the cache's files whose bytes are
changed (.bin .mask .zst)."""
import os
import time
import unittest

from ranks import Ranks

KILLS = int(os.environ.get("KILLS", "6"))
POISON = os.environ.get("RANKS_POISON", ".bin .mask .zst").split()


class Kills(unittest.TestCase):
    def test_kills(self):
        ranks = Ranks(self, delay=0.002)
        chance, killed, poisoned, nodes = ranks.chance, 0, 0, 0
        usual = ranks.started()
        while killed < KILLS:
            time.sleep(chance.random() * usual)
            ranks.step()
            if chance.random() < 0.7:
                killed += ranks.kill([chance.choice(ranks.ranks)])
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
        print(f"# {killed} kills, {nodes} of whole nodes; {poisoned} places of caches changed; {ranks.rows} rows "
              f"compared; {ranks.server.counts()['requests']} requests; {sum(rank.laps for rank in ranks.ranks)} passes "
              "of ranks")


if __name__ == "__main__":
    unittest.main()
