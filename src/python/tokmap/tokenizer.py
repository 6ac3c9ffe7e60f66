"""Text to token ids and back, with every vocabulary that the command tokmap reads."""
from __future__ import annotations

import os
from array import array
from collections import OrderedDict
from ctypes import addressof, byref, c_char_p, c_uint64, c_void_p, create_string_buffer, sizeof, string_at

from . import _library as c
from . import _tokenize_library as t
from ._library import check
from .errors import ArgumentError, ClosedError, NotFoundError, TokmapError, UnsupportedError

TYPE_CHECKING = False  # as in typing, which importing this package does not import
if TYPE_CHECKING:
    from typing import Any, Iterable

    from .dataset import Dataset


class Tokenizer:
    """An open tokenizer. Any number of threads may use it at the same time; it can be pickled.

    path            a tokenizer.json, a tekken.json, a vocab.bpe beside its encoder.json, a rank file (.tiktoken), a
                    SentencePiece tokenizer.model, a folder that holds one of these, or "bytes"
    special         what becomes of text that reads like a special token: "text" (ordinary text), "recognize" (the
                    token), or "error". It is part of the fingerprint
    pattern, pattern_regex, special_tokens
                    for rank files that are not well known: the name of the pattern that splits text, the pattern
                    itself, and the path of a JSON object that maps the texts of special tokens to ids

    The ids of a text, and the text of ids, are those of the vocabulary's reference: tiktoken, Hugging Face tokenizers,
    or SentencePiece. len(tokenizer) is the number of ids.
    """

    def __init__(self, path: str | os.PathLike[str], *, special: str = "text", pattern: str | None = None,
                 pattern_regex: str | None = None, special_tokens: str | os.PathLike[str] | None = None) -> None:
        self._handle: int | None = None
        self.path = os.fspath(path)
        self._asked = (special, pattern, pattern_regex, None if special_tokens is None else os.fspath(special_tokens))
        self._library = t.library()
        handle, error = c_void_p(), c.Error()
        options = t.TokenizerOptions(
            sizeof(t.TokenizerOptions), c.choice(special, t.SPECIALS, "special"),
            *(None if text is None else c.text_argument(text, name)
              for text, name in zip(self._asked[1:], ("pattern", "pattern_regex", "special_tokens"))))
        check(self._library.tokmap_tokenizer_open(byref(handle), c.text_argument(self.path, "path"), byref(options),
                                                  byref(error)), error)
        self._handle = handle.value
        info = t.TokenizerInfo(sizeof(t.TokenizerInfo))
        check(self._library.tokmap_tokenizer_info(self._handle, byref(info)))
        self._name: str = info.name.decode("utf-8", "replace")
        self._form: str = info.form.decode()
        self._note: str | None = info.note.decode() if info.note else None
        self._vocabulary: int = info.vocabulary
        self._eod: int | None = None if info.eod_id == c.NO_ID else info.eod_id
        self._bos: int | None = None if info.bos_id == c.NO_ID else info.bos_id
        self._fingerprint = bytes(info.fingerprint).hex()

    @classmethod
    def of(cls, dataset: Dataset) -> Tokenizer:
        """The tokenizer that made a dataset: the built-in one, or a file whose path the dataset's indexes record. A path
        that is relative is looked for in the current folder, in the folder of the index, and in the folders above it.
        Raises NotFoundError if no such file has the dataset's fingerprint."""
        return _of_dataset(dataset)

    @property
    def name(self) -> str:
        """A name that people know, such as "gpt2", where the vocabulary is a well-known one; that of its folder or file
        otherwise."""
        return self._name

    @property
    def form(self) -> str:
        """The file format, for example "tokenizer.json"."""
        return self._form

    @property
    def note(self) -> str | None:
        """A sentence that the user should read, such as about an ignored field of the file, or None."""
        return self._note

    @property
    def vocab_size(self) -> int:
        """The number of ids, special tokens included; every id is below it."""
        return self._vocabulary

    @property
    def eod_id(self) -> int | None:
        """The id that ends a document, or None."""
        return self._eod

    @property
    def bos_id(self) -> int | None:
        """The id that begins a document, or None."""
        return self._bos

    @property
    def fingerprint(self) -> str:
        """32 hexadecimal digits that stand for everything that decides ids. Dataset.info.tokenizer is that of the
        tokenizer that made a dataset."""
        return self._fingerprint

    def _open(self) -> int:
        if self._handle is None:
            raise ClosedError(f"the tokenizer {self.path} is closed")
        return self._handle

    def encode(self, text: str | bytes) -> list[int]:
        """The ids of a text. No token is added: a document ends with eod_id only if you append it."""
        handle, error = self._open(), c.Error()
        if isinstance(text, str):
            text = text.encode("utf-8", "surrogatepass")  # the library reports a lone surrogate, with its place
        elif not isinstance(text, bytes):
            raise ArgumentError(f"text is {type(text).__name__}, but it must be str or bytes")
        room = len(text) + 16
        while True:
            ids = array("I", bytes(4 * room))
            encoded = t.Encoded(sizeof(t.Encoded), ids.buffer_info()[0], room)
            status = self._library.tokmap_tokenizer_encode(handle, text, len(text), byref(encoded), byref(error))
            if not status:
                return ids[:encoded.count].tolist()
            if encoded.count <= room:
                check(status, error)
            room = encoded.count

    def decode(self, ids: Iterable[int], *, specials: bool = False, resumed: bool = False) -> str:
        """The text of ids, as the vocabulary's reference decodes them. `ids` may be a list, or an array of NumPy or
        torch.

        specials  special tokens become their names; otherwise they become nothing
        resumed   the ids continue a document, so a space that encoding puts before a document is not expected at their
                  front
        """
        handle, error = self._open(), c.Error()
        some = _ids(ids)
        address = some.buffer_info()[0] if some else None
        room = 8 * len(some) + 64
        while True:
            text = create_string_buffer(room)
            decoded = t.Decoded(sizeof(t.Decoded), addressof(text), room, bool(specials), bool(resumed))
            status = self._library.tokmap_tokenizer_decode(handle, address, len(some), byref(decoded), byref(error))
            if not status:
                return text.raw[:decoded.bytes].decode("utf-8", "replace")
            if decoded.bytes <= room:
                check(status, error)
            room = decoded.bytes

    def id_to_token(self, id: int) -> bytes:
        """The bytes that one id stands for: of a special token its name, of any other token the bytes of text that
        become it, which need not be UTF-8."""
        handle, error = self._open(), c.Error()
        found, count = c_char_p(), c_uint64()
        check(self._library.tokmap_tokenizer_token(handle, c.number(id, "id"), byref(found), byref(count),
                                                   byref(error)), error)
        address = c_void_p.from_buffer(found).value
        return string_at(address, count.value) if address else b""

    def token_to_id(self, token: str | bytes) -> int | None:
        """The id of a token by the bytes or the text that it stands for, the inverse of id_to_token(); None if there is
        no such token. A word in the middle of a text usually begins with its space: " the"."""
        handle, error = self._open(), c.Error()
        found = c_uint64()
        wanted = token.encode("utf-8", "surrogatepass") if isinstance(token, str) else bytes(token)
        status = self._library.tokmap_tokenizer_find(handle, wanted, len(wanted), byref(found), byref(error))
        try:
            check(status, error)
        except NotFoundError:
            return None
        return found.value

    def close(self) -> None:
        """Closes the tokenizer. A second close has no effect."""
        handle, self._handle = self._handle, None
        if handle is not None:
            self._library.tokmap_tokenizer_close(handle)

    def __enter__(self) -> Tokenizer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            self.close()

    def __len__(self) -> int:
        return self._vocabulary

    def __reduce__(self) -> tuple[Any, ...]:
        path = self.path if self.path == "bytes" else os.path.abspath(self.path)
        return (_rebuild, (path, *self._asked))

    def __repr__(self) -> str:
        closed = ", closed" if self._handle is None else ""
        return f"<tokmap.Tokenizer {self._name!r}: {self._vocabulary} ids, {self.path!r}{closed}>"


def _rebuild(path: str, special: str, pattern: str | None, pattern_regex: str | None,
             special_tokens: str | None) -> Tokenizer:
    return Tokenizer(path, special=special, pattern=pattern, pattern_regex=pattern_regex,
                     special_tokens=special_tokens)


def _ids(ids: Any) -> array[int]:
    """Ids of any kind as an array of 32 bits."""
    if hasattr(ids, "tolist"):
        ids = ids.tolist()
    try:
        return array("I", ids)
    except (TypeError, OverflowError):
        raise ArgumentError("ids must be a list of whole numbers from 0 to 4294967295, or an array of one dimension"
                            ) from None


# ---- the tokenizer of a dataset ----

_FOLDERS_ABOVE = 64  # folders above an index in which a path is looked for
_opened: OrderedDict[str, Tokenizer] = OrderedDict()  # by fingerprint: the tokenizers of datasets, the last ones
_OPENED_MOST = 8


def _folders(path: str, index: str) -> list[str]:
    """The folders to which a recorded path may be relative."""
    if os.path.isabs(path):
        return [""]
    folders = ["", os.path.dirname(os.path.abspath(index))]
    while len(folders) < _FOLDERS_ABOVE and os.path.dirname(folders[-1]) != folders[-1]:
        folders.append(os.path.dirname(folders[-1]))
    return folders


def _try(path: str, wanted: str, about: dict[str, Any], special_tokens: str | None) -> Tokenizer | None:
    """The tokenizer of a file if it has a fingerprint, which depends on whether special tokens were recognized."""
    texts = {name: about.get(name) for name in ("pattern", "pattern_regex")}
    for special in ("text", "recognize") if path != "bytes" else ("text",):
        try:
            tokenizer = Tokenizer(path, special=special, special_tokens=special_tokens,
                                  **{name: text for name, text in texts.items() if isinstance(text, str)})
        except (TokmapError, OSError):
            return None
        if tokenizer.fingerprint == wanted:
            return tokenizer
        tokenizer.close()
    return None


def _recorded(dataset: Dataset) -> Iterable[tuple[str, dict[str, Any]]]:
    """For each shard whose index records the path of its tokenizer: the index, and what it says of the tokenizer."""
    import json  # here, because importing this package should not wait for it
    for number in range(min(dataset.info.shards, 64)):
        shard = dataset.shard(number)
        try:
            about = json.loads(shard.about)["tokenizer"]
        except (ValueError, KeyError, TypeError):
            continue
        if isinstance(about, dict) and isinstance(about.get("path"), str):
            yield shard.index_path, about


def _of_dataset(dataset: Dataset) -> Tokenizer:
    wanted = dataset.info.tokenizer
    if not dataset.info.shards:
        raise UnsupportedError(f"the dataset {dataset.name} is synthetic and has no text")
    if wanted in _opened:
        _opened.move_to_end(wanted)
        return _opened[wanted]
    found = _try("bytes", wanted, {}, None)
    recorded = None
    for index, about in () if found else _recorded(dataset):
        recorded = about["path"]
        special = about.get("special_tokens")
        for folder in _folders(recorded, index):
            beside = os.path.join(folder, special) if isinstance(special, str) else None
            found = _try(os.path.join(folder, recorded), wanted, about, beside)
            if found:
                break
        if found:
            break
    if not found:
        raise NotFoundError(
            f"the tokenizer of the dataset {dataset.name} (fingerprint {wanted or 'unknown'}) " +
            (f"was '{recorded}', and no file there has that fingerprint now" if recorded else "is not recorded") +
            ": open it with tokmap.Tokenizer(path), and pass it as tokenizer", status="ERROR_NOT_FOUND")
    _opened[wanted] = found
    while len(_opened) > _OPENED_MOST:
        _opened.popitem(last=False)
    return found
