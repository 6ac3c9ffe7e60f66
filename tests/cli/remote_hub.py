# SPDX-License-Identifier: MIT
# The Hugging Face Hub on 127.0.0.1, and beside it, on another port, the host to whose signed addresses it sends
# requests for large files. For tests in this folder. The paths, parameters, and headers are those that huggingface_hub
# 1.2.3 sends and reads.
import collections, hashlib, http.server, json, re, threading, time, urllib.parse
import remote_server

TOKEN = 'hf_tokenfortests'
repositories = {}  # (kind, 'OWNER/NAME') -> Repository
requests = []      # (host, method, path with query, header) of all requests, with header names in small letters
problems = []      # what a client must not do
state = {'page': 3, 'lifetime': 1e9, 'breaks': {}, 'limited': 0, 'fails': 0, 'answers': {}, 'denied': 0,
         'delay': 0}


class Repository:
    def __init__(self, files, gated=False, private=False):
        self.commits, self.branches = {}, {}
        self.gated, self.private = gated, private
        self.commit('main', files)

    def commit(self, branch, files):
        name = hashlib.sha1(repr((branch, sorted(files.items()))).encode()).hexdigest()
        self.commits[name] = dict(files)
        self.branches[branch] = name
        return name


def is_large(body):
    return len(body) >= 1000


def entries(files, folder, recursive):
    """Those of the API: folders before files, and not in the order of bytes."""
    below = folder + '/' if folder else ''
    found = {}
    for path, body in files.items():
        if not path.startswith(below):
            continue
        parts = path[len(below):].split('/')
        for depth in range(1, len(parts)):
            if recursive or depth == 1:
                name = below + '/'.join(parts[:depth])
                found[name] = {'type': 'directory', 'oid': '0' * 40, 'size': 0, 'path': name}
        if recursive or len(parts) == 1:
            entry = {'type': 'file', 'oid': hashlib.sha1(body).hexdigest(), 'size': len(body), 'path': path}
            if is_large(body):
                entry['lfs'] = {'oid': hashlib.sha256(body).hexdigest(), 'size': len(body), 'pointerSize': 130}
            found[path] = entry
    return sorted(found.values(), key=lambda entry: (entry['type'], entry['path'].lower()))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    wbufsize = -1  # an answer in one packet, lest TCP waits

    def log_message(self, *arguments):
        pass

    def answer(self, status, body=b'', **headers):
        body = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        length = headers.pop('length', len(body))
        for name, value in headers.items():
            self.send_header(name.replace('_', '-'), value)
        self.send_header('Content-Length', str(length))
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(body)
        if length != len(body):
            self.close_connection = True

    def wrong(self, status, code, message=''):
        self.answer(status, json.dumps({'error': message or code}), X_Error_Code=code, X_Error_Message=message or code)

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        header = {name.lower(): value for name, value in self.headers.items()}
        requests.append((self.host, self.command, self.path, header))
        try:
            self.serve(*self.path.split('?', 1))
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def ranged(self, body, tag, path, **headers):
        """A file, or a range of it. state['breaks']: how many answers for a path end early."""
        found = re.fullmatch(r'bytes=(\d+)-(\d*)', self.headers.get('Range', ''))
        first = int(found[1]) if found else 0
        last = min(int(found[2]) if found and found[2] else len(body), len(body) - 1)
        if self.headers.get('If-Match', tag) != tag:
            return self.answer(412)
        headers.update(ETag=tag, Accept_Ranges='bytes')
        if found:
            headers['Content_Range'] = 'bytes %d-%d/%d' % (first, last, len(body))
        part = body[first:last + 1]
        if state['breaks'].get(path, 0):
            state['breaks'][path] -= 1
            return self.answer(206 if found else 200, part[:len(part) // 2], length=len(part), **headers)
        return self.answer(206 if found else 200, part, **headers)


class Hub(Handler):
    host = 'hub'

    def serve(self, path, query=''):
        given = self.headers.get('Authorization')
        if given not in (None, 'Bearer ' + TOKEN, 'Bearer hf_other'):
            return self.answer(401, '{"error": "Invalid credentials in Authorization header"}')
        if state['limited']:
            state['limited'] -= 1
            with_header = {'Retry_After': '1'} if state['limited'] % 2 else {'RateLimit': '"api";r=0;t=0'}
            return self.answer(429, 'slow down', **with_header)
        if state['fails']:
            state['fails'] -= 1
            return self.answer(502, 'bad gateway')
        path = urllib.parse.unquote(path)
        for pattern, body in state['answers'].items():
            if re.search(pattern, path):
                return self.answer(*body) if isinstance(body, tuple) else body(self)
        api = re.fullmatch(r'/api/(datasets|models)/([^/]+/[^/]+)/(revision|tree)/([^?]+)', urllib.parse.urlsplit(
            self.path).path)
        file = re.fullmatch(r'/(datasets/)?([^/]+/[^/]+)/resolve/([^/]+)/(.+)', urllib.parse.urlsplit(self.path).path)
        if not api and not file:
            return self.answer(404, 'no such page')
        kind, name = (api[1], api[2]) if api else ('datasets' if file[1] else 'models', file[2])
        repository = repositories.get((kind, name))
        if not repository or (repository.private and not given):
            return self.wrong(404 if given else 401, 'RepoNotFound')
        gate = repository.gated and given != 'Bearer ' + TOKEN
        if api:
            return self.serve_api(repository, api, dict(urllib.parse.parse_qsl(query)))
        if gate:
            return self.wrong(403 if given else 401, 'GatedRepo')
        return self.serve_file(repository, urllib.parse.unquote(file[3]), urllib.parse.unquote(file[4]))

    def serve_api(self, repository, api, query):
        revision, _, folder = api[4].partition('/')
        revision, folder = urllib.parse.unquote(revision), urllib.parse.unquote(folder)
        commit = repository.branches.get(revision, revision)
        if commit not in repository.commits:
            return self.wrong(404, 'RevisionNotFound')
        if api[3] == 'revision':
            return self.answer(200, json.dumps({'_id': '1', 'id': api[2], 'sha': commit}))
        if revision != commit:
            problems.append('a list of a branch: ' + self.path)
        found = entries(repository.commits[commit], folder, query.get('recursive') == 'true')
        if folder and not found:
            return self.wrong(404, 'EntryNotFound')
        at = int(query.get('cursor', '0'))
        headers = {}
        if at + state['page'] < len(found):
            query['cursor'] = str(at + state['page'])
            headers['Link'] = '<http://%s%s?%s>; rel="next"' % (
                self.headers['Host'], self.path.split('?')[0], urllib.parse.urlencode(query))
        return self.answer(200, json.dumps(found[at:at + state['page']]), **headers)

    def serve_file(self, repository, revision, path):
        if revision not in repository.commits:
            if revision in repository.branches:
                problems.append('a file of a branch: ' + self.path)
            return self.wrong(404, 'RevisionNotFound')
        body = repository.commits[revision].get(path)
        if body is None:
            return self.wrong(404, 'EntryNotFound')
        if not is_large(body):
            return self.ranged(body, '"%s"' % hashlib.sha1(body).hexdigest(), path, X_Repo_Commit=revision)
        whole = hashlib.sha256(body).hexdigest()
        blobs[whole] = (body, path)
        until = time.monotonic() + state['lifetime']
        place = '%s%s?Expires=%.6f&Signature=%s' % (away, whole, until, signature(whole, until))
        return self.answer(302, 'Found. Redirecting', Location=place, X_Linked_Size=str(len(body)),
                           X_Linked_ETag='"%s"' % whole, X_Repo_Commit=revision)


blobs = {}
served = collections.Counter()


def signature(whole, until):
    return hashlib.sha256(b'secret %s %.6f' % (whole.encode(), until)).hexdigest()


class Away(Handler):
    """The host of the large files. Each answer has another ETag, as if many hosts took turns. HEAD is refused."""
    host = 'away'

    def serve(self, path, query=''):
        if 'Authorization' in self.headers:
            problems.append('the token was sent to another host')
        query = dict(urllib.parse.parse_qsl(query))
        whole, until = path.strip('/'), float(query['Expires'])
        if state['denied']:
            state['denied'] -= 1
            return self.answer(403, '<Error><Code>AccessDenied</Code></Error>')
        if self.command == 'HEAD' or time.monotonic() > until or query['Signature'] != signature(whole, until):
            return self.answer(403, '<Error><Code>AccessDenied</Code></Error>')
        served[whole] += 1
        time.sleep(state['delay'])
        body, name = blobs[whole]
        return self.ranged(body, '"%d"' % len(requests), name)


away = remote_server.start(Away)[1]


def start():
    """Returns the address of the Hub."""
    return remote_server.start(Hub)[1].rstrip('/')
