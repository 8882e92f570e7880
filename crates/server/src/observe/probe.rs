//! What `/healthz` says, for probes that ask by gRPC where clients ask (`grpc.health.v1`), as
//! Kubernetes and Envoy do. A question takes a place of the same kind as one for a description.

use super::Health;
use http::StatusCode;
use std::sync::Arc;
use tonic::server::NamedService;
use tonic::{Request, Response, Status};
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::{Health as Probed, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

/// The longest question: the name of a table, with a reserve.
const MOST_BYTES: usize = 4096;

/// Answers probes.
pub(crate) struct Probe {
    health: Arc<Health>,
    /// The name of the service that clients ask.
    service: &'static str,
}

impl Probe {
    /// A service that says how `S`, and the server, are.
    pub(crate) fn of<S: NamedService>(health: Arc<Health>) -> HealthServer<Self> {
        HealthServer::new(Self { health, service: S::NAME }).max_decoding_message_size(MOST_BYTES)
    }
}

#[tonic::async_trait]
impl Probed for Probe {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        let name = request.into_inner().service;
        let health = match name.is_empty() || name == self.service {
            true => Some(self.health.response()),
            false => self.health.response_for(&name),
        };
        let (status, _) = health
            .ok_or_else(|| Status::not_found("there is no service and no table of that name"))?;
        let status = match status {
            StatusCode::OK => ServingStatus::Serving,
            _ => ServingStatus::NotServing,
        };
        let status = tonic_health::pb::health_check_response::ServingStatus::from(status).into();
        Ok(Response::new(HealthCheckResponse { status }))
    }

    type WatchStream = tokio_stream::Empty<Result<HealthCheckResponse, Status>>;

    /// A stream without an end would hold a place of other clients for as long.
    async fn watch(
        &self,
        _: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        Err(Status::unimplemented("health is told to those who ask (Check), and not watched"))
    }
}
