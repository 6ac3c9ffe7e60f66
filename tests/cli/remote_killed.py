# SPDX-License-Identifier: MIT
# The test pack-bucket-killed.sh. Prints nothing if all is well.
import os, random, shutil, subprocess, time
import remote_bucket, remote_server

for name in list(os.environ):
    if name.lower().endswith('_proxy') or name.startswith(('AWS_', 'GCS_', 'GS_', 'STORAGE_')):
        del os.environ[name]
server, base = remote_server.start(remote_bucket.Handler)
key, secret = next(iter(remote_bucket.SECRETS.items()))
os.environ.update(HOME=os.getcwd(), AWS_ENDPOINT_URL=base.rstrip('/'), AWS_ACCESS_KEY_ID=key,
                  AWS_SECRET_ACCESS_KEY=secret)
random.seed(7)
bucket = remote_bucket.BUCKETS['bucket'] = {}
for i in range(24):
    lines = ['{"text": "line %d of %d"}' % (random.randrange(3000), i % 7) for _ in range(1000)]
    bucket['many/%02d.jsonl' % i] = '\n'.join(lines).encode() + b'\n'
remote_bucket.PAGE = 15
PREFIX = 's3://bucket/many/'
SOME = 'many/17.jsonl'
KINDS = {'one shard': [], 'shards': ['--shard-tokens', '100k'], 'duplicates': ['--dedup', 'exact'],
         'shuffle': ['--shuffle', '3', '--shuffle-memory', '64Ki', '--shard-tokens', '200k']}


def words(name, options):
    return ['tokmap', 'pack', '-q', '--threads', '2', '--checkpoint-seconds', '0.001', *options, '-o', name, PREFIX]


def files(name):
    """The files of an output by their endings; of a manifest, which has the name in it, how many lines it has."""
    found = {path[len(name):]: open(path, 'rb').read() for path in os.listdir() if path == name or
             path.startswith((name + '.', name + '-')) and os.path.isfile(path)}
    return {end: text.count(b'\n') if not end else text for end, text in found.items()}


def remove(name):
    shutil.rmtree(name + '.work', ignore_errors=True)
    for path in os.listdir():
        if path == name or path.startswith((name + '.', name + '-')):
            os.unlink(path)


def killed(options, seconds):
    """Kills a pack so long after its journal is there. Returns whether there is work to be continued."""
    process = subprocess.Popen(words('k', options), stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not os.path.exists('k.work/journal') and process.poll() is None:
        time.sleep(0.001)
    time.sleep(seconds)
    process.kill()
    process.wait()
    return os.path.exists('k.work/journal')


def run(name, options):
    return subprocess.run(words(name, options), stdin=subprocess.DEVNULL, capture_output=True, text=True)


def done(name, options, *statuses):
    result = run(name, options)
    assert result.returncode in (statuses or (0,)), (options, result.returncode, result.stderr)


def refused(name, options, kept):
    """An object of the same size has another content: it is named, and what is kept stays. Returns false if nothing was
    saved yet, so that the command began again."""
    old = bucket[SOME]
    bucket[SOME] = old.replace(b'line', b'LINE')
    result = run(name, options)
    bucket[SOME] = old
    if not result.returncode:
        return False
    assert result.returncode == 1, (options, result.returncode, result.stderr)
    assert 's3://bucket/' + SOME in result.stderr and 'another ETag' in result.stderr, result.stderr
    assert os.path.exists(kept), os.listdir()
    return True


# ---- kills ----
for kind, options in KINDS.items():
    remove('ref')
    began = time.monotonic()
    done('ref', options)
    seconds = time.monotonic() - began
    wanted = files('ref')
    assert len(wanted) > 1, (kind, wanted)
    remove('k')
    continued, replaced = 0, False
    for number in range(30):
        if not killed(options, seconds * (number * 37 % 100) / 300):
            remove('k') # the pack had ended
            continue
        continued += 1
        if not replaced:
            replaced = refused('k', options, 'k.work/journal')
            if not replaced:
                remove('k')
        if replaced and continued > 2:
            break
    assert continued > 2 and replaced, (kind, continued)
    done('k', options)
    assert files('k') == wanted, kind
    assert not os.path.exists('k.work'), kind
    remove('k')

# ---- tasks ----
for kind, options in KINDS.items():
    if kind == 'one shard':
        continue
    options = ['--shard-tokens', '200k'] + [word for word in options if word not in ('--shard-tokens', '100k', '200k')]
    options += ['--unit-bytes', '200k']
    remove('ref')
    done('ref', options)
    wanted = files('ref')
    remove('k')
    tasks = [options + ['--task', task] for task in ('0/2', '1/2')]
    done('k', tasks[0], 0, 3)
    assert os.path.exists('k.work/journal')
    assert refused('k', tasks[1], 'k.work/journal'), kind
    done('k', tasks[1], 0, 3)
    for _ in range(2):
        for task in tasks:
            if not os.path.exists('k'):
                done('k', task, 0, 3)
    assert files('k') == wanted, kind
    assert not os.path.exists('k.work'), kind
    remove('k')
assert not remote_bucket.problems, remote_bucket.problems
