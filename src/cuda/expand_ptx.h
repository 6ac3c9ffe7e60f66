/* expand_ptx.h - the PTX of the kernel tokmap_expand (expand.cu), which the driver compiles for its GPU. */
#ifndef TOKMAP_CUDA_EXPAND_PTX_H
#define TOKMAP_CUDA_EXPAND_PTX_H

/* The text of expand.ptx, terminated by a zero byte. */
extern const char expand_ptx[];

#endif
