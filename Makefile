# `make demo` and `make test` do everything themselves, from a fresh clone on.

# A compiler of torch's headers takes up to 2 GB: fewer jobs where memory is short.
JOBS ?= $(shell awk -v cpus="$$(nproc)" '/MemAvailable/ {n = int($$2 / 2097152); \
	n = n < 1 ? 1 : n; print n < cpus ? n : cpus}' /proc/meminfo)
CMAKE_FLAGS ?=
AAH := build/release/aah
SOURCES = $(shell git ls-files '*.cc' '*.h')

.PHONY: help demo test setup build format tidy clean

help:
	@echo "make demo    train a model with nine kinds of attention, compare them (minutes)"
	@echo "make test    build everything and run all tests"
	@echo "make setup   install what is needed: Debian packages, torch in .venv"
	@echo "make build   build build/release/aah"
	@echo "make format  clang-format all sources"
	@echo "make tidy    clang-tidy all sources"
	@echo "make clean   remove build/ (runs/, data/ and .venv stay)"

demo:
	@scripts/setup.sh demo
	@$(MAKE) --no-print-directory build
	@test -e data/kjv || $(AAH) data prepare kjv
	@$(AAH) suite recipes/demo.yaml

# Without the tests, whose libraries only `make test` installs, unless that was built here before.
build:
	@cmake --preset release $(CMAKE_FLAGS) \
	  $$(grep -qs '^AAH_BUILD_TESTS:BOOL=ON' build/release/CMakeCache.txt \
	     || echo -DAAH_BUILD_TESTS=OFF)
	@cmake --build --preset release --target aah -j $(JOBS)

# The golden tests in full: they print, per file, how many cases it holds and how many passed.
test:
	@scripts/setup.sh test
	@cmake --preset release -DAAH_BUILD_TESTS=ON $(CMAKE_FLAGS)
	@cmake --build --preset release -j $(JOBS)
	@ctest --preset release -LE golden
	@ctest --preset release -L golden --verbose

setup:
	@scripts/setup.sh test

format:
	@clang-format-19 -i $(SOURCES)

tidy:
	@scripts/tidy.sh

clean:
	rm -rf build
