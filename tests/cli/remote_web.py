# SPDX-License-Identifier: MIT
# The test pack-remote.sh. Prints nothing if all is well.
import gzip, os, random, shutil, signal, socket, ssl, subprocess, sys, time
import remote_server
from remote_server import FILES

for name in list(os.environ):
    if name.lower().endswith('_proxy') or name.startswith('AWS_'):
        del os.environ[name]
os.environ['HOME'] = os.getcwd()
random.seed(7)
words = ['one', 'two', 'three', '\u00e9t\u00e9', 'a longer word', '\n']
text = ' '.join(random.choice(words) for _ in range(200000)).encode()
FILES['a.txt'] = text
FILES['b.jsonl'] = b''.join(b'{"text": "document %d %s"}\n' % (i, b'x' * (i % 50)) for i in range(30000))
FILES['b.jsonl.gz'] = gzip.compress(FILES['b.jsonl'])
FILES['c.txt.gz'] = gzip.compress(bytes(random.choices(range(32, 127), k=1200000)))
FILES['empty.txt'] = b''
FILES['p.parquet'] = b'PAR1\x15' + bytes(1000) + b'PAR1'
server, base = remote_server.start()
for name, content in FILES.items():
    with open(name, 'wb') as file:
        file.write(content)


def pack(*inputs, out='r', **environment):
    return subprocess.run(['tokmap', 'pack', '-q', '--force', '-o', out, *inputs], capture_output=True, text=True,
                          env={**os.environ, **environment}, stdin=subprocess.DEVNULL)


def read(path):
    with open(path, 'rb') as file:
        return file.read()


local = {}
for name in FILES:
    if name not in ('p.parquet', 'empty.txt'):
        done = pack(name, out='l')
        assert done.returncode == 0, (name, done.stderr)
        local[name] = read('l.bin')


def survives(fault, name, *more):
    done = pack(base + fault + '/' + name, *more)
    assert done.returncode == 0, (fault, name, done.stderr)
    assert read('r.bin') == local[name], (fault, name, 'other tokens than those of the file')


def fails(fault, *texts, name='a.txt', attempts='3'):
    if os.path.exists('r.bin'):
        os.unlink('r.bin')
        os.unlink('r.tmx')
    done = pack(base + fault + '/' + name, AWS_MAX_ATTEMPTS=attempts)
    assert done.returncode == 1, (fault, done.returncode, done.stderr)
    assert not os.path.exists('r.bin'), fault
    for one in texts + (base + fault + '/' + name,):
        assert one in done.stderr, (fault, one, done.stderr)
    return done.stderr


# ---- every fault that can be survived: the tokens of the local file ----
for name in local:
    survives('none', name)
for fault in ('drop', 'dropzero', '500', 'ignored', 'wrongrange', 'slow', 'redirect', 'chunked', 'dated', 'weak'):
    for name in ('a.txt', 'c.txt.gz'):
        survives(fault, name)
    assert remote_server.counts['/%s/c.txt.gz' % fault] <= 14, fault
survives('resetgarbage', 'a.txt')
survives('drop', 'b.jsonl')
survives('drop', 'b.jsonl.gz')
FILES['whole.txt'] = text
local['whole.txt'] = local['a.txt']
survives('chunked', 'whole.txt')
begun = time.monotonic()
survives('503', 'a.txt')
assert time.monotonic() - begun >= 2, 'Retry-After was not honored'
resumed = [header for path, header in remote_server.requests if path == '/drop/a.txt']
assert resumed[1]['if-match'] == '"one"' and resumed[1]['Range'] == 'bytes=100001-', resumed[1]
assert 'Range' not in resumed[0] and len(resumed) == 5, len(resumed)
# Several inputs, local and remote, and a list of them, in their order.
done = pack(base + 'none/a.txt', 'b.jsonl', base + 'none/empty.txt', base + 'drop/b.jsonl.gz')
assert done.returncode == 0, done.stderr
mixed = read('r.bin')
assert pack('a.txt', 'b.jsonl', 'empty.txt', 'b.jsonl.gz', out='l').returncode == 0 and mixed == read('l.bin')
with open('list', 'w') as file:
    file.write(base + 'none/a.txt\nb.jsonl\nempty.txt\n' + base + 'none/b.jsonl.gz\n')
done = pack('--files-from', 'list')
assert done.returncode == 0 and read('r.bin') == mixed, done.stderr
for command in ('encode', 'train-tokenizer'):
    options = ['--vocab-size', '300', '-o', 'v.tiktoken', '--force'] if command == 'train-tokenizer' else []
    outs = []
    for source in ('a.txt', base + 'none/a.txt'):
        done = subprocess.run(['tokmap', command, *options, source], capture_output=True)
        assert done.returncode == 0, done.stderr
        outs.append(done.stdout if command == 'encode' else read('v.tiktoken'))
    assert outs[0] == outs[1] and outs[0], command

# ---- every other: a message with the URL and what to do ----
dripping = subprocess.Popen(['tokmap', 'pack', '-q', '--force', '-o', 'drip', base + 'drip/a.txt'],
                            stderr=subprocess.PIPE, text=True, env={**os.environ, 'AWS_MAX_ATTEMPTS': '1'})
dripping_begun = time.monotonic()
for fault in ('changed', 'changedsilently', 'changedall', 'changeddate', 'grown', 'shrunk'):
    fails(fault, 'the file changed while it was read')
for fault in ('noversion', 'badtag', 'weakchanged', 'justnow'):
    fails(fault, 'names no version of the file', 'download the file')
    assert remote_server.counts['/%s/a.txt' % fault] == 1, fault
fails('unframed', 'neither how long the file is nor where it ends')
fails('never', 'HTTP status 503', 'attempt 3')
fails('401', 'HTTP status 401', '~/.netrc')
fails('403', 'HTTP status 403')
fails('loop', 'redirects')
fails('tofile', 'file')
fails('header', "the header of the server's answer, or a line of it, is too long")
fails('location', "the header of the server's answer, or a line of it, is too long")
for fault in ('header', 'location'):
    assert remote_server.counts['/%s/a.txt' % fault] == 1, fault
said = fails('wait', 'HTTP status 503 and asks to wait 6 s (Retry-After); this was attempt 2', attempts='2')
assert 'warning: ' in said and '(Retry-After); waiting 6 s' in said, said
fails('garbage', '', attempts='2')
fails('none', 'HTTP status 404', name='missing.txt')
FILES['plain.txt.gz'] = b'plain'
FILES['page.jsonl.gz'] = b'<!DOCTYPE html><p>Not here'
fails('none', "the name ends in .gz, but the input is not compressed: it begins with 'plain'", 'into a pipe',
      name='plain.txt.gz')
fails('none', 'it is a web page: name the file itself', name='page.jsonl.gz')
fails('none', 'the footer of the Parquet file is damaged', name='p.parquet')
with socket.socket() as unused:
    unused.bind(('127.0.0.1', 0))
    refused = 'http://127.0.0.1:%d/x' % unused.getsockname()[1]
done = pack(refused)
assert done.returncode == 1 and refused in done.stderr and 'attempt 4' in done.stderr, done.stderr

# A name that no name server knows is tried again as well: libcurl keeps a buffer of the first attempt. This name has a
# part of more than 63 bytes, so no name server is asked.
done = pack('http://' + 64 * 'a' + '.invalid/a.txt')
assert done.returncode == 1 and 'resolve host' in done.stderr and 'attempt 4' in done.stderr, done.stderr
for bad in ('http:///x', 'https://', 'http://127.0.0.1/a b'):
    done = pack(bad)
    assert done.returncode == 1, (bad, done.stderr)
# What fails is left out on request, and the rest is packed.
done = pack('--on-error', 'skip', base + '403/a.txt', 'b.jsonl')
assert done.returncode == 0 and read('r.bin') == local['b.jsonl'], done.stderr

# ---- secrets ----
secret = 'hunter2secret'
for url in (base + 'none/a.txt?sig=' + secret, base + '403/a.txt?sig=' + secret,
            base.replace('//', '//user:%s@' % secret) + 'none/a.txt'):
    for extra in ([], ['--on-error', 'skip', '--skipped-list', 'skips', 'a.txt']):
        done = subprocess.run(['tokmap', 'pack', '--force', '-o', 'r', url, *extra], capture_output=True, text=True)
        assert secret not in done.stdout + done.stderr, done.stderr
        for path in ('r.tmx', 'skips'):
            assert not os.path.exists(path) or secret.encode() not in read(path), (url, path)
with open('.netrc', 'w') as file:
    file.write('machine 127.0.0.1 login me password %s\n' % secret)
survives('none', 'a.txt')
assert remote_server.requests[-1][1]['Authorization'].startswith('Basic ')
os.unlink('.netrc')

# ---- a signal ends the command within a second, in an answer, before one, and in a pause between attempts ----
for fault in ('hang', 'hanghead', 'never'):
    for threads in ('1', '3'):
        running = subprocess.Popen(['tokmap', 'pack', '-q', '--force', '--threads', threads, '-o', 's',
                                    base + fault + '/a.txt'], stderr=subprocess.PIPE)
        seen = len(remote_server.requests)
        while len(remote_server.requests) == seen and running.poll() is None:
            time.sleep(0.01)
        time.sleep(0.3)
        begun = time.monotonic()
        subprocess.run(['tokmap', '--version'], stdout=subprocess.DEVNULL)
        slowness = 10 * (time.monotonic() - begun)  # a busy machine needs longer for everything
        begun = time.monotonic()
        running.send_signal(signal.SIGTERM)
        running.communicate()
        took = time.monotonic() - begun
        assert running.returncode == -signal.SIGTERM, (fault, running.returncode)
        assert took < 1 + slowness, (fault, took)
        assert not [name for name in os.listdir('.') if name.startswith('s.')]
remote_server.release.set()

# ---- a page in the place of a file is not a text, unless it is named or asked for as one ----
FILES['list'] = FILES['list.txt'] = FILES['list.html'] = b' \r\n<!DOCTYPE HTML>\n<title>Directory listing</title>\n'
FILES['blob.json'] = b'<html><p>Sign in'
for name in ('list', 'list.txt', 'blob.json'):
    fails('none', 'the server sends an HTML page', 'use --input-format text if', name=name)
for more in (['none/list.html'], ['none/list', '--input-format', 'text']):
    done = pack(base + more[0], *more[1:])
    assert done.returncode == 0, (more, done.stderr)
    assert read('r.bin')[:-2:2] == FILES['list'], more  # two bytes a token, and the end of the document

# ---- https: a port of plain HTTP is given up as early as one that nobody listens at ----
done = pack('https' + base[len('http'):] + 'none/a.txt')
assert done.returncode == 1 and 'attempt 4' in done.stderr, done.stderr

# ---- https: a certificate that nobody trusts is refused, and one that CURL_CA_BUNDLE names is not ----
if shutil.which('openssl'):
    subprocess.run('openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost '
                   '-addext subjectAltName=IP:127.0.0.1', shell=True, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain('cert.pem', 'key.pem')
    secure, url = remote_server.start(context=context)
    done = pack(url + 'none/a.txt')
    assert done.returncode == 1 and 'set AWS_CA_BUNDLE to a file with its certificate' in done.stderr, done.stderr
    done = pack(url + 'drop/whole.txt', CURL_CA_BUNDLE='cert.pem')
    assert done.returncode == 0 and read('r.bin') == local['a.txt'], done.stderr

# ---- a byte now and then is not an answer: the server is given up after a minute of waiting ----
_, said = dripping.communicate(timeout=100)
assert dripping.returncode == 1 and 'the server sent only' in said and 'bytes in 60 seconds' in said, said
assert base + 'drip/a.txt' in said and time.monotonic() - dripping_begun > 55, said
