#!/bin/sh
# SPDX-License-Identifier: MIT
# lint.sh: checks the project's rules that a script can check. `make lint` runs it in the project's top folder.
#
# OBJ is the folder of the objects, and BUILD that of the library. Each rule prints its findings and then "ok NAME" or
# "not ok NAME". The script needs awk, find, and nm; it uses mandoc and ptxas where they are installed.
set -u
LC_ALL=C
export LC_ALL
BUILD=${BUILD:-build}
OBJ=${OBJ:-}
scratch=$BUILD/lint
rm -rf "$scratch"
mkdir -p "$scratch" || exit 1
results=$scratch/results # a file with one line per rule, because a rule at the end of a pipe cannot set variables
: >"$results"

# rule NAME: reads findings from standard input, one per line. Without findings the rule passes.
rule() {
    cat >"$scratch/findings"
    if [ -s "$scratch/findings" ]; then
        sed 's/^/  /' "$scratch/findings"
        echo "not ok $1" | tee -a "$results"
    else
        echo "ok $1" | tee -a "$results"
    fi
}
skip() {
    echo "ok $1 # SKIP $2" | tee -a "$results"
}

find src include tokenize_tools bench tests -type f ! -path '*/__pycache__/*' 2>/dev/null | sort >"$scratch/all"
grep -E '\.(c|h|cpp)$' "$scratch/all" >"$scratch/code"
grep -E '\.(c|h|cpp|cu|sh|py|map)$' "$scratch/all" >"$scratch/written"
{ ls Makefile .ci/run 2>/dev/null; } >>"$scratch/written"
{ cat "$scratch/written"; grep -E '\.(md|[1-8])$' "$scratch/all"; ls README.md 2>/dev/null; } >"$scratch/texts"
grep -E '^(src|tokenize_tools|bench|include)/' "$scratch/code" >"$scratch/product"

# The code with comments removed and strings emptied, as "FILE:LINE:TEXT", for rules about calls.
xargs awk '
    FNR == 1 { comment = 0 }
    {
        out = ""
        n = length($0)
        for (i = 1; i <= n; i++) {
            c = substr($0, i, 1)
            two = substr($0, i, 2)
            if (comment) { if (two == "*/") { comment = 0; i++ } continue }
            if (two == "/*") { comment = 1; i++; continue }
            if (two == "//") break
            if (c == "\"" || c == "\047") {
                for (i++; i <= n && substr($0, i, 1) != c; i++) if (substr($0, i, 1) == "\\") i++
                out = out c c
                continue
            }
            out = out c
        }
        if (out ~ /[^ \t]/) print FILENAME ":" FNR ":" out
    }' <"$scratch/product" >"$scratch/bare"

# ---- include arrows: src/ROOMS.md ----
# Each line has a room and the rooms that its files may include besides itself and the public headers. "ROOM+" stands
# for ROOM and all rooms that it may include. A single file may be named, too.
cat >"$scratch/arrows" <<'ARROWS'
include
src/common
src/text src/common
src/platform src/common
src/format src/text src/platform+
src/dataset src/format+
src/order src/common
src/run src/order src/dataset+
src/batch src/dataset+
src/staging src/batch/mark.h src/platform+
src/cuda src/text src/staging+
src/loader src/run+ src/batch+ src/cuda+
src/remote src/text src/platform+
src/cli src/text src/platform+ src/platform/process.h src/format/shard_file.h
src/python
tokenize_tools/unicode src/text src/platform+
tokenize_tools/pretokenize tokenize_tools/unicode+
tokenize_tools/tokenizer tokenize_tools/pretokenize+
tokenize_tools/bpe tokenize_tools/tokenizer+
tokenize_tools/sentencepiece tokenize_tools/bpe+
tokenize_tools/vocabulary tokenize_tools/sentencepiece+
tokenize_tools/codec src/text src/platform+
tokenize_tools/parquet tokenize_tools/codec+
tokenize_tools/inputs tokenize_tools/parquet/parquet.h tokenize_tools/codec+ src/remote+
tokenize_tools/chat tokenize_tools/inputs tokenize_tools/tokenizer+
tokenize_tools/work tokenize_tools/inputs+ src/format+
tokenize_tools/encode tokenize_tools/work+ tokenize_tools/chat+
tokenize_tools/shuffle tokenize_tools/encode+ src/order
tokenize_tools/dedup tokenize_tools/encode+
tokenize_tools/pack tokenize_tools/shuffle+ tokenize_tools/dedup+ src/cli+
tokenize_tools/plan src/format+
tokenize_tools/train tokenize_tools/encode+ tokenize_tools/bpe+
tokenize_tools/commands tokenize_tools/vocabulary+ tokenize_tools/pack+ tokenize_tools/train tokenize_tools/plan src/run
tokenize_tools tokenize_tools/commands+
bench/harness src/cli+ src/cuda+ src/format+ tokenize_tools/vocabulary+
bench/peers bench/harness+
bench/cases bench/peers+ src/order tokenize_tools/parquet/parquet.h tokenize_tools/train
bench bench/cases+
ARROWS
# Only rooms whose line names src/platform/process.h itself may include it, because the library must not use signals and
# child processes.
xargs grep -nE '^ *# *include *"' <"$scratch/product" | awk -v arrows="$scratch/arrows" -v all="$scratch/all" \
    -v edges="$scratch/edges" '
    function folder(path) { sub(/\/[^\/]*$/, "", path); return path }
    function plain(path) {
        while (match(path, /[^\/.]+\/\.\.\//)) path = substr(path, 1, RSTART - 1) substr(path, RSTART + RLENGTH)
        return path
    }
    function room(path) {
        path = folder(path)
        if (path ~ /^include/) return "include"
        while (!(path in known) && path ~ /\//) path = folder(path)
        return path
    }
    function grant(from, word,    i, n, part) {
        if (word ~ /\+$/) {
            sub(/\+$/, "", word)
            n = split(line_of[word], part, " ")
            for (i = 2; i <= n; i++) grant(from, part[i])
        }
        allowed[from, word] = 1
    }
    BEGIN {
        while ((getline line < arrows) > 0) {
            n = split(line, part, " ")
            known[part[1]] = 1
            line_of[part[1]] = line
        }
        for (name in line_of) {
            n = split(line_of[name], part, " ")
            for (i = 2; i <= n; i++) grant(name, part[i])
        }
        while ((getline line < all) > 0) there[line] = 1
    }
    {
        match($0, /:[0-9]+:/)
        file = substr($0, 1, RSTART - 1)
        where = substr($0, 1, RSTART + RLENGTH - 2)
        name = $0
        sub(/^[^"]*"/, "", name)
        sub(/".*/, "", name)
        target = plain(folder(file) "/" name)
        if (!(target in there)) target = "src/" name
        if (!(target in there)) target = "include/" name
        if (!(target in there)) target = "tokenize_tools/" name
        if (!(target in there)) target = "bench/" name
        if (!(target in there)) { print where ": \"" name "\" is not a file of the project"; next }
        print file, target >edges
        from = room(file)
        to = room(target)
        if (!(from in known)) print where ": the folder of " file " is not a room of ROOMS.md"
        else if (target == "src/platform/process.h") {
            if (from != "src/platform" && !((from, target) in allowed)) print where ": " from " may not include " target
        } else if (to != "include" && to != from && !((from, to) in allowed) && !((from, target) in allowed))
            print where ": " from " may not include " to
    }' | rule "include arrows"

# ---- circles ----
# A unit is a .c file with its header, its CPU variants (X_avx2.c, ...), and the headers without a .c file of their own
# that are named after it (X_internal.h). The script removes units that include no other unit until there are none, and
# then units that no other unit includes. The units that remain are in a circle or between two circles.
touch "$scratch/edges"
awk -v product="$scratch/product" '
    function unit(path,    base, shorter) {
        if (path in unit_of) return unit_of[path]
        base = path
        sub(/\.(c|h|cu)$/, "", base)
        sub(/_(avx2|avx512|vbmi|neon)$/, "", base)
        if (!((base ".c") in there) && !((base ".cu") in there)) {
            shorter = base
            while (sub(/_[a-z0-9]+$/, "", shorter) && shorter !~ /\/$/)
                if ((shorter ".c") in there) { base = shorter; break }
        }
        return unit_of[path] = base
    }
    BEGIN { while ((getline line < product) > 0) there[line] = 1 }
    {
        from = unit($1)
        to = unit($2)
        if (from != to && !((from, to) in edge)) {
            edge[from, to] = 1
            out[from]++
            into[to]++
            users[to] = users[to] " " from
            used[from] = used[from] " " to
            names[from] = names[to] = 1
        }
    }
    END {
        for (name in names) if (!out[name]) queue[++last] = name
        for (first = 1; first <= last; first++) {
            gone[queue[first]] = 1
            n = split(users[queue[first]], list, " ")
            for (i = 1; i <= n; i++) if (--out[list[i]] == 0) queue[++last] = list[i]
        }
        for (pair in edge) {
            split(pair, ends, SUBSEP)
            if (ends[1] in gone || ends[2] in gone) into[ends[2]]--
        }
        last = 0
        for (name in names) if (!(name in gone) && into[name] <= 0) queue[++last] = name
        for (first = 1; first <= last; first++) {
            gone[queue[first]] = 1
            n = split(used[queue[first]], list, " ")
            for (i = 1; i <= n; i++) if (!(list[i] in gone) && --into[list[i]] == 0) queue[++last] = list[i]
        }
        for (pair in edge) {
            split(pair, ends, SUBSEP)
            if (!(ends[1] in gone) && !(ends[2] in gone))
                print ends[1] " includes " ends[2] ", which includes it in turn, directly or through others"
        }
    }' "$scratch/edges" | sort | rule "no circles between files"

# ---- calls ----
kernel='open openat creat close read readv pread preadv preadv2 write writev pwrite pwritev pwritev2 lseek mmap munmap
mremap madvise posix_madvise msync mlock munlock mincore posix_fadvise readahead fsync fdatasync sync syncfs
sync_file_range rename renameat renameat2 unlink unlinkat remove link linkat symlink mkdir mkdirat rmdir mkstemp
mkostemp mkdtemp opendir fdopendir readdir closedir scandir nftw ftw fts_open glob stat fstat lstat fstatat statx
statfs fstatfs statvfs fstatvfs access faccessat truncate ftruncate fallocate posix_fallocate copy_file_range sendfile
splice flock lockf fcntl ioctl dup dup2 dup3 pipe pipe2 fork vfork execv execve execvp posix_spawn posix_spawnp wait
waitpid wait4 kill signal sigaction sigprocmask raise alarm setitimer sem_init sem_wait sem_post thrd_create mtx_lock
cnd_wait nanosleep clock_nanosleep usleep sleep poll select epoll_wait clock_gettime gettimeofday time sched_yield
sched_getaffinity sched_setaffinity getpid geteuid getuid isatty sysconf syscall getrusage sysinfo dlopen fopen freopen
fdopen tmpfile popen system realpath'
printing='printf vprintf fprintf vfprintf dprintf puts fputs putchar fputc putc fwrite perror fflush stdout stderr stdin
exit _exit _Exit quick_exit abort atexit setlocale setenv putenv unsetenv getenv strerror localtime gmtime ctime rand
srand random srandom'
never='strcpy strcat strncpy strncat stpcpy sprintf vsprintf gets atoi atol atoll atof strtok alloca system popen tmpnam
mktemp scanf sscanf fscanf rand srand setjmp longjmp'

# of_objects OPTION...: prints the symbols of all objects of the product, each after FILE.o and a colon. One nm for all
# of them takes a tenth of the time.
of_objects() {
    (cd "$OBJ" && while read -r file; do [ ! -f "$file.o" ] || echo "$file.o"; done | xargs -r nm -A "$@") \
        <"$scratch/product"
}
# The undefined symbols of each object. The names of libc functions are without the additions for large files and
# _FORTIFY_SOURCE.
if [ -n "$OBJ" ] && command -v nm >/dev/null 2>&1; then
    of_objects -u | sed 's|\.o: *[UwvW] | |; s/@.*//' | awk '{
        name = $2
        sub(/^__isoc[0-9]*_/, "", name)
        if (name ~ /^__.*_chk$/ || name ~ /^__.*_2$/) { sub(/^__/, "", name); sub(/_(chk|2)$/, "", name) }
        sub(/64$/, "", name)
        print $1, name
    }' >"$scratch/needs"
    if [ -s "$scratch/needs" ]; then
        awk -v list="$kernel" '
            BEGIN { n = split(list, name, /[ \n]+/); for (i = 1; i <= n; i++) bad[name[i]] = 1 }
            $1 !~ /^src\/platform\// && ($2 in bad || $2 ~ /^(pthread|sem|thrd|mtx|cnd)_/) {
                print $1 ": calls " $2 ", which only src/platform may call; use os.h, or add a function to it"
            }' "$scratch/needs" | rule "system calls only in platform"
        awk -v list="$printing" '
            BEGIN { n = split(list, name, /[ \n]+/); for (i = 1; i <= n; i++) bad[name[i]] = 1 }
            $1 ~ /^src\// && !($1 ~ /^src\/platform\// && $2 == "_exit") && $1 !~ /^src\/cli\// && $2 in bad {
                print $1 ": uses " $2 ", but the library never prints, exits, or aborts, and has no global state"
            }' "$scratch/needs" | rule "the library is silent"
    else
        echo "$OBJ has no objects; run make first" | rule "system calls only in platform"
    fi
else
    skip "system calls only in platform" "nm is missing, or OBJ is not set"
fi

awk -v list="$never" '
    BEGIN { n = split(list, name, /[ \n]+/); for (i = 1; i <= n; i++) bad[name[i]] = 1 }
    {
        match($0, /:[0-9]+:/)
        where = substr($0, 1, RSTART + RLENGTH - 2)
        rest = substr($0, RSTART + RLENGTH)
        while (match(rest, /[A-Za-z_][A-Za-z_0-9]* *\(/)) {
            call = substr(rest, RSTART, RLENGTH - 1)
            sub(/ *$/, "", call)
            if (call in bad) print where ": calls " call ", which is forbidden"
            rest = substr(rest, RSTART + RLENGTH)
        }
    }' "$scratch/bare" | rule "forbidden functions"

kernel_headers='fcntl|unistd|dirent|pthread|signal|sched|semaphore|threads|poll|dlfcn|glob|ftw|fts|spawn'
grep -E ":[0-9]+: *# *include *<($kernel_headers|sys/[a-z_]+|linux/[a-z_]+)\.h>" "$scratch/bare" |
     grep -vE '^(src/platform/|bench/peers/compare/faults/shim\.c:)' | # the shim stands in for calls of other programs
     sed 's/$/ (include platform\/os.h instead)/' |
    rule "system headers only in platform"
grep -E ':[0-9]+: *# *include *<(xxhash)\.h>' "$scratch/bare" | grep -v '^src/common/' | rule "xxHash only in common"
grep -E '^include/' "$scratch/bare" | grep -E '# *include *<' | grep -vE '<(stddef|stdint)\.h>' |
    rule "public headers include only stddef.h and stdint.h"
grep -E '^(src|tokenize_tools|bench)/' "$scratch/bare" | grep -E ':[0-9]+: *typedef +(struct|union|enum)' |
    rule "no typedefs of structs"

# ---- symbols ----
library=$(ls "$BUILD"/lib/libtokmap.so.[0-9]* 2>/dev/null | head -n 1)
headers=$(grep '^include/tokmap/.*\.h$' "$scratch/all")
awk '
    FNR == 1 { comment = ""; open = 0; held = "" }
    /^\/\*/ || (/^ *\/\*/ && !held) { comment = ""; open = 1 }
    open { comment = comment " " $0; if (/\*\//) open = 0; next }
    /^TOKMAP_API/ { held = " " }
    held {
        held = held $0 " "
        if (!/;/) next
        match(held, /tokmap_[a-z0-9_]+\(/)
        name = substr(held, RSTART, RLENGTH - 1)
        kind = held ~ /enum tokmap_status tokmap_[a-z0-9_]+\(/ ? "status" : "plain"
        gsub(/\n|\|/, " ", comment)
        print name "|" kind "|" comment
        held = ""
    }' $headers >"$scratch/declared"
if [ -n "$library" ] && command -v nm >/dev/null 2>&1; then
    # The functions of tokenizer.h belong to libtokmap_tokenize, and have names that begin with tokmap_tokenizer_.
    tokenize=$(ls "$BUILD"/lib/libtokmap_tokenize.so.[0-9]* 2>/dev/null | head -n 1)
    {
        [ -n "$tokenize" ] || sed -n 's/|.*//; s/^tokmap_tokenizer_/no library exports &/p' "$scratch/declared"
        for one in "$library" ${tokenize:+"$tokenize"}; do
            case $one in
            *tokenize*) grep '^tokmap_tokenizer_' "$scratch/declared" ;;
            *) grep -v '^tokmap_tokenizer_' "$scratch/declared" ;;
            esac | cut -d'|' -f1 | sort >"$scratch/names"
            nm -D --defined-only "$one" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort >"$scratch/exported"
            comm -23 "$scratch/exported" "$scratch/names" |
                sed "s|^|$one exports a symbol that its public headers do not declare: |"
            comm -13 "$scratch/exported" "$scratch/names" |
                sed "s|^|a public header declares a function that $one does not export: |"
            grep -v '^tokmap_' "$scratch/exported" | sed 's/^/exported symbol without the prefix tokmap_: /'
        done
    } | rule "exported symbols are the declared ones"
else
    skip "exported symbols are the declared ones" "nm is missing, or the shared library is not built"
fi
sed -n 's/^ *XX(\([A-Z_]*\), *[0-9]*,.*/\1/p' include/tokmap/tokmap.h >"$scratch/statuses"
awk -F'|' -v statuses="$scratch/statuses" '
    BEGIN { while ((getline line < statuses) > 0) known[line] = 1 }
    !("OK" in known) { print "tokmap.h has no list of statuses"; exit }
    {
        if ($2 == "status" && $3 !~ /Statuses:/) print $1 ": its comment does not name its statuses"
        if ($2 == "plain" && $3 !~ /Statuses:|[Cc]annot fail/) print $1 ": its comment does not say that it cannot fail"
        rest = $3
        while (match(rest, /ERROR_[A-Z_]+/)) {
            word = substr(rest, RSTART, RLENGTH)
            if (!(word in known)) print $1 ": " word " is not a status"
            rest = substr(rest, RSTART + RLENGTH)
        }
    }' "$scratch/declared" | rule "public comments name the statuses"

# Signals and child processes belong to the program, so process.h is linked into commands and tests only.
processes=$OBJ/src/platform/process_linux.c.o
if [ -f "$processes" ] && [ -n "$library" ] && command -v nm >/dev/null 2>&1; then
    {
        nm --defined-only "$processes" | awk '$2 ~ /[TDB]/ { print $3 }'
        printf '%s\n' fork vfork execve execv execvp posix_spawn posix_spawnp wait waitpid wait4 waitid kill raise signal \
            sigaction sigwait sigwaitinfo sigtimedwait signalfd
    } | sort -u >"$scratch/of_processes"
    for file in "$library" "$BUILD/lib/libtokmap.a"; do
        nm "$file" 2>/dev/null | awk '{ sub(/@.*/, "", $NF); print $NF }' | sort -u |
            comm -12 - "$scratch/of_processes" | sed "s|^|$file contains or uses |"
    done | rule "no signals or child processes in the library"
else
    skip "no signals or child processes in the library" "nm is missing, or the library is not built"
fi

# A header declares only what its own unit defines (the .c file of the same name and its CPU variants), so a reader
# knows where to look.
if [ -n "$OBJ" ] && command -v nm >/dev/null 2>&1; then
    of_objects --defined-only | sed -n 's|\.o:[0-9a-f]* [TDRBV] | |p' >"$scratch/defines"
    grep '\.h$' "$scratch/product" | grep -v '^include/' | xargs awk '
        FNR == 1 { depth = 0; held = "" }
        { line = $0; gsub(/\/\*[^*]*\*\//, "", line); sub(/\/\*.*/, "", line) }
        /^ *\*|^\/\*/ { next }
        line ~ /^(static|#|typedef)/ { held = "" }
        depth == 0 && line ~ /^[a-z].*[A-Za-z_0-9 *]+\(/ && line !~ /^(static|typedef|__attribute__)/ { held = line }
        depth == 0 && held != "" && line ~ /;/ {
            if (match(held, /[a-z_][a-z_0-9]*\(/)) print FILENAME, substr(held, RSTART, RLENGTH - 1)
            held = ""
        }
        line ~ /\{/ { held = "" }
        { depth += gsub(/\{/, "{", line) - gsub(/\}/, "}", line) }' |
        awk -v defines="$scratch/defines" '
            function stem(path) { sub(/\.(c|h|cu)$/, "", path); return path }
            BEGIN {
                while ((getline line < defines) > 0) {
                    split(line, part, " ")
                    where[part[2]] = where[part[2]] " " part[1]
                }
            }
            $2 in where {
                n = split(where[$2], file, " ")
                header = stem($1)
                good = 0
                for (i = 1; i <= n; i++) {
                    source = stem(file[i])
                    sub(/_(avx2|avx512|vbmi|neon|linux|linux_[a-z]+)$/, "", source)
                    if (source == header || index(header, source "_") == 1) good = 1
                }
                if (!good) print $1 ": declares " $2 ", which is defined in" where[$2]
            }' | rule "headers declare what their .c files define"
else
    skip "headers declare what their .c files define" "nm is missing, or OBJ is not set"
fi

# ---- text ----
xargs grep -nE '[[:space:]]+$' <"$scratch/texts" | rule "no space at the end of a line"
grep -v '/Makefile$\|^Makefile$' "$scratch/code" | xargs grep -n "$(printf '\t')" | rule "no tabs in code"
# A line that is a single string may be longer, and so may a line in tests/ that contains a string. A character of
# several bytes counts as one column.
xargs awk '
    { line = $0; gsub(/[\200-\277]/, "", line) }
    length(line) > 120 && !/^ *["\047]/ && !(FILENAME ~ /^tests\// && /["\047]/) {
        print FILENAME ":" FNR ": " length(line) " columns"
    }' <"$scratch/written" | rule "lines of at most 120 columns"
# Generated tables may be longer.
xargs grep -L 'Made by .*: do not edit' <"$scratch/product" | xargs wc -l | awk '
    $2 != "total" && $1 > ($2 ~ /^include\// ? 1500 : 900) { print $2 ": " $1 " lines; split the file" }' |
    rule "files of at most 900 lines"
# tail prints a line with the name of each file, and below it the last byte. Two line ends follow each call of tail, so
# that the next one begins with a line of its own.
xargs sh -c 'tail -v -c 1 "$@"; echo; echo' sh <"$scratch/texts" | awk '
    /^==> .* <==$/ { name = $2; line = ""; getline line; if (line != "") print name ": the last line has no newline" }' |
    rule "files end with a newline"
grep -v '^tests/lint/' "$scratch/texts" |
    xargs grep -nEi '(^|[^a-z])(TODO|FIXME|XXX|HACK)([^a-z]|$)|not implemented|placeholder|for now([^a-z]|$)' |
    grep -vE 'XX\(|X{6}' | rule "nothing unfinished"
# Results have the commands that were typed. What one machine calls its folders says nothing to a reader.
grep -E '^bench/results/.*(\.json|\.command|facts|missing)$' "$scratch/all" >"$scratch/rows"
{
    cat "$scratch/texts" "$scratch/rows" |
        xargs grep -nE '(^|[^A-Za-z0-9_.])/(w[o]rk|f[a]rm|home|root)/|bash[_]jobs' | grep -v '^tests/lint/'
    xargs grep -n '/tmp/' <"$scratch/rows"
} | cut -c1-200 | rule "no paths of one machine"
# Two units may not have the same name (X.c and X.h are one unit). Public headers are exempt, because they are named
# after what they declare.
grep -v '^include/' "$scratch/code" | sed -E 's/\.(c|h|cpp|cu)$//' | sort -u | sed 's|.*/||' | sort | uniq -d |
    while read -r name; do
        echo "$name: $(grep -E "/$name\.(c|h|cpp|cu)\$" "$scratch/code" | grep -v '^include/' | tr '\n' ' ')"
    done | rule "file names are unique"
for file in $(grep '\.h$' "$scratch/product" | grep -E '^(src|tokenize_tools)/'); do
    guard=TOKMAP_$(echo "${file#*/}" | tr a-z./ A-Z__)
    grep -q "^#ifndef $guard\$" "$file" || echo "$file: the header guard should be $guard"
done | rule "header guards"
# Synonyms of the project's words. The Python package and the peers of bench are exempt, because they use classes with
# these names, such as the DataLoader of torch.
grep -E '^(tokenize_tools|src|bench|include)/' "$scratch/texts" | grep -vE '^(src/python|bench/peers)/|^bench/(RESULTS.md|measure/)' |
    xargs grep -nEi '\b(dataloader|minibatch|mini-batch)\b' |
    rule "words"

# Plain English: phrases.txt lists phrases that a technical editor would replace. Lines that contain "kept spelling" are
# exempt: they have a word that existing files or scripts use. Files that match none of the phrases are read once.
{ cat "$scratch/texts"; ls .github/*.md 2>/dev/null; } |
    grep -vE '^tests/(lint|fuzz/corpus|differential/corpus|reference)/' >"$scratch/english"
awk '/^\// { advice = $0; sub(/^\/.*\/ /, "", advice); sub(/^\//, ""); sub(/\/ [^\/]*$/, ""); print $0 "\t" advice }' \
    "$(dirname "$0")/phrases.txt" >"$scratch/advice"
cut -f 1 "$scratch/advice" >"$scratch/phrases"
xargs grep -lE -f "$scratch/phrases" <"$scratch/english" >"$scratch/matching"
{
    grep -E -f "$scratch/phrases" /dev/null
    [ $? -lt 2 ] || echo "phrases.txt: a phrase is not a regular expression, so none was searched"
    [ ! -s "$scratch/matching" ] || while IFS="$(printf '\t')" read -r phrase advice; do
        xargs grep -HnE -- "$phrase" <"$scratch/matching" | grep -v 'kept spelling' | sed "s|\$| -> $advice|"
    done <"$scratch/advice"
} | rule "plain English"

# ---- man pages ----
{
    for file in tokenize_tools/commands/command_*.c tokenize_tools/commands/*/command_*.c; do
        name=$(basename "$file" .c)
        name=$(echo "${name#command_}" | tr _ -)
        [ -f "$file" ] || continue
        [ -f "tokenize_tools/man/tokmap-$name.1" ] || echo "$file: the page tokenize_tools/man/tokmap-$name.1 is missing"
    done
} 2>/dev/null | rule "each subcommand has a man page"
pages=$(grep -E '\.[1-8]$' "$scratch/all" | grep -E '/man/|^bench/')
if ! command -v mandoc >/dev/null 2>&1; then
    skip "man pages" "mandoc is missing"
elif [ -n "$pages" ]; then
    mandoc -T lint -W warning $pages 2>&1 | rule "man pages"
fi
# `.Fl Fl progress none` prints "--progress -none": Fl puts a dash before each of its arguments.
for page in $pages; do
    grep -nE '^\.(Op )?(It )?Fl Fl [a-z0-9-]+ +[a-z0-9]' "$page" | sed "s|^|$page:|"
done | rule "man pages: a value is marked with Ar or Cm"

# ---- GPU kernels: ptxas assembles them for every GPU that it supports, and `make ptx` makes the same files ----
kernels=$(grep '\.ptx$' "$scratch/all")
if [ -n "$kernels" ] && ! command -v ptxas >/dev/null 2>&1; then
    skip "kernels" "ptxas of the CUDA toolkit is missing"
elif [ -n "$kernels" ]; then
    for text in $kernels; do
        for architecture in $(nvcc --list-gpu-code); do
            ptxas -warn-spills -arch="$architecture" -o /dev/null "$text" 2>&1 | sed "s|^|$text, $architecture: |"
        done
    done | rule "kernels are assembled for every GPU"
    version=$(nvcc --version | sed -n 's/.*, \(V[0-9.]*\).*/\1/p')
    if [ "$(grep -lF "$version" $kernels)" = "$kernels" ]; then
        {
            MAKEFLAGS= ${MAKE:-make} -s ptx PTX_ROOT="$scratch/ptx" BUILD="$scratch" 2>&1
            for text in $kernels $(grep '\.fatbin$' "$scratch/all"); do
                cmp "$text" "$scratch/ptx/$text" 2>&1
            done
        } | rule "kernels are what make ptx makes"
    else
        skip "kernels are what make ptx makes" "the files were made by another version of nvcc than the installed $version"
    fi
fi

# ---- shell ----
for file in $(grep '\.sh$' "$scratch/written") $(ls .ci/run 2>/dev/null); do
    case $(head -n 1 "$file") in
    *bash*) bash -n "$file" 2>&1 ;;
    *) sh -n "$file" 2>&1 ;;
    esac
done | rule "shell scripts parse"

awk '/# SKIP/ { s++; next } /^ok/ { p++ } /^not ok/ { f++ }
    END { print p + 0 " passed, " f + 0 " failed, " s + 0 " skipped"; exit f > 0 }' "$results"
