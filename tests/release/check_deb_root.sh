#!/bin/sh
# SPDX-License-Identifier: MIT
# check_deb_root.sh: mmdebstrap makes the root of a container of Debian 12 and of Debian 13, the packages of
# check_deb.sh are installed into it with apt, and `make demo`'s steps run with the installed command. It is what
# Containerfile does.
. tests/release/release_common.sh
need mmdebstrap mmdebstrap
packages=$BUILD_DIR/release/deb
ls "$packages"/tokmap_*.deb >/dev/null 2>&1 || skip "check_deb.sh has made no packages"
[ "$(id -u)" = 0 ] || skip "chroot needs root"
# The program of the demo, as a user builds it with the package for development.
mkdir "$TMPDIR/dev"
for package in "$packages"/libtokmap0_*.deb "$packages"/libtokmap-dev_*.deb; do dpkg-deb -x "$package" "$TMPDIR/dev"; done
check "the program of the demo is built with libtokmap-dev" ${CC:-cc} -O2 -std=gnu11 -D_GNU_SOURCE \
    -I"$TMPDIR/dev/usr/include" tests/support/demo/demo_consumer.c -L"$(dirname "$TMPDIR"/dev/usr/lib/*/libtokmap.so)" \
    -ltokmap -lpthread -o "$TMPDIR/consumer"
for suite in ${SUITES:-bookworm trixie}; do
    root=$TMPDIR/$suite
    # Without network, or if the suite is not there, there is nothing to install into. apt's lists are gone afterwards.
    if ! mmdebstrap -q --variant=minbase --include=ca-certificates,python3-numpy --customize-hook='mkdir "$1/packages"' \
        --customize-hook="cp '$packages'/libtokmap0_*.deb '$packages'/tokmap_*.deb '$packages'/tokmap-bench_*.deb \
            '$packages'/python3-tokmap_*.deb \"\$1/packages\"" \
        --customize-hook='chroot "$1" apt-get -q -y install --no-install-recommends $(cd "$1" && ls packages/*.deb | sed s,^,/,) || touch "$1/not-installed"' \
        "$suite" "$root" >"$TMPDIR/mmdebstrap.log" 2>&1; then
        echo "ok - $suite # SKIP mmdebstrap failed: $(tail -n 1 "$TMPDIR/mmdebstrap.log")"
        continue
    fi
    check "$suite: the packages are installed with apt" sh -c \
        'test ! -e "$1/not-installed" || { tail "$2"; exit 1; }' sh "$root" "$TMPDIR/mmdebstrap.log"
    mkdir "$root/demo"
    # A minimal root has too little text, so the demo also packs copies of the sources.
    cp -r "$TMPDIR/consumer" tests/support/demo.sh src include "$root/demo/"
    # In a mount namespace of its own, so that nothing stays mounted.
    in_root() {
        unshare -m sh -c 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" \
            /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
            DEBIAN_FRONTEND=noninteractive sh -c "$1"' "$root" "$1"
    }
    check "$suite: the commands run" in_root 'tokmap --version && tokmap-bench --version && tokmap --help'
    check "$suite: their manual pages are there" in_root \
        'test -f /usr/share/man/man1/tokmap.1.gz && test -f /usr/share/man/man1/tokmap-bench.1.gz'
    check "$suite: make demo's steps succeed with the installed command" in_root \
        'cd /demo && DEMO_TOKMAP=/usr/bin/tokmap DEMO_CONSUMER=/demo/consumer BUILD=/demo/build sh demo.sh'
    check "$suite: a Python program reads what the command has packed" in_root 'cd /demo/build/demo && python3 -c "
import tokmap
run = tokmap.Run(\"train.run\")
batch = next(iter(run.loader(rows=8)))
assert batch.inputs.shape == (8, 512), batch.inputs.shape"'
    rm -rf "$root"
done
