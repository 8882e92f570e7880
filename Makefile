# Two commands for a fresh machine: `make demo` shows the whole thing, `make test` passes the tests.

.PHONY: demo test example tools build

demo: build
	./target/release/privet demo

test: tools
	cargo test --workspace --locked

# The Debian package index: built, served, and looked up from a second process. Needs Debian's apt.
example: build
	examples/debian-packages/run.sh

build: tools
	cargo build --release --locked --package privet --package debian-packages

tools:
	@./scripts/install-tools.sh
