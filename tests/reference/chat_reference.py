#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""chat_reference.py TOKMAP FOLDER VOCABULARIES [CONVERSATIONS [SEED]]: compares the ids and the mask that `tokmap pack
--messages-field` writes with apply_chat_template of Hugging Face transformers, over conversations made at random, with
text that reads like special tokens, spaces of all kinds around it, empty texts, and roles in a wrong order.

The templates below write what those of the named tokenizers write of messages without tools, with {% generation %}
around what the assistant says and the token that ends its turn. Where pip can get the package TRL, which carries byte
for byte copies of most originals (trl/chat_templates), the originals are compared, too, and tokmap has to recognize
them as files.

The same is done with tools beside the messages, calls, results, and thoughts, which only the originals write: ids are
compared, because originals do not mark what counts.

The vocabularies are real; special tokens that a base model lacks and its chat model has are added.
"""

import glob
import json
import os
import random
import subprocess
import sys
import zipfile

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
import numpy  # noqa: E402
from transformers import PreTrainedTokenizerFast  # noqa: E402

ROLES = ("system", "user", "assistant")
TRL = "trl==1.16.0"


def turns(before, content, end, after="", messages="messages"):
    """A loop that writes each message as BEFORE CONTENT END AFTER, of which CONTENT END counts for the assistant."""
    written = "{{ " + content + " + " + end + " }}"
    return (
        "{% for message in " + messages + " %}{{ " + before + " }}{% if message['role'] == 'assistant' %}"
        "{% generation %}" + written + "{% endgeneration %}{% else %}" + written + "{% endif %}" + after + "{% endfor %}"
    )


def chatml(messages="messages", content="message['content']"):
    return turns("'<|im_start|>' + message['role'] + '\\n'", content, "'<|im_end|>'", "{{ '\\n' }}", messages)


ALTERNATE = (
    "{% for message in loop_messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}"
)
SYSTEM_APART = (
    "{% if messages[0]['role'] == 'system' %}{% set system = messages[0]['content'] %}"
    "{% set loop_messages = messages[1:] %}{% else %}{% set loop_messages = messages %}{% endif %}"
)
NO_SYSTEM = "{% set loop_messages = messages %}"


def mistral(apart, place, before, after, close, space, content):
    """The templates of Mistral: PLACE is the condition for the system message, the rest are spaces and the answer."""
    return (
        apart + "{{ bos_token }}" + ALTERNATE + "{% if message['role'] == 'user' %}{{ '" + before + "[INST]" + after
        + "' }}{% if system is defined and " + place + " %}{{ system + '\\n\\n' }}{% endif %}{{ message['content'] + '"
        + close + "[/INST]' }}{% elif message['role'] == 'assistant' %}{{ '" + space + "' }}{% generation %}{{ "
        + content + " + eos_token }}{% endgeneration %}{% else %}{{ raise_exception('only user and assistant') }}"
        "{% endif %}{% endfor %}"
    )


HEADER = "'<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'"
GEMMA = "'<start_of_turn>' + ('model' if message['role'] == 'assistant' else message['role']) + '\\n'"
DEEPSEEK = (
    "{{ bos_token }}{% set ns = namespace(first=true) %}{% for message in messages %}{% if message['role'] == 'system' "
    "%}{{ ('' if ns.first else '\\n\\n') + message['content'] }}{% set ns.first = false %}{% endif %}{% endfor %}"
    "{% for message in messages %}{% if message['role'] == 'user' %}{{ '<｜User｜>' + message['content'] }}"
    "{% elif message['role'] == 'assistant' %}{{ '<｜Assistant｜>' }}{% generation %}"
    "{{ message['content'].split('</think>')[-1] + '<｜end▁of▁sentence｜>' }}{% endgeneration %}{% endif %}{% endfor %}"
)
PHI3 = turns("'<|' + message['role'] + '|>\\n'", "message['content']", "'<|end|>'", "{{ '\\n' }}") + "{{ eos_token }}"
QWEN3 = (
    "{% set ns = namespace(open=true, last=messages|length - 1) %}{% for message in messages[::-1] %}{% if ns.open and "
    "message.role == 'user' and not (message.content.startswith('<tool_response>') and "
    "message.content.endswith('</tool_response>')) %}{% set ns.open = false %}{% set ns.last = messages|length - 1 - "
    "loop.index0 %}{% endif %}{% endfor %}{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' }}"
    "{% if message.role == 'assistant' %}{% set text = message.content %}{% set thought = '' %}"
    "{% if '</think>' in text %}{% set thought = text.split('</think>')[0].rstrip('\\n').split('<think>')[-1]"
    ".lstrip('\\n') %}{% set text = text.split('</think>')[-1].lstrip('\\n') %}{% endif %}"
    "{% if loop.index0 > ns.last and (loop.last or thought) %}{% generation %}{{ '<think>\\n' + thought.strip('\\n') + "
    "'\\n</think>\\n\\n' + text.lstrip('\\n') + '<|im_end|>' }}{% endgeneration %}{% else %}{% generation %}"
    "{{ text + '<|im_end|>' }}{% endgeneration %}{% endif %}{% else %}{{ message.content + '<|im_end|>' }}{% endif %}"
    "{{ '\\n' }}{% endfor %}"
)
QWEN25_SYSTEM = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."
LLAMA31_SYSTEM = "Cutting Knowledge Date: December 2023\\nToday Date: 26 Jul 2024\\n\\n"

# Name: the vocabulary, the names of originals in TRL, the template.
TEMPLATES = {
    "chatml": ("qwen2.5", [], chatml()),
    "deepseek-r1-distill": ("deepseek_v3", ["deepseek_r1_distill"], DEEPSEEK),
    "deepseek-v3": ("deepseek_v3", ["deepseekv3"], DEEPSEEK),
    "gemma": (
        "gemma",
        ["gemma"],
        "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}"
        + NO_SYSTEM + ALTERNATE + "{% endfor %}"
        + turns(GEMMA, "message['content'] | trim", "'<end_of_turn>'", "{{ '\\n' }}"),
    ),
    "gemma3": (
        "gemma",
        ["gemma3"],
        "{{ bos_token }}" + SYSTEM_APART + ALTERNATE + "{% endfor %}"
        + turns(
            GEMMA + " + (system + '\\n\\n' if loop.first and system is defined else '')",
            "message['content'] | trim",
            "'<end_of_turn>'",
            "{{ '\\n' }}",
            "loop_messages",
        ),
    ),
    "llama2": (
        "llama2",
        [],
        SYSTEM_APART + ALTERNATE + "{% set text = message['content'] %}{% if loop.first and system is defined %}"
        "{% set text = '<<SYS>>\\n' + system + '\\n<</SYS>>\\n\\n' + text %}{% endif %}{% if message['role'] == 'user' %}"
        "{{ bos_token + '[INST] ' + text.strip() + ' [/INST]' }}{% elif message['role'] == 'assistant' %}{{ ' ' }}"
        "{% generation %}{{ text.strip() + ' ' + eos_token }}{% endgeneration %}{% endif %}{% endfor %}",
    ),
    "llama3": ("llama3", ["llama3"], "{{ bos_token }}" + turns(HEADER, "message['content'] | trim", "'<|eot_id|>'")),
    "llama3.1": (
        "llama3",
        ["llama3_1"],
        "{{ bos_token }}" + SYSTEM_APART + "{{ '<|start_header_id|>system<|end_header_id|>\\n\\n" + LLAMA31_SYSTEM
        + "' + (system | trim if system is defined else '') + '<|eot_id|>' }}"
        + turns(HEADER, "message['content'] | trim", "'<|eot_id|>'", "", "loop_messages"),
    ),
    "mistral-v0": ("llama2", [], mistral(NO_SYSTEM, "false", "", " ", " ", "", "message['content']")),
    "mistral-v1": ("llama2", [], mistral(SYSTEM_APART, "loop.first", " ", " ", " ", " ", "message['content']")),
    "mistral-v3": ("llama2", [], mistral(SYSTEM_APART, "loop.last", "", " ", "", " ", "message['content'] | trim")),
    "mistral-v3-tekken": ("mistral_nemo", [], mistral(SYSTEM_APART, "loop.last", "", "", "", "", "message['content']")),
    "phi3": ("llama2", ["phi3"], PHI3),
    "phi3.5": (
        "llama2",
        ["phi3_5"],
        PHI3.replace("in messages", "in messages if message['role'] != 'system' or message['content']"),
    ),
    "phi4": ("llama3", [], turns("'<|im_start|>' + message['role'] + '<|im_sep|>'", "message['content']", "'<|im_end|>'")),
    "qwen2.5": (
        "qwen2.5",
        ["qwen2_5"],
        "{% if messages[0]['role'] != 'system' %}{{ '<|im_start|>system\\n" + QWEN25_SYSTEM
        + "<|im_end|>\\n' }}{% endif %}" + chatml(),
    ),
    "qwen3": ("qwen2.5", ["qwen3"], QWEN3),
    "qwen3-2507": ("qwen2.5", ["qwen3_instruct_2507"], chatml()),
    "zephyr": ("llama2", [], turns("'<|' + message['role'] + '|>\\n'", "message['content']", "eos_token", "{{ '\\n' }}")),
}
TOOLS = ("llama3.1", "qwen2.5", "qwen3", "qwen3-2507")  # whose originals are in TRL and write tools
ADDED = {
    "gemma": ["<start_of_turn>", "<end_of_turn>"],
    "gemma3": ["<start_of_turn>", "<end_of_turn>"],
    "mistral-v3": ["[INST]", "[/INST]"],
    "phi3": ["<|system|>", "<|user|>", "<|assistant|>", "<|end|>", "<|endoftext|>"],
    "phi3.5": ["<|system|>", "<|user|>", "<|assistant|>", "<|end|>", "<|endoftext|>"],
    "phi4": ["<|im_start|>", "<|im_sep|>", "<|im_end|>"],
    "qwen3": ["<think>", "</think>", "<tool_response>", "</tool_response>"],
}
BOS_EOS = {
    "deepseek_v3": ("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"),
    "gemma": ("<bos>", "<eos>"),
    "llama2": ("<s>", "</s>"),
    "llama3": ("<|begin_of_text|>", "<|eot_id|>"),
    "mistral_nemo": ("<s>", "</s>"),
    "qwen2.5": (None, "<|im_end|>"),
}
WORDS = (
    """hello world The quick brown fox 123 4567 3.14 don't ' " \\ / {{ }} {% %} <s> </s> [INST] [/INST] <|im_start|>
<|im_end|> <|eot_id|> <think> </think> <<SYS>> <bos> <end_of_turn> <|end|> <|user|> <|assistant|> <｜User｜>
<｜end▁of▁sentence｜> é ñ ü ß 中文 日本語 한국어 عربى हिन्दी 😀 👩\u200d👩\u200d👧 🇩🇪 e\u0301 ﬁ Å ▁ ▁▁ \ufeff \u200b
<tool_response> </tool_response> system user""".split()
    + ["\u00a0", "\u3000", "\u2028", "\x85", "\x1c"]
)
SPACES = [" ", "  ", "\n", "\n\n", "\t", " \n", " \u00a0", "\r\n", "\u3000", "\u2028", ""]


def vocabulary(folder, vocabularies, name):
    """Writes the tokenizer of a template: a real one with the added tokens that its chat model has."""
    base = TEMPLATES[name][0]
    with open(os.path.join(vocabularies, base, "tokenizer.json"), encoding="utf-8") as file:
        data = json.load(file)
    added = data["added_tokens"]
    if base == "llama2":
        for token in added:
            token["normalized"] = False  # as in the chat model
    top = max(max(data["model"]["vocab"].values()), max(token["id"] for token in added)) + 1
    for text in ADDED.get(name, []):
        if any(token["content"] == text for token in added):
            continue
        number = data["model"]["vocab"].get(text)
        if number is None:
            number, top = top, top + 1
        rules = {"lstrip": False, "rstrip": name.startswith("phi3") and text != "<|endoftext|>", "single_word": False}
        special = name != "qwen3"
        added.append({"id": number, "content": text, "special": special, "normalized": False} | rules)
    path = os.path.join(folder, name)
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, "tokenizer.json"), "w", encoding="utf-8") as file:
        json.dump(data, file)
    bos, eos = BOS_EOS[base]
    if name.startswith("phi3"):
        eos = "<|endoftext|>"
    with open(os.path.join(path, "tokenizer_config.json"), "w", encoding="utf-8") as file:
        json.dump({"bos_token": bos, "eos_token": eos}, file)
    return path, bos, eos


def text_make(chance):
    kind = chance.random()
    if kind < 0.06:
        return ""
    if kind < 0.1:
        return chance.choice(SPACES)
    text = "".join(chance.choice(WORDS) + chance.choice([" "] * 6 + SPACES) for _ in range(chance.randrange(1, 12)))
    if chance.random() < 0.3:
        text = chance.choice(SPACES) + text
    if chance.random() < 0.5:
        text = text.rstrip()
    if chance.random() < 0.1:
        text = "<think>\n" + text + chance.choice(["</think>\n\n", "\n</think>", "</think>"]) + chance.choice(WORDS)
    return text


def conversation_make(chance):
    roles = ["system"] if chance.random() < 0.4 else []
    roles += ["assistant" if i % 2 else "user" for i in range(chance.randrange(1, 9))]
    if chance.random() < 0.08:
        chance.shuffle(roles)
    if chance.random() < 0.03:
        roles[chance.randrange(len(roles))] = chance.choice(["tool", "model", "developer", "System", ""])
    return [{"role": role, "content": text_make(chance)} for role in roles]


def value_make(chance, depth=0):
    """A value of JSON, with numbers and texts that are hard to write as Python does."""
    kind = chance.randrange(12 if depth < 3 else 9)
    if kind < 2:
        return chance.choice([0, -1, 10**30, -0.0, 0.1, 1e15, 1e16, 123456789.123, 1e-5, 1e-4, 5e-324, 1e22, 1 / 3])
    if kind == 2:
        return chance.choice([True, False, None])
    if kind < 9:
        return chance.choice(WORDS) + chance.choice(SPACES + ['"', "\\", "\x01", "\x7f", "/"])
    if kind < 10:
        return [value_make(chance, depth + 1) for _ in range(chance.randrange(4))]
    return {f"{chance.choice(WORDS)}{i}": value_make(chance, depth + 1) for i in range(chance.randrange(4))}


def record_make(chance):
    """A conversation in which tools are called, with the tools or without them."""
    messages = [{"role": "system", "content": text_make(chance)}] if chance.random() < 0.4 else []
    for _ in range(chance.randrange(1, 4)):
        messages.append({"role": "user", "content": text_make(chance)})
        while chance.random() < 0.5:
            arguments = {word: value_make(chance) for word in chance.sample(WORDS, 2)}
            call = {"name": "get", "arguments": json.dumps(arguments) if chance.random() < 0.2 else arguments}
            call = {"id": "abcdefghi", "type": "function", "function": call} if chance.random() < 0.9 else call
            calls = [call] * chance.choice([1, 1, 1, 2])
            content = {"content": chance.choice([None, "", text_make(chance)])} if chance.random() < 0.9 else {}
            messages.append({"role": "assistant", **content, "tool_calls": calls})
            for _ in calls:
                messages.append({"role": "tool", "content": text_make(chance), "tool_call_id": "abcdefghi"})
        messages.append({"role": "assistant", "content": text_make(chance)})
        if chance.random() < 0.1:
            messages[-1]["reasoning_content"] = text_make(chance)
    record = {"messages": messages}
    if chance.random() < 0.1:
        chance.choice([message for message in messages if "tool_calls" not in message])["tool_calls"] = []
    if chance.random() < 0.1:
        return {**record, "tools": []}
    if chance.random() < 0.6:
        function = {"name": "get", "description": chance.choice(WORDS), "parameters": value_make(chance)}
        record["tools"] = [{"type": "function", "function": function}] * chance.choice([1, 2])
    return record


def may_refuse_tools(name, record):
    """Whether tokmap refuses what the template writes without a part of it."""
    messages = record["messages"]
    if name == "llama3.1" and (record.get("tools") == [] or any(message.get("tool_calls") == [] for message in messages)):
        return True
    if name == "llama3.1" and any(message.get("tool_calls") and message.get("content") for message in messages):
        return True
    return name != "qwen3" and any(message.get("reasoning_content") for message in messages)


def tools_compare(name, tokenizer, records, original, packed):
    """Returns how the ids of records with tools differ from those of the original template, or None."""
    ids, _, refused = packed
    at = 0
    for i, record in enumerate(records):
        try:
            wanted = tokenizer.apply_chat_template(
                record["messages"], tools=record.get("tools"), chat_template=original, tokenize=True, return_dict=True
            )["input_ids"]
        except Exception:
            wanted = None
        if (i in refused) != (wanted is None or may_refuse_tools(name, record)):
            return f"{'refused' if i in refused else 'accepted'}: {record}"
        if i in refused:
            continue
        if wanted != ids[at : at + len(wanted)].tolist():
            got = tokenizer.decode(ids[at : at + len(wanted)])
            return f"ids of {record}:\n  {tokenizer.decode(wanted)!r}\n  {got!r}"
        at += len(wanted)
    return None if at == len(ids) else f"{len(ids) - at} ids are left over"


def may_refuse(name, messages):
    """Whether tokmap refuses a conversation that the template writes: it would leave out a message."""
    roles = [message["role"] for message in messages]
    if name in ("llama2", "mistral-v1", "mistral-v3", "mistral-v3-tekken", "gemma3") and roles == ["system"]:
        return True
    if name.startswith("mistral-v3") and roles[0] == "system" and roles[-1] != "user":
        return True
    if name == "deepseek-r1-distill" and roles.count("system") > 1:
        return True
    if name in TOOLS and "tool" in roles:
        return True  # the templates below write no results of tools
    open_roles = ("chatml", "gemma", "gemma3", "llama3", "llama3.1")
    if name == "llama2" and "system" in roles[1:]:
        return True
    return name not in open_roles and any(role not in ROLES for role in roles)


def written(tokenizer, messages, template):
    """The ids and the mask, or None if the template raises an exception."""
    try:
        made = tokenizer.apply_chat_template(
            messages, chat_template=template, tokenize=True, return_dict=True, return_assistant_tokens_mask=True
        )
    except Exception:
        return None
    return made["input_ids"], made["assistant_masks"]


def pack(tokmap, folder, path, choice, records, learn=None):
    """What tokmap writes: all ids, all bits of the mask, and the numbers of the refused conversations."""
    source, output, skipped = (os.path.join(folder, name) for name in ("in.jsonl", "out", "skipped"))
    with open(source, "w", encoding="utf-8") as file:
        for i, record in enumerate(records):
            record = record if isinstance(record, dict) else {"messages": record}
            file.write(json.dumps(record, ensure_ascii=i % 2 == 0) + "\n")
    command = [tokmap, "pack", "-q", "--force", "--no-eod", "-t", os.path.join(path, "tokenizer.json"), "--special"]
    command += ["recognize", "--messages-field", "messages", "--on-error", "skip", "--skipped-list", skipped, "-o"]
    command += [output] + (["--chat-template", choice] if choice else []) + (["--learn", learn] if learn else [])
    command += [source]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"not ok - {path}: {done.stderr}")
    info = json.loads(subprocess.run([tokmap, "info", "--json", output], capture_output=True, text=True).stdout)
    width = os.path.getsize(output + ".bin") // info["tokens"]
    ids = numpy.fromfile(output + ".bin", dtype=f"<u{width}")
    mask = numpy.unpackbits(numpy.fromfile(output + ".mask", dtype="u1"), bitorder="little")[: len(ids)]
    refused = set()
    if os.path.exists(skipped):
        with open(skipped, encoding="utf-8") as file:
            refused = {json.loads(line)["line"] - 1 for line in file}
    return ids, mask, refused


def compare(name, tokenizer, conversations, packed):
    """Returns what differs, or None."""
    ids, mask, refused = packed
    at = 0
    for i, messages in enumerate(conversations):
        wanted = written(tokenizer, messages, TEMPLATES[name][2])
        if i in refused:
            if wanted is not None and not may_refuse(name, messages):
                return f"refused: {messages}"
            continue
        if wanted is None or may_refuse(name, messages):
            return f"accepted: {messages}"
        count = len(wanted[0])
        if wanted[0] != ids[at : at + count].tolist():
            return f"ids of {messages}:\n  {wanted[0]}\n  {ids[at : at + count].tolist()}"
        if wanted[1] != mask[at : at + count].tolist():
            return f"mask of {messages}:\n  {wanted[1]}\n  {mask[at : at + count].tolist()}"
        at += count
    return None if at == len(ids) else f"{len(ids) - at} ids are left over"


ASSISTANT = "message['role'] == 'assistant' %}{% generation %}"


def learned(messages, words):
    """The messages with what --learn makes of each, which the templates read in place of the role."""
    roles = [word for word in words if word in (*ROLES, "tool")] or ["assistant"]
    own = [{"developer": "system"}.get(message["role"], message["role"]) for message in messages]
    last = max((i for i, role in enumerate(own) if role in roles), default=0)
    asked = max((i for i in range(last + 1) if own[i] == "user"), default=0) if "last" in words else 0
    made = []
    for i, message in enumerate(messages):
        said = own[i] in roles and i >= asked
        made.append({**message, "learned": bool(message.get("weight", said))})
    return made


def learn_compare(name, tokenizer, chance, tokmap, folder, path):
    """Returns how the mask of --learn differs from that of a template that is told what is learned, or None."""
    template = TEMPLATES[name][2]
    if ASSISTANT not in template or name in ("gemma3", "llama3.1", "qwen3"):
        return None  # it writes some messages elsewhere
    for _ in range(4):
        words = chance.sample([*ROLES, "last"], chance.randrange(1, 5))
        conversations = []
        for messages in (conversation_make(chance) for _ in range(40)):
            for message in messages:
                if chance.random() < 0.15:
                    message["weight"] = chance.choice([0, 1])
            if not may_refuse(name, messages) and written(tokenizer, messages, template):
                conversations.append(messages)
        ids, mask, refused = pack(tokmap, folder, path, name, conversations, ",".join(words))
        at = 0
        for messages in conversations if not refused else []:
            wanted = written(tokenizer, learned(messages, words), template.replace(
                ASSISTANT, "message['learned'] %}{% generation %}"))
            count = len(wanted[0])
            if wanted[1] != mask[at : at + count].tolist():
                return f"mask of {words}, {messages}:\n  {wanted[1]}\n  {mask[at : at + count].tolist()}"
            at += count
        if refused or at != len(ids):
            return f"{len(refused)} are refused, {len(ids) - at} ids are left over"
    return None


def originals_get(folder):
    """The templates in the package TRL, by name; empty if it cannot be had."""
    into = os.path.join(folder, "trl")
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--retries", "1", "--timeout", "30", "-d", into]
    subprocess.run(command + ["--disable-pip-version-check", TRL], capture_output=True)
    found = {}
    for wheel in glob.glob(os.path.join(into, "trl-*.whl")):
        with zipfile.ZipFile(wheel) as package:
            for path in package.namelist():
                if path.startswith("trl/chat_templates/") and path.endswith(".jinja"):
                    found[os.path.basename(path)[: -len(".jinja")]] = package.read(path).decode()
    return found


def originals_compare(name, tokenizer, conversations, originals):
    """Compares the template with its originals, whose text is the same."""
    for original in TEMPLATES[name][1]:
        for messages in conversations:
            if may_refuse(name, messages):
                continue
            texts = []
            for template in (TEMPLATES[name][2], originals[original]):
                try:
                    texts.append(tokenizer.apply_chat_template(messages, chat_template=template, tokenize=False))
                except Exception:
                    texts.append(None)
            if texts[0] != texts[1]:
                return f"{original} of {messages}:\n  {texts[1]!r}\n  {texts[0]!r}"
    return None


def main():
    tokmap, folder, vocabularies = sys.argv[1:4]
    count, seed = (int(argument) for argument in (sys.argv[4:] + ["200", "1"][len(sys.argv) - 4 :]))
    originals = originals_get(folder)
    names = [name for name in TEMPLATES if os.path.exists(os.path.join(vocabularies, TEMPLATES[name][0]))]
    failed = 0
    print(f"1..{2 * len(names)}")
    for number, name in enumerate(names):
        path, bos, eos = vocabulary(folder, vocabularies, name)
        tokenizer = PreTrainedTokenizerFast(
            tokenizer_file=os.path.join(path, "tokenizer.json"), bos_token=bos, eos_token=eos
        )
        chance = random.Random(f"{seed} {name}")
        conversations = [conversation_make(chance) for _ in range(count)]
        wrong = compare(name, tokenizer, conversations, pack(tokmap, folder, path, name, conversations))
        wrong = wrong or learn_compare(name, tokenizer, chance, tokmap, folder, path)
        print(f"{'not ok' if wrong else 'ok'} {2 * number + 1} - {name}, {count} conversations")
        failed += wrong is not None
        if wrong:
            print("# " + wrong.replace("\n", "\n# "))
        if not originals or not TEMPLATES[name][1]:
            print(f"ok {2 * number + 2} - {name}: its original # SKIP it is not at hand")
            continue
        for original in TEMPLATES[name][1]:
            with open(os.path.join(path, "chat_template.jinja"), "w", encoding="utf-8", newline="") as file:
                file.write(originals[original])
        few = conversations[:100]
        wrong = originals_compare(name, tokenizer, few, originals)
        wrong = wrong or compare(name, tokenizer, few, pack(tokmap, folder, path, None, few))
        if name in TOOLS and not wrong:
            records = [record_make(chance) for _ in range(count)]
            packed = pack(tokmap, folder, path, None, records)
            wrong = tools_compare(name, tokenizer, records, originals[TEMPLATES[name][1][0]], packed)
        print(f"{'not ok' if wrong else 'ok'} {2 * number + 2} - {name}: its original")
        failed += wrong is not None
        if wrong:
            print("# " + wrong.replace("\n", "\n# "))
    sys.exit(1 if failed else 0)


main()
