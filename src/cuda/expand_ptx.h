/* expand_ptx.h - the text of the kernel tokmap_expand of expand.cu, for a driver to compile. Zero-terminated. */
#ifndef TOKMAP_CUDA_EXPAND_PTX_H
#define TOKMAP_CUDA_EXPAND_PTX_H

extern const char expand_ptx[];

#endif
