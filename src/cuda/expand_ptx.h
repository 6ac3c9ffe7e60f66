/* SPDX-License-Identifier: MIT */
/* expand_ptx.h - the kernel tokmap_expand (expand.cu) as a driver takes it: compiled for some GPUs, and as PTX, which
 * the driver compiles for its GPU. */
#ifndef TOKMAP_CUDA_EXPAND_PTX_H
#define TOKMAP_CUDA_EXPAND_PTX_H

/* The text of expand.ptx, terminated by a zero byte. */
extern const char expand_ptx[];

/* The bytes of expand.fatbin: machine code for GPUs of capability 8, 9, and 10. Its header contains its size. */
extern const unsigned char expand_fatbin[];

#endif
