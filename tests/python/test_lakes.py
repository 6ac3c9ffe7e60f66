# SPDX-License-Identifier: MIT
"""The programs of LAKES.md give the rows that count, of tables that deltalake and pyiceberg write, and of queries. The
files of a table are refused, however they are named: rows that were deleted or replaced are in them."""
import contextlib
import io
import os
import tempfile
import unittest

import tokmap
from support import needs, new_folder
from test_readme import examples

ROWS = {"text": ["keep", "drop me", "old"], "lang": ["en", "en", "en"]}


def run(folder, name):
    """Runs an example here, because its imports take longer than its work."""
    said, before = io.StringIO(), os.getcwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(said):
            exec(compile(examples()[name], name, "exec"), {})
    finally:
        os.chdir(before)
    return said.getvalue()


def texts(name):
    with tokmap.Dataset(name) as ds:
        return sorted(bytes(ids.tolist()[:-1]).decode() for ids in ds), [ds.values(i) for i in range(len(ds))]


class Lakes(unittest.TestCase):
    def setUp(self):
        self.folder = new_folder()
        os.mkdir(os.path.join(self.folder, "lake"))

    def refused(self, kind, *names):
        out = os.path.join(self.folder, "out")
        for name in names:
            with self.assertRaisesRegex(tokmap.TokmapError, f"the folder is a table of {kind}.*table_files=True"):
                tokmap.pack(os.path.join(self.folder, name), out, tokenizer="bytes", on_error="skip")
        return tokmap.pack(os.path.join(self.folder, names[0]), out, tokenizer="bytes", table_files=True).documents

    @needs("deltalake", "pyarrow")
    def test_delta(self):
        import deltalake
        import pyarrow
        name = os.path.join(self.folder, "lake", "reviews")
        deltalake.write_deltalake(name, pyarrow.table(ROWS), partition_by=["lang"])
        table = deltalake.DeltaTable(name)
        table.delete("text = 'drop me'")
        table.update(updates={"text": "'new'"}, predicate="text = 'old'")
        self.assertRegex(run(self.folder, "delta"), r"^2 documents of version 2$")
        self.assertEqual(texts(os.path.join(self.folder, "data", "reviews")), (["keep", "new"], [{"lang": "en"}] * 2))
        more = self.refused("Delta Lake", "lake", "lake/reviews", "lake/reviews/lang=en", "lake/reviews/*/*.parquet")
        self.assertGreater(more, 2)
        with self.assertRaisesRegex(tokmap.ArgumentError, r"a DeltaTable has no rows .*to_pyarrow_table\(\)"):
            tokmap.pack(table, os.path.join(self.folder, "out"), tokenizer="bytes", force=True)

    @needs("pyiceberg.catalog.sql", "pyarrow")
    def test_iceberg(self):
        import pyarrow
        from pyiceberg.catalog.sql import SqlCatalog
        lake = os.path.join(self.folder, "lake")
        catalog = SqlCatalog("lake", uri=f"sqlite:///{lake}/catalog.db", warehouse=f"file://{lake}")
        catalog.create_namespace("shop")
        rows = pyarrow.table(ROWS)
        table = catalog.create_table("shop.reviews", schema=rows.schema)
        table.append(rows)
        table.delete("text == 'drop me'")
        self.assertRegex(run(self.folder, "iceberg"), r"^2 documents of snapshot \d+$")
        self.assertEqual(texts(os.path.join(self.folder, "data", "iceberg")), (["keep", "old"], [{"lang": "en"}] * 2))
        data = os.path.relpath(os.path.join(table.location()[len("file://"):], "data"), self.folder)
        self.assertEqual(self.refused("Iceberg", data, "lake", f"{data}/*.parquet"), 5)
        with self.assertRaisesRegex(tokmap.ArgumentError, r"a DataScan has no rows .*to_arrow\(\)"):
            tokmap.pack(table.scan(), os.path.join(self.folder, "out"), tokenizer="bytes", force=True)

    # ---- queries ----

    def bodies(self):
        """Writes files of Parquet. Returns the texts that the programs are to pack, in their order."""
        import pyarrow
        import pyarrow.parquet
        rows = [["" if i % 10 == 0 else f"file {k} and row {i} of it" for i in range(3000)] for k in range(3)]
        for k, body in enumerate(rows):
            pyarrow.parquet.write_table(pyarrow.table({"body": body, "n": range(3000)}),
                                        os.path.join(self.folder, "lake", f"{k}.parquet"), row_group_size=700)
        return [text for body in rows for text in body if text]

    @needs("duckdb", "pyarrow")
    def test_duckdb(self):
        wanted = self.bodies()
        self.assertEqual(run(self.folder, "duckdb"), "8100 documents\n")
        made = tokmap.pack(wanted, os.path.join(self.folder, "wanted"), tokenizer="bytes", shuffle=7, progress=False)
        with tokmap.Dataset(os.path.join(self.folder, "data", "queried")) as ds:
            self.assertEqual(ds.info.content, made.content)

    @needs("polars", "pyarrow")
    def test_polars(self):
        wanted = self.bodies()
        sets = tokmap.pack(wanted, os.path.join(self.folder, "wanted"), tokenizer="bytes", split="train=90%,val=10%",
                           progress=False).sets
        self.assertEqual(run(self.folder, "polars"), f"{ {name: part.documents for name, part in sets.items()} }\n")
        for name, part in sets.items():
            with tokmap.Dataset(os.path.join(self.folder, "data", f"lazy.{name}")) as ds:
                self.assertEqual(ds.info.content, part.content)

    @needs("ray", "ray.data", "pyarrow")
    def test_ray_data(self):
        import ray
        wanted = self.bodies()
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)  # where its workers are, too
        with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp") as folder:  # sockets have short paths
            ray.init(num_cpus=1, include_dashboard=False, object_store_memory=80 << 20, _temp_dir=folder,
                     log_to_driver=False)
            try:
                self.assertEqual(run(self.folder, "ray_data"), "8100 documents\n")
            finally:
                ray.shutdown()
        with tokmap.Dataset(os.path.join(self.folder, "data", "blocks")) as ds:
            self.assertEqual(ds.info.content, tokmap.pack(wanted, os.path.join(self.folder, "wanted"),
                                                          tokenizer="bytes", progress=False).content)


if __name__ == "__main__":
    unittest.main()
