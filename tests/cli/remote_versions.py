# SPDX-License-Identifier: MIT
# The test pack-remote-killed.sh. Prints nothing if all is well.
import email.utils, os, shutil, subprocess, threading, time
import remote_server
from remote_server import DATE, FILES, NEXT_DATE

for name in list(os.environ):
    if name.lower().endswith('_proxy') or name.startswith('AWS_'):
        del os.environ[name]
HALF = 4 << 20  # bytes after which the server waits, as long as it holds the answers
hold = threading.Event()  # is set: answers are whole
version = {}


class Handler(remote_server.Handler):
    def fault_held(self, number, body, first, ranged, name):
        tag, modified = version['tag'], version['modified']
        self.send_response(200)
        for header, value in (('ETag', tag), ('Last-Modified', modified)):
            if value:
                self.send_header(header, value)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        if not hold.is_set():
            self.wfile.write(body[:HALF])
            hold.wait(60)
            self.close_connection = True
            return
        self.wfile.write(body)


server, base = remote_server.start(Handler)
os.environ.update(HOME=os.getcwd(), AWS_ENDPOINT_URL=base.rstrip('/'), AWS_ACCESS_KEY_ID='x', AWS_SECRET_ACCESS_KEY='y')


def lines(word, count=160000):
    return b''.join(b'{"text": "line %06d of version %s"}\n' % (i, word) for i in range(count))


def table(word):
    return b'text,n\n' + b''.join(b'"line ""%06d"" of version %s",%d\n' % (i, word, i) for i in range(160000))


def tokens(*names):
    """Packs local files, and returns the tokens."""
    subprocess.run(['tokmap', 'pack', '-q', '--force', '-o', 'l', *names], check=True, stdin=subprocess.DEVNULL)
    with open('l.bin', 'rb') as file:
        return file.read()


def words(*inputs):
    return ['tokmap', 'pack', '-q', '--threads', '1', '--checkpoint-seconds', '0.001', '-o', 'k', *inputs]


def begin(kept, *inputs):
    """Kills a pack that waits in the middle of a URL. kept: whether it has work that can be continued."""
    shutil.rmtree('k.work', ignore_errors=True)
    for name in os.listdir():
        if name.startswith('k.') and os.path.isfile(name):
            os.unlink(name)
    hold.clear()
    process = subprocess.Popen(words(*inputs), stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (os.path.exists('k.work/journal') if kept else
               os.path.exists('k.bin.partial') and os.path.getsize('k.bin.partial') > 1 << 20):
        assert process.poll() is None, process.returncode
        time.sleep(0.01)
    time.sleep(0.1)
    process.kill()
    process.wait()
    hold.set()
    assert os.path.exists('k.work/journal') == kept, kept


def again(*inputs):
    return subprocess.run(words(*inputs), stdin=subprocess.DEVNULL, capture_output=True, text=True)


def done(result, wanted):
    assert result.returncode == 0, result.stderr
    with open('k.bin', 'rb') as file:
        assert file.read() == wanted, 'other tokens than those of one version'
    assert not os.path.exists('k.work'), os.listdir()


ONE, TWO = {'f.jsonl': lines(b'one'), 'f.csv': table(b'one')}, {'f.jsonl': lines(b'two'), 'f.csv': table(b'two')}
LONGER = {'f.jsonl': lines(b'two', 170000), 'f.csv': table(b'two') + b'more,1\n'}
csv = ['--input-format', 'csv']
for name, content in ONE.items():
    with open(name, 'wb') as file:
        file.write(content)
with open('two.jsonl', 'wb') as file:
    file.write(TWO['f.jsonl'])
wanted = {'f.jsonl': tokens('f.jsonl'), 'f.csv': tokens(*csv, 'f.csv')}
two = tokens('two.jsonl')

# ---- the server names a version ----
for url, tag, modified, next_tag, next_modified, next_files, said in (
        ('held/f.jsonl', '"one"', None, '"two"', None, TWO, 'another ETag or date'),
        ('held/f.jsonl', None, DATE, None, NEXT_DATE, TWO, 'another ETag or date'),
        ('held/f.jsonl', '"one"', DATE, '"two"', DATE, TWO, 'another ETag or date'),
        ('held/f.jsonl', '"one"', DATE, None, None, TWO, 'another ETag or date'),
        ('held/f.jsonl', 'W/"one"', DATE, 'W/"one"', NEXT_DATE, TWO, 'another ETag or date'),
        ('held/f.jsonl', None, DATE, '"one"', NEXT_DATE, TWO, 'another ETag or date'),
        ('held/f.jsonl', '"one"', DATE, '"one"', DATE, LONGER, 'bytes when this work began, and now it has'),
        ('held/f.csv', '"one"', DATE, '"two"', DATE, TWO, 'another ETag or date'),
        ('held/f.csv', 'W/"one"', DATE, 'W/"one"', DATE, LONGER, 'bytes when this work began, and now it has'),
        ('s3', '"one"', DATE, '"two"', NEXT_DATE, TWO, 'another ETag or date')):
    name = 's3://held/f.jsonl' if url == 's3' else base + url
    inputs = (csv if name.endswith('csv') else []) + [name]
    FILES.update(ONE)
    version.update(tag=tag, modified=modified)
    begin(True, *inputs)
    FILES.update(next_files)
    version.update(tag=next_tag, modified=next_modified)
    result = again(*inputs)
    assert result.returncode == 1 and said in result.stderr, (url, result.returncode, result.stderr)
    assert name + ': this input' in result.stderr and 'the same command continues it' in result.stderr, result.stderr
    FILES.update(ONE)
    version.update(tag=tag, modified=modified)
    done(again(*inputs), wanted['f.csv' if name.endswith('csv') else 'f.jsonl'])

# ---- it does not: a weak ETag, and a date of just now, name none ----
NOW = email.utils.formatdate(time.time() + 3600, usegmt=True)
for tag, modified in ((None, None), ('W/"one"', None), ('W/"one"', NOW), (None, NOW), (None, 'yesterday')):
    FILES.update(ONE)
    version.update(tag=tag, modified=modified)
    begin(False, base + 'held/f.jsonl')
    FILES.update(TWO)
    result = again(base + 'held/f.jsonl')
    done(result, two)
    assert base + 'held/f.jsonl: the server names no version of this file' in result.stderr, result.stderr

# What precedes such a file is not read again, also if it is one.
version.update(tag=None, modified=None)
FILES.update(ONE)
FILES['first.jsonl'] = lines(b'zero')
with open('first.jsonl', 'wb') as file:
    file.write(FILES['first.jsonl'])
both = tokens('first.jsonl', 'two.jsonl')
for first in ('first.jsonl', base + 'none/first.jsonl', base + 'slow/first.jsonl'):
    remote_server.counts.clear()
    FILES.update(ONE)
    begin(True, first, base + 'held/f.jsonl')
    FILES.update(TWO)
    done(again(first, base + 'held/f.jsonl'), both)
    if first.endswith('slow/first.jsonl'):
        assert remote_server.counts['/slow/first.jsonl'] == 1, 'a file that names no version was read twice'
