# SPDX-License-Identifier: MIT
# ci: nonroot
# Libraries of codecs are loaded when they are used and not before; where one is missing, a message says what to do.
. "$TOKMAP_CLI/helpers.sh"
# The dynamic linker takes the first file with the name, and these are no libraries.
mkdir broken
for library in libzstd.so.1 libisal.so.2 libpcre2-8.so.0 libsnappy.so.1 liblz4.so.1 libbrotlidec.so.1 \
    libbz2.so.1.0 libbz2.so.1 liblzma.so.5; do
    printf 'no library' >broken/$library
done
printf 'hello\n' >text
[ "${DLOPEN:-}" != no ] || skip 'this tokmap is linked with the libraries'
broken()
{
    LD_LIBRARY_PATH=$PWD/broken "$@"
}
# Nothing of this needs one of them.
tokmap pack -q --no-eod -o d text
tokmap info d >wanted
broken tokmap info d >got
same got wanted
broken tokmap --version >got
tokmap --version >wanted
same got wanted
broken tokmap verify -q d

# refused FILE ENDING: packing the file says which library is missing.
refused()
{
    exits 1 broken tokmap encode "$1" 2>err
    holds err "cannot be loaded ($PWD/broken/lib"
    holds err 'install it (apt-get install lib'
    holds err "or pipe the output of '$2 -dc' into tokmap"
    tokmap encode "$1" >got
    same got ids
}
tokmap encode text >ids
for command in gzip zstd bzip2 xz lz4; do
    command -v $command >/dev/null 2>&1 || continue
    $command -c text >text.$command 2>/dev/null
    tokmap encode text.$command >/dev/null 2>err || { holds err 'built without'; continue; }
    refused text.$command $command
done

# A sealed dataset: described, read, made, and restored. A failed command leaves the files as they are.
exits 1 broken tokmap seal -q d 2>err
holds err 'sealed tokens are compressed with zstd, whose library cannot be loaded'
holds err 'apt-get install libzstd1'
equal "$(echo d.*)" 'd.bin d.tmx'
tokmap seal -q d
for command in 'unseal -q' verify 'show --document 0'; do
    # shellcheck disable=SC2086 # several words
    exits 1 broken tokmap $command d >got 2>err
    holds err 'sealed tokens are compressed with zstd, whose library cannot be loaded'
done
equal "$(echo d.*)" 'd.bin.zst d.tmx'
tokmap unseal -q d
tokmap verify -q d
# Where nothing changes, nothing is loaded.
broken tokmap unseal -q d

# Packing says so before it reads its inputs, one of which does not exist.
for option in '' '--shard-tokens 4 --shuffle 7'; do
    # shellcheck disable=SC2086 # several words
    exits 1 broken tokmap pack -q --no-eod --seal $option -o s text no_such_file 2>err
    holds err 'sealed tokens are compressed with zstd, whose library cannot be loaded'
    equal "$(echo s.* s)" 's.* s'
done

# What a killed writer has left is not taken for somebody else's because it cannot be read.
tokmap pack -q --no-eod --seal -o s text
mv s.tmx s.tmx.partial
exits 1 broken tokmap pack -q --no-eod -o s text 2>err
holds err 'sealed tokens are compressed with zstd, whose library cannot be loaded'
equal "$(echo s.*)" 's.bin.zst s.tmx.partial'
tokmap pack -q --no-eod -o s text
equal "$(echo s.*)" 's.bin s.tmx'
