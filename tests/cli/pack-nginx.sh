# SPDX-License-Identifier: MIT
# Inputs from nginx: it is killed and started again while a file is read, and the file is changed while it is read.
. "$TOKMAP_CLI/helpers.sh"
PATH=$PATH:/usr/sbin
need python3 nginx
tokmap encode http://127.0.0.1:1/x >/dev/null 2>err </dev/null || true
case $(cat err) in
*'built without libcurl'*) skip 'tokmap was built without libcurl' ;;
*'cannot be loaded'*) skip 'libcurl is not installed' ;;
esac
unset http_proxy HTTP_PROXY all_proxy ALL_PROXY AWS_MAX_ATTEMPTS || true
port=$(python3 -c 'import socket
with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    print(s.getsockname()[1])')
mkdir root temporary
chmod 755 .
python3 -c 'import random
random.seed(9)
print(" ".join(str(random.random()) for _ in range(300000)))' >root/a.txt
cat >nginx.conf <<END
worker_processes 1;
master_process off;
daemon off;
pid nginx.pid;
error_log stderr crit;
events { worker_connections 16; }
http {
    access_log access.log;
    client_body_temp_path temporary; proxy_temp_path temporary; fastcgi_temp_path temporary;
    uwsgi_temp_path temporary; scgi_temp_path temporary;
    server {
        listen 127.0.0.1:$port;
        root root;
        location /slow/ { alias root/; limit_rate 1m; }
    }
}
END
serve()
{
    nginx -p "$PWD/" -c nginx.conf 2>>nginx.err &
    server=$!
    python3 -c 'import socket, sys, time
for _ in range(600):
    try:
        socket.create_connection(("127.0.0.1", int(sys.argv[1]))).close()
        sys.exit(0)
    except OSError:
        time.sleep(0.05)
sys.exit(1)' "$port" || skip "nginx does not start: $(tail -n 1 nginx.err)"
}
# Whether a connection to the server is open.
asked()
{
    grep -q ": 0100007F:$(printf %04X "$port") [0-9A-F:]* 01 " /proc/net/tcp
}
url=http://127.0.0.1:$port
serve
trap 'kill -9 $server 2>/dev/null' EXIT
tokmap pack -q -o local root/a.txt
tokmap pack -q -o d "$url/a.txt"
same d.bin local.bin

# Killed while the file is on its way, and started again while tokmap waits for it.
tokmap pack -q --force -o d "$url/slow/a.txt" 2>err &
pid=$!
await asked
sleep 0.5
kill -9 $server
wait $server 2>/dev/null || true
sleep 0.3
serve
wait $pid || { cat err >&2; exit 1; }
same d.bin local.bin
grep -q '/slow/a.txt HTTP/1.1" 206 ' access.log || { echo 'FAULT: not resumed' >&2; exit 1; }

# The file changes while it is read, and the connection breaks: an error, and no shard.
rm d.bin d.tmx
tokmap pack -q -o d "$url/slow/a.txt" 2>err &
pid=$!
await asked
sleep 0.5
tr 0-9 1-90 <root/a.txt >b.txt
mv b.txt root/a.txt
touch -d '2001-01-01' root/a.txt
kill -9 $server
wait $server 2>/dev/null || true
serve
status=0
wait $pid || status=$?
equal $status 1
holds err 'the file changed while it was read'
holds err "$url/slow/a.txt"
[ ! -e d.bin ]
exits 1 tokmap pack -q -o d "$url/none" 2>err
holds err 'HTTP status 404'
