# SPDX-License-Identifier: MIT
"""The GPUs that the driver reports, and GPU memory for this package's own arrays."""
from __future__ import annotations

import os
from _thread import RLock
from ctypes import byref, c_void_p, sizeof
from operator import index

from . import _library as c
from ._library import check, lib
from .errors import ArgumentError, DeviceError
from .records import NamedTuple

TYPE_CHECKING = False  # as in typing
if TYPE_CHECKING:
    from typing import Any, Callable

    from .hints import Stream


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
    cannot be used is in the DeviceError of a loader that is opened on it."""
    info, error, found = c.CudaInfo(sizeof(c.CudaInfo)), c.Error(), []
    try:
        check(lib.tokmap_cuda_probe(byref(info), byref(error)), error)
    except DeviceError as problem:
        if problem.status == "ERROR_NO_DEVICE":
            return []
        raise
    for number in range(info.devices):
        gpu = c.CudaDeviceInfo(sizeof(c.CudaDeviceInfo))
        check(lib.tokmap_cuda_device(number, byref(gpu), byref(error)), error)
        found.append(Gpu(number, gpu.name.decode("utf-8", "replace"), (gpu.capability_major, gpu.capability_minor),
                         gpu.numa_node, gpu.memory))
    return found


def order(device: str, waiting: int, on: int) -> None:
    """Makes work that is enqueued on the stream `waiting` from now on run after what is enqueued on the stream `on`
    now. Waits for nothing. Raises an ArgumentError, without a trace on either, if that would spoil a capture."""
    error = c.Error()
    check(lib.tokmap_cuda_stream_wait(device.encode(), waiting or None, on or None, byref(error)), error)


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


#: The stream, in Pool._free, of blocks that nothing on the GPU uses any more: they are for any stream.
_IDLE = -1
#: When so many lent blocks, or so many bytes of them, have come back, the pool waits for the GPU once.
_LENT_BLOCKS, _LENT_BYTES = 32, 64 << 20


class Pool:
    """Reusable memory on one GPU: allocating from the driver takes longer than a batch, and freeing waits for the GPU.

    A block that comes back is in one of two places:

      free   It was used only on the stream on which it was written. It is reused for batches on that stream, whose
             order puts the next batch after the last use. The stream must certainly be the same one: a default stream,
             or one that the pool keeps alive (keep()). The handle of a stream that was destroyed can come back as that
             of a new one, which is in no order with the old one.
      lent   It was shared with another stream, so when its last use ends is unknown: JAX returns arrays while its
             computation still reads them. It waits until 32 blocks or 64 MiB are lent. Then the pool waits for the
             whole GPU once, and all of them are free, for any stream.

        32 arrays for JAX: written, lent, returned                                   lent: 32, allocated: 32
        the 33rd: one wait for the GPU, which leaves 31 free blocks and this one     lent:  0, allocated: 32
        the 65th waits again, and so on: no block is allocated or freed any more

    To wait for the GPU, the pool frees one byte, which it keeps for that. cuMemFree() waits for all work on the GPU,
    and a thread in relaxed mode may call it while other threads capture graphs. cuCtxSynchronize() would wait, too, but
    spoils every capture in the context, whatever its mode: XLA and torch.compile capture at any time.
    """

    def __init__(self, device: str) -> None:
        self._device = device.encode()
        self._free: dict[tuple[int, int], list[int]] = {}  # addresses, by bytes and stream
        self._lent: list[tuple[int, int]] = []             # bytes and addresses
        self._kept: dict[int, object] = {}                 # streams by their handles
        self._byte = 0                                     # the address of the byte for the next wait
        self._lock = RLock()  # reentrant: garbage collection inside the lock may return a block
        self._closed = False
        self._process = os.getpid()

    def keep(self, handle: int, stream: object) -> None:
        """Keeps an object alive that owns the stream with that handle, until the pool is closed. So no other stream
        gets the handle, and later objects with it are of the same stream."""
        self._kept.setdefault(handle, stream)

    def _lasts(self, stream: int) -> bool:
        return stream <= 2 or stream in self._kept

    def take(self, count: int, stream: int) -> Block:
        with self._lock:
            address = self._vacant(count, stream)
            if address is None and (len(self._lent) >= _LENT_BLOCKS or
                                    sum(block[0] for block in self._lent) >= _LENT_BYTES):
                self._settle()
                address = self._vacant(count, stream)
        if address is None:
            try:
                address = self._new(count)
            except MemoryError:
                self._empty()
                address = self._new(count)
            self._reserve()
        block = Block()
        block.address, block.bytes, block.stream, block.shared, block.pool = address, count, stream, False, self
        block.process = os.getpid()
        return block

    def _vacant(self, count: int, stream: int) -> int | None:
        for key in (count, stream), (count, _IDLE):
            vacant = self._free.get(key)
            if vacant:
                return vacant.pop()
        return None

    def _new(self, count: int) -> int:
        memory, error = c_void_p(), c.Error()
        check(lib.tokmap_cuda_memory_new(self._device, count, byref(memory), byref(error)), error)
        return memory.value or 0

    def _reserve(self) -> None:
        """Allocates the byte for the next wait: later there may be no memory for it."""
        with self._lock:
            if not self._byte:
                try:
                    self._byte = self._new(1)
                except MemoryError:
                    pass

    def _return(self, block: Block) -> None:
        with self._lock:
            if not self._closed:
                if block.shared or not self._lasts(block.stream):
                    self._lent.append((block.bytes, block.address))
                else:
                    self._free.setdefault((block.bytes, block.stream), []).append(block.address)
                return
        self._release([block.address])

    def _settle(self) -> None:
        """Waits for the GPU, and frees the lent blocks for all streams."""
        lent, self._lent = self._lent, []  # what a collection of garbage returns from here on stays lent
        try:
            self._wait()
        except BaseException:
            self._lent += lent
            raise
        for count, address in lent:
            self._free.setdefault((count, _IDLE), []).append(address)

    def _wait(self, free: Any = lib.tokmap_cuda_memory_free) -> None:
        byte, self._byte = self._byte or self._new(1), 0
        free(self._device, byte)

    def _empty(self) -> None:
        """Returns all blocks that are not in use to the driver."""
        with self._lock:
            vacant, self._free = self._free, {}
            lent, self._lent = self._lent, []
        self._release([address for addresses in vacant.values() for address in addresses] +
                      [address for _, address in lent])

    def _release(self, addresses: list[int], free: Any = lib.tokmap_cuda_memory_free) -> None:
        if not addresses and not self._byte:
            return
        try:
            self._wait()
        except Exception:  # no memory, or no device any more: the driver waits for each block, or has freed them all
            pass
        for address in addresses:
            free(self._device, address)

    def close(self, process: Callable[[], int] = os.getpid) -> None:
        """Frees the blocks that are not in use. A block in use is freed when its array is gone."""
        if process() != self._process:
            return  # a child after fork() has no GPU, and another thread of the parent may have had the lock
        self._closed = True
        self._empty()
        self._kept = {}

    def __del__(self) -> None:
        self.close()


# ---- streams as the caller passes them: numbers, and the objects of torch, CuPy, Numba, and cuda.core ----

def _member(stream: Any) -> Any:
    """What a stream object says about its handle, which is the address of the driver's stream: 0 and 1 are the legacy
    default stream, and 2 is the default stream of the thread."""
    for name in ("cuda_stream", "ptr"):  # torch; CuPy
        found = getattr(stream, name, None)
        if found is not None:
            return found
    protocol: Any = getattr(stream, "__cuda_stream__", None)  # (version, handle); at first a property
    if protocol is not None:
        said: Any = protocol() if callable(protocol) else protocol
        return said[1]
    found = getattr(stream, "handle", None)  # Numba, where its value is None for the default stream
    return stream if found is None else (found.value or 0) if hasattr(found, "value") else found


def stream_handle(stream: Stream) -> int:
    """The handle of a CUDA stream, given as a number or as an object that has one: of torch, CuPy, Numba, cuda.core, or
    cuda.bindings, or any with __cuda_stream__."""
    handle = None
    try:
        found = _member(stream)
        # A CUstream of cuda.bindings has int(), but no index. Numbers with fractions have as_integer_ratio().
        handle = int(found) if hasattr(found, "__int__") and not hasattr(found, "as_integer_ratio") else index(found)
    except (TypeError, ValueError, IndexError, KeyError):
        pass
    if handle is None or isinstance(stream, bool) or not 0 <= handle < 2 ** 64:
        raise ArgumentError(f"stream is {stream!r}: pass a CUDA stream, or its handle as a number")
    return handle


def owns(stream: Stream) -> bool:
    """Whether the object certainly owns its stream, which then lives as long as the object: the class Stream of torch
    and CuPy, unless it was made for a stream that something else owns. Such a stream has its handle as its stream_id in
    torch (get_stream_from_external()), and refers to the other object in CuPy (from_external()). A handle as a number
    owns nothing, and neither does an ExternalStream."""
    kind: Any = type(stream)
    if kind.__name__ != "Stream":
        return False
    framework, found = kind.__module__.split(".")[0], stream
    if framework == "torch":
        return bool(getattr(found, "stream_id", stream_handle(found)) != stream_handle(found))
    other = getattr(found, "_foreign_stream_ref", None)
    return framework == "cupy" and (other is None or owns(other))
