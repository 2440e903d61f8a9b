# Every target makes the environment it needs; a fresh machine needs git, make and Python 3.11+ with venv.
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DOCS_READY := $(VENV)/.docs-ready
# A server with 154 packages of its own, beside ours and never among them.
PHOENIX := build/phoenix
PHOENIX_READY := $(PHOENIX)/.ready
# An MLflow tracking server (0.6 GB).
MLFLOW := build/mlflow
MLFLOW_READY := $(MLFLOW)/.ready
# ragas and other libraries that our numbers are compared with (0.9 GB).
PEERS := build/peers
PEERS_READY := $(PEERS)/.ready
# OpenInference's and OpenTelemetry's own instrumentations, in one process with ours.
BESIDE := build/beside
BESIDE_READY := $(BESIDE)/.ready
# LangChain's sdists with their unit tests, and what those need.
FRAMEWORKS := build/frameworks
FRAMEWORKS_READY := $(FRAMEWORKS)/.ready
# Node's OTLP exporters, as senders to `ragtrace serve`; where there is npm.
NODE := build/node
NODE_READY := $(if $(shell command -v npm),$(NODE)/.ready)
# Helm's renderer, checkov and hadolint.
DEPLOY := build/deploy
DEPLOY_READY := $(DEPLOY)/.ready
# Ray, Spark, Dask and an S3 API on loopback (1.6 GB).
ENGINES := build/engines
ENGINES_READY := $(ENGINES)/.ready
# The declared floors, and what resolves today: environments of their own for the integrations' tests.
LOWEST := build/lowest
LOWEST_READY := $(LOWEST)/.ready
NEWEST := build/newest
# The newest Python too, where it is found.
NEWEST_PYTHON ?= $(shell command -v python3.14 || echo $(PYTHON))
# What a version of OpenTelemetry's SDK can break.
SDK_TESTS := tests/unit/telemetry/setup tests/process/test_instances.py tests/e2e/test_chain.py
INTEGRATION_TESTS := integrations tests/regressions $(SDK_TESTS) $(wildcard tests/e2e/test_acceptance_*.py) \
  $(wildcard tests/conformance)
# LangChain's newest on opentelemetry-sdk 1.39, which others pin.
OLDER_SDK := build/older-sdk
OLDER_SDK_READY := $(OLDER_SDK)/.ready
OLDER_SDK_TESTS := $(SDK_TESTS) integrations/langchain tests/regressions/test_langchain.py \
  tests/e2e/test_acceptance_langchain.py $(wildcard tests/e2e/test_demo_chain_with_llm_judge.py)
# openai 2 at its floor, with LlamaIndex's own OpenAI package (0.3 GB).
OPENAI2 := build/openai2
OPENAI2_READY := $(OPENAI2)/.ready
OPENAI_TESTS := tests/unit/judges/openai tests/unit/judges/llm tests/unit/judges/test_registry.py tests/unit/judges/test_panel.py \
  tests/unit/service/test_limits.py tests/fuzz/test_judge_replies.py tests/guards/test_hostile_replies.py \
  tests/e2e/test_loop.py tests/e2e/test_demo_chain_with_llm_judge.py
# Two workers: more gain nothing on two cores and make subprocess tests slow.
WORKERS ?= 2
STACK := RAGTRACE_PACK=$${RAGTRACE_PACK:-$(CURDIR)/build/stack-pack} docker compose -f dashboards/stack/compose.yaml
PACKAGES := ragtrace integrations/langchain/ragtrace_langchain integrations/llamaindex/ragtrace_llamaindex dashboards/ragtrace_dashboards
# More for the pytest of `make test`.
ARGS ?=
# Of `make soak`; CI takes four.
MINUTES ?= 60
# Of `make fuzz`.
REQUESTS ?= 1000000

PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
# Hard links into uv's cache would be refused by nltk, which LlamaIndex reads its stop words with.
export UV_LINK_MODE := copy
# Without bytecode, each worker and each command that a test starts compiles every module anew.
unexport PYTHONDONTWRITEBYTECODE
# What goes into which environment: uv takes seconds, pip two minutes, but pip alone reads pip.conf. Bytecode of all
# modules, of which a test imports a few, costs pip as long as the rest of its work; uv writes none either.
install = $(BIN)/uv pip install --quiet --python $(1)/bin/python $(2) \
  || $(PIP) --python $(1)/bin/python install --no-compile $(2)
# An environment beside ours, made anew.
define environment
rm -rf $(1) && $(PYTHON) -m venv --without-pip $(1)
$(call install,$(1),$(2))
endef

.PHONY: api guards examples changelog coverage demo dashboards screenshots stack stack-pack stack-traffic stack-down test test-slow test-lowest test-newest test-openai2 test-older-sdk test-phoenix test-mlflow test-peers test-beside test-frameworks test-deploy test-engines environments check format wheel bench bench-alerts bench-cost bench-investigate bench-overhead fuzz soak docs tutorial links lock phoenix-screenshot pictures ui-screenshots clean help wheel-check licences sbom audit release vendor
help: ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(READY): requirements/dev.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "ragtrace needs Python 3.11 or later; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --constraint requirements/dev.lock uv
	$(call install,$(VENV),--requirement requirements/dev.lock)
	$(call install,$(VENV),--no-deps --no-build-isolation --editable .)
	@touch $@

$(DOCS_READY): $(READY) requirements/docs.lock
	$(call install,$(VENV),--requirement requirements/docs.lock)
	@touch $@

$(PHOENIX_READY): requirements/phoenix.lock | $(READY)
	$(call environment,$(PHOENIX),--requirement requirements/phoenix.lock)
	@touch $@

$(MLFLOW_READY): requirements/mlflow.lock | $(READY)
	$(call environment,$(MLFLOW),--requirement requirements/mlflow.lock)
	@touch $@

$(PEERS_READY): requirements/peers.lock | $(READY)
	$(call environment,$(PEERS),--requirement requirements/peers.lock)
	@touch $@

$(BESIDE_READY): requirements/beside.lock pyproject.toml | $(READY)
	$(call environment,$(BESIDE),--requirement requirements/beside.lock)
	$(call install,$(BESIDE),--no-deps --no-build-isolation --editable .)
	@touch $@

$(FRAMEWORKS_READY): requirements/frameworks.lock pyproject.toml | $(READY)
	$(call environment,$(FRAMEWORKS),--requirement requirements/frameworks.lock)
	$(call install,$(FRAMEWORKS),--no-deps --no-build-isolation --editable .)
	$(PIP) download --no-binary :all: --no-deps --no-build-isolation --dest $(FRAMEWORKS)/sdists \
	  $$(grep -E '^langchain(-core|-classic)?==' requirements/frameworks.lock)
	for sdist in $(FRAMEWORKS)/sdists/*.tar.gz; do tar -xzf $$sdist -C $(FRAMEWORKS)/sdists || exit 1; done
	@touch $@

$(NODE)/.ready: tests/beside/node/package-lock.json
	rm -rf $(NODE) && mkdir -p $(NODE) && cp tests/beside/node/package*.json $(NODE)
	cd $(NODE) && npm ci --silent
	@touch $@

$(DEPLOY_READY): requirements/deploy.lock | $(READY)
	$(call environment,$(DEPLOY),--requirement requirements/deploy.lock)
	@touch $@

$(ENGINES_READY): requirements/engines.lock pyproject.toml | $(READY)
	$(call environment,$(ENGINES),--requirement requirements/engines.lock)
	$(call install,$(ENGINES),--no-deps --no-build-isolation --editable .)
	@touch $@

$(LOWEST_READY): requirements/lowest.lock pyproject.toml | $(READY)
	$(call environment,$(LOWEST),--requirement requirements/lowest.lock)
	$(call install,$(LOWEST),--no-deps --no-build-isolation --editable .)
	@touch $@

$(OPENAI2_READY): requirements/openai2.lock pyproject.toml | $(READY)
	$(call environment,$(OPENAI2),--requirement requirements/openai2.lock)
	$(call install,$(OPENAI2),--no-deps --no-build-isolation --editable .)
	@touch $@

$(OLDER_SDK_READY): requirements/older-sdk.lock pyproject.toml | $(READY)
	$(call environment,$(OLDER_SDK),--requirement requirements/older-sdk.lock)
	$(call install,$(OLDER_SDK),--no-deps --no-build-isolation --editable .)
	@touch $@

environments: $(LOWEST_READY) $(OPENAI2_READY) $(OLDER_SDK_READY) $(PHOENIX_READY) $(MLFLOW_READY) $(BESIDE_READY) $(FRAMEWORKS_READY) $(NODE_READY) $(ENGINES_READY) $(PEERS_READY) $(DEPLOY_READY) ## all environments that tests install beside ours; --jobs 2 makes two at a time

demo: $(READY) ## 300 questions to a real chain, scored live; an incident half-way
	$(BIN)/ragtrace demo

test: $(READY) ## the tests of every day and every executed docstring (4 min)
	$(BIN)/python -m pytest -n $(WORKERS) -m "not slow" $(ARGS)
	$(BIN)/python -m pytest --doctest-modules --no-header -q -p no:cacheprovider $(PACKAGES)

test-slow: $(READY) ## the slow tests: kills, forks, servers, simulated months, real Prometheus
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadscope -m slow $(ARGS)

guards: $(READY) ## what holds while parts are rebuilt: applications, commands, kills, numbers, seen from outside (10 min)
	$(BIN)/python -m pytest -n $(WORKERS) tests/guards $(ARGS)

examples: $(READY) ## every example as its README says, and with a model on loopback (1 to 3 min)
	$(BIN)/python -m pytest -n $(WORKERS) tests/examples

coverage: $(READY) ## branch coverage of `make test`; fails under 90 %
	$(BIN)/python -m pytest -n $(WORKERS) -m "not slow" --cov --cov-report=term:skip-covered --cov-report=html $(ARGS)

test-phoenix: $(READY) $(PHOENIX_READY) ## what a real Phoenix shows of our spans and scores; offline
	PHOENIX_PYTHON=$(CURDIR)/$(PHOENIX)/bin/python $(BIN)/python -m pytest tests/phoenix -p no:xdist

test-mlflow: $(READY) $(MLFLOW_READY) ## what a real MLflow shows of our scores; offline
	MLFLOW_PYTHON=$(CURDIR)/$(MLFLOW)/bin/python $(BIN)/python -m pytest tests/mlflow -p no:xdist

test-peers: $(READY) $(PEERS_READY) ## our numbers beside ragas, rouge-score, ranx, trec_eval and others; offline
	PEERS_PYTHON=$(CURDIR)/$(PEERS)/bin/python $(BIN)/python -m pytest tests/peers -p no:xdist

test-beside: $(READY) $(BESIDE_READY) $(NODE_READY) ## ragtrace in one process with OpenInference and OTel GenAI, and behind Node and Rotel
	BESIDE_PYTHON=$(CURDIR)/$(BESIDE)/bin/python $(BIN)/python -m pytest -n $(WORKERS) tests/beside

test-frameworks: $(READY) $(FRAMEWORKS_READY) ## LangChain's own unit tests, plainly and with ragtrace switched on (4 min)
	FRAMEWORKS_PYTHON=$(CURDIR)/$(FRAMEWORKS)/bin/python $(BIN)/python -m pytest tests/frameworks -p no:xdist

test-deploy: $(READY) $(DEPLOY_READY) ## the Helm chart, the Collector's configuration and the image's recipe, under their linters
	DEPLOY_PYTHON=$(CURDIR)/$(DEPLOY)/bin/python $(BIN)/python -m pytest tests/deploy -p no:xdist

test-engines: $(READY) $(ENGINES_READY) ## files scored by real Ray, Spark and Dask on this machine, and over S3's API; offline
	ENGINES_PYTHON=$(CURDIR)/$(ENGINES)/bin/python $(BIN)/python -m pytest tests/engines -p no:xdist

test-lowest: $(LOWEST_READY) ## the integrations on the lowest versions that pyproject.toml declares
	$(LOWEST)/bin/python -m ragtrace.testing.versions
	NLTK_DATA=$$(echo $(CURDIR)/$(LOWEST)/lib/python3*/site-packages/llama_index/core/_static/nltk_cache) \
	  $(LOWEST)/bin/python -m pytest -n $(WORKERS) $(INTEGRATION_TESTS)

test-newest: PYTHON := $(NEWEST_PYTHON)
test-newest: $(READY) ## the integrations on the newest versions that resolve today, on python3.14 where it is found
	@echo "test-newest: $$($(PYTHON) --version), $(if $(findstring 3.14,$(PYTHON)),the newest,since there is no python3.14)"
	$(call environment,$(NEWEST),--requirement requirements/newest.in)
	$(NEWEST)/bin/python -m ragtrace.testing.versions
	$(NEWEST)/bin/python -m pytest -n $(WORKERS) $(INTEGRATION_TESTS)

test-older-sdk: $(OLDER_SDK_READY) ## LangChain's newest on opentelemetry-sdk 1.39, which google-adk and AWS's distribution bring (half a minute)
	$(OLDER_SDK)/bin/python -m ragtrace.testing.versions
	$(OLDER_SDK)/bin/python -m pytest -n $(WORKERS) $(OLDER_SDK_TESTS)

test-openai2: $(READY) $(OPENAI2_READY) ## LLM judges with the lowest openai, beside LlamaIndex's own OpenAI package
	$(BIN)/mypy --python-executable $(OPENAI2)/bin/python --cache-dir .mypy_cache/openai2 -p ragtrace.judges.openai
	FUZZ_REPLIES=4000 NLTK_DATA=$$(echo $(CURDIR)/$(OPENAI2)/lib/python3*/site-packages/llama_index/core/_static/nltk_cache) \
	  $(OPENAI2)/bin/python -m pytest -n $(WORKERS) $(OPENAI_TESTS)

check: $(READY) ## format, lint, types, layers, spelling
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy --config-file tests/mypy.ini
	$(BIN)/mypy --warn-unused-ignores tests/typing/api.py
	$(BIN)/pyright --pythonpath $(BIN)/python tests/typing/api.py
	$(BIN)/lint-imports
	$(BIN)/codespell -D- -D docs/words-to-avoid.txt

api: $(READY) ## public names and signatures that changed since a release: make api SINCE=v0.1.0
	@test -n "$(SINCE)" || { echo "api: give the release to compare with, for example SINCE=v0.1.0" >&2; exit 2; }
	$(BIN)/griffe check ragtrace --against $(SINCE)

changelog: $(READY) ## show what changes/ would add to CHANGELOG.md
	$(BIN)/towncrier build --draft --version next

format: $(READY) ## format and mend what the linter can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

wheel: $(READY) ## build the wheel into dist/
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .

wheel-check: wheel ## contents, size, metadata, licences and types of what is built
	$(BIN)/python -m scripts.wheel_check dist

licences: $(READY) ## licences of all dependencies, against the list and docs/reference/third-party.md
	$(BIN)/python -m scripts.licences

# The wheel with all extras, and the tools that read such an environment, apart from each other.
sbom: wheel ## CycloneDX list of the wheel and all its dependencies, in build/sbom.json
	$(call environment,build/shipped,--constraint requirements/dev.lock "$$(ls dist/*.whl)[all]")
	$(call environment,build/audit,cyclonedx-bom pip-audit)
	build/audit/bin/cyclonedx-py environment --output-reproducible --pyproject pyproject.toml --of JSON -o build/sbom.json build/shipped/bin/python

audit: $(READY) ## known vulnerabilities of what `make sbom` installed; "not run" without the database, ARGS=--required fails then
	$(BIN)/python -m scripts.audit $(ARGS)

release: $(READY) ## prepare a release in a clone, and tag it: make release VERSION=0.2.0; ARGS=--dry-run changes nothing
	@test -n "$(VERSION)" || { echo "release: give the version, for example VERSION=0.2.0" >&2; exit 2; }
	$(BIN)/python -m scripts.release $(VERSION) $(ARGS)

bench: $(READY) ## cost of capture, judge and set metrics, as ratios in one run
	$(BIN)/python -m benchmarks

bench-overhead: $(READY) ## what capture adds to a run, beside the peers in environments of their own (15 min); with AGAINST=COMMIT beside that commit, and its spans (3 min)
	$(BIN)/python -m benchmarks.overhead $(if $(AGAINST),--against $(AGAINST),--memory)

bench-alerts: $(READY) ## false alarms and delays of the drift alerts in every simulated world (10 min)
	$(BIN)/python -m benchmarks.alerts.worlds

bench-investigate: $(READY) ## falls of a known cause, and quiet months with a headline of `ragtrace investigate` in every simulated world (10 min)
	$(BIN)/python -m benchmarks.investigations.falls
	$(BIN)/python -m benchmarks.investigations.quiet

bench-cost: $(READY) ## calls and tokens of judging one sample, beside the figures of other systems
	$(BIN)/python -m benchmarks.judging.cost

fuzz: $(READY) ## a million fuzzed requests to the OTLP receiver (15 min); REQUESTS=N
	RAGTRACE_FUZZ_REQUESTS=$(REQUESTS) $(BIN)/python -m pytest -m slow -s tests/fuzz/test_receiver.py

soak: $(READY) ## an hour of 50 runs a second under faults: every run accounted for, no memory kept
	$(BIN)/python -m benchmarks.soak --minutes $(MINUTES)

tutorial: $(READY) ## do what docs/tutorial.md says, in a fresh environment (2 min); needs prometheus
	$(BIN)/python -m docs.tutorial

links: $(READY) ## list the external links of all pages
	@$(BIN)/python -m docs.build --links

docs: $(DOCS_READY) ## build the documentation into site/
	$(BIN)/python -m docs.build

# The scripts that `ragtrace ui` and `ragtrace report` ship, unchanged but for the name of a source map.
VENDOR := ragtrace/pages/static/vendor
HTMX_VERSION := 4.0.1
UPLOT_VERSION := 1.6.32
vendor: ## fetch the pages' scripts anew into ragtrace/pages/static/vendor; needs npm
	npm install --silent --no-save --ignore-scripts --prefix build/vendor htmx.org@$(HTMX_VERSION) uplot@$(UPLOT_VERSION)
	cd build/vendor/node_modules && cp htmx.org/dist/htmx.min.js uplot/dist/uPlot.iife.min.js uplot/dist/uPlot.min.css $(CURDIR)/$(VENDOR)
	sed -i '/^\/\/# sourceMappingURL/d' $(VENDOR)/htmx.min.js
	cp build/vendor/node_modules/htmx.org/LICENSE $(VENDOR)/htmx.LICENSE
	cp build/vendor/node_modules/uplot/LICENSE $(VENDOR)/uplot.LICENSE

dashboards: $(READY) ## write dashboards/ragtrace_dashboards/dist anew
	$(BIN)/python -m ragtrace_dashboards

stack: stack-pack ## Grafana with the boards, Prometheus, Tempo, Alertmanager and a Collector in containers
	$(STACK) up -d

stack-traffic: stack-pack ## the same, and questions to a chain for 50 minutes
	$(STACK) --profile traffic up -d

stack-pack: $(READY) ## write the pack of the stack, whose alerts link to its Grafana and its runbooks
	$(BIN)/ragtrace dashboards export build/stack-pack --grafana-url http://localhost:3000 --runbook-url http://localhost:8000/runbooks

stack-down: ## stop them; the data stays
	$(STACK) --profile traffic down

# Grafana's own components in headless Chromium over a month in a real Prometheus; npm brings 450 MB.
screenshots: $(READY) ## draw the boards into docs/images; needs node, npm, chromium and prometheus
	@for it in node npm chromium prometheus promtool; do \
	  command -v $$it > /dev/null || { echo "screenshots: $$it is not on this machine" >&2; exit 1; }; done
	cd dashboards/screenshots && npm ci
	$(BIN)/python -m dashboards.screenshots.render

ui-screenshots: $(READY) ## draw the pages of `ragtrace ui` into docs/images; needs chromium
	$(BIN)/python -m docs.pictures ui-screenshots

pictures: $(READY) ## draw the demo and the plots of the how-to pages into docs/images (90 s)
	$(BIN)/python -m docs.pictures pictures

phoenix-screenshot: $(READY) $(PHOENIX_READY) ## draw a run in a real Phoenix into docs/images; needs chromium
	PHOENIX_PYTHON=$(CURDIR)/$(PHOENIX)/bin/python $(BIN)/python -m docs.pictures phoenix-screenshot

lock: $(READY) ## resolve requirements/*.in anew
	rm -rf build/lock && $(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --quiet -r requirements/dev.in
	build/lock/bin/python -m pip freeze --exclude-editable --exclude ragtrace-otel | grep -v ' @ ' > requirements/dev.lock
	build/lock/bin/python -m pip install --quiet -r requirements/docs.in
	build/lock/bin/python -m pip freeze --exclude-editable --exclude ragtrace-otel | grep -v ' @ ' | grep -vxFf requirements/dev.lock > requirements/docs.lock
	rm -rf build/lock && $(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --quiet -r requirements/phoenix.in
	build/lock/bin/python -m pip freeze | grep -v ' @ ' > requirements/phoenix.lock
	$(BIN)/uv pip compile --quiet --no-header --no-annotate --no-emit-index-url requirements/lowest.in | grep -v ragtrace \
	  | grep -v '^[-.]' > requirements/lowest.lock
	$(BIN)/uv pip compile --quiet --no-header --no-annotate --no-emit-index-url requirements/older-sdk.in | grep -v ragtrace \
	  | grep -v '^[-.]' > requirements/older-sdk.lock

	$(BIN)/uv pip compile --quiet --no-header --no-annotate --no-emit-index-url requirements/openai2.in | grep -v ragtrace \
	  | grep -v '^[-.]' > requirements/openai2.lock
	$(BIN)/uv pip compile --quiet --no-header --no-annotate --no-emit-index-url requirements/mlflow.in > requirements/mlflow.lock
	$(BIN)/uv pip compile --quiet --no-header --no-annotate --no-emit-index-url requirements/peers.in > requirements/peers.lock
	$(BIN)/uv pip compile --quiet --no-header --no-annotate --no-emit-index-url -c requirements/dev.lock \
	  requirements/beside.in | grep -v ragtrace | grep -v '^[-.]' > requirements/beside.lock
	$(BIN)/uv pip compile --quiet --no-header --no-annotate --no-emit-index-url -c requirements/dev.lock \
	  requirements/frameworks.in | grep -v ragtrace | grep -v '^[-.]' > requirements/frameworks.lock
	$(BIN)/uv pip compile --quiet --no-header --no-annotate --no-emit-index-url requirements/deploy.in \
	  | grep -v '^[-.]' > requirements/deploy.lock
	$(BIN)/uv pip compile --quiet --no-header --no-annotate --no-emit-index-url requirements/engines.in | grep -v ragtrace \
	  | grep -v '^[-.]' > requirements/engines.lock
	rm -rf build/lock

clean: ## remove everything that the other targets made
	rm -rf $(VENV) build dist site htmlcov .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis
