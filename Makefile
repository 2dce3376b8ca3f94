# Every target sets up what it needs in a fresh clone; Python 3.11 or newer and make are all that must be there.
PYTHON ?= python3
BIN := .venv/bin
# Keeps freed memory: otherwise glibc returns every large tensor to the kernel, which takes a fifth of a step's time (benchmarks/freed.py).
KEEP_MEMORY := MALLOC_MMAP_THRESHOLD_=1073741824 MALLOC_TRIM_THRESHOLD_=1073741824
SETUP := pyproject.toml constraints.txt src/rkcnn/__init__.py
# Tests start many processes, each of which would compile the package anew if it could not keep its bytecode.
PYTEST := env -u PYTHONDONTWRITEBYTECODE OMP_NUM_THREADS=1 $(KEEP_MEMORY) $(BIN)/pytest -n 2 --dist worksteal

.PHONY: train models test test-shared test-gpu test-kernels test-timm test-weights fuzz bench-batches clean

train: .venv/used  ## train a network on real digits, in about two minutes on two cores
	$(BIN)/rkcnn train $(ARGS)

models: .venv/used  ## print every network of the paper with its cost
	$(BIN)/rkcnn models

bench-batches: .venv/used  ## augmented images per second, in batches and one by one
	$(BIN)/python benchmarks/batches.py

test: .venv/tested  ## lint, types and tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(PYTEST) $(ARGS)

test-shared: .venv/tested  ## the tests that need ../shared, which `make test` skips where it is missing
	$(PYTEST) -m shared $(ARGS)

test-gpu: .venv/tested  ## the tests that need a GPU
	$(BIN)/pytest -m gpu $(ARGS)

test-kernels: .venv/tested .venv/triton/triton  ## the fused kernels under Triton's interpreter, on the CPU
	OMP_NUM_THREADS=1 TRITON_INTERPRET=1 PYTHONPATH=.venv/triton $(BIN)/pytest tests/model/fast $(ARGS)

test-timm: .venv/tested .venv/timm/timm  ## the networks in timm, which `make test` skips
	OMP_NUM_THREADS=1 PYTHONPATH=.venv/timm $(BIN)/pytest tests/test_timm.py $(ARGS)

test-weights: .venv/used  ## the pretrained weights on all their test images, where the data sets are on this machine (minutes each on a CPU)
	$(BIN)/python -m rkcnn.use.pretrained.check $(ARGS)

MINUTES ?= 10
fuzz: .venv/tested  ## damage files at random for MINUTES=10 and see that every reader and command refuses them well; REPLAY=fuzz-kept/SEED
	OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python -m fuzz.campaign --minutes $(MINUTES) $(if $(REPLAY),--replay $(REPLAY)) $(ARGS)

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/used: $(SETUP) | .venv/bin/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $@

.venv/tested: $(SETUP) | .venv/bin/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[ray,hub,onnx,tensorboard,test]'
	touch .venv/used $@

.venv/triton/triton: | .venv/bin/python  # 640 MB; in a folder of its own, where torch and the other tests don't find it
	$(BIN)/python -m pip install --quiet --no-deps --target .venv/triton triton==3.6.0

.venv/timm/timm: | .venv/bin/python  # without dependencies: pip would replace torch, and the tests have all others
	$(BIN)/python -m pip install --quiet --no-deps --target .venv/timm timm==1.0.31 torchvision==0.28.0

clean:
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
