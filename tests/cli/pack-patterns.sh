# SPDX-License-Identifier: MIT
# ci: nonroot
# Patterns with two stars, hidden files, --include, --exclude, and --files-from.
. "$TOKMAP_CLI/helpers.sh"
# packed ARGUMENT...: packs with one byte per token, and prints the texts in their order.
packed()
{
    tokmap pack -q --force --no-eod -o d "$@"
    od -An -v -tu2 d.bin | awk '{for (i = 1; i <= NF; i++) printf "%c", $i} END {print ""}'
}
mkdir -p gl/a/b
printf '{"text": "x"}\n' >gl/x.jsonl
printf '{"text": "y"}\n' >gl/a/y.jsonl
printf '{"text": "z"}\n' >gl/a/b/z.jsonl
equal "$(packed 'gl/**/*.jsonl')" zyx
equal "$(packed 'gl/**')" zyx
equal "$(packed '**/z.*' 'gl/**/y*')" zy
equal "$(packed 'g*/**/b/**/*')" z
exits 1 tokmap pack -q --force -o d 'gl/**/*.txt' 2>err
holds err 'gl/**/*.txt: no file matches this pattern'
exits 1 tokmap pack -q --force -o d 'gl/**/b' 2>err
holds err 'gl/**/b: a pattern with ** matches files, and this one matches only folders; append /**'
# A symbolic link to a folder is followed, but not back into the folder that contains it.
ln -s .. gl/a/up
ln -s b gl/a/c
equal "$(packed 'gl/**/*.jsonl')" zzyx
rm gl/a/up gl/a/c

# Links among folders make more paths than anyone can want: these 8 folders have 109,600 paths to 8 files.
for i in 1 2 3 4 5 6 7 8; do
    mkdir -p mesh/$i
    printf x >mesh/$i/f.txt
    for k in 1 2 3 4 5 6 7 8; do [ $i = $k ] || ln -s ../$k mesh/$i/to$k; done
done
exits 1 timeout 60 tokmap pack -q --force -o d 'mesh/**/*.txt' 2>err
holds err 'mesh/**/*.txt: symbolic links lead from ** to one folder on more than 16 paths'
holds err "One of the paths is 'mesh/"
equal "$(packed mesh)" xxxxxxxx
rm -r mesh
# A folder that cannot be listed is not silently passed over. Its path is too long, which stops root as well.
mkdir long
printf x >long/f.txt
(
    name=$(printf '%0250d' 0)
    cd long
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18; do mkdir $name && cd -P $name; done
)
exits 1 tokmap pack -q --force -o d 'long/**/*.txt' 2>err
holds err 'the folder cannot be read, and may contain matches: File name too long'
equal "$(packed --on-error skip 'long/**/*.txt' 2>/dev/null)" x
rm -r long
# 15 links to one folder are fewer.
mkdir -p links/real links/to
printf x >links/real/f.txt
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do ln -s ../real links/to/$i; done
equal "$(packed 'links/**/*.txt')" xxxxxxxxxxxxxxxx
rm -r links
# Components of two stars reach a folder in many ways; the ways do not multiply.
deep=deep stars='deep'
for i in 1 2 3 4 5 6 7 8; do
    deep=$deep/a/a/a/a
    stars="$stars/**"
done
mkdir -p $deep
printf x >$deep/f.txt
equal "$(timeout 60 tokmap encode --output-format text "$stars/*.txt")" "$(printf x | tokmap encode --output-format text -)"

# Of a repository with 4 source files, 4 documents are packed, and the closing report counts the rest.
mkdir -p repo/.git/objects repo/src
for i in 1 2 3; do printf '%s' $i >repo/src/$i.c; done
printf 4 >repo/README
for i in a b c d e f; do printf x >repo/.git/objects/$i; done
printf x >repo/.gitignore
ln -s README repo/link
tokmap pack -o d --force repo >report
equal "$(packed repo)" 4123
holds report 'hidden files                            1  --hidden reads them'
holds report 'hidden folders                          1  --hidden reads them'
holds report 'symbolic links                          1'
equal "$(packed --hidden repo | tr -d 1234)" xxxxxxx
equal "$(packed repo/.git)" xxxxxx
mkdir -p only/.git
exits 1 tokmap pack -q --force -o d only 2>err
holds err 'only: the folder contains nothing but 1 hidden files and folders, whose names begin with a dot or, beside tables, with an underscore; read them with --hidden'

# Globs: names; with a slash, paths below the folder that is named.
equal "$(packed --include '*.c' repo)" 123
equal "$(packed --include '*.c' --exclude '2*' repo)" 13
equal "$(packed --exclude src repo)" 4
equal "$(packed --exclude 'src/[12].c' repo)" 43
equal "$(packed --include '/*' repo)" 4
equal "$(packed --include '**/1.c' --include README repo)" 41
equal "$(packed --include '*.c' repo/README repo/src/3.c)" 3
equal "$(packed --exclude '2.c' 'repo/**/*.c')" 13
tokmap pack --json --force -o d --include '*.c' --exclude '2*' repo >report
if command -v python3 >/dev/null 2>&1; then
    equal "$(field report not_read.excluded_files)" 2
    equal "$(field report not_read.hidden_folders)" 1
fi
exits 1 tokmap pack -q --force -o d --include '*.txt' repo 2>err
holds err 'no file is left: --include and --exclude leave out all of them (files: 4, folders: 0)'

# Lists of paths.
find repo -name '*.c' | sort >list
equal "$(packed --files-from list)" 123
# A list that Windows has written; a name that ends with a carriage return is listed with zero bytes.
sed 's/$/\r/' list >windows
(printf '\357\273\277' && cat windows && printf '\r\n') >marked
equal "$(packed --files-from windows)" 123
equal "$(packed --files-from marked)" 123
equal "$(printf 'repo/src/1.c\r' | packed --files-from -)" 1
printf 4 >"$(printf 'name\r')"
equal "$(printf 'name\r\0' | packed --files-from - -0)" 4
rm "$(printf 'name\r')"
equal "$(packed --files-from - repo/README <list)" 4123
equal "$(find repo -name '*.c' -print0 | sort -z | packed --files-from - -0 --exclude 1.c)" 23
printf x >'odd [name]*'
printf y >'odd
line'
equal "$(find . -maxdepth 1 -name 'odd*' -print0 | sort -z | packed -0 --files-from -)" yx
exits 1 tokmap pack -q --force -o d --files-from - <<END 2>err
repo/README
repo/src
END
holds err "standard input:2: 'repo/src' is a folder; a list names files, for example those of 'find FOLDER -type f'"
: | exits 1 tokmap pack -q --force -o d --files-from - 2>err
holds err 'standard input: the list names no file'
exits 1 tokmap pack -q --force -o d --files-from nowhere 2>err
holds err 'nowhere: the input cannot be opened'
exits 2 tokmap pack -q -o d --files-from - - 2>err
holds err "standard input ('-') can be read only once"
exits 2 tokmap pack -q -o d --null repo 2>err
holds err '--null is about the paths of --files-from'
equal "$(tokmap encode --files-from list | tr '\n' ' ')" '49 50 51 '

# A command that fails before the pipe must not look like an empty text.
exits 1 tokmap pack -q --force -o q - </dev/null 2>err
holds err 'standard input: the input ended without a byte; check the command that writes it'
(zcat nosuch.gz 2>zcat.err || true) | exits 1 tokmap pack -o q - 2>err
holds err 'standard input: the input ended without a byte'
equal "$(ls q.* 2>/dev/null | wc -l | tr -d ' ')" 0

# A path of a list that cannot be one is left out alone, and the paths after it are read.
printf 1 >1.txt
printf 2 >2.txt
printf 3 >3.txt
{
    printf '1.txt\nx\000y\n2.txt\n'
    head -c 200000 /dev/zero | tr '\000' p
    printf '\n3.txt\n'
    head -c 70000 /dev/zero | tr '\000' p
} >list
equal "$(packed --on-error skip --files-from list 2>err)" 123
holds err 'list:2: the path contains a zero byte'
holds err 'list:4: the path is longer than 65536 bytes'
holds err 'list:6: the path is longer than 65536 bytes'
equal "$(wc -l <err | tr -d ' ')" 3
