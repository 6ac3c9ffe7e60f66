#!/bin/sh
# SPDX-License-Identifier: MIT
# check_aarch64_wheel.sh: the cross compiler builds the wheel for aarch64, pip installs it, and Python of Debian for
# aarch64 imports it under qemu-aarch64, packs, and reads batches. The commands of the wheel run, too.
. tests/release/release_common.sh
. tests/support/arm64_packages.sh
arm64_tools_there || skip "gcc-aarch64-linux-gnu or qemu-user is missing"
need dpkg-deb dpkg
need apt-get apt
need python3 python3
log=$TMPDIR/apt.log
folder=$BUILD_DIR/aarch64
mkdir -p "$folder"
why=$(arm64_libraries "$folder" "$log") || skip "${why:-the aarch64 libraries could not be unpacked}"
root=$folder/root/usr
libraries=$root/lib/aarch64-linux-gnu
# Python for aarch64, with NumPy; the archive of libstdc++ that belongs to the cross compiler; and libcurl's headers.
system=$folder/python
if [ ! -e "$system/complete" ]; then
    rm -rf "$system" && mkdir -p "$system"
    arm64_download "$folder/apt" "$log" python3-numpy libc6 libcurl4-openssl-dev \
        "libstdc++-$(aarch64-linux-gnu-gcc -dumpversion | cut -d. -f1)-dev" ||
        skip "Python for aarch64 could not be downloaded: $(tail -n 1 "$log")"
    for package in "$folder"/apt/archives/*.deb; do dpkg-deb -x "$package" "$system" || exit 1; done
    # Later Debians have these folders in /usr only.
    for name in bin lib lib64 sbin; do
        [ -e "$system/$name" ] || ln -s "usr/$name" "$system/$name"
    done
    cp "$system"/usr/lib/gcc/aarch64-linux-gnu/*/libstdc++.a "$libraries/" && mkdir -p "$folder/curl" &&
        cp -r "$system/usr/include/aarch64-linux-gnu/curl" "$folder/curl/" || exit 1
    rm -rf "$folder/apt"
    touch "$system/complete"
fi
# With -B the compiler finds the archives, whose code the wheel contains.
check "the wheel is built" $MAKE --no-print-directory -s CC="aarch64-linux-gnu-gcc -B$libraries/" \
    CXX=aarch64-linux-gnu-g++ AR=aarch64-linux-gnu-ar CFLAGS=-O2 CPPFLAGS="-isystem $root/include -isystem $folder/curl" \
    LDFLAGS="-L$libraries -Wl,-rpath-link,$libraries" BUILD="$folder/wheel_build" wheel
wheel=$(ls "$folder"/wheel_build/wheel/*.whl 2>/dev/null)
[ -n "$wheel" ] || exit 1
echo "# ${wheel##*/}"
case $wheel in
*-py3-none-manylinux_2_*_aarch64.whl) echo "ok - its tag says that any machine of aarch64 can run it" ;;
*) echo "not ok - its tag: $wheel" ;;
esac
# pip of this machine installs it for that machine, so that it checks the tag, the hashes, and the metadata.
venv=$TMPDIR/venv
site=$TMPDIR/site
if python3 -m venv "$venv" >"$TMPDIR/venv.log" 2>&1; then
    check "pip installs it for a machine of aarch64" "$venv/bin/python" -m pip install -q --disable-pip-version-check \
        --no-deps --no-index --only-binary :all: --platform manylinux_2_28_aarch64 --platform manylinux_2_34_aarch64 \
        --platform manylinux_2_36_aarch64 --implementation py --abi none --target "$site" "$wheel"
else
    echo "ok - pip # SKIP python3-venv is missing"
fi
[ -d "$site/tokmap" ] || python3 -m zipfile -e "$wheel" "$site"
chmod +x "$site"/tokmap/bin/*

# Debian has the libraries of NumPy in folders of their own, which update-alternatives would link.
found=/usr/lib/aarch64-linux-gnu
emulated() { qemu-aarch64 -L "$system" -E LD_LIBRARY_PATH=$found/blas:$found/lapack "$@"; }
python=$(ls "$system"/usr/bin/python3.[0-9]* | head -n 1)
cd "$TMPDIR" || exit 1
awk 'BEGIN { for (i = 0; i < 20000; i++) print "line " i }' >text.txt
check "the command of the wheel packs" emulated "$site/tokmap/bin/tokmap" pack -q -t bytes -o data text.txt
check "and verifies" emulated "$site/tokmap/bin/tokmap" verify -q data
check "its benchmark starts" emulated "$site/tokmap/bin/tokmap-bench" --version
check "the same files as here" sh -c '"$1" pack -q -t bytes -o here text.txt && cmp data.bin here.bin' sh "$TOKMAP"
cat >program.py <<'PROGRAM'
import os, platform, sys
import numpy
import tokmap
assert platform.machine() == "aarch64", platform.machine()
run = tokmap.Run(data="data", seq_len=64, batch=8, seed=1, steps=20)
seen = [numpy.array(batch.inputs) for batch in run.loader(rows=8)]
assert len(seen) == 20 and seen[0].shape == (8, 64), (len(seen), seen[0].shape)
print(tokmap.__version__, int(sum(part.sum() for part in seen)))
PROGRAM
in_python() { PYTHONPATH=$site PYTHONHOME=$system/usr emulated "$python" program.py >emulated.txt; }
check "Python for aarch64 imports the package and reads batches" in_python
sed 's/^/# version and sum of the batches: /' emulated.txt
if python3 -c 'import numpy' 2>/dev/null; then
    sed -i '/platform.machine/d' program.py
    check "the same batches as here" sh -c \
        'PYTHONPATH=$1/src/python TOKMAP_LIBRARY=$2/lib/libtokmap.so.0 python3 program.py >here.txt && cmp here.txt emulated.txt' \
        sh "$TOP" "$BUILD_DIR"
fi
