#!/bin/sh
# SPDX-License-Identifier: MIT
# test_mutants.sh: shows that the tests of the device path find the faults that they are meant to find. A mutant is a
# copy of one source file into which sed inserts one fault. The program test_device, linked with that copy, must fail in
# its first run and print words that belong to the fault. (For what only newer drivers have it is test_device_driver.) A
# sed pattern that no longer matches its source fails the test, too. Mutants are compiled without assertions, because it
# is the tests that must find the faults.
#
# Of every three mutants one is built, so that three commits may build all of them: the commit chooses which one.
# FAULT_COMMIT=NUMBER replaces it, FAULT_ALL=1 builds all mutants, and MUTANTS="NAME ..." only these. BUILD, CC,
# CPPFLAGS, CFLAGS, LDFLAGS and LIBS come from the Makefile.
set -u
BUILD=${BUILD:-build}
case $BUILD in /*) ;; *) BUILD=$(pwd)/$BUILD ;; esac
if [ -n "${SANITIZE:-}" ]; then
    echo "mutants are built without sanitizers"
    exit 77
fi
if [ ! -x "$BUILD/tests/test_device" ]; then
    echo "test_device has not been built: cmocka is missing"
    exit 77
fi
folder=$BUILD/tests/mutants
rm -rf "$folder"
mkdir -p "$folder/cuda_software" || exit 1
# test_device looks for the software driver in its own folder.
ln -s ../../cuda_software/libcuda.so.1 "$folder/cuda_software/libcuda.so.1" || exit 1
flags="-std=gnu11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -Iinclude -Isrc -Itests -pthread -fno-strict-aliasing -w ${CPPFLAGS:-} -O1"

for file in tests/unit/cuda/test_device tests/unit/cuda/test_device_driver tests/support/device_case \
    tests/support/software_driver tests/support/made tests/support/scratch src/platform/process_linux; do
    ${CC:-cc} $flags -c "$file.c" -o "$folder/$(basename "$file").o" || exit 1
done

# Which program a mutant is linked with: test_device, or test_device_driver, of which all tests run.
with=test_device
# link NAME OBJECT...
link() {
    output=$folder/$1
    shift
    ${CC:-cc} ${LDFLAGS:-} -o "$output" "$folder/$with.o" "$folder/device_case.o" "$folder/software_driver.o" \
        "$folder/made.o" "$folder/scratch.o" "$folder/process_linux.o" "$@" "$BUILD/lib/libtokmap.a" -pthread -lzstd -lcmocka -ldl ${LIBS:-} -lm
}

# The tests that find a fault however the threads are scheduled, because the device in them is as late as the calls
# allow. (The random tests find most of the faults, too, but only by chance.)
tests='a_device_may_be_as_late_as_the_calls_allow no_slot_is_filled_too_early a_capture_is_not_disturbed
    a_capturing_stream_is_refused closing_waits_for_what_is_under_way'
run() {
    failed=0
    : >"$folder/$1.log"
    if [ $with = test_device_driver ]; then
        CMOCKA_MESSAGE_OUTPUT=TAP timeout -k 5 300 "$folder/$1" >>"$folder/$1.log" 2>&1 </dev/null
        return $?
    fi
    for test in $tests; do
        CMOCKA_MESSAGE_OUTPUT=TAP timeout -k 5 300 "$folder/$1" "$test" >>"$folder/$1.log" 2>&1 </dev/null
        status=$?
        [ $status = 0 ] || failed=$status
    done
    ! grep -q '^1\.\.0' "$folder/$1.log" || failed=1 # a wrong test name would pass, with no tests
    return $failed
}

# try NAME SOURCE SED WORDS built|made: makes a mutant, or also builds and runs it; prints the result as one TAP line.
try() {
    name=$1 source=$2 change=$3 words=$4
    copy=$folder/$name.c
    sed -e "$change" "$source" >"$copy"
    if cmp -s "$copy" "$source"; then
        echo "not ok - $name: its pattern matches nothing in $source"
        return
    fi
    [ "$5" = built ] || { echo "ok - $name can be made" && return; }
    if ! ${CC:-cc} $flags -DNDEBUG -iquote "$(dirname "$source")" -c "$copy" -o "$folder/$name.o" 2>"$folder/$name.log" ||
        ! link "$name" "$folder/$name.o" 2>>"$folder/$name.log"; then
        echo "not ok - $name: the mutant does not build: $(head -n 3 "$folder/$name.log")"
        return
    fi
    run "$name"
    status=$?
    if [ $status = 0 ]; then
        echo "not ok - $name: the tests do not find it"
    elif [ $status = 124 ] || [ $status = 137 ]; then
        echo "not ok - $name: the tests hang instead of reporting the fault"
    elif ! grep -qE "$words" "$folder/$name.log"; then
        echo "not ok - $name: the tests fail, but for another reason: $(grep -E 'violation|^not ok|differs|alive' "$folder/$name.log" | head -n 3)"
    else
        echo "ok - $name"
        rm -f "$folder/$name"
    fi
}

# mutant NAME SOURCE SED WORDS: tries a mutant in the background, six at a time, because the tests mostly sleep. WORDS
# is a pattern for grep -E that must match the log.
started=0 number=0
commit=${FAULT_COMMIT:-$((0x$(git rev-parse --short=7 HEAD 2>/dev/null || echo 0)))}
mutant() {
    case " ${MUTANTS:-$1} " in *" $1 "*) ;; *) return ;; esac
    number=$((number + 1))
    if [ -z "${FAULT_ALL:-}${MUTANTS:-}" ] && [ $(((number + commit) % 3)) != 0 ]; then
        try "$@" made >"$folder/$1.result"
        return
    fi
    try "$@" built >"$folder/$1.result" &
    started=$((started + 1))
    [ $((started % 6)) != 0 ] || wait
}

link unchanged && run unchanged
status=$?
if [ $status = 0 ]; then
    echo "ok - the tests pass without a fault"
else
    echo "not ok - the tests fail without a fault, with status $status: $(tail -n 20 "$folder/unchanged.log")"
    exit 1
fi

cuda=src/cuda/backend_cuda.c
order='in no order'
# ---- the two races that the ring must prevent ----
mutant slot_refilled_before_its_copy_ended $cuda \
    's/result = cuda->device.driver->event_synchronize(cuda->copied\[slot\]);/result = 0;/' 'has changed between'
mutant twin_overwritten_before_it_was_expanded $cuda \
    's/: driver->stream_wait_event(cuda->stream, cuda->expanded\[slot\], 0);/: 0;/' "cuMemcpyHtoDAsync writes.*$order"
mutant twin_expanded_before_it_was_copied $cuda \
    's/return cuda->device.driver->stream_wait_event(stream, cuda->copied\[slot\], 0);/return 0;/' "tokmap_expand reads.*$order"
# ---- records and waits ----
mutant copy_not_recorded $cuda \
    's/result = driver->event_record(cuda->copied\[slot\], cuda->stream);/result = 0;/' "$order|has changed between"
mutant expansion_not_recorded $cuda \
    's/result = driver->event_record(cuda->expanded\[slot\], stream);/result = 0;/' "$order|still uses"
mutant expansion_recorded_too_early $cuda \
    's/result = order_after_copy(cuda, slot, stream);/&\n    (void)driver->event_record(cuda->expanded[slot], stream);/
     s/result = driver->event_record(cuda->expanded\[slot\], stream);/result = 0;/' "$order|still uses"
mutant expansion_recorded_on_another_stream $cuda \
    's/result = driver->event_record(cuda->expanded\[slot\], stream);/result = driver->event_record(cuda->expanded[slot], cuda->stream);/' \
    "$order|still uses"
mutant wait_for_another_slot $cuda \
    's/driver->stream_wait_event(cuda->stream, cuda->expanded\[slot\], 0)/driver->stream_wait_event(cuda->stream, cuda->expanded[cuda->expanded[(slot + 1) % cuda->slots] ? (slot + 1) % cuda->slots : slot], 0)/' \
    "$order"
# ---- contents ----
mutant copy_too_short $cuda \
    's/(uint8_t \*)cuda->slots_memory.memory + offset, bytes,/(uint8_t *)cuda->slots_memory.memory + offset, bytes - 1,/' \
    'nothing has written|differs'
mutant copy_from_another_slot $cuda \
    's/(uint8_t \*)cuda->slots_memory.memory + offset, bytes,/(uint8_t *)cuda->slots_memory.memory, bytes,/' \
    'has changed between|differs'
mutant ring_one_slot_too_many src/staging/ring.c \
    's/uint32_t goal = filled - ring->count + 1;/uint32_t goal = filled - ring->count;/' \
    'differs|too early|has changed|no order'
# ---- expansion on the host ----
mutant bounce_refilled_before_its_copy_ended $cuda \
    's/int result = driver->event_synchronize(bounce->sent);/int result = 0;/' 'has changed between'
mutant bounce_not_recorded $cuda \
    's/result = driver->event_record(bounce->sent, stream);/result = 0;/' 'has changed between|still uses'
# ---- CUDA graphs of the caller ----
mutant capture_disturbed_by_the_producer src/cuda/cuda_device.c 's/int mode = CUDA_CAPTURE_RELAXED;/int mode = 0;/' \
    'a_capture_is_not_disturbed'
mutant capture_taken_for_work $cuda 's/enum tokmap_status status = check_capture(cuda, stream, error);/enum tokmap_status status = TOKMAP_OK;/' \
    'a_capturing_stream_is_refused'
mutant capture_of_the_threads_own_stream_taken_for_work $cuda 's/if (!driver->stream_is_capturing)/if ((uintptr_t)stream == 2)/' \
    'a_capturing_stream_is_refused'
# ---- the end ----
mutant freed_before_the_copies_ended $cuda \
    's/^        drain(cuda);/        ;/' 'still uses'
mutant freed_before_the_expansions_ended $cuda \
    's/result = driver->stream_wait_event(cuda->stream, cuda->expanded\[i\], 0);/result = 0;/' 'still uses'
mutant events_leak $cuda \
    's/(void)driver->event_destroy(cuda->copied\[i\]);/;/' 'events'
mutant twins_leak $cuda 's/(void)driver->mem_free(cuda->twins);/;/' 'device memory that were not freed|device_allocations'
mutant stream_leaks $cuda 's/(void)driver->stream_destroy(cuda->stream);/;/' 'stream that was not destroyed|streams'
mutant module_leaks src/cuda/cuda_kernel.c 's/(void)entry->driver->module_unload(entry->module);/;/' 'modules'
mutant registration_leaks $cuda 's/(void)driver->host_unregister(pinned->memory);/;/' 'host_registrations'
mutant context_leaks $cuda 's/cuda_device_close(&cuda->device);/;/' 'contexts'
mutant event_used_after_its_end $cuda \
    's/(void)driver->event_destroy(cuda->copied\[i\]);/{ & (void)driver->event_synchronize(cuda->copied[i]); }/' 'event that was destroyed'
# ---- what newer drivers have, and what they do to a program that does not expect it (test_device_driver) ----
with=test_device_driver
link unchanged_driver && run unchanged_driver
status=$?
if [ $status = 0 ]; then
    echo "ok - test_device_driver passes without a fault"
else
    echo "not ok - test_device_driver fails without a fault, with status $status: $(tail -n 20 "$folder/unchanged_driver.log")"
    exit 1
fi
kernel=src/cuda/cuda_kernel.c
mutant module_for_each_loader $kernel \
    's/struct shared \*found = context ? find(device->driver, context, NULL) : NULL;/struct shared *found = NULL; context = 0;/' \
    'not ok .* loaders_share_one_module'
mutant machine_code_not_used $kernel 's/images\[\] = {expand_fatbin, expand_ptx}/images[] = {expand_ptx, expand_ptx}/' \
    'not ok .* the_driver_compiles_only_where_it_must'
mutant kernel_loaded_by_its_first_launch $kernel \
    's/driver->func_load ? driver->func_load(fresh->kernel.function) : launch_once(driver, fresh->kernel.function);/0;/' \
    'not ok .* the_first_batch_loads_nothing'
mutant blocks_not_asked_for $kernel 's/blocks < 1)/blocks < 1 || 1)/' 'not ok .* a_launch_fills_the_device'
mutant green_stream_not_known src/cuda/backend_cuda.c \
    's/int result = driver->stream_get_both_ctx ? /int result = 0 ? /' 'not ok .* streams_of_green_contexts_are_accepted'
mutant legacy_stream_not_asked $cuda 's/if (!driver->stream_is_capturing)/if ((uintptr_t)stream <= 1 || !driver->stream_is_capturing)/' \
    'not ok .* a_capture_keeps_off_the_legacy_stream'
mutant reset_not_noticed src/cuda/cuda_device.c 's/        return now == number;/        return true;/; s/return result != CUDA_CONTEXT_IS_DESTROYED .*/return true;/' \
    'not ok .* a_loader_survives_a_reset'
mutant what_a_reset_freed_is_freed_again src/cuda/cuda_public.c \
    's/\*exists = cuda_context_exists(.*;/*exists = true;/' 'not ok .* only_what_still_exists_is_freed'
mutant record_not_removed src/cuda/cuda_public.c 's/^        \*at = owned->next;/        ;/; s/^    free(owned);/    ;/' \
    'not ok .* only_what_still_exists_is_freed'
mutant newest_record_first src/cuda/cuda_public.c 's/while (\*last)/while (0)/; s/^    \*last = owned;/    owned->next = *last, *last = owned;/' \
    'not ok .* only_what_still_exists_is_freed'
mutant first_lookup_not_known src/cuda/cuda_driver.c 's/else if (get_before)/else if (0)/; s/(entries\[i\].need || !get))/0)/' \
    'not ok .* older_drivers_deliver'
mutant symbols_not_looked_for src/cuda/cuda_driver.c 's/if (!found \&\& (entries\[i\].need || !get))/if (!found \&\& get)/' \
    'not ok .* older_drivers_deliver'
mutant newer_function_of_an_older_driver src/cuda/cuda_driver.c 's/entries\[i\].version > driver->version)/0)/' \
    'not ok .* older_drivers_deliver'
mutant kernel_reads_at_an_odd_address $cuda \
    's/arguments.slot = cuda->twins + slot \* cuda->slot_bytes;/arguments.slot = cuda->twins + slot * cuda->slot_bytes + 4;/' \
    'not a multiple of the access|MISALIGNED|716'
mutant coherence_half_asked src/cuda/cuda_device.c 's/{CUDA_DEVICE_PAGEABLE_ACCESS, CUDA_DEVICE_HOST_PAGE_TABLES}/{CUDA_DEVICE_PAGEABLE_ACCESS, CUDA_DEVICE_PAGEABLE_ACCESS}/' \
    'not ok .* a_loader_reports_coherent_memory'

wait
cat "$folder"/*.result
! grep -q '^not ok' "$folder"/*.result
