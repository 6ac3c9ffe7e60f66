# SPDX-License-Identifier: MIT
# The test pack-hub.sh. Prints nothing if all is well.
import json, os, random, subprocess, sys, time
import remote_hub
from remote_hub import Repository, TOKEN, repositories, requests, state

for name in list(os.environ):
    if name.lower().endswith('_proxy') or name.startswith(('AWS_', 'HF_', 'HUGGING', 'XDG_', 'TOKMAP_CACHE')):
        del os.environ[name]
os.environ.update(HOME=os.getcwd(), HF_ENDPOINT=remote_hub.start(), AWS_MAX_ATTEMPTS='4')
random.seed(4)
FILES = {'data/%02d.txt' % i: ('text %d ' % i * random.randrange(1, 400)).encode() for i in range(12)}
FILES.update({'data/sub/' + name: ('in ' + name).encode() for name in (
    'a b.txt', '100%.txt', 'a+b&c=d.txt', '\u00e9t\u00e9.txt', 'q?x#y.txt', "it's <this>.txt", '[z].txt', 'a:b@c.txt')})
FILES.update({'.gitattributes': b'*.parquet', 'data/Z/x.txt': b'capital', 'data/z.txt': b'small', 'big.txt': b'a long text, ' * 30000})
own = repositories['datasets', 'an-owner/set.1'] = Repository(FILES)
BASE = 'hf://datasets/an-owner/set.1'


def pack(*inputs, output='r', **environment):
    whole = {**os.environ, **environment}
    for path in (output + '.bin', output + '.tmx'):
        if os.path.exists(path):
            os.unlink(path)
    del requests[:]
    done = subprocess.run(['tokmap', 'pack', '-q', '--force', '-o', output, '--threads=2', *inputs],
                          capture_output=True, env={k: v for k, v in whole.items() if v is not None},
                          stdin=subprocess.DEVNULL, timeout=60)
    done.err = done.stderr.decode(errors='replace')
    assert TOKEN not in done.err, done.err
    assert not remote_hub.problems, remote_hub.problems
    return done


def tokens(output='r'):
    """The tokens are bytes, and each document ends with one more token."""
    with open(output + '.bin', 'rb') as file:
        return file.read()


def expected(texts):
    paths = []
    os.makedirs('local', exist_ok=True)
    for number, text in enumerate(texts):
        paths.append('local/%d.txt' % number)
        with open(paths[-1], 'wb') as file:
            file.write(text)
    assert subprocess.run(['tokmap', 'pack', '-q', '--force', '-o', 'l', *paths]).returncode == 0
    return tokens('l')


def good(names, keys, files=FILES, **environment):
    done = pack(*names, **environment)
    assert done.returncode == 0, (names, done.err)
    assert tokens() == expected([files[key] for key in keys]), names
    return done


def bad(names, *texts, **environment):
    done = pack(*names, **environment)
    assert done.returncode == 1, (names, done.returncode, done.err)
    assert not os.path.exists('r.bin')
    for text in texts:
        assert text in done.err, (names, text, done.err)


def by_bytes(keys):
    return sorted(keys, key=str.encode)


def asked(part):
    return [path for _, _, path, _ in requests if part in path]


shown = [key for key in FILES if not key.startswith('.')]
below = by_bytes(key for key in shown if key.startswith('data/'))

# ---- names and lists ----
for page in (1000, 3):
    state['page'] = page
    good([BASE], by_bytes(shown))
    good([BASE + '/data/'], below)
good([BASE + '/data/*.txt'], [key for key in below if key.count('/') == 1])
assert all('recursive=false' in path for path in asked('/tree/')) and asked('/tree/'), requests
good([BASE + '@main/data/0?.txt'], [key for key in below if key.startswith('data/0')])
good([BASE + '/data/**/*b*.txt'], [key for key in below if 'b' in key.split('/')[-1]])
good([BASE + '/d*/sub/q?x*.txt'], ['data/sub/q?x#y.txt'])
good([BASE + '/data/**', '--exclude', 'sub'], [key for key in below if '/sub/' not in key])
good([BASE + '/data/0[13].txt', BASE + '@' + own.branches['main'] + '/data/z.txt'],
     ['data/01.txt', 'data/03.txt', 'data/z.txt'])
for key in (key for key in below if '/sub/' in key and '[' not in key and '?' not in key):
    good([BASE + '/' + key], [key])
    assert not asked('/tree/'), requests  # one file needs no list
with open('list', 'w') as file:
    file.write(BASE + '/data/sub/[z].txt\n' + BASE + '/big.txt\n')
good(['--files-from', 'list'], ['data/sub/[z].txt', 'big.txt'])
# The parts of a command read the list once, and ask once what main is.
good([BASE + '/data/**'], below)
assert len(asked('/revision/')) == 1, requests
assert len(asked('/tree/')) == len(set(asked('/tree/'))), requests
for wrong in ('hf://', 'hf://datasets', 'hf://datasets/a', 'hf://datasets/a/', 'hf://datasets/a//x', BASE + '/../x', BASE + '/a/./x',
              BASE + '//x', BASE + '@/x', BASE + '@', 'hf://datasets/../x/y', BASE + '@a\nb/x'):
    bad([wrong], 'a name on the Hugging Face Hub is hf://datasets/OWNER/NAME/PATH')
bad(['hf://an-owner/model/x.txt'], 'texts are in datasets')
bad([BASE + '/none.txt'], BASE + '@' + own.branches['main'] + '/none.txt', 'no such file', 'end it with a slash')
bad([BASE + '/data'], 'end it with a slash')
bad([BASE + '/none/'], 'none/', 'no object of the bucket or repository')
bad([BASE + '/none/*.txt'], 'none/*.txt', 'no object of the bucket or repository')

# ---- tokens, and repositories that are closed ----
repositories['datasets', 'o/gated'] = Repository(FILES, gated=True)
repositories['datasets', 'o/private'] = Repository(FILES, private=True)
bad(['hf://datasets/o/gated/big.txt'], 'is gated (HTTP status 401, GatedRepo)', os.environ['HF_ENDPOINT'] + '/datasets/o/gated',
    'set HF_TOKEN')
bad(['hf://datasets/o/gated/data/0?.txt'], 'accept its conditions', 'account of the token', HF_TOKEN='hf_other')
bad(['hf://datasets/o/private/'], 'there is no %s/datasets/o/private, or not for everybody' % os.environ['HF_ENDPOINT'], 'HF_TOKEN')
bad(['hf://datasets/o/absent/'], '/datasets/o/absent, or not for the account', 'HTTP status 404', HF_TOKEN=TOKEN)
bad([BASE + '/'], 'HTTP status 401', 'valid token', HF_TOKEN='hf_wrong')
bad([BASE + '/'], 'contains a space', HF_TOKEN='hf_with a blank')
bad([BASE + '/'], 'HF_ENDPOINT', HF_ENDPOINT='localhost:3')
bad([BASE + '@v9/big.txt'], 'set.1 has no such branch, tag, or commit')
bad([BASE + '@' + '0' * 40 + '/data/'], 'no such branch, tag, or commit')
bad([BASE + '@' + '0' * 40 + '/big.txt'], 'no such branch, tag, or commit')
good(['hf://datasets/o/private/big.txt'], ['big.txt'], HF_TOKEN=TOKEN)
assert {'authorization' in header for host, _, _, header in requests if host == 'hub'} == {True}
assert any(host == 'away' for host, *_ in requests)  # where problems notes a token
for path, environment in (('.cache/huggingface/token', {}), ('x/token', {'HF_HOME': 'x'}), ('t', {'HF_TOKEN_PATH': 't'}),
                          ('huggingface/token', {'XDG_CACHE_HOME': '.'})):
    os.makedirs(os.path.dirname(path) or '.', exist_ok=True)
    with open(path, 'w') as file:
        file.write(TOKEN + '\n')
    good(['hf://datasets/o/gated/big.txt'], ['big.txt'], **environment)
    os.unlink(path)
own.branches['refs/convert/parquet'] = own.branches['main']
good([BASE + '@refs/convert/parquet/big.txt'], ['big.txt'])

# ---- connections, limits, and addresses that end ----
state.update(limited=2, fails=1)
begun = time.monotonic()
good([BASE + '/data/**'], below)
assert time.monotonic() - begun > 1, 'Retry-After was not honored'
state.update(limited=9)
done = pack(BASE + '/data/**', AWS_MAX_ATTEMPTS='2')
assert done.returncode == 1 and 'HTTP status 429' in done.err and 'attempt 2' in done.err, done.err
state.update(limited=0)
state['breaks'] = {'big.txt': 3}
good([BASE + '/big.txt'], ['big.txt'])  # each rest comes from an address with another ETag
assert len([path for host, _, path, header in requests if host == 'away' and 'range' in header]) == 3, requests
state.update(breaks={'big.txt': 2}, lifetime=0.15)
good([BASE + '/big.txt'], ['big.txt'])
assert len(asked('/resolve/')) > 1, requests
state.update(lifetime=1e9, breaks={}, denied=2)
good([BASE + '/big.txt'], ['big.txt'])
state.update(denied=99)
bad([BASE + '/big.txt'], 'names an address for this file that does not work', 'attempt', AWS_MAX_ATTEMPTS='2')
state.update(denied=0)

# ---- what a hostile server may send ----
COMMIT = own.branches['main']


def listed(*files, **more):
    return json.dumps([{'type': 'file', 'path': path, 'size': 3, 'oid': 'x', **more} for path in files])


for answer in ('[', '{}', '[1]', b'\x00', '[' * 3000, listed('data/../../x'), listed('data/a\nb'), listed('other/x'),
               listed('data/x\0y'), listed('data/' + 'a' * 2000), listed('data/a', size=-1), listed('data/'),
               '[{"type":"file","path":"data/a"}]', listed(7)):
    state['answers'] = {'/tree/': (200, answer)}
    bad([BASE + '/data/'], 'lists files wrongly')
state['answers'] = {'/tree/': (200, listed('data/a', 'data/a'))}
bad([BASE + '/data/'], 'twice')
state['answers'] = {'/tree/': (200, '[' + ' ' * (17 << 20) + ']')}
bad([BASE + '/data/'], 'longer than')
for link, text in (('http://127.0.0.2:9/api/x', 'another host'), ('https://huggingface.co/api/x', 'another host'),
                   ('%s/api/datasets/an-owner/set.1/tree/%s/data?recursive=true&expand=false&limit=1000' %
                    (os.environ['HF_ENDPOINT'], COMMIT), 'with itself')):
    state['answers'] = {'/tree/': lambda hub: hub.answer(200, '[]', Link='<x>; rel="first", <%s>; rel="next"' % link)}
    bad([BASE + '/data/'], text)
for answer in ('{}', '{"sha": "main"}', '{"sha": "%s"}' % ('g' * 40), '{"sha": "%s"' % COMMIT, '[]', ''):
    state['answers'] = {'/revision/': (200, answer)}
    bad([BASE + '/data/'], 'does not name a commit')
state['answers'] = {'/resolve/': lambda hub: hub.answer(302, 'go on', Location=hub.path)}
bad([BASE + '/data/00.txt'], 'cannot be followed')
state['answers'] = {'/resolve/': lambda hub: hub.answer(302, 'go on', Location='file:///etc/passwd')}
bad([BASE + '/data/00.txt'], 'cannot be followed')
state['answers'] = {'/resolve/': lambda hub: hub.answer(302, 'go on')}
bad([BASE + '/data/00.txt'], 'cannot be followed')
state['answers'] = {'/resolve/': lambda hub: hub.answer(200, FILES['big.txt'][:-7], length=len(FILES['big.txt']))}
bad([BASE + '/data/00.txt'], 'attempt', AWS_MAX_ATTEMPTS='2')
state['answers'] = {}
# A repository that was renamed: the Hub sends the requests on, and the token goes along.
state['answers'] = {'/an-owner/old/': lambda hub: hub.answer(307, 'moved', Location=hub.path.replace('/an-owner/old/', '/o/private/'))}
good(['hf://datasets/an-owner/old/data/'], below, HF_TOKEN=TOKEN)
state['answers'] = {}

# ---- a branch that moves ----
os.makedirs('lines', exist_ok=True)
many = {'many/%02d.jsonl' % i: b''.join(b'{"text": "line %d of %d"}\n' % (random.randrange(3000), i) for _ in range(2000))
        for i in range(10)}
moving = repositories['datasets', 'o/moving'] = Repository(many)
first = moving.branches['main']


def words(name, *inputs, options=()):
    return ['tokmap', 'pack', '-q', '--threads', '2', '--checkpoint-seconds', '0.001', '-o', name, *options, *inputs]


def output(name):
    return {path[len(name):]: open(path, 'rb').read() for path in sorted(os.listdir())
            if path.startswith((name + '.', name + '-')) and os.path.isfile(path)}


for options in ((), ('--shard-tokens', '100k'), ('--shuffle', '3')):
    name = 'hf://datasets/o/moving/many/*.jsonl'
    moving.branches['main'] = first
    subprocess.run(words('once', 'hf://datasets/o/moving@' + first + '/many/*.jsonl', options=options), check=True)
    state['delay'] = 0.05
    process = subprocess.Popen(words('kept', name, options=options), stderr=subprocess.DEVNULL)
    while not os.path.exists('kept.work/journal') and process.poll() is None:
        time.sleep(0.001)
    time.sleep(0.12)
    process.kill()
    process.wait()
    state['delay'] = 0
    assert os.path.exists('kept.work/journal'), options
    changed = {path: body.replace(b'line', b'LINE') for path, body in many.items()}
    moving.commit('main', {**changed, 'many/99.jsonl': b'{"text": "new"}\n'})
    done = subprocess.run(words('kept', name, options=options), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    one, two = output('once'), output('kept')
    assert one == two and one, (options, list(one), list(two))
    index = [body for path, body in two.items() if path.endswith('.tmx')][0]
    assert ('hf://datasets/o/moving@%s/many/' % first).encode() in index
    done = subprocess.run([*words('kept', name, options=options), '--force'], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert output('kept') != one
    for path in os.listdir():
        if path.startswith(('kept', 'once')):
            os.unlink(path)
done = subprocess.run(['tokmap', 'pack', '-o', BASE + '/x', 'l.bin'], capture_output=True, text=True)
assert done.returncode == 1 and 'files of the Hugging Face Hub (hf://) are read and not written' in done.stderr, done

# ---- tables, which are read by ranges from addresses that end ----
with open('rows.jsonl', 'w') as file:
    file.writelines('{"text": "row %d of %s", "n": %d}\n' % (i, 'x' * random.randrange(60), i) for i in range(12000))
subprocess.run([sys.executable, os.environ['TOKMAP_CLI'] + '/parquet_groups.py', 'rows.jsonl', 'rows.parquet', '1000'],
               check=True, stdout=subprocess.DEVNULL)
with open('rows.parquet', 'rb') as file:
    table = file.read()
repositories['datasets', 'o/tables'] = Repository({'data/0.parquet': table, 'data/1.parquet': table})
cut = ('--shard-tokens', '100k', '--unit-bytes', '200k')
for name, operands in (('near', ['rows.parquet', 'rows.parquet']), ('far', ['hf://datasets/o/tables/data/*.parquet'])):
    state.update(lifetime=0.03, delay=0.05)
    done = pack(*cut, *operands, output=name)
    assert done.returncode == 0, done.err
near, far = output('near'), output('far')
assert [near[path] for path in near if path.endswith('.bin')] == [far[path] for path in far if path.endswith('.bin')]
assert len(near) > 3 and len([path for host, _, path, _ in requests if host == 'away']) > 4, (list(near), requests)
state.update(lifetime=1e9, delay=0)
repositories['datasets', 'o/lake'] = Repository({'t/_delta_log/0.json': b'{}', 't/x/0.parquet': table})
for operand in ('t/x/0.parquet', 't/x/*.parquet', 't/', '**/*.parquet'):
    bad(['hf://datasets/o/lake/' + operand], '/t/: the folder is a table of Delta Lake')

# ---- tokenizers ----
letters = {chr(33 + i): i for i in range(94)}
TOKENIZER = json.dumps({'version': '1.0', 'added_tokens': [
    {'id': 96, 'content': '<|end|>', 'special': True, 'single_word': False, 'lstrip': False, 'rstrip': False, 'normalized': False}],
    'normalizer': None, 'pre_tokenizer': {'type': 'ByteLevel', 'add_prefix_space': False, 'trim_offsets': True, 'use_regex': True},
    'post_processor': None, 'decoder': {'type': 'ByteLevel'},
    'model': {'type': 'BPE', 'vocab': {**letters, '\u0120': 94, 'in': 95}, 'merges': ['i n'], 'unk_token': None}}).encode()
model = {'tokenizer.json': TOKENIZER, 'tokenizer_config.json': b'{"eos_token": "<|end|>", "chat_template": "x"}',
         'model.safetensors': b'w' * 5000, 'config.json': b'{}', 'onnx/tokenizer.json': b'{', 'README.md': b'#',
         'chat_template.jinja': b'{{ messages }}'}
named = repositories['models', 'an-owner/model'] = Repository(model, gated=True)
os.makedirs('same', exist_ok=True)
for path, body in model.items():
    if '/' not in path:
        with open('same/' + path, 'wb') as file:
            file.write(body)
with open('text.txt', 'w') as file:
    file.write('in the beginning <|end|> was the text\n')
commit = named.branches['main']
os.environ['HF_TOKEN'] = TOKEN


def command(*words, status=0, **environment):
    del requests[:]
    done = subprocess.run(['tokmap', *words], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          env={**os.environ, **environment})
    assert done.returncode == status, (words, done.returncode, done.stderr)
    assert not remote_hub.problems, remote_hub.problems
    return done


command('pack', '-q', '-o', 'here', '-t', 'same', 'text.txt')
command('pack', '-q', '-o', 'there', '-t', 'hf://an-owner/model', 'text.txt')
assert tokens('here') == tokens('there')
assert sorted(path.split('/')[-1] for path in asked('/resolve/')) == ['chat_template.jinja', 'config.json', 'tokenizer.json', 'tokenizer_config.json']
about = json.loads(command('info', '--json', 'there').stdout)
assert 'hf://an-owner/model@' + commit in json.dumps(about), about
folder = '.cache/tokmap/hub/models--an-owner--model/snapshots/' + commit
assert os.path.exists(folder + '/complete'), os.listdir('.cache')
# A commit is fetched once, and asks nobody: also what a dataset records, from another folder.
for words in (['encode', '-t', 'hf://an-owner/model@' + commit, 'text.txt'], ['tokenizer', 'hf://an-owner/model@' + commit],
              ['show', '--document', '0', 'there'], ['decode', '-t', 'hf://an-owner/model@' + commit, 'ids']):
    with open('ids', 'w') as file:
        file.write('0 1 95\n')
    done = command(*words)
    assert not requests, (words, requests)
    assert done.stdout == command(*[word.replace('hf://an-owner/model@' + commit, 'same').replace('there', 'here') for word in words]).stdout or words[0] == 'tokenizer', words
assert 'in the beginning' in command('show', '--document', '0', 'there').stdout
command('encode', '-t', 'hf://an-owner/model', 'text.txt')
assert len(requests) == 1, requests
assert 'an-owner/model' in command('tokenizer', 'hf://an-owner/model').stdout
command('convert', 'raw:here.bin,width=2,vocab=97', '-t', 'hf://an-owner/model', '-o', 'stated')
assert 'hf://an-owner/model@' + commit in command('info', '--json', 'stated').stdout
for words, *texts in ((['hf://an-owner/absent'], 'there is no ', '/an-owner/absent'), (['hf://an-owner/model@v7'], 'no such branch, tag, or commit'),
                      (['hf://an-owner'], 'a name on the Hugging Face Hub'), (['hf://datasets/an-owner/set.1'], 'tokenizers in models'),
                      (['hf://an-owner/model/onnx'], 'a tokenizer is named by its repository')):
    done = command('encode', '-t', *words, 'text.txt', status=1)
    for text in texts:
        assert text in done.stderr, (words, done.stderr)
os.unlink(folder + '/complete')
done = command('show', '--document', '0', 'there', status=1, HF_TOKEN='hf_other')
assert 'is gated (HTTP status 403' in done.stderr, done.stderr
done = command('encode', '-t', 'hf://an-owner/model', 'text.txt', status=1, TOKMAP_CACHE='/dev/null/x')
assert 'TOKMAP_CACHE' in done.stderr, done.stderr
command('encode', '-t', 'hf://an-owner/model', 'text.txt', TOKMAP_CACHE='elsewhere')
assert os.path.exists('elsewhere/hub'), os.listdir('.')
repositories['models', 'o/empty'] = Repository({'config.json': b'{}'})
assert 'contains no tokenizer' in command('encode', '-t', 'hf://o/empty', 'text.txt', status=1).stderr
