# Two commands for a fresh machine: `make demo` shows the whole thing, `make test` passes the tests.

.PHONY: demo demo-web test test-crates test-programs nightly example key-transparency python web tools build

demo: build
	./target/release/privet demo

# The same as a page in a browser, with the client for the web.
demo-web:
	@./scripts/install-tools.sh --page
	./scripts/check-web.sh --build
	./scripts/check-demo.sh --build
	cargo build --release --locked --package privet --features page
	./target/release/privet demo --web

test:
	@./scripts/install-tools.sh --tests
	cargo test --workspace --locked --no-run --lib --bins --tests
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=line test-crates test-programs
	@echo "All tests passed."

# The tests within the crates compute, those of whole programs mostly wait: they run side by side.
# Without MAKEFLAGS, cargo does not look for a job server that make does not give it.
test-crates:
	MAKEFLAGS= cargo test --workspace --locked --quiet --lib
	MAKEFLAGS= cargo test --workspace --locked --quiet --doc

test-programs:
	MAKEFLAGS= RUST_TEST_THREADS=4 cargo test --workspace --locked --quiet --bins --test '*'

# Checks that take long, and seldom find a mistake that `make test` misses. Tests that toss coins
# toss ten times as many, and other ones every day: docs/security/tests.md says how small a leak
# shows. The simulator runs more lives, and more histories of tables are tried. The protocol's code
# is generated anew and compared. `make nightly SEED=2026-11-22` repeats a day's run.
SEED ?= $(shell date +%F)
SIMULATOR_SEEDS ?= 0..15000
nightly: tools
	@echo "coins of $(SEED); make nightly SEED=$(SEED) repeats this run"
	PRIVET_COINS=10 PRIVET_SEED=$(SEED) PRIVET_SIMULATOR_SEEDS=$(SIMULATOR_SEEDS) \
		cargo test --profile nightly --locked --lib \
		--package privet-core --package privet-schemes --package privet-laboratory --package privet-client
	PRIVET_HISTORIES=10 cargo test --locked --package privet --test cli -- history
	./scripts/generate-protocol.sh --check

# The Debian package index: built, served, and looked up from a second process. Needs Debian's apt.
example: tools
	cargo build --release --locked --package privet --package debian-packages
	examples/debian-packages/run.sh

# A directory of public keys on two servers, of which one may lie: lookups, epochs and attacks.
key-transparency: tools
	cargo build --release --locked --package privet --package key-transparency
	examples/key-transparency/run.sh

# The package for Python, built and tested. Needs Python 3.10 or later.
python:
	@./scripts/install-tools.sh --python
	./scripts/check-python.sh

# The client for pages and for Node, built and tested. Needs Node 20 or later.
web:
	@./scripts/install-tools.sh --web
	./scripts/check-web.sh
	./scripts/check-demo.sh

build: tools
	cargo build --release --locked --package privet

tools:
	@./scripts/install-tools.sh
