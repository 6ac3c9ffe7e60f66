# SPDX-License-Identifier: MIT
# Text files, folders, and patterns: the tokens are the bytes, and the origins are the files.
. "$TOKMAP_CLI/helpers.sh"
mkdir -p in/sub
printf 'one' >in/b
printf '\357\273\277t\000w\ro\n' >in/a
: >in/sub/empty
ln -s b in/link
exits 1 tokmap pack -q -o d in 2>err
holds err 'in/a: the file contains a zero byte, so it is not text; leave it out, or use --input-format text'
tokmap pack --input-format text -o d in >/dev/null
od -An -v -tu2 d.bin | tr -s ' \n' ' ' >got
printf ' 239 187 191 116 0 119 13 111 10 256 111 110 101 256 256 ' >wanted
same got wanted
tokmap verify -q d
tokmap pack -q --input-format text --no-eod -o e 'in/[ab]' in/sub
equal "$(od -An -v -tu2 e.bin | tr -s ' \n' ' ')" ' 239 187 191 116 0 119 13 111 10 111 110 101 '
tokmap pack -q --bos=endoftext --eod=7 -o f in/b
equal "$(od -An -v -tu2 f.bin | tr -s ' \n' ' ')" ' 256 111 110 101 7 '
cat in/b | tokmap pack -q -o g -
equal "$(od -An -v -tu2 g.bin | tr -s ' \n' ' ')" ' 111 110 101 256 '
# The output does not depend on its name, the number of threads, or the working folder.
mkdir elsewhere
ln -s "$PWD/in" elsewhere/in
(cd elsewhere && tokmap pack -q --threads 3 --input-format text -o other in)
same d.tmx elsewhere/other.tmx
same d.bin elsewhere/other.bin
