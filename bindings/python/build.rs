//! Systems whose linkers want every name at once are told that Python brings its own.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
