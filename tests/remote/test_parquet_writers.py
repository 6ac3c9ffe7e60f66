# SPDX-License-Identifier: MIT
"""A bucket of Parquet files by six writers: `tokmap pack s3://` makes the tokens of their texts, whatever columns are
beside them, and fetches a part of them. Writers that are not installed are skipped by name."""
import importlib.metadata
import os
import random
import subprocess
import tempfile
import unittest

from object_server import ObjectServer

TOKMAP = os.path.join(os.environ["BUILD_DIR"], "bin", "tokmap")
ROWS = 4000


def columns(seed):
    draw = random.Random(seed)
    texts = [" ".join(draw.choices(["alpha", "be", "gämma", "δ"], k=draw.randrange(40))) for _ in range(ROWS)]
    return {"fat": [draw.randbytes(900).hex() for _ in range(ROWS)], "text": texts, "n": list(range(ROWS))}


def write_pyarrow(path, table):
    import pyarrow
    import pyarrow.parquet
    pyarrow.parquet.write_table(pyarrow.table(table), path, row_group_size=700, data_page_version="2.0")


def write_pandas(path, table):
    import pandas
    pandas.DataFrame(table).to_parquet(path, compression="gzip")


def write_polars(path, table):
    import polars
    polars.DataFrame(table).write_parquet(path, row_group_size=900)


def write_duckdb(path, table):
    import duckdb
    import pyarrow
    with duckdb.connect() as connection:
        connection.register("given", pyarrow.table(table))
        connection.execute(f"COPY given TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048)")


def write_fastparquet(path, table):
    import fastparquet
    import pandas
    fastparquet.write(path, pandas.DataFrame(table), row_group_offsets=1000, compression="SNAPPY")


def write_datasets(path, table):
    import datasets
    datasets.Dataset.from_dict(table).to_parquet(path, batch_size=800)


WRITERS = {"pyarrow": write_pyarrow, "pandas": write_pandas, "polars": write_polars, "duckdb": write_duckdb,
           "fastparquet": write_fastparquet, "datasets": write_datasets}


class Bucket(unittest.TestCase):
    def pack(self, folder, *words, **environment):
        out = os.path.join(folder, "packed")
        subprocess.run([TOKMAP, "pack", "-q", "--columns", "n", "-o", out, *words], check=True, capture_output=True,
                       env={**os.environ, **environment})
        with open(out + ".bin", "rb") as file:
            return file.read()

    def test_writers(self):
        for seed, (name, write) in enumerate(WRITERS.items()):
            with self.subTest(name), tempfile.TemporaryDirectory(prefix="a bucket ") as folder:
                path = os.path.join(folder, "bucket", f"{name}.parquet")
                os.mkdir(os.path.dirname(path))
                try:
                    version, table = importlib.metadata.version(name), columns(seed)
                    write(path, table)
                except (ImportError, importlib.metadata.PackageNotFoundError):
                    self.skipTest(f"{name} is not installed")
                with ObjectServer(folder) as server:
                    found = self.pack(folder, "s3://bucket/*.parquet", **server.environment)
                    sent = server.counts()["bytes"]
                ids = memoryview(found).cast("H")
                wanted = [value for text in table["text"] for value in (*text.encode(), 256)]
                self.assertTrue(ids.tolist() == wanted, version)
                self.assertLess(sent, 0.5 * os.path.getsize(path), version)


if __name__ == "__main__":
    unittest.main()
