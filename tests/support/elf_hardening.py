# SPDX-License-Identifier: MIT
"""elf_hardening.py [--fortified] FILE...: says what each ELF file lacks, and exits with 1 if one lacks something.

Looked at are the program headers, the dynamic section, and the names of the functions that the file calls: a stack
without code, no memory that is written and run, relocations that are read-only once the program starts (RELRO with all
functions bound), a program at an address that changes (PIE), checks of the stack, and, with --fortified, those of the
C library's calls (_FORTIFY_SOURCE).
"""
import struct, sys

PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_GNU_STACK, PT_GNU_RELRO = 1, 2, 3, 0x6474E551, 0x6474E552
DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_TEXTREL, DT_BIND_NOW, DT_FLAGS, DT_FLAGS_1 = 5, 6, 10, 22, 24, 30, 0x6FFFFFFB
ET_DYN, DF_BIND_NOW, DF_1_NOW, DF_1_PIE = 3, 8, 1, 0x08000000


def lacks(content, fortified=False):
    """What a file of 64-bit little-endian ELF lacks, as a list of texts."""
    if content[:6] != b"\x7fELF\x02\x01":
        return ["the form of a 64-bit little-endian ELF file"]
    kind, at, entry, count = struct.unpack_from("<H14xQ14xHH", content, 16)[0], *struct.unpack_from("<Q", content, 32), \
        *struct.unpack_from("<HH", content, 54)
    segments = []
    for i in range(count):
        type_, flags, offset, address, _, stored, _, _ = struct.unpack_from("<IIQQQQQQ", content, at + i * entry)
        segments.append((type_, flags, offset, address, stored))
    of_type = {segment[0]: segment for segment in segments}
    place = lambda address: next(offset + address - start for type_, _, offset, start, stored in segments
                                 if type_ == PT_LOAD and start <= address < start + stored)
    missing = []
    if PT_GNU_STACK not in of_type or of_type[PT_GNU_STACK][1] & 1:
        missing.append("a stack without code (-z noexecstack)")
    if any(type_ == PT_LOAD and flags & 3 == 3 for type_, flags, *_ in segments):
        missing.append("memory that is not both written and run")
    if PT_DYNAMIC not in of_type:
        return missing + ["a dynamic section"]
    _, _, offset, _, stored = of_type[PT_DYNAMIC]
    dynamic = dict(struct.unpack_from("<QQ", content, offset + i) for i in range(0, stored, 16))
    now = DT_BIND_NOW in dynamic or dynamic.get(DT_FLAGS, 0) & DF_BIND_NOW or dynamic.get(DT_FLAGS_1, 0) & DF_1_NOW
    if PT_GNU_RELRO not in of_type or not now:
        missing.append("full RELRO (-z relro -z now)")
    if DT_TEXTREL in dynamic:
        missing.append("code without relocations")
    if kind != ET_DYN or (PT_INTERP in of_type and not dynamic.get(DT_FLAGS_1, 0) & DF_1_PIE):
        missing.append("an address that changes (-pie)")
    # The symbols that another file defines have section 0. The table ends where the names begin, or at the first name
    # that is out of place.
    names, size, symbol, called = place(dynamic[DT_STRTAB]), dynamic[DT_STRSZ], place(dynamic[DT_SYMTAB]), set()
    while symbol + 24 <= len(content) and not names <= symbol < names + size:
        name, _, _, section = struct.unpack_from("<IBBH", content, symbol)
        if name >= size:
            break
        if section == 0:
            called.add(content[names + name:content.index(b"\0", names + name)].decode())
        symbol += 24
    if "__stack_chk_fail" not in called:
        missing.append("checks of the stack (-fstack-protector-strong)")
    if fortified and not any(name.startswith("__") and name.endswith("_chk") for name in called):
        missing.append("checks of the C library's calls (-D_FORTIFY_SOURCE=2)")
    return missing


def main(arguments):
    fortified = "--fortified" in arguments
    failed = False
    for path in arguments:
        if path == "--fortified":
            continue
        with open(path, "rb") as file:
            missing = lacks(file.read(), fortified)
        failed |= bool(missing)
        print(f"{'not ' if missing else ''}ok - {path.rsplit('/', 2)[-2]}/{path.rsplit('/', 1)[-1]} is hardened"
              + (": it lacks " + ", ".join(missing) if missing else ""))
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
