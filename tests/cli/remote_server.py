# SPDX-License-Identifier: MIT
# A web server on 127.0.0.1 that fails in the way that the first part of the path names: /FAULT/FILE. FILES has the
# bytes of the files. For tests in this folder.
import email.utils, http.server, re, socket, struct, threading, time

FILES = {}
counts = {}    # requests so far, by path
requests = []  # (path, header) of all requests
release = threading.Event()  # ends answers that hang
DATE = email.utils.formatdate(1700000000, usegmt=True)
NEXT_DATE = email.utils.formatdate(1700000009, usegmt=True)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *arguments):
        pass

    def answer(self, status, body=b'', send=None, **headers):
        """Sends an answer of which only the first `send` bytes of the body arrive."""
        self.send_response(status)
        headers.setdefault('Content_Length', str(len(body)))
        for name, value in headers.items():
            if value is not None:
                self.send_header(name.replace('_', '-'), value)
        self.end_headers()
        if self.command == 'HEAD':
            return
        self.wfile.write(body if send is None else body[:send])
        if send is not None:
            self.close_connection = True

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        path = self.path.split('?')[0]
        requests.append((self.path, dict(self.headers)))
        number = counts[path] = counts.get(path, 0) + 1
        _, fault, name = path.split('/', 2)
        body = FILES.get(name)
        if body is None:
            return self.answer(404, b'no such file')
        found = re.fullmatch(r'bytes=(\d+)-(\d*)', self.headers.get('Range', ''))
        first = int(found[1]) if found else 0
        try:
            getattr(self, 'fault_' + fault)(number, body, first, found is not None, name)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def plain(self, body, first, ranged, send=None, tag='"one"', modified=DATE):
        """What a sound server answers, perhaps broken off after `send` bytes."""
        wanted = self.headers.get('If-Match')
        if wanted is not None and tag is not None and wanted != tag:
            return self.answer(412, b'')
        if ranged and first >= len(body):
            return self.answer(416, b'', Content_Range='bytes */%d' % len(body))
        if not ranged:
            return self.answer(200, body, send, ETag=tag, Last_Modified=modified)
        part = body[first:]
        self.answer(206, part, send, ETag=tag, Last_Modified=modified,
                    Content_Range='bytes %d-%d/%d' % (first, len(body) - 1, len(body)))

    # ---- what can be survived ----

    def fault_none(self, number, body, first, ranged, name):
        self.plain(body, first, ranged)

    def fault_drop(self, number, body, first, ranged, name):
        self.plain(body, first, ranged, 100001 if number < 5 else None)

    def fault_dropzero(self, number, body, first, ranged, name):
        self.plain(body, first, ranged, 0 if number == 1 else 600000 if number == 2 else None)

    def fault_500(self, number, body, first, ranged, name):
        if number < 3:
            return self.answer(500, b'<Error><Code>InternalError</Code></Error>')
        self.plain(body, first, ranged)

    def fault_resetgarbage(self, number, body, first, ranged, name):
        """After the reset libcurl asks again by itself, and keeps the text of that failure for the next one."""
        if number == 1:
            return self.answer(503)
        if number == 2:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
            self.connection.close()
            self.close_connection = True
            return None
        return self.fault_garbage(number, body, first, ranged, name) if number == 3 else self.plain(body, first, ranged)

    def fault_503(self, number, body, first, ranged, name):
        if number == 2:
            return self.answer(503, b'slow down', Retry_After='2')
        self.plain(body, first, ranged, 100001 if number < 3 else None)

    def fault_ignored(self, number, body, first, ranged, name):
        self.plain(body, 0, False, 200000 * number if number < 4 else None)

    def fault_wrongrange(self, number, body, first, ranged, name):
        if number == 2:
            return self.answer(206, body[5:], ETag='"one"', Last_Modified=DATE,
                               Content_Range='bytes 5-%d/%d' % (len(body) - 1, len(body)))
        if number == 3:
            return self.answer(206, body[first:], ETag='"one"', Last_Modified=DATE, Content_Range='bytes a-b/c')
        self.plain(body, first, ranged, 100001 if number < 4 else None)

    def fault_slow(self, number, body, first, ranged, name):
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        for at in range(0, len(body), 200000):
            self.wfile.write(body[at:at + 200000])
            time.sleep(0.1)

    def fault_redirect(self, number, body, first, ranged, name):
        self.answer(302, b'elsewhere', Location='/drop/' + name + '?again')

    def fault_chunked(self, number, body, first, ranged, name):
        if ranged:
            return self.plain(body, first, ranged)
        self.send_response(200)
        self.send_header('Transfer-Encoding', 'chunked')
        self.send_header('ETag', '"one"')
        self.send_header('Last-Modified', DATE)
        self.end_headers()
        for at in range(0, len(body), 50000):
            part = body[at:at + 50000]
            self.wfile.write(b'%x\r\n%s\r\n' % (len(part), part))
            if at >= 400000 and 'whole' not in self.path:
                self.close_connection = True
                return
        self.wfile.write(b'0\r\n\r\n')

    def fault_dated(self, number, body, first, ranged, name):
        if ranged and self.headers.get('If-Unmodified-Since') != DATE:
            return self.answer(400, b'')
        self.plain(body, first, ranged, 100001 if number < 3 else None, tag=None)

    def fault_weak(self, number, body, first, ranged, name):
        if self.headers.get('If-Match'):
            return self.answer(412, b'')
        self.plain(body, first, ranged, 100001 if number < 3 else None, tag='W/"one"')

    # ---- what cannot ----

    def fault_changed(self, number, body, first, ranged, name):
        self.plain(body, first, ranged, 100001 if number == 1 else None, tag='"%d"' % number)

    def fault_changedsilently(self, number, body, first, ranged, name):
        if number == 1:
            return self.plain(body, first, ranged, 100001)
        self.answer(206, body[first:], ETag='"two"', Content_Range='bytes %d-%d/%d' % (first, len(body) - 1, len(body)))

    def fault_changedall(self, number, body, first, ranged, name):
        self.plain(body, 0, False, 100001) if number == 1 else self.answer(200, body, ETag='"two"')

    def fault_changeddate(self, number, body, first, ranged, name):
        self.plain(body, first, ranged, 100001, tag=None, modified=DATE if number == 1 else NEXT_DATE)

    def fault_grown(self, number, body, first, ranged, name):
        self.plain(body * number, first, ranged, 100001)

    def fault_shrunk(self, number, body, first, ranged, name):
        self.plain(body[:500000 if number == 1 else 1000], first, ranged, 100001)

    def fault_noversion(self, number, body, first, ranged, name):
        self.plain(body, first, ranged, 100001, tag=None, modified=None)

    def fault_weakchanged(self, number, body, first, ranged, name):
        self.plain(body if number == 1 else body.swapcase(), first, ranged, 100001 if number == 1 else None,
                   tag='W/"one"', modified=None)

    def fault_justnow(self, number, body, first, ranged, name):
        self.plain(body, first, ranged, 100001, tag=None, modified=email.utils.formatdate(usegmt=True))

    def fault_drip(self, number, body, first, ranged, name):
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        for byte in body:
            self.wfile.write(bytes([byte]))
            time.sleep(0.3)

    def fault_location(self, number, body, first, ranged, name):
        self.answer(302, b'', Location='/' + 'a' * 3000000)

    def fault_wait(self, number, body, first, ranged, name):
        self.answer(503, b'slow down', Retry_After='6')

    def fault_badtag(self, number, body, first, ranged, name):
        self.plain(body, first, ranged, 100001, tag='"\x01' + 'x' * 40 + '"', modified=None)

    def fault_unframed(self, number, body, first, ranged, name):
        self.close_connection = True
        self.wfile.write(b'HTTP/1.0 200 OK\r\nETag: "one"\r\n\r\n' + body)

    def fault_never(self, number, body, first, ranged, name):
        self.answer(503, b'')

    def fault_401(self, number, body, first, ranged, name):
        self.answer(401, b'', WWW_Authenticate='Basic realm="x"')

    def fault_403(self, number, body, first, ranged, name):
        self.answer(403, b'')

    def fault_loop(self, number, body, first, ranged, name):
        self.answer(302, b'', Location='/loop/' + name)

    def fault_tofile(self, number, body, first, ranged, name):
        self.answer(302, b'', Location='file:///etc/passwd')

    def fault_header(self, number, body, first, ranged, name):
        self.wfile.write(b'HTTP/1.1 200 OK\r\n')
        for _ in range(4000):
            self.wfile.write(b'X-More: ' + b'x' * 1000 + b'\r\n')
        self.close_connection = True

    def fault_garbage(self, number, body, first, ranged, name):
        self.wfile.write(b'\x00\xff' * 5000)
        self.close_connection = True

    def fault_hang(self, number, body, first, ranged, name):
        self.plain(body, first, ranged, 200000)
        release.wait(60)

    def fault_hanghead(self, number, body, first, ranged, name):
        release.wait(60)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # a client that has gone is what many of these tests are about


def start(handler=Handler, context=None):
    """Returns the server and the beginning of its URLs."""
    server = Server(('127.0.0.1', 0), handler)
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, '%s://127.0.0.1:%d/' % ('https' if context else 'http', server.server_port)
