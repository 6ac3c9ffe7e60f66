# SPDX-License-Identifier: MIT
# The test remote-datasets.sh. Prints nothing if all is well.
import fcntl, glob, json, os, random, re, resource, shutil, subprocess, sys, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'remote'))
from object_server import ObjectServer

for name in list(os.environ):
    if name.lower().endswith('_proxy') or name.startswith(('AWS_', 'GCS_', 'GS_', 'STORAGE_', 'TOKMAP_CACHE')):
        del os.environ[name]
os.environ['HOME'] = os.getcwd()
random.seed(7)
TOP = os.path.abspath('top')
DATA = os.path.join(TOP, 'bucket', 'data')
os.makedirs(os.path.join(DATA, 'folder'))
failures = []
began = time.monotonic()


def say(text):
    if os.environ.get('TEST_SAYS'):
        print('%.1f s: %s' % (time.monotonic() - began, text), failures, file=sys.stderr)


def run(*words, preexec=None, **environment):
    whole = {**os.environ, 'TOKMAP_CACHE': os.path.abspath('cache'), 'AWS_MAX_ATTEMPTS': '3', **environment}
    return subprocess.run(['tokmap', *words], capture_output=True, text=True, errors='replace',
                          stdin=subprocess.DEVNULL, preexec_fn=preexec, timeout=120,
                          env={k: v for k, v in whole.items() if v is not None})


def good(*words, **more):
    done = run(*words, **more)
    assert done.returncode == 0, (words, done.returncode, done.stdout[-500:], done.stderr)
    return done.stdout


def bad(words, *parts, **more):
    """The command fails with one sentence that has all parts."""
    done = run(*words, **more)
    assert done.returncode in (1, 2), (words, done.returncode, done.stdout[-300:], done.stderr)
    assert 'AddressSanitizer' not in done.stderr and 'runtime error' not in done.stderr, done.stderr
    for part in parts:
        if not re.search(part, done.stderr + done.stdout):
            failures.append((words, part, done.stdout[-300:], done.stderr))
    return done.stderr


def fresh(path='cache'):
    shutil.rmtree(path, ignore_errors=True)


# ---- the data ----
say('the data')

with open('t.jsonl', 'w') as file:
    for _ in range(1500):
        text = ''.join(chr(97 + random.randrange(26)) for _ in range(random.randrange(1, 3000)))
        file.write(json.dumps({'text': text}) + '\n')
with open('p.jsonl', 'w') as file:
    for i in range(200):
        file.write(json.dumps({'p': 'prompt %d' % i, 'c': 'completion ' * random.randrange(1, 99)}) + '\n')
good('pack', '-q', '-o', DATA + '/one', 't.jsonl')
good('pack', '-q', '--shard-tokens', '60000', '-o', DATA + '/many', 't.jsonl')
good('pack', '-q', '--seal', '--shard-tokens', '900000', '-o', DATA + '/sealed', 't.jsonl')
good('pack', '-q', '--prompt-field', 'p', '--completion-field', 'c', '-o', DATA + '/masked', 'p.jsonl')
for path in glob.glob(DATA + '/many-*'):
    shutil.copy(path, DATA + '/folder')
shards = sorted(glob.glob(DATA + '/many-*.tmx'))
with open(DATA + '/old', 'w') as file:
    file.write('tokmap-shards 1\n' + ''.join(os.path.basename(path)[:-4] + '\n' for path in shards))
awkward = ['a b', '100%', 'a+b&c=d', '\u00e9t\u00e9', 'q?x', "it's <this>", 'a#b', 'a\nb']
for name in awkward:
    for ending in ('.tmx', '.bin'):
        shutil.copy(DATA + '/one' + ending, os.path.join(DATA, name + ending))
server = ObjectServer(TOP, log=os.path.abspath('log'))
os.environ.update(server.environment)


def requests():
    return server.counts()['requests']


def plain(text):
    """Output without names, paths, times and rates."""
    text = text[:20000]
    text = re.sub(r'(s3|https?)://\S*?bucket/|%s/bucket/' % re.escape(TOP), '', text)
    text = re.sub(r'\S*/cache/\S*|\?cache=\S*', 'NAME', text)
    return re.sub(r'[0-9.]+ (ms|s|[KMG]i?B/s)\b', 'T', text)


# ---- equal to local files ----
say('equal to local files')

for kind in ('s3://bucket/data/', server.url + '/bucket/data/'):
    fresh()
    for name in ('one', 'many', 'sealed', 'masked', 'old', 'folder', 'one#docs=0..99%', 'many#docs=10..30%'):
        if name == 'folder' and not kind.startswith('s3'):
            continue
        for words in (['verify'], ['export'], ['show', '--document', '3'], ['show', '--tokens', '100..400'],
                      ['show', '--seq-len', '128', '--window', '7'], ['info', '--json']):
            if words[0] == 'verify' and '#' in name:
                continue
            local, remote = (good(*words, place + name) for place in (DATA + '/', kind))
            if words[0] == 'info':
                a, b = json.loads(local), json.loads(remote)
                for key in ('tokens', 'documents', 'width'):
                    assert a.get(key) == b.get(key), (kind, name, key, a.get(key), b.get(key))
            else:
                assert local == remote or plain(local) == plain(remote), (kind, name, words, local[:500], remote[:500])
for name in awkward:
    place = 's3://bucket/data/' + name
    assert good('export', place + '?cache=' + os.path.abspath('cache') if '#' not in name else place) == \
        good('export', DATA + '/one'), name

# ---- how many requests ----
say('how many requests')

for name in ('one', 'sealed', 'many'):
    fresh()
    good('info', 's3://bucket/data/' + name)
    before = requests() # the server has logged the earlier ones when it answers
    good('info', 's3://bucket/data/' + name)
    asked = server.log()[-(requests() - before):]
    lists = sum('list-type' in line for line in asked)
    if (len(asked), lists) != (2, 1): # info lists the values beside the shards once
        failures.append(('a second opening', name, asked))
fresh()
before = requests()
good('export', '--documents', '3..4', 's3://bucket/data/many')
if requests() - before > 12:
    failures.append(('a cold manifest', requests() - before))

# Indexes of many shards are read at once.
for name, words in (('many', ['info']), ('many', ['verify', '-q']), ('folder/', ['info']), ('old', ['info'])):
    fresh()
    server.set(delay=0.2)
    good(*words, 's3://bucket/data/' + name)
    if server.counts()['at once'] < 8:
        failures.append(('one by one', name, words, server.counts()['at once']))
server.set(delay=0)

# What info says of the cache.
info = json.loads(good('info', '--json', 's3://bucket/data/one'))
assert info['cache'] == os.path.abspath('cache') and info['shards'][0]['index_path'] == 's3://bucket/data/one.tmx', info
assert json.loads(good('info', '--json', DATA + '/one'))['cache'] is None
assert re.search(r'\ncache +%s\n(.*\n)*.*by the index s3://bucket/data/one\.tmx:' % re.escape(os.path.abspath('cache')),
                 good('info', 's3://bucket/data/one'))
assert '3 of 3 shards, 1.' in good('info', 's3://bucket/data/sealed')

# ---- runs ----
say('runs')

with open('run', 'w') as file:
    file.write('seq_len 128\nbatch 8\nseed 3\norder shuffle\npasses 1\nsource a "NAMEmany"\nsource b "NAMEsealed"\n'
               'phase 0 a natural b natural\n')
text = open('run').read()
for name, place in (('local.run', DATA + '/'), ('remote.run', 's3://bucket/data/')):
    with open(name, 'w') as file:
        file.write(text.replace('NAME', place))
os.makedirs(DATA + '/runs', exist_ok=True)
for words in (['show', '--step', '5'], ['audit', '--ranks', '2', '--steps', '20', '--sample-steps', '16'], ['info']):
    local, remote = (good(words[0], name, *words[1:]) for name in ('local.run', 'remote.run'))
    local, remote = plain(local).replace('local.run', ''), plain(remote).replace('remote.run', '')
    local, remote = (re.sub('.* capacity .*', '', text) for text in (local, remote)) # no shard is opened for it
    if words[0] != 'info' and local != remote:
        failures.append((words, [pair for pair in zip(local.split('\n'), remote.split('\n')) if pair[0] != pair[1]]))

# An audit computes, and fetches no tokens.
fresh()
before = len(server.log())
said = good('audit', 'remote.run', '--ranks', '2', '--steps', '20')
assert 'not tried' in said and not [line for line in server.log()[before:] if '.bin' in line], said

# ---- bad names and words ----
say('bad names and words')

ONE = 's3://bucket/data/one'
for word, part in (('block=3M', 'block'), ('block=32M', 'block'), ('block=', 'block'), ('size=1M', '64M'),
                   ('size=99999999999999T', 'size'), ('connections=0', '1 to 128'), ('connections=999', '1 to 128'),
                   ('cache=', 'cache'), ('cache=x&foo=1', 'foo'), ('block=-1', 'block')):
    bad(['info', ONE + '?' + word], part)
bad(['info', server.url + '/bucket/data/one?token=1'], 'query')
bad(['info', 's3://bucket/data/none'], 'data/none', 'correct the name')
bad(['info', server.url + '/bucket/data/none'], r'data/none: .*with \.tmx added.*404')
bad(['info', server.url + '/bucket/data/'], 'a web server lists no files')
bad(['info', 'https://'], 'names no host')
bad(['info', 's3://nothing/x'], r'no such bucket \(HTTP status 404\); correct the name$')
bad(['info', ONE + '#docs=0..10%?cache=x'], r'write NAME\?cache=x#docs=0\.\.10%')
for word in ('Block=1M', 'foo=1'):
    bad(['info', ONE + '?' + word], 'belongs to the key, because it does not begin with cache=')
for kind in ('raw:', 'llmc:', 'megatron:'):
    bad(['info', kind + ONE], 'not read from object storage')
for name, line in (('missing', 'many-00000'), ('alone.missing', 's3://bucket/data/one')):
    with open(DATA + '/missing' if name == 'missing' else name, 'w') as file:
        file.write('tokmap-shards 1\n%s\ns3://bucket/data/gone\n' % line if 'alone' in name else
                   'tokmap-shards 1\n%s\ngone\n' % line)
    bad(['info', 's3://bucket/data/missing' if name == 'missing' else name], ':3: the shard s3://bucket/data/gone.tmx')
os.unlink(DATA + '/missing')
assert good('info', 's3://bucket') == good('info', 's3://bucket/').replace('s3://bucket/\n', 's3://bucket\n')
bad(['info', 's3://bucket/data/../../secret'], 'secret')
bad(['info', 's3://bucket/data/\udcff\udcfe'], 'data/')
bad(['info', 's3://bucket/t\n\r'], 'bucket')
bad(['info', 's3://'], 's3://')
for text, part in (('../../../etc/passwd', ''), ('/etc/passwd', ''), ('x\n', ''), ('s3://other/x', 'list')):
    with open(DATA + '/list', 'w') as file:
        file.write('tokmap-shards 1\n%s\n' % text)
    bad(['info', 's3://bucket/data/list'], part)
with open(DATA + '/huge', 'wb') as file:
    file.truncate(5 << 30)
bad(['info', 's3://bucket/data/huge'], 'neither')
with open(DATA + '/wide.tmx', 'wb') as file:
    file.truncate(3 << 30)
before = time.monotonic()
bad(['info', 's3://bucket/data/wide'], 'wide.tmx')
assert time.monotonic() - before < 20, 'an object that is not an index is read whole'
for name in ('huge', 'wide.tmx', 'list'):
    os.unlink(os.path.join(DATA, name))
for name, content in (('empty', b''), ('text', b'a text of another kind\n'), ('zeros', bytes(5000))):
    with open(os.path.join(DATA, name + '.tmx'), 'wb') as file:
        file.write(content)
    bad(['info', 's3://bucket/data/' + name], name + '.tmx')
    os.unlink(os.path.join(DATA, name + '.tmx'))

# ---- bad folders ----
say('bad folders')

bad(['info', ONE], 'TOKMAP_CACHE', TOKMAP_CACHE=None, HOME=None)
open('file', 'w').close()
bad(['info', ONE], 'cache', TOKMAP_CACHE='file')
bad(['info', ONE], 'cache', TOKMAP_CACHE='file/x')
for mode in (0o777, 0o770, 0o1777):
    fresh('open')
    os.mkdir('open')
    os.chmod('open', mode)
    bad(['info', ONE], '700', TOKMAP_CACHE='open')
if os.geteuid():
    fresh('closed')
    os.mkdir('closed', 0o500)
    bad(['info', ONE], 'closed', TOKMAP_CACHE='closed')
    bad(['info', ONE], '700|written', TOKMAP_CACHE='/')
fresh('link')
os.mkdir('behind', 0o700)
os.symlink('behind', 'link')
good('verify', ONE, TOKMAP_CACHE='link')
os.unlink('link')
# A umask that lets others write makes a private folder all the same.
fresh('wide')
good('info', ONE, TOKMAP_CACHE='wide', preexec=lambda: os.umask(0))
assert os.stat('wide').st_mode & 0o777 == 0o700
good('info', ONE, TOKMAP_CACHE='wide')
# A limit on the size of files is what a full disk is.
fresh('small')
bad(['verify', ONE], 'small', TOKMAP_CACHE='small',
    preexec=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)))
good('verify', ONE, TOKMAP_CACHE='small')

# A small file system keeps what fits. Where none may be mounted, this is left out.
fresh('tiny')
os.mkdir('tiny', 0o700)
mount = 'mount -t tmpfs -o size=64m,mode=700 none tiny'
if not subprocess.run(['unshare', '-rm', 'sh', '-c', mount], capture_output=True).returncode:
    before = len(server.log())
    whole = {**os.environ, 'TOKMAP_CACHE': os.path.abspath('tiny')}
    twice = subprocess.run(['unshare', '-rm', 'sh', '-c', mount + ' && tokmap verify -q %s && tokmap verify -q %s' %
                            (ONE, ONE)], stdin=subprocess.DEVNULL, capture_output=True, text=True, env=whole)
    read = [line for line in server.log()[before:] if 'one.bin' in line]
    if twice.returncode or len(read) != 2:
        failures.append(('a small file system', twice.stderr, read))

# A folder that is removed while it is used.
for how in ('removed', 'made again', 'names'):
    fresh()
    server.set(delay=0.1)
    before = server.counts()['requests']
    stats = subprocess.Popen(['tokmap', 'stats', 's3://bucket/data/many'], stdin=subprocess.DEVNULL, text=True,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             env={**os.environ, 'TOKMAP_CACHE': os.path.abspath('cache')})
    while server.counts()['requests'] < before + 10:
        time.sleep(0.02)
    if how == 'names':
        os.rename('cache/names', 'names.old')  # at once: the process writes there
        fresh('names.old')
    else:
        os.rename('cache', 'cache.old')
        fresh('cache.old')
    server.set(delay=0)
    if how == 'made again':
        good('info', ONE)
    said = stats.communicate()[1]
    if not re.search('/cache: the cache folder, or a file in it, was removed or replaced', said) or \
            stats.returncode != 1:
        failures.append((how, stats.returncode, said))

# One that is removed when a process has the index and waits for the lock (byte 2^20 + 256) to make the other files.
fresh()
good('info', ONE)
for path in glob.glob('cache/*.*'):
    os.remove(path)
with open('cache/processes', 'r+b') as processes:
    fcntl.lockf(processes, fcntl.LOCK_EX, 1, 2**20 + 256)
    info = subprocess.Popen(['tokmap', 'info', ONE], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, text=True,
                            stderr=subprocess.PIPE, env={**os.environ, 'TOKMAP_CACHE': os.path.abspath('cache')})
    while not glob.glob('cache/*.tmx'):
        time.sleep(0.02)
    time.sleep(0.3)
    os.rename('cache', 'cache.old')
try:
    said = info.communicate(timeout=60)[1]
except subprocess.TimeoutExpired:
    info.kill()
    said = 'it does not end'
fresh('cache.old')
if info.returncode != 1 or 'the cache folder, or a file in it, was removed or replaced' not in said:
    failures.append(('removed before the files are made', info.returncode, said))

# ---- poisoned folders ----
say('poisoned folders')

NAMES = ['one', 'sealed', 'masked', 'many']
want = {name: good('export', DATA + '/' + name) for name in NAMES}
for name in NAMES:
    for number in range(int(os.environ.get('POISONS', '6'))):
        fresh()
        good('export', 's3://bucket/data/' + name)
        files = [path for path in glob.glob('cache/**', recursive=True) if os.path.isfile(path)]
        path = random.choice([path for path in files if os.path.getsize(path)])
        kind = random.choice([path.rsplit('.')[-1] for path in files])
        path = random.choice([path for path in files if path.rsplit('.')[-1] == kind])
        how, size = random.choice(('flip', 'zero', 'cut', 'longer', 'gone', 'folder')), os.path.getsize(path)
        with open(path, 'r+b') as file:
            for _ in range(random.randrange(1, 4)):
                file.seek(random.randrange(max(min(size, 1 << 20), 1)))
                at, byte = file.tell(), file.read(1) or b'x'
                file.seek(at)
                if how == 'flip':
                    file.write(bytes([byte[0] ^ 1 << random.randrange(8)]))
                elif how == 'zero':
                    file.write(bytes(min(4096, max(size - at, 0))))
            if how in ('cut', 'longer'):
                file.truncate(random.randrange(size) if how == 'cut' and size else size + 5000)
        if how in ('gone', 'folder'):
            os.unlink(path)
        if how == 'folder':
            os.mkdir(path)
        done = run('export', 's3://bucket/data/' + name)
        assert 'AddressSanitizer' not in done.stderr and 'runtime error' not in done.stderr, (path, how, done.stderr)
        if done.returncode not in (0, 1):
            failures.append(('status', name, path, how, done.returncode, done.stderr[-2000:]))
        elif done.returncode == 0 and done.stdout != want[name]:
            failures.append(('WRONG TEXT', name, path, how))
        elif done.returncode and how != 'folder' and 'remove the folder' not in done.stderr:
            failures.append(('not repaired', name, path, how, done.stderr))
        elif done.returncode and 'cache' not in done.stderr:
            failures.append(('message', name, path, how, done.stderr))

# ---- servers ----
say('servers')

BIN = r'one\.bin'
for fault, parts in (('403', ['one.bin', '403']), ('404', ['one.bin', '404.*the index last$']), ('416', ['one.bin', '416']),
                     ('replaced', ['one.bin', 'replaced|another']), ('wrong_total', ['one.bin', 'bytes']),
                     ('whole', ['one.bin', 'whole file']), ('redirect', ['one.bin', '307.*AWS_ENDPOINT_URL']),
                     ('short', ['one.bin']), ('reset_head', ['one.bin'])):
    fresh()
    server.set(rules=[{'path': BIN, 'fault': fault}])
    done = run('export', ONE)
    if fault not in ('replaced', 'redirect') or done.returncode:
        for part in parts:
            if done.returncode != 1 or not re.search(part, done.stderr):
                failures.append((fault, part, done.returncode, done.stderr))
    server.set(rules=[])
    assert good('export', ONE) == want['one'], fault
fresh()
server.set(rules=[{'path': r'one\.tmx', 'fault': 'no_ranges'}])
before = requests()
bad(['export', ONE], 'does not serve ranges', AWS_MAX_ATTEMPTS=None)
assert requests() - before == 1
for fault in ('403', '404', '416', 'whole', 'garbage', 'redirect', 'flip', '503'):
    fresh()
    server.set(rules=[{'path': r'one\.tmx', 'fault': fault}])
    if fault == 'redirect':
        bad(['export', ONE], 'one')
        assert good('export', server.url + '/bucket/data/one') == want['one']
    else:
        bad(['export', ONE], 'one')
    server.set(rules=[])
    good('export', ONE)
# A damaged answer is found out before it is stored, of whichever file, and asked for again.
for name, path in (('one', r'one\.bin'), ('sealed', r'sealed.*\.zst'), ('masked', r'masked\.mask')):
    fresh()
    server.set(rules=[{'path': path, 'fault': 'flip', 'times': 1}])
    before = server.counts()['faults']
    good('verify', '-q', 's3://bucket/data/' + name)
    assert server.counts()['faults'] == before + 1, name
server.set(rules=[])
assert not server.counts()['secrets elsewhere'], 'credentials were sent to another host'
fresh()
server.set(ahead=7200)
good('export', ONE)
server.set(ahead=0)

# A manifest on this machine names objects and files.
with open('mixed', 'w') as file:
    file.write('tokmap-shards 1\ns3://bucket/data/one\n' + shards[0][:-4] + '\n')
with open('alone', 'w') as file:
    file.write('tokmap-shards 1\n' + DATA + '/one\n' + shards[0][:-4] + '\n')
fresh()
assert good('export', 'mixed') == good('export', 'alone')
good('verify', '-q', 'mixed')

# One that is elsewhere names only shards of its own host and bucket. Others are refused by their line, and nothing is
# asked for them, nor opened here.
os.makedirs(TOP + '/other/deep', exist_ok=True)
for place in TOP + '/other/one', TOP + '/bucket/beside':
    shutil.copy(DATA + '/one.bin', place + '.bin')
    shutil.copy(DATA + '/one.tmx', place + '.tmx')
stated = open(DATA + '/many').read().splitlines()[1:3]
host = server.url[len('http://'):]
hostile = ['/etc/passwd', DATA + '/one', 'file://' + DATA + '/one', '//' + host + '/bucket/data/one', 's3://other/one',
           'gs://bucket/data/one', 's3://bucket.evil/one', 's3://bucket', server.other + '/bucket/data/one',
           'https://' + host + '/bucket/data/one', 'http://user@' + host + '/bucket/data/one', server.url + '0/bucket/data/one',
           'ftp://x/y']
climbs = ['../../other/one', 's3://bucket/../other/one', 'x/../../../other/one'] # on a web server, to the same host
for base, climbing in (('s3://bucket/data/', climbs), (server.url + '/bucket/data/', [])):
    for number, line in enumerate(hostile + climbing):
        with open(DATA + '/hostile', 'w') as file:
            file.write('tokmap-shards 1\none\n%s\n' % line if number % 2 else
                       '# tokmap manifest 2\n%s\n%s\t%s\n' % (stated[0], line, stated[1].split('\t')[1]))
        fresh()
        before = server.counts()
        bad(['info', '-q', base + 'hostile'], 'hostile:3: a manifest that is not on this machine .* not \'' + re.escape(line))
        after = server.counts()
        assert sum(after[which] - before[which] for which in ('status 200', 'status 206')) == 1, (base, line)
    bad(['copy', base + 'hostile', os.path.abspath('copied') + '/'], 'is not a name below the folder')
assert not os.path.exists('copied')
with open(DATA + '/friendly', 'w') as file:
    file.write('tokmap-shards 1\none\n%s/bucket/data/one\n../beside\n' % server.url)
fresh()
assert good('export', server.url + '/bucket/data/friendly') == good('export', DATA + '/one') * 2 + good('export', TOP + '/bucket/beside')
with open(DATA + '/friendly', 'w') as file:
    file.write('tokmap-shards 1\n./one\ns3://bucket/beside\n')
assert good('export', 's3://bucket/data/friendly') == good('export', DATA + '/one') + good('export', TOP + '/bucket/beside')

# Other masks of the same tokens, under the same names and with the same sizes: the new ones are read.
fresh()
said = []
for which in (0, 1):
    with open('i.jsonl', 'w') as file:
        file.write(''.join(json.dumps({'i': [n % 7] * 9, 'm': [n % 3 == 0 or which] * 9}) + '\n' for n in range(300)))
    good('pack', '-q', '--force', '--ids-field', 'i', '--mask-field', 'm', '--vocab-size', '9', '--no-eod',
         '--shard-tokens', '1000', '-o', DATA + '/ids', 'i.jsonl')
    local, remote = (re.search('are masked.*', good('stats', name + 'data/ids'))[0]
                     for name in (TOP + '/bucket/', 's3://bucket/'))
    assert local == remote, (which, local, remote)
    said.append(local)
assert said[0] != said[1]

# Several processes that open a shard at once read its index once.
fresh()
server.set(delay=0.2)
before = len(server.log())
several = [subprocess.Popen(['tokmap', 'info', 's3://bucket/data/one'], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            env={**os.environ, 'TOKMAP_CACHE': os.path.abspath('cache')}) for _ in range(5)]
assert [each.wait() for each in several] == [0] * 5
read = [line for line in server.log()[before:] if '/one.tmx ' in line and 'status=206' in line]
assert len(read) == 1, read
assert not [name for _, _, names in os.walk('cache') for name in names if name.endswith('.partial')]
server.set(delay=0)

# ---- keys that expire ----
say('keys')


def keys_write(name):
    with open('keys.new', 'w') as file:
        file.write('[default]\naws_access_key_id = %s\naws_secret_access_key = secret-of-%s\n' % (name, name))
    os.rename('keys.new', 'keys')


files = {'AWS_ACCESS_KEY_ID': None, 'AWS_SECRET_ACCESS_KEY': None, 'AWS_SHARED_CREDENTIALS_FILE': os.path.abspath('keys')}
keys_write('first')
server.set(accounts={'first': 'secret-of-first'}, delay=0.2)
fresh()
whole = {**os.environ, 'TOKMAP_CACHE': os.path.abspath('cache'), **files}
before = server.counts()['requests']
verify = subprocess.Popen(['tokmap', 'verify', '-q', 's3://bucket/data/folder/'], stdin=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, env={k: v for k, v in whole.items() if v is not None})
while server.counts()['requests'] < before + 20:
    time.sleep(0.02)
keys_write('second')
server.set(accounts={'second': 'secret-of-second'}, delay=0)
said = verify.communicate()[1]
assert verify.returncode == 0, said
fresh()
server.set(accounts={'third': 'secret-of-third'})
bad(['info', 's3://bucket/data/one'], 'refuses access.* does not belong to its secret', **files)
server.set(accounts=None, rules=[{'path': '', 'fault': '400'}])
bad(['info', 's3://bucket/data/one'], 'refuses access or this name .HTTP status 400')
server.set(rules=[])
# What is said of shards in a folder names the objects, and not files of the cache.
os.mkdir(DATA + '/mixed')
good('pack', '-q', '-o', DATA + '/mixed/a', 't.jsonl')
good('pack', '-q', '--no-eod', '-o', DATA + '/mixed/b', 't.jsonl')
said = run('info', 's3://bucket/data/mixed/').stderr
if 'those of s3://bucket/data/mixed/a.bin with token 256, those of s3://bucket/data/mixed/b.bin with no' not in said:
    failures.append(('names of shards', said))
# Objects that are longer or shorter than their index says, and that were replaced.
for how in ('longer', 'shorter', 'other'):
    for name, ending in (('one', '.bin'), ('sealed-00000', '.bin.zst'), ('masked', '.mask')):
        fresh()
        path = os.path.join(DATA, name + ending)
        shutil.copy(path, 'saved')
        size = os.path.getsize(path)
        if how == 'other':
            with open(path, 'wb') as file:
                file.write(random.randbytes(size))
        else:
            os.truncate(path, size + 100 if how == 'longer' else size // 2)
        bad(['verify', 's3://bucket/data/' + name.split('-')[0]], os.path.basename(path))
        shutil.copy('saved', path)
        fresh()
for line in failures:
    print(*line, sep='\n    ')
sys.exit(bool(failures))
