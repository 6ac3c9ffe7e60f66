#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""sbom.py FOLDER: prints, as SPDX 2.3 in JSON, what the wheel in FOLDER is made of. `make sbom` runs it.
sbom.py --check FILE...: checks such files against the fields that the specification requires.

The linker's maps in FOLDER (NAME.map, one per library or command) name each archive of which something was copied. The
package manager says which package an archive comes from, and its version. What the files load is in their dynamic
sections; libcurl is loaded at its first use.
"""
import glob
import hashlib
import json
import os
import re
import subprocess
import sys
import time
import zipfile

# Licenses of libraries that can be inside, as SPDX expressions, and what the expression of an unknown one is.
LICENSES = {"zstd": "BSD-3-Clause", "isal": "BSD-3-Clause", "pcre2-8": "BSD-3-Clause", "snappy": "BSD-3-Clause",
            "lz4": "BSD-2-Clause", "brotlidec": "MIT", "brotlicommon": "MIT", "bz2": "bzip2-1.0.6", "lzma": "0BSD",
            "xxhash": "BSD-2-Clause", "stdc++": "GPL-3.0-or-later WITH GCC-exception-3.1",
            "gcc": "GPL-3.0-or-later WITH GCC-exception-3.1", "gcc_eh": "GPL-3.0-or-later WITH GCC-exception-3.1",
            "c_nonshared": "LGPL-2.1-or-later"}
GLIBC = re.compile(r"(libc|libm|libpthread|libdl|librt)\.so\.|ld-linux")


def said(*command):
    """Returns what a command prints, or "" if it fails or is missing."""
    try:
        return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}).stdout
    except OSError:
        return ""


def archives(map_file):
    """Returns the paths of the archives of which the linker has copied something."""
    with open(map_file, encoding="utf-8", errors="replace") as file:
        included = file.read().split("\nMerging program properties")[0].split("\nMemory Configuration")[0]
    found = {os.path.realpath(path) for path in re.findall(r"^(/\S+\.a)\(", included, re.M)}
    own = os.path.realpath(os.path.join(os.path.dirname(map_file), ".."))
    return {path for path in found if not path.startswith(own) and not path.startswith(os.path.realpath("build"))}


def package_of(path):
    """Returns (name, version, home page) of the distribution's package that has a file, or None."""
    for name in (path, path.replace("/usr/lib/", "/lib/", 1)):
        owner = re.match(r"([^:,\s]+)", said("dpkg-query", "-S", name))
        if owner:
            version, home = said("dpkg-query", "-W", "-f", "${Version}\t${Homepage}\n", owner[1]).split("\n")[0].split("\t")
            return owner[1], version, home
    return None


def package(name, spdx_id, version="NOASSERTION", license="NOASSERTION", home="", purpose="LIBRARY", **more):
    said_license = {"licenseConcluded": license, "licenseDeclared": license, "copyrightText": "NOASSERTION"}
    return {"SPDXID": f"SPDXRef-{spdx_id}", "name": name, "versionInfo": version, "filesAnalyzed": False,
            "downloadLocation": home or "NOASSERTION", "supplier": "NOASSERTION", "primaryPackagePurpose": purpose,
            **said_license, **more}


def bundled(folder):
    """Returns the packages whose code is inside the wheel's files."""
    paths = set().union(*map(archives, glob.glob(os.path.join(folder, "*.map")) +
                             glob.glob(os.path.join(folder, "bin", "*.map"))))
    if not paths:
        sys.exit(f"sbom.py: no map of the linker in {folder} names an archive: run make wheel first")
    packages = {}
    for path in sorted(paths):
        name = re.sub(r"^lib|\.a$", "", os.path.basename(path))
        owner, version, home = package_of(path) or (None, "NOASSERTION", "")
        packages[name] = package(f"lib{name}", f"bundled-{clean(name)}", version, LICENSES.get(name, "NOASSERTION"),
                                 home, comment=f"copied by the linker from {os.path.basename(path)}" +
                                 (f" of the package {owner}" if owner else ""))
    for path in shared_inside(folder):
        name = re.sub(r"^lib|\.so.*", "", os.path.basename(path))
        owner, version, home = package_of(path) or (None, "NOASSERTION", "")
        packages[name] = package(f"lib{name}", f"bundled-{clean(name)}", version, LICENSES.get(name, "NOASSERTION"),
                                 home, comment=f"the file {os.path.basename(path)}" +
                                 (f" of the package {owner}" if owner else ""))
    if "xxhash" not in packages:  # its functions are in its header, which libtokmap includes
        owner, version, home = package_of("/usr/include/xxhash.h") or (None, "NOASSERTION", "")
        packages["xxhash"] = package("libxxhash", "bundled-xxhash", version, LICENSES["xxhash"], home,
                                     comment="compiled from xxhash.h")
    return list(packages.values())


def shared_inside(folder):
    """Returns the paths on this machine of the shared libraries that the wheel has copies of."""
    wheel, = glob.glob(os.path.join(folder, "*.whl"))
    with zipfile.ZipFile(wheel) as file:
        names = [os.path.basename(name) for name in file.namelist() if ".so." in name and "libtokmap" not in name]
    return [(glob.glob(f"/usr/lib/*/{name}") or glob.glob(f"/lib/*/{name}") or [name])[0] for name in sorted(names)]


def loaded(folder):
    """Returns the names of the shared libraries that the wheel's files need from the machine."""
    inside = {os.path.basename(path) for path in shared_inside(folder)}
    names = set()
    for path in glob.glob(os.path.join(folder, "*.so.*")) + glob.glob(os.path.join(folder, "bin", "*")):
        if not path.endswith(".map"):
            names |= set(re.findall(r"\(NEEDED\).*\[(.+)\]", said("readelf", "-W", "-d", path)))
    return sorted(name for name in names - inside if not name.startswith("libtokmap"))


def clean(name):
    return re.sub(r"[^A-Za-z0-9.-]", "-", name)


def document(folder):
    wheel, = glob.glob(os.path.join(folder, "*.whl"))
    with open(wheel, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    version = os.path.basename(wheel).split("-")[1]
    epoch = os.environ.get("SOURCE_DATE_EPOCH") or said("git", "log", "-1", "--format=%ct").strip() or "0"
    inside = bundled(folder)
    needed = [package("glibc", "loaded-glibc", license="LGPL-2.1-or-later",
                      comment="loaded from the machine: " + ", ".join(filter(GLIBC.search, loaded(folder))))]
    needed += [package(name, f"loaded-{clean(name)}", comment="loaded from the machine")
               for name in loaded(folder) if not GLIBC.search(name)]
    curl = package("libcurl", "loaded-libcurl", license="curl",
                   comment="loaded from the machine when an input is a URL: libcurl.so.4")
    root = package("tokmap", "tokmap", version, "MIT", purpose="APPLICATION", packageFileName=os.path.basename(wheel),
                   checksums=[{"algorithm": "SHA256", "checksumValue": digest}],
                   externalRefs=[{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                  "referenceLocator": f"pkg:pypi/tokmap@{version}"}])
    root["copyrightText"] = "2026 The tokmap authors"
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", root)]
    relations += [(root["SPDXID"], "CONTAINS", one) for one in inside]
    relations += [(root["SPDXID"], "DYNAMIC_LINK", one) for one in needed]
    lines = [{"spdxElementId": of, "relationshipType": type_, "relatedSpdxElement": one["SPDXID"]}
             for of, type_, one in relations]
    lines.append({"spdxElementId": curl["SPDXID"], "relationshipType": "OPTIONAL_DEPENDENCY_OF",
                  "relatedSpdxElement": root["SPDXID"]})
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
            "name": os.path.basename(wheel), "documentNamespace": f"https://spdx.org/spdxdocs/tokmap-{version}-{digest}",
            "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(epoch))),
                             "creators": ["Organization: The tokmap authors", f"Tool: tokmap-sbom-{version}"]},
            "packages": [root, *inside, *needed, curl], "relationships": lines}


def problems(found):
    """Returns what a document lacks of the fields that SPDX 2.3 requires (clauses 6, 7, and 11)."""
    bad = [f"no {name}" for name in ("SPDXID", "name", "documentNamespace", "packages", "relationships")
           if not found.get(name)]
    if found.get("spdxVersion") != "SPDX-2.3" or found.get("dataLicense") != "CC0-1.0":
        bad.append("spdxVersion or dataLicense")
    made = found.get("creationInfo", {})
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", made.get("created", "")) or not made.get("creators"):
        bad.append("creationInfo")
    ids = [found.get("SPDXID")] + [one.get("SPDXID") for one in found.get("packages", [])]
    bad += [f"id {one}" for one in ids if not re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", str(one)) or ids.count(one) > 1]
    for one in found.get("packages", []):
        bad += [f"{one.get('name')} has no {name}" for name in ("name", "downloadLocation") if not one.get(name)]
        if one.get("filesAnalyzed") is not False:
            bad.append(f"{one.get('name')}: filesAnalyzed without files")
    for line in found.get("relationships", []):
        bad += [f"{line} names no element" for name in ("spdxElementId", "relatedSpdxElement") if line[name] not in ids]
    if not any(line["relationshipType"] == "DESCRIBES" for line in found.get("relationships", [])):
        bad.append("nothing is described")
    return bad


if __name__ == "__main__":
    if sys.argv[1:2] == ["--check"] and len(sys.argv) > 2:
        wrong = []
        for name in sys.argv[2:]:
            with open(name, encoding="utf-8") as file:
                wrong += [f"{name}: {what}" for what in problems(json.load(file))]
        sys.exit("\n".join(wrong) or 0)
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(json.dumps(document(sys.argv[1]), indent=1))
