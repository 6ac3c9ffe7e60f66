# SPDX-License-Identifier: MIT
# What find_package(tokmap) of CMake reads. It is installed beside the files of pkg-config.

cmakedir ?= $(libdir)/cmake/tokmap

.PHONY: install-cmake uninstall-cmake
install: install-cmake
install-cmake:
	$(Q)$(INSTALL) -d '$(DESTDIR)$(cmakedir)'
	$(Q)for name in tokmap-config tokmap-config-version; do \
	  sed -e 's|@VERSION@|$(VERSION)|g' -e 's|@ABI@|$(patsubst libtokmap.so.%,%,$(SONAME))|g' \
	    -e 's|@libdir@|$(libdir)|g' -e 's|@includedir@|$(includedir)|g' -e 's|@tokmap_private@|zstd|g' \
	    -e 's|@tokenize_private@|$(if $(HAVE_PCRE2),pcre2-8)|g' src/make/$$name.cmake.in \
	    >'$(DESTDIR)$(cmakedir)'/$$name.cmake && chmod 644 '$(DESTDIR)$(cmakedir)'/$$name.cmake || exit 1; \
	done

uninstall: uninstall-cmake
uninstall-cmake:
	$(Q)rm -f '$(DESTDIR)$(cmakedir)'/tokmap-config.cmake '$(DESTDIR)$(cmakedir)'/tokmap-config-version.cmake
	$(Q)rmdir '$(DESTDIR)$(cmakedir)' 2>/dev/null || true
