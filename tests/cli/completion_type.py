# SPDX-License-Identifier: MIT
"""completion_type.py SHELL: types lines into an interactive shell and compares the words that the commands get.

The shell runs in a pseudo-terminal in the current folder, which has the script of `tokmap completion` as script.bash,
script.zsh, or script.fish and where an installed script is, from where the shells called *-installed load it. Each
line of completion.lines is typed, then Tab and Return.
"""
import os, pty, select, signal, sys, time

shell = sys.argv[1]
# The shell calls these in place of the commands: they print the words that they get, unless the shell asks for offers.
posix = """
show() { printf 'got'; printf '<%s>' "$@"; echo; }
tokmap() { if [ "$1" = --complete ]; then command tokmap "$@"; else show "$@"; fi; }
tokmap-bench() { if [ "$1" = --complete ]; then command tokmap-bench "$@"; else show "$@"; fi; }
"""
fish = """
function show; printf got; printf '<%s>' $argv; echo; end
function tokmap; if test "$argv[1]" = --complete; command tokmap $argv; else; show $argv; end; end
function tokmap-bench; if test "$argv[1]" = --complete; command tokmap-bench $argv; else; show $argv; end; end
function fish_prompt; echo 'READY> '; end
function fish_greeting; end
"""
start = {
    "bash": "PS1='READY> '\nbind 'set enable-bracketed-paste off'\n" + posix + "source ./script.bash\n",
    "bash-installed": "PS1='READY> '\nbind 'set enable-bracketed-paste off'\n" + posix
    + "BASH_COMPLETION_USER_DIR=bash-completion\nsource /usr/share/bash-completion/bash_completion\n",
    "zsh": "PS1='READY> '\nunsetopt zle_bracketed_paste\nautoload -Uz compinit\ncompinit -u -D\n" + posix
    + "source ./script.zsh\n",
    "zsh-installed": "PS1='READY> '\nunsetopt zle_bracketed_paste\nfpath=($PWD/site-functions $fpath)\n"
    + "autoload -Uz compinit\ncompinit -u -D\n" + posix,
    "fish": fish + "source ./script.fish\n",
    "fish-installed": fish + "set -p fish_complete_path $PWD/vendor\n",
}[shell]
program = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"],
           "fish": ["fish", "--no-config", "-i"]}[shell.split("-")[0]]
with open("start", "w") as file:
    file.write(start)

child, terminal = pty.fork()
if child == 0:
    os.environ.update(TERM="dumb" if shell != "fish" else "xterm", COLUMNS="200", LINES="50", LC_ALL="C.UTF-8")
    os.execvp(program[0], program)

received = ""

def read_until(wanted, seconds=15.0):
    """Returns what came before the text `wanted`, and drops both."""
    global received
    end = time.monotonic() + seconds
    while wanted not in received:
        left = end - time.monotonic()
        if left <= 0 or not select.select([terminal], [], [], left)[0]:
            raise SystemExit(f"{shell}: {wanted!r} did not come within {seconds:.0f} s; got {received!r}")
        received += os.read(terminal, 65536).decode(errors="replace")
    before, received = received.split(wanted, 1)
    return before

def write(text):
    os.write(terminal, text.encode())

write("source ./start; echo sour''ced\r")
read_until("sourced")
read_until("READY> ")
failed = 0
for line in open(os.path.join(os.environ["TOKMAP_CLI"], "completion.lines")):
    typed, wanted = line.rstrip("\n").split(" => ")
    # The words of a shell without offers are what was typed.
    write(typed + "\t")
    write("\r")
    read_until("got<")
    got = "<" + read_until("\n").rstrip("\r")
    read_until("READY> ")
    if shell.startswith("zsh"):  # it removes the slash of a folder when the line ends after it
        wanted = wanted.replace("/>", ">")
    if got != wanted:
        print(f"{shell}: {typed!r}: {got!r}, expected {wanted!r}")
        failed = 1
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
sys.exit(failed)
