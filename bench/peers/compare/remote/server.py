# SPDX-License-Identifier: MIT
"""Object storage on this machine: nginx with Lua serves the files below a folder, http://HOST/BUCKET/KEY, as a server
would that is some milliseconds away and behind a link of some bandwidth.

It understands GET and HEAD with ranges and ListObjectsV2, which is what loaders use, and reads no signatures. An answer
waits for the latency, and as long as the link is busy with the answers before it. Each request is a line of a log, from
which counts() has requests and bytes. The folder's files are listed
at the start.

As a program, `python3 server.py FOLDER [SECONDS [BYTES_PER_S]]` prints the beginning of the URLs and serves until it is
interrupted.
"""
import collections
import glob
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from report import Absent

MODULES = ("/usr/lib/nginx/modules", "/usr/lib64/nginx/modules", "/usr/lib/*/nginx/modules", "/etc/nginx/modules")

CONF = """
load_module %(modules)s/ndk_http_module.so;
load_module %(modules)s/ngx_http_lua_module.so;
worker_processes 1;
master_process off;
daemon off;
pid nginx.pid;
error_log stderr crit;
events { worker_connections 2048; }
http {
    log_format counted '$request_method $status $body_bytes_sent $request_uri $http_range';
    access_log access.log counted;
    client_body_temp_path temporary; proxy_temp_path temporary; fastcgi_temp_path temporary;
    uwsgi_temp_path temporary; scgi_temp_path temporary;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000;
    keepalive_timeout 600;
    default_type application/octet-stream;
    init_by_lua_block {
        link_free = 0
    }
    server {
        listen 127.0.0.1:%(port)d backlog=2048;
        root "%(root)s";
        location / {
            access_by_lua_block {
                local first, last = (ngx.var.http_range or ""):match("^bytes=(%%d*)-(%%d*)$")
                local file = ngx.req.get_method() == "GET" and io.open(ngx.var.request_filename, "rb")
                local bytes = file and file:seek("end") or 0
                if file then file:close() end
                if first == "" and last then
                    bytes = math.min(bytes, tonumber(last) or 0)
                elseif first and bytes > 0 then
                    bytes = math.max(math.min(tonumber(last) or bytes, bytes - 1) - tonumber(first) + 1, 0)
                end
                ngx.update_time()
                local now = ngx.now()
                link_free = math.max(link_free, now) + bytes / %(rate)d
                ngx.sleep(%(delay)f + link_free - now)
            }
        }
        location ~ ^/([^/]+)/?$ {
            set $bucket $1;
            content_by_lua_block {
                ngx.sleep(%(delay)f)
                local list = io.open("lists/" .. ngx.var.bucket)
                if not list then return ngx.exit(404) end
                local asked = ngx.req.get_uri_args()
                local prefix, delimiter = asked.prefix or "", asked.delimiter ~= "" and asked.delimiter
                local after = asked["continuation-token"] or asked["start-after"] or ""
                local coded = asked["encoding-type"] == "url"
                local out, count, last, more = {}, 0, "", false
                local function text(key)
                    if coded then return (ngx.escape_uri(key):gsub("%%%%2F", "/")) end
                    return (key:gsub("&", "&amp;"):gsub("<", "&lt;"):gsub(">", "&gt;"))
                end
                for line in list:lines() do
                    local size, key = line:match("^(%%d+) (.*)$")
                    if key > after and key:sub(1, #prefix) == prefix then
                        local at = delimiter and key:find(delimiter, #prefix + 1, true)
                        local name = at and key:sub(1, at) or key
                        if name ~= last and name > after then
                            if count == 1000 then more = true break end
                            count, last = count + 1, name
                            out[#out + 1] = at and "<CommonPrefixes><Prefix>" .. text(name) ..
                                "</Prefix></CommonPrefixes>" or "<Contents><Key>" .. text(name) ..
                                "</Key><LastModified>2020-01-01T00:00:00.000Z</LastModified><Size>" .. size ..
                                "</Size></Contents>"
                        end
                    end
                end
                list:close()
                ngx.header.content_type = "application/xml"
                ngx.print('<?xml version="1.0" encoding="UTF-8"?>\\n<ListBucketResult ' ..
                    'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>', ngx.var.bucket, "</Name><Prefix>",
                    text(prefix), "</Prefix><KeyCount>", count, "</KeyCount><MaxKeys>1000</MaxKeys>",
                    coded and "<EncodingType>url</EncodingType>" or "", "<IsTruncated>",
                    tostring(more), "</IsTruncated>", table.concat(out), more and "<NextContinuationToken>" ..
                    text(last) .. "</NextContinuationToken>" or "", "</ListBucketResult>")
            }
        }
    }
}
"""


def modules_folder():
    """Where nginx's module for Lua is. Raises Absent."""
    for pattern in MODULES:
        for folder in glob.glob(pattern):
            if os.path.exists(os.path.join(folder, "ngx_http_lua_module.so")):
                return folder
    raise Absent("the server of object storage is nginx with its module for Lua, which is not installed: "
                 "apt-get install nginx-light libnginx-mod-http-lua")


def program():
    found = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
    if not found:
        raise Absent("the server of object storage is nginx, which is not installed: apt-get install nginx-light "
                     "libnginx-mod-http-lua")
    return found


class Server:
    """work: a folder for its own files; root: what it serves; delay: seconds of latency; rate: bytes per second."""

    def __init__(self, work, root, delay=0.02, rate=10**9):
        self._work, self._root = os.path.abspath(work), os.path.abspath(root)
        command, modules = program(), modules_folder()
        os.makedirs(os.path.join(self._work, "lists"), exist_ok=True)
        os.makedirs(os.path.join(self._work, "temporary"), exist_ok=True)
        self.list_files()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        with open(os.path.join(self._work, "nginx.conf"), "w", encoding="utf-8") as file:
            file.write(CONF % {"modules": modules, "port": port, "root": self._root, "delay": delay, "rate": rate})
        self._log = os.path.join(self._work, "access.log")
        open(self._log, "wb").close()
        with open(os.path.join(self._work, "errors"), "wb") as errors:
            # Lua opens files by paths that begin here.
            self._process = subprocess.Popen([command, "-p", self._work + "/", "-c", "nginx.conf"], cwd=self._work,
                                             stdin=subprocess.DEVNULL, stdout=errors, stderr=errors)
        self.url, self.pid = f"http://127.0.0.1:{port}", self._process.pid
        until = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                if self._process.poll() is not None or time.monotonic() > until:
                    self.stop()
                    with open(os.path.join(self._work, "errors"), encoding="utf-8", errors="replace") as file:
                        raise Absent(f"nginx does not start: {file.read().strip()[-300:]}") from None
                time.sleep(0.02)

    def list_files(self):
        """Makes the lists of the buckets; also after a file was added."""
        for bucket in os.listdir(self._root):
            top, lines = os.path.join(self._root, bucket), []
            for folder, _, names in os.walk(top, followlinks=True):
                for name in names:
                    path = os.path.join(folder, name)
                    lines.append((os.fsencode(os.path.relpath(path, top)), os.path.getsize(path)))
            with open(os.path.join(self._work, "lists", bucket), "wb") as file:
                file.writelines(b"%d %s\n" % (size, key) for key, size in sorted(lines))

    def environment(self):
        """The variables by which the clients of Amazon, of other loaders, and of tokmap find the server."""
        return {"AWS_ENDPOINT_URL": self.url, "S3_ENDPOINT_URL": self.url, "AWS_ACCESS_KEY_ID": "key",
                "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1",
                "AWS_EC2_METADATA_DISABLED": "true", "no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"}

    def counts(self):
        """What was answered so far: a Counter of "requests", "bytes", "GET", "HEAD", and "refused"."""
        found = collections.Counter()
        with open(self._log, encoding="utf-8", errors="replace") as file:
            for line in file:
                method, status, sent = line.split(" ", 3)[:3]
                found.update({"requests": 1, "bytes": int(sent), method: 1, "refused": int(status) >= 400})
        return found

    def stop(self):
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
        self._process.wait()


def main():
    folder, *more = sys.argv[1:]
    server = Server(os.path.join(folder, ".nginx"), folder, *map(float, more))
    print(server.url, flush=True)
    try:
        signal.pause()
    except KeyboardInterrupt:
        pass
    finally:
        server.stop()


if __name__ == "__main__":
    main()
