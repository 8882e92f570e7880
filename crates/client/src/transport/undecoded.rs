//! Descriptions as the bytes that came. Whoever decodes them counts first what they list.

use super::grpc_alone::GrpcAlone;
use privet_wire::{prost, proto};
use prost::bytes::{Buf as _, Bytes};
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http::Uri;
use tonic::{Request, Response, Status};

/// Asks `server`, below the path of `origin`, to describe itself, in at most `limit` bytes.
pub(super) async fn description(
    server: GrpcAlone,
    origin: Uri,
    request: Request<proto::DescribeRequest>,
    limit: usize,
) -> Result<Response<Bytes>, Status> {
    let mut server =
        tonic::client::Grpc::with_origin(server, origin).max_decoding_message_size(limit);
    server.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
    let path = tonic::codegen::http::uri::PathAndQuery::from_static("/privet.v1.Privet/Describe");
    server.unary(request, path, Undecoded).await
}

struct Undecoded;

impl Codec for Undecoded {
    type Encode = proto::DescribeRequest;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Undecoded {
    type Item = proto::DescribeRequest;
    type Error = Status;

    fn encode(&mut self, item: Self::Item, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        prost::Message::encode(&item, buffer).map_err(|error| Status::internal(error.to_string()))
    }
}

impl Decoder for Undecoded {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}
