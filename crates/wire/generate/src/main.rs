//! Writes the generated protocol code of `crates/wire`: scripts/generate-protocol.sh runs it.

use std::error::Error;
use std::fs;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let wire = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let definition = wire.join("proto/privet/v1/privet.proto");
    let generated = wire.join("src/proto/privet.v1.rs");
    let out = std::env::temp_dir().join(format!("privet-wire-generate-{}", std::process::id()));
    fs::create_dir_all(&out)?;

    let files = protox::compile(["privet/v1/privet.proto"], [wire.join("proto")])?;
    tonic_prost_build::configure()
        .build_transport(false)
        .client_mod_attribute(".", "#[cfg(feature = \"grpc\")]")
        .server_mod_attribute(".", "#[cfg(feature = \"grpc\")]")
        // Queries, answers and chunks are large and are handed on without a copy; requests for
        // hints are secret, and a copy would be one more to erase.
        .bytes(".privet.v1.FetchChunk.data")
        .bytes(".privet.v1.AnswerRequest.query")
        .bytes(".privet.v1.AnswerResponse.answer")
        .bytes(".privet.v1.PrepareRequest.request")
        .bytes(".privet.v1.PrepareResponse.reply")
        .out_dir(&out)
        .compile_fds(files)?;

    let code = fs::read_to_string(out.join("privet.v1.rs"))?;
    fs::remove_dir_all(&out)?;
    // Everything that the code follows from: a test compares it.
    let mut source = blake3::Hasher::new();
    for file in [definition, wire.join("generate/src/main.rs"), wire.join("generate/Cargo.lock")] {
        source.update(&fs::read(file)?);
    }
    let (source, hash) = (source.finalize().to_hex(), blake3::hash(code.as_bytes()).to_hex());
    let head = format!("// definition and generator {source}\n// code below {hash}\n");
    fs::write(generated, head + &code)?;
    Ok(())
}
