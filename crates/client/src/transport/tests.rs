use super::*;

/// A gateway in front of a server refuses a client: nobody here has misused anything, and the
/// server is not there to be taken for another program.
#[tokio::test]
async fn who_is_refused_hears_whom_to_ask() {
    let address = Address::parse("http://127.0.0.1:7700").unwrap();
    let transport = Grpc::new(&address, None, None).unwrap();
    for code in [tonic::Code::PermissionDenied, tonic::Code::Unauthenticated] {
        let status = tonic::Status::new(code, "RBAC: access denied");
        for error in [transport.failure(&status), transport.no_description(&status)] {
            assert_eq!(error.blame(), Blame::PeerMisbehaved);
            assert_eq!(error.reason(), Some(Reason::NotAdmitted));
            let said = "http://127.0.0.1:7700: something in front of the server does not let this";
            assert!(error.message().starts_with(said), "{error}");
            assert!(error.message().contains("(RBAC: access denied); ask whoever"), "{error}");
        }
    }
}
