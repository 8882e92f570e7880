//! A server that lies: it stands before an honest one, passes everything on, and changes one bit of
//! every answer. (It cannot replace the key of one user: it does not know in which answer that is.)

use privet_core::{Error, Result};
use privet_wire::proto::privet_client::PrivetClient;
use privet_wire::proto::privet_server::{Privet, PrivetServer};
use privet_wire::proto::{
    AnswerRequest, AnswerResponse, DescribeRequest, DescribeResponse, FetchChunk, FetchRequest,
    PrepareRequest, PrepareResponse,
};
use std::io::Write as _;
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Server};
use tonic::{Request, Response, Status};

struct Liar {
    honest: PrivetClient<Channel>,
}

/// Prints an address and lies there, until the process is ended.
pub(crate) fn lie(url: String) -> Result<()> {
    let unavailable = |what: &str| Error::unavailable(format!("the liar cannot begin: {what}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| unavailable("no runtime").caused_by(error))?;
    runtime.block_on(async {
        let channel = Channel::from_shared(url)
            .map_err(|error| Error::api_misuse(format!("not an address: {error}")))?;
        let liar = Liar { honest: PrivetClient::new(channel.connect_lazy()) };
        let listener = TcpListener::bind(("127.0.0.1", 0)).await;
        let listener = listener.map_err(|error| unavailable("no port").caused_by(error))?;
        let address =
            listener.local_addr().map_err(|error| unavailable("no address").caused_by(error))?;
        // Whoever waits for the address sees by the end of the process that there is none.
        let _ = writeln!(std::io::stdout(), "listening at http://{address}");
        let server = Server::builder().add_service(PrivetServer::new(liar));
        let ended = server.serve_with_incoming(TcpIncoming::from(listener)).await;
        ended.map_err(|error| Error::unavailable("the liar has ended").caused_by(error))
    })
}

#[tonic::async_trait]
impl Privet for Liar {
    async fn describe(
        &self,
        request: Request<DescribeRequest>,
    ) -> Result<Response<DescribeResponse>, Status> {
        self.honest.clone().describe(request.into_inner()).await
    }

    type FetchStream = tonic::Streaming<FetchChunk>;

    async fn fetch(
        &self,
        request: Request<FetchRequest>,
    ) -> Result<Response<Self::FetchStream>, Status> {
        self.honest.clone().fetch(request.into_inner()).await
    }

    async fn answer(
        &self,
        request: Request<AnswerRequest>,
    ) -> Result<Response<AnswerResponse>, Status> {
        let mut response = self.honest.clone().answer(request.into_inner()).await?;
        let mut answer = response.get_ref().answer.to_vec();
        if let Some(byte) = answer.first_mut() {
            *byte ^= 1;
        }
        response.get_mut().answer = answer.into();
        Ok(response)
    }

    async fn prepare(
        &self,
        request: Request<PrepareRequest>,
    ) -> Result<Response<PrepareResponse>, Status> {
        self.honest.clone().prepare(request.into_inner()).await
    }
}
