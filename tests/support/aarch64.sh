#!/bin/sh
# aarch64.sh: builds library, command and units for aarch64 in build/aarch64 and runs the units under qemu-aarch64. `.ci/run
# aarch64` runs it. Ends with "N passed, N failed, N skipped"; one skip, with the reason, where the tools cannot be had.
#
# The cross compiler and qemu come by apt, as root or with sudo. Libraries of aarch64 are taken apart below build/, through
# lists of their own: the machine's apt learns of no other architecture.
set -u
LC_ALL=C
export LC_ALL
BUILD=${BUILD:-build}/aarch64
mkdir -p "$BUILD" || exit 2
folder=$(cd "$BUILD" && pwd)
export BUILD BUILD_DIR="$folder" TOP="$(pwd)"
log=$folder/apt.log
: >"$log"
skip() {
    echo "skipped aarch64: $1"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
}

tools_there() { command -v aarch64-linux-gnu-gcc >/dev/null && command -v qemu-aarch64 >/dev/null; }
if ! tools_there; then
    command -v apt-get >/dev/null || skip "no aarch64-linux-gnu-gcc with qemu-aarch64, and no apt-get"
    as_root=
    [ "$(id -u)" = 0 ] || as_root="sudo -n"
    apt() { $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 "$@" >>"$log" 2>&1; }
    install() { apt install --no-install-recommends gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user; }
    install || { apt update && install; }
    tools_there || skip "gcc-aarch64-linux-gnu and qemu-user could not be installed: $(tail -n 1 "$log")"
fi

root=$folder/root/usr
if [ ! -e "$folder/root/complete" ]; then
    command -v dpkg-deb >/dev/null || skip "no dpkg-deb to take the libraries of aarch64 apart"
    rm -rf "$folder/root" "$folder/apt"
    mkdir -p "$folder/apt/lists/partial" "$folder/apt/archives/partial" "$folder/root" || exit 2
    : >"$folder/apt/status"
    fetch() {
        apt-get -q -y -o Dir::State="$folder/apt" -o Dir::State::status="$folder/apt/status" -o Dir::Cache="$folder/apt" \
            -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o APT::Sandbox::User= -o Acquire::Retries=3 \
            -o Debug::NoLocking=true "$@" >>"$log" 2>&1
    }
    fetch update && fetch install --no-install-recommends --download-only libzstd-dev libxxhash-dev libcmocka-dev \
        libpcre2-dev libisal-dev || skip "the libraries of aarch64 could not be fetched: $(tail -n 1 "$log")"
    for package in "$folder"/apt/archives/lib*.deb; do
        case ${package##*/} in
        libzstd* | libxxhash* | libcmocka* | libpcre2-8* | libpcre2-dev* | libisal*)
            dpkg-deb -x "$package" "$folder/root" || exit 2 ;;
        esac
    done
    rm -rf "$folder/apt"
    touch "$folder/root/complete"
fi
libraries=$root/lib/aarch64-linux-gnu

jobs=$(nproc 2>/dev/null || echo 2)
if ! ${MAKE:-make} --no-print-directory -j"$jobs" CC=aarch64-linux-gnu-gcc CXX=aarch64-linux-gnu-g++ \
    AR=aarch64-linux-gnu-ar W=1 CPPFLAGS="-isystem $root/include" \
    LDFLAGS="-L$libraries -Wl,-rpath,$libraries -Wl,-rpath-link,$libraries" lib tools units; then
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
fi

# What qemu-user does not do as a kernel does, or what would take minutes there, and says nothing about aarch64.
left_out() {
    case $1 in
    test_os) echo "qemu-user knows no MADV_POPULATE_READ and does not tell that a program could not be started" ;;
    test_loader_faults) echo "qemu-user cannot fork a program with threads" ;;
    test_dataset_large | test_order_quality | test_permutation) echo "too slow under qemu" ;;
    test_conformance) echo "runs Python" ;;
    test_pack_memory) echo "the memory it measures would be that of qemu with its translations" ;;
    test_device | test_device_errors | test_device_software)
        echo "the driver in software is not built here, and its tests fork a program with threads" ;;
    *) return 1 ;;
    esac
}

# The references' ids are compared on NEON too, where they are: all strings, and an eighth of the files. What a build of this
# machine has unpacked is taken from there.
native=$(dirname "$folder")/reference_data
if [ -z "${TOKMAP_DATA-}" ] && [ -e "$native/complete" ]; then
    export TOKMAP_DATA="$native"
fi

if [ "${1-}" = --all ]; then left_out() { return 1; }; fi
mkdir -p "$folder/logs" "$folder/tmp"
export QEMU_LD_PREFIX=/usr/aarch64-linux-gnu TMPDIR="$folder/tmp" CMOCKA_MESSAGE_OUTPUT=TAP TEST_SHARE=8
skipped=0
list=
for source in tests/unit/*/test_*.c; do
    name=$(basename "$source" .c)
    if why=$(left_out "$name"); then
        echo "skipped $name: $why"
        skipped=$((skipped + 1))
    else
        list="$list $name"
    fi
done
printf '%s\n' $list | xargs -P "$jobs" -I{} sh -c \
    'timeout -k 5 600 qemu-aarch64 "$BUILD_DIR/tests/$1" >"$BUILD_DIR/logs/$1" 2>&1 </dev/null; echo $? >"$BUILD_DIR/logs/$1.rc"' \
    one {}
passed=0 failed=0
for name in $list; do
    status=$(cat "$folder/logs/$name.rc")
    p=$(grep -c '^ok ' "$folder/logs/$name")
    s=$(grep -c '^\(not \)\{0,1\}ok .*# SKIP' "$folder/logs/$name")
    f=$(grep '^not ok ' "$folder/logs/$name" | grep -civ '# SKIP')
    if [ "$status" = 77 ]; then
        s=$((s + 1))
    elif [ "$status" != 0 ] && [ "$f" = 0 ]; then
        f=1
    fi
    [ "$s" = 0 ] || echo "skipped $name: $s of its tests: $(grep -v '^[0-9#]' "$folder/logs/$name" | grep -v '^ok\|^not ok' | head -n 1)"
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    if [ "$f" != 0 ]; then
        echo "FAILED $name (exit $status)"
        tail -n 20 "$folder/logs/$name" | sed 's/^/    /'
    fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
