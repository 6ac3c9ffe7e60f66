# SPDX-License-Identifier: MIT
# A server of object storage on 127.0.0.1 that checks each signature as Amazon's documentation defines them, without the
# code of any client: GET and HEAD of objects by path, and lists. BUCKETS has the objects. For tests in this folder.
import calendar, hashlib, hmac, http.server, re, time, urllib.parse
from xml.sax.saxutils import escape

BUCKETS = {}
SECRETS = {'AKIDEXAMPLE': 'wJalr+XUtnFEMI/K7MDENG'}
TOKEN = None     # the session token that requests must have
REGION = 'us-east-1'
PAGE = 1000
PLAIN = False    # keys of lists are not escaped, whatever is asked for
ANONYMOUS = False
AHEAD = 0        # seconds by which the server's clock is ahead of this machine's
requests = []
problems = []
breaks = {}      # for each path, how many of its answers break
listing = None   # a list that is sent instead of the right one: function(handler, query)


def key_of(secret, date, region, service):
    key = ('AWS4' + secret).encode()
    for part in (date, region, service, 'aws4_request'):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *arguments):
        pass

    def date_time_string(self, timestamp=None):
        return super().date_time_string(time.time() + AHEAD if timestamp is None else timestamp)

    def fault(self):
        """Why the request is not signed well, as an S3 code; None if it is."""
        given = self.headers.get('Authorization')
        if given is None:
            return None if ANONYMOUS else 'AccessDenied'
        found = re.fullmatch(r'AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, *'
                             r'SignedHeaders=([^,]+), *Signature=([0-9a-f]{64})', given)
        if not found:
            return 'AuthorizationHeaderMalformed'
        key, date, region, names, signature = found.groups()
        if key not in SECRETS:
            return 'InvalidAccessKeyId'
        if TOKEN is not None and self.headers.get('x-amz-security-token') != TOKEN:
            return 'InvalidToken'
        names = names.split(';')
        for name in self.headers:
            if (name.lower().startswith('x-amz-') or name.lower() == 'host') and name.lower() not in names:
                return 'HeaderNotSigned ' + name
        if names != sorted(names) or 'x-amz-content-sha256' not in self.headers:
            return 'BadHeaders'
        path, _, query = self.path.partition('?')
        canonical = '\n'.join([
            self.command,
            urllib.parse.quote(urllib.parse.unquote_to_bytes(path), safe='/-._~'),
            '&'.join(sorted(item if '=' in item else item + '=' for item in query.split('&') if item)),
            *['%s:%s' % (name, ' '.join(self.headers[name].split())) for name in names],
            '', ';'.join(names), self.headers['x-amz-content-sha256']])
        text = '\n'.join(['AWS4-HMAC-SHA256', self.headers['x-amz-date'], '%s/%s/s3/aws4_request' % (date, region),
                          hashlib.sha256(canonical.encode()).hexdigest()])
        wanted = hmac.new(key_of(SECRETS[key], date, region, 's3'), text.encode(), hashlib.sha256).hexdigest()
        if wanted != signature:
            return 'SignatureDoesNotMatch'
        when = calendar.timegm(time.strptime(self.headers['x-amz-date'], '%Y%m%dT%H%M%SZ'))
        if abs(time.time() + AHEAD - when) > 900:
            return 'RequestTimeTooSkewed'
        return None if region in (REGION, 'auto') else 'AuthorizationHeaderMalformed'

    def answer(self, status, body=b'', send=None, **headers):
        self.send_response(status)
        self.send_header('Content-Length', str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace('_', '-'), value)
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(body if send is None else body[:send])
        if send is not None:
            self.close_connection = True

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        requests.append((self.path, dict(self.headers)))
        wrong = self.fault()
        if wrong:
            problems.append((wrong, self.path))
            status = 400 if wrong == 'AuthorizationHeaderMalformed' else 403
            return self.answer(status, b'<Error><Code>%s</Code></Error>' % wrong.encode(), x_amz_bucket_region=REGION)
        path, _, query = self.path.partition('?')
        bucket, _, key = path[1:].partition('/')
        objects = BUCKETS.get(urllib.parse.unquote(bucket))
        if objects is None:
            return self.answer(404, b'<Error><Code>NoSuchBucket</Code></Error>')
        if query:
            fields = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
            return self.answer(200, (listing or self.list)(objects, fields))
        body = objects.get(urllib.parse.unquote(key))
        if body is None:
            return self.answer(404, b'<Error><Code>NoSuchKey</Code></Error>')
        tag = '"%s"' % hashlib.md5(body).hexdigest()
        if self.headers.get('If-Match', tag) != tag:
            return self.answer(412)
        send = None
        if breaks.get(path):
            breaks[path] -= 1
            send = 70000
        found = re.fullmatch(r'bytes=(\d+)-', self.headers.get('Range', ''))
        if not found:
            return self.answer(200, body, send, ETag=tag)
        first = int(found[1])
        self.answer(206, body[first:], send, ETag=tag,
                    Content_Range='bytes %d-%d/%d' % (first, len(body) - 1, len(body)))

    @staticmethod
    def list(objects, fields):
        assert fields['list-type'] == '2' and fields['encoding-type'] == 'url', fields
        prefix, delimiter = fields['prefix'], fields.get('delimiter')
        names = []
        for key in sorted(objects, key=str.encode):
            if not key.startswith(prefix):
                continue
            rest = key[len(prefix):]
            if delimiter and delimiter in rest:
                name = (prefix + rest.split(delimiter)[0] + delimiter, None, None)
            else:
                name = (key, len(objects[key]), '"%s"' % hashlib.md5(objects[key]).hexdigest())
            if not names or names[-1][0] != name[0]:
                names.append(name)
        start = int(fields.get('continuation-token', 'at+0')[3:])
        page, more = names[start:start + PAGE], start + PAGE < len(names)
        out = ['<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
               '<Name>x</Name><IsTruncated>%s</IsTruncated>%s' %
               (str(more).lower(), '' if PLAIN else '<EncodingType>url</EncodingType>')]
        for key, size, tag in page:
            text = escape(key if PLAIN else urllib.parse.quote_plus(key, safe='/'))
            if size is None:
                out.append('<CommonPrefixes><Prefix>%s</Prefix></CommonPrefixes>' % text)
            else:
                out.append('<Contents><Key>%s</Key><ETag>%s</ETag><Size>%d</Size><Owner><ID>Key</ID></Owner>'
                           '</Contents>' % (text, escape(tag, {'"': '&quot;'}), size))
        if more:
            out.append('<NextContinuationToken>at+%d</NextContinuationToken>' % (start + PAGE))
        return ''.join(out + ['</ListBucketResult>']).encode()
