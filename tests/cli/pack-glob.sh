# SPDX-License-Identifier: MIT
# ci: nonroot
# Patterns with two stars match the files that Python's glob(recursive=True) matches, in byte order of path.
. "$TOKMAP_CLI/helpers.sh"
command -v python3 >/dev/null 2>&1 || skip 'python3 is missing'
cat >compare.py <<'END'
import glob, json, os, random, shutil, subprocess
random.seed(7)
names = ['a', 'b', 'ab', '.h', 'c.txt', 'd.txt', '\u00e9.txt', 'x y', '[z]']

def tree(path, depth):
    os.mkdir(path)
    for name in random.sample(names, random.randrange(1, 6)):
        below = os.path.join(path, name)
        if depth < 4 and '.txt' not in name and random.random() < 0.6:
            tree(below, depth + 1)
        else:
            with open(below, 'w') as file:
                file.write('=' + below)
    if depth and random.random() < 0.2: # a link to a folder beside it, which leads nowhere back
        others = [e.name for e in os.scandir(path) if e.is_dir(follow_symlinks=False)]
        if others:
            os.symlink(random.choice(others), os.path.join(path, 'link'))

compared = 0
for number in range(60):
    tree('t', 0)
    for _ in range(4):
        parts = [random.choice(['**', '**', '*', 'a', 'b*', '?', '[ab]', '*.txt', '.*', '[!a]*'])
                 for _ in range(random.randrange(1, 4))]
        if '**' not in parts:
            parts[random.randrange(len(parts))] = '**'
        for pattern in ('t/' + '/'.join(parts), '/'.join(parts), './t/' + '/'.join(parts)):
            if not pattern.startswith(('t/', './t')):
                pattern = pattern if random.random() < 0.3 else '**/' + pattern
            wanted = sorted({p for p in glob.glob(pattern, recursive=True) if os.path.isfile(p)}, key=os.fsencode)
            wanted = [p for p in wanted if 't/' in p] # not the files of this test
            run = subprocess.run(['tokmap', 'encode', '--input-format', 'text', '--output-format', 'jsonl', pattern],
                                 capture_output=True)
            if not wanted:
                continue
            assert run.returncode == 0, (pattern, run.stderr, wanted)
            got = [bytes(json.loads(line)).decode() for line in run.stdout.splitlines()]
            got = [text[1:] for text in got if text.startswith('=')]
            # A file under a link contains its path without the link.
            same = [open(p).read()[1:] for p in wanted]
            assert got == same, (pattern, got, same)
            compared += 1
    shutil.rmtree('t')
assert compared > 200, compared
END
python3 compare.py
