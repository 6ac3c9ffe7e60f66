#!/bin/sh
# SPDX-License-Identifier: MIT
# jax-may-alias.sh: on a CPU, jax.device_put(x, may_alias=False) shares the memory of a NumPy array.
#
# jax and jaxlib 0.10.2, NumPy 2.4.6, CPU. The documentation says that device_put(may_alias=False) copies,
# from_dlpack(copy=True) too, and that jnp.asarray(copy=False) shares or fails. All three do the opposite: the first
# two share, and the last one copies without an error. make_array_from_process_local_data(), which makes a global
# batch of what each process loaded, shares as well. So a loader that fills one buffer again for each batch changes
# arrays that JAX calls immutable, even after block_until_ready(). It depends on the address: an array is shared if it
# begins at a multiple of 64 bytes, and copied otherwise. A file that is mapped begins there; small arrays of NumPy do
# so by chance, large ones do not, so a test with them may see nothing. jnp.array(x) and x.copy() are safe. Each line
# has the first value of the JAX array after x changed from 1 to 2. Output seen:
#
#   call                                  multiple of 64   64 k + 4
#   jnp.array(x)                                 1            1
#   jnp.asarray(x, copy=False)                   1            1
#   device_put(x)                                2            1
#   device_put(x, may_alias=False)               2            1
#   from_dlpack(x, copy=True)                    2            1
#   make_array_from_process_local_data           2            1
#   device_put(x.copy())                         1            1
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6

cat >"$work/try.py" <<'END'
import sys

import jax
import jax.numpy as jnp
import numpy as np

COUNT = 1024
buffer = np.zeros(COUNT + 32, np.int32)
border = -buffer.ctypes.data % 64 // 4
sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0])
calls = {
    "jnp.array(x)": (jnp.array, [1, 1]),
    "jnp.asarray(x, copy=False)": (lambda x: jnp.asarray(x, copy=False), [1, 1]),
    "device_put(x)": (jax.device_put, [2, 1]),
    "device_put(x, may_alias=False)": (lambda x: jax.device_put(x, may_alias=False), [2, 1]),
    "from_dlpack(x, copy=True)": (lambda x: jax.dlpack.from_dlpack(x, copy=True), [2, 1]),
    "make_array_from_process_local_data": (lambda x: jax.make_array_from_process_local_data(sharding, x), [2, 1]),
    "device_put(x.copy())": (lambda x: jax.device_put(x.copy()), [1, 1]),
}
changed = False
print(f"{'call':37} multiple of 64   64 k + 4")
for name, (call, expected) in calls.items():
    seen = []
    for begin in (border, border + 1):
        x = buffer[begin : begin + COUNT]
        x[:] = 1
        y = jax.block_until_ready(call(x))
        x[:] = 2
        seen.append(int(y[0]))
    print(f"{name:37} {seen[0]:8} {seen[1]:12}")
    changed |= seen != expected
sys.exit(changed)
END
JAX_PLATFORMS=cpu "$work/venv/bin/python" "$work/try.py"
