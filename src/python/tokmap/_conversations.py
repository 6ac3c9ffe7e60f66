# SPDX-License-Identifier: MIT
"""Conversations that a tokenizer of transformers renders: pieces of text of which the command makes tokens, as it does
with those of its own templates. What reads like a special token in a message stays text."""
from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib import import_module

from ._learn import Learn, Turn, calls_region, contents_find, spans_match, thoughts_cut, turn_end
from .errors import ArgumentError, InputError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Iterator

    from .tokenizer import Tokenizer

# Keys beside the messages of a record, and in messages, that say something. The command has the same lists
# (tokenize_tools/packer/chat/chat_messages.c); all others are ignored.
BESIDE = (
    "tools", "chat_template_kwargs", "enable_thinking", "functions", "function_call", "tool_calls", "tool_choice",
    "parallel_tool_calls", "response_format", "available_tools", "custom_tools", "builtin_tools", "xml_tools",
    "python_tools", "tools_in_user_message", "tool_definitions", "tool_schemas", "function_description",
    "function_descriptions", "function_definitions", "system", "system_prompt", "system_message", "developer",
    "custom_instructions", "documents", "document", "date_string", "model_identity", "reasoning",
    "reasoning_content", "reasoning_effort", "thinking", "thinking_budget", "images", "image", "audio", "audios",
    "video", "videos", "weight", "train", "trainable", "masked", "loss", "loss_mask")
IN_MESSAGES = (
    "tool_calls", "tool_call_id", "tools", "function_call", "functions", "reasoning_content", "reasoning", "thinking",
    "images", "image", "audio", "audios", "videos", "video", "documents", "prefix", "trainable", "masked", "loss",
    "loss_mask")
_WRITTEN = ("tools", "documents", "chat_template_kwargs")  # which have arguments of their own, or are arguments
_PASSED = ("tools", "documents", "enable_thinking")  # to an object whose template is not known
_THOUGHTS = ("reasoning_content", "reasoning", "thinking")  # of which transformers passes on each by all three names
_OWN = frozenset(("system_message", "reasoning_content"))  # what templates call variables that they set themselves
_CALLS = ("tool_calls", "tool_call_id")  # a template that writes calls may write results without their ids
_MARK = "\U0010fffd"  # put into what reads like a special token in a message, while the template renders it


def value_of(record: Any, name: str, index: int) -> Any:
    """A field of a record; a name with dots is looked for inside of its objects."""
    found = record
    if name not in record:
        for part in name.split("."):
            if not hasattr(found, "get") or part not in found:
                raise InputError(f"document {index} has no field {name!r}; its fields are: "
                                 f"{', '.join(map(repr, record))}")
            found = found[part]
    else:
        found = record[name]
    return found


def _says(value: Any) -> bool:
    """Whether a value beside the messages says something."""
    return not (value is None or (isinstance(value, (str, list, tuple, Mapping)) and not value))


def _variables(template: str) -> frozenset[str]:
    """The variables that a template reads."""
    meta, module = import_module("jinja2.meta"), import_module("transformers.utils.chat_template_utils")
    environment = module._compile_jinja_template(template).environment
    return frozenset(meta.find_undeclared_variables(environment.parse(template))) - _OWN


class Conversations:
    """Renders the conversations of records. fields, options: the options of the command for what read() returns."""

    def __init__(self, chat: Any, tokenizer: Tokenizer, field: str, columns: Iterable[str], ignored: Iterable[str],
                 eod: int | None, learn: Learn | None = None) -> None:
        self._chat, self._field, self._eod = chat, field, eod
        self._given, self._learn = learn is not None, learn or Learn(())
        self._renders = hasattr(chat, "get_chat_template")  # its text is known, not only its ids
        self.fields = ({"messages_field": field} if self._renders else
                       {"ids_field": field, "mask_field": field + ".mask"})
        self.options = {"chat_template": "rendered", "learn": learn and learn.text} if self._renders else \
            {"special": None}
        if learn is not None and not self._renders:
            raise ArgumentError("learn needs a chat_template whose text is known, such as a tokenizer of transformers "
                                "or the name of a template; this one has only apply_chat_template()")
        self.messages_of: dict[str, int] = {}  # how many messages of each role there are
        self.plain = ()  # a document is a record
        self.untaught = 0  # conversations in which no token counts, where the command does not count them
        self._ignored, self._columns = frozenset(ignored), frozenset(columns)
        self._ids = tokenizer.special_tokens
        own = getattr(chat, "added_tokens_decoder", {})
        texts = {*self._ids, *(str(token) for token in own.values() if getattr(token, "special", False))}
        self._special = re.compile("|".join(map(re.escape, sorted(texts, key=len, reverse=True))) or "(?!)")
        self._known: set[str] = set()  # special tokens whose ids are those of the vocabulary
        self._read = ""                # the template whose variables are known
        self._variables: frozenset[str] = frozenset()
        self._words = ""
        self._found = False            # a message has the text of a special token
        path = field.rpartition(".")[0]
        self._names = [(name, key) for key in BESIDE for name in ([f"{path}.{key}"] if path else []) + [key]
                       if name != field and not {name, key} & self._ignored]

    def pieces(self, record: Any, index: int) -> list[dict[str, str]]:
        """The pieces of a conversation, as the template "rendered" of the command takes them."""
        messages, own = self.messages(value_of(record, self._field, index), index)
        arguments = self.beside(record, index)
        arguments.update(arguments.pop("chat_template_kwargs", {}))
        template = self._template(arguments.get("tools"), index)
        self._check_written(template, messages, arguments, index)
        text, spans = self._render(messages, template, arguments, index)
        self._found = False
        marked = self._marked([messages, arguments])
        if self._found:
            plain = text
            messages, arguments = marked
            text, spans = self._render(messages, template, arguments, index)
            if text.replace(_MARK, "") != plain:
                raise self._wrong(index, "what reads like a special token in it changes what the template writes, so "
                                         "the tokens of the template cannot be distinguished from the text of the messages")
        if not self._given:  # 1 is the default
            own = [said and None for said in own]
        turns = self._learn.turns([message["role"] for message in messages], own)
        for turn in turns:
            self.messages_of[turn.role] = self.messages_of.get(turn.role, 0) + 1

        def render(changed: list[dict[str, Any]]) -> str:
            return self._render(changed, template, arguments, index)[0]

        said = self._said(text, spans, turns, messages, render, index)
        return list(self._pieces(text, said + self._others(text, spans, turns, messages, render, index)))

    def read(self, record: Any, index: int) -> list[Any]:
        """The pieces of a conversation, or its ids and which of them count."""
        return [self.pieces(record, index)] if self._renders else self._ids_of(record, index)

    def _ids_of(self, record: Any, index: int) -> list[list[int]]:
        """The ids and the mask by an object that has only apply_chat_template(), whose ids are taken as they are. An
        eod that is added does not count."""
        messages, learned, arguments = self._arguments(record, index)
        try:
            made = self._chat.apply_chat_template(messages, tokenize=True, return_dict=True,
                                                  return_assistant_tokens_mask=True, **arguments)
        except ImportError:
            raise
        except Exception as problem:  # templates raise errors of their own about conversations
            raise self._wrong(index, str(problem)) from problem
        mask = bytes(map(bool, made["assistant_masks"]))
        marked, mask = any(mask), self._masked(mask, learned, index)
        if not any(mask):
            self.untaught += 1
            if learned and not marked:
                raise self._unmarked()
        ids = [*made["input_ids"]]
        ended = self._eod is None or ids[-1:] == [self._eod]
        return [ids if ended else [*ids, self._eod], [*mask] if ended else [*mask, 0]]

    def _arguments(self, record: Any, index: int) -> tuple[list[dict[str, Any]], list[bool], dict[str, Any]]:
        """The messages, which answers are learned, and the arguments: refuses what needs the template or the text."""
        messages, own = self.messages(value_of(record, self._field, index), index)
        learned = [said is not False for said, message in zip(own, messages) if message["role"] == "assistant"]
        arguments = self.beside(record, index)
        given = arguments.pop("chat_template_kwargs", {})
        for name in arguments:
            if name not in _PASSED:
                raise self._unwritten(name, index)
        self._found = False
        self._marked([messages, arguments, given])
        if self._found:
            raise self._wrong(index, "it has the text of a special token, which only a tokenizer of transformers "
                                     "distinguishes from the tokens of the template")
        return messages, learned, {**arguments, **given}

    def _masked(self, mask: bytes, learned: list[bool], index: int) -> bytes:
        """The mask of such an object without the answers that are not learned: the runs of what counts."""
        if all(learned):
            return mask
        runs = [found.span() for found in re.finditer(b"\\x01+", mask)]
        if len(runs) != len(learned):
            raise self._several(len(runs), len(learned), index)
        made = bytearray(mask)
        for (first, end), counts in zip(runs, learned):
            made[first:end] = bytes([counts]) * (end - first)
        return bytes(made)

    def _several(self, parts: int, messages: int, index: int) -> InputError:
        return self._wrong(index, f"its template marks {parts} parts, but {messages} messages are the assistant's, so "
                                  "the ones with \"weight\" 0 or \"train\" false are not known")

    def _unmarked(self) -> ArgumentError:
        return ArgumentError("the chat template does not mark what the assistant says with {% generation %}, so no "
                             "token would count; use a template that does")

    def _wrong(self, index: int, why: str) -> InputError:
        return InputError(f"document {index}: the chat template cannot write the conversation: {why}")

    # ---- what the record says ----

    def messages(self, given: Any, index: int) -> tuple[list[dict[str, Any]], list[bool | None]]:
        """The messages without keys that count for nothing, and what each says about whether it is learned."""
        if isinstance(given, (str, bytes, Mapping)) or not hasattr(given, "__iter__"):
            raise self._wrong(index, "the messages are not a list")
        messages: list[dict[str, Any]] = []
        own: list[bool | None] = []
        for number, message in enumerate(given, 1):
            if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
                raise self._wrong(index, f"message {number}: it has no \"role\"")
            kept = {key: value for key, value in message.items() if value is not None and key not in self._ignored}
            counts: bool | None = None
            for key in ("weight", "train"):
                said = kept.pop(key, None)
                if said not in (None, 0, 1):
                    raise self._wrong(index, f"message {number}: its {key!r} is neither 0 nor 1, neither true nor "
                                             "false")
                counts = counts if said is None or counts is False else said != 0
                if said and kept["role"] != "assistant" and not self._given:
                    raise self._wrong(index, f"message {number}: only what an assistant says can count (learn takes "
                                             f"other roles), and its role is {kept['role']!r}")
            if "content" not in kept and not (kept["role"] == "assistant" and kept.get("tool_calls")):
                raise self._wrong(index, f"message {number}: it has no content")
            messages.append(kept)
            own.append(counts)
        if not messages:
            raise self._wrong(index, "the conversation has no messages")
        return messages, own

    def beside(self, record: Any, index: int) -> dict[str, Any]:
        """What the record has beside the messages and says something: the arguments of apply_chat_template()."""
        found: dict[str, Any] = {}
        for name, key in self._names:
            try:
                value = value_of(record, name, index)
            except InputError:
                continue
            if hasattr(value, "tolist"):
                value = value.tolist()
            if key == "tools" and isinstance(value, str) and value:
                try:
                    value = json.loads(value)
                except ValueError:
                    raise self._wrong(index, "the tools are a string that is not JSON") from None
            if not _says(value) or (name in self._columns and key not in _WRITTEN):
                continue
            if key == "chat_template_kwargs":
                if not isinstance(value, Mapping):
                    raise self._wrong(index, "chat_template_kwargs is not an object")
                value = {word: item for word, item in value.items() if item is not None and word not in self._ignored}
            if key in found:
                raise self._wrong(index, f"the record says {key!r} twice")
            found[key] = value
        twice = next((word for word in found.get("chat_template_kwargs", ()) if word in found), None)
        if twice is not None:
            raise self._wrong(index, f"the record says {twice!r} twice")
        return found

    def _check_written(self, template: str, messages: list[dict[str, Any]], arguments: dict[str, Any],
                       index: int) -> None:
        """Refuses what the template does not write."""
        if template != self._read:
            self._read, self._variables = template, _variables(template)
            self._words = re.sub(r"\{#.*?#\}", "", template, flags=re.DOTALL)  # without comments
        for name in arguments:
            if name not in self._variables:
                raise self._unwritten(name, index)
        for message in messages:
            for name, value in message.items():
                names = _THOUGHTS if name in _THOUGHTS else _CALLS if name in _CALLS else (name,)
                if name in IN_MESSAGES and value and not any(
                        re.search(rf"(?<!\w){re.escape(word)}(?!\w)", self._words) for word in names):
                    raise self._unwritten(name, index)

    def _unwritten(self, name: str, index: int) -> InputError:
        return self._wrong(index, f"the template does not write the key {name!r} (ignore_fields leaves keys out)")

    # ---- the text ----

    def _template(self, tools: Any, index: int) -> str:
        try:
            template: str = self._chat.get_chat_template(None, tools)
        except Exception as problem:  # it has none, or none of that name
            raise ArgumentError(f"the tokenizer has no chat template: {problem}") from problem
        return template

    def _render(self, messages: Any, template: str, arguments: dict[str, Any], index: int) -> tuple[str, Any]:
        render = getattr(import_module("transformers.utils.chat_template_utils"), "render_jinja_template", None)
        if render is None:
            raise ArgumentError("chat_template needs transformers 4.52 or a later version")
        try:
            texts, spans = render(
                conversations=[messages], chat_template=template, return_assistant_tokens_mask=True,
                **{**self._chat.special_tokens_map, **arguments})
        except ImportError:
            raise
        except Exception as problem:  # templates raise errors of their own about conversations
            raise self._wrong(index, str(problem)) from problem
        return texts[0], spans[0]

    def _marked(self, value: Any) -> Any:
        """The value with a mark in what reads like a special token."""
        if isinstance(value, str):
            marked, count = self._special.subn(lambda found: found[0][0] + _MARK + found[0][1:], value)
            self._found = self._found or count > 0
            return marked
        if isinstance(value, Mapping):
            return {self._marked(key): self._marked(item) for key, item in value.items()}
        if hasattr(value, "tolist"):
            value = value.tolist()
        return [self._marked(item) for item in value] if isinstance(value, (list, tuple)) else value

    def _said(self, text: str, spans: Any, turns: list[Turn], messages: list[dict[str, Any]], render: Any,
              index: int) -> list[tuple[int, int, str]]:
        """The parts of the text that the assistant says, and that are learned. render: writes messages."""
        said = [(turn, number) for number, turn in enumerate(turns) if turn.role == "assistant"]
        learned, cuts = "assistant" in self._learn.roles, not (self._learn.thinking and self._learn.calls)
        if said and not spans and (learned or any(turn.learned for turn, _ in said)):
            raise self._unmarked()
        calling = [number for turn, number in said if not self._learn.calls and turn.learned and not turn.whole and
                   messages[number].get("tool_calls")]
        if len({(turn.learned, turn.whole and cuts) for turn, _ in said}) > 1 or calling:
            numbers = [number for _, number in said]
            if len(spans) != len(said):
                numbers = spans_match(spans, numbers, contents_find(messages, range(len(messages)), text, render))
            if len(spans) != len(numbers):
                raise self._several(len(spans), len(said), index)
            matched = [(span, (turns[number], number)) for span, number in zip(spans, numbers)]
        else:
            matched = [(part, (said or [(Turn("assistant", learned, False), -1)])[0]) for part in spans]
        found: list[tuple[int, int, str]] = []
        tokens = [token.span() for token in self._special.finditer(text)] if cuts else []
        for (first, end), (turn, number) in matched:
            if not turn.learned or first >= end:
                continue
            kept = [(first, end)]
            last = next((begin for begin, stop in reversed(tokens)
                         if begin >= first and stop <= end and not text[stop:end].strip()), end)
            if number in calling:
                kept = self._calls_cut(text, first, end, last, messages, number, render, tokens, index)
            if not self._learn.thinking and not turn.whole:
                other = thoughts_cut(text, first, end, last, _MARK)
                kept = [(max(a, c), min(b, d)) for a, b in kept for c, d in other if max(a, c) < min(b, d)]
            if kept != [(first, end)] and all(a >= last for a, _ in kept):
                kept = []  # nothing but the token that ends the turn is left
            found += [(a, b, "said") for a, b in kept]
        return found

    def _calls_cut(self, text: str, first: int, end: int, last: int, messages: list[dict[str, Any]], number: int,
                   render: Any, tokens: list[tuple[int, int]], index: int) -> list[tuple[int, int]]:
        """The parts of a turn that are not calls of tools."""
        message = messages[number]
        if not any(message.get(key) for key in ("content", *_THOUGHTS)):
            return []  # it does not say more
        without = {key: value for key, value in message.items() if key != "tool_calls"}
        begin, stop = calls_region(text, render([*messages[:number], without, *messages[number + 1:]]), tokens)
        if not first <= begin <= stop <= last:
            raise self._wrong(index, f"message {number + 1}: where its template writes the calls is not known, so they "
                                     "cannot be left out")
        return [part for part in ((first, begin), (stop, end)) if part[0] < part[1]]

    def _others(self, text: str, spans: Any, turns: list[Turn], messages: list[dict[str, Any]], render: Any,
                index: int) -> list[tuple[int, int, str]]:
        """The parts of the text that others than the assistant say, and that are learned."""
        wanted = [number for number, turn in enumerate(turns) if turn.learned and turn.role != "assistant"]
        if not wanted:
            return []
        numbers = [number for number, turn in enumerate(turns) if turn.role != "assistant"]
        contents = contents_find(messages, numbers, text, render)
        if contents is None and wanted != numbers:
            contents = contents_find(messages, wanted, text, render)
        if contents is None:
            raise self._wrong(index, f"message {wanted[0] + 1}: where its template writes what it says is not known, "
                                     "so it cannot be learned")
        tokens = [token.span() for token in self._special.finditer(text)]
        begins = sorted([first for first, _, _ in contents] + [first for first, _ in spans])
        found = []
        for first, end, number in contents:
            if not turns[number].learned:
                continue
            limit = next((begin for begin in begins if begin >= end and begin > first), len(text))
            parts = [(first, end), *turn_end(text, end, limit, tokens, getattr(self._chat, "eos_token", None))]
            found += [(a, b, turns[number].role) for a, b in parts if a < b]
        return found

    def _pieces(self, text: str, spans: list[tuple[int, int, str]]) -> Iterator[dict[str, str]]:
        borders = sorted({0, len(text), *(place for first, end, _ in spans for place in (first, end))})
        tokens = [found.span() for found in self._special.finditer(text)]
        borders = [place for place in borders if not any(first < place < end for first, end in tokens)]
        cuts = sorted({*borders, *(place for token in tokens for place in token)})
        begins = {first for first, _ in tokens}
        for first, end in zip(cuts, cuts[1:]):
            piece = text[first:end].replace(_MARK, "")
            if first in begins:
                self._check_token(piece)
            said = next((role for begin, stop, role in spans if begin <= first < stop), "text")
            yield {"role": said if first not in begins else "token" if said == "text" else said + "-token",
                   "content": piece}

    def _check_token(self, text: str) -> None:
        if text in self._known:
            return
        theirs, own = self._chat.convert_tokens_to_ids(text), self._ids.get(text)
        if own is None or own != theirs:
            raise ArgumentError(f"the chat template writes the special token {text!r}, which is {theirs} in its "
                                f"tokenizer and {own} in the argument tokenizer: pass the same vocabulary as both")
        self._known.add(text)
