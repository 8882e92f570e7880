//! Writes the JavaScript around the WebAssembly of Privet for the web.
//!
//! `privet-web-glue MODULE FOLDER` reads what the compiler made of the crate `privet-web`, and
//! writes the module and its glue to a folder.

use std::process::ExitCode;
use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [module, folder] = arguments.as_slice() else {
        eprintln!("usage: privet-web-glue MODULE FOLDER");
        return ExitCode::FAILURE;
    };
    let mut glue = Bindgen::new();
    let written = glue.input_path(module).out_name("privet").typescript(true).web(true);
    match written.and_then(|glue| glue.generate(folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{module}: {error:#}");
            ExitCode::FAILURE
        }
    }
}
