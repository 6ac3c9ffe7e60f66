#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the documentation as one static folder: site.py FOLDER. `make site` calls it.

The pages are the README, the other Markdown pages, the manual pages, and the comments of the public headers. lowdown
converts Markdown, and mandoc the manual pages. The site needs no server and no network: links are relative, and the
search reads search-index.js, a list of all sections as JSON.
"""
import glob
import html
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
PROJECT = ["CHANGELOG", "COMPATIBILITY", "SECURITY", "CONTRIBUTING", "RESULTS", "SCALE", "WORK", "ROOMS"]
SPECIFICATIONS = ["FORMAT", "RUN", "ORDER"]
HEADERS = ["tokmap", "error", "dataset", "run", "loader", "order", "cuda", "pack", "tokenizer"]
CHANGELOG = ".github/CHANGELOG.md"  # is joined of the files in .github/changelog; links to these lead to it
NOT_PAGES = re.compile(r"(build|tests|bench/measure|\.github/(packaging|ISSUE_TEMPLATE|site|changelog))/|"
                       r".*(TEMPLATE|\.template\.)")


class Page:
    """A page of the site: its source, the name of its file, its title, and its body as HTML."""

    def __init__(self, source, name, title, label=None):
        self.source, self.name, self.title, self.label = source, name, title, label or title
        self.body, self.previous, self.next = "", None, None


def run(*command, text=""):
    return subprocess.run(command, cwd=TOP, check=True, input=text.encode(), stdout=subprocess.PIPE).stdout.decode()


def read(path):
    if path == CHANGELOG:
        return run("sh", "src/make/changelog.sh", ".github/changelog")
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        return file.read()


def found(*patterns):
    """Returns the paths of files below TOP that match, without hidden folders other than .github."""
    paths = set()
    for pattern in patterns:
        paths.update(os.path.relpath(path, TOP) for path in glob.glob(os.path.join(TOP, pattern), recursive=True))
    return sorted(path for path in paths if not NOT_PAGES.match(path))


def plain(text):
    """Returns the text of HTML without its tags."""
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", "", text))).strip()


def slug(text, used):
    """Returns the id of a heading as GitHub makes it, so that links between Markdown files keep their meaning."""
    base = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") or "section"
    name, number = base, 0
    while name in used:
        number += 1
        name = f"{base}-{number}"
    used.add(name)
    return name


# ---- which pages there are ----
def markdown_page(path):
    folder, stem = os.path.split(path[:-len(".md")])
    if path == "README.md":
        return Page(path, "index.html", "tokmap", "Introduction")
    name = os.path.basename(folder) if stem == "README" else stem.lower()
    title = re.search(r"^# (.*)", read(path), re.M)
    return Page(path, name + ".html", title.group(1).replace("`", "") if title else stem)


def manual_page(path):
    name = os.path.basename(path)
    return Page(path, name + ".html", "{}({})".format(*name.rsplit(".", 1)))


def groups():
    """Returns the groups of the navigation: pairs of a title and its pages, in the order of reading."""
    markdown = {path: markdown_page(path) for path in [*found("*.md", ".github/*.md", "*/**/*.md"), CHANGELOG]}
    by_stem = {os.path.basename(path)[:-3]: page for path, page in markdown.items() if path[-9:] != "README.md"}
    fixed = [by_stem.get(name) for name in [*PROJECT, *SPECIFICATIONS, "INSTALL"]]
    readme = read("README.md")
    guides = [path for path, page in markdown.items() if page not in fixed and path != "README.md"]
    guides.sort(key=lambda path: (readme.find(path) if path in readme else len(readme), path))
    manual = sorted((manual_page(path) for path in found("tokenize_tools/man/*.[1-9]", "bench/man/*.[1-9]")),
                    key=lambda page: page.title.replace("(", " "))
    headers = [Page(path, os.path.basename(path) + ".html", "tokmap/" + os.path.basename(path))
               for path in sorted(found("include/tokmap/*.h"), key=lambda path: header_order(os.path.basename(path)))]
    def section(*numbers):
        return [page for page in manual if page.source[-1] in numbers]
    listed = [("Start", [markdown["README.md"], by_stem.get("INSTALL")]),
              ("Guides", [markdown[path] for path in guides if not path.startswith("src/python/")]),
              ("Python", [markdown[path] for path in guides if path.startswith("src/python/")]),
              ("Commands", section("1")), ("Files and concepts", section("5", "7")), ("C interface", headers),
              ("Specifications", [by_stem.get(name) for name in SPECIFICATIONS]),
              ("Project", [by_stem.get(name) for name in PROJECT])]
    return [(title, [page for page in pages if page]) for title, pages in listed if any(pages)]


def header_order(name):
    return (HEADERS.index(name[:-2]) if name[:-2] in HEADERS else len(HEADERS), name)


# ---- what they contain ----
def code(text, language=""):
    """Returns code as HTML; comments have a class."""
    comments = r"/\*.*?\*/|//[^\n]*" if language == "c" else r"(?<![^\s])#[^\n]*"
    parts, at = [], 0
    for match in re.finditer(comments, text, re.S):
        parts += [html.escape(text[at:match.start()], False),
                  f'<span class="comment">{html.escape(match.group(), False)}</span>']
        at = match.end()
    return "<pre>" + "".join(parts) + html.escape(text[at:], False) + "</pre>"


def markdown_body(page):
    text = run("lowdown", "-t", "html", "--parse-no-metadata", "--out-no-smarty", "--html-no-skiphtml",
               "--html-no-escapehtml", "--html-no-num-ent", text=read(page.source))
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    text = re.sub(r'<pre><code(?: class="language-(\w*)")?>(.*?)</code></pre>',
                  lambda m: code(html.unescape(m.group(2)), m.group(1) or ""), text, flags=re.S)
    return re.sub(r"<table.*?</table>", r'<div class="wide">\g<0></div>', text, flags=re.S)


def manual_body(page):
    text = run("mandoc", "-Thtml", "-O", "fragment,man=%N.%S.html", page.source)
    text = re.sub(r'<table class="(head|foot)">.*?</table>', "", text, flags=re.S)
    text = re.sub(r'<a class="permalink" href="#[^"]*">(.*?)</a>', r"\1", text, flags=re.S)
    text = re.sub(r'<a class="In">(.*?)</a>', r"\1", text)
    text = re.sub(r'<p class="Pp">\s*</p>', "", text)
    about = plain(re.search(r'<span class="Nd">(.*?)</span>', text, re.S).group(1))
    text = re.sub(r'<section class="Sh">\s*<h1 class="Sh" id="NAME">.*?</section>', "", text, count=1, flags=re.S)
    text = re.sub(r"<(/?)h([12])", lambda m: f"<{m.group(1)}h{int(m.group(2)) + 1}", text)
    text = re.sub(r'(<h2[^>]*>)(.*?)(</h2>)',
                  lambda m: m.group(1) + (m.group(2).capitalize() if m.group(2).isupper() else m.group(2)) + m.group(3),
                  text, flags=re.S)
    text = re.sub(r'(?:<div class="Bd Bd-indent"><code class="Li">[^<]*</code></div>\s*)+',
                  lambda m: "<pre>" + "\n".join(re.sub(r"\s+", " ", line) for line in
                                                re.findall(r'class="Li">([^<]*)<', m.group())) + "</pre>", text)
    text = re.sub(r'<table class="Bl-column.*?</table>', r'<div class="wide">\g<0></div>', text, flags=re.S)
    lead = about[:1].upper() + about[1:]
    return f'<h1>{page.title}</h1>\n<p class="lead">{html.escape(lead)}.</p>\n<div class="manual">{text}</div>'


NAMES = (r"^(?:struct|enum|union) (tokmap_\w+)(?= \{|;)", r"^TOKMAP_API [^;]*?\b(tokmap_\w+)\(",
         r"\b(tokmap_\w+)\((?!\*)", r"^typedef .*\(\*(tokmap_\w+)\)", r"^typedef .*\b(tokmap_\w+);",
         r"^#define (TOKMAP_\w+)")


def header_blocks(text):
    """Yields pairs of a comment and the declarations below it. A comment that is a heading has no declarations."""
    comment, declaration = "", []
    inside = False
    for line in text.split("\n") + [""]:
        if inside or line.startswith("/*") and not declaration:
            if not inside and comment:
                yield comment, ""
            comment = comment + "\n" + line if inside else line
            inside = "*/" not in line
        elif line.strip() and line != "}":
            declaration.append(line)
        elif comment or declaration:
            yield comment, "\n".join(declaration)
            comment, declaration = "", []


def comment_html(comment):
    """Returns a comment as HTML: paragraphs, lists of arguments, and code."""
    lines = [re.sub(r"^ \*(?: |$)", "", line) for line in re.sub(r"^/\*|\*/$", "", comment.strip()).split("\n")]
    lines[0] = lines[0].strip()
    out, at = [], 0
    while at < len(lines):
        if lines[at].strip() == "@code":
            end = lines.index("@endcode", at)
            out.append(code("\n".join(line[4:] for line in lines[at + 1:end]), "c"))
            at = end + 1
            continue
        item = re.match(r"  (\*?[\w.]+(?:, \w+)*)  +(.*)", lines[at])
        begin, indent = at, len(lines[at]) - len(lines[at].lstrip())
        at += 1
        while at < len(lines) and lines[at].strip() and lines[at].strip() != "@code" and (
                lines[at].startswith("   ") if item else not re.match(r"  [\w.]+  +", lines[at])
                and len(lines[at]) - len(lines[at].lstrip()) >= (2 if indent >= 2 else 0)
                and (indent >= 2 or not lines[at].startswith("  "))):
            at += 1
        if item:
            parts, last = [("p", item.group(2))], 0
            for line in lines[begin + 1:at]:
                extra = len(line) - len(line.lstrip()) - item.start(2)
                if extra == 2 or extra <= 0 < last:
                    parts.append(("li" if extra == 2 else "p", line.strip()))
                else:
                    parts[-1] = (parts[-1][0], parts[-1][1] + " " + line.strip())
                last = extra
            told = "".join(f"<{kind}>{inline(part)}</{kind}>" for kind, part in parts)
            told = told.replace("</p><li>", "</p><ul><li>").replace("</li><p>", "</li></ul><p>")
            told += "</ul>" if told.endswith("</li>") else ""
            out.append(f"<dl><dt><code>{item.group(1)}</code></dt><dd>{told}</dd></dl>")
        elif "".join(lines[begin:at]).strip():
            out.append(f"<p{' class=inset' if indent >= 2 else ''}>"
                       + inline(" ".join(line.strip() for line in lines[begin:at])) + "</p>")
    return "".join(out).replace("</dl><dl>", "").replace("<p class=inset>", '<p class="inset">')


def members(declaration):
    """Returns a table of the members of a struct or the values of an enumeration, the names of the values, and the
    declarations after it. The table is empty if there are nested types or macros."""
    match = re.match(r"(?:struct|(enum)) (\w+) \{\n(.*?)\n\};\n?(.*)", declaration, re.S)
    if not match or re.search(r"[{#]", re.sub(r"/\*.*?\*/", "", match.group(3), flags=re.S)):
        return "", [], declaration
    rows, told, body = [], "", match.group(3)
    for token in re.finditer(r"/\*.*?\*/|[^,/]+,?" if match.group(1) else r"/\*.*?\*/|[^;/]+;", body, re.S):
        text = re.sub(r"\s*\n(?: *\* )?\s*", " ", re.sub(r"^/\*|\*/$", "", token.group().strip())).strip(" ;,\n")
        if token.group().startswith("/*") and rows and "\n" not in body[rows[-1][2]:token.start()]:
            rows[-1][1] += " " + text
        elif token.group().startswith("/*"):
            told = text
        elif text:
            rows.append([text, told, token.end()])
            told = ""
    values = [name.split()[0] for name, _, _ in rows] if match.group(1) else []
    table = "".join(f"<tr{f' id={chr(34)}{name.split()[0]}{chr(34)}' if values else ''}><td><code>"
                    f"{html.escape(name, False)}</code></td><td>{inline(about)}</td></tr>" for name, about, _ in rows)
    after = re.sub(r"#define (TOKMAP_\w+_INIT)\b(?:.*\\\n)*.*", rf"struct {match.group(2)} x = \1; /* the defaults */",
                   match.group(4))
    return f'<table class="members">{table}</table>', values, after


def inline(text):
    text = html.escape(text, False)
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    text = re.sub(r"(?<![\w*])\*(\w[\w ]*)\*(?!\w)", r"<em>\1</em>", text)
    text = re.sub(r"\bsrc/\w+/[A-Z]+\.md\b", r'<a href="../../\g<0>">\g<0></a>', text)
    return re.sub(r"(?<![\w/<>.-])(tokmap_\w+|TOKMAP_\w+)(\(\))?(?!\w)", r"<code>\1\2</code>", text)


def header_body(page, names):
    out, used, heading = [f"<h1>{page.title}</h1>"], set(), False
    for comment, declaration in header_blocks(read(page.source)):
        if re.match(r"#(ifndef|ifdef|include|if|endif|undef)\b|extern|SPDX", declaration) or "SPDX-License" in comment:
            declaration = ""
        title = re.match(r"/\* -{4,} (.*?) -{4,} ?\*/", comment)
        if title:
            out.append(f"<h2>{title.group(1).capitalize()}</h2>")
            heading = True
            continue
        bare = re.sub(r"/\*.*?\*/", "", declaration, flags=re.S)
        found_names = [name for pattern in NAMES for name in re.findall(pattern, bare, re.M)]
        found_names = [name for name in dict.fromkeys(found_names) if name not in used and not name.endswith("_H")]
        used.update(found_names)
        if found_names:
            if not heading:
                out.append("<h2>Declarations</h2>")
                heading = True
            names.update({name: f"{page.name}#{name}" for name in found_names})
            first, *others = found_names
            kind = re.match(r"(struct |enum )\w+ \{", bare)
            out.append(f'<h3 id="{first}"><code>{kind.group(1) if kind else ""}{first}</code></h3>')
            out += [f'<a id="{name}"></a>' for name in others]
        if comment and "SPDX-License" not in comment:
            if len(out) == 1:
                comment = re.sub(r"(?<=\n \* )[\w.]+ - (\w)", lambda m: m.group(1).upper(), comment, count=1)
            told = comment_html(comment)
            out.append(told if len(out) > 1 else told.replace("<p>", '<p class="lead">', 1))
        table, values, declaration = members(declaration)
        names.update({name: f"{page.name}#{name}" for name in values})
        out += [table] if table else []
        if declaration and found_names:
            out.append(code(re.sub(r"TOKMAP_API (TOKMAP_MUST_CHECK )?", "", declaration), "c"))
    return "\n".join(out)


# ---- links, headings, and the frame around the body ----
def link_pages(page, by_source, names, folder):
    """Makes links of the body lead to pages of this site. Other links to files become text. Copies pictures."""
    def target(match):
        href, inner = html.unescape(match.group(1)), match.group(2)
        if re.match(r"https?:|mailto:|#", href):
            return match.group()
        path, _, anchor = href.partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(page.source), path))
        path = CHANGELOG if path.startswith(".github/changelog") else path
        if page.source[-2:] in (".1", ".5", ".7"):
            path = next((source for source in by_source if by_source[source].name == os.path.basename(href)), "")
        other = by_source.get(path)
        if not other:
            return inner
        return f'<a href="{other.name}{"#" + anchor if anchor else ""}">{inner}</a>'

    def picture(match):
        path = os.path.normpath(os.path.join(os.path.dirname(page.source), html.unescape(match.group(2))))
        shutil.copy(os.path.join(TOP, path), folder)
        return f'{match.group(1)}"{os.path.basename(path)}"'

    def named(match):
        name, text = match.group(2), match.group(0)
        to = names.get(name) or next((p.name for p in by_source.values() if p.title == name), None)
        return f'<a href="{to}">{text}</a>' if to and to.split("#")[0] != page.name or name in names else text

    body = re.sub(r'<a [^>]*?href="([^"]*)"[^>]*>(.*?)</a>', target, page.body, flags=re.S)
    body = re.sub(r'(<img [^>]*?src=)"([^"]*)"', picture, body)
    parts = re.split(r"(<a .*?</a>|<h\d.*?</h\d>|<pre>.*?</pre>)", body, flags=re.S)
    parts[::2] = [re.sub(r"<code( [^>]*)?>(tokmap_\w+|TOKMAP_\w+|tokmap[\w-]*\(\d\))(\(\))?</code>", named, part)
                  for part in parts[::2]]
    return "".join(parts)


def number_headings(page):
    """Gives all headings ids and links to themselves. Returns the list of (level, id, text)."""
    headings, used = [], set(re.findall(r'\bid="([^"]*)"', re.sub(r"<h\d[^>]*>", "", page.body)))
    def heading(match):
        level, attributes, inner = int(match.group(1)), match.group(2), match.group(3)
        own = re.search(r'id="([^"]*)"', attributes) if page.source[-3:] != ".md" else None
        name = own.group(1) if own else slug(plain(inner), used)
        used.add(name)
        if level > 1:
            headings.append((level, name, re.sub(r"^(struct|enum) (?=tokmap_)", "", plain(inner))))
        link = f'<a class="self" href="#{name}" aria-label="link to this section"></a>'
        return f'<h{level} id="{name}">{inner}{link}</h{level}>'
    page.body = re.sub(r"<h(\d)([^>]*)>(.*?)</h\1>", heading, page.body, flags=re.S)
    return headings


def contents(headings):
    shown = [(level, name, text) for level, name, text in headings if level <= 3 and not text.endswith("_INIT")]
    return "".join(f'<li class="level{level}"><a href="#{name}">{html.escape(text, False)}</a></li>'
                   for level, name, text in shown)


def navigation(listed, current):
    out = []
    for title, pages in listed:
        links = "".join('<li><a href="{}"{}>{}</a></li>'.format(
            page.name, ' aria-current="page"' if page is current else "", html.escape(page.label)) for page in pages)
        out.append(f"<p>{title}</p><ul>{links}</ul>")
    return "".join(out)


def sections(page):
    """Returns the page for the search: [address, title, text] of each section."""
    parts = re.split(r'<h[1-6] id="([^"]*)">(.*?)</h[1-6]>', page.body, flags=re.S)
    entries = []
    for at in range(1, len(parts), 3):
        heading, text = plain(parts[at + 1]), plain(re.sub(r"</(?:p|dd|dt|td|li|pre)>", " ", parts[at + 2]))
        title = page.title if heading == page.title else f"{page.title}: {heading}"
        entries.append([f"{page.name}#{parts[at]}" if at > 1 else page.name, title, text])
    return entries


def main(folder):
    missing = [tool for tool in ("lowdown", "mandoc") if not shutil.which(tool)]
    if missing:
        sys.exit(f"make site: {' and '.join(missing)} missing; install with: apt-get install {' '.join(missing)}")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    listed = groups()
    pages = [page for _, group in listed for page in group]
    by_source, names, index = {page.source: page for page in pages}, {}, []
    by_name = {page.name: page.source for page in pages}
    for page in pages:
        if by_name[page.name] != page.source:
            sys.exit(f"make site: {page.source} and {by_name[page.name]} would both be {page.name}; rename one")
    for previous, following in zip(pages, pages[1:]):
        previous.next, following.previous = following, previous
    for page in pages:
        kind = page.source[-2:]
        page.body = (markdown_body(page) if kind == "md" else header_body(page, names) if kind == ".h"
                     else manual_body(page))
    frame = read(os.path.join(HERE, "page.html")).split("-->\n", 1)[1]
    for page in pages:
        headings = number_headings(page)
        page.body = link_pages(page, by_source, names, folder)
        index += sections(page)
        turn = "".join(f'<a rel="{rel}" href="{to.name}"><small>{word}</small>{html.escape(to.label)}</a>'
                       for rel, word, to in (("prev", "Previous", page.previous), ("next", "Next", page.next)) if to)
        title = page.title if page.title == "tokmap" else page.title + " - tokmap"
        values = {"title": html.escape(title), "navigation": navigation(listed, page), "body": page.body,
                  "contents": contents(headings), "turn": turn}
        with open(os.path.join(folder, page.name), "w", encoding="utf-8") as file:
            file.write(re.sub(r"\{(\w+)\}", lambda m: values[m.group(1)], frame))
    with open(os.path.join(folder, "search-index.js"), "w", encoding="utf-8") as file:
        file.write("searchIndex(" + json.dumps(index, ensure_ascii=False, separators=(",", ":")) + ");\n")
    for name in ("site.css", "search.js"):
        shutil.copy(os.path.join(HERE, name), folder)
    print(f"{len(pages)} pages in {os.path.relpath(folder)}: open {os.path.relpath(folder)}/index.html")


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
