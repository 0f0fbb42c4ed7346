# Everything runs in a virtual environment of its own, .venv; nothing else on the machine is touched.
#   make demo                 set up, build, train a small GPT to write fables (DEVICE=npu: on the emulator of an NPU)
#   make test                 set up, build, run all tests        (ORACLE=1: also against PyTorch 2.13.0;
#                             NPU=cann: on the machine's own NPUs instead of the emulator)
#   make test-uncompiled      the core tests on src/ as it is written, without mypyc
#   make test-sanitized       the emulator under its own tests; test-sanitized-native: the native module under the core tests
#                             (SANITIZER=address, with UBSan, or thread)
#   make torch-wheel          build/torch/: a distribution named `torch` that leads to this package (docs/programs.md)
#   make test-clients         libraries written for PyTorch, on this package (ORACLE=1: compared with PyTorch)
#   make test-suites          tests that libraries bring themselves, on this package (ORACLE=1: what fails, on PyTorch too)
#   make docs                 the documentation site, with the support matrix: build/docs/site/index.html
#   make parity               how much of PyTorch's own table of operators passes, and what does not
#   make bench-publish        measures everything and writes benchmarks/published.json and its picture
#   make format  lint  bench  bench-check  bench-generate  build  clean
PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python
PIP    := $(PY) -m pip --disable-pip-version-check --quiet
TESTS  ?= tests
CORE_TESTS ?= $(addprefix tests/mindtorch_v2/,api autograd bad_calls contract dispatch native nn optim rows tensor)

# The tests that need PyTorch fail instead of being skipped once it has been asked for.
ifeq ($(ORACLE),1)
ORACLE_STAMP := $(VENV)/.oracle
export MINDTORCH_REQUIRE_ORACLE := 1
endif

# Which libraries stand for `npu` (docs/npu.md); unset, the tests use the emulator.
ifdef NPU
export MINDTORCH_NPU := $(NPU)
endif

.PHONY: demo torch-wheel test test-clients test-suites test-uncompiled test-sanitized test-sanitized-native docs parity format lint bench bench-check bench-publish bench-generate build gloo native clean

# DEMO_ARGS: --trace, --steps 100, --text another.txt
DEVICE ?= cpu
demo: build
	$(PY) examples/demo.py --device $(DEVICE) $(DEMO_ARGS)

test: build $(VENV)/.tools $(ORACLE_STAMP)
	$(PY) -m pytest $(TESTS) $(PYTEST_ARGS)

test-uncompiled: native $(VENV)/.tools $(ORACLE_STAMP)
	PYTHONPATH=src $(PY) -m pytest $(CORE_TESTS) $(PYTEST_ARGS)

# Sanitised builds of the native module, under the core tests on the uncompiled sources, and of the emulator, under its
# own tests: SANITIZER=address (with UBSan), or thread (kernels and tensors used by several threads; streams and handles).
SANITIZER ?= address
SANITIZED := build/sanitized-$(SANITIZER)
SANITIZED_EMULATOR_address := tests/mindtorch_v2/emulator
SANITIZED_EMULATOR_thread := tests/mindtorch_v2/emulator/test_objects.py \
    $(wildcard tests/mindtorch_v2/emulator/test_runtime_*.py)
# No kernel runs in the tests of names and signatures.
SANITIZED_NATIVE_address ?= $(filter-out %/api,$(CORE_TESTS))
SANITIZED_NATIVE_thread ?= tests/mindtorch_v2/native/test_threads.py
PRELOAD_address := asan
PRELOAD_thread := tsan
# Python is not instrumented: its own faults are its own (the tests provoke some), and its memory is not looked for.
SANITIZER_OPTIONS := handle_segv=0:handle_abort=0
# alloc_dealloc_mismatch: arrays of the vendor's libraries are given back by libstdc++'s own operator delete[], found by
# its name, which AddressSanitizer sees as a plain delete.
ADDRESS_OPTIONS := $(SANITIZER_OPTIONS):detect_leaks=0:allocator_may_return_null=1:alloc_dealloc_mismatch=0
UNDER_SANITIZER = LD_PRELOAD="$$($(or $(CXX),g++) -print-file-name=lib$(PRELOAD_$(SANITIZER)).so) \
	    $$($(or $(CXX),g++) -print-file-name=libstdc++.so.6)" \
	ASAN_OPTIONS=$(ADDRESS_OPTIONS) \
	UBSAN_OPTIONS=print_stacktrace=1 \
	TSAN_OPTIONS=$(SANITIZER_OPTIONS):suppressions=tests/mindtorch_v2/emulator/tsan.supp
# --capture=sys: a report that ends the process is written past Python, and would be lost with pytest's own buffer.
test-sanitized: native $(VENV)/.tools $(ORACLE_STAMP)
	$(PY) csrc/ascend_emulator/build.py --sanitize $(SANITIZER) --out $(SANITIZED)
	$(UNDER_SANITIZER) MINDTORCH_EMULATOR_LIB=$(SANITIZED) PYTHONPATH=src \
	    $(PY) -m pytest --capture=sys $(SANITIZED_EMULATOR_$(SANITIZER)) $(PYTEST_ARGS)

# The native module's, under the core tests.
test-sanitized-native: native $(VENV)/.tools $(ORACLE_STAMP)
	MINDTORCH_COMPILE=0 MINDTORCH_SANITIZE=$(SANITIZER) $(PY) setup.py --quiet build \
	    --build-lib $(SANITIZED)/package --build-temp $(SANITIZED)/objects
	$(UNDER_SANITIZER) PYTHONMALLOC=malloc PYTHONPATH=$(SANITIZED)/package \
	    $(PY) -m pytest --capture=sys $(SANITIZED_NATIVE_$(SANITIZER)) $(PYTEST_ARGS)

# For environments without PyTorch: satisfies what requires `torch`, and depends on mindtorch_v2.
torch-wheel: $(VENV)/.build-tools
	@rm -rf build/torch
	@$(PY) -W ignore packaging/torch/setup.py --quiet egg_info --egg-base $(abspath build) \
	    build --build-base $(abspath build/torch/work) bdist_wheel --dist-dir $(abspath build/torch)
	@ls build/torch/*.whl

# Libraries as they are on the registry, in an environment of their own, without PyTorch. CLIENTS="einops peft": some.
CLIENTS_VENV := build/clients
.PHONY: clients-current
clients-current: build torch-wheel $(CLIENTS_VENV)/.installed
	@$(CLIENTS_VENV)/bin/python -m pip --disable-pip-version-check --quiet install --no-deps --force-reinstall \
	    build/wheel/*.whl build/torch/*.whl

test-clients: clients-current $(ORACLE_STAMP)
	$(PY) tests/clients/run.py --ours $(CLIENTS_VENV)/bin/python $(if $(ORACLE_STAMP),--oracle $(PY)) \
	    $(if $(CLIENTS),$(CLIENTS),--results build/clients.json)

# Their own tests, from their source distributions, in the same environment. SUITES="einops": some.
test-suites: clients-current $(ORACLE_STAMP)
	$(PY) tests/clients/suites.py --ours $(CLIENTS_VENV)/bin/python $(if $(ORACLE_STAMP),--oracle $(PY)) \
	    $(if $(SUITES),$(SUITES),--results build/suites.json)

# Tokens per second against PyTorch.
bench-generate: clients-current $(VENV)/.oracle
	$(PY) benchmarks/bench_generate.py --ours $(CLIENTS_VENV)/bin/python --oracle $(PY) $(BENCH_ARGS)

$(CLIENTS_VENV)/.installed: tests/clients/requirements.txt tests/clients/requirements_alone.txt | build torch-wheel
	@echo "installing the clients into $(CLIENTS_VENV)"
	@$(PYTHON) -m venv $(CLIENTS_VENV)
	@echo "torch==2.13.0+mindtorch" > $(CLIENTS_VENV)/constraints.txt
	@$(CLIENTS_VENV)/bin/python -m pip --disable-pip-version-check --quiet install \
	    -c $(CLIENTS_VENV)/constraints.txt build/wheel/*.whl build/torch/*.whl -r $<
	@$(CLIENTS_VENV)/bin/python -m pip --disable-pip-version-check --quiet install --no-deps \
	    -r tests/clients/requirements_alone.txt
	@touch $@

docs: native $(VENV)/.tools
	PYTHONPATH=src $(PY) docs/build.py

# The list of what fails is written to build/parity.txt; PARITY_ARGS="--names linalg" asks some.
parity: build $(VENV)/.oracle
	$(PY) -m tests.mindtorch_v2.parity.report $(PARITY_ARGS)

CXX_FOLDERS ?= csrc
CXX_FILES = $(shell find $(CXX_FOLDERS) -name '*.cpp' -o -name '*.h')
lint: $(VENV)/.tools
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	@echo "clang-format --dry-run"; $(VENV)/bin/clang-format --dry-run --Werror $(CXX_FILES)
	$(PY) -m mypy
	$(PY) -m mypy benchmarks
	$(PY) -m mypy tests

# Formats what the linters would find wrongly formatted.
format: $(VENV)/.tools
	$(PY) -m ruff check --fix-only .
	$(PY) -m ruff format .
	$(VENV)/bin/clang-format -i $(CXX_FILES)

bench: build $(VENV)/.oracle
	$(PY) benchmarks/bench_calls.py $(BENCH_ARGS)
	$(PY) benchmarks/bench_kernels.py $(filter --check,$(BENCH_ARGS))
	$(PY) benchmarks/bench_models.py $(filter --check,$(BENCH_ARGS))
	$(PY) benchmarks/bench_memory.py $(filter --check,$(BENCH_ARGS))
	$(PY) benchmarks/bench_npu.py $(filter --check,$(BENCH_ARGS))

# The figures and the picture that the site shows; on a machine that does nothing else.
bench-publish: build $(VENV)/.oracle
	$(PY) benchmarks/publish.py

# A few lines against limits that noise does not cross: half a minute, for CI.
bench-check: build $(VENV)/.oracle
	$(PY) benchmarks/bench_calls.py --short

# Installs the package, compiled, into .venv. Objects are kept in build/, so this is quick when little has changed, and
# nothing is done when the names and times of the sources are those of what is installed.
# Not by pip alone: it hides what the build says of its steps.
define SOURCES
import os
from pathlib import Path
made = {"__pycache__", "_emulator", "mindtorch_v2.egg-info"}
files = [Path("setup.py"), Path("pyproject.toml"), *Path("src").rglob("*"), *Path("csrc").rglob("*")]
print(os.environ.get("MINDTORCH_COMPILE"))
for path in sorted(files):
    if path.is_file() and path.suffix != ".so" and not made & set(path.parts):
        print(path, path.stat().st_mtime_ns)
endef
export SOURCES
build: $(VENV)/.build-tools
	@mkdir -p build; $(PY) -c "$$SOURCES" > build/sources.txt
	@if [ -e build/wheel/*.whl ] && cmp -s build/sources.txt $(VENV)/built.txt; then echo "mindtorch_v2 is built"; \
	else $(MAKE) --no-print-directory install; fi

.PHONY: install
install:
	@echo "building mindtorch_v2 (the first time takes a few minutes)"
	@rm -rf build/wheel $(VENV)/built.txt
	@$(PY) -W ignore setup.py --quiet bdist_wheel --compression stored --dist-dir build/wheel
	@$(PIP) install --no-deps --force-reinstall build/wheel/*.whl
	@$(PY) -m mindtorch_v2 emulator --prefix > /dev/null 2>&1 || true  # unpacks the headers of operators; Linux only
	@mv build/sources.txt $(VENV)/built.txt

# The Gloo library as an engine of the backend `gloo` (docs/distributed.md): needs libgloo-dev; prints where it is.
gloo:
	$(PY) csrc/gloo_engine/build.py

# Puts the native module alone into src/, which then runs uncompiled: PYTHONPATH=src .venv/bin/python
native: $(VENV)/.build-tools
	MINDTORCH_COMPILE=0 $(PY) setup.py --quiet build_ext --inplace

$(PY):
	$(PYTHON) -m venv $(VENV) || { echo "python3 needs its venv module: apt install python3-venv"; exit 1; }

# What pyproject.toml names: what building and running need, and what testing, linting and the site need.
define REQUIREMENTS
from setuptools.config.pyprojecttoml import load_file
from pathlib import Path
table = load_file("pyproject.toml")
extras = table["project"]["optional-dependencies"]
build = table["build-system"]["requires"] + table["project"]["dependencies"]
Path("$(VENV)/build.txt").write_text("\n".join(build))
Path("$(VENV)/tools.txt").write_text("\n".join(extras["test"] + extras["lint"] + extras["docs"]))
endef
export REQUIREMENTS

# --no-compile: Python compiles what is imported when it is imported, which is a small part of what is installed.
$(VENV)/.build-tools: pyproject.toml | $(PY)
	@echo "installing build tools and dependencies into $(VENV)"
	@$(PIP) install --upgrade setuptools
	@$(PY) -c "$$REQUIREMENTS"
	@$(PIP) install --no-compile -r $(VENV)/build.txt
	@touch $@

$(VENV)/.tools: $(VENV)/.build-tools
	@echo "installing test tools into $(VENV)"
	@$(PIP) install --no-compile -r $(VENV)/tools.txt
	@touch $@

$(VENV)/.oracle: $(VENV)/.tools
	@echo "installing PyTorch 2.13.0, the oracle of the parity tests"
	$(PIP) install torch==2.13.0
	@touch $@

clean:
	rm -rf $(VENV) build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src -name '*.so' -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
