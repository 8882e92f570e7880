//! Says what builds the page of `privet demo --web`, if it is to be embedded and is not there.

fn main() -> Result<(), &'static str> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/web/demo/index.html.gz");
    let is_wanted = std::env::var_os("CARGO_FEATURE_PAGE").is_some();
    match is_wanted && !std::path::Path::new(page).exists() {
        true => Err("the page is not built: `make demo-web` builds it, and the program with it"),
        false => Ok(()),
    }
}
