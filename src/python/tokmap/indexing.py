# SPDX-License-Identifier: MIT
"""index(): writes the indexes of other projects' token files."""
from __future__ import annotations

import json
import os
from ctypes import addressof, byref, c_uint8, sizeof

from . import _library as c
from ._library import check, lib
from .records import NamedTuple
from .tokenizer import Tokenizer

TYPE_CHECKING = False  # as in typing, which importing this package does not import
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, Iterator

    from .hints import Path


class Indexed(NamedTuple):
    """What index() did: the indexes that it wrote, and the tokens, documents, and bytes of their files."""
    files: int
    tokens: int
    documents: int
    bytes: int


class _Ends:
    """Asks the caller where the documents of a file end, and hands the library the answer in parts."""

    def __init__(self, ends: Callable[[str, int], Iterable[int] | None]) -> None:
        self.ends = ends
        self.path: bytes | None = None
        self.rest: Iterator[int] | None = None
        self.before = 0

    def fill(self, path: bytes, tokens: int, place: Any, capacity: int) -> int | None:
        """Writes the next ends to `place`. Returns how many, or None if the caller does not know the file."""
        if path != self.path:
            found = self.ends(os.fsdecode(path), tokens)
            self.path, self.before, self.rest = path, 0, None if found is None else iter(found)
        if self.rest is None:
            return None
        used = 0
        while used < capacity:
            end = next(self.rest, None)
            if end is None:
                break
            place[used] = self.before = c.number(end, "an end of a document", self.before, tokens)
            used += 1
        return used


def index(name: Path, *, threads: int = 0, replace: bool = False,
          progress: Callable[[int, int], object] | None = None,
          ends: Callable[[str, int], Iterable[int] | None] | None = None,
          tokenizer: Tokenizer | Path | None = None) -> Indexed:
    """Indexes files of another project, which Dataset(name) opens in place: reads each file once and writes its .tmx
    beside it. The files themselves do not change. With its indexes, a dataset has numbered documents and a full
    identity. Cursors from before differ, because the identity is part of them.

        tokmap.index("raw:train.bin,width=2,eod=50256")

    threads   0: one for each processor that this process may use
    replace   True: an index that exists is written again; the index of a packed shard never is
    progress  called from time to time as progress(done, total), in bytes of tokens; an exception in it stops index()
    ends      called as ends(path, tokens) for each file whose format does not say where its documents end. It returns
              these ends, in tokens, in order, or None if it does not know: then the EOD and BOS of the name tell. The
              iterable is read as the index is written, so it can be a generator.
    tokenizer the tokmap.Tokenizer that made the ids, or its path. The indexes record it, as those of packed shards do:
              then texts can be shown, and data of another tokenizer is not combined with this. An id that it does not
              have is an error

    Ctrl-C interrupts it. An index appears complete or not at all."""
    result, error = c.IndexResult(sizeof(c.IndexResult)), c.Error()
    call = c.LongCall()
    asked = None if ends is None else _Ends(ends)

    def on_ends(_user: object, path: bytes, tokens: int, place: Any, capacity: int, used: Any, _error: object) -> int:
        filled: list[int | None] = []
        if call.guard(lambda: filled.append(asked.fill(path, tokens, place, capacity) if asked else None), tuple):
            return c.INTERRUPTED
        used[0] = filled[0] or 0
        return c.NOT_FOUND if filled[0] is None else 0

    options = c.IndexOptions(
        sizeof(c.IndexOptions), c.number(threads, "threads", 0, 65536), int(bool(replace)),
        c.PROGRESS(lambda _user, done, total: call.guard(progress, lambda: (done, total))),
        c.ENDS() if asked is None else c.ENDS(on_ends), None)
    if tokenizer is not None:
        tokenizer = tokenizer if isinstance(tokenizer, Tokenizer) else Tokenizer(tokenizer)
        fingerprint = (c_uint8 * 16)(*bytes.fromhex(tokenizer.fingerprint))
        options.tokenizer, options.vocabulary = addressof(fingerprint), tokenizer.vocab_size
        options.tokenizer_about = json.dumps(tokenizer._about()).encode()
    text = c.text_argument(os.fspath(name), "name")
    check(call.run(lambda: lib.tokmap_dataset_index(text, byref(options), byref(result), byref(error))), error)
    return Indexed(int(result.files), int(result.tokens), int(result.documents), int(result.bytes))

