# SPDX-License-Identifier: MIT
# --save, --plot, and report: results as files, as pictures, and as one page that a browser shows without a fault.
. "$TOKMAP_CLI/helpers.sh"

exits 2 tokmap-bench report 2>err
holds err '-o report.html'
exits 2 tokmap-bench order -o x.html 2>err
holds err 'tokmap-bench report'

# Each line names its command, machine, and date; the saved file has the same lines as --json prints.
tokmap-bench order --repeats 2 --seconds 0.01 --json --save results >printed
same printed results/order.jsonl
json printed
equal "$(grep -c '"command": "tokmap-bench order --repeats 2 --seconds 0.01 --json --save results", "machine": ".* processors, .*", "date": "20..-..-..T..:..:..Z"}$' printed)" \
    "$(grep -c . printed)" 'lines with command, machine, and date'
# A table is printed as before, and the file is replaced.
tokmap-bench order --repeats 1 --seconds 0.01 --save results >table
holds table order.draw_ns
equal "$(grep -c others_percent table || :)" 0 'rows of the machine in the table'
holds results/order.jsonl '"n": 1'
: >file
exits 1 tokmap-bench order --repeats 1 --seconds 0.01 --save file/results >out 2>err
holds err 'the folder for results cannot be created'
mkdir empty
PATH=$PWD/empty exits 1 "$(command -v tokmap-bench)" order --repeats 1 --seconds 0.01 --plot pictures >out 2>err
holds err 'apt-get install gnuplot-nox'
[ ! -s out ]

need gnuplot
tokmap-bench order --repeats 2 --seconds 0.01 --plot pictures >table
holds table order.draw_ns
for one in pictures/order-ns.svg pictures/order-ns.png; do
    [ -s $one ] || { echo "FAULT: no $one" >&2; exit 1; }
done
holds pictures/order-ns.svg 'less is better'
holds pictures/order-ns.svg 'tokmap-bench order --repeats 2'

# A page of these rows, and of hostile ones.
cat >results/hostile.json <<'EOF'
{"case": "c<script>alert(1)</script>", "table": "t", "row": "<img src=x onerror=alert(1)>", "metric": "m'\"&", "value": 5, "unit": "x", "better": "more", "min": 1, "max": 9, "n": 3, "limit": 7, "command": "`touch made`", "machine": "</td></table>", "date": "\u001b[31m"}
{"case": "c<script>alert(1)</script>", "table": "t", "row": "two", "metric": "m'\"&", "value": 50000, "unit": "x", "better": "more", "min": 1, "max": 9, "n": 3, "command": "`touch made`", "machine": "</td></table>", "date": "\u001b[31m"}
{"case": "c<script>alert(1)</script>", "table": "t", "row": "three", "metric": "absent", "value": 1, "unit": "", "better": null, "min": 1, "max": 1, "n": 1, "text": "<b>why</b>", "command": "`touch made`", "machine": "</td></table>", "date": "\u001b[31m"}
EOF
exits 1 tokmap-bench report -o page.html nowhere 2>err
holds err nowhere
exits 1 tokmap-bench report -o page.html empty 2>err
holds err 'has no results'
echo '{"case": 1}' >wrong
exits 1 tokmap-bench report -o page.html wrong 2>err
holds err 'wrong:1: '
[ ! -e page.html ]
tokmap-bench report -o page.html results
[ ! -e made ]
for wrong in '<script>alert' '<img' '</td></table></td>' 'https://' "$(printf '\033')"; do
    ! grep -qF -e "$wrong" page.html || { echo "FAULT: the page has $wrong" >&2; exit 1; }
done
holds page.html '&lt;script&gt;alert(1)&lt;/script&gt;'
holds page.html '&lt;b&gt;why&lt;/b&gt;'
holds page.html 'prefers-color-scheme:dark'
equal "$(grep -c '^<svg\|<figure>' page.html)" 2 'pictures'
# Nothing but namespaces names an address, and no id is there twice.
equal "$(grep -o 'http://[^"]*' page.html | sort -u | tr '\n' ' ')" 'http://www.w3.org/1999/xlink http://www.w3.org/2000/svg ' addresses
equal "$(grep -o " id=['\"]*[A-Za-z0-9_]*" page.html | sort | uniq -d)" '' 'ids twice'

need chromium python3
for scheme in 0 1; do # dark, light
    # A socket of the browser is in TMPDIR, and its path may have 107 bytes.
    HOME=$PWD/home TMPDIR=/tmp timeout 120 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
        --user-data-dir="$PWD/browser" --hide-scrollbars --window-size=1000,900 \
        --blink-settings=preferredColorScheme=$scheme --screenshot="$PWD/shot$scheme.png" --enable-logging=stderr \
        "file://$PWD/page.html" >browser.log 2>&1 || skip "chromium does not run here: $(tail -n 1 browser.log)"
    ! grep -i 'CONSOLE' browser.log || { echo 'FAULT: the console of the browser has messages' >&2; exit 1; }
    [ -s shot$scheme.png ] || { echo 'FAULT: no screenshot' >&2; exit 1; }
done
python3 - <<'EOF'
import collections, struct, zlib
def colors(path):
    """The pixels of a PNG with 8 bits a channel, as a dict of counts."""
    data = open(path, "rb").read()
    at, pixels, head = 8, b"", None
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        if kind == b"IHDR":
            head = struct.unpack(">IIBBBBB", body)
        if kind == b"IDAT":
            pixels += body
        at += size + 12
    width, height, bits, kind = head[:4]
    assert bits == 8 and kind in (2, 6) and head[6] == 0, head
    step = 3 if kind == 2 else 4
    raw, before, counts = zlib.decompress(pixels), bytes(width * step), collections.Counter()
    for y in range(height):
        begin = y * (width * step + 1)
        filter, line = raw[begin], bytearray(raw[begin + 1:begin + 1 + width * step])
        if filter == 1:
            for i in range(step, len(line)):
                line[i] = line[i] + line[i - step] & 255
        elif filter == 2:
            line = bytes(value + above & 255 for value, above in zip(line, before))
        for i in range(len(line) if filter > 2 else 0):
            a = line[i - step] if i >= step else 0
            b, c = before[i], before[i - step] if i >= step else 0
            near = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
            line[i] = (line[i] + ((a + b) // 2, near)[filter - 3]) & 255
        before = bytes(line)
        counts.update(zip(before[::step], before[1::step], before[2::step]))
    return {bytes(pixel): count for pixel, count in counts.items()}
for scheme, back, bar in ((1, b"\xff\xff\xff", b"\x0b\x62\xc4"), (0, b"\x14\x18\x1f", b"\x58\xa6\xff")):
    found = colors("shot%d.png" % scheme)
    assert max(found, key=found.get) == back, (scheme, max(found, key=found.get))
    assert found.get(bar, 0) > 500, (scheme, found.get(bar, 0))
    assert len(found) > 50, (scheme, len(found))
EOF
