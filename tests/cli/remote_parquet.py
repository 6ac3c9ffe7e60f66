# SPDX-License-Identifier: MIT
# The test remote-parquet.sh. Prints nothing if all is well.
import json, os, random, re, shutil, struct, subprocess, sys, time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'remote'))
from object_server import TRANSIENT, ObjectServer

try:
    import pyarrow as pa, pyarrow.parquet as pq
except ImportError:
    pq = None

for name in list(os.environ):
    if name.lower().endswith('_proxy') or name.startswith(('AWS_', 'GCS_', 'GS_', 'STORAGE_', 'HF_')):
        del os.environ[name]
os.environ['HOME'] = os.getcwd()
KILLS = int(os.environ.get('TOKMAP_KILLS', '12'))
SAFE = [kind for kind in TRANSIENT if kind not in ('flip', 'shifted', 'drip', 'hang')]
random.seed(5)


def rows(count, seed):
    draw = random.Random(seed)
    return [{'text': ' '.join('w%d' % draw.randrange(900) for _ in range(draw.randrange(1, 90))), 'n': seed * count + i}
            for i in range(count)]


def write(path, records, groups, fat):
    """A file with a column that nobody reads, `fat` bytes in each row, before and behind the others."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if pq is None:
        with open('rows.jsonl', 'w') as file:
            file.writelines(json.dumps(record) + '\n' for record in records)
        subprocess.run([sys.executable, os.environ['TOKMAP_CLI'] + '/parquet_groups.py', 'rows.jsonl', path, str(groups)], check=True,
                       stdout=subprocess.DEVNULL)
        return
    blob = [os.urandom(fat) for _ in records]
    pq.write_table(pa.table({'before': pa.array(blob, pa.binary()), 'text': [r['text'] for r in records],
                             'n': [r['n'] for r in records], 'behind': pa.array(blob, pa.binary())}), path,
                   row_group_size=groups, use_dictionary=random.random() < 0.5,
                   data_page_size=random.choice([2000, 1 << 20]))


def run(*words, status=0):
    done = subprocess.run(['tokmap', 'pack', *words], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == status, (words, done.returncode, done.stderr)
    return done


def tokens(name):
    return {path[len(name):]: open(path, 'rb').read() for path in os.listdir()
            if path.startswith((name + '.', name + '-')) and path.endswith('.bin')}


def remove(*names):
    for name in names:
        shutil.rmtree(name + '.work', ignore_errors=True)
        for path in os.listdir():
            if (path == name or path.startswith((name + '.', name + '-'))) and os.path.isfile(path):
                os.unlink(path)


def equal(one, other, what):
    one, other = tokens(one), tokens(other)
    assert one and one == other, (what, sorted(one), sorted(other))


sizes = [(3000, 400), (2500, 2500), (1200, 37), (10, 10), (4000, 1500)]
for i, (count, groups) in enumerate(sizes):
    write('store/web/set/%02d.parquet' % i, rows(count, i), groups, 700)
NAMES = ['store/web/set/%02d.parquet' % i for i in range(len(sizes))]
SET = 's3://web/set/'
whole = sum(os.path.getsize(name) for name in NAMES)
with ObjectServer('store', log='log', page=3) as server:
    os.environ.update(server.environment)
    URLS = [server.url + '/web/set/%02d.parquet' % i for i in range(len(sizes))]

    # ---- the same bytes, and few of them ----
    local = json.loads(run('--json', '--columns', 'n', '-o', 'local', 'store/web/set').stdout)
    assert 'fetched_bytes' not in local or not local['fetched_bytes'], local
    for name, words in (('object', [SET]), ('pattern', ['s3://web/**/*.parquet']), ('web', URLS)):
        before = server.counts()
        report = json.loads(run('--json', '--columns', 'n', '-o', name, *words).stdout)
        equal('local', name, name)
        sent = server.counts()['bytes'] - before['bytes']
        for member in ('documents', 'tokens', 'input_bytes', 'stored_bytes', 'document_bytes', 'structure_bytes'):
            assert report[member] == local[member], (name, member, report[member], local[member])
        assert sent - 20000 <= report['fetched_bytes'] <= sent, (name, sent, report['fetched_bytes'])
        assert not pq or report['fetched_bytes'] < whole / 2, (name, report['fetched_bytes'], whole)
    assert not server.counts()['secrets elsewhere']
    asked = [line for line in server.log() if re.search(r' /web/\S*parquet ', line)]
    every = [line for line in asked if 'range=all' in line and '03.parquet' not in line]  # which is small
    assert not every, every[:5]
    assert not any(line.startswith('HEAD') for line in asked), asked[:5]
    remove('object', 'pattern', 'web')

    # ---- random files, columns, and sizes, with faults ----
    for trial in range(6):
        count, columns = random.randrange(1, 3000), random.choice([[], ['--columns', 'n'], ['--columns', 'n,before']])
        write('store/web/one/x.parquet', rows(count, 50 + trial), random.randrange(1, count + 1), random.randrange(9))
        server.set(seed=trial, rate=0.3 if trial else 0.0, kinds=SAFE)
        columns = columns[:1] + ['n'] if columns else []
        remove('a', 'b')
        run('-q', *columns, '-o', 'a', 'store/web/one/x.parquet')
        run('-q', *columns, '-o', 'b', random.choice(['s3://web/one/x.parquet', server.url + '/web/one/x.parquet']))
        equal('a', 'b', ('random', trial, count))

    # ---- kills ----
    KINDS = [[], ['--shuffle', '3', '--shuffle-memory', '64Ki'], ['--dedup', 'exact']]
    for kind in KINDS:
        server.set(rate=0.0)
        remove('ref')
        run('-q', *kind, '-o', 'ref', 'store/web/set')
        for number in range(KILLS // len(KINDS)):
            remove('k')
            server.set(seed=number, rate=0.1, kinds=SAFE)
            words = ['-q', '--threads', '2', '--checkpoint-seconds', '0.001', *kind, '-o', 'k', SET]
            for _ in range(random.randrange(1, 4)):
                process = subprocess.Popen(['tokmap', 'pack', *words], stdin=subprocess.DEVNULL,
                                           stderr=subprocess.DEVNULL)
                time.sleep(random.random() * 0.3)
                process.kill()
                process.wait()
            if process.returncode == -9:
                run(*words)
            equal('ref', 'k', ('kill', kind, number))
    server.set(rate=0.0)

    # ---- tasks ----
    remove('ref', 'k')
    cut = ['-q', '--unit-bytes', '300000', '--shard-tokens', '100k', '--columns', 'n']
    run(*cut, '-o', 'ref', 'store/web/set')
    tasks = [subprocess.Popen(['tokmap', 'pack', *cut, '--task', '%d/3' % i, '-o', 'k', SET], stdin=subprocess.DEVNULL)
             for i in range(3)]
    assert [task.wait() for task in tasks] == [0, 0, 0]
    equal('ref', 'k', 'tasks')

    # Footers of files that are cut are kept: a damaged one is fetched again.
    large = {name[5:]: os.path.getsize(name) for name in NAMES if os.path.getsize(name) > 300000}

    def ends(*words, status=0):
        """How often a command asks for the end of a large file, and what it says."""
        since = len(server.log())
        said = run(*cut, *words, '-o', 'k', SET, status=status).stderr
        found = [re.match(r'GET ([^ ?]*) range=\d+-(\d+) ', line) for line in server.log()[since:]]
        return sum(bool(at) and int(at[2]) >= large.get(at[1], 1 << 60) - 1 for at in found), said

    remove('k')
    run(*cut, '-o', 'k', SET)
    os.mkdir('elsewhere')  # nothing is kept behind a link, or in a folder without a journal
    os.symlink('elsewhere', 'k.work')
    count, said = ends(status=1)
    assert count >= len(large) and not os.listdir('elsewhere'), (count, said, os.listdir('elsewhere'))
    os.unlink('k.work')
    remove('k')
    first = ends('--task', '0/3')[0]
    footers = sorted(name for name in os.listdir('k.work') if name.startswith('tail-'))
    assert large and footers and first == len(large) + len(footers), (first, footers, large)
    with open('k.work/' + footers[0], 'r+b') as file:
        file.seek(200)
        file.write(b'damaged')
    second = ends('--task', '1/3')[0]
    assert second == len(large), (second, large)
    server.set(rules=[{'path': r'0[0-9]\.parquet', 'fault': 'other_tag'}])
    said = ends('--task', '2/3', status=1)[1]
    assert re.search(r's3://web/set/0\d\.parquet: the file was replaced since this work began', said), said
    server.set(rules=[])
    third = ends('--task', '2/3')[0]
    assert not third, third
    equal('ref', 'k', 'kept footers')
    remove('k', 'ref')
    run(*cut, '--task', '0/3', '-o', 'k', SET)
    write(NAMES[0], rows(2900, 8), 350, 700)
    said = run(*cut, '--task', '0/3', '-o', 'k', SET, status=1).stderr
    assert 'remove the folder of the work while no task runs' in said, said
    run(*cut, '--no-resume', '-o', 'k', SET)  # and no footer is of the old file
    run(*cut, '-o', 'ref', 'store/web/set')
    equal('ref', 'k', 'started over')
    if pq:  # a footer that is longer than what the first request asks for
        long = 'store/web/long/x.parquet'
        write(long, rows(9000, 7), 9, 0)
        begin = os.path.getsize(long) - pq.read_metadata(long).serialized_size - 8
        assert pq.read_metadata(long).serialized_size > 3 << 16
        remove('k', 'ref')
        run(*cut, '-o', 'ref', long)
        asked = []
        for task in range(3):
            since = len(server.log())
            run(*cut, '--task', '%d/3' % task, '-o', 'k', 's3://web/long/')
            found = [re.match(r'GET /web/long/x.parquet range=(\d+)-', line) for line in server.log()[since:]]
            asked.append(sum(bool(at) and int(at[1]) >= begin for at in found))
        equal('ref', 'k', 'a long footer')
        assert asked == [4, 0, 0], asked

    # ---- other versions ----
    server.set(rules=[{'path': r'03\.parquet|02\.parquet', 'fault': 'other_tag'}])
    remove('k')
    said = run('-q', '-o', 'k', SET, status=1).stderr
    assert re.search(r'set/0[23]\.parquet: the file changed while it was read', said), said
    server.set(rules=[])
    big = 'store/web/big/x.parquet'
    write(big, rows(30000, 9), 700, 300)
    server.set(delay=0.02)
    for trial in range(10, 50):
        remove('k')
        process = subprocess.Popen(['tokmap', 'pack', '-q', '--threads', '1', '--checkpoint-seconds', '0.001', '-o', 'k',
                                    's3://web/big/'], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.02 * trial)
        process.kill()
        process.wait()
        os.utime(big, (trial, trial))
        done = subprocess.run(['tokmap', 'pack', '-q', '-o', 'k', 's3://web/big/'], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL)
        if done.returncode:
            break
    assert 's3://web/big/x.parquet: this input has another ETag' in done.stderr, (trial, done.stderr)
    server.set(delay=0.0)

    # ---- servers that cannot ----
    server.set(rules=[{'path': r'\.parquet', 'fault': 'no_ranges'}])
    remove('k', 'ref')
    run('-q', '-o', 'ref', NAMES[3])
    run('-q', '-o', 'k', URLS[3])
    equal('ref', 'k', 'no ranges')
    with open('store/web/large.parquet', 'wb') as file:
        file.truncate(65 << 20)
    before = server.counts()['bytes']
    remove('k')
    said = run('-q', '-o', 'k', server.url + '/web/large.parquet', status=1).stderr
    assert 'answers with the whole file' in said and 'download' in said, said
    server.set(rules=[{'path': r'\.parquet', 'fault': '403'}])
    said = run('-q', '-o', 'k', URLS[0], status=1).stderr
    assert 'HTTP status 403' in said, said
    server.set(rules=[])
    said = run('-q', '-o', 'k', server.url + '/web/set/none.parquet', status=1).stderr
    assert 'HTTP status 404' in said, said

    # ---- hostile footers: an error, and a bounded number of bytes ----
    size = 200 << 20
    for number in range(8):
        tail = open(NAMES[number % 3], 'rb').read()
        footer = bytearray(tail[-8 - struct.unpack('<I', tail[-8:-4])[0]:])
        for _ in range(number * 3):
            footer[random.randrange(len(footer) - 8)] = random.randrange(256)
        if number % 4 == 3:
            footer[-8:-4] = struct.pack('<I', random.choice([1 << 31, size, 50 << 20]))
        with open('store/web/bad.parquet', 'wb') as file:
            file.truncate(size - len(footer))
            file.seek(size - len(footer))
            file.write(footer)
        remove('k')
        before = server.counts()['bytes']
        run('-q', '-o', 'k', 's3://web/bad.parquet', status=1)
        sent = server.counts()['bytes'] - before
        assert sent < 90 << 20, (number, sent)
