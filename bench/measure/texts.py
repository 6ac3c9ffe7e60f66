# SPDX-License-Identifier: MIT
"""Makes the texts of the case tokenize from Debian packages: prose.txt, code.txt, mixed.txt, cjk.txt.

    python3 texts.py FOLDER

Downloads the packages that tokmap-bench-text(7) names with `apt-get download` (no root needed),
unpacks them with dpkg-deb, and writes up to 64 MiB of each kind: the files of the packages in turn, HTML without markup
and scripts, only lines of more than 24 characters, each of them once, and for mixed and cjk only lines that have such
characters. A package that the distribution does not have is left out with a message.
"""
import glob
import gzip
import html
import os
import re
import subprocess
import sys
import tarfile
import tempfile

MOST = 64 << 20
HELP = "libreoffice-help-"
KINDS = {
    "prose": (["perl-doc", "postgresql-doc-*", "python3.*-doc", "linux-doc-*", "rust-doc"], r"\.(html|txt)(\.gz)?$", None),
    "code": (["linux-source-6.*"], r"\.(c|h|py|S|sh)$", None),
    "cjk": ([HELP + name for name in ("zh-cn", "zh-tw", "ja")]
            + ["manpages-zh", "manpages-ja", "debian-reference-zh-cn", "debian-reference-ja"],
            r"(\.html|/man/.*\.gz)$", "[\u3040-\u30ff\u3400-\u9fff]"),
    "mixed": ([HELP + name for name in ("ru", "hi", "ko", "el", "km", "dz", "zh-cn", "ja", "fr")]
              + ["manpages-ru", "manpages-uk"], r"(\.html|/man/.*\.gz)$", "[\u0080-\uffff]"),
}


def say(text):
    print("texts:", text, file=sys.stderr, flush=True)


def packages(pattern):
    """The newest package of the distribution whose name matches, in a list, which is empty if there is none."""
    if "*" not in pattern:
        return [pattern]
    listed = subprocess.run(["apt-cache", "pkgnames"], capture_output=True, text=True, check=False).stdout.split()
    whole = re.compile(re.escape(pattern).replace(r"\*", r"[0-9.]*\d") + "$")
    found = [name for name in listed if whole.match(name)]
    return sorted(found, key=lambda name: [int(n) for n in re.findall(r"\d+", name)])[-1:]


def unpack(name, folder):
    """Downloads and unpacks a package below the folder. Returns whether that succeeded."""
    if subprocess.run(["apt-get", "-q", "download", name], cwd=folder, stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL, check=False).returncode:
        say(f"{name} cannot be downloaded; it is left out")
        return False
    for file in glob.glob(os.path.join(folder, name + "_*.deb")):
        subprocess.run(["dpkg-deb", "-x", file, os.path.join(folder, name)], check=True)
        os.remove(file)
    for file in glob.glob(os.path.join(folder, name, "usr/src/linux-source-*.tar.xz")):
        with tarfile.open(file) as archive:
            for member in archive:
                if member.isfile() and re.search(KINDS["code"][1], member.name) and ".." not in member.name:
                    archive.extract(member, os.path.join(folder, name))
        os.remove(file)
    return True


def files_in_turn(folders, wanted):
    """Yields the wanted files: the first of each package, then the second of each, and so on."""
    lists = [sorted(os.path.join(top, file) for top, _, files in os.walk(folder) for file in files
                    if re.search(wanted, os.path.join(top, file))) for folder in folders]
    for turn in range(max(map(len, lists), default=0)):
        for found in lists:
            if turn < len(found) and not os.path.islink(found[turn]):
                yield found[turn]


def text_of(path):
    """The text of a file, without markup if it is HTML; nothing if it is not UTF-8."""
    opened = gzip.open if path.endswith(".gz") else open
    try:
        with opened(path, "rb") as file:
            text = file.read().decode()
    except (UnicodeDecodeError, OSError, EOFError):
        return ""
    if ".html" in path:
        text = re.sub(r"(?is)<(script|style)\b.*?</\1\s*>", " ", text)
        text = html.unescape(re.sub(r"(?s)<[^>]*>", "", text))
    return text


def make(out, paths, characters):
    """Writes the lines that count, each once, up to MOST bytes. Returns the bytes written."""
    seen, size = set(), 0
    with open(out + ".new", "wb") as file:
        for path in paths:
            for line in text_of(path).splitlines():
                key = hash(line)
                if len(line) <= 24 or key in seen or (characters and not re.search(characters, line)):
                    continue
                seen.add(key)
                data = (line + "\n").encode(errors="ignore")
                if size + len(data) > MOST:
                    os.rename(out + ".new", out)
                    return size
                size += file.write(data)
    os.rename(out + ".new", out)
    return size


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    folder = os.path.abspath(sys.argv[1])
    os.makedirs(folder, exist_ok=True)
    for kind, (patterns, wanted, characters) in KINDS.items():
        out = os.path.join(folder, kind + ".txt")
        if os.path.exists(out):
            continue
        with tempfile.TemporaryDirectory(dir=folder) as work:
            os.chmod(work, 0o755)  # apt-get downloads as another user
            names = [name for pattern in patterns for name in packages(pattern)]
            found = [os.path.join(work, name) for name in names if unpack(name, work)]
            if not found:
                raise SystemExit(f"texts: no package for {kind} could be downloaded; run apt-get update first")
            say(f"{kind}.txt: {make(out, files_in_turn(found, wanted), characters):,} bytes from {len(found)} packages")


if __name__ == "__main__":
    main()
