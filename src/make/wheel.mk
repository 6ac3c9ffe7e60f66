# SPDX-License-Identifier: MIT
# The Python package.

.PHONY: wheel wheel-files
wheel: ## build the Python package, with the libraries and commands inside, as a wheel in build/wheel
	@BUILD='$(BUILD)' CC='$(CC)' AR='$(AR)' CFLAGS='$(CFLAGS)' CPPFLAGS='$(CPPFLAGS)' LDFLAGS='$(LDFLAGS)' \
	  LIBS='$(LIBS)' MAKE='$(MAKE)' $(PYTHON) src/python/build_backend.py '$(abspath $(BUILD))/wheel'

# For the Python package, which may be installed on other machines: the files are without debugging information, contain
# zstd, ISA-L, and PCRE2 where those are installed as archives, and call the oldest versions of glibc's functions
# (old_glibc.c explains how). Shared libraries that are left are searched for beside libtokmap, in the package.
wheel_files := $(addprefix $(BUILD)/wheel/,$(SONAME) $(TOKENIZE_SONAME) $(commands:$(BUILD)/%=%))
wheel_shared := $(if $(findstring /,$(shell $(CC) -print-file-name=libpthread.so.0 2>/dev/null)),$(if \
  $(filter x86_64% aarch64%,$(machine)),-Wl$(comma)--no-as-needed -l:libpthread.so.0 -l:libdl.so.2))
old_names := dlopen dlsym dlclose dlerror dlinfo pthread_create pthread_attr_setaffinity_np pthread_join \
  pthread_detach pthread_kill pthread_setname_np pthread_condattr_setclock pthread_sigmask pthread_once \
  pthread_key_create pthread_getspecific pthread_setspecific stat64 lstat64 fstat64 fstatat64 __isoc23_strtol \
  __isoc23_strtoll __isoc23_strtoul __isoc23_strtoull
old_objects := $(if $(wheel_shared),$(call objects,src/platform/old_glibc.c))
old_flags := $(if $(wheel_shared),$(addprefix -Wl$(comma)--wrap=,$(old_names)))
old_program_objects := $(if $(wheel_shared),$(old_objects) $(call objects,src/platform/old_glibc_program.c))
# libgcc_s.so.1 needs a newer glibc. The unwinder of libstdc++, which Snappy needs, is therefore linked from an archive.
old_program_flags := $(old_flags) $(if $(wheel_shared),-static-libgcc $(addprefix \
  -Wl$(comma)--wrap=,__libc_start_main __pthread_key_create pow exp log))
# Link-time optimization would lose the versions, which the assembler sets.
$(old_program_objects): private_flags := -fno-lto
archive = $(if $(findstring /,$(shell $(CC) -print-file-name=lib$(1).a)),-l:lib$(1).a,-l$(1))
# Debian 13's archive of LZ4 calls xxHash. An older one does not, and then nothing of xxHash is linked.
lz4_libs = -Wl,--push-state,--as-needed $(call archive,xxhash) -Wl,--pop-state
wheel_libs = -pthread $(call archive,zstd) $(1) $(wheel_shared) -ldl $(LIBS) -Wl,--as-needed -lm
wheel_tool_libs = $(call wheel_libs,$(if $(HAVE_ISAL),$(call archive,isal)) \
  $(if $(HAVE_PCRE2),$(call archive,pcre2-8)) \
  $(if $(HAVE_SNAPPY),$(call archive,snappy) $(call archive,stdc++)) $(if $(HAVE_LZ4),$(call archive,lz4) $(lz4_libs)) \
  $(if $(HAVE_BROTLI),$(call archive,brotlidec) $(call archive,brotlicommon)) \
  $(if $(HAVE_BZIP2),$(call archive,bz2)) $(if $(HAVE_XZ),$(call archive,lzma)))
# The map of the linker says which libraries are inside (make sbom).
beside = -Wl,-S,-rpath,'$$ORIGIN$(1)' -Wl,-Map,$@.map
# Its tables of libraries are those of the archives in lib/linked, and so the objects with other tables are left out.
$(BUILD)/wheel/$(SONAME): $(filter-out $(naming_objects),$(library_objects)) $(old_objects) $(linked_lib)/libtokmap.a \
  src/libtokmap.map $(linked_from)
	$(Q)mkdir -p $(@D) && $(link) $(so_flags) $(old_flags) $(call beside,) $(filter %.o,$^) $(filter %.a,$^) \
	  $(call wheel_libs,)
$(BUILD)/wheel/$(TOKENIZE_SONAME): $(filter-out $(naming_objects),$(tokenizer_objects)) $(old_objects) \
  $(linked_lib)/libtokmap_tokenize.a $(linked_lib)/libtokmap.a tokenize_tools/libtokmap_tokenize.map $(linked_from)
	$(Q)mkdir -p $(@D) && $(link) $(tokenizer_so_flags) $(old_flags) $(call beside,) $(filter %.o,$^) $(filter %.a,$^) \
	  $(wheel_tool_libs)
wheel-files: $(wheel_files)
$(BUILD)/wheel/bin/tokmap: $(OBJ)/tokenize_tools/tokmap.c.o
$(BUILD)/wheel/bin/tokmap-bench: $(bench_objects)
$(filter $(BUILD)/wheel/bin/%,$(wheel_files)): $(old_program_objects) $(linked_lib)/libtools.a \
  $(linked_lib)/libtokmap.a $(linked_from)
	$(Q)mkdir -p $(@D) && $(link_program) $(old_program_flags) $(call beside,/..) $(filter %.o,$^) $(filter %.a,$^) \
	  $(wheel_tool_libs)
