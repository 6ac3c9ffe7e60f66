# SPDX-License-Identifier: MIT
"""Which tokens of a conversation are learned: the words of `tokmap pack --learn`, for conversations that a tokenizer of
transformers renders. tokenize_tools/packer/chat/chat_learn.h says what they mean."""
from __future__ import annotations

import re

from ._library import did_you_mean
from .errors import ArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, NamedTuple, Sequence

    class Turn(NamedTuple):
        """What is learned of a message."""
        role: str
        learned: bool
        whole: bool
else:
    from collections import namedtuple
    Turn = namedtuple("Turn", "role learned whole")

ROLES = ("assistant", "tool", "system", "user")
_FLAGS = ("-thinking", "-calls", "last")
_OTHER_NAMES = {"developer": "system", "ipython": "tool", "tool_results": "tool", "function": "tool"}
# The tags that the command knows (tokenize_tools/packer/chat/chat_learn.c).
_TAGS = (("<think>", "</think>"), ("<thinking>", "</thinking>"), ("[THINK]", "[/THINK]"),
         ("<|START_THINKING|>", "<|END_THINKING|>"), ("<seed:think>", "</seed:think>"))
_ENDS = re.compile(r"end|eot|eom|/", re.IGNORECASE)  # what the names of tokens that end a turn contain
_BORDER, _MESSAGES_MOST = 0x100000, 32000  # private characters, two for each message
_BORDERS = re.compile("[\U00100000-\U0010fffc]")
_NEAR = 64  # characters between a text and the token that ends its turn, such as a quote


class Learn:
    """The words. text: as the command takes them, in one order."""

    def __init__(self, words: Iterable[str]) -> None:
        given = [*words]
        for word in given:
            if word not in ROLES + _FLAGS:
                raise ArgumentError(f"learn has the word {word!r}, which is not one of {', '.join(ROLES + _FLAGS)}"
                                    f"{did_you_mean(word, ROLES + _FLAGS)}")
            if given.count(word) > 1:
                raise ArgumentError(f"learn has the word {word!r} twice")
        self.roles = [role for role in ROLES if role in given] or ["assistant"]
        self.thinking, self.calls, self.last = "-thinking" not in given, "-calls" not in given, "last" in given
        self.text = ",".join([*self.roles, *(word for word in _FLAGS if word in given)])

    def turns(self, roles: list[str], own: list[bool | None]) -> list[Turn]:
        """What is learned of each message. own: what it says itself."""
        names = [role if role in ROLES else _OTHER_NAMES.get(role, "other") for role in roles]
        first = 0
        if self.last:
            first = len(names)
            while first and names[first - 1] not in self.roles:
                first -= 1
            while first and names[first - 1] != "user":
                first -= 1
            first = max(first - 1, 0)
        return [Turn(name, said is not False and (bool(said) or (i >= first and name in self.roles)), said is True)
                for i, (name, said) in enumerate(zip(names, own))]


def thoughts_cut(text: str, first: int, end: int, said: int, mark: str) -> list[tuple[int, int]]:
    """The parts of a turn, text[first:end], that are not thoughts. said: the end of what the turn says, before the token
    that ends it. mark: a character that may be inside of tags that a message has."""
    def pattern(column: int) -> str:
        return "|".join(f"{re.escape(tags[column][0])}{mark}?{re.escape(tags[column][1:])}" for tags in _TAGS)

    begins, ends = re.compile(pattern(0)), re.compile(pattern(1))
    kept, at, starts = [], first, True  # starts: nothing but thoughts has been said
    while True:
        begin = begins.search(text, at, said)
        close = ends.search(text, at, begin.start() if begin else said)
        if close and starts:
            start = at
        elif begin:
            opened = begin[0].replace(mark, "")
            close = re.compile(next(f"{re.escape(close[0])}{mark}?{re.escape(close[1:])}" for open, close in _TAGS
                                    if open == opened)).search(text, begin.end(), said)
            cut = starts and not text[at:begin.start()].strip(" \t\n\v\f\r")
            if close is None and not cut:
                break
            start = at if cut else begin.start()
        else:
            break
        kept.append((at, start))
        starts = starts and start == at
        at = close.end() if close else said
        while at < said and text[at] in " \t\n\v\f\r":
            at += 1
    return [part for part in [*kept, (at, end)] if part[0] < part[1]]


def calls_region(whole: str, without: str, tokens: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """What a text has that the same text without calls of tools lacks. tokens: the places of special tokens, none of
    which the region cuts."""
    most = min(len(whole), len(without))
    first = next((i for i in range(most) if whole[i] != without[i]), most)
    rest = next((i for i in range(most - first) if whole[-1 - i] != without[-1 - i]), most - first)
    end = len(whole) - rest
    inside = {place for begin, stop in tokens for place in range(begin + 1, stop)}
    while first in inside and whole[first - 1] == whole[end - 1]:
        first, end = first - 1, end - 1
    return first, end


def bordered(messages: list[dict[str, Any]], numbers: Iterable[int], strip: bool) -> list[dict[str, Any]]:
    """The messages with two characters of their own around the text of those that are numbered, and, with `strip`, not
    around the spaces at its ends."""
    made = [*messages]
    for number in numbers:
        first, last = chr(_BORDER + 2 * number), chr(_BORDER + 2 * number + 1)
        content = messages[number].get("content")
        texts = [part for part in content if part.get("type") == "text"] if isinstance(content, list) else [content]
        if not texts or not all(isinstance(part["text"] if isinstance(part, dict) else part, str) for part in texts):
            continue

        def around(text: str, before: str, after: str) -> str:
            inner = text.strip() if strip else text
            at = text.find(inner)
            return text[:at] + before + inner + after + text[at + len(inner):]

        if isinstance(content, list):
            parts = [dict(part) for part in content]
            own = [part for part in parts if part.get("type") == "text"]
            own[0]["text"] = around(own[0]["text"], first, "")
            own[-1]["text"] = around(own[-1]["text"], "", last)
            made[number] = {**messages[number], "content": parts}
        elif content:
            made[number] = {**messages[number], "content": around(content, first, last)}
    return made


def contents_find(messages: list[dict[str, Any]], numbers: Sequence[int], text: str,
                  render: Callable[[list[dict[str, Any]]], str]) -> list[tuple[int, int, int]] | None:
    """Where the texts of messages are in what a template has written: (first, end, number), or None if they change what
    else it writes. render: writes messages."""
    if max(numbers, default=0) > _MESSAGES_MOST:
        return None
    own = {chr(_BORDER + 2 * number + side) for number in numbers for side in (0, 1)}
    for strip in False, True:
        written = render(bordered(messages, numbers, strip))
        begins: dict[int, int] = {}
        found: list[tuple[int, int, int]] = []
        marks = [mark.start() for mark in _BORDERS.finditer(written) if mark[0] in own]
        for before, at in enumerate(marks):
            number, is_end = divmod(ord(written[at]) - _BORDER, 2)
            if not is_end:
                begins[number] = at - before
            elif number in begins:
                found.append((begins.pop(number), at - before, number))
        plain = "".join(written[first + 1:end] for first, end in zip([-1, *marks], [*marks, len(written)]))
        if plain == text and not begins:
            return found
    return None


def spans_match(spans: Sequence[tuple[int, int]], said: list[int],
                contents: list[tuple[int, int, int]] | None) -> list[int]:
    """The message of each span that a template marks, if it marks several parts of a message: the one whose text is in
    the span, or the only one of the assistant's, which have the numbers `said`, that is there in the order of messages.
    Empty if that is not known. contents: where the texts of all messages are."""
    found: list[int] = []
    for first, end in spans if contents is not None else ():
        inside = [number for begin, stop, number in contents or () if number in said and begin < end and first < stop]
        if not inside:
            before = max((number for _, stop, number in contents or () if stop <= first), default=-1)
            after = min((number for begin, _, number in contents or () if begin >= end), default=said[-1])
            inside = [number for number in said if before <= number <= after]
        if len(inside) != 1:
            return []
        found += inside
    return found


def turn_end(text: str, end: int, limit: int, tokens: list[tuple[int, int]], ends: str | None) -> list[tuple[int, int]]:
    """The parts of a text after `end`, before `limit`, that end a turn: special tokens, with what is between."""
    parts: list[tuple[int, int]] = []
    at = end
    for first, after in tokens:
        if first < at:
            continue
        if after > limit or first - at > _NEAR or not (_ENDS.search(text[first:after]) or text[first:after] == ends):
            break
        parts.append((at, after))
        at = after
    return parts
