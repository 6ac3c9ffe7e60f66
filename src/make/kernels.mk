# SPDX-License-Identifier: MIT
# The kernels of the GPU: text and machine code that are part of the sources, and embedded in objects.

.PHONY: ptx
# The assembler embeds the kernels. Link-time optimization would lose them.
$(OBJ)/src/cuda/expand_ptx.c.o: src/cuda/expand.ptx src/cuda/expand.fatbin
$(OBJ)/bench/harness/gpu_kernels_ptx.c.o: bench/harness/gpu_kernels.ptx bench/harness/gpu_kernels.fatbin
$(OBJ)/src/cuda/expand_ptx.c.o $(OBJ)/bench/harness/gpu_kernels_ptx.c.o: private_flags := -fno-lto

# The code that CUDA 13 generates for its oldest target uses nothing newer than 64-bit addresses (PTX 2.3) and bit
# counts (sm_20). The heads of the files say so, and therefore every driver accepts them. A driver has to compile PTX
# for its GPU, which takes a while, so the kernels are also in fat binaries, compiled for the GPUs of data centers. Code
# for capability 8.0 runs on 8.x, code for 9.0 on 9.x, and code for 10.0 on 10.x. Where a CUDA toolkit is installed,
# tests/lint generates the files again and assembles them for every target of ptxas.
NVCC ?= nvcc
PTX_ROOT ?= .
kernels := src/cuda/expand bench/harness/gpu_kernels
fat_targets := 80 90 100
ptx: ## generate the PTX and the machine code of the GPU kernels again (needs nvcc of CUDA 13)
	$(Q)for kernel in $(kernels); do \
	  mkdir -p $(BUILD) '$(PTX_ROOT)'/$${kernel%/*} && \
	  $(NVCC) -ptx -arch=compute_75 -Isrc -o $(BUILD)/kernel.ptx $$kernel.cu && \
	  sed -e "1i // Made by \`make ptx\` from $$kernel.cu: do not edit." -e 's/^\.version .*/.version 2.3/' \
	    -e 's/^\.target .*/.target sm_20/' $(BUILD)/kernel.ptx >$(BUILD)/kernel.new && \
	  mv $(BUILD)/kernel.new '$(PTX_ROOT)'/$$kernel.ptx && \
	  $(NVCC) -fatbin -compress-mode=size -Xptxas -warn-spills -Isrc -o '$(PTX_ROOT)'/$$kernel.fatbin \
	    $(foreach target,$(fat_targets),-gencode=arch=compute_$(target)$(comma)code=sm_$(target)) $$kernel.cu || exit 1; \
	done
