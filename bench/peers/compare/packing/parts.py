# SPDX-License-Identifier: MIT
"""The libraries of the table `parts`: each does a part of packing in one thread, and its processor time is taken.

    reading     a JSONL file to the number of its documents and the bytes of their texts
    signing     texts to signatures: words, shingles of five of them, 112 hashes, by a library's own functions
    signatures  the same from shingles that are numbers of 64 bits

A request names the part and its file. Imports, and reading what the part does not consist of, are not timed. "about"
says what was called, and "equal" what all systems must agree in.
"""
import os
import sys
import time

sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
os.environ["POLARS_MAX_THREADS"] = "1"

import driver  # noqa: E402
from packing.inputs import texts  # noqa: E402
from packing.packers import version  # noqa: E402

WORDS, BANDS, ROWS = 5, 14, 8


def shingles_of(path):
    """The shingles of each document in a file of them, as arrays."""
    import numpy
    whole, at, found = numpy.fromfile(path, "<u8"), 0, []
    while at < len(whole):
        count = int(whole[at])
        found.append(whole[at + 1:at + 1 + count])
        at += 1 + count
    return found


def duckdb(path):
    import duckdb as it
    with it.connect() as base:
        base.execute("SET threads=1")
        yield f"duckdb {it.__version__}, read_json of the field, SET threads=1"
        yield base.execute("SELECT count(*), sum(strlen(text)) FROM read_json(?, format='newline_delimited', "
                           "columns={text: 'VARCHAR'})", [path]).fetchone()


def polars(path):
    import polars as it
    yield f"polars {it.__version__}, scan_ndjson of the field, POLARS_MAX_THREADS=1"
    yield it.scan_ndjson(path, schema={"text": it.String}).select(
        it.len(), it.col("text").str.len_bytes().sum().alias("bytes")).collect().row(0)


def datatrove_signer():
    from datatrove.pipeline.dedup.minhash import MinhashConfig, MinhashDedupSignature
    return MinhashDedupSignature(os.devnull, MinhashConfig(n_grams=WORDS, num_buckets=BANDS, hashes_per_bucket=ROWS))


def datatrove(path):
    signer, found = datatrove_signer(), list(texts(path, "text"))
    yield f"datatrove {version('datatrove')}, MinhashDedupSignature.get_shingles() and get_signature()"
    for text in found:
        shingles = signer.get_shingles(text)
        if len(shingles):
            signer.get_signature(shingles)
    yield None


def datatrove_signatures(path):
    signer, found = datatrove_signer(), [one.reshape(-1, 1) for one in shingles_of(path)]
    yield f"datatrove {version('datatrove')}, MinhashDedupSignature.get_shingles() and get_signature()"
    yield sum(sum(map(sum, signer.get_signature(shingles))) for shingles in found) % 2**64


def text_dedup(path):
    import numpy
    from text_dedup import minhash as it
    found, most, prime = list(texts(path, "text")), numpy.uint32(2**32 - 1), numpy.uint64(2**61 - 1)
    numbers = [it.RNG.randint(1, prime, size=BANDS * ROWS, dtype=numpy.uint64) for _ in range(2)]
    ranges = [(band * ROWS, (band + 1) * ROWS) for band in range(BANDS)]
    yield f"text-dedup {version('text-dedup')}, minhash.embed_func() with its defaults (64 bits, SHA-1)"
    for number, text in enumerate(found):
        it.embed_func(text, number, num_perm=BANDS * ROWS, ngram_size=WORDS, min_length=WORDS, hashranges=ranges,
                      permutations=numbers, hash_func=it.sha1_hash, dtype=numpy.uint64, max_hash=most,
                      modulo_prime=prime)
    yield None


def rensa(path):
    import numpy
    from rensa import RMinHash
    found = shingles_of(path)
    ends, whole = numpy.cumsum([0, *map(len, found)], dtype="<u8"), numpy.concatenate(found)
    yield f"rensa {version('rensa')}, RMinHash.digest_matrix_from_flat_token_hashes(), 32 bits"
    RMinHash.digest_matrix_from_flat_token_hashes(whole, ends, BANDS * ROWS, 1)
    yield None


SYSTEMS = {one.__name__: one for one in (duckdb, polars, datatrove, datatrove_signatures, text_dedup, rensa)}


def answer(name, path):
    steps = SYSTEMS[name](path)
    about, begun = next(steps), time.process_time()
    return {"equal": next(steps), "seconds": time.process_time() - begun, "about": about}


if __name__ == "__main__":
    driver.answer_requests(answer)
