#!/bin/sh
# SPDX-License-Identifier: MIT
# deps.sh: installs with apt the packages that building and testing need and that are missing. It finds out by trying
# each command and header, so a machine that has everything needs no apt, no network, and no root.
#
# $CPPFLAGS says where else headers are.
#
# With the argument "build" it installs only what building cannot do without. If all of that is there, it needs no root,
# and only names what is missing besides. With "gpu" the same, and what the tests on a GPU cannot do without.
#
#   needed   Parts of tokmap cannot be built or tested without it. If it cannot be installed, the exit status is 2.
#   useful   Tests that use it are skipped without it. If it cannot be installed, one line says so.
set -u
LC_ALL=C
export LC_ALL
log=${BUILD:-build}/deps.log
needed=
useful=

command_there() { command -v "$1" >/dev/null 2>&1; }
want() { eval "$1=\"\${$1} \$2\""; }

# Only the default compilers are installed here. Users who name other compilers install them on their own.
cc=${CC:-cc}
if ! printf '#include <stdio.h>\n' | $cc -E - >/dev/null 2>&1; then
    want needed "gcc libc6-dev"
    command_there cc || cc=:
fi
# tokmap contains no C++, but a test compiles the public headers as C++.
cxx=${CXX:-g++}
printf '#include <new>\n' | $cxx -E -x c++ - >/dev/null 2>&1 || want useful g++
command_there make || want needed make
header() {
    [ "$cc" != : ] && [ -n "$(printf '#if __has_include(<%s>)\nfound\n#endif\n' "$1" | $cc ${CPPFLAGS:-} -E -P - 2>/dev/null)" ] ||
        want needed "$2"
}
header xxhash.h libxxhash-dev
header zstd.h libzstd-dev
# Libraries that a build uses where their headers are.
optional_headers() {
    header isa-l/igzip_lib.h libisal-dev
    header pcre2.h libpcre2-dev
    header snappy-c.h libsnappy-dev
    header lz4frame.h liblz4-dev
    header brotli/decode.h libbrotli-dev
    header bzlib.h libbz2-dev
    header lzma.h liblzma-dev
    header curl/curl.h libcurl4-openssl-dev
    # Without certificates libcurl reads nothing by https. Other distributions have them elsewhere.
    [ -e /etc/ssl/certs/ca-certificates.crt ] || ! command_there apt-get || want needed ca-certificates
}
[ "${1:-}" != gpu ] || header cmocka.h libcmocka-dev
case ${1:-} in build | gpu) only=yes ;; *) only= ;; esac
if [ -n "$only" ] && [ -z "$needed" ]; then
    optional_headers
    [ -z "$needed" ] || echo "tokmap: going on without these packages, which it can use: $(echo $needed)"
    exit 0
fi
optional_headers
if [ -n "$only" ]; then
    useful=
else
    header cmocka.h libcmocka-dev
    command_there python3 || want useful python3
    command_there zstd || want useful zstd
    command_there gzip || want useful gzip
    command_there bzip2 || want useful bzip2
    command_there xz || want useful xz-utils
    command_there lz4 || want useful lz4
    command_there pkg-config || want useful pkgconf
    command_there gnuplot || want useful gnuplot-nox
fi

packages=$(echo $needed $useful)
[ -n "$packages" ] || exit 0
line="apt-get install -y --no-install-recommends $packages"

# stop REASON: ends this script, with status 2 only if a needed package is missing.
stop() {
    if [ -z "$needed" ]; then
        echo "tokmap: these packages could not be installed ($1), so tests that use them are skipped: $packages" >&2
        exit 0
    fi
    echo "tokmap: $1; run as root: $line (without root: see .github/INSTALL.md)" >&2
    exit 2
}

command_there apt-get || stop "packages are missing, and this machine does not have apt-get"
if [ "$(id -u)" = 0 ]; then
    as_root=
elif ! command_there sudo; then
    stop "packages are missing, and installing them needs root or sudo"
elif sudo -n true 2>/dev/null; then
    as_root="sudo -n"
elif [ -t 0 ]; then
    echo "tokmap: sudo asks for your password to run: $line" >&2
    as_root=sudo
else
    stop "packages are missing, and sudo asks for a password"
fi

echo "tokmap: installing $packages"
mkdir -p "$(dirname "$log")" || exit 2
apt() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \
        -o Acquire::Retries=3 "$@" >>"$log" 2>&1 </dev/null
}
: >"$log"
# apt-get update runs only if the install fails, because apt does not know a package or its version has left the mirror.
if ! apt install --no-install-recommends $packages; then
    apt update || { tail -n 5 "$log" >&2; stop "apt-get update failed (log: $log)"; }
    apt install --no-install-recommends $packages || { tail -n 5 "$log" >&2; stop "apt-get failed (log: $log)"; }
fi
exit 0
