# SPDX-License-Identifier: MIT
# What is built for tests, and the targets that check: test, lint, sanitizers, fuzzing, and torture.

.PHONY: units fuzzers harness deps test test-run test-gpu census measure demo demo-run lint asan ubsan tsan fuzz torture

# A test names the steps of .ci/run that run it, besides the step test, in a line near its beginning: "# ci: nonroot
# asan" in a script, and "/* ci: tsan */" in a unit test. In TESTS and UNITS, "@asan" stands for the tests with this tag.
tagged = $(or $(patsubst tests/%,%,$(patsubst tests/cli/%.sh,tests/cli/%,$(patsubst tests/unit/%.c,tests/%,$(shell \
  grep -lE '^(\#|/[*]) ci:.* $(1)( |$$)' tests/*/*.sh tests/unit/*/test_*.c)))),$(error no test has the tag @$(1)))
with_tags = $(foreach test,$(1),$(if $(filter @%,$(test)),$(call tagged,$(test:@%=%)),$(test)))
override TESTS := $(call with_tags,$(TESTS))
override UNITS := $(call with_tags,$(UNITS))

support_objects := $(call objects,$(sort $(wildcard tests/support/*.c)))
cuda_software_objects := $(call objects,$(sort $(wildcard tests/support/cuda_software/*.c)) \
  tests/support/expand_cu_host.c tests/support/gpu_kernels_host.c src/cuda/expand_ptx.c bench/harness/gpu_kernels_ptx.c)
cuda_software := $(BUILD)/tests/cuda_software/libcuda.so.1
unit_sources := $(if $(HAVE_CMOCKA),$(sort $(wildcard tests/unit/*/test_*.c)))
# With UNITS, a list of patterns such as test_ring*, only these unit tests are built. Of what is left out, as of the
# programs for torture, fuzzing, and comparisons, the compiler checks the sources only. With TESTS (run_tests.sh), what
# its patterns do not name is not built.
tested_units = $(wildcard tests/unit/$(1).c tests/unit/*/$(1).c)
chosen_units := $(filter $(if $(UNITS)$(TESTS),$(foreach \
  test,$(or $(UNITS),$(TESTS)),$(call tested_units,$(test))),%),$(unit_sources))
scripts_tested := $(if $(TESTS),$(foreach test,$(TESTS),$(if $(call tested_units,$(test:*%=)),,$(filter-out \
  cli/%,$(test)))),all)
unit_programs := $(patsubst %.c,$(BUILD)/tests/%,$(notdir $(chosen_units)))
fuzz_sources := $(sort $(wildcard tests/fuzz/fuzz_*.c))
fuzz_programs := $(patsubst tests/fuzz/%.c,$(BUILD)/tests/%,$(fuzz_sources))
user_programs := $(if $(wildcard src/loader/*.c),$(BUILD)/tests/consumer $(BUILD)/tests/fault_reader \
  $(BUILD)/tests/fault_writer $(BUILD)/tests/fault_values)
preloaded := $(patsubst %,$(BUILD)/tests/%.so,fast_clock inject record_calls)
reference_programs := $(patsubst tests/reference/%.c,$(BUILD)/tests/%,$(wildcard tests/reference/*.c))
torture_programs := $(patsubst tests/torture/%.c,$(BUILD)/tests/%,$(wildcard tests/torture/*.c))

units: $(unit_programs)
fuzzers: $(fuzz_programs)
other_sources := $(wildcard tests/fuzz/*.c tests/reference/*.c tests/torture/*.c)
# BENCH=no is for tests that do not run tokmap-bench, and leaves it out.
harness: $(if $(filter no,$(BENCH)),lib tools,all) units $(user_programs) $(preloaded) $(cuda_software) $(if $(UNITS), \
  $(patsubst %,$(OBJ)/%.checked,$(filter-out $(chosen_units),$(unit_sources)) $(other_sources)), \
  $(if $(scripts_tested),fuzzers $(reference_programs) $(torture_programs)))

$(OBJ)/%.c.checked: %.c
	$(Q)mkdir -p $(@D) && $(CC) $(c_flags) $(room_flags) -fsyntax-only -MF $@.d -MT $@ $< && touch $@

# Hundreds of programs for tests are linked from these archives, because the linker then copies only what each one uses.
# gold, where there is one, links them in half the time.
quick_linker := $(if $(findstring -fuse-ld,$(CFLAGS) $(LDFLAGS)),,$(if $(findstring \
  /,$(shell command -v $$($(CC) -print-prog-name=ld.gold 2>/dev/null))),-fuse-ld=gold))
support_archive := $(BUILD)/obj/support.a
$(support_archive): $(support_objects) $(linked_from)
	$(Q)mkdir -p $(@D) && rm -f $@ && $(AR) rcs $@ $(filter %.o,$^)
program_parts := $(BUILD)/lib/libtools.a $(BUILD)/lib/libtokmap.a $(linked_from)
define unit_program
$(BUILD)/tests/$(basename $(notdir $(1))): $(OBJ)/$(1).o
endef
$(foreach source,$(chosen_units),$(eval $(call unit_program,$(source))))
$(unit_programs): $(support_archive) $(program_parts)
	$(Q)mkdir -p $(@D) && $(link) $(quick_linker) $(filter %.o,$^) $(filter %.a,$^) -pthread $(test_libs) \
	  $(if $(HAVE_BROTLI),-lbrotlienc) -lcmocka $(LIBS) -lm
# Fuzzers are linked from an archive of their own, without the rooms that none of them calls: these take a third of the
# time in which all rooms are compiled with the sanitizers of a fuzzer.
unfuzzed := src/batch src/cli src/cuda src/loader src/staging tokenize_tools/commands tokenize_tools/packer/dedup \
  tokenize_tools/packer/encode tokenize_tools/packer/pack tokenize_tools/packer/shuffle tokenize_tools/train
fuzzed_archive := $(BUILD)/obj/fuzzed.a
$(fuzzed_archive): $(filter-out $(unfuzzed:%=$(OBJ)/%/%),$(tool_objects) $(library_objects) $(archived_objects)) \
  $(linked_from)
	$(Q)mkdir -p $(@D) && rm -f $@ && $(AR) rcs $@ $(filter %.o,$^)
# Without ENGINE (libFuzzer), a harness is linked with a driver that replays files and mutates them from a seed.
$(fuzz_programs): $(BUILD)/tests/%: $(OBJ)/tests/fuzz/%.c.o $(if $(ENGINE),,$(OBJ)/tests/fuzz/driver.c.o) \
  $(fuzzed_archive) $(linked_from)
	$(Q)mkdir -p $(@D) && $(link) $(ENGINE) $(filter %.o,$^) $(filter %.a,$^) -pthread $(test_libs) $(LIBS) -lm
$(reference_programs): $(BUILD)/tests/%: $(OBJ)/tests/reference/%.c.o $(program_parts)
	$(Q)mkdir -p $(@D) && $(link) $(filter %.o,$^) $(filter %.a,$^) -pthread $(test_libs) $(LIBS) -lm
$(torture_programs): $(BUILD)/tests/%: $(OBJ)/tests/torture/%.c.o $(BUILD)/lib/libtokmap.a $(linked_from)
	$(Q)mkdir -p $(@D) && $(link) $(filter %.o,$^) $(filter %.a,$^) -pthread $(lib_libs) $(LIBS)
# These libraries are preloaded into programs of any kind, so they are never built with a sanitizer.
$(preloaded): $(BUILD)/tests/%.so: tests/fault/%.c $(linked_from)
	$(Q)mkdir -p $(@D) && $(CC) -std=gnu11 -D_GNU_SOURCE $(warnings) $(CPPFLAGS) $(CFLAGS) -fPIC -shared \
	  -o $@ $< -ldl -pthread
# The emulated CUDA driver. Threads of its streams may still run at the end of a program, so it is never unloaded. It
# finds its own functions without their names, because a test removes names from a copy.
$(cuda_software): $(cuda_software_objects) $(linked_from)
	$(Q)mkdir -p $(@D) && $(link) -shared -Wl,-soname,libcuda.so.1 -Wl,-z,nodelete -Wl,-Bsymbolic \
	  $(if $(SANITIZE),,-Wl,-z,defs) $(filter %.o,$^) -pthread -lzstd
# The kernel as C notices accesses on which a GPU would fault (see the source).
$(OBJ)/tests/support/expand_cu_host.c.o: private_flags := $(if $(SANITIZE),-DEXPAND_SANITIZED,-fsanitize=alignment \
  -fsanitize-recover=alignment)
# Programs as users write them: they use only the public headers and the library.
$(BUILD)/tests/consumer: $(OBJ)/tests/support/demo/demo_consumer.c.o
$(BUILD)/tests/fault_reader: $(OBJ)/tests/fault/fault_reader.c.o
$(BUILD)/tests/fault_writer: $(OBJ)/tests/fault/fault_writer.c.o
$(BUILD)/tests/fault_values: $(OBJ)/tests/fault/fault_values.c.o
$(user_programs): $(BUILD)/lib/libtokmap.a $(linked_from)
	$(Q)mkdir -p $(@D) && $(link) $(filter %.o,$^) $(filter %.a,$^) -pthread $(lib_libs) $(LIBS)

# A sub-make uses every processor unless -j is given.
jobs = $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc 2>/dev/null || echo 2))
sub_make = $(MAKE) --no-print-directory $(jobs)
test_environment = BUILD='$(BUILD)' CC='$(CC)' CXX='$(CXX)' PYTHON='$(PYTHON)' MAKE='$(MAKE)' SANITIZE='$(SANITIZE)' \
  CPPFLAGS='$(CPPFLAGS)' CFLAGS='$(CFLAGS)' LDFLAGS='$(LDFLAGS)' LIBS='$(LIBS)'

deps: ## install with apt what building and testing need (without questions; does nothing if all of it is installed)
	@CC='$(CC)' CXX='$(CXX)' CPPFLAGS='$(CPPFLAGS)' BUILD='$(BUILD)' sh tests/support/deps.sh

test: ## run every test that needs no GPU (installs what is missing first)
	@CC='$(CC)' CXX='$(CXX)' CPPFLAGS='$(CPPFLAGS)' BUILD='$(BUILD)' sh tests/support/deps.sh
	+@$(sub_make) test-run
test-gpu: ## run the tests of the device path on a real GPU (in a built tree also: sh tests/gpu/test_gpu.sh)
	@CC='$(CC)' CXX='$(CXX)' CPPFLAGS='$(CPPFLAGS)' BUILD='$(BUILD)' sh tests/support/deps.sh gpu
	+@TOKMAP_TEST_GPU=1 $(sub_make) TESTS='gpu/*' test-run
test-run: harness
	@$(test_environment) TESTS='$(TESTS)' sh tests/support/run_tests.sh

census: all ## compare every tokenizer below FOLDER with its reference: make census FOLDER=folder [ONLY=pattern]
	@$(test_environment) FOLDER='$(FOLDER)' ONLY='$(ONLY)' sh tests/census/census.sh

measure: all ## measure every figure of bench/RESULTS.md and README.md and write them (about an hour on a quiet machine)
	@BUILD='$(BUILD)' PYTHON='$(PYTHON)' CC='$(CC)' bash bench/measure/measure.sh

demo: ## go from text found on this machine to batches and check every step (needs no root if it can be built)
	@CC='$(CC)' CXX='$(CXX)' CPPFLAGS='$(CPPFLAGS)' BUILD='$(BUILD)' sh tests/support/deps.sh build
	+@$(sub_make) demo-run
demo-run: all $(BUILD)/tests/consumer
	@$(test_environment) sh tests/support/demo.sh

lint: all ## check includes, circles, calls, symbols, names, and language (RULES='PATTERN' chooses rules by name)
	@$(test_environment) OBJ='$(OBJ)' $(PYTHON) tests/lint/lint.py $(if $(RULES),'$(RULES)')

asan: ## run the tests with the address and undefined behavior sanitizers
	+@$(sub_make) BUILD=$(BUILD)/asan SANITIZE=address,undefined test-run
ubsan: ## run the tests with the undefined behavior sanitizer alone
	+@$(sub_make) BUILD=$(BUILD)/ubsan SANITIZE=undefined test-run
# The commands that use threads. CI runs those with the tag alone.
TSAN_COMMANDS := cli/audit-* cli/bench-check cli/encode-flow cli/export-* cli/index-* cli/merge-* cli/pack-* \
  cli/plan-* cli/replay-* cli/run-* cli/train-* cli/verify-*
tsan: ## run the tests that use threads with the thread and undefined behavior sanitizers
	+@$(sub_make) BUILD=$(BUILD)/tsan SANITIZE=thread,undefined TESTS='$(or $(TESTS),@tsan $(TSAN_COMMANDS))' \
	  UNITS='$(if $(TESTS),,@tsan)' test-run

FUZZ_SECONDS ?= 60
fuzz: ## fuzz each reader for FUZZ_SECONDS (60; 0: only build) with libFuzzer, or with seeded mutation without clang
	+@CC='$(CC)' BUILD='$(BUILD)' FUZZ_SECONDS='$(FUZZ_SECONDS)' MAKE='$(MAKE) --no-print-directory' sh tests/fuzz/fuzz.sh

# SECONDS and SEED may also come from the environment, as TORTURE_SECONDS and TORTURE_SEED: a shell sets SECONDS itself.
torture: ## attack tokmap for SECONDS (3600) from SEED: hostile files, faults, kills, references (ONLY=name,...)
	+@$(sub_make) harness
	@$(test_environment) SECONDS_GIVEN='$(or $(TORTURE_SECONDS),$(if $(filter command%,$(origin SECONDS)),$(SECONDS)))' \
	  SEED='$(or $(TORTURE_SEED),$(SEED))' ONLY='$(ONLY)' sh tests/torture/run_torture.sh
