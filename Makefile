# The two commands of the README. Both install what is missing first, so they work on a bare Debian 12.
BUILD := build/release
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local

.PHONY: demo test quick build build-as-user install wheel setup test-setup test-configure check clean

# Nothing but the command.
demo: setup
	cmake --preset release -DHEDDLE_TESTS=OFF
	cmake --build $(BUILD) -j $(JOBS) --target heddle
	@scripts/demo.sh $(BUILD)/heddle

# One test more than cores: some wait for processes or clocks.
test: test-configure check
	cmake --build $(BUILD) -j $(JOBS)
	ctest --test-dir $(BUILD) -j $$(($(JOBS) + 1)) --output-on-failure

# The tests that a change touches, some two minutes of them.
quick: test-configure check
	@scripts/quick.py --build $(BUILD) --jobs $(JOBS)

build: setup
	cmake --preset release -DHEDDLE_TESTS=OFF
	cmake --build $(BUILD) -j $(JOBS)

# Honours DESTDIR. Under sudo the one who called it builds: a build of root's could not be built again without it.
BUILDER := $(filter-out root,$(SUDO_USER))
install: $(if $(BUILDER),build-as-user,build)
	cmake --install $(BUILD) --prefix $(PREFIX)

build-as-user:
	@echo "building as $(BUILDER), installing as root"
	@sudo -H -u $(BUILDER) $(MAKE) --no-print-directory build JOBS=$(JOBS)

# In dist/, for any Linux on x86-64 with glibc 2.28; arguments of the script choose the Pythons.
wheel:
	@scripts/wheel.sh

setup:
	@scripts/setup.sh build

test-setup: setup
	@scripts/setup.sh test

test-configure: test-setup
	@cmake --preset release -DHEDDLE_TESTS=ON -DHEDDLE_PYTHON=$(CURDIR)/build/venv/bin/python \
		-DHEDDLE_TORCH_PYTHON=$(CURDIR)/build/venv-torch/bin/python -DHEDDLE_PYTHON_PACKAGE=ON >/dev/null

check:
	@python3 scripts/check_tree.py
	@python3 bench/report.py --check

clean:
	rm -rf build
