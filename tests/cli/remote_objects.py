# SPDX-License-Identifier: MIT
# The test pack-bucket.sh. Prints nothing if all is well.
import os, random, subprocess
import remote_bucket, remote_server
from remote_bucket import BUCKETS

for name in list(os.environ):
    if name.lower().endswith('_proxy') or name.startswith(('AWS_', 'GCS_', 'GS_', 'STORAGE_')):
        del os.environ[name]
os.environ['HOME'] = os.getcwd()
server, base = remote_server.start(remote_bucket.Handler)
address = base.rstrip('/')
KEY, SECRET = next(iter(remote_bucket.SECRETS.items()))
random.seed(3)
made = {'data/%03d.txt' % i: ('text %d ' % i * random.randrange(1, 50)).encode() for i in range(40)}
awkward = ['data/sub/a b.txt', 'data/sub/100%.txt', 'data/sub/a+b&c=d.txt', 'data/sub/\u00e9t\u00e9.txt',
           'data/sub/q?x#y.txt', "data/sub/it's <this>.txt", 'data/sub/[z].txt', 'data/sub/a:b@c.txt', 'data/sub/~.txt',
           'data/sub//double.txt', 'data/sub/x/../y.txt']
for key in awkward:
    made[key] = ('in ' + key).encode()
made['big.txt'] = b'a longer text, ' * 20000
bucket = BUCKETS['bucket'] = dict(made)
bucket['data/'] = b''
bucket['data/.hidden/x.txt'] = bucket['data/sub/.x.txt'] = b'hidden'
bucket['database.txt'] = b'not below data/'


def pack(*inputs, **environment):
    whole = {**os.environ, 'AWS_ENDPOINT_URL': address, 'AWS_MAX_ATTEMPTS': '3', **environment}
    for path in ('r.bin', 'r.tmx'):
        if os.path.exists(path):
            os.unlink(path)
    done = subprocess.run(['tokmap', 'pack', '-q', '--force', '-o', 'r', '--threads=2', *inputs],
                          capture_output=True, env={k: v for k, v in whole.items() if v is not None},
                          stdin=subprocess.DEVNULL)
    done.err = done.stderr.decode(errors='replace')
    assert SECRET not in done.err and 'tokenfortoken' not in done.err, done.err
    return done


def tokens():
    """The tokens are bytes, and each document ends with one more token."""
    with open('r.bin', 'rb') as file:
        return file.read()


def expected(keys):
    """Packs the same texts from files."""
    paths = []
    os.makedirs('local', exist_ok=True)
    for number, key in enumerate(keys):
        paths.append('local/%d.txt' % number)
        with open(paths[-1], 'wb') as file:
            file.write(bucket[key])
    assert subprocess.run(['tokmap', 'pack', '-q', '--force', '-o', 'l', *paths]).returncode == 0
    with open('l.bin', 'rb') as file:
        return file.read()


def good(names, keys, **environment):
    done = pack(*names, **environment)
    assert done.returncode == 0, (names, done.err, remote_bucket.problems[-3:])
    assert tokens() == expected(keys), names


def bad(names, *texts, **environment):
    done = pack(*names, **environment)
    assert done.returncode == 1, (names, done.returncode, done.err)
    assert not os.path.exists('r.bin')
    for text in texts:
        assert text in done.err, (names, text, done.err)


def by_bytes(keys):
    return sorted(keys, key=str.encode)


signed = {'AWS_ACCESS_KEY_ID': KEY, 'AWS_SECRET_ACCESS_KEY': SECRET}

# ---- signatures and keys of all kinds ----
good(['s3://bucket/data/000.txt'], ['data/000.txt'], **signed)
for key in awkward:
    if '[' not in key:
        good(['s3://bucket/' + key], [key], **signed)
remote_bucket.breaks['/bucket/big.txt'] = 2
good(['s3://bucket/big.txt'], ['big.txt'], **signed)
assert remote_bucket.requests[-1][1]['Range'] == 'bytes=140000-', remote_bucket.requests[-1]
assert not remote_bucket.problems, remote_bucket.problems

# ---- lists ----
below = by_bytes(key for key in made if key.startswith('data/') and '/.' not in key)
for page in (1000, 7, 1):
    remote_bucket.PAGE = page
    good(['s3://bucket/data/'], below, **signed)
good(['s3://bucket/data/*.txt'], by_bytes(key for key in below if key.count('/') == 1), **signed)
assert 'delimiter=%2F' in [path for path, _ in remote_bucket.requests if 'list-type' in path][-1]
remote_bucket.PAGE = 7
good(['s3://bucket/data/00?.txt'], ['data/00%d.txt' % i for i in range(10)], **signed)
good(['s3://bucket/data/**/a*.txt'], by_bytes(k for k in below if '/a' in k), **signed)
good(['s3://bucket/data/sub/[z].txt'], ['data/sub/[z].txt'], **signed)
good(['s3://bucket/d*/sub/q?x*.txt'], ['data/sub/q?x#y.txt'], **signed)
good(['s3://bucket'], by_bytes(key for key in bucket if '/.' not in key and key != 'data/'), **signed)
good(['--exclude', 'sub', 's3://bucket/data/'], [key for key in below if '/sub/' not in key], **signed)
good(['--include', '001.txt', 's3://bucket/data/', 's3://bucket/data/001.txt'], ['data/001.txt'] * 2, **signed)
good(['--hidden', 's3://bucket/data/sub/'], by_bytes(k for k in bucket if k.startswith('data/sub/')), **signed)
with open('list', 'w') as file:
    file.write('s3://bucket/data/003.txt\ns3://bucket/data/sub/[z].txt\n')
good(['--files-from', 'list'], ['data/003.txt', 'data/sub/[z].txt'], **signed)
# Hidden names beside tables, and tables themselves, which a .parquet object makes tokmap look for.
lake = BUCKETS['lake'] = {key: b'text of ' + key.encode() for key in (
    'src/__init__.py', 'src/_a/__init__.py', 'src/_a/_b/_c.py', 'src/m.py', 'json/_SUCCESS', 'json/_t/0', 'json/a.txt',
    'json/sub/_x', 'mixed/_committed_1', 'mixed/_m/y.txt', 'mixed/a.txt', 'mixed/z.parquet', 'delta/_delta_log/0.json',
    'delta/day=1/x.parquet', 'ice/n/t/data/x.parquet', 'ice/n/t/metadata/1-a.metadata.json', 'ice/n/u/data/y.parquet')}
for page in (1000, 1):
    remote_bucket.PAGE = page
    bucket = lake
    good(['s3://lake/src/'], by_bytes(key for key in lake if key.startswith('src/')), **signed)
    good(['s3://lake/json/'], ['json/a.txt', 'json/sub/_x'], **signed)
    good(['s3://lake/json/*'], ['json/a.txt'], **signed)
    good(['--hidden', 's3://lake/json/_*', 's3://lake/json/a.txt'], ['json/_SUCCESS', 'json/a.txt'], **signed)
    good(['s3://lake/json/_SUCCESS', 's3://lake/json/_t/0'], ['json/_t/0'], **signed)
    good(['--exclude', '*.parquet', 's3://lake/mixed/'], ['mixed/a.txt'], **signed)
    for names, folder in ((['s3://lake/delta/'], 's3://lake/delta/'), (['s3://lake/delta/day=1/'], 's3://lake/delta/'),
                          (['s3://lake/delta/day=1/x.parquet'], 's3://lake/delta/'),
                          (['s3://lake/delta/**/*.parquet', '--on-error', 'skip'], 's3://lake/delta/'),
                          (['s3://lake/ice/'], 's3://lake/ice/n/t/'), (['s3://lake/ice/n/t/data/*'], 's3://lake/ice/n/t/')):
        bad(names, folder + ': the folder is a table of ', '--table-files', **signed)
    for names in (['s3://lake/ice/n/u/data/y.parquet'], ['--table-files', 's3://lake/delta/day=1/x.parquet']):
        bad(names, 'is not a Parquet file', **signed)
bucket, remote_bucket.PAGE = BUCKETS['bucket'], 7
assert not remote_bucket.problems, remote_bucket.problems
# A server that does not know encoding-type sends keys as they are, and says no EncodingType.
remote_bucket.PLAIN = True
bucket.update({'raw/a+b.txt': b'plus', 'raw/a b.txt': b'blank', 'raw/100%25.txt': b'percent', 'raw/%zz&<.txt': b'no escape'})
for page in (1000, 1):
    remote_bucket.PAGE = page
    good(['s3://bucket/data/'], below, **signed)
    good(['s3://bucket/raw/'], by_bytes(key for key in bucket if key.startswith('raw/')), **signed)
remote_bucket.PLAIN, remote_bucket.PAGE = False, 7
good(['s3://bucket/raw/'], by_bytes(key for key in bucket if key.startswith('raw/')), **signed)
for key in [key for key in bucket if key.startswith('raw/')]:
    del bucket[key]
bad(['s3://bucket/none/'], 's3://bucket/none/', 'no object', **signed)
bad(['s3://bucket/data'], 'HTTP status 404', 'slash', **signed)
bad(['s3://other/x'], 'HTTP status 404', **signed)
for wrong in ('s3://', 's3:///x', 's3://a b/x', 's3://a@b/x', 's3://..%2f/x'):
    bad([wrong], 'BUCKET', **signed)

# ---- credentials: variables, files, profiles, session tokens; nothing of them is printed ----
bad(['s3://bucket/big.txt'], 's3://bucket/big.txt', 'HTTP status 403', 'AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY')
bad(['s3://bucket/data/'], 'HTTP status 403', 'AWS_ACCESS_KEY_ID')
bad(['s3://bucket/big.txt'], 'AWS_SECRET_ACCESS_KEY', AWS_ACCESS_KEY_ID=KEY)
bad(['s3://bucket/big.txt'], 'AWS_ACCESS_KEY_ID', AWS_SECRET_ACCESS_KEY=SECRET)
for what in 's3://bucket/big.txt', 's3://bucket/data/':
    bad([what], '(HTTP status 403, SignatureDoesNotMatch, region us-east-1)', AWS_ACCESS_KEY_ID=KEY,
        AWS_SECRET_ACCESS_KEY='wrong' + SECRET[::-1])
    bad([what], '(HTTP status 403, InvalidAccessKeyId, ', AWS_ACCESS_KEY_ID='nobody', AWS_SECRET_ACCESS_KEY='x')
bad(['s3://bucket/big.txt'], 'control character', AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=SECRET + '\r\nX: y')
bad(['s3://bucket/big.txt'], 'AWS_PROFILE', AWS_PROFILE='nobody')
bad(['s3://bucket/big.txt'], 'AWS_REGION', AWS_REGION='evil.example/x', **signed)
for wrong in ('ftp://x', 'http://u:p@127.0.0.1', 'http://x?y', '127.0.0.1:80'):
    done = pack('s3://bucket/big.txt', **{**signed, 'AWS_ENDPOINT_URL': wrong})
    assert done.returncode == 1 and 'AWS_ENDPOINT_URL' in done.err, done.err
# A clock that is wrong: the server's answer says by how much.
remote_bucket.AHEAD = -4000
bad(['s3://bucket/big.txt'], 'HTTP status 403', '(66 minutes) ahead of the server', 'set the clock', **signed)
bad(['s3://bucket/data/'], '(66 minutes) ahead of the server', **signed)
remote_bucket.AHEAD = 86400 * 400 + 30 # so that the few seconds of this test do not matter
bad(['s3://bucket/big.txt'], '(576000 minutes) behind the server', **signed)
assert {problem for problem, path in remote_bucket.problems[-3:]} == {'RequestTimeTooSkewed'}
remote_bucket.AHEAD = 800
good(['s3://bucket/big.txt'], ['big.txt'], **signed)
remote_bucket.AHEAD = 0
remote_bucket.problems.clear()
os.mkdir('.aws')
with open('.aws/credentials', 'w') as file:
    file.write('# keys\n[default]\naws_access_key_id=nobody\naws_secret_access_key = x\n\n[ work ]\n'
               'aws_access_key_id = %s\r\naws_secret_access_key=%s\r\ns3 =\n    region = wrong\n[last]\n' % (KEY, SECRET))
with open('.aws/config', 'w') as file:
    file.write('[default]\nregion = eu-west-1\n[profile work]\nregion=us-east-1\nendpoint_url = %s/\n' % address)
good(['s3://bucket/big.txt'], ['big.txt'], AWS_PROFILE='work', AWS_ENDPOINT_URL=None)
assert not remote_bucket.problems, remote_bucket.problems
bad(['s3://bucket/big.txt'], 'HTTP status 403')
bad(['s3://bucket/big.txt'], 'AWS_ACCESS_KEY_ID', AWS_PROFILE='last')
os.rename('.aws', 'moved')
good(['s3://bucket/big.txt'], ['big.txt'], AWS_PROFILE='work', AWS_SHARED_CREDENTIALS_FILE='moved/credentials',
     AWS_ENDPOINT_URL=None, AWS_ENDPOINT_URL_S3=address)
remote_bucket.TOKEN = 'tokenfortoken/+='
bad(['s3://bucket/big.txt'], 'HTTP status 403', 'AWS_SESSION_TOKEN', **signed)
bad(['s3://bucket/big.txt'], 'expired', AWS_SESSION_TOKEN='tokenfortokenold', **signed)
remote_bucket.problems.clear()
remote_bucket.breaks['/bucket/big.txt'] = 1
good(['s3://bucket/big.txt', 's3://bucket/data/'], ['big.txt'] + below, AWS_SESSION_TOKEN=remote_bucket.TOKEN, **signed)
assert not remote_bucket.problems, remote_bucket.problems
remote_bucket.TOKEN = None
remote_bucket.ANONYMOUS = True
good(['s3://bucket/big.txt'], ['big.txt'])
remote_bucket.ANONYMOUS = False

# ---- the server names the bucket's region, and the signature is made again for it ----
remote_bucket.REGION = 'ap-south-2'
good(['s3://bucket/data/', 's3://bucket/big.txt'], below + ['big.txt'], **signed)
good(['s3://bucket/big.txt'], ['big.txt'], AWS_REGION='ap-south-2', **signed)
remote_bucket.REGION = 'not a region'
bad(['s3://bucket/big.txt'], 'HTTP status 400', 'region us-east-1', **signed)
remote_bucket.REGION = 'us-east-1'

# ---- Google's storage: an HMAC key, and never the keys of Amazon ----
google = {'STORAGE_EMULATOR_HOST': address, 'AWS_ENDPOINT_URL': None}
good(['gs://bucket/data/', 'gs://bucket/big.txt'], below + ['big.txt'], GCS_KEY=KEY, GCS_SECRET=SECRET, **google)
good(['gs://bucket/big.txt'], ['big.txt'], GS_ACCESS_KEY_ID=KEY, GS_SECRET_ACCESS_KEY=SECRET,
     **{**google, 'STORAGE_EMULATOR_HOST': address.split('//')[1]})
bad(['gs://bucket/big.txt'], 'GCS_KEY', 'HTTP status 403', **google, **signed)
bad(['gs://bucket/big.txt'], 'GCS_SECRET', GCS_KEY=KEY, **google)
assert '/auto/s3/' in [h['Authorization'] for p, h in remote_bucket.requests if 'Authorization' in h][-1]

# ---- lists of a hostile or broken server ----
head = '<ListBucketResult><EncodingType>url</EncodingType>'
tail = '<IsTruncated>false</IsTruncated></ListBucketResult>'


def entry(key, size='1'):
    return '<Contents><Key>%s</Key><Size>%s</Size></Contents>' % (key, size)


more = '<IsTruncated>true</IsTruncated><NextContinuationToken>%s</NextContinuationToken></ListBucketResult>'
hostile = {
    'is not sorted': [head + entry('data/2') + entry('data/1') + tail, head + entry('data/1') + entry('data/1') + tail,
                      head + entry('elsewhere') + tail, head + entry('') + tail, head + entry('d') + tail,
                      head + entry('data/' + 'x' * 2000) + tail, head + entry('data/1') + more % 'x'],
    'without a valid key and size': [
        head + entry('data/%00') + tail, head + entry('data/%zz') + tail, head + entry('data/%4') + tail,
        head + entry('data/1', '99999999999999999999') + tail, head + entry('data/1', '-1') + tail,
        head + entry('data/1', '') + tail, head + '<Contents><Key>data/1</Key></Contents>' + tail,
        head + '<Contents><Size>1</Size></Contents>' + tail, head + entry('data/&evil;') + tail,
        head + entry('data/&#0;') + tail, head + entry('data/&#x110000;') + tail, head + entry('data/&#99999999999;') + tail,
        head + entry('<b>data/1</b>') + tail, head + '<Contents><Key>data/1', head + entry('data/1&') + tail],
    'is not valid XML': ['', 'no XML', '<!DOCTYPE x [<!ENTITY a "b">]>' + head + tail, head, '</x>', head + '</a></b></c>',
                         '<' * 100, '<a' + ' b="', head + '<x' * 50, head + '<x>' * 40, head + tail + '<b/>', '<!-- ', '<?xml'],
    'is no ListBucketResult': ['<html><body>welcome</body></html>', '<Error><Code>x</Code></Error>'],
    'does not say whether more follows': [head + '</ListBucketResult>'],
    'has no end': [head + '<IsTruncated>true</IsTruncated></ListBucketResult>', head + more % '', head + more % 'same'],
}
bucket['data/1'] = bucket['data/2'] = b'x'
for text, documents in hostile.items():
    for document in documents:
        remote_bucket.listing = lambda objects, fields, document=document: document.encode()
        bad(['s3://bucket/data/'], 's3://bucket/data/', text, **signed)
remote_bucket.listing = lambda objects, fields: b'<?xml version="1.0"?><!-- c > --><s:ListBucketResult xmlns:s="a>b"><x/>' \
    b'<s:Contents a=\'"\'><Size>1</Size>\n<Key>data/&#x30;0%31.t&#120;t</Key><y><Key>no</Key></y></s:Contents>' \
    b'<IsTruncated>false</IsTruncated><EncodingType>url</EncodingType></s:ListBucketResult>\n'
good(['s3://bucket/data/'], ['data/001.txt'], **signed)
remote_bucket.listing = lambda objects, fields: b'<ListBucketResult>' + b'<x></x>' * 3000000
bad(['s3://bucket/data/'], 'longer than', **signed)
remote_bucket.listing = lambda objects, fields: (head + entry('data/' + 'x' * 600 + '.txt') + tail).encode()
bad(['s3://bucket/data/*.txt'], 'is not compared with patterns', **signed)
