"""GPUs as the driver tells of them, and their memory for arrays of our own."""
from __future__ import annotations

import os
from collections import namedtuple
from _thread import RLock
from ctypes import byref, c_void_p, sizeof

from . import _library as c
from ._library import check, lib

Gpu = namedtuple("Gpu", "number name capability numa_node memory")
Gpu.__doc__ = """A GPU: its number, its name, its compute capability (major, minor), the NUMA node that it is nearest to (-1:
not told), the bytes of its memory."""


def gpus() -> list[Gpu]:
    """The GPUs that a loader can deliver to. Where there is none, or no usable driver, a NoDeviceError says why."""
    info, error, found = c.CudaInfo(sizeof(c.CudaInfo)), c.Error(), []
    check(lib.tokmap_cuda_probe(byref(info), byref(error)), error)
    for number in range(info.devices):
        one = c.CudaDeviceInfo(sizeof(c.CudaDeviceInfo))
        check(lib.tokmap_cuda_device(number, byref(one), byref(error)), error)
        found.append(Gpu(number, one.name.decode("utf-8", "replace"), (one.capability_major, one.capability_minor),
                         one.numa_node, one.memory))
    return found


class Block:
    """Memory on a GPU for one array. It goes back to its pool when nothing refers to it any more."""
    __slots__ = ("address", "bytes", "stream", "lent", "pool", "process", "__weakref__")

    def __del__(self, process=os.getpid):
        if self.pool is not None and self.process == process():
            self.pool._back(self)


class Pool:
    """Memory on one GPU that is used again: asking the driver for some takes longer than a batch does.

    A block is used again only for batches on the stream that it was written on, and only if it was not lent to another
    one: then the order of that stream keeps the next batch behind the last use. All other blocks are freed, which waits
    for the GPU.
    """

    def __init__(self, device: str):
        self._device = device.encode()
        self._free: dict = {}
        self._lock = RLock()  # re-entrant: a collection of garbage inside may bring a block back
        self._closed = False

    def take(self, count: int, stream: int) -> Block:
        with self._lock:
            vacant = self._free.get((count, stream))
            address = vacant.pop() if vacant else None
        if address is None:
            made, error = c_void_p(), c.Error()
            check(lib.tokmap_cuda_memory_new(self._device, count, byref(made), byref(error)), error)
            address = made.value
        block = Block()
        block.address, block.bytes, block.stream, block.lent, block.pool = address, count, stream, False, self
        block.process = os.getpid()
        return block

    def _back(self, block: Block) -> None:
        with self._lock:
            if not block.lent and not self._closed:
                self._free.setdefault((block.bytes, block.stream), []).append(block.address)
                return
        self._drop(block.stream, [block.address])

    def _drop(self, stream: int, addresses: list, free=lib.tokmap_cuda_memory_free,
              synchronize=lib.tokmap_cuda_stream_synchronize) -> None:
        # The default stream is there always; another one may be gone by now, and the driver waits for it by itself.
        if not stream:
            synchronize(self._device, None, None)
        for address in addresses:
            free(self._device, address)

    def close(self) -> None:
        """Frees what is not in use; what is in use is freed when its array goes."""
        with self._lock:
            self._closed = True
            vacant, self._free = self._free, {}
        for (_, stream), addresses in vacant.items():
            self._drop(stream, addresses)

    def __del__(self):
        self.close()
