# SPDX-License-Identifier: MIT
# The test test_objects.sh: tokmap reads from moto what boto3 wrote to it.
import json, os, random, subprocess, urllib.request

for name in list(os.environ):
    if name.lower().endswith('_proxy') or name.startswith('AWS_'):
        del os.environ[name]
os.environ.update(HOME=os.getcwd(), INITIAL_NO_AUTH_ACTION_COUNT='1000000', MOTO_S3_DEFAULT_MAX_KEYS='50',
                   AWS_DEFAULT_REGION='eu-central-1')
import boto3
from moto.server import ThreadedMotoServer

server = ThreadedMotoServer(ip_address='127.0.0.1', port=0, verbose=False)
server.start()
address = 'http://%s:%d' % server.get_host_and_port()
TOKMAP = os.environ['TOKMAP']


def client(service, key='x', secret='y', token=None):
    return boto3.client(service, endpoint_url=address, aws_access_key_id=key, aws_secret_access_key=secret,
                        aws_session_token=token, region_name='eu-central-1')


random.seed(5)
objects = {'data/%04d %s.txt' % (i, random.choice('a+%&\u00e9=')): b'document %d' % i for i in range(130)}
objects['big.jsonl'] = b''.join(b'{"text": "%d"}\n' % i for i in range(200000))
s3 = client('s3')
s3.create_bucket(Bucket='texts', CreateBucketConfiguration={'LocationConstraint': 'eu-central-1'})
for key, body in objects.items():
    s3.put_object(Bucket='texts', Key=key, Body=body)
allowed = json.dumps({'Version': '2012-10-17', 'Statement': [
    {'Effect': 'Allow', 'Action': ['s3:*', 'sts:*'], 'Resource': '*'}]})
iam = client('iam')
iam.create_user(UserName='reader')
iam.put_user_policy(UserName='reader', PolicyName='all', PolicyDocument=allowed)
user = iam.create_access_key(UserName='reader')['AccessKey']
iam.create_user(UserName='nobody')
nobody = iam.create_access_key(UserName='nobody')['AccessKey']
role = iam.create_role(RoleName='role', AssumeRolePolicyDocument=allowed)['Role']['Arn']
iam.put_role_policy(RoleName='role', PolicyName='all', PolicyDocument=allowed)
session = client('sts').assume_role(RoleArn=role, RoleSessionName='session')['Credentials']
urllib.request.urlopen(urllib.request.Request(address + '/moto-api/reset-auth', data=b'0', method='POST',
                                              headers={'Content-Type': 'text/plain'})).read()


def tokmap(*words, status=0, key=None, secret=None, token=None):
    environment = {**os.environ, 'AWS_ENDPOINT_URL': address, 'AWS_MAX_ATTEMPTS': '2',
                   'TOKMAP_CACHE': os.path.join(os.getcwd(), 'cache')}
    if key:
        environment.update(AWS_ACCESS_KEY_ID=key, AWS_SECRET_ACCESS_KEY=secret)
    if token:
        environment['AWS_SESSION_TOKEN'] = token
    done = subprocess.run([TOKMAP, *words], env=environment, capture_output=True, text=True)
    assert done.returncode == status, (words, done.returncode, done.stderr)
    assert not secret or secret not in done.stderr
    return done.stderr if status else done.stdout


def tokens(*inputs, status=0, **access):
    text = tokmap('pack', '-q', '--force', '-o', 'r', *inputs, status=status, **access)
    with open('r.bin', 'rb') as file:
        return text if status else file.read()


for number, key in enumerate(sorted(objects, key=str.encode)):
    with open('%05d.%s' % (number, key.rsplit('.', 1)[1]), 'wb') as file:
        file.write(objects[key])
# In byte order big.jsonl comes first, and then 130 objects: three pages of a list.
data = tokens(*['%05d.txt' % i for i in range(1, 131)])
good = dict(key=user['AccessKeyId'], secret=user['SecretAccessKey'])
assert tokens('s3://texts/data/', **good) == data
assert tokens('s3://texts/data/**', **good) == data
whole = tokens('00000.jsonl', *['%05d.txt' % i for i in range(1, 131)])
assert tokens('s3://texts', **good) == whole
assert tokens('s3://texts/big.jsonl', 's3://texts/data/*', **good) == whole
temporary = dict(key=session['AccessKeyId'], secret=session['SecretAccessKey'])
assert tokens('s3://texts/data/', token=session['SessionToken'], **temporary) == data
for wrong in (dict(key=user['AccessKeyId'], secret='x' * 40), dict(key='AKIAIOSFODNN7EXAMPLE', secret='not the secret of anyone'.replace(' ', '')),
              dict(token='x' * 100, **temporary), temporary,
              dict(key=nobody['AccessKeyId'], secret=nobody['SecretAccessKey'])):
    for name in ('s3://texts/big.jsonl', 's3://texts/data/'):
        text = tokens(name, status=1, **wrong)
        assert 'the server refuses access (HTTP status 403' in text or 'HTTP status 400' in text, text

# Datasets: one is packed into the bucket, in parts that moto refuses below 5 MiB, and one is copied there and back.
with open('large.txt', 'w') as file:
    for i in range(1200000):
        file.write('%d ' % (i * 7919))
local = tokens('large.txt')
tokmap('pack', '-q', '-o', 's3://texts/sets/packed', 'large.txt', **good)
tokmap('copy', 'r', 's3://texts/sets/copied[1] +%25/r', **good)
for name in ('s3://texts/sets/packed', 's3://texts/sets/copied[1] +%25/'):
    tokmap('verify', name, **good)
    assert tokmap('show', name, '--tokens', '4000000..4000100', **good) == tokmap('show', 'r', '--tokens',
                                                                               '4000000..4000100'), name
os.mkdir('back')
tokmap('copy', 's3://texts/sets/copied[1] +%25/', 'back/', **good)
tokmap('copy', 's3://texts/sets/packed', 'back/packed', token=session['SessionToken'], **temporary)
for name in ('back/r.bin', 'back/packed.bin'):
    with open(name, 'rb') as file:
        assert file.read() == local, name
text = tokmap('info', 's3://texts/sets/packed', status=1, key=nobody['AccessKeyId'], secret=nobody['SecretAccessKey'])
assert 's3://texts/sets/packed' in text and '403' in text, text
server.stop()
print('ok objects')
