#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""collect.py FOLDER SOURCE...: copies the vocabularies in packages and repositories to FOLDER, for census.py.

A SOURCE is an archive (.whl, .zip, .tar.*), a git repository, of which HEAD is read, or a folder. A vocabulary is
recognized by its content. It keeps its path below FOLDER/SOURCE, with the files that belong to it, such as a
tokenizer_config.json. What an earlier source has had is left out, and the vocabulary of a GGUF file is converted.
FOLDER/sources.tsv has the source, the path, and the SHA-256 of each vocabulary. Nothing is downloaded, and no code of a
source is run.
"""
import hashlib
import os
import re
import subprocess
import sys
import tarfile
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gguf_vocabulary import convert  # noqa: E402
from vocabulary_files import GGUF, LARGEST, kind_of, pair_of  # noqa: E402

NAMES = re.compile(r"\.(json|model|spm|txt|bpe|tiktoken|gguf|gz|vocab)$|\.model\.v\w+$|tokenization_\w+\.py$")
COMPANIONS = re.compile(r"^(tokenizer_config|special_tokens_map|added_tokens|generation_config|config)\.json$|"
                        r"^tokenization_\w+\.py$")


def zip_files(path):
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if NAMES.search(info.filename) and info.file_size <= LARGEST:
                yield info.filename, archive.read(info)


def tar_files(path):
    with tarfile.open(path) as archive:
        for info in archive:
            if info.isfile() and NAMES.search(info.name) and info.size <= LARGEST:
                yield info.name, archive.extractfile(info).read()


def git_files(path):
    listed = subprocess.run(["git", "-C", path, "ls-tree", "-r", "-l", "-z", "HEAD"], capture_output=True, check=True)
    for line in listed.stdout.decode(errors="replace").split("\0"):
        about, _, name = line.partition("\t")
        about = about.split()
        # A snapshot may lack large files, whose size git does not know.
        if NAMES.search(name) and about[3].isdigit() and int(about[3]) <= LARGEST:
            read = subprocess.run(["git", "-C", path, "cat-file", "blob", about[2]], capture_output=True)
            if read.returncode == 0:
                yield name, read.stdout


def folder_files(path):
    for folder, _, names in os.walk(path):
        for name in sorted(names):
            whole = os.path.join(folder, name)
            if NAMES.search(name) and os.path.getsize(whole) <= LARGEST:
                with open(whole, "rb") as file:
                    yield os.path.relpath(whole, path), file.read()


def files_of(source):
    if os.path.isfile(source):
        return zip_files(source) if zipfile.is_zipfile(source) else tar_files(source)
    is_git = os.path.exists(os.path.join(source, "HEAD")) or os.path.exists(os.path.join(source, ".git"))
    return git_files(source) if is_git else folder_files(source)


class Collection:
    def __init__(self, folder):
        self.folder, self.known, self.rows = folder, set(), []

    def put(self, source, path, content):
        path = os.path.join(self.folder, source, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)

    def is_new(self, source, path, content, kind):
        digest = hashlib.sha256(content).hexdigest()
        if digest in self.known:
            return False
        self.known.add(digest)
        self.rows.append((source, path, kind, digest))
        return True

    def add_folder(self, source, folder, files):
        """Adds the vocabularies in one folder of a source."""
        found = False
        kinds = {name: kind_of(name, content) for name, content in files.items()}
        for name, kind in kinds.items():
            path, content = os.path.join(folder, name), files[name]
            if kind == GGUF:
                try:
                    made, content = convert(content)
                except ValueError as error:
                    print(f"{source}: {path}: {error}", file=sys.stderr)
                    continue
                path += "." + made
                if self.is_new(source, path, content, "GGUF, converted"):
                    self.put(source, path, content)
            elif kind == "ids":
                merges = pair_of(name, kinds)
                # A pair whose names begin with a name of the vocabulary gets a folder of this name.
                if merges and self.is_new(source, path, content + files[merges], "pair"):
                    own = name.endswith("encoder.json")
                    prefix = name[:-len("encoder.json" if own else "vocab.json")].rstrip("-_.")
                    self.put(source, os.path.join(folder, prefix, "encoder.json" if own else "vocab.json"), content)
                    self.put(source, os.path.join(folder, prefix, "vocab.bpe" if own else "merges.txt"), files[merges])
                    found = True
            elif kind and kind != "merges" and self.is_new(source, path, content, kind):
                self.put(source, path, content)
                found = True
        for name, content in files.items():
            if found and COMPANIONS.search(name):
                self.put(source, os.path.join(folder, name), content)

    def add(self, source):
        name = re.sub(r"(\.whl|\.zip|\.tar\.\w+|/repo(/\.git)?/?)$", "", source.rstrip("/")).rsplit("/", 1)[-1]
        name = re.sub(r"-(py[23\d.]*|cp\d+)-.*", "", name)
        folders = {}
        for path, content in files_of(source):
            folders.setdefault(os.path.dirname(path), {})[os.path.basename(path)] = content
        for folder, files in sorted(folders.items()):
            self.add_folder(name, folder, files)

    def save(self):
        with open(os.path.join(self.folder, "sources.tsv"), "w", encoding="utf-8") as file:
            file.write("source\tpath\tkind\tsha256\n")
            for row in self.rows:
                file.write("\t".join(row) + "\n")


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    collection = Collection(sys.argv[1])
    os.makedirs(sys.argv[1], exist_ok=True)
    for source in sys.argv[2:]:
        before = len(collection.rows)
        collection.add(source)
        print(f"{source}: {len(collection.rows) - before}")
    collection.save()
    print(f"{len(collection.rows)} vocabularies in {sys.argv[1]}")


if __name__ == "__main__":
    main()
