//! Compiles the protocol definition. In pure Rust: nothing has to be installed first.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    let grpc = std::env::var_os("CARGO_FEATURE_GRPC").is_some();
    let files = protox::compile(["privet/v1/privet.proto"], ["proto"])?;
    tonic_prost_build::configure()
        .build_client(grpc)
        .build_server(grpc)
        .build_transport(false)
        // Queries, answers and chunks are large and are handed on without a copy; requests for
        // hints are secret, and a copy would be one more to erase.
        .bytes(".privet.v1.FetchChunk.data")
        .bytes(".privet.v1.AnswerRequest.query")
        .bytes(".privet.v1.AnswerResponse.answer")
        .bytes(".privet.v1.PrepareRequest.request")
        .bytes(".privet.v1.PrepareResponse.reply")
        .compile_fds(files)?;
    Ok(())
}
