"""The GPUs that the driver reports, and GPU memory for this package's own arrays."""
from __future__ import annotations

import os
from _thread import RLock
from ctypes import byref, c_void_p, sizeof

from . import _library as c
from ._library import check, lib
from .errors import NoDeviceError
from .records import NamedTuple

TYPE_CHECKING = False  # as in typing
if TYPE_CHECKING:
    from typing import Any, Callable

class Gpu(NamedTuple):
    """A GPU: its number, its name, its compute capability (major, minor), the nearest NUMA node (-1: unknown), and the
    bytes of its memory."""
    number: int
    name: str
    capability: tuple[int, int]
    numa_node: int
    memory: int


def gpus() -> list[Gpu]:
    """The GPUs that a loader can deliver to. The list is empty without a GPU or a usable driver; why a certain GPU
    cannot be used is in the NoDeviceError of a loader that is opened on it."""
    info, error, found = c.CudaInfo(sizeof(c.CudaInfo)), c.Error(), []
    try:
        check(lib.tokmap_cuda_probe(byref(info), byref(error)), error)
    except NoDeviceError:
        return []
    for number in range(info.devices):
        gpu = c.CudaDeviceInfo(sizeof(c.CudaDeviceInfo))
        check(lib.tokmap_cuda_device(number, byref(gpu), byref(error)), error)
        found.append(Gpu(number, gpu.name.decode("utf-8", "replace"), (gpu.capability_major, gpu.capability_minor),
                         gpu.numa_node, gpu.memory))
    return found


class Block:
    """GPU memory for one array. It returns to its pool when the last reference to it is gone."""
    __slots__ = ("address", "bytes", "stream", "shared", "pool", "process", "__weakref__")
    address: int
    bytes: int
    stream: int
    shared: bool
    pool: Pool
    process: int

    def __del__(self, process: Callable[[], int] = os.getpid) -> None:
        if getattr(self, "process", None) == process():
            self.pool._return(self)


class Pool:
    """Reusable memory on one GPU: allocating from the driver takes longer than a batch.

    A block is reused only for batches on the stream on which it was written, and only if it was not shared with another
    stream. The order of that stream then puts the next batch after the last use. All other blocks are freed, which
    waits for the GPU.
    """

    def __init__(self, device: str) -> None:
        self._device = device.encode()
        self._free: dict[tuple[int, int], list[int]] = {}
        self._lock = RLock()  # reentrant: garbage collection inside the lock may return a block
        self._closed = False

    def take(self, count: int, stream: int) -> Block:
        with self._lock:
            vacant = self._free.get((count, stream))
            address = vacant.pop() if vacant else None
        if address is None:
            memory, error = c_void_p(), c.Error()
            check(lib.tokmap_cuda_memory_new(self._device, count, byref(memory), byref(error)), error)
            address = memory.value or 0
        block = Block()
        block.address, block.bytes, block.stream, block.shared, block.pool = address, count, stream, False, self
        block.process = os.getpid()
        return block

    def _return(self, block: Block) -> None:
        with self._lock:
            if not block.shared and not self._closed:
                self._free.setdefault((block.bytes, block.stream), []).append(block.address)
                return
        self._release(block.stream, [block.address])

    def _release(self, stream: int, addresses: list[int], free: Any = lib.tokmap_cuda_memory_free,
                 synchronize: Any = lib.tokmap_cuda_stream_synchronize) -> None:
        # The default stream always exists. Another stream may have been destroyed; freeing then waits in the driver.
        if not stream:
            synchronize(self._device, None, None)
        for address in addresses:
            free(self._device, address)

    def close(self) -> None:
        """Frees the blocks that are not in use. A block in use is freed when its array is gone."""
        with self._lock:
            self._closed = True
            vacant, self._free = self._free, {}
        for (_, stream), addresses in vacant.items():
            self._release(stream, addresses)

    def __del__(self) -> None:
        self.close()
