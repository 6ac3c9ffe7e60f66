"""The alternatives to tokmap in those rows of README's five numbers that tokmap-bench does not compare.

    python bench/peers/alternatives.py --bin DATA.bin --jsonl TEXT.jsonl --tokenizer tokenizer.json --eod 50256

--bin     A file of 16-bit tokens on real storage, such as `tokmap-bench slice --keep` leaves. It is used for two rows:
          random windows of 2049 tokens through np.memmap, after the file was dropped from the page cache, with
          MADV_RANDOM, which is the best setting for this; and the time from the start of a Python process to the first
          batch of a torch DataLoader over np.memmap.
--jsonl   Documents, one per line, with a field "text". The json module reads them, gigatoken encodes them on all
          processors, NumPy inserts --eod after each document and writes the ids to a file, which is synced.

Needs numpy, torch for --bin, and gigatoken and awkward for --jsonl. Prints one line per figure: a median.
"""
import argparse
import json
import mmap
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

SEQ, ROWS = 2048, 8

START = """
import sys
import numpy as np, torch
class Windows(torch.utils.data.Dataset):
    def __init__(self, path): self.tokens = np.memmap(path, np.uint16, "r")
    def __len__(self): return (len(self.tokens) - 1) // {seq}
    def __getitems__(self, rows):
        row = np.stack([self.tokens[i * {seq}:i * {seq} + {seq} + 1] for i in rows]).astype(np.int32)
        return row[:, :-1], row[:, 1:]
loader = torch.utils.data.DataLoader(Windows(sys.argv[1]), batch_size={rows}, shuffle=True,
                                     collate_fn=lambda pair: tuple(map(torch.from_numpy, pair)))
next(iter(loader))
""".format(seq=SEQ, rows=ROWS)


def say(what, values, unit):
    print(f"{what:<72} {statistics.median(values):>10.2f} {unit}   ({min(values):.2f} to {max(values):.2f})",
          flush=True)


def start_ms(path):
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", START, path], check=True)
    return 1e3 * (time.perf_counter() - began)


def cold_mtokens_per_s(path, batches, random):
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    tokens = np.memmap(path, np.uint16, "r")
    tokens._mmap.madvise(mmap.MADV_RANDOM)
    began = time.perf_counter()
    for _ in range(batches):
        rows = random.integers(0, (len(tokens) - 1) // SEQ, ROWS)
        np.stack([tokens[i * SEQ:i * SEQ + SEQ + 1] for i in rows]).astype(np.int32)
    return batches * ROWS * SEQ / (time.perf_counter() - began) / 1e6


def pack_mb_per_s(path, tokenizer, eod, out):
    """Times everything but the imports: opening the vocabulary, parsing JSON, encoding, writing, fsync."""
    import awkward
    import gigatoken

    began, texts_bytes = time.perf_counter(), 0
    encoder = gigatoken.Tokenizer(tokenizer)
    with open(path, "rb") as lines, open(out, "wb") as file:
        while batch := lines.readlines(64 << 20):
            texts = [json.loads(line)["text"].encode() for line in batch]
            texts_bytes += sum(map(len, texts))
            encoded = encoder.encode_batch(texts)
            ends = np.cumsum(awkward.to_numpy(awkward.num(encoded)) + 1)
            ids = np.full(ends[-1], eod, np.uint16)
            place = np.ones(ends[-1], bool)
            place[ends - 1] = False
            ids[place] = awkward.to_numpy(awkward.flatten(encoded))
            ids.tofile(file)
        file.flush()
        os.fsync(file.fileno())
    return texts_bytes / (time.perf_counter() - began) / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin")
    parser.add_argument("--jsonl")
    parser.add_argument("--tokenizer")
    parser.add_argument("--eod", type=int, default=50256)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    if options.bin:
        random = np.random.default_rng(1)
        say("np.memmap, MADV_RANDOM, random windows from storage",
            [cold_mtokens_per_s(options.bin, 200, random) for _ in range(options.repeats)], "M tokens/s")
        start_ms(options.bin)
        say("torch DataLoader over np.memmap, process start to first batch",
            [start_ms(options.bin) for _ in range(options.repeats)], "ms")
    if options.jsonl:
        with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(options.jsonl))) as folder:
            say("gigatoken and a NumPy writer, JSONL to a synced token file",
                [pack_mb_per_s(options.jsonl, options.tokenizer, options.eod, os.path.join(folder, "out.bin"))
                 for _ in range(options.repeats)], "MB/s of text")


main()
