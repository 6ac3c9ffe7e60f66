# SPDX-License-Identifier: MIT
"""The data loader of llm.c, which is built from a checkout that the user names: its source is not part of tokmap."""
import ctypes
import io
import os
import shlex
import subprocess

from report import Absent
from systems import _common

NAME = "llmc"
PACKAGES = ["numpy"]
ORDERS = ("sequential", "own")
ROWS = {"llm.c": {}}
SHARD = 10 ** 8  # tokens of a file, as its own scripts write them
MAGIC, VERSION, HEADER = 20240520, 1, 256  # of files of 16-bit tokens; the header's length in 32-bit integers
FLAGS = ["-O3", "-march=native", "-w", "-shared", "-fPIC"]

# What llm.c's training program does with its loader, as functions that ctypes can call. A state is what that program
# saves: the place, and with shuffling both permutations and the generator.
GLUE = r"""
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "llmc/dataloader.h"

void *glue_open(const char *pattern, size_t rows, size_t length, int rank, int world, int shuffle) {
    DataLoader *loader = calloc(1, sizeof *loader);
    if (loader)
        dataloader_init(loader, pattern, rows, length, rank, world, shuffle);
    return loader;
}

void glue_next(DataLoader *loader) { dataloader_next_batch(loader); }
const int *glue_inputs(DataLoader *loader) { return loader->inputs; }
const int *glue_targets(DataLoader *loader) { return loader->targets; }

void glue_close(DataLoader *loader) {
    dataloader_free(loader);
    free(loader);
}

/* Copies size bytes between the place `at` of the state and the field, in one of both directions. */
static size_t move(unsigned char *state, size_t at, void *field, size_t size, int save) {
    if (state && save)
        memcpy(state + at, field, size);
    else if (state)
        memcpy(field, state + at, size);
    return at + size;
}

static size_t shuffled(DataLoader *loader, unsigned char *state, size_t at, int save) {
    if (!loader->should_shuffle)
        return at;
    at = move(state, at, loader->shard_indices, loader->glob_result.gl_pathc * sizeof *loader->shard_indices, save);
    at = move(state, at, loader->intra_shard_indices, loader->shard_num_samples * sizeof *loader->intra_shard_indices,
              save);
    return move(state, at, &loader->shuffle_rng, sizeof loader->shuffle_rng, save);
}

/* Writes the state, or returns its size if there is no room for it to be written to. */
size_t glue_save(DataLoader *loader, unsigned char *state) {
    uint64_t place[2] = {loader->current_shard_idx, loader->current_sample_idx};
    return shuffled(loader, state, move(state, 0, place, sizeof place, 1), 1);
}

/* Returns 0 if the state is not of this size with these files. */
int glue_resume(DataLoader *loader, unsigned char *state, size_t size) {
    uint64_t place[2];
    if (size < sizeof place || shuffled(loader, NULL, sizeof place, 0) != size)
        return 0;
    shuffled(loader, state, move(state, 0, place, sizeof place, 0), 0);
    dataloader_resume(loader, place[0], place[1]);
    return 1;
}
"""


def about():
    return (f"llm.c's dataloader.h from the checkout of --llmc, {' '.join(FLAGS[:2])}, called through ctypes; files of "
            "up to 10^8 tokens; int32, which is all it has; at the end of a file it drops the rows that fill no batch; "
            "its random order shuffles files, and batches inside a file, but not the rows of a batch")


def prepare(options, folder):
    """Builds the loader. Needs a C compiler: $CC or cc."""
    checkout = options.llmc
    if not checkout:
        raise Absent("its source is not part of tokmap; name a checkout of llm.c with --llmc FOLDER")
    if not os.path.exists(os.path.join(checkout, "llmc", "dataloader.h")):
        raise Absent(f"--llmc: {checkout} has no llmc/dataloader.h; name the top folder of a checkout of llm.c")
    os.makedirs(folder, exist_ok=True)
    source, library = os.path.join(folder, "glue.c"), os.path.join(folder, "glue.so")
    with io.open(source, "w", encoding="utf-8") as file:
        file.write(GLUE)
    command = [*shlex.split(os.environ.get("CC") or "cc"), *FLAGS, "-I", os.path.abspath(checkout), source, "-lm", "-o",
               library + ".new"]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              check=False)
    except OSError as problem:
        raise Absent(f"llm.c's loader cannot be built: {command[0]}: {problem.strerror}") from None
    if done.returncode:
        errors = [line for line in done.stdout.splitlines() if "error" in line] or ["the compiler failed"]
        raise Absent(f"llm.c's loader cannot be built: {errors[0]}")
    os.replace(library + ".new", library)
    return {"_library": library}


def convert(tokens, folder):
    def write(new):
        import numpy
        data = tokens.array()
        for number, first in enumerate(range(0, len(data), SHARD)):
            part = data[first:first + SHARD]
            header = numpy.zeros(HEADER, "<i4")
            header[:3] = MAGIC, VERSION, len(part)
            with io.open(os.path.join(new, f"tokens_{number:06}.bin"), "wb") as file:
                file.write(header.tobytes())
                part.tofile(file)
    if tokens.width != 2:
        raise Absent("llm.c's loader reads tokens of 2 bytes only")
    _common.convert(tokens, folder, write)


class Loader:
    def __init__(self, tokens, path, order, rank, world, resume, library):
        import numpy
        self._glue = glue = ctypes.CDLL(library)
        for name in ("glue_open", "glue_inputs", "glue_targets"):
            getattr(glue, name).restype = ctypes.c_void_p
        glue.glue_save.restype = ctypes.c_size_t
        pattern = os.path.join(path, "tokens_*.bin").encode()
        rows, length = ctypes.c_size_t(tokens.rows), ctypes.c_size_t(tokens.seq_len)
        self._loader = ctypes.c_void_p(glue.glue_open(pattern, rows, length, rank, world, int(order == "own")))
        if not self._loader:
            raise MemoryError
        if resume is not None and not glue.glue_resume(self._loader, resume, ctypes.c_size_t(len(resume))):
            raise ValueError("the state is one of other files")
        shape = (tokens.rows, tokens.seq_len)
        self._batch = tuple(numpy.ctypeslib.as_array(ctypes.cast(get(self._loader), ctypes.POINTER(ctypes.c_int32)),
                                                     shape) for get in (glue.glue_inputs, glue.glue_targets))
        self._next = glue.glue_next

    def next(self):
        self._next(self._loader)
        return self._batch

    def state(self):
        room = ctypes.create_string_buffer(self._glue.glue_save(self._loader, None))
        self._glue.glue_save(self._loader, room)
        return room.raw

    def close(self):
        if self._loader:
            self._batch = None
            self._glue.glue_close(self._loader)
        self._loader = None


def open(tokens, folder, *, order, rank=0, world=1, resume=None, _library=None):
    return Loader(tokens, _common.place(tokens, folder), order, rank, world, resume, _library)
