//! What a request to one server in one role shares with its response. There are two such pairs, and
//! they differ only in one field each.

/// For the request `$Request`, whose body is the field `$asked`, and its response `$Response`,
/// whose body is `$replied`: printing, validation, encoding, and the check that they belong
/// together.
macro_rules! exchange {
    ($Request:ident { $asked:ident } => $Response:ident { $replied:ident }) => {
        impl $Response {
            /// Whether this is about the same table, version and scheme as `request`.
            ///
            /// # Errors
            /// [`Blame::PeerMisbehaved`](privet_core::Blame::PeerMisbehaved) if it is not.
            pub fn check_belongs_to(&self, request: &$Request) -> Result<()> {
                if (self.table, self.epoch, self.parameter_digest)
                    == (request.table, request.epoch, request.parameter_digest)
                {
                    return Ok(());
                }
                Err(Error::peer_misbehaved(
                    "the server answered about another table, version or scheme than the request; the answer was not used",
                ))
            }
        }

        // Bodies must not appear in logs: a message prints only their lengths.
        impl fmt::Debug for $Request {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut out = formatter.debug_struct(stringify!($Request));
                out.field("table", &self.table).field("epoch", &self.epoch).field("role", &self.role);
                out.field(concat!(stringify!($asked), "_len"), &self.$asked.len()).finish_non_exhaustive()
            }
        }

        impl fmt::Debug for $Response {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut out = formatter.debug_struct(stringify!($Response));
                out.field("table", &self.table).field("epoch", &self.epoch);
                out.field(concat!(stringify!($replied), "_len"), &self.$replied.len())
                    .finish_non_exhaustive()
            }
        }

        impl TryFrom<proto::$Request> for $Request {
            type Error = Error;

            fn try_from(message: proto::$Request) -> Result<Self> {
                Ok(Self {
                    table: TableId(array("the table id", &message.table_id)?),
                    epoch: Epoch(message.epoch),
                    parameter_digest: array("the parameter digest", &message.parameter_digest)?,
                    role: role(message.role)?,
                    $asked: message.$asked,
                })
            }
        }

        impl From<$Request> for proto::$Request {
            fn from(request: $Request) -> Self {
                Self {
                    table_id: request.table.0.to_vec(),
                    epoch: request.epoch.0,
                    parameter_digest: request.parameter_digest.to_vec(),
                    role: request.role.0.into(),
                    $asked: request.$asked,
                }
            }
        }

        impl TryFrom<proto::$Response> for $Response {
            type Error = Error;

            fn try_from(message: proto::$Response) -> Result<Self> {
                Ok(Self {
                    table: TableId(array("the table id", &message.table_id)?),
                    epoch: Epoch(message.epoch),
                    parameter_digest: array("the parameter digest", &message.parameter_digest)?,
                    $replied: message.$replied,
                })
            }
        }

        impl From<$Response> for proto::$Response {
            fn from(response: $Response) -> Self {
                Self {
                    table_id: response.table.0.to_vec(),
                    epoch: response.epoch.0,
                    parameter_digest: response.parameter_digest.to_vec(),
                    $replied: response.$replied,
                }
            }
        }
    };
}

pub(super) use exchange;
