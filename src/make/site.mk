# SPDX-License-Identifier: MIT
# The documentation as one static folder. It needs lowdown, which converts Markdown, and mandoc.
.PHONY: site

site: ## write the documentation as one static folder, build/site, to open in a browser
	$(Q)$(PYTHON) .github/site/site.py '$(BUILD)/site'
