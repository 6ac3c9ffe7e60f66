# SPDX-License-Identifier: MIT
"""Text to token ids and back, with every vocabulary that the command tokmap reads."""
from __future__ import annotations

import json
import os
from array import array
from collections import OrderedDict
from ctypes import addressof, byref, c_char_p, c_uint64, c_void_p, create_string_buffer, sizeof, string_at

from . import _library as c
from . import _tokenize_library as t
from ._batches import decode, encode
from ._library import check, numpy_or_none, table
from ._memory import find
from .errors import ArgumentError, InputError, TokmapError, error_of

TYPE_CHECKING = False  # as in typing, which importing this package does not import
if TYPE_CHECKING:
    from typing import AbstractSet, Any, Collection, Iterable, Literal, overload

    from ._batches import Encoded
    from .dataset import Dataset
    from .handles import Handle
else:
    def overload(function):
        return function

_ROOM = 1 << 14  # ids of the memory that is kept for encode()
_TYPES = {"I": c.ID_TYPES.index("u32"), "H": c.ID_TYPES.index("u16")}
_WIDE = ("uint32", "int32", "uint64", "int64")  # the types of NumPy that hold every id
_NARROW = ("uint16", *_WIDE)                     # and those that hold the ids of a small vocabulary
#: Memory for calls of encode(), by the code of its array. A call takes one out and puts it back, so neither another
#: thread nor a signal handler that encodes can change ids that have not been copied yet.
_spare: dict[str, list[tuple[array[int], t.Encoded, Any, c.Error, Any]]] = {"I": [], "H": []}
_DTYPES: dict[str, Any] = {}  # NumPy's types for the codes


def path_of(tokenizer: Any) -> str:
    """The path of a vocabulary. A tokenizer of another package is refused with what takes its place."""
    if not hasattr(tokenizer, "__fspath__") and not isinstance(tokenizer, (str, bytes)):
        advice = "pass its file" if not hasattr(tokenizer, "save_pretrained") else \
            'call its save_pretrained("FOLDER"), and pass "FOLDER"'
        raise error_of("ERROR_ARGUMENT", f"tokenizer is {c.of_type(tokenizer)}, but it must be a tokmap.Tokenizer or "
                       f"the path of a vocabulary: {advice}", TypeError)
    return os.fspath(tokenizer)  # type: ignore[no-any-return]


class Tokenizer:
    """An open tokenizer. Any number of threads may use it at the same time, and one may close it meanwhile: calls end as
    usual, later ones raise an ArgumentError. It can be pickled.

    path            a tokenizer.json, a tekken.json, a vocab.bpe beside its encoder.json, a rank file (.tiktoken), a
                    SentencePiece .model, BERT's vocab.txt, CLIP's bpe_simple_vocab_16e6.txt.gz, RWKV's vocabulary, a
                    model's folder, whose tokenizer_config.json and other files name the tokens that end and begin
                    documents, or "bytes"
    special         what becomes of text that reads like a special token: "text" (ordinary text), "recognize" (the
                    token), or "error". It is part of the fingerprint
    pattern, pattern_regex, special_tokens
                    for rank files that are not well known: the name of the pattern that splits text, the pattern
                    itself, and the path of a JSON object that maps the texts of special tokens to ids
    cut_as          "kimi", "llama3", or "llama4": long texts are cut before they are encoded, as the code of this model
                    does; it is part of the fingerprint. None: each text is encoded as a whole
    lower_case      for a vocab.txt without a tokenizer_config.json, which needs it: whether text is made lower case and
                    loses its accents. None for every other vocabulary
    cache           has no effect

    The ids of a text, and the text of ids, are those of the vocabulary's reference: tiktoken, Hugging Face tokenizers,
    or SentencePiece. len(tokenizer) is the number of ids.
    """

    def __init__(self, path: str | os.PathLike[str], *, special: str = "text", pattern: str | None = None,
                 pattern_regex: str | None = None, special_tokens: str | os.PathLike[str] | None = None,
                 cache: bool = False, cut_as: str | None = None, lower_case: bool | None = None) -> None:
        self._handle: Handle | None = None
        self._shared: dict[str, Handle] = {}  # by policy for special tokens: handles that share the vocabulary
        self._tokens: dict[str, tuple[int, bool]] | None = None
        self.path = path_of(path)
        self._asked = (special, pattern, pattern_regex, None if special_tokens is None else os.fspath(special_tokens),
                       cut_as, None if lower_case is None else "yes" if lower_case else "no")
        loaded = t.library()
        self._library, handle, error = loaded.calls, loaded.tokenizer(), c.Error()
        options = t.TokenizerOptions(
            sizeof(t.TokenizerOptions), c.choice(special, t.SPECIALS, "special"),
            *(None if text is None else c.text_argument(text, name)
              for text, name in zip(self._asked[1:4], ("pattern", "pattern_regex", "special_tokens"))),
            0, None if cut_as is None else c.text_argument(cut_as, "cut_as"),
            None if lower_case is None else b"yes" if lower_case else b"no")
        check(self._library.tokmap_tokenizer_open(byref(handle), c.text_argument(self.path, "path"), byref(options),
                                                  byref(error)), error)
        info = t.TokenizerInfo(sizeof(t.TokenizerInfo))
        check(self._library.tokmap_tokenizer_info(handle, byref(info)))
        self._name: str = info.name.decode("utf-8", "replace")
        self._form: str = info.form.decode()
        self._note: str | None = info.note.decode() if info.note else None
        self._vocabulary: int = info.vocabulary
        self._eod: int | None = None if info.eod_id == c.NO_ID else info.eod_id
        self._bos: int | None = None if info.bos_id == c.NO_ID else info.bos_id
        self._added_count: int = info.added
        self._fingerprint = bytes(info.fingerprint).hex()
        self._handle = handle

    @classmethod
    def of(cls, dataset: Dataset) -> Tokenizer:
        """The tokenizer that made a dataset: the built-in one, or a file whose path the dataset's indexes record. A path
        that is relative is looked for in the current folder, in the folder of the index, and in the folders above it.
        It is a FileNotFoundError if no such file has the dataset's fingerprint."""
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
        """What the user should read, such as about an ignored field of the file, or files of a folder that contradict
        each other; or None."""
        return self._note

    def _about(self) -> dict[str, str | None]:
        """What an index records of this tokenizer, by which commands and Tokenizer.of() find it again."""
        special, pattern, regex, specials, cut_as, _ = self._asked
        return {"name": self._name, "fingerprint": self._fingerprint,
                "special": "recognise" if special == "recognize" else "text",  # kept spelling
                "pattern": pattern, "pattern_regex": regex, "special_tokens": specials,
                **({} if cut_as is None else {"cut_as": cut_as}), "path": None if self.path == "bytes" else self.path}

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

    def _open(self) -> Handle:
        handle = self._handle  # read once: another thread may close the tokenizer
        if handle is None:
            raise ArgumentError(f"the tokenizer {self.path} is closed")
        return handle

    def _with(self, special: str) -> Handle:
        """The handle of this vocabulary with another policy for special tokens."""
        handle = self._open()
        if special == self._asked[0] or self.path == "bytes":
            return handle
        shared = self._shared
        found = shared.get(special)
        if found is None:
            made, error = t.library().tokenizer(), c.Error()
            check(self._library.tokmap_tokenizer_share(byref(made), handle, c.choice(special, t.SPECIALS, "special"),
                                                       byref(error)), error)
            found = shared.setdefault(special, made)  # another thread may have been faster
        return found

    def _policy(self, texts: Iterable[str | bytes], allowed: AbstractSet[str] | str | None,
                disallowed: Collection[str] | str | None) -> Handle:
        """The handle that treats special tokens in texts as tiktoken's allowed_special and disallowed_special say."""
        if allowed is None and disallowed is None:
            return self._open()
        names = self.special_tokens
        wanted = set(names) if allowed == "all" else set(allowed or ())
        refused = set(names) - wanted if disallowed is None or disallowed == "all" else set(disallowed)
        others = set(names) - wanted
        if refused or (wanted and others):
            for text in texts:
                some = text if isinstance(text, str) else text.decode("utf-8", "replace")
                for name in sorted(refused | (others if wanted else set())):
                    if name not in some:
                        continue
                    if name in refused:
                        raise InputError(f"the text contains the special token {name!r}; pass allowed_special="
                                         f"{{{name!r}}} to encode it as the token, or disallowed_special=() to "
                                         f"encode it as text",
                                         status="ERROR_INPUT")
                    raise error_of("ERROR_UNSUPPORTED",
                                   f"the text contains {name!r} as text, but {sorted(wanted)[0]!r} is allowed "
                                   f"as a special token; allow all of them or none")
        return self._with("recognize" if wanted & set(names) else "text")

    def encode(self, text: str | bytes, *, allowed_special: AbstractSet[str] | Literal["all"] | None = None,
               disallowed_special: Collection[str] | Literal["all"] | None = None) -> list[int]:
        """The ids of a text. No token is added: a document ends with eod_id only if you append it.

        allowed_special, disallowed_special
            as in tiktoken: the special tokens that are recognized in the text ("all", or a set), and those that raise
            an error ("all" of the others, the default if allowed_special is given, or a collection). Without both, what
            Tokenizer(special=...) says holds
        """
        if allowed_special is None and disallowed_special is None:
            return self._encode(self._handle or self._open(), text)
        return self._encode(self._policy((text,), allowed_special, disallowed_special), text)

    def encode_ordinary(self, text: str | bytes) -> list[int]:
        """The ids of a text in which special tokens are ordinary text, whatever special= was."""
        return self._encode(self._with("text"), text)

    def _encode(self, handle: Handle, text: str | bytes) -> list[int]:
        ids, count, kept = self._fill(handle, text, "I")
        found: list[int] = ids[:count].tolist()
        _spare["I"].append(kept)
        return found

    def encode_array(self, text: str | bytes, *, out: Any = None,
                     allowed_special: AbstractSet[str] | Literal["all"] | None = None,
                     disallowed_special: Collection[str] | Literal["all"] | None = None) -> Any:
        """The ids of a text in an array, which takes much less time than a list: of NumPy, or, without it, an
        array.array. Its type has 2 or 4 bytes, as in a shard of this vocabulary.

        out  an array of NumPy with one dimension, such as numpy.empty(4096, "int64"): the ids go to its front, and the
             result is that part of it. Its type must hold every id of the vocabulary
        """
        narrow = self._vocabulary <= 65536
        if out is not None:
            numpy = numpy_or_none()
            kind = out.dtype.name if numpy and isinstance(out, numpy.ndarray) else type(out).__name__
            if kind not in (_NARROW if narrow else _WIDE) or out.ndim != 1:
                raise ArgumentError(f"out must be an array of NumPy with one dimension and one of the types "
                                    f"{', '.join(_NARROW if narrow else _WIDE)}, but it is {kind}")
            find(out, "out")  # which refuses a masked one; NumPy refuses to write to a read-only one
        handle = self._handle or self._open()
        if allowed_special is not None or disallowed_special is not None:
            handle = self._policy((text,), allowed_special, disallowed_special)
        code = "H" if narrow else "I"
        ids, count, kept = self._fill(handle, text, code)
        if out is not None and count > len(out):
            raise ArgumentError(f"the text has {count} ids, but out has room for {len(out)}")
        found: Any = ids[:count]
        _spare[code].append(kept)
        numpy = numpy_or_none()
        if numpy is not None:
            kind = _DTYPES.get(code)
            if kind is None:
                kind = _DTYPES[code] = numpy.dtype("uint16" if narrow else "uint32")
            found = numpy.frombuffer(found, kind)
        if out is None:
            return found
        part = out[:count]
        part[:] = found
        return part

    def encode_to_numpy(self, text: str | bytes, *, allowed_special: AbstractSet[str] | Literal["all"] | None = None,
                        disallowed_special: Collection[str] | Literal["all"] | None = None) -> Any:
        """encode_array(), by tiktoken's name."""
        return self.encode_array(text, allowed_special=allowed_special, disallowed_special=disallowed_special)

    def _fill(self, handle: Handle, text: str | bytes, code: str) -> tuple[array[int], int, Any]:
        """The ids of a text at the front of an array, how many they are, and the memory to put back into _spare."""
        if isinstance(text, str):
            text = text.encode("utf-8", "surrogatepass")  # the library reports a lone surrogate, with its place
        elif not isinstance(text, bytes):
            raise ArgumentError(f"text is {type(text).__name__}, but it must be str or bytes")
        try:
            kept = _spare[code].pop()
        except IndexError:
            kept = _new_memory(code)
        ids, encoded, into, error, report = kept
        status = self._library.tokmap_tokenizer_encode(handle, text, len(text), into, report)
        count = encoded.count
        if not status:
            return ids, count, kept
        if count <= _ROOM:
            check(status, error)
        ids = array(code, bytes(ids.itemsize * count))
        larger = t.Encoded(sizeof(t.Encoded), ids.buffer_info()[0], count, 0, _TYPES[code])
        check(self._library.tokmap_tokenizer_encode(handle, text, len(text), byref(larger), report), error)
        return ids, count, kept

    def encode_with_offsets(self, text: str | bytes, *, unit: Literal["bytes", "characters"] = "bytes"
                            ) -> tuple[list[int], list[tuple[int, int]]]:
        """The ids of a text, and for each of them the part [begin, end) of the text that it stands for.

        unit  "bytes": of the text in UTF-8. A token that holds a part of a character begins or ends inside of it.
              "characters": of the str, as in Hugging Face tokenizers; such a token has all of the character
        """
        if unit not in ("bytes", "characters"):
            raise ArgumentError(f"unit is {unit!r}, but it must be one of: bytes, characters")
        batch = self.encode_batch([text], threads=1, flat=True, offsets=True)
        begins, ends = batch.begins.tolist(), batch.ends.tolist()
        if unit == "characters":
            some = text if isinstance(text, str) else text.decode()
            if not some.isascii():
                of: list[int] = []  # by byte: the character that has it
                for number, character in enumerate(some):
                    of += [number] * len(character.encode())
                of.append(len(some))
                begins, ends = ([of[begin] for begin in begins],
                                [max(of[begin], of[end - 1] + 1) if end > begin else of[end]
                                 for begin, end in zip(begins, ends)])
        return batch.ids.tolist(), list(zip(begins, ends))

    @overload
    def encode_batch(self, texts: Any, *, flat: Literal[False] = False, dtype: str | None = None,
                     threads: int | None = None, num_threads: int | None = None, bos: bool | int = False,
                     eod: bool | int = False, offsets: bool = False, field: str | None = None,
                     allowed_special: AbstractSet[str] | Literal["all"] | None = None,
                     disallowed_special: Collection[str] | Literal["all"] | None = None) -> list[Any]: ...

    @overload
    def encode_batch(self, texts: Any, *, flat: Literal[True], dtype: str | None = None, threads: int | None = None,
                     num_threads: int | None = None, bos: bool | int = False, eod: bool | int = False,
                     offsets: bool = False, field: str | None = None,
                     allowed_special: AbstractSet[str] | Literal["all"] | None = None,
                     disallowed_special: Collection[str] | Literal["all"] | None = None) -> Encoded: ...

    def encode_batch(self, texts: Any, *, flat: bool = False, dtype: str | None = None,
                     threads: int | None = None, num_threads: int | None = None, bos: bool | int = False,
                     eod: bool | int = False, offsets: bool = False, field: str | None = None,
                     allowed_special: AbstractSet[str] | Literal["all"] | None = None,
                     disallowed_special: Collection[str] | Literal["all"] | None = None) -> Any:
        """The ids of many texts, encoded on several threads.

        texts    an iterable of str or bytes; or an Arrow array, chunked array, or column: anything with
                 __arrow_c_array__ or __arrow_c_stream__ that has the type (large_)utf8, (large_)binary, or a view of
                 them. Its texts are read in place, and it must not have nulls
        flat     False: a list with an array for each text. True: an Encoded, with all ids in one array
        dtype    "uint16", "uint32", "int32", "uint64", or "int64"; by default the type of 2 or 4 bytes that a shard of
                 this vocabulary has. Without NumPy, lists are returned, and flat arrays are array.array
        threads  how many encode; None: one for each processor. num_threads is tiktoken's name for it. The result does
                 not depend on it
        bos, eod True: bos_id is put before, eod_id after each text; or an id
        offsets  with flat: begins and ends of tokens are wanted, too
        field    the column of an Arrow table
        """
        count = num_threads if threads is None else threads
        return encode(self, texts, flat=flat, dtype=dtype, offsets=offsets, field=field,
                      threads=0 if count is None else c.number(count, "threads", 1),
                      bos=_added(bos, self._bos, "bos"), eod=_added(eod, self._eod, "eod"),
                      special=(allowed_special, disallowed_special))

    def encode_ordinary_batch(self, texts: Any, *, num_threads: int | None = None) -> list[Any]:
        """The ids of many texts in which special tokens are ordinary text: tiktoken's name."""
        return self.encode_batch(texts, threads=num_threads, allowed_special=set(), disallowed_special=())

    def decode(self, ids: Iterable[int], *, specials: bool = False, resumed: bool = False,
               skip_special_tokens: bool | None = None) -> str:
        """The text of ids, as the vocabulary's reference decodes them. `ids` may be a list, or an array of NumPy or
        torch.

        specials  special tokens become their names; otherwise they become nothing. skip_special_tokens is the opposite,
                  by the name that Hugging Face uses
        resumed   the ids continue a document, so a space that encoding puts before a document is not expected at their
                  front
        """
        handle, error = self._open(), c.Error()
        if skip_special_tokens is not None:
            specials = not skip_special_tokens
        some = t.id_array(ids)
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

    def decode_batch(self, batch: Any, *, specials: bool = False, resumed: bool = False, threads: int | None = None,
                     num_threads: int | None = None, skip_special_tokens: bool | None = None) -> list[str]:
        """The texts of several lists of ids, decoded on several threads. `batch` is an iterable of lists or arrays, an
        array of two dimensions, or an Encoded."""
        count = num_threads if threads is None else threads
        return decode(self, batch, specials=specials if skip_special_tokens is None else not skip_special_tokens,
                      resumed=resumed, threads=0 if count is None else c.number(count, "threads", 1))

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """The bytes that the ids stand for, joined, special tokens included; they need not be UTF-8: tiktoken's name.
        Nothing else that a decoder does happens to them."""
        return b"".join(map(self.id_to_token, t.id_array(ids)))

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
        except FileNotFoundError:
            return None
        return found.value

    @property
    def added_tokens(self) -> dict[str, int]:
        """The added tokens, special or not, and their ids."""
        return {name: id for name, (id, _) in self._added().items()}

    @property
    def special_tokens(self) -> dict[str, int]:
        """The special tokens and their ids."""
        return {name: id for name, (id, special) in self._added().items() if special}

    def _added(self) -> dict[str, tuple[int, bool]]:
        handle = self._open()
        if self._tokens is None:
            found, error = t.AddedToken(sizeof(t.AddedToken)), c.Error()
            tokens = {}
            for index in range(self._added_count):
                check(self._library.tokmap_tokenizer_added(handle, index, byref(found), byref(error)), error)
                name = string_at(found.text, found.bytes).decode("utf-8", "replace")
                tokens[name] = (found.id, bool(found.special))
            self._tokens = tokens
        return self._tokens

    # Names of tiktoken and of Hugging Face tokenizers for the same things.

    @property
    def n_vocab(self) -> int:
        """vocab_size, by tiktoken's name."""
        return self._vocabulary

    @property
    def max_token_value(self) -> int:
        """The largest id, by tiktoken's name."""
        return self._vocabulary - 1

    @property
    def eot_token(self) -> int | None:
        """eod_id, by tiktoken's name."""
        return self._eod

    @property
    def special_tokens_set(self) -> set[str]:
        """The special tokens, by tiktoken's name."""
        return set(self.special_tokens)

    def encode_single_token(self, text: str | bytes) -> int:
        """The id of one token, by tiktoken's name. Raises KeyError if there is no such token."""
        id = self.token_to_id(text)
        if id is None:
            raise KeyError(text)
        return id

    def decode_single_token_bytes(self, id: int) -> bytes:
        """id_to_token(), by tiktoken's name."""
        return self.id_to_token(id)

    def get_vocab_size(self) -> int:
        """vocab_size, by the name of Hugging Face tokenizers."""
        return self._vocabulary

    def close(self) -> None:
        """Closes the tokenizer. A second close has no effect."""
        self._handle, self._shared = None, {}

    def __enter__(self) -> Tokenizer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return self._vocabulary

    def __reduce__(self) -> tuple[Any, ...]:
        path = self.path if self.path == "bytes" else os.path.abspath(self.path)
        *asked, cut_as, lower_case = self._asked
        return (_rebuild, (path, *asked, self._fingerprint, False, cut_as, lower_case and lower_case == "yes"))

    def _repr_html_(self) -> str:
        return table(f"tokmap.Tokenizer {self._name}", {
            "ids": self._vocabulary, "path": self.path, "fingerprint": self._fingerprint,
            "closed": "yes" if self._handle is None else ""})

    def __repr__(self) -> str:
        closed = ", closed" if self._handle is None else ""
        return f"<tokmap.Tokenizer {self._name!r}: {self._vocabulary} ids, {self.path!r}{closed}>"


def _new_memory(code: str) -> tuple[array[int], t.Encoded, Any, c.Error, Any]:
    """Memory for the ids of a text, and the structs that describe it to the library."""
    ids = array(code, bytes(array(code).itemsize * _ROOM))
    encoded, error = t.Encoded(sizeof(t.Encoded), ids.buffer_info()[0], _ROOM, 0, _TYPES[code]), c.Error()
    return ids, encoded, byref(encoded), error, byref(error)


def _rebuild(path: str, special: str, pattern: str | None, pattern_regex: str | None,
             special_tokens: str | None, fingerprint: str, cache: bool = False, cut_as: str | None = None,
             lower_case: bool | None = None) -> Tokenizer:
    made = Tokenizer(path, special=special, pattern=pattern, pattern_regex=pattern_regex,
                     special_tokens=special_tokens, cut_as=cut_as, lower_case=lower_case)
    if made.fingerprint != fingerprint:
        raise error_of("ERROR_MISMATCH",
                       f"the tokenizer {path} was pickled with the fingerprint {fingerprint}, but the file now "
                       f"has {made.fingerprint}: it has changed, or it is another file on this machine")
    return made


def _added(wanted: bool | int, own: int | None, name: str) -> int | None:
    """The id that bos= or eod= asks for."""
    if wanted is True and own is None:
        raise ArgumentError(f"the vocabulary names no {name.upper()}; pass its id: {name}=ID")
    return own if wanted is True else None if wanted is False else c.number(wanted, name, 0, 2 ** 32 - 1)


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
    """The tokenizer of a file if it has a fingerprint, which depends on whether special tokens were recognized and, of a
    vocab.txt that does not say it, on whether text was made lower case."""
    texts: dict[str, Any] = {name: about[name] for name in ("pattern", "pattern_regex", "cut_as")
                             if isinstance(about.get(name), str)}
    for lower_case in (None, True, False):
        for special in ("text", "recognize") if path != "bytes" else ("text",):
            try:
                tokenizer = Tokenizer(path, special=special, special_tokens=special_tokens, lower_case=lower_case,
                                      **texts)
            except (TokmapError, OSError) as error:
                if lower_case is None and getattr(error, "field", None) == "lower_case":
                    break  # the file does not say it, and the fingerprint decides
                return None
            if tokenizer.fingerprint == wanted:
                return tokenizer
            tokenizer.close()
        else:
            if lower_case is None:
                return None
    return None


def _recorded(dataset: Dataset) -> Iterable[tuple[str, dict[str, Any]]]:
    """For each shard whose index records the path of its tokenizer: the index, and what it says of the tokenizer."""
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
        raise error_of("ERROR_UNSUPPORTED", f"the dataset {dataset.name} is synthetic and has no text")
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
        raise error_of("ERROR_NOT_FOUND",
            f"the tokenizer of the dataset {dataset.name} (fingerprint {wanted or 'unknown'}) " +
            (f"was '{recorded}', and no file there has that fingerprint now" if recorded else "is not recorded") +
            ": open it with tokmap.Tokenizer(path), and pass it as tokenizer")
    _opened[wanted] = found
    while len(_opened) > _OPENED_MOST:
        _opened.popitem(last=False)
    return found
