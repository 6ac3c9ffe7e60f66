#!/bin/sh
# SPDX-License-Identifier: MIT
# test_lint.sh: shows that each rule of lint.py can fail. A small tree passes, and then gets one fault at a time.
set -u
if [ -n "${SANITIZE:-}" ]; then
    echo "skipped: lint checks the build without sanitizers"
    exit 77
fi
if ! command -v "${PYTHON:-python3}" >/dev/null 2>&1; then
    echo "skipped: needs python3"
    exit 77
fi
lint=$TOP/tests/lint/lint.py
tree=$TMPDIR/tree
cd "$TMPDIR" || exit 1

# make_tree: makes a tree that passes: a public header, a few files of the library, and one of the tools.
make_tree() {
    rm -rf "$tree"
    mkdir -p "$tree/include/tokmap" "$tree/src/common" "$tree/src/format" "$tree/src/order" "$tree/tokenize_tools" \
        "$tree/build/lib" "$tree/build/obj"
    cat >"$tree/include/tokmap/tokmap.h" <<'HEADER'
#ifndef TOKMAP_TOKMAP_H
#define TOKMAP_TOKMAP_H
#define TOKMAP_API __attribute__((visibility("default")))
#define TOKMAP_STATUS_MAP(XX) \
    XX(OK, 0, "success") \
    XX(ERROR_RANGE, 1, "range")
enum tokmap_status { TOKMAP_OK };
/* Does it. Statuses: OK, ERROR_RANGE. */
TOKMAP_API enum tokmap_status tokmap_thing_do(int one);
/* Cannot fail. */
TOKMAP_API int tokmap_thing_count(void);
#endif
HEADER
    cat >"$tree/src/common/thing.c" <<'CODE'
#include "tokmap/tokmap.h"
/* open("not a call") and strcpy() in a comment are not calls */
enum tokmap_status tokmap_thing_do(int one)
{
    const char *text = "strcpy(";
    return one && text ? TOKMAP_OK : TOKMAP_OK;
}
int tokmap_thing_count(void)
{
    return 1;
}
CODE
    printf '#include "common/part.h"\nint format_part(void);\nint format_part(void)\n{\n    return part();\n}\n' \
        >"$tree/src/format/part_format.c"
    printf '#ifndef TOKMAP_COMMON_PART_H\n#define TOKMAP_COMMON_PART_H\nint part(void);\n#endif\n' \
        >"$tree/src/common/part.h"
    printf '#include "part.h"\nint part(void)\n{\n    return 1;\n}\n' >"$tree/src/common/part.c"
    printf '/* %s: 80 columns, 160 bytes */\n' "$(printf '%080d' 0 | sed 's/0/é/g')" >>"$tree/src/common/part.c"
    printf 'int main(void)\n{\n    return 0;\n}\n' >"$tree/tokenize_tools/tokmap.c"
    printf 'all:\n' >"$tree/Makefile"
    cp "$TOP/src/ROOMS.md" "$tree/src/ROOMS.md"
    mkdir "$tree/src/make"
    printf '%s\n' 'include 20' 'src/common 30' 'src/format 7' 'tokenize_tools 6' >"$tree/src/make/mass.txt"
    find "$tree" -type f -name '*.[ch]' -exec sed -i '1i /* SPDX-License-''Identifier: MIT */' {} +
    sed -i '1i # SPDX-License-''Identifier: MIT' "$tree/Makefile"
}
# run_lint [RULE]: compiles the tree, and runs all rules, or this one.
run_lint() {
    (
        cd "$tree" || exit 1
        find src tokenize_tools -name '*.c' | while read -r file; do
            mkdir -p "build/obj/$(dirname "$file")"
            $CC -D_GNU_SOURCE -w -fPIC -fvisibility=hidden -Iinclude -Isrc -c "$file" -o "build/obj/$file.o" || exit 1
        done
        $CC -shared build/obj/src/*/*.o -o build/lib/libtokmap.so.0
        OBJ=build/obj BUILD=build "${PYTHON:-python3}" "$lint" "$@"
    ) >"$TMPDIR/log" 2>&1
}
make_tree
if run_lint; then echo "ok - a sound tree passes"; else cat "$TMPDIR/log"; echo "not ok - a sound tree passes"; fi

# finds RULE: checks that the rule fails, and makes a new tree. The other rules do not run, which is quicker.
: >"$TMPDIR/covered"
finds() {
    echo "$1" >>"$TMPDIR/covered"
    if run_lint "$1"; then
        echo "not ok - $1: lint passes"
    elif grep -q "^not ok $1\$" "$TMPDIR/log"; then
        echo "ok - $1"
    else
        cat "$TMPDIR/log"
        echo "not ok - $1: not found"
    fi
    make_tree
}
code() { printf "$2" >>"$tree/$1"; }

printf '#ifndef TOKMAP_FORMAT_UP_H\n#define TOKMAP_FORMAT_UP_H\n#endif\n' >"$tree/src/format/up.h"
code src/common/part.c '#include "format/up.h"\n'
finds "include arrows"
mkdir -p "$tree/tokenize_tools/tokenizers/bpe" "$tree/tokenize_tools/inputs/corpus"
printf '#ifndef TOKMAP_BPE_UP_H\n#define TOKMAP_BPE_UP_H\n#endif\n' >"$tree/tokenize_tools/tokenizers/bpe/up.h"
code tokenize_tools/inputs/corpus/up.c '#include "../../tokenizers/bpe/up.h"\n'
finds "arrows between wings"
code src/common/part.c '#include "no_such_file.h"\n'
run_lint
if grep -q 'is not a file of the project' "$TMPDIR/log"; then echo "ok - an include of a missing file"
else echo "not ok - an include of a missing file"; fi
make_tree
code src/common/part.c '#include <string.h>\n#include <stdio.h>\n'
finds "include blocks are sorted"
code src/order/other.c 'static int part(void)\n{\n    return 2;\n}\n'
finds "names of functions are unique"
code src/order/other.c '#define INLINE static inline\nINLINE int\npart(void)\n{\n    return 2;\n}\n'
finds "names of functions are unique"
if command -v git >/dev/null 2>&1; then
    # commit SUBJECT: adds a commit to the tree, whose first one has the name that the rule begins with.
    commit() {
        (cd "$tree" && git init -q . && git -c user.name=n -c user.email=e commit -q --allow-empty -m "$1" &&
            { git rev-parse -q --verify 85b3a503 >/dev/null || git tag 85b3a503; })
    }
    commit "$(printf '%073d' 0)"
    commit "$(printf '%072d' 0)"
    commit "Merge branch 'x': what it brings"
    if run_lint "subjects of commits"; then echo "ok - subjects of 72 characters, and longer ones before the rule"
    else cat "$TMPDIR/log"; echo "not ok - subjects of 72 characters, and longer ones before the rule"; fi
    commit "$(printf '%073d' 0)"
    finds "subjects of commits"
    commit first
    commit "Merge branch 'x' into y"
    finds "subjects of commits"
else
    echo "subjects of commits" >>"$TMPDIR/covered"
fi
printf '#ifndef TOKMAP_COMMON_LEFT_H\n#define TOKMAP_COMMON_LEFT_H\n#include "right.h"\n#endif\n' >"$tree/src/common/left.h"
printf '#ifndef TOKMAP_COMMON_RIGHT_H\n#define TOKMAP_COMMON_RIGHT_H\nint right(void);\n#endif\n' \
    >"$tree/src/common/right.h"
code src/common/right.c '#include "right.h"\n#include "left.h"\nint right(void) { return 1; }\n'
finds "no circles between files"
code src/format/part_format.c '#include "tokmap/tokmap.h"\nint calls(void);\nint calls(void)\n{\n    return tokmap_thing_count();\n}\n'
finds "rooms call inner functions"
sed -i 's/^int part(void);/&\nint format_part(void);/' "$tree/src/common/part.h"
finds "headers declare what their .c files define"
code src/common/part.c '/* the function tells how many there are */\n'
finds "plain English"
code src/common/part.h '/* Returns the part, or NULL if there is none. */\n'
finds "plain English in headers"
code src/common/part.c '/* Whether there is one. */\nint part_is(void)\n{\n    return 1;\n}\n'
finds "comments begin with a verb or a noun"
mkdir -p "$tree/src/platform"
printf '#ifndef TOKMAP_PLATFORM_PROCESS_H\n#define TOKMAP_PLATFORM_PROCESS_H\n#endif\n' >"$tree/src/platform/process.h"
code src/format/child.c '#include "platform/process.h"\n'
finds "include arrows"
mkdir -p "$tree/src/platform"
printf 'int os_child_stop(void);\nint os_child_stop(void)\n{\n    return 1;\n}\n' >"$tree/src/platform/process_linux.c"
finds "no signals or child processes in the library"
code src/order/reads.c '#include <unistd.h>\nlong reads(char *p);\nlong reads(char *p) { return read(0, p, 1); }\n'
finds "system calls only in platform"
code src/order/renames.c 'int renames(int (*os_rename)(const char *, const char *));\nint renames(int (*os_rename)(const char *, const char *))\n{\n    return os_rename("a", "b");\n}\n'
finds "files are renamed in two places"
code src/order/reads.c '#include <pthread.h>\nvoid *reads(void);\nvoid *reads(void) { return (void *)pthread_self(); }\n'
finds "system headers only in platform"
code src/order/prints.c '#include <stdio.h>\nvoid prints(int n);\nvoid prints(int n) { printf("%%d", n); }\n'
finds "the library is silent"
code src/order/exits.c '#include <stdlib.h>\nvoid exits(int n);\nvoid exits(int n) { if (n) abort(); }\n'
finds "the library is silent"
code src/common/part.c '#include <string.h>\nvoid copies(char *a);\nvoid copies(char *a) { strcpy(a, a + 1); }\n'
finds "forbidden functions"
code src/common/part.c 'typedef struct part { int x; } part_t;\n'
finds "no typedefs of structs"
code src/common/part.c '#include "tokmap/tokmap.h"\nTOKMAP_API int tokmap_secret(void);\nint tokmap_secret(void) { return 1; }\n'
finds "exported symbols are the declared ones"
sed -i 's/^int tokmap_thing_count/static int tokmap_thing_counts/' "$tree/src/common/thing.c"
finds "exported symbols are the declared ones"
sed -i 's/ Statuses: OK, ERROR_RANGE\.//' "$tree/include/tokmap/tokmap.h"
finds "public comments name the statuses"
sed -i 's/Statuses: OK, ERROR_RANGE/Statuses: OK, ERROR_STRANGE/' "$tree/include/tokmap/tokmap.h"
finds "public comments name the statuses"
sed -i 's/^#define TOKMAP_API.*/&\n#include <stdio.h>/' "$tree/include/tokmap/tokmap.h"
finds "public headers include only stddef.h and stdint.h"
code src/order/hashes.c '#include <xxhash.h>\n'
finds "xxHash only in common"
code src/common/part.c '/* a dataloader */\n'
finds "words"
awk 'BEGIN { print "<!-- example: one -->"; for (i = 0; i < 120; i++) print "line" }' >"$tree/src/PAGE.md"
finds "README and pages are short"
awk 'BEGIN { print "<!-- example: one -->"; for (i = 0; i < 170; i++) print "line" }' >"$tree/README.md"
finds "README and pages are short"
printf '[a page](../PAGE.md)\n' >"$tree/src/PAGE.md"
finds "links lead somewhere"
printf '# A heading\n[the heading](#another-heading)\n' >"$tree/src/PAGE.md"
finds "links lead somewhere"
if command -v mandoc >/dev/null 2>&1; then
    mkdir -p "$tree/tokenize_tools/man"
    printf '.Dd January 1, 2026\n.Dt TOKMAP 1\n.Os\n.Sh NAME\n.Nm tokmap\n.Nd maps\n.Xy\n' >"$tree/tokenize_tools/man/tokmap.1"
    finds "man pages"
else
    echo "man pages" >>"$TMPDIR/covered"
fi
mkdir -p "$tree/tokenize_tools/man"
printf '.It Fl Fl progress none\n' >"$tree/tokenize_tools/man/tokmap.1"
finds "man pages: a value is marked with Ar or Cm"
if clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
    code src/common/part.c 'int  wide;\n'
    finds "clang-format"
else
    echo "clang-format" >>"$TMPDIR/covered"
fi
code src/common/part.c 'int spaced; \n'
finds "no space at the end of a line"
code src/common/part.c '\tint tabbed;\n'
finds "no tabs in code"
code src/common/part.c "/* $(printf '%0115d' 0) */\\n"
finds "lines of at most 120 columns"
sed -i "s/^.\* Does it/& $(printf '%0115d' 0)/" "$tree/include/tokmap/tokmap.h"
finds "lines of at most 120 columns"
printf '/* %0115d */\n' 0 >"$tree/src/common/kernel.cu"
finds "lines of at most 120 columns"
awk 'BEGIN { for (i = 0; i < 901; i++) print "/* line */" }' >>"$tree/src/common/part.c"
finds "files of at most 900 lines"
code src/common/part.c 'int unended;'
finds "files end with a newline"
code src/common/part.c '/* TO''DO: more */\n'
finds "nothing unfinished"
make_tree
sed -i 1d "$tree/src/common/part.c"
finds "license lines"
code src/common/part.c '/* see /home/someone/file */\n'
finds "no paths of one machine"
mkdir -p "$tree/bench/results"
echo '{"command": "tokmap-bench compare pin /ho''me/someone/web"}' >"$tree/bench/results/zen.jsonl"
finds "no paths of one machine"
mkdir -p "$tree/bench/results"
echo '{"command": "tokmap-bench loader --dir /tmp/tmp.1 --json"}' >"$tree/bench/results/zen.jsonl"
finds "no paths of one machine"
printf 'int other;\n' >"$tree/src/order/part.c"
finds "file names are unique"
sed -i 's/TOKMAP_COMMON_PART_H/PART_H/' "$tree/src/common/part.h"
finds "header guards"
mkdir -p "$tree/tokenize_tools/commands"
code tokenize_tools/commands/command_count.c 'int command_count(void);\nint command_count(void) { return 0; }\n'
finds "each subcommand has a man page"
mkdir -p "$tree/.github/changelog"
printf 'One.\nTwo.\nThree.\nFour.\n' >"$tree/.github/changelog/added-all.md"
finds "the changelog has a file for each change"
mkdir -p "$tree/.github/changelog"
echo 'The whole of it is new.' >"$tree/.github/changelog/new.md"
finds "the changelog has a file for each change"
code src/format/part_format.c '/* a line more */\n'
finds "rooms keep to their budget"
printf 'int left;\n' >"$tree/src/order/left.c"
finds "rooms keep to their budget"
printf 'if\n' >"$tree/tokenize_tools/broken.sh"
finds "shell scripts parse"
if command -v ptxas >/dev/null 2>&1; then
    code src/common/wrong.ptx '.version 2.3\n.target sm_20\n.address_size 64\n.entry kernel() { nothing; }\n'
    finds "kernels are assembled for every GPU"
    code src/common/other.ptx "// $(nvcc --version | sed -n 's/.*, \(V[0-9.]*\).*/\1/p')\\n.version 2.3\\n.target sm_20\\n"
    finds "kernels are what make ptx makes"
fi

# Each rule has a fault above.
"${PYTHON:-python3}" "$lint" --list --without 'kernels *' | grep -Fxv -f "$TMPDIR/covered" |
    sed 's/^/not ok - no fault is planted for the rule: /' | tee "$TMPDIR/uncovered"
[ -s "$TMPDIR/uncovered" ] || echo "ok - each rule has a planted fault"

# `make lint` itself: it runs every rule, or those that RULES names. The rules are only listed, except a cheap one.
cd "$TOP" || exit 1
printf '#!/bin/sh\nexec %s "$@" --list\n' "${PYTHON:-python3}" >"$TMPDIR/listing"
chmod +x "$TMPDIR/listing"
# make_lint VARIABLE=VALUE...: `make lint` in the tree that the tests have built.
make_lint() {
    env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS -u RULES "${MAKE:-make}" -s --no-print-directory -o all lint \
        BUILD="$BUILD" CC="$CC" PYTHON="${PYTHON:-python3}" "$@" >"$TMPDIR/log" 2>&1
}
# reports NAME STATUS: whether a check has passed.
reports() {
    if [ "$2" = 0 ]; then echo "ok - $1"; else cat "$TMPDIR/log" && echo "not ok - $1"; fi
}
make_lint PYTHON="$TMPDIR/listing" && "${PYTHON:-python3}" "$lint" --list | cmp - "$TMPDIR/log"
reports "make lint runs every rule" $?
make_lint PYTHON="$TMPDIR/listing" RULES='no tabs in c*' && test "$(cat "$TMPDIR/log")" = 'no tabs in code'
reports "make lint RULES='PATTERN' runs the rules with such names" $?
make_lint RULES='no tabs in c*' && test "$(cat "$TMPDIR/log")" = 'ok no tabs in code
1 passed, 0 failed, 0 skipped'
reports "make lint reports what the chosen rule found" $?
! make_lint RULES='no such *' && grep -q "no rule matches 'no such \*'; --list prints" "$TMPDIR/log"
reports "make lint with a pattern that no rule has is an error that says so" $?
