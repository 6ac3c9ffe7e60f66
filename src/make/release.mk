# SPDX-License-Identifier: MIT
# What a release consists of, and the check of all of it.

release_name := tokmap-$(VERSION)
dist_folder := $(BUILD)/dist
tarball := $(dist_folder)/$(release_name).tar.gz

.PHONY: dist sbom abi-dump release-check

# The files are those of the last commit with its time, so every clone and every day makes the same bytes. CHANGELOG.md
# is added for readers. REUSE looks for the text of the license in a folder LICENSES.
dist: ## pack the last commit as build/dist/tokmap-VERSION.tar.gz, with the sum of its bytes beside it
	$(Q)rm -rf $(dist_folder)/.github && mkdir -p $(dist_folder) && \
	  git archive --format=tar HEAD .github/changelog | tar -xf - -C $(dist_folder)
	$(Q)sh src/make/changelog.sh $(dist_folder)/.github/changelog >$(dist_folder)/CHANGELOG.md
	$(Q)git -c tar.umask=0022 archive --format=tar --prefix=$(release_name)/.github/ \
	  --add-file=$(dist_folder)/CHANGELOG.md --prefix=$(release_name)/ \
	  --add-virtual-file=$(release_name)/LICENSES/MIT.txt:"$$(cat LICENSE)" HEAD >$(tarball).tar
	$(Q)rm -rf $(dist_folder)/.github $(dist_folder)/CHANGELOG.md
	$(Q)gzip -9 -n <$(tarball).tar >$(tarball) && rm $(tarball).tar
	$(Q)cd $(dist_folder) && sha256sum $(notdir $(tarball)) >$(notdir $(tarball)).sha256
	@echo $(tarball)

sbom: wheel ## list what the wheel contains of others' code, and what it loads, as SPDX 2.3 in build/dist
	$(Q)mkdir -p $(dist_folder) && $(PYTHON) .github/packaging/sbom.py $(BUILD)/wheel >$(dist_folder)/new.spdx.json && \
	  mv $(dist_folder)/new.spdx.json $(dist_folder)/$(release_name).spdx.json
	@echo $(dist_folder)/$(release_name).spdx.json

abi-dump: lib ## store the interface of the libraries in .github/packaging/abi, when a release is made
	$(Q)BUILD='$(BUILD)' sh .github/packaging/abi.sh dump .github/packaging/abi

release-check: all ## check everything that a release consists of (half an hour on two processors)
	+@$(test_environment) TEST_SCRIPTS='tests/release/check_*.sh tests/release/test_*.sh' TESTS='release/*' \
	  TEST_JOBS=1 TEST_SECONDS=3600 sh tests/support/run_tests.sh
