//! A server between clients and a true server. It passes everything on, apart from what a test has
//! it change.

use super::listener;
use privet_wire::proto::privet_client::PrivetClient;
use privet_wire::proto::privet_server::{Privet, PrivetServer};
use privet_wire::proto::{
    AnswerRequest, AnswerResponse, DescribeRequest, DescribeResponse, FetchChunk, FetchRequest,
    PrepareRequest, PrepareResponse,
};
use tonic::codegen::BoxStream;
use tonic::transport::Channel;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};

type OnFetch =
    Box<dyn Fn(&FetchRequest, Streaming<FetchChunk>) -> BoxStream<FetchChunk> + Send + Sync>;

pub(crate) struct Relay {
    server: PrivetClient<Channel>,
    /// What it says of itself, instead of the server's description.
    pub(crate) description: Option<DescribeResponse>,
    /// Makes what is sent of the server's response.
    pub(crate) on_fetch: OnFetch,
    pub(crate) on_answer: Box<dyn Fn(&mut AnswerResponse) + Send + Sync>,
}

impl Relay {
    /// To the server at `url`.
    pub(crate) fn to(url: &str) -> Self {
        let channel = Channel::from_shared(url.to_owned()).unwrap().connect_lazy();
        Self {
            server: PrivetClient::new(channel),
            description: None,
            on_fetch: Box::new(|_, chunks| Box::pin(chunks)),
            on_answer: Box::new(|_| ()),
        }
    }

    /// Starts it; returns its address.
    pub(crate) async fn start(self) -> String {
        let (listener, url) = listener().await;
        let server = tonic::transport::Server::builder().add_service(PrivetServer::new(self));
        tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
        url
    }
}

#[tonic::async_trait]
impl Privet for Relay {
    async fn describe(
        &self,
        request: Request<DescribeRequest>,
    ) -> Result<Response<DescribeResponse>, Status> {
        match &self.description {
            Some(description) => Ok(Response::new(description.clone())),
            None => self.server.clone().describe(request.into_inner()).await,
        }
    }

    type FetchStream = BoxStream<FetchChunk>;

    async fn fetch(
        &self,
        request: Request<FetchRequest>,
    ) -> Result<Response<Self::FetchStream>, Status> {
        let request = request.into_inner();
        let chunks = self.server.clone().fetch(request.clone()).await?.into_inner();
        Ok(Response::new((self.on_fetch)(&request, chunks)))
    }

    async fn answer(
        &self,
        request: Request<AnswerRequest>,
    ) -> Result<Response<AnswerResponse>, Status> {
        let mut response = self.server.clone().answer(request.into_inner()).await?;
        (self.on_answer)(response.get_mut());
        Ok(response)
    }

    async fn prepare(
        &self,
        request: Request<PrepareRequest>,
    ) -> Result<Response<PrepareResponse>, Status> {
        self.server.clone().prepare(request.into_inner()).await
    }
}
